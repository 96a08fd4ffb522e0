"""Gaussian differential privacy: exact conversions to and from (epsilon, delta), rounded to the safe side.

A release `h_k + N(0, sigma_k² I)`, k = 1..K, where one example moves `h_k` by at most `S_k`, is as hard
to tell from its neighbour as N(0, 1) is from N(mu, 1), with `mu² = Σ S_k²/sigma_k²` (Dong, Roth, Su,
*Gaussian Differential Privacy*, 2022, Theorem 2.7 and Corollary 3.3). This holds for adaptive streams too.
Translated to (epsilon, delta) without loss (Balle, Wang, *Improving the Gaussian Mechanism*, 2018, Theorem 8):

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - exp(epsilon)·Phi(-epsilon/mu - mu/2)

**How it is computed.** With `x = epsilon/mu - mu/2` the identity `exp(epsilon)·phi(x + mu) = phi(x)` turns it into

    delta = phi(x)·(M(x) - M(x + mu)),      M(z) = Phi(-z)/phi(z), the Mills ratio,

in which no exponentials cancel. What cancellation is left (tiny mu) is caught by the convexity of M:
`M(x) - M(x + mu) ≤ mu·(1 - x·M(x)) ≤ mu/(1 + x²)` for x ≥ 0. Every result errs to the safe side: `delta_of` and
`epsilon_of` are upper bounds, `mu_of` is a lower bound, within a relative 1e-7 of the truth for
mu above 1e-12 and delta above 1e-300, and usually within 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.special import erfcx, ndtr

from taciturn.kernel.errors import InvalidInput, float_or_nan, not_negative, positive, value_or_type

_UNIT = 2.0**-52
_ROOT_2, _ROOT_2_PI, _ROOT_HALF_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi), math.sqrt(math.pi / 2.0)
_HOPELESS = 1e7  # no noise to speak of: nothing is computed, nothing is promised
SMALLEST = 2.0**-1022  # the least normal double: an upper bound where the true delta underflows


@dataclass(frozen=True)
class Privacy:
    """A privacy budget: the whole published sequence shall be (epsilon, delta)-differentially private.

    Examples
    --------
    >>> Privacy(epsilon=1.0, delta=1e-6)
    Privacy(epsilon=1.0, delta=1e-06)
    >>> round(Privacy(1.0, 1e-6).mu, 6)
    0.236704
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon = positive("epsilon", self.epsilon, "Typical budgets lie between 0.1 and 10.")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", check_delta(self.delta))

    @property
    def mu(self) -> float:
        """The largest `mu` that this budget allows, rounded down."""
        return mu_of(self.epsilon, self.delta)


def delta_of(epsilon: float, mu: float) -> float:
    """The least delta for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    >>> f"{delta_of(1.0, 0.236704):.4e}"
    '9.9997e-07'
    >>> delta_of(1.0, 0.0)
    0.0
    """
    epsilon, mu = float_or_nan(epsilon), float_or_nan(mu)
    if not (epsilon >= 0.0 and mu >= 0.0):
        raise InvalidInput(f"epsilon and mu must not be negative, got {epsilon} and {mu}.")
    return _delta(epsilon, mu)


def _delta(epsilon: float, mu: float) -> float:
    """`delta_of` of numbers that were validated before."""
    if mu == 0.0:
        return 0.0
    if mu > _HOPELESS:
        return 1.0
    x = epsilon / mu - mu / 2.0
    if x > 1e150:
        return SMALLEST
    density = math.exp(-x * x / 2.0) / _ROOT_2_PI
    mills = _mills(x) if x > -5.0 else math.nan
    far = density * _mills(x + mu)
    near = float(ndtr(-x)) if x < 0.0 else density * mills
    slack = _UNIT * (4.0 * (epsilon / mu) ** 2 + mu * mu + 32.0)
    delta = (near - far) * (1.0 + slack) + 8.0 * _UNIT * near
    if x > -5.0:
        slope = 1.0 - x * mills + 8.0 * _UNIT
        if x >= 0.0:
            slope = min(slope, 1.0 / (1.0 + x * x))
        delta = min(delta, density * mu * slope * (1.0 + slack))
    return min(max(delta, SMALLEST), 1.0)


