"""What the fits of an estimator and its clones cost together, and when that is said."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import BudgetExhausted, Ledger, Privacy, Private
from taciturn.kernel.accounting.cost import Cost, gaussian, total

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from taciturn.estimators.fits import Fits
from taciturn.estimators.scaling import NormClip
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLinearSVC, PrivateLogisticRegression
from taciturn.estimators.stream import PrivacyWarning

X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 3))
Y = np.where(X[:, 0] > 0.0, "yes", "no")
GRID = {"epsilon": [0.5, 1.0], "fit_intercept": [True, False]}


def classifier(**more):
    return PrivateLogisticRegression(**({"epsilon": 1.0, "feature_bound": 1.0, "classes": ["no", "yes"]} | more))


def warned_by(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(each.message) for each in caught if "so far" in str(each.message)]


@pytest.mark.privacy
@pytest.mark.parametrize("method", ["auto", "ftrl"])
def test_the_fits_of_a_search_cost_what_a_durable_ledger_counts(tmp_path, method):
    """One warning has all 13 fits, the refit included, with the epsilon that the ledger of the same search has."""
    search = GridSearchCV(classifier(method=method), GRID, cv=3)
    fitted, texts = warned_by(lambda: search.fit(X, Y))
    assert 1 <= len(texts) <= 4
    assert "13 so far" in texts[-1]
    assert "choosing by a score is not paid for" in texts[-1]
    assert "with n_jobs only a ledger in a file" in texts[-1]
    epsilon, delta = fitted.best_estimator_.spent_together_
    assert float(re.search(r"epsilon = ([\d.]+)", texts[-1])[1]) >= epsilon

    path = str(tmp_path / "budget.db")
    ledger = Ledger.create(path, Privacy(1000.0, 1e-3))
    paid = GridSearchCV(classifier(method=method, ledger=path), GRID, cv=3)
    paid, texts = warned_by(lambda: paid.fit(X, Y))
    assert texts == []
    assert len(ledger.lines) == 13
    told = paid.best_estimator_.spent_together_
    assert told.epsilon == pytest.approx(ledger.reserved.epsilon(told.delta), rel=1e-12)
    assert delta == told.delta
    if method == "ftrl":  # the winner is another by chance
        assert abs(epsilon - told.epsilon) <= 0.2


@pytest.mark.privacy
def test_the_sum_is_an_upper_bound_for_every_row(tmp_path):
    """A row is in two of three training parts and in the refit: a ledger of those fits alone has less, and not none."""
    kept = Ledger(Privacy(1000.0, 1e-3))
    parts = np.array_split(np.arange(len(X)), 3)
    model = classifier(method="ftrl", ledger=kept)
    for held_out in parts[1:]:  # folds that train on the rows of the first part
        rows = np.setdiff1d(np.arange(len(X)), held_out)
        clone(model).fit(X[rows], Y[rows])
    clone(model).fit(X, Y)
    paid = kept.reserved.epsilon(1e-6)
    search = GridSearchCV(classifier(method="ftrl"), {"epsilon": [1.0]}, cv=3)
    told = warned_by(lambda: search.fit(X, Y))[0].best_estimator_.spent_together_.epsilon
    assert paid <= told <= 4 / 3 * paid


def test_warnings_are_few_and_the_last_one_is_right():
    """Of a long cross-validation a handful; of a second fit of one estimator the one that there was before."""
    model = PrivateLinearSVC(epsilon=1.0, feature_bound=1.0, classes=["no", "yes"])
    _, texts = warned_by(lambda: cross_val_score(model, X, Y, cv=40))
    assert "2 so far" in texts[0]
    assert len(texts) <= 4
    model = classifier()
    _, texts = warned_by(lambda: [model.fit(X, Y) for _ in range(3)])
    assert texts == []
    assert model.spent_together_.epsilon > 2.9


def test_what_further_fits_add_is_told_at_the_second():
    """Of five folds nothing more is said after the second: that warning has the cost of one more, and of eight."""
    model = classifier()
    _, texts = warned_by(lambda: cross_val_score(model, X, Y, cv=5))
    (text,) = texts
    assert "2 so far, cost together epsilon = 2 " in text
    assert "like the last, one more makes it epsilon = 3 " in text
    assert "8 in all 7.97 at 8e-06" in text
    assert 4.9 < model.spent_together_.epsilon < 5.0 + 1e-9


def test_what_further_fits_add_is_what_they_cost():
    """By the accountant, and rounded up; where costs have no sum, no figure is given."""
    fits = Fits()
    for name in range(2):
        fits.add(1_000, gaussian(0.01), delta=1e-6, name=str(name))
    with pytest.warns(PrivacyWarning) as caught:
        fits.warn()
    told = re.search(r"one more makes it epsilon = ([\d.]+) .*, and 8 in all ([\d.]+) ", str(caught[0].message))
    for said, rows in zip(told.groups(), (3, 8), strict=True):
        assert 0.0 <= float(said) - total([gaussian(0.01)] * rows).epsilon(1e-6) < 0.01
    fits.add(1_000, gaussian(0.01), delta=1e-6, unit="user")
    fits.add(2_000, gaussian(0.01), delta=1e-6)
    with pytest.warns(PrivacyWarning, match="have no sum. Each further one adds its own cost."):
        fits.warn()


def test_the_refit_is_told_of_after_an_earlier_fit_of_all_rows():
    """As one tries an estimator before one searches: its rows are as many as the refit's."""
    model = classifier(method="ftrl")
    model.fit(X, Y)
    _, texts = warned_by(lambda: GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2).fit(X, Y))
    assert "6 so far" in texts[-1]
    assert len(texts) <= 3
    assert len({*texts}) == len(texts)


