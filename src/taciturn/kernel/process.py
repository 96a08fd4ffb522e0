"""In which process this code runs, asked after every example, and told without a system call where that is possible."""

from __future__ import annotations

import mmap
import os

_WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux, for which Python has no name
_NO_ADVICE = 2**30  # which every system rejects that does what it is advised


def page_wiped_on_fork() -> mmap.mmap | None:
    """Memory that is zeros in every forked process, however it was forked; None on a system that has none.

    Linux has it since version 4.14: random number generators of C use it to notice forks. A system that accepts any
    advice, and follows none, has it not: some emulators of Linux are like that.
    """
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_WIPE_ON_FORK)
    except (AttributeError, OSError, ValueError):
        return None
    try:
        page.madvise(_NO_ADVICE)
    except (OSError, ValueError):
        return page
    return None


_page = page_wiped_on_fork()
_known = [0]  # the number of the process that set the first byte of the page


def _wipe() -> None:
    if _page is not None:
        _page[0] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_wipe)


def process_number() -> int:
    """`os.getpid()`, which is its slow twin: a system call takes ten times as long as to read memory.

    *Proof.* The first byte of the page is 1 only after this process has stored a number: a forked one has a page of
    zeros, by the system, and, if Python knows of the fork, by `_wipe`. One that is forked in the middle of `_ask`, by a
    signal handler, may store its parent's number. It then asks again, finds another, and repeats. ∎

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
