"""Follow the leader for squared loss on private sums (Section 3.5 and Algorithm 4 of the paper), repaired."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from tacit.accounting import paper
from tacit.accounting.errata import quadratic_pair
from tacit.accounting.exact import Privacy
from tacit.arrays import Array, Arrays
from tacit.contracts import Certificate
from tacit.errors import InvalidInput, Unprovable, positive
from tacit.learners.exact_sums import MOVES_ITS_OWN, entry_bound, rounded
from tacit.problem.losses import Squared
from tacit.problem.problem import Problem
from tacit.problem.scores import OneHot
from tacit.problem.svec import packed, unpacked

_LEAST = 1e-12  # keeps a matrix of zeros invertible, should there be neither ridge nor noise


@dataclass(frozen=True)
class QFTL:
    """The leader of squared losses, from noisy sums of `v vᵀ` and `y v`.

    An example contributes `(svec(v vᵀ), w·y v)`; svec lists a symmetric matrix, off-diagonal entries times `sqrt(2)`,
    so that lengths are those of the matrix. With `OneHot`, y is a row of labels of length R_y, one for each of K
    classes, which all share `v vᵀ`: the second part is `w·y vᵀ`.

    **Certificate.** If an example is replaced its contribution moves by at most Delta,

        Delta² = 2R⁴ + 2w²R²R_y² + ½w⁴R_y⁴ if w·R_y ≤ sqrt(2)·R,   else 4w²R²R_y²,

    and if it is zeroed out by `Delta² = R⁴ + w²R²R_y²`. *Proof.* `tacit.accounting.errata.quadratic_pair` for one
    label. Of a row of labels only `(v·v')·(y·y')` enters besides the lengths, and that is at least
    `-|v·v'|·‖y‖·‖y'‖`, as it is for single labels of these sizes. ∎ (The paper takes R for the second sum, and charges
    each half the budget.)

    **The point** is post-processing. With V, u the noisy sums and s the noise's deviation, V has its eigenvalues
    floored at 0, and the point is `Proj((V + (alpha·t + extra_ridge + lam_t)·I)⁻¹u)`. `lam_t = s·sqrt(d·(2X² +
    K/w²))/B`, B the radius of the domain and K = 1 without classes, is as much as the noise pulls: the noise of
    `V·x - u` has about B times that length at a leader of length X, the largest there is. (The paper inverts the noisy
    matrix, which is indefinite at first, so that its expected regret is infinite.)

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
    >>> from tacit import QFTL, L2Ball, Problem, Squared
    >>> QFTL(Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.0, ridge=1.0), weight=1.0).certificate
    l2/entry, 2.1213
    """

    problem: Problem
    extra_ridge: float = 0.0
    weight: float | None = None

    def __post_init__(self) -> None:
        if type(self.problem.loss) not in (Squared, OneHot) or not math.isfinite(self.problem.radius):
            raise Unprovable(
                f"QFTL is for squared loss over a bounded domain, and this is {type(self.problem.loss).__name__} over "
                f"{self.problem.domain}. Use Squared() and L2Ball(1.0), or private FTRL for other losses."
            )
        if not 0.0 <= self.extra_ridge < math.inf:
            raise InvalidInput(f"extra_ridge must be 0 or more, got {self.extra_ridge!r}.")
        weight = self._best_weight() if self.weight is None else positive("weight", self.weight)
        object.__setattr__(self, "weight", weight)

    @property
    def row_size(self) -> int:
        """Entries of the packed matrix and of the vectors."""
        d = self.problem.width
        return d * (d + 1) // 2 + self.problem.size

    @cached_property
    def certificate(self) -> Certificate:
        """Delta, and rounding."""
        moved = self._moved(self._w)
        bound = partial(entry_bound, moved, self._magnitude, self.row_size)
        papers = self._paper_noise if self.problem.outputs == 1 else None
        lemma = "proof in tacit.accounting.errata.quadratic_pair"
        return Certificate("l2", "entry", f"{moved:.5g}", bound, self._magnitude, MOVES_ITS_OWN, lemma, papers)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.row_size)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Contributions, added up since the last release."""
        total = exact["sum"]
        for v, labels in zip(X, self._targets(y), strict=True):
            row = np.concatenate([packed(np.outer(v, v)), self._w * np.outer(labels, v).ravel()])
            total = total + rounded(row, self._magnitude)
        return {"sum": total}

    def hand_over(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        return self.start(), exact["sum"]

    def decide(self, t: int, noisy: Array, noise_sd: float) -> Array:
        """Floor, shift, solve, inside the domain."""
        p, d = self.problem, self.problem.width
        V, u = unpacked(noisy[: -p.size], d), noisy[-p.size :].reshape(p.outputs, d) / self._w
        values, vectors = np.linalg.eigh(V)
        pull = noise_sd * math.sqrt(d * (2.0 * self._longest**2 + p.outputs / self._w**2)) / p.radius
        ridge = p.ridge * t + self.extra_ridge + pull
        return p.domain.project((((u @ vectors) / (np.maximum(values, 0.0) + ridge + _LEAST)) @ vectors.T).ravel())

    def _targets(self, y: Array) -> Array:
        """A row of labels for each example."""
        return self.problem.loss.targets(y) if isinstance(self.problem.loss, OneHot) else y[:, None]

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
