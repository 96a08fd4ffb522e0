"""Reading ahead in a thread: while rows are learnt from, the next are read, and who waits for them may stop waiting."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """What an iterator gives, fetched by a thread that is two items ahead at the most.

    Examples
    --------
    >>> with Ahead(iter("ab")) as letters:
    ...     [letters.next(timeout=9.0) for _ in range(2)]
    ['a', 'b']
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._ready: queue.Queue[tuple[str, T | None, BaseException | None]] = queue.Queue(maxsize=1)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._fetch, daemon=True)

    def __enter__(self) -> Ahead[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        with contextlib.suppress(queue.Empty):
            self._ready.get_nowait()  # a thread that waits to hand something over need not
        self._thread.join(timeout=0.3)

    @property
    def waiting(self) -> bool:
        """Whether the thread still waits for input; there is no way to call it back."""
        return self._thread.is_alive()

    def next(self, timeout: float) -> T | None:
        """The next item, or None if there is none in time; StopIteration, or its error, where the iterator ends."""
        try:
            kind, item, error = self._ready.get(timeout=timeout)
        except queue.Empty:
            return None
        if kind == "item":
            return item
        self._ready.put((kind, item, error))  # for whoever asks again
        raise error if error is not None else StopIteration

    def _fetch(self) -> None:
        try:
            for item in self._items:
                if not self._hand_over(("item", item, None)):
                    return
            self._hand_over(("end", None, None))
        except BaseException as error:
            self._hand_over(("end", None, error))

    def _hand_over(self, what: tuple[str, T | None, BaseException | None]) -> bool:
        """Whether anyone still wanted it."""
        while not self._left.is_set():
            try:
                self._ready.put(what, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False
