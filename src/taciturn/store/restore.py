"""Go on with a database that was restored from a backup, or cloned: charge what it has forgotten, then start again.

A restored database lacks its last commits, whose releases were shown. Nothing of it may simply go on:

1. *The ledger.* Streams that were opened after the backup are not in it. The witness knows the sum of all reservations
   and every lineage in it, so what is missing is that sum less the lines that witness and database both have. It is
   charged as an event of kind `restored`.
2. *The streams.* One that is behind the witness would release its rounds again. It is closed, and counts as spent what
   it reserved. `adopt` continues it as a second stream, which is charged in full.
3. *The tokens* of `taciturn serve` are revoked: some may have been revoked since the backup, which does not know of it.
4. *The witness* then stores the places of the database as it is now.

**Claim.** After `recover` the ledger's reservations are at least the cost of all that was ever shown under it, and no
stream that is behind its witness can be continued. *Proof.* A line is in the witness before anything of it is shown
(`taciturn.store.book`), so each lineage with something shown is in the database, or in the witness's sum and not in the
database, where step 1 adds it; what is in the database and not in the witness stays counted. Steps 1 to 3 are one
transaction, and the charge has a name that follows from the witness's hash, so that after a crash before step 4 the
same charge is not made twice; until step 4 the database is rejected. ∎

In a ledger that renews, what was lost counts in every period up to that of the recovery, and so does a stream that is
closed because it is behind, from its first period on: lost rows were learnt before. That takes the clock of the ledger
not to be behind the one by which they were by more than `taciturn.accounting.ledger.SKEW`.

Without a witness nothing is known about the lost commits: if the database is not where it was, or the caller says that
it was restored, all its streams are closed; what else was opened since the backup is nowhere, and the user must know of
it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.ledger import (
    EARLIEST,
    Learnt,
    Ledger,
    Line,
    entering,
    periods_told,
    read_cost,
    used_up,
    written,
)
from taciturn.errors import InvalidInput
from taciturn.store.book import DatabaseBook, append_event, insert_line
from taciturn.store.database import Database, Transaction
from taciturn.store.events import erase_events
from taciturn.store.overview import streams
from taciturn.store.store import Saved, Store, closed_name
from taciturn.store.witness import Place, confirm_moved, is_behind, ledger_subject, passed_all, places_of, witness_of


class Recovered(NamedTuple):
    """What `recover` did.

    Attributes
    ----------
    charged : dict
        The cost that was missing, by population.
    closed : list of str
        Lineages that were behind, and are closed.
    moved : bool
        Whether the database was not where it was.
    revoked : int
        How many tokens were live, and are revoked.
    """

    charged: dict[str, Cost]
    closed: list[str]
    moved: bool
    revoked: int


class Adopted(NamedTuple):
    """What `adopt` did.

    Attributes
    ----------
    old, new : Saved, optional
        The stream that is closed, and the one that goes on under its name; None if the database has no streams.
    ledger : Ledger, optional
        Where both are charged.
    recovered : Recovered
        What was charged and closed before.
    """

    old: Saved | None
    new: Saved | None
    ledger: Ledger | None
    recovered: Recovered


def recover(database: Database, witness: str | os.PathLike[str] | None = None, *, restored: bool = False) -> Recovered:
    """Charge what a restored database has forgotten, and close its streams that are behind; see the module.

    `restored` says that the database was restored although it is where it was: streams that the witness does not know,
    all of them without one, are closed.
    """
    watching = witness_of(database, witness)
    seen = {} if watching is None else watching.places()
    charged: dict[str, Cost] = {}
    with database.transaction() as now:
        [(identity,)] = now.rows("SELECT identity FROM place /*lock*/")
        moved = identity != database.backend.identity(now)
        here = places_of(now)
        then = passed_all(now, here, seen)
        behind = {subject for subject, at in seen.items() if is_behind(then.get(subject), at)}
        if watching is not None:  # streams that went on without it
            behind |= {subject for subject, at in here.items() if at.previous and subject not in seen}
        if moved or restored:
            behind |= {subject for subject, at in here.items() if at.generation >= 0 and subject not in seen}
        lacking = any(subject not in here for subject in behind)
        for (population,) in now.rows("SELECT population FROM ledgers ORDER BY population"):
            subject = ledger_subject(population)
            if subject not in seen:
                if behind:
                    append_event(now, population, "restored", "", {"witness": None})
                continue
            lost = _lost(now, population, seen)
            if subject in behind or (lacking and lost != FREE):
                address = watching.address if watching else ""
                book = DatabaseBook(database, population)
                if _charge(now, book, lost, seen[subject], here[subject], address):
                    charged[population] = lost
        closed = [lineage for lineage in sorted(behind) if _close(now, database, lineage)]
        revoked = _revoke_tokens(now) if behind or moved or restored else 0
    if moved:
        confirm_moved(database, "the database was restored and adopted")
    if watching is not None and (behind or moved or charged):
        with database.transaction(write=False) as now:
            here = places_of(now)
        watching.replace(here)
    return Recovered(charged, closed, moved, revoked)


def _revoke_tokens(now: Transaction) -> int:
    """Revoke all tokens, and the sessions that were opened with them; how many tokens were live."""
    at = time.time_ns() // 1_000_000
    [(live,)] = now.rows(
        "SELECT count(*) FROM tokens WHERE revoked IS NULL AND parent IS NULL AND (expires IS NULL OR expires > ?)", at
    )
    now.execute("UPDATE tokens SET revoked = ? WHERE revoked IS NULL", at)
    return int(live)


def _lost(now: Transaction, population: str, seen: Mapping[str, Place]) -> Cost:
    """What the witness's sum has and the lines here, of those that it knows, have not; rounded up."""
    rows = now.rows("SELECT lineage, reserved FROM lines WHERE population = ?", population)
    known = total(read_cost(json.loads(cost)) for lineage, cost in rows if lineage in seen)
    pairs = zip(seen[ledger_subject(population)].reserved.parts, known.parts, strict=True)
    return Cost(*(_difference(more, less) for more, less in pairs))


