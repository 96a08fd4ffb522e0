"""Contributions of learners of one's own: clipped, so that the certificate holds whatever they compute."""

from __future__ import annotations

import builtins
import contextlib
import warnings
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from taciturn import (
    BLT,
    FTRL,
    IGD,
    QFTL,
    ClassSums,
    DecayedBLT,
    Gaussian,
    Hinge,
    Index,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    NonNegative,
    Privacy,
    Private,
    Problem,
    ScalarLoss,
    Softmax,
    Square,
    Squared,
    Unprovable,
    Unverified,
    User,
    Vector,
    WholeSpace,
    averaged,
    block_statistics,
    every,
    private_sum,
)
from taciturn.checks import ContractBroken, check_contribution
from taciturn.kernel.learners.contributions import Contributions, clipped
from taciturn.kernel.learners.second_moment import SecondMoment
from taciturn.kernel.replay import exact_of, sums_in

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
RELATIONS = ("replace", "zero-out", "label")
BOUND = 0.7
FORMS = {
    "vector": Vector(3, BOUND),
    "non-negative": NonNegative(3, BOUND),
    "index": Index(3),
    "square": Square(3, BOUND),
}


def problem_of(neighbours="replace", dimension=3) -> Problem:
    return Problem(Linear(), L2Ball(1.0), dimension, label_bound=1.0, neighbours=neighbours, on_bad="zero")


@dataclass(frozen=True)
class Told:
    """A learner that returns what `says` makes of a row, its label and the released point."""

    problem: Problem
    form: Any
    says: Any = None

    def contribution(self, row, label, released):
        return self.says(row, label, released)

    def decide(self, t, noisy, noise_sd):
        return self.problem.domain.project(np.resize(noisy, self.problem.size) / t)


@dataclass(frozen=True)
class Signed:
    """The sum of `label·row`, times a factor: an honest learner, and one that is not."""

    problem: Problem
    factor: float = 1.0

    @property
    def form(self):
        return Vector(self.problem.size, self.problem.norm_bound)

    def contribution(self, row, label, released):
        return self.factor * label * row

    def decide(self, t, noisy, noise_sd):
        return self.problem.domain.project(noisy / t)


def added(learner: Contributions, V, y, points, ends) -> list[np.ndarray]:
    """The statistics of all blocks of a life, with these releases in between: a replay with frozen outputs."""
    exact, rows = learner.start(), []
    for k, (start, end) in enumerate(pairwise([0, *ends])):
        exact = learner.absorb(exact, start, V[start:end], y[start:end], points[k])
        exact, row = learner.statistic(exact, end)
        rows.append(row)
    return rows


# Constants of the forms.

PAIRS = {
    "vector": ((9.0, 0.0, 0.0), (-9.0, 0.0, 0.0)),
    "non-negative": ((9.0, -1.0, 0.0), (0.0, 9.0, -1.0)),
    "index": (0, 2),
    "square": ((9.0, 0.0, 0.0), (0.0, 0.0, 9.0)),
}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("name", FORMS)
def test_a_pair_reaches_the_constant_of_its_form_and_none_exceeds_it(name, neighbours):
    """So no smaller constant would do: half of one is exceeded by nearly twice."""
    one, other = PAIRS[name]
    learner = Contributions(
        Told(problem_of(neighbours), FORMS[name], says=_Either(one, other)),
    )
    V, y = np.ones((1, 3)) / 2.0, np.ones(1)
    W = {"replace": -V, "zero-out": 0.0 * V, "label": V}[neighbours]
    z = -y if neighbours == "label" else y
    (a,), (b,) = (added(learner, X, labels, [np.zeros(3)], [1]) for X, labels in ((V, y), (W, z)))
    apart, bound = float(np.linalg.norm(a - b)), float(learner.certificate.at(1))
    assert 0.9999 * bound < apart <= bound
    assert apart > bound / 2.0
    assert learner.certificate.rests_on == "enforced"


@dataclass(frozen=True)
class _Either:
    """One answer for rows and labels above 0, another one for the others."""

    one: Any
    other: Any

    def __call__(self, row, label, released):
        return self.one if row[0] > 0.0 and label > 0.0 else self.other


