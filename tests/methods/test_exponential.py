"""The exponential mechanism: its cost, recomputed from exact probabilities, and the law of its winner."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

from taciturn import (
    IGD,
    BudgetExhausted,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    Privacy,
    Private,
    Problem,
    Unprovable,
    at,
    every,
    geometric,
    pigd,
    pocp,
)
from taciturn.kernel.accounting.cost import FREE, Cost
from taciturn.kernel.accounting.zcdp import rho_of
from taciturn.kernel.noise.sampling import GUMBEL_ERROR, GUMBEL_STEP
from taciturn.kernel.replay import buffers_of, exact_of
from taciturn.kernel.stream.protocols import Certificate
from taciturn.kernel.stream.schedule import Timetable
from taciturn.methods.ewoo import experts
from taciturn.methods.exponential import ROUNDING, Exponential, bounded_range

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
UNIT = Fraction(1, 2**32)


def certificate_of(bound, kind: tuple[str, str] = ("range", "tail")) -> Certificate:
    return Certificate(*kind, "by hand", bound, 1.0, "moves every later row", "by hand")


def constant(c: float) -> Certificate:
    return certificate_of(lambda t: np.full_like(t, c))


def calibrated(c: float, horizon: int | None, size: int = 3, privacy: Privacy = BUDGET):
    return Exponential().calibrate(constant(c), Timetable(every(1), horizon), size, privacy, "exact")


# What is charged.

PLANS = st.fixed_dictionaries(
    {
        "epsilon": st.floats(-2.0, 2.0).map(lambda e: 10.0**e),
        "delta": st.sampled_from([1e-12, 1e-6, 1e-2]),
        "horizon": st.integers(1, 3000),
        "scale": st.floats(-6.0, 6.0).map(lambda e: 10.0**e),
        "falls": st.booleans(),
        "schedule": st.sampled_from([every(1), every(7), geometric(1.3), at([1, 5, 2000])]),
    }
)


def planned(plan: dict):
    """A mechanism, its budget, and the range that each release is charged for, recomputed: `lam·c + 7 units`."""
    power = -0.5 if plan["falls"] else 0.0
    certificate = certificate_of(lambda t: plan["scale"] * t**power)
    privacy, timetable = Privacy(plan["epsilon"], plan["delta"]), Timetable(plan["schedule"], plan["horizon"])
    made = Exponential().calibrate(certificate, timetable, 5, privacy, "exact")
    rates = np.array([made.rate(k) for k in range(1, len(timetable.rounds) + 1)])
    return made, privacy, rates * certificate.at(timetable.rounds) + 7.0 * 2.0**-32


@settings(max_examples=80)
@given(plan=PLANS)
@example(plan={"epsilon": 1.0, "delta": 1e-6, "horizon": 1, "scale": 1.0, "falls": False, "schedule": every(1)})
def test_everything_published_fits_the_budget(plan):
    """The ranges, added up as pure privacy or their squares as zCDP, fit the budget and use all but a thousandth."""
    made, privacy, eta = planned(plan)
    delivered = made.cost(None)
    assert delivered.within(privacy)
    assert delivered.epsilon(privacy.delta) > 0.999 * privacy.epsilon
    pure, rho = math.fsum(eta), math.fsum(eta**2) / 8.0
    assert pure <= privacy.epsilon or rho <= rho_of(privacy.epsilon, privacy.delta)
    best = max(privacy.epsilon, math.sqrt(8.0 * rho_of(privacy.epsilon, privacy.delta) * len(eta)))
    assert pure == pytest.approx(best, rel=1e-6)  # whichever leaves more


@settings(max_examples=60)
@given(plan=PLANS)
def test_the_stated_cost_is_the_recomputed_one(plan):
    """In exact arithmetic: what the first k releases are said to cost is no less than their sum, and hardly more."""
    made, _, eta = planned(plan)
    stated = [made.cost(k) for k in range(len(eta) + 1)]
    assert stated[0] == FREE
    assert stated[-1] == made.cost(None)
    one = Fraction(made.eta) if made.pure else Fraction(made.eta) ** 2 / 8
    said = [c.plain_epsilon if made.pure else c.rho for c in stated]
    assert all(k * one <= Fraction(c) <= k * one * (1 + Fraction(1, 10**9)) for k, c in enumerate(said))
    assert all((c.rho == 0.0) == made.pure and (c.plain_epsilon > 0.0) == made.pure for c in stated[1:])
    assert all(0.0 < c.extra_delta + c.plain_delta < 1e-307 for c in stated[1:])
    assert (eta <= made.eta).all()
    assert (eta >= made.eta * (1.0 - 1e-14)).all()


@settings(max_examples=40)
@given(plan=PLANS)
def test_no_release_has_a_larger_range_than_planned(plan):
    """In exact arithmetic `lam·c + 7 units ≤ eta`, for the very floats that are used."""
    made, _, _ = planned(plan)
    timetable = Timetable(plan["schedule"], plan["horizon"])
    certified = plan["scale"] * timetable.rounds.astype(float) ** (-0.5 if plan["falls"] else 0.0)
    for k in {1, len(certified) // 2 + 1, len(certified)}:
        assert Fraction(made.rate(k)) * Fraction(float(certified[k - 1])) + 7 * UNIT <= Fraction(made.eta)


@pytest.mark.parametrize("releases", [1, 5, 6, 1000])
def test_few_releases_are_pure_and_many_are_concentrated(releases):
    """At (1, 1e-6) five releases fare better by adding epsilons, six by zCDP."""
    made = calibrated(1.0, releases)
    assert made.pure == (releases <= 5)
    assert made.cost(None).gaussian == made.pure


def test_no_epsilon_is_too_large_to_be_read():
    """Where pure costs could not be read any more, zCDP is used."""
    assert calibrated(1.0, 1, privacy=Privacy(1900.0, 1e-6)).cost(None).within(Privacy(1900.0, 1e-6))
    with pytest.raises(InvalidInput, match="at most 2,000"):
        calibrated(1.0, 1, privacy=Privacy(2001.0, 1e-6))


def test_rounding_is_charged():
    """Under a budget so small that rounding is a tenth of it, the rates pay for it."""
    tiny = Privacy(70.0 * 2.0**-32, 1e-12)
    made = calibrated(1.0, 1, privacy=tiny)
    assert made.rate(1) < 0.901 * tiny.epsilon
    assert made.rate(1) + 7.0 * 2.0**-32 <= tiny.epsilon


def test_the_standard_deviation_is_the_noises():
    """`pi/(sqrt(6)·lam)`, in units of loss; noise over the rate has it, to 5.5 sigma of its own (fixed seed)."""
    made = calibrated(2.0, 100, size=400)
    noise = np.asarray(made.noise(4, 1, 100)) * GUMBEL_STEP / made.rate(1)
    assert made.noise_sd(1) == pytest.approx(math.pi / math.sqrt(6.0) / made.rate(1))
    assert abs(np.var(noise) / made.noise_sd(1) ** 2 - 1.0) < 5.5 * math.sqrt(4.4 / noise.size)


# Without a horizon.


def test_an_endless_release_costs_its_share():
    """Release k costs `rho·(1/l(k) - 1/l(k+1))`; all of them less than the budget."""
    made = calibrated(3.0, None)
    eta = np.array([made.rate(k) * 3.0 + 7.0 * 2.0**-32 for k in range(1, 3001)])
    sums, stated = np.cumsum(eta**2) / 8.0, np.array([made.cost(k).rho for k in range(1, 3001)])
    assert (sums <= stated).all()
    assert (stated <= sums * (1.0 + 1e-7)).all()
    assert (np.diff(stated) > 0.0).all()
    assert made.cost(10**15).rho < made.cost(None).rho
    assert made.cost(None).within(BUDGET)
    assert made.cost(None).epsilon(1e-6) > 0.999
    assert made.cost(0) == FREE


def test_an_endless_stream_ends_where_its_certificate_does():
    """Rounds are public: releases up to the 1000th are drawn, the next is rejected, and so is a call with both."""
    ends = certificate_of(lambda t: np.where(t <= 1000, 1.0, math.inf))
    made = Exponential().calibrate(ends, Timetable(every(1), None), 3, BUDGET, "exact")
    assert len(list(made.noise(None, 900, 101))) == 101
    for k, count in ((1001, 1), (999, 3)):
        with pytest.raises(BudgetExhausted, match="Start a new stream"):
            made.noise(7, k, count)
    assert made.noise_sd(1001) == math.inf


def test_an_endless_stream_ends_before_rounding_uses_up_a_share():
    """A release whose whole share is less than twice the cost of rounding is not made."""
    made = calibrated(1.0, None, privacy=Privacy(0.01, 1e-6))
    with pytest.raises(BudgetExhausted):
        made.noise(None, 10**14, 1)


# Scores.

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
ROWS = st.lists(NUMBERS, min_size=4, max_size=4)


def range_of(values) -> Fraction:
    return max(values) - min(values)


def moved_range(encode, row, other) -> tuple[Fraction, Fraction]:
    """Exactly: the range by which two rows differ, and the range by which their scores differ, in units."""
    scores = [[int(s) for s in encode(np.array(r))] for r in (row, other)]
    rows = [[Fraction(float(x)) for x in r] for r in (row, other)]
    return (
        range_of([a - b for a, b in zip(*rows, strict=True)]),
        range_of([Fraction(a - b) for a, b in zip(*scores, strict=True)]),
    )


@settings(max_examples=300)
@given(row=ROWS, moved=ROWS, size=st.sampled_from([1.0, 1e-3, 1e-9]), c=st.sampled_from([1e-9, 1e-3, 1.0, 1e5]))
def test_scores_move_apart_no_more_than_is_charged(row, moved, size, c):
    """Range of the scores' difference ≤ `lam·range/g + 2.02`, shifting, cutting and rounding included."""
    made = calibrated(c, 10, size=4)
    other = np.array(row) + size * np.array(moved)
    apart, scores = moved_range(lambda r: made.encode({}, r, 1)[1], row, other)
    assert scores <= Fraction(made.rate(1)) * apart / UNIT + Fraction(202, 100)


