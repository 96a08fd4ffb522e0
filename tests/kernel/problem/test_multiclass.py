"""Losses of several scores: their values and slopes, and the constants that certificates rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from taciturn import InvalidInput, L2Ball, Logistic, MultiHinge, OneHot, Problem, Softmax, Squared, WholeSpace
from taciturn.kernel.problem.multiclass import ScoresLoss

KINDS = (Softmax, OneHot, MultiHinge)
LOSSES = {f"{kind.__name__}({K})": kind(K) for kind in KINDS for K in (2, 3, 7)}
FINITE = st.floats(-50.0, 50.0)


@pytest.fixture(params=LOSSES)
def loss(request) -> ScoresLoss:
    return LOSSES[request.param]


def matrix(rng: np.random.Generator, loss: ScoresLoss, width: int, radius: float) -> np.ndarray:
    """A point of that norm: its rows, one after the other."""
    x = rng.normal(size=loss.classes * width)
    return x * radius / np.linalg.norm(x)


# Values and slopes.


def by_hand(loss: ScoresLoss, u: np.ndarray, y: int) -> float:
    """The loss of one row of scores as the docstring has it, in plain arithmetic."""
    if isinstance(loss, Softmax):
        return math.log(sum(math.exp(s) for s in u)) - u[y]
    if isinstance(loss, MultiHinge):
        return max(0.0, 1.0 + max(s for k, s in enumerate(u) if k != y) - u[y])
    return 0.5 * sum((s - ((k == y) - 1.0 / loss.classes)) ** 2 for k, s in enumerate(u))


def test_values_are_those_of_the_formula(loss):
    """For every class, one example at a time and all at once."""
    rng = np.random.default_rng(1)
    U = 3.0 * rng.normal(size=(40, loss.classes))
    y = np.arange(40) % loss.classes
    plain = [by_hand(loss, u, int(k)) for u, k in zip(U, y, strict=True)]
    np.testing.assert_allclose(loss.losses(U, y.astype(float)), plain, rtol=1e-12, atol=1e-15)
    W, v = rng.normal(size=(loss.classes, 4)), rng.normal(size=4)
    for k in range(loss.classes):
        assert loss.value(W.ravel(), v, float(k)) == pytest.approx(by_hand(loss, W @ v, k), rel=1e-12)


def test_slopes_are_those_of_the_formula(loss):
    """`p - e_y`, the residual, and the wrong class that comes nearest, if it comes too near."""
    rng = np.random.default_rng(2)
    for u in 2.0 * rng.normal(size=(20, loss.classes)):
        for y in range(loss.classes):
            hit = np.arange(loss.classes) == y
            guess = np.exp(u) / np.exp(u).sum() if isinstance(loss, Softmax) else u + 1.0 / loss.classes
            if isinstance(loss, MultiHinge):
                rivals = np.where(hit, -math.inf, u)
                guess = 1.0 * (u == rivals.max() if rivals.max() > u[y] - 1.0 else hit)
            np.testing.assert_allclose(loss.slopes(u[None], np.array([y]))[0], guess - hit, atol=1e-14)


def test_gradients_are_those_of_the_values(loss):
    """By finite differences in every entry of the point, ridge included."""
    rng, h = np.random.default_rng(3), 1e-5
    problem = Problem(loss, L2Ball(3.0), 2, intercept=0.7, ridge=0.3)
    V, y = problem.clip(rng.normal(size=(6, 2)), rng.integers(loss.classes, size=6))
    x = matrix(rng, loss, 3, 2.0)
    steps = h * np.eye(problem.size)
    slopes = np.array([(problem.values(x + e, V, y) - problem.values(x - e, V, y)) / (2.0 * h) for e in steps]).T
    for v, label, slope in zip(V, y, slopes, strict=True):
        assert problem.gradient(x, v, float(label)) == pytest.approx(slope, abs=1e-8)


def test_many_examples_at_once_are_the_examples_one_by_one(loss):
    """Values, scores and the mean gradient against their slow twins."""
    rng = np.random.default_rng(4)
    problem = Problem(loss, L2Ball(3.0), 4, intercept=1.0, ridge=0.2)
    V, y = problem.clip(rng.normal(size=(9, 4)), rng.integers(loss.classes, size=9))
    x = matrix(rng, loss, 5, 1.5)
    one_by_one = [problem.data_gradient(x, v, float(label)) for v, label in zip(V, y, strict=True)]
    np.testing.assert_allclose(problem.mean_gradient(x, V, y), np.mean(one_by_one, axis=0), atol=1e-14)
    values = [loss.value(x, v, float(label)) + 0.1 * x @ x for v, label in zip(V, y, strict=True)]
    np.testing.assert_allclose(problem.values(x, V, y), values, rtol=1e-13)
    rows = x.reshape(loss.classes, 5)
    np.testing.assert_allclose(loss.scores(x, V), [[row @ v for row in rows] for v in V], atol=1e-14)


def test_two_classes_are_logistic_regression():
    """With the difference of the two rows as its point."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        W, v, y = rng.normal(size=(2, 3)), rng.normal(size=3), int(rng.integers(2))
        u, sign = float((W[1] - W[0]) @ v), 2.0 * y - 1.0
        assert Softmax(2).value(W.ravel(), v, y) == pytest.approx(float(Logistic().value(u, sign)), rel=1e-12)
        slope = float(Logistic().slope(u, sign)) * v
        assert Softmax(2).gradient(W.ravel(), v, y) == pytest.approx(np.concatenate([-slope, slope]), abs=1e-14)


