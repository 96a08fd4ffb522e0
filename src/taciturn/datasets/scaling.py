"""Feature maps with public bounds: each row is mapped by itself, by constants that do not depend on the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taciturn.kernel.arrays import Array
from taciturn.tables.ranges import between

ROOM = 1e-12
"""Rows stay this much short of their bound, so that rounding cannot carry one past it."""

_UNDERFLOW = 1e-280  # squares that are smaller have lost digits


def indicators(values: Sequence[Any] | NDArray[Any], published: Sequence[Any]) -> Array:
    """One column per published value, 1 where it is that value: rows of norm 1, or 0 where it is none of them.

    >>> indicators(["JFK", "?"], ("EWR", "JFK"))
    array([[0., 1.],
           [0., 0.]])
    """
    kind = str if isinstance(published[0], str) else float
    return np.array(np.asarray(values, dtype=kind)[:, None] == np.asarray(published, dtype=kind), dtype=np.float64)


def waves(values: ArrayLike, period: float, harmonics: int) -> Array:
    """Sine and cosine of a time of day or year and of its multiples: rows of norm sqrt(harmonics), no jump at midnight.

    >>> waves([0, 6], period=24, harmonics=1).round(9) + 0.0
    array([[0., 1.],
           [1., 0.]])
    """
    turns = 2.0 * np.pi / period * np.multiply.outer(np.asarray(values, dtype=np.float64), np.arange(1, harmonics + 1))
    return np.hstack([np.sin(turns), np.cos(turns)])


def wave_names(name: str, harmonics: int) -> tuple[str, ...]:
    """What the columns of `waves` are called.

    >>> wave_names("day", 1)
    ('sin day', 'cos day')
    """
    times = ["" if k == 1 else f"{k} " for k in range(1, harmonics + 1)]
    return tuple(f"{wave} {k}{name}" for wave in ("sin", "cos") for k in times)


def hats(values: ArrayLike, low: float, high: float, count: int) -> Array:
    """Triangles over a published range, `count` peaks evenly apart: each value is shared by the two next to it.

    Linear in them means piecewise linear in the value. Rows sum to 1, so their norms are at most 1.

    >>> hats([0.0, 2.5, 10.0], 0, 10, count=3)
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0. , 0. , 1. ]])
    """
    place = (between(values, low, high) + 1.0) / 2.0 * (count - 1)
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(count))))


def shortened(X: Array, longest: float) -> Array:
    """`X` divided, in place, so that rows of norm up to `longest` are no longer than 1.

    >>> shortened(np.array([[3.0, 4.0]]), 5.0).round(9)
    array([[0.6, 0.8]])
    """
    X *= (1.0 - ROOM) / longest
    return X


def to_norm_one(X: Array) -> Array:
    """Every row of `X` divided, in place, by its own norm; a row of zeros stays.

    >>> to_norm_one(np.array([[3.0, 4.0], [0.0, 0.0]])).round(9)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    squares = np.einsum("ij,ij->i", X, X)
    if (tiny := squares < _UNDERFLOW).any():
        largest = np.abs(X[tiny]).max(axis=1, initial=0.0)
        X[tiny] /= np.where(largest > 0.0, largest, 1.0)[:, None]
        squares[tiny] = np.einsum("ij,ij->i", X[tiny], X[tiny])
    X *= ((1.0 - ROOM) / np.sqrt(np.where(squares > 0.0, squares, 1.0)))[:, None]
    return X
