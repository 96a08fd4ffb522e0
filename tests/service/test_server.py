"""What the server does in one call is what it does in several, and connections end when their clients do nothing."""

import contextlib
import json
import logging
import re
import socket
import time
from importlib.metadata import requires, version
from urllib.parse import urlsplit

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from served import NAME, service_at, some_rows
from taciturn.service import app
from taciturn.service.server import running
from taciturn.service.service import Limits

LIMITS = Limits(body=20_000, bodies=30_000, head_seconds=1.0)
ROW = json.dumps({"rows": [{"age": 1, "income": 2, "town": "Rome"}]}).encode()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    service, secret = service_at(tmp_path_factory.mktemp("server") / "streams.db", tick=0.05, limits=LIMITS)
    with running(service) as address:
        yield service, secret, urlsplit(address).port


def request(secret, method="POST", path="predict", body=ROW, *headers):
    lines = [f"{method} /v1/streams/{NAME}/{path} HTTP/1.1", "host: x", f"authorization: Bearer {secret}"]
    lines += ["content-type: application/json", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answers(port, content, count=1):
    """What the server sends for some requests of one connection, without the time."""
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as connection:
        connection.sendall(content)
        got = b""
        while got.count(b"HTTP/1.1") < count or not _complete(got):
            part = connection.recv(65_536)
            if not part:
                break
            got += part
    return re.sub(rb"date: [^\r]*", b"date: now", got)


def _complete(got):
    head, _, body = got[got.rindex(b"HTTP/1.1") :].partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head)
    return found is not None and len(body) >= int(found[1])


CASES = {
    "a prediction": lambda s: [request(s)],
    "rows to learn from": lambda s: [
        request(s, "POST", "examples", json.dumps({"rows": some_rows(3)}).encode(), "idempotency-key: a")
    ],
    "an error": lambda s: [request(s, body=b'{"rows": 7}')],
    "a body that is too large": lambda s: [request(s, body=b" " * 25_000)],
    "a body after a question": lambda s: [request(s, "POST", "predict", ROW, "expect: 100-continue")],
    "the last request of a connection": lambda s: [request(s, "POST", "predict", ROW, "connection: close")],
    "two requests at once": lambda s: [request(s), request(s, "GET", "models?limit=1", b"")],
    "three requests at once": lambda s: [request(s), request(s), request(s)],
    "an empty body": lambda s: [request(s, body=b"")],
}


@pytest.mark.parametrize("case", CASES)
def test_answers_in_one_call_are_those_of_send(site, case, monkeypatch):
    """Slow twin: the same application without a connection in the scope."""
    _, secret, port = site
    requests = CASES[case](secret)
    fast = answers(port, b"".join(requests), len(requests))
    with monkeypatch.context() as patch:
        patch.setattr(app, "CONNECTION", "no connection")
        slow = answers(port, b"".join(requests), len(requests))
    assert fast == slow
    assert fast.count(b"HTTP/1.1") == len(requests) + (b"100 Continue" in fast)


def test_the_usual_answer_is_sent_in_one_call(site, monkeypatch):
    """A planted fault of the test above: if the connection were never used, it would compare nothing."""
    _, secret, port = site
    monkeypatch.setattr(app, "_USUAL_LINES", b"content-length: %d\r\nx-planted: 1\r\n")
    assert b"x-planted: 1" in answers(port, request(secret))


def test_bodies_that_are_there_count_like_those_that_come(site):
    """All bodies that a server holds at a time are limited."""
    service, secret, port = site
    service.bodies += LIMITS.bodies - 10
    try:
        assert b" 429 " in answers(port, request(secret)).partition(b"\r\n")[0]
    finally:
        service.bodies -= LIMITS.bodies - 10
    assert b" 200 " in answers(port, request(secret)).partition(b"\r\n")[0]
    assert service.bodies == 0


def test_an_idle_connection_ends_and_one_in_use_stays(site):
    _, secret, port = site
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20.0) as idle,
        socket.create_connection(("127.0.0.1", port), timeout=20.0) as used,
    ):
        idle.sendall(request(secret))
        assert b" 200 " in idle.recv(65_536)
        ended = False
        end = time.monotonic() + 2.5 * LIMITS.head_seconds
        while time.monotonic() < end:  # for longer than a connection may be idle
            used.sendall(request(secret))
            assert b" 200 " in used.recv(65_536)
            time.sleep(0.05)
        ended = idle.recv(1) == b""
        assert ended
        used.sendall(request(secret))
        assert b" 200 " in used.recv(65_536)


UNREAD = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 200  # answers of more than what systems hold for a client


def client_that_does_not_read(port):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(5.0)
    made.connect(("127.0.0.1", port))
    made.sendall(UNREAD)
    return made


def errors_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("read", [0, 4096])
def test_clients_that_do_not_read_are_cut_off(tmp_path, caplog, read):
    """However many there are, others are answered again, and nobody needs to be told of an error."""
    limits = Limits(connections=6, head_seconds=1.0, body_seconds=0.5)
    service, _ = service_at(tmp_path / "streams.db", limits=limits)
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(running(service))
        statuses = []
        for _ in range(limits.connections):
            client = stack.enter_context(contextlib.closing(client_that_does_not_read(urlsplit(address).port)))
            if read:
                client.recv(read)
        end = time.monotonic() + 10.0
        while time.monotonic() < end and 200 not in statuses:
            statuses.append(httpx.get(f"{address}/healthz").status_code)
            time.sleep(0.05)
        assert statuses[0] == 503, "the clients were not there"
        assert statuses[-1] == 200
        assert service.metrics.rejected["unread"] >= 1
    assert errors_of(caplog) == []


def test_a_slow_client_gets_its_whole_answer(tmp_path):
    """An answer may take as long as its parts: this one takes longer than one of them may."""
    limits = Limits(body_seconds=1.0, head_seconds=1.0)
    service, secret = service_at(tmp_path / "streams.db", limits=limits)
    body = json.dumps({"rows": [{"age": 1}] * 60_000}).encode()
    with running(service) as address, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(10.0)
        client.connect(("127.0.0.1", urlsplit(address).port))
        client.sendall(request(secret, "POST", "predict?probabilities=true", body, "connection: close"))
        got = []
        began = time.monotonic()
        while part := client.recv(65_536):
            got.append(part)
            time.sleep(0.02)
        content = b"".join(got).partition(b"\r\n\r\n")[2]
    assert len(content) > app.PART * 2
    assert time.monotonic() - began > limits.body_seconds
    assert len(json.loads(content)["predictions"]) == 60_000


def test_a_client_that_has_left_is_no_error(site, caplog):
    """Also one that has asked for more than it waits for."""
    _, secret, port = site
    for content in (request(secret) * 50, request(secret, body=ROW[:5]), request(secret, "GET", "live", b"")):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(content)
    clients = [client_that_does_not_read(port) for _ in range(3)]
    time.sleep(0.3)  # their answers wait for them
    for client in clients:
        client.close()
    time.sleep(0.3)
    assert b" 200 " in answers(port, request(secret))
    assert errors_of(caplog) == []


def test_the_installed_uvicorn_is_one_that_is_allowed() -> None:
    """The server uses attributes of its protocol that are not documented: another minor version has to be tried."""
    here = Version(version("uvicorn"))
    [specifier] = {Requirement(each).specifier for each in requires("taciturn") or () if each.startswith("uvicorn")}
    assert specifier.contains(here)
    assert not specifier.contains(f"{here.major}.{here.minor + 1}.0")
    assert not specifier.contains(f"{here.major}.{here.minor - 1}.0")
