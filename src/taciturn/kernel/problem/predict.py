"""Input of predictions: a released point, and new rows, clipped as in learning a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.kernel.arrays import Array
from taciturn.kernel.errors import InvalidInput
from taciturn.kernel.problem.inputs import Source, SparseRows, as_numbers, compressed

if TYPE_CHECKING:
    from taciturn.kernel.problem.problem import Problem

_VALUES = 2**20  # entries that are clipped at once


def as_point(point: Any, size: int) -> Array:
    """Convert a point to an array, and check that it has `size` finite entries.

    >>> as_point([0.6, 0.8], size=2)
    array([0.6, 0.8])
    """
    if hasattr(point, "point") or hasattr(point, "points"):
        which = "release.point" if hasattr(point, "point") else "releases[-1].point"
        raise InvalidInput(f"predictions are made at a point, got {type(point).__name__}. Give {which}.")
    numbers = np.asarray(as_numbers(point), dtype=np.float64)
    if numbers.size != size or not np.isfinite(numbers).all():
        raise InvalidInput(
            f"points of this problem have {size} numbers, those of the intercept included, got shape {numbers.shape}. "
            "Give predict() the point of a release first, then features."
        )
    return numbers.ravel()


def coefficients(problem: Problem, point: Array) -> tuple[Array, Array]:
    """The linear function of the (mapped) features that a point is: weights, a row for each score, and intercepts.

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> coefficients(Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=0.5), np.array([0.6, 0.0, 0.2]))
    (array([[0.6, 0. ]]), array([0.1]))
    """
    rows = point.reshape(problem.outputs, problem.width)
    d = problem.mapped_dimension
    return rows[:, :d], problem.intercept * rows[:, d:].sum(axis=1)


def clipped_blocks(problem: Problem, rows: Source, sparse: bool) -> Iterator[Any]:
    """Clipped rows, a block at a time, to be multiplied by a point: arrays, or SciPy matrices if `sparse`.

    >>> from scipy.sparse import csr_matrix
    >>> from taciturn import L2Ball, Logistic, Problem
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=1.0)
    >>> [V @ [0.6, 0.0, 0.1] for V in clipped_blocks(problem, SparseRows(csr_matrix([[0.5, 0.0]])), sparse=True)]
    [array([0.4])]
    """
    stored = compressed(rows) if sparse and isinstance(rows, SparseRows) else None
    start = 0
    labels = np.ones(rows.shape[0])  # valid for every loss, and of no influence on features
    while start < max(1, len(labels)):
        if stored is None:
            end = start + max(1, _VALUES // max(problem.dimension, problem.width))
            yield problem.clip_block(rows[start:end], labels[start:end], start)[0]
        else:
            end = stored.end_of_block(start, max(_VALUES, 4 * problem.width))
            yield problem.clip_sparse_block(stored[start:end], start)
        start = end
