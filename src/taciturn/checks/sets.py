"""Checks of a convex set: its projection is the nearest point, and its radius and diameter are not exceeded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.checks.streams import generator, members, points_around
from taciturn.checks.suite import demand, skip
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.sets import ConvexSet

_DIMENSIONS = (1, 2, 3, 5, 8)


@dataclass(frozen=True)
class Around:
    """A set and its test case: points around it."""

    domain: ConvexSet
    points: Array

    @property
    def dimension(self) -> int:
        """Of the points."""
        return int(self.points.shape[1])

    @cached_property
    def projected(self) -> Array:
        """The nearest points of the set."""
        return np.array([self.domain.project(x.copy()) for x in self.points])

    @cached_property
    def members(self) -> Array:
        """More points of the set."""
        return members(self.domain, self.dimension, seed=1)

    def near(self, x: Array) -> Array:
        """Points of the set next to the projection of `x`: those of points a little, or very little, off."""
        off = 10.0 ** -np.arange(1.0, 7.0)[:, None] * (1.0 + np.linalg.norm(x))
        around = x + off * generator(self.dimension).normal(size=(6, self.dimension))
        return np.array([self.domain.project(z) for z in around])

    @cached_property
    def scale(self) -> Array:
        """The scale of rounding errors around each point."""
        return np.asarray(1.0 + np.linalg.norm(self.points, axis=1))


def dimensions_of(domain: ConvexSet) -> list[int]:
    """A few dimensions in which the set is defined.

    >>> from taciturn import HalfSpace, L2Ball
    >>> dimensions_of(L2Ball(1.0)), dimensions_of(HalfSpace((1.0,) * 12, 0.0))
    ([1, 2, 3, 5, 8], [12])
    """
    return [d for d in _DIMENSIONS if _has(domain, d)] or [d for d in range(1, 1000) if _has(domain, d)][:3]


def _has(domain: ConvexSet, dimension: int) -> bool:
    try:
        domain.check_dimension(dimension)
    except InvalidInput:
        return False
    return True


def around(domain: ConvexSet, dimension: int) -> Around:
    """The set with points near and far."""
    return Around(domain, points_around(dimension, 30))


def projections_are_members(case: Around) -> None:
    """A projection lies in the set, and projecting it again moves it by rounding at most."""
    for x, near, scale in zip(case.points, case.projected, case.scale, strict=True):
        demand(near.shape == x.shape and near.dtype == np.float64, f"{x} projects to {near}", "Return as many floats.")
        demand(case.domain.contains(near), f"{x} projects to {near}, which is not in the set", "Project onto the set.")
        again = float(np.linalg.norm(case.domain.project(near.copy()) - near))
        demand(
            again <= 1e-12 * scale,
            f"the projection of {x} moves by {again:.3g} if projected again",
            "Solve it to the last bits.",
        )


def projections_are_nearest(case: Around) -> None:
    """`⟨x - Px, z - Px⟩ ≤ 0` for every z of the set: no other point of it is nearer.

    Contraction of a step, and so its certificate, rests on it.
    """
    for x, near, scale in zip(case.points, case.projected, case.scale, strict=True):
        others = np.vstack([case.members, case.near(x)])
        angles = (others - near) @ (x - near)
        fault = f"{x} projects to {near}, and towards {others[int(np.argmax(angles))]} the set comes nearer"
        demand(np.max(angles) <= 1e-11 * scale**2, fault, "Return the nearest point of the set.")


def projection_is_nonexpansive(case: Around) -> None:
    """Two points are never farther apart after the projection than before, firmly so."""
    order = np.roll(np.arange(len(case.points)), 1)
    moved = case.projected - case.projected[order]
    excess = np.sum(moved**2, axis=1) - np.sum(moved * (case.points - case.points[order]), axis=1)
    scale = case.scale + case.scale[order]
    k = int(np.argmax(excess / scale**2))
    fault = f"projecting takes {case.points[k]} and {case.points[order][k]} farther apart"
    demand(np.all(excess <= 1e-11 * scale**2), fault, "Return the nearest point of a convex set.")


def projection_leaves_members_unchanged(case: Around) -> None:
    """Points that `contains` accepts are their own projections, up to rounding, and it accepts those that stay."""
    for x, near, scale in zip(case.points, case.projected, case.scale, strict=True):
        off, inside = float(np.linalg.norm(near - x)), case.domain.contains(x)
        if inside:
            demand(off <= 1e-6 * scale, f"{x} is in the set and projects {off:.3g} away", "Return members unchanged.")
        else:
            demand(off > 0.0, f"{x} is its own projection and not in the set", "Let contains allow for rounding.")


def projection_does_not_modify_its_argument(case: Around) -> None:
    """Projecting does not modify its argument."""
    for x in case.points:
        given = x.copy()
        case.domain.project(given)
        demand(np.array_equal(given, x), f"projecting changed its argument {x}", "Copy before you change.")


def radius_and_diameter_are_bounds(case: Around) -> str:
    """No member is longer than `radius_in`, and no two are farther apart than `diameter`.

    Gradients are bounded over the radius, and iterates by the diameter.
    """
    radius, diameter = case.domain.radius_in(case.dimension), case.domain.diameter(case.dimension)
    points = np.vstack([case.members, case.projected])
    longest = float(np.max(np.linalg.norm(points, axis=1)))
    farthest = max(float(np.max(np.linalg.norm(points - point, axis=1))) for point in points)
    demand(
        longest <= radius * (1.0 + 1e-9), f"a member has norm {longest:.6g}, radius_in says {radius:.6g}", "Raise it."
    )
    demand(
        farthest <= diameter * (1.0 + 1e-9),
        f"two members lie {farthest:.6g} apart, diameter says {diameter:.6g}",
        "Raise it.",
    )
    if math.isinf(radius):
        skip("the set states that it is unbounded")
    return f"members reach {longest / radius:.1%} of the radius"


CHECKS = (
    projections_are_members,
    projections_are_nearest,
    projection_is_nonexpansive,
    projection_leaves_members_unchanged,
    projection_does_not_modify_its_argument,
    radius_and_diameter_are_bounds,
)
