"""The bounds on regret hold on real runs, come within a factor of two of some, and say what they print."""

import math
from dataclasses import replace

import numpy as np
import pytest

from taciturn import (
    FTL,
    GIGA,
    IGD,
    FadingIGD,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Problem,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
    every,
    pgiga,
    pigd,
)
from taciturn.calibration.paper import parameters_claiming
from taciturn.datasets import ad_impressions, linear_regression
from taciturn.regret import (
    best_in_hindsight,
    fading_regret_bound,
    giga_regret_bound,
    igd_regret_bound,
    leader_regret_bound,
    noise_regret_bound,
    pgiga_regret_bound,
    pocp_regret_bound,
    replay,
    replay_exact,
)
from taciturn.regret.tails import length_moments

REGRESSION = Problem(Squared(), L2Ball(0.5), dimension=4, label_bound=1.0, ridge=1.0)
STEPS = ("contracting", "printed")


def linear(ridge, domain):
    """`±x + (ridge/2)·x²` on an interval or the whole line."""
    return Problem(Linear(), domain, dimension=1, label_bound=1.0, ridge=ridge)


def alternating(horizon):
    """Slopes +1, -1, +1, …: the stream on which the leader is always one example late."""
    return np.ones((horizon, 1)), np.where(np.arange(horizon) % 2 == 0, 1.0, -1.0)


def regret(learner, X, y):
    """Total regret of an exact learner."""
    return len(y) * replay_exact(learner, X, y).average_regret(best_in_hindsight(learner.problem, X, y))


def leader_losses(problem, X, y, extra_ridge=0.0):
    """Follow the leader on linear losses over a ball, from its definition: the minimiser of a parabola, projected."""
    V, y = problem.clip(X, y)
    slopes, x, losses = np.zeros(problem.size), problem.first_point, []
    for t, (v, b) in enumerate(zip(V, y, strict=True), start=1):
        losses.append(problem.values(x, v[None], np.array([b]))[0])
        slopes = slopes + b * v
        x = problem.domain.project(-slopes / (problem.ridge * t + extra_ridge))
    return np.array(losses)


def test_igd_regret_bound_holds_and_is_not_vacuous():
    """Exact IGD, played round by round, keeps its bound."""
    stream = linear_regression(400, dimension=4, seed=2)
    best = best_in_hindsight(REGRESSION, stream.X, stream.y)
    regret = 400 * replay_exact(IGD(REGRESSION), stream.X, stream.y).average_regret(best)
    assert 0.0 < regret <= igd_regret_bound(REGRESSION, 400) < 400 * 0.5


@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
def test_igd_comes_within_half_of_its_bound(ridge):
    """Alternating slopes: at least half of the bound and never more, so neither a half nor a 1/alpha can be missing."""
    problem = linear(ridge, L2Ball(0.1 / ridge))
    measured, bound = regret(IGD(problem), *alternating(1000)), igd_regret_bound(problem, 1000)
    assert bound / 2 < measured <= bound
    if ridge < 0.5:
        assert measured > ridge * bound  # the planted bound, in which 1/alpha is lost


def test_igd_bounds_are_for_what_igd_takes():
    """No ridge and no rounds are rejected, each with what to give instead."""
    with pytest.raises(Unprovable, match=r"Give the problem a ridge, e\.g\. 0\.01"):
        igd_regret_bound(linear(0.0, L2Ball(1.0)), 10)
    for horizon in (0, -1, 2.5):
        with pytest.raises(InvalidInput, match="horizon must be an integer, 1 or more"):
            igd_regret_bound(linear(1.0, L2Ball(1.0)), horizon)


def test_fading_igd_comes_within_half_of_its_bound():
    """Alternating slopes and a weak pull: at least half of the bound, of which the steps are nearly all."""
    problem = linear(0.0, L2Ball(1.0))
    measured, bound = regret(FadingIGD(problem, 0.03), *alternating(1000)), fading_regret_bound(problem, 0.03, 1000)
    assert bound / 2 < measured <= bound


