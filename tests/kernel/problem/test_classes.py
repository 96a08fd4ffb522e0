"""Problems with several classes: validation of labels, the shape of points, and predictions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import InvalidInput, L2Ball, Logistic, OneHot, Problem, Softmax
from taciturn.kernel.problem.multiclass import ScoresLoss


@pytest.fixture(params=[Softmax(2), Softmax(3), OneHot(2), OneHot(5)], ids=str)
def loss(request) -> ScoresLoss:
    return request.param


# Labels.


@pytest.mark.parametrize("y", [[0, 1, 2], [2.0, 1.0, -0.0], ["0", "1", "2"], np.array([2, 0, 1], np.uint8)], ids=str)
@pytest.mark.parametrize("kind", [Softmax, OneHot])
def test_classes_pass_as_they_are(kind, y):
    """Integers from 0 on, however they are written, are never cut like other labels."""
    problem = Problem(kind(3), L2Ball(1.0), 1)
    assert problem.clip([[0.1]] * 3, y)[1].tolist() == [float(label) for label in y]


@pytest.mark.parametrize("label", [-1, 3, 0.5, 1.0000001, 1e300, -1e-300])
def test_other_classes_are_rejected_with_a_remedy(label):
    """By the row's number, and what a class is."""
    with pytest.raises(InvalidInput, match=r"row 1 has label .*, and Softmax needs a class from 0 to 2\..*public rule"):
        Problem(Softmax(3), L2Ball(1.0), 1).clip([[0.1], [0.2]], [0, label])


@pytest.mark.parametrize("label", [math.nan, math.inf, -math.inf, None, "blue"])
def test_labels_that_are_no_numbers_are_rejected(label):
    """The error does not suggest `on_bad="zero"`, which would silently ignore text."""
    with pytest.raises(
        InvalidInput, match=r"row 1 cannot be used: its label is .*Map your classes by a public rule"
    ) as e:
        Problem(OneHot(3), L2Ball(1.0), 1).clip([[0.1], [0.2]], [0, label])
    assert "on_bad" not in str(e.value)


def test_classes_are_not_optional():
    with pytest.raises(InvalidInput, match="Softmax learns from labels"):
        Problem(Softmax(3), L2Ball(1.0), 1).clip([[0.1]])


@pytest.mark.privacy
@settings(max_examples=100)
@given(
    arrays(np.float64, (4, 2), elements=st.floats(width=64)),
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, math.nan, math.inf, 1e18]), min_size=4, max_size=4),
)
def test_bounding_is_total(X, labels):
    """With on_bad="zero" bad rows are 0, the intercept included, and move no gradient; others are unaffected."""
    problem = Problem(Softmax(3), L2Ball(1.0), 2, intercept=0.5, on_bad="zero")
    V, y = problem.clip(X, labels)
    good = np.isfinite(X).all(axis=1) & np.isin(labels, [0.0, 1.0, 2.0])
    assert not V[~good].any()
    assert not y[~good].any()
    assert np.array_equal(y[good], np.array(labels)[good])
    assert np.all(V[good, 2] == 0.5)
    assert np.max(np.linalg.norm(V, axis=1)) <= problem.norm_bound
    for v, label in zip(V[~good], y[~good], strict=True):
        assert not problem.data_gradient(np.arange(9.0), v, float(label)).any()


# Points and predictions.


def test_a_point_has_a_row_for_each_class(loss):
    """Of as many entries as a bounded example has."""
    plain, shifted = (Problem(loss, L2Ball(1.0), 4, intercept=c) for c in (0.0, 2.0))
    assert (plain.outputs, plain.width, plain.size) == (loss.classes, 4, 4 * loss.classes)
    assert (shifted.outputs, shifted.width, shifted.size) == (loss.classes, 5, 5 * loss.classes)
    assert shifted.first_point.shape == (shifted.size,)
    assert Problem(Logistic(), L2Ball(1.0), 4, intercept=2.0).outputs == 1


def test_predictions_are_scores(loss):
    """A row for each example, of features bounded as in learning, the intercept appended."""
    problem, rng = Problem(loss, L2Ball(5.0), 2, intercept=0.5), np.random.default_rng(8)
    W = rng.normal(size=(loss.classes, 3))
    X = np.array([[0.3, 0.4], [30.0, 40.0], [0.0, 0.0]])
    result = problem.predict(W.ravel(), X)
    assert result.shape == (3, loss.classes)
    V = np.array([[0.3, 0.4, 0.5], [0.6, 0.8, 0.5], [0.0, 0.0, 0.5]])
    np.testing.assert_allclose(result, V @ W.T, atol=1e-10)
    assert problem.predict(list(W.ravel()), X[:1]).shape == (1, loss.classes)
    assert problem.predict(W.ravel(), X[:0]).shape == (0, loss.classes)


def test_the_intercept_alone_can_tell_frequent_classes(loss):
    """Of examples that are all 0 the gradient moves nothing but the last column."""
    problem = Problem(loss, L2Ball(5.0), 2, intercept=0.5)
    V, y = problem.clip(np.zeros((1, 2)), [1])
    g = problem.data_gradient(problem.first_point, V[0], y[0]).reshape(loss.classes, 3)
    assert not g[:, :2].any()
    assert np.argmin(g[:, 2]) == 1
    assert g.sum() == pytest.approx(0.0, abs=1e-15)
