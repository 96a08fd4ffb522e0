"""A witness: a second database, elsewhere, that notices when a database was restored from a backup or cloned.

After each commit, and before anything is shown, the witness stores the generation and the chain hash of the stream, or
the number of events and the last hash of the ledger, with the sum of its reservations. A database that is behind its
witness, or has another hash at the same place, would release rounds again that were shown: it is rejected, when it is
opened, before each COMMIT of a stream, and at every read that shows a release (`taciturn.store.store`). A clone that
agrees with the witness when it is opened is noticed by its first commit, or by that of the other copy, whichever comes
second: the witness accepts only one commit after the last that they have in common. The second does not take effect;
if both are made at once, the one that the witness is told of second is not shown, and no process can load it to go on.
The witness also knows every lineage that a ledger has entered: a copy that lacks one is rejected even if it has gone on
further.

**A database remembers its witness**, by the random id of that database and its address. From the transaction on that
adds the witness (`_add`), every transaction that writes compares the id with the one that its process has opened
(`Database.witness`): a process that has opened the database without the witness, before it was added, is rejected.
The witness is used whether or not it is named. One that is not there, or is another database, is rejected, and never
made anew. The only way on without it is `forget`, which is recorded in the history of the ledgers.

**How far a database may be ahead.** *Claim.* While a database has a witness, a stream is at most one commit ahead of
it, and the commit before its last, whose hash is stored with it (`previous`), is the one that the witness has seen.
*Proof.* A commit is made from a state that `create`, `load` or `commit` returned, and each of them tells the witness
before it returns (the ledger tells it before the next commit of a state that it guards, if that has failed, and when
the stream is opened). So the witness has seen the state, or one after it, when the commit is made, and nothing later
exists, or the commit would be rejected. Then only this commit can be missing in the witness: its process was stopped
before it could tell. ∎ A stream that is further ahead, or came from another commit, went on without its witness: it is
rejected. Ledgers may be ahead by several events, of several processes that were stopped; their history has every hash,
so that it contains the one which the witness has seen, or is rejected.

**Order.** To find out whether a database is behind, the witness is read before the database, as it is told after it:
what another process commits meanwhile looks like a database that is ahead, and never like one that is behind. To find
out whether it is too far ahead, the database is read before the witness (`Witness.record`).

The witness holds no secrets. It must not be restored together with the database: put it on another disk or machine.
`Witness.shared` tells if both are on one disk or on one PostgreSQL server, as far as that is known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.ledger_rules import read_cost, written
from taciturn.store.database import Database, OutcomeUnknown, Row, StoreReplaced, Transaction


class Place(NamedTuple):
    """How far a stream or a ledger is.

    Attributes
    ----------
    generation : int
        Generation of a stream, or number of events of a ledger.
    chain : str
        Its hash; of a state that a ledger guards, its token.
    reserved : Cost
        The sum of a ledger's reservations.
    previous : str, optional
        The hash before the last commit, "" at the first state; None for ledgers, and where it is not known.
    """

    generation: int
    chain: str
    reserved: Cost = FREE
    previous: str | None = None


ENTERED = Place(-1, "")
"""The place of a lineage that a ledger knows, and whose states another database guards: it never moves."""


def ledger_subject(population: str) -> str:
    """What a witness calls a ledger."""
    return f"{_LEDGER}{population}"


_LEDGER = "ledger of "


class Witness:
    """The witness of one database, which `place` names; `create` makes it if there is none."""

    def __init__(self, address: str | os.PathLike[str], watched: Database, place: str, *, create: bool = False) -> None:
        self._database = Database(address, create=create)
        self._watched = watched
        self._place = place
        with self._database.transaction(write=False) as now:
            [(self.id,)] = now.rows("SELECT id FROM place")
        if self.id == place:
            raise InvalidInput(
                f"{self.address} is {watched.address} itself, by another name, or a copy of it, and cannot be its "
                "witness. Name a file that does not exist yet, on another disk."
            )

    @property
    def address(self) -> str:
        """Where it is, without passwords."""
        return self._database.address

    @property
    def database(self) -> Database:
        """Where it is, opened."""
        return self._database

    def shared(self) -> str | None:
        """Why the witness may be restored together with the database, in a sentence; None if nothing is known of it."""
        held = []
        for database in (self._watched, self._database):
            with database.transaction(write=False) as now:
                held.append(database.backend.storage(now))
        if held[0] != held[1]:
            return None
        return (
            f"the witness is on the same {held[0]} as the database: if that is restored or rolled back, both are, and "
            "rounds that were shown are released again, unseen. Put the witness on another disk or machine."
        )

    def record(self, subject: str, at: Place) -> None:
        """Store a place that the database has reached, as it was read from it, unless it or a later one is stored.

        Raises `StoreReplaced` if the place that is stored is none that this database has passed: then another copy of
        it went on; or if the database has gone on without its witness. A place that is stored already needs no lock,
        for which busy streams would queue.
        """
        try:
            try:
                self._record(subject, at)
            except OutcomeUnknown:  # the same place may be stored twice
                self._record(subject, at)
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"the witness {self.address} could not be told of what {self._watched.address} has committed ({error}) "
                "Nothing of it may be shown before: open the database again when the witness can be reached."
            ) from error

    def must_allow(self, subject: str, at: Place, name: str) -> None:
        """Reject a commit after the place `at`, which the caller has locked, if another copy of the database went on.

        It is called before COMMIT, and reads the witness only, unless that lags behind.
        """
        seen = self.seen(subject)
        if seen is None or seen[:2] != at[:2]:
            self._must_follow(subject, at, seen, lambda _: name)
            self.record(subject, at)

    def seen(self, subject: str) -> Place | None:
        """The last place that is stored, read without a lock; None without one."""
        with self._database.transaction(write=False) as now:
            return self._seen(now, subject)

    def _seen(self, now: Transaction, subject: str, lock: str = "") -> Place | None:
        query = f"SELECT generation, chain, reserved FROM witnessed WHERE place = ? AND subject = ? {lock}"
        found = now.rows(query, self._place, subject)
        return _read(found[0]) if found else None

    def _record(self, subject: str, at: Place) -> None:
        seen = self.seen(subject)
        if seen is not None and seen[:2] == at[:2]:
            return
        with self._database.transaction() as now:
            self._record_within(now, subject, at)

    def _record_within(self, now: Transaction, subject: str, at: Place) -> None:
        seen = self._seen(now, subject, "/*lock*/")
        if seen is None:
            self._must_follow(subject, at, None)
            if not subject.startswith(_LEDGER):
                self._record_ledgers(now)
            if self._insert(now, subject, at):
                return
            seen = self._seen(now, subject, "/*lock*/")  # another process was faster
            assert seen is not None
        if subject.startswith(_LEDGER) or seen.generation > at.generation:
            self._must_have_passed(subject, seen)
        else:
            self._must_follow(subject, at, seen)
        if seen.generation < at.generation:
            now.execute(
                "UPDATE witnessed SET generation = ?, chain = ?, reserved = ? WHERE place = ? AND subject = ?",
                at.generation,
                at.chain,
                json.dumps(written(at.reserved)),
                self._place,
                subject,
            )

    def _record_ledgers(self, now: Transaction) -> None:
        """Before a lineage that is new to the witness: the sums that it knows must not lack a lineage that it knows.

        The process that has entered it may have stopped before it told the witness, and `restore` charges only what is
        in a sum.
        """
        with self._watched.transaction(write=False) as then:
            here = places_of(then)
        for subject, at in here.items():
            if subject.startswith(_LEDGER):
                self._record_within(now, subject, at)

    def _insert(self, now: Transaction, subject: str, at: Place) -> bool:
        return bool(
            now.execute(
                "INSERT INTO witnessed (place, subject, generation, chain, reserved) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (place, subject) DO NOTHING",
                self._place,
                subject,
                at.generation,
                at.chain,
                json.dumps(written(at.reserved)),
            )
        )

    def _must_have_passed(self, subject: str, seen: Place) -> None:
        """Reject the database, as it is now, if it has not passed the place that the witness has seen.

        The witness is locked meanwhile, so that a stream can be one commit further than what is stored, and no more.
        """
        with self._watched.transaction(write=False) as now:
            here = places_of(now)
            then = passed_all(now, here, {subject: seen})
        check(self._watched.address, then, {subject: seen}, self.address, named(self._watched))

    def _must_follow(self, subject: str, at: Place, seen: Place | None, namer: Namer | None = None) -> None:
        """Reject a stream that is not one commit after the place that the witness has seen, or at it."""
        namer = namer or named(self._watched)
        check(self._watched.address, {subject: at}, {} if seen is None else {subject: seen}, self.address, namer)
        if seen is None and at.previous:
            raise further(self._watched.address, self.address, namer(subject), at, None)

    def replace(self, places: Mapping[str, Place]) -> None:
        """Store these places instead of all others of the database."""
        with self._database.transaction() as now:
            now.execute("DELETE FROM witnessed WHERE place = ?", self._place)
            for subject, at in places.items():
                self._insert(now, subject, at)

    def places(self) -> Mapping[str, Place]:
        """All that is stored of the database."""
        with self._database.transaction(write=False) as now:
            rows = now.rows("SELECT generation, chain, reserved, subject FROM witnessed WHERE place = ?", self._place)
        return {row[-1]: _read(row[:-1]) for row in rows}

    def places_without_sums(self) -> Mapping[str, Place]:
        """The same without reservations, which take longest to read."""
        with self._database.transaction(write=False) as now:
            rows = now.rows("SELECT subject, generation, chain FROM witnessed WHERE place = ?", self._place)
        return {subject: Place(int(generation), chain) for subject, generation, chain in rows}


def _read(row: Row) -> Place:
    generation, chain, reserved = row
    return Place(int(generation), chain, read_cost(json.loads(reserved)))


class Known(NamedTuple):
    """What a database remembers of itself: its id, where it was, its witness, and whether it is elsewhere now."""

    place: str
    identity: str
    witness: str
    witness_at: str
    moved: bool


def known(database: Database, now: Transaction) -> Known:
    """What a database remembers of itself."""
    [(place, identity, witness, witness_at)] = now.rows("SELECT id, identity, witness, witness_at FROM place")
    return Known(place, identity, witness, witness_at, moved=identity != database.backend.identity(now))


def witness_of(database: Database, address: str | os.PathLike[str] | None = None) -> Witness | None:
    """The witness that is named, or that the database remembers; None without one. Nothing is compared.

    One that is not there, or not the one that the database remembers, is rejected.
    """
    with database.transaction(write=False) as now:
        about = known(database, now)
    if address is None and not about.witness:
        return None
    return _found(database, about, address)


def _found(database: Database, about: Known, address: str | os.PathLike[str] | None) -> Witness:
    """The witness at an address, by default where it was last, which must be there."""
    where = about.witness_at if address is None else address
    try:
        witness = Witness(where, database, about.place)
    except InvalidInput as error:
        if not about.witness:
            raise
        raise StateConflict(
            f"{database.address} has a witness, which was last at {about.witness_at}, and it cannot be opened "
            f"({str(error).rstrip('.')}). Restore it, or name where it is (--witness); {_GO_ON}."
        ) from error
    if about.witness and witness.id != about.witness:
        raise StateConflict(
            f"{witness.address} is not the witness of {database.address}, which was last at {about.witness_at}, but "
            f"another database. Name that one; {_GO_ON}."
        )
    return witness


_GO_ON = (
    "if it is lost, and this is certainly the newest copy of the database, say so with `taciturn store "
    "forget-witness`, and name a new one"
)


Namer = Callable[[str], str]
"""What users call a stream or ledger."""


def check(address: str, here: Mapping[str, Place], seen: Mapping[str, Place], witness: str, namer: Namer) -> None:
    """Reject a database that is behind its witness, has another hash at the same place, or went on without it."""
    for subject, at in seen.items():
        if (fault := _fault(address, subject, here.get(subject), at, witness)) is not None:
            called = namer(subject)
            error = fault if called == subject else _fault(address, called, here.get(subject), at, witness)
            assert error is not None
            raise error


def named_within(now: Transaction) -> Namer:
    """Names by the streams of a database, in a transaction on it."""

    def name(subject: str) -> str:
        if subject.startswith(_LEDGER):
            return f"the {subject}"
        found = now.rows("SELECT name FROM streams WHERE lineage = ?", subject)
        return str(found[0][0]) if found else f"stream {subject[:8]}"

    return name


def named(database: Database) -> Namer:
    """The same in a transaction of its own."""

    def name(subject: str) -> str:
        with database.transaction(write=False) as now:
            return named_within(now)(subject)

    return name


def _fault(address: str, subject: str, now: Place | None, at: Place, witness: str) -> StoreReplaced | None:
    """What is wrong with a place `now`, if the witness has seen the place `at`."""
    if now is None or now.generation < at.generation:
        stands = f"is at {now.generation} and was at {at.generation}" if now is not None else "is missing"
        if now is None and not subject.startswith("the "):
            subject = f"{subject}, opened after the backup,"
        return StoreReplaced(
            f"{address} is behind its witness {witness}: {subject} {stands}. It was restored from a backup "
            "or cloned, and rounds that were shown would be released again. Continue the newest "
            "database; or open a second, separately charged stream with `taciturn store adopt`."
        )
    if now.generation == at.generation and now.chain != at.chain:
        return StoreReplaced(
            f"{address} and its witness {witness} differ: {subject} was at {at.generation} in both, and was reached by "
            "different commits. One of two copies went on. Continue the newest database; or open a second, separately "
            "charged stream with `taciturn store adopt`."
        )
    if now.generation > at.generation and now.previous not in (None, at.chain):
        return further(address, witness, subject, now, at)
    return None


def further(address: str, witness: str, subject: str, now: Place, at: Place | None) -> StoreReplaced:
    """The error about a stream that went on without its witness."""
    stands = "does not know it" if at is None else f"has seen {at.generation}, which is not the commit before"
    return StoreReplaced(
        f"{address} went on without its witness {witness}: {subject} is at {now.generation}, and the witness {stands}. "
        "A copy was used elsewhere, or the witness was restored from a backup. If this is certainly the newest copy of "
        "the database, say so with `taciturn store forget-witness`, and name the witness again; otherwise open a "
        "second, separately charged stream with `taciturn store adopt`."
    )


def is_behind(here: Place | None, seen: Place) -> bool:
    """Whether a place does not certainly follow from the one that a witness has seen."""
    return _fault("", "", here, seen, "") is not None


def places_of(transaction: Transaction, sums: bool = True) -> dict[str, Place]:
    """How far each stream and ledger of a database is, ledgers last; without the `sums` of reservations in less time.

    Ledgers are read before their lines: what is entered between the two reads may be in the sum of a ledger too early,
    and is never missing in it.
    """
    ledgers = transaction.rows("SELECT population, events, chain FROM ledgers")
    lines = transaction.rows("SELECT lineage, population, reserved, generation, token, previous FROM lines")
    places = {
        lineage: Place(int(generation), chain, previous=previous)
        for lineage, generation, chain, previous in transaction.rows(
            "SELECT lineage, generation, chain, previous FROM streams"
        )
    }
    costs: dict[str, list[Cost]] = {}
    for lineage, population, reserved, generation, token, previous in lines:
        guarded = generation is not None
        places[lineage] = Place(int(generation), token, previous=previous) if guarded else places.get(lineage, ENTERED)
        if sums:
            costs.setdefault(population, []).append(read_cost(json.loads(reserved)))
    for population, events, chain in ledgers:
        places[ledger_subject(population)] = Place(int(events), chain, total(costs.get(population, [])))
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

    The witness is the one that is named, or that the database remembers; one that is named for a database without a
    witness is added, and made if it does not exist. Without a witness, a database that is not where it was (another
    file, server or timeline) is rejected: it may be a restored backup. With one that agrees, it is accepted, and the
    move is recorded in the history of its ledgers. What the witness was not told of, because a process stopped too
    early, it is told now.
    """
    with database.transaction(write=False) as now:
        about = known(database, now)
    if address is None and not about.witness:
        if about.moved:
            with database.transaction(write=False) as now:
                _must_be_known(database, places_of(now), {})
        database.witness = ""
        return None
    if not about.witness:
        witness = Witness(_named(address), database, about.place, create=True)
        if _add(database, witness):
            return witness
        with database.transaction(write=False) as now:  # another process has added one meanwhile
            about = known(database, now)
    witness = _found(database, about, address)
    _catch_up(database, witness, about)
    database.witness = about.witness
    return witness


