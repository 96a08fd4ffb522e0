"""Examples validated and clipped, in one pass over them.

Slow twin: `taciturn.kernel.problem.problem.Problem.clip_block`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.kernel.dot import copied, squared
from taciturn.kernel.jit import compiled
from taciturn.kernel.problem.codes import CLASS, SIGN


@compiled
def clip(
    X: Any, y: Any, longest: float, intercept: float, kind: int, label_bound: float, missing: float, V: Any
) -> Any:
    """Writes clipped rows, and the intercept if there is a place for it, into V; labels, and the first bad row or -1.

    A row whose label alone is bad gets the label `missing`; or has no influence, if that is NaN.
    """
    n, d = X.shape
    labels, first_bad = np.zeros(n), -1
    for i in range(n):
        unit, length = _length(V, i, d, copied(X, i, V))
        bad = not (unit < math.inf and _valid_label(y[i], kind, label_bound))
        if bad and first_bad < 0:
            first_bad = i
        if bad and not (unit < math.inf and missing == missing):
            for j in range(V.shape[1]):
                V[i, j] = 0.0
            labels[i] = 1.0 if kind == SIGN else 0.0
            continue
        _scale_down(V, i, d, unit, length, longest)
        for j in range(d, V.shape[1]):
            V[i, j] = intercept
        labels[i] = missing if bad else y[i] if kind == CLASS else min(max(y[i], -label_bound), label_bound)
    return labels, first_bad


@compiled
def clip_one(numbers: Any, X: Any, y: Any, V: Any) -> Any:
    """`clip` for one row: its label, and whether the row is rejected.

    The first six numbers are the five of `clip`, and 1 if bad rows are rejected. They are an array, with more numbers
    of the caller, because every argument of a compiled function takes time in every call from Python.
    """
    labels, bad = clip(X, y, numbers[0], numbers[1], int(numbers[2]), numbers[3], numbers[4], V)
    return labels, bad >= 0 and numbers[5] != 0.0


@compiled
def clip_compressed(
    starts: Any,
    columns: Any,
    entries: Any,
    width: int,
    y: Any,
    longest: float,
    intercept: float,
    kind: int,
    label_bound: float,
    missing: float,
) -> Any:
    """The same for compressed rows: their starts, columns and entries, labels, and the first bad row or -1.

    What is stored twice is added up, in the order in which it is stored.
    """
    n, extra = len(y), 1 if intercept > 0.0 else 0
    labels, first_bad, begins = np.zeros(n), -1, np.zeros(n + 1, dtype=np.int64)
    room = len(columns) + extra * n
    where, V, places = np.empty(room, dtype=np.int64), np.empty(room), np.empty(0, dtype=np.int64)
    for i in range(n):
        first, last, begin = starts[i], starts[i + 1], begins[i]
        if len(places) == 0 and not _rises(columns[first:last]):
            places = np.zeros(width, dtype=np.int64)
        end = _gathered(columns[first:last], entries[first:last], begin, where, V, places)
        row = V[begin:end].reshape((1, end - begin))
        unit, length = _length(row, 0, end - begin, squared(row, 0, end - begin))
        bad = not (unit < math.inf and _valid_label(y[i], kind, label_bound))
        if bad and first_bad < 0:
            first_bad = i
        if bad and not (unit < math.inf and missing == missing):
            begins[i + 1] = begin
            labels[i] = 1.0 if kind == SIGN else 0.0
            continue
        _scale_down(row, 0, end - begin, unit, length, longest)
        if extra:
            where[end], V[end] = width - 1, intercept
        begins[i + 1] = end + extra
        labels[i] = missing if bad else y[i] if kind == CLASS else min(max(y[i], -label_bound), label_bound)
    return begins, where[: begins[n]], V[: begins[n]], labels, first_bad


@compiled
def _rises(columns: Any) -> bool:
    for p in range(1, len(columns)):
        if columns[p] <= columns[p - 1]:
            return False
    return True


@compiled
def _gathered(columns: Any, entries: Any, begin: int, where: Any, V: Any, places: Any) -> int:
    """Writes a row from `begin` on and returns its end; columns may repeat, in any order, if there are places.

    `places[j]` is where column j was written last: in this row, if that place is one of its own and still says j.
    """
    end = begin
    for p in range(len(columns)):
        j = columns[p]
        if len(places) > 0:
            place = places[j]
            if begin <= place < end and where[place] == j:
                V[place] += entries[p]
                continue
            places[j] = end
        where[end], V[end] = j, entries[p]
        end += 1
    return end


@compiled
def _scale_down(V: Any, i: int, d: int, unit: float, length: float, longest: float) -> None:
    """Scales a row down that is too long; its norm is `length` units, which may be more than a float can be."""
    if length * unit > longest:
        scale = longest / length
        if unit != 1.0:
            for j in range(d):
                V[i, j] /= unit
        for j in range(d):
            V[i, j] *= scale


@compiled
def _length(V: Any, i: int, d: int, total: float) -> tuple[float, float]:
    """A unit, and a row's norm in units, by the square of that or, where it may over- or underflow, by its entries.

    The unit is 1 but for such rows, and infinite for bad ones.
    """
    if 1e-280 < total < 1e280:
        return 1.0, math.sqrt(total)
    largest = 0.0
    for j in range(d):
        entry = abs(V[i, j])
        if not entry < math.inf:
            return math.inf, 0.0
        largest = max(largest, entry)
    if largest == 0.0:
        return 1.0, 0.0
    total = 0.0
    for j in range(d):
        total += (V[i, j] / largest) ** 2
    return largest, math.sqrt(total)


@compiled
def _valid_label(y: float, kind: int, label_bound: float) -> bool:
    if kind == SIGN:
        return abs(y) == 1.0
    if kind == CLASS:
        return 0.0 <= y < label_bound and math.floor(y) == y
    return abs(y) < math.inf
