"""Slopes of losses of several scores: at a point, and where an implicit step ends.

Slow twins: `slopes` of the classes in `taciturn.problem.multiclass`, and `taciturn.learners.implicit_step`, whose
docstring has the equations. There two scalar equations are nested; here Newton's method takes all unknowns at once, and
the nested equations are solved by halving brackets only if that should fail.

*Newton's method for Softmax.* Unknowns are `q_k = ln p_k` and m; with `F_k = q_k - g_k(p_k - [k = y]) + m` and
`w_k = p_k/(1 + T_k·p_k)`, T_k the steepness of `-g_k`, a step is

    dm = (Σ p_k - 1 - Σ w_k·F_k)/Σ w_k,        dq_k = -(F_k + dm)/(1 + T_k·p_k).

Where g_k is straight, a step of at most h leaves `|F_k| ≤ T_k·p_k·h²` and Σ p_k within h² of 1: it is the last if h is
below 2⁻²⁸.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled._dot import after_step_in_box, dot, steepness_in_box
from taciturn.compiled.codes import BOX, SOFTMAX, TIE, Code

_NEAR = 2.0**-28
_NEWTON_STEPS = 50
_HALVINGS = 80


@compiled
def slopes(loss: int, x: Any, v: Any, y: float, out: Any) -> None:
    """The slope in each score of the point x, whose rows stand one after the other."""
    d, count = len(v), len(out)
    for k in range(count):
        out[k] = dot(x[k * d : (k + 1) * d], v)
    if loss == SOFTMAX:
        softmax(out)
    for k in range(count):
        out[k] -= target(loss, k, y, count)


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


@compiled
def implicit_slopes(
    loss: int, domain: Code, A: Any, v: Any, y: float, pull: float, a: Any, tau: float, c: float, s: Any, q: Any
) -> None:
    """Solves `s = slope(g(s))` for the scores g of a step from the rows of A, given `a = A v` and `tau = pull·v·v`.

    In a box they are those of the step cut to it; else those of the step divided by c. `q` holds a guess of the
    logarithms of probabilities and is changed to them.
    """
    count = len(s)
    if loss == SOFTMAX:
        if not _newton(domain, A, v, y, pull, a, tau, c, q):
            _nested(domain, A, v, y, pull, a, tau, c, q)
        top, total = q.max(), 0.0
        for k in range(count):
            s[k] = math.exp(q[k] - top)
            total += s[k]
        for k in range(count):
            s[k] = s[k] / total - (1.0 if k == y else 0.0)
    else:
        for k in range(count):
            goal = target(loss, k, y, count)
            s[k] = (a[k] / c - goal) / (1.0 + tau / c)
            if domain[0] == BOX:
                s[k] = _straight_in_box(domain, A[k], v, pull, goal)


@compiled
def score(domain: Code, row: Any, v: Any, pull: float, a: float, tau: float, c: float, s: float) -> float:
    """`g_k(s)`, which falls as s rises."""
    if domain[0] == BOX:
        return after_step_in_box(row, pull * s, v, domain[1], domain[2])
    return (a - tau * s) / c


@compiled
def _newton(domain: Code, A: Any, v: Any, y: float, pull: float, a: Any, tau: float, c: float, q: Any) -> bool:
    """All unknowns at once, from the guess q; whether it has come to an end."""
    count, F, T = len(q), np.empty(len(q)), np.full(len(q), tau / c)
    m = 0.0
    for turn in range(_NEWTON_STEPS):
        chances, weights, weighted = 0.0, 0.0, 0.0
        for k in range(count):
            p, hit = math.exp(q[k]), 1.0 if k == y else 0.0
            g = score(domain, A[k], v, pull, a[k], tau, c, p - hit)
            if domain[0] == BOX:
                T[k] = pull * steepness_in_box(A[k], pull * (p - hit), v, domain[1], domain[2])
            if turn == 0 and k == 0:
                m = g - q[0]
            F[k] = q[k] - g + m
            weight = p / (1.0 + T[k] * p)
            chances += p
            weights += weight
            weighted += weight * F[k]
        dm = (chances - 1.0 - weighted) / weights
        largest = 0.0
        for k in range(count):
            dq = -(F[k] + dm) / (1.0 + T[k] * math.exp(q[k]))
            largest = max(largest, abs(dq) * min(1.0, math.exp(q[k] + 40.0)))  # what is next to nothing may stay so
            q[k] = min(q[k] + min(max(dq, -8.0), 2.0), 0.0)
        m += dm
        if not largest < math.inf:
            return False
        if largest <= _NEAR and _straight(domain, A, v, y, pull, T, q):
            return True
    return False


@compiled
def _straight(domain: Code, A: Any, v: Any, y: float, pull: float, T: Any, q: Any) -> bool:
    """Whether scores are as steep at the end of a step as at its beginning: in a box, no other entry was cut."""
    if domain[0] != BOX:
        return True
    for k in range(len(q)):
        s = math.exp(q[k]) - (1.0 if k == y else 0.0)
        if pull * steepness_in_box(A[k], pull * s, v, domain[1], domain[2]) != T[k]:
            return False
    return True


@compiled
def _nested(domain: Code, A: Any, v: Any, y: float, pull: float, a: Any, tau: float, c: float, q: Any) -> None:
    """The same by halving brackets: m, and for every m each probability."""
    count = len(q)
    low, high = math.inf, -math.inf
    for k in range(count):
        hit = 1.0 if k == y else 0.0
        low = min(low, score(domain, A[k], v, pull, a[k], tau, c, 1.0 - hit))
        high = max(high, score(domain, A[k], v, pull, a[k], tau, c, -hit))
    high += math.log(count)
    for _ in range(_HALVINGS):
        m, chances = low + (high - low) / 2.0, 0.0
        for k in range(count):
            q[k] = _chance(domain, A[k], v, 1.0 if k == y else 0.0, pull, a[k], tau, c, m)
            chances += math.exp(q[k])
        if chances > 1.0:
            low = m
        else:
            high = m


@compiled
def _chance(domain: Code, row: Any, v: Any, hit: float, pull: float, a: float, tau: float, c: float, m: float) -> float:
    """The logarithm q, at most 0, of a probability with `q = g(exp(q) - hit) - m`, by halving a bracket."""
    high = min(score(domain, row, v, pull, a, tau, c, -hit) - m, 0.0)
    low = min(score(domain, row, v, pull, a, tau, c, 1.0 - hit) - m, high)
    for _ in range(_HALVINGS):
        q = low + (high - low) / 2.0
        if q > score(domain, row, v, pull, a, tau, c, math.exp(q) - hit) - m:
            high = q
        else:
            low = q
    return low + (high - low) / 2.0


@compiled
def _straight_in_box(domain: Code, row: Any, v: Any, pull: float, goal: float) -> float:
    """The solution of `s = v·clip(row - pull·s·v) - goal`: Newton's method, and now and then a bisection."""
    low, high = -goal, -goal
    for j in range(len(v)):
        low += min(domain[1] * v[j], domain[2] * v[j])
        high += max(domain[1] * v[j], domain[2] * v[j])
    s = after_step_in_box(row, 0.0, v, domain[1], domain[2]) - goal
    for turn in range(4 * _HALVINGS):
        excess = s - after_step_in_box(row, pull * s, v, domain[1], domain[2]) + goal
        if excess > 0.0:
            high = s
        else:
            low = s
        following = s - excess / (1.0 + pull * steepness_in_box(row, pull * s, v, domain[1], domain[2]))
        if abs(following - s) <= 2.0**-53 * (abs(following) + abs(goal)):
            return following
        if turn % 4 == 3 or not low < following < high:
            following = low + (high - low) / 2.0
        s = following
    return s
