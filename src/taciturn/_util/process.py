"""In which process this code runs, asked after every example, and told without a system call where that is possible."""

from __future__ import annotations

import mmap
import os

_WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux, for which Python has no name


def page_wiped_on_fork() -> mmap.mmap | None:
    """Memory that is zeros in every forked process, however it was forked; None on a system that has none.

    Linux has it since version 4.14: random number generators of C use it to notice forks.
    """
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_WIPE_ON_FORK)
    except (AttributeError, OSError, ValueError):
        return None
    return page


_page = page_wiped_on_fork()
_known = [0]  # the number of the process that set the first byte of the page


def process_number() -> int:
    """`os.getpid()`, which is its slow twin: a system call takes ten times as long as to read memory.

    *Proof.* The first byte of the page is 1 only after this process has stored a number: a forked one has a page of
    zeros. One that is forked in the middle of `_ask`, by a signal handler, may store its parent's number. It then asks
    again, finds another, and repeats. ∎

    >>> process_number() == os.getpid()
    True
    """
    if _page is not None and _page[0]:
        return _known[0]
    return _ask()


def _ask() -> int:
    if _page is None:
        return os.getpid()
    while not _page[0]:
        _known[0] = os.getpid()
        _page[0] = 1
        if _known[0] != os.getpid():
            _page[0] = 0
    return _known[0]
