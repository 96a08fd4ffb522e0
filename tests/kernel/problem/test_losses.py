"""Every loss: convex, with the slope, the bounds and the prox that its definition has."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from instances import LOSSES, labels_of
from taciturn import Huber, InvalidInput, Quantile, ScalarLoss
from taciturn.checks.losses import (
    Predictions,
    curvature_is_a_bound,
    slope_bound_is_a_bound,
    slope_is_a_subgradient,
    slope_is_nondecreasing,
    variation_is_a_bound,
)
from taciturn.kernel.problem.scalar_loss import Smoothed

EACH = each("name", LOSSES)
PREDICTIONS = st.floats(-50.0, 50.0)
LOG_STEPS = st.floats(-6.0, 6.0)
UNIT_LABELS = st.sampled_from([-1.0, -0.5, 0.0, 0.3, 1.0])

DEFINITIONS = {
    "absolute": lambda u, y: abs(u - y),
    "hinge": lambda u, y: max(mpmath.mpf(0), 1 - y * u),
    "huber": lambda u, y: _huber(u - y, mpmath.mpf(0.7)),
    "huber wide": lambda u, y: _huber(u - y, mpmath.mpf(50)),
    "linear": lambda u, y: y * u,
    "log cosh": lambda u, y: mpmath.log(mpmath.cosh(u - y)),
    "logistic": lambda u, y: mpmath.log1p(mpmath.exp(-y * u)),
    "quantile .5": lambda u, y: abs(u - y) / 2,
    "quantile .9": lambda u, y: mpmath.mpf(0.9) * (y - u) if u < y else (1 - mpmath.mpf(0.9)) * (u - y),
    "squared": lambda u, y: (u - y) ** 2 / 2,
}


def _huber(r, width):
    return r * r / 2 if abs(r) <= width else width * (abs(r) - width / 2)


def legal(loss, y):
    """The label, or a sign where only signs are legal."""
    return math.copysign(1.0, y) if loss.labels == "sign" else y


def minimiser(definition, z, y, step):
    """`argmin_u step·definition(u, y) + ½(u - z)²` to 20 digits, by cutting a bracket in three."""
    with mpmath.workdps(50):
        z, y, step = mpmath.mpf(z), mpmath.mpf(y), mpmath.mpf(step)
        reach = step * (2 + abs(z - y)) + 1
        low, high = z - reach, z + reach

        def cost(u):
            return step * definition(u, y) + (u - z) ** 2 / 2

        while high - low > mpmath.mpf(10) ** -20 * (1 + abs(z)):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if cost(left) < cost(right) else (left, high)
        return float(low)


@EACH
@settings(max_examples=50)
@given(u=PREDICTIONS, y=UNIT_LABELS)
def test_value_is_the_definition(name, u, y):
    """The value is that of the written formula, to 12 digits."""
    loss = LOSSES[name]()
    y = legal(loss, y)
    with mpmath.workdps(40):
        expected = float(DEFINITIONS[name](mpmath.mpf(u), mpmath.mpf(y)))
    assert float(loss.value(u, y)) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@EACH
@settings(max_examples=60)
@given(u=st.lists(PREDICTIONS, min_size=2, max_size=12, unique=True))
def test_slopes_keep_the_contract(name, u):
    """Tangents stay below the loss, slopes never fall, and constants are bounds, between any predictions."""
    loss = LOSSES[name]()
    labels = np.array([-1.0, 1.0] if loss.labels == "sign" else [-1.0, -0.5, 0.0, 0.3, 1.0])
    for check in (slope_is_a_subgradient, slope_is_nondecreasing, slope_bound_is_a_bound, variation_is_a_bound):
        check(Predictions(loss, np.sort(u), labels))
    if math.isfinite(loss.curvature):
        curvature_is_a_bound(Predictions(loss, np.sort(u), labels))


@EACH
@settings(max_examples=60)
@given(u=PREDICTIONS, other=PREDICTIONS, share=st.floats(0.0, 1.0), y=UNIT_LABELS)
def test_chords_lie_above(name, u, other, share, y):
    """Between two points the loss stays below its chord."""
    loss = LOSSES[name]()
    y = legal(loss, y)
    between = float(loss.value(share * u + (1.0 - share) * other, y))
    assert between <= share * float(loss.value(u, y)) + (1.0 - share) * float(loss.value(other, y)) + 1e-11


@EACH
@each("y", [-1.0, 1.0])
def test_slope_never_falls(name, y):
    """On a fine grid, its kinks included, slopes are sorted, to the last bit."""
    u = np.unique(np.concatenate([np.linspace(-80.0, 80.0, 20_001), [y, np.nextafter(y, -9.0), np.nextafter(y, 9.0)]]))
    assert np.all(np.diff(LOSSES[name]().slope(u, y)) >= 0.0)


@EACH
@settings(max_examples=50)
@given(u=PREDICTIONS, y=UNIT_LABELS)
def test_slope_is_the_derivative(name, u, y):
    """Away from kinks, small differences of the value give the slope."""
    loss, h = LOSSES[name](), 1e-5
    y = legal(loss, y)
    if float(loss.slope(u + h, y)) - float(loss.slope(u - h, y)) < 0.05:
        difference = (float(loss.value(u + h, y)) - float(loss.value(u - h, y))) / (2.0 * h)
        assert float(loss.slope(u, y)) == pytest.approx(difference, abs=h * (1.0 + abs(u)))


@EACH
def test_arrays_are_elementwise(name):
    """Values and slopes of arrays are those of their entries, and broadcast."""
    loss, rng = LOSSES[name](), np.random.default_rng(7)
    u, y = rng.normal(size=50), labels_of(LOSSES[name](), 1.0, rng, 50)
    for function in (loss.value, loss.slope):
        assert np.array_equal(function(u, y), [float(function(a, b)) for a, b in zip(u, y, strict=True)])
        assert np.shape(function(u[:, None], y)) == (50, 50)


@EACH
@each("reach", [0.0, 0.1, 1.0, 30.0, 1e6])
@each("label_bound", [0.5, 1.0, 100.0])
def test_slope_bound_is_a_bound(name, reach, label_bound):
    """No legal prediction and label has a steeper slope; but for the user's, the bound is reached."""
    loss = LOSSES[name]()
    u, y = np.linspace(-reach, reach, 401)[:, None], np.linspace(-label_bound, label_bound, 41)
    steepest = np.max(np.abs(loss.slope(u, np.sign(y + 1e-9) if loss.labels == "sign" else y)))
    bound = loss.slope_bound(reach, label_bound)
    assert steepest <= bound
    assert name == "log cosh" or steepest >= bound * (1.0 - 1e-8)


