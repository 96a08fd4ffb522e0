"""A witness: a second database, elsewhere, that notices when a database was restored from a backup or cloned.

After each commit, and before anything is shown, the witness stores the generation and the chain hash of the stream, or
the number of events and the last hash of the ledger, with the sum of its reservations. A database that is opened with
its witness must be at the same place, or ahead of it (a process that stopped between the two commits, of which the
witness is then told). If it is behind, or has another hash at the same place, rounds that were shown would be released
again: it is rejected. A clone that agrees with the witness when it is opened is noticed by its first commit, or by that
of the other copy, whichever comes second: the witness accepts only one commit after the last that they have in common;
the other is not shown, and no process can load it to go on. The witness also knows every lineage that a ledger has
entered: a copy that lacks one is rejected even if it has gone on further.

The witness is read before the database, as it is told after it: what another process commits meanwhile looks like a
database that is ahead, and never like one that is behind.

The witness holds no secrets. It must not be restored together with the database: put it on another disk or machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.ledger import read_cost, written
from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable
from taciturn.store.database import Database, OutcomeUnknown, Row, Transaction


class Place(NamedTuple):
    """How far a stream or a ledger is: its generation or number of events, its hash, and a ledger's reservations."""

    generation: int
    chain: str
    reserved: Cost = FREE


ENTERED = Place(-1, "")
"""The place of a lineage that a ledger knows, and whose states another database guards: it never moves."""


def ledger_subject(population: str) -> str:
    """What a witness calls a ledger."""
    return f"{_LEDGER}{population}"


_LEDGER = "ledger of "


class Witness:
    """The witness of one database, which `place` names."""

    def __init__(self, address: str | os.PathLike[str], watched: Database, place: str) -> None:
        self._database = Database(address, create=True)
        self._watched = watched
        self._place = place

    @property
    def address(self) -> str:
        """Where it is, without passwords."""
        return self._database.address

    def record(self, subject: str, at: Place, before: Place | None = None) -> None:
        """Store a place that was reached by a commit from `before`, unless a later one is stored.

        Raises `StateConflict` if the place that is stored is none that this database has passed: then another copy of
        it went on.
        """
        try:
            try:
                self._record(subject, at, before)
            except OutcomeUnknown:  # the same place may be stored twice
                self._record(subject, at, before)
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"the witness {self.address} could not be told of what {self._watched.address} has committed ({error}) "
                "Nothing of it may be shown before: open the database again when the witness can be reached."
            ) from error

    def _record(self, subject: str, at: Place, before: Place | None) -> None:
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
            self._must_have_passed(subject, seen, before, at)
            if seen.generation < at.generation:
                now.execute(
                    "UPDATE witnessed SET generation = ?, chain = ?, reserved = ? WHERE place = ? AND subject = ?",
                    *values,
                    self._place,
                    subject,
                )

    def _must_have_passed(self, subject: str, seen: Place, before: Place | None, at: Place) -> None:
        """Reject a commit from `before` to `at` if the witness has `seen` a place that is not on that way.

        It may have seen a later one of this database, by a process that was faster. A ledger's way is its history.
        """
        if subject.startswith(_LEDGER) or seen.generation > at.generation:
            with self._watched.transaction(write=False) as now:
                here = dict(places_of(now))
                if subject.startswith(_LEDGER):
                    here[subject] = passed(now, subject.removeprefix(_LEDGER), seen)
            check(self._watched.address, here, {subject: seen}, self.address)
            return
        known = before is None or seen.generation < before.generation or seen[:2] == before[:2]
        if seen[:2] != at[:2] and (seen.generation == at.generation or not known):
            raise diverged(self._watched.address, self.address, subject, seen.generation)

    def replace(self, places: Mapping[str, Place]) -> None:
        """Store these places instead of all others of the database: the end of `taciturn.store.restore.recover`."""
        with self._database.transaction() as now:
            now.execute("DELETE FROM witnessed WHERE place = ?", self._place)
            for subject, at in places.items():
                now.execute(
                    "INSERT INTO witnessed (place, subject, generation, chain, reserved) VALUES (?, ?, ?, ?, ?)",
                    self._place,
                    subject,
                    at.generation,
                    at.chain,
                    json.dumps(written(at.reserved)),
                )

    def places(self) -> Mapping[str, Place]:
        """All that is stored of the database."""
        with self._database.transaction(write=False) as now:
            rows = now.rows("SELECT generation, chain, reserved, subject FROM witnessed WHERE place = ?", self._place)
        return {row[-1]: _read(row[:-1]) for row in rows}


def _read(row: Row) -> Place:
    generation, chain, reserved = row
    return Place(int(generation), chain, read_cost(json.loads(reserved)))


