"""Symmetric matrices as vectors of the same length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.kernel.problem.svec import packed, unpacked

SQUARES = st.integers(1, 6).flatmap(
    lambda d: st.lists(st.floats(-1e3, 1e3), min_size=d * d, max_size=d * d).map(lambda x: np.reshape(x, (d, d)))
)


@settings(max_examples=60)
@given(SQUARES, SQUARES)
def test_lengths_and_products_are_preserved(one, other):
    """`svec(M)·svec(N) = tr(MN)`, and so `‖svec(M)‖ = ‖M‖`."""
    M = one + one.T
    assert np.linalg.norm(packed(M)) == pytest.approx(np.linalg.norm(M), rel=1e-12)
    assert packed(M).shape == (len(M) * (len(M) + 1) // 2,)
    if len(other) == len(one):
        N = other + other.T
        assert packed(M) @ packed(N) == pytest.approx(np.trace(M @ N), rel=1e-9, abs=1e-6)


@settings(max_examples=60)
@given(SQUARES)
def test_there_and_back(square):
    """Within a rounding error, and exactly symmetric."""
    M = square + square.T
    back = unpacked(packed(M), len(M))
    np.testing.assert_allclose(back, M, rtol=1e-15)
    assert np.array_equal(back, back.T)
    np.testing.assert_allclose(packed(back), packed(M), rtol=1e-15)


def test_a_stack_of_matrices():
    """Is packed one by one."""
    M = np.arange(18.0).reshape(2, 3, 3)
    M = M + M.transpose(0, 2, 1)
    assert np.array_equal(packed(M), [packed(M[0]), packed(M[1])])


def test_noise_of_one_standard_deviation_is_symmetric_noise():
    """Unit vectors come back as matrices of unit length: `s` on the diagonal, `s/sqrt(2)` twice beside it."""
    for e in np.eye(6):
        assert np.linalg.norm(unpacked(e, 3)) == pytest.approx(1.0)
    assert sorted(set(np.round([unpacked(e, 3).max() for e in np.eye(6)], 12))) == [round(0.5**0.5, 12), 1.0]
