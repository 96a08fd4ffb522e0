"""Which rounds publish: fixed before the data, so that publishing says nothing about it.

A schedule is anything with `round_of(k)`, the round of its k-th release (k = 1, 2, …, strictly increasing).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidInput


class Schedule(Protocol):
    """When to publish.

    >>> every(10).round_of(3)
    30
    """

    def round_of(self, k: int) -> int | None:
        """The round of the k-th release, or None if there are fewer."""


@dataclass(frozen=True)
class Every:
    """Publish after every `rounds` examples."""

    rounds: int

    def round_of(self, k: int) -> int:
        """The k-th multiple."""
        return k * self.rounds


@dataclass(frozen=True)
class Geometric:
    """Publish at rounds that grow by a factor: `start`, then each at least `ratio` times the one before."""

    ratio: float
    start: int = 1

    def round_of(self, k: int) -> int:
        """The k-th term; consecutive integers as long as the ratio demands less than one."""
        known = _growing(self.ratio, self.start)
        while len(known) < k:
            known.append(max(known[-1] + 1, int(np.ceil(known[-1] * self.ratio))))
        return known[k - 1]


@dataclass(frozen=True)
class At:
    """Publish at these rounds and no others."""

    rounds: tuple[int, ...]

    def round_of(self, k: int) -> int | None:
        """The k-th of the list."""
        return self.rounds[k - 1] if k <= len(self.rounds) else None


def every(rounds: int = 1) -> Every:
    """Publish after every `rounds` examples; `every(1)` is the paper's.

    >>> every(1)
    Every(rounds=1)
    """
    if rounds != int(rounds) or rounds < 1:
        raise InvalidInput(f"every() takes a positive number of rounds, got {rounds!r}.")
    return Every(int(rounds))


def geometric(ratio: float = 1.1, start: int = 1) -> Geometric:
    """Publish at geometrically growing rounds: few releases, so little noise, and never very stale.

    >>> [geometric(1.5).round_of(k) for k in range(1, 9)]
    [1, 2, 3, 5, 8, 12, 18, 27]
    """
    if not 1.0 < ratio < float("inf") or start < 1:
        raise InvalidInput(f"geometric() takes a ratio above 1 and a start of 1 or more, got {ratio}, {start}.")
    return Geometric(float(ratio), int(start))


def at(rounds: Iterable[int]) -> At:
    """Publish at these rounds and no others.

    >>> at([10, 100])
    At(rounds=(10, 100))
    """
    listed = tuple(int(t) for t in rounds)
    if not listed or listed[0] < 1 or any(a >= b for a, b in pairwise(listed)):
        raise InvalidInput(f"at() takes increasing rounds from 1 on, got {listed}.")
    return At(listed)


@dataclass(frozen=True)
class Timetable:
    """A schedule up to a horizon, whose last round always publishes; without a horizon it may never end.

    >>> Timetable(every(4), horizon=10).rounds
    array([ 4,  8, 10])
    """

    schedule: Schedule
    horizon: int | None

    def __post_init__(self) -> None:
        if self.horizon is None and isinstance(self.schedule, At):
            object.__setattr__(self, "horizon", self.schedule.rounds[-1])
        if self.horizon is not None and self.horizon < 1:
            raise InvalidInput(f"horizon must be a positive number of examples, got {self.horizon}.")

    @cached_property
    def rounds(self) -> NDArray[np.int64]:
        """Every published round; only with a horizon."""
        assert self.horizon is not None
        if isinstance(self.schedule, Every):
            early = list(range(self.schedule.rounds, self.horizon, self.schedule.rounds))
        else:
            early = []
            while (t := self.schedule.round_of(len(early) + 1)) is not None and t < self.horizon:
                early.append(t)
        return np.array([*early, self.horizon], dtype=np.int64)

    def publishes_by(self, t: int, k: int) -> bool:
        """Whether there is a k-th release, at round t or before."""
        due = self.due(k)
        return due is not None and due <= t

    def due(self, k: int) -> int | None:
        """The round of the k-th release, or None after the last."""
        if self.horizon is None:
            return self.schedule.round_of(k)
        return int(self.rounds[k - 1]) if k <= len(self.rounds) else None


@lru_cache(maxsize=64)
def _growing(ratio: float, start: int) -> list[int]:
    return [start]
