"""The store: lost commits, ledgers and witnesses that are away, streams that are adopted."""

from __future__ import annotations

import threading

import pytest

from store.faults import lost_commit, writing
from taciturn import L2Ball, Ledger, Logistic, Privacy, Problem, StateConflict, pigd
from taciturn.errors import InvalidInput, StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, gaussian, total
from taciturn.kernel.stream.state import read_state
from taciturn.store import Chunk, Saved, Store
from taciturn.store.database import Database, OutcomeUnknown
from taciturn.store.postgres import Postgres

BUDGET = Privacy(1.0, 1e-6)
COST = gaussian(0.01)


def create(store, name="stream", **settings):
    given = {"lineage": f"lineage of {name}", "position": (0, 0, 0, "0"), "reserved": COST, "state": b"0"}
    return store.create(name, **(given | settings))


def commit(store, saved, token="1", **settings):
    number = saved.position[0] + 1
    given = {"position": (number, number, number, token), "spent": gaussian(0.001, number), "state": b"1"}
    return store.commit(saved, releases=[Chunk(number, number, number, token.encode())], **(given | settings))


# COMMIT fails: it is read back, and never repeated blindly.


@pytest.fixture
def place(request, tmp_path):
    """An address, and the class of its backend."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres")(), Postgres
    from taciturn.store.sqlite import Sqlite

    return str(tmp_path / "stream.db"), Sqlite


PLACES = pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)


@PLACES
@pytest.mark.privacy
@pytest.mark.parametrize("took_effect", [True, False])
def test_a_commit_whose_answer_was_lost(place, took_effect, monkeypatch):
    """It is the newest state if it took effect; otherwise nothing was stored, and it may be repeated."""
    address, backend = place
    store = Store(address)
    ledger = Ledger.create(address, BUDGET)
    saved = create(store, ledger=ledger)
    with lost_commit(monkeypatch, backend, took_effect):
        if took_effect:
            new = commit(store, saved)
        else:
            with pytest.raises(StoreUnavailable, match="Nothing was committed"):
                commit(store, saved)
    if not took_effect:
        assert (store.load("stream"), list(store.releases("stream")), ledger.spent) == (saved, [], FREE)
        new = commit(store, saved)
    assert store.load("stream") == new
    assert len(list(store.releases("stream"))) == 1
    assert ledger.spent == new.spent


@PLACES
@pytest.mark.privacy
@pytest.mark.parametrize("took_effect", [True, False])
def test_a_creation_whose_answer_was_lost(place, took_effect, monkeypatch):
    address, backend = place
    store = Store(address)
    ledger = Ledger.create(address, BUDGET)
    with lost_commit(monkeypatch, backend, took_effect):
        if took_effect:
            saved = create(store, ledger=ledger)
        else:
            with pytest.raises(StoreUnavailable, match="Nothing was committed"):
                create(store, ledger=ledger)
    if not took_effect:
        assert (store.names(), ledger.reserved) == ([], FREE)
        saved = create(store, ledger=ledger)
    assert store.load("stream") == saved
    assert ledger.reserved == COST


@pytest.mark.privacy
def test_another_process_that_went_on_meanwhile_is_a_conflict(tmp_path, monkeypatch):
    """Whether the lost commit took effect or not: this process cannot go on."""
    store = Store(tmp_path / "stream.db")
    saved = create(store)

    def go_on():
        other = Store(tmp_path / "stream.db")
        commit(other, other.load("stream"), token="other")

    with lost_commit(monkeypatch, then=go_on), pytest.raises(StateConflict, match="another process went on"):
        commit(store, saved)
    assert [chunk.content for chunk in store.releases("stream")] == [b"1", b"other"]


@pytest.mark.privacy
def test_a_creation_in_doubt_is_waited_for(postgres, monkeypatch):
    """A row that is not committed yet cannot be seen: the one who reads back must wait for its transaction."""
    address = postgres()
    store, other = Store(address), Store(address)
    inside, answered = threading.Event(), threading.Event()
    slow, writes = Postgres.commit, writing(monkeypatch, Postgres)

    def late(self, connection):
        if self is other.database.backend and id(connection) in writes and not answered.is_set():
            inside.set()
            answered.wait(5)
        slow(self, connection)

    monkeypatch.setattr(Postgres, "commit", late)
    thread = threading.Thread(target=create, args=(other,))
    thread.start()
    inside.wait(5)
    threading.Timer(0.3, answered.set).start()
    expected = Saved("stream", "lineage of stream", (0, 0, 0, "0"), COST, FREE, b"0", b"", {}, "")
    store._read_back(None, expected, OutcomeUnknown("lost"))  # raises if it does not wait
    thread.join()


# Ledgers elsewhere.


@pytest.mark.privacy
def test_a_ledger_that_is_away_is_told_later(tmp_path, monkeypatch):
    """The reservation covers the commits, so they go on."""
    store = Store(tmp_path / "stream.db")
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    saved = create(store, ledger=ledger)

    def away(self, *_):
        raise StoreUnavailable("away. Try again later.")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "record_spent", away)
        saved = commit(store, saved)
    assert ledger.spent == FREE
    saved = commit(store, saved)
    assert ledger.spent == saved.spent


@pytest.mark.privacy
def test_a_ledger_that_forgot_the_stream_is_an_error(tmp_path):
    """It says that the commit was made."""
    store = Store(tmp_path / "stream.db")
    saved = create(store, ledger=Ledger.create(tmp_path / "budget.db", BUDGET))
    with Database(tmp_path / "budget.db").transaction() as now:
        now.execute("DELETE FROM lines")
    with pytest.raises(StateConflict, match=r"generation 1 of stream was committed, and the ledger .* does not"):
        commit(store, saved)
    assert store.load("stream").position[0] == 1


@pytest.mark.privacy
def test_a_lineage_is_reserved_for_one_stream(tmp_path, monkeypatch):
    """A creation that stopped half-way has reserved its cost in vain: nobody knows if another store has the stream."""
    store = Store(tmp_path / "stream.db")
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_insert", interrupt)
        with pytest.raises(KeyboardInterrupt):
            create(store, ledger=ledger)
    assert (store.names(), ledger.reserved) == ([], COST)
    with pytest.raises(StateConflict, match="a lineage is used once"):
        create(store, ledger=ledger)
    with pytest.raises(StateConflict, match="a lineage is used once"):
        create(Store(tmp_path / "other.db"), ledger=ledger)
    assert ledger.reserved == COST


@PLACES
@pytest.mark.privacy
def test_a_lineage_of_another_store_is_not_reserved_by_it(place, tmp_path):
    """The ledger is in the second store's database, and knows the lineage, whose cost was reserved for the first."""
    address, _ = place
    ledger = Ledger.create(address, BUDGET)
    create(Store(tmp_path / "other.db"), ledger=ledger)
    with pytest.raises(StateConflict, match="a lineage is used once"):
        create(Store(address), ledger=ledger)
    assert (Store(address).names(), ledger.reserved) == ([], COST)


