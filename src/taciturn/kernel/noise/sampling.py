"""Integer Gaussian and Gumbel noise from secret bits: the only source of randomness that protects data.

`lattice_normal` draws `round(N(0, scale²))` as integers. Adding it to an integer vector is the same as rounding
`vector + N(0, scale²)`, a post-processing of the Gaussian mechanism, so no low bits leak (Mironov, *On Significance of
the Least Significant Bits for Differential Privacy*, 2012).

**The sampler** is a compiled ziggurat that rounds exactly (`taciturn.kernel.noise.ziggurat`, where its proof is):
within `REACH` standard deviations a value has the probability that rounding a Gaussian would give it, up to a factor
`exp(±LOG_RATIO)`, and none is drawn beyond. `sampling_cost` says what that costs, and every guarantee includes it.

`lattice_gumbel` draws Gumbel noise in units of `GUMBEL_STEP`, where only the winner is published: there
rounding is no post-processing, and what counts is how far each value lies from an ideal one.

**The bits** are AES-256 in counter mode, under a key drawn from the operating system for each call and then forgotten:
nothing to store, to copy into a forked process, or to share between threads. It is the counter mode inside GCM, for
which OpenSSL has faster code than for the plain one; its tag is not used, and a key ends, with an error, after 64 GiB.
Up to `FEW` words are taken from the operating system's generator itself, which takes less time than to set up a key.
"""

from __future__ import annotations

import hashlib
import math
import os
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from taciturn.kernel.accounting.cost import Cost
from taciturn.kernel.errors import InvalidInput

SMALLEST_SCALE = 2.0**25
LARGEST_SCALE = 2.0**40
REACH = 12
"""Standard deviations beyond which nothing is drawn."""

LOG_RATIO = 2.0**-46
"""Bound on |ln(P'(k)/P(k))|, P' the sampler's probabilities and P the rounded Gaussian's, within `REACH`."""

GUMBEL_STEP = 2.0**-32
"""The unit of Gumbel noise."""

GUMBEL_ERROR = 0.51
"""Each integer of `lattice_gumbel` lies within this many units of an ideal Gumbel variable."""

FEW = 256
"""Words up to which the operating system's own generator is used instead of a key drawn from it."""

_ZEROS = bytes(2**18)  # what is encrypted, in pieces


class Bits(Protocol):
    """A source of words of 64 random bits."""

    def __call__(self, count: int, into: NDArray[np.uint64] | None = None, /) -> NDArray[np.uint64]:
        """The next `count` words, written at the start of `into` if that is given; it has two to spare."""
        ...


def secret_bits() -> Bits:
    """A source of unpredictable 64-bit words: few of them from the operating system, others under a key from there."""
    keyed: list[Bits] = []  # one key, drawn when it is needed

    def bits(count: int, into: NDArray[np.uint64] | None = None, /) -> NDArray[np.uint64]:
        if count > FEW:
            if not keyed:
                keyed.append(_counter_mode(os.urandom(32)))
            return keyed[0](count, into)
        words = np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)  # writable, as compiled code knows it
        if into is None:
            return words
        into[:count] = words
        return into[:count]

    return bits


def seeded_bits(seed: int, block: int) -> Bits:
    """A repeatable source for one block of a simulation's releases; it protects no data."""
    return _counter_mode(hashlib.sha256(f"taciturn simulation {int(seed)} {int(block)}".encode()).digest())


def lattice_normal(scale: ArrayLike, shape: tuple[int, ...], bits: Bits | None = None) -> NDArray[np.int64]:
    """Integers distributed as `round(N(0, scale²))`; `scale` may be an array that broadcasts to `shape`.

    A scale of 0 gives zeros. Others must lie between 2²⁵ and 2⁴⁰, which mechanisms arrange by their lattice step.

    >>> lattice_normal(2.0**30, (2, 3)).dtype
    dtype('int64')
    """
    ziggurat = _ziggurat()
    scales, repeat = _runs(np.asarray(scale, dtype=np.float64), shape)
    one = len(scales) == 1 and SMALLEST_SCALE <= scales[0] <= LARGEST_SCALE
    if not one and (bad := ziggurat.first_bad(scales, SMALLEST_SCALE, LARGEST_SCALE)) < len(scales):
        raise InvalidInput(
            f"the noise's scale on its lattice must be 0 or between 2^25 and 2^40, got {scales[bad]}. "
            "Choose another lattice step."
        )
    drawn: NDArray[np.int64] = ziggurat.draw(scales, repeat, bits or secret_bits())
    return drawn.reshape(shape)


