"""Buffered linear Toeplitz strategies, a batch of rows at a time.

Slow twin: `taciturn.kernel.mechanisms.blt.BLTCoder`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled, inlined
from taciturn.kernel.lanes import LANES, between, numbers, put, take, zeros
from taciturn.kernel.mechanisms.lattice_loops import noisy_steps


@compiled
def noisy_sums(
    rows: Any, largest: Any, steps: Any, noise: Any, encoder: Any, decoder: Any, total: Any, decay: float
) -> Any:
    """Noisy prefix sums: clipping, encoding, rounding, noise and decoding in one loop, which writes nothing but sums.

    `encoder` and `decoder` are decays, weights and buffers; changes both buffers and `total`. `decay` is that of sums.
    """
    sums, size = np.empty(rows.shape), rows.shape[1]
    for k in range(rows.shape[0]):
        most, step, per_step = largest[k], steps[k], 1.0 / steps[k]
        for j in range(0, size, LANES):
            left, at = size - j, k * size + j
            row = between(numbers(take(rows, at, left)), -most, most)
            encoded = numbers(row + remembered(encoder, row, j))
            noisy = noisy_steps(encoded, per_step, noise, at, left) * step
            added = take(total, j, left) * decay + noisy + remembered(decoder, noisy, j)
            put(total, j, left, added)
            put(sums, at, left, added)
    return sums


@compiled
def squared_errors(before: float, constant: float, weights: Any, decays: Any, powers: Any, count: int) -> Any:
    """`before + Σ b_l²` for one to `count` more terms `b_l = constant + Σ weights_i·powers_i`; changes `powers`."""
    out, total = np.empty(count), before
    for k in range(count):
        term = constant
        for i in range(len(powers)):
            term += weights[i] * powers[i]
            powers[i] *= decays[i]
        total += term * term
        out[k] = total
    return out


@inlined
def remembered(strategy: Any, row: Any, j: int) -> Any:
    """One step of a strategy, at a place of a row: `Σ weights_i·buffers_i`; then moves the buffers on."""
    decays, weights, buffers = strategy
    size, out = buffers.shape[1], zeros()
    for i in range(len(decays)):
        old = take(buffers, i * size + j, size - j)
        out = out + old * weights[i]
        put(buffers, i * size + j, size - j, old * decays[i] + row)
    return out
