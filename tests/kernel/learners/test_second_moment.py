"""The second moment: the certificate reached, rounding towards zero, and the map that it leads to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import L2Ball, Logistic, Privacy, Private, Problem, SquareRoot, at
from taciturn.kernel.learners.second_moment import SecondMoment
from taciturn.kernel.problem.svec import unpacked

pytestmark = pytest.mark.privacy


def moment_of(d=2, neighbours="replace", bound=1.7, intercept=0.5):
    return SecondMoment(Problem(Logistic(), L2Ball(1.0), d, bound, intercept=intercept, neighbours=neighbours))


def statistic(learner, X):
    V, y = learner.problem.clip(X, np.ones(len(X)))
    return learner.statistic(learner.absorb(learner.start(), 0, V, y, np.zeros(0)), len(y))[1]


def test_orthogonal_rows_reach_the_certificate():
    """To rounding; half of it would be wrong. So does one row under zero-out."""
    rows = 1.7 * np.eye(2)
    for learner, moved in (
        (moment_of(), statistic(moment_of(), rows[:1]) - statistic(moment_of(), rows[1:])),
        (moment_of(neighbours="zero-out"), statistic(moment_of(), rows[:1])),
    ):
        assert 1.0 - 2e-5 < np.linalg.norm(moved) / float(learner.certificate.at(1)) <= 1.0


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5]), st.sampled_from([1e-7, 1.0, 1.7, 3e9]))
def test_no_pair_of_rows_exceeds_it(seed, d, bound):
    """Long rows, short rows, and whatever lies between."""
    learner = moment_of(d, bound=bound)
    rows = np.random.default_rng(seed).normal(size=(2, d)) * bound * 10.0 ** np.array([[1.0], [seed % 5 - 3.0]])
    moved = np.linalg.norm(statistic(learner, rows[:1]) - statistic(learner, rows[1:]))
    assert moved <= float(learner.certificate.at(1))
    assert np.linalg.norm(statistic(learner, rows[:1])) <= bound**2


def test_it_is_the_second_moment_without_the_intercept():
    """Entries to 18 bits."""
    X = np.random.default_rng(3).normal(size=(50, 3)) * 0.3
    V = moment_of(3).problem.clip(X, np.ones(50))[0][:, :3]
    np.testing.assert_allclose(unpacked(statistic(moment_of(3), X), 3), V.T @ V, rtol=1e-3, atol=1e-3)


@given(st.lists(st.integers(0, 30), max_size=4))
def test_cuts_change_nothing(cuts):
    """Sums are integers."""
    learner = moment_of(3)
    V, y = learner.problem.clip(np.random.default_rng(4).normal(size=(30, 3)), np.ones(30))
    exact, borders = learner.start(), sorted({0, *cuts, 30})
    for a, b in pairwise(borders):
        exact = learner.absorb(exact, a, V[a:b], y[a:b], np.zeros(0))
    assert np.array_equal(exact["sum"], learner.absorb(learner.start(), 0, V, y, np.zeros(0))["sum"])


def test_long_sums_are_integers_that_fit():
    """The largest rows in blocks of more than float64 adds up exactly; an entry stays below 2⁶³ for 2²⁶ of them."""
    learner = moment_of(1, bound=2.0 - 2**-20)
    V = np.full((2**17 + 5, 2), learner.problem.feature_bound)
    whole = learner.absorb(learner.start(), 0, V, np.ones(len(V)), np.zeros(0))["sum"]
    one = learner.absorb(learner.start(), 0, V[:1], np.ones(1), np.zeros(0))["sum"]
    assert whole[0] == one[0] * len(V)
    assert int(one[0]) * 2**26 < 2**63


@pytest.mark.parametrize("rows", [40, 4_000])
def test_the_map_is_finite_and_evens_out_the_spread(rows):
    """With many rows in all directions; with few, only by the diagonal."""
    rng = np.random.default_rng(6)
    common = rng.normal(size=(rows, 1))
    X = 0.1 * np.hstack([common, common + 0.3 * rng.normal(size=(rows, 1)), 0.2 * rng.normal(size=(rows, 1))])
    learner = moment_of(3, bound=1.0)
    private = Private(learner, SquareRoot(), at([rows]), Privacy(4.0, 1e-6), seed=2)
    W = private.fit(X, np.ones(rows)).point.reshape(3, 3)
    spread = np.linalg.eigvalsh(np.cov((X @ W.T).T))
    assert np.isfinite(W).all()
    before = np.linalg.eigvalsh(np.cov(X.T))
    if rows > 1000:
        assert spread[-1] / spread[0] < before[-1] / before[0] / 3.0
    else:
        assert np.array_equal(W, np.diag(np.diag(W)))
    length = np.linalg.norm(X @ W.T, axis=1)
    assert rows < 1000 or np.median(length) > 0.5


def test_noise_alone_gives_a_finite_map():
    """Negative and zero eigenvalues are floored."""
    learner = moment_of(4)
    rng = np.random.default_rng(7)
    for sd in (1e-9, 1.0, 1e9):
        for t in (1, 10**9):
            assert np.isfinite(learner.decide(t, rng.normal(size=10) * sd, sd)).all()