@pytest.mark.parametrize("name", FORMS)
def test_a_stated_form_is_validated(name):
    kind = type(FORMS[name])
    with pytest.raises(InvalidInput):
        kind(0)
    for bound in (0.0, -1.0, np.nan, np.inf, 1e70):
        with pytest.raises(InvalidInput):
            kind(3, bound)


def test_a_form_of_ones_own_is_rejected():
    """It would do the clipping."""

    class Loose(Vector):
        def to_integers(self, made):
            return np.full(3, 2**40)

    with pytest.raises(InvalidInput, match="form"):
        Contributions(Told(problem_of(), Loose(3)))


def test_lengths_are_clipped_for_entries_of_any_size():
    rng = np.random.default_rng(5)
    for exponent in (-320, -300, -160, -20, 0, 20, 160, 300, 308):
        for size in (1, 2, 1000):
            with np.errstate(all="ignore"):
                vector = np.nan_to_num(rng.normal(size=size) * 10.0**exponent / 4.0)
            length = float(np.linalg.norm(np.float128(clipped(vector, 1.0))))
            assert length <= 1.0 + 2.0**-41 + 2.0**-46
            assert exponent < 20 or length > 1.0 - 1e-12
    kept = np.array([1.0 + 2.0**-42, 0.0])
    assert clipped(kept, 1.0) is kept


# Whatever a learner returns.

UNREADABLE = {
    "NaN": np.array([np.nan, 0.0, 0.0]),
    "infinite": np.array([np.inf, 0.0, 0.0]),
    "another shape": np.ones(4),
    "two axes": np.ones((1, 3)),
    "a number": 1.0,
    "nothing": None,
    "a text": "1.0",
    "texts": ["1", "2", "3"],
    "complex": np.ones(3, dtype=complex),
    "objects": np.array([1.0, 2.0, object()], dtype=object),
    "a dict": {"a": 1.0},
    "larger than a float": [10**400, 0, 0],
}


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("name", FORMS)
def test_what_cannot_be_read_counts_as_nothing(name, what):
    learner = Contributions(Told(problem_of(), FORMS[name], says=_Returning(UNREADABLE[what])))
    (row,) = added(learner, np.ones((2, 3)) / 2.0, np.ones(2), [np.zeros(3)], [2])
    assert not row.any()


@dataclass(frozen=True)
class _Returning:
    what: Any

    def __call__(self, row, label, released):
        return self.what


@pytest.mark.parametrize("index", [-1, 3, 10**30, 1.0, np.float64(2.0), "1", [1], np.array([1, 2])])
def test_what_is_no_index_counts_nowhere(index):
    learner = Contributions(Told(problem_of(), Index(3), says=_Returning(index)))
    assert not added(learner, np.ones((1, 3)), np.ones(1), [np.zeros(3)], [1])[0].any()


SECRET = 0.123456789
ERRORS = (
    "ValueError",
    "ZeroDivisionError",
    "RecursionError",
    "MemoryError",
    "SystemExit",
    "GeneratorExit",
    "BaseException",
)


@dataclass(frozen=True)
class _Raising:
    name: str

    def __call__(self, row, label, released):
        if row[0] == SECRET:
            raise getattr(builtins, self.name)(f"the row is {row}")
        return row


@pytest.mark.parametrize("name", ERRORS)
def test_an_exception_is_seen_by_nobody(name, recwarn, capsys, caplog):
    """A stream that raised, warned or wrote would tell that such a row was there."""
    learner = Told(problem_of(), Vector(3), _Raising(name))
    private = Private(learner, BLT(), every(2), BUDGET, horizon=4, seed=1)
    X = np.array([[SECRET, 0, 0], [0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0]])
    without = X * (X[:, :1] != SECRET)
    releases, others = (private.run(private.start(), each, np.ones(4))[1] for each in (X, without))
    assert (releases.noisy == others.noisy).all()
    assert not recwarn.list
    assert not caplog.records
    assert "".join(capsys.readouterr()) == ""


def test_rows_without_influence_contribute_nothing():
    """Bad rows, and those in excess of their user's, come as zeros; the learner is not asked what it makes of them."""
    learner = Contributions(Told(problem_of("zero-out"), Index(3), says=_Returning(1)))
    V, y = learner.problem.clip([[np.nan, 0, 0], [0.5, 0, 0]], [1.0, 1.0])
    assert added(learner, V, y, [np.zeros(3)], [2])[0].tolist() == [0.0, 1.0, 0.0]


