"""Checks of a ledger: it admits what fits and no more, uses each state once, and forgets nothing.

They run alike on a ledger in memory, in SQLite and in PostgreSQL.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from taciturn.accounting.history import Event, first_fault
from taciturn.accounting.ledger import Ledger
from taciturn.checks.suite import demand
from taciturn.errors import BudgetExhausted, StateConflict, TaciturnError, Unprovable
from taciturn.kernel.accounting.cost import FREE, Cost, gaussian, total
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.ledger_rules import Learnt, Position

BUDGET = Privacy(1.0, 1e-6)
HALF = gaussian(BUDGET.mu**2 / 2.0 * (1.0 - 1e-12))
"""A cost that fits the budget twice."""

MONTHLY = "user and month"
THREADS = 8
_ONE_STEP = "Check and change in one step: a transaction, or a compare-and-set."
_NOTHING = "Change nothing before every check has passed."


@dataclass(frozen=True, eq=False)
class LedgerCase:
    """How to make the ledger under test.

    Attributes
    ----------
    create : callable
        Makes an empty ledger with the given budget, and with `unit` and `renews` as `Ledger.create` takes them.
    reopen : callable
        Opens the ledger again, as another process would; by default a ledger is only known in its own process.

    Examples
    --------
    >>> LedgerCase(Ledger).create(Privacy(1.0, 1e-6)).population
    'people'
    """

    create: Callable[..., Ledger] = Ledger
    reopen: Callable[[Ledger], Ledger] = lambda ledger: ledger

    def fresh(self) -> Ledger:
        """An empty ledger."""
        return self.create(BUDGET)

    def monthly(self) -> tuple[Ledger, int]:
        """An empty ledger that renews every month, and the present month."""
        ledger = self.create(BUDGET, unit=MONTHLY, renews=True)
        here = ledger.period
        demand(here is not None, "a ledger that renews has no period", "Read the clock.")
        assert here is not None
        return ledger, here


def position(generation: int, token: str = "") -> Position:
    """The place of a state in a stream that learns one example and releases one point in each generation."""
    return generation, max(generation, 0), max(generation, 0), token


def rejects(error: type[TaciturnError] | tuple[type[TaciturnError], ...], work: Callable[[], Any]) -> bool:
    """Whether `work` raises `error`."""
    try:
        work()
    except error:
        return True
    return False


def race(workers: Sequence[Callable[[], Any]]) -> list[Exception | None]:
    """What each worker raised, when all of them start at once in threads of their own."""
    raised: list[Exception | None] = [None] * len(workers)
    gate = threading.Barrier(len(workers))

    def run(number: int) -> None:
        gate.wait()
        try:
            workers[number]()
        except Exception as error:
            raised[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def _content(ledger: Ledger) -> tuple[Any, ...]:
    """All that can be read."""
    about = (ledger.privacy, ledger.population, ledger.unit, ledger.neighbours)
    return *about, ledger.reserved, ledger.spent, dict(ledger.lines), list(ledger.history), ledger.left


def _leaves_no_trace(
    case: LedgerCase, ledger: Ledger, what: str, error: type[TaciturnError], work: Callable[[], Any]
) -> None:
    """Demand that `work` raises `error` and changes nothing."""
    before = _content(ledger)
    demand(rejects(error, work), f"{what} was accepted", f"Raise {error.__name__}.")
    demand(_content(case.reopen(ledger)) == before, f"{what} was rejected and left a trace", _NOTHING)


# What fits.


def two_halves_fit_and_no_more(case: LedgerCase) -> None:
    """Reservations add up to the budget; one more, however small, is rejected."""
    ledger = case.fresh()
    ledger.open("first", HALF)
    case.reopen(ledger).reserve("second", HALF)
    small = gaussian(HALF.mu_squared * 1e-9)
    remedy = "Add the new cost to all reservations, and compare the sum with the budget."
    for what, work in (
        ("open", lambda: ledger.open("third", small)),
        ("reserve", lambda: ledger.reserve("third", small)),
        ("charge", lambda: ledger.charge(small)),
    ):
        demand(rejects(BudgetExhausted, work), f"{what} exceeded a full ledger's budget", remedy)
    demand(ledger.reserved == total([HALF, HALF]), f"two halves are reserved as {ledger.reserved}", "Add them.")
    demand(ledger.spent == FREE, f"opening streams spent {ledger.spent}", "Spend by commits.")


def all_kinds_of_cost_add(case: LedgerCase) -> None:
    """Gaussian, zCDP and plain costs add part by part, and their sum must fit the budget."""
    ledger = case.fresh()
    costs = [gaussian(0.01), Cost(rho=0.001), Cost(plain_epsilon=0.1, plain_delta=1e-8)]
    for number, cost in enumerate(costs):
        ledger.open(str(number), cost)
    demand(
        ledger.reserved == total(costs),
        f"{costs} are reserved as {ledger.reserved}",
        "Add every part, without rounding.",
    )
    fault = "an epsilon of 0.9 was added to one of 0.1 and more, under a budget of 1"
    demand(rejects(BudgetExhausted, lambda: ledger.charge(Cost(plain_epsilon=0.9))), fault, "Convert the whole sum.")


def rejections_leave_no_trace(case: LedgerCase) -> None:
    """A rejected reservation changes nothing, and its name stays free."""
    ledger = case.fresh()
    ledger.open("first", HALF)
    large = gaussian(BUDGET.mu**2)
    for what, work in (
        ("an opening that does not fit", lambda: ledger.open("second", large)),
        ("a reservation that does not fit", lambda: ledger.reserve("second", large)),
        ("a charge that does not fit", lambda: ledger.charge(large)),
        ("a stream that has spent more than it reserves", lambda: ledger.open("second", HALF, spent=large)),
    ):
        _leaves_no_trace(case, ledger, what, BudgetExhausted, work)
    ledger.open("second", HALF)


def what_is_left_fits(case: LedgerCase) -> None:
    """A Gaussian cost of the epsilon that is left fits, and one of 1% more does not."""
    ledger = case.fresh()
    ledger.charge(Cost(mu_squared=HALF.mu_squared, plain_epsilon=0.1))
    left = ledger.left
    demand(left is not None and 0.0 < left < 0.9, f"{left} is left of 1 after 0.1 and more", "Search by `within`.")
    more = gaussian(Privacy(1.01 * (left or 1.0), BUDGET.delta).mu ** 2)
    demand(rejects(BudgetExhausted, lambda: ledger.charge(more)), f"more than {left} fits", "Do not round down.")
    ledger.charge(gaussian(Privacy((left or 1.0) * (1.0 - 1e-9), BUDGET.delta).mu ** 2))


def charges_are_spent_at_once(case: LedgerCase) -> None:
    """A charge is reserved and spent in one step, beside streams of any name."""
    ledger = case.fresh()
    quarter = gaussian(HALF.mu_squared / 2.0)
    ledger.open("stream", HALF)
    ledger.charge(quarter)
    case.reopen(ledger).charge(quarter)
    demand(ledger.spent == total([quarter, quarter]), f"two charges spent {ledger.spent}", "Spend a charge at once.")
    fault = f"a stream and two charges reserved {ledger.reserved}"
    demand(ledger.reserved == total([HALF, quarter, quarter]), fault, "Give every charge a line of its own.")


def racing_reservations_admit_what_fits(case: LedgerCase) -> None:
    """Of many threads that each reserve half of the budget at once, exactly two succeed."""
    for how in ("open", "charge"):
        ledger = case.fresh()
        places = [case.reopen(ledger) for _ in range(THREADS)]

        def worker(number: int, how: str = how, places: Sequence[Ledger] = places) -> None:
            places[number].open(str(number), HALF) if how == "open" else places[number].charge(HALF)

        raised = race([lambda number=number: worker(number) for number in range(THREADS)])  # type: ignore[misc]
        won = raised.count(None)
        others = [error for error in raised if error is not None and not isinstance(error, BudgetExhausted)]
        demand(not others, f"racing reservations raised {others[:1]}", "Let them wait for each other.")
        demand(won == 2, f"{won} of {THREADS} halves were admitted", _ONE_STEP)
        demand(ledger.reserved == total([HALF, HALF]), f"two halves reserved {ledger.reserved}", _ONE_STEP)


# One relation, and one entry for a stream.


def one_relation_for_all_costs(case: LedgerCase) -> None:
    """The first accepted cost settles the neighbour relation, and costs of another one are rejected."""
    ledger = case.fresh()
    remedy = "Settle the relation with the first reservation that is accepted."
    rejects(BudgetExhausted, lambda: ledger.open("first", gaussian(9.0), "zero-out"))
    demand(ledger.neighbours is None, f"a rejected cost settled {ledger.neighbours!r}", remedy)
    ledger.open("first", HALF, "zero-out")
    demand(case.reopen(ledger).neighbours == "zero-out", "the first cost did not settle the relation", remedy)
    for what, work in (
        ("an opening", lambda: ledger.open("second", HALF, "replace")),
        ("a reservation", lambda: ledger.reserve("second", HALF, "replace")),
        ("a charge", lambda: ledger.charge(HALF, "replace")),
    ):
        _leaves_no_trace(case, ledger, f"{what} of another neighbour relation", Unprovable, work)
    ledger.charge(HALF, "zero-out")


def reservation_is_idempotent(case: LedgerCase) -> None:
    """Entering a known stream again, where it stands and for its cost, changes nothing."""
    ledger = case.fresh()
    ledger.reserve("in a store", HALF)
    ledger.open("here", gaussian(0.01), spent=gaussian(0.001), at=position(5))
    before = _content(ledger)
    other = case.reopen(ledger)
    other.reserve("in a store", HALF)
    other.open("here", gaussian(0.01), at=position(5))
    demand(_content(ledger) == before, "a stream was entered twice", "Look for its name first.")
    for what, work in (
        ("another cost of a known stream", lambda: ledger.reserve("in a store", gaussian(0.001))),
        ("another place of a known stream", lambda: ledger.open("here", gaussian(0.01), at=position(4))),
        ("a later place of a known stream", lambda: ledger.open("here", gaussian(0.01), at=position(6))),
        ("a reservation of a stream that the ledger guards", lambda: ledger.reserve("here", gaussian(0.01))),
        ("an opening of a stream that a store guards", lambda: ledger.open("in a store", HALF)),
    ):
        _leaves_no_trace(case, ledger, what, StateConflict, work)


# States.


def states_are_used_once(case: LedgerCase) -> None:
    """A commit from any state but the live one is rejected, by generation and by token, and changes nothing."""
    ledger = case.fresh()
    ledger.open("stream", HALF, at=position(0, "a"))
    ledger.commit("stream", position(0, "a"), position(1, "b"), gaussian(0.001))
    case.reopen(ledger).commit("stream", position(1, "b"), position(4, "c"), gaussian(0.002))
    for used in (position(0, "a"), position(1, "b"), position(2, "c"), position(4, "b"), position(5, "c")):
        _leaves_no_trace(
            case,
            ledger,
            f"a commit of generation {used[0]} with token {used[3]!r}, where generation 4 with token 'c' is live,",
            StateConflict,
            lambda used=used: ledger.commit("stream", used, position(9, "d"), gaussian(0.003)),  # type: ignore[misc]
        )
    ledger.commit("stream", position(4, "c"), position(5, "d"), gaussian(0.003))
    demand(ledger.spent == gaussian(0.003), f"three commits spent {ledger.spent}", "Record what the last one says.")


def generations_never_go_back(case: LedgerCase) -> None:
    """A commit to the same or an older generation, or to fewer rounds or releases, is rejected."""
    ledger = case.fresh()
    ledger.open("stream", HALF, at=(3, 30, 10, "a"))
    for following in ((3, 31, 11, "b"), (2, 31, 11, "b"), (4, 29, 10, "b"), (4, 30, 9, "b")):
        _leaves_no_trace(
            case,
            ledger,
            f"a commit from {(3, 30, 10)} to {following[:3]}",
            StateConflict,
            lambda following=following: ledger.commit("stream", (3, 30, 10, "a"), following, HALF),  # type: ignore[misc]
        )


def spent_never_falls(case: LedgerCase) -> None:
    """A commit that has spent less than the one before is rejected; a store's older number changes nothing."""
    ledger = case.fresh()
    ledger.open("here", gaussian(0.01))
    ledger.reserve("in a store", gaussian(0.01))
    ledger.commit("here", position(0), position(1), gaussian(0.005))
    ledger.record_spent("in a store", gaussian(0.005))
    _leaves_no_trace(
        case,
        ledger,
        "a commit that has spent less",
        StateConflict,
        lambda: ledger.commit("here", position(1), position(2), gaussian(0.004)),
    )
    case.reopen(ledger).record_spent("in a store", gaussian(0.004))
    spent = ledger.lines["in a store"].spent
    demand(spent == gaussian(0.005), f"an older number reduced spent to {spent}", "Record the largest.")


