"""The private search: what it publishes and charges, which rows it reads, and scikit-learn's conventions."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

from taciturn import BudgetExhausted, InvalidInput, Ledger, Privacy, StateConflict, Unprovable
from taciturn.audit.interval import share_interval
from taciturn.methods.selection import Selection

pytest.importorskip("sklearn")

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from taciturn.estimators.scaling import NormClip
from taciturn.estimators.search import PrivateSearchCV, clipped_losses, default_grid, validation_rows
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLogisticRegression, PrivateNaiveBayes
from taciturn.estimators.stream import PrivacyWarning

X = np.random.default_rng(0).uniform(-0.7, 0.7, size=(6_000, 2))
Y = np.where(np.linalg.norm(X, axis=1) < 0.55, "in", "out")
GRID = {"features": ["linear", 100]}


def classifier(**more):
    return PrivateLogisticRegression(**({"epsilon": 2.0, "feature_bound": 1.0, "classes": ["in", "out"]} | more))


def regressor(**more):
    return PrivateLinearRegression(**({"epsilon": 2.0, "feature_bound": 1.0, "label_bound": 1.0} | more))


def test_it_finds_what_no_linear_model_knows():
    search = PrivateSearchCV(classifier(seed=1), GRID).fit(X, Y)
    assert search.best_params_ == {"features": 100}
    assert search.score(X, Y) > 0.8
    assert (search.predict(X) == search.best_estimator_.predict(X)).all()
    assert search.predict_proba(X).shape == (6_000, 2)
    assert search.decision_function(X).shape == (6_000,)
    assert search.classes_.tolist() == ["in", "out"]
    assert search.best_index_ == 1
    assert search.n_training_rows_ + search.n_validation_rows_ == 6_000
    assert "Simulation: not private" in search.guarantee_
    assert "the choice among 2 settings" in search.guarantee_


@pytest.mark.privacy
def test_it_charges_one_budget_and_not_one_for_each_fit(tmp_path):
    path = str(tmp_path / "budget.db")
    ledger = Ledger.create(path, Privacy(3.0, 1e-5))
    search = PrivateSearchCV(classifier(ledger=path), GRID).fit(X, Y)
    assert len(ledger.lines) == 1
    assert ledger.reserved == search.selection_.total_cost
    assert search.privacy_spent_.epsilon <= 2.0
    assert search.selection_.guarantee.holds
    assert ledger.verify().checked == 1
    assert not ledger.verify().faults
    later = PrivateSearchCV(classifier(ledger=path), GRID)
    with pytest.raises(BudgetExhausted):
        later.fit(X, Y)
    assert not hasattr(later, "best_estimator_")


@pytest.mark.privacy
def test_a_validation_row_changes_no_model_and_a_training_row_no_loss_of_others():
    """On the same seeds: whatever a validation row holds, the winner's model is the same, bit by bit."""
    held_out = np.flatnonzero(validation_rows(len(X)))
    before = PrivateSearchCV(classifier(seed=1), {"method": ["ftrl"], "radius": [5.0, 50.0]}).fit(X, Y)
    rows, labels = X.copy(), Y.copy()
    rows[held_out[3]], labels[held_out[3]] = [0.7, -0.7], "in"
    after = PrivateSearchCV(classifier(seed=1), {"method": ["ftrl"], "radius": [5.0, 50.0]}).fit(rows, labels)
    assert before.best_index_ == after.best_index_
    assert before.best_estimator_.coef_.tobytes() == after.best_estimator_.coef_.tobytes()
    rows, labels = X.copy(), Y.copy()
    training = np.flatnonzero(~validation_rows(len(X)))
    rows[training] = 0.0
    other = PrivateSearchCV(classifier(seed=1), {"method": ["ftrl"], "radius": [5.0, 50.0]}).fit(rows, labels)
    assert other.best_estimator_.coef_.tobytes() != before.best_estimator_.coef_.tobytes()


@pytest.mark.privacy
def test_models_of_other_candidates_and_losses_are_nowhere():
    """All attributes, pickled: one model, and no number that depends on validation rows but the winner's."""
    search = PrivateSearchCV(classifier(), GRID).fit(X, Y)
    shown = set(vars(search)) - {"estimator", "param_grid", "validation"}
    assert shown == {
        "selection_",
        "best_index_",
        "best_estimator_",
        "candidates_",
        "best_params_",
        "n_training_rows_",
        "n_validation_rows_",
    }
    assert pickle.loads(pickle.dumps(search)).predict(X[:5]).tolist() == search.predict(X[:5]).tolist()
    assert not hasattr(search, "cv_results_")
    with pytest.raises(AttributeError, match="losses of candidates are not published"):
        _ = search.cv_results_


