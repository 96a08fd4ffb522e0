"""Binary trees of partial sums, a batch of rows at a time. Slow twin: `taciturn.kernel.mechanisms.tree.TreeCoder`."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled


@compiled
def encode(rows: Any, k: int, waiting: Any) -> Any:
    """Each row, and the nodes that it completes, one below the other; changes `waiting`. Row k is the first."""
    total = 0
    for i in range(rows.shape[0]):
        total += _height(k + i) + 1
    out = np.empty((total, rows.shape[1]), dtype=rows.dtype)
    place = 0
    for i in range(rows.shape[0]):
        height = _height(k + i)
        out[place] = rows[i]
        for h in range(height):
            out[place + h + 1] = waiting[h] + out[place + h]
        waiting[height] = out[place + height]
        place += height + 1
    return out


@compiled
def decode(noisy: Any, k: int, count: int, nodes: Any, weights: Any) -> Any:
    """The sums of the nodes that each k has a 1-bit for, refined on the way up; changes `nodes`.

    `weights[h]` is that of the children's sum in a node of height h: 0 where nothing is refined.
    """
    levels, size = nodes.shape
    sums = np.zeros((count, size))
    place = 0
    for i in range(count):
        height = _height(k + i)
        best = noisy[place].copy()
        for h in range(1, height + 1):
            for j in range(size):
                here = noisy[place + h, j]
                best[j] = here + (nodes[h - 1, j] + best[j] - here) * weights[h]
        nodes[height] = best
        for h in range(levels):
            if (k + i) >> h & 1:
                for j in range(size):
                    sums[i, j] += nodes[h, j]
        place += height + 1
    return sums


@compiled
def _height(k: int) -> int:
    """How often 2 divides k."""
    height = 0
    while k & 1 == 0:
        k >>= 1
        height += 1
    return height
