"""Checks of a store: one transaction commits a stream's state, cost, releases and position, or nothing of them.

They run alike on SQLite and PostgreSQL.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taciturn.accounting.ledger import Ledger
from taciturn.checks.ledgers import BUDGET, HALF, THREADS, position, race, rejects
from taciturn.checks.suite import demand
from taciturn.core.events import EventConflict, EventEnded, UnknownEvent
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, TaciturnError
from taciturn.kernel.accounting.cost import FREE, gaussian, total
from taciturn.kernel.problem.losses import Logistic
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import L2Ball
from taciturn.kernel.stream.state import read_state
from taciturn.methods.recipes import pigd
from taciturn.store.encryption import new_key
from taciturn.store.events import Closing, Event, EventLog, Opened, Opening, TooManyEvents
from taciturn.store.store import Chunk, Saved, Store
from taciturn.store.witness import Witness

_ONE_TRANSACTION = "Write state, spent, releases and the ledger's line in one transaction."


@dataclass(frozen=True, eq=False)
class StoreCase:
    """How to make the store under test.

    Attributes
    ----------
    address : callable
        Gives the address of an empty database, a new one in each call.
    elsewhere : callable, optional
        The same for a second database beside it, for a ledger or a witness; by default `address`.
    store : type
        The class under test.
    """

    address: Callable[[], str]
    elsewhere: Callable[[], str] | None = None
    store: type[Store] = Store

    def fresh(self) -> Store:
        """An empty store."""
        return self.store(self.address())

    def reopen(self, store: Store, **settings: Any) -> Store:
        """The store as another process opens it."""
        return self.store(store.address, **settings)

    def other(self) -> str:
        """The address of an empty database beside the store."""
        return (self.elsewhere or self.address)()


def _created(store: Store, name: str = "stream", **settings: Any) -> Saved:
    given: dict[str, Any] = {
        "lineage": f"lineage of {name}",
        "position": position(0, "0"),
        "reserved": HALF,
        "state": b"0",
    }
    return store.create(name, **(given | settings))


def _committed(store: Store, saved: Saved, **settings: Any) -> Saved:
    """The next generation, with one release."""
    generation = saved.position[0] + 1
    given: dict[str, Any] = {
        "position": position(generation, str(generation)),
        "spent": gaussian(0.001, generation),
        "state": f"state {generation}".encode(),
        "input": f"input {generation}".encode(),
        "releases": [Chunk(generation, generation, generation, f"release {generation}".encode())],
    }
    return store.commit(saved, **(given | settings))


def _leaves_no_trace(
    case: StoreCase, store: Store, what: str, error: type[Exception] | tuple[type[Exception], ...], work: Any
) -> None:
    """Demand that `work` raises `error` and changes no stream."""
    before = {name: (store.load(name), list(store.releases(name))) for name in store.names()}
    try:
        work()
    except error:
        pass
    else:
        demand(False, f"{what} was accepted", "Reject it.")
    other = case.reopen(store)
    after = {name: (other.load(name), list(other.releases(name))) for name in other.names()}
    demand(after == before, f"{what} was rejected and left a trace", _ONE_TRANSACTION)


# Streams and commits.


def commits_are_loaded_as_they_were_made(case: StoreCase) -> None:
    """A stream is loaded, in any process, as its last commit left it: every bit of state, cost and position."""
    store = case.fresh()
    saved = _created(store, about={"made by": "a check", "numbers": [1, 2.5]}, neighbours="zero-out", input=b"at 0")
    demand(case.reopen(store).load("stream") == saved, "a new stream is loaded as another one", "Store every field.")
    blob = bytes(range(256)) * 40
    new = store.commit(saved, position=(3, 50, 0, "t"), spent=gaussian(0.01 / 3.0), state=blob, input=b"\x00at 50")
    demand(new.position == (3, 50, 0, "t"), f"a commit returned {new}", "Return the new stream.")
    loaded = case.reopen(store).load("stream")
    demand(loaded == new, f"{new} is loaded as {loaded}", "Store every field.")
    demand((loaded.state, loaded.input) == (blob, b"\x00at 50"), "a blob was changed", "Store bytes.")
    demand(case.reopen(store).names() == ["stream"], f"the streams are {store.names()}", "List them.")
    demand(rejects(InvalidInput, lambda: store.load("other")), "an unknown stream was loaded", "Raise InvalidInput.")


def streams_are_created_once(case: StoreCase) -> None:
    """A second stream of the same name or lineage is rejected, also if both are created at once."""
    store = case.fresh()
    _created(store)
    again: list[tuple[str, dict[str, Any]]] = [("stream", {"lineage": "another"}), ("other", {})]
    again[1][1]["lineage"] = "lineage of stream"
    for name, settings in again:
        _leaves_no_trace(
            case,
            store,
            f"a second stream {name!r} of {settings['lineage']!r}",
            StateConflict,
            lambda name=name, settings=settings: _created(store, name, **settings),
        )
    stores = [case.reopen(store) for _ in range(4)]
    raised = race([lambda n=n: _created(stores[n], "racing", lineage=f"racing {n}") for n in range(4)])  # type: ignore[misc]
    others = [error for error in raised if error is not None and not isinstance(error, StateConflict)]
    demand(not others, f"racing creations raised {others[:1]}", "Raise StateConflict.")
    demand(raised.count(None) == 1, f"{raised.count(None)} of 4 streams of one name were created", "Let one win.")


def states_have_one_successor(case: StoreCase) -> None:
    """A commit from any state but the newest is rejected, by generation and by token, and stores nothing."""
    store = case.fresh()
    first = _created(store)
    second = _committed(store, first)
    forged = replace(second, position=(1, 1, 1, "forged"))
    for what, saved in (("an old state", first), ("a state with another token", forged)):
        _leaves_no_trace(
            case,
            store,
            f"a commit from {what}",
            StateConflict,
            lambda saved=saved: store.commit(saved, position=(9, 9, 1, "x"), spent=HALF, state=b""),
        )
    _committed(case.reopen(store), second)


def generations_only_rise(case: StoreCase) -> None:
    """A commit to the same or an older generation, or to fewer rounds or releases, is rejected."""
    store = case.fresh()
    saved = _created(store, position=(3, 30, 10, "a"))
    for to in ((3, 31, 10, "b"), (2, 31, 10, "b"), (4, 29, 10, "b"), (4, 30, 9, "b")):
        _leaves_no_trace(
            case,
            store,
            f"a commit from {(3, 30, 10)} to {to[:3]}",
            StateConflict,
            lambda to=to: store.commit(saved, position=to, spent=FREE, state=b""),
        )


def racing_commits_have_one_winner(case: StoreCase) -> None:
    """Of many threads that commit the same state at once, exactly one succeeds, and its releases are stored."""
    store = case.fresh()
    saved = _created(store)
    stores = [case.reopen(store) for _ in range(THREADS)]
    for generation in range(1, 4):
        made: dict[int, Saved] = {}

        def commit(
            number: int, saved: Saved = saved, generation: int = generation, made: dict[int, Saved] = made
        ) -> None:
            made[number] = stores[number].commit(
                saved,
                position=position(generation, f"{generation} {number}"),
                spent=gaussian(0.001, generation),
                state=str(number).encode(),
                releases=[Chunk(generation, generation, generation, str(number).encode())],
            )

        raised = race([lambda n=n: commit(n) for n in range(THREADS)])  # type: ignore[misc]
        others = [error for error in raised if error is not None and not isinstance(error, StateConflict)]
        demand(not others, f"racing commits raised {others[:1]}", "Let them wait for each other.")
        demand(len(made) == 1, f"{len(made)} of {THREADS} commits of one state succeeded", "Compare and set.")
        ((winner, saved),) = made.items()
        demand(case.reopen(store).load("stream") == saved, "the stored state is not the winner's", _ONE_TRANSACTION)
        last = [chunk.content for chunk in store.releases("stream")][-1]
        demand(last == str(winner).encode(), "the stored release is not the winner's", _ONE_TRANSACTION)


def spent_only_rises_up_to_the_reservation(case: StoreCase) -> None:
    """A commit that has spent less than before, or more than was reserved, is rejected; so is such a new stream."""
    store = case.fresh()
    saved = _committed(store, _created(store), spent=gaussian(0.01))
    for what, spent, error in (
        ("a commit that has spent less", gaussian(0.009), StateConflict),
        ("a commit that has spent more than was reserved", gaussian(HALF.mu_squared * 1.001), BudgetExhausted),
    ):
        _leaves_no_trace(case, store, what, error, lambda spent=spent: _committed(store, saved, spent=spent))
    _leaves_no_trace(
        case,
        store,
        "a new stream that has spent more than it reserves",
        BudgetExhausted,
        lambda: _created(store, "other", spent=gaussian(1.0)),
    )
    _committed(store, saved, spent=HALF)


# Releases.


def releases_are_numbered(case: StoreCase) -> None:
    """The releases of a commit are numbered on from the last one, without gaps, up to the number in the new state."""
    store = case.fresh()
    saved = _committed(store, _created(store))
    for what, chunks in (
        ("a release that was made before", [Chunk(1, 1, 1, b"again")]),
        ("a gap before the first release", [Chunk(3, 3, 3, b"")]),
        ("a gap between two releases", [Chunk(2, 2, 2, b""), Chunk(4, 4, 4, b"")]),
        ("two releases of one number", [Chunk(2, 3, 3, b""), Chunk(3, 3, 3, b"")]),
        ("a chunk that ends before it begins", [Chunk(2, 1, 1, b"")]),
        ("releases past those of the state", [Chunk(2, 4, 4, b"")]),
        ("fewer releases than the state has", [Chunk(2, 2, 2, b"")]),
    ):
        _leaves_no_trace(
            case,
            store,
            what,
            StateConflict,
            lambda chunks=chunks: _committed(store, saved, position=(2, 3, 3, "x"), releases=chunks),
        )


def outbox_is_complete_and_in_order(case: StoreCase) -> None:
    """Committed releases are read in their order, from any number on, in any process, and stay stored."""
    store = case.fresh()
    saved = _created(store)
    chunks = [Chunk(1, 4, 10, b"one to four"), Chunk(5, 5, 11, b"\x00five"), Chunk(6, 12, 20, b"")]
    saved = store.commit(saved, position=(1, 11, 5, "a"), spent=FREE, state=b"", releases=chunks[:2])
    store.commit(saved, position=(2, 20, 12, "b"), spent=FREE, state=b"", releases=chunks[2:])
    _committed(store, _created(store, "another stream"))
    for after, expected in ((0, chunks), (3, chunks), (4, chunks[1:]), (5, chunks[2:]), (11, chunks[2:]), (12, [])):
        read = list(case.reopen(store).releases("stream", after))
        demand(read == expected, f"after {after} the releases are {read}", "Order them by number, by stream.")


def failing_commits_store_nothing(case: StoreCase) -> None:
    """If a release cannot be stored, neither is the state: a later commit from the same state succeeds."""
    store = case.fresh()
    saved = _created(store)
    impossible = [Chunk(1, 1, 1, b"fine"), Chunk(2, 2, 2**80, b"its round is no integer of a database")]
    _leaves_no_trace(
        case,
        store,
        "a release that cannot be stored",
        Exception,
        lambda: store.commit(saved, position=(1, 2, 2, "x"), spent=HALF, state=b"lost", releases=impossible),
    )
    _committed(store, saved)


def chains_cover_releases_and_never_states(case: StoreCase) -> None:
    """The chain hash depends on position, cost and releases, and not on the state or the input, which are secret."""

    def chain(**settings: Any) -> str:
        store = case.fresh()
        return _committed(store, _created(store), **settings).chain

    usual = chain()
    secret = chain(state=b"another state", input=b"another input")
    demand(usual == secret, "the chain depends on the state: others could test guesses of it", "Leave states out.")
    for what, settings in (
        ("release", {"releases": [Chunk(1, 1, 1, b"another")]}),
        ("cost", {"spent": gaussian(0.002)}),
        ("token", {"position": position(1, "another")}),
    ):
        demand(chain(**settings) != usual, f"the chain does not depend on the {what}", "Hash every public field.")


def closed_streams_reject_commits(case: StoreCase) -> None:
    """Nothing is committed to a closed stream; it can be loaded, and says that it is closed."""
    store = case.fresh()
    ledger = Ledger.create(store.address, BUDGET)
    for name, given in (("alone", None), ("in a ledger", ledger)):
        saved = _committed(store, _created(store, name, ledger=given))
        case.reopen(store).close(saved)
        demand(store.load(name).closed, "a closed stream is loaded as open", "Store that it is closed.")
        _leaves_no_trace(
            case, store, "a commit to a closed stream", StateConflict, lambda saved=saved: _committed(store, saved)
        )
    line = ledger.lines["lineage of in a ledger"]
    demand(line.closed, "a closed stream is open in its ledger", "Close it in the ledger, too.")
    demand(ledger.reserved == HALF, f"after closing {ledger.reserved} is reserved", "Return nothing.")
    saved = _created(store, "closed in its ledger", ledger=ledger)
    ledger.close(saved.lineage)
    what = "a commit to a stream that was closed in its ledger"
    _leaves_no_trace(case, store, what, StateConflict, lambda: _committed(store, saved))


# Ledgers and witnesses.


def ledger_in_the_same_database_moves_with_it(case: StoreCase) -> None:
    """A stream and its ledger's line are changed together, or neither is."""
    store = case.fresh()
    ledger = Ledger.create(store.address, BUDGET, population="customers")
    saved = _created(store, ledger=ledger, settings={"a": 1})
    demand(ledger.reserved == HALF, f"a new stream reserved {ledger.reserved}", "Reserve its cost.")
    new = _committed(store, saved)
    demand(ledger.spent == new.spent, f"the stream has spent {new.spent}, its ledger {ledger.spent}", _ONE_TRANSACTION)
    impossible = {"releases": [Chunk(2, 2, 2**80, b"")], "spent": HALF}
    _leaves_no_trace(
        case, store, "a release that cannot be stored", Exception, lambda: _committed(store, new, **impossible)
    )
    demand(ledger.spent == new.spent, f"a commit that failed spent {ledger.spent} in the ledger", _ONE_TRANSACTION)
    other = HALF, gaussian(BUDGET.mu**2)
    _created(store, "second", ledger=ledger, reserved=gaussian(0.001))
    what = "a stream that does not fit its ledger"
    error = BudgetExhausted
    _leaves_no_trace(case, store, what, error, lambda: _created(store, "third", ledger=ledger, reserved=other[1]))
    what = "a second stream of one lineage"
    again = {"lineage": "lineage of second", "reserved": gaussian(0.001)}
    _leaves_no_trace(case, store, what, StateConflict, lambda: _created(store, "third", ledger=ledger, **again))
    demand(
        ledger.reserved == total([HALF, gaussian(0.001)]),
        f"rejected streams reserved {ledger.reserved}",
        _ONE_TRANSACTION,
    )
    demand(ledger.verify().ok, f"the ledger has faults: {ledger.verify().faults}", "Record every opening.")


