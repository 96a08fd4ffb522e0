"""The losses of the package, each with its exact scalar prox and its constants rounded upwards.

One convention throughout: `½(y - u)²` for squared loss, and the ridge `(alpha/2)‖x‖²` belongs to the problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import between_0_and_1, positive
from taciturn.kernel.problem.scalar_loss import ROUNDED_UP, ScalarLoss, Values, bisect, widest_chord


@dataclass(frozen=True)
class Squared(ScalarLoss):
    """`½(u - y)²`, for regression.

    >>> Squared().value(3.0, 1.0), Squared().prox(3.0, 1.0, step=1.0)
    (2.0, 2.0)
    """

    curvature: ClassVar[float] = 1.0

    def value(self, u: Values, y: Values) -> Values:
        return 0.5 * (u - y) ** 2

    def slope(self, u: Values, y: Values) -> Values:
        return u - y

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return (reach + label_bound) * ROUNDED_UP

    def variation(self, reach: float, label_bound: float) -> float:
        """From the far end to the label, `(r + b)²/2`, or, if that lies outside, to the near end, `2·r·b`."""
        inside = label_bound <= reach
        return (0.5 * (reach + label_bound) ** 2 if inside else 2.0 * reach * label_bound) * ROUNDED_UP

    def prox(self, z: float, y: float, step: float) -> float:
        return (z + step * y) / (1.0 + step)

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`max_p 2(R_y + p·B)·sqrt(R² - p²)`; infinite where `u` is not bounded."""
        if math.isinf(radius):
            return math.inf
        return widest_chord(lambda p: label_bound + p * radius, feature_bound)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`2R·R_y`, at any point: the prediction cancels."""
        return 2.0 * feature_bound * label_bound * ROUNDED_UP


@dataclass(frozen=True)
class Logistic(ScalarLoss):
    """`ln(1 + exp(-y·u))` with labels -1 and +1, for the probability of a class.

    >>> round(float(Logistic().value(0.0, 1.0)), 4)
    0.6931
    >>> round(Logistic().gradient_diameter(1.0, radius=1.0, label_bound=1.0), 2)
    1.1
    """

    labels: ClassVar[Literal["sign", "real"]] = "sign"
    curvature: ClassVar[float] = 0.25

    def value(self, u: Values, y: Values) -> Values:
        return np.logaddexp(0.0, -y * u)

    def slope(self, u: Values, y: Values) -> Values:
        return -y * expit(-y * u)

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return float(expit(reach)) * ROUNDED_UP

    def variation(self, reach: float, label_bound: float) -> float:
        """`ln(1 + exp(r)) - ln(1 + exp(-r)) = r`."""
        return reach * ROUNDED_UP

    def prox(self, z: float, y: float, step: float) -> float:
        return y * _logistic_prox(y * z, step)

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`max_p 2·sqrt(R² - p²)·sigmoid(p·B)`, at most 2R."""
        if math.isinf(radius):
            return 2.0 * feature_bound * ROUNDED_UP

        def sigmoid(p: Array) -> Array:
            return np.asarray(expit(p * radius), dtype=np.float64)

        return widest_chord(sigmoid, feature_bound)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """R, at any point: the slopes are `-sigmoid(-u)` and `1 - sigmoid(-u)`, and 0 lies between them."""
        return feature_bound * ROUNDED_UP


@dataclass(frozen=True)
class Hinge(ScalarLoss):
    """`max(0, 1 - y·u)` with labels -1 and +1, the support vector machine's.

    >>> float(Hinge().value(0.25, 1.0)), Hinge().prox(0.0, 1.0, step=0.5)
    (0.75, 0.5)
    """

    labels: ClassVar[Literal["sign", "real"]] = "sign"

    def value(self, u: Values, y: Values) -> Values:
        return np.maximum(0.0, 1.0 - y * u)

    def slope(self, u: Values, y: Values) -> Values:
        return np.where(y * u < 1.0, -y, 0.0)

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return 1.0

    def variation(self, reach: float, label_bound: float) -> float:
        """From the far end to the near one, or to the margin."""
        return min(2.0 * reach, 1.0 + reach) * ROUNDED_UP

    def prox(self, z: float, y: float, step: float) -> float:
        return y * max(y * z, min(1.0, y * z + step))


