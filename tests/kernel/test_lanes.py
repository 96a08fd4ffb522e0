"""SIMD loops, compared with the same in plain Python."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from taciturn.kernel import lanes
from taciturn.kernel.lanes import LANES, add_up, between, floor, numbers, put, rint, take, zeros

GUARD = 77.0
STRANGE = [math.nan, math.inf, -math.inf, 0.5, -0.5, 1.5, 2.5, -0.0]


@njit
def taken(array, at, left, out):
    put(out, 0, LANES, take(array, at, left))


@njit
def written(array, at, left, values):
    put(array, at, left, take(values, 0, LANES))


@njit
def summed(values):
    return add_up(take(values, 0, LANES) + zeros())


@njit
def cut(values, least, most, out):
    put(out, 0, LANES, between(take(values, 0, LANES), least, most))


@njit
def cleaned(values, out):
    put(out, 0, LANES, numbers(take(values, 0, LANES)))


@njit
def floored(values, out):
    put(out, 0, LANES, floor(take(values, 0, LANES)))


@njit
def rounded(values, out):
    put(out, 0, LANES, rint(take(values, 0, LANES)))


@njit
def combined(a, b, number, out):
    first, second = take(a, 0, LANES), take(b, 0, LANES)
    put(out[0], 0, LANES, first + second)
    put(out[1], 0, LANES, first * second)
    put(out[2], 0, LANES, first + number)
    put(out[3], 0, LANES, first * number)


@given(st.integers(0, 20), st.integers(0, 11), st.sampled_from([np.float64, np.float32, np.int64]))
def test_numbers_are_taken_and_zeros_for_those_that_are_not_left(at, left, kind):
    """From rows of any precision, and from the middle of one; whatever comes after is not looked at."""
    array = (np.arange(32.0) * 3.0 - 40.0).astype(kind).reshape(2, 16)
    out = np.full(LANES, GUARD)
    taken(array, at, left, out)
    np.testing.assert_array_equal(out, take(array, at, left))
    np.testing.assert_array_equal(out[:left], array.ravel()[at : at + min(left, LANES)])
    assert not out[left:].any()


@given(st.integers(0, 20), st.integers(0, 11))
def test_no_more_is_written_than_is_left(at, left):
    """Neighbours stay as they are, in compiled code and in plain Python."""
    values, expected = np.arange(1.0, 9.0), np.full((2, 16), GUARD)
    result = expected.copy()
    written(result, at, left, values)
    put(expected, at, left, values)
    np.testing.assert_array_equal(result, expected)
    assert np.count_nonzero(result != GUARD) == min(left, LANES)


def test_a_sum_is_that_of_all_eight():
    """Powers of two add up without rounding, and each is missed."""
    assert summed(2.0 ** np.arange(8.0)) == add_up(2.0 ** np.arange(8.0)) == 255.0


@pytest.mark.parametrize("values", [np.array(STRANGE), np.arange(-4.0, 4.0) * 1.25], ids=["strange", "plain"])
def test_each_number_becomes_what_it_becomes_in_plain_python(values):
    """What is not a number, infinities, halves and a negative zero among them."""
    out = np.empty(LANES)
    floored(values, out)
    np.testing.assert_array_equal(out, np.floor(values))
    rounded(values, out)
    np.testing.assert_array_equal(out, np.rint(values))
    cleaned(values, out)
    np.testing.assert_array_equal(out, lanes.numbers(values))
    cut(values, -1.0, 2.0, out)
    np.testing.assert_array_equal(out, lanes.between(values, -1.0, 2.0))
    np.testing.assert_array_equal(out, np.clip(np.where(np.isnan(values), -1.0, values), -1.0, 2.0))


@given(st.lists(st.floats(-1e9, 1e9), min_size=16, max_size=16), st.floats(-1e9, 1e9))
def test_sums_and_products_are_those_of_each_lane(values, number):
    """Of two vectors, and of a vector and a number."""
    a, b, out = np.array(values[:8]), np.array(values[8:]), np.empty((4, LANES))
    combined(a, b, number, out)
    expected = [f(a, other) for other in (b, number) for f in (operator.add, operator.mul)]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_nothing_but_doubles_is_written_to(kind):
    """Other arrays have other bits, and float32 too little room."""
    with pytest.raises(Exception, match="put"):
        written(np.zeros(16, dtype=kind), 0, 8, np.ones(LANES))


def test_arrays_that_are_not_contiguous_are_rejected():
    """When it is compiled: places in them could not be counted."""
    with pytest.raises(Exception, match="take"):
        taken(np.zeros((4, 16))[:, ::2], 0, 8, np.empty(LANES))
