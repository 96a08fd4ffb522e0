"""Counts in bins: the certificate by brute force over all pairs of rows, exactness, and what quantiles are decided."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import InvalidInput, Linear, Logistic, Privacy, Private, Problem, Squared, SquareRoot, WholeSpace, at
from taciturn.kernel.learners.bin_counts import BinCounts
from taciturn.kernel.problem.features import Bins
from taciturn.kernel.stream.loop import without_influence

pytestmark = pytest.mark.privacy

EDGES = np.array([[-1.0, 0.0, 2.0], [0.0, 0.5, 0.6]])
VALUES = (np.nan, -9.0, -1.0, 0.2, 0.55, 7.0)  # missing, and in every bin of both columns


def counts_of(neighbours="replace", labels=True, edges=EDGES, **settings):
    """Two columns of four bins, and labels as a third."""
    features, bins = Bins(edges), edges.shape[1] + 1
    bound = 2.0 * bins * len(edges) ** 0.5
    loss = Squared() if labels else Logistic()
    problem = Problem(
        loss, WholeSpace(), len(edges), bound, 1e60, 1.0, neighbours=neighbours, features=features, on_bad="zero"
    )
    return BinCounts(problem, edges[0] if labels else None, **settings)


def statistic(learner, X, y, excluded=None):
    """The exact statistic of raw rows, by the methods that the loop calls."""
    V, y = learner.problem.clip(X, y)
    if excluded is not None:
        V, y = without_influence(V, y, np.asarray(excluded), learner.problem.loss.labels)
    return learner.statistic(learner.absorb(learner.start(), 0, V, y, np.zeros(0)), len(y))[1]


def farthest(learner):
    """The largest distance of the statistics of two streams that differ in one row, over all rows there are."""
    rows = [(np.array([[a, b]]), np.array([c])) for a, b, c in product(VALUES, VALUES, (-7.0, -0.5, 0.1, 9.0))]
    rows += [(np.array([[np.inf, 0.0]]), np.zeros(1))]  # a bad row, of no influence
    images = np.unique([statistic(learner, *row) for row in rows], axis=0)
    if learner.problem.neighbours == "zero-out":
        return float(np.max(np.linalg.norm(images, axis=1)))
    return float(np.max(np.linalg.norm(images[:, None] - images[None, :], axis=2)))


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_brute_force_reaches_the_certificate_and_does_not_exceed_it(neighbours):
    """So half of it would be wrong; missing values, bad rows and labels included."""
    learner = counts_of(neighbours)
    assert 1.0 - 1e-9 < farthest(learner) / float(learner.certificate.at(9)) <= 1.0


def test_a_certificate_without_labels_is_caught(monkeypatch):
    """A planted fault: labels are a column of their own."""
    learner = counts_of()
    monkeypatch.setattr(BinCounts, "columns", property(lambda self: 2))
    certified = float(learner.certificate.at(9))
    monkeypatch.undo()
    assert farthest(learner) > 1.2 * certified


def test_excluded_and_bad_rows_have_no_influence_and_no_label():
    """The statistic is that of the other rows, whatever stands in them."""
    learner = counts_of()
    X, y = np.array([[0.1, 0.2], [3.0, 3.0], [np.inf, 0.0], [1.0, 0.0]]), np.array([0.5, -3.0, 1.0, np.nan])
    alone = statistic(learner, X[:1], y[:1])
    assert np.array_equal(statistic(learner, X, y, [False, True, False, False]), alone)
    assert statistic(learner, X, y, [True] * 4).tolist() == [0.0] * 12


def test_sums_are_exact_up_to_the_most_examples():
    """One row more or less in 2²⁶ moves the statistic by its contribution and nothing else."""
    learner = counts_of(edges=np.linspace(-1.0, 1.0, 127)[None, :], labels=False)
    one = {"counts": np.zeros((1, 128), dtype=np.int64)}
    one["counts"][0, :2] = 2**25, 2**25 - 1
    other = {"counts": one["counts"].copy()}
    other["counts"][0, 77] += 1
    moved = learner.statistic(other, 2**26)[1] - learner.statistic(one, 2**26)[1]
    assert np.array_equal(moved, learner.encoder[:, 77] / 2.0**20)
    assert np.isinf(learner.certificate.at(2**26 + 1))


@given(st.lists(st.integers(0, 40), max_size=5))
def test_cuts_change_nothing(cuts):
    """Counts are integers: any blocks give the same."""
    learner = counts_of()
    rng = np.random.default_rng(5)
    V, y = learner.problem.clip(rng.normal(size=(40, 2)), rng.normal(size=40))
    exact, borders = learner.start(), sorted({0, *cuts, 40})
    for a, b in pairwise(borders):
        exact = learner.absorb(exact, a, V[a:b], y[a:b], np.zeros(0))
    assert np.array_equal(exact["counts"], learner.absorb(learner.start(), 0, V, y, np.zeros(0))["counts"])


def test_without_noise_cumulative_counts_come_back():
    """Encoder and decoder are a factorisation of the matrix of ones."""
    learner = counts_of(edges=np.linspace(-1.0, 1.0, 63)[None, :], labels=False)
    X = np.random.default_rng(1).normal(size=(500, 1))
    found = statistic(learner, X, np.ones(500)) @ learner.decoder.T
    expected = np.cumsum(np.histogram(X, np.concatenate([[-9.0], learner.bins.edges[0], [9.0]]))[0])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    gaps = learner.decoder @ (learner.encoder / 2.0**20) - np.tri(64)
    assert np.abs(gaps).max() < 1e-9


def test_the_noise_of_a_cumulative_count_grows_slowly():
    """2.6 times that of a count, for 124 bins: the planner's number."""
    learner = counts_of(edges=np.linspace(-1.0, 1.0, 123)[None, :], labels=False)
    norm = float(np.max(np.linalg.norm(learner.decoder, axis=1)))
    assert norm * float(learner.certificate.at(1)) < 2.6 * 2**0.5 * 1.3
    assert norm < 124**0.5 / 3.0


