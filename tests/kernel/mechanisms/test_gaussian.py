"""The Gaussian mechanism: what every release costs, recomputed apart, and that its integers stay in range."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn import (
    GIGA,
    IGD,
    Exponential,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Private,
    Problem,
    Unprovable,
    WholeSpace,
    at,
    every,
    experts,
    geometric,
    pgiga,
    pigd,
    pocp,
)
from taciturn.calibration import paper
from taciturn.calibration.mechanisms import Gaussian as Mechanism
from taciturn.kernel.accounting.cost import Cost, total
from taciturn.kernel.noise.sampling import sampling_cost
from taciturn.kernel.stream.protocols import Certificate
from taciturn.kernel.stream.schedule import Timetable

pytestmark = pytest.mark.privacy

SHAPES = ["S", "S^(2/3)", "S^(1/2)"]
BUDGET = Privacy(1.0, 1e-6)


def logistic(dimension: int = 3, ridge: float = 0.1) -> Problem:
    return Problem(Logistic(), L2Ball(1.0), dimension, ridge=ridge)


def certificate_of(bound, magnitude: float = 1.0, **more) -> Certificate:
    return Certificate("l2", "tail", "by hand", bound, magnitude, "moves every later row", "by hand", **more)


def levels(calibrated, releases) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations and lattice steps of these releases."""
    both = np.array([calibrated.levels(int(k)) for k in releases])
    return both[:, 0], both[:, 1]


def costs(private, releases) -> np.ndarray:
    """`S'²/sigma²` of each release, with `S' = S + sqrt(size)·g`, computed here and nowhere else."""
    sd, step = levels(private.calibrated, releases)
    moved = private.learner.certificate.at([private.timetable.due(int(k)) for k in releases])
    moved = np.where(moved > 0.0, moved + math.sqrt(private.learner.problem.size) * step, 0.0)
    return np.divide(moved, sd, out=np.zeros_like(moved), where=moved > 0.0) ** 2


PLANS = st.fixed_dictionaries(
    {
        "epsilon": st.floats(-3.0, 1.3).map(lambda e: 10.0**e),
        "delta": st.sampled_from([1e-9, 1e-6, 1e-2]),
        "horizon": st.integers(1, 3000),
        "dimension": st.sampled_from([1, 2, 10, 300]),
        "ridge": st.floats(-3.0, 2.0).map(lambda e: 10.0**e),
        "radius": st.sampled_from([0.01, 1.0, 100.0]),
        "shape": st.sampled_from(SHAPES),
        "schedule": st.sampled_from([every(1), every(7), geometric(1.3), at([1, 5, 2000])]),
        "learner": st.sampled_from([IGD, GIGA, lambda p: GIGA(p, "printed")]),
    }
)


def planned(plan: dict):
    problem = Problem(Logistic(), L2Ball(plan["radius"]), plan["dimension"], ridge=plan["ridge"])
    budget = Privacy(plan["epsilon"], plan["delta"])
    return pocp(plan["learner"](problem), budget, plan["horizon"], shape=plan["shape"], schedule=plan["schedule"])


@settings(max_examples=80)
@given(plan=PLANS)
def test_everything_published_fits_the_budget(plan):
    """The squares and the sampler's cost fit the budget and leave less than a hundredth of it unused."""
    private = planned(plan)
    spent = math.fsum(costs(private, range(1, len(private.timetable.rounds) + 1)))
    draws = len(private.timetable.rounds) * private.learner.statistic_size
    assert total([Cost(mu_squared=spent), sampling_cost(draws, 0.0)]).within(private.privacy)
    assert private.guarantee.delivered.within(private.privacy)
    assert private.guarantee.holds
    if private.learner.certificate.at(private.timetable.rounds[-1]) > 0.0:
        assert private.guarantee.epsilon > 0.99 * private.privacy.epsilon


@settings(max_examples=80)
@given(plan=PLANS)
def test_the_stated_cost_is_the_recomputed_one(plan):
    """What the first k releases are said to cost never falls, never lies below their sum, and hardly above it."""
    private = planned(plan)
    count = len(private.timetable.rounds)
    sums = np.cumsum(costs(private, range(1, count + 1)))
    stated = np.array([private.calibrated.cost(k).mu_squared for k in range(1, count + 1)])
    assert (np.diff(stated) >= 0.0).all()
    assert (stated >= sums).all()
    assert (stated <= sums * (1.0 + 1e-9)).all()
    assert private.calibrated.cost(0) == Cost()
    assert private.calibrated.cost(None) == private.calibrated.cost(count)
    assert private.calibrated.cost(count).extra_epsilon == pytest.approx(
        2.0**-45 * count * private.learner.statistic_size, rel=1e-9, abs=0.0
    )


