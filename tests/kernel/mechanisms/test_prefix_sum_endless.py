"""Sums without a horizon: paid for in advance, over as many rounds as there may be, and integers in range."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.mechanisms.strategies import CASES, encoded_by_loop, norm
from taciturn import BLT, BudgetExhausted, Privacy, Unprovable, every, geometric, private_sum
from taciturn.calibration.mechanisms import PrefixSum
from taciturn.kernel.accounting.cost import FREE
from taciturn.kernel.accounting.unit import EXAMPLE, User
from taciturn.kernel.learners.exact_sums import rounded
from taciturn.kernel.mechanisms.prefix_sum import LONGEST
from taciturn.kernel.noise import needed
from taciturn.kernel.noise.sampling import seeded_bits
from taciturn.kernel.stream.schedule import Timetable

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)


class Ending(BLT):
    """One that does not start again after its 2²³ rounds, as where releases are not at equal distances."""

    calibrate = PrefixSum.calibrate


@pytest.mark.parametrize("strategy", [None, Ending(8)], ids=["default", "ending"])
@pytest.mark.parametrize("case", ["sum", "qftl", "ftrl"])
@pytest.mark.parametrize(("schedule", "block"), [(every(1), 1), (every(7), 7)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_an_endless_stream_is_paid_for_in_advance(strategy, case, schedule, block, epsilon):
    """Over 2²³ rounds, the coarsest steps and rounding errors included, it keeps its budget and uses nearly all."""
    private = CASES[case](strategy, Privacy(epsilon, 1e-6), schedule=schedule)
    calibrated, size, largest = (
        private.calibrated,
        private.learner.statistic_size,
        private.learner.certificate.magnitude,
    )
    releases = 2**23 // block
    rows, coarsest = calibrated.coder.before(releases + 1), calibrated.step(releases)
    delta = CASES[case].delta + math.sqrt(size) * 2.0 ** (math.floor(math.log2(largest)) - 26)
    errors = 2.0 * calibrated.coder.rounding_error * norm(private) * block
    lattice = math.sqrt(rows) * (math.sqrt(size) * coarsest + errors)
    needed = delta * calibrated.coder.sensitivity + lattice
    assert needed <= private.guarantee.delivered.mu * calibrated.sd <= needed * 1.01
    assert private.guarantee.holds
    assert private.guarantee.epsilon > 0.99 * epsilon
    assert calibrated.cost(0) == FREE
    assert calibrated.cost(1) == calibrated.cost(None)


@settings(max_examples=30)
@given(k=st.integers(1, 2**23), epsilon=st.floats(-2.0, 1.0).map(lambda e: 10.0**e))
def test_endless_integers_are_in_range(k, epsilon):
    """At any release: steps are powers of two that never shrink, sums below 2^52 of them, noise where it is proven."""
    calibrated = CASES["ftrl"](Ending(8), Privacy(epsilon, 1e-6)).calibrated
    step, largest = calibrated.step(k), k * 1.5
    assert math.frexp(step)[0] == 0.5
    assert calibrated.step(max(1, k // 2)) <= step
    assert largest < 2.0**52 * step
    assert 2.0**25 <= calibrated.sd / step <= 2.0**40


@pytest.mark.parametrize("block", [1, 30])
def test_endless_noise_has_its_release_s_step(block):
    """Each row's noise is on the lattice of what it is added to, where the step doubles too."""
    calibrated = CASES["sum"](Ending(8), Privacy(10.0, 1e-6), schedule=every(block)).calibrated
    coder, first = calibrated.coder, calibrated.step(1)
    doubles = bisect_left(range(2**18), True, key=lambda k: calibrated.step(k) > first)
    assert calibrated.step(doubles) == 2.0 * calibrated.step(doubles - 1)
    for k in (1, 3, doubles - 1, doubles):
        rows = range(coder.before(k) + 1, coder.before(k + 1) + 1)
        assert set(calibrated.step_of_row(rows).ravel()) == {calibrated.step(k)}


def test_an_endless_stream_ends():
    """After 2²³ rounds what was paid for is used up, and it says what to do."""
    calibrated = CASES["sum"](Ending(8), BUDGET, schedule=every(2**20)).calibrated
    assert calibrated.last_round == 2**23
    assert len(calibrated.noise(None, 8, 1)) == 1
    with pytest.raises(BudgetExhausted, match="Start a new stream"):
        calibrated.noise(None, 9, 1)


@pytest.mark.parametrize("schedule", [every(50), geometric(1.1), geometric(2.0)])
def test_an_endless_stream_can_be_simulated(schedule):
    """Under any schedule."""
    private = private_sum(2, 1.0, BUDGET, schedule=schedule, seed=1)
    assert private.fit(np.ones((60, 2))).simulated