def spent_stays_within_reserved(case: LedgerCase) -> None:
    """A stream that would spend more than it reserved is rejected, in each part of its cost."""
    ledger = case.fresh()
    ledger.open("here", gaussian(0.01))
    ledger.reserve("in a store", gaussian(0.01))
    for more in (gaussian(0.01 * (1.0 + 1e-9)), Cost(rho=1e-9), Cost(plain_epsilon=1e-9), Cost(extra_delta=1e-15)):
        works: list[Callable[[], None]] = [
            lambda more=more: ledger.commit("here", position(0), position(1), more),  # type: ignore[misc]
            lambda more=more: ledger.record_spent("in a store", more),  # type: ignore[misc]
        ]
        for work in works:
            _leaves_no_trace(case, ledger, f"spending {more.parts} of a reserved mu² of 0.01", BudgetExhausted, work)
    ledger.commit("here", position(0), position(1), gaussian(0.01))
    ledger.record_spent("in a store", gaussian(0.01))


def racing_commits_have_one_winner(case: LedgerCase) -> None:
    """Of many threads that commit the same state at once, exactly one succeeds, generation after generation."""
    ledger = case.fresh()
    ledger.open("stream", gaussian(0.01), at=position(0, "0"))
    places = [case.reopen(ledger) for _ in range(THREADS)]
    used = position(0, "0")
    for generation in range(1, 4):
        tokens = [f"{generation} {number}" for number in range(THREADS)]
        spent = gaussian(0.001, generation)

        def commit(
            number: int,
            used: Position = used,
            generation: int = generation,
            tokens: Sequence[str] = tokens,
            spent: Cost = spent,
        ) -> None:
            places[number].commit("stream", used, position(generation, tokens[number]), spent)

        raised = race([lambda number=number: commit(number) for number in range(THREADS)])  # type: ignore[misc]
        won = [number for number, error in enumerate(raised) if error is None]
        others = [error for error in raised if error is not None and not isinstance(error, StateConflict)]
        demand(not others, f"racing commits raised {others[:1]}", "Let them wait for each other.")
        demand(len(won) == 1, f"{len(won)} of {THREADS} commits of one state succeeded", _ONE_STEP)
        used = position(generation, tokens[won[0]])
        demand(ledger.lines["stream"].live == used, "the live state is not the winner's", _ONE_STEP)


