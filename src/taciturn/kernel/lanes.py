"""SIMD vectors of eight numbers, for rows that are too short for what a compiler makes of a plain loop.

Of a loop over 54 numbers a compiler makes steps of 32, of 4 and of 1, and sums of each: most of its time is lost
between them. Here that row is seven vectors, of which the last has two places left. In plain Python a vector is an
array of eight, in compiled code one of LLVM's, for which every processor has instructions of some width.

Arrays are contiguous, and places in them are counted from the start of their first row, without bounds checks. A number
stands to the right of a vector, `v * 2.0`. A product and a sum may be fused into one rounding, as everywhere in
compiled code; only `add_up` is free to choose an order.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable
from numpy.typing import NDArray

LANES = 8
Lanes = NDArray[np.float64]


def take(array: Any, at: int, left: int) -> Lanes:
    """Eight numbers from a place on; where fewer are left, those and zeros. Integers become floats.

    >>> take(np.arange(12.0), 10, 2)
    array([10., 11.,  0.,  0.,  0.,  0.,  0.,  0.])
    """
    lanes = np.zeros(LANES)
    lanes[: min(left, LANES)] = array.reshape(-1)[at : at + min(left, LANES)]
    return lanes


def put(array: Any, at: int, left: int, lanes: Lanes) -> None:
    """Writes eight numbers, or as many as are left, from a place on."""
    array.reshape(-1)[at : at + min(left, LANES)] = lanes[: min(left, LANES)]


def zeros() -> Lanes:
    """Eight of them."""
    return np.zeros(LANES)


def add_up(lanes: Lanes) -> float:
    """The sum of the eight."""
    return float(np.sum(lanes))


def between(lanes: Lanes, least: float, most: float) -> Lanes:
    """Numbers clipped to [least, most]; `least` in place of what is not a number."""
    lanes = np.where(lanes > least, lanes, least)
    return np.where(lanes < most, lanes, most)


def numbers(lanes: Lanes) -> Lanes:
    """0 in place of what is not a number."""
    return np.where(lanes == lanes, lanes, 0.0)


def floor(lanes: Lanes) -> Lanes:
    """The next integers below."""
    return np.floor(lanes)


def rint(lanes: Lanes) -> Lanes:
    """The nearest integers, even ones for halves."""
    return np.rint(lanes)


# The same in LLVM's terms.


class _Lanes(types.Type):
    """The type of a vector in compiled code."""

    def __init__(self) -> None:
        super().__init__("lanes")


_LANES, _REAL, _INT, _PLACE = _Lanes(), ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_REALS, _SHORT, _INTS, _MASK = (ir.VectorType(each, LANES) for each in (_REAL, ir.FloatType(), _INT, ir.IntType(1)))
_KINDS = {types.float64: (_REALS, "f64"), types.float32: (_SHORT, "f32"), types.int64: (_INTS, "i64")}


@register_model(_Lanes)
class _Vector(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _REALS)


type_callable(take)(lambda context: lambda array, at, left: _LANES if _contiguous(array) else None)
type_callable(put)(lambda context: lambda array, at, left, lanes: types.none if _writable(array) else None)
type_callable(zeros)(lambda context: lambda: _LANES)
type_callable(add_up)(lambda context: lambda lanes: types.float64)
type_callable(between)(lambda context: lambda lanes, least, most: _LANES)
for _function in (numbers, floor, rint):
    type_callable(_function)(lambda context: lambda lanes: _LANES)
for _operator in (operator.add, operator.mul):
    type_callable(_operator)(lambda context: lambda a, b: _LANES if a is _LANES else None)


def _contiguous(array: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C" and array.dtype in _KINDS


def _writable(array: Any) -> bool:
    """Lanes are written as they are: into float64 alone."""
    return _contiguous(array) and array.dtype == types.float64


@lower_builtin(take, types.Array, types.Integer, types.Integer)
def _take(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, name = _KINDS[signature.args[0].dtype]
    place, left = _address(context, builder, signature, args, kind), args[2]
    with builder.if_else(_enough(builder, left)) as (enough, fewer):
        with enough:
            all_of_them = builder.load(place)
            all_of_them.align = _aligned(kind)
            from_enough = builder.block
        with fewer:
            takes = kind.as_pointer(), _PLACE, _MASK, kind
            load = _llvm(builder, f"masked.load.v{LANES}{name}.p0", kind, *takes)
            some = builder.call(load, [place, _PLACE(_aligned(kind)), _mask(builder, left), ir.Constant(kind, None)])
            from_fewer = builder.block
    lanes = builder.phi(kind)
    lanes.add_incoming(all_of_them, from_enough)
    lanes.add_incoming(some, from_fewer)
    if kind is _INTS:
        return builder.sitofp(lanes, _REALS)
    return lanes if kind is _REALS else builder.fpext(lanes, _REALS)


@lower_builtin(put, types.Array, types.Integer, types.Integer, _Lanes)
def _put(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    place, left, lanes = _address(context, builder, signature, args, _REALS), args[2], args[3]
    with builder.if_else(_enough(builder, left)) as (enough, fewer):
        with enough:
            builder.store(lanes, place).align = _aligned(_REALS)
        with fewer:
            takes = _REALS, _REALS.as_pointer(), _PLACE, _MASK
            store = _llvm(builder, f"masked.store.v{LANES}f64.p0", ir.VoidType(), *takes)
            builder.call(store, [lanes, place, _PLACE(_aligned(_REALS)), _mask(builder, left)])
    return context.get_dummy_value()


@lower_builtin(zeros)
def _zeros(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return ir.Constant(_REALS, None)


@lower_builtin(add_up, _Lanes)
def _add_up(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    total = _llvm(builder, f"vector.reduce.fadd.v{LANES}f64", _REAL, _REAL, _REALS)
    return builder.call(total, [_REAL(-0.0), args[0]], fastmath=("reassoc",))


@lower_builtin(between, _Lanes, types.Float, types.Float)
def _between(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    lanes, least, most = args[0], _everywhere(builder, args[1]), _everywhere(builder, args[2])
    lanes = builder.select(builder.fcmp_ordered(">", lanes, least), lanes, least)
    return builder.select(builder.fcmp_ordered("<", lanes, most), lanes, most)


@lower_builtin(numbers, _Lanes)
def _numbers(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.select(builder.fcmp_ordered("ord", args[0], args[0]), args[0], ir.Constant(_REALS, None))


def _rounded(name: str) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(_llvm(builder, f"{name}.v{LANES}f64", _REALS, _REALS), args)

    return build


def _each(name: str) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = args
        b = b if signature.args[1] is _LANES else _everywhere(builder, b)
        return getattr(builder, name)(a, b, flags=("contract",))

    return build


lower_builtin(floor, _Lanes)(_rounded("floor"))
lower_builtin(rint, _Lanes)(_rounded("rint"))
for _other in (_Lanes, types.Float):
    lower_builtin(operator.add, _Lanes, _other)(_each("fadd"))
    lower_builtin(operator.mul, _Lanes, _other)(_each("fmul"))


def _address(context: Any, builder: Any, signature: Any, args: Any, kind: Any) -> Any:
    """Of a place in the array."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [args[1]]), kind.as_pointer())


def _aligned(kind: Any) -> int:
    """Bytes of a number, by which all of them are aligned."""
    return 4 if kind is _SHORT else 8


def _enough(builder: Any, left: Any) -> Any:
    return builder.icmp_signed(">=", left, _INT(LANES))


def _mask(builder: Any, left: Any) -> Any:
    """The first lanes, as many as are left."""
    return builder.icmp_signed("<", ir.Constant(_INTS, list(range(LANES))), _everywhere(builder, left))


def _everywhere(builder: Any, number: Any) -> Any:
    """One number in every lane."""
    first = builder.insert_element(ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined), number, _PLACE(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_PLACE, LANES), None))


def _llvm(builder: Any, name: str, returns: Any, *takes: Any) -> Any:
    """One of LLVM's own functions."""
    return builder.module.declare_intrinsic(f"llvm.{name}", (), ir.FunctionType(returns, takes))
