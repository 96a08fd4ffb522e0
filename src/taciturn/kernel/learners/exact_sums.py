"""Exact sums: contributions on a lattice so fine that it costs nothing, added without rounding errors.

A learner whose statistics are sums adds up one contribution for each example. Each is rounded to a multiple of a power
of two, 2⁻²⁶ of the largest there can be, so that float64 adds up to 2²⁶ of them without an error: two streams that
differ in one example have sums that differ by its contribution and by nothing else.

Where contributions are products, the factors are cut to integers of 18 bits instead, towards zero, so that no
example grows. A product has 36 bits: float64 adds up 2¹⁷ of them in any order, so that a block of examples is one
product of matrices, and 64-bit integers add up 2²⁶.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.scalar_loss import Values

MOVES_ITS_OWN = "one example moves its own contribution"
MOST = 2**26
"""Examples up to which sums are exact."""

LATTICE_UNITS = 2**27
"""No entry of a rounded contribution has more steps of its lattice."""
PRODUCT_UNITS = 2**36
"""No product of two factors of 18 bits is larger. Both times `MOST` are 64-bit integers."""


def lattice_of(magnitude: float) -> float:
    """The power of two to round to, for contributions of entries up to `magnitude`."""
    return 2.0 ** (math.floor(math.log2(magnitude)) - 26)


def rounded(contribution: Array, magnitude: float) -> Array:
    """A contribution rounded to its lattice, its entries clipped to `magnitude`.

    >>> rounded(np.array([0.3]), 1.0)[0] * 2**26 % 1.0
    np.float64(0.0)
    """
    step = lattice_of(magnitude)
    return np.asarray(np.rint(np.clip(np.nan_to_num(contribution), -magnitude, magnitude) / step) * step)


def in_units(factors: Array, magnitude: float) -> Array:
    """Factors of at most `magnitude` as integer multiples of `unit_of(magnitude)`, cut towards zero.

    >>> in_units(np.array([0.3, -0.3]), 1.0)
    array([ 39321., -39321.])
    """
    units = factors * (1.0 / unit_of(magnitude))
    return np.trunc(units, out=units)


def lattice_units(sums: Array, magnitude: float) -> Integers:
    """Sums of rounded contributions as integer multiples of `lattice_of(magnitude)`: exactly, up to `MOST` of them.

    >>> lattice_units(np.array([0.5, -1.0]), 1.0).tolist()
    [33554432, -67108864]
    """
    return np.rint(sums / lattice_of(magnitude)).astype(np.int64)  # a power of two: no quotient is rounded


def unit_of(magnitude: float) -> float:
    """A power of two of which `magnitude` has less than 2¹⁸."""
    return 2.0 ** (math.floor(math.log2(magnitude)) - 17)


def entry_bound(moved: float, magnitude: float, size: int, t: Values) -> Array:
    """Sensitivity of a sum: an example moves its contribution by `moved`, and rounding adds in both worlds."""
    bound = moved * (1.0 + 2.0**-40) + math.sqrt(size) * lattice_of(magnitude)
    return np.where(np.asarray(t) <= MOST, bound, math.inf)


def longest_row(longest: float, magnitude: float, size: int) -> float:
    """The largest norm of a contribution on its lattice, or of a sum of products, from that of an exact one."""
    return longest * (1.0 + 2.0**-40) + 4.0 * math.sqrt(size) * lattice_of(magnitude)


def product_bound(moved: float, magnitude: float, size: int, t: Values) -> Array:
    """The same where sums of products, up to 2²⁶ of them, are made floats and multiplied: two roundings of 2⁻⁵³."""
    bound = moved * (1.0 + 2.0**-40) + 4.0 * math.sqrt(size) * lattice_of(magnitude)
    return np.where(np.asarray(t) <= MOST, bound, math.inf)
