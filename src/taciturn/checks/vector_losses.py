"""Checks of a vector loss, a function of a point and an example: its gradient, its convexity and its constants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.checks.streams import generator, in_ball
from taciturn.checks.suite import demand, skip
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.multiclass import ScoresLoss
from taciturn.kernel.problem.vector_loss import VectorLoss

RADIUS, LABEL_BOUND = 2.0, 1.0


@dataclass(frozen=True)
class Points:
    """A loss, points of norm up to 2 and examples of norm up to 1."""

    loss: VectorLoss
    dimension: int = 4

    @property
    def size(self) -> int:
        """Entries of a point: for a loss of several scores, as many as features for each."""
        return self.dimension * (self.loss.classes if isinstance(self.loss, ScoresLoss) else 1)

    @cached_property
    def points(self) -> Array:
        """In the ball, most of them on its border."""
        return in_ball(3.0 * generator(1).normal(size=(12, self.size)), RADIUS)

    @cached_property
    def examples(self) -> list[tuple[Array, float]]:
        """Features and legal labels, the extreme ones among them."""
        rng = generator(2)
        V = in_ball(2.0 * rng.normal(size=(24, self.dimension)), 1.0)
        V = np.vstack([V, -V[:12]])
        if isinstance(self.loss, ScoresLoss):
            return [(v, float(k % self.loss.classes)) for k, v in enumerate(V)]
        labels = rng.choice([-LABEL_BOUND, LABEL_BOUND, 0.5], len(V)) if self.loss.labels == "real" else None
        signs = np.where(np.arange(len(V)) % 2, 1.0, -1.0) if self.loss.labels == "sign" else np.zeros(len(V))
        return list(zip(V, (signs if labels is None else labels).tolist(), strict=True))

    def pairs(self) -> Iterator[tuple[Array, Array, Array, float]]:
        """Two points and an example."""
        for (x, z), (v, y) in zip(itertools.permutations(self.points, 2), itertools.cycle(self.examples), strict=False):
            yield x, z, v, y


def gradient_is_the_derivative(case: Points) -> None:
    """The gradient agrees with finite differences of the value."""
    step = 1e-5
    for x, z, v, y in case.pairs():
        along = (z - x) / np.linalg.norm(z - x)
        difference = (case.loss.value(x + step * along, v, y) - case.loss.value(x - step * along, v, y)) / (2.0 * step)
        off = abs(difference - float(case.loss.gradient(x, v, y) @ along))
        smooth = case.loss.smoothness(1.0)
        allowed = 1e-6 + (step * smooth if math.isfinite(smooth) else math.inf)
        demand(off <= allowed, f"the gradient at {x} is off by {off:.3g}", "Differentiate value in x.")


def loss_is_convex(case: Points) -> None:
    """The tangent plane at any point stays below the loss: every certificate is for convex losses only."""
    for x, z, v, y in case.pairs():
        below = case.loss.value(x, v, y) + float(case.loss.gradient(x, v, y) @ (z - x))
        above = case.loss.value(z, v, y)
        fault = f"the tangent at {x} passes {below - above:.3g} above the loss at {z}"
        demand(below <= above + 1e-11 * (1.0 + abs(above)), fault, "Only convex losses are certified.")


def lipschitz_is_a_bound(case: Points) -> None:
    """No gradient within the bounds is longer."""
    longest = max(np.linalg.norm(case.loss.gradient(x, v, y)) for x in case.points for v, y in case.examples)
    stated = case.loss.lipschitz(1.0, RADIUS, LABEL_BOUND)
    demand(
        longest <= stated * (1.0 + 1e-12),
        f"a gradient has length {longest:.6g}, lipschitz says {stated:.6g}",
        "Raise it.",
    )


def smoothness_is_a_bound(case: Points) -> None:
    """Gradients change by at most `smoothness` times the distance: gradient steps contract only then."""
    stated = case.loss.smoothness(1.0)
    if math.isinf(stated):
        skip("the loss states that it has kinks")
    for x, z, v, y in case.pairs():
        for w in (z, x + 1e-3 * (z - x)):
            bent = float(np.linalg.norm(case.loss.gradient(w, v, y) - case.loss.gradient(x, v, y)))
            rate = bent / float(np.linalg.norm(w - x))
            demand(
                rate <= stated * (1.0 + 1e-9) + 1e-9,
                f"gradients change at a rate of {rate:.6g}, smoothness says {stated:.6g}",
                "Raise it.",
            )


def gradient_diameter_is_a_bound(case: Points) -> str:
    """No two legal examples have gradients farther apart at one point: every certificate is a multiple of it."""
    largest = 0.0
    for x in case.points:
        gradients = np.array([case.loss.gradient(x, v, y) for v, y in case.examples])
        largest = max(largest, *(float(np.max(np.linalg.norm(gradients - g, axis=1))) for g in gradients))
    stated = case.loss.gradient_diameter(1.0, RADIUS, LABEL_BOUND)
    demand(
        largest <= stated * (1.0 + 1e-12),
        f"two gradients lie {largest:.6g} apart, gradient_diameter says {stated:.6g}",
        "Raise it.",
    )
    return f"the worst pair tried uses {largest / stated:.1%} of the bound"


CHECKS = (
    gradient_is_the_derivative,
    loss_is_convex,
    lipschitz_is_a_bound,
    smoothness_is_a_bound,
    gradient_diameter_is_a_bound,
)
