"""Implicit gradient descent, exact, with its certificates.

`IGD` is Section 3.3 and Algorithm 2 of the paper; `FadingIGD` does without strong convexity (Section 4.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.errors import Unprovable, positive
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.implicit_step import implicit_step, prox_in_set, steps_by_slopes
from taciturn.kernel.learners.iterate import MOVED_BY, UNIT, IterateLearner, check_solvable
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss, Smoothed, Values
from taciturn.kernel.problem.sets import WholeSpace
from taciturn.kernel.stream.protocols import Certificate


@dataclass(frozen=True)
class IGD(IterateLearner):
    """`x_{t+1} = argmin_{x in C} ½‖x - x_t‖² + f_t(x)/(alpha·t)`, the argmin taken inside the set.

    **Certificate.** `S(t) = Gd/(alpha·(t + 1))`, with `Gd` the problem's gradient diameter; tight for linear losses.
    (The paper's Lemma 4 says `2L/t`, without `1/alpha`, which is false.)

    *Proof.* More generally let round t have strong convexity `alpha_t` and step `1/A_t`, with
    `A_{t+1} ≤ A_t + alpha_t` (here `alpha_t = alpha`, `A_t = alpha·t`), and let `D_t = A_t + alpha_t`. Multiplied by
    `A_t`, the objective of step t is `D_t`-strongly convex.

    If the runs differ in example t, both start from one point. Adding the two strong-convexity inequalities at the
    minimisers x, x' gives

        D_t·‖x - x'‖² ≤ (l - l')(x') - (l - l')(x) ≤ Gd·‖x - x'‖,

    because `l - l'` is Gd-Lipschitz on C (the rest cancels); so `‖x - x'‖ ≤ Gd/D_t`. If they differ earlier, both take
    the same exact prox of an alpha_t-strongly convex function, which contracts by `A_t/D_t`, and
    `S(t-1)·A_t/D_t ≤ Gd/D_t`, since `S(t-1) ≤ Gd/D_{t-1} ≤ Gd/A_t`. ∎

    It is never more than the diameter of the set. To it are added rounding errors (`IterateLearner.rounding`,
    `learners.implicit_step`): in 54 dimensions at most four thousandths of it after 1e5 examples, but a tenth after
    1e6.

    Where a kinked loss meets a bounded set, an exact step is so sensitive to rounding that the certificate would be
    lost; there the kinks are smoothed over a millionth of the range of predictions
    (`taciturn.kernel.problem.scalar_loss.Smoothed`).

    Examples
    --------
    >>> from taciturn import IGD, Linear, Problem, WholeSpace
    >>> IGD(Problem(Linear(), WholeSpace(), dimension=1, label_bound=1.0, ridge=0.5)).certificate
    l2/tail, 4/(t+1)
    """

    def __post_init__(self) -> None:
        check_solvable(self.problem, "IGD cannot certify its step")
        super().__post_init__()

    @cached_property
    def certificate(self) -> Certificate:
        """`Gd/(alpha·(t+1))` and the share of rounding errors."""
        formula = f"{self.problem.gradient_diameter / self.problem.ridge:.5g}/(t+1)"
        lemma = "Lemma 4 of the paper, corrected; proof in taciturn.IGD"
        made = partial(Certificate, "l2", "tail", formula, self._sensitivity, self.longest_iterate, MOVED_BY, lemma)
        return made(**rests(self.problem))

    def inertia(self, t: Values) -> Values:
        """`A_t + alpha_t = alpha·(t + 1)`."""
        return self.problem.ridge * (t + 1.0)

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """One implicit step for each example."""
        x = exact["x"]
        for i, (v, label) in enumerate(zip(X, y, strict=True), start=t + 1):
            eta = 1.0 / (self.problem.ridge * i)
            x = implicit_step(self.stepped, x, v, float(label), eta, self._tolerance(i))
        return {"x": x}

    @cached_property
    def stepped(self) -> Problem:
        """The problem whose steps are taken: kinks are smoothed where the constraint can be active."""
        p = self.problem
        if not isinstance(p.loss, ScalarLoss) or math.isfinite(p.loss.curvature) or isinstance(p.domain, WholeSpace):
            return p
        range_over_slope = p.norm_bound**2 * self.longest_iterate / p.lipschitz
        return replace(p, loss=Smoothed(p.loss, 2.0**-20 * range_over_slope))

    @property
    def _largest(self) -> float:
        """`B + G/D_1`: no number in a step is larger."""
        return float(self.longest_iterate + self.problem.lipschitz / self.inertia(1.0))

    def _sensitivity(self, t: Array) -> Array:
        moved = self.problem.gradient_diameter / self.inertia(t)
        return self.within_the_set(moved + self.rounding(t) + self._inexactness(t))

    def _tolerance(self, i: int) -> float:
        """The tolerance of the solver at step i, for losses that need one."""
        moved = self.problem.gradient_diameter / self.inertia(float(i))
        return float(2.0**-20 * moved / (i + 1.0) + 2.0**-44 * self.longest_iterate)

    def _inexactness(self, t: Array) -> Array:
        """What inexact steps up to t add to the distance of two runs: `2·Σ_i D_i/D_t·error_i`, bounded by `D_i ≤ D_t`.

        With a solver, `error_i` is its tolerance, and the gradient's rounding error where its steps stall: that of a
        number of at most `B + G/D_1`, times the smoothness of the data term over `D_i`. With slopes of several scores,
        and with a scalar root where the constraint is active, it is `e·sqrt(curvature/D_i)` with `e = u·R·(B + G/D_1)`,
        `u = 4·(size + 8)·2⁻⁵³`.
        """
        loss: Any = self.stepped.loss
        p = self.problem
        inertia = self.inertia(t)
        if not (isinstance(loss, ScalarLoss) or steps_by_slopes(p)):
            solved = 2.0**-19 * p.gradient_diameter / inertia * (1.0 + np.log(t + 1.0))
            stalled = 32.0 * (self.statistic_size + 8) * UNIT * t * (p.smoothness - p.ridge) / inertia
            return np.asarray(solved + (2.0**-43 * t + stalled) * self._largest, dtype=np.float64)
        if isinstance(loss, ScalarLoss) and isinstance(p.domain, WholeSpace):
            return np.zeros_like(t)
        unit = 4.0 * (self.statistic_size + 8) * UNIT * p.norm_bound
        error = unit * self._largest
        return np.asarray(2.0 * t * error * np.sqrt(float(loss.curvature) / inertia), dtype=np.float64)


@dataclass(frozen=True)
class FadingIGD(IGD):
    """IGD on `f_t(x) + (alpha_t/2)‖x - x_1‖²`, whose pull to the first point fades as `alpha_t = strength·t^(-1/4)`.

    The step is `1/A_t`, `A_t = (4/3)·strength·t^(3/4)`. (The paper adds `alpha/sqrt(t)·‖x - x_0‖`, which is not
    strongly convex, and keeps the step of IGD, under which nothing decays.)

    **Certificate.** `S(t) = Gd/(A_t + alpha_t)`, of order `t^(-3/4)`.

    *Proof.* That of `taciturn.IGD`, which needs only `A_{t+1} ≤ A_t + alpha_t`: by concavity
    `(t+1)^(3/4) - t^(3/4) ≤ (3/4)·t^(-1/4)`. ∎

    Its regret is of order `T^(3/4)` (`taciturn.regret.fading_regret_bound`).

    Examples
    --------
    >>> from taciturn import FadingIGD, Hinge, L2Ball, Problem
    >>> FadingIGD(Problem(Hinge(), L2Ball(1.0), dimension=2), strength=0.5).certificate
    l2/tail, 4/(1.333 t^0.75 + t^-0.25)
    """

    strength: float = 1.0

    def check_convexity(self) -> None:
        """No ridge, but a bounded domain."""
        object.__setattr__(self, "strength", positive("strength", self.strength))
        if self.problem.ridge > 0.0 or not math.isfinite(self.problem.radius):
            raise Unprovable(
                f"FadingIGD is for bounded domains and losses without a ridge, and ridge is {self.problem.ridge} on "
                f"{self.problem.domain}. Use IGD where there is a ridge, and bound the domain where there is none."
            )

    @property
    def longest_iterate(self) -> float:
        """The domain's radius."""
        return self.problem.radius

    @cached_property
    def certificate(self) -> Certificate:
        """`Gd/(A_t + alpha_t)` and the share of rounding errors."""
        formula = f"{self.problem.gradient_diameter / self.strength:.5g}/(1.333 t^0.75 + t^-0.25)"
        lemma = "proof in taciturn.FadingIGD"
        return Certificate(
            "l2", "tail", formula, self._sensitivity, self.longest_iterate, MOVED_BY, lemma, **rests(self.problem)
        )

    def inertia(self, t: Values) -> Values:
        """`A_t + alpha_t`."""
        return self._total(t) + self._weight(t)

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """One implicit step for each example."""
        x = exact["x"]
        centre = self.problem.first_point
        for i, (v, label) in enumerate(zip(X, y, strict=True), start=t + 1):
            inertia = self.inertia(float(i))
            anchor = (self._total(float(i)) * x + self._weight(float(i)) * centre) / inertia
            x = prox_in_set(self.stepped, anchor, v, float(label), 1.0 / inertia, self._tolerance(i))
        return {"x": x}

    def _weight(self, t: Values) -> Values:
        return self.strength * t**-0.25

    def _total(self, t: Values) -> Values:
        return 4.0 / 3.0 * self.strength * t**0.75
