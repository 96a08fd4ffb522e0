"""Losses by number: slopes and proxes are those of the classes, whatever the parameters, also far out."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import LogCosh
from taciturn import Absolute, Hinge, Huber, Linear, Logistic, Quantile, ScalarLoss, Squared
from taciturn.kernel.problem import codes
from taciturn.kernel.problem import losses_loops as compiled
from taciturn.kernel.problem.codes import loss_code
from taciturn.kernel.problem.scalar_loss import Smoothed

EXACT = [Absolute(), Hinge(), Huber(0.7), Huber(1e-9), Huber(1e9), Linear(), Quantile(0.5), Quantile(0.9)]
EXACT += [Quantile(1e-9), Quantile(1.0 - 2.0**-53), Squared()]
LOSSES = [*EXACT, Logistic()]
KINKED = [Absolute(), Hinge(), *(Quantile(level) for level in (0.5, 0.9, 1e-9, 1.0 - 2.0**-53))]
WIDTHS = [1e-12, 2.0**-20, 0.3, 1.0, 50.0]


def test_every_scalar_loss_with_a_code_is_compared():
    """A loss with a code but no branch of its own would silently be computed as another one."""
    scalar = {kind for kind in codes._LOSSES if issubclass(kind, ScalarLoss)}
    assert scalar == {type(loss) for loss in LOSSES}


WIDE = st.one_of(
    st.floats(-10.0, 10.0), st.floats(-1e6, 1e6), st.floats(-1e60, 1e60), st.sampled_from([0.0, 1.0, -1.0])
)
STEPS = st.floats(-30.0, 30.0).map(lambda e: 10.0**e)
few = 8 * 2.0**-53  # a handful of roundings, or as many fewer where a product and a sum are fused


def label(loss: ScalarLoss, y: float) -> float:
    return math.copysign(1.0, y) if loss.labels == "sign" else y


def scale_of(*numbers: float) -> float:
    return max(map(abs, numbers))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(max_examples=150)
@given(u=WIDE, y=WIDE)
def test_slopes(loss, u, y):
    """To the last bits; the logistic one is 0 where the exponential ends."""
    y = label(loss, y)
    result = compiled.slope(*loss_code(loss), u, y)
    assert result == pytest.approx(float(loss.slope(u, y)), rel=few, abs=1e-300)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(max_examples=150)
@given(z=WIDE, y=WIDE, step=STEPS)
def test_proxes(loss, z, y, step):
    """To the last bits of the numbers that are added."""
    y = label(loss, y)
    result = compiled.prox(*loss_code(loss), z, y, step)
    assert abs(result - loss.prox(z, y, step)) <= few * scale_of(z, y, result)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=60)
@given(u=st.floats(-10.0, 10.0), y=st.floats(-3.0, 3.0))
def test_slopes_of_a_smoothed_loss(loss, width, u, y):
    """The envelope's slope without cancellation: to the last bits of the exact one, `(u - prox(u))/width`."""
    y = label(loss, y)
    result = compiled.slope(*loss_code(Smoothed(loss, width)), u, y)
    assert abs(result) <= abs(loss.slope_bound(abs(u), abs(y))) * (1.0 + few)
    bent = scale_of(u, y, 1.0) / width if near_kink(loss, width, u, y) else scale_of(u, y) / (1.0 + width)
    assert abs(result - float(exact_envelope_slope(loss, width, u, y))) <= few * scale_of(result, bent)


def near_kink(loss, width, u, y) -> bool:
    """Where a kink is smoothed: there `1/width` times an error of u is an error of the slope."""
    return loss in KINKED and abs(y * u - 1.0 if isinstance(loss, Hinge) else u - y) <= 2.0 * width


def exact_envelope_slope(loss, width, u, y):
    """In 60 digits."""
    with mpmath.workdps(60):
        u, y, width = mpmath.mpf(u), mpmath.mpf(y), mpmath.mpf(width)
        if isinstance(loss, Logistic):
            low, high = y * u, y * u + width
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (low, middle) if middle - y * u > width / (1 + mpmath.exp(middle)) else (middle, high)
            return -y / (1 + mpmath.exp(low))
        if isinstance(loss, Hinge):
            return -y * min(max((1 - y * u) / width, 0), 1)
        if isinstance(loss, Linear):
            return y
        if isinstance(loss, Squared):
            return (u - y) / (1 + width)
        if isinstance(loss, Huber):
            return min(max((u - y) / (1 + width), -mpmath.mpf(loss.width)), mpmath.mpf(loss.width))
        least, most = (-mpmath.mpf(loss.level), 1 - mpmath.mpf(loss.level)) if isinstance(loss, Quantile) else (-1, 1)
        return min(max((u - y) / width, least), most)