def _named(address: str | os.PathLike[str] | None) -> str | os.PathLike[str]:
    assert address is not None
    return address


def _catch_up(database: Database, witness: Witness, about: Known) -> None:
    """Reject a database that is not what its witness has seen; then tell the witness what it has not."""
    here, seen = _not_behind(database, witness)
    if about.moved:
        _must_be_known(database, here, seen)
        confirm_moved(database, f"the witness {witness.address} agrees")
    if witness.address != about.witness_at:
        with database.transaction() as now:
            now.execute("UPDATE place SET witness_at = ? WHERE witness = ?", witness.address, witness.id)
    with database.transaction(write=False) as now:
        here = places_of(now)
    for subject, at in reversed(here.items()):  # ledgers first: their sum must not lack a lineage that is known
        if subject not in seen or seen[subject][:2] != at[:2]:
            witness.record(subject, at)


def _not_behind(database: Database, witness: Witness) -> tuple[Mapping[str, Place], Mapping[str, Place]]:
    """The places of a database and of its witness, after a check that the database is not behind."""
    seen = witness.places()  # before the database is read: see the module
    with database.transaction(write=False) as now:
        here = places_of(now)
        must_not_be_behind(now, database, here, seen, witness)
    return here, seen


def must_not_be_behind(
    now: Transaction, database: Database, here: Mapping[str, Place], seen: Mapping[str, Place], witness: Witness
) -> None:
    """Reject a database that is not at the places of its witness, or past them, which were read before it was."""
    behind = {subject: at._replace(previous=None) for subject, at in passed_all(now, here, seen).items()}
    check(database.address, behind, seen, witness.address, named_within(now))