@settings(max_examples=80)
@given(plan=PLANS)
def test_every_integer_is_in_range(plan):
    """Rows are below 2^52 steps, steps are powers of two, and the noise lies where the sampler is proven."""
    private = planned(plan)
    releases = range(1, len(private.timetable.rounds) + 1)
    sd, step = levels(private.calibrated, releases)
    assert (np.frexp(step)[0] == 0.5).all()
    assert private.learner.certificate.magnitude < 2.0**52 * np.min(step)
    noisy = sd > 0.0
    assert (sd[noisy] >= 2.0**25 * step[noisy]).all()
    assert (sd[noisy] <= 2.0**40 * step[noisy]).all()
    assert (np.abs(private.learner.certificate.magnitude / step) + 13.0 * sd / step < 2.0**62).all()


@pytest.mark.parametrize(("dimension", "epsilon"), [(1000, 1e-3), (10, 1e-3)])
def test_every_integer_is_in_range_over_long_horizons(dimension, epsilon):
    """With a small budget, a million rounds and many features too, no release's noise leaves the sampler's range."""
    calibrated = pigd(logistic(dimension), Privacy(epsilon, 1e-6), 10**6).calibrated
    sd, step = calibrated.levels_of(1, 10**6)
    assert (sd <= 2.0**40 * step).all()


@pytest.mark.parametrize("horizon", [1000, None])
def test_generous_budgets_can_be_planned(horizon):
    """Of a large epsilon spread over many releases none is moved by more than a few sigma."""
    private = pigd(logistic(10), Privacy(50.0, 1e-6), horizon)
    assert private.guarantee.epsilon > 0.98 * 50.0


def test_rounding_is_charged():
    """Under a budget so small that the lattice is as coarse as the sensitivity, the lattice is paid for."""
    tiny = Privacy(1e-11, 1e-11)
    by_hand = certificate_of(lambda t: np.full_like(t, 1.0))
    sd, step = Mechanism().calibrate(by_hand, Timetable(every(1), 1), 4, tiny, "exact").levels(1)
    assert step > 0.01
    assert (1.0 / sd) ** 2 < 0.97 * tiny.mu**2  # what a mechanism that forgot the lattice would call the whole cost
    assert tiny.mu**2 / 2.0 < ((1.0 + 2.0 * step) / sd) ** 2 <= tiny.mu**2


@pytest.mark.parametrize(("shape", "power"), [("S^(2/3)", 1.0), ("S^(1/2)", 2.0)])
def test_the_shapes_are_optimal(shape, power):
    """No other standard deviations of the same total cost have a smaller sum (2/3), or sum of squares (1/2)."""
    private = pocp(IGD(logistic()), BUDGET, 200, shape=shape)
    sd, _ = levels(private.calibrated, range(1, 201))
    moved = np.sqrt(costs(private, range(1, 201))) * sd
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 0.5):
        for _ in range(20):
            other = sd * np.exp(size * rng.normal(size=200))
            other *= math.sqrt(np.sum((moved / other) ** 2) / np.sum((moved / sd) ** 2))
            assert np.sum(sd**power) < np.sum(other**power)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shapes_are_what_they_are_called(shape):
    """Standard deviations are proportional to that power of the sensitivity."""
    private = pocp(IGD(logistic()), BUDGET, 500, shape=shape)
    sd, _ = levels(private.calibrated, [1, 10, 500])
    power = {"S": 1.0, "S^(2/3)": 2.0 / 3.0, "S^(1/2)": 0.5}[shape]
    expected = private.learner.certificate.at([1, 10, 500]) ** power
    assert sd / sd[0] == pytest.approx(expected / expected[0], rel=1e-4)


def test_other_shapes_are_rejected():
    """A misspelt shape is rejected with the list of shapes."""
    with pytest.raises(InvalidInput, match="S, S"):
        Gaussian("S^2")


# Without a horizon.


