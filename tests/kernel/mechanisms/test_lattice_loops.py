"""Rows on their lattice: the nearest multiple, the upper one of two, within what was certified."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import BLT, IGD, Gaussian, L2Ball, Logistic, Privacy, Private, Problem, every, private_sum
from taciturn.kernel.mechanisms import lattice_loops as lattice
from taciturn.kernel.stream.passes import noise_of

STEPS = st.integers(-60, 40).map(lambda e: 2.0**e)
NOISE = st.integers(-(2**44), 2**44)


def nearest(value: float, step: float) -> int:
    """`floor(value/step + ½)`, exactly."""
    return math.floor(Fraction(value) / Fraction(step) + Fraction(1, 2))


def on_lattice(row: np.ndarray, step: float) -> np.ndarray:
    """Integers that noise of 0 is added to."""
    noise = np.zeros((1, len(row)), dtype=np.int64)
    (noisy,) = lattice.add_noise_batch(row[None], np.array([step]), math.inf, noise)
    return noisy / step


@settings(max_examples=200)
@given(row=arrays(np.float64, 6, elements=st.floats(-1.0, 1.0)), step=STEPS, reach=st.integers(0, 50))
def test_the_nearest_multiple(row, step, reach):
    """In exact arithmetic, up to 2⁵¹ steps, which is as far as mechanisms go; but for what ½ itself rounds."""
    row = row * step * 2.0**reach
    result = on_lattice(row, step)
    for value, integer in zip(row, result, strict=True):
        exact = Fraction(value) / Fraction(step)
        assert abs(int(integer) - exact) <= Fraction(1, 2) + Fraction(2) ** (reach - 53)
        if abs(exact) < 2**20:
            assert int(integer) == nearest(value, step) or abs(exact % 1 - Fraction(1, 2)) < Fraction(1, 2**30)


@pytest.mark.parametrize("step", [2.0**-30, 1.0, 2.0**30])
def test_halves_go_up(step):
    """Also below 0, as `floor(x + ½)` has it."""
    row = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, -0.25, 0.75, -0.75]) * step
    result = on_lattice(row, step)
    assert result.tolist() == [1, 2, 3, 0, -1, -2, 0, 0, 1, -1]


@pytest.mark.parametrize("power", [30, 50, 51])
def test_huge_rows(power):
    """Up to 2⁵¹ steps every multiple is represented exactly."""
    row = np.array([2.0**power, 2.0**power - 1.0, -(2.0**power), 1.0 - 2.0**power]) * 2.0**-7
    result = on_lattice(row, 2.0**-7)
    assert result.tolist() == [2**power, 2**power - 1, -(2**power), 1 - 2**power]


@settings(max_examples=100)
@given(
    rows=arrays(np.float64, (2, 3), elements=st.floats(allow_nan=True, width=64)),
    noise=arrays(np.int64, (2, 3), elements=NOISE),
    reach=st.integers(0, 50),
)
def test_rows_are_encoded_noised_and_decoded(rows, noise, reach):
    """By the verbs that define it, bit for bit: whatever the row is."""
    steps = np.array([2.0**-20, 2.0**-9])
    largest = 2.0 ** (reach - 20)
    result = lattice.add_noise_batch(rows, steps, largest, noise)
    clipped = np.clip(np.nan_to_num(rows), -largest, largest)
    integers = np.floor(clipped / steps[:, None] + 0.5).astype(np.int64) + noise
    np.testing.assert_array_equal(result, integers * steps[:, None])
    assert (np.abs(result / steps[:, None] - noise) <= largest / steps[:, None] + 1).all()


WILD = np.array([[math.nan, math.inf, -math.inf], [1e300, -1e300, 0.1], [-0.0, 5e-324, -0.7]])


@pytest.mark.privacy
@pytest.mark.parametrize("horizon", [3, None])
def test_a_mechanism_s_integers_are_the_definition_s(horizon):
    """Statistics that no honest learner returns, through a calibrated mechanism both ways: the same bits."""
    one = Private(IGD(Problem(Logistic(), L2Ball(1.0), 3, ridge=0.1)), Gaussian(), every(1), Privacy(1, 1e-6), horizon)
    calibrated = one.calibrated
    batch = noise_of(calibrated)
    noise = batch.draw(7, 1, 3)
    noised = batch.add({}, {}, WILD, 1, noise)
    for k, (row, more) in enumerate(zip(WILD, noise, strict=True), start=1):
        _, integers = calibrated.encode({}, row, k)
        _, noisy, sd = calibrated.decode({}, integers + more, k)
        np.testing.assert_array_equal(noised.noisy[k - 1], noisy)
        assert noised.noise_sd[k - 1] == sd


@pytest.mark.privacy
def test_large_rows_are_clipped_by_strategies():
    """What a buffer takes in is cut to what was certified."""
    one = private_sum(3, 1.0, Privacy(1.0, 1e-6), 3, strategy=BLT(), seed=1)
    calibrated = one.calibrated
    secret, public = calibrated.start()
    batch = noise_of(calibrated)
    noised = batch.add(secret, public, WILD, 1, batch.draw(7, 1, 3))
    for k, row in enumerate(WILD, start=1):
        secret, _ = calibrated.encode(secret, row, k)
    np.testing.assert_allclose(noised.secret["buffers"], secret["buffers"], rtol=1e-15)
    assert np.isfinite(noised.noisy).all()
