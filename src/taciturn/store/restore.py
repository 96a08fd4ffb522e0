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
not to be behind the one by which they were by more than `taciturn.kernel.accounting.ledger_rules.SKEW`.

Without a witness nothing is known about the lost commits: if the database is not where it was, or the caller says that
it was restored, all its streams are closed; what else was opened since the backup is nowhere, and the user must know of
it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from taciturn.accounting.ledger import Ledger
from taciturn.errors import BudgetExhausted, InvalidInput, TaciturnError
from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.ledger_rules import (
    EARLIEST,
    Learnt,
    Line,
    check_room,
    entering,
    periods_told,
    read_cost,
    rejections_told,
    used_up,
    written,
)
from taciturn.store.book import DatabaseBook, append_event, insert_line
from taciturn.store.database import Database, Transaction
from taciturn.store.encryption import read_key
from taciturn.store.events import erase_events
from taciturn.store.overview import Stream, streams
from taciturn.store.store import BEHIND, Saved, Store, closed_name, stored
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
        The stream that is closed, and the one that goes on under its name; None if none goes on.
    ledger : Ledger, optional
        Where both are charged.
    recovered : Recovered
        What was charged and closed before.
    """

    old: Saved | None
    new: Saved | None
    ledger: Ledger | None
    recovered: Recovered


class Standing(NamedTuple):
    """How a database compares with what is known of the newest one.

    Attributes
    ----------
    told : bool
        Whether anything tells: a witness, or that the database is not where it was.
    moved : bool
        Whether it is not where it was.
    behind : set of str
        Lineages and ledgers that are, or may be, behind.
    """

    told: bool
    moved: bool
    behind: set[str]


def standing(database: Database, witness: str | os.PathLike[str] | None = None) -> Standing:
    """Compare a database with its witness, and with where it was; nothing is changed."""
    watching = witness_of(database, witness)
    seen = None if watching is None else watching.places()
    with database.transaction(write=False) as now:
        return _standing(now, database, seen, False)


def _standing(now: Transaction, database: Database, seen: Mapping[str, Place] | None, restored: bool) -> Standing:
    """The same in a transaction: `seen` is what the witness knows, None without one."""
    [(identity,)] = now.rows("SELECT identity FROM place /*lock*/")
    moved = identity != database.backend.identity(now)
    here, known = places_of(now), seen or {}
    then = passed_all(now, here, known)
    behind = {subject for subject, at in known.items() if is_behind(then.get(subject), at)}
    if seen is not None:  # streams that went on without it
        behind |= {subject for subject, at in here.items() if at.previous and subject not in known}
    if moved or restored:
        behind |= {subject for subject, at in here.items() if at.generation >= 0 and subject not in known}
    return Standing(seen is not None or moved, moved, behind)


def recover(database: Database, witness: str | os.PathLike[str] | None = None, *, restored: bool = False) -> Recovered:
    """Charge what a restored database has forgotten, and close its streams that are behind; see the module.

    `restored` says that the database was restored although it is where it was: streams that the witness does not know,
    all of them without one, are closed.
    """
    watching = witness_of(database, witness)
    seen = None if watching is None else watching.places()
    with database.transaction() as now:
        done, changed = _recover_within(now, database, seen, restored, watching.address if watching else "")
    if done.moved:
        confirm_moved(database, "the database was restored and adopted")
    if watching is not None and changed:
        with database.transaction(write=False) as now:
            here = places_of(now)
        watching.replace(here)
    return done


def _recover_within(
    now: Transaction, database: Database, seen: Mapping[str, Place] | None, restored: bool, witness: str
) -> tuple[Recovered, bool]:
    """What `recover` does in one transaction, and whether that was anything."""
    _, moved, behind = _standing(now, database, seen, restored)
    here, known = places_of(now), seen or {}
    charged: dict[str, Cost] = {}
    lacking = any(subject not in here for subject in behind)
    for (population,) in now.rows("SELECT population FROM ledgers ORDER BY population"):
        subject = ledger_subject(population)
        if subject not in known:
            if behind:
                append_event(now, population, "restored", "", {"witness": None})
            continue
        lost = _lost(now, population, known)
        if subject in behind or (lacking and lost != FREE):
            book = DatabaseBook(database, population)
            if _charge(now, book, lost, known[subject], here[subject], witness):
                charged[population] = lost
    closed = [lineage for lineage in sorted(behind) if _close(now, database, lineage)]
    revoked = _revoke_tokens(now) if behind or moved or restored else 0
    return Recovered(charged, closed, moved, revoked), bool(behind or moved or charged)


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
    """End a stream that is behind, as if it had spent all, and mark it so; whether it was open."""
    changed = 0
    for (about,) in now.rows("SELECT about FROM streams WHERE lineage = ? AND closed = 0", lineage):
        marked = json.dumps({**json.loads(about), BEHIND: True})
        sql = "UPDATE streams SET closed = 1, spent = reserved, about = ? WHERE lineage = ?"
        changed += now.execute(sql, marked, lineage)
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
    population: str | None = None,
    restored: bool = False,
    end: bool = False,
) -> Adopted:
    """Continue a stream of a restored database as a second stream, which takes over its name and is charged in full.

    Before anything is changed it is tried out: whether the stream is behind, can be read by the key, and fits.

    Parameters
    ----------
    address : str or path
        The restored database; one with a ledger and no streams that are behind is only recovered.
    name : str, optional
        The stream; needed only if several are behind.
    witness, key : str or path, optional
        As of `Store`.
    ledger : Ledger, optional
        Where the second stream is charged; by default where the first one is.
    population : str, optional
        Whose ledger in this database that is, without `ledger`.
    restored : bool
        Adopt a stream that the witness does not see behind: both were restored together.
    end : bool
        Recover the database, and continue no stream.
    """
    database = Database(address)
    if end:
        return Adopted(None, None, None, recover(database, witness))
    listed = [stream for stream in streams(database) if stream.name != closed_name(stream.name, stream.lineage)]
    known = [stream.name for stream in listed]
    if name is not None and name not in known:
        raise InvalidInput(f"{database.address} has no stream {name!r}; it has {', '.join(known) or 'none'}.")
    at = standing(database, witness)
    behind = [stream.name for stream in listed if may_be_adopted(stream, at)]
    possible = known if restored or not (at.told or behind) else behind
    if name is None and len(possible) > 1:
        raise InvalidInput(
            f"{database.address} has several streams to adopt: {', '.join(possible)}. Name the one to adopt."
        )
    name = name or (possible[0] if possible else None)
    if name is not None and name not in possible:
        raise _not_behind(database.address, name, behind, at)
    if name is None and known and not at.behind:
        raise _not_behind(database.address, None, behind, at)
    old = None
    if name is not None:
        old = _try(database, name, witness, key, ledger, population)
    recovered = recover(database, witness)
    if old is not None and (restored or not at.told):  # then nothing but this call tells that it was restored
        with database.transaction() as now:
            recovered = recovered._replace(revoked=recovered.revoked + _revoke_tokens(now))
    if old is None:
        return Adopted(None, None, None, recovered)
    store = Store(address, witness=witness, key=key)
    if ledger is None and population is not None:
        ledger = store.ledger(population)
    new = store.adopt(old.name, ledger)
    return Adopted(old, new, ledger or store.ledger_of(old), recovered)


def may_be_adopted(stream: Stream, at: Standing) -> bool:
    """Whether a stream is behind, or was when it was closed for that, or its ledger elsewhere has forgotten it."""
    if stream.closed:
        return bool(stream.about.get(BEHIND)) and stream.name != closed_name(stream.name, stream.lineage)
    if stream.lineage in at.behind or not stream.ledger:
        return stream.lineage in at.behind
    try:
        line = Ledger(stream.ledger, population=stream.population).lines.get(stream.lineage)
    except TaciturnError:  # it is behind its own witness, or cannot be reached
        return False
    return line is None or line.reserved != stream.reserved


def _not_behind(address: str, name: str | None, behind: Sequence[str], at: Standing) -> InvalidInput:
    which = f"no stream of {address}" if name is None else name
    remedy = (
        "If it was restored together with its witness, insist by --restored; otherwise only revoke tokens again that "
        "were revoked since the backup."
    )
    if behind:
        remedy = f"Adopt those that are behind: {', '.join(behind)}."
    elif at.behind:
        remedy = "A ledger is behind, or a stream was opened since: run adopt without a name."
    return InvalidInput(
        f"{which} is not behind; there is nothing to adopt, and it goes on as before, at no further cost. {remedy}"
    )


class _Undone(Exception):
    pass


def _try(
    database: Database,
    name: str,
    witness: str | os.PathLike[str] | None,
    key: str | os.PathLike[str] | None,
    ledger: Ledger | None,
    population: str | None,
) -> Saved:
    """The stream, if it can be read and its second charge fits after what is recovered; nothing is changed.

    Periods of a ledger that renews are not tried: there, and where others change the ledger meanwhile, the adoption
    itself may still find no room.
    """
    watching = witness_of(database, witness)
    seen = None if watching is None else watching.places()
    chosen = read_key(key)
    try:
        with rejections_told(), database.transaction() as now:
            saved = stored(now, name, chosen)
            _recover_within(now, database, seen, False, "")
            own = population if ledger is None and population is not None else saved.population
            if ledger is not None and ledger.address != database.address:
                _check_elsewhere(ledger, saved)
            elif ledger is not None or saved.ledger == "" or population is not None:
                book = DatabaseBook(database, (ledger.population if ledger is not None else own) or "")
                if book.clock_within(now) is None:
                    line = Line(saved.reserved, FREE)
                    learnt = Learnt(EARLIEST)
                    book.enter_within(now, "tried", line, saved.neighbours, "adopted", {}, learnt)
            elif saved.ledger is not None:
                _check_elsewhere(Ledger(saved.ledger, population=saved.population), saved)
            raise _Undone
    except _Undone:
        return saved
    except BudgetExhausted as error:
        raise BudgetExhausted(
            f"{name} was not adopted, and nothing was changed: {str(error).removesuffix(_SMALLER)}Charge the second "
            "stream to another ledger that the same people know of (--ledger, --population), to whose budget this one "
            "then adds; or close the streams that are behind and continue none of them (--end)."
        ) from None


_SMALLER = "Give the model a smaller budget; that of a ledger is fixed."  # which a stream that exists cannot have


def _check_elsewhere(ledger: Ledger, saved: Saved) -> None:
    if not ledger.renews:
        check_room(ledger.privacy, ledger.reserved, saved.reserved)


def close_stream(ledger: Ledger, lineage: str) -> bool:
    """End a stream by its ledger, and in the store, if that is the same database; returns whether it is."""
    ledger.close(lineage)
    if ledger.address is None:
        return False
    with Database(ledger.address).transaction() as now:
        known = now.execute("UPDATE streams SET closed = 1 WHERE lineage = ?", lineage) > 0
        erase_events(now, lineage)
        return known
