"""Convex sets by number, and projections on them. Slow twins: the classes of `taciturn.kernel.problem.sets`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import dot, squared
from taciturn.kernel.jit import compiled, inlined
from taciturn.kernel.lanes import LANES, between, put, take
from taciturn.kernel.problem.codes import BALL, BOX


@compiled
def project(kind: int, low: float, high: float, x: Any) -> None:
    """Moves `x` to the nearest point of the set; `high` is the radius of a ball."""
    if kind == BALL:
        length = dot(x, x)
        if not length < math.inf:  # the square of the norm has overflowed
            largest = 0.0
            for j in range(x.shape[0]):
                largest = max(largest, abs(x[j]))
            for j in range(x.shape[0]):
                x[j] = x[j] / largest * high
            length = dot(x, x)
        if length > high * high:
            scale = high / math.sqrt(length)
            for j in range(x.shape[0]):
                x[j] *= scale
    elif kind == BOX:
        for j in range(x.shape[0]):
            x[j] = min(max(x[j], low), high)


@inlined
def nearest(kind: int, low: float, high: float, unit: float, squared: float) -> tuple[float, float, float]:
    """`(scale, least, most)`: the point next to x is `scale·x` clipped to [least, most]; `squared` is `‖x/unit‖²`."""
    scale, least, most = 1.0, -math.inf, math.inf
    if kind == BALL and squared > (high / unit) ** 2:
        scale = high / unit / math.sqrt(squared)
    if kind == BOX:
        least, most = low, high
    return scale, least, most


@compiled
def project_batch(kind: int, low: float, high: float, rows: Any) -> Any:
    """Every row's nearest point."""
    points = np.empty(rows.shape)
    for k in range(rows.shape[0]):
        square = squared(rows, k, rows.shape[1]) if kind == BALL else 0.0
        if square < math.inf:
            project_row(kind, low, high, rows, k, 1.0, square, points)
        else:
            for j in range(rows.shape[1]):  # not by one assignment, which takes seconds to compile
                points[k, j] = rows[k, j]
            project(kind, low, high, points[k])
    return points


@inlined
def project_row(
    kind: int, low: float, high: float, rows: Any, k: int, unit: float, squared: float, points: Any
) -> None:
    """Row k's nearest point, into row k.

    `squared` is the square of its length in units, for a ball, and finite: in steps of a lattice it cannot overflow.
    """
    d = rows.shape[1]
    scale, least, most = nearest(kind, low, high, unit, squared)
    for j in range(0, d, LANES):
        put(points, k * d + j, d - j, between(take(rows, k * d + j, d - j) * scale, least, most))
