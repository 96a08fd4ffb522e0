"""Compiled clipping gives the same examples as the definition, and none that exceeds the bound."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernel.problem.sparse_inputs import noncanonical_csr
from taciturn import InvalidInput, L2Ball, Logistic, OneHot, Problem, Softmax, Squared, WholeSpace
from taciturn.kernel.problem.clipping_pass import clip_for
from taciturn.kernel.problem.inputs import SparseRows, compressed
from taciturn.kernel.problem.losses import Nearness

pytestmark = pytest.mark.privacy

LARGEST, TINY = 1.7e308, 5e-324
SPECIAL = [
    0.0,
    -0.0,
    TINY,
    -TINY,
    2.0**-1022,
    1e-310,
    1e-300,
    1e-160,
    1e-154,
    1e-140,
    1e140,
    1e154,
    1e160,
    -1e300,
    LARGEST,
]
ANY = st.one_of(st.floats(width=64), st.sampled_from([*SPECIAL, 1.0, -1.0, math.nan, math.inf, -math.inf]))
FINITE = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([*SPECIAL, 1.0, -1.0]))
BOUNDS = st.one_of(st.just(1.0), st.floats(-60.0, 60.0).map(lambda e: min(max(10.0**e, 1e-60), 1e60)))
KINDS = {"real": Squared(), "sign": Logistic(), "class": Softmax(3), "none": Nearness()}
LABELLED = {"real": Squared(), "sign": Logistic(), "class": Softmax(3), "one hot": OneHot(3)}


def problem(
    kind: str = "real",
    dimension: int = 4,
    bound: float = 1.0,
    label: float = 1.0,
    intercept: float = 0.0,
    neighbours: str = "replace",
):
    settings = {"label_bound": label, "intercept": intercept, "on_bad": "zero", "neighbours": neighbours}
    return Problem(KINDS[kind], L2Ball(1.0) if kind != "none" else WholeSpace(), dimension, bound, **settings)


def clipper(made: Problem, compiled: bool):
    """Clipping by compiled code, or by the definition."""
    return clip_for(made).dense if compiled else made.clip_block


def at_once(made: Problem, X, y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels, and which were bad, from compiled code."""
    V, labels = clip_for(made).dense(X, y)
    bad = np.zeros(len(y), dtype=np.bool_)
    for i in range(len(y)):
        try:
            clip_for(replace(made, on_bad="raise")).dense(X[i : i + 1], y[i : i + 1])
        except InvalidInput:
            bad[i] = True
    return V, labels, bad


def exact_square(row) -> Fraction:
    """The squared norm of a row of floats, exactly."""
    return sum(Fraction(float(entry)) ** 2 for entry in row)


def assert_same(made: Problem, X, y) -> np.ndarray:
    """Bad rows and labels exactly; rows to the last bits of a norm, which is added up in another order.

    Entries that are less than the smallest normal number, in units of the largest, are cut short before they are scaled
    to the bound.
    """
    V, labels, bad = at_once(made, X, y)
    defined, expected, wrong = made._clip(X, y)
    np.testing.assert_array_equal(bad, wrong)
    np.testing.assert_array_equal(labels, expected)
    assert labels.dtype == V.dtype == np.float64
    assert V.shape == defined.shape
    few = (made.dimension + 8) * 2.0**-52
    np.testing.assert_allclose(V, defined, rtol=few, atol=4 * TINY * max(1.0, made.feature_bound))
    return V


