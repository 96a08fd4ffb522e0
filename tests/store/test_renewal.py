"""Ledgers that renew by period: attacks at the border of two periods, each of which a ledger rejects or counts.

Clocks are set by the tests: that of the process, which decides the period of a row, and that of the ledger.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from checks.databases import files, ledger_case
from taciturn import (
    BudgetExhausted,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    Privacy,
    Problem,
    StateConflict,
    Unprovable,
    User,
    pftrl,
    private_sum,
)
from taciturn.accounting import memory_book
from taciturn.checks.ledgers import race
from taciturn.errors import StoreUnavailable
from taciturn.kernel.accounting import unit as units
from taciturn.kernel.accounting.cost import FREE, gaussian, total
from taciturn.kernel.accounting.ledger_rules import EARLIEST, SKEW, Learnt, sums_from
from taciturn.kernel.accounting.unit import period_of
from taciturn.kernel.replay import record_of, records_of
from taciturn.kernel.stream import participation
from taciturn.kernel.stream.participation import UserRecords
from taciturn.kernel.stream.state import read_state
from taciturn.plan import recommend
from taciturn.store import Chunk, Store, database, postgres
from taciturn.store.database import Database, migrations
from taciturn.store.restore import recover

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
HALF_SPENT = Privacy(0.66, 1e-6)  # fits the budget twice, and not three times
UNIT = User(rows=1, period="month")
PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=2)
MONTHLY = "user and month"
OCTOBER, NOVEMBER, DECEMBER = (datetime(2026, month, 10, 12, tzinfo=UTC) for month in (10, 11, 12))
MIDNIGHT = datetime(2026, 11, 1, tzinfo=UTC)


def month(time):
    return period_of("month", time)


class Clocks:
    """The clock of the process, and that of ledgers."""

    def __init__(self, time):
        self.process = self.ledger = time

    def set(self, time):
        self.process = self.ledger = time


@pytest.fixture
def clocks(monkeypatch):
    """In October."""
    clocks = Clocks(OCTOBER)
    monkeypatch.setattr(participation, "utc_now", lambda: clocks.process)
    monkeypatch.setattr(units, "utc_now", lambda: clocks.ledger)
    monkeypatch.setattr(memory_book, "utc_now", lambda: clocks.ledger)
    monkeypatch.setattr(postgres.Postgres, "clock", lambda self, transaction: clocks.ledger)
    return clocks


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request, clocks, tmp_path):
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return ledger_case(request.param, tmp_path, server).create(BUDGET, unit=MONTHLY, renews=True)


def half(horizon=100, unit=UNIT):
    """A stream that costs about half of the budget."""
    return private_sum(1, 1.0, HALF_SPENT, horizon=horizon, unit=unit)


ROW = [[1.0]]
COST = half().total_cost


def learn(private, state, user="anna", **when):
    return private.run(state, ROW, users=[user], **when)


def rejected(work, error=BudgetExhausted):
    with pytest.raises(error):
        work()
    return True


# The ordinary course of years.


def test_a_service_goes_on_for_years(ledger, clocks):
    """Two models every month, each closed after it; a third is rejected in every month."""
    time = OCTOBER
    for _ in range(14):
        clocks.set(time)
        for _ in range(2):
            private = half()
            state, releases = learn(private, private.start(ledger))
            assert len(releases) == 1
            ledger.close(state.lineage)
        assert rejected(lambda: half().start(ledger))
        time = (time.replace(day=1) + timedelta(days=40)).replace(day=10)
    assert list(ledger.by_period().values()) == [total([COST, COST])] * 14
    assert list(ledger.by_period())[:4] == ["2026-10", "2026-11", "2026-12", "2027-01"]
    assert ledger.verify().ok


def test_without_renewal_the_budget_ends(clocks):
    ledger = Ledger(BUDGET, unit=MONTHLY)
    for _ in range(2):
        ledger.close(half().start(ledger).lineage)
    clocks.set(NOVEMBER)
    assert rejected(lambda: half().start(ledger))
    assert (ledger.renews, ledger.period, ledger.by_period()) == (False, None, {})


def test_a_stream_that_learns_after_the_border_counts_there(ledger, clocks):
    private = half()
    state = private.start(ledger)
    private_too = half()
    idle = private_too.start(ledger)
    clocks.set(NOVEMBER)
    state, releases = learn(private, state)
    assert len(releases) == 1
    assert ledger.reserved == total([COST, COST])
    assert rejected(lambda: half().start(ledger))
    ledger.close(idle.lineage)  # without a row in November
    assert ledger.reserved == COST
    ledger.close(state.lineage)
    assert ledger.reserved == COST
    half().start(ledger)


def test_a_fit_counts_in_its_month_alone(ledger, clocks):
    for _ in range(2):
        half(horizon=1).fit(ROW, ledger=ledger, users=["anna"])
    assert rejected(lambda: half(horizon=1).fit(ROW, ledger=ledger, users=["anna"]))
    clocks.set(NOVEMBER)
    assert ledger.reserved == FREE
    half(horizon=2).fit(ROW, ledger=ledger, users=["anna"])  # fewer rows than its horizon: nobody can go on with it
    clocks.set(DECEMBER)
    assert ledger.reserved == FREE


def test_streams_without_periods_count_while_they_are_open(ledger, clocks):
    private = half(unit=User(rows=1))
    state, _ = learn(private, private.start(ledger))
    clocks.set(NOVEMBER)
    assert ledger.reserved == COST
    state, _ = learn(private, state, "bob")
    ledger.close(state.lineage)
    assert ledger.reserved == COST
    clocks.set(DECEMBER)
    assert ledger.reserved == FREE
    line = ledger.lines[state.lineage]
    assert (line.first, line.last) == (month(OCTOBER), month(NOVEMBER))


# Attack 1: rows that are learnt before a border, and reserved or committed after it.


def test_rows_prepared_before_a_border_count_in_their_own_month(ledger, clocks):
    private = half()
    prepared = private.prepare(private.start(ledger), ROW, users=["anna"])
    clocks.set(MIDNIGHT + timedelta(hours=1))
    private.commit(prepared)
    line = ledger.lines[prepared.state.lineage]
    assert (line.first, line.last) == (month(OCTOBER), month(OCTOBER))
    state, _ = learn(private, prepared.state)  # anna's row of November counts, too
    assert record_of(state.users, "anna")["count"] == 1
    assert ledger.lines[state.lineage].last == month(NOVEMBER)


def test_rows_prepared_before_the_stream_was_opened_are_rejected(ledger, clocks):
    """October may be full by then."""
    private = half()
    draft = private.draft()
    prepared = private.prepare(draft, ROW, users=["anna"])
    for _ in range(2):
        half(horizon=1).fit(ROW, ledger=ledger, users=["anna"])
    clocks.set(NOVEMBER)
    private.open(draft, ledger)
    with pytest.raises(StateConflict, match="counts from 2026-11 on, and has rows of an earlier period"):
        private.commit(prepared)
    state, releases = learn(private, draft)  # the draft is live, and learns them in November
    assert len(releases) == 1
    assert ledger.lines[state.lineage].first == month(NOVEMBER)


@pytest.mark.parametrize("unit", [UNIT, User(rows=1)], ids=["month", "user"])
def test_a_fit_counts_where_the_ledger_is(ledger, clocks, unit):
    """A process whose clock is months behind, or another number of them each time, finds no room in old months."""
    for process in (OCTOBER, datetime(2019, 1, 1, tzinfo=UTC)):
        clocks.process = process
        half(horizon=1, unit=unit).fit(ROW, ledger=ledger, users=["anna"])
    clocks.process = datetime(2018, 1, 1, tzinfo=UTC)
    with pytest.raises(BudgetExhausted, match="is left in 2026-10"):
        half(horizon=1, unit=unit).fit(ROW, ledger=ledger, users=["anna"])
    clocks.set(NOVEMBER)
    assert ledger.reserved == FREE


def test_a_fit_with_stages_counts_in_its_month_alone(clocks):
    ledger = Ledger(BUDGET, unit=MONTHLY, renews=True)
    private = recommend(PROBLEM, HALF_SPENT, horizon=2000, ranges="private", unit=User(rows=1)).private
    X = np.random.default_rng(1).normal(size=(2000, 2))
    for _ in range(2):
        private.fit(X, np.sign(X[:, 0]), ledger=ledger, users=np.arange(2000))
    [*lines] = ledger.lines.values()
    assert {(line.first, line.last, line.finished) for line in lines} == {(month(OCTOBER), month(OCTOBER), True)}
    clocks.set(NOVEMBER)
    assert ledger.reserved == FREE


def test_rows_that_wait_for_more_than_a_period_are_rejected(ledger, clocks):
    private = half()
    prepared = private.prepare(private.start(ledger), ROW, users=["anna"])
    clocks.set(DECEMBER)
    with pytest.raises(StateConflict, match="learnt in 2026-10, and the ledger is in 2026-12"):
        private.commit(prepared)
    learn(private, prepared.used)


# Attack 2: a clock that is set back.


def test_a_clock_that_is_set_back_gives_no_room(ledger, clocks):
    """What is opened in October counts in November as well, which is full."""
    clocks.set(NOVEMBER)
    for _ in range(2):
        half(horizon=1).fit(ROW, ledger=ledger, users=["anna"])
    clocks.set(OCTOBER)
    assert ledger.left < HALF_SPENT.epsilon
    with pytest.raises(BudgetExhausted, match="is left in 2026-11"):
        half().start(ledger)


def test_a_stream_that_is_closed_by_a_clock_that_was_set_back_counts_where_its_rows_are(ledger, clocks):
    private = half()
    state = private.start(ledger)
    clocks.set(NOVEMBER)
    state, _ = learn(private, state)
    clocks.set(OCTOBER)
    state, _ = learn(private, state)  # the stream stays in November
    assert record_of(state.users, "anna") == {"period": month(NOVEMBER), "count": 1, "block": 1, "here": 1}
    ledger.close(state.lineage)
    clocks.set(NOVEMBER)
    assert ledger.reserved == COST


def test_a_clock_that_was_far_ahead_stops_nothing_for_ever(ledger, clocks):
    """Streams go on, and others are opened, once it is set right."""
    private = half()
    state = private.start(ledger)
    clocks.ledger = datetime(2099, 1, 1, tzinfo=UTC)
    assert rejected(lambda: learn(private, state), StateConflict)
    ledger.charge(gaussian(1e-6), unit=MONTHLY)
    clocks.set(NOVEMBER)
    assert ledger.reserved == COST
    learn(private, state)
    learn(private, half().start(ledger))


# Attack 3: processes whose clocks differ from that of the ledger.


def test_a_process_whose_clock_is_ahead_is_rejected(ledger, clocks):
    private = half()
    state = private.start(ledger)
    clocks.process = NOVEMBER
    with pytest.raises(StateConflict, match=r"learnt in 2026-11, and the ledger is in 2026-10\. .*set the clock"):
        learn(private, state)
    assert ledger.lines[state.lineage].spent == FREE
    clocks.process = OCTOBER
    learn(private, state)


def test_a_process_that_is_ahead_by_seconds_counts_in_the_next_period(ledger, clocks):
    private = half()
    state = private.start(ledger)
    clocks.ledger, clocks.process = MIDNIGHT - SKEW / 2, MIDNIGHT + timedelta(seconds=1)
    state, _ = learn(private, state)
    ledger.close(state.lineage)
    clocks.set(NOVEMBER)
    assert ledger.reserved == COST


def test_a_process_whose_clock_is_behind_is_rejected_where_the_stream_does_not_count(ledger, clocks):
    clocks.ledger = NOVEMBER
    private = half()
    state = private.start(ledger)
    assert rejected(lambda: learn(private, state), StateConflict)
    clocks.process = NOVEMBER
    learn(private, state)


def test_dates_of_rows_are_no_clock(ledger, clocks):
    """A year of old rows is learnt today, each with its own date as the time: they would be twelve months' worth."""
    private = half()
    state = private.start(ledger)
    for number in range(1, 10):
        when = datetime(2026, number, 1)
        assert rejected(lambda when=when: learn(private, state, now=when), StateConflict)
    assert rejected(lambda: learn(private, state, now=datetime(2027, 1, 1)), StateConflict)
    clocks.set(datetime(2027, 5, 1, tzinfo=UTC))
    assert rejected(lambda: learn(private, state, now=datetime(2026, 12, 1)), StateConflict)
    learn(private, state, now=datetime(2027, 4, 30, 23, 59))  # before the border


