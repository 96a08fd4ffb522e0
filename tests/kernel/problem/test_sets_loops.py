"""Projections by number are those of the classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from instances import Diagonal
from taciturn import Box, HalfSpace, L1Ball, L2Ball, Simplex, WholeSpace
from taciturn.kernel.problem import sets_loops as sets
from taciturn.kernel.problem.codes import set_code
from taciturn.kernel.problem.sets_pass import project_batch

SETS = [
    WholeSpace(),
    L2Ball(1.0),
    L2Ball(0.3),
    L2Ball(1e-60),
    L2Ball(1e60),
    Box(-0.5, 2.0),
    Box(3.0, 4.0),
    Box(-1e-9, 0.0),
]
ENTRIES = st.one_of(st.floats(-3.0, 3.0), st.floats(-1e300, 1e300), st.sampled_from([0.0, 1e-200, 1e-310, 1.7e308]))
UNIT = 2.0**-53


@pytest.mark.parametrize("domain", SETS, ids=repr)
@settings(max_examples=150)
@given(x=arrays(np.float64, 5, elements=ENTRIES))
def test_projections(domain, x):
    """To the last bits of a norm of five entries, however large or small they are.

    An entry that is 1e-300 of the largest, or less, may underflow on one of the two ways.
    """
    result, expected = x.copy(), domain.project(x)
    sets.project(*set_code(domain), result)
    np.testing.assert_allclose(result, expected, rtol=16 * UNIT, atol=max(1e-320, 1e-300 * np.max(np.abs(expected))))
    assert domain.contains(result)


@settings(max_examples=100)
@given(x=arrays(np.float64, 4, elements=st.floats(-3.0, 3.0)), radius=st.floats(0.1, 5.0))
def test_a_ball_holds_what_was_projected_on_it(x, radius):
    """A projected point is no longer than the radius by more than its roundings, and projected again hardly moves."""
    once = x.copy()
    sets.project(*set_code(L2Ball(radius)), once)
    assert np.linalg.norm(once) <= radius * (1.0 + 8 * UNIT)
    again = once.copy()
    sets.project(*set_code(L2Ball(radius)), again)
    np.testing.assert_allclose(again, once, rtol=8 * UNIT, atol=0.0)
    inside = x / max(1.0, np.linalg.norm(x) / radius) * 0.999
    same = inside.copy()
    sets.project(*set_code(L2Ball(radius)), same)
    np.testing.assert_array_equal(same, inside)


@pytest.mark.parametrize(
    "domain", [*SETS, Simplex(0.7), L1Ball(0.5), HalfSpace((1.0, 2.0, 0.0), 0.1), Diagonal(0.3)], ids=repr
)
def test_many_rows(domain):
    """Row by row, by number or by the set's own verb; what goes in stays as it is."""
    rows = np.random.default_rng(4).normal(size=(20, 3))
    before = rows.copy()
    result = project_batch(domain, rows)
    np.testing.assert_allclose(result, [domain.project(row) for row in rows], rtol=16 * UNIT, atol=1e-320)
    np.testing.assert_array_equal(rows, before)
    assert project_batch(domain, rows[:0]).shape == (0, 3)


def test_sets_of_ones_own_have_no_number():
    """Nor have those that inherit from ours."""

    class Mine(L2Ball):
        pass

    assert set_code(Mine(1.0)) is set_code(Simplex()) is set_code(Diagonal(1.0)) is None
