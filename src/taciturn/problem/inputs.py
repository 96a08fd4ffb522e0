"""Where rows come from: numbers out of anything; sparse matrices and Arrow tables, a block at a time."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from taciturn._util.arrays import Array, Integers
from taciturn.errors import InvalidInput

_REMEDY = "X.check_format() says what is wrong with it."


class Source(Protocol):
    """Rows of numbers, of which a block at a time becomes an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __getitem__(self, block: slice) -> Array:
        """These rows."""


class SparseRows:
    """A sparse matrix of SciPy's, made dense a block at a time where a learner needs that.

    >>> from scipy.sparse import csr_matrix
    >>> SparseRows(csr_matrix([[0.0, 2.0], [1.0, 0.0]]))[1:2]
    array([[1., 0.]])
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()
        self.shape = self.matrix.shape
        if len(self.shape) != 2:
            return  # refused for its shape
        starts = np.array(self.matrix.indptr, dtype=np.int64)  # a copy: what was checked is what is used
        rising = len(starts) == self.shape[0] + 1 and starts[0] >= 0 and bool((starts[1:] >= starts[:-1]).all())
        if not rising or starts[-1] > min(len(self.matrix.indices), len(self.matrix.data)):
            raise InvalidInput(f"the rows of a sparse matrix do not follow each other. {_REMEDY}")
        self.starts = starts

    def __getitem__(self, block: slice) -> Array:
        first, end, _ = block.indices(self.shape[0])
        starts = self.starts[first : max(first, end) + 1]
        numbers = int(starts[0]), int(starts[-1]), self.shape[1]
        columns, entries = stored(self.matrix.indices, self.matrix.data, *numbers)
        real = self.matrix.dtype.kind in "biuf"
        out = np.full((len(starts) - 1, self.shape[1]), 0.0 if real else math.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(out, (np.repeat(np.arange(len(out)), np.diff(starts)), columns), entries)
        return out


def stored(columns: Any, entries: Any, first: int, last: int, width: int) -> tuple[Integers, Array]:
    """Copies of the stored columns and entries from one number to another, or a refusal.

    SciPy would take a column that is not there to the next row, which is another person's.
    """
    columns = np.array(columns[first:last], dtype=np.int64)
    if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < width:
        raise InvalidInput(f"a sparse matrix of {width} columns names others. {_REMEDY}")
    return columns, np.array(as_numbers(entries[first:last]), dtype=np.float64)


class ColumnRows:
    """A table or batch of Arrow's: columns of numbers, without copies but of the block that is asked for.

    A missing value is not a number.
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        self.shape = (table.num_rows, table.num_columns)

    def __getitem__(self, block: slice) -> Array:
        start, end, _ = block.indices(self.shape[0])
        part, out = self.table.slice(start, end - start), np.empty((end - start, self.shape[1]))
        for j, column in enumerate(part.columns):
            out[:, j] = as_numbers(np.asarray(column))
        return out


def source_of(X: Any) -> Source | None:
    """A source of rows, if `X` is a sparse matrix or an Arrow table, or is one; nothing is imported to find out."""
    if isinstance(X, SparseRows | ColumnRows):
        return X
    if hasattr(X, "tocsr") and hasattr(X, "toarray"):
        return SparseRows(X)
    if hasattr(X, "num_columns") and hasattr(X, "slice") and hasattr(X, "columns"):
        return ColumnRows(X)
    return None


def as_numbers(values: Any) -> Array:
    """An array of floats; what is not a number becomes NaN, and is dealt with as a bad value.

    An entry's number depends on that entry alone: if one of them is no number, the others are read as they would have
    been without it. One person's row must not change how another's is read.

    >>> as_numbers(["1.5", None, 2])
    array([1.5, nan, 2. ])
    """
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    try:
        plain = np.asarray(values)
        if plain.dtype in (np.float32, np.float64):
            return plain
        if plain.dtype.kind in "biuf":
            return np.asarray(plain, dtype=np.float64, order="C")
        if plain.dtype.kind in "mM" and isinstance(values, np.ndarray):  # one duration makes a list of numbers "m"
            return np.full(plain.shape, math.nan)
    except (ValueError, OverflowError):
        pass
    try:
        entries = np.asarray(values, dtype=object)
        return np.array([_as_number(entry) for entry in entries.ravel()]).reshape(entries.shape)
    except ValueError:
        raise InvalidInput("examples must be rows of equal length, each of numbers.") from None


