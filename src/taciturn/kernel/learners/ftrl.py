"""Follow the regularised leader on private sums of gradients, taken at released points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.errors import InvalidInput, Unprovable, not_negative, positive
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
from taciturn.kernel.problem.scalar_loss import Values
from taciturn.kernel.stream.protocols import Certificate, Learner, centered, length_from


@dataclass(frozen=True)
class FTRL(Learner):
    """`x_{t+1} = argmin_{x in C} Ĝ_t·x + ((alpha·t + lam_t)/2)‖x‖²`, Ĝ_t the private sum of loss gradients.

    Gradients of the data term are taken at the *released* points, so one example moves its own gradient and, given
    the releases, no other. **Certificate.** By at most Gd, the problem's gradient diameter.

    *Proof.* Gd bounds the difference of two neighbouring gradients at any point of the domain, and released points lie
    in it. Given the releases, all other gradients are the same in both worlds. ∎

    **Curvature.** With `curvature = c > 0` an example stands for the linearisation of its loss at the released point
    `x_i` and `(c/2)‖x - x_i‖²`: `x_{t+1} = Proj((c·Σ x_i - Ĝ_t)/((alpha + c)·t + lam_t))`, i over the t examples.
    Published points then move less, and an average of them gains less. Where the losses are less curved than c, points
    learn slowly, and no bound on the regret is proven here; `taciturn.plan.curvature` has a rule. *The certificate is
    Gd, too.*

    *Proof.* An example contributes `round(g_i) - round(c·x_i)`, both multiples of one lattice step. x_i is released and
    the number of examples that use it is public (an example without influence counts too), so the second part is the
    same in both worlds, to the last bit. Sums of up to 2²⁶ contributions of at most `L + c·B` are exact
    (`taciturn.kernel.learners.exact_sums`), so two sums differ by `round(g_j) - round(g_j')` and by nothing else; and
    clipping to the largest entry moves two sums no further apart. ∎

    **Regulariser.** `lam_t = 2·s_t·sqrt(d)/B`, s_t the standard deviation of the noise of Ĝ_t and B the radius: the
    noise alone moves the point half-way to the boundary. Without a ridge also `(L/B)·sqrt(t)`. `scale` takes the place
    of B: the length of the point that is looked for. The square root of d is right for adversarial gradients. Noise
    moves a linear score by `‖v‖·s_t/lam_t` only, whatever d is; but points that are released with a smaller regulariser
    swing more: of 1,044 features of Covertype, one of `2·s_t·sqrt(200)/B` made late averages .1 to .5 % better, and
    points .6 to 1.9 % worse. A larger scale has that effect.

    **Center.** With `center = z`, a released model of an earlier stream, the regulariser is `(lam_t/2)‖x - z‖²`, and z
    is the point before the first release; ‖z‖ takes the place of B in lam_t, as x is looked for near z. The certificate
    is the same: z is public, and a point of the domain.

    **Without a bounded domain** losses must have bounded slopes, as hinge, logistic, absolute, quantile or Huber's
    have, and `scale` must be stated. Without a ridge the regulariser is then `sqrt(t·L·(L + 1.6·sqrt(K)·s_t))/scale`, K
    the number of scores: no dimension is in it, nor in the regret (`taciturn.regret.dimension_free_regret_bound`).

    **Regret.** On a bounded domain, and for c = 0, at most `taciturn.regret.ftrl_regret_bound`, whatever the stream.
    With a release after every example that is of order `ln² T` with a ridge, and `ln T·sqrt(T)` without.

    Parameters
    ----------
    problem : Problem
        Any convex loss of bounded gradients.
    curvature : float
        c; 0 for plain FTRL. Needs a bounded domain.
    scale : float, optional
        The length of the point that is looked for; the radius of the domain if None.
    center : tuple of float, optional
        A public point to start from, 0 if None. It is projected onto the domain.

    Examples
    --------
    >>> from taciturn import FTRL, Hinge, L2Ball, Problem, WholeSpace
    >>> FTRL(Problem(Hinge(), L2Ball(1.0), dimension=2)).certificate
    l2/entry, 2
    >>> FTRL(Problem(Hinge(), L2Ball(1.0), dimension=2), curvature=0.1).certificate
    l2/entry, 2
    >>> FTRL(Problem(Hinge(), WholeSpace(), dimension=2), scale=5.0).certificate
    l2/entry, 2
    """

    most_units: ClassVar[int] = LATTICE_UNITS
    uses_point: ClassVar[bool] = True
    problem: Problem
    curvature: float = 0.0
    scale: float | None = None
    center: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        p = self.problem
        if self.center is not None:
            object.__setattr__(self, "center", centered(self.center, p))
        object.__setattr__(self, "curvature", not_negative("curvature", self.curvature))
        if self.scale is not None:
            object.__setattr__(self, "scale", positive("scale", self.scale))
        this = f"{type(p.loss).__name__} over {p.domain}"
        if not math.isfinite(p.gradient_diameter + p.lipschitz):
            raise Unprovable(f"FTRL needs bounded gradients, and this is {this}. Bound the domain, e.g. L2Ball(1.0).")
        if self.bounded:
            return
        if self.scale is None:
            raise Unprovable(
                f"FTRL needs a bounded domain, or scale=, the length of the point that is looked for, and this is "
                f"{this}. Bound the domain, e.g. L2Ball(1.0), or state scale=1.0."
            )
        if self.curvature > 0.0:
            raise InvalidInput(f"curvature needs a bounded domain, and this is {this}. Use L2Ball({self.scale:g}).")

    @property
    def bounded(self) -> bool:
        """Whether the domain is."""
        return math.isfinite(self.problem.radius)

    @property
    def statistic_size(self) -> int:
        """Entries of a gradient."""
        return self.problem.size

    @cached_property
    def magnitude(self) -> float:
        """The largest entry of a contribution: of a gradient, and of `c·x` at a released point."""
        return self.problem.lipschitz + (self.curvature * self.problem.radius if self.curvature > 0.0 else 0.0)

    @cached_property
    def certificate(self) -> Certificate:
        """Gd, and rounding."""
        moved = self.problem.gradient_diameter
        bound = partial(entry_bound, moved, self.magnitude, self.statistic_size)
        lemma = "proof in taciturn.FTRL"
        largest = self.magnitude
        norm = longest_row(largest, largest, self.statistic_size)
        p = self.problem
        basis = rests(p, moved, (2.0 if p.neighbours in ("replace", "label") else 1.0) * p.lipschitz)
        made = partial(Certificate, "l2", "entry", f"{moved:.5g}", bound, largest, MOVES_ITS_OWN, lemma)
        return made(most=MOST, norm=norm, steady=True, **basis)

    @property
    def first_point(self) -> Array:
        """The center, or the problem's."""
        return self.problem.first_point if self.center is None else np.array(self.center)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Contributions at the last released point, added up since that release."""
        total = exact["sum"]
        if self.curvature > 0.0:
            total = total - len(y) * rounded(self.curvature * point, self.magnitude)
        row = np.empty(X.shape[1])  # one memory for all rows: what BLAS rounds then depends on a row and on no place
        for v, label in zip(X, y, strict=True):
            row[:] = v
            total = total + rounded(self._gradient(row, float(label), point), self.magnitude)
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

    def to_integers(self, exact: Arrays) -> Integers:
        """The sum in steps of its lattice."""
        return lattice_units(exact["sum"], self.magnitude)

    def from_integers(self, sums: Integers) -> Arrays:
        """The sum of so many steps."""
        return {"sum": sums * lattice_of(self.magnitude)}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The regularised leader of the noisy contributions."""
        stride = self.stride(t, noise_sd)
        if self.center is None:
            return self.problem.domain.project(-noisy / stride)
        return self.problem.domain.project((self.regulariser(t, noise_sd) * np.array(self.center) - noisy) / stride)

    def stride(self, t: Values, noise_sd: Values) -> Values:
        """What a noisy sum is divided by after t examples, `(alpha + c)·t + lam_t`; numbers or arrays.

        >>> from taciturn import FTRL, Hinge, L2Ball, Problem
        >>> round(float(FTRL(Problem(Hinge(), L2Ball(2.0), dimension=4), curvature=0.5).stride(9, 5.0)), 6)
        16.0
        """
        return (self.problem.ridge + self.curvature) * t + self.regulariser(t, noise_sd)

    def regulariser(self, t: Values, noise_sd: Values) -> Values:
        """`lam_t` after t examples, for a sum whose noise has this standard deviation; numbers or arrays.

        >>> from taciturn import FTRL, Hinge, L2Ball, Problem
        >>> round(float(FTRL(Problem(Hinge(), L2Ball(2.0), dimension=4)).regulariser(9, 5.0)), 6)
        11.5
        """
        p = self.problem
        length = length_from(self.center, p.radius if self.scale is None else self.scale)
        root: Any = math.sqrt if isinstance(t, float) and isinstance(noise_sd, float) else np.sqrt  # the same, sooner
        if not self.bounded and p.ridge == 0.0:
            pull = p.lipschitz + 1.6 * math.sqrt(p.outputs) * noise_sd
            return root(t * (p.lipschitz * pull)) / length
        pull = 2.0 * noise_sd * math.sqrt(p.size) / length
        return pull if p.ridge > 0.0 else pull + p.lipschitz / length * root(t)
