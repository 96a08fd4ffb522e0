"""Users with several rows, through the estimators for scikit-learn: which rows count, and how ids reach them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

from taciturn.errors import InvalidInput, StateConflict
from taciturn.estimators.scaling import PublicScaler
from taciturn.estimators.settings import Settings
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from taciturn.estimators.stream import PrivacyWarning
from taciturn.kernel.stream.participation import UserRecords

RNG = np.random.default_rng(3)
N = 3_000
X = RNG.uniform(-0.5, 0.5, size=(N, 2))
Y = np.where(X @ [1.0, -0.5] > 0.0, 1, -1)
USERS = np.where(RNG.random(N) < 0.3, 0, RNG.integers(1, 1_000, size=N))  # one has 900 rows, most have two
STATED = {"epsilon": 2.0, "feature_bound": 1.0, "classes": [-1, 1], "rows_per_user": 3, "horizon": N, "seed": 1}


def classifier(**settings) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(**(STATED | settings))


def counted(users, rows: int):
    """Which rows count if only their number is bounded: the definition."""
    seen: dict[object, int] = {}
    counts = []
    for user in users:
        seen[user] = seen.get(user, 0) + 1
        counts.append(seen[user] <= rows)
    return np.array(counts)


def learnt(model, cuts, users=USERS):
    points = []
    for rows in np.split(np.arange(N), cuts):
        model.partial_fit(X[rows], Y[rows], users=np.asarray(users)[rows])
        points.extend(model.releases_.points)
    return np.array(points)


@pytest.mark.parametrize(
    "bounds",
    [{}, {"rows_per_release": 1, "apart": 2, "release": 7}, {"period": 500, "release": 7, "method": "giga"}],
    ids=["rows", "apart", "period"],
)
def test_a_thousand_calls_release_what_one_call_releases(bounds):
    """Users come again in later calls; how the stream is cut changes nothing."""
    settings = {"method": "pqftl", "release": "geometric"} | bounds
    cuts = np.sort(np.random.default_rng(0).choice(np.arange(1, N), size=999, replace=False))
    whole, parts = classifier(**settings), classifier(**settings)
    assert (learnt(whole, []) == learnt(parts, cuts)).all()
    assert whole.privacy_spent_ == parts.privacy_spent_
    assert whole.n_examples_ == parts.n_examples_ == N
    one_call_forgets = np.concatenate([np.arange(N // 2), N + USERS[N // 2 :]])  # other ids: other rows count
    assert (learnt(classifier(**settings), [], one_call_forgets)[-1] != learnt(classifier(**settings), [])[-1]).any()


@pytest.mark.privacy
@pytest.mark.parametrize("make", [classifier, lambda **s: PrivateLinearSVC(**(STATED | s))])
@pytest.mark.parametrize("method", ["ftrl", "pqftl"])
def test_rows_beyond_the_bound_have_no_influence(make, method):
    """Whatever they hold, the releases are the same; a row that counts moves them, so that the test can fail."""
    excess = ~counted(USERS, 3)
    assert 500 < excess.sum() < N - 500
    moved_X, moved_Y = X.copy(), Y.copy()
    moved_X[excess] = 0.7
    moved_Y[excess] = -1
    models = [make(method=method).fit(*data, users=USERS) for data in ((X, Y), (moved_X, moved_Y))]
    assert (models[0].releases_.noisy == models[1].releases_.noisy).all()
    first = np.flatnonzero(~excess)[0]
    moved_X[first] = 0.7
    moved_Y[first] *= -1
    assert (make(method=method).fit(moved_X, moved_Y, users=USERS).releases_.noisy != models[0].releases_.noisy).any()


def test_ids_come_as_lists_arrays_series_and_tables():
    """By position, whatever the index; an owner more takes part in the decision."""
    shuffled = pd.Series(USERS, index=np.random.default_rng(1).permutation(N))
    forms = {
        "array": USERS,
        "list": USERS.tolist(),
        "text": [str(user) for user in USERS],
        "series": shuffled,
        "floats": USERS.astype(float),
        "column": pd.DataFrame({"customer": USERS}),
    }
    shown = {name: classifier().fit(X, Y, users=users).coef_ for name, users in forms.items()}
    assert all((coef == shown["array"]).all() for coef in shown.values())
    owners = np.column_stack([USERS, np.full(N, "the shop")])
    assert (classifier().fit(X, Y, users=owners).coef_ != shown["array"]).any()
    with pytest.raises(InvalidInput, match=r"users= has 2999 ids for 3000 rows. Give one id a row"):
        classifier().fit(X, Y, users=USERS[:-1])


def test_ids_without_a_bound_and_a_bound_without_ids_are_rejected():
    """In the words of the estimator, in the first call and in later ones, and nothing is learnt."""
    for learn in (classifier(rows_per_user=None).fit, classifier(rows_per_user=None).partial_fit):
        with pytest.raises(InvalidInput, match=r"State rows_per_user=4, .* or leave users= out"):
            learn(X, Y, users=USERS)
    for learn in (classifier().fit, classifier().partial_fit):
        with pytest.raises(InvalidInput, match="give users=, an id for each row"):
            learn(X, Y)
    model = classifier().partial_fit(X[:100], Y[:100], users=USERS[:100])
    with pytest.raises(InvalidInput, match="give users=, an id for each row"):
        model.partial_fit(X[100:], Y[100:])
    with pytest.raises(StateConflict, match="settings have changed"):
        model.set_params(rows_per_user=9).partial_fit(X[100:], Y[100:], users=USERS[100:])
    assert model.n_examples_ == 100


def test_rows_without_an_id():
    """Each is a user of its own, or is rejected."""
    users = USERS.astype(object)
    users[::2] = None
    owned = classifier(without_id="own").fit(X, Y, users=users)
    alone = np.where(np.arange(N) % 2, users, -1 - np.arange(N))
    assert (owned.coef_ == classifier().fit(X, Y, users=alone).coef_).all()
    with pytest.raises(InvalidInput, match="row 0 has no id"):
        classifier().fit(X, Y, users=users)


def test_the_guarantee_says_whose_data_is_protected():
    model = classifier(seed=None, apart=2).fit(X, Y, users=USERS)
    assert "replacing all rows of any one user by others" in model.guarantee_
    assert "one user, of at most 3 rows, at most 1 between two releases, in blocks at least 2" in model.guarantee_
    assert "replacing any one example" in classifier(rows_per_user=None).fit(X, Y).guarantee_


def test_an_estimator_is_cloned_pickled_and_resumed_with_its_bounds(tmp_path):
    """A dump has the counts of users, and goes on as if nothing had been; a pickle has no records and no ids."""
    model = classifier(apart=2, rows_per_release=1, release=7)
    assert clone(model).get_params() == model.get_params()
    whole = learnt(clone(model), [])
    half = N // 2
    model.partial_fit(X[:half], Y[:half], users=USERS[:half])
    model.dump_stream(tmp_path / "stream.npz")
    text = pickle.dumps(model)
    assert UserRecords.__name__.encode() not in text
    later = pickle.loads(text).load_stream(tmp_path / "stream.npz")
    later.partial_fit(X[half:], Y[half:], users=USERS[half:])
    assert (later.releases_.points == whole[-later.releases_.points.shape[0] :]).all()
    forgetful = clone(model).partial_fit(X[:half], Y[:half], users=-1 - np.arange(half))  # as if no count was stored
    forgetful.partial_fit(X[half:], Y[half:], users=USERS[half:])
    assert (forgetful.releases_.points != later.releases_.points).any()


def test_a_first_call_that_comes_second_is_counted_with_the_first(monkeypatch):
    """Another thread opens the stream while this call plans one: its rows are counted after those."""
    model, plan, half = classifier(), Settings.plan, N // 2

    def late(*args, **named):
        monkeypatch.setattr(Settings, "plan", plan)
        model.partial_fit(X[:half], Y[:half], users=USERS[:half])
        return plan(*args, **named)

    monkeypatch.setattr(Settings, "plan", late)
    model.partial_fit(X[half:], Y[half:], users=USERS[half:])
    expected = learnt(classifier(), [])
    assert (model.releases_.points == expected[-len(model.releases_.points) :]).all()


# ---- scikit-learn's ways to pass ids on ---------------------------------------------------------------------------


def test_a_pipeline_takes_ids_by_the_name_of_its_step():
    pipeline = make_pipeline(PublicScaler(ranges=(-1.0, 1.0)), classifier())
    pipeline.fit(X, Y, privatelogisticregression__users=USERS)
    assert (pipeline[-1].coef_ == classifier().fit(X, Y, users=USERS).coef_).all()


def test_metadata_routing():
    """`users` is requested by `fit` and `partial_fit`, and sliced with the rows where these are sliced."""
    with sklearn.config_context(enable_metadata_routing=True):
        direct = classifier().fit(X, Y, users=USERS)
        model = classifier().set_fit_request(users=True).set_partial_fit_request(users=True, classes=False)
        pipeline = make_pipeline(PublicScaler(ranges=(-1.0, 1.0)), model)
        assert (pipeline.fit(X, Y, users=USERS)[-1].coef_ == direct.coef_).all()
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="users"):
            make_pipeline(classifier()).fit(X, Y, users=USERS)
        in_search(pipeline, params={"users": USERS}, name="privatelogisticregression__radius")


def test_searches_slice_ids_with_the_rows_without_routing_too():
    in_search(classifier(), params={"users": pd.Series(USERS, index=np.arange(N)[::-1])}, name="radius")


def in_search(model, params, name):
    scores = cross_validate(model, X, Y, params=params, cv=3, return_estimator=True)
    folds = [np.setdiff1d(np.arange(N), rows) for rows in in_order(scores)]
    for fitted, rows in zip(scores["estimator"], folds, strict=True):
        last = fitted[-1] if hasattr(fitted, "steps") else fitted
        assert (last.coef_ == classifier().fit(X[rows], Y[rows], users=USERS[rows]).coef_).all()
    search = GridSearchCV(model, {name: [2.0, 20.0]}, cv=2).fit(X, Y, **params)
    assert search.best_score_ > 0.5


def in_order(scores):
    """The held-out rows of the folds that `cross_validate` made."""
    from sklearn.model_selection import StratifiedKFold

    return [held_out for _, held_out in StratifiedKFold(len(scores["test_score"])).split(X, Y)]


def test_numbers_are_learnt_from_users_too():
    """And the bound on rows is paid for: iterates need noise for all rows of a user."""
    stated = {"epsilon": 9.0, "feature_bound": 1.0, "label_bound": 1.0, "method": "giga", "ridge": 0.5, "seed": 1}
    numbers = X @ [0.5, -0.2]
    few = PrivateLinearRegression(rows_per_user=1, **stated).fit(X, numbers, users=USERS)
    many = PrivateLinearRegression(rows_per_user=3, **stated).fit(X, numbers, users=USERS)
    assert many.plan_.noise["Gaussian"] > 2.5 * few.plan_.noise["Gaussian"]


@pytest.mark.parametrize("private", [False, True])
def test_a_bound_between_releases_of_which_there_are_few_is_a_warning(private):
    """`fit` publishes once: rows_per_release=1 then counts one row of each user, and one more in each stage."""
    settings = {"epsilon": 20.0, "rows_per_user": 20, "seed": 1}
    bounds = {
        True: {"feature_bound": "private", "label_bound": "private"},
        False: {"feature_bound": 1, "label_bound": 1},
    }
    few = PrivateLinearRegression(rows_per_release=1, **settings, **bounds[private])
    rng = np.random.default_rng(0)
    rows, users = rng.uniform(-0.5, 0.5, (20_000, 2)), rng.integers(1_000, size=20_000)
    with pytest.warns(PrivacyWarning, match=r"lets at most \d rows of a user count, of rows_per_user=20"):
        few.fit(rows, rows[:, 0], users=users)
    for other in ({"rows_per_release": None}, {"release": 500}):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            clone(few).set_params(**other).fit(rows, rows[:, 0], users=users)
        assert not [each for each in told if "rows of a user count" in str(each.message)]
