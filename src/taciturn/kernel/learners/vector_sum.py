"""The learner of Private Sum: examples are vectors, and their prefix sums are published."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.exact_sums import (
    LATTICE_UNITS,
    MOST,
    MOVES_ITS_OWN,
    entry_bound,
    lattice_of,
    lattice_units,
    longest_row,
    rounded,
)
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.protocols import Certificate, Learner


@dataclass(frozen=True)
class VectorSum(Learner):
    """The sum of all examples so far.

    **Certificate.** One example moves its own contribution by at most 2R (replaced) or R (zeroed out), and no other.

    Examples
    --------
    >>> from taciturn import private_sum, Privacy
    >>> private_sum(3, 1.0, Privacy(1.0, 1e-6), horizon=100).learner.certificate
    l2/entry, 2
    """

    most_units: ClassVar[int] = LATTICE_UNITS
    problem: Problem

    @property
    def statistic_size(self) -> int:
        """Entries of an example."""
        return self.problem.size

    @cached_property
    def certificate(self) -> Certificate:
        """2R or R, and rounding."""
        R = self.problem.norm_bound
        moved = 2.0 * R if self.problem.neighbours == "replace" else R
        bound = partial(entry_bound, moved, R, self.statistic_size)
        lemma = "the triangle inequality"
        norm = longest_row(R, R, self.statistic_size)
        basis = rests(self.problem, moved, 2.0 * R if self.problem.neighbours in ("replace", "label") else R)
        made = partial(Certificate, "l2", "entry", f"{moved:.5g}", bound, R, MOVES_ITS_OWN, lemma)
        return made(most=MOST, norm=norm, steady=True, **basis)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Added up since the last release."""
        return {"sum": exact["sum"] + rounded(X, self.problem.norm_bound).sum(axis=0)}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), exact["sum"]

    def to_integers(self, exact: Arrays) -> Integers:
        """The sum in steps of its lattice."""
        return lattice_units(exact["sum"], self.problem.norm_bound)

    def from_integers(self, sums: Integers) -> Arrays:
        """The sum of so many steps."""
        return {"sum": sums * lattice_of(self.problem.norm_bound)}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The private sum itself."""
        return noisy


@dataclass(frozen=True, eq=False)
class VectorSums:
    """Differences of the sums of all vectors so far, which are exact. Slow twin: `VectorSum`."""

    learner: VectorSum

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        vectors = rounded(X, self.learner.problem.norm_bound)
        sums = np.cumsum(np.concatenate([exact["sum"][None, :], vectors]), axis=0)
        starts = np.concatenate([np.zeros((1, self.learner.statistic_size)), sums[rounds - t]])
        return {"sum": sums[-1] - starts[-1]}, np.diff(starts, axis=0)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The private sums themselves."""
        return noisy
