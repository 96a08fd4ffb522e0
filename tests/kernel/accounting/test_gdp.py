"""Gaussian privacy in closed form: against 60 digits, against dp-accounting, and against itself."""

import contextlib
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from instances import true_delta
from taciturn import InvalidInput, Privacy
from taciturn.kernel.accounting import gdp as exact
from taciturn.kernel.accounting.gdp import delta_of, epsilon_of, mu_of

LOG_MU = st.floats(-12.0, math.log10(30.0))
DEVIATIONS = st.floats(0.0, 37.0)
BUDGETS = [(float(e), float(d)) for e in np.geomspace(1e-3, 50.0, 20) for d in np.geomspace(1e-12, 0.1, 10)]


@settings(max_examples=300)
@given(LOG_MU, DEVIATIONS)
@example(-12.0, 0.0)
@example(math.log10(30.0), 0.0)
def test_delta_is_an_upper_bound_within_1e_7(log_mu, deviations):
    """delta_of is never below the truth, and within a relative 1e-7 of it, where delta is above 1e-300."""
    mu = 10.0**log_mu
    epsilon = min(mu * (deviations + mu / 2.0), 100.0)
    true = true_delta(epsilon, mu)
    assert true <= delta_of(epsilon, mu) <= max(true * (1 + 1e-7), 1e-300)


@settings(max_examples=200)
@given(st.floats(0.0, 100.0), LOG_MU)
@example(100.0, -12.0)
@example(0.0, -12.0)
@example(1e-300, 0.0)
def test_delta_is_an_upper_bound_for_any_epsilon(epsilon, log_mu):
    """delta_of is never below the truth and never 0, even where the truth lies far below the smallest double."""
    mu = 10.0**log_mu
    assert max(true_delta(epsilon, mu), mpmath.mpf(2) ** -1074) <= delta_of(epsilon, mu) <= 1.0


@each("mu", [5e-324, 1e-308, 1e-200, 1e-50, 1e-12, 1.0, 30.0, 1e6, 1e200])
@each("epsilon", [0.0, 5e-324, 1e-100, 1.0, 700.0, 1e10, 1e300])
def test_some_privacy_is_always_lost(epsilon, mu):
    """Whatever mu > 0, the reported delta is positive and at most 1."""
    assert 0.0 < delta_of(epsilon, mu) <= 1.0


@each("mu", [1e2, 1e4, 1e8, 1e12, 1e15])
@each("deviations", [-5.0, 0.0, 1.0, 10.0, 30.0])
def test_delta_is_an_upper_bound_for_large_mu(mu, deviations):
    """The bound holds far beyond any mu that protects anyone, where epsilon/mu - mu/2 loses its digits."""
    assert _exceeded(mu * (mu / 2.0 + deviations), mu) is False


def test_delta_is_an_upper_bound_for_absurd_mu():
    """At mu = 3.7e16 the rounding error of epsilon/mu - mu/2 is several units, and the bound must hold still."""
    assert _exceeded(6.809325958432548e32, 3.690345771992792e16) is False


def _exceeded(epsilon, mu):
    """Whether the true delta exceeds the reported one, for mu so large that the second term is a Mills ratio's tail."""
    with mpmath.workdps(120):
        x = mpmath.mpf(epsilon) / mpmath.mpf(mu) - mpmath.mpf(mu) / 2
        return bool(mpmath.ncdf(-x) - mpmath.npdf(x) / (x + mpmath.mpf(mu)) > delta_of(epsilon, mu))


@settings(max_examples=100)
@given(LOG_MU, st.floats(-290.0, -0.01))
def test_epsilon_is_an_upper_bound(log_mu, log_delta):
    """The reported epsilon keeps delta, and one smaller by a relative 1e-6 does not."""
    mu, delta = 10.0**log_mu, 10.0**log_delta
    epsilon = epsilon_of(delta, mu)
    assert true_delta(epsilon, mu) <= delta
    assert epsilon == 0.0 or true_delta(epsilon * (1.0 - 1e-6), mu) > delta * (1.0 - 1e-7)


@settings(max_examples=100)
@given(st.floats(0.0, 100.0), st.floats(-290.0, -0.01))
@example(0.0, -12.0)
def test_mu_is_a_lower_bound(epsilon, log_delta):
    """The reported mu keeps (epsilon, delta), and one larger by a relative 1e-6 does not."""
    delta = 10.0**log_delta
    mu = mu_of(epsilon, delta)
    assert true_delta(epsilon, mu) <= delta < true_delta(epsilon, mu * (1.0 + 1e-6))


