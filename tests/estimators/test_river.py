"""river's verbs on a private stream: the same releases however it is cut, nothing inferred, nothing shown."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip("river")
pytest.importorskip("pandas")

import pandas as pd
from river import datasets, evaluate, metrics

from taciturn import BudgetExhausted, InvalidInput, StateConflict
from taciturn.averages import late_average
from taciturn.columns.labels import probabilities
from taciturn.estimators.river import (
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PublicScaler,
)
from taciturn.estimators.stream import PrivacyWarning

ROWS, NAMES = 1_500, ["a", "b", "c"]
RNG = np.random.default_rng(5)
NUMBERS = RNG.normal(size=(ROWS, 3))
FRAME = pd.DataFrame(NUMBERS, columns=NAMES)
EXAMPLES = FRAME.to_dict("records")
SCORES = NUMBERS @ [1.0, -1.0, 0.5]
THREE = ["low", "middle", "high"]
STATED = {"epsilon": 1.0, "feature_bound": 1.0, "seed": 3}
NAMED, HASHED = {"features": NAMES}, {"buckets": 8}

MODELS = {
    "regression": PrivateLinearRegression(**NAMED, label_bound=3.0, **STATED),
    "hashed regression": PrivateLinearRegression(**HASHED, label_bound=3.0, loss="huber", **STATED),
    "svc": PrivateLinearSVC(**NAMED, **STATED),
    "hashed svc": PrivateLinearSVC(**HASHED, release=40, **STATED),
    "logistic": PrivateLogisticRegression(**NAMED, horizon=ROWS, **STATED),
    "hashed logistic": PrivateLogisticRegression(**HASHED, release="geometric", **STATED),
    "least squares": PrivateLogisticRegression(**NAMED, method="pqftl", **STATED),
    "three classes": PrivateLogisticRegression(**NAMED, classes=THREE, **STATED),
    "three by hinge": PrivateLinearSVC(**NAMED, classes=THREE, **STATED),
    "three by squares": PrivateLogisticRegression(**NAMED, classes=THREE, method="pqftl", **STATED),
    "no intercept": PrivateLogisticRegression(**NAMED, fit_intercept=False, release="every", **STATED),
}
CLASSIFIERS = [name for name in MODELS if "regression" not in name]
PROBABLE = [name for name in CLASSIFIERS if isinstance(MODELS[name], PrivateLogisticRegression)]


def labels_of(model):
    if isinstance(model, PrivateLinearRegression):
        return pd.Series(SCORES)
    if len(model.classes) == 3:
        return pd.Series([THREE[i] for i in np.digitize(SCORES, [-0.5, 0.5])])
    return pd.Series(SCORES > 0.0)


def reference(model):
    """The model to use after all rows in one call of `Private.run`, by nothing of river's."""
    plan, feed = model.plan, model._feed
    X = feed.features.block([feed.features.row(x) for x in EXAMPLES])
    _, releases = plan.private.run(plan.private.start(), X, [feed.labels(y) for y in labels_of(model)])
    return releases, late_average(releases) if plan.averages else releases.points[-1]


