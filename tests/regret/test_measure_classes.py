"""Streams of several classes: the best point in hindsight, its certified gap, and what was predicted right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from instances import SETS
from taciturn import IGD, L2Ball, MultiHinge, OneHot, Problem, Release, Softmax, Unprovable, WholeSpace
from taciturn.regret import best_in_hindsight, igd_regret_bound, optimum, replay, replay_exact

CLASSES = {"softmax": Softmax(3), "one hot": OneHot(3), "seven": Softmax(7)}


def stream(loss, n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes that features say something of."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.argmax(X @ rng.normal(size=(2, loss.classes)) + rng.gumbel(size=(n, loss.classes)), axis=1)


@pytest.mark.parametrize("ridge", [0.2, 0.0])
@pytest.mark.parametrize("form", ["l2 ball", "box", "simplex", "half-space"])
@pytest.mark.parametrize("name", CLASSES)
def test_the_gap_is_small_and_true(name, form, ridge):
    """No point that a search over the set finds is better than the optimum by more than its gap."""
    loss, rng = CLASSES[name], np.random.default_rng(1)
    size = 3 * loss.classes
    problem = Problem(loss, SETS[form](size), 2, intercept=0.5, ridge=ridge or (0.01 if form == "half-space" else 0.0))
    X, y = stream(loss)
    best = best_in_hindsight(problem, X, y, tolerance=1e-8)
    assert 0.0 < best.gap <= 1e-8
    assert problem.domain.contains(best.point)
    V, y = problem.clip(X, y)
    for scale in (1.0, 0.1, 0.01, 1e-4):
        others = [problem.domain.project(best.point + scale * rng.normal(size=size)) for _ in range(30)]
        assert min(float(np.mean(problem.values(x, V, y))) for x in others) >= best.average - best.gap


@pytest.mark.parametrize("name", CLASSES)
def test_it_agrees_with_a_general_solver(name):
    """Without a set, a quasi-Newton method on values and gradients written out here."""
    loss = CLASSES[name]
    problem, (X, y) = Problem(loss, WholeSpace(), 2, ridge=0.05), stream(loss, 200)
    V, _ = problem.clip(X, y)
    hits = np.eye(loss.classes)[y]

    def cost(x):
        W = x.reshape(loss.classes, 2)
        U, ridge = V @ W.T, 0.025 * x @ x
        if isinstance(loss, OneHot):
            return 0.5 * np.mean(np.sum((U - hits + 1.0 / 3.0) ** 2, axis=1)) + ridge
        return np.mean(np.log(np.exp(U).sum(axis=1)) - (U * hits).sum(axis=1)) + ridge

    result = minimize(cost, np.zeros(problem.size), method="BFGS", options={"gtol": 1e-9, "maxiter": 500})
    best = best_in_hindsight(problem, X, y)
    assert best.average == pytest.approx(result.fun, abs=1e-9)
    assert best.average - best.gap <= result.fun
    np.testing.assert_allclose(best.point, result.x, atol=1e-4)


def test_a_poor_point_has_a_gap_that_says_so(monkeypatch):
    """A planted fault, a solver that does nothing: the gap is honest about it."""
    problem, (X, y) = Problem(Softmax(3), L2Ball(4.0), 2, ridge=0.01), stream(Softmax(3), 200)
    good = best_in_hindsight(problem, X, y)
    monkeypatch.setattr(optimum, "descend", lambda objective, domain, start, short, count: (start, False))
    poor = best_in_hindsight(problem, X, y)
    assert poor.gap >= poor.average - good.average > 0.01


@pytest.mark.parametrize("loss", [Softmax(3), OneHot(3), MultiHinge(3)], ids=str)
def test_the_largest_score_is_the_prediction(loss):
    """That of the point played: at first 0, whose scores are all the same, so that the first class is predicted."""
    problem = Problem(loss, L2Ball(9.0), 1, intercept=1.0)
    chosen = {k: np.array([[0.0, float(j == k)] for j in range(3)]).ravel() for k in range(3)}
    shown = [Release(t, k, chosen[c], chosen[c], 0.0, simulated=True) for k, (t, c) in enumerate([(2, 1), (4, 2)], 1)]
    record = replay(problem, shown, [[0.5]] * 6, [0, 1, 1, 2, 2, 0])
    assert record.correct.tolist() == [True, False, True, False, True, False]
    assert record.accuracy == 0.5
    losses = [loss.value(x, np.array([0.5, 1.0]), y) for x, y in ((np.zeros(6), 0), (chosen[1], 1), (chosen[2], 0))]
    assert record.losses[[0, 2, 5]] == pytest.approx(losses, rel=1e-12)


def test_an_exact_learner_is_a_sequence_of_releases():
    """Playing its rows at once is playing them as releases, and the regret is counted from the best fixed matrix."""
    problem, (X, y) = Problem(Softmax(3), L2Ball(3.0), 2, intercept=0.5, ridge=0.1), stream(Softmax(3), 40)
    learner = IGD(problem)
    V, labels = problem.clip(X, y)
    exact, shown = learner.start(), []
    for t in range(1, 40):
        exact = learner.absorb(exact, t - 1, V[t - 1 : t], labels[t - 1 : t], problem.first_point)
        shown.append(Release(t, t, exact["x"], exact["x"], 0.0, simulated=True))
    one, other = replay_exact(learner, X, y), replay(problem, shown, X, y)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-13)
    assert one.accuracy == other.accuracy == np.mean(one.correct)
    best = best_in_hindsight(problem, X, y)
    assert 0.0 < one.average_regret(best) <= igd_regret_bound(problem, 40) / 40.0


def test_kinks_in_several_scores_have_no_certified_optimum():
    """Said in one sentence, with what can be done; losses of any point are there all the same."""
    problem = Problem(MultiHinge(3), L2Ball(1.0), 1)
    with pytest.raises(Unprovable, match=r"MultiHinge is neither .* Compare with the losses of a fixed point"):
        best_in_hindsight(problem, [[0.5]], [0])
