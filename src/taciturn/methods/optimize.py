"""The minimiser of an objective over a convex set, as near as is asked, and provably so.

A projected gradient step `x⁺ = Proj(x - ∇F(x)/M)` on a function that is a-strongly convex and M-smooth contracts by
`1 - a/M`. So, with `kappa = M/a`, wherever `x` came from,

    ‖x⁺ - x*‖ ≤ (kappa - 1)·‖x⁺ - x‖ + kappa·e,                                                                (1)

if the step was computed with an error of at most `e`. This is what ends the search: a guess by Newton's method, on
models over the set; then steps with momentum; then, if ever needed, plain steps, of which `kappa·ln(D/tolerance)`
suffice from a distance D, whatever the data. Nothing is raised: the outcome is always within reach of (1).

An objective is the mean over examples of a data term, plus `(ridge/2)‖x‖²` and `tilt·x`: what a follower of the leader
minimises. It knows its gradient, how strongly and how smoothly it is convex, a Newton step, and an affine function
below its data term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ROUNDED_UP, ScalarLoss, Values
from taciturn.kernel.problem.sets import ConvexSet, L2Ball

_FIRST_STEPS = 6  # on the objective itself, before easier ones
_NEWTON_STEPS = 60
_MODEL_STEPS = 4_000
_HALVINGS = 40
BLOCK = 1024  # examples whose gradients are added up before they are added to the sum
_SAMPLE = 2**14  # examples of which a first guess and the curvature are computed, where there are many more
_QUASI_NEWTON_STEPS = 40
_UNIT = 2.0**-53


class Objective(Protocol):
    """A smooth, strongly convex function on R^d."""

    @property
    def ridge(self) -> float:
        """Its strong convexity."""

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient, ridge included."""

    def gradient(self, x: Array) -> Array:
        """The gradient at `x`, ridge included."""

    def model(self, x: Array) -> tuple[Array, Array] | None:
        """`(H, b)` of the second-order model `½x·Hx - b·x` around `x`; None where there is no Hessian."""

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        """The derivative of the function at `x + s·ahead`, as a function of s."""

    def stages(self) -> Sequence[Objective]:
        """Functions to minimise one after the other, each a good start for the next; the last is this one."""

    def below(self, x: Array) -> tuple[float, Array]:
        """`(c, g)` such that `c + g·z` is at most the data term, kinks included, at every z, and near it at `x`."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """`½x·Mx - u·x` plus the ridge: squared loss by its sufficient statistics, divided by the number of examples."""

    M: Array
    u: Array
    ridge: float
    smoothness: float
    constant: float = 0.0

    def gradient(self, x: Array) -> Array:
        return np.asarray(self.M @ x - self.u + self.ridge * x)

    def model(self, x: Array) -> tuple[Array, Array]:
        return self.M + self.ridge * np.eye(len(self.u)), self.u

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        return lambda s: float(self.gradient(x + s * ahead) @ ahead)

    def stages(self) -> Sequence[Objective]:
        return [self]

    def below(self, x: Array) -> tuple[float, Array]:
        return float(self.constant - 0.5 * x @ self.M @ x), self.M @ x - self.u


@dataclass(frozen=True, eq=False)
class Scalars:
    """The mean of `loss(v·x, y)` over clipped examples; kinks are smoothed by averaging over `width`.

    Averaged over `[u - width/2, u + width/2]` a loss has the slope `(loss(u + width/2) - loss(u - width/2))/width`: no
    steeper than the loss itself in that interval, with a curvature of at most twice the bound on slopes over `width`.
    `width = 0` leaves a smooth loss as it is.
    """

    problem: Problem
    V: Array
    y: Array
    ridge: float
    width: float = 0.0
    tilt: Array | float = 0.0
    loss: ScalarLoss = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.problem.loss, ScalarLoss)
        object.__setattr__(self, "loss", self.problem.loss)

    @property
    def smoothness(self) -> float:
        return float(mean_smoothness(self.problem, self.ridge, self.width))

    def gradient(self, x: Array) -> Array:
        """In blocks that fit into a processor's cache; so each entry is a sum of at most `summands` terms in a row."""
        total = np.zeros(len(x))
        for start in range(0, len(self.y), BLOCK):
            V, y = self.V[start : start + BLOCK], self.y[start : start + BLOCK]
            total += V.T @ self._slopes(V @ x, y)
        return np.asarray(total / len(self.y) + self.ridge * x + self.tilt)

    def slopes(self, u: Array) -> Array:
        """Slopes of the loss, or of its average."""
        return self._slopes(u, self.y)

    def _slopes(self, u: Array, y: Array) -> Array:
        if self.width == 0.0:
            return np.asarray(self.loss.slope(u, y), dtype=np.float64)
        low, high = u - self.width / 2.0, u + self.width / 2.0
        secant = (self.loss.value(high, y) - self.loss.value(low, y)) / (high - low)
        clipped = np.clip(secant, self.loss.slope(low, y), self.loss.slope(high, y))
        return np.asarray(clipped, dtype=np.float64)

    def model(self, x: Array) -> tuple[Array, Array]:
        u = self.V @ x
        reach = self.width / 2.0 or 2.0**-17
        bend = (self.loss.slope(u + reach, self.y) - self.loss.slope(u - reach, self.y)) / (2.0 * reach)
        H = (self.V.T * bend) @ self.V / len(self.y) + self.ridge * np.eye(len(x))
        return H, H @ x - self.gradient(x)

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        u = self.V @ x
        moved = self.V @ ahead
        first = float(np.sum((self.ridge * x + self.tilt) * ahead))
        second = self.ridge * float(ahead @ ahead)
        return lambda s: float(moved @ self.slopes(u + s * moved)) / len(self.y) + first + s * second

    def stages(self) -> Sequence[Objective]:
        """The loss averaged over widths that shrink to this one: Newton's method fails to converge at sharp kinks."""
        powers = range(14, 0, -2) if self.width > 0.0 else ()
        return [*(replace(self, width=self.width * 2.0**power) for power in powers), self]

    def below(self, x: Array) -> tuple[float, Array]:
        """The tangent at each example's prediction; with a width, the secant, lowered where the loss dips below it.

        Over the interval [a, b] of the average, the loss minus its secant is 0 at both ends and, by its slopes p and q
        there, at least `-(b - a)·(s - p)(q - s)/(q - p)`, s the secant's slope; outside it is positive.
        """
        u = self.V @ x
        s = self.slopes(u)
        low, high = u - self.width / 2.0, u + self.width / 2.0
        p, q = self.loss.slope(low, self.y), self.loss.slope(high, self.y)
        dip = (high - low) * (s - p) * (q - s) / np.maximum(q - p, 1e-300)
        touches = np.minimum(self.loss.value(low, self.y) - s * low, self.loss.value(high, self.y) - s * high)
        return float(np.mean(touches - dip)), np.asarray(self.V.T @ s / len(self.y) + self.tilt)


