"""Examples as they come, made arrays of numbers; what is wrong with them; and rows no longer than their bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn._util.arrays import Array
from taciturn.errors import InvalidInput
from taciturn.problem.inputs import Source, SparseRows, as_numbers, source_of


def as_rows(X: Any, y: Any, dimension: int) -> tuple[Source, Array]:
    """Features and labels of the right shapes, or a refusal; no labels are zeros. Arrays of floats are not copied.

    >>> as_rows([[1, 2]], None, dimension=2)
    (array([[1., 2.]]), array([0.]))
    """
    given, X = X, source_of(X) or as_numbers(X)
    y = np.zeros(X.shape[:1]) if y is None else as_numbers(y)
    if len(X.shape) != 2 or X.shape[1] != dimension or y.shape != X.shape[:1]:
        raise InvalidInput(
            f"expected features of shape (n, {dimension}) and labels of shape (n,), got {X.shape} and {y.shape}. "
            f"{_shape_remedy(given)}"
        )
    return X, y


def _shape_remedy(X: Any) -> str:
    """How to pass what came, in the right shape."""
    if isinstance(X, Mapping) or (isinstance(X, Sequence) and any(isinstance(row, Mapping) for row in X)):
        return "Dicts have no order of columns: hash or vectorise them first."
    if isinstance(source_of(X), SparseRows):
        return "For one sparse row pass X[i:i+1] and [y]; the intercept is appended for you."
    return "For one example pass [x] and [y]; the intercept is appended for you."


def bad_labels(y: Array, kind: str, classes: int) -> NDArray[np.bool_]:
    """Which labels are illegal: not finite, not -1 or +1, or none of the classes from 0 on.

    >>> bad_labels(np.array([0.0, 1.0, 3.0, 0.5]), "class", classes=3)
    array([False, False,  True,  True])
    """
    if kind == "sign":
        return np.asarray(np.abs(y) != 1.0)
    if kind == "class":
        return np.asarray(~((y >= 0.0) & (y < classes) & (np.floor(y) == y)))
    return ~np.isfinite(y)


def complaint(row: int, X: Array, y: Array, loss: object, classes: int, first: int = 0) -> str:
    """What is wrong with a row, and what to do."""
    nothing, bad = "Nothing was learnt from this call.", ~np.isfinite(X[row])
    if not bad.any() and np.isfinite(y[row]):
        legal, remedy = "-1 or +1", "Map your two classes by a public rule, e.g. 2*y - 1 for 0 and 1."
        if classes > 1:
            legal, remedy = f"a class from 0 to {classes - 1}", "Number your classes by a public rule."
        return f"row {first + row} has label {y[row]:g}, and {type(loss).__name__} needs {legal}. {nothing} {remedy}"
    column = int(np.argmax(bad))
    if bad.any():
        what, remedy = f"feature {column} {_is(X[row, column])}", f"{_ENCODE}, {_LET_PASS}"
    else:
        real = getattr(loss, "labels", "real") == "real"
        what, remedy = f"its label {_is(y[row])}", _NUMBER_LABELS if real else _MAP_CLASSES
    return f"row {first + row} cannot be used: {what}. {nothing} {remedy}"


_ENCODE = "Mend the row, or encode text as numbers by a public rule"
_LET_PASS = 'or set on_bad="zero" to let rare rows like it pass as examples without influence.'
_NUMBER_LABELS = "Give a number for every label."
_MAP_CLASSES = "Map your classes by a public rule."


def _is(value: float) -> str:
    return "is not a number (text, or missing)" if np.isnan(value) else f"is {value}"


def longest_row(bound: float, dimension: int) -> float:
    """Rows that are longer are scaled to this length: short of the bound by more than any rounding error of a norm."""
    return bound * (1.0 - max(1e-12, dimension * 2.0**-51))


def clip_rows(X: Array, bound: float) -> Array:
    """Rows scaled to norm at most `bound`; dividing by the largest entry first, so that no norm overflows."""
    bound = longest_row(bound, X.shape[1])
    largest = np.max(np.abs(X), axis=1, keepdims=True)
    unit = X / np.where(largest > 0.0, largest, 1.0)
    length = np.linalg.norm(unit, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        too_long = length * largest > bound
    return np.where(too_long, unit * (bound / np.maximum(length, 1.0)), X)


def clip_sparse_rows(X: Any, bound: float) -> tuple[Any, NDArray[np.bool_]]:
    """Rows of a sparse matrix of SciPy's scaled to norm at most `bound`, and which rows are bad and have become 0.

    >>> from scipy.sparse import csr_matrix
    >>> V, bad = clip_sparse_rows(csr_matrix([[3.0, 0.0, 4.0], [0.0, 0.5, 0.0], [np.nan, 0.0, 0.0]]), 1.0)
    >>> V.toarray().round(6).tolist(), bad.tolist()
    ([[0.6, 0.0, 0.8], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]], [False, False, True])
    """
    X = X.copy()
    X.sum_duplicates()
    rows, bound = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), longest_row(bound, X.shape[1])
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
    """A sparse matrix of SciPy's with one more column."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([X, csr_matrix(column[:, None])], format="csr")
