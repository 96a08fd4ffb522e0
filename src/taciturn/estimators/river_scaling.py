"""Transformers for river: scaling by public ranges, and clipping to a public norm. They cost no privacy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.columns.kinds import INDICATOR, MissingNumber, Range
from taciturn.columns.values import text_of
from taciturn.errors import InvalidInput, expect, float_or_nan, positive, value_or_type
from taciturn.estimators.keywords import Keywords
from taciturn.estimators.river_base import base
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.tables.ranges import filled_between, number_between

if TYPE_CHECKING:
    import pandas as pd


class PublicScaler(RowWise, Keywords, base.MiniBatchTransformer):
    """Scale features from public ranges to [-1, 1]; values outside are clipped, features without a range unchanged.

    With a `StandardScaler` or `MinMaxScaler` the features of each example would depend on all the others, which no
    guarantee covers; and so it would be with a `StatImputer`. A feature with a range is missing if its value is None,
    NaN or an empty text, or if the example lacks it. Other texts stay as they are.

    Parameters
    ----------
    ranges : dict
        The lowest and the highest value of each feature, from public knowledge and not from the data.
    missing : {"middle", "zero", "bad"} or float
        What a missing value is in features with a range: the middle of the range, the number 0, NaN, which the model
        behind it rejects, or this number, which every range must contain.
    indicator : bool
        Whether each feature with a range has another one beside it, as "age (missing)" for "age", which is 1 where its
        value was missing and 0 elsewhere.

    Examples
    --------
    >>> PublicScaler(ranges={"age": (0, 100)}).transform_one({"age": 75, "height": 1.8})
    {'age': 0.5, 'height': 1.8}
    >>> PublicScaler(ranges={"age": (0, 100)}, missing=25.0, indicator=True).transform_one({"age": None})
    {'age': -0.5, 'age (missing)': 1.0}
    """

    def __init__(
        self,
        ranges: Mapping[Hashable, tuple[float, float]],
        missing: MissingNumber = "middle",
        indicator: bool = False,
    ) -> None:
        expect("ranges", ranges, isinstance(ranges, Mapping), 'ranges={"age": (0, 100)}')
        self.ranges = ranges
        self.missing = missing
        self.indicator = indicator
        self._ends = {name: _ends(name, limits) for name, limits in ranges.items()}
        columns = {name: Range(str(name), *ends, missing, indicator) for name, ends in self._ends.items()}
        self._filled = {name: math.nan if missing == "bad" else column.filled for name, column in columns.items()}
        self._indicators = {name: f"{name}{INDICATOR}" for name in ranges} if indicator else {}

    def transform_one(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """The example with every ranged feature scaled, and missing ones filled; texts stay as they are."""
        scaled = dict(x)
        for name, ends in self._ends.items():
            value = scaled.get(name)
            try:
                number = float(_no_text(value))
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            missing = number != number and text_of(value) is None
            if missing:
                scaled[name] = self._filled[name]
            elif number == number:
                scaled[name] = number_between(number, *ends)
            if self._indicators:
                scaled[self._indicators[name]] = float(missing)
        return scaled

    def transform_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The same for the rows of a data frame."""
        names = list(self._ends)
        more = [new for name in names for new in (name, self._indicators.get(name, name)) if new not in X.columns]
        X = X.reindex(columns=[*X.columns, *dict.fromkeys(more)], fill_value=math.nan)
        if not _numeric(X, names):
            return _row_by_row(self, X)
        lows, highs = np.array([self._ends[name] for name in names]).reshape(-1, 2).T
        values = X[names].to_numpy(dtype=np.float64, na_value=math.nan)
        values, missing = filled_between(values, lows, highs, list(self._filled.values()))
        scaled = _with(X, names, values)
        return _with(scaled, list(self._indicators.values()), missing.astype(np.float64)) if self.indicator else scaled

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"ranges": {"gallup": (0, 100), "ipsos": (30, 50)}}
        yield {"ranges": {"gallup": (0, 100), "ipsos": (30, 50)}, "missing": 40.0, "indicator": True}


