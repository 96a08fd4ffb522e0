"""Zero-concentrated differential privacy, for costs that are not Gaussian.

A mechanism is rho-zCDP if its Rényi divergence of every order a > 1 is at most `a·rho`. Costs add, adaptively too,
and mu-GDP implies (mu²/2)-zCDP (Bun, Steinke, *Concentrated Differential Privacy*, 2016, Lemma 1.7 and Proposition
1.6); the converse is false. The conversion used is (Canonne, Kamath, Steinke, *The Discrete Gaussian for
Differential Privacy*, 2020, Corollary 13)

    delta(epsilon) = inf over a > 1 of exp((a - 1)·(a·rho - epsilon))·(1 - 1/a)^a/(a - 1).

Every a gives a valid bound, so a minimiser found approximately errs to the safe side.
"""

from __future__ import annotations

import math

from taciturn.accounting.gdp import SMALLEST, check_delta, largest_true, last_true
from taciturn.errors import InvalidInput, float_or_nan, not_negative

_UNIT = 2.0**-50


def delta_of_rho(epsilon: float, rho: float) -> float:
    """A delta for which rho-zCDP implies (epsilon, delta)-DP, the least that the conversion gives.

    >>> f"{delta_of_rho(1.0, 0.02):.2e}"
    '8.83e-08'
    """
    epsilon, rho = float_or_nan(epsilon), float_or_nan(rho)
    if not (epsilon >= 0.0 and rho >= 0.0):
        raise InvalidInput(f"epsilon and rho must not be negative, got {epsilon} and {rho}.")
    if rho == 0.0 or math.isinf(rho):
        return 0.0 if rho == 0.0 else 1.0

    from scipy.optimize import minimize_scalar  # here: it loads slowly, and few streams need it

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)  # a - 1
        slack = _UNIT * excess * ((1.0 + excess) * rho + epsilon)
        return (
            excess * ((1.0 + excess) * rho - epsilon) + slack - excess * math.log1p(1.0 / excess) - math.log1p(excess)
        )

    best = minimize_scalar(log_delta, bounds=(-40.0, 60.0), method="bounded", options={"xatol": 1e-9})
    return min(1.0, max(math.exp(min(float(best.fun), 0.0)) * (1.0 + 1e-12), SMALLEST))


def epsilon_of_rho(delta: float, rho: float) -> float:
    """An epsilon for which rho-zCDP implies (epsilon, delta)-DP, the least that the conversion gives.

    >>> round(epsilon_of_rho(1e-6, 0.02), 3)
    0.9
    """
    delta, rho = check_delta(delta), float_or_nan(rho)
    if math.isinf(rho) or delta_of_rho(0.0, rho) <= delta:
        return rho if math.isinf(rho) else 0.0
    high = 1.0
    while delta_of_rho(high, rho) > delta:
        high *= 2.0
        if math.isinf(high):
            return high
    return last_true(lambda e: delta_of_rho(e, rho) <= delta, high, 0.0)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho for which the conversion gives (epsilon, delta)-DP.

    >>> round(rho_of(1.0, 1e-6), 4)
    0.0244
    """
    epsilon, delta = not_negative("epsilon", epsilon), check_delta(delta)
    return largest_true(lambda r: delta_of_rho(epsilon, r) <= delta)
