"""Threads of linear algebra, whose number a process reads when it loads NumPy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Variables of the environment that state it."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Set BLAS to one thread in processes started within the block, before they import NumPy.

    >>> with one_thread():
    ...     os.environ["OPENBLAS_NUM_THREADS"]
    '1'
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def use_one_thread() -> None:
    """Set BLAS to one thread in this process, unless the environment says otherwise or NumPy is loaded.

    Products of a few thousand rows are too short to share: threads that wait for each other beside the one that reads
    the rows take several times as long on two cores.
    """
    if "numpy" not in sys.modules:
        for name in THREADS:
            os.environ.setdefault(name, "1")
