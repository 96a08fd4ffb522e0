"""Binary trees: which nodes make a sum, what they cost, and what refining gains."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernel.mechanisms.strategies import dense
from taciturn import BinaryTree
from taciturn.kernel.mechanisms.strategy import matrices
from taciturn.kernel.mechanisms.tree import TreeCoder

TABLE = {2**10: (10.5, 8.0), 2**14: (14.5, 10.8), 2**17: (17.5, 12.9), 2**20: (20.5, 15.1)}


@pytest.mark.parametrize("n", TABLE)
def test_largest_errors(n):
    """At mu = 1, plain and refined, within half a percent of docs/running_sums.md."""
    result = [float(np.max(BinaryTree(refined).errors(n))) for refined in (False, True)]
    assert result == pytest.approx(TABLE[n], rel=5e-3)


def test_a_sum_is_one_node_for_each_1_bit():
    """The plain tree's sum of t rows adds popcount(t) nodes, which cover each of those rows once."""
    _, B, C = dense("tree", 24)
    assert set(np.unique(B)) == set(np.unique(C)) == {0.0, 1.0}
    for t in range(1, 25):
        assert np.sum(B[t - 1]) == t.bit_count()
        sizes = sorted(np.sum(C[B[t - 1] == 1.0], axis=1))
        assert sizes == [2.0**h for h in range(5) if t >> h & 1]


@pytest.mark.privacy
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 24, 33])
def test_a_row_sits_in_one_node_of_each_level(n):
    """`floor(log2 n) + 1` of them at most, and the first row in that many: one level fewer would be too few."""
    _, C = matrices(TreeCoder(n, refined=False), n)
    nodes = np.sum(C, axis=0)
    assert np.max(nodes) == nodes[0] == math.floor(math.log2(n)) + 1
    assert TreeCoder(n, refined=False).sensitivity ** 2 == pytest.approx(nodes[0], rel=1e-12)
    assert np.linalg.norm(C[:, 0]) > math.sqrt(nodes[0] - 1)


def test_refined_nodes_have_the_stated_variance():
    """`1/(2 - 2⁻ʰ)` at t = 2ʰ: a quarter less noise in the end, and never more than the plain tree's."""
    refined = TreeCoder(2**12, refined=True)
    assert refined.error(2 ** np.arange(13)) ** 2 == pytest.approx(1.0 / (2.0 - 2.0 ** -np.arange(13.0)))
    t = np.arange(1, 2**12 + 1)
    assert (refined.error(t) <= TreeCoder(2**12, refined=False).error(t)).all()
    assert np.max(refined.error(t)) < 0.77 * np.max(TreeCoder(2**12, refined=False).error(t))


def test_refining_is_the_best_estimate_from_below():
    """At t = 2ʰ no other way to put the nodes so far together has less noise: it is least squares."""
    for h in range(6):
        coder = TreeCoder(2**h, refined=True)
        B, C = matrices(coder, 2**h)
        best = np.ones(2**h) @ np.linalg.pinv(C)
        assert B[-1] == pytest.approx(best, abs=1e-10)
