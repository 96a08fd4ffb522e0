"""Follow the leader, release after release. Slow twin: `taciturn.learners.ftl.FTL`."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled.codes import Code
from taciturn.compiled.objective import model
from taciturn.compiled.optimize import minimise, model_minimiser


@compiled
def leaders(loss: Code, domain: Code, V: Any, y: Any, x: Any, rounds: Any, width: float, limits: Any) -> Any:
    """The leaders of the first examples, as many as each of these rounds says; x, the last leader, is changed.

    `limits` has a row for each: ridge, longest last step, counts, and degrees of smoothness (`minimise`).
    """
    rows, M, b = np.empty((len(rounds), len(x))), np.empty((0, 0)), np.empty(0)
    for k in range(len(rounds)):
        n, limit = rounds[k], limits[k]
        f = (loss, V[:n], y[:n], M, b, limit[0], width)
        minimise(f, limit[4:], domain, x, limit[1], limit[2], limit[3])
        rows[k] = x
    return rows


@compiled
def leaders_of_sums(
    loss: Code, domain: Code, M: Any, u: Any, t: int, V: Any, y: Any, first: Any, rounds: Any, limits: Any
) -> Any:
    """The same for squared loss, by the sums `M = Σ v vᵀ` and `u = Σ y v`, which are changed."""
    d, done = len(u), 0
    rows, H, b = np.empty((len(rounds), d)), np.empty((d, d)), np.empty(d)
    for i in range(len(y)):
        v = V[i]
        for j in range(d):
            for k in range(d):
                M[j, k] += v[j] * v[k]
            u[j] += y[i] * v[j]
        n = t + i + 1
        if done < len(rounds) and rounds[done] == n:
            limit = limits[done]
            f = (loss, V[:0], y[:0], M / n, u / n, limit[0], 0.0)
            model(f, first, H, b)
            model_minimiser(H, b, domain, first, rows[done])
            minimise(f, limit[4:], domain, rows[done], limit[1], limit[2], limit[3])
            done += 1
    return rows
