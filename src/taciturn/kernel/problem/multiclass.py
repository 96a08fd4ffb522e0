"""Losses of several scores: one row of weights for each class, and the label is a class."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import logsumexp, softmax

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import integer
from taciturn.kernel.problem.losses import Squared
from taciturn.kernel.problem.scalar_loss import ROUNDED_UP

TIE = 2.0**-40
"""Scores of MultiHinge tie that are closer than this share of 1 and the largest one: more than rounding moves them."""


@dataclass(frozen=True)
class ScoresLoss(ABC):
    """A convex loss that depends on an example only through K scores `u = W v` and its class, one of 0, 1, …, K - 1.

    W has a row for each class; a point is its rows, one after the other. The gradient in W is `slope(u, y) vᵀ`, whose
    length is that of the slope times that of v. To add one, write `losses` and `slopes`, and state `steepest` and
    `curvature`; the rest follows.
    """

    classes: int
    labels: ClassVar[Literal["class"]] = "class"
    curvature: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", integer("classes", self.classes, least=2))

    @abstractmethod
    def losses(self, U: Array, y: Array) -> Array:
        """The loss of each row of scores, given its class."""

    @abstractmethod
    def slopes(self, U: Array, y: Array) -> Array:
        """Its gradient in the scores."""

    @abstractmethod
    def steepest(self, reach: float) -> float:
        """Largest norm of a slope where no row of scores is longer than `reach`."""

    def scores(self, x: Array, V: Array) -> Array:
        """`W v` for every row v of V, a row each."""
        return np.asarray(V @ np.asarray(x).reshape(self.classes, -1).T)

    def targets(self, y: Array) -> Array:
        """A unit vector for each class."""
        rows = np.zeros((len(y), self.classes))
        rows[np.arange(len(y)), np.asarray(y, dtype=np.int64)] = 1.0
        return rows

    def value(self, x: Array, v: Array, y: float) -> float:
        """The loss of the point `x` on one example."""
        return float(self.losses(self.scores(x, v[None]), np.array([y]))[0])

    def values(self, points: Array, v: Array, y: float) -> Array:
        """The loss of each of these points on one example."""
        U = points.reshape(len(points), self.classes, -1) @ v
        return self.losses(U, np.full(len(U), y))

    def gradient(self, x: Array, v: Array, y: float) -> Array:
        """`slope(u, y) vᵀ`, row by row."""
        return np.outer(self.slopes(self.scores(x, v[None]), np.array([y]))[0], v).ravel()

    def lipschitz(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`‖W v‖ ≤ ‖W‖·‖v‖`, so the steepest slope over that reach, times the longest v."""
        return feature_bound * float(self.steepest(feature_bound * radius)) * ROUNDED_UP

    def smoothness(self, feature_bound: float) -> float:
        """The slope's Lipschitz constant, times the squared length of v."""
        return float(self.curvature) * feature_bound**2 * ROUNDED_UP

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """By the triangle inequality twice the longest gradient."""
        return 2.0 * self.lipschitz(feature_bound, radius, label_bound)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """Bound on the distance of the gradients of one example with two classes, or with one and with none.

        An example without a class has no gradient. By default that of two examples, of which one may be 0.
        """
        return self.gradient_diameter(feature_bound, radius, label_bound)