def test_postgresql_has_the_clock_of_its_server(postgres, monkeypatch):
    ledger = Ledger.create(postgres(), BUDGET, unit="user and day", renews=True)
    monkeypatch.setattr(units, "utc_now", lambda: datetime(2030, 1, 1, tzinfo=UTC))
    today = datetime.now(UTC).toordinal()
    assert ledger.period in (today - 1, today, today + 1)


# Attack 4: a process that is killed between the reservation and the commit.


@pytest.fixture
def elsewhere(clocks, tmp_path):
    """A store, and a ledger in another database."""
    new = files(tmp_path)
    return Store(new()), Ledger.create(new(), BUDGET, unit=MONTHLY, renews=True)


def create(store, ledger, private, name="stream"):
    state = private.start()
    saved = store.create(
        name,
        lineage=state.lineage,
        position=state.position,
        reserved=private.total_cost,
        state=state.to_bytes(layers_apart=True),
        unit=private.unit.name,
        ledger=ledger,
        settings=private.recorded,
    )
    return saved, state


def commit(store, saved, private, state, **changes):
    prepared = private.prepare(state, ROW, users=["anna"])
    new = prepared.state
    layers = {layer.name: None if layer.name in saved.layers else layer.to_bytes() for layer in new.users.layers}
    given = {
        "position": new.position,
        "spent": new.spent,
        "state": new.to_bytes(layers_apart=True),
        "releases": [Chunk(state.k + 1, new.k, new.t, b"1")] if new.k > state.k else [],
        "layers": layers,
        "learnt": private.learnt(new),
    }
    return store.commit(saved, **(given | changes)), new


