"""What the estimators' defaults reach on half a million real rows, with nothing tuned to them."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.datasets import covertype
from taciturn.estimators.sklearn import PrivateLinearSVC, PrivateLogisticRegression


@pytest.fixture(scope="module")
def split(data_file):
    """Nine tenths to learn from and one to test on: class 2 against the rest, rows of norm 1."""
    data_file("covtype.npz")
    stream = covertype()
    order = np.random.default_rng(0).permutation(len(stream))
    test, train = np.split(order, [len(stream) // 10])
    return stream.X[train], stream.y[train], stream.X[test], stream.y[test]


@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 0.750), (0.1, 0.725)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_logistic_regression_with_nothing_else_set(split, epsilon, least, seed):
    """Seeded; without a seed 5 runs of 5 gave 75.4 to 75.5 % at epsilon 1, and 73.9 to 74.6 % at .1."""
    X, y, X_test, y_test = split
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=1e-6, feature_bound=1.0, classes=[-1.0, 1.0], seed=seed
    ).fit(X, y)
    assert model.score(X_test, y_test) >= least
    assert model.privacy_spent_.epsilon <= epsilon


def test_support_vectors_too(split):
    X, y, X_test, y_test = split
    model = PrivateLinearSVC(epsilon=1.0, feature_bound=1.0, classes=[-1.0, 1.0], seed=1).fit(X, y)
    assert model.score(X_test, y_test) >= 0.755
