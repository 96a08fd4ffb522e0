"""The harness for regret: block by block as one decision at a time, twins, and that private bandits learn."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import Privacy, every, geometric, linear_bandit
from taciturn.bandits import UCB, PrivateLinUCB, PrivateLogisticBandit, PrivateThompson
from taciturn.bandits.environments import BernoulliSphere, LinearSphere, LogisticSphere
from taciturn.bandits.simulate import (
    BanditPlayer,
    NotPrivate,
    RandomPlay,
    compare,
    simulate,
    simulate_every_round,
    simulate_every_round_by_definition,
)
from taciturn.kernel.learners.linear_bandit import LinearBandit, bandit_problem
from taciturn.kernel.problem.svec import packed


@pytest.mark.parametrize("wait", [1, 20])
def test_blocks_end_where_models_change(wait):
    """A release follows once its rows had the time to wait."""
    bandit, changed = PrivateLinUCB(4, 3, 10.0, horizon=300, schedule=geometric(1.3), wait=wait), []
    for t in range(1, 301):
        before = bandit.k
        bandit.choose(np.ones((4, 3)))
        changed += [t - 1] * (bandit.k > before)
    rounds = BanditPlayer(bandit).rounds
    assert changed == rounds[rounds < 300].tolist()


@pytest.mark.parametrize("per_arm", [False, True])
def test_a_block_is_its_decisions_one_by_one(per_arm):
    """The same regret, to rounding."""
    environment = LinearSphere(4, 3, seed=2)
    settings = {
        "epsilon": 10.0,
        "horizon": 300,
        "per_arm": per_arm,
        "schedule": geometric(1.3),
        "seed": 5,
    }
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


class Uneven(BernoulliSphere):
    """Contexts of different lengths: before anything is known, bounds of equal ones are equal, up to rounding."""

    def draw(self, rng, count):
        X = super().draw(rng, count)
        return X * rng.uniform(0.5, 1.0, (*X.shape[:-1], 1))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shift", [30.0, 0.0])
@pytest.mark.parametrize("width", [0.0, 0.3])
def test_the_loop_of_every_round_is_its_definition(width, shift, centred):
    """Without a shift some noisy matrices have no Cholesky factor."""
    rng = np.random.default_rng(1)
    given = Uneven(5, 3, seed=4), 300, 3.0 * rng.normal(size=(300, 9)), np.full(300, shift)
    fast, slow = (
        play(*given, width, ridge=0.5, centred=centred)
        for play in (simulate_every_round, simulate_every_round_by_definition)
    )
    assert fast.total == pytest.approx(slow.total)


def test_noise_is_that_of_a_stream_of_zeros():
    """What a stream of any rows shows is its sums, and the noise that a stream of zeros shows."""
    X, y = np.random.default_rng(1).normal(size=(50, 3)), np.ones(50)
    private = linear_bandit(3, Privacy(10.0, 1e-6), 50, schedule=every(1), seed=6)
    _, zeros = private.run(private.start(), np.zeros((50, 3)), np.zeros(50))
    _, noisy = private.run(private.start(), X, y)
    V, _ = private.problem.clip(X, y)
    assert np.allclose(noisy.noisy[-1] - zeros.noisy[-1], [*packed(V.T @ V), *V.sum(axis=0)], atol=1e-2)
