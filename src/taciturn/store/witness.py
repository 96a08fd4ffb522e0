"""A witness: a second database, elsewhere, that notices when a database was restored from a backup or cloned.

After each commit, and before anything is shown, the witness stores the generation and the chain hash of the stream, or
the number of events and the last hash of the ledger, with the sum of its reservations. A database that is opened with
its witness must be at the same place, or ahead of it (a process that stopped between the two commits). If it is behind,
or has another hash at the same place, rounds that were shown would be released again: it is rejected. The same is
checked whenever a stream is loaded or committed, so that of two copies that are open at once, only one goes on. Both
may commit a state after the last that they have in common, but the witness accepts one of them only; the other is not
shown, and no process can load it to go on.

The witness is read before the database, as it is told after it: what another process commits meanwhile looks like a
database that is ahead, and never like one that is behind.

The witness holds no secrets. It must not be restored together with the database: put it on another disk or machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.ledger import read_cost, written
from taciturn.errors import InvalidInput, StateConflict
from taciturn.store.database import Database, OutcomeUnknown, Row, Transaction


class Place(NamedTuple):
    """How far a stream or a ledger is: its generation or number of events, its hash, and a ledger's reservations."""

    generation: int
    chain: str
    reserved: Cost = FREE


def ledger_subject(population: str) -> str:
    """What a witness calls a ledger."""
    return f"ledger of {population}"


class Witness:
    """The witness of one database."""

    def __init__(self, address: str | os.PathLike[str], place: str) -> None:
        self._database = Database(address, create=True)
        self._place = place

    @property
    def address(self) -> str:
        """Where it is, without passwords."""
        return self._database.address

    def record(self, subject: str, at: Place, agree: Callable[[Place], None]) -> None:
        """Store a place, unless a later one is stored.

        `agree` is called with the place that is stored, and raises `StateConflict` if that is none of this database. No
        other process changes it until the new place is stored.
        """
        try:
            self._record(subject, at, agree)
        except OutcomeUnknown:  # the same place may be stored twice
            self._record(subject, at, agree)

    def _record(self, subject: str, at: Place, agree: Callable[[Place], None]) -> None:
        values = (at.generation, at.chain, json.dumps(written(at.reserved)))
        query = "SELECT generation, chain, reserved FROM witnessed WHERE place = ? AND subject = ? /*lock*/"
        with self._database.transaction() as now:
            found = now.rows(query, self._place, subject)
            if not found:
                new = now.execute(
                    "INSERT INTO witnessed (place, subject, generation, chain, reserved) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (place, subject) DO NOTHING",
                    self._place,
                    subject,
                    *values,
                )
                if new:
                    return
                found = now.rows(query, self._place, subject)
            seen = _read(found[0])
            agree(seen)
            if seen.generation < at.generation:
                now.execute(
                    "UPDATE witnessed SET generation = ?, chain = ?, reserved = ? WHERE place = ? AND subject = ?",
                    *values,
                    self._place,
                    subject,
                )

    def places(self) -> Mapping[str, Place]:
        """All that is stored of the database."""
        with self._database.transaction(write=False) as now:
            rows = now.rows("SELECT generation, chain, reserved, subject FROM witnessed WHERE place = ?", self._place)
        return {row[-1]: _read(row[:-1]) for row in rows}


def _read(row: Row) -> Place:
    generation, chain, reserved = row
    return Place(int(generation), chain, read_cost(json.loads(reserved)))


def follows(database: Database, witness: Witness, subject: str, before: Place | None, at: Place, seen: Place) -> None:
    """Reject a commit from `before` to `at` if the witness has `seen` another after `before`.

    It may have seen a later one of this database, by a process that was faster.
    """
    if seen.generation > at.generation:
        with database.transaction(write=False) as now:
            here = places_of(now)
        check(database.address, here, {subject: seen}, witness.address)
        return
    known = before is None or seen.generation < before.generation or seen[:2] == before[:2]
    if seen[:2] != at[:2] and (seen.generation == at.generation or not known):
        raise diverged(database.address, witness.address, subject, seen.generation)


def check(address: str, here: Mapping[str, Place], seen: Mapping[str, Place], witness: str) -> None:
    """Reject a database that is behind its witness, or has another hash at the same place."""
    for subject, at in seen.items():
        now = here.get(subject)
        if now is None or now.generation < at.generation:
            stands = "is missing" if now is None else f"is at {now.generation}"
            raise StateConflict(
                f"{address} is behind its witness {witness}: {subject} {stands} and was at {at.generation}. It was "
                "restored from a backup or cloned, and rounds that were shown would be released again. Continue the "
                "newest database; or open a second, separately charged stream with `taciturn store adopt`."
            )
        if now.generation == at.generation and now.chain != at.chain:
            raise diverged(address, witness, subject, at.generation)


