"""The best fixed point in hindsight, and how far it may be from best. NOT PRIVATE: it reads exact examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from taciturn.errors import InvalidInput, Unprovable, positive
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss
from taciturn.methods.ftl import FTL
from taciturn.methods.optimize import Objective, descend, mean_loss

_STEPS = 4_000  # with momentum, where Newton's method does not end it
_ROUNDING = 2.0**-44


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best fixed point in hindsight: `average` is its mean loss, at most `gap` above the true minimum."""

    point: Array
    average: float
    gap: float


def best_in_hindsight(problem: Problem, X: Any, y: Any, tolerance: float = 1e-9) -> Optimum:
    """The minimiser of the mean loss over the domain, whatever the loss and the set, and a certified gap (not private).

    The data term is at least `c + g·z` at every z, a mean of tangents (`taciturn.methods.optimize`), so the minimum is
    at least `c + min over z in C of g·z + (alpha/2)‖z‖²`, attained at `z = Proj(-g/alpha)`; the gap is what lies
    between that and the loss at the point found. Without a ridge a small one is added, and its largest value on the set
    subtracted. Kinks are smoothed over shrinking widths, until the gap is below `tolerance` or shrinks no more.

    >>> from taciturn import Absolute, Box, Problem
    >>> problem = Problem(Absolute(), Box(-1.0, 1.0), dimension=1, label_bound=1.0)
    >>> best = best_in_hindsight(problem, [[1.0]] * 3, [0.1, 0.2, 0.9])
    >>> best.point.round(6), best.gap < 1e-8
    (array([0.2]), True)
    """
    _check(problem)
    tolerance = positive("tolerance", tolerance)
    V, y = problem.clip(X, y)
    if len(y) == 0:
        raise InvalidInput("no point is best without examples. Give one or more.")
    lent = 0.0 if problem.ridge > 0.0 else tolerance / problem.radius**2
    x, best = problem.first_point, None
    for count, width in product((0, _STEPS), _widths(problem)):
        objective = mean_loss(problem, V, y, problem.ridge + lent, width)
        x = descend(objective, problem.domain, x, 2.0**-50, count)[0]
        average = float(np.mean(problem.values(x, V, y)))
        gap = average - _least(objective, problem, x, lent) + _ROUNDING * (1.0 + abs(average))
        if best is None or gap < best.gap:
            best = Optimum(x, average, gap)
        if best.gap <= tolerance:
            break
    assert best is not None
    return best


def _least(objective: Objective, problem: Problem, x: Array, lent: float) -> float:
    """A lower bound on the mean loss over the domain."""
    constant, g = objective.below(x)
    z = problem.domain.project(-g / objective.ridge)
    return constant + float(g @ z + 0.5 * objective.ridge * z @ z) - (0.5 * lent * problem.radius**2 if lent else 0.0)


def _widths(problem: Problem) -> list[float]:
    """Widths for smoothing kinks: 0, or a decreasing sequence."""
    if not isinstance(problem.loss, ScalarLoss) or math.isfinite(problem.loss.curvature):
        return [0.0]
    radius = min(problem.radius, problem.lipschitz / problem.ridge if problem.ridge > 0.0 else math.inf)
    return [problem.norm_bound * radius * 2.0**-power for power in range(10, 42, 3)]


def _check(problem: Problem) -> None:
    if problem.ridge == 0.0 and not math.isfinite(problem.radius):
        raise Unprovable("losses without a ridge may have no best point. Bound the domain, or give a ridge.")
    if not isinstance(problem.loss, ScalarLoss) and not math.isfinite(problem.smoothness):
        raise Unprovable(
            f"{type(problem.loss).__name__} is neither a ScalarLoss nor smooth, so no optimum can be certified. "
            "Compare with the losses of a fixed point (Problem.values), state a finite smoothness, or write the loss "
            "as a function of v·x."
        )


def prefix_leaders(problem: Problem, X: Any, y: Any, rounds: Integers) -> Array:
    """For each of `rounds` the best point of the examples up to it, one a row, in one pass (not private).

    That is the leader of `taciturn.FTL`, so the problem needs a ridge; each is within a billionth of `Gd/(alpha·t)`,
    and what rounding errors allow, of the exact one.

    >>> from taciturn import L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(9.0), dimension=1, label_bound=9.0, ridge=1.0)
    >>> prefix_leaders(problem, [[1.0], [1.0]], [2.0, 4.0], np.array([1, 2])).round(6)
    array([[1. ],
           [1.5]])
    """
    from taciturn.kernel.replay import replay

    V, y = problem.clip(X, y)
    learner, rounds = FTL(problem), np.asarray(rounds, dtype=np.int64)
    return replay(learner, V, y, rounds, compiled=True).statistics


def prefix_minima(problem: Problem, X: Any, y: Any, rounds: Integers) -> Array:
    """For each t of `rounds` the least mean loss of the first t examples, at their leader (not private).

    What `Record.average_regrets` is measured against. A leader that is off by `tau` loses no more than `tau` times the
    Lipschitz constant of the losses, ridge included.

    >>> from taciturn import L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(9.0), dimension=1, label_bound=9.0, ridge=1.0)
    >>> prefix_minima(problem, [[1.0], [1.0]], [2.0, 4.0], np.array([1, 2])).round(6)
    array([1.  , 2.75])
    """
    V, labels = problem.clip(X, y)
    leaders = prefix_leaders(problem, X, y, rounds)
    means = [np.mean(problem.values(x, V[:t], labels[:t])) for x, t in zip(leaders, rounds, strict=True)]
    return np.array(means, dtype=np.float64)
