"""A server among strangers: hostile requests and their outcomes, tokens and scopes, headers, and what is logged."""

import contextlib
import json
import logging
import re
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import numpy as np
import pyarrow as pa
import pytest

from served import ARROW, NAME, Client, declared, service_at, some_rows
from taciturn.accounting.ledger import Ledger
from taciturn.contract.contract import contract_of
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.service import host
from taciturn.service.app import OPERATIONS, SECURITY
from taciturn.service.host import PAGE
from taciturn.service.server import running
from taciturn.service.service import Limits, Service
from taciturn.service.tokens import Tokens, csrf_token, session_cookie
from taciturn.store import Store
from taciturn.store.database import Database

SECRET_VALUE = "q7Zsecretvalue"
LIMITS = Limits(body=20_000, body_seconds=0.5, head_seconds=0.5, head=8_192, rows=100, live=3, token_live=2)


class Site:
    """A server, the secrets of its tokens by scope, and raw requests to it."""

    def __init__(self, service, address, secret):
        self.service = service
        self.address = address
        self.secret = secret
        self.client = Client(address, secret)
        self.port = urlsplit(address).port

    def raw(self, content, seconds=5.0, slowly=0.0):
        """The status line and the rest of what a server answers to these bytes; "" if it ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            if slowly:
                for start in range(0, len(content), 8):
                    try:
                        connection.sendall(content[start : start + 8])
                    except OSError:
                        break
                    time.sleep(slowly)
            else:
                connection.sendall(content)
            answer = b""
            try:
                while part := connection.recv(65_536):
                    answer += part
                    if b"\r\n\r\n" in answer and _complete(answer):
                        break
            except ConnectionResetError:
                pass
        return answer.decode("latin-1")

    def request(self, method, path, body=b"", **headers):
        """The bytes of a request with a good token."""
        lines = [f"{method} {path} HTTP/1.1", "host: x", f"authorization: Bearer {self.secret}"]
        lines += [f"content-length: {len(body)}"] if body or method == "POST" else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _complete(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head.lower())
    return found is not None and len(body) >= int(found[1])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    service, secret = service_at(tmp_path_factory.mktemp("site") / "streams.db", tick=0.05, limits=LIMITS)
    service.create("other", contract_of(declared(1000)))
    with running(service) as address:
        made = Site(service, address, secret)
        made.client.learn(some_rows(25), "before all")
        yield made


PREDICT, EXAMPLES = f"/v1/streams/{NAME}/predict", f"/v1/streams/{NAME}/examples"
ROW = json.dumps({"rows": [{"age": 1, "town": SECRET_VALUE}]}).encode()
JSON = {"content_type": "application/json"}
KEY = {**JSON, "idempotency_key": "hostile"}


def arrow(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


TABLE = pa.table({"age": [1.0], "income": [2.0], "town": ["Rome"]})
ARROW_BODY = arrow(TABLE)
OFFSETS = pa.py_buffer(np.array([0, 2**20, 4], np.int32))
OUTSIDE = pa.Array.from_buffers(pa.string(), 2, [None, OFFSETS, pa.py_buffer(b"Rome")])
BROKEN = pa.table({"age": [1.0] * 2, "income": [2.0] * 2, "town": OUTSIDE})


def _without_host(text):
    return text.replace(b"host: x\r\n", b"")


HOSTILE = {
    # name: (how the bytes of the request are made from a site, the status; several if parsers may differ)
    "no token": (lambda s: b"GET /v1/streams HTTP/1.1\r\nhost: x\r\n\r\n", 401),
    "an unknown token": (
        lambda s: b"GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer taciturn_x\r\n\r\n",
        401,
    ),
    "basic authorization": (lambda s: b"GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Basic YTpi\r\n\r\n", 401),
    "an expired token": (lambda s: with_token(s, s.expired), 401),
    "a revoked token": (lambda s: with_token(s, s.revoked), 401),
    "a token of another scope": (lambda s: with_token(s, s.learner), 403),
    "a token of another stream": (lambda s: with_token(s, s.foreign), 403),
    "a token in the query": (lambda s: f"GET /metrics?token={s.secret} HTTP/1.1\r\nhost: x\r\n\r\n".encode(), 401),
    "two tokens": (lambda s: s.request("GET", "/metrics", authorization="Bearer x"), 400),
    "a session that changes something, without its second secret": (lambda s: by_cookie(s, ""), 403),
    "a session with the second secret of another": (lambda s: by_cookie(s, csrf_token("other")), 403),
    "two sessions": (lambda s: by_cookie(s, csrf_token(s.session), twice=True), 401),
    "a huge body": (lambda s: s.request("POST", PREDICT, b"x" * 30_000, **JSON), 413),
    "a huge body that is announced only": (
        lambda s: s.request("POST", PREDICT, **JSON).replace(b"content-length: 0", b"content-length: 999999999999"),
        413,
    ),
    "a huge body in chunks": (lambda s: chunked(s, [b"x" * 9_000] * 4), 413),
    "a length that is no number": (
        lambda s: s.request("POST", PREDICT, **JSON).replace(b"content-length: 0", b"content-length: ten"),
        400,
    ),
    "a negative length": (
        lambda s: s.request("POST", PREDICT, **JSON).replace(b"content-length: 0", b"content-length: -5"),
        400,
    ),
    "two lengths": (lambda s: s.request("POST", PREDICT, ROW, content_length="3", **JSON), 400),
    "a length and chunks": (lambda s: s.request("POST", PREDICT, ROW, transfer_encoding="chunked", **JSON), 400),
    "no length": (lambda s: s.request("POST", PREDICT, **JSON).replace(b"content-length: 0\r\n", b""), 411),
    "an empty body": (lambda s: s.request("POST", PREDICT, b"", **JSON), 400),
    "no JSON": (lambda s: s.request("POST", PREDICT, b"{" + ROW, **JSON), 400),
    "JSON of another shape": (lambda s: s.request("POST", PREDICT, b'{"rows": 5}', **JSON), 400),
    "an unknown field": (lambda s: s.request("POST", PREDICT, b'{"rows": [{}], "x": 1}', **JSON), 400),
    "brackets without end": (lambda s: s.request("POST", PREDICT, b"[" * 19_000, **JSON), 400),
    "a number of thousands of digits": (
        lambda s: s.request("POST", PREDICT, b'{"rows": [{"age": ' + b"9" * 9_000 + b"}]}", **JSON),
        (200, 400),
    ),
    "no UTF-8": (lambda s: s.request("POST", PREDICT, b'{"rows": [{"town": "\xff\xfe"}]}', **JSON), 400),
    "another character set": (
        lambda s: s.request("POST", PREDICT, ROW, content_type="application/json; charset=utf-16"),
        415,
    ),
    "a compressed body": (lambda s: s.request("POST", PREDICT, ROW, content_encoding="gzip", **JSON), 415),
    "another media type": (lambda s: s.request("POST", PREDICT, ROW, content_type="text/csv"), 415),
    "no media type": (lambda s: s.request("POST", PREDICT, ROW), 415),
    "too many rows": (
        lambda s: s.request("POST", PREDICT, b"{}\n" * 101, content_type="application/x-ndjson"),
        413,
    ),
    "no rows": (lambda s: s.request("POST", EXAMPLES, b'{"rows": []}', **KEY), 400),
    "no Arrow": (lambda s: s.request("POST", PREDICT, ARROW_BODY[:80], content_type=ARROW), 400),
    "compressed Arrow": (
        lambda s: s.request("POST", PREDICT, arrow(TABLE, compression="zstd"), content_type=ARROW),
        400,
    ),
    "Arrow without a column": (
        lambda s: s.request("POST", PREDICT, arrow(TABLE.drop(["town"])), content_type=ARROW),
        400,
    ),
    "Arrow with broken offsets": (lambda s: s.request("POST", PREDICT, arrow(BROKEN), content_type=ARROW), 400),
    "Arrow with a text that is no UTF-8": (
        lambda s: s.request("POST", PREDICT, ARROW_BODY.replace(b"Rome", b"\xff\xff\xff\xff"), content_type=ARROW),
        200,
    ),
    "no key": (lambda s: s.request("POST", EXAMPLES, ROW, **JSON), 400),
    "two keys": (lambda s: s.request("POST", EXAMPLES, ROW, Idempotency_Key="b", **KEY), 400),
    "a key of other characters": (lambda s: s.request("POST", EXAMPLES, ROW, idempotency_key="\xe9", **JSON), 400),
    "a long key": (lambda s: s.request("POST", EXAMPLES, ROW, idempotency_key="k" * 256, **JSON), 400),
    "an unknown stream": (lambda s: s.request("POST", "/v1/streams/none/predict", ROW, **JSON), 404),
    "a path that climbs": (lambda s: s.request("GET", "/static/../../../../etc/passwd"), 404),
    "a path that climbs, encoded": (lambda s: s.request("GET", "/v1/streams/..%2f..%2fetc%2fpasswd"), 404),
    "a null character in the path": (lambda s: s.request("GET", "/v1/streams/%00"), 404),
    "an unknown method": (lambda s: s.request("DELETE", f"/v1/streams/{NAME}"), 405),
    "no method at all": (lambda s: b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + b"x" * 40, 400),
    "a long address": (lambda s: s.request("GET", f"/v1/streams?{'x' * 9_000}"), (400, 431)),
    "no host": (lambda s: _without_host(s.request("GET", "/healthz")), 400),
    "two hosts": (lambda s: s.request("GET", "/healthz", Host="y"), 400),
    "two equal hosts": (lambda s: s.request("GET", "/healthz", Host="x"), 400),
    "two hosts of HTTP/1.0": (
        lambda s: s.request("GET", "/healthz", Host="y").replace(b"HTTP/1.1", b"HTTP/1.0"),
        400,
    ),
    "HTTP/0.9": (lambda s: b"GET /healthz\r\n\r\n", 400),
    "HTTP/0.9 by name": (lambda s: s.request("GET", "/healthz").replace(b"HTTP/1.1", b"HTTP/0.9"), 400),
    "HTTP/2 without a word": (lambda s: s.request("GET", "/healthz").replace(b"HTTP/1.1", b"HTTP/2.0"), 400),
    "a good request after one without a host": (
        lambda s: _without_host(s.request("GET", "/healthz")) + s.request("POST", EXAMPLES, ROW, **KEY),
        400,
    ),
    "a large header": (lambda s: s.request("GET", "/healthz", x="y" * 9_000), 431),
    "thousands of headers": (
        lambda s: s.request("GET", "/healthz", **{f"x{number}": "y" for number in range(2_000)}),
        431,
    ),
    "a header without end": (lambda s: b"GET / HTTP/1.1\r\nx: " + b"y" * 20_000, 431),
    "a line break in a header": (lambda s: s.request("GET", "/healthz", x="a\rb"), 400),
    "a parameter that comes twice": (
        lambda s: s.request("GET", f"/v1/streams/{NAME}/models?limit=1&limit=2"),
        400,
    ),
    "a parameter that is no number": (lambda s: s.request("GET", f"/v1/streams/{NAME}/models?after=-1"), 422),
    "a release that is no number": (lambda s: s.request("GET", f"/v1/streams/{NAME}/models/1e3"), 404),
    "an event that is no number": (lambda s: s.request("GET", f"/v1/streams/{NAME}/live", last_event_id="x"), 400),
    "a name that is none": (
        lambda s: s.request("POST", "/v1/streams", b'{"name": "../x", "contract": {"privacy": {}}}', **JSON),
        422,
    ),
    "a contract that is none": (
        lambda s: s.request("POST", "/v1/streams", b'{"name": "a", "contract": {"privacy": 5}}', **JSON),
        422,
    ),
    "a contract in broken TOML": (
        lambda s: s.request("POST", "/v1/streams?name=a", b"[privacy", content_type="application/toml"),
        400,
    ),
    "a contract of too many features": (
        lambda s: s.request("POST", "/v1/streams", huge_contract(), **JSON),
        422,
    ),
    "an upgrade": (lambda s: s.request("GET", "/healthz", connection="upgrade", upgrade="websocket"), (200, 400)),
}


def with_token(site, secret):
    return site.request("GET", f"/v1/streams/{NAME}").replace(site.secret.encode(), secret.encode())


def by_cookie(site, second, twice=False):
    cookie = session_cookie(site.session, secure=False).partition(";")[0]
    cookie = f"{cookie}; {cookie}" if twice else cookie
    made = site.request("POST", PREDICT, ROW, cookie=cookie, x_csrf_token=second, **JSON)
    return made.replace(f"authorization: Bearer {site.secret}\r\n".encode(), b"")


def chunked(site, parts):
    made = site.request("POST", PREDICT, transfer_encoding="chunked", **JSON).replace(b"content-length: 0\r\n", b"")
    return made + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def huge_contract():
    contract = declared()
    contract["columns"]["ip"] = {"hash": 2**20}
    return json.dumps({"name": "huge", "contract": contract}).encode()


@pytest.fixture(scope="module")
def strangers(site):
    """The site with tokens of strangers."""
    tokens = site.service.tokens
    site.expired = tokens.create(["admin"], seconds=-1.0)[1]
    revoked, site.revoked = tokens.create(["admin"])
    tokens.revoke(revoked.id)
    site.learner = tokens.create(["learn"])[1]
    site.foreign = tokens.create(["read"], stream="other")[1]
    site.session = tokens.open_session(site.secret)[1]
    return site


def test_there_are_forty_of_them():
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_answered_by_an_error(strangers, name):
    """One sentence, and nothing of what was sent; the server goes on, and has learnt nothing."""
    make, expected = HOSTILE[name]
    before = strangers.service.store.load(NAME).position
    answer = strangers.raw(make(strangers))
    status = int(answer.split()[1])
    assert status in (expected if isinstance(expected, tuple) else (expected,)), answer
    body = answer.partition("\r\n\r\n")[2]
    if status >= 400 and "application/json" in answer:
        assert set(json.loads(body)) == {"error"}, "a sentence, and no id of an internal error"
        assert json.loads(body)["error"].endswith((".", "…"))
        assert SECRET_VALUE not in body
    assert strangers.secret not in answer
    assert "Traceback" not in answer
    assert strangers.service.store.address not in answer
    assert strangers.service.store.load(NAME).position == before
    assert strangers.client.get("/healthz").status_code == 200


SLOW = {
    "a head that comes slowly": (lambda s: s.request("GET", "/healthz", x="y" * 2_000), "408"),
    "a body that comes slowly": (lambda s: s.request("POST", PREDICT, b" " * 2_000, **JSON), "408"),
    "a second head that comes slowly": (
        lambda s: s.request("GET", "/healthz") + b"GET /healthz HTTP/1.1\r\nx: " + b"y" * 2_000,
        "408",
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_client_is_cut_off(strangers, name):
    make, status = SLOW[name]
    content = make(strangers)
    head = content.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if name == "a body that comes slowly" else b""
    with socket.create_connection(("127.0.0.1", strangers.port), timeout=10.0) as connection:
        connection.sendall(head)
        answer = b""
        connection.settimeout(0.02)
        for start in range(len(head), len(content), 8):
            try:
                connection.sendall(content[start : start + 8])
                answer += connection.recv(4096)
            except TimeoutError:
                continue
            except OSError:
                break
            if status.encode() in answer:
                break
    assert f" {status} ".encode() in answer


def test_a_client_that_sends_nothing_is_cut_off(strangers):
    with socket.create_connection(("127.0.0.1", strangers.port), timeout=10.0) as connection:
        assert b" 408 " in connection.recv(4096)
        assert connection.recv(4096) == b""


def test_a_client_that_does_not_read_events_is_cut_off(tmp_path):
    """What is sent to it does not pile up in memory."""
    service = Service(Store(tmp_path / "streams.db"), tick=0.05, limits=LIMITS)
    contract = declared(100_000, 1)
    contract["columns"]["word"] = {"hash": 300}
    service.create(NAME, contract_of(contract))
    secret = service.tokens.create(["admin"])[1]
    with running(service) as address:
        client = Client(address, secret)
        for number in range(20):
            client.learn(some_rows(100), f"key {number}")
        while service.host(NAME).view.k < 2000:
            time.sleep(0.02)
        with socket.create_connection(("127.0.0.1", urlsplit(address).port), timeout=10.0) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"GET /v1/streams/{NAME}/live HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n"
            connection.sendall(f"{head}last-event-id: 0\r\n\r\n".encode())
            until = time.monotonic() + 10.0
            while service.live == 0 and time.monotonic() < until:
                time.sleep(0.01)
            assert service.live == 1
            while service.live and time.monotonic() < until:
                time.sleep(0.02)
            assert service.live == 0


def test_bodies_that_are_read_at_a_time_are_limited(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", limits=Limits(bodies=50_000, body_seconds=5.0))
    with running(service) as address:
        site = Site(service, address, secret)
        body = b'{"rows": [{}]}' + b" " * 29_986
        head = site.request("POST", PREDICT, body, **JSON)
        with socket.create_connection(("127.0.0.1", site.port)) as slow:
            slow.sendall(head[:-5])
            until = time.monotonic() + 5.0
            while service.bodies == 0 and time.monotonic() < until:
                time.sleep(0.005)
            assert site.raw(head).startswith("HTTP/1.1 429 ")
        while service.bodies and time.monotonic() < until:
            time.sleep(0.005)
        assert site.raw(head).startswith("HTTP/1.1 200 ")


# Tokens.


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_every_operation_needs_its_scope(site, operation):
    """401 without a token, 403 with all scopes but its own, and neither with its own."""
    path = operation.path.replace("{s}", NAME).replace("{k}", "1").replace("{l}", "people").replace("{e}", "e")
    if path.endswith("/close"):
        path = path.replace(NAME, "none")

    def status(secret):
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        with httpx.stream(operation.method, site.address + path, headers=headers) as answer:
            return answer.status_code

    if operation.scope is None:
        assert status(None) == 200
        return
    needed = operation.scope.split()
    assert status(None) == 401
    for scope in needed:
        others = {"learn", "predict", "read", "operate"} - {scope}
        assert status(site.service.tokens.create(others)[1]) == 403
    own = site.service.tokens.create(needed)[1]
    assert status(own) not in (401, 403, 500)
    if "{s}" in operation.path:
        stream = path.split("/")[3]
        for_one = status(site.service.tokens.create(needed, stream=stream)[1])
        assert for_one == 403 if operation.begins else for_one not in (401, 403, 500)
    elif not operation.filters:
        assert status(site.service.tokens.create(needed, stream=NAME)[1]) == 403


def test_a_new_token_is_good_at_once(tmp_path):
    """One that `taciturn token create` has made, in a process of its own."""
    service, _ = service_at(tmp_path / "streams.db", tick=60.0)
    with running(service) as address:
        secrets = [Tokens(Database(tmp_path / "streams.db")).create(["read"])[1] for _ in range(4)]
        assert [Client(address, secret).get("/v1/streams").status_code for secret in secrets] == [200] * 4
        assert Client(address, secrets[0][:-1]).get("/v1/streams").status_code == 401


def test_a_session_looks_with_its_cookie_and_changes_things_with_its_second_secret(site):
    session = site.service.tokens.open_session(site.secret)[1]
    cookie = {"cookie": session_cookie(session, secure=False).partition(";")[0]}
    assert httpx.get(f"{site.address}/v1/streams", headers=cookie).status_code == 200
    headers = {**cookie, "x-csrf-token": csrf_token(session)}
    answer = httpx.post(site.address + PREDICT, json={"rows": some_rows(1)}, headers=headers)
    assert answer.status_code == 200


def test_a_token_of_one_stream_sees_no_other(site):
    client = Client(site.address, site.service.tokens.create(["read", "operate"], stream="other")[1])
    assert [stream["name"] for stream in client.get("/v1/streams").json()["streams"]] == ["other"]
    metrics = client.get("/metrics").text
    assert f'stream="{NAME}"' not in metrics
    assert "taciturn_operator" not in metrics
    assert client.get(f"/v1/streams/{NAME}").status_code == client.get("/v1/streams/none").status_code == 403


# Answers.


def test_every_answer_has_the_headers_of_a_careful_server(site):
    page, *others = (
        httpx.get(f"{site.address}/nothing"),
        httpx.get(f"{site.address}/healthz"),
        site.client.get(f"/v1/streams/{NAME}/models/latest"),
    )
    for name, value in SECURITY:
        assert page.headers[name.decode()] == value.decode()
    assert "unsafe" not in page.headers["content-security-policy"]
    for answer in (page, *others):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
        assert "cache-control" in answer.headers
        assert "strict-transport-security" not in answer.headers


def test_every_answer_of_a_server_with_tls_asks_browsers_to_come_by_it_only(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", secure=True)
    with running(service) as address:
        for path in ("/nothing", "/healthz", "/login", "/static/dashboard.css", "/v1/streams"):
            for token in (secret, "none"):
                answer = Client(address, token).get(path)
                assert answer.headers.get_list("strict-transport-security") == ["max-age=31536000"]


def test_the_latest_model_has_a_tag(site):
    first = site.client.get(f"/v1/streams/{NAME}/models/latest")
    again = site.client.get(f"/v1/streams/{NAME}/models/latest", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = site.client.get(f"/v1/streams/{NAME}/models/latest", headers={"if-none-match": '"x"'})
    assert other.content == first.content


def test_a_model_is_immutable_and_readable(site, tmp_path):
    from taciturn.contract.model_file import read_model

    answer = site.client.get(f"/v1/streams/{NAME}/models/2")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.content == site.client.get(f"/v1/streams/{NAME}/models/latest").content
    (tmp_path / "model.json").write_bytes(answer.content)
    assert read_model(tmp_path / "model.json").releases == 2
    assert site.client.get(f"/v1/streams/{NAME}/models/1").json()["round"] == 10


def test_releases_come_by_pages(site):
    page = site.client.get(f"/v1/streams/{NAME}/models?limit=1").json()
    assert ([each["k"] for each in page["releases"]], page["next"]) == ([1], 1)
    page = site.client.get(f"/v1/streams/{NAME}/models?after=1&weights=true").json()
    assert ([each["t"] for each in page["releases"]], page["next"]) == ([20], None)
    assert len(page["releases"][0]["model"]) == 5


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A server with 600 releases of 300 weights, two pages for a token at a time."""
    service = Service(Store(tmp_path_factory.mktemp("wide") / "streams.db"), tick=0.05, limits=Limits(pages=2))
    contract = declared(100_000, 1)
    contract["columns"]["word"] = {"hash": 300}
    service.create(NAME, contract_of(contract))
    secret = service.tokens.create(["admin"])[1]
    with running(service) as address:
        made = Site(service, address, secret)
        for number in range(6):
            made.client.learn(some_rows(100), f"key {number}")
        while service.host(NAME).view.k < 600:
            time.sleep(0.02)
        yield made


