"""Rows of numbers from arrays, lists, SciPy's sparse matrices and Arrow tables.

Sparse matrices and tables are converted to arrays a block at a time; learners that need no dense rows take a sparse
matrix as `CompressedRows`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.arrow import is_text, listed
from taciturn.kernel.errors import InvalidInput
from taciturn.kernel.problem.row_wise import RowWise, row_wise

_REMEDY = "X.check_format() says what is wrong with it."


class Source(Protocol):
    """Rows of numbers that can be sliced; a slice is an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __getitem__(self, block: slice) -> Array:
        """A block of rows as an array."""


class SparseRows(RowWise):
    """The rows of a SciPy sparse matrix; a slice is a dense array.

    >>> from scipy.sparse import csr_matrix
    >>> SparseRows(csr_matrix([[0.0, 2.0], [1.0, 0.0]]))[1:2]
    array([[1., 0.]])
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.tocsr()
        self.shape = self.matrix.shape
        if len(self.shape) != 2:
            return  # rejected by its shape later
        starts = np.array(self.matrix.indptr, dtype=np.int64)  # a copy: it cannot change after it was validated
        increasing = len(starts) == self.shape[0] + 1 and starts[0] >= 0 and bool((starts[1:] >= starts[:-1]).all())
        if not increasing or starts[-1] > min(len(self.matrix.indices), len(self.matrix.data)):
            raise InvalidInput(f"indptr of a sparse matrix must increase from row to row within its data. {_REMEDY}")
        self.starts = starts

    def __getitem__(self, block: slice) -> Array:
        first, end, _ = block.indices(self.shape[0])
        starts = self.starts[first : max(first, end) + 1]
        columns, entries = stored(self.matrix.indices, self.matrix.data, int(starts[0]), int(starts[-1]), self.shape[1])
        real = self.matrix.dtype.kind in "biuf"
        out = np.full((len(starts) - 1, self.shape[1]), 0.0 if real else math.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(out, (np.repeat(np.arange(len(out)), np.diff(starts)), columns), entries)
        return out


@row_wise
def stored(columns: Any, entries: Any, first: int, last: int, width: int) -> tuple[Integers, Array]:
    """Validated copies of the columns and entries stored at positions `first` to `last`.

    SciPy would write a column out of range into the next row, which is another example.
    """
    columns = np.array(columns[first:last], dtype=np.int64)
    if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < width:
        raise InvalidInput(f"column indices of a sparse matrix of {width} columns must be below {width}. {_REMEDY}")
    return columns, np.array(as_numbers(entries[first:last]), dtype=np.float64)


class ColumnRows(RowWise):
    """The rows of an Arrow table or record batch; a slice is an array, and only slices are copied.

    A missing value becomes NaN.
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        self.shape = (table.num_rows, table.num_columns)

    def __getitem__(self, block: slice) -> Array:
        start, end, _ = block.indices(self.shape[0])
        part = self.table.slice(start, end - start)
        out = np.empty((end - start, self.shape[1]))
        for j, column in enumerate(part.columns):
            out[:, j] = as_numbers(listed(column) if is_text(column) else np.asarray(column))
        return out


@dataclass(frozen=True)
class PartOfRows(RowWise):
    """Some consecutive rows of a source; a slice is an array."""

    source: Source
    first: int
    end: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.end - self.first, *self.source.shape[1:])

    def __getitem__(self, block: slice) -> Array:
        first, end, _ = block.indices(self.end - self.first)
        return self.source[self.first + first : self.first + max(first, end)]


def part_of(rows: Source, first: int, end: int) -> Source:
    """Some consecutive rows; of a sparse matrix or a table nothing is converted before it is sliced.

    >>> from scipy.sparse import csr_matrix
    >>> part_of(SparseRows(csr_matrix([[0.0, 2.0], [1.0, 0.0], [3.0, 0.0]])), 1, 3)[1:2]
    array([[3., 0.]])
    """
    return rows[first:end] if isinstance(rows, np.ndarray) else PartOfRows(rows, first, end)


def source_of(X: Any) -> Source | None:
    """`X` as a `Source` if it is a sparse matrix or an Arrow table, else None; neither library is imported."""
    if isinstance(X, SparseRows | ColumnRows):
        return X
    if hasattr(X, "tocsr") and hasattr(X, "toarray"):
        return SparseRows(X)
    if hasattr(X, "num_columns") and hasattr(X, "slice") and hasattr(X, "columns"):
        return ColumnRows(X)
    return None


FLOAT = np.dtype(np.float64)
"""The type of numbers that need no conversion."""


@row_wise
def as_numbers(values: Any) -> Array:
    """Convert to an array of floats; entries that are not numbers become NaN, which validation treats as bad values.

    An entry is converted by itself: one that is no number changes nothing in how the others are converted, as one
    example must not change how other examples are read.

    >>> as_numbers(["1.5", None, 2])
    array([1.5, nan, 2. ])
    """
    if type(values) is np.ndarray and values.dtype is FLOAT:  # most are
        return values
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    try:
        plain = np.asarray(values)
        if plain.dtype is FLOAT or plain.dtype in (np.float32, np.float64):
            return plain
        if plain.dtype.kind in "biuf":
            return np.asarray(plain, dtype=np.float64, order="C")
        if plain.dtype.kind in "mM" and isinstance(values, np.ndarray):  # a list with one duration has this kind too
            return np.full(plain.shape, math.nan)
    except (ValueError, OverflowError):
        pass
    try:
        entries = np.asarray(values, dtype=object)
        return np.array([as_number(entry) for entry in entries.ravel()]).reshape(entries.shape)
    except ValueError:
        raise InvalidInput("examples must be rows of equal length, each of numbers.") from None