@dataclass(frozen=True, eq=False)
class Vectors:
    """The mean of a smooth loss that is not a function of `v·x` alone."""

    problem: Problem
    V: Array
    y: Array
    ridge: float
    tilt: Array | float = 0.0

    @property
    def smoothness(self) -> float:
        return float(mean_smoothness(self.problem, self.ridge))

    def gradient(self, x: Array) -> Array:
        return np.asarray(self._data_gradient(x) + self.ridge * x)

    def model(self, x: Array) -> None:
        return None

    def along(self, x: Array, ahead: Array) -> Callable[[float], float]:
        return lambda s: float(self.gradient(x + s * ahead) @ ahead)

    def stages(self) -> Sequence[Objective]:
        return [self]

    def below(self, x: Array) -> tuple[float, Array]:
        g = self._data_gradient(x)
        ridge = 0.5 * self.problem.ridge * float(x @ x)
        value = float(np.mean(self.problem.values(x, self.V, self.y) - ridge))
        return float(value + np.sum(self.tilt * x) - g @ x), g

    def _data_gradient(self, x: Array) -> Array:
        return np.asarray(self.problem.mean_gradient(x, self.V, self.y) + self.tilt)


def summands(t: Values) -> Values:
    """How many terms the sum of t gradients adds up in a row, at most: those of a block, and the blocks."""
    return np.minimum(t, BLOCK) + np.ceil(np.asarray(t) / BLOCK)


def mean_loss(problem: Problem, V: Array, y: Array, ridge: float, width: float = 0.0) -> Objective:
    """The objective of a problem's loss on clipped examples, with this ridge."""
    if isinstance(problem.loss, ScalarLoss):
        return Scalars(problem, V, y, ridge, width)
    return Vectors(problem, V, y, ridge)


def mean_smoothness(problem: Problem, ridge: Values, width: float = 0.0) -> Values:
    """Smoothness of the mean loss with this ridge, the loss averaged over `width`."""
    if not isinstance(problem.loss, ScalarLoss) or width == 0.0:
        return problem.smoothness - problem.ridge + ridge
    assert problem.label_bound is not None
    reach = problem.norm_bound * problem.radius + width
    curvature = 2.0 * float(problem.loss.slope_bound(reach, problem.label_bound)) / width
    return curvature * problem.norm_bound**2 * ROUNDED_UP + ridge


