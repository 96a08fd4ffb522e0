"""Inner products: the one place where terms are added in any order."""

from __future__ import annotations

from typing import Any

from tacit.kernels.compiling import summing


@summing
def dot(a: Any, b: Any) -> float:
    """`a·b`."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@summing
def dots(v: Any, x: Any) -> tuple[float, float]:
    """`v·v` and `v·x`."""
    squared, along = 0.0, 0.0
    for j in range(len(v)):
        squared += v[j] * v[j]
        along += v[j] * x[j]
    return squared, along


@summing
def shrunk_and_moved(x: Any, shrink: float, ahead: float, v: Any, out: Any) -> float:
    """Writes `shrink·x + ahead·v`, and returns the square of its length."""
    squared = 0.0
    for j in range(len(v)):
        moved = shrink * x[j] + ahead * v[j]
        out[j] = moved
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
def after_step(anchor: Any, moved: float, v: Any) -> tuple[float, float]:
    """`w·v` and `w·w` for `w = anchor - moved·v`."""
    along, squared = 0.0, 0.0
    for j in range(len(v)):
        w = anchor[j] - moved * v[j]
        along += w * v[j]
        squared += w * w
    return along, squared


@summing
def after_step_in_box(anchor: Any, moved: float, v: Any, low: float, high: float) -> float:
    """`w·v` for `anchor - moved·v` cut to a box."""
    along = 0.0
    for j in range(len(v)):
        along += min(max(anchor[j] - moved * v[j], low), high) * v[j]
    return along


@summing
def steepness_in_box(anchor: Any, moved: float, v: Any, low: float, high: float) -> float:
    """How fast `w·v` falls as `moved` rises, w as above: the squares of v where nothing is cut."""
    squared = 0.0
    for j in range(len(v)):
        squared += v[j] * v[j] if low < anchor[j] - moved * v[j] < high else 0.0
    return squared
