"""The target: classes, some values against the rest, or a number, whose range is public or found privately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.columns.kinds import Bad, Named, Vocabulary, check_range, named, number_error
from taciturn.columns.labels import classes_of, labels_of
from taciturn.columns.scales import LINEAR, Scale, ScaleName
from taciturn.columns.values import ArrayValues, Values, number_of, short_repr, text_of
from taciturn.errors import InvalidInput, one_of, positive
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.row_wise import RowWise


@dataclass(frozen=True)
class Classes(RowWise):
    """A class label: -1 and +1 for two classes, in this order; numbers from 0 for more. Other values are bad.

    >>> from taciturn.columns.values import PlainValues
    >>> Classes("bought", ("no", "yes")).encode(PlainValues(["yes", "no", "maybe"]))
    (array([ 1., -1., -1.]), array([False, False,  True]))
    """

    column: str
    classes: tuple[Named, ...]
    class_weight: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", named(self.classes))
        object.__setattr__(self, "class_weight", _positive_weights(self.class_weight))

    @property
    def names(self) -> tuple[Named, ...]:
        return self.classes

    @property
    def label_bound(self) -> float | None:
        return None

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.classes)

    def encode(self, values: Values) -> tuple[Array, Bad]:
        """The label of each value, and a mask of the bad ones."""
        places, _ = self._vocabulary.places(values)
        return labels_of(np.maximum(places, 0), len(self.classes)), places < 0

    def decode(self, scores: Array) -> NDArray[Any]:
        """The class of each row of scores."""
        return np.array(self.classes, dtype=object)[classes_of(scores)]

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        if self._vocabulary.place(text_of(value)) >= 0:
            return None
        if text_of(value) is None:
            return f"{self.column} is missing"
        return f"{self.column} is none of the classes, which must be spelt as in target.classes"

    def declared(self) -> dict[str, Any]:
        return {"column": self.column, "classes": list(self.classes), **_declared_weights(self)}


@dataclass(frozen=True)
class Positive(RowWise):
    """A binary label: +1 for these values, -1 for all others; a missing value is bad.

    The other values are predicted as "rest". If "rest" is one of the positive values, the others are called
    "not ..." or "neither ... nor ...": this name contains every positive value and is longer, so it equals
    none of them.

    >>> from taciturn.columns.values import PlainValues
    >>> Positive("cover", (2,)).encode(PlainValues(["2", "7", ""]))
    (array([ 1., -1., -1.]), array([False, False,  True]))
    >>> Positive("cover", (2,)).names, Positive("day", ("rest",)).names
    (('rest', 2), ('not rest', 'rest'))
    """

    column: str
    positive: tuple[Named, ...]
    class_weight: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "positive", named(self.positive))
        object.__setattr__(self, "class_weight", _positive_weights(self.class_weight))

    @property
    def names(self) -> tuple[Named, ...]:
        several = len(self.positive) > 1
        one = " or ".join(map(str, self.positive)) if several else self.positive[0]
        if "rest" not in self.positive:
            return ("rest", one)
        return (f"neither {' nor '.join(map(str, self.positive))}" if several else f"not {one}", one)

    @property
    def label_bound(self) -> float | None:
        return None

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.positive)

    def encode(self, values: Values) -> tuple[Array, Bad]:
        """The label of each value, and a mask of the bad ones."""
        places, missing = self._vocabulary.places(values)
        return np.where(places >= 0, 1.0, -1.0), missing

    def decode(self, scores: Array) -> NDArray[Any]:
        """The class of each score."""
        return np.array(self.names, dtype=object)[classes_of(scores)]

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        return f"{self.column} is missing" if text_of(value) is None else None

    def declared(self) -> dict[str, Any]:
        return {"column": self.column, "positive": list(self.positive), **_declared_weights(self)}


@dataclass(frozen=True)
class Number(RowWise):
    """A number with a public range: its label is its distance from the middle of the range, on a scale.

    Values outside the range are clipped, and so are predictions. On a logarithmic scale (`taciturn.columns.scales`)
    the label is a logarithm, so that errors count by their ratio; a prediction is the number whose logarithm is
    predicted: with squared loss the geometric mean of such rows rather than their mean, with quantiles the same
    quantile.

    >>> from taciturn.columns.values import PlainValues
    >>> stars = Number("stars", 0.0, 10.0)
    >>> stars.encode(PlainValues(["7", "99", "many"])), stars.decode(np.array([2.0, -6.0]))
    ((array([2., 5., 0.]), array([False, False,  True])), array([7., 0.]))
    >>> price = Number("price", 1.0, 1e4, Scale("log"))
    >>> price.decode(price.encode(PlainValues(["100", "20000", "0"]))[0]).round(6)
    array([1.e+02, 1.e+04, 1.e+00])
    """

    column: str
    low: float
    high: float
    scale: Scale = LINEAR
    key: str = field(default="target.range", repr=False, compare=False)
    class_weight: ClassVar[None] = None

    def __post_init__(self) -> None:
        low, high = check_range(self.key, self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        self.scale.ends(self.key, low, high)  # rejects ranges that are not of the scale

    @property
    def names(self) -> tuple[Named, ...]:
        return ()

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The range on the scale."""
        return self.scale.ends(self.key, self.low, self.high)

    @cached_property
    def middle(self) -> float:
        """The middle of the range, on the scale."""
        return self._ends[0] + (self._ends[1] - self._ends[0]) / 2.0

    @property
    def label_bound(self) -> float | None:
        return (self._ends[1] - self._ends[0]) / 2.0

    def encode(self, values: Values) -> tuple[Array, Bad]:
        """The label of each value, and a mask of the bad ones."""
        numbers = values.numbers()
        bad = np.isnan(numbers)
        scaled = np.clip(self.scale.forward(np.clip(numbers, self.low, self.high)), *self._ends)
        return np.where(bad, 0.0, scaled - self.middle), bad

    remedy: ClassVar[str] = "Give a number."

    def __call__(self, y: Any) -> float:
        """The label of one value, NaN if it is bad. Slow twin: `encode`."""
        number = number_of(y)
        if self.scale.name == "linear" or math.isnan(number):
            return min(max(number, self.low), self.high) - self.middle
        return float(self.encode(ArrayValues(np.array([number])))[0][0])

    def prediction(self, score: float) -> float:
        """The prediction of one score. Slow twin: `decode`."""
        if self.scale.name == "linear":
            return min(max(score + self.middle, self.low), self.high)
        return float(self.decode(np.array([score]))[0])

    def decode(self, scores: Array) -> NDArray[Any]:
        """The prediction of each score, in the units of the column."""
        return np.clip(self.scale.backward(np.clip(scores + self.middle, *self._ends)), self.low, self.high)

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        return number_error(self.column, value)

    def declared(self) -> dict[str, Any]:
        return {"column": self.column, "range": [self.low, self.high], **self.scale.declared()}


