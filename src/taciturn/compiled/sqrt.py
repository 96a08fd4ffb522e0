"""The square root of the matrix of ones, a batch of rows at a time, and private FTRL through it.

Slow twins: `taciturn.mechanisms.sqrt.RootCoder` and `taciturn.learners.ftrl.FTRL`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled.codes import Leader
from taciturn.compiled.ftrl import add_curvature, add_gradient, decide


@compiled
def apply_batch(coefficients: Any, rows: Any, k: int) -> Any:
    """Rows k, k + 1, … of the matrix times all rows so far."""
    out = np.empty((len(rows) - k + 1, rows.shape[1]))
    for i in range(len(out)):
        apply(coefficients, rows, k + i, out[i])
    return out


@compiled
def apply(coefficients: Any, rows: Any, k: int, out: Any) -> None:
    """Writes `Σ_{j≤k} f_{k-j}·x_j`."""
    out[:] = 0.0
    for j in range(k):
        weight = coefficients[k - 1 - j]
        for i in range(len(out)):
            out[i] += weight * rows[j, i]


@compiled
def through_root(
    learner: Leader,
    point: Any,
    total: Any,
    t: int,
    V: Any,
    y: Any,
    rounds: Any,
    strides: Any,
    noisy: Any,
    points: Any,
    noise: Any,
    steps: Any,
    largest: Any,
    coefficients: Any,
    exact: Any,
    noisy_rows: Any,
    k: int,
) -> int:
    """Writes noisy sums and points of these rounds, from release k on, and the rows themselves into the memories."""
    loss, domain, steepest, most, lattice, curvature = learner
    done, since, scores, encoded = 0, 0, np.empty(len(point) // V[0].shape[1]), np.empty(len(point))
    for i in range(len(y)):
        add_gradient(loss, steepest, most, lattice, point, V, i, y[i], scores, total)
        if done < len(rounds) and rounds[done] == t + i + 1:
            add_curvature(curvature, most, lattice, point, i + 1 - since, total)
            since = i + 1
            release, step = k + done, steps[done]
            for j in range(len(point)):
                exact[release - 1, j] = min(max(total[j], -largest[done]), largest[done])
                total[j] = 0.0
            apply(coefficients, exact, release, encoded)
            for j in range(len(point)):
                noisy_rows[release - 1, j] = (math.floor(encoded[j] / step + 0.5) + noise[done, j]) * step
            apply(coefficients, noisy_rows, release, noisy[done])
            decide(domain, noisy, done, strides[done], point, points)
            done += 1
    return done
