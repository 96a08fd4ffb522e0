"""Numbers are scaled by one rule, one at a time or many, for every kind of input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.columns.kinds import Range
from taciturn.columns.values import PlainValues
from taciturn.tables.ranges import between, number_between

ENDS = st.tuples(st.floats(-1e50, 1e50), st.floats(-1e50, 1e50)).filter(lambda ends: ends[1] - ends[0] > 1e-50)


@given(st.lists(st.floats(), max_size=5), ENDS)
def test_one_number_is_scaled_as_many_and_never_leaves_the_interval(values, ends):
    many = between(values, *ends)
    np.testing.assert_array_equal(many, [number_between(value, *ends) for value in values])
    assert (np.isnan(many) == np.isnan(values)).all()
    assert (np.abs(many[~np.isnan(many)]) <= 1.0).all()


@given(ENDS)
def test_ends_go_to_ends(ends):
    low, high = ends
    assert between([low, high, -math.inf, math.inf], low, high).tolist() == [-1.0, 1.0, -1.0, 1.0]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5), ENDS)
def test_every_door_scales_to_the_same_bits(values, ends):
    river = pytest.importorskip("taciturn.estimators.river")
    sklearn = pytest.importorskip("taciturn.estimators.scaling")
    due, encoded = between(values, *ends), np.zeros((len(values), 1))
    Range("a", *ends).encode(PlainValues(values), encoded)
    assert encoded.ravel().tolist() == due.tolist()
    scaler = river.PublicScaler(ranges={"a": ends})
    assert [scaler.transform_one({"a": value})["a"] for value in values] == due.tolist()
    rows = np.array(values)[:, None]
    assert sklearn.PublicScaler([ends]).fit_transform(rows).ravel().tolist() == due.tolist()
