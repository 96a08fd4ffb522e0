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
`sqrt((eta/c)·2b·e)`: a square root of rounding, where a kink meets the boundary of the set. That is why IGD
smooths kinks first.

**Losses of K scores** `u = W v` of the package step by K slopes: `argmin_{W in C} ½‖W - A‖² + pull·loss(W v, y)`.
The minimiser is `W(s) = Proj_C(A - pull·s vᵀ)` for the one vector s of slopes with `s = slope(W(s) v, y)`: K numbers
take the place of the K·d entries of W. Three sets are simple enough:

* **Whole space.** `W(s) v = a - tau·s`, `a = A v`, `tau = pull·‖v‖²`. OneHot: `s = (a - target)/(1 + tau)`. Softmax:
  `s = p - e_y`, and with `b = a + tau·e_y` and m the logarithm of Σ exp(u_k),

      ln p_k + tau·p_k = b_k - m,        Σ_k p_k = 1.                                                          (1)

  Given m, p_k is `omega(b_k - m + ln tau)/tau`, omega Wright's function, the inverse of `w + ln w`. It falls as m
  rises, so m is the root of one equation; it lies between `ln Σ exp(b_k) - tau` and `ln Σ exp(b_k)`.
* **Ball.** Where it is active, `Proj` divides by some `c > 1`, so that W is the minimiser on the whole space for the
  anchor A/c and the pull pull/c. That is `argmin (c/2)‖W‖² - A·W + pull·loss(W v)`, which gets shorter as c rises: c
  is the root of one equation again.
* **Box.** Rows are independent: the score of row k, `g_k(s) = v·clip(A_k - pull·s·v)`, falls as s rises.
  OneHot: `s = g_k(s) - target_k`, row by row. Softmax: `p = exp(g_k(p - [k = y]) - m)` has one solution p_k, which
  falls as m rises; m is the root of `Σ p_k = 1`.

