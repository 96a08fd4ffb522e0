"""A block of parsed rows, and its encoding as features and labels.

**Each field is read by itself.** A feature that cannot be read is a bad feature, a label a bad label, and a row whose
id cannot be read has no influence, and keeps its round. So under the label relation the features and the id of a row do
not depend on its label, and which rows of a user count does not depend on what else is in them. Of a row that is
damaged as a whole, those fields are read that are still in their places; a line that is no record at all has none
(`docs/guarantees.md` says what that means).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.columns.kinds import Bad
from taciturn.columns.values import Values, is_unreadable, text_of, unreadable_error, unreadable_rows
from taciturn.contract.bandit import reject_decisions
from taciturn.contract.contract import Contract
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.row_wise import RowWise


@dataclass(frozen=True)
class Parsed(RowWise):
    """A block of rows: values by column, line numbers, and the rows that are damaged.

    Attributes
    ----------
    values : mapping of str to Values
        For each column that is read; what could not be read of a damaged row is `Unreadable`.
    lines : ndarray of int
        The line number of each row.
    broken : dict
        Why rows are damaged, by their index in the block: they are bad, whatever could be read of them.
    size : int
        Bytes of the source that were read so far.
    offset : int
        Bytes of the decompressed source before the first row; 0 in Parquet.
    last : bool
        Whether these are the last rows of a block, which is learnt at once (`taciturn.readers.lines`).
    """

    values: Mapping[str, Values]
    lines: Integers
    broken: dict[int, str] = field(default_factory=dict)
    size: int = 0
    offset: int = 0
    last: bool = False

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
        return self.completed(contract, X, bad, labelled)

    def completed(self, contract: Contract, X: Array, bad: Bad, labelled: bool) -> tuple[Array, Array, Bad]:
        """The same, from the features of all rows and a mask of those that have bad ones."""
        y = np.empty(0)
        empty = bad
        bad = bad.copy()
        bad[list(self.broken)] = True
        if labelled:
            y, bad_labels = contract.encode_labels(self.values[contract.target.column])
            empty = empty | self.without_id(contract)
            bad = bad | empty | bad_labels
            y[bad] = np.nan
        X[empty if labelled and contract.neighbours == "label" else bad] = np.nan
        return X, y, bad

    def without_id(self, contract: Contract) -> Bad:
        """The rows that have no id where they must have one, or one that cannot be read."""
        if contract.rows_per_user is None or contract.user is None:
            return np.zeros(len(self.lines), dtype=np.bool_)
        values = self.values[contract.user]
        unreadable = unreadable_rows(values, len(self.lines))
        if contract.without_id == "own":
            return unreadable
        codes, texts = values.texts()
        return unreadable | np.array([text is None for text in texts], dtype=np.bool_)[codes]

    def users(self, contract: Contract) -> NDArray[Any] | None:
        """The id of each row's user as text, None where there is none; None without a column of ids."""
        if contract.user is None:
            return None
        codes, texts = self.values[contract.user].texts()
        ids = np.array(texts, dtype=object)[codes]
        ids[unreadable_rows(self.values[contract.user], len(ids))] = None
        return ids

    def kept(self, names: Sequence[str]) -> list[list[Any]]:
        """The values of these columns in each row, unchanged; None in a damaged row, and where one is unreadable."""
        rows = [list(row) for row in zip(*(self.values[name].listed() for name in names), strict=True)]
        for row in self.broken if names else ():
            rows[row] = [None] * len(names)
        return [[None if is_unreadable(value) else value for value in row] for row in rows]

    def error(self, row: int, contract: Contract, labelled: bool) -> str:
        """The error of a bad row, without its values. It depends on the data: show it on the trusted side only."""
        return next(iter(self.errors(row, contract, labelled)), "it cannot be read")

    def errors(self, row: int, contract: Contract, labelled: bool) -> list[str]:
        """All errors of a bad row: that of the damaged row, or one of each field."""
        if row in self.broken:
            return [self.broken[row]]
        checks = [(column.name, column.error) for column in contract.read]
        if labelled:
            checks.append((contract.target.column, contract.target.error))
        errors: list[str | None] = []
        for name, check in checks:
            value = self.values[name].value(row)
            errors.append(unreadable_error(name, value) or check(value))
        if labelled and contract.user is not None and contract.rows_per_user is not None:
            value = self.values[contract.user].value(row)
            missing = contract.without_id == "bad" and text_of(value) is None
            errors.append(unreadable_error(contract.user, value) or f"{contract.user}: there is no id" * missing)
        return [error for error in errors if error]


def columns_to_read(contract: Contract, labelled: bool, keep: Sequence[str] = ()) -> list[str]:
    """Names of the columns that a file must have; `keep` are those that are carried through."""
    names = [column.name for column in contract.read]
    if labelled:
        names.append(contract.target.column)
        if contract.user is not None:
            names.append(contract.user)
    return list(dict.fromkeys([*names, *keep]))