def test_rounding_scores_comes_near_its_charge():
    """Two units are needed: rows nearly the same whose scores differ by -1 and by +1."""
    made = calibrated(1.0, 10)
    unit = 2.0**-32 / made.rate(1)
    row = np.array([0.0, 10.499, 20.501]) * unit
    other = np.array([0.0, 10.501, 20.499]) * unit
    apart, scores = moved_range(lambda r: made.encode({}, r, 1)[1], row, other)
    assert scores == 2
    assert Fraction(made.rate(1)) * apart / UNIT < Fraction(1, 100)


def test_cutting_rows_instead_of_gaps_is_caught():
    """Planted: scores of rows cut at a public number, not of gaps. Rows a constant apart then have scores far apart."""
    made = calibrated(1.0, 10)

    def slip(row):
        cut = np.minimum(row, 4096.0 / made.rate(1))
        return np.rint(cut * made.rate(1) / GUMBEL_STEP).astype(np.int64)

    row = np.array([4096.0, 1.0, 0.0]) / made.rate(1)
    apart, honest = moved_range(lambda r: made.encode({}, r, 1)[1], row, row + 8.0)
    _, slipped = moved_range(slip, row, row + 8.0)
    assert apart < 1e-9
    assert honest <= 3
    assert slipped * UNIT > Fraction(made.rate(1)) * 7


