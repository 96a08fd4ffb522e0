"""Norms of Gaussian vectors and matrices: moments and tail bounds, for what noise adds to a regret."""

from __future__ import annotations

import math

from scipy.special import poch

from taciturn.errors import between_0_and_1, integer

_MANY = 1000  # dimensions from which the variance of the length is within 0.03 % of ½


def probability(failure: float) -> float:
    """Return `failure` if it lies strictly between 0 and 1, else reject it.

    >>> probability(0.05)
    0.05
    """
    return between_0_and_1("failure", failure, "State how often the bound may fail, say 0.05.")


def length_moments(dimension: int) -> tuple[float, float]:
    """Mean and variance of `‖z‖`, z standard normal in `dimension` dimensions (the chi distribution).

    The mean is `m = sqrt(2)·Γ((d+1)/2)/Γ(d/2)`, between `sqrt(d - ½)` and `sqrt(d)`, and the variance `d - m²`,
    below ½ (Watson, *A note on gamma functions*, 1959). From 1000 dimensions on, where the difference has lost its
    digits, ½ itself is returned.

    >>> mean, variance = length_moments(1)
    >>> round(mean, 4), round(variance, 4)
    (0.7979, 0.3634)
    """
    dimension = integer("dimension", dimension)
    mean = math.sqrt(2.0) * float(poch(dimension / 2.0, 0.5))
    return mean, dimension - mean**2 if dimension < _MANY else 0.5


def longest(dimension: int, failure: float) -> float:
    """What `‖z‖` exceeds with probability at most `failure`: `sqrt(d) + sqrt(2·ln(1/failure))`.

    *Proof.* `‖z‖` is 1-Lipschitz in z and has mean at most `sqrt(d)`; so it exceeds that by s with probability at most
    `exp(-s²/2)` (Boucheron, Lugosi, Massart, *Concentration Inequalities*, 2013, Theorem 5.6). ∎

    >>> round(longest(4, math.exp(-2.0)), 12)
    4.0
    """
    return math.sqrt(integer("dimension", dimension)) + math.sqrt(2.0 * math.log(1.0 / probability(failure)))


def strongest(dimension: int, failure: float) -> float:
    """What the spectral norm of a square matrix of standard normals exceeds with probability at most `failure`.

    `2·sqrt(d) + sqrt(2·ln(1/failure))` (Davidson, Szarek, *Local operator theory, random matrices and Banach
    spaces*, 2001, Theorem II.13). It holds also for the symmetric part, `(G + Gᵀ)/2`, which is no longer: entries of
    standard deviation 1 on the diagonal and `1/sqrt(2)` off it.

    >>> round(strongest(4, math.exp(-2.0)), 12)
    6.0
    """
    return math.sqrt(integer("dimension", dimension)) + longest(dimension, failure)