def stored_releases(site):
    return [json.loads(line) for chunk in site.service.store.releases(NAME) for line in chunk.content.splitlines()]


def test_a_page_has_as_many_releases_as_fit_in_it(wide):
    """However many are asked for; all pages together have all releases, with their weights."""
    expected, read, pages, following = stored_releases(wide), [], 0, 0
    size = len(json.dumps(expected[0]))
    while following is not None:
        answer = wide.client.get(f"/v1/streams/{NAME}/models?weights=true&limit=1000&after={following}")
        page = answer.json()
        assert len(answer.content) < PAGE + 2 * size
        assert page["next"] is None or len(answer.content) > PAGE - 2 * size
        read += page["releases"]
        pages += 1
        following = page["next"]
    assert read == expected
    assert pages >= 3
    short = wide.client.get(f"/v1/streams/{NAME}/models?limit=1000").json()
    assert short["releases"] == [{name: each[name] for name in ("k", "t", "noise_sd")} for each in expected]
    assert short["next"] is None


def test_events_have_as_many_releases_as_fit_in_a_part(wide):
    headers = {"authorization": f"Bearer {wide.secret}", "last-event-id": "0"}
    read = []
    with httpx.stream("GET", f"{wide.address}/v1/streams/{NAME}/live", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                read.append(json.loads(line.removeprefix("data: ")))
            if len(read) == 600:
                break
    assert read == stored_releases(wide)


def test_a_token_reads_few_pages_at_a_time(wide, monkeypatch):
    """A page that is not read stays in memory until its client is cut off: so there are few."""
    monkeypatch.setattr(host, "PAGE", 2**24)  # more than the system holds for a client
    path = f"/v1/streams/{NAME}/models?weights=true&limit=1000"
    other = Client(wide.address, wide.service.tokens.create(["read"])[1])
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            slow = stack.enter_context(socket.socket())
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", wide.port))
            slow.sendall(wide.request("GET", path))
        until = time.monotonic() + 5.0
        while sum(wide.service.pages.values()) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        answer = wide.client.get(path)
        assert answer.status_code == 429
        assert "pages" in answer.json()["error"]
        assert wide.client.get(f"/v1/streams/{NAME}/models").status_code == 200
        assert other.get(path).status_code == 200
    while sum(wide.service.pages.values()) and time.monotonic() < until:
        time.sleep(0.01)
    assert wide.client.get(path).status_code == 200


def test_predictions_are_those_of_the_model(site, tmp_path):
    """As `taciturn predict` makes them, in all three forms of rows."""
    from taciturn.contract.model_file import read_model
    from taciturn.readers.rows import open_rows

    (tmp_path / "model.json").write_bytes(site.client.get(f"/v1/streams/{NAME}/models/latest").content)
    model = read_model(tmp_path / "model.json")
    rows = [*some_rows(20, 5), {"age": "old"}, {"age": 5}]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    (tmp_path / "rows.jsonl").write_bytes(lines)
    [batch] = open_rows(model.contract, tmp_path / "rows.jsonl", bad_rows="zero", labelled=False)
    scores = model.scores(batch.X)
    expected = [*model.contract.decode_predictions(scores).tolist()[:20], None, None]
    by_json = site.client.predict(rows, query="?probabilities=true").json()
    assert by_json["predictions"] == expected
    assert by_json["classes"] == ["rest", "yes"]
    assert by_json["probabilities"][:20] == model.probabilities(scores).tolist()[:20]
    assert by_json["probabilities"][20:] == [None, None]
    headers = {"content-type": "application/x-ndjson"}
    assert site.client.post(PREDICT, content=lines, headers=headers).json()["predictions"] == expected
    table = pa.table({name: [row[name] for row in rows[:20]] for name in ("age", "income", "town")})
    by_arrow = site.client.post(PREDICT, content=arrow(table), headers={"content-type": ARROW})
    assert by_arrow.json()["predictions"] == expected[:20]


def test_arrow_rows_are_learnt_as_json_rows_are(tmp_path):
    """Also in several batches, with columns of dictionaries, in which nulls are missing values."""
    rows = some_rows(60)
    bodies = []
    for form in ("json", "arrow"):
        service = Service(Store(tmp_path / f"{form}.db"), tick=0.05, seed=3)
        service.create(NAME, contract_of(declared(1000, 10)))
        secret = service.tokens.create(["admin"])[1]
        with running(service) as address:
            client = Client(address, secret)
            if form == "json":
                answer = client.learn(rows, "a key")
            else:
                columns = {name: [row[name] for row in rows] for name in rows[0]}
                table = pa.table({**columns, "town": pa.array(columns["town"]).dictionary_encode()})
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table, max_chunksize=7)
                headers = {"idempotency-key": "a key", "content-type": ARROW}
                answer = client.post(EXAMPLES, content=sink.getvalue().to_pybytes(), headers=headers)
            assert answer.json()["last"] == 60
            while service.host(NAME).view.k < 6:
                time.sleep(0.01)
            bodies.append(client.get(f"/v1/streams/{NAME}/models/latest").json()["scores"])
    assert bodies[0] == bodies[1]


