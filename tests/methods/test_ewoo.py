"""EWOO and experts: what one example does to the losses of candidates, and that the certificate bounds it."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from instances import LOSSES, SETS
from kernel.learners.cases import VECTOR_LOSSES
from taciturn import (
    Absolute,
    Box,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Private,
    Problem,
    ScalarLoss,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
    at,
    every,
)
from taciturn.kernel.noise.sampling import GUMBEL_STEP
from taciturn.kernel.problem.scalar_loss import Smoothed
from taciturn.kernel.stream.schedule import Timetable
from taciturn.methods import ewoo as weights
from taciturn.methods.ewoo import EWOO, experts
from taciturn.methods.exponential import Exponential
from taciturn.methods.nets import grid

pytestmark = pytest.mark.privacy

NOWHERE = np.zeros(0)
VARIANTS = {
    "replace": {"neighbours": "replace"},
    "zero-out": {"neighbours": "zero-out"},
    "replace, intercept": {"neighbours": "replace", "intercept": 0.75},
}


# The search for two neighbouring streams whose rows differ by a larger range than certified.


def legal(problem: Problem, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels = np.where(raw[:, -1] < 0.0, -1.0, 1.0) if problem.loss.labels == "sign" else raw[:, -1]
    return problem.clip(raw[:, :-1], labels)


def moved(learner: EWOO, raw: np.ndarray, i: int) -> np.ndarray:
    """By what the rows of two runs differ. Rows of `raw` are features and a label; the last one replaces row `i`."""
    V, y = legal(learner.problem, raw)
    before = learner.absorb(learner.start(), 0, V[:i], y[:i], NOWHERE)
    one = learner.absorb(before, i, V[i : i + 1], y[i : i + 1], NOWHERE)
    other = before  # no data term at all: the ridge is counted by rounds
    if learner.problem.neighbours == "replace":
        other = learner.absorb(before, i, V[-1:], y[-1:], NOWHERE)
    ends = [learner.absorb(x, i + 1, V[i + 1 : -1], y[i + 1 : -1], NOWHERE) for x in (one, other)]
    rows = [learner.statistic(end, len(raw) - 1)[1] for end in ends]
    return rows[0] - rows[1]


def search(learner: EWOO, seed: int, certified: float | None = None, tries: int = 30, climbs: int = 60) -> float:
    """The largest share of the certificate used by random pairs, some of them mirrored, and by a climb from there."""
    rng, problem = np.random.default_rng(seed), learner.problem
    bound = float(learner.certificate.at(3)) if certified is None else certified
    best, raw = -1.0, None
    for attempt in range(tries):
        trial = rng.normal(size=(4, problem.dimension + 1)) * problem.feature_bound
        trial[:, -1] = problem.label_bound * rng.choice([-1.0, 1.0], 4)
        if attempt % 3:
            trial[-1, :-1] = -trial[1, :-1]  # mirrored
        if (result := float(np.ptp(moved(learner, trial, 1)))) > best:
            best, raw = result, trial
    step = 0.5 * problem.feature_bound
    for _ in range(climbs):
        trial = raw.copy()
        row, column = rng.choice([1, 3]), rng.integers(0, raw.shape[1])
        trial[row, column] += step * rng.normal() * (3.0 if column == raw.shape[1] - 1 else 1.0)
        if (result := float(np.ptp(moved(learner, trial, 1)))) > best:
            best, raw = result, trial
        else:
            step *= 0.97
    return best / bound


@lru_cache
def buildable() -> dict[str, EWOO]:
    """EWOO on every loss, bounded set and relation."""
    built = {}
    for loss, make in LOSSES.items():
        for domain, form in SETS.items():
            for variant, more in VARIANTS.items():
                size = 2 + ("intercept" in more)
                if math.isfinite(form(size).radius_in(size)):
                    problem = Problem(make(), form(size), 2, 1.3, label_bound=1.5, ridge=0.2, **more)
                    built[f"{loss}, {domain}, {variant}"] = EWOO(problem, grid(form(size), size, 4))
    for loss, (make, size) in VECTOR_LOSSES.items():
        for variant in ("replace", "zero-out"):
            problem = Problem(make(), L2Ball(0.8), size, label_bound=1.5, **VARIANTS[variant])
            built[f"{loss}, l2 ball, {variant}"] = EWOO(problem, grid(L2Ball(0.8), size, 3))
    for variant in ("replace", "zero-out"):
        built[f"advice, simplex, {variant}"] = experts(3, 0.7, **VARIANTS[variant])
        smoothed = Problem(Smoothed(Hinge(), 0.5), L2Ball(1.0), 2, **VARIANTS[variant])
        built[f"smoothed, l2 ball, {variant}"] = EWOO(smoothed, grid(L2Ball(1.0), 2, 4))
        far = Problem(Squared(), L2Ball(3.0), 2, label_bound=1.5, **VARIANTS[variant])
        built[f"squared, far from 0, {variant}"] = EWOO(far, grid(L2Ball(0.1), 2, 4) + np.array([2.5, 0.0]))
    return built


BUILT = buildable()
GROUPS = sorted({name.split(",")[0] for name in BUILT})


ALWAYS = {"linear", "hinge", "logistic", "squared", "two outputs", "advice", "smoothed"}


@pytest.mark.parametrize("group", [pytest.param(g, marks=() if g in ALWAYS else pytest.mark.slow) for g in GROUPS])
def test_no_neighbour_exceeds_the_certificate(group):
    """A random search, then a climb, over both examples finds no violation, on any set and relation."""
    for name, learner in BUILT.items():
        if name.split(",")[0] == group:
            assert search(learner, seed=len(name)) <= 1.0, name


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("linear, l2 ball, replace", 0.99),
        ("linear, l2 ball, zero-out", 0.99),
        ("hinge, l2 ball, replace", 0.99),
        ("logistic, l2 ball, replace", 0.99),
        ("advice, simplex, replace", 0.99),
        ("advice, simplex, zero-out", 0.99),
        ("squared, far from 0, replace", 0.9),
        ("linear, box, replace, intercept", 0.99),
    ],
)
def test_the_search_comes_near(name, least):
    """Where the certificate is nearly tight the search finds it so: its silence elsewhere means something."""
    assert search(BUILT[name], seed=1, tries=200, climbs=400) > least


PAIRS = {
    "linear": (Linear(), [[1.0, 1.0], [1.0, -1.0]], 4.0, 2.0),
    "logistic": (Logistic(), [[1.0, 1.0], [1.0, -1.0]], 2.0, 1.0),
    "hinge": (Hinge(), [[1.0, 1.0], [1.0, -1.0]], 4.0, 2.0),
    "absolute": (Absolute(), [[1.0, 1.0], [1.0, -1.0]], 4.0, 2.0),
    "squared": (Squared(), [[1.0, 1.0], [1.0, -1.0]], 4.0, 2.0),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("changed", [0, 5])
def test_the_certificate_is_reached(name, changed):
    """On the net {-1, 1} a turned label uses at least 99 % of `min(2W, Gd·D)`, a silenced example of W, and no more."""
    loss, pair, replaced, silenced = PAIRS[name]
    for neighbours, expected in (("replace", replaced), ("zero-out", silenced)):
        problem = Problem(loss, Box(-1.0, 1.0), 1, label_bound=1.0, ridge=0.3, neighbours=neighbours)
        learner = EWOO(problem, [[-1.0], [1.0]])
        raw = np.array([[0.3, 1.0]] * changed + [pair[0]] + [[-0.8, 1.0]] * (5 - changed) + [pair[1]])
        used = np.ptp(moved(learner, raw, changed)) / float(learner.certificate.at(6))
        assert 0.99 < used <= 1.0
        assert float(learner.certificate.at(6)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("count", [2, 3, 50])
def test_the_experts_certificate_is_reached(count):
    """Losses (0, M, …) and (M, 0, …): 2M if replaced, M if zeroed out, however many experts."""
    one, other = np.full(count, 0.25), np.full(count, 0.25)
    one[:2], other[:2] = (0.0, 0.5), (0.5, 0.0)
    raw = np.column_stack([[one, other], np.zeros(2)])
    for neighbours, expected in (("replace", 1.0), ("zero-out", 0.5)):
        learner = experts(count, 0.5, neighbours=neighbours)
        assert np.ptp(moved(learner, raw, 0)) == pytest.approx(expected, rel=1e-6)
        assert expected <= float(learner.certificate.at(1)) < expected * (1.0 + 1e-5)


# Planted faults: the same search must find each of them.


@pytest.mark.parametrize("name", ["advice, simplex, replace", "linear, l2 ball, replace", "hinge, l1 ball, replace"])
def test_the_sup_norm_is_caught(name):
    """The largest change of one candidate's losses, W, is half the range, and the search finds twice as much."""
    learner = BUILT[name]
    assert search(learner, seed=1, certified=learner.variation, tries=100, climbs=200) > 1.9