@pytest.mark.parametrize("horizon", [10, None])
@pytest.mark.parametrize("norm", [math.nan, math.inf, -1.0, "long"])
def test_a_norm_that_bounds_nothing_is_rejected(norm, horizon):
    """Before any noise is drawn, as a magnitude is."""
    stated = replace(private_sum(2, 1.0, BUDGET, 10).learner.certificate, norm=norm)
    with pytest.raises(Unprovable, match="not a finite bound"):
        BLT().calibrate(stated, Timetable(every(2**20), horizon), 2, BUDGET, "exact")


@pytest.mark.parametrize(
    ("size", "unit", "places"),
    [
        (1, EXAMPLE, [0]),
        pytest.param(3, EXAMPLE, [0], marks=pytest.mark.slow),
        pytest.param(1, User(4, 1, 2**18), [0, 2**18, 2**19, 2**19 + 2**18], marks=pytest.mark.slow),
    ],
)
def test_all_rounds_there_may_be_are_as_far_apart_as_is_claimed(size, unit, places):
    """All 2²³ releases of two streams that differ in a unit's rows, as the compiled loop encodes and rounds them.

    The worst pattern reaches more than .99 of the claim, which includes what rounding may add.
    """
    private = private_sum(size, 1.0, Privacy(10.0, 1e-6), unit=unit)
    calibrated = private.calibrated
    coder = getattr(calibrated.coder, "inner", calibrated.coder)  # of one that starts again, for one example
    th, _, om, _ = coder.arrays
    buffers, squared, rng = [np.zeros((len(th), size)) for _ in range(2)], 0.0, np.random.default_rng(size)
    for k in range(0, LONGEST, 2**19):
        rows = rounded(rng.uniform(-1.0, 1.0, (2**19, size)) / math.sqrt(size), 1.0)
        worlds, steps = [rows, rows.copy()], calibrated.steps(k + 1, 2**19)[:, None]
        for place in (place - k for place in places if k <= place < k + 2**19):
            worlds[0][place], worlds[1][place] = np.eye(size)[0], -np.eye(size)[0]
        encoded = [encoded_by_loop(world, th, om, held) for world, held in zip(worlds, buffers, strict=True)]
        integers = [np.floor(each / steps + 0.5) for each in encoded]
        squared += float(np.sum(((integers[1] - integers[0]) * steps) ** 2))
    apart = math.sqrt(squared) / calibrated.sd
    assert 0.99 * private.guarantee.delivered.mu < apart <= private.guarantee.delivered.mu


def test_a_stream_without_a_horizon_is_told_apart_as_well_as_is_claimed(monkeypatch):
    """The noise that such a stream draws, on its eight rows of 2²⁰ rounds each, measures mu to 3 %.

    A game is the first example turned round in one of 4,000 entries, whose noise is independent. N = 40,000 of them in
    a world measure mu = 1.85 with a standard error of `sqrt((2 + mu²/4)/N)` = .0085, and 3 % are 6.5 of these: a false
    alarm has probability 1e-10. Half the noise would be measured as twice the claim.
    """
    size, block = 4_000, count()
    monkeypatch.setattr(needed, "secret_bits", lambda: seeded_bits(5, next(block)))
    calibrated = private_sum(size, 1.0, Privacy(10.0, 1e-6), schedule=every(2**20)).calibrated
    claimed, steps, rows = math.sqrt(calibrated.cost(1).mu_squared), calibrated.steps(1, 8)[:, None], []
    for changed in (1.0, -1.0):
        secret = calibrated.start()[0]
        for k in range(1, 9):
            block_sum = np.full(size, 2.0**20 - 1.0 + (changed if k == 1 else 1.0))
            secret, integers = calibrated.encode(secret, block_sum, k)
            rows.append(integers[0])
    worlds = np.array(rows[:8]), np.array(rows[8:])
    shift = (worlds[0] - worlds[1]) * steps / calibrated.sd
    apart = np.linalg.norm(shift, axis=0)
    scores = [
        np.concatenate([np.sum(_noisy(calibrated, world - worlds[1]) * shift, axis=0) / apart for _ in range(10)])
        for world in worlds
    ]
    measured = (np.mean(scores[0]) - np.mean(scores[1])) / math.sqrt(np.mean([np.var(score) for score in scores]))
    assert np.max(apart) <= claimed
    assert abs(measured / claimed - 1.0) < 0.03


def _noisy(calibrated, rows):
    """Eight noisy rows of integers, in standard deviations."""
    return (calibrated.noise_rows(None, 1, 8) + rows) * calibrated.steps(1, 8)[:, None] / calibrated.sd
