"""Loading what stays loaded, without looking for garbage in it over and over."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """The collector rests while modules are loaded.

    Numba and what it needs make more than a hundred thousand objects that live as long as the process. The collector
    would look through them again and again as they come, for a tenth of the time in which a recipe starts; so it looks
    once, when they are there. Where it was off, it stays off.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
