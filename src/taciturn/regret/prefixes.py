"""The best fixed point of each beginning of a stream. NOT PRIVATE: it looks at exact examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.arrays import Array, Integers
from taciturn.learners.ftl import FTL
from taciturn.problem.problem import Problem


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
    from taciturn.compiled.passes import statistics

    V, y = problem.clip(X, y)
    learner, rounds = FTL(problem), np.asarray(rounds, dtype=np.int64)
    return statistics(learner, learner.start(), 0, V, y, rounds)[1]


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