def lattice_gumbel(shape: tuple[int, ...], bits: Bits | None = None) -> NDArray[np.int64]:
    """Integers `round(G/GUMBEL_STEP)`, G standard Gumbel, each within `GUMBEL_ERROR` units of an ideal one.

    `G = -ln E`, `E = -ln U`, and U, uniform on (0, 1), is H or 1 - H by a fair coin, H uniform on (0, 1/2): both ends
    keep their relative precision. `H = m·2⁻ᵉ`: e - 2 is the number of zeros before the first one in a string of
    bits, as long as it takes, and `m = 1 + f`, f a fraction of 52 fresh bits. With `D = e·ln 2 - ln m = -ln H`,

        G = -ln D   where U = H,      G = D - ln(-log1p(-H)/H)   where U = 1 - H,

    so no number underflows; for e > 64 the last logarithm is below 2⁻⁶⁴ and H is taken at e = 64.

    *Proof of the distance.* Fresh bits without end after the 52 would make m an ideal m*, and U and G ideal, with
    `0 ≤ m* - m < 2⁻⁵²`. As `|dG/d ln H|` is `1/D ≤ 1/ln 2` where U = H and `H/((1-H)·-ln(1-H)) ≤ 1/(1-H) ≤ 2` where
    U = 1 - H, cutting m off moves G by at most 2⁻⁵¹. Let logarithms err by at most 4 units in the last place. D errs by
    at most `2⁻⁵¹·(1 + D)`: the double next to ln 2, a product, a difference, and ln m. As D ≥ ln 2, that is a relative
    2⁻⁴⁹, which with the error of ln D puts the first G within 2⁻⁴⁷. In the second the ratio, between 1 and 1.39, errs
    by a relative 2⁻⁴⁹, D by 2⁻³⁹·⁵ and the difference by 2⁻⁴¹·⁵, for e ≤ 4,096. So G errs by less than 2⁻³⁹, 1/128 of
    a unit, and rounding it by half a unit: 0.508 in all. ∎

    (e > 4,096 has probability 2⁻⁴⁰⁹⁵, which mechanisms charge as the least positive delta there is.)

    >>> lattice_gumbel((2, 3)).dtype
    dtype('int64')
    """
    bits = bits or secret_bits()
    count = math.prod(shape)
    e = _zeros(count, bits) + 2
    word = bits(count)
    m = 1.0 + (word >> np.uint64(12)).astype(np.float64) * 2.0**-52
    D = e * math.log(2.0) - np.log(m)
    H = np.ldexp(m, -np.minimum(e, 64))
    G = np.where(word & np.uint64(1), D - np.log(-np.log1p(-H) / H), -np.log(D))
    return np.rint(G / GUMBEL_STEP).astype(np.int64).reshape(shape)


def sampling_cost(draws: int, shift: float) -> Cost:
    """What `draws` values add to a guarantee, if a neighbour moves no release by more than `shift` standard deviations.

    *Proof.* Let R be the outcomes in which every value lies within `REACH` of both worlds' statistics. On R the
    probabilities P', Q' of the two are within a factor `exp(±e/2)`, `e = 2·draws·LOG_RATIO`, of the ideal P, Q. Outside
    of R a world draws only what lies beyond the other's reach: with probability `d = 2·draws·Phi(shift - REACH)` or
    less. So

        P'(S) ≤ d + P'(S∩R) ≤ d + exp(e/2)·(exp(epsilon)·Q(S∩R) + delta) ≤ exp(epsilon + e)·Q'(S) + exp(e/2)·delta + d:

    d is added once, and not multiplied by `exp(epsilon)`, since nothing outside of R is compared with Q'. ∎

    >>> sampling_cost(10**7, shift=2.0).extra_epsilon < 1e-5
    True
    """
    return Cost(0.0, 0.0, *sampling_parts(draws, shift))


def sampling_parts(draws: int, shift: float) -> tuple[float, float]:
    """The `extra_epsilon` and the `extra_delta` of `sampling_cost`.

    >>> sampling_parts(10**7, 2.0) == sampling_cost(10**7, 2.0).parts[2:4]
    True
    """
    return 2.0 * draws * LOG_RATIO, 2.0 * draws * _beyond(shift) * (1.0 + 1e-9)


@lru_cache(maxsize=64)
def _beyond(shift: float) -> float:
    return float(ndtr(shift - REACH))


@cache
def _ziggurat() -> Any:
    """The compiled sampler: Numba takes longer to import than all of this package."""
    from taciturn.kernel.noise import ziggurat

    return ziggurat


def _runs(scales: NDArray[np.float64], shape: tuple[int, ...]) -> tuple[NDArray[np.float64], int]:
    """The scales in order, broadcast to `shape`, and how often each one is repeated."""
    if len(shape) == 2 and scales.shape == (shape[0], 1):  # as most mechanisms have them
        return scales.flatten(), shape[1]
    scales, repeat = np.broadcast_to(scales, shape), 1
    while scales.ndim and scales.size and scales.strides[-1] == 0:
        repeat *= scales.shape[-1]
        scales = scales[..., 0]
    return scales.flatten(), repeat


def _zeros(count: int, bits: Bits) -> NDArray[np.int64]:
    """How many zeros come before the first one, in `count` strings of bits, each read from its lowest bit on."""
    zeros = np.zeros(count, dtype=np.int64)
    reading = np.arange(count)
    while reading.size:
        word = bits(reading.size)
        lowest = word & (~word + np.uint64(1))  # a power of two, so exact as a float
        zeros[reading] += np.where(word == 0, 64, np.frexp(lowest.astype(np.float64))[1] - 1)
        reading = reading[word == 0]
    return zeros


def _counter_mode(key: bytes) -> Bits:
    encryptor = Cipher(algorithms.AES(key), modes.GCM(bytes(12))).encryptor()

    def bits(count: int, into: NDArray[np.uint64] | None = None, /) -> NDArray[np.uint64]:
        out = np.empty(count + 2, dtype=np.uint64) if into is None else into  # OpenSSL asks for 15 bytes to spare
        zeros = memoryview(_ZEROS)[: 8 * count] if 8 * count <= len(_ZEROS) else bytes(8 * count)
        encryptor.update_into(zeros, out.data.cast("B"))
        return out[:count]

    return bits