@pytest.mark.privacy
def test_the_winner_states_the_cost_of_the_search_and_not_of_its_share(tmp_path):
    """The best of several models is a function of all of them: its own share of the budget would be too little."""
    path = str(tmp_path / "budget.db")
    ledger = Ledger.create(path, Privacy(9.0, 1e-5))
    search = PrivateSearchCV(classifier(ledger=path), {"method": ["ftrl"], "radius": [5.0, 50.0]}).fit(X, Y)
    winner = search.best_estimator_
    share = winner.plan_.private.privacy.epsilon
    assert share < 1.6
    for each in (winner, pickle.loads(pickle.dumps(winner)), pickle.loads(pickle.dumps(search)).best_estimator_):
        assert each.privacy_spent_ == search.privacy_spent_
        assert each.privacy_spent_.epsilon > 1.99
        assert each.spent_together_ == search.estimator.spent_together_
        assert "is (2, 1e-06)-differentially private" in each.guarantee_
        assert "for the search that chose this model" in each.guarantee_
        assert "Chosen by a search, which cost epsilon = 2 at delta" in each._repr_html_()
        assert f"{share:.3g}" not in each._repr_html_().split("Chosen by")[1]
        assert "Chosen by a search, which cost epsilon = 2 at delta" in search._repr_html_()
    with pytest.raises(StateConflict, match="pickle the model"):
        winner.dump_stream(tmp_path / "stream.npz")
    assert winner.ledger == path
    warned = pytest.warns(PrivacyWarning, match="fit opens a new stream")
    with warned:
        winner.fit(X, Y)  # a stream of its own, which the same ledger and counter know
    assert len(ledger.lines) == 2
    assert winner.privacy_spent_.epsilon < 1.6
    assert search.estimator.spent_together_.epsilon > 3.3


@pytest.mark.privacy
def test_the_successor_of_a_winner_pays_for_the_search(tmp_path):
    """Rows in the search and in the successor: what is promised together is what a ledger is charged for both."""
    ledger = Ledger.create(str(tmp_path / "budget.db"), Privacy(9.0, 1e-5))
    search = PrivateSearchCV(classifier(ledger=ledger), {"radius": [5.0, 50.0]}).fit(X, Y)
    renewal = search.best_estimator_.renewal_
    assert [dict(each.costs) for each in renewal.charges] == [{"replace": search.selection_.total_cost}]
    successor = classifier(ledger=ledger, renew=renewal).fit(X, Y)
    promise = renewal.promise(successor.plan_.private.guarantee)
    assert promise.delta == pytest.approx(2e-6)
    assert promise.in_all["replace"] == pytest.approx(ledger.spent.epsilon(2e-6))
    assert promise.in_all["replace"] > 3.9
    assert "epsilon = 4 (replace) at delta = 2e-06" in successor.guarantee_
    again = PrivateSearchCV(classifier(renew=renewal), {"radius": [5.0, 50.0]}).fit(X, Y)
    for told in (again.guarantee_, again.best_estimator_.guarantee_):
        assert "epsilon = 4 (replace) at delta = 2e-06" in told
    assert len(again.best_estimator_.renewal_.charges) == 2


def least_epsilon(search, delta, tables, runs, error=1e-6):
    """An epsilon that published winners and weights refute, over runs on two tables: a black-box audit.

    Events are a winner, or any, with a weight above or below a cut, all bounded together by Clopper and Pearson.
    """
    cuts = np.linspace(-2.0, 2.0, 17)
    hits = np.zeros((2, 3, 2, len(cuts)))
    for world, (rows, labels) in enumerate(tables):
        for _ in range(runs):
            made = clone(search).fit(rows, labels)
            above = float(made.best_estimator_.coef_[0]) > cuts
            for winner in (made.best_index_, 2):
                hits[world, winner, 0] += above
                hits[world, winner, 1] += ~above
    few = error / (4 * hits[0].size)
    least = 0.0
    for one, other in zip(hits[0].ravel(), hits[1].ravel(), strict=True):
        p, q = (share_interval(int(count), runs, few) for count in (one, other))
        for up, down in ((p, q), (q, p)):
            if up[0] > delta:
                least = max(least, float(np.log((up[0] - delta) / down[1])))
    return least


