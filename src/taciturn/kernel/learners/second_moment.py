"""The sum of `v vᵀ` over all examples, and the map that it leads to: how features are preconditioned privately."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.exact_sums import MOST, MOVES_ITS_OWN, PRODUCT_UNITS, in_units, product_bound, unit_of
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.svec import unpacked
from taciturn.kernel.stream.protocols import Certificate, Learner

_MOST = 2**17  # products of 36 bits that float64 adds up exactly


@dataclass(frozen=True)
class SecondMoment(Learner):
    """The sum of `svec(v vᵀ)`, v the features of an example without the intercept.

    **Certificate.** An example of norm R moves it by at most `sqrt(2)·R²` if it is replaced, and by `R²` if it is
    zeroed out. *Proof.* `‖v vᵀ - u uᵀ‖² = ‖v‖⁴ + ‖u‖⁴ - 2(v·u)² ≤ 2R⁴`, and u = 0 leaves `‖v‖⁴`. ∎ Entries are rounded
    to integers of 18 bits, towards zero, and added exactly (`taciturn.kernel.learners.exact_sums`).

    **The point** is a matrix W, by rows, with which `W·v` has about the same spread in all directions. With S the noisy
    sum and s the standard deviation of its noise it is `(S/t)^(-1/2)`, eigenvalues of S floored at `s·sqrt(2d)`, about
    the largest eigenvalue of the noise alone. If there are too few examples for that, `t/d < 4·s·sqrt(2d)/R²`, only the
    diagonal is used, floored at `2s`. W is scaled by `2R/sqrt(d)`, so that `W·v` is mostly longer than R, and clipped.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Problem
    >>> SecondMoment(Problem(Logistic(), L2Ball(1.0), dimension=3)).certificate
    l2/entry, 1.4142
    """

    most_units: ClassVar[int] = PRODUCT_UNITS
    problem: Problem

    @property
    def features(self) -> int:
        """d, without the intercept."""
        return self.problem.width - (self.problem.intercept > 0.0)

    @property
    def statistic_size(self) -> int:
        """Entries of the packed matrix."""
        return self.features * (self.features + 1) // 2

    @property
    def point_size(self) -> int:
        """Entries of W."""
        return self.features**2

    @cached_property
    def certificate(self) -> Certificate:
        """`sqrt(2)·R²` or `R²`, and rounding."""
        R = self.problem.feature_bound
        moved = R * R * (1.0 if self.problem.neighbours == "zero-out" else math.sqrt(2.0)) * (1.0 + 1e-12)
        bound = partial(product_bound, moved, R * R, self.statistic_size)
        lemma = "proof in taciturn.kernel.learners.second_moment.SecondMoment"
        basis = rests(self.problem, moved, moved)  # products are made here, of clipped rows
        return Certificate("l2", "entry", f"{moved:.5g}", bound, R * R, MOVES_ITS_OWN, lemma, most=MOST, **basis)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"sum": np.zeros(self.statistic_size, dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Integer products, added up exactly."""
        total = exact["sum"]
        for start in range(0, len(y), _MOST):
            V = in_units(X[start : start + _MOST, : self.features], self.problem.feature_bound)
            total = total + (V.T @ V)[np.triu_indices(self.features)].astype(np.int64)
        return {"sum": total}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release."""
        rows, columns = np.triu_indices(self.features)
        scale = np.where(rows == columns, 1.0, math.sqrt(2.0)) * unit_of(self.problem.feature_bound) ** 2
        return self.start(), exact["sum"] * scale

    def to_integers(self, exact: Arrays) -> Integers:
        """The sum itself."""
        return exact["sum"]

    def from_integers(self, sums: Integers) -> Arrays:
        """The sum itself."""
        return {"sum": sums}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """The map W, by rows."""
        d = self.features
        S = unpacked(noisy, d)
        if t / d < 4.0 * noise_sd * math.sqrt(2.0 * d) / self.problem.feature_bound**2:
            W = np.diag(np.maximum(np.diag(S), 2.0 * noise_sd) ** -0.5)
        else:
            values, vectors = np.linalg.eigh(S)
            W = (vectors / np.sqrt(np.maximum(values, noise_sd * math.sqrt(2.0 * d)))) @ vectors.T
        return (W * (2.0 * self.problem.feature_bound * math.sqrt(t / d))).ravel()
