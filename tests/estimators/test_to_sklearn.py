"""A released model as a pipeline of scikit-learn: the same predictions, without a stream."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError

from taciturn import InvalidInput, RandomFeatures
from taciturn.estimators.scaling import NormClip, PublicMap
from taciturn.estimators.sklearn import (
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateNaiveBayes,
)

RNG = np.random.default_rng(5)
N = 4000
X = RNG.uniform(-0.6, 0.6, size=(N, 3))
SCORE = X @ [1.0, -0.5, 0.2] + 0.1
TWO = np.where(SCORE > 0.0, "yes", "no")
THREE = np.digitize(SCORE, [-0.2, 0.3])
NUMBERS = 5.0 + 2.0 * SCORE
CLASSIFY = {"epsilon": 3.0, "feature_bound": 1.0, "seed": 1}
REGRESS = CLASSIFY | {"label_bound": 8.0}
PRIVATE = CLASSIFY | {"feature_bound": "private"}

CASES = {
    "logistic": (PrivateLogisticRegression(**CLASSIFY, classes=["no", "yes"]), TWO),
    "no intercept": (PrivateLogisticRegression(**CLASSIFY, classes=["no", "yes"], fit_intercept=False), TWO),
    "softmax": (PrivateLogisticRegression(**CLASSIFY, classes=[0, 1, 2]), THREE),
    "least squares, two": (PrivateLogisticRegression(**CLASSIFY, classes=["no", "yes"], method="pqftl"), TWO),
    "least squares, three": (PrivateLogisticRegression(**CLASSIFY, classes=[0, 1, 2], method="pqftl"), THREE),
    "hinge": (PrivateLinearSVC(**CLASSIFY, classes=["no", "yes"]), TWO),
    "hinge, three": (PrivateLinearSVC(**CLASSIFY, classes=[0, 1, 2]), THREE),
    "random features": (PrivateLinearSVC(**CLASSIFY, classes=["no", "yes"], features=20), TWO),
    "private ranges": (PrivateLogisticRegression(**PRIVATE, classes=["no", "yes"]), TWO),
    "private ranges, map": (PrivateLinearSVC(**PRIVATE, classes=[0, 1, 2], precondition=True, features=10), THREE),
    "preconditioned": (PrivateLinearSVC(**CLASSIFY, classes=["no", "yes"], precondition=True), TWO),
    "squared": (PrivateLinearRegression(**REGRESS), NUMBERS),
    "huber": (PrivateLinearRegression(**REGRESS, loss="huber"), NUMBERS),
    "absolute": (PrivateLinearRegression(**REGRESS, loss="absolute"), NUMBERS),
    "quantile": (PrivateLinearRegression(**REGRESS, loss="quantile", quantile=0.9), NUMBERS),
    "range of labels": (PrivateLinearRegression(**CLASSIFY, label_range=(4.0, 6.0)), NUMBERS),
    "range of labels, log": (
        PrivateLinearRegression(**CLASSIFY, label_range=(1.0, 20.0), label_scale="log", loss="huber"),
        NUMBERS,
    ),
    "private labels": (
        PrivateLinearRegression(**REGRESS | {"feature_bound": "private", "label_bound": "private"}),
        NUMBERS,
    ),
    "naive Bayes": (PrivateNaiveBayes(**CLASSIFY, classes=["no", "yes"]), TWO),
    "naive Bayes, three": (PrivateNaiveBayes(**CLASSIFY, classes=[0, 1, 2]), THREE),
}
FITTED = {}


def fitted(name):
    """The estimator of a case and its pipeline, made once."""
    if name not in FITTED:
        model, y = CASES[name]
        model.fit(np.abs(X) if "Bayes" in name else X, y)
        FITTED[name] = model, pickle.loads(pickle.dumps(model.to_sklearn()))
    return FITTED[name]


def agree(model, pipeline, rows):
    """Whether all that both can do agrees on these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
            least_squares = getattr(model, "method", "") == "pqftl" and "proba" in method
            assert hasattr(pipeline, method) == (hasattr(model, method) and not least_squares)
            if hasattr(pipeline, method):
                ours, theirs = getattr(model, method)(rows), getattr(pipeline, method)(rows)
                assert ours.shape == theirs.shape
                if ours.dtype.kind == "f" and method != "predict_log_proba":  # scikit-learn's has half the digits
                    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)
        if hasattr(model, "classes_"):
            scores = model.decision_function(rows)
            margin = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1).ravel()
            clear = margin > 1e-9
            assert (model.predict(rows)[clear] == pipeline.predict(rows)[clear]).all()