def learnt(name, rows=ROWS):
    model = MODELS[name].clone()
    for x, y in zip(EXAMPLES[:rows], labels_of(model), strict=False):
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_all_ways_of_learning_release_the_same(name):
    model = learnt(name)
    releases, point = reference(model)
    assert (model.n_examples, model.n_releases) == (ROWS, len(releases))
    np.testing.assert_allclose(model._feed.current().model, point, rtol=1e-12)
    assert np.any(point != 0.0)
    for cut in (1, 7, 333, ROWS):
        other, y = MODELS[name].clone(), labels_of(model)
        for start in range(0, ROWS, cut) if cut > 1 else range(100):
            other.learn_many(FRAME[start : start + cut], y[start : start + cut])
        for i in range(other.n_examples, ROWS):
            other.learn_one(EXAMPLES[i], y[i])
        assert other.weights == model.weights
        assert other.intercept == model.intercept
        assert other.privacy_spent == model.privacy_spent


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_those_of_the_released_model(name):
    model = learnt(name)
    _, point = reference(model)
    feed = model._feed
    scores = model.plan.private.problem.predict(point, feed.features.block([feed.features.row(x) for x in EXAMPLES]))
    shown = [model.predict_one(x) for x in EXAMPLES]
    if name in CLASSIFIERS:
        expected = [model.classes[i] for i in (scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)).astype(int)]
        assert shown == expected == model.predict_many(FRAME).tolist()
        assert len(set(shown)) > 1
    else:
        np.testing.assert_allclose(shown, scores, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model.predict_many(FRAME), scores, rtol=1e-12, atol=1e-14)
    if name in PROBABLE:
        share = probabilities(model.plan.private.problem, scores)
        one = [model.predict_proba_one(x) for x in EXAMPLES]
        np.testing.assert_allclose([list(row.values()) for row in one], share, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba_many(FRAME), share, rtol=1e-9, atol=1e-12)
        assert list(one[0]) == list(model.predict_proba_many(FRAME).columns) == list(model.classes)


def test_before_the_first_release_the_model_is_free_of_data():
    model = learnt("svc", rows=99)
    assert (model.n_examples, model.n_releases) == (99, 0)
    assert set(model.weights.values()) == {0.0}
    assert model.privacy_spent == (0.0, 1e-6)


@pytest.mark.parametrize("name", ["regression", "logistic", "three classes", "no intercept"])
def test_weights_and_intercept_are_the_model(name):
    model, x = learnt(name), {"a": 0.1, "b": -0.2, "c": 0.3}
    weights, intercept = model.weights, model.intercept
    if name == "three classes":
        assert list(weights) == list(intercept) == THREE
        scores = {k: intercept[k] + sum(weights[k][name] * x[name] for name in NAMES) for k in THREE}
        assert model.predict_one(x) == max(scores, key=scores.get)
        return
    score = intercept + sum(weights[name] * x[name] for name in NAMES)
    assert model._feed.scores(x) == pytest.approx(score, rel=1e-12)
    assert (intercept == 0.0) == (name == "no intercept")


def test_settings_may_be_arrays():
    """Names and classes as NumPy and pandas hand them out."""
    model = PrivateLinearSVC(features=FRAME.columns, classes=np.array([0, 1]), **STATED)
    for x, y in zip(EXAMPLES, SCORES > 0.0, strict=True):
        model.learn_one(x, int(y))
    twin = learnt("svc")
    assert [model.predict_one(x) for x in EXAMPLES] == [twin.predict_one(x) for x in EXAMPLES]
    assert model.weights == twin.weights


@pytest.mark.parametrize("missing", ["epsilon", "feature_bound", "label_bound", "features"])
def test_what_is_missing_is_asked_for_and_never_inferred(missing):
    stated = {"epsilon": 1.0, "feature_bound": 1.0, "label_bound": 1.0, "features": NAMES}
    model = PrivateLinearRegression(**{name: value for name, value in stated.items() if name != missing})
    for use in (lambda: model.learn_one(EXAMPLES[0], 1.0), lambda: model.predict_one(EXAMPLES[0])):
        with pytest.raises(InvalidInput, match=rf"(?s){missing}.*never inferred"):
            use()


def test_a_class_that_was_not_declared_is_refused():
    """river's models take note of it; here that would tell who was there."""
    model = learnt("three classes", rows=10)
    for y in ("extreme", None, 0, True):
        with pytest.raises(InvalidInput, match="declared are 'low', 'middle', 'high'") as refusal:
            model.learn_one(EXAMPLES[0], y)
        assert "extreme" not in str(refusal.value)
    with pytest.raises(InvalidInput, match="the label of row 1"):
        model.learn_many(FRAME[:2], pd.Series(["low", "extreme"]))
    assert model.n_examples == 10
    assert list(model.predict_proba_one(EXAMPLES[0])) == THREE


