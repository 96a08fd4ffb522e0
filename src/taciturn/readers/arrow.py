"""The values of Arrow columns: the fast path of `taciturn.columns.values.PlainValues`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.columns.values import number_of, text_of, time_of
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.arrow import listed
from taciturn.kernel.problem.row_wise import RowWise


class ArrowValues(RowWise):
    """A column of an Arrow table; it has the same numbers and texts as `PlainValues` of its values.

    >>> import pyarrow
    >>> values = ArrowValues(pyarrow.array([7.0, None, 0.5]))
    >>> values.numbers(), values.texts()
    (array([7. , nan, 0.5]), (array([0, 2, 1]), ['7', '0.5', None]))
    """

    def __init__(self, column: Any) -> None:
        if hasattr(column, "combine_chunks"):  # which copies also a column of one chunk
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        self.column = column

    def numbers(self) -> Array:
        import pyarrow as pa

        if self._numeric:
            column = (
                self.column if pa.types.is_float64(self.column.type) else self.column.cast(pa.float64(), safe=False)
            )
            numbers: Array = in_memory(column, np.float64, math.nan)
            finite = np.isfinite(numbers)
            return numbers if finite.all() else np.where(finite, numbers, math.nan)
        codes, distinct = self._distinct()
        return np.array([number_of(value) for value in distinct], dtype=np.float64)[codes]

    def stored(self) -> Array | None:
        import pyarrow as pa

        plain = pa.types.is_float64(self.column.type) and not self.column.null_count
        return in_memory(self.column, np.float64, math.nan) if plain else None

    def texts(self) -> tuple[Integers, list[str | None]]:
        codes, distinct = self._distinct()
        return codes, [text_of(value) for value in distinct]

    def times(self) -> Array:
        import pyarrow as pa

        kind = self.column.type
        if self._numeric:
            return self.numbers()
        if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
            days = pa.types.is_date32(kind)
            stored: Integers = in_memory(
                self.column.view(pa.int32() if days else pa.int64()).cast(pa.int64()), np.int64, 0
            )
            parts = 1 if days else _PARTS[kind.unit]
            micros = stored % parts * 1_000_000 // parts
            seconds = (stored // parts).astype(np.float64) * (86_400.0 if days else 1.0) + micros / 1e6
            return np.where(in_memory(self.column.is_null().cast(pa.int8()), np.int8, 1), math.nan, seconds)
        codes, distinct = self._distinct()
        return np.array([time_of(value) for value in distinct], dtype=np.float64)[codes]

    def missing(self) -> NDArray[np.bool_]:
        import pyarrow as pa

        if self._numeric:
            numbers: Array = in_memory(self.column.cast(pa.float64(), safe=False), np.float64, math.nan)
            return np.isnan(numbers)
        codes, texts = self.texts()
        return np.array([text is None for text in texts], dtype=np.bool_)[codes]

    @property
    def _numeric(self) -> bool:
        import pyarrow as pa

        return bool(pa.types.is_floating(self.column.type) or pa.types.is_integer(self.column.type))

    def value(self, row: int) -> Any:
        return listed(self.column.slice(row, 1))[0]

    def listed(self) -> list[Any]:
        codes, distinct = self._distinct()
        return [distinct[code] for code in codes.tolist()]

    def _distinct(self) -> tuple[Integers, list[Any]]:
        """Codes and distinct values, the last of which is None: row i has `values[codes[i]]`."""
        import pyarrow as pa

        coded = self.column if pa.types.is_dictionary(self.column.type) else self.column.dictionary_encode()
        values = listed(coded.dictionary)
        return in_memory(coded.indices.cast(pa.int64()), np.int64, len(values)), [*values, None]


_PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def in_memory(column: Any, kind: type, missing: float) -> Any:
    """The numbers of a column, read from Arrow's buffers: its own `to_numpy` and `fill_null` import pandas.

    >>> import pyarrow
    >>> in_memory(pyarrow.array([1.0, 2.0, None, 4.0])[1:], np.float64, math.nan)
    array([ 2., nan,  4.])
    """
    start = column.offset
    end = start + len(column)
    if column.null_count == len(column):
        return np.full(len(column), missing, kind)
    valid, values = column.buffers()
    numbers: Any = np.frombuffer(values, kind, count=end)[start:]
    if not column.null_count:
        return numbers
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=end, bitorder="little")[start:]
    return np.where(bits, numbers, missing).astype(kind)
