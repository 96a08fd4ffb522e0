"""An accountant that under-charges, or contradicts itself, is caught."""

from __future__ import annotations

import pytest
from scipy.stats import norm

from instances import true_delta
from taciturn.checks import ContractBroken, check_accountant, checks_for
from taciturn.checks.accountants import Exact, gaussian_delta
from taciturn.checks.suite import run_checks
from taciturn.kernel.accounting.cost import FREE, Cost, total

pytestmark = pytest.mark.privacy


class Cheap(Exact):
    """Charges a Gaussian release a thousandth less than it costs."""

    def delta(self, cost, epsilon):
        return 0.999 * super().delta(cost, epsilon)


class Largest(Exact):
    """Charges the dearest release only."""

    def total(self, costs):
        return max([FREE, *costs], key=lambda cost: cost.parts)


class Averaging(Exact):
    """Adds mu, not mu², and divides by the number of releases."""

    def total(self, costs):
        costs = list(costs)
        mean = sum(cost.mu for cost in costs) / max(len(costs), 1)
        return Cost(mean**2, *total(costs).parts[1:])


class Forgetful(Exact):
    """Leaves out what is known as an epsilon only."""

    def epsilon(self, cost, delta):
        return super().epsilon(Cost(*cost.parts[:4]), delta)


class Tight(Exact):
    """Reads zCDP as if it were Gaussian, and forgets half."""

    def delta(self, cost, epsilon):
        return super().delta(Cost(cost.mu_squared + cost.rho, 0.0, *cost.parts[2:]), epsilon)


class Ordered(Exact):
    """Gives a rebate on what comes last."""

    def total(self, costs):
        costs = list(costs)
        return total([*costs[:-1], *(Cost(0.5 * cost.mu_squared, *cost.parts[1:]) for cost in costs[-1:])])


class Rising(Exact):
    """A delta that grows with epsilon."""

    def delta(self, cost, epsilon):
        return min(1.0, super().delta(cost, epsilon) + epsilon / 10.0)


class Contradicting(Exact):
    """An epsilon that its own delta denies."""

    def epsilon(self, cost, delta):
        return 0.9 * super().epsilon(cost, delta)


class Dear(Exact):
    """Charges for nothing."""

    def delta(self, cost, epsilon):
        return max(super().delta(cost, epsilon), 1e-9)


FAULTS = [
    ("gaussian_delta_is_exact", Cheap()),
    ("gaussians_compose_exactly", Largest()),
    ("gaussians_compose_exactly", Averaging()),
    ("plain_costs_add", Forgetful()),
    ("zcdp_bounds_gaussians", Tight()),
    ("cost_is_monotone", Ordered()),
    ("cost_is_monotone", Averaging()),
    ("epsilon_and_delta_are_monotone", Rising()),
    ("epsilon_and_delta_are_consistent", Contradicting()),
    ("no_releases_cost_nothing", Dear()),
]


@pytest.mark.parametrize(("check", "accountant"), FAULTS, ids=[f"{type(a).__name__}, {check}" for check, a in FAULTS])
def test_the_fault_is_caught(check, accountant):
    assert run_checks("it", [c for c in checks_for(accountant) if str(c) == check]).failed


def test_every_check_has_a_fault():
    assert {str(check) for check in checks_for(Exact())} == {check for check, _ in FAULTS}


def test_the_message_has_both_numbers():
    with pytest.raises(ContractBroken, match=r"at mu = 0\.2, epsilon = 0\.1, delta is .*, and the accountant says"):
        check_accountant(Cheap())


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_integral_is_the_truth(epsilon, mu):
    """What the accountants are measured against agrees with the closed form to ten digits; at 0, with two tails."""
    assert gaussian_delta(epsilon, mu) == pytest.approx(float(true_delta(epsilon, mu)), rel=1e-10)
    if epsilon == 0.0:
        assert gaussian_delta(epsilon, mu) == pytest.approx(1.0 - 2.0 * norm.cdf(-mu / 2.0), rel=1e-12)