@dataclass(frozen=True)
class PrivateNumber(RowWise):
    """A number whose center and scale are found privately in the first rows of the stream.

    >>> from taciturn.columns.values import PlainValues
    >>> PrivateNumber("price").encode(PlainValues(["7", "many"]))
    (array([7., 0.]), array([False,  True]))
    """

    class_weight: ClassVar[None] = None
    column: str

    @property
    def names(self) -> tuple[Named, ...]:
        return ()

    @property
    def label_bound(self) -> Literal["private"]:
        return "private"

    def encode(self, values: Values) -> tuple[Array, Bad]:
        """The number itself, and a mask of the bad ones."""
        numbers = values.numbers()
        bad = ~np.isfinite(numbers)
        return np.where(bad, 0.0, numbers), bad

    def decode(self, scores: Array) -> NDArray[Any]:
        """Predictions are numbers already."""
        return scores

    def error(self, value: Any) -> str | None:
        """The error of a value, or None."""
        return number_error(self.column, value)

    def declared(self) -> dict[str, Any]:
        return {"column": self.column, "range": "private"}


def labels_in_range(label_range: Any, label_scale: Any = "linear") -> Number:
    """The target of an estimator whose labels are numbers of a public range.

    >>> labels_in_range((1.0, 1e4), "log").label_bound
    4.605170185988092
    """
    if not isinstance(label_range, Sequence | np.ndarray) or isinstance(label_range, str) or len(label_range) != 2:
        raise InvalidInput(
            "label_range must be the lowest and the highest label, as in label_range=(0, 1000), or "
            f'"private"; got {short_repr(label_range)}.'
        )
    one_of("label_scale", label_scale, get_args(ScaleName))
    low, high = label_range
    return Number("y", low, high, Scale(label_scale), key="label_range")


def _positive_weights(weights: Sequence[float] | None) -> tuple[float, ...] | None:
    return (
        None
        if weights is None
        else tuple(positive("the weight of a class", weight, of_many=True) for weight in weights)
    )


def _declared_weights(target: Classes | Positive) -> dict[str, Any]:
    """The weights of the classes by their names, in the form of TOML; older contracts keep their digest."""
    if target.class_weight is None:
        return {}
    return {"class_weight": dict(zip(map(str, target.names), target.class_weight, strict=True))}


Target = Classes | Positive | Number | PrivateNumber
