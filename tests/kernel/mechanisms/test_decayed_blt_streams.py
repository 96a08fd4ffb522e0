"""Whole streams that forget, attacked: influence ends in the states of all learners; round 1e9 is like the first."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ellipk

from taciturn import (
    DecayedBLT,
    Hinge,
    L2Ball,
    Linear,
    Privacy,
    Private,
    Problem,
    Squared,
    User,
    WholeSpace,
    class_sums,
    every,
    pftrl,
    pqftl,
    private_sum,
)
from taciturn.audit import distinguish, tight_pair, tight_private
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.mechanisms.strategy import sums_of
from taciturn.kernel.replay import buffers_of, exact_of
from taciturn.kernel.stream.state import State
from taciturn.plan import recommend

BUDGET = Privacy(10.0, 1e-6)
BALL = L2Ball(5.0)
SETTINGS = {"forget": 2, "schedule": every(2), "seed": 1}  # a window of one release: 128 of them are a period

STREAMS = {
    "sum": lambda: private_sum(2, 1.0, BUDGET, **SETTINGS),
    "sum of users": lambda: private_sum(2, 1.0, BUDGET, unit=User(2, 1, 3), **SETTINGS),
    "pqftl": lambda: pqftl(Problem(Squared(), BALL, 2, label_bound=1.0), BUDGET, **SETTINGS),
    "pftrl": lambda: pftrl(
        Problem(Linear(), BALL, 2, label_bound=1.0), BUDGET, **SETTINGS
    ),  # gradients without feedback
    "class_sums": lambda: class_sums(Problem(Hinge(), WholeSpace(), 2), BUDGET, **SETTINGS),
}


def worlds(rows: int, place: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two streams of rows and labels that differ in one of them, and as far as rows can."""
    rng = np.random.default_rng(place)
    X = rng.uniform(0.0, 0.7, (rows, 2))
    y = np.sign(rng.uniform(-1.0, 1.0, rows))
    other = X.copy(), y.copy()
    X[place], other[0][place], other[1][place] = (0.6, 0.8), (0.8, 0.6), -y[place]
    return [(X, y), other]


def through(private: Private, X: np.ndarray, y: np.ndarray, cuts: list[int]) -> State:
    """The state after these rows, in pieces, each of which goes on from the bytes of the state before."""
    state = private.start()
    labelled = not isinstance(private.learner, VectorSum)
    ends = sorted({cut for cut in cuts if cut < len(y)} | {len(y)})
    for start, end in zip([0, *ends], ends, strict=False):
        more = {}
        if isinstance(private.unit, User):
            more["users"] = np.arange(start, end)
        labels = y[start:end] if labelled else None
        state, _ = private.run(private.load(state.to_bytes()), X[start:end], labels, **more)
    return state


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", STREAMS)
@given(place=st.integers(0, 255), cuts=st.lists(st.integers(1, 600), max_size=4))
@settings(deadline=None, max_examples=3)
def test_the_secret_state_is_the_same_once_a_row_is_forgotten(name, compiled, place, cuts):
    """To the last bit, by the definition and by compiled code, however the stream is cut and resumed.

    A period is 256 rounds, so a row of the first one is gone after 512 at the latest.
    """
    private = replace(STREAMS[name](), compiled=compiled)
    assert private.calibrated.coder.period == 128
    here, there = (through(private, *world, cuts) for world in worlds(640, place))
    for key, array in buffers_of(here).items():
        np.testing.assert_array_equal(array, buffers_of(there)[key])
    for key, array in exact_of(here).items():
        np.testing.assert_array_equal(array, exact_of(there)[key])
    soon = [through(private, X[: place + 8], y[: place + 8], cuts) for X, y in worlds(640, place)]
    assert any((buffers_of(soon[0])[key] != buffers_of(soon[1])[key]).any() for key in buffers_of(soon[0]))


@pytest.mark.privacy
def test_the_rows_after_stages_are_forgotten_as_well():
    """With ranges found in the first rows, which the learner does not see; it counts its own rows."""
    problem = Problem(Squared(), L2Ball(2.0), 1, label_bound=1.0)
    private = replace(recommend(problem, BUDGET, ranges="private", forget=50, schedule=every(50)).private, seed=1)
    first, period = private.rows_of_stages, private.calibrated.coder.period * 50
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1.0, 1.0, (first + 2 * period + 100, 1)), rng.uniform(-1.0, 1.0, first + 2 * period + 100)
    states = []
    for label in (1.0, -1.0):
        y[first + 70] = label
        state, soon, end = private.start(), None, 0
        for start, end in ((0, first + 100), (first + 100, first + period + 100), (first + period + 100, len(y))):
            state, _ = private.run(private.load(state.to_bytes()), X[start:end], y[start:end])
            soon = state if soon is None else soon
        states.append((soon, state))
    key = next(name for name in buffers_of(states[0][0]) if name.endswith("buffers"))
    assert (buffers_of(states[0][0])[key] != buffers_of(states[1][0])[key]).any()
    np.testing.assert_array_equal(buffers_of(states[0][1])[key], buffers_of(states[1][1])[key])


