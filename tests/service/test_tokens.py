"""Tokens: who may do what, until when, and that nothing but their hashes is stored."""

import asyncio
import contextlib
import hashlib
import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import InvalidInput
from taciturn.service.clock import TickClock
from taciturn.service.tokens import (
    LOOK_UPS,
    SCOPES,
    SESSIONS,
    Token,
    Tokens,
    csrf_matches,
    csrf_token,
    session_cookie,
    session_of,
)
from taciturn.store.database import Database


@pytest.fixture
def tokens(tmp_path):
    return Tokens(Database(tmp_path / "streams.db", create=True))


def test_a_token_is_256_random_bits_of_which_a_hash_is_stored(tokens, tmp_path):
    made = [tokens.create(["read"]) for _ in range(20)]
    secrets = {secret for _, secret in made}
    assert len(secrets) == len({token.id for token, _ in made}) == 20
    assert all(len(secret.removeprefix("taciturn_")) == 43 for secret in secrets)
    content = (tmp_path / "streams.db").read_bytes()
    assert not any(secret.encode() in content for secret in secrets)
    assert all(hashlib.sha256(secret.encode()).digest() in content for secret in secrets)


def test_a_token_ends(tokens):
    short, secret = tokens.create(["read"], seconds=-0.001)
    assert tokens.check(secret) is None
    assert [token.id for token in tokens.list()] == [short.id]
    token, secret = tokens.create(["read"])
    assert tokens.check(secret) == token
    tokens.revoke(token.id)
    tokens.revoke(token.id)
    assert tokens.check(secret) is None
    with pytest.raises(InvalidInput, match="there is no token"):
        tokens.revoke("none")


def test_another_process_notices_at_its_next_look(tokens, tmp_path):
    other = Tokens(Database(tmp_path / "streams.db"))
    token, secret = tokens.create(["read"])
    assert other.check(secret) is None
    other.refresh()
    assert other.check(secret) == token
    tokens.revoke(token.id)
    other.refresh()
    assert other.check(secret) is None


class Watched:
    """A transaction that notes how many rows it reads."""

    def __init__(self, now, read):
        self.execute, self._rows, self._read = now.execute, now.rows, read

    def rows(self, *query):
        found = self._rows(*query)
        self._read.append(len(found))
        return found


@pytest.fixture
def read(tokens, monkeypatch):
    """How many rows each query of the tokens has read."""
    transaction, read = tokens.database.transaction, []

    @contextlib.contextmanager
    def watched(write=True):
        with transaction(write=write) as now:
            yield Watched(now, read)

    monkeypatch.setattr(tokens.database, "transaction", watched)
    return read


def found(tokens, *secrets):
    """What becomes of secrets that are shown at the same time."""

    async def look():
        return await asyncio.gather(*(tokens.find(secret, asyncio.to_thread) for secret in secrets))

    return asyncio.run(look())


def test_a_new_token_of_another_process_is_found_when_it_is_first_shown(tokens, tmp_path, read):
    """Also by requests that come at once, and with a session whose parent is as new; what was revoked is not found."""
    other = Tokens(Database(tmp_path / "streams.db"))
    token, secret = other.create(["read"])
    assert found(tokens, secret, secret, secret) == [token] * 3
    assert read == [1], "they share one look"
    _, secret = other.create(["read"])
    session, cookie = other.open_session(secret)
    assert found(tokens, cookie) == [session]
    revoked, secret = other.create(["read"])
    other.revoke(revoked.id)
    assert found(tokens, secret) == [None]


def test_guesses_do_not_load_the_store(tokens, read):
    guesses = [f"taciturn_{number}" for number in range(10 * LOOK_UPS)]
    assert found(tokens, *guesses, *guesses) == [None] * 20 * LOOK_UPS
    assert len(read) == LOOK_UPS
    assert found(tokens, "", "guess", "bearer") == [None] * 3
    assert len(read) == LOOK_UPS
    tokens.refresh()
    assert found(tokens, *guesses[:2]) == [None] * 2
    assert len(read) == LOOK_UPS + 1 + 2, "after the table was read, they are looked for again"