@pytest.mark.parametrize("loss", KINKED, ids=repr)
@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=40)
@given(u=st.floats(-10.0, 10.0), y=st.floats(-3.0, 3.0), step=STEPS)
def test_a_smoothed_loss_is_the_definition_s(loss, width, u, y, step):
    """Slope and prox of `Smoothed`: exactly where the loss is straight, else to the last bits of u over the width."""
    y, smoothed = label(loss, y), Smoothed(loss, width)
    code = loss_code(smoothed)
    slope, defined = compiled.slope(*code, u, y), smoothed.slope(u, y)
    assert slope == defined or near_kink(loss, width, u, y)
    assert abs(slope - defined) <= 2.0**-49 * scale_of(u, y, 1.0) / width
    assert abs(compiled.prox(*code, u, y, step) - smoothed.prox(u, y, step)) <= few * scale_of(u, y, step, 1.0)


@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_where_a_kinked_loss_is_straight_its_slope_is_exact(loss):
    """The difference `u - prox(u)`, divided by a tiny width, would be off by 1e-10, and is not used."""
    code = loss_code(Smoothed(loss, 2.0**-20 * 0.37))
    for u in np.random.default_rng(3).uniform(-0.9, 0.9, 500):
        y = 1.0 if loss.labels == "sign" or u < 0.0 else -1.0
        assert compiled.slope(*code, u, y) == float(loss.slope(u, y))


@settings(max_examples=300)
@given(
    z=st.floats(-800.0, 800.0), step=st.floats(-20.0, 20.0).map(lambda e: 10.0**e), sign=st.sampled_from([-1.0, 1.0])
)
def test_the_logistic_prox_is_a_root_to_the_last_bits(z, step, sign):
    """Beside its root in 60 digits."""
    result = sign * compiled.prox(*loss_code(Logistic()), sign * z, sign, step)
    with mpmath.workdps(60):
        low, high = mpmath.mpf(z), mpmath.mpf(z) + mpmath.mpf(step)
        for _ in range(260):
            middle = (low + high) / 2
            low, high = (low, middle) if middle - z - step / (1 + mpmath.exp(middle)) > 0 else (middle, high)
        assert abs(result - low) <= 4 * 2.0**-53 * scale_of(z, float(low), min(step, 1.0))


@pytest.mark.parametrize("z", [math.nan, math.inf, -math.inf])
def test_the_logistic_prox_ends(z):
    """Whatever it is given: no data may make it hang."""
    compiled.prox(*loss_code(Logistic()), z, 1.0, 0.5)
    compiled.prox(*loss_code(Logistic()), 0.5, 1.0, abs(z))


def test_what_is_not_of_the_package_has_no_number():
    """A loss of one's own, and one that inherits from ours."""

    class Mine(Logistic):
        pass

    for loss in (LogCosh(), Mine(), Smoothed(Mine(), 0.1), Smoothed(Smoothed(Hinge(), 0.1), 0.1), object()):
        assert loss_code(loss) is None
    assert loss_code(Smoothed(Huber(2.0), 0.1)) == (*loss_code(Huber(2.0))[:2], 0.1)


SERIES = [
    [1],
    [-1],
    [Fraction(-1, 2), 2],
    [Fraction(-1, 6), Fraction(5, 2), -5],
    [Fraction(-1, 24), Fraction(7, 4), Fraction(-21, 2), 14],
]
SERIES += [
    [Fraction(-1, 120), Fraction(7, 8), Fraction(-35, 3), 42, -42],
    [Fraction(-1, 720), Fraction(31, 90), -9, 65, -165, 132],
]
"""Coefficients of a¹ (1), a² (of q), a³ (of q, q²) and so on."""


def value(coefficients: list[Fraction], at: Fraction) -> Fraction:
    return sum((c * at**k for k, c in enumerate(coefficients)), Fraction(0))


def product(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


def test_a_short_pull_is_cut_off_where_its_proof_says():
    """The powers from a⁸ on of `M·exp(M)`, at the longest pull there is, come to less than 2⁻⁵² of it."""
    a, M = Fraction(compiled.SHORT), [Fraction(0), *(Fraction(sum(map(abs, each))) for each in SERIES)]
    power, before = [Fraction(1)], [Fraction(0)] * 8
    for n in range(8):
        for k, coefficient in enumerate(product(power, M)[:8]):
            before[k] += coefficient / math.factorial(n)
        power = product(power, M)[:8]
    with mpmath.workdps(60):
        longest, low = (mpmath.fraction(c.numerator, c.denominator) for c in (value(M, a), value(before, a)))
        beyond = longest * mpmath.exp(longest) - low
    assert 0 < beyond < 1483 * a**8 < a / 2**52


@settings(max_examples=300)
@given(share=st.floats(0.0, 1.0), part=st.floats(1e-9, 1.0))
def test_short_pulls(share, part):
    """Compared with the root in forty digits, and with the series itself."""
    a = compiled.SHORT * part
    result = compiled._short_pull(a, share)
    q = 1.0 - share  # as exact as a number in (0, 1) may be
    with mpmath.workdps(40):
        true = mpmath.findroot(lambda e: e * (1 + mpmath.mpf(q) * mpmath.expm1(e)) - a, a)
        assert abs(result - true) <= few * true
    each = [sum(c * Fraction(q) ** m for m, c in enumerate(cs, start=int(k > 0))) for k, cs in enumerate(SERIES)]
    assert abs(result - float(value([Fraction(0), *each], Fraction(a)))) <= few * result
