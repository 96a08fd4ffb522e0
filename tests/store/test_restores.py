"""Restored backups and clones: all are rejected with a witness; the tables say which are noticed without one.

A way of restoring copies a database, lets it be used again, and brings the copy back. It returns the address at which
the database is now.
"""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from taciturn import Ledger, Privacy
from taciturn.accounting.cost import FREE, gaussian
from taciturn.errors import StateConflict
from taciturn.store import Chunk, Store

NAME = "stream"
COST = gaussian(1e-4)


def create(address, witness):
    """A store and a ledger in one database, with a stream in each."""
    ledger = Ledger.create(address, Privacy(1.0, 1e-6), witness=witness)
    ledger.open("guarded by the ledger", COST, at=(0, 0, 0, "0"))
    store = Store(address, witness=witness)
    store.create(NAME, lineage="a", position=(0, 0, 0, "0"), reserved=COST, ledger=ledger)
    advance(store)


def advance(store, saved=None):
    """Another commit."""
    saved = saved or store.load(NAME)
    generation, t, k, _ = saved.position
    new = (generation + 1, t + 1, k + 1, os.urandom(8).hex())
    return store.commit(saved, position=new, spent=FREE, state=b"state", releases=[Chunk(k + 1, k + 1, t + 1, b"1")])


def is_noticed(open_database):
    try:
        open_database()
    except StateConflict:
        return True
    return False


def restore(way, address, witness, *more):
    """What is noticed by the store and by the ledger, after a restore."""
    create(address, witness)

    def use_again():
        advance(Store(address, witness=witness))
        Ledger(address, witness=witness).charge(COST)

    at = way(address, use_again, *more)
    return is_noticed(lambda: advance(Store(at, witness=witness))), is_noticed(lambda: Ledger(at, witness=witness))


# ---- SQLite ----------------------------------------------------------------------------------------------------


def copied_onto_the_same_file(path, use_again):
    shutil.copyfile(path, f"{path}.copy")
    use_again()
    shutil.copyfile(f"{path}.copy", path)
    return path


def copied_and_renamed(path, use_again):
    shutil.copyfile(path, f"{path}.copy")
    use_again()
    os.replace(f"{path}.copy", path)
    return path


def vacuumed_into_another_file(path, use_again):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"VACUUM INTO '{path}.copy'")
    use_again()
    os.replace(f"{path}.copy", path)
    return path


def backed_up(path, use_again):
    Store(path).backup(f"{path}.copy")
    use_again()
    os.replace(f"{path}.copy", path)
    return path


def cloned_folder(path, use_again):
    clone = Path(path).parent.with_name("clone")
    shutil.copytree(Path(path).parent, clone)
    use_again()
    return str(clone / Path(path).name)


SQLITE = {
    copied_onto_the_same_file: False,  # it is the same file to the system
    copied_and_renamed: True,
    vacuumed_into_another_file: True,
    backed_up: True,
    cloned_folder: True,
}
"""Whether it is noticed without a witness."""


@pytest.mark.parametrize("way", SQLITE, ids=lambda way: way.__name__)
@pytest.mark.parametrize("witnessed", [True, False], ids=["with a witness", "without"])
def test_restored_files(tmp_path, way, witnessed):
    (tmp_path / "folder").mkdir()
    path = str(tmp_path / "folder" / "streams.db")
    expected = witnessed or SQLITE[way]
    assert restore(way, path, tmp_path / "witness.db" if witnessed else None) == (expected, expected)


# ---- PostgreSQL ------------------------------------------------------------------------------------------------


def program(server, name, *arguments):
    subprocess.run([server.own.bin_path / name, *arguments], check=True, capture_output=True)


def dumped_into_a_new_database(address, use_again, server):
    with tempfile.TemporaryDirectory() as folder:
        program(server, "pg_dump", "-Fc", "-f", f"{folder}/dump", address)
        use_again()
        new = server.new_database()
        program(server, "pg_restore", "-d", new, f"{folder}/dump")
    return new


def dumped_into_the_same_database(address, use_again, server):
    with tempfile.TemporaryDirectory() as folder:
        program(server, "pg_dump", "-Fc", "-f", f"{folder}/dump", address)
        use_again()
        program(server, "pg_restore", "--clean", "-d", address, f"{folder}/dump")
    return address


def cloned_by_template(address, use_again, server):
    new = server.new_database(template=urlsplit(address).path.lstrip("/"))
    use_again()
    return new


POSTGRES = {
    dumped_into_a_new_database: True,
    dumped_into_the_same_database: False,  # it is the same database to the server
    cloned_by_template: True,
}


@pytest.mark.parametrize("way", POSTGRES, ids=lambda way: way.__name__)
@pytest.mark.parametrize("witnessed", [True, False], ids=["with a witness", "without"])
def test_restored_databases(tmp_path, server, way, witnessed):
    if server.own is None:
        pytest.skip("programs such as pg_dump come with the server of the wheel")
    expected = witnessed or POSTGRES[way]
    witness = tmp_path / "witness.db" if witnessed else None
    assert restore(way, server.new_database(), witness, server) == (expected, expected)


def copied_to_another_server(cluster, use_again):
    copy = cluster.copied(f"{cluster.folder}2")
    cluster.start()
    use_again()
    return copy