@pytest.mark.parametrize("strength", [0.1, 1.0, 4.0])
def test_the_fading_bound_term_by_term(strength):
    """From the learner's own weights and totals: for the share of a strong pull no near-tight stream is known."""
    learner, t = FadingIGD(linear(0.0, L2Ball(1.5)), strength), np.arange(1.0, 201.0)
    weights, totals = learner._weight(t), learner._total(t)
    pulled = 3.0**2 / 2.0 * (totals[0] + weights.sum())
    stepped = np.sum((1.0 + 3.0 * weights) ** 2 / (2.0 * totals))
    assert fading_regret_bound(learner.problem, strength, 200) == pytest.approx(pulled + stepped, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_private_regret_stays_below_both_bounds(epsilon):
    """The proof's line with the noise really added holds on average, and is sharper than the theorem."""
    privacy, horizon = Privacy(epsilon, 1e-6), 500
    stream = linear_regression(horizon, dimension=4, seed=5)
    best, regrets = best_in_hindsight(REGRESSION, stream.X, stream.y), []
    for seed in range(5):
        private = pigd(REGRESSION, privacy, horizon, seed=seed)
        _, releases = private.run(private.start(), stream.X, stream.y)
        regrets.append(horizon * replay(REGRESSION, releases, stream.X, stream.y).average_regret(best))
    exact = igd_regret_bound(REGRESSION, horizon)
    ours = exact + noise_regret_bound(pigd(REGRESSION, privacy, horizon))
    theirs = parameters_claiming(privacy)
    theorem = exact + pocp_regret_bound(REGRESSION, REGRESSION.gradient_diameter, theirs, horizon)
    assert np.mean(regrets) < ours < theorem


def test_noise_bound_is_for_releases_after_every_round():
    """Stale points are not covered by the theorem, and the bound says so."""
    with pytest.raises(Unprovable, match="every round"):
        noise_regret_bound(pigd(REGRESSION, Privacy(1, 1e-6), 100, schedule=every(2)))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
def test_giga_comes_within_half_of_its_bound(step, ridge):
    """Alternating slopes: at least half of the bound and never more, so neither a half nor a 1/alpha can be missing."""
    problem = linear(ridge, L2Ball(0.1 / ridge))
    measured, bound = regret(GIGA(problem, step), *alternating(1000)), giga_regret_bound(problem, 1000, step)
    assert bound / 2 < measured <= bound
    if ridge < 0.5:
        assert measured > ridge * bound  # the planted bound, in which 1/alpha is lost


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("kappa", "seed"), [(1.5, 0), (3.0, 1), (8.0, 2)])
def test_giga_keeps_its_bound(step, kappa, seed):
    """On clicks, with a ridge that makes the steps start late; rounds of waiting included."""
    problem = Problem(Logistic(), L2Ball(1.0), dimension=15, ridge=0.25 / (kappa - 1.0))
    stream = ad_impressions(300, seed=seed)
    measured, bound = regret(GIGA(problem, step), stream.X, stream.y), giga_regret_bound(problem, 300, step)
    assert 0.0 < measured <= bound < 300 * problem.lipschitz_with_ridge * 2.0


def test_a_wait_beyond_the_horizon_costs_every_round():
    """With the printed step and kappa = 26 nothing moves for 1352 rounds; losing the wait from the bound is noticed."""
    problem = Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=0.01)
    X, y = np.ones((500, 1)), np.ones(500)
    measured, bound = regret(GIGA(problem, "printed"), X, y), giga_regret_bound(problem, 500, "printed")
    assert bound == pytest.approx(500 * problem.lipschitz_with_ridge * 2.0)
    assert problem.lipschitz_with_ridge**2 / problem.ridge < measured <= bound


def test_giga_contracting_waits_for_nothing():
    """The better step has the better bound, and both grow with the horizon."""
    problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.05)
    table = [[giga_regret_bound(problem, T, step) for T in (10, 100, 1000)] for step in STEPS]
    assert all(ours < printed for ours, printed in zip(*table, strict=True))
    assert all(sorted(row) == row for row in table)


@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
def test_the_leader_comes_within_half_of_its_bound(ridge):
    """Alternating slopes again; and again a lost 1/alpha, or half the bound, is noticed."""
    problem = linear(ridge, L2Ball(0.1 / ridge))
    X, y = alternating(1000)
    measured = leader_losses(problem, X, y).sum() - 1000 * best_in_hindsight(problem, X, y).average
    bound = leader_regret_bound(problem, 1000)
    assert bound / 2 < measured <= bound
    if ridge < 0.5:
        assert measured > ridge * bound


