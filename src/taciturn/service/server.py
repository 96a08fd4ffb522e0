"""The HTTP server: uvicorn, with limits on how long a request may take to arrive, and how large its head may be.

uvicorn waits for ever for a client that has sent half a request. Here a head or a body that has not arrived in time, or
a head that is too large, ends the connection (408, 431). How large a body may be is for `taciturn.service.app.Call`.

An application finds its connection in the scope (`CONNECTION`), and gets from it a body that is there, and gives it an
answer that is ready, in one call each. Where that cannot be done, it uses `receive` and `send`, which are the
definition.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from taciturn.errors import InvalidInput
from taciturn.service.app import CONNECTION, Application
from taciturn.service.service import Limits, Service


def protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Uvicorn's protocol, with these limits."""

    class LimitedProtocol(HttpToolsProtocol):
        """Ends connections whose requests are slow, or have large heads.

        A request that arrives at once needs no timer, and an idle connection one for all of its life.
        """

        _timer: asyncio.TimerHandle | None = None
        _idle: asyncio.TimerHandle | None = None
        _answered = 0.0  # when the last answer was complete
        _size = 0
        _in_head = True
        _default: list[tuple[bytes, bytes]] | None = None
        _default_lines = b""

        # What the application may use instead of `receive` and `send`.

        def arrived(self, scope: Any) -> bytes | None:
            """The body of a request, if all of it is here; None if it has to be received."""
            cycle = self.cycle
            if cycle.scope is not scope or cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue:
                return None
            body, cycle.body = bytes(cycle.body), bytearray()
            return body

        def answer(self, scope: Any, status: int, lines: bytes, content: bytes) -> bool:
            """Send a whole answer, whose head has these lines; False if it has to be sent in parts.

            What `send` of uvicorn does in two calls, for the usual request: the last of a connection that stays open.
            """
            cycle = self.cycle
            if (
                cycle.scope is not scope
                or cycle.response_started
                or cycle.disconnected
                or not cycle.keep_alive
                or self.flow.write_paused
                or scope["method"] == "HEAD"
            ):
                return False
            default = cycle.default_headers
            if default is not self._default:  # uvicorn makes another list every second
                self._default_lines = b"".join(b"%s: %s\r\n" % (name.lower(), value) for name, value in default)
                self._default = default
            cycle.response_started = True
            self.transport.write(b"%s%s%s\r\n%s" % (STATUS_LINE[status], self._default_lines, lines, content))
            cycle.response_complete = True
            cycle.message_event.set()
            cycle.on_response()
            return True

        # uvicorn's protocol.

        def connection_made(self, transport: Any) -> None:
            self.access_log = False  # it would have paths and queries, whatever the process does with its loggers
            super().connection_made(transport)
            self._wait(limits.head_seconds)

        def data_received(self, data: bytes) -> None:
            self._size += len(data)
            super().data_received(data)
            if self._in_head and self._size > limits.head:
                self._end(b"431 Request Header Fields Too Large")
            elif self._size and self._timer is None and not self.transport.is_closing():
                self._wait(limits.head_seconds if self._in_head else limits.body_seconds)

        def _wait(self, seconds: float) -> None:
            """Wait for the rest of a head, or of a body."""
            self._timer = self.loop.call_later(seconds, self._end, b"408 Request Timeout")

        def _arrived(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def on_headers_complete(self) -> None:
            self._arrived()
            self._in_head = False
            if self._size > limits.head:
                head = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
                if head > limits.head:
                    self._end(b"431 Request Header Fields Too Large")
                    return
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if not self.transport.is_closing():
                super().on_body(body)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            scope: Any = self.scope
            scope[CONNECTION] = self

        def on_message_complete(self) -> None:
            self._arrived()
            self._in_head, self._size = True, 0
            if not self.transport.is_closing():
                super().on_message_complete()

        def on_response_complete(self) -> None:
            if self.pipeline or self.transport.is_closing():
                return super().on_response_complete()
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            self._answered = self.loop.time()
            if self._idle is None:
                self._idle = self.loop.call_later(self.timeout_keep_alive, self._look_whether_idle)
            return None

        def _look_whether_idle(self) -> None:
            """Close a connection on which nothing was asked for a while; look again later if something was."""
            left = self._answered + self.timeout_keep_alive - self.loop.time()
            busy = self._size > 0 or not self.cycle.response_complete
            if busy or left > 0.0:
                wait = self.timeout_keep_alive if busy else left
                self._idle = self.loop.call_later(wait, self._look_whether_idle)
            else:
                self.timeout_keep_alive_handler()

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            scope: Any = self.scope
            if scope is not None:
                scope.pop(CONNECTION, None)
            super().connection_lost(exc)

        def _end(self, status: bytes) -> None:
            self._arrived()
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self.transport.close()

    return LimitedProtocol


def server_of(service: Service, host: str = "127.0.0.1", port: int = 8000, **settings: Any) -> uvicorn.Server:
    """A server that is not started; `settings` are those of uvicorn.

    Its own log of requests is off, as it would have paths and queries. Headers of proxies are not read: nothing depends
    on the address of a client.
    """
    config = uvicorn.Config(
        Application(service),
        host,
        port,
        http=protocol(service.limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=service.limits.connections,
        timeout_keep_alive=int(max(1, service.limits.head_seconds)),
        timeout_graceful_shutdown=5,
        **settings,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # "Invalid HTTP request received." for each scan
    return uvicorn.Server(config)


@contextlib.contextmanager
def running(service: Service, host: str = "127.0.0.1", port: int = 0, **settings: Any) -> Iterator[str]:
    """Serve in a thread during a block, by default at a free port; the address is what the block gets.

    >>> import tempfile
    >>> import httpx
    >>> from taciturn.store import Store
    >>> with tempfile.TemporaryDirectory() as folder, running(Service(Store(f"{folder}/streams.db"))) as address:
    ...     httpx.get(f"{address}/healthz").json(), httpx.get(f"{address}/v1/streams").status_code
    ({'status': 'ok'}, 401)
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InvalidInput(f"{host}:{port} cannot be listened at: {error.strerror}. Choose another port.") from None
    server = server_of(service, host, listening.getsockname()[1], **settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="taciturn-server", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise InvalidInput("the server did not start. Its log says why.")
            time.sleep(0.002)
        scheme = "https" if "ssl_certfile" in settings else "http"
        yield f"{scheme}://{host}:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
