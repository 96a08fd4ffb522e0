"""What the benchmarks of learners share: a stream in chunks, the budget, and models scored on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taciturn import Privacy, Private
from taciturn.kernel.stream import passes
from taciturn.kernel.stream.loop import releases_in_block

CHUNK = 4_096
DELTA = 1e-6
BUDGET = Privacy(1.0, DELTA)


@dataclass(frozen=True)
class Task:
    """Rows to learn from, and held-out rows to score a model."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int) -> Task:
        """The same with fewer rows to learn from, for slow contenders."""
        return replace(self, X=self.X[:count], y=self.y[:count])

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(self), size):
            yield self.X[start : start + size], self.y[start : start + size]

    def dicts(self) -> list[dict[str, float]]:
        """The rows as dicts, which river takes."""
        names = [str(j) for j in range(self.d)]
        return [dict(zip(names, v, strict=True)) for v in self.X.tolist()]

    def accuracy(self, model: np.ndarray) -> float:
        """Share of the labels ±1 that have the sign of their score."""
        return float(np.mean(np.where(self.X_test @ model > 0.0, 1.0, -1.0) == self.y_test))

    def squared_error(self, model: np.ndarray) -> float:
        """Mean squared error on the held-out rows."""
        return float(np.mean(np.square(self.X_test @ model - self.y_test)))


def noise_blocks(private: Private, rows: int) -> list[tuple[int, int]]:
    """First release and number of releases of each block of noise that a stream of so many rows draws."""
    count = len(private.timetable.following(0, rows))
    most = min(releases_in_block(private.learner), CHUNK)
    return [(k, min(most, count + 1 - k)) for k in range(1, count + 1, most)]


def noise_alone(private: Private, rows: int) -> Callable[[], None]:
    """Draw the noise of all releases, in blocks, as a stream does."""
    noise = passes.noise_of(private.calibrated)

    def work() -> None:
        for k, count in noise_blocks(private, rows):
            noise.draw(None, k, count)

    return work


def learns(private: Private, task: Task) -> Callable[[], np.ndarray]:
    """Run a private stream, and return its last release; the others are not stored, as peers store no models."""

    def work() -> Any:
        state = private.start()
        for X, y in task.chunks():
            state, releases = private.run(state, X, y)
        return releases.points[-1]

    return work