def test_a_stream_is_begun_from_toml_and_paid_for_by_a_ledger(tmp_path):
    address = tmp_path / "streams.db"
    Ledger.create(address, Privacy(1.0, 1e-6), population="people")
    service = Service(Store(address), tick=0.05)
    secret = service.tokens.create(["admin"])[1]
    contract = '[privacy]\nepsilon = 0.9\n[target]\ncolumn = "y"\nrange = [0, 1]\n[columns]\nx = { range = [0, 1] }\n'
    headers = {"content-type": "application/toml"}
    with running(service) as where:
        client = Client(where, secret)
        made = client.post("/v1/streams?name=a&ledger=people", content=contract, headers=headers)
        assert (made.status_code, made.json()["stream"]["ledger"]) == (201, "people")
        again = client.post("/v1/streams?name=a&ledger=people", content=contract, headers=headers)
        assert again.status_code == 409
        full = client.post("/v1/streams?name=b&ledger=people", content=contract, headers=headers)
        assert (full.status_code, "is left" in full.json()["error"]) == (409, True)
        assert client.post("/v1/streams?name=c&ledger=none", content=contract, headers=headers).status_code == 404
        ledger = client.get("/v1/ledgers/people").json()
        assert ledger["budget"] == {"epsilon": 1.0, "delta": 1e-6}
        assert [line["stream"] for line in ledger["lines"]] == ["a"]
        assert 0.89 < ledger["reserved"]["epsilon"] <= 0.9
        assert ledger["spent"]["epsilon"] == 0.0
        assert client.get("/v1/ledgers").json() == {"ledgers": ["people"]}
        assert "no ledger" not in (made.json()["warning"] or "")
        outside = client.post("/v1/streams?name=d", content=contract, headers=headers).json()
        assert "this stream is in no ledger" in outside["warning"]
        assert "people" in outside["warning"]


