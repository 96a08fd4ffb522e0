"""Losses of classes with a public weight for each class, the largest of them 1.

**Why the constants stay.** Let w and w' lie in (0, 1], and let g and g' be the gradients of two examples at one point.
`‖w·g - w'·g'‖` is convex in w and in w', so it is largest where each is 0 or 1: at most `‖g - g'‖`, `‖g‖` or `‖g'‖`.
The first is at most the gradient diameter of the loss itself. So are the others: among the examples of norm up to R is
the one of norm 0, whose gradient is 0. Slopes and curvatures are multiplied by 1 at most. So a weighted loss has the
bounds of the loss it weights, whatever the weights are; for two labels of one example too, whose bound covers an
example without a label. (Without an intercept, two examples v and -v of the class of weight 1 attain the gradient
diameter of the hinge loss.)

The weights are part of the public settings. They are not computed from data: the frequencies of classes are private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taciturn.errors import InvalidInput, Unprovable, expect, number
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem import codes
from taciturn.kernel.problem.losses import Hinge, Logistic
from taciturn.kernel.problem.multiclass import OneHot, ScoresLoss
from taciturn.kernel.problem.scalar_loss import ScalarLoss, Values


def _checked(weights: Sequence[float]) -> tuple[float, ...]:
    """Weights as floats in (0, 1], the largest of them 1."""
    rule, remedy = "lie above 0, and be 1 at most", "Divide all weights by the largest."
    given = tuple(number("the weight of a class", w, lambda x: 0.0 < x <= 1.0, rule, remedy) for w in weights)
    if max(given) < 1.0:
        raise InvalidInput(f"the largest weight of a class must be 1, got {max(given)}. {remedy}")
    return given


@dataclass(frozen=True)
class Weighted(ScalarLoss):
    """`w_y·loss(u, y)`: a loss of labels -1 and +1, with a public weight for each of them.

    Parameters
    ----------
    loss : ScalarLoss
        A loss of labels -1 and +1, such as `Logistic()` or `Hinge()`.
    negative, positive : float
        The weights of the labels -1 and +1: above 0, and the larger one is 1.

    Examples
    --------
    >>> from taciturn import Hinge
    >>> loss = Weighted(Hinge(), negative=0.1)
    >>> [float(loss.slope(0.0, y)) for y in (-1.0, 1.0)]
    [0.1, -1.0]
    >>> round(loss.gradient_diameter(1.0, radius=5.0, label_bound=1.0), 6)
    2.0
    """

    loss: ScalarLoss
    negative: float = 1.0
    positive: float = 1.0

    def __post_init__(self) -> None:
        signs = isinstance(self.loss, ScalarLoss) and self.loss.labels == "sign"
        expect("loss", self.loss, signs, "Logistic(), whose labels are -1 and +1")
        negative, positive = _checked([self.negative, self.positive])
        object.__setattr__(self, "negative", negative)
        object.__setattr__(self, "positive", positive)
        object.__setattr__(self, "labels", "sign")
        object.__setattr__(self, "curvature", self.loss.curvature)

    def _weight(self, y: Values) -> Values:
        return np.where(np.asarray(y) > 0.0, self.positive, self.negative)

    def value(self, u: Values, y: Values) -> Values:
        return self._weight(y) * self.loss.value(u, y)

    def slope(self, u: Values, y: Values) -> Values:
        return self._weight(y) * self.loss.slope(u, y)

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return self.loss.slope_bound(reach, label_bound)

    def prox(self, z: float, y: float, step: float) -> float:
        return self.loss.prox(z, y, step * float(self._weight(y)))

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """That of the loss, by the proof of this module."""
        return self.loss.gradient_diameter(feature_bound, radius, label_bound)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """That of the loss, by the proof of this module."""
        return self.loss.label_diameter(feature_bound, radius, label_bound)

    def variation(self, reach: float, label_bound: float) -> float:
        """That of the loss, multiplied by 1 at most."""
        return self.loss.variation(reach, label_bound)


def _code(loss: Weighted, width: float) -> codes.Code | None:
    """The loss as numbers, for compiled code."""
    number = {Logistic: codes.LOGISTIC, Hinge: codes.HINGE}.get(type(loss.loss))
    return None if number is None else (number, loss.positive - loss.negative, width)


codes.REGISTERED[Weighted] = _code


@dataclass(frozen=True)
class WeightedScores(ScoresLoss):
    """`w_y·loss(u, y)`: a loss of several scores, with a public weight for each class.

    Parameters
    ----------
    loss : ScoresLoss
        `Softmax(3)`, `MultiHinge(3)`, or another loss of classes; not `OneHot`, which is for sums of squares.
    weights : tuple of float
        One for each class, above 0; the largest is 1.

    Examples
    --------
    >>> from taciturn import MultiHinge
    >>> loss = WeightedScores(MultiHinge(3), (1.0, 0.1, 0.1))
    >>> loss.value(np.zeros(3), np.ones(1), 0), loss.value(np.zeros(3), np.ones(1), 1)
    (1.0, 0.1)
    """

    classes: int = field(init=False)
    loss: ScoresLoss
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        expect("loss", self.loss, isinstance(self.loss, ScoresLoss), "Softmax(3)")
        if isinstance(self.loss, OneHot):
            raise Unprovable("weights of classes are not proven for sums of squares. Weight Softmax or MultiHinge.")
        object.__setattr__(self, "classes", self.loss.classes)
        object.__setattr__(self, "weights", _checked(self.weights))
        object.__setattr__(self, "curvature", self.loss.curvature)
        if len(self.weights) != self.classes:
            raise InvalidInput(f"{self.classes} classes have {len(self.weights)} weights. State one for each.")

    def _weight(self, y: Array) -> Array:
        return np.asarray(self.weights)[np.asarray(y, dtype=np.int64)]

    def losses(self, U: Array, y: Array) -> Array:
        return self._weight(y) * self.loss.losses(U, y)

    def slopes(self, U: Array, y: Array) -> Array:
        return np.asarray(self._weight(y)[:, None] * self.loss.slopes(U, y))

    def steepest(self, reach: float) -> float:
        return self.loss.steepest(reach)

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """That of the loss, by the proof of this module."""
        return self.loss.gradient_diameter(feature_bound, radius, label_bound)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """That of the loss, by the proof of this module."""
        return self.loss.label_diameter(feature_bound, radius, label_bound)


def unweighted(loss: object) -> object:
    """The loss without its weights.

    >>> from taciturn import Hinge
    >>> unweighted(Weighted(Hinge(), negative=0.1)), unweighted(Hinge())
    (Hinge(), Hinge())
    """
    return loss.loss if type(loss) in (Weighted, WeightedScores) else loss  # type: ignore[attr-defined]
