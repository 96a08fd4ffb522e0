"""Sums without a horizon: paid for in advance, over as many rounds as there may be, and integers in range."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.strategies import CASES
from taciturn import BudgetExhausted, Privacy, every, geometric, private_sum
from taciturn.accounting.cost import FREE

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)


@pytest.mark.parametrize("case", ["sum", "qftl", "ftrl"])
@pytest.mark.parametrize(("schedule", "block"), [(every(1), 1), (every(7), 7)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_an_endless_stream_is_paid_for_in_advance(case, schedule, block, epsilon):
    """Over 2²³ rounds, the coarsest steps and rounding errors included, it keeps its budget and uses nearly all."""
    private = CASES[case](None, Privacy(epsilon, 1e-6), schedule=schedule)
    calibrated, size, largest = (
        private.calibrated,
        private.learner.statistic_size,
        private.learner.certificate.magnitude,
    )
    releases = 2**23 // block
    rows, coarsest = calibrated.coder.before(releases + 1), calibrated.step(releases)
    delta = CASES[case].delta + math.sqrt(size) * 2.0 ** (math.floor(math.log2(largest)) - 26)
    lattice = math.sqrt(rows * size) * (coarsest + 2.0 * calibrated.coder.rounding_error * largest * block)
    assert delta + lattice <= private.guarantee.delivered.mu * calibrated.sd <= (delta + lattice) * 1.01
    assert private.guarantee.holds
    assert private.guarantee.epsilon > 0.99 * epsilon
    assert calibrated.cost(0) == FREE
    assert calibrated.cost(1) == calibrated.cost(None)


@settings(max_examples=30)
@given(k=st.integers(1, 2**23), epsilon=st.floats(-2.0, 1.0).map(lambda e: 10.0**e))
def test_endless_integers_are_in_range(k, epsilon):
    """At any release: steps are powers of two that never shrink, sums below 2^52 of them, noise where it is proven."""
    calibrated = CASES["ftrl"](None, Privacy(epsilon, 1e-6)).calibrated
    step, largest = calibrated.step(k), k * 1.5
    assert math.frexp(step)[0] == 0.5
    assert calibrated.step(max(1, k // 2)) <= step
    assert largest < 2.0**52 * step
    assert 2.0**25 <= calibrated.sd / step <= 2.0**40


@pytest.mark.parametrize("block", [1, 30])
def test_endless_noise_has_its_release_s_step(block):
    """Each row's noise is on the lattice of what it is added to, where the step doubles too."""
    calibrated = CASES["sum"](None, Privacy(10.0, 1e-6), schedule=every(block)).calibrated
    coder, first = calibrated.coder, calibrated.step(1)
    doubles = bisect_left(range(2**18), True, key=lambda k: calibrated.step(k) > first)
    assert calibrated.step(doubles) == 2.0 * calibrated.step(doubles - 1)
    for k in (1, 3, doubles - 1, doubles):
        rows = range(coder.before(k) + 1, coder.before(k + 1) + 1)
        assert set(calibrated.step_of_row(rows).ravel()) == {calibrated.step(k)}


def test_an_endless_stream_ends():
    """After 2²³ rounds what was paid for is used up, and it says what to do."""
    calibrated = CASES["sum"](None, BUDGET, schedule=every(2**20)).calibrated
    assert len(calibrated.noise(None, 8, 1)) == 1
    with pytest.raises(BudgetExhausted, match="Start a new stream"):
        calibrated.noise(None, 9, 1)


@pytest.mark.parametrize("schedule", [every(50), geometric(1.1), geometric(2.0)])
def test_an_endless_stream_can_be_simulated(schedule):
    """Under any schedule."""
    private = private_sum(2, 1.0, BUDGET, schedule=schedule, seed=1)
    assert private.fit(np.ones((60, 2))).simulated
