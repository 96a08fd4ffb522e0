"""Choices: compiled and by definition, propensities, and the theorem's width."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput, Privacy, linear_bandit
from taciturn.bandits import UCB, EpsilonGreedy, LinearModel, Thompson


def case(seed: int, models: int, arms: int, d: int, n: int) -> tuple[LinearModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(models, d, d))
    model = LinearModel(rng.normal(size=(models, d)) / 3.0, A @ np.swapaxes(A, 1, 2) + np.eye(d), 1.0, 3)
    return model, rng.normal(size=(n, 1 if models > 1 else arms, d))


@given(st.integers(0, 10_000), st.booleans(), st.integers(2, 12), st.integers(1, 9), st.sampled_from([0.0, 0.3, 5.0]))
def test_compiled_bounds_choose_what_the_definition_chooses(seed, per_arm, arms, d, width):
    model, X = case(seed, arms if per_arm else 1, arms, d, 20)
    fast, slow = UCB(width).choose(model, X), UCB(width).choose_by_definition(model, X)
    assert np.array_equal(fast.actions, slow.actions)
    assert fast.propensities.tolist() == [1.0] * 20


def test_the_first_of_equal_arms_is_chosen():
    model = LinearModel(np.zeros((1, 2)), np.eye(2)[None])
    assert UCB().choose(model, np.ones((3, 4, 2))).actions.tolist() == [0, 0, 0]


def test_greedy_play_explores_as_often_as_stated():
    """5,000 choices of 5 arms: a frequency lies within 5.5 standard deviations, which fails once in 2e7 for each."""
    model, X = case(1, 1, 5, 3, 1)
    X = np.repeat(X, 5_000, axis=0)
    chosen = EpsilonGreedy(0.5).choose(model, X, np.random.default_rng(1))
    best = int(np.argmax(model.means(X[:1])))
    for arm in range(5):
        p = 0.1 + 0.5 * (arm == best)
        share = float(np.mean(chosen.actions == arm))
        assert abs(share - p) <= 5.5 * math.sqrt(p * (1.0 - p) / 5_000)
        assert np.allclose(chosen.propensities[chosen.actions == arm], p)


@pytest.mark.parametrize("models", [1, 4])
def test_thompson_plays_as_often_as_it_says(models):
    """Shares of 5,000 choices against propensities of 10,000 samples: both err by 5.5 standard deviations at most."""
    model, X = case(2, models, 4, 3, 1)
    X, rng = np.repeat(X, 5_000, axis=0), np.random.default_rng(3)
    actions = Thompson(2.0, samples=0).choose(model, X, rng).actions
    stated = Thompson(2.0, samples=10_000).choose(model, X[:60], rng)
    for arm in np.unique(stated.actions):
        share, p = float(np.mean(actions == arm)), float(stated.propensities[stated.actions == arm][0])
        tolerance = 5.5 * math.sqrt(0.25 / 5_000 + 0.25 / 10_000) + 1e-4
        assert abs(share - p) <= tolerance
    assert len(np.unique(stated.actions)) > 1
    assert np.isnan(Thompson(samples=0).choose(model, X[:3], np.random.default_rng(3)).propensities).all()


def test_the_theorems_width_covers_the_truth():
    """At every eighth release of 10 private runs, in 50 directions; a run fails with probability 1e-9 at most."""
    d, theta = 3, np.array([0.6, 0.0, -0.8])
    directions = np.random.default_rng(9).normal(size=(1, 50, d))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2_000, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        private = linear_bandit(d, Privacy(1.0, 1e-6), 2_000, seed=seed)
        rewards = np.where(rng.random(2_000) < (1.0 + X @ theta) / 2.0, 1.0, -1.0)
        _, releases = private.run(private.start(), X, private.learner.labels(rewards))
        for release in list(releases)[::8]:
            model = LinearModel.of(private.learner, release.point, release.noise_sd, release.k)
            width = UCB("theorem", failure=1e-9).width_of(model)
            error = np.abs(model.means(directions) - directions @ theta)
            assert (error <= width * model.widths(directions)).all()


def test_a_width_without_the_noise_would_not_do():
    """The planted fault: the heuristic width, which no theorem covers, is exceeded."""
    d, theta = 3, np.array([0.6, 0.0, -0.8])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    private = linear_bandit(d, Privacy(0.1, 1e-6), 500, seed=0)
    _, releases = private.run(private.start(), X, private.learner.labels(X @ theta))
    model = LinearModel.of(private.learner, releases[-1].point, releases[-1].noise_sd, releases[-1].k)
    assert (np.abs(model.means(X[None]) - X @ theta) > 0.3 * model.widths(X[None])).any()


@pytest.mark.parametrize("make", [lambda: UCB(-1.0), lambda: UCB(failure=2.0), lambda: EpsilonGreedy(1.5)])
def test_wrong_settings_are_rejected(make):
    with pytest.raises(InvalidInput):
        make()
