"""Online gradient descent, which the paper calls GIGA (Section 3.4 and Algorithm 3), exact, with its certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np

from taciturn.calibration.paper import PaperNoise, Reading, pocp_noise
from taciturn.errors import Unprovable, one_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.igd_pass import STEPS, Iterates
from taciturn.kernel.learners.iterate import MOVED_BY, IterateLearner
from taciturn.kernel.problem import codes
from taciturn.kernel.problem.codes import Code
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import ScalarLoss, Values
from taciturn.kernel.stream.passes import register
from taciturn.kernel.stream.protocols import Certificate
from taciturn.methods.readings import IN_THE_PAPER

Step = Literal["contracting", "printed"]


@dataclass(frozen=True)
class GIGA(IterateLearner):
    """`x_{t+1} = Proj_C(x_t - eta_t·∇f_t(x_t))` for smooth losses.

    **Default step** `eta_t = 1/(alpha·(t + t0))`, `t0 = (kappa - 1)/2`, `kappa = L_G/alpha`. **Certificate**
    `S(t) = Gd/(alpha·(t + t0))`, tight for linear losses.

    *Proof.* `eta_t ≤ eta_1 = 2/(alpha + L_G)`, so a gradient step on an alpha-strongly convex, L_G-smooth function
    contracts by `1 - eta_t·alpha = (t + t0 - 1)/(t + t0)`, and projections do not expand. So if the runs differ
    before t, `S(t) = S(t-1)·(t + t0 - 1)/(t + t0)`; if they differ in example t, they move apart by
    `eta_t·Gd = Gd/(alpha·(t + t0))`. ∎

    **Printed step** (`step="printed"`): no move before round `t_q = ceil(2·kappa²)`, then `eta_t = 2/(alpha·t)`;
    `S(t) = 2Gd/(alpha·t)`. (The paper's Lemma 5 says `2G/(alpha·t)`, half of the right value where `Gd = 2G`.) The last
    example reaches it, but no one pair of streams does so in every round: the truth is better than the guarantee.

    *Proof.* The squared contraction is at most `1 + eta²·L_G² - 2·eta·alpha = 1 - 4/t + 4·kappa²/t²`, for t ≥ 2·kappa²
    at most `1 - 2/t ≤ (1 - 1/t)²`; and example t moves the runs apart by `eta_t·Gd = 2Gd/(alpha·t)`. ∎

    Examples
    --------
    >>> from taciturn import GIGA, Linear, Problem, WholeSpace
    >>> GIGA(Problem(Linear(), WholeSpace(), dimension=1, label_bound=1.0, ridge=0.5)).certificate
    l2/tail, 4/(t+0)
    """

    step: Step = "contracting"

    def __post_init__(self) -> None:
        one_of("step", self.step, ("contracting", "printed"))
        if not math.isfinite(self.problem.smoothness):
            other = "IGD" if isinstance(self.problem.loss, ScalarLoss) else "FTRL"
            raise Unprovable(
                f"GIGA needs a smooth loss, and {type(self.problem.loss).__name__} has a kink: its gradient steps do "
                f"not contract. Use {other}, or a smooth loss (Logistic, Softmax, Squared, Huber)."
            )
        super().__post_init__()

    @property
    def delay(self) -> float:
        """`t0`: how much later than 1/t the default step starts."""
        return (self.problem.smoothness / self.problem.ridge - 1.0) / 2.0

    @property
    def first_move(self) -> int:
        """The first example that moves the iterate: 1, or `t_q` with the printed step."""
        kappa = self.problem.smoothness / self.problem.ridge
        return math.ceil(2.0 * kappa**2) if self.step == "printed" else 1

    @cached_property
    def certificate(self) -> Certificate:
        """`Gd/(alpha·(t+t0))`, or `2Gd/(alpha·t)` from `t_q` on, and the share of rounding errors."""
        scale = self.problem.gradient_diameter / self.problem.ridge
        if self.step == "printed":
            formula = f"{2.0 * scale:.5g}/t from {self.first_move} on"
        else:
            formula = f"{scale:.5g}/(t+{round(self.delay, 4):g})"
        lemma = "Lemma 5 of the paper, corrected; proof in taciturn.GIGA"
        made = partial(Certificate, "l2", "tail", formula, self._sensitivity, self.longest_iterate, MOVED_BY, lemma)
        return made(**rests(self.problem))

    def _sensitivity(self, t: Array) -> Array:
        reached = self.within_the_set(self.problem.gradient_diameter / self.inertia(t) + self.rounding(t))
        return np.where(t >= self.first_move, reached, 0.0)

    def inertia(self, t: Values) -> Values:
        """One over the step: `alpha·(t + t0)`, or `alpha·t/2` with the printed one."""
        return self.problem.ridge * (t / 2.0 if self.step == "printed" else t + self.delay)

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """One projected gradient step for each example."""
        x = exact["x"]
        for i, (v, label) in enumerate(zip(X, y, strict=True), start=t + 1):
            if i >= self.first_move:
                gradient = self.problem.gradient(x, v, float(label))
                x = self.problem.domain.project(x - gradient / self.inertia(float(i)))
        return {"x": x}


def _steps(learner: GIGA) -> tuple[Code, Problem]:
    """Kind of step, and the problem, for compiled steps."""
    ridge = learner.problem.ridge
    if learner.step == "printed":
        return (codes.PRINTED, ridge, float(learner.first_move)), learner.problem
    return (codes.GRADIENT, ridge, learner.delay), learner.problem


STEPS[GIGA] = _steps
register(GIGA, Iterates.of)


def _in_the_paper(learner: GIGA) -> PaperNoise:
    """`lam = 2G` as Algorithm 3 prints it, `2G/alpha` as Lemma 5 states it; G is the longest gradient of `f`."""

    def noise(privacy: Privacy, horizon: int, rounds: Array, reading: Reading) -> tuple[Array, Privacy]:
        lam = 2.0 * learner.steepest / (learner.problem.ridge if reading == "proven" else 1.0)
        return pocp_noise(lam, privacy, horizon, rounds, reading)

    return noise


IN_THE_PAPER[GIGA] = _in_the_paper
