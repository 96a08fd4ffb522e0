"""The protocol of losses that are not a function of `v·x` alone."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from taciturn.kernel.arrays import Array


@runtime_checkable
class VectorLoss(Protocol):
    """A convex loss that is not a function of `v·x` alone; every constant is an upper bound.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Nearness:  # half the squared distance of the point to the example
    ...     labels = "sign"
    ...
    ...     def value(self, x, v, y):
    ...         return 0.5 * (x - v) @ (x - v)
    ...
    ...     def gradient(self, x, v, y):
    ...         return x - v
    ...
    ...     def lipschitz(self, feature_bound, radius, label_bound):
    ...         return feature_bound + radius
    ...
    ...     def smoothness(self, feature_bound):
    ...         return 1.0
    ...
    ...     def gradient_diameter(self, feature_bound, radius, label_bound):
    ...         return 2.0 * feature_bound
    >>> from taciturn import IGD, L2Ball, Problem
    >>> IGD(Problem(Nearness(), L2Ball(1.0), dimension=2, ridge=0.5)).certificate
    l2/tail, 4/(t+1)
    """

    @property
    def labels(self) -> Literal["sign", "real", "class", "none"]:
        """Valid labels: -1 and +1, any number up to the problem's `label_bound`, a class from 0 on, or none."""

    def value(self, x: Array, v: Array, y: float) -> float:
        """The loss of the point `x` on one example."""

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """Its gradient in `x`."""

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Largest norm of a gradient over points of norm ≤ `radius` and valid examples."""

    def smoothness(self, feature_bound: float) -> float:
        """Lipschitz constant of the gradient; infinite where there is none."""

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Largest distance between the gradients of two valid examples at one such point."""
