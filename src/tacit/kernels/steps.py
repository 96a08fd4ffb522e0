"""Steps of learners that hand over iterates, example by example.

Slow twins: `absorb` of `tacit.learners.igd.IGD`, of its subclass FadingIGD and of `tacit.learners.giga.GIGA`, and
`tacit.learners.implicit.prox_in_set`, whose docstring has the formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.kernels.codes import BALL, FADING, GRADIENT, IMPLICIT, PRINTED, WHOLE, Code
from tacit.kernels.compiling import compiled
from tacit.kernels.dots import after_step, after_step_in_box, dot
from tacit.kernels.losses import prox, slope
from tacit.kernels.sets import project

_TINY = 2.0**-52


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
    """The iterates after these rounds; changes `x`, the iterate after t examples, to that after all of them.

    From round `first` on, iterates are added up in `total`, if it is not empty, and rows are the totals instead.
    """
    rows, work, done = np.empty((len(rounds), len(x))), np.empty(len(x)), 0
    for i in range(len(y)):
        step(how, loss, domain, steepest, x, t + i + 1, V[i], y[i], centre, work)
        if len(total) > 0 and t + i + 1 >= first:
            for j in range(len(x)):
                total[j] += x[j]
        if done < len(rounds) and rounds[done] == t + i + 1:
            rows[done] = total if len(total) > 0 else x
            done += 1
    return rows


@compiled
def step(
    how: Code,
    loss: Any,
    domain: Any,
    steepest: float,
    x: Any,
    i: int,
    v: Any,
    y: float,
    centre: Any,
    work: Any,
) -> None:
    """The step on example i, counted from 1; changes `x`."""
    kind, strength, delay = how
    if kind == IMPLICIT:
        eta = 1.0 / (strength * i)
        c = 1.0 + eta * strength
        for j in range(len(x)):
            x[j] = x[j] / c
        _prox_in_set(loss, domain, steepest, x, v, y, eta / c, work)
    elif kind == FADING:
        total, weight = 4.0 / 3.0 * strength * i**0.75, strength * i**-0.25
        inertia = total + weight
        for j in range(len(x)):
            x[j] = (total * x[j] + weight * centre[j]) / inertia
        _prox_in_set(loss, domain, steepest, x, v, y, 1.0 / inertia, work)
    elif kind == GRADIENT or i >= delay:
        inertia = strength * (i / 2.0 if kind == PRINTED else i + delay)
        steep = slope(loss[0], loss[1], loss[2], dot(v, x), y)
        for j in range(len(x)):
            x[j] -= (steep * v[j] + strength * x[j]) / inertia
        project(domain[0], domain[1], domain[2], x)


@compiled
def _prox_in_set(
    loss: Code, domain: Code, steepest: float, anchor: Any, v: Any, y: float, pull: float, work: Any
) -> None:
    """`argmin_{x in C} ½‖x - anchor‖² + pull·loss(x)`, in place of the anchor."""
    norm = dot(v, v)
    if norm == 0.0:
        project(domain[0], domain[1], domain[2], anchor)
        return
    z = dot(v, anchor)
    ahead = (prox(loss[0], loss[1], loss[2], z, y, pull * norm) - z) / norm
    for j in range(len(v)):
        work[j] = anchor[j] + ahead * v[j]
    if _inside(domain, work):
        anchor[:] = work
        return
    s = _root(loss, domain, anchor, v, y, pull, -steepest, steepest)
    for j in range(len(v)):
        anchor[j] -= pull * s * v[j]
    project(domain[0], domain[1], domain[2], anchor)


@compiled
def _inside(domain: Any, x: Any) -> bool:
    if domain[0] == WHOLE:
        return True
    if domain[0] == BALL:
        return dot(x, x) <= domain[2] * domain[2]
    for j in range(len(x)):
        if not domain[1] <= x[j] <= domain[2]:
            return False
    return True


@compiled
def _excess(loss: Code, domain: Code, anchor: Any, v: Any, y: float, pull: float, s: float) -> float:
    """`s - slope(v·Proj(anchor - pull·s·v))`, which rises with s."""
    if domain[0] == BALL:
        along, squared = after_step(anchor, pull * s, v)
        if squared > domain[2] * domain[2]:
            along *= domain[2] / math.sqrt(squared)
    else:
        along = after_step_in_box(anchor, pull * s, v, domain[1], domain[2])
    return s - slope(loss[0], loss[1], loss[2], along, y)


@compiled
def _root(loss: Code, domain: Code, anchor: Any, v: Any, y: float, pull: float, low: float, high: float) -> float:
    """Where the excess passes zero, to the last bits; an end where it does not.

    The false position with halved weights (Illinois), and a bisection whenever that has not halved the bracket in
    three steps.
    """
    below, above = (
        _excess(loss, domain, anchor, v, y, pull, low),
        _excess(loss, domain, anchor, v, y, pull, high),
    )
    if below >= 0.0:
        return low
    if above <= 0.0:
        return high
    close, width, side = high * 2.0**-60, high - low, 0
    for turn in range(400):
        if high - low <= close + 4.0 * _TINY * max(abs(low), abs(high)):
            break
        s = high - above * (high - low) / (above - below)
        if turn % 3 == 2:
            if high - low > 0.5 * width:
                s = low + (high - low) / 2.0
            width = high - low
        if not low < s < high:
            s = low + (high - low) / 2.0
            if not low < s < high:
                break
        value = _excess(loss, domain, anchor, v, y, pull, s)
        if value == 0.0:
            return s
        if value > 0.0:
            high, above = s, value
            below = below / 2.0 if side == 1 else below
            side = 1
        else:
            low, below = s, value
            above = above / 2.0 if side == -1 else above
            side = -1
    return low + (high - low) / 2.0
