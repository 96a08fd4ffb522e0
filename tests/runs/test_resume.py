"""Digests of the rows that a run has learnt from."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from taciturn.runs.resume import RowDigest

X, Y = np.random.default_rng(1).normal(size=(30, 3)), np.resize([1.0, -1.0], 30)


def digest(X, y, cuts=(), key="key"):
    made, edges = RowDigest(key), [0, *sorted(cuts), len(y)]
    for a, b in itertools.pairwise(edges):
        made.add(X[a:b], y[a:b])
    return made.value


@given(st.sets(st.integers(0, 30)))
def test_a_digest_does_not_depend_on_cuts(cuts):
    assert digest(X, Y, cuts) == digest(X, Y)


@given(st.integers(0, 29), st.integers(0, 3), st.sampled_from([0.0, -1.0, 1e300, np.nan, np.inf]))
def test_a_digest_changes_with_any_entry(row, column, value):
    """And with the key, but not with the order of entries in memory."""
    changed = np.column_stack([X, Y])
    changed[row, column] = value
    same = np.array_equal(changed, np.column_stack([X, Y]))
    assert (digest(changed[:, :3], changed[:, 3]) == digest(X, Y)) == same
    assert digest(X, Y, key="other") != digest(X, Y)
    assert digest(np.asfortranarray(X), Y) == digest(X, Y)


def test_sums_that_overflow_do_no_harm():
    """Numbers as large as they can be are good rows."""
    large = np.full((30, 3), 1.7e308)
    assert digest(large, Y, [7]) == digest(large, Y)
    assert digest(large, Y) != digest(-large, Y)


def test_bad_rows_are_alike_whatever_is_in_them():
    """Readers may leave different things in a row without influence."""
    one, two = X.copy(), X.copy()
    one[4], two[4, 1], two[4, 2] = np.nan, -np.nan, np.inf
    assert digest(one, Y, [3]) == digest(two, np.where(np.arange(30) == 4, np.nan, Y), [4, 9])
    assert digest(one, Y) != digest(X, Y)
