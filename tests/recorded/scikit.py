"""Streams of the estimators for scikit-learn."""

import pickle
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn.base
from scipy.sparse import csr_matrix

import taciturn as t
from recorded.data import COLUMNS, EPSILON, ROWS, people, records, several, signs, table
from recorded.fronts import PrivateSearchCV, cost_of, for_sklearn, guarantee_of, in_ledger, released, state_in
from recorded.registry import stream

SEED = 7
CUTS = (0, 2, 90, 333, ROWS - 10)
BASE = {"epsilon": EPSILON, "feature_bound": 1.0, "seed": SEED}
CLASSES, KINDS = [-1.0, 1.0], [0.0, 1.0, 2.0]


def fitted(model: object, folder: Path, X: object, releases: list[t.Release]) -> dict[str, object]:
    """What is recorded of a fitted estimator."""
    model.dump_stream(folder / "stream.npz")
    made = {
        "releases": released(releases),
        "coef": model.coef_,
        "intercept": model.intercept_,
        "predictions": np.asarray(_numbers(model.predict(X[:50]))),
        "state": state_in(folder / "stream.npz"),
        "spent": list(model.privacy_spent_),
        "counts": [model.n_examples_, model.n_releases_],
        "reserved": cost_of(model.plan_.private.total_cost),
        "guarantee": guarantee_of(model.plan_.private),
    }
    if hasattr(model, "predict_proba"):
        made["probabilities"] = model.predict_proba(X[:50])
    return made


def _numbers(values: np.ndarray) -> np.ndarray:
    """Predictions as numbers: classes that are texts by their place."""
    return values if values.dtype.kind in "biuf" else np.unique(values, return_inverse=True)[1]


def whole(model: object, folder: Path, X: object, y: np.ndarray, **more: object) -> dict[str, object]:
    """An estimator that is fitted to all rows."""
    model.fit(X, y, **more)
    return fitted(model, folder, X, list(model.releases_))


def parts(
    model: object, folder: Path, X: object, y: np.ndarray, users: object = None, cuts: tuple[int, ...] = CUTS
) -> dict[str, object]:
    """An estimator that learns in several calls; before the last its stream is moved to a clone."""
    releases: list[t.Release] = []
    for i, (start, end) in enumerate(pairwise(cuts)):
        if i == len(cuts) - 2:
            model.dump_stream(folder / "moved.npz")
            model = sklearn.base.clone(model).load_stream(folder / "moved.npz")
        own = {} if users is None else {"users": users[start:end]}
        model.partial_fit(X[start:end], y[start:end], **own)
        releases.extend(model.releases_)
    return fitted(model, folder, X, releases)


@stream("scikit logistic")
def logistic(folder: Path) -> Mapping[str, object]:
    """Logistic regression as a stream, with a horizon and without, weighted, of three classes, zeroed out."""
    model, (X, y) = for_sklearn.PrivateLogisticRegression, signs()
    return {
        "no horizon": parts(model(**BASE, classes=CLASSES), folder, X, y),
        "horizon": parts(model(**BASE, classes=CLASSES, horizon=ROWS), folder, X, y),
        "weighted": parts(model(**BASE, classes=CLASSES, horizon=ROWS, class_weight={1.0: 5.0}), folder, X, y),
        "three": parts(model(**BASE, classes=KINDS, horizon=ROWS), folder, *several()),
        "zero-out": parts(model(**BASE, classes=CLASSES, horizon=ROWS, neighbours="zero-out"), folder, X, y),
        "least squares": parts(model(**BASE, classes=CLASSES, horizon=ROWS, method="pqftl"), folder, X, y),
        "of labels": parts(
            model(**BASE, classes=CLASSES, method="pqftl", release=20, neighbours="label"), folder, X, y
        ),
    }


@stream("scikit logistic at once")
def logistic_at_once(folder: Path) -> Mapping[str, object]:
    """Logistic regression of a data set: objective perturbation, private FTRL, three classes; without taciturn."""
    model, (X, y) = for_sklearn.PrivateLogisticRegression, signs()
    perturbed = model(**BASE, classes=CLASSES)
    made = {
        "objective perturbation": whole(perturbed, folder, X, y),
        "ftrl": whole(model(**BASE, classes=CLASSES, method="ftrl"), folder, X, y),
        "three": whole(model(**BASE, classes=KINDS), folder, *several()),
    }
    return made | {"to_sklearn": perturbed.to_sklearn().decision_function(3.0 * X[:50])}


@stream("scikit iterates")
def iterates(folder: Path) -> Mapping[str, object]:
    """The methods igd and giga, of which each call and each growing round publishes, and of one release."""
    model, (X, y) = for_sklearn.PrivateLogisticRegression, signs()
    growing = model(**BASE, classes=CLASSES, horizon=ROWS, method="igd", release="geometric")
    every = model(**BASE, classes=CLASSES, horizon=ROWS, method="giga", release="every")
    return {
        "igd": parts(growing, folder, X, y),
        "giga": parts(every, folder, X, y),
        "once": whole(model(**BASE, classes=CLASSES, method="igd", release="last"), folder, X, y),
    }


