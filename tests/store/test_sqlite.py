"""SQLite: durable settings, a file that only its owner reads, no network file systems, backups."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from taciturn import InvalidInput, Ledger, Privacy, StateConflict
from taciturn.errors import StoreUnavailable
from taciturn.kernel.accounting.cost import gaussian
from taciturn.store import Store, sqlite
from taciturn.store.database import Database
from taciturn.store.sqlite import Sqlite, reject_network

BUDGET = Privacy(1.0, 1e-6)


@pytest.mark.privacy
def test_a_commit_is_on_the_disk_when_it_returns(tmp_path):
    """As far as SQLite promises it: read back on every connection."""
    Database(tmp_path / "a.db", create=True)
    connection = Sqlite(tmp_path / "a.db").connect()
    read = {name: connection.execute(f"PRAGMA {name}").fetchall()[0][0] for name in ("journal_mode", "synchronous")}
    assert read == {"journal_mode": "delete", "synchronous": 3}
    connection.close()


@pytest.mark.privacy
@pytest.mark.parametrize("name", ["journal_mode", "synchronous"])
def test_a_connection_that_is_not_durable_is_rejected(name, tmp_path, monkeypatch):
    Ledger.create(tmp_path / "a.db", BUDGET)

    class Stubborn:
        """A connection that ignores a setting."""

        def __init__(self, connection):
            self.connection = connection

        def execute(self, sql, *values):
            return self.connection.execute("SELECT 0" if sql == f"PRAGMA {name}" else sql, *values)

        def __getattr__(self, attribute):
            return getattr(self.connection, attribute)

    made = sqlite.open_connection
    monkeypatch.setattr(sqlite, "open_connection", lambda path: Stubborn(made(path)))
    with pytest.raises(StoreUnavailable, match=f"SQLite does not accept {name}=.*power cut"):
        Ledger(tmp_path / "a.db")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_its_owner_reads_it(tmp_path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "stream.db")
        store.backup(tmp_path / "backup.db")
    finally:
        os.umask(before)
    for name in ("stream.db", "backup.db"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


MOUNTS = """/dev/vda / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local xfs rw 0 0
//server/share /mnt/a\\040share cifs rw 0 0
me@server: /mnt/ssh fuse.sshfs rw 0 0
short
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/budget.db", "nfs4"),
        ("/mnt/a share/budget.db", "cifs"),
        ("/mnt/ssh/deep/budget.db", "fuse.sshfs"),
        ("/home/local/budget.db", None),
        ("/homes/budget.db", None),
        ("/budget.db", None),
    ],
)
def test_network_file_systems_are_rejected(path, kind, tmp_path):
    (tmp_path / "mounts").write_text(MOUNTS)
    if kind is None:
        reject_network(sqlite.Path(path), tmp_path / "mounts")
        return
    with pytest.raises(StoreUnavailable, match=rf"network file system \({kind}\).*Use a local disk"):
        reject_network(sqlite.Path(path), tmp_path / "mounts")


def test_a_system_without_a_list_of_mounts_is_believed(tmp_path):
    reject_network(tmp_path / "budget.db", tmp_path / "missing")


def test_every_opening_looks_for_network_file_systems(tmp_path, monkeypatch):
    Ledger.create(tmp_path / "budget.db", BUDGET)

    def reject(path):
        raise StoreUnavailable(f"{path} is on a network file system.")

    monkeypatch.setattr(sqlite, "reject_network", reject)
    for opened in (Ledger, Store):
        with pytest.raises(StoreUnavailable, match="network"):
            opened(tmp_path / "budget.db")


def test_a_removed_file_is_not_connected_to(tmp_path):
    """SQLite would make an empty one."""
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    ledger._book.database.close()
    (tmp_path / "budget.db").unlink()
    with pytest.raises(InvalidInput, match="does not exist"):
        ledger.charge(gaussian(0.01))
    assert not (tmp_path / "budget.db").exists()


@pytest.mark.privacy
@pytest.mark.skipif(sys.platform != "linux", reason="the time when a file was made is read on Linux")
def test_a_file_of_the_same_number_is_another_one(tmp_path):
    """File systems give the number of a removed file to the next one."""
    path = tmp_path / "budget.db"
    seen = set()
    for _ in range(5):
        path.write_bytes(b"")
        seen.add((path.stat().st_ino, Sqlite(path).identity(None)))
        path.unlink()
    if any("unknown time" in identity for _, identity in seen):
        pytest.skip("this file system does not tell when a file was made")
    assert len({identity for _, identity in seen}) == 5


def test_a_backup_is_complete_and_not_a_second_ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    ledger.charge(gaussian(0.01))
    store = Store(tmp_path / "budget.db")
    store.backup(tmp_path / "backup.db")
    with pytest.raises(InvalidInput, match="exists"):
        store.backup(tmp_path / "backup.db")
    with Database(tmp_path / "backup.db").transaction(write=False) as now:
        assert len(now.rows("SELECT lineage FROM lines")) == 1
    with pytest.raises(StateConflict, match="not where it was"):
        Ledger(tmp_path / "backup.db")
