"""Array types, and two helpers for them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Rows, points, features."""

Integers = NDArray[np.int64]
"""Rows rounded to a lattice, and the noise added to them."""

Arrays = dict[str, NDArray[Any]]
"""The memory of an encoder, a decoder or a learner: named arrays, which a state can store."""

Kind = TypeVar("Kind", bound=NDArray[Any])


def fixed(array: Kind) -> Kind:
    """Make `array` read-only, so that values from which a guarantee was computed cannot change, and return it."""
    array.setflags(write=False)
    return array


def same(some: Arrays, others: Arrays) -> bool:
    """Whether two sets of arrays have the same names and types, and equal numbers.

    >>> same({"x": np.ones(2)}, {"x": np.ones(2)}), same({"x": np.ones(2)}, {"x": np.ones(3)})
    (True, False)
    """
    return some is others or (
        some.keys() == others.keys()
        and all(array.dtype == others[name].dtype for name, array in some.items())
        and all(array is others[name] or np.array_equal(array, others[name]) for name, array in some.items())
    )