def ledger_elsewhere_is_reserved_first(case: StoreCase) -> None:
    """A ledger in another database reserves a stream's cost before it exists, and is told of each commit after it."""
    store = case.fresh()
    ledger = Ledger.create(case.other(), BUDGET)
    ledger.charge(HALF)
    what = "a stream that does not fit its ledger"
    error = BudgetExhausted
    _leaves_no_trace(
        case, store, what, error, lambda: _created(store, "large", ledger=ledger, reserved=gaussian(BUDGET.mu**2))
    )
    saved = _created(store, ledger=ledger)
    demand(ledger.reserved == total([HALF, HALF]), f"a new stream reserved {ledger.reserved}", "Reserve its cost.")
    for generation in range(2):
        saved = _committed(case.reopen(store), saved)
        spent = ledger.lines[saved.lineage].spent
        demand(spent == saved.spent, f"after {generation + 1} commits the ledger has {spent}", "Tell it each time.")
    case.reopen(store).close(saved)
    demand(ledger.lines[saved.lineage].closed, "a closed stream is open in its ledger", "Close it in the ledger, too.")
    demand(
        rejects(InvalidInput, lambda: _created(store, "in memory", ledger=Ledger(BUDGET))),
        "a stream was created with a ledger that no other process can find",
        "Reject ledgers in memory.",
    )


