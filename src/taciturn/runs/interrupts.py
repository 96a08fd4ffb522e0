"""Ctrl-C and SIGTERM as something to look at, not to be thrown by."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """The signal that came, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the first; the second of a kind ends the process as it always would have."""
        self.signal = signal.Signals(number)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    @property
    def exit_status(self) -> int:
        """128 and the signal's number, as shells have it; 0 if none came."""
        return 128 + self.signal if self.signal is not None else 0


@contextlib.contextmanager
def noted() -> Iterator[Interrupts]:
    """Note SIGINT and SIGTERM for the time of the block; elsewhere than in the main thread nothing can be noted.

    >>> with noted() as interrupts:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     interrupts.signal.name, interrupts.exit_status
    ('SIGTERM', 143)
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
