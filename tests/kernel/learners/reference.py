"""The implicit step in high precision, from its optimality condition: what the fast one is compared with."""

from __future__ import annotations

import math

import mpmath as mp

from instances import Diagonal, LogCosh
from taciturn import (
    Absolute,
    Box,
    HalfSpace,
    Hinge,
    Huber,
    L1Ball,
    L2Ball,
    Linear,
    Logistic,
    Problem,
    Quantile,
    Simplex,
    Squared,
    WholeSpace,
)
from taciturn.kernel.problem.scalar_loss import Smoothed

PRECISION = 240
Vector = list[mp.mpf]


def exactly(x) -> Vector:
    """The very numbers of a float array."""
    return [mp.mpf(float(a)) for a in x]


def inner(a: Vector, b: Vector) -> mp.mpf:
    return mp.fsum(p * q for p, q in zip(a, b, strict=True))


def distance(a, b) -> float:
    """Between two points, given as floats or exactly; rounded once."""
    with mp.workprec(PRECISION):
        return float(mp.sqrt(mp.fsum((mp.mpf(p) - mp.mpf(q)) ** 2 for p, q in zip(a, b, strict=True))))


def project(domain, x: Vector) -> Vector:
    """The nearest point of the set, from the set's definition."""
    match domain:
        case WholeSpace():
            return x
        case L2Ball(radius=r):
            norm = mp.sqrt(inner(x, x))
            return x if norm <= r else [a * mp.mpf(r) / norm for a in x]
        case Box(low=low, high=high):
            return [min(max(a, mp.mpf(low)), mp.mpf(high)) for a in x]
        case HalfSpace(normal=normal, offset=offset):
            n = exactly(normal)
            excess = max(inner(n, x) - mp.mpf(offset), mp.mpf(0)) / inner(n, n)
            return [a - excess * b for a, b in zip(x, n, strict=True)]
        case Simplex(total=total):
            return _simplex(x, mp.mpf(total))
        case L1Ball(radius=r):
            if mp.fsum(map(abs, x)) <= r:
                return x
            return [mp.sign(a) * b for a, b in zip(x, _simplex([abs(a) for a in x], mp.mpf(r)), strict=True)]
        case Diagonal(length=length):
            along = mp.fsum(x) / mp.sqrt(len(x))
            return [min(max(along, -mp.mpf(length)), mp.mpf(length)) / mp.sqrt(len(x))] * len(x)
    raise TypeError(f"no reference projection on {domain}")


def _simplex(x: Vector, total: mp.mpf) -> Vector:
    """Lower the level until what stands above it adds up to the total."""
    falling = sorted(x, reverse=True)
    kept = [(mp.fsum(falling[:k]) - total) / k for k in range(1, len(x) + 1)]
    level = max(kept)
    return [max(a - level, mp.mpf(0)) for a in x]


def value(loss, u: mp.mpf, y: float) -> mp.mpf:
    """The loss, as it is written in its docstring."""
    match loss:
        case Squared():
            return (u - y) ** 2 / 2
        case Logistic():
            return mp.log(1 + mp.exp(-y * u))
        case Hinge():
            return max(mp.mpf(0), 1 - y * u)
        case Quantile(level=level):
            return max(mp.mpf(level) * (y - u), (1 - mp.mpf(level)) * (u - y))
        case Absolute():
            return abs(u - y)
        case Huber(width=width):
            far = abs(u - y)
            return far**2 / 2 if far <= width else mp.mpf(width) * (far - mp.mpf(width) / 2)
        case Linear():
            return y * u
        case LogCosh():
            return mp.log(mp.cosh(u - y))
    raise TypeError(f"no reference value of {loss}")


def slope(loss, u: mp.mpf, y: float) -> mp.mpf:
    """Some subderivative of the loss."""
    match loss:
        case Squared():
            return u - y
        case Logistic():
            return -y / (1 + mp.exp(y * u))
        case Hinge():
            return mp.mpf(-y) if y * u < 1 else mp.mpf(0)
        case Quantile(level=level):
            return -mp.mpf(level) if u < y else 1 - mp.mpf(level)
        case Absolute():
            return mp.mpf(-1 if u < y else 1)
        case Huber(width=width):
            return min(max(u - y, -mp.mpf(width)), mp.mpf(width))
        case Linear():
            return mp.mpf(y)
        case LogCosh():
            return mp.tanh(u - y)
        case Smoothed(loss=kinked, width=width):
            return (u - _beyond_the_kink(kinked, u, y, mp.mpf(width))) / mp.mpf(width)
    raise TypeError(f"no reference slope of {loss}")


def _beyond_the_kink(loss, u: mp.mpf, y: float, width: mp.mpf) -> mp.mpf:
    """The prox of a loss made of two straight lines: over the kink on either side, or at it."""
    kink = mp.mpf(y)  # hinge: y·u = 1, and y is its own inverse
    down, up = (u - width * slope(loss, kink + side, y) for side in (1, -1))
    return down if down > kink else up if up < kink else kink


def objective(problem: Problem, x, v, y: float, eta: float, z: Vector) -> mp.mpf:
    """`½‖z - x‖² + eta·(loss(z) + (ridge/2)‖z‖²)`."""
    step = [a - b for a, b in zip(z, exactly(x), strict=True)]
    data = value(problem.loss, inner(exactly(v), z), y)
    return inner(step, step) / 2 + mp.mpf(eta) * (data + mp.mpf(problem.ridge) / 2 * inner(z, z))


def implicit_step(problem: Problem, x, v, y: float, eta: float) -> Vector:
    """The minimiser of `objective` inside the set, by bisection on the slope to about 60 digits."""
    with mp.workprec(PRECISION):
        x, v, eta = exactly(x), exactly(v), mp.mpf(eta)
        c = 1 + eta * mp.mpf(problem.ridge)

        def at(s: mp.mpf) -> Vector:
            return project(problem.domain, [(a - eta * s * b) / c for a, b in zip(x, v, strict=True)])

        high = mp.mpf(problem.lipschitz) / mp.mpf(math.nextafter(problem.norm_bound, 0.0))
        low = -high
        for _ in range(PRECISION - 40):
            middle = (low + high) / 2
            rises = middle > slope(problem.loss, inner(v, at(middle)), y)
            low, high = (low, middle) if rises else (middle, high)
        return at((low + high) / 2)