def witness_is_told_before_a_commit_returns(case: StoreCase) -> None:
    """A witness has every commit's generation and chain, and a store that falls behind it is rejected."""
    address, elsewhere = case.address(), case.other()
    store = case.store(address, witness=elsewhere)
    saved = _created(store)
    new = _committed(store, saved)
    with store.database.transaction(write=False) as now:
        [(place,)] = now.rows("SELECT id FROM place")
    seen = Witness(elsewhere, store.database, place).places().get(new.lineage)
    fault = f"after a commit of generation 1 the witness has {seen}"
    demand(seen is not None and seen[:2] == (1, new.chain), fault, "Tell the witness before commit returns.")
    remedy = "Compare every stream with the witness when a store is opened."
    demand(case.reopen(store, witness=elsewhere).load("stream") == new, "the newest store was not opened", remedy)
    with store.database.transaction() as now:  # a backup of an older generation is restored
        now.execute("UPDATE streams SET generation = 0, token = '0', chain = ?", saved.chain)
        now.execute("DELETE FROM releases")
    behind = rejects(StateConflict, lambda: case.reopen(store, witness=elsewhere))
    demand(behind, "a store behind its witness was opened", remedy)
    remedy = "Let the witness reject a generation that it knows by another hash."
    again = rejects(StateConflict, lambda: _committed(store, saved, position=position(1, "other")))
    demand(again, "a generation was committed a second time, and the witness did not notice", remedy)


