"""Releases as server-sent events: who listens is told at ticks, and can go on after a lost connection.

An event is a visible release: its number as the id, its round, the standard deviation of its noise, and its weights. A
browser sends the id of the last event that it has seen (`Last-Event-ID`), and gets all that followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taciturn.service.service import Service

HEARTBEAT = 15.0
"""Seconds between two lines that keep a connection open."""

_AT_ONCE = 100  # releases that are read from the store at a time


class Changes:
    """Wakes those who wait for a stream to show more; in the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self.ended = False

    def tell(self, name: str) -> None:
        """Wake those who wait for a stream."""
        for event in self._waiting.get(name, ()):
            event.set()

    def end(self) -> None:
        """Wake all, for the last time."""
        self.ended = True
        for name in self._waiting:
            self.tell(name)

    async def wait(self, name: str, seconds: float) -> bool:
        """Whether a stream shows more within some seconds."""
        event = asyncio.Event()
        self._waiting.setdefault(name, set()).add(event)
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
            return True
        except TimeoutError:
            return False
        finally:
            self._waiting[name].discard(event)


async def release_events(service: Service, name: str, after: int | None) -> AsyncGenerator[bytes, None]:
    """The events of a stream after a release; None begins with the latest one."""
    host = service.host(name)
    seen = max(host.view.k - 1, 0) if after is None else min(after, host.view.k)
    yield b"retry: 2000\n\n"
    while not service.changes.ended and service.replaced is None:
        host = service.host(name)
        while seen < host.view.k:
            made = await service.in_thread(host.releases, seen, _AT_ONCE, True)
            yield b"".join(_event(number, each) for number, each in enumerate(made, seen + 1))
            seen += len(made)
        if host.view.closed:
            yield b"event: closed\ndata: {}\n\n"
            return
        if not await service.changes.wait(name, HEARTBEAT):
            yield b": no news\n\n"


def _event(number: int, data: bytes) -> bytes:
    return b"id: %d\nevent: release\ndata: %s\n\n" % (number, data)
