"""Simulated environments: repeatable, in batches of any size, with the means that they state."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn.bandits.environments import Banners, BernoulliSphere, FixedArms, LinearSphere, LogisticSphere

ENVIRONMENTS = {
    "banners": Banners(4, 3, seed=1),
    "linear": LinearSphere(4, 3, seed=1),
    "bernoulli": BernoulliSphere(4, 3, seed=1),
    "fixed": FixedArms(4, 3, seed=1),
    "logistic": LogisticSphere(4, 3, seed=1, scale=3.0),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rounds_are_the_same_in_any_batch(name):
    environment = ENVIRONMENTS[name]
    whole = environment.contexts(1, 2_500)
    parts = [environment.contexts(first, count) for first, count in ((1, 1_000), (1_001, 1_400), (2_401, 100))]
    assert np.array_equal(np.concatenate(parts), whole)
    assert (np.linalg.norm(whole, axis=-1) <= 1.0 + 1e-12).all()
    assert np.linalg.norm(environment.theta) == pytest.approx(1.0)
    means = environment.means(whole)[:, 0]
    rewards = environment.rewards(1, means)
    assert np.array_equal(environment.rewards(2_000, means[1_999:2_200]), rewards[1_999:2_200])
    assert set(np.unique(rewards)) == {environment.low, environment.high}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rewards_have_their_means(name):
    """Of 20,000 rounds, within 6 standard deviations: fails with probability 2e-9."""
    environment = ENVIRONMENTS[name]
    means = environment.means(environment.contexts(1, 20_000))[:, 1]
    error = np.mean(environment.rewards(1, means) - means)
    assert abs(error) <= 6.0 * (environment.high - environment.low) / 2.0 / math.sqrt(20_000)


def test_only_fixed_arms_do_not_explore():
    for name, environment in ENVIRONMENTS.items():
        X = environment.contexts(1, 2)
        assert np.array_equal(X[0], X[1]) == (name == "fixed")


def test_banners_are_clicked_at_their_rates():
    """Between .02 and .1, of visitors who have one context for all arms."""
    environment = ENVIRONMENTS["banners"]
    X = environment.contexts(1, 2_000)
    assert (X[:, :1] == X).all()
    rates = environment.means(X)
    assert 0.02 <= rates.min() < 0.03 < 0.09 < rates.max() <= 0.1
    assert not np.array_equal(environment.rates[0], Banners(4, 3, seed=2).rates[0])


def test_seeds_differ():
    assert not np.array_equal(LinearSphere(seed=1).theta, LinearSphere(seed=2).theta)
    assert not np.array_equal(LinearSphere(seed=1).contexts(1, 1), LinearSphere(seed=2).contexts(1, 1))
