"""The fast path of the sampler: eight words at a time, by SIMD. Its proof is in `ziggurat`.

A word of U and of a layer, of which `(end, width)` is known, and a scale make an integer, settled or not:

    u = word >> 10,   step = width·scale,   v = u·step,   settled if |u| < end and |v - round(v)| + 6·step < 1/2,

a word being a signed number here, as u is. This is written in LLVM's terms, for vectors of eight numbers. The two
numbers of a layer lie side by side, are loaded as a pair, and are made vectors in registers: left to itself, the
compiler takes longer to bring them one by one through memory than for all the rest. No operation is relaxed; the rule's
twin, in NumPy, is in its tests. Helpers are not those of `taciturn.kernel.lanes`, though they look alike:
compiled code on disk is bound to the sources of its own folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from taciturn.kernel.jit import strict
from taciturn.kernel.noise.ziggurat_tables import LAYERS, Words

_AT_ONCE = 1024  # integers whose scales are written in one block, which stays in the first-level cache
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_WORD, _DOUBLE = ir.IntType(64), ir.DoubleType()
_WORDS, _DOUBLES, _PAIR = ir.VectorType(_WORD, 8), ir.VectorType(_DOUBLE, 8), ir.VectorType(_DOUBLE, 2)


@strict
def draw_fast(
    drawn: NDArray[np.int64],
    start: int,
    scales: NDArray[np.float64],
    repeat: int,
    words: Words,
    pairs: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Write the integers that one word settles, from entry `start` on; return which entries, from there, are left."""
    most = min(_AT_ONCE, (words.size + 63) // 64 * 64)
    block_scales, unsettled = np.zeros(most), np.zeros(most // 8, dtype=np.uint8)
    last_words, last_drawn = np.zeros(8, dtype=np.uint64), np.zeros(8, dtype=np.int64)
    left, count = np.empty(words.size, dtype=np.int64), 0
    for begin in range(0, words.size, _AT_ONCE):
        seen = words[begin : begin + _AT_ONCE]
        out = drawn[start + begin : start + begin + seen.size]
        _spread(start + begin, scales, repeat, block_scales)
        full, more = seen.size // 8, seen.size % 8
        for j in range(full):
            unsettled[j] = _eight(seen, 8 * j, block_scales, pairs, out)
        if seen.size < most:
            unsettled[full:] = 0
        if more:
            for i in range(more):  # not by one assignment, which takes seconds to compile
                last_words[i] = seen[8 * full + i]
            unsettled[full] = _eight(last_words, 0, block_scales[8 * full :], pairs, last_drawn) & ((1 << more) - 1)
            for i in range(more):
                out[8 * full + i] = last_drawn[i]
        masks = unsettled.view(np.uint64)
        for j in range(masks.size):
            mask = masks[j]
            while mask != _ZERO:
                left[count] = begin + 64 * j + _lowest(mask)
                count += 1
                mask &= mask - _ONE
    return left[:count]


@strict
def _spread(first: int, scales: NDArray[np.float64], repeat: int, theirs: NDArray[np.float64]) -> None:
    """Write the scales of entries from `first` on, as far as there are any."""
    row = first // repeat
    done, until = 0, (row + 1) * repeat - first
    while done < theirs.size and row < scales.size:
        theirs[done:until] = scales[row]
        done, until, row = until, until + repeat, row + 1


def _lowest_bit(context: Any, word: Any) -> Any:
    """Where the lowest one of a word stands that has any."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), build


def _draw_eight(context: Any, words: Any, at: Any, scales: Any, pairs: Any, drawn: Any) -> Any:
    """Write eight integers, from entry `at` on, and return a byte whose bits are one where they are not settled."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        seen, scale, out = (_address(context, builder, signature, args, i, args[1]) for i in (0, 2, 4))
        word = _load(builder, seen, _WORDS)
        end, width = _recalled(builder, seen, _address(context, builder, signature, args, 3, _word(0)))
        step = builder.fmul(width, _load(builder, scale, _DOUBLES))
        u = builder.sitofp(builder.ashr(word, _all(10)), _DOUBLES)
        v = builder.fmul(u, step)
        nearest = _call(builder, "rint", v)
        builder.store(builder.fptosi(nearest, _WORDS), builder.bitcast(out, _WORDS.as_pointer()), align=8)
        away = builder.fadd(_call(builder, "fabs", builder.fsub(v, nearest)), builder.fmul(step, _all(6.0)))
        inside = builder.fcmp_ordered("<", _call(builder, "fabs", u), end)
        settled = builder.and_(inside, builder.fcmp_ordered("<", away, _all(0.5)))
        return builder.not_(builder.bitcast(settled, ir.IntType(8)))

    return types.uint8(words, at, scales, pairs, drawn), build


def _recalled(builder: Any, seen: Any, layers: Any) -> list[Any]:
    """The ends and the widths of eight words' layers."""
    vectors = []
    for i in (0, 2, 4, 6, 1, 3, 5, 7):  # so that in two vectors of four pairs those of neighbours are side by side
        layer = builder.and_(builder.load(builder.gep(seen, [_word(i)])), _word(LAYERS - 1))
        vectors.append(_load(builder, builder.gep(layers, [builder.shl(layer, _word(1))]), _PAIR))
    while len(vectors) > 2:
        joined = list(range(2 * vectors[0].type.count))
        vectors = [_shuffled(builder, a, b, joined) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    even, odd = vectors
    return [_shuffled(builder, even, odd, [side + i for i in (0, 8, 2, 10, 4, 12, 6, 14)]) for side in (0, 1)]


def _shuffled(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _address(context: Any, builder: Any, signature: Any, args: Any, which: int, place: Any) -> Any:
    """Of an entry of one of the arguments, an array."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    return builder.gep(array.data, [place])


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(address, kind.as_pointer()), align=8)


def _call(builder: Any, name: str, vector: Any) -> Any:
    """One of LLVM's intrinsic functions applied to eight doubles."""
    kind = ir.FunctionType(_DOUBLES, [_DOUBLES])
    return builder.call(builder.module.declare_intrinsic(f"llvm.{name}.v8f64", (), kind), [vector])


def _word(value: int) -> Any:
    return ir.Constant(_WORD, value)


def _all(value: float) -> Any:
    """A vector of eight equal numbers."""
    return ir.Constant(_DOUBLES if isinstance(value, float) else _WORDS, [value] * 8)


_eight: Any = intrinsic(_draw_eight)
_lowest: Any = intrinsic(_lowest_bit)