def test_what_was_spent_before_is_in_the_ledger(tmp_path):
    """A stream that moves into a store has spent already, in either kind of ledger."""
    store = Store(tmp_path / "stream.db")
    for number, address in enumerate(("stream.db", "budget.db")):
        ledger = Ledger.create(tmp_path / address, BUDGET)
        create(store, f"stream {number}", spent=gaussian(0.004), ledger=ledger)
        assert ledger.spent == gaussian(0.004)


def test_a_file_by_another_name_is_a_ledger_elsewhere(tmp_path):
    """Nothing waits for itself."""
    (tmp_path / "link").symlink_to(tmp_path)
    store = Store(tmp_path / "stream.db")
    ledger = Ledger.create(tmp_path / "link" / "stream.db", BUDGET)
    saved = commit(store, create(store, ledger=ledger))
    assert (ledger.reserved, ledger.spent) == (COST, saved.spent)


# Witnesses that are away.


@pytest.mark.privacy
def test_a_witness_that_is_away_stops_the_show(tmp_path, monkeypatch):
    """The commit was made, nothing may be shown, and the witness is told when the store is opened again."""
    address, witness = tmp_path / "stream.db", tmp_path / "witness.db"
    store = Store(address, witness=witness)
    saved = create(store)
    begin = store._witness._database.backend.begin

    def away(connection, write):
        """From the commit on: before it, the witness is only read."""
        if write:
            raise StoreUnavailable("away. Nothing was committed; try again later.")
        return begin(connection, write)

    with monkeypatch.context() as patched:
        patched.setattr(store._witness._database.backend, "begin", away)
        with pytest.raises(StoreUnavailable, match=r"witness .* could not be told .*Nothing of it may be shown before"):
            commit(store, saved)
        with pytest.raises(StoreUnavailable, match="could not be told"):
            list(store.releases("stream"))
    before = address.read_bytes()
    assert len(list(Store(address, witness=witness).releases("stream"))) == 1
    assert address.read_bytes() == before
    with Database(witness).transaction(write=False) as now:
        assert now.rows("SELECT generation FROM witnessed") == [(1,)]