@settings(max_examples=80)
@given(arrays(np.float64, (2, 3), elements=FINITE), st.floats(0.0, 1.0), st.integers(0, 2), st.sampled_from(KINDS))
def test_losses_are_convex(U, share, y, kind):
    """No value between two rows of scores lies above their chord, nor any value below a tangent."""
    loss, label = kind(3), np.array([y])
    ends = loss.losses(U, np.array([y, y]))
    between = loss.losses((share * U[0] + (1.0 - share) * U[1])[None], label)[0]
    assert between <= share * ends[0] + (1.0 - share) * ends[1] + 1e-9
    assert ends[1] >= ends[0] + loss.slopes(U[:1], label)[0] @ (U[1] - U[0]) - 1e-9


@pytest.mark.parametrize("size", [1e3, 1e9, 1e150])
def test_huge_scores_do_not_overflow(size):
    """The loss is then the gap to the largest score, and the slope that between two corners."""
    U = size * np.array([[1.0, -1.0, 0.0]])
    assert Softmax(3).losses(U, np.array([1.0]))[0] == pytest.approx(2.0 * size, rel=1e-12)
    assert Softmax(3).losses(U, np.array([0.0]))[0] == pytest.approx(0.0, abs=1e-300)
    assert Softmax(3).slopes(U, np.array([1.0]))[0].tolist() == [1.0, -1.0, 0.0]
    assert np.isfinite(OneHot(3).losses(U, np.array([1.0]))).all()
    assert MultiHinge(3).losses(U, np.array([1.0]))[0] == pytest.approx(1.0 + 2.0 * size, rel=1e-12)
    assert MultiHinge(3).losses(U, np.array([0.0]))[0] == 0.0
    assert MultiHinge(3).slopes(U, np.array([1.0]))[0].tolist() == [1.0, -1.0, 0.0]


# Targets and settings.


@pytest.mark.parametrize("K", [2, 3, 10])
def test_targets(K):
    """Unit vectors; for least squares centred, so that they sum to 0, and of the stated length."""
    y = np.arange(K)[::-1].astype(float)
    assert np.array_equal(Softmax(K).targets(y), np.eye(K)[::-1])
    centred = OneHot(K).targets(y)
    np.testing.assert_allclose(centred, np.eye(K)[::-1] - 1.0 / K, atol=1e-16)
    np.testing.assert_allclose(centred.sum(axis=1), 0.0, atol=1e-15)
    lengths = np.linalg.norm(centred, axis=1)
    assert np.max(lengths) <= OneHot(K).target_norm <= np.min(lengths) * (1.0 + 2e-9)