@stream("scikit vectors")
def vectors(folder: Path) -> Mapping[str, object]:
    """Linear SVC: a stream and at once, of two classes and of three, of sparse rows, of random features."""
    model, (X, y) = for_sklearn.PrivateLinearSVC, signs()
    sparse = csr_matrix(np.where(np.abs(X) > 0.25, X, 0.0))
    return {
        "stream": parts(model(**BASE, classes=CLASSES, horizon=ROWS), folder, X, y),
        "at once": whole(model(**BASE, classes=CLASSES), folder, X, y),
        "three": parts(model(**BASE, classes=KINDS), folder, *several()),
        "sparse": parts(model(**BASE, classes=CLASSES, horizon=ROWS), folder, sparse, y),
        "random features": parts(model(**BASE, classes=CLASSES, horizon=ROWS, features=20), folder, X, y),
    }


@stream("scikit naive Bayes")
def naive_bayes(folder: Path) -> Mapping[str, object]:
    """Naive Bayes of sparse counts: a stream and at once, two classes and three, and rows of users."""
    model = for_sklearn.PrivateNaiveBayes
    counts = csr_matrix(np.maximum(several(ROWS, 60)[0] - 0.375, 0.0))
    y, two = several(ROWS, 60)[1], signs(ROWS, 60)[1]
    return {
        "stream": parts(model(**BASE, classes=KINDS, horizon=ROWS), folder, counts, y),
        "at once": whole(model(**BASE, classes=CLASSES), folder, counts, two),
        "users": parts(model(**BASE, classes=KINDS, horizon=ROWS, rows_per_user=2), folder, counts, y, people()),
    }


@stream("scikit regression")
def regression(folder: Path) -> Mapping[str, object]:
    """Linear regression by each loss, as a stream and at once, with ranges of labels."""
    model, (X, y) = for_sklearn.PrivateLinearRegression, table()
    bound = BASE | {"label_bound": 1.0}
    made = {
        "stream": parts(model(**bound, horizon=ROWS), folder, X, y),
        "no horizon": parts(model(**bound, release=30), folder, X, y),
        "at once": whole(model(**bound), folder, X, y),
        "range": parts(
            model(**BASE, label_range=(10, 1000), label_scale="log", horizon=ROWS), folder, X, 400 + 300 * y
        ),
    }
    for loss in ("absolute", "huber", "quantile"):
        more = {"quantile": 0.75} if loss == "quantile" else {}
        made[loss] = parts(model(**bound, loss=loss, horizon=ROWS, **more), folder, X, y)
    return made


@stream("scikit forgetting")
def forgetting(folder: Path) -> Mapping[str, object]:
    """Streams that forget: one window, several memories, the rule; drift; and a stream that starts from another."""
    model, (X, y) = for_sklearn.PrivateLinearRegression, table()
    bound = BASE | {"label_bound": 1.0}
    windows = model(**bound, forget=(100, 300), release=20).partial_fit(X[:500], y[:500])
    seen = {name: np.asarray(getattr(windows.drift_, name)) for name in ("rounds", "distance", "alarm_at")}
    old = model(**bound, horizon=ROWS).partial_fit(X[:400], y[:400])
    new = parts(model(**bound | {"epsilon": 2.0}, horizon=ROWS, renew=old.renewal_), folder, X, y)
    classes = for_sklearn.PrivateLogisticRegression(**BASE, classes=CLASSES, forget=150)
    return {
        "one window": parts(model(**bound, forget=150), folder, X, y),
        "several": parts(model(**bound, forget=(100, 300), release=20), folder, X, y),
        "auto": parts(model(**bound, forget="auto", horizon=ROWS), folder, X, y),
        "classes": parts(classes, folder, *signs()),
        "drift": seen,
        "renewed": new,
        "charges": [[charge.unit, charge.delta] for charge in old.renewal_.charges],
    }


@stream("scikit users")
def users(folder: Path) -> Mapping[str, object]:
    """People with several rows: each bound, two owners of a row, rows without an id."""
    model, ids = for_sklearn.PrivateLinearRegression, people()
    bound, (X, y) = BASE | {"label_bound": 1.0, "horizon": ROWS, "release": 25}, table()
    gaps = [None if i % 17 == 0 else f"user {each}" for i, each in enumerate(ids.tolist())]
    own = model(**bound, rows_per_user=6, rows_per_release=2, without_id="own")
    classes = for_sklearn.PrivateLogisticRegression(**BASE, classes=CLASSES, horizon=ROWS, rows_per_user=4)
    return {
        "rows": parts(model(**bound, rows_per_user=4), folder, X, y, ids),
        "apart": parts(model(**bound, rows_per_user=4, apart=3), folder, X, y, ids),
        "period": parts(model(**bound, rows_per_user=2, rows_per_release=1, period=200), folder, X, y, ids),
        "owners": parts(model(**bound, rows_per_user=4), folder, X, y, np.column_stack([ids, ids[::-1]])),
        "without an id": parts(own, folder, X, y, gaps),
        "at once": whole(
            model(**(bound | {"horizon": None, "release": "auto"}), rows_per_user=4), folder, X, y, users=ids
        ),
        "classes": parts(classes, folder, *signs(), ids),
    }


