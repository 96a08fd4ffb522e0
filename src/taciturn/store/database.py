"""A database of ledgers and streams: its address, connections, transactions, schema and identity.

SQL is written once, with `?` for a parameter and `/*lock*/` where PostgreSQL locks rows (`FOR UPDATE`); SQLite locks
the file when a transaction that writes begins. Nothing but this module, `sqlite` and `postgres` knows which one it is.

**Transactions.** A transaction that writes sees the newest committed content of all that it locks, and its changes are
on the disk when `transaction` ends without an error (`sqlite`, `postgres` say why). If COMMIT itself fails, a lost
connection for example, nobody knows the outcome: `OutcomeUnknown` is raised, and the caller reads back in a new
transaction, which waits for the old one to end, instead of trying again.

**Connections** are used by one call at a time. A call takes an idle one or opens another, so threads and a signal
handler within a call have their own. One that has ended while it was idle, at a failover for example, is noticed when a
transaction begins on it: all that were idle are closed, and the transaction begins on a new one. A forked child has
inherited connections that it must neither use nor close: it opens its own, and inherited ones are never freed
(`_abandon`). Every connection must be to the database that the first was to: one that was replaced by a backup while it
was open, or whose standby took over, is rejected, and has to be opened again. They are closed when the database is
freed; one that is kept by a reference cycle, an error's traceback for example, may wait long for a garbage collection,
so a process that opens ever more connections makes one first.

**Forks.** SQLite notes in the memory of the process which locks it holds. A child that is forked during a transaction
would inherit the note without the lock, and read while others write. So a fork waits for the transactions of other
threads to end, and new ones wait for the fork. A child for which that took too long, or that was forked within a
transaction, a signal handler's for example, is rejected.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable, TaciturnError
from taciturn.kernel.stream.state import new_name

Row = tuple[Any, ...]
_Value = TypeVar("_Value")
WAIT = 30.0
"""Seconds for which a transaction waits for another to end."""

WAIT_TO_FORK = 5.0
"""Seconds for which a fork waits for transactions to end."""

FEW = 8
"""Connections that a process opens without a look for some that are no longer used."""


class OutcomeUnknown(StoreUnavailable):
    """COMMIT failed, and whether it took effect is unknown."""


class StoreReplaced(StateConflict):
    """A database that is not the newest copy of itself, or not the one that was opened: nothing of it may be shown."""


class Transaction(Protocol):
    """An open transaction."""

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """All rows of a query."""

    def execute(self, sql: str, *values: Any) -> int:
        """Carry out a statement, and return how many rows it changed."""


class Backend(Protocol):
    """What differs between SQLite and PostgreSQL."""

    address: str
    """Without passwords."""

    inherits_locks: bool
    """Whether a forked child believes that it holds its parent's locks."""

    one_writer: bool
    """Whether a transaction that writes excludes all others that do, and not only those that need the same rows."""

    def connect(self) -> Any:
        """A new connection, set up such that a commit survives a power cut; an error if that cannot be had."""

    def begin(self, connection: Any, write: bool) -> Transaction:
        """Begin a transaction; an error if the connection has ended."""

    def has_ended(self, connection: Any) -> bool:
        """Whether the server has ended a connection, or it was lost, as an error has shown."""

    def cut(self, connection: Any) -> None:
        """Let a call end that another thread waits for."""

    def commit(self, connection: Any) -> None:
        """End it; its changes are on the disk."""

    def rollback(self, connection: Any) -> None:
        """End it without changes."""

    def close(self, connection: Any) -> None:
        """Close a connection."""

    def explained(self, error: Exception) -> Exception | None:
        """The error of this package that tells what a database's error means; None if it is not one."""

    def exists(self) -> bool:
        """Whether there is a database of this package."""

    def create(self) -> None:
        """Make a table `schema_version` with a row of 0, if there is none."""

    def identity(self, transaction: Transaction) -> str:
        """Where the database is: it changes when a file is copied, or a server restored."""

    def storage(self, transaction: Transaction) -> str:
        """What holds the database, and is restored as a whole: a disk or a server, with its number."""

    def clock(self, transaction: Transaction) -> datetime:
        """The present time, by the one clock that all users of the database share."""

    def lock_all(self, transaction: Transaction) -> None:
        """Wait for all transactions that have read `place` to end, and let no other read it before this one ends."""

    def backup(self, connection: Any, to: Path) -> None:
        """Write a consistent copy."""


