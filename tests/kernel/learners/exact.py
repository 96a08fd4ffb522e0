"""One step of a learner in 40 digits, for the error of a computed one, and what that may be."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np

from taciturn import GIGA, IGD, Box, FadingIGD, Hinge, Huber, L2Ball, Linear, Logistic, Quantile, Squared
from taciturn.kernel.learners.iterate import UNIT

DIGITS = 40
Vector = list[Any]


def vector(x: np.ndarray) -> Vector:
    return [mpmath.mpf(float(entry)) for entry in x]


def dot(a: Vector, b: Vector) -> Any:
    return mpmath.fsum(x * y for x, y in zip(a, b, strict=True))


def clip(x: Any, low: Any, high: Any) -> Any:
    return min(max(x, mpmath.mpf(low)), mpmath.mpf(high))


def project(domain: Any, x: Vector) -> Vector:
    if isinstance(domain, L2Ball):
        norm, radius = mpmath.sqrt(dot(x, x)), mpmath.mpf(domain.radius)
        return x if norm <= radius else [entry * radius / norm for entry in x]
    return [clip(entry, domain.low, domain.high) for entry in x] if isinstance(domain, Box) else x


def slope(loss: Any, width: float, u: Any, y: float) -> Any:
    """Of the loss, its kinks smoothed over `width`."""
    if isinstance(loss, Logistic):
        return -y / (1 + mpmath.exp(y * u))
    if isinstance(loss, Squared):
        return u - y
    if isinstance(loss, Huber):
        return clip(u - y, -loss.width, loss.width)
    if isinstance(loss, Linear):
        return mpmath.mpf(y)
    if width == 0.0:
        raise ValueError("a kink has no slope: round it off.")
    if isinstance(loss, Hinge):
        return -y * clip((1 - y * u) / mpmath.mpf(width), 0, 1)
    level = mpmath.mpf(loss.level) if isinstance(loss, Quantile) else None
    least, most = (-1, 1) if level is None else (-level, 1 - level)
    return clip((u - y) / mpmath.mpf(width), least, most)


def step(learner: Any, x: np.ndarray, v: np.ndarray, y: float, i: int) -> Vector:
    """What `absorb` makes of the iterate x and example i, exactly."""
    with mpmath.workdps(DIGITS):
        p, x, v = learner.problem, vector(x), vector(v)
        ridge = mpmath.mpf(p.ridge)
        if isinstance(learner, GIGA):
            kappa = mpmath.mpf(p.smoothness) / ridge
            inertia = ridge * (mpmath.mpf(i) / 2 if learner.step == "printed" else i + (kappa - 1) / 2)
            steep = slope(p.loss, 0.0, dot(v, x), y)
            return project(p.domain, [a - (steep * b + ridge * a) / inertia for a, b in zip(x, v, strict=True)])
        if isinstance(learner, FadingIGD):
            strength, t = mpmath.mpf(learner.strength), mpmath.mpf(i)
            total, weight = 4 * strength * t ** mpmath.mpf("0.75") / 3, strength * t ** mpmath.mpf("-0.25")
            centre = vector(p.first_point)
            anchor = [(total * a + weight * b) / (total + weight) for a, b in zip(x, centre, strict=True)]
            return prox(learner, anchor, v, y, 1 / (total + weight))
        assert isinstance(learner, IGD)
        return prox(learner, [a * i / (i + 1) for a in x], v, y, 1 / (ridge * (i + 1)))


def prox(learner: Any, anchor: Vector, v: Vector, y: float, pull: Any) -> Vector:
    """`argmin_{x in C} ½‖x - anchor‖² + pull·loss(x)`, by bisection for the slope."""
    p, stepped = learner.problem, learner.stepped.loss
    width = stepped.width if stepped is not p.loss else 0.0

    def point(s: Any) -> Vector:
        return project(p.domain, [a - pull * s * b for a, b in zip(anchor, v, strict=True)])

    low, high = -mpmath.mpf(2 * p.lipschitz / p.norm_bound), mpmath.mpf(2 * p.lipschitz / p.norm_bound)
    for _ in range(125):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > slope(p.loss, width, dot(v, point(middle)), y) else (middle, high)
    return point(low)


def distance(x: np.ndarray, exact: Vector) -> float:
    """How far a computed vector lies from an exact one."""
    with mpmath.workdps(DIGITS):
        apart = [mpmath.mpf(float(a)) - b for a, b in zip(x, exact, strict=True)]
        return float(mpmath.sqrt(dot(apart, apart)))


def allowed(learner: Any, i: int) -> float:
    """The error that step i is charged with: half of what `rounding` and `_inexactness` have for two runs."""
    p, inertia = learner.problem, float(learner.inertia(float(i)))
    rounding = 16.0 * (learner.statistic_size + 8) * UNIT * (learner.longest_iterate + p.lipschitz / inertia)
    if isinstance(learner, GIGA):
        return rounding
    root = 4.0 * (learner.statistic_size + 8) * UNIT * p.norm_bound * learner._largest
    return rounding + root * math.sqrt(learner.stepped.loss.curvature / inertia)
