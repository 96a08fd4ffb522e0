"""The application: the story of a request, from its head to its answer.

A request passes these steps, and an error in any of them is an answer with one sentence:

1. the route, by method and path; if the store was replaced by a backup or a copy, nothing but `/healthz`, `/readyz` and
   the description of the API is answered on (503);
2. the token, in a header `Authorization: Bearer …` or in the cookie of a session; its scope, for this stream (401,
   403). A cookie alone allows to look; what changes something also needs the session's `X-CSRF-Token`;
3. the body, within limits of size and time (408, 411, 413, 415, 429);
4. the handler, which asks `taciturn.service.service.Service`.

**What is logged and told.** The log `taciturn` gets method, route, status and duration: no path, no query, no body and
no token, and durations are the operator's alone. An error that was not foreseen is answered with an id; the log has
that id, the kind of the error and the place in the code, and never its text, which may hold a value of the data.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import secrets
import time
import tomllib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Message, Receive, Scope, Send

from taciturn.contract.contract import contract_of
from taciturn.core.events import EventConflict, EventEnded, UnknownEvent
from taciturn.errors import (
    BudgetExhausted,
    InvalidInput,
    StateConflict,
    StoreUnavailable,
    TaciturnError,
    Unprovable,
)
from taciturn.readers.jsonl import read_json
from taciturn.service import messages
from taciturn.service.events import NoEvents, RowsAreEvents
from taciturn.service.live import release_events
from taciturn.service.rows import MEDIA, NotRows, TooManyRows
from taciturn.service.service import (
    RequestConflict,
    Service,
    UnknownLedger,
    UnknownStream,
    UnreadableStream,
    place_of,
    without_address,
)
from taciturn.service.tokens import Token, csrf_matches, session_of
from taciturn.service.writer import Busy, KeyReused, RequestTooLarge
from taciturn.store.database import StoreReplaced
from taciturn.store.events import StreamClosed, TooManyEvents

LOG = logging.getLogger("taciturn")

SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
)
"""Headers of every page."""

NO_SNIFF = SECURITY[0]
"""The one of them that answers to programs have, too: no browser shows them as pages."""

CONNECTION = "taciturn.connection"
"""In a scope: the connection, if the server lets applications use it (`taciturn.service.server`)."""

PART = 2**18
"""Bytes of an answer that are sent at a time, and are to be read in time."""

_JSON = b"application/json"
_KNOWN = 4096  # routes of paths that are remembered
_NO_STORE = (b"cache-control", b"no-store")
_USUAL: Sequence[tuple[bytes, bytes]] = (_NO_STORE,)
_USUAL_LINES = b"content-type: %b\r\ncontent-length: %%d\r\n%b: %b\r\n%b: %b\r\n" % (_JSON, *NO_SNIFF, *_NO_STORE)


class RequestError(Exception):
    """A request that is answered by an error: status, sentence and headers."""

    def __init__(self, status: int, sentence: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers


class Answer(NamedTuple):
    """An answer: its content, or parts of it as they come."""

    content: bytes | AsyncGenerator[bytes, None]
    media: bytes = _JSON
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = _USUAL


def json_answer(message: msgspec.Struct, status: int = 200) -> Answer:
    """A message as JSON."""
    return Answer(msgspec.json.encode(message), status=status)


class Call:
    """A request, as handlers see it: the service, headers, parameters, the token, and the body when it is read."""

    __slots__ = (
        "_receive",
        "_twice",
        "body_read",
        "headers",
        "parameters",
        "scope",
        "secret",
        "service",
        "session",
        "token",
    )

    def __init__(self, service: Service, scope: Scope, receive: Receive) -> None:
        self.service = service
        self.scope = scope
        self._receive = receive
        sent = scope["headers"]
        self.headers: dict[bytes, bytes] = dict(sent)
        self._twice: set[bytes] | None = None
        if len(self.headers) < len(sent):
            names = [name for name, _ in sent]
            self._twice = {name for name in names if names.count(name) > 1}
        self.parameters: dict[str, str] = scope.get("path_params", {})
        self.token: Token | None = None
        self.secret = ""
        self.session: str | None = None
        self.body_read = False

    @property
    def stream(self) -> str | None:
        """The stream that the path names."""
        return self.parameters.get("s")

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters; one that comes twice is rejected."""
        text = self.scope["query_string"]
        if not text:
            return {}
        try:
            pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, max_num_fields=20)
        except ValueError:
            raise RequestError(400, "the query of the address cannot be read. Correct it.") from None
        if len(dict(pairs)) < len(pairs):
            raise RequestError(400, "a parameter of the address comes twice. State it once.")
        return dict(pairs)

    def header(self, name: bytes) -> str | None:
        """The only header of this name; an error if there are several."""
        value = self.headers.get(name)
        if self._twice is not None and name in self._twice:
            raise RequestError(400, f"the header {name.decode()} comes more than once. Send it once.")
        return None if value is None else value.decode("latin-1")

    @property
    def media(self) -> str:
        """The media type of the body, without parameters."""
        kind = self.header(b"content-type") or ""
        if kind in MEDIA and b"content-encoding" not in self.headers:
            return kind
        if (self.header(b"content-encoding") or "identity").strip().lower() != "identity":
            raise RequestError(415, "bodies are read without content encoding. Send it as it is.")
        base, _, rest = kind.partition(";")
        charset = rest.replace('"', "").replace(" ", "").lower()
        if charset and charset not in ("charset=utf-8", "charset=utf8"):
            raise RequestError(415, "texts are read as UTF-8. Leave out other parameters of the content type.")
        return base.strip().lower()

    async def body(self, most: int | None = None) -> bytes:
        """The body, within the limits of size and time."""
        limits = self.service.limits
        most = limits.body if most is None else most
        length = self.header(b"content-length")
        if length is not None:
            if not (length.isascii() and length.isdigit()):
                raise RequestError(400, "the header content-length must be a number of bytes.")
            if int(length) > most:
                raise too_large(most)
        elif b"transfer-encoding" not in self.headers:
            raise RequestError(411, "the header content-length is missing. State the length of the body.")
        connection = self.scope.get(CONNECTION)
        here: bytes | None = None if connection is None else connection.arrived(self.scope)
        if here is not None:
            if len(here) > most:
                raise too_large(most)
            if self.service.bodies + len(here) > limits.bodies:
                raise too_busy()
            self.body_read = True
            return here
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                message = await self._receive()  # the server ends a connection that is too slow
                if message["type"] == "http.disconnect":
                    raise RequestError(400, "the connection ended before the body did.")
                part = message.get("body", b"")
                size += len(part)
                self.service.bodies += len(part)
                if size > most:
                    raise too_large(most)
                if self.service.bodies > limits.bodies:
                    raise too_busy()
                parts.append(part)
                if not message.get("more_body", False):
                    self.body_read = True
                    return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            self.service.bodies -= size

    async def gone(self) -> None:
        """Wait until the client has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def too_large(most: int) -> RequestError:
    """The error of a body that is too large."""
    return RequestError(413, f"a body may have {most:,} bytes. Send several requests.")


def too_busy() -> Busy:
    """The error of a server that holds as many bodies as it may."""
    return Busy("more is sent than this server holds. Try again in a second.")


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True)
class Operation:
    """A route: what it is for, who may use it, and what it takes and gives.

    Parameters
    ----------
    method, path : str
        As in HTTP; `{s}` in a path is the name of a stream, `{e}` the id of an event.
    scope : str, optional
        What a token must allow, separated by blanks; None if no token is needed.
    handler : callable
        Makes the answer.
    summary : str
        One sentence, for the OpenAPI document.
    takes, gives : type or str, optional
        Types of the body and of the answer; a text is a media type.
    media : tuple of str
        Media types of the body.
    query : dict
        Parameters of the query, with their JSON schemas.
    headers : dict
        Headers, with what they are for; those that end with `!` are required.
    errors : tuple of int
        Statuses of errors, besides those that every route has.
    filters : bool
        Whether the answer has only what the token may see.
    begins : bool
        Whether it begins another stream, so that the token must be for all of them.
    """

    method: Literal["GET", "POST", "PUT"]
    path: str
    scope: str | None
    handler: Handler
    summary: str
    takes: type | None = None
    gives: type | str | None = None
    status: int = 200
    media: tuple[str, ...] = ()
    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    errors: tuple[int, ...] = ()
    filters: bool = False
    begins: bool = False


class Application:
    """The ASGI application of a service.

    Parameters
    ----------
    service : Service
        What it serves.

    Examples
    --------
    `taciturn.service.server.running` serves one in a thread.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        routes: list[BaseRoute] = [_Endpoint.route(self, operation) for operation in OPERATIONS]
        routes += dashboard(service)
        self.router = Router(routes, redirect_slashes=False)
        self.known: dict[tuple[str, str], tuple[_Endpoint, dict[str, str]]] = {}  # what the router has found before

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            return await self._lifespan(receive, send)
        if scope["type"] != "http":
            await receive()
            return await send({"type": "websocket.close", "code": 1000})
        began = time.perf_counter()
        scope["app"] = self
        found = self.known.get((scope["method"], scope["path"]))
        if found is not None:
            endpoint, scope["path_params"] = found
            await endpoint.respond(scope, receive, send, found=True)
        else:
            await self._routed(scope, receive, send)
        route, status = scope.get("taciturn.route", ""), scope.get("taciturn.status", 0)
        seconds = time.perf_counter() - began
        self.service.metrics.answered(scope["method"] if route else "", route, status, seconds)
        if LOG.isEnabledFor(logging.INFO):
            LOG.info("%s %s %d %.1f ms", scope["method"] if route else "-", route or "-", status, 1000.0 * seconds)
        return None

    async def _routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find the route, and answer; what is no operation is a page, or an error."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope["taciturn.status"] = message["status"]
                if "taciturn.api" not in scope:
                    own = (header for header in message.get("headers", ()) if header != NO_SNIFF)
                    message["headers"] = [*own, *SECURITY]
            await send(message)

        try:
            await self.router(scope, receive, marked)
        except Exception as error:
            if "taciturn.status" in scope:  # the answer has begun: uvicorn ends the connection
                LOG.error("an answer ended early: %s %s", type(error).__name__, place_of(error))
            else:
                await respond(marked, error_answer(self.service, error))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.service.start()
                except TaciturnError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


