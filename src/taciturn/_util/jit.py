"""How loops are compiled.

A product and a sum may be fused into one rounding. Nothing else is relaxed but, in loops that only add up and in
`lanes.add_up`, the order of the terms, which every error bound of the package allows: elsewhere `a/b*c` may overflow in
another order, and comparisons with NaN and infinity must mean what they say.

Compiled code is kept on disk, and a loop's holds that of the loops it calls. Numba looks only at a loop's own file to
see whether it has changed; so that a change to one file is never answered with old code from another, the stamp here is
that of all files beside it, and of this one, which has the compiler's options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba

from taciturn._util.cache import sources

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def compiled(function: Any) -> Any:
    """A loop compiled when it is first called, and kept on disk for later processes."""
    return _stamped(numba.njit(**_OPTIONS, fastmath={"contract"})(function))


def strict(function: Any) -> Any:
    """A loop of which nothing is relaxed."""
    return _stamped(numba.njit(**_OPTIONS)(function))


def inlined(function: Any) -> Any:
    """A loop that is written out in place of every call of it, for what a hot loop calls with many arguments."""
    return _stamped(numba.njit(**_OPTIONS, fastmath={"contract"}, inline="always")(function))


def summing(function: Any) -> Any:
    """A loop that only adds up, in any order."""
    return _stamped(numba.njit(**_OPTIONS, fastmath={"contract", "reassoc"})(function))


def _stamped(loop: Any) -> Any:
    """The loop, its code on disk bound to all sources of its folder; a plain function where Numba is switched off."""
    if hasattr(loop, "py_func"):
        folder = Path(loop.py_func.__code__.co_filename).parent
        loop._cache._cache_file._source_stamp = sources(folder), Path(__file__).read_bytes()
    return loop
