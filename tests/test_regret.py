"""Regret is measured against a certified optimum, and the theorems' bounds hold on real runs."""

import numpy as np
import pytest

from tacit import IGD, Hinge, L2Ball, Logistic, Privacy, Problem, Release, Squared, Unprovable, every, pigd
from tacit.accounting.paper import parameters_claiming
from tacit.datasets import ad_impressions, linear_regression
from tacit.regret import (
    best_in_hindsight,
    igd_regret_bound,
    noise_regret_bound,
    pocp_regret_bound,
    replay,
    replay_exact,
)

REGRESSION = Problem(Squared(), L2Ball(0.5), dimension=4, label_bound=1.0, ridge=1.0)


def test_optimum_of_a_quadratic_is_the_normal_equations():
    """Inside the ball, the certified solver finds (V'V/n + alpha I)^-1 V'y/n."""
    stream = linear_regression(500, dimension=4, seed=1)
    best = best_in_hindsight(REGRESSION, stream.X, stream.y, tolerance=1e-13)
    V, y = REGRESSION.bound(stream.X, stream.y)
    exact = np.linalg.solve(V.T @ V / 500 + np.eye(4), V.T @ y / 500)
    assert np.linalg.norm(exact) < 0.5
    np.testing.assert_allclose(best.point, exact, atol=1e-6)


@pytest.mark.parametrize("radius", [0.3, 2.0, 50.0])
def test_certified_gap_bounds_the_distance_to_the_minimum(radius):
    """A loosely solved problem is no further from a tightly solved one than its gap says."""
    stream = ad_impressions(800, seed=3)
    problem = Problem(Logistic(), L2Ball(radius), dimension=15, ridge=0.01)
    loose = best_in_hindsight(problem, stream.X, stream.y, tolerance=1e-3)
    tight = best_in_hindsight(problem, stream.X, stream.y, tolerance=1e-14)
    assert 0.0 <= loose.average - tight.average + 1e-13 <= loose.gap + 1e-13
    assert loose.gap > tight.gap


def test_kinked_losses_have_no_certified_optimum_yet():
    """The solver refuses what it cannot certify."""
    with pytest.raises(Unprovable, match="smooth"):
        best_in_hindsight(Problem(Hinge(), L2Ball(1.0), dimension=1, ridge=1.0), [[1.0]], [1.0])


def test_replay_plays_the_last_release_before_each_round():
    """Round t is played with the newest point released before it, the data-free point at first."""
    problem = Problem(Squared(), L2Ball(9.0), dimension=1, label_bound=9.0)
    shown = [Release(2, 1, *[np.array([p])] * 2, 0.0, simulated=True) for p in (1.0,)]
    shown.append(Release(3, 2, *[np.array([2.0])] * 2, 0.0, simulated=True))
    record = replay(problem, shown, [[1.0]] * 5, [0.0] * 5)
    np.testing.assert_allclose(record.losses, [0.0, 0.0, 0.5, 2.0, 2.0], atol=1e-11)


def test_igd_regret_bound_holds_and_is_not_vacuous():
    """Exact IGD, played round by round, keeps its bound."""
    stream = linear_regression(400, dimension=4, seed=2)
    best = best_in_hindsight(REGRESSION, stream.X, stream.y)
    regret = 400 * replay_exact(IGD(REGRESSION), stream.X, stream.y).average_regret(best)
    assert 0.0 < regret <= igd_regret_bound(REGRESSION, 400) < 400 * 0.5


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
