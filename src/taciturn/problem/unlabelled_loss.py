"""Losses of examples without labels: experts' losses, and plain vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from taciturn._util.arrays import Array
from taciturn.errors import positive
from taciturn.problem.scalar_loss import ROUNDED_UP


@dataclass(frozen=True)
class Advice:
    """`v·x`: what following experts with weights `x` costs, where expert i loses `v_i`, cut to [0, loss_bound].

    Examples have no labels.

    >>> Advice().value(np.array([0.5, 0.5]), np.array([0.25, 7.0]), 0.0)
    0.625
    """

    loss_bound: float = 1.0
    labels: ClassVar[Literal["none"]] = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss_bound", positive("loss_bound", self.loss_bound))

    def value(self, x: Array, v: Array, y: float) -> float:
        """`v·x`, v cut to its bounds."""
        return float(self.gradient(x, v, y) @ x)

    def values(self, points: Array, v: Array, y: float) -> Array:
        """The value at each of these points, at once."""
        return np.asarray(points @ np.clip(v, 0.0, self.loss_bound), dtype=np.float64)

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """The experts' losses, cut to their bounds."""
        return np.clip(v, 0.0, self.loss_bound)

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Cutting makes no vector longer."""
        return feature_bound * ROUNDED_UP

    def smoothness(self, feature_bound: float) -> float:
        """A line does not bend."""
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
    """`½‖x - v‖²`: what a point costs that stands for vectors; the leader is their mean. Examples have no labels.

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
        """The farthest that an example can lie."""
        return (feature_bound + radius) * ROUNDED_UP

    def smoothness(self, feature_bound: float) -> float:
        """1, everywhere."""
        return 1.0

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """The point cancels: two examples' distance."""
        return 2.0 * feature_bound * ROUNDED_UP