def adopted_streams_are_charged_in_full(case: StoreCase) -> None:
    """A stream that is adopted goes on under a new lineage and a second charge, and the first one is closed."""
    store = case.fresh()
    ledger = Ledger.create(store.address, BUDGET)
    private = pigd(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5), BUDGET, 10)
    state = private.start()
    first = store.create(
        "first",
        lineage="lineage of first",
        position=position(0, "0"),
        reserved=gaussian(0.02),
        state=replace(state, lineage="lineage of first", token="0").to_bytes(),
        about={"columns": ["x"]},
        neighbours="zero-out",
        ledger=ledger,
    )
    first = store.commit(
        first,
        position=(1, 4, 4, "1"),
        spent=gaussian(0.008),
        state=replace(state, lineage="lineage of first", generation=1, token="1", t=4, k=4).to_bytes(),
        releases=[Chunk(1, 4, 4, b"")],
    )
    second = case.reopen(store).adopt("first")
    demand(second.lineage != first.lineage, "an adopted stream has the lineage of the first", "Give it a new one.")
    fault = f"two streams of mu² = 0.02 reserved {ledger.reserved}"
    demand(ledger.reserved == gaussian(0.04), fault, "Charge an adopted stream in full, in the ledger of the first.")
    demand(ledger.lines[first.lineage].closed, "the first stream is open", "Close it.")
    inner = read_state(second.state)
    demand(
        (inner.lineage, inner.position) == (second.lineage, second.position),
        "the adopted state is not that of the stream",
        "Give the state the new lineage and token.",
    )
    demand(second.position[1:3] == (4, 4), f"an adopted stream stands at {second.position}", "Go on where it stood.")
    demand({**second.about, **first.about} == second.about, "an adopted stream has other public data", "Copy it.")
    fault = f"a stream that was adopted from one of {first.reserved} tells of {second.earlier}"
    demand(second.earlier == first.reserved, fault, "Tell what the first stream cost: its releases were shown.")
    store.commit(second, position=(1, 5, 5, "x"), spent=gaussian(0.002), state=b"", releases=[Chunk(5, 5, 5, b"again")])


