"""Events in a database: the rules of those in memory, and a stream that is closed, is adopted, or gets another key."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from memory_folder import memory_folder  # noqa: F401 - a fixture
from taciturn import L2Ball, Logistic, Privacy, Problem, pigd
from taciturn.core.events import EventConflict, EventEnded, MemoryLog, UnknownEvent
from taciturn.errors import StateConflict, StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Closing, Event, Opening, Store
from taciturn.store.encryption import new_key
from taciturn.store.events import EventLog

pytestmark = pytest.mark.privacy

NAME, LINEAGE = "clicks", "a"
HOUR = 3_600_000


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, memory):
    if request.param == "sqlite":
        return str(memory / "shared.db")
    return request.getfixturevalue("server").new_database()


def stream_of_events(address, **settings):
    private = pigd(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5), Privacy(1.0, 1e-6), 10)
    state = replace(private.start(), lineage=LINEAGE, token="0").to_bytes()
    store = Store(address, **settings)
    given = {"position": (0, 0, 0, "0"), "reserved": gaussian(0.01), "about": {"events": True}}
    store.create(NAME, lineage=LINEAGE, state=state, **given)
    return store


def opened_during(monkeypatch, store, other):
    """Open and label an event, and begin something else after this transaction has looked at the stream.

    That waits until the transaction is over; it would take a few milliseconds.
    """
    look = EventLog._stream
    begun = []

    def slow(self, now):
        seen = look(self, now)
        if not begun:
            begun.append(threading.Thread(target=other))
            begun[0].start()
            begun[0].join(0.25)
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(EventLog, "_stream", slow)
        [made], _ = store.events(LINEAGE).exchange([Opening(b"id", b"", b"row")], [Closing(b"id", b"", b"yes")], wait=0)
    begun[0].join()
    return made


def test_an_event_is_stored_by_the_key_that_its_stream_has(address, memory, monkeypatch):
    """Otherwise nobody could read it any more, and the stream would wait for it for ever."""
    new_key(memory / "old key")
    new_key(memory / "new key")
    store = stream_of_events(address, key=memory / "old key")
    other = Store(address, key=memory / "old key")
    assert opened_during(monkeypatch, store, lambda: other.rotate_key(memory / "new key")).number == 1
    assert Store(address, key=memory / "new key").events(LINEAGE).seal() == [Event(1, b"row", None)]


def test_a_closed_stream_has_no_event_that_is_not_erased(address, monkeypatch):
    store, other = stream_of_events(address), Store(address)
    opened_during(monkeypatch, store, lambda: other.close(other.load(NAME)))
    with store.database.transaction(write=False) as now:
        assert now.rows("SELECT number FROM stream_events") == []


def test_an_event_is_opened_in_the_stream_that_goes_on(address, monkeypatch):
    store, other = stream_of_events(address), Store(address)
    assert opened_during(monkeypatch, store, lambda: other.adopt(NAME)).number == 1
    assert [each.content for each in store.events(store.load(NAME).lineage).seal()] == [b"row"]


def test_events_that_are_due_after_a_time_are_left(address):
    store = stream_of_events(address)
    log = store.events(LINEAGE)
    for number in range(3):
        log.exchange([Opening(b"%d" % number, b"", b"row")], wait=-1000 * (3 - number))
    first, second, _ = (int(due) for (due,) in store_rows(store, "SELECT due FROM stream_events ORDER BY number"))
    assert [log.waits(by) for by in (None, first - 1, first, log.time())] == [True, False, True, True]
    assert log.seal(by=first - 1) == []
    assert [each.number for each in log.seal(by=second)] == [1, 2]
    assert [each.number for each in log.seal(by=first)] == [1, 2]  # they are sealed, and stay so
    assert [each.number for each in log.seal()] == [1, 2, 3]


def store_rows(store, sql):
    with store.database.transaction(write=False) as now:
        return now.rows(sql)


def test_an_event_that_is_said_to_be_new_is_not_opened_twice(address):
    """An id of another event is an error for all, and opens nothing."""
    store = stream_of_events(address)
    log = store.events(LINEAGE)
    [made], _ = log.exchange([Opening(b"a", b"", b"row", new=True)], wait=HOUR)
    assert made.number == 1
    with pytest.raises(StoreUnavailable):
        log.exchange([Opening(b"b", b"", b"row"), Opening(b"a", b"", b"row", new=True)], wait=HOUR)
    assert log.opened == 1
    [again], _ = log.exchange([Opening(b"a", b"", b"row")], wait=HOUR)
    assert again.number == 1


@pytest.mark.parametrize("seed", range(3))
def test_in_memory_and_in_a_database_the_same_rules_hold(memory, seed):
    """Events that are opened, closed, sealed and learnt at random have the same labels at the same rounds."""
    rng = np.random.default_rng(seed)
    store = stream_of_events(str(memory / "shared.db"))
    stored, held, saved = store.events(LINEAGE), MemoryLog({"x": np.empty(0)}, "y"), store.load(NAME)
    outcomes = []
    for _ in range(200):
        progress, step = held.progress, rng.choice(["open", "close", "wait", "learn"], p=[0.25, 0.5, 0.125, 0.125])
        if step == "open":
            number = progress.opened + 1
            stored.exchange([Opening(b"%d" % number, b"", b"%d" % number)], wait=HOUR)
            held.open([number])
        elif step == "close":
            number, label = rng.integers([0, 0], [progress.opened + 2, 1000]).tolist()
            try:
                _, ended, again = held.close(np.array([number]), np.array([float(label)]))
                expected = EventEnded if ended[0] else EventConflict if again[0] else int
            except UnknownEvent:
                expected = UnknownEvent
            [outcome] = stored.exchange([], [Closing(b"%d" % number, b"%d" % len(outcomes), b"%d" % label)])[1]
            outcomes.append(expected)
            # of a label that comes late and a second time, one says the one and the other the other
            assert type(outcome) in ((EventEnded, EventConflict) if expected is EventEnded else (expected,))
        elif step == "wait":
            over = min(progress.sealed + 3, progress.opened)
            ago = stored.time() - 1000
            with store.database.transaction() as now:
                now.execute("UPDATE stream_events SET due = ? WHERE number <= ?", ago, over)
            held.seal(over)
        else:
            labels, x = held.sealed()
            found = [(float(each.content), float(each.label or "nan")) for each in stored.seal()]
            expected = zip(x.tolist(), labels.tolist(), strict=True)
            assert np.array_equal(found, list(expected), equal_nan=True)
            t = int(rng.integers(progress.learnt, progress.sealed + 2))
            generation = saved.position[0] + 1
            made = {"position": (generation, t, 0, str(generation)), "spent": FREE, "state": b""}
            if t > progress.sealed:
                with pytest.raises(StateConflict, match="not sealed"):
                    held.learn(t)
                with pytest.raises(StateConflict, match="not sealed"):
                    store.commit(saved, **made)
            else:
                saved = store.commit(saved, **made)
                held.learn(t)
    assert {int, EventEnded, EventConflict, UnknownEvent} == set(outcomes)
    assert held.progress.learnt > 5
