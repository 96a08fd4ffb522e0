"""A client of `taciturn serve`: rows are learnt once, whatever the network does.

**Retries.** A request that fails on the way, or is answered by 408, 429, 502, 503 or 504, is sent again after a pause,
which doubles each time and has a random part; the server's `Retry-After` is waited for. Every request with rows to
learn has a random `Idempotency-Key` and keeps it when it is sent again, so that its rows are learnt once: a server that
has learnt them answers with the rounds that they have taken. Events have random ids in the same way. `create` and
`close` are not sent again once they may have arrived; `renew` is, as the service recognises it. A stream that the
service cannot read, by a wrong key for instance, is an error at once.

It needs the extra `client` (httpx), and for tables the extra `data` (pandas, pyarrow).
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import time
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from taciturn.contract.model_file import Model, parse_model
from taciturn.errors import InvalidInput, TaciturnError, did_you_mean, finite, integer, needs_extra, positive

if TYPE_CHECKING:
    import httpx

__all__ = ["Client", "Decision", "Event", "Learnt", "Predictions", "Released", "ServiceError"]

_JSON = "application/json"
_ARROW = "application/vnd.apache.arrow.stream"
_AGAIN = frozenset({408, 429, 502, 503, 504})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
_ROWS = 10_000  # of a request
_CHECKED = 1_000  # rows of a dry run, as many as a service takes
_PAGE = 1_000  # releases of a page


class ServiceError(TaciturnError):
    """A service rejected a request, or could not be reached; `status` is that of HTTP, None without an answer.

    Of a call that learns, `learnt` is how many of its rows, from the first on, are known to have their rounds.

    >>> raise ServiceError("there is no such stream. List them by GET /v1/streams.", 404)
    Traceback (most recent call last):
    ...
    taciturn.client.ServiceError: there is no such stream. List them by GET /v1/streams.
    """

    def __init__(self, sentence: str, status: int | None = None, learnt: int = 0) -> None:
        super().__init__(sentence)
        self.status = status
        self.learnt = learnt


class Learnt(NamedTuple):
    """The first and the last round that rows have taken; other rows may lie between them.

    >>> Learnt(1, 100).last
    100
    """

    first: int
    last: int


class Predictions(NamedTuple):
    """Predictions, the release that made them, and the classes and their probabilities, if they were asked for.

    >>> Predictions(3, ["yes"]).predictions
    ['yes']
    """

    release: int
    predictions: list[Any]
    classes: list[Any] | None = None
    probabilities: list[list[float] | None] | None = None


class Event(NamedTuple):
    """A row whose label comes later: its id and round, until when it takes a label, and the prediction.

    `due` is in milliseconds since the epoch.

    >>> Event("3f9a", 1, 600_000, 0, "yes").prediction
    'yes'
    """

    event: str
    round: int
    due: int
    release: int
    prediction: Any
    classes: list[Any] | None = None
    probabilities: list[float] | None = None


class Decision(NamedTuple):
    """A decision: its event's id and round, until when it takes a reward, the chosen action, and all of them in order.

    Each of these has the probability with which it was to be chosen, None if that is not known. One of `learn=False`
    has no event, no round, and takes no reward.

    >>> Decision("3f9a", 1, 600_000, 0, "left", [("left", 0.5), ("right", 0.5)]).action
    'left'
    """

    event: str | None
    round: int | None
    due: int | None
    release: int
    action: str
    ranking: list[tuple[str, float | None]]


class Released(NamedTuple):
    """A release: its number, its round, the standard deviation of its noise, and the model to use, if it was asked for.

    `point` is the released point itself, if models are averages.

    >>> Released(1, 100, 0.5).t
    100
    """

    k: int
    t: int
    noise_sd: float
    model: list[float] | None = None
    point: list[float] | None = None


class Client:
    """A connection to a service.

    Parameters
    ----------
    url : str
        Its address.
    token : str, optional
        What it is asked with; by default the environment variable `TACITURN_TOKEN`.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often a request is sent again at most.
    certificate : path, optional
        File, in PEM, of the authority that signed the certificate of the service, or of that certificate itself if it
        signed itself; by default the public authorities.

    Examples
    --------
    >>> import tempfile
    >>> from taciturn.service.server import running
    >>> from taciturn.service.service import Service
    >>> from taciturn.store import Store
    >>> contract = {
    ...     "privacy": {"epsilon": 1.0},
    ...     "target": {"column": "bought", "positive": ["yes"]},
    ...     "learning": {"horizon": 1000, "release": 100},
    ...     "columns": {"age": {"range": [0, 100]}},
    ... }
    >>> folder = tempfile.TemporaryDirectory()
    >>> service = Service(Store(f"{folder.name}/taciturn.db"), tick=0.05)
    >>> _, token = service.tokens.create(["admin"])
    >>> with running(service) as url, Client(url, token) as client:
    ...     _ = client.create("purchases", contract)
    ...     client.learn("purchases", [{"age": 30, "bought": "yes"}, {"age": 70, "bought": "no"}] * 50)
    ...     next(client.live("purchases")).t
    ...     client.predict("purchases", [{"age": 50}]).release
    Learnt(first=1, last=100)
    100
    1
    >>> folder.cleanup()
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 8,
        certificate: str | os.PathLike[str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        try:
            import httpx
        except ImportError:  # pragma: no cover
            raise InvalidInput(needs_extra("taciturn.client", "client", "httpx")) from None
        token = os.environ.get("TACITURN_TOKEN") if token is None else token
        if not token:
            raise InvalidInput(
                "a token is needed. Pass token=, or set TACITURN_TOKEN; taciturn token create makes one."
            )
        if not token.isascii() or not token.isprintable():
            raise InvalidInput("the token has characters that no token has. Pass it as it was printed.")
        self.retries = integer("retries", retries, least=0)
        self._timeout = positive("timeout", timeout)
        self._errors: tuple[type[Exception], ...] = (httpx.TransportError,)
        self._not_sent: tuple[type[Exception], ...] = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        self._models: dict[str, tuple[str, Model]] = {}
        self._names: dict[str, _Names | None] = {}
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InvalidInput("the url must begin with http:// or https://, as in https://models.example.org.")
        trusted = True if certificate is None else _trusting(Path(certificate))
        try:
            self._http = httpx.Client(
                base_url=url,
                verify=trusted,
                timeout=self._timeout,
                headers={"Authorization": f"Bearer {token}"},
                transport=transport,
                follow_redirects=False,
            )
        except (httpx.InvalidURL, TypeError):
            raise InvalidInput("the url must be an address such as https://models.example.org.") from None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *reason: object) -> None:
        self.disconnect()

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"

    def disconnect(self) -> None:
        """Close the connections."""
        self._http.close()

    # Streams.

    def streams(self) -> list[dict[str, Any]]:
        """What is public about the streams that the token may read."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/streams")["streams"]
        return found

    def stream(self, name: str) -> dict[str, Any]:
        """What is public about a stream, with its contract and its guarantee in words."""
        return self._json("GET", _path(name))

    def create(
        self, name: str, contract: Mapping[str, Any] | str | os.PathLike[str], ledger: str | None = None
    ) -> dict[str, Any]:
        """Begin a stream; all of its cost is reserved now.

        Parameters
        ----------
        name : str
            What it is called.
        contract : dict or path
            The contract as plain data, or its TOML file.
        ledger : str, optional
            The people whose ledger pays for it.
        """
        declared = dict(contract) if isinstance(contract, Mapping) else _toml(Path(contract))
        content = {"name": name, "contract": declared, "ledger": ledger}
        return self._json("POST", "/v1/streams", _body(content), _JSON, repeat=False)

    def close(self, name: str) -> dict[str, Any]:
        """End a stream: nothing more is learnt or released. What it reserved stays reserved."""
        return self._json("POST", f"{_path(name)}/close", b"", repeat=False)

    def renew(
        self,
        name: str,
        successor: str,
        contract: Mapping[str, Any] | str | os.PathLike[str] | None = None,
        ledger: str | None = None,
    ) -> dict[str, Any]:
        """Close a stream, and open its successor, which starts from the latest visible model, under its own budget.

        What is promised to someone whose rows are in both is in the answer. Called again, it answers as before.

        Parameters
        ----------
        name, successor : str
            The stream, and what its successor is called.
        contract : dict or path, optional
            Of the successor, with the same columns and target; by default that of the stream.
        ledger : str, optional
            The people whose ledger pays for the successor; by default the ledger of the stream.
        """
        declared = contract if contract is None or isinstance(contract, Mapping) else _toml(Path(contract))
        content = {"name": successor, "contract": declared, "ledger": ledger}
        return self._json("POST", f"{_path(name)}/renew", _body(content), _JSON)

    # Rows.

    def learn(self, name: str, rows: Any, *, key: str | None = None, batch: int = _ROWS) -> Learnt:
        """Learn from rows, each once, and return the rounds that they have taken, after the commit.

        Parameters
        ----------
        name : str
            The stream.
        rows : iterable of dict, DataFrame or pyarrow.Table
            The rows, with the target and, if the contract names one, the column of ids. A row that the contract cannot
            read takes its round and has no influence.
        key : str, optional
            Idempotency key, for callers that may repeat this call with the same rows: those of the first call are
            learnt, and the second gets the same answer. By default a random one.
        batch : int
            Rows of a request; each request is learnt as a whole or not at all.
        """
        key = secrets.token_hex(16) if key is None else key
        if not (isinstance(key, str) and key and key.isascii() and key.isprintable()):
            raise InvalidInput("key must be a text of printable ASCII characters. Convert it, as by str(key).")
        first = last = None
        learnt = 0
        try:
            for i, part in enumerate(_requests(rows, integer("batch", batch))):
                if i == 0:
                    self._check_names(name, part.names, labelled=True)
                headers = {"Idempotency-Key": key if i == 0 else f"{key}-{i}"}
                answer = self._json("POST", f"{_path(name)}/examples", part.body, part.media, headers)
                first, last = answer["first"] if first is None else first, answer["last"]
                learnt += part.rows
        except (ServiceError, InvalidInput) as error:
            if not learnt:
                raise
            sentence = f"{error} The first {learnt:,} rows of this call are learnt: send the others only."
            status = error.status if isinstance(error, ServiceError) else None
            raise ServiceError(sentence, status, learnt) from None
        if first is None or last is None:
            raise InvalidInput("there is no row to learn from. Pass at least one.")
        return Learnt(first, last)

    def check(self, name: str, rows: Any) -> dict[str, Any]:
        """What the contract of a stream makes of rows, which are not learnt: a dry run. NOT PRIVATE.

        Of more than 1,000 rows the first are sent. The answer has bad rows and the reasons, for each column the rows
        without its name or without a value, and values outside of its range or categories, names that the contract does
        not have, and labels; it is about these rows alone, and needs the scope of `learn`.
        """
        for part in _requests(rows, _CHECKED):
            return self._json("POST", f"{_path(name)}/check", part.body, part.media)
        raise InvalidInput("there is no row to check. Pass at least one.")

    def _check_names(self, name: str, names: Collection[str], labelled: bool) -> None:
        """Reject rows whose names are not those of the public contract.

        A row may lack a column, which is missing then, and may have others, which are not read. Rows that have others,
        and all of them lack one, are taken to be misspelt; and without a target nothing can be learnt.
        """
        if name not in self._names:
            self._names[name] = self._names_of(name)
        known = self._names[name]
        if known is None:
            return
        if labelled and known.target not in names:
            near = did_you_mean(known.target, [other for other in names if other not in known.columns])
            raise InvalidInput(f"no row has {known.target}, the target of {name}. Add it, or correct its name.{near}")
        others = [other for other in names if other not in {*known.columns, known.target, known.user, *known.ignored}]
        absent = [column for column in known.columns if column not in names]
        if labelled and known.user is not None and known.user not in names:
            absent.append(known.user)
        if others and absent:
            pairs = ((each, did_you_mean(each, absent)) for each in others)
            other, meant = next((pair for pair in pairs if pair[1]), (others[0], ""))
            raise InvalidInput(
                f"column {other} is not in the contract of {name}, and no row has its column {absent[0]}. Correct the "
                f"name; if it is not misspelt, send {absent[0]} as None where it is missing.{meant}"
            )

    def _names_of(self, name: str) -> _Names | None:
        """The names in the contract of a stream; None if the token may not know them."""
        try:
            declared = self.stream(name)["contract"]
            columns = declared["columns"]
            ignored = [column for column, kind in columns.items() if kind.get("ignore")]
            read = [column for column in columns if column not in ignored]
            return _Names(read, declared["target"]["column"], declared["privacy"].get("user"), ignored)
        except ServiceError as error:
            if error.status != 403:
                raise
        try:  # with the scope of learning alone: an empty row tells nothing, and the answer has the names
            made = self._json("POST", f"{_path(name)}/check", _body({"rows": [{}]}), _JSON)
        except ServiceError as error:
            if error.status not in (403, 404, 422):  # of an older service, or of a stream that takes no rows
                raise
            return None
        read = [column for column in made["columns"] if column not in (made["target"], made["user"])]
        return _Names(read, made["target"], made["user"], made["ignored"])

    def predict(self, name: str, rows: Any, *, probabilities: bool = False, batch: int = _ROWS) -> Predictions:
        """Predictions for rows by the latest visible model; None for a row that the contract cannot read.

        If there are several requests and a release comes between them, `release` is that of the last.
        """
        made: list[Any] = []
        all_probabilities: list[list[float] | None] = []
        release, classes = 0, None
        query = {"probabilities": "true"} if probabilities else {}
        path, asked = f"{_path(name)}/predict", False
        for part in _requests(rows, integer("batch", batch)):
            if not asked:
                self._check_names(name, part.names, labelled=False)
            asked, answer = True, self._json("POST", path, part.body, part.media, query=query)
            release, classes = answer["release"], answer.get("classes")
            made += answer["predictions"]
            all_probabilities += answer.get("probabilities") or []
        if not asked:  # for the release, with the same scope; an empty row tells nothing
            answer = self._json("POST", path, _body({"rows": [{}]}), _JSON, query=query)
            release, classes = answer["release"], answer.get("classes")
        return Predictions(release, made, classes, all_probabilities if probabilities else None)

    # Events: labels and rewards that come later.

    def open(
        self, name: str, row: Mapping[str, Any], *, event: str | None = None, probabilities: bool = False
    ) -> Event:
        """Predict for a row whose label comes later; the row waits for it.

        Parameters
        ----------
        name : str
            The stream, whose contract has `[events]`.
        row : dict
            The row, without the target.
        event : str, optional
            The id of the event, for callers that may repeat this call: it is opened once. By default a random one.
        probabilities : bool
            Whether probabilities of classes are asked for.
        """
        self._check_names(name, [str(column) for column in row], labelled=False)
        content = {"row": dict(row), "event": secrets.token_hex(16) if event is None else event}
        query = {"probabilities": "true"} if probabilities else {}
        made = self._json("POST", f"{_path(name)}/events", _body(content), _JSON, query=query)
        return Event(**{field: made[field] for field in Event._fields if field in made})

    def label(self, name: str, event: str | Event, label: Any) -> int:
        """Give the label of an event, by its id or as `open` returned it; it is learnt once, after its wait.

        Returns the round of the event.
        """
        number: int = self._json("PUT", _event(name, event, "label"), _body({"label": label}), _JSON)["round"]
        return number

    def reward(self, name: str, event: str | Decision, value: float) -> int:
        """Give the reward of a decision, by its id or as `rank` returned it; it is learnt once, after its wait.

        Returns the round of the decision.
        """
        content = _body({"value": _reward(value)})
        number: int = self._json("PUT", _event(name, event, "reward"), content, _JSON)["round"]
        return number

    def rank(
        self,
        name: str,
        context: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        actions: Iterable[Mapping[str, Any] | str] | None = None,
        *,
        excluded: Iterable[str] = (),
        event: str | None = None,
        learn: bool = True,
    ) -> Decision:
        """Choose one of several actions for a visitor; `reward` tells later how good it was.

        Parameters
        ----------
        name : str
            The stream, whose contract has `[bandit]`.
        context : dict, or list of dict
            Values of the visitor's columns, and the id of the user, if the contract has `privacy.user`.
        actions : iterable of dict or str, optional
            The actions to choose among: names, or `{"id": ..., "features": {...}}`. By default all of the contract.
        excluded : iterable of str
            Actions that must not be chosen.
        event : str, optional
            As in `open`.
        learn : bool
            Whether the decision has a round, and waits for its reward. Without it nothing is stored: that is how
            actions are chosen after the end of the stream, by its last models.
        """
        if not learn and event is not None:
            raise InvalidInput("a decision without learning is not stored, and has no event. Leave event out.")
        if isinstance(excluded, str) or isinstance(actions, str):
            raise InvalidInput("actions and excluded are lists of names. Put a single name in brackets.")
        given = None if actions is None else [{"id": each} if isinstance(each, str) else dict(each) for each in actions]
        content: dict[str, Any] = {
            "contextFeatures": dict(context) if isinstance(context, Mapping) else [dict(part) for part in context],
            "actions": given,
            "excludedActions": list(excluded),
        }
        content |= {"eventId": secrets.token_hex(16) if event is None else event} if learn else {"learn": False}
        made = self._json("POST", f"{_path(name)}/rank", _body(content), _JSON)
        ranking = [(each["id"], each["probability"]) for each in made["ranking"]]
        return Decision(made["eventId"], made["round"], made["due"], made["release"], made["rewardActionId"], ranking)

    # Releases.

    def model(self, name: str, k: int | None = None) -> Model:
        """The latest visible model, which is not sent again while it is the same; or that after the k-th release."""
        path = f"{_path(name)}/models/{'latest' if k is None else integer('k', k)}"
        known = self._models.get(name) if k is None else None
        answer = self._send("GET", path, headers={} if known is None else {"If-None-Match": known[0]})
        if answer.status_code == 304 and known is not None:
            return known[1]
        made = parse_model(json.loads(answer.content.decode("utf-8", "surrogatepass")), "what the service sent")
        if k is None and "etag" in answer.headers:
            self._models[name] = answer.headers["etag"], made
        return made

    def releases(self, name: str, after: int = 0, *, weights: bool = False) -> Iterator[Released]:
        """The visible releases after a number, oldest first; with their weights, if they are asked for."""
        following: int | None = integer("after", after, least=0)
        while following is not None:
            query = {"after": str(following), "limit": str(_PAGE), "weights": "true" if weights else "false"}
            page = self._json("GET", f"{_path(name)}/models", query=query)
            yield from (Released(**each) for each in page["releases"])
            following = page["next"]

    def live(self, name: str, after: int | None = None) -> Iterator[Released]:
        """Releases as they become visible, until the stream is closed; a lost connection is opened again.

        Without `after` it begins with the latest release, or the first if there is none yet.
        """
        seen = None if after is None else integer("after", after, least=0)
        failures = 0
        while True:
            try:
                headers = {"Accept": "text/event-stream"} | ({} if seen is None else {"Last-Event-ID": str(seen)})
                for kind, data in self._events(f"{_path(name)}/live", headers):
                    failures = 0
                    if kind == "closed":
                        return
                    if kind == "release" and (seen is None or data["k"] > seen):
                        seen = data["k"]
                        yield Released(**data)
            except self._errors as error:
                self._check_trust(error)
                failures += 1
                if failures > self.retries:
                    raise self._unreachable() from None
            time.sleep(_pause(failures))

    def _events(self, path: str, headers: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Events until the connection ends."""
        import httpx

        timeout = httpx.Timeout(self._timeout, read=max(self._timeout, 60.0))  # a comment comes every 15 seconds
        with self._http.stream("GET", path, headers=headers, timeout=timeout) as answer:
            if answer.status_code != 200:
                answer.read()
                if answer.status_code in _AGAIN and not _is_lasting(answer):
                    raise httpx.ReadError("busy")
                raise _error(answer)
            kind, parts = "message", []
            for line in answer.iter_lines():
                if line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:"):
                    parts.append(line[5:].removeprefix(" "))
                elif not line and parts:
                    yield kind, json.loads("\n".join(parts))
                    kind, parts = "message", []

    # Ledgers, and the operator's numbers.

    def ledgers(self) -> list[str]:
        """The people who have ledgers in the store."""
        found: list[str] = self._json("GET", "/v1/ledgers")["ledgers"]
        return found

    def ledger(self, population: str) -> dict[str, Any]:
        """What is public about a ledger."""
        return self._json("GET", f"/v1/ledgers/{quote(population, safe='')}")

    def diagnostics(self, name: str) -> dict[str, Any]:
        """NOT PRIVATE: numbers computed from exact rows, for the operator alone."""
        return self._json("GET", f"{_path(name)}/diagnostics")

    # Requests.

    def _json(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        media: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        repeat: bool = True,
    ) -> dict[str, Any]:
        sent = dict(headers or {}) | ({} if media is None else {"Content-Type": media})
        answer = self._send(method, path, body, sent, query, repeat)
        try:
            made = answer.json()
        except ValueError:
            made = None
        if not isinstance(made, dict):
            raise ServiceError("the answer is not that of taciturn serve. Check the address.", answer.status_code)
        return made

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        repeat: bool = True,
    ) -> httpx.Response:
        """The answer of a request, which is sent again while that is safe and may help."""
        attempt = 0
        while True:
            wait = None
            try:
                answer = self._http.request(method, path, content=body, headers=headers, params=query)
                if answer.status_code in (200, 201, 304):
                    return answer
                # 429 and 503 are answers of a service that has not begun; others may come from a proxy in between.
                again = answer.status_code in ((429, 503) if not repeat else _AGAIN)
                if not again or attempt >= self.retries or _is_lasting(answer):
                    raise _error(answer)
                wait = _retry_after(answer.headers.get("retry-after"))
            except self._errors as error:
                self._check_trust(error)
                if attempt >= self.retries or not (repeat or isinstance(error, self._not_sent)):
                    raise self._unreachable() from None
            attempt += 1
            time.sleep(max(_pause(attempt), 0.0 if wait is None else wait))

    def _check_trust(self, error: BaseException | None) -> None:
        """Reject a service whose certificate is not trusted: another attempt would not help."""
        while error is not None:
            if isinstance(error, ssl.SSLCertVerificationError):
                why = error.verify_message.rstrip(".")
                raise ServiceError(
                    f"the certificate of {self._http.base_url} is not trusted: {why}. Check the "
                    "address; for a certificate of your own, pass its file as certificate=."
                ) from None
            error = error.__cause__ or error.__context__

    def _unreachable(self) -> ServiceError:
        return ServiceError(f"{self._http.base_url} did not answer. Check the address, and that the service runs.")