def test_scores_are_softmax_weights():
    """`exp(g·score)` is `exp(-lam·(loss - least loss))`, to the rounding."""
    made, row = calibrated(2.0, 4), np.array([103.0, 100.0, 101.5])
    _, scores = made.encode({}, row, 2)
    assert scores.dtype == np.int64
    assert scores * GUMBEL_STEP == pytest.approx(-made.rate(2) * (row - 100.0), abs=GUMBEL_STEP)


@pytest.mark.parametrize(
    "row",
    [
        [math.nan, 0.0, 1.0],
        [math.inf, 0.0, 1.0],
        [-math.inf, 0.0, 1.0],
        [math.inf, -math.inf, math.nan],
        [1e308, -1e308, 0.0],
    ],
)
def test_whatever_a_learner_hands_over_becomes_scores(row):
    """Nothing is raised on a secret value, and no integer can overflow: scores lie within 2^44 of 0, as noise does."""
    _, scores = calibrated(1e-3, 10).encode({}, np.array(row), 1)
    assert scores.dtype == np.int64
    assert (scores <= 0).all()
    assert (scores >= -(2**44) - 1).all()


# Selection: exact probabilities.


def probabilities(scores) -> np.ndarray:
    """The law of an ideal selection between these scores."""
    return np.exp(log_softmax(np.asarray(scores, dtype=np.float64) * GUMBEL_STEP))


