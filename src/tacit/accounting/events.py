"""What a release costs, as data. Mechanisms state events; `accounting.exact` judges them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tacit.accounting.exact import Privacy, delta_of, epsilon_of
from tacit.errors import InvalidInput


@dataclass(frozen=True)
class GaussianEvent:
    """`count` releases of Gaussian privacy, each of squared parameter `mu_squared`.

    Equal releases are kept as a count, so that no sum of floats ever stops a stream a round early.

    Examples
    --------
    >>> GaussianEvent(mu_squared=0.01, count=100).mu
    1.0
    """

    mu_squared: float
    count: int = 1

    def __post_init__(self) -> None:
        if not (self.mu_squared >= 0.0 and self.count >= 0):
            raise InvalidInput(f"an event cannot cost less than nothing, got {self}.")

    @property
    def total(self) -> float:
        """`count·mu_squared`."""
        return self.mu_squared * self.count

    @property
    def mu(self) -> float:
        """The Gaussian-privacy parameter of the releases together."""
        return math.sqrt(self.total)

    def epsilon(self, delta: float) -> float:
        """The epsilon of these releases at `delta`, rounded up.

        >>> round(GaussianEvent(0.236704**2).epsilon(1e-6), 3)
        1.0
        """
        return epsilon_of(delta, _up(self.mu))

    def delta(self, epsilon: float) -> float:
        """The delta of these releases at `epsilon`, rounded up.

        >>> f"{GaussianEvent(0.236704**2).delta(1.0):.2e}"
        '1.00e-06'
        """
        return delta_of(epsilon, _up(self.mu))

    def within(self, privacy: Privacy) -> bool:
        """Whether these releases together keep `privacy`.

        >>> GaussianEvent(1e-6, count=100).within(Privacy(1.0, 1e-6))
        True
        """
        return _up(self.mu) <= privacy.mu


FREE = GaussianEvent(0.0, 0)
"""The cost of publishing nothing."""


def compose(events: Iterable[GaussianEvent]) -> GaussianEvent:
    """All `events` together: squared parameters add, adaptively too.

    >>> compose([GaussianEvent(0.25, 2), GaussianEvent(0.5)]).mu
    1.0
    """
    return GaussianEvent(math.fsum(event.total for event in events))


def _up(mu: float) -> float:
    """`mu` rounded up past the two roundings that made it; 0 stays 0."""
    return mu * (1.0 + 2.0**-50)
