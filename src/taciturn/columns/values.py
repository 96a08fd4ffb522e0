"""The values of a column in a block of rows, as numbers or as texts, independent of the file format.

The number and the text of a value depend on that value only. `PlainValues` is the definition, one value at a time;
`ArrayValues` is its fast path for arrays, `taciturn.readers.arrow.ArrowValues` that for Arrow.

**Numbers** are decimals: digits, signs, a point and an exponent; blanks around them are ignored. Not numbers are `inf`,
`nan`, `1_000`, `0x1F`, digits of other scripts, values outside the range of floating point, and booleans.

**Texts** are stripped of blanks; an empty text is missing, and so is null. The text of a number is the shortest that
parses to the same number, without a point for an integer: 7 in one format and 7.0 in another are the same category.

**Times** are seconds since 1970-01-01 in UTC: dates as in `2024-05-31`, with a time as in `2024-05-31T12:30`, also with
a blank for the T, with seconds, with a fraction of which microseconds count, and with `Z` or an offset such as
`+02:00`; without one they are in UTC. Dates and times of Parquet are the same. A number, as a text too, counts seconds
itself; a column of dates rejects those that surely count something else (`taciturn.columns.kinds.Date`).

**Missing** is what has no text: an empty cell, blanks, null, a column that a JSON object does not have, and the NaN of
JSON, Parquet and arrays, and pandas' NA and NaT. The words `nan`, `NA` and `?` are texts like any other.

**Unreadable** is what no column takes: a list, an object, or a field that cannot be decoded (`Unreadable`). It spoils
nothing but itself: an unreadable feature is a bad feature, an unreadable label a bad label, and an unreadable id none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import value_or_type
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.row_wise import RowWise, row_wise

_DECIMAL = re.compile(r"[0-9+\-.eE \t]*")


class Values(Protocol):
    """The values of a column in a block of rows."""

    def numbers(self) -> Array:
        """The number of each value; NaN for a value that is not a number."""

    def stored(self) -> Array | None:
        """The numbers as they are in memory, side by side, infinite ones and NaN too; None if they are not."""

    def texts(self) -> tuple[Integers, list[str | None]]:
        """Codes and distinct texts: the text of value i is `texts[codes[i]]`, None if it is missing."""

    def times(self) -> Array:
        """The seconds of each value since 1970-01-01 in UTC; NaN for a value that is not a time."""

    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing: those without a text."""

    def value(self, row: int) -> Any:
        """The value of one row, unchanged."""

    def listed(self) -> list[Any]:
        """All values, unchanged."""


