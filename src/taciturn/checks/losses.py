"""Checks of a loss `phi(v·x, y)`: it is convex, and its slope, bounds and prox are correct."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.checks.streams import generator, in_ball
from taciturn.checks.suite import demand, skip
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.scalar_loss import ScalarLoss

_BOUNDS = ((1.0, 1.0, 1.0), (1.0, 10.0, 0.1), (0.3, 0.2, 5.0), (4.0, 2.0, 1.0))
"""Bounds on features, points and labels."""

_ROUND = 1e-11


@dataclass(frozen=True)
class Predictions:
    """A loss and its test case: sorted predictions, and labels."""

    loss: ScalarLoss
    u: Array
    labels: Array

    @property
    def scale(self) -> float:
        """The scale of rounding errors."""
        return 1.0 + float(np.max(np.abs(self.u)))


def predictions(loss: ScalarLoss, reach: float = 20.0) -> Predictions:
    """A loss on a grid that is finer around the labels."""
    labels = np.array([-1.0, 1.0]) if loss.labels == "sign" else np.array([-1.0, -0.4, 0.0, 1.0])
    near = np.concatenate([y + np.array([-1e-3, -1e-9, 0.0, 1e-9, 1e-3]) for y in labels])
    return Predictions(loss, np.unique(np.concatenate([np.linspace(-reach, reach, 161), near])), labels)


def slope_is_a_subgradient(case: Predictions) -> None:
    """The line through a point with the reported slope stays below the loss: convexity, and the right slope."""
    loss, u = case.loss, case.u
    for y in case.labels:
        values, slopes = np.asarray(loss.value(u, y)), np.asarray(loss.slope(u, y))
        lines = values[:, None] + slopes[:, None] * (u - u[:, None])
        i, j = np.unravel_index(int(np.argmax(lines - values)), lines.shape)
        fault = f"the tangent at {u[i]:.5g}, label {y:g}, passes above the loss at {u[j]:.5g}"
        demand(
            np.all(lines - values <= _ROUND * case.scale**2), fault, "Let slope be the derivative of a convex value."
        )


def slope_is_nondecreasing(case: Predictions) -> None:
    """On the grid, kinks included, slopes never decrease: only then does the implicit step have one solution."""
    for y in case.labels:
        falls = np.diff(case.loss.slope(case.u, y))
        fault = f"the slope falls after {case.u[int(np.argmin(falls))]:.5g}, label {y:g}"
        demand(np.all(falls >= -1e-15 * case.scale), fault, "Only convex losses are certified.")


def slope_bound_is_a_bound(case: Predictions) -> None:
    """No prediction within the bound has a steeper slope, at any label; every certificate is proportional to it."""
    for reach in (0.1, 1.0, float(np.max(np.abs(case.u)))):
        for label_bound in (0.5, 1.0):
            labels = np.sign(case.labels) if case.loss.labels == "sign" else case.labels * label_bound
            u = np.append(case.u[np.abs(case.u) <= reach], [-reach, reach])
            steepest = max(float(np.max(np.abs(case.loss.slope(u, y)))) for y in labels)
            stated = case.loss.slope_bound(reach, label_bound)
            fault = f"|u| ≤ {reach:g} and |y| ≤ {label_bound:g} have slopes up to {steepest:.6g}, slope_bound says "
            demand(steepest <= stated * (1.0 + 1e-12), f"{fault}{stated:.6g}", "State the steepest, rounded up.")


def curvature_is_a_bound(case: Predictions) -> None:
    """Slopes change by at most `curvature` times the distance: gradient steps contract only then."""
    if math.isinf(case.loss.curvature):
        skip("the loss states that it has kinks")
    for y in case.labels:
        bends = np.diff(case.loss.slope(case.u, y)) - case.loss.curvature * np.diff(case.u) * (1.0 + 1e-9)
        fault = f"the slope rises faster than its curvature, {case.loss.curvature:g}, around "
        fault += f"{case.u[int(np.argmax(bends))]:.5g}, label {y:g}"
        demand(np.all(bends <= 1e-12 * case.scale), fault, "State the largest second derivative, or infinity.")


def prox_satisfies_its_condition(case: Predictions) -> None:
    """`(z - u)/step` is a slope at `u = prox(z)`, up to the rounding of u: the step's certificate rests on it."""
    for z in case.u[::8]:
        for y in case.labels:
            for step in (1e-3, 0.4, 30.0):
                u = float(case.loss.prox(float(z), float(y), step))
                bits = 2.0**-46 * (abs(z) + abs(u) + step + 1.0)
                low = u - bits - z + step * float(case.loss.slope(u - bits, y))
                high = u + bits - z + step * float(case.loss.slope(u + bits, y))
                fault = f"prox({z:.5g}, {y:g}, {step:g}) = {u:.6g} is not where step·value(u) + ½(u - z)² is least"
                demand(low <= 0.0 <= high, fault, "Solve it to the last bits, or inherit prox.")


