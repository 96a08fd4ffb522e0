"""What the server does in one call is what it does in several, and connections end when nothing is asked on them."""

import json
import re
import socket
import time
from urllib.parse import urlsplit

import pytest

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
