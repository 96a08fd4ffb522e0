"""Follow the leader for squared loss on private sums (Section 3.5 and Algorithm 4 of the paper), repaired."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.errors import Unprovable, not_negative, positive
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.exact_sums import (
    MOST,
    MOVES_ITS_OWN,
    PRODUCT_UNITS,
    in_units,
    longest_row,
    product_bound,
    unit_of,
)
from taciturn.kernel.problem.losses import Squared
from taciturn.kernel.problem.multiclass import OneHot
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import Values
from taciturn.kernel.problem.svec import unpacked
from taciturn.kernel.stream.protocols import Certificate, Learner, centered, length_from

MOST_AT_ONCE = 2**17
"""Examples whose products float64 adds up exactly."""
_LABEL_WEIGHT = 2.0**-8  # noise of the matrix, as a share of that of the vector, where only labels are protected
_LEAST = 1e-12  # keeps a matrix of zeros invertible, should there be neither ridge nor noise


@dataclass(frozen=True)
class QFTL(Learner):
    """Follow the leader for squared losses, from noisy sums of `v vᵀ` and `y v`.

    An example contributes `(svec(v vᵀ), w·y v)`; svec lists a symmetric matrix, off-diagonal entries times `sqrt(2)`,
    so that lengths are those of the matrix. With `OneHot`, y is a row of labels of length R_y, one for each of K
    classes, which all share `v vᵀ`: the second part is `w·y vᵀ`.

    **Certificate.** If an example is replaced its contribution moves by at most Delta,

        Delta² = 2R⁴ + 2w²R²R_y² + ½w⁴R_y⁴ if w·R_y ≤ sqrt(2)·R,   else 4w²R²R_y²,

    and if it is zeroed out by `Delta² = R⁴ + w²R²R_y²`. If its label is replaced, `v vᵀ` is the same in both worlds,
    and `Delta = 2w·R·R_y`, or `sqrt(2)·w·R` with `OneHot`: a row whose label is bad keeps its features, and has a label
    of 0 (`Problem.missing_label`). *Proof.* `quadratic_pair`, below, for one label. Of a row of labels only
    `(v·v')·(y·y')` enters besides the lengths, and that is at least `-|v·v'|·‖y‖·‖y'‖`, as it is for single labels of
    these sizes. Two labels of one row move `w·y vᵀ` by `w·‖y - y'‖·‖v‖`, and cut towards zero they are no farther apart
    than two numbers of at most R_y, or, entry by entry of two rows of labels, than before. ∎ (The paper takes R for the
    second sum, and charges each half the budget.)

    **The point** is post-processing. With V, u the noisy sums and s the noise's standard deviation, it is
    `Proj((V + (alpha·t + extra_ridge + lam_t)·I)⁻¹u)`, with the eigenvalues of V floored at 0 first if the matrix has
    no Cholesky factor. `lam_t = s·sqrt(1.5·d·(2X² + K/w²))/B`, B the radius of the domain and K = 1 without classes, is
    somewhat more than the noise pulls: the noise of `V·x - u` is about `B·lam_t/sqrt(1.5)` long at a leader of length
    X, the largest there is. With `center = z`, a released model of an earlier stream, `u + (extra_ridge + lam_t)·z`
    takes the place of u, and ‖z‖ that of B: what holds the point back holds it near z, which is public. (The paper
    inverts the noisy matrix, which is indefinite at first, so that its expected regret is infinite.)

    Parameters
    ----------
    problem : Problem
        Squared loss over a bounded domain. Labels -1 and +1 make it a classifier; for more classes there is `OneHot`.
    extra_ridge : float
        A ridge that does not grow with t, beside the problem's, which does.
    weight : float, optional
        w; by default the one that makes the noise of `V·x - u` least, `Delta²·(2x² + K/w²)`, at a leader of length
        `x = R_y/R`, or half the largest if that is less. On eight tables leaders were .6 to 6 times as long, and a
        weight for long ones costs more where they are short than it gains where they are long. Where only labels are
        replaced `Delta/w` is constant, so that a small w makes the noise of V small and nothing larger: it is
        `R/(256·R_y)`, with which the noise of V has a 256th of the standard deviation of that of u.
    center : tuple of float, optional
        A public point to start from, 0 if None. It is projected onto the domain.

    Examples
    --------
    >>> from taciturn import QFTL, L2Ball, Problem, Squared
    >>> QFTL(Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.0, ridge=1.0), weight=1.0).certificate
    l2/entry, 2.1213
    """

    most_units: ClassVar[int] = PRODUCT_UNITS
    problem: Problem
    extra_ridge: float = 0.0
    weight: float | None = None
    center: tuple[float, ...] | None = None
    _stated: bool = field(default=True, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.problem.loss) not in (Squared, OneHot) or not math.isfinite(self.problem.radius):
            raise Unprovable(
                f"QFTL is for squared loss over a bounded domain, and this is {type(self.problem.loss).__name__} over "
                f"{self.problem.domain}. Use Squared() and L2Ball(1.0), or private FTRL for other losses."
            )
        object.__setattr__(self, "extra_ridge", not_negative("extra_ridge", self.extra_ridge))
        if self.center is not None:
            object.__setattr__(self, "center", centered(self.center, self.problem))
        object.__setattr__(self, "_stated", self.weight is not None)
        weight = self._best_weight() if self.weight is None else positive("weight", self.weight)
        object.__setattr__(self, "weight", weight)

    @property
    def derived(self) -> dict[str, float]:
        """The weight, if it was not given: a resumed stream uses the one it began with."""
        return {} if self._stated else {"weight": self.w}

    def restored(self, derived: dict[str, float]) -> QFTL:
        """The same learner with the derived weight of a state."""
        made = replace(self, weight=derived["weight"])
        object.__setattr__(made, "_stated", False)
        return made

    @property
    def statistic_size(self) -> int:
        """Entries of the packed matrix and of the vectors."""
        d = self.problem.width
        return d * (d + 1) // 2 + self.problem.size

    @property
    def moved(self) -> float:
        """Delta, before rounding."""
        return self._moved(self.w)

    @cached_property
    def certificate(self) -> Certificate:
        """Delta, and rounding."""
        moved = self.moved
        bound = partial(product_bound, moved, self._magnitude, self.statistic_size)
        if self.problem.neighbours == "label":  # entries of the matrix are the same, and rounded in the same way
            largest = self.w * self.problem.norm_bound * self.label_bound
            bound = partial(product_bound, moved, largest, self.problem.size)
        basis = rests(self.problem, moved, moved)  # products are made here, of clipped rows and labels
        if self.problem.neighbours == "label":  # that features are the same in both worlds is proven above
            basis = rests(self.problem)
        lemma = "proof in taciturn.kernel.learners.qftl.quadratic_pair"
        R = self.problem.norm_bound
        norm = longest_row(R * math.hypot(R, self.w * self.label_bound), self._magnitude, self.statistic_size)
        made = partial(Certificate, "l2", "entry", f"{moved:.5g}", bound, self._magnitude, MOVES_ITS_OWN, lemma)
        return made(most=MOST, norm=norm, steady=True, **basis)

    @property
    def first_point(self) -> Array:
        """The center, or the problem's."""
        return self.problem.first_point if self.center is None else np.array(self.center)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size, dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Integer products, added up since the last release: exactly, so in any order."""
        total = exact["sum"]
        for start in range(0, len(y), MOST_AT_ONCE):
            V, Y = self.factors(X[start : start + MOST_AT_ONCE], y[start : start + MOST_AT_ONCE])
            sums = np.concatenate([(V.T @ V)[self.upper], (Y.T @ V).ravel()])
            total = total + sums.astype(np.int64)
        return {"sum": total}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), exact["sum"] * self.scale

    def to_integers(self, exact: Arrays) -> Integers:
        """The sum itself."""
        return exact["sum"]

    def from_integers(self, sums: Integers) -> Arrays:
        """The sum itself."""
        return {"sum": sums}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """Shift, floor where that is needed, solve, inside the domain."""
        from scipy.linalg import cho_factor, cho_solve  # here: it loads slowly, and few streams need it

        p = self.problem
        d = self.problem.width
        V = unpacked(noisy[: -p.size], d)
        u = noisy[-p.size :].reshape(p.outputs, d) / self.w
        if self.center is not None:
            u = u + self.pull(noise_sd) * np.array(self.center).reshape(p.outputs, d)
        ridge = self.total_ridge(t, noise_sd)
        try:
            x = cho_solve(cho_factor(V + ridge * np.eye(d), lower=True, check_finite=False), u.T).T
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(V)
            x = ((u @ vectors) / (np.maximum(values, 0.0) + ridge)) @ vectors.T
        return p.domain.project(np.asarray(x).ravel())

    def total_ridge(self, t: Values, noise_sd: Values) -> Values:
        """`alpha·t + extra_ridge + lam_t`, and a little, should all three be 0."""
        return self.problem.ridge * t + self.pull(noise_sd) + _LEAST

    def pull(self, noise_sd: Values) -> Values:
        """`extra_ridge + lam_t`, which holds the point at the center."""
        p = self.problem
        pull = math.sqrt(1.5 * p.width * (2.0 * self._longest**2 + p.outputs / self.w**2))
        return self.extra_ridge + pull / length_from(self.center, p.radius) * noise_sd

    def factors(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Features, and a row of labels for each example, as integers."""
        return in_units(X, self.problem.norm_bound), in_units(self.targets(y), self.label_bound)

    def targets(self, y: Array) -> Array:
        return self.problem.loss.targets(y) if isinstance(self.problem.loss, OneHot) else y[:, None]

    @cached_property
    def upper(self) -> tuple[Any, Any]:
        """Where the upper triangle of a matrix lies."""
        return np.triu_indices(self.problem.width)

    @cached_property
    def scale(self) -> Array:
        """The factors of sums of integer products: their units, `sqrt(2)` off the diagonal, and w."""
        rows, columns = self.upper
        unit, label_unit = unit_of(self.problem.norm_bound), unit_of(self.label_bound)
        weights = np.full(self.problem.size, self.w * label_unit * unit)
        return fixed(np.concatenate([np.where(rows == columns, 1.0, math.sqrt(2.0)) * unit**2, weights]))

    @property
    def w(self) -> float:
        """The weight of labels, given or derived."""
        assert self.weight is not None
        return self.weight

    @property
    def _magnitude(self) -> float:
        """No entry of a contribution is larger."""
        R, R_y = self.problem.norm_bound, self.label_bound
        return max(R * R, self.w * R * R_y)

    @property
    def label_bound(self) -> float:
        """R_y: no row of labels is longer."""
        if isinstance(self.problem.loss, OneHot):
            return self.problem.loss.target_norm
        assert self.problem.label_bound is not None
        return self.problem.label_bound

    @property
    def _longest(self) -> float:
        """X: no leader is longer than the domain, nor than `R_y/(2·sqrt(alpha))`."""
        p = self.problem
        return min(p.radius, self.label_bound / (2.0 * math.sqrt(p.ridge))) if p.ridge > 0.0 else p.radius

    def _moved(self, w: float) -> float:
        R, R_y = self.problem.norm_bound, self.label_bound
        if self.problem.neighbours == "label":
            return w * R * min(2.0 * R_y, math.sqrt(2.0) if self.problem.outputs > 1 else math.inf) * (1.0 + 1e-12)
        if self.problem.neighbours == "zero-out":
            return math.hypot(R * R, w * R * R_y) * (1.0 + 1e-12)
        return math.sqrt(quadratic_pair(1.0, w * w, R, R_y)) * (1.0 + 1e-12)

    def _best_weight(self) -> float:
        """The weight that minimises the squared noise of the two parts in the normal equations."""
        if self.problem.neighbours == "label":
            return _LABEL_WEIGHT * self.problem.norm_bound / self.label_bound
        from scipy.optimize import minimize_scalar  # here: it loads slowly, and few streams need it

        def error(log_w: float) -> float:
            w = math.exp(log_w)
            return 2.0 * math.log(self._moved(w)) + math.log(2.0 * likely**2 + self.problem.outputs * w**-2)

        likely = min(self._longest / 2.0, self.label_bound / self.problem.norm_bound)
        middle = math.log(self.problem.norm_bound / self.label_bound)
        result: Any = minimize_scalar(error, bounds=(middle - 10.0, middle + 10.0), method="bounded")
        return math.exp(float(result.x))


