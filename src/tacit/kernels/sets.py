"""Convex sets by number, and projections on them. Slow twins: the classes of `tacit.problem.sets`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.kernels.codes import BALL, BOX
from tacit.kernels.compiling import compiled
from tacit.kernels.dots import dot


@compiled
def project(kind: int, low: float, high: float, x: Any) -> None:
    """Moves `x` to the nearest point of the set; `high` is the radius of a ball."""
    if kind == BALL:
        squared = dot(x, x)
        if not squared < math.inf:  # the square of the norm has overflowed
            largest = np.max(np.abs(x))
            for j in range(x.shape[0]):
                x[j] = x[j] / largest * high
            squared = dot(x, x)
        if squared > high * high:
            scale = high / math.sqrt(squared)
            for j in range(x.shape[0]):
                x[j] *= scale
    elif kind == BOX:
        for j in range(x.shape[0]):
            x[j] = min(max(x[j], low), high)


@compiled
def project_all(kind: int, low: float, high: float, rows: Any) -> Any:
    """Every row's nearest point."""
    points = rows.copy()
    for k in range(points.shape[0]):
        project(kind, low, high, points[k])
    return points
