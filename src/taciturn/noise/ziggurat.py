"""A compiled sampler of rounded Gaussian integers: Marsaglia and Tsang's ziggurat, with as many bits as it takes.

Under `F(x) = exp(-x²/2)`, x ≥ 0, lie points whose abscissa is half-normal. They are found by rejection: a rectangle is
chosen, a point in it, and the point is accepted if it lies below F. Then `x·scale` is rounded to the nearest integer
and a coin gives the sign (both signs of 0 are 0, as both halves of its cell should be). The rectangles (in
`ziggurat_tables.py`):

* 1,024 layers, chosen with probability 1/1024 each: layer i is `[0, x_i) × [y_i, y_{i+1})`, with `y_0 = 0` and
  `y_{i+1} = y_i + area/x_i`. The layers cover F between them: `F(x_i) ≤ y_i` for i ≥ 1, and `y_1024 ≥ 1`.
* Layer 0 is a rectangle up to its `edge = 59/64·x_0` only, where `F(edge) = y_1`. Its remaining share of 5/64 is spent
  on the tail, 2⁻ʲ⁻¹ of it on block j of 92, `[t_j, t_{j+1}) × [0, H_j)`, `t_0 = edge`, `t_92 = REACH + 2⁻²⁰`. There
  `H_j = 5/64·area·2⁻ʲ⁻¹/(t_{j+1} - t_j) ≥ F(t_j)`. Integers beyond `REACH·scale` are rejected.

Any `x_i` and `t_j` will do that make the rectangles cover F, for heights follow from widths: nothing is lost by their
being rounded to multiples of 2⁻⁶⁰, nor by layers being a little wider than they need to be.

**Bits.** The lowest 10 bits of a word are the layer, and the other 54 a signed number s. Its sign is the coin, and s,
or its complement `-s - 1` where it is negative, are the first 53 bits of U, `x = U·x_i`: of either sign each of 2⁵³
numbers has the same probability. That settles 993 tries of 1,000 or more on the fast path: U is below `inner_i`, where
`F(x) ≥ y_{i+1}`, and whatever bits follow, the same integer comes out. Otherwise a second word continues U to 117 bits
and a third is V, the height within the layer; the tail takes five fresh words. So an integer costs 1.02 words. They are
read in order: `GROUP` integers take a word each, and then those that it did not settle, one after another, what they
need. What is drawn does not depend on how many are fetched at a time.

**Lemma.** `|ln(P'(k)/P(k))| ≤ 2⁻⁴⁶ = LOG_RATIO` for `|k| ≤ REACH·scale`, P' the probabilities of what is drawn and P
those of `round(N(0, scale²))`, if the C library's exponential errs by at most 16 units in the last place (GNU's: one).

*Proof.* Let `ε = 2⁻⁵³`, and x be given. Layers under the one that F passes through at x, `y_i ≤ F(x) < y_{i+1}`, keep x
always, those above never, and F is tested in this one (in the tail: in the block of x) as

    a + V·b < exp(-e),   e = d·(t + d/2),   d = x - t,   a = y_i/F(t),   b = (y_{i+1} - y_i)/F(t)   (0, H_j/F(t)),

at a point t near by, `x_{i+1}` or `t_j`, so that `|e| < 0.75`. Relative to `exp(-e) = F(x)/F(t)`, these errors shift
the height at which x is given up, and so the density of x relative to F(x):

    a and b, rounded from 40 digits; the product; the sum                             3 ε
    e: d cut to 60 bits after the point, d and t made doubles, a sum, a product       4·0.75 ε + 12.1·2⁻⁶⁰ < 3.1 ε
    the exponential, 16 units of at most 2 ε                                         32 ε
    V, of 53 bits: ε·b, where b ≤ 1.1·exp(-e) in the layers, 6·exp(-e) in the tail    6 ε

together 44.1 ε. (Within such an error of `y_i` two layers are tested. If F(x) exceeds `y_i` by η and heights shift by
-δ, they lose δ - η and η; if it falls short by η and they shift by δ, they gain η and δ - η: no more than one layer.
V's term counts twice, and is 2.2 ε then.) The abscissa is as good as exact: U has 117 bits or more, x is cut after 124
places, and `x·scale` is rounded without error, so that a cell, which is 2⁻⁴⁰ wide or wider, gains or loses a share of
2⁻⁷⁴ at its ends. So the weight of each k is its ideal one up to a factor `exp(±44.2 ε)`, so is the sum of all weights,
and what lies beyond `REACH` is a share of 4·10⁻³³: altogether 89 ε < 128 ε = 2⁻⁴⁶. ∎

*The fast path settles what the slow path would draw.* It takes s, which is a double u, and doubles: `v = u·w`,
`w = x_i·scale·2⁻⁵³`. Made doubles and multiplied, w has a relative error of at most 2.01 ε and v of 3.02 ε; as
`|u| ≤ 2⁵³`, that is `|v - u·x_i·scale·2⁻⁵³| ≤ 3.1·w`. The signed place of the slow path, `±U·2⁵³` of these units, lies
between s and s + 1: the bits that follow add to s or, where s is negative, take from s + 1. That is less than 1.1·w. So
the slow path, which loses nothing but what x has after 124 places, 2⁻⁶⁸·w, rounds a number within 4.3·w of v, or of -v
before it puts the sign on. Where v is more than 6·w away from the nearest half-integer, with room for the rounding of
that comparison, it finds v's nearest integer; and where |u| is below `inner_i/2¹¹`, an integer, all 64 bits of U that
begin with s or its complement are below `inner_i`, and it accepts what it draws whatever V is. A scale of 0 makes w and
v 0, and whatever is not settled is 0 in `finish`, which takes no word for it. ∎

Marsaglia, Tsang: *The Ziggurat Method for Generating Random Variables*, J. Stat. Softw. 5(8), 2000.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from taciturn._util.jit import strict
from taciturn.noise.sampling import REACH, Bits
from taciturn.noise.simd import draw_fast
from taciturn.noise.ziggurat_tables import LAYERS, POINT, Words, tables

GROUP = 16384
"""Integers that take their first words in one block."""

_MOST = 6  # words that a try may take
_NOTHING = np.uint64(2**64 - 1)
_ZERO, _ONE, _SIGN = np.uint64(0), np.uint64(1), np.uint64(63)
_LAYER, _U = np.uint64(LAYERS - 1), np.uint64(2**64 - 2 * LAYERS)


def draw(scales: NDArray[np.float64], repeat: int, bits: Bits) -> NDArray[np.int64]:
    """`repeat` integers of each scale, 0 or between 2²⁵ and 2⁴⁰, in order.

    >>> from taciturn.noise.sampling import seeded_bits
    >>> draw(np.array([2.0**30, 0.0]), 2, seeded_bits(1, 0))[2:]
    array([0, 0])
    """
    drawn = np.empty(scales.size * repeat, dtype=np.int64)
    as_words, rectangles, words = scales.view(np.uint64), tables(), np.empty(0, dtype=np.uint64)
    most = min(GROUP, drawn.size)
    place = np.empty(most + most // 32 + 2 * _MOST + 2, dtype=np.uint64)  # always the same: fresh memory is slow
    for start in range(0, drawn.size, GROUP):
        count = min(GROUP, drawn.size - start)
        words = _longer(words, count + count // 32 + 2 * _MOST, bits, place)
        left = draw_fast(drawn, start, scales, repeat, words[:count], fast_path_table())
        done, used = 0, count
        while True:
            done, used = finish(drawn, start, left, done, as_words, repeat, words, used, *rectangles)
            if done == left.size:
                break
            words = _longer(words, words.size + GROUP, bits, place)
        words = words[used:]
    return drawn


def _longer(words: Words, size: int, bits: Bits, place: Words) -> Words:
    """These words and those that follow them, `size` in all or more; in this place, if it has room for two more."""
    size = max(size, words.size)
    out = place if size + 2 <= place.size else np.empty(size + 2, dtype=np.uint64)
    out[: words.size] = words
    bits(size - words.size, out[words.size :])
    return out[:size]


def _upper_half(context: Any, a: Any, b: Any) -> Any:
    """Of the product of two words."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), build


