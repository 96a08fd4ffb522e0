"""Steps of iterate learners on losses of several scores, example by example.

Slow twins: `absorb` of `taciturn.learners.igd.IGD`, of its subclass FadingIGD and of `taciturn.learners.giga.GIGA`, and
`taciturn.learners.implicit_step.prox_by_slopes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled._dot import dot
from taciturn.compiled.codes import BALL, BOX, FADING, GRADIENT, IMPLICIT, PRINTED, TINY, WHOLE_SPACE, Code
from taciturn.compiled.multiclass import implicit_slopes, slopes, softmax
from taciturn.compiled.sets import project


@compiled
def iterates(
    how: Code,
    loss: Code,
    domain: Code,
    steepest: float,
    centre: Any,
    x: Any,
    t: int,
    V: Any,
    y: Any,
    rounds: Any,
    total: Any,
    first: int,
) -> Any:
    """As `taciturn.compiled.igd.iterates`; x is the rows of a matrix, one for each score, one after the other."""
    rows, done = np.empty((len(rounds), len(x))), 0
    for i in range(len(y)):
        step(how, loss[0], domain, steepest, x, t + i + 1, V[i], y[i], centre)
        if len(total) > 0 and t + i + 1 >= first:
            for j in range(len(x)):
                total[j] += x[j]
        if done < len(rounds) and rounds[done] == t + i + 1:
            rows[done] = total if len(total) > 0 else x
            done += 1
    return rows


@compiled
def step(how: Code, loss: int, domain: Code, steepest: float, x: Any, i: int, v: Any, y: float, centre: Any) -> None:
    """The step on example i, counted from 1; changes `x`."""
    kind, strength, delay = how
    if kind == IMPLICIT:
        shrink = 1.0 / (1.0 + 1.0 / i)
        for j in range(len(x)):
            x[j] *= shrink
        _prox_in_set(loss, domain, steepest, x, v, y, shrink / (strength * i))
    elif kind == FADING:
        total, weight = 4.0 / 3.0 * strength * i**0.75, strength * i**-0.25
        inertia = total + weight
        for j in range(len(x)):
            x[j] = (total * x[j] + weight * centre[j]) / inertia
        _prox_in_set(loss, domain, steepest, x, v, y, 1.0 / inertia)
    elif kind == GRADIENT or i >= delay:
        eta, s = 1.0 / (strength * (i / 2.0 if kind == PRINTED else i + delay)), np.empty(len(x) // len(v))
        slopes(loss, x, v, y, s)
        for j in range(len(x)):
            x[j] *= 1.0 - eta * strength
        _move(x, s, -eta, v)
        project(domain[0], domain[1], domain[2], x)


@compiled
def _move(x: Any, s: Any, far: float, v: Any) -> None:
    """Adds `far·s vᵀ` to the rows of x."""
    d = len(v)
    for k in range(len(s)):
        move, row = far * s[k], x[k * d : (k + 1) * d]
        for j in range(d):
            row[j] += move * v[j]


@compiled
def _prox_in_set(loss: int, domain: Code, steepest: float, x: Any, v: Any, y: float, pull: float) -> None:
    """`argmin_{W in C} ½‖W - x‖² + pull·loss(W v, y)`, in place of x."""
    tau, d = pull * dot(v, v), len(v)
    if tau >= TINY:
        count = len(x) // d
        A, a, q, s = x.reshape((count, d)), np.empty(count), np.empty(count), np.empty(count)
        for k in range(count):
            a[k] = dot(A[k], v)
            q[k] = a[k] / (1.0 + tau)  # between the probabilities before the step and, after a long one, equal ones
        softmax(q)
        for k in range(count):
            q[k] = math.log(max(q[k], 1e-300))
        free = (WHOLE_SPACE, 0.0, 0.0)
        implicit_slopes(loss, free, A, v, y, pull, a, tau, 1.0, s, q)
        if not _ends_inside(domain, A, s, pull, v):
            if domain[0] == BALL:
                _slopes_in_ball(loss, domain, steepest, A, v, y, pull, a, tau, s, q)
            else:
                implicit_slopes(loss, domain, A, v, y, pull, a, tau, 1.0, s, q)
        _move(x, s, -pull, v)
    project(domain[0], domain[1], domain[2], x)


@compiled
def _ends_inside(domain: Code, A: Any, s: Any, pull: float, v: Any) -> bool:
    """Whether the step with these slopes ends in the set."""
    if domain[0] == BALL:
        return _length(A, s, pull, v) <= domain[2]
    if domain[0] == BOX:
        for k in range(len(s)):
            for j in range(len(v)):
                if not domain[1] <= A[k, j] - pull * s[k] * v[j] <= domain[2]:
                    return False
    return True


@compiled
def _length(A: Any, s: Any, pull: float, v: Any) -> float:
    """`‖A - pull·s vᵀ‖`."""
    squared = 0.0
    for k in range(len(s)):
        move = pull * s[k]
        for j in range(len(v)):
            squared += (A[k, j] - move * v[j]) ** 2
    return math.sqrt(squared)


@compiled
def _slopes_in_ball(
    loss: int,
    domain: Code,
    steepest: float,
    A: Any,
    v: Any,
    y: float,
    pull: float,
    a: Any,
    tau: float,
    s: Any,
    q: Any,
) -> None:
    """The slopes under which the step, divided by c, ends at the border: the root in c of `c·radius/length - 1`.

    Were the slopes not to change with c, it would be straight: the false position with halved weights (Illinois).
    """
    radius = domain[2]
    low, below = 1.0, radius / _length(A, s, pull, v) - 1.0
    high = (math.sqrt(dot(A.ravel(), A.ravel())) + pull * steepest * math.sqrt(dot(v, v))) / radius * (1.0 + 2.0**-40)
    above, side, width = 1.0, 0, high - low
    for turn in range(200):
        c = high - above * (high - low) / (above - below) if turn > 0 else low / (1.0 + below)
        if turn % 3 == 2:
            if high - low > 0.5 * width:
                c = low + (high - low) / 2.0
            width = high - low
        if not low < c < high:
            c = low + (high - low) / 2.0
        implicit_slopes(loss, domain, A, v, y, pull, a, tau, c, s, q)
        room = c * radius / _length(A, s, pull, v) - 1.0
        if abs(room) <= 2.0**-51 or not low < c < high or high - low <= 2.0**-51 * high:
            return
        if room > 0.0:
            high, above = c, room
            below = below / 2.0 if side == 1 else below
            side = 1
        else:
            low, below = c, room
            above = above / 2.0 if side == -1 else above
            side = -1
