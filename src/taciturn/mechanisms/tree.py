"""Prefix sums from a binary tree of partial sums (Algorithm 5 of the paper, its leaves and levels corrected).

Row k is leaf k; a node of height h sums 2^h consecutive rows and is encoded when the last of them arrives, so row k
completes one node for each height up to the number of factors 2 in k. The k-th sum is that of one node for each 1-bit
of k. One row sits in one node of each height up to `log2 n`, so the largest column norm of C is
`sqrt(floor(log2 n) + 1)`. (The paper puts row k in leaf k of 0, 1, …, so that its sum misses a row, and counts log T
nodes.)

**Honaker's refinement** (*Efficient Use of Differentially Private Binary Trees*, 2015, estimation from below) is
decoding only: a node is also the sum of its two children, so the two estimates are averaged, weighted by their
variances. By induction a refined node of height h has variance `v_h = 1/(2 - 2⁻ʰ)`: the children's sum has `2·v_{h-1}`,
and `1/v_h = 1 + 1/(2·v_{h-1}) = 1 + (2 - 2^(1-h))/2`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array, Arrays
from taciturn.mechanisms.prefix_sum import PrefixSum
from taciturn.mechanisms.strategy import Dense


@dataclass(frozen=True)
class BinaryTree(PrefixSum):
    """Prefix sums by a binary tree (Algorithm 5), with Honaker's refinement or without.

    Parameters
    ----------
    refined : bool
        Average each node with the sum of its children, as it is decoded: about a quarter less noise, at no cost.

    Examples
    --------
    >>> from taciturn import BinaryTree
    >>> [round(float(BinaryTree(refined).errors(1024).max()), 2) for refined in (False, True)]
    [10.49, 7.99]
    """

    refined: bool = True

    def coder(self, n: int | None) -> TreeCoder:
        """The strategy for n rows."""
        return TreeCoder(self.needs(n), self.refined)

    def restored_coder(self, n: int | None, numbers: Arrays) -> TreeCoder:
        """The same strategy: nothing in it is fitted."""
        return self.coder(n)

    @property
    def is_the_papers(self) -> bool:
        """The paper's tree is not refined."""
        return not self.refined


@dataclass(frozen=True)
class TreeCoder(Dense):
    """A tree over n rows; encoder and decoder store one row for each level."""

    n: int
    refined: bool

    @property
    def levels(self) -> int:
        """`floor(log2 n) + 1`."""
        return self.n.bit_length()

    def numbers(self, k: int) -> Arrays:
        """None: it follows from n, by operations that every machine rounds alike."""
        return {}

    @property
    def integer(self) -> bool:
        return True

    @property
    def sensitivity(self) -> float:
        return math.sqrt(self.levels) * (1.0 + 2.0**-50)

    @property
    def row_norm(self) -> float:
        return float(2 ** (self.levels - 1))

    @property
    def rounding_error(self) -> float:
        return 0.0

    def rows(self, k: int) -> int:
        return _height(k) + 1

    def before(self, k: int) -> int:
        return 2 * (k - 1) - (k - 1).bit_count()

    def release_of(self, row: int) -> int:
        k = (row + 1) // 2
        while self.before(k + 1) < row:
            k += 1
        return k

    def error(self, k: ArrayLike) -> Array:
        bits = [(np.asarray(k, dtype=np.int64) >> h & 1) * self._variance(h) for h in range(self.levels)]
        return np.asarray(np.sqrt(np.sum(bits, axis=0)))

    def _variance(self, h: int) -> float:
        return 1.0 / (2.0 - 2.0**-h) if self.refined else 1.0

    def start(self, size: int) -> tuple[Arrays, Arrays]:
        return {"nodes": np.zeros((self.levels, size))}, {"nodes": np.zeros((self.levels, size))}

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Array]:
        """Row k, and the nodes that it completes: each adds the left sibling that was waiting at its height."""
        waiting = secret["nodes"].astype(row.dtype)
        done = [row]
        for h in range(_height(k)):
            done.append(waiting[h] + done[-1])
        waiting[_height(k)] = done[-1]
        return {"nodes": waiting}, np.array(done)

    def decode(self, public: Arrays, noisy: Array, k: int) -> tuple[Arrays, Array]:
        """The newest node of each height that k has a 1-bit for, refined on the way up."""
        nodes = public["nodes"].copy()
        best = noisy[0]
        for h in range(1, len(noisy)):
            below = nodes[h - 1] + best
            best = noisy[h] + (below - noisy[h]) * (self._weight(h) if self.refined else 0.0)
        nodes[_height(k)] = best
        chosen = [h for h in range(self.levels) if k >> h & 1]
        return {"nodes": nodes}, np.asarray(nodes[chosen].sum(axis=0))

    @property
    def weights(self) -> Array:
        """Weight of the children's sum in each refined node, by height."""
        return np.array([self._weight(h) if self.refined and h else 0.0 for h in range(self.levels)])

    def _weight(self, h: int) -> float:
        """Weight of the children's sum in the refined node: its inverse variance over the sum of both."""
        return self._variance(h) / (2.0 * self._variance(h - 1))


def _height(k: int) -> int:
    """How often 2 divides k: the height of the largest node that row k completes."""
    return (k & -k).bit_length() - 1