def tight_pair(made, loss_bound: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws of the winner of two candidates with losses (0, M) and with (M, 0)."""
    rows = np.array([0.0, loss_bound]), np.array([loss_bound, 0.0])
    return tuple(probabilities(made.encode({}, row, 1)[1]) for row in rows)


def renyi(p, q, order: float) -> float:
    return float(logsumexp(order * np.log(p) + (1.0 - order) * np.log(q))) / (order - 1.0)


def composed_delta(p, q, releases: int, epsilon: float) -> float:
    """The exact delta at `epsilon` of so many independent releases, by adding up over the counts of each outcome."""
    log_p, log_q, total = np.log(p), np.log(q), 0.0
    for counts in itertools.product(range(releases + 1), repeat=len(p) - 1):
        rest = releases - sum(counts)
        if rest < 0:
            continue
        all_counts = np.array([*counts, rest])
        ways = math.lgamma(releases + 1) - sum(math.lgamma(n + 1) for n in all_counts)
        one, other = ways + all_counts @ log_p, ways + all_counts @ log_q
        total += max(0.0, math.exp(one) - math.exp(epsilon + other))
    return total


ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0, 1000.0)


@pytest.mark.parametrize("releases", [1, 2, 7, 50, 1000])
@pytest.mark.parametrize("loss_bound", [1.0, 250.0])
def test_the_tight_pair_keeps_its_budget(releases, loss_bound):
    """Losses (0, M) and (M, 0), certified 2M: divergences below `order·eta²/8` and near it, exact delta below delta."""
    made = calibrated(2.0 * loss_bound, releases, size=2)
    p, q = tight_pair(made, loss_bound)
    for order in ORDERS:
        assert renyi(p, q, order) <= order * made.eta**2 / 8.0
    assert renyi(p, q, 1.01) > 0.9 * 1.01 * made.eta**2 / 8.0 or releases < 7
    assert float(np.ptp(np.log(p / q))) == pytest.approx(made.eta, rel=1e-6)
    for one, other in ((p, q), (q, p)):
        assert composed_delta(one, other, releases, BUDGET.epsilon) <= BUDGET.delta


@pytest.mark.parametrize("releases", [50, 1000])
def test_the_sup_norm_slip_breaks_the_budget(releases):
    """Certified by the largest change of one loss, M instead of 2M, the same pair needs far more than delta."""
    slipped = calibrated(1.0, releases, size=2)
    p, q = tight_pair(slipped, 1.0)
    assert all(renyi(p, q, order) > 3.0 * order * slipped.eta**2 / 8.0 for order in ORDERS[:4])
    assert composed_delta(p, q, releases, BUDGET.epsilon) > 1000 * BUDGET.delta


@pytest.mark.parametrize(("certified", "least", "most"), [(2.0, 0.99, 1.0), (1.0, 1.98, 2.0)])
def test_the_sup_norm_slip_breaks_pure_privacy(certified, least, most):
    """Losses (0, M) or (M, 0) on top of a long lead of the second: a log-ratio near eta, and the slip's near 2·eta."""
    made = calibrated(certified, 1, size=2, privacy=Privacy(2.0, 1e-6))
    lead = np.array([8.0, 0.0]) / made.rate(1)
    rows = lead + np.array([0.0, 1.0]), lead + np.array([1.0, 0.0])
    logs = [log_softmax(made.encode({}, row, 1)[1] * GUMBEL_STEP) for row in rows]
    assert least < np.max(np.abs(logs[0] - logs[1])) / made.eta <= most


@settings(max_examples=60)
@given(
    base=st.lists(st.floats(0.0, 8.0), min_size=3, max_size=3),
    moved=st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=3),
    releases=st.sampled_from([1, 3, 12]),
    epsilon=st.sampled_from([0.5, 3.0]),
)
def test_no_pair_of_rows_breaks_the_budget(base, moved, releases, epsilon):
    """Three candidates, any losses, moved by a range of at most 1: divergences and exact delta stay below."""
    privacy = Privacy(epsilon, 1e-4)
    made = calibrated(1.0, releases, privacy=privacy)
    base = np.array(base) / made.rate(1)
    p, q = (probabilities(made.encode({}, row, 1)[1]) for row in (base, base + moved))
    assume(min(p.min(), q.min()) > 1e-12)
    for order in ORDERS:
        assert renyi(p, q, order) <= order * made.eta**2 / 8.0 + 1e-13
    assert composed_delta(p, q, releases, epsilon) <= privacy.delta