class _Endpoint:
    """An operation as an ASGI application."""

    def __init__(self, app: Application, operation: Operation) -> None:
        self.app = app
        self.service = app.service
        self.operation = operation
        self.scopes = tuple((operation.scope or "").split())
        self.remembered = "{e}" not in operation.path  # an event is closed once

    @classmethod
    def route(cls, app: Application, operation: Operation) -> Route:
        return Route(operation.path, cls(app, operation), methods=[operation.method])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.respond(scope, receive, send)

    async def respond(self, scope: Scope, receive: Receive, send: Send, found: bool = False) -> None:
        """Answer a request, which was `found` among those whose routes are remembered."""
        operation = self.operation
        scope["taciturn.route"] = operation.path
        scope["taciturn.api"] = True
        call = Call(self.service, scope, receive)
        try:
            if operation.scope is not None:
                await authorise(call, self.scopes, operation.filters)
                if not found and self.remembered and len(self.app.known) < _KNOWN:
                    self.app.known[scope["method"], scope["path"]] = self, call.parameters
                if operation.begins and call.token is not None and not call.token.allows(operation.scope):
                    raise RequestError(403, "this begins another stream. It needs a token for all streams.")
            answer = await operation.handler(call)
        except Exception as error:
            answer = error_answer(self.service, error)
            if operation.method != "GET" and not call.body_read:  # what is left of the body is not waited for
                answer = answer._replace(headers=[*answer.headers, (b"connection", b"close")])
        scope["taciturn.status"] = answer.status
        if answer.headers is _USUAL and answer.media is _JSON and type(answer.content) is bytes:
            connection = scope.get(CONNECTION)
            lines = _USUAL_LINES % len(answer.content)
            if connection is not None and connection.answer(scope, answer.status, lines, answer.content):
                return
        try:
            await respond(send, answer)
        except Exception as error:  # whose text may hold a value
            LOG.error("an answer ended early: %s %s", type(error).__name__, place_of(error))


