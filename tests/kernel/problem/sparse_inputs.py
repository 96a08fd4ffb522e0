"""Sparse matrices in non-canonical CSR form: unsorted columns, duplicate entries, explicit zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def with_zeros(X: np.ndarray, seed: int = 3) -> np.ndarray:
    """The array with about half of its entries set to 0, and one row of zeros."""
    X = np.where(np.random.default_rng(seed).random(X.shape) < 0.5, X, 0.0)
    X[len(X) // 2 :][:1] = 0.0
    return X


def noncanonical_csr(X: np.ndarray, seed: int = 4, indices: Any = np.int64) -> Any:
    """The rows of an array in CSR: unsorted columns, entries split into two halves, and explicit zeros."""
    rng, starts, columns, entries = np.random.default_rng(seed), [0], [], []
    for row in X:
        stored = [part for j in np.flatnonzero(row != 0.0) for part in _parts(int(j), float(row[j]), rng)]
        stored += [(int(j), 0.0) for j in np.flatnonzero(rng.random(len(row)) < 0.3)]
        for p in rng.permutation(len(stored)):
            columns.append(stored[p][0])
            entries.append(stored[p][1])
        starts.append(len(columns))
    matrix = sp.csr_matrix(X.shape)
    matrix.indptr, matrix.indices = np.array(starts, dtype=indices), np.array(columns, dtype=indices)
    matrix.data = np.array(entries, dtype=np.float64)
    return matrix


def _parts(j: int, entry: float, rng: np.random.Generator) -> list[tuple[int, float]]:
    """As two halves, if that is exact, or as one entry."""
    halves = rng.random() < 0.5 and entry / 2.0 + entry / 2.0 == entry
    return [(j, entry / 2.0), (j, entry / 2.0)] if halves else [(j, entry)]