def test_a_class_that_was_not_declared_passes_without_influence_if_asked():
    shown = []
    for y in ("extreme", "other"):
        model = MODELS["three classes"].clone({"on_bad": "zero"})
        model.learn_one(EXAMPLES[0], y)
        model.learn_many(FRAME[:199], pd.Series([y, *labels_of(model)[1:199]]))
        shown.append((model.n_examples, model.n_releases, model.weights))
    assert shown[0] == shown[1]
    assert shown[0][:2] == (200, 2)


def test_a_bad_row_refuses_all_rows():
    model, X = learnt("svc", rows=50), FRAME[:5].copy()
    X.iloc[3, 1] = np.nan
    with pytest.raises(InvalidInput, match="row 3"):
        model.learn_many(X, pd.Series([True] * 5))
    assert model.n_examples == 50
    with pytest.raises(InvalidInput, match="feature 'b'"):
        model.predict_one({"b": np.nan})
    with pytest.raises(InvalidInput):
        model.predict_many(X)


def test_no_rows_are_no_rounds():
    model = learnt("svc", rows=50)
    model.learn_many(FRAME[:0], pd.Series([], dtype=bool))
    assert model.n_examples == 50
    assert len(model.predict_many(FRAME[:0])) == 0


def test_past_the_horizon_is_refused_one_and_many():
    model = learnt("logistic")
    with pytest.raises(BudgetExhausted, match="past the horizon"):
        model.learn_one(EXAMPLES[0], True)
    with pytest.raises(BudgetExhausted, match="past the horizon"):
        model.learn_many(FRAME[:1], pd.Series([True]))
    assert model.n_examples == ROWS


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_predict_and_do_not_learn(copied):
    model = learnt("hashed svc", rows=500)
    other = copied(model)
    assert [other.predict_one(x) for x in EXAMPLES] == [model.predict_one(x) for x in EXAMPLES]
    assert (other.weights, other.privacy_spent) == (model.weights, model.privacy_spent)
    for learn in (lambda: other.learn_one(EXAMPLES[0], True), lambda: other.learn_many(FRAME, labels_of(model))):
        with pytest.raises(StateConflict, match="this is a copy"):
            learn()
    for x, y in zip(EXAMPLES[500:], labels_of(model)[500:], strict=True):
        model.learn_one(x, y)
    assert model.weights == learnt("hashed svc").weights
    assert other.n_examples == 500


def test_a_clone_is_a_stream_of_its_own():
    model = learnt("hashed svc", rows=500)
    clone = model.clone()
    assert clone.n_examples == 0
    clone.learn_one(EXAMPLES[0], True)
    assert (clone.n_examples, model.n_examples) == (1, 500)


def test_nothing_shown_depends_on_what_is_held():
    """Two streams that differ in rows not yet released look alike, pickles included."""
    shown = []
    for secret in (0.123, 0.987):
        model = learnt("svc", rows=150)
        model.n_releases  # noqa: B018
        model.learn_one({"a": secret}, secret > 0.5)
        shown.append(
            (repr(model), str(model), model.weights, model.guarantee, model.predict_one({"a": 1}), pickle.dumps(model))
        )
    assert shown[0] == shown[1]


def test_a_fault_that_pickles_what_is_held_is_caught(monkeypatch):
    from taciturn.estimators.river_stream import Feed

    monkeypatch.setattr(Feed, "__getstate__", lambda feed: {**vars(feed), "_lock": None})
    with pytest.raises(AssertionError):
        test_nothing_shown_depends_on_what_is_held()


def test_the_guarantee_says_what_is_public():
    model = PrivateLogisticRegression(**NAMED, epsilon=1.0, feature_bound=1.0)
    assert "(1, 1e-06)-differentially private" in model.guarantee
    assert "number and order of examples are public" in model.guarantee
    assert "names of features and classes" in model.guarantee
    assert "Simulation: not private" in MODELS["svc"].clone().guarantee


