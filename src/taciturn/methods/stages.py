"""The stages before learning: ranges and scales of columns, and a map that spreads features evenly.

Nothing has to be stated but which columns there are. `Ranges` finds the powers of two between which the values of each
column lie, `Scales` their center and spread within that range, and `Moments` a linear map after which no direction is
much longer than another. Each reads rows of its own at the full budget (`taciturn.methods.staged`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from taciturn.calibration.mechanisms import SquareRoot
from taciturn.errors import InvalidInput, integer, not_negative
from taciturn.kernel.arrays import Array
from taciturn.kernel.learners.bin_counts import BinCounts
from taciturn.kernel.learners.second_moment import SecondMoment
from taciturn.kernel.problem.features import Bins, Chain, FeatureMap
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import WholeSpace
from taciturn.tables.column_maps import LinearMap, Standardise
from taciturn.tables.random_features import RandomFeatures

GRID = np.concatenate([-(2.0 ** np.arange(40, -21, -1)), [0.0], 2.0 ** np.arange(-20, 41)])
"""The public edges among which ranges are found: 0, and ±2^k for k from -20 to 40."""

_BINS = 128  # of the range of a column, in which its spread is found
_LEAST_RANGE = 0.02  # quantile levels for ranges, and
_LEAST_SCALE = 0.25  # for scales: quartiles, as the middle of extreme quantiles of skewed values is far from most
_LIMIT = 3.0  # of standardised values, and
_MOST = (5.0, 8.0)  # of those of columns without a spread, for classes and for numbers
_SHARED = 0.25  # the largest angle of random features of a column without a spread, in units of `waves`
_NARROWEST = 2.0**-30  # width of a range, relative to its end, that equal bins still divide
_ANY_LABEL = 1e60  # a bound that clips no label


@dataclass(frozen=True)
class OneRelease:
    """A stage of so many rows: one release after the last of them.

    >>> OneRelease(500).rows
    500
    """

    rows: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", integer("rows", self.rows))

    @property
    def mechanism(self) -> SquareRoot:
        """One release: plain Gaussian noise."""
        return SquareRoot()


@dataclass(frozen=True)
class Ranges(OneRelease):
    """The range of each column: quantiles between the edges of a public grid, widened by half on both sides.

    Parameters
    ----------
    rows : int
        How many rows it reads.
    labels : bool
        Whether labels, which are numbers, are a column too.
    columns : tuple of int, optional
        Which features; by default all.

    Examples
    --------
    >>> Ranges(500).widened(np.array([0.0, 4.0, 0.02, 0.0]))
    (array([-2.]), array([6.]))
    """

    labels: bool = False
    columns: tuple[int, ...] | None = None

    def learner(self, problem: Problem, earlier: tuple[Array, ...]) -> BinCounts:
        """Counts over the public grid."""
        columns = _count(problem, self.columns) + self.labels
        return _counts(problem, np.tile(GRID, (columns, 1)), self, _LEAST_RANGE, outward=True)

    def after(self, problem: Problem, point: Array) -> Problem:
        """The same: ranges are what the next stage begins with."""
        return problem

    @staticmethod
    def widened(point: Array) -> tuple[Array, Array]:
        """Lower and upper ends of the ranges."""
        low, high, _, _ = np.split(point, 4)
        half = (high - low) / 2.0
        return low - half, high + half


@dataclass(frozen=True)
class Scales(OneRelease):
    """Center and scale of each column, from two quantiles in the range that `Ranges` has found.

    With a and b the values at level q and 1 - q, the center is `(a + b)/2`, and the scale `(b - a)/(2·z)` with z the
    quantile of a normal variable at level 1 - q: for normal values, mean and standard deviation. After another `Scales`
    it repeats this in the range between the quantiles of that one, widened by half: numbers that are far from 0 and
    close to each other, years for instance, need both.

    **Columns most of whose values are the same**, the indicator of a rare category for instance, have two quantiles in
    one bin, and no spread: all other values are clipped. Scaled by its standard deviation, the indicator of a category
    of 4 % would be 5, and of 1 %, 10. One release does not tell so small a share of one column, but the mean f of all
    these columns. Their limit is `1.5/sqrt(f)`, between 3 and 5 for classes, which are learnt from the direction of a
    row, and between 3 and 8 for numbers; that of all others is 3.

    Parameters
    ----------
    rows : int
        How many rows it reads.
    labels, columns
        As in `Ranges`.
    waves : float
        The scale of random features of a single standardised column; 0 leaves the scales of random features as they
        are. Else these are `waves/sqrt(r)` for the r columns that have a spread, and `waves/(4·limit)` for the others.

    Examples
    --------
    >>> Scales(500).standardised(np.array([-1.645, 1.645, 0.05, 0.0])).scale.round(2)
    array([1.])
    """

    labels: bool = False
    columns: tuple[int, ...] | None = None
    waves: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "waves", not_negative("waves", self.waves))
        if self.waves and self.columns is not None:
            raise InvalidInput("scales of random features follow from all columns. Leave columns= out, or waves=.")

    def learner(self, problem: Problem, earlier: tuple[Array, ...]) -> BinCounts:
        """Counts over equal bins of the range."""
        columns = _count(problem, self.columns) + self.labels
        low, high = Ranges.widened(earlier[-1]) if earlier else (-np.ones(columns), np.ones(columns))
        width = np.maximum(high - low, _NARROWEST * (1.0 + np.abs(low)))
        edges = low[:, None] + width[:, None] * (np.arange(1, _BINS) / _BINS)
        return _counts(problem, edges, self, _LEAST_SCALE, outward=False)

    def after(self, problem: Problem, point: Array) -> Problem:
        """With the map to standardised values in the place of the neutral one, and labels in units of their scale."""
        columns = point.reshape(4, -1)
        if self.labels:
            label, columns = self.standardised(columns[:, -1]), columns[:, :-1]
            problem = replace(problem, label_center=float(label.center[0]), label_scale=float(label.scale[0]))
        found = self.standardised(columns.ravel(), _MOST[problem.loss.labels == "real"])
        problem = with_standardised(problem, replace(found, columns=self.columns))
        return self._with_waves(problem, columns[3] == 0.0, np.asarray(found.limit)) if self.waves else problem

    def _with_waves(self, problem: Problem, spread: NDArray[np.bool_], limit: Array) -> Problem:
        """With random features of scales that follow from which columns have a spread."""
        scales = np.where(spread, self.waves / math.sqrt(max(1, int(np.sum(spread)))), _SHARED * self.waves / limit)
        found = tuple(float(f"{scale:.3g}") for scale in scales)
        maps = _maps(problem.features)
        adapted = [replace(each, scale=found) if isinstance(each, RandomFeatures) else each for each in maps]
        return replace(problem, features=Chain(tuple(adapted)))

    @staticmethod
    def standardised(point: Array, most: float = _LIMIT) -> Standardise:
        """The map that this point leads to; the limit of columns whose quantiles share a bin is `most` at most."""
        low, high, level, outside = np.split(point, 4)
        scale = (high - low) / (2.0 * ndtri(1.0 - level))
        center = (low + high) / 2.0
        shared = outside > 0.0
        wider = 1.5 / math.sqrt(np.mean(outside[shared])) if shared.any() else _LIMIT
        limit = np.where(shared, min(max(wider, _LIMIT), most), _LIMIT)
        return Standardise(center, np.maximum(scale, _NARROWEST / _BINS * (1.0 + np.abs(center))), limit)


@dataclass(frozen=True)
class Moments(OneRelease):
    """A linear map after which features have about the same spread in all directions (`SecondMoment`).

    Parameters
    ----------
    rows : int
        How many rows it reads.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic
    >>> Moments(500).after(Problem(Logistic(), L2Ball(1.0), dimension=1), np.array([2.0])).features.matrix
    array([[2.]])
    """

    def learner(self, problem: Problem, earlier: tuple[Array, ...]) -> SecondMoment:
        """The second moment of clipped features."""
        return SecondMoment(problem)

    def after(self, problem: Problem, point: Array) -> Problem:
        """With this map after the present one."""
        size = round(len(point) ** 0.5)
        found = LinearMap(point.reshape(size, size))
        before = problem.features
        return replace(problem, features=found if before is None else Chain((*_maps(before), found)))


def with_standardised(problem: Problem, found: Standardise | None = None) -> Problem:
    """The problem with this map before any other, in the place of an earlier one; by default one that only clips.

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> with_standardised(Problem(Logistic(), L2Ball(1.0), dimension=2)).features.takes_missing
    True
    """
    found = found or Standardise(np.zeros(problem.dimension), np.ones(problem.dimension))
    others = _maps(problem.features)
    if others and isinstance(others[0], Standardise):
        others = others[1:]
    return replace(problem, features=Chain((found, *others)) if others else found)


def _maps(features: FeatureMap | None) -> tuple[FeatureMap, ...]:
    if features is None:
        return ()
    return features.maps if isinstance(features, Chain) else (features,)


def _count(problem: Problem, columns: tuple[int, ...] | None) -> int:
    return problem.dimension if columns is None else len(columns)


def _counts(problem: Problem, edges: Array, stage: Ranges | Scales, least: float, outward: bool) -> BinCounts:
    """Counts of features, and of labels if there are edges for them, in the place of what the problem learns."""
    if stage.labels and problem.loss.labels != "real":
        raise InvalidInput(f"{type(problem.loss).__name__} learns classes, which have no range. Use labels=False.")
    chosen = stage.columns or ()
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(problem.dimension)):
        raise InvalidInput(f"columns must be different numbers below {problem.dimension}, got {chosen}. Correct them.")
    columns = _count(problem, stage.columns)
    bins = Bins(edges[:columns], stage.columns)
    counted = replace(
        problem,
        features=bins,
        domain=WholeSpace(),
        feature_bound=2.0 * bins.count * max(columns, 1) ** 0.5,
        intercept=1.0,
        label_center=0.0,
        label_scale=1.0,
        label_bound=_ANY_LABEL,
        ridge=0.0,
    )
    return BinCounts(counted, edges[columns] if stage.labels else None, least, outward)