# The log.


def test_the_log_has_no_path_query_body_key_or_token(tmp_path, caplog):
    service, secret = service_at(tmp_path / "streams.db")
    everything = caplog.at_level(logging.DEBUG)
    own = caplog.at_level(logging.DEBUG, logger="taciturn")  # whose level a command in this process may have set
    with everything, own, running(service) as address:
        client = Client(address, secret)
        client.learn([{"age": 1, "town": SECRET_VALUE}], "key of a client")
        client.predict([{"age": SECRET_VALUE}], query="?probabilities=true")
        client.get(f"/v1/streams/{SECRET_VALUE}?x={SECRET_VALUE}")
        client.get(f"/{SECRET_VALUE}")
        service.store.current = None  # an error that nobody has foreseen
        broken = client.learn([{"age": 1, "town": SECRET_VALUE}], "another key")
    assert broken.status_code == 500
    records = [record for record in caplog.records if record.name.startswith(("taciturn", "uvicorn"))]
    text = "\n".join(logging.Formatter().format(record) for record in records)
    assert "POST /v1/streams/{s}/examples 200" in text
    assert broken.json()["id"] in text
    assert "internal error" in text
    for secret_text in (SECRET_VALUE, secret, "key of a client", "another key", NAME, "probabilities"):
        assert secret_text not in text


