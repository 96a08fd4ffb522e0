"""Finite nets of points: a grid over a convex set, validation of candidates, and their diameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.errors import InvalidInput, integer
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.sets import ConvexSet

_MOST_POINTS = 10**6
_FAR = 1e6  # radii from which to project, to find the bounding box
_COMPARED = 4096  # points up to which every pair is compared


def grid(domain: ConvexSet, size: int, per_axis: int) -> Array:
    """A net of any bounded convex set: a regular grid of its bounding box, projected on the set, without repetition.

    Every point of the set lies within half the diagonal of a cell of a point of the net. *Proof.* It lies that near
    to a node of the grid, and projecting on the set, which leaves it where it is, brings the two no farther apart. ∎
    (The box is found by projecting distant points, to a millionth of the set's diameter.)

    Parameters
    ----------
    domain : ConvexSet
        Of finite radius; it may be flat, like a simplex.
    size : int
        Entries of a point.
    per_axis : int
        Nodes along each axis, 2 or more.

    Examples
    --------
    >>> from taciturn import L2Ball, Simplex
    >>> grid(L2Ball(1.0), 1, per_axis=5).ravel()
    array([-1. , -0.5,  0. ,  0.5,  1. ])
    >>> grid(Simplex(), 2, per_axis=3)
    array([[0.5 , 0.5 ],
           [0.25, 0.75],
           [0.  , 1.  ],
           [0.75, 0.25],
           [1.  , 0.  ]])
    """
    size = integer("size", size)
    per_axis = integer("per_axis", per_axis, least=2)
    domain.check_dimension(size)
    radius = float(domain.radius_in(size))
    if not math.isfinite(radius):
        raise InvalidInput(
            f"no finite net covers {domain}. Bound it, e.g. L2Ball(1.0), or choose the candidates yourself."
        )
    if per_axis**size > _MOST_POINTS:
        raise InvalidInput(
            f"{per_axis} nodes along {size} axes make more than a million points. Take fewer, or choose the candidates "
            "yourself, e.g. along a few directions."
        )
    ends = _FAR * (radius or 1.0) * np.eye(size)
    axes = [np.linspace(domain.project(-end)[i], domain.project(end)[i], per_axis) for i, end in enumerate(ends)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, size)
    points = np.array([domain.project(node) for node in nodes]) + 0.0
    _, first = np.unique(np.round(points / (radius or 1.0), 9) + 0.0, axis=0, return_index=True)
    return points[np.sort(first)]


def candidates(points: Any, domain: ConvexSet, size: int) -> Array:
    """Validate candidates: an array of two or more points of the set, not all the same.

    >>> from taciturn import Simplex
    >>> candidates([[0, 1], [1, 0]], Simplex(), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    try:
        net = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        net = np.empty(0)
    if net.ndim != 2 or len(net) < 2 or net.shape[1] != size or not np.isfinite(net).all():
        raise InvalidInput(
            f"points must be two or more rows of {size} finite numbers (the intercept counts), got an array of shape "
            f"{np.shape(net)}. Make them by grid(domain, size, per_axis)."
        )
    outside = [j for j, x in enumerate(net) if not domain.contains(x)]
    if outside:
        raise InvalidInput(
            f"point {outside[0]} lies outside {domain}. Project the points on it, or leave that one out."
        )
    if (net == net[0]).all():
        raise InvalidInput("all points are the same, so there is nothing to choose. Give two or more that differ.")
    return net


def distance_bound(points: Array) -> float:
    """The largest distance of two points, rounded up; of more than 4,096 points, an upper bound.

    >>> round(distance_bound(np.array([[0.0, 3.0], [4.0, 0.0], [1.0, 1.0]])), 6)
    5.0
    """
    if len(points) <= _COMPARED:
        from scipy.spatial.distance import cdist  # here: it loads slowly, and few streams need it

        widest = max(float(np.max(cdist(points[i : i + 256], points))) for i in range(0, len(points), 256))
    else:
        low, high = np.min(points, axis=0), np.max(points, axis=0)
        around = 2.0 * float(np.max(np.linalg.norm(points - (low + high) / 2.0, axis=1)))
        widest = min(around, float(np.linalg.norm(high - low)))
    return widest * (1.0 + 1e-12)