class Database:
    """A database by its address, opened; see the module.

    Parameters
    ----------
    address : str or path
        A SQLite file, or `postgresql://user@host/name`.
    create : bool
        Make the tables if there are none.

    Attributes
    ----------
    witness : str, optional
        The id of the witness that this process has opened with the database, "" without one: every transaction that
        writes is rejected if the database has another one by then. None while nothing was opened
        (`taciturn.store.witness`).
    """

    def __init__(self, address: str | os.PathLike[str], create: bool = False) -> None:
        self.backend = backend_of(address)
        self._idle: dict[int, list[Any]] = {}
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()  # weak as `_OPEN` is
        self._ending = False
        weakref.finalize(self, _close_all, self._idle, self.backend)
        self._identity: str | None = None
        self.witness: str | None = None
        with self._errors_explained(), _no_fork(self.backend):
            exists = self.backend.exists()
            if create and not exists:
                self.backend.create()
        if not exists and not create:
            raise InvalidInput(
                f"there is no database of taciturn at {self.address}. Create a ledger there by Ledger.create(…) or "
                "`taciturn budget create`, or check the address."
            )
        self._migrate()

    @property
    def address(self) -> str:
        """Where it is, without passwords."""
        return self.backend.address

    @contextlib.contextmanager
    def transaction(self, write: bool = True, changes: bool = True) -> Iterator[Transaction]:
        """A transaction that is committed at the end of the block, and rolled back if the block raises an error.

        One without `changes` has the locks of one that writes, and is rolled back in any case: SQLite's COMMIT waits
        for readers to end even if there is nothing to commit.
        """
        process = os.getpid()
        with self._errors_explained(), _no_fork(self.backend):
            connection = self._take()
            committing = False
            try:
                try:
                    begun = self.backend.begin(connection, write)
                except Exception:
                    if not self.backend.has_ended(connection):
                        raise
                    self._close(connection)
                    self.close()  # what else was idle has ended, too
                    connection = self._connected()
                    begun = self.backend.begin(connection, write)
                if write:
                    self.must_have_the_witness(begun)
                yield begun
                same_process(process)
                committing = write and changes
                (self.backend.commit if changes else self.backend.rollback)(connection)
            except TaciturnError:  # a check that failed: the connection is as good as before
                if os.getpid() == process:
                    self._roll_back(connection)
                raise
            except Exception as error:
                if os.getpid() == process:
                    self._discard(connection)
                if not committing:
                    raise
                raise OutcomeUnknown(
                    f"{self.address}: whether the last change was committed is unknown ({_one_line(error)}). Look at "
                    "its content before you repeat it."
                ) from error
            except BaseException:  # an interruption: the caller finds out by reading
                if os.getpid() == process:
                    self._discard(connection)
                raise
            self._put_back(connection)

    @contextlib.contextmanager
    def reading_back(self, unknown: OutcomeUnknown) -> Iterator[Transaction]:
        """A transaction that finds out whether another was committed; if that fails, the outcome stays unknown."""
        try:
            with self.transaction(changes=False) as now:
                yield now
        except StoreUnavailable:
            raise unknown from None

    @contextlib.contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            told = self.backend.explained(error)
            if told is None:
                raise
            raise told from error

    def _take(self) -> Any:
        """An idle connection, or a new one."""
        try:
            connection = self._idle.setdefault(os.getpid(), []).pop()
        except IndexError:
            return self._connected()
        self._used.add(connection)
        return connection

    def _put_back(self, connection: Any) -> None:
        self._used.discard(connection)
        self._idle.setdefault(os.getpid(), []).append(connection)

    def _connected(self) -> Any:
        """A new connection."""
        self._must_go_on()
        _free_unused()
        connection = self.backend.connect()
        _OPEN.add(connection)
        self._used.add(connection)
        try:
            self._must_go_on()
            self._must_be_the_same(connection)
        except BaseException:
            self._discard(connection)
            raise
        return connection

    def _must_go_on(self) -> None:
        if self._ending:
            raise StoreUnavailable(f"{self.address} is not used any more: this process ends.")

    def _must_be_the_same(self, connection: Any) -> None:
        """Reject a connection to another database than the first was to."""
        identity = self.backend.identity(self.backend.begin(connection, write=False))
        self.backend.commit(connection)
        self._identity = self._identity or identity
        if identity != self._identity:
            raise StoreReplaced(
                f"{self.address} is not the database that was opened, but {identity}: it was moved, replaced or "
                "restored while it was in use. Open it again, which checks whether it is the newest."
            )

    def must_have_the_witness(self, now: Transaction) -> None:
        """Reject a transaction of a process that does not know that a witness was added or forgotten.

        What is read here stays so until the transaction ends (`Backend.lock_all`).
        """
        if self.witness is None:
            return
        [(witness,)] = now.rows("SELECT witness FROM place")
        if witness != self.witness:
            changed = "no longer has the witness that it had" if self.witness else "was given a witness"
            raise StoreReplaced(
                f"{self.address} {changed} since this process opened it. Nothing was committed; open it again."
            )

    def _roll_back(self, connection: Any) -> None:
        """Roll back, and keep the connection if that succeeds."""
        if self.backend.has_ended(connection):
            return self._discard(connection)
        try:
            self.backend.rollback(connection)
        except BaseException:
            self._discard(connection)
            raise
        return self._put_back(connection)

    def _discard(self, connection: Any) -> None:
        """Roll back, and close: a connection after an error is not used again."""
        with contextlib.suppress(Exception):
            self.backend.rollback(connection)
        self._close(connection)

    def _close(self, connection: Any) -> None:
        self._used.discard(connection)
        _close(connection, self.backend)

    def cut(self) -> None:
        """End the transactions of all threads, and make no more: for a process that ends, whatever they wait for."""
        self._ending = True
        for connection in list(self._used):
            self.backend.cut(connection)
        self.close()

    def close(self) -> None:
        """Close the connections that this process has opened and does not use at the moment."""
        _close_all(self._idle, self.backend)

    # The schema.

    def _migrate(self) -> None:
        """Bring the tables to the newest schema; a database of a newer version is rejected."""
        scripts = migrations()
        with self.transaction(write=False) as now:
            version = _version(now)
        if version == len(scripts):
            return
        with self.transaction() as now:
            version = _version(now, lock=True)  # another process may have been faster
            if version > len(scripts):
                raise StateConflict(
                    f"{self.address} was written by a newer version of taciturn (schema {version}, this one knows "
                    f"{len(scripts)}). Update taciturn on this machine."
                )
            for script in scripts[version:]:
                for statement in _statements(script):
                    now.execute(statement)
            now.execute("UPDATE schema_version SET version = ?", len(scripts))
            if version == 0:
                identity = self.backend.identity(now)
                now.execute("INSERT INTO place (id, identity) VALUES (?, ?)", new_name(), identity)

    def backup(self, to: str | os.PathLike[str]) -> None:
        """Write a consistent copy of a SQLite database while it is in use."""
        if Path(to).exists():
            raise InvalidInput(f"{to} exists. Give the name of a file that does not.")
        with self._errors_explained(), _no_fork(self.backend):
            connection = self._take()
            try:
                self.backend.backup(connection, Path(to))
            finally:
                self._close(connection)


