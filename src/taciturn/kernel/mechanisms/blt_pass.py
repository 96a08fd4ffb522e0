"""Buffered linear Toeplitz strategies, compiled: noisy sums of many rows, and their errors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder, coefficients, prefix_squares
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, exchanged


class Cut(NamedTuple):
    """The noise of all rows that a block encodes, their lattice steps, and the bounds on statistics."""

    noise: Integers
    steps: Array
    largest: Array

    def part(self, at: slice) -> Cut:
        """Those of some of the rows."""
        return Cut(self.noise[at], self.steps[at], self.largest[at])


Memories = tuple[Arrays, Arrays]
"""The secret and the public memory of a strategy."""


def blt_sums(coder: BLTCoder, memories: Memories, rows: Array, k: int, cut: Cut) -> tuple[Memories, Array]:
    """The new memories, and noisy prefix sums from row k on: all in one loop, which writes nothing but sums."""
    from taciturn.kernel.mechanisms import blt_loops as blt

    (secret, public), (th, ph, om, inverse) = memories, coder.arrays
    encoder, decoder, total = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
    sides = (th, om, encoder), (ph, inverse, decoder)
    sums = blt.noisy_sums(rows, cut.largest, cut.steps, cut.noise, *sides, total, 1.0)
    return ({"buffers": encoder}, {"buffers": decoder, "sum": total}), sums


def restarted_sums(coder: RestartedCoder, memories: Memories, rows: Array, k: int, cut: Cut) -> tuple[Memories, Array]:
    """The same block by block."""
    sums = np.empty(rows.shape)
    for start, end, _, place in coder.stretches(k, len(rows)):
        at = slice(start, end)
        memories = coder.opened(*memories, place)
        memories, sums[at] = blt_sums(coder.inner, memories, rows[at], place, cut.part(at))
    return memories, sums


def decayed_sums(coder: DecayedCoder, memories: Memories, rows: Array, k: int, cut: Cut) -> tuple[Memories, Array]:
    """The same for decayed sums, with two sets of buffers where both are kept."""
    from taciturn.kernel.mechanisms import blt_loops as blt

    (secret, public), (_, ph, _, inverse) = memories, coder.arrays
    encoder, decoder, total = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
    sums = np.empty(rows.shape)
    for start, end, both, full in coder.stretches(k, len(rows)):
        at = slice(start, end)
        noise, steps, largest = cut.part(at)
        sides = encoder_of(coder, encoder, both), (ph, inverse, decoder)
        sums[at] = blt.noisy_sums(rows[at], largest, steps, noise, *sides, total, coder.decay)
        if full:
            encoder = exchanged(encoder)
    return ({"buffers": encoder}, {"buffers": decoder, "sum": total}), sums


def encoder_of(coder: DecayedCoder, buffers: Array, both: bool) -> tuple[Array, Array, Array]:
    """Decays, weights and buffers of the first set, or of both, of which the second adds nothing to encoded rows."""
    th, _, om, _ = coder.arrays
    return (*coder.both, buffers) if both else (th, om, buffers[: len(th)])


ERRORS_IN_BLOCK = 2**13
"""Errors that are computed in one block."""


def blt_errors(coder: BLTCoder | DecayedCoder, k: int, count: int) -> Array:
    """`coder.error` of as many rows from the k-th on, up to 2⁻⁴⁰ of it; blocks of them are cached."""
    first, last = (k - 1) // ERRORS_IN_BLOCK, (k + count - 2) // ERRORS_IN_BLOCK
    rows = errors_of_block(coder, first)
    if last > first:
        rows = np.concatenate([errors_of_block(coder, block) for block in range(first, last + 1)])
    return rows[k - 1 - first * ERRORS_IN_BLOCK :][:count]


@lru_cache(maxsize=64)
def errors_of_block(coder: BLTCoder | DecayedCoder, block: int) -> Array:
    """The closed form for the first row of a block, then term by term; where decayed sums have settled, their limit."""
    from taciturn.kernel.mechanisms import blt_loops as blt

    first = block * ERRORS_IN_BLOCK
    if isinstance(coder, DecayedCoder):
        if first > coder.kept:  # what is left to add is below exp(-64) of the limit
            return _settled(coder)
        terms, rates = coder.terms
        before = float(coder.error(first)) ** 2 if first else 0.0
        return fixed(np.sqrt(blt.squared_errors(before, 0.0, terms, rates, rates**first, ERRORS_IN_BLOCK)))
    th, ph = coder.arrays[:2]
    b, be = coefficients(th, ph)
    before = float(prefix_squares(th, ph, np.asarray(float(first)))) if first else 0.0
    return fixed(np.sqrt(blt.squared_errors(before, float(b), be, ph, ph**first, ERRORS_IN_BLOCK)))


@lru_cache(maxsize=64)
def _settled(coder: DecayedCoder) -> Array:
    """The limit of the errors of decayed sums, for a block."""
    return fixed(np.full(ERRORS_IN_BLOCK, float(coder.error(math.inf))))
