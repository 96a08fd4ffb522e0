"""Symmetric matrices as vectors of the same norm: the upper triangle, off-diagonal entries times `sqrt(2)`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taciturn.kernel.arrays import Array, Integers, fixed


def packed(M: Array) -> Array:
    """`svec(M)`: upper triangle by rows, off-diagonal entries times `sqrt(2)`, so that `‖svec(M)‖ = ‖M‖_F`.

    >>> packed(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3)
    array([1.   , 2.828, 3.   ])
    """
    rows, columns, scale = _places(M.shape[-1])
    return np.asarray(M[..., rows, columns] * scale)


def unpacked(v: Array, d: int) -> Array:
    """The symmetric matrix whose svec is `v`.

    >>> unpacked(packed(np.eye(3)), 3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    rows, columns, scale = _places(d)
    M = np.zeros((d, d))
    M[rows, columns] = v / scale
    M[columns, rows] = v / scale
    return M


@lru_cache(maxsize=16)
def _places(d: int) -> tuple[Integers, Integers, Array]:
    rows, columns = np.triu_indices(d)
    return rows, columns, fixed(np.where(rows == columns, 1.0, np.sqrt(2.0)))
