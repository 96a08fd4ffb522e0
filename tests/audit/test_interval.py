"""Intervals hold what they name as often as they say; the bounds behind them are true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from taciturn.audit.interval import mean_interval, share_interval, spread_interval
from taciturn.audit.selection import delta_of_flips
from taciturn.audit.statistics import not_normal
from taciturn.kernel.accounting.gdp import delta_of

ERROR = 0.1
SAMPLES = np.random.default_rng(5).normal(3.0, 2.0, (4_000, 20))


def test_intervals_of_standard_deviations_have_their_coverage():
    """4,000 samples miss the truth 400 times, give or take 5 sigma of 19 (a chance of 6e-7)."""
    squares = np.sum((SAMPLES - SAMPLES.mean(axis=1, keepdims=True)) ** 2, axis=1)
    missed = sum(not low < 2.0 < high for low, high in (spread_interval(s, 19, ERROR) for s in squares))
    assert abs(missed - 400) < 95


def test_means_are_held_as_often_as_said():
    """The same for Student's interval."""
    missed = sum(not low < 3.0 < high for low, high in (mean_interval(sample, ERROR) for sample in SAMPLES))
    assert abs(missed - 400) < 95


@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.98])
def test_shares_are_held_at_least_as_often_as_said(p):
    """By the binomial law, exactly."""
    held = [low <= p <= high for low, high in (share_interval(n, 30, ERROR) for n in range(31))]
    assert float(np.sum(binom.pmf(np.arange(31), 30, p)[held])) >= 1.0 - ERROR


@given(st.floats(0.05, 0.95), st.floats(0.0, 0.9), st.integers(1, 12), st.floats(0.0, 2.0))
def test_the_delta_of_a_race_lies_between_two_symmetric_ones(m, share, K, epsilon):
    """The two post-processings of the docstring, compared with the delta of K wins with the probabilities m ± f/2."""
    f = share * 2.0 * min(m, 1.0 - m)
    n = np.arange(K + 1)
    P, Q = binom.pmf(n, K, m + f / 2.0), binom.pmf(n, K, m - f / 2.0)
    delta = max(float(np.sum(np.maximum(0.0, a - math.exp(epsilon) * b))) for a, b in ((P, Q), (Q, P)))
    assert delta_of_flips(f / (2.0 * max(m, 1.0 - m)), K, epsilon) <= delta + 1e-12
    assert delta_of_flips(f / (2.0 * min(m, 1.0 - m)), K, epsilon) >= delta - 1e-12


@given(st.floats(0.1, 3.0), st.floats(0.3, 3.0), st.floats(0.3, 3.0))
def test_no_smaller_mu_is_true_of_two_normal_laws(m, s, t):
    """At the middle threshold the two errors are below what a mu smaller by a thousandth allows."""
    mu = m * (1.0 / s + 1.0 / t) / 2.0
    alarm, miss = norm.sf(m / 2.0 / s), norm.cdf(-m / 2.0 / t)
    assert miss < norm.cdf(norm.isf(alarm) - 0.999 * mu)


def test_many_even_releases_are_like_a_gaussian():
    """By the central limit theorem `D(f)` nears `delta_of(epsilon, 2·sqrt(K)·f)`."""
    assert delta_of_flips(0.005, 10_000, 0.5) == pytest.approx(delta_of(0.5, 1.0), rel=1e-2)


def test_normal_noise_looks_normal_and_uniform_noise_does_not():
    """Of any sd, release by release; at an error of 0.01 a hundred samples give an alarm or two at most."""
    rng = np.random.default_rng(6)
    scales = np.array([0.1, 1.0, 7.0])
    alarms = sum(bool(not_normal(rng.normal(size=(400, 3)) * scales + 5.0, 0.01)) for _ in range(100))
    assert alarms <= 8  # more have a probability of 1e-6 at most
    assert not_normal(rng.uniform(-1.0, 1.0, (40_000, 3)) * scales, 1e-6)
