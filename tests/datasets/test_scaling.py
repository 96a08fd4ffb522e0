"""Rows are mapped one by one, and stay within their bounds to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn.datasets.scaling import indicators, shortened, to_norm_one, wave_names, waves
from taciturn.tables.ranges import between

ANY = st.floats(-1e300, 1e300, allow_subnormal=False)


@given(arrays(float, 5, elements=ANY), ANY, st.floats(1e-3, 1e3))
def test_numbers_end_up_between_minus_one_and_one(values, low, width):
    """Far out of range or in it; larger numbers never come lower."""
    high = low + max(width, 1e-9 * abs(low))
    scaled = between(np.sort(values), low, high)
    assert np.abs(scaled).max() <= 1.0
    assert (np.diff(scaled) >= 0.0).all()


def test_the_ends_of_a_range_are_the_ends_of_the_interval():
    assert between([2, 3, 4], 2, 4).tolist() == [-1.0, 0.0, 1.0]


def test_a_long_text_that_begins_like_a_short_one_is_another():
    """No comparison of cut texts; numbers compare as numbers."""
    assert not indicators(["JFKX"], ("EWR", "JFK")).any()
    assert indicators([1.0, 2.5], range(3)).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert indicators([], ("EWR", "JFK")).shape == (0, 2)


@given(st.floats(-1e6, 1e6), st.integers(1, 4))
def test_waves_have_a_norm_and_a_period(time, harmonics):
    row = waves([time], 24.0, harmonics)
    assert np.linalg.norm(row) == pytest.approx(np.sqrt(harmonics))
    np.testing.assert_allclose(row, waves([time + 24.0], 24.0, harmonics), atol=1e-8)
    assert row.shape[1] == len(set(wave_names("day", harmonics))) == 2 * harmonics


@given(arrays(float, (3, 7), elements=st.floats(-1.0, 1.0)))
def test_no_row_is_longer_than_one(X):
    """Divided by the longest norm there can be, or by its own: never above 1, not by a bit."""
    assert np.linalg.norm(shortened(X.copy(), np.sqrt(7)), axis=1).max() <= 1.0
    norms = np.linalg.norm(to_norm_one(X.copy()), axis=1)
    assert norms.max() <= 1.0
    np.testing.assert_allclose(norms[np.abs(X).max(axis=1) > 1e-300], 1.0, rtol=2e-12)


def test_corners_stay_within_the_bound():
    """The longest rows of many dimensions, where rounding could carry one past 1."""
    for dimension in range(1, 200):
        assert np.linalg.norm(shortened(np.ones((1, dimension)), np.sqrt(dimension))) <= 1.0
        assert np.linalg.norm(to_norm_one(np.full((1, dimension), 0.1))) <= 1.0


def test_a_row_does_not_depend_on_the_others():
    """The planted fault would be a norm taken over all rows."""
    X = np.array([[3.0, 4.0], [30.0, 1.0]])
    np.testing.assert_array_equal(to_norm_one(X.copy())[:1], to_norm_one(X[:1].copy()))
