"""The pages over HTTP: who looks, what is asked for, and the page that answers.

A browser is known by the cookie of its session (`taciturn.service.tokens`). Every form has the session's secret, and a
form that comes from another site is rejected by its headers as well. What waits for the store, or computes, runs in a
thread of the service.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import numpy as np
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from taciturn.contract.contract import contract_of
from taciturn.errors import InvalidInput, TaciturnError
from taciturn.service.app import Answer, Call, RequestError, error_answer, natural, respond
from taciturn.service.dashboard import pages
from taciturn.service.dashboard.noise import NoiseOfReleases
from taciturn.service.dashboard.views import (
    Dated,
    Gauge,
    Growing,
    LedgerRow,
    OperatorView,
    Seen,
    StreamRow,
    StreamView,
    TokenRow,
    Viewer,
    inputs_of,
    ledger_row,
    ledger_view,
    predict,
    purpose_in_words,
)
from taciturn.service.host import Host, View
from taciturn.service.service import Service, UnknownLedger, without_address
from taciturn.service.tokens import (
    SESSION_SECONDS,
    Token,
    csrf_matches,
    csrf_token,
    session_cookie,
    session_of,
)

_HTML = b"text/html; charset=utf-8"
_FORM = "application/x-www-form-urlencoded"
_LOGIN = "taciturn_login"  # the cookie of a form to log in
_MOST_FORM = 2**18  # bytes
_KINDS = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8", ".svg": b"image/svg+xml"}

Form = dict[str, list[str]]


class Dashboard:
    """What the pages of a service need, and keep: the releases that are drawn, and the noise of each stream."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._drawn: dict[str, _Drawn] = {}

    def stream_view(self, host: Host) -> StreamView:
        """A stream at its last visible release."""
        drawn = self._drawn.get(host.lineage)
        if drawn is None:
            for lineage in self._drawn.keys() - {each.lineage for each in self.service.open_hosts()}:
                self._drawn.pop(lineage, None)
            drawn = self._drawn.setdefault(host.lineage, _Drawn(host))
        return drawn.view(host, self._ledger_of(host))

    def row(self, host: Host) -> StreamRow:
        """A stream in the list, for which its releases are not read."""
        contract, view = host.contract, host.view
        table = host.private.timetable
        complete = table.horizon is not None and view.k >= table.count
        status = "closed" if view.closed else "complete" if complete else "live" if view.k else "waiting"
        at = None if view.visible_at is None else datetime.fromtimestamp(view.visible_at / 1000.0, UTC)
        return StreamRow(
            host.name,
            purpose_in_words(contract),
            status,
            view.k,
            view.t,
            table.horizon,
            gauge_of(host, view),
            host.ledger,
            at,
            host.simulated,
        )

    def _ledger_of(self, host: Host) -> LedgerRow | None:
        if host.ledger is None or host.ledger not in self.service.ledgers():
            return None
        return ledger_row(self.service.store.ledger(host.ledger), self.seen())

    def ledger_rows(self) -> list[LedgerRow]:
        """All ledgers."""
        seen = self.seen()
        return [ledger_row(self.service.store.ledger(name), seen) for name in self.service.ledgers()]

    def ledger_page(self, viewer: Viewer, population: str) -> str:
        """A ledger of the store."""
        if population not in self.service.ledgers():
            raise UnknownLedger("there is no such ledger in this store.")
        view = ledger_view(self.service.store.ledger(population), self.seen(), self.service.clock)
        return pages.ledger_page(viewer, view, [host.name for host in self.service.open_hosts()])

    def seen(self) -> dict[str, Seen]:
        """What is visible of the streams that are served, by lineage."""
        return {host.lineage: Seen(host.view.cost, host.view.closed, host.ended) for host in self.service.open_hosts()}


class _Drawn:
    """The visible releases of a stream as far as they were read, and their noise."""

    def __init__(self, host: Host) -> None:
        bandit, problem = host.contract.bandit, host.private.problem
        self._growing = Growing(problem.size if bandit is None else bandit.models * problem.width)
        self._noise = NoiseOfReleases(host.plan)
        self._lock = threading.Lock()

    def view(self, host: Host, ledger: LedgerRow | None) -> StreamView:
        with self._lock:
            shown = host.view
            self._growing.extend(_lines(host, self._growing, shown.k))
            published = self._growing.published
            noise = self._noise.until(published.count, published.points, published.numbers)
        return StreamView(
            host.name,
            host.contract,
            host.plan,
            published,
            noise,
            gauge_of(host, shown),
            ledger,
            host.guarantee,
            closed=shown.closed,
            inputs=inputs_of(host.contract),
        )


