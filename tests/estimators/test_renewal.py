"""A successor starts from released weights only if they mean the same: features, target and bounds are compared."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from taciturn import InvalidInput, RandomFeatures
from taciturn.estimators import river, sklearn
from taciturn.renewal import Renewal

COLUMNS = {"age": {"range": [0, 100]}, "plan": {"categories": ["free", "basic"]}}
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": RNG.uniform(0, 100, 400), "plan": RNG.choice(["free", "basic"], 400)})
Y = 50.0 * (TABLE["plan"] == "free") + 0.4 * TABLE["age"]
STATED = {"columns": COLUMNS, "label_range": (0, 100), "horizon": 1_000, "epsilon": 5.0, "seed": 1}
CHANGES = {
    "a range": ({"columns": COLUMNS | {"age": {"range": [0, 120]}}}, "the columns differ"),
    "a scale": ({"columns": COLUMNS | {"age": {"range": [0, 100], "scale": "symlog"}}}, "the columns differ"),
    "the order of categories": (
        {"columns": COLUMNS | {"plan": {"categories": ["basic", "free"]}}},
        "the columns differ",
    ),
    "a name": ({"columns": {"Age": COLUMNS["age"], "plan": COLUMNS["plan"]}}, "the columns differ"),
    "the range of labels": ({"label_range": (0, 200)}, "the range of the labels"),
    "the scale of labels": ({"label_range": (0, 100), "label_scale": "symlog"}, "the range of the labels"),
    "the feature bound": ({"feature_bound": 9.0}, "the feature bound"),
    "the map": ({"features": RandomFeatures(2, 1.0)}, "the map of the features differs"),
}


def fitted(**changes):
    return sklearn.PrivateLinearRegression(**STATED | changes).partial_fit(
        TABLE.rename(columns={"age": next(iter(changes.get("columns") or COLUMNS))}), Y
    )


def learnt_by_river(**changes):
    if "features" in changes:
        changes = {name.replace("features", "feature_map"): value for name, value in changes.items()}
    model = river.PrivateLinearRegression(**STATED | changes)
    name = next(iter(changes.get("columns", COLUMNS)))
    for age, plan, y in zip(TABLE["age"], TABLE["plan"], Y, strict=True):
        model.learn_one({name: age, "plan": plan}, y)
    return model


@pytest.mark.parametrize(("changes", "words"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("front", [fitted, learnt_by_river])
def test_other_features_targets_and_bounds_are_rejected(front, changes, words):
    old = fitted(**({"features": RandomFeatures(2, 2.0)} if "features" in changes else {}))
    with pytest.raises(InvalidInput, match="declares other features, another target or other bounds") as caught:
        front(renew=old.renewal_, **changes)
    assert words in str(caught.value)


@pytest.mark.parametrize("front", [fitted, learnt_by_river])
def test_budget_horizon_method_and_forgetting_may_change(front):
    old = fitted()
    for changes in ({}, {"epsilon": 2.0, "horizon": 2_000}, {"method": "ftrl"}, {"forget": 300, "horizon": None}):
        front(renew=old.renewal_, **changes)
    front(renew=learnt_by_river().renewal)


def test_names_and_classes_are_compared_where_they_are_known():
    X, labels = TABLE[["age"]].assign(other=0.5) / 100, np.where(Y > 50, "b", "a")
    settings = {"epsilon": 5.0, "feature_bound": 1.0, "horizon": 1_000, "seed": 1}
    logistic = sklearn.PrivateLogisticRegression
    old = logistic(classes=["a", "b"], **settings).partial_fit(X, labels).renewal_
    logistic(classes=["b", "a"], renew=old, **settings).partial_fit(X.to_numpy(), labels)  # classes are sorted
    with pytest.raises(InvalidInput, match="names of the features, or their order, differ"):
        logistic(classes=["a", "b"], renew=old, **settings).partial_fit(X[["other", "age"]], labels)
    with pytest.raises(InvalidInput, match="the classes"):
        logistic(classes=["a", "c"], renew=old, **settings).partial_fit(X, np.where(Y > 50, "c", "a"))
    with pytest.raises(InvalidInput, match="the feature bound, or whether there is an intercept, differs"):
        logistic(classes=["a", "b"], renew=old, **settings | {"feature_bound": 2.0}).partial_fit(X, labels)
    row = {"age": 0.5, "other": 0.5}
    river.PrivateLogisticRegression(classes=["a", "b"], features=["age", "other"], renew=old, **settings).learn_one(
        row, "a"
    )
    with pytest.raises(InvalidInput, match="the classes"):
        river.PrivateLogisticRegression(classes=["b", "a"], features=["age", "other"], renew=old, **settings).learn_one(
            row, "a"
        )


def test_what_does_not_say_what_its_weights_mean_is_a_warning():
    """Renewals of earlier versions, and of runs."""
    old = fitted().renewal_
    unknown = dataclasses.replace(old, means=())
    assert Renewal.from_data(unknown.as_data()) == unknown
    assert "means" not in unknown.as_data()
    with pytest.warns(UserWarning, match="does not say which features, target and bounds"):
        fitted(renew=unknown)


MEANS_OF_1 = {  # of `fitted()`, by settings of version 1
    "columns": "501c64bdaa3feb00c4fa0359274bc0de",
    "target": "579faf113d661322b5ebadc7eb141364",
    "bounds": "e3e2915fc2d406e791f458be29e54598",
    "map": "74234e98afe7498fb5daf1f36ac2d78a",
}


def test_a_model_of_version_1_is_followed_by_one_of_the_same_meaning():
    now = fitted().renewal_
    old = dataclasses.replace(now, means=tuple(MEANS_OF_1.items()))
    assert fitted(renew=old).renewal_.means == now.means != old.means
    for changes, words in list(CHANGES.values())[:-1]:
        with pytest.raises(InvalidInput, match=words):
            fitted(renew=old, **changes)


def test_what_weights_mean_is_public_data_that_lasts():
    old = fitted().renewal_
    assert Renewal.from_data(old.as_data()) == old == pickle.loads(pickle.dumps(old))
    assert dict(old.means) == dict(learnt_by_river().renewal.means) | {"columns": dict(old.means)["columns"]}
    assert fitted(renew=old).renewal_.means == old.means


def test_a_stream_that_is_loaded_says_what_its_weights_mean(tmp_path):
    model = fitted()
    model.dump_stream(tmp_path / "s.npz")
    loaded = sklearn.PrivateLinearRegression(**STATED).load_stream(tmp_path / "s.npz")
    assert loaded.renewal_.means == model.renewal_.means
