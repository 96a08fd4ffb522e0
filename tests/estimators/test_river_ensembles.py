"""Clones of river's models, as ensembles make them: each is a stream, and what they cost together is told."""

import copy
import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("river")

from river import compose, ensemble

from taciturn import Ledger
from taciturn.estimators.river import NormClip, PrivateLogisticRegression
from taciturn.estimators.stream import PrivacyWarning
from taciturn.kernel.accounting.cost import total

SETTINGS = {"columns": {"age": {"range": [0, 100]}}, "epsilon": 1.0}


def learn(model, count=40):
    for i in range(count):
        model.learn_one({"age": i % 100}, i % 3 == 0)


def together(count):
    """The epsilon of so many streams."""
    cost = PrivateLogisticRegression(**SETTINGS).plan.private.total_cost
    return total([cost] * count).epsilon(1e-6)


@pytest.mark.privacy
@pytest.mark.parametrize("piped", [False, True])
def test_an_ensemble_is_told_what_its_models_cost_together(piped):
    model = PrivateLogisticRegression(**SETTINGS)
    piped_model = compose.Pipeline(NormClip(200.0), model) if piped else model
    bag = ensemble.BaggingClassifier(piped_model, n_models=5, seed=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        learn(bag)
    said = [str(each.message) for each in told if each.category is PrivacyWarning and "clones, " in str(each.message)]
    assert len(said) == 2  # at the second and the fourth
    assert "2 so far, cost together epsilon = " in said[0]
    assert "4 so far" in said[1]
    assert "for an example that each of them learns once" in said[0]
    assert model.spent_together.epsilon == pytest.approx(together(5), rel=1e-9)
    assert model.spent_together.epsilon > 2.0


def test_one_model_its_copies_and_simulations_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateLogisticRegression(**SETTINGS, horizon=10_000)
        learn(model)
        copied = pickle.loads(pickle.dumps(model))
        copied.predict_one({"age": 3})
        learn(model.clone({"seed": 1}))
        learn(model.clone({"seed": 2}))
    assert model.spent_together.epsilon == pytest.approx(1.0, abs=0.01)


def test_a_stream_that_moves_to_a_clone_counts_once(tmp_path):
    model = PrivateLogisticRegression(**SETTINGS, horizon=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(model)
        model.dump_stream(tmp_path / "s.npz")
        moved = model.clone().load_stream(tmp_path / "s.npz")
        learn(moved)
    assert moved.spent_together == model.spent_together


def test_a_ledger_limits_clones_in_place_of_a_warning():
    ledger = Ledger()
    model = PrivateLogisticRegression(**SETTINGS, horizon=10_000, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in (model, *(PrivateLogisticRegression(**SETTINGS, horizon=10_000, ledger=ledger) for _ in "ab")):
            learn(each)
    assert len(ledger.lines) == 3


def test_deep_copies_count_too():
    model = PrivateLogisticRegression(**SETTINGS, horizon=10_000)
    other = copy.deepcopy(model)
    learn(model)
    with pytest.warns(PrivacyWarning, match="2 so far"):
        learn(other)


def test_frames_count_too():
    import pandas as pd

    model = PrivateLogisticRegression(**SETTINGS, horizon=10_000)
    frame, labels = pd.DataFrame({"age": np.arange(20)}), pd.Series([True, False] * 10)
    model.learn_many(frame, labels)
    with pytest.warns(PrivacyWarning, match="2 so far"):
        model.clone().learn_many(frame, labels)