def _lines(host: Host, growing: Growing, last: int) -> Iterator[Dated]:
    """The visible releases after those that are held, without those that would be thinned out."""
    after = growing.count
    while after < last:
        chunk, visible_at = host.chunk(after + 1)
        lines = chunk.content.split(b"\n")
        for k in range(after + 1, min(chunk.last, last) + 1):
            if growing.needs(k, last):
                line = json.loads(lines[k - chunk.first])
                yield line if host.contract.bandit is None else _weights(host, line), visible_at
        after = min(chunk.last, last)


def _weights(host: Host, line: dict[str, Any]) -> dict[str, Any]:
    """A release of a stream of decisions with the weights of its models, and without their matrices."""
    assert host.contract.bandit is not None
    blocks = np.array(line["model"]).reshape(host.contract.bandit.models, -1)
    return {**line, "model": blocks[:, -host.private.problem.width :].ravel().tolist()}


def gauge_of(host: Host, view: View) -> Gauge:
    """The budget of a stream at a view: all of it is reserved."""
    budget, spent = host.budget, view.spent
    return Gauge(budget.epsilon, budget.delta, spent.epsilon, budget.epsilon, None)


# ---- who looks -------------------------------------------------------------------------------------------------------


class _ToLogin(Exception):
    """A page that needs a session."""


async def _visitor(call: Call) -> tuple[Token, Viewer] | None:
    """The token and the viewer of a session; None without one."""
    session = session_of(call.header(b"cookie") or "")
    token = None if session is None else await call.service.tokens.find(session, call.service.in_thread)
    if session is None or token is None or token.parent is None:
        return None
    call.session, call.token = session, token
    return token, Viewer(token.label or token.id, token.scopes, csrf_token(session), token.stream)


def _must_come_from_here(call: Call) -> None:
    """Reject a form of another site, as far as its browser says so; a proxy may have changed the host.

    Browsers that do not say the site may send the origin null: pages have the policy no-referrer. The form's own secret
    protects those.
    """
    site = call.header(b"sec-fetch-site")
    origin = call.header(b"origin")
    elsewhere = origin not in (None, "null") and urlsplit(origin or "").netloc != call.header(b"host")
    if elsewhere if site is None else site not in ("same-origin", "none"):
        raise RequestError(403, "this form came from another site. Open the page here, and send it again.")


async def _form(call: Call) -> Form:
    if call.media != _FORM:
        raise RequestError(415, f"forms are sent as {_FORM}.")
    body = await call.body(_MOST_FORM)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=2_000, errors="strict")
    except ValueError:
        raise RequestError(400, "the form cannot be read. Send it again.") from None
    form: Form = {}
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    return form


def _one(form: Form, name: str) -> str:
    """The only value of a field; empty if there is none."""
    values = form.get(name, [""])
    if len(values) > 1:
        raise RequestError(400, "a field of the form came twice. Send it again.")
    return values[0].replace("\r\n", "\n")


Page = Callable[["Dashboard", Call, Viewer, Form], Awaitable[Answer]]


class _PageEndpoint:
    """A page as an ASGI application: session, scope, form, page; an error is a page, too."""

    def __init__(self, dashboard: Dashboard, path: str, method: str, scope: str | None, page: Page) -> None:
        self.dashboard = dashboard
        self.path, self.method = path, method
        self.scope = scope
        self.page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["taciturn.route"] = self.path
        service = self.dashboard.service
        call = Call(service, scope, receive)
        viewer: Viewer | None = None
        try:
            service.must_be_newest()
            visitor = await _visitor(call)
            if visitor is None:
                raise _ToLogin
            token, viewer = visitor
            if self.scope is not None and not token.allows(self.scope, call.stream):
                raise RequestError(403, f"This token does not allow this page: it needs the scope {self.scope}.")
            form: Form = {}
            if self.method == "POST":
                _must_come_from_here(call)
                form = await _form(call)
                if not csrf_matches(call.session or "", _one(form, "csrf")):
                    raise RequestError(403, "This form is not of this session. Open the page again, and send it again.")
            answer = await self.page(self.dashboard, call, viewer, form)
        except _ToLogin:
            to = scope["path"] if self.method == "GET" else "/"
            answer = _redirect(f"/login?to={quote(to, safe='')}" if to != "/" else "/login")
        except Exception as error:
            answer = _error_page(service, viewer, error)
            if self.method == "POST" and not call.body_read:
                answer = answer._replace(headers=[*answer.headers, (b"connection", b"close")])
        await respond(send, answer)


