"""Follow the (regularised) leader, exact, with its certificate (Sections 3.4 and 3.5 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from taciturn.errors import Unprovable, not_negative
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.iterate import MOVED_BY, IterateLearner, check_solvable
from taciturn.kernel.problem.losses import Squared
from taciturn.kernel.problem.scalar_loss import ScalarLoss, Values
from taciturn.kernel.problem.sets_pass import project_batch
from taciturn.kernel.stream.batch_pass import ByDefinition
from taciturn.kernel.stream.passes import register
from taciturn.kernel.stream.protocols import Certificate
from taciturn.methods.optimize import (
    Objective,
    Quadratic,
    mean_loss,
    mean_smoothness,
    minimiser,
    quadratic_minimiser,
    rounding_slack,
)

_NEAR = 2.0**-30  # the solver's tolerance, as a share of the sensitivity
_STIFFEST = 1e12  # largest smoothness over the ridge
_FINE = 2.0**-16  # kinks are smoothed over this share of the range of predictions


@dataclass(frozen=True)
class FTL(IterateLearner):
    """`x_{t+1} = argmin_{x in C} Σ_{i≤t} f_i(x) + (extra_ridge/2)‖x‖²`, the argmin taken inside the set.

    **Certificate.** `S(t) = Gd/(alpha·t + extra_ridge)`; tight for linear losses.

    *Proof.* The two objectives are D-strongly convex, `D = alpha·t + extra_ridge`, and differ by `l - l'`, which is
    Gd-Lipschitz on C. Adding the two strong-convexity inequalities at the minimisers x, x' gives
    `D·‖x - x'‖² ≤ (l - l')(x') - (l - l')(x) ≤ Gd·‖x - x'‖`. ∎

    Nothing accumulates: each leader is computed anew, to within a billionth of S(t) of the leader of the losses as they
    are minimised, and what rounding errors allow (`taciturn.methods.optimize`); twice that is part of the certificate.
    For squared loss its sufficient statistics are stored, `Σ v vᵀ` and `Σ y v`. For every other loss the examples
    themselves are stored. A kinked loss is minimised averaged over a 65536th of the range of predictions: no gradient
    gets longer, so the certificate stands; the leader moves a little, by an amount that does not shrink with t.

    The time to compute a leader depends on the data: keep it secret, and publish at times that are fixed in advance.

    This is FTL on the losses themselves. On *linearised* losses, at its own exact iterates, the regularised leader does
    not contract, and no such certificate holds.

    Parameters
    ----------
    problem : Problem
        With a ridge, or a bounded domain and an `extra_ridge`.
    extra_ridge : float
        Strength of a regulariser that is added once; 0 for the plain leader.

    Examples
    --------
    >>> from taciturn import FTL, Linear, Problem, WholeSpace
    >>> FTL(Problem(Linear(), WholeSpace(), dimension=1, label_bound=1.0, ridge=0.5), extra_ridge=3.0).certificate
    l2/tail, 2/(0.5 t + 3)
    """

    extra_ridge: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra_ridge", not_negative("extra_ridge", self.extra_ridge))
        check_solvable(self.problem, "FTL cannot certify its leader")
        super().__post_init__()
        if mean_smoothness(self.problem, 0.0, self.width) > _STIFFEST * (self.problem.ridge + self.extra_ridge):
            raise Unprovable(
                f"a ridge of {self.problem.ridge + self.extra_ridge:g} is too small: no leader is computed in time. "
                "Take a larger one."
            )

    def check_convexity(self) -> None:
        """A ridge, or an extra one and a bounded domain."""
        if not (self.problem.ridge > 0.0 or (self.extra_ridge > 0.0 and math.isfinite(self.problem.radius))):
            raise Unprovable(
                "the leader of losses without a ridge may move anywhere. Give the problem a ridge, e.g. 0.01, or bound "
                "the domain and set extra_ridge."
            )

    @cached_property
    def longest_iterate(self) -> float:
        """The domain's radius, or `G/alpha` from the first point, whichever is less."""
        return super().longest_iterate if self.problem.ridge > 0.0 else self.problem.radius

    def inertia(self, t: Values) -> Values:
        """`alpha·t + extra_ridge`, the strong convexity of what the leader minimises."""
        return self.problem.ridge * t + self.extra_ridge

    @cached_property
    def certificate(self) -> Certificate:
        """`Gd/(alpha·t + extra_ridge)` and twice the distance of a computed leader from the exact one."""
        denominator = f"{self.problem.ridge:g} t" + (f" + {self.extra_ridge:g}" if self.extra_ridge else "")
        formula = f"{self._gradient_diameter:.5g}/({denominator})"
        return Certificate(
            "l2",
            "tail",
            formula,
            self._sensitivity,
            self.longest_iterate,
            MOVED_BY,
            "proof in taciturn.FTL",
            **rests(self.problem),
        )

    def start(self) -> Arrays:
        """No examples, or empty sums."""
        size = self.statistic_size
        if self.by_sums:
            return {"M": np.zeros((size, size)), "u": np.zeros(size)}
        return {"V": np.zeros((0, self.problem.width)), "y": np.zeros(0), "x": self.problem.first_point}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """The examples stored, or added to the sums one by one, so that no bit depends on how the stream is cut."""
        if not self.by_sums:
            return exact | {"V": np.concatenate([exact["V"], X]), "y": np.concatenate([exact["y"], y])}
        M, u = exact["M"].copy(), exact["u"].copy()
        for v, label in zip(X, y, strict=True):
            M += np.outer(v, v)
            u += label * v
        return {"M": M, "u": u}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """The leader."""
        objective, start = self._objective(exact, t)
        tolerance = float(self.distance(np.asarray(float(t))))
        x = minimiser(objective, self.problem.domain, start, tolerance, 2.0 * self.longest_iterate)
        return (exact if self.by_sums else exact | {"x": x}), x

    def _objective(self, exact: Arrays, t: int) -> tuple[Objective, Array]:
        """The leader's objective, and a starting point: the last leader or, for squared loss, the solution."""
        p = self.problem
        ridge = self.inertia(t) / t
        if not self.by_sums:
            return mean_loss(p, exact["V"], exact["y"], ridge, self.width), exact["x"]
        sums = Quadratic(exact["M"] / t, exact["u"] / t, ridge, mean_smoothness(p, ridge))
        return sums, quadratic_minimiser(*sums.model(p.first_point), p.domain, p.first_point)

    @property
    def by_sums(self) -> bool:
        return type(self.problem.loss) is Squared

    @cached_property
    def width(self) -> float:
        """The width over which kinks are smoothed."""
        if not isinstance(self.problem.loss, ScalarLoss) or math.isfinite(self.problem.loss.curvature):
            return 0.0
        return _FINE * self.problem.norm_bound * self.longest_iterate

    @cached_property
    def _steepest(self) -> float:
        """The longest gradient of the loss as it is minimised: an average of slopes is as steep as the steepest."""
        p = self.problem
        if not isinstance(p.loss, ScalarLoss) or self.width == 0.0 or p.label_bound is None:
            return p.lipschitz
        largest = p.norm_bound * p.radius + self.width
        return max(p.lipschitz, p.norm_bound * float(p.loss.slope_bound(largest, p.label_bound)) * (1.0 + 1e-9))

    @cached_property
    def _gradient_diameter(self) -> float:
        """That of the loss as it is minimised."""
        if self.width == 0.0:
            return self.problem.gradient_diameter
        return max(
            self.problem.gradient_diameter,
            self._steepest if self.problem.neighbours == "zero-out" else 2.0 * self._steepest,
        )

    def _sensitivity(self, t: Array) -> Array:
        moved = self._gradient_diameter / self.inertia(t)
        return self.within_the_set(moved + 2.0 * (self.distance(t) + self._slack(t)))

    def distance(self, t: Array) -> Array:
        """The solver's tolerance: small, but no smaller than rounding errors allow."""
        return np.asarray(_NEAR * self._gradient_diameter / self.inertia(t) + self._slack(t))

    def _slack(self, t: Values) -> Values:
        """How far rounding errors keep the solver from the leader."""
        ridge = self.inertia(t) / t
        longest = self.longest_iterate
        return rounding_slack(self.problem, t, ridge, longest, self._steepest + ridge * longest, self.width)


register(FTL, lambda learner: ByDefinition(learner, partial(project_batch, learner.problem.domain)))
