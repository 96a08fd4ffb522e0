"""Sparse matrices and Arrow tables are read a block at a time, and as the same numbers in an array would be."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn import (
    BLT,
    FTRL,
    QFTL,
    InvalidInput,
    L2Ball,
    Logistic,
    Privacy,
    Private,
    Problem,
    Softmax,
    Squared,
    every,
    pftrl,
    pigd,
    pqftl,
)
from taciturn.kernel.problem.clipping_pass import clip_for
from taciturn.kernel.problem.inputs import ColumnRows, SparseRows, as_numbers, compressed, real_numbers, source_of
from taciturn.kernel.stream import loop

pa = pytest.importorskip("pyarrow")

ROWS, BUDGET = 23, Privacy(2.0, 1e-6)
PROBLEM = Problem(Logistic(), L2Ball(1.0), 3, intercept=0.5, ridge=0.1, on_bad="zero")
RNG = np.random.default_rng(11)
X = np.where(RNG.random((ROWS, 3)) < 0.4, 0.0, RNG.normal(size=(ROWS, 3)))
X[5], X[9, 1] = 0.0, 1e300
Y = RNG.choice([-1.0, 1.0], ROWS)
SPARSE = {
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "dok": sp.dok_array,
    "bsr": sp.bsr_matrix,
    "dia": sp.dia_matrix,
}


def table(rows=X, chunks=1):
    """An Arrow table of these columns, in as many chunks."""
    parts = [pa.table({f"x{j}": part[:, j] for j in range(rows.shape[1])}) for part in np.array_split(rows, chunks)]
    return pa.concat_tables(parts)


def batch(rows=X):
    """The same as one batch."""
    return pa.RecordBatch.from_arrays([pa.array(column) for column in rows.T], names=[*"abc"[: rows.shape[1]]])


FORMS = {**SPARSE, "table": table, "chunked table": lambda rows: table(rows, 4), "batch": batch}


def same(one, other):
    for name in ("rounds", "noisy", "points", "noise_sd"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_examples(form):
    """Bounded as the dense rows are, bit for bit, all at once or part of them."""
    source = source_of(FORMS[form](X))
    assert source.shape == (ROWS, 3)
    for block in (slice(None), slice(0, 0), slice(3, 7), slice(20, 99), slice(ROWS, ROWS)):
        np.testing.assert_array_equal(source[block], X[block])
    for one, other in zip(PROBLEM.clip(FORMS[form](X), Y), PROBLEM.clip(X, Y), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("values", [1, 30, 2**17])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_releases(form, values, compiled, monkeypatch):
    """However many rows go through at a time; compressed ones are added up in another order, on the same lattice."""
    monkeypatch.setattr(loop, "_VALUES", values)
    private = replace(pftrl(PROBLEM, BUDGET, ROWS, schedule=every(5), seed=1), compiled=compiled)
    same(private.run(private.start(), FORMS[form](X), Y)[1], private.run(private.start(), X, Y)[1])


@pytest.mark.parametrize("form", FORMS)
def test_every_verb_takes_them(form):
    """`step`, `fit` and predictions as well as `run`."""
    private = pftrl(PROBLEM, BUDGET, ROWS, seed=1)
    rows = FORMS[form](X)
    _, release = private.step(private.start(), FORMS[form](X[:1]), Y[:1])
    _, expected = private.step(private.start(), X[:1], Y[:1])
    np.testing.assert_array_equal(release.noisy, expected.noisy)
    np.testing.assert_array_equal(private.fit(rows, Y).point, private.fit(X, Y).point)
    predicted = PROBLEM.predict(release.point, rows)
    np.testing.assert_allclose(predicted, PROBLEM.predict(release.point, X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_iterates_take_dense_rows_alone(compiled):
    """Their steps go through all columns of a row."""
    private = replace(pigd(PROBLEM, BUDGET, ROWS, seed=1), compiled=compiled)
    with pytest.raises(InvalidInput, match=r"pass X\.toarray\(\)"):
        private.run(private.start(), FORMS["csr"](X), Y)


@pytest.mark.parametrize("form", ["csr", "table", "batch"])
def test_only_a_block_is_made_dense(form, monkeypatch):
    """No more rows at once than go through a pass; of sparse ones for learners without a loop over them."""
    kind, asked = SparseRows if form == "csr" else ColumnRows, []
    honest = kind.__getitem__
    monkeypatch.setattr(kind, "__getitem__", lambda self, block: asked.append(block) or honest(self, block))
    monkeypatch.setattr(loop, "_VALUES", 20)
    private = replace(pftrl(PROBLEM, BUDGET, ROWS, seed=1), compiled=False)
    private.run(private.start(), FORMS[form](X), Y)
    assert [block.start for block in asked] == list(range(0, ROWS, 2))
    assert all(block.stop - block.start <= 2 for block in asked)


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.int64, np.uint8, bool])
@pytest.mark.parametrize("form", ["csr", "table", "batch"])
def test_numbers_of_any_kind(form, kind):
    """Integers, booleans and single precision are converted, never wrapped."""
    rows = (X > 0.5).astype(kind) if kind is bool else np.rint(2.0 * np.clip(X, 0.0, 3.0)).astype(kind)
    for one, other in zip(PROBLEM.clip(FORMS[form](rows), Y), PROBLEM.clip(rows, Y), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == np.float64


@pytest.mark.parametrize("where", range(3))
@pytest.mark.parametrize("chunks", [1, 3])
def test_a_missing_value_is_not_a_number(where, chunks):
    """Its row is bad, as with NaN, and no other row is read differently for it."""
    holes = X.copy()
    holes[[2, 9, 20], where] = np.nan
    columns = {f"x{j}": [None if np.isnan(x) else float(x) for x in holes[:, j]] for j in range(3)}
    full = pa.table(columns)
    parts = pa.concat_tables([full.slice(start, -(-ROWS // chunks)) for start in range(0, ROWS, -(-ROWS // chunks))])
    for rows in (full, parts, full.to_batches()[0]):
        for one, other in zip(PROBLEM.clip(rows, Y), PROBLEM.clip(holes, Y), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pa.array([1, None, 3]), [1.0, np.nan, 3.0]),
        (pa.array([True, None, False]), [1.0, np.nan, 0.0]),
        (pa.array([True, True, False]), [1.0, 1.0, 0.0]),
        (pa.array([2**60 + 1, None, -1]), [float(2**60), np.nan, -1.0]),
        (pa.array(["1.5", "many", None]), [1.5, np.nan, np.nan]),
        (pa.array([1.5, 2.5, None], pa.float32()), [1.5, 2.5, np.nan]),
        (pa.array([1, 2, 1]).dictionary_encode(), [1.0, 2.0, 1.0]),
        (pa.array([None, None, None]), [np.nan] * 3),
        (pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-2")]), [1.25, np.nan, -2.0]),
        (pa.array([datetime.date(2020, 1, 1), None, datetime.date(1970, 1, 1)]), [np.nan] * 3),
        (pa.array([0, 1, None], pa.timestamp("ns")), [np.nan] * 3),
        (pa.array([0, 1, None], pa.duration("s")), [np.nan] * 3),
        (pa.array([[1.0], [2.0], None]), [np.nan] * 3),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_columns_of_any_kind(column, numbers):
    """What is no number in an array is none in a table; a value's number depends on that value alone."""
    result = ColumnRows(pa.table({"x": column}))
    np.testing.assert_array_equal(result[:][:, 0], numbers)
    for i in range(3):
        np.testing.assert_array_equal(result[i : i + 1][:, 0], numbers[i : i + 1])


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_and_durations_of_any_precision_are_no_numbers(unit):
    """An array of them becomes NaN whatever they are counted in."""
    assert np.isnan(as_numbers(np.array([0, 1], dtype=f"datetime64[{unit}]"))).all()
    assert np.isnan(as_numbers(np.array([[0, 1]], dtype="timedelta64[ns]"))).all()