def test_a_row_of_targets_is_no_matrix():
    """With a hundred thousand classes an example still takes memory of their number, not of its square."""
    assert Softmax(100_000).targets(np.array([77_777.0])).sum() == 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [1, 0, -3, 2.5, math.nan, "3", None])
def test_fewer_than_two_classes_are_rejected(kind, classes):
    """And so is what is no number of classes; a float with an integer value is accepted."""
    with pytest.raises(InvalidInput, match="classes must be an integer, 2 or more"):
        kind(classes)
    assert kind(3.0) == kind(3) != kind(4)


# Constants.


def found_apart(problem: Problem, starts: int = 6) -> float:
    """The largest distance of two gradients at one point, by climbing from long examples of one class and of two."""
    rng, loss, d, best = np.random.default_rng(6), problem.loss, problem.dimension, 0.0
    for start in range(starts):
        pair = [0, start % 2]

        def nearness(raw: np.ndarray, pair: list[int] = pair) -> float:
            V, y = problem.clip(raw[: 2 * d].reshape(2, d), pair)
            x = problem.domain.project(raw[2 * d :])
            return -float(np.linalg.norm(loss.gradient(x, V[0], y[0]) - loss.gradient(x, V[1], y[1])))

        examples, x = problem.feature_bound * rng.normal(size=2 * d), problem.radius * rng.normal(size=problem.size)
        best = max(best, -float(minimize(nearness, np.concatenate([2.0 * examples, x]), options={"maxiter": 80}).fun))
    return best


@pytest.mark.privacy
@pytest.mark.parametrize("bounds", [(1.0, 1.0, 0.0), (2.0, 0.3, 0.0), (0.5, 6.0, 0.8)], ids=str)
def test_constants_hold(loss, bounds):
    """Gradients are no longer, no farther apart, and change no faster, than the problem says, the intercept's too."""
    R, B, intercept = bounds
    problem, rng = Problem(loss, L2Ball(B), 2, R, intercept=intercept), np.random.default_rng(7)
    assert found_apart(problem, starts=2) <= problem.gradient_diameter
    V, y = problem.clip(2.0 * R * rng.normal(size=(80, 2)), rng.integers(loss.classes, size=80))
    for _ in range(10):
        one, other = (problem.domain.project(2.0 * B * rng.normal(size=problem.size)) for _ in range(2))
        G, H = (np.array([problem.data_gradient(x, v, b) for v, b in zip(V, y, strict=True)]) for x in (one, other))
        assert np.max(np.linalg.norm(G, axis=1)) <= problem.lipschitz
        assert np.max(np.linalg.norm(G[:, None] - G[None], axis=2)) <= problem.gradient_diameter
        assert np.max(np.linalg.norm(G - H, axis=1)) <= problem.smoothness * np.linalg.norm(one - other) + 1e-13


@pytest.mark.privacy
def test_the_softmax_comes_within_a_percent_of_its_constants():
    """Two mirrored examples of class 0, both taken for class 1 with certainty; `2·sqrt(2)·R` and `sqrt(2)·R`."""
    R, B, p = 2.0, 100.0, 0.1
    W = np.zeros((3, 2))
    W[:2, 1] = -B / math.sqrt(2.0), B / math.sqrt(2.0)
    problem = Problem(Softmax(3), L2Ball(B), 2, R)
    q = math.sqrt(1.0 - p * p)
    V, _ = problem.clip([[R * q, R * p], [-R * q, R * p]], [0, 0])
    g, h = (problem.data_gradient(W.ravel(), v, 0.0) for v in V)
    assert problem.gradient_diameter == pytest.approx(2.0 * math.sqrt(2.0) * R, rel=1e-8)
    assert 0.99 * problem.gradient_diameter < np.linalg.norm(g - h) <= problem.gradient_diameter
    assert 0.99 * problem.lipschitz < np.linalg.norm(g) <= problem.lipschitz
    assert Problem(Softmax(3), WholeSpace(), 2, R).gradient_diameter == problem.gradient_diameter


