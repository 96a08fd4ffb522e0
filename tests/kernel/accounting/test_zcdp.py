"""zCDP: the conversion against 50 digits, against dp-accounting, and against the exact Gaussian."""

import contextlib
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from taciturn import InvalidInput
from taciturn.kernel.accounting import zcdp as concentrated
from taciturn.kernel.accounting.gdp import delta_of, mu_of
from taciturn.kernel.accounting.zcdp import delta_of_rho, epsilon_of_rho, least_value, rho_of

DEVIATIONS = st.floats(0.0, 30.0)
BUDGETS = st.tuples(st.floats(-2.0, 1.5).map(lambda e: 10.0**e), st.floats(-12.0, -0.5).map(lambda d: 10.0**d))


def infimum(epsilon, rho):
    """`inf over a > 1` of the conversion, from its stationary point, to 50 digits."""
    with mpmath.workdps(60):
        epsilon, rho = mpmath.mpf(epsilon), mpmath.mpf(rho)
        low, high = mpmath.mpf(-200), mpmath.mpf(100)  # of ln(a - 1); the derivative in a rises
        for _ in range(180):
            middle = (low + high) / 2
            a = 1 + mpmath.exp(middle)
            rising = (2 * a - 1) * rho - epsilon + middle - mpmath.log(a) > 0
            low, high = (low, middle) if rising else (middle, high)
        excess = mpmath.exp(low)
        return mpmath.exp(excess * ((1 + excess) * rho - epsilon + low) - (1 + excess) * mpmath.log1p(excess))


@settings(max_examples=60)
@given(st.floats(-3.0, 2.0), st.floats(0.0, 25.0))
def test_delta_is_the_infimum(log_rho, deviations):
    """delta_of_rho is never below the infimum over orders, and within a relative 1e-9 of it."""
    rho = 10.0**log_rho
    epsilon = rho + 2.0 * math.sqrt(rho) * deviations
    true = infimum(epsilon, rho)
    assert true <= delta_of_rho(epsilon, rho) <= max(true * (1 + 1e-9), 1e-300)


@pytest.mark.parametrize("rho", [1e-12, 1e-9, 1e-6])
def test_delta_is_an_upper_bound_for_small_rho(rho):
    """The bound holds for small costs too."""
    for deviations in np.linspace(0.5, 20.0, 40):
        epsilon = float(rho + 2.0 * math.sqrt(rho) * deviations)
        assert infimum(epsilon, rho) <= delta_of_rho(epsilon, rho)


def test_some_privacy_is_always_lost():
    """Whatever rho > 0, the reported delta is positive."""
    assert delta_of_rho(1.0, 1e-4) > 0.0


@settings(max_examples=100)
@given(st.floats(-4.0, 1.0), DEVIATIONS)
def test_gaussian_noise_read_as_zcdp_costs_no_less(log_mu, deviations):
    """mu-GDP is (mu²/2)-zCDP, whose delta is therefore at least the exact one."""
    mu = 10.0**log_mu
    epsilon = mu * (deviations + mu / 2.0)
    assert delta_of_rho(epsilon, mu * mu / 2.0) * (1.0 + 1e-9) + 1e-300 >= delta_of(epsilon, mu)


@pytest.mark.parametrize("rho", [1e-3, 0.02, 0.5, 5.0])
def test_agrees_with_dp_accounting(rho):
    """dp-accounting's conversion of the Rényi divergences a·rho, over many orders, is the same to four digits."""
    orders = 1.0 + np.geomspace(1e-3, 1e4, 20_000)
    for deviations in (0.5, 2.0, 5.0):
        epsilon = rho + 2.0 * math.sqrt(rho) * deviations
        theirs, _ = rdp_privacy_accountant.compute_delta(orders, orders * rho, epsilon)
        assert delta_of_rho(epsilon, rho) == pytest.approx(theirs, rel=1e-4)


@settings(max_examples=40)
@given(BUDGETS)
def test_there_and_back_again(budget):
    """The largest rho of a budget keeps it, a relative 1e-6 more does not, and epsilon comes back."""
    epsilon, delta = budget
    rho = rho_of(epsilon, delta)
    assert delta_of_rho(epsilon, rho) <= delta < delta_of_rho(epsilon, rho * (1.0 + 1e-6))
    assert epsilon_of_rho(delta, rho) == pytest.approx(epsilon, rel=1e-6)


@settings(max_examples=40)
@given(BUDGETS)
def test_zcdp_is_the_wasteful_reading(budget):
    """The mu² that the exact reading allows is more than the 2·rho that zCDP allows."""
    assert 2.0 * rho_of(*budget) < mu_of(*budget) ** 2


def test_nothing_shown_nothing_lost():
    """rho = 0 costs nothing."""
    assert delta_of_rho(1.0, 0.0) == 0.0
    assert epsilon_of_rho(1e-6, 0.0) == 0.0


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (delta_of_rho, (-1.0, 1.0)),
        (delta_of_rho, (1.0, -1.0)),
        (delta_of_rho, (math.nan, 1.0)),
        (delta_of_rho, (1.0, math.nan)),
        (epsilon_of_rho, (0.0, 1.0)),
        (epsilon_of_rho, (1e-6, -1.0)),
        (rho_of, (1.0, 1.0)),
        (rho_of, (-1.0, 1e-6)),
    ],
)
def test_senseless_numbers_are_refused(function, arguments):
    """Negative or undefined parameters raise InvalidInput."""
    with pytest.raises(InvalidInput):
        function(*arguments)


@pytest.mark.parametrize(("search", "arguments"), [(epsilon_of_rho, (1e-6, math.inf)), (rho_of, (math.inf, 1e-6))])
def test_infinite_parameters_end(search, arguments, monkeypatch):
    """Infinite parameters are refused or answered, and not searched for ever."""
    calls = iter(range(20_000))

    def counted(epsilon, rho):
        if next(calls, None) is None:
            raise TimeoutError("20000 evaluations")
        return delta_of_rho(epsilon, rho)

    monkeypatch.setattr(concentrated, "delta_of_rho", counted)
    with contextlib.suppress(InvalidInput):
        assert search(*arguments) == math.inf


@pytest.mark.parametrize("seed", range(20))
def test_the_least_value_is_that_of_scipy(seed):
    """To the last bit, also of functions with several valleys, and where the least value is at an end."""
    rng = np.random.default_rng(seed)
    low, high, a, b, c = rng.uniform(-5.0, 0.0), rng.uniform(0.0, 9.0), *rng.uniform(-3.0, 3.0, 3)
    within = 10.0 ** rng.uniform(-12.0, -1.0)
    for function in (
        lambda x: a * x**2 + b * x + c,
        lambda x: abs(x - a) + b * math.sin(c * x),
        lambda x: math.exp(a * x) + math.exp(-b * x),
        lambda x: c,
    ):
        found = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": within})
        assert least_value(function, low, high, within) == found.fun
