"""The implicit step `argmin_{x in C} ½‖x - x_t‖² + eta·(loss(x) + (alpha/2)‖x‖²)`, taken inside the set.

With `c = 1 + eta·alpha` it is `argmin_{x in C} ½‖x - x_t/c‖² + (eta/c)·loss(x)`: a prox of the data term alone.

**Scalar losses.** The minimiser is `x(s) = Proj_C((x_t - eta·s·v)/c)` for the one `s` that is a slope of the loss at
`v·x(s)`. Without the set, `v·x(s)` is a scalar prox, known in closed form; if the result lies
in C it is the answer. Otherwise `s - slope(v·x(s))` rises through zero inside [-b, b], b the bound on slopes, and a
bracket closes on it.

**What rounding can do.** Let `g(s) = v·x(s)`, evaluated with an error of at most `e`. The computed s' is a slope at
`g(s') + error`, the exact s one at `g(s)`; slopes never fall, so |g(s') - g(s)| ≤ e where s' and s differ, and
projections are firmly non-expansive, so `‖x(s') - x(s)‖² ≤ (eta/c)·|s' - s|·|g(s') - g(s)|`. Hence the step errs by
at most `e·sqrt((eta/c)·curvature)`. At a kink, where there is no curvature to speak of, it would be
`sqrt((eta/c)·2b·e)`: a square root of rounding, where a kink meets the boundary of the set. That is why IGD rounds
kinks off before it comes here.

**Losses of several scores** of the package, where the set is a ball, a box or the whole space:
`taciturn.learners.multiclass_step`.

**Other losses** must be smooth. Projected gradient steps on a function that is 1-strongly convex and M-smooth
contract by `q = (M - 1)/(M + 1)`, so a step of length `r` ends within `r·q/(1 - q)` of the minimiser: iterate until
that is small enough.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn._util.arrays import Array
from taciturn.learners.multiclass_step import prox_by_slopes, root, steps_by_slopes
from taciturn.problem.problem import Problem
from taciturn.problem.scalar_loss import ScalarLoss
from taciturn.problem.vector_loss import VectorLoss


def implicit_step(problem: Problem, x: Array, v: Array, y: float, eta: float, tolerance: float) -> Array:
    """One implicit step from `x` on the bounded example (v, y); `tolerance` is for losses that go by a solver."""
    c = 1.0 + eta * problem.ridge
    return prox_in_set(problem, x / c, v, y, eta / c, tolerance)


def prox_in_set(problem: Problem, anchor: Array, v: Array, y: float, pull: float, tolerance: float) -> Array:
    """`argmin_{x in C} ½‖x - anchor‖² + pull·loss(x)`, the data term alone."""
    if isinstance(problem.loss, ScalarLoss):
        return _scalar_prox(problem, problem.loss, anchor, v, y, pull)
    if steps_by_slopes(problem):
        return prox_by_slopes(problem, anchor, v, y, pull)
    return _smooth_prox(problem, problem.loss, anchor, v, y, pull, tolerance)


def _scalar_prox(problem: Problem, loss: ScalarLoss, anchor: Array, v: Array, y: float, pull: float) -> Array:
    squared_norm = float(v @ v)
    if squared_norm == 0.0:
        return problem.domain.project(anchor)
    z = float(v @ anchor)
    u = loss.prox(z, y, pull * squared_norm)
    free = anchor + ((u - z) / squared_norm) * v
    inside = problem.domain.project(free.copy())  # a user's projection may work in place
    if bool((inside == free).all()):
        return free
    return _bound_prox(problem, loss, anchor, v, y, pull)


def _bound_prox(problem: Problem, loss: ScalarLoss, anchor: Array, v: Array, y: float, pull: float) -> Array:
    """Where the set is felt: the root of `s - slope(v·Proj(anchor - pull·s·v))`."""
    project = problem.domain.project

    def excess(s: float) -> float:
        return s - float(loss.slope(float(v @ project(anchor - (pull * s) * v)), y))

    steepest = problem.lipschitz / problem.norm_bound
    s = root(excess, -steepest, steepest, close=steepest * 2.0**-60)
    return project(anchor - (pull * s) * v)


def _smooth_prox(
    problem: Problem, loss: VectorLoss, anchor: Array, v: Array, y: float, pull: float, tolerance: float
) -> Array:
    smoothness = 1.0 + pull * (problem.smoothness - problem.ridge)
    q, step = (smoothness - 1.0) / (smoothness + 1.0), 2.0 / (smoothness + 1.0)
    current = problem.domain.project(anchor)
    farthest = float(np.linalg.norm(current - anchor)) + pull * problem.lipschitz
    enough = 1 + math.ceil(math.log(max(farthest / tolerance, 1.0)) / -math.log(max(q, 1e-300)))
    for _ in range(enough):
        slope = current - anchor + pull * loss.gradient(current, v, y)
        following = problem.domain.project(current - step * slope)
        moved = float(np.linalg.norm(following - current))
        current = following
        if moved * q <= tolerance * (1.0 - q):
            break
    return current
