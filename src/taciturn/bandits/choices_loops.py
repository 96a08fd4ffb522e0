"""The best arm of each context by an upper confidence bound, and all arms of one context in order.

Slow twins: `taciturn.bandits.choices.UCB`, and `taciturn.bandits.ranking.ranked_by_definition`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import dot
from taciturn.kernel.jit import compiled


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


@compiled
def rank_arms(
    x: Any, theta: Any, factors: Any, width: float, normals: Any, quantiles: Any, below: Any, order: Any
) -> float:
    """Writes the arms in order, the chosen one first, and returns the probability of its choice.

    Chosen is the arm with the largest `x·theta + width·‖Fᵀx‖·normal`, the first of equals; the others follow by
    `x·theta`. Arm a has model a; `factors` has, for each, the rows of Fᵀ from their diagonals on. The probability is
    that of independent normal variables, by quantiles of the standard normal distribution, and by its distribution
    function `below` at equal steps from -8 to 8, between which it is interpolated; at least half of a quantile's share,
    the error of that rule; NaN without quantiles.
    """
    arms, d = theta.shape
    means, spreads = np.empty(arms), np.empty(arms)
    first, best = 0, -math.inf
    for a in range(arms):
        means[a] = dot(x, theta[a])
        squares, start = 0.0, 0
        for j in range(d):
            along = dot(factors[a, start : start + d - j], x[j:])
            squares += along * along
            start += d - j
        spreads[a] = width * math.sqrt(squares)
        score = means[a] + spreads[a] * normals[a]
        if score > best:
            first, best = a, score
    order[0], at = first, 1
    for a in np.argsort(-means, kind="mergesort"):
        if a != first:
            order[at] = a
            at += 1
    if len(quantiles) == 0:
        return math.nan
    total, last = 0.0, len(below) - 1
    step = last / 16.0
    for quantile in quantiles:
        score, product = means[first] + max(spreads[first], 1e-12) * quantile, 1.0
        for a in range(arms):
            if a == first:
                continue
            place = ((score - means[a]) / max(spreads[a], 1e-12) + 8.0) * step
            if place <= 0.0:
                product = 0.0
                break
            if place < last:
                cell = int(place)
                product *= below[cell] + (place - cell) * (below[cell + 1] - below[cell])
        total += product
    return max(total, 0.5) / len(quantiles)
