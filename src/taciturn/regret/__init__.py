"""Regret, accuracy and the theorems' bounds. NOT PRIVATE: everything measured here reads exact examples.

Do not release these numbers: no guarantee of this package covers them. The bounds themselves use no example; they are
functions of public settings.
"""

from taciturn.regret.bounds import (
    fading_regret_bound,
    giga_regret_bound,
    igd_regret_bound,
    leader_regret_bound,
    noise_regret_bound,
    pgiga_regret_bound,
    pocp_regret_bound,
)
from taciturn.regret.ewoo import ewoo_regret_bound
from taciturn.regret.ftrl import dimension_free_regret_bound, ftrl_regret_bound
from taciturn.regret.measure import Record, replay, replay_exact
from taciturn.regret.offline import pol_utility_bound, risk_bound
from taciturn.regret.optimum import Optimum, best_in_hindsight, prefix_leaders, prefix_minima
from taciturn.regret.qftl import pqftl_regret_bound, qftl_regret_bound, quadratic_regret_bound
from taciturn.regret.tracking import tracking_regret, tracking_regret_bound

__all__ = [
    "Optimum",
    "Record",
    "best_in_hindsight",
    "dimension_free_regret_bound",
    "ewoo_regret_bound",
    "fading_regret_bound",
    "ftrl_regret_bound",
    "giga_regret_bound",
    "igd_regret_bound",
    "leader_regret_bound",
    "noise_regret_bound",
    "pgiga_regret_bound",
    "pocp_regret_bound",
    "pol_utility_bound",
    "pqftl_regret_bound",
    "prefix_leaders",
    "prefix_minima",
    "qftl_regret_bound",
    "quadratic_regret_bound",
    "replay",
    "replay_exact",
    "risk_bound",
    "tracking_regret",
    "tracking_regret_bound",
]