def rounded_race(scores, g: float) -> np.ndarray:
    """The exact law of the winner if Gumbel noise is rounded to multiples of `g`, ties going to the first."""
    n = np.arange(math.floor(-6.0 / g), math.ceil(45.0 / g) + 1)
    scores = np.asarray(scores)
    law = []
    for i, s in enumerate(scores):
        chance = np.exp(-np.exp(-(n + 0.5) * g)) - np.exp(-np.exp(-(n - 0.5) * g))
        for j, other in enumerate(scores):
            if j != i:
                beaten = n - s + other + (0.5 if j > i else -0.5)  # N_j - s_j ≤ n - s_i, or < if j comes first
                chance = chance * np.exp(-np.exp(-beaten * g))
        law.append(chance.sum())
    return np.array(law)


@settings(max_examples=200)
@given(
    scores=st.lists(st.integers(0, 12), min_size=3, max_size=3),
    moved=st.lists(st.integers(-2, 2), min_size=3, max_size=3),
    g=st.sampled_from([0.5, 0.25, 0.1]),
)
@example(scores=[3, 0, 3], moved=[0, 2, -2], g=0.5)
def test_rounded_noise_costs_what_is_charged(scores, moved, g):
    """On a coarse lattice, where it shows: `|ln P~/P| ≤ 2hg` and a range of log-ratios off by at most 8hg, h = 1/2."""
    laws, ideals = [], []
    for s in (np.array(scores), np.array(scores) + moved):
        laws.append(rounded_race(s, g))
        ideals.append(np.exp(log_softmax(-s * g)))
        assert laws[-1].sum() == pytest.approx(1.0, abs=1e-9)
        assert np.max(np.abs(np.log(laws[-1] / ideals[-1]))) <= g + 1e-9
    assert np.ptp(np.log(laws[0] / laws[1])) <= g * np.ptp(moved) + 4.0 * g + 1e-9