# Far rounds.


def skipped(private: Private, releases: int) -> State:
    """The state after so many releases, the last two periods and more of them of zero rows, in the time of two periods.

    Two periods of zero rows leave zeros in the secret buffers, whatever was there before; and what is older than that
    weighs less than exp(-256) in the public ones. So a stream that began two periods ago is in the same state. Noise
    depends on the seed and on the number of the release.
    """
    wait, coder = private.schedule.rounds, private.calibrated.coder
    before = releases - 2 * coder.period
    state = replace(private.start(), t=before * wait, k=before)
    return private.run(state, np.zeros((2 * coder.period * wait, private.learner.problem.dimension)))[0]


def test_rounds_are_skipped_as_the_definition_passes_them():
    """Rows that are not zero, then five periods of zeros, round by round: the same state to the last secret bit."""
    private = private_sum(2, 1.0, BUDGET, **SETTINGS)
    rows = np.zeros((8 * 256 + 6, 2))
    rows[:500] = np.random.default_rng(1).uniform(-0.7, 0.7, (500, 2))
    for compiled in (True, False):
        made = replace(private, compiled=compiled)
        state = made.run(made.start(), rows)[0]
        far = skipped(made, len(rows) // 2)
        assert (far.t, far.k) == (state.t, state.k)
        np.testing.assert_array_equal(buffers_of(far)["buffers"], buffers_of(state)["buffers"])
        for key, array in state.public.items():
            np.testing.assert_allclose(far.public[key], array, rtol=1e-12, atol=1e-12 * private.calibrated.sd)


@pytest.mark.privacy
@pytest.mark.parametrize("horizon", [None, 10**12])
def test_a_stream_of_a_billion_rounds_keeps_all_of_its_promises(horizon):
    """Noise as stated and below its constant, states of the same size, nothing more spent: mu, rounding and sampler.

    2,000 noisy sums of 5 entries, a window and more apart in twenties, have about 500 independent values at least: the
    standard deviation of the noise is measured to 5·sqrt(1/1,000) = 16 % but for a chance below 1e-6.
    """
    private = private_sum(5, 1.0, BUDGET, horizon, forget=1_000, schedule=every(100), seed=3)
    calibrated = private.calibrated
    first, _ = private.run(private.start(), np.zeros((100, 5)))
    state = skipped(private, 10**7)
    assert (state.t, state.k) == (10**9, 10**7)
    rows = np.random.default_rng(2).uniform(-0.4, 0.4, (200_000, 5))
    state, releases = private.run(state, rows)
    exact = sums_of(calibrated.coder, rows.reshape(2_000, 100, 5).sum(axis=1))
    noise = (releases.noisy - exact) / releases.noise_sd[:, None]
    assert float(np.sqrt(np.mean(noise**2))) == pytest.approx(1.0, abs=0.16)
    constant = 2.0 / math.pi * float(ellipk(calibrated.coder.decay**2))
    moved = float(private.learner.certificate.at([100.0])[0])
    assert releases.noise_sd.max() <= 1.01 * constant * moved / private.guarantee.delivered.mu
    assert state.spent == first.spent == calibrated.cost(1) == calibrated.cost(None)
    assert state.spent == private.guarantee.delivered
    assert private.guarantee.epsilon <= 10.0
    assert len(state.to_bytes()) <= len(first.to_bytes()) + 64


@pytest.mark.privacy
@pytest.mark.parametrize("algorithm", ["pqftl", "pftrl", "private_sum"])
@pytest.mark.parametrize(
    ("rounds", "wait", "window"),
    [(100, 1, 10), pytest.param(100_000, 200, 1_000, marks=pytest.mark.slow)],
)
def test_the_audited_mu_is_the_claimed_one(algorithm, rounds, wait, window):
    """Within 3 %, for a row in the middle of 100 and of 100,000 rounds, ten and fifty windows before the end.

    14,000 trials measure standard deviations to `3.5/sqrt(14,000)`, 3 %, at an error of 1e-6 (`audit.distinguish`).
    """
    tight = tight_private(algorithm, Privacy(1.0, 1e-6), rounds)
    private = replace(tight, mechanism=DecayedBLT(window), schedule=every(wait))
    found = distinguish(private, tight_pair(private, "middle"), trials=14_000, secret_trials=0)
    assert found.verdict == "holds"
    assert found.mu == pytest.approx(private.guarantee.delivered.mu, rel=0.03)
