"""Sparse rows are learnt from without making them dense, and give the releases of the same dense rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.problem.sparse_inputs import noncanonical_csr, with_zeros
from kernel.stream.equivalence import assert_agree, assert_passes_agree
from kernel.stream.streams import BUDGET, ENTRY, ROWS, SCHEDULES, STRATEGIES, private, problem, stream
from taciturn import (
    BLT,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    BinaryTree,
    Gaussian,
    InvalidInput,
    L2Ball,
    Logistic,
    Private,
    Problem,
    ScalarLoss,
    Squared,
    averaged,
    every,
)
from taciturn.kernel.problem.inputs import SparseRows
from taciturn.kernel.replay import exact_of
from taciturn.kernel.stream import loop

BY_THE_DEFINITION = ("root", "tree", "plain tree")
FAST = [way for way in STRATEGIES if way not in BY_THE_DEFINITION]
COMPRESSED = [(name, way) for name in ENTRY for way in FAST if "ftrl" in name and "simplex" not in name]
COMPRESSED += [(name, way) for name in ENTRY for way in [*FAST, "tree", "plain tree"] if "class sums" in name]


@pytest.fixture
def never_dense(monkeypatch):
    """No block of a sparse matrix may be made dense."""

    def reject(self, block):
        raise AssertionError("made dense")

    monkeypatch.setattr(SparseRows, "__getitem__", reject)


@pytest.mark.parametrize(("learner", "mechanism"), COMPRESSED, ids=map(" by ".join, COMPRESSED))
def test_compressed_is_the_definition(learner, mechanism, never_dense):
    """Rows, integers, noisy rows, points and states: of columns in any order, stored twice or stored as 0."""
    schedules = dict.fromkeys(("decayed", "restarted"), ("every 7", "every"))
    for schedule in schedules.get(mechanism, ("every 7", "geometric")):
        assert_agree(learner, mechanism, schedule, "compressed")


WITHOUT_INTERCEPT = [pair for pair in COMPRESSED if pair[1] == "blt"]


@pytest.mark.parametrize(("learner", "mechanism"), WITHOUT_INTERCEPT, ids=map(" by ".join, WITHOUT_INTERCEPT))
def test_without_an_intercept(learner, mechanism, never_dense):
    """Compared with the definition, and with the compiled pass on the same dense rows."""
    who = replace(ENTRY[learner], problem=replace(ENTRY[learner].problem, intercept=0.0))
    fast = Private(who, BLT(), every(3), BUDGET, ROWS, seed=5)
    X, y = stream(fast.problem)
    assert_passes_agree(replace(fast, compiled=False), fast, with_zeros(X), noncanonical_csr(with_zeros(X)), y)
    forms = (with_zeros(X), noncanonical_csr(with_zeros(X)))
    (_, dense), (_, releases) = (fast.run(fast.start(), rows, y) for rows in forms)
    np.testing.assert_allclose(releases.points, dense.points, rtol=0.0, atol=1e-9)


KINDS = {
    "single precision": lambda X: noncanonical_csr(X).astype(np.float32),
    "small integers": lambda X: noncanonical_csr(np.rint(3.0 * X)).astype(np.int8),
    "truth values": lambda X: sp.csr_matrix(X > 0.5),
    "short indices": lambda X: noncanonical_csr(X, indices=np.int32),
    "columns": sp.csc_matrix,
    "an array": sp.csr_array,
    "nothing stored": lambda X: sp.csr_matrix(X.shape),
    "read-only": lambda X: read_only(noncanonical_csr(X)),
    "part of another": lambda X: noncanonical_csr(np.concatenate([9.0 * X, X]))[len(X) :],
}


def read_only(matrix):
    for array in (matrix.indptr, matrix.indices, matrix.data):
        array.setflags(write=False)
    return matrix


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", ["ftrl, squared, box", "ftrl, hinge, ball"])
def test_numbers_and_indices_of_any_kind(kind, learner, never_dense):
    """As the array that the matrix stands for, in double precision."""
    slow, fast = (private(learner, "blt", "every 7", compiled) for compiled in (False, True))
    X, y = stream(slow.problem)
    rows = KINDS[kind](with_zeros(X))
    assert_passes_agree(slow, fast, rows.astype(np.float64).toarray(), rows, y)


def test_small_integers_stored_twice_do_not_wrap():
    """100 and 100 are 200, dense or compressed; in eight bits they would be -56."""
    twice = sp.csr_matrix((np.array([100, 100], np.int8), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    made = Problem(Squared(), L2Ball(1.0), 2, feature_bound=500.0, label_bound=1.0)
    assert made.clip(twice, [0.0])[0].tolist() == [[0.0, 200.0]]


@pytest.mark.parametrize("learner", ["ftrl, hinge, ball", "ftrl, logistic, box", "ftrl, softmax, ball"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_rows_have_no_influence(learner, value, never_dense):
    """Or are named, with their number in the call, and change nothing; as dense ones."""
    strict = private(learner, "blt", "every 7")
    X, y = stream(strict.problem)
    X = with_zeros(X)
    X[[3, 29], 1], y[17] = value, np.nan
    who = replace(strict.learner, problem=replace(strict.problem, on_bad="zero"))
    fast = replace(strict, learner=who)
    assert_passes_agree(replace(fast, compiled=False), fast, X, noncanonical_csr(X), y)
    start, (_, legal) = strict.start(), stream(strict.problem)
    what = "not a number .*" if np.isnan(value) else value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_VALUES", 1)
        with pytest.raises(InvalidInput, match="row 17 cannot be used: its label is not a number"):
            strict.run(start, noncanonical_csr(np.where(np.isfinite(X), X, 0.0)), y)
        X[3] = 0.0
        with pytest.raises(InvalidInput, match=f"row 29 cannot be used: feature 1 is {what}. Nothing was learnt"):
            strict.run(start, noncanonical_csr(X), legal)
    assert strict.run(start, noncanonical_csr(X[:29]), legal[:29])[0].t == 29


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, ROWS), max_size=8), values=st.sampled_from([1, 40, 2**17]), data=st.data())
def test_cuts_change_no_bit(cuts, values, data):
    """Anywhere: sums on a lattice are exact."""
    one = private("ftrl, logistic, box", "blt", data.draw(st.sampled_from([*SCHEDULES])))
    X, y = stream(one.problem)
    rows = noncanonical_csr(with_zeros(X)).tocsr()
    end, whole = one.run(one.start(), rows, y)
    state, noisy = one.start(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_VALUES", values)
        for last in sorted({*cuts, ROWS}):
            state, more = one.run(state, rows[state.t : last], y[state.t : last])
            noisy += list(more.noisy)
    np.testing.assert_array_equal(np.array(noisy), whole.noisy)
    for name, array in exact_of(end).items():
        np.testing.assert_array_equal(exact_of(state)[name], array)


def watched(one):
    """The rows of every block that goes through."""
    honest, sizes = one._pass, []

    class Watched:
        forgets, compressed, one_row = honest.forgets, honest.compressed, honest.one_row

        def __call__(self, at, X, y, rounds, seed, shown):
            sizes.append(X.shape[0])
            return honest(at, X, y, rounds, seed, shown)

    vars(one)["_pass"] = Watched()
    return sizes


def test_blocks_are_chosen_by_entries(monkeypatch, never_dense):
    """Not by columns: many rows of a wide matrix go through at once, if little is stored of them."""
    monkeypatch.setattr(loop, "_VALUES", 2**17)
    made = Problem(Logistic(), L2Ball(1.0), 100_000)
    one = Private(FTRL(made), BLT(), every(50), BUDGET, 100, seed=1)
    sizes = watched(one)
    rng = np.random.default_rng(1)
    one.run(one.start(), sp.random(100, 100_000, density=1e-4, format="csr", random_state=rng), np.ones(100))
    assert sizes == [50, 50]  # a release is as much as goes through at once
    monkeypatch.setattr(loop, "_VALUES", 1)
    narrow = replace(private("ftrl, hinge, ball", "blt", "at"))
    sizes = watched(narrow)
    narrow.run(narrow.start(), sp.csr_matrix(np.ones((ROWS, 3))), np.ones(ROWS))
    assert max(sizes) == 4  # of three entries, and one for the row, within four points of four entries
    assert sum(sizes) == ROWS


# What has no loop of its own is made dense, or rejected.


class MyLogistic(Logistic):
    """No loss of the package."""

    prox = ScalarLoss.prox


RIDGED = problem(Logistic(), L2Ball(0.4), ridge=0.1)
DENSE = {
    "second moments": (QFTL(problem(Squared(), L2Ball(0.4), ridge=0.1)), BLT()),
    "a loss of another's": (FTRL(problem(MyLogistic(), L2Ball(0.4))), BLT()),
    "a tree": (FTRL(RIDGED), BinaryTree()),
}


@pytest.mark.parametrize("name", DENSE)
def test_others_take_dense_blocks(name):
    """And so does the definition."""
    fast = Private(*DENSE[name], every(7), BUDGET, ROWS, seed=5)
    assert not fast._pass.compressed
    assert not replace(fast, compiled=False)._pass.compressed
    X, y = stream(fast.problem)
    assert_passes_agree(replace(fast, compiled=False), fast, with_zeros(X), noncanonical_csr(with_zeros(X)), y)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("learner", [IGD(RIDGED), GIGA(RIDGED), FTL(RIDGED), averaged(IGD(RIDGED), horizon=ROWS)])
def test_iterates_learn_dense_rows_only(learner, compiled):
    """Each step goes through all columns; the error names what learns sparse rows, and nothing was learnt."""
    one = Private(learner, Gaussian(), every(7), BUDGET, ROWS, seed=5, compiled=compiled)
    start, (X, y) = one.start(), stream(one.problem)
    with pytest.raises(InvalidInput, match=r"all columns of a row.*method='ftrl'.*X\.toarray\(\)"):
        one.run(start, sp.csr_matrix(X), y)
    assert one.run(start, X, y)[0].t == ROWS


def test_those_that_have_one_say_so():
    """The passes of the tests above."""
    for learner, mechanism in COMPRESSED:
        assert private(learner, mechanism, "every 7")._pass.compressed


def test_complex_entries_are_no_numbers():
    """Such a matrix is clipped as a dense one, where all of it is bad."""
    one = private("ftrl, hinge, ball", "blt", "every 7")
    with pytest.raises(InvalidInput, match="row 0 cannot be used: feature 0 is not a number"):
        one.run(one.start(), sp.csr_matrix(np.ones((2, 3)) * 1j), [1.0, 1.0])


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("indices", [0, 3, 1], "column indices"),
        ("indices", [0, -1, 1], "column indices"),
        ("indptr", [0, 2, 1, 3], "indptr"),
        ("indptr", [0, 1, 2, 9], "indptr"),
        ("indptr", [-1, 1, 2, 3], "indptr"),
        ("data", [1.0], "indptr"),
    ],
)
def test_broken_matrices_are_rejected(part, values, message):
    """Before compiled code reads or writes where it must not."""
    one = private("ftrl, hinge, ball", "blt", "every 7")
    rows = sp.csr_matrix(np.eye(3))
    setattr(rows, part, np.array(values, dtype=getattr(rows, part).dtype))
    with pytest.raises(InvalidInput, match=message):
        one.run(one.start(), rows, np.ones(3))
