"""Privacy cost as data: mechanisms state it, and this module converts it to (epsilon, delta).

Gaussian releases are counted in mu², which adds exactly. Others are counted in zCDP's rho; once there is some of it,
all is converted as zCDP, `rho + mu²/2`, and printed as such.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple

from taciturn.kernel.accounting.gdp import SMALLEST, Privacy, delta_of, epsilon_of, mu_of
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.accounting.zcdp import delta_of_rho, epsilon_of_rho, rho_of
from taciturn.kernel.errors import InvalidInput, finite, float_or_nan, number, value_or_type
from taciturn.kernel.frozen import unfrozen

_UP = 1.0 + 2.0**-50  # past the few roundings that made a cost


class Spent(NamedTuple):
    """The privacy spent: an epsilon, rounded up, at a delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Cost:
    """The privacy cost of releases.

    Attributes
    ----------
    mu_squared : float
        Squared Gaussian-privacy parameter of the Gaussian part.
    rho : float
        zCDP of the rest.
    extra_epsilon, extra_delta : float
        What a sampler that is not ideal adds. If the probabilities of what it draws are within a factor `exp(±e/2)`
        of the ideal ones, over all draws, except for outcomes of probability d, then (epsilon, delta) becomes
        `(epsilon + e, exp(e/2)·delta + d)`.
    plain_epsilon, plain_delta : float
        Releases of which only an (epsilon, delta) is known. They add.

    Examples
    --------
    >>> round(gaussian(0.236704**2).epsilon(1e-6), 3)
    1.0
    """

    mu_squared: float = 0.0
    rho: float = 0.0
    extra_epsilon: float = 0.0
    extra_delta: float = 0.0
    plain_epsilon: float = 0.0
    plain_delta: float = 0.0

    def __post_init__(self) -> None:
        stated = self.parts
        for part in stated:
            if type(part) is not float or not part >= 0.0:
                break
        else:  # as most are, and every release makes a cost
            return
        for name, part in zip(_PARTS, stated, strict=True):
            object.__setattr__(self, name, number := float_or_nan(part))
            if not number >= 0.0:
                raise InvalidInput(f"costs must be 0 or more, got {value_or_type(part)}.")

    @property
    def parts(self) -> tuple[float, ...]:
        """Its numbers, in the order of the attributes."""
        return (
            self.mu_squared,
            self.rho,
            self.extra_epsilon,
            self.extra_delta,
            self.plain_epsilon,
            self.plain_delta,
        )

    def __str__(self) -> str:
        parts = [f"mu = {self.mu:.4g}"] if self.gaussian else [f"rho = {self._all_rho:.4g}"]
        if self.plain_epsilon > 0.0:
            parts = [*(parts if self.mu + self.rho > 0.0 else []), f"epsilon = {rounded_up(self.plain_epsilon, 4)}"]
        return " and ".join(parts)

    @property
    def gaussian(self) -> bool:
        """Whether all of it is Gaussian, and so converted exactly."""
        return self.rho == 0.0

    @property
    def mu(self) -> float:
        """The Gaussian-privacy parameter of the Gaussian part."""
        return math.sqrt(self.mu_squared)

    def epsilon(self, delta: float) -> float:
        """The epsilon at `delta`, rounded up."""
        delta = self._left_of(finite("delta", delta))
        if delta <= SMALLEST:
            return math.inf
        ideal = epsilon_of(delta, self.mu * _UP) if self.gaussian else epsilon_of_rho(delta, self._all_rho)
        return _sum_up(ideal, self.extra_epsilon, self.plain_epsilon)

    def spent_at(self, delta: float) -> Spent:
        """Its epsilon at a delta, with that delta; 0 of what costs nothing.

        >>> FREE.spent_at(1e-6)
        Spent(epsilon=0.0, delta=1e-06)
        """
        return Spent(0.0 if self == FREE else self.epsilon(delta), delta)

    def delta(self, epsilon: float) -> float:
        """The delta at `epsilon`, rounded up."""
        epsilon = number("epsilon", epsilon)
        epsilon -= self.extra_epsilon + self.plain_epsilon
        if epsilon < 0.0:
            return 1.0
        ideal = delta_of(epsilon, self.mu * _UP) if self.gaussian else delta_of_rho(epsilon, self._all_rho)
        return min(1.0, math.exp(self.extra_epsilon / 2.0) * ideal + self.extra_delta + self.plain_delta)

    def within(self, privacy: Privacy) -> bool:
        """Whether this cost fits the budget `privacy`, by what is left of it or by the epsilon that is printed.

        Either proves it, and they differ in the last bits, by which no sentence shall contradict itself.

        >>> gaussian(1e-6, count=100).within(Privacy(1.0, 1e-6))
        True
        """
        epsilon = privacy.epsilon - _sum_up(self.extra_epsilon, self.plain_epsilon)
        delta = self._left_of(privacy.delta)
        if epsilon < 0.0 or delta <= SMALLEST:
            return False
        fits = self.mu * _UP <= mu_of(epsilon, delta) if self.gaussian else self._all_rho <= rho_of(epsilon, delta)
        return fits or self.epsilon(privacy.delta) <= privacy.epsilon

    def _left_of(self, delta: float) -> float:
        """What plain releases and an imperfect sampler leave of `delta` to the ideal mechanism."""
        return (delta - self.extra_delta - self.plain_delta) * math.exp(-self.extra_epsilon / 2.0)

    @property
    def _all_rho(self) -> float:
        return (self.rho + self.mu_squared / 2.0) * _UP


def _sum_up(*epsilons: float) -> float:
    """The sum of epsilons; rounded up, and not by more than a bit.

    >>> _sum_up(1.0, 0.0), _sum_up(1.0, 2.0**-80) > 1.0, _sum_up(math.inf, 1.0)
    (1.0, True, inf)
    """
    near = math.fsum(epsilons)
    return near if math.isinf(near) or math.fsum((*epsilons, -near)) <= 0.0 else math.nextafter(near, math.inf)


_PARTS = tuple(part.name for part in fields(Cost))
_UnfrozenCost = unfrozen(Cost)


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of `costs`, valid for adaptive composition too.

    >>> total([gaussian(0.25, count=2), gaussian(0.5)]).mu
    1.0
    """
    costs = [FREE, *costs]
    return Cost(*(math.fsum(parts) for parts in zip(*(cost.parts for cost in costs), strict=True)))


FREE = Cost()
"""The cost of publishing nothing."""


def sampled_gaussian(mu_squared: float, extra_epsilon: float, extra_delta: float) -> Cost:
    """The `Cost` of Gaussian releases by a sampler that is not ideal, made in less time: every release has one.

    >>> sampled_gaussian(0.25, 1e-9, 1e-12) == Cost(0.25, extra_epsilon=1e-9, extra_delta=1e-12)
    True
    """
    if not (mu_squared >= 0.0 and extra_epsilon >= 0.0 and extra_delta >= 0.0):
        raise InvalidInput(f"costs must be 0 or more, got {(mu_squared, extra_epsilon, extra_delta)}.")
    made = _UnfrozenCost(mu_squared, 0.0, extra_epsilon, extra_delta, 0.0, 0.0)
    made.__class__ = Cost
    return made  # type: ignore[no-any-return]


def gaussian(mu_squared: float, count: int = 1) -> Cost:
    """`count` Gaussian releases, each of squared parameter `mu_squared`.

    Equal releases are counted, not added up, so that no sum of floats is off by a round.

    >>> gaussian(mu_squared=0.01, count=100).mu
    1.0
    """
    return Cost(mu_squared=float_or_nan(mu_squared) * float_or_nan(count))