# Events.

_HOUR = 3_600_000


def _opening(number: int, body: bytes = b"") -> Opening:
    return Opening(b"id %d" % number, b"request %d" % number + body, b"row %d" % number)


def _closing(number: int, label: bytes = b"yes") -> Closing:
    return Closing(b"id %d" % number, b"hash of " + label, label)


def _events_at(case: StoreCase, store: Store, saved: Saved) -> EventLog:
    """The events of a stream, as another process sees them."""
    return case.reopen(store).events(saved.lineage, saved.name)


def _of_events(store: Store, name: str = "stream", **settings: Any) -> tuple[Saved, EventLog]:
    saved = _created(store, name, about={"events": True}, **settings)
    return saved, store.events(saved.lineage, name)


def events_are_opened_once_with_consecutive_numbers(case: StoreCase) -> None:
    """Events are numbered from 1 on, also if several processes open them; one that is repeated keeps its number."""
    store = case.fresh()
    saved, log = _of_events(store)
    logs = [_events_at(case, store, saved) for _ in range(4)]
    numbers: dict[int, int] = {}

    def opens(process: int) -> None:
        for start in range(0, 9, 3):
            ids = [9 * process + start + each for each in range(3)]
            made, _ = logs[process].exchange([_opening(each) for each in ids], wait=_HOUR)
            numbers.update({each: one.number for each, one in zip(ids, made, strict=True) if isinstance(one, Opened)})

    others = [error for error in race([lambda n=n: opens(n) for n in range(4)]) if error is not None]  # type: ignore[misc]
    demand(not others, f"racing processes raised {others[:1]}", "Let them wait for each other.")
    demand(sorted(numbers.values()) == list(range(1, 37)), f"events have the numbers {numbers}", "Count under a lock.")
    demand(log.opened == 36, f"after 36 events {log.opened} were opened", "Count them in the same transaction.")
    [again, other], _ = log.exchange([_opening(5), _opening(6, b"of another row")], wait=_HOUR)
    fault = f"an event that was opened as {numbers[5]} is opened again as {again}"
    same = isinstance(again, Opened) and (again.number, again.content) == (numbers[5], b"row 5")
    demand(same, fault, "Recognise it by its id, and give what was stored.")
    demand(isinstance(other, EventConflict), "an id was used for two rows", "Compare the hash of the request.")
    limits: dict[str, Any] = {"most": 37}
    for what, kind in (("more events than may wait", TooManyEvents), ("events past the horizon", BudgetExhausted)):
        made, _ = log.exchange([_opening(100), _opening(101)], wait=_HOUR, **limits)
        fits = isinstance(made[0], Opened) and isinstance(made[1], kind)
        demand(fits, f"{what} were opened", "Count those that are not learnt, and all.")
        limits = {"horizon": 37}
    demand(log.opened == 37, "an event that was rejected has a number", "Store nothing of it.")


