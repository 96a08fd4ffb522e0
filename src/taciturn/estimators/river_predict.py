"""Scores of one row at a time, in a few microseconds. Slow twin: `taciturn.problem.problem.Problem.predict`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.arrays import Array
from taciturn.estimators.dict_rows import Features, Row
from taciturn.problem.clipping import longest_row
from taciturn.problem.predict import coefficients
from taciturn.problem.problem import Problem


class RowScores:
    """`v·x` at a released point for the row of one example, scaled down if it is too long: a float, or one a class.

    >>> from taciturn import L2Ball, Logistic
    >>> from taciturn.estimators.dict_rows import NamedFeatures
    >>> problem, named = Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=1.0), NamedFeatures(["a", "b"])
    >>> round(RowScores(problem, np.array([0.6, 0.0, 0.1]), named)(named.row({"a": 0.5})), 12)
    0.4
    """

    def __init__(self, problem: Problem, point: Array, features: Features) -> None:
        self.point, self._problem, self._features = point, problem, features
        self._longest = longest_row(problem.feature_bound, problem.dimension)
        weights, constants = coefficients(problem, point)
        self._several = problem.outputs > 1
        self._weights = np.ascontiguousarray(weights if self._several else weights[0])
        self._constant: Any = constants if self._several else float(constants[0])

    def __call__(self, row: Row) -> Any:
        entries, weights = self._features.meet(row, self._weights)
        length = math.hypot(*entries.tolist())
        if not length < 1e280:  # near the end of floating point, or a bad row
            return self._problem.predict(self.point, self._features.block([row]))[0]
        if length > self._longest:
            entries = entries * (self._longest / length)
        scores = weights.dot(entries) + self._constant
        return scores if self._several else float(scores)
