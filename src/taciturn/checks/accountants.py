"""Checks of an accountant: it never under-charges, composes costs, and agrees with closed forms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from scipy.integrate import quad

from taciturn.checks.suite import demand
from taciturn.kernel.accounting.cost import FREE, Cost, gaussian, total

_MUS = (0.2, 0.5, 1.0, 3.0)
_EPSILONS = (0.1, 1.0, 4.0)
_DELTAS = (1e-2, 1e-6, 1e-12)
_COSTS = (
    gaussian(0.04),
    gaussian(1.0),
    Cost(rho=0.02),
    Cost(mu_squared=0.3, rho=0.1),
    Cost(plain_epsilon=0.5, plain_delta=1e-9),
    Cost(mu_squared=0.1, extra_epsilon=0.01, extra_delta=1e-13),
)


@runtime_checkable
class Accountant(Protocol):
    """Composes the costs of releases, and converts them to (epsilon, delta).

    >>> round(Exact().epsilon(Exact().total([gaussian(0.02), gaussian(0.03)]), delta=1e-6), 3)
    0.941
    """

    def total(self, costs: Iterable[Cost]) -> Cost:
        """The cost of all of them under adaptive composition."""

    def epsilon(self, cost: Cost, delta: float) -> float:
        """An epsilon that holds at `delta`."""

    def delta(self, cost: Cost, epsilon: float) -> float:
        """A delta that holds at `epsilon`."""


class Exact:
    """The package's own: `taciturn.kernel.accounting.cost`.

    >>> isinstance(Exact(), Accountant)
    True
    """

    def total(self, costs: Iterable[Cost]) -> Cost:
        """Part by part."""
        return total(costs)

    def epsilon(self, cost: Cost, delta: float) -> float:
        """The conversion of the cost itself."""
        return cost.epsilon(delta)

    def delta(self, cost: Cost, epsilon: float) -> float:
        """The conversion of the cost itself."""
        return cost.delta(epsilon)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The delta of mu-GDP from its definition, `∫ max(0, phi(x - mu) - exp(epsilon)·phi(x)) dx`, to ten digits.

    >>> f"{gaussian_delta(1.0, 0.236704):.3e}"
    '1.000e-06'
    """
    first = epsilon / mu + mu / 2.0  # where the integrand begins

    def excess(x: float) -> float:
        return (
            math.exp(-((x - mu) ** 2) / 2.0) * -math.expm1(epsilon + mu * mu / 2.0 - mu * x) / math.sqrt(2.0 * math.pi)
        )

    return float(quad(excess, first, max(first, mu) + 40.0, epsabs=0.0, epsrel=1e-11, limit=400)[0])


def gaussian_delta_is_exact(accountant: Accountant) -> str:
    """Delta of one Gaussian release is at least the area between the two densities, and hardly more.

    Less is an under-charge; much more wastes budget.
    """
    over = 1.0
    for mu in _MUS:
        for epsilon in _EPSILONS:
            truth, read = gaussian_delta(epsilon, mu), accountant.delta(gaussian(mu * mu), epsilon)
            fault = f"at mu = {mu}, epsilon = {epsilon}, delta is {truth:.6g}, and the accountant says {read:.6g}"
            demand(read >= truth * (1.0 - 1e-9), fault, "Round towards the larger cost.")
            over = max(over, read / truth)
    return f"at most {over - 1.0:.2g} too much is charged for Gaussian releases"


def gaussians_compose_exactly(accountant: Accountant) -> None:
    """Releases of mu_1, mu_2, … cost what one of `sqrt(Σ mu_k²)` costs."""
    for mus in ((0.3, 0.4), (0.1,) * 25, (1.0, 0.01)):
        together = accountant.total([gaussian(mu * mu) for mu in mus])
        mu = math.sqrt(math.fsum(mu * mu for mu in mus))
        for epsilon in _EPSILONS:
            truth, read = gaussian_delta(epsilon, mu), accountant.delta(together, epsilon)
            fault = (
                f"releases of mu = {mus[:3]}… have delta {truth:.6g} at {epsilon}, and the accountant says {read:.6g}"
            )
            demand(read >= truth * (1.0 - 1e-9), fault, "Add mu², of every release.")


