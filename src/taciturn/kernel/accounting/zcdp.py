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
from collections.abc import Callable

from taciturn.kernel.accounting.gdp import SMALLEST, check_delta, largest_true, last_true
from taciturn.kernel.errors import InvalidInput, float_or_nan, not_negative

_UNIT = 2.0**-50
_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
_FINEST = math.sqrt(2.2e-16)  # relative distance of two points whose values can differ


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

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)  # a - 1
        slack = _UNIT * excess * ((1.0 + excess) * rho + epsilon)
        return (
            excess * ((1.0 + excess) * rho - epsilon) + slack - excess * math.log1p(1.0 / excess) - math.log1p(excess)
        )

    best = least_value(log_delta, -40.0, 60.0, within=1e-9)
    return min(1.0, max(math.exp(min(best, 0.0)) * (1.0 + 1e-12), SMALLEST))


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


def least_value(function: Callable[[float], float], low: float, high: float, within: float) -> float:
    """The least value of a function that falls and then rises, whose place is found to `within`.

    By golden sections, and by parabolas through the three best points where these are expected to gain more (Brent,
    *Algorithms for Minimization without Derivatives*, 1973, chapter 5). Of any function it is a value that it takes.

    >>> least_value(lambda x: (x - 2.0) ** 2 + 3.0, 0.0, 10.0, within=1e-9)
    3.0
    """
    best = second = third = low + _GOLDEN * (high - low)
    of_best = of_second = of_third = function(best)
    step = before = 0.0
    for _ in range(499):
        middle = 0.5 * (low + high)
        near = _FINEST * abs(best) + within / 3.0
        if not abs(best - middle) > 2.0 * near - 0.5 * (high - low):
            break
        golden = True
        if abs(before) > near:
            r = (best - second) * (of_best - of_third)
            q = (best - third) * (of_best - of_second)
            p = (best - third) * q - (best - second) * r
            q = 2.0 * (q - r)
            p, q = -p if q > 0.0 else p, abs(q)
            r, before = before, step
            if abs(p) < abs(0.5 * q * r) and q * (low - best) < p < q * (high - best):
                golden, step = False, p / q
                if min(best + step - low, high - (best + step)) < 2.0 * near:
                    step = -near if middle < best else near
        if golden:
            before = low - best if best >= middle else high - best
            step = _GOLDEN * before
        x = best - max(-step, near) if step < 0.0 else best + max(step, near)
        value = function(x)
        if value <= of_best:
            low, high = (best, high) if x >= best else (low, best)
            third, of_third, second, of_second, best, of_best = second, of_second, best, of_best, x, value
            continue
        low, high = (x, high) if x < best else (low, x)
        if value <= of_second or second == best:
            third, of_third, second, of_second = second, of_second, x, value
        elif value <= of_third or third in (best, second):
            third, of_third = x, value
    return of_best
