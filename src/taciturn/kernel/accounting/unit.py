"""The unit of privacy: whose data a guarantee protects.

`Example` is one row. `User` is everything that one user contributes, which is bounded: at most `rows` rows, at most
`per_release` of them between two releases, in release blocks at least `apart` blocks apart. Rows that exceed a bound
keep their round and have no influence (`taciturn.kernel.stream.participation`).

**Neighbours.** Two streams are neighbours if they differ in the contents of the rows of one user, all of them replaced
or zeroed out (the problem's relation). Positions and ids are the same in both, and so is the set of rows that count: it
follows from positions and ids alone.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput, integer, one_of

ClockPeriod = Literal["day", "week", "month", "quarter", "year"]
WithoutId = Literal["bad", "own"]

Neighbours = Literal["replace", "zero-out", "label"]
"""How two neighbouring streams differ: an example is replaced, its data term is 0, or its label is another."""

Relation = Literal[Neighbours, "add-remove"]
"""The same; or, for costs of other libraries that a ledger records, one example is added or removed."""


@dataclass(frozen=True)
class Participation:
    """How often one unit may take part: at most `rows` rows, `per_release` of them in a block, blocks `apart`.

    A block is the rows between two releases; blocks j and j' are `|j - j'|` apart, and rows of one block may lie
    together.

    >>> Participation(rows=4, per_release=2, apart=8).blocks
    2
    """

    rows: int = 1
    per_release: int = 1
    apart: int = 1

    @property
    def blocks(self) -> int:
        """The least number of blocks that holds all rows."""
        return -(-self.rows // self.per_release)

    @property
    def multiplicities(self) -> Array:
        """Rows in each of the fewest blocks that hold all of them: `per_release`, …, and what remains."""
        full = np.full(self.blocks, float(self.per_release))
        full[-1] = self.rows - self.per_release * (self.blocks - 1)
        return full

    def rows_by(self, blocks: NDArray[Any], rounds: NDArray[Any]) -> NDArray[Any]:
        """The most rows that one unit can have in the first so many blocks, of so many rounds.

        >>> Participation(rows=4, per_release=1, apart=2).rows_by(np.array([1, 2, 3, 9]), np.array([5, 9, 20, 90]))
        array([1, 1, 2, 4])
        """
        in_blocks = self.per_release * (1 + (np.asarray(blocks) - 1) // self.apart)
        return np.asarray(np.minimum(np.minimum(in_blocks, self.rows), rounds))


ONCE = Participation()
"""One row, once."""


@dataclass(frozen=True)
class Example:
    """The unit of privacy is one example; a user with several is protected less.

    >>> print(Example())
    one example
    """

    @property
    def participation(self) -> Participation:
        """Once."""
        return ONCE

    @property
    def name(self) -> str:
        """What a ledger calls it."""
        return "example"

    def __str__(self) -> str:
        return "one example"


@dataclass(frozen=True)
class User:
    """The unit of privacy is a user, whose contribution is bounded.

    Parameters
    ----------
    rows : int
        The most rows of a user that count, in all, or in each period. Later ones keep their round without influence.
    per_release : int, optional
        The most of them between two releases. By default `rows`; or 1, if they must lie apart.
    apart : int
        Release blocks from one block with rows of a user to the next; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Bound the rows of each period instead of all: a number of rounds, or periods of a public clock, in UTC. The
        guarantee is then about the rows that a user contributes in one period.
    without_id : {"bad", "own"}
        A row without an id is a bad row, or a user of its own: then whoever leaves the id out has as many rows as they
        like, and each is protected by itself.

    Examples
    --------
    >>> User(rows=4)
    User(rows=4, per_release=4, apart=1, period=None, without_id='bad')
    >>> print(User(rows=4, apart=8))
    one user, of at most 4 rows, at most 1 between two releases, in blocks at least 8 releases apart
    """

    rows: int
    per_release: int | None = None
    apart: int = 1
    period: int | ClockPeriod | None = None
    without_id: WithoutId = "bad"

    def __post_init__(self) -> None:
        rows, apart = integer("rows", self.rows), integer("apart", self.apart)
        each = (rows if apart == 1 else 1) if self.per_release is None else integer("per_release", self.per_release)
        if each > rows:
            raise InvalidInput(f"per_release must be at most rows, {rows}, got {each}. Leave it out for no such limit.")
        one_of("without_id", self.without_id, get_args(WithoutId))
        period = self.period
        if period is not None and not isinstance(period, str):
            period = integer("period", period)
        elif period is not None:
            one_of("period", period, get_args(ClockPeriod))
        for name, value in (("rows", rows), ("per_release", each), ("apart", apart), ("period", period)):
            object.__setattr__(self, name, value)

    @property
    def participation(self) -> Participation:
        """How often the rows of a user, or those of one period, take part."""
        assert self.per_release is not None
        return Participation(self.rows, self.per_release, self.apart)

    def with_rows(self, rows: int) -> User:
        """The same bounds for a user who has fewer rows.

        >>> print(User(8, per_release=4).with_rows(2))
        one user, of at most 2 rows
        """
        assert self.per_release is not None
        return replace(self, rows=rows, per_release=min(self.per_release, rows))

    def over(self, periods: int) -> Participation:
        """How often a user takes part who stays for so many periods; bounds on releases hold across their borders."""
        assert self.per_release is not None
        return Participation(self.rows * periods, self.per_release, self.apart)

    @property
    def name(self) -> str:
        """What a ledger calls it; with rows that are users of their own it is another unit, as any row may be one."""
        name = "user" if self.without_id == "bad" else "user or row without an id"
        if self.period is None:
            return name
        return f"{name} and {self.period}" if isinstance(self.period, str) else f"{name} and {self.period} rounds"

    def __str__(self) -> str:
        within = "" if self.period is None else f" in a {self.period}"
        if isinstance(self.period, int):
            within = f" in each {self.period:,} consecutive rounds from the first"
        text = f"one user, of at most {self.rows:,} row{'s' * (self.rows > 1)}{within}"
        if self.per_release != self.rows:
            text += f", at most {self.per_release} between two releases"
        if self.apart > 1:
            text += f", in blocks at least {self.apart} releases apart"
        return text


EXAMPLE = Example()
Unit = Example | User


# Periods of a public clock.


def utc_now() -> datetime.datetime:
    """The time of this machine's clock."""
    return datetime.datetime.now(datetime.UTC)


def period_of(period: ClockPeriod, now: datetime.datetime) -> int:
    """The number of the period in which a time lies, in UTC; the next period has the next number.

    >>> period_of("month", datetime.datetime(2026, 12, 31)), period_of("month", datetime.datetime(2027, 1, 1))
    (24324, 24325)
    """
    if not isinstance(now, datetime.datetime):
        raise InvalidInput(f"now must be a datetime, of UTC if it names no zone, got {type(now).__name__}.")
    if now.tzinfo is not None:
        now = now.astimezone(datetime.UTC)
    months = now.year * 12 + now.month
    numbers = {
        "day": now.toordinal(),
        "week": (now.toordinal() + 6) // 7,
        "month": months,
        "quarter": (months - 1) // 3 + 1,
        "year": now.year,
    }
    return numbers[period]


def period_name(period: ClockPeriod, number: int) -> str:
    """What the period of this number is called.

    >>> period_name("month", 24324), period_name("quarter", 8108), period_name("day", 740000)
    ('2026-12', '2026 Q4', '2027-01-19')
    >>> period_name("week", period_of("week", datetime.datetime(2026, 11, 18)))
    'the week of 2026-11-16'
    """
    if period == "day":
        return datetime.date.fromordinal(number).isoformat()
    if period == "week":
        return f"the week of {datetime.date.fromordinal(7 * number - 6).isoformat()}"
    if period == "month":
        return f"{(number - 1) // 12}-{(number - 1) % 12 + 1:02d}"
    return f"{(number - 1) // 4} Q{(number - 1) % 4 + 1}" if period == "quarter" else str(number)


IN_A_YEAR: dict[str, int] = {"day": 366, "week": 54, "month": 12, "quarter": 4, "year": 1}
"""The most periods of each kind in a calendar year; a leap year from a Sunday on has days of 54 weeks."""


LEDGER_UNITS = ("example", "user", *(f"user and {period}" for period in get_args(ClockPeriod)))
"""Units that a ledger can be about."""


def covers(unit: str, of_stream: str) -> bool:
    """Whether a stream with this unit keeps a promise to a ledger's: units are compared by their names.

    All rows of a user hold each single row, and all periods each single period.

    >>> covers("example", "user"), covers("user", "example"), covers("user and month", "user")
    (True, False, True)
    """
    return unit == "example" or of_stream == unit or (unit.startswith("user") and of_stream == "user")