def test_complex_entries_are_no_numbers():
    """In a sparse matrix as in an array."""
    assert np.isnan(SparseRows(sp.csr_matrix(X * 1j))[:2]).all()


def test_labels_may_be_arrow_s():
    """An array or a chunked one; a missing label makes its row bad."""
    problem = Problem(Squared(), L2Ball(1.0), 3, label_bound=1.0, on_bad="zero")
    for labels in (pa.array([0.5, None, -2.0]), pa.chunked_array([[0.5], [None, -2.0]])):
        V, y = problem.clip(X[:3], labels)
        assert y.tolist() == [0.5, 0.0, -1.0]
        assert not V[1].any()


@pytest.mark.parametrize("form", ["csr", "table", "batch"])
def test_a_bad_row_is_named_by_its_number_in_the_call(form, monkeypatch):
    """Though only a block of them was read."""
    monkeypatch.setattr(loop, "_VALUES", 12)
    bad = X.copy()
    bad[17, 2] = np.inf
    private = pqftl(Problem(Squared(), L2Ball(1.0), 3, label_bound=1.0), BUDGET, ROWS, seed=1)
    with pytest.raises(InvalidInput, match="row 17 cannot be used: feature 2 is inf"):
        private.run(private.start(), FORMS[form](bad), Y)


