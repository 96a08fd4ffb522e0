"""Who competes in the experiments on regression. NOT PRIVATE: all of them are seeded.

The paper's algorithm, as printed and repaired, its successors, and what needs no privacy.

>>> list(EXACT)
['FTL, not private', 'predicting 0']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from taciturn import (
    FTL,
    BinaryTree,
    Privacy,
    Private,
    Problem,
    Releases,
    Schedule,
    every,
    geometric,
    pftrl,
    pocp,
    pqftl,
)
from taciturn.core.schedule import Timetable
from taciturn.regret import Record, prefix_leaders, replay
from taciturn.reproduce.printed_qftl import PrintedQFTL

EPSILONS = (0.01, 0.1, 1.0, 10.0)
TREE = BinaryTree(refined=False)
PAPER: dict[str, Any] = {"calibration": "paper-printed", "allow_broken": True}
ALWAYS = every(1)
PRINTED = "PQFTL as printed"


def _as_printed(problem: Problem, privacy: Privacy, horizon: int, seed: int, schedule: Schedule = ALWAYS) -> Private:
    learner = PrintedQFTL(problem, weight=1.0, allow_broken=True)
    return Private(learner, TREE, schedule, privacy, horizon, seed=seed, **PAPER)


PRIVATE: Mapping[str, Callable[..., Private]] = {
    PRINTED: _as_printed,
    "PQFTL, the paper's noise": lambda p, b, T, seed, schedule=ALWAYS: pqftl(
        p, b, T, strategy=TREE, schedule=schedule, weight=1.0, seed=seed, **PAPER
    ),
    "PQFTL, tree": lambda p, b, T, seed, schedule=ALWAYS: pqftl(p, b, T, strategy=TREE, schedule=schedule, seed=seed),
    "PQFTL, BLT": lambda p, b, T, seed, schedule=ALWAYS: pqftl(p, b, T, schedule=schedule, seed=seed),
    "PQFTL, BLT, geometric(1.1)": lambda p, b, T, seed: pqftl(p, b, T, schedule=geometric(1.1), seed=seed),
    "FTRL, BLT": lambda p, b, T, seed, schedule=ALWAYS: pftrl(p, b, T, schedule=schedule, seed=seed),
    "POCP over FTL": lambda p, b, T, seed, schedule=ALWAYS: pocp(FTL(p), b, T, schedule=schedule, seed=seed),
}
"""From a problem, a budget, a horizon, a seed and, if it is not every round, a schedule to what is run. With a schedule
the paper's noise is what it prints for the horizon, on a tree over the releases."""


def _leaders(problem: Problem, X: Any, y: Any, schedule: Schedule = ALWAYS) -> Record:
    rounds = Timetable(schedule, len(y)).rounds
    points = prefix_leaders(problem, X, y, rounds)
    return replay(problem, Releases(rounds, 1, points, points, np.zeros(len(rounds)), True), X, y)


EXACT: Mapping[str, Callable[..., Record]] = {
    "FTL, not private": _leaders,
    "predicting 0": lambda problem, X, y, schedule=ALWAYS: replay(problem, [], X, y),
}
"""Without privacy: from a problem, a stream and a schedule to what it did."""
