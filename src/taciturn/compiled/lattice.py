"""Rows to a lattice of integers and back. Slow twins: `encode` and `decode` of `OnLattice`."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.jit import compiled, inlined
from taciturn.compiled._simd import LANES, add_up, between, floor, numbers, put, take, zeros


@compiled
def kept(rows: Any, largest: Any) -> Any:
    """Rows with entries kept within what was certified for each; what is not a number becomes 0."""
    out = np.empty(rows.shape)
    for k in range(rows.shape[0]):
        most = largest[k]
        for j in range(rows.shape[1]):
            value = rows[k, j]
            if abs(value) <= most:
                out[k, j] = value
            elif value > most:
                out[k, j] = most
            elif value < -most:
                out[k, j] = -most
            else:
                out[k, j] = 0.0
    return out


@inlined
def hide(row: Any, step: float, largest: float, noise: Any, out: Any, k: int) -> float:
    """The nearest multiples of a step, of entries kept within `largest`, and row k of the noise in steps, into row k.

    Returns the square of the row's length in steps.
    """
    count, per_step, squared = out.shape[1], 1.0 / step, zeros()
    for j in range(0, count, LANES):
        left, at = count - j, k * count + j
        whole = floor(between(numbers(take(row, j, left)), -largest, largest) * per_step + 0.5) + take(noise, at, left)
        put(out, at, left, whole * step)
        squared = squared + whole * whole
    return add_up(squared)


@compiled
def hidden(rows: Any, step: Any, largest: float, noise: Any) -> Any:
    """The same for all rows, each with a step of its own."""
    out = np.empty(rows.shape)
    for k in range(rows.shape[0]):
        hide(rows[k], step[k], largest, noise, out, k)
    return out


@compiled
def to_lattice(rows: Any, step: Any) -> Any:
    """The nearest multiples of each row's step, a power of two."""
    out = np.empty(rows.shape, dtype=np.int64)
    for k in range(rows.shape[0]):
        per_step = 1.0 / step[k]
        for j in range(rows.shape[1]):
            out[k, j] = np.int64(np.floor(rows[k, j] * per_step + 0.5))
    return out


@compiled
def from_lattice(integers: Any, step: Any) -> Any:
    """Integers times each row's step."""
    out = np.empty(integers.shape)
    for k in range(integers.shape[0]):
        for j in range(integers.shape[1]):
            out[k, j] = integers[k, j] * step[k]
    return out