@pytest.mark.parametrize("rows", [sp.csr_matrix(X[:, :2]), table(X[:, :2]), batch(X[:, :2]), sp.coo_array(X[0])])
def test_other_shapes_are_rejected(rows):
    """As for arrays, with both shapes."""
    with pytest.raises(InvalidInput, match=r"expected features of shape \(n, 3\)"):
        PROBLEM.clip(rows, Y)
    with pytest.raises(InvalidInput, match=r"expected features of shape \(n, 3\)"):
        PROBLEM.clip(FORMS["csr"](X), Y[:-1])


@pytest.mark.parametrize("rows", [X, X.tolist(), np.asfortranarray(X), object()])
def test_what_is_no_source(rows):
    """Arrays, lists and anything else are read as a whole."""
    assert source_of(rows) is None


def test_a_source_is_its_own_source():
    """What was read may be read again, as `step` does."""
    for source in (SparseRows(sp.csr_matrix(X)), ColumnRows(table())):
        assert source_of(source) is source


def test_nothing_is_imported_to_find_out():
    """Neither Arrow nor pandas, by rows that are neither."""
    code = "import sys; from taciturn.kernel.problem.inputs import source_of; source_of([[1.0]]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "pandas"} & set(done.stdout.split())


def test_one_duration_in_a_list_does_not_change_the_others():
    """NumPy would make durations of all of them."""
    assert as_numbers([[1], [2], [np.timedelta64(5, "s")]])[:2].tolist() == [[1.0], [2.0]]
    assert np.isnan(as_numbers([1, True, np.timedelta64(5, "s")])[2])
    assert np.isnan(as_numbers(np.array([1, 2], dtype="m8[s]"))).all()


def test_masked_values_are_missing():
    """Masked values are missing."""
    masked = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_numbers(masked), [[1.0, np.nan], [3.0, 4.0]])


@pytest.mark.parametrize(
    "values",
    [
        [np.datetime64("2026-01-01"), np.datetime64("2026-01-02")],
        np.array([1, 2], dtype="m8[s]"),
        [1.0, np.timedelta64(1, "s")],
        np.array([1.0, np.timedelta64(1, "s")], dtype=object),
        [b"1", b"2"],
        [" 1 ", "2"],
        [None, "1"],
        [1.0, decimal.Decimal(1)],
        [1.0, 2.0j],
        [[1.0], [1.0, 2.0]],
        {"secret": 1.0},
        np.ma.masked_array(["1", "2"], mask=[0, 1]),
    ],
)
def test_what_is_no_real_number_is_rejected(values):
    with pytest.raises(InvalidInput, match=r"^rewards must be numbers, .* and some are not\. Convert them\.$"):
        real_numbers("rewards", values, "Convert them.")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, 2, 0.5], [1.0, 2.0, 0.5]),
        (np.array([True, 2, np.float32(0.5), None], dtype=object), [1.0, 2.0, 0.5, np.nan]),
        (np.ma.masked_array([1, 2], mask=[0, 1]), [1.0, np.nan]),
        (np.ma.masked_array([1.0, 2.0]), [1.0, 2.0]),
        ([1.0, np.ma.masked], [1.0, np.nan]),
        ([np.ma.masked_array([1.0, 2.0], mask=[0, 1]), [3.0, 4.0]], [[1.0, np.nan], [3.0, 4.0]]),
        ([10**400, -(10**400), 0], [np.inf, -np.inf, 0.0]),
    ],
)
def test_real_numbers(values, expected):
    """Missing and masked entries are NaN."""
    found = real_numbers("rewards", values, "Convert them.")
    assert found.dtype == np.float64
    assert np.array_equal(found, expected, equal_nan=True)