def test_pipelines_share_the_counter_and_simulations_are_free():
    model = make_pipeline(NormClip(1.0), classifier(method="ftrl"))
    fitted, texts = warned_by(lambda: GridSearchCV(model, {"normclip__bound": [0.5, 1.0]}, cv=2).fit(X, Y))
    assert "5 so far" in texts[-1]
    assert fitted.best_estimator_[-1].spent_together_ == model[-1].spent_together_
    seeded, texts = warned_by(lambda: GridSearchCV(classifier(seed=1), GRID, cv=2).fit(X, Y))
    assert texts == []
    assert seeded.best_estimator_.spent_together_.epsilon == 0.0


def pickled(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.privacy
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("one", [copy.copy, copy.deepcopy, clone, pickled])
def test_copies_count_with_the_original(one, fitted):
    """Whatever is made of an estimator, fitted or not, in this process: one counter has the fits of both."""
    model = classifier(method="ftrl")
    if fitted:
        model.fit(X, Y)
    made = one(model)
    assert made.spent_together_ == model.spent_together_
    warned_by(lambda: [each.fit(X, Y) for each in (made, model, one(made))])
    ledger = Ledger()
    for _ in range(3 + fitted):
        classifier(method="ftrl", ledger=ledger).fit(X, Y)
    assert model.spent_together_ == made.spent_together_
    assert model.spent_together_.epsilon == pytest.approx(ledger.reserved.epsilon(1e-6), rel=1e-9)


@pytest.mark.privacy
def test_pickles_go_on_from_what_was_counted_elsewhere():
    """A stored model knows what it has cost; a copy that was sent says that others are not counted with it."""

    def here():
        model = classifier(method="ftrl").fit(X, Y)
        spent, stored, sent = model.spent_together_, pickle.dumps(model), pickle.dumps(clone(model))
        with pytest.warns(PrivacyWarning, match="without 1 copies that went to other processes"):
            clone(model).fit(X, Y)
        return spent, stored, sent

    spent, stored, sent = here()
    gc.collect()  # as in another process: no counter of this name is left
    assert pickle.loads(stored).spent_together_ == spent
    gc.collect()
    worker = pickle.loads(sent)
    assert worker.spent_together_ == spent
    with pytest.warns(PrivacyWarning, match="ledger in a file"):
        worker.fit(X, Y)
    returned = pickle.loads(stored)  # the same family: what the worker has fitted is counted with it
    assert returned.spent_together_.epsilon > 1.4 * spent.epsilon


@pytest.mark.privacy
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_interrupted_fits_are_counted(monkeypatch, call, committed):
    """Stopped before or after the commit: what was released is in the sum, and what goes on later, once."""
    model = classifier(method="ftrl", horizon=2 * len(X))
    commit = Private.commit

    def interrupted(self, prepared):
        if committed:
            commit(self, prepared)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Private, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, call)(X, Y)
    assert hasattr(model, "n_examples_") == committed
    assert model.spent_together_.epsilon == pytest.approx(1.0, abs=1e-6)
    warned_by(lambda: model.partial_fit(X, Y))
    assert model.spent_together_.epsilon >= model.privacy_spent_.epsilon
    if call == "partial_fit" or committed:
        assert model.spent_together_.epsilon == pytest.approx(1.0, abs=1e-6)


