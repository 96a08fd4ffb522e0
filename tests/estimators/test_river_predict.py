"""One row's scores are those of `Problem.predict`."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import Hinge, InvalidInput, L2Ball, Logistic, OneHot, Problem, Softmax, Squared
from taciturn.estimators.dict_rows import HashedFeatures, NamedFeatures
from taciturn.estimators.river_stream import RowScores

NAMES = ["a", "b", "c", "d"]
FEATURES = {"named": NamedFeatures(NAMES), "hashed": HashedFeatures(4)}
LOSSES = {
    "logistic": Logistic(),
    "hinge": Hinge(),
    "squared": Squared(),
    "softmax": Softmax(3),
    "one hot": OneHot(3),
}


def problem_of(loss, intercept=0.5, bound=1.5, on_bad="raise"):
    label_bound = 1.0 if loss.labels == "real" else None
    ball = L2Ball(7.0)
    return Problem(loss, ball, 4, bound, label_bound=label_bound, intercept=intercept, on_bad=on_bad)


def point_of(problem, seed=1):
    return problem.domain.project(np.random.default_rng(seed).normal(size=problem.size))


def assert_equal(problem, features, x):
    point, row = point_of(problem), features.row(x)
    expected = problem.predict(point, features.block([row]))[0]
    scores = RowScores(problem, point, features)(row)
    assert np.shape(scores) == np.shape(expected)
    np.testing.assert_allclose(scores, expected, rtol=1e-13, atol=1e-14)


SIZES = st.one_of(st.floats(-3.0, 3.0), st.floats(-1e307, 1e307))  # four of them in one bucket are still finite


@pytest.mark.parametrize("intercept", [0.0, 0.5])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("loss", LOSSES)
@given(x=st.dictionaries(st.sampled_from(NAMES), SIZES))
def test_scores_are_those_of_the_problem(loss, features, intercept, x):
    """Short rows, long ones, rows as long as floats go, and none."""
    assert_equal(problem_of(LOSSES[loss], intercept), FEATURES[features], x)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1.4999999, 1.5, 1.5000001, 1e200, 1.7e308])
def test_at_the_ends_of_floating_point_and_at_the_bound(size):
    assert_equal(problem_of(Logistic()), FEATURES["named"], {"a": size, "c": -size})


@pytest.mark.parametrize("features", FEATURES)
def test_numbers_are_in_the_units_of_labels(features):
    problem = replace(problem_of(Squared()), label_center=100.0, label_scale=10.0)
    assert_equal(problem, FEATURES[features], {"a": 0.5, "c": -0.25})


def test_a_score_that_forgets_the_bound_is_caught():
    """A planted fault: rows as long as they come."""

    class Unbounded(RowScores):
        def __init__(self, *settings):
            super().__init__(*settings)
            self._longest = math.inf

    problem, features = problem_of(Logistic()), FEATURES["named"]
    row = features.row({"a": 3.0})
    expected = problem.predict(point_of(problem), features.block([row]))[0]
    assert not np.isclose(Unbounded(problem, point_of(problem), features)(row), expected)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_bad_row_is_refused_or_has_no_score(features, bad):
    features = FEATURES[features]
    row = features.row({"a": 1.0, "b": bad})
    problem = problem_of(Logistic())
    with pytest.raises(InvalidInput):
        RowScores(problem, point_of(problem), features)(row)
    silent = problem_of(Logistic(), on_bad="zero")
    assert RowScores(silent, point_of(silent), features)(row) == 0.0