@settings(max_examples=100)
@given(st.floats(-4.0, 2.0), st.floats(-100.0, -0.1))
def test_there_and_back_again(log_epsilon, log_delta):
    """From a budget to its mu and back: never less than the budget allows, and the budget to nine digits."""
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    mu = mu_of(epsilon, delta)
    assert epsilon_of(delta, mu) == pytest.approx(epsilon, rel=1e-6)
    assert delta_of(epsilon, mu) <= delta
    assert mu_of(epsilon_of(delta, mu), delta) == pytest.approx(mu, rel=1e-6)


@settings(max_examples=200)
@given(st.floats(-6.0, 1.4), DEVIATIONS, st.floats(1e-6, 1.0))
def test_delta_falls_with_epsilon_and_rises_with_mu(log_mu, deviations, more):
    """More epsilon means no more delta; more noise means no more delta."""
    mu = 10.0**log_mu
    epsilon = mu * (deviations + mu / 2.0)
    assert delta_of(epsilon + mu * more, mu) <= delta_of(epsilon, mu) <= delta_of(epsilon, mu * (1.0 + more))


@settings(max_examples=100)
@given(st.floats(-3.0, 2.0), st.floats(-12.0, -0.5), st.floats(1.001, 10.0))
def test_mu_rises_with_the_budget(log_epsilon, log_delta, factor):
    """A larger budget allows a larger mu, in both of its numbers."""
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    mu = mu_of(epsilon, delta)
    assert mu < mu_of(epsilon * factor, delta)
    assert mu < mu_of(epsilon, min(delta * factor, 0.999))


@each(
    ("delta", "table"),
    [
        (1e-6, {0.01: 0.00326, 0.1: 0.0275, 1: 0.23670, 10: 1.85, 20: 3.24}),
        (1e-2, {0.01: 0.0361, 0.1: 0.105, 1: 0.533, 10: 2.86, 20: 4.53}),
    ],
)
def test_published_values(delta, table):
    """The mu of common budgets, to three digits."""
    for epsilon, mu in table.items():
        assert mu_of(epsilon, delta) == pytest.approx(mu, rel=3e-3)


def test_the_value_everyone_checks():
    """Budget (1, 1e-6) allows mu = 0.236704, to six digits."""
    assert f"{Privacy(1.0, 1e-6).mu:.6f}" == "0.236704"


@each("mu", [1e-3, 0.3, 2.0, 25.0])
def test_at_epsilon_0_delta_is_a_total_variation(mu):
    """delta(0) = Phi(mu/2) - Phi(-mu/2), the distance between the two Gaussians."""
    assert delta_of(0.0, mu) == pytest.approx(math.erf(mu / math.sqrt(8.0)), rel=1e-9)


def test_delta_agrees_with_dp_accounting():
    """On 200 budgets, dp-accounting's delta at our mu is the budget's, to a relative 1e-6."""
    for epsilon, delta in BUDGETS:
        mu = mu_of(epsilon, delta)
        theirs = GaussianPrivacyLoss(1.0 / mu, sensitivity=1).get_delta_for_epsilon(epsilon)
        assert theirs == pytest.approx(delta, rel=1e-6)
        assert delta_of(epsilon, mu) == pytest.approx(theirs, rel=1e-6)


def test_noise_agrees_with_dp_accounting():
    """On 200 budgets, dp-accounting calibrates the same noise, to a relative 1e-6."""
    for epsilon, delta in BUDGETS:
        budget = common.DifferentialPrivacyParameters(epsilon, delta)
        theirs = GaussianPrivacyLoss.from_privacy_guarantee(budget).standard_deviation
        assert 1.0 / mu_of(epsilon, delta) == pytest.approx(theirs, rel=1e-6)


@each("releases", [1, 7, 100_000])
def test_noise_for_equal_releases(releases):
    """`sqrt(K)/mu` times the sensitivity hides K releases, and a hair less noise does not."""
    privacy = Privacy(1.0, 1e-6)
    noise = exact.noise_multiplier(privacy, releases)
    assert true_delta(1.0, mpmath.sqrt(releases) / (noise * (1.0 + 1e-12))) <= 1e-6
    assert true_delta(1.0, mpmath.sqrt(releases) / (noise * (1.0 - 1e-6))) > 1e-6


def test_nothing_shown_nothing_lost():
    """mu = 0 costs nothing, and infinite mu costs everything."""
    assert delta_of(1.0, 0.0) == 0.0
    assert epsilon_of(1e-6, 0.0) == 0.0
    assert delta_of(1.0, math.inf) == 1.0
    assert epsilon_of(1e-6, math.inf) == math.inf


