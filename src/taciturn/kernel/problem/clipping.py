"""Validation of examples, and clipping of rows to a bound on their norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput
from taciturn.kernel.problem.inputs import FLOAT, Source, SparseRows, as_number, as_numbers, source_of
from taciturn.kernel.problem.row_wise import row_wise


@row_wise
def as_rows(X: Any, y: Any, dimension: int, by_entry: bool = False) -> tuple[Source, Array]:
    """Convert features and labels to numbers, and check their shapes; missing labels are zeros.

    Arrays of floats are not copied. `by_entry` makes no number of an entry that is a list also where all are, which
    would else be of another shape: whether it is an error must not depend on the other rows where bad ones are none.

    >>> as_rows([[1, 2]], None, dimension=2)
    (array([[1., 2.]]), array([0.]))
    """
    rows = X if type(X) is np.ndarray and X.dtype is FLOAT else source_of(X) or as_numbers(X)
    if by_entry and isinstance(X, list | tuple) and len(rows.shape) > 2:
        rows = np.array([[as_number(entry) for entry in row] for row in X])
    shape = rows.shape
    labels = np.zeros(shape[:1]) if y is None else as_numbers(y)
    if by_entry and isinstance(y, list | tuple) and labels.ndim > 1:
        labels = np.array([as_number(entry) for entry in y])
    if len(shape) != 2 or shape[1] != dimension or labels.shape != shape[:1]:
        raise InvalidInput(
            f"expected features of shape (n, {dimension}) and labels of shape (n,), got {shape} and "
            f"{labels.shape}. {_shape_remedy(X)}"
        )
    return rows, labels


def _shape_remedy(X: Any) -> str:
    """How to pass `X` in the right shape."""
    if isinstance(X, Mapping) or (isinstance(X, Sequence) and any(isinstance(row, Mapping) for row in X)):
        return "Dicts have no order of columns: hash or vectorise them first."
    if isinstance(source_of(X), SparseRows):
        return "For one sparse row pass X[i:i+1] and [y]; the intercept is appended for you."
    return "For one example pass [x] and [y]; the intercept is appended for you."


@row_wise
def bad_labels(y: Array, kind: str, classes: int) -> NDArray[np.bool_]:
    """Mask of invalid labels: not finite, not -1 or +1 (`kind` "sign"), or not a class number (`kind` "class").

    >>> bad_labels(np.array([0.0, 1.0, 3.0, 0.5]), "class", classes=3)
    array([False, False,  True,  True])
    """
    if kind == "sign":
        return np.asarray(np.abs(y) != 1.0)
    if kind == "class":
        return np.asarray(~((y >= 0.0) & (y < classes) & (np.floor(y) == y)))
    return ~np.isfinite(y)


def describe_bad_row(
    row: int, X: Array, y: Array, loss: Any, classes: int, first: int = 0, missing: bool = False
) -> str:
    """The error message for a bad row: what is wrong with it, and what to do; NaN is a value if `missing`."""
    nothing = "Nothing was learnt from this call."
    bad = np.isinf(X[row]) if missing else ~np.isfinite(X[row])
    if not bad.any() and np.isfinite(y[row]):
        if not bad_labels(y[row : row + 1], loss.labels, classes)[0]:
            what = "its mapped features are not finite"
            return f"row {first + row} cannot be used: {what}. {nothing} {_ENCODE}, {_ZERO_OUT}"
        if classes > 1:
            valid = f"a class from 0 to {classes - 1}"
            remedy = "Number your classes by a public rule."
        else:
            valid = "-1 or +1"
            remedy = "Map your two classes by a public rule, e.g. 2*y - 1 for 0 and 1."
        return f"row {first + row} has label {y[row]:g}, and {type(loss).__name__} needs {valid}. {nothing} {remedy}"
    if bad.any():
        column = int(np.argmax(bad))
        what = f"feature {column} {_is(X[row, column])}"
        remedy = f"{_ENCODE}, {_ZERO_OUT}"
    else:
        what = f"its label {_is(y[row])}"
        remedy = _NUMBER_LABELS if loss.labels == "real" else _MAP_CLASSES
    return f"row {first + row} cannot be used: {what}. {nothing} {remedy}"


_ENCODE = "Correct the row, or encode text as numbers by a public rule"
_ZERO_OUT = 'or set on_bad="zero" to count rows like it as examples without influence.'
_NUMBER_LABELS = "Give a number for every label."
_MAP_CLASSES = "Map your classes by a public rule."


def _is(value: float) -> str:
    return "is not a number (text, or missing)" if np.isnan(value) else f"is {value}"


def longest_row(bound: float, dimension: int) -> float:
    """The norm that longer rows are scaled to: below the bound by more than any rounding error of a norm."""
    return bound * (1.0 - max(1e-12, dimension * 2.0**-51))


@row_wise
def clip_rows(X: Array, bound: float) -> Array:
    """Clip rows to norm at most `bound`; rows are divided by their largest entry first, so that no norm overflows.

    They are laid side by side before: NumPy adds up the squares of a row in another order where rows lie otherwise.
    """
    X = np.ascontiguousarray(X)
    bound = longest_row(bound, X.shape[1])
    largest = np.max(np.abs(X), axis=1, keepdims=True)
    unit = X / np.where(largest > 0.0, largest, 1.0)
    length = np.linalg.norm(unit, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        too_long = length * largest > bound
    return np.where(too_long, unit * (bound / np.maximum(length, 1.0)), X)


@row_wise
def clip_sparse_rows(X: Any, bound: float) -> tuple[Any, NDArray[np.bool_]]:
    """Clip rows of a SciPy sparse matrix to norm at most `bound`; return them and a mask of bad rows, which become 0.

    >>> from scipy.sparse import csr_matrix
    >>> V, bad = clip_sparse_rows(csr_matrix([[3.0, 0.0, 4.0], [0.0, 0.5, 0.0], [np.nan, 0.0, 0.0]]), 1.0)
    >>> V.toarray().round(6).tolist(), bad.tolist()
    ([[0.6, 0.0, 0.8], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]], [False, False, True])
    """
    X = X.copy()
    X.sum_duplicates()
    bound = longest_row(bound, X.shape[1])
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    bad = np.zeros(X.shape[0], dtype=np.bool_)
    bad[rows[~np.isfinite(X.data)]] = True
    X.data[bad[rows]] = 0.0
    largest = np.zeros(X.shape[0])
    np.maximum.at(largest, rows, np.abs(X.data))
    unit = X.data / np.where(largest > 0.0, largest, 1.0)[rows]
    length = np.sqrt(np.bincount(rows, unit**2, minlength=X.shape[0]))
    with np.errstate(over="ignore"):
        too_long = length * largest > bound
    X.data = np.where(too_long[rows], unit * (bound / np.maximum(length, 1.0))[rows], X.data)
    return X, bad


def append_column(X: Any, column: Array) -> Any:
    """Append a column to a SciPy sparse matrix."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([X, csr_matrix(column[:, None])], format="csr")
