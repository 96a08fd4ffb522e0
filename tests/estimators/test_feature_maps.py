"""Random features in the estimators: by a public rule, in copies, in checkpoints and in predictions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from taciturn import InvalidInput, Privacy, RandomFeatures, User
from taciturn.estimators.river import PrivateLinearSVC as RiverSVC
from taciturn.estimators.scaling import PublicRandomFeatures
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from taciturn.plan import feature_map, feature_scales

STATED = {"epsilon": 1.0, "feature_bound": 1.0, "seed": 1}


def circle(n=20_000, seed=0):
    """Inside of a circle or not: nothing for a linear model."""
    X = np.random.default_rng(seed).uniform(-0.7, 0.7, size=(n, 2))
    return X, (np.linalg.norm(X, axis=1) < 0.55).astype(int)


@pytest.mark.parametrize("kind", [PrivateLinearSVC, PrivateLogisticRegression])
def test_classifiers_learn_from_random_features(kind):
    """A circle, at epsilon = 1; linear models predict the more frequent class."""
    X, y = circle()
    model = kind(**STATED, classes=[0, 1], features=100).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.coef_.shape == (1, 102)
    assert kind(**STATED, classes=[0, 1]).fit(X, y).score(X, y) < 0.7
    assert model.plan_.as_data()["features"] == "100 random features of scale 2.21 and seed 0, and the raw ones"


def test_regression_learns_from_random_features():
    """A square, by few random features and sums of their products."""
    X, _ = circle()
    y = X[:, 0] ** 2
    errors = [
        np.mean((PrivateLinearRegression(**STATED, label_bound=0.5, features=f).fit(X, y).predict(X) - y) ** 2)
        for f in ("linear", 20)
    ]
    assert errors[1] < 0.5 * errors[0]


def test_copies_predict_and_resume(tmp_path):
    """Clones have the setting, pickles predict the same, and a checkpoint resumes in a copy."""
    X, y = circle(3000)
    model = PrivateLinearSVC(**STATED, classes=[0, 1], horizon=3000, features=RandomFeatures(40, (3.0, 1.0)))
    assert clone(model).features == model.features
    model.partial_fit(X[:1500], y[:1500])
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copied.decision_function(X), model.decision_function(X))
    model.dump_stream(tmp_path / "state")
    copied.load_stream(tmp_path / "state").partial_fit(X[1500:], y[1500:])
    whole = clone(model).partial_fit(X[:1500], y[:1500]).partial_fit(X[1500:], y[1500:])
    assert np.array_equal(copied.coef_, whole.coef_)


def test_changed_features_are_another_stream():
    """A stream that began with one map does not go on with another."""
    X, y = circle(100)
    model = PrivateLinearSVC(**STATED, classes=[0, 1], horizon=200, features=10).partial_fit(X, y)
    with pytest.raises(Exception, match="settings have changed"):
        model.set_params(features=12).partial_fit(X, y)


def test_river_maps_rows():
    """Scores of single rows, of frames and by scikit-learn's interface are the same; weights have names."""
    X, y = circle(400)
    river = RiverSVC(features=["a", "b"], classes=[0, 1], horizon=400, feature_map=30, **STATED)
    sk = PrivateLinearSVC(**STATED, classes=[0, 1], horizon=400, features=30).partial_fit(X, y)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        river.learn_one({"a": row[0], "b": row[1]}, label)
    assert list(river.weights) == [f"{wave} {j}" for wave in ("cos", "sin") for j in range(1, 16)] + ["a", "b"]
    np.testing.assert_allclose(list(river.weights.values()), sk.coef_[0], atol=1e-12)
    predicted = [river.predict_one({"a": a, "b": b}) for a, b in X[:50].tolist()]
    assert predicted == sk.predict(X[:50]).tolist()
    copied = pickle.loads(pickle.dumps(river))
    assert copied.predict_one({"a": 0.1, "b": 0.2}) == river.predict_one({"a": 0.1, "b": 0.2})
    assert river.clone().feature_map == 30


def test_the_rule_prefers_linear_models():
    """Random features for classes with a budget and a horizon that are large enough; else none."""
    budget = Privacy(1.0, 1e-6)
    assert feature_map("random", 1.0, budget, 500_000).count == 2000
    assert feature_map("random", 1.0, budget, 5_000) is None
    assert feature_map("random", 1.0, budget, None) is None
    assert feature_map("random", 1.0, budget, 500_000, by_ftrl=False) is None
    assert feature_map("random", 1.0, budget, 500_000, unit=User(rows=1000)) is None
    assert feature_map("linear", 1.0, budget, 500_000) is None
    assert feature_map("random", 1.0, budget, 190_000, scales=(1.0,)) is None
    small = Privacy(0.3, 1e-6)
    assert feature_map("random", 1.0, small, 300_000) is None
    assert feature_map("random", 1.0, small, 300_000, scales=(1.0,)).count == 2000
    assert feature_map(100, 2.0, budget).scale == 1.25
    assert feature_map(100, 2.0, budget, 10_000_000).scale > 1.25
    assert feature_map(100, 2.0, budget, scales=(1.0, 0.5)) == RandomFeatures(100, (1.0, 0.5), 2.0)
    assert feature_scales(4, 0) == (2.0, 0.8)
    for numbers in ({"loss": "squared", "label_bound": 1.0}, {"loss": "hinge", "classes": 2, "method": "pqftl"}):
        settings = Settings(epsilon=1.0, feature_bound=1.0, features="random", **numbers)
        assert settings.problem(10, 500_000).features is None
    for wrong, error in (("cosine", "features must be one of"), (0, "features must be an integer"), (3, "pairs")):
        with pytest.raises(InvalidInput, match=error):
            Settings("hinge", epsilon=1.0, feature_bound=1.0, classes=2, features=wrong).problem(10)


def test_one_release_of_a_mapped_batch_is_by_ftrl():
    """Objective perturbation keeps all rows; with a map they would be an array of all rows times all features."""
    settings = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, features=10)
    assert settings.plan(3, 1000, batch=True).method == "pftrl"


def test_the_transformer_knows_its_norm():
    """In a pipeline with a private model whose bound is its length; names for its columns."""
    X, y = circle(2000)
    mapped = PublicRandomFeatures(50, scale=(3.0, 2.0), length=1.5)
    image = mapped.fit_transform(X)
    assert image.shape == (2000, 52)
    assert np.linalg.norm(image, axis=1).max() <= 1.5 * (1.0 + 1e-12)
    assert np.array_equal(image, RandomFeatures(50, (3.0, 2.0), 1.5)(X))
    assert len(mapped.get_feature_names_out()) == 52
    model = make_pipeline(clone(mapped), PrivateLinearSVC(epsilon=1.0, feature_bound=1.5, classes=[0, 1], seed=1))
    assert model.fit(X, y).predict(X).shape == (2000,)


def test_random_features_of_standardised_columns():
    """Where bounds are found privately, random features are of what is found: any units, and missing values."""
    X, y = circle(40_000)
    raw = X * [1e4, 1e-3] + [5e4, 0.02]
    raw[np.random.default_rng(1).random(40_000) < 0.02, 0] = np.nan
    model = PrivateLinearSVC(epsilon=1.0, feature_bound="private", classes=[0, 1], features=100, seed=1)
    assert model.fit(raw, y).score(raw, y) > 0.85
