"""Examples given as dicts, converted to rows of fixed width: by declared names or by hashing, never by data.

A number is the value of its name. A text is a 1 under the name `"name=text"`: `{"city": "Rome"}` is `{"city=Rome": 1}`.
Every dict has a row; a value that is no number is NaN in it, which validation treats as a bad value.

A row is one array of doubles, so that it can be validated by its sum, which is finite only if all entries are.
"""

from __future__ import annotations

import math
import struct
import warnings
from array import array
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from taciturn.columns.encoder import ColumnEncoder, encoder_of
from taciturn.columns.hashing import bucket_cache
from taciturn.columns.kinds import INDICATOR, Categories, Hashed
from taciturn.errors import InvalidInput, did_you_mean, expect, float_or_nan, integer
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.row_wise import RowWise

Row: TypeAlias = "array[float]"


class Features(Protocol):
    """A rule that converts dicts to rows."""

    dimension: int

    @property
    def names(self) -> Sequence[Hashable]:
        """The name of each column."""

    @property
    def bad_row(self) -> Row:
        """The row of an example that cannot be read."""

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


class NamedFeatures(RowWise):
    """Features by declared names, a column each: a missing name is 0, and a name that was not declared is ignored.

    Names that look like those of river's `OneHotEncoder` are errors, or make a bad row if `on_bad` is "zero".

    >>> named = NamedFeatures(["age", "city=Rome"])
    >>> named.row({"age": 0.5, "city": "Rome", "shoe size": 44})
    array('d', [0.5, 1.0])
    """

    def __init__(self, names: Iterable[Hashable], on_bad: Literal["raise", "zero"] = "raise") -> None:
        expect("features", names, not isinstance(names, str) and isinstance(names, Iterable), 'features=["a", "b"]')
        self.names = tuple(names)
        self.dimension = len(self.names)
        if not self.names or len(set(self.names)) < self.dimension:
            raise InvalidInput("features must be one name or more, all different. Give them as in features=['a', 'b'].")
        self._zero = on_bad == "zero"
        self._texts: dict[str, dict[str, int]] = {}
        for column, name in enumerate(self.names):
            if isinstance(name, str) and "=" in name:
                before, _, text = name.partition("=")
                self._texts.setdefault(before, {})[text] = column
        self._known = frozenset((*self.names, *self._texts))
        self._warned = False
        self._first = True
        self._all = itemgetter(*self.names) if self.dimension > 1 and not self._texts else None
        self._pack = struct.Struct(f"{self.dimension}d").pack

    def row(self, x: Mapping[Any, Any]) -> Row:
        if self._first and isinstance(x, Mapping):
            self._first = False
            self._warn_of_indicators(x)
        if self._all is not None and type(x) is dict:  # a defaultdict would add missing names
            try:
                return array("d", self._pack(*self._all(x)))  # faster than an array of a tuple
            except (KeyError, TypeError, ValueError, OverflowError, struct.error):
                pass
        return self._any_row(_dict(x))

    def _any_row(self, x: Mapping[Any, Any]) -> Row:
        """The definition of `row`, for any mapping and values."""
        if not (x.keys() <= self._known):
            try:
                self._reject_one_hot(x)
            except InvalidInput:
                if self._zero:
                    return self.bad_row
                raise
            if not self._warned and self._known.isdisjoint(x):
                self._warned = True
                warnings.warn(
                    "this example has none of the declared features, so all of them are 0 in it. Check the names, if "
                    "that is not meant.",
                    stacklevel=5,
                )
        row = array("d", [float_or_nan(x.get(name, 0.0)) for name in self.names])
        for name, columns in self._texts.items():
            text = x.get(name)
            if isinstance(text, str) and text in columns:
                row[columns[text]] = 1.0
        return row

    def _warn_of_indicators(self, x: Mapping[Any, Any]) -> None:
        """Warn if a `PublicScaler` before the model adds indicators of missing values that it would ignore."""
        ignored = [f"{name}{INDICATOR}" for name in self.names if f"{name}{INDICATOR}" in x.keys() - self._known]
        if ignored:
            warnings.warn(
                f"the feature {ignored[0]!r}, which a PublicScaler adds for missing values, is not among the declared "
                "features, and is ignored. Add it to features=, or leave indicator=True out.",
                stacklevel=5,
            )

    def _reject_one_hot(self, x: Mapping[Any, Any]) -> None:
        """Reject names that river's `OneHotEncoder` makes of a declared name: they would be ignored.

        Its values are 0 and 1. What follows the declared name is a value of the row, and is not quoted.
        """
        for name in x.keys() - self._known:
            if not _is_indicator(x[name]):
                continue
            if (before := self._lacking(name, x)) is not None:
                raise InvalidInput(
                    f"this example has a name that begins with '{before}_' and is 0 or 1, and lacks the declared "
                    f"feature {before!r}: so does river's OneHotEncoder make names of texts. Leave the encoder out, "
                    f"and declare features=['{before}=...'] for each text, or columns={{'{before}': "
                    "{'categories': [...]}}; or check how the declared name is spelt, if it is another feature."
                )

    def _lacking(self, name: Hashable, names: Container[Any]) -> str | None:
        """The declared name that an undeclared one begins with, as a one-hot name does, and that is not among these."""
        before = str(name)
        while "_" in before:
            before = before.rpartition("_")[0]
            if before in self._known and before not in names:
                return before
        return None

    @property
    def bad_row(self) -> Row:
        return array("d", [math.nan] * self.dimension)

    def block(self, rows: Sequence[Row]) -> Array:
        return _dense_block(rows, self.dimension)

    def table(self, X: Any) -> Array:
        columns = [j for j, name in enumerate(self.names) if name in X.columns]
        given = X[[self.names[j] for j in columns]]
        one_hot = any(self._lacking(name, X.columns) is not None for name in set(X.columns) - self._known)
        if self._texts or one_hot or not all(kind.kind in "biuf" for kind in given.dtypes):  # one-hot rows are bad
            return self.block([self.row(x) for x in X.to_dict("records")])
        rows = np.zeros((len(X), self.dimension))
        rows[:, columns] = given.to_numpy(dtype=np.float64, na_value=math.nan)
        return rows

    def meet(self, row: Row, weights: Array) -> tuple[Array, Array]:
        return np.frombuffer(row), weights

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_pack"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _pack=struct.Struct(f"{state['dimension']}d").pack)

    def describe_bad_feature(self, row: Row) -> str:
        bad = next(name for name, entry in zip(self.names, row, strict=True) if not math.isfinite(entry))
        return f"feature {bad!r}"