# Ends, history and copies.


def closed_streams_stay_closed(case: LedgerCase) -> None:
    """Nothing follows in a stream that was closed, and what it reserved stays reserved."""
    ledger = case.fresh()
    ledger.open("here", HALF)
    ledger.reserve("in a store", gaussian(0.001))
    ledger.commit("here", position(0), position(1), gaussian(0.01))
    for name in ("here", "in a store"):
        case.reopen(ledger).close(name)
        ledger.close(name)  # again
    for what, work in (
        ("a commit", lambda: ledger.commit("here", position(1), position(2), gaussian(0.02))),
        ("an opening", lambda: ledger.open("here", HALF, at=position(1))),
        ("a reservation", lambda: ledger.reserve("in a store", gaussian(0.001))),
    ):
        _leaves_no_trace(case, ledger, f"{what} of a closed stream", StateConflict, work)
    fault = f"after two streams were closed, {ledger.reserved} is reserved and {ledger.spent} spent"
    same = (ledger.reserved, ledger.spent) == (total([HALF, gaussian(0.001)]), gaussian(0.01))
    demand(same, fault, "Return nothing: what was released stays released.")
    closings = [event.lineage for event in ledger.history if event.kind == "closed"]
    demand(closings == ["here", "in a store"], f"the history has closings of {closings}", "Record each once.")


