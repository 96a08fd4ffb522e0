"""Private contextual bandits: models of rewards on private sums, choices from them, and simulations of both.

`PrivateLinUCB`, `PrivateThompson` and `PrivateLogisticBandit` choose arms and learn from rewards. What they learn by is
`taciturn.LinearBandit`, or private FTRL; how they choose is in `taciturn.bandits.choices`. Evaluation from logs is in
`taciturn.bandits.off_policy`.
"""

from taciturn.bandits.choices import UCB, EpsilonGreedy, LinearModel, Thompson
from taciturn.bandits.private_bandit import (
    Decision,
    Decisions,
    JointGuarantee,
    PrivateBandit,
    PrivateLinUCB,
    PrivateLogisticBandit,
    PrivateThompson,
)
from taciturn.bandits.simulate import Regret, compare, simulate, simulate_every_round

__all__ = [
    "UCB",
    "Decision",
    "Decisions",
    "EpsilonGreedy",
    "JointGuarantee",
    "LinearModel",
    "PrivateBandit",
    "PrivateLinUCB",
    "PrivateLogisticBandit",
    "PrivateThompson",
    "Regret",
    "Thompson",
    "compare",
    "simulate",
    "simulate_every_round",
]
