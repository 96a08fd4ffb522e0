"""Who may connect: how many clients at a time, how many of them from one address, and how long TLS may take.

A protocol knows of a connection when its first byte can be read: with TLS, after the handshake. What is limited there
alone can be used up by connections that never begin one. So a `Listener` counts a connection from when it is accepted
until it is lost.

Behind a proxy all connections come from one address: `taciturn serve --behind-proxy` has no limit for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from taciturn.errors import InvalidInput
from taciturn.service import messages
from taciturn.service.service import Limits, Service

LOG = logging.getLogger("taciturn")

REASONS = {
    "all": "as many connections are open as this server allows",
    "address": "one address has as many connections as it may have",
    "handshake": "a client did not agree on TLS in time",
    "unread": "a client did not read its answer in time",
    "descriptors": "no file descriptor is left",
}
"""Why a connection is rejected or cut off."""

_AT_ONCE = 64  # that are accepted before others have their turn
_PAUSE_S = 1.0  # without descriptors
_QUIET_S = 60.0  # between two lines of the log for one reason
_OTHERS = 128  # file descriptors for databases, files and threads


class Listener:
    """Lets connections in at a socket; for uvicorn it is one of its `asyncio.Server`.

    Parameters
    ----------
    listening : socket
        A socket that listens; it is closed with the listener.
    service : Service
        Whose limits hold, and whose metrics count what is rejected.
    protocol : callable
        Makes a protocol, which calls `left` when its connection is lost.
    tls : ssl.SSLContext, optional
        For https.
    """

    def __init__(self, listening: socket.socket, service: Service, protocol: Callable[[], Any], tls: Any) -> None:
        self._listening = listening
        self._service = service
        self._limits = service.limits
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._tls: dict[str, Any] = {}
        if tls is not None:
            seconds = self._limits.handshake_seconds
            self._tls = {"ssl": tls, "ssl_handshake_timeout": seconds, "ssl_shutdown_timeout": seconds}
        self._origins: dict[Any, str | bytes] = {}  # of open connections, by their protocols
        self._open: Counter[str | bytes] = Counter()
        self._entering: set[asyncio.Task[None]] = set()
        self._told: dict[str, float] = {}
        listening.setblocking(False)
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        """Let no one in any more."""
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for task in self._entering:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until nobody is on the way in."""
        if self._entering:
            await asyncio.wait(self._entering)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self.tell("descriptors")
                self._loop.remove_reader(self._listening)
                self._loop.call_later(_PAUSE_S, self._go_on)
                return
            origin = origin_of(address[0])
            if self._service.connections >= self._limits.connections:
                self._reject(connection, "all")
            elif self._open[origin] >= self._limits.address_connections:
                self._reject(connection, "address")
            else:
                connection.setblocking(False)
                protocol = self._protocol()
                protocol.listener = self
                self._origins[protocol] = origin
                self._open[origin] += 1
                self._service.connections += 1
                task = self._loop.create_task(self._let_in(connection, protocol))
                self._entering.add(task)
                task.add_done_callback(self._entering.discard)

    def _go_on(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    async def _let_in(self, connection: socket.socket, protocol: Any) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection, **self._tls)
        except BaseException as error:  # the protocol was never told of a connection
            self.left(protocol)
            if isinstance(error, ConnectionAbortedError):
                self.tell("handshake")
            if not isinstance(error, OSError):  # which errors of TLS are
                raise

    def left(self, protocol: Any) -> None:
        """Forget a connection, which is lost."""
        origin = self._origins.pop(protocol, None)
        if origin is not None:
            self._service.connections -= 1
            self._open[origin] -= 1
            if not self._open[origin]:
                del self._open[origin]

    def _reject(self, connection: socket.socket, why: str) -> None:
        """Say why without TLS, as far as that can be done at once, and end the connection."""
        self.tell(why)
        with contextlib.suppress(OSError), connection:
            if not self._tls:
                connection.setblocking(False)
                connection.send(_answer(why))

    def tell(self, why: str) -> None:
        """Count a connection that is rejected or cut off, and tell the log once a minute."""
        rejected = self._service.metrics.rejected
        rejected[why] += 1
        now = self._loop.time()
        if now - self._told.get(why, -_QUIET_S) >= _QUIET_S:
            self._told[why] = now
            LOG.warning("a connection was rejected or cut off: %s (%d so far)", REASONS[why], rejected[why])


def _answer(why: str) -> bytes:
    content = msgspec.json.encode(messages.Error(f"{REASONS[why]}. Try again in a second."))
    head = (
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"
    )
    return head % len(content) + content


def origin_of(address: str) -> str | bytes:
    """What the connections of a client have in common: of IPv6 the first 64 bits, within which hosts choose freely.

    >>> origin_of("192.0.2.1")
    '192.0.2.1'
    >>> origin_of("2001:db8::1") == origin_of("2001:db8::2:3"), origin_of("2001:db8:0:1::1") == origin_of("2001:db8::1")
    (True, False)
    >>> origin_of("::ffff:192.0.2.1")
    '192.0.2.1'
    """
    if ":" not in address:
        return address
    packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    if packed[:12] == bytes(10) + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return packed[:8]


def within_descriptors(limits: Limits) -> Limits:
    """Limits with as many connections as this process may have file descriptors, of which it may now have the most.

    >>> within_descriptors(Limits(connections=10)).connections
    10
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY or most >= limits.connections + _OTHERS:
        return limits
    if most <= _OTHERS:
        raise InvalidInput(
            f"a server needs more than {_OTHERS} open files, and may have {most}. Raise the limit (ulimit -n)."
        )
    return replace(limits, connections=most - _OTHERS)