def test_rounded_noise_costs_something():
    """It is not free: ties go to the first, so chances are off by half of 2hg, and charging nothing would be false."""
    scores, moved, g = np.array([0, 1, 6]), np.array([1, -1, 1]), 0.5
    law, other = rounded_race(scores, g), rounded_race(scores + moved, g)
    assert np.ptp(np.log(law / other)) > g * np.ptp(moved) + 0.1 * g
    assert np.max(np.abs(np.log(rounded_race([8, 0, 0], g)) - log_softmax([-8.0 * g, 0.0, 0.0]))) > 0.5 * g


def test_ties_go_to_the_first():
    """Of equal noisy scores the first one wins."""
    made = calibrated(1.0, 10)
    assert made.decode({}, np.array([4, 7, 7]), 1)[1].tolist() == [1.0]
    assert made.decode({}, np.array([-5, -5, -5]), 1)[1].tolist() == [0.0]


def test_only_the_winner_is_published():
    """Noisy scores with the same winner give the same output to the last bit, whatever else they say."""
    made = calibrated(1.0, 10)
    outputs = [made.decode({}, np.array(noisy), 3) for noisy in ([5, 9, 1], [-(2**40), 3, 2], [0, 2**44, 7])]
    assert all(public == {} and winner.tolist() == [1.0] for public, winner, _ in outputs)
    assert len({sd for _, _, sd in outputs}) == 1
    private = Private(experts(3), Exponential(), every(1), BUDGET, 20)
    state, releases = private.run(private.start(), np.random.default_rng(0).random((20, 3)), np.zeros(20))
    for release in releases:
        assert release.noisy.shape == (1,)
        assert release.noisy[0] in (0.0, 1.0, 2.0)
        assert release.point.tolist() == np.eye(3)[int(release.noisy[0])].tolist()
    assert state.public == buffers_of(state) == {}


CELLS, DRAWS, FALSE_ALARM = 8, 200_000, 43.0
"""Chi-square with 7 degrees of freedom passes 43 with probability 3.3e-7."""


def chi_square(slip: float) -> float:
    """200 000 seeded selections against the softmax of their losses, whose rate is wrong by a factor `slip`."""
    made = calibrated(1.0, DRAWS, size=CELLS, privacy=Privacy(1500.0, 1e-6))
    row = np.linspace(0.0, 3.0, CELLS) / made.rate(1)
    _, scores = made.encode({}, row * slip, 1)
    noisy = scores + np.asarray(made.noise(11, 1, DRAWS))
    winners = np.array([made.decode({}, selection, k)[1][0] for k, selection in enumerate(noisy[:200], start=1)])
    assert np.array_equal(winners, np.argmax(noisy[:200], axis=1))
    seen = np.bincount(np.argmax(noisy, axis=1), minlength=CELLS)
    expected = DRAWS * np.exp(log_softmax(-row * made.rate(1)))
    return float(np.sum((seen - expected) ** 2 / expected))


def test_the_winner_has_the_softmax_law():
    """Seeded selections, from losses to the number of the winner, agree with the exact law; false alarm 3.3e-7."""
    assert chi_square(1.0) < FALSE_ALARM


@pytest.mark.parametrize("slip", [0.95, 1.05])
def test_a_wrong_rate_is_caught(slip):
    """Of a rate 5 % off the statistic has a mean above 280 and an sd below 36: missed less than once in 1e20."""
    assert chi_square(slip) > FALSE_ALARM


# Wired up.


