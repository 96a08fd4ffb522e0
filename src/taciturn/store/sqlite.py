"""SQLite: one file, no server; several processes on one machine may use it.

**Durability.** A commit that a power cut takes back is a round that is released twice, so a commit must be on the disk
when it returns. Every connection sets, and reads back:

- `journal_mode=DELETE`. With a write-ahead log, SQLite before 3.51.3 (fixed also in 3.50.7 and 3.44.6) can lose
  committed writes when several connections write and checkpoint; the rollback journal never had that error, and the
  database stays one file, which is easier to back up.
- `synchronous=EXTRA`: the file is synced before the journal is removed, and the folder after that. A transaction is
  committed at the moment when its journal is gone from the disk.
- `fullfsync` on macOS, where a plain sync does not reach the disk.

Locks of network file systems cannot be trusted, and their caches neither: files on them are rejected (recognised on
Linux; on other systems, do not put a ledger there).

**Transactions.** One that writes begins by BEGIN IMMEDIATE, which takes the only lock for writers, so all that it reads
is the newest committed content, and stays so until it ends. A second writer waits for up to `WAIT` seconds.

**Files that are put back.** SQLite keeps pages of the file in memory from one transaction to the next, if a counter in
the file is still the same. In a backup that was copied over the file it may come to the same number again: a connection
would then read what is not in the file any more, and write on top of it. So no page is kept beyond a transaction.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import struct
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from taciturn.errors import InvalidInput, StoreUnavailable
from taciturn.kernel.accounting import unit as units
from taciturn.store import database
from taciturn.store.database import Row, Transaction, same_process, unavailable

_NETWORK = (
    *("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "sshfs", "beegfs", "gpfs", "ncpfs", "davfs"),
    *("s3fs", "gcsfuse", "rclone", "blobfuse", "juicefs", "goofys"),
)


_CACHE = 2**14  # kilobytes of pages that a transaction keeps: those of a large state, and of the keys of requests


class _SqliteTransaction:
    """An open transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._process = os.getpid()

    def rows(self, sql: str, *values: Any) -> list[Row]:
        same_process(self._process)
        return list(self._connection.execute(sql, values).fetchall())

    def execute(self, sql: str, *values: Any) -> int:
        same_process(self._process)
        return int(self._connection.execute(sql, values).rowcount)


