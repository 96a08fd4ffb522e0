"""Sums of products are exact up to the largest legal values, and points solve their equations."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from taciturn import QFTL, Box, L2Ball, OneHot, Problem, Squared, WholeSpace
from taciturn.kernel.learners import qftl_loops as quadratic
from taciturn.kernel.learners.exact_sums import MOST, in_units, unit_of
from taciturn.kernel.learners.qftl_pass import Products
from taciturn.kernel.problem.codes import set_code
from taciturn.kernel.problem.svec import packed

BLOCK = 2**17  # examples whose products are one call of a BLAS
MAGNITUDES = [1.0, 2.0 - 2.0**-52, 1.0 - 2.0**-53, 0.3, math.sqrt(2.0), 1e-60, 1e60]


@pytest.mark.privacy
@pytest.mark.parametrize("magnitude", MAGNITUDES)
def test_a_factor_has_eighteen_bits(magnitude):
    """The largest is below 2¹⁸ units, so that 2²⁶ products stay below 2⁶², and 2¹⁷ of them below 2⁵³."""
    (largest,) = (int(x) for x in in_units(np.array([magnitude]), magnitude))
    assert 2**17 <= largest < 2**18
    assert largest**2 * MOST < 2**62 < np.iinfo(np.int64).max
    assert largest**2 * BLOCK < 2**53
    assert math.frexp(unit_of(magnitude))[0] == 0.5


@pytest.mark.privacy
@pytest.mark.parametrize("magnitude", [1.0, 0.3, 1e60])
def test_cutting_never_makes_an_example_longer(magnitude):
    """Towards zero, entry by entry, by less than a unit: in exact arithmetic."""
    values = np.random.default_rng(1).uniform(-magnitude, magnitude, 300)
    for value, units in zip(values, in_units(values, magnitude), strict=True):
        cut = Fraction(units) * Fraction(unit_of(magnitude))
        assert abs(cut) <= abs(Fraction(value)) < abs(cut) + Fraction(unit_of(magnitude))
        assert cut * Fraction(value) >= 0


@pytest.mark.privacy
@pytest.mark.parametrize("seed", [None, 1])
def test_a_whole_block_in_one_call_is_exact(seed):
    """2¹⁷ rows, every entry the largest there can be or any other: the sums of Python's integers."""
    rng, largest = np.random.default_rng(seed), 2**18 - 1
    V = np.full((BLOCK, 3), float(largest)) if seed is None else rng.integers(-largest, largest + 1, (BLOCK, 3)) * 1.0
    result = (V.T @ V).astype(np.int64)
    columns = [[int(x) for x in column] for column in V.T]
    expected = [[sum(map(int.__mul__, a, b)) for b in columns] for a in columns]
    assert result.tolist() == expected
    rows, rest = quadratic.sums(V, V[:, :1], 0, np.array([BLOCK]))
    assert rows[0].tolist() == [*(expected[a][b] for a in range(3) for b in range(a, 3)), *expected[0]]
    assert not rest.any()


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("t", [0, 57])
def test_sums_between_rounds(outputs, t):
    """What came up to each round and after the last, upper triangles row by row and then the labels' part."""
    rng = np.random.default_rng(outputs)
    V, Y = rng.integers(-99, 99, (40, 4)) * 1.0, rng.integers(-99, 99, (40, outputs)) * 1.0
    for rounds in ([1, 2, 3, 17, 33], [40], [], list(range(1, 41))):
        rows, rest = quadratic.sums(V, Y, t, np.array(rounds, dtype=np.int64) + t)
        ends = [0, *rounds, 40]
        parts = [(V[a:b], Y[a:b]) for a, b in pairwise(ends)]
        upper = np.triu_indices(4)
        expected = [np.concatenate([(v.T @ v)[upper], (y.T @ v).ravel()]) for v, y in parts]
        np.testing.assert_array_equal(np.concatenate([rows, rest[None]]), expected)


# The certificate, where sums are as large as they can be.

PROBLEMS = {
    "squared": QFTL(Problem(Squared(), L2Ball(1.0), 2, label_bound=0.7, intercept=0.5), weight=1.3),
    "zero-out": QFTL(Problem(Squared(), L2Ball(1.0), 2, feature_bound=1.9, label_bound=3.0, neighbours="zero-out")),
    "one hot": QFTL(Problem(OneHot(3), L2Ball(1.0), 2, feature_bound=0.3)),
}


