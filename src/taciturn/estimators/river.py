"""Private linear models for river: `learn_one`, `predict_one`, pipelines, and one guarantee for the whole stream.

They learn as river's models do, an example at a time, and predict with released models only. Names of features,
classes and bounds, which river's models infer from data, are declared here, because a model publishes them. Without
`horizon` most methods end at 2²³ examples, unless `release` is a number or `forget` is stated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from taciturn.columns.labels import Labels, Numbers, probabilities
from taciturn.columns.scales import ScaleName
from taciturn.columns.target import Number
from taciturn.estimators.river_base import PrivateClassifier, PrivateLinear, base
from taciturn.estimators.river_scaling import NormClip, PublicScaler
from taciturn.estimators.settings import LossName, Settings, declared_labels
from taciturn.kernel.problem.losses import Logistic

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NormClip",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateNaiveBayes",
    "PublicScaler",
]


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearRegression(PrivateLinear, base.MiniBatchRegressor):
    """Private linear regression from a stream of examples.

    Parameters
    ----------
    features : sequence of str, optional
        The names of features, each with a weight of its own. A name that an example lacks is 0 in it; one that was not
        declared is ignored. `"city=Rome"` stands for the text `"Rome"` under `"city"`.
    buckets : int, optional
        Instead: how many weights there are, to which any names are hashed; a text counts as the name `"city=Rome"`.
    columns : dict, optional
        Instead: what each name holds, in the words of the contract file, as in `{"age": {"range": [0, 100]}, "town":
        {"categories": ["Oslo", "Rome"]}, "note": {"text": {"hash": 1024}}, "height": {"range": "private"}}`. What an
        example lacks is missing in it; other names are rejected.
    epsilon, delta : float
        The total budget of everything that the stream publishes.
    feature_bound : float or "private"
        The largest norm of an example's features; longer ones are clipped. "private" finds the ranges and scales of all
        features in the first examples, at no further cost; no model is published before. It follows from `columns`, if
        those are stated.
    fit_intercept : bool
        Whether there is a constant feature.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        How to learn; auto asks `taciturn.plan`.
    release : {"auto", "geometric", "every"} or int
        When models are published: by the plan, at rounds that grow by a tenth, after each example, or after every k.
    horizon : int, optional
        How many examples there will be at most. Later ones are rejected.
    feature_map : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are, random features of them by a public rule, so many random
        features, or the images of a public map. (scikit-learn's estimators call it `features`.)
    radius, ridge : float, optional
        By the rules of `taciturn.estimators.settings`, if None.
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    on_bad : {"raise", "zero"}
        What to do with an example whose names, values, id or class cannot be read as declared: reject it, or count it
        as an example without influence.
    user : hashable, optional
        The key of an example, or the column of a frame, that has the id of its user; it is no feature. State it with
        `rows_per_user`.
    rows_per_user : int, optional
        Protect users, not examples: the most examples of a user that count. Later ones have no influence. Without it,
        the unit of privacy is one example.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's examples to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the examples of each period anew: of so many examples of the stream, or of the clock when they are learnt.
        The guarantee is then about what a user contributes in one period.
    without_id : {"bad", "own"}
        An example without an id is a bad one, or a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the horizon is used to find a map after which features are spread evenly.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private.
    label_bound : float or "private"
        The largest absolute value of a label; larger ones are clipped. "private" finds it beside the features' ranges.
    label_range : (float, float) or "private", optional
        In place of it: the lowest and the highest label. Labels are centred and clipped inside, and predictions are in
        their units, within the range.
    label_scale : {"linear", "log", "symlog"}
        With a range: learn logarithms of labels, so that errors count by their ratio.
    loss : {"squared", "absolute", "huber", "quantile"}
        The loss to minimise.
    quantile : float
        The level, if the loss is a quantile.
    huber_width : float, optional
        Where Huber's loss becomes linear; a tenth of the label bound if None.

    Attributes
    ----------
    weights, intercept : dict, float
        The current model, by names of (mapped) features or numbers of buckets.
    privacy_spent : Spent
        What the releases so far cost.
    guarantee : str
        What is guaranteed, and what is public besides.
    plan : Plan
        How it learns.
    n_examples, n_releases : int
        How many so far in this stream.

    Examples
    --------
    >>> model = PrivateLinearRegression(features=["a"], epsilon=1.0, feature_bound=1.0, label_bound=1.0, seed=1)
    >>> for i in range(10_000):
    ...     model.learn_one({"a": i % 2}, 0.8 * (i % 2))
    >>> round(model.predict_one({"a": 1}), 1)
    0.8
    """

    label_bound: float | Literal["private"] | None = None
    label_range: tuple[float, float] | Literal["private"] | None = None
    label_scale: ScaleName = "linear"
    loss: LossName = "squared"
    quantile: float = 0.5
    huber_width: float | None = None

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """The prediction of the current model."""
        feed = self._open or self._feed
        score = float(feed.scores(x))
        return feed.labels.prediction(score) if isinstance(feed.labels, Number) else score

    def predict_many(self, X: pd.DataFrame) -> pd.Series[float]:
        """The predictions for the rows of a data frame."""
        import pandas as pd

        labels, scores = self._feed.labels, self._feed.scores_many(X)
        return pd.Series(labels.decode(scores) if isinstance(labels, Number) else scores, index=X.index)

    @property
    def intercept(self) -> Any:
        """The intercept of the current model, the middle of a stated range of labels included; public."""
        target = self._target
        return super().intercept + (0.0 if target is None else target.middle)

    @property
    def _settings(self) -> Settings:
        bound = declared_labels(self.label_bound, self.label_range, self.label_scale)[1]
        return self._settings_for(self.loss, label_bound=bound)

    @property
    def _target(self) -> Number | None:
        return declared_labels(self.label_bound, self.label_range, self.label_scale)[0]

    @property
    def _labels(self) -> Labels:
        return self._target or Numbers()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"buckets": 16, "epsilon": 1.0, "feature_bound": 1.0, "label_bound": 1.0}


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearSVC(PrivateClassifier):
    """Private linear classification by the hinge loss, with any number of classes; without probabilities.

    Parameters
    ----------
    features : sequence of str, optional
        The names of features, each with a weight of its own. A name that an example lacks is 0 in it; one that was not
        declared is ignored. `"city=Rome"` stands for the text `"Rome"` under `"city"`.
    buckets : int, optional
        Instead: how many weights there are, to which any names are hashed; a text counts as the name `"city=Rome"`.
    columns : dict, optional
        Instead: what each name holds, in the words of the contract file, as in `{"age": {"range": [0, 100]}, "town":
        {"categories": ["Oslo", "Rome"]}, "note": {"text": {"hash": 1024}}, "height": {"range": "private"}}`. What an
        example lacks is missing in it; other names are rejected.
    epsilon, delta : float
        The total budget of everything that the stream publishes.
    feature_bound : float or "private"
        The largest norm of an example's features; longer ones are clipped. "private" finds the ranges and scales of all
        features in the first examples, at no further cost; no model is published before. It follows from `columns`, if
        those are stated.
    fit_intercept : bool
        Whether there is a constant feature.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        How to learn; auto asks `taciturn.plan`.
    release : {"auto", "geometric", "every"} or int
        When models are published: by the plan, at rounds that grow by a tenth, after each example, or after every k.
    horizon : int, optional
        How many examples there will be at most. Later ones are rejected.
    feature_map : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are, random features of them by a public rule, so many random
        features, or the images of a public map. (scikit-learn's estimators call it `features`.)
    radius, ridge : float, optional
        By the rules of `taciturn.estimators.settings`, if None.
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    on_bad : {"raise", "zero"}
        What to do with an example whose names, values, id or class cannot be read as declared: reject it, or count it
        as an example without influence.
    user : hashable, optional
        The key of an example, or the column of a frame, that has the id of its user; it is no feature. State it with
        `rows_per_user`.
    rows_per_user : int, optional
        Protect users, not examples: the most examples of a user that count. Later ones have no influence. Without it,
        the unit of privacy is one example.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's examples to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the examples of each period anew: of so many examples of the stream, or of the clock when they are learnt.
        The guarantee is then about what a user contributes in one period.
    without_id : {"bad", "own"}
        An example without an id is a bad one, or a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the horizon is used to find a map after which features are spread evenly.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private.
    classes : sequence
        Every class there may be: none is learnt from the stream. Of two, the second is the positive one.
    class_weight : dict, optional
        A public weight for each class, 1 for those left out, as in `{"fraud": 20.0}`: how much a wrong row of the class
        counts. They are divided by the largest, and cost nothing. Never computed from data: counts of labels are
        private. Not with `method="pqftl"`.

    Attributes
    ----------
    weights, intercept : dict, float
        The current model, by names of (mapped) features or numbers of buckets; by class, if there are several scores.
    privacy_spent : Spent
        What the releases so far cost.
    guarantee : str
        What is guaranteed, and what is public besides.
    plan : Plan
        How it learns.
    n_examples, n_releases : int
        How many so far in this stream.

    Examples
    --------
    >>> model = PrivateLinearSVC(buckets=4, classes=["ham", "spam"], epsilon=1.0, feature_bound=1.0, seed=1)
    >>> for word in ["hello", "prize"] * 1_000:
    ...     model.learn_one({"word": word}, "spam" if word == "prize" else "ham")
    >>> model.predict_one({"word": "hello"}), model.predict_one({"word": "prize"})
    ('ham', 'spam')
    """

    _loss: ClassVar[LossName] = "hinge"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(PrivateClassifier):
    """Private logistic regression, with any number of classes, from a stream of examples.

    Parameters
    ----------
    features : sequence of str, optional
        The names of features, each with a weight of its own. A name that an example lacks is 0 in it; one that was not
        declared is ignored. `"city=Rome"` stands for the text `"Rome"` under `"city"`.
    buckets : int, optional
        Instead: how many weights there are, to which any names are hashed; a text counts as the name `"city=Rome"`.
    columns : dict, optional
        Instead: what each name holds, in the words of the contract file, as in `{"age": {"range": [0, 100]}, "town":
        {"categories": ["Oslo", "Rome"]}, "note": {"text": {"hash": 1024}}, "height": {"range": "private"}}`. What an
        example lacks is missing in it; other names are rejected.
    epsilon, delta : float
        The total budget of everything that the stream publishes.
    feature_bound : float or "private"
        The largest norm of an example's features; longer ones are clipped. "private" finds the ranges and scales of all
        features in the first examples, at no further cost; no model is published before. It follows from `columns`, if
        those are stated.
    fit_intercept : bool
        Whether there is a constant feature.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        How to learn; auto asks `taciturn.plan`.
    release : {"auto", "geometric", "every"} or int
        When models are published: by the plan, at rounds that grow by a tenth, after each example, or after every k.
    horizon : int, optional
        How many examples there will be at most. Later ones are rejected.
    feature_map : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are, random features of them by a public rule, so many random
        features, or the images of a public map. (scikit-learn's estimators call it `features`.)
    radius, ridge : float, optional
        By the rules of `taciturn.estimators.settings`, if None.
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    on_bad : {"raise", "zero"}
        What to do with an example whose names, values, id or class cannot be read as declared: reject it, or count it
        as an example without influence.
    user : hashable, optional
        The key of an example, or the column of a frame, that has the id of its user; it is no feature. State it with
        `rows_per_user`.
    rows_per_user : int, optional
        Protect users, not examples: the most examples of a user that count. Later ones have no influence. Without it,
        the unit of privacy is one example.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's examples to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the examples of each period anew: of so many examples of the stream, or of the clock when they are learnt.
        The guarantee is then about what a user contributes in one period.
    without_id : {"bad", "own"}
        An example without an id is a bad one, or a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the horizon is used to find a map after which features are spread evenly.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private.
    classes : sequence
        Every class there may be: none is learnt from the stream. Of two, the second is the positive one.
    class_weight : dict, optional
        A public weight for each class, 1 for those left out, as in `{"fraud": 20.0}`: how much a wrong row of the class
        counts. They are divided by the largest, and cost nothing. Never computed from data: counts of labels are
        private. Not with `method="pqftl"`.

    Attributes
    ----------
    weights, intercept : dict, float
        The current model, by names of (mapped) features or numbers of buckets; by class, if there are several scores.
    privacy_spent : Spent
        What the releases so far cost.
    guarantee : str
        What is guaranteed, and what is public besides.
    plan : Plan
        How it learns.
    n_examples, n_releases : int
        How many so far in this stream.

    Examples
    --------
    >>> scaler = PublicScaler(ranges={"age": (0, 100), "income": (0, 200_000)})
    >>> model = PrivateLogisticRegression(features=["age", "income"], epsilon=1.0, feature_bound=1.5, seed=1)
    >>> pipeline = scaler | model
    >>> for i in range(2_000):
    ...     pipeline.learn_one({"age": i % 100, "income": 50_000}, i % 100 > 50)
    >>> pipeline.predict_one({"age": 90, "income": 50_000}), pipeline.predict_one({"age": 10, "income": 50_000})
    (True, False)
    >>> model.n_examples, model.n_releases, model.privacy_spent.epsilon <= 1.0
    (2000, 20, True)
    """

    _loss: ClassVar[LossName] = "logistic"

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]  # x is all it needs
        """The probability of each class, by the current model."""
        feed = self._open or self._feed
        scores = feed.scores(x)
        problem = feed.problem
        if isinstance(problem.loss, Logistic):
            return {self.classes[0]: _sigmoid(-scores), self.classes[1]: _sigmoid(scores)}
        return dict(zip(self.classes, probabilities(problem, np.array([scores]))[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class for the rows of a data frame."""
        import pandas as pd

        shares = probabilities(self._feed.problem, self._feed.scores_many(X))
        return pd.DataFrame(shares, index=X.index, columns=list(self.classes))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNaiveBayes(PrivateClassifier):
    """Private naive Bayes for counts, of words for instance, with any number of classes, from a stream of examples.

    It learns the sums of the examples of each class (`taciturn.ClassSums`). A negative value counts as 0, and names are
    hashed without signs. There are no probabilities.

    Parameters
    ----------
    features : sequence of str, optional
        The names of features, each with a weight of its own. A name that an example lacks is 0 in it; one that was not
        declared is ignored. `"city=Rome"` stands for the text `"Rome"` under `"city"`.
    buckets : int, optional
        Instead: how many weights there are, to which any names are hashed; a text counts as the name `"city=Rome"`.
    columns : dict, optional
        Instead: what each name holds, in the words of the contract file, of columns whose features are not negative:
        categories, bins, hashed values and texts, which are hashed without signs. What an example lacks is missing in
        it; other names are rejected.
    epsilon, delta : float
        The total budget of everything that the stream publishes.
    feature_bound : float or "private"
        The largest norm of an example's features; longer ones are clipped. "private" finds the ranges and scales of all
        features in the first examples, at no further cost; no model is published before. It follows from `columns`, if
        those are stated.
    fit_intercept : bool
        Whether there is a constant feature.
    release : {"auto", "geometric", "every"} or int
        When models are published: by the plan, at rounds that grow by a tenth, after each example, or after every k.
    horizon : int, optional
        How many examples there will be at most. Later ones are rejected.
    feature_map : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are, random features of them by a public rule, so many random
        features, or the images of a public map. (scikit-learn's estimators call it `features`.)
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    on_bad : {"raise", "zero"}
        What to do with an example whose names, values, id or class cannot be read as declared: reject it, or count it
        as an example without influence.
    user : hashable, optional
        The key of an example, or the column of a frame, that has the id of its user; it is no feature. State it with
        `rows_per_user`.
    rows_per_user : int, optional
        Protect users, not examples: the most examples of a user that count. Later ones have no influence. Without it,
        the unit of privacy is one example.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's examples to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the examples of each period anew: of so many examples of the stream, or of the clock when they are learnt.
        The guarantee is then about what a user contributes in one period.
    without_id : {"bad", "own"}
        An example without an id is a bad one, or a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the horizon is used to find a map after which features are spread evenly.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private.
    classes : sequence
        Every class there may be: none is learnt from the stream. Of two, the second is the positive one.

    Attributes
    ----------
    weights, intercept : dict, float
        The current model, by names of (mapped) features or numbers of buckets; by class, if there are several scores.
    privacy_spent : Spent
        What the releases so far cost.
    guarantee : str
        What is guaranteed, and what is public besides.
    plan : Plan
        How it learns.
    n_examples, n_releases : int
        How many so far in this stream.

    Examples
    --------
    >>> model = PrivateNaiveBayes(buckets=2**12, classes=["ham", "spam"], epsilon=1.0, feature_bound=1.0, seed=1)
    >>> for text in ["see you at noon", "a prize for you"] * 2_000:
    ...     model.learn_one({word: 1 for word in text.split()}, "spam" if "prize" in text else "ham")
    >>> model.predict_one({"noon": 1}), model.predict_one({"prize": 1})
    ('ham', 'spam')
    """

    method: Literal["auto"] = field(default="auto", init=False)
    class_weight: None = field(default=None, init=False)
    radius: None = field(default=None, init=False)
    ridge: None = field(default=None, init=False)
    _loss: ClassVar[Literal["naive-bayes"]] = "naive-bayes"
    _signed: ClassVar[bool] = False

    def predict_proba_one(self, x: Any, **kwargs: Any) -> Any:
        """None are stated: those of naive Bayes are far too certain."""
        raise NotImplementedError(
            "PrivateNaiveBayes has no probabilities, as those of naive Bayes are far too certain. Use predict_one, or "
            "PrivateLogisticRegression."
        )


def _sigmoid(score: float) -> float:
    if score < 0.0:
        return math.exp(score) / (1.0 + math.exp(score))
    return 1.0 / (1.0 + math.exp(-score))
