"""Follow the regularised leader on private sums of gradients, taken at released points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.core.protocols import Certificate
from taciturn.errors import Unprovable
from taciturn.learners.exact_sums import MOST, MOVES_ITS_OWN, entry_bound, longest_row, rounded
from taciturn.problem.problem import Problem
from taciturn.problem.scalar_loss import Values


@dataclass(frozen=True)
class FTRL:
    """`x_{t+1} = argmin_{x in C} G_t·x + ((alpha·t + lam_t)/2)‖x‖²`, G_t the private sum of loss gradients.

    Gradients of the data term are taken at the *released* points, so one example moves its own gradient and, given
    the releases, no other. **Certificate.** By at most Gd, the problem's gradient diameter.

    *Proof.* Gd bounds the difference of two neighbouring gradients at any point of the domain, and released points lie
    in it. Given the releases, all other gradients are the same in both worlds. ∎

    **Regulariser.** `lam_t = 2·s_t·sqrt(d)/B`, s_t the standard deviation of the noise of G_t and B the radius: the
    noise alone moves the point half-way to the boundary. Without a ridge also `(L/B)·sqrt(t)`.

    **Regret.** At most `taciturn.regret.ftrl_regret_bound`, whatever the stream. With a release after every example
    that is of order `ln² T` with a ridge, and `ln T·sqrt(T)` without.

    Examples
    --------
    >>> from taciturn import FTRL, Hinge, L2Ball, Problem
    >>> FTRL(Problem(Hinge(), L2Ball(1.0), dimension=2)).certificate
    l2/entry, 2
    """

    problem: Problem

    def __post_init__(self) -> None:
        p = self.problem
        if not (math.isfinite(p.radius) and math.isfinite(p.gradient_diameter + p.lipschitz)):
            raise Unprovable(
                f"FTRL needs a bounded domain and bounded gradients, and this is {type(p.loss).__name__} over "
                f"{p.domain}. Bound the domain, e.g. L2Ball(1.0)."
            )

    @property
    def statistic_size(self) -> int:
        """Entries of a gradient."""
        return self.problem.size

    @cached_property
    def certificate(self) -> Certificate:
        """Gd, and rounding."""
        moved = self.problem.gradient_diameter
        longest = self.problem.lipschitz
        bound = partial(entry_bound, moved, longest, self.statistic_size)
        lemma = "proof in taciturn.FTRL"
        norm = longest_row(longest, longest, self.statistic_size)
        return Certificate("l2", "entry", f"{moved:.5g}", bound, longest, MOVES_ITS_OWN, lemma, most=MOST, norm=norm)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Gradients at the last released point, added up since that release."""
        total = exact["sum"]
        for v, label in zip(X, y, strict=True):
            total = total + rounded(self._gradient(v, float(label), point), self.problem.lipschitz)
        return {"sum": total}

    def _gradient(self, v: Array, y: float, point: Array) -> Array:
        """The gradient of the data term, clipped to its stated bound: a user's loss may misstate it."""
        g = self.problem.data_gradient(point, v, y)
        longest = self.problem.lipschitz
        length = float(np.linalg.norm(g))
        return np.asarray(g if length <= longest else g * (longest / length))

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), exact["sum"]

    def decide(self, t: int, noisy: Array, noise_sd: float) -> Array:
        """The regularised leader of the noisy gradients."""
        return self.problem.domain.project(-noisy / (self.problem.ridge * t + self.regulariser(t, noise_sd)))

    def regulariser(self, t: Values, noise_sd: Values) -> Values:
        """`lam_t` after t examples, for a sum whose noise has this standard deviation; numbers or arrays.

        >>> from taciturn import FTRL, Hinge, L2Ball, Problem
        >>> round(float(FTRL(Problem(Hinge(), L2Ball(2.0), dimension=4)).regulariser(9, 5.0)), 6)
        11.5
        """
        p = self.problem
        pull = 2.0 * noise_sd * math.sqrt(p.size) / p.radius
        return pull if p.ridge > 0.0 else pull + p.lipschitz / p.radius * np.sqrt(t)
