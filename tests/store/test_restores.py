"""Restored backups and clones: all are rejected with a witness; the tables say which are noticed without one.

A way of restoring copies a database, lets it be used again, and brings the copy back. It returns the address at which
the database is now.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from put_back import Kept, program
from taciturn import Ledger, Privacy
from taciturn.errors import StateConflict
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Chunk, Store
from taciturn.store.database import Database, StoreReplaced

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


@pytest.mark.slow
def test_a_server_that_is_put_back_with_the_witness_on_it_is_not_noticed(cluster):
    """Which is why the store warns of it: the same rounds are released again."""
    psycopg = pytest.importorskip("psycopg")
    address = cluster.start()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE witness")
    create(address, address.replace("/postgres?", "/witness?"))
    assert "on the same PostgreSQL server" in Store(address).shared_with_witness()
    cluster.stop()
    copied_back(cluster, lambda: advance(Store(address))).start()
    assert not is_noticed(lambda: advance(Store(address)))


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
    """Both are opened while they agree; the second to commit is rejected before COMMIT, however often it tries."""
    (tmp_path / "folder").mkdir()
    witness = tmp_path / "witness.db"
    first = Store(tmp_path / "folder" / "streams.db", witness=witness)
    first.create(NAME, lineage="a", position=(0, 0, 0, "0"), reserved=COST)
    advance(first)
    shutil.copytree(tmp_path / "folder", tmp_path / "clone")
    second = Store(tmp_path / "clone" / "streams.db", witness=witness)
    used = second.load(NAME)
    advance(first)
    with pytest.raises(StateConflict, match="behind"):
        advance(second, used)
    with second.database.transaction(write=False) as now:
        assert now.rows("SELECT generation FROM streams") == [(1,)]
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


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def kept(request, tmp_path):
    return Kept.of_kind(request.param, request, tmp_path)


@pytest.mark.privacy
@pytest.mark.parametrize("witnessed", [True, False], ids=["with a witness", "without"])
def test_under_processes_that_use_it_a_backup_neither_goes_on_nor_is_shown(kept, tmp_path, witnessed):
    """One has the state of the backup in memory, which it could commit to. Without a witness each knows what it saw."""
    create(kept.address, tmp_path / "witness.db" if witnessed else None)
    stores = first, second, reader = [Store(kept.address) for _ in range(3)]
    used = second.load(NAME)
    kept.back_up()
    shown = advance(first)
    if not witnessed:
        second.load(NAME)
    reader.check_newest()
    assert reader.chunk("a", 2)[0].content == b"1"
    kept.put_back()
    before = kept.content()
    for _ in range(2):
        with pytest.raises(StoreReplaced):
            advance(second, used)
        for store in stores:
            for show in (store.check_newest, lambda store=store: store.load(NAME)):
                with pytest.raises(StoreReplaced):
                    show()
            for number in (1, 2, 3):
                with pytest.raises(StoreReplaced):
                    store.chunk("a", number)
            with pytest.raises(StoreReplaced):
                list(store.releases(NAME))
    assert kept.content() == before
    assert shown.position[0] == 2


@pytest.mark.privacy
@pytest.mark.parametrize("witnessed", [True, False], ids=["with a witness", "without"])
def test_what_another_copy_released_is_not_shown(kept, tmp_path, witnessed):
    """However it came there: its generation is that of what was shown, and its hash is another."""
    create(kept.address, tmp_path / "witness.db" if witnessed else None)
    first, reader = Store(kept.address), Store(kept.address)
    advance(first)
    assert reader.chunk("a", 2)[0].content == b"1"
    with Database(kept.address).transaction() as now:
        now.execute("UPDATE streams SET chain = 'of other commits'")
        now.execute("UPDATE releases SET content = ? WHERE first = 2", b"2")
    for store in (first, reader):
        for number in (1, 2):
            with pytest.raises(StoreReplaced):
                store.chunk("a", number)


def test_what_was_behind_without_a_witness_stays_so_until_it_is_the_newest_again(tmp_path):
    """Another process goes on from the backup, past what was shown."""
    path = tmp_path / "streams.db"
    create(path, None)
    store = Store(path)
    backup = path.read_bytes()
    for _ in range(2):
        advance(store)
    newest = path.read_bytes()
    path.write_bytes(backup)
    with pytest.raises(StoreReplaced):
        store.check_newest()
    other = Store(path)
    for _ in range(4):
        advance(other)
    for look in (store.check_newest, lambda: store.chunk("a", 1), lambda: store.load(NAME)):
        with pytest.raises(StoreReplaced):
            look()
    path.write_bytes(newest)
    store.check_newest()
    assert advance(store).position[0] == 4


def test_one_commit_that_does_not_follow_is_noticed_without_a_witness(tmp_path):
    """Another process was faster than a look at the backup."""
    path = tmp_path / "streams.db"
    create(path, None)
    store = Store(path)
    backup = path.read_bytes()
    advance(store)
    path.write_bytes(backup)
    for _ in range(2):
        advance(Store(path))
    with pytest.raises(StoreReplaced):
        store.chunk("a", 2)


def test_a_backup_that_went_on_by_as_many_transactions_is_noticed_without_a_witness(tmp_path):
    """SQLite counts them, and believes that the file which it has read is still there."""
    path = tmp_path / "streams.db"
    create(path, None)
    store, reader = Store(path), Store(path)
    backup = path.read_bytes()
    for _ in range(2):
        advance(store)
    assert reader.chunk("a", 3)[0].content == b"1"
    path.write_bytes(backup)
    other = Store(path)
    for _ in range(2):
        advance(other)
    gone_on = path.read_bytes()
    with pytest.raises(StoreReplaced):
        reader.chunk("a", 3)
    with pytest.raises(StoreReplaced):
        advance(store)
    assert path.read_bytes() == gone_on


@pytest.mark.parametrize("what", ["a stream that was opened after it", "a ledger that went on after it"])
def test_a_backup_that_lacks_what_the_witness_knows_is_noticed_while_it_is_open(tmp_path, what):
    """Its streams are where they were."""
    path, witness = tmp_path / "streams.db", tmp_path / "witness.db"
    create(path, witness)
    store = Store(path)
    store.check_newest()
    backup = path.read_bytes()
    if what.startswith("a stream"):
        Store(path).create("another", lineage="b", position=(0, 0, 0, "0"), reserved=COST)
    else:
        Ledger(path).charge(COST)
    store.check_newest()
    path.write_bytes(backup)
    with pytest.raises(StoreReplaced, match="is behind its witness"):
        store.check_newest()


def test_a_backup_that_lacks_a_stream_is_noticed_without_a_witness(tmp_path):
    """Its other streams are where they were, and its ledger has forgotten a reservation."""
    path = tmp_path / "streams.db"
    create(path, None)
    store, reader = Store(path), Store(path)
    backup = path.read_bytes()
    store.create("another", lineage="b", position=(0, 0, 0, "0"), reserved=COST, ledger=Ledger(path))
    reader.check_newest()
    newest = path.read_bytes()
    path.write_bytes(backup)
    for here in (store, reader):
        for look in (here.check_newest, lambda here=here: here.at_tick(0, {})):
            with pytest.raises(StoreReplaced, match="is missing"):
                look()
        with pytest.raises(StoreReplaced, match="is missing"):
            here.create("another", lineage="c", position=(0, 0, 0, "0"), reserved=COST, ledger=Ledger(path))
    assert path.read_bytes() == backup
    path.write_bytes(newest)
    reader.check_newest()
    assert len(store.at_tick(0, {})) == 2


def test_no_stream_begins_in_a_backup_that_is_put_back_while_it_is_open(tmp_path):
    """Its witness would know it, and reject the newest database, which lacks it."""
    path, witness = tmp_path / "streams.db", tmp_path / "witness.db"
    create(path, witness)
    store, other = Store(path), Store(path)
    backup = path.read_bytes()
    advance(other)
    newest = path.read_bytes()
    path.write_bytes(backup)
    with pytest.raises(StoreReplaced):
        store.create("another", lineage="b", position=(0, 0, 0, "0"), reserved=COST)
    assert path.read_bytes() == backup
    path.write_bytes(newest)
    assert Store(path).names() == [NAME]
    assert store.create("another", lineage="b", position=(0, 0, 0, "0"), reserved=COST).name == "another"


def test_reading_what_the_witness_knows_waits_for_nobody_who_writes_there(tmp_path):
    """A place that is stored already is not stored again."""
    witness = tmp_path / "witness.db"
    create(tmp_path / "streams.db", witness)
    store = Store(tmp_path / "streams.db")
    with contextlib.closing(sqlite3.connect(witness, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        assert store.load(NAME).position[0] == 1
        assert [chunk.last for chunk in store.releases(NAME)] == [1]
        store.check_newest()