def test_the_sup_norm_is_what_it_is_called():
    """Of the tight pair every loss changes by at most W, and yet the race between two candidates by 2W."""
    change = moved(experts(2), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), 0)
    assert np.max(np.abs(change)) == pytest.approx(1.0, rel=1e-6)
    assert np.ptp(change) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("name", ["logistic, l2 ball, replace", "huber, l1 ball, zero-out"])
def test_half_the_certificate_is_caught(name):
    """A certificate of half the value is a violation the search finds."""
    learner = BUILT[name]
    half = float(learner.certificate.at(1)) / 2.0
    assert search(learner, seed=2, certified=half, tries=100, climbs=200) > 1.8


def test_a_missing_intercept_is_caught():
    """The bound of features alone, without the constant, is passed."""
    problem = Problem(Linear(), Box(-1.0, 1.0), 1, label_bound=1.0, intercept=1.0)
    learner = EWOO(problem, [[-1.0, -1.0], [1.0, 1.0]])
    forgotten = EWOO(replace(problem, dimension=2, intercept=0.0), [[-1.0, -1.0], [1.0, 1.0]])
    assert search(learner, seed=3, certified=float(forgotten.certificate.at(1))) > 1.35


@dataclass(frozen=True)
class Liar(ScalarLoss):
    """A loss that varies ten times as much as it says, or is not a number at all."""

    value_of: float = 10.0
    curvature: ClassVar[float] = math.inf

    def value(self, u, y):
        return np.where(np.abs(u) > 1e-9, self.value_of * y * u, 0.0)

    def slope(self, u, y):
        return y + 0.0 * u

    def slope_bound(self, reach, label_bound):
        return label_bound

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return math.inf


