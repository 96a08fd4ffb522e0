"""Implicit gradient descent without strong convexity (Section 4.1 of the paper), exact, with its certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from taciturn._util.arrays import Array, Arrays
from taciturn.core.protocols import Certificate
from taciturn.errors import Unprovable, positive
from taciturn.learners.igd import IGD
from taciturn.learners.implicit_step import prox_in_set
from taciturn.learners.iterate import MOVED_BY
from taciturn.problem.scalar_loss import Values


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
        return Certificate("l2", "tail", formula, self._sensitivity, self.longest_iterate, MOVED_BY, lemma)

    def inertia(self, t: Values) -> Values:
        """`A_t + alpha_t`."""
        return self._total(t) + self._weight(t)

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """One implicit step for each example."""
        x, centre = exact["x"], self.problem.first_point
        for i, (v, label) in enumerate(zip(X, y, strict=True), start=t + 1):
            inertia = self.inertia(float(i))
            anchor = (self._total(float(i)) * x + self._weight(float(i)) * centre) / inertia
            x = prox_in_set(self.stepped, anchor, v, float(label), 1.0 / inertia, self._tolerance(i))
        return {"x": x}

    def _weight(self, t: Values) -> Values:
        return self.strength * t**-0.25

    def _total(self, t: Values) -> Values:
        return 4.0 / 3.0 * self.strength * t**0.75
