"""The base class of losses of the form `phi(v·x, y)`, with defaults that follow from convexity alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import Unprovable, positive

Values = Any  # a float or an array of floats: losses work elementwise on both

ROUNDED_UP = 1.0 + 1e-9
"""Constants of losses are multiplied by this, so that rounding never makes one too small."""


class ScalarLoss(ABC):
    """A convex loss that depends on an example only through the prediction `u = v·x` and the label `y`.

    To add one, write `value`, `slope`, `slope_bound`, and state `curvature`; everything else has a default
    that is right for any convex function. Give it a `prox` in closed form, or a smaller `gradient_diameter` or
    `variation`, if there is one.

    Attributes
    ----------
    labels : {"sign", "real"}
        Legal labels: -1 and +1, or any number up to the problem's `label_bound`.
    curvature : float
        Largest second derivative in `u`; infinite where the loss has a kink.

    Examples
    --------
    >>> class LogCosh(ScalarLoss):
    ...     curvature = 1.0
    ...
    ...     def value(self, u, y):
    ...         return np.logaddexp(u - y, y - u)
    ...
    ...     def slope(self, u, y):
    ...         return np.tanh(u - y)
    ...
    ...     def slope_bound(self, reach, label_bound):
    ...         return 1.0
    >>> round(LogCosh().prox(1.0, y=0.0, step=0.5), 4)
    0.6983
    """

    labels: ClassVar[Literal["sign", "real"]] = "real"
    curvature: ClassVar[float] = math.inf

    @abstractmethod
    def value(self, u: Values, y: Values) -> Values:
        """The loss of predicting `u` where `y` is true."""

    @abstractmethod
    def slope(self, u: Values, y: Values) -> Values:
        """A (sub)derivative in `u`; it must never fall as `u` rises."""

    @abstractmethod
    def slope_bound(self, reach: float, label_bound: float) -> float:
        """Largest |slope| over |u| ≤ `reach` and |y| ≤ `label_bound`; infinite if there is none."""

    def prox(self, z: float, y: float, step: float) -> float:
        """`argmin_u step·value(u, y) + ½(u - z)²`, here by bisection to the last bit.

        The residual `u - z + step·slope(u, y)` rises with slope at least 1, so its root is unique.
        """

        def residual(u: float) -> float:
            return u - z + step * float(self.slope(u, y))

        first = z - step * float(self.slope(z, y))
        return bisect(residual, min(first, z), max(first, z))

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Bound on `‖slope·v - slope'·v'‖` over two valid examples at one point of norm ≤ `radius`.

        By the triangle inequality twice the longest gradient; some losses know better.
        """
        return 2.0 * feature_bound * float(self.slope_bound(feature_bound * radius, label_bound)) * ROUNDED_UP

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Bound on `‖slope·v - slope'·v‖` over two labels of one example, at one point of norm ≤ `radius`.

        If labels are signs, also on `‖slope·v‖`, as an example without a label has no gradient. For a loss with kinks
        it must hold at any point. Two labels are a case of two examples; most losses know better.
        """
        return self.gradient_diameter(feature_bound, radius, label_bound)

    def variation(self, reach: float, label_bound: float) -> float:
        """Bound on `max - min` of the loss over |u| ≤ `reach`, for any one label up to `label_bound`.

        By the mean value theorem the length of the interval times the steepest slope; some losses know better.
        """
        return 2.0 * reach * float(self.slope_bound(reach, label_bound)) * ROUNDED_UP


def check_slopes(loss: ScalarLoss, reach: float, label_bound: float) -> None:
    """Check a loss's slopes on a grid of predictions, and reject it if they contradict its constants.

    A spot check, for losses of your own: certificates rest on `slope_bound`, on `curvature`, and on slopes that
    never fall.
    """
    grid = np.linspace(-1.0, 1.0, 65) * min(reach, 100.0)
    bound, name = float(loss.slope_bound(reach, label_bound)), type(loss).__name__
    for y in (-label_bound, label_bound):
        slopes = np.array([float(loss.slope(float(u), y)) for u in grid])
        if not (np.abs(slopes) <= bound * (1.0 + 1e-9)).all():
            raise Unprovable(f"{name} has slopes beyond its slope_bound of {bound:.5g}. State a true bound.")
        rises = np.diff(slopes)
        if (rises < -1e-9 * bound).any():
            raise Unprovable(f"{name} is not convex: its slope falls somewhere. Only convex losses are certified.")
        if (rises > float(loss.curvature) * np.diff(grid) * (1.0 + 1e-6) + 1e-9 * bound).any():
            raise Unprovable(f"{name} bends more than its curvature of {loss.curvature:.5g}. State a true bound.")


@dataclass(frozen=True)
class Smoothed(ScalarLoss):
    """A smoothed loss: the Moreau envelope `min_w loss(w, y) + (w - u)²/(2·width)`.

    At any u its slope is no steeper than the loss's, its curvature is at most `1/width`, and its value lies below
    the loss's by at most `width/2` times the squared slope. Its prox is `z + step/(step + width)·(loss.prox(z, step +
    width) - z)`.

    **Two labels.** Where slopes of the loss for two labels differ by at most D, so do those of the envelope. *Proof.*
    Let `s ∈ A(p)`, `p = u - width·s` be the slope for one label, and `s' ∈ A'(p')`, `p' = u - width·s'` for the other,
    A and A' the sets of slopes, and `s > s'`. Then `p < p'`. At any q between them A has risen, and A' not yet:
    `s ≤ A(q) ≤ A'(q) + D ≤ s' + D`. ∎

    >>> from taciturn import Absolute
    >>> Smoothed(Absolute(), 0.5).slope(0.25, 0.0), Smoothed(Absolute(), 0.5).prox(1.0, 0.0, step=0.5)
    (0.5, 0.5)
    """

    loss: ScalarLoss
    width: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", self.loss.labels)
        object.__setattr__(self, "width", positive("width", self.width))
        object.__setattr__(self, "curvature", 1.0 / self.width)

    def value(self, u: Values, y: Values) -> Values:
        return self._value(u, y) if np.ndim(u) == 0 else np.vectorize(self._value, otypes=[float])(u, y)

    def _value(self, u: float, y: float) -> float:
        near = self._nearest(u, y)
        return float(self.loss.value(near, y) + (near - u) ** 2 / (2.0 * self.width))

    def slope(self, u: Values, y: Values) -> Values:
        return self._slope(u, y) if np.ndim(u) == 0 else np.vectorize(self._slope, otypes=[float])(u, y)

    def _slope(self, u: float, y: float) -> float:
        near = self._nearest(u, y)
        hair = 2.0**-50 * (abs(u) + self.width)
        least, most = float(self.loss.slope(near - hair, y)), float(self.loss.slope(near + hair, y))
        return min(max((u - near) / self.width, least), most)  # exact where the loss is straight

    def slope_bound(self, reach: float, label_bound: float) -> float:
        return self.loss.slope_bound(reach, label_bound)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        return self.loss.label_diameter(feature_bound, radius, label_bound)

    def variation(self, reach: float, label_bound: float) -> float:
        """The loss's: both are least at the same place, and away from it this one rises no faster."""
        return self.loss.variation(reach, label_bound)

    def prox(self, z: float, y: float, step: float) -> float:
        longer = step + self.width
        return z + step / longer * (self.loss.prox(z, y, longer) - z)

    def _nearest(self, u: float, y: float) -> float:
        return self.loss.prox(float(u), float(y), self.width)


def bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where the function `rising` passes zero, to the last bit, given that it does so in [low, high].

    >>> bisect(lambda x: x**3 - 8.0, 0.0, 5.0)
    2.0
    """
    for _ in range(2200):  # more than there are bits and exponents
        middle = low + (high - low) / 2.0
        if middle in (low, high):
            break
        low, high = (low, middle) if rising(middle) > 0.0 else (middle, high)
    return middle


def widest_chord(rising: Callable[[Array], Array], feature_bound: float) -> float:
    """`max over 0 ≤ p ≤ R of 2·sqrt(R² - p²)·rising(p)`, as an upper bound, for `rising` that never falls.

    This is the gradient diameter of logistic and squared loss: two gradients at one point are farthest apart when their
    examples mirror each other in it and pull to opposite sides. *Proof* (R = 1, labels folded into the examples, b
    the norm of the point times R): gradients have lengths `a = rising(cos θ)`, `a' = rising(cos θ')` at angles θ,
    -θ' from the point. With m the mean of the angles and e half their difference, `D² = (a + a')²·sin²m + (a -
    a')²·cos²m`. For a line `a = r + b·cos θ` (squared loss) this is `4·sin²m·(r² + 2rb·cos m·cos e + b²·cos²m)`, at
    most the square of `2·sin m·(r + b·|cos m|)`. For the sigmoid and m ≤ 90° replace it by its secant through the
    two points, a line to which the above applies; at cos m the sigmoid, concave from the midpoint on, lies above it.
    For m > 90° reflect both angles,
    which keeps `a - a'` and does not shrink `a + a'`. Shorter examples are no worse: for a given component along the
    point, and so a given a, the distance grows with the component across it. ∎

    On a cell [l, h] the product is at most `sqrt(R² - l²)·rising(h)`; cells that cannot hold the maximum are dropped
    and the others cut, until the bound is within 1e-8 of a value attained.

    >>> widest_chord(np.ones_like, 1.0) >= 2.0
    True
    """
    edges = np.linspace(0.0, 1.0, 257)
    low, high = edges[:-1], edges[1:]
    while True:
        over = np.sqrt(1.0 - low**2) * rising(high * feature_bound)
        attained = float(np.max(np.sqrt(1.0 - low**2) * rising(low * feature_bound)))
        if float(np.max(over)) <= attained * (1.0 + 1e-8):
            return 2.0 * feature_bound * float(np.max(over)) * ROUNDED_UP
        keep = over >= attained
        low, width = low[keep], (high - low)[keep] / 16.0
        low = (low[:, None] + width[:, None] * np.arange(16)).ravel()
        high = np.minimum(low + np.repeat(width, 16) * (1.0 + 1e-6), 1.0)
