"""Predictions for a few rows: the fast path of `taciturn.contract.model_file.Model.scores` for JSON records.

A body is decoded by the types of the contract's columns (`RowPredictor.read`). Numbers with a linear range are scaled
in one compiled call; other columns by `pairs`, which is made for single values. A row that is not plain (a column is
missing, or is none of the contract's; no number where one is declared) is left to the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from taciturn.contract.contract import Contract
from taciturn.contract.model_file import Model
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.clipping import clip_rows
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.service.typed_rows import numbers_and_others, read_typed, row_type, rows_type
from taciturn.tables.scaling_loops import scale_row

MOST = 8
"""Rows of a request up to which this is faster than the definition."""

_NUMBERS = frozenset({int, float})
_NESTED = (dict, list)
_values = msgspec.structs.astuple


class RowPredictor(RowWise):
    """Scores of a few records under a contract, whose numbers are finite. Slow twin: `Model.scores` of encoded rows.

    >>> from taciturn.contract.contract import contract_of
    >>> from taciturn.kernel.accounting.cost import Spent
    >>> columns = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": columns})
    >>> model = Model(contract, np.array([1.0, 0.0, 2.0, -0.5]), 100, 3, Spent(1.0, 1e-6), "...", False)
    >>> predictor = RowPredictor(contract)
    >>> predictor.scores(model, [{"age": 75, "town": "Oslo"}]) == model.scores([[0.5, 1.0, 0.0]])
    array([ True])
    >>> predictor.scores(model, predictor.read(b'{"rows": [{"town": "Oslo", "age": 75}]}')).round(3)
    array([0.152])
    >>> predictor.scores(model, [{"age": "old", "town": "Oslo"}]) is None
    True
    """

    def __init__(self, contract: Contract) -> None:
        encoder = contract.encoder
        numbers, others = numbers_and_others(encoder)
        self._numbers = tuple(c.name for c, _ in numbers)
        self._others = [(c.name, c.pairs, p.start) for c, p in others]
        self._take = itemgetter(*self._numbers) if numbers else None
        self._ranges = np.array([[c.low, c.high, c.high - c.low] for c, _ in numbers]).reshape(-1, 3).T.copy()
        self._places = np.array([p.start for _, p in numbers], dtype=np.int64)
        self._dimension = contract.dimension
        self._columns = names = [c.name for c in encoder.read]
        self.row = row_type(names, self._numbers)
        self._fields: Callable[[Any], Any] | None = None
        self._decode: Callable[[bytes], Any] | None = None
        if self.row is not None:
            order = [names.index(name) for name in self._numbers]
            if 1 < len(order) < len(names):
                self._fields = itemgetter(*order)
            elif len(order) == 1:
                self._fields = itemgetter(slice(order[0], order[0] + 1))
            self._at = [names.index(name) for name, _, _ in self._others]
            self._decode = msgspec.json.Decoder(rows_type(self.row)).decode
        scale_row(np.zeros(len(numbers)), self._ranges, self._places, np.zeros(self._dimension))  # it is compiled now

    def read(self, body: bytes) -> list[Any] | None:
        """The rows of a body, for `scores`; None if they are not plain, or not few."""
        decoded = read_typed(self._decode, body)
        return decoded.rows if decoded is not None and 0 < len(decoded.rows) <= MOST else None

    def as_record(self, row: Any) -> dict[str, Any]:
        """A row of the type `row` as the object that it was."""
        return dict(zip(self._columns, _values(row), strict=True))

    def scores(self, model: Model, records: Sequence[Any]) -> Array | None:
        """The scores of these records; None if one of them needs the definition."""
        problem = model.problem
        if problem.features is not None or len(records) > MOST:
            return None
        d, bound = self._dimension, problem.feature_bound
        V = np.zeros((len(records), problem.width))
        for i, record in enumerate(records):
            x = V[i]
            squares = self.encode(record, x)
            if squares is None:
                return None
            if not squares < bound * bound * (1.0 - 1e-9):  # it may be too long
                x[:d] = clip_rows(x[None, :d], bound)
        if problem.intercept:
            V[:, d:] = problem.intercept
        return problem.predict_clipped(model.point, V)

    def encode(self, record: Any, x: Array) -> float | None:
        """Write the features of a record to `x`, which is zero, and return their squares; None if it is not plain.

        A record is an object of JSON, or of the type `row`.
        """
        others: Any
        if type(record) is self.row and record is not None:
            values = _values(record)
            others = [(values[at], *each[1:]) for at, each in zip(self._at, self._others, strict=True)]
            if self._fields is not None:
                values = self._fields(values)
            elif not self._numbers:
                values = ()
            numbers = np.array(values)
        elif type(record) is dict:
            others = ((record.get(name), pairs, start) for name, pairs, start in self._others)
            try:
                values = self._take(record) if self._take is not None else ()
                if len(self._numbers) == 1:
                    values = (values,)
                if not _NUMBERS.issuperset(map(type, values)):
                    return None
                numbers = np.array(values, dtype=np.float64)
            except (KeyError, OverflowError):
                return None
        else:
            return None
        squares: float = scale_row(numbers, self._ranges, self._places, x)
        for value, pairs, start in others:
            made = None if isinstance(value, _NESTED) else pairs(value)
            if made is None:
                return None
            for place, number in made:
                x[start + place] = number
                squares += number * number
        return squares
