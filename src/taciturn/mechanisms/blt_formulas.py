"""Closed forms of buffered linear Toeplitz strategies in their decays: weights, columns, errors.

The formulas are in `taciturn.mechanisms.blt`; `th` are the decays of C, `ph` those of its inverse, along the last axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array


def weights(th: Array, ph: Array) -> Array:
    """`om_i = Π_j (th_i - th'_j)/Π_{j≠i} (th_i - th_j)`, along the last axis."""
    above = np.prod(th[..., :, None] - ph[..., None, :], axis=-1)
    apart = th[..., :, None] - th[..., None, :] + np.eye(th.shape[-1])
    return np.asarray(above / np.prod(apart, axis=-1))


def series(r: Array, n: ArrayLike) -> Array:
    """`1 + r + … + r^(n-1)`."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.expm1(np.asarray(n) * np.log(r)) / (r - 1.0))


def _below_one(logs: Array) -> Array:
    """`exp(logs) - 1` of negative logarithms, to 2⁻⁴³ of it: `expm1`, a slow function, where that takes it."""
    found, near = np.exp(logs) - 1.0, logs > -(2.0**-10)
    found[near] = np.expm1(logs[near])
    return np.asarray(found)


def _pairs(x: Array) -> Array:
    return np.asarray(x[..., :, None] * x[..., None, :])


def squares(weights: Array, decays: Array, n: float) -> Array:
    """`Σ_{k<n} (Σ_i weights_i·decays_i^k)²`."""
    return np.sum(_pairs(weights) * series(_pairs(decays), n), axis=(-2, -1)) if n > 0 else np.zeros(decays.shape[:-1])


def coefficients(th: Array, ph: Array) -> tuple[Array, Array]:
    """`b` and `be_i` of `b_k = b + Σ be_i·th'_i^k`."""
    return np.prod((1.0 - th) / (1.0 - ph), axis=-1), -weights(ph, th) / (1.0 - ph)


def prefix_squares(th: Array, ph: Array, k: Array) -> Array:
    """`Σ_{l<k} b_l²`, for one strategy and many k, or for many strategies and one k."""
    b, be = coefficients(th, ph)
    with np.errstate(divide="ignore"):
        gone = _below_one(k[..., None] * np.log(ph))  # e_i = th'_i^k - 1; of products of two: e_i + e_j + e_i·e_j
    single, weights = be / (ph - 1.0), _pairs(be) / (_pairs(ph) - 1.0)
    rows = np.einsum("...i,...ij->...j", gone, weights)  # not BLAS, which rounds by how many there are
    rows = rows * (gone + 2.0) + 2.0 * b[..., None] * single * gone
    return np.asarray(b * b * k + np.einsum("...i->...", rows))


def mean_squares(th: Array, ph: Array, n: int) -> Array:
    """The mean over k = 1..n of `Σ_{l<k} b_l²`, that is `Σ_{l<n} b_l²·(n - l)/n`."""
    b, be = coefficients(th, ph)

    def falling(r: Array) -> Array:
        """`Σ_{l<n} r^l·(n - l)/n`."""
        return np.asarray((1.0 - r * series(r, float(n)) / n) / (1.0 - r))

    double = np.sum(_pairs(be) * falling(_pairs(ph)), axis=(-2, -1))
    return np.asarray(b * b * (n + 1.0) / 2.0 + 2.0 * b * np.sum(be * falling(ph), axis=-1) + double)