# What a learner is called with.


def test_a_learner_gets_copies_that_nobody_else_has():
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def says(row, label, released):
        assert type(row) is type(released) is np.ndarray
        assert row.flags.c_contiguous
        assert not row.flags.writeable
        assert not released.flags.writeable
        assert row.dtype == released.dtype == np.float64
        assert type(label) is float
        seen.append((row, released))
        for each in (row, released):
            each.flags.writeable = True  # its own copy: nobody else's changes
            each[:] = 7.0
        return np.zeros(3)

    learner = Contributions(Told(problem_of(), Vector(3), says))
    X = np.asfortranarray(np.ones((4, 3)) / 2.0)
    point = np.full(3, 0.25)
    learner.absorb(learner.start(), 0, X, np.ones(4), point)
    assert len(seen) == 4
    assert (X == 0.5).all()
    assert (point == 0.25).all()
    assert not any(np.shares_memory(a, b) for i, (a, _) in enumerate(seen) for b, _ in seen[:i])


@dataclass(frozen=True)
class Remembering:
    """Adds the row before, and how many rows it has seen: on itself, in a list and in an array of its own."""

    problem: Problem
    form: Any = FORMS["vector"]
    rows: list[Any] = field(default_factory=list)
    total: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def contribution(self, row, label, released):
        last = self.rows[-1] if self.rows else np.zeros(3)
        self.rows.append(row)
        seen = self.__dict__.get("seen", 0)
        object.__setattr__(self, "seen", seen + 1)
        with contextlib.suppress(ValueError):
            self.total[:] += row
        return row / 4.0 + last / 4.0 + self.total / 4.0 + seen / 4.0

    def decide(self, t, noisy, noise_sd):
        return self.problem.domain.project(noisy + sum(self.rows, np.zeros(3)))


def test_what_a_learner_writes_on_itself_is_gone():
    """Contributions are those of a learner that has seen nothing, decisions too, and the caller's object stays."""
    own = Remembering(problem_of())
    learner = Contributions(own)
    rng = np.random.default_rng(2)
    V = rng.normal(size=(6, 3)) / 4.0
    alone = sum(np.rint(v / 4.0 * 2**26) for v in V)
    (row,) = added(learner, V, np.ones(6), [np.zeros(3)], [6])
    assert np.abs(row * 2**26 - alone).max() <= 0.5 * 6
    assert learner.decide(1.0, np.zeros(3), 1.0).tolist() == [0.0, 0.0, 0.0]
    assert own.rows == learner.learner.rows == []


def test_the_learner_that_is_used_is_a_copy():
    """What its owner changes later changes no stream."""
    own = Remembering(problem_of())
    private = Private(own, BLT(), every(1), BUDGET, horizon=2, seed=1)
    before = private.settings
    own.rows.append(np.ones(3))
    own.total[:] = 5.0
    assert replace(private).settings == before
    assert private.learner.learner.rows == []


def test_what_cannot_be_copied_is_rejected():
    class Locked(Told):
        def __deepcopy__(self, memo):
            raise TypeError("no")

    with pytest.raises(InvalidInput, match="cannot be copied"):
        Contributions(Locked(problem_of(), Vector(3)))


# Hostile learners.

HUGE = (0.0, -0.0, 5e-324, 1e-310, 1e-300, 1e-9, 0.5, 1.0, 3.0, 1e9, 1e150, 1e300, 1.7e308, np.inf, -np.inf, np.nan)
TYPES = (
    np.float64,
    np.float32,
    np.float16,
    np.longdouble,
    np.int64,
    np.int8,
    np.uint64,
    np.bool_,
    complex,
    object,
    str,
)


