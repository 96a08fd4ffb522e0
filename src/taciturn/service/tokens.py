"""Access tokens: 256 random bits each, stored as a hash, with scopes, for one stream or for all, until they expire.

A token is shown once, when it is made. The store has its SHA-256; a fast hash is enough for a secret of 256 random
bits, which cannot be guessed. Tokens are looked up by that hash, in memory: what the time of a look-up tells of the
hash of a guess does not help with the next guess. The table in memory is read again every second, apart from ticks of
the clock, so a token that is revoked by another process is void a second later; one that another process has made is
looked for in the store when it is first shown (`Tokens.find`).

A token may *follow* another: it has the same owner, whose id is the beginning of its own, and so may close the events
that the other has opened. That is how a program gets a new secret while rewards are waited for.

A browser cannot send a token with a navigation or an `EventSource`. It logs in with one, and gets a cookie with a token
of its own, a *session*: short-lived, with the same scopes, and void as soon as its parent is. A token has at most
`SESSIONS` of them. Forms carry a second secret, a keyed hash of the session's, which another site cannot know.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from taciturn.errors import InvalidInput, one_of
from taciturn.service.clock import TickClock
from taciturn.store.database import Database, Row

SCOPES = ("learn", "predict", "read", "operate", "admin")
"""What a token allows: to learn, to predict, to read what is public, to see and do what is the operator's; or all."""

SESSION_SECONDS = 3600
"""How long a browser stays logged in."""

SESSIONS = 20
"""Sessions of a token; one more ends the oldest."""

LOOK_UPS = 20
"""Unknown secrets that are looked for in the store, for each time that the table is read."""

COOKIE = "taciturn_session"
"""Name of the cookie of a session."""

_PREFIX = "taciturn_"
_FOLLOWS = "-"  # in an id, after that of the first token of its owner
_FIELDS = "id, hash, scopes, stream, label, parent, created, expires, revoked"


@dataclass(frozen=True)
class Token:
    """A token, without its secret.

    Attributes
    ----------
    id : str
        Its public name.
    scopes : frozenset of str
        What it allows.
    stream : str, optional
        The only stream that it is for; None for all.
    label : str
        What its owner calls it.
    parent : str, optional
        For a session, the id of the token that it was opened with.
    created, expires, revoked : int, optional
        Milliseconds since the epoch; None for never.
    """

    id: str
    scopes: frozenset[str]
    stream: str | None
    label: str
    parent: str | None
    created: int
    expires: int | None
    revoked: int | None

    @property
    def owner(self) -> str:
        """Whose keys and events those of its requests are: the first of the tokens that followed one another.

        >>> Token("3f-9a1c", frozenset({"learn"}), None, "", None, 0, None, None).owner
        '3f'
        """
        return (self.parent or self.id).partition(_FOLLOWS)[0]

    def allows(self, scope: str, stream: str | None = None) -> bool:
        """Whether it has a scope, for a stream; None is what concerns all of them.

        >>> token = Token("3f", frozenset({"read"}), "clicks", "", None, 0, None, None)
        >>> token.allows("read", "clicks"), token.allows("learn", "clicks"), token.allows("read", "visits")
        (True, False, False)
        """
        return (scope in self.scopes or "admin" in self.scopes) and self.stream in (None, stream)

    def live(self, now: int) -> bool:
        """Whether it has neither expired nor been revoked."""
        return self.revoked is None and (self.expires is None or now < self.expires)


class _Table(NamedTuple):
    """The tokens that were not revoked when the table was read, and those that were made or found since.

    By their secrets it has those that were shown, and what came of looking for those that were unknown.
    """

    by_hash: dict[bytes, Token]
    by_id: dict[str, Token]
    seen: dict[str, Token]
    asked: dict[str, asyncio.Future[Token | None]]