def cost_is_monotone(accountant: Accountant) -> None:
    """The epsilon of two costs is at least that of either, in any order, and adding no cost changes nothing."""
    for one in _COSTS:
        for other in _COSTS:
            both, swapped = accountant.total([one, other]), accountant.total([other, one, FREE])
            for delta in _DELTAS:
                alone, read = accountant.epsilon(one, delta), accountant.epsilon(both, delta)
                fault = f"{one} costs epsilon = {alone:.6g}, and with {other} it costs {read:.6g}"
                demand(read >= alone * (1.0 - 1e-12), fault, "Add every part of a cost.")
                alike = math.isclose(read, accountant.epsilon(swapped, delta), rel_tol=1e-12)
                demand(
                    alike or read == accountant.epsilon(swapped, delta),
                    f"{one} and {other} depend on their order",
                    "Add.",
                )


def plain_costs_add(accountant: Accountant) -> None:
    """Releases with a known (epsilon, delta) only cost at least their sums, in addition to other costs."""
    plain = Cost(plain_epsilon=0.7, plain_delta=1e-8)
    twice = accountant.total([plain, plain])
    demand(accountant.epsilon(twice, 1e-6) >= 1.4, "two releases of epsilon = 0.7 cost less than 1.4", "Add epsilons.")
    for cost in _COSTS:
        with_it = accountant.epsilon(accountant.total([cost, plain]), 1e-6)
        least = accountant.epsilon(cost, 1e-6) + 0.7
        demand(with_it >= least * (1.0 - 1e-12), f"{cost} and epsilon = 0.7 cost {with_it:.6g}", "Add epsilons.")


def zcdp_bounds_gaussians(accountant: Accountant) -> None:
    """A release of mu is rho-zCDP with `rho = mu²/2`: converted from zCDP it costs at least as much."""
    for mu in _MUS:
        for epsilon in _EPSILONS:
            truth, read = gaussian_delta(epsilon, mu), accountant.delta(Cost(rho=mu * mu / 2.0), epsilon)
            fault = f"Gaussian noise of rho = {mu * mu / 2.0:g} has delta {truth:.6g} at {epsilon}, "
            fault += f"and the accountant says {read:.6g}"
            demand(read >= truth * (1.0 - 1e-9), fault, "Use a conversion that holds for every mechanism.")


def epsilon_and_delta_are_monotone(accountant: Accountant) -> None:
    """A larger delta allows a smaller epsilon, and the other way round; both stay within their range."""
    for cost in _COSTS:
        epsilons = [accountant.epsilon(cost, delta) for delta in sorted(_DELTAS)]
        deltas = [accountant.delta(cost, epsilon) for epsilon in sorted(_EPSILONS)]
        falling = epsilons == sorted(epsilons, reverse=True) and deltas == sorted(deltas, reverse=True)
        demand(
            falling, f"{cost} is read as epsilons {epsilons} and deltas {deltas}", "Let neither rise with the other."
        )
        legal = min(epsilons) >= 0.0 and 0.0 <= min(deltas) <= max(deltas) <= 1.0
        demand(legal, f"{cost} is read as epsilons {epsilons} and deltas {deltas}", "Keep delta between 0 and 1.")


def epsilon_and_delta_are_consistent(accountant: Accountant) -> None:
    """The delta at the epsilon for delta is at most delta: the two conversions of one cost agree."""
    for cost in _COSTS:
        for delta in _DELTAS:
            epsilon = accountant.epsilon(cost, delta)
            if math.isfinite(epsilon):
                back = accountant.delta(cost, epsilon * (1.0 + 1e-9) + 1e-12)
                fault = f"{cost} is read as ({epsilon:.6g}, {delta:g}), and at that epsilon as delta = {back:.6g}"
                demand(back <= delta * (1.0 + 1e-6), fault, "Invert the one reading to get the other.")


def no_releases_cost_nothing(accountant: Accountant) -> None:
    """No releases have epsilon = 0 and delta = 0."""
    readings = accountant.epsilon(FREE, 1e-6), accountant.delta(FREE, 0.5), accountant.total([]) == FREE
    demand(readings == (0.0, 0.0, True), f"nothing is read as {readings}", "Start from FREE.")


CHECKS = (
    no_releases_cost_nothing,
    gaussian_delta_is_exact,
    gaussians_compose_exactly,
    zcdp_bounds_gaussians,
    plain_costs_add,
    cost_is_monotone,
    epsilon_and_delta_are_monotone,
    epsilon_and_delta_are_consistent,
)
