"""Sums that are exact, so that two streams that differ in one example differ in nothing else."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn.kernel.learners.exact_sums import MOST, entry_bound, lattice_of, rounded

pytestmark = pytest.mark.privacy

SCALES = st.floats(-12.0, 12.0).map(lambda e: 10.0**e)
ROWS = arrays(np.float64, (40, 2), elements=st.floats(-1.5, 1.5))


@settings(max_examples=60)
@given(rows=ROWS, magnitude=SCALES, seed=st.integers(0, 99))
def test_the_order_of_addition_does_not_matter(rows, magnitude, seed):
    """Forwards, backwards, shuffled and in pairs: the same floats, which are the exact sum."""
    rows = rounded(rows * magnitude, magnitude)
    shuffled = np.random.default_rng(seed).permutation(rows)
    sums = [np.add.reduce(r, axis=0) for r in (rows, rows[::-1], shuffled, rows[::2] + rows[1::2])]
    by_hand = [sum(Fraction(float(x)) for x in column) for column in rows.T]
    for result in (*sums, rows.sum(axis=0)):
        assert [Fraction(float(x)) for x in result] == by_hand


@settings(max_examples=60)
@given(row=arrays(np.float64, 4, elements=st.floats(-3.0, 3.0)), magnitude=SCALES)
def test_rounding_moves_an_entry_by_half_a_step(row, magnitude):
    """Of a lattice 2²⁶ to 2²⁷ times finer than the largest entry; larger ones are cut."""
    step, row = lattice_of(magnitude), row * magnitude
    result = rounded(row, magnitude)
    assert magnitude / 2.0**27 < step <= magnitude / 2.0**26
    assert math.frexp(step)[0] == 0.5
    assert np.array_equal(result / step, np.rint(result / step))
    assert np.max(np.abs(result - np.clip(row, -magnitude, magnitude))) <= step / 2.0
    assert np.array_equal(rounded(result, magnitude), result) or np.max(np.abs(row)) >= magnitude - step


@pytest.mark.parametrize("magnitude", [1.0, 1.0 - 2.0**-53, 2.0 - 2.0**-52, 0.3, 1e10])
def test_as_many_as_it_says_can_be_added(magnitude):
    """2²⁶ of the largest stay below 2⁵³ steps, where float64 is exact."""
    largest = Fraction(float(rounded(np.array([magnitude]), magnitude)[0]))
    steps = largest / Fraction(lattice_of(magnitude))
    assert steps.denominator == 1
    assert steps * MOST <= 2**53
    assert 4 * steps * MOST > 2**53  # and not many more could be


@pytest.mark.parametrize("wild", [math.nan, math.inf, -math.inf, 1e308])
def test_anything_becomes_a_contribution(wild):
    """What is not a number counts 0, what is too large is cut."""
    result = rounded(np.array([wild, 0.25]), 1.0)
    assert np.abs(result[0]) in (0.0, 1.0)
    assert result[1] == 0.25


def test_the_bound_ends_where_sums_stop_being_exact():
    """After 2²⁶ examples nothing is certified."""
    bound = entry_bound(2.0, 1.0, 3, np.array([1.0, MOST, MOST + 1, 1e12]))
    assert bound[0] == bound[1] < math.inf
    assert bound[2] == bound[3] == math.inf
    assert MOST == 2**26


@settings(max_examples=100)
@given(pair=arrays(np.float64, (2, 5), elements=st.floats(-1.0, 1.0)))
def test_the_bound_covers_rounding_in_both_worlds(pair):
    """Two contributions, rounded, lie no farther apart than their distance and `sqrt(size)` steps."""
    moved = float(np.linalg.norm(pair[0] - pair[1]))
    result = float(np.linalg.norm(rounded(pair[0], 1.0) - rounded(pair[1], 1.0)))
    assert result <= float(entry_bound(moved, 1.0, 5, 1.0))


def test_the_bound_is_reached():
    """Entries just above and just below the middle between two lattice points are rounded apart."""
    step, size = lattice_of(1.0), 5
    low, high = np.full(size, 0.4999 * step), np.full(size, 0.5001 * step)
    moved = float(np.linalg.norm(high - low))
    result = float(np.linalg.norm(rounded(high, 1.0) - rounded(low, 1.0)))
    assert 0.99 * float(entry_bound(moved, 1.0, size, 1.0)) < result <= float(entry_bound(moved, 1.0, size, 1.0))
