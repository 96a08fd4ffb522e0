"""A private search for settings: of several candidates the best by held-out rows, within the budget of one fit.

`taciturn.methods.selection` has what is published, what it costs, and the proof. Rows are cut by `validation_rows`.

**Why there are pilots, and the winner is fitted again.** Compared at epsilon = 1 on 20 tables of 5,000 to 200,000 rows
(weather in New York with five targets, simulated customers with two, shuttle and banana of river, and simulated ones),
6 runs each, by the mean gain over the defaults in accuracy or R². Without a second fit, with equal shares of the budget
for all candidates, it was .012: better on five tables and worse on six, beyond two standard errors. With a second fit
and .2, .3, .4 or .5 of the budget for pilots, a twentieth of the rows to choose by, it was .021, .020, .022 and .017,
better on six tables and worse on two or three; with a tenth of the rows .017 to .019. Three candidates with Gaussian
noise have .58 of the budget's mu each in the first case; in the second, with two fifths for pilots, they have .37 of
it, and the winner .77. A second fit of other rows than those of the pilots could have the full budget, and fewer rows:
costs of noise add in quadrature, rows do not. (Then, candidates by objective perturbation added their costs plainly.)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
    from sklearn.model_selection import ParameterGrid
    from sklearn.pipeline import Pipeline
    from sklearn.utils import _safe_indexing
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted
except ImportError:  # pragma: no cover
    from taciturn.errors import needs_extra

    raise ImportError(needs_extra("taciturn.estimators.search", "sklearn", "scikit-learn")) from None

from taciturn.errors import (
    BudgetExhausted,
    InvalidInput,
    TaciturnError,
    Unprovable,
    between_0_and_1,
    expect,
    positive,
)
from taciturn.estimators.keywords import Keywords, known_keywords
from taciturn.estimators.settings import declared_labels
from taciturn.estimators.sklearn_base import PrivateLinearModel, spent_by
from taciturn.estimators.stream import PrivacyWarning, promised
from taciturn.kernel.accounting.cost import Spent
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array
from taciturn.methods.selection import Selection, fitting, shares
from taciturn.methods.staged import seed_of
from taciturn.plan import Plan

__all__ = ["PrivateSearchCV"]

_LEAST_SCALE = 0.5  # of the shares of candidates in the default grid
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_FIXED = ("epsilon", "delta", "neighbours", "ledger", "seed", "classes", "horizon", "rows_per_user", "rows_per_release")
"""Settings of the search as a whole."""
_HELD_OUT = "Candidates are compared once, on a share of the rows that is held out: state validation=, or leave it out."
_ONE_WINNER = "The winner is always fitted again, and nothing else is published: leave it out."
_LOSS = "Candidates are compared by clipped losses, of which one row can move a sum by at most 1: leave it out."
_OF_ROWS = "A search is proven for rows, not for users. Choose by public rules (taciturn.plan), or on public data."
_INSTEAD = {
    "cv": _HELD_OUT,
    "error_score": "An error ends the search, before anything is published or charged: leave it out.",
    "groups": _OF_ROWS,
    "n_iter": "All settings of param_grid are tried: list them there, and leave it out.",
    "n_jobs": "Candidates learn one after the other: leave it out.",
    "param_distributions": "State param_grid=, with all settings to try.",
    "refit": _ONE_WINNER,
    "return_train_score": _ONE_WINNER,
    "rows_per_user": _OF_ROWS,
    "scoring": _LOSS,
    "users": _OF_ROWS,
    "verbose": "Nothing is printed while a search runs: leave it out.",
}
"""Keywords of other searches, and what there is instead."""


class PrivateSearchCV(MetaEstimatorMixin, Keywords, BaseEstimator):
    """Private search for the settings of an estimator, within the budget of one fit, for scikit-learn.

    Every candidate learns a pilot from the same training rows, with two fifths of the budget for all of them, the
    exponential mechanism chooses by clipped losses of validation rows, and the winner is fitted again with the rest of
    the budget and published, and nothing else: there is no `cv_results_` (`taciturn.methods.selection` has the
    proof).

    Parameters
    ----------
    estimator : PrivateLinearRegression, PrivateLogisticRegression, PrivateLinearSVC or PrivateNaiveBayes
        What is searched for, with its bounds. Its `epsilon` and `delta` are the budget of the whole search; `ledger`,
        `seed` and `neighbours` are those of the search, too. In a pipeline, the search is the last step.
    param_grid : dict or list of dict, optional
        Settings to try, as in `sklearn.model_selection.GridSearchCV`. By default three candidates, by a public rule:
        the estimator as it is; with `precondition=True`; and with random features, one for 100 rows, from 100 to 1,000
        for classes and from 50 to 150 for numbers. Those whose pilots cannot be planned are left out.
    validation : float
        Share of the rows on which candidates are compared, and which they do not learn from.

    Attributes
    ----------
    best_estimator_, best_params_, best_index_
        The winner: the fitted model, its settings, and its number in `candidates_`. What the model says it has cost is
        what the search has cost; its `epsilon`, and its `plan_`, are its share of the budget.
    candidates_ : list of dict
        All settings that were tried.
    guarantee_ : str
        What is guaranteed of all that is published, and what is public besides.
    privacy_spent_ : Spent
        What the search cost: an epsilon at its delta.
    selection_ : Selection
        What was charged: plans of the candidates, and the mechanism that chose (`taciturn.methods.selection`).
    n_training_rows_, n_validation_rows_ : int
        Sizes of the two parts.

    Notes
    -----
    The loss of a row is 1 for a wrong class and 0 for a right one. For numbers it is the estimator's loss of the
    prediction: the squared error (or the absolute error, or the loss of the quantile) in units of half of the label
    bound, at most 1.

    In a ledger a search adds as one plain (epsilon, delta), as a fit by objective perturbation does.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.estimators.search import PrivateSearchCV
    >>> from taciturn.estimators.sklearn import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(20_000, 2))
    >>> y = np.linalg.norm(X, axis=1) < 0.55
    >>> model = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=[False, True], seed=1)
    >>> search = PrivateSearchCV(model, {"features": ["linear", 100]}).fit(X, y)
    >>> search.best_params_, search.score(X, y) > 0.9
    ({'features': 100}, True)
    """

    _instead = _INSTEAD

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
        *,
        validation: float = 0.05,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.validation = validation

    @known_keywords
    def fit(self, X: Any, y: Any) -> Self:
        """Search the settings, and publish the winner; costs the budget of the estimator once.

        Nothing is shown or charged if a row or a setting is rejected. All rows come in one call.
        """
        base = self._base
        unit = _unit_of_losses(base)
        rows, labels = base._valid(type(base)(**base.get_params(deep=False)), X, y, base._encoder, reset=True)
        classes = base._class_set(labels, getattr(base, "classes", None))
        base._encoded(labels, classes)  # rejects labels that were not declared, in either part
        held_out = validation_rows(len(labels), self.validation)
        as_given = base.columns is not None or hasattr(X, "iloc")  # columns to encode, or names to know
        named = X if as_given else rows
        if isinstance(named, Mapping) or hasattr(named, "column_names"):  # of lists, or of Arrow
            named = _frame(named)
        table = _Table(named, labels, classes, rows.shape[1], np.flatnonzero(~held_out), np.flatnonzero(held_out))
        selection, pilots, finals = _planned(base, self._grid(base, table), table)
        best = 0
        if pilots:
            models = [each.fit(table) for each in pilots]  # secret
            losses = clipped_losses(base, models, _safe_indexing(named, table.held_out), labels[table.held_out], unit)
            best = selection.choose(losses)
        winner = finals[best].fit(table)
        self._charge(base, selection, len(labels))
        winner._count_with(base, selection)
        self.selection_, self.best_index_, self.best_estimator_ = selection, best, winner
        self.candidates_ = [dict(each.settings) for each in finals]
        self.best_params_ = dict(self.candidates_[best])
        self.n_training_rows_, self.n_validation_rows_ = len(table.training), len(table.held_out)
        if base.ledger is None and not selection.simulated:
            base._fits.warn(stacklevel=2)
        return self

    def _charge(self, base: PrivateLinearModel, selection: Selection, rows: int) -> None:
        """Count the search as one fit of the estimator, and charge it; one that the ledger rejects is not counted."""
        if selection.simulated:
            return
        cost, delta = selection.total_cost, selection.privacy.delta
        name = base._fits.add(rows, cost, delta, None, selection.neighbours, selection.unit.name)
        try:
            selection.charge(base.ledger)
        except (BudgetExhausted, Unprovable):
            base._fits.discard(name)
            raise

    @property
    def _base(self) -> PrivateLinearModel:
        model: PrivateLinearModel = self.estimator
        example = "PrivateSearchCV(PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0))"
        if isinstance(model, Pipeline):
            raise InvalidInput(
                "estimator cannot be a pipeline. Make the search its last step, as in make_pipeline(PublicColumns("
                "columns), PrivateSearchCV(PrivateLogisticRegression(epsilon=1.0, feature_bound=2.0)))."
            )
        expect("estimator", model, isinstance(model, PrivateLinearModel), example)
        if model.rows_per_user is not None:
            raise Unprovable(
                "a search is proven for rows, and rows_per_user is stated: a user with rows in both parts would pay "
                "for both. Choose by public rules (taciturn.plan), or search on public data."
            )
        if model.epsilon is None:
            raise InvalidInput("epsilon of the estimator is missing. State it, as in epsilon=1.0.")
        if model.horizon is not None:
            raise InvalidInput("a search has all rows at once. Leave out the estimator's horizon.")
        return model

    def _grid(self, base: PrivateLinearModel, table: _Table) -> list[dict[str, Any]]:
        """The candidates' settings."""
        if self.param_grid is None:
            grid = default_grid(base, len(table.training))
            share = shares(Privacy(base.epsilon, base.delta), len(grid), scale=_LEAST_SCALE)[0][0]
            planned = [each for each in grid if _plans(base, each, table, share)]
            return planned if {} in planned else [{}]
        tried = [dict(each) for each in ParameterGrid(self.param_grid)]
        if not tried:
            raise InvalidInput('param_grid has no settings to try. Give some, as in {"ridge": [0.01, 0.1]}, or None.')
        for name in {name for each in tried for name in each}:
            if name in _FIXED:
                raise InvalidInput(
                    f"{name} is that of the search as a whole, and not searched for. State it in the estimator."
                )
        return tried

    @property
    def guarantee_(self) -> str:
        """What is guaranteed of all that is published, and what is public besides."""
        check_is_fitted(self)
        labels = f", the labels {', '.join(map(str, self.classes_))}" if is_classifier(self) else ""
        count = len(self.candidates_)
        proven = promised(self.best_estimator_.plan_, self.selection_.guarantee)
        return (
            f"{proven} This covers the choice among {count} settings and the model of the winner, "
            "which are all that is published: pilots and losses are not. Public besides: how "
            f"many rows there are ({self.n_training_rows_:,} to learn from, {self.n_validation_rows_:,} to choose by), "
            f"the features' names{labels}, and all settings that were tried."
        )

    @property
    def privacy_spent_(self) -> Spent:
        """What the search cost: an epsilon at the budget's delta."""
        check_is_fitted(self)
        return spent_by(self.selection_)

    @property
    def cv_results_(self) -> Any:
        """Not published: it would be a release of every loss."""
        raise AttributeError(
            "a private search has no cv_results_: losses of candidates are not published. See best_params_, or score "
            "on public data."
        )

    @property
    def classes_(self) -> Any:
        """All possible labels, in order, of a classifier."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        check_is_fitted(self)
        return int(self.best_estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, if the rows were a data frame."""
        check_is_fitted(self)
        return self.best_estimator_.feature_names_in_

    def predict(self, X: Any) -> Any:
        """Predictions of the winner."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """Accuracy or R² of the winner; on private rows it is a number that no guarantee covers."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Scores of the winner."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, by the winner."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of the probability of each class, by the winner."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_log_proba(X))

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in vars(self)

    def _html_repr(self) -> str:
        """The diagram of scikit-learn, and below it the cost of the search and the budget of its ledger, if any."""
        return str(super()._html_repr()) + (self.best_estimator_._cost_html() if self.__sklearn_is_fitted__() else "")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.non_deterministic = inner.input_tags, inner.non_deterministic
        return tags


