"""Streams of the models for river: an example at a time, and frames."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from recorded.data import COLUMNS, EPSILON, ROWS, people, records, several, signs, table
from recorded.fronts import cost_of, for_river, guarantee_of, state_in
from recorded.registry import stream

SEED = 7
NAMES = ["a", "b", "c"]
BASE = {"epsilon": EPSILON, "seed": SEED, "horizon": ROWS}
FEATURES = BASE | {"features": NAMES, "feature_bound": 1.0}
END = ROWS - 10


def examples(X: np.ndarray) -> list[dict[str, float]]:
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def learnt(
    model: object, folder: Path, rows: Iterable[dict], labels: Iterable[object], moved: int = 300
) -> dict[str, object]:
    """The weights after each release of a stream that is moved to a clone on the way, and all that is public of it."""
    weights, seen = [], 0
    for i, (x, y) in enumerate(zip(rows, labels, strict=False)):
        if i == END:
            break
        if i == moved:
            model.dump_stream(folder / "moved.npz")
            model = model.clone().load_stream(folder / "moved.npz")
        model.learn_one(x, y)
        if i % 10 == 9 and model.n_releases != seen:
            seen = model.n_releases
            weights.append(_flat(model.weights) + _flat(model.intercept))
    return of(model, folder) | {"weights": np.array(weights)}


def of(model: object, folder: Path) -> dict[str, object]:
    model.dump_stream(folder / "stream.npz")
    return {
        "latest": np.array(_flat(model.weights) + _flat(model.intercept)),
        "state": state_in(folder / "stream.npz"),
        "spent": list(model.privacy_spent),
        "counts": [model.n_examples, model.n_releases],
        "reserved": cost_of(model.plan.private.total_cost),
        "guarantee": guarantee_of(model.plan.private),
    }


def _flat(weights: object) -> list[float]:
    """Weights by the names of features, or by class, one after the other."""
    if isinstance(weights, Mapping):
        return [number for each in weights.values() for number in _flat(each)]
    return [float(weights)]


@stream("river classes")
def classes(folder: Path) -> Mapping[str, object]:
    """Logistic regression and SVC: declared features, hashed ones, texts, three classes, a transformer before."""
    X, y = signs()
    logistic, vectors = for_river.PrivateLogisticRegression, for_river.PrivateLinearSVC
    hashed = [x | {"town": ("Oslo", "Rome")[i % 2], f"rare {i % 7}": 0.25} for i, x in enumerate(examples(X))]
    declared = logistic(**FEATURES, classes=[-1.0, 1.0], release=50)
    made = learnt(declared, folder, examples(X), y)
    scaler = for_river.PublicScaler(ranges=dict.fromkeys(NAMES, (-0.5, 0.5)))
    scaled = logistic(**FEATURES | {"feature_bound": 2.0}, classes=[-1.0, 1.0])
    rows = [scaler.transform_one(x) for x in examples(X)]
    return {
        "declared": made,
        "no horizon": learnt(logistic(**FEATURES | {"horizon": None}, classes=[-1.0, 1.0]), folder, examples(X), y),
        "hashed": learnt(vectors(**BASE, buckets=32, feature_bound=1.5, classes=[-1.0, 1.0]), folder, hashed, y),
        "three": learnt(vectors(**FEATURES, classes=[0.0, 1.0, 2.0]), folder, examples(X), several()[1]),
        "scaled": learnt(scaled, folder, rows, y),
        "weighted": learnt(vectors(**FEATURES, classes=[-1.0, 1.0], class_weight={1.0: 4.0}), folder, examples(X), y),
        "zero-out": learnt(vectors(**FEATURES, classes=[-1.0, 1.0], neighbours="zero-out"), folder, examples(X), y),
        "iterates": learnt(logistic(**FEATURES, classes=[-1.0, 1.0], method="igd", release=30), folder, examples(X), y),
        "mapped": learnt(logistic(**FEATURES, classes=[-1.0, 1.0], feature_map=16), folder, examples(X), y),
    }


@stream("river numbers")
def numbers(folder: Path) -> Mapping[str, object]:
    """Regression: by the plan, with every release, of labels in a range, forgetting, and of frames."""
    X, y = table()
    model = for_river.PrivateLinearRegression
    bound = FEATURES | {"label_bound": 1.0}
    many = model(**bound, release=25)
    frame = pd.DataFrame(X, columns=NAMES)
    for part in (slice(0, 40), slice(40, END)):
        many.learn_many(frame.iloc[part], pd.Series(y[part]))
    return {
        "plan": learnt(model(**bound), folder, examples(X), y),
        "every": learnt(model(**bound, release="every"), folder, examples(X), y),
        "range": learnt(model(**FEATURES, label_range=(0, 100), loss="huber"), folder, examples(X), 50 + 40 * y),
        "forgetting": learnt(model(**bound | {"horizon": None}, forget=(100, 300), release=20), folder, examples(X), y),
        "frames": of(many, folder) | {"predictions": many.predict_many(frame[:50]).to_numpy()},
    }


@stream("river columns")
def columns(folder: Path) -> Mapping[str, object]:
    """Declared columns of every kind, with gaps, bad examples that take their round, and predictions."""
    rows = records()
    settings = BASE | {"columns": COLUMNS, "on_bad": "zero"}
    made = {}
    for name, model, target in (
        ("classes", for_river.PrivateLogisticRegression(**settings, classes=["no", "yes"]), "bought"),
        ("numbers", for_river.PrivateLinearRegression(**settings, label_range=(0, 2_000)), "spent"),
    ):
        x = [{column: row[column] for column in COLUMNS} for row in rows]
        for i in range(0, ROWS, 31):
            x[i]["visits"] = "many"  # a bad value: it is no number
        made[name] = learnt(model, folder, x, [row[target] for row in rows])
    return made


@stream("river users")
def users(folder: Path) -> Mapping[str, object]:
    """People with several examples: by a key of the example, apart, and without an id."""
    X, y = signs()
    known = [{"who": who, **x} for who, x in zip(people().tolist(), examples(X), strict=True)]
    some = [{k: v for k, v in x.items() if k != "who" or i % 13} for i, x in enumerate(known)]
    of_users = FEATURES | {"user": "who", "classes": [-1.0, 1.0], "release": 25}
    model = for_river.PrivateLinearSVC
    return {
        "rows": learnt(model(**of_users, rows_per_user=4), folder, known, y),
        "apart": learnt(model(**of_users, rows_per_user=4, apart=3), folder, known, y),
        "own": learnt(model(**of_users, rows_per_user=6, rows_per_release=2, without_id="own"), folder, some, y),
    }


@stream("river words")
def words(folder: Path) -> Mapping[str, object]:
    """Naive Bayes of counts of words, and ranges that are found privately."""
    rows = [dict.fromkeys(row["note"].split(), 0.25) for row in records()]
    labels = [row["kind"] for row in records()]
    bayes = for_river.PrivateNaiveBayes(**BASE, buckets=64, feature_bound=1.0, classes=["gone", "grows", "stays"])
    X, y = signs(5_000)
    found = for_river.PrivateLogisticRegression(
        features=NAMES, feature_bound="private", epsilon=20.0, horizon=5_000, classes=[-1.0, 1.0], seed=SEED
    )
    for x, label in zip(examples(100.0 * X[:4_990]), y, strict=False):
        found.learn_one(x, label)
    return {"naive Bayes": learnt(bayes, folder, rows, labels), "stages": of(found, folder)}