@settings(max_examples=40)
@given(
    k=st.integers(1, 10**6),
    epsilon=st.floats(-3.0, 1.3).map(lambda e: 10.0**e),
    dimension=st.sampled_from([1, 10, 300]),
    learner=st.sampled_from([IGD, GIGA]),
)
@example(k=1, epsilon=1.0, dimension=1, learner=IGD)
def test_an_endless_release_costs_its_share(k, epsilon, dimension, learner):
    """Release k costs `mu²·(1/l(k) - 1/l(k+1))`, `l(k) = 1 + ln k`, and its integers are in range."""
    private = pocp(learner(logistic(dimension)), Privacy(epsilon, 1e-6))
    share = math.log1p(1.0 / k) / ((1.0 + math.log(k)) * (1.0 + math.log(k + 1)))
    cost = costs(private, [k])[0]
    assert cost == pytest.approx(private.privacy.mu**2 * share, rel=0.02)
    assert cost <= private.privacy.mu**2 * share
    sd, step = private.calibrated.levels(k)
    assert 2.0**25 <= sd / step <= 2.0**40
    assert private.learner.certificate.magnitude < 2.0**52 * step


def test_endless_costs_add_up_to_less_than_the_budget():
    """The first 100 000 releases cost what is said, never more, and all of them together less than mu²."""
    private = pigd(logistic(), BUDGET)
    sums = np.cumsum(costs(private, range(1, 3001)))
    stated = np.array([private.calibrated.cost(k).mu_squared for k in range(1, 3001)])
    assert (sums <= stated).all()
    assert (stated <= sums * (1.0 + 1e-6)).all()
    assert private.calibrated.cost(10**15).mu_squared < private.calibrated.cost(None).mu_squared
    assert private.calibrated.cost(None).within(BUDGET)
    assert private.calibrated.cost(0).mu_squared == 0.0


def test_a_larger_share_is_caught():
    """Shares that add up to more than the budget would fail the check above."""
    private = pigd(logistic(), BUDGET)
    shares = np.array([1.0 / (k * (1.0 + math.log(k))) for k in range(1, 3001)])  # their sum has no bound
    assert BUDGET.mu**2 * shares.sum() > private.calibrated.cost(3000).mu_squared


@pytest.mark.parametrize("horizon", [40, None])
def test_rounds_that_move_nothing_cost_nothing(horizon):
    """Before the printed step's first move there is no noise and no cost: the row is the public first point."""
    private = pgiga(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1), BUDGET, horizon, step="printed", seed=1)
    first = private.learner.first_move
    assert 20 < first < 30
    assert [private.calibrated.noise_sd(k) for k in range(1, first)] == [0.0] * (first - 1)
    state, releases = private.run(private.start(), np.ones((first, 2)), np.ones(first))
    assert not np.array([release.point for release in releases[:-1]]).any()
    assert releases[-1].point.any()
    assert costs(private, range(1, first + 1))[:-1].sum() == 0.0
    if horizon:
        assert private.calibrated.cost(first - 1).mu_squared == 0.0
        assert state.spent.mu_squared > 0.0


# Encoding.

ROWS = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3)


@settings(max_examples=60)
@given(
    row=st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
    k=st.integers(1, 50),
    horizon=st.sampled_from([50, None]),
)
def test_rows_come_back_within_half_a_step(row, k, horizon):
    """Encoding and decoding without noise moves no entry by more than half a lattice step."""
    calibrated = pigd(logistic(), BUDGET, horizon).calibrated
    secret, public = calibrated.start()
    _, encoded = calibrated.encode(secret, np.array(row), k)
    _, decoded, sd = calibrated.decode(public, encoded, k)
    assert encoded.dtype == np.int64
    assert np.max(np.abs(decoded - row)) <= calibrated.levels(k)[1] / 2.0
    assert sd == calibrated.noise_sd(k)


@settings(max_examples=60)
@given(
    row=ROWS,
    moved=st.lists(st.floats(-1e-3, 1e-3), min_size=3, max_size=3),
)
def test_rounding_moves_two_rows_apart_by_no_more_than_is_charged(row, moved):
    """The integers of two rows lie within their distance plus `sqrt(size)·g`."""
    calibrated = pigd(logistic(), BUDGET, 50).calibrated
    step = calibrated.levels(7)[1]
    a, b = (calibrated.encode({}, np.array(x), 7)[1] for x in (row, np.add(row, moved)))
    assert np.linalg.norm((a - b) * step) <= np.linalg.norm(np.add(row, moved) - row) + math.sqrt(3) * step


def test_noise_has_the_standard_deviation_that_is_charged():
    """Noise on the lattice times the step has the stated standard deviation, to 5.5 sigma of its own (fixed seed)."""
    private = pigd(logistic(300), BUDGET, 400)
    noise = np.asarray(private.calibrated.noise(11, 1, 400))
    sd, step = levels(private.calibrated, range(1, 401))
    normal = noise * (step / sd)[:, None]
    assert abs(np.mean(normal**2) - 1.0) < 5.5 * math.sqrt(2.0 / normal.size)
    by_release = np.mean(normal**2, axis=1)
    assert np.max(np.abs(by_release - 1.0)) < 5.5 * math.sqrt(2.0 / 300)
    halved = np.mean((normal / 2.0) ** 2)
    assert abs(halved - 1.0) > 5.5 * math.sqrt(2.0 / normal.size)


