"""NOT PRIVATE: progressive accuracy or error of the models, and the numbers of clipped and bad rows.

These numbers are computed from exact data. They stay on the trusted side: in the secret state, and in a report that is
labelled NOT PRIVATE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.columns.labels import classes_of
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.problem.problem import Problem

_BINS = 64
_VALUES = 2**20  # entries of mapped rows that are evaluated at once
_ROUNDED_UP = 1.0 + 1e-9  # the norm of a row that was scaled to the bound equals it up to rounding
_COLUMNS = ("rows", "loss", "error", "clipped", "bad")


@dataclass
class BadRowCount:
    """How many of the rows after the first `first` are bad, in one process.

    >>> counted = BadRowCount(first=10)
    >>> counted.add(np.array([1.0, np.nan]))
    >>> counted.as_data()
    {'from_row': 10, 'to_row': 12, 'bad_rows': 1}
    """

    first: int
    rows: int = 0
    bad: int = 0

    def add(self, y: Array) -> None:
        """Add rows, by their labels, which are NaN for bad rows."""
        self.count(len(y), int(np.isnan(y).sum()))

    def count(self, rows: int, bad: int) -> None:
        """Add so many rows, of which so many are bad."""
        self.rows += rows
        self.bad += bad

    def as_data(self) -> dict[str, int]:
        """As plain data."""
        return {"from_row": self.first, "to_row": self.first + self.rows, "bad_rows": self.bad}


class Diagnostics:
    """Progressive validation: sums over at most 64 bins of equal length, which doubles when all bins are full.

    Each block of the stream is evaluated by the model in use when it began, which has seen no row of the block.

    Parameters
    ----------
    problem : Problem
        The problem that is learnt.
    classifies : bool
        Whether labels are classes, and not numbers.
    t : int
        Number of rows before the first one that is evaluated.
    restored : dict of ndarray, optional
        The result of `arrays` at the last checkpoint; it is not used if rows were learnt without diagnostics since.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic
    >>> watch = Diagnostics(Problem(Logistic(), L2Ball(1.0), dimension=1, on_bad="zero"), classifies=True)
    >>> watch(np.array([[0.5], [3.0], [np.nan]]), np.array([1.0, 1.0, -1.0]), np.array([0.1]))
    >>> {name: watch.as_data()[name] for name in ("accuracy", "clipped_share", "bad_rows")}
    {'accuracy': 1.0, 'clipped_share': 0.5, 'bad_rows': 1}
    """

    def __init__(self, problem: Problem, classifies: bool, t: int = 0, restored: Arrays | None = None) -> None:
        self.problem = problem
        self.classifies = classifies
        self.t = t
        self.first = t
        self.width = 256
        self.sums = np.zeros((_BINS, len(_COLUMNS)))
        if restored and int(restored["where"][-1]) == t:
            self.sums = np.array(restored["sums"])
            self.width, self.first, _ = (int(number) for number in restored["where"])

    def __call__(self, X: Array, y: Array, model: Array, problem: Problem | None = None) -> None:
        """Add the next rows, evaluated by the model in use before them, and by its problem, if that has changed."""
        self.problem = problem or self.problem
        while self.t // self.width >= _BINS:
            self.sums[: _BINS // 2] = self.sums[0::2] + self.sums[1::2]
            self.sums[_BINS // 2 :] = 0.0
            self.width *= 2
        most = max(1, _VALUES // self.problem.width)
        for start in range(0, len(y), most):
            self.sums[self.t // self.width] += self._evaluate(X[start : start + most], y[start : start + most], model)
        self.t += len(y)

    def _evaluate(self, X: Array, y: Array, model: Array) -> Array:
        Z = self.problem.mapped(X)
        good = np.isfinite(Z).all(axis=1) & np.isfinite(y)
        X, y, Z = X[good], y[good], Z[good]
        V, labels = self.problem.clip(X, y)
        long = np.linalg.norm(Z, axis=1) > self.problem.feature_bound * _ROUNDED_UP
        errors = self._errors(model, V, labels)
        losses = self.problem.values(model, V, labels)
        return np.array([len(y), losses.sum(), errors.sum(), long.sum(), len(good) - len(y)], dtype=np.float64)

    def _errors(self, model: Array, V: Array, labels: Array) -> Array:
        """Zero-one errors of classes; absolute errors of numbers."""
        width = self.problem.width
        scores = V @ model if self.problem.outputs == 1 else V @ model.reshape(-1, width).T
        if not self.classifies:
            return np.asarray(np.abs(scores - labels) * self.problem.label_scale)
        return np.asarray(classes_of(scores) != (labels > 0.0 if scores.ndim == 1 else labels), dtype=np.float64)

    def arrays(self) -> Arrays:
        """Data for the secret state."""
        return {"sums": self.sums, "where": np.array([self.width, self.first, self.t])}

    def as_data(self) -> dict[str, Any]:
        """Means over all evaluated rows, and over each bin."""
        rows, loss, error, clipped, bad = self.sums.sum(axis=0).tolist()
        share = 1.0 / max(rows, 1.0)
        name = "accuracy" if self.classifies else "mean_absolute_error"
        used = [i for i in range(_BINS) if self.sums[i, 0] > 0.0]
        errors = [float(self.sums[i, 2] / self.sums[i, 0]) for i in used]
        return {
            name: 1.0 - error * share if self.classifies else error * share,
            "mean_loss": loss * share,
            "clipped_share": clipped * share,
            "bad_rows": int(bad),
            "from_row": self.first,
            "to_row": self.t,
            "measure": name,
            "curve": [
                ((i + 1) * self.width, 1.0 - mean if self.classifies else mean)
                for i, mean in zip(used, errors, strict=True)
            ],
        }