def test_a_revoked_token_does_not_come_back_with_what_was_read_before(server, monkeypatch):
    """A tick that has read the table is overtaken by a revocation, and must not put back what it read."""
    tokens = Tokens(Database(server.new_database(), create=True))
    token, secret = tokens.create(["read"])
    transaction = tokens.database.transaction
    revoking = threading.Thread(target=tokens.revoke, args=(token.id,))

    class Overtaken:
        def __init__(self, now):
            self.execute, self.read = now.execute, now.rows

        def rows(self, *query):
            found = self.read(*query)
            if threading.current_thread() is not revoking:
                revoking.start()
                revoking.join(0.5)
            return found

    @contextlib.contextmanager
    def overtaken(write=True):
        with transaction(write=write) as now:
            yield Overtaken(now)

    monkeypatch.setattr(tokens.database, "transaction", overtaken)
    tokens.refresh()
    revoking.join()
    assert tokens.check(secret) is None


@pytest.mark.parametrize("scopes", [[], ["all"], ["read", "write"]])
def test_unknown_scopes_are_rejected(tokens, scopes):
    with pytest.raises(InvalidInput, match="scope"):
        tokens.create(scopes)
    assert tokens.list() == []


@given(st.sets(st.sampled_from(SCOPES)), st.sampled_from(SCOPES), st.sampled_from([None, "a"]), st.sampled_from("ab"))
def test_a_token_allows_its_scopes_on_its_stream(scopes, scope, of, stream):
    token = Token("id", frozenset(scopes), of, "", None, 0, None, None)
    assert token.allows(scope, stream) == ((scope in scopes or "admin" in scopes) and of in (None, stream))
    assert token.allows(scope) == ((scope in scopes or "admin" in scopes) and of is None)


def test_a_session_lives_as_long_as_its_token(tokens):
    token, secret = tokens.create(["read"], stream="clicks", seconds=60.0)
    session, cookie = tokens.open_session(secret)
    assert (session.scopes, session.stream, session.parent) == (token.scopes, "clicks", token.id)
    assert session.expires <= token.expires
    assert tokens.check(cookie) == session
    assert tokens.open_session(cookie) is None, "a session opens no other"
    assert tokens.open_session("taciturn_guess") is None
    assert session.id not in [each.id for each in tokens.list()]
    tokens.revoke(token.id)
    assert tokens.check(cookie) is None


def test_a_session_ends_by_itself(tokens):
    session, cookie = tokens.open_session(tokens.create(["read"])[1])
    assert session.expires - session.created == 3_600_000
    tokens.revoke(session.id)
    assert tokens.check(cookie) is None


def test_a_token_has_few_sessions(tokens, read, monkeypatch):
    """One more ends the oldest, what has ended is deleted, and no login reads the tokens and sessions of others."""
    monkeypatch.setattr(TickClock, "now", itertools.count(TickClock.now()).__next__)
    others = [tokens.create(["read"])[1] for _ in range(50)]
    tokens.open_session(others[0])
    secret = tokens.create(["read"])[1]
    cookies = [tokens.open_session(secret)[1] for _ in range(3 * SESSIONS)]
    assert read == []
    assert all(tokens.check(cookie) for cookie in cookies[-SESSIONS:])
    tokens.refresh()
    assert read == [len(others) + 1 + 1 + SESSIONS]
    assert [tokens.check(cookie) is None for cookie in cookies] == [True] * 2 * SESSIONS + [False] * SESSIONS
    tokens.revoke(tokens.check(cookies[-1]).id)
    cookies.append(tokens.open_session(secret)[1])
    assert all(tokens.check(cookie) for cookie in [*cookies[-SESSIONS:-2], cookies[-1]])


def test_cookies_are_for_this_site_and_not_for_scripts():
    cookie = session_cookie("secret", secure=True)
    assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Secure" not in session_cookie("secret", secure=False)
    assert "Max-Age=0" in session_cookie("", secure=False)
    assert session_of(session_cookie("secret", secure=True)) == "secret"


@given(st.text(), st.text())
def test_forms_of_another_session_are_rejected(one, two):
    assert csrf_matches(one, csrf_token(one))
    assert csrf_matches(one, csrf_token(two)) == (one == two)
    assert not csrf_matches(one, "")


@given(st.text())
def test_any_cookie_is_read(text):
    assert session_of(text) is None or "taciturn_session=" in text


def test_a_guess_is_no_token(tokens):
    _, secret = tokens.create(["admin"])
    for guess in ("", secret[:-1], secret + "=", secret.upper(), f" {secret}", "\ud800", "taciturn_" + "A" * 43):
        assert tokens.check(guess) is None
