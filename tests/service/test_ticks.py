"""Ticks: all streams are read at once, and shown at once; a slow one shows; limits on how many streams are shown."""

import logging
import resource
import threading
import time
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from served import NAME, Client, Limits, declared, service_at, set_clock, some_rows
from taciturn.accounting.ledger import Ledger
from taciturn.cli.app import app
from taciturn.contract.contract import contract_of
from taciturn.errors import StateConflict
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.service.host import Host
from taciturn.service.server import running
from taciturn.service.service import RequestConflict, Service
from taciturn.store import Store
from taciturn.store.database import Database


def many_at(folder, count, *, witness=True, **settings):
    """A service with many streams, and a client that has let each of them release."""
    store = Store(folder / "streams.db", witness=folder / "witness.db" if witness else None)
    service = Service(store, **settings)
    contract = contract_of(declared())
    for number in range(count):
        service.create(f"s{number}", contract)
    return service


def learnt_by_all(client, count, key="k", rows=10):
    for number in range(count):
        assert client.learn(some_rows(rows), key, f"s{number}").status_code == 200


def test_a_tick_reads_all_streams_in_one_transaction(tmp_path, monkeypatch):
    """And the witness in one more, however many streams show more."""
    service = many_at(tmp_path, 12)
    counted, transaction = [], Database.transaction

    def count(database, write=True, changes=True):
        if threading.current_thread() is threading.main_thread():  # and not the one that reads tokens
            counted.append((database is service.store.database, write))
        return transaction(database, write, changes)

    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        service.refresh()
        learnt_by_all(client, 12)
        monkeypatch.setattr(Database, "transaction", count)
        assert len(next_tick(2)) == 12
        monkeypatch.undo()
    assert counted == [(False, False), (True, False)]  # the witness first: what is committed meanwhile is ahead of it


def test_a_witness_that_was_not_told_is_told_before_a_release_is_shown(tmp_path):
    """The process that committed it was stopped before it could."""
    service = many_at(tmp_path, 2)
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        service.refresh()
        learnt_by_all(client, 2)
        with Database(tmp_path / "witness.db").transaction() as now:
            lineage, chain = _before("s0", service)
            now.execute("UPDATE witnessed SET generation = 0, chain = ? WHERE subject = ?", chain, lineage)
        assert sorted(next_tick(2)) == ["s0", "s1"]
    with Database(tmp_path / "witness.db").transaction(write=False) as now:
        assert now.rows("SELECT generation FROM witnessed WHERE subject = ?", lineage) == [(1,)]


def test_a_stream_that_was_adopted_takes_the_place_of_the_first_where_no_more_are_shown(tmp_path, caplog):
    service = many_at(tmp_path, 2, witness=False, limits=Limits(streams=2))
    service.refresh()
    made = Store(tmp_path / "streams.db").adopt("s1")
    service.refresh()
    assert not caplog.text
    assert service.host("s1").lineage == made.lineage
    service.close()


def test_nothing_is_shown_of_a_store_of_which_a_stream_went_on_without_its_witness(tmp_path):
    """As when it is opened."""
    service = many_at(tmp_path, 2)
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        service.refresh()
        learnt_by_all(client, 2)
        with Database(tmp_path / "witness.db").transaction() as now:
            lineage, _ = _before("s1", service)
            now.execute("UPDATE witnessed SET generation = 0, chain = 'another' WHERE subject = ?", lineage)
        assert next_tick(2) == []
        assert "s1 is at 1, and the witness has seen 0" in service.replaced


def _before(name, service):
    """The lineage of a stream, and its chain before its last commit."""
    with service.store.database.transaction(write=False) as now:
        [row] = now.rows("SELECT lineage, previous FROM streams WHERE name = ?", name)
    return row


def test_views_of_all_streams_are_replaced_together(tmp_path, monkeypatch):
    """No stream shows more before all of them are read."""
    service = many_at(tmp_path, 3, witness=False)
    following, seen = Host.following_view, []

    def looked_at(host, tick, found):
        seen.append([each.view.k for each in service.open_hosts()])
        return following(host, tick, found)

    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        learnt_by_all(client, 3)
        monkeypatch.setattr(Host, "following_view", looked_at)
        assert next_tick(2) == ["s0", "s1", "s2"]
        assert seen == [[0, 0, 0]] * 3
        assert [each.view.k for each in service.open_hosts()] == [1, 1, 1]
        assert len({each.view.tick for each in service.open_hosts()}) == 1


def stuck(service, monkeypatch):
    """Let ticks wait until an event is set."""
    at_tick, go_on = service.store.at_tick, threading.Event()

    def wait(*arguments):
        go_on.wait(20.0)
        return at_tick(*arguments)

    monkeypatch.setattr(service.store, "at_tick", wait)
    return go_on


def test_a_token_that_is_revoked_ends_while_a_tick_is_long(tmp_path, monkeypatch):
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        go_on = stuck(service, monkeypatch)
        time.sleep(0.2)
        other = Service(Store(tmp_path / "streams.db"))
        other.tokens.revoke(other.tokens.list()[0].id)
        other.close()
        until = time.monotonic() + 10.0
        while client.get("/v1/streams").status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.02)
        go_on.set()


def test_a_slow_tick_is_told_and_shows(tmp_path, monkeypatch, caplog):
    service, secret = service_at(tmp_path / "streams.db", tick=0.05)
    with running(service) as address:
        client = Client(address, secret)
        go_on = stuck(service, monkeypatch)
        until = time.monotonic() + 10.0
        while "a tick takes longer than 2 periods of the clock" not in caplog.text:
            assert time.monotonic() < until
            time.sleep(0.02)
        time.sleep(0.3)
        lines = client.get("/metrics").text.splitlines()
        go_on.set()
    [age] = [line.split()[1] for line in lines if line.startswith("taciturn_operator_tick_age_seconds ")]
    assert float(age) > 0.3