def _trusting(path: Path) -> ssl.SSLContext:
    """Trust one authority alone."""
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # of which errors of SSL are a kind
        why = "it is not a certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise InvalidInput(f"{path} cannot be read: {why}. Pass the file that the service was started with.") from None


def _path(name: str) -> str:
    return f"/v1/streams/{quote(name, safe='')}"


def _event(name: str, event: str | Event | Decision, what: str) -> str:
    known = event if isinstance(event, str) else event.event
    if known is None:
        raise InvalidInput("a decision of learn=False has no event, and takes no reward. Leave it out.")
    return f"{_path(name)}/events/{quote(known, safe='')}/{what}"


def _reward(value: Any) -> float:
    """A finite number; the error does not quote what is none."""
    try:
        return finite("value", value)
    except InvalidInput:
        raise InvalidInput("a reward is a finite number. Send no reward if there is none.") from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}. Pass the contract's file, or a dict.") from None
    except ValueError:
        raise InvalidInput(f"{path} is not valid TOML. Put texts in quotes and lists in brackets.") from None


def _body(content: Any) -> bytes:
    try:
        return json.dumps(content, allow_nan=True, default=_plain).encode()
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("rows are dicts of numbers, texts, booleans, dates and None. Convert the rest.") from None


def _plain(value: Any) -> Any:
    """Numbers and dates of NumPy and pandas as JSON has them; NaT and NA of pandas, which are missing, are null."""
    if type(value).__module__.startswith("pandas.") and type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(type(value).__name__)


