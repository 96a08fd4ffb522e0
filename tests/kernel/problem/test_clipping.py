"""Inputs become arrays, and rows are clipped to their bound; `test_problem` tests what a problem adds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn import Hinge, InvalidInput, L2Ball, Linear, Problem, Simplex, Squared, WholeSpace, private_sum
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.problem.clipping import as_rows, clip_rows
from taciturn.kernel.problem.losses import Advice, Nearness


@pytest.mark.parametrize(
    "X", [[[1, 2], [3, 4]], ((1, 2), (3, 4)), np.array([[1, 2], [3, 4]], dtype=np.int8), [["1", 2.0], [3, True + 3]]]
)
def test_rows_of_any_kind(X):
    """Lists, tuples, integers, strings of digits: an array of floats, labels of zeros where there are none."""
    V, y = as_rows(X, None, 2)
    assert V.dtype == y.dtype == np.float64
    assert np.array_equal(V, [[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(y, [0.0, 0.0])


@pytest.mark.parametrize("bad", [None, "many", 1j, object(), [1.0]])
def test_what_is_no_number_is_not_one(bad):
    """It becomes NaN, a bad value like any other, or the call is rejected."""
    try:
        V, _ = as_rows([[1.0, bad], [2.0, 3.0]], [0.0, 0.0], 2)
    except InvalidInput:
        return
    assert math.isnan(V[0, 1])
    assert np.array_equal(V[1], [2.0, 3.0])


WRONG = [
    ([1.0, 2.0], [1.0]),
    ([[1.0, 2.0]], 1.0),
    ([[1.0, 2.0]], [1.0, 1.0]),
    ([[1.0]], [1.0]),
    ([[[1.0, 2.0]]], [1.0]),
    (3.0, [1.0]),
    ([[1.0, 2.0], [3.0]], [1.0, 1.0]),
    ([1.0, 2.0], None),
]


@pytest.mark.parametrize(("X", "y"), WRONG)
def test_other_shapes_are_rejected(X, y):
    """With the shapes that are expected, or that rows must be equal."""
    with pytest.raises(InvalidInput, match=r"For one example pass \[x\] and \[y\]|rows of equal length"):
        as_rows(X, y, 2)


def test_a_number_without_labels_is_rejected():
    """Like any other shape."""
    with pytest.raises(InvalidInput, match="expected features of shape"):
        as_rows(3.0, None, 2)


@settings(max_examples=60)
@given(arrays(np.float64, (3, 4), elements=st.floats(-1e9, 1e9)), st.floats(1e-6, 1e6))
def test_clipping_is_a_projection(X, bound):
    """No row is longer than the bound, short ones pass as they are, and a second time nothing changes."""
    V = clip_rows(X, bound)
    assert np.max(np.linalg.norm(V, axis=1)) <= bound
    short = np.linalg.norm(X, axis=1) <= bound * (1.0 - 1e-11)
    assert np.array_equal(V[short], X[short])
    np.testing.assert_allclose(clip_rows(V, bound), V, rtol=1e-11)
    apart = np.linalg.norm(V[0] - V[1])
    assert apart <= np.linalg.norm(X[0] - X[1]) * (1.0 + 1e-9) + 1e-9 * bound


# Examples with and without labels.


@pytest.mark.parametrize("loss", [Nearness(), Advice()])
def test_losses_without_labels_take_none(loss):
    """`bound(X)` is enough, and whatever is given for labels, of any length, is ignored."""
    problem = Problem(loss, Simplex(), 2, 3.0)
    V, y = problem.clip([[0.1, 0.2], [0.3, 0.4]])
    assert np.array_equal(V, [[0.1, 0.2], [0.3, 0.4]])
    assert np.array_equal(y, [0.0, 0.0])
    for given_labels in ([7.0, math.nan], [1.0], None):
        assert np.array_equal(problem.clip([[0.1, 0.2], [0.3, 0.4]], given_labels)[1], [0.0, 0.0])
    assert problem.label_bound == 1.0


@pytest.mark.parametrize("loss", [Hinge(), Squared(), Linear()])
def test_losses_with_labels_want_them(loss):
    """A remedy is named."""
    with pytest.raises(InvalidInput, match=f"{type(loss).__name__} learns from labels. Give y, one label a row"):
        Problem(loss, L2Ball(1.0), 2, label_bound=1.0).clip([[0.1, 0.2]])


def test_bad_rows_without_labels():
    """Are named, or count as zeros."""
    with pytest.raises(InvalidInput, match="row 1 cannot be used: feature 0 is not a number"):
        Problem(Nearness(), WholeSpace(), 2).clip([[0.1, 0.2], [math.nan, 0.0]])
    V, y = Problem(Nearness(), WholeSpace(), 2, on_bad="zero").clip([[0.1, 0.2], [math.nan, 0.5]])
    assert np.array_equal(V, [[0.1, 0.2], [0.0, 0.0]])
    assert not y.any()


def test_a_stream_without_labels():
    """`run`, `step` and `fit` take rows alone, iterators among them."""
    private = private_sum(2, 1.0, Privacy(1.0, 1e-6), 3, seed=1)
    rows = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    state, release = private.step(private.start(), rows[:1])
    _, more = private.run(state, rows[1:])
    assert [release.t, *(r.t for r in more)] == [1, 2, 3]
    assert np.array_equal(private.fit(iter(rows)).noisy, more[-1].noisy)


JUNK = ["n/a", None, 1j, np.timedelta64(3, "s"), np.datetime64("2020-01-01"), [1], 10**400, object(), "nan", b"1"]
ROWS = [
    [0.25, 2],
    [True, np.float32(0.1)],
    ["1.5", Fraction(1, 3)],
    [np.timedelta64(3, "s"), np.datetime64("2020-01-01")],
    [10**30, np.int8(3)],
]


@pytest.mark.privacy
@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
@pytest.mark.parametrize("other", ROWS, ids=range(len(ROWS)))
def test_one_entry_never_changes_how_another_is_read(junk, other):
    """Whatever one row holds, the other rows become the same numbers, bit for bit."""
    plain, _ = as_rows([other, [1.0, 1.0]], None, 2)
    beside, _ = as_rows([other, *([[junk, 1.0]] if not isinstance(junk, list) else [["x", 1.0]])], None, 2)
    np.testing.assert_array_equal(plain[0], beside[0])


@pytest.mark.privacy
def test_a_row_is_clipped_alike_alone_and_however_rows_lie():
    """In columns the squares of a row are added up in another order, unless there is one row."""
    X = np.random.default_rng(0).normal(size=(50, 23))
    expected = clip_rows(X, 1.0)
    assert np.array_equal(clip_rows(np.asfortranarray(X), 1.0), expected)
    assert np.array_equal(np.vstack([clip_rows(row[None], 1.0) for row in X]), expected)


@pytest.mark.privacy
def test_a_list_is_a_bad_entry_also_where_it_is_the_only_one():
    """And no error, if bad rows are none: another row would make the same list a bad entry."""
    problem = Problem(Squared(), L2Ball(1.0), 1, label_bound=1.0, on_bad="zero")
    for X, y in (([[[1.0]]], [1.0]), ([[1.0]], [[1.0]]), ([[[1.0]]], [[1.0]])):
        assert np.array_equal(problem.clip(X, y)[0], problem.clip([[0.5], *X], [0.5, *y])[0][1:])
    with pytest.raises(InvalidInput, match="expected features of shape"):
        problem.clip(np.ones((1, 1)), np.ones((1, 1)))


def test_dates_and_durations_are_no_numbers():
    """Neither alone nor beside others."""
    for entry in (np.timedelta64(3, "s"), np.datetime64("2020-01-01")):
        assert np.isnan(as_rows([[entry, entry]], None, 2)[0]).all()
        assert np.isnan(as_rows(np.array([[entry, entry]]), None, 2)[0]).all()


def test_text_is_called_text():
    """For features with the remedy of rare rows; for labels, which are all alike, without it."""
    with pytest.raises(InvalidInput, match=r"feature 1 is not a number \(text, or missing\).*encode text.*on_bad"):
        Problem(Hinge(), L2Ball(1.0), 2).clip([[0.5, "blue"]], [1.0])
    for loss, remedy in ((Hinge(), "Map your classes by a public rule"), (Squared(), "Give a number for every label")):
        with pytest.raises(InvalidInput, match=rf"its label is not a number \(text, or missing\).*{remedy}\.$") as e:
            Problem(loss, L2Ball(1.0), 1, label_bound=1.0).clip([[0.5]], ["spam"])
        assert "on_bad" not in str(e.value)


def test_rows_of_other_shapes_come_with_the_remedy_for_their_kind():
    """One sparse row, dicts, one dense row."""
    sparse = sp.csr_array(np.eye(2))
    assert as_rows(sparse[0:1], [1.0], 2)[0].shape == (1, 2)
    with pytest.raises(InvalidInput, match=r"For one sparse row pass X\[i:i\+1\]"):
        as_rows(sparse[0:1], 1.0, 2)
    with pytest.raises(InvalidInput, match=r"For one sparse row pass X\[i:i\+1\]"):
        as_rows(sparse[0], [1.0], 2)
    for dicts in ([{"a": 1.0}], {"a": [1.0], "b": [2.0]}):
        with pytest.raises(InvalidInput, match="hash or vectorise them first"):
            as_rows(dicts, [1.0], 2)
    with pytest.raises(InvalidInput, match=r"For one example pass \[x\] and \[y\]"):
        as_rows([1.0, 2.0], 1.0, 2)
