"""A compiled sampler of rounded Gaussian integers: the ziggurat of Marsaglia and Tsang, with a proven error bound.

Let `F(x) = exp(-x²/2)`, x ≥ 0. If a point is uniform in the area under F, its abscissa x is half-normal. Such points
are drawn by rejection: choose a rectangle, draw a uniform point in it, and accept the point if it lies below F. Then
`x·scale` is rounded to the nearest integer, and a random bit gives the sign. (Both signs of 0 are 0: the cell of 0 has
two halves.) The rectangles are stored in `ziggurat_tables.py`:

* 1,024 layers, each chosen with probability 1/1024. Layer i is `[0, x_i) × [y_i, y_{i+1})`, with `y_0 = 0` and
  `y_{i+1} = y_i + area/x_i`. The layers cover the area under F: `F(x_i) ≤ y_i` for i ≥ 1, and `y_1024 ≥ 1`.
* Layer 0 is a rectangle only up to `edge = 59/64·x_0`, where `F(edge) = y_1`. Its remaining probability, a share of
  5/64, is used for the tail: a share of 2⁻ʲ⁻¹ of that for block j of 92, `[t_j, t_{j+1}) × [0, H_j)`, with
  `t_0 = edge`, `t_92 = REACH + 2⁻²⁰` and `H_j = 5/64·area·2⁻ʲ⁻¹/(t_{j+1} - t_j) ≥ F(t_j)`. Integers beyond
  `REACH·scale` are rejected.

The sampler is correct for any `x_i` and `t_j` for which the rectangles cover the area under F, because the heights are
computed from the widths. Hence rounding `x_i` and `t_j` to multiples of 2⁻⁶⁰, and making layers slightly wider than
necessary, causes no error.

**Bits.** The lowest 10 bits of a 64-bit word select the layer; the other 54 bits are a signed integer s. The sign of s
is the sign of the result. The first 53 bits of U, where `x = U·x_i`, are s, or its complement `-s - 1` if s is
negative: for either sign, all 2⁵³ values are equally likely. The fast path finishes at least 993 of 1,000 attempts with
this word: U is below `inner_i`, where `F(x) ≥ y_{i+1}`, and the remaining bits of U cannot change the integer.
Otherwise a second word extends U to 117 bits and a third word is V, the height within the layer; the tail uses five new
words. On average an integer takes 1.02 words. Words are used in order: `GROUP` integers take one word each, and then
each integer that the fast path did not finish takes the words that it needs. The result does not depend on how many
words are fetched at a time.

**Lemma.** Let P' be the probabilities of the sampler and P those of `round(N(0, scale²))`. Then
`|ln(P'(k)/P(k))| ≤ 2⁻⁴⁶ = LOG_RATIO` for `|k| ≤ REACH·scale`, if the exponential of the C library has an error of at
most 16 units in the last place (that of GNU has one).

*Proof.* Let `ε = 2⁻⁵³`, and fix x. Let i be the layer with `y_i ≤ F(x) < y_{i+1}`. Layers below i always accept x, and
layers above i always reject it. In layer i (in the tail: in the block of x), the point is compared with F by

    a + V·b < exp(-e),   e = d·(t + d/2),   d = x - t,   a = y_i/F(t),   b = (y_{i+1} - y_i)/F(t)   (0, H_j/F(t)),

where t is a nearby point, `x_{i+1}` or `t_j`, so that `|e| < 0.75`. Each of the following errors, relative to
`exp(-e) = F(x)/F(t)`, shifts the height below which x is accepted, and hence the density of x relative to F(x):

    a and b, rounded from 40 digits; the product; the sum                             3 ε
    e: d truncated to 60 fractional bits, d and t as doubles, one sum, one product    4·0.75 ε + 12.1·2⁻⁶⁰ < 3.1 ε
    the exponential, 16 units of at most 2 ε                                         32 ε
    V, of 53 bits: ε·b, where b ≤ 1.1·exp(-e) in the layers, 6·exp(-e) in the tail    6 ε

The sum is 44.1 ε. (If F(x) is within such an error of `y_i`, two layers are compared with F. If F(x) exceeds `y_i` by η
and heights shift by -δ, the two layers lose δ - η and η. If F(x) is below `y_i` by η and heights shift by δ, they gain
η and δ - η. Both sums are δ, as for one layer. The error of V counts twice in this case, 2·1.1 ε.) The error of the
abscissa is negligible: U has at least 117 bits, x is truncated after 124 fractional bits, and `x·scale` is rounded
without error. A cell is at least 2⁻⁴⁰ wide, so it gains or loses at most a share of 2⁻⁷⁴ at its ends. Therefore the
weight of each k is the ideal weight up to a factor `exp(±44.2 ε)`, and so is the sum of all weights. The probability
beyond `REACH` is 4·10⁻³³. In total the log-ratio is at most 89 ε < 128 ε = 2⁻⁴⁶. ∎

*The fast path returns what the slow path would return.* The fast path converts s to a double u and computes `v = u·w`
with `w = x_i·scale·2⁻⁵³` in doubles. After conversions and products, w has a relative error of at most 2.01 ε and v of
at most 3.02 ε. Since `|u| ≤ 2⁵³`, `|v - u·x_i·scale·2⁻⁵³| ≤ 3.1·w`. In the slow path, the signed value `±U·2⁵³` lies
between s and s + 1, because the remaining bits are added to s or, if s is negative, subtracted from s + 1. This changes
the product by less than 1.1·w. The slow path has no other error than the truncation of x after 124 fractional bits,
2⁻⁶⁸·w. So it rounds a number within 4.3·w of v (or of -v, before the sign is applied). If v is more than 6·w away from
the nearest half-integer, which leaves room for the rounding error of that comparison, the slow path rounds to the same
integer as the fast path. If also |u| is below `inner_i/2¹¹`, an integer, then all 64-bit values of U that begin with s
or its complement are below `inner_i`, and the slow path accepts for every V. If the scale is 0, then w and v are 0, and
every entry that the fast path does not finish is set to 0 in `finish`, which uses no words for it. ∎

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

from taciturn.kernel.jit import strict
from taciturn.kernel.noise.sampling import REACH, Bits
from taciturn.kernel.noise.simd import draw_fast
from taciturn.kernel.noise.ziggurat_tables import LAYERS, POINT, Words, tables

GROUP = 16384
"""Number of integers whose first words are taken as one block."""

_MOST = 6  # words that one attempt may use
_NOTHING = np.uint64(2**64 - 1)
_ZERO, _ONE, _SIGN = np.uint64(0), np.uint64(1), np.uint64(63)
_NO_WORDS = np.empty(0, dtype=np.uint64)
_LAYER, _U = np.uint64(LAYERS - 1), np.uint64(2**64 - 2 * LAYERS)


def draw(scales: NDArray[np.float64], repeat: int, bits: Bits) -> NDArray[np.int64]:
    """Draw `repeat` integers for each scale, in order; a scale is 0 or between 2²⁵ and 2⁴⁰.

    >>> from taciturn.kernel.noise.sampling import seeded_bits
    >>> draw(np.array([2.0**30, 0.0]), 2, seeded_bits(1, 0))[2:]
    array([0, 0])
    """
    drawn = np.empty(scales.size * repeat, dtype=np.int64)
    words, place = _NO_WORDS, _NO_WORDS
    for start in range(0, drawn.size, GROUP):
        count = min(GROUP, drawn.size - start)
        size = count + count // 32 + 2 * _MOST
        if drawn.size <= GROUP:
            words = bits(size)
        else:
            place = np.empty(size + 2, dtype=np.uint64) if not start else place  # reused, since new memory is slow
            words = _longer(words, size, bits, place)
        left = draw_fast(drawn, start, scales, repeat, words[:count], fast_path_table())
        done, used = 0, count
        while done < left.size:
            done, used = finish(drawn, start, left, done, scales.view(np.uint64), repeat, words, used, *tables())
            if done < left.size:
                words = _longer(words, words.size + GROUP, bits, place)
        words = words[used:]
    return drawn


@strict
def first_bad(scales: NDArray[np.float64], least: float, most: float) -> int:
    """Where the first scale is that is neither 0 nor between these two; their number, if none is."""
    for i in range(scales.size):
        if not (scales[i] == 0.0 or least <= scales[i] <= most):
            return i
    return scales.size


def _longer(words: Words, size: int, bits: Bits, place: Words) -> Words:
    """Extend these words to at least `size` words; in `place` if it has room for two more."""
    size = max(size, words.size)
    out = place if size + 2 <= place.size else np.empty(size + 2, dtype=np.uint64)
    if words.size:
        out[: words.size] = words
    bits(size - words.size, out[words.size :])
    return out[:size]


def _upper_half(context: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two words."""

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
    """Draw the entries in `left` after the first `done`, while words last; return the numbers of entries and words."""
    while done < left.size:
        entry, at = left[done], np.uint64(used)
        scale = scales[(start + entry) // repeat]
        m = (scale | np.uint64(2**52)) << np.uint64(11)
        shift = np.uint64(POINT - 1 + 1023) - (scale >> np.uint64(52))
        word, k = words[entry], _ZERO if scale << _ONE == _ZERO else _NOTHING  # 0 or -0
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
    """One attempt with more words: the absolute value, or `_NOTHING` if rejected, and the next unused word."""
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
    """The number of trailing zero bits of two words."""
    zeros = _ZERO
    if word == _ZERO:
        word, zeros = following, np.uint64(64)
    while word & _ONE == _ZERO and zeros < np.uint64(128):
        word >>= _ONE
        zeros += _ONE
    return zeros


@cache
def fast_path_table() -> NDArray[np.float64]:
    """Table of the fast path: `inner_i/2¹¹` and `x_i·2⁻⁵³` of each layer."""
    inner, width = tables()[0][:2, :LAYERS]
    ends, widths = (inner >> np.uint64(11)).astype(np.float64), width.astype(np.float64) * 2.0 ** -(53 + POINT)
    return np.stack([ends, widths], axis=1)
