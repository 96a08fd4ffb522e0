"""A compiled pass releases what the definition does: on every learner and mechanism, however a stream is cut."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import Diagonal, LogCosh, believed
from kernel.stream.equivalence import assert_agree, assert_memories_agree
from kernel.stream.streams import (
    ALL,
    BUDGET,
    ENDLESS,
    PAIRS,
    PLAIN,
    ROWS,
    SCHEDULES,
    STRATEGIES,
    TAIL,
    TOGETHER,
    private,
    problem,
    rounding_of,
    stream,
)
from taciturn import (
    BLT,
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    BinaryTree,
    Exponential,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Logistic,
    Private,
    Problem,
    ScalarLoss,
    Squared,
    averaged,
    every,
    private_sum,
)
from taciturn.kernel.learners import igd_pass
from taciturn.kernel.learners.ftrl_pass import FTRLPass
from taciturn.kernel.learners.igd_pass import IteratePass
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.mechanisms.blt import BLTCoder
from taciturn.kernel.problem import clipping_pass
from taciturn.kernel.replay import arrays_in, replay
from taciturn.kernel.stream import loop
from taciturn.kernel.stream.batch_pass import BatchPass
from taciturn.kernel.stream.loop import Definition


def schedules_of(learner, mechanism):
    """Strategies but one need a horizon, and so do means; leaders take their time."""
    if mechanism in ("decayed", "restarted"):  # sums that last have releases at equal distances
        return ["every", "every 7", "every, endless", "every 7, endless"]
    if "ftl" in learner or "whole losses" in learner:
        return ["at", "every 7"]
    return [
        *SCHEDULES,
        *(ENDLESS if mechanism in ("gaussian", "exponential", "blt") and " of " not in learner else ()),
    ]


def kind_of(learner):
    """Its first word: of `igd, hinge, ball` that is `igd`."""
    return learner.replace(",", "").split()[0]


def by_turns():
    """Each pair with every fourth of its schedules, pairs of one kind and mechanism in turn; of few pairs with all."""
    kinds = [(kind_of(learner), mechanism) for learner, mechanism in PAIRS]
    turns = Counter()
    for pair, kind in zip(PAIRS, kinds, strict=True):
        schedules = schedules_of(*pair)
        apart = min(4, len(schedules)) if kinds.count(kind) >= 4 else 1
        yield (*pair, schedules[turns[kind] % apart :: apart])
        turns[kind] += 1


@pytest.mark.parametrize(("learner", "mechanism", "schedules"), list(by_turns()), ids=map(" by ".join, PAIRS))
def test_compiled_is_the_definition(learner, mechanism, schedules):
    """Rows, integers, noisy rows, points and states."""
    for schedule in schedules:
        assert_agree(learner, mechanism, schedule)


def test_every_kind_of_learner_is_compared_with_every_mechanism_on_every_schedule():
    """By the test above; the slow one does so for every learner."""
    compared = {(kind_of(who), how, schedule) for who, how, schedules in by_turns() for schedule in schedules}
    assert compared == {(kind_of(who), how, schedule) for who, how in PAIRS for schedule in schedules_of(who, how)}


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "mechanism"), PAIRS, ids=map(" by ".join, PAIRS))
def test_compiled_is_the_definition_on_every_schedule(learner, mechanism):
    """The same, for all schedules of a pair."""
    for schedule in schedules_of(learner, mechanism):
        assert_agree(learner, mechanism, schedule)


@pytest.mark.parametrize("learner", [name for name in ALL if "ftrl" not in name])
def test_rows_of_a_learner_at_once(learner):
    """Many rows at once are those handed over one by one, up to what its certificate allows for rounding."""
    often = np.arange(1, ROWS + 1, 3 if learner.startswith("ftl, ") else 1)  # leaders take their time
    assert_rows_agree(ALL[learner], often, np.array([1, 2, 3, 20]), np.array([ROWS]), np.array([], dtype=np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("learner", [name for name in ALL if name.startswith("ftl, ")])
def test_rows_of_a_leader_in_every_round(learner):
    """The same, in all rounds."""
    assert_rows_agree(ALL[learner], np.arange(1, ROWS + 1))


def assert_rows_agree(made, *releases):
    for rounds in releases:
        V, y = clipping_pass.clip_for(made.problem).dense(*stream(made.problem, seed=len(rounds)))
        ending, rows = replay(made, V, y, rounds)
        end, at_once = replay(made, V, y, rounds, compiled=True)
        assert at_once.shape == rows.shape == (len(rounds), made.statistic_size)
        assert (np.linalg.norm(at_once - rows, axis=1) <= rounding_of(made, rounds)).all()
        assert_memories_agree(ending, end, rounding_of(made, [ROWS])[0])


@pytest.mark.parametrize(("learner", "mechanism"), PAIRS, ids=map(" by ".join, PAIRS))
def test_the_compiled_pass_was_meant(learner, mechanism):
    """None of the pairs above has gone by the definition both times, but those that have no other way."""
    expected = BatchPass if (learner, mechanism) in TOGETHER else FTRLPass
    expected = Definition if (learner, mechanism) in PLAIN else expected
    if igd_pass.steps_of(ALL[learner]) is not None:
        expected = IteratePass
    assert type(private(learner, mechanism, "every")._pass) is expected
    assert type(private(learner, mechanism, "every", compiled=False)._pass) is Definition
    inner = getattr(ALL[learner], "learner", ALL[learner])
    if learner in TAIL and not isinstance(inner, FTL):
        assert (igd_pass.steps_of(inner) is None) == ("simplex" in learner or inner.problem.outputs > 1)


ONE_BY_ONE = ["igd, softmax, simplex", "igd, logistic, simplex", "igd, softmax, ball", "giga, one hot, box"]
ONE_BY_ONE += ["mean of igd on simplex", "ftrl, hinge, simplex"]


@pytest.mark.parametrize("learner", ONE_BY_ONE)
def test_where_nothing_is_compiled_the_bits_are_the_same(learner):
    """Examples that need no shortening are the same, however they are clipped, and so is all that follows."""
    for schedule in SCHEDULES:
        made = [private(learner, "blt" if "ftrl" in learner else "gaussian", schedule, c) for c in (False, True)]
        X, y = stream(made[0].problem, short=True)
        (end, defined), (other, releases) = (one.run(one.start(), X, y) for one in made)
        assert type(made[1]._pass) is Definition
        same(defined, releases)
        same_state(end, other)


def same(defined, releases):
    """The same bits."""
    for name in ("rounds", "noisy", "noise_sd", "points"):
        np.testing.assert_array_equal(getattr(defined, name), getattr(releases, name))


def same_state(one, other):
    assert (one.t, one.k, one.spent) == (other.t, other.k, other.spent)
    for part in ("exact", "secret", "public"):
        mine, others = arrays_in(one)[part], arrays_in(other)[part]
        assert list(mine) == list(others)
        for name in mine:
            np.testing.assert_array_equal(mine[name], others[name])
            assert mine[name].dtype == others[name].dtype


# How a stream is cut.

CUT = ["igd, hinge, ball", "giga, squared, box", "printed giga, logistic, space", "fading, absolute, ball"]
CUT = [(learner, "gaussian") for learner in (*CUT, "suffix of igd", "igd, logistic, simplex", "mean of ftl")]
CUT += [(f"ftl, {loss}, ball", "gaussian") for loss in ("squared", "hinge", "softmax")]
CUT += [(learner, "gaussian") for learner in ("igd, softmax, box", "giga, one hot, ball", "suffix of igd on classes")]
CUT += [(learner, "exponential") for learner in ("ewoo, logistic", "ewoo, softmax", "experts")]
CUT += [(learner, s) for learner in ("total", "qftl, box", "qftl, one hot, ball", "qftl, simplex") for s in STRATEGIES]
CUT += [(f"ftrl, {loss}, ball", s) for loss in ("hinge", "softmax", "one hot", "multi hinge") for s in STRATEGIES]


@pytest.mark.parametrize(("learner", "mechanism"), CUT, ids=map(" by ".join, CUT))
@settings(max_examples=12)
@given(
    cuts=st.lists(st.tuples(st.integers(0, ROWS), st.booleans()), max_size=8),
    values=st.sampled_from([1, 40, 97, 2**17]),
    data=st.data(),
)
def test_cuts_change_no_bit(learner, mechanism, cuts, values, data):
    """Any run() and step() calls, in blocks of any size, release what one call does, and leave the same state."""
    schedule = data.draw(st.sampled_from(schedules_of(learner, mechanism)))
    one = private(learner, mechanism, schedule)
    X, y = stream(one.problem)
    end, whole = one.run(one.start(), X, y)
    state, shown = one.start(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_VALUES", values)
        for last, by_steps in [*sorted(cuts), (ROWS, False)]:
            while by_steps and state.t < last:
                stop = min(last, one.timetable.due(state.k + 1) or last)
                state, release = one.step(state, X[state.t : stop], y[state.t : stop])
                shown += [release] if release else []
            state, more = one.run(state, X[state.t : last], y[state.t : last])
            shown += more
    assert [release.k for release in shown] == list(range(1, end.k + 1))
    for name, arrays in {"t": "rounds", "noisy": "noisy", "point": "points", "noise_sd": "noise_sd"}.items():
        np.testing.assert_array_equal([getattr(release, name) for release in shown], getattr(whole, arrays))
    same_state(state, end)


def test_blocks_are_blocks(monkeypatch):
    """What the test above cuts: rows and releases go through a pass a few at a time."""
    monkeypatch.setattr(loop, "_VALUES", 80)
    one, sizes = replace(private("qftl, box", "blt", "at")), []
    honest = one._pass

    class Watched:
        forgets, one_row = honest.forgets, honest.one_row

        def __call__(self, at, X, y, rounds, seed, shown):
            sizes.append((len(y), len(rounds)))
            return honest(at, X, y, rounds, seed, shown)

    vars(one)["_pass"] = Watched()
    one.run(one.start(), *stream(one.problem))
    assert sum(rows for rows, _ in sizes) == ROWS
    assert max(rows for rows, _ in sizes) == 20
    assert {releases for _, releases in sizes} == {0, 2}


RESUMED = [("ftrl, softmax, box", strategy, "every 7") for strategy in STRATEGIES]
RESUMED += [("qftl, ball", "blt", "every"), ("qftl, ball", "tree", "geometric"), ("total", "blt", "geometric, endless")]
RESUMED += [("ftl, squared, box", "gaussian", "every 7"), ("ftl, logistic, ball", "gaussian", "geometric")]
RESUMED += [("fading, softmax, ball", "gaussian", "geometric"), ("ewoo, hinge", "exponential", "every, endless")]
RESUMED += [("suffix of igd", "gaussian", "every 7"), ("fading, hinge, ball", "gaussian", "every, endless")]


@pytest.mark.parametrize(("learner", "mechanism", "schedule"), RESUMED)
@pytest.mark.parametrize("cut", [0, 3, 16, 17])
def test_a_stream_goes_on_from_a_file_in_either_pass(learner, mechanism, schedule, cut, tmp_path):
    """Dumped and loaded, in the same pass: the same bits. In the other: the same up to rounding."""
    made = [private(learner, mechanism, schedule, compiled) for compiled in (False, True)]
    X, y = stream(made[0].problem)
    whole = [one.run(one.start(), X, y)[1] for one in made]
    for i, first in enumerate(made):
        state, shown = first.run(first.start(), X[:cut], y[:cut])
        state.dump(tmp_path / "state.npz")
        for j, second in enumerate(made):
            _, rest = second.run(second.load(tmp_path / "state.npz"), X[cut:], y[cut:])
            if i == j:
                same(whole[i], shown + rest)
            np.testing.assert_allclose((shown + rest).points, whole[i].points, rtol=0.0, atol=1e-9)


def test_a_bad_row_of_a_later_block_is_named_and_changes_nothing(monkeypatch):
    """By its number in the call; the state can be used again."""
    monkeypatch.setattr(loop, "_VALUES", 40)
    for compiled in (False, True):
        one = private("qftl, box", "blt", "every", compiled)
        X, y = stream(one.problem)
        X[27, 1] = np.nan
        start = one.start()
        with pytest.raises(
            InvalidInput, match=r"row 27 cannot be used: feature 1 is not a number .*\. Nothing was learnt"
        ):
            one.run(start, X, y)
        assert one.run(start, X[:27], y[:27])[0].t == 27


# What is not of the package goes by the definition.


class MyLogistic(Logistic):
    """Half as steep, and no loss of the package."""

    prox = ScalarLoss.prox

    def value(self, u, y):
        return 0.5 * super().value(u, y)

    def slope(self, u, y):
        return 0.5 * super().slope(u, y)


class MyBall(L2Ball):
    """Flat: the last coordinate is 0."""

    def project(self, x):
        x = np.append(x[:-1], 0.0)
        return super().project(x)


class Lazy(IGD):
    """Learns from every other example."""

    def absorb(self, exact, t, X, y, point):
        for i in range(len(y)):
            if (t + i) % 2:
                exact = super().absorb(exact, t + i, X[i : i + 1], y[i : i + 1], point)
        return exact


class Shy(IGD):
    """Shows half of the point."""

    def decide(self, t, noisy, noise_sd):
        return super().decide(t, noisy, noise_sd) / 2.0


class Late(GIGA):
    """Takes smaller steps."""

    def inertia(self, t):
        return 2.0 * super().inertia(t)


class Timid(FTRL):
    """Halves its gradients."""

    def _gradient(self, v, y, point):
        return super()._gradient(v, y, point) / 2.0


class Weary(QFTL):
    """Forgets the labels."""

    def absorb(self, exact, t, X, y, point):
        return super().absorb(exact, t, X, 0.0 * y, point)


class Biased(EWOO):
    """Forgets the features."""

    def absorb(self, exact, t, X, y, point):
        return super().absorb(exact, t, 0.0 * X, y, point)


class Deaf(FTL):
    """Hears every label as 1."""

    def absorb(self, exact, t, X, y, point):
        return super().absorb(exact, t, X, 0.0 * y + 1.0, point)


@dataclass(frozen=True)
class Wrapped:
    """A learner around another one, of which it shows nothing that it does not change."""

    inner: IGD

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "inner"), name)

    def absorb(self, exact, t, X, y, point):
        return self.inner.absorb(exact, t, -X, y, point)


RIDGED, FREE = problem(Logistic(), L2Ball(0.4), ridge=0.1), problem(Hinge(), L2Ball(0.4))
OWN = {
    "loss": (IGD(replace(RIDGED, loss=MyLogistic())), Gaussian(), Definition),
    "loss without a parent": (GIGA(replace(RIDGED, loss=LogCosh(), label_bound=1.0)), Gaussian(), Definition),
    "set": (IGD(replace(RIDGED, domain=MyBall(0.4))), Gaussian(), Definition),
    "set without a parent": (GIGA(replace(RIDGED, domain=Diagonal(0.4))), Gaussian(), Definition),
    "loss of ftrl": (FTRL(replace(FREE, loss=MyLogistic())), BinaryTree(), Definition),
    "set of ftrl": (FTRL(replace(FREE, domain=Diagonal(0.4))), BLT(), Definition),
    "set of qftl": (QFTL(problem(Squared(), MyBall(0.4))), BinaryTree(), BatchPass),
    "loss of ftl": (FTL(replace(RIDGED, loss=MyLogistic())), Gaussian(), BatchPass),
    "set of ftl": (FTL(replace(RIDGED, domain=MyBall(0.4))), Gaussian(), BatchPass),
    "absorb of ftl": (Deaf(RIDGED), Gaussian(), Definition),
    "loss of ewoo": (EWOO(replace(RIDGED, loss=MyLogistic()), 0.4 * np.eye(4)), Exponential(), Definition),
    "absorb of ewoo": (Biased(RIDGED, 0.4 * np.eye(4)), Exponential(), Definition),
    "absorb": (Lazy(RIDGED), Gaussian(), Definition),
    "decide": (Shy(RIDGED), Gaussian(), Definition),
    "inertia": (Late(RIDGED), Gaussian(), Definition),
    "gradient": (Timid(FREE), BinaryTree(), Definition),
    "absorb of qftl": (Weary(problem(Squared(), L2Ball(0.4))), BinaryTree(), Definition),
    "absorb inside a mean": (averaged(Lazy(RIDGED), horizon=ROWS), Gaussian(), Definition),
    "decide inside a mean": (averaged(Shy(RIDGED), horizon=ROWS), Gaussian(), Definition),
    "wrapped": (Wrapped(IGD(RIDGED)), Gaussian(), Definition),
}


@pytest.mark.parametrize("name", OWN)
def test_what_users_write_is_what_is_run(name):
    """A loss, a set, a verb of a learner: its releases are those of the definition; and bit for bit, if it is run."""
    learner, mechanism, expected = OWN[name]
    fast = Private(believed(learner), mechanism, every(7), BUDGET, ROWS, seed=5)
    assert type(fast._pass) is expected
    X, y = stream(fast.problem, short=True)
    (_, defined), (_, releases) = (one.run(one.start(), X, y) for one in (replace(fast, compiled=False), fast))
    off = 0.0 if expected is Definition else 1e-13
    np.testing.assert_allclose(releases.noisy, defined.noisy, rtol=off, atol=off)
    np.testing.assert_allclose(releases.points, defined.points, rtol=off, atol=off)


@pytest.mark.parametrize("changed", ["absorb", "decide", "absorb inside a mean", "gradient", "absorb of qftl", "loss"])
def test_what_users_write_matters(changed):
    """The planted fault of the test above: with the parent's own verb in its place, the releases are others."""
    learner, mechanism, _ = OWN[changed]
    parents = {
        "absorb": IGD(RIDGED),
        "decide": IGD(RIDGED),
        "absorb inside a mean": averaged(IGD(RIDGED), horizon=ROWS),
        "gradient": FTRL(FREE),
        "absorb of qftl": QFTL(problem(Squared(), L2Ball(0.4))),
        "loss": IGD(RIDGED),
    }
    points = []
    for who in (learner, parents[changed]):
        one = Private(believed(who), mechanism, every(7), BUDGET, ROWS, seed=5)
        points.append(one.run(one.start(), *stream(one.problem, short=True))[1].points)
    assert np.max(np.abs(points[0] - points[1])) > 1e-3


