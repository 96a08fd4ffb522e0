"""Counts of values in bins, released so that quantiles of every column can be read off: how ranges are found privately.

A column has m bins. What is published of it, once, is `C·n + noise`, n its counts and C the square root of the matrix
of ones (`taciturn.kernel.mechanisms.sqrt`), and what is decoded are cumulative counts: their noise grows with the
logarithm of m, where the sum of m noisy counts would have `sqrt(m)` times the noise of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.errors import InvalidInput, Unprovable
from taciturn.kernel.learners.contributions import rests
from taciturn.kernel.learners.exact_sums import MOST, MOVES_ITS_OWN
from taciturn.kernel.problem.features import Bins
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.scalar_loss import Values
from taciturn.kernel.stream.protocols import Certificate, Learner

_UNITS = 2.0**20  # entries of C are multiples of one over this, so that sums of counts are exact
_SELDOM = 2.0**-20  # least share of values outside of a bin
_FEWEST = 1.8  # bins of the scale that follows from two interpolated quantiles


@dataclass(frozen=True, eq=False)
class BinCounts(Learner):
    """Counts of the values of each column in m bins, and of the labels, if they have edges.

    The rows of its problem are numbers of bins, from 1, of the features (`Bins`), 0 for a missing value, and a last
    entry of 1, which is 0 for a row without influence.

    **Certificate.** With p columns an example moves `C·n` of all columns together by at most

        Delta = sqrt(p)·max(max_ij ‖C(e_i - e_j)‖, max_i ‖C e_i‖)   if it is replaced,
        Delta = sqrt(p)·max_i ‖C e_i‖                                if it is zeroed out.

    *Proof.* In each column it counts in one bin, or in none if the value is missing or the row has no influence. A
    change moves one count to another bin, or adds or removes it; columns are different entries, so squares add. ∎
    Entries of C are rounded to multiples of 2⁻²⁰ before anything is computed from them, and counts are integers below
    2²⁶: `C·n` is exact, and there are no rounding errors to account for.

    **The point** has the quantiles at level q and 1 - q of each column, q, and, if the quantiles share a bin, the share
    of values outside, else 0: all low ones, all high ones, all levels, and then all of these. With s the standard
    deviation of a cumulative count and n the noisy number of values, `q = min(.3, max(least, 4·s/n))`, so that the
    noise does not reach the level before the data does. Cumulative counts are made monotone first (isotonic
    regression). Interpolated quantiles are so far apart that the scale of normal values with these quantiles is 1.8
    bins at least: a value that most examples share lies anywhere in its bin, and would be far from the middle of two
    quantiles in that bin; these count as sharing a bin. A column that is mostly noise, `n ≤ 8·s`, has the outer edges.

    Parameters
    ----------
    problem : Problem
        Its features are `Bins`, and its intercept is 1.
    label_edges : array, optional
        m - 1 inner edges for labels, which are then one more column.
    least : float
        The smallest level.
    outward : bool
        Whether quantiles are moved out to the next edges, or interpolated within their bins.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Privacy, Private, Problem, SquareRoot, at
    >>> from taciturn.kernel.problem.features import Bins
    >>> bins = Bins(np.linspace(0.0, 4.0, 64)[None, :])
    >>> problem = Problem(Logistic(), L2Ball(1.0), 1, feature_bound=130.0, intercept=1.0, features=bins)
    >>> counts = BinCounts(problem, least=0.1)
    >>> private = Private(counts, SquareRoot(), at([900]), Privacy(8.0, 1e-6), seed=1)
    >>> private.fit(np.linspace(0.0, 3.0, 900)[:, None], np.ones(900)).point.round(1)
    array([0.3, 2.7, 0.1, 0. ])
    """

    most_units: ClassVar[int] = 1
    problem: Problem
    label_edges: Array | None = None
    least: float = 0.02
    outward: bool = False
    bins: Bins = field(init=False)

    def __post_init__(self) -> None:
        bins = self.problem.features
        if not isinstance(bins, Bins) or self.problem.intercept != 1.0:
            raise InvalidInput("BinCounts counts numbers of bins. Give a problem with features=Bins(...), intercept=1.")
        if self.problem.neighbours not in ("replace", "zero-out"):
            raise Unprovable(
                'with neighbours="label" features are public, and their ranges are not found privately. State ranges, '
                "or feature_bound."
            )
        if self.problem.feature_bound < 2.0 * bins.count * math.sqrt(len(bins.edges)):
            least = "2·sqrt(columns) times the number of bins"
            raise InvalidInput(f"numbers of bins must not be clipped. Give a problem with feature_bound={least}.")
        if self.label_edges is not None:
            edges = fixed(np.array(self.label_edges, dtype=np.float64))
            if edges.shape != bins.edges.shape[1:] or not (np.diff(edges) > 0.0).all():
                raise InvalidInput("label_edges must increase, as many as the edges of a feature.")
            object.__setattr__(self, "label_edges", edges)
        object.__setattr__(self, "bins", bins)

    @property
    def columns(self) -> int:
        """Features, and labels if they have edges."""
        return len(self.bins.edges) + (self.label_edges is not None)

    @property
    def statistic_size(self) -> int:
        """Bins of all columns."""
        return self.columns * self.bins.count

    @property
    def point_size(self) -> int:
        """Two quantiles, a level, and the share of values outside of a bin that the quantiles share, of each column."""
        return 4 * self.columns

    @cached_property
    def encoder(self) -> Integers:
        """C, in units of 2⁻²⁰."""
        m = self.bins.count
        k = np.arange(1.0, m)
        first = np.rint(np.append(1.0, np.cumprod((2.0 * k - 1.0) / (2.0 * k))) * _UNITS).astype(np.int64)
        rows, columns = np.tril_indices(m)
        made = np.zeros((m, m), dtype=np.int64)
        made[rows, columns] = first[rows - columns]
        return fixed(made)

    @cached_property
    def decoder(self) -> Array:
        """From what is encoded to cumulative counts: the matrix of ones times the inverse of C."""
        from scipy.linalg import solve_triangular  # here: it loads slowly, and few streams need it

        ones = np.tri(self.bins.count)
        return fixed(np.asarray(solve_triangular((self.encoder / _UNITS).T, ones.T, lower=False).T))

    @cached_property
    def certificate(self) -> Certificate:
        """Delta; nothing is rounded."""
        C = self.encoder / _UNITS
        products = C.T @ C
        squares = np.diag(products)
        moved = float(np.max(squares))
        if self.problem.neighbours != "zero-out":
            moved = max(moved, float(np.max(squares[:, None] + squares[None, :] - 2.0 * products)))
        moved = math.sqrt(self.columns * moved) * (1.0 + 2.0**-40)
        bound = partial(_up_to_most, moved)
        lemma = "proof in taciturn.kernel.learners.bin_counts.BinCounts"
        basis = rests(self.problem, moved, moved)  # counts are made here, of numbers of bins
        return Certificate("l2", "entry", f"{moved:.5g}", bound, 1.0, MOVES_ITS_OWN, lemma, most=MOST, **basis)

    def start(self) -> Arrays:
        """Nothing yet."""
        return {"counts": np.zeros((self.columns, self.bins.count), dtype=np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """Every value counted in its bin."""
        counts = exact["counts"].copy()
        features = len(self.bins.edges)
        for j in range(features):
            counts[j] += np.bincount(X[:, j].astype(np.int64), minlength=self.bins.count + 1)[1:]
        if self.label_edges is not None:
            labels = np.searchsorted(self.label_edges, y[X[:, -1] > 0.0], side="right")
            counts[features] += np.bincount(labels, minlength=self.bins.count)
        return {"counts": counts}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """The encoded counts since the last release."""
        return self.start(), ((exact["counts"] @ self.encoder.T) / _UNITS).ravel()

    def to_integers(self, exact: Arrays) -> Integers:
        """The counts, column after column."""
        return exact["counts"].ravel()

    def from_integers(self, sums: Integers) -> Arrays:
        """The counts of each column."""
        return {"counts": sums.reshape(self.columns, self.bins.count)}

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """Quantiles at a low and a high level, of all columns."""
        from scipy.optimize import isotonic_regression
        from scipy.special import ndtri

        cumulative = noisy.reshape(self.columns, -1) @ self.decoder.T
        s = self.cumulative_sd(noise_sd)
        found = np.empty((4, self.columns))
        for j, row in enumerate(cumulative):
            edges = self._all_edges(j)
            counts = np.append(0.0, np.maximum(isotonic_regression(row).x, 0.0))
            if counts[-1] <= 8.0 * s:
                found[:, j] = edges[0], edges[-1], self.least, 0.0
                continue
            q = min(0.3, max(self.least, 4.0 * s / counts[-1]))
            low, high = q * counts[-1], (1.0 - q) * counts[-1]
            if self.outward:
                below = int(np.searchsorted(counts, low, side="right")) - 1
                above = int(np.searchsorted(counts, high, side="left"))
                found[:, j] = edges[below], edges[above], q, 0.0
            else:
                a, b = np.interp([low, high], _sloping(counts), edges)
                fewest = _FEWEST * ndtri(1.0 - q) * (edges[2] - edges[1])
                half = max((b - a) / 2.0, fewest)
                ends = (a + b) / 2.0 - half, (a + b) / 2.0 + half
                inside = np.diff(np.interp(ends, edges, counts))[0] / counts[-1]
                found[:, j] = *ends, q, max(1.0 - inside, _SELDOM) if half == fewest else 0.0
        return found.ravel()

    def cumulative_sd(self, noise_sd: float) -> float:
        """Largest standard deviation of a cumulative count."""
        return noise_sd * float(np.max(np.linalg.norm(self.decoder, axis=1)))

    def _all_edges(self, column: int) -> Array:
        """The m + 1 edges of a column; the outer bins are as wide as their neighbours."""
        inner = self.label_edges if column == len(self.bins.edges) else self.bins.edges[column]
        assert inner is not None
        return np.concatenate([[2.0 * inner[0] - inner[1]], inner, [2.0 * inner[-1] - inner[-2]]])


def _up_to_most(moved: float, t: Values) -> Array:
    """The bound, as long as counts are exact."""
    return np.where(np.asarray(t) <= MOST, moved, math.inf)


def _sloping(counts: Array) -> Array:
    """Cumulative counts that increase a little where bins are empty, so that every level is crossed once."""
    return np.asarray(counts + 2.0**-30 * counts[-1] * np.arange(len(counts)))
