"""Cumulative losses of a finite net of candidates, in integer steps. Slow twin: `absorb` of `learners.ewoo.EWOO`.

Predictions of all candidates are added up feature by feature, in the same order however a stream is cut. The
definition may add in another order: a loss may differ in its last bits, and the step it is rounded to by one, about
once in `g/e` losses (g the step, e the bound on a loss's error: once in a million and rarer).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled.codes import ADVICE, MULTI_HINGE, ONE_HOT, SOFTMAX, Code
from taciturn.compiled.losses import value
from taciturn.compiled.multiclass import rival, target


@compiled
def totals(
    loss: Code, net: Any, outputs: int, V: Any, y: Any, t: int, rounds: Any, step: float, most: float, total: Any
) -> Any:
    """Losses of all examples up to these rounds, a row each; changes `total` to those of all examples.

    A column of `net` is a candidate, its scores' weights one below the other; a net without rows is that of the unit
    vectors.
    """
    count = len(total)
    rows, done, U = np.empty((len(rounds), count), dtype=np.int64), 0, np.empty((outputs, count))
    for i in range(len(y)):
        _predictions(loss, net, V[i], U)
        least = _losses(loss, U, y[i])
        for c in range(count):
            total[c] += np.int64(min(np.rint((U[0, c] - least) / step), most))
        if done < len(rounds) and rounds[done] == t + i + 1:
            rows[done] = total
            done += 1
    return rows


@compiled
def _predictions(loss: Code, net: Any, v: Any, U: Any) -> None:
    """Every candidate's scores on an example; experts' losses are clipped to their bounds."""
    d, advice = len(v), loss[0] == ADVICE
    if len(net) == 0:
        for c in range(d):
            U[0, c] = min(max(v[c], 0.0), loss[1]) if advice else v[c]
        return
    for k in range(len(U)):
        u = U[k]
        u[:] = 0.0
        for j in range(d):
            entry, weights = min(max(v[j], 0.0), loss[1]) if advice else v[j], net[k * d + j]
            for c in range(len(u)):
                u[c] += entry * weights[c]


@compiled
def _losses(loss: Code, U: Any, y: float) -> float:
    """Losses in place of the first scores; returns the least of them."""
    least = math.inf
    for c in range(U.shape[1]):
        if loss[0] == SOFTMAX:
            U[0, c] = _softmax(U[:, c], y)
        elif loss[0] == ONE_HOT:
            U[0, c] = _one_hot(U[:, c], y)
        elif loss[0] == MULTI_HINGE:
            U[0, c] = _multi_hinge(U[:, c], y)
        elif loss[0] != ADVICE:
            U[0, c] = value(loss[0], loss[1], U[0, c], y)
        least = min(least, U[0, c])
    return least


@compiled
def _softmax(u: Any, y: float) -> float:
    top, chances = u[0], 0.0
    for k in range(1, len(u)):
        top = max(top, u[k])
    for k in range(len(u)):
        chances += math.exp(u[k] - top)
    return math.log(chances) + top - u[int(y)]


@compiled
def _one_hot(u: Any, y: float) -> float:
    squared = 0.0
    for k in range(len(u)):
        squared += (u[k] - target(ONE_HOT, k, y, len(u))) ** 2
    return 0.5 * squared


@compiled
def _multi_hinge(u: Any, y: float) -> float:
    return max(0.0, 1.0 + u[rival(u, y)] - u[int(y)])
