"""Methods that the regression experiments compare. NOT PRIVATE: all of them are seeded.

The paper's algorithm as printed and repaired, its successors, and baselines without privacy.

>>> list(EXACT)
['FTL, not private', 'predicting 0']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn import (
    FTL,
    QFTL,
    BinaryTree,
    Privacy,
    Private,
    Problem,
    Releases,
    Schedule,
    Unprovable,
    every,
    geometric,
    pftrl,
    pocp,
    pqftl,
)
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.svec import unpacked
from taciturn.kernel.stream.schedule import Timetable
from taciturn.regret import Record, prefix_leaders, replay

EPSILONS = (0.01, 0.1, 1.0, 10.0)
TREE = BinaryTree(refined=False)
PAPER: dict[str, Any] = {"calibration": "paper-printed", "allow_broken": True}
ALWAYS = every(1)
PRINTED = "PQFTL as printed"
PAPER_NOISE = "PQFTL, the paper's noise"


def _as_printed(problem: Problem, privacy: Privacy, horizon: int, seed: int, schedule: Schedule = ALWAYS) -> Private:
    learner = PrintedQFTL(problem, weight=1.0, allow_broken=True)
    return Private(learner, TREE, schedule, privacy, horizon, seed=seed, **PAPER)


PRIVATE: Mapping[str, Callable[..., Private]] = {
    PRINTED: _as_printed,
    PAPER_NOISE: lambda p, b, T, seed, schedule=ALWAYS: pqftl(
        p, b, T, strategy=TREE, schedule=schedule, weight=1.0, seed=seed, **PAPER
    ),
    "PQFTL, tree": lambda p, b, T, seed, schedule=ALWAYS: pqftl(p, b, T, strategy=TREE, schedule=schedule, seed=seed),
    "PQFTL, BLT": lambda p, b, T, seed, schedule=ALWAYS: pqftl(p, b, T, schedule=schedule, seed=seed),
    "PQFTL, BLT, geometric(1.1)": lambda p, b, T, seed: pqftl(p, b, T, schedule=geometric(1.1), seed=seed),
    "FTRL, BLT": lambda p, b, T, seed, schedule=ALWAYS: pftrl(p, b, T, schedule=schedule, seed=seed),
    "POCP over FTL": lambda p, b, T, seed, schedule=ALWAYS: pocp(FTL(p), b, T, schedule=schedule, seed=seed),
}
"""Private methods: from a problem, a budget, a horizon, a seed and optionally a schedule to a `Private`. With a
schedule the paper's noise is what the paper prints for the horizon, on a tree over the releases."""


def _leaders(problem: Problem, X: Any, y: Any, schedule: Schedule = ALWAYS) -> Record:
    rounds = Timetable(schedule, len(y)).rounds
    points = prefix_leaders(problem, X, y, rounds)
    return replay(problem, Releases(rounds, 1, points, points, np.zeros(len(rounds)), True), X, y)


EXACT: Mapping[str, Callable[..., Record]] = {
    "FTL, not private": _leaders,
    "predicting 0": lambda problem, X, y, schedule=ALWAYS: replay(problem, [], X, y),
}
"""Baselines without privacy: from a problem, a stream and a schedule to the record of their losses."""


@dataclass(frozen=True)
class PrintedQFTL(QFTL):
    """Algorithm 4 of the paper with its inverse as printed: to measure the repairs of `taciturn.QFTL`, not for use.

    The point is `(alpha·t·I + V)⁻¹u`, V and u the noisy sums. The certificate is that of `QFTL`, and the point is
    post-processing, so privacy is what the calibration makes it. It is the point that is broken: V is indefinite while
    the noise outweighs the data, so an eigenvalue of `alpha·t·I + V` comes arbitrarily near to 0, and the expected
    regret is infinite. As in the paper, points are not projected onto the domain.

    V is symmetric here: of the paper's noise on every entry of the matrix it has the symmetric part, all that a
    symmetric matrix can use.

    Parameters
    ----------
    problem, extra_ridge, weight
        As in `taciturn.QFTL`.
    allow_broken : bool
        Must be True, so that this learner is not used by accident.

    Examples
    --------
    >>> from taciturn import L2Ball, Problem, Squared
    >>> problem = Problem(Squared(), L2Ball(0.5), dimension=1, label_bound=1.0, ridge=1.0)
    >>> learner = PrintedQFTL(problem, weight=1.0, allow_broken=True)
    >>> learner.decide(4, np.array([-3.9, 1.0]), noise_sd=5.0).round(6)  # the domain ends at 0.5
    array([10.])
    """

    allow_broken: bool = False

    def __post_init__(self) -> None:
        if not self.allow_broken:
            raise Unprovable(
                "PrintedQFTL inverts a noisy matrix as it is, and its expected regret is infinite. Use QFTL, or say "
                "allow_broken=True to study it."
            )
        super().__post_init__()

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The printed inverse; nothing is floored, shifted or projected."""
        d, w = self.problem.size, self.w
        matrix = unpacked(noisy[:-d], d) + (self.problem.ridge * t + self.extra_ridge) * np.eye(d)
        return np.asarray(np.linalg.solve(matrix, noisy[-d:] / w), dtype=np.float64)
