"""Scaling by public ranges and clipping by norm: functions of a row alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from taciturn.errors import InvalidInput
from taciturn.estimators.scaling import NormClip, PublicScaler

ROWS = arrays(np.float64, (5, 3), elements=st.floats(-1e6, 1e6))


@given(ROWS, ROWS)
def test_a_row_is_scaled_by_itself_alone(A, B):
    """Whatever it was fitted on, and whatever the other rows are."""
    for scaler in (PublicScaler([(0, 1), (-10, 10), (5, 6)]), NormClip(2.0)):
        fitted = scaler.fit(A).transform(B)
        assert (scaler.fit(B).transform(B) == fitted).all()
        assert (scaler.transform(B[3:4]) == fitted[3:4]).all()


def test_the_largest_of_numbers_is_scaled_without_a_warning():
    """Which would speak of someone's row; warnings are errors here."""
    assert (PublicScaler((-1e308, 0.0)).fit_transform([[1.7e308], [-1.7e308]]) == [[1.0], [-1.0]]).all()


@given(ROWS)
def test_bounds_hold(A):
    assert (np.abs(PublicScaler((-3.0, 7.0)).fit_transform(A)) <= 1.0).all()
    assert (np.linalg.norm(NormClip(2.0).fit_transform(A), axis=1) <= 2.0).all()


def test_ranges_by_name_leave_other_columns_alone():
    frame = pd.DataFrame({"age": [0.0, 60.0, 150.0], "rest": [5.0, 6.0, 7.0]})
    scaled = PublicScaler({"age": (0, 120)}).fit_transform(frame)
    assert scaled.tolist() == [[-1.0, 5.0], [0.0, 6.0], [1.0, 7.0]]


@pytest.mark.parametrize(
    ("ranges", "why"),
    [
        (None, "state the ranges"),
        ([(0, 1)], "a pair .* for each of 3 columns"),
        ((1, 0), "low < high"),
        ((0, float("inf")), "both finite"),
        ({"age": (0, 1)}, "no column 'age'"),
    ],
)
def test_ranges_that_cannot_be(ranges, why):
    with pytest.raises(InvalidInput, match=why):
        PublicScaler(ranges).fit(np.zeros((2, 3)))


def test_sparse_rows_stay_sparse():
    A = np.array([[3.0, 0.0, 4.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.0]])
    clipped = NormClip(1.0).fit_transform(csr_matrix(A))
    assert clipped.format == "csr"
    assert clipped.toarray() == pytest.approx(NormClip(1.0).fit_transform(A))
    with pytest.raises(InvalidInput, match="bound must be positive"):
        NormClip(0.0).fit(A)
