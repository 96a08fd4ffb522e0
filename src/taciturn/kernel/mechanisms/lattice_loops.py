"""Clipping, rounding to a lattice, and noise, for a batch of rows. Slow twins: `encode` and `decode` of `OnLattice`."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled, inlined
from taciturn.kernel.lanes import LANES, add_up, between, floor, numbers, put, take, zeros


@inlined
def noisy_steps(encoded: Any, per_step: float, noise: Any, at: int, left: int) -> Any:
    """Entries in steps of their lattice, plus the noise from place `at` on: where compiled code adds noise."""
    return floor(encoded * per_step + 0.5) + take(noise, at, left)


@inlined
def add_noise(row: Any, step: float, largest: float, noise: Any, out: Any, k: int) -> float:
    """Writes a noisy row into row k: entries clipped to `largest`, in multiples of a step, plus row k of the noise.

    Returns the square of the noisy row's length in steps.
    """
    count, per_step, squared = out.shape[1], 1.0 / step, zeros()
    for j in range(0, count, LANES):
        left, at = count - j, k * count + j
        noisy = noisy_steps(between(numbers(take(row, j, left)), -largest, largest), per_step, noise, at, left)
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