class HashedFeatures(RowWise):
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

    @property
    def bad_row(self) -> Row:
        return array("d", [0.0, math.nan])

    def block(self, rows: Sequence[Row]) -> Any:
        return _sparse_block(rows, self.dimension)

    def table(self, X: Any) -> Any:
        return self.block([self.row(x) for x in X.to_dict("records")])

    def meet(self, row: Row, weights: Array) -> tuple[Array, Array]:
        return _sparse_meet(row, weights)

    def describe_bad_feature(self, row: Row) -> str:
        return "a feature"


class ColumnFeatures(RowWise):
    """Features of declared columns; what an example lacks is missing in it, and other names are errors.

    Names that river's `OneHotEncoder` makes, as `country_DE`, stand for the category of a declared column `country`.
    Rows are sparse, with their columns before their entries, if values are hashed. If `on_bad` is "zero", an example
    that cannot be read is no error, but a row of NaN, whether its values are bad or its names.

    >>> from taciturn.columns.encoder import encoder_of
    >>> declared = {"age": {"range": [0, 100]}, "country": {"categories": ["DE", "FR"]}}
    >>> rule = ColumnFeatures(encoder_of(declared))
    >>> rule.row({"age": 75, "country": "FR"}), rule.row({"country_DE": 1, "country_FR": 0})
    (array('d', [0.5, 0.0, 1.0]), array('d', [0.0, 1.0, 0.0]))
    """

    def __init__(
        self, encoder: ColumnEncoder, user: Hashable | None = None, on_bad: Literal["raise", "zero"] = "raise"
    ) -> None:
        if user is not None and user in encoder.read_keys:
            raise InvalidInput(f"{user!r} holds the id of a user, which is no feature. Leave it out of columns.")
        self.encoder = encoder
        self.dimension = encoder.dimension
        self.names: Sequence[Hashable] = encoder.feature_names
        self._user = user
        self._zero = on_bad == "zero"
        self._known = frozenset(encoder.keys) | (frozenset() if user is None else {user})
        columns = zip(encoder.read_keys, encoder.read, strict=True)
        self._categories = [key for key, column in columns if isinstance(column, Categories | Hashed)]
        self._parts = [
            (key, column.pairs, place.start)
            for key, column, place in zip(encoder.read_keys, encoder.read, encoder.places, strict=True)
        ]

    def row(self, x: Mapping[Any, Any]) -> Row:
        x = _dict(x)
        try:
            return self._row(x)
        except InvalidInput:
            if self._zero:
                return self.bad_row
            raise

    def _row(self, x: Mapping[Any, Any]) -> Row:
        if not (x.keys() <= self._known):
            x = self._matched(x)
        places: list[int] = []
        entries: list[float] = []
        missing = 0
        for key, pairs_of, start in self._parts:
            missing += key not in x
            pairs = pairs_of(x.get(key))
            if pairs is None:
                where = self.encoder.describe_bad(x, "this example")
                raise InvalidInput(f'{where} Nothing was learnt. Or set on_bad="zero" to count it without influence.')
            for place, entry in pairs:
                places.append(start + place)
                entries.append(entry)
        if missing == len(self._parts):
            empty = "" if x else " It has no names, as after river's OneHotEncoder(drop_first=True): leave that out."
            raise InvalidInput(
                f"this example has none of the declared columns, which are {self._listed}. Check the names; a column "
                f"that an example lacks is missing in it, but one at least must be there.{empty}"
            )
        if self.encoder.sparse:
            return array("d", [*places, *entries])
        row = array("d", bytes(8 * self.dimension))
        for place, entry in zip(places, entries, strict=True):
            row[place] = entry
        return row

    @property
    def bad_row(self) -> Row:
        return array("d", [0.0, math.nan] if self.encoder.sparse else [math.nan] * self.dimension)

    def _matched(self, x: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """The example with one-hot names of declared categories as those; other names are rejected."""
        known = {name: value for name, value in x.items() if name in self._known}
        for name in x.keys() - self._known:
            keys = [key for key in self._categories if str(name).startswith(f"{key}_") and key not in x]
            if not keys or not _is_indicator(x[name]):
                raise InvalidInput(self._undeclared(name, x[name]))
            key = max(keys, key=lambda k: len(str(k)))
            if x[name]:
                if key in known:
                    raise InvalidInput(f"this example has two one-hot names of column {key}. Give the value itself.")
                known[key] = str(name)[len(f"{key}_") :]
        return known

    def _undeclared(self, name: Any, value: Any) -> str:
        """What is said of a name that is not declared; not what may be a value in the name of an indicator."""
        near = did_you_mean(str(name), map(str, self.encoder.keys))
        before, mark, _ = str(name).partition("_")
        if mark and _is_indicator(value):
            before = next((str(key) for key in self.encoder.keys if str(name).startswith(f"{key}_")), before)
            return (
                f"this example has a name that begins with '{before}_' and is 0 or 1, which is not a declared column."
                f"{near} Declare it, or leave out river's OneHotEncoder, which makes such names, and declare "
                f"{{{before!r}: {{'categories': [...]}}}}; declared are {self._listed}."
            )
        other = "Or declare it" if near else "Declare it"
        return (
            f"this example has {name!r}, which is not a declared column.{near} {other}, for example as "
            f"{{{name!r}: {{'ignore': True}}}}; declared are {self._listed}."
        )

    @property
    def _listed(self) -> str:
        return ", ".join(map(str, self.encoder.keys[:20])) + (" ..." if len(self.encoder.keys) > 20 else "")

    def block(self, rows: Sequence[Row]) -> Any:
        return (_sparse_block if self.encoder.sparse else _dense_block)(rows, self.dimension)

    def table(self, X: Any) -> Any:
        if self._zero:  # which makes bad rows of rows, and the names of a table are no part of one
            for name in [name for name in X.columns if name not in self._known]:
                if not any(str(name).startswith(f"{key}_") for key in self._categories):
                    raise InvalidInput(self._undeclared(name, None))
        elif set(self.encoder.read_keys) <= set(X.columns) <= self._known:
            return self.encoder.features(X)
        return self.block([self.row(x) for x in X.to_dict("records")])

    def meet(self, row: Row, weights: Array) -> tuple[Array, Array]:
        return _sparse_meet(row, weights) if self.encoder.sparse else (np.frombuffer(row), weights)

    def describe_bad_feature(self, row: Row) -> str:
        return "a feature"


def _is_indicator(value: Any) -> bool:
    """Whether it is one of the values that an encoder of categories gives: 0 or 1, False or True."""
    return type(value) in (bool, int, float, np.bool_, np.int64, np.float64) and value in (0, 1)


def _dense_block(rows: Sequence[Row], dimension: int) -> Array:
    return np.frombuffer(bytearray().join(rows)).reshape(len(rows), dimension)  # writable, as compiled code knows it


def _sparse_block(rows: Sequence[Row], dimension: int) -> Any:
    """A sparse matrix of rows that have their columns first, then their entries."""
    from scipy.sparse import csr_matrix

    halves = [np.frombuffer(row).reshape(2, -1) for row in rows if row]
    columns, entries = np.concatenate(halves, axis=1) if halves else np.zeros((2, 0))
    starts = np.cumsum([0, *(len(row) // 2 for row in rows)])
    return csr_matrix((entries, columns.astype(np.int64), starts), shape=(len(rows), dimension))


def _sparse_meet(row: Row, weights: Array) -> tuple[Array, Array]:
    columns, entries = np.asarray(row).reshape(2, -1)
    return entries, weights[..., columns.astype(np.int64)]


def features_of(
    names: Iterable[Hashable] | None,
    buckets: int | None,
    user: Hashable | None = None,
    signed: bool = True,
    columns: Any = None,
    on_bad: Literal["raise", "zero"] = "raise",
) -> Features:
    """The rule for declared names, for a number of buckets or for columns, one of them; the key `user` is no feature.

    >>> features_of(["a", "b"], None).dimension, features_of(None, 1024).dimension
    (2, 1024)
    """
    if sum(stated is not None for stated in (names, buckets, columns)) != 1:
        raise InvalidInput(
            'state features=["a", "b"], the names that examples may have, buckets=1024, into which any names are '
            'hashed, or columns={"a": {"range": [0, 1]}}; one of the three. Names are never inferred from data.'
        )
    if columns is not None:
        encoder = encoder_of(columns)
        return ColumnFeatures(encoder if signed else encoder.without_signs(), user, on_bad)
    if names is None:
        return HashedFeatures(integer("buckets", buckets), user, signed)
    named = NamedFeatures(names, on_bad)
    if user is not None and any(name == user or str(name).startswith(f"{user}=") for name in named.names):
        raise InvalidInput(f"{user!r} holds the id of a user, which is no feature. Leave it out of features.")
    return named


def _dict(x: Any) -> Mapping[Any, Any]:
    if type(x) is not dict and not isinstance(x, Mapping):  # the latter takes longer
        other = "x.to_dict()" if hasattr(x, "to_dict") else "{'a': 1}"
        raise InvalidInput(f"an example is a dict from names to values, got {type(x).__name__}. Give one as {other}.")
    return x