def validation_rows(rows: int, share: float = 0.05) -> NDArray[np.bool_]:
    """Which of so many rows are held out: those i for which the fraction of `(i + 1)·(sqrt(5) - 1)/2` is below `share`.

    They are spread evenly over every stretch of the table, and follow from its length alone.

    >>> np.flatnonzero(validation_rows(30, 0.2))
    array([ 4,  9, 12, 17, 25])
    """
    share = between_0_and_1("validation", share)
    held_out = np.asarray(np.arange(1, rows + 1) * _GOLDEN % 1.0 < share)
    if not held_out.any() or held_out.all():
        raise InvalidInput(
            f"a search needs rows to learn from and rows to choose by, and there is only {rows} sample of {rows}. Give "
            "more rows, or fit the estimator itself."
            if rows == 1
            else f"a share of {share:g} of {rows} rows leaves one part without rows. Give more rows, or another share."
        )
    return held_out


def default_grid(estimator: PrivateLinearModel, rows: int) -> list[dict[str, Any]]:
    """The candidates for an estimator and a number of training rows, by the rule of `PrivateSearchCV`.

    >>> from taciturn.estimators.sklearn import PrivateLinearRegression
    >>> default_grid(PrivateLinearRegression(), 12_000)
    [{}, {'precondition': True}, {'features': 120}]
    """
    if "precondition" not in estimator.get_params(deep=False):  # naive Bayes
        return [{}, {"fit_intercept": not estimator.fit_intercept}]
    fewest, most = (100, 1000) if is_classifier(estimator) else (50, 150)
    return [{}, {"precondition": True}, {"features": 2 * round(min(max(rows / 200, fewest / 2), most / 2))}]