def test_real_numbers_of_tables():
    pandas = pytest.importorskip("pandas")
    assert np.array_equal(real_numbers("x", pandas.Series([1, None], dtype="Int64"), ""), [1.0, np.nan], equal_nan=True)
    assert np.array_equal(real_numbers("x", pandas.DataFrame({"a": [1], "b": [0.5]}), ""), [[1.0, 0.5]])
    with pytest.raises(InvalidInput, match="must be numbers"):
        real_numbers("x", pandas.DataFrame({"a": [1], "b": [pandas.Timestamp(0)]}), "")


def test_a_source_that_gives_another_number_of_rows_is_rejected():
    """Rows that were never sent would be learnt."""
    problem = Problem(Squared(), L2Ball(1.0), 2, label_bound=1.0)
    for clip in (problem.clip_block, clip_for(problem).dense):
        with pytest.raises(InvalidInput, match=r"expected \d+ rows"):
            clip(np.zeros((3, 2)), np.zeros(4))


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)], ids=repr)
@pytest.mark.parametrize("rows", [0, 1, 10, ROWS])
def test_predictions_of_a_block_at_a_time(loss, rows, monkeypatch):
    """Those of all rows at once."""
    made = replace(PROBLEM, loss=loss)
    point, asked, honest = RNG.normal(size=made.size), [], ColumnRows.__getitem__
    whole = made.predict(point, X[:rows])
    monkeypatch.setattr("taciturn.kernel.problem.predict._VALUES", 20)
    monkeypatch.setattr(ColumnRows, "__getitem__", lambda self, block: asked.append(block) or honest(self, block))
    np.testing.assert_allclose(made.predict(point, table(X[:rows])), whole, rtol=1e-14, atol=1e-14)
    assert whole.shape == ((rows,) if made.outputs == 1 else (rows, 3))
    assert len(asked) == max(1, -(-rows // 5))


def malformed(indptr, indices, kind=np.int32):
    """A sparse matrix of two columns whose structure is not checked."""
    matrix = sp.csr_matrix((len(indptr) - 1, 2))
    matrix.indptr, matrix.indices = np.array(indptr, dtype=kind), np.array(indices)
    matrix.data = np.full(len(indices), 0.1)
    return matrix


CROOKED = {
    "a column of the next row": malformed([0, 2, 3, 4], [0, 3, 0, 0]),
    "a column far away": malformed([0, 1, 1, 1], [2**40]),
    "a negative column": malformed([0, 1, 1, 1], [-1]),
    "starts that fall": malformed([0, 2, 1, 2], [0, 1]),
    "unsigned starts that fall": malformed([0, 2, 1, 2], [0, 1], np.uint32),
    "starts that wrap around": malformed([0, 2**31 - 1, -2, 2], [0, 1]),
    "starts beyond the end": malformed([0, 1, 2, 9], [0, 1]),
    "a negative start": malformed([-1, 1, 2, 2], [0, 1]),
}


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("fault", CROOKED)
def test_a_malformed_sparse_matrix_is_rejected_by_every_pass(fault, compiled):
    """SciPy's own way to dense rows would put an entry into another person's row, or anywhere in memory."""
    problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0, ridge=0.1)
    for learner, mechanism in ((QFTL(problem), BLT()), (FTRL(problem), BLT())):
        private = Private(learner, mechanism, every(1), BUDGET, 3, seed=1, compiled=compiled)
        with pytest.raises(InvalidInput, match=r"check_format\(\)"):
            private.run(private.start(), CROOKED[fault], np.ones(3))
    with pytest.raises(InvalidInput, match=r"check_format\(\)"):
        problem.clip(CROOKED[fault], np.ones(3))


@pytest.mark.privacy
def test_what_was_checked_of_a_sparse_matrix_is_what_is_used():
    """Columns are copied before they are checked: the caller's array may change meanwhile."""
    matrix = sp.csr_matrix(np.ones((3, 2)))
    matrix.indices = matrix.indices.astype(np.int64)
    rows = compressed(SparseRows(matrix))
    _, columns, entries = rows.numbers()
    assert not np.shares_memory(columns, matrix.indices)
    assert not np.shares_memory(entries, matrix.data)
    assert not np.shares_memory(rows.starts, matrix.indptr)


def test_a_text_of_arrow_that_is_not_utf_8_is_no_number():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1.0, 2.0], "b": pa.array([b"1.5", b"\xff"], pa.binary()).view(pa.string())})
    assert np.array_equal(source_of(table)[:], [[1.0, 1.5], [2.0, np.nan]], equal_nan=True)