@pytest.mark.parametrize("value_of", [10.0, math.nan, math.inf, 1e308])
def test_a_loss_that_lies_about_its_variation_is_cut_to_it(value_of):
    """Each example's losses are clipped to W above the least, whatever the loss returns, so 2W holds all the same."""
    learner = EWOO(Problem(Liar(value_of), L2Ball(1.0), 2, label_bound=1.0), grid(L2Ball(1.0), 2, 4))
    with np.errstate(all="ignore"):
        assert search(learner, seed=4) <= 1.0


# A whole stream, from examples to the exact law of everything published.


def stream_delta(learner: EWOO, certified: float | None, releases: int, privacy: Privacy) -> float:
    """The exact delta of all releases together, if the first example's losses turn from (0, 1) to (1, 0)."""
    certificate = learner.certificate
    if certified is not None:
        certificate = replace(certificate, bound=lambda t: np.full_like(t, certified))
    made = Exponential().calibrate(certificate, Timetable(every(1), releases), 2, privacy, "exact")
    logs = []
    for first in ([0.0, 1.0], [1.0, 0.0]):
        V, y = learner.problem.clip([first] + [[0.4, 0.3]] * (releases - 1), np.zeros(releases))
        exact, laws = learner.start(), []
        for t in range(releases):
            exact, row = learner.statistic(learner.absorb(exact, t, V[t : t + 1], y[t : t + 1], NOWHERE), t + 1)
            laws.append(log_softmax(made.encode({}, row, t + 1)[1] * GUMBEL_STEP))
        logs.append(
            [sum(law[j] for law, j in zip(laws, path, strict=True)) for path in product((0, 1), repeat=releases)]
        )
    one, other = np.exp(logs[0]), np.exp(logs[1])
    return float(np.sum(np.maximum(0.0, one - math.exp(privacy.epsilon) * other)))


