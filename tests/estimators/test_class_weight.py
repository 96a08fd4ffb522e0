"""Weights of classes in the estimators: public, within the bounds, and a help where a class is rare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from taciturn import InvalidInput, Unprovable
from taciturn.estimators import river, sklearn
from taciturn.estimators.keywords import UnknownKeyword
from taciturn.estimators.settings import Settings

STATED = {"epsilon": 1.0, "feature_bound": 1.0, "classes": ["fine", "fraud"], "seed": 1}
WEIGHT = {"fraud": 20.0}


def rare(n, seed):
    """A table of which one row in 75 is a fraud, more or less known from its columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)) / 3.0
    frauds = rng.random(n) < expit(2.0 * (X[:, :4] @ [3.0, -2.25, 1.5, 0.75] - 3.6))
    return X, np.where(frauds, "fraud", "fine")


X, Y = rare(20_000, 1)
NEW, TRUE = rare(20_000, 2)


@pytest.mark.parametrize(
    ("kind", "least"), [(sklearn.PrivateLogisticRegression, 0.75), (sklearn.PrivateLinearSVC, 0.7)]
)
def test_a_rare_class_is_found(kind, least):
    """At epsilon = 1: without weights every row is fine; both with one seed."""
    plain = kind(**STATED).fit(X, Y)
    weighted = kind(**STATED, class_weight=WEIGHT).fit(X, Y)
    assert balanced_accuracy_score(TRUE, plain.predict(NEW)) < 0.53
    assert balanced_accuracy_score(TRUE, weighted.predict(NEW)) > least
    assert weighted.privacy_spent_ == plain.privacy_spent_
    assert weighted.plan_.noise == plain.plan_.noise


@pytest.mark.parametrize(
    ("method", "classes"), [("auto", 2), ("auto", 3), ("ftrl", 2), ("ftrl", 3), ("igd", 2), ("giga", 2)]
)
def test_equal_weights_are_no_weights(method, classes):
    """Whatever they are called: all are divided by the largest."""
    y = np.digitize(X[:1000, 0], [-0.1, 0.2] if classes == 3 else [0.0])
    model = sklearn.PrivateLogisticRegression(
        epsilon=5.0, feature_bound=1.0, classes=range(classes), seed=1, method=method
    )
    same = clone(model).set_params(class_weight=dict.fromkeys(range(classes), 7.0)).fit(X[:1000], y)
    np.testing.assert_allclose(
        same.coef_, model.fit(X[:1000], y).coef_, rtol=1e-3, atol=1e-4
    )  # a step of the lattice, or of a solver


def test_river_weights_as_scikit_learn_does():
    """The same stream, by the same settings."""
    names = [str(j) for j in range(8)]
    stated = STATED | {"horizon": 2_000, "class_weight": WEIGHT}
    other = river.PrivateLinearSVC(features=names, **stated)
    for row, label in zip(X[:2_000].tolist(), Y[:2_000], strict=True):
        other.learn_one(dict(zip(names, row, strict=True)), label)
    model = sklearn.PrivateLinearSVC(**stated).partial_fit(X[:2_000], Y[:2_000])
    np.testing.assert_allclose(list(other.weights.values()), model.coef_[0], rtol=1e-9, atol=1e-12)
    assert other.clone().class_weight == WEIGHT


def test_probabilities_are_those_of_the_weighted_loss():
    """As with scikit-learn's own class_weight."""
    model = sklearn.PrivateLogisticRegression(**STATED, class_weight=WEIGHT).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], expit(model.decision_function(NEW)))
    np.testing.assert_allclose(model.to_sklearn().predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ("balanced", "from public knowledge: counts of labels are private"),
        ([1.0, 2.0], "from public knowledge"),
        ({"frau": 2.0}, "'frau', which is not among the classes. State fine, fraud"),
        ({"fraud": 0.0}, "the weight of a class must be positive"),
        ({"fraud": "2"}, "the weight of a class must be positive"),
    ],
)
def test_wrong_weights(weights, match):
    """Rejected before anything is learnt, in both fronts."""
    with pytest.raises(InvalidInput, match=match):
        sklearn.PrivateLinearSVC(**STATED, class_weight=weights).fit(X, Y)
    with pytest.raises(InvalidInput, match=match):
        river.PrivateLinearSVC(features=["a"], **STATED, class_weight=weights).learn_one({"a": 1.0}, "fraud")


def test_methods_without_a_proof():
    """PQFTL and naive Bayes add up rows; there is no such setting for numbers."""
    with pytest.raises(Unprovable, match="method='ftrl'"):
        sklearn.PrivateLogisticRegression(**STATED, class_weight=WEIGHT, method="pqftl").fit(X, Y)
    with pytest.raises(Unprovable, match="naive Bayes adds up rows"):
        Settings("naive-bayes", epsilon=1.0, feature_bound=1.0, classes=2, class_weight=(1.0, 2.0)).plan(2, 100)
    for kind in (sklearn.PrivateNaiveBayes, river.PrivateNaiveBayes, sklearn.PrivateLinearRegression):
        with pytest.raises(UnknownKeyword, match="PrivateLogisticRegression and PrivateLinearSVC"):
            kind(class_weight=WEIGHT)
