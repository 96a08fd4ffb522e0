"""Slopes of losses of several scores. Slow twins: `slopes` of the classes in `taciturn.kernel.problem.multiclass`."""

from __future__ import annotations

import math
from typing import Any

from taciturn.kernel.jit import compiled
from taciturn.kernel.problem.codes import SOFTMAX, TIE


@compiled
def softmax(u: Any) -> None:
    """Probabilities in place of scores."""
    top, total = u.max(), 0.0
    for k in range(len(u)):
        u[k] = math.exp(u[k] - top)
        total += u[k]
    for k in range(len(u)):
        u[k] /= total


@compiled
def target(loss: int, k: int, y: float, count: int) -> float:
    """What is taken off score k, or its probability: 1 for the true class; with OneHot, the mean taken off.

    With OneHot a negative class is none, whose row of labels is 0.
    """
    if y < 0.0:
        return 0.0
    hit = 1.0 if k == y else 0.0
    return hit if loss == SOFTMAX else hit - 1.0 / count


@compiled
def multi_hinge(u: Any, y: float) -> None:
    """Slopes of MultiHinge in place of scores; of those that tie the first."""
    own, k = int(y), rival(u, y)
    top = u[k]
    close = TIE * (1.0 + abs(top))
    short = 1.0 + top - u[own]
    for j in range(k):
        if u[j] >= top - close and j != own:
            k = j
            break
    for j in range(len(u)):
        u[j] = 0.0
    if short > close:
        u[k], u[own] = 1.0, -1.0


@compiled
def rival(u: Any, y: float) -> int:
    """The wrong class with the largest score, of several the first."""
    best = 1 if y == 0.0 else 0
    for k in range(best + 1, len(u)):
        if u[k] > u[best] and k != y:
            best = k
    return best