def _close_all(idle: dict[int, list[Any]], backend: Backend) -> None:
    """Close what this process has opened: what a forked child has inherited is its parent's."""
    for connection in idle.pop(os.getpid(), []):
        _close(connection, backend)


def _close(connection: Any, backend: Backend) -> None:
    with contextlib.suppress(Exception):
        backend.close(connection)
    _OPEN.discard(connection)


def _version(transaction: Transaction, lock: bool = False) -> int:
    return int(transaction.rows(f"SELECT version FROM schema_version {'/*lock*/' if lock else ''}")[0][0])


def in_parts(values: Sequence[_Value], most: int = 512) -> Iterator[Sequence[_Value]]:
    """Consecutive parts for one statement each: of few sizes, so that few statements are prepared.

    >>> [len(part) for part in in_parts(range(1_100))], [len(part) for part in in_parts(range(7))]
    ([512, 512, 64, 8, 4], [4, 2, 1])
    """
    start, left = 0, len(values)
    while left:
        size = min(most, 1 << (left.bit_length() - 1))
        yield values[start : start + size]
        start, left = start + size, left - size


def migrations() -> list[str]:
    """The scripts that make the schema, in order; the version of a schema is the number of scripts in it.

    >>> migrations()[0].splitlines()[0][:40]
    '-- One schema for SQLite and PostgreSQL.'
    """
    folder = resources.files("taciturn.store") / "migrations"
    files = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return [each.read_text(encoding="utf-8") for each in files]


def _statements(script: str) -> list[str]:
    lines = [line.split("--")[0].rstrip() for line in script.splitlines()]
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def backend_of(address: str | os.PathLike[str]) -> Backend:
    """SQLite for a path, PostgreSQL for `postgresql://…`."""
    text = os.fspath(address)
    if text.startswith(("postgresql://", "postgres://")):
        from taciturn.store.postgres import Postgres

        return Postgres(text, without_password(text))
    if "://" in text and not text.startswith("sqlite:///"):
        scheme = text.partition("://")[0]
        raise InvalidInput(f"{scheme}:// is no known kind of database. Give the name of a file, or postgresql://….")
    from taciturn.store.sqlite import Sqlite

    return Sqlite(Path(text.removeprefix("sqlite:///")).absolute())