def _plans(base: PrivateLinearModel, settings: Mapping[str, Any], table: _Table, share: Privacy) -> bool:
    """Whether a pilot of a candidate can be planned; from public numbers."""
    try:
        _Candidate.of(base, settings, table, epsilon=share.epsilon, delta=share.delta)
    except TaciturnError:
        return False
    return True


@dataclass(frozen=True)
class _Table:
    """The rows, their classes and features, and the numbers of those in either part."""

    X: Any
    y: Any
    classes: Any
    features: int
    training: NDArray[np.int64]
    held_out: NDArray[np.int64]


@dataclass(frozen=True)
class _Candidate:
    """A candidate: an estimator of it, which no counter or ledger knows, and its plan."""

    settings: Mapping[str, Any]
    model: Any
    plan: Plan

    @classmethod
    def of(cls, base: PrivateLinearModel, settings: Mapping[str, Any], table: _Table, **more: Any) -> _Candidate:
        stated = base.get_params(deep=False) | dict(settings) | {"ledger": None} | more
        if table.classes is not None:
            stated["classes"] = table.classes
        model = type(base)(**stated)
        plan = model._settings(table.classes).plan(table.features, len(table.training), batch=True)
        return cls(settings, model, plan)

    def fit(self, table: _Table) -> Any:
        """The model, by the plan that is charged."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # said of all candidates at once
            self.model.fit(_safe_indexing(table.X, table.training), table.y[table.training])
        if self.model.plan_.private.settings != self.plan.private.settings:
            raise Unprovable("a candidate was fitted by another plan than the one that is charged. Report this.")
        return self.model


def _planned(
    base: PrivateLinearModel, grid: Sequence[Mapping[str, Any]], table: _Table
) -> tuple[Selection, list[_Candidate], list[_Candidate]]:
    """Each candidate as a pilot, and as the winner, with their shares of the budget; from public numbers."""
    privacy = Privacy(base.epsilon, base.delta)

    def made(settings: Mapping[str, Any], share: Privacy, number: int) -> _Candidate:
        stated = {"epsilon": share.epsilon, "delta": share.delta, "seed": _seed(base, number)}
        return _Candidate.of(base, settings, table, **stated)

    def scaled(scale: float) -> tuple[Selection, list[_Candidate], list[_Candidate]]:
        each, last = shares(privacy, len(grid), scale=scale)
        pilots = [made(*one, i) for i, one in enumerate(zip(grid, each, strict=bool(each)))]
        finals = [made(one, last, len(pilots) + 1) for one in grid]
        first, second = (tuple(one.plan.private for one in part) for part in (pilots, finals))
        return Selection(first, second, len(table.held_out), privacy, _seed(base, len(pilots))), pilots, finals

    selection, pilots, finals = fitting(scaled)
    if all(each.plan.hopeless for each in finals):
        warnings.warn(f"{finals[0].plan.warning} Or try fewer settings.", PrivacyWarning, stacklevel=3)
    elif pilots and all(each.plan.hopeless for each in pilots):
        warnings.warn(
            f"the {len(pilots)} settings can hardly be compared at this budget: the noise of their pilots, which have "
            "two fifths of it together, outweighs the data. Try fewer settings, or fit the estimator itself.",
            PrivacyWarning,
            stacklevel=3,
        )
    return selection, pilots, finals


def _seed(base: PrivateLinearModel, index: int) -> int | None:
    return None if base.seed is None else seed_of(base.seed, index)


def _frame(columns: Any) -> Any:
    """A table of columns as one whose rows have numbers."""
    try:
        import pandas as pd
    except ImportError:  # pragma: no cover
        raise InvalidInput("a search takes rows of a data frame or of an array. Give one, or install pandas.") from None
    names = getattr(columns, "column_names", None)
    if names is None:
        return pd.DataFrame({name: pd.Series(list(values), dtype=object) for name, values in columns.items()})
    return pd.DataFrame({name: pd.Series(columns[name].to_pylist(), dtype=object) for name in names})


def _unit_of_losses(estimator: Any) -> float | None:
    """The label bound that was stated, or half of the stated range; None for classes, and where it is to be found."""
    if is_classifier(estimator):
        return None
    target, bound = declared_labels(estimator.label_bound, estimator.label_range, estimator.label_scale)
    if target is not None:
        return (target.high - target.low) / 2.0
    if bound is None:
        raise InvalidInput(
            "the estimator states neither label_bound nor label_range, in whose units errors are compared. State one "
            "in the estimator itself, also if it is searched for."
        )
    return None if isinstance(bound, str) else positive("label_bound", bound)


def clipped_losses(estimator: Any, models: Sequence[Any], X: Any, y: Array, unit: float | None = None) -> Array:
    """The loss of every row with every model, between 0 and 1 whatever the models predict; a column for each model.

    The `unit` is the label bound that was stated, half of the stated range, or, if it is None, the middle one of the
    bounds that the models have found with noise. Errors of numbers are counted in halves of it: larger ones are rare,
    and a smaller unit has less noise beside it.
    """
    if is_classifier(estimator):
        return np.column_stack([model.predict(X) != y for model in models]).astype(np.float64)
    if (bound := unit) is None:
        bound = float(np.median([model._problem.label_bound * model._problem.label_scale for model in models]))
    level = float(estimator.quantile)
    predicted = np.column_stack([model.predict(X) for model in models])
    with np.errstate(all="ignore"):
        error = (np.asarray(y, dtype=np.float64)[:, None] - predicted) / (bound / 2.0)
        if estimator.loss == "squared":
            loss = error**2
        elif estimator.loss == "quantile":
            loss = np.where(error > 0.0, level, level - 1.0) * error / max(level, 1.0 - level)
        else:
            loss = np.abs(error)
    return np.asarray(np.clip(np.nan_to_num(loss, nan=1.0), 0.0, 1.0))