@pytest.mark.parametrize("releases", [1, 3, 12])
def test_a_whole_stream_keeps_its_budget(releases):
    """The change affects every later release, and all of them together stay within (epsilon, delta)."""
    assert stream_delta(experts(2), None, releases, Privacy(2.0, 1e-3)) <= 1e-3


def test_a_whole_stream_under_the_sup_norm_slip_does_not():
    """Planted: certified by M instead of 2M, twelve releases give away far more."""
    assert stream_delta(experts(2), 1.0, 12, Privacy(2.0, 1e-3)) > 0.05


# Sums.


@pytest.mark.parametrize("name", ["squared, l2 ball, replace", "logistic, simplex, zero-out", "huber, box, replace"])
def test_two_worlds_differ_by_the_changed_example_and_nothing_else(name):
    """Whatever the other examples are, and wherever it comes, rows differ by the same, to the last bit."""
    learner, rng = BUILT[name], np.random.default_rng(5)
    pair = rng.normal(size=(2, learner.problem.dimension + 1))
    first = moved(learner, pair, 0)
    for count in (3, 40):
        for i in (0, count):
            others = rng.normal(size=(count, learner.problem.dimension + 1)) * 50.0
            raw = np.concatenate([others[:i], pair[:1], others[i:], pair[1:]])
            assert np.array_equal(moved(learner, raw, i), first)


@pytest.mark.parametrize(
    "name", ["squared, l2 ball, replace", "advice, simplex, replace", "smoothed, l2 ball, replace"]
)
def test_rows_are_cumulative_losses(name):
    """Up to a constant and half a step a round, the row is `Σ f_i(x_j)`, ridge included."""
    learner, rng = BUILT[name], np.random.default_rng(6)
    V, y = legal(learner.problem, rng.normal(size=(30, learner.problem.dimension + 1)))
    _, row = learner.statistic(learner.absorb(learner.start(), 0, V, y, NOWHERE), 30)
    if isinstance(learner.problem.loss, Smoothed):
        sums = [
            sum(float(learner.problem.values(np.array(x), v[None], label)[0]) for v, label in zip(V, y, strict=True))
            for x in learner.points
        ]
    else:
        sums = [float(np.sum(learner.problem.values(np.array(x), V, y))) for x in learner.points]
    assert np.max(np.abs((row - row[0]) - (np.array(sums) - sums[0]))) <= 30 * 2.0 * learner.step


def test_sums_stay_exact_to_the_last_round():
    """After 2^28 examples of the largest loss, row and ridge are below 2^53 steps, so that every row is exact."""
    for learner in BUILT.values():
        most = learner.most_steps + int(np.max(learner.ridge_steps))
        assert most * weights.MOST < 2**53
        assert np.frexp(learner.step)[0] == 0.5
        end = {"losses": np.full(learner.statistic_size, learner.most_steps * weights.MOST, dtype=np.int64)}
        _, row = learner.statistic(end, weights.MOST)
        assert [int(x / learner.step) for x in row] == [
            learner.most_steps * weights.MOST + weights.MOST * int(r) for r in learner.ridge_steps
        ]
        assert np.max(np.abs(row)) <= learner.certificate.magnitude


def test_rounding_to_steps_is_part_of_the_certificate():
    """The bound exceeds its formula by rounding alone: more than nothing, less than a millionth of loss and ridge."""
    for name, learner in BUILT.items():
        bound, plain = float(learner.certificate.at(1)), float(learner.certificate.formula)
        assert bound <= plain * (1.0 + 1e-4) + 1e-5 * float(np.max(learner._ridge_term)), name
        exact = learner.variation
        if learner.problem.neighbours == "replace":
            exact = min(2.0 * exact, learner._gradients_apart * learner._diameter)
        assert bound > exact, name


