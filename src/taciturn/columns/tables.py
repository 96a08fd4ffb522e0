"""The columns of tables in memory: data frames of pandas and polars, Arrow tables, mappings of lists, and arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from taciturn.columns.values import ArrayValues, PlainValues, Values
from taciturn.errors import InvalidInput
from taciturn.kernel.arrow import listed
from taciturn.kernel.problem.row_wise import RowWise


class Table(RowWise):
    """The columns of a table by name; those of an array, or a list of rows, are 0, 1, 2 and so on.

    Neither pandas nor polars nor Arrow is imported.

    >>> table = Table({"age": [31, None], "town": ["Oslo", "Rome"]})
    >>> table.names, table.rows, table.values("age").numbers()
    (['age', 'town'], 2, array([31., nan]))
    >>> Table([[1.5, "a"], [2.5, "b"]]).names
    [0, 1]
    """

    def __init__(self, X: Any) -> None:
        if hasattr(X, "tocsr") or not (hasattr(X, "__getitem__") or hasattr(X, "__array__")):
            what = "a sparse matrix" if hasattr(X, "tocsr") else type(X).__name__
            raise InvalidInput(f"columns are those of a table, and this is {what}. Give a data frame or an array.")
        if isinstance(X, Mapping):
            self.names: list[Hashable] = list(X)
        elif hasattr(X, "column_names"):  # of Arrow
            self.names = list(X.column_names)
        elif hasattr(X, "columns"):
            self.names = list(X.columns)
        else:
            X = np.asarray(X) if hasattr(X, "dtype") else np.asarray(X, dtype=object)
            if X.ndim != 2:
                raise InvalidInput(
                    f"a table has rows and columns, and this array has {X.ndim} dimension{'s' * (X.ndim != 1)}. Give a "
                    "data frame, or an array with a row for each example."
                )
            self.names = list(range(X.shape[1]))
        self._of: Any = X
        sizes = {_length(self._column(name)) for name in self.names if self.names.count(name) == 1}
        if len(sizes) > 1:
            raise InvalidInput("the columns of a table must have equally many values. Check where they come from.")
        self.rows = sizes.pop() if sizes else 0

    def _column(self, name: Any) -> Any:
        return self._of[:, name] if isinstance(self._of, np.ndarray) else self._of[name]

    def values(self, name: Hashable) -> Values:
        """The values of a column."""
        column = self._column(name)
        if hasattr(column, "to_pylist"):  # of Arrow
            return PlainValues(listed(column))
        if hasattr(column, "isna") and not isinstance(column.dtype, np.dtype):  # of pandas, with a mask
            return PlainValues(column.astype(object).where(column.notna(), None).tolist())
        if hasattr(column, "to_list") and not hasattr(column, "isna"):  # of polars
            return PlainValues(column.to_list())
        array = column.to_numpy() if hasattr(column, "to_numpy") else column
        if isinstance(array, np.ndarray) and array.dtype.kind in "iufM":
            return ArrayValues(array)
        return PlainValues(array.tolist() if isinstance(array, np.ndarray) else list(array))


def _length(column: Any) -> int:
    if isinstance(column, str) or not hasattr(column, "__len__"):
        raise InvalidInput(
            f"a column of a table is a list of values, and this is {type(column).__name__}. Give a data frame with a "
            "row for each example, or a list for each column."
        )
    return len(column)
