"""The privacy cost of objective perturbation: publishing the minimiser of a perturbed objective.

Let `J(x) = Σ_i loss(v_i·x, y_i) + (lam/2)‖x‖²` and `x(b) = argmin J(x) + b·x`, `b ~ N(0, s² I)`, on R^d,
for a loss whose slope has Lipschitz constant `curvature`; `‖v‖ ≤ R`; and let two neighbouring gradients differ by at
most `Gd`. Then x(b) is (epsilon, delta)-private with, for `m = Gd/s`, `c = ln(1 + curvature·R²/lam)` and
`e = epsilon - c - m²/2`,

    delta = E (1 - exp(e - m·r))₊,

where r is the length of a standard Gaussian in one dimension, if an example's term is replaced by 0 or by that of the
same features with another label, or in two, if by that of another example.

*Proof.* `b = -∇J(x)` is a bijection, Lipschitz in both directions, so x has the density
`p(x) = phi(∇J(x))·det ∇²J(x)`, phi that of b. For the neighbour `∇J' = ∇J + D(x)`, `‖D(x)‖ ≤ Gd`, and D(x) lies in the
span of the examples that differ, of dimension 1 or 2 whatever x is. So the first factor changes by
`exp((2·b·D + ‖D‖²)/(2s²))`, of exponent at most `m·r + m²/2` with r the length of b/s projected on that span. The
Hessians are `A + h·v vᵀ` and `A + h'·v' v'ᵀ` with `A ≥ lam·I` and `0 ≤ h, h' ≤ curvature`, so their determinants,
`det A·(1 + h·vᵀA⁻¹v)`, have a ratio between `exp(-c)` and `exp(c)`. The log-ratio Z of the densities is thus at most
`c + m²/2 + m·r`, and `E (1 - exp(epsilon - Z))₊` grows with Z. ∎

**Composition.** The same bound on Z holds given whatever was released before, so that the moments of several releases
multiply: `ln E exp(a·Z)` is at most `a·(c + m²/2)` plus, with `u = a·m`, `ln(2·exp(u²/2)·Phi(u))` in one dimension and
`ln(1 + u·sqrt(2 pi)·exp(u²/2)·Phi(u))` in two, the moments of the length of a Gaussian (`log_moment`). It is `a` times
the Rényi divergence of order `1 + a`, which adds up over adaptive releases (Mironov, *Rényi Differential Privacy*,
2017, Proposition 1). For K, the sum of all of them, and any `a > 0`, `delta = exp(K - a·epsilon)·a^a/(1 + a)^(1 + a)`:
that is the largest of `(1 - exp(-z))·exp(-a·z)`, so `(1 - exp(epsilon - Z))₊` is at most that times
`exp(a·(Z - epsilon))` (`epsilon_of_moments`; Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential
Privacy*, 2020, Proposition 12).

(The argument is that of Chaudhuri, Monteleoni, Sarwate, *Differentially Private Empirical Risk Minimization*, 2011, who
have Gamma noise and pure privacy, and, with Gaussian noise and looser constants, of Kifer, Smith, Thakurta, *Private
Convex Empirical Risk Minimization and High-dimensional Regression*, 2012. Redberg, Koskela, Wang, *Improving the
Privacy and Practicality of Objective Perturbation for Differentially Private Linear Learners*, 2023, sharpen it in a
similar way.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr

from taciturn.errors import integer, not_negative, positive
from taciturn.kernel.accounting.gdp import SMALLEST, check_delta, largest_true

_UP = 1.0 + 1e-11


def delta_perturbed(epsilon: float, m: float, hessian: float, dimensions: int) -> float:
    """The delta at `epsilon`, rounded up, for `m = Gd/s`, `hessian = c`, and 1 or 2 `dimensions`.

    In one dimension it is `2·(Phi(-r) - exp(e + m²/2)·Phi(-r - m))`, in two `m·sqrt(2 pi)·exp(e + m²/2)·Phi(-r - m)`,
    with `r = e/m`, if `e ≥ 0`.

    >>> round(delta_perturbed(1.0, 0.2, 0.01, dimensions=1), 9)
    4.6e-08
    """
    epsilon, m, hessian = not_negative("epsilon", epsilon), not_negative("m", m), not_negative("hessian", hessian)
    dimensions = integer("dimensions", dimensions)
    e = epsilon - hessian - m * m / 2.0
    if e < 0.0:
        return 1.0
    tail = e + m * m / 2.0 + float(log_ndtr(-e / m - m))
    if dimensions == 2:
        ideal = m * math.sqrt(2.0 * math.pi) * math.exp(tail)
    else:
        beyond = float(log_ndtr(-e / m))
        lost = 1e-13 * (1.0 + abs(beyond) + epsilon)  # what the subtraction may have cancelled
        ideal = 2.0 * math.exp(beyond) * (max(-math.expm1(tail - beyond), 0.0) + lost)
    return min(1.0, max(ideal * _UP + SMALLEST, SMALLEST))


def epsilon_perturbed(delta: float, m: float, hessian: float, dimensions: int) -> float:
    """The least epsilon at `delta`, rounded up: `delta_perturbed` falls as epsilon rises.

    >>> epsilon = epsilon_perturbed(1e-6, 0.2, 0.01, dimensions=2)
    >>> delta_perturbed(epsilon, 0.2, 0.01, 2) <= 1e-6 < delta_perturbed(0.999 * epsilon, 0.2, 0.01, 2)
    True
    """
    delta, m, hessian = check_delta(delta), not_negative("m", m), not_negative("hessian", hessian)
    low, high = 0.0, 1.0 + hessian + m * m / 2.0
    while delta_perturbed(high, m, hessian, dimensions) > delta:
        low, high = high, 2.0 * high
    for _ in range(64):
        middle = low + (high - low) / 2.0
        low, high = (middle, high) if delta_perturbed(middle, m, hessian, dimensions) > delta else (low, middle)
    return high


def log_moment(a: float, m: float, hessian: float, dimensions: int) -> float:
    """A bound on `ln E exp(a·Z)`, Z the log-ratio of the densities of one release, for `a > 0`.

    >>> round(log_moment(2.0, 0.2, 0.01, dimensions=1), 6)
    0.410671
    """
    a, m, hessian = positive("a", a), not_negative("m", m), not_negative("hessian", hessian)
    dimensions = integer("dimensions", dimensions)
    u = a * m
    tail = u * u / 2.0 + float(log_ndtr(u))
    if dimensions == 1:
        length = math.log(2.0) + tail
    else:
        length = float(np.logaddexp(0.0, math.log(u * math.sqrt(2.0 * math.pi)) + tail)) if u > 0.0 else 0.0
    return a * (hessian + m * m / 2.0) + length


def epsilon_of_moments(delta: float, log_moments: Callable[[float], float]) -> float:
    """The epsilon at `delta`, rounded up, of releases for which `log_moments(a)` bounds `ln E exp(a·Z)`, for any a > 0.

    Every `a` gives a valid epsilon; the least of 400 of them, between .1 and 10⁶, is returned.

    >>> round(epsilon_of_moments(1e-6, lambda a: log_moment(a, 0.2, 0.01, 2)), 2)
    1.01
    """
    delta = check_delta(delta)
    least = math.inf
    for a in np.geomspace(0.1, 1e6, 400).tolist():
        spent = log_moments(a) - math.log(delta) + a * math.log(a) - (1.0 + a) * math.log1p(a)
        least = min(least, spent / a)
    return max(least, 0.0) * (1.0 + 1e-9) + 1e-12


def shift_of(epsilon: float, delta: float, hessian: float, dimensions: int) -> float:
    """The largest `m = Gd/s` that keeps (epsilon, delta); 0 if the Hessian alone costs more than epsilon.

    >>> shift_of(1.0, 1e-6, 0.01, dimensions=2) < shift_of(1.0, 1e-6, 0.01, dimensions=1)
    True
    """
    epsilon, hessian = not_negative("epsilon", epsilon), not_negative("hessian", hessian)
    delta, dimensions = check_delta(delta), integer("dimensions", dimensions)
    if hessian >= epsilon:
        return 0.0
    return largest_true(lambda m: delta_perturbed(epsilon, m, hessian, dimensions) <= delta)
