"""Predictions are products of bounded rows and a point, of sparse rows without making them dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kernel.problem.sparse_inputs import noncanonical_csr, with_zeros
from taciturn import InvalidInput, L2Ball, Logistic, Privacy, Problem, Softmax, Squared, private_sum
from taciturn.kernel.problem import predict as predicting
from taciturn.kernel.problem.inputs import CompressedRows, SparseRows

LOSSES = {"scalar": Logistic(), "real labels": Squared(), "scores": Softmax(3)}
X = with_zeros(np.random.default_rng(5).normal(size=(50, 7)) * np.geomspace(0.01, 100.0, 50)[:, None])


def problem(name: str, dimension: int = 7, intercept: float = 0.5) -> Problem:
    label_bound = 1.0 if name == "real labels" else None
    return Problem(LOSSES[name], L2Ball(2.0), dimension, 1.5, label_bound, intercept)


@pytest.fixture
def never_dense(monkeypatch):
    """No block of a sparse matrix may be made dense."""

    def reject(*_):
        raise AssertionError("made dense")

    monkeypatch.setattr(SparseRows, "__getitem__", reject)
    monkeypatch.setattr(CompressedRows, "dense", reject)
    for kind in (sp.csr_matrix, sp.csr_array):
        monkeypatch.setattr(kind, "toarray", reject)


@pytest.mark.parametrize("intercept", [0.0, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_sparse_rows_are_predicted_as_the_same_numbers_in_an_array(name, intercept, never_dense, monkeypatch):
    """Columns in any order, stored twice or as 0, an empty row, rows that are too long; in blocks of a few entries."""
    p = problem(name, intercept=intercept)
    point = np.random.default_rng(6).normal(size=p.size)
    expected = p.predict(point, X)
    assert expected.shape == ((50, 3) if name == "scores" else (50,))
    for entries in (2**20, 40):
        monkeypatch.setattr(predicting, "_VALUES", entries)
        for matrix in (noncanonical_csr(X), sp.csr_array(X), sp.csc_matrix(X)):
            np.testing.assert_allclose(p.predict(point, matrix), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["scalar", "scores"])
def test_many_columns_cost_what_is_stored(name, never_dense):
    """20,000 rows of 100,000 columns would be 16 GB as an array."""
    p = problem(name, dimension=100_000)
    rng = np.random.default_rng(7)
    columns, entries = rng.integers(0, 100_000, size=200_000), rng.normal(size=200_000)
    matrix = sp.csr_matrix((entries, columns, np.arange(0, 200_001, 10)), shape=(20_000, 100_000))
    point = rng.normal(size=p.size)
    got = p.predict(point, matrix)
    rows = np.zeros((2, 100_000))
    for row, start in zip(rows, (30, 199_990), strict=True):
        np.add.at(row, columns[start : start + 10], entries[start : start + 10])
    np.testing.assert_allclose(got[[3, 19_999]], p.predict(point, rows), rtol=1e-12, atol=1e-12)


def test_no_rows_have_no_predictions():
    for rows in (np.empty((0, 7)), sp.csr_matrix((0, 7))):
        assert problem("scalar").predict(np.zeros(8), rows).shape == (0,)
        assert problem("scores").predict(np.zeros(24), rows).shape == (0, 3)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_bad_row_is_named_in_whatever_block_it_is(sparse, monkeypatch):
    monkeypatch.setattr(predicting, "_VALUES", 40)
    bad = X.copy()
    bad[33, 2] = np.inf
    with pytest.raises(InvalidInput, match="row 33 cannot be used: feature 2"):
        problem("scalar").predict(np.zeros(8), noncanonical_csr(bad) if sparse else bad)


def test_scores_of_anothers_own_see_arrays():
    """A loss that overrides `scores` may do with rows what sparse matrices cannot."""

    class Shifted(Softmax):
        def scores(self, x, V):
            return np.asarray(np.einsum("ij,kj->ik", V, x.reshape(self.classes, -1))) + 1.0

    p = Problem(Shifted(3), L2Ball(2.0), 7, 1.5)
    point = np.arange(21.0)
    np.testing.assert_allclose(p.predict(point, sp.csr_matrix(X)), p.predict(point, X), rtol=1e-12)


class Ruler(Problem):
    """A problem of another's own, which bounds otherwise."""

    def legal(self, X, y, first=0):
        V, y = super().clip_block(X, y, first)
        return V / 2.0, y


def test_a_door_of_anothers_own_is_used():
    p = Ruler(Logistic(), L2Ball(2.0), 7, 1.5)
    np.testing.assert_allclose(p.predict(np.ones(7), sp.csr_matrix(X)), p.predict(np.ones(7), X))


def test_anything_but_a_point_is_rejected_with_a_remedy():
    private = private_sum(2, 1.0, Privacy(1.0, 1e-6), horizon=2, seed=1)
    _, releases = private.run(private.start(), np.eye(2))
    p = problem("scalar", dimension=2, intercept=0.0)
    with pytest.raises(InvalidInput, match=r"got Release\. Give release\.point\."):
        p.predict(releases[0], np.eye(2))
    with pytest.raises(InvalidInput, match=r"Give releases\[-1\]\.point\."):
        p.predict(releases, np.eye(2))
    for wrong in (np.zeros(3), np.zeros((3, 2)), "point", None, [np.nan, 0.0]):
        with pytest.raises(InvalidInput, match=r"have 2 numbers.*the point of a release first"):
            p.predict(wrong, np.eye(2))
    assert p.predict(np.ones((2, 1)), np.eye(2)).shape == (2,)