class Hostile:
    """A learner drawn at random: what it computes, how it spoils that, and what it keeps of earlier calls."""

    def __init__(self, problem, form, rng):
        self.problem, self.form = problem, form
        self.weights = rng.normal(size=(form.size, problem.size + 2)) * 10.0 ** rng.integers(-3, 6)
        self.kinds = rng.choice(len(SPOILING), size=int(rng.integers(1, 4)))
        self.numbers = rng.choice(HUGE, size=form.size)
        self.type = TYPES[int(rng.integers(len(TYPES)))]
        self.share = float(rng.random())
        self.rows: list[Any] = []
        self.points: list[Any] = []
        self.calls = 0

    def contribution(self, row, label, released):
        self.calls += 1
        made = self.weights @ np.array([*row, label, float(np.sum(released))])
        for kind in self.kinds:
            made = SPOILING[kind](self, made, row, label, released)
        self.rows.append(row)
        self.points.append(released)
        if isinstance(self.form, Index) and isinstance(made, np.ndarray) and made.size and self.share < 0.8:
            return int(abs(float(np.real(made.ravel()[0]))) * 7.0) % (self.form.size + 1)
        return made

    def decide(self, t, noisy, noise_sd):
        return self.problem.domain.project(np.resize(noisy, self.problem.size))


def _raising(self, made, row, label, released):
    if row[0] > self.share - 0.5:
        raise ValueError(f"{row}")
    return made


def _of_the_last_row(self, made, row, label, released):
    return made + 1e3 * np.resize(self.rows[-1], self.form.size) if self.rows else made


def _kept(self, made, row, label, released):
    self.weights = self.weights + np.resize(row, self.weights.shape)
    self.rows.extend([row] * 3)
    return made * len(self.rows)


def _writing(self, made, row, label, released):
    for each in (row, released):
        each.flags.writeable = True
        each[:] = label
    return made


def _form_changed(self, made, row, label, released):
    self.form = Vector(self.form.size, 1e9)
    self.problem = None
    return made * 1e6


def _on_its_problem(self, made, row, label, released):
    kept = vars(self.problem.loss).setdefault("seen", [])
    kept.append(row)
    object.__setattr__(self.problem, "ridge", self.problem.ridge + abs(label))
    return made * (len(kept) + self.problem.ridge)


def _typed(self, made, row, label, released):
    return np.asarray(made).astype(self.type)


SPOILING = (
    lambda self, made, row, label, released: made,
    lambda self, made, row, label, released: made * 100.0,
    lambda self, made, row, label, released: self.numbers * np.sign(label),
    lambda self, made, row, label, released: np.where(np.asarray(made) > 0.0, self.numbers, -self.numbers),
    lambda self, made, row, label, released: made * 1e-310,
    lambda self, made, row, label, released: list(made) if row[0] > 0.0 else None,
    lambda self, made, row, label, released: np.resize(made, len(made) + (row[0] > 0.0)),
    lambda self, made, row, label, released: np.resize(made, (2, 2)),
    lambda self, made, row, label, released: np.resize(row, self.form.size),
    lambda self, made, row, label, released: made * self.calls,
    lambda self, made, row, label, released: made / np.zeros_like(made),
    lambda self, made, row, label, released: np.ma.masked_invalid(made),
    lambda self, made, row, label, released: made[::-1],
    _raising,
    _of_the_last_row,
    _kept,
    _writing,
    _form_changed,
    _on_its_problem,
    _typed,
)


def rows_of(problem, rng, count):
    """Raw rows and labels: of any length, and some that cannot be read."""
    X = rng.normal(size=(count, problem.dimension)) * rng.choice([1e-300, 1e-9, 0.3, 1.0, 1e9], size=(count, 1))
    spoilt = rng.random(X.shape) < 0.1
    X[spoilt] = rng.choice(HUGE, size=int(spoilt.sum()))
    y = np.where(rng.random(count) < 0.1, rng.choice(HUGE, size=count), rng.normal(size=count))
    with np.errstate(all="ignore"):
        X = X.astype(np.float16).astype(np.float64) if rng.random() < 0.2 else X
    return X, y


