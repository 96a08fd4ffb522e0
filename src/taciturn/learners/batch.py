"""Many rows, points or releases at once: compiled where there is code for it, else one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.compiled.codes import ONE_HOT, SOFTMAX, Code
from taciturn.core.loop import HidesEachAlone
from taciturn.core.protocols import Learner
from taciturn.core.release import Collected
from taciturn.core.state import Standing
from taciturn.problem.codes import loss_code, set_code
from taciturn.problem.problem import Problem
from taciturn.problem.sets import ConvexSet
from taciturn.problem.sparse_rows import CompressedRows, Rows


@dataclass(frozen=True, eq=False)
class Coded:
    """Steps on a problem, by number: of which kind, on which loss, in which set, how steep at most, pulled where."""

    how: Code
    loss: Code
    domain: Code
    steepest: float
    centre: Array

    @property
    def compressed(self) -> bool:
        """Whether there is a loop over compressed rows: of scalar losses, if the ridge pulls to a 0 in the set."""
        return not (self.centre.any() or self.of_scores)

    def iterates(
        self, x: Array, t: int, X: Rows, y: Array, rounds: Integers, total: Array | None = None, first: int = 0
    ) -> Array:
        """The iterates after these rounds, or their totals; changes `x`, and `total`, to those after all examples.

        Totals are of dense rows alone.
        """
        problem = (self.how, self.loss, self.domain, self.steepest)
        if isinstance(X, CompressedRows):
            from taciturn.compiled import igd_sparse as sparse

            return np.asarray(sparse.iterates(*problem, x, t, X.starts, X.columns, X.entries, y, rounds))
        from taciturn.compiled import igd as steps
        from taciturn.compiled import igd_multiclass as classes

        total = np.empty(0) if total is None else total
        loop = classes.iterates if self.of_scores else steps.iterates
        return np.asarray(loop(*problem, self.centre, x, t, X, y, rounds, total, first))

    @property
    def of_scores(self) -> bool:
        """Whether the loss is one of several scores; the loop that also hides iterates is for all others."""
        return self.loss[0] in (SOFTMAX, ONE_HOT)

    def release(self, x: Array, t: int, X: Rows, y: Array, rounds: Integers, *hidden: Any) -> int:
        """Writes the iterates after these rounds, hidden, and the points of the set next to that: how many.

        Changes `x` to the iterate after all examples.
        """
        problem = (self.how, self.loss, self.domain, self.steepest)
        if isinstance(X, CompressedRows):
            from taciturn.compiled import igd_sparse as sparse

            return int(sparse.releases(*problem, x, t, X.starts, X.columns, X.entries, y, rounds, *hidden))
        from taciturn.compiled import igd as steps

        return int(steps.releases(*problem, self.centre, x, t, X, y, rounds, *hidden))


@dataclass(frozen=True, eq=False)
class InOneLoop:
    """Steps, noise and projections in one loop, for a mechanism that hides each iterate by itself."""

    coded: Coded
    calibrated: HidesEachAlone
    forgets: ClassVar[bool] = True

    @property
    def compressed(self) -> bool:
        """If there are such steps."""
        return self.coded.compressed

    def __call__(
        self, at: Standing, X: Rows, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """The iterates hidden under noise on a lattice, and the points of the set next to that."""
        t, k, exact = at[:3]
        x, count, how = exact["x"].copy(), len(rounds), self.coded
        if not count:
            how.iterates(x, t, X, y, rounds)
            return at._replace(t=t + len(y), exact={"x": x})
        noise = self.calibrated.noise_for(seed, k + 1, count)
        noisy, points, noise_sd = shown.room(count, len(x), len(x))
        noise_sd[:], step = self.calibrated.levels_of(k + 1, count)
        written = how.release(x, t, X, y, rounds, step, self.calibrated.magnitude, noise, noisy, points)
        shown.written(written)
        return at._replace(t=t + len(y), k=k + count, exact={"x": x}, point=points[-1].copy())


def coded(how: Code, problem: Problem) -> Coded | None:
    """The steps by number, if loss and set have one."""
    loss, domain = loss_code(problem.loss), set_code(problem.domain)
    if loss is None or domain is None:
        return None
    return Coded(how, loss, domain, problem.lipschitz / problem.norm_bound, problem.first_point)


def one_by_one(learner: Learner, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
    """The exact state after all examples and the rows of these rounds, by the verbs that define them."""
    rows, start = np.empty((len(rounds), learner.row_size)), 0
    for k, end in enumerate(int(due) - t for due in rounds):
        exact = learner.absorb(exact, t + start, X[start:end], y[start:end], learner.problem.first_point)
        exact, rows[k] = learner.hand_over(exact, t + end)
        start = end
    if start < len(y):
        exact = learner.absorb(exact, t + start, X[start:], y[start:], learner.problem.first_point)
    return exact, rows


def project_all(domain: ConvexSet, rows: Array) -> Array:
    """The nearest point of the set to each row."""
    if (code := set_code(domain)) is not None:
        from taciturn.compiled import sets

        return np.asarray(sets.project_all(*code, rows))
    return np.array([domain.project(row) for row in rows]).reshape(rows.shape)