@dataclass(frozen=True)
class Quantile(ScalarLoss):
    """`level·(y - u)` below the label and `(1 - level)·(u - y)` above it: its minimiser is a quantile.

    >>> float(Quantile(0.9).value(0.0, 1.0)), Quantile(0.9).prox(0.0, 1.0, step=0.5)
    (0.9, 0.45)
    """

    level: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", between_0_and_1("level", self.level))

    def value(self, u: Values, y: Values) -> Values:
        return np.maximum(self.level * (y - u), (1.0 - self.level) * (u - y))

    def slope(self, u: Values, y: Values) -> Values:
        return np.where(u < y, -self.level, 1.0 - self.level)

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return max(self.level, 1.0 - self.level)

    def variation(self, reach: float, label_bound: float) -> float:
        """The steeper slope, from the far end to the label or the near end."""
        return self.slope_bound(reach, label_bound) * Absolute().variation(reach, label_bound)

    def prox(self, z: float, y: float, step: float) -> float:
        return min(max(y, z - step * (1.0 - self.level)), z + step * self.level)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """R, at any point: all slopes lie between `-level` and `1 - level`."""
        return feature_bound * ROUNDED_UP


@dataclass(frozen=True)
class Absolute(ScalarLoss):
    """`|u - y|`: its minimiser is a median.

    >>> float(Absolute().value(3.0, 1.0)), Absolute().prox(3.0, 1.0, step=0.5)
    (2.0, 2.5)
    """

    def value(self, u: Values, y: Values) -> Values:
        return np.abs(u - y)

    def slope(self, u: Values, y: Values) -> Values:
        return np.where(u < y, -1.0, 1.0)

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return 1.0

    def variation(self, reach: float, label_bound: float) -> float:
        """From the far end to the label, or to the near end."""
        return min(2.0 * reach, reach + label_bound) * ROUNDED_UP

    def prox(self, z: float, y: float, step: float) -> float:
        return min(max(y, z - step), z + step)


@dataclass(frozen=True)
class Huber(ScalarLoss):
    """`½(u - y)²` up to `width` from the label and linear beyond: regression robust to outliers.

    >>> float(Huber(1.0).value(3.0, 0.0)), Huber(1.0).prox(3.0, 0.0, step=1.0)
    (2.5, 2.0)
    """

    width: float
    curvature: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", positive("width", self.width))

    def value(self, u: Values, y: Values) -> Values:
        far = np.abs(u - y)
        near = np.minimum(far, self.width)
        return near * (far - 0.5 * near)

    def slope(self, u: Values, y: Values) -> Values:
        return np.clip(u - y, -self.width, self.width)

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return min(self.width, Squared().slope_bound(reach, label_bound))

    def variation(self, reach: float, label_bound: float) -> float:
        """The slope's integral from the label, or from the near end, which is `start` away from it, to the far end."""
        start, length = max(0.0, label_bound - reach), min(2.0 * reach, reach + label_bound)
        bent = min(length, max(0.0, self.width - start))
        return (bent * (start + 0.5 * bent) + (length - bent) * self.width) * ROUNDED_UP

    def prox(self, z: float, y: float, step: float) -> float:
        pull = (z - y) * step / (1.0 + step)
        return z - min(max(pull, -step * self.width), step * self.width)

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The smaller of `2R·width` and squared loss's: a clipped gradient lies between squared loss's and 0."""
        squared = Squared().gradient_diameter(feature_bound, radius, label_bound)
        return min(squared, 2.0 * feature_bound * self.width * ROUNDED_UP)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The smaller of `2R·width` and squared loss's, `2R·R_y`: clipping moves no two slopes apart."""
        return 2.0 * feature_bound * min(self.width, label_bound) * ROUNDED_UP


