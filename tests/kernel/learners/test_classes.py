"""Learners on several classes: how near examples come to what is certified, and that they learn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn import (
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    L2Ball,
    MultiHinge,
    OneHot,
    Privacy,
    Problem,
    Softmax,
    WholeSpace,
    ewoo,
    geometric,
    grid,
    pftrl,
    pgiga,
    pigd,
    pocp,
)
from taciturn.checks.certificates import moved
from taciturn.regret import replay

SIDES = np.array([[1.0, 0.0], [-0.5, math.sqrt(0.75)], [-0.5, -math.sqrt(0.75)]])
GENEROUS = Privacy(10.0, 1e-6)
NOWHERE = np.zeros(0)


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points around three corners, well apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return 0.8 * SIDES[y] + 0.1 * rng.normal(size=(n, 2)), y


# Certificates of iterates.


def after_a_push(learner: IGD | GIGA | FTL, p: float, t: int = 20) -> float:
    """The share of the certificate that the last two of t examples use, mirrored in what the others have taught."""
    raw, q = np.tile([0.0, 1.0, 1.0], (t + 1, 1)), math.sqrt(1.0 - p * p)
    if isinstance(learner.problem.loss, Softmax):
        raw[: t - 1 : 2] = 0.0, -1.0, 0.0
    mistaken = 0.0 if isinstance(learner.problem.loss, Softmax) else 2.0
    raw[-2:] = [q, p, mistaken], [-q, p, mistaken]
    return moved(learner, raw, t - 1) / float(learner.certificate.at(t))


NEAR = {
    "igd, softmax": (IGD, Softmax(3), WholeSpace(), 0.01, 200, 0.7),
    "giga, softmax": (GIGA, Softmax(3), WholeSpace(), 0.003, 20, 0.78),
    "ftl, softmax": (FTL, Softmax(3), WholeSpace(), 0.01, 200, 0.7),
    "igd, one hot": (IGD, OneHot(3), L2Ball(1.0), 0.1, 200, 0.75),
    "giga, one hot": (GIGA, OneHot(3), L2Ball(1.0), 0.1, 20, 0.78),
    "ftl, one hot": (FTL, OneHot(3), L2Ball(1.0), 0.1, 200, 0.75),
}


@pytest.mark.privacy
@pytest.mark.parametrize("name", NEAR)
def test_two_mirrored_examples_come_near_the_certificate(name):
    """After a push to one side, taken for another class; nearer than half, so that a halved bound is passed."""
    learner, loss, domain, ridge, t, least = NEAR[name]
    made = learner(Problem(loss, domain, 2, ridge=ridge))
    assert least < after_a_push(made, 0.5, t) <= 1.0


@pytest.mark.privacy
@pytest.mark.parametrize("name", ["giga, softmax", "giga, one hot"])
def test_the_slope_of_one_column_is_caught(name, monkeypatch):
    """A bound that takes one column's slope, 1, for the length of them all."""
    learner, loss, domain, ridge, t, _ = NEAR[name]
    monkeypatch.setattr(Softmax, "steepest", lambda self, reach: 1.0)
    monkeypatch.setattr(OneHot, "target_norm", 1.0 / 3.0)
    assert after_a_push(learner(Problem(loss, domain, 2, ridge=ridge)), 0.5, t) > 1.04


# Private FTRL.


def gradient(learner: FTRL, features, label: float, point: np.ndarray) -> np.ndarray:
    """What one example adds to the sum at this point."""
    V, y = learner.problem.clip([features], [label])
    return learner.absorb(learner.start(), 0, V, y, point)["sum"]


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize(("loss", "radius"), [(Softmax(3), 100.0), (OneHot(3), 1.2), (MultiHinge(3), 2.0)], ids=str)
def test_ftrl_s_certificate_is_reached_and_not_passed(loss, radius, neighbours):
    """By mirrored examples of one class at a point that is sure of another, or by one and none."""
    learner, R = FTRL(Problem(loss, L2Ball(radius), 2, 1.5, neighbours=neighbours)), 1.5
    wrong = -loss.targets(np.array([1.0]))[0] if isinstance(loss, OneHot) else np.array([1.0, -1.0, 0.0])
    point, best = radius * np.outer(wrong / np.linalg.norm(wrong), [0.0, 1.0]).ravel(), 0.0
    for p in np.linspace(0.0, 1.0, 101):
        q = math.sqrt(1.0 - p * p)
        ends = [gradient(learner, (R * side, R * p), 1, point) for side in (q, -q)]
        other = ends[1] if neighbours == "replace" else 0.0
        best = max(best, float(np.linalg.norm(ends[0] - other)))
    assert 0.99 * float(learner.certificate.at(1)) < best <= float(learner.certificate.at(1))