@pytest.mark.parametrize(("ridge", "extra", "share"), [(1.0, 0.0, 0.5), (0.01, 0.0, 0.5), (0.0, 20.0, 0.49)])
def test_the_shipped_leader_comes_within_half_of_its_bound(ridge, extra, share):
    """FTL itself, by its solver, on alternating slopes; regularised, at the best extra ridge, it meets one half."""
    problem = linear(ridge, L2Ball(0.1 / ridge if ridge else 1.0))
    measured, bound = regret(FTL(problem, extra), *alternating(400)), leader_regret_bound(problem, 400, extra)
    assert share * bound < measured <= bound


@pytest.mark.parametrize(("y", "share"), [(np.ones(400), 0.45), (alternating(400)[1], 0.45)])
def test_the_regularised_leader_keeps_its_bound(y, share):
    """Without a ridge, at the best extra one: constant slopes meet one half of the bound, alternating the other."""
    problem, extra = linear(0.0, L2Ball(1.0)), 20.0
    best = -np.abs(y.sum())  # of slope·x over [-1, 1]
    measured = leader_losses(problem, np.ones((400, 1)), y, extra).sum() - best
    bound = leader_regret_bound(problem, 400, extra)
    assert bound == pytest.approx(20.0)  # T/(2·lam0) + lam0/2
    assert share * bound < measured <= bound


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("extra", [0.0, 5.0])
def test_the_leader_of_random_slopes_keeps_its_bound(seed, extra):
    """Several dimensions, an active ball, and a ridge with and without an extra one."""
    rng = np.random.default_rng(seed)
    problem = Problem(Linear(), L2Ball(0.5), dimension=3, label_bound=1.0, ridge=0.2)
    X, y = rng.normal(size=(300, 3)), rng.uniform(-1.0, 1.0, 300)
    measured = leader_losses(problem, X, y, extra).sum() - 300 * best_in_hindsight(problem, X, y).average
    assert 0.0 < measured <= leader_regret_bound(problem, 300, extra)


def test_the_first_leader_is_the_shortest_point():
    """Away from the origin the extra ridge costs only what x* is longer than x_1: on the simplex `1 - 1/d`."""
    problem = Problem(Linear(), Simplex(), dimension=4, label_bound=1.0, ridge=0.0)
    small, large = (leader_regret_bound(problem, 1, lam) for lam in (1e6, 2e6))
    assert large - small == pytest.approx(1e6 / 2 * (1 - 1 / 4), rel=1e-6)


def test_unbounded_domains_are_fine_where_gradients_are_bounded():
    """No best point is further than L/alpha from the origin, and constant slopes reach that."""
    problem = linear(0.5, WholeSpace())
    X, y = np.ones((50, 1)), np.ones(50)
    assert best_in_hindsight(problem, X, y).point[0] == pytest.approx(-2.0)
    assert leader_regret_bound(problem, 1) == pytest.approx(4.0)  # G²/(2·alpha), G = L + alpha·(L/alpha)
    measured = leader_losses(problem, X, y).sum() - 50 * best_in_hindsight(problem, X, y).average
    assert 0.0 < measured <= leader_regret_bound(problem, 50) < math.inf
    assert 0.0 < regret(GIGA(problem), X, y) <= giga_regret_bound(problem, 50) < math.inf
    with pytest.raises(Unprovable, match="Bound the domain"):
        leader_regret_bound(replace(REGRESSION, domain=WholeSpace()), 50)


def test_a_leader_needs_some_strong_convexity():
    """Neither ridge: rejected; and a negative one is none."""
    with pytest.raises(Unprovable, match="extra_ridge"):
        leader_regret_bound(linear(0.0, L2Ball(1.0)), 10)
    with pytest.raises(InvalidInput, match="0 or more"):
        leader_regret_bound(linear(1.0, L2Ball(1.0)), 10, -0.5)


def test_giga_bounds_are_for_what_giga_takes():
    """Kinks, no ridge and unknown steps are rejected as by the learner."""
    with pytest.raises(Unprovable, match="kink"):
        giga_regret_bound(Problem(Hinge(), L2Ball(1.0), dimension=1, ridge=1.0), 10)
    with pytest.raises(Unprovable, match="ridge"):
        giga_regret_bound(linear(0.0, L2Ball(1.0)), 10)
    with pytest.raises(InvalidInput, match="step"):
        giga_regret_bound(linear(1.0, L2Ball(1.0)), 10, "printd")