def unknown_streams_are_rejected(case: LedgerCase) -> None:
    """A commit, a mirrored cost or a closing of a stream that was never entered is an error."""
    ledger = case.fresh()
    for what, work in (
        ("a commit", lambda: ledger.commit("unknown", position(0), position(1), FREE)),
        ("a mirrored cost", lambda: ledger.record_spent("unknown", FREE)),
        ("a closing", lambda: ledger.close("unknown")),
    ):
        _leaves_no_trace(case, ledger, f"{what} of an unknown stream", StateConflict, work)


def history_is_chained(case: LedgerCase) -> None:
    """Each reservation and closing is an event, commits are not, and a changed, missing or moved event is found."""
    ledger = case.fresh()
    ledger.open("first", gaussian(0.001), settings={"rounds": 10})
    case.reopen(ledger).reserve("second", gaussian(0.001), settings=["b"])
    ledger.charge(gaussian(0.001))
    ledger.commit("first", position(0), position(1), gaussian(0.001))
    ledger.close("second")
    events = list(ledger.history)
    kinds = [event.kind for event in events if event.kind != "created"]
    remedy = "Add an event in the same step as the change."
    demand(kinds == ["opened", "opened", "charged", "closed"], f"the history is {kinds}", remedy)
    opened = next(event for event in events if event.lineage == "first")
    demand(opened.data["settings"] == {"rounds": 10}, "settings are not in the history", "Record them as JSON.")
    demand(first_fault(events) is None, f"the history does not verify: {first_fault(events)}", "Chain the hashes.")
    end = (len(events), events[-1].chain)
    demand(
        ledger.end_of_history == end, f"the history ends at {end}, and not as stored", "Store its end with each event."
    )
    found = case.reopen(ledger).verify()
    demand(found.ok, f"an untouched ledger has faults: {found.faults}", "Compare what was recorded.")
    for number, event in enumerate(events):
        for name, value in (("content", "{}"), ("who", "someone else"), ("lineage", "another"), ("kind", "closed")):
            if getattr(event, name) == value:
                continue
            fields: dict[str, Any] = event._asdict() | {name: value}
            changed = [*events[:number], Event(**fields), *events[number + 1 :]]
            demand(first_fault(changed), f"a changed {name} is not found", "Hash every field.")
        if number + 1 < len(events):
            later = events[number + 1]
            missing = [*events[:number], *events[number + 1 :]]
            moved = [*events[:number], later, event, *events[number + 2 :]]
            demand(first_fault(missing) and first_fault(moved), "a missing or moved event is not found", "Chain them.")


