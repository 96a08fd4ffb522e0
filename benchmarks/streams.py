"""What the benchmarks of learners share: a stream in chunks, the budget, and models judged on rows that nobody saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taciturn import Privacy, Private

CHUNK, BUDGET = 4_096, Privacy(1.0, 1e-6)
PLAIN_MEMORY = {"action": "store_true", "help": "let freed memory go, as processes usually do"}


@dataclass(frozen=True)
class Task:
    """Rows to learn from, and others to judge by."""

    X: np.ndarray
    y: np.ndarray
    unseen: np.ndarray
    answers: np.ndarray

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int) -> Task:
        """The same with fewer rows to learn from, for who is slow."""
        return replace(self, X=self.X[:count], y=self.y[:count])

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(self), size):
            yield self.X[start : start + size], self.y[start : start + size]

    def dicts(self) -> list[dict[str, float]]:
        """The rows as river takes them."""
        names = [str(j) for j in range(self.d)]
        return [dict(zip(names, v, strict=True)) for v in self.X.tolist()]

    def accuracy(self, model: np.ndarray) -> float:
        """How many answers of ±1 have the sign of their score."""
        return float(np.mean(np.where(self.unseen @ model > 0.0, 1.0, -1.0) == self.answers))

    def squared_error(self, model: np.ndarray) -> float:
        """Mean over the unseen rows."""
        return float(np.mean(np.square(self.unseen @ model - self.answers)))


def portions(private: Private, rows: int) -> list[tuple[int, int]]:
    """First releases, and how many, of what a stream of so many rows draws at a time."""
    count, most = len(private.timetable.following(0, rows)), min(private._most_releases, CHUNK)
    return [(k, min(most, count + 1 - k)) for k in range(1, count + 1, most)]


def noise_alone(private: Private, rows: int) -> Callable[[], None]:
    """The noise of all releases, in the portions that a pass draws."""

    def work() -> None:
        for k, count in portions(private, rows):
            private.calibrated.noise_for(None, k, count)

    return work


def learns(private: Private, task: Task) -> Callable[[], np.ndarray]:
    """A whole private stream; releases are made, and none is kept but the last, as no peer keeps its models."""

    def work() -> Any:
        state = private.start()
        for X, y in task.chunks():
            state, releases = private.run(state, X, y)
        return releases.points[-1]

    return work
