"""Base classes of the estimators for scikit-learn: one stream at a time, and the model it has released."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, Literal, NamedTuple, Self

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        assert_all_finite,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError:  # pragma: no cover
    from taciturn.errors import needs_extra

    raise ImportError(needs_extra("taciturn.estimators.sklearn", "sklearn", "scikit-learn")) from None

from taciturn._util.html import card, facts
from taciturn.accounting.ledger import LedgerLike
from taciturn.columns.encoder import ColumnEncoder, encoder_of
from taciturn.columns.labels import classes_of, labels_of
from taciturn.columns.target import Number
from taciturn.columns.values import text_of
from taciturn.drift import Drift
from taciturn.errors import InvalidInput, StateConflict, TaciturnError, horizon_of
from taciturn.estimators.fits import Fits, StoredFits
from taciturn.estimators.keywords import Keywords, known_keywords, reject_unknown
from taciturn.estimators.meaning import with_meaning
from taciturn.estimators.settings import LossName, MethodName, Settings, declared_settings, weights_of
from taciturn.estimators.stream import PrivacyWarning, Stream, budgets_html, known_drift, promised
from taciturn.kernel.accounting.cost import Spent
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.accounting.unit import ClockPeriod, Neighbours, Unit, User, WithoutId
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.predict import coefficients
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.release import Releases
from taciturn.kernel.stream.state import read_extra
from taciturn.methods.selection import Selection
from taciturn.plan import Features, Forget, Plan
from taciturn.renewal import Renewal

_ADDS = (
    "fit opens a new stream: what it spends adds to what earlier fits spent on the same people. To go on with one "
    "stream, for one budget, use partial_fit."
)


class NotANumber(InvalidInput, TypeError):
    """Features that are no numbers, such as dates; scikit-learn raises a TypeError.

    >>> issubclass(NotANumber, TypeError) and issubclass(NotANumber, ValueError)
    True
    """


class _Learnt:
    """A read-only attribute that can be overwritten, as scikit-learn does when an estimator validates data."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read
        self.__doc__ = read.__doc__

    def __get__(self, model: Any, owner: Any = None) -> Any:
        return self if model is None else self.read(model)


class _Stated(NamedTuple):
    """What a stream was opened with: its settings, and how tables and labels become numbers."""

    settings: Settings
    horizon: int | None
    encoder: ColumnEncoder | None
    target: Number | None