def test_a_kill_after_the_ledger_held_and_before_the_commit(elsewhere, clocks, monkeypatch):
    store, ledger = elsewhere
    private = half()
    saved, state = create(store, ledger, private)
    clocks.set(NOVEMBER)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_advance", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(store, saved, private, state)
    assert ledger.lines[saved.lineage].last == month(NOVEMBER)  # counted in vain
    saved, state = commit(store, saved, private, state)
    assert saved.position[1] == 1


def test_a_kill_after_the_commit_and_before_the_ledger_is_told(elsewhere, clocks, monkeypatch):
    """The rows count in November although the ledger never heard that they were committed."""
    store, ledger = elsewhere
    private = half()
    saved, state = create(store, ledger, private)
    clocks.set(NOVEMBER)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_mirror", killed)
        with pytest.raises(KeyboardInterrupt):
            commit(store, saved, private, state)
    assert len(list(store.releases("stream"))) == 1
    ledger.close(saved.lineage)
    assert ledger.reserved == COST


def test_a_ledger_elsewhere_that_is_away_is_waited_for(elsewhere, clocks, monkeypatch):
    store, ledger = elsewhere
    private = half()
    saved, state = create(store, ledger, private)

    def away(*_):
        raise StoreUnavailable("away. Try again later.")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "hold", away)
        with pytest.raises(StoreUnavailable):
            commit(store, saved, private, state)
    assert store.load("stream").position == saved.position
    commit(store, saved, private, state)