def _as_number(entry: Any) -> float:
    """Its float; dates, durations, sequences and the like have none."""
    if isinstance(entry, np.datetime64 | np.timedelta64) or (isinstance(entry, np.ndarray) and entry.ndim):
        return math.nan
    try:
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return math.nan


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Row i has `entries[starts[i]:starts[i+1]]` in the `columns` of these numbers, and 0 elsewhere.

    A slice shares memory with the whole.

    >>> from scipy.sparse import csr_matrix
    >>> rows = compressed(SparseRows(csr_matrix([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])))
    >>> rows.shape, rows[1:].shape, rows[1:].dense().tolist()
    ((3, 2), (2, 2), [[1.0, 0.0], [0.0, 0.0]])
    """

    starts: Any
    columns: Any
    entries: Any
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.starts) - 1, self.width

    def __getitem__(self, block: slice) -> CompressedRows:
        start, end, _ = block.indices(self.shape[0])
        return CompressedRows(self.starts[start : max(start, end) + 1], self.columns, self.entries, self.width)

    def end_of_block(self, start: int, most: int) -> int:
        """The end of the longest block from row `start` on whose rows and entries come to `most`; of one row at least.

        >>> CompressedRows(np.array([0, 2, 4, 9]), None, None, 5).end_of_block(0, most=6)
        2
        """
        before = int(self.starts[start]) + start
        rows = range(start + 1, self.shape[0] + 1)
        fitting = bisect_right(rows, most, key=lambda end: int(self.starts[end]) + end - before)
        return start + max(1, fitting)

    def numbers(self) -> tuple[Integers, Integers, Array]:
        """Starts from 0 on, columns and entries as compiled code wants them, of these rows alone: copies, checked."""
        first, last = int(self.starts[0]), int(self.starts[-1])
        columns, entries = stored(self.columns, self.entries, first, last, self.width)
        return np.asarray(self.starts, dtype=np.int64) - first, columns, entries

    def matrix(self) -> Any:
        """As a matrix of SciPy's, a copy."""
        from scipy.sparse import csr_matrix

        starts, columns, entries = self.numbers()
        return csr_matrix((entries, columns, starts), shape=self.shape)

    def dense(self) -> Array:
        """As an array; what is stored twice is added up."""
        starts, columns, entries = self.numbers()
        out = np.zeros(self.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(out, (np.repeat(np.arange(len(out)), np.diff(starts)), columns), entries)
        return out


Rows = Array | CompressedRows
"""Bounded examples: an array, or compressed rows where a learner takes them."""

ByNumber = tuple[Array, Integers, Integers, Array]
"""Rows for compiled code: an array and nothing, or an array without rows and compressed ones."""


def compressed(source: SparseRows) -> CompressedRows | None:
    """The rows of a sparse matrix, not copied; None if its entries are not real numbers."""
    matrix = source.matrix
    if matrix.dtype.kind not in "biuf":
        return None
    return CompressedRows(source.starts, matrix.indices, matrix.data, source.shape[1])


def by_number(rows: Rows) -> ByNumber:
    """Either kind of bounded rows, as one type for compiled code.

    >>> [part.shape for part in by_number(np.ones((2, 3)))]
    [(2, 3), (0,), (0,), (0,)]
    """
    if isinstance(rows, CompressedRows):
        return np.empty((0, rows.width)), rows.starts, rows.columns, rows.entries
    none = np.empty(0, dtype=np.int64)
    return rows, none, none, np.empty(0)
