"""Convex sets by number, and projections on them. Slow twins: the classes of `tacit.problem.sets`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.kernels.codes import BALL, BOX
from tacit.kernels.compiling import compiled
from tacit.kernels.dots import dot, squared


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


@compiled
def project_all(kind: int, low: float, high: float, rows: Any) -> Any:
    """Every row's nearest point."""
    points = np.empty(rows.shape)
    for k in range(rows.shape[0]):
        project_row(kind, low, high, rows, k, points)
    return points


@compiled
def project_row(kind: int, low: float, high: float, rows: Any, k: int, points: Any) -> None:
    """Row k's nearest point, into row k."""
    d = rows.shape[1]
    if kind == BALL:
        length = squared(rows, k, d)
        if not length < math.inf:
            for j in range(d):  # not by one assignment, which takes seconds to compile
                points[k, j] = rows[k, j]
            project(kind, low, high, points[k])
            return
        scale = high / math.sqrt(length) if length > high * high else 1.0
        for j in range(d):
            points[k, j] = rows[k, j] * scale
    elif kind == BOX:
        for j in range(d):
            points[k, j] = min(max(rows[k, j], low), high)
    else:
        for j in range(d):
            points[k, j] = rows[k, j]
