"""The kinds of columns, and how the values of each are encoded as features.

The encoding of a value depends on that value and on the contract only.

| declared | features | a value becomes |
|---|---|---|
| `range = [low, high]` | 1 | scaled to [-1, 1], linearly or by its `scale`; a value outside the range is clipped |
| `range = "private"` | 1 | standardised by a center and a scale that are found privately, and clipped to ±3 |
| `bins = [0, 10, 100]` | one per bin | one-hot; the first and the last bin take what lies outside |
| `date = [first, last]` | 1 | its time, scaled linearly from a public range of dates to [-1, 1], and clipped |
| `cycle = ["month"]` of a date | two each | sine and cosine of the month, the weekday or the hour |
| `categories = [...]` | one per category | one-hot; an unknown value is 0 everywhere |
| `hash = buckets` | one per bucket | +1 or -1 in one bucket, by a hash of `name=value` |
| `text = { hash = buckets }` | one per bucket | the counts of its words with signs, hashed, scaled to norm 1 |
| `ignore = true` | 0 | not read |

**Missing values** (`taciturn.columns.values`) become what `missing` declares: for a range a number of it, its middle
(`"middle"`, the default) or the number 0 (`"zero"`); for a date 0 in all features (`"middle"`); for bins, categories,
hashed values and texts 0 everywhere (`"zero"`, the default) or a feature of their own (`"category"`); or the row is bad
(`"bad"`). A text that is not a number, or not a date, is bad where one is declared, not missing; in a private range it
counts as missing, and takes the center. With `indicator = true` a number or a date has one more feature, 1 if the value
was missing and 0 otherwise.

**The norm of a row.** The features of a column are groups (`groups`), and each group but a standardised number adds at
most 1 to the squared norm of a row: a number x in [-1, 1] adds x², sine and cosine of an angle add 1, one-hot and
hashed features have at most one entry that is not 0, which is ±1, those of a text are scaled to norm 1, and an
indicator is 0 or 1. The squared norm of a row is the sum over its groups, so with n groups the norm is at most
`sqrt(n)`: an indicator counts 1, like its number, and so does a cycle. (Where the number is filled with the middle,
which is encoded as 0, it and its indicator together add at most 1.) A standardised value adds about 1. Privacy does not
rest on this: rows longer than the feature bound are clipped.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.columns.hashing import bucket_cache
from taciturn.columns.scales import LINEAR, Scale
from taciturn.columns.values import Values, is_number, is_unreadable, number_of, short_repr, text_of, time_of
from taciturn.errors import InvalidInput, float_or_nan, integer
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.tables.ranges import between, number_between

Bad = NDArray[np.bool_]
Named = int | float | str
"""A category or class as it is declared."""

GroupKind = Literal["number", "cycle", "standardised", "indicator"]
Groups = tuple[tuple[GroupKind, int], ...]
"""Groups of features: what they are, and how many; each adds at most 1 to the squared norm of a row."""

Pairs = tuple[tuple[int, float], ...]
"""The features of one value that are not 0: their indices among those of the column, and what they are."""


class Entries(NamedTuple):
    """Features of several values that are not 0: the row of each, its index among those of the column, and what it is.

    `bad` has which values are bad.
    """

    rows: Integers
    places: Integers
    numbers: Array
    bad: Bad


MissingNumber = float | Literal["middle", "zero", "bad"]
"""What a missing number is: a number, the middle of its range, the number 0, or bad."""

OneHotMissing = Literal["zero", "category", "bad"]
"""What a missing value is in a column of one-hot features: 0 everywhere, a feature of its own, or bad."""

_MANY = 1024  # rows from which on a column is scaled by compiled code
_LARGEST = 1e300  # of the numbers whose range is found

INDICATOR = " (missing)"
"""What the name of an indicator of missing values ends in."""

MOST_BUCKETS = 2**20
"""Largest number of buckets of a hashed column; with more features, the noise outweighs the data."""


@dataclass(frozen=True)
class Range(RowWise):
    """A number with a public range, scaled to [-1, 1]; values outside the range are clipped.

    On a scale other than the linear one (`taciturn.columns.scales`) the ends are still -1 and 1, and the middle, 0, is
    the middle of that scale: for a logarithm the geometric mean of the ends. A missing value is encoded as the number
    `missing`, as the middle, or as the number 0; or it is bad. A value that is neither a number nor missing is bad.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((5, 1))
    >>> Range("age", 0.0, 100.0).encode(PlainValues(["50", "75", "200", "old", ""]), out)
    array([False, False, False,  True, False])
    >>> out.ravel()
    array([0. , 0.5, 1. , 0. , 0. ])
    >>> out = np.zeros((2, 2))
    >>> bad = Range("age", 0.0, 100.0, missing=25.0, indicator=True).encode(PlainValues(["50", None]), out)
    >>> out.tolist()
    [[0.0, 0.0], [-0.5, 1.0]]
    >>> out = np.zeros((3, 1))
    >>> bad = Range("income", 1e2, 1e6, scale=Scale("log")).encode(PlainValues(["1e3", "1e4", "-5"]), out)
    >>> out.ravel().round(9)
    array([-0.5,  0. , -1. ])
    """

    name: str
    low: float
    high: float
    missing: MissingNumber = "middle"
    indicator: bool = False
    scale: Scale = LINEAR

    def __post_init__(self) -> None:
        low, high = check_range(f"columns.{self.name}.range", self.low, self.high)
        self.scale.ends(f"columns.{self.name}.range", low, high)  # rejects ranges that are not of the scale
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        words = self.missing if isinstance(self.missing, str) else None
        stated = 0.0 if words == "zero" else _number(self.missing)
        if words not in ("middle", "bad") and not low <= stated <= high:
            raise InvalidInput(
                f'columns.{self.name}.missing must be a number from {low:g} to {high:g}, "middle", "zero" (the number '
                f'0, if it is in the range) or "bad"; got {short_repr(self.missing)}.'
            )
        if words is None:
            object.__setattr__(self, "missing", stated)
        _check_indicator(self.name, self.indicator, self.missing)

    @property
    def groups(self) -> Groups:
        return (("number", 1), *_indicators(self.indicator))

    @property
    def width(self) -> int:
        return 1 + self.indicator

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *_indicator_names(self.name, self.indicator))

    def encode(self, values: Values, out: Array) -> Bad:
        """Write the features of these values to `out`, and return which values are bad."""
        stored = values.stored() if len(out) >= _MANY and self.scale.name == "linear" else None
        if stored is not None:
            from taciturn.tables.scaling_loops import scale

            if scale(stored, self.low, self.high, out[:, 0]):
                return np.zeros(len(out), dtype=np.bool_)
        numbers = values.numbers()
        bad = np.isnan(numbers)
        out[:, 0] = np.where(bad, 0.0, self._scaled(numbers))
        if not bad.any() or self.missing == "bad":
            return bad
        missing = values.missing()
        out[missing, 0] = self.filled
        if self.indicator:
            out[:, 1] = missing
        return bad & ~missing

    def pairs(self, value: Any) -> Pairs | None:
        """The features of one value that are not 0, or None if it is bad. Slow twin: `encode`."""
        number = number_of(value)
        if not math.isnan(number):
            if self.scale.name == "linear":
                return ((0, number_between(number, self.low, self.high)),)
            return ((0, float(self._scaled(np.array([number]))[0])),)
        if self.missing == "bad" or text_of(value) is not None:
            return None
        return ((0, self.filled), (1, 1.0)) if self.indicator else ((0, self.filled),)

    def _scaled(self, numbers: Array) -> Array:
        if self.scale.name == "linear":
            return between(numbers, self.low, self.high)
        return between(self.scale.forward(np.clip(numbers, self.low, self.high)), *self._ends)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The range on the scale."""
        return self.scale.ends(f"columns.{self.name}.range", self.low, self.high)

    @cached_property
    def filled(self) -> float:
        """The feature of a missing value."""
        if isinstance(self.missing, str):
            return 0.0 if self.missing != "zero" else float(self._scaled(np.zeros(1))[0])
        return float(self._scaled(np.array([self.missing]))[0])

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        return number_error(self.name, value, self.missing == "bad")

    def declared(self) -> dict[str, Any]:
        stated = _declared(self.missing, "middle", self.indicator)
        return {"range": [self.low, self.high], **self.scale.declared(), **stated}