def _difference(more: float, less: float) -> float:
    """At least `more - less`, and at least 0."""
    if not (math.isfinite(more) and math.isfinite(less)):
        return more
    exact = Fraction(more) - Fraction(less)
    rounded = float(exact)
    return max(0.0, math.nextafter(rounded, math.inf) if Fraction(rounded) < exact else rounded)


def _charge(now: Transaction, book: DatabaseBook, lost: Cost, seen: Place, here: Place, witness: str) -> bool:
    """Add what was lost as a line and an event, once for each place of the witness; it is owed, whether it fits or not.

    If the ledger renews, it counts in all periods up to the present one. Returns whether it was added.
    """
    lineage = f"restored {seen.chain[:32]}"
    if now.rows("SELECT lineage FROM lines WHERE lineage = ?", lineage):
        return False
    population, clock = book.population, book.clock_within(now)
    made = Line(lost, lost, None, closed=True)
    line = entering(made, Learnt(EARLIEST), clock, book.lines_within(now).values())
    insert_line(now, population, lineage, line)
    [(neighbours,)] = now.rows("SELECT neighbours FROM ledgers WHERE population = ?", population)
    content = {
        "reserved": written(lost),
        "neighbours": neighbours,
        "settings": None,
        "witness": witness,
        "events": {"database": here.generation, "witness": seen.generation},
    }
    append_event(now, population, "restored", lineage, content | periods_told(line))
    return True


def _close(now: Transaction, database: Database, lineage: str) -> bool:
    """End a stream that is behind, as if it had spent all; whether it was open."""
    changed = now.execute("UPDATE streams SET closed = 1, spent = reserved WHERE lineage = ? AND closed = 0", lineage)
    lines = now.rows("SELECT population, closed FROM lines WHERE lineage = ?", lineage)
    for population, closed in lines:
        if not closed:
            DatabaseBook(database, population).change_within(now, lineage, used_up, "closed")
            changed += 1
    return changed > 0


def adopt(
    address: str | os.PathLike[str],
    name: str | None = None,
    *,
    witness: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    ledger: Ledger | None = None,
) -> Adopted:
    """Continue a stream of a restored database as a second stream, which takes over its name and is charged in full.

    Parameters
    ----------
    address : str or path
        The restored database; one with a ledger and no streams is only recovered.
    name : str, optional
        The stream; needed only if there are several.
    witness, key : str or path, optional
        As of `Store`.
    ledger : Ledger, optional
        Where the second stream is charged; by default where the first one is.
    """
    database = Database(address)
    known = [stream.name for stream in streams(database) if stream.name != closed_name(stream.name, stream.lineage)]
    if name is None and len(known) > 1:
        raise InvalidInput(f"{database.address} has several streams: {', '.join(known)}. Name the one to adopt.")
    if name is not None and name not in known:
        raise InvalidInput(f"{database.address} has no stream {name!r}; it has {', '.join(known) or 'none'}.")
    recovered = recover(database, witness)
    if witness_of(database, witness) is None:  # then nothing but this call tells that it was restored
        with database.transaction() as now:
            recovered = recovered._replace(revoked=recovered.revoked + _revoke_tokens(now))
    if not known:
        return Adopted(None, None, None, recovered)
    store = Store(address, witness=witness, key=key)
    old = store.load(name or known[0])
    if witness is not None and not (recovered.closed or recovered.moved or recovered.charged or old.closed):
        raise InvalidInput(
            f"{database.address} is the newest copy, as its witness knows. There is nothing to adopt: continue it as "
            "before, at no further cost. If it was restored, revoke tokens again that were revoked since the backup."
        )
    new = store.adopt(old.name, ledger)
    return Adopted(old, new, ledger or store.ledger_of(old), recovered)


def close_stream(ledger: Ledger, lineage: str) -> bool:
    """End a stream by its ledger, and in the store, if that is the same database; returns whether it is."""
    ledger.close(lineage)
    if ledger.address is None:
        return False
    with Database(ledger.address).transaction() as now:
        known = now.execute("UPDATE streams SET closed = 1 WHERE lineage = ?", lineage) > 0
        erase_events(now, lineage)
        return known
