"""Contextual bandits: time per decision and per learnt row, of taciturn and of MABWiser.

**Decisions.** 100 arms, 20 features, in batches of 2,000 visitors: by `PrivateLinUCB` with a model that all arms share,
whose visitors have a context for each arm, and with a model for each arm, whose visitors have one; by `PrivateThompson`
with propensities of 100 samples. MABWiser's LinUCB has a model for each arm, and is not private: its `predict` on the
same visitors.

**Learning.** 100,000 rows of 20 features by `geometric(1.1)`: PQFTL, and the sums of a bandit on the same rows, with
one model and with a hundred. Noise and decisions are included. A ratio of 1.3 or less is the target for one model; a
hundred have a hundred times the noise to draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runner import Contender, Ratio, parse_options, run, use_one_core
from streams import BUDGET
from taciturn import L2Ball, Problem, Squared, geometric, linear_bandit, pqftl
from taciturn.bandits import PrivateBandit, PrivateLinUCB, PrivateThompson
from taciturn.bandits.environments import sphere

ARMS, DIMENSION = 100, 20
PACKAGES = ("numpy", "numba", "mabwiser")
LEARNT = "learning, "


def decisions(bandit: PrivateBandit, rng: np.random.Generator, count: int, warm: int) -> Contender:
    """Batches of visitors, once a model was learnt; a decision without a round leaves nothing behind."""
    shape = (DIMENSION,) if bandit.per_arm else (ARMS, DIMENSION)
    for _ in range(4):
        batch = bandit.choose_batch(sphere(rng, warm, *shape))
        bandit.learn_batch(batch, rng.choice([-1.0, 1.0], warm))
    bandit.flush()
    visitors = sphere(rng, count, *shape)
    return Contender(lambda: bandit.choose_batch(visitors, learn=False), count)


def learning(private: Any, X: np.ndarray, y: np.ndarray) -> Contender:
    """A complete stream, secret noise included."""
    return Contender(lambda: private.run(private.start(), X, y), len(y))


def mabwiser(rng: np.random.Generator, count: int, warm: int) -> Callable[[], Any] | None:
    """Its LinUCB, after as many rows; None if it is not installed."""
    try:
        from mabwiser.mab import MAB, LearningPolicy
    except ImportError:
        return None
    mab = MAB(list(range(ARMS)), LearningPolicy.LinUCB(alpha=0.3))
    mab.fit(rng.integers(0, ARMS, 4 * warm), rng.choice([0.0, 1.0], 4 * warm), sphere(rng, 4 * warm, DIMENSION))
    visitors = sphere(rng, count, DIMENSION)
    return lambda: mab.predict(visitors)


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    count, rows = (200, 5_000) if chosen.quick else (2_000, 100_000)
    rng = np.random.default_rng(1)
    bandits: dict[str, PrivateBandit] = {
        "PrivateLinUCB, one model": PrivateLinUCB(ARMS, DIMENSION, 1.0, horizon=rows),
        "PrivateLinUCB, models of arms": PrivateLinUCB(ARMS, DIMENSION, 1.0, horizon=rows, per_arm=True),
        "PrivateThompson, one model": PrivateThompson(ARMS, DIMENSION, 1.0, horizon=rows),
    }
    contenders = {name: decisions(bandit, rng, count, rows // 5) for name, bandit in bandits.items()}
    ratios = {}
    if (peer := mabwiser(rng, count, rows // 5)) is not None:
        contenders["MABWiser LinUCB, models of arms"] = Contender(peer, count)
        ratios["MABWiser's time / taciturn's, decisions"] = Ratio(
            "MABWiser LinUCB, models of arms", "PrivateLinUCB, models of arms", at_least=1.0
        )
    X, rewards, arms = sphere(rng, rows, DIMENSION), rng.choice([-1.0, 1.0], rows), rng.integers(0, ARMS, rows)
    when = {"schedule": geometric(1.1)}
    problem = Problem(Squared(), L2Ball(1.0), DIMENSION, label_bound=1.0)
    contenders[f"{LEARNT}PQFTL"] = learning(pqftl(problem, BUDGET, rows, weight=1.0, **when), X, rewards)
    for name, models in (("one model", 1), ("models of arms", ARMS)):
        private: Any = linear_bandit(DIMENSION, BUDGET, rows, arms=models, **when)
        contenders[f"{LEARNT}{name}"] = learning(private, X, private.learner.labels(rewards, arms))
        target = 1.3 if models == 1 else None
        ratios[f"{LEARNT}{name} / PQFTL"] = Ratio(f"{LEARNT}{name}", f"{LEARNT}PQFTL", at_most=target)
    run("bandits", contenders, ratios, chosen, unit="µs per decision or row", packages=PACKAGES, rate=True)


if __name__ == "__main__":
    main()
