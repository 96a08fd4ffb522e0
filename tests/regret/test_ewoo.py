"""The bound on the regret of private experts holds, for the exact law and for runs, and two streams come near it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from taciturn import IGD, L2Ball, Logistic, Privacy, Private, Problem, every, ewoo, experts, pocp
from taciturn.errors import Unprovable
from taciturn.methods.exponential import Exponential
from taciturn.regret import ewoo_regret_bound, replay


def rate(private):
    """`lam`, from the public standard deviation of Gumbel noise."""
    return math.pi / math.sqrt(6.0) / private.calibrated.noise_sd(1)


def expected_regret(private, X):
    """Exactly: each round is played by a draw `∝ exp(-lam·losses so far)`, the first by all experts alike."""
    before = np.cumsum(X, axis=0) - X
    return float(np.sum(softmax(-rate(private) * before, axis=1) * X) - X.sum(axis=0).min())


def coins(horizon, count, seed):
    """Losses 0 and 1, with a chance of their own for each expert."""
    rng = np.random.default_rng(seed)
    return (rng.random((horizon, count)) < rng.uniform(0.2, 0.8, count)).astype(float)


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_expected_regret_keeps_the_bound(epsilon, seed):
    """Random losses, and losses turned against the expert that is ahead."""
    private = ewoo(experts(6), Privacy(epsilon, 1e-6), 300)
    X = coins(300, 6, seed)
    adversarial = np.zeros_like(X)
    for t in range(300):
        adversarial[t, np.argmin(adversarial[:t].sum(axis=0))] = 1.0
    for stream in (X, adversarial):
        assert expected_regret(private, stream) <= ewoo_regret_bound(private)


@pytest.mark.parametrize(("count", "epsilon"), [(2, 50.0), (100, 10.0)])
def test_two_streams_come_within_a_fifth_of_the_bound(count, epsilon):
    """Two experts that take turns meet `lam·W²·T/8`; one that is always right, of a hundred, meets `ln N/lam`."""
    private, X = ewoo(experts(count), Privacy(epsilon, 1e-6), 1000), np.ones((1000, count))
    X[:, 0] = 0.0
    if count == 2:
        X[1::2] = [1.0, 0.0]
    assert 0.8 * ewoo_regret_bound(private) < expected_regret(private, X) <= ewoo_regret_bound(private)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_runs_keep_the_bound(epsilon):
    """The mean regret of 20 seeded runs is the expected one, to 10, and within the bound to as much.

    On a fixed stream the rounds' losses are independent, between 0 and 1: by Hoeffding's inequality the mean of 20 runs
    of 200 rounds is off by 10 with probability at most 2·exp(-2·10²·20/200) = 4e-9.
    """
    X, regrets = coins(200, 5, seed=0), []
    for seed in range(20):
        private = ewoo(experts(5), Privacy(epsilon, 1e-6), 200, seed=seed)
        _, releases = private.run(private.start(), X, np.zeros(200))
        played = replay(private.problem, releases, X, np.zeros(200)).losses
        regrets.append(played.sum() - X.sum(axis=0).min())
    assert abs(np.mean(regrets) - expected_regret(private, X)) < 10.0
    assert np.mean(regrets) < ewoo_regret_bound(private) + 10.0


def test_invalid_arguments_are_rejected():
    """Other learners, stale points, streams without end, and rates that change: nothing proves these."""
    budget = Privacy(1.0, 1e-6)
    for private in (
        pocp(IGD(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=1.0)), budget, 10),
        ewoo(experts(3), budget, 10, schedule=every(2)),
        ewoo(experts(3), budget),
    ):
        with pytest.raises(Unprovable, match=r"State a horizon and use every\(1\)"):
            ewoo_regret_bound(private)
    learner = experts(3)
    vars(learner)["certificate"] = replace(learner.certificate, bound=lambda t: 2.0 + 1.0 / t)
    with pytest.raises(Unprovable, match="one rate"):
        ewoo_regret_bound(Private(learner, Exponential(), every(1), budget, 10))