def minimiser(objective: Objective, domain: ConvexSet, start: Array, tolerance: float, farthest: float) -> Array:
    """A point within `tolerance` of the minimiser, rounding errors apart, given that `start` is within `farthest`.

    >>> parabola = Quadratic(np.eye(2), np.array([3.0, 4.0]), ridge=1.0, smoothness=2.0)
    >>> minimiser(parabola, L2Ball(1.0), np.zeros(2), 1e-9, farthest=2.0)
    array([0.6, 0.8])
    """
    short, enough, plain = map(float, search_limits(objective.smoothness, objective.ridge, tolerance, farthest))
    x, done = descend(objective, domain, start, short, int(enough))
    return x if done else _plain(objective, domain, domain.project(start), short, int(plain))


def search_limits(smoothness: Values, ridge: Values, tolerance: Values, farthest: float) -> tuple[Array, Array, Array]:
    """How short a last step must be, and how many steps with momentum, or plain ones, suffice for that.

    >>> [float(limit) for limit in search_limits(2.0, 1.0, 1e-9, farthest=2.0)]
    [1e-09, 65.0, 44.0]
    """
    kappa = np.asarray(smoothness) / ridge
    digits = np.log(np.maximum(farthest / tolerance, 2.0))
    momentum = np.ceil(2.0 * np.sqrt(kappa) * (digits + np.log(kappa + 1.0))) + 1.0
    return tolerance / np.maximum(kappa - 1.0, 1e-9), momentum, np.ceil(kappa * digits) + 1.0


def descend(objective: Objective, domain: ConvexSet, start: Array, short: float, count: int) -> tuple[Array, bool]:
    """Newton's method, then at most `count` steps with momentum: a point, and whether a last step was `short`."""
    x, done = _step(objective, domain, domain.project(start), short)
    if not done and isinstance(objective, Scalars) and objective.width == 0.0 and len(objective.y) >= 4 * _SAMPLE:
        x, done = _from_sample(objective, domain, x, short)
    if not done:
        x, done = _newton(objective, domain, x, short, _FIRST_STEPS)
    for stage in () if done else objective.stages():
        x, done = _newton(stage, domain, x, short, _NEWTON_STEPS)
    momentum = _momentum(objective.smoothness / objective.ridge)
    step = partial(_step, objective, domain, short=short)
    return (x, done) if done else _with_momentum(step, domain, x, momentum, count)


def _step(objective: Objective, domain: ConvexSet, x: Array, short: float) -> tuple[Array, bool]:
    """A projected gradient step, and whether it was short."""
    following = domain.project(x - objective.gradient(x) / objective.smoothness)
    return following, not float(np.linalg.norm(following - x)) > short  # what is not a number ends the search


def _plain(objective: Objective, domain: ConvexSet, x: Array, short: float, count: int) -> Array:
    """Plain steps, until one is short enough."""
    for _ in range(count):
        x, done = _step(objective, domain, x, short)
        if done:
            break
    return x


def rounding_slack(
    problem: Problem, t: Values, ridge: Values, longest: float, steepest: Values, width: float
) -> Values:
    """`kappa·e` of (1): how far rounding errors may keep the search from the minimiser of a mean of t losses.

    The mean gradient of t examples, or of sums of them, errs by `2·(t + size + 32)·2⁻⁵³` of the longest one,
    `steepest`; a slope errs with the prediction at which it is taken, and a secant by the rounding of the values of
    which it is the difference; the projected step by `16·(size + 8)·2⁻⁵³` of the numbers in it, points of norm up to
    `longest`.
    """
    smoothness = mean_smoothness(problem, ridge, width)
    size = problem.size
    in_mean = 2.0 * (t + size + 32) * _UNIT * steepest
    in_slopes = 4.0 * (size + 8) * _UNIT * longest * (smoothness - ridge)
    in_step = 16.0 * (size + 8) * _UNIT * (longest + steepest / smoothness)
    return (in_mean + in_slopes + _in_secants(problem, longest, width)) / ridge + smoothness / ridge * in_step


def _in_secants(problem: Problem, longest: float, width: float) -> float:
    loss, bound = problem.loss, problem.label_bound
    if width == 0.0 or bound is None or not isinstance(loss, ScalarLoss):
        return 0.0
    reach = 2.0 * problem.norm_bound * longest
    largest = max(abs(float(loss.value(u, y))) for u in (-reach, reach) for y in (-bound, bound))
    return 16.0 * _UNIT * problem.norm_bound * largest / width


def _momentum(kappa: float) -> float:
    return (math.sqrt(kappa) - 1.0) / (math.sqrt(kappa) + 1.0)


def _with_momentum(
    step: Callable[[Array], tuple[Array, bool]], domain: ConvexSet, x: Array, momentum: float, count: int
) -> tuple[Array, bool]:
    """Nesterov's steps with constant momentum, inside the set, where constants hold; until one is short enough."""
    ahead = x
    for _ in range(count):
        following, done = step(ahead)
        if done:
            return following, True
        x, ahead = following, domain.project(following + momentum * (following - x))
    return x, False


