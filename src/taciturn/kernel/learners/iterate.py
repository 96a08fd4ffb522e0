"""The base of learners whose statistic is their iterate, and the rounding errors of their steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.errors import Unprovable
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss, Values, check_slopes
from taciturn.kernel.stream.protocols import Certificate, Learner

UNIT = 2.0**-53
MOVED_BY = "one example moves every later iterate"


def check_solvable(problem: Problem, message: str) -> None:
    """Reject a loss on which no solver is certified: one that has kinks and is no function of `v·x`."""
    if not (isinstance(problem.loss, ScalarLoss) or math.isfinite(problem.smoothness)):
        raise Unprovable(
            f"{message} on {type(problem.loss).__name__}, which is neither a ScalarLoss nor smooth. Use FTRL over a "
            "bounded set, which needs neither; or a smooth loss, such as Softmax. State a finite smoothness if your "
            "loss has one, or write it as a function of v·x."
        )


@dataclass(frozen=True)
class IterateLearner(Learner):
    """A learner whose statistic is its iterate `x` and whose decision is the projection of the noisy iterate."""

    problem: Problem

    def __post_init__(self) -> None:
        self.check_convexity()
        if not math.isfinite(self.problem.gradient_diameter + self.problem.lipschitz):
            raise Unprovable(
                f"the gradients of {type(self.problem.loss).__name__} over {self.problem.domain} have no bound, so one "
                "example could move the iterate anywhere. Bound the domain, e.g. L2Ball(1.0)."
            )
        if isinstance(self.problem.loss, ScalarLoss) and self.problem.label_bound is not None:
            check_slopes(self.problem.loss, self.problem.norm_bound * self.problem.radius, self.problem.label_bound)

    def check_convexity(self) -> None:
        """Reject a problem whose convexity does not suffice."""
        if not self.problem.ridge > 0.0:
            raise Unprovable(
                f"{type(self).__name__} certifies strongly convex losses only, and ridge is {self.problem.ridge}. "
                "Give the problem a ridge, e.g. 0.01, or use FadingIGD."
            )

    @property
    def statistic_size(self) -> int:
        """Entries of an iterate."""
        return self.problem.size

    @cached_property
    def longest_iterate(self) -> float:
        """Bound on `‖x‖`: the domain's, or `G/alpha` from the first point `x_1`, whichever is less.

        The ridge alone leaves `x_1 = Proj(0)` where it is, and a step contracts by a factor `1 - lam` while the data
        moves it by at most `lam·G/alpha`; so the distance to `x_1` never exceeds `G/alpha`.
        """
        pull = self.problem.lipschitz / self.problem.ridge
        return min(self.problem.radius, pull + float(np.linalg.norm(self.problem.first_point)))

    def start(self) -> Arrays:
        """The data-free first point."""
        return {"x": self.problem.first_point}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """The iterate itself."""
        return exact, exact["x"]

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The point of the domain nearest to the noisy iterate."""
        return self.problem.domain.project(noisy)

    @property
    def steepest(self) -> float:
        """The Lipschitz constant of `f`, ridge included, where iterates can be."""
        return self.problem.lipschitz + self.problem.ridge * self.longest_iterate

    @property
    def certificate(self) -> Certificate:
        """Stated, and proven, by each learner."""
        raise NotImplementedError

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """One step for each example."""
        raise NotImplementedError

    def inertia(self, t: Values) -> Values:
        """`D_t`: an example moves the iterate after t examples by at most its gradient over `D_t`."""
        raise NotImplementedError

    def within_the_set(self, bound: Values) -> Array:
        """`bound`, or the diameter of the domain where that is less: no two iterates lie farther apart."""
        return np.asarray(np.minimum(bound, self.problem.diameter * (1.0 + 1e-9)), dtype=np.float64)

    def rounding(self, t: Array) -> Array:
        """What rounding errors of all steps up to t can add between two neighbouring runs: `2u·t·(B + G/D_t)`.

        A step computes inner products, a multiple of the example, a sum and a projection, each with a relative error of
        at most a few `(size + 8)·2⁻⁵³`; the numbers involved are at most `‖x‖ ≤ B` and the data's pull, `G/D_i`. So
        step i errs by at most `u·(B + G/D_i)`, `u = 16·(size + 8)·2⁻⁵³`, in each of the two runs, and later steps
        shrink that to `D_i/D_t` of itself. Sum over i ≤ t, twice, with `D_i ≤ D_t`.
        """
        unit = 16.0 * (self.statistic_size + 8) * UNIT
        largest = self.longest_iterate + self.problem.lipschitz / self.inertia(t)
        return np.asarray(2.0 * unit * t * largest, dtype=np.float64)
