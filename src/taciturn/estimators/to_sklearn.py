"""A released model as a pipeline of scikit-learn: public maps, the clipping step, and a linear model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

try:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import HuberRegressor, LogisticRegression, QuantileRegressor, Ridge, SGDClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.svm import LinearSVC
except ImportError:  # pragma: no cover
    from taciturn.errors import needs_extra

    raise ImportError(needs_extra("taciturn.estimators.to_sklearn", "sklearn", "scikit-learn")) from None

from taciturn.columns.encoder import encoder_of
from taciturn.columns.target import Number
from taciturn.columns.values import ArrayValues
from taciturn.estimators.scaling import NormClip, PublicColumns, PublicMap
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.features import Chain, FeatureMap
from taciturn.kernel.problem.losses import Absolute, Huber, Logistic, Quantile, Squared
from taciturn.kernel.problem.multiclass import OneHot, Softmax
from taciturn.kernel.problem.predict import coefficients
from taciturn.kernel.problem.problem import Problem
from taciturn.methods.weighted import unweighted


def pipeline_of(
    problem: Problem, point: Array, classes: Any, names: Any, columns: Any = None, target: Number | None = None
) -> Pipeline:
    """The predictions of a released point, for a problem, its labels (None for numbers) and the names of its columns.

    `columns` declares the columns of a table, if that was not of numbers, and `target` the range of its labels, if that
    was stated. The pipeline is a function of what was published, and so costs no privacy.

    >>> from taciturn import L2Ball, Logistic
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=1.0)
    >>> made = pipeline_of(problem, np.array([0.6, 0.0, 0.1]), np.array(["no", "yes"]), None)
    >>> [name for name, _ in made.steps], made.decision_function([[0.5, 0.0], [30.0, 40.0]]).round(3)
    (['clip', 'model'], array([0.4 , 0.46]))
    """
    weights, intercepts = coefficients(problem, point)
    steps: list[tuple[str, Any]] = []
    if columns is not None:
        steps.append(("columns", _fitted(PublicColumns(columns), len(encoder_of(columns).read_keys))))
    width = problem.dimension
    for number, part in enumerate(_parts(problem.features), start=1):
        steps.append((f"map{number}", _fitted(PublicMap(part), width)))
        width = part.width(width)
    steps.append(("clip", _fitted(NormClip(problem.feature_bound), width)))
    if classes is None:
        model = _regressor(problem)
        model.coef_ = problem.label_scale * weights[0]
        model.intercept_ = float(problem.label_center + problem.label_scale * intercepts[0])
    else:
        model = _classifier(problem, classes)
        model.coef_, model.intercept_ = weights.copy(), intercepts.copy()
    model.fit_intercept = problem.intercept > 0.0
    model = _fitted(model, width)
    steps.append(("model", model if target is None else _in_units_of(target, model)))
    if names is not None:
        steps[0][1].feature_names_in_ = np.asarray(names, dtype=object)
    return Pipeline(steps)


def _parts(features: FeatureMap | None) -> tuple[FeatureMap, ...]:
    if isinstance(features, Chain):
        return tuple(part for each in features.maps for part in _parts(each))
    return () if features is None else (features,)


def _fitted(step: Any, width: int) -> Any:
    step.n_features_in_ = width
    return step


def _in_units_of(target: Number, model: Any) -> Any:
    """A fitted model of labels, as one that predicts what the labels were made of: centred, scaled back and clipped."""
    units = FunctionTransformer(partial(_labels, target), inverse_func=target.decode, check_inverse=False)
    made = TransformedTargetRegressor(regressor=model, transformer=units, check_inverse=False)
    made.regressor_, made.transformer_, made._training_dim = model, units, 1
    return made


def _labels(target: Number, values: Any) -> Array:
    return target.encode(ArrayValues(np.asarray(values, dtype=np.float64)))[0]


def _regressor(problem: Problem) -> Any:
    """The linear model of scikit-learn that has this loss."""
    loss = problem.loss
    if isinstance(loss, Huber):
        return HuberRegressor()
    if isinstance(loss, Absolute | Quantile):
        return QuantileRegressor(quantile=getattr(loss, "level", 0.5))
    return Ridge()


def _classifier(problem: Problem, classes: Any) -> Any:
    """The classifier of scikit-learn that has this loss; naive Bayes has no loss, and no probabilities: `LinearSVC`."""
    loss = unweighted(problem.loss)
    model: Any = LogisticRegression() if isinstance(loss, Logistic | Softmax) else LinearSVC()
    if isinstance(loss, Squared | OneHot):
        model = SGDClassifier(loss="squared_error")
    model.classes_ = np.array(classes)
    return model