@dataclass(frozen=True)
class Tilted:
    """`raised + bend·x² + y·x` on the net {-1, 0, 1}: examples differ by a line, and losses vary by much more."""

    bend: float
    raised: float
    labels: ClassVar[str] = "real"

    def value(self, x, v, y):
        return self.raised + float(self.bend * x[0] ** 2 + y * x[0])

    def gradient(self, x, v, y):
        return 2.0 * self.bend * x + y

    def lipschitz(self, feature_bound, radius, label_bound):
        return 2.0 * self.bend * radius + label_bound

    def smoothness(self, feature_bound):
        return 2.0 * self.bend

    def gradient_diameter(self, feature_bound, radius, label_bound):
        return 2.0 * label_bound

    def variation(self, points, feature_bound, label_bound):
        return self.bend + label_bound


@pytest.mark.parametrize(("raised", "unit"), [(0.0, 2.0**-22), (2.0**40, 2.0**-12)])
def test_rounding_reaches_its_share_of_the_certificate(raised, unit, monkeypatch):
    """Where Gd·D binds, losses at half steps, or at half a float's spacing from 2⁴⁰, move the range by two of these.

    Labels are ±(1 + unit/2): at both ends of the net the one example's loss is rounded up and the other's down.
    """
    monkeypatch.setattr(weights, "_ACCURATE", (Tilted,))
    problem = Problem(Tilted(2.0 + unit, raised), Box(-1.0, 1.0), 1, label_bound=1.0 + unit / 2.0)
    learner = EWOO(problem, [[-1.0], [0.0], [1.0]])
    apart, bound = 2.0 * problem.label_bound * 2.0, float(learner.certificate.at(1))
    assert learner.step == 2.0**-22
    assert apart < bound < 2.0 * learner.variation
    measured = float(np.ptp(moved(learner, np.array([[1.0, 9.0], [1.0, -9.0]]), 0)))
    assert measured == apart + 2.0 * unit
    assert measured <= bound


class Deviance(Squared):
    """Squared loss and a large number that only the label knows: its rounding drowns small differences."""

    def value(self, u, y):
        return 0.5 * (u - y) ** 2 + 2e13 * (1.0 - y * y)


@pytest.mark.privacy
def test_a_loss_of_one_s_own_is_certified_by_what_it_is_cut_to():
    """Its gradients would give 0.0026, and rounding makes it 0.004: only the cut to W holds whatever it computes."""
    learner = EWOO(Problem(Deviance(), WholeSpace(), 2, label_bound=1.0), [[1.0, 0.0], [0.999, 0.0]])
    result = search(learner, seed=3)
    assert result <= 1.0
    assert float(learner.certificate.at(1)) > 1.5 * learner._gradients_apart * learner._diameter


def test_nothing_is_certified_beyond_the_exact_sums():
    """At 2^28 examples there is a bound, at one more there is none, and a horizon there is rejected."""
    learner = experts(2)
    assert np.isfinite(learner.certificate.at([1, weights.MOST])).all()
    assert learner.certificate.at(weights.MOST + 1) == math.inf
    Private(learner, Exponential(), at([weights.MOST]), Privacy(1.0, 1e-6))
    with pytest.raises(Unprovable, match="must be at most 268,435,456"):
        Private(learner, Exponential(), at([weights.MOST + 1]), Privacy(1.0, 1e-6))


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_the_cut_of_a_block_changes_no_bit(cuts):
    """One call or many, the exact state is the same."""
    for name in ("logistic, l2 ball, replace", "distance, l2 ball, replace"):
        learner, rng = BUILT[name], np.random.default_rng(7)
        V, y = legal(learner.problem, rng.normal(size=(sum(cuts), learner.problem.dimension + 1)))
        whole = learner.absorb(learner.start(), 0, V, y, NOWHERE)["losses"]
        exact, t = learner.start(), 0
        for end in np.cumsum(cuts):
            exact, t = learner.absorb(exact, t, V[t:end].copy(), y[t:end].copy(), NOWHERE), end
        assert np.array_equal(exact["losses"], whole)