def shift_of(seed: int) -> tuple[float, float]:
    """The largest share of the certificate that a random pair of lives uses, and how far other blocks move."""
    rng = np.random.default_rng(seed)
    neighbours = RELATIONS[int(rng.integers(3))]
    problem = replace(problem_of(neighbours, int(rng.integers(1, 5))), intercept=float(rng.choice([0.0, 0.5])))
    bound = float(rng.choice([1e-6, 0.3, 1.0, 37.0]))
    size = int(rng.integers(1, 6))
    form = (Vector(size, bound), NonNegative(size, bound), Index(size), Square(size, bound))[int(rng.integers(4))]
    learner = Contributions(Hostile(problem, form, rng))
    count = int(rng.integers(2, 10))
    X, y = rows_of(problem, rng, count)
    i = int(rng.integers(count))
    W, z = X.copy(), y.copy()
    other, label = rows_of(problem, rng, 1)
    z[i] = label[0]
    if neighbours == "replace":
        W[i] = -X[i] if rng.random() < 0.3 else other[0]
    lives = [problem.clip(*each) for each in ((X, y), (W, z))]
    if neighbours == "zero-out":
        lives[1] = lives[0][0].copy(), lives[0][1].copy()
        lives[1][0][i] = 0.0
    ends = sorted({*rng.integers(1, count + 1, size=3).tolist(), count})
    points = rng.normal(size=(len(ends), problem.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a learner's own making
        one, two = (added(learner, V, labels, points, ends) for V, labels in lives)
    apart = np.array([np.linalg.norm(a - b) for a, b in zip(one, two, strict=True)])
    own = int(np.searchsorted(ends, i, side="right"))
    assert all(np.isfinite(a).all() for a in one)
    return float(apart[own] / learner.certificate.at(count)), float(np.delete(apart, own).max(initial=0.0))


def lives_of(count: int) -> None:
    shares = []
    for seed in range(count):
        share, elsewhere = shift_of(seed)
        assert share <= 1.0, f"seed {seed}: {share} of the certificate"
        assert elsewhere == 0.0, f"seed {seed}: another statistic moved by {elsewhere}"
        shares.append(share)
    assert max(shares) > 0.999  # the search is one: some of them come as far as they may
    assert np.mean(np.array(shares) > 0.0) > 0.3


def test_no_hostile_learner_moves_a_life_by_more_than_its_certificate():
    """Random learners on random rows, a pair of lives each, seeds 0 to 399; 10,000 of them with the slow tests."""
    lives_of(400)


@pytest.mark.slow
def test_none_of_ten_thousand_hostile_learners_does():
    lives_of(10_000)


def test_a_learner_that_returns_too_much_costs_accuracy_alone():
    """Contributions of 100 B are as long as B: the guarantee stays, and short rows count as much as long ones."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4_000, 3)) * rng.choice([0.001, 0.2], size=(4_000, 1))
    y = np.where(X @ [1.0, 0.5, -0.5] + 0.05 * rng.normal(size=4_000) > 0.0, 1.0, -1.0)
    honest, loud = (
        Private(Signed(problem_of(), factor), BLT(), every(1_000), BUDGET, horizon=4_000, seed=3)
        for factor in (1.0, 100.0)
    )
    assert honest.guarantee == loud.guarantee
    assert [honest.noise_sd(k) for k in (1, 4)] == [loud.noise_sd(k) for k in (1, 4)]
    sums = [each.learner.to_integers(exact_of(each.run(each.start(), X[:999], y[:999])[0])) for each in (honest, loud)]
    apart = [float(np.linalg.norm(each * 2.0**-26)) for each in sums]
    assert apart[1] <= 999 * 1.000001
    noise = [each.run(each.start(), X, y)[1].noisy - _exact(each, X, y) for each in (honest, loud)]
    assert np.allclose(noise[0], noise[1], atol=1e-4)


def _exact(private, X, y):
    learner = private.learner
    V, labels = learner.problem.clip(X, y)
    return np.cumsum(added(learner, V, labels, np.zeros((4, 3)), [1000, 2000, 3000, 4000]), axis=0)


# All paths.


@dataclass(frozen=True)
class Perceptron:
    """Gradients of the hinge loss at released points."""

    problem: Problem

    @property
    def form(self):
        return Vector(self.problem.size, self.problem.norm_bound)

    def contribution(self, row, label, released):
        return -label * row if label * (row @ released) < 1.0 else np.zeros(len(row))

    def decide(self, t, noisy, noise_sd):
        return self.problem.domain.project(-noisy / (10.0 + t))


def data(rows=24, dimension=3):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(rows, dimension))
    return X, np.where(X[:, 0] > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("strategy", [BLT(), DecayedBLT(8)], ids=["blt", "forgetting"])
def test_streams_are_the_same_however_they_are_cut(strategy):
    problem = Problem(Hinge(), L2Ball(1.0), 3)
    horizon = None if isinstance(strategy, DecayedBLT) else 24
    private = Private(Perceptron(problem), strategy, every(4), BUDGET, horizon=horizon, seed=1)
    X, y = data()
    whole = private.run(private.start(), X, y)[1]
    state, parts = private.start(), []
    for a, b in ((0, 1), (1, 9), (9, 10), (10, 24)):
        state, made = private.run(private.load(state.to_bytes()), X[a:b], y[a:b])
        parts.extend(made.points)
    assert (np.array(parts) == whole.points).all()
    slow = replace(private, compiled=False)
    assert (slow.run(slow.start(), X, y)[1].points == whole.points).all()


def test_workers_add_the_same_integers():
    problem = Problem(Hinge(), L2Ball(1.0), 3)
    private = Private(Perceptron(problem), BLT(), every(4), BUDGET, horizon=24, seed=1)
    X, y = data()
    state, points = private.start(), []
    for a in range(0, 24, 4):
        cuts = ((a + 3, a + 4), (a, a + 3))
        parts = [block_statistics(private.learner_at(state), state.point, X[s:e], y[s:e]) for s, e in cuts]
        raw = block_statistics(Perceptron(problem), state.point, X[a : a + 3], y[a : a + 3])
        assert (sums_in(raw) == sums_in(parts[1])).all()
        assert raw.settings == parts[1].settings
        state, made = private.run_sums(state, parts)
        points.append(made.points)
    assert (np.concatenate(points) == private.run(private.start(), X, y)[1].points).all()


def test_rows_in_excess_of_their_user_contribute_nothing():
    problem = replace(problem_of(), on_bad="zero")
    private = Private(
        Told(problem, Index(3), _Returning(1)), BLT(), every(4), BUDGET, horizon=4, seed=1, unit=User(rows=1)
    )
    assert private.certificate.participation.rows == 1
    X = np.ones((3, 3))
    state, _ = private.run(private.start(), X, np.ones(3), users=["a", "a", "b"])
    assert private.learner.to_integers(exact_of(state)).tolist() == [0, 2, 0]


def test_the_other_relation_is_stated_too():
    guarantee = Private(Signed(problem_of()), BLT(), every(1), BUDGET, horizon=8).guarantee
    assert guarantee.epsilons["zero-out"] < 0.6 * guarantee.epsilons["replace"]


# What a guarantee rests on.


class OwnLoss(ScalarLoss):
    """Slopes as it says."""

    sharper = False

    def value(self, u, y):
        return np.abs(u - y)

    def slope(self, u, y):
        return np.sign(u - y)

    def slope_bound(self, reach, label_bound):
        return 1.0

    def gradient_diameter(self, feature_bound, radius, label_bound):
        honest = super().gradient_diameter(feature_bound, radius, label_bound)
        return 0.75 * honest if self.sharper else honest


class SharperLoss(OwnLoss):
    sharper = True


DISC = L2Ball(1.0)
RIDGED = Problem(Logistic(), DISC, 2, ridge=0.1)
RESTS = {
    "hinge": (FTRL(Problem(Hinge(), DISC, 2)), "enforced"),
    "logistic": (FTRL(Problem(Logistic(), DISC, 2)), "proven"),
    "logistic, zero-out": (FTRL(Problem(Logistic(), DISC, 2, neighbours="zero-out")), "enforced"),
    "squared": (FTRL(Problem(Squared(), DISC, 2, label_bound=1.0)), "proven"),
    "logistic, labels": (FTRL(Problem(Logistic(), DISC, 2, neighbours="label")), "proven"),
    "softmax": (FTRL(Problem(Softmax(3), DISC, 2)), "enforced"),
    "qftl": (QFTL(Problem(Squared(), DISC, 2, label_bound=1.0)), "enforced"),
    "qftl, labels": (QFTL(Problem(Squared(), DISC, 2, label_bound=1.0, neighbours="label")), "proven"),
    "class sums": (ClassSums(Problem(Hinge(), WholeSpace(), 2)), "enforced"),
    "second moment": (SecondMoment(RIDGED), "enforced"),
    "sum": (private_sum(2, 1.0, BUDGET, 4).learner, "enforced"),
    "igd": (IGD(RIDGED), "proven"),
    "mean of igd": (averaged(IGD(RIDGED), "mean", horizon=4), "proven"),
    "own loss": (FTRL(Problem(OwnLoss(), DISC, 2, label_bound=1.0)), "enforced"),
    "own loss that knows better": (FTRL(Problem(SharperLoss(), DISC, 2, label_bound=1.0)), "unverified"),
    "igd, own loss": (IGD(Problem(OwnLoss(), DISC, 2, label_bound=1.0, ridge=0.1)), "unverified"),
}


@pytest.mark.parametrize("name", RESTS)
def test_a_certificate_says_what_it_rests_on(name):
    learner, expected = RESTS[name]
    certificate = learner.certificate
    assert certificate.rests_on == expected
    assert (certificate.by != "") == (expected == "unverified")
    mechanism = Gaussian() if certificate.reach == "tail" else BLT()
    guarantee = Private(learner, mechanism, every(1), BUDGET, horizon=4).guarantee
    assert guarantee.rests_on == expected
    assert guarantee.basis in str(guarantee)
    assert expected in guarantee.basis


def test_what_is_enforced_has_the_constant_of_its_form():
    """Where it says so, the bound is no smaller than that of clipped gradients; else the factor says by how much."""
    for learner in (each for each, _ in RESTS.values() if isinstance(each, FTRL)):
        p, certificate = learner.problem, learner.certificate
        form = p.lipschitz * (1.0 if p.neighbours == "zero-out" else 2.0)
        assert certificate.enforced_factor == pytest.approx(max(1.0, form / p.gradient_diameter))
        assert (certificate.rests_on == "enforced") == (p.gradient_diameter >= form)


def test_gradients_of_a_loss_that_misstates_its_slopes_are_clipped():
    class Steep(OwnLoss):
        def slope(self, u, y):
            return 1e6 * np.sign(u - y)

    learner = FTRL(Problem(Steep(), DISC, 2, label_bound=1.0))
    rows = [learner.absorb(learner.start(), 0, np.array([[1.0, 0.0]]), np.array([y]), np.zeros(2)) for y in (1.0, -1.0)]
    apart = np.linalg.norm(rows[0]["sum"] - rows[1]["sum"])
    assert apart <= learner.certificate.at(1)


class OwnIterates(IGD):
    """A subclass may have changed anything."""


def test_a_certificate_of_ones_own_has_to_be_marked():
    own = OwnIterates(RIDGED)
    for learner in (own, averaged(own, "mean", horizon=4)):
        with pytest.raises(Unprovable, match="Unverified"):
            Private(learner, Gaussian(), every(1), BUDGET, horizon=4)
        private = Private(Unverified(learner, by="A. Author, Lemma 3"), Gaussian(), every(1), BUDGET, horizon=4)
        assert private.guarantee.rests_on == "unverified"
        assert "A. Author, Lemma 3" in str(private.guarantee)
        assert private.guarantee.proven
    wrapped = averaged(Unverified(own, by="A. Author"), "mean", horizon=4)
    assert Private(wrapped, Gaussian(), every(1), BUDGET, horizon=4).guarantee.by == "A. Author"


def test_an_unverified_learner_learns_as_itself():
    X, y = data(6, 2)
    streams = [
        Private(each, Gaussian(), every(1), BUDGET, horizon=6, seed=1, compiled=False)
        for each in (IGD(RIDGED), Unverified(OwnIterates(RIDGED), by="A. Author"))
    ]
    one, other = (each.run(each.start(), X, y)[1].points for each in streams)
    assert (one == other).all()


def test_what_is_proven_here_is_not_marked():
    with pytest.raises(InvalidInput, match="Leave Unverified out"):
        Unverified(IGD(RIDGED), by="A. Author")
    with pytest.raises(InvalidInput):
        Unverified(OwnIterates(RIDGED), by=" ")


# Checks.

SEEN = [0]


class Counting(Signed):
    """A global that no copy forgets."""

    def contribution(self, row, label, released):
        SEEN[0] += 1
        return row if SEEN[0] % 3 else -row


class Drawing(Signed):
    def contribution(self, row, label, released):
        return row * np.random.default_rng().random()


class Failing(Signed):
    def contribution(self, row, label, released):
        return row[:-1] if row[0] > 0.0 else row


@pytest.mark.parametrize(
    ("kind", "fault"), [(Counting, "after other rows"), (Drawing, "again"), (Failing, "count as 0")]
)
def test_checks_find_what_cannot_be_enforced(kind, fault):
    with pytest.raises(ContractBroken, match=fault):
        check_contribution(kind(problem_of()))
