"""Noise on the prefix sums of many releases at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.mechanisms import prefix_sum
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.blt_pass import Cut, Memories, blt_errors, blt_sums, decayed_sums, restarted_sums
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, Lasting
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.mechanisms.tree_pass import tree_sums
from taciturn.kernel.stream.batch_pass import Noisy


@dataclass(frozen=True, eq=False)
class PrefixSumNoise:
    """Noise on encoded statistics, and prefix sums decoded from them. Slow twin: `prefix_sum.NoisySums`."""

    calibrated: prefix_sum.NoisySums

    @staticmethod
    def of(calibrated: prefix_sum.NoisySums) -> PrefixSumNoise | None:
        """If the strategy has a compiled form."""
        return PrefixSumNoise(calibrated) if type(calibrated.coder) in SUMS else None

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """Noise for all rows that these releases encode, in one array."""
        return self.calibrated.noise_rows(seed, k, count)

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """Encoded, rounded, noisy, decoded; statistics are first clipped to what was certified."""
        calibrated, count = self.calibrated, len(statistics)
        cut = Cut(noise, calibrated.steps(k, count), calibrated.largest_of(k, count))
        (secret, public), sums = SUMS[type(calibrated.coder)](calibrated.coder, (secret, public), statistics, k, cut)
        return Noisy(secret, public, sums, noise_sds(calibrated, k, count))


def noise_sds(calibrated: prefix_sum.NoisySums, k: int, count: int) -> Array:
    """Standard deviations of `count` noisy sums, from the k-th on, independent of how releases are cut."""
    coder: Any = calibrated.coder
    if type(coder) in (BLTCoder, DecayedCoder):
        return calibrated.sd * blt_errors(coder, k, count)
    if type(coder) is RestartedCoder:
        parts = coder.stretches(k, count)
        found = [coder.with_earlier(at, blt_errors(coder.inner, place, end - start)) for start, end, at, place in parts]
        return calibrated.sd * np.concatenate([np.empty(0), *found])
    return np.asarray(calibrated.sd * coder.error(np.arange(k, k + count)))


SUMS: dict[type, Callable[[Any, Memories, Array, int, Cut], tuple[Memories, Array]]] = {
    TreeCoder: tree_sums,
    BLTCoder: blt_sums,
    RestartedCoder: restarted_sums,
    DecayedCoder: decayed_sums,
}
"""Noisy prefix sums of many rows, from row k on, through each strategy, by its exact type."""

KINDS = (prefix_sum.Finite, prefix_sum.Endless, prefix_sum.LastingSums, Lasting)
"""Mechanisms with noise on encoded rows: exact types."""
