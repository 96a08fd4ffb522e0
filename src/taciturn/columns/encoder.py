"""Declared columns together: the features of a table, their names, and the bound on the norm of a row.

**Feature bound.** A row of r numbers and dates, and of c categories, bins, hashed values, texts, cycles and indicators,
has a squared norm of at most `c + r` (`taciturn.columns.kinds`), which few rows come near: numbers that are spread
evenly over their ranges have `c + r/3` on average, with a standard deviation of `sqrt(4r/45)`. The default allows two
of those more, `sqrt(c + min(r, r/3 + 0.6·sqrt(r)))`, and clips what is longer. Noise grows with the bound: on Covertype
(ten numbers and two categories, class 2 against the rest, 522,911 rows, delta = 1e-6) the accuracy at epsilon = .1 is
72.8 % with the largest norm, 3.46, and 74.1 % with any bound from 1 to 2.3. A number that is standardised, because its
range is found privately, counts 1; with such columns the bound is half as large for classes, so that nearly all rows
reach it, and 1.5 times as large for numbers (`taciturn.estimators.settings`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from taciturn.columns.declaration import KINDS, column_of
from taciturn.columns.kinds import Bad, Bins, Categories, Column, Date, Groups, Hashed, Ignored, PrivateRange, Text
from taciturn.columns.tables import Table
from taciturn.columns.values import Values, is_unreadable, text_of, unreadable_rows
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.row_wise import RowWise


@dataclass(frozen=True)
class ColumnEncoder(RowWise):
    """How the columns of a table become features; nothing in it is learnt from data.

    Parameters
    ----------
    columns : tuple of columns
        In the order of their features.
    keys : tuple
        The name of each column in the table: its own, or a number for arrays.

    Examples
    --------
    >>> declared = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    >>> encoder = encoder_of(declared)
    >>> encoder.feature_names, round(encoder.feature_bound(classes=True), 3)
    (('age', 'town=Oslo', 'town=Rome'), 1.39)
    >>> encoder.features({"age": [75, None], "town": ["Rome", "Bonn"]})
    array([[0.5, 0. , 1. ],
           [0. , 0. , 0. ]])
    """

    columns: tuple[Column, ...]
    keys: tuple[Hashable, ...]

    @cached_property
    def read(self) -> tuple[Column, ...]:
        """The columns that are not ignored."""
        return tuple(column for column in self.columns if not isinstance(column, Ignored))

    @cached_property
    def read_keys(self) -> tuple[Hashable, ...]:
        """Their names in the table."""
        pairs = zip(self.keys, self.columns, strict=True)
        return tuple(key for key, column in pairs if not isinstance(column, Ignored))

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the features of each of these columns are in a row."""
        ends = list(accumulate((column.width for column in self.read), initial=0))
        return tuple(slice(start, end) for start, end in pairwise(ends))

    @cached_property
    def dimension(self) -> int:
        """Number of features."""
        return self.places[-1].stop if self.places else 0

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return tuple(name for column in self.read for name in column.names)

    @cached_property
    def found(self) -> tuple[int, ...]:
        """The features whose ranges are found privately."""
        pairs = zip(self.read, self.places, strict=True)
        return tuple(place.start for column, place in pairs if isinstance(column, PrivateRange))

    @property
    def groups(self) -> Groups:
        """The groups of features, in order."""
        return tuple(group for column in self.read for group in column.groups)

    @cached_property
    def sparse(self) -> bool:
        """Whether rows are mostly zeros: with hashed values or texts."""
        return any(isinstance(column, Hashed | Text) for column in self.read)

    def feature_bound(self, classes: bool) -> float:
        """Largest norm of a row by the rule above, if classes or if numbers are learnt."""
        kinds = [kind for kind, _ in self.groups]
        numbers = kinds.count("number")
        others = len(kinds) - numbers
        bound = math.sqrt(others + min(numbers, numbers / 3.0 + 0.6 * math.sqrt(numbers)))
        return bound * (1.0 if not self.found else 0.5 if classes else 1.5)

    def encode(self, values: Mapping[Any, Values], rows: int) -> tuple[Array, Bad]:
        """Features of the values of each column, and a mask of the rows with a bad value."""
        X = np.zeros((rows, self.dimension))
        bad = np.zeros(rows, dtype=np.bool_)
        for key, column, place in zip(self.read_keys, self.read, self.places, strict=True):
            bad |= column.encode(values[key], X[:, place])
            bad |= unreadable_rows(values[key], rows)
        return X, bad

    def encode_sparse(self, values: Mapping[Any, Values], rows: int) -> tuple[Any, Bad]:
        """The same as a SciPy sparse matrix. Slow twin: `encode`."""
        from scipy.sparse import csr_matrix

        bad = np.zeros(rows, dtype=np.bool_)
        at: list[Any] = []
        for key, column, place in zip(self.read_keys, self.read, self.places, strict=True):
            bad |= unreadable_rows(values[key], rows)
            if isinstance(column, Hashed | Text):
                entries = column.entries(values[key])
                at.append((entries.rows, entries.places + place.start, entries.numbers))
                bad |= entries.bad
            else:
                X = np.zeros((rows, column.width))
                bad |= column.encode(values[key], X)
                where = np.nonzero(X)
                at.append((where[0], where[1] + place.start, X[where]))
        lines, places, numbers = (np.concatenate(parts) for parts in zip(*at, strict=True))
        made = csr_matrix((numbers, (lines, places)), shape=(rows, self.dimension))
        made.sort_indices()
        return made, bad

    def features(self, X: Any, known: bool = False) -> Any:
        """The features of a table: an array, or a sparse matrix if there are hashed values or texts.

        A bad value is an error, which names its column and no value. `known` rejects columns that are not declared: in
        learning they may be mistakes.
        """
        table = X if isinstance(X, Table) else Table(X)
        self.check_names(table, known)
        values = {key: table.values(key) for key in self.read_keys}
        made, bad = (self.encode_sparse if self.sparse else self.encode)(values, table.rows)
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidInput(self.describe_bad({key: values[key].value(row) for key in self.read_keys}, f"row {row}"))
        return made

    def describe_bad(self, x: Mapping[Any, Any], where: str) -> str:
        """Which column of a bad row is bad, and what to do; no value is quoted."""
        for key, column in zip(self.read_keys, self.read, strict=True):
            value = x.get(key)
            if column.pairs(value) is not None:
                continue
            if is_unreadable(value):
                return (
                    f"{where} has a value in column {column.name} that is a {type(value).__name__}, where one number "
                    "or text is expected. Correct it; or make it None, which counts as missing."
                )
            if text_of(value) is None:
                return (
                    f'{where} has no value in column {column.name}, which is declared with missing = "bad". Declare '
                    "what a missing value is, or correct the row."
                )
            kind = "date, as in 2024-05-31 or 2024-05-31T12:30:00Z" if isinstance(column, Date) else "number"
            return (
                f"{where} has a value in column {column.name} that is not a {kind}. Correct it; or make it None, which "
                "counts as missing."
            )
        raise AssertionError("no value is bad")

    def check_names(self, table: Table, known: bool) -> None:
        """Reject a table that lacks a column or, if all are to be known, has one that is not declared."""
        for key, column in zip(self.read_keys, self.read, strict=True):
            if table.names.count(key) != 1:
                what = "missing from" if key not in table.names else "twice in"
                listed = ", ".join(map(str, table.names[:20])) + (" ..." if len(table.names) > 20 else "")
                raise InvalidInput(
                    f"column {column.name} is declared, and is {what} the table, which has {listed}. Correct one of "
                    "the two."
                )
        undeclared = [name for name in table.names if name not in self.keys] if known else []
        if undeclared:
            raise InvalidInput(
                f"column {undeclared[0]} is in the table but not declared. Declare it in columns=, for example as "
                f"{{{undeclared[0]!r}: {{'ignore': True}}}}."
            )

    def without_signs(self) -> ColumnEncoder:
        """The same with features that are not negative: hashed without signs. Columns of numbers are rejected."""
        for column in self.read:
            if not isinstance(column, Categories | Bins | Hashed | Text):
                raise InvalidInput(
                    f"naive Bayes adds up features that are not negative, and column {column.name} is scaled to both "
                    'sides of 0. Declare bins for it, as in {"bins": [0, 10, 100]}, or ignore it.'
                )
        columns = (
            replace(column, signed=False) if isinstance(column, Hashed | Text) else column for column in self.columns
        )
        return ColumnEncoder(tuple(columns), self.keys)


def encoder_of(columns: Any) -> ColumnEncoder:
    """The encoder of columns that are declared as plain data, in the words of the contract file.

    >>> encoder_of({0: {"range": [0, 10]}, 1: {"ignore": True}}).feature_names
    ('0',)
    """
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidInput(
            'columns must be a dict with a declaration for each column, as in {"age": {"range": [0, 100]}}; got '
            f"{'an empty one' if isinstance(columns, Mapping) else type(columns).__name__}. Each is {KINDS}."
        )
    encoder = ColumnEncoder(tuple(column_of(str(key), declared) for key, declared in columns.items()), tuple(columns))
    if not encoder.read:
        raise InvalidInput("no column is left to learn from: all are ignored. State the range of one.")
    if len(set(encoder.feature_names)) < encoder.dimension:
        raise InvalidInput("two features have the same name, such as town=Oslo from two columns. Rename a column.")
    return encoder