def epsilon_of(delta: float, mu: float) -> float:
    """The least epsilon for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    >>> round(epsilon_of(1e-6, 0.23670), 4)
    1.0
    """
    delta, mu = check_delta(delta), float_or_nan(mu)
    if not mu >= 0.0:
        raise InvalidInput(f"mu must not be negative, got {mu}.")
    if mu > _HOPELESS:
        return math.inf
    if _delta(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while _delta(high, mu) > delta:
        high *= 2.0
    return _last_kept(lambda e: _delta(e, mu), delta, high, 0.0)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    >>> [float(f"{mu_of(e, 1e-6):.3g}") for e in (0.01, 0.1, 1, 10, 20)]
    [0.00326, 0.0275, 0.237, 1.85, 3.24]
    """
    epsilon, delta = not_negative("epsilon", epsilon), check_delta(delta)
    good, bad = doubled(lambda m: _delta(epsilon, m) <= delta)
    return _last_kept(lambda m: _delta(epsilon, m), delta, good, bad)


def noise_multiplier(privacy: Privacy, releases: int) -> float:
    """Standard deviation over sensitivity for which `releases` Gaussian releases of equal cost keep `privacy`.

    >>> round(noise_multiplier(Privacy(1.0, 1e-6), 1), 3)
    4.225
    """
    return math.sqrt(not_negative("releases", releases)) / privacy.mu


def largest_true(holds: Callable[[float], bool]) -> float:
    """The largest positive number for which `holds`, which is true up to it and false from there on.

    >>> largest_true(lambda x: x <= 5.0)
    5.0
    """
    return last_true(holds, *doubled(holds))


def doubled(holds: Callable[[float], bool]) -> tuple[float, float]:
    """A power of 2 for which `holds`, and the next, for which not.

    >>> doubled(lambda x: x <= 5.0)
    (4.0, 8.0)
    """
    good = 1.0
    while not holds(good):
        good /= 2.0
    bad = 2.0 * good
    while holds(bad):
        good, bad = bad, 2.0 * bad
    return good, bad


def last_true(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """Bisect between a value where `holds` is true and one where it is not; return a true one."""
    while True:
        middle = (good + bad) / 2.0
        if middle in (good, bad) or abs(good - bad) <= 4.0 * _UNIT * abs(good):
            return good
        good, bad = (middle, bad) if holds(middle) else (good, middle)


def _last_kept(spent: Callable[[float], float], delta: float, good: float, bad: float) -> float:
    """What `last_true` finds where `spent` is at most delta, in a third of the calls: secants narrow the bracket first.

    They are of `ln(spent/delta)`, which is nearly straight; an end that stays twice has its value halved (Illinois).
    `good` was seen to keep delta whenever it moved. Where the last bits of `spent` are jagged it may be another point
    next to that of `last_true`.
    """

    def excess(paid: float) -> float:
        return math.log(max(paid, SMALLEST) / delta)  # nothing is spent at 0

    low, high, side = excess(spent(good)), excess(spent(bad)), 0
    for _ in range(60):
        x = good - low * (bad - good) / (high - low) if high > low else good
        if abs(good - bad) <= 2.0**-44 * abs(good) or not min(good, bad) < x < max(good, bad):
            break
        if (paid := spent(x)) <= delta:
            good, low, high, side = x, excess(paid), high / 2.0 if side < 0 else high, -1
        else:
            bad, high, low, side = x, excess(paid), low / 2.0 if side > 0 else low, 1
    return last_true(lambda x: spent(x) <= delta, good, bad)


def _mills(x: float) -> float:
    """The Mills ratio `Phi(-x)/phi(x) = sqrt(pi/2)·erfcx(x/sqrt 2)`."""
    return _ROOT_HALF_PI * float(erfcx(x / _ROOT_2))


def check_delta(delta: Any) -> float:
    """`delta` as a number, if it lies strictly between 0 and 1."""
    number = float_or_nan(delta)
    if not SMALLEST < number < 1.0:
        raise InvalidInput(
            f"delta must lie strictly between 0 and 1 (and above 2.3e-308), got {value_or_type(delta)}. "
            "Take it well below one over the number of people, e.g. 1e-6."
        )
    return number