async def respond(send: Send, answer: Answer) -> None:
    """Send an answer in parts, each of which the server wants to be read in time."""
    content = answer.content
    if isinstance(content, bytes):
        headers = [
            (b"content-type", answer.media),
            (b"content-length", str(len(content)).encode()),
            NO_SNIFF,
            *answer.headers,
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        for start in range(0, max(1, len(content)), PART):
            end = start + PART
            await send({"type": "http.response.body", "body": content[start:end], "more_body": end < len(content)})
        return
    headers = [(b"content-type", answer.media), NO_SNIFF, *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    async with contextlib.aclosing(content) as parts:
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def authorise(call: Call, scopes: Sequence[str], filters: bool = False) -> None:
    """Find the token of a request, and reject one that is missing, unknown, expired or of another scope.

    Where the handler `filters` what it shows, a token for one stream is enough. If the store was replaced, it is not
    known which tokens were revoked, and nothing is answered.
    """
    call.service.must_be_newest()
    tokens = call.service.tokens
    given = call.header(b"authorization")
    if given is not None:
        kind, _, secret = given.partition(" ")
        call.secret = secret.strip()
        token = await tokens.find(call.secret, call.service.in_thread) if kind.lower() == "bearer" else None
    else:
        call.session = session_of(call.header(b"cookie") or "")
        call.secret = call.session or ""
        token = None if call.session is None else await tokens.find(call.session, call.service.in_thread)
    if token is None:
        sentence = "a valid token is needed. Send it in the header Authorization: Bearer TOKEN."
        raise RequestError(401, sentence, (b"www-authenticate", b'Bearer realm="taciturn"'))
    stream = token.stream if filters else call.stream
    for scope in scopes:
        if not token.allows(scope, stream):
            needed = " and ".join(scopes)
            raise RequestError(403, f"this token does not allow this. It needs the scope {needed}, for this stream.")
    changes = call.session is not None and call.scope["method"] not in ("GET", "HEAD")
    if changes and not csrf_matches(call.session or "", call.header(b"x-csrf-token") or ""):
        raise RequestError(403, "a session needs the header X-CSRF-Token of its page. Send it, or use a token.")
    call.token = token


# Errors.

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownStream, 404),
    (UnreadableStream, 503),
    (UnknownLedger, 404),
    (TooManyRows, 413),
    (RequestTooLarge, 413),
    (NotRows, 400),
    (KeyReused, 409),
    (StreamClosed, 409),
    (RequestConflict, 409),
    (UnknownEvent, 404),
    (EventConflict, 409),
    (EventEnded, 410),
    (RowsAreEvents, 409),
    (NoEvents, 409),
    (BudgetExhausted, 409),
    (InvalidInput, 422),
    (Unprovable, 422),
)
_RETRY = (b"retry-after", b"1")
_REPLACED = (
    "the store is not the newest copy of itself: it was restored from a backup, replaced or cloned. Nothing of it is "
    "shown or learnt before its operator has put back the newest one."
)


