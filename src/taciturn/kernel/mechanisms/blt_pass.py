"""Buffered linear Toeplitz strategies, compiled: noisy sums of many rows, and their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder, coefficients, prefix_squares
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, exchanged


def blt_sums(
    coder: BLTCoder, secret: Arrays, public: Arrays, rows: Array, noise: Integers, steps: Array, largest: Array
) -> tuple[Arrays, Arrays, Array]:
    """The new memories, and noisy prefix sums: all in one loop, which writes nothing but sums."""
    from taciturn.kernel.mechanisms import blt_loops as blt

    th, ph, om, inverse = coder.arrays
    encoder, decoder, total = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
    sums = blt.noisy_sums(rows, largest, steps, noise, (th, om, encoder), (ph, inverse, decoder), total, 1.0)
    return {"buffers": encoder}, {"buffers": decoder, "sum": total}, sums


def restarted_sums(
    coder: RestartedCoder,
    secret: Arrays,
    public: Arrays,
    rows: Array,
    k: int,
    noise: Integers,
    steps: Array,
    largest: Array,
) -> tuple[Arrays, Arrays, Array]:
    """The same from row k on, block by block."""
    sums = np.empty(rows.shape)
    for start, end, _, place in coder.stretches(k, len(rows)):
        at = slice(start, end)
        secret, public = coder.opened(secret, public, place)
        secret, public, sums[at] = blt_sums(coder.inner, secret, public, rows[at], noise[at], steps[at], largest[at])
    return secret, public, sums


def decayed_sums(
    coder: DecayedCoder,
    secret: Arrays,
    public: Arrays,
    rows: Array,
    k: int,
    noise: Integers,
    steps: Array,
    largest: Array,
) -> tuple[Arrays, Arrays, Array]:
    """The same for decayed sums from row k on, with two sets of buffers where both are kept."""
    from taciturn.kernel.mechanisms import blt_loops as blt

    _, ph, _, inverse = coder.arrays
    encoder, decoder, total = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
    sums = np.empty(rows.shape)
    for start, end, both, full in coder.stretches(k, len(rows)):
        at = slice(start, end)
        sides = encoder_of(coder, encoder, both), (ph, inverse, decoder)
        sums[at] = blt.noisy_sums(rows[at], largest[at], steps[at], noise[at], *sides, total, coder.decay)
        if full:
            encoder = exchanged(encoder)
    return {"buffers": encoder}, {"buffers": decoder, "sum": total}, sums


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


@dataclass(frozen=True, eq=False)
class BLT:
    """Slow twin: `BLTCoder`."""

    coder: BLTCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.mechanisms import blt_loops as blt

        th, _, om, _ = self.coder.arrays
        buffers = secret["buffers"].copy()
        return {"buffers": buffers}, blt.encode(rows, th, om, buffers)

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.mechanisms import blt_loops as blt

        _, ph, _, om = self.coder.arrays
        buffers, total = public["buffers"].copy(), public["sum"].copy()
        return {"buffers": buffers, "sum": total}, blt.decode(noisy, ph, om, buffers, total, 1.0)


@dataclass(frozen=True, eq=False)
class Restarted:
    """Slow twin: `RestartedCoder`."""

    coder: RestartedCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled, block by block."""
        encoded = np.empty(rows.shape)
        for start, end, _, place in self.coder.stretches(k, len(rows)):
            secret = self.coder.opened(secret, {}, place)[0]
            secret, encoded[start:end] = BLT(self.coder.inner).encode(secret, rows[start:end], place)
        return secret, encoded

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled, block by block."""
        sums = np.empty(noisy.shape)
        for start, end, _, place in self.coder.stretches(k, count):
            public = self.coder.opened({}, public, place)[1]
            public, sums[start:end] = BLT(self.coder.inner).decode(public, noisy[start:end], place, end - start)
        return public, sums


@dataclass(frozen=True, eq=False)
class Decayed:
    """Slow twin: `DecayedCoder`."""

    coder: DecayedCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled, stretch by stretch."""
        from taciturn.kernel.mechanisms import blt_loops as blt

        buffers = secret["buffers"].copy()
        encoded = np.empty(rows.shape)
        for start, end, both, full in self.coder.stretches(k, len(rows)):
            encoded[start:end] = blt.encode(rows[start:end], *encoder_of(self.coder, buffers, both))
            if full:
                buffers = exchanged(buffers)
        return {"buffers": buffers}, encoded

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.mechanisms import blt_loops as blt

        _, ph, _, om = self.coder.arrays
        buffers, total = public["buffers"].copy(), public["sum"].copy()
        return {"buffers": buffers, "sum": total}, blt.decode(noisy, ph, om, buffers, total, self.coder.decay)
