"""Classes are declared, and anything else is NaN; scores become classes and probabilities."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import Hinge, InvalidInput, L2Ball, Logistic, OneHot, Problem, Softmax, Squared
from taciturn.columns.labels import Classes, Numbers, classes_of, probabilities

TWO = [Problem(Logistic(), L2Ball(1.0), 2), Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0)]
MANY = [Problem(Softmax(4), L2Ball(1.0), 2), Problem(OneHot(4), L2Ball(1.0), 2)]
FINITE = st.floats(-50.0, 50.0)


def test_two_classes_are_signs_and_more_are_counted():
    assert [Classes([False, True])(y) for y in (False, True, 0, 1, np.False_, np.True_)] == [-1, 1, -1, 1, -1, 1]
    assert [Classes(["a", "b", "c"])(y) for y in ("a", "b", np.str_("c"))] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("y", ["yes", 2, -1, 0.5, None, math.nan, [1], {}, np.array([1, 0])])
def test_what_was_not_declared_has_no_number(y):
    assert math.isnan(Classes([False, True])(y))


@pytest.mark.parametrize("classes", [[], ["only"], ["a", "a"], [1, True]])
def test_classes_are_two_or_more_and_differ(classes):
    with pytest.raises(InvalidInput, match="two or more, all different"):
        Classes(classes)


def test_numbers_are_numbers():
    assert [Numbers()(y) for y in (1, True, 0.5, np.float32(0.25), Decimal("2.5"))] == [1.0, 1.0, 0.5, 0.25, 2.5]
    assert all(math.isnan(Numbers()(y)) for y in ("1", b"1", None, math.inf, -math.inf, math.nan, 10**400, [1.0]))


@given(arrays(np.float64, 7, elements=FINITE))
@pytest.mark.parametrize("problem", TWO)
def test_two_classes(problem, scores):
    shares = probabilities(problem, scores)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    certain = np.abs(scores) > 1e-9
    assert (shares.argmax(axis=1) == classes_of(scores))[certain].all()


@given(arrays(np.float64, (5, 4), elements=FINITE))
@pytest.mark.parametrize("problem", MANY)
def test_several_classes(problem, scores):
    shares = probabilities(problem, scores)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    chosen = np.take_along_axis(shares, classes_of(scores)[:, None], axis=1)[:, 0]
    assert chosen == pytest.approx(shares.max(axis=1))


def test_least_squares_reads_probabilities_off_scores():
    assert probabilities(TWO[1], np.array([0.5, -3.0])).tolist() == [[0.25, 0.75], [1.0, 0.0]]
    row = np.array([[0.75, -0.25, -0.25, -0.25]])
    assert probabilities(MANY[1], row)[0, 0] == pytest.approx(1.0)


def test_scores_of_the_hinge_are_no_probabilities():
    with pytest.raises(InvalidInput, match="scores of Hinge are no probabilities"):
        probabilities(Problem(Hinge(), L2Ball(1.0), 2), np.zeros(3))


def test_tiny_probabilities_are_not_lost():
    assert probabilities(TWO[0], np.array([40.0]))[0, 0] == pytest.approx(np.exp(-40.0))