def stream(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(seed).random((count, 4)), np.zeros(count)


@pytest.mark.parametrize("horizon", [60, None])
@pytest.mark.parametrize("schedule", [every(1), every(7), geometric(1.4)])
def test_the_cut_of_a_stream_changes_nothing(horizon, schedule):
    """Under a seed, one call and many release the same, to the last bit."""
    private = Private(experts(4), Exponential(), schedule, BUDGET, horizon, seed=3)
    X, y = stream(60)
    _, whole = private.run(private.start(), X, y)
    state, pieces, t = private.start(), [], 0
    for end in (1, 2, 9, 30, 59, 60):
        state, released = private.run(state, X[t:end], y[t:end])
        pieces, t = pieces + released, end
    assert [(r.t, r.noisy[0], *r.point) for r in whole] == [(r.t, r.noisy[0], *r.point) for r in pieces]
    assert len(whole) > 3


def test_a_stream_goes_on_from_a_file(tmp_path):
    """A dumped state goes on with the same losses, and under a seed with the same releases."""
    private = Private(experts(4), Exponential(), every(1), BUDGET, 30, seed=3)
    X, y = stream(30)
    _, whole = private.run(private.start(), X, y)
    state, _ = private.run(private.start(), X[:12], y[:12])
    state.dump(tmp_path / "state.npz")
    again = private.load(tmp_path / "state.npz")
    assert exact_of(again)["losses"].dtype == np.int64
    assert np.array_equal(exact_of(again)["losses"], exact_of(state)["losses"])
    _, rest = private.run(again, X[12:], y[12:])
    assert [r.noisy[0] for r in rest] == [r.noisy[0] for r in whole[12:]]


def test_a_stream_is_guarded_like_any_other(tmp_path):
    """The horizon ends it, and no state is used twice."""
    from taciturn import StateConflict

    private = Private(experts(4), Exponential(), every(1), BUDGET, 5)
    start = private.start()
    state, releases = private.run(start, *stream(5))
    assert len(releases) == 5
    assert state.spent == private.calibrated.cost(None)
    with pytest.raises(BudgetExhausted):
        private.run(state, *stream(1))
    with pytest.raises(StateConflict):
        private.run(start, *stream(1))


def test_it_shares_a_ledger_with_gaussian_noise():
    """Both streams on one ledger: costs add, and the sum is read as zCDP, `rho + mu²/2`."""
    ledger = Ledger(Privacy(2.0, 1e-6))
    selection = Private(experts(4), Exponential(), every(1), BUDGET, 40)
    walk = pigd(Problem(Logistic(), L2Ball(1.0), 4, ridge=0.1), Privacy(0.5, 1e-6), 40)
    one, other = selection.start(ledger), walk.start(ledger)
    X, _ = stream(40)
    selection.run(one, X, np.zeros(40))
    walk.run(other, X, np.ones(40))
    spent = ledger.spent
    rho = selection.guarantee.delivered.rho + walk.guarantee.delivered.mu_squared / 2.0
    assert not spent.gaussian
    assert str(spent) == f"rho = {rho:.4g}"
    assert selection.guarantee.epsilon < spent.epsilon(1e-6) <= 2.0
    by_hand = Cost(rho=rho).epsilon(1e-6)
    assert spent.epsilon(1e-6) == pytest.approx(by_hand + spent.extra_epsilon, rel=1e-6)
    with pytest.raises(BudgetExhausted):
        Private(experts(4), Exponential(), every(1), Privacy(1.9, 1e-6), 40).start(ledger)


def test_pure_costs_share_a_ledger_too():
    """One release, accounted for by pure privacy, adds its epsilon to the others'."""
    ledger = Ledger()
    once = Private(experts(4), Exponential(), at([10]), Privacy(0.5, 1e-6), 10)
    walk = pigd(Problem(Logistic(), L2Ball(1.0), 4, ridge=0.1), Privacy(0.5, 1e-6), 40)
    once.start(ledger)
    walk.start(ledger)
    assert 0.99 < ledger.reserved.epsilon(1e-6) < 1.03  # delta is shared, so a little more than the sum


def test_guarantees_are_proven():
    """With and without a horizon, under both relations, the guarantee holds and says so."""
    for neighbours in ("replace", "zero-out"):
        for horizon in (1, 5, 6, 10_000, None):
            guarantee = Private(experts(4, neighbours=neighbours), Exponential(), every(1), BUDGET, horizon).guarantee
            assert guarantee.holds
            assert 0.999 < guarantee.epsilon <= 1.0


# Errors.


def test_learners_and_mechanisms_that_do_not_fit_are_rejected():
    """EWOO under Gaussian noise and IGD under the exponential mechanism: both say what to use instead."""
    with pytest.raises(Unprovable, match=r"EWOO certifies range/tail .*Gaussian accepts l2/tail\. Use Exponential"):
        pocp(experts(3), BUDGET, 10)
    walk = IGD(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.1))
    with pytest.raises(Unprovable, match=r"IGD certifies l2/tail .*accepts range/tail\. Use Gaussian, or .*EWOO"):
        Private(walk, Exponential(), every(1), BUDGET, 10)


