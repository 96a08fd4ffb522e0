"""Many rows, or points, at once: compiled where there is code for it, else one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Array, Arrays, Integers
from tacit.contracts import Learner
from tacit.kernels.codes import ONE_HOT, SOFTMAX, Code
from tacit.problem.codes import loss_code, set_code
from tacit.problem.problem import Problem
from tacit.problem.sets import ConvexSet


@dataclass(frozen=True, eq=False)
class Coded:
    """Steps on a problem, by number: of which kind, on which loss, in which set, how steep at most, pulled where."""

    how: Code
    loss: Code
    domain: Code
    steepest: float
    centre: Array

    def iterates(
        self, x: Array, t: int, X: Array, y: Array, rounds: Integers, total: Array | None = None, first: int = 0
    ) -> Array:
        """The iterates after these rounds, or their totals; changes `x`, and `total`, to those after all examples."""
        from tacit.kernels import classes, steps

        total = np.empty(0) if total is None else total
        problem = (self.how, self.loss, self.domain, self.steepest, self.centre)
        loop = classes.iterates if self.of_scores else steps.iterates
        return np.asarray(loop(*problem, x, t, X, y, rounds, total, first))

    @property
    def of_scores(self) -> bool:
        """Whether the loss is one of several scores; the loop that also hides iterates is for all others."""
        return self.loss[0] in (SOFTMAX, ONE_HOT)

    def releases(
        self,
        x: Array,
        t: int,
        X: Array,
        y: Array,
        rounds: Integers,
        step: Array,
        magnitude: float,
        noise: Integers,
    ) -> tuple[Array, Array]:
        """The iterates hidden under noise on a lattice, and the points of the set next to that."""
        from tacit.kernels import steps

        problem = (self.how, self.loss, self.domain, self.steepest, self.centre)
        noisy, points = np.empty(noise.shape), np.empty(noise.shape)
        steps.releases(*problem, x, t, X, y, rounds, step, magnitude, noise, noisy, points)
        return noisy, points


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
        from tacit.kernels import sets

        return np.asarray(sets.project_all(*code, rows))
    return np.array([domain.project(row) for row in rows]).reshape(rows.shape)