def test_a_stream_that_is_closed_in_its_ledger_ends_in_a_store_elsewhere(elsewhere, clocks):
    store, ledger = elsewhere
    private = half()
    saved, state = create(store, ledger, private)
    saved, state = commit(store, saved, private, state)
    ledger.close(saved.lineage)
    clocks.set(NOVEMBER)
    assert ledger.reserved == FREE
    assert rejected(lambda: commit(store, saved, private, state), StateConflict)
    assert store.load("stream").position == saved.position


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_with_its_ledger_counts_in_one_transaction(kind, clocks, tmp_path, request):
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "both.db"
    ledger, store = Ledger.create(address, BUDGET, unit=MONTHLY, renews=True), Store(address)
    private = half(horizon=3)
    saved, state = create(store, ledger, private)
    saved, state = commit(store, saved, private, state)
    clocks.process = NOVEMBER
    before = ledger.lines, ledger.history
    assert rejected(lambda: commit(store, saved, private, state), StateConflict)
    assert (ledger.lines, ledger.history, store.load("stream").position) == (*before, saved.position)
    clocks.set(NOVEMBER)
    saved, state = commit(store, saved, private, state)
    saved, state = commit(store, saved, private, state)
    assert [event.kind for event in ledger.history] == ["created", "opened", "finished"]
    assert ledger.reserved == private.total_cost
    clocks.set(DECEMBER)
    assert ledger.reserved == FREE
    assert ledger.verify().ok


def test_a_stream_elsewhere_that_finishes_is_told_of(elsewhere, clocks):
    store, ledger = elsewhere
    private = half(horizon=2)
    saved, state = create(store, ledger, private)
    for _ in range(2):
        saved, state = commit(store, saved, private, state)
    assert ledger.lines[saved.lineage].finished
    clocks.set(NOVEMBER)
    assert ledger.reserved == FREE
    more = {"position": (9, 3, 3, "x"), "spent": saved.spent, "state": b"", "releases": [Chunk(3, 3, 3, b"")]}
    learnt = Learnt(month(OCTOBER), month(NOVEMBER))
    with pytest.raises(StateConflict, match="has released all that it could"):
        store.commit(saved, **more, learnt=learnt)


def test_a_commit_of_a_stream_with_periods_says_which(elsewhere):
    store, ledger = elsewhere
    private = half()
    saved, state = create(store, ledger, private)
    with pytest.raises(InvalidInput, match="does not say in which periods"):
        commit(store, saved, private, state, learnt=Learnt())


# Attack 5: close and open again.


def test_closing_gives_nothing_back_in_the_same_month(ledger, clocks):
    for _ in range(2):
        private = half()
        state, _ = learn(private, private.start(ledger))
        ledger.close(state.lineage)
    assert rejected(lambda: half().start(ledger))
    assert rejected(lambda: ledger.charge(COST, unit=MONTHLY))
    assert ledger.reserved == total([COST, COST])