# Given noise, and errors.


def test_the_papers_noise_is_charged_for_what_it_is():
    """Standard deviations `beta/t` deliver `Σ (S' t/beta)²`, whatever they claim."""
    privacy = Privacy(1.0, 1e-6)
    private = pigd(
        Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=1.0), privacy, 100, calibration="paper-proven"
    )
    t = np.arange(1.0, 101.0)
    growth = math.sqrt(100 * 0.5 * math.log(2.0 / privacy.delta))
    beta = 4.0 * growth * math.sqrt(2.0 * (math.log(100 / privacy.delta) + 1.0 / growth))  # L = 1 + ridge·1: 2L = 4
    sd, _ = levels(private.calibrated, range(1, 101))
    assert sd == pytest.approx(beta / t, rel=1e-6)
    assert private.guarantee.delivered.mu_squared == pytest.approx(np.sum((2.0 / (t + 1.0) * t / beta) ** 2), rel=1e-4)
    assert private.guarantee.claimed == Privacy(3.0, 2e-6)


def test_a_learner_the_paper_does_not_name_gets_the_least_true_constant():
    """Without a stated `lam` the paper's noise uses the least one that covers every round."""
    by_hand = certificate_of(lambda t: 3.0 / (t + 2.0))
    calibrated = Mechanism().calibrate(by_hand, Timetable(every(1), 10), 1, Privacy(1.0, 1e-6), "paper-proven")
    stated = paper.PaperCertificate.of(by_hand, partial(paper.pocp_noise, 2.5))  # 3·10/12
    other = Mechanism().calibrate(stated, Timetable(every(1), 10), 1, Privacy(1.0, 1e-6), "paper-proven")
    assert [calibrated.noise_sd(k) for k in (1, 10)] == pytest.approx([other.noise_sd(k) for k in (1, 10)])


@pytest.mark.parametrize("horizon", [5, None])
def test_sensitivities_without_enough_noise_are_rejected_at_once(horizon):
    """An infinite certificate, and rows of more lattice steps than a float can count, are rejected at construction."""
    table = Timetable(every(1), horizon)
    with pytest.raises(Unprovable, match="not a finite bound"):
        Mechanism().calibrate(certificate_of(lambda t: np.full_like(t, np.inf)), table, 1, BUDGET, "exact")
    with pytest.raises(InvalidInput, match="Bound the domain more tightly"):
        Mechanism().calibrate(certificate_of(lambda t: 1e-20 / t, magnitude=1.0), table, 1, Privacy(9.0, 0.1), "exact")


def test_the_paper_needs_a_horizon():
    """The paper's noise depends on the number of rounds, which must be stated."""
    with pytest.raises(InvalidInput, match="horizon"):
        pigd(logistic(), BUDGET, calibration="paper-proven")


def test_kinked_losses_are_privatized_too():
    """A hinge over a long horizon keeps its budget, rounding errors included."""
    private = pigd(Problem(Hinge(), L2Ball(1.0), 5, ridge=0.01), BUDGET, 20_000)
    assert math.fsum(costs(private, range(1, 20_001))) <= BUDGET.mu**2


@pytest.mark.parametrize("mechanism", ["gaussian", "exponential"])
@pytest.mark.parametrize("schedule", [every(1), every(7), geometric(1.3)], ids=str)
def test_levels_of_an_endless_stream_at_once_are_those_one_by_one(mechanism, schedule):
    """Bit for bit, wherever the list is cut."""
    if mechanism == "gaussian":
        learner = IGD(Problem(Logistic(), L2Ball(1.0), 3, ridge=0.1))
        calibrated = Private(learner, Gaussian(), schedule, Privacy(1.0, 1e-6), seed=1).calibrated
        at_once, single = calibrated.levels_of, calibrated.levels
    else:
        calibrated = Private(experts(4), Exponential(), schedule, Privacy(1.0, 1e-6), seed=1).calibrated
        at_once, single = calibrated.rates_of, calibrated.rate
    for k, count in ((1, 50), (3, 1), (40, 13)):
        result = np.atleast_2d(at_once(k, count)).T
        np.testing.assert_array_equal(result, [np.atleast_1d(single(k + j)) for j in range(count)])
