"""What the estimators for scikit-learn share: one stream at a time, and the model it has released."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:  # pragma: no cover
    raise ImportError("tacit.estimators.sklearn needs scikit-learn: install tacit[sklearn].") from None

from tacit.arrays import Array
from tacit.errors import StateConflict
from tacit.estimators.request import Request
from tacit.estimators.stream import PrivacyWarning, Spent, Stream
from tacit.plan import Plan
from tacit.problem.predicting import coefficients
from tacit.problem.problem import Problem

_ADDS = (
    "fit opens a new stream: what it spends adds to what earlier fits spent on the same people. To go on with one "
    "stream, for one budget, use partial_fit."
)


class PrivateLinearModel(BaseEstimator):
    """A linear model learnt from one private stream at a time.

    Subclasses store their settings and say how those become a `Request`, which labels there are, and how labels become
    numbers.
    """

    _numbers: bool

    def _request(self, classes: Any) -> Request:
        """What was stated."""
        raise NotImplementedError

    def _class_set(self, y: Any, classes: Any) -> Any:
        """All labels that there can be; None for numbers."""
        raise NotImplementedError

    def _encoded(self, y: Any, classes: Any) -> Any:
        """Labels as the problem wants them."""
        raise NotImplementedError

    def _learn_all(self, X: Any, y: Any, classes: Any) -> Any:
        """A new stream, of these rows."""
        if hasattr(self, "_stream"):
            warnings.warn(_ADDS, PrivacyWarning, stacklevel=3)
        X, y = self._valid(X, y, reset=True)
        classes = self._class_set(y, classes)
        return self._learn(
            self._opened(X.shape[1], len(y) if self.horizon is None else self.horizon, classes), X, y, classes
        )

    def _learn_more(self, X: Any, y: Any, classes: Any) -> Any:
        """The next rows of the stream, or the first."""
        first = not hasattr(self, "_stream")
        X, y = self._valid(X, y, reset=first)
        if first:
            classes = self._class_set(y, classes)
            return self._learn(self._opened(X.shape[1], self.horizon, classes), X, y, classes)
        classes = getattr(self, "classes_", None)
        if self._stated != (self._request(classes), self.horizon):
            raise StateConflict(
                "settings have changed since this stream was opened, and its noise was planned for the old ones. Set "
                "them back, or fit() a new stream, which spends as much again."
            )
        return self._learn(self._stream, X, y, classes)

    def _valid(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=self._numbers
        )
        return X, column_or_1d(y, warn=True)

    def _opened(self, dimension: int, horizon: int | None, classes: Any) -> Stream:
        plan = self._request(classes).plan(dimension, horizon)
        if plan.hopeless:
            warnings.warn(str(plan.warning), PrivacyWarning, stacklevel=4)
        return Stream(plan)

    def _learn(self, stream: Stream, X: Any, y: Any, classes: Any) -> Any:
        """Learn, and only then become what was learnt: a refusal leaves the estimator as it was."""
        self.releases_ = stream.learn(X, self._encoded(y, classes))
        self._stream, self._stated = stream, (self._request(classes), self.horizon)
        if classes is not None:
            self.classes_ = classes
        return self._show()

    def _show(self) -> Any:
        """Set what was released out for all to see."""
        weights, self.intercept_ = coefficients(self._problem, self._stream.model)
        self.coef_ = weights.copy()
        self.n_examples_, self.n_releases_ = self._stream.t, self._stream.k
        return self

    @property
    def _problem(self) -> Problem:
        return self._stream.plan.private.problem

    @property
    def privacy_spent_(self) -> Spent:
        """What this stream's releases have cost so far: an epsilon, at the budget's delta."""
        check_is_fitted(self, "_stream")
        return self._stream.spent

    @property
    def plan_(self) -> Plan:
        """The plan that this stream follows (`tacit.plan.Plan`)."""
        check_is_fitted(self, "_stream")
        return self._stream.plan

    @property
    def guarantee_(self) -> str:
        """What is guaranteed, and what is public besides."""
        check_is_fitted(self, "_stream")
        labels = f", the labels {', '.join(map(str, self.classes_))}" if hasattr(self, "classes_") else ""
        return (
            f"{self._stream.plan.private.guarantee} Public besides: how many rows there are ({self._stream.t:,} so "
            f"far), the {self.n_features_in_} features' names{labels}, and every setting of this estimator. Each "
            "stream that fit opens has a budget of its own; on the same people they add."
        )

    def dump_stream(self, path: str | os.PathLike[str]) -> None:
        """Write where the stream stands, secrets included, to learn on in another process: keep it as you keep data."""
        check_is_fitted(self, "_stream")
        self._stream.dump(path)

    def load_stream(self, path: str | os.PathLike[str]) -> Any:
        """Go on with a dumped stream in this fitted estimator: the one that wrote it, or a pickled copy."""
        check_is_fitted(self, "_stream")
        self._stream = Stream.load(self._stream.plan, path)
        return self._show()

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "_stream")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        return np.asarray(self._problem.predict(self._stream.model, X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.seed is None
        return tags
