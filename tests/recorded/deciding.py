"""Streams of bandits in the library."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import taciturn as t
from recorded.data import EPSILON, ROWS, people
from recorded.fronts import LoggedDecisions, bandits, cost_of, guarantee_of, private_ips, state_in
from recorded.registry import stream

SEED, ARMS, SIZE = 7, 4, 3
BASE = {"arms": ARMS, "dimension": SIZE, "epsilon": EPSILON, "horizon": ROWS, "seed": SEED}


def contexts(rounds: int, per_arm: bool) -> np.ndarray:
    shape = (rounds, SIZE) if per_arm else (rounds, ARMS, SIZE)
    return np.random.default_rng(9).integers(-64, 65, shape) / 128.0


def played(make: object, folder: Path, per_arm: bool = False, users: bool = False, wait: int = 1) -> dict[str, object]:
    """What a bandit chooses and learns: single decisions, then batches, moved to another bandit on the way."""
    bandit, X, who = make(), contexts(ROWS - 10, per_arm), people().tolist()
    actions, chances = [], []

    def reward(i: int, action: int) -> float:
        return (37 * i % 64 + 64 * (action == 2)) / 128.0

    for i in range(60):
        decision = bandit.choose(X[i], who[i] if users else ...)
        actions.append(decision.action)
        chances.append(decision.propensity)
        if i % 7:
            bandit.learn(decision, reward(i, decision.action))
    for start in range(60, len(X), 53):
        if start == 60 + 4 * 53:
            bandit.dump(folder / "bandit.npz")
            bandit = make().load(folder / "bandit.npz")
        batch = bandit.choose_batch(X[start : start + 53], who[start : start + 53][: len(X) - start] if users else None)
        actions.extend(batch.actions.tolist())
        chances.extend(batch.propensities.tolist())
        known = [k for k in range(len(batch)) if k % 5]
        bandit.learn_batch([batch[k] for k in known], [reward(start + k, batch[k].action) for k in known])
    bandit.dump(folder / "bandit.npz")
    state = state_in(folder / "bandit.npz")
    return {
        "actions": np.array(actions),
        "propensities": np.array(chances),
        "state": state,
        "counts": [bandit.decisions, bandit.t, bandit.k],
        "spent": list(bandit.spent),
        "reserved": cost_of(bandit.private.total_cost),
        "guarantee": guarantee_of(bandit.private),
    }


@stream("bandit linear")
def linear(folder: Path) -> Mapping[str, object]:
    """LinUCB and Thompson sampling: one model or one for each arm, late rewards, users, forgetting, zero-out."""
    ucb, thompson = bandits.PrivateLinUCB, bandits.PrivateThompson
    clicks = {"low": 0.0, "intercept": 1.0, "wait": 60, "default_reward": 0.0}
    return {
        "ucb": played(lambda: ucb(**BASE), folder),
        "theorem": played(lambda: ucb(**BASE, width="theorem", neighbours="zero-out"), folder),
        "thompson": played(lambda: thompson(**BASE, per_arm=True, **clicks), folder, per_arm=True),
        "forgetting": played(lambda: thompson(**BASE | {"horizon": None}, forget=200), folder),
        "users": played(lambda: ucb(**BASE, rows_per_user=3, without_id="own"), folder, users=True),
    }


@stream("bandit others")
def others(folder: Path) -> Mapping[str, object]:
    """A logistic bandit, epsilon-greedy play of any learner, and the private value of another policy."""
    logistic = bandits.PrivateLogisticBandit
    model = t.linear_bandit(SIZE, t.Privacy(EPSILON, 1e-6), ROWS, on_bad="zero", schedule=t.every(40), seed=SEED)
    greedy = played(lambda: bandits.PrivateBandit(model, bandits.EpsilonGreedy(0.2), ARMS, wait=10), folder)
    log = LoggedDecisions([0, 1, 1, 0] * 500, rewards=[1, 0, 1, 1] * 500, propensities=[0.5] * 2_000, arms=2)
    value = private_ips(log, [[0.75, 0.25]] * 2_000, 2.0, t.Privacy(1.0, 1e-6), seed=SEED)
    return {
        "logistic": played(lambda: logistic(**BASE, explore=0.1), folder),
        "logistic, forgetting": played(lambda: logistic(**BASE | {"horizon": None}, forget=200), folder),
        "greedy": greedy,
        "value": [value.value, value.standard_error, value.noise_sd, value.low, value.high],
    }