@pytest.mark.privacy
@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 0.3), (0.5, 6.0)], ids=str)
@pytest.mark.parametrize("K", [2, 3, 7])
def test_least_squares_reaches_its_gradient_diameter(K, bounds):
    """`max_p 2(R_y + p·B)·sqrt(R² - p²)`: a search comes within a thousandth, mirrored examples nearer still."""
    R, B = bounds
    problem, labels = Problem(OneHot(K), L2Ball(B), 2, R), math.sqrt(1.0 - 1.0 / K)
    assert problem.gradient_diameter == pytest.approx(Squared().gradient_diameter(R, B, labels), rel=1e-8)
    assert 0.999 * problem.gradient_diameter < found_apart(problem) <= problem.gradient_diameter
    target = OneHot(K).targets(np.zeros(1))[0] / labels
    p = R * np.linspace(0.0, 1.0, 2001)
    V = np.array([p, np.sqrt(R * R - p * p)]).T
    W = -B * np.outer(target, [1.0, 0.0]).ravel()
    apart = [
        np.linalg.norm(problem.loss.gradient(W, v, 0.0) - problem.loss.gradient(W, v * [1.0, -1.0], 0.0)) for v in V
    ]
    assert (1.0 - 1e-5) * problem.gradient_diameter < max(apart) <= problem.gradient_diameter


@pytest.mark.privacy
def test_least_squares_reaches_its_lipschitz_constant():
    """`R·(R·B + sqrt(1 - 1/K))`, where all scores are on the wrong side; nothing bounds it on the whole space."""
    R, B, loss = 1.5, 2.0, OneHot(4)
    problem = Problem(loss, L2Ball(B), 2, R, neighbours="zero-out")
    target = loss.targets(np.array([2.0]))[0]
    W = -B * np.outer(target / np.linalg.norm(target), [0.6, 0.8]).ravel()
    result = np.linalg.norm(loss.gradient(W, R * np.array([0.6, 0.8]), 2.0))
    assert result == pytest.approx(R * (R * B + math.sqrt(0.75)), rel=1e-12)
    assert result <= problem.lipschitz <= result * (1.0 + 1e-8)
    assert problem.gradient_diameter == problem.lipschitz
    everywhere = Problem(loss, WholeSpace(), 2, R)
    assert math.isinf(everywhere.lipschitz)
    assert math.isinf(everywhere.gradient_diameter)


@pytest.mark.privacy
@pytest.mark.parametrize(("loss", "curvature"), [(Softmax(2), 0.5), (Softmax(4), 0.5), (OneHot(3), 1.0)], ids=str)
def test_the_smoothness_is_reached(loss, curvature):
    """Where two classes are equally likely and no other is."""
    R, v = 1.5, np.array([0.9, 1.2])
    at = np.full((loss.classes, 1), -40.0) * (np.arange(loss.classes) > 1)[:, None] * v
    ahead = 1e-6 * np.outer(np.eye(loss.classes)[0] - np.eye(loss.classes)[1], v).ravel()
    change = loss.gradient(at.ravel() + ahead, v, 0.0) - loss.gradient(at.ravel() - ahead, v, 0.0)
    stated = loss.smoothness(R)
    assert stated == pytest.approx(curvature * R * R, rel=1e-8)
    assert 0.9999 * stated < np.linalg.norm(change) / (2.0 * np.linalg.norm(ahead)) <= stated


class Short(OneHot):
    """Takes the largest entry of a row of labels for its length."""

    @property
    def target_norm(self) -> float:
        return 1.0 - 1.0 / self.classes


@pytest.mark.privacy
def test_a_planted_lie_is_found():
    """The same search passes the diameter of a loss that forgets the other columns."""
    problem = Problem(Short(3), L2Ball(0.5), 2)
    assert found_apart(problem) > 1.1 * problem.gradient_diameter