class _Names(NamedTuple):
    """The names in a contract: of the columns that are read, of the target, of the ids, and of the rest."""

    columns: list[str]
    target: str
    user: str | None
    ignored: list[str]


class _Part(NamedTuple):
    """The rows of a request: its body and its media type, how many they are, and all of their names."""

    body: bytes
    media: str
    rows: int
    names: Collection[str]


def _requests(rows: Any, batch: int) -> Iterator[_Part]:
    """The requests that hold these rows."""
    kind = type(rows).__module__.partition(".")[0]
    if kind == "pandas":
        rows, kind = _table(rows), "pyarrow"
    if kind == "pyarrow":
        pa = _arrow()
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        if not isinstance(table, pa.Table):
            raise _not_rows(rows)
        for start in range(0, table.num_rows, batch):
            sink, part = pa.BufferOutputStream(), table.slice(start, batch)
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(part)
            yield _Part(sink.getvalue().to_pybytes(), _ARROW, part.num_rows, table.column_names)
        return
    if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
        raise _not_rows(rows)
    left = iter(rows)
    while part := list(islice(left, batch)):
        names = dict.fromkeys(chain.from_iterable(row for row in part if isinstance(row, Mapping)))
        yield _Part(_body({"rows": part}), _JSON, len(part), [str(name) for name in names])


