"""A proxy before a PostgreSQL server that cuts connections around COMMIT.

How a connection is cut at a COMMIT:

before   COMMIT does not reach the server
after    COMMIT reaches it, and both ends are closed at once
answer   COMMIT reaches it, and its answer is not passed on
late     the client's end is closed at once; COMMIT reaches the server a little later, while the client reads back
"""

import contextlib
import random
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg

WAYS = ("before", "after", "answer", "late")
DELAY = 0.05


class Proxy:
    """A proxy on a Unix socket.

    Parameters
    ----------
    address : str
        The database behind it.
    share : float
        The probability that a COMMIT is cut, while `armed`.
    seed : int
        Of the choice of COMMITs, and of ways.
    """

    def __init__(self, address, share, seed):
        self.share, self.armed = share, False
        self.cuts = dict.fromkeys(WAYS, 0)
        self._chance = random.Random(seed)
        self._folder = tempfile.TemporaryDirectory(prefix="cut", dir="/tmp")
        self._target = _socket_of(address)
        parts = urlsplit(address)
        user = parts.netloc.rpartition("@")[0]
        self.address = urlunsplit(
            parts._replace(netloc=f"{user}@" if user else "", query=f"host={quote(self._folder.name)}")
        )
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/.s.PGSQL.5432")
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        self._folder.cleanup()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = self._target()
        silent = threading.Event()
        threading.Thread(target=_pass_on, args=(server, client, silent), daemon=True).start()
        with contextlib.suppress(OSError, EOFError):
            for message in _messages(client):
                if self.armed and b"COMMIT" in message and self._chance.random() < self.share:
                    self._cut(self._chance.choice(WAYS), client, server, message, silent)
                    break
                server.sendall(message)
        _close(client)
        _close(server)

    def _cut(self, way, client, server, message, silent):
        self.cuts[way] += 1
        silent.set()
        if way in ("before", "after", "late"):
            _close(client)
        if way == "late":
            time.sleep(DELAY)
        if way != "before":
            server.sendall(message)
        if way == "answer":
            time.sleep(DELAY)


class Hanging(Proxy):
    """A proxy that stops: connections stay open, and nothing is passed on until it goes on.

    Parameters
    ----------
    address : str
        The database behind it.
    """

    def __init__(self, address):
        self._passes = threading.Event()
        self._passes.set()
        self._open = []
        super().__init__(address, 0.0, 0)

    def hang(self):
        """Stop; new connections are accepted, and not answered either."""
        self._passes.clear()

    def go_on(self):
        """Pass on what has come meanwhile."""
        self._passes.set()

    def cut(self):
        """Close all connections, as at a failover."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def __exit__(self, *_):
        self.go_on()
        super().__exit__()

    def _serve(self, client):
        self._passes.wait()
        server = self._target()
        self._open += [client, server]
        for source, to in ((client, server), (server, client)):
            threading.Thread(target=self._pass, args=(source, to), daemon=True).start()

    def _pass(self, source, to):
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                self._passes.wait()
                to.sendall(part)
        _close(source)
        _close(to)


def _socket_of(address):
    """What connects to the server of an address."""
    with psycopg.connect(address) as connection:
        host, port = connection.info.host, connection.info.port

    def connect():
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        made = socket.socket(socket.AF_UNIX)
        made.connect(str(Path(host) / f".s.PGSQL.{port}"))
        return made

    return connect


def _messages(client):
    """The messages of a client: the first has no type."""
    length = _exactly(client, 4)
    yield length + _exactly(client, struct.unpack("!i", length)[0] - 4)
    while True:
        head = _exactly(client, 5)
        yield head + _exactly(client, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(client, count):
    parts = b""
    while len(parts) < count:
        part = client.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


def _pass_on(server, client, silent):
    """What the server answers, until the client shall not hear it."""
    with contextlib.suppress(OSError):
        while part := server.recv(65536):
            if not silent.is_set():
                client.sendall(part)


def _close(one):
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
