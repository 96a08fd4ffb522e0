"""Public maps of columns: values in units of their spread, and a linear map of all columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array, fixed
from taciturn.kernel.problem.features import FeatureMap, products


@dataclass(frozen=True, eq=False)
class Standardise(FeatureMap):
    """`(x - center)/scale` in each of these columns, clipped to ±limit; a missing value takes the center.

    Other columns stay as they are; without `columns`, there are none. `limit` is a number, or one for each column.

    >>> Standardise(np.array([10.0, 0.0]), np.array([2.0, 1.0]))(np.array([[13.0, 0.5], [99.0, np.nan]]))
    array([[1.5, 0.5],
           [3. , 0. ]])
    >>> Standardise(np.array([10.0]), np.array([2.0]), columns=(1,))(np.array([[0.5, 13.0]]))
    array([[0.5, 1.5]])
    """

    center: Array
    scale: Array
    limit: float | Array = 3.0
    columns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("center", "scale"):
            object.__setattr__(self, name, fixed(np.array(getattr(self, name), dtype=np.float64)))
        finite = np.isfinite(self.center).all() and np.isfinite(self.scale).all()
        if self.center.shape != self.scale.shape or not (finite and (self.scale > 0.0).all()):
            raise InvalidInput("center and scale must be finite, one number a column, and scales positive.")
        limit = fixed(np.array(self.limit, dtype=np.float64))
        if limit.shape not in ((), self.center.shape) or not (np.isfinite(limit) & (limit > 0.0)).all():
            raise InvalidInput("limit must be positive and finite, a number, or one for each column.")
        object.__setattr__(self, "limit", limit if limit.ndim else float(limit))

    @property
    def takes_missing(self) -> bool:
        return True

    def width(self, dimension: int) -> int:
        return dimension

    def __call__(self, X: Array) -> Array:
        chosen = X if self.columns is None else X[:, list(self.columns)]
        Z = np.clip((chosen - self.center) / self.scale, -self.limit, self.limit)
        Z = np.nan_to_num(Z, copy=False, nan=0.0)
        if self.columns is None:
            return Z
        others = X.copy()
        others[:, list(self.columns)] = Z
        return others

    def names(self, names: Sequence[str]) -> list[str]:
        return list(names)

    def __str__(self) -> str:
        return "standardised columns"


@dataclass(frozen=True, eq=False)
class LinearMap(FeatureMap):
    """`W·x`: all columns, mixed by a public matrix.

    >>> LinearMap(np.array([[0.0, 2.0], [1.0, 0.0]]))(np.array([[1.0, 3.0]]))
    array([[6., 1.]])
    """

    matrix: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", fixed(np.array(self.matrix, dtype=np.float64)))

    def width(self, dimension: int) -> int:
        return len(self.matrix)

    def __call__(self, X: Array) -> Array:
        return products(X, self.matrix.T)

    def names(self, names: Sequence[str]) -> list[str]:
        return [f"direction {j}" for j in range(1, len(self.matrix) + 1)]

    def __str__(self) -> str:
        return "directions that are mixtures of all features"
