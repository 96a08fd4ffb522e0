"""Public maps of features: what is learnt from is `map(row)`, a function of that row and of public numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.kernel.arrays import Array, fixed
from taciturn.kernel.errors import InvalidInput, expect, integer
from taciturn.kernel.problem.row_wise import RowWise, row_wise

_MAP = "a frozen dataclass that is a FeatureMap"


class FeatureMap(RowWise, ABC):
    """A public map from the features that a caller passes to those that are learnt from, applied before clipping.

    To add one, write a frozen dataclass of plain data (numbers, strings, tuples, arrays), which the hash of a stream's
    settings covers, with `width` and `__call__`. Certificates need two things of it. Every mapped row is clipped to
    `feature_bound` after the map, which `Problem` does. And a row's image is a function of that row and of the map's
    own numbers: where two streams differ in one example, all other rows are then the same, to the bit, before and
    after the map. `products` is such a function, and depends on nothing else. A matrix product by BLAS itself rounds by
    the shape of a block, which is public for files, and by how it lies in memory, which is always the same here: a
    block of rows that are side by side, a copy.

    Nothing is assumed of an image but its shape: a row whose image is not finite is a bad row.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class WithSquares(FeatureMap):
    ...     def width(self, dimension):
    ...         return 2 * dimension
    ...
    ...     def __call__(self, X):
    ...         return np.hstack([X, X**2])
    >>> from taciturn import L2Ball, Logistic, Problem
    >>> problem = Problem(
    ...     Logistic(), L2Ball(1.0), dimension=2, feature_bound=9.0, intercept=1.0, features=WithSquares()
    ... )
    >>> problem.dimension, problem.width
    (2, 5)
    >>> problem.clip([[1.0, 2.0]], [1.0])[0]
    array([[1., 2., 1., 4., 1.]])
    """

    @property
    def takes_missing(self) -> bool:
        """Whether the map takes rows with NaN entries, and replaces them itself; for other maps such rows are bad."""
        return False

    @abstractmethod
    def width(self, dimension: int) -> int:
        """The number of features of an image, for rows of so many."""

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """The images of a block of rows, an array of float64; `X` has no infinite entry and must not be changed."""

    def names(self, names: Sequence[str]) -> list[str]:
        """The names of an image's features, given those of a row's."""
        return [f"feature {j}" for j in range(self.width(len(names)))]


@dataclass(frozen=True)
class Chain(FeatureMap):
    """Several maps, one after the other, from the first to the last.

    >>> @dataclass(frozen=True)
    ... class Twice(FeatureMap):
    ...     def width(self, dimension):
    ...         return dimension
    ...
    ...     def __call__(self, X):
    ...         return 2.0 * X
    >>> Chain((Twice(), Twice()))(np.array([[1.0, 2.0]]))
    array([[4., 8.]])
    """

    maps: tuple[FeatureMap, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", tuple(self.maps))
        if not self.maps:
            raise InvalidInput("a chain needs one map or more, got none. Leave features= out for none.")
        for part in self.maps:
            expect("a map", part, isinstance(part, FeatureMap), _MAP, of_many=True)

    @property
    def takes_missing(self) -> bool:
        return self.maps[0].takes_missing

    def width(self, dimension: int) -> int:
        for part in self.maps:
            dimension = part.width(dimension)
        return dimension

    def __call__(self, X: Array) -> Array:
        for part in self.maps:
            X = part(np.ascontiguousarray(X))  # what a map rounds may depend on how rows lie in memory
        return X

    def names(self, names: Sequence[str]) -> list[str]:
        for part in self.maps:
            names = part.names(names)
        return list(names)

    def __str__(self) -> str:
        return ", then ".join(map(str, self.maps))


@row_wise
def mapped_rows(features: FeatureMap, X: Array) -> Array:
    """The images of raw rows; a row is NaN throughout if it is bad, or if its image is.

    Bad rows reach the map as zeros, so that it sees no infinity, and no NaN if it takes none. Rows are copied in any
    case: the map would round otherwise if they lay otherwise in memory where one of them is bad.
    """
    X = np.array(X, dtype=np.float64, order="C")
    bad = np.asarray(np.any(np.isinf(X) if features.takes_missing else ~np.isfinite(X), axis=1))
    X[bad] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        Z = np.ascontiguousarray(features(X), dtype=np.float64)
    if Z.shape != (len(X), features.width(X.shape[1])):
        raise InvalidInput(
            f"{type(features).__name__} should map rows of shape {X.shape} to {features.width(X.shape[1])} features, "
            f"got shape {Z.shape}. Correct its width or its __call__."
        )
    return np.where(bad[:, None], np.nan, Z) if bad.any() else Z


_AT_ONCE = 16  # rows of one product


@row_wise
def products(X: Array, matrix: Array) -> Array:
    """`X @ matrix`, where the product of a row is a function of that row, to the bit, however many others there are.

    BLAS rounds by the shape of a product. Each product here has the same: 16 rows, the last ones filled up with zeros.

    >>> products(np.ones((17, 2)), np.array([[1.0], [2.0]]))[[0, 16]]
    array([[3.],
           [3.]])
    """
    n = len(X)
    rows = np.zeros((-(-n // _AT_ONCE) * _AT_ONCE, X.shape[1]))
    rows[:n] = X
    out = np.empty((len(rows), matrix.shape[1]))
    for start in range(0, len(rows), _AT_ONCE):
        np.matmul(rows[start : start + _AT_ONCE], matrix, out=out[start : start + _AT_ONCE])
    return out[:n]


def mapped_dimension(features: FeatureMap | None, dimension: int) -> int:
    """The number of features after the map, if there is one."""
    return dimension if features is None else integer("the width of features", features.width(dimension))


@dataclass(frozen=True, eq=False)
class Bins(FeatureMap):
    """The number of the bin of each value, from 1, by the inner edges of its column; 0 for a missing value.

    With `columns`, of these columns and no others.

    >>> Bins(np.array([[0.0, 1.0]]))(np.array([[-5.0], [0.0], [7.0], [np.nan]])).ravel()
    array([1., 2., 3., 0.])
    """

    edges: Array
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", fixed(np.array(self.edges, dtype=np.float64)))
        if self.edges.ndim != 2 or not (np.diff(self.edges, axis=1) > 0.0).all():
            raise InvalidInput("edges must increase, in a row for each column.")

    @property
    def takes_missing(self) -> bool:
        return True

    @property
    def count(self) -> int:
        """Bins of a column."""
        return int(self.edges.shape[1]) + 1

    def width(self, dimension: int) -> int:
        return max(len(self.edges), 1)  # without columns, a constant: features have one entry at least

    def __call__(self, X: Array) -> Array:
        numbers = np.zeros((len(X), max(len(self.edges), 1)))
        for j, column in enumerate(range(X.shape[1]) if self.columns is None else self.columns):
            values = X[:, column]
            numbers[:, j] = np.where(np.isnan(values), 0, np.searchsorted(self.edges[j], values, side="right") + 1)
        return numbers
