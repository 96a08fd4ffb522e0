"""The HTTP server: uvicorn, with limits on how long requests and answers may take, and how large a head may be.

uvicorn waits for ever for a client that has sent half a request, or does not read its answer. Here a head or a body
that has not arrived in time, or a head that is too large, ends the connection (408, 431), and so does a part of an
answer that was not read in time. How large a body may be is for `taciturn.service.app.Call`.

An application finds its connection in the scope (`CONNECTION`), and gets from it a body that is there, and gives it an
answer that is ready, in one call each. Where that cannot be done, it uses `receive` and `send`, which are the
definition. All this knows attributes of uvicorn's protocol that are not documented, so `pyproject.toml` allows the
minor version only with which it was tested.
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
from taciturn.service.app import CONNECTION, PART, Application
from taciturn.service.listener import Listener
from taciturn.service.service import Limits, Service

_HSTS_S = 365 * 86_400
"""Seconds for which a browser that was here by TLS comes by TLS only (RFC 6797)."""


def protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Uvicorn's protocol, with these limits."""

    class LimitedProtocol(HttpToolsProtocol):
        """Ends connections whose requests are slow or have large heads, or whose answers are not read.

        A connection has one timer for all of its life, which looks at it now and then; a request that arrives at once,
        and an answer that is read at once, need no other.
        """

        _timer: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None
        _watch: asyncio.TimerHandle
        _closed = False  # at the last look
        listener: Listener
        _answered = 0.0  # when the last answer was complete
        _answering: Any = None  # the cycle whose answer is sent; `cycle` is that of the last request
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
                or len(content) > PART
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
            transport.set_write_buffer_limits(high=1, low=0)  # so that all that is left unread pauses writing
            self._answered = self.loop.time()
            self._watch = self.loop.call_later(self.timeout_keep_alive, self._look)
            self._wait(limits.head_seconds)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = self.loop.call_later(limits.body_seconds, self._cut_off)

        def resume_writing(self) -> None:
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None
            super().resume_writing()

        def _cut_off(self) -> None:
            """End a connection whose client does not read; to close it would wait for that client."""
            self.listener.tell("unread")
            self.transport.abort()

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
            if self.transport.is_closing():  # after a request that was answered by an error
                return
            self._arrived()
            self._in_head = False
            version, hosts = self.parser.get_http_version(), sum(name == b"host" for name, _ in self.headers)
            if not (hosts == 1 or (hosts == 0 and version == "1.0")) or version not in ("1.0", "1.1"):
                self._end(b"400 Bad Request")
                return
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

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            self._answering = cycle
            super()._start_asgi_task(cycle, app)

        def on_response_complete(self) -> None:
            if self.pipeline or self.transport.is_closing():
                return super().on_response_complete()
            self.server_state.total_requests += 1
            self.flow.resume_reading()
            self._answered = self.loop.time()
            return None

        def _look(self) -> None:
            """Close a connection on which nothing was asked for a while, and cut off one that has stayed so.

            A connection that is closed stays until its client has read what is left.
            """
            if self._closed:
                self._cut_off()
                return
            left = self._answered + self.timeout_keep_alive - self.loop.time()
            if self._timer is not None or (self.cycle is not None and not self.cycle.response_complete):
                left = self.timeout_keep_alive  # it is in use
            elif left <= 0.0:
                self.timeout_keep_alive_handler()
            self._closed = self.transport.is_closing()
            self._watch = self.loop.call_later(limits.body_seconds if self._closed else left, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            self._watch.cancel()
            scope: Any = self.scope
            if scope is not None:
                scope.pop(CONNECTION, None)
            if self._answering is not None and not self._answering.response_complete:
                self._answering.disconnected = True
                self._answering.message_event.set()
            self.pipeline.clear()
            self.resume_writing()
            super().connection_lost(exc)
            self.listener.left(self)

        def _end(self, status: bytes) -> None:
            self._arrived()
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self.transport.close()

    return LimitedProtocol


class _Server(uvicorn.Server):
    """uvicorn, with a `Listener` at each socket."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        sockets = sockets or [self.config.bind_socket()]
        for each in sockets:
            each.listen(self.config.backlog)  # who looks whether it has started may connect at once
        await super().startup(sockets=[])
        servers: Any = [Listener(each, self.service, self._protocol, self.config.ssl) for each in sockets]
        self.servers = servers

    def _protocol(self) -> Any:
        made: Any = self.config.http_protocol_class
        return made(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def server_of(service: Service, host: str = "127.0.0.1", port: int = 8000, **settings: Any) -> uvicorn.Server:
    """A server that is not started; `settings` are those of uvicorn.

    Its own log of requests is off, as it would have paths and queries. Headers of proxies are not read: nothing depends
    on the address of a client but how many connections it may have.
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
        headers=[("strict-transport-security", f"max-age={_HSTS_S}")] if service.secure else [],
        timeout_keep_alive=int(max(1, service.limits.head_seconds)),
        timeout_graceful_shutdown=5,
        **settings,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # "Invalid HTTP request received." for each scan
    return _Server(config, service)


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