@stream("scikit stages")
def stages(folder: Path) -> Mapping[str, object]:
    """Ranges, scales, labels and a preconditioner that are found privately, with gaps, and with random features."""
    rows = 6_000
    X, y = table(rows)
    X = X * np.array([1.0, 50.0, 3000.0]) + np.array([0.0, 7.0, -900.0])
    X[np.random.default_rng(4).integers(0, 16, X.shape) == 0] = np.nan
    found = {"epsilon": 20.0, "feature_bound": "private", "seed": SEED, "horizon": rows}
    cuts = (0, 100, 1_000, 3_000, rows - 10)
    classes, number = for_sklearn.PrivateLogisticRegression, for_sklearn.PrivateLinearRegression
    two = np.where(y > 0.0, 1.0, -1.0)
    return {
        "classes": parts(classes(**found, classes=CLASSES), folder, X, two, cuts=cuts),
        "preconditioned": parts(classes(**found, classes=CLASSES, precondition=True), folder, X, two, cuts=cuts),
        "numbers": parts(number(**found, label_bound="private"), folder, X, 100.0 * y + 30.0, cuts=cuts),
        "random features": parts(classes(**found, classes=CLASSES, features=16), folder, X, two, cuts=cuts),
    }


@stream("scikit tables")
def tables(folder: Path) -> Mapping[str, object]:
    """Declared columns of every kind from a data frame, with gaps and a range that is found privately."""
    frame = pd.DataFrame(records(3_000))
    frame["visits"] = pd.to_numeric(frame["visits"], errors="coerce")
    X, cuts = frame[list(COLUMNS)], (0, 100, 1_500, 2_990)
    found = COLUMNS | {"income": {"range": "private"}}
    settings = {"epsilon": EPSILON, "seed": SEED, "horizon": 3_000}
    churn = for_sklearn.PrivateLogisticRegression(**settings, columns=COLUMNS, classes=["no", "yes"])
    spend = for_sklearn.PrivateLinearRegression(**settings | {"epsilon": 20.0}, columns=found, label_range=(0, 2_000))
    return {
        "classes": parts(churn, folder, X, frame["bought"].to_numpy(dtype=object), cuts=cuts),
        "numbers": parts(spend, folder, X, frame["spent"].to_numpy(), cuts=cuts),
    }


@stream("scikit search")
def search(folder: Path) -> Mapping[str, object]:
    """A private search over settings of a classifier and of a regressor, with its own guarantee."""
    made = {}
    for name, model, grid, (X, y) in (
        (
            "classes",
            for_sklearn.PrivateLogisticRegression(**BASE, classes=CLASSES),
            {"features": ["linear", 20], "fit_intercept": [True]},
            signs(3_000),
        ),
        (
            "numbers",
            for_sklearn.PrivateLinearRegression(**BASE, label_bound=1.0),
            {"radius": [0.5, 2.0, 8.0]},
            table(3_000),
        ),
    ):
        found = PrivateSearchCV(model, grid).fit(X, y)
        selection = found.selection_
        made[name] = {
            "best": found.best_index_,
            "predictions": found.predict(X[:50]),
            "coef": found.best_estimator_.coef_,
            "spent": list(found.privacy_spent_),
            "cost": cost_of(selection.total_cost),
            "delta": selection.privacy.delta,
            "rows": [found.n_training_rows_, found.n_validation_rows_],
            "relation": selection.neighbours,
            "unit": selection.unit.name,
        }
    return made


@stream("scikit ledger")
def ledger(folder: Path) -> Mapping[str, object]:
    """What estimators with secret noise reserve and spend in one ledger; of these nothing else can be repeated."""
    book = t.Ledger.create(folder / "budget.db", t.Privacy(20.0, 1e-4), population="people")
    memory = t.Ledger(t.Privacy(50.0, 1e-4))
    made = {}
    for name, each in (("in a file", book), ("in memory", memory)):
        secret = {"epsilon": 1.0, "feature_bound": 1.0, "ledger": each}
        X, y = table()
        stream = for_sklearn.PrivateLinearRegression(**secret, label_bound=1.0, horizon=ROWS)
        stream.partial_fit(X[:100], y[:100]).partial_fit(X[100:590], y[100:590])
        stream.dump_stream(folder / "stream.npz")
        exact = {part: array for part, array in state_in(folder / "stream.npz").items() if part.startswith("secret/")}
        for_sklearn.PrivateLogisticRegression(**secret, classes=CLASSES).fit(*signs())
        for_sklearn.PrivateLinearSVC(**secret, classes=CLASSES).fit(*signs())
        again = pickle.loads(pickle.dumps(stream)) if name == "in a file" else stream
        again.predict(X[:1])
        made[name] = in_ledger(each) | {"exact": exact, "spent by the model": list(stream.privacy_spent_)}
    return made