def diverged(address: str, witness: str, subject: str, generation: int) -> StateConflict:
    """The error about one of two copies, of which the other went on."""
    return StateConflict(
        f"{address} and its witness {witness} differ: {subject} was at {generation} in both, and was reached by "
        "different commits. One of two copies went on. Continue the newest database; or open a second, separately "
        "charged stream with `taciturn store adopt`."
    )


def places_of(transaction: Transaction) -> dict[str, Place]:
    """How far each stream and ledger of a database is."""
    places = {
        lineage: Place(int(generation), chain)
        for lineage, generation, chain in transaction.rows("SELECT lineage, generation, chain FROM streams")
    }
    for lineage, generation, token in transaction.rows(
        "SELECT lineage, generation, token FROM lines WHERE generation IS NOT NULL"
    ):
        places[lineage] = Place(int(generation), token)
    for population, events, chain in transaction.rows("SELECT population, events, chain FROM ledgers"):
        lines = transaction.rows("SELECT reserved FROM lines WHERE population = ?", population)
        reserved = total(read_cost(json.loads(cost)) for (cost,) in lines)
        places[ledger_subject(population)] = Place(int(events), chain, reserved)
    return places


def passed(transaction: Transaction, population: str, seen: Place) -> Place:
    """Where a ledger was at the number of events that a witness has seen, or where it is if it never had so many."""
    [(events, chain)] = transaction.rows("SELECT events, chain FROM ledgers WHERE population = ?", population)
    if seen.generation == 0 or int(events) <= seen.generation:
        return Place(int(events), chain)
    query = "SELECT chain FROM events WHERE population = ? AND number = ?"
    return Place(seen.generation, transaction.rows(query, population, seen.generation)[0][0])


def accepted(database: Database, address: str | os.PathLike[str] | None) -> Witness | None:
    """The witness of a database, after checks that the database is the one that was used last.

    Without a witness, a database that is not where it was (another file, server or timeline) is rejected: it may be a
    restored backup. With one that agrees, it is accepted, and the move is recorded in the history of its ledgers. What
    the witness was not told of, because a process stopped too early, it is told now.
    """
    with database.transaction(write=False) as now:
        [(place, identity)] = now.rows("SELECT id, identity FROM place")
    witness = None if address is None else Witness(address, place)
    if witness is not None and witness.address == database.address:
        raise InvalidInput(f"{database.address} cannot be its own witness. Put that elsewhere, on another disk.")
    seen = {} if witness is None else witness.places()  # before the database is read: see the module
    with database.transaction(write=False) as now:
        moved = identity != database.backend.identity(now)
        here = places_of(now)
        then = dict(here)
        for (population,) in now.rows("SELECT population FROM ledgers"):
            subject = ledger_subject(population)
            if subject in seen:
                then[subject] = passed(now, population, seen[subject])
    if witness is not None:
        check(database.address, then, seen, witness.address)
    if moved and not seen:
        raise StateConflict(
            f"{database.address} is not where it was when it was last used: it was moved, copied or restored from a "
            "backup. If it is the newest and only copy, say so with `taciturn store confirm-moved`; if it was restored "
            "from a backup, rounds that were shown may be released again: open a second, separately charged stream "
            "with `taciturn store adopt`."
        )
    if moved and witness is not None:
        confirm_moved(database, f"the witness {witness.address} agrees")
    if witness is not None:
        for subject, at in here.items():
            if subject not in seen or seen[subject].generation < at.generation:
                witness.record(subject, at, partial(follows, database, witness, subject, seen.get(subject), at))
    return witness


def confirm_moved(database: Database, why: str) -> None:
    """Accept a database where it is now, and record that in the history of its ledgers."""
    from taciturn.store.book import append_event

    with database.transaction() as now:
        [(before,)] = now.rows("SELECT identity FROM place /*lock*/")
        identity = database.backend.identity(now)
        if identity == before:
            return
        now.execute("UPDATE place SET identity = ?", identity)
        for (population,) in now.rows("SELECT population FROM ledgers ORDER BY population"):
            append_event(now, population, "moved", "", {"from": before, "to": identity, "why": why})
