"""The statistics and models of a linear bandit: the sensitivity for any number of arms, V and theta, and labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import (
    QFTL,
    InvalidInput,
    LinearBandit,
    Privacy,
    Problem,
    Squared,
    StateConflict,
    Unprovable,
    User,
    WholeSpace,
    block_statistics,
    every,
    linear_bandit,
)
from taciturn.kernel.learners.linear_bandit import bandit_problem
from taciturn.kernel.problem.svec import packed, unpacked

NOWHERE = np.zeros(0)
BUDGET = Privacy(1.0, 1e-6)


def learner(arms: int = 1, dimension: int = 2, weight: float = 1.0, **settings) -> LinearBandit:
    return LinearBandit(bandit_problem(dimension, arms, **settings), arms, weight=weight)


def contribution(of: LinearBandit, x, reward: float, arm: int = 0) -> np.ndarray:
    V, y = of.problem.clip([x], of.labels([reward], [arm]))
    return of.statistic(of.absorb(of.start(), 0, V, y, NOWHERE), 1)[1]


# The sensitivity.


@pytest.mark.privacy
@pytest.mark.parametrize("arms", [1, 2, 7])
@pytest.mark.parametrize("weight", [0.3, 1.0, 1.4, 3.0])
def test_the_tight_pair_is_nearly_as_far_apart_as_certified(arms, weight):
    """Two contexts at the angle of `quadratic_pair`, opposite rewards, one arm: below the bound, above 99.9 % of it."""
    of = learner(arms, weight=weight)
    c = min(1.0, weight**2 / 2.0)
    x, other = [1.0, 0.0], [c, math.sqrt(1.0 - c * c)]
    apart = np.linalg.norm(contribution(of, x, 1.0, arms - 1) - contribution(of, other, -1.0, arms - 1))
    bound = float(of.certificate.at(1))
    assert 0.999 * bound <= apart <= bound
    assert bound == pytest.approx(learner(1, weight=weight).certificate.at(1), rel=1e-6)


@pytest.mark.privacy
@given(
    raw=st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6),
    arms=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    weight=st.floats(0.01, 5.0),
)
def test_no_two_examples_are_farther_apart(raw, arms, weight):
    """Of the same arm, or of two."""
    of = learner(5, weight=weight)
    one, other = contribution(of, raw[:2], raw[4], arms[0]), contribution(of, raw[2:4], raw[5], arms[1])
    assert np.linalg.norm(one - other) <= float(of.certificate.at(1))


@pytest.mark.privacy
def test_a_change_of_arm_costs_sqrt_2_times_a_row():
    """`sqrt(2(1 + w²))`, 2 at w = 1, which is less than Delta."""
    of = learner(2)
    apart = np.linalg.norm(contribution(of, [1.0, 0.0], 1.0, 0) - contribution(of, [0.0, 1.0], 1.0, 1))
    assert apart == pytest.approx(2.0, abs=1e-4)
    assert apart < float(of.certificate.at(1)) == pytest.approx(math.sqrt(4.5), rel=1e-6)


@pytest.mark.privacy
@given(label=st.floats(allow_nan=False), arms=st.integers(1, 5))
def test_any_label_is_an_arm_and_a_reward(label, arms):
    """So that the certificate holds for labels that `labels` has not made."""
    of = learner(arms)
    _, y = of.problem.clip([[1.0, 0.0]], [min(max(label, -1e300), 1e300)])
    (arm,), (reward,) = of.played(y)
    assert 0 <= arm < arms
    assert -1.0 <= reward <= 1.0


@given(st.floats(-3.0, 3.0), st.integers(0, 6))
def test_labels_keep_arm_and_reward(reward, arm):
    of = LinearBandit(bandit_problem(1, 7), 7, low=-2.0, high=2.0)
    arms, rewards = of.played(of.labels([reward], [arm]))
    assert arms.tolist() == [arm]
    assert rewards[0] == pytest.approx(min(max(reward / 2.0, -1.0), 1.0), abs=1e-12)


def test_no_reward_is_too_large_to_clip():
    """A warning, as of an overflow, would tell something of a row."""
    of = LinearBandit(bandit_problem(1), low=0.0, high=0.5)
    assert of.labels([1.7e308, -1.7e308, np.inf, 0.25]).tolist() == [1.0, -1.0, 1.0, 0.0]


# The models.


def test_sums_of_one_model_are_those_of_qftl():
    rng = np.random.default_rng(1)
    of = learner(dimension=3)
    V, y = of.problem.clip(rng.normal(size=(50, 3)), of.labels(rng.uniform(-1, 1, 50)))
    plain = QFTL(Problem(Squared(), of.sums.problem.domain, 3, label_bound=1.0), weight=1.0)
    mine, theirs = (each.absorb(each.start(), 0, V, y, NOWHERE)["sum"] for each in (of, plain))
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("arms", [1, 3])
def test_without_noise_theta_is_ridge_regression(arms):
    rng = np.random.default_rng(2)
    of = learner(arms, dimension=3)
    X, r, a = rng.normal(size=(200, 3)) / 3.0, rng.uniform(-1, 1, 200), rng.integers(0, arms, 200)
    V, y = of.problem.clip(X, of.labels(r, a))
    point = of.decide(200, of.statistic(of.absorb(of.start(), 0, V, y, NOWHERE), 200)[1], 0.0)
    for arm, block in enumerate(point.reshape(arms, -1)):
        here = a == arm
        matrix = V[here].T @ V[here] + np.eye(3)
        assert np.allclose(unpacked(block[:-3], 3), matrix, atol=1e-2)
        assert np.allclose(block[-3:], np.linalg.solve(matrix, V[here].T @ r[here]), atol=1e-3)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.5, 50.0]))
def test_v_is_shifted_and_floored(seed, sd):
    """`V̂ + (1 + 2s·sqrt(2d))·I`, with no eigenvalue below `1 + s·sqrt(2d)/4`."""
    d, of = 4, learner(dimension=4)
    noisy = np.random.default_rng(seed).normal(size=of.statistic_size) * max(sd, 0.1)
    block = of.decide(10, noisy, sd)
    values = np.linalg.eigvalsh(unpacked(block[:-d], d))
    largest = sd * math.sqrt(2.0 * d)
    expected = np.maximum(np.linalg.eigvalsh(unpacked(noisy[:-d], d)) + 2.0 * largest, largest / 4.0) + 1.0
    assert np.allclose(values, expected)
    theta = np.linalg.solve(unpacked(block[:-d], d), noisy[-d:])
    assert np.allclose(block[-d:], theta)


def test_the_first_point_is_public():
    """The ridge, and no weights."""
    point = learner(2).first_point
    assert np.allclose(point, np.tile(np.concatenate([packed(np.eye(2)), np.zeros(2)]), 2))


# Through `Private`.


def stream(arms, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.uniform(-1, 1, n), rng.integers(0, arms, n)


@pytest.mark.parametrize("arms", [1, 3])
@pytest.mark.parametrize("schedule", [None, every(1), every(7)])
def test_compiled_and_by_definition(arms, schedule):
    """The same releases, however the rows are cut."""
    X, r, a = stream(arms)
    made = [
        linear_bandit(3, BUDGET, 60, arms=arms, schedule=schedule, seed=3),
        linear_bandit(3, BUDGET, 60, arms=arms, schedule=schedule, seed=3),
    ]
    object.__setattr__(made[1], "compiled", False)
    y = made[0].learner.labels(r, a)
    _, fast = made[0].run(made[0].start(), X, y)
    state, slow = made[1].run(made[1].start(), X[:25], y[:25])
    _, rest = made[1].run(state, X[25:], y[25:])
    slow = slow + rest
    assert fast.rounds.tolist() == slow.rounds.tolist()
    assert np.allclose(fast.noisy, slow.noisy, atol=1e-6)
    assert np.allclose(fast.points, slow.points, atol=1e-6)


@pytest.mark.parametrize("arms", [1, 2])
def test_a_stream_resumes(tmp_path, arms):
    X, r, a = stream(arms)
    private = linear_bandit(3, BUDGET, 60, arms=arms)
    y = private.learner.labels(r, a)
    state, _ = private.run(private.start(), X[:30], y[:30])
    state.dump(tmp_path / "state")
    resumed = private.load(tmp_path / "state")
    assert np.array_equal(resumed.point, state.point)
    assert len(resumed.point) == private.learner.point_size
    with pytest.raises(StateConflict):
        linear_bandit(3, BUDGET, 60, arms=arms + 1).load(tmp_path / "state")


@pytest.mark.parametrize("arms", [1, 3])
def test_parts_add_up(arms):
    """Sums of parts give the releases of the rows."""
    X, r, a = stream(arms)
    private = linear_bandit(3, BUDGET, 60, arms=arms, schedule=every(30), seed=1)
    y = private.learner.labels(r, a)
    parts = [block_statistics(private.learner, None, X[i : i + 15], y[i : i + 15]) for i in range(0, 60, 15)]
    _, of_sums = private.run_sums(private.start(), parts)
    _, of_rows = private.run(private.start(), X, y)
    assert np.array_equal(of_sums.noisy, of_rows.noisy)


@pytest.mark.privacy
def test_rows_without_reward_or_beyond_a_users_bound_have_no_influence():
    private = linear_bandit(3, BUDGET, 4, arms=2, unit=User(rows=1), seed=1)
    X, _, _ = stream(2, 4)
    y = private.learner.labels([1.0, 0.5, np.nan, 0.25], [0, 1, 1, 0])
    one = private.run(private.start(), X, y, users=["a", "b", "c", "a"])[1]
    other = private.run(
        private.start(), X, private.learner.labels([1.0, 0.5, np.nan, -1.0], [0, 1, 0, 1]), users=["a", "b", "c", "a"]
    )[1]
    assert np.array_equal(one.noisy, other.noisy)


def test_guarantees_name_both_relations():
    private = linear_bandit(3, BUDGET, 100)
    assert set(private.guarantee.epsilons) == {"replace", "zero-out"}
    assert private.guarantee.proven


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: learner(neighbours="label"), Unprovable, "Use neighbours='replace'"),
        (lambda: LinearBandit(bandit_problem(2, 3), arms=2), InvalidInput, "bandit_problem"),
        (lambda: LinearBandit(bandit_problem(2), low=1.0, high=0.0), InvalidInput, "State low first"),
        (lambda: LinearBandit(Problem(Squared(), WholeSpace(), 2, label_bound=2.0)), InvalidInput, "bandit_problem"),
    ],
)
def test_wrong_settings_are_rejected(make, error, words):
    with pytest.raises(error, match=words):
        make()
