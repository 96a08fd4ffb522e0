"""Losses of `v·x` by number, and their scalar prox. Slow twins: the classes of `tacit.problem.losses`.

A loss is three numbers: which it is, its parameter (a quantile's level, Huber's width), and over how much its kinks are
rounded off, 0 for not at all (`tacit.problem.scalar.Smoothed`).
"""

from __future__ import annotations

import math

from tacit.kernels.codes import ABSOLUTE, HINGE, HUBER, LOGISTIC, QUANTILE, SQUARED
from tacit.kernels.compiling import compiled


@compiled
def value(loss: int, parameter: float, u: float, y: float) -> float:
    """The loss itself, kinks and all."""
    if loss == SQUARED:
        return 0.5 * (u - y) ** 2
    if loss == LOGISTIC:
        return max(0.0, -y * u) + math.log1p(math.exp(-abs(u)))  # labels are -1 and +1
    if loss == HINGE:
        return max(0.0, 1.0 - y * u)
    if loss == QUANTILE:
        return max(parameter * (y - u), (1.0 - parameter) * (u - y))
    if loss == ABSOLUTE:
        return abs(u - y)
    if loss == HUBER:
        far = abs(u - y)
        near = min(far, parameter)
        return near * (far - 0.5 * near)
    return y * u


@compiled
def slope(loss: int, parameter: float, width: float, u: float, y: float) -> float:
    """A derivative in u."""
    if width > 0.0:
        return _rounded_off(loss, parameter, width, u, y)
    if loss == SQUARED:
        return u - y
    if loss == LOGISTIC:
        return -y / (1.0 + math.exp(min(y * u, 700.0)))
    if loss == HINGE:
        return -y if y * u < 1.0 else 0.0
    if loss == QUANTILE:
        return -parameter if u < y else 1.0 - parameter
    if loss == ABSOLUTE:
        return -1.0 if u < y else 1.0
    if loss == HUBER:
        return min(max(u - y, -parameter), parameter)
    return y


@compiled
def _rounded_off(loss: int, parameter: float, width: float, u: float, y: float) -> float:
    """`(u - prox(u, width))/width`, the slope of the envelope, without the difference, which would cancel."""
    if loss == SQUARED:
        return (u - y) / (1.0 + width)
    if loss == LOGISTIC:
        return -y / (1.0 + math.exp(min(_logistic_prox(y * u, width), 700.0)))
    if loss == HINGE:
        return -y * min(max((1.0 - y * u) / width, 0.0), 1.0)
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
        return y * _logistic_prox(y * z, step)
    if loss == HINGE:
        return y * max(y * z, min(1.0, y * z + step))
    if loss == QUANTILE:
        return min(max(y, z - step * (1.0 - parameter)), z + step * parameter)
    if loss == ABSOLUTE:
        return min(max(y, z - step), z + step)
    if loss == HUBER:
        pull = (z - y) * step / (1.0 + step)
        return z - min(max(pull, -step * parameter), step * parameter)
    return z - step * y


@compiled
def _logistic_prox(z: float, step: float) -> float:
    """Root of `f(w) = w - z - step·sigmoid(-w)` in [z, z + step]: Newton, ended by a bracket, then bisection.

    As `f' ≥ 1` and `|f''| ≤ step/10`, a step of length l ends within `(step/20)·l²` of the root, up to rounding.
    """
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