def test_without_a_seed_it_learns_and_the_budget_is_kept():
    model = PrivateLogisticRegression(**NAMED, epsilon=1.0, feature_bound=1.0, release=100)
    for x, y in zip(EXAMPLES, SCORES > 0, strict=True):
        model.learn_one(x, y)
    assert 0.99 < model.privacy_spent.epsilon <= 1.0
    assert model.privacy_spent.delta == 1e-6
    assert model.n_releases == 15


def test_a_dumped_stream_goes_on_elsewhere(tmp_path):
    model = learnt("logistic", rows=777)
    model.dump_stream(tmp_path / "state.npz")
    other = MODELS["logistic"].clone().load_stream(tmp_path / "state.npz")
    for x, y in zip(EXAMPLES[777:], labels_of(model)[777:], strict=True):
        other.learn_one(x, y)
    assert other.weights == learnt("logistic").weights
    with pytest.raises(StateConflict, match="a stream of its own"):
        model.load_stream(tmp_path / "state.npz")
    with pytest.raises(StateConflict, match="other settings"):
        MODELS["logistic"].clone({"epsilon": 2.0}).load_stream(tmp_path / "state.npz")


def test_a_copy_goes_on_with_a_dumped_stream(tmp_path):
    """As a worker does, to which the model was pickled."""
    model = learnt("logistic", rows=777)
    model.dump_stream(tmp_path / "state.npz")
    other = pickle.loads(pickle.dumps(model)).load_stream(tmp_path / "state.npz")
    for x, y in zip(EXAMPLES[777:], labels_of(model)[777:], strict=True):
        other.learn_one(x, y)
    assert other.weights == learnt("logistic").weights


def test_a_plan_without_hope_is_warned_of():
    model = PrivateLogisticRegression(buckets=10_000, epsilon=0.01, feature_bound=1.0, horizon=500)
    with pytest.warns(PrivacyWarning, match="Nothing useful can be learnt"):
        model.learn_one(EXAMPLES[0], True)


def test_an_old_snapshot_is_refused(tmp_path):
    model = PrivateLogisticRegression(**NAMED, epsilon=1.0, feature_bound=1.0, release="every")
    model.learn_one(EXAMPLES[0], True)
    model.dump_stream(tmp_path / "state.npz")
    model.learn_one(EXAMPLES[1], True)
    assert model.n_releases == 2
    with pytest.raises(StateConflict):
        model.clone().load_stream(tmp_path / "state.npz")


def test_it_learns_in_a_pipeline():
    """On Phishing, of which always saying no gets 56 %, and river's own logistic regression 89 %."""
    names = list(next(iter(datasets.Phishing()))[0])
    model = PrivateLogisticRegression(features=names, epsilon=8.0, feature_bound=3.0, release=25, seed=1)
    pipeline = PublicScaler(dict.fromkeys(names, (0, 1))) | model
    metric = evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy())
    assert metric.get() > 0.75
    assert model.n_examples == 1_250
    X, y = pd.DataFrame([x for x, _ in datasets.Phishing()]), pd.Series([y for _, y in datasets.Phishing()])
    batches = pipeline.clone()
    batches.learn_many(X, y)
    assert batches["PrivateLogisticRegression"].weights == model.weights
    np.testing.assert_array_equal(batches.predict_many(X), [pipeline.predict_one(x) for x, _ in datasets.Phishing()])


def test_a_first_release_may_be_far_away():
    """Beyond the rounds that a plan looks ahead."""
    model = PrivateLogisticRegression(features=["a"], epsilon=1.0, feature_bound=1.0, release=200_000)
    model.learn_one({"a": 1.0}, True)
    assert (model.n_examples, model.n_releases) == (1, 0)
