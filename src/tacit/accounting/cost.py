"""What releases cost, as data: mechanisms state it, this module reads it.

Gaussian releases are counted in mu², which adds exactly. Anything else is counted in zCDP's rho; once there is some
of it, the whole is read as zCDP, `rho + mu²/2`, and the reading says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tacit.accounting.concentrated import delta_of_rho, epsilon_of_rho, rho_of
from tacit.accounting.exact import Privacy, delta_of, epsilon_of
from tacit.errors import InvalidInput

_UP = 1.0 + 2.0**-50  # past the few roundings that made a cost


@dataclass(frozen=True)
class Cost:
    """Squared Gaussian-privacy parameter, and zCDP of what is not Gaussian.

    Examples
    --------
    >>> round(gaussian(0.236704**2).epsilon(1e-6), 3)
    1.0
    """

    mu_squared: float = 0.0
    rho: float = 0.0

    def __post_init__(self) -> None:
        if not (self.mu_squared >= 0.0 and self.rho >= 0.0):
            raise InvalidInput(f"nothing costs less than nothing, got {self.mu_squared} and {self.rho}.")

    def __str__(self) -> str:
        return f"mu = {self.mu:.4g}" if self.gaussian else f"rho = {self._all_rho:.4g}"

    @property
    def gaussian(self) -> bool:
        """Whether all of it is Gaussian, and so read exactly."""
        return self.rho == 0.0

    @property
    def mu(self) -> float:
        """The Gaussian-privacy parameter of the Gaussian part."""
        return math.sqrt(self.mu_squared)

    def epsilon(self, delta: float) -> float:
        """The epsilon at `delta`, rounded up."""
        return epsilon_of(delta, self.mu * _UP) if self.gaussian else epsilon_of_rho(delta, self._all_rho)

    def delta(self, epsilon: float) -> float:
        """The delta at `epsilon`, rounded up."""
        return delta_of(epsilon, self.mu * _UP) if self.gaussian else delta_of_rho(epsilon, self._all_rho)

    def within(self, privacy: Privacy) -> bool:
        """Whether this keeps `privacy`.

        >>> gaussian(1e-6, count=100).within(Privacy(1.0, 1e-6))
        True
        """
        if self.gaussian:
            return self.mu * _UP <= privacy.mu
        return self._all_rho <= rho_of(privacy.epsilon, privacy.delta)

    @property
    def _all_rho(self) -> float:
        return (self.rho + self.mu_squared / 2.0) * _UP


def total(costs: Iterable[Cost]) -> Cost:
    """All `costs` together, adaptively too.

    >>> total([gaussian(0.25, count=2), gaussian(0.5)]).mu
    1.0
    """
    costs = list(costs)
    return Cost(math.fsum(cost.mu_squared for cost in costs), math.fsum(cost.rho for cost in costs))


FREE = Cost()
"""The cost of publishing nothing."""


def gaussian(mu_squared: float, count: int = 1) -> Cost:
    """`count` Gaussian releases, each of squared parameter `mu_squared`.

    Equal releases are counted, not added up, so that no sum of floats is off by a round.

    >>> gaussian(mu_squared=0.01, count=100).mu
    1.0
    """
    return Cost(mu_squared=mu_squared * count)
