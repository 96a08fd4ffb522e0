"""Rows as a format's reader hands them on, and how they become features and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from taciturn._util.arrays import Array, Integers
from taciturn.contract.columns import Bad
from taciturn.contract.contract import Contract
from taciturn.contract.values import Values


@dataclass(frozen=True)
class Parsed:
    """A block of rows: values by column, where each row came from, and which could not be taken apart.

    Attributes
    ----------
    values : mapping of str to Values
        For each column that is read; a broken row has some value there too, of which nothing is made.
    lines : ndarray of int
        The number of each row's line.
    broken : dict
        Why rows could not be taken apart, by their place in the block.
    size : int
        Bytes of the source used so far.
    """

    values: Mapping[str, Values]
    lines: Integers
    broken: dict[int, str] = field(default_factory=dict)
    size: int = 0

    def encode(self, contract: Contract, labelled: bool) -> tuple[Array, Array, Bad]:
        """Features, labels, and which rows are bad; these are NaN throughout, whatever was wrong with them.

        >>> from taciturn.contract.contract import contract_of
        >>> from taciturn.contract.values import PlainValues
        >>> target = {"column": "y", "range": [0, 2]}
        >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 1]}}})
        >>> rows = Parsed({"x": PlainValues(["1", "one"]), "y": PlainValues(["2", "2"])}, np.array([2, 3]))
        >>> rows.encode(contract, labelled=True)
        (array([[ 1.], [nan]]), array([ 1., nan]), array([False,  True]))
        """
        rows, start = len(self.lines), 0
        X, bad = np.zeros((rows, contract.dimension)), np.zeros(rows, dtype=np.bool_)
        bad[list(self.broken)] = True
        for column in contract.read:
            bad |= column.encode(self.values[column.name], X[:, start : start + column.width])
            start += column.width
        y = np.empty(0)
        if labelled:
            y, bad_labels = contract.encode_labels(self.values[contract.target.column])
            bad |= bad_labels
            y[bad] = np.nan
        X[bad] = np.nan
        return X, y, bad

    def complaint(self, row: int, contract: Contract, labelled: bool) -> str:
        """What is wrong with a bad row; on the trusted side, as it speaks of the data."""
        if row in self.broken:
            return self.broken[row]
        judges = [(column.name, column.complaint) for column in contract.read]
        judges += [(contract.target.column, contract.target.complaint)] if labelled else []
        found = (judge(self.values[name].value(row)) for name, judge in judges)
        return next(complaint for complaint in found if complaint)


def columns_to_read(contract: Contract, labelled: bool) -> list[str]:
    """The names of the columns that a reader must find."""
    return [column.name for column in contract.read] + ([contract.target.column] if labelled else [])