def as_number(entry: Any) -> float:
    """Convert one entry to a float; NaN for dates, durations, sequences and the like."""
    if isinstance(entry, np.datetime64 | np.timedelta64) or (isinstance(entry, np.ndarray) and entry.ndim):
        return math.nan
    try:
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return math.nan


@row_wise
def real_numbers(name: str, values: Any, remedy: str) -> Array:
    """An array of floats, of entries that are booleans, integers or floats; others are rejected and not shown.

    None, pandas' NA and masked entries are NaN, and an integer beyond all floats is infinite. Dates, durations and
    texts are no numbers, nor are those whose text is one: unlike `as_numbers`, which makes one bad row of them.

    >>> real_numbers("rewards", [1, None, True], "Convert them.")
    array([ 1., nan,  1.])
    >>> real_numbers("rewards", [1, "2"], "Convert them.")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: rewards must be numbers, of type bool, int or float, in rows of equal length, and some
    are not. Convert them.
    """
    if type(values) is np.ndarray and values.dtype is FLOAT:  # most are
        return values
    try:
        plain = np.asarray(_unmasked(values))
        if plain.dtype.kind in "biuf":
            return np.asarray(plain, dtype=np.float64)
        if plain.dtype.kind == "O":
            return np.array([_real(entry) for entry in plain.ravel()], dtype=np.float64).reshape(plain.shape)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(
        f"{name} must be numbers, of type bool, int or float, in rows of equal length, and some are not. {remedy}"
    )


def _unmasked(values: Any) -> Any:
    """The same with None in the place of masked entries, which np.asarray would show."""
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return values.data
        entries = values.data.astype(object)
        entries[np.ma.getmaskarray(values)] = None
        return entries[()]  # None itself, if there is one entry without an axis
    if isinstance(values, list | tuple) and any(isinstance(v, list | tuple | np.ma.MaskedArray) for v in values):
        return [_unmasked(each) for each in values]
    return values


def _real(entry: Any) -> float:
    if entry is None or type(entry).__name__ == "NAType":
        return math.nan
    if isinstance(entry, np.timedelta64) or not isinstance(entry, int | float | np.bool_ | np.integer | np.floating):
        raise TypeError  # a duration is an np.integer
    try:
        return float(entry)
    except OverflowError:
        return math.inf if entry > 0 else -math.inf


@dataclass(frozen=True, eq=False)
class CompressedRows(RowWise):
    """Rows in compressed sparse row (CSR) format, possibly a slice of a matrix, with which it shares memory.

    Row i has `entries[starts[i]:starts[i+1]]` in the columns `columns[starts[i]:starts[i+1]]`, and 0 elsewhere.

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
        """The end of the longest block from row `start` on with at most `most` rows and entries in all, or of one row.

        >>> CompressedRows(np.array([0, 2, 4, 9]), None, None, 5).end_of_block(0, most=6)
        2
        """
        before = int(self.starts[start]) + start
        rows = range(start + 1, self.shape[0] + 1)
        fitting = bisect_right(rows, most, key=lambda end: int(self.starts[end]) + end - before)
        return start + max(1, fitting)

    def numbers(self) -> tuple[Integers, Integers, Array]:
        """Validated copies of starts (from 0 on), columns and entries of these rows, as compiled code takes them."""
        first, last = int(self.starts[0]), int(self.starts[-1])
        columns, entries = stored(self.columns, self.entries, first, last, self.width)
        return np.asarray(self.starts, dtype=np.int64) - first, columns, entries

    def matrix(self) -> Any:
        """A SciPy matrix of these rows, a copy."""
        from scipy.sparse import csr_matrix

        starts, columns, entries = self.numbers()
        return csr_matrix((entries, columns, starts), shape=self.shape)

    def dense(self) -> Array:
        """An array of these rows; entries stored twice are added up."""
        starts, columns, entries = self.numbers()
        out = np.zeros(self.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(out, (np.repeat(np.arange(len(out)), np.diff(starts)), columns), entries)
        return out


Rows = Array | CompressedRows
"""Clipped examples: an array, or compressed rows for learners that take them."""


def compressed(source: SparseRows) -> CompressedRows | None:
    """The rows of a sparse matrix without copying; None if its entries are not real numbers."""
    matrix = source.matrix
    if matrix.dtype.kind not in "biuf":
        return None
    return CompressedRows(source.starts, matrix.indices, matrix.data, source.shape[1])


def as_parts(rows: Rows) -> tuple[Array, Integers, Integers, Array]:
    """Dense or compressed rows as one type for compiled code: dense rows, and CSR arrays, one of the two empty.

    >>> [part.shape for part in as_parts(np.ones((2, 3)))]
    [(2, 3), (0,), (0,), (0,)]
    """
    if isinstance(rows, CompressedRows):
        return np.empty((0, rows.width)), rows.starts, rows.columns, rows.entries
    return rows, _NO_INTEGERS, _NO_INTEGERS, _NO_NUMBERS


_NO_INTEGERS, _NO_NUMBERS = np.empty(0, dtype=np.int64), np.empty(0)
