"""Runs that follow others: one transaction or a sequence, killed at every step, resumed, and charged once."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from small_run import write_case
from taciturn import BudgetExhausted, Ledger, Privacy, StateConflict
from taciturn.contract.contract import read_contract
from taciturn.errors import InvalidInput
from taciturn.kernel.accounting.cost import total
from taciturn.readers.rows import open_rows
from taciturn.renewal import renewal_of, stored_renewal
from taciturn.runs.files import Folder
from taciturn.runs.renewal import renew
from taciturn.runs.run import begin, resume
from taciturn.store import Store
from taciturn.store.sqlite import Sqlite


class Killed(BaseException):
    """The end of a process."""


def killed_at(monkeypatch, number, after):
    """The process ends at its COMMIT of this number, before or after that took effect; counted from 1."""
    commit, count = Sqlite.commit, [0]

    def planted(self, connection):
        count[0] += 1
        if count[0] == number and not after:
            raise Killed
        commit(self, connection)
        if count[0] == number:
            raise Killed

    monkeypatch.setattr(Sqlite, "commit", planted)


@pytest.fixture
def case(tmp_path):
    """A contract, its rows, and a run that has learnt 40 of them; `one` database for everything, or one for each."""

    def made(where):
        toml, data = write_case(tmp_path, 60)
        contract = read_contract(toml)
        place = {
            "one": dict.fromkeys(("old", "new", "ledger"), tmp_path / "all.db"),
            "apart": {name: tmp_path / f"{name}.db" for name in ("old", "new", "ledger")},
            "store": {"old": tmp_path / "all.db", "new": tmp_path / "all.db", "ledger": tmp_path / "ledger.db"},
        }[where]
        Ledger.create(place["ledger"], Privacy(3.0, 1e-6))
        case = SimpleNamespace(contract=contract, data=data, place=place, path=tmp_path)
        for name in ("old", "new"):
            (tmp_path / name).mkdir()
        first = begin(
            Folder(tmp_path / "old"),
            Store(place["old"]),
            contract.plan(),
            contract.digest,
            name="old",
            ledger=Ledger(place["ledger"]),
            about={"model": contract.model_digest},
        )
        for batch in open_rows(contract, data):
            first.learn(batch.X[:40], batch.y[:40])
        first.commit()
        return case

    return made


def renewed(case, folder="new", **changes):
    """As another process would call it."""
    old = Store(case.place["old"])
    store = old if case.place["new"] == case.place["old"] else Store(case.place["new"])
    settings = {"delta": 1e-6, "name": "new", "ledger": Ledger(case.place["ledger"])}
    settings |= {"about": {"model": case.contract.model_digest}} | changes
    plan = settings.pop("plan", case.contract.plan())
    return renew(old, old.load("old"), Folder(case.path / folder), store, plan, case.contract.digest, **settings)


PLACES = ["one", "store", "apart"]


@pytest.mark.privacy
@pytest.mark.parametrize("where", PLACES)
def test_a_run_is_closed_and_followed(case, where):
    """The successor starts from the last released model, its cost is reserved beside the first, and it learns on."""
    made = case(where)
    last = json.loads((made.path / "old" / "models.jsonl").read_text().splitlines()[-1])
    done = renewed(made)
    assert Store(made.place["old"]).load("old").closed
    np.testing.assert_array_equal(done.run.stream.model, last["model"])
    assert done.run.stream.plan.private.learner.center is not None
    lines = Ledger(made.place["ledger"]).lines
    assert len(lines) == 2
    assert sorted(line.closed for line in lines.values()) == [False, True]
    reserved = total(line.reserved for line in lines.values()).epsilon(1e-6)
    assert done.promise.in_all["replace"] == pytest.approx(reserved, rel=1e-9)
    with pytest.raises(StateConflict, match="was closed"):
        resume(
            Folder(made.path / "old"), Store(made.place["old"]), made.contract.plan(), made.contract.digest, name="old"
        )
    store = Store(made.place["new"])
    plan = made.contract.plan().following(stored_renewal(store.load("new")))
    run = resume(Folder(made.path / "new"), store, plan, made.contract.digest, name="new")
    for batch in open_rows(made.contract, made.data):
        run.learn(batch.X[40:], batch.y[40:])
    run.commit()
    assert (run.stream.t, run.stream.k) == (20, 10)


@pytest.mark.privacy
@pytest.mark.parametrize("where", PLACES)
def test_a_run_has_one_successor(case, where):
    """A second one would start from the same model at a cost that no promise has; called again, the first is found."""
    made = case(where)
    first = renewed(made).run.saved.lineage
    (made.path / "second").mkdir()
    if where == "apart":
        made.place["new"] = made.path / "second.db"
    with pytest.raises(StateConflict, match="was closed before: a run follows it already"):
        renewed(made, folder="second", name="second")
    assert len(Ledger(made.place["ledger"]).lines) == 2
    if where == "apart":
        made.place["new"] = made.path / "new.db"
    assert renewed(made).run.saved.lineage == first


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", PLACES)
def test_a_process_may_be_killed_at_every_commit(case, where, after, monkeypatch, tmp_path):
    """Called again, it completes: the first run is closed, there is one successor, and the ledger covers both.

    With the ledger in the same database nothing is reserved in vain; elsewhere at most one reservation is.
    """
    made = case(where)
    number, kills = 0, 0
    while True:
        number += 1
        with monkeypatch.context() as patched:
            killed_at(patched, number, after)
            try:
                renewed(made)
                finished = True
            except Killed:
                finished, kills = False, kills + 1
        if finished:
            break
        lines = Ledger(made.place["ledger"]).lines
        streams = Store(made.place["new"]).names() if made.place["new"].exists() else []
        if "new" in streams:  # a successor is never there without its reservation
            assert Store(made.place["new"]).load("new").lineage in lines
    assert kills >= (1 if where == "one" else 2)
    done = renewed(made)  # and once more changes nothing
    lines = Ledger(made.place["ledger"]).lines
    assert Store(made.place["old"]).load("old").closed
    mine = [done.run.saved.lineage, done.closed.lineage]
    assert all(lineage in lines for lineage in mine)
    in_vain = len(lines) - 2
    assert in_vain == 0 if where == "one" else in_vain <= kills
    assert not lines[mine[0]].closed
    assert lines[mine[1]].closed


def test_what_has_no_room_leaves_the_first_run_open(case):
    """A ledger that has no budget for the successor rejects it before anything is closed."""
    made = case("apart")
    poor = made.path / "poor.db"
    Ledger.create(poor, Privacy(0.5, 1e-6))
    with pytest.raises(BudgetExhausted):
        renewed(made, ledger=Ledger(poor))
    assert not Store(made.place["old"]).load("old").closed
    assert "new" not in Store(made.place["new"]).names()


def test_other_features_and_runs_are_rejected(case):
    made = case("one")
    with pytest.raises(InvalidInput, match="declares other features"):
        renewed(made, about={"model": "another"})
    with pytest.raises(StateConflict, match="simulation is followed by a simulation"):
        renewed(made, plan=made.contract.plan(seed=1), ledger=None)
    assert not Store(made.place["old"]).load("old").closed
    store = Store(made.place["old"])
    store.create("new", lineage="other", position=(0, 0, 0, "t"), reserved=store.load("old").reserved)
    with pytest.raises(StateConflict, match="does not follow old"):
        renewed(made)


def test_a_run_without_releases_cannot_be_followed(tmp_path):
    toml, _ = write_case(tmp_path, 60)
    contract = read_contract(toml)
    store = Store(tmp_path / "old.db")
    run = begin(Folder(tmp_path), store, contract.plan(), contract.digest)
    with pytest.raises(InvalidInput, match="has released nothing"):
        renewal_of(store, run.saved, 1e-6, seeded=False)


def test_a_served_stream_is_renewed_by_its_server(case):
    made = case("one")
    old = Store(made.place["old"])
    closing = old.load("old")
    served = replace(closing, about={**closing.about, "served": True})
    with pytest.raises(InvalidInput, match=r"learns by taciturn serve.*POST /v1/streams/old/renew"):
        renew(old, served, Folder(made.path / "new"), old, made.contract.plan(), made.contract.digest, delta=1e-6)
    assert not old.load("old").closed