@pytest.mark.privacy
def test_resumed_streams_are_counted_once(tmp_path):
    model = classifier(method="ftrl", horizon=2 * len(X)).partial_fit(X, Y)
    model.dump_stream(tmp_path / "stream.npz")
    other = classifier(method="ftrl", horizon=2 * len(X)).load_stream(tmp_path / "stream.npz")
    again = clone(model).load_stream(tmp_path / "stream.npz")
    assert other.spent_together_ == again.spent_together_ == model.spent_together_
    assert other.spent_together_.epsilon >= other.privacy_spent_.epsilon > 0.9


@pytest.mark.privacy
def test_costs_that_are_about_different_neighbours_have_no_sum():
    """A fit that protects labels alone says nothing of rows: a ledger would reject the second."""
    model = classifier(method="ftrl", neighbours="label").fit(X, Y)
    other, texts = warned_by(lambda: clone(model).set_params(neighbours="replace").fit(X, Y))
    assert other.spent_together_.epsilon == math.inf
    assert "their costs have no sum" in texts[-1]


def test_a_fit_that_its_ledger_rejects_is_not_counted():
    model = classifier(ledger=Ledger(Privacy(0.5, 1e-5)))
    for call in (model.fit, model.partial_fit):
        with pytest.raises(BudgetExhausted):
            call(X, Y)
    assert model.spent_together_ == (0.0, 0.0)


def test_a_rejected_fit_is_not_counted():
    model = classifier()
    with pytest.raises(ValueError, match="not declared"):
        model.fit(X, np.full(len(X), "maybe"))
    assert model.spent_together_ == (0.0, 0.0)


def test_numbers_and_streams_are_counted():
    model = PrivateLinearRegression(epsilon=1.0, feature_bound=1.0, label_bound=1.0, horizon=300)
    warned_by(lambda: (clone(model).partial_fit(X[:9], X[:9, 0]), clone(model).fit(X, X[:, 0])))
    assert 1.4 < model.spent_together_.epsilon < 1.6


@given(st.lists(st.tuples(st.integers(1, 99), st.floats(0.0, 0.1)), min_size=1, max_size=60))
def test_the_counter_adds_costs_and_warns_rarely(made):
    fits = Fits()
    smaller = equal = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        most = 0
        for rows, mu_squared in made:
            fits.add(rows, gaussian(mu_squared), 1e-6)
            before = len(caught)
            fits.warn()
            smaller += len(caught) > before and rows < most
            equal += len(caught) > before and rows == most
            most = max(most, rows)
    assert fits.together.epsilon == total(gaussian(m) for _, m in made).epsilon(1e-6)
    assert smaller <= 3  # besides fits of more rows than all before: the 2nd, the 8th and the 32nd at most
    assert equal <= 3  # or the same, or a refit after one of these


def test_deltas_that_add_plainly_are_summed():
    fits = Fits()
    for _ in range(3):
        fits.add(10, Cost(plain_epsilon=0.5, plain_delta=0.9e-6), 1e-6)
    assert fits.together == (pytest.approx(1.5), pytest.approx(3e-6))


@pytest.mark.slow
def test_worker_processes_say_that_only_a_file_counts():
    """Once in each process, and in the parent with the refit."""
    program = (
        "import warnings, numpy as np\n"
        "from sklearn.model_selection import GridSearchCV\n"
        "from taciturn.estimators.sklearn import PrivateLogisticRegression\n"
        "X = np.random.default_rng(0).uniform(-0.5, 0.5, (90, 3))\n"
        "model = PrivateLogisticRegression(epsilon=1.0, feature_bound=1.0, classes=[0, 1])\n"
        "GridSearchCV(model, {'fit_intercept': [True, False]}, cv=3, n_jobs=2).fit(X, (X[:, 0] > 0).astype(int))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 1 <= done.stderr.count("PrivacyWarning: this fit is not in the process") <= 2
    assert "without 6 copies that went to other processes" in done.stderr
