"""Private linear models with scikit-learn's interface: `fit`, `partial_fit`, `predict`, pipelines.

Settings are stated before the data: nothing is inferred from data without noise but the number of rows and features,
and the labels if `classes` is left out, with a warning. Models come from releases alone, so `predict` costs no privacy;
`score` on private data is a number that no guarantee covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

try:
    from sklearn.base import RegressorMixin
    from sklearn.utils.validation import check_non_negative
except ImportError:  # pragma: no cover
    from taciturn.errors import needs_extra

    raise ImportError(needs_extra("taciturn.estimators.sklearn", "sklearn", "scikit-learn")) from None

from taciturn.accounting.ledger import LedgerLike
from taciturn.columns.encoder import ColumnEncoder, encoder_of
from taciturn.columns.labels import probabilities
from taciturn.columns.scales import ScaleName
from taciturn.columns.target import Number
from taciturn.columns.values import ArrayValues
from taciturn.estimators.keywords import known_keywords
from taciturn.estimators.settings import MethodName, Settings, declared_labels, declared_settings
from taciturn.estimators.sklearn_base import PrivateClassifier, PrivateLinearModel, own_errors
from taciturn.kernel.accounting.unit import ClockPeriod, Neighbours, WithoutId
from taciturn.kernel.arrays import Array
from taciturn.plan import Features, Forget
from taciturn.renewal import Renewal

__all__ = ["PrivateLinearRegression", "PrivateLinearSVC", "PrivateLogisticRegression", "PrivateNaiveBayes"]


class PrivateLinearRegression(RegressorMixin, PrivateLinearModel):
    """Private linear regression, for scikit-learn.

    Parameters
    ----------
    epsilon, delta : float
        The total budget of everything that one stream publishes. Epsilon must be stated.
    feature_bound, label_bound : float
        Largest Euclidean norm of the features, before the intercept, and largest absolute value of a label, from public
        knowledge; longer rows and larger labels are clipped. Or "private": ranges and scales of all columns are found
        in the first rows, at no further cost, and rows may have missing values. The first follows from `columns`, and
        the second from `label_range`, if those are stated.
    label_range : (float, float) or "private", optional
        The lowest and the highest label, from public knowledge, in place of `label_bound`: labels are centred and
        clipped inside, and predictions are in their units, within the range.
    label_scale : {"linear", "log", "symlog"}
        With a range: learn logarithms of labels (of a positive range), or sign(y)·log(1 + |y|), so that errors count by
        their ratio. Predictions are in the units of the labels: with squared loss geometric means.
    columns : dict, optional
        What the columns of a table are, by name, or by number for arrays, in the words of the contract file, as in
        `{"age": {"range": [0, 100]}, "income": {"range": [1, 1e6], "scale": "log"}, "town": {"categories": ["Oslo",
        "Rome"]}, "note": {"text": {"hash": 1024}}, "height": {"range": "private"}}`. `fit` and `predict` then take
        tables with texts, dates and missing values (`PublicColumns` lists all declarations).
    loss : {"squared", "absolute", "huber", "quantile"}
        The loss to minimise.
    quantile, huber_width : float
        Which quantile; where Huber's loss becomes linear (by default a tenth of the label bound).
    fit_intercept : bool
        Whether there is an intercept.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        Auto asks `taciturn.plan`.
    release : {"auto", "last", "geometric", "every"} or int
        When models are published. "auto": by `partial_fit` as the plan says, by `fit` once, after the last row, where
        that needs less noise: squared loss, logistic regression of two classes, IGD and GIGA. "last" rejects what
        cannot be published once. "geometric", "every" or an integer k: at rounds that grow by a tenth, after each
        example, after every k.
    horizon : int, optional
        Number of examples planned for. Without one, `fit` takes the number of its rows, and `partial_fit` a mechanism
        for streams without an end, which needs more noise.
    features : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are; random Fourier features of them, if a public rule
        expects those to help, so that it is a smooth function of the features (`taciturn.estimators.settings`); so many
        random features; or the images of a public map.
    radius, ridge : float, optional
        Largest norm of a model, and strong convexity; by default by public rules (`taciturn.estimators.settings`).
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    rows_per_user : int, optional
        Protect users, not rows: the most rows of a user that count. Later ones have no influence, and `fit` and
        `partial_fit` need `users=`, an id for each row, or a column of ids for each owner of a row. Without it, the
        unit of privacy is one row.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's rows to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the rows of each period anew: of so many rows of the stream, or of the clock. The guarantee is then about
        what a user contributes in one period.
    without_id : {"bad", "own"}
        A row without an id is rejected, or is a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal_`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the rows is used to find a map after which features are spread evenly: for
        columns that are correlated, or whose ranges were stated much too wide. Needs a horizon in `partial_fit`.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private. (There is no `random_state`: tools would set it.)

    Attributes
    ----------
    coef_, intercept_ : ndarray, float
        The latest model; before the first release a point that does not depend on data. With a map of features, the
        weights are those of the mapped ones.
    privacy_spent_ : Spent
        What the releases so far cost.
    guarantee_ : str
        What is guaranteed, and what is public besides.
    releases_ : Releases
        What the latest call released.
    n_examples_, n_releases_ : int
        How many so far in this stream.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.estimators.sklearn import PrivateLinearRegression
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(50_000, 2))
    >>> model = PrivateLinearRegression(epsilon=1.0, feature_bound=1.0, label_bound=2.0, seed=1)
    >>> model.fit(X, X @ [1.0, -0.5] + 0.2).coef_.round(1), round(float(model.intercept_), 1)
    (array([ 1. , -0.5]), 0.2)
    """

    _numbers = True

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        feature_bound: float | Literal["private"] | None = None,
        label_bound: float | Literal["private"] | None = None,
        label_range: tuple[float, float] | Literal["private"] | None = None,
        label_scale: ScaleName = "linear",
        columns: Mapping[Any, Any] | None = None,
        loss: Literal["squared", "absolute", "huber", "quantile"] = "squared",
        quantile: float = 0.5,
        huber_width: float | None = None,
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
        self.label_bound = label_bound
        self.label_range = label_range
        self.label_scale = label_scale
        self.columns = columns
        self.loss = loss
        self.quantile = quantile
        self.huber_width = huber_width
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
        return self._learn_all(X, y, None, users)

    @known_keywords
    def partial_fit(self, X: Any, y: Any, users: Any = None) -> Self:
        """Learn from the next rows of one stream; any number of calls costs the stated budget once.

        `users` has an id for each row, if `rows_per_user` is stated; a user may come again in later calls, and all rows
        are counted together.
        """
        return self._learn_more(X, y, None, users)

    def predict(self, X: Any) -> Array:
        """Predictions of the latest model; rows are clipped as in learning."""
        scores = self._scores(X)
        target = self._fitted.settings.target
        return scores if target is None else np.asarray(target.decode(scores))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² on these rows. It is computed from exact rows, and not private."""
        with own_errors():
            return float(super().score(X, y, sample_weight))

    @property
    def coef_(self) -> Array:
        """The weights of the latest model; before the first release they do not depend on data."""
        return np.asarray(super().coef_[0])

    @property
    def intercept_(self) -> Any:
        """The intercept of the latest model; with a `label_range`, the middle of the range is part of it."""
        target = self._fitted.settings.target
        return super().intercept_[0] + (0.0 if target is None else target.middle)

    def _settings(self, classes: Any) -> Settings:
        left_out = ("horizon", "ledger", "columns", "label_bound", "label_range", "label_scale")
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in left_out}
        target, bound = declared_labels(self.label_bound, self.label_range, self.label_scale)
        return Settings(**declared_settings(settings | {"label_bound": bound}, self._encoder, target, classes=False))

    @property
    def _target(self) -> Number | None:
        return declared_labels(self.label_bound, self.label_range, self.label_scale)[0]

    def _class_set(self, y: Any, classes: Any) -> None:
        return None

    def _encoded(self, y: Any, classes: Any) -> Any:
        return y if (target := self._target) is None else target.encode(ArrayValues(np.asarray(y)))[0]


class PrivateLogisticRegression(PrivateClassifier):
    """Private logistic regression, for two classes or more, for scikit-learn.

    Parameters
    ----------
    epsilon, delta : float
        The total budget of everything that one stream publishes. Epsilon must be stated.
    feature_bound : float
        Largest Euclidean norm of the features, before the intercept, from public knowledge; longer rows are clipped. Or
        "private": ranges and scales of all columns are found in the first rows, at no further cost, and rows may have
        missing values. It follows from `columns`, if those are stated.
    columns : dict, optional
        What the columns of a table are, by name, or by number for arrays, in the words of the contract file, as in
        `{"age": {"range": [0, 100]}, "income": {"range": [1, 1e6], "scale": "log"}, "town": {"categories": ["Oslo",
        "Rome"]}, "note": {"text": {"hash": 1024}}, "height": {"range": "private"}}`. `fit` and `predict` then take
        tables with texts, dates and missing values (`PublicColumns` lists all declarations).
    classes : array-like, optional
        All labels that there can be. They are public; left out, they are inferred from `y`, with a warning.
    class_weight : dict, optional
        A public weight for each class, 1 for those left out, as in `{"fraud": 20.0}`: how much a wrong row of the class
        counts. They are divided by the largest, and cost nothing. Never computed from data: counts of labels are
        private. Not with `method="pqftl"`.
    fit_intercept : bool
        Whether there is an intercept.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        Auto asks `taciturn.plan`; "pqftl" learns classes by least squares. `fit` of two classes publishes once, by
        objective perturbation, whose epsilon adds plainly to that of other models in a ledger; state a radius, or
        `method="ftrl"`, for private FTRL, whose models add more slowly.
    release : {"auto", "last", "geometric", "every"} or int
        When models are published. "auto": by `partial_fit` as the plan says, by `fit` once, after the last row, where
        that needs less noise: squared loss, logistic regression of two classes, IGD and GIGA. "last" rejects what
        cannot be published once. "geometric", "every" or an integer k: at rounds that grow by a tenth, after each
        example, after every k.
    horizon : int, optional
        Number of examples planned for. Without one, `fit` takes the number of its rows, and `partial_fit` a mechanism
        for streams without an end, which needs more noise.
    features : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are; random Fourier features of them, if a public rule
        expects those to help, so that it is a smooth function of the features (`taciturn.estimators.settings`); so many
        random features; or the images of a public map.
    radius, ridge : float, optional
        Largest norm of a model, and strong convexity; by default by public rules (`taciturn.estimators.settings`).
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    rows_per_user : int, optional
        Protect users, not rows: the most rows of a user that count. Later ones have no influence, and `fit` and
        `partial_fit` need `users=`, an id for each row, or a column of ids for each owner of a row. Without it, the
        unit of privacy is one row.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's rows to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the rows of each period anew: of so many rows of the stream, or of the clock. The guarantee is then about
        what a user contributes in one period.
    without_id : {"bad", "own"}
        A row without an id is rejected, or is a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal_`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the rows is used to find a map after which features are spread evenly: for
        columns that are correlated, or whose ranges were stated much too wide. Needs a horizon in `partial_fit`.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private. (There is no `random_state`: tools would set it.)

    Attributes
    ----------
    coef_, intercept_, classes_ : ndarray
        The latest model, with scikit-learn's shapes, and the labels; before the first release a point that does not
        depend on data. With a map of features, the weights are those of the mapped ones.
    privacy_spent_ : Spent
        What the releases so far cost.
    guarantee_ : str
        What is guaranteed, and what is public besides.
    releases_ : Releases
        What the latest call released.
    n_examples_, n_releases_ : int
        How many so far in this stream.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.estimators.sklearn import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(10_000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=["no", "yes"], seed=1)
    >>> model.fit(X, y).predict([[0.5, -0.5], [-0.5, 0.5]])
    array(['yes', 'no'], dtype='<U3')
    """

    _loss = "logistic"

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class."""
        return probabilities(self._problem, self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of the probability of each class."""
        return np.log(self.predict_proba(X))


class PrivateLinearSVC(PrivateClassifier):
    """Private linear support vector classification: the hinge loss, for two classes or more, for scikit-learn.

    There are no probabilities.

    Parameters
    ----------
    epsilon, delta : float
        The total budget of everything that one stream publishes. Epsilon must be stated.
    feature_bound : float
        Largest Euclidean norm of the features, before the intercept, from public knowledge; longer rows are clipped. Or
        "private": ranges and scales of all columns are found in the first rows, at no further cost, and rows may have
        missing values. It follows from `columns`, if those are stated.
    columns : dict, optional
        What the columns of a table are, by name, or by number for arrays, in the words of the contract file, as in
        `{"age": {"range": [0, 100]}, "income": {"range": [1, 1e6], "scale": "log"}, "town": {"categories": ["Oslo",
        "Rome"]}, "note": {"text": {"hash": 1024}}, "height": {"range": "private"}}`. `fit` and `predict` then take
        tables with texts, dates and missing values (`PublicColumns` lists all declarations).
    classes : array-like, optional
        All labels that there can be. They are public; left out, they are inferred from `y`, with a warning.
    class_weight : dict, optional
        A public weight for each class, 1 for those left out, as in `{"fraud": 20.0}`: how much a wrong row of the class
        counts. They are divided by the largest, and cost nothing. Never computed from data: counts of labels are
        private. Not with `method="pqftl"`.
    fit_intercept : bool
        Whether there is an intercept.
    method : {"auto", "pqftl", "ftrl", "igd", "giga"}
        Auto asks `taciturn.plan`; "pqftl" learns classes by least squares.
    release : {"auto", "last", "geometric", "every"} or int
        When models are published. "auto": by `partial_fit` as the plan says, by `fit` once, after the last row, where
        that needs less noise: squared loss, logistic regression of two classes, IGD and GIGA. "last" rejects what
        cannot be published once. "geometric", "every" or an integer k: at rounds that grow by a tenth, after each
        example, after every k.
    horizon : int, optional
        Number of examples planned for. Without one, `fit` takes the number of its rows, and `partial_fit` a mechanism
        for streams without an end, which needs more noise.
    features : {"linear", "random"}, int or FeatureMap
        What the model is linear in: the features as they are; random Fourier features of them, if a public rule
        expects those to help, so that it is a smooth function of the features (`taciturn.estimators.settings`); so many
        random features; or the images of a public map.
    radius, ridge : float, optional
        Largest norm of a model, and strong convexity; by default by public rules (`taciturn.estimators.settings`).
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    rows_per_user : int, optional
        Protect users, not rows: the most rows of a user that count. Later ones have no influence, and `fit` and
        `partial_fit` need `users=`, an id for each row, or a column of ids for each owner of a row. Without it, the
        unit of privacy is one row.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's rows to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the rows of each period anew: of so many rows of the stream, or of the clock. The guarantee is then about
        what a user contributes in one period.
    without_id : {"bad", "own"}
        A row without an id is rejected, or is a user of its own, who may then have any number of them.
    forget : int, sequence of int or "auto", optional
        A window in examples, after which a row counts less by a factor of e, for data that drift: noise then stays
        constant, and a stream without a horizon never ends. Several windows, or "auto", a public rule, let least
        squares use the one that fits best (`taciturn.memories`). Nothing is refunded: what was published stays.
    renew : Renewal, optional
        What an earlier stream left, `old.renewal_`: this one starts from its released model, under a budget of its own.
        The guarantee says what someone in both is promised.
    precondition : bool
        Whether the first twentieth of the rows is used to find a map after which features are spread evenly: for
        columns that are correlated, or whose ranges were stated much too wide. Needs a horizon in `partial_fit`.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private. (There is no `random_state`: tools would set it.)

    Attributes
    ----------
    coef_, intercept_, classes_ : ndarray
        The latest model, with scikit-learn's shapes, and the labels; before the first release a point that does not
        depend on data. With a map of features, the weights are those of the mapped ones.
    privacy_spent_ : Spent
        What the releases so far cost.
    guarantee_ : str
        What is guaranteed, and what is public besides.
    releases_ : Releases
        What the latest call released.
    n_examples_, n_releases_ : int
        How many so far in this stream.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.estimators.sklearn import PrivateLinearSVC
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(10_000, 2))
    >>> model = PrivateLinearSVC(epsilon=1.0, feature_bound=1.0, classes=[0, 1], seed=1)
    >>> model.fit(X, (X[:, 0] > X[:, 1]).astype(int)).predict([[0.5, -0.5], [-0.5, 0.5]])
    array([1, 0])
    """

    _loss = "hinge"


class PrivateNaiveBayes(PrivateClassifier):
    """Private naive Bayes for counts, of words for instance, for two classes or more, for scikit-learn.

    It learns the sums of the rows of each class (`taciturn.ClassSums`), for sparse rows of up to millions of features:
    a row costs as much as it has entries. Entries must not be negative; a vectorizer that hashes needs
    `alternate_sign=False`. There are no probabilities.

    Parameters
    ----------
    epsilon, delta : float
        The total budget of everything that one stream publishes. Epsilon must be stated.
    feature_bound : float
        Largest Euclidean norm of the features; longer rows are clipped. 1 for the rows of scikit-learn's vectorizers,
        which have that norm.
    columns : dict, optional
        What the columns of a table are, by name, or by number for arrays, in the words of the contract file
        (`PublicColumns` lists them), of columns whose features are not negative: categories, bins, hashed values and
        texts, which are hashed without signs.
    classes : array-like, optional
        All labels that there can be. They are public; left out, they are inferred from `y`, with a warning.
    fit_intercept : bool
        Whether to count the rows of each class, and to decide at the middle between their mean scores. Without it,
        classes are taken as equally frequent.
    release : {"auto", "last", "geometric", "every"} or int
        When models are published. "auto": by `fit` once, after the last row, and by `partial_fit` at rounds that grow
        by a tenth. "last" rejects what cannot be published once; "geometric", "every" or an integer k: at rounds that
        grow by a tenth, after each example, after every k.
    horizon : int, optional
        Number of examples planned for. Without one, `fit` takes the number of its rows, and `partial_fit` a mechanism
        for streams without an end, which needs more noise.
    neighbours : {"replace", "zero-out", "label"}
        What may change of one example, or of the rows of one user: any other values, or zeroed out; or, where features
        are public for everyone who sees a model, any other label.
    rows_per_user : int, optional
        Protect users, not rows: the most rows of a user that count. Later ones have no influence, and `fit` and
        `partial_fit` need `users=`, an id for each row, or a column of ids for each owner of a row. Without it, the
        unit of privacy is one row.
    rows_per_release : int, optional
        The most of them between two releases; by default all.
    apart : int
        Releases from one of a user's rows to the next, at least; 1 for any.
    period : int or {"day", "week", "month", "quarter", "year"}, optional
        Count the rows of each period anew: of so many rows of the stream, or of the clock. The guarantee is then about
        what a user contributes in one period.
    without_id : {"bad", "own"}
        A row without an id is rejected, or is a user of its own, who may then have any number of them.
    ledger : Ledger or str, optional
        Where the cost of each stream is reserved, or its address, as in ledger="budget.db": one budget for all models
        that learn from the same people. Without it, each stream counts for itself.
    seed : int, optional
        For simulations and tests, which are then not private. (There is no `random_state`: tools would set it.)

    Attributes
    ----------
    coef_, intercept_, classes_ : ndarray
        The latest model, with scikit-learn's shapes, and the labels; before the first release a point that does not
        depend on data.
    privacy_spent_ : Spent
        What the releases so far cost.
    guarantee_ : str
        What is guaranteed, and what is public besides.
    releases_ : Releases
        What the latest call released.
    n_examples_, n_releases_ : int
        How many so far in this stream.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from taciturn.estimators.sklearn import PrivateNaiveBayes
    >>> texts = ["a prize for you", "see you at noon"] * 1_000
    >>> model = PrivateNaiveBayes(epsilon=1.0, feature_bound=1.0, classes=["ham", "spam"], seed=1)
    >>> pipeline = make_pipeline(HashingVectorizer(n_features=2**20, alternate_sign=False), model)
    >>> pipeline.fit(texts, ["spam", "ham"] * 1_000).predict(["a prize", "at noon"])
    array(['spam', 'ham'], dtype='<U4')
    """

    _loss = "naive-bayes"

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        feature_bound: float | None = None,
        columns: Mapping[Any, Any] | None = None,
        classes: Any = None,
        fit_intercept: bool = True,
        release: str | int = "auto",
        horizon: int | None = None,
        neighbours: Neighbours = "replace",
        rows_per_user: int | None = None,
        rows_per_release: int | None = None,
        apart: int = 1,
        period: int | ClockPeriod | None = None,
        without_id: WithoutId = "bad",
        ledger: LedgerLike | None = None,
        seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.columns = columns
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.release = release
        self.horizon = horizon
        self.neighbours = neighbours
        self.rows_per_user = rows_per_user
        self.rows_per_release = rows_per_release
        self.apart = apart
        self.period = period
        self.without_id = without_id
        self.ledger = ledger
        self.seed = seed

    @property
    def _encoder(self) -> ColumnEncoder | None:
        return None if self.columns is None else encoder_of(self.columns).without_signs()

    def _valid(self, seen_by: Any, X: Any, y: Any, encoder: ColumnEncoder | None, reset: bool) -> tuple[Any, Any]:
        X, y = super()._valid(seen_by, X, y, encoder, reset)
        check_non_negative(X, "PrivateNaiveBayes (input X)")
        return X, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
