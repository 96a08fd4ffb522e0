"""The records of a ledger in a database: every check and the change it allows are one transaction.

*Why no more is admitted than fits.* A reservation locks the row of its ledger (all of the file in SQLite), reads every
line of the ledger, checks the sum with the new line in it (`taciturn.kernel.accounting.ledger_rules.admitted`), and
inserts the line before the lock ends with the commit. Two reservations are therefore made one after the other, the
second sees the line of the first, and the sum of all lines fits the budget at every moment.

*Why the sums are those of periods, in a ledger that renews.* The lines that are read have their periods in them. A
stream that is closed or finished after they were read only counts in fewer periods.

*Why a state is used once.* A commit locks the line of its stream, compares the state's generation and token with those
of the line, and stores those of the next state. Of two commits of one state the second waits, and then finds another
token. ∎
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from taciturn.accounting.history import FIRST, Event, next_event
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable
from taciturn.kernel.accounting.cost import Cost, total
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.ledger_rules import (
    Change,
    Clock,
    Learnt,
    Line,
    Terms,
    admitted,
    ended_told,
    entering,
    periods_told,
    read_cost,
    unknown_stream,
    written,
)
from taciturn.store.database import Database, OutcomeUnknown, Row, Transaction, check_name, unavailable
from taciturn.store.witness import ENTERED, Place, Witness, accepted, ledger_subject

_LINE = "lineage, reserved, spent, generation, t, k, token, closed, first, last, finished"


class DatabaseBook:
    """A `taciturn.accounting.ledger.Book` in a database.

    Parameters
    ----------
    database : Database
        Where the records are.
    population : str
        Which ledger of the database.
    witness : Witness, optional
        Told of every change before it returns.
    """

    def __init__(self, database: Database, population: str, witness: Witness | None = None) -> None:
        self.database = database
        self.population = population
        self.witness = witness
        self._untold: set[str] = set()  # lineages of which the witness may not have been told

    @property
    def address(self) -> str:
        return self.database.address

    @property
    def witnessed_by(self) -> str | None:
        return None if self.witness is None else self.witness.address

    @property
    def terms(self) -> Terms:
        with self.database.transaction(write=False) as now:
            return self._terms(now)

    def _terms(self, now: Transaction, lock: bool = False) -> Terms:
        [(unit, neighbours, epsilon, delta, renews)] = now.rows(
            "SELECT unit, neighbours, epsilon, delta, renews FROM ledgers WHERE population = ? "
            f"{'/*lock*/' if lock else ''}",
            self.population,
        )
        privacy = Privacy(float.fromhex(epsilon), float.fromhex(delta))
        return Terms(privacy, self.population, unit, neighbours, bool(renews))

    def clock(self) -> Clock | None:
        with self.database.transaction(write=False) as now:
            return self.clock_within(now, self._terms(now))

    def clock_within(self, now: Transaction, terms: Terms | None = None) -> Clock | None:
        """The clock of a ledger that renews, in a transaction."""
        period = (terms or self._terms(now)).period
        return None if period is None else Clock(period, self.database.backend.clock(now))

    def lines(self) -> Mapping[str, Line]:
        with self.database.transaction(write=False) as now:
            return self.lines_within(now)

    def lines_within(self, now: Transaction) -> dict[str, Line]:
        """The lineages, by name, in a transaction."""
        rows = now.rows(f"SELECT {_LINE} FROM lines WHERE population = ? ORDER BY lineage", self.population)
        return {row[0]: _read(row) for row in rows}

    def events(self) -> Sequence[Event]:
        with self.database.transaction(write=False) as now:
            rows = now.rows(
                "SELECT number, at, who, version, kind, lineage, content, chain FROM events WHERE population = ? "
                "ORDER BY number",
                self.population,
            )
        return [Event(*row) for row in rows]

    def last(self) -> tuple[int, str]:
        with self.database.transaction(write=False) as now:
            [(count, chain)] = now.rows("SELECT events, chain FROM ledgers WHERE population = ?", self.population)
        return int(count), chain

    def _ever_reserved(self, now: Transaction) -> Cost:
        """The sum of all lines, whichever period they count in: a witness compares it."""
        return total(line.reserved for line in self.lines_within(now).values())

    def enter(
        self, lineage: str, line: Line, neighbours: str, kind: str, content: dict[str, Any], learnt: Learnt
    ) -> None:
        self._untold.add(lineage)
        try:
            with self.database.transaction() as now:
                self.enter_within(now, lineage, line, neighbours, kind, content, learnt)
        except OutcomeUnknown as error:
            with self.database.reading_back(error) as now:  # waits for the one in doubt: both lock the ledger
                self._terms(now, lock=True)
                known = self._line(now, lineage)
            if known is None or (known.live, known.reserved) != (line.live, line.reserved):
                raise unavailable(self.address, error.__cause__) from error
        except (BudgetExhausted, StateConflict, Unprovable):
            self._untold.discard(lineage)
            raise
        self.tell_witness(lineage)

    def enter_within(
        self,
        now: Transaction,
        lineage: str,
        line: Line,
        neighbours: str,
        kind: str,
        content: dict[str, Any],
        learnt: Learnt,
    ) -> bool:
        """The same in a transaction that changes more than the ledger; whether the lineage is new."""
        terms = self._terms(now, lock=True)
        clock = self.clock_within(now, terms)  # after the lock, which may have been waited for
        known = self._line(now, lineage)
        others = list(self.lines_within(now).values())
        entered = entering(line, learnt, clock, others) if known is None else line
        new = admitted(terms, known, others, entered, neighbours, clock)
        if new:
            insert_line(now, self.population, lineage, entered)
            now.execute("UPDATE ledgers SET neighbours = ? WHERE population = ?", neighbours, self.population)
            append_event(now, self.population, kind, lineage, content | periods_told(entered))
        return new

    def _line(self, now: Transaction, lineage: str) -> Line | None:
        found = now.rows(
            f"SELECT {_LINE} FROM lines WHERE lineage = ? AND population = ? /*lock*/", lineage, self.population
        )
        return _read(found[0]) if found else None

    def change(self, lineage: str, changed: Change, kind: str | None = None) -> None:
        if lineage in self._untold:  # a commit that was not told: the witness must know the state that is used
            self.tell_witness(lineage)
        self._untold.add(lineage)
        wanted: Line | None = None
        try:
            with self.database.transaction() as now:
                wanted = self.change_within(now, lineage, changed, kind)
        except OutcomeUnknown as error:
            with self.database.reading_back(error) as now:  # waits for the one in doubt: both lock the line
                found = self._line(now, lineage)
            if found != wanted:
                raise unavailable(self.address, error.__cause__) from error
        self.tell_witness(lineage)

    def change_within(self, now: Transaction, lineage: str, changed: Change, kind: str | None = None) -> Line:
        """The same in a transaction that changes more than the ledger."""
        if kind is not None:
            self._terms(now, lock=True)  # always before a line, so that two transactions cannot wait for each other
        line = self._line(now, lineage)
        if line is None:
            raise unknown_stream()
        new = changed(line, None if line.first is None else self.clock_within(now))
        if new != line:
            # one UPDATE: PostgreSQL locks the ledger for a second one of the same row, in the wrong order
            now.execute(
                "UPDATE lines SET spent = ?, generation = ?, t = ?, k = ?, token = ?, closed = ?, last = ?, "
                "finished = ?, previous = COALESCE(?, previous) WHERE lineage = ?",
                json.dumps(written(new.spent)),
                *(new.live or (None, None, None, None)),
                int(new.closed),
                new.last,
                int(new.finished),
                line.live[3] if line.live is not None and new.live != line.live else None,
                lineage,
            )
            if kind is not None and getattr(new, kind) and not getattr(line, kind):
                append_event(now, self.population, kind, lineage, ended_told(new))
        return new

    def tell_witness(self, lineage: str) -> None:
        """Record the ledger's place, and that of a stream it guards, in the witness."""
        if self.witness is not None:
            with self.database.transaction(write=False) as now:
                [(events, chain)] = now.rows("SELECT events, chain FROM ledgers WHERE population = ?", self.population)
                reserved = self._ever_reserved(now)
                live = now.rows("SELECT generation, token, previous FROM lines WHERE lineage = ?", lineage)
            self.witness.record(ledger_subject(self.population), Place(int(events), chain, reserved))
            for generation, token, previous in live:
                at = ENTERED if generation is None else Place(int(generation), token, previous=previous)
                self.witness.record(lineage, at)
        self._untold.discard(lineage)