# How many streams.


def test_streams_that_have_ended_are_not_counted(tmp_path):
    service, _ = service_at(tmp_path / "streams.db", limits=Limits(streams=2))
    for number in range(4):
        service.create(f"s{number}", contract_of(declared()))
        service.refresh()
        service.close_stream(f"s{number}")
        service.refresh()
    service.create("last", contract_of(declared()))
    with pytest.raises(RequestConflict, match="2 streams that have not ended, and holds no more"):
        service.create("more", contract_of(declared()))
    service.close()
    again = Service(Store(tmp_path / "streams.db"), limits=Limits(streams=2))
    again.refresh()
    assert len(again.open_hosts()) == 6
    assert again.unreadable() == []
    again.close()


def test_streams_beyond_the_limit_are_told(tmp_path, caplog):
    """They are listed as unreadable, told once, and shown when there is room."""
    service = many_at(tmp_path, 5, witness=False)
    service.close()
    few = Service(Store(tmp_path / "streams.db"), limits=Limits(streams=3))
    with caplog.at_level(logging.ERROR, "taciturn"):
        for _ in range(3):
            few.refresh()
    assert few.unreadable() == ["s3", "s4"]
    assert caplog.text.count("is not shown on: this server shows 3 streams that have not ended") == 2
    few.close_stream("s0")
    few.refresh()
    few.refresh()
    assert len(few.unreadable()) == 1
    few.close()


def test_an_archived_stream_is_shown_no_more_and_stays_in_its_ledger(tmp_path):
    """Its state, requests and events are erased; its releases and its line stay; the witness agrees."""
    path, witness = tmp_path / "streams.db", tmp_path / "witness.db"
    Ledger.create(path, Privacy(2.0, 1e-6), population="people")
    service = Service(Store(path, witness=witness))
    service.create(NAME, contract_of(declared()), "people")
    service.create("two", contract_of(declared()))
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        assert client.learn(some_rows(20), "k").status_code == 200
        next_tick(2)
        command = ["store", "archive", str(path), NAME, "--witness", str(witness), "--yes"]
        early = CliRunner().invoke(app, command)
        assert early.exit_code != 0
        assert "has not ended" in str(early.exception)
        assert client.post(f"/v1/streams/{NAME}/close").status_code == 200
        lineage = service.host(NAME).lineage
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert "2 releases stay" in done.output
        next_tick()
        assert client.get(f"/v1/streams/{NAME}").status_code == 404
        assert [each["name"] for each in client.get("/v1/streams").json()["streams"]] == ["two"]
        assert client.get("/v1/ledgers/people").json()["lines"][0]["lineage"] == lineage
        with pytest.raises(StateConflict, match="already"):
            service.create(NAME, contract_of(declared()))
    store = Store(path, witness=witness)  # which the witness accepts
    saved = store.load(NAME)
    assert (saved.state, saved.input, saved.position[2]) == (b"", b"", 2)
    assert sum(chunk.last - chunk.first + 1 for chunk in store.releases(NAME)) == 2
    assert store.ledger("people").lines[lineage].closed
    assert store.ledger("people").verify().faults == []
    with store.database.transaction(write=False) as now:
        for table in ("requests", "leases", "layers", "stream_events"):
            assert now.rows(f"SELECT count(*) FROM {table} WHERE lineage = ?", lineage) == [(0,)]


def test_an_archived_stream_stays_encrypted(tmp_path, monkeypatch):
    monkeypatch.setenv("TACITURN_KEY", "ab" * 32)
    service, _ = service_at(tmp_path / "streams.db")
    service.refresh()
    service.close_stream(NAME)
    service.store.archive(NAME)
    (tmp_path / "new").write_bytes(b"n" * 32)
    (tmp_path / "new").chmod(0o600)
    assert service.store.rotate_key(tmp_path / "new") == 1
    assert service.store.load(NAME).state == b""
    service.close()


def used_at(folder, count):
    """What a server with so many streams takes: seconds of its start and of a tick, bytes, and its metrics."""
    many_at(folder, count).close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    service = Service(Store(folder / "streams.db", witness=folder / "witness.db"))
    service.refresh()
    started = time.monotonic() - began
    with set_clock(service) as next_tick, running(service) as address:
        client = Client(address, service.tokens.create(["admin"])[1])
        next_tick()
        idle = service.last_tick.seconds
        learnt_by_all(client, count)
        assert len(next_tick(2)) == count
        busy = service.last_tick.seconds
        began = time.monotonic()
        text = client.get("/metrics").text
        shown = time.monotonic() - began
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert text.count("taciturn_stream_releases{") == count
    return SimpleNamespace(start=started, idle=idle, busy=busy, metrics=shown, each=grown / count)


def test_a_hundred_streams(tmp_path):
    """The figures of a thousand, by the same code."""
    used = used_at(tmp_path, 100)
    assert used.busy < 10.0


@pytest.mark.slow
def test_a_thousand_streams(tmp_path):
    used = used_at(tmp_path, 1_000)
    print(used)  # noqa: T201  (for pytest -rP)
    assert used.start < 60.0
    assert used.idle < 1.0
    assert used.busy < 10.0
    assert used.metrics < 5.0
    assert used.each < 2**20