def quadratic_pair(weight_v: float, weight_u: float, R: float = 1.0, R_y: float = 1.0) -> float:
    """The largest `weight_v·‖v vᵀ - w wᵀ‖² + weight_u·‖y v - z w‖²`, Frobenius norm, `‖v‖, ‖w‖ ≤ R`, `|y|, |z| ≤ R_y`.

    With the inverse variances of PQFTL's two trees as weights it is the mu² of one node of both trees.

    *Proof.* Call the weights a and b, and let r, s be the norms and c the cosine of v and w. It is convex in (y, z),
    so both are ±R_y; turning w round changes only c, so they differ in sign and c ≥ 0. What is left,
    `a·(r⁴ + s⁴ - 2r²s²c²) + b·R_y²·(r² + s² + 2rsc)`, is largest at `c = min(1, b·R_y²/(2ars))`. There it grows with r
    and s: for c < 1 it is `a·(r⁴ + s⁴) + b·R_y²·(r² + s²) + b²R_y⁴/(2a)`; for c = 1 and r ≥ s its slope in s is
    `2(r + s)(b·R_y² - 2as(r - s)) > 0`, as `2ars ≤ b·R_y²`. So r = s = R. ∎ (c < 1 needs two dimensions.)

    >>> quadratic_pair(1.0, 1.0)
    4.5
    """
    weight_v, weight_u = positive("weight_v", weight_v), not_negative("weight_u", weight_u)
    R, R_y = positive("R", R), not_negative("R_y", R_y)
    c = min(1.0, weight_u * R_y**2 / (2.0 * weight_v * R**2))
    return 2.0 * weight_v * R**4 * (1.0 - c * c) + 2.0 * weight_u * R**2 * R_y**2 * (1.0 + c)