def error_answer(service: Service, error: Exception) -> Answer:
    """The answer of an error: a sentence that quotes no value, and no address of the store."""
    if isinstance(error, RequestError):
        return _error(error.status, error.sentence, *error.headers)
    if isinstance(error, HTTPException):
        sentence = {404: "there is nothing at this address.", 405: "this address has no such method."}
        headers = [(name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items()]
        return _error(error.status_code, sentence.get(error.status_code, "the request cannot be answered."), *headers)
    if isinstance(error, Busy | TooManyEvents):
        return _error(429, str(error), _RETRY)
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return _error(status, without_address(service.store.address, str(error)))
    if isinstance(error, StoreReplaced):
        if service.replaced is None:  # else the log has it since the last tick
            LOG.error("the store was replaced: %s", without_address(service.store.address, str(error)))
        return _error(503, _REPLACED)
    if isinstance(error, StoreUnavailable):
        LOG.error("the store is unavailable: %s", without_address(service.store.address, str(error)))
        return _error(503, "the store cannot be used now. Try again in a second.", _RETRY)
    if isinstance(error, StateConflict):
        LOG.error("a conflict in the store: %s", without_address(service.store.address, str(error)))
        return _error(409, without_address(service.store.address, str(error)))
    number = secrets.token_hex(8)
    LOG.error("internal error %s: %s %s", number, type(error).__name__, place_of(error))
    content = messages.Error("the server made a mistake. Its operator finds more in the log, by this id.", number)
    return Answer(msgspec.json.encode(content), status=500)


def _error(status: int, sentence: str, *headers: tuple[bytes, bytes]) -> Answer:
    content = msgspec.json.encode(messages.Error(sentence))
    return Answer(content, status=status, headers=(_NO_STORE, *headers))


# Handlers.


async def predict(call: Call) -> Answer:
    """Predict."""
    name, media = call.parameters["s"], call.media
    probabilities = bool(call.scope["query_string"]) and flag(call.query, "probabilities")
    return json_answer(await call.service.predict(name, media, await rows_of(call, media), probabilities))


async def learn(call: Call) -> Answer:
    """Learn."""
    assert call.stream is not None
    key = call.header(b"idempotency-key")
    if key is None:
        raise RequestError(
            400, "the header Idempotency-Key is missing. Send a random text, and the same one when you retry."
        )
    if not 1 <= len(key) <= 255 or not key.isascii() or not key.isprintable():
        raise RequestError(400, "an Idempotency-Key has 1 to 255 printable ASCII characters. Send a random text.")
    media = call.media
    return json_answer(await call.service.learn(call.stream, key, media, await rows_of(call, media), owner_of(call)))


async def check(call: Call) -> Answer:
    """A dry run."""
    media = call.media
    return json_answer(await call.service.check(call.parameters["s"], media, await rows_of(call, media)))


def owner_of(call: Call) -> str:
    """Whose keys and events those of a request are."""
    return "" if call.token is None else call.token.owner


async def open_event(call: Call) -> Answer:
    """Open an event."""
    name = call.parameters["s"]
    probabilities = bool(call.scope["query_string"]) and flag(call.query, "probabilities")
    body = await json_body(call)
    return json_answer(await call.service.open_event(name, body, probabilities, owner_of(call)))


async def rank(call: Call) -> Answer:
    """Choose an action."""
    name = call.parameters["s"]
    body = await json_body(call, stores=False)  # it is known when it is read
    ranker = call.service.host(name).ranker
    request, finite = None if ranker is None else ranker.read(body), True
    if request is None:
        form = '{"contextFeatures": {…}, "actions": [{"id": …}, …], "eventId": "an id"}'
        request, finite = decoded(body, _decode_rank, form)
    return json_answer(await call.service.rank(name, body, request, owner_of(call), finite))


def _decode_rank(body: bytes) -> tuple[messages.Rank, bool]:
    """A decision to make, and whether all numbers of its contexts are finite; as in rows, they need not be."""
    try:
        return _decode_finite_rank(body), True
    except (msgspec.MsgspecError, RecursionError) as error:
        try:
            data = read_json(body.decode())
        except (ValueError, RecursionError):
            raise error from None
        return msgspec.convert(data, messages.Rank), False


async def label_event(call: Call) -> Answer:
    """Close an event."""
    if call.service.host(call.parameters["s"]).ranker is not None:  # a text would make a decision without influence
        raise RequestError(422, 'this stream takes rewards. Send {"value": a number} to …/events/{id}/reward.')
    label = decoded(await json_body(call), _decode_label, '{"label": …}').label
    return json_answer(
        await call.service.close_event(call.parameters["s"], call.parameters["e"], label, owner_of(call))
    )


async def send_reward(call: Call) -> Answer:
    """The reward of an event, by POST."""
    # A function of its own, because the OpenAPI document uses its name as the operationId.
    return await reward_event(call)


async def reward_event(call: Call) -> Answer:
    """Close an event by a number."""
    value = decoded(await json_body(call), _decode_reward, '{"value": a number}').value
    return json_answer(
        await call.service.close_event(call.parameters["s"], call.parameters["e"], value, owner_of(call))
    )


_decode_label = msgspec.json.Decoder(messages.Label).decode
_decode_reward = msgspec.json.Decoder(messages.Reward).decode
_decode_finite_rank = msgspec.json.Decoder(messages.Rank).decode
_STREAM = '{"name": …, "contract": {…}, "ledger": …}'  # which may lack a ledger, and a successor a contract
_decode_stream = msgspec.json.Decoder(messages.NewStream).decode
_decode_successor = msgspec.json.Decoder(messages.Successor).decode


async def json_body(call: Call, stores: bool = True) -> bytes:
    """The body of a request about an event; one of another kind is not read, nor one that cannot be stored."""
    if call.media != "application/json":
        raise RequestError(415, "events are sent as application/json. State it as the content type.")
    name = call.parameters["s"]
    if stores or call.service.host(name).ranker is None:
        call.service.event_writer(name)
    return await call.body(call.service.limits.event)


def decoded(body: bytes, decode: Callable[[bytes], Any], form: str) -> Any:
    """A body of this form; an error without its values, which names the place, as in $.eventId."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        _, _, place = str(error).rpartition(" - at `")
        where = f" at {place.rstrip('`')}" if place.startswith("$.") else ""
        raise RequestError(422, f"the body is not of the form {form}{where}. Correct it.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RequestError(400, f"the body is not valid JSON. Send {form}.") from None


async def rows_of(call: Call, media: str) -> bytes:
    """The body of a request with rows; one of another kind is not read."""
    if media not in MEDIA:
        raise RequestError(415, f"rows are sent as {', '.join(MEDIA)}. State one of them as the content type.")
    call.service.host(call.parameters["s"])
    return await call.body()


def flag(query: dict[str, str], name: str) -> bool:
    """A parameter that is true or false."""
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise RequestError(422, f"the parameter {name} must be true or false.")
    return value == "true"


def natural(query: dict[str, str], name: str, default: int, most: int) -> int:
    """A parameter that is a number from 0."""
    value = query.get(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) <= 15):
        raise RequestError(422, f"the parameter {name} must be a number, 0 or more.")
    return min(int(value), most)


async def create_stream(call: Call) -> Answer:
    """Create."""
    media = call.media
    if media == "application/json":
        made = decoded(await call.body(2**20), _decode_stream, _STREAM)
        name, declared, ledger = made.name, made.contract, made.ledger
    elif media == "application/toml":
        query = call.query
        name, ledger = query.get("name", ""), query.get("ledger")
        try:
            declared = tomllib.loads((await call.body(2**20)).decode())
        except (ValueError, RecursionError):
            raise RequestError(400, "the body is not valid TOML. Put texts in quotes and lists in brackets.") from None
    else:
        raise RequestError(415, "a contract is sent as application/json or application/toml.")
    service = call.service
    contract = await service.in_thread(contract_of, declared)
    host = await service.in_thread(service.create, name, contract, ledger)
    details = host.details(service.clock.seconds)
    if ledger is None and not host.simulated and (known := await service.in_thread(service.ledgers)):
        warning = (
            f"this stream is in no ledger, so nothing adds its cost to that of others about the same people: name one "
            f"of {', '.join(known)} if it is about them"
        )
        both = warning if details.warning is None else f"{details.warning}; and {warning}"
        details = msgspec.structs.replace(details, warning=both)
    return json_answer(details, status=201)


async def list_streams(call: Call) -> Answer:
    """List."""
    assert call.token is not None
    return json_answer(messages.Streams(call.service.streams(call.token), call.service.unreadable(call.token)))


async def show_stream(call: Call) -> Answer:
    """Show."""
    return json_answer(call.service.host(call.parameters["s"]).details(call.service.clock.seconds))


async def latest_model(call: Call) -> Answer:
    """The latest visible model."""
    view = call.service.host(call.parameters["s"]).view
    if "etag" not in vars(view):
        await call.service.in_thread(getattr, view, "etag")
    etag = f'"{view.etag}"'.encode()
    headers = [(b"cache-control", b"private, no-cache"), (b"etag", etag)]
    if etag in (part.strip() for part in call.headers.get(b"if-none-match", b"").split(b",")):
        return Answer(b"", status=304, headers=headers)
    return Answer(view.body, headers=headers)


async def one_model(call: Call) -> Answer:
    """A model that never changes."""
    number = call.parameters["k"]
    host = call.service.host(call.parameters["s"])
    digits = number.isascii() and number.isdigit() and len(number) <= 15
    body = await call.service.in_thread(host.model_at, int(number)) if digits else None
    if body is None:
        raise RequestError(404, "there is no such release, or it is not visible yet.")
    return Answer(body, headers=[(b"cache-control", b"private, max-age=31536000, immutable")])


async def list_models(call: Call) -> Answer:
    """Releases by pages."""
    query, service = call.query, call.service
    host = service.host(call.parameters["s"])
    after, limit = natural(query, "after", 0, 2**53), max(1, natural(query, "limit", 100, 1000))
    weights, view, owner = flag(query, "weights"), host.view, owner_of(call)
    if weights and service.pages[owner] >= service.limits.pages:
        raise Busy("as many pages with weights are read by this token as this server allows. Try again in a second.")
    service.pages[owner] += weights
    try:
        made = await service.in_thread(host.releases, after, limit, weights)
    except BaseException:
        service.pages[owner] -= weights
        raise

    last = after + len(made) if made else view.k
    stored: list[Any] = [msgspec.Raw(each) for each in made]
    answer = json_answer(messages.Releases(host.name, stored, last if last < view.k else None))
    if not weights:
        return answer

    async def page(content: Any) -> AsyncGenerator[bytes, None]:
        try:
            for start in range(0, len(content), PART):
                yield content[start : start + PART]
        finally:  # read, or its client has left
            service.pages[owner] -= 1

    return answer._replace(content=page(answer.content))


async def live(call: Call) -> Answer:
    """Server-sent events."""
    service, name = call.service, call.parameters["s"]
    service.host(name)
    seen = call.header(b"last-event-id")
    if seen is not None and not (seen.isascii() and seen.isdigit() and len(seen) <= 15):
        raise RequestError(400, "the header Last-Event-ID must be the number of a release.")
    if call.scope["method"] == "HEAD":
        return Answer(b"", b"text/event-stream")
    owner = owner_of(call)
    if service.live >= service.limits.live or service.watching[owner] >= service.limits.token_live:
        raise Busy("as many clients watch as this server allows, in all or with this token. Try again later.")

    async def events() -> AsyncGenerator[bytes, None]:
        service.watching[owner] += 1
        gone = asyncio.ensure_future(call.gone())
        source = release_events(service, name, None if seen is None else int(seen))
        try:
            while True:
                following = asyncio.ensure_future(anext(source, None))
                await asyncio.wait([following, gone], return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    await asyncio.wait([following])
                    return
                if (part := following.result()) is None:
                    return
                token = service.tokens.check(call.secret)  # which may have been revoked meanwhile
                if token is None or not token.allows("read", name):
                    return
                yield part
        finally:
            service.watching[owner] -= 1
            gone.cancel()
            await source.aclose()

    return Answer(events(), b"text/event-stream")


async def close_stream(call: Call) -> Answer:
    """Close."""
    service, name = call.service, call.parameters["s"]
    await service.in_thread(service.close_stream, name)
    return json_answer(service.host(name).details(service.clock.seconds))


async def renew_stream(call: Call) -> Answer:
    """Close a stream, and open its successor."""
    if call.media != "application/json":
        raise RequestError(415, "a successor is sent as application/json.")
    call.service.host(call.parameters["s"])
    made = decoded(await call.body(2**20), _decode_successor, _STREAM)
    service, name = call.service, call.parameters["s"]
    contract = None if made.contract is None else await service.in_thread(contract_of, made.contract)
    return json_answer(await service.renew(name, made.name, contract, made.ledger), status=201)


async def diagnostics(call: Call) -> Answer:
    """NOT PRIVATE."""
    service, name = call.service, call.parameters["s"]
    rows, made = await service.in_thread(service.writer(name).diagnostics)
    return json_answer(messages.Diagnostics(name, True, rows, service.metrics.counted(name), made))


async def list_ledgers(call: Call) -> Answer:
    """Ledgers."""
    return json_answer(messages.Ledgers(await call.service.in_thread(call.service.ledgers)))


async def show_ledger(call: Call) -> Answer:
    """A ledger."""
    return json_answer(await call.service.in_thread(call.service.ledger, call.parameters["l"]))


async def health(call: Call) -> Answer:
    """Whether the process runs."""
    return json_answer(messages.Health("ok"))


async def ready(call: Call) -> Answer:
    """Whether the store could be read at the last tick, and all streams in it, and is the newest copy of itself."""
    call.service.must_be_newest()
    if not call.service.ready:
        raise RequestError(503, "the store could not be read for some seconds.", _RETRY)
    warning = None
    with contextlib.suppress(RequestError):
        await authorise(call, ("operate",))
        warning = call.service.warning
    return json_answer(messages.Health("ready", len(call.service.unreadable()), warning))


async def openapi(call: Call) -> Answer:
    """The description of all this."""
    from taciturn.service.openapi import document

    return Answer(document(), headers=[(b"cache-control", b"public, max-age=300")])


async def metrics(call: Call) -> Answer:
    """Numbers for monitoring."""
    assert call.token is not None
    text = await call.service.in_thread(call.service.metrics.text, call.service, call.token)
    return Answer(text.encode(), b"text/plain; version=0.0.4; charset=utf-8")


_TRUE = {"type": "boolean", "default": False}
_NUMBER = {"type": "integer", "minimum": 0}
_MODEL = "application/json"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/v1/streams/{s}/predict",
        "predict",
        predict,
        "Predict by the latest visible model.",
        messages.Rows,
        messages.Predictions,
        media=MEDIA,
        query={"probabilities": _TRUE},
        errors=(400, 404, 408, 411, 413, 415, 422, 429),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/examples",
        "learn",
        learn,
        "Learn from rows, once for each key; answered after the commit.",
        messages.Rows,
        messages.Learnt,
        media=MEDIA,
        headers={"Idempotency-Key!": "A random text; the same one when a request is repeated."},
        errors=(400, 404, 408, 409, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/check",
        "learn",
        check,
        "Tell what the contract makes of rows, for who sends them; nothing is learnt.",
        messages.Rows,
        messages.Check,
        media=MEDIA,
        errors=(400, 404, 408, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/events",
        "predict learn",
        open_event,
        "Predict for a row whose label comes later, and wait for it; answered after the commit.",
        messages.NewEvent,
        messages.Event,
        media=("application/json",),
        query={"probabilities": _TRUE},
        errors=(400, 404, 408, 409, 410, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/rank",
        "predict learn",
        rank,
        "Choose one of several actions for a visitor, and wait for its reward, unless learn is false.",
        messages.Rank,
        messages.Ranked,
        media=("application/json",),
        errors=(400, 404, 408, 409, 410, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "PUT",
        "/v1/streams/{s}/events/{e}/label",
        "learn",
        label_event,
        "The label of an event, which is learnt once; answered after the commit.",
        messages.Label,
        messages.Closed,
        media=("application/json",),
        errors=(400, 404, 408, 409, 410, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "PUT",
        "/v1/streams/{s}/events/{e}/reward",
        "learn",
        reward_event,
        "The reward of an event, which is learnt once; answered after the commit.",
        messages.Reward,
        messages.Closed,
        media=("application/json",),
        errors=(400, 404, 408, 409, 410, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/events/{e}/reward",
        "learn",
        send_reward,
        "The same as PUT.",
        messages.Reward,
        messages.Closed,
        media=("application/json",),
        errors=(400, 404, 408, 409, 410, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "GET",
        "/v1/streams/{s}/models/latest",
        "read",
        latest_model,
        "The latest visible model.",
        gives=_MODEL,
        headers={"If-None-Match": "The ETag of the model that the client has."},
        errors=(304, 404),
    ),
    Operation(
        "GET",
        "/v1/streams/{s}/models/{k}",
        "read",
        one_model,
        "The model after the k-th release, which never changes.",
        gives=_MODEL,
        errors=(404,),
    ),
    Operation(
        "GET",
        "/v1/streams/{s}/models",
        "read",
        list_models,
        "The visible releases, by pages.",
        gives=messages.Releases,
        query={"after": _NUMBER, "limit": {**_NUMBER, "maximum": 1000}, "weights": _TRUE},
        errors=(404, 422),
    ),
    Operation(
        "GET",
        "/v1/streams/{s}/live",
        "read",
        live,
        "Releases as server-sent events, as they become visible.",
        gives="text/event-stream",
        headers={"Last-Event-ID": "The number of the last release that the client has seen."},
        errors=(404, 429),
    ),
    Operation(
        "GET",
        "/v1/streams",
        "read",
        list_streams,
        "The streams that the token may read.",
        gives=messages.Streams,
        filters=True,
    ),
    Operation(
        "POST",
        "/v1/streams",
        "admin",
        create_stream,
        "Begin a stream: its whole cost is reserved before its first row.",
        messages.NewStream,
        messages.StreamDetails,
        201,
        ("application/json", "application/toml"),
        query={"name": {"type": "string"}, "ledger": {"type": "string"}},
        errors=(400, 404, 408, 409, 411, 413, 415, 422, 429, 503),
    ),
    Operation(
        "GET",
        "/v1/streams/{s}",
        "read",
        show_stream,
        "What is public about a stream at the last tick.",
        gives=messages.StreamDetails,
        errors=(404,),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/close",
        "operate",
        close_stream,
        "End a stream; what it reserved stays reserved.",
        gives=messages.StreamDetails,
        errors=(404, 409, 503),
    ),
    Operation(
        "POST",
        "/v1/streams/{s}/renew",
        "admin",
        renew_stream,
        "Close a stream, and open its successor, which starts from the latest visible model.",
        messages.Successor,
        messages.Renewed,
        201,
        ("application/json",),
        errors=(400, 404, 408, 409, 411, 413, 415, 422, 429, 503),
        begins=True,
    ),
    Operation(
        "GET",
        "/v1/streams/{s}/diagnostics",
        "operate",
        diagnostics,
        "NOT PRIVATE: numbers computed from exact rows, for the operator alone.",
        gives=messages.Diagnostics,
        errors=(404, 409, 503),
    ),
    Operation("GET", "/v1/ledgers", "read", list_ledgers, "The ledgers in the store.", gives=messages.Ledgers),
    Operation(
        "GET",
        "/v1/ledgers/{l}",
        "read",
        show_ledger,
        "What is public about a ledger at the last tick.",
        gives=messages.Ledger,
        errors=(404,),
    ),
    Operation("GET", "/healthz", None, health, "Whether the server runs.", gives=messages.Health),
    Operation("GET", "/readyz", None, ready, "Whether it could read the store.", gives=messages.Health, errors=(503,)),
    Operation("GET", "/openapi.json", None, openapi, "This document.", gives="application/json"),
    Operation(
        "GET",
        "/metrics",
        "read",
        metrics,
        "Numbers for monitoring; for operators also theirs.",
        gives="text/plain",
        filters=True,
    ),
)
"""Everything that the application answers, but for the pages of the dashboard."""


def dashboard(service: Service) -> list[BaseRoute]:
    """The pages of the dashboard, if it is installed."""
    if importlib.util.find_spec("taciturn.service.dashboard") is None:
        return []
    return list(importlib.import_module("taciturn.service.dashboard").dashboard_routes(service))
