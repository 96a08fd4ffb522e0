"""river's own checks, on every estimator and transformer."""

import random

import pytest

pytest.importorskip("river")

from river import checks, datasets

from taciturn.estimators.river import (
    NormClip,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateNaiveBayes,
    PublicScaler,
)

NAMES = tuple(next(iter(datasets.Phishing()))[0])
SEGMENTS = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")
STATED = {"epsilon": 1.0, "feature_bound": 1.0}

MODELS = {
    "regression": PrivateLinearRegression(buckets=16, label_bound=50.0, **STATED),
    "absolute": PrivateLinearRegression(features=("gallup", "ipsos"), loss="absolute", label_bound=50.0, **STATED),
    "svc": PrivateLinearSVC(features=NAMES, **STATED),
    "naive bayes": PrivateNaiveBayes(buckets=64, **STATED),
    "logistic": PrivateLogisticRegression(features=NAMES, **STATED),
    "hashed": PrivateLogisticRegression(buckets=64, horizon=5_000, release="geometric", **STATED),
    "every": PrivateLogisticRegression(features=NAMES, release="every", **STATED),
    "iterates": PrivateLogisticRegression(
        features=NAMES, method="igd", release="every", epsilon=100.0, feature_bound=1.0
    ),
    "classes": PrivateLogisticRegression(buckets=64, classes=(False, True, *SEGMENTS), **STATED),
    "columns": PrivateLogisticRegression(columns={name: {"range": [0, 1]} for name in NAMES}, epsilon=1.0),
    "range of labels": PrivateLinearRegression(buckets=16, label_range=(0.0, 100.0), **STATED),
    "scaler": PublicScaler({"gallup": (0, 100), "ipsos": (30, 50)}),
    "clip": NormClip(2.0),
    "pipeline": PublicScaler(dict.fromkeys(NAMES, (0, 1))) | PrivateLogisticRegression(features=NAMES, **STATED),
}
CHECKS = [(name, i, check) for name, model in MODELS.items() for i, check in enumerate(checks.yield_checks(model))]


@pytest.mark.filterwarnings("ignore:each clone of a model is a stream")  # as the checks clone
@pytest.mark.filterwarnings("ignore:this example has none of the declared features")
@pytest.mark.parametrize(
    ("name", "check"),
    [pytest.param(name, check, id=f"{name}-{i}-{check.__name__}") for name, i, check in CHECKS],
)
def test_river_check(name, check):
    random.seed(1)  # river's checks draw features from the global generator
    check(MODELS[name].clone())
