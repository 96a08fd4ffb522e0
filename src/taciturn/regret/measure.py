"""Losses and accuracy of a sequence of points on a stream. NOT PRIVATE: everything here reads exact examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.multiclass import ScoresLoss
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.release import Release, Releases
from taciturn.regret.optimum import Optimum


@dataclass(frozen=True, eq=False)
class Record:
    """Losses and correct predictions of a sequence of points, round by round (not private).

    Attributes
    ----------
    losses : ndarray
        `f_t` at the point played in round t, ridge included.
    correct : ndarray of bool
        Whether the sign of its prediction was the label's, or its largest score that of the class.
    """

    losses: Array
    correct: NDArray[np.bool_]

    def average_regret(self, optimum: Optimum) -> float:
        """Mean loss above that of the best fixed point, an upper bound (not private)."""
        return float(np.mean(self.losses)) - optimum.average + optimum.gap

    def average_regrets(self, rounds: Integers, minima: Array) -> Array:
        """After each t of `rounds`, the mean loss so far above `minima` (`prefix_minima`), its least (not private).

        >>> Record(np.array([2.0, 4.0]), np.ones(2, np.bool_)).average_regrets(np.array([1, 2]), np.array([1.0, 2.75]))
        array([1.  , 0.25])
        """
        return np.asarray(np.cumsum(self.losses)[rounds - 1] / rounds - minima)

    @property
    def accuracy(self) -> float:
        """Progressive accuracy: each example is predicted before it is learnt (not private)."""
        return float(np.mean(self.correct))


def replay(problem: Problem, releases: Sequence[Release], X: Any, y: Any) -> Record:
    """Evaluate releases on a stream: the point of round t is the last one released before it (not private).

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> replay(Problem(Logistic(), L2Ball(1.0), dimension=1), [], [[0.5]], [1]).losses.round(3)
    array([0.693])
    """
    V, y = problem.clip(X, y)
    losses, correct = np.empty(len(y)), np.empty(len(y), dtype=np.bool_)
    if isinstance(releases, Releases):  # of which each item would be a copy
        points, starts = [problem.first_point, *releases.points], [0, *releases.rounds.tolist()]
    else:
        points = [problem.first_point, *(release.point for release in releases)]
        starts = [0, *(release.t for release in releases)]
    for point, start, end in zip(points, starts, [*starts[1:], len(y)], strict=True):
        played = slice(start, end)
        losses[played], correct[played] = _outcome(problem, point, V[played], y[played])
    return Record(losses, correct)


def replay_exact(learner: Learner, X: Any, y: Any) -> Record:
    """The same for a learner without noise, its statistic used as the point after every example (not private).

    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> replay_exact(IGD(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=1.0)), [[1.0]], [1]).losses.round(3)
    array([0.693])
    """
    problem = learner.problem
    V, y = problem.clip(X, y)
    exact = learner.start()
    point = problem.first_point
    losses, correct = np.empty(len(y)), np.empty(len(y), np.bool_)
    for t in range(len(y)):
        now = slice(t, t + 1)
        losses[now], correct[now] = _outcome(problem, point, V[now], y[now])
        exact, row = learner.statistic(learner.absorb(exact, t, V[now], y[now], point), t + 1)
        point = learner.decide(t + 1, row, 0.0)
    return Record(losses, correct)


def _outcome(problem: Problem, point: Array, V: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Losses of a point, and whether its predictions have the labels' signs, or its largest scores are the classes'."""
    if isinstance(problem.loss, ScoresLoss):
        return problem.values(point, V, y), np.argmax(problem.loss.scores(point, V), axis=1) == y
    return problem.values(point, V, y), np.where(V @ point > 0.0, 1.0, -1.0) == y
