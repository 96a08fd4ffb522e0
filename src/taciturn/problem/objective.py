"""Sums of losses as functions of the point: what a follower of the leader minimises.

Each is the mean over examples of a data term, plus `(ridge/2)‖x‖²` and `tilt·x`; it knows its gradient, how strongly
and how smoothly it is convex, a Newton step, and an affine function below its data term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from taciturn._util.arrays import Array
from taciturn.problem.problem import Problem
from taciturn.problem.scalar_loss import ROUNDED_UP, ScalarLoss, Values


class Objective(Protocol):
    """A smooth, strongly convex function on the whole space."""

    @property
    def ridge(self) -> float:
        """Its strong convexity."""

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient, ridge included."""

    def gradient(self, x: Array) -> Array:
        """The gradient at `x`, ridge included."""

    def model(self, x: Array) -> tuple[Array, Array] | None:
        """`(H, b)` of the second-order model `½x·Hx - b·x` around `x`; None where there is no Hessian."""

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        """The derivative of the function at `x + s·ahead`, as a function of s."""

    def stages(self) -> Sequence[Objective]:
        """Functions to minimise one after the other, each a good start for the next; the last is this one."""

    def below(self, x: Array) -> tuple[float, Array]:
        """`(c, g)` such that `c + g·z` is at most the data term, kinks included, at every z, and near it at `x`."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """`½x·Mx - u·x` plus the ridge: squared loss by its sufficient statistics, divided by the number of examples."""

    M: Array
    u: Array
    ridge: float
    smoothness: float
    constant: float = 0.0

    def gradient(self, x: Array) -> Array:
        return np.asarray(self.M @ x - self.u + self.ridge * x)

    def model(self, x: Array) -> tuple[Array, Array]:
        return self.M + self.ridge * np.eye(len(self.u)), self.u

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        return lambda s: float(self.gradient(x + s * ahead) @ ahead)

    def stages(self) -> Sequence[Objective]:
        return [self]

    def below(self, x: Array) -> tuple[float, Array]:
        return float(self.constant - 0.5 * x @ self.M @ x), self.M @ x - self.u


@dataclass(frozen=True, eq=False)
class Scalars:
    """The mean of `loss(v·x, y)` over bounded examples; kinks are rounded off by averaging over `width`.

    Averaged over `[u - width/2, u + width/2]` a loss has the slope `(loss(u + width/2) - loss(u - width/2))/width`: no
    steeper than the loss itself in that interval, with a curvature of at most twice the bound on slopes over `width`.
    `width = 0` leaves a smooth loss as it is.
    """

    problem: Problem
    V: Array
    y: Array
    ridge: float
    width: float = 0.0
    tilt: Array | float = 0.0
    loss: ScalarLoss = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.problem.loss, ScalarLoss)
        object.__setattr__(self, "loss", self.problem.loss)

    @property
    def smoothness(self) -> float:
        return float(mean_smoothness(self.problem, self.ridge, self.width))

    def gradient(self, x: Array) -> Array:
        return np.asarray(self.V.T @ self.slopes(self.V @ x) / len(self.y) + self.ridge * x + self.tilt)

    def slopes(self, u: Array) -> Array:
        """Slopes of the loss, or of its average."""
        if self.width == 0.0:
            return np.asarray(self.loss.slope(u, self.y), dtype=np.float64)
        low, high = u - self.width / 2.0, u + self.width / 2.0
        secant = (self.loss.value(high, self.y) - self.loss.value(low, self.y)) / (high - low)
        clipped = np.clip(secant, self.loss.slope(low, self.y), self.loss.slope(high, self.y))
        return np.asarray(clipped, dtype=np.float64)

    def model(self, x: Array) -> tuple[Array, Array]:
        u, reach = self.V @ x, self.width / 2.0 or 2.0**-17
        bend = (self.loss.slope(u + reach, self.y) - self.loss.slope(u - reach, self.y)) / (2.0 * reach)
        H = (self.V.T * bend) @ self.V / len(self.y) + self.ridge * np.eye(len(x))
        return H, H @ x - self.gradient(x)

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        u, moved = self.V @ x, self.V @ ahead
        first, second = float(np.sum((self.ridge * x + self.tilt) * ahead)), self.ridge * float(ahead @ ahead)
        return lambda s: float(moved @ self.slopes(u + s * moved)) / len(self.y) + first + s * second

    def stages(self) -> Sequence[Objective]:
        """The loss averaged over widths that shrink to this one: Newton's method loses its way among sharp kinks."""
        powers = range(14, 0, -2) if self.width > 0.0 else ()
        return [*(replace(self, width=self.width * 2.0**power) for power in powers), self]

    def below(self, x: Array) -> tuple[float, Array]:
        """The tangent at each example's prediction; with a width, the secant, lowered where the loss dips below it.

        Over the interval [a, b] of the average, the loss minus its secant is 0 at both ends and, by its slopes p and q
        there, at least `-(b - a)·(s - p)(q - s)/(q - p)`, s the secant's slope; outside it is positive.
        """
        u = self.V @ x
        s = self.slopes(u)
        low, high = u - self.width / 2.0, u + self.width / 2.0
        p, q = self.loss.slope(low, self.y), self.loss.slope(high, self.y)
        dip = (high - low) * (s - p) * (q - s) / np.maximum(q - p, 1e-300)
        touches = np.minimum(self.loss.value(low, self.y) - s * low, self.loss.value(high, self.y) - s * high)
        return float(np.mean(touches - dip)), np.asarray(self.V.T @ s / len(self.y) + self.tilt)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The mean of a smooth loss that is not a function of `v·x` alone."""

    problem: Problem
    V: Array
    y: Array
    ridge: float
    tilt: Array | float = 0.0

    @property
    def smoothness(self) -> float:
        return float(mean_smoothness(self.problem, self.ridge))

    def gradient(self, x: Array) -> Array:
        return np.asarray(self._data_gradient(x) + self.ridge * x)

    def model(self, x: Array) -> None:
        return None

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        return lambda s: float(self.gradient(x + s * ahead) @ ahead)

    def stages(self) -> Sequence[Objective]:
        return [self]

    def below(self, x: Array) -> tuple[float, Array]:
        g, ridge = self._data_gradient(x), 0.5 * self.problem.ridge * float(x @ x)
        value = float(np.mean(self.problem.values(x, self.V, self.y) - ridge))
        return float(value + np.sum(self.tilt * x) - g @ x), g

    def _data_gradient(self, x: Array) -> Array:
        return np.asarray(self.problem.mean_gradient(x, self.V, self.y) + self.tilt)


def mean_loss(problem: Problem, V: Array, y: Array, ridge: float, width: float = 0.0) -> Objective:
    """The objective of a problem's loss on bounded examples, with this ridge."""
    if isinstance(problem.loss, ScalarLoss):
        return Scalars(problem, V, y, ridge, width)
    return Vectors(problem, V, y, ridge)


def mean_smoothness(problem: Problem, ridge: Values, width: float = 0.0) -> Values:
    """Smoothness of the mean loss with this ridge, the loss averaged over `width`."""
    if not isinstance(problem.loss, ScalarLoss) or width == 0.0:
        return problem.smoothness - problem.ridge + ridge
    assert problem.label_bound is not None
    reach = problem.norm_bound * problem.radius + width
    curvature = 2.0 * float(problem.loss.slope_bound(reach, problem.label_bound)) / width
    return curvature * problem.norm_bound**2 * ROUNDED_UP + ridge