@pytest.mark.parametrize("calibration", ["paper-printed", "paper-proven"])
def test_the_paper_has_no_constants_for_it(calibration):
    """Its calibrations are rejected with the one there is."""
    with pytest.raises(InvalidInput, match="calibration='exact'"):
        Private(experts(3), Exponential(), every(1), BUDGET, 10, calibration)


@pytest.mark.parametrize("horizon", [10, None])
@pytest.mark.parametrize("bound", [math.inf, math.nan, -1.0, 1e200])
def test_what_is_not_a_bound_is_rejected(horizon, bound):
    """Infinite, negative and missing bounds, with or without a horizon."""
    with pytest.raises(Unprovable, match="no noise is enough"):
        calibrated(bound, horizon)


def test_a_bound_that_ends_before_the_horizon_is_rejected():
    """The message names the first round without one."""
    ends = certificate_of(lambda t: np.where(t <= 7, 1.0, math.inf))
    with pytest.raises(Unprovable, match="statistic of round 8,"):
        Exponential().calibrate(ends, Timetable(every(1), 20), 3, BUDGET, "exact")


def test_a_budget_that_rounding_would_use_up_is_rejected():
    """Billions of releases under a tiny epsilon."""
    with pytest.raises(InvalidInput, match="Publish less often"):
        calibrated(1.0, 1, privacy=Privacy(13.0 * 2.0**-32, 1e-12))


def test_rows_that_nothing_moves_are_selected_from_all_the_same():
    """A certificate of 0 gives a finite rate, under which the best candidate all but always wins."""
    made = calibrated(0.0, 10)
    _, scores = made.encode({}, np.array([1.0, 0.0, 1e-9]), 1)
    assert math.isfinite(made.rate(1))
    assert scores.tolist() == [-(2**44), 0, -(2**44)]


def test_a_bounded_range_is_a_cost():
    """`eta²/8` of zCDP or eta of epsilon, times the count."""
    assert bounded_range(0.4, 5).rho == pytest.approx(0.1)
    assert bounded_range(0.4, 5, pure=True).plain_epsilon == pytest.approx(2.0)
    assert bounded_range(0.4, 5).rho >= 0.4**2 / 8.0 * 5


def test_what_rounding_is_charged_covers_what_the_proof_adds_up():
    """Scores off by 1/2 + 2⁻⁸ units in two worlds at two ends, and noise by twice its error, four times: below 7."""
    units = 4.0 * (0.5 + 2.0**-8) + 8.0 * GUMBEL_ERROR
    assert 6.0 < units <= ROUNDING / GUMBEL_STEP <= 7.0


def test_a_range_too_large_to_be_squared_is_rejected_in_a_sentence():
    """By itself, and out of an edited state."""
    with pytest.raises(InvalidInput, match=r"eta must be 0 or more, and at most .*, got 1e\+200\. State a smaller"):
        bounded_range(1e200)
    assert bounded_range(1e200, pure=True).plain_epsilon >= 1e200
