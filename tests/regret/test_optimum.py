"""The best point in hindsight and of each prefix: found, and its certificate holds for any loss and set."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from instances import LOSSES, SETS, Distance, labels_of
from taciturn import (
    Absolute,
    Box,
    Hinge,
    InvalidInput,
    L2Ball,
    Logistic,
    Problem,
    Quantile,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
)
from taciturn.datasets import ad_impressions, linear_regression
from taciturn.regret import best_in_hindsight, optimum, prefix_leaders, prefix_minima, replay

REGRESSION = Problem(Squared(), L2Ball(0.5), dimension=4, label_bound=1.0, ridge=1.0)


def test_optimum_of_a_quadratic_is_the_normal_equations():
    """Inside the ball, the certified solver finds (V'V/n + alpha I)^-1 V'y/n."""
    stream = linear_regression(500, dimension=4, seed=1)
    best = best_in_hindsight(REGRESSION, stream.X, stream.y, tolerance=1e-13)
    V, y = REGRESSION.clip(stream.X, stream.y)
    exact = np.linalg.solve(V.T @ V / 500 + np.eye(4), V.T @ y / 500)
    assert np.linalg.norm(exact) < 0.5
    np.testing.assert_allclose(best.point, exact, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.2, 0.0])
@pytest.mark.parametrize("form", SETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_is_small_and_true(loss, form, ridge):
    """No point that a search over the set finds is better than the optimum by more than its gap."""
    problem = Problem(LOSSES[loss](), SETS[form](3), 3, label_bound=1.5, ridge=ridge)
    rng = np.random.default_rng(len(loss) * len(form))
    X, y = rng.normal(size=(60, 3)), labels_of(problem.loss, 1.5, rng, 60)
    if not np.isfinite(problem.radius) and ridge == 0.0:
        with pytest.raises(Unprovable, match="Bound the domain"):
            best_in_hindsight(problem, X, y)
        return
    best = best_in_hindsight(problem, X, y, tolerance=1e-8)
    assert 0.0 < best.gap <= 1e-8
    assert problem.domain.contains(best.point)
    V, y = problem.clip(X, y)
    for scale in (1.0, 0.1, 0.01, 1e-4):
        for _ in range(30):
            other = problem.domain.project(best.point + scale * rng.normal(size=3))
            assert np.mean(problem.values(other, V, y)) >= best.average - best.gap


def test_a_median_regression_agrees_with_linear_programming():
    """Least absolute deviations in a box, which is a linear programme."""
    rng = np.random.default_rng(1)
    problem = Problem(Absolute(), Box(-0.5, 0.5), 3, label_bound=1.0)
    V, y = problem.clip(rng.normal(size=(80, 3)), rng.uniform(-1, 1, 80))
    cost = np.concatenate([np.zeros(3), np.full(80, 1 / 80)])
    upper = np.block([[V, -np.eye(80)], [-V, -np.eye(80)]])
    exact = linprog(cost, upper, np.concatenate([y, -y]), bounds=[(-0.5, 0.5)] * 3 + [(0, None)] * 80).fun
    best = best_in_hindsight(problem, V, y)
    assert best.average - best.gap <= exact + 1e-12
    assert exact <= best.average + 1e-12
    assert best.gap <= 1e-8


def test_a_support_vector_machine_agrees_with_a_general_solver():
    """Hinge loss with a ridge, as the quadratic programme that SLSQP solves."""
    rng = np.random.default_rng(2)
    problem = Problem(Hinge(), WholeSpace(), 2, ridge=0.1)
    V, y = problem.clip(rng.normal(size=(25, 2)), rng.choice([-1.0, 1.0], 25))
    start = np.concatenate([np.zeros(2), np.ones(25)])
    margins = {"type": "ineq", "fun": lambda z: y * (V @ z[:2]) - 1.0 + z[2:]}
    exact = minimize(
        lambda z: 0.05 * z[:2] @ z[:2] + np.mean(z[2:]),
        start,
        bounds=[(None, None)] * 2 + [(0, None)] * 25,
        constraints=margins,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    ).fun
    assert best_in_hindsight(problem, V, y).average == pytest.approx(exact, abs=1e-7)


def test_vector_losses_have_an_optimum_too():
    """Half the squared distance to the examples: their mean, in the simplex."""
    problem = Problem(Distance(), Simplex(), 3, label_bound=1.0)
    rng = np.random.default_rng(3)
    X, y = rng.uniform(size=(20, 3)), np.ones(20)
    V, y = problem.clip(X, y)
    best = best_in_hindsight(problem, X, y, tolerance=1e-7)
    np.testing.assert_allclose(best.point, Simplex().project(V.mean(axis=0)), atol=1e-3)
    assert best.gap <= 1e-7


@pytest.mark.parametrize("radius", [0.3, 2.0, 50.0])
def test_certified_gap_bounds_the_distance_to_the_minimum(radius):
    """A loosely solved problem is no further from a tightly solved one than its gap says."""
    stream = ad_impressions(800, seed=3)
    problem = Problem(Logistic(), L2Ball(radius), dimension=15, ridge=0.01)
    loose = best_in_hindsight(problem, stream.X, stream.y, tolerance=1e-3)
    tight = best_in_hindsight(problem, stream.X, stream.y, tolerance=1e-14)
    assert 0.0 <= loose.average - tight.average + 1e-13 <= loose.gap + 1e-13


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Quantile(0.9)])
def test_a_poor_point_has_a_gap_that_says_so(loss, monkeypatch):
    """A planted fault, a solver that does nothing: the gap is honest about it."""
    stream = ad_impressions(400, seed=4)
    problem = Problem(loss, L2Ball(2.0), dimension=15, label_bound=1.0, ridge=0.05)
    good = best_in_hindsight(problem, stream.X, stream.y)
    monkeypatch.setattr(optimum, "descend", lambda objective, domain, start, short, count: (start, False))
    poor = best_in_hindsight(problem, stream.X, stream.y)
    assert poor.gap >= poor.average - good.average > 0.01


def test_no_examples_and_no_tolerance_are_rejected():
    """Each with what to give instead."""
    with pytest.raises(InvalidInput, match="Give one or more"):
        best_in_hindsight(REGRESSION, np.zeros((0, 4)), np.zeros(0))
    for tolerance in (0.0, -1e-9, np.nan):
        with pytest.raises(InvalidInput, match="tolerance must be positive"):
            best_in_hindsight(REGRESSION, np.zeros((1, 4)), np.zeros(1), tolerance)


ROUNDS = np.array([1, 2, 7, 40, 150])


@pytest.mark.parametrize("radius", [2.0, 0.2])  # the set inactive, and active from the first round on
def test_prefixes_are_solved_as_if_they_were_the_whole_stream(radius):
    problem = Problem(Squared(), L2Ball(radius), 4, label_bound=1.0, ridge=0.1)
    stream = linear_regression(150, 4, seed=2)
    _same(problem, stream)


def test_other_losses_too():
    _same(Problem(Logistic(), L2Ball(1.0), 15, ridge=0.1), ad_impressions(150, seed=1))


def _same(problem, stream):
    leaders, minima = (f(problem, stream.X, stream.y, ROUNDS) for f in (prefix_leaders, prefix_minima))
    for t, leader, least in zip(ROUNDS, leaders, minima, strict=True):
        best = best_in_hindsight(problem, stream.X[:t], stream.y[:t])
        np.testing.assert_allclose(leader, best.point, atol=1e-6)
        assert least == pytest.approx(best.average, abs=1e-11)


def test_average_regrets_are_those_of_every_beginning():
    """At each t what `average_regret` says of the first t rounds; a best point of the whole stream would not do."""
    problem = Problem(Squared(), L2Ball(2.0), 4, label_bound=1.0, ridge=0.1)
    stream = linear_regression(150, 4, seed=3)
    minima = prefix_minima(problem, stream.X, stream.y, ROUNDS)
    result = replay(problem, [], stream.X, stream.y).average_regrets(ROUNDS, minima)
    for t, regret in zip(ROUNDS, result, strict=True):
        X, y = stream.X[:t], stream.y[:t]
        alone = replay(problem, [], X, y).average_regret(best_in_hindsight(problem, X, y))
        assert regret == pytest.approx(alone, abs=1e-11)
    whole = best_in_hindsight(problem, stream.X, stream.y).average
    assert result[0] > replay(problem, [], stream.X[:1], stream.y[:1]).losses[0] - whole + 1e-4
