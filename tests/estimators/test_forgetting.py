"""Estimators and contracts that forget follow a concept that turns, and predict by what they have released."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import InvalidInput
from taciturn.contract.contract import contract_of
from taciturn.estimators.river import PrivateLogisticRegression as RiverLogistic
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression

ROWS = 30_000


def turning():
    """Two features, of which the first decides, and after half of the rows its opposite."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.7, 0.7, (ROWS, 2))
    return X, np.where(np.arange(ROWS) < ROWS // 2, X[:, 0] > 0, X[:, 0] <= 0)


@pytest.mark.parametrize("model", [PrivateLinearSVC, PrivateLogisticRegression])
@pytest.mark.parametrize("forget", [2_000, "auto"])
def test_classifiers_turn_round(model, forget):
    X, y = turning()
    made = model(epsilon=2.0, feature_bound=1.0, classes=[False, True], forget=forget, seed=1)
    made.partial_fit(X[:20_000], y[:20_000]).partial_fit(X[20_000:], y[20_000:])
    assert made.score(X[-2_000:], y[-2_000:]) > 0.9
    assert made.plan_.window == (2_000 if forget == 2_000 else made.plan_.window)
    assert made.plan_.private.timetable.horizon is None


def test_a_batch_is_a_stream_if_it_is_forgotten():
    X, y = turning()
    made = PrivateLinearRegression(epsilon=2.0, feature_bound=1.0, label_bound=1.0, forget=2_000, seed=1)
    made.fit(X, np.where(y, 1.0, -1.0))
    assert made.n_releases_ > 100
    assert made.coef_[0] < -0.5
    with pytest.raises(InvalidInput, match="forget= is for streams"):
        PrivateLinearRegression(
            epsilon=2.0, feature_bound=1.0, label_bound=1.0, forget=100, release="last", seed=1
        ).fit(X, X[:, 0])


def test_drift_that_is_not_known_is_a_sentence():
    """Of streams that find ranges first, and of models that are published once; `hasattr` is false."""
    X, y = turning()
    settings = {"epsilon": 5.0, "label_bound": 1.0, "seed": 1}
    found = PrivateLinearRegression(feature_bound="private", forget=2_000, **settings).partial_fit(X, X[:, 0])
    with pytest.raises(InvalidInput, match=r"finds ranges first.*State the ranges"):
        _ = found.drift_
    once = PrivateLogisticRegression(epsilon=5.0, feature_bound=1.0, classes=[False, True], seed=1).fit(X, y)
    with pytest.raises(InvalidInput, match=r"is published once.*Learn by partial_fit"):
        _ = once.drift_
    assert not hasattr(found, "drift_")
    river = RiverLogistic(columns={"a": {"range": "private"}}, epsilon=5.0, horizon=30_000, seed=1)
    with pytest.raises(InvalidInput, match="finds ranges first"):
        _ = river.drift


def test_river_turns_round():
    X, y = turning()
    model = RiverLogistic(features=["a", "b"], epsilon=2.0, feature_bound=1.0, forget=2_000, seed=1)
    for (a, b), label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one({"a": a, "b": b}, label)
    right = [model.predict_one({"a": a, "b": b}) == label for (a, b), label in zip(X[-500:], y[-500:], strict=True)]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize(("forget", "window"), [(5_000, 5_000), ("auto", 330)])
def test_contracts_declare_it(forget, window):
    """It is part of the contract, and so of its digest; without it nothing changes."""
    data = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "y", "positive": ["yes"]},
        "columns": {"x": {"range": [0, 1]}},
    }
    plain, made = contract_of(data), contract_of(data | {"learning": {"forget": forget}})
    assert made.declared["learning"]["forget"] == forget
    assert "forget" not in plain.declared["learning"]
    assert plain.digest != made.digest
    assert made.plan().window == window
    with pytest.raises(InvalidInput, match=r"learning\.forget"):
        contract_of(data | {"learning": {"forget": "soon"}})
