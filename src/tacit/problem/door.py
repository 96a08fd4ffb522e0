"""Examples as they come, made arrays of numbers; what is wrong with them; and rows no longer than their bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Array
from tacit.errors import InvalidInput

_INSIDE = 1.0 - 1e-12  # clipped rows stop short of the bound by more than any rounding error


def as_rows(X: Any, y: Any, dimension: int) -> tuple[Array, Array]:
    """Features and labels as arrays of the right shapes, or a refusal; no labels are zeros.

    >>> as_rows([[1, 2]], None, dimension=2)
    (array([[1., 2.]]), array([0.]))
    """
    X = _as_numbers(X)
    y = np.zeros(X.shape[:1]) if y is None else _as_numbers(y)
    if X.ndim != 2 or X.shape[1] != dimension or y.shape != (len(X),):
        raise InvalidInput(
            f"expected features of shape (n, {dimension}) and labels of shape (n,), got {X.shape} and {y.shape}. "
            "For one example pass [x] and [y]; the intercept is appended for you."
        )
    return X, y


def _as_numbers(values: Any) -> Array:
    """An array of floats; what is not a number becomes NaN, and is dealt with as a bad value.

    An entry's number depends on that entry alone: if one of them is no number, the others are read as they would have
    been without it. One person's row must not change how another's is read.
    """
    try:
        plain = np.asarray(values)
        if plain.dtype.kind in "biuf":
            return np.asarray(plain, dtype=np.float64, order="C")
    except (ValueError, OverflowError):
        pass
    try:
        entries = np.asarray(values, dtype=object)
        return np.array([_as_number(entry) for entry in entries.ravel()]).reshape(entries.shape)
    except ValueError:
        raise InvalidInput("examples must be rows of equal length, each of numbers.") from None


def _as_number(entry: Any) -> float:
    """Its float; dates, durations, sequences and the like have none."""
    if isinstance(entry, np.datetime64 | np.timedelta64):
        return math.nan
    try:
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def bad_labels(y: Array, kind: str, classes: int) -> NDArray[np.bool_]:
    """Which labels are illegal: not finite, not -1 or +1, or not one of the classes 0, 1, …

    >>> bad_labels(np.array([0.0, 1.0, 3.0, 0.5]), "class", classes=3)
    array([False, False,  True,  True])
    """
    if kind == "sign":
        return np.asarray(np.abs(y) != 1.0)
    if kind == "class":
        return np.asarray(~((y >= 0.0) & (y < classes) & (np.floor(y) == y)))
    return ~np.isfinite(y)


def complaint(row: int, X: Array, y: Array, loss: object, classes: int) -> str:
    """What is wrong with a row, and what to do."""
    nothing, bad = "Nothing was learnt from this call.", ~np.isfinite(X[row])
    if not bad.any() and np.isfinite(y[row]):
        legal, remedy = "-1 or +1", "Map your two classes by a public rule, e.g. 2*y - 1 for 0 and 1."
        if classes > 1:
            legal, remedy = f"a class from 0 to {classes - 1}", "Number your classes by a public rule."
        return f"row {row} has label {y[row]:g}, and {type(loss).__name__} needs {legal}. {nothing} {remedy}"
    column = int(np.argmax(bad))
    what = f"feature {column} is {X[row, column]}" if bad.any() else f"its label is {y[row]}"
    return (
        f"row {row} cannot be used: {what}. {nothing} "
        'Mend the row, or set on_bad="zero" to let such rows pass as examples without influence.'
    )


def clip_rows(X: Array, bound: float) -> Array:
    """Rows scaled to norm at most `bound`; dividing by the largest entry first, so that no norm overflows."""
    largest = np.max(np.abs(X), axis=1, keepdims=True)
    unit = X / np.where(largest > 0.0, largest, 1.0)
    length = np.linalg.norm(unit, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        too_long = length * largest > bound * _INSIDE
    return np.where(too_long, unit * (bound * _INSIDE / np.maximum(length, 1.0)), X)