def test_the_released_number_decides():
    """The point is the candidate of that number; without noise, the one with the least losses."""
    learner = EWOO(Problem(Hinge(), L2Ball(1.0), 1), [[-0.5], [0.0], [1.0]])
    assert [learner.decide(1, np.array([float(j)]), 0.3).tolist() for j in range(3)] == [[-0.5], [0.0], [1.0]]
    assert learner.decide(1, np.array([3.0, 1.0, 2.0]), 0.0).tolist() == [0.0]


# Settings.


def test_points_are_plain_settings():
    """Lists, arrays and tuples are the same candidates: equal learners, equal hashes, a short repr."""
    problem = Problem(Hinge(), L2Ball(1.0), 2)
    net = grid(L2Ball(1.0), 2, 3)
    one, other = EWOO(problem, net), EWOO(problem, net.tolist())
    assert one == other
    assert hash(one) == hash(other)
    assert isinstance(one.points, tuple)
    assert repr(one).startswith(f"EWOO({len(net)} points, Problem(")
    assert one.statistic_size == len(net)
    assert one != EWOO(problem, net[1:])
    assert one.certificate == other.certificate
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.certificate.at(1) == one.certificate.at(1)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0.0, 0.0]], "two or more rows of 2"),
        ([0.0, 1.0], "two or more rows of 2"),
        ([[0.0], [1.0]], "two or more rows of 2"),
        ([[0.0, math.nan], [1.0, 0.0]], "finite numbers"),
        ([[0.0, 0.0], [1.0]], "two or more rows of 2"),
        ("points", "two or more rows of 2"),
        ([[0.0, 0.0], [2.0, 0.0]], "point 1 lies outside L2Ball"),
        ([[0.5, 0.0], [0.5, 0.0]], "nothing to choose"),
    ],
)
def test_what_cannot_be_candidates_is_rejected(points, message):
    """Each with what to do instead."""
    with pytest.raises(InvalidInput, match=message):
        EWOO(Problem(Hinge(), L2Ball(1.0), 2), points)


def test_losses_without_a_bound_are_rejected():
    """A loss of unbounded slope has no certificate, on any net."""

    class Steep(Linear):
        def slope_bound(self, reach, label_bound):
            return math.inf

    class Nowhere(Linear):
        def value(self, u, y):
            return math.nan * u

    for loss in (Steep(), Nowhere()):
        with pytest.raises(Unprovable, match="finite slope_bound"):
            EWOO(Problem(loss, L2Ball(1.0), 1, label_bound=1.0), [[-1.0], [1.0]])


def test_unbounded_domains_are_fine_for_a_finite_net():
    """Only the candidates count: squared loss on the whole space is certified on a net of it."""
    learner = EWOO(Problem(Squared(), WholeSpace(), 1, label_bound=1.0), [[-2.0], [2.0]])
    assert float(learner.certificate.at(1)) == pytest.approx(9.0, rel=1e-5)  # 2W = 2·½·3², less than Gd·D


def test_slopes_that_belie_their_bound_are_rejected():
    """As for every learner."""

    class Steeper(Linear):
        def slope(self, u, y):
            return 2.0 * y + 0.0 * u

    with pytest.raises(Unprovable, match="slope_bound"):
        EWOO(Problem(Steeper(), L2Ball(1.0), 1, label_bound=1.0), [[-1.0], [1.0]])


# Experts.