@settings(max_examples=300)
@given(X=arrays(np.float64, (3, 4), elements=ANY), y=arrays(np.float64, 3, elements=ANY), bound=BOUNDS, label=BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_anything_at_all(kind, X, y, bound, label):
    """Features and labels of any kind, NaN and infinity among them, come out as the definition has them."""
    assert_same(problem(kind, bound=bound, label=label, intercept=0.5), X, y)


@settings(max_examples=300)
@given(X=arrays(np.float64, (3, 4), elements=FINITE), bound=BOUNDS)
def test_norms_never_exceed_the_bound(X, bound):
    """In exact arithmetic: rounding, overflow and denormals included."""
    V = assert_same(problem(bound=bound), X, np.zeros(3))
    assert all(exact_square(row) <= Fraction(bound) ** 2 for row in V)


@settings(max_examples=200)
@given(X=arrays(np.float32, (3, 5), elements=st.floats(width=32, allow_nan=False)), bound=BOUNDS)
def test_single_precision_is_measured_in_double(X, bound):
    """What float32 would round is not rounded: the bits are those of the same numbers as float64."""
    made, y = problem(dimension=5, bound=bound), np.zeros(3)
    V = assert_same(made, X, y)
    np.testing.assert_array_equal(V, clip_for(made).dense(X.astype(np.float64), y)[0])
    np.testing.assert_array_equal(made._clip(X, y)[0], made._clip(X.astype(np.float64), y)[0])
    assert all(exact_square(row) <= Fraction(bound) ** 2 for row in V)


@pytest.mark.parametrize("label", [0.1, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("compiled", [True, False])
def test_labels_in_single_precision_keep_their_bound(label, compiled):
    """The bound is not rounded to single precision: 0.1 as float32 is more than 0.1."""
    made = problem(label=label)
    y = np.array([label, -label, 2.0 * label, math.inf], dtype=np.float32)
    _, labels = clipper(made, compiled)(np.zeros((4, 4)), y)
    assert labels.dtype == np.float64
    assert np.max(np.abs(labels)) <= label


LAYOUTS = {
    "columns": np.asfortranarray,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "part": lambda X: np.column_stack([X, X])[:, : X.shape[1]],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 8, 54, 100])
def test_bits_do_not_depend_on_where_numbers_lie(layout, dimension):
    """Nor on how many rows come at once."""
    rng, made = np.random.default_rng(dimension), problem(dimension=dimension, intercept=0.5)
    X, y = rng.normal(size=(300, dimension)), rng.normal(size=300)
    V, labels = clip_for(made).dense(X, y)
    other, same_labels = clip_for(made).dense(LAYOUTS[layout](X), np.repeat(y, 2)[::2])
    np.testing.assert_array_equal(V, other)
    np.testing.assert_array_equal(labels, same_labels)
    rows = [clip_for(made).dense(LAYOUTS[layout](X[i : i + 1]), y[i : i + 1])[0] for i in range(0, 300, 37)]
    np.testing.assert_array_equal(V[::37], np.concatenate(rows))


@pytest.mark.parametrize("entry", [LARGEST, 1e300, 1e160, 1.0, 1e-160, 1e-300, 2.0**-1022, TINY])
@pytest.mark.parametrize("dimension", [1, 3, 1000, 60_000])
@pytest.mark.parametrize("bound", [1e-60, 1.0, 1e60])
def test_many_features_of_one_size(entry, dimension, bound):
    """Rows whose square, or sum of squares, over- or underflows: within the bound and in the same direction."""
    X = np.full((2, dimension), entry)
    X[1, ::2] *= -1.0
    V = assert_same(problem(dimension=dimension, bound=bound), X, np.zeros(2))
    assert exact_square(V[0][:1]) * dimension <= Fraction(bound) ** 2
    assert (np.sign(V) == np.sign(X)).all() or entry < 1e-300


def test_one_large_and_many_small_features():
    """60,000 tiny entries count, though each alone is lost beside the large one."""
    X = np.full((1, 60_000), 1e-8)
    X[0, 0] = 1.0 - 1.5e-12
    V = assert_same(problem(dimension=60_000), X, np.zeros(1))
    assert exact_square(V[0]) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_label(kind):
    """Legal and illegal ones, in one call."""
    y = np.array(
        [-1.0, 1.0, 0.0, -0.0, 2.0, 3.0, 0.5, -0.5, 1.0 + 2.0**-52, 1e300, -1e300, math.nan, math.inf, -math.inf]
    )
    made = problem(kind, dimension=2, label=0.75)
    V = assert_same(made, np.tile([0.3, 0.4], (len(y), 1)), y)
    _, labels, bad = at_once(made, np.tile([0.3, 0.4], (len(y), 1)), y)
    legal = {"real": [*range(11)], "sign": [0, 1], "class": [1, 2, 3, 4], "none": [*range(11)]}[kind]
    assert np.flatnonzero(~bad).tolist() == legal
    assert not V[bad].any()
    assert (labels[bad] == (1.0 if kind == "sign" else 0.0)).all()


@settings(max_examples=200)
@given(X=arrays(np.float64, (3, 4), elements=ANY), y=arrays(np.float64, 3, elements=ANY), bound=BOUNDS)
@pytest.mark.parametrize("kind", LABELLED)
def test_where_only_labels_are_protected(kind, X, y, bound):
    """Bad labels are replaced, or take their row along, as the definition has it; sparse rows too."""
    made = replace(problem(bound=bound, intercept=0.5), loss=LABELLED[kind], neighbours="label")
    V = assert_same(made, X, y)
    _, labels = clip_for(made).dense(X, y)
    with np.errstate(all="ignore"):
        rows, sparse_labels = clip_for(made).sparse(compressed(SparseRows(sp.csr_matrix(X))), y)
    np.testing.assert_array_equal(sparse_labels, labels)
    np.testing.assert_allclose(rows.dense(), V, rtol=1e-14, atol=4 * TINY * max(1.0, bound))
    if kind in ("real", "one hot"):  # features alone decide about the row
        np.testing.assert_array_equal(V, clip_for(made).dense(X, np.ones(3))[0])


@pytest.mark.parametrize("compiled", [True, False])
def test_the_first_bad_row_is_named(compiled):
    """By its place in the whole call, and nothing is returned."""
    made = Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0)
    X, y = np.zeros((5, 2)), np.zeros(5)
    X[3, 1], y[4] = math.inf, math.nan
    with pytest.raises(InvalidInput, match="row 103 cannot be used: feature 1 is inf"):
        clipper(made, compiled)(X, y, 100)
    with pytest.raises(InvalidInput, match="row 101 cannot be used: its label is not a number"):
        clipper(made, compiled)(X[:3], np.array([0.0, math.nan, 0.0]), 100)


def test_no_rows():
    """An empty block passes."""
    V = assert_same(problem(intercept=0.5), np.empty((0, 4)), np.empty(0))
    assert V.shape == (0, 5)


def test_what_goes_in_is_not_written_to():
    """Features and labels stay as they were, though what comes out is shortened in place."""
    X, y = np.full((2, 4), 9.0), np.full(2, 9.0)
    clip_for(problem()).dense(X, y)
    assert (X == 9.0).all()
    assert (y == 9.0).all()


# Compressed rows.


def assert_same_compressed(made: Problem, X, y) -> np.ndarray:
    """Compressed rows come out as the same numbers, dense, do from the definition."""
    rows = compressed(SparseRows(noncanonical_csr(X)))
    V, labels = clip_for(made).sparse(rows, y)
    with np.errstate(invalid="ignore"):
        defined, expected, wrong = made._clip(X, y)
    np.testing.assert_array_equal(labels, expected)
    assert not np.diff(V.starts)[wrong].any()
    for i in range(len(y)):
        here = V.columns[V.starts[i] : V.starts[i + 1]]
        assert len(set(here.tolist())) == len(here)
        assert wrong[i] or made.intercept == 0.0 or here[-1] == made.dimension
    few = (made.dimension + 8) * 2.0**-52
    np.testing.assert_allclose(V.dense(), defined, rtol=few, atol=4 * TINY * max(1.0, made.feature_bound))
    return V.dense()


@settings(max_examples=200)
@given(X=arrays(np.float64, (3, 4), elements=ANY), y=arrays(np.float64, 3, elements=ANY), bound=BOUNDS, label=BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_anything_at_all_compressed(kind, X, y, bound, label):
    """NaN and infinity among it, in any order, in halves, beside stored zeros."""
    assert_same_compressed(problem(kind, bound=bound, label=label, intercept=0.5), X, y)


@settings(max_examples=200)
@given(X=arrays(np.float64, (3, 4), elements=FINITE), bound=BOUNDS)
def test_compressed_norms_never_exceed_the_bound(X, bound):
    """In exact arithmetic, of entries that were stored in halves."""
    V = assert_same_compressed(problem(bound=bound), X, np.zeros(3))
    assert all(exact_square(row) <= Fraction(bound) ** 2 for row in V)


@pytest.mark.parametrize("halves", [(LARGEST, LARGEST), (math.inf, -math.inf), (math.nan, 1.0)])
def test_halves_that_add_up_to_no_number(halves):
    """The row is bad, though each entry alone may be a number; and the next one is not."""
    made = problem(dimension=2)
    rows = sp.csr_matrix((np.array([*halves, 0.5]), np.array([1, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    V, _ = clip_for(made).sparse(compressed(SparseRows(rows)), np.zeros(2))
    assert V.dense().tolist() == [[0.0, 0.0], [0.0, 0.5]]
    with pytest.raises(InvalidInput, match="row 10 cannot be used: feature 1 is"):
        clip_for(replace(made, on_bad="raise")).sparse(compressed(SparseRows(rows)), np.zeros(2), 10)


def test_a_row_after_a_bad_one_is_its_own():
    """Its places were another's, who left none of them."""
    X = np.array([[1.0, math.nan, 0.5, 0.25], [0.25, 0.5, 0.0, 0.0], [0.0, 0.125, 0.25, 0.5]])
    for seed in range(20):
        V, _ = clip_for(problem()).sparse(compressed(SparseRows(noncanonical_csr(X, seed))), np.zeros(3))
        np.testing.assert_array_equal(V.dense(), np.where(np.isnan(X).any(axis=1)[:, None], 0.0, X))


def test_another_number_of_compressed_rows_is_rejected():
    """Rows that were never sent would be learnt."""
    with pytest.raises(InvalidInput, match=r"expected \d+ rows"):
        clip_for(problem()).sparse(compressed(SparseRows(sp.csr_matrix((3, 4)))), np.zeros(2))