@EACH
def test_slope_bound_without_a_set(name):
    """Over all predictions a loss has its global bound, infinite for squared loss."""
    loss = LOSSES[name]()
    bound = loss.slope_bound(math.inf, 1.0)
    assert math.isinf(bound) == (name == "squared")
    assert np.max(np.abs(loss.slope(np.linspace(-1e9, 1e9, 1001), 1.0))) <= bound


@EACH
def test_curvature_is_reached(name):
    """Somewhere slopes change by as much; where the curvature is infinite they jump."""
    loss, h = LOSSES[name](), 1e-4
    u = np.linspace(-3.0, 3.0, 60_001)
    steepest = np.max(np.diff(loss.slope(u, 1.0))) / h
    assert steepest >= min(loss.curvature, 1e3) * (1.0 - 1e-3)


@EACH
@each("z", [-7.5, -0.3, 0.0, 0.9, 1.0, 12.0])
@each("step", [1e-3, 0.4, 3.0, 250.0])
def test_prox_is_the_minimiser(name, z, step):
    """The prox is where a search to 20 digits finds the least value of its definition."""
    loss = LOSSES[name]()
    for y in (-1.0, 1.0):
        assert loss.prox(z, y, step) == pytest.approx(minimiser(DEFINITIONS[name], z, y, step), rel=1e-13, abs=1e-13)


@EACH
@settings(max_examples=100)
@given(z=st.floats(-1e4, 1e4), y=UNIT_LABELS, log_step=LOG_STEPS)
def test_prox_satisfies_its_condition(name, z, y, log_step):
    """`(z - u)/step` is a slope at u, up to the rounding of u: between the slopes a few bits below and above."""
    loss, step = LOSSES[name](), 10.0**log_step
    y = legal(loss, y)
    u = loss.prox(z, y, step)
    bits = 16.0 * 2.0**-52 * (abs(z) + abs(u) + step + 1.0)
    assert (u - bits) - z + step * float(loss.slope(u - bits, y)) <= 0.0
    assert (u + bits) - z + step * float(loss.slope(u + bits, y)) >= 0.0


