"""Power cuts: what a commit has returned stays, in SQLite, on a disk that loses what was not synced."""

import contextlib
import random
import sqlite3

import pytest

from power_cuts import Disk
from taciturn import Ledger, Privacy
from taciturn.errors import StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Chunk, Store, sqlite

NAME = "stream"
PLAIN = sqlite.open_connection


def commits_lost(path, cuts, patch, synchronous=None):
    """How many power cuts took back a commit that had returned, or damaged the database."""
    chance = random.Random(cuts)
    disk = Disk(cuts)
    patch.setattr(sqlite, "open_connection", PLAIN)
    if synchronous is not None:
        patch.setattr(sqlite, "_make_durable", lambda connection, _: connection.execute(f"PRAGMA {synchronous}"))
    Store(path).create(NAME, lineage="a", position=(0, 0, 0, "0"), reserved=gaussian(1.0), state=b"0")
    tried, lost, in_flight = {}, 0, 0
    for _ in range(cuts):
        patch.setattr(sqlite, "open_connection", disk.open_connection)
        store = Store(path)
        saved = store.load(NAME)
        disk.left = chance.randint(0, 60)
        try:
            while True:
                made = following(saved, chance)
                tried[made["position"][0]] = made
                saved = store.commit(saved, **made)
        except StoreUnavailable:
            assert disk.off
        returned = saved.position[0]
        del store
        disk.restart()
        patch.setattr(sqlite, "open_connection", PLAIN)
        try:
            generation = checked(path, tried)
        except (AssertionError, sqlite3.Error):
            return lost + 1  # damaged: there is nothing to go on with
        lost += generation < returned
        in_flight += generation > returned
        assert generation <= returned + 1
    assert cuts < 200 or 0 < in_flight < cuts  # cuts came before and after the moment of a commit
    return lost


def following(saved, chance):
    """A commit of a random size."""
    generation, t, k, _ = saved.position
    return {
        "position": (generation + 1, t + 1, k + 1, f"{chance.random()}"),
        "spent": FREE,
        "state": chance.randbytes(chance.choice([100, 5_000, 30_000])),
        "releases": [Chunk(k + 1, k + 1, t + 1, chance.randbytes(chance.choice([10, 1_000, 20_000])))],
    }


def checked(path, tried):
    """The generation of the stream; all commits up to it are there, as they were made, in order."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store = Store(path)
    here = store.load(NAME)
    assert list(store.releases(NAME)) == [tried[g]["releases"][0] for g in range(1, here.position[0] + 1)]
    if here.position[0]:
        assert here.position == tried[here.position[0]]["position"]
        assert here.state == tried[here.position[0]]["state"]
    return here.position[0]


def test_twenty_power_cuts(tmp_path, monkeypatch):
    assert commits_lost(tmp_path / "streams.db", 20, monkeypatch) == 0


@pytest.mark.slow
def test_two_hundred_power_cuts(tmp_path, monkeypatch):
    assert commits_lost(tmp_path / "streams.db", 200, monkeypatch) == 0


@pytest.mark.parametrize("synchronous", ["synchronous=OFF", "synchronous=NORMAL", "synchronous=FULL"])
def test_weaker_settings_lose_commits(tmp_path, monkeypatch, synchronous):
    """Planted faults. With FULL, the folder is not synced after a journal is removed: it may be back."""
    assert commits_lost(tmp_path / "streams.db", 40, monkeypatch, synchronous) > 0


def charges_lost(path, cuts, patch):
    """The same for charges of a ledger."""
    chance = random.Random(cuts)
    disk = Disk(cuts)
    Ledger.create(path, Privacy(50.0, 1e-6))
    returned, lost = 0, 0
    for _ in range(cuts):
        patch.setattr(sqlite, "open_connection", disk.open_connection)
        ledger = Ledger(path)
        disk.left = chance.randint(0, 60)
        try:
            while True:
                ledger.charge(gaussian(1e-4))
                returned += 1
        except StoreUnavailable:
            assert disk.off
        del ledger
        disk.restart()
        patch.setattr(sqlite, "open_connection", PLAIN)
        ledger = Ledger(path)
        assert ledger.verify().faults == []
        there = len(ledger.lines)
        lost += there < returned
        assert there <= returned + 1
        returned = there
    return lost


def test_charges_survive_twenty_power_cuts(tmp_path, monkeypatch):
    assert charges_lost(tmp_path / "budget.db", 20, monkeypatch) == 0


@pytest.mark.slow
def test_charges_survive_two_hundred_power_cuts(tmp_path, monkeypatch):
    assert charges_lost(tmp_path / "budget.db", 200, monkeypatch) == 0
