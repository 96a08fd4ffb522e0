"""Sessions, forms and errors of the dashboard, without a browser: what must be rejected is."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from taciturn import Ledger, Privacy
from taciturn.client import Client
from taciturn.contract.contract import contract_of
from taciturn.service.clock import TickClock
from taciturn.service.rows import JSON, encoded, read_rows
from taciturn.service.server import running
from taciturn.service.service import Service
from taciturn.service.tokens import COOKIE
from taciturn.store import Store

CONTRACT = {
    "privacy": {"epsilon": 1.0},
    "target": {"column": "clicked", "positive": ["yes"]},
    "learning": {"horizon": 1000, "release": 50},
    "columns": {"age": {"range": [0, 100]}},
}
PAGES = (
    *("/", "/streams/clicks", "/streams/clicks/part", "/streams/clicks/operator"),
    *("/ledgers", "/ledgers/customers", "/new", "/tokens"),
)


class Site:
    """A service with two streams, and browsers that are logged in."""

    def __init__(self, service: Service, url: str) -> None:
        self.service, self.url = service, url
        self.admin = service.tokens.create(["admin"], label="admin")[1]
        self._browsers: list[httpx.Client] = []

    def new_browser(self) -> httpx.Client:
        """A browser without a session."""
        self._browsers.append(httpx.Client(base_url=self.url, timeout=30.0))
        return self._browsers[-1]

    def close(self) -> None:
        """Close all browsers."""
        for browser in self._browsers:
            browser.close()

    def browser(self, *scopes: str, stream: str | None = None) -> httpx.Client:
        """A browser that has logged in with a token of these scopes."""
        secret = self.service.tokens.create(scopes, stream=stream, label="a <b>token</b>")[1]
        browser = self.new_browser()
        answer = log_in(browser, secret)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        return browser


def log_in(browser: httpx.Client, secret: str, to: str = "/") -> httpx.Response:
    page = browser.get("/login", params={"to": to})
    return browser.post("/login", data={"csrf": field(page, "csrf"), "to": field(page, "to"), "token": secret})


def field(page: httpx.Response, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    address = tmp_path_factory.mktemp("dashboard") / "taciturn.db"
    service = Service(Store(address), tick=0.05, diagnostics=True)
    Ledger.create(address, Privacy(3.0, 1e-6), population="customers")
    service.create("clicks", contract_of(CONTRACT), "customers")
    service.create("visits", contract_of(CONTRACT))
    with running(service) as url:
        made = Site(service, url)
        with Client(url, made.admin) as client:
            client.learn("clicks", [{"age": 40, "clicked": "yes"}, {"age": "a secret text", "clicked": "no"}] * 75)
            next(client.live("clicks"))
        yield made
        made.close()


def test_without_a_session_every_page_leads_to_the_login(site: Site) -> None:
    for headers in ({}, {"cookie": f"{COOKIE}=guess"}, {"cookie": f"{COOKIE}={site.admin}"}):  # a token is no session
        for path in PAGES:
            answer = httpx.get(site.url + path, headers=headers)
            assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login"), path
    assert httpx.get(f"{site.url}/streams/clicks").headers["location"] == "/login?to=%2Fstreams%2Fclicks"
    for path in ("/new", "/tokens", "/tokens/revoke", "/streams/clicks/close", "/streams/clicks/try", "/logout"):
        assert httpx.post(site.url + path, data={"csrf": "x"}).headers["location"] == "/login"


def test_cookies_are_for_this_site_and_not_for_scripts(site: Site) -> None:
    browser = site.new_browser()
    page = browser.get("/login")
    made = log_in(browser, site.admin)
    for answer in (page, made):
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert 0 < int(re.search(r"Max-Age=(\d+)", cookie)[1]) <= 3600  # type: ignore[index]
        assert "Secure" not in cookie
    assert site.admin not in made.headers["set-cookie"]


@pytest.mark.parametrize("to", ["//example.org", "https://example.org", "/\\example.org", "javascript:alert(1)", ""])
def test_the_login_leads_to_this_site_only(site: Site, to: str) -> None:
    assert log_in(site.new_browser(), site.admin, to).headers["location"] == "/"
    assert log_in(site.new_browser(), site.admin, "/ledgers").headers["location"] == "/ledgers"


def test_a_login_of_another_site_is_rejected(site: Site) -> None:
    victim = site.new_browser()
    attackers = field(httpx.get(f"{site.url}/login"), "csrf")
    answer = victim.post("/login", data={"csrf": attackers, "to": "/", "token": site.admin})
    assert answer.status_code == 403
    assert COOKIE not in answer.headers["set-cookie"]


def test_wrong_tokens_are_told_nothing(site: Site) -> None:
    for secret in ("", "guess", "taciturn_" + "a" * 43, "\x00" * 9, "ü", "a" * 100_000):
        answer = log_in(site.new_browser(), secret)
        assert answer.status_code == 401
        assert "not known, was revoked or has expired" in answer.text


FORMS = (
    ("/new", {"name": "forged", "contract": "x"}),
    ("/tokens", {"name": "forged", "days": "1", "scope": "admin"}),
    ("/tokens/revoke", {"id": "x"}),
    ("/streams/clicks/close", {"x": "y"}),
    ("/streams/clicks/try", {"c0": "5"}),
    ("/logout", {"x": "y"}),
)


@pytest.mark.parametrize(("path", "form"), FORMS)
def test_forms_without_the_secret_of_the_session_are_rejected(site: Site, path: str, form: dict[str, str]) -> None:
    browser = site.browser("admin")
    other = field(site.browser("admin").get("/new"), "csrf")
    for secret in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": other}):
        answer = browser.post(path, data={**form, **secret})
        assert answer.status_code == 403
        assert "not of this session" in answer.text
    csrf = field(browser.get("/new"), "csrf")
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "https://evil.org"}):
        answer = browser.post(path, data={**form, "csrf": csrf}, headers=headers)
        assert (answer.status_code, "another site" in answer.text) == (403, True)
    assert browser.post(path, json={**form, "csrf": csrf}).status_code == 415
    assert browser.post(path, data={**form, "csrf": csrf, "more": "x" * 300_000}).status_code == 413
    assert not site.service.host("clicks").view.closed
    assert [token.label for token in site.service.tokens.list() if token.label == "forged"] == []


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("scopes", "stream", "allowed"),
    [
        (("read",), None, {"/", "/streams/clicks", "/streams/clicks/part", "/ledgers", "/ledgers/customers"}),
        (("read",), "clicks", {"/", "/streams/clicks", "/streams/clicks/part"}),
        (("read",), "visits", {"/"}),
        (("learn",), None, {"/"}),
        (("operate",), None, {"/", "/streams/clicks/operator"}),
        (("admin",), "clicks", {"/", "/streams/clicks", "/streams/clicks/part", "/streams/clicks/operator"}),
        (("admin",), None, set(PAGES)),
    ],
)
def test_a_token_sees_what_its_scope_allows(
    site: Site, scopes: tuple[str, ...], stream: str | None, allowed: set[str]
) -> None:
    browser = site.browser(*scopes, stream=stream)
    statuses = {path: browser.get(path).status_code for path in PAGES}
    assert statuses == {path: 200 if path in allowed else 403 for path in PAGES}
    shown = browser.get("/").text
    for name in ("clicks", "visits"):
        may = {"read", "admin"} & set(scopes) and stream in (None, name)
        assert (f"/streams/{name}" in shown) == bool(may)
    csrf = field(browser.get("/"), "csrf")
    tried = browser.post("/streams/clicks/try", data={"csrf": csrf, "c0": "50"})
    assert tried.status_code == (200 if "admin" in scopes else 403)


def test_a_revoked_token_ends_its_sessions(site: Site) -> None:
    token, secret = site.service.tokens.create(["read"], label="short")
    browser = site.new_browser()
    log_in(browser, secret)
    assert browser.get("/").status_code == 200
    site.service.tokens.revoke(token.id)
    assert browser.get("/").headers["location"] == "/login"


@pytest.mark.parametrize(
    "headers", [{}, {"origin": "null"}, {"sec-fetch-site": "same-origin", "origin": "http://proxy"}]
)
def test_logging_out_ends_the_session(site: Site, headers: dict[str, str]) -> None:
    """Whatever the browser tells of itself: pages have the policy no-referrer, and a proxy may change the host."""
    browser = site.browser("read")
    session = browser.cookies[COOKIE]
    answer = browser.post("/logout", data={"csrf": field(browser.get("/"), "csrf")}, headers=headers)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    again = httpx.get(f"{site.url}/", headers={"cookie": f"{COOKIE}={session}"})
    assert again.headers["location"] == "/login"


def test_errors_are_pages_and_quote_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = site.browser("admin")
    answer = browser.get("/streams/nothing")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert browser.get("/ledgers/nobody").status_code == 404
    assert browser.get("/ledgers/a/b").status_code == 404
    assert browser.get("/streams/clicks/part?after=x").status_code == 422
    assert browser.get("/streams/clicks/part?series=9,a,99999999999999999999").status_code == 200

    def broken(*arguments: object) -> None:
        raise RuntimeError("a value of the data")

    monkeypatch.setattr("taciturn.service.dashboard.pages.stream_page", broken)
    answer = browser.get("/streams/clicks")
    assert (answer.status_code, "Id: " in answer.text) == (500, True)
    assert "a value of the data" not in answer.text


def test_contracts_and_tokens_with_mistakes_are_told_why(site: Site) -> None:
    browser = site.browser("admin")
    csrf = field(browser.get("/new"), "csrf")
    for contract, says in (("a = [", "not valid TOML"), ("[privacy]\nepsilon = 1", "columns"), ("x" * 9999, "TOML")):
        answer = browser.post("/new", data={"csrf": csrf, "name": "new", "ledger": "", "contract": contract})
        assert (answer.status_code, says in answer.text) == (422, True)
    toml = '[privacy]\nepsilon = 1.0\n[target]\ncolumn = "y"\npositive = ["yes"]\n[columns]\nx = { range = [0, 1] }\n'
    for name, says in (("../x", "Choose another name"), ("clicks", "already"), ("", "Choose another name")):
        answer = browser.post("/new", data={"csrf": csrf, "name": name, "ledger": "-", "contract": toml})
        assert (answer.status_code, says in answer.text) == (422, True)
    answer = browser.post("/new", data={"csrf": csrf, "name": "x", "ledger": "nobody", "contract": toml})
    assert (answer.status_code, "no such ledger" in answer.text) == (422, True)
    answer = browser.post("/new", data={"csrf": csrf, "name": "x", "ledger": "", "contract": toml})
    assert (answer.status_code, "The ledger is not chosen" in answer.text) == (422, True)
    for form in ({"name": "", "days": "1"}, {"name": "x", "days": "-1"}, {"name": "x", "days": "1"}):
        assert browser.post("/tokens", data={"csrf": csrf, "scope": [], **form}).status_code == 422
    assert str(Path(site.service.store.address).parent) not in answer.text


@pytest.mark.privacy
def test_what_is_not_visible_yet_is_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock whose next tick is an hour away: rows are learnt and releases committed, and pages do not change."""
    address = tmp_path / "taciturn.db"
    service = Service(Store(address), tick=3600.0)
    now = TickClock.now()
    monkeypatch.setattr(TickClock, "last", lambda self, at=None: (now if at is None else at) // 1000 * 1000 - 5_000)
    Ledger.create(address, Privacy(3.0, 1e-6), population="customers")
    service.create("clicks", contract_of(CONTRACT), "customers")
    with running(service) as url:
        made = Site(service, url)
        browser = made.browser("admin")
        paths = [path for path in PAGES if not path.endswith("operator")]
        before = {path: browser.get(path).text for path in paths}
        with Client(url, made.admin) as client:
            client.learn("clicks", [{"age": 40, "clicked": "yes"}] * 120)
        assert service.store.load("clicks").position[2] == 2
        after = {path: browser.get(path).text for path in paths}
        made.close()
    assert before == after


KINDS: dict[str, dict[str, Any]] = {
    "classes": {"target": {"column": "y", "classes": ["a", "b", "c"]}},
    "hinge": {"target": {"column": "y", "classes": ["a", "b"]}, "learning": {"loss": "hinge"}},
    "numbers": {"target": {"column": "y", "range": [0, 10]}},
    "absolute": {"target": {"column": "y", "range": [0, 10]}, "learning": {"loss": "absolute"}},
    "giga": {"learning": {"method": "giga", "ridge": 0.1}},
    "random": {"learning": {"features": 20}},
    "ranges": {"columns": {"x": {"range": "private"}, "z": {"range": [0, 1]}}, "learning": {"horizon": 30_000}},
    "precondition": {"learning": {"precondition": True, "horizon": 100_000}},
    "endless": {"learning": {"horizon": None}},
    "forget": {"learning": {"forget": 500, "horizon": None}},
    "users": {"privacy": {"epsilon": 5.0, "user": "id", "rows_per_user": 5}},
    "months": {"privacy": {"epsilon": 5.0, "user": "id", "rows_per_user": 5, "period": "month"}},
    "hashed": {
        "columns": {"x": {"hash": 64}, "z": {"text": {"hash": 32}}, "d": {"date": ["2024-01-01", "2025-01-01"]}}
    },
}
"""What contracts of many kinds declare otherwise than a plain one."""


@pytest.mark.parametrize("kind", KINDS)
def test_streams_of_every_kind_have_pages(site: Site, kind: str) -> None:
    plain: dict[str, Any] = {
        "privacy": {"epsilon": 5.0},
        "target": {"column": "y", "positive": ["b"]},
        "learning": {"horizon": 2000},
        "columns": {"x": {"range": [0, 1]}, "z": {"bins": [0, 0.5, 1]}},
    }
    for part, changes in KINDS[kind].items():
        merged = {**plain[part], **changes} if part == "learning" else changes
        plain[part] = {name: value for name, value in merged.items() if value is not None}
    contract = contract_of(plain)
    row = {"x": 0.25, "z": 0.75, "d": "2024-05-31", "y": 3 if kind in ("numbers", "absolute") else "b", "id": "u"}
    browser = site.browser("admin")
    with Client(site.url, site.admin) as client:
        client.create(kind, plain)
        empty = browser.get(f"/streams/{kind}")
        assert (empty.status_code, "--json" in empty.text) == (200, True)
        example = json.loads(shlex.split(re.search(r"--json (.*?)</pre>", unescape(empty.text), re.DOTALL)[1])[0])  # type: ignore[index]
        batch = read_rows(JSON, json.dumps(example).encode(), contract, labelled=True)
        [(*_, bad)] = encoded([batch], contract, labelled=True)
        assert not bad.any()
        rows = site.service.host(kind).private.timetable.due(3) or 0
        client.learn(kind, [row] * rows)
        next(model for model in client.live(kind) if model.k >= 3)
    page = browser.get(f"/streams/{kind}")
    assert page.status_code == 200
    chart = json.loads(re.search(r'id="chart-data">(.*?)</script>', page.text)[1])  # type: ignore[index]
    assert chart["k"] == [1, 2, 3]
    assert len(chart["series"]) >= 2
    csrf = field(page, "csrf")
    tried = browser.post(f"/streams/{kind}/try", data={"csrf": csrf, "c0": "0.5" if kind != "hashed" else "a word"})
    assert (tried.status_code, 'class="answer"' in tried.text) == (200, True)
    assert browser.get(f"/streams/{kind}/part?after=1&series=0,1").status_code == 200


def test_static_files_are_those_of_the_package(site: Site) -> None:
    answer = httpx.get(f"{site.url}/static/dashboard.css")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")
    again = httpx.get(f"{site.url}/static/dashboard.css", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304
    for name in ("../pages.py", "..%2Fpages.py", "%2e%2e/routes.py", "uplot.LICENSE", "", "x.css"):
        assert httpx.get(f"{site.url}/static/{name}").status_code == 404


@pytest.mark.privacy
def test_pages_have_no_row_and_no_exact_count(site: Site) -> None:
    browser = site.browser("admin")
    for path in PAGES:
        page = browser.get(path).text
        assert "a secret text" not in page
        assert ("Bad rows" in page) == path.endswith("operator")
    data = json.loads(re.search(r'id="chart-data">(.*?)</script>', browser.get("/streams/clicks").text)[1])  # type: ignore[index]
    assert data["k"][-1] == site.service.host("clicks").view.k


def test_operators_see_how_many_rows_cannot_be_read(site: Site) -> None:
    page = site.browser("admin").get("/streams/clicks/operator").text
    assert "<dt>Rows that this process has learnt</dt><dd>150</dd>" in page
    assert "<dt>Those of them that the contract cannot read</dt><dd>75</dd>" in page


def test_decisions_are_not_said_to_lack_diagnostics(site: Site) -> None:
    """The service runs with them: what a stream of decisions lacks are the rewards of other actions."""
    decisions = {
        "privacy": {"epsilon": 1.0},
        "target": {"column": "reward", "range": [0, 1]},
        "learning": {"horizon": 1000},
        "columns": {"age": {"range": [0, 100]}},
        "events": {"wait": "1 minute"},
        "bandit": {"actions": ["sports", "weather"]},
    }
    with Client(site.url, site.admin) as client:
        client.create("headlines", decisions)
    browser = site.browser("admin")
    page = browser.get("/streams/headlines/operator")
    assert page.status_code == 200
    assert "Decisions are not evaluated" in page.text
    assert "--diagnostics" not in page.text
    assert "One action is chosen for each visitor" in browser.get("/").text