def test_theorem_6_as_printed():
    """The line of the theorem, term by term; G = 1.5, ‖C‖ = 1, L_G = alpha = 1, d = 1."""
    line = 4 * (1.5 + 1) * 1.5 * math.log(100 / 1e-6) ** 2 * math.sqrt(100 / 2) + 4.5 * (1 + math.log(100)) + 3
    assert pgiga_regret_bound(linear(1.0, L2Ball(0.5)), Privacy(2.0, 1e-6), 100) == pytest.approx(line, rel=1e-8)


def test_theorem_6_is_wasteful_where_it_is_true():
    """What is proven, with the noise really added, is sharper; and runs stay below that."""
    problem, privacy, horizon = linear(1.0, L2Ball(0.5)), Privacy(3.0, 1e-6), 300
    X, y = alternating(horizon)
    private = pgiga(problem, privacy, horizon, seed=0)
    _, releases = private.run(private.start(), X, y)
    measured = horizon * replay(problem, releases, X, y).average_regret(best_in_hindsight(problem, X, y))
    ours = giga_regret_bound(problem, horizon) + noise_regret_bound(private, failure=1e-6)
    assert measured < ours < pgiga_regret_bound(problem, parameters_claiming(privacy), horizon)


def test_the_high_probability_bound_is_chebyshev_s():
    """Corollary 1 adds `L·sqrt(Σ Var/gamma)`, which is more for a smaller failure."""
    private = pigd(REGRESSION, Privacy(5.0, 1e-6), 200)
    expected, likely = noise_regret_bound(private), noise_regret_bound(private, failure=0.04)
    sd = np.array([private.calibrated.noise_sd(k) for k in range(1, 200)])
    lipschitz, (mean, variance) = REGRESSION.lipschitz_with_ridge, length_moments(4)
    assert expected == pytest.approx(lipschitz * (1.0 + mean * sd.sum()))
    assert likely - expected == pytest.approx(5.0 * lipschitz * math.sqrt(variance * np.sum(sd**2)))
    assert expected < likely < noise_regret_bound(private, failure=0.01)


def test_lengths_of_noise_keep_the_high_probability_bound():
    """Of 4000 draws of all lengths at most a share gamma passes; a bound with `Var` for `Var/gamma` is passed by more.

    By Chebyshev the expected share is at most 0.1, and in truth 8e-4: passing 0.1 has probability below 1e-100. The
    planted bound, one sd above the mean, is passed by about 0.16, and by less than 0.1 with probability 1e-20.
    """
    private = pigd(REGRESSION, Privacy(5.0, 1e-6), 50)
    lipschitz, diameter = REGRESSION.lipschitz_with_ridge, 1.0
    sd = np.array([private.calibrated.noise_sd(k) for k in range(1, 50)])
    lengths = np.linalg.norm(np.random.default_rng(0).standard_normal((4000, 49, 4)), axis=2) @ sd
    costs = lipschitz * (diameter + lengths)
    expected, likely = noise_regret_bound(private), noise_regret_bound(private, failure=0.1)
    planted = expected + (likely - expected) * math.sqrt(0.1)
    assert np.mean(costs > likely) <= 0.1 < np.mean(costs > planted)


def test_the_exact_mean_length_is_sharper():
    """In four dimensions a noise vector is 6 % shorter than `sqrt(d)` sigma."""
    mean, _ = length_moments(4)
    assert mean / 2.0 == pytest.approx(0.94, abs=1e-3)


def test_corollary_1_as_printed():
    """It divides Theorem 2's line by the root of gamma."""
    arguments = REGRESSION, 3.0, Privacy(1.0, 1e-6), 100
    assert pocp_regret_bound(*arguments, failure=0.25) == pytest.approx(2.0 * pocp_regret_bound(*arguments))


@pytest.mark.parametrize("failure", [0.0, 1.0, -1.0])
def test_a_failure_that_is_none_is_rejected(failure):
    """Both forms of Corollary 1 ask for a probability."""
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        pocp_regret_bound(REGRESSION, 3.0, Privacy(1.0, 1e-6), 100, failure)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        noise_regret_bound(pigd(REGRESSION, Privacy(1.0, 1e-6), 10), failure)