def test_a_closed_stream_stays_closed_after_the_border(ledger, clocks):
    private = half()
    state, _ = learn(private, private.start(ledger))
    ledger.close(state.lineage)
    clocks.set(NOVEMBER)
    assert rejected(lambda: learn(private, state), StateConflict)
    assert rejected(lambda: private.open(state, ledger), StateConflict)


def test_a_close_that_races_with_a_commit_counts_its_rows_or_rejects_them(ledger, clocks):
    for number in range(20):
        name = f"{number}"
        clocks.set(OCTOBER)
        ledger.open(name, gaussian(1e-6), at=(0, 0, 0, "a"), unit=MONTHLY)
        clocks.set(NOVEMBER)
        learnt = Learnt(month(NOVEMBER), month(NOVEMBER))
        works = [
            lambda name=name, learnt=learnt: ledger.commit(name, (0, 0, 0, "a"), (1, 1, 1, "b"), FREE, learnt),
            lambda name=name: ledger.close(name),
        ]
        committed, closed = race(works)
        line = ledger.lines[name]
        assert (closed, line.closed) == (None, True)
        assert line.holds(month(NOVEMBER)) == (committed is None)
    assert ledger.verify().ok


# Attack 6: a stream that has finished, and is resumed.


def test_a_finished_stream_cannot_go_on(ledger, clocks, tmp_path):
    private = half(horizon=2)
    state, _ = learn(private, private.start(ledger))
    state.dump(tmp_path / "state.npz")
    state, _ = learn(private, state)
    clocks.set(NOVEMBER)
    assert ledger.reserved == FREE
    assert [event.kind for event in ledger.history if event.kind != "created"] == ["opened", "finished"]
    assert rejected(lambda: learn(private, state))  # past the horizon
    assert rejected(lambda: private.load(tmp_path / "state.npz", ledger), StateConflict)  # an old state
    generation, t, k, _ = state.position
    forged = (generation + 1, t + 1, k + 1, "forged")
    periods = Learnt(month(OCTOBER), month(NOVEMBER))
    with pytest.raises(StateConflict, match="has released all that it could"):
        ledger.commit(state.lineage, state.position, forged, state.spent, periods)


# Attack 7: forks, files and adopted streams, which have rows of earlier periods.


def test_a_fork_counts_where_the_rows_of_its_state_are(ledger, clocks):
    private = half()
    state, _ = learn(private, private.start(ledger))
    half(horizon=1).fit(ROW, ledger=ledger, users=["anna"])  # October is full
    clocks.set(NOVEMBER)
    assert ledger.reserved == COST
    with pytest.raises(BudgetExhausted, match="is left in 2026-10"):
        private.fork(state)


def test_a_fork_with_room_counts_twice_in_both_months(ledger, clocks):
    private = half()
    state, _ = learn(private, private.start(ledger))
    clocks.set(NOVEMBER)
    second = private.fork(state)
    assert list(ledger.by_period().values()) == [total([COST, COST])] * 2
    state, _ = learn(private, state)
    assert rejected(lambda: private.fork(state))
    learn(private, second)


def test_a_fork_of_a_stream_without_periods_counts_from_the_beginning(ledger, clocks):
    for _ in range(2):
        half(horizon=1).fit(ROW, ledger=ledger, users=["anna"])
    clocks.set(NOVEMBER)
    private = half(unit=User(rows=1))
    state, _ = learn(private, private.start(ledger))
    with pytest.raises(BudgetExhausted, match="is left in 2026-10"):
        private.fork(state)


def test_a_fork_of_a_stream_without_periods_counts_where_a_clock_was_that_is_set_back(ledger, clocks):
    """Its rows are of November, by the ledger's clock, which is in October as it is forked, released from and ends."""
    private = half(horizon=2, unit=User(rows=1))
    state = private.start(ledger)
    clocks.set(NOVEMBER)
    state, _ = learn(private, state)
    clocks.set(OCTOBER)
    second, releases = learn(private, private.fork(state), "bob")
    assert len(releases) == 1
    assert ledger.lines[second.lineage].finished
    clocks.set(NOVEMBER)
    assert ledger.reserved == total([private.total_cost] * 2)


def test_a_file_from_elsewhere_counts_where_its_rows_are(ledger, clocks, tmp_path):
    for _ in range(2):
        half(horizon=1).fit(ROW, ledger=ledger, users=["anna"])
    private = half()
    state, _ = learn(private, private.start(Ledger()))
    clocks.set(NOVEMBER)
    with pytest.raises(BudgetExhausted, match="is left in 2026-10"):
        private.fork(state, ledger)


