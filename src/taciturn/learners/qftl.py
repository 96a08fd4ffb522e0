"""Follow the leader for squared loss on private sums (Section 3.5 and Algorithm 4 of the paper), repaired."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers, fixed
from taciturn.accounting import paper
from taciturn.accounting.errata import quadratic_pair
from taciturn.accounting.gdp import Privacy
from taciturn.compiled import codes
from taciturn.core.protocols import Certificate
from taciturn.errors import InvalidInput, Unprovable, not_negative, positive
from taciturn.learners.batch import project_all
from taciturn.learners.exact_sums import MOST, MOVES_ITS_OWN, in_units, product_bound, unit_of
from taciturn.problem.codes import set_code
from taciturn.problem.losses import Squared
from taciturn.problem.multiclass import OneHot
from taciturn.problem.problem import Problem
from taciturn.problem.scalar_loss import Values
from taciturn.problem.svec import unpacked

_MOST = 2**17  # examples whose products float64 adds up exactly
_IN_CACHE = 1024  # examples made whole numbers and multiplied at a time
_LEAST = 1e-12  # keeps a matrix of zeros invertible, should there be neither ridge nor noise


@dataclass(frozen=True)
class QFTL:
    """The leader of squared losses, from noisy sums of `v vᵀ` and `y v`.

    An example contributes `(svec(v vᵀ), w·y v)`; svec lists a symmetric matrix, off-diagonal entries times `sqrt(2)`,
    so that lengths are those of the matrix. With `OneHot`, y is a row of labels of length R_y, one for each of K
    classes, which all share `v vᵀ`: the second part is `w·y vᵀ`.

    **Certificate.** If an example is replaced its contribution moves by at most Delta,

        Delta² = 2R⁴ + 2w²R²R_y² + ½w⁴R_y⁴ if w·R_y ≤ sqrt(2)·R,   else 4w²R²R_y²,

    and if it is zeroed out by `Delta² = R⁴ + w²R²R_y²`. *Proof.* `taciturn.accounting.errata.quadratic_pair` for one
    label. Of a row of labels only `(v·v')·(y·y')` enters besides the lengths, and that is at least
    `-|v·v'|·‖y‖·‖y'‖`, as it is for single labels of these sizes. ∎ (The paper takes R for the second sum, and charges
    each half the budget.)

    **The point** is post-processing. With V, u the noisy sums and s the noise's deviation, it is
    `Proj((V + (alpha·t + extra_ridge + lam_t)·I)⁻¹u)`, with the eigenvalues of V floored at 0 first if the matrix has
    no Cholesky factor. `lam_t = s·sqrt(1.5·d·(2X² + K/w²))/B`, B the radius of the domain and K = 1 without classes, is
    somewhat more than the noise pulls: the noise of `V·x - u` is about `B·lam_t/sqrt(1.5)` long at a leader of length
    X, the largest there is. (The paper inverts the noisy matrix, which is indefinite at first, so that its expected
    regret is infinite.)

    Parameters
    ----------
    problem : Problem
        Squared loss over a bounded domain. Labels -1 and +1 make it a classifier; for more classes there is `OneHot`.
    extra_ridge : float
        A ridge that does not grow with t, beside the problem's, which does.
    weight : float, optional
        w; by default the one that makes the noise of `V·x - u` least, at a leader of half its largest length:
        `Delta²·(X²/2 + K/w²)`.

    Examples
    --------
    >>> from taciturn import QFTL, L2Ball, Problem, Squared
    >>> QFTL(Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.0, ridge=1.0), weight=1.0).certificate
    l2/entry, 2.1213
    """

    problem: Problem
    extra_ridge: float = 0.0
    weight: float | None = None
    _stated: bool = field(default=True, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.problem.loss) not in (Squared, OneHot) or not math.isfinite(self.problem.radius):
            raise Unprovable(
                f"QFTL is for squared loss over a bounded domain, and this is {type(self.problem.loss).__name__} over "
                f"{self.problem.domain}. Use Squared() and L2Ball(1.0), or private FTRL for other losses."
            )
        object.__setattr__(self, "extra_ridge", not_negative("extra_ridge", self.extra_ridge))
        object.__setattr__(self, "_stated", self.weight is not None)
        weight = self._best_weight() if self.weight is None else positive("weight", self.weight)
        object.__setattr__(self, "weight", weight)

    @property
    def derived(self) -> dict[str, float]:
        """The weight, if it was not stated: a stream goes on with the one it began with."""
        return {} if self._stated else {"weight": self._w}

    def restored(self, derived: dict[str, float]) -> QFTL:
        """The same learner with another's derived weight."""
        made = replace(self, weight=derived["weight"])
        object.__setattr__(made, "_stated", False)
        return made

    @property
    def row_size(self) -> int:
        """Entries of the packed matrix and of the vectors."""
        d = self.problem.width
        return d * (d + 1) // 2 + self.problem.size

    @cached_property
    def certificate(self) -> Certificate:
        """Delta, and rounding."""
        moved = self._moved(self._w)
        bound = partial(product_bound, moved, self._magnitude, self.row_size)
        papers = self._paper_noise if self.problem.outputs == 1 else None
        lemma = "proof in taciturn.accounting.errata.quadratic_pair"
        return Certificate("l2", "entry", f"{moved:.5g}", bound, self._magnitude, MOVES_ITS_OWN, lemma, papers, MOST)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.row_size, dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Whole products, added up since the last release: exactly, so in any order."""
        total = exact["sum"]
        for start in range(0, len(y), _MOST):
            V, Y = self._factors(X[start : start + _MOST], y[start : start + _MOST])
            sums = np.concatenate([(V.T @ V)[self._upper], (Y.T @ V).ravel()])
            total = total + sums.astype(np.int64)
        return {"sum": total}

    def hand_over(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), exact["sum"] * self._scale

    def decide(self, t: int, noisy: Array, noise_sd: float) -> Array:
        """Shift, floor where that is needed, solve, inside the domain."""
        from scipy.linalg import cho_factor, cho_solve  # here: it loads slowly, and few streams need it

        p, d = self.problem, self.problem.width
        V, u = unpacked(noisy[: -p.size], d), noisy[-p.size :].reshape(p.outputs, d) / self._w
        ridge = self._ridge(t, noise_sd)
        try:
            x = cho_solve(cho_factor(V + ridge * np.eye(d), lower=True, check_finite=False), u.T).T
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(V)
            x = ((u @ vectors) / (np.maximum(values, 0.0) + ridge)) @ vectors.T
        return p.domain.project(np.asarray(x).ravel())

    def hand_over_all(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Compiled; where releases are rare, products of matrices."""
        if len(y) > min(8 * len(rounds), _MOST):
            return self._by_blocks(exact, t, X, y, rounds)
        from taciturn.compiled import qftl as quadratic

        rows, rest = (part.astype(np.int64) for part in quadratic.sums(*self._factors(X, y), t, rounds))
        rows[0] += exact["sum"]
        return {"sum": rest}, rows * self._scale

    def _by_blocks(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Products of matrices between releases."""
        rows, start, total = np.empty((len(rounds), self.row_size)), 0, exact["sum"]
        for k, end in enumerate(int(due) - t for due in rounds):
            rows[k] = (total + self._sum(X[start:end], y[start:end])) * self._scale
            start, total = end, self.start()["sum"]
        return {"sum": total + self._sum(X[start:], y[start:])}, rows

    def _sum(self, X: Array, y: Array) -> Integers:
        """Whole products of all examples, added up; a few at a time, which stay in a core's cache.

        Labels stand beside features, so that all products are those of one matrix, of which half is computed.
        """
        from scipy.linalg.blas import dsyrk  # here: it loads slowly, and few streams need it

        from taciturn.compiled.qftl import whole

        d, total = self.problem.width, self.start()["sum"]
        both = np.empty((min(len(y), _IN_CACHE), d + self.problem.outputs))
        for first in range(0, len(y), _MOST):
            products = np.zeros((both.shape[1], both.shape[1]), order="F")
            for start in range(first, min(first + _MOST, len(y)), _IN_CACHE):
                end = min(start + _IN_CACHE, first + _MOST, len(y))
                whole(X[start:end], 1.0 / unit_of(self.problem.norm_bound), both)
                both[: end - start, d:] = in_units(self._targets(y[start:end]), self._label_bound)
                products = dsyrk(1.0, both[: end - start].T, beta=1.0, c=products, overwrite_c=True)
            total = total + products.ravel(order="F")[self._among_products].astype(np.int64)
        return total

    @cached_property
    def _among_products(self) -> Integers:
        """Where a row's entries stand among all products of features and labels, columns one after the other."""
        (rows, columns), d = self._upper, self.problem.width
        labels = d + np.arange(self.problem.outputs)[:, None]
        width = d + self.problem.outputs
        return np.concatenate([columns * width + rows, (labels * width + np.arange(d)).ravel()])

    def decide_all(self, rounds: Integers, noisy: Array, noise_sd: Array) -> Array:
        """Compiled, but for matrices that have no Cholesky factor, and other sets than balls and boxes."""
        from taciturn.compiled import qftl as quadratic

        p, ridges = self.problem, self._ridge(rounds, noise_sd)
        domain = set_code(p.domain)
        points, solved = quadratic.points(noisy, p.width, self._w, ridges, domain or (codes.WHOLE, 0.0, 0.0))
        for k in np.flatnonzero(~solved):
            points[k] = self.decide(int(rounds[k]), noisy[k], float(noise_sd[k]))
        return np.asarray(points) if domain else project_all(p.domain, points)

    def _ridge(self, t: Values, noise_sd: Values) -> Values:
        """`alpha·t + extra_ridge + lam_t`, and a little, should all three be 0."""
        p = self.problem
        pull = math.sqrt(1.5 * p.width * (2.0 * self._longest**2 + p.outputs / self._w**2)) / p.radius
        return p.ridge * t + self.extra_ridge + pull * noise_sd + _LEAST

    def _factors(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Features, and a row of labels for each example, as whole numbers."""
        return in_units(X, self.problem.norm_bound), in_units(self._targets(y), self._label_bound)

    def _targets(self, y: Array) -> Array:
        return self.problem.loss.targets(y) if isinstance(self.problem.loss, OneHot) else y[:, None]

    @cached_property
    def _upper(self) -> tuple[Any, Any]:
        """Where the upper triangle of a matrix lies."""
        return np.triu_indices(self.problem.width)

    @cached_property
    def _scale(self) -> Array:
        """What sums of whole products are multiplied by: their units, `sqrt(2)` off the diagonal, and w."""
        rows, columns = self._upper
        unit, label_unit = unit_of(self.problem.norm_bound), unit_of(self._label_bound)
        weights = np.full(self.problem.size, self._w * label_unit * unit)
        return fixed(np.concatenate([np.where(rows == columns, 1.0, math.sqrt(2.0)) * unit**2, weights]))

    @property
    def _w(self) -> float:
        assert self.weight is not None
        return self.weight

    @property
    def _magnitude(self) -> float:
        """No entry of a contribution is larger."""
        R, R_y = self.problem.norm_bound, self._label_bound
        return max(R * R, self._w * R * R_y)

    @property
    def _label_bound(self) -> float:
        """R_y: no row of labels is longer."""
        if isinstance(self.problem.loss, OneHot):
            return self.problem.loss.target_norm
        assert self.problem.label_bound is not None
        return self.problem.label_bound

    @property
    def _longest(self) -> float:
        """X: no leader is longer than the domain, nor than `R_y/(2·sqrt(alpha))`."""
        p = self.problem
        return min(p.radius, self._label_bound / (2.0 * math.sqrt(p.ridge))) if p.ridge > 0.0 else p.radius

    def _moved(self, w: float) -> float:
        R, R_y = self.problem.norm_bound, self._label_bound
        if self.problem.neighbours == "zero-out":
            return math.hypot(R * R, w * R * R_y) * (1.0 + 1e-12)
        return math.sqrt(quadratic_pair(1.0, w * w, R, R_y)) * (1.0 + 1e-12)

    def _best_weight(self) -> float:
        """The squared noise of the two parts in the normal equations, made least."""
        from scipy.optimize import minimize_scalar  # here: it loads slowly, and few streams need it

        def error(log_w: float) -> float:
            w = math.exp(log_w)
            return 2.0 * math.log(self._moved(w)) + math.log(self._longest**2 / 2.0 + self.problem.outputs * w**-2)

        middle = math.log(self.problem.norm_bound / self._label_bound)
        found: Any = minimize_scalar(error, bounds=(middle - 10.0, middle + 10.0), method="bounded")
        return math.exp(float(found.x))

    def _paper_noise(
        self, privacy: Privacy, horizon: int, rounds: Array, reading: paper.Reading
    ) -> tuple[Array, Privacy]:
        """Algorithm 4: two trees; `weight` must be the ratio of their noises for one deviation to serve both."""
        matrix, vector = paper.pqftl_noise(max(self.problem.norm_bound, self._label_bound), privacy, horizon)
        if not math.isclose(self._w, matrix / vector, rel_tol=1e-6):
            raise InvalidInput(f"the paper's two trees need weight={matrix / vector:.6g}, got {self._w:.6g}.")
        return np.full(len(rounds), matrix), privacy
