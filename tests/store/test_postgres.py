"""PostgreSQL: servers that can lose commits are rejected, standbys warned of, errors explained."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from types import SimpleNamespace

import pytest

from cut_connections import Hanging
from postgres_server import throwaway_server
from taciturn import InvalidInput, Ledger, Privacy
from taciturn.errors import StoreUnavailable
from taciturn.store import Store
from taciturn.store import postgres as postgres_backend
from taciturn.store.database import Database
from taciturn.store.postgres import Postgres, StandbyWarning

BUDGET = Privacy(1.0, 1e-6)


@pytest.mark.privacy
@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_can_lose_commits_is_rejected(name, throwaway):
    import psycopg

    with psycopg.connect(throwaway, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")
    try:
        with pytest.raises(StoreUnavailable, match=f"{name}=off, so that a power cut"):
            eventually_rejected(throwaway)
    finally:
        with psycopg.connect(throwaway, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM RESET {name}")
            connection.execute("SELECT pg_reload_conf()")


def eventually_rejected(address):
    """The server reads its configuration again a moment later."""
    for _ in range(50):
        Database(address, create=True)
        time.sleep(0.1)


@pytest.fixture(scope="module")
def throwaway():
    with throwaway_server() as server:
        yield server.address


@pytest.mark.privacy
def test_commits_are_synchronous_whatever_the_database_says(postgres):
    """Its own setting wins over that of the database or the address."""
    address = postgres()
    backend = Postgres(address + "&options=-c%20synchronous_commit%3Doff", address)
    connection = backend.connect()
    assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    connection.close()


class Answers:
    """A connection of a server with standbys."""

    def __init__(self, standbys):
        self.standbys = standbys

    def execute(self, sql):
        return SimpleNamespace(fetchone=lambda: (self.standbys,) if "pg_stat_replication" in sql else ("on",))


def test_an_asynchronous_standby_is_warned_of_once(postgres):
    backend = Postgres(postgres(), "an address")
    with pytest.warns(StandbyWarning, match="an address has 2 asynchronous standby"):
        backend._check_durable(Answers(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backend._check_durable(Answers(2))
        Postgres(postgres(), "an address")._check_durable(Answers(0))


def test_a_server_that_is_away_is_told_so():
    with pytest.raises(StoreUnavailable, match=r"postgresql://localhost:1/budget: .*try again later"):
        Ledger("postgresql://localhost:1/budget")


def test_a_user_without_rights_is_told_which(postgres):
    import psycopg

    address = postgres()
    Ledger.create(address, BUDGET)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS taciturn_reader")
        connection.execute("CREATE ROLE taciturn_reader LOGIN PASSWORD 'x'")
        try:
            other = address.replace("postgres:@", "taciturn_reader:x@", 1)
            if other == address:
                pytest.skip("the address names a user of its own")
            with pytest.raises(InvalidInput, match="Grant this user USAGE"):
                Ledger(other)
        finally:
            connection.execute("DROP ROLE taciturn_reader")


def ended_connections(address):
    """Let the server end all connections, as at a failover."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_connections_that_end_while_they_are_idle_are_replaced(postgres):
    """All at once, and by the first call that takes one: none fails."""
    address = postgres()
    home = Database(address, create=True)
    with contextlib.ExitStack() as many:
        for _ in range(5):
            many.enter_context(home.transaction(write=False))
    ended_connections(address)
    for _ in range(3):
        with home.transaction() as now:
            assert now.execute("UPDATE schema_version SET version = version") == 1


def test_a_connection_that_ends_within_a_transaction_is_an_error(postgres):
    """It is not repeated: what it has read may have changed. The next one has another connection."""
    address = postgres()
    home = Database(address, create=True)

    def use():
        with home.transaction() as now:
            now.rows("SELECT version FROM schema_version")
            ended_connections(address)
            now.execute("UPDATE schema_version SET version = 0")

    with pytest.raises(StoreUnavailable, match="terminat"):
        use()
    with home.transaction(write=False) as now:
        assert now.rows("SELECT version FROM schema_version") != [(0,)]


def test_a_server_that_ends_every_connection_is_an_error(postgres, monkeypatch):
    """A transaction begins on one other connection, and not on ever more."""
    home = Database(postgres(), create=True)
    begun = []

    def begin(connection, write):
        begun.append(connection)
        connection.close()
        raise psycopg.OperationalError("the connection is lost")

    import psycopg

    monkeypatch.setattr(home.backend, "begin", begin)
    with pytest.raises(StoreUnavailable, match="is lost"), home.transaction():
        pass
    assert len(begun) == 2


def test_a_server_that_is_silent_is_given_up(postgres, monkeypatch):
    """It is stopped: its connections stay open, and nothing is answered."""
    monkeypatch.setattr(postgres_backend, "SILENCE_S", 0.5)
    with Hanging(postgres()) as proxy:
        home = Database(proxy.address, create=True)
        with home.transaction(write=False):
            pass
        proxy.hang()
        with pytest.raises(StoreUnavailable, match=r"silent for 0\.5 seconds"), home.transaction(write=False):
            pass


def test_a_process_that_ends_waits_for_no_answer(postgres):
    with Hanging(postgres()) as proxy:
        home, errors = Database(proxy.address, create=True), []

        def use():
            try:
                with home.transaction() as now:
                    proxy.hang()
                    now.execute("UPDATE schema_version SET version = version")
            except StoreUnavailable as error:
                errors.append(error)

        used = threading.Thread(target=use)
        used.start()
        used.join(0.2)
        assert used.is_alive()
        home.cut()
        used.join(5.0)
        assert len(errors) == 1
        with pytest.raises(StoreUnavailable, match="this process ends"), home.transaction():
            pass


def test_a_backup_is_made_by_its_own_tools(postgres, tmp_path):
    with pytest.raises(InvalidInput, match="pg_dump"):
        Store(postgres()).backup(tmp_path / "backup")