def test_live_clients_are_limited(site):
    """In all, and by token, so that one token leaves room for the others."""
    path = f"{site.address}/v1/streams/{NAME}/live"
    of_one, of_other = (
        {"authorization": f"Bearer {secret}"}
        for secret in (site.secret, site.service.tokens.create(["read"], stream=NAME)[1])
    )
    with contextlib.ExitStack() as watched:
        lines = []  # an iterator that is dropped ends its answer

        def watch(headers):
            lines.append(watched.enter_context(httpx.stream("GET", path, headers=headers)).iter_lines())
            assert next(lines[-1]) == "retry: 2000"

        watch(of_one)
        watch(of_one)
        assert httpx.get(path, headers=of_one).status_code == 429
        watch(of_other)
        assert httpx.get(path, headers=of_other).status_code == 429
    until = time.monotonic() + 5.0
    while site.service.live and time.monotonic() < until:
        time.sleep(0.01)
    assert site.service.live == 0


def test_it_learns_and_predicts_for_many_at_once(tmp_path):
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    statuses = []
    with running(service) as address:

        def use(number):
            client = Client(address, secret)
            for request in range(10):
                statuses.append(client.learn(some_rows(2), f"{number} {request}").status_code)
                statuses.append(client.predict(some_rows(2)).status_code)

        threads = [threading.Thread(target=use, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 320
    assert Store(tmp_path / "streams.db").load(NAME).position[1] == 320
