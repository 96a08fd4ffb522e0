"""Maps of columns: values in units of their spread, numbers of bins, a linear map; extreme values and missing ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import InvalidInput, L2Ball, Logistic, Problem, WholeSpace
from taciturn.kernel.problem.features import Bins
from taciturn.kernel.stream.fingerprint import fingerprint
from taciturn.kernel.stream.loop import fast_clip
from taciturn.tables.column_maps import LinearMap, Standardise

ANY = st.floats(allow_nan=True, allow_infinity=False)
EDGES = np.array([[-1.0, 0.0, 1e300], [0.0, 5e-324, 1.0]])


@given(arrays(np.float64, (4, 2), elements=ANY), st.floats(1e-300, 1e300), st.floats(-1e300, 1e300))
def test_standardised_values_are_finite_and_within_their_limit(X, scale, center):
    """For any finite or missing value, and any scale, denormal quotients and overflows included."""
    before = X.copy()
    found = Standardise(np.array([center, 0.0]), np.array([scale, 5e-324]))
    with np.errstate(over="ignore", invalid="ignore"):
        Z = found(X)
    assert np.isfinite(Z).all()
    assert (np.abs(Z) <= 3.0).all()
    assert (Z[np.isnan(X)] == 0.0).all()
    assert np.array_equal(X, before, equal_nan=True)


def test_each_column_may_have_a_limit():
    found = Standardise(np.zeros(2), np.ones(2), np.array([3.0, 8.0]))
    assert found(np.array([[9.0, -9.0]])).tolist() == [[3.0, -8.0]]
    for limit in (0.0, np.inf, np.ones(3), [1.0, -1.0]):
        with pytest.raises(InvalidInput, match="limit must be positive"):
            Standardise(np.zeros(2), np.ones(2), limit)


@given(arrays(np.float64, (3, 2), elements=ANY))
def test_numbers_of_bins_are_what_comparisons_say(X):
    """From 1, by how many edges a value reaches; 0 if it is missing."""
    expected = np.where(np.isnan(X), 0, 1 + (X[:, :, None] >= EDGES).sum(axis=2))
    assert np.array_equal(Bins(EDGES)(X), expected)
    assert np.array_equal(Bins(EDGES[::-1], columns=(1, 0))(X), expected[:, ::-1])


@pytest.mark.privacy
@given(arrays(np.float64, (5, 2), elements=st.floats()))
def test_numbers_of_bins_pass_clipping_unchanged(X):
    """Compiled or not; a row with an infinity has no influence, and its last entry is 0."""
    problem = Problem(Logistic(), WholeSpace(), 2, 2.0 * 4 * 2**0.5, intercept=1.0, features=Bins(EDGES), on_bad="zero")
    bad = np.isinf(X).any(axis=1)
    expected = np.hstack([np.where(bad[:, None], 0.0, Bins(EDGES)(np.where(bad[:, None], 0.0, X))), 1.0 - bad[:, None]])
    y = np.ones(5)
    assert np.array_equal(problem.clip(X, y)[0], expected)
    assert np.array_equal(fast_clip(problem, True).dense(X, y)[0], expected)


def test_columns_that_are_not_named_stay():
    """And their missing values too, which makes the row bad."""
    found = Standardise(np.array([1.0]), np.array([2.0]), columns=(1,))
    assert found(np.array([[7.0, 5.0]])).tolist() == [[7.0, 2.0]]
    problem = Problem(Logistic(), L2Ball(1.0), 2, feature_bound=9.0, features=found, on_bad="zero", intercept=1.0)
    V, _ = problem.clip(np.array([[np.nan, 5.0], [1.0, np.nan]]), np.ones(2))
    assert V.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]


def test_a_linear_map_mixes_columns():
    """Missing values are for the map before it."""
    found = LinearMap(np.array([[0.0, 2.0], [1.0, 0.0], [1.0, 1.0]]))
    assert found(np.array([[1.0, 3.0]])).tolist() == [[6.0, 1.0, 4.0]]
    assert found.width(2) == 3
    assert not found.takes_missing


@pytest.mark.parametrize(
    "make",
    [
        lambda: Standardise(np.zeros(2), np.array([1.0, 0.0])),
        lambda: Standardise(np.zeros(2), np.array([1.0, -1.0])),
        lambda: Standardise(np.zeros(2), np.array([1.0, np.nan])),
        lambda: Standardise(np.zeros(2), np.array([1.0, np.inf])),
        lambda: Standardise(np.array([0.0, np.inf]), np.ones(2)),
        lambda: Standardise(np.zeros(2), np.ones(3)),
        lambda: Bins(np.array([0.0, 1.0])),
        lambda: Bins(np.array([[0.0, 0.0]])),
        lambda: Bins(np.array([[0.0, np.nan]])),
    ],
)
def test_numbers_that_make_no_map_are_rejected(make):
    """Before any row is read."""
    with pytest.raises(InvalidInput):
        make()


def test_a_map_is_plain_data_that_cannot_change():
    """It is in the hash of settings, and neither the caller's arrays nor its own can be written through."""
    center = np.zeros(2)
    found = Standardise(center, np.ones(2))
    before = fingerprint(found)
    center[0] = 5.0
    assert fingerprint(found) == before
    with pytest.raises(ValueError, match="read-only"):
        found.center[0] = 5.0
    assert fingerprint(replace(found, limit=4.0)) != before