def compare(database: Database, witness: Witness) -> bool:
    """Reject a database that its witness would reject, and change nothing; whether the witness knows all of it."""
    here, seen = _not_behind(database, witness)
    later = witness.places()  # after the database was read, to find out whether it is too far ahead
    for subject, at in here.items():
        if subject not in later and at.previous:
            raise further(database.address, witness.address, named(database)(subject), at, None)
        if subject in later and later[subject].generation < at.generation:
            check(database.address, {subject: at}, {subject: later[subject]}, witness.address, named(database))
    return here.keys() <= seen.keys()


def _must_be_known(database: Database, here: Mapping[str, Place], seen: Mapping[str, Place]) -> None:
    """Reject a database that was moved, with streams that no witness knows: they may be older than they were."""
    if not here.keys() <= seen.keys():
        raise StateConflict(
            f"{database.address} is not where it was when it was last used: it was moved, copied or restored from a "
            "backup. If it is the newest and only copy, say so with `taciturn store confirm-moved`; if it was restored "
            "from a backup, rounds that were shown may be released again: open a second, separately charged stream "
            "with `taciturn store adopt`."
        )


def _add(database: Database, witness: Witness) -> bool:
    """Let a database without a witness have this one; False if another process has added one meanwhile.

    The database is locked until it remembers the witness and the witness knows all that it holds: transactions before
    that are in what the witness is told, and those after it find that the database has a witness. A witness that knows
    the database from before must not be ahead of it.
    """
    with database.transaction() as now:
        database.backend.lock_all(now)
        about = known(database, now)
        if about.witness:
            return False
        seen, here = witness.places(), places_of(now)
        must_not_be_behind(now, database, here, seen, witness)
        if about.moved:
            _must_be_known(database, here, seen)
            _confirm_moved_within(now, database, f"the witness {witness.address} agrees")
            here = places_of(now)
        now.execute("UPDATE place SET witness = ?, witness_at = ?", witness.id, witness.address)
        witness.replace(here)
    database.witness = witness.id
    return True


