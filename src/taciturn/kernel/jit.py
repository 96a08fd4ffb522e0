"""Decorators that compile functions with Numba, and cache the compiled code on disk.

Floating point is relaxed in two ways only. A product and a sum may be fused into one rounding. Functions that only add
up, and `lanes.add_up`, may reorder the terms, which every error bound of the package allows. Elsewhere the order
matters, as `a/b*c` may overflow in another order, and comparisons with NaN and infinity must hold exactly.

The cached code of a function contains that of the functions it calls, but Numba compares only the function's own file
with the cache. So that a change in one file never leaves old code in use in another, the stamp set here depends on all
files in the folder of the function, on the kernel's loops and what they are made of (`shared_sources`), and on this
file, which has the compiler's options.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numba

from taciturn.kernel.cache import hash_of, sources

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def compiled(function: Any) -> Any:
    """Compile a function at its first call, and cache the code on disk for later processes."""
    return _stamped(numba.njit(**_OPTIONS, fastmath={"contract"})(function))


def strict(function: Any) -> Any:
    """Compile without any relaxation of floating point."""
    return _stamped(numba.njit(**_OPTIONS)(function))


def inlined(function: Any) -> Any:
    """Compile inline at every call, for functions of many arguments that a hot loop calls."""
    return _stamped(numba.njit(**_OPTIONS, fastmath={"contract"}, inline="always")(function))


def summing(function: Any) -> Any:
    """Compile a function that only adds up, with terms in any order."""
    return _stamped(numba.njit(**_OPTIONS, fastmath={"contract", "reassoc"})(function))


SHARED = ("dot.py", "lanes.py", "problem/codes.py")
"""What loops are made of, beside loops: files of the kernel."""


@cache
def shared_sources() -> str:
    """A hash of all files of the kernel that a compiled loop may call."""
    kernel = Path(__file__).parent
    return hash_of([*kernel.rglob("*_loops.py"), *(kernel / name for name in SHARED)])


def _stamped(loop: Any) -> Any:
    """Make the cached code depend on all that it may be made of; a plain function, if Numba is off, stays one."""
    if hasattr(loop, "py_func"):
        folder = Path(loop.py_func.__code__.co_filename).parent
        loop._cache._cache_file._source_stamp = sources(folder), shared_sources(), Path(__file__).read_bytes()
    return loop
