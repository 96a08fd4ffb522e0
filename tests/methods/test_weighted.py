"""Public weights of classes: the losses, their constants, their compiled twins, and what is rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import (
    FTRL,
    Hinge,
    InvalidInput,
    L2Ball,
    Logistic,
    MultiHinge,
    OneHot,
    Problem,
    Softmax,
    Squared,
    Unprovable,
)
from taciturn.checks import check_loss
from taciturn.checks.losses import widest_pair
from taciturn.kernel.problem import losses_loops as compiled
from taciturn.kernel.problem.codes import loss_code
from taciturn.kernel.problem.scalar_loss import Smoothed
from taciturn.methods.weighted import Weighted, WeightedScores

BASES = [Logistic(), Hinge()]
SHARES = st.sampled_from([1.0, 0.5, 0.1, 1e-3])
WIDE = st.one_of(st.floats(-10.0, 10.0), st.floats(-1e6, 1e6))


@pytest.mark.parametrize("base", BASES, ids=repr)
@given(share=SHARES, positive=st.booleans(), u=WIDE, y=st.sampled_from([-1.0, 1.0]), step=st.floats(1e-6, 1e3))
def test_a_weighted_loss_is_the_loss_times_its_weight(base, share, positive, u, y, step):
    """Values, slopes and proxes, and the compiled ones; also of the smoothed loss."""
    loss = Weighted(base, positive=share) if positive else Weighted(base, negative=share)
    weight = share if (y > 0.0) == positive else 1.0
    code = loss_code(loss)
    assert float(loss.value(u, y)) == weight * float(base.value(u, y))
    assert float(loss.slope(u, y)) == weight * float(base.slope(u, y))
    assert loss.prox(u, y, step) == base.prox(u, y, weight * step)
    assert compiled.slope(*code, u, y) == pytest.approx(float(loss.slope(u, y)), rel=1e-12, abs=1e-300)
    assert compiled.prox(*code, u, y, step) == pytest.approx(loss.prox(u, y, step), rel=1e-12, abs=1e-12)
    smooth = Smoothed(loss, 0.5)
    near = max(abs(u), 1.0)
    assert compiled.slope(*loss_code(smooth), u, y) == pytest.approx(smooth.slope(u, y), rel=1e-9, abs=1e-12 * near)
    assert compiled.prox(*loss_code(smooth), u, y, step) == pytest.approx(smooth.prox(u, y, step), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", [Weighted(Hinge(), 0.05), Weighted(Logistic(), positive=0.3)], ids=repr)
def test_it_keeps_the_contract_of_a_loss(loss):
    """By the checks that every loss of the package passes."""
    check_loss(loss)


def test_equal_weights_change_nothing():
    """To the last bit, compiled code included."""
    for base in BASES:
        assert loss_code(Weighted(base)) == loss_code(base)
        assert Weighted(base).gradient_diameter(1.0, 2.0, 1.0) == base.gradient_diameter(1.0, 2.0, 1.0)


@pytest.mark.privacy
@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_the_gradient_diameter_is_reached_and_not_passed(base, share):
    """By examples of the class of weight 1; half of the bound would be passed by far."""
    for loss in (Weighted(base, negative=share), Weighted(base, positive=share)):
        bound = loss.gradient_diameter(1.0, 3.0, 1.0)
        farthest = max(widest_pair(loss, 1.0, 3.0, 1.0, dimension, rounds=200, candidates=300) for dimension in (1, 2))
        assert 0.97 * bound < farthest <= bound


@pytest.mark.privacy
@pytest.mark.parametrize("base", [Softmax(3), MultiHinge(3)], ids=repr)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_gradients_of_several_classes_stay_within_their_bounds(base, seed):
    """Any two examples at any point; and two opposite ones of the class of weight 1 pass half of the bound."""
    rng = np.random.default_rng(seed)
    loss = WeightedScores(base, (0.1, 1.0, 0.4))
    bound = loss.gradient_diameter(1.0, 2.0, 1.0)
    W = rng.normal(size=6) * rng.choice([0.0, 0.1, 1.0])
    V = rng.normal(size=(2, 2))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    g, other = (loss.gradient(W, v, float(y)) for v, y in zip(V, rng.integers(0, 3, 2), strict=True))
    assert np.linalg.norm(g - other) <= bound
    assert np.linalg.norm(loss.gradient(W, V[0], 0.0) - loss.gradient(W, V[0], 1.0)) <= loss.label_diameter(1, 2, 1)
    opposite = loss.gradient(np.zeros(6), V[0], 1.0) - loss.gradient(np.zeros(6), -V[0], 1.0)
    assert np.linalg.norm(opposite) > 0.5 * bound


@pytest.mark.privacy
def test_weights_above_one_are_rejected():
    """They would pass the bounds; and the largest must be 1, so that no noise is wasted."""
    for weights in ((2.0, 1.0), (1.0, 0.0), (1.0, -1.0), (1.0, math.nan), (1.0, math.inf), (0.5, 0.5)):
        with pytest.raises(InvalidInput, match="Divide all weights by the largest"):
            Weighted(Hinge(), *weights)
        with pytest.raises(InvalidInput, match="Divide all weights by the largest"):
            WeightedScores(MultiHinge(2), weights)


def test_what_has_no_weights():
    """Losses of numbers, sums of squares, and a weight too few."""
    with pytest.raises(InvalidInput, match="labels are -1"):
        Weighted(Squared())
    with pytest.raises(Unprovable, match="sums of squares"):
        WeightedScores(OneHot(3), (1.0, 1.0, 1.0))
    with pytest.raises(InvalidInput, match="3 classes have 2 weights"):
        WeightedScores(Softmax(3), (1.0, 1.0))


def test_a_certificate_is_that_of_the_loss():
    """Weights cost no noise."""
    problem, weighted = (Problem(loss, L2Ball(1.0), 2) for loss in (Hinge(), Weighted(Hinge(), negative=0.1)))
    assert str(FTRL(weighted).certificate) == str(FTRL(problem).certificate)
