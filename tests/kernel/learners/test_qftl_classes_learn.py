"""Follow the leader on private sums with several classes: the point it decides on, and that it learns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernel.mechanisms.strategies import STRATEGIES
from taciturn import FTL, QFTL, L2Ball, OneHot, Privacy, Problem, Softmax, Squared, Unprovable, every, geometric, pqftl
from taciturn.kernel.problem.svec import packed
from taciturn.regret import replay

NOWHERE = np.zeros(0)
CLASSES = [2, 3, 7]


def problem(K: int = 3, R: float = 1.0, **settings) -> Problem:
    return Problem(OneHot(K), settings.pop("domain", L2Ball(1.0)), 2, R, **settings)


# The point.


def stream(n: int, K: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Directions of the plane, in K sectors, those near a border left out; so few bits that none is ever cut off."""
    rng, sector = np.random.default_rng(seed), 2.0 * math.pi / K
    angles = rng.uniform(0.0, 2.0 * math.pi, 4 * n)
    offset = np.mod(angles, sector)
    kept = angles[np.minimum(offset, sector - offset) > 0.25][:n]
    return np.rint(58.0 * np.array([np.cos(kept), np.sin(kept)]).T) / 64.0, np.floor(kept / sector)


def decided(learner: QFTL, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The point without noise."""
    V, y = learner.problem.clip(X, y)
    exact = learner.absorb(learner.start(), 0, V, y, NOWHERE)
    return learner.decide(len(y), learner.statistic(exact, len(y))[1], 0.0)


def regressions(p: Problem, X: np.ndarray, y: np.ndarray, extra: float = 0.0) -> np.ndarray:
    """Ridge regression on the column of each class by itself."""
    V, y = p.clip(X, y)
    H = V.T @ V + (p.ridge * len(y) + extra) * np.eye(p.width)
    K = p.outputs
    return np.concatenate([np.linalg.solve(H, V.T @ (np.where(y == k, 1.0, 0.0) - 1.0 / K)) for k in range(K)])


@pytest.mark.parametrize("intercept", [0.0, 0.75])
@pytest.mark.parametrize("extra", [0.0, 2.5])
@pytest.mark.parametrize("weight", [None, 0.2, 7.0])
def test_without_noise_it_is_the_leader(weight, extra, intercept):
    """A ridge regression for each class, and FTL on the same examples, where the constraint is inactive."""
    p, (X, y) = problem(4, domain=L2Ball(50.0), ridge=0.3, intercept=intercept), stream(50, 4)
    result, leader = decided(QFTL(p, extra, weight), X, y), FTL(p, extra)
    np.testing.assert_allclose(result, regressions(p, X, y, extra), atol=1e-6)
    V, y = p.clip(X, y)
    row = leader.statistic(leader.absorb(leader.start(), 0, V, y, NOWHERE), len(y))[1]
    assert np.linalg.norm(row - result) <= float(leader.certificate.at(len(y))) / 2000.0


class ForgetsWeight(QFTL):
    """Does not divide the labels' sums by their weight."""

    def decide(self, t, noisy, noise_sd):
        size = self.problem.size
        return super().decide(t, np.concatenate([noisy[:-size], noisy[-size:] * self.weight]), noise_sd)


class Transposed(QFTL):
    """Takes the sums of labels for one row an entry of the features, not one a class."""

    def decide(self, t, noisy, noise_sd):
        size = self.problem.size
        turned = noisy[-size:].reshape(self.problem.width, -1).T.ravel()
        return super().decide(t, np.concatenate([noisy[:-size], turned]), noise_sd)


@pytest.mark.parametrize("fault", [ForgetsWeight, Transposed])
def test_a_fault_in_the_point_is_caught(fault):
    """Its distance from the regressions is more than the half of them."""
    p, (X, y) = problem(4, domain=L2Ball(50.0), ridge=0.3), stream(50, 4)
    right = regressions(p, X, y)
    assert np.linalg.norm(decided(fault(p, weight=3.0), X, y) - right) > 0.5 * np.linalg.norm(right)


def test_two_classes_are_one_label_of_two_signs():
    """Each row is half the single column's point, one with the other sign; so predictions are the same."""
    rng = np.random.default_rng(4)
    X = np.rint(16.0 * np.clip(rng.normal(size=(80, 2)), -2.0, 2.0)) / 64.0
    y = (X @ [0.6, -0.8] + 0.3 * rng.normal(size=80) > 0.0).astype(float)
    signs = Problem(Squared(), L2Ball(50.0), 2, label_bound=1.0, ridge=0.2, intercept=0.5)
    classes = replace(signs, loss=OneHot(2))
    x, W = decided(QFTL(signs), X, 2.0 * y - 1.0), decided(QFTL(classes), X, y)
    np.testing.assert_allclose(W, np.concatenate([-x, x]) / 2.0, atol=1e-6)
    guessed = classes.predict(W, X).argmax(axis=1)
    assert np.array_equal(guessed, signs.predict(x, X) > 0.0)
    assert 0 < guessed.sum() < 80


def shift(learner: QFTL, t: int, sd: float) -> float:
    """What is added to the matrix, read off the point of a thousand times the identity."""
    labels = np.zeros(learner.problem.size)
    labels[0] = learner.weight
    point = learner.decide(t, np.concatenate([packed(1e3 * np.eye(learner.problem.width)), labels]), sd)
    return 1.0 / float(point[0]) - 1e3


def test_the_noise_of_all_columns_is_shifted_away():
    """`alpha·t + extra + lam`; lam grows with the noise as `sqrt(2X² + K/w²)`, by the factor that one label has."""
    R_y, w, ridge = math.sqrt(2.0 / 3.0), 0.6, 0.05
    single = Problem(Squared(), L2Ball(1.0), 2, label_bound=R_y, ridge=ridge)
    longest = min(1.0, R_y / (2.0 * math.sqrt(ridge)))
    result = {p.outputs: shift(QFTL(p, 0.4, w), 7, 2.0) - 7.0 * ridge - 0.4 for p in (single, problem(ridge=ridge))}
    lengths = {K: math.sqrt(2.0 * longest**2 + K / w**2) for K in (1, 3)}
    assert result[3] / result[1] == pytest.approx(lengths[3] / lengths[1], rel=1e-8)
    assert result[1] > lengths[1]
    assert shift(QFTL(problem(ridge=ridge), 0.4, w), 7, 0.0) == pytest.approx(7.0 * ridge + 0.4, abs=1e-8)


@settings(max_examples=60)
@given(
    labels=arrays(np.float64, (3, 2), elements=st.floats(-30.0, 30.0)),
    values=st.tuples(*[st.sampled_from([-1e4, -3e3, 0.0, 0.1, 5.0, 700.0])] * 2),
    angle=st.floats(0.0, 3.0),
    sd=st.floats(0.0, 9.0),
    t=st.integers(1, 50),
)
def test_the_point_is_that_of_the_docstring(labels, values, angle, sd, t):
    """Its slow twin: eigenvalues below 0 floored, shift, solve for each class, project all of them together."""
    learner = QFTL(problem(domain=L2Ball(0.7), ridge=0.8), extra_ridge=0.4, weight=1.7)
    across = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    V = across @ np.diag(values) @ across.T
    H = across @ np.diag(np.maximum(values, 0.0)) @ across.T + shift(learner, t, sd) * np.eye(2)
    x = np.concatenate([np.linalg.solve(H, u / 1.7) for u in labels])
    x *= min(1.0, 0.7 / max(np.linalg.norm(x), 1e-300))
    np.testing.assert_allclose(learner.decide(t, np.concatenate([packed(V), labels.ravel()]), sd), x, atol=1e-7)


@pytest.mark.parametrize("K", CLASSES)
def test_the_weight_makes_the_noise_least(K):
    """`Delta²·(2x² + K/w²)`, at the length of a likely leader, is no smaller at any other weight."""
    for R, ridge in ((1.0, 0.0), (0.3, 4.0), (3.0, 0.01)):
        learner = QFTL(problem(K, R, ridge=ridge))
        longest = min(1.0, math.sqrt(1.0 - 1.0 / K) / (2.0 * math.sqrt(ridge))) if ridge else 1.0

        likely = min(longest / 2.0, learner.label_bound / learner.problem.norm_bound)

        def noise(w, learner=learner, likely=likely):
            return float(QFTL(learner.problem, weight=w).certificate.at(1)) ** 2 * (2.0 * likely**2 + K * w**-2)

        others = learner.weight * np.exp(np.linspace(-3.0, 3.0, 61))
        assert noise(learner.weight) <= min(noise(w) for w in others) * (1.0 + 1e-6)


def test_no_leader_is_longer_than_is_said():
    """`R_y/(2·sqrt(alpha))` for all rows together, reached where `‖V‖ = sqrt(alpha·t)`."""
    p = problem(4, domain=L2Ball(9.0), ridge=0.25)
    W = decided(QFTL(p), np.tile([0.5, 0.0], (20, 1)), np.zeros(20))
    assert np.linalg.norm(W) == pytest.approx(math.sqrt(0.75) / (2.0 * 0.5), rel=1e-6)


# Whole runs.


@settings(max_examples=24)
@given(
    exponent=st.floats(-3.0, 1.4),
    name=st.sampled_from(list(STRATEGIES)),
    K=st.sampled_from(CLASSES),
    intercept=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 999),
)
def test_every_round_s_point_is_in_the_domain(exponent, name, K, intercept, seed):
    """From epsilon = .001 to 25, for every strategy, with an intercept too."""
    p, rng = problem(K, domain=L2Ball(0.5), intercept=intercept), np.random.default_rng(seed)
    private = pqftl(p, Privacy(10.0**exponent, 1e-6), 24, strategy=STRATEGIES[name], seed=seed)
    _, releases = private.run(private.start(), rng.normal(size=(24, 2)), rng.integers(K, size=24))
    assert len(releases) == 24
    assert all(p.domain.contains(r.point) and np.isfinite(r.point).all() for r in releases)
    assert private.guarantee.proven