def variation_is_a_bound(case: Predictions) -> None:
    """`max - min` of the loss over predictions within the bound is at most `variation`, which calibrates EWOO."""
    for reach in (0.1, 1.0, float(np.max(np.abs(case.u)))):
        u = np.append(case.u[np.abs(case.u) <= reach], [-reach, reach])
        result = max(float(np.ptp(case.loss.value(u, y))) for y in case.labels)
        stated = case.loss.variation(reach, 1.0)
        fault = f"over |u| ≤ {reach:g} the loss varies by {result:.6g}, variation says {stated:.6g}"
        demand(result <= stated * (1.0 + 1e-12) + 1e-12, fault, "State the largest variation, rounded up.")


def gradient_diameter_is_a_bound(case: Predictions) -> str:
    """No two legal examples have gradients farther apart at one point: every certificate is a multiple of it."""
    used = 0.0
    for bounds in _BOUNDS:
        stated = case.loss.gradient_diameter(*bounds)
        distance = widest_pair(case.loss, *bounds)
        fault = f"with (feature_bound, radius, label_bound) = {bounds}, two gradients lie {distance:.6g} apart, and "
        demand(
            distance <= stated * (1.0 + 1e-12), f"{fault}gradient_diameter says {stated:.6g}", "Raise it, rounded up."
        )
        used = max(used, distance / stated)
    return f"the worst pair found uses {used:.1%} of the bound"


def label_diameter_is_a_bound(case: Predictions) -> str:
    """No two labels of one example have gradients farther apart; nor, if labels are signs, one of them and 0."""
    used, loss = 0.0, case.loss
    for R, B, Y in _BOUNDS:
        stated = loss.label_diameter(R, B, Y)
        u = np.linspace(-1.0, 1.0, 801)[:, None] * min(R * B, 1e3)
        y = np.array([-1.0, 1.0]) if loss.labels == "sign" else np.linspace(-Y, Y, 41)
        slopes = np.asarray(loss.slope(u, y[None, :]) + 0.0 * u)
        if loss.labels == "sign":
            slopes = np.column_stack([slopes, np.zeros(len(u))])
        distance = R * float(np.max(np.ptp(slopes, axis=1)))
        fault = f"with (feature_bound, radius, label_bound) = {(R, B, Y)}, gradients of two labels lie {distance:.6g} "
        demand(
            distance <= stated * (1.0 + 1e-12),
            f"{fault}apart, label_diameter says {stated:.6g}",
            "Raise it, rounded up.",
        )
        used = max(used, distance / stated)
    return f"the worst labels found use {used:.1%} of the bound"


def value_and_slope_are_elementwise(case: Predictions) -> None:
    """Values and slopes of arrays are those of their entries: blocks of examples are one call."""
    y = np.resize(case.labels, len(case.u))
    for function in (case.loss.value, case.loss.slope):
        each = [float(function(float(a), float(b))) for a, b in zip(case.u, y, strict=True)]
        alike = np.allclose(function(case.u, y), each, rtol=1e-13, atol=1e-13)
        demand(alike, f"{function.__name__} of an array is not that of its entries", "Write it with NumPy functions.")


def _apart(loss: ScalarLoss, R: float, B: float, Y: float, v: Array, y: Array, x: Array) -> Array:
    """Distance of the two gradients of every candidate, whose parts are first made legal."""
    v, x = in_ball(v, R), in_ball(x, B)
    y = np.where(y < 0.0, -1.0, 1.0) if loss.labels == "sign" else np.clip(y, -Y, Y)
    slopes = np.asarray(loss.slope(np.einsum("cnd,cd->cn", v, x), y))
    return np.asarray(np.linalg.norm(slopes[:, 0, None] * v[:, 0] - slopes[:, 1, None] * v[:, 1], axis=1))


def widest_pair(
    loss: ScalarLoss, R: float, B: float, Y: float, dimension: int = 2, rounds: int = 120, candidates: int = 200
) -> float:
    """The largest distance found by a population search with shrinking random steps; the best half replaces the other.

    >>> from taciturn import Hinge
    >>> 1.98 < widest_pair(Hinge(), 1.0, 1.0, 1.0) <= 2.0
    True
    """
    rng = generator(dimension)
    v, x = R * rng.normal(size=(candidates, 2, dimension)), B * rng.normal(size=(candidates, dimension))
    y = Y * rng.choice([-1.0, 1.0, 0.3], (candidates, 2))
    best = _apart(loss, R, B, Y, v, y, x)
    for step in np.geomspace(1.0, 1e-3, rounds):
        trial = [part + step * size * rng.normal(size=part.shape) for part, size in ((v, R), (y, Y), (x, B))]
        distance = _apart(loss, R, B, Y, *trial)
        better = distance > best
        for part, new in zip((v, y, x, best), (*trial, distance), strict=True):
            part[better] = new[better]
        ranked = np.argsort(best)
        for part in (v, y, x, best):
            part[ranked[: candidates // 2]] = part[ranked[candidates // 2 :]]
    return float(np.max(best))


CHECKS = (
    slope_is_a_subgradient,
    slope_is_nondecreasing,
    slope_bound_is_a_bound,
    curvature_is_a_bound,
    prox_satisfies_its_condition,
    variation_is_a_bound,
    gradient_diameter_is_a_bound,
    label_diameter_is_a_bound,
    value_and_slope_are_elementwise,
)