@pytest.mark.parametrize("name", CASES)
def test_predictions_are_the_same(name):
    """On rows within the bound, beyond it, of length 0, and so long that squares overflow; dense or sparse."""
    model, pipeline = fitted(name)
    rows = np.concatenate([X, 50.0 * X, np.zeros((1, 3)), 1e200 * X[:5]])
    agree(model, pipeline, rows)
    agree(model, pipeline, csr_matrix(rows))
    assert type(pipeline[-2]) is NormClip


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(sorted(CASES)),
    rows=arrays(np.float64, st.tuples(st.integers(1, 4), st.just(3)), elements=st.floats(-1e12, 1e12)),
)
def test_predictions_are_the_same_on_any_rows(name, rows):
    """Whatever the rows are."""
    agree(*fitted(name), rows)


def test_missing_values_and_names():
    """A pipeline of standardised columns takes missing values as its estimator does, and knows names of columns."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.iloc[::7, 1] = np.nan
    model = PrivateLogisticRegression(**PRIVATE, classes=["no", "yes"]).fit(frame, TWO)
    pipeline = model.to_sklearn()
    agree(model, pipeline, frame)
    assert list(pipeline.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        pipeline.predict(frame[["c", "b", "a"]])
    without = PrivateLogisticRegression(**CLASSIFY, classes=["no", "yes"]).fit(X, TWO).to_sklearn()
    with pytest.raises(ValueError, match="NaN"):
        without.predict(frame.to_numpy())


def test_declared_columns_are_the_first_step():
    """Tables with texts and missing values; what no step is built for is rejected with a reason."""
    table = pd.DataFrame({"age": 50.0 + 80.0 * X[:, 0], "town": np.where(X[:, 1] > 0.0, "Rome", "Oslo")})
    table.loc[::9, "age"] = np.nan
    columns = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}
    stated = {"epsilon": 3.0, "seed": 1, "columns": columns}
    model = PrivateLogisticRegression(**stated, classes=["no", "yes"]).fit(table, TWO)
    pipeline = pickle.loads(pickle.dumps(model.to_sklearn()))
    agree(model, pipeline, table)
    assert [name for name, _ in pipeline.steps] == ["columns", "clip", "model"]
    found = PrivateLinearSVC(**stated | {"columns": columns | {"age": {"range": "private"}}}, classes=["no", "yes"])
    with pytest.raises(InvalidInput, match="found privately"):
        found.fit(table, TWO).to_sklearn()
    spend = PrivateLinearRegression(**stated, label_range=(0.0, 9.0)).fit(table, NUMBERS)
    agree(spend, pickle.loads(pickle.dumps(spend.to_sklearn())), table)


def test_a_range_of_labels_clips_predictions():
    """In the units of the labels, as one model of scikit-learn around another."""
    model, pipeline = fitted("range of labels")
    predicted = pipeline.predict(np.vstack([100.0 * X, np.eye(3)]))
    assert predicted.min() == 4.0
    assert predicted.max() == 6.0
    assert type(pipeline[-1].regressor_).__name__ == "Ridge"
    assert pipeline.score(X, NUMBERS) == pytest.approx(model.score(X, NUMBERS))


def test_a_pipeline_is_what_was_published_then():
    """It does not learn on with its estimator; and there is none before the first rows."""
    model = PrivateLinearSVC(**CLASSIFY, classes=["no", "yes"], horizon=N, release=100)
    with pytest.raises(NotFittedError):
        model.to_sklearn()
    model.partial_fit(X[:1000], TWO[:1000])
    pipeline = model.to_sklearn()
    before = pipeline.decision_function(X)
    model.partial_fit(X[1000:], TWO[1000:])
    assert (pipeline.decision_function(X) == before).all()
    assert (model.decision_function(X) != before).any()
    assert not any("Private" in type(step).__name__ for _, step in pipeline.steps)


def test_a_public_map_is_named_by_its_map():
    """Names of the mapped columns, for frames and for arrays."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    step = PublicMap(RandomFeatures(2, 1.0)).fit(frame)
    assert list(step.get_feature_names_out()) == ["cos 1", "sin 1", "a", "b", "c"]
    assert step.transform(frame).shape == (N, 5)
    with pytest.raises(ValueError, match=r"Give it as in taciturn\.RandomFeatures"):
        PublicMap().fit(X)