class Tokens:
    """The tokens of a store.

    Parameters
    ----------
    database : Database
        Where they are.
    check_newest : callable
        Raises an error if the database was put back: one that was revoked may be live in a backup. It is called after
        tokens are read and before they are used.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokens = Tokens(Database(f"{folder.name}/streams.db", create=True))
    >>> token, secret = tokens.create(["predict", "read"], stream="clicks", label="the shop")
    >>> tokens.check(secret) == token, tokens.check("taciturn_guess") is None
    (True, True)
    >>> tokens.revoke(token.id)
    >>> tokens.check(secret) is None
    True
    >>> folder.cleanup()
    """

    def __init__(self, database: Database, check_newest: Callable[[], None] = lambda: None) -> None:
        self.database = database
        self._check_newest = check_newest
        self._table = _Table({}, {}, {}, {})
        self._reading = threading.Lock()
        self.refresh()

    def create(
        self,
        scopes: Iterable[str],
        *,
        stream: str | None = None,
        label: str = "",
        seconds: float | None = None,
        parent: Token | None = None,
        owner: str | None = None,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is stored nowhere; `owner` is that of a token that it follows."""
        chosen = frozenset(one_of("scope", scope, SCOPES) for scope in scopes)
        if not chosen:
            raise InvalidInput(f"a token needs a scope. State some of {', '.join(SCOPES)}.")
        now = TickClock.now()
        expires = None if seconds is None else now + round(1000 * seconds)
        secret = _PREFIX + secrets.token_urlsafe(32)
        of = None if parent is None else parent.id
        id = secrets.token_hex(4) if owner is None else f"{owner}{_FOLLOWS}{secrets.token_hex(4)}"
        token = Token(id, chosen, stream, label, of, now, expires, None)
        with self.database.transaction() as database:
            if parent is not None:  # sessions come and go
                database.execute(
                    "DELETE FROM tokens WHERE parent IS NOT NULL AND (expires < ? OR revoked IS NOT NULL)", now
                )
                database.execute(
                    "DELETE FROM tokens WHERE parent = ? AND id NOT IN "
                    "(SELECT id FROM tokens WHERE parent = ? ORDER BY created DESC, id LIMIT ?)",
                    parent.id,
                    parent.id,
                    SESSIONS - 1,
                )
            database.execute(
                f"INSERT INTO tokens ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                token.id,
                _hash(secret),
                " ".join(sorted(chosen)),
                stream,
                label,
                of,
                now,
                expires,
                None,
            )
        with self._reading:  # after this commit: a table that was read before it is there by now
            self._put(_hash(secret), token)
        return token, secret

    def _put(self, hash: bytes, token: Token) -> None:
        self._table.by_hash[hash] = token
        self._table.by_id[token.id] = token

    def follow(self, id: str, *, label: str | None = None, seconds: float | None = None) -> tuple[Token, str]:
        """A new token of the same owner, with the scopes and the stream of this one, which may have ended.

        It closes events that the first has opened, and its requests repeat those of the first.
        """
        found = [token for token in self.list() if token.id == id]
        if not found:
            raise _unknown(id)
        [token] = found
        label = token.label if label is None else label
        return self.create(token.scopes, stream=token.stream, label=label, seconds=seconds, owner=token.owner)

    def knows(self, stream: str) -> bool:
        """Whether there is a stream of this name."""
        with self.database.transaction(write=False) as database:
            return bool(database.rows("SELECT name FROM streams WHERE name = ?", stream))

    def revoke(self, id: str) -> None:
        """Revoke a token, and the sessions that were opened with it."""
        with self.database.transaction() as database:
            changed = database.execute(
                "UPDATE tokens SET revoked = ? WHERE (id = ? OR parent = ?) AND revoked IS NULL",
                TickClock.now(),
                id,
                id,
            )
            known = changed or database.rows("SELECT id FROM tokens WHERE id = ?", id)
        if not known:
            raise _unknown(id)
        self.refresh()

    def list(self) -> list[Token]:
        """All tokens but sessions, the newest first."""
        with self.database.transaction(write=False) as database:
            rows = database.rows(f"SELECT {_FIELDS} FROM tokens WHERE parent IS NULL ORDER BY created DESC, id")
        return [_read(row) for row in rows]

    def refresh(self) -> None:
        """Read the table again: one reader at a time, so that nothing older replaces what another one has read."""
        with self._reading:
            with self.database.transaction(write=False) as database:
                rows = database.rows(f"SELECT {_FIELDS} FROM tokens WHERE revoked IS NULL")
            self._check_newest()
            by_hash = {bytes(row[1]): _read(row) for row in rows}
            self._table = _Table(by_hash, {token.id: token for token in by_hash.values()}, {}, {})

    def check(self, secret: str) -> Token | None:
        """The token with this secret, if it is live; None for any other text."""
        table = self._table
        token = table.seen.get(secret)
        if token is None:
            token = table.by_hash.get(_hash(secret))
            if token is None:
                return None
            table.seen[secret] = token
        if not token.live(now := TickClock.now()):
            return None
        if token.parent is not None:
            parent = table.by_id.get(token.parent)
            if parent is None or not parent.live(now):
                return None
        return token

    async def find(self, secret: str, in_thread: Callable[..., Awaitable[Token | None]]) -> Token | None:
        """The same, in an event loop, also for a token that another process has made since the table was read.

        A secret is looked for once for each time that the table is read, by a function that runs another one in a
        thread, and so are few secrets: guesses do not load the store.
        """
        token = self.check(secret)
        if token is not None or not secret.startswith(_PREFIX):
            return token
        asked = self._table.asked
        if secret not in asked:
            if len(asked) >= LOOK_UPS:
                return None
            asked[secret] = asyncio.ensure_future(in_thread(self._look_up, secret))
        return await asked[secret]

    def _look_up(self, secret: str) -> Token | None:
        with self._reading:
            with self.database.transaction(write=False) as database:
                rows = database.rows(
                    f"SELECT {_FIELDS} FROM tokens WHERE revoked IS NULL "
                    "AND (hash = ? OR id = (SELECT parent FROM tokens WHERE hash = ?))",
                    _hash(secret),
                    _hash(secret),
                )
            if rows:
                self._check_newest()
            for row in rows:
                self._put(bytes(row[1]), _read(row))
        return self.check(secret)

    # Browsers.

    def open_session(self, secret: str) -> tuple[Token, str] | None:
        """A session of a browser that shows a live token, and its secret; None for any other text."""
        token = self.check(secret)
        if token is None or token.parent is not None:
            return None
        left = None if token.expires is None else (token.expires - TickClock.now()) / 1000.0
        seconds = SESSION_SECONDS if left is None else min(SESSION_SECONDS, left)
        return self.create(token.scopes, stream=token.stream, label=token.label, seconds=seconds, parent=token)


def _unknown(id: str) -> InvalidInput:
    return InvalidInput(f"there is no token {id!r}. List them by `taciturn token list`.")


def session_cookie(secret: str, secure: bool) -> str:
    """The `Set-Cookie` header of a session; an empty secret ends it.

    >>> session_cookie("s", secure=True)
    'taciturn_session=s; Path=/; HttpOnly; SameSite=Strict; Max-Age=3600; Secure'
    """
    age = SESSION_SECONDS if secret else 0
    return f"{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{'; Secure' * secure}"


def session_of(cookies: str) -> str | None:
    """The secret in a `Cookie` header; None if there is none, or several.

    >>> session_of("a=b; taciturn_session=s"), session_of("taciturn_session=s; taciturn_session=t")
    ('s', None)
    """
    found = [value for name, _, value in (part.strip().partition("=") for part in cookies.split(";")) if name == COOKIE]
    return found[0] if len(found) == 1 else None


def csrf_token(session: str) -> str:
    """The secret that the forms of a session carry."""
    return hmac.digest(session.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()


def csrf_matches(session: str, given: str) -> bool:
    """Whether a form carries the secret of its session."""
    return hmac.compare_digest(csrf_token(session).encode(), given.encode("utf-8", "surrogatepass"))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _read(row: Row) -> Token:
    id, _, scopes, stream, label, parent, created, expires, revoked = row
    times = (None if each is None else int(each) for each in (expires, revoked))
    return Token(id, frozenset(scopes.split()), stream, label, parent, int(created), *times)