@dataclass(frozen=True)
class Linear(ScalarLoss):
    """`y·u`: the loss on which every certificate of this package is tight.

    >>> Linear().value(3.0, -2.0), Linear().prox(3.0, -2.0, step=0.5)
    (-6.0, 4.0)
    """

    curvature: ClassVar[float] = 0.0

    def value(self, u: Values, y: Values) -> Values:
        return y * u

    def slope(self, u: Values, y: Values) -> Values:
        return y + 0.0 * u

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return label_bound

    def prox(self, z: float, y: float, step: float) -> float:
        return z - step * y


@dataclass(frozen=True)
class Advice:
    """`v·x`: the loss of experts followed with weights `x`, where expert i loses `v_i`, clipped to [0, loss_bound].

    Examples have no labels.

    >>> Advice().value(np.array([0.5, 0.5]), np.array([0.25, 7.0]), 0.0)
    0.625
    """

    loss_bound: float = 1.0
    labels: ClassVar[Literal["none"]] = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss_bound", positive("loss_bound", self.loss_bound))

    def value(self, x: Array, v: Array, y: float) -> float:
        """`v·x`, v clipped to its bounds."""
        return float(self.gradient(x, v, y) @ x)

    def values(self, points: Array, v: Array, y: float) -> Array:
        """The value at each of these points, at once."""
        return np.asarray(points @ np.clip(v, 0.0, self.loss_bound), dtype=np.float64)

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """The experts' losses, clipped to their bounds."""
        return np.clip(v, 0.0, self.loss_bound)

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Clipping makes no vector longer."""
        return feature_bound * ROUNDED_UP

    def smoothness(self, feature_bound: float) -> float:
        """0: the loss is linear."""
        return 0.0

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Vectors without negative entries are at most `sqrt(2)` times the longest apart."""
        return math.sqrt(2.0) * feature_bound * ROUNDED_UP

    def variation(self, points: Array, feature_bound: float, label_bound: float) -> float:
        """Bound on `max - min` of one example's loss over these points; `loss_bound` if all lie in the unit simplex.

        `v·(x - x')` is at most `loss_bound·Σ_i max(x_i - x'_i, 0)`, and `max(a - b, 0) ≤ max(a, 0) + max(-b, 0)`.
        """
        above = float(np.max(np.sum(np.maximum(points, 0.0), axis=1)))
        below = float(np.max(np.sum(np.maximum(-points, 0.0), axis=1)))
        return (above + below) * self.loss_bound * ROUNDED_UP


@dataclass(frozen=True)
class Nearness:
    """`½‖x - v‖²`: half the squared distance to an example, minimised by the mean. Examples have no labels.

    >>> Nearness().value(np.zeros(2), np.array([3.0, 4.0]), 0.0)
    12.5
    """

    labels: ClassVar[Literal["none"]] = "none"

    def value(self, x: Array, v: Array, y: float) -> float:
        """Half the squared distance."""
        return 0.5 * float((x - v) @ (x - v))

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """The difference."""
        return x - v

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The largest distance of an example."""
        return (feature_bound + radius) * ROUNDED_UP

    def smoothness(self, feature_bound: float) -> float:
        """1, everywhere."""
        return 1.0

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The distance of two examples, as the point cancels."""
        return 2.0 * feature_bound * ROUNDED_UP


def _logistic_prox(z: float, step: float) -> float:
    """Root of `w - z - step·sigmoid(-w)`, which lies in [z, z + step]: Newton, ended by a bracket."""
    low, high, w = z, z + step, z + step / 2.0
    if high == low:
        return z
    for _ in range(64):
        pull = step / (1.0 + math.exp(min(w, 700.0)))
        residual = w - z - pull
        low, high = (low, w) if residual > 0.0 else (w, high)
        following = w - residual / (1.0 + pull * (1.0 - pull / step))
        if not low <= following <= high:
            following = low + (high - low) / 2.0
        if abs(following - w) <= 2.0**-52 * abs(w):
            return following
        w = following
    return bisect(lambda x: x - z - step / (1.0 + math.exp(min(x, 700.0))), low, high)