_TITLES = {403: "Not allowed", 404: "Not found", 500: "A mistake of this server", 503: "Not available now"}


def _error_page(service: Service, viewer: Viewer | None, error: Exception) -> Answer:
    """The page of an error; its sentence is that of the API."""
    plain = error_answer(service, error)
    assert isinstance(plain.content, bytes)
    told = json.loads(plain.content)
    sentence = told["error"][:1].upper() + told["error"][1:] + (f" Id: {told['id']}." if told.get("id") else "")
    title = _TITLES.get(plain.status, "This did not work")
    return _html(pages.message_page(viewer, title, sentence), plain.status)


def _html(text: str, status: int = 200, *headers: tuple[bytes, bytes]) -> Answer:
    content = text.encode("utf-8", "replace")
    return Answer(content, _HTML, status, ((b"cache-control", b"no-store"), *headers))


def _redirect(to: str, *headers: tuple[bytes, bytes]) -> Answer:
    return Answer(b"", _HTML, 303, ((b"cache-control", b"no-store"), (b"location", to.encode("ascii")), *headers))


# ---- pages -----------------------------------------------------------------------------------------------------------


async def _streams(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    shown = [host for host in dashboard.service.open_hosts() if viewer.may("read", host.name)]
    return _html(pages.streams_page(viewer, [dashboard.row(host) for host in shown]))


async def _stream(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service = dashboard.service
    host = service.host(call.parameters["s"])
    return _html(await service.in_thread(lambda: pages.stream_page(viewer, dashboard.stream_view(host))))


async def _part(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service, query = dashboard.service, call.query
    host = service.host(call.parameters["s"])
    after = natural(query, "after", 0, 2**53)
    series = [int(text) for text in query.get("series", "").split(",")[:20] if text.isascii() and text.isdigit()]
    return _html(await service.in_thread(lambda: pages.stream_part(dashboard.stream_view(host), after, series)))


async def _try(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service = dashboard.service
    host = service.host(call.parameters["s"])
    if call.token is None or not call.token.allows("read", host.name):
        raise RequestError(403, "this token does not allow this. It needs the scope read, for this stream.")
    if host.ranker is not None:
        raise RequestError(404, "this stream chooses actions, and predicts nothing else.")
    values = {name: _one(form, name) for name in form}

    def page() -> str:
        view = dashboard.stream_view(host)
        answer = predict(host.view.model, values)
        error = "" if answer is not None else "A value cannot be read: see the field."
        filled = replace(view, inputs=inputs_of(host.contract, values), prediction=answer, error=error)
        return pages.stream_page(viewer, filled)

    return _html(await service.in_thread(page))


async def _try_again(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    return _redirect(f"/streams/{quote(call.parameters['s'], safe='')}")


async def _operator(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service, name = dashboard.service, call.parameters["s"]
    host = service.host(name)
    closed = host.view.closed
    if not host.served or service.read_only:
        why = "This stream does not learn in this process, which therefore knows nothing of its rows."
        return _html(pages.operator_page(viewer, OperatorView.without_diagnostics(name, why, closed=closed)))
    rows, data = await service.in_thread(service.writer(name).diagnostics)
    counted = service.metrics.counted(name)
    more = [
        ("Rows learnt, with those after the last release", f"{rows:,}"),
        ("Rows that this process has learnt", f"{counted.rows:,}"),
        ("Those of them that the contract cannot read", f"{counted.bad_rows:,}"),
        *((f"Those without the name {column}", f"{count:,}") for column, count in counted.absent.items()),
    ]
    if data is None:
        why = (
            "Start the service with --diagnostics to have progressive loss and clipping evaluated."
            if host.contract.bandit is None
            else "Decisions are not evaluated, as the rewards of other actions are not known. Log decisions and "
            "rewards, and evaluate them by taciturn.bandits.off_policy."
        )
        view = OperatorView.without_diagnostics(name, why, more, closed)
    else:
        view = OperatorView.of_diagnostics(name, data, more, closed)
    return _html(pages.operator_page(viewer, view))


async def _close(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service, name = dashboard.service, call.parameters["s"]
    await service.in_thread(service.close_stream, name)
    return _redirect(f"/streams/{quote(name, safe='')}")


async def _ledgers(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    rows = await dashboard.service.in_thread(dashboard.ledger_rows)
    return _html(pages.ledgers_page(viewer, rows))


async def _ledger(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    return _html(await dashboard.service.in_thread(dashboard.ledger_page, viewer, call.parameters["l"]))


async def _new(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    return _html(pages.new_page(viewer, await dashboard.service.in_thread(dashboard.ledger_rows)))


async def _create(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service = dashboard.service
    filled = {name: _one(form, name) for name in ("name", "ledger", "contract")}
    try:
        contract = await service.in_thread(lambda: contract_of(tomllib.loads(filled["contract"])))
        known = await service.in_thread(service.ledgers)
        if known and not filled["ledger"]:
            raise InvalidInput("the ledger is not chosen. Choose the people whose data it learns from, or none.")
        ledger = None if filled["ledger"] in ("", pages.NO_LEDGER) else filled["ledger"]
        host = await service.in_thread(service.create, filled["name"].strip(), contract, ledger)
        return _redirect(f"/streams/{quote(host.name, safe='')}")
    except TaciturnError as error:
        sentence = without_address(service.store.address, str(error))
    except (ValueError, RecursionError):
        sentence = "the contract is not valid TOML. Put texts in quotes and lists in brackets."
    ledgers = await service.in_thread(dashboard.ledger_rows)
    return _html(pages.new_page(viewer, ledgers, filled, sentence[:1].upper() + sentence[1:]), 422)


async def _tokens(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    return await _tokens_page(dashboard, call, viewer)


async def _create_token(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service = dashboard.service
    filled: dict[str, Any] = {name: _one(form, name).strip() for name in ("name", "stream", "days")}
    filled["scopes"] = tuple(form.get("scope", []))
    days = filled["days"]
    if not filled["name"] or not filled["name"].isprintable() or len(filled["name"]) > 100:
        return await _tokens_page(dashboard, call, viewer, filled, error="A token needs a name, in one line.")
    if not (days.isascii() and days.isdigit() and 1 <= int(days[:9]) <= 3650):
        return await _tokens_page(dashboard, call, viewer, filled, error="Expiry is in days, from 1 to 3650.")
    try:
        made, secret = await service.in_thread(
            lambda: service.tokens.create(
                filled["scopes"], stream=filled["stream"] or None, label=filled["name"], seconds=86_400.0 * int(days)
            )
        )
    except TaciturnError as error:
        sentence = str(error)
        return await _tokens_page(dashboard, call, viewer, filled, error=sentence[:1].upper() + sentence[1:])
    return await _tokens_page(dashboard, call, viewer, made=pages.Made(made.label, secret))


async def _revoke(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    await dashboard.service.in_thread(dashboard.service.tokens.revoke, _one(form, "id"))
    return _redirect("/tokens")


async def _tokens_page(
    dashboard: Dashboard,
    call: Call,
    viewer: Viewer,
    form: dict[str, Any] | None = None,
    made: pages.Made | None = None,
    error: str = "",
) -> Answer:
    service = dashboard.service
    own = call.token.parent if call.token is not None else None
    now = service.clock.now()
    rows = [_token_row(token, now, own) for token in await service.in_thread(service.tokens.list)]
    streams = [host.name for host in service.open_hosts()]
    page = pages.tokens_page(viewer, rows, streams, form=form, made=made, error=error)
    return _html(page, 422 if error else 200)


def _token_row(token: Token, now: int, own: str | None) -> TokenRow:
    def at(milliseconds: int | None) -> datetime | None:
        return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000.0, UTC)

    return TokenRow(
        token.id,
        token.label or token.id,
        tuple(sorted(token.scopes)),
        () if token.stream is None else (token.stream,),
        at(token.created),
        at(token.expires),
        token.revoked is not None,
        token.id == own,
        expired=token.revoked is None and not token.live(now),
    )


async def _logout(dashboard: Dashboard, call: Call, viewer: Viewer, form: Form) -> Answer:
    service = dashboard.service
    assert call.token is not None
    await service.in_thread(service.tokens.revoke, call.token.id)
    return _redirect("/login", (b"set-cookie", session_cookie("", service.secure).encode()))


# ---- what needs no session -------------------------------------------------------------------------------------------


class _Login:
    """The form to log in, and its answer; a cookie of its own keeps other sites from sending it."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["taciturn.route"] = "/login"
        call = Call(self.service, scope, receive)
        try:
            answer = await self._post(call) if scope["method"] == "POST" else self._page(_path(call.query.get("to")))
        except Exception as error:
            answer = _error_page(self.service, None, error)
            if scope["method"] == "POST" and not call.body_read:
                answer = answer._replace(headers=[*answer.headers, (b"connection", b"close")])
        await respond(send, answer)

    def _page(self, to: str, error: str = "", status: int = 200) -> Answer:
        once = secrets.token_hex(16)
        secure = "; Secure" * self.service.secure
        cookie = f"{_LOGIN}={once}; Path=/login; HttpOnly; SameSite=Strict; Max-Age=1800{secure}"
        page = pages.login_page(once, to, error, SESSION_SECONDS // 60)
        return _html(page, status, (b"set-cookie", cookie.encode()))

    async def _post(self, call: Call) -> Answer:
        self.service.must_be_newest()
        _must_come_from_here(call)
        form = await _form(call)
        to = _path(_one(form, "to"))
        cookies = (part.strip().partition("=") for part in (call.header(b"cookie") or "").split(";"))
        stored = {name: value for name, _, value in cookies}.get(_LOGIN, "")
        if not stored or not hmac.compare_digest(stored.encode("latin-1"), _one(form, "csrf").encode()):
            return self._page(to, "The form was too old, or cookies are off. Try again.", 403)
        service, secret = self.service, _one(form, "token").strip()
        await service.tokens.find(secret, service.in_thread)  # it may be new
        opened = await service.in_thread(service.tokens.open_session, secret)
        if opened is None:
            return self._page(to, "This token is not known, was revoked or has expired. Use another one.", 401)
        return _redirect(to, (b"set-cookie", session_cookie(opened[1], self.service.secure).encode()))


def _path(to: str | None) -> str:
    r"""A path of this site; anything else is the first page.

    >>> [_path(text) for text in ("/streams/clicks", "//example.org", "/\\example.org", "https://example.org", None)]
    ['/streams/clicks', '/', '/', '/', '/']
    """
    if not to or not to.startswith("/") or to[1:2] in ("/", "\\") or not to.isprintable() or len(to) > 500:
        return "/"
    return quote(to, safe="/")


class _Static:
    """Style, scripts and the icon, read once."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._files = {
            path.name: (path.read_bytes(), _KINDS[path.suffix])
            for path in sorted(pages.STATIC.iterdir())
            if path.suffix in _KINDS
        }
        self._etags = {name: f'"{hashlib.sha256(file).hexdigest()[:32]}"' for name, (file, _) in self._files.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["taciturn.route"] = "/static/{file}"
        name = scope["path_params"]["file"]
        if name not in self._files:
            return await respond(
                send, error_answer(self.service, RequestError(404, "there is nothing at this address."))
            )
        content, kind = self._files[name]
        etag = self._etags[name].encode()
        headers = ((b"cache-control", b"public, max-age=3600"), (b"etag", etag))
        if dict(scope["headers"]).get(b"if-none-match") == etag:
            return await respond(send, Answer(b"", kind, 304, headers))
        return await respond(send, Answer(content, kind, headers=headers))


_PAGES: tuple[tuple[str, str, str | None, Page], ...] = (
    ("GET", "/", None, _streams),
    ("GET", "/streams/{s}", "read", _stream),
    ("GET", "/streams/{s}/part", "read", _part),
    ("GET", "/streams/{s}/try", "read", _try_again),
    ("POST", "/streams/{s}/try", "predict", _try),
    ("GET", "/streams/{s}/operator", "operate", _operator),
    ("POST", "/streams/{s}/close", "operate", _close),
    ("GET", "/ledgers", "read", _ledgers),
    ("GET", "/ledgers/{l:path}", "read", _ledger),
    ("GET", "/new", "admin", _new),
    ("POST", "/new", "admin", _create),
    ("GET", "/tokens", "admin", _tokens),
    ("POST", "/tokens", "admin", _create_token),
    ("POST", "/tokens/revoke", "admin", _revoke),
    ("POST", "/logout", None, _logout),
)


def dashboard_routes(service: Service) -> Sequence[BaseRoute]:
    """The pages of a service."""
    dashboard = Dashboard(service)
    routes: list[BaseRoute] = [
        Route(path, _PageEndpoint(dashboard, path, method, scope, page), methods=[method])
        for method, path, scope, page in _PAGES
    ]
    login = _Login(service)
    return [*routes, Route("/login", login, methods=["GET", "POST"]), Route("/static/{file}", _Static(service))]