def test_a_file_of_an_older_version_counts_from_the_beginning(clocks):
    private = half()
    state, _ = learn(private, private.start())
    arrays = records_of(state.users)
    assert UserRecords.of_arrays(arrays).first == month(OCTOBER)
    assert UserRecords.of_arrays({name: array for name, array in arrays.items() if name != "first"}).first == EARLIEST
    new = records_of(private.start().users)
    assert UserRecords.of_arrays({name: array for name, array in new.items() if name != "first"}).first == 0


def test_an_adopted_stream_counts_where_its_rows_are(clocks, tmp_path):
    address = tmp_path / "both.db"
    ledger, store = Ledger.create(address, BUDGET, unit=MONTHLY, renews=True), Store(address)
    private = half()
    saved, state = create(store, ledger, private)
    saved, state = commit(store, saved, private, state)
    clocks.set(NOVEMBER)
    with store.database.transaction() as now:
        now.execute("UPDATE streams SET state = ?", saved.state)
    second = store.adopt("stream")
    assert list(ledger.by_period().values()) == [total([COST, COST])] * 2
    assert ledger.verify().ok
    assert rejected(lambda: store.adopt("stream"))
    state = read_state(second.state, store.layers(second))
    commit(store, second, private, state)


# Attack 8: restored backups.


def test_what_a_restored_ledger_has_forgotten_counts_up_to_now(clocks, tmp_path):
    address, witness = tmp_path / "budget.db", tmp_path / "witness.db"
    ledger = Ledger.create(address, BUDGET, unit=MONTHLY, renews=True, witness=witness)
    ended, behind = private_sum(1, 1.0, Privacy(0.1, 1e-6), horizon=1, unit=UNIT), half()
    ended.fit(ROW, ledger=ledger, users=["anna"])
    state, _ = learn(behind, behind.start(ledger))
    backup = address.read_bytes()
    clocks.set(NOVEMBER)
    learn(behind, state)
    lost = half(horizon=1)
    lost.fit(ROW, ledger=ledger, users=["anna"])
    address.write_bytes(backup)
    recovered = recover(Database(address), witness)
    assert recovered.charged["people"].mu == pytest.approx(lost.total_cost.mu, rel=1e-12)
    assert recovered.closed == [state.lineage]
    ledger = Ledger(address, witness=witness)
    assert ledger.reserved == total([COST, recovered.charged["people"]])  # also in November, to which lost rows go
    in_october = total([ended.total_cost, COST, recovered.charged["people"]])  # nobody knows where the lost rows are
    assert list(ledger.by_period().values()) == [in_october, ledger.reserved]
    assert rejected(lambda: half().start(ledger))
    assert ledger.verify().ok
    clocks.set(DECEMBER)
    assert ledger.reserved == FREE
    half().start(ledger)


def test_a_backup_of_the_month_before_frees_nothing(clocks, tmp_path):
    """A stream that was closed after the backup is open again, and counts."""
    address = tmp_path / "budget.db"
    ledger = Ledger.create(address, BUDGET, unit=MONTHLY, renews=True)
    private = half()
    state, _ = learn(private, private.start(ledger))
    backup = address.read_bytes()
    ledger.close(state.lineage)
    address.write_bytes(backup)
    clocks.set(NOVEMBER)
    assert Ledger(address).reserved == COST


def test_lost_rows_of_a_process_that_was_ahead_by_seconds_count_in_their_month(clocks, tmp_path):
    """They were learnt and lost shortly before midnight, by a clock that was past it."""
    address, witness = tmp_path / "budget.db", tmp_path / "witness.db"
    ledger = Ledger.create(address, BUDGET, unit=MONTHLY, renews=True, witness=witness)
    private = half()
    state = private.start(ledger)
    backup = address.read_bytes()
    clocks.ledger, clocks.process = MIDNIGHT - SKEW / 2, MIDNIGHT + timedelta(seconds=1)
    learn(private, state)
    fresh, _ = learn(private, private.start(ledger))
    assert fresh.users.period == month(NOVEMBER)
    address.write_bytes(backup)
    recovered = recover(Database(address), witness)
    assert recovered.closed == [state.lineage]
    clocks.set(NOVEMBER)
    assert Ledger(address, witness=witness).reserved.mu == pytest.approx(total([COST, COST]).mu)


# The history, and databases of older versions.