def test_mostly_noise_gives_the_outer_edges():
    """And never a crossed pair, whatever the noise is."""
    learner = counts_of(least=0.1)
    assert learner.decide(9, np.zeros(12), 1.0)[[0, 3]].tolist() == [-2.0, 4.0]
    rng = np.random.default_rng(2)
    for sd in (1e-3, 1.0, 1e6):
        for outward in (False, True):
            made = replace(learner, outward=outward)
            low, high, level, outside = made.decide(9, rng.normal(size=12) * sd, sd).reshape(4, 3)
            assert (low < high).all()
            assert ((level >= 0.1) & (level <= 0.3)).all()
            assert ((outside >= 0.0) & (outside <= 1.0)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"problem": Problem(Logistic(), WholeSpace(), 1, intercept=1.0)}, "features=Bins"),
        ({"problem": replace(counts_of().problem, intercept=0.5)}, "intercept=1"),
        ({"problem": replace(counts_of().problem, feature_bound=4.0)}, "must not be clipped"),
        ({"label_edges": np.array([0.0, 1.0])}, "as many as the edges"),
        ({"label_edges": np.array([0.0, 1.0, 1.0])}, "must increase"),
    ],
)
def test_what_it_cannot_count_is_rejected(change, words):
    """Clipped numbers of bins would be other bins."""
    with pytest.raises(InvalidInput, match=words):
        BinCounts(**({"problem": counts_of().problem} | change))


def test_it_runs_in_a_stream_of_users_without_labels():
    """An ordinary learner of an ordinary `Private`."""
    problem = replace(counts_of(labels=False).problem, loss=Linear(), label_bound=1.0)
    private = Private(BinCounts(problem), SquareRoot(), at([30]), Privacy(8.0, 1e-6), seed=1)
    assert private.fit(np.zeros((30, 2)), np.zeros(30)).point.shape == (8,)