def copied_back(cluster, use_again):
    copy = cluster.copied(f"{cluster.folder}2")
    cluster.start()
    use_again()
    cluster.stop()
    shutil.rmtree(cluster.folder)
    return copy.copied(cluster.folder)


def restored_to_a_point_in_time(cluster, use_again):
    """Recovery that ends on a new timeline, as that from an archive does."""
    copy = copied_to_another_server(cluster, use_again)
    Path(copy.folder, "recovery.signal").touch()
    with open(f"{copy.folder}/postgresql.conf", "a", encoding="utf-8") as settings:
        settings.write("\nrestore_command = '/bin/false'\n")
    return copy


CLUSTERS = {
    copied_to_another_server: False,  # identity, timeline and number of the database are in the copy
    copied_back: False,
    restored_to_a_point_in_time: True,
}


@pytest.mark.slow
@pytest.mark.parametrize("witnessed", [True, False])
@pytest.mark.parametrize("way", CLUSTERS, ids=lambda way: way.__name__)
def test_restored_servers(tmp_path, cluster, way, witnessed):
    """A database remembers its witness, so one without is another."""
    psycopg = pytest.importorskip("psycopg")
    address = cluster.start()
    create(address, tmp_path / "witness.db" if witnessed else None)
    cluster.stop()
    copy = way(cluster, lambda: advance(Store(address)))
    at = copy.start()
    with psycopg.connect(at, autocommit=True) as connection:
        while connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]:
            time.sleep(0.05)
    assert is_noticed(lambda: advance(Store(at))) == (witnessed or CLUSTERS[way])


# ---- while it is open, and two copies at once ------------------------------------------------------------------


@pytest.mark.parametrize("way", [way for way in SQLITE if way is not cloned_folder], ids=lambda way: way.__name__)
def test_a_file_that_is_replaced_while_it_is_open(tmp_path, way):
    """Also without a witness: the process remembers where the stream was."""
    path = str(tmp_path / "streams.db")
    create(path, None)
    store = Store(path)
    advance(store)
    way(path, lambda: advance(store))
    noticed = 0
    for _ in range(3):
        with contextlib.suppress(Exception):
            noticed -= 1
            advance(store)
            noticed += 10
    assert noticed == -3
    with pytest.raises(StateConflict):
        store.load(NAME)


def test_of_two_copies_with_one_witness_one_goes_on(tmp_path):
    """Both are opened while they agree; the second to commit is rejected, however often it tries."""
    (tmp_path / "folder").mkdir()
    witness = tmp_path / "witness.db"
    first = Store(tmp_path / "folder" / "streams.db", witness=witness)
    first.create(NAME, lineage="a", position=(0, 0, 0, "0"), reserved=COST)
    advance(first)
    shutil.copytree(tmp_path / "folder", tmp_path / "clone")
    second = Store(tmp_path / "clone" / "streams.db", witness=witness)
    used = second.load(NAME)
    advance(first)
    with pytest.raises(StateConflict, match="differ"):
        advance(second, used)
    for _ in range(2):
        with pytest.raises(StateConflict, match=r"differ|behind"):
            advance(second)
        with pytest.raises(StateConflict, match=r"differ|behind"):
            list(second.releases(NAME))
        with pytest.raises(StateConflict, match=r"differ|behind"):
            Store(tmp_path / "clone" / "streams.db", witness=witness)
        advance(first)


def test_of_two_copies_of_a_ledger_one_goes_on(tmp_path):
    """A copy that is accepted because the witness agrees takes over: that is an event in its history."""
    (tmp_path / "folder").mkdir()
    path, clone, witness = tmp_path / "folder" / "budget.db", tmp_path / "clone" / "budget.db", tmp_path / "witness.db"
    first = Ledger.create(path, Privacy(1.0, 1e-6), witness=witness)
    first.charge(COST)
    shutil.copytree(tmp_path / "folder", tmp_path / "clone")
    second = Ledger(clone, witness=witness)
    second.charge(COST)
    for _ in range(3):
        with pytest.raises(StateConflict, match=r"differ|behind"):
            first.charge(COST)
    with pytest.raises(StateConflict, match=r"differ|behind"):
        Ledger(path, witness=witness)
    second.charge(COST)


def test_a_witness_is_told_of_a_commit_whose_process_stopped(tmp_path, monkeypatch):
    """When the store is opened, and when the outbox is read: what is shown then must not be released again."""
    path, witness = tmp_path / "streams.db", tmp_path / "witness.db"
    create(path, witness)
    for tell in (lambda store: Store(path, witness=witness), lambda store: list(store.releases(NAME))):
        shutil.copyfile(path, tmp_path / "copy.db")
        store = Store(path, witness=witness)
        with monkeypatch.context() as stopped:
            stopped.setattr(Store, "_tell_witness", lambda *_: None)
            advance(store)
        tell(store)
        shutil.copyfile(path, tmp_path / "newest.db")
        shutil.copyfile(tmp_path / "copy.db", path)
        with pytest.raises(StateConflict, match="behind"):
            Store(path, witness=witness)
        shutil.copyfile(tmp_path / "newest.db", path)
