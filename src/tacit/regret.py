"""Regret, accuracy and the theorems' bounds. NOT PRIVATE: everything measured here looks at exact examples.

Keep these numbers on the trusted side: no guarantee of this package covers them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.exact import Privacy
from tacit.arrays import Array
from tacit.contracts import Learner
from tacit.core import Private, Release
from tacit.errors import Unprovable
from tacit.learners.iterate import IterateLearner
from tacit.problem.problem import Problem
from tacit.problem.scalar import ScalarLoss


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best fixed point in hindsight: `average` is its mean loss, at most `gap` above the true minimum."""

    point: Array
    average: float
    gap: float


@dataclass(frozen=True, eq=False)
class Record:
    """What a sequence of points did on a stream, round by round (not private).

    Attributes
    ----------
    losses : ndarray
        `f_t` at the point played in round t, ridge included.
    correct : ndarray of bool
        Whether the sign of its prediction was the label's.
    """

    losses: Array
    correct: NDArray[np.bool_]

    def average_regret(self, optimum: Optimum) -> float:
        """Mean loss above that of the best fixed point, an upper bound (not private)."""
        return float(np.mean(self.losses)) - optimum.average + optimum.gap

    @property
    def accuracy(self) -> float:
        """Progressive accuracy: each example is predicted before it is learnt (not private)."""
        return float(np.mean(self.correct))


def replay(problem: Problem, releases: Sequence[Release], X: Any, y: Any) -> Record:
    """Play the stream again: the point of round t is the last one released before it (not private).

    >>> from tacit import L2Ball, Logistic, Problem
    >>> replay(Problem(Logistic(), L2Ball(1.0), dimension=1), [], [[0.5]], [1]).losses.round(3)
    array([0.693])
    """
    V, y = problem.bound(X, y)
    losses, correct = np.empty(len(y)), np.empty(len(y), dtype=np.bool_)
    points = [problem.first_point, *(release.point for release in releases)]
    starts = [0, *(release.t for release in releases)]
    for point, start, end in zip(points, starts, [*starts[1:], len(y)], strict=True):
        played = slice(start, end)
        losses[played], correct[played] = _outcome(problem, point, V[played], y[played])
    return Record(losses, correct)


def replay_exact(learner: Learner, X: Any, y: Any) -> Record:
    """The same for a learner without noise, its row used as the point at once after every example (not private).

    >>> from tacit import IGD, L2Ball, Logistic, Problem
    >>> replay_exact(IGD(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=1.0)), [[1.0]], [1]).losses.round(3)
    array([0.693])
    """
    problem = learner.problem
    V, y = problem.bound(X, y)
    exact, point, losses, correct = learner.start(), problem.first_point, np.empty(len(y)), np.empty(len(y), np.bool_)
    for t in range(len(y)):
        now = slice(t, t + 1)
        losses[now], correct[now] = _outcome(problem, point, V[now], y[now])
        exact, row = learner.hand_over(learner.absorb(exact, t, V[now], y[now], point), t + 1)
        point = learner.decide(t + 1, row, 0.0)
    return Record(losses, correct)


def best_in_hindsight(problem: Problem, X: Any, y: Any, tolerance: float = 1e-9) -> Optimum:
    """The minimiser of the mean loss over the domain, by accelerated projected gradient (not private).

    Stops when the certified gap is below `tolerance`: with `G` the gradient mapping of an alpha-strongly convex
    function, `F(x) - min F ≤ ‖G‖²/(2·alpha)` (Nesterov, *Introductory Lectures on Convex Optimization*, 2004,
    Theorem 2.2.7).

    >>> from tacit import L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(9.0), dimension=1, label_bound=1.0, ridge=1.0)
    >>> best_in_hindsight(problem, [[1.0], [1.0]], [1.0, 1.0]).point.round(6)
    array([0.5])
    """
    loss = problem.loss
    if not (isinstance(loss, ScalarLoss) and math.isfinite(problem.smoothness) and problem.ridge > 0.0):
        raise Unprovable(
            "the certified optimum needs a smooth scalar loss and a ridge above 0. Use Logistic, Squared or Huber."
        )
    V, y = problem.bound(X, y)

    def gradient(x: Array) -> Array:
        return np.asarray(V.T @ loss.slope(V @ x, y) / len(y) + problem.ridge * x, dtype=np.float64)

    x, gap = _accelerated(gradient, problem, tolerance)
    return Optimum(x, float(np.mean(problem.values(x, V, y))), gap)


