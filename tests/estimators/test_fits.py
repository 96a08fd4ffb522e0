"""What the fits of an estimator and its clones cost together, and when that is said."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import Ledger, Privacy
from taciturn.accounting.cost import Cost, gaussian, total

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


def test_pipelines_share_the_counter_and_simulations_are_free():
    model = make_pipeline(NormClip(1.0), classifier(method="ftrl"))
    fitted, texts = warned_by(lambda: GridSearchCV(model, {"normclip__bound": [0.5, 1.0]}, cv=2).fit(X, Y))
    assert "5 so far" in texts[-1]
    assert fitted.best_estimator_[-1].spent_together_ == model[-1].spent_together_
    seeded, texts = warned_by(lambda: GridSearchCV(classifier(seed=1), GRID, cv=2).fit(X, Y))
    assert texts == []
    assert seeded.best_estimator_.spent_together_.epsilon == 0.0


def test_copies_count_with_the_original_and_pickles_for_themselves():
    model = classifier(method="ftrl")
    for one in (copy.copy, copy.deepcopy, clone):
        warned_by(lambda one=one: one(model).fit(X, Y))
    assert model.spent_together_.epsilon > 1.7
    fitted = warned_by(lambda: clone(model).fit(X, Y))[0]
    assert pickle.loads(pickle.dumps(fitted)).spent_together_.epsilon == 0.0  # a stored model
    sent = pickle.loads(pickle.dumps(model))  # what n_jobs does
    with pytest.warns(PrivacyWarning, match="ledger in a file"):
        sent.fit(X, Y)
    with pytest.warns(PrivacyWarning, match="without 1 copies that went to other processes"):
        clone(model).fit(X, Y)


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
    told = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        most = 0
        for rows, mu_squared in made:
            fits.add(rows, gaussian(mu_squared), 1e-6)
            before = len(caught)
            fits.warn()
            told += len(caught) > before and rows <= most
            most = max(most, rows)
    assert fits.together.epsilon == total(gaussian(m) for _, m in made).epsilon(1e-6)
    assert told <= 3  # besides fits of more rows than all before: the 2nd, the 8th and the 32nd at most


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
