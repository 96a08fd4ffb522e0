"""Means of losses as functions of the point. Slow twins: the classes of `taciturn.problem.optimize`.

A function is `(loss, V, y, M, b, ridge, width)`: the mean over the examples V, y of a loss that is averaged over
`width` or, if M is not empty, `½x·Mx - b·x`; plus `(ridge/2)‖x‖²`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.jit import compiled
from taciturn.compiled._dot import dot
from taciturn.compiled.codes import ONE_HOT, SOFTMAX, Code
from taciturn.compiled.losses import slope, value
from taciturn.compiled.multiclass import slopes

_REACH = 2.0**-17  # over which the bend of a smooth loss is measured


@compiled
def gradient(f: Any, x: Any, out: Any) -> None:
    """Writes the gradient at x."""
    loss, V, y, M, b, ridge, width = f
    if len(M) > 0:
        for j in range(len(x)):
            out[j] = dot(M[j], x) - b[j] + ridge * x[j]
        return
    d = V.shape[1]
    s = np.empty(len(x) // d)
    out[:] = 0.0
    for i in range(len(y)):
        if is_of_scores(loss):
            slopes(loss[0], x, V[i], y[i], s)
        else:
            s[0] = mean_slope(loss, width, dot(V[i], x), y[i])
        for k in range(len(s)):
            ahead, row = s[k], out[k * d : (k + 1) * d]
            for j in range(d):
                row[j] += ahead * V[i, j]
    for j in range(len(x)):
        out[j] = out[j] / len(y) + ridge * x[j]


@compiled
def is_of_scores(loss: Code) -> bool:
    """Whether the loss sees several scores."""
    return loss[0] == SOFTMAX or loss[0] == ONE_HOT


@compiled
def mean_slope(loss: Code, width: float, u: float, y: float) -> float:
    """The slope of a loss of `v·x` averaged over an interval of this width around u."""
    if width == 0.0:
        return slope(loss[0], loss[1], loss[2], u, y)
    low, high = u - width / 2.0, u + width / 2.0
    secant = (value(loss[0], loss[1], high, y) - value(loss[0], loss[1], low, y)) / (high - low)
    least, most = slope(loss[0], loss[1], 0.0, low, y), slope(loss[0], loss[1], 0.0, high, y)
    return min(max(secant, least), most)


@compiled
def model(f: Any, x: Any, H: Any, b: Any) -> None:
    """Writes `(H, b)` of the second-order model `½z·Hz - b·z` around x."""
    loss, V, y, M, right, ridge, width = f
    if len(M) > 0:
        H[:] = M
        b[:] = right
    else:
        reach = width / 2.0 if width > 0.0 else _REACH
        H[:] = 0.0
        for i in range(len(y)):
            u = dot(V[i], x)
            rise = slope(loss[0], loss[1], loss[2], u + reach, y[i]) - slope(loss[0], loss[1], loss[2], u - reach, y[i])
            _add_outer(rise / (2.0 * reach * len(y)), V[i], H)
    for j in range(len(x)):
        for k in range(j):
            H[k, j] = H[j, k]
        H[j, j] += ridge
    if len(M) == 0:
        gradient(f, x, b)
        for j in range(len(x)):
            b[j] = dot(H[j], x) - b[j]


@compiled
def _add_outer(weight: float, v: Any, H: Any) -> None:
    """Adds `weight·v vᵀ` to a lower triangle."""
    if weight != 0.0:
        for j in range(len(v)):
            scale, row = weight * v[j], H[j]
            for k in range(j + 1):
                row[k] += scale * v[k]


@compiled
def derivative(f: Any, x: Any, ahead: Any, s: float, u: Any, moved: Any) -> float:
    """That of the function at `x + s·ahead`, as s rises; `u` and `moved` are `V x` and `V ahead`."""
    loss, _, y, M, b, ridge, width = f
    if len(M) > 0:
        total = 0.0
        for j in range(len(x)):
            total += ahead[j] * (dot(M[j], x) + s * dot(M[j], ahead) - b[j])
    else:
        total = 0.0
        for i in range(len(y)):
            total += moved[i] * mean_slope(loss, width, u[i] + s * moved[i], y[i])
        total /= len(y)
    return total + ridge * (dot(x, ahead) + s * dot(ahead, ahead))
