"""Costs: what releases cost, kept as counts, and what they cost together."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import true_delta
from taciturn import Cost, InvalidInput, Privacy
from taciturn.kernel.accounting.cost import FREE, gaussian, total
from taciturn.kernel.accounting.zcdp import delta_of_rho, epsilon_of_rho, rho_of

GAUSSIANS = st.lists(st.builds(gaussian, st.floats(0.0, 4.0), st.integers(0, 1000)), max_size=8)
COSTS = st.lists(st.builds(Cost, *[st.floats(0.0, 4.0)] * 6), max_size=8)
MIXED = st.builds(
    Cost,
    mu_squared=st.floats(1e-4, 9.0),
    rho=st.sampled_from([0.0, 1e-3, 2.0]),
    extra_epsilon=st.sampled_from([0.0, 1e-9, 1e-2]),
    extra_delta=st.sampled_from([0.0, 1e-8]),
    plain_epsilon=st.floats(0.0, 5.0),
    plain_delta=st.sampled_from([0.0, 1e-8, 1e-7]),
)


@settings(max_examples=100)
@given(GAUSSIANS)
def test_squares_add(costs):
    """Together, Gaussian releases cost the sum of their squared parameters, and stay Gaussian."""
    expected = math.fsum(cost.mu_squared for cost in costs)
    assert total(costs).mu_squared == expected
    assert total(costs).mu == pytest.approx(math.sqrt(expected), rel=1e-15)
    assert total(costs).gaussian


@settings(max_examples=100)
@given(COSTS, st.randoms(use_true_random=False))
def test_order_does_not_matter(costs, random):
    """Composition gives the same numbers, to the last bit, in any order."""
    assert total(random.sample(costs, len(costs))) == total(costs)


def test_nothing_is_free():
    """No release costs nothing."""
    assert total([]) == FREE == Cost(0.0, 0.0)
    assert FREE.mu == FREE.epsilon(1e-6) == FREE.delta(1.0) == 0.0
    assert FREE.within(Privacy(1e-9, 1e-12))
    assert total([FREE, gaussian(0.25)]).mu == 0.5


@pytest.mark.parametrize("count", [1, 3, 10, 49, 1000, 10**6 + 3, 10**9])
def test_equal_releases_are_counted(count):
    """A budget cut into any number of equal releases is kept by all of them together, and by not one more."""
    privacy = Privacy(1.0, 1e-6)
    share = privacy.mu**2 / count
    assert gaussian(share * (1.0 - 1e-14), count).within(privacy)
    assert not gaussian(share * (1.0 + 1e-14), count).within(privacy)
    assert not gaussian(share * (1.0 - 1e-14), count + 1).within(privacy)


@settings(max_examples=100)
@given(st.floats(1e-3, 5.0), st.integers(1, 10**6), st.floats(1e-12, 0.5))
def test_readings_are_rounded_up(mu, count, delta):
    """The epsilon and delta of a cost are never below those of its exact mu, and within a relative 1e-7 above."""
    share = mu * mu / count
    cost = gaussian(share, count)
    with mpmath.workdps(60):
        exact = mpmath.sqrt(mpmath.mpf(share) * count)
    epsilon = cost.epsilon(delta)
    assert true_delta(epsilon, exact) <= delta
    assert epsilon == 0.0 or true_delta(epsilon * (1.0 - 1e-7) - 1e-9, exact) > delta
    assert true_delta(epsilon, exact) <= cost.delta(epsilon) <= true_delta(epsilon, exact) * (1 + 1e-7)


@settings(max_examples=100)
@given(st.floats(1e-3, 20.0), st.floats(1e-12, 0.5), st.floats(0.5, 1.5))
def test_within_means_no_more_delta(epsilon, delta, factor):
    """A cost is within a budget exactly if it delivers the budget's delta at the budget's epsilon."""
    privacy = Privacy(epsilon, delta)
    cost = gaussian((privacy.mu * factor) ** 2)
    assert cost.within(privacy) == (factor < 1.0) or abs(factor - 1.0) < 1e-14
    assert cost.delta(epsilon) <= delta or not cost.within(privacy)


@settings(max_examples=30)
@given(st.floats(1e-4, 4.0), st.floats(1e-4, 4.0), st.floats(0.1, 20.0), st.floats(1e-9, 0.1))
def test_a_mixture_is_read_as_zcdp(mu_squared, rho, epsilon, delta):
    """Once something is not Gaussian, the whole is `rho + mu²/2` in zCDP, rounded up."""
    cost, whole = Cost(mu_squared, rho), rho + mu_squared / 2.0
    assert not cost.gaussian
    assert cost.epsilon(delta) == pytest.approx(epsilon_of_rho(delta, whole), rel=1e-9)
    assert cost.delta(epsilon) == pytest.approx(delta_of_rho(epsilon, whole), rel=1e-9)
    assert cost.within(Privacy(epsilon, delta)) == (whole <= rho_of(epsilon, delta))


@settings(max_examples=30)
@given(st.floats(1e-4, 4.0), st.floats(1e-9, 0.1))
def test_a_grain_of_zcdp_never_makes_it_cheaper(mu_squared, delta):
    """Reading Gaussian noise as zCDP is allowed, and never reports less than the exact reading."""
    assert Cost(mu_squared, 1e-300).epsilon(delta) >= gaussian(mu_squared).epsilon(delta)


@pytest.mark.parametrize("deviations", [(1.0, 2.0, 5.0), (3.0,) * 20, (0.7, 30.0)])
def test_unequal_releases_agree_with_dp_accounting(deviations):
    """Composed numerically by dp-accounting (steps of 1e-3), unequal releases cost what their squares add up to."""
    composed = privacy_loss_distribution.identity(1e-3)
    for deviation in deviations:
        release = privacy_loss_distribution.from_gaussian_mechanism(deviation, value_discretization_interval=1e-3)
        composed = composed.compose(release)
    cost = total(gaussian(deviation**-2) for deviation in deviations)
    for delta in (1e-2, 1e-4, 1e-6):
        assert cost.epsilon(delta) == pytest.approx(composed.get_epsilon_for_delta(delta), rel=1e-4)
    for epsilon in (0.5, 1.0, 2.0):
        assert cost.delta(epsilon) == pytest.approx(composed.get_delta_for_epsilon(epsilon), rel=1e-3)


@pytest.mark.parametrize(("mu_squared", "rho"), [(-1.0, 0.0), (math.nan, 0.0), (0.0, -1.0), (0.0, math.nan), (-1.0, 1)])
def test_nothing_pays_back(mu_squared, rho):
    """Negative or undefined costs are refused."""
    with pytest.raises(InvalidInput, match="costs must be 0 or more"):
        Cost(mu_squared, rho)


def test_negative_counts_are_refused():
    """Releases cannot be undone."""
    with pytest.raises(InvalidInput, match="costs must be 0 or more"):
        gaussian(1.0, -1)


def test_what_it_prints():
    """Gaussian costs print mu; others print rho, all of it."""
    assert str(gaussian(0.04)) == "mu = 0.2"
    assert str(Cost(0.04, 0.03)) == "rho = 0.05"


def test_what_plain_costs_print():
    """Their epsilon, after mu or rho where there is some."""
    assert str(Cost(plain_epsilon=0.25, plain_delta=1e-9)) == "epsilon = 0.25"
    assert str(Cost(0.04, plain_epsilon=0.25)) == "mu = 0.2 and epsilon = 0.25"
    assert str(Cost(0.04, 0.03, plain_epsilon=0.25)) == "rho = 0.05 and epsilon = 0.25"


@pytest.mark.privacy
@pytest.mark.parametrize("plain", [(0.4, 1e-7), (3.0, 1e-9)])
def test_plain_costs_add_plainly(plain):
    """Alone, together, and beside Gaussian noise: epsilons to epsilons and deltas to deltas."""
    epsilon, delta = plain
    cost = Cost(plain_epsilon=epsilon, plain_delta=delta)
    assert cost.epsilon(1e-6) == pytest.approx(epsilon, rel=1e-12)
    assert cost.delta(1.001 * epsilon) == delta
    assert cost.delta(0.999 * epsilon) == 1.0
    assert total([cost, cost]).epsilon(1e-6) == pytest.approx(2.0 * epsilon, rel=1e-12)
    both = total([cost, gaussian(0.04)])
    assert both.epsilon(1e-6) == pytest.approx(epsilon + gaussian(0.04).epsilon(1e-6 - delta), rel=1e-9)
    assert both.delta(epsilon + 1.0) == pytest.approx(delta + gaussian(0.04).delta(1.0), rel=1e-6)
    assert cost.within(Privacy(1.001 * epsilon, 1e-6))
    assert not cost.within(Privacy(0.999 * epsilon, 1e-6))
    assert not cost.within(Privacy(1.001 * epsilon, 0.999 * delta))


@pytest.mark.privacy
@settings(max_examples=40)
@given(MIXED, st.floats(-6.5, -1.0).map(lambda power: 10.0**power))
def test_the_readings_of_a_mixture_agree(cost, delta):
    """Gaussian or zCDP, sampler and plain parts: the delta at the epsilon of delta is no more, nor is less within."""
    left = (delta - cost.extra_delta - cost.plain_delta) * math.exp(-cost.extra_epsilon / 2.0)
    ideal, epsilon = Cost(cost.mu_squared, cost.rho).epsilon(left), cost.epsilon(delta)
    assert epsilon == pytest.approx(ideal + cost.extra_epsilon + cost.plain_epsilon, rel=1e-12)
    assert cost.delta(epsilon) <= delta * (1.0 + 1e-9)
    if ideal > 1e-6:
        assert cost.within(Privacy(epsilon * (1.0 + 1e-9), delta))
        assert not cost.within(Privacy(epsilon - 1e-6 * ideal, delta))
        assert cost.delta(epsilon - 1e-6 * ideal) > delta


@pytest.mark.privacy
def test_an_imperfect_sampler_is_paid_for():
    """With (e, d) extra, (epsilon, delta) becomes (epsilon + e, exp(e/2)·delta + d), in every reading."""
    ideal, real = gaussian(0.04), Cost(0.04, extra_epsilon=1e-3, extra_delta=1e-8)
    assert real.delta(1.001) == pytest.approx(np.exp(5e-4) * ideal.delta(1.0) + 1e-8, rel=1e-6)
    epsilon = real.epsilon(1e-6)
    assert epsilon == pytest.approx(ideal.epsilon((1e-6 - 1e-8) * np.exp(-5e-4)) + 1e-3, rel=1e-9)
    assert real.within(Privacy(epsilon * (1 + 1e-9), 1e-6))
    assert not real.within(Privacy(epsilon * (1 - 1e-6), 1e-6))
    assert real.epsilon(1e-8) == np.inf
    assert total([real, real]).extra_delta == 2e-8