def events_take_one_label_before_their_wait_ends(case: StoreCase) -> None:
    """The first label counts, if it comes in time; the same one again is accepted again, and any other rejected."""
    store = case.fresh()
    saved, log = _of_events(store)
    log.exchange([_opening(1), _opening(2), _opening(3)], wait=0)
    _, [late] = log.exchange([], [_closing(1)])
    demand(isinstance(late, EventEnded), f"a label after the wait was answered by {late}", "Compare with the clock.")
    second = _of_events(store, "second")[1]
    second.exchange([_opening(1), _opening(2)], wait=_HOUR)
    _, made = second.exchange([], [_closing(1), _closing(1), _closing(1, b"no"), _closing(7)])
    kinds = [each if isinstance(each, int) else type(each) for each in made]
    fault = f"a label, the same again, another and one of no event were answered by {kinds}"
    demand(kinds == [1, 1, EventConflict, UnknownEvent], fault, "Store the first, and compare the others with it.")
    logs = [case.reopen(store).events(second.lineage) for _ in range(THREADS)]
    accepted: list[int] = []

    def close(number: int) -> None:
        _, [outcome] = logs[number].exchange([], [_closing(2, b"label %d" % number)])
        if not isinstance(outcome, Exception):
            accepted.append(number)

    raised = [error for error in race([lambda n=n: close(n) for n in range(THREADS)]) if error is not None]  # type: ignore[misc]
    demand(not raised, f"racing labels raised {raised[:1]}", "Let them wait for each other.")
    demand(len(accepted) == 1, f"{len(accepted)} of {THREADS} labels of one event were accepted", "Let one win.")
    with store.database.transaction() as now:  # the wait of the second event ends
        now.execute("UPDATE stream_events SET due = 0 WHERE lineage = ?", second.lineage)
    sealed = case.reopen(store).events(second.lineage).seal()
    expected = [(1, b"row 1", b"yes"), (2, b"row 2", b"label %d" % accepted[0])]
    demand([tuple(each) for each in sealed] == expected, f"sealed are {sealed}", "Store the label that was accepted.")
    log.seal()
    with store.database.transaction() as now:  # a clock that is set back
        now.execute("UPDATE stream_events SET due = ? WHERE lineage = ?", 2**52, saved.lineage)
    _, [late] = log.exchange([], [_closing(2)])
    demand(isinstance(late, EventEnded), "a sealed event took a label", "Seal events before they are read.")
    demand(
        log.seal() == [Event(n, b"row %d" % n, None) for n in (1, 2, 3)], "sealed events changed", "Read them again."
    )


def events_enter_in_order_and_not_before_their_wait(case: StoreCase) -> None:
    """Events are learnt in the order of their numbers, each after its wait, whether it has a label or not."""
    store = case.fresh()
    saved, log = _of_events(store)
    log.exchange([_opening(1)], [_closing(1)], wait=_HOUR)
    early = log.seal()
    demand(early == [] and not log.waits(), "an event with a label was learnt before its wait", "Wait for the clock.")
    log.exchange([_opening(2)], wait=0)
    demand(log.seal() == [], "an event was learnt before one that was opened earlier", "Learn them by their numbers.")
    with store.database.transaction() as now:
        now.execute("UPDATE stream_events SET due = 0 WHERE number = 1")
    numbers = [each.number for each in _events_at(case, store, saved).seal(most=1)]
    demand(log.waits() and numbers == [1], f"of two events that are due the first one is {numbers}", "Order them.")
    numbers = [each.number for each in log.seal()]
    demand(numbers == [1, 2], f"events that are due and not learnt are {numbers}", "Return them until they are.")


