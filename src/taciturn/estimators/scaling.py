"""Transformers for scikit-learn: scaling by public ranges, public random features, clipping. They cost no privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

try:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        TransformerMixin,
    )
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:  # pragma: no cover
    raise ImportError("taciturn.estimators.scaling needs scikit-learn: install taciturn[sklearn].") from None

from taciturn._util.arrays import Array
from taciturn.errors import InvalidInput, expect, positive
from taciturn.estimators.keywords import Keywords
from taciturn.problem.clipping import clip_rows, clip_sparse_rows
from taciturn.problem.features import FeatureMap, mapped_rows
from taciturn.problem.random_features import RandomFeatures
from taciturn.problem.ranges import between

__all__ = ["NormClip", "PublicMap", "PublicRandomFeatures", "PublicScaler"]


class PublicScaler(OneToOneFeatureMixin, TransformerMixin, Keywords, BaseEstimator):
    """Scale columns from public ranges to [-1, 1]; values outside a range are clipped to it.

    A scaler that reads ranges off the data (`StandardScaler`, `MinMaxScaler`) publishes them.

    Parameters
    ----------
    ranges : pair, sequence of pairs, or mapping
        `(low, high)` for all columns, one pair a column, or by name for data frames: `{"age": (0, 120)}`, where columns
        that are not named stay as they are.

    Examples
    --------
    >>> PublicScaler([(0, 10), (0, 2)]).fit_transform([[5.0, 3.0]])
    array([[0., 1.]])
    """

    def __init__(self, ranges: Any = None) -> None:
        self.ranges = ranges

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the number and names of the columns, and nothing else."""
        validate_data(self, X)
        self.low_, self.high_ = self._columns()
        return self

    def transform(self, X: Any) -> Array:
        """Scale and clip the columns."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        scaled = np.isfinite(self.low_)
        out = np.array(X)
        out[:, scaled] = between(out[:, scaled], self.low_[scaled], self.high_[scaled])
        return out

    def _columns(self) -> tuple[Array, Array]:
        """The validated range of each column; NaN for columns that stay as they are."""
        if self.ranges is None:
            raise InvalidInput("state the ranges of the columns, as in ranges=[(0, 120), (0, 1)], from public facts.")
        if isinstance(self.ranges, Mapping):
            names = list(getattr(self, "feature_names_in_", []))
            if unknown := [name for name in self.ranges if name not in names]:
                raise InvalidInput(f"there is no column {unknown[0]!r}. Name columns of a data frame, or give a list.")
            pairs = np.array([self.ranges.get(name, (np.nan, np.nan)) for name in names], dtype=np.float64)
        else:
            pairs = np.array(self.ranges, dtype=np.float64)
            pairs = np.tile(pairs, (self.n_features_in_, 1)) if pairs.ndim == 1 else pairs
        if pairs.shape != (self.n_features_in_, 2):
            raise InvalidInput(
                f"ranges must be a pair (low, high) for each of {self.n_features_in_} columns, got shape {pairs.shape}."
            )
        if ((pairs[:, 0] >= pairs[:, 1]) | np.isinf(pairs).any(axis=1)).any():
            raise InvalidInput(
                "a range must be (low, high) with low < high, both finite. State them from public facts."
            )
        return pairs[:, 0], pairs[:, 1]


class PublicRandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Keywords, BaseEstimator):
    """Random Fourier features of the columns, and the columns themselves, in rows of norm at most `length`.

    The directions are public: they come from a hash of a public seed, and nothing is learnt. Private estimators map by
    themselves (`features=2000`), a block of rows at a time; this is for other models, which need all rows mapped.

    Parameters
    ----------
    count, scale, length, seed
        As in `taciturn.RandomFeatures`. The `feature_bound` of a private model behind it is `length`.

    Examples
    --------
    >>> rows = PublicRandomFeatures(count=4, scale=2.0).fit_transform([[3.0, 4.0], [0.6, 0.0]])
    >>> rows.shape, np.linalg.norm(rows, axis=1).round(3)
    ((2, 6), array([1.   , 0.967]))
    """

    def __init__(self, count: int = 1000, scale: Any = 1.0, length: float = 1.0, seed: int = 0) -> None:
        self.count = count
        self.scale = scale
        self.length = length
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the number and names of the columns, and nothing else."""
        validate_data(self, X)
        self.map_ = RandomFeatures(self.count, self.scale, self.length, self.seed)
        self._n_features_out = self.map_.width(self.n_features_in_)
        return self

    def transform(self, X: Any) -> Array:
        """The images of the rows."""
        check_is_fitted(self)
        return self.map_(validate_data(self, X, reset=False, dtype=np.float64))


class PublicMap(TransformerMixin, Keywords, BaseEstimator):
    """The images of the rows by a public map, any `taciturn.FeatureMap`; nothing is learnt.

    `to_sklearn()` of a private estimator uses it for what the estimator maps its rows by.

    Parameters
    ----------
    features : FeatureMap
        The map, such as `taciturn.RandomFeatures(count=4, scale=2.0)`.

    Examples
    --------
    >>> from taciturn import RandomFeatures
    >>> PublicMap(RandomFeatures(count=4, scale=2.0)).fit_transform([[3.0, 4.0], [0.6, 0.0]]).shape
    (2, 6)
    """

    def __init__(self, features: FeatureMap | None = None) -> None:
        self.features = features

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the number and names of the columns, and nothing else."""
        self._rows(X, reset=True)
        return self

    def transform(self, X: Any) -> Array:
        """The images of the rows; sparse rows become dense."""
        check_is_fitted(self, "n_features_in_")
        return mapped_rows(self._map, self._rows(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the mapped features, by the map."""
        check_is_fitted(self, "n_features_in_")
        names = [f"x{j}" for j in range(self.n_features_in_)]
        names = getattr(self, "feature_names_in_", names) if input_features is None else input_features
        return np.array(self._map.names(list(names)), dtype=object)

    @property
    def _map(self) -> FeatureMap:
        example = "taciturn.RandomFeatures(count=100, scale=2.0)"
        expect("features", self.features, isinstance(self.features, FeatureMap), example)
        assert self.features is not None
        return self.features

    def _rows(self, X: Any, reset: bool) -> Any:
        finite = "allow-nan" if self._map.takes_missing else True
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite)
        return X.toarray() if hasattr(X, "tocsr") else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = isinstance(self.features, FeatureMap) and self.features.takes_missing
        return tags


class NormClip(OneToOneFeatureMixin, TransformerMixin, Keywords, BaseEstimator):
    """Clip rows to norm at most `bound`, each by itself, so nothing is learnt.

    Private estimators clip to their `feature_bound` by themselves; this is for steps in between.

    Parameters
    ----------
    bound : float
        Largest Euclidean norm of a row.

    Examples
    --------
    >>> NormClip(1.0).fit_transform([[3.0, 4.0], [0.1, 0.0]]).round(3)
    array([[0.6, 0.8],
           [0.1, 0. ]])
    """

    def __init__(self, bound: float = 1.0) -> None:
        self.bound = bound

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the number and names of the columns, and nothing else."""
        positive("bound", self.bound, "State the largest norm of a row.")
        validate_data(self, X, accept_sparse="csr")
        return self

    def transform(self, X: Any) -> Any:
        """Clip the rows; sparse rows stay sparse."""
        check_is_fitted(self, "n_features_in_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        bound = positive("bound", self.bound, "State the largest norm of a row.")
        return clip_sparse_rows(X, bound)[0] if hasattr(X, "tocsr") else clip_rows(X, bound)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
