"""LinUCB with a new model after every round, on given noise: for simulations.

Slow twin: `taciturn.bandits.simulate.simulate_every_round_by_definition`. Factors are those of
`taciturn.kernel.learners.qftl_loops`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import dot
from taciturn.kernel.jit import compiled
from taciturn.kernel.learners.qftl_loops import factor, solve


@compiled
def play(
    X: Any,
    means: Any,
    uniforms: Any,
    low: float,
    high: float,
    learnt: Any,
    noise: Any,
    shifts: Any,
    widths: Any,
    sums: Any,
    lost: Any,
) -> None:
    """Plays these rounds, adds what was played to `sums`, and writes what each round lost to `lost`.

    `sums` is the symmetric matrix of contexts, with the sum of rewards times contexts as its last row. `noise[i]` is in
    the sums before round i, in the same order as `taciturn.LinearBandit` has it with weight 1, and `shifts[i]` on the
    diagonal of the matrix. `learnt` are the numbers that are learnt for the two rewards. Where the noisy matrix has no
    Cholesky factor, the model of the round before is used.
    """
    n, arms, d = X.shape
    L, theta, v = np.eye(d), np.zeros(d), np.zeros(d)
    half, made = math.sqrt(0.5), np.eye(d)
    for i in range(n):
        place = 0
        for a in range(d):
            L[a, a] = sums[a, a] + noise[i, place] + shifts[i]
            for b in range(a + 1, d):
                L[b, a] = sums[b, a] + noise[i, place + b - a] * half
            place += d - a
        if factor(L):
            made[:] = L
            for a in range(d):
                theta[a] = sums[d, a] + noise[i, place + a]
            solve(made, theta)
        best, score, most = 0, -math.inf, -math.inf
        for k in range(arms):
            x, squares = X[i, k], 0.0
            for a in range(d):  # the squared length of L⁻¹x; the diagonal has inverses
                v[a] = (x[a] - dot(made[a, :a], v[:a])) * made[a, a]
                squares += v[a] * v[a]
            bound = dot(x, theta) + widths[i] * math.sqrt(squares)
            if bound > score:
                best, score = k, bound
            most = max(most, means[i, k])
        x = X[i, best]
        reward = learnt[1] if uniforms[i] * (high - low) < means[i, best] - low else learnt[0]
        for a in range(d):
            for b in range(a + 1):
                sums[a, b] += x[a] * x[b]
            sums[d, a] += reward * x[a]
        lost[i] = most - means[i, best]
