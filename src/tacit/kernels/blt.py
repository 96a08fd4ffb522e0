"""Buffered linear Toeplitz strategies, many rows at once. Slow twin: `tacit.mechanisms.blt.BLTCoder`."""

from __future__ import annotations

from typing import Any

from tacit.kernels.compiling import compiled


@compiled
def encode(rows: Any, decays: Any, weights: Any, buffers: Any) -> Any:
    """`x_k + Σ om_i·s_i`, and then `s_i ← th_i·s_i + x_k`, for every row x_k; changes `buffers`."""
    encoded = rows.copy()
    for k in range(rows.shape[0]):
        move(rows[k], decays, weights, buffers, encoded[k])
    return encoded


@compiled
def decode(noisy: Any, decays: Any, weights: Any, buffers: Any, total: Any) -> Any:
    """The same with the inverse's decays and weights, added up; changes `buffers` and `total`."""
    sums = noisy.copy()
    for k in range(noisy.shape[0]):
        move(noisy[k], decays, weights, buffers, sums[k])
        for j in range(total.shape[0]):
            total[j] += sums[k, j]
            sums[k, j] = total[j]
    return sums


@compiled
def move(row: Any, decays: Any, weights: Any, buffers: Any, out: Any) -> None:
    """One step of a strategy: adds `Σ weights_i·buffers_i` to `out`, and moves the buffers on; four at a time."""
    size, count = row.shape[0], decays.shape[0]
    for i in range(0, count - count % 4, 4):
        _move_four(row, decays[i : i + 4], weights[i : i + 4], buffers[i : i + 4], out)
    for i in range(count - count % 4, count):
        decay, weight = decays[i], weights[i]
        for j in range(size):
            out[j] += weight * buffers[i, j]
            buffers[i, j] = decay * buffers[i, j] + row[j]


@compiled
def _move_four(row: Any, decays: Any, weights: Any, buffers: Any, out: Any) -> None:
    a, b, c, d = decays[0], decays[1], decays[2], decays[3]
    p, q, r, s = weights[0], weights[1], weights[2], weights[3]
    for j in range(row.shape[0]):
        x, u, v, w, z = row[j], buffers[0, j], buffers[1, j], buffers[2, j], buffers[3, j]
        out[j] += p * u + q * v + r * w + s * z
        buffers[0, j] = a * u + x
        buffers[1, j] = b * v + x
        buffers[2, j] = c * w + x
        buffers[3, j] = d * z + x