class NormClip(RowWise, Keywords, base.MiniBatchTransformer):
    """Clip an example's numbers to a public bound on their Euclidean norm.

    Parameters
    ----------
    bound : float
        The largest norm. Texts are not counted, and an example with a NaN or an infinity passes as it is.
    user : hashable, optional
        The key of users' ids, which stay as they are.

    Examples
    --------
    >>> NormClip(2.5).transform_one({"a": 3.0, "b": 4.0, "city": "Rome"})
    {'a': 1.5, 'b': 2.0, 'city': 'Rome'}
    >>> NormClip(2.5, user="customer_id").transform_one({"a": 3.0, "b": 4.0, "customer_id": 7})
    {'a': 1.5, 'b': 2.0, 'customer_id': 7}
    """

    def __init__(self, bound: float = 1.0, user: Hashable | None = None) -> None:
        self.bound = positive("bound", bound, "State the largest norm an example may have.")
        self.user = user

    def transform_one(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """The clipped example."""
        try:
            numbers = {name: float(value) for name, value in x.items() if not self._passes(name, value)}
        except (TypeError, ValueError, OverflowError):
            return dict(x)
        largest = max(map(abs, numbers.values()), default=0.0)
        length = math.hypot(*(value / largest for value in numbers.values())) if 0.0 < largest < math.inf else 0.0
        if not length * largest > self.bound:
            return dict(x)
        return {**x, **{name: value / largest * (self.bound / length) for name, value in numbers.items()}}

    def transform_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The same for the rows of a data frame, to the last bit; frames with text are transformed row by row."""
        names = [name for name in X.columns if not self._passes(name)]
        if not _numeric(X, names) or not names:
            return _row_by_row(self, X)
        values = X[names].to_numpy(dtype=np.float64, na_value=math.nan, copy=True)
        fine = np.isfinite(values).all(axis=1)
        values[fine] = self._clipped(values[fine])
        return _with(X, names, values)

    def _passes(self, name: Hashable, value: Any = None) -> bool:
        """Whether it is no number of a feature: a text, or the id."""
        return isinstance(value, str) or (self.user is not None and name == self.user)

    def _clipped(self, rows: Array) -> Array:
        """What `transform_one` computes, in the same operations."""
        largest = np.abs(rows).max(axis=1, initial=0.0)
        unit = rows / np.where(largest > 0.0, largest, 1.0)[:, None]
        lengths = np.array([math.hypot(*row) for row in unit.tolist()])
        with np.errstate(over="ignore"):
            too_long = lengths * largest > self.bound
        factors = self.bound / np.where(too_long, lengths, 1.0)
        return np.where(too_long[:, None], unit * factors[:, None], rows)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"bound": 1.0}


def _ends(name: Hashable, limits: Any) -> tuple[float, float]:
    try:
        low, high = map(float_or_nan, limits)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not -math.inf < low < high < math.inf or not 0.0 < high - low < math.inf:
        pair = isinstance(limits, tuple | list) and len(limits) == 2
        came = ", ".join(map(value_or_type, limits)) if pair else type(limits).__name__
        raise InvalidInput(f"the range of {name!r} must be two numbers, the lower one first, got {came}.")
    return low, high


def _no_text(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise TypeError
    return value


def _numeric(X: pd.DataFrame, names: list[Any]) -> bool:
    return all(kind.kind in "biuf" for kind in X[names].dtypes)


def _row_by_row(transformer: base.Transformer, X: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = [transformer.transform_one(x) for x in X.to_dict("records")]
    return pd.DataFrame(rows, index=X.index, columns=X.columns)


def _with(X: pd.DataFrame, names: list[Any], values: Any) -> pd.DataFrame:
    changed = X.copy()
    changed[names] = values
    return changed
