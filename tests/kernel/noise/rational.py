"""The compiled sampler's slow twin, in rational arithmetic: the same words make the same integers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import mpmath as mp
import numpy as np

from taciturn.kernel.noise.sampling import REACH
from taciturn.kernel.noise.ziggurat_tables import BLOCKS, LAYERS, tables

SCALES = [2.0**25, math.nextafter(2.0**26, 0.0), 2.0**30.3, 3.0 * 2.0**37, math.nextafter(2.0**40, 0.0), 2.0**40]
STRIPS = LAYERS + BLOCKS
PLACES = 2**60
EDGE = Fraction(59, 64)
"""Where the lowest layer's rectangle ends, and its tail begins."""
MIRROR = 2**64 - 1024
"""What a word differs in from that of the same layer, the same place in it and the other sign."""


@cache
def column(name: int) -> list[int]:
    """A row of the integer table, as integers: inner, width, start, t."""
    return [int(n) for n in tables()[0][name]]


@cache
def share(strip: int) -> Fraction:
    """The probability that a try is in this layer or block."""
    return Fraction(1, 1024) if strip < LAYERS else (1 - EDGE) / 1024 / 2 ** (strip - LAYERS + 1)


def F(x: Fraction | mp.mpf) -> mp.mpf:
    """`exp(-x²/2)`."""
    x = mp.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else x
    return mp.exp(-(x**2) / 2)


def heights() -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Lower and upper ends of all rectangles, from their widths and shares alone, F(0) being 1."""
    width = column(1)
    edge = EDGE * width[0] / PLACES
    area = F(edge) * width[0]
    tall = [area * 1024 * mp.mpf(share(q).numerator) / share(q).denominator / width[q] for q in range(STRIPS)]
    low = [mp.fsum(tall[:q]) if q < LAYERS else mp.mpf(0) for q in range(STRIPS)]
    return low, [a + b for a, b in zip(low, tall, strict=True)]


def rounded(x: Fraction, scale: float) -> int:
    """The integer that a place becomes."""
    return math.floor(x * Fraction(scale) + Fraction(1, 2))


def signed(word: int) -> int:
    """The signed number of 54 bits above a word's layer."""
    return (word >> 10) - 2**54 * (word >> 63)


def leading(word: int) -> int:
    """The first 53 bits of U: the number itself if it is not negative, or else its complement."""
    return signed(word) if word < 2**63 else ~signed(word)


def sign(word: int) -> int:
    return -1 if signed(word) < 0 else 1


def tailed(words: np.ndarray) -> np.ndarray:
    """Words of the same signs in the tail."""
    return np.where(words >> np.uint64(63), np.uint64(2**63), np.uint64(2**63 - 1024))


def settled(word: int, scale: float) -> bool:
    """Whether a first word is enough, by the rule of the fast path, which is one of doubles."""
    u, w = float(signed(word)), float(column(1)[word & 1023]) * 2.0**-113 * scale
    return abs(u) < column(0)[word & 1023] >> 11 and abs(u * w - round(u * w)) + 6.0 * w < 0.5


def by_definition(scales: Sequence[float], words: np.ndarray, group: int) -> list[int]:
    """An integer of each scale, from words that a group reads one each of first, and then what its rest needs."""
    source, drawn = (int(word) for word in words), []
    with mp.workprec(150):
        ends = heights()
        for start in range(0, len(scales), group):
            some = scales[start : start + group]
            first = [next(source) for _ in some]
            result = [_at_once(word, scale) for word, scale in zip(first, some, strict=True)]
            drawn += [
                _slow_path(first[i], source, some[i], *ends) if result[i] is None else result[i]
                for i in range(len(some))
            ]
    return drawn


def _at_once(word: int, scale: float) -> int | None:
    """What a first word makes, if it is enough."""
    if scale == 0.0 or not settled(word, scale):
        return None if scale else 0
    return sign(word) * rounded(Fraction(leading(word) * column(1)[word & 1023], 2**53 * PLACES), scale)


def _slow_path(word: int, source: Iterator[int], scale: float, low: list[mp.mpf], high: list[mp.mpf]) -> int:
    """What a first word and those that follow make, in as many tries as it takes."""
    while True:
        strip, u = word & 1023, Fraction(leading(word), 2**53)
        if strip == 0 and u >= EDGE:
            string = next(source) | next(source) << 64
            strip = LAYERS + ((string & -string).bit_length() - 1 if string else 128)
            u, v = Fraction(next(source) << 64 | next(source), 2**128), next(source) >> 11
        else:
            u, v = u + Fraction(next(source), 2**117), next(source) >> 11
        if strip < STRIPS:
            x = (column(2)[strip] + u * column(1)[strip]) / PLACES
            inside = strip == 0 or low[strip] + mp.mpf(v) / 2**53 * (high[strip] - low[strip]) < F(x)
            if inside and rounded(x, scale) <= REACH * Fraction(scale):
                return sign(word) * rounded(x, scale)
        word = next(source)
