"""Noisy prefix sums by binary trees, compiled."""

from __future__ import annotations

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.mechanisms.blt_pass import Cut, Memories
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.noise.addition import with_noise


def tree_sums(coder: TreeCoder, memories: Memories, rows: Array, k: int, cut: Cut) -> tuple[Memories, Array]:
    """The new memories, and noisy prefix sums from row k on: rows are rounded before they are encoded, on one lattice.

    Slow twin: `TreeCoder`.
    """
    from taciturn.kernel.mechanisms import tree_loops as tree

    (secret, public), largest = memories, cut.largest[:, None]
    clipped = np.clip(np.nan_to_num(rows), -largest, largest)
    waiting, nodes = secret["nodes"].astype(np.int64), public["nodes"].copy()
    encoded = tree.encode(np.floor(clipped / cut.steps[0] + 0.5).astype(np.int64), k, waiting)
    noisy = with_noise(encoded, cut.noise) * cut.steps[:, None]
    return ({"nodes": waiting}, {"nodes": nodes}), tree.decode(noisy, k, len(rows), nodes, coder.weights)
