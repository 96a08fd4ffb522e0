"""Schedules: which rounds publish. They are fixed before the data, so that publishing reveals nothing about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count, islice, pairwise, takewhile
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.arrays import fixed
from taciturn.kernel.errors import InvalidInput, horizon_of, integer, number, value_or_type


@runtime_checkable
class Schedule(Protocol):
    """A public schedule: anything that knows the round of its k-th release.

    >>> every(10).round_of(3)
    30
    """

    def round_of(self, k: int) -> int | None:
        """The round of the k-th release, counted from 1 and strictly increasing; None if there are fewer."""


@dataclass(frozen=True)
class Every:
    """Publish after every `rounds` examples."""

    rounds: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", horizon_of(self.rounds, "rounds"))

    def round_of(self, k: int) -> int:
        """The k-th multiple."""
        return int(k) * self.rounds


@dataclass(frozen=True)
class Geometric:
    """Publish at rounds that grow by a factor: `start`, then each at least `ratio` times the one before."""

    ratio: float = 1.1
    start: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", integer("start", self.start))
        rule = "be at least 1.001"
        remedy = "For steady releases use every()."
        ratio = number("ratio", self.ratio, lambda ratio: 1.001 <= ratio < math.inf, rule, remedy)
        object.__setattr__(self, "ratio", ratio)

    def round_of(self, k: int) -> int | None:
        """The k-th term; consecutive integers as long as the ratio demands less than one more."""
        terms = _geometric_terms(self.ratio, self.start)
        return terms[k - 1] if k <= len(terms) else None


@dataclass(frozen=True)
class At:
    """Publish at these rounds and no others."""

    rounds: tuple[int, ...]

    def __post_init__(self) -> None:
        listed = tuple(integer("a round", t, of_many=True) for t in self.rounds)
        if not listed or any(a >= b for a, b in pairwise(listed)):
            raise InvalidInput(f"at() takes at least one round, in increasing order, got {value_or_type(listed)}.")
        object.__setattr__(self, "rounds", listed)

    def round_of(self, k: int) -> int | None:
        """The k-th of the list."""
        return self.rounds[k - 1] if k <= len(self.rounds) else None


def every(rounds: int = 1) -> Every:
    """Publish after every `rounds` examples, and at the horizon if there is one; `every(1)` is the paper's.

    >>> every(1)
    Every(rounds=1)
    """
    return Every(rounds)


def releases_in_window(forget: int) -> Every:
    """Publish fifty times in a window of `forget` examples, or after every example of a shorter one.

    >>> releases_in_window(1_000)
    Every(rounds=20)
    """
    return Every(max(1, integer("forget", forget) // 50))


def geometric(ratio: float = 1.1, start: int = 1) -> Geometric:
    """Publish at geometrically growing rounds, and at the horizon: few releases, so little noise.

    >>> [geometric(1.5).round_of(k) for k in range(1, 9)]
    [1, 2, 3, 5, 8, 12, 18, 27]
    """
    return Geometric(ratio, start)


def at(rounds: Iterable[int]) -> At:
    """Publish at these rounds, and at the horizon if there is one; without one, the last of them is the horizon.

    >>> at([10, 100])
    At(rounds=(10, 100))
    """
    return At(tuple(rounds))


@dataclass(frozen=True)
class Timetable:
    """A schedule up to a horizon, whose last round always publishes; without a horizon it may never end.

    >>> Timetable(every(4), horizon=10).rounds
    array([ 4,  8, 10])
    """

    schedule: Schedule
    horizon: int | None

    def __post_init__(self) -> None:
        if self.horizon is not None:
            object.__setattr__(self, "horizon", horizon_of(self.horizon))
        elif isinstance(self.schedule, At):
            object.__setattr__(self, "horizon", self.schedule.rounds[-1])

    @cached_property
    def rounds(self) -> NDArray[np.int64]:
        """Every published round; only with a horizon."""
        if self.horizon is None:
            raise InvalidInput("a stream without a horizon has no last round. Ask due(k) for the round of a release.")
        last: int = self.horizon
        if isinstance(self.schedule, Every):
            return fixed(self.following(0, last))
        terms = (self.schedule.round_of(k) or last for k in count(1))
        rounds = [0, *islice(takewhile(lambda t: t < last, terms), last), last]
        if any(a >= b for a, b in pairwise(rounds)):
            raise InvalidInput(f"the rounds of {self.schedule} do not increase. Let round_of(k) grow with k.")
        return fixed(np.array(rounds[1:], dtype=np.int64))

    @cached_property
    def count(self) -> int:
        """How many releases there are; only with a horizon.

        >>> Timetable(every(4), horizon=10).count
        3
        """
        if isinstance(self.schedule, Every) and self.horizon is not None:
            return -(-self.horizon // self.schedule.rounds)
        return len(self.rounds)

    def blocks(self, size: int = 2**16) -> Iterator[NDArray[np.int64]]:
        """Every published round, `size` at a time, so that a long stream takes no memory; only with a horizon."""
        for k in range(0, self.count, size):
            yield self.following(k, self.horizon or 0, size)

    def due(self, k: int) -> int | None:
        """The round of the k-th release, or None after the last."""
        horizon = self.horizon
        if horizon is None:
            return self.schedule.round_of(k)
        if k > self.count:
            return None
        if isinstance(self.schedule, Every):
            due = k * self.schedule.rounds
            return due if due < horizon else horizon
        return int(self.rounds[k - 1])

    def following(self, k: int, last: int, most: int | None = None) -> NDArray[np.int64]:
        """The rounds of the releases after the k-th, up to round `last`, and no more than `most`.

        >>> Timetable(every(4), horizon=10).following(1, last=10)
        array([ 8, 10])
        """
        most = last if most is None else most
        if isinstance(self.schedule, Every):
            wait = self.schedule.rounds
            made = self.count if last == self.horizon else last // wait
            multiples = np.arange((k + 1) * wait, min(k + most, made) * wait + 1, wait, dtype=np.int64)
            if self.horizon is not None and len(multiples) and multiples[-1] > self.horizon:
                multiples[-1] = self.horizon
            return multiples
        if self.horizon is not None:
            return self.rounds[k : min(k + most, int(np.searchsorted(self.rounds, last, side="right")))]
        rounds = takewhile(lambda due: due <= last, (self.due(j) or math.inf for j in count(k + 1)))
        listed = [self.due(k) or 0 if k else 0, *map(int, islice(rounds, most))]
        if any(a >= b for a, b in pairwise(listed)):
            raise InvalidInput(f"the rounds of {self.schedule} do not increase. Let round_of(k) grow with k.")
        return np.array(listed[1:], dtype=np.int64)

    def block_of(self, t: NDArray[Any]) -> NDArray[np.int64]:
        """The number, from 1, of the release that these rounds come before or at: rounds with one number are a block.

        >>> Timetable(every(4), horizon=10).block_of(np.array([1, 4, 5, 10]))
        array([1, 1, 2, 3])
        """
        t = np.asarray(t, dtype=np.int64)
        if isinstance(self.schedule, Every):
            return -(-t // self.schedule.rounds)
        rounds = self.rounds if self.horizon is not None else self.following(0, int(t.max(initial=0)))
        return np.asarray(np.searchsorted(rounds, t, side="left") + 1, dtype=np.int64)

    def fits(self, t: int, k: int) -> bool:
        """Whether a stream that has seen t examples has made k releases.

        >>> Timetable(every(4), horizon=10).fits(5, 1), Timetable(every(4), horizon=10).fits(8, 1)
        (True, False)
        """
        if isinstance(self.schedule, Every):
            ended = self.horizon is not None and t >= self.horizon
            return k == (self.count if ended else t // self.schedule.rounds)
        made = self.due(k) if k > 0 else 0
        return made is not None and made <= t and not self.publishes_by(t, k + 1)

    def publishes_by(self, t: int, k: int) -> bool:
        """Whether there is a k-th release, at round t or before."""
        due = self.due(k)
        return due is not None and due <= t


@lru_cache(maxsize=64)
def _geometric_terms(ratio: float, start: int) -> tuple[int, ...]:
    """All terms, up to 2⁵⁰ rounds."""
    terms = [start]
    while terms[-1] < 2**50:
        terms.append(max(terms[-1] + 1, int(np.ceil(terms[-1] * ratio))))
    return tuple(terms)