class Sqlite:
    """A SQLite file as a `Backend`.

    Parameters
    ----------
    path : Path
        The file.
    """

    inherits_locks = True
    one_writer = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = str(path)

    def connect(self) -> Any:
        reject_network(self.path)
        if not self.path.exists():
            raise InvalidInput(f"{self.path} does not exist. Check the address.")
        connection = open_connection(self.path)
        try:
            connection.execute(f"PRAGMA cache_size=-{_CACHE}")
            _make_durable(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def begin(self, connection: Any, write: bool) -> Transaction:
        connection.execute("PRAGMA shrink_memory")  # read anew: see the module
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        return _SqliteTransaction(connection)

    def has_ended(self, connection: Any) -> bool:
        return False

    def cut(self, connection: Any) -> None:
        connection.interrupt()

    def commit(self, connection: Any) -> None:
        connection.execute("COMMIT")

    def rollback(self, connection: Any) -> None:
        connection.execute("ROLLBACK")

    def close(self, connection: Any) -> None:
        connection.close()

    def explained(self, error: Exception) -> Exception | None:
        if not isinstance(error, sqlite3.Error):
            return None
        if "locked" in str(error):
            return StoreUnavailable(
                f"{self.address} was locked by another transaction for {database.WAIT:g} seconds. Nothing was "
                "committed; try again."
            )
        if "not a database" in str(error) or "malformed" in str(error):
            return InvalidInput(f"{self.address} is not a database of taciturn, or is damaged ({error}).")
        if "unable to open" in str(error) or "readonly" in str(error):
            return InvalidInput(f"{self.address} cannot be opened or written. Check the path and its permissions.")
        return unavailable(self.address, error)

    def exists(self) -> bool:
        if self.path.is_dir():
            raise InvalidInput(f"{self.path} is a folder. Give the name of a file.")
        if not self.path.exists() or self.path.stat().st_size == 0:
            return False
        reject_network(self.path)
        with contextlib.closing(open_connection(self.path)) as connection:  # without a change: it may be another's
            found = connection.execute("SELECT name FROM sqlite_master WHERE name = 'schema_version'").fetchall()
            others = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()[0][0]
        if not found and others:
            raise InvalidInput(f"{self.path} is a database of another program. Give the name of another file.")
        return bool(found)

    def create(self) -> None:
        try:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # it holds secrets
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be created: {error.strerror}. Check the folder.") from None
        with contextlib.closing(self.connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
            connection.execute("INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS (SELECT * FROM schema_version)")
            connection.execute("COMMIT")

    def identity(self, transaction: Transaction) -> str:
        status = os.stat(self.path)
        return f"file {status.st_dev}:{status.st_ino}, made at {_made_at(self.path)}"

    def storage(self, transaction: Transaction) -> str:
        return f"disk (device {os.stat(self.path).st_dev})"

    def clock(self, transaction: Transaction) -> datetime:
        return units.utc_now()  # one machine has one clock

    def lock_all(self, transaction: Transaction) -> None:
        """Nothing is left to do: a transaction that writes has locked the file."""

    def backup(self, connection: Any, to: Path) -> None:
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.closing(sqlite3.connect(to)) as copy:
            copy.execute("PRAGMA synchronous=EXTRA")
            connection.backup(copy)


def open_connection(path: Path) -> Any:
    """A connection with explicit transactions, which any thread may use, one at a time. Tests replace it."""
    return sqlite3.connect(
        path, timeout=database.WAIT, isolation_level=None, check_same_thread=False, factory=_Connection
    )


class _Connection(sqlite3.Connection):
    """One that weak references may refer to, and that may be left to the garbage collector.

    An interrupt can come between the line that opens a connection and the one that would close it. The collector
    closes it in any case; since Python 3.13 it also complains, unless somebody has closed the connection before.
    """

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.close()


def _make_durable(connection: Any, path: Path) -> None:
    """Set what the module says, and read it back."""
    wanted: list[tuple[str, str, object]] = [
        ("journal_mode", "DELETE", "delete"),
        ("synchronous", "EXTRA", 3),
        ("foreign_keys", "ON", 1),
        ("secure_delete", "ON", 1),  # states are secret, also those that were replaced
    ]
    if sys.platform == "darwin":
        wanted += [("fullfsync", "ON", 1), ("checkpoint_fullfsync", "ON", 1)]
    for name, value, expected in wanted:
        connection.execute(f"PRAGMA {name}={value}").fetchall()
        got = connection.execute(f"PRAGMA {name}").fetchall()
        if not got or got[0][0] != expected:
            raise StoreUnavailable(
                f"{path}: SQLite does not accept {name}={value}, without which a power cut could take commits back "
                "(a program may have the file open with a write-ahead log). Close other programs, and try again."
            )


def _made_at(path: Path) -> str:
    """When a file was made, as far as this system tells: the number of a removed file is often given to the next one.

    By a system call on the name: opening and closing the file would end the locks that SQLite has on it.
    """
    if sys.platform != "linux":
        return str(getattr(os.stat(path), "st_birthtime", "an unknown time"))
    content = ctypes.create_string_buffer(256)
    try:
        failed = ctypes.CDLL(None).statx(_HERE, os.fsencode(path), 0, _BIRTH, content)
    except (OSError, AttributeError):  # a C library without it
        failed = True
    if failed or not struct.unpack_from("I", content, 0)[0] & _BIRTH:
        return "an unknown time"
    seconds, parts = struct.unpack_from("qI", content, 80)
    return f"{seconds}.{parts:09d}"


_HERE, _BIRTH = -100, 0x800  # AT_FDCWD and STATX_BTIME of Linux


def reject_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> None:
    """Reject a file on a network file system, as far as this system tells."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return  # this system does not tell
    place = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    if any(name in kind for name in _NETWORK):
        raise StoreUnavailable(
            f"{path} is on a network file system ({kind}), whose locks and writes cannot be trusted. Use a local disk, "
            "or PostgreSQL: postgresql://…."
        )
