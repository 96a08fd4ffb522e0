"""Base classes of the private linear models for river: a stream, opened at its first use, and its public attributes."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from taciturn.accounting.ledger import LedgerLike
from taciturn.columns.encoder import encoder_of
from taciturn.columns.labels import Classes, Labels, classes_of
from taciturn.columns.target import Number
from taciturn.drift import Drift
from taciturn.errors import InvalidInput, StateConflict, TaciturnError, needs_extra
from taciturn.estimators.dict_rows import features_of
from taciturn.estimators.fits import Fits
from taciturn.estimators.keywords import Keywords, hides_others, known_keywords, reject_unknown
from taciturn.estimators.meaning import with_meaning
from taciturn.estimators.river_stream import Feed
from taciturn.estimators.settings import LossName, MethodName, Settings, declared_settings, weights_of
from taciturn.estimators.stream import PrivacyWarning, Stream, budgets_html, known_drift, promised
from taciturn.kernel.accounting.cost import Spent
from taciturn.kernel.accounting.unit import ClockPeriod, Neighbours, WithoutId
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.predict import coefficients
from taciturn.plan import Features, Forget, Plan
from taciturn.renewal import Renewal

try:
    from river import base
except ImportError as missing:
    raise ImportError(needs_extra("taciturn.estimators.river", "river")) from missing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PrivateClassifier", "PrivateLinear", "base"]

_OWN_STREAM = "this model learns from a stream of its own. Load into a clone: model.clone()."


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinear(Keywords, base.Estimator):
    """A private linear model with river's methods; copies and pickles can predict, and only the original learns.

    Parameters are those of `taciturn.estimators.river.PrivateLogisticRegression`, but for the classes.
    """

    features: Sequence[Hashable] | None = None
    buckets: int | None = None
    columns: Mapping[Any, Any] | None = None
    epsilon: float | None = None
    delta: float = 1e-6
    feature_bound: float | Literal["private"] | None = None
    fit_intercept: bool = True
    method: MethodName = "auto"
    release: str | int = "auto"
    horizon: int | None = None
    feature_map: Features = "linear"
    radius: float | None = None
    ridge: float | None = None
    neighbours: Neighbours = "replace"
    on_bad: Literal["raise", "zero"] = "raise"
    user: Hashable | None = None
    rows_per_user: int | None = None
    rows_per_release: int | None = None
    apart: int = 1
    period: int | ClockPeriod | None = None
    without_id: WithoutId = "bad"
    forget: Forget | None = None
    renew: Renewal | None = None
    precondition: bool = False
    ledger: LedgerLike | None = None
    seed: int | None = None
    _open: Feed | None = field(default=None, init=False)
    _signed: ClassVar[bool] = True

    @hides_others
    def learn_one(self, x: Mapping[Any, Any], y: Any, **others: Any) -> None:
        """Learn from one example, or reject it before anything changes."""
        if others:
            reject_unknown(type(self), "learn_one", others)
        (self._open or self._reserved_feed).learn_one(x, y)

    @known_keywords
    def learn_many(self, X: pd.DataFrame, y: pd.Series[Any]) -> None:
        """Learn from the rows of a data frame, as `learn_one` would from one after the other, but all or none."""
        (self._open or self._reserved_feed).learn_many(X, y)

    @property
    def weights(self) -> dict[Hashable, Any]:
        """The weights of the current model, by names of (mapped) features or numbers of buckets; public."""
        names = self._feed.features.names
        if (features := self._feed.problem.features) is not None:
            names = features.names([str(name) for name in names])
        rows, _ = self._coefficients
        weights: dict[Hashable, Any] = self._by_class([dict(zip(names, row, strict=True)) for row in rows.tolist()])
        return weights

    @property
    def intercept(self) -> Any:
        """The intercept of the current model; public."""
        return self._by_class(self._coefficients[1].tolist())

    @property
    def privacy_spent(self) -> Spent:
        """What the releases so far cost: an epsilon, rounded up, at the budget's delta."""
        return self._feed.current().spent

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for which neighbours, and what is public."""
        return (
            f"{promised(self.plan)} Public besides: every setting of this model, names of features and classes "
            "among them. Each clone opens a stream with a budget of its own; on the same people they add."
        )

    @property
    def n_examples(self) -> int:
        """Number of examples so far, those without influence included; public."""
        return self._feed.examples

    @property
    def n_releases(self) -> int:
        """Number of models published so far; public."""
        return self._feed.current().k

    @property
    def renewal(self) -> Renewal:
        """What a stream that follows this one starts from, by `renew=`: the released model and its cost; public."""
        return self._feed.current().renewal

    @property
    def drift(self) -> Drift:
        """How far released statistics moved from window to window, in units of their noise (`taciturn.drift`)."""
        return known_drift(self._feed.current())

    @property
    def plan(self) -> Plan:
        """How it learns: method, mechanism, schedule, and the noise to expect; public."""
        return self._feed.stream.plan

    def dump_stream(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint of the stream, to resume elsewhere. It holds secrets: protect it like the data."""
        self._feed.dump(path)

    def load_stream(self, path: str | os.PathLike[str]) -> Self:
        """Resume a dumped stream, in a copy of the model that wrote it or in a clone that has not learnt yet."""
        before = self._open
        if before is not None and before.learns and before.examples:
            raise StateConflict(_OWN_STREAM)
        feed = self._begin(lambda plan: Stream.load(plan, path, self.ledger))
        if before is not None:
            self._open = feed
        elif self.__dict__.setdefault("_open", feed) is not feed:
            raise StateConflict(_OWN_STREAM)
        return self

    @property
    @abstractmethod
    def _settings(self) -> Settings:
        """The settings of the stream."""

    @property
    @abstractmethod
    def _labels(self) -> Labels:
        """How labels become numbers."""

    def _settings_for(self, loss: LossName | Literal["naive-bayes"], **more: Any) -> Settings:
        stated = {setting.name for setting in fields(Settings)} & set(vars(self)) - {
            "loss",
            "classes",
            "features",
            "class_weight",
        }
        more["features"] = self.feature_map  # the parameter features has the names of the raw ones
        settings = {name: getattr(self, name) for name in stated} | more
        encoder = None if self.columns is None else encoder_of(self.columns)
        return Settings(loss, **declared_settings(settings, encoder, self._target, classes=bool(more.get("classes"))))

    @property
    def _target(self) -> Number | None:
        """How labels become numbers, if their range is stated."""
        return None

    @property
    def _feed(self) -> Feed:
        """The buffered stream, opened at its first use, when all settings are there."""
        if self._open is None:  # one atomic step sets it, so that threads and signal handlers share one
            self.__dict__.setdefault("_open", self._begin(partial(Stream, ledger=self.ledger, reserve=False)))
        assert self._open is not None
        return self._open

    @property
    def _reserved_feed(self) -> Feed:
        """The same, when the first row comes: a stream that its ledger rejects is rejected now, and forgotten."""
        feed = self._feed
        if self.ledger is not None:
            try:
                feed.stream.reserve()
            except TaciturnError:
                if feed.stream.rejected:
                    self.__dict__.pop("_open", None)
                raise
        return feed

    def _begin(self, stream: Callable[[Plan], Stream]) -> Feed:
        """A buffered stream by the settings of this model."""
        features = features_of(self.features, self.buckets, self.user, self._signed, self.columns, self.on_bad)
        if (self.user is None) != (self.rows_per_user is None):
            raise InvalidInput(
                "user= names the key that has the id of an example's user, and rows_per_user= bounds how many examples "
                'of a user count. State both, as in user="customer_id", rows_per_user=4, or neither.'
            )
        labels = self._labels
        settings = self._settings
        plan = with_meaning(
            settings.plan(features.dimension, self.horizon),
            settings,
            None if self.columns is None else encoder_of(self.columns),
            self._target,
            getattr(self, "classes", None),
            features.names if self.buckets is None else ["buckets", self.buckets],
        )
        for sentence in (plan.warning, plan.delta_warning):
            if sentence is not None:
                warnings.warn(sentence, PrivacyWarning, stacklevel=4)
        feed = Feed(stream(plan), features, labels, self.user)
        feed.on_first = partial(self._count, feed)
        return feed

    def _count(self, feed: Feed) -> None:
        """Count a stream with those of all clones, once, unless it is a simulation."""
        private = feed.stream.plan.private
        if private.seed is not None:
            return
        about = (str(feed.stream.lineage), private.neighbours, private.unit.name)
        self._fits.add(1, private.total_cost, private.privacy.delta, *about)
        if self.ledger is None:
            self._fits.warn_of_streams(stacklevel=6)

    @property
    def _fits(self) -> Fits:
        """The counter that this model shares with its clones."""
        fits: Fits | None = vars(self).get("_counted")
        return self.__dict__.setdefault("_counted", Fits()) if fits is None else fits

    @property
    def spent_together(self) -> Spent:
        """The cost of all streams of this model and its clones in this process, as in an ensemble of them.

        It is that of an example which each of them learns once.
        """
        return self._fits.together

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """A model of these parameters that has not learnt; it shares a counter of costs with this one."""
        made: Self = super().clone(new_params, include_attributes)
        vars(made)["_counted"] = self._fits
        return made

    @property
    def _coefficients(self) -> tuple[Array, Array]:
        """Weights and intercepts of the current model, a row and a number for each score."""
        stream = self._feed.current()
        return coefficients(stream.problem, stream.model)

    def _by_class(self, outputs: list[Any]) -> Any:
        """The value of the only output; a dict by class, if there are several."""
        return outputs[0]

    def _repr_html_(self) -> str:
        """The diagram of river, and below it the budget of the stream and of the ledger, if there are any."""
        opened = self._open
        return str(super()._repr_html_()) + budgets_html(None if opened is None else opened.stream, self.ledger)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_counted"}  # which is this process's
        return state if self._open is None else {**state, "_open": copy(self._open)}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        vars(made).update(deepcopy(self.__getstate__(), memo), _counted=self._fits)
        return made


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(PrivateLinear, base.MiniBatchClassifier):
    """A classifier by the sign of a score, or by the largest of several."""

    classes: Sequence[Hashable] = (False, True)
    class_weight: Mapping[Any, float] | None = None
    _loss: ClassVar[LossName | Literal["naive-bayes"]]

    def predict_one(self, x: Mapping[Any, Any]) -> Any:  # type: ignore[override]  # x is all it needs
        """The class that the current model predicts."""
        scores = (self._open or self._feed).scores(x)
        return self.classes[int(scores > 0.0 if len(self.classes) == 2 else np.argmax(scores))]

    def predict_many(self, X: pd.DataFrame) -> pd.Series[Any]:
        """The classes of the rows of a data frame."""
        import pandas as pd

        return pd.Series([self.classes[i] for i in classes_of(self._feed.scores_many(X))], index=X.index)

    @property
    def _settings(self) -> Settings:
        weights = weights_of(self.class_weight, self.classes)
        return self._settings_for(self._loss, classes=len(self.classes), class_weight=weights)

    @property
    def _labels(self) -> Classes:
        return Classes(self.classes)

    @property
    def _multiclass(self) -> bool:
        return len(self.classes) > 2

    def _by_class(self, outputs: list[Any]) -> Any:
        return outputs[0] if len(outputs) == 1 else dict(zip(self.classes, outputs, strict=True))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"buckets": 16, "epsilon": 1.0, "feature_bound": 1.0}