class _Opened(NamedTuple):
    """A stream, the parameters and classes it was opened with, and an estimator that has seen its features.

    If a search has chosen the model, `selection` has what that cost: more than this stream alone (`PrivateSearchCV`).
    """

    stream: Stream
    stated: dict[str, Any]
    settings: _Stated
    classes: Any
    seen: PrivateLinearModel
    batch: bool
    selection: Selection | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed of all that was published to come by this model."""
        return self.stream.plan.private.guarantee if self.selection is None else self.selection.guarantee

    @property
    def features(self) -> int:
        """How many there are."""
        return int(vars(self.seen)["n_features_in_"])

    @property
    def names(self) -> Any:
        """Names of the features, if they have any."""
        return vars(self.seen).get("feature_names_in_")


class PrivateLinearModel(Keywords, BaseEstimator):
    """A linear model learnt from one private stream at a time.

    All that it has learnt is in `_streams`: the stream opened last by `fit`, and, until that has learnt, the one before
    it; or else in `_first`, the stream that the first `partial_fit` opened. So a rejected or interrupted call leaves
    the estimator as it was, unless the rows of that call were learnt: then it is as if the call had returned
    (`taciturn.estimators.stream.Stream`). Copies and pickles predict, and do not learn on.

    Threads, or a signal handler, that call `partial_fit` while it is called for the first time share one stream:
    `_first` is set once, by one atomic step, when the rows of a call are found good. Calls that come second learn on
    that stream, and the streams they have planned are dropped before anything is reserved for them.

    Subclasses store their settings and say how those become a `Settings`, which labels there are, and how labels become
    numbers.
    """

    _numbers: bool

    def _settings(self, classes: Any) -> Settings:
        """The settings of a new stream."""
        raise NotImplementedError

    def _class_set(self, y: Any, classes: Any) -> Any:
        """All possible labels; None for regression."""
        raise NotImplementedError

    def _encoded(self, y: Any, classes: Any) -> Any:
        """Labels as numbers, in the encoding of the problem."""
        raise NotImplementedError

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; they are for the next stream."""
        reject_unknown(type(self), "__init__", (name for name in params if "__" not in name))
        super().set_params(**params)
        return self

    def _learn_all(self, X: Any, y: Any, classes: Any, users: Any) -> Self:
        """Learn from these rows as a new stream."""
        if self._opened is not None:
            warnings.warn(_ADDS, PrivacyWarning, stacklevel=4)
        return self._learn_first(X, y, classes, users, all_rows=True)

    def _learn_more(self, X: Any, y: Any, classes: Any, users: Any) -> Self:
        """Learn from the next rows of the stream, or open it."""
        opened = self._opened
        if opened is None:
            return self._learn_first(X, y, classes, users, all_rows=False)
        return self._learn_on(opened, X, y, users)

    def _learn_on(self, opened: _Opened, X: Any, y: Any, users: Any) -> Self:
        """Learn from the next rows of this stream."""
        X, y = self._valid(opened.seen, X, y, opened.settings.encoder, reset=False)
        unchanged = all(vars(self).get(name) is value for name, value in opened.stated.items())
        if not unchanged and opened.settings != self._stated(opened.classes):
            raise StateConflict(
                "settings have changed since this stream was opened, and its noise was planned for the old ones. Set "
                "them back, or fit() a new stream, which spends a second budget."
            )
        _check_users(opened.stream.plan.private.unit, users)
        labels = self._encoded(y, opened.classes)
        if not opened.stream.t:  # the call that opened it was interrupted, or is another thread's
            self._count_fit(opened.stream, len(labels))
        opened.stream.learn(X, labels, users)
        return self

    def _learn_first(self, X: Any, y: Any, classes: Any, users: Any, all_rows: bool) -> Self:
        """Open a stream and learn from its first rows; the stream is in use only once it has learnt."""
        stated = self.get_params(deep=False)
        seen = type(self)(**stated)  # records the features, which may still be rejected
        rows, labels = self._valid(seen, X, y, self._encoder, reset=True)
        classes = self._class_set(labels, classes)
        settings = self._settings(classes)
        _check_users(settings.unit, users)
        horizon = None if self.horizon is None else horizon_of(self.horizon)
        horizon = len(labels) if all_rows and horizon is None else horizon
        batch = all_rows and horizon == len(labels)
        plan = self._with_meaning(settings.plan(rows.shape[1], horizon, batch=batch), settings, classes, seen)
        for sentence in (plan.warning, plan.delta_warning):
            if sentence is not None:
                warnings.warn(sentence, PrivacyWarning, stacklevel=5)
        if batch and (sentence := _few_blocks(settings, plan)) is not None:
            warnings.warn(sentence, PrivacyWarning, stacklevel=5)
        labels = self._encoded(labels, classes)
        new = _Opened(Stream(plan, self.ledger, reserve=False), stated, self._stated(classes), classes, seen, batch)
        before = self._opened
        if all_rows:
            self._streams: tuple[_Opened, ...] = (new,) if before is None else (new, before)

        stream = new.stream

        def in_use() -> bool:
            used = all_rows or self.__dict__.setdefault("_first", new) is new
            if used:
                self._count_fit(stream, len(labels))
            return used

        try:
            learnt = stream.learn_if(in_use, rows, labels, users)
        except TaciturnError:
            if stream.rejected:  # and stays so: the next call may have other settings
                self._fits.discard(str(stream.lineage))
                if not all_rows:
                    self.__dict__.pop("_first", None)
            raise
        if learnt is None:
            return self._learn_on(vars(self)["_first"], X, y, users)
        if all_rows:
            self._streams = (new,)
        if self.ledger is None and plan.private.seed is None:
            self._fits.warn(before is not None, stacklevel=5)
        return self

    def _count_fit(self, stream: Stream, rows: int) -> None:
        """Count a stream with those of all clones, once, unless it is a simulation.

        It is called before a stream commits, so that no interruption leaves one that has learnt and is not counted.
        """
        private = stream.plan.private
        if private.seed is None:
            about = (str(stream.lineage), private.neighbours, private.unit.name)
            self._fits.add(rows, private.total_cost, private.privacy.delta, *about)

    @property
    def _fits(self) -> Fits:
        """The counter that this estimator shares with its clones."""
        fits: Fits | None = vars(self).get("_counted")
        return self.__dict__.setdefault("_counted", Fits()) if fits is None else fits

    def __sklearn_clone__(self) -> Any:
        made = super().__sklearn_clone__()
        made._counted = self._fits
        return made

    def _with_meaning(self, plan: Plan, settings: Settings, classes: Any, seen: PrivateLinearModel) -> Plan:
        """The plan, which is rejected if it starts from a model whose weights mean something else."""
        return with_meaning(plan, settings, self._encoder, self._target, classes, vars(seen).get("feature_names_in_"))

    def _stated(self, classes: Any) -> _Stated:
        return _Stated(self._settings(classes), self.horizon, self._encoder, self._target)

    @property
    def _encoder(self) -> ColumnEncoder | None:
        """How the declared columns become features, if they are declared."""
        return None if self.columns is None else encoder_of(self.columns)

    @property
    def _target(self) -> Number | None:
        """How labels become numbers, if their range is stated."""
        return None

    def _valid(self, seen_by: Any, X: Any, y: Any, encoder: ColumnEncoder | None, reset: bool) -> tuple[Any, Any]:
        _check_there(y)
        if self._numbers:
            _check_numeric(y)
        if encoder is None:
            _reject_times(X)
            with own_errors():
                X, y = validate_data(seen_by, X, y, reset=reset, **self._accepted, y_numeric=self._numbers)
                return X, column_or_1d(y, dtype=np.float64 if self._numbers else None, warn=True)
        X = encoder.features(X, known=True)
        with own_errors():
            y = column_or_1d(y, dtype=np.float64 if self._numbers else None, warn=True)
            assert_all_finite(y, input_name="y")
            check_consistent_length(X, y)
        if not len(y):
            raise InvalidInput("there are no rows to learn from. Give a table with one row or more.")
        if reset:
            seen_by.n_features_in_ = len(encoder.read_keys)
            if all(isinstance(key, str) for key in encoder.read_keys):
                seen_by.feature_names_in_ = np.array(encoder.read_keys, dtype=object)
        return X, y

    @property
    def _accepted(self) -> dict[str, Any]:
        """What scikit-learn lets through: missing values where they take the center of what is found."""
        finite = "allow-nan" if isinstance(self.feature_bound, str) else True  # "private": Settings take no other text
        return {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "ensure_all_finite": finite}

    @property
    def _opened(self) -> _Opened | None:
        """The newest stream that has learnt, if any."""
        candidates: tuple[_Opened | None, ...] = (*vars(self).get("_streams", ()), vars(self).get("_first"))
        for opened in candidates:
            if opened is not None and opened.stream.t > 0:
                return opened
        return None

    @property
    def _fitted(self) -> _Opened:
        if (opened := self._opened) is None:
            check_is_fitted(self)  # raises
        assert opened is not None
        return opened

    @property
    def _problem(self) -> Problem:
        return self._fitted.stream.problem

    @property
    def _coefficients(self) -> tuple[Array, Array]:
        stream = self._fitted.stream
        return coefficients(stream.problem, stream.model)

    @property
    def coef_(self) -> Array:
        """The weights of the latest model, a row for each score; before the first release independent of data."""
        return self._coefficients[0].copy()

    @property
    def intercept_(self) -> Any:
        """The intercepts of the latest model."""
        return self._coefficients[1]

    @property
    def releases_(self) -> Releases | None:
        """What the latest call released."""
        return self._fitted.stream.releases

    @property
    def renewal_(self) -> Renewal:
        """What a stream that follows this one starts from, by `renew=`: the released model and its cost; public."""
        opened = self._fitted
        return opened.stream.renewal_at(opened.guarantee)

    @property
    def drift_(self) -> Drift:
        """How far released statistics moved from window to window, in units of their noise (`taciturn.drift`)."""
        return known_drift(self._fitted.stream)

    @property
    def n_examples_(self) -> int:
        """Number of rows of this stream so far, those without influence included."""
        return self._fitted.stream.t

    @property
    def n_releases_(self) -> int:
        """Number of models that this stream has published."""
        return self._fitted.stream.k

    @_Learnt
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._fitted.features

    @_Learnt
    def feature_names_in_(self) -> Any:
        """Names of the features, if the first rows were a data frame."""
        if (names := self._fitted.names) is None:
            raise AttributeError("the features have no names: the first rows were no data frame.")
        return names

    @property
    def encoder_(self) -> ColumnEncoder:
        """How the declared columns become features: their names, places and bound (`taciturn.columns.encoder`)."""
        if (encoder := self._fitted.settings.encoder) is None:
            raise AttributeError("no columns were declared: the features are those of X.")
        return encoder

    @property
    def privacy_spent_(self) -> Spent:
        """The cost of this stream's releases so far, or of the search that chose this model, at the budget's delta."""
        opened = self._fitted
        return opened.stream.spent if opened.selection is None else spent_by(opened.selection)

    @property
    def spent_together_(self) -> Spent:
        """The cost of all fits of this estimator and its clones in this process, an upper bound for each row."""
        return self._fits.together

    @property
    def plan_(self) -> Plan:
        """The plan that this stream follows (`taciturn.plan.Plan`)."""
        return self._fitted.stream.plan

    @property
    def guarantee_(self) -> str:
        """What is guaranteed, and what is public besides."""
        opened = self._fitted
        labels = "" if opened.classes is None else f", the labels {', '.join(map(str, opened.classes))}"
        proven = promised(opened.stream.plan, opened.guarantee)
        if opened.selection is not None:
            proven += " This is for the search that chose this model, of which it is part."
        return (
            f"{proven} Public besides: how many rows there are ({opened.stream.t:,} so "
            f"far), the {opened.features} features' names{labels}, and every setting of this estimator. Each "
            "stream that fit opens has a budget of its own; on the same people they add."
        )

    def dump_stream(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint of the stream, to resume elsewhere. It holds secrets: protect it like the data.

        Beside the stream it has what is public of its features and labels: how many there are, and their names.
        """
        opened = self._fitted
        if opened.selection is not None:
            raise StateConflict(
                "this model was chosen by a search, and a checkpoint of its stream would not say so. Its stream has "
                "ended: pickle the model, which can predict."
            )
        private = opened.stream.plan.private
        counts = (opened.features, private.problem.dimension, private.horizon or 0, opened.batch)
        extra = {"opened": np.array(counts, dtype=np.int64)}
        for name, values in (("names", opened.names), ("classes", opened.classes)):
            if values is not None and (stored := _as_plain_array(values)) is not None:
                extra[name] = stored
        opened.stream.dump(path, extra)

    def load_stream(self, path: str | os.PathLike[str]) -> Self:
        """Resume a dumped stream: in the estimator that wrote it, in a pickled copy, or in a clone without a stream."""
        opened = self._opened or self._opened_as_in(path)
        resumed = opened._replace(stream=Stream.load(opened.stream.plan, path, self.ledger))
        self._count_fit(resumed.stream, resumed.stream.t)
        self._streams = (resumed,)
        return self

    def _opened_as_in(self, path: str | os.PathLike[str]) -> _Opened:
        """A stream by the settings of this estimator that has learnt nothing, for the features of a checkpoint."""
        extra = read_extra(path)
        if "opened" not in extra:
            raise StateConflict(f"{path} says nothing of its features. Load it into a pickled copy of its estimator.")
        classes = getattr(self, "classes", None)
        classes = extra.get("classes") if classes is None else np.unique(classes)
        if classes is None and not self._numbers:
            raise InvalidInput(
                "these labels are not in the checkpoint. State them, as in classes=[0, 1], and load again."
            )
        stated = self.get_params(deep=False)
        seen = type(self)(**stated)
        seen.n_features_in_, dimension, horizon, batch = map(int, extra["opened"])
        if "names" in extra:
            seen.feature_names_in_ = extra["names"].astype(object)
        settings = self._settings(classes)
        plan = settings.plan(dimension, horizon or None, batch=bool(batch))
        plan = self._with_meaning(plan, settings, classes, seen)
        return _Opened(Stream(plan, reserve=False), stated, self._stated(classes), classes, seen, bool(batch))

    def to_sklearn(self) -> Any:
        """The latest model as a fitted `sklearn.pipeline.Pipeline` of public steps, which needs no stream.

        Its steps are the declared columns (`taciturn.estimators.scaling.PublicColumns`), the maps that were stated or
        found (each a `PublicMap`), the clipping of rows (`NormClip`), and a linear model of scikit-learn with the
        released weights: `LogisticRegression`; `LinearSVC` for the hinge loss and for naive Bayes, whose scores are no
        probabilities; `SGDClassifier` for classes that were learnt by PQFTL, without their probabilities; `Ridge`,
        `HuberRegressor` or `QuantileRegressor` for numbers, in a `TransformedTargetRegressor` if `label_range` was
        stated, whose predictions are clipped. It predicts what this estimator predicts, on rows of any
        length, and can be pickled. It has nothing that is not published already, so it costs no privacy. Do not fit it
        again on private data: its steps are not private learners. There is no step for columns whose ranges are found
        privately.

        Returns
        -------
        Pipeline
            Fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from taciturn.estimators.sklearn import PrivateLinearSVC
        >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(10_000, 2))
        >>> model = PrivateLinearSVC(epsilon=1.0, feature_bound=1.0, classes=[0, 1], seed=1)
        >>> pipeline = model.fit(X, X[:, 0] > X[:, 1]).to_sklearn()
        >>> pipeline
        Pipeline(steps=[('clip', NormClip()), ('model', LinearSVC())])
        >>> bool((pipeline.predict(9 * X) == model.predict(9 * X)).all())
        True
        """
        from taciturn.estimators.to_sklearn import pipeline_of

        opened = self._fitted
        columns, encoder = opened.stated["columns"], opened.settings.encoder
        if encoder is not None and (encoder.found or encoder != encoder_of(columns)):
            raise InvalidInput(
                "to_sklearn() has no step for ranges of columns that are found privately, or hashed without signs, as "
                "for naive Bayes. Predict with this estimator, or with a pickle of it."
            )
        stream, target = opened.stream, opened.settings.target
        return pipeline_of(stream.problem, stream.model, opened.classes, opened.names, columns, target)

    def _scores(self, X: Any) -> Array:
        opened = self._fitted
        if (encoder := opened.settings.encoder) is not None:
            X = encoder.features(X)
        else:
            with own_errors():
                X = validate_data(self, X, reset=False, **self._accepted)
        opened.stream.warn_before_first(opened.stream.t, stacklevel=3)
        return np.asarray(opened.stream.problem.predict(opened.stream.model, X))

    def _html_repr(self) -> str:
        """The diagram of scikit-learn, and below it the budget of the stream and of the ledger, if there are any."""
        return str(super()._html_repr()) + self._cost_html()

    def _cost_html(self) -> str:
        """The budget of the stream, or of the search that chose this model, and of the ledger, if there are any."""
        opened = self._opened
        if opened is None or opened.selection is None:
            return budgets_html(None if opened is None else opened.stream, self.ledger)
        spent, seeded = spent_by(opened.selection), opened.selection.simulated
        title = f"Chosen by a search, which cost epsilon = {rounded_up(spent.epsilon)} at delta = {spent.delta:g}"
        tried = len(opened.selection.finals)
        told = facts([("rows learnt", f"{opened.stream.t:,}"), ("settings tried", f"{tried:,}")])
        title = f"Simulation: not private. {title}" if seeded else title
        return card(title, told, alarm=seeded) + budgets_html(None, self.ledger)

    def __sklearn_is_fitted__(self) -> bool:
        return self._opened is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = vars(self).get("method") not in _OF_ITERATES
        tags.non_deterministic = self.seed is None
        return tags

    def __getstate__(self) -> Any:
        state = {name: value for name, value in super().__getstate__().items() if name not in ("_streams", "_first")}
        state["_counted"] = self._fits
        if (opened := self._opened) is not None:
            state["_counted"] = StoredFits(self._fits)
            state["_streams"] = (opened._replace(stream=copy(opened.stream)),)
        return state

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if isinstance(counted := vars(self).get("_counted"), StoredFits):  # of a copy; a pickle has the counter itself
            self._counted = counted.fits

    def _count_with(self, other: PrivateLinearModel, selection: Selection) -> None:
        """Become a model that a search of this estimator has chosen: with its ledger, its counter and its cost."""
        self.set_params(ledger=other.ledger)
        self._counted = other._fits
        self._streams = (self._fitted._replace(selection=selection),)


_OF_ITERATES = ("igd", "giga")
"""Methods that learn dense rows, and two classes."""


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """Base class of the classifiers: converts labels to classes and back."""

    _numbers = False
    _loss: LossName | Literal["naive-bayes"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = vars(self).get("method") not in _OF_ITERATES
        return tags

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        feature_bound: float | Literal["private"] | None = None,
        columns: Mapping[Any, Any] | None = None,
        classes: Any = None,
        class_weight: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        method: MethodName = "auto",
        release: str | int = "auto",
        horizon: int | None = None,
        features: Features = "linear",
        radius: float | None = None,
        ridge: float | None = None,
        neighbours: Neighbours = "replace",
        rows_per_user: int | None = None,
        rows_per_release: int | None = None,
        apart: int = 1,
        period: int | ClockPeriod | None = None,
        without_id: WithoutId = "bad",
        forget: Forget | None = None,
        renew: Renewal | None = None,
        precondition: bool = False,
        ledger: LedgerLike | None = None,
        seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.columns = columns
        self.classes = classes
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.method = method
        self.release = release
        self.horizon = horizon
        self.features = features
        self.radius = radius
        self.ridge = ridge
        self.neighbours = neighbours
        self.rows_per_user = rows_per_user
        self.rows_per_release = rows_per_release
        self.apart = apart
        self.period = period
        self.without_id = without_id
        self.forget = forget
        self.renew = renew
        self.precondition = precondition
        self.ledger = ledger
        self.seed = seed

    @known_keywords
    def fit(self, X: Any, y: Any, users: Any = None) -> Self:
        """Learn from a data set as a new stream; `users` has an id for each row, if `rows_per_user` is stated."""
        return self._learn_all(X, y, self.classes, users)

    @known_keywords
    def partial_fit(self, X: Any, y: Any, classes: Any = None, users: Any = None) -> Self:
        """Learn from the next rows of one stream; any number of calls costs the stated budget once.

        The first call needs all possible labels: here, or in the constructor. `users` has an id for each row, if
        `rows_per_user` is stated; a user may come again in later calls, and all rows are counted together.
        """
        classes = self.classes if classes is None else classes
        if classes is None and self._opened is None:
            raise InvalidInput("the first partial_fit needs classes, all possible labels. They are public.")
        return self._learn_more(X, y, classes, users)

    @property
    def classes_(self) -> Any:
        """All possible labels, in order."""
        return self._fitted.classes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on these rows. It is computed from exact rows, and not private."""
        with own_errors():
            return float(super().score(X, y, sample_weight))

    def decision_function(self, X: Any) -> Array:
        """Scores: positive for the second of two classes, or one for each class."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """The class of each row by the latest model; rows are clipped as in learning."""
        scores = self._scores(X)
        return self.classes_[classes_of(scores)]

    def _settings(self, classes: Any) -> Settings:
        left_out = ("horizon", "classes", "ledger", "columns")
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in left_out}
        if "class_weight" in settings:
            settings["class_weight"] = weights_of(settings["class_weight"], classes)
        settings = declared_settings(settings, self._encoder, None, classes=True)
        return Settings(self._loss, **settings, classes=len(classes))

    def _class_set(self, y: Any, classes: Any) -> Any:
        check_classification_targets(y)
        if classes is None:
            warnings.warn(
                "the set of labels was inferred from y, and is published. State it, as in classes=[0, 1], if y could "
                "show a label that only private data has.",
                PrivacyWarning,
                stacklevel=6,
            )
        values = np.unique(y if classes is None else classes)
        if len(values) < 2:
            raise InvalidInput(
                f"a classifier needs two classes or more, got {len(values)} class. State all of them, as in "
                "classes=[0, 1]."
            )
        return values

    def _encoded(self, y: Any, classes: Any) -> Any:
        """The labels of declared classes; other classes are rejected."""
        try:
            at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
            declared = bool(np.all(classes[at] == y))
        except TypeError:  # texts among numbers
            declared = False
        if not declared:
            raise InvalidInput(
                "y has a label that was not declared. State all of them, as in classes=[0, 1], before the first "
                "example: they are public."
            )
        return labels_of(at, len(classes))


def _check_there(y: Any) -> None:
    """Reject labels that are missing: None, NaN, and what pandas has for them."""
    try:
        values = np.asarray(y)
    except (ValueError, TypeError):  # no column of labels, which is rejected later
        return
    if values.dtype.kind == "f":
        missing = bool(np.isnan(values).any())
    else:
        flat = values.ravel() if values.dtype.kind == "O" and values.ndim else ()
        missing = any(type(value) is not str and text_of(value) is None for value in flat)
    if missing:
        raise InvalidInput(
            "y has a label that is missing, None or NaN. Leave such rows out, of X and users, too: which rows these "
            "are is not covered by the guarantee. In taciturn learn, with --bad-rows zero, they have no influence."
        )


def _reject_times(X: Any) -> None:
    """Reject columns of dates and of durations, which would be read as nanoseconds."""
    kinds = getattr(X, "dtypes", None)
    kinds = [getattr(X, "dtype", None)] if kinds is None else kinds
    if any(getattr(kind, "kind", "-") in "mM" for kind in kinds):
        raise NotANumber(_NO_NUMBER)


def _check_numeric(y: Any) -> None:
    """Reject labels that are texts, times, lists or dicts, and quote none of them."""
    try:
        values = np.asarray(y)
        if values.dtype.kind in "mM":
            raise InvalidInput(_TIMES)
        if values.dtype.kind not in "biuf":
            values.astype(np.float64)
    except InvalidInput:
        raise
    except (ValueError, TypeError) as error:
        if isinstance(error, TypeError):
            raise InvalidInput(_TIMES) from None
        if "could not convert string to float" in str(error):
            raise InvalidInput(
                "y has a text where a number is expected. Give numbers; or use PrivateLogisticRegression, which "
                "predicts classes."
            ) from None


def spent_by(selection: Selection) -> Spent:
    """What a search has cost."""
    return Spent(selection.guarantee.epsilon, selection.privacy.delta)


def _as_plain_array(values: Any) -> Any:
    """Names or labels as an array that needs no pickle; None if there is none."""
    array = np.asarray(values)
    if array.dtype == object and all(isinstance(value, str) for value in array):
        array = array.astype(str)
    return None if array.dtype == object else array


def _check_users(unit: Unit, users: Any) -> None:
    """Reject ids that no bound is stated for, and a bound without ids, in the words of an estimator."""
    if users is not None and not isinstance(unit, User):
        raise InvalidInput(
            "users= has no effect where the unit of privacy is an example. State rows_per_user=4, the most rows of a "
            "user that count, or leave users= out."
        )
    if users is None and isinstance(unit, User):
        raise InvalidInput("rows_per_user is stated: give users=, an id for each row.")


def _few_blocks(settings: Settings, plan: Plan) -> str | None:
    """A warning if a bound between two releases leaves most rows of a user without influence, as there are few."""
    rows, each = settings.rows_per_user, settings.rows_per_release
    if rows is None or each is None:
        return None
    stages = len(plan.private.stages)
    most = each * (plan.releases + stages)
    if most >= rows:
        return None
    count = f"{plan.releases} release{'s' * (plan.releases > 1)}" + f" and {stages} stages that find ranges" * (
        stages > 0
    )
    return (
        f"rows_per_release={each} lets at most {most} rows of a user count, of rows_per_user={rows}: these rows are "
        f"learnt in {count}, each of which counts {each} of a user. Leave rows_per_release out of fit, or state "
        "release= for more of them."
    )


@contextmanager
def own_errors() -> Iterator[None]:
    """Errors of scikit-learn that quote a value, or advise what would not be private, in words of our own."""
    try:
        yield
    except (ValueError, TypeError) as error:
        for beginning, sentence in _OWN.items():
            if str(error).startswith(beginning):
                raise (NotANumber if isinstance(error, TypeError) else InvalidInput)(sentence) from None
        raise


_NAN = (
    "X contains NaN, a missing value, and this estimator was told of none. Declare what a missing value is: by "
    'columns={"age": {"range": [0, 100]}, ...} for a table, or by PublicScaler(ranges, missing="middle") before the '
    'estimator; or use feature_bound="private", where it takes the center. What is learnt from the data to fill it, or '
    "which rows are dropped, would not be private."
)
_TEXT = (
    "X has a text where a number is expected, or y has. Declare what the columns of X are, as in "
    'columns={"town": {"categories": ["Oslo", "Rome"]}, "note": {"text": {"hash": 1024}}}; labels that are texts are '
    "for classifiers."
)
_COMPLEX = "Complex data not supported. Give real numbers: the real and the imaginary parts, say, as two columns."
_NO_NUMBER = (
    "X has a date, a list or a dict, where an argument must be a string of digits or a number. Declare what the "
    'columns of X are, as in columns={"day": {"date": ["2015-01-01", "2030-01-01"]}}; or give '
    "numbers, in a range that is public."
)
_TIMES = (
    "y has something else than numbers, such as dates, durations, lists or dicts. Give numbers, such as days "
    "since a public date: (y - first) / pd.Timedelta(days=1)."
)
_FLAT = (
    "X must be 2D, a row for each example. Reshape your data: X.reshape(-1, 1) if it has one feature, or "
    "X.reshape(1, -1) if it is one row."
)
_OTHER_LABELS = (
    "y has labels of another kind than the classes, or is not a column of labels. Give one class for each row."
)
_OWN = {
    "Input X contains NaN": _NAN,
    "could not convert string to float": _TEXT,
    "Complex data not supported": _COMPLEX,
    "Cannot cast": _NO_NUMBER,
    "float() argument must be": _NO_NUMBER,
    "The DType <class 'numpy.dtypes.": _NO_NUMBER,
    "Expected 2D array, got": _FLAT,
    "Expected a 2-dimensional container": _FLAT,
    "Mix of label input types": _OTHER_LABELS,
    "The 'y_true' parameter": _OTHER_LABELS,
}
"""How errors of scikit-learn begin that quote values of the data, and what is said instead."""
