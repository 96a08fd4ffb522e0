"""Sums of the rows of each class, and the points that they decide. Slow twin: `taciturn.kernel.learners.class_sums`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.jit import compiled


@compiled
def sums(total: Any, parts: Any, classes: Any, largest: float, step: float, t: int, rounds: Any, rows: Any) -> None:
    """Writes what came up to and between these rounds to `rows`, and leaves what came after the last in `total`.

    Compressed rows take as long as they have entries; `total` and `rows` have the sums of one class after the other.
    """
    dense, starts, columns, entries = parts
    width, per_step, done = dense.shape[1], 1.0 / step, 0
    for i in range(len(classes)):
        first = classes[i] * width
        if classes[i] < 0:  # in no class
            pass
        elif len(starts) > 0:
            for at in range(starts[i], starts[i + 1]):
                total[first + columns[at]] += math.floor(min(max(entries[at], 0.0), largest) * per_step) * step
        else:
            for j in range(width):
                total[first + j] += math.floor(min(max(dense[i, j], 0.0), largest) * per_step) * step
        if done < len(rounds) and rounds[done] == t + i + 1:
            rows[done] = total
            total[:] = 0.0
            done += 1


@compiled
def points(noisy: Any, sds: Any, outputs: int, d: int, bound: float, clear: float, out: Any) -> None:
    """Writes the weights of all features and of the intercept for each row of noisy sums, before any projection."""
    width = out.shape[1] // outputs
    classes = noisy.shape[1] // width
    counts, shares = np.zeros(classes), np.empty(classes)
    for r in range(noisy.shape[0]):
        row, spread = noisy[r], clear * sds[r]
        everything = 0.0
        for k in range(classes):
            counts[k] = row[k * width + d] if width > d else 0.0
            shares[k] = max(counts[k], 0.0)
            everything += shares[k]
        for k in range(classes):
            shares[k] = shares[k] / everything if width > d and everything > spread else 1.0 / classes
        inside, outside = np.zeros(outputs), np.zeros(outputs)
        for j in range(d):
            total = 0.0
            for k in range(classes):
                total += row[k * width + j]
            size = max(total, 0.0) + (spread + bound)
            known = total >= spread * math.sqrt(classes / 2.0)
            for o in range(outputs):
                own = row[(classes - outputs + o) * width + j]
                weight = (own - shares[classes - outputs + o] * total) / size
                out[r, o * width + j] = weight
                if known:
                    inside[o] += weight * own
                    outside[o] += weight * (total - own)
        for o in range(outputs if width > d else 0):
            count = counts[classes - outputs + o]
            rest = counts.sum() - count
            middle = inside[o] / count + outside[o] / rest if min(count, rest) > spread else 0.0
            out[r, o * width + d] = -0.5 * middle
