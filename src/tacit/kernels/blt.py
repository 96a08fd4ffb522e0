"""Buffered linear Toeplitz strategies, many rows at once. Slow twin: `tacit.mechanisms.blt.BLTCoder`."""

from __future__ import annotations

from typing import Any

from tacit.kernels.compiling import compiled

_ENTRIES = 256  # of a row that go through all buffers at once, so that they stay near the processor


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
    """One step of a strategy: adds `Σ weights_i·buffers_i` to `out`, and moves the buffers on."""
    size = row.shape[0]
    for first in range(0, size, _ENTRIES):
        last = min(first + _ENTRIES, size)
        for i in range(decays.shape[0]):
            decay, weight = decays[i], weights[i]
            for j in range(first, last):
                out[j] += weight * buffers[i, j]
                buffers[i, j] = decay * buffers[i, j] + row[j]