# The end of a stream, and its adoption.


def test_a_stream_that_is_not_there_cannot_be_closed(tmp_path):
    saved = create(Store(tmp_path / "one.db"))
    with pytest.raises(StateConflict, match="has no stream 'stream' any more"):
        Store(tmp_path / "two.db").close(saved)


@pytest.mark.privacy
def test_an_adopted_stream_is_charged_where_the_first_one_was(tmp_path):
    """Also in a ledger elsewhere, and under the relation of the first."""
    private = pigd(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5, neighbours="zero-out"), Privacy(0.3, 1e-6), 10)
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    state = private.start()
    cost = private.calibrated.cost(None)
    store = Store(tmp_path / "stream.db")
    given = {"lineage": state.lineage, "position": state.position, "state": state.to_bytes(), "reserved": cost}
    store.create("first", **given, neighbours="zero-out", ledger=ledger, settings=private.recorded)
    second = Store(tmp_path / "stream.db").adopt("first")
    assert [line.reserved for line in ledger.lines.values()] == [cost, cost]
    assert [line.closed for name, line in ledger.lines.items() if name != second.lineage] == [True]
    assert ledger.neighbours == second.neighbours == "zero-out"
    assert read_state(second.state).lineage == second.lineage
    assert ledger.verify() == ([], 2, [])
    assert store.names() == ["first", f"first, closed {state.lineage[:8]}"]
    assert store.load("first").earlier == cost
    assert store.adopt("first").earlier == total([cost, cost])


def test_a_ledger_in_memory_is_rejected_before_anything_is_reserved(tmp_path):
    store, ledger = Store(tmp_path / "stream.db"), Ledger(BUDGET)
    with pytest.raises(InvalidInput, match="other processes can find"):
        create(store, ledger=ledger)
    assert (store.names(), ledger.reserved) == ([], FREE)


def test_a_ledger_elsewhere_that_was_given_a_witness_meanwhile_is_opened_again(tmp_path):
    """The commit was made, and what it spent is told to the ledger as it is now."""
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET)
    store = Store(tmp_path / "stream.db")
    saved = create(store, ledger=ledger)
    Ledger(tmp_path / "budget.db", witness=tmp_path / "witness.db")
    with pytest.raises(StateConflict, match="was given a witness"):
        ledger.record_spent(saved.lineage, FREE)
    store.commit(saved, position=(1, 1, 1, "1"), spent=gaussian(0.001), state=b"1")
    assert Ledger(tmp_path / "budget.db").spent == gaussian(0.001)


@PLACES
@pytest.mark.privacy
def test_a_stream_that_goes_on_while_it_is_adopted_is_not_closed(place, monkeypatch):
    """Its newest releases would be in the outbox of a stream that has not made them."""
    address, _ = place
    store, other = Store(address), Store(address)
    private = pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1), BUDGET, horizon=9)
    state = private.start()
    create(store, lineage=state.lineage, position=state.position, state=state.to_bytes())
    read = store.layers

    def meanwhile(saved):
        commit(other, other.load("stream"))
        return read(saved)

    with monkeypatch.context() as patched:
        patched.setattr(store, "layers", meanwhile)
        with pytest.raises(StateConflict, match="or went on"):
            store.adopt("stream")
    assert [(stored.lineage, stored.position[0], stored.closed) for stored in map(store.load, store.names())] == [
        (state.lineage, 1, False)
    ]
