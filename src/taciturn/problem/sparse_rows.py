"""Rows of which only some entries are stored, as in SciPy's CSR, for learners that need no dense ones."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn._util.arrays import Array, Integers
from taciturn.problem.inputs import SparseRows, stored

ByNumber = tuple[Array, Integers, Integers, Array]
"""Rows for compiled code: an array and nothing, or an array without rows and compressed ones."""


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
