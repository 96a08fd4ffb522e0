"""The minimiser of a mean of losses over a set. Slow twin: `taciturn.problem.optimize`, whose docstring has the proof.

The same search in the same order: Newton's method on models over the set, steps with momentum, plain steps; whatever
the search, it ends with a projected gradient step that is short enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled._dot import dot
from taciturn.compiled.codes import BALL, Code
from taciturn.compiled.objective import derivative, gradient, is_of_scores, model
from taciturn.compiled.qftl import factor, solve
from taciturn.compiled.sets import project

_FIRST_STEPS = 6
_NEWTON_STEPS = 60
_MODEL_STEPS = 4_000
_HALVINGS = 40
_STAGES = 14


@compiled
def minimise(f: Any, smoothness: Any, domain: Code, x: Any, short: float, with_momentum: float, plain: float) -> None:
    """Moves x to within reach of the minimiser: to where a step is `short`; counts limit the steps of each kind.

    `smoothness` is that of f and, if the loss is averaged, of f averaged more widely: over 4, 16, … times the width.
    """
    start = x.copy()
    project(domain[0], domain[1], domain[2], start)
    x[:] = start
    done = step(f, smoothness[0], domain, x, short)
    if not (done or is_of_scores(f[0])):
        done = _newton(f, smoothness[0], domain, x, short, _FIRST_STEPS)
        if not done and f[6] > 0.0:
            for power in range(_STAGES, 0, -2):
                wider = (f[0], f[1], f[2], f[3], f[4], f[5], f[6] * 2.0**power)
                done = _newton(wider, smoothness[power // 2], domain, x, short, _NEWTON_STEPS)
            done = False
        if not done:
            done = _newton(f, smoothness[0], domain, x, short, _NEWTON_STEPS)
    if not done:
        done = _with_momentum(f, smoothness[0], domain, x, short, with_momentum)
    if not done:
        x[:] = start
        for _ in range(int(plain)):
            if step(f, smoothness[0], domain, x, short):
                break


@compiled
def step(f: Any, smoothness: float, domain: Code, x: Any, short: float) -> bool:
    """A projected gradient step, and whether it was short; what is not a number ends the search, too."""
    g, squared = np.empty(len(x)), 0.0
    gradient(f, x, g)
    for j in range(len(x)):
        g[j] = x[j] - g[j] / smoothness
    project(domain[0], domain[1], domain[2], g)
    for j in range(len(x)):
        squared += (g[j] - x[j]) ** 2
        x[j] = g[j]
    return not math.sqrt(squared) > short


@compiled
def _with_momentum(f: Any, smoothness: float, domain: Code, x: Any, short: float, count: float) -> bool:
    """Nesterov's steps with constant momentum, inside the set, until one is short."""
    root, ahead = math.sqrt(smoothness / f[5]), x.copy()
    momentum = (root - 1.0) / (root + 1.0)
    for _ in range(int(count)):
        if step(f, smoothness, domain, ahead, short):
            x[:] = ahead
            return True
        for j in range(len(x)):
            x[j], ahead[j] = ahead[j], ahead[j] + momentum * (ahead[j] - x[j])
        project(domain[0], domain[1], domain[2], ahead)
    return False


@compiled
def _newton(f: Any, smoothness: float, domain: Code, x: Any, short: float, count: int) -> bool:
    """Steps to the minimiser of a model over the set, each as long as the function falls; the last one is plain."""
    size, n = len(x), len(f[2])
    H, b, goal, ahead = np.empty((size, size)), np.empty(size), np.empty(size), np.empty(size)
    u, moved = np.empty(n), np.empty(n)
    for _ in range(count):
        model(f, x, H, b)
        model_minimiser(H, b, domain, x, goal)
        for j in range(size):
            ahead[j] = goal[j] - x[j]
        for i in range(n):
            u[i], moved[i] = dot(f[1][i], x), dot(f[1][i], ahead)
        far = _falling(f, x, ahead, u, moved)
        for j in range(size):
            x[j] += far * ahead[j]
        project(domain[0], domain[1], domain[2], x)
        goal[:] = x
        done = step(f, smoothness, domain, goal, short)
        if done or dot(ahead, ahead) <= 2.0**-100 * dot(x, x):
            x[:] = goal
            return done
    return False


@compiled
def _falling(f: Any, x: Any, ahead: Any, u: Any, moved: Any) -> float:
    """How far, at most to 1, the function falls on the way ahead, to a tenth."""
    if derivative(f, x, ahead, 1.0, u, moved) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if derivative(f, x, ahead, middle, u, moved) > 0.0:
            high = middle
        else:
            low = middle
        if high - low <= 0.1 * high:
            break
    return low if low > 0.0 else high


@compiled
def model_minimiser(H: Any, b: Any, domain: Code, start: Any, out: Any) -> None:
    """`argmin ½x·Hx - b·x` over the set, into `out`."""
    out[:] = b
    if not (np.isfinite(H).all() and np.isfinite(b).all()):
        out[:] = start
        return
    L = H.copy()
    if factor(L):
        solve(L, out)
    else:
        out[:] = 0.0
    free = out.copy()
    project(domain[0], domain[1], domain[2], out)
    if (free == out).all():
        return
    values, vectors = np.linalg.eigh(H)
    if domain[0] == BALL:
        _in_ball(values, vectors, b, domain[2], out)
        project(domain[0], domain[1], domain[2], out)
    else:
        _in_box(H, b, max(values[0], 1e-300), max(values[-1], 1e-300), domain, start, out)


@compiled
def _in_ball(values: Any, vectors: Any, b: Any, radius: float, out: Any) -> None:
    """With the extra ridge under which the free minimiser has this length, by halving a bracket."""
    size = len(b)
    along = np.empty(size)
    for k in range(size):
        along[k] = dot(vectors[:, k], b)
    low, high = 0.0, math.sqrt(dot(along, along)) / radius
    while True:
        extra = low + (high - low) / 2.0
        if not low < extra < high:
            break
        squared = 0.0
        for k in range(size):
            squared += (along[k] / (max(values[k], 1e-300) + extra)) ** 2
        if squared > radius * radius:
            low = extra
        else:
            high = extra
    out[:] = 0.0
    for k in range(size):
        scale = along[k] / (max(values[k], 1e-300) + high)
        for j in range(size):
            out[j] += scale * vectors[j, k]


@compiled
def _in_box(H: Any, b: Any, least: float, most: float, domain: Code, start: Any, out: Any) -> None:
    """Projected steps with momentum on the model, until one changes nothing."""
    root, ahead, x = math.sqrt(most / least), start.copy(), start.copy()
    momentum = (root - 1.0) / (root + 1.0)
    for _ in range(_MODEL_STEPS):
        moved, length = 0.0, 0.0
        for j in range(len(b)):
            out[j] = min(max(ahead[j] - (dot(H[j], ahead) - b[j]) / most, domain[1]), domain[2])
            moved += (out[j] - ahead[j]) ** 2
            length += out[j] ** 2
        if moved <= 2.0**-104 * length:
            return
        for j in range(len(b)):
            ahead[j] = min(max(out[j] + momentum * (out[j] - x[j]), domain[1]), domain[2])
            x[j] = out[j]
