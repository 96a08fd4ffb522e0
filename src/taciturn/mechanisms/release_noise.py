"""Integer noise by release number, and the shares of the budget in a stream without a horizon.

Without a horizon, release k gets the share `w_k = 1/l(k) - 1/l(k+1)` of the budget, `l(k) = 1 + ln k`; the sum over all
k is 1. Two neighbouring terms are less than a factor of two apart, so that their floating-point difference is exact and
the shares as computed telescope as the formula does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn._util.arrays import Arrays, Integers
from taciturn.accounting.gdp import Privacy
from taciturn.core.schedule import Timetable
from taciturn.noise.sampling import Bits, secret_bits, seeded_bits

BLOCK = 256
"""Releases whose seeded noise is drawn in one block."""

_NEVER = 2**62  # a round that never comes


class NoiseByRelease:
    """Integer noise of `size` entries for each of `count` releases, secret or repeatable; the subclass draws it."""

    def __init__(self, size: int, count: float, claimed: Privacy) -> None:
        self.size = size
        self.count = count
        self.claimed = claimed
        self._cached: tuple[int | None, int, Integers] = (None, 0, np.empty((0, size), dtype=np.int64))

    def draw(self, releases: range, bits: Bits) -> Integers:
        """One row of noise for each of these releases."""
        raise NotImplementedError

    def start(self) -> tuple[Arrays, Arrays]:
        """Independent noise needs no memory."""
        return {}, {}

    def noise(self, seed: int | None, k: int, count: int) -> Integers:
        """Noise for releases k to k + count - 1; from a seed, block by block of releases, however the call is cut."""
        if seed is None:
            return self.draw(range(k, k + count), secret_bits())
        blocks = range((k - 1) // BLOCK, (k + count - 2) // BLOCK + 1)
        rows = np.concatenate([self._seeded_block(seed, block) for block in blocks])
        skipped = k - 1 - blocks[0] * BLOCK
        return rows[skipped : skipped + count]

    def _seeded_block(self, seed: int, block: int) -> Integers:
        """The noise of one block of a simulation; the last block is cached."""
        if self._cached[:2] != (seed, block):
            first = block * BLOCK + 1
            releases = range(first, int(min(first + BLOCK, self.count + 1)))
            self._cached = (seed, block, self.draw(releases, seeded_bits(seed, block)))
        return self._cached[2]


def rounds_from(timetable: Timetable, k: int, count: int) -> Integers:
    """The rounds of `count` releases from k on, of a stream without a horizon; round 1 after its last release.

    >>> from taciturn import at
    >>> rounds_from(Timetable(at([5, 8]), None), 2, 3)
    array([8, 1, 1])
    """
    rounds = timetable.following(k - 1, _NEVER, count)
    return np.append(rounds, np.ones(count - len(rounds), dtype=np.int64))


def share(k: Any) -> Any:
    """The share `w_k` of release k in the budget of a stream without a horizon; for an array of releases, an array.

    >>> bool(round(sum(share(k) for k in range(1, 1001)), 6) == round(shares(1000), 6))
    True
    """
    k = np.asarray(k, dtype=np.float64)  # the logarithm of a short integer would be a half
    return 1.0 / _l(k) - 1.0 / _l(k + 1.0)


def shares(k: int | None) -> float:
    """The sum of the shares of the first k releases; None for all there can ever be."""
    return 1.0 if k is None else float(1.0 - 1.0 / _l(float(k) + 1.0))


def _l(k: Any) -> Any:
    return 1.0 + np.log(k)