@EACH
@settings(max_examples=50)
@given(z=st.floats(-1e3, 1e3), y=UNIT_LABELS, log_step=st.floats(-4.0, 4.0))
def test_prox_is_what_bisection_finds(name, z, y, log_step):
    """The closed form agrees with the default that any convex loss gets."""
    loss, step = LOSSES[name](), 10.0**log_step
    y = legal(loss, y)
    slow = ScalarLoss.prox(loss, z, y, step)
    assert loss.prox(z, y, step) == pytest.approx(slow, rel=1e-14, abs=1e-15 * (abs(z) + step + 1.0))


@EACH
@settings(max_examples=50)
@given(z=PREDICTIONS, other=PREDICTIONS, y=UNIT_LABELS, log_step=LOG_STEPS)
def test_prox_never_expands(name, z, other, y, log_step):
    """Two starting points are never farther apart after the step than before."""
    loss, step = LOSSES[name](), 10.0**log_step
    y = legal(loss, y)
    moved = abs(loss.prox(z, y, step) - loss.prox(other, y, step))
    assert moved <= abs(z - other) + 1e-15 * (100.0 + 2.0 * step)


@each("z", [-1e300, -1e5, 0.0, 1e5, 1e300])
@each("step", [1e-300, 1e-8, 1e8])
@EACH
def test_prox_of_extreme_numbers_is_finite(name, z, step):
    """Huge and tiny arguments end in a finite number on the segment between z and where its slope would lead."""
    loss = LOSSES[name]()
    u = loss.prox(z, 1.0, step)
    far = step * abs(float(loss.slope(z, 1.0)))
    assert math.isfinite(u)
    assert abs(u - z) <= far * (1.0 + 1e-12) + abs(z) * 1e-15


@each("level", [0.0, 1.0, -0.1, math.nan])
def test_a_quantile_lies_between_0_and_1(level):
    """Other levels are rejected."""
    with pytest.raises(InvalidInput, match="level must lie strictly between 0 and 1"):
        Quantile(level)


@each("width", [0.0, -1.0, math.inf, math.nan])
def test_a_huber_width_is_positive(width):
    """Other widths are rejected."""
    with pytest.raises(InvalidInput, match="width must be positive"):
        Huber(width)


def widest(loss: ScalarLoss, reach: float, label_bound: float) -> float:
    """`max - min` over |u| ≤ `reach` for the worst of many labels, kinks and ends among the predictions."""
    labels = np.array([-1.0, 1.0]) if loss.labels == "sign" else np.linspace(-label_bound, label_bound, 201)
    u = np.clip(np.concatenate([np.linspace(-reach, reach, 801), labels, labels + 0.7, labels - 0.7]), -reach, reach)
    values = loss.value(u[:, None], labels)
    return float(np.max(np.max(values, axis=0) - np.min(values, axis=0)))


@EACH
@pytest.mark.privacy
@each("reach", [0.0, 0.1, 0.9, 1.0, 1.5, 30.0, 1e4])
@each("label_bound", [1e-3, 0.5, 1.0, 1.2, 100.0])
def test_variation_is_a_bound(name, reach, label_bound):
    """No label's loss varies by more over the predictions; but for the user's, the bound is reached."""
    loss = LOSSES[name]()
    result, bound = widest(loss, reach, label_bound), loss.variation(reach, label_bound)
    assert result <= bound + 1e-12
    assert name == "log cosh" or result >= bound * (1.0 - 1e-8)


@EACH
def test_variation_without_a_set(name):
    """Over all predictions there is no bound."""
    assert LOSSES[name]().variation(math.inf, 1.0) == math.inf


@EACH
@pytest.mark.privacy
@each("width", [0.01, 0.5, 20.0])
def test_variation_of_a_smoothed_loss(name, width):
    """Rounding kinks off does not make a loss vary by more."""
    loss = LOSSES[name]()
    smoothed = Smoothed(loss, width)
    for reach in (0.3, 1.5, 10.0):
        for y in (-1.0, 0.4, 1.0):
            values = [float(smoothed.value(float(u), legal(loss, y))) for u in np.linspace(-reach, reach, 101)]
            assert max(values) - min(values) <= smoothed.variation(reach, 1.0) + 1e-12
        assert smoothed.variation(reach, 1.0) <= 2.0 * reach * loss.slope_bound(reach, 1.0) * (1.0 + 1e-8)