def insert_line(now: Transaction, population: str, lineage: str, line: Line) -> None:
    """Add a line to a ledger, which the caller has locked."""
    inserted = now.execute(
        f"INSERT INTO lines ({_LINE}, population, previous) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '') "
        "ON CONFLICT DO NOTHING",
        lineage,
        json.dumps(written(line.reserved)),
        json.dumps(written(line.spent)),
        *(line.live or (None, None, None, None)),
        int(line.closed),
        line.first,
        line.last,
        int(line.finished),
        population,
    )
    if inserted != 1:
        raise StateConflict(
            "this stream is in the ledger of another population of this database. Start a stream for each population."
        )


def append_event(now: Transaction, population: str, kind: str, lineage: str, content: dict[str, Any]) -> None:
    """Add an event to the history of a ledger."""
    [(count, chain)] = now.rows("SELECT events, chain FROM ledgers WHERE population = ? /*lock*/", population)
    event = next_event(int(count), chain, kind, lineage, content)
    now.execute(
        "INSERT INTO events (population, number, at, who, version, kind, lineage, content, chain) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        population,
        *event,
    )
    now.execute("UPDATE ledgers SET events = ?, chain = ? WHERE population = ?", event.number, event.chain, population)


def _read(row: Row) -> Line:
    _, reserved, spent, generation, t, k, token, closed, first, last, finished = row
    live = None if generation is None else (int(generation), int(t), int(k), str(token))
    reserved, spent = (read_cost(json.loads(cost)) for cost in (reserved, spent))
    first, last = (None if period is None else int(period) for period in (first, last))
    return Line(reserved, spent, live, bool(closed), first, last, bool(finished))


