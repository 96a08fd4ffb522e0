"""Losses of `v·x` by number, and their scalar prox. Slow twins: the classes of `taciturn.kernel.problem.losses`.

A loss is three numbers: which it is, its parameter (a quantile's level, Huber's width), and the width over
which its kinks are smoothed, 0 for not at all (`taciturn.kernel.problem.scalar_loss.Smoothed`). The parameter of
logistic and hinge loss is the weight of the label +1 minus that of -1, the larger of which is 1
(`taciturn.methods.weighted`): 0 where they weigh the same.
"""

from __future__ import annotations

import math

from taciturn.kernel.jit import compiled
from taciturn.kernel.problem.codes import ABSOLUTE, HINGE, HUBER, LOGISTIC, QUANTILE, SQUARED

SHORT = 2.0**-9
"""The longest pull that `_short_pull` takes."""


@compiled
def _weight(parameter: float, y: float) -> float:
    """The weight of a label -1 or +1."""
    return 1.0 + min(0.0, y * parameter)


@compiled
def slope(loss: int, parameter: float, width: float, u: float, y: float) -> float:
    """A derivative in u."""
    if width > 0.0:
        return _envelope_slope(loss, parameter, width, u, y)
    if loss == SQUARED:
        return u - y
    if loss == LOGISTIC:
        return -y * _weight(parameter, y) / (1.0 + math.exp(min(y * u, 700.0)))
    if loss == HINGE:
        return -y * _weight(parameter, y) if y * u < 1.0 else 0.0
    if loss == QUANTILE:
        return -parameter if u < y else 1.0 - parameter
    if loss == ABSOLUTE:
        return -1.0 if u < y else 1.0
    if loss == HUBER:
        return min(max(u - y, -parameter), parameter)
    return y


@compiled
def _envelope_slope(loss: int, parameter: float, width: float, u: float, y: float) -> float:
    """`(u - prox(u, width))/width`, the slope of the envelope, without the difference, which would cancel."""
    if loss == SQUARED:
        return (u - y) / (1.0 + width)
    if loss == LOGISTIC:
        weight = _weight(parameter, y)
        return -y * weight / (1.0 + math.exp(min(_logistic_prox(y * u, width * weight), 700.0)))
    if loss == HINGE:
        return -y * min(max((1.0 - y * u) / width, 0.0), _weight(parameter, y))
    if loss == QUANTILE:
        return min(max((u - y) / width, -parameter), 1.0 - parameter)
    if loss == ABSOLUTE:
        return min(max((u - y) / width, -1.0), 1.0)
    if loss == HUBER:
        return min(max((u - y) / (1.0 + width), -parameter), parameter)
    return y


@compiled
def prox(loss: int, parameter: float, width: float, z: float, y: float, step: float) -> float:
    """`argmin_u step·loss(u, y) + ½(u - z)²`."""
    if width > 0.0:
        return z + step / (step + width) * (_prox(loss, parameter, z, y, step + width) - z)
    return _prox(loss, parameter, z, y, step)


@compiled
def _prox(loss: int, parameter: float, z: float, y: float, step: float) -> float:
    if loss == SQUARED:
        return (z + step * y) / (1.0 + step)
    if loss == LOGISTIC:
        return y * _logistic_prox(y * z, step * _weight(parameter, y))
    if loss == HINGE:
        return y * max(y * z, min(1.0, y * z + step * _weight(parameter, y)))
    if loss == QUANTILE:
        return min(max(y, z - step * (1.0 - parameter)), z + step * parameter)
    if loss == ABSOLUTE:
        return min(max(y, z - step), z + step)
    if loss == HUBER:
        pull = (z - y) * step / (1.0 + step)
        return z - min(max(pull, -step * parameter), step * parameter)
    return z - step * y


@compiled
def _short_pull(a: float, share: float) -> float:
    """How far a step s pulls a logistic loss's argument z, if `a = s·share ≤ SHORT`, `share = sigmoid(-z)`.

    That is the root e ≥ 0 of `g(e) = e·(1 + q·(exp(e) - 1)) = a`, `q = 1 - share`. Its series in a is cut off after a⁷:

        e = a - q·a² + (2q² - q/2)·a³ - (5q³ - 5/2·q² + q/6)·a⁴ + …,

    here by powers of `b = q·a`. *Relative error below 2⁻⁵².* As `g' ≥ 1`, the cut series D errs by at most
    `|g(D) - a|`, which has the powers of a from a⁸ on alone. Their coefficients are no larger than those of
    `M·exp(M)`, where `M = a + a² + 5/2·a³ + 23/3·a⁴ + …` has D's coefficients at q = 1 with no sign: together less
    than 1,483·a⁸ (`tests/kernel/problem/test_losses_loops.py` adds them up). ∎
    """
    b, a2 = (1.0 - share) * a, a * a
    b2 = b * b
    once = (1.0 + 0.5 * a) + a2 * ((1.0 / 6.0 + a / 24.0) + a2 * (1.0 / 120.0 + a / 720.0))
    twice = (2.0 + 2.5 * a) + a2 * ((1.75 + 0.875 * a) + a2 * (31.0 / 90.0))
    thrice = (5.0 + 10.5 * a) + a2 * (35.0 / 3.0 + 9.0 * a)
    more = (14.0 + a * (42.0 + 65.0 * a)) - b * (42.0 + 165.0 * a) + b2 * 132.0
    return a * ((1.0 - b * once) + b2 * ((twice - b * thrice) + b2 * more))


@compiled
def _logistic_prox(z: float, step: float) -> float:
    """Root of `f(w) = w - z - step·sigmoid(-w)` in [z, z + step]: a series near z, else Newton in a bracket, bisection.

    As `f' ≥ 1` and `|f''| ≤ step/10`, a step of length l ends within `(step/20)·l²` of the root, up to rounding.
    """
    share = 1.0 / (1.0 + math.exp(min(z, 700.0)))
    if step * share <= SHORT:
        return z + _short_pull(step * share, share)
    low, high = z, z + step
    w = z
    for _ in range(64):
        share = 1.0 / (1.0 + math.exp(min(w, 700.0)))
        pull = step * share
        residual = w - z - pull
        if residual > 0.0:
            high = w
        else:
            low = w
        following = w - residual / (1.0 + pull * (1.0 - share))
        if not low <= following <= high:
            following = low + (high - low) / 2.0
        elif step * (following - w) ** 2 <= 2.0**-52 * (abs(z) + step):
            return following
        w = following
    while True:
        w = low + (high - low) / 2.0
        if not low < w < high:
            return w
        if w - z - step / (1.0 + math.exp(min(w, 700.0))) > 0.0:
            high = w
        else:
            low = w
