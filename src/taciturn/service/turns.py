"""Turns: threads of a process that write to one database follow each other in the order in which they came.

SQLite lets one transaction write at a time. Another one sleeps, and tries again after 1, 2, 5 and up to 100
milliseconds, whoever else came meanwhile. So a thread that writes one block after the other would keep requests waiting
for a second. Here each waits for those that came before it, and is woken at once. Other processes are not part of this,
and wait as the database has it. What is promised of transactions does not depend on turns.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class Turns:
    """A lock that is given to those who wait in their order; for threads that are not interrupted.

    >>> turns = Turns()
    >>> with turns:
    ...     turns.waiting
    0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._queue)

    def __enter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        mine.acquire()  # until the one before has ended

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._taken = False