class PlainValues(RowWise):
    """A sequence of Python values: strings, numbers, booleans or None.

    >>> values = PlainValues(["7", " 7.5 ", "seven", None, 7.0])
    >>> values.numbers()
    array([7. , 7.5, nan, nan, 7. ])
    >>> values.texts()
    (array([0, 1, 2, 3, 0]), ['7', '7.5', 'seven', None])
    >>> values.missing()
    array([False, False, False,  True, False])
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def numbers(self) -> Array:
        kinds = set(map(type, self.values))
        if kinds <= {int, float} or (kinds == {str} and _DECIMAL.fullmatch("".join(self.values))):
            with suppress(ValueError, OverflowError):  # one of them is not a number: fall back to one at a time
                numbers = np.array(list(map(float, self.values)), dtype=np.float64)
                return np.where(np.isfinite(numbers), numbers, math.nan)
        return np.array([number_of(value) for value in self.values], dtype=np.float64)

    def stored(self) -> None:
        return None

    def texts(self) -> tuple[Integers, list[str | None]]:
        places: dict[str | None, int] = {}
        kinds = set(map(type, self.values))
        if len(kinds) == 1 and kinds <= _PLAIN:  # then equal values have equal texts; 1 and True do not
            known = {v: places.setdefault(text_of(v), len(places)) for v in dict.fromkeys(self.values)}
            codes = list(map(known.__getitem__, self.values))
        else:
            codes = [places.setdefault(text_of(value), len(places)) for value in self.values]
        return np.array(codes, dtype=np.int64), list(places)

    def times(self) -> Array:
        return np.array([time_of(value) for value in self.values], dtype=np.float64)

    def missing(self) -> NDArray[np.bool_]:
        return np.array([text_of(value) is None for value in self.values], dtype=np.bool_)

    def value(self, row: int) -> Any:
        return self.values[row]

    def listed(self) -> list[Any]:
        return list(self.values)


class ArrayValues(RowWise):
    """A NumPy array of numbers or of times; it has the same numbers and texts as `PlainValues` of its values.

    >>> values = ArrayValues(np.array([7.0, np.nan, 0.5]))
    >>> values.numbers(), values.texts()
    (array([7. , nan, 0.5]), (array([1, 2, 0]), ['0.5', '7', None]))
    >>> ArrayValues(np.array(["1970-01-02", "NaT"], dtype="datetime64[ns]")).times()
    array([86400.,    nan])
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    @property
    def _are_times(self) -> bool:
        return self.array.dtype.kind == "M"

    def numbers(self) -> Array:
        if self._are_times:
            return np.full(len(self.array), math.nan)
        numbers = self.array.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, math.nan)

    def stored(self) -> Array | None:
        return self.array if self.array.dtype == np.float64 and self.array.flags.c_contiguous else None

    def texts(self) -> tuple[Integers, list[str | None]]:
        distinct, codes = np.unique(self.array, return_inverse=True)
        return codes.astype(np.int64), [text_of(value) for value in distinct]

    def times(self) -> Array:
        if not self._are_times:
            return self.numbers()
        micros = self.array.astype("datetime64[us]").astype(np.int64)
        seconds = (micros // 1_000_000).astype(np.float64) + micros % 1_000_000 / 1e6
        return np.where(np.isnat(self.array), math.nan, seconds)

    def missing(self) -> NDArray[np.bool_]:
        return np.isnat(self.array) if self._are_times else np.isnan(self.array.astype(np.float64))

    def value(self, row: int) -> Any:
        return _plain(self.array[row])

    def listed(self) -> list[Any]:
        return [_plain(value) for value in self.array]


def _plain(value: Any) -> Any:
    """A value of NumPy as one of Python; None for pandas' NA and NaT, whose types are known by name."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        return value.item()
    return None if type(value).__name__ in ("NAType", "NaTType") else value


_PLAIN = frozenset({str, float, int, bool, type(None)})


def number_of(value: Any) -> float:
    """The number of one value, or NaN.

    >>> number_of("1e3"), number_of("1_000"), number_of(True)
    (1000.0, nan, nan)
    """
    if type(value) not in _PLAIN:
        value = _plain(value)
    if isinstance(value, bool) or (isinstance(value, str) and not _DECIMAL.fullmatch(value)):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(value: Any) -> float:
    """The seconds of one value since 1970-01-01 in UTC, or NaN.

    >>> time_of("1970-01-02"), time_of("1970-01-01 02:00:00.5+02:00"), time_of("90"), time_of("May 1970")
    (86400.0, 0.5, 90.0, nan)
    """
    if type(value) not in _PLAIN:
        value = _plain(value)
    if isinstance(value, str):
        text = value.strip()
        if not _TIME.fullmatch(text):
            return number_of(value)
        try:
            value = datetime.fromisoformat(text)
        except ValueError:  # such as 30 February
            return math.nan
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return number_of(value)
    past = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH
    return float(past.days * 86_400 + past.seconds) + past.microseconds / 1e6


def text_of(value: Any) -> str | None:
    """The text of one value, or None if it is missing.

    >>> text_of(" yes "), text_of(7.0), text_of(0.1), text_of(True), text_of("  "), text_of(float("nan"))
    ('yes', '7', '0.1', 'true', None, None)
    """
    if type(value) not in _PLAIN:
        value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    try:
        return None if value is None else str(value).strip() or None
    except ValueError:  # an integer of more digits than Python writes: as JSON reads it
        return "inf" if value > 0 else "-inf"


@dataclass(frozen=True)
class Unreadable:
    """A field of a row that cannot be decoded; the reason has nothing of its content."""

    reason: str


def is_unreadable(value: Any) -> bool:
    """Whether no column takes it: a list, a dict or the like, or a field that cannot be decoded.

    >>> is_unreadable(["a"]), is_unreadable(Unreadable("is not UTF-8")), is_unreadable("a"), is_unreadable(None)
    (True, True, False, False)
    """
    return isinstance(value, list | tuple | dict | set | frozenset | Unreadable) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


@row_wise
def unreadable_rows(values: Values, rows: int) -> NDArray[np.bool_]:
    """Which of so many rows hold such a value; none in arrays of numbers, or in columns of Arrow.

    >>> unreadable_rows(PlainValues([1, [1], {}]), rows=3).tolist()
    [False, True, True]
    """
    if not isinstance(values, PlainValues) or set(map(type, values.values)) <= _PLAIN:
        return np.zeros(rows, dtype=np.bool_)
    return np.array([is_unreadable(value) for value in values.values], dtype=np.bool_)


def unreadable_error(name: str, value: Any) -> str | None:
    """The error of such a value in a column, or None.

    >>> unreadable_error("age", {"years": 7}), unreadable_error("age", 7)
    ('age is an object', None)
    """
    if not is_unreadable(value):
        return None
    if isinstance(value, Unreadable):
        return f"{name} {value.reason}"
    kind = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else type(value).__name__
    return f"{name} is {kind}"


def is_number(value: Any) -> bool:
    """Whether a declared value is a number within the range of floating point.

    >>> is_number(3), is_number(True), is_number("3"), is_number(10**400)
    (True, False, False, False)
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return isinstance(value, float) or abs(value) < 2**1000


def short_repr(value: Any) -> str:
    """A declared value for an error message: a scalar, or the type and the length of anything else.

    >>> short_repr("none"), short_repr([1643.34, 1386.09])
    ("'none'", 'list of length 2')
    """
    return value_or_type(value)
