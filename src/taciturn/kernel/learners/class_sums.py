"""Class sums: a linear classifier from the sums of the rows of each class, for sparse rows of very many features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.errors import Unprovable
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.exact_sums import (
    LATTICE_UNITS,
    MOST,
    MOVES_ITS_OWN,
    entry_bound,
    lattice_of,
    lattice_units,
)
from taciturn.kernel.problem.inputs import Rows, as_parts
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets_pass import project_batch
from taciturn.kernel.stream.protocols import Certificate, Learner

CLEAR = 16.0
"""Standard deviations of noise from which on a sum counts as known."""


@dataclass(frozen=True)
class ClassSums(Learner):
    """A naive Bayes classifier from noisy sums of the rows of each class, one of K.

    An example `v ≥ 0` of class y contributes v to the sum of class y, and 0 to the sums of the others: the statistic is
    `onehot(y) ⊗ v`, of K·d entries. Negative entries count as 0, whichever row they are in.

    **Certificate.** If an example is replaced, its contribution moves by at most `sqrt(2)·R`, R the bound on `‖v‖`,
    whatever K is, and by as much if its label alone changes; by R if it is zeroed out. *Proof.* Let the examples be (v,
    y) and (v', y'). If their classes differ, the squared distance is `‖v‖² + ‖v'‖² ≤ 2R²`. If they are the same, it is
    `‖v - v'‖² = ‖v‖² + ‖v'‖² - 2v·v' ≤ 2R²`, as no entry of v or v' is negative. If v' is 0, it is `‖v‖² ≤ R²`, as for
    a label that is no class, with which a row is in no sum. Entries are cut to a lattice towards 0 before they are
    added, exactly (`taciturn.kernel.learners.exact_sums`): that lengthens no row and makes no entry negative, so the
    bound holds for what is added. ∎ Two examples of different classes, or of one class without a common feature, both
    of length R, reach it. For K = 2 it is the certificate of the pair `(y·v, v)`, y = ±1, which moves by at most 2R:
    the pair is `sqrt(2)` times a rotation of the two sums.

    **The point** is post-processing. With N_kj the noisy sum of feature j in class k, C_j the sum over all classes, p_k
    the share of class k in the examples and s the noise's standard deviation, the weight of feature j for class k is

        x_kj = (N_kj - p_k·C_j)/(max(C_j, 0) + 16s + R),

    by how much the share of class k in feature j exceeds that in all examples, and less for a feature whose sum is
    not large beside its noise. Of two classes the weights of the second are the point, those of the first their
    negatives. With an intercept c, the last entry of each sum counts its class, from which p_k follows, and the weight
    of the intercept moves the decision of class k to the middle between the mean score of its examples and of all
    others, as far as features of `C_j ≥ 16·sqrt(K/2)·s` tell; 0, if fewer than `16s/c` examples are in the class, or
    outside it. Without an intercept classes are taken as equally frequent, and the scores are compared as they are.

    The factor 16 was chosen on short texts (Reuters-21578 in 8 classes, film reviews of a sentence, political tweets;
    5,000 to 7,000 rows) and simulated ones, over epsilon from .1 to 10: 8 and 32 are worse by half a point of accuracy
    on average; 8 is better on real text by half a point, 32 on simulated text by one.

    Parameters
    ----------
    problem : Problem
        Its loss says what the labels are: -1 and +1 (`Hinge`, `Logistic`), or classes (`MultiHinge`, `Softmax`).

    Examples
    --------
    >>> from taciturn import ClassSums, Hinge, MultiHinge, Problem, WholeSpace
    >>> ClassSums(Problem(Hinge(), WholeSpace(), dimension=1000)).certificate
    l2/entry, 1.4142
    >>> ClassSums(Problem(MultiHinge(20), WholeSpace(), dimension=1000, neighbours="zero-out")).certificate
    l2/entry, 1
    """

    most_units: ClassVar[int] = LATTICE_UNITS
    problem: Problem

    def __post_init__(self) -> None:
        if self.problem.loss.labels not in ("sign", "class"):
            raise Unprovable(
                f"ClassSums adds up the rows of each class, and {type(self.problem.loss).__name__} learns numbers. Use "
                "a loss of classes, as in Problem(Hinge(), WholeSpace(), dimension=1000)."
            )

    @property
    def classes(self) -> int:
        """K."""
        return max(self.problem.outputs, 2)

    @property
    def statistic_size(self) -> int:
        """Entries of all sums."""
        return self.classes * self.problem.width

    @cached_property
    def certificate(self) -> Certificate:
        """`sqrt(2)·R` or R; rounding adds nothing."""
        R = self.problem.norm_bound
        moved = R if self.problem.neighbours == "zero-out" else math.sqrt(2.0) * R
        bound = partial(entry_bound, moved, R, 0)
        lemma = "proof in taciturn.ClassSums"
        norm = R * (1.0 + 2.0**-40)
        basis = rests(self.problem, moved, moved)  # rows are clipped, and have no negative entries
        made = partial(Certificate, "l2", "entry", f"{moved:.5g}", bound, R, MOVES_ITS_OWN, lemma)
        return made(most=MOST, norm=norm, steady=True, **basis)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Rows without negative entries, cut to a lattice, added to their classes since the last release."""
        R = self.problem.norm_bound
        total = exact["sum"].reshape(self.classes, -1).copy()
        numbers = self.numbers(y)
        rows = np.floor(np.clip(X[numbers >= 0], 0.0, R) / lattice_of(R)) * lattice_of(R)
        np.add.at(total, numbers[numbers >= 0], rows)
        return {"sum": total.ravel()}

    def numbers(self, y: Array) -> Integers:
        """Class numbers of labels, from 0 on; negative for a row that is in no class (`Problem.missing_label`)."""
        return np.asarray(y > 0.0 if self.problem.loss.labels == "sign" else y, dtype=np.int64)

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
        """The weight of each feature for each class, and the intercepts."""
        p = self.problem
        sums = noisy.reshape(self.classes, p.width)[:, : p.mapped_dimension]
        counts = noisy.reshape(self.classes, p.width)[:, p.mapped_dimension :].sum(axis=1)
        shares = self._shares(counts, noise_sd)
        total = sums.sum(axis=0)
        size = np.maximum(total, 0.0) + (CLEAR * noise_sd + p.norm_bound)
        known = total >= CLEAR * math.sqrt(self.classes / 2.0) * noise_sd
        point = np.zeros((p.outputs, p.width))
        for row, k in zip(point, range(self.classes - p.outputs, self.classes), strict=True):
            row[: p.mapped_dimension] = (sums[k] - shares[k] * total) / size
            inside, outside = counts[k], float(np.sum(counts)) - counts[k]
            if min(inside, outside) > CLEAR * noise_sd:
                weights = row[: p.mapped_dimension] * known
                means = weights @ sums[k] / inside + weights @ (total - sums[k]) / outside
                row[p.mapped_dimension :] = -0.5 * means  # times the intercept: counts are that many times the examples
        return p.domain.project(point.ravel())

    def _shares(self, counts: Array, noise_sd: float) -> Array:
        """The share of each class; equal ones, if there are no counts, or nothing but noise."""
        known = np.maximum(counts, 0.0)
        if self.problem.intercept == 0.0 or np.sum(known) <= CLEAR * noise_sd:
            return np.full(self.classes, 1.0 / self.classes)
        return np.asarray(known / np.sum(known))


@dataclass(frozen=True, eq=False)
class SumsByClass:
    """Sums of the rows of each class, dense or compressed. Slow twin: `ClassSums`."""

    learner: ClassSums

    def __call__(self, exact: Arrays, t: int, X: Rows, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        from taciturn.kernel.learners import class_sums_loops as class_sums

        learner = self.learner
        R = learner.problem.norm_bound
        total = exact["sum"].copy()
        rows = np.empty((len(rounds), learner.statistic_size))
        class_sums.sums(total, as_parts(X), learner.numbers(y), R, lattice_of(R), t, rounds, rows)
        return {"sum": total}, rows

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """Compiled, and the points of the set nearest to them."""
        from taciturn.kernel.learners import class_sums_loops as class_sums

        p = self.learner.problem
        points = np.empty((len(noisy), p.size))
        class_sums.points(noisy, noise_sd, p.outputs, p.mapped_dimension, p.norm_bound, CLEAR, points)
        return project_batch(p.domain, points)