def forget(database: Database, why: str, address: str | os.PathLike[str] | None = None) -> bool:
    """Let a database have no witness from now on, and record that in the history of its ledgers; whether it had one.

    Its witness is lost, or is to be replaced. If it can be opened, and the database is behind it, that is rejected. A
    database that is ahead of it is accepted: whoever calls this says that it is the newest copy.
    """
    from taciturn.store.book import append_event

    with database.transaction(write=False) as now:
        about = known(database, now)
    if not about.witness:
        return False
    witness = None
    try:  # before the database is locked, as a server that does not answer is waited for
        witness = _found(database, about, address)
    except (StateConflict, StoreUnavailable):
        if address is not None:
            raise
    with database.transaction() as now:
        database.backend.lock_all(now)
        if known(database, now).witness != about.witness:
            raise StateConflict(
                f"{database.address} was given another witness meanwhile. Nothing was changed; try again."
            )
        if witness is not None:
            must_not_be_behind(now, database, places_of(now), witness.places(), witness)
        now.execute("UPDATE place SET witness = '', witness_at = ''")
        for (population,) in now.rows("SELECT population FROM ledgers ORDER BY population"):
            append_event(now, population, "unwitnessed", "", {"witness": about.witness_at, "why": why})
    return True


def confirm_moved(database: Database, why: str) -> None:
    """Accept a database where it is now, and record that in the history of its ledgers."""
    with database.transaction() as now:
        _confirm_moved_within(now, database, why)


def _confirm_moved_within(now: Transaction, database: Database, why: str) -> None:
    from taciturn.store.book import append_event

    [(before,)] = now.rows("SELECT identity FROM place /*lock*/")
    identity = database.backend.identity(now)
    if identity == before:
        return
    now.execute("UPDATE place SET identity = ?", identity)
    for (population,) in now.rows("SELECT population FROM ledgers ORDER BY population"):
        append_event(now, population, "moved", "", {"from": before, "to": identity, "why": why})