def another_process_sees_the_same(case: LedgerCase) -> None:
    """A ledger that is opened again has the same terms, lines, costs and history."""
    ledger = case.fresh()
    ledger.open("here", gaussian(0.05 / 3.0), "zero-out", at=position(0, "a"))
    ledger.commit("here", position(0, "a"), position(7, "b"), gaussian(0.01 / 3.0))
    ledger.reserve("in a store", gaussian(1e-30), "zero-out")
    other = case.reopen(ledger)
    demand(_content(other) == _content(ledger), "a ledger that was opened again differs", "Store every bit of a cost.")
    demand(other.same_as(ledger), "a ledger that was opened again is not recognised", "Compare addresses.")
    demand(not Ledger(BUDGET).same_as(ledger), "two ledgers are taken for one", "Compare addresses.")
    costs = other.lines["here"].reserved, other.spent, other.lines["in a store"].reserved
    exact = costs == (gaussian(0.05 / 3.0), gaussian(0.01 / 3.0), gaussian(1e-30))
    demand(exact, f"costs are stored as {costs}", "Store every bit of a cost.")


def copies_share_the_records(case: LedgerCase) -> None:
    """A copy spends the same budget: it is the same ledger, opens the same records, or cannot be made."""
    ledger = case.fresh()
    ledger.open("first", HALF)
    remedy = "A copy with records of its own would spend the budget again: share them, or reject the copy."
    copies = [copy.copy(ledger), copy.deepcopy(ledger)]
    try:
        pickled = pickle.dumps(ledger)
    except StateConflict:
        demand(ledger.address is None, "a ledger with an address cannot be pickled", "Pickle its address.")
    else:
        copies.append(pickle.loads(pickled))
    for number, made in enumerate(copies):
        made.charge(gaussian(1e-6))
        charged = sum(event.kind == "charged" for event in ledger.history)
        demand(charged == number + 1, "a copy has records of its own", remedy)
        demand(made.same_as(ledger), "a copy is not recognised", remedy)


# Periods.


