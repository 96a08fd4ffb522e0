"""A witness: a second database, elsewhere, that notices when a database was restored from a backup or cloned.

After each commit, and before anything is shown, the witness stores the generation and the chain hash of the stream, or
the number of events and the last hash of the ledger, with the sum of its reservations. A database that is opened with
its witness must be at the same place, or ahead of it (a process that stopped between the two commits, of which the
witness is then told). If it is behind, or has another hash at the same place, rounds that were shown would be released
again: it is rejected. A clone that agrees with the witness when it is opened is noticed by its first commit, or by that
of the other copy, whichever comes second: both reach the same generation by different commits. The witness also knows
every lineage that a ledger has entered: a copy that lacks one is rejected even if it has gone on further.

The witness holds no secrets. It must not be restored together with the database: put it on another disk or machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.ledger import read_cost, written
from taciturn.errors import StateConflict, StoreUnavailable
from taciturn.store.database import Database, Transaction


class Place(NamedTuple):
    """How far a stream or a ledger is: its generation or number of events, its hash, and a ledger's reservations."""

    generation: int
    chain: str
    reserved: Cost = FREE


ENTERED = Place(-1, "")
"""The place of a lineage that a ledger knows, and whose states another database guards: it never moves."""


def ledger_subject(population: str) -> str:
    """What a witness calls a ledger."""
    return f"ledger of {population}"


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

    def record(self, subject: str, at: Place) -> None:
        """Store a place, unless a later one is stored; reject one that another copy of the database has left behind."""
        try:
            with self._database.transaction() as now:
                now.execute(
                    "INSERT INTO witnessed (place, subject, generation, chain, reserved) VALUES (?, ?, ?, ?, ?) "
                    "ON CONFLICT (place, subject) DO UPDATE SET generation = excluded.generation, "
                    "chain = excluded.chain, reserved = excluded.reserved "
                    "WHERE witnessed.generation < excluded.generation",
                    self._place,
                    subject,
                    at.generation,
                    at.chain,
                    json.dumps(written(at.reserved)),
                )
                [(generation, chain)] = now.rows(
                    "SELECT generation, chain FROM witnessed WHERE place = ? AND subject = ?", self._place, subject
                )
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"the witness {self.address} could not be told of what {self._watched.address} has committed ({error}) "
                "Nothing of it may be shown before: open the database again when the witness can be reached."
            ) from error
        stored = Place(int(generation), chain)
        here = at
        if stored.generation > at.generation:  # told by another process: of this database, or of a copy?
            with self._watched.transaction(write=False) as now:
                here = places_of(now).get(subject, at)
        check(self._watched.address, {subject: here}, {subject: stored}, self.address)

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
            rows = now.rows("SELECT subject, generation, chain, reserved FROM witnessed WHERE place = ?", self._place)
        return {subject: Place(int(n), chain, read_cost(json.loads(cost))) for subject, n, chain, cost in rows}


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
            raise StateConflict(
                f"{address} and its witness {witness} differ: {subject} is at {at.generation} in both, and was "
                "reached by different commits. One of two copies went on. Continue the newest database; or open a "
                "second, separately charged stream with `taciturn store adopt`."
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


def accepted(database: Database, address: str | os.PathLike[str] | None) -> Witness | None:
    """The witness of a database, after checks that the database is the one that was used last.

    Without a witness, a database that is not where it was (another file, server or timeline) is rejected: it may be a
    restored backup. With one that agrees, it is accepted, and the move is recorded in the history of its ledgers.
    """
    with database.transaction(write=False) as now:
        [(place, identity)] = now.rows("SELECT id, identity FROM place")
        moved = identity != database.backend.identity(now)
    witness = None if address is None else Witness(address, database, place)
    seen = {} if witness is None else witness.places()
    with database.transaction(write=False) as now:  # after the witness: others may commit in the meantime
        here = places_of(now)
    if witness is not None:
        check(database.address, here, seen, witness.address)
    if moved and not seen:
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
