"""Inner products and fused vector updates. Terms are added in any order here and in `lanes.add_up` alone.

Rows of a matrix are given by number where they can be: slicing one may take longer than adding it up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled, inlined, summing
from taciturn.kernel.lanes import LANES, add_up, put, take, zeros


@summing
def dot(a: Any, b: Any) -> float:
    """`a·b`."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled
def padded(x: Any) -> Any:
    """A copy padded with zeros, so that only full SIMD vectors are written to it.

    A load that follows a full vector store is forwarded at once; after a partial store it waits.
    """
    out = np.zeros(len(x) + LANES)
    for j in range(len(x)):
        out[j] = x[j]
    return out


@inlined
def squared(V: Any, i: int, count: int) -> float:
    """`v·v` of the first entries of row i."""
    first, total = i * V.shape[1], zeros()
    for j in range(0, count, LANES):
        v = take(V, first + j, count - j)
        total = total + v * v
    return add_up(total)


@inlined
def copied(X: Any, i: int, V: Any) -> float:
    """`v·v` of row i, which is written into that of V, from its start on."""
    count, total = X.shape[1], zeros()
    for j in range(0, count, LANES):
        v = take(X, i * X.shape[1] + j, count - j)
        put(V, i * V.shape[1] + j, count - j, v)
        total = total + v * v
    return add_up(total)


@inlined
def along(V: Any, i: int, x: Any, first: int) -> float:
    """`v·x` for row i and as many entries of `x` from the first on."""
    count, total = V.shape[1], zeros()
    for j in range(0, count, LANES):
        total = total + take(V, i * V.shape[1] + j, count - j) * take(x, first + j, count - j)
    return add_up(total)


@inlined
def dots(V: Any, i: int, x: Any) -> tuple[float, float]:
    """`v·v` and `v·x` for row i; x is padded."""
    count, squared, along = V.shape[1], zeros(), zeros()
    for j in range(0, count, LANES):
        v = take(V, i * count + j, count - j)
        squared, along = squared + v * v, along + v * take(x, j, LANES)
    return add_up(squared), add_up(along)


@summing
def dots_at(columns: Any, v: Any, x: Any, first: int) -> tuple[float, float]:
    """`v·v` and `v·x` for a vector v that is 0 but in these columns, and entries of `x` from the first on."""
    squared, along = 0.0, 0.0
    for p in range(len(columns)):
        squared += v[p] * v[p]
        along += v[p] * x[np.uint64(first) + np.uint64(columns[p])]
    return squared, along


@inlined
def shrink_and_move(x: Any, shrink: float, move: float, V: Any, i: int) -> float:
    """Makes x, which is padded, `shrink·x + move·v` for row i, and returns the square of its length."""
    count, squared = V.shape[1], zeros()
    for j in range(0, count, LANES):
        moved = take(x, j, LANES) * shrink + take(V, i * count + j, count - j) * move
        put(x, j, LANES, moved)
        squared = squared + moved * moved
    return add_up(squared)


@summing
def dot_of_rows(L: Any, a: int, b: int, count: int) -> float:
    """The inner product of the first entries of two rows."""
    total = 0.0
    for j in range(count):
        total += L[a, j] * L[b, j]
    return total


@inlined
def after_step(anchor: Any, moved: float, V: Any, i: int) -> tuple[float, float]:
    """`w·v` and `w·w` for `w = anchor - moved·v` and row i."""
    count, along, squared = len(anchor), zeros(), zeros()
    for j in range(0, count, LANES):
        v = take(V, i * V.shape[1] + j, count - j)
        w = take(anchor, j, count - j) + v * -moved
        along, squared = along + w * v, squared + w * w
    return add_up(along), add_up(squared)


@summing
def after_step_in_box(anchor: Any, moved: float, v: Any, low: float, high: float) -> float:
    """`w·v` for `anchor - moved·v` clipped to a box."""
    along = 0.0
    for j in range(len(anchor)):
        along += min(max(anchor[j] - moved * v[j], low), high) * v[j]
    return along