@each(
    ("function", "arguments"),
    [
        (delta_of, (-1.0, 1.0)),
        (delta_of, (1.0, -1.0)),
        (delta_of, (math.nan, 1.0)),
        (delta_of, (1.0, math.nan)),
        (epsilon_of, (0.0, 1.0)),
        (epsilon_of, (1.0, 1.0)),
        (epsilon_of, (math.nan, 1.0)),
        (epsilon_of, (1e-6, -1.0)),
        (epsilon_of, (1e-6, math.nan)),
        (mu_of, (-1.0, 1e-6)),
        (mu_of, (math.inf, 1e-6)),
        (mu_of, (math.nan, 1e-6)),
        (mu_of, (1.0, 0.0)),
        (mu_of, (1.0, 1.0)),
        (mu_of, (1.0, math.nan)),
    ],
)
def test_senseless_numbers_are_refused(function, arguments):
    """Negative, infinite or undefined parameters raise InvalidInput, which is a ValueError."""
    with pytest.raises(InvalidInput):
        function(*arguments)


@each("epsilon", [0.0, -1.0, math.inf, math.nan, None, "much"])
def test_a_budget_needs_a_positive_epsilon(epsilon):
    """Budgets name the field and come with a remedy."""
    with pytest.raises(InvalidInput, match="epsilon must be positive"):
        Privacy(epsilon, 1e-6)


@each("delta", [0.0, 1.0, -1e-6, 2.0, math.nan])
def test_a_budget_needs_a_delta_between_0_and_1(delta):
    """Budgets name the field and come with a remedy."""
    with pytest.raises(InvalidInput, match="delta must lie strictly between 0 and 1"):
        Privacy(1.0, delta)


def test_a_budget_is_a_value():
    """Budgets are equal when their numbers are, hashable, and frozen."""
    assert Privacy(1.0, 1e-6) == Privacy(1, 1e-6)
    assert len({Privacy(1.0, 1e-6), Privacy(1.0, 1e-6), Privacy(2.0, 1e-6)}) == 2
    with pytest.raises(AttributeError):
        Privacy(1.0, 1e-6).epsilon = 2.0


@each(("kind", "epsilon", "delta"), [(np.float32, 10.0, 0.01), (np.float16, 1.0, 0.001)])
def test_numbers_of_low_precision_are_computed_in_double(kind, epsilon, delta):
    """A budget given in single precision gets the mu of the numbers it stands for, and no more."""
    assert mu_of(kind(epsilon), kind(delta)) == mu_of(float(kind(epsilon)), float(kind(delta)))


@each("search", [epsilon_of, lambda delta, epsilon: mu_of(epsilon, delta)])
def test_a_delta_below_the_normal_doubles_ends(search, monkeypatch):
    """A delta near or below 2^-1022 is refused or answered, and not searched for ever."""
    calls, honest = iter(range(20_000)), exact._delta

    def counted(epsilon, mu):
        if next(calls, None) is None:
            raise TimeoutError("20000 evaluations")
        return honest(epsilon, mu)

    monkeypatch.setattr(exact, "_delta", counted)
    with contextlib.suppress(InvalidInput):
        assert search(1e-310, 1.0) >= 0.0
    assert search(2.3e-308, 1.0) > 0.0


@each(("epsilon", "delta"), [*BUDGETS, (0.0, 1e-6), (700.0, 1e-6), (1.0, 1e-250)])
def test_the_quick_search_finds_what_bisection_does(epsilon, delta):
    """Against the slow twin, as far as delta_of itself is smooth: a few thousand units in the last place."""
    mu = mu_of(epsilon, delta)
    assert delta_of(epsilon, mu) <= delta
    assert mu == pytest.approx(exact.largest_true(lambda m: delta_of(epsilon, m) <= delta), rel=1e-12, abs=0.0)


def test_the_quick_search_returns_what_it_has_seen_to_hold():
    """However wrong the root: of a function with a jump, and of one with a hole in which less is spent."""
    assert exact._last_kept(lambda x: 1e-9 if x <= 5.0 else 0.5, 1e-6, 4.0, 8.0) == pytest.approx(5.0, rel=1e-14)
    assert exact._last_kept(lambda x: 1e-9 if x >= 5.0 else 0.5, 1e-6, 8.0, 0.0) == pytest.approx(5.0, rel=1e-14)
    for top in (5.0, 5.5, 7.9):
        found = exact._last_kept(lambda x, top=top: 1e-7 if x <= 4.5 or 5.0 < x < top else 1e-3, 1e-6, 4.0, 8.0)
        assert found <= 4.5 or 5.0 < found < top


@each("epsilon", [0.1, 1.0, 10.0])
def test_the_quick_search_is_quick(epsilon, monkeypatch):
    """Bisection asks some 55 times."""
    calls, honest = [], exact._delta
    monkeypatch.setattr(exact, "_delta", lambda *given: calls.append(given) or honest(*given))
    exact.mu_of(epsilon, 1e-6)
    assert len(calls) <= 25
