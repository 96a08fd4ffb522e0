"""Several memories of one stream: sums of all windows are those of the rows, their noise is known, and models turn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import (
    BLT,
    FTRL,
    DecayedBLT,
    Hinge,
    InvalidInput,
    L2Ball,
    Ledger,
    OneHot,
    Privacy,
    Private,
    Problem,
    Releases,
    Squared,
    StateConflict,
    Unprovable,
    every,
    pqftl,
    private_sum,
)
from taciturn.calibration.decoded_noise import DecodedNoise
from taciturn.contract.contract import contract_of
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateLinearRegression
from taciturn.estimators.stream import Stream
from taciturn.kernel.accounting.unit import ONCE
from taciturn.memories import Memories, decayed_sums, windows_of

BUDGET = Privacy(1.0, 1e-6)
WINDOWS = (500, 2_000, 8_000)


def turning(rows, turn, seed=1):
    """Two features, the label one of them, and after the turn its opposite."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.7, 0.7, (rows, 2))
    return X, np.where(np.arange(rows) < turn, X[:, 0], -X[:, 0])


def stream_of(epsilon=2.0, seed=1, **settings):
    problem = Problem(Squared(), L2Ball(2.0), 2, label_bound=1.0)
    return pqftl(problem, Privacy(epsilon, 1e-6), forget=2_000, schedule=every(20), seed=seed, **settings)


@given(
    st.integers(1, 40),
    st.lists(st.floats(0.01, 0.999), min_size=1, max_size=3),
    st.integers(0, 30),
    st.sampled_from([BLT(3).coder(128), DecayedBLT(40).coder_every(2, ONCE)]),
)
@settings(max_examples=40, deadline=None)
def test_noise_is_that_of_the_decoder_by_impulses(k, decays, later, coder):
    """The covariance is that of the responses of every sum to each encoded row, the definition."""
    own = getattr(coder, "decay", 1.0)
    n = k + later
    response = np.zeros((n, len(decays), n))
    for row in range(n):
        public = coder.start(1)[1]
        sums, before = np.zeros(len(decays)), 0.0
        for i in range(n):
            public, total = coder.decode(public, np.array([[float(i == row)]]), i + 1)
            sums = np.array(decays) * sums + (total[0] - own * before)
            before = total[0]
            response[i, :, row] = sums
    noise = DecodedNoise(coder, tuple(decays))
    np.testing.assert_allclose(noise.at(k), response[k - 1] @ response[k - 1].T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(noise.from_to(k, n), response[n - 1] @ response[k - 1].T, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("strategy", [DecayedBLT(2_000), BLT(4)])
@pytest.mark.parametrize("window", [400, 2_000, 10_000])
def test_sums_of_any_window_are_those_of_the_rows(strategy, window):
    """Exact sums plus noise of the stated standard deviation: 300 streams, each entry within six standard errors.

    The chance of a false alarm is below 1e-8 for a mean and for a variance (chi-squared of 1,200 degrees of freedom).
    """
    rows, m, streams, size = 4_000, 100, 300, 4
    X = np.random.default_rng(2).uniform(-0.5, 0.5, (rows, size))
    exact = np.zeros(size)
    for block in X.reshape(-1, m, size).sum(axis=1):
        exact = math.exp(-m / window) * exact + block
    errors = []
    for seed in range(streams):
        horizon = None if isinstance(strategy, DecayedBLT) else rows
        private = private_sum(size, 1.0, BUDGET, horizon, strategy=strategy, schedule=every(m), seed=seed)
        _, releases = private.run(private.start(), X)
        decoded = decayed_sums(private, releases, window)
        errors.append((decoded.sums[-1] - exact) / decoded.noise_sd[-1])
    errors = np.concatenate(errors)
    assert abs(errors.mean()) < 6.0 / math.sqrt(len(errors))
    assert abs(np.mean(errors**2) - 1.0) < 6.0 * math.sqrt(2.0 / len(errors))


def test_its_own_window_is_what_was_released():
    private = private_sum(3, 1.0, BUDGET, forget=1_000, schedule=every(10), seed=1)
    _, releases = private.run(private.start(), np.full((5_000, 3), 0.5))
    own = decayed_sums(private, releases, 1_000)
    np.testing.assert_allclose(own.sums, releases.noisy, rtol=1e-9)
    np.testing.assert_allclose(own.noise_sd, releases.noise_sd, rtol=1e-6)


def test_noise_is_as_much_more_as_is_said():
    """From a strategy for 10,000 releases: 23, 8 and 26 % more than from those for 100, 1,000 and 100,000."""
    coder = DecayedBLT(10_000).coder_every(1, ONCE)
    windows = (100, 1_000, 100_000)
    noise = DecodedNoise(coder, tuple(math.exp(-1.0 / window) for window in windows)).at(10**7)
    for window, there, more in zip(windows, np.sqrt(np.diag(noise)), (0.23, 0.08, 0.26), strict=True):
        own = DecayedBLT(window).coder_every(1, ONCE)
        assert coder.sensitivity * there == pytest.approx((1.0 + more) * own.sensitivity * own.error(10**7), rel=0.01)


def test_models_follow_a_turn_and_remember_where_nothing_turns():
    """Before the turn most models are of the longest memory, soon after it of the shortest."""
    X, y = turning(40_000, 30_000)
    private = stream_of()
    _, releases = private.run(private.start(), X, y)
    chosen = Memories(private, WINDOWS).after(releases)
    before, after = chosen.windows[1_000:1_500], chosen.windows[1_550:1_650]
    assert np.mean(before == 8_000) > 0.75
    assert np.mean(after == 500) > 0.5
    middle = np.flatnonzero(chosen.windows == 2_000)  # whose model is what was released
    np.testing.assert_allclose(chosen.points[middle], releases.points[middle], rtol=1e-6, atol=1e-9)
    turned = X[30_600:33_000]
    both = chosen.points, releases.points
    lost = [np.mean((turned @ each[1_530:1_650].mean(axis=0) + turned[:, 0]) ** 2) for each in both]
    assert lost[0] < 0.7 * lost[1]


@pytest.mark.parametrize("cut", [[], [1], [7, 8, 700]])
def test_releases_may_come_in_any_pieces(cut):
    X, y = turning(20_000, 10_000)
    private = stream_of()
    _, releases = private.run(private.start(), X, y)
    whole = Memories(private, WINDOWS).after(releases)
    memories, points = Memories(private, WINDOWS), []
    for start, end in zip([0, *cut], [*cut, len(releases)], strict=True):
        memories, part, _ = memories.after(releases[start:end])
        memories = Memories(private, WINDOWS).resumed(memories.k, memories.arrays)
        points.append(part)
    np.testing.assert_array_equal(np.concatenate(points), whole.points)
    with pytest.raises(InvalidInput, match="comes next"):
        memories.after(releases[:1])
    with pytest.raises(StateConflict, match="memories of this state are damaged"):
        Memories(private, WINDOWS).resumed(3, {"last": np.zeros(2)})


def test_classes_have_memories_too():
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (20_000, 3))
    y = np.argmax(X, axis=1).astype(float)
    y[10_000:] = (y[10_000:] + 1) % 3
    private = pqftl(Problem(OneHot(3), L2Ball(5.0), 3), Privacy(5.0, 1e-6), forget=2_000, schedule=every(20), seed=1)
    _, releases = private.run(private.start(), X, y)
    point = Memories(private, WINDOWS).after(releases).points[-1].reshape(3, 3)
    assert np.mean(np.argmax(X[15_000:] @ point.T, axis=1) == y[15_000:]) > 0.9


@pytest.mark.privacy
def test_memories_are_a_function_of_releases_and_settings_alone():
    """Post-processing: two streams of different rows with the same releases have the same models."""
    X, y = turning(4_000, 2_000)
    private = stream_of(seed=None)
    _, releases = private.run(private.start(Ledger(Privacy(50.0, 1e-6))), X, y)
    other = stream_of(seed=None)
    copy = Releases(
        releases.rounds.copy(),
        1,
        releases.noisy.copy(),
        np.zeros_like(releases.points),
        releases.noise_sd.copy(),
        False,
    )
    first, second = (Memories(one, WINDOWS).after(each) for one, each in ((private, releases), (other, copy)))
    np.testing.assert_array_equal(first.points, second.points)


@pytest.mark.privacy
@pytest.mark.parametrize("windows", [(500, 8_000), (500, 1_000, 2_000, 4_000, 8_000)])
def test_several_memories_cost_what_one_costs(windows):
    """However many there are; and the audited encoding is the same object."""
    settings = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0)
    several = replace(settings, forget=windows).plan(2, None)
    one = replace(settings, forget=several.window, release=several.private.schedule.rounds).plan(2, None)
    assert several.private.total_cost == one.private.total_cost
    assert several.private.guarantee == one.private.guarantee
    assert several.private == one.private