def events_are_learnt_with_the_state(case: StoreCase) -> None:
    """A commit learns the events up to its round, and erases them; no round is beyond the last sealed event."""
    store = case.fresh()
    saved, log = _of_events(store)
    log.exchange([_opening(1), _opening(2)], [_closing(1)], wait=0)
    what = "a round of an event that is not sealed"
    _leaves_no_trace(case, store, what, StateConflict, lambda: store.commit(saved, **_to_round(1, 1)))
    sealed = log.seal()
    _leaves_no_trace(
        case,
        store,
        "a release that cannot be stored",
        Exception,
        lambda: store.commit(saved, **_to_round(1, 1), releases=[Chunk(1, 1, 2**80, b"")]),
    )
    remedy = "Erase events in the transaction of the commit."
    demand(log.seal() == sealed, "a commit that failed has learnt events", remedy)
    saved = store.commit(saved, **_to_round(1, 1))
    rest = _events_at(case, store, saved).seal()
    demand(rest == sealed[1:], f"after round 1 the events that are not learnt are {rest}", remedy)
    with store.database.transaction(write=False) as now:
        kept = now.rows("SELECT number FROM stream_events WHERE content IS NOT NULL OR label IS NOT NULL")
    demand(kept == [(2,)], f"the contents of events {kept} are stored after round 1", "Erase what was learnt.")
    _, [again] = log.exchange([], [_closing(1)])
    [ended], _ = log.exchange([_opening(1)], wait=_HOUR)
    known = isinstance(ended, EventEnded) and (again == 1 or isinstance(again, EventEnded))
    demand(known, "an event that was learnt is opened again", "Remember its id for a while.")
    store.commit(saved, **_to_round(2, 2))
    demand(log.seal() == [], "events were learnt twice", remedy)
    plain = _created(store, "without events")
    fails = rejects(StateConflict, lambda: store.events(plain.lineage).exchange([_opening(1)], wait=0))
    demand(fails, "a stream of rows has an event", "Say so when it is created.")


def _to_round(generation: int, t: int) -> dict[str, Any]:
    made = (generation, t, generation, str(generation))
    return {"position": made, "spent": gaussian(0.001, generation), "state": b"state"}


def events_are_secret_and_go_with_their_stream(case: StoreCase) -> None:
    """Contents and labels are encrypted, also by a new key; a closed stream has none, and an adopted one all."""
    address = case.address()
    with _keys() as (key, other):
        store = case.store(address, key=key)
        private = pigd(Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5), BUDGET, 10)
        state = replace(private.start(), lineage="lineage of stream", token="0").to_bytes()
        saved, log = _of_events(store, state=state)
        _of_events(store, "closed")[1].exchange([_opening(1)], [_closing(1)], wait=_HOUR)
        log.exchange([_opening(1), _opening(2)], wait=0)
        log.exchange([_opening(3)], [_closing(3)], wait=_HOUR)
        store.close(store.load("closed"))
        with store.database.transaction(write=False) as now:
            stored = now.rows("SELECT lineage, content, label FROM stream_events WHERE content IS NOT NULL")
        text = b"".join(bytes(blob) for _, *blobs in stored for blob in blobs if blob is not None)
        demand(b"row" not in text and b"yes" not in text, "an event is stored in clear", "Encrypt rows and labels.")
        mine = all(lineage == saved.lineage for lineage, *_ in stored)
        demand(mine, "the events of a closed stream are stored", "Erase them when it is closed.")
        store.rotate_key(other)
        wrong = case.reopen(store, key=key).events(saved.lineage)
        fails = rejects(TaciturnError, lambda: wrong.exchange([_opening(9)], wait=0))
        demand(fails, "an event was stored under an old key", "Compare the key with the stream's.")
        second = case.reopen(store, key=other).adopt("stream")
        log = case.reopen(store, key=other).events(second.lineage)
        sealed = log.seal()
        expected = [Event(1, b"row 1", None), Event(2, b"row 2", None)]
        demand(sealed == expected, f"the events of an adopted stream are {sealed}", "Copy them, encrypted anew.")
        _, [outcome] = log.exchange([], [_closing(3)])
        demand(outcome == 3, f"an event of an adopted stream is closed by {outcome}", "Copy labels and ids.")
        blobs = dict.fromkeys(("1", "2"), b"")
        with store.database.transaction() as now:
            for number in blobs:
                sql = "SELECT content FROM stream_events WHERE lineage = ? AND number = ?"
                blobs[number] = bytes(now.rows(sql, second.lineage, int(number))[0][0])
            sql = "UPDATE stream_events SET content = ? WHERE lineage = ? AND number = 1"
            now.execute(sql, blobs["2"], second.lineage)
        moved = rejects(TaciturnError, log.seal)
        demand(moved, "the row of one event was read as another's", "Bind it to its number by associated data.")


# Encryption.


