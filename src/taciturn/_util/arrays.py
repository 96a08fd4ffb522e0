"""The three kinds of arrays that travel through the package."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Rows, points, features."""

Integers = NDArray[np.int64]
"""Rows on their lattice, and the noise that hides them."""

Arrays = dict[str, NDArray[Any]]
"""One side's memory: a few named arrays, which a state can store."""

Kind = TypeVar("Kind", bound=NDArray[Any])


def fixed(array: Kind) -> Kind:
    """`array`, made read-only: what a guarantee was computed from cannot be changed afterwards."""
    array.setflags(write=False)
    return array


def same(some: Arrays, others: Arrays) -> bool:
    """Whether two sets of arrays have the same names, and the same numbers to the last bit.

    >>> same({"x": np.ones(2)}, {"x": np.ones(2)}), same({"x": np.ones(2)}, {"x": np.ones(3)})
    (True, False)
    """
    return some is others or (
        some.keys() == others.keys()
        and all(array.dtype == others[name].dtype for name, array in some.items())
        and all(np.array_equal(array, others[name]) for name, array in some.items())
    )