def witness_of(database: Database, address: str | os.PathLike[str]) -> Witness:
    """The witness of a database at an address, where there must be one; nothing is checked."""
    Database(address)  # a wrong name would otherwise make an empty witness, which knows of nothing
    with database.transaction(write=False) as now:
        [(place,)] = now.rows("SELECT id FROM place")
    return Witness(address, database, place)


def is_behind(here: Place | None, seen: Place) -> bool:
    """Whether a place lies before the one that a witness has seen, or was reached by other commits."""
    if here is None or here.generation < seen.generation:
        return True
    return here.generation == seen.generation and here.chain != seen.chain


def check(address: str, here: Mapping[str, Place], seen: Mapping[str, Place], witness: str) -> None:
    """Reject a database that is behind its witness, or has another hash at the same place."""
    for subject, at in seen.items():
        now = here.get(subject)
        if now is None or now.generation < at.generation:
            stands = "is missing" if now is None else f"is at {now.generation} and was at {at.generation}"
            raise StateConflict(
                f"{address} is behind its witness {witness}: {subject} {stands}. It was restored from a backup "
                "or cloned, and rounds that were shown would be released again. Continue the newest "
                "database; or open a second, separately charged stream with `taciturn store adopt`."
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
    sums: dict[str, list[Cost]] = {}
    for lineage, population, reserved, generation, token in transaction.rows(
        "SELECT lineage, population, reserved, generation, token FROM lines"
    ):
        places[lineage] = places.get(lineage, ENTERED) if generation is None else Place(int(generation), token)
        sums.setdefault(population, []).append(read_cost(json.loads(reserved)))
    for population, events, chain in transaction.rows("SELECT population, events, chain FROM ledgers"):
        places[ledger_subject(population)] = Place(int(events), chain, total(sums.get(population, [])))
    return places


def passed(transaction: Transaction, population: str, seen: Place) -> Place:
    """Where a ledger was at the number of events that a witness has seen, or where it is if it never had so many."""
    found = transaction.rows("SELECT events, chain FROM ledgers WHERE population = ?", population)
    if not found:
        return Place(-1, "")
    [(events, chain)] = found
    if seen.generation == 0 or int(events) <= seen.generation:
        return Place(int(events), chain)
    query = "SELECT chain FROM events WHERE population = ? AND number = ?"
    return Place(seen.generation, transaction.rows(query, population, seen.generation)[0][0])


def passed_all(transaction: Transaction, here: Mapping[str, Place], seen: Mapping[str, Place]) -> dict[str, Place]:
    """The places of a database to compare with those of its witness: of a ledger, the one in its history."""
    then = dict(here)
    for subject, at in seen.items():
        if subject.startswith(_LEDGER) and subject in here:
            then[subject] = passed(transaction, subject.removeprefix(_LEDGER), at)
    return then


def accepted(database: Database, address: str | os.PathLike[str] | None) -> Witness | None:
    """The witness of a database, after checks that the database is the one that was used last.

    Without a witness, a database that is not where it was (another file, server or timeline) is rejected: it may be a
    restored backup. With one that agrees, it is accepted, and the move is recorded in the history of its ledgers. What
    the witness was not told of, because a process stopped too early, it is told now.
    """
    with database.transaction(write=False) as now:
        [(place, identity)] = now.rows("SELECT id, identity FROM place")
        moved = identity != database.backend.identity(now)
    witness = None if address is None else Witness(address, database, place)
    if witness is not None and witness.address == database.address:
        raise InvalidInput(f"{database.address} cannot be its own witness. Put that elsewhere, on another disk.")
    seen = {} if witness is None else witness.places()  # before the database is read: see the module
    with database.transaction(write=False) as now:
        here = places_of(now)
        then = passed_all(now, here, seen)
    if witness is not None:
        check(database.address, then, seen, witness.address)
    if moved and not here.keys() <= seen.keys():  # what the witness does not know may be older than it was
        raise StateConflict(
            f"{database.address} is not where it was when it was last used: it was moved, copied or restored from a "
            "backup. If it is the newest and only copy, say so with `taciturn store confirm-moved`; if it was restored "
            "from a backup, rounds that were shown may be released again: open a second, separately charged stream "
            "with `taciturn store adopt`."
        )
    if moved and witness is not None:
        confirm_moved(database, f"the witness {witness.address} agrees")
        with database.transaction(write=False) as now:
            here = places_of(now)
    if witness is not None:
        for subject, at in reversed(here.items()):  # ledgers first: their sum must not lack a lineage that is known
            if subject not in seen or seen[subject].generation < at.generation:
                witness.record(subject, at)
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