def populations(database: Database) -> list[str]:
    """The ledgers of a database, by their populations."""
    with database.transaction(write=False) as now:
        return [name for (name,) in now.rows("SELECT population FROM ledgers ORDER BY population")]


def open_book(
    address: str | os.PathLike[str], population: str | None, witness: str | os.PathLike[str] | None
) -> DatabaseBook:
    """The ledger at an address; the only one there, if no population is named."""
    database = Database(address)
    return DatabaseBook(database, choose_population(database, population), accepted(database, witness))


def choose_population(database: Database, population: str | None) -> str:
    """The population that is named, or the only one; an error if there is none."""
    names = populations(database)
    if not names:
        raise InvalidInput(
            f"there is no ledger in {database.address}. Create one by Ledger.create(…) or `taciturn budget create`."
        )
    if population is None and len(names) > 1:
        raise InvalidInput(
            f"{database.address} has several ledgers: {', '.join(names)}. Choose one by population={names[0]!r}."
        )
    if population is not None and population not in names:
        raise InvalidInput(f"{database.address} has no ledger of {population!r}, only of {', '.join(names)}.")
    return population or names[0]


def create_book(address: str | os.PathLike[str], terms: Terms, witness: str | os.PathLike[str] | None) -> DatabaseBook:
    """A new ledger at an address."""
    assert terms.privacy is not None
    check_name("population", terms.population)
    database = Database(address, create=True)
    told = accepted(database, witness)
    privacy = terms.privacy
    budget = {"epsilon": privacy.epsilon, "delta": privacy.delta}
    with database.transaction() as now:
        inserted = now.execute(
            "INSERT INTO ledgers (population, unit, neighbours, epsilon, delta, renews, events, chain) "
            "VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING",
            terms.population,
            terms.unit,
            terms.neighbours,
            privacy.epsilon.hex(),
            privacy.delta.hex(),
            int(terms.renews),
            FIRST,
        )
        if inserted != 1:
            raise InvalidInput(
                f"{database.address} has a ledger of {terms.population!r} already. Open it by "
                f"Ledger({database.address!r}), or name another population."
            )
        content = {**budget, "unit": terms.unit, "neighbours": terms.neighbours}
        content |= {"renews": True} if terms.renews else {}
        append_event(now, terms.population, "created", "", content)
    book = DatabaseBook(database, terms.population, told)
    book.tell_witness("")
    return book
