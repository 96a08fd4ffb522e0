"""Buffered linear Toeplitz strategies, many rows at once. Slow twin: `tacit.mechanisms.blt.BLTCoder`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.kernels.compiling import compiled


@compiled
def encode(rows: Any, decays: Any, weights: Any, buffers: Any) -> Any:
    """`x_k + Σ om_i·s_i`, and then `s_i ← th_i·s_i + x_k`, for every row x_k; changes `buffers`."""
    encoded, size = np.empty(rows.shape), rows.shape[1]
    row, out = np.empty(size), np.empty(size)
    for k in range(rows.shape[0]):
        for j in range(size):
            row[j] = rows[k, j]
            out[j] = row[j]
        move(row, decays, weights, buffers, out)
        for j in range(size):
            encoded[k, j] = out[j]
    return encoded


@compiled
def decode(noisy: Any, decays: Any, weights: Any, buffers: Any, total: Any) -> Any:
    """The same with the inverse's decays and weights, added up; changes `buffers` and `total`."""
    sums, size = np.empty(noisy.shape), noisy.shape[1]
    row = np.empty(size)
    for k in range(noisy.shape[0]):
        for j in range(size):
            row[j] = noisy[k, j]
            total[j] += row[j]
        move(row, decays, weights, buffers, total)
        for j in range(size):
            sums[k, j] = total[j]
    return sums


@compiled
def hide(rows: Any, largest: Any, steps: Any, noise: Any, encoder: Any, decoder: Any, total: Any) -> Any:
    """`lattice.kept`, `encode`, `lattice.hidden` and `decode`, one row after the other: no more is written than sums.

    `encoder` and `decoder` are decays, weights and buffers; changes both buffers and `total`.
    """
    sums, size = np.empty(rows.shape), rows.shape[1]
    row, hidden = np.empty(size), np.empty(size)
    for k in range(rows.shape[0]):
        most, step, per_step = largest[k], steps[k], 1.0 / steps[k]
        for j in range(size):
            value = rows[k, j] if rows[k, j] == rows[k, j] else 0.0
            row[j] = min(max(value, -most), most)
            hidden[j] = row[j]
        move(row, encoder[0], encoder[1], encoder[2], hidden)
        for j in range(size):
            value = hidden[j] if hidden[j] == hidden[j] else 0.0
            hidden[j] = (math.floor(value * per_step + 0.5) + noise[k, j]) * step
            total[j] += hidden[j]
        move(hidden, decoder[0], decoder[1], decoder[2], total)
        for j in range(size):
            sums[k, j] = total[j]
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


@compiled
def move(row: Any, decays: Any, weights: Any, buffers: Any, out: Any) -> None:
    """One step of a strategy: adds `Σ weights_i·buffers_i` to `out`, and moves the buffers on; four at a time."""
    size, count = row.shape[0], decays.shape[0]
    for i in range(0, count - count % 4, 4):
        a, b, c, d = decays[i], decays[i + 1], decays[i + 2], decays[i + 3]
        p, q, r, s = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(size):
            x, u, v, w, z = row[j], buffers[i, j], buffers[i + 1, j], buffers[i + 2, j], buffers[i + 3, j]
            out[j] += p * u + q * v + r * w + s * z
            buffers[i, j] = a * u + x
            buffers[i + 1, j] = b * v + x
            buffers[i + 2, j] = c * w + x
            buffers[i + 3, j] = d * z + x
    for i in range(count - count % 4, count):
        decay, weight = decays[i], weights[i]
        for j in range(size):
            out[j] += weight * buffers[i, j]
            buffers[i, j] = decay * buffers[i, j] + row[j]