def extremes(learner: QFTL, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples at their bounds, mirror images that move a contribution farthest among them."""
    p = learner.problem
    angles = rng.uniform(0.0, 2.0 * np.pi, count)
    angles[: count // 2] = (
        np.pi / 4.0 + np.pi / 2.0 * rng.integers(0, 4, count // 2) + rng.normal(size=count // 2) * 1e-3
    )
    X = 2.0 * p.feature_bound * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if p.outputs > 1:
        return X, rng.integers(0, p.outputs, count).astype(float)
    return X, p.label_bound * rng.choice([-1.0, 1.0], count)


def contribution(learner, exact, t, V, y, compiled):
    """The statistic after these examples."""
    if compiled:
        return Products(learner)(exact, t, V, y, np.array([t + len(y)]))[1][0]
    return learner.statistic(learner.absorb(exact, t, V, y, None), t + len(y))[1]


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("before", [0, 1, 2**17, 2**25 + 12345, MOST - 1])
@pytest.mark.parametrize("name", PROBLEMS)
def test_neighbours_differ_by_what_is_certified(name, before, compiled):
    """In exact arithmetic, though sums of up to 2²⁶ examples are made floats and scaled, with two roundings each."""
    learner, rng = PROBLEMS[name], np.random.default_rng(before)
    p = learner.problem
    X, y = extremes(learner, rng, 60)
    V, y = p.clip(X, y)
    largest = learner.absorb(learner.start(), 0, V[:1], y[:1], None)["sum"]
    low_bits = rng.integers(0, 2**18, len(largest)) if before else 0
    exact = {"sum": np.asarray(np.abs(largest) * before - low_bits, dtype=np.int64)}
    bound, worst = Fraction(float(learner.certificate.at(before + 1))), Fraction(0)
    rows = [contribution(learner, exact, before, V[i : i + 1], y[i : i + 1], compiled) for i in range(60)]
    if p.neighbours == "zero-out":
        pairs = [(row, contribution(learner, exact, before, 0.0 * V[:1], 0.0 * y[:1], compiled)) for row in rows]
    else:
        pairs = [(rows[i], rows[j]) for i in range(60) for j in range(i)]
    for one, other in pairs:
        worst = max(worst, sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(one, other, strict=True)))
    assert worst <= bound**2
    assert worst > (Fraction(9, 10) * bound) ** 2 or name == "one hot"


@pytest.mark.privacy
def test_a_huge_block_hands_over_what_its_parts_do():
    """300,000 examples between two releases: cut anywhere, in either pass, the same bits."""
    learner, rng = PROBLEMS["squared"], np.random.default_rng(5)
    X, y = extremes(learner, rng, 300_000)
    V, y = learner.problem.clip(X, y)
    rows = []
    for cuts in ([], [1], [2**17], [2**17 + 3, 250_000], [299_993], [299_999]):
        exact = learner.start()
        ends = [0, *cuts, len(y)]
        for a, b in pairwise(ends[:-1]):
            exact, _ = Products(learner)(exact, a, V[a:b], y[a:b], np.array([], dtype=np.int64))
        rows += [contribution(learner, exact, ends[-2], V[ends[-2] :], y[ends[-2] :], c) for c in (True, False)]
    for row in rows[1:]:
        np.testing.assert_array_equal(row, rows[0])


@pytest.mark.privacy
@pytest.mark.parametrize("name", PROBLEMS)
def test_after_many_examples_both_passes_compute_the_same_bits(name):
    """Sums of more than 2⁵³ units, which float64 would round once more were they not added up as integers."""
    learner, rng = PROBLEMS[name], np.random.default_rng(9)
    V, y = learner.problem.clip(*extremes(learner, rng, 8))
    for _ in range(50):
        exact = {"sum": rng.integers(-(2**61), 2**61, learner.statistic_size)}
        count = int(rng.integers(1, 9))
        rows = [contribution(learner, exact, 2**25, V[:count], y[:count], compiled) for compiled in (True, False)]
        np.testing.assert_array_equal(*rows)


# Points.


def rows_of(matrices, right, weight):
    """svec of each matrix, and its right hand sides times the weight."""
    return np.array([np.concatenate([packed(M), weight * u.ravel()]) for M, u in zip(matrices, right, strict=True)])


@pytest.mark.parametrize("d", [1, 2, 5, 30])
@pytest.mark.parametrize("outputs", [1, 3])
def test_points_solve_their_equations(d, outputs):
    """Beside SciPy's Cholesky, to the accuracy that the condition of the matrix allows."""
    rng = np.random.default_rng(d)
    factors = rng.normal(size=(8, d, d + 2))
    matrices, right = factors @ factors.transpose(0, 2, 1), rng.normal(size=(8, outputs, d))
    ridges, weight = rng.uniform(0.1, 2.0, 8), 0.37
    result, solved = quadratic.points(rows_of(matrices, right, weight), d, weight, ridges, set_code(WholeSpace()))
    assert solved.all()
    for k, (M, u) in enumerate(zip(matrices, right, strict=True)):
        shifted = M + ridges[k] * np.eye(d)
        expected = cho_solve(cho_factor(shifted), u.T).T.ravel()
        allowed = 16 * d * 2.0**-53 * np.linalg.cond(shifted) * np.linalg.norm(expected)
        assert np.linalg.norm(result[k] - expected) <= allowed


@pytest.mark.parametrize("domain", [L2Ball(0.4), Box(-0.1, 0.2)], ids=repr)
def test_points_lie_in_the_set(domain):
    """All outputs are projected as one point."""
    rng = np.random.default_rng(8)
    rows = rows_of(np.tile(np.eye(3), (6, 1, 1)), rng.normal(size=(6, 2, 3)), 1.0)
    free, _ = quadratic.points(rows, 3, 1.0, np.ones(6), set_code(WholeSpace()))
    result, _ = quadratic.points(rows, 3, 1.0, np.ones(6), set_code(domain))
    np.testing.assert_allclose(result, [domain.project(x) for x in free], rtol=1e-14)


@pytest.mark.parametrize(
    ("matrix", "ridge"),
    [
        (np.diag([1.0, -2.0, 1.0]), 0.5),
        (np.diag([-1.0, 1.0, 1.0]), 1.0),
        (np.zeros((3, 3)), 0.0),
        (np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), 0.9),
        (np.full((3, 3), math.nan), 1.0),
        (np.diag([1.0, math.nan, 1.0]), 1.0),
        (np.diag([1.0, 1.0, -math.inf]), 1.0),
    ],
)
def test_matrices_without_a_factor_are_flagged(matrix, ridge):
    """And change nothing for those beside them."""
    good, u = 2.0 * np.eye(3), np.ones((3, 1, 3))
    rows = rows_of([good, matrix, good], u, 1.0)
    result, solved = quadratic.points(rows, 3, 1.0, np.array([1.0, ridge, 1.0]), set_code(L2Ball(9.0)))
    assert solved.tolist() == [True, False, True]
    np.testing.assert_allclose(result[[0, 2]], 1.0 / 3.0, rtol=1e-15)
    assert not result[1].any()