def _newton(objective: Objective, domain: ConvexSet, x: Array, short: float, count: int) -> tuple[Array, bool]:
    """Steps to the minimiser of a model over the set, each as long as the function decreases; last, a gradient step."""
    for _ in range(count):
        model = objective.model(x)
        if model is None:
            break
        ahead = quadratic_minimiser(*model, domain, x) - x
        x = domain.project(x + _falling(objective.along(x, ahead)) * ahead)
        nearer, done = _step(objective, domain, x, short)
        if done or float(np.linalg.norm(ahead)) <= 2.0**-50 * float(np.linalg.norm(x)):
            return nearer, done
    return x, False


def _from_sample(objective: Scalars, domain: ConvexSet, x: Array, short: float) -> tuple[Array, bool]:
    """A guess from some of the examples, then quasi-Newton steps (BFGS) on all of them, from the curvature of some.

    The curvature of all of them, which Newton's method asks for at every step, costs as much as many gradients.
    """
    some = slice(None, None, len(objective.y) // _SAMPLE)
    sample = replace(objective, V=np.ascontiguousarray(objective.V[some]), y=objective.y[some])
    enough = 2.0**-24 * objective.problem.lipschitz / objective.smoothness
    x, _ = _newton(sample, domain, x, max(short, enough), _NEWTON_STEPS)
    curvature, _ = sample.model(x)
    try:
        inverse = np.linalg.inv(curvature)
    except np.linalg.LinAlgError:
        return x, False
    gradient = objective.gradient(x)
    for _ in range(_QUASI_NEWTON_STEPS):
        ahead = -inverse @ gradient
        falls = float(gradient @ ahead)
        if not falls < 0.0:
            break
        s = 1.0
        new = gradient
        for _ in range(_HALVINGS):  # until the function decreases up to there, or nearly
            new = objective.gradient(x + s * ahead)
            if float(new @ ahead) <= -0.5 * falls:
                break
            s /= 2.0
        moved, changed = s * ahead, new - gradient
        x, gradient = x + moved, new
        bent = float(moved @ changed)
        if bent > 0.0:
            change = np.eye(len(x)) - np.outer(moved, changed) / bent
            inverse = change @ inverse @ change.T + np.outer(moved, moved) / bent
        if float(np.linalg.norm(gradient)) <= 0.5 * short * objective.smoothness:
            break
    return _step(objective, domain, domain.project(x), short)


def _falling(derivative: Callable[[float], float]) -> float:
    """Line search: how far, at most to 1, a convex function decreases, to a tenth."""
    if derivative(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if derivative(middle) > 0.0 else (middle, high)
        if high - low <= 0.1 * high:
            break
    return low or high


def quadratic_minimiser(H: Array, b: Array, domain: ConvexSet, start: Array) -> Array:
    """`argmin ½x·Hx - b·x` over the set.

    Where the constraint is active: by eigenvectors in a ball, by projected steps in other sets.

    >>> from taciturn import Simplex
    >>> quadratic_minimiser(np.eye(2), np.array([2.0, 0.0]), Simplex(), np.ones(2) / 2).round(9)
    array([1., 0.])
    """
    if not (np.isfinite(H).all() and np.isfinite(b).all()):
        return start
    free = _solved(H, b)
    if bool((domain.project(free.copy()) == free).all()):
        return free
    values, vectors = np.linalg.eigh(H)
    values = np.maximum(values, 1e-300)
    along = vectors.T @ b
    if isinstance(domain, L2Ball):
        return domain.project(np.asarray(vectors @ (along / (values + _multiplier(values, along, domain.radius)))))

    def step(x: Array) -> tuple[Array, bool]:
        following = domain.project(x - (H @ x - b) / values[-1])
        moved = following - x
        return following, math.sqrt(moved @ moved) <= 2.0**-52 * math.sqrt(following @ following)

    return _with_momentum(step, domain, start, _momentum(float(values[-1] / values[0])), _MODEL_STEPS)[0]


def _solved(H: Array, b: Array) -> Array:
    """`H⁻¹b`, or 0 where rounding has made H singular: no data may make this fail."""
    try:
        return np.asarray(np.linalg.solve(H, b))
    except np.linalg.LinAlgError:
        return np.zeros_like(b)


def _multiplier(values: Array, along: Array, radius: float) -> float:
    """The extra ridge under which the free minimiser has length `radius`."""
    from scipy.optimize import brentq  # here: it loads slowly, and few streams need it

    def excess(extra: float) -> float:
        return float(np.linalg.norm(along / (values + extra))) / radius - 1.0

    most = float(np.linalg.norm(along)) / radius
    if excess(0.0) <= 0.0 or excess(most) >= 0.0:
        return 0.0 if excess(0.0) <= 0.0 else most
    return float(brentq(excess, 0.0, most, xtol=1e-300, rtol=4.0 * 2.0**-52, maxiter=500, disp=False))
