"""Sparse rows are learnt from without making them dense, and give the releases of the same dense rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from compiled.equivalence import assert_agree, assert_passes_agree
from compiled.sparse_inputs import noncanonical_csr, with_zeros
from compiled.streams import BUDGET, ENTRY, ROWS, SCHEDULES, STRATEGIES, TAIL, private, problem, stream
from instances import believed
from taciturn import (
    BLT,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    Box,
    FadingIGD,
    Gaussian,
    Hinge,
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
from taciturn.core import loop
from taciturn.problem.inputs import SparseRows

OTHERS = ("simplex", " of ", "ftl", "on whole losses", "softmax", "one hot", "far")
"""In the names of iterates without a loop over compressed rows: sets without number or 0, means, leaders, classes."""

COMPRESSED = [(name, "gaussian") for name in TAIL if not any(part in name for part in OTHERS)]
COMPRESSED += [(name, way) for name in ENTRY for way in STRATEGIES if "ftrl" in name and "simplex" not in name]
COMPRESSED += [(name, way) for name in ENTRY for way in STRATEGIES if "class sums" in name]


@pytest.fixture
def never_dense(monkeypatch):
    """No block of a sparse matrix may be made dense."""

    def reject(self, block):
        raise AssertionError("made dense")

    monkeypatch.setattr(SparseRows, "__getitem__", reject)


@pytest.mark.parametrize(("learner", "mechanism"), COMPRESSED, ids=map(" by ".join, COMPRESSED))
def test_compressed_is_the_definition(learner, mechanism, never_dense):
    """Rows, integers, noisy rows, points and states: of columns in any order, stored twice or stored as 0."""
    schedules = {"gaussian": tuple(SCHEDULES)} | dict.fromkeys(("decayed", "restarted"), ("every 7", "every"))
    for schedule in schedules.get(mechanism, ("every 7", "geometric")):
        assert_agree(learner, mechanism, schedule, "compressed")


WITHOUT_INTERCEPT = [pair for pair in COMPRESSED if pair[1] in ("gaussian", "blt")]


@pytest.mark.parametrize(("learner", "mechanism"), WITHOUT_INTERCEPT, ids=map(" by ".join, WITHOUT_INTERCEPT))
def test_without_an_intercept(learner, mechanism, never_dense):
    """Compared with the definition, and with the compiled pass on the same dense rows."""
    who = (TAIL | ENTRY)[learner]
    who = replace(who, problem=replace(who.problem, intercept=0.0))
    fast = Private(who, Gaussian() if mechanism == "gaussian" else BLT(), every(3), BUDGET, ROWS, seed=5)
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
@pytest.mark.parametrize("learner", ["igd, logistic, ball", "giga, squared, box", "ftrl, hinge, ball"])
def test_numbers_and_indices_of_any_kind(kind, learner, never_dense):
    """As the array that the matrix stands for, in double precision."""
    mechanism = "blt" if "ftrl" in learner else "gaussian"
    slow, fast = (private(learner, mechanism, "every 7", compiled) for compiled in (False, True))
    X, y = stream(slow.problem)
    rows = KINDS[kind](with_zeros(X))
    assert_passes_agree(slow, fast, rows.astype(np.float64).toarray(), rows, y)


def test_small_integers_stored_twice_do_not_wrap():
    """100 and 100 are 200, dense or compressed; in eight bits they would be -56."""
    twice = sp.csr_matrix((np.array([100, 100], np.int8), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    made = Problem(Squared(), L2Ball(1.0), 2, feature_bound=500.0, label_bound=1.0)
    assert made.clip(twice, [0.0])[0].tolist() == [[0.0, 200.0]]


@pytest.mark.parametrize("learner", ["igd, hinge, ball", "giga, logistic, box", "ftrl, softmax, ball"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_rows_have_no_influence(learner, value, never_dense):
    """Or are named, with their number in the call, and change nothing; as dense ones."""
    mechanism = "blt" if "ftrl" in learner else "gaussian"
    strict = private(learner, mechanism, "every 7")
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


CUT = ["igd, hinge, ball", "igd, squared, box", "giga, logistic, ball", "printed giga, logistic, space"]
CUT = [(learner, "gaussian") for learner in (*CUT, "fading, absolute, ball")] + [("ftrl, logistic, box", "tree")]


@pytest.mark.parametrize(("learner", "mechanism"), CUT, ids=map(" by ".join, CUT))
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, ROWS), max_size=8), values=st.sampled_from([1, 40, 2**17]), data=st.data())
def test_cuts_change_no_more_than_a_lattice_step(learner, mechanism, cuts, values, data):
    """Anywhere; and no bit where they fall on releases, or where sums are exact."""
    schedule = data.draw(st.sampled_from([*SCHEDULES]))
    at_releases = data.draw(st.booleans())
    one = private(learner, mechanism, schedule)
    X, y = stream(one.problem)
    rows = noncanonical_csr(with_zeros(X)).tocsr()
    end, whole = one.run(one.start(), rows, y)
    ends = sorted({*cuts, ROWS}) if not at_releases else [*map(int, whole.rounds), ROWS]
    state, noisy = one.start(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_VALUES", 2**17 if at_releases else values)
        for last in ends:
            state, more = one.run(state, rows[state.t : last], y[state.t : last])
            noisy += list(more.noisy)
    exact = at_releases or mechanism != "gaussian"
    off = 0.0 if exact else one.calibrated.levels_of(1, len(whole))[1][:, None]
    assert (np.abs(np.array(noisy) - whole.noisy) <= off).all()
    for name, array in end.exact.items():
        np.testing.assert_allclose(state.exact[name], array, rtol=0.0, atol=0.0 if exact else 1e-13)


def watched(one):
    """The rows of every block that goes through."""
    honest, sizes = one._pass, []

    class Watched:
        forgets, compressed = honest.forgets, honest.compressed

        def __call__(self, at, X, y, rounds, seed, shown):
            sizes.append(X.shape[0])
            return honest(at, X, y, rounds, seed, shown)

    vars(one)["_pass"] = Watched()
    return sizes


def test_blocks_are_chosen_by_entries(monkeypatch, never_dense):
    """Not by columns: many rows of a wide matrix go through at once, if little is stored of them."""
    monkeypatch.setattr(loop, "_VALUES", 2**17)
    made = Problem(Logistic(), L2Ball(1.0), 100_000, ridge=0.1)
    one = Private(IGD(made), Gaussian(), every(50), BUDGET, 100, seed=1)
    sizes = watched(one)
    rng = np.random.default_rng(1)
    one.run(one.start(), sp.random(100, 100_000, density=1e-4, format="csr", random_state=rng), np.ones(100))
    assert sizes == [50, 50]  # a release is as much as goes through at once
    monkeypatch.setattr(loop, "_VALUES", 1)
    narrow = replace(private("igd, hinge, ball", "gaussian", "at"))
    sizes = watched(narrow)
    narrow.run(narrow.start(), sp.csr_matrix(np.ones((ROWS, 3))), np.ones(ROWS))
    assert max(sizes) == 4  # of three entries, and one for the row, within four points of four entries
    assert sum(sizes) == ROWS


# What has no loop of its own is made dense.


class MyLogistic(Logistic):
    """No loss of the package."""

    prox = ScalarLoss.prox


class Lazy(IGD):
    """No learner of the package."""


RIDGED = problem(Logistic(), L2Ball(0.4), ridge=0.1)
DENSE = {
    "a loss of another's": IGD(replace(RIDGED, loss=MyLogistic())),
    "a learner of another's": Lazy(RIDGED),
    "a box without 0": IGD(replace(RIDGED, domain=Box(0.1, 0.3))),
    "a centre that is not 0": FadingIGD(problem(Logistic(), Box(0.1, 0.3))),
    "means": averaged(IGD(RIDGED), horizon=ROWS),
    "a simplex": TAIL["igd, logistic, simplex"],
    "second moments": QFTL(problem(Squared(), L2Ball(0.4), ridge=0.1)),
    "several classes": TAIL["igd, softmax, ball"],
    "a leader": TAIL["ftl, logistic, ball"],
}


@pytest.mark.parametrize("name", DENSE)
def test_others_take_dense_blocks(name):
    """As before; and so does the definition."""
    mechanism = Gaussian() if DENSE[name].certificate.kind == "l2/tail" else BLT()
    fast = Private(believed(DENSE[name]), mechanism, every(7), BUDGET, ROWS, seed=5)
    assert not fast._pass.compressed
    assert not replace(fast, compiled=False)._pass.compressed
    X, y = stream(fast.problem)
    assert_passes_agree(replace(fast, compiled=False), fast, with_zeros(X), noncanonical_csr(with_zeros(X)), y)


def test_those_that_have_one_say_so():
    """The passes of the tests above."""
    for learner, mechanism in COMPRESSED:
        assert private(learner, mechanism, "every 7")._pass.compressed
    assert not Private(FTRL(problem(MyLogistic(), L2Ball(0.4))), BLT(), every(7), BUDGET, ROWS)._pass.compressed
    assert not Private(GIGA(replace(RIDGED, loss=MyLogistic())), Gaussian(), every(7), BUDGET, ROWS)._pass.compressed


def test_complex_entries_are_no_numbers():
    """Such a matrix is clipped as a dense one, where all of it is bad."""
    one = private("igd, hinge, ball", "gaussian", "every 7")
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
    one = private("igd, hinge, ball", "gaussian", "every 7")
    rows = sp.csr_matrix(np.eye(3))
    setattr(rows, part, np.array(values, dtype=getattr(rows, part).dtype))
    with pytest.raises(InvalidInput, match=message):
        one.run(one.start(), rows, np.ones(3))


def test_a_hinge_at_the_border_of_a_wide_ball():
    """Where most coordinates are never touched: dense and compressed, a thousand examples, the same within a step."""
    made = Problem(Hinge(), L2Ball(0.3), 400, ridge=0.01, intercept=0.2)
    one = Private(IGD(made), Gaussian(), every(250), BUDGET, 1000, seed=3)
    rng = np.random.default_rng(9)
    rows = sp.random(1000, 400, density=0.02, format="csr", random_state=5, data_rvs=lambda size: rng.normal(size=size))
    y = np.where(rows @ np.ones(400) > 0.0, 1.0, -1.0)
    (_, dense), (_, releases) = (one.run(one.start(), X, y) for X in (rows.toarray(), rows))
    step = one.calibrated.levels_of(1, 4)[1][:, None]
    assert (np.abs(dense.noisy - releases.noisy) <= step).all()