def ended_streams_count_in_their_periods(case: LedgerCase) -> None:
    """The budget is for each period: what ended before one does not count in it, and still counts in its own."""
    ledger, here = case.monthly()
    before = Learnt(here - 1, here - 1, finished=True)
    for name in ("a", "b"):
        ledger.open(name, HALF, at=position(1), unit=MONTHLY, learnt=before)
    remedy = "Add the costs of the streams that hold a period, for each period in which the new one does."
    again = case.reopen(ledger)
    late = lambda: again.open("c", gaussian(1e-9), at=position(1), unit=MONTHLY, learnt=before)  # noqa: E731
    demand(rejects(BudgetExhausted, late), "a stream with rows of a full period was accepted later", remedy)
    demand(ledger.reserved == FREE, f"{ledger.reserved} of an earlier period counts in this one", remedy)
    demand(not rejects(BudgetExhausted, lambda: again.charge(HALF, unit=MONTHLY)), "a new period is not empty", remedy)
    ledger.reserve("d", HALF, unit=MONTHLY)
    fault = "a third half was accepted in one period"
    demand(rejects(BudgetExhausted, lambda: ledger.charge(HALF, unit=MONTHLY)), fault, remedy)
    demand(list(ledger.by_period().values()) == [total([HALF, HALF])] * 2, "periods have other sums", remedy)


def open_streams_count_until_they_end(case: LedgerCase) -> None:
    """A stream counts in each period from its first row until it is closed, then until that of its last row."""
    ledger, here = case.monthly()
    for name in ("a", "b"):
        ledger.open(name, HALF, at=position(1, name), unit=MONTHLY, learnt=Learnt(here - 2, here - 2))
    remedy = "Count a stream that is open in every later period."
    small = lambda: ledger.charge(gaussian(1e-9), unit=MONTHLY)  # noqa: E731
    demand(rejects(BudgetExhausted, small), "a period began empty with two open streams", remedy)
    ledger.commit("a", position(1, "a"), position(2, "c"), FREE, Learnt(here - 2, here))
    case.reopen(ledger).close("a")
    remedy = "Count a stream that was closed up to the period of its last row."
    demand(rejects(BudgetExhausted, small), "a stream that was closed does not count in its last period", remedy)
    ledger.close("b")
    demand(ledger.reserved == HALF, f"{ledger.reserved} is reserved by one of two halves", remedy)
    demand(not rejects(BudgetExhausted, small), "a stream counts after the period of its last row", remedy)
    between = Learnt(here - 1, here - 1, finished=True)
    ledger.open("e", HALF, at=position(1), unit=MONTHLY, learnt=between)
    last = lambda: ledger.open("f", HALF, at=position(1), unit=MONTHLY, learnt=between)  # noqa: E731
    demand(rejects(BudgetExhausted, last), "a stream does not count between its first row and its last", remedy)


def rows_belong_to_periods_that_count(case: LedgerCase) -> None:
    """Rows of a period before the stream was opened, of one to come, or of one long ago are rejected."""
    ledger, here = case.monthly()
    ledger.open("new", HALF, at=position(0, "a"), unit=MONTHLY)
    ledger.reserve("in a store", gaussian(1e-3), unit=MONTHLY)
    ledger.open("old", gaussian(1e-3), at=position(1, "a"), unit=MONTHLY, learnt=Learnt(here - 5, here - 5))
    works: list[tuple[str, Callable[[], None]]] = []
    for name, periods in (
        ("new", (here - 1, here - 1)),
        ("new", (here - 1, here)),
        ("new", (here + 1, here + 1)),
        ("old", (here - 5, here - 2)),
        ("old", (here - 6, here)),
    ):
        used, learnt = position(int(name == "old"), "a"), Learnt(*periods)
        works.append(
            (
                f"a commit of rows of periods {periods[0] - here} to {periods[1] - here} of a stream that is {name}",
                lambda name=name, used=used, learnt=learnt: ledger.commit(  # type: ignore[misc]
                    name, used, position(2, "b"), FREE, learnt
                ),
            )
        )
        if name == "new":
            works.append(
                ("the same of a store", lambda learnt=learnt: ledger.hold("in a store", learnt))  # type: ignore[misc]
            )
    for what, work in works:
        _leaves_no_trace(case, ledger, what, StateConflict, work)
    ledger.commit("old", position(1, "a"), position(2, "b"), FREE, Learnt(here - 5, here - 1))  # learnt before a border
    ledger.commit("new", position(0, "a"), position(1, "b"), FREE, Learnt(here, here))
    ledger.hold("in a store", Learnt(here, here))
    ledger.close("in a store")
    fault = "a stream in a store went on after it was closed"
    demand(rejects(StateConflict, lambda: ledger.hold("in a store", Learnt(here, here))), fault, "Look at `closed`.")