@pytest.mark.parametrize("K", CLASSES)
def test_a_hundredfold_budget_is_no_exception(K):
    """Epsilon = 100, where there is next to no noise; a direction and all classes but two are never seen."""
    p, X = problem(K, domain=L2Ball(0.5)), np.zeros((1000, 2))
    X[:, 0] = np.random.default_rng(0).normal(size=1000)
    private = pqftl(p, Privacy(100.0, 1e-4), 1000, seed=0)
    _, releases = private.run(private.start(), X, X[:, 0] > 0.0)
    assert all(p.domain.contains(r.point) and np.isfinite(r.point).all() for r in releases)


@pytest.mark.parametrize("schedule", [every(1), geometric(1.1)])
def test_it_learns(schedule):
    """Three classes with a margin, at epsilon = 10: nearly all right in the end, most on the way (fixed seed)."""
    p, (X, y) = problem(domain=L2Ball(2.0)), stream(2000, seed=1)
    private = pqftl(p, Privacy(10.0, 1e-6), 2000, schedule=schedule, seed=3)
    _, releases = private.run(private.start(), X, y)
    assert np.mean(p.predict(releases[-1].point, X).argmax(axis=1) == y) > 0.95
    assert replay(p, releases, X, y).accuracy > 0.8


def test_it_learns_frequencies_by_the_intercept():
    """Features that say nothing: the most frequent class is predicted (fixed seed)."""
    p, rng = problem(4, domain=L2Ball(2.0), intercept=1.0), np.random.default_rng(5)
    y = rng.choice(4, size=1500, p=[0.2, 0.2, 0.4, 0.2])
    X = 0.1 * rng.normal(size=(1500, 2))
    release = pqftl(p, Privacy(10.0, 1e-6), 1500, schedule=geometric(1.1), seed=6).fit(X, y)
    assert np.mean(p.predict(release.point, X).argmax(axis=1) == 2) > 0.99


def test_no_cut_of_the_stream_changes_a_bit():
    """Contributions are added exactly."""
    p, (X, y) = problem(intercept=0.5), stream(60)
    private = pqftl(p, Privacy(2.0, 1e-6), 60, schedule=every(7), seed=5)
    _, whole = private.run(private.start(), X, y)
    state, parts = private.start(), []
    for start, end in ((0, 1), (1, 20), (20, 21), (21, 60)):
        state, more = private.run(state, X[start:end], y[start:end])
        parts += more
    assert [(r.t, r.point.tobytes()) for r in whole] == [(r.t, r.point.tobytes()) for r in parts]


def test_other_losses_of_several_scores_are_rejected():
    """With a remedy."""
    with pytest.raises(Unprovable, match="private FTRL for other losses"):
        QFTL(Problem(Softmax(3), L2Ball(1.0), 2))
