"""Who may connect: connections count from when they are accepted, in all and by address, also before TLS is agreed."""

import contextlib
import json
import logging
import resource
import socket
import ssl
import subprocess
import sys
import time
from urllib.parse import urlsplit

import httpx

import forked_workers
from served import free_port, self_signed, serve_at, service_at
from taciturn.service.server import running
from taciturn.service.service import Limits

NO_FILES = 200  # descriptors that a server is left with in a test, more than it needs itself


def connected(port, address="127.0.0.1"):
    """A connection on which nothing is sent."""
    made = socket.socket()
    made.settimeout(5.0)
    made.bind((address, 0))
    made.connect(("127.0.0.1", port))
    return contextlib.closing(made)


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def answers(address, **settings):
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{address}/healthz", **settings).status_code == 200
    return False


def test_handshakes_that_never_begin_keep_nobody_out(tmp_path, caplog):
    certificate, key = self_signed(tmp_path)
    limits = Limits(connections=6, handshake_seconds=1.0)
    service, _ = service_at(tmp_path / "streams.db", limits=limits)
    trusted = ssl.create_default_context(cafile=certificate)
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    with running(service, **tls) as address, contextlib.ExitStack() as stack:
        for _ in range(limits.connections):
            stack.enter_context(connected(urlsplit(address).port))
        assert until(lambda: service.connections == limits.connections)
        assert not answers(address, verify=trusted)
        assert until(lambda: answers(address, verify=trusted))
        assert service.metrics.rejected["handshake"] == limits.connections
        assert until(lambda: service.connections == 0)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2, "once for each reason"
    assert "TLS" in said[1]


def test_an_address_has_its_share(tmp_path):
    service, _ = service_at(tmp_path / "streams.db", limits=Limits(address_connections=3))
    with running(service) as address, contextlib.ExitStack() as stack:
        port = urlsplit(address).port
        first = stack.enter_context(connected(port, "127.0.0.2"))
        for _ in range(2):
            stack.enter_context(connected(port, "127.0.0.2"))
        with connected(port, "127.0.0.2") as rejected:
            head, _, body = rejected.recv(4096).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1" in head
            assert "one address" in json.loads(body)["error"]
        assert answers(address)
        first.close()
        assert until(lambda: service.connections == 2)
        with connected(port, "127.0.0.2") as another:
            another.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert another.recv(4096).startswith(b"HTTP/1.1 200 ")


def serve_with_few_files(*arguments, **settings):
    resource.setrlimit(resource.RLIMIT_NOFILE, (NO_FILES, NO_FILES))
    serve_at(*arguments, **settings)


def test_a_server_without_descriptors_goes_on_when_it_has_some(tmp_path):
    service_at(tmp_path / "streams.db")[0].close()
    port = free_port()
    server = forked_workers.context().Process(
        target=serve_with_few_files, args=(tmp_path / "streams.db", port), daemon=True
    )
    server.start()
    try:
        address = f"http://127.0.0.1:{port}"
        assert until(lambda: answers(address), 30.0)
        with contextlib.ExitStack() as stack:
            for _ in range(NO_FILES + 20):
                stack.enter_context(connected(port))
            time.sleep(0.2)
        assert until(lambda: answers(address))
    finally:
        server.kill()
        server.join()


FILES = """
import resource
from taciturn.errors import InvalidInput
from taciturn.service.listener import within_descriptors
from taciturn.service.service import Limits

for soft, hard in (256, 4_096), (256, 600), (64, 100):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        print(within_descriptors(Limits()).connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    except InvalidInput as error:
        print(error)
"""


def test_connections_fit_the_descriptors_that_a_process_may_have():
    done = subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, check=True)
    enough, few, too_few = done.stdout.splitlines()
    assert (enough, few) == ("1000 4096", "472 600")
    assert "may have 100. Raise the limit" in too_few