**What rounding can do there.** Let the computed slopes s' be the loss's slopes at scores that are off by a vector of
length e at most, `s' = slope(g(s') + error)`, g the exact scores of W(s'). Projections are firmly non-expansive, and
slopes of a convex function with curvature at most h are co-coercive, so

    ‖W(s') - W(s)‖² ≤ -pull·(s' - s)·(g(s') - g(s)) ≤ pull·(‖s' - s‖·e - ‖s' - s‖²/h) ≤ pull·h·e²/4.

So the step errs by at most `½·e·sqrt(pull·h)`. The numbers in (1) are at most `R·B` and tau, apart from a common one;
what is computed with relative errors, the slopes themselves, is among the errors of `IterateLearner.rounding`.

**Other losses** must be smooth. Projected gradient steps on a function that is 1-strongly convex and M-smooth
contract by `q = (M - 1)/(M + 1)`, so a step of length `r` ends within `r·q/(1 - q)` of the minimiser: iterate until
that is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, wrightomega

from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.multiclass import OneHot, ScoresLoss, Softmax
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss
from taciturn.kernel.problem.sets import Box, L2Ball, WholeSpace
from taciturn.kernel.problem.vector_loss import VectorLoss

TINY = 1e-280
"""With `pull·‖v‖²` below this a step on scores moves W by less than `sqrt(2·pull)·1e-140`: 1e-109, as ridges go."""

_LAST_BITS = 4.0 * 2.0**-52


def implicit_step(problem: Problem, x: Array, v: Array, y: float, eta: float, tolerance: float) -> Array:
    """One implicit step from `x` on the clipped example (v, y); `tolerance` is for losses that need a solver."""
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
    return _constrained_prox(problem, loss, anchor, v, y, pull)


def _constrained_prox(problem: Problem, loss: ScalarLoss, anchor: Array, v: Array, y: float, pull: float) -> Array:
    """Where the constraint is active: the root of `s - slope(v·Proj(anchor - pull·s·v))`."""
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
    q = (smoothness - 1.0) / (smoothness + 1.0)
    step = 2.0 / (smoothness + 1.0)
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


def steps_by_slopes(problem: Problem) -> bool:
    """Whether the step goes by slopes: for these losses and sets of the package, subclasses excluded.

    >>> steps_by_slopes(Problem(Softmax(3), L2Ball(1.0), dimension=2))
    True
    """
    return type(problem.loss) in (Softmax, OneHot) and type(problem.domain) in (WholeSpace, L2Ball, Box)


def prox_by_slopes(problem: Problem, anchor: Array, v: Array, y: float, pull: float) -> Array:
    """The step; `anchor` is the matrix A, its rows one after the other.

    >>> problem = Problem(Softmax(2), L2Ball(0.1), dimension=1)
    >>> prox_by_slopes(problem, np.zeros(2), np.ones(1), 0.0, pull=1.0).round(3)
    array([ 0.071, -0.071])
    """
    loss, domain = problem.loss, problem.domain
    assert isinstance(loss, ScoresLoss)
    tau = pull * float(v @ v)
    if tau < TINY:
        return domain.project(anchor)
    A = anchor.reshape(loss.classes, -1)
    free = (A - pull * np.outer(_slopes(loss, A @ v, y, tau), v)).ravel()
    if bool((domain.project(free) == free).all()):
        return free
    slopes = _slopes_in_ball if isinstance(domain, L2Ball) else _slopes_in_box  # the constraint is active
    return domain.project((A - pull * np.outer(slopes(problem, loss, A, v, y, pull), v)).ravel())


def _slopes(loss: ScoresLoss, a: Array, y: float, tau: float) -> Array:
    """The solution of `s = slope(a - tau·s, y)`."""
    targets = loss.targets(np.array([y]))[0]
    if isinstance(loss, OneHot):
        return np.asarray((a - targets) / (1.0 + tau))
    b = a + tau * targets
    b = b - np.max(b)

    def chances(m: float) -> Array:
        return np.asarray(wrightomega(b - m + np.log(tau)) / tau)

    most = float(logsumexp(b))
    return np.asarray(_chances(chances, most - tau, most) - targets)


def _chances(given: Callable[[float], Array], least: float, most: float) -> Array:
    """The p_k for the m with which their sum is 1."""
    p = given(root(lambda m: 1.0 - float(np.sum(given(m))), least, most))
    return p / np.sum(p)


def _slopes_in_ball(problem: Problem, loss: ScoresLoss, A: Array, v: Array, y: float, pull: float) -> Array:
    """The slopes for which the step, divided by c, ends at the boundary."""
    a = A @ v
    tau = pull * float(v @ v)
    radius = problem.radius

    def slopes(c: float) -> Array:
        return _slopes(loss, a / c, y, tau / c)

    def room(c: float) -> float:
        return c * radius / float(np.linalg.norm(A - pull * np.outer(slopes(c), v))) - 1.0

    farthest = float(np.linalg.norm(A)) + pull * problem.lipschitz
    return slopes(root(room, 1.0, max(1.0, farthest / radius) * (1.0 + 2.0**-40)))


def _slopes_in_box(problem: Problem, loss: ScoresLoss, A: Array, v: Array, y: float, pull: float) -> Array:
    """The slopes row by row: directly for OneHot, for every m for Softmax."""
    targets = loss.targets(np.array([y]))[0]
    project = problem.domain.project

    def score(k: int, s: float) -> float:
        return float(v @ project(A[k] - (pull * s) * v))

    def slope(k: int) -> float:
        most = problem.lipschitz / problem.norm_bound
        return root(lambda s: s - score(k, s) + targets[k], -most, most)

    def chance(k: int, m: float) -> float:
        return root(lambda p: p - float(np.exp(min(score(k, p - targets[k]) - m, 700.0))), 0.0, 1.0)

    rows = range(loss.classes)
    if isinstance(loss, OneHot):
        return np.array([slope(k) for k in rows])
    least, most = (float(logsumexp([score(k, end - targets[k]) for k in rows])) for end in (1.0, 0.0))
    return np.asarray(_chances(lambda m: np.array([chance(k, m) for k in rows]), least, most) - targets)


def root(rising: Callable[[float], float], low: float, high: float, close: float = 2.0**-70) -> float:
    """The root of `rising`, to the last bits; an end of the interval if there is none: no data may make this fail.

    >>> root(lambda s: s - 0.25, -1.0, 1.0), root(lambda s: s + 2.0, -1.0, 1.0)
    (0.25, -1.0)
    """
    from scipy.optimize import brentq  # here: it loads slowly, and few streams need it

    if not rising(low) < 0.0 < rising(high):
        return low if rising(low) >= 0.0 else high
    return float(brentq(rising, low, high, xtol=close, rtol=_LAST_BITS, maxiter=10_000, disp=False))