@pytest.mark.privacy
@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.parametrize("kind", [Softmax, OneHot, MultiHinge])
def test_no_pair_of_gradients_passes_ftrl_s_certificate(kind, K):
    """Of random examples and points, with an intercept."""
    learner, rng = FTRL(Problem(kind(K), L2Ball(2.0), 2, 1.5, intercept=0.7)), np.random.default_rng(K)
    for _ in range(100):
        point = learner.problem.domain.project(rng.normal(size=learner.statistic_size))
        ends = [gradient(learner, 3.0 * rng.normal(size=2), rng.integers(K), point) for _ in range(2)]
        assert np.linalg.norm(ends[0] - ends[1]) <= float(learner.certificate.at(1))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.001, 1e-6), (1.0, 1e-6), (100.0, 1e-4)])
@pytest.mark.parametrize("loss", [Softmax(3), OneHot(3), MultiHinge(3)], ids=str)
def test_ftrl_stays_inside(loss, epsilon, delta):
    """Each round's point is finite and in the ball, with an intercept."""
    problem, (X, y) = Problem(loss, L2Ball(1.5), 2, intercept=1.0), stream(1000)
    private = pftrl(problem, Privacy(epsilon, delta), 1000, seed=1)
    _, releases = private.run(private.start(), X, y)
    assert len(releases) == 1000
    assert all(np.isfinite(r.point).all() and problem.domain.contains(r.point) for r in releases)
    assert private.guarantee.proven


# That they learn.


RECIPES = {
    "pftrl, softmax": (pftrl, Problem(Softmax(3), L2Ball(5.0), 2)),
    "pftrl, one hot": (pftrl, Problem(OneHot(3), L2Ball(2.0), 2, ridge=0.01)),
    "pftrl, multi hinge": (pftrl, Problem(MultiHinge(3), L2Ball(5.0), 2)),
    "pftrl, multi hinge, ridge": (pftrl, Problem(MultiHinge(3), L2Ball(5.0), 2, intercept=0.5, ridge=0.01)),
    "pftrl, intercept": (pftrl, Problem(Softmax(3), L2Ball(5.0), 2, intercept=1.0)),
    "pigd": (pigd, Problem(Softmax(3), L2Ball(5.0), 2, ridge=0.1)),
    "pgiga": (pgiga, Problem(Softmax(3), L2Ball(5.0), 2, ridge=0.1)),
    "pftl": (
        lambda problem, *args, **more: pocp(FTL(problem), *args, **more),
        Problem(Softmax(3), L2Ball(5.0), 2, ridge=0.1),
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_they_learn(name):
    """Three classes well apart, at epsilon = 10: nearly all right in the end, most on the way (fixed seed)."""
    recipe, problem = RECIPES[name]
    X, y = stream(1500, seed=2)
    private = recipe(problem, GENEROUS, 1500, schedule=geometric(1.1), seed=3)
    _, releases = private.run(private.start(), X, y)
    assert private.guarantee.proven
    assert np.mean(problem.predict(releases[-1].point, X).argmax(axis=1) == y) > 0.95
    assert replay(problem, releases, X, y).accuracy > 0.75


# EWOO over a net of matrices.


def net() -> np.ndarray:
    """The right matrix, those with two rows exchanged, a wrong one, and 0."""
    orders = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0]]
    return np.array([*(SIDES[order].ravel() for order in orders), np.zeros(6)])


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("loss", [Softmax(3), OneHot(3), MultiHinge(3)], ids=str)
def test_no_pair_moves_the_candidates_apart_by_more_than_is_certified(loss, neighbours):
    """In range, by any two examples at all angles; and some use more than a fifth of it."""
    learner = EWOO(Problem(loss, L2Ball(2.0), 2, neighbours=neighbours), net())
    angles = np.linspace(0.0, 2.0 * math.pi, 25)[:-1]
    V, y = np.tile(np.array([np.cos(angles), np.sin(angles)]).T, (3, 1)), np.repeat(np.arange(3), 24)
    V, y = learner.problem.clip(np.vstack([V, 0.3 * V]), np.concatenate([y, y]))
    rows = []
    for v, label in zip(V, y, strict=True):
        exact = learner.absorb(learner.start(), 0, v[None], label[None], NOWHERE)
        rows.append(learner.statistic(exact, 1)[1])
        plain = np.array([loss.value(x, v, label) for x in net()])
        np.testing.assert_allclose(rows[-1], plain - plain.min(), atol=1e-6)
    rows = np.array(rows)
    changes = rows[:, None] - rows[None] if neighbours == "replace" else rows
    result, bound = float(np.max(np.ptp(changes, axis=-1))), float(learner.certificate.at(1))
    assert bound / 5.0 < result <= bound


@pytest.mark.parametrize("loss", [Softmax(3), MultiHinge(3)], ids=str)
def test_ewoo_finds_the_right_matrix(loss):
    """Of six, at a generous budget (fixed seed)."""
    problem, (X, y) = Problem(loss, L2Ball(2.0), 2), stream(600, seed=4)
    private = ewoo(EWOO(problem, net()), GENEROUS, 600, schedule=geometric(1.3), seed=5)
    _, releases = private.run(private.start(), X, y)
    assert np.array_equal(releases[-1].point, net()[0])
    assert np.mean(problem.predict(releases[-1].point, X).argmax(axis=1) == y) > 0.95
    assert EWOO(problem, grid(problem.domain, 6, per_axis=2)).statistic_size == 64