def encrypted_states_need_their_key(case: StoreCase) -> None:
    """An encrypted blob is read by its key only, and only as that of its stream, its generation and its kind."""
    address = case.address()
    with _keys() as (key, other):
        store = case.store(address, key=key)
        saved = _committed(store, _created(store, input=b"secret input"), state=b"a secret state")
        second = _created(store, "second", state=b"a secret state")
        _rejects_other_keys(case, store, other)
        demand(case.reopen(store, key=key).load("stream").state == b"a secret state", "a state was lost", "Decrypt.")
        with store.database.transaction(write=False) as now:
            stored = {
                name: (bytes(state), bytes(at))
                for name, state, at in now.rows("SELECT name, state, input FROM streams")
            }
        text = b"".join(blob for blobs in stored.values() for blob in blobs)
        demand(b"secret" not in text, "a blob is stored in clear", "Encrypt state and input.")
        newer = _committed(store, saved, state=b"newer")
        remedy = "Bind a blob to its stream, generation and kind by associated data."
        for what, name, column, blob in (
            ("an older state of the stream", "stream", "state", stored["stream"][0]),
            ("another stream's state", "second", "state", stored["stream"][0]),
            ("the input's position", "second", "state", stored["second"][1]),
        ):
            with store.database.transaction() as now:
                now.execute(f"UPDATE streams SET {column} = ? WHERE name = ?", blob, name)
            moved = rejects(TaciturnError, lambda name=name: store.load(name))  # type: ignore[misc]
            demand(moved, f"{what} was read as the state of {name!r}", remedy)
        demand(newer.state == b"newer" and second.state == b"a secret state", "a commit returned a cipher", "Decrypt.")


def keys_are_rotated(case: StoreCase) -> None:
    """A new key replaces the old one in every blob at once; a process with the old key can neither read nor commit."""
    address = case.address()
    with _keys() as (key, other):
        plain = case.store(address)
        saved = [_created(plain, name, state=name.encode()) for name in ("one", "two")]
        demand(plain.rotate_key(key) == 2, "not every state was encrypted", "Encrypt all of them.")
        old = case.reopen(plain, key=key)
        demand(old.load("two").state == b"two", "a state was lost", "Encrypt what was decrypted.")
        remedy = "Compare the key in the condition of the commit."
        stale = case.reopen(plain)
        demand(rejects(StateConflict, lambda: _committed(stale, saved[0])), "a commit was stored in clear", remedy)
        new = case.reopen(plain, key=key)
        new.rotate_key(other)
        demand(rejects(StateConflict, lambda: old.load("one")), "an old key reads new states", "Encrypt all of them.")
        demand(rejects(StateConflict, lambda: _committed(old, saved[0])), "an old key was used by a commit", remedy)
        demand(new.load("one").state == b"one", "a store that rotated its key has the old one", "Use the new key.")
        _committed(case.reopen(plain, key=other), saved[0])


def _rejects_other_keys(case: StoreCase, store: Store, other: str) -> None:
    for what, settings in (("another key", {"key": other}), ("no key", {})):
        wrong = rejects(TaciturnError, lambda settings=settings: case.reopen(store, **settings).load("stream"))  # type: ignore[misc]
        demand(wrong, f"an encrypted state was read with {what}", "Compare the id of the key, and raise an error.")


class _keys:  # noqa: N801
    """Files of two keys, for as long as the block runs; a key of the environment is not used in it."""

    def __enter__(self) -> tuple[str, str]:
        self._folder = tempfile.TemporaryDirectory()
        self._given = os.environ.pop("TACITURN_KEY", None)
        paths = [str(Path(self._folder.name) / name) for name in ("first", "second")]
        for path in paths:
            new_key(path)
        return paths[0], paths[1]

    def __exit__(self, *_: object) -> None:
        if self._given is not None:
            os.environ["TACITURN_KEY"] = self._given
        self._folder.cleanup()


CHECKS = (
    commits_are_loaded_as_they_were_made,
    streams_are_created_once,
    states_have_one_successor,
    generations_only_rise,
    racing_commits_have_one_winner,
    spent_only_rises_up_to_the_reservation,
    releases_are_numbered,
    outbox_is_complete_and_in_order,
    failing_commits_store_nothing,
    chains_cover_releases_and_never_states,
    closed_streams_reject_commits,
    ledger_in_the_same_database_moves_with_it,
    ledger_elsewhere_is_reserved_first,
    witness_is_told_before_a_commit_returns,
    adopted_streams_are_charged_in_full,
    events_are_opened_once_with_consecutive_numbers,
    events_take_one_label_before_their_wait_ends,
    events_enter_in_order_and_not_before_their_wait,
    events_are_learnt_with_the_state,
    events_are_secret_and_go_with_their_stream,
    encrypted_states_need_their_key,
    keys_are_rotated,
)
