"""Noise on the prefix sums of many releases at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.mechanisms import prefix_sum
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.blt_pass import (
    BLT,
    Decayed,
    Restarted,
    blt_errors,
    blt_sums,
    decayed_sums,
    restarted_sums,
)
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, Lasting
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.stream.batch_pass import Noisy


@dataclass(frozen=True, eq=False)
class PrefixSumNoise:
    """Noise on encoded statistics, and prefix sums decoded from them. Slow twin: `prefix_sum.NoisySums`."""

    calibrated: prefix_sum.NoisySums

    @staticmethod
    def of(calibrated: prefix_sum.NoisySums) -> PrefixSumNoise | None:
        """If the strategy has batch methods."""
        return PrefixSumNoise(calibrated) if type(calibrated.coder) in STRATEGIES else None

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """Noise for all rows that these releases encode, in one array."""
        return self.calibrated.noise_rows(seed, k, count)

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """Encoded, rounded, noisy, decoded; statistics are first clipped to what was certified."""
        from taciturn.kernel.mechanisms import lattice_loops as lattice

        calibrated = self.calibrated
        coder = self.calibrated.coder
        count = len(statistics)
        steps, largest = calibrated.steps(k, count), calibrated.largest_of(k, count)
        sds = noise_sds(calibrated, k, count)
        if type(coder) is BLTCoder:
            return Noisy(*blt_sums(coder, secret, public, statistics, noise, steps, largest), sds)
        if type(coder) is RestartedCoder:
            return Noisy(*restarted_sums(coder, secret, public, statistics, k, noise, steps, largest), sds)
        if type(coder) is DecayedCoder:
            return Noisy(*decayed_sums(coder, secret, public, statistics, k, noise, steps, largest), sds)
        strategy = STRATEGIES[type(coder)](coder)
        rows = lattice.clipped(statistics, largest)
        if coder.integer:
            integers = lattice.to_lattice(rows, np.full(count, calibrated.step(k)))
            secret, encoded = strategy.encode(secret, integers, k)
            noisy = lattice.from_lattice(encoded + noise, steps)
        else:
            secret, encoded = strategy.encode(secret, rows, k)
            noisy = lattice.add_noise_batch(encoded, steps, math.inf, noise)
        public, sums = strategy.decode(public, noisy, k, count)
        return Noisy(secret, public, sums, sds)


def noise_sds(calibrated: prefix_sum.NoisySums, k: int, count: int) -> Array:
    """Standard deviations of `count` noisy sums, from the k-th on, independent of how releases are cut."""
    coder: Any = calibrated.coder
    if type(coder) in (BLTCoder, DecayedCoder):
        return calibrated.sd * blt_errors(coder, k, count)
    if type(coder) is RestartedCoder:
        parts = coder.stretches(k, count)
        found = [coder.with_earlier(at, blt_errors(coder.inner, place, end - start)) for start, end, at, place in parts]
        return calibrated.sd * np.concatenate([np.empty(0), *found])
    return calibrated.sd * coder.error(np.arange(k, k + count))


class Strategy(Protocol):
    """Many rows of a strategy at once, from row k on."""

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """The encoded rows that these rows add, up to rounding."""

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """As many prefix sums, up to rounding."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Slow twin: `TreeCoder`."""

    coder: TreeCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.mechanisms import tree_loops as tree

        waiting = secret["nodes"].astype(rows.dtype)
        return {"nodes": waiting}, tree.encode(rows, k, waiting)

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.mechanisms import tree_loops as tree

        nodes = public["nodes"].copy()
        return {"nodes": nodes}, tree.decode(noisy, k, count, nodes, self.coder.weights)


STRATEGIES: dict[type, Callable[[Any], Strategy]] = {
    TreeCoder: Tree,
    BLTCoder: BLT,
    RestartedCoder: Restarted,
    DecayedCoder: Decayed,
}
"""Batch methods of each strategy, by its exact type."""

KINDS = (prefix_sum.Finite, prefix_sum.Endless, prefix_sum.LastingSums, Lasting)
"""Mechanisms with noise on encoded rows: exact types."""
