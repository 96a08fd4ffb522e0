"""Smoothed losses have the properties of a Moreau envelope."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import Absolute, Hinge, Problem, Quantile, ScalarLoss, Squared, WholeSpace
from taciturn.kernel.problem.scalar_loss import Smoothed

KINKED = {"absolute": Absolute(), "hinge": Hinge(), "quantile": Quantile(0.9)}
EACH = pytest.mark.parametrize("loss", [*KINKED.values(), Squared()], ids=[*KINKED, "squared"])
SHARP = pytest.mark.parametrize("loss", KINKED.values(), ids=KINKED)
PREDICTIONS = st.floats(-20.0, 20.0)
SIGNS = st.sampled_from([-1.0, 1.0])
WIDTHS = st.floats(-4.0, 1.0).map(lambda exponent: 10.0**exponent)


@EACH
@settings(max_examples=60)
@given(u=PREDICTIONS, w=PREDICTIONS, y=SIGNS, width=WIDTHS)
def test_it_is_the_envelope(loss, u, w, y, width):
    """Its value is below `loss(w) + (w - u)²/(2·width)` for every w, and reached at the prox."""
    smoothed, near = Smoothed(loss, width), loss.prox(u, y, width)
    value = float(smoothed.value(u, y))
    assert value <= float(loss.value(w, y)) + (w - u) ** 2 / (2.0 * width) + 1e-9
    assert value == pytest.approx(float(loss.value(near, y)) + (near - u) ** 2 / (2.0 * width), abs=1e-12)


@EACH
@settings(max_examples=60)
@given(u=PREDICTIONS, y=SIGNS, width=WIDTHS)
def test_it_lies_below_by_little(loss, u, y, width):
    """Below the loss, by at most `width/2` times the squared slope."""
    gap = float(loss.value(u, y)) - float(Smoothed(loss, width).value(u, y))
    assert -1e-12 <= gap <= width / 2.0 * float(loss.slope(u, y)) ** 2 + 1e-10


@EACH
@settings(max_examples=60)
@given(u=PREDICTIONS, y=SIGNS, width=WIDTHS)
def test_its_slope_is_no_steeper(loss, u, y, width):
    """Its slope has the sign of the loss's and no more than its size, up to rounding."""
    bits = 4.0 * 2.0**-52 * (1.0 + abs(u)) / width
    before, after = float(loss.slope(u, y)), float(Smoothed(loss, width).slope(u, y))
    assert min(before, 0.0) - bits <= after <= max(before, 0.0) + bits


@EACH
@settings(max_examples=60)
@given(u=PREDICTIONS, log_gap=st.floats(-3.0, 1.0), y=SIGNS, width=WIDTHS)
def test_its_curvature_is_bounded(loss, u, log_gap, y, width):
    """Slopes rise, by at most `1/width` times the distance."""
    smoothed, gap = Smoothed(loss, width), 10.0**log_gap
    bits = 8.0 * 2.0**-52 * (1.0 + abs(u) + gap) / width
    rise = float(smoothed.slope(u + gap, y)) - float(smoothed.slope(u, y))
    assert smoothed.curvature == 1.0 / width
    assert -bits <= rise <= gap / width + bits


@EACH
@settings(max_examples=60)
@given(z=PREDICTIONS, y=SIGNS, width=WIDTHS, log_step=st.floats(-3.0, 3.0))
def test_its_prox_is_what_bisection_finds(loss, z, y, width, log_step):
    """The closed form agrees with the default that any convex loss gets."""
    smoothed, step = Smoothed(loss, width), 10.0**log_step
    slow = ScalarLoss.prox(smoothed, z, y, step)
    assert smoothed.prox(z, y, step) == pytest.approx(slow, abs=1e-14 * (20.0 + step / width + step))


@EACH
def test_it_is_the_same_kind_of_loss(loss):
    """Labels and slope bound are the loss's, and a problem that had no smoothness has one."""
    smoothed = Smoothed(loss, 0.25)
    assert smoothed.labels == loss.labels
    assert smoothed.slope_bound(3.0, 1.0) == loss.slope_bound(3.0, 1.0)
    assert Problem(smoothed, WholeSpace(), 2, label_bound=1.0).smoothness == pytest.approx(4.0)


@SHARP
def test_a_kink_becomes_a_ramp(loss):
    """Within `width` of the kink the slope passes through every value; it no longer jumps."""
    slopes = [float(Smoothed(loss, 0.5).slope(u, 1.0)) for u in np.linspace(-2.0, 4.0, 6001)]
    assert np.max(np.diff(slopes)) <= 0.001 / 0.5 * (1.0 + 1e-9)
    assert max(slopes) - min(slopes) == pytest.approx(float(loss.slope(4.0, 1.0)) - float(loss.slope(-2.0, 1.0)))


@pytest.mark.parametrize("width", [2.0**-20 * math.pi, 1e-9])
@SHARP
def test_its_slope_keeps_the_bound_to_the_last_bit(loss, width):
    """No slope is steeper than the bound that certificates are made of."""
    smoothed = Smoothed(loss, width)
    steepest = max(abs(float(smoothed.slope(u, 1.0))) for u in np.linspace(-3.0, 3.0, 2001))
    assert steepest <= smoothed.slope_bound(3.0, 1.0)