def test_wrong_streams_are_rejected():
    hinge = Private(FTRL(Problem(Hinge(), L2Ball(1.0), 2)), DecayedBLT(2_000), every(20), BUDGET)
    with pytest.raises(Unprovable, match=r"sqrt\(J\) times the mu"):
        Memories(hinge, WINDOWS)
    with pytest.raises(InvalidInput, match="less than the 20 examples between two releases"):
        Memories(stream_of(), (10, 2_000))
    with pytest.raises(InvalidInput, match="two windows or more"):
        windows_of([1_000])
    sums = private_sum(1, 1.0, BUDGET, forget=1_000, schedule=every(10), seed=1)
    state, releases = sums.run(sums.start(), np.ones((100, 1)))
    _, more = sums.run(state, np.ones((100, 1)))
    with pytest.raises(InvalidInput, match="begin with 11"):
        decayed_sums(sums, more, 500)
    with pytest.raises(InvalidInput, match="window must be an integer, 10 or more"):
        decayed_sums(sums, releases, 5)


def test_an_estimator_uses_the_memory_that_fits(tmp_path):
    """A stream that is dumped, and loaded elsewhere, goes on to the same models."""
    X, y = turning(20_000, 12_000)
    made = PrivateLinearRegression(epsilon=2.0, feature_bound=1.0, label_bound=1.0, forget=list(WINDOWS), seed=1)
    made.partial_fit(X[:13_000], y[:13_000]).partial_fit(X[13_000:], y[13_000:])
    assert made.plan_.memories == WINDOWS
    assert made.coef_[0] < -0.6
    plan = made.plan_
    first = Stream(plan)
    first.learn(X[:13_000], y[:13_000])
    first.dump(tmp_path / "stream")
    again = Stream.load(plan, tmp_path / "stream")
    again.learn(X[13_000:], y[13_000:])
    assert len(again.models) == len(again.releases)
    np.testing.assert_array_equal(again.models[-1], again.model)
    first.learn(X[13_000:], y[13_000:])
    np.testing.assert_array_equal(first.model, again.model)


def test_contracts_declare_several_windows():
    data = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "y", "range": [0, 1]},
        "columns": {"x": {"range": [0, 1]}},
        "learning": {"forget": [1_000, 10_000]},
    }
    made = contract_of(data)
    assert made.declared["learning"]["forget"] == [1_000, 10_000]
    assert contract_of(made.declared).digest == made.digest
    assert made.plan().memories == (1_000, 10_000)
    with pytest.raises(InvalidInput, match=r"learning\.forget"):
        contract_of(data | {"learning": {"forget": [10_000, 1_000]}})
