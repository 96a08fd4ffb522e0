"""Requests for several classes: which loss is learnt, by which method, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taciturn import Hinge, Logistic, MultiHinge, OneHot, Softmax, Squared, Unprovable
from taciturn.columns.labels import classes_of
from taciturn.estimators.settings import Settings
from taciturn.estimators.stream import Stream

HINGE = Settings("hinge", epsilon=2.0, feature_bound=1.0, classes=3, seed=1)


@pytest.mark.parametrize(
    ("loss", "classes", "method", "learnt"),
    [
        ("hinge", 2, "auto", Hinge()),
        ("hinge", 2, "igd", Hinge()),
        ("hinge", 3, "auto", MultiHinge(3)),
        ("hinge", 7, "ftrl", MultiHinge(7)),
        ("hinge", 3, "pqftl", OneHot(3)),
        ("hinge", 2, "pqftl", Squared()),
        ("logistic", 2, "auto", Logistic()),
        ("logistic", 3, "auto", Softmax(3)),
    ],
)
def test_the_loss_is_the_one_that_was_named(loss, classes, method, learnt):
    """Of the number of classes that there are; PQFTL's is least squares."""
    asked = replace(HINGE, loss=loss, classes=classes, method=method)
    plan = asked.plan(dimension=4, horizon=1_000)
    assert plan.private.problem.loss == learnt
    assert plan.private.guarantee.proven


@pytest.mark.parametrize("method", ["igd", "giga"])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_steps_on_losses_of_several_classes_are_refused(method, loss):
    """In the words of the request, before any learner is built."""
    with pytest.raises(Unprovable, match=rf"{method} learns numbers and two classes, .* 3\. Use method='ftrl'"):
        replace(HINGE, method=method, loss=loss).plan(dimension=4, horizon=1_000)


def test_margins_are_learnt():
    """Four classes well apart, at epsilon = 2: nearly all are told apart (fixed seed)."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=20_000)
    X = 0.9 * np.eye(4)[y] + 0.1 * rng.normal(size=(20_000, 4))
    plan = replace(HINGE, classes=4, radius=4.0).plan(dimension=4, horizon=len(y))
    stream = Stream(plan)
    stream.learn(X, y)
    assert plan.method == "pftrl"
    assert plan.averages
    assert np.mean(classes_of(plan.private.problem.predict(stream.model, X)) == y) > 0.95