def igd_regret_bound(problem: Problem, horizon: int) -> float:
    """Regret of exact IGD: `(alpha/2)·D² + L²/(2·alpha)·(1 + ln T)`, D the diameter, L with the ridge.

    *Proof.* With `eta = 1/(alpha·t)`, strong convexity of the implicit objective at x* and `f(x_t) - f(x_{t+1}) ≤ L·r`,
    `r = ‖x_t - x_{t+1}‖`, give `f_t(x_t) - f_t(x*) ≤ (alpha·t/2)·D_t² - (alpha·(t+1)/2)·D_{t+1}² + L²/(2·alpha·t)`,
    where `D_t = ‖x_t - x*‖`; sum over t. ∎

    >>> from tacit import L2Ball, Logistic, Problem
    >>> igd_regret_bound(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=1.0), 1000) < 14.0
    True
    """
    alpha, diameter = problem.ridge, problem.domain.diameter(problem.size)
    lipschitz = problem.lipschitz_with_ridge
    return alpha / 2.0 * diameter**2 + lipschitz**2 / (2.0 * alpha) * (1.0 + math.log(horizon))


def fading_regret_bound(problem: Problem, strength: float, horizon: int) -> float:
    """Regret of exact `FadingIGD`: `½·D²·(A_1 + Σ alpha_t) + Σ (L + alpha_t·D)²/(2·A_t)`, of order `T^(3/4)`.

    *Proof.* As for IGD, on the perturbed losses, whose Lipschitz constant is `L + alpha_t·D`:
    `f_t(x_t) - f_t(x*) ≤ (A_t/2)·D_t² - ((A_t + alpha_t)/2)·D_{t+1}² + (L + alpha_t·D)²/(2·A_t)`, which telescopes, as
    `A_{t+1} ≤ A_t + alpha_t`; and the perturbation costs x* at most `(alpha_t/2)·D²` a round. ∎

    >>> from tacit import Hinge, L2Ball, Problem
    >>> problem = Problem(Hinge(), L2Ball(1.0), dimension=2)
    >>> 15.0 < fading_regret_bound(problem, 1.0, 100_000) / fading_regret_bound(problem, 1.0, 2_500) < 16.0
    True
    """
    diameter, t = problem.domain.diameter(problem.size), np.arange(1.0, horizon + 1.0)
    weights, totals = strength * t**-0.25, 4.0 / 3.0 * strength * t**0.75
    steps = (problem.lipschitz + weights * diameter) ** 2 / (2.0 * totals)
    return float(diameter**2 / 2.0 * (totals[0] + weights.sum()) + steps.sum())


def pocp_regret_bound(problem: Problem, sensitivity: float, privacy: Privacy, horizon: int) -> float:
    """What Theorem 2 of the paper adds to the exact learner's regret, given `S(t) ≤ lam/t`.

    `2·sqrt(d)·L·(lam + ‖C‖)·sqrt(T)·ln²(T/delta)/sqrt(epsilon)`, in the paper's own parameters (epsilon, delta).
    """
    size = problem.lipschitz_with_ridge * (sensitivity + problem.domain.diameter(problem.size))
    growth = math.sqrt(problem.size * horizon / privacy.epsilon) * math.log(horizon / privacy.delta) ** 2
    return 2.0 * size * growth


def noise_regret_bound(private: Private) -> float:
    """What the noise really added can add to the regret: `L·(‖C‖ + Σ_t sqrt(d)·sigma_t)`, from the proof of Theorem 2.

    Only for a release after every example, as in the theorem.
    """
    problem, horizon = private.learner.problem, private.timetable.horizon
    if not isinstance(private.learner, IterateLearner) or horizon is None or len(private.timetable.rounds) != horizon:
        raise Unprovable(
            "the bound is for learners that hand over iterates, released every round. State a horizon and use every(1)."
        )
    spread = math.sqrt(problem.size) * sum(private.calibrated.noise_sd(k) for k in range(1, horizon))
    return problem.lipschitz_with_ridge * (problem.domain.diameter(problem.size) + spread)


def _outcome(problem: Problem, point: Array, V: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Losses of a point, and whether its predictions have the labels' signs."""
    return problem.values(point, V, y), np.where(V @ point > 0.0, 1.0, -1.0) == y


def _accelerated(gradient: Callable[[Array], Array], problem: Problem, tolerance: float) -> tuple[Array, float]:
    """Nesterov's method with constant momentum; returns a point and its certified gap."""
    alpha, smoothness = problem.ridge, problem.smoothness
    momentum = (1.0 - math.sqrt(alpha / smoothness)) / (1.0 + math.sqrt(alpha / smoothness))
    x = ahead = problem.first_point
    while True:
        following = problem.domain.project(ahead - gradient(ahead) / smoothness)
        mapping = smoothness * (ahead - following)
        gap = float(mapping @ mapping) / (2.0 * alpha)
        x, ahead = following, following + momentum * (following - x)
        if gap <= tolerance:
            return x, gap
