"""The loss of prediction with expert advice: linear, clipped, with valid constants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import IGD, InvalidInput, Problem, Simplex, VectorLoss
from taciturn.kernel.problem.losses import Advice

NUMBERS = st.floats(-3.0, 3.0)


def vectors(size):
    return st.lists(NUMBERS, min_size=size, max_size=size).map(np.array)


@settings(max_examples=50)
@given(x=vectors(3), v=vectors(3))
def test_it_is_linear_in_the_point(x, v):
    """`x·clip(v, 0, M)`, with the clipped vector as gradient, one point or many."""
    loss, cut = Advice(1.5), np.clip(v, 0.0, 1.5)
    assert loss.value(x, v, 0.0) == pytest.approx(float(cut @ x), abs=1e-12)
    assert loss.gradient(x, v, 0.0) == pytest.approx(cut)
    assert loss.values(np.array([x, -x]), v, 0.0) == pytest.approx([cut @ x, -(cut @ x)], abs=1e-12)


@pytest.mark.privacy
@settings(max_examples=100)
@given(points=st.lists(vectors(3), min_size=2, max_size=5), v=vectors(3))
def test_its_variation_is_a_bound(points, v):
    """Over any points, in the simplex or not, one example's losses vary by no more."""
    loss, points = Advice(1.5), np.array(points)
    losses = loss.values(points, v, 0.0)
    assert np.ptp(losses) <= loss.variation(points, 99.0, 1.0) + 1e-12


@pytest.mark.privacy
def test_its_variation_is_reached_on_the_simplex_and_is_not_a_bound_beside_it():
    """`loss_bound` at the vertices, reached; points that are not in the simplex may vary by more, and it says so."""
    loss = Advice(1.5)
    assert loss.variation(np.eye(7), 99.0, 1.0) == pytest.approx(1.5)
    assert np.ptp(loss.values(np.eye(7), 1.5 * np.eye(7)[0], 0.0)) == 1.5
    corners = np.array([[1.0, 1.0], [-1.0, -1.0]])
    assert np.ptp(loss.values(corners, np.full(2, 1.5), 0.0)) == 6.0 <= loss.variation(corners, 99.0, 1.0)


@pytest.mark.privacy
def test_its_gradients_are_bounded():
    """No two are farther apart, and none longer, than stated."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(300, 4))
    V *= 2.0 / np.linalg.norm(V, axis=1, keepdims=True)
    gradients = np.array([Advice(1.5).gradient(np.zeros(4), v, 0.0) for v in V])
    apart = max(float(np.max(np.linalg.norm(gradients - g, axis=1))) for g in gradients)
    assert apart <= Advice(1.5).gradient_diameter(2.0, 1.0, 1.0)
    assert np.max(np.linalg.norm(gradients, axis=1)) <= Advice(1.5).lipschitz(2.0, 1.0, 1.0)


def test_it_is_a_vector_loss_like_any_other():
    """Other learners take it too."""
    assert isinstance(Advice(), VectorLoss)
    assert IGD(Problem(Advice(), Simplex(), 3, 2.0, label_bound=1.0, ridge=1.0)).certificate.at(1) > 0.0


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_its_bound_is_positive(bound):
    """Others are rejected."""
    with pytest.raises(InvalidInput, match="loss_bound must be positive"):
        Advice(bound)
