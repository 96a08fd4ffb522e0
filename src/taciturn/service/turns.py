"""Turns: threads of a process that write to one database follow each other in the order in which they came.

SQLite lets one transaction write at a time. Another one sleeps, and tries again after 1, 2, 5 and up to 100
milliseconds, even if others came later. So a thread that writes one block after the other would keep requests waiting
for a second. Here each waits for those that came before it, and is woken at once. Other processes are not part of this,
and wait as the database has it. What is promised of transactions does not depend on turns: a thread that has waited for
as long as transactions do goes on without one.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

from taciturn.store import database


class Turns:
    """A lock that is given to those who wait in their order; for threads that are not interrupted.

    Parameters
    ----------
    needed : bool
        Whether the database has one writer at a time; otherwise no thread waits.

    Examples
    --------
    >>> turns = Turns()
    >>> with turns.turn():
    ...     turns.waiting
    0
    """

    def __init__(self, needed: bool = True) -> None:
        self._needed = needed
        self._lock = threading.Lock()
        self._taken = False
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    @contextlib.contextmanager
    def turn(self, most: float | None = None) -> Iterator[None]:
        """A block that begins when those before it have ended, or after at most so many seconds.

        By default these are `taciturn.store.database.WAIT`.
        """
        taken = self._needed and self._take(database.WAIT if most is None else most)
        try:
            yield
        finally:
            if taken:
                self._end()

    def _take(self, most: float) -> bool:
        with self._lock:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        if mine.acquire(timeout=most):  # until the one before has ended
            return True
        with self._lock:
            if mine in self._queue:
                self._queue.remove(mine)
                return False
        return True  # it came just then

    def _end(self) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False
