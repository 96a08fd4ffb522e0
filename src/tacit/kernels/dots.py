"""Inner products: the one place where terms are added in any order.

Rows of a matrix are named by number where they can be: to cut one out may take longer than to add it up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.kernels.compiling import summing


@summing
def dot(a: Any, b: Any) -> float:
    """`a·b`."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@summing
def squared(V: Any, i: int, count: int) -> float:
    """`v·v` of the first entries of row i."""
    total = 0.0
    for j in range(count):
        total += V[i, j] * V[i, j]
    return total


@summing
def along(V: Any, i: int, x: Any, first: int) -> float:
    """`v·x` for row i and as many entries of `x` from the first on."""
    total = 0.0
    for j in range(V.shape[1]):
        total += V[i, j] * x[np.uint64(first) + np.uint64(j)]  # unsigned, lest it be tested for being negative
    return total


@summing
def dots(V: Any, i: int, x: Any) -> tuple[float, float]:
    """`v·v` and `v·x` for row i."""
    squared, along = 0.0, 0.0
    for j in range(len(x)):
        squared += V[i, j] * V[i, j]
        along += V[i, j] * x[j]
    return squared, along


@summing
def dots_at(columns: Any, v: Any, x: Any, first: int) -> tuple[float, float]:
    """The same for a vector v that is 0 but in these columns, and entries of `x` from the first on."""
    squared, along = 0.0, 0.0
    for p in range(len(columns)):
        squared += v[p] * v[p]
        along += v[p] * x[np.uint64(first) + np.uint64(columns[p])]
    return squared, along


@summing
def shrink_and_move(x: Any, shrink: float, ahead: float, V: Any, i: int) -> float:
    """Makes x `shrink·x + ahead·v` for row i, and returns the square of its length."""
    squared = 0.0
    for j in range(len(x)):
        moved = shrink * x[j] + ahead * V[i, j]
        x[j] = moved
        squared += moved * moved
    return squared


@summing
def dot_of_rows(L: Any, a: int, b: int, count: int) -> float:
    """That of the first entries of two rows."""
    total = 0.0
    for j in range(count):
        total += L[a, j] * L[b, j]
    return total


@summing
def after_step(anchor: Any, moved: float, V: Any, i: int) -> tuple[float, float]:
    """`w·v` and `w·w` for `w = anchor - moved·v` and row i."""
    along, squared = 0.0, 0.0
    for j in range(len(anchor)):
        w = anchor[j] - moved * V[i, j]
        along += w * V[i, j]
        squared += w * w
    return along, squared


@summing
def after_step_in_box(anchor: Any, moved: float, v: Any, low: float, high: float) -> float:
    """`w·v` for `anchor - moved·v` cut to a box."""
    along = 0.0
    for j in range(len(anchor)):
        along += min(max(anchor[j] - moved * v[j], low), high) * v[j]
    return along


@summing
def steepness_in_box(anchor: Any, moved: float, v: Any, low: float, high: float) -> float:
    """How fast `w·v` falls as `moved` rises, w as above: the squares of v where nothing is cut."""
    squared = 0.0
    for j in range(len(v)):
        squared += v[j] * v[j] if low < anchor[j] - moved * v[j] < high else 0.0
    return squared
