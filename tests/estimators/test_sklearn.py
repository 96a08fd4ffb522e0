"""Estimators for scikit-learn: what is learnt, what it costs, what is refused, and what is never inferred."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from taciturn import Ledger, Privacy
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable
from taciturn.estimators.scaling import PublicScaler
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from taciturn.estimators.stream import PrivacyWarning

RNG = np.random.default_rng(11)
N = 6000
X = RNG.uniform(-0.5, 0.5, size=(N, 4))
SCORES = X @ [2.0, -1.0, 0.5, 0.0] + 0.2
LABELS = np.where(SCORES + 0.1 * RNG.standard_normal(N) > 0.0, "yes", "no")
NUMBERS = SCORES + 0.1 * RNG.standard_normal(N)
THREE = np.digitize(SCORES, [-0.2, 0.5])

CLASSIFIER = {"epsilon": 2.0, "feature_bound": 1.0, "classes": ["no", "yes"]}
REGRESSION = {"epsilon": 2.0, "feature_bound": 1.0, "label_bound": 2.0}


def classifier(**settings) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(**(CLASSIFIER | settings))


def regression(**settings) -> PrivateLinearRegression:
    return PrivateLinearRegression(**(REGRESSION | settings))


@pytest.mark.parametrize("make", [classifier, lambda **s: PrivateLinearSVC(**(CLASSIFIER | s))])
@pytest.mark.parametrize("method", ["auto", "pqftl", "giga"])
def test_classes_are_learnt(make, method):
    if make is not classifier and method == "giga":
        method = "igd"  # the hinge is not smooth
    model = make(method=method, epsilon=10.0, ridge=0.1 if method in ("igd", "giga") else None, seed=1).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.85
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile"])
def test_numbers_are_learnt(loss):
    model = regression(loss=loss, epsilon=5.0, seed=1).fit(X, NUMBERS)
    assert model.score(X, NUMBERS) > 0.6
    assert model.coef_.shape == (4,)
    assert np.ndim(model.intercept_) == 0


def test_a_quantile_lies_where_it_should():
    model = regression(loss="quantile", quantile=0.9, epsilon=10.0, seed=1).fit(X, NUMBERS)
    assert 0.8 < np.mean(model.predict(X) > NUMBERS) < 0.97


@pytest.mark.parametrize("make", [PrivateLogisticRegression, PrivateLinearSVC])
@pytest.mark.parametrize("method", ["auto", "pqftl"])
def test_several_classes(make, method):
    model = make(epsilon=20.0, feature_bound=1.0, classes=[0, 1, 2], method=method, seed=1).fit(X, THREE)
    assert model.score(X, THREE) > 0.6
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X[:5]).shape == (5, 3)


def test_probabilities_follow_the_scores():
    model = classifier(seed=1).fit(X, LABELS)
    shares = model.predict_proba(X)
    assert shares[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-model.decision_function(X))))
    assert model.predict_log_proba(X) == pytest.approx(np.log(shares))
    assert not hasattr(PrivateLinearSVC(), "predict_proba")


def test_the_scores_are_those_of_the_coefficients_for_rows_within_the_bound():
    model = classifier(seed=1).fit(X, LABELS)
    short = X[np.linalg.norm(X, axis=1) < 0.9]
    assert model.decision_function(short) == pytest.approx(short @ model.coef_[0] + model.intercept_[0])
    assert model.decision_function(X[:1] * 100.0) == pytest.approx(
        model.decision_function(X[:1] / np.linalg.norm(X[:1]))
    )


@pytest.mark.parametrize("make", [classifier, regression])
@pytest.mark.parametrize("release", ["auto", "geometric", "every", 50])
@pytest.mark.parametrize("horizon", [N, None])
def test_any_number_of_calls_gives_the_same_models_for_the_same_budget(make, release, horizon):
    """In 1, 7 or 1,000 calls."""
    y = LABELS if make is classifier else NUMBERS
    shown = []
    for calls in (1, 7, 1000):
        model, points = make(seed=5, release=release, horizon=horizon), []
        for rows in np.array_split(np.arange(N), calls):
            model.partial_fit(X[rows], y[rows])
            points.extend(model.releases_.points)
        shown.append((np.array(points), model.coef_, model.intercept_, model.privacy_spent_, model.n_releases_))
    for points, *rest in shown[1:]:
        assert (points == shown[0][0]).all()
        assert all(np.array_equal(a, b) for a, b in zip(rest, shown[0][1:], strict=True))
    if horizon is None:
        assert 0.0 < shown[0][3].epsilon <= 2.0
    else:
        assert 1.99 < shown[0][3].epsilon <= 2.0


def test_fit_plans_for_its_rows_and_partial_fit_for_a_stream_without_end():
    assert classifier().fit(X, LABELS).plan_.private.horizon == N
    assert classifier().partial_fit(X, LABELS).plan_.private.horizon is None
    assert classifier(horizon=2 * N).fit(X, LABELS).plan_.private.horizon == 2 * N
    with pytest.raises(BudgetExhausted, match="past the horizon"):
        classifier().fit(X, LABELS).partial_fit(X, LABELS)
    with pytest.raises(InvalidInput, match="horizon must be an integer"):
        classifier(horizon=0).fit(X, LABELS)


@pytest.mark.parametrize(
    ("model", "y", "method"),
    [
        (classifier(seed=1), LABELS, "objective"),
        (classifier(seed=1, ridge=0.01), LABELS, "objective"),
        (classifier(seed=1, method="igd"), LABELS, "pigd"),
        (regression(seed=1), NUMBERS, "pqftl"),
        (regression(seed=1, release="last"), NUMBERS, "pqftl"),
        (regression(seed=1, rows_per_user=2), NUMBERS, "pqftl"),
    ],
)
def test_a_batch_is_published_once(model, y, method):
    """With less noise than the same settings need as a stream that has as many rows."""
    users = None if model.rows_per_user is None else np.arange(N) // 3
    model.fit(X, y, users=users)
    assert (model.n_releases_, len(model.releases_), model.n_examples_) == (1, 1, N)
    assert (model.plan_.method, model.plan_.releases) == (method, 1)
    stream = clone(model).set_params(release="auto", horizon=N + 1).fit(X, y, users=users)
    assert stream.n_releases_ > 50
    if method == stream.plan_.method:
        assert model.plan_.noise_sd(1) < 0.5 * stream.plan_.noise_sd(stream.n_releases_)


@pytest.mark.parametrize(
    "stated", [{"radius": 5.0}, {"method": "ftrl"}, {"release": 100}, {"horizon": N + 1}, {"rows_per_user": 2}]
)
def test_what_is_no_batch_of_logistic_regression_is_a_stream(stated):
    """A radius that was stated, users, a schedule, or a horizon that lets the stream go on."""
    users = np.arange(N) // 3 if "rows_per_user" in stated else None
    model = classifier(seed=1, **stated).fit(X, LABELS, users=users)
    assert model.plan_.method == "pftrl"
    assert model.n_releases_ > 50


def test_last_is_for_what_can_be_published_once():
    """Not for streams, and not for FTRL, whose points are public in any case."""
    with pytest.raises(InvalidInput, match="Give all of them to fit"):
        classifier(release="last").partial_fit(X, LABELS)
    with pytest.raises(InvalidInput, match="Give all of them to fit"):
        classifier(release="last", horizon=N + 1).fit(X, LABELS)
    with pytest.raises(Unprovable, match="Leave release= out"):
        PrivateLinearSVC(**CLASSIFIER, release="last").fit(X, LABELS)


@pytest.mark.privacy
def test_a_batch_spends_its_budget_once_whatever_comes_after():
    """What was published stays; more rows are rejected; a second fit is charged again, in the same ledger."""
    ledger = Ledger(Privacy(3.0, 1e-5))
    model = classifier(ledger=ledger, epsilon=1.0).fit(X, LABELS)
    before = model.coef_
    with pytest.raises(BudgetExhausted, match="past the horizon"):
        model.partial_fit(X[:10], LABELS[:10])
    assert (model.coef_ == before).all()
    assert 0.99 < model.privacy_spent_.epsilon <= 1.0
    with pytest.warns(PrivacyWarning, match="budget"):
        model.fit(X, LABELS)
    assert (model.coef_ != before).any()
    assert len(ledger.lines) == 2
    with pytest.warns(PrivacyWarning, match="budget"), pytest.raises(BudgetExhausted):
        model.set_params(epsilon=2.0).fit(X, LABELS)


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (PrivateLogisticRegression(feature_bound=1.0, classes=["no", "yes"]), "epsilon"),
        (PrivateLogisticRegression(epsilon=1.0, classes=["no", "yes"]), "feature_bound"),
        (PrivateLinearRegression(epsilon=1.0, feature_bound=1.0), "label_bound"),
    ],
)
def test_what_is_missing_is_refused_in_fit(model, missing):
    with pytest.raises(InvalidInput, match=f"{missing} is missing"):
        model.fit(X, LABELS if "classes" in model.get_params() else NUMBERS)
    assert not hasattr(model, "coef_")


def test_labels_read_off_the_data_are_said_to_be_published():
    with pytest.warns(PrivacyWarning, match="set of labels was inferred from y, and is published"):
        model = classifier(classes=None).fit(X, LABELS)
    assert "the labels no, yes" in model.guarantee_
    with pytest.raises(InvalidInput, match="first partial_fit needs classes"):
        classifier(classes=None).partial_fit(X, LABELS)
    assert classifier(classes=None).partial_fit(X, LABELS, classes=["no", "yes"]).n_examples_ == N


def test_a_label_that_was_not_declared_is_refused_and_nothing_changes():
    model = classifier(horizon=N).partial_fit(X[:3000], LABELS[:3000])
    before = model.n_examples_, model.privacy_spent_, model.coef_.tobytes()
    wrong = np.append(LABELS[3000:-1], "zzz")
    with pytest.raises(InvalidInput, match="label that was not declared"):
        model.partial_fit(X[3000:], wrong)
    assert (model.n_examples_, model.privacy_spent_, model.coef_.tobytes()) == before
    model.partial_fit(X[3000:], LABELS[3000:])


def test_a_refused_fit_leaves_the_model_as_it_was():
    model = classifier().fit(X, LABELS)
    before = model.coef_.tobytes(), model.guarantee_, model.classes_.tolist()
    with pytest.warns(PrivacyWarning, match="new stream"), pytest.raises(InvalidInput, match="not declared"):
        model.fit(X, np.full(N, "maybe"))
    assert (model.coef_.tobytes(), model.guarantee_, model.classes_.tolist()) == before


def test_a_second_fit_says_that_budgets_add():
    model = classifier().fit(X, LABELS)
    with pytest.warns(PrivacyWarning, match="adds to what earlier fits spent"):
        model.fit(X, LABELS)


def test_settings_changed_in_mid_stream_are_refused():
    model = classifier(horizon=N).partial_fit(X[:100], LABELS[:100])
    with pytest.raises(StateConflict, match="settings have changed"):
        model.set_params(epsilon=50.0).partial_fit(X[100:], LABELS[100:])
    with pytest.raises(StateConflict, match="settings have changed"):
        model.set_params(epsilon=2.0, horizon=2 * N).partial_fit(X[100:], LABELS[100:])
    model.set_params(horizon=N).partial_fit(X[100:], LABELS[100:])


def test_too_small_a_budget_is_said_before_anything_is_spent():
    with pytest.warns(PrivacyWarning, match="Nothing useful can be learnt"):
        classifier(epsilon=0.001).fit(X, LABELS)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_predicts_and_does_not_learn_on(duplicate):
    model = classifier(horizon=N).partial_fit(X[:3000], LABELS[:3000])
    other = duplicate(model)
    assert (other.predict(X) == model.predict(X)).all()
    assert other.guarantee_ == model.guarantee_
    with pytest.raises(StateConflict, match="copy"):
        other.partial_fit(X[3000:], LABELS[3000:])
    model.partial_fit(X[3000:], LABELS[3000:])


def test_a_stream_moves_to_another_process(tmp_path):
    model = classifier(horizon=N, seed=3).partial_fit(X[:3000], LABELS[:3000])
    model.dump_stream(tmp_path / "stream.npz")
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.savez(tmp_path / "rest.npz", X=X[3000:], y=LABELS[3000:])
    code = (
        "import pickle, sys, numpy as np; folder = sys.argv[1]; rest = np.load(folder + '/rest.npz')\n"
        "model = pickle.load(open(folder + '/model.pickle', 'rb')).load_stream(folder + '/stream.npz')\n"
        "model.partial_fit(rest['X'], rest['y']); np.save(folder + '/coef.npy', model.coef_)"
    )
    where = os.pathsep.join(map(str, [Path(__file__).parents[2] / "src", *sys.path]))
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env={**os.environ, "PYTHONPATH": where})
    model.partial_fit(X[3000:], LABELS[3000:])
    assert (np.load(tmp_path / "coef.npy") == model.coef_).all()
    assert (tmp_path / "stream.npz").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (classifier(horizon=N), LABELS),
        (PrivateLinearSVC(**CLASSIFIER | {"feature_bound": "private"}, horizon=N), LABELS),
        (regression(horizon=N), NUMBERS),
    ],
)
def test_a_stream_is_resumed_in_a_clone(tmp_path, model, labels):
    """A checkpoint has the public facts that a clone needs: how many features, and their names."""
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    model = clone(model).fit(frame[:3000], labels[:3000])
    model.dump_stream(tmp_path / "stream.npz")
    with pytest.raises(StateConflict, match="other settings"):
        clone(model).set_params(epsilon=3.0).load_stream(tmp_path / "stream.npz")
    other = clone(model).load_stream(tmp_path / "stream.npz")
    assert (other.predict(frame) == model.predict(frame)).all()
    assert list(other.feature_names_in_) == list(model.feature_names_in_)
    assert other.guarantee_ == model.guarantee_
    assert other.partial_fit(frame[3000:], labels[3000:]).n_examples_ == N
    with pytest.raises(StateConflict, match="used already"):
        model.partial_fit(frame[3000:], labels[3000:])


def test_a_batch_is_resumed_in_a_clone_that_infers_its_labels(tmp_path):
    """The labels that `fit` inferred, and that it published one model, are in the checkpoint."""
    with pytest.warns(PrivacyWarning, match="inferred"):
        model = classifier(classes=None).fit(X, LABELS)
    model.dump_stream(tmp_path / "stream.npz")
    other = clone(model).load_stream(tmp_path / "stream.npz")
    assert (other.decision_function(X) == model.decision_function(X)).all()
    assert (other.classes_ == model.classes_).all()


def test_a_clone_knows_nothing():
    model = classifier(seed=2).fit(X, LABELS)
    other = clone(model)
    assert other.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        other.predict(X)
    for name in ("privacy_spent_", "guarantee_", "plan_"):
        with pytest.raises(NotFittedError):
            getattr(other, name)


def test_there_is_no_random_state_for_tools_to_set():
    assert "random_state" not in classifier().get_params()
    assert classifier().seed is None


def test_pipelines_searches_and_sparse_rows():
    scaled = make_pipeline(PublicScaler((0.0, 10.0)), classifier(feature_bound=2.0, seed=1)).fit(10.0 * X + 5.0, LABELS)
    assert scaled.score(10.0 * X + 5.0, LABELS) > 0.8
    assert cross_val_score(classifier(seed=1), X, LABELS, cv=3).min() > 0.8
    search = GridSearchCV(classifier(seed=1), {"epsilon": [1.0, 4.0]}, cv=2, n_jobs=1).fit(X, LABELS)
    assert search.best_params_["epsilon"] in (1.0, 4.0)
    dense, sparse = (classifier(seed=4).fit(rows, LABELS) for rows in (X, csr_matrix(X)))
    assert dense.coef_ == pytest.approx(sparse.coef_, abs=1e-6)


def test_what_is_said_is_true():
    model = classifier(horizon=2 * N).partial_fit(X, LABELS)
    sentence = model.guarantee_
    assert sentence.startswith("The whole published sequence is (2, 1e-06)-differentially private")
    for public in (f"{N:,} so far", "4 features", "labels no, yes", "every setting", "they add"):
        assert public in sentence
    assert "Simulation: not private" in classifier(seed=1).fit(X, LABELS).guarantee_


def test_nothing_private_is_shown():
    """Rows are in no representation; of what an estimator keeps, its stream's state alone holds secrets."""
    model = classifier().fit(X, LABELS)
    assert repr(model) == repr(clone(model))
    public = pickle.dumps(model)
    assert X[17].tobytes() not in public
    assert repr(X[17, 0]) not in repr(vars(model))


@pytest.mark.parametrize("estimator", [classifier, regression])
def test_a_first_release_may_be_far_away(estimator):
    """Beyond the rounds that a plan looks ahead."""
    model = estimator(release=200_000).partial_fit(X, LABELS if estimator is classifier else X[:, 0])
    assert (model.n_examples_, model.n_releases_, len(model.releases_)) == (N, 0, 0)


def test_a_rejected_fit_leaves_the_features_as_they_were():
    model = classifier().fit(X, LABELS)
    with pytest.raises(InvalidInput, match="not declared"), pytest.warns(PrivacyWarning):
        model.fit(X[:, :2], np.full(N, "never"))
    assert model.n_features_in_ == 4
    assert model.predict(X[:3]).shape == (3,)