@dataclass(frozen=True)
class PrivateRange(RowWise):
    """A number whose center and scale are found privately in the first rows of the stream; no value is bad.

    What is encoded is the number itself, NaN where it is missing or no number: it is standardised later. The indicator
    is 1 for both.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((2, 2))
    >>> PrivateRange("income", indicator=True).encode(PlainValues(["5e4", ""]), out)
    array([False, False])
    >>> out.tolist()
    [[50000.0, 0.0], [nan, 1.0]]
    """

    name: str
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_indicator(self.name, self.indicator)

    @property
    def groups(self) -> Groups:
        return (("standardised", 1), *_indicators(self.indicator))

    @property
    def width(self) -> int:
        return 1 + self.indicator

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *_indicator_names(self.name, self.indicator))

    def encode(self, values: Values, out: Array) -> Bad:
        """Write these numbers to `out`; infinite ones are the largest there are."""
        numbers = values.numbers()
        out[:, 0] = np.clip(numbers, -_LARGEST, _LARGEST)
        if self.indicator:
            out[:, 1] = np.isnan(numbers)
        return np.zeros(len(numbers), dtype=np.bool_)

    def pairs(self, value: Any) -> Pairs | None:
        """The features of one value that are not 0, or None if it is bad. Slow twin: `encode`."""
        if type(value) is not float and is_unreadable(value):
            return None
        number = min(max(number_of(value), -_LARGEST), _LARGEST)
        return ((0, number), (1, 1.0)) if self.indicator and math.isnan(number) else ((0, number),)

    def error(self, value: Any) -> str | None:
        """None: a value that is no number counts as missing."""
        return None

    def declared(self) -> dict[str, Any]:
        return {"range": "private", **_declared(None, None, self.indicator)}