@pytest.fixture
def with_history(clocks, tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", BUDGET, unit=MONTHLY, renews=True)
    ledger.open("open", gaussian(1e-3), unit=MONTHLY)
    ledger.open("closed", gaussian(1e-3), unit=MONTHLY)
    ledger.close("closed")
    ledger.open("finished", gaussian(1e-3), at=(0, 0, 0, "a"), unit=MONTHLY)
    periods = Learnt(month(OCTOBER), month(OCTOBER), finished=True)
    ledger.commit("finished", (0, 0, 0, "a"), (1, 1, 1, "b"), FREE, periods)
    ledger.charge(gaussian(1e-3), unit=MONTHLY)
    assert ledger.verify().ok
    return ledger


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledgers SET renews = 0",
        "UPDATE lines SET first = first + 1 WHERE lineage = 'open'",
        "UPDATE lines SET last = last - 1 WHERE lineage = 'open'",
        "UPDATE lines SET last = last - 1 WHERE lineage = 'closed'",
        "UPDATE lines SET last = last + 1 WHERE lineage = 'finished'",
        "UPDATE lines SET first = NULL, last = NULL WHERE lineage = 'closed'",
        "UPDATE lines SET finished = 1 WHERE lineage = 'open'",
        "UPDATE lines SET finished = 0 WHERE lineage = 'finished'",
        "UPDATE lines SET first = first - 1, last = last - 1 WHERE lineage LIKE 'one-off%'",
        "UPDATE events SET content = replace(content, 'periods', 'other') WHERE lineage = 'open'",
        "UPDATE events SET content = replace(content, '\"periods\": [', '\"periods\": [null, ') WHERE lineage = 'open'",
    ],
)
def test_changed_periods_are_found(change, with_history, tmp_path):
    with Database(tmp_path / "budget.db").transaction() as now:
        assert now.execute(change) >= 1
    assert with_history.verify().faults


def test_a_period_with_too_much_in_it_is_found(with_history, tmp_path):
    """Whatever later periods have; the reservations of others are moved into it."""
    with Database(tmp_path / "budget.db").transaction() as now:
        now.execute("UPDATE lines SET reserved = ? WHERE lineage = 'closed'", "[" + ", ".join(['"0x1p+0"'] * 6) + "]")
    assert any("in period" in fault for fault in with_history.verify().faults)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_database_of_an_older_version_does_not_renew(kind, clocks, tmp_path, request, monkeypatch):
    address = request.getfixturevalue("postgres")() if kind == "postgres" else tmp_path / "budget.db"
    scripts = migrations()
    with monkeypatch.context() as patched:
        patched.setattr(database, "migrations", lambda: scripts[:3])
        with Database(address, create=True).transaction() as now:
            now.execute(
                "INSERT INTO ledgers (population, unit, epsilon, delta, events, chain) VALUES (?, ?, ?, ?, 0, ?)",
                *("people", MONTHLY, (1.0).hex(), (1e-6).hex(), "0" * 64),
            )
            cost = "[" + ", ".join(f'"{part.hex()}"' for part in COST.parts) + "]"
            for lineage in ("a", "b"):
                now.execute(
                    "INSERT INTO lines (lineage, population, reserved, spent, closed) VALUES (?, 'people', ?, ?, 1)",
                    *(lineage, cost, cost),
                )
    clocks.set(DECEMBER)
    ledger = Ledger(address)
    assert not ledger.renews
    assert ledger.reserved == total([COST, COST])
    assert ledger.lines["a"].holds(month(DECEMBER))
    assert rejected(lambda: half().start(ledger))
    with pytest.raises(Unprovable, match="does not renew"):
        Ledger(address, renews=True)


@pytest.mark.parametrize("unit", ["example", "user"])
def test_only_periods_renew(unit, tmp_path):
    with pytest.raises(InvalidInput, match="only the budget of a period renews"):
        Ledger.create(tmp_path / "budget.db", BUDGET, unit=unit, renews=True)
    with pytest.raises(InvalidInput, match="only the budget of a period renews"):
        Ledger(BUDGET, unit=unit, renews=True)


# What a year costs.


def test_a_user_who_stays_pays_in_each_period(ledger, clocks):
    small = Privacy(0.2, 1e-6)
    monthly = pftrl(PROBLEM, small, horizon=1000, unit=UNIT)
    lifetime = pftrl(PROBLEM, small, horizon=1000, unit=User(rows=1))
    once = private_sum(1, 1.0, small, horizon=1, unit=UNIT)
    monthly.start(ledger)
    lifetime.start(ledger)
    once.fit(ROW, ledger=ledger, users=["anna"])
    cost, unknown = ledger.user_over(12)
    assert unknown == []
    assert cost == total([monthly.user_over(12), lifetime.total_cost, once.total_cost])
    assert cost.mu > 8 * monthly.total_cost.mu  # what "per month" alone would hide
    ledger.reserve("without settings", gaussian(1e-6), unit=MONTHLY)
    assert ledger.user_over(12) == (cost, ["without settings"])
    clocks.set(NOVEMBER)
    assert ledger.user_over(12)[0] == total([monthly.user_over(12), lifetime.total_cost])
    assert rejected(lambda: Ledger(BUDGET).user_over(12), InvalidInput)


