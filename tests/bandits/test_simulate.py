"""The harness for regret: block by block as one decision at a time, twins, and that private bandits learn."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import Privacy, every, geometric, linear_bandit
from taciturn.bandits import UCB, PrivateLinUCB, PrivateLogisticBandit, PrivateThompson
from taciturn.bandits.environments import LinearSphere, LogisticSphere
from taciturn.bandits.simulate import NotPrivate, RandomPlay, compare, simulate, simulate_every_round
from taciturn.learners.linear_bandit import LinearBandit, bandit_problem
from taciturn.problem.svec import packed, unpacked


@pytest.mark.parametrize("per_arm", [False, True])
def test_a_block_is_its_decisions_one_by_one(per_arm):
    """The same regret, to rounding."""
    environment = LinearSphere(4, 3, seed=2)
    settings = {"epsilon": 10.0, "horizon": 300, "per_arm": per_arm, "schedule": geometric(1.3), "seed": 5}
    bandit, lost = PrivateLinUCB(4, 3, **settings), 0.0
    for t in range(1, 301):
        X = environment.contexts(t, 1)
        means = environment.means(X)[0]
        decision = bandit.choose(X[0, 0] if per_arm else X[0])
        bandit.learn(decision, environment.rewards(t, means[[decision.action]])[0])
        lost += float(np.max(means) - means[decision.action])
    assert simulate(PrivateLinUCB(4, 3, **settings), environment, 300).total == pytest.approx(lost)


def test_private_bandits_learn():
    """Less than a third of the regret of random play, on 3,000 rounds at epsilon = 10."""
    environment = LinearSphere(5, 3, seed=3)
    chance = simulate(RandomPlay(5, seed=1), environment, 3_000).total
    for front in (PrivateLinUCB, PrivateThompson):
        assert simulate(front(5, 3, 10.0, horizon=3_000, seed=1), environment, 3_000).total < chance / 3.0
    logistic = LogisticSphere(5, 3, seed=3, scale=4.0)
    chance = simulate(RandomPlay(5, seed=1), logistic, 3_000).total
    bandit = PrivateLogisticBandit(5, 3, 10.0, horizon=3_000, seed=1)
    assert simulate(bandit, logistic, 3_000).total < chance / 3.0


def test_the_twin_without_noise_is_better():
    environments = [LinearSphere(5, 3, seed=s) for s in range(3)]
    made = compare(
        {
            "private": lambda _, seed: PrivateLinUCB(5, 3, 1.0, horizon=2_000, seed=seed),
            "twin": lambda _, __: NotPrivate(LinearBandit(bandit_problem(3)), UCB(), 2_000),
        },
        environments,
        2_000,
    )
    assert np.mean([each.total for each in made["twin"]]) < np.mean([each.total for each in made["private"]])
    assert all(np.all(np.diff(each.sums) >= 0.0) for each in made["private"])


def by_definition(environment, horizon, noise, shifts, width):
    """LinUCB with a model after every round, as it is written."""
    d = environment.dimension
    G, u, lost = np.eye(d), np.zeros(d), 0.0
    for t in range(horizon):
        N = np.zeros(noise.shape[1]) if t == 0 else noise[t - 1]
        V = G + unpacked(N[:-d], d) + (0.0 if t == 0 else shifts[t - 1]) * np.eye(d)
        theta = np.linalg.solve(V, u + N[-d:])
        X = environment.contexts(t + 1, 1)[0]
        means = environment.means(X)
        widths = np.sqrt(np.einsum("ad,ad->a", X, np.linalg.solve(V, X.T).T))
        best = int(np.argmax(X @ theta + width * widths))
        if t == 0:
            best = 0  # all bounds are equal, up to rounding
        reward = environment.rewards(t + 1, means[[best]])[0]
        G, u = G + np.outer(X[best], X[best]), u + reward * X[best]
        lost += np.max(means) - means[best]
    return lost


def test_every_round_is_what_is_defined():
    environment = LinearSphere(5, 3, seed=4)
    rng = np.random.default_rng(1)
    noise, shifts = 3.0 * rng.normal(size=(300, 9)), np.full(300, 30.0)
    loop = simulate_every_round(environment, 300, noise, shifts, width=0.0)
    assert loop.total == pytest.approx(by_definition(environment, 300, noise, shifts, 0.0))


def test_noise_is_that_of_a_stream_of_zeros():
    """What a stream of any rows shows is its sums, and the noise that a stream of zeros shows."""
    X, y = np.random.default_rng(1).normal(size=(50, 3)), np.ones(50)
    private = linear_bandit(3, Privacy(10.0, 1e-6), 50, schedule=every(1), seed=6)
    _, zeros = private.run(private.start(), np.zeros((50, 3)), np.zeros(50))
    _, noisy = private.run(private.start(), X, y)
    V, _ = private.problem.clip(X, y)
    assert np.allclose(noisy.noisy[-1] - zeros.noisy[-1], [*packed(V.T @ V), *V.sum(axis=0)], atol=1e-2)
