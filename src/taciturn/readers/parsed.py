"""A block of parsed rows, and its encoding as features and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn._util.arrays import Array, Integers
from taciturn.columns.kinds import Bad
from taciturn.columns.values import Values
from taciturn.contract.bandit import reject_decisions
from taciturn.contract.contract import Contract


@dataclass(frozen=True)
class Parsed:
    """A block of rows: values by column, line numbers, and the rows that could not be parsed.

    Attributes
    ----------
    values : mapping of str to Values
        For each column that is read; the values of a broken row are not used.
    lines : ndarray of int
        The line number of each row.
    broken : dict
        Why rows could not be parsed, by their index in the block.
    size : int
        Bytes of the source that were read so far.
    offset : int
        Bytes of the decompressed source before the first row; 0 in Parquet.
    """

    values: Mapping[str, Values]
    lines: Integers
    broken: dict[int, str] = field(default_factory=dict)
    size: int = 0
    offset: int = 0

    def encode(self, contract: Contract, labelled: bool) -> tuple[Array, Array, Bad]:
        """Features, labels, and a mask of the bad rows, whose features and labels are all NaN.

        If only labels are protected, a row whose label alone is bad keeps its features: what is computed from them may
        not depend on a label.

        >>> from taciturn.contract.contract import contract_of
        >>> from taciturn.columns.values import PlainValues
        >>> target = {"column": "y", "range": [0, 2]}
        >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 1]}}})
        >>> rows = Parsed({"x": PlainValues(["1", "one"]), "y": PlainValues(["2", "2"])}, np.array([2, 3]))
        >>> rows.encode(contract, labelled=True)
        (array([[ 1.], [nan]]), array([ 1., nan]), array([False,  True]))
        """
        if labelled:
            reject_decisions(contract)
        X, bad = contract.encoder.encode(self.values, len(self.lines))
        bad[list(self.broken)] = True
        return self.completed(contract, X, bad, labelled)

    def completed(self, contract: Contract, X: Array, bad: Bad, labelled: bool) -> tuple[Array, Array, Bad]:
        """The same, from the features of all rows and a mask of those that have bad ones."""
        y = np.empty(0)
        empty = bad
        if labelled:
            y, bad_labels = contract.encode_labels(self.values[contract.target.column])
            empty = bad | self.without_id(contract)
            bad = empty | bad_labels
            if contract.neighbours != "label":
                empty = bad
            y[bad] = np.nan
        X[empty] = np.nan
        return X, y, bad

    def without_id(self, contract: Contract) -> Bad:
        """The rows that have no id where they must have one."""
        if contract.rows_per_user is None or contract.without_id == "own" or contract.user is None:
            return np.zeros(len(self.lines), dtype=np.bool_)
        codes, texts = self.values[contract.user].texts()
        return np.array([text is None for text in texts], dtype=np.bool_)[codes]

    def users(self, contract: Contract) -> NDArray[Any] | None:
        """The id of each row's user as text, None where it is missing; None without a column of ids."""
        if contract.user is None:
            return None
        codes, texts = self.values[contract.user].texts()
        ids = np.array(texts, dtype=object)[codes]
        ids[list(self.broken)] = None
        return ids

    def kept(self, names: Sequence[str]) -> list[list[Any]]:
        """The values of these columns in each row, unchanged; None in a row that could not be parsed."""
        rows = [list(row) for row in zip(*(self.values[name].listed() for name in names), strict=True)]
        for row in self.broken if names else ():
            rows[row] = [None] * len(names)
        return rows

    def error(self, row: int, contract: Contract, labelled: bool) -> str:
        """The error of a bad row, without its values. It depends on the data: show it on the trusted side only."""
        if row in self.broken:
            return self.broken[row]
        checks = [(column.name, column.error) for column in contract.read]
        if labelled:
            checks.append((contract.target.column, contract.target.error))
        errors = (check(self.values[name].value(row)) for name, check in checks)
        return next((error for error in errors if error), f"{contract.user}: there is no id")


def columns_to_read(contract: Contract, labelled: bool, keep: Sequence[str] = ()) -> list[str]:
    """Names of the columns that a file must have; `keep` are those that are carried through."""
    names = [column.name for column in contract.read]
    if labelled:
        names.append(contract.target.column)
        if contract.user is not None:
            names.append(contract.user)
    return list(dict.fromkeys([*names, *keep]))
