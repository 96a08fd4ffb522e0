"""NOT PRIVATE: how well the models did on the very rows they were learnt from, and how many rows were cut or bad.

These numbers are made of exact data. They stay on the trusted side: in the secret state, and in a report that says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.estimators.labels import classes_of
from taciturn.problem.problem import Problem

_BINS = 64
_ROUNDED_UP = 1.0 + 1e-9  # rows that were scaled to the bound lie on it up to rounding
_COLUMNS = ("rows", "loss", "fault", "clipped", "bad")


class Diagnostics:
    """Sums over stretches of the stream: as many as fit into 64 equal ones, which double in length when they are full.

    Each part of the stream is judged by the model in use when it began, which has seen none of it.

    Parameters
    ----------
    problem : Problem
        What is learnt.
    classifies : bool
        Whether labels are classes, and not numbers.
    t : int
        Rows before the first one that is watched.
    kept : dict of ndarray, optional
        What `arrays` gave before an interruption; if rows went by unwatched since, it is left aside.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic
    >>> watch = Diagnostics(Problem(Logistic(), L2Ball(1.0), dimension=1, on_bad="zero"), classifies=True)
    >>> watch(np.array([[0.5], [3.0], [np.nan]]), np.array([1.0, 1.0, -1.0]), np.array([0.1]))
    >>> {name: watch.as_data()[name] for name in ("accuracy", "clipped_share", "bad_rows")}
    {'accuracy': 1.0, 'clipped_share': 0.5, 'bad_rows': 1}
    """

    def __init__(self, problem: Problem, classifies: bool, t: int = 0, kept: Arrays | None = None) -> None:
        self.problem, self.classifies, self.t, self.first = problem, classifies, t, t
        self.width, self.sums = 256, np.zeros((_BINS, len(_COLUMNS)))
        if kept and int(kept["where"][-1]) == t:
            self.sums = np.array(kept["sums"])
            self.width, self.first, _ = (int(number) for number in kept["where"])

    def __call__(self, X: Array, y: Array, model: Array) -> None:
        """The next rows, and the model in use before them."""
        while self.t // self.width >= _BINS:
            self.sums[: _BINS // 2] = self.sums[0::2] + self.sums[1::2]
            self.sums[_BINS // 2 :] = 0.0
            self.width *= 2
        self.sums[self.t // self.width] += self._judge(X, y, model)
        self.t += len(y)

    def _judge(self, X: Array, y: Array, model: Array) -> Array:
        good = np.isfinite(X).all(axis=1) & np.isfinite(y)
        X, y = X[good], y[good]
        V, labels = self.problem.clip(X, y)
        long = np.linalg.norm(X, axis=1) > self.problem.feature_bound * _ROUNDED_UP
        faults, losses = self._faults(model, V, labels), self.problem.values(model, V, labels)
        return np.array([len(y), losses.sum(), faults.sum(), long.sum(), len(good) - len(y)], dtype=np.float64)

    def _faults(self, model: Array, V: Array, labels: Array) -> Array:
        """1 for each class that is wrong; for numbers, how far off they are."""
        width = self.problem.width
        scores = V @ model if self.problem.outputs == 1 else V @ model.reshape(-1, width).T
        if not self.classifies:
            return np.asarray(np.abs(scores - labels))
        return np.asarray(classes_of(scores) != (labels > 0.0 if scores.ndim == 1 else labels), dtype=np.float64)

    def arrays(self) -> Arrays:
        """For the secret state."""
        return {"sums": self.sums, "where": np.array([self.width, self.first, self.t])}

    def as_data(self) -> dict[str, Any]:
        """Means over everything watched, and over each stretch."""
        rows, loss, fault, clipped, bad = self.sums.sum(axis=0).tolist()
        share, name = 1.0 / max(rows, 1.0), "accuracy" if self.classifies else "mean_absolute_error"
        used = [i for i in range(_BINS) if self.sums[i, 0] > 0.0]
        faults = [float(self.sums[i, 2] / self.sums[i, 0]) for i in used]
        return {
            name: 1.0 - fault * share if self.classifies else fault * share,
            "mean_loss": loss * share,
            "clipped_share": clipped * share,
            "bad_rows": int(bad),
            "from_row": self.first,
            "to_row": self.t,
            "measure": name,
            "curve": [
                ((i + 1) * self.width, 1.0 - off if self.classifies else off)
                for i, off in zip(used, faults, strict=True)
            ],
        }
