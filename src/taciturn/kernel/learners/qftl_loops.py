"""Sums of `v vᵀ` and `y v`, and the points that they decide. Slow twin: `taciturn.kernel.learners.qftl.QFTL`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import dot, dot_of_rows
from taciturn.kernel.jit import compiled
from taciturn.kernel.problem.codes import Code
from taciturn.kernel.problem.sets_loops import project


@compiled
def to_integers(V: Any, per_unit: float, out: Any) -> None:
    """Writes rows times `per_unit`, cut towards zero, to the start of the rows of `out`. Slow twin: `in_units`."""
    for i in range(V.shape[0]):
        for j in range(V.shape[1]):
            out[i, j] = np.trunc(V[i, j] * per_unit)


@compiled
def sums(V: Any, Y: Any, t: int, rounds: Any) -> tuple[Any, Any]:
    """What came up to and between these rounds, a row each, and what came after the last.

    A row is the upper triangle of the sum of `v vᵀ`, by rows, and then, for each column of labels, that of `y v`.
    """
    n, d = V.shape
    total = np.zeros(d * (d + 1) // 2 + d * Y.shape[1])
    rows, done = np.empty((len(rounds), len(total))), 0
    for i in range(n):
        v, place = V[i], 0
        for a in range(d):
            scale = v[a]
            for b in range(a, d):
                total[place + b - a] += scale * v[b]
            place += d - a
        for column in range(Y.shape[1]):
            scale = Y[i, column]
            for b in range(d):
                total[place + b] += scale * v[b]
            place += d
        if done < len(rounds) and rounds[done] == t + i + 1:
            rows[done] = total
            total[:] = 0.0
            done += 1
    return rows, total


@compiled
def points(noisy: Any, d: int, weight: float, ridges: Any, domain: Code) -> tuple[Any, Any]:
    """`Proj((V + ridge·I)⁻¹u)` for each noisy row, by Cholesky; and whether that was possible.

    A row is svec of the matrix V, and then the right hand sides u, times the weight.
    """
    count, outputs = noisy.shape[0], (noisy.shape[1] - d * (d + 1) // 2) // d
    out, solved, L = np.zeros((count, outputs * d)), np.ones(count, dtype=np.bool_), np.empty((d, d))
    for k in range(count):
        _unpack(noisy[k], ridges[k], L)
        solved[k] = factor(L)
        if solved[k]:
            for column in range(outputs):
                x = out[k, column * d : (column + 1) * d]
                first = d * (d + 1) // 2 + column * d
                for j in range(d):
                    x[j] = noisy[k, first + j] / weight
                solve(L, x)
            project(domain[0], domain[1], domain[2], out[k])
    return out, solved


@compiled
def _unpack(row: Any, ridge: float, L: Any) -> None:
    """The lower triangle of `V + ridge·I`."""
    d, place, half = L.shape[0], 0, math.sqrt(0.5)
    for a in range(d):
        L[a, a] = row[place] + ridge
        for b in range(a + 1, d):
            L[b, a] = row[place + b - a] * half
        place += d - a


@compiled
def factor(L: Any) -> bool:
    """Cholesky's factor in place of a lower triangle; False if it has none."""
    for a in range(L.shape[0]):
        for b in range(a):
            L[a, b] = (L[a, b] - dot_of_rows(L, a, b, b)) * L[b, b]
        pivot = L[a, a] - dot_of_rows(L, a, a, a)
        if not pivot > 0.0:
            return False
        L[a, a] = 1.0 / math.sqrt(pivot)  # the diagonal holds inverses: divisions are slow
    return True


@compiled
def solve(L: Any, x: Any) -> None:
    """`(L Lᵀ)⁻¹x` in place of x."""
    d = L.shape[0]
    for a in range(d):
        x[a] = (x[a] - dot(L[a, :a], x[:a])) * L[a, a]
    for a in range(d - 1, -1, -1):
        x[a] *= L[a, a]
        for j in range(a):
            x[j] -= L[a, j] * x[a]
