"""Examples given as dicts, converted to rows of fixed width: by declared names or by hashing, never by data.

A number is the value of its name. A text is a 1 under the name `"name=text"`: `{"city": "Rome"}` is `{"city=Rome": 1}`.
Every dict has a row; a value that is no number is NaN in it, which validation treats as a bad value.

A row is one array of doubles, so that it can be validated by its sum, which is finite only if all entries are.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import numpy as np

from taciturn._util.arrays import Array
from taciturn.columns.hashing import bucket_cache
from taciturn.errors import InvalidInput, expect, float_or_nan, integer

Row: TypeAlias = "array[float]"


class Features(Protocol):
    """A rule that converts dicts to rows."""

    dimension: int

    @property
    def names(self) -> Sequence[Hashable]:
        """The name of each column."""

    def row(self, x: Mapping[Any, Any]) -> Row:
        """The row of one example."""

    def block(self, rows: Sequence[Row]) -> Any:
        """Several rows as one array or sparse matrix."""

    def table(self, X: Any) -> Any:
        """The rows of a data frame: those of its records as dicts."""

    def meet(self, row: Row, weights: Array) -> tuple[Array, Array]:
        """The stored entries of a row, and the columns of `weights` that they are multiplied by."""

    def describe_bad_feature(self, row: Row) -> str:
        """Which feature of a bad row is bad, as far as the name is public."""


class NamedFeatures:
    """Features by declared names, a column each: a missing name is 0, and a name that was not declared is ignored.

    >>> named = NamedFeatures(["age", "city=Rome"])
    >>> named.row({"age": 0.5, "city": "Rome", "shoe size": 44})
    array('d', [0.5, 1.0])
    """

    def __init__(self, names: Iterable[Hashable]) -> None:
        expect("features", names, not isinstance(names, str) and isinstance(names, Iterable), 'features=["a", "b"]')
        self.names = tuple(names)
        self.dimension = len(self.names)
        if not self.names or len(set(self.names)) < self.dimension:
            raise InvalidInput("features must be one name or more, all different. Give them as in features=['a', 'b'].")
        self._texts: dict[str, dict[str, int]] = {}
        for column, name in enumerate(self.names):
            if isinstance(name, str) and "=" in name:
                before, _, text = name.partition("=")
                self._texts.setdefault(before, {})[text] = column
        self._all = itemgetter(*self.names) if self.dimension > 1 and not self._texts else None
        self._format = f"{self.dimension}d"

    def row(self, x: Mapping[Any, Any]) -> Row:
        if self._all is not None and type(x) is dict:  # a defaultdict would add missing names
            try:
                return array("d", struct.pack(self._format, *self._all(x)))  # faster than an array of a tuple
            except (KeyError, TypeError, ValueError, OverflowError, struct.error):
                pass
        return self._any_row(_dict(x))

    def _any_row(self, x: Mapping[Any, Any]) -> Row:
        """The definition of `row`, for any mapping and values."""
        row = array("d", [float_or_nan(x.get(name, 0.0)) for name in self.names])
        for name, columns in self._texts.items():
            text = x.get(name)
            if isinstance(text, str) and text in columns:
                row[columns[text]] = 1.0
        return row

    def block(self, rows: Sequence[Row]) -> Array:
        return np.frombuffer(b"".join(rows), dtype=np.float64).reshape(len(rows), self.dimension)

    def table(self, X: Any) -> Array:
        columns = [j for j, name in enumerate(self.names) if name in X.columns]
        given = X[[self.names[j] for j in columns]]
        if self._texts or not all(kind.kind in "biuf" for kind in given.dtypes):
            return self.block([self.row(x) for x in X.to_dict("records")])
        rows = np.zeros((len(X), self.dimension))
        rows[:, columns] = given.to_numpy(dtype=np.float64, na_value=math.nan)
        return rows

    def meet(self, row: Row, weights: Array) -> tuple[Array, Array]:
        return np.frombuffer(row), weights

    def describe_bad_feature(self, row: Row) -> str:
        bad = next(name for name, entry in zip(self.names, row, strict=True) if not math.isfinite(entry))
        return f"feature {bad!r}"


class HashedFeatures:
    """Features by signed hashing: any name but `user` is hashed to a column and a sign, by `signed_bucket`.

    A row holds its columns first, then its entries. Without `signed` names that share a column are added up, for
    learners of values that are not negative.

    >>> HashedFeatures(16).row({"age": 0.5, "city": "Rome"})
    array('d', [13.0, 11.0, 0.5, 1.0])
    """

    def __init__(self, buckets: int, user: Hashable | None = None, signed: bool = True) -> None:
        self.dimension = integer("buckets", buckets)
        self._user = user
        self._signed = signed

    @property
    def names(self) -> Sequence[Hashable]:
        return range(self.dimension)

    def row(self, x: Mapping[Any, Any]) -> Row:
        entries: dict[int, float] = {}
        places = bucket_cache(self.dimension)
        x = _dict(x)
        if self._user is not None and self._user in x:
            x = {name: value for name, value in x.items() if name != self._user}
        for name, value in x.items():
            if type(value) is not float:
                name, value = (f"{name}={value}", 1.0) if isinstance(value, str) else (name, float_or_nan(value))
            column, sign = places[name if type(name) is str else str(name)]
            if not self._signed:
                sign = 1.0
            entries[column] = entries[column] + sign * value if column in entries else sign * value
        return array("d", [*entries, *entries.values()])

    def block(self, rows: Sequence[Row]) -> Any:
        from scipy.sparse import csr_matrix

        halves = [np.frombuffer(row).reshape(2, -1) for row in rows if row]
        columns, entries = np.concatenate(halves, axis=1) if halves else np.zeros((2, 0))
        starts = np.cumsum([0, *(len(row) // 2 for row in rows)])
        return csr_matrix((entries, columns.astype(np.int64), starts), shape=(len(rows), self.dimension))

    def table(self, X: Any) -> Any:
        return self.block([self.row(x) for x in X.to_dict("records")])

    def meet(self, row: Row, weights: Array) -> tuple[Array, Array]:
        columns, entries = np.asarray(row).reshape(2, -1)
        return entries, weights[..., columns.astype(np.int64)]

    def describe_bad_feature(self, row: Row) -> str:
        return "a feature"


def features_of(
    names: Iterable[Hashable] | None, buckets: int | None, user: Hashable | None = None, signed: bool = True
) -> Features:
    """The rule for declared names or for a number of buckets, one of the two; the key `user` is no feature.

    >>> features_of(["a", "b"], None).dimension, features_of(None, 1024).dimension
    (2, 1024)
    """
    if (names is None) == (buckets is None):
        raise InvalidInput(
            'state features=["a", "b"], the names that examples may have, or buckets=1024, into which any names are '
            "hashed; one of the two. Names are never inferred from data."
        )
    if names is None:
        return HashedFeatures(integer("buckets", buckets), user, signed)
    named = NamedFeatures(names)
    if user is not None and any(name == user or str(name).startswith(f"{user}=") for name in named.names):
        raise InvalidInput(f"{user!r} holds the id of a user, which is no feature. Leave it out of features.")
    return named


def _dict(x: Any) -> Mapping[Any, Any]:
    if not hasattr(x, "get"):
        raise InvalidInput(
            f"an example is a dict from names to values, got {type(x).__name__}. Give one as {{'a': 1}}."
        )
    return x  # type: ignore[no-any-return]