@dataclass(frozen=True)
class Bins(RowWise):
    """A number, one-hot encoded by the public bin that it lies in.

    `edges` e0 < e1 < ... < en are n bins: a number x is in bin i if `e(i-1) <= x < e(i)`. Numbers below e0 are in the
    first bin, and those from en on in the last.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((5, 2))
    >>> Bins("income", (0.0, 1e4, 1e6)).encode(PlainValues(["1", "10000", "-3", "2e9", ""]), out)
    array([False, False, False, False, False])
    >>> out.tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    >>> Bins("income", (0.0, 1e4, 1e6)).names
    ('income=0:10000', 'income=10000:1000000')
    """

    name: str
    edges: tuple[float, ...]
    missing: OneHotMissing = "zero"

    def __post_init__(self) -> None:
        edges = tuple(map(_number, self.edges))
        if len(edges) < 3 or not all(low < high for low, high in pairwise(edges)) or math.inf in map(abs, edges):
            raise InvalidInput(
                f"columns.{self.name}.bins must be three or more finite numbers, each larger than the one before, as "
                f"in [0, 10, 100]; got {short_repr(list(self.edges))}."
            )
        object.__setattr__(self, "edges", edges)
        _check_one_hot_missing(self.name, self.missing)

    @property
    def groups(self) -> Groups:
        return (("indicator", self.width),)

    @property
    def width(self) -> int:
        return len(self.edges) - 1 + (self.missing == "category")

    @property
    def names(self) -> tuple[str, ...]:
        own = _indicator_names(self.name, self.missing == "category")
        return (*(f"{self.name}={text_of(low)}:{text_of(high)}" for low, high in pairwise(self.edges)), *own)

    def encode(self, values: Values, out: Array) -> Bad:
        """Write the features of these values, and return which are bad."""
        numbers = values.numbers()
        bad = np.isnan(numbers)
        inner = np.array(self.edges[1:-1])  # so many bins below the one of a number as inner edges up to it
        known = np.flatnonzero(~bad)
        out[known, np.searchsorted(inner, numbers[known], side="right")] = 1.0
        if not bad.any():
            return bad
        missing = values.missing()
        return (bad & ~missing) | _one_hot_missing(self.missing, missing, out)

    def pairs(self, value: Any) -> Pairs | None:
        """The features of one value that are not 0, or None if it is bad. Slow twin: `encode`."""
        number = number_of(value)
        if not math.isnan(number):
            return ((bisect_right(self.edges, number, 1, len(self.edges) - 1) - 1, 1.0),)
        return None if text_of(value) is not None else _one_hot_missing_pairs(self.missing, self.width)

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        return number_error(self.name, value, self.missing == "bad")

    def declared(self) -> dict[str, Any]:
        return {"bins": list(self.edges), **_declared(self.missing, "zero")}


Cycle = Literal["weekday", "month", "hour"]
_DAY = 86_400.0
_FIRST, _LAST = time_of("0001-01-01"), time_of("9999-12-31")