_high: Any = intrinsic(_upper_half)


@strict
def finish(
    drawn: NDArray[np.int64],
    start: int,
    left: NDArray[np.int64],
    done: int,
    scales: Words,
    repeat: int,
    words: Words,
    used: int,
    integers: Words,
    real: NDArray[Any],
) -> tuple[int, int]:
    """Draw what is left, from the entry after `done` of them on, while words last: how many are done, and used."""
    while done < left.size:
        entry, at = left[done], np.uint64(used)
        scale = scales[(start + entry) // repeat]
        m = (scale | np.uint64(2**52)) << np.uint64(11)
        shift = np.uint64(POINT - 1 + 1023) - (scale >> np.uint64(52))
        word, k = words[entry], _ZERO if scale << _ONE == _ZERO else _NOTHING  # of either sign
        while k == _NOTHING:
            if at + np.uint64(_MOST) > np.uint64(words.size):
                return done, used
            k, at = _slow_path(word, words, at, m, shift, integers, real)
            if k == _NOTHING:
                word = words[at]
                at += _ONE
        minus = -(word >> _SIGN)
        drawn[start + entry] = np.int64((k ^ minus) - minus)
        done, used = done + 1, int(np.int64(at))  # an unsigned one would turn `used` into a float
    return done, used


@strict
def _slow_path(
    word: np.uint64, words: Words, at: np.uint64, m: np.uint64, shift: np.uint64, integers: Words, real: NDArray[Any]
) -> tuple[np.uint64, np.uint64]:
    """The same try with more words: the integer without its sign, or `_NOTHING`, and where the next try begins."""
    strip, high = word & _LAYER, (~word if word >> _SIGN else word) << _ONE & _U
    sure = high < integers[0, strip]
    if strip != _ZERO or sure:
        high |= words[at] >> np.uint64(53)
        low, v = words[at] << np.uint64(11), words[at + _ONE]
        at += np.uint64(2)
    else:
        strip = np.uint64(LAYERS) + _zeros(words[at], words[at + _ONE])
        high, low, v = words[at + np.uint64(2)], words[at + np.uint64(3)], words[at + np.uint64(4)]
        at += np.uint64(5)
        if strip >= np.uint64(integers.shape[1]):
            return _NOTHING, at
    width, start, near = integers[1, strip], integers[2, strip], integers[3, strip]
    rest = width * high
    fine = rest + _high(width, low)
    x = start + _high(width, high) + np.uint64(fine < rest)  # and 2^-64 of fine
    if not sure:
        t, d = np.float64(near) * 2.0**-POINT, np.float64(np.int64(x - near)) * 2.0**-POINT
        height = real[0, strip] + np.float64(v >> np.uint64(11)) * 2.0**-53 * real[1, strip]
        if not height < math.exp(-d * (t + 0.5 * d)):
            return _NOTHING, at
    rest = m * x
    c = _high(m, x) + np.uint64(rest + _high(m, fine) < rest)
    k = (c + (_ONE << (shift - _ONE))) >> shift
    return (k if k << shift <= np.uint64(REACH) * (m >> np.uint64(4)) else _NOTHING), at


@strict
def _zeros(word: np.uint64, following: np.uint64) -> np.uint64:
    """How many zeros two words have before their first one, from the lowest bit on."""
    zeros = _ZERO
    if word == _ZERO:
        word, zeros = following, np.uint64(64)
    while word & _ONE == _ZERO and zeros < np.uint64(128):
        word >>= _ONE
        zeros += _ONE
    return zeros


@cache
def fast_path_table() -> NDArray[np.float64]:
    """Table of the fast path: up to where a layer's U, in units of 2⁻⁵³, is below F, and its width in such units."""
    inner, width = tables()[0][:2, :LAYERS]
    ends, widths = (inner >> np.uint64(11)).astype(np.float64), width.astype(np.float64) * 2.0 ** -(53 + POINT)
    return np.stack([ends, widths], axis=1)