@pytest.mark.privacy
@pytest.mark.slow
def test_a_small_search_keeps_its_budget(monkeypatch):
    """All that a search publishes, audited on tables of 20 rows in which one row differs, a training or validation row.

    Error 1e-6. At (1.5, .01) 300 runs a world refute no more than 1.5; and with models of epsilon = 60 instead of their
    shares 200 runs refute it: a weight is then near what its table says.
    """
    stated = {"epsilon": 1.5, "delta": 0.01, "feature_bound": 1.0, "label_bound": 1.0, "fit_intercept": False}
    search = PrivateSearchCV(PrivateLinearRegression(**stated), {"radius": [0.5, 2.0]}, validation=0.2)
    held_out = np.flatnonzero(validation_rows(20, 0.2))

    def pair(row):
        tables = []
        for label in (1.0, -1.0):
            rows, labels = np.zeros((20, 1)), np.zeros(20)
            rows[row], labels[row] = 1.0, label
            tables.append((rows, labels))
        return tables

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in (0, int(held_out[0])):
            assert least_epsilon(search, 0.01, pair(row), runs=300) <= 1.5
        monkeypatch.setattr("taciturn.estimators.search.shares", lambda *_, **__: ([PLENTY, PLENTY], PLENTY))
        monkeypatch.setattr(Selection, "guarantee", Guaranteed())
        assert least_epsilon(search, 0.01, pair(0), runs=200) > 1.5


PLENTY = Privacy(60.0, 0.01)


class Guaranteed:
    """A guarantee that nothing has proven."""

    proven = True


@pytest.mark.privacy
def test_a_search_that_is_interrupted_after_its_charge_is_counted(monkeypatch):
    search = PrivateSearchCV(classifier(ledger=Ledger()), GRID)
    charge = Selection.charge

    def interrupted(self, ledger):
        charge(self, ledger)
        raise KeyboardInterrupt

    monkeypatch.setattr(Selection, "charge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert not hasattr(search, "best_estimator_")
    assert search.estimator.spent_together_.epsilon > 1.9
    limited = PrivateSearchCV(classifier(ledger=Ledger(Privacy(1.0, 1e-5))), GRID)
    with pytest.raises(BudgetExhausted):
        limited.fit(X, Y)
    assert limited.estimator.spent_together_.epsilon == 0.0


@pytest.mark.privacy
def test_a_label_that_was_not_declared_is_rejected_in_either_part():
    held_out = validation_rows(len(X))
    for part in (held_out, ~held_out):
        labels = Y.astype(object)
        labels[np.flatnonzero(part)[0]] = "secret"
        with pytest.raises(InvalidInput, match="not declared") as error:
            PrivateSearchCV(classifier(), GRID).fit(X, labels)
        assert "secret" not in str(error.value)


@pytest.mark.privacy
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile"])
def test_losses_of_numbers_are_between_0_and_1(loss):
    """Whatever a model predicts, and in the units of the label bound."""

    class Wild:
        def __init__(self, value):
            self.value = value

        def predict(self, rows):
            return np.full(len(rows), self.value)

    made = regressor(loss=loss, label_bound=2.0, quantile=0.9)
    models = [Wild(value) for value in (0.0, 1e300, -np.inf, np.nan, 1.0)]
    losses = clipped_losses(made, models, X[:3], np.array([0.0, 1.0, 2.0]), unit=2.0)
    assert losses.shape == (3, 5)
    assert ((losses >= 0.0) & (losses <= 1.0)).all()
    assert losses[1, 4] == 0.0
    assert losses[:, 1:4].tolist() == [[1.0] * 3] * 3 or loss == "quantile"


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["zero-out", "label"])
def test_other_relations(neighbours):
    search = PrivateSearchCV(classifier(neighbours=neighbours), GRID).fit(X, Y)
    assert search.selection_.neighbours == neighbours
    assert search.selection_.choice.neighbours == ("zero-out" if neighbours == "zero-out" else "replace")
    assert search.selection_.guarantee.proven


def test_numbers_and_counts_are_searched_too():
    y = np.sin(3.0 * X[:, 0])
    search = PrivateSearchCV(regressor(seed=1)).fit(X, y)
    assert len(search.candidates_) == 3
    assert search.score(X, y) > 0.5
    assert is_regressor(search)
    assert not hasattr(search, "predict_proba")
    found = PrivateSearchCV(regressor(epsilon=5.0, feature_bound="private", label_bound="private", seed=1)).fit(X, y)
    assert found.score(X, y) > 0.5
    counts = PrivateSearchCV(PrivateNaiveBayes(epsilon=2.0, feature_bound=1.0, classes=["in", "out"], seed=1)).fit(
        np.abs(X), Y
    )
    assert counts.candidates_ == [{}, {"fit_intercept": False}]


