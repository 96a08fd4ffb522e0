"""Ticks of a public clock: when releases become visible.

The moment at which a release is committed depends on when rows arrive, on how long they take to learn from and on the
load of the machine. So a release is not shown at that moment. It is written with `visible_at`, a tick of a public
clock, in the transaction that commits it, and every process looks at the store at ticks only: what it answers between
two ticks was visible at the first of them. A commit that ends after its tick is seen at the next one. An observer
learns in which tick a release was committed, and not where in the tick.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from taciturn.errors import number
from taciturn.store.events import FARTHEST


@dataclass(frozen=True)
class TickClock:
    """A clock whose ticks are the multiples of a period since 1970-01-01 in UTC; times are in milliseconds.

    Parameters
    ----------
    seconds : float
        The period, at least 0.01.

    Examples
    --------
    >>> clock = TickClock(1.0)
    >>> clock.last(12_345), clock.visible_at(12_345), clock.visible_at(12_950)
    (12000, 13000, 14000)
    """

    seconds: float = 1.0

    def __post_init__(self) -> None:
        rule = "lie between 0.01 and 3600"
        object.__setattr__(self, "seconds", number("tick", self.seconds, lambda s: 0.01 <= s <= 3600.0, rule))

    @property
    def period(self) -> int:
        """Milliseconds between two ticks."""
        return round(1000.0 * self.seconds)

    @property
    def margin(self) -> int:
        """Milliseconds that a commit is expected to take at most; public."""
        return min(100, self.period // 4)

    @staticmethod
    def now() -> int:
        """The present time."""
        return time.time_ns() // 1_000_000

    def last(self, now: int | None = None) -> int:
        """The last tick."""
        now = self.now() if now is None else now
        return now - now % self.period

    def visible_at(self, now: int | None = None, last: int = 0) -> int:
        """The tick at which a release becomes visible whose commit begins now: the first after the margin.

        Not before the tick of the `last` release; unless that lies further ahead than `FARTHEST`. Then one of the two
        clocks is wrong, and both releases become visible at the first tick by the present one.

        >>> clock = TickClock(1.0)
        >>> clock.visible_at(12_345, last=20_000), clock.visible_at(12_345, last=10**10)
        (20000, 13000)
        """
        now = self.now() if now is None else now
        first = self.last(now + self.margin) + self.period
        return max(first, last) if last - first <= FARTHEST else first

    def until_next(self, now: int | None = None) -> float:
        """Seconds until the next tick."""
        now = self.now() if now is None else now
        return (self.last(now) + self.period - now) / 1000.0
