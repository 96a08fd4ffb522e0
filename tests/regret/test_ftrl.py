"""Private FTRL keeps its bound on every stream; some streams come near it, and none of its three parts can be left out.

Runs are held against the bound that one in 1e9 may exceed, so no test here raises a false alarm more often than 1e-7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from instances import LOSSES, labels_of
from taciturn import (
    BLT,
    BinaryTree,
    Box,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Privacy,
    Problem,
    Simplex,
    Squared,
    SquareRoot,
    Unprovable,
    at,
    every,
    geometric,
    pftrl,
    pigd,
    pqftl,
)
from taciturn.regret import best_in_hindsight, ftrl_regret_bound, replay
from taciturn.regret.tails import length_moments

SURE = 1e-9
T = 200
STRATEGIES = {
    "tree": BinaryTree(),
    "plain tree": BinaryTree(refined=False),
    "BLT": BLT(),
    "square root": SquareRoot(),
}
SCHEDULES = {"every": every(1), "sevens": every(7), "geometric": geometric(1.2)}
DOMAINS = {"ball": L2Ball(0.7), "box": Box(-0.3, 1.0), "simplex": Simplex(1.5)}


def line(ridge, radius):
    """`±x + (ridge/2)·x²` over `[-radius, radius]`."""
    return Problem(Linear(), L2Ball(radius), dimension=1, label_bound=1.0, ridge=ridge)


@dataclass
class Seen:
    """What an adversary knows: the last released point, the noise of its sum, and the sum of all slopes so far."""

    point: float
    noise: float
    total: float


def ahead(seen):
    """The slope that the released point likes least."""
    return 1.0 if seen.point > 0.0 else -1.0


def against_the_noise(seen):
    """The same for what the noise did to it, while slopes nearly balance."""
    return -1.0 if seen.noise + 0.3 * seen.total > 0.0 else 1.0


def duel(private, adversary):
    """Regret of a run against an adversary who sees every release before the next slope."""
    problem, state, seen, slopes, lost = private.problem, private.start(), Seen(0.0, 0.0, 0.0), [], 0.0
    for _ in range(private.horizon):
        slopes.append(adversary(seen))
        lost += slopes[-1] * seen.point + problem.ridge / 2.0 * seen.point**2
        seen.total += slopes[-1]
        state, release = private.step(state, [[1.0]], slopes[-1:])
        if release is not None:
            seen.point, seen.noise = float(release.point[0]), float(release.noisy[0]) - seen.total
    best = best_in_hindsight(problem, np.ones((len(slopes), 1)), slopes)
    return lost - len(slopes) * (best.average - best.gap)


def increasing(values):
    """The non-decreasing sequence nearest to `values`: the largest of least means, over all stretches around k."""
    count = len(values)
    return [max(min(np.mean(values[i : j + 1]) for j in range(k, count)) for i in range(k + 1)) for k in range(count)]


def slow_bound(private, failure=None, late=1.0, noise=1.0, held=1.0):
    """The bound as its docstring has it, point by point; with shares of its parts, and of the length of noise."""
    learner, p, rounds = private.learner, private.problem, [0, *private.timetable.rounds.tolist()]
    alpha, G, B = p.ridge, p.lipschitz_with_ridge, p.radius
    widest = p.domain.diameter(p.size)
    m = length_moments(p.size)[0] + (math.sqrt(2.0 * math.log(1.0 / failure)) if failure else 0.0)

    def phi(r):
        r = min(r, widest, G / alpha if alpha else math.inf)
        return G * r - alpha / 2.0 * r**2

    sd = [private.calibrated.noise_sd(k) for k in range(1, len(rounds) - 1)]
    lam = [float(learner.regulariser(t, s)) for t, s in zip(rounds[1:-1], sd, strict=True)]
    mu = lam if all(a <= b for a, b in pairwise(lam)) else increasing(lam)
    total = held * mu[-1] / 2.0 * (B**2 - p.first_point @ p.first_point)
    for k, (t, after) in enumerate(pairwise(rounds)):
        n, at_k = after - t, mu[max(k - 1, 0)]
        a = alpha * t + at_k
        away = noise * m * sd[k - 1] + B * abs(lam[k - 1] - at_k) if k else 0.0
        r = away / (alpha * t + max(lam[k - 1], at_k)) if k else 0.0
        here = late * n**2 * G**2 / (2.0 * (alpha * after + at_k)) + n * a / (a + alpha * n) * phi(r)
        total += min(here, n * phi(widest))
    return min(total, rounds[-1] * phi(widest))


# It is what it says.


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_bound_point_by_point(strategy, schedule, ridge):
    """Against a loop over points, with the noise of each release, and the non-decreasing sequence by its definition."""
    problem = Problem(Hinge(), DOMAINS["box"], dimension=3, ridge=ridge)
    settings = {"strategy": STRATEGIES[strategy], "schedule": SCHEDULES[schedule]}
    private = pftrl(problem, Privacy(20.0, 1e-6), 24, **settings)
    for failure in (None, 0.01):
        assert ftrl_regret_bound(private, failure) == pytest.approx(slow_bound(private, failure), rel=1e-9)
    assert ftrl_regret_bound(private) < ftrl_regret_bound(private, 0.5) < ftrl_regret_bound(private, 0.01)


@pytest.mark.parametrize("strategy", ["BLT", "square root"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("horizon", [2, 100, 5000])
def test_the_closed_forms(strategy, epsilon, horizon):
    """Of order ln² T with a ridge and sqrt(T) without; and a constant regulariser would do better than the latter."""
    for ridge in (0.0, 0.5):
        problem = Problem(Hinge(), L2Ball(2.0), dimension=5, ridge=ridge)
        private = pftrl(problem, Privacy(epsilon, 1e-6), horizon, strategy=STRATEGIES[strategy])
        noise, B, G, L = private.calibrated.noise_sd(horizon) * math.sqrt(5.0), 2.0, problem.lipschitz_with_ridge, 1.0
        if ridge:
            form = (G**2 + 2.0 * G * noise) / (2.0 * ridge) * (1.0 + math.log(horizon)) + B * noise
        else:
            form = 1.5 * L * B * math.sqrt(horizon) + B * noise * (2.0 * math.sqrt(horizon) + 1.0)
            assert B * math.sqrt(horizon * (L**2 + 2.0 * L * noise)) < form
        assert ftrl_regret_bound(private) <= form * (1.0 + 1e-9)


def test_with_a_ridge_it_is_polylogarithmic():
    """Divided by `ln² T` it stays below its limit, `G·Gd·m/(pi·alpha·mu)`; a tenfold stream adds little."""
    problem, privacy = Problem(Squared(), L2Ball(0.5), 10, label_bound=1.0, ridge=1.0), Privacy(1.0, 1e-6)
    limit = problem.lipschitz_with_ridge * problem.gradient_diameter * length_moments(10)[0] / (math.pi * privacy.mu)
    horizons = [10**power for power in (3, 4, 5, 6)]
    bounds = [ftrl_regret_bound(pftrl(problem, privacy, horizon)) for horizon in horizons]
    shares = [bound / math.log(horizon) ** 2 for bound, horizon in zip(bounds, horizons, strict=True)]
    assert all(share < limit for share in shares)
    assert bounds[-1] / bounds[-2] < 1.7


# It holds.


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "absolute", "huber", "quantile .9"])
def test_random_streams_keep_the_bound(loss, domain, ridge):
    """Several losses over several sets, one of which does not hold the origin; each strategy and schedule in turn."""
    problem = Problem(LOSSES[loss](), DOMAINS[domain], dimension=3, label_bound=1.0, ridge=ridge)
    rng = np.random.default_rng(len(loss))
    X, y = rng.normal([0.5, 0.0, -0.5], size=(T, 3)), labels_of(problem.loss, 1.0, rng, T)
    best = best_in_hindsight(problem, X, y)
    for seed, strategy in enumerate(STRATEGIES.values()):
        schedule = list(SCHEDULES.values())[seed % 3]
        private = pftrl(problem, Privacy(10.0, 1e-6), T, strategy=strategy, schedule=schedule, seed=seed)
        _, releases = private.run(private.start(), X, y)
        regret = T * replay(problem, releases, X, y).average_regret(best)
        assert regret <= ftrl_regret_bound(private, SURE) <= T * problem.lipschitz_with_ridge * problem.radius * 2.0


@pytest.mark.parametrize("ridge", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_adversaries_keep_the_bound_and_come_near_it(strategy, schedule, ridge):
    """Slopes chosen after every release: a third of the expected bound, or more."""
    settings = {"strategy": STRATEGIES[strategy], "schedule": SCHEDULES[schedule]}
    private = pftrl(line(ridge, 1.0), Privacy(5.0, 1e-6), T, **settings, seed=1)
    regret = duel(private, ahead)
    assert ftrl_regret_bound(private) / 3.0 < regret <= ftrl_regret_bound(private, SURE)


# None of its parts can be left out.


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_half_the_noise_is_noticed(ridge):
    """Slopes against the noise: six tenths of the bound, and more than it would allow for noise half as long."""
    private = pftrl(line(ridge, 1.0 if ridge == 0.0 else 10.0), Privacy(3.0, 1e-6), 3000, seed=1)
    bound, planted = ftrl_regret_bound(private), slow_bound(private, noise=0.5)
    assert planted < duel(private, against_the_noise) < bound


@pytest.mark.parametrize(
    ("ridge", "radius", "schedule"), [(0.1, 2.0, geometric(1.3)), (0.1, 2.0, every(20)), (0.0, 1.0, every(20))]
)
def test_the_price_of_being_late_is_noticed(ridge, radius, schedule):
    """A steep block against every point: without that part, or with n for n², the bound is broken."""
    private = pftrl(line(ridge, radius), Privacy(30.0, 1e-6), 1000, schedule=schedule, seed=1)
    once = 2.0 / float(np.max(np.diff(private.timetable.rounds)))
    planted = max(slow_bound(private, late=share) for share in (0.0, once))
    assert planted < duel(private, ahead) <= ftrl_regret_bound(private)


def test_the_price_of_the_regulariser_is_noticed():
    """One slope all the time, and few rounds: the regulariser holds the leader back, which must be paid for."""
    for ridge in (0.0, 0.001):
        private = pftrl(line(ridge, 1.0), Privacy(0.3, 1e-6), 60, seed=1)
        assert slow_bound(private, held=0.0) < duel(private, lambda seen: 1.0) < ftrl_regret_bound(private)


def test_the_noise_moves_points_as_far_as_it_says():
    """Mean distance of points to the noiseless leader of the same gradients: `m·s/(alpha·t + lam)`, where none is cut.

    In 16 dimensions a length has an sd of .18 of its mean, so the mean of 100 lies within 10 % of it but for a
    share of 3e-8 of draws; for half the noise it never does.
    """
    problem = Problem(Linear(), L2Ball(1e4), dimension=16, label_bound=1.0, ridge=1.0)
    V, y = problem.clip(np.random.default_rng(0).normal(size=(30, 16)), np.ones(30))
    leader = -V.sum(axis=0)
    far = []
    for seed in range(100):
        private = pftrl(problem, Privacy(5.0, 1e-6), 30, seed=seed)
        last = private.run(private.start(), V, y)[1][-1]
        inertia = 30.0 + float(private.learner.regulariser(30, last.noise_sd))
        far.append(np.linalg.norm(last.point - leader / inertia))
    expected = length_moments(16)[0] * private.calibrated.noise_sd(30) / inertia
    assert np.mean(far) == pytest.approx(expected, rel=0.1)


def test_lengths_of_running_noise_keep_their_bound():
    """Of 4000 draws of correlated noise at most a share .1 exceeds it, and more do if its second part is left out.

    The bound is at least the 0.9 quantile: to be exceeded by more than a share .13 has probability below 1e-8; the
    mean, planted, is exceeded by nearly half.
    """
    problem = Problem(Hinge(), L2Ball(1.0), dimension=2)
    private = pftrl(problem, Privacy(1.0, 1e-6), 64)
    B, _ = BLT().coder(64).matrices(64)
    sd = np.array([private.calibrated.noise_sd(k) for k in range(1, 65)])
    weights = 1.0 / np.asarray(private.learner.regulariser(np.arange(1.0, 65.0), sd))
    draws = np.random.default_rng(0).standard_normal((4000, 64, 2)) * sd[0]
    mixes = np.linalg.norm(np.einsum("kj,sjd->skd", B, draws), axis=2) @ weights
    mean = length_moments(2)[0] * float(sd @ weights)
    likely = mean + math.sqrt(2.0 * math.log(10.0)) * float(sd @ weights)
    assert np.mean(mixes > likely) <= 0.13 < np.mean(mixes > mean)


# Edges.


def test_nothing_released_before_the_end():
    """Then every round costs what the first point may: the most that any round can."""
    private = pftrl(line(0.0, 1.5), Privacy(1.0, 1e-6), 20, schedule=at([20]))
    assert ftrl_regret_bound(private) == pytest.approx(20 * 3.0)
    assert ftrl_regret_bound(pftrl(line(0.0, 1.5), Privacy(1.0, 1e-6), 1)) == pytest.approx(3.0)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_never_more_than_the_diameter_costs(ridge):
    """With next to no budget the bound is that of any points at all."""
    private = pftrl(line(ridge, 1.0), Privacy(1e-3, 1e-6), 50)
    assert ftrl_regret_bound(private, SURE) == pytest.approx(50 * (2.0 * (1.0 + ridge) - 2.0 * ridge))


def test_the_first_point_is_the_shortest():
    """Where the set does not hold the origin, the regulariser costs only what u is longer than x_1."""
    simplex, ball = (
        pftrl(Problem(Linear(), domain, dimension=2, label_bound=1.0), Privacy(1.0, 1e-6), 1000)
        for domain in (Simplex(1.0), L2Ball(1.0))
    )
    held = [slow_bound(private) - slow_bound(private, held=0.0) for private in (simplex, ball)]
    assert held[0] == pytest.approx(held[1] / 2.0)
    assert ftrl_regret_bound(simplex) == pytest.approx(slow_bound(simplex))


def test_invalid_arguments_are_rejected():
    """Other learners and endless streams, with what to use instead; and impossible failures."""
    regression, budget = Problem(Squared(), L2Ball(0.5), 2, label_bound=1.0, ridge=1.0), Privacy(1.0, 1e-6)
    for other in (pigd(regression, budget, 10), pqftl(regression, budget, 10), pftrl(regression, budget)):
        with pytest.raises(Unprovable, match=r"Use pftrl\(problem, privacy, horizon\)"):
            ftrl_regret_bound(other)
    for failure in (0.0, 1.0, -0.1):
        with pytest.raises(InvalidInput, match="failure must lie strictly between 0 and 1"):
            ftrl_regret_bound(pftrl(regression, budget, 10), failure)