def finished_streams_release_nothing(case: LedgerCase) -> None:
    """A stream that has released all that it can ends in the period of its last row, and releases no more."""
    ledger, here = case.monthly()
    before = Learnt(here - 1, here - 1)
    ledger.open("here", HALF, at=position(1, "a"), unit=MONTHLY, learnt=before)
    ledger.reserve("in a store", HALF, unit=MONTHLY, learnt=before)
    ledger.commit("here", position(1, "a"), position(2, "b"), HALF, before._replace(finished=True))
    ledger.record_spent("in a store", HALF, finished=True)
    remedy = "Count a stream that has finished up to the period of its last row."
    demand(case.reopen(ledger).reserved == FREE, f"{ledger.reserved} is reserved by streams that have finished", remedy)
    more = Learnt(here - 1, here, finished=True)
    for what, work in (
        ("a commit", lambda: ledger.commit("here", position(2, "b"), position(3, "c"), HALF, more)),
        ("a store's commit", lambda: ledger.hold("in a store", more)),
    ):
        _leaves_no_trace(case, ledger, f"{what} with releases of a stream that has finished", StateConflict, work)
    ledger.commit("here", position(2, "b"), (3, 9, 2, "c"), HALF, more)  # rows without a release
    ledger.hold("in a store", more, releases=False)
    fault = f"rows after the last release reserve {ledger.reserved}"
    demand(ledger.reserved == FREE, fault, "No release depends on them.")
    kinds = [event.kind for event in ledger.history if event.kind != "created"]
    demand(kinds == ["opened", "opened", "finished", "finished"], f"the history is {kinds}", "Record each ending once.")
    found = case.reopen(ledger).verify()
    demand(found.ok, f"an untouched ledger has faults: {found.faults}", "Compare periods with those of the history.")


def states_with_rows_count_from_their_first(case: LedgerCase) -> None:
    """A state that enters with rows counts in their periods; in all earlier ones if nobody knows those."""
    ledger, here = case.monthly()
    full = Learnt(here - 3, here - 3, finished=True)
    for name in ("a", "b"):
        ledger.open(name, HALF, at=position(1), unit=MONTHLY, learnt=full)
    small, remedy = gaussian(1e-6), "Let it hold its cost from the period of its first row on."
    for what, learnt in (("of a full period", Learnt(here - 3, here)), ("of unknown periods", None)):
        fork = lambda learnt=learnt: ledger.open("c", small, at=position(4), unit=MONTHLY, learnt=learnt)  # noqa: E731
        demand(rejects(BudgetExhausted, fork), f"a state with rows {what} was accepted", remedy)
    ledger.open("c", small, at=position(4), unit=MONTHLY, learnt=Learnt(here - 2, here))
    ledger.open("d", small, at=position(0), unit=MONTHLY)


def periods_have_one_unit(case: LedgerCase) -> None:
    """A ledger of users and months takes streams of users, with months or without periods, and no others."""
    ledger, _ = case.monthly()
    for number, unit in enumerate(("example", "user and year", "user and day", "user or row without an id")):
        work = lambda unit=unit, number=number: ledger.open(f"{number}", gaussian(1e-6), unit=unit)  # noqa: E731
        _leaves_no_trace(case, ledger, f"a stream that protects one {unit}", Unprovable, work)
    ledger.open("all rows", gaussian(1e-6), unit="user")
    ledger.open("a month", gaussian(1e-6), unit=MONTHLY)
    other = case.reopen(ledger)
    same = (other.renews, other.unit, other.period) == (True, MONTHLY, ledger.period)
    demand(same, "a ledger that renews is another one when it is opened again", "Store that it does.")
    demand(not case.fresh().renews, "a ledger renews that was not asked to", "Store that it does not.")


CHECKS = (
    two_halves_fit_and_no_more,
    all_kinds_of_cost_add,
    rejections_leave_no_trace,
    what_is_left_fits,
    charges_are_spent_at_once,
    racing_reservations_admit_what_fits,
    one_relation_for_all_costs,
    reservation_is_idempotent,
    states_are_used_once,
    generations_never_go_back,
    spent_never_falls,
    spent_stays_within_reserved,
    racing_commits_have_one_winner,
    closed_streams_stay_closed,
    unknown_streams_are_rejected,
    history_is_chained,
    another_process_sees_the_same,
    copies_share_the_records,
    ended_streams_count_in_their_periods,
    open_streams_count_until_they_end,
    rows_belong_to_periods_that_count,
    finished_streams_release_nothing,
    states_with_rows_count_from_their_first,
    periods_have_one_unit,
)
