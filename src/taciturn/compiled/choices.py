"""The best arm of each context by an upper confidence bound. Slow twin: `taciturn.bandits.choices.UCB`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled._dot import dot


@compiled
def best_bounds(X: Any, theta: Any, factors: Any, width: float, longest: Any, actions: Any) -> None:
    """Writes the arm with the largest `x·theta + width·‖Fᵀx‖` for each decision, the first of equals.

    X has a decision in each row of its first axis, and the arms' contexts in the second; if that has length 1, all arms
    have the same context. Arm a has model a, or the only one. `factors` are lower triangular, transposed: row j of one
    has the entries of its column j from j on. `longest` bounds the length that a factor gives a context of length 1, so
    that arms which cannot win are passed over.
    """
    n, contexts, d = X.shape
    models = theta.shape[0]
    arms = max(contexts, models)
    means, lengths = np.empty(arms), np.empty(arms)
    for i in range(n):
        likely = 0
        for a in range(arms):
            x, model = X[i, a if contexts > 1 else 0], a if models > 1 else 0
            means[a] = dot(x, theta[model])
            lengths[a] = width * longest[model] * math.sqrt(dot(x, x))
            if means[a] > means[likely]:
                likely = a
        best, score = likely, -math.inf
        for step in range(-1, arms):
            a = likely if step < 0 else step
            if step == likely or means[a] + lengths[a] < score:
                continue
            x, F = X[i, a if contexts > 1 else 0], factors[a if models > 1 else 0]
            squares = 0.0
            for j in range(d):
                along = dot(F[j, j:], x[j:])
                squares += along * along
            bound = means[a] + width * math.sqrt(squares)
            if bound > score or (bound == score and a < best):
                best, score = a, bound
        actions[i] = best