@pytest.mark.parametrize("loss", [Squared(), OneHot(3)], ids=repr)
@pytest.mark.parametrize("noise", [0.0, 1e-3, 3.0])
def test_many_points_are_points_one_by_one(loss, noise):
    """Of noisy sums, indefinite ones among them, which have their eigenvalues floored."""
    learner = QFTL(Problem(loss, L2Ball(0.6), 4, label_bound=1.0, ridge=0.01))
    rng = np.random.default_rng(1)
    V, y = learner.problem.clip(rng.normal(size=(30, 4)), rng.integers(0, 2, 30).astype(float))
    rounds = np.arange(1, 31)
    rows = np.cumsum(Products(learner)(learner.start(), 0, V, y, rounds)[1], axis=0)
    rows += noise * rng.normal(size=rows.shape)
    sds = np.full(30, 0.01 * noise)
    result = Products(learner).decide(rounds, rows, sds)
    expected = [learner.decide(int(t), row, float(sd)) for t, row, sd in zip(rounds, rows, sds, strict=True)]
    np.testing.assert_allclose(result, expected, atol=1e-9)
    if noise == 3.0:
        _, solved = quadratic.points(rows, 4, learner.weight, learner.total_ridge(rounds, sds), set_code(L2Ball(0.6)))
        assert not solved.all()
