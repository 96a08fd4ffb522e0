"""Predictions for a few rows: the fast path of `taciturn.contract.model_file.Model.scores` for JSON records.

Numbers with a linear range are scaled as one array; other columns by `pairs`, which is made for single values. A row
that is not plain (a value is missing, or not a number where one is declared) is left to the definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from taciturn._util.arrays import Array
from taciturn.columns.kinds import Range
from taciturn.contract.contract import Contract
from taciturn.contract.model_file import Model
from taciturn.problem.clipping import clip_rows

MOST = 8
"""Rows of a request up to which this is faster than the definition."""

_NUMBERS = frozenset({int, float})
_NESTED = (dict, list)


class RowPredictor:
    """Scores of a few records under a contract, whose numbers are finite. Slow twin: `Model.scores` of encoded rows.

    >>> from taciturn.contract.contract import contract_of
    >>> from taciturn.estimators.stream import Spent
    >>> columns = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": columns})
    >>> model = Model(contract, np.array([1.0, 0.0, 2.0, -0.5]), 100, 3, Spent(1.0, 1e-6), "...", False)
    >>> predictor = RowPredictor(contract)
    >>> predictor.scores(model, [{"age": 75, "town": "Oslo"}]) == model.scores([[0.5, 1.0, 0.0]])
    array([ True])
    >>> predictor.scores(model, [{"age": "old", "town": "Oslo"}]) is None
    True
    """

    def __init__(self, contract: Contract) -> None:
        encoder = contract.encoder
        columns = list(zip(encoder.read, encoder.places, strict=True))
        numbers = [(c, p) for c, p in columns if isinstance(c, Range) and c.scale.name == "linear"]
        self._others = [(c.name, c.pairs, p.start) for c, p in columns if not any(c is each for each, _ in numbers)]
        self._count = len(numbers)
        self._take = itemgetter(*(c.name for c, _ in numbers)) if numbers else None
        self._low = np.array([c.low for c, _ in numbers])
        self._high = np.array([c.high for c, _ in numbers])
        self._span = self._high - self._low
        places = [p.start for _, p in numbers]
        every = places == list(range(len(places)))
        self._places: Any = slice(0, len(places)) if every else np.array(places)
        self._dimension = contract.dimension

    def scores(self, model: Model, records: Sequence[Any]) -> Array | None:
        """The scores of these records; None if one of them needs the definition."""
        problem = model.problem
        if problem.features is not None or len(records) > MOST:
            return None
        d = self._dimension
        V = np.zeros((len(records), problem.width))
        for x, record in zip(V, records, strict=True):
            if type(record) is not dict or not self.encode(record, x):
                return None
            if not x.dot(x) < problem.feature_bound**2 * (1.0 - 1e-9):  # it may be too long
                x[:d] = clip_rows(x[None, :d], problem.feature_bound)
        V[:, d:] = problem.intercept
        return problem.predict_clipped(model.point, V)

    def encode(self, record: dict[str, Any], x: Array) -> bool:
        """Write the features of a record to `x`; False if it is not plain."""
        if self._take is not None:
            try:
                values = self._take(record)
                if self._count == 1:
                    values = (values,)
                if not _NUMBERS.issuperset(map(type, values)):
                    return False
                numbers = np.array(values, dtype=np.float64)
            except (KeyError, OverflowError):
                return False
            low = self._low
            numbers = np.minimum(np.maximum(numbers, low), self._high)
            numbers -= low
            numbers /= self._span
            numbers *= 2.0
            numbers -= 1.0
            x[self._places] = numbers
        for name, pairs, start in self._others:
            value = record.get(name)
            made = None if isinstance(value, _NESTED) else pairs(value)
            if made is None:
                return False
            for place, number in made:
                x[start + place] = number
        return True
