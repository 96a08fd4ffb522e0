"""Clipping, rounding to a lattice, and noise, for a batch of rows. Slow twins: `encode` and `decode` of `OnLattice`."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled, inlined
from taciturn.kernel.lanes import LANES, add_up, between, floor, numbers, put, take, zeros


@compiled
def clipped(rows: Any, largest: Any) -> Any:
    """Rows with entries clipped to the certified magnitude of each row; what is not a number becomes 0."""
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
def add_noise(row: Any, step: float, largest: float, noise: Any, out: Any, k: int) -> float:
    """Writes a noisy row into row k: entries clipped to `largest`, in multiples of a step, plus row k of the noise.

    Returns the square of the noisy row's length in steps.
    """
    count, per_step, squared = out.shape[1], 1.0 / step, zeros()
    for j in range(0, count, LANES):
        left, at = count - j, k * count + j
        noisy = floor(between(numbers(take(row, j, left)), -largest, largest) * per_step + 0.5) + take(noise, at, left)
        put(out, at, left, noisy * step)
        squared = squared + noisy * noisy
    return add_up(squared)


@compiled
def add_noise_batch(rows: Any, step: Any, largest: float, noise: Any) -> Any:
    """The same for a batch of rows, each with its own step."""
    out = np.empty(rows.shape)
    for k in range(rows.shape[0]):
        add_noise(rows[k], step[k], largest, noise, out, k)
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
