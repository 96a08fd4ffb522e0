"""Drift in released statistics: distances in units of noise, how rarely they raise a false alarm, and when they do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn import (
    BinaryTree,
    InvalidInput,
    L2Ball,
    Logistic,
    Privacy,
    Problem,
    Squared,
    StateConflict,
    every,
    ewoo,
    experts,
    geometric,
    pftrl,
    pigd,
    pqftl,
    private_sum,
)
from taciturn.drift import DriftWatch, comparable, drift
from taciturn.estimators.river import PrivateLinearRegression as RiverLinear
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateLinearRegression
from taciturn.estimators.stream import Stream

BUDGET = Privacy(1.0, 1e-6)
ZEROS = np.zeros((6_000, 40))


def of_sums(seed, **settings):
    return private_sum(40, 1.0, BUDGET, seed=seed, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"forget": 1_000, "schedule": every(100)},
        {"horizon": 6_000, "schedule": every(100)},
        {"horizon": 6_000, "schedule": geometric(1.3, start=50)},
    ],
)
def test_a_distance_of_one_is_noise_alone(settings):
    """Rows of zeros: squared distances times the size are chi-squared of 40 degrees of freedom, at any comparison.

    150 streams; a mean of 150·40 squares is off by six standard errors with a probability below 1e-8. Half of the
    covariance of two releases is noticed: the noise of their difference is far from that of two independent ones.
    """
    squares = []
    for seed in range(150):
        private = of_sums(seed, **settings)
        _, releases = private.run(private.start(), ZEROS)
        found = drift(private, releases)
        squares.append(found.distance[[0, len(found.rounds) // 2, -1]] ** 2)
    error = math.sqrt(2.0 / (150 * 40))
    assert np.abs(np.mean(squares, axis=0) - 1.0).max() < 6.0 * error


@pytest.mark.parametrize("rate", [0.3, 1e-3])
def test_alarms_of_noise_alone_are_as_rare_as_is_said(rate):
    """Private FTRL and iterates count noise alone: by (i) of the claim, at most rate/2 of comparisons.

    For exact iterates that do not move, of rows of zeros: the number of alarms in 1,000 independent streams exceeds
    its mean by six standard deviations, or 12 in all, with a probability below 1e-6.
    """
    problem = Problem(Logistic(), L2Ball(1.0), 3, ridge=0.5, on_bad="zero")
    alarms = 0
    for seed in range(1_000):
        private = pigd(problem, BUDGET, 4, schedule=every(2), seed=seed)
        _, releases = private.run(private.start(), np.zeros((4, 3)), np.ones(4))
        found = drift(private, releases, rate)
        assert found.proven is False
        alarms += len(found.alarms)
    assert alarms <= max(1_000 * rate / 2 + 6.0 * math.sqrt(1_000 * rate / 2), 12)
    if rate == 0.3:
        assert alarms >= 1_000 * rate / 2 - 6.0 * math.sqrt(1_000 * rate / 2)  # and no rarer: the unit is right


@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_rows_of_one_distribution_raise_no_more_alarms_than_is_said(epsilon):
    """The claim, at a rate of .01, also where the variation of rows outweighs the noise (epsilon = 20).

    40 streams of 39 comparisons have 16 alarms or fewer on average; 60 or more have a probability below 1e-6, even if
    all comparisons of one window agree.
    """
    alarms, comparisons, largest = 0, 0, 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.choice([-0.5, 0.5], (10_000, 3))
        y = np.sign(X @ [1.0, -1.0, 0.2] + rng.normal(size=len(X)))
        problem = Problem(Squared(), L2Ball(3.0), 3, label_bound=1.0)
        private = pqftl(problem, Privacy(epsilon, 1e-6), forget=1_000, schedule=every(200), seed=seed)
        _, releases = private.run(private.start(), X, y)
        found = drift(private, releases, rate=0.01)
        assert found.proven
        alarms, comparisons = alarms + len(found.alarms), comparisons + len(found.rounds)
        largest = max(largest, float(np.max(found.distance)))
    assert alarms <= 60
    assert comparisons == 40 * 45
    if epsilon == 20.0:
        assert largest > 2.0  # noise alone would raise alarms here


@pytest.mark.parametrize("forget", [None, 2_000])
def test_a_turn_is_seen(forget):
    X = np.random.default_rng(1).uniform(-0.7, 0.7, (40_000, 2))
    y = np.where(np.arange(len(X)) < 20_000, X[:, 0], -X[:, 0])
    problem = Problem(Squared(), L2Ball(2.0), 2, label_bound=1.0)
    horizon = None if forget else len(X)
    private = pqftl(problem, Privacy(4.0, 1e-6), horizon, forget=forget, schedule=every(200), seed=1)
    _, releases = private.run(private.start(), X, y)
    found = drift(private, releases)
    assert len(found.alarms)
    assert 20_000 < found.alarms[0] < (22_000 if forget else 32_000)
    watch = DriftWatch(private).after(releases).drift
    assert len(watch.alarms)
    assert 20_000 < watch.alarms[0] <= (24_000 if forget else 40_000)
    told = watch.as_data(most=2)
    assert told["alarms"] == watch.alarms.tolist()
    assert [each["t"] for each in told["last"]] == watch.rounds[-2:].tolist()


def test_without_a_known_covariance_noise_is_taken_for_the_most_that_it_can_be():
    private = of_sums(1, horizon=6_000, strategy=BinaryTree(), schedule=every(100))
    _, releases = private.run(private.start(), ZEROS)
    assert drift(private, releases).distance.max() < 1.0


def test_gradients_move_while_they_are_learnt():
    """And private FTRL says so; it is compared by its noise alone."""
    problem = Problem(Logistic(), L2Ball(1.0), 2)
    private = pftrl(problem, BUDGET, forget=2_000, schedule=every(100), seed=1)
    X = np.random.default_rng(1).uniform(-0.7, 0.7, (6_000, 2))
    _, releases = private.run(private.start(), X, np.sign(X[:, 0]))
    assert drift(private, releases).proven is False


@pytest.mark.parametrize("cut", [[7], [19, 20, 21, 22]])
def test_a_watch_goes_on_where_it_was(cut):
    private = of_sums(1, forget=1_000, schedule=every(100))
    _, releases = private.run(private.start(), ZEROS)
    whole, parts = DriftWatch(private).after(releases).drift, DriftWatch(private)
    for start, end in zip([0, *cut], [*cut, len(releases)], strict=True):
        parts = DriftWatch(private).resumed(parts.after(releases[start:end]).arrays)
    np.testing.assert_array_equal(parts.drift.distance, whole.distance)
    assert whole.rounds.tolist() == [2_000, 3_000, 4_000, 5_000, 6_000]
    assert whole.since.tolist() == [1_000, 2_000, 3_000, 4_000, 5_000]
    with pytest.raises(StateConflict, match="comparisons of this state are damaged"):
        DriftWatch(private).resumed({"reference": np.zeros(3), "found": np.zeros((1, 4))})


def test_estimators_have_it(tmp_path):
    X = np.random.default_rng(1).uniform(-0.7, 0.7, (4_000, 2))
    model = PrivateLinearRegression(epsilon=1.0, feature_bound=1.0, label_bound=1.0, forget=500, seed=1)
    model.partial_fit(X[:2_000], X[:2_000, 0]).partial_fit(X[2_000:], X[2_000:, 0])
    assert model.drift_.rounds.tolist() == list(range(1_000, 4_001, 500))
    river = RiverLinear(features=["a"], epsilon=1.0, feature_bound=1.0, label_bound=1.0, forget=500, seed=1)
    for value in X[:1_100, 0].tolist():
        river.learn_one({"a": value}, value)
    assert river.drift.rounds.tolist() == [1_000]
    once = PrivateLinearRegression(epsilon=1.0, feature_bound=1.0, label_bound=1.0, seed=1).fit(X, X[:, 0])
    assert len(once.drift_.rounds) == 0
    plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0, forget=500, seed=1).plan(2, None)
    stream = Stream(plan)
    stream.learn(X[:1_600], X[:1_600, 0])
    stream.dump(tmp_path / "stream")
    again = Stream.load(plan, tmp_path / "stream")
    again.learn(X[1_600:2_000], X[1_600:2_000, 0])
    assert again.drift.rounds.tolist() == [1_000, 1_500, 2_000]


def test_streams_without_statistics_to_compare_are_rejected():
    one = ewoo(experts(3), BUDGET, 10, seed=1)
    assert not comparable(one)
    with pytest.raises(InvalidInput, match="sums and iterates"):
        DriftWatch(one)
    private = of_sums(1, horizon=100)
    with pytest.raises(InvalidInput, match="rate must lie between 0 and 1"):
        drift(private, private.run(private.start(), ZEROS[:100])[1], rate=2.0)
