"""Diagnostics are means over the rows that were watched."""

import itertools

import numpy as np
import pytest

from taciturn import L2Ball, Logistic, Problem, Softmax, Squared
from taciturn.runs.diagnostics import Diagnostics

X, Y = np.random.default_rng(1).normal(size=(30, 3)), np.resize([1.0, -1.0], 30)


def watched(problem, classifies, X, y, model, parts):
    watch, edges = Diagnostics(problem, classifies), np.linspace(0, len(y), parts + 1).astype(int)
    for a, b in itertools.pairwise(edges):
        watch = Diagnostics(problem, classifies, watch.t, watch.arrays())  # as after a resume
        watch(X[a:b], y[a:b], model)
    return watch.as_data()


@pytest.mark.parametrize("parts", [1, 7, 400])
def test_diagnostics_are_means_over_good_rows(parts):
    """However the stream is cut, resumed or binned."""
    rng, rows = np.random.default_rng(3), 40_000
    X, model = rng.normal(size=(rows, 2)), np.array([0.4, -0.3])
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    X[5], y[17] = np.nan, np.nan
    problem = Problem(Logistic(), L2Ball(1.0), dimension=2, feature_bound=1.5, on_bad="zero")
    good = np.isfinite(X).all(axis=1) & np.isfinite(y)
    V, labels = problem.clip(X[good], y[good])
    found = watched(problem, True, X, y, model, parts)
    assert found["accuracy"] == pytest.approx(np.mean(np.sign(V @ model) == labels), rel=1e-12)
    assert found["mean_loss"] == pytest.approx(np.mean(np.log1p(np.exp(-labels * (V @ model)))), rel=1e-9)
    assert found["clipped_share"] == pytest.approx(np.mean(np.linalg.norm(X[good], axis=1) > 1.5))
    assert (found["bad_rows"], found["from_row"], found["to_row"]) == (2, 0, rows)
    assert all(end <= 2 * rows and 0.0 <= share <= 1.0 for end, share in found["curve"])


def test_diagnostics_of_numbers_and_of_several_classes():
    problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=2.0, on_bad="zero")
    rows, y, model = np.array([[0.6, 0.0], [0.0, 0.8]]), np.array([1.0, -1.0]), np.array([0.5, 0.5])
    found = watched(problem, False, rows, y, model, 1)
    assert found["mean_absolute_error"] == pytest.approx((0.7 + 1.4) / 2)
    classes = Problem(Softmax(3), L2Ball(2.0), dimension=2, on_bad="zero")
    found = watched(classes, True, rows, np.array([0.0, 2.0]), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.5]), 1)
    assert found["accuracy"] == 1.0


def test_diagnostics_that_were_left_out_in_between_begin_anew():
    problem = Problem(Logistic(), L2Ball(1.0), dimension=3, on_bad="zero")
    first = Diagnostics(problem, True)
    first(X[:10], Y[:10], np.zeros(3))
    later = Diagnostics(problem, True, 20, first.arrays())
    later(X[20:], Y[20:], np.zeros(3))
    assert (later.as_data()["from_row"], later.as_data()["to_row"], later.sums[:, 0].sum()) == (20, 30, 10)