# All of it together, against a count of rows that knows nothing of the ledger.


@pytest.mark.parametrize("seed", range(6))
def test_no_period_has_more_than_the_budget(seed, clocks):
    """Streams that open, learn, close and fork at random times, under clocks that differ, go ahead and go back.

    For each period, the costs of all streams that have released something which depends on its rows are added here
    from the rows alone: the sum is within the budget, and comes near to it.
    """
    chance = random.Random(seed)
    ledger = Ledger(BUDGET, unit=MONTHLY, renews=True)
    small = Privacy(0.3, 1e-6)
    users = User(rows=2)
    kinds = [private_sum(1, 1.0, small, horizon=n, unit=unit) for n, unit in ((3, UNIT), (50, UNIT), (3, users))]
    time, live, waiting, ended = OCTOBER, [], [], []
    depends: dict[str, set[int]] = {}  # periods of the rows that each stream has released from
    rows: dict[str, frozenset[int]] = {}  # by token, those of all rows in a state
    opened: dict[str, int] = {}
    seen: dict[str, int] = {}

    def with_new_rows(state, prepared):
        """Periods of rows after a commit; those of users without a period follow the ledger's clock."""
        period = prepared.state.users.period
        if not period:
            period = max([month(clocks.ledger), opened[state.lineage], *rows[state.token]])
        return rows[state.token] | {period}

    for _ in range(400):
        time += timedelta(days=chance.choice([0, 0, 1, 6, 20, 45, -25]))
        clocks.ledger = time
        clocks.process = time + timedelta(days=chance.choice([0, 0, 0, -9, 9]))
        what = chance.choice(["open", "open", "learn", "learn", "learn", "prepare", "commit", "close", "fork", "fit"])
        try:
            if what in ("open", "fit"):
                private = chance.choice(kinds)
                if what == "fit":
                    private = kinds[0]
                    private.fit(ROW, ledger=ledger, users=["anna"])
                    lineage = list(ledger.lines)[-1]
                    depends[lineage] = {month(clocks.ledger)}
                else:
                    state = private.start(ledger)
                    rows[state.token] = frozenset()
                    opened[state.lineage] = month(clocks.ledger)
                    live.append((private, state))
            elif what == "commit" and waiting:
                private, prepared = waiting.pop(chance.randrange(len(waiting)))
                private.commit(prepared)
                periods = with_new_rows(prepared.used, prepared)
                rows[prepared.state.token] = periods
                depends.setdefault(prepared.state.lineage, set()).update(periods)
                live = [(p, s) for p, s in live if s.lineage != prepared.state.lineage] + [(private, prepared.state)]
            elif live:
                number = chance.randrange(len(live))
                private, state = live[number]
                if what in ("learn", "prepare"):
                    prepared = private.prepare(state, ROW, users=[chance.choice("ab")])
                    if what == "prepare":
                        waiting.append((private, prepared))
                        continue
                    private.commit(prepared)
                    periods = with_new_rows(state, prepared)
                    rows[prepared.state.token] = periods
                    depends.setdefault(state.lineage, set()).update(periods)
                    live[number] = private, prepared.state
                elif what == "close":
                    ledger.close(state.lineage)
                    ended.append(live.pop(number))
                elif what == "fork":
                    private, state = chance.choice([*live, *ended])
                    second = private.fork(state)
                    rows[second.token] = rows[state.token]
                    opened[second.lineage] = max([month(clocks.ledger), *rows[state.token]])
                    if rows[state.token] and second.k:
                        depends[second.lineage] = set(rows[state.token])
                    live.append((private, second))
            seen[what] = seen.get(what, 0) + 1
        except (BudgetExhausted, StateConflict):
            continue
    by_period: dict[int, list] = {}
    for lineage, periods in depends.items():
        for period in periods:
            by_period.setdefault(period, []).append(ledger.lines[lineage].reserved)
    assert all(total(costs).within(BUDGET) for costs in by_period.values())
    assert max(total(costs).epsilon(1e-6) for costs in by_period.values()) > 0.6
    assert min(seen.get(each, 0) for each in ("open", "learn", "commit", "close", "fork", "fit")) > 0
    assert all(cost.within(BUDGET) for _, cost in sums_from(EARLIEST, ledger.lines.values()))
    assert ledger.verify().ok


def test_the_period_of_a_record_never_goes_back():
    records = participation.new_records(seed=1)
    for periods, span in (([5, 5], (5, 5)), ([3], (5, 5)), ([8], (5, 8))):
        blocks = np.ones(len(periods), dtype=np.int64)
        _, records = participation.admit(UNIT, records, ["anna"] * len(periods), blocks, np.array(periods))
        assert (records.first, records.period) == span