@dataclass(frozen=True)
class Date(RowWise):
    """A date or time (`taciturn.columns.values`) in a public range, scaled linearly to [-1, 1], and its cycles.

    A cycle is the sine and the cosine of an angle that goes round once in it: `weekday` by days from Monday, `month` by
    months from January, `hour` by the time of the day; all in UTC. Dates outside the range are clipped, but not their
    cycles. A missing date is 0 in all features, or bad; what is neither a date nor missing is bad.

    A number counts seconds since 1970. It is bad where it surely counts something else: if it lies outside of the range
    by more than the range is long, as milliseconds do, or spells a calendar day of the declared years, as in 20240531,
    which would be read as a day of 1970 to 1973. A date that is written as one is never bad for where it lies.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((3, 3))
    >>> when = Date("when", "2020-01-01", "2020-12-31", ("month",))
    >>> when.encode(PlainValues(["2020-07-01T12:00Z", "1999-04-01", "soon"]), out)
    array([False, False,  True])
    >>> out.round(3).tolist()
    [[0.0, 0.0, -1.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    >>> when.error(20200531)
    'when is a number, of which seconds since 1970 are read, and neither milliseconds nor days as in 20240531'
    """

    name: str
    low: str
    high: str
    cycle: tuple[Cycle, ...] = ()
    missing: Literal["middle", "bad"] = "middle"
    indicator: bool = False

    def __post_init__(self) -> None:
        key = f"columns.{self.name}"
        low, high = _declared_time(self.low), _declared_time(self.high)
        if low is None or high is None or not time_of(low) < time_of(high):
            raise InvalidInput(
                f'{key}.date must be two dates, the earlier first, as in ["2015-01-01", "2030-01-01"]; got '
                f"{short_repr([self.low, self.high])}."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        for cycle in self.cycle:
            if cycle not in get_args(Cycle) or self.cycle.count(cycle) > 1:
                raise InvalidInput(
                    f"{key}.cycle must list each of {', '.join(get_args(Cycle))} at most once; got "
                    f"{short_repr(list(self.cycle))}."
                )
        if self.missing not in ("middle", "bad"):
            raise InvalidInput(f'{key}.missing must be "middle" or "bad" for a date; got {short_repr(self.missing)}.')
        _check_indicator(self.name, self.indicator, self.missing)

    @property
    def groups(self) -> Groups:
        cycles: Groups = (("cycle", 2),) * len(self.cycle)
        return (("number", 1), *cycles, *_indicators(self.indicator))

    @property
    def width(self) -> int:
        return 1 + 2 * len(self.cycle) + self.indicator

    @property
    def names(self) -> tuple[str, ...]:
        cycles = (f"{self.name} {cycle} {wave}" for cycle in self.cycle for wave in ("sin", "cos"))
        return (self.name, *cycles, *_indicator_names(self.name, self.indicator))

    def encode(self, values: Values, out: Array) -> Bad:
        """Write the features of these values, and return which are bad."""
        times = self.seconds(values)
        bad = np.isnan(times)
        known = np.clip(np.where(bad, 0.0, times), _FIRST, _LAST)
        out[:, 0] = between(known, *self._ends)
        for i, cycle in enumerate(self.cycle):
            angle = 2.0 * np.pi * _turn(cycle, known)
            out[:, 1 + 2 * i], out[:, 2 + 2 * i] = np.sin(angle), np.cos(angle)
        out[bad] = 0.0
        if not bad.any() or self.missing == "bad":
            return bad
        missing = bad & values.missing()
        if self.indicator:
            out[:, -1] = missing
        return bad & ~missing

    def seconds(self, values: Values) -> Array:
        """The times of these values; NaN for a value that is no date, and for a number that counts no seconds."""
        times = values.times()
        doubtful = self._doubtful(times)
        return np.where(doubtful & ~np.isnan(values.numbers()), math.nan, times) if doubtful.any() else times

    def _doubtful(self, times: Array) -> Bad:
        """Which times are bad if they are written as numbers."""
        low, high = self._ends
        far = np.abs(times - (low + high) / 2.0) > 1.5 * (high - low)
        days = (times >= 1e7) & (times < 1e8)  # as many digits as 20240531
        if not days.any():
            return far
        spelt = np.where(days, times, 0.0).astype(np.int64)
        month, day = spelt // 100 % 100, spelt % 100
        years = (spelt // 10_000 >= int(self.low[:4])) & (spelt // 10_000 <= int(self.high[:4]))
        valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        doubtful: Bad = far | (days & (spelt == times) & years & valid)
        return doubtful

    def _is_doubtful(self, seconds: float, value: Any) -> bool:
        """Whether one value is a number that counts no seconds."""
        low, high = self._ends
        if math.isnan(seconds) or (low <= seconds <= high and not 1e7 <= seconds < 1e8):
            return False  # most values
        return bool(self._doubtful(np.array([seconds]))[0]) and not math.isnan(number_of(value))

    def pairs(self, value: Any) -> Pairs | None:
        """The features of one value that are not 0, or None if it is bad. Slow twin: `encode`."""
        seconds = time_of(value)
        if self._is_doubtful(seconds, value):
            return None
        if math.isnan(seconds):
            if self.missing == "bad" or text_of(value) is not None:
                return None
            return ((self.width - 1, 1.0),) if self.indicator else ()
        known = min(max(seconds, _FIRST), _LAST)
        made = [(0, number_between(known, *self._ends))]
        for i, cycle in enumerate(self.cycle):
            angle = 2.0 * np.pi * _turn(cycle, np.array([known]))
            made += ((1 + 2 * i, float(np.sin(angle)[0])), (2 + 2 * i, float(np.cos(angle)[0])))
        return tuple(made)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The range in seconds."""
        return time_of(self.low), time_of(self.high)

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        seconds = time_of(value)
        if self._is_doubtful(seconds, value):
            return (
                f"{self.name} is a number, of which seconds since 1970 are read, and neither milliseconds nor days as "
                "in 20240531"
            )
        if not math.isnan(seconds):
            return None
        if text_of(value) is None:
            return missing_error(self.name, value) if self.missing == "bad" else None
        return f"{self.name} is not a date as in 2024-05-31 or 2024-05-31T12:30:00Z"

    def declared(self) -> dict[str, Any]:
        cycle = {"cycle": list(self.cycle)} if self.cycle else {}
        return {"date": [self.low, self.high], **cycle, **_declared(self.missing, "middle", self.indicator)}


def _declared_time(value: Any) -> str | None:
    """A declared date or time in its shortest spelling, or None; numbers are none, since 2015 could be a year."""
    if isinstance(value, str) and not math.isnan(number_of(value)):
        return None
    if not isinstance(value, str | date) or math.isnan(seconds := time_of(value)):
        return None
    moment = np.datetime64(round(seconds * 1e6), "us")
    day = moment.astype("datetime64[D]")
    return str(day) if moment == day else f"{moment.item().isoformat()}Z"


def _turn(cycle: Cycle, seconds: Array) -> Array:
    """How much of a cycle has passed at a time, from 0 up to below 1."""
    days = np.floor(seconds / _DAY)
    if cycle == "hour":
        return (seconds - _DAY * days) / _DAY
    if cycle == "weekday":
        return np.mod(days + 3.0, 7.0) / 7.0  # 1970-01-01 was a Thursday
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return np.asarray(np.mod(months, 12) / 12.0)


@dataclass(frozen=True)
class Categories(RowWise):
    """A category from a public list, one-hot encoded; a missing value is 0 everywhere, its own category, or bad.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((3, 2))
    >>> bad = Categories("soil", ("clay", "sand")).encode(PlainValues(["sand", "gold", "clay"]), out)
    >>> out.tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    >>> Categories("soil", ("clay", "sand"), missing="category").names
    ('soil=clay', 'soil=sand', 'soil (missing)')
    """

    name: str
    values: tuple[Named, ...]
    missing: OneHotMissing = "zero"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", named(self.values))
        _check_one_hot_missing(self.name, self.missing)

    @property
    def groups(self) -> Groups:
        return (("indicator", self.width),)

    @property
    def width(self) -> int:
        return len(self.values) + (self.missing == "category")

    @property
    def names(self) -> tuple[str, ...]:
        own = _indicator_names(self.name, self.missing == "category")
        return (*(f"{self.name}={value}" for value in self.values), *own)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.values)

    def encode(self, values: Values, out: Array) -> Bad:
        """Write the features of these values, and return which are bad: unknown ones are not."""
        places, missing = self._vocabulary.places(values)
        known = np.flatnonzero(places >= 0)
        out[known, places[known]] = 1.0
        return _one_hot_missing(self.missing, missing, out)

    def pairs(self, value: Any) -> Pairs | None:
        """The features of one value that are not 0, or None if it is bad. Slow twin: `encode`."""
        if type(value) is not str and is_unreadable(value):
            return None
        text = text_of(value)
        if text is None:
            return _one_hot_missing_pairs(self.missing, self.width)
        place = self._vocabulary.place(text)
        return ((place, 1.0),) if place >= 0 else ()

    def error(self, value: Any) -> str | None:
        """The error of a value, or None: an unknown category is encoded as zeros."""
        return missing_error(self.name, value) if self.missing == "bad" else None

    def declared(self) -> dict[str, Any]:
        return {"categories": list(self.values), **_declared(self.missing, "zero")}


@dataclass(frozen=True)
class _InBuckets(RowWise):
    """A column of which any text is encoded by feature hashing."""

    name: str
    buckets: int
    missing: OneHotMissing = "zero"
    signed: bool = True

    def __post_init__(self) -> None:
        _check_one_hot_missing(self.name, self.missing)
        number = integer(self._key, self.buckets)
        if number > MOST_BUCKETS:
            raise InvalidInput(f"{self._key} must be at most {MOST_BUCKETS:,}, got {number:,}.")
        object.__setattr__(self, "buckets", number)

    @property
    def _key(self) -> str:
        return f"columns.{self.name}.hash"

    @property
    def groups(self) -> Groups:
        return (("indicator", self.width),)

    @property
    def width(self) -> int:
        return self.buckets + (self.missing == "category")

    @property
    def names(self) -> tuple[str, ...]:
        own = _indicator_names(self.name, self.missing == "category")
        return (*(f"{self.name}#{i}" for i in range(self.buckets)), *own)

    def place(self, text: str) -> tuple[int, float]:
        """The bucket of a text, and its sign."""
        bucket, sign = bucket_cache(self.buckets)[f"{self.name}={text}"]
        return bucket, sign if self.signed else 1.0

    def encode(self, values: Values, out: Array) -> Bad:
        """Write the features of these values, and return which are bad."""
        entries = self.entries(values)
        out[entries.rows, entries.places] = entries.numbers
        return entries.bad

    def entries(self, values: Values) -> Entries:
        """The same without the zeros; each text is looked up once."""
        codes, texts = values.texts()
        absent = _one_hot_missing_pairs(self.missing, self.width) or ()
        bags = [absent if text is None else self._bag(text) for text in texts]
        sizes = np.array([len(pairs) for pairs in bags], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        flat = np.array([pair for pairs in bags for pair in pairs]).reshape(-1, 2)
        each = sizes[codes]
        at = np.arange(int(each.sum())) + np.repeat(starts[codes] - (np.cumsum(each) - each), each)
        bad = np.array([text is None for text in texts], dtype=np.bool_)[codes] & (self.missing == "bad")
        return Entries(np.repeat(np.arange(len(codes)), each), flat[at, 0].astype(np.int64), flat[at, 1], bad)

    def pairs(self, value: Any) -> Pairs | None:
        """The features of one value that are not 0, or None if it is bad. Slow twin: `encode`."""
        if type(value) is not str and is_unreadable(value):
            return None
        text = text_of(value)
        return _one_hot_missing_pairs(self.missing, self.width) if text is None else self._bag(text)

    def _bag(self, text: str) -> Pairs:
        raise NotImplementedError

    def error(self, value: Any) -> str | None:
        """The error of a value, or None: every text is valid."""
        return missing_error(self.name, value) if self.missing == "bad" else None


class Hashed(_InBuckets):
    """Any text, encoded by feature hashing: a sign in one of `buckets` features.

    Bucket and sign come from a hash of `name=value` that is the same in every process. A missing value is 0 everywhere,
    has a feature of its own, or is bad. Without `signed` all signs are +1, for learners of what is not negative.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((3, 4))
    >>> bad = Hashed("ip", 4).encode(PlainValues(["10.0.0.1", "10.0.0.2", ""]), out)
    >>> out.tolist()
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """

    def _bag(self, text: str) -> Pairs:
        return (self.place(text),)

    def declared(self) -> dict[str, Any]:
        return {"hash": self.buckets, **_declared(self.missing, "zero")}


class Text(_InBuckets):
    r"""The words of a text, by feature hashing: counts with signs in `buckets` features, scaled to norm 1.

    Words are the longest runs of letters, digits and underscores (`\w+`) of the text in lower case. A bucket has the
    sum, over the words w in it, of sign(w) times how often w occurs, by a hash of `name=word`; then all are divided by
    their norm. A text without words is 0 everywhere. A missing text is 0 everywhere, has a feature of its own, or is
    bad. Without `signed` all signs are +1.

    >>> from taciturn.columns.values import PlainValues
    >>> out = np.zeros((3, 4))
    >>> bad = Text("note", 4).encode(PlainValues(["Call back!", "call, call", ""]), out)
    >>> out.round(3).tolist()
    [[-0.707, 0.707, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """

    @property
    def _key(self) -> str:
        return f"columns.{self.name}.text.hash"

    def _bag(self, text: str) -> Pairs:
        sums: dict[int, float] = {}
        for word, count in Counter(_WORD.findall(text.lower())).items():
            place, sign = self.place(word)
            sums[place] = sums.get(place, 0.0) + sign * count
        norm = math.sqrt(sum(total * total for total in sums.values()))  # of integers, so the same in any order
        return tuple((place, sums[place] / norm) for place in sorted(sums) if sums[place])

    def declared(self) -> dict[str, Any]:
        return {"text": {"hash": self.buckets}, **_declared(self.missing, "zero")}


_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Ignored(RowWise):
    """A column that is not read.

    >>> Ignored("note").width
    0
    """

    name: str

    @property
    def groups(self) -> Groups:
        return ()

    @property
    def width(self) -> int:
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def encode(self, values: Values, out: Array) -> Bad:
        """Always an error: an ignored column is not read."""
        raise InvalidInput(f"column {self.name} is ignored and has no features. Leave it out.")

    def pairs(self, value: Any) -> Pairs | None:
        """None of its features are there."""
        return ()

    def error(self, value: Any) -> str | None:
        """None: every value is valid."""
        return None

    def declared(self) -> dict[str, Any]:
        return {"ignore": True}


Column = Range | PrivateRange | Bins | Date | Categories | Hashed | Text | Ignored


def check_range(key: str, low: Any, high: Any) -> tuple[float, float]:
    """Validate a range, and return its ends as Python floats; it must be finite, and neither empty nor too wide."""
    ends = float_or_nan(low), float_or_nan(high)
    if not (-math.inf < ends[0] < ends[1] < math.inf and 1e-60 <= ends[1] - ends[0] <= 1e60):
        raise InvalidInput(
            f"{key} must be two finite numbers, the lower first, got [{short_repr(low)}, {short_repr(high)}]."
        )
    return ends


def number_error(name: str, value: Any, required: bool = True) -> str | None:
    """The error of a value that should be a number, or None; it may be missing if it is not required.

    >>> number_error("income", "much")
    'income is not a number'
    """
    if not math.isnan(number_of(value)):
        return None
    if text_of(value) is None:
        return missing_error(name, value) if required else None
    return f"{name} is not a number"


def missing_error(name: str, value: Any) -> str | None:
    """The error of a value that is missing, or None."""
    return f"{name} is missing" if text_of(value) is None else None


def _number(value: Any) -> float:
    """A declared number as a Python float; NaN for anything else, truth values included."""
    return math.nan if isinstance(value, bool) else float_or_nan(value)


def _check_indicator(name: str, indicator: Any, missing: Any = None) -> None:
    if not isinstance(indicator, bool):
        raise InvalidInput(f"columns.{name}.indicator must be true or false, got {short_repr(indicator)}.")
    if indicator and missing == "bad":
        raise InvalidInput(
            f'columns.{name} has missing = "bad" and indicator = true, which would always be 0. Remove one of the two.'
        )


def _check_one_hot_missing(name: str, missing: Any) -> None:
    if missing not in get_args(OneHotMissing):
        raise InvalidInput(
            f'columns.{name}.missing must be "zero", "category" (a feature of its own) or "bad"; got '
            f"{short_repr(missing)}."
        )


def _one_hot_missing_pairs(choice: OneHotMissing, width: int) -> Pairs | None:
    """The features of a missing value: the last one, if it is a category, or none; or it is bad."""
    return None if choice == "bad" else ((width - 1, 1.0),) if choice == "category" else ()


def _one_hot_missing(choice: OneHotMissing, missing: Bad, out: Array) -> Bad:
    """Write the category of missing values, the last feature, if there is one; and return which values are bad."""
    if choice == "category":
        out[missing] = 0.0
        out[missing, -1] = 1.0
    return missing if choice == "bad" else np.zeros(len(missing), dtype=np.bool_)


def _indicators(indicator: bool) -> Groups:
    return (("indicator", 1),) if indicator else ()


def _indicator_names(name: str, indicator: bool) -> tuple[str, ...]:
    return (f"{name}{INDICATOR}",) if indicator else ()


def _declared(missing: Any, default: Any, indicator: bool = False) -> dict[str, Any]:
    """What is declared of missing values, without the defaults: older contracts keep their digest."""
    return ({} if missing == default else {"missing": missing}) | ({"indicator": True} if indicator else {})


@dataclass(frozen=True)
class Vocabulary(RowWise):
    """The declared values of a column: numbers, compared as numbers, or texts.

    Texts are compared in Unicode's composed form (NFC). A number that is spelt otherwise than a declared text, as 7.0
    than "7", is that text; and where "true" and "false" are declared and nothing else, so are True, TRUE, False and
    FALSE, in which other programs spell them.

    >>> Vocabulary((1, 2, 7)).place("7.0"), Vocabulary(("a", "b")).place("c")
    (2, -1)
    >>> Vocabulary(("7", "high")).place("7.0"), Vocabulary(("true", "false")).place("False")
    (0, 1)
    """

    values: tuple[Named, ...]

    @cached_property
    def _places(self) -> dict[Named, int]:
        return {_composed(value) if isinstance(value, str) else float(value): i for i, value in enumerate(self.values)}

    @cached_property
    def _truth(self) -> bool:
        return set(self.values) == {"true", "false"}

    @property
    def numeric(self) -> bool:
        """Whether the declared values are numbers."""
        return not isinstance(self.values[0], str)

    def place(self, text: str | None) -> int:
        """The index of a text among the declared values, or -1."""
        if text is None:
            return -1
        if self.numeric:
            return self._places.get(number_of(text), -1)
        place = self._places.get(_composed(text), -1)
        if place < 0 and self._truth and text in ("True", "TRUE", "False", "FALSE"):
            return self._places[text.lower()]
        if place < 0 and not math.isnan(number := number_of(text)):
            return self._places.get(text_of(number) or "", -1)
        return place

    def places(self, values: Values) -> tuple[NDArray[np.int64], Bad]:
        """The index of each value among the declared ones, or -1; and which values are missing."""
        codes, texts = values.texts()
        places = np.array([self.place(text) for text in texts], dtype=np.int64)
        missing = np.array([text is None for text in texts], dtype=np.bool_)
        return places[codes], missing[codes]


def _composed(text: str) -> str:
    """A text in the form in which equal characters have equal code points."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def named(values: Iterable[Any]) -> tuple[Named, ...]:
    """Declared values as Python numbers and strings, converted from NumPy types.

    >>> named([np.int8(3), np.float16(0.5), "no"])
    (3, 0.5, 'no')
    """
    return tuple(_named(value) for value in values)


def _named(value: Any) -> Named:
    if isinstance(value, np.floating):
        return float(value)
    plain: Named = value.item() if isinstance(value, np.generic) else value
    return plain


def check_values(key: str, values: Iterable[Any]) -> tuple[Named, ...]:
    """Validate declared categories or classes: all numbers or all texts, none twice, none empty."""
    listed = tuple(values)
    numbers = all(is_number(v) and math.isfinite(v) for v in listed)
    if not listed or not (numbers or all(isinstance(v, str) for v in listed)):
        if any(isinstance(v, bool | np.bool_) for v in listed):
            raise InvalidInput(
                f"{key} must list numbers or texts, got {short_repr(listed)}. Write truth values as texts: "
                '"true" and "false".'
            )
        raise InvalidInput(
            f'{key} must list numbers or texts, as in [1, 2] or ["no", "yes"]; got {short_repr(listed)}.'
        )
    spelt = [_composed(v.strip()) if isinstance(v, str) else float(v) for v in listed]
    if "" in spelt:
        raise InvalidInput(f"{key} names an empty text. Leave it out: an empty value is a missing one.")
    if len(set(spelt)) < len(spelt):
        raise InvalidInput(f"{key} names a value twice: {short_repr(listed)}. Name each once.")
    return tuple(v.strip() if isinstance(v, str) else v for v in listed)
