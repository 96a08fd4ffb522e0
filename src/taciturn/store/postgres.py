"""PostgreSQL: one server for several machines and teams.

Passwords do not belong in an address that is printed, stored or pickled: they come from `PGPASSFILE`, a service file or
the environment, as in every client of PostgreSQL. The tables are in the schema `taciturn` of the database.

**Durability.** Every connection sets `synchronous_commit=on` and reads it back; a server with `fsync=off` or
`full_page_writes=off` can lose commits, or more, in a power cut, and is rejected. An asynchronous standby may lack the
last commits: if it takes over, rounds are released twice, so a server with one gives a warning. A witness notices it.

**Transactions** that write are READ COMMITTED, with locks on the rows that decide: what a transaction reads by
`/*lock*/` is the newest committed row, and stays so until it ends. Those that only read see one snapshot (REPEATABLE
READ): a release, and the place of its stream that is compared with the witness, are of one moment. A compare-and-set is
one UPDATE with the old values in its condition, which PostgreSQL evaluates on the newest row, under its lock. A lock is
waited for, for up to `WAIT` seconds.

**A server that does not answer.** It cancels statements by itself (`STATEMENT_S`). If it is stopped, or the network
lost, a connection is given up when nothing has come for `SILENCE_S` seconds, when the other side has not acknowledged
what was sent for `UNACKNOWLEDGED_S`, or when it is gone while nothing is sent (TCP's keepalives).
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import warnings
from collections.abc import Generator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from taciturn.errors import InvalidInput, StoreUnavailable, needs_extra
from taciturn.store import database
from taciturn.store.database import Row, Transaction, same_process, unavailable

CONNECT_S = 5
"""Seconds for which a server is waited for when a connection is made, at each of the hosts of an address."""

STATEMENT_S = 60
"""Seconds after which the server cancels a statement."""

SILENCE_S = 65
"""Seconds without any answer to a statement after which a connection is given up."""

UNACKNOWLEDGED_S = 10
"""Seconds for which what was sent may be without an acknowledgement of TCP, or a connection without a sign of life."""

_TCP = {
    "connect_timeout": CONNECT_S,
    "tcp_user_timeout": 1_000 * UNACKNOWLEDGED_S,
    "keepalives_idle": UNACKNOWLEDGED_S // 2,
    "keepalives_interval": 1,
    "keepalives_count": UNACKNOWLEDGED_S // 2,
}  # unless the address says otherwise


class StandbyWarning(UserWarning):
    """A standby server may lack the last commits, and would release rounds a second time if it took over."""


class _PostgresTransaction:
    """An open transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._process = os.getpid()

    def rows(self, sql: str, *values: Any) -> list[Row]:
        same_process(self._process)
        return list(self._connection.execute(_translated(sql), values).fetchall())

    def execute(self, sql: str, *values: Any) -> int:
        same_process(self._process)
        return int(self._connection.execute(_translated(sql), values).rowcount)


def _translated(sql: str) -> str:
    return sql.replace("?", "%s").replace("/*lock*/", "FOR UPDATE")


@cache
def _connection_type() -> Any:
    """Connections that are given up if the server is silent."""
    import psycopg

    class Connection(psycopg.Connection[Any]):
        patience = float(CONNECT_S)
        silent = False

        def wait(self, gen: Any, *arguments: Any, **settings: Any) -> Any:
            try:
                return super().wait(_heard(gen, self.patience), *arguments, **settings)
            except TimeoutError:
                self.silent = True
                self.close()  # else it would wait once more, to roll back
                raise psycopg.OperationalError(f"the server was silent for {self.patience:g} seconds") from None

    return Connection


def _heard(waiting: Generator[Any, Any, Any], patience: float) -> Generator[Any, Any, Any]:
    """A generator of psycopg, which gets 0 every tenth of a second in which nothing has come; an error after some."""
    until = time.monotonic() + patience
    state = next(waiting)
    while True:
        ready = yield state
        if ready:
            until = time.monotonic() + patience
        elif time.monotonic() > until:
            raise TimeoutError
        try:
            state = waiting.send(ready)
        except StopIteration as end:
            return end.value


def _socket_of(connection: Any) -> socket.socket:
    """The socket of a connection, as a second one that may be closed."""
    return socket.socket(fileno=os.dup(connection.fileno()))