def test_experts_are_bounded_at_the_door():
    """Losses within bounds pass unchanged; others are cut, and rows without sense are legal examples."""
    learner = experts(3, 2.0, on_bad="zero")
    legal_rows = np.array([[0.0, 2.0, 1.0], [2.0, 2.0, 2.0]])
    V, y = learner.problem.clip(legal_rows, [0.0, 5.0])
    assert np.array_equal(V, legal_rows)
    wild = [[-7.0, 1e300, 0.1], [math.nan, 0.0, 1.0], [math.inf, 0.0, 0.0]]
    V, y = learner.problem.clip(wild, [0.0, 0.0, 0.0])
    exact = learner.absorb(learner.start(), 0, V, y, NOWHERE)
    _, row = learner.statistic(exact, 3)
    assert np.ptp(row) <= 2.0 * (1.0 + 1e-6)


def test_experts_need_two():
    """And a positive bound."""
    with pytest.raises(InvalidInput, match="count must be an integer, 2 or more"):
        experts(1)
    with pytest.raises(InvalidInput, match="loss_bound must be positive"):
        experts(3, 0.0)


def play(private: Private, X: np.ndarray) -> tuple[float, float]:
    """Average regret of the released experts on the next example, and the mean excess of their losses so far."""
    _, releases = private.run(private.start(), X, np.zeros(len(X)))
    chosen = np.array([int(release.noisy[0]) for release in releases])
    sums = np.cumsum(X, axis=0)
    excess = sums[np.arange(len(X)), chosen] - sums.min(axis=1)
    played = X[np.arange(1, len(X)), chosen[:-1]]
    return float(np.mean(played) - np.mean(X, axis=0).min()), float(np.mean(excess))


def test_regret_shrinks_and_the_race_costs_what_it_should():
    """Ten experts, one better: average regret falls with T; winners' losses exceed the least by ≤ ln N/lam on average.

    (The expected excess under P ∝ exp(-lam·L) is at most ln N/lam: `Σ P·lam·(L - min L) ≤ ln N`, as entropy is at most
    ln N and the partition sum at least 1.)
    """
    regrets = []
    for horizon in (300, 3000):
        X = (np.random.default_rng(9).random((horizon, 10)) < np.array([0.3] + [0.6] * 9)).astype(float)
        private = Private(experts(10), Exponential(), every(1), Privacy(2.0, 1e-6), horizon, seed=1)
        regret, excess = play(private, X)
        lam = math.pi / math.sqrt(6.0) / private.calibrated.noise_sd(1)
        assert 0.01 * math.log(10) / lam < excess < math.log(10) / lam
        regrets.append(regret)
    assert regrets[1] < 0.5 * regrets[0] < 0.15


def test_it_learns_a_classifier():
    """On a net of the disc, late releases point where the data does."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(4000, 2))
    y = np.where(X @ [1.0, -1.0] > 0.0, 1.0, -1.0)
    problem = Problem(Hinge(), L2Ball(3.0), 2, feature_bound=2.0)
    learner = EWOO(problem, grid(L2Ball(3.0), 2, 7))
    private = Private(learner, Exponential(), at([1000, 2000, 4000]), Privacy(1.0, 1e-6), seed=2)
    _, releases = private.run(private.start(), X, y)
    accuracy = np.mean(np.sign(problem.predict(releases[-1].point, X)) == y)
    assert accuracy > 0.9
    assert learner.problem.domain.contains(releases[-1].point)


def test_zero_out_halves_the_certificate_and_so_the_noise():
    """The relation is the problem's, and printed with the guarantee."""
    replaced, silenced = (experts(5, neighbours=relation) for relation in ("replace", "zero-out"))
    privates = [Private(e, Exponential(), every(1), Privacy(1.0, 1e-6), 100) for e in (replaced, silenced)]
    ratio = privates[0].calibrated.noise_sd(1) / privates[1].calibrated.noise_sd(1)
    assert ratio == pytest.approx(2.0, rel=1e-6)
    assert "zeroing out" in str(privates[1].guarantee)


def test_the_simplex_has_a_net_too():
    """Experts may be mixed: candidates inside the simplex, certified as the vertices are."""
    problem = replace(experts(3).problem)
    learner = EWOO(problem, grid(Simplex(), 3, 5))
    assert learner.statistic_size > 10
    assert float(learner.certificate.at(1)) == pytest.approx(2.0, rel=1e-5)
    assert search(learner, seed=11) <= 1.0
