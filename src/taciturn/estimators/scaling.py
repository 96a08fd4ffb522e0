"""Transformers for scikit-learn: scaling by public ranges, public random features, clipping. They cost no privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        TransformerMixin,
    )
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:  # pragma: no cover
    from taciturn.errors import needs_extra

    raise ImportError(needs_extra("taciturn.estimators.scaling", "sklearn", "scikit-learn")) from None

from taciturn.columns.encoder import ColumnEncoder, encoder_of
from taciturn.columns.kinds import MissingNumber, Range
from taciturn.columns.tables import Table
from taciturn.errors import InvalidInput, expect, positive
from taciturn.estimators.keywords import Keywords
from taciturn.estimators.sklearn_base import own_errors
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.clipping import clip_rows, clip_sparse_rows
from taciturn.kernel.problem.features import FeatureMap, mapped_rows
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.tables.random_features import RandomFeatures
from taciturn.tables.ranges import filled_between

__all__ = ["NormClip", "PublicColumns", "PublicMap", "PublicRandomFeatures", "PublicScaler"]


class PublicScaler(RowWise, OneToOneFeatureMixin, TransformerMixin, Keywords, BaseEstimator):
    """Scale columns from public ranges to [-1, 1]; values outside a range are clipped to it.

    A scaler that reads ranges off the data (`StandardScaler`, `MinMaxScaler`) publishes them, and so does an imputer
    (`SimpleImputer`). For columns that are not all numbers, or whose missing values differ, see `PublicColumns`.

    Parameters
    ----------
    ranges : pair, sequence of pairs, or mapping
        `(low, high)` for all columns, one pair a column, or by name for data frames: `{"age": (0, 120)}`, where columns
        that are not named stay as they are.
    missing : {"middle", "zero", "bad"} or float
        What a missing value (NaN) is in columns with a range: the middle of the range, the number 0, an error, or this
        number, which every range must contain.
    indicator : bool
        Whether each column with a range is followed by another one, 1 where its value was missing and 0 elsewhere.

    Examples
    --------
    >>> PublicScaler([(0, 10), (0, 2)]).fit_transform([[5.0, 3.0]])
    array([[0., 1.]])
    >>> PublicScaler((0, 10), missing=5.0, indicator=True).fit_transform([[np.nan], [10.0]])
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, ranges: Any = None, missing: MissingNumber = "middle", indicator: bool = False) -> None:
        self.ranges = ranges
        self.missing = missing
        self.indicator = indicator

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the number and names of the columns, and nothing else."""
        with own_errors():
            validate_data(self, X, ensure_all_finite=self._finite)
        self.low_, self.high_ = self._columns()
        self._filled()
        return self

    def transform(self, X: Any) -> Array:
        """Scale and clip the columns."""
        check_is_fitted(self)
        with own_errors():
            X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=self._finite)
        scaled = np.isfinite(self.low_)
        out, missing = np.array(X), np.isnan(X)
        ends = self.low_[scaled], self.high_[scaled]
        out[:, scaled], missing[:, scaled] = filled_between(out[:, scaled], *ends, self._filled()[scaled])
        if not self.indicator:
            return out
        both = np.stack([out, missing], axis=2).reshape(len(out), -1)
        return both[:, np.column_stack([np.ones_like(scaled), scaled]).ravel()]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns, each with a range followed by its indicator, if there are any."""
        names = super().get_feature_names_out(input_features)
        widths = 1 + (np.isfinite(self.low_) & self.indicator)
        own = [name for name, width in zip(names, widths, strict=True) for name in (name, f"{name} (missing)")[:width]]
        return np.array(own, dtype=object)

    @property
    def _finite(self) -> Any:
        return True if self.missing == "bad" else "allow-nan"

    def _filled(self) -> Array:
        """The feature of a missing value, for each column; 0 for the middle of a range."""
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        if self.missing in ("middle", "bad"):
            Range("ranges", 0.0, 1.0, self.missing, self.indicator)  # rejects an indicator that is always 0
            return np.zeros(self.n_features_in_)
        columns = zip(names, self.low_, self.high_, strict=True)
        return np.array(
            [0.0 if np.isnan(low) else Range(str(name), low, high, self.missing).filled for name, low, high in columns]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "bad"
        return tags

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


class PublicColumns(RowWise, TransformerMixin, Keywords, BaseEstimator):
    """The features of declared columns, in the words of the contract file; nothing is learnt from data.

    Private estimators take `columns=` themselves, ranges that are found privately included. This is for other models,
    and for pipelines with steps in between. Columns are found by name, in data frames, Arrow tables and dicts of lists,
    or by number in arrays; a table to fit with may not have others.

    Parameters
    ----------
    columns : dict
        A declaration for each column: `{"range": [0, 100]}`, also with `"scale": "log"` or `"symlog"`,
        `{"bins": [0, 10, 100]}`, `{"date": ["2015-01-01", "2030-01-01"], "cycle": ["weekday", "month", "hour"]}`,
        `{"categories": ["a", "b"]}`, `{"hash": 256}`, `{"text": {"hash": 1024}}` or `{"ignore": True}`, and what a
        missing value is, by `"missing"` and `"indicator"`: the words of the contract file (`docs/contract.md`).

    Attributes
    ----------
    feature_bound : float
        Bound on the norm of a row that follows from the declaration, for a private model behind it.
    encoder : ColumnEncoder
        What the columns become.

    Examples
    --------
    >>> declared = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    >>> transformer = PublicColumns(declared)
    >>> transformer.fit_transform({"age": [75, None], "town": ["Rome", "Bonn"]})
    array([[0.5, 0. , 1. ],
           [0. , 0. , 0. ]])
    >>> transformer.get_feature_names_out(), round(transformer.feature_bound, 3)
    (array(['age', 'town=Oslo', 'town=Rome'], dtype=object), 1.39)
    """

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        self.columns = columns

    @property
    def encoder(self) -> ColumnEncoder:
        """What the columns become."""
        encoder = encoder_of(self.columns)
        if encoder.found:
            raise InvalidInput(
                f"the range of {encoder.feature_names[encoder.found[0]]} is to be found privately, which costs rows "
                "that a transformer does not have. State the range; or give columns= to a private estimator, which "
                "finds it."
            )
        return encoder

    @property
    def feature_bound(self) -> float:
        """Bound on the norm of a row: a little less than the largest norm."""
        return self.encoder.feature_bound(classes=True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the names of the columns, and learn nothing."""
        encoder = self.encoder
        encoder.check_names(Table(X), known=True)
        self.n_features_in_ = len(encoder.read_keys)
        if all(isinstance(key, str) for key in encoder.read_keys):
            self.feature_names_in_ = np.array(encoder.read_keys, dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        """The features of these rows: an array, or a sparse matrix if there are hashed values or texts."""
        return self.encoder.features(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features."""
        return np.array(self.encoder.feature_names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.requires_fit = False
        return tags


class PublicRandomFeatures(RowWise, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Keywords, BaseEstimator):
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
        with own_errors():
            validate_data(self, X)
        self.map_ = RandomFeatures(self.count, self.scale, self.length, self.seed)
        self._n_features_out = self.map_.width(self.n_features_in_)
        return self

    def transform(self, X: Any) -> Array:
        """The images of the rows."""
        check_is_fitted(self)
        with own_errors():
            return self.map_(validate_data(self, X, reset=False, dtype=np.float64))


class PublicMap(RowWise, TransformerMixin, Keywords, BaseEstimator):
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
        with own_errors():
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite)
        return X.toarray() if hasattr(X, "tocsr") else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = isinstance(self.features, FeatureMap) and self.features.takes_missing
        return tags


class NormClip(RowWise, OneToOneFeatureMixin, TransformerMixin, Keywords, BaseEstimator):
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
        with own_errors():
            validate_data(self, X, accept_sparse="csr")
        return self

    def transform(self, X: Any) -> Any:
        """Clip the rows; sparse rows stay sparse."""
        check_is_fitted(self, "n_features_in_")
        with own_errors():
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        bound = positive("bound", self.bound, "State the largest norm of a row.")
        return clip_sparse_rows(X, bound)[0] if hasattr(X, "tocsr") else clip_rows(X, bound)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