def test_declared_columns_and_ranges_of_labels_are_searched():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    table = pandas.DataFrame({"age": rng.uniform(18.0, 90.0, 4_000), "kind": rng.choice(["a", "b"], 4_000)})
    y = 1_000.0 + 100.0 * table["age"] + 500.0 * (table["kind"] == "a")
    columns = {"age": {"range": [18, 90]}, "kind": {"categories": ["a", "b"]}}
    model = PrivateLinearRegression(epsilon=5.0, columns=columns, label_range=(0.0, 12_000.0), seed=1)
    search = PrivateSearchCV(model, {"precondition": [False, True]}).fit(table, y)
    assert search.score(table, y) > 0.8
    assert search.feature_names_in_.tolist() == ["age", "kind"]
    found = clone(search).set_params(estimator__label_range="private").fit(table, y)
    assert found.score(table, y) > 0.5
    as_array = clone(search).set_params(estimator__label_range=np.array([0.0, 12_000.0]))
    lists = as_array.fit({name: table[name].tolist() for name in table}, y)
    assert lists.predict(table).tolist() == search.predict(table).tolist()


@pytest.mark.parametrize("rows", [2, 30, 999, 100_000])
def test_validation_rows_follow_from_the_number_of_rows_alone(rows):
    held_out = validation_rows(rows, 0.5)
    assert 0 < held_out.sum() < rows
    assert abs(held_out.sum() - rows / 2) <= 5
    assert (held_out == validation_rows(2 * rows, 0.5)[:rows]).all()


def test_candidates_of_the_default_grid_that_cannot_be_planned_are_left_out():
    few = PrivateSearchCV(classifier(epsilon=0.5, feature_bound="private", seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        assert {} in few.fit(X, Y).candidates_
    assert default_grid(classifier(), 400_000)[-1] == {"features": 1000}
    assert default_grid(regressor(), 400_000)[-1] == {"features": 150}


@pytest.mark.parametrize(
    ("search", "error", "says"),
    [
        (lambda: PrivateSearchCV(LogisticRegression(), GRID), InvalidInput, "estimator cannot be"),
        (lambda: PrivateSearchCV(classifier(rows_per_user=2), GRID), Unprovable, "proven for rows"),
        (lambda: PrivateSearchCV(classifier(), {"epsilon": [1.0, 2.0]}), InvalidInput, "not searched for"),
        (lambda: PrivateSearchCV(classifier(horizon=9_000), GRID), InvalidInput, "Leave out the estimator's horizon"),
        (lambda: PrivateSearchCV(classifier(epsilon=None), GRID), InvalidInput, "epsilon of the estimator is missing"),
        (lambda: PrivateSearchCV(classifier(), GRID, validation=1.0), InvalidInput, "validation must lie strictly"),
        (lambda: PrivateSearchCV(classifier(), {"radius": [-1.0]}), InvalidInput, "radius must be positive"),
        (lambda: PrivateSearchCV(classifier(), {"alpha": [1.0]}), InvalidInput, "alpha"),
        (lambda: PrivateSearchCV(classifier(), []), InvalidInput, "no settings to try"),
        (lambda: PrivateSearchCV(regressor(label_bound=None), {"label_bound": [1.0]}), InvalidInput, "neither label_b"),
    ],
)
def test_mistakes_are_told_before_anything_is_spent(search, error, says):
    with pytest.raises(error, match=says):
        search().fit(X, Y)


@pytest.mark.privacy
def test_a_bad_row_costs_nothing():
    ledger = Ledger(Privacy(3.0, 1e-5))
    rows = X.copy()
    rows[17, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        PrivateSearchCV(classifier(ledger=ledger), GRID).fit(rows, Y)
    assert ledger.lines == {}


def test_searches_of_searches_are_counted():
    """A search counts as one fit of its estimator, in pipelines and inside other searches, too."""
    model = make_pipeline(NormClip(1.0), PrivateSearchCV(classifier(), GRID))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        GridSearchCV(model, {"normclip__bound": [1.0]}, cv=2).fit(X, Y)
    assert "3 so far" in str(told[-1].message)
    assert model[-1].estimator.spent_together_.epsilon == pytest.approx(6.0, rel=1e-3)
    assert is_classifier(clone(model[-1]))
    assert clone(model[-1]).estimator.spent_together_ == model[-1].estimator.spent_together_


SETTINGS = {"epsilon": 30.0, "feature_bound": 4.0, "seed": 1}


@parametrize_with_checks(
    [
        PrivateSearchCV(PrivateLogisticRegression(**SETTINGS), {"ridge": [0.01, 0.1]}, validation=0.3),
        PrivateSearchCV(PrivateLinearRegression(label_bound=3.0, **SETTINGS), {"ridge": [0.01, 0.1]}, validation=0.3),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_a_pipeline_is_no_estimator_of_a_search_and_is_not_printed():
    with pytest.raises(InvalidInput, match="Make the search its last step") as told:
        PrivateSearchCV(make_pipeline(NormClip(1.0), PrivateLogisticRegression(epsilon=1.0))).fit([[0.0]], [1])
    assert "NormClip" not in str(told.value)
