"""The implicit step `argmin_{x in C} ½‖x - x_t‖² + eta·(loss(x) + (alpha/2)‖x‖²)`, taken inside the set.

**Scalar losses.** With `c = 1 + eta·alpha` the minimiser is `x(s) = Proj_C((x_t - eta·s·v)/c)` for the one `s` that is
a slope of the loss at `v·x(s)`. Without the set, `v·x(s)` is a scalar prox, known in closed form; if the result lies
in C it is the answer. Otherwise `s - slope(v·x(s))` rises through zero inside [-b, b], b the bound on slopes, and a
bracket closes on it.

**What rounding can do.** Let `g(s) = v·x(s)`, evaluated with an error of at most `e`. The computed s' is a slope at
`g(s') + error`, the exact s one at `g(s)`; slopes never fall, so |g(s') - g(s)| ≤ e where s' and s differ, and
projections are firmly non-expansive, so `‖x(s') - x(s)‖² ≤ (eta/c)·|s' - s|·|g(s') - g(s)|`. Hence the step errs by
at most `sqrt((eta/c)·e·min(2b, curvature·e))`: nothing for smooth losses, a square root of rounding where a kink
meets the boundary.

**Other losses** must be smooth. Projected gradient steps on a function that is c-strongly convex and M-smooth
contract by `q = (M - c)/(M + c)`, so a step of length `r` ends within `r·q/(1 - q)` of the minimiser: iterate until
that is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from tacit.arrays import Array
from tacit.problem.problem import Problem, VectorLoss
from tacit.problem.scalar import ScalarLoss

_LAST_BITS = 4.0 * 2.0**-52


def implicit_step(problem: Problem, x: Array, v: Array, y: float, eta: float, tolerance: float) -> Array:
    """One implicit step from `x` on the bounded example (v, y); `tolerance` is for losses without a scalar form."""
    if isinstance(problem.loss, ScalarLoss):
        return _scalar_step(problem, problem.loss, x, v, y, eta)
    return _smooth_step(problem, problem.loss, x, v, y, eta, tolerance)


def _scalar_step(problem: Problem, loss: ScalarLoss, x: Array, v: Array, y: float, eta: float) -> Array:
    c = 1.0 + eta * problem.ridge
    shrunk, squared_norm = x / c, float(v @ v)
    if squared_norm == 0.0:
        return problem.domain.project(shrunk)
    z = float(v @ shrunk)
    u = loss.prox(z, y, eta * squared_norm / c)
    free = shrunk + ((u - z) / squared_norm) * v
    inside = problem.domain.project(free)
    if inside is free or bool((inside == free).all()):
        return free
    return _bound_step(problem, loss, shrunk, v, y, eta / c)


def _bound_step(problem: Problem, loss: ScalarLoss, shrunk: Array, v: Array, y: float, pull: float) -> Array:
    """The step where the set is felt: the root of `s - slope(v·Proj(shrunk - pull·s·v))`."""
    project = problem.domain.project

    def excess(s: float) -> float:
        return s - float(loss.slope(float(v @ project(shrunk - (pull * s) * v)), y))

    steepest = problem.lipschitz / problem.norm_bound
    return project(shrunk - (pull * _root(excess, -steepest, steepest)) * v)


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where `rising` passes zero, to the last bits; an end where it does not, since no data may make this fail."""
    if rising(low) >= 0.0 or rising(high) <= 0.0:
        return low if rising(low) >= 0.0 else high
    close = high * 2.0**-60
    return float(brentq(rising, low, high, xtol=close, rtol=_LAST_BITS, maxiter=10_000, disp=False))


def _smooth_step(
    problem: Problem, loss: VectorLoss, x: Array, v: Array, y: float, eta: float, tolerance: float
) -> Array:
    convexity, smoothness = 1.0 + eta * problem.ridge, 1.0 + eta * problem.smoothness
    q = (smoothness - convexity) / (smoothness + convexity)
    step = 2.0 / (smoothness + convexity)
    farthest = eta * (problem.lipschitz + problem.ridge * float(np.linalg.norm(x))) / convexity
    enough = 1 + math.ceil(math.log(max(farthest / tolerance, 1.0)) / -math.log(max(q, 1e-300)))
    current = x
    for _ in range(enough):
        slope = current - x + eta * problem.gradient(current, v, y)
        following = problem.domain.project(current - step * slope)
        moved = float(np.linalg.norm(following - current))
        current = following
        if moved * q <= tolerance * (1.0 - q):
            break
    return current