def test_a_mechanism_that_hides_one_row_its_own_way_hides_all_so():
    """A subclass that changes `encode`, and a wrapper that changes `noise`, are asked release by release."""
    one = private("qftl, ball", "blt", "every")
    calibrated = one.calibrated

    class Coarse(type(calibrated)):
        def encode(self, secret, row, k):
            secret, integers = super().encode(secret, row, k)
            return secret, 2 * (integers // 2)

    class Silent:
        def __getattr__(self, name):
            return getattr(calibrated, name)

        def noise(self, seed, k, count):
            return [0 * rows for rows in calibrated.noise(seed, k, count)]

    coarse = object.__new__(Coarse)
    vars(coarse).update(vars(calibrated))
    for changed in (coarse, Silent()):
        ones = [replace(one, compiled=compiled) for compiled in (False, True)]
        for each in ones:
            vars(each)["calibrated"] = changed
            assert type(each._pass) is Definition
        X, y = stream(one.problem, short=True)
        (_, defined), (_, releases) = (each.run(each.start(), X, y) for each in ones)
        same(defined, releases)
        assert np.max(np.abs(defined.noisy - one.run(one.start(), X, y)[1].noisy)) > 0.0


class Quiet(IGD):
    """Learns nothing; its certificate could say so."""

    def absorb(self, exact, t, X, y, point):
        return exact


class Flat(Problem):
    """Gradients of a thousandth."""

    def data_gradient(self, x, v, y):
        return 1e-3 * super().data_gradient(x, v, y)


class Louder(BLTCoder):
    """Another strategy, by the verbs of a coder."""

    def encode(self, secret, row, k):
        return secret, 2.0 * row[None, :]


def strangers():
    """A learner, a problem inside one, a learner inside one, a mechanism and a strategy of another's."""
    flat = Flat(RIDGED.loss, RIDGED.domain, RIDGED.dimension, ridge=RIDGED.ridge)
    yield Private(believed(Quiet(RIDGED)), Gaussian(), every(1), BUDGET, ROWS, seed=1)
    yield Private(GIGA(flat), Gaussian(), every(1), BUDGET, ROWS, seed=1)
    yield Private(believed(averaged(Quiet(RIDGED), horizon=ROWS)), Gaussian(), every(1), BUDGET, ROWS, seed=1)
    for mine, theirs in (("noise", "calibrated"), ("encode", "coder")):
        one = Private(VectorSum(RIDGED), BLT(), every(1), BUDGET, ROWS, seed=1)
        if theirs == "coder":
            one.calibrated.coder = Louder(*astuple(one.calibrated.coder)[:3])
        else:
            changed = {mine: lambda self, *args: [], "__module__": "mine"}
            one.calibrated.__class__ = type("Mine", (type(one.calibrated),), changed)
        yield one


def test_what_another_wrote_goes_by_the_definition():
    """A compiled loop knows only its own classes; a subclass that changes nothing pays for it, too."""
    for one in strangers():
        assert type(one._pass) is Definition
        assert not one._pass.forgets
    one = Private(IGD(RIDGED), Gaussian(), every(1), BUDGET, ROWS, seed=1)
    assert type(one._pass) is IteratePass


# The same numbers in another shape.

FORMS = [("igd, logistic, ball", "gaussian"), ("qftl, box", "blt")]
FORMS += [("ftrl, softmax, ball", "tree"), ("total", "blt")]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("learner", "mechanism"), FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_single_precision_is_read_as_it_is(learner, mechanism, compiled, seed):
    """Features and labels of float32 release what the same numbers release as float64, bit for bit."""
    one = private(learner, mechanism, "every 7", compiled)
    X, y = (array.astype(np.float32) for array in stream(one.problem, seed))
    _, expected = one.run(one.start(), X.astype(float), y.astype(float))
    for rows, labels in ((X, y), (X, y.astype(float)), (np.asfortranarray(X), y), (X.astype(float), y)):
        same(expected, one.run(one.start(), rows, labels)[1])


@pytest.mark.parametrize(("learner", "mechanism"), FORMS)
@pytest.mark.parametrize("values", [1, 60, 2**17])
def test_where_numbers_lie_changes_nothing(learner, mechanism, values, tmp_path, monkeypatch):
    """In columns, in a file, in every other row, backwards, read-only, big-endian or in a list."""
    monkeypatch.setattr(loop, "_VALUES", values)
    one = private(learner, mechanism, "every 7")
    X, y = stream(one.problem)
    _, expected = one.run(one.start(), X, y)
    mapped = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    spread, backwards, frozen = np.repeat(X, 2, axis=0)[::2], X[::-1, ::-1].copy()[::-1, ::-1], X.copy()
    frozen.setflags(write=False)
    forms = [np.asfortranarray(X), mapped, np.memmap(tmp_path / "rows", dtype=np.float64, mode="r", shape=X.shape)]
    forms += [spread, backwards, frozen, X.astype(">f8"), X.tolist(), np.column_stack([X, X])[:, : X.shape[1]]]
    for rows in forms:
        same(expected, one.run(one.start(), rows, y)[1])
        same(expected, one.run(one.start(), rows, np.repeat(y, 3)[::3])[1])


def test_a_neighbour_in_single_precision_is_within_its_bounds():
    """The compiled door and the definition's both measure float32 rows in double precision."""
    one = private_sum(54, 1.0, BUDGET, 10)
    X = np.random.default_rng(1).normal(size=(2000, 54)).astype(np.float32)
    for compiled in (False, True):
        clip = clipping_pass.clip_for(one.problem).dense if compiled else one.problem.clip_block
        V, _ = clip(X, np.zeros(len(X)))
        assert V.dtype == np.float64
        assert np.max(np.sum(np.square(V, dtype=np.longdouble), axis=1)) <= 1.0