class Postgres:
    """A PostgreSQL database as a `Backend`."""

    inherits_locks = False
    one_writer = False

    def __init__(self, secret_address: str, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise InvalidInput(needs_extra("PostgreSQL", "postgres", "psycopg")) from None
        self._psycopg = psycopg
        self._secret_address = secret_address
        self.address = address
        self._checked = False

    def connect(self) -> Any:
        options = (
            f"-c lock_timeout={database.WAIT * 1000:.0f} -c statement_timeout={STATEMENT_S * 1000} "
            "-c synchronous_commit=on -c search_path=taciturn,pg_catalog "
            r"-c default_transaction_isolation=read\ committed"
        )
        stated = self._psycopg.conninfo.conninfo_to_dict(self._secret_address)
        settings = {name: value for name, value in _TCP.items() if name not in stated}
        connection = _connection_type().connect(self._secret_address, autocommit=True, options=options, **settings)
        try:
            self._check_durable(connection)
        except BaseException:
            connection.close()
            raise
        connection.patience = float(SILENCE_S)
        return connection

    def _check_durable(self, connection: Any) -> None:
        for name in ("synchronous_commit", "fsync", "full_page_writes"):
            (value,) = connection.execute(f"SHOW {name}").fetchone()
            if value != "on":
                raise StoreUnavailable(
                    f"{self.address}: the server has {name}={value}, so that a power cut could take commits back. Set "
                    f"{name}=on in postgresql.conf, and restart the server."
                )
        if self._checked:
            return
        self._checked = True
        with contextlib.suppress(self._psycopg.Error):  # not everyone may see it
            (standbys,) = connection.execute(
                "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async'"
            ).fetchone()
            if standbys:
                warnings.warn(
                    f"{self.address} has {standbys} asynchronous standby: if it takes over, the last commits may be "
                    "lost, and their rounds released again. Make it synchronous, or use a witness.",
                    StandbyWarning,
                    stacklevel=2,
                )

    def begin(self, connection: Any, write: bool) -> Transaction:
        connection.execute("BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ", prepare=False)
        return _PostgresTransaction(connection)

    def has_ended(self, connection: Any) -> bool:
        return bool(connection.closed) and not connection.silent  # another connection would be waited for as long

    def cut(self, connection: Any) -> None:
        with (
            contextlib.suppress(OSError, self._psycopg.Error),
            socket.socket(fileno=os.dup(connection.fileno())) as end,
        ):
            end.shutdown(socket.SHUT_RDWR)

    def commit(self, connection: Any) -> None:
        connection.commit()

    def rollback(self, connection: Any) -> None:
        connection.rollback()

    def close(self, connection: Any) -> None:
        connection.close()

    def explained(self, error: Exception) -> Exception | None:
        if not isinstance(error, self._psycopg.Error):
            return None
        if isinstance(error, self._psycopg.errors.LockNotAvailable):
            return StoreUnavailable(
                f"{self.address} was locked by another transaction for {database.WAIT:g} seconds. Nothing was "
                "committed; try again."
            )
        if isinstance(error, self._psycopg.errors.InsufficientPrivilege):
            return InvalidInput(
                f"{self.address}: {error.diag.message_primary}. Grant this user USAGE and CREATE on schema taciturn."
            )
        return unavailable(self.address, error)

    def exists(self) -> bool:
        with self._used() as connection:
            return bool(connection.execute("SELECT to_regclass('taciturn.schema_version')").fetchone()[0])

    def create(self) -> None:
        with self._used() as connection:
            self.begin(connection, write=True)
            connection.execute("SELECT pg_advisory_xact_lock(7461636974)")  # two that create at once take turns
            connection.execute("CREATE SCHEMA IF NOT EXISTS taciturn")
            connection.execute("CREATE TABLE IF NOT EXISTS taciturn.schema_version (version BIGINT NOT NULL)")
            connection.execute(
                "INSERT INTO taciturn.schema_version SELECT 0 WHERE NOT EXISTS (SELECT * FROM taciturn.schema_version)"
            )
            connection.commit()

    @contextlib.contextmanager
    def _used(self) -> Any:
        try:
            with contextlib.closing(self.connect()) as connection:
                yield connection
        except self._psycopg.Error as error:
            told = self.explained(error)
            raise (told or error) from error

    def identity(self, transaction: Transaction) -> str:
        [(system, timeline, oid)] = transaction.rows(
            "SELECT (SELECT system_identifier FROM pg_control_system()), "
            "CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint()) "
            "ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END, "  # known at once
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return f"server {system}, timeline {timeline}, database {oid}"

    def storage(self, transaction: Transaction) -> str:
        [(system,)] = transaction.rows("SELECT system_identifier FROM pg_control_system()")
        return f"PostgreSQL server (system {system})"

    def clock(self, transaction: Transaction) -> datetime:
        [(now,)] = transaction.rows("SELECT clock_timestamp()")  # and not now(), when the transaction began
        return now  # type: ignore[no-any-return]

    def lock_all(self, transaction: Transaction) -> None:
        transaction.execute("LOCK TABLE place IN ACCESS EXCLUSIVE MODE")  # every reader of it has a lock until it ends

    def backup(self, connection: Any, to: Path) -> None:
        raise InvalidInput("a backup of PostgreSQL is made by pg_dump or pg_basebackup. Use one of them.")