def without_password(address: str) -> str:
    """An address that can be printed and stored.

    >>> without_password("postgresql://me:secret@host:5432/budget?password=x&sslmode=require")
    'postgresql://me@host:5432/budget?sslmode=require'
    >>> without_password("postgresql:///budget")
    'postgresql:///budget'
    """
    rest, _, query = address.partition("?")
    scheme, _, place = rest.partition("://")
    user, at, host = place.rpartition("@")
    public = [(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if "password" not in key]
    rest = f"{scheme}://{user.partition(':')[0]}{at}{host}"
    return f"{rest}?{urlencode(public, quote_via=quote)}" if public else rest


# Every connection of this process. Weak: one that an interrupt has left without an owner is freed, which ends its
# transaction; otherwise it would lock the database until the process ends.
_OPEN: weakref.WeakSet[Any] = weakref.WeakSet()


_MANY = [FEW]  # of so many open connections some may be unused


def _free_unused() -> None:
    """Free databases that only reference cycles keep, and their connections, if there are many.

    A server has a hundred for all its users, and Python does not know that they are scarce. There is a collection when
    `FEW` are open, or twice as many as were in use after the last one; so n that stay in use cost log2(n) of them.
    """
    if len(_OPEN) >= _MANY[0]:
        gc.collect()
        _MANY[0] = max(FEW, 2 * len(_OPEN))


def _abandon() -> None:
    """In a forked child: inherited connections are never freed, as closing one would end the parent's transaction."""
    inherited = list(_OPEN)
    _OPEN.clear()
    if inherited:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


_BUSY: dict[object, tuple[int, str]] = {}  # the thread and the address of each transaction that no fork may split
_FORKING: list[int] = []  # threads that are about to fork
_SPLIT: set[str] = set()  # in a child: addresses of transactions that were open in its parent when it was forked


@contextlib.contextmanager
def _no_fork(backend: Backend) -> Iterator[None]:
    """A block that no other thread splits by a fork, where that matters."""
    if not backend.inherits_locks:
        yield
        return
    if _SPLIT and os.path.realpath(backend.address) in _SPLIT:
        raise StateConflict(
            f"this process was forked during a transaction in {backend.address}, and cannot use it. Fork when no "
            "thread uses the ledger or store, or start processes by spawn."
        )
    here, thread = object(), threading.get_ident()
    nested = any(other == thread for other, _ in list(_BUSY.values()))
    try:
        _BUSY[here] = (thread, backend.address)
        while not nested and any(other != thread for other in list(_FORKING)):
            _BUSY.pop(here, None)
            time.sleep(5e-4)
            _BUSY[here] = (thread, backend.address)
        yield
    finally:
        _BUSY.pop(here, None)


def _before_fork() -> None:
    thread = threading.get_ident()
    _FORKING.append(thread)
    end = time.monotonic() + WAIT_TO_FORK
    while any(other != thread for other, _ in list(_BUSY.values())) and time.monotonic() < end:
        time.sleep(5e-4)


def _after_fork_in_parent() -> None:
    _FORKING.remove(threading.get_ident())


def _after_fork_in_child() -> None:
    _FORKING.clear()
    _SPLIT.update(os.path.realpath(address) for _, address in _BUSY.values())
    _BUSY.clear()
    _abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def same_process(process: int) -> None:
    """Reject a child that was forked within a transaction, and goes on with its parent's."""
    if os.getpid() != process:
        raise StateConflict(
            "this process was forked within a transaction, which belongs to its parent. Fork when no thread uses the "
            "ledger or store, or start processes by spawn."
        )


def unavailable(address: str, what: object) -> StoreUnavailable:
    """The error of a database that cannot be used now."""
    return StoreUnavailable(f"{address}: {_one_line(what)}. Nothing was committed; try again later.")


def _one_line(what: object) -> str:
    return " ".join(str(what).split())[:300].rstrip(".")


def check_name(what: str, name: str) -> None:
    """Reject a name that a database cannot hold.

    >>> check_name("population", "")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: the population's name must have characters, and no null character, got ''. ...
    """
    try:
        held = isinstance(name, str) and bool(name.encode()) and "\0" not in name
    except UnicodeEncodeError:  # half of a surrogate pair
        held = False
    if not held:
        raise InvalidInput(
            f"the {what}'s name must have characters, and no null character, got {name!r}. Choose another name."
        )
