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

**Several rows of one unit.** `‖C u‖²` is the sum, over all nodes, of the squared number of the unit's rows below the
node. A tree is not Toeplitz, and its worst pattern need not begin at the first block: `most_in_nodes` finds the largest
value by dynamic programming, and `most_by_height` bounds it where there are too many blocks for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from taciturn.kernel.accounting.unit import ONCE, Participation
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.mechanisms.strategy import Dense

SEARCHED = 16
"""Most blocks of one unit for which the worst pattern is searched."""


@dataclass(frozen=True)
class TreeCoder(Dense):
    """A tree over n rows; encoder and decoder store one row for each level."""

    n: int
    refined: bool

    @property
    def levels(self) -> int:
        """`floor(log2 n) + 1`."""
        return self.n.bit_length()

    @property
    def numbers(self) -> Arrays:
        """None: it follows from n, by operations that every machine rounds alike."""
        return {}

    @property
    def integer(self) -> bool:
        return True

    @property
    def sensitivity(self) -> float:
        return math.sqrt(self.levels) * (1.0 + 2.0**-50)

    def sensitivity_to(self, participation: Participation) -> float:
        """Exactly, if blocks lie a power of two apart, 1 included, or are at most `SEARCHED`; otherwise a bound."""
        if participation == ONCE:
            return self.sensitivity
        rows, apart = participation.rows, participation.apart
        each = min(participation.per_release, rows)
        bounded = apart & (apart - 1) == 0 or min(participation.blocks, self.n // apart) > SEARCHED
        most = most_by_height if bounded else most_in_nodes
        return math.sqrt(most(self.n, rows, each, apart)) * (1.0 + 2.0**-50)

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


def most_by_height(n: int, rows: int, each: int, apart: int) -> int:
    """A bound on the sum over all nodes of the squared number of a unit's rows below, from each height's maximum.

    The complete nodes of height h cover the first `2^h·floor(n/2^h)` blocks, of which `apart` limits how many the unit
    has rows in; and below one of them lie at most `each·ceil(2^h/apart)` of its rows. With these two bounds the sum of
    squares is largest if all nodes but one hold as many as they can.

    If `apart` is a power of two, the blocks 0, apart, 2·apart, … fill the nodes of every height from left to right, and
    attain it.

    >>> most_by_height(8, rows=4, each=1, apart=2)  # 4·1 + 4·1 + 2·2² + 4²
    32
    """
    total = 0
    for h in range(n.bit_length()):
        node = each * -(-(2**h) // apart)
        full, rest = divmod(min(rows, each * -(-(n >> h << h) // apart)), node)
        total += full * node**2 + rest**2
    return total


Shape = tuple[int, int, int]
"""Blocks that leave α free at the left and β at the right: those with α ≤ A, β ≤ B, α + β ≤ D, as (A, B, D)."""
Shapes = dict[int, dict[Shape, int]]
"""By number of rows: the largest sum of squares for which there are patterns of a shape."""


@lru_cache(maxsize=256)
def most_in_nodes(n: int, rows: int, each: int, apart: int) -> int:
    """The largest sum over all nodes of the squared number of a unit's rows below, by dynamic programming over nodes.

    For given blocks the sum is convex in the numbers of rows, so the worst pattern has `each` rows in all blocks but
    one, which has what remains. Of the pattern within a node, the rest of the tree sees its number of rows and how far
    its first and its last block lie from the borders. The pairs (α, β) of which it leaves at least α rows free at the
    left and β at the right, with the same number and sum of squares or a larger one, are those of a union of shapes
    `α ≤ A, β ≤ B, α + β ≤ D`. Two patterns fit side by side if the first leaves β' and the second α' with
    `β' + α' ≥ apart - 1`; so shapes (A, B, D) and (A', B', D') with `B + A' ≥ apart - 1` make

        (min(A, D + A' - apart + 1), min(B', B + D' - apart + 1), D + D' - apart + 1),

    which is a shape again. Those inside another one with no smaller a sum are dropped.

    >>> most_in_nodes(16, rows=4, each=1, apart=3), most_by_height(16, rows=4, each=1, apart=3)
    (40, 42)
    """
    rest = rows % each
    forest: tuple[int, Shapes] = (0, {})
    node: Shapes = {}
    nodes = []
    for h in range(n.bit_length()):
        side = 2**h
        node = _side_by_side((side // 2, node), (side // 2, node), rows, each, rest, apart)
        node = {w: {shape: value + w * w for shape, value in shapes.items()} for w, shapes in node.items()}
        anywhere = _within((side - 1, side - 1, side - 1), apart)  # one block
        node |= {w: {anywhere: w * w * (h + 1)} for w in {each, rest} - {0}}
        nodes.append(node)
    for h in reversed(range(n.bit_length())):
        if n >> h & 1:
            forest = forest[0] + 2**h, _side_by_side(forest, (2**h, nodes[h]), rows, each, rest, apart)
    return max(value for shapes in forest[1].values() for value in shapes.values())


def _side_by_side(
    left: tuple[int, Shapes], right: tuple[int, Shapes], rows: int, each: int, rest: int, apart: int
) -> Shapes:
    """The shapes of patterns in two neighbouring parts of these widths."""
    found: Shapes = {}
    gap = apart - 1

    def add(w: int, shape: Shape, value: int) -> None:
        shapes = found.setdefault(w, {})
        shape = _within(shape, apart)
        shapes[shape] = max(value, shapes.get(shape, 0))

    for w, shapes in left[1].items():
        for (A, B, D), value in shapes.items():
            add(w, (A, B + right[0], D + right[0]), value)
    for w, shapes in right[1].items():
        for (A, B, D), value in shapes.items():
            add(w, (A + left[0], B, D + left[0]), value)
    for w, shapes in left[1].items():
        for v, others in right[1].items():
            if w + v > rows or (rest and w % each and v % each):
                continue
            for (A, B, D), value in shapes.items():
                for (A2, B2, D2), more in others.items():
                    if B + A2 - gap >= 0:
                        both = min(A, D + A2 - gap), min(B2, B + D2 - gap), D + D2 - gap
                        add(w + v, both, value + more)
    return {w: _undominated(shapes) for w, shapes in found.items()}


def _within(shape: Shape, apart: int) -> Shape:
    """As far as a neighbour can see: a gap of `apart - 1` is enough on either side."""
    gap = apart - 1
    return min(shape[0], gap), min(shape[1], gap), min(shape[2], 2 * gap)


def _undominated(shapes: dict[Shape, int]) -> dict[Shape, int]:
    """Without shapes that lie inside another one with no smaller a sum."""
    kept: dict[Shape, int] = {}
    for shape, value in sorted(shapes.items(), key=lambda item: (item[1], item[0]), reverse=True):
        if not any(all(a <= b for a, b in zip(shape, other, strict=True)) for other in kept):
            kept[shape] = value
    return kept
