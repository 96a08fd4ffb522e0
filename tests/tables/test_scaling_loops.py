"""Columns that are scaled by compiled code have the bits of the definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn.columns.kinds import Range
from taciturn.columns.values import ArrayValues, PlainValues
from taciturn.tables.ranges import between
from taciturn.tables.scaling_loops import scale

NUMBERS = st.floats(width=64) | st.sampled_from([0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1e16, 0.1])


@given(arrays(np.float64, st.integers(0, 20), elements=NUMBERS), st.floats(-1e300, 1e300), st.floats(1e-300, 1e300))
def test_numbers_are_scaled_to_the_same_bits(numbers, low, width):
    high = low + width
    if not low < high < np.inf:
        return
    out = np.full((len(numbers), 3), 7.0)
    finite = scale(numbers, low, high, out[:, 1])
    assert finite == bool(np.isfinite(numbers).all())
    assert (out[:, [0, 2]] == 7.0).all()
    known = np.isfinite(numbers)
    assert out[known, 1].tobytes() == between(numbers[known], low, high).tobytes()


@given(arrays(np.float64, st.integers(1, 30), elements=NUMBERS), st.booleans())
def test_a_long_column_is_encoded_as_its_values_one_by_one(numbers, indicator):
    numbers = np.resize(numbers, 1024)
    column = Range("age", -3.0, 5.5, missing=1.0, indicator=indicator)
    out, plain = np.zeros((1024, column.width)), np.zeros((1024, column.width))
    bad = column.encode(ArrayValues(numbers), out)
    assert bad.tolist() == column.encode(PlainValues(numbers.tolist()), plain).tolist()
    assert out.tobytes() == plain.tobytes()
