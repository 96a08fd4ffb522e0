"""Convex sets: projection, diameter, membership.

A set of your own needs the five members of `ConvexSet`, in plain Python; nothing has to be inherited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput, finite, float_or_nan, positive, value_or_type

_NEARLY = 1e-9


@runtime_checkable
class ConvexSet(Protocol):
    """A closed convex set of points.

    >>> isinstance(L2Ball(1.0), ConvexSet)
    True
    """

    def project(self, x: Array) -> Array:
        """The nearest point of the set."""

    def contains(self, x: Array) -> bool:
        """Whether `x` lies in the set, up to a rounding error."""

    def diameter(self, dimension: int) -> float:
        """Largest distance between two points of the set; may be infinite."""

    def radius_in(self, dimension: int) -> float:
        """Largest norm of a point of the set; may be infinite."""

    def check_dimension(self, dimension: int) -> None:
        """Reject, with `InvalidInput`, a dimension that the set does not have."""


class _AnyDimension:
    """A set that exists in every dimension."""

    def check_dimension(self, dimension: int) -> None:
        """Accept every dimension."""


@dataclass(frozen=True)
class WholeSpace(_AnyDimension):
    """R^d: no constraint.

    >>> WholeSpace().project(np.array([3.0, -4.0]))
    array([ 3., -4.])
    """

    def project(self, x: Array) -> Array:
        return x

    def contains(self, x: Array) -> bool:
        return bool(np.all(np.isfinite(x)))

    def diameter(self, dimension: int) -> float:
        return math.inf

    def radius_in(self, dimension: int) -> float:
        return math.inf


@dataclass(frozen=True)
class L2Ball(_AnyDimension):
    """`{x : ‖x‖₂ ≤ radius}`; the projection is `x·min(1, radius/‖x‖)`.

    >>> L2Ball(1.0).project(np.array([3.0, -4.0]))
    array([ 0.6, -0.8])
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius))

    def project(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            norm = float(np.sqrt(x @ x))
        if 1e-150 < norm < 1e150:
            return x if norm <= self.radius else x * (self.radius / norm)
        largest = float(np.max(np.abs(x)))  # the square of the norm may have under- or overflowed
        if largest == 0.0 or float(np.linalg.norm(x / largest)) <= self.radius / largest:
            return x
        return x / largest * (self.radius / float(np.linalg.norm(x / largest)))

    def contains(self, x: Array) -> bool:
        return bool(np.linalg.norm(x) <= self.radius * (1.0 + _NEARLY))

    def diameter(self, dimension: int) -> float:
        return 2.0 * self.radius

    def radius_in(self, dimension: int) -> float:
        return self.radius


@dataclass(frozen=True)
class Box(_AnyDimension):
    """`{x : low ≤ x_i ≤ high}`; the projection clips each coordinate.

    >>> Box(0.0, 1.0).project(np.array([3.0, -4.0]))
    array([1., 0.])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = float_or_nan(self.low), float_or_nan(self.high)
        if not -math.inf < low < high < math.inf:
            raise InvalidInput(
                f"a box needs finite low < high, got low={value_or_type(self.low)} and high={value_or_type(self.high)}."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def project(self, x: Array) -> Array:
        return np.clip(x, self.low, self.high)

    def contains(self, x: Array) -> bool:
        slack = _NEARLY * (self.high - self.low)
        return bool(np.all((x >= self.low - slack) & (x <= self.high + slack)))

    def diameter(self, dimension: int) -> float:
        return (self.high - self.low) * math.sqrt(dimension)

    def radius_in(self, dimension: int) -> float:
        return max(abs(self.low), abs(self.high)) * math.sqrt(dimension)


@dataclass(frozen=True)
class Simplex(_AnyDimension):
    """`{x : x_i ≥ 0, Σ x_i = total}`; the projection subtracts one number, found by sorting, and clips at 0.

    >>> Simplex().project(np.array([2.0, 0.0]))
    array([1., 0.])
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", positive("total", self.total))

    def project(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            x = np.maximum(x - np.max(x), -self.total)  # which changes nothing but the rounding
        largest_first = np.sort(x)[::-1]
        threshold = (np.cumsum(largest_first) - self.total) / np.arange(1, len(x) + 1)
        support = max(int(np.count_nonzero(largest_first > threshold)), 1)
        exact = (float(np.sum(largest_first[:support])) - self.total) / support  # adds pairwise, unlike cumsum
        return np.asarray(np.maximum(x - exact, 0.0), dtype=np.float64)

    def contains(self, x: Array) -> bool:
        slack = _NEARLY * self.total
        return bool(np.all(x >= -slack) and abs(float(np.sum(x)) - self.total) <= slack)

    def diameter(self, dimension: int) -> float:
        return self.total * math.sqrt(2.0) if dimension > 1 else 0.0

    def radius_in(self, dimension: int) -> float:
        return self.total


@dataclass(frozen=True)
class L1Ball(_AnyDimension):
    """`{x : Σ|x_i| ≤ radius}`; outside, the projection is that of |x| on the simplex, with the signs of x.

    >>> L1Ball(1.0).project(np.array([2.0, -1.0]))
    array([ 1., -0.])
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius))

    def project(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            if float(np.sum(np.abs(x))) <= self.radius:
                return x
        return np.copysign(Simplex(self.radius).project(np.abs(x)), x)

    def contains(self, x: Array) -> bool:
        return bool(np.sum(np.abs(x)) <= self.radius * (1.0 + _NEARLY))

    def diameter(self, dimension: int) -> float:
        return 2.0 * self.radius

    def radius_in(self, dimension: int) -> float:
        return self.radius


@dataclass(frozen=True)
class HalfSpace:
    """`{x : normal·x ≤ offset}`; the projection moves along the normal.

    >>> HalfSpace((1.0, 0.0), 0.5).project(np.array([2.0, 3.0]))
    array([0.5, 3. ])
    """

    normal: tuple[float, ...]
    offset: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "normal", tuple(finite("an entry of the half-space's normal", a, of_many=True) for a in self.normal)
        )
        positive("norm of the half-space's normal", math.hypot(*self.normal))
        object.__setattr__(self, "offset", finite("offset", self.offset))

    def project(self, x: Array) -> Array:
        length = math.hypot(*self.normal)
        unit = np.asarray(self.normal) / length
        excess = float(unit @ x) - self.offset / length
        return x if excess <= 0.0 else x - excess * unit

    def contains(self, x: Array) -> bool:
        normal = np.asarray(self.normal)
        scale = abs(self.offset) + float(np.linalg.norm(normal) * np.linalg.norm(x))
        return bool(normal @ x <= self.offset + _NEARLY * scale)

    def diameter(self, dimension: int) -> float:
        return math.inf

    def radius_in(self, dimension: int) -> float:
        return math.inf

    def check_dimension(self, dimension: int) -> None:
        if len(self.normal) != dimension:
            raise InvalidInput(
                f"the half-space's normal has {len(self.normal)} entries and the problem's points have {dimension} "
                "(the intercept counts). Give it that many."
            )