def _table(frame: Any) -> Any:
    """A DataFrame as an Arrow table; errors name the column, and quote no value."""
    pa = _arrow()
    if not hasattr(frame, "columns"):
        raise _not_rows(frame)
    if not frame.columns.is_unique:
        raise InvalidInput("two columns of the table have the same name. Rename or drop one of them.")
    failures = (pa.ArrowException, TypeError, ValueError, OverflowError)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except failures:
        pass
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except failures:
            raise InvalidInput(
                f"column {name} has values of several kinds, or of one that is not read. Send numbers, texts, booleans "
                "or dates, one of them in each column."
            ) from None
    raise InvalidInput("the table cannot be written as Arrow. Send it as a list of dicts.")


def _not_rows(rows: Any) -> InvalidInput:
    return InvalidInput(f"rows are a list of dicts, a DataFrame or an Arrow table, got {type(rows).__name__}.")


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:  # pragma: no cover
        raise InvalidInput(needs_extra("a table", "data", "pandas, pyarrow")) from None
    return pa


def _error(answer: httpx.Response) -> ServiceError:
    try:
        sentence = str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        sentence = f"the service answered with status {answer.status_code}. Check the address."
    return ServiceError(sentence, answer.status_code)


def _is_lasting(answer: httpx.Response) -> bool:
    """Whether the service says that it cannot answer, and not when it will: another attempt would not help.

    That is a 503 of the service without `Retry-After`. One of a proxy may lack that header as well; it is no object of
    JSON with an `error`.
    """
    if answer.status_code != 503 or "retry-after" in answer.headers:
        return False
    try:
        made = answer.json()
    except ValueError:
        return False
    return isinstance(made, dict) and isinstance(made.get("error"), str) and made.keys() <= {"error", "id"}


def _retry_after(text: str | None) -> float | None:
    """Seconds of a `Retry-After` header, a number or a date, at most a minute.

    >>> _retry_after("3"), _retry_after("3600"), _retry_after("soon"), _retry_after(None)
    (3.0, 60.0, None, None)
    """
    if text is None:
        return None
    try:
        seconds = float(text) if text.strip().isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
    return min(max(seconds, 0.0), 60.0)


def _pause(attempt: int) -> float:
    """Seconds before an attempt: doubled each time, with a random half, so that clients do not come back together."""
    whole = min(_FIRST_PAUSE * 2.0 ** max(attempt - 1, 0), _LONGEST_PAUSE)
    return whole * (0.5 + secrets.randbelow(1024) / 2048.0)