@dataclass(frozen=True)
class Softmax(ScoresLoss):
    """`ln Σ_k exp(u_k) - u_y`: logistic regression with several classes.

    The slope is `p - e_y`, p the probabilities `exp(u_k)/Σ exp(u_j)`. Its squared length is `(1 - p_y)² + Σ_{k≠y} p_k²
    ≤ 2`, for any point, so gradients are at most `sqrt(2)·R` long and `2·sqrt(2)·R` apart. The Hessian
    `diag(p) - p pᵀ` has no eigenvalue above ½ (Böhning, *Multinomial logistic regression algorithm*, 1992).

    >>> round(Softmax(3).value(np.zeros(6), np.array([0.6, 0.8]), 2), 4)
    1.0986
    >>> round(Softmax(3).gradient_diameter(1.0, radius=5.0, label_bound=1.0), 4)
    2.8284
    """

    curvature: ClassVar[float] = 0.5

    def losses(self, U: Array, y: Array) -> Array:
        return np.asarray(logsumexp(U, axis=1) - U[np.arange(len(U)), np.asarray(y, dtype=np.int64)])

    def slopes(self, U: Array, y: Array) -> Array:
        return np.asarray(softmax(U, axis=1) - self.targets(y))

    def steepest(self, reach: float) -> float:
        return math.sqrt(2.0)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`sqrt(2)·R`: the slopes of two classes differ by `e_y - e_y'`, and none is longer than `sqrt(2)`."""
        return math.sqrt(2.0) * feature_bound * ROUNDED_UP


@dataclass(frozen=True)
class OneHot(ScoresLoss):
    """`½‖u - (e_y - 1/K)‖²`: least squares on a column of labels for each class, the mean of all classes taken off.

    The largest score is the predicted class. All columns share the sum of `v vᵀ`, so with `QFTL` an example is
    charged once for all classes. A negative class is none: its row of labels is 0.

    >>> OneHot(2).targets(np.array([0, 1]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    curvature: ClassVar[float] = 1.0

    @property
    def target_norm(self) -> float:
        """The length of a row of labels, `sqrt(1 - 1/K)`."""
        return math.sqrt(1.0 - 1.0 / self.classes) * ROUNDED_UP

    def targets(self, y: Array) -> Array:
        """A unit vector for each class, centred; 0 for none."""
        y = np.asarray(y)
        return np.where(y[:, None] < 0, 0.0, super().targets(np.maximum(y, 0)) - 1.0 / self.classes)

    def losses(self, U: Array, y: Array) -> Array:
        return np.asarray(0.5 * np.sum(self.slopes(U, y) ** 2, axis=1))

    def slopes(self, U: Array, y: Array) -> Array:
        return np.asarray(U - self.targets(y))

    def steepest(self, reach: float) -> float:
        return reach + self.target_norm

    def gradient_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`max_p 2(R_y + p·B)·sqrt(R² - p²)`, that of `Squared` with labels up to `R_y = sqrt(1 - 1/K)`.

        *Proof.* The squared distance of `s vᵀ` and `s' v'ᵀ` is `‖s‖²‖v‖² + ‖s'‖²‖v'‖² - 2(s·s')(v·v')`. In directions
        that W does not see both examples can be made longer, and neither slopes nor `v·v'` change; so let both have
        length R. Half their sum and half their difference are orthogonal, of lengths p, q with `p² + q² = R²`, and the
        distance is `2·sqrt(‖m‖²q² + ‖n‖²p²)`, m and n half the sum and half the difference of the slopes. The squares
        of what W does to two orthogonal directions come to B² at most, and those of half the sum and half the
        difference of two rows of labels to R_y². So, for some angles a and b, `‖m‖ ≤ p·B·cos a + R_y·cos b` and
        `‖n‖ ≤ q·B·sin a + R_y·sin b`. By Cauchy and Schwarz the distance is at most `2(p·q·B + R_y·sqrt(q²cos² b +
        p²sin² b))`, which is at most `2(p·q·B + R_y·max(p, q))`. ∎ (In two dimensions two examples of one class
        reach it, mirror images in W's only direction.)
        """
        return Squared().gradient_diameter(feature_bound, radius, self.target_norm)

    def label_diameter(self, feature_bound: float, radius: float, label_bound: float) -> float:
        """`sqrt(2)·R`, at any point: the scores cancel, and rows of labels differ by `e_y - e_y'` or by one of them."""
        return math.sqrt(2.0) * feature_bound * ROUNDED_UP


@dataclass(frozen=True)
class MultiHinge(ScoresLoss):
    """`max(0, 1 + max_{k≠y} u_k - u_y)`: a support vector machine for several classes.

    By Crammer and Singer (*On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines*, 2001, Section
    3). It is 0 once the true class leads by a margin of 1. The largest of linear functions is convex, and has the slope
    of any one that is largest: `e_k - e_y`, k the wrong class with the largest score; and 0 where the margin is met.

    **Ties.** Scores are rounded, by each way of adding up differently, so which of two equal ones comes out larger says
    nothing. Scores within `2⁻⁴⁰(1 + |u|)` of the largest wrong one, u, tie with it, and the first of them is taken; a
    margin is met that lacks no more than that. The slope is then that of the loss or of a linear function which is as
    close below it. Certificates rest on the slope's length alone, which is the same for any rule.

    **Gradient diameter.** A slope is 0 or `sqrt(2)` long, so gradients are at most `sqrt(2)·R` long and `2·sqrt(2)·R`
    apart, at any point. No set makes either less: at `W = 0`, or where all rows of W are alike, an example v of length
    R has the slope `e_1 - e_0` if its class is 0, and `e_0 - e_1` if it is 1, the same in any number of classes. The
    two gradients are opposite, `2·sqrt(2)·R` apart; with an intercept too, as v is the same in both.

    Kinks lie wherever wrong classes tie, and at the margin. `FTRL` needs no more than a slope, and `EWOO` no more than
    values. `IGD` and `FTL` reject it, as their solvers are certified for smooth losses of several scores alone; so does
    `GIGA`, whose steps on it do not contract.

    >>> loss, W, v = MultiHinge(3), np.array([1.0, 0.0, 0.0, 0.5, 0.0, 0.0]), np.array([0.6, 0.8])
    >>> round(loss.value(W, v, 0), 4), loss.gradient(W, v, 0)
    (0.8, array([-0.6, -0.8,  0.6,  0.8,  0. ,  0. ]))
    >>> round(loss.gradient_diameter(1.0, radius=5.0, label_bound=1.0), 4)
    2.8284
    """

    def losses(self, U: Array, y: Array) -> Array:
        others, own = self._parted(U, y)
        return np.asarray(np.maximum(0.0, 1.0 + others.max(axis=1) - own))

    def slopes(self, U: Array, y: Array) -> Array:
        others, own = self._parted(U, y)
        top = others.max(axis=1)
        close = TIE * (1.0 + np.abs(top))
        rivals = np.argmax(others >= (top - close)[:, None], axis=1)
        return np.where((1.0 + top - own > close)[:, None], self.targets(rivals) - self.targets(y), 0.0)

    def steepest(self, reach: float) -> float:
        return math.sqrt(2.0)

    def variation(self, points: Array, feature_bound: float, label_bound: float) -> float:
        """From 0 to the largest there can be at the longest point W: `u_k - u_y ≤ sqrt(2)·‖W‖·R`."""
        longest = float(np.max(np.linalg.norm(points, axis=1)))
        return (1.0 + math.sqrt(2.0) * longest * feature_bound) * ROUNDED_UP

    def _parted(self, U: Array, y: Array) -> tuple[Array, Array]:
        """The scores of wrong classes, that of the true one no number can be below; and the latter."""
        rows, own, others = np.arange(len(U)), np.asarray(y, dtype=np.int64), np.array(U, dtype=np.float64)
        others[rows, own] = -math.inf
        return others, np.asarray(U[rows, own])
