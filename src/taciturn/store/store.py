"""Where streams live: one transaction commits a stream's state, spent privacy, releases and input position.

**Order.** A commit is one transaction; anything is shown only after it:

1. compare the stream's (lineage, generation, token) with those of the state that was used, and store those of the new
   state, in one UPDATE; with them the new state, what it has spent, its position in the input and its chain hash; then,
   as no other process can change the row any more, compare the state that was used with the last that this process and
   the witness have seen; add the layers of users' records that are new, and remove those that the new state does not
   name;
2. insert the releases: this table is the outbox, from which they are shown, not before `visible_at` if that is given;
   insert the requests whose rows the new state has learnt; erase the events that it has learnt
   (`taciturn.store.events`);
3. if the ledger is in the same database, record there what is spent;
4. COMMIT: all of it is on the disk, or none of it. Then tell the witness, if there is one. Then show. A ledger
   elsewhere is told what is spent.

If the ledger renews, it also has to accept the periods of the rows: in step 3, or, if it is elsewhere, before step 1
(`Ledger.hold`). One that cannot be reached then has to be waited for.

**Claim.** Whenever a process, the machine or the connection stops, and however many processes use the stream: no round
is shown twice with different noise; what the store records as spent is at least the cost of everything shown; every row
is counted once, for the stream and for its user; and the reservation, which the ledger made before the first commit,
covers all of it.

*Proof.* Let S be the row of the stream at any moment. SQLite's transactions are atomic, serial and durable as set up in
`taciturn.store.sqlite`, PostgreSQL's as in `taciturn.store.postgres`. (i) *One successor.* The UPDATE changes the row
only if its generation and token are those of the state that was used: under the lock of the file (SQLite) or of the row
(PostgreSQL, which evaluates the condition again on the newest row after waiting for its lock). A token is random and
used once, so each state has at most one successor that is committed. (ii) *Shown implies committed.* Releases are shown
from the outbox, which has those of committed transactions only. So each release number occurs once in it, with one
value; a process whose COMMIT failed or was rejected discards what it learnt, and those rounds are released by the
transaction that succeeds. (iii) *Spent.* Spent is in the same transaction as the releases, and never falls
(`check_step`). (iv) *Counted once.* The position in the input is in the same transaction as the state that has learnt
the rows before it, and so are the users' records after those rows: whoever learns from the next row reads them. (v)
*Reserved.* A stream is inserted after, or in one transaction with, its reservation, and a commit that would spend more
is rejected. (vi) *Unknown outcome.* If COMMIT fails, the row is read again in a new transaction that locks it, and so
waits for the one in doubt: it has the new token, and the commit took effect, or it has not, and nothing did. ∎

The proof assumes that the database is the newest one. A backup or another copy that is put in its place while it is in
use is neither shown nor gone on from. *Each read that shows a release* reads in one statement, and so from one
snapshot, the release and the stream's generation and chain, and compares these with the highest that this process and
its witness have seen (`Store._must_be_newest`); so does each commit, before COMMIT, with those of the state that was
used. Without a witness a process knows only what it has seen itself: what was behind once is then rejected until it is
again what that process has seen, as others may have gone on from there. A backup that is put back while no process runs
is noticed as `taciturn.store.witness` says.

The chain hash covers the token, numbers of rounds and releases, spent and the releases, all of which are public once
they are shown. It never covers the state or rows: a hash of them without a key would let others test guesses.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from taciturn.accounting.ledger import Ledger
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, StoreUnavailable, TaciturnError
from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.ledger_rules import (
    JUST_NOW,
    Clock,
    Learnt,
    Line,
    Position,
    at_most,
    check_step,
    check_unit,
    closed,
    entered_as,
    extended,
    learnt_by,
    mirrored,
    read_cost,
    rejections_told,
    used_up,
    written,
)
from taciturn.kernel.stream.state import learnt_before, new_name, read_extra, read_state
from taciturn.store.book import DatabaseBook, choose_population
from taciturn.store.database import (
    Database,
    OutcomeUnknown,
    Row,
    StoreReplaced,
    Transaction,
    check_name,
    in_parts,
    unavailable,
)
from taciturn.store.encryption import Key, is_encrypted, read_key
from taciturn.store.events import (
    EVENTS,
    FARTHEST,
    EventLog,
    begin_log,
    erase_events,
    learn_events,
    lock_events,
    take_over_events,
)
from taciturn.store.witness import Place, accepted, must_not_be_behind, places_of

_FIELDS = (
    "name, lineage, generation, token, t, k, reserved, spent, chain, previous, about, ledger, population, neighbours, "
    "closed, key, state, input"
)

BEHIND = "behind"
"""In what is public about a stream: it was closed because it was behind (`taciturn.store.restore`)."""

_AT_TICK = """
SELECT streams.name, streams.lineage, generation, chain, k, streams.closed,
    (SELECT last FROM releases WHERE lineage = streams.lineage
        AND (visible_at IS NULL OR visible_at <= ? OR visible_at > ?) ORDER BY first DESC LIMIT 1),
    opened, opened - streams.t, due
FROM streams
LEFT JOIN event_logs ON event_logs.lineage = streams.lineage
LEFT JOIN stream_events ON stream_events.lineage = streams.lineage AND number = streams.t + 1
WHERE archived = 0 ORDER BY streams.name
"""

_EARLIER = "adopted from"  # in what is public about a stream: costs of the streams before it


class Chunk(NamedTuple):
    """Consecutive releases: the numbers of the first and the last, the round of the last, and their content."""

    first: int
    last: int
    t: int
    content: bytes


class Request(NamedTuple):
    """A request whose rows were learnt: keyed hashes of its key and of its content, and the rounds of its rows."""

    key: bytes
    body: bytes
    first: int
    last: int


class Lease(NamedTuple):
    """The process that wrote a stream last, and until when others wait for it, in milliseconds since the epoch.

    It avoids wasted work. What decides who writes is the comparison of generation and token in each commit.
    """

    holder: str
    expires: int


class Current(NamedTuple):
    """Whether a state is still the newest of its stream, and what else the store has of the stream at that moment.

    `visible_at` is that of its last releases, 0 if they have none; `requests` are those of some keys that were learnt.
    """

    newest: bool
    lease: Lease | None
    visible_at: int
    requests: Mapping[bytes, Request]


class AtTick(NamedTuple):
    """What a server shows of a stream at a tick.

    Attributes
    ----------
    name, lineage : str
        What the user calls it, and its unique name.
    releases : int
        How many are committed.
    closed : bool
        Whether it has ended.
    visible : int
        How many releases may be shown.
    opened, pending : int
        Events that were opened, and those of them that are not learnt yet.
    due : int, optional
        When the wait of the next event to be learnt ends, in milliseconds since the epoch.
    line, visible_at : bytes and int, optional
        Content of the last visible release, and since when; None if no more are visible than were shown.
    error : Exception, optional
        Why the stream may not be shown.
    """

    name: str
    lineage: str
    releases: int
    closed: bool
    visible: int
    opened: int = 0
    pending: int = 0
    due: int | None = None
    line: bytes | None = None
    visible_at: int | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class Saved:
    """A stream as the store has it.

    Attributes
    ----------
    name, lineage : str
        What the user calls the stream, and its unique name.
    position : tuple
        Generation, examples seen, releases made, and the token of the state.
    reserved, spent : Cost
        The most it can cost, and what it has cost.
    state, input : bytes
        Secret: the state, and the position in the input.
    layers : frozenset of str
        Names of the layers of users' records that the state needs; `Store.layers` has their contents.
    about : dict
        Public data of the one who made the stream.
    chain, previous : str
        Hash of all commits, and of all but the last; the second is None if it is not known.
    ledger, population : str, optional
        Where its cost is reserved; "" for a ledger in the same database.
    neighbours : str
        The neighbour relation of its cost.
    closed : bool
        Whether it has ended.
    """

    name: str
    lineage: str
    position: Position
    reserved: Cost
    spent: Cost
    state: bytes
    input: bytes
    about: dict[str, Any]
    chain: str
    ledger: str | None = None
    population: str | None = None
    neighbours: str = "replace"
    closed: bool = False
    previous: str | None = ""
    layers: frozenset[str] = frozenset()

    @property
    def place(self) -> Place:
        """How far it is, as a witness records it."""
        return Place(self.position[0], self.chain, previous=self.previous)

    @property
    def earlier(self) -> Cost:
        """What the streams reserved that this one was adopted from; its releases begin with theirs."""
        return total(read_cost(cost) for cost in self.about.get(_EARLIER, []))

    @property
    def adopted(self) -> int:
        """How many streams this one was adopted from, one after the other."""
        return len(self.about.get(_EARLIER, []))

    def __repr__(self) -> str:
        generation, t, k, _ = self.position
        return f"Saved({self.name!r}, t={t}, releases={k}, generation={generation}, spent {self.spent})"


class Store:
    """A database of streams.

    Parameters
    ----------
    address : str or path
        A SQLite file, which is made if it does not exist, or `postgresql://…`.
    witness : str or path, optional
        A second database, elsewhere, that notices when this one was restored from a backup.
    key : str or path, optional
        File of the key that encrypts states; by default the environment variable `TACITURN_KEY`, and without that
        states are not encrypted.

    Examples
    --------
    >>> import tempfile
    >>> from taciturn.kernel.accounting.cost import gaussian
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/streams.db")
    >>> saved = store.create("clicks", lineage="a lineage", position=(0, 0, 0, "first"), reserved=gaussian(1.0))
    >>> release = Chunk(1, 1, t=100, content=b'{"k": 1}')
    >>> new = store.commit(saved, position=(1, 100, 1, "second"), spent=gaussian(0.5), state=b"...", releases=[release])
    >>> store.load("clicks")
    Saved('clicks', t=100, releases=1, generation=1, spent mu = 0.7071)
    >>> store.commit(saved, position=(1, 100, 1, "other"), spent=gaussian(0.5), state=b"...")
    Traceback (most recent call last):
    ...
    taciturn.errors.StateConflict: generation 0 of clicks is not its live state: ...
    >>> folder.cleanup()
    """

    def __init__(
        self,
        address: str | os.PathLike[str],
        *,
        witness: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> None:
        self.database = Database(address, create=True)
        self._key = read_key(key)
        self._witness = accepted(self.database, witness)
        self._ledgers: dict[tuple[str, str], Ledger] = {}
        self._newest: dict[str, Place] = {}  # what this process has seen, in case the file is overwritten meanwhile
        self._behind: set[str] = set()  # lineages that were behind that when they were read last

    @classmethod
    def restored(
        cls,
        address: str | os.PathLike[str],
        *,
        witness: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> Store:
        """Open a database that was restored from a backup, because the newest one was lost.

        Streams that may have released more than the backup knows are closed; `adopt` continues them under a second
        charge. Reservations that the witness knows and the backup does not are charged again.
        """
        from taciturn.store.restore import recover  # which needs this module

        recover(Database(address), witness, restored=True)
        return cls(address, witness=witness, key=key)

    @property
    def address(self) -> str:
        """Where it is, without passwords."""
        return self.database.address

    def shared_with_witness(self) -> str | None:
        """Why its witness may be restored together with it, in a sentence; None if nothing is known of it."""
        return None if self._witness is None else self._witness.shared()

    def names(self) -> list[str]:
        """The streams in it."""
        with self.database.transaction(write=False) as now:
            return [name for (name,) in now.rows("SELECT name FROM streams ORDER BY name")]

    def open_count(self) -> int:
        """How many streams have not ended."""
        with self.database.transaction(write=False) as now:
            return int(now.rows("SELECT count(*) FROM streams WHERE closed = 0")[0][0])

    def create(
        self,
        name: str,
        *,
        lineage: str,
        position: Position,
        reserved: Cost,
        spent: Cost = FREE,
        state: bytes = b"",
        input: bytes = b"",
        about: dict[str, Any] | None = None,
        neighbours: str = "replace",
        unit: str = "example",
        ledger: Ledger | None = None,
        settings: Any = None,
        label: str | None = None,
        follows: Saved | None = None,
        closes: Saved | None = None,
        layers: Mapping[str, bytes] | None = None,
        learnt: Learnt | None = None,
    ) -> Saved:
        """Reserve the cost of a new stream in `ledger`, if there is one, and store its first state.

        The ledger calls the stream by its `label`, by default its name. One that `follows` another takes over its name,
        and its outbox begins with the releases of that one, which is closed, and counts as spent what it reserved. One
        that `closes` another of this database ends that in the same transaction, first: it has its own name and outbox.
        `learnt` says when the rows of the state were learnt: by default at any time before.

        Where ledger and store are one database, that is one transaction. Otherwise the cost is reserved first: a
        process that stops between the two has reserved it in vain, which the ledger's history shows, and the next
        stream has a new lineage.
        """
        check_name("stream", name)
        learnt = learnt_by(position) if learnt is None else learnt
        book = None if ledger is None else self._own_book(ledger)
        if ledger is not None and ledger.address is None:
            raise InvalidInput(
                "a stream in a store needs a ledger that other processes can find. Create it in a file: "
                "Ledger.create('budget.db', budget)."
            )
        if not at_most(spent, reserved):
            raise BudgetExhausted(
                f"this stream would reserve {reserved} and has spent {spent}. Go on with its settings."
            )
        if follows is None:
            self._must_be_new(name)
        before = None if follows is None else follows.lineage
        if ledger is not None and book is None:
            if lineage in ledger.lines:
                raise _known_lineage(ledger.address)
            ledger.reserve(lineage, reserved, neighbours, settings, label or name, before, unit, learnt)
            if spent != FREE:
                ledger.record_spent(lineage, spent)
            self._ledgers[ledger.address or "", ledger.population] = ledger  # with its password and witness
        elif ledger is not None:
            check_unit(ledger.unit, unit)
        place = None if ledger is None else ("" if book is not None else ledger.address)
        public = {**(about or {}), "unit": unit} | ({} if settings is None else {"settings": settings})
        public.pop("renews", None)  # of the stream that this one follows
        if ledger is not None and ledger.renews:
            public["renews"] = True
        saved = Saved(
            name,
            lineage,
            position,
            reserved,
            spent,
            state,
            input,
            public,
            hashlib.sha256(lineage.encode()).hexdigest(),
            place,
            None if ledger is None else ledger.population,
            neighbours,
            layers=frozenset(layers or {}),
        )
        known = self._known()
        try:
            with rejections_told(), self.database.transaction() as now:
                now.rows("SELECT id FROM place /*lock*/")  # for `_read_back`: a row that is not there cannot be locked
                self._check_newest_within(now, *known)  # else the witness would know what the newest copy lacks
                if closes is not None:
                    self._close_within(now, closes)
                if book is not None:
                    kind, more = entered_as(label or name, before)
                    content = {"reserved": written(reserved), "neighbours": neighbours, "settings": settings}
                    content |= {"unit": unit, **more}
                    if not book.enter_within(now, lineage, Line(reserved, spent), neighbours, kind, content, learnt):
                        raise _known_lineage(self.address)
                    book.change_within(now, lineage, lambda line, clock: mirrored(line, spent))
                if follows is not None:
                    self._succeed(now, follows, saved)
                self._insert(now, saved)
                for layer, records in (layers or {}).items():
                    self._insert_layer(now, lineage, layer, records)
                if follows is None and public.get(EVENTS):
                    begin_log(now, lineage, position[1])
        except OutcomeUnknown as error:
            self._read_back(None, saved, error)
        if closes is not None:
            self._tell_closed(closes)
        if book is not None:
            book.tell_witness(lineage)
        self._note(saved.lineage, saved.place)
        self._tell_witness(saved.lineage, saved.place)
        return saved

    def _succeed(self, now: Transaction, old: Saved, new: Saved) -> None:
        """Let a stream that is not inserted yet take over the name and the outbox of another, which is closed."""
        changed = now.execute(
            "UPDATE streams SET name = ?, closed = 1, spent = reserved "
            "WHERE lineage = ? AND name = ? AND generation = ? AND token = ?",
            closed_name(old.name, old.lineage),
            old.lineage,
            old.name,
            old.position[0],
            old.position[3],
        )
        if changed != 1:
            raise StateConflict(f"{old.name} was adopted by another process, or went on. Continue that stream.")
        if old.ledger == "" and old.population is not None:
            DatabaseBook(self.database, old.population).change_within(now, old.lineage, used_up, "closed")
        now.execute(
            "INSERT INTO releases (lineage, first, last, t, content, visible_at) "
            "SELECT ?, first, last, t, content, visible_at FROM releases WHERE lineage = ?",
            new.lineage,
            old.lineage,
        )
        now.execute(
            "INSERT INTO requests (lineage, key, body, first, last) "
            "SELECT ?, key, body, first, last FROM requests WHERE lineage = ?",
            new.lineage,
            old.lineage,
        )
        take_over_events(now, self, old, new)

    def _own_book(self, ledger: Ledger) -> DatabaseBook | None:
        """The book of a ledger in this very database."""
        if ledger.address != self.address:
            return None
        return DatabaseBook(self.database, ledger.population, self._witness)

    def ledger_of(self, saved: Saved) -> Ledger | None:
        """The ledger in which a stream is reserved; None without one."""
        if saved.ledger is None or saved.population is None:
            return None
        if saved.ledger == "":
            return Ledger.of_book(DatabaseBook(self.database, saved.population, self._witness))
        place = (saved.ledger, saved.population)
        if place not in self._ledgers:
            self._ledgers[place] = Ledger(saved.ledger, population=saved.population)
        return self._ledgers[place]

    def ledger(self, population: str) -> Ledger:
        """The ledger of these people in the same database."""
        chosen = choose_population(self.database, population)
        return Ledger.of_book(DatabaseBook(self.database, chosen, self._witness))

    def _must_be_new(self, name: str) -> None:
        if name in self.names():
            raise StateConflict(f"{self.address} has a stream {name!r} already. Continue it, or choose another name.")

    def load(self, name: str) -> Saved:
        """The stream as the last commit left it.

        The witness is told of it: the process that committed it may have stopped before.
        """
        return self._load(name)[0]

    def load_with_layers(self, name: str) -> tuple[Saved, dict[str, bytes]]:
        """The same with the contents of its layers, as of one moment: another process may commit between two reads."""
        saved, sealed = self._load(name, ", content")
        return saved, self._opened_layers(saved, sealed)

    def _load(self, name: str, more: str = "") -> tuple[Saved, list[Row]]:
        """A stream, and the rows of its layers: their names, and `more` of them."""
        newest = dict(self._newest)  # before it is read, as another thread may commit meanwhile
        with self.database.transaction(write=False) as now:
            self.database.must_have_the_witness(now)  # else it is not told of what is shown from here on
            found = now.rows(f"SELECT {_FIELDS} FROM streams WHERE name = ?", name)
            layers = now.rows(f"SELECT name{more} FROM layers WHERE lineage = ?", found[0][1]) if found else []
        if not found:
            known = ", ".join(self.names()) or "none"
            raise InvalidInput(f"{self.address} has no stream {name!r}; it has {known}. Check the name.")
        saved = replace(self._read(found[0]), layers=frozenset(name for name, *_ in layers))
        self._must_be_newest(saved.name, saved.lineage, saved.place, newest.get(saved.lineage))
        return saved, layers

    def _must_be_newest(self, name: str, lineage: str, here: Place, newest: Place | None) -> None:
        """Reject a stream, as it was read, that is behind what this process had seen before, or its witness has seen.

        After the transaction: one that waited for the witness would keep others from their COMMIT.
        """
        self._must_follow(name, lineage, here, newest)
        self._note(lineage, here)
        self._tell_witness(lineage, here)

    def _note(self, lineage: str, at: Place) -> None:
        if at.generation >= self._newest.get(lineage, at).generation:
            self._newest[lineage] = at

    def _must_follow(self, name: str, lineage: str, here: Place, newest: Place | None) -> None:
        """Reject a stream that is behind what this process has seen of it, or came to where it is from elsewhere."""
        if newest is None:
            return
        same = here[:2] == newest[:2]
        next_one = here.generation == newest.generation + 1 and here.previous in (None, newest.chain)
        further = here.generation > newest.generation + 1 and (self._witness or lineage not in self._behind)
        if same or next_one or further:
            self._behind.discard(lineage)
            return
        self._behind.add(lineage)
        raise StoreReplaced(
            f"{name} is at generation {here.generation}, and this process has seen {newest.generation}: "
            f"{self.address} was replaced by a backup or a copy while it was in use. Continue the newest database; "
            "or open a second, separately charged stream with `taciturn store adopt`."
        )

    def check_newest(self) -> None:
        """Reject a database that is behind what this process has seen of its streams, or its witness of anything."""
        known = self._known()
        with self.database.transaction(write=False) as now:
            self.database.must_have_the_witness(now)
            self._check_newest_within(now, *known)

    def _known(self) -> tuple[dict[str, Place], Mapping[str, Place]]:
        """What this process and the witness have seen, as it is read before the database."""
        return dict(self._newest), {} if self._witness is None else self._witness.places_without_sums()

    def _check_newest_within(self, now: Transaction, newest: dict[str, Place], seen: Mapping[str, Place]) -> None:
        if self._witness is not None:
            must_not_be_behind(now, self.database, places_of(now, sums=False), seen, self._witness)
        rows = now.rows("SELECT name, lineage, generation, chain, previous FROM streams")
        for name, lineage, generation, chain, previous in rows:
            here = Place(int(generation), chain, previous=previous)
            self._must_follow(name, lineage, here, newest.get(lineage))
            self._note(lineage, here)
        missing = newest.keys() - {lineage for _, lineage, *_ in rows}
        if missing:  # no stream is ever removed
            raise StoreReplaced(
                f"stream {min(missing)[:8]}, which this process has seen, is missing in {self.address}: it was "
                "replaced by a backup or a copy while it was in use. Continue the newest database."
            )

    def commit(
        self,
        saved: Saved,
        *,
        position: Position,
        spent: Cost,
        state: bytes,
        input: bytes = b"",
        releases: Sequence[Chunk] = (),
        layers: Mapping[str, bytes | None] | None = None,
        learnt: Learnt = JUST_NOW,
        visible_at: int | None = None,
        requests: Sequence[Request] = (),
        lease: Lease | None = None,
    ) -> Saved:
        """The next state of a stream, if `saved` is the newest; then its releases may be shown.

        `layers` are those of users' records that the state needs, by name: None for one that is stored already.
        `learnt` says when the rows of the state were learnt; a stream with periods needs it if its ledger renews.
        The releases may be shown from `visible_at` on, in milliseconds since the epoch; by default at once. `requests`
        are those whose rows were learnt, and `lease` that of the process that commits.
        Raises `StateConflict`, and stores nothing, if another process went on with the stream, or has learnt one of
        the requests.
        """
        check_step(saved.position, position, saved.spent, spent, saved.reserved)
        _check_releases(saved.position[2], position[2], releases)
        chain = _next_chain(saved.chain, saved.lineage, position, spent, releases)
        layers = layers or {}
        new = replace(
            saved,
            position=position,
            spent=spent,
            state=state,
            input=input,
            chain=chain,
            previous=saved.chain,
            layers=frozenset(layers),
        )
        if saved.about.get("renews"):
            self._check_learnt(saved, learnt)
            if saved.ledger:
                self._ask(saved, lambda ledger: ledger.hold(saved.lineage, learnt, position[2] > saved.position[2]))
        try:
            with self.database.transaction() as now:
                self._advance(now, saved, new)
                self._must_go_on_from_the_newest(saved)
                self._change_layers(now, saved, layers)
                for chunk in releases:
                    now.execute(
                        "INSERT INTO releases (lineage, first, last, t, content, visible_at) VALUES (?, ?, ?, ?, ?, ?)",
                        saved.lineage,
                        *chunk,
                        visible_at,
                    )
                self._insert_requests(now, saved, requests)
                if saved.about.get(EVENTS):
                    self._learn_events(now, saved, position[1])
                if lease is not None:
                    now.execute(
                        "INSERT INTO leases (lineage, holder, expires) VALUES (?, ?, ?) "
                        "ON CONFLICT (lineage) DO UPDATE SET holder = excluded.holder, expires = excluded.expires",
                        saved.lineage,
                        *lease,
                    )
                if saved.ledger == "":
                    self._record_spent_within(now, new, learnt, position[2] > saved.position[2])
        except OutcomeUnknown as error:
            self._read_back(saved, new, error)
        self._note(new.lineage, new.place)
        self._tell_witness(new.lineage, new.place)
        if saved.ledger:
            self._mirror(new, learnt.finished)
        return new

    def _must_go_on_from_the_newest(self, saved: Saved) -> None:
        """Before COMMIT, under the lock of the row: reject a state after which this process or the witness saw another.

        Then the row was put back: nobody else could change it.
        """
        self._must_follow(saved.name, saved.lineage, saved.place, self._newest.get(saved.lineage))
        if self._witness is not None:
            self._witness.must_allow(saved.lineage, saved.place, saved.name)

    def _learn_events(self, now: Transaction, saved: Saved, t: int) -> None:
        """Erase the events that a commit has learnt."""
        learn_events(now, saved, t, int(self.database.backend.clock(now).timestamp() * 1000.0))

    def events(self, lineage: str, name: str = "the stream") -> EventLog:
        """The events of a stream whose rows are events: `about` has `events` when it is created."""
        return EventLog(self, lineage, name)

    def _insert_requests(self, now: Transaction, saved: Saved, requests: Sequence[Request]) -> None:
        """Store requests that were learnt, many in a statement; one that was learnt before is a conflict."""
        for part in in_parts(requests):
            inserted = now.execute(
                "INSERT INTO requests (lineage, key, body, first, last) VALUES "
                + ", ".join(["(?, ?, ?, ?, ?)"] * len(part))
                + " ON CONFLICT DO NOTHING",
                *(value for request in part for value in (saved.lineage, *request)),
            )
            if inserted != len(part):
                raise StateConflict(
                    f"a request to {saved.name} was learnt before, or twice in this commit. Nothing was released; load "
                    "it again, and answer the request as it was answered."
                )

    def current(self, saved: Saved, keys: Sequence[bytes] = ()) -> Current:
        """What a process must know before it goes on from `saved`, in one transaction that reads."""
        requests: dict[bytes, Request] = {}
        with self.database.transaction(write=False) as now:
            found = now.rows("SELECT generation, token FROM streams WHERE lineage = ?", saved.lineage)
            lease = now.rows("SELECT holder, expires FROM leases WHERE lineage = ?", saved.lineage)
            shown = now.rows(
                "SELECT visible_at FROM releases WHERE lineage = ? ORDER BY first DESC LIMIT 1", saved.lineage
            )
            for part in in_parts(keys):
                rows = now.rows(
                    "SELECT key, body, first, last FROM requests WHERE lineage = ? AND key IN "
                    f"({', '.join('?' * len(part))})",
                    saved.lineage,
                    *part,
                )
                requests |= {bytes(key): Request(bytes(key), bytes(body), *map(int, at)) for key, body, *at in rows}
        return Current(
            [(int(generation), token) for generation, token in found] == [(saved.position[0], saved.position[3])],
            Lease(lease[0][0], int(lease[0][1])) if lease else None,
            int(shown[0][0] or 0) if shown else 0,
            requests,
        )

    def at_tick(self, at: int, shown: Mapping[str, int]) -> list[AtTick]:
        """All streams but archived ones, by name, at a time in milliseconds since the epoch, in one transaction.

        `shown` says how many releases were shown before, by lineage. A release may be shown from its `visible_at` on;
        one that lies further ahead than `FARTHEST` was dated by a clock that was wrong, or this one is, and may be
        shown. A database that is behind what this process or the witness has seen is rejected. The witness, which is
        asked once for all streams, is told of those that show more than it knows: their process was stopped before it
        could tell, or is about to.
        """
        newest, seen = self._known()
        with self.database.transaction(write=False) as now:
            self.database.must_have_the_witness(now)
            self._check_newest_within(now, newest, seen)
            rows = now.rows(_AT_TICK, at, at + FARTHEST)
            made = []
            places = {}
            for name, lineage, generation, chain, k, ended, visible, opened, pending, due in rows:
                places[lineage] = Place(int(generation), chain)
                line, visible_at = None, None
                if int(visible or 0) > shown.get(lineage, 0):
                    line, visible_at = self._last_line(now, lineage, int(visible))
                events = int(opened or 0), int(pending or 0), None if due is None else int(due)
                made.append(AtTick(name, lineage, int(k), bool(ended), int(visible or 0), *events, line, visible_at))
        if self._witness is None:
            return made
        more = {each.lineage for each in made if each.line is not None or each.lineage not in shown}
        return [self._told(each, places[each.lineage], seen) if each.lineage in more else each for each in made]

    def _told(self, stream: AtTick, here: Place, seen: Mapping[str, Place]) -> AtTick:
        """A stream that the witness knows to be here, or is told of; with the error of one that cannot be read."""
        if (at := seen.get(stream.lineage)) is not None and at[:2] == here[:2]:
            return stream
        try:
            self.load(stream.name)
        except (StoreUnavailable, StoreReplaced):
            raise
        except TaciturnError as error:
            return stream._replace(error=error)
        return stream

    def _last_line(self, now: Transaction, lineage: str, k: int) -> tuple[bytes, int | None]:
        """The content of a release that is the last of a commit, and from when on it may be shown."""
        [(content, visible_at)] = now.rows(
            "SELECT content, visible_at FROM releases WHERE lineage = ? AND first <= ? ORDER BY first DESC LIMIT 1",
            lineage,
            k,
        )
        return bytes(content).rstrip(b"\n").rpartition(b"\n")[2], None if visible_at is None else int(visible_at)

    def chunk(self, lineage: str, number: int) -> tuple[Chunk, int | None] | None:
        """The chunk with this release, and from when on it may be shown; None if it is not committed."""
        newest = self._newest.get(lineage)  # before it is read, as another thread may commit meanwhile
        with self.database.transaction(write=False) as now:
            self.database.must_have_the_witness(now)
            found = now.rows(  # in one statement, which sees one snapshot
                "SELECT streams.name, streams.generation, streams.chain, streams.previous, "
                "releases.first, releases.last, releases.t, releases.content, releases.visible_at "
                "FROM streams LEFT JOIN releases ON releases.lineage = streams.lineage AND releases.first = "
                "(SELECT max(first) FROM releases WHERE lineage = streams.lineage AND first <= ?) "
                "WHERE streams.lineage = ?",
                number,
                lineage,
            )
        if not found:
            return None
        name, generation, chain, previous, first, last, t, content, visible_at = found[0]
        self._must_be_newest(name, lineage, Place(int(generation), chain, previous=previous), newest)
        if first is None or int(last) < number:
            return None
        return Chunk(int(first), int(last), int(t), bytes(content)), None if visible_at is None else int(visible_at)

    def size_of_releases(self, lineage: str, k: int) -> int:
        """Bytes of the first k releases of a stream, of which the last is the last of a commit."""
        with self.database.transaction(write=False) as now:
            [(size,)] = now.rows(
                "SELECT SUM(LENGTH(content)) FROM releases WHERE lineage = ? AND first <= ?", lineage, k
            )
        return int(size or 0)

    def _check_learnt(self, saved: Saved, learnt: Learnt) -> None:
        """Reject a commit that does not say in which periods its rows were learnt."""
        if saved.about.get("unit") != "user" and learnt.last is None:
            raise InvalidInput(
                f"the ledger of {saved.name} renews, and this commit does not say in which periods its rows were "
                "learnt. Pass learnt=, as Private.learnt gives it."
            )

    def _advance(self, now: Transaction, saved: Saved, new: Saved) -> None:
        generation, t, k, token = new.position
        changed = now.execute(
            "UPDATE streams SET generation = ?, token = ?, t = ?, k = ?, spent = ?, chain = ?, previous = ?, "
            "state = ?, input = ? WHERE lineage = ? AND generation = ? AND token = ? AND closed = 0 AND key = ?",
            generation,
            token,
            t,
            k,
            json.dumps(written(new.spent)),
            new.chain,
            new.previous,
            self.encrypted(new.state, new.lineage, generation, "state"),
            self.encrypted(new.input, new.lineage, generation, "input"),
            saved.lineage,
            saved.position[0],
            saved.position[3],
            self.key_id,
        )
        if changed != 1:
            raise StateConflict(
                f"generation {saved.position[0]} of {saved.name} is not its live state: another process went on with "
                "it, closed it, or encrypted it by another key. Nothing was released; load it again, and continue from "
                "there."
            )

    def _change_layers(self, now: Transaction, saved: Saved, layers: Mapping[str, bytes | None]) -> None:
        """Store the layers that are new, and remove those that are not named any more."""
        for name in saved.layers - layers.keys():
            now.execute("DELETE FROM layers WHERE lineage = ? AND name = ?", saved.lineage, name)
        for name in layers.keys() - saved.layers:
            content = layers[name]
            if content is None:
                raise StateConflict(
                    f"layer {name} of {saved.name} is not stored. Load it again, and continue from there."
                )
            self._insert_layer(now, saved.lineage, name, content)

    def _insert_layer(self, now: Transaction, lineage: str, name: str, content: bytes) -> None:
        now.execute(
            "INSERT INTO layers (lineage, name, key, content) VALUES (?, ?, ?, ?)",
            lineage,
            name,
            self.key_id,
            self.encrypted(content, lineage, 0, f"layer {name}"),
        )

    def layers(self, saved: Saved) -> dict[str, bytes]:
        """Contents of the layers of users' records that a state needs. Secret."""
        with self.database.transaction(write=False) as now:
            rows = now.rows("SELECT name, content FROM layers WHERE lineage = ?", saved.lineage)
        read = self._opened_layers(saved, rows)
        if read.keys() != saved.layers:
            raise StateConflict(
                f"{saved.name} went on while its users' records were read, or some of them are missing. Load it again; "
                "restore the database if that does not help."
            )
        return read

    def _opened_layers(self, saved: Saved, rows: Sequence[Row]) -> dict[str, bytes]:
        """Contents of layers by name, decrypted."""
        if self._key is not None:
            _must_be_encrypted(f"the users' records of {saved.name}", *(blob for _, blob in rows))
        return {name: self._plain(bytes(blob), saved.lineage, 0, f"layer {name}") for name, blob in rows}

    def _record_spent_within(self, now: Transaction, new: Saved, learnt: Learnt, releases: bool) -> None:
        assert new.population is not None
        book = DatabaseBook(self.database, new.population)

        def spends(line: Line, clock: Clock | None) -> Line:
            if line.closed:
                raise StateConflict(f"{new.name} was closed in its ledger. Nothing was released; start a new stream.")
            return mirrored(extended(line, learnt, clock, releases), new.spent)

        book.change_within(now, new.lineage, spends, "finished" if learnt.finished else None)

    def _mirror(self, new: Saved, finished: bool) -> None:
        """Tell a ledger elsewhere what is spent. Privacy rests on the reservation, so a failure only delays this."""
        try:
            self._ask(new, lambda ledger: ledger.record_spent(new.lineage, new.spent, finished))
        except StoreUnavailable:
            return
        except TaciturnError as error:
            raise StateConflict(
                f"generation {new.position[0]} of {new.name} was committed, and the ledger {new.ledger} does "
                f"not accept the stream any more: {error}"
            ) from error

    def _ask(self, saved: Saved, change: Callable[[Ledger], None]) -> None:
        """Change a ledger elsewhere; one that was moved, or given a witness, is opened again."""
        for last in (False, True):
            try:
                ledger = self.ledger_of(saved)
                assert ledger is not None
                return change(ledger)
            except StoreUnavailable:
                raise
            except TaciturnError:
                if last:
                    raise
                self._ledgers.pop((saved.ledger or "", saved.population or ""), None)

    def _read_back(self, saved: Saved | None, new: Saved, error: OutcomeUnknown) -> None:
        """After a COMMIT that failed: whether it took effect, under a lock that waits for it."""
        with self.database.reading_back(error) as now:
            if saved is None:
                now.rows("SELECT id FROM place /*lock*/")
            found = now.rows("SELECT generation, token FROM streams WHERE lineage = ? /*lock*/", new.lineage)
        stands = (int(found[0][0]), found[0][1]) if found else None
        if stands == (new.position[0], new.position[3]):
            return
        if saved is None or stands == (saved.position[0], saved.position[3]):
            raise unavailable(self.address, error.__cause__) from error
        raise StateConflict(
            f"another process went on with {new.name} while the connection to {self.address} was lost. Load it again, "
            "and continue from there."
        ) from error

    def check_reserved(self, saved: Saved) -> None:
        """Reject a stream that its ledger does not know any more; a ledger that cannot be reached is believed."""
        try:
            ledger = self.ledger_of(saved)
            line = None if ledger is None else ledger.lines.get(saved.lineage)
        except StoreUnavailable:
            return
        if ledger is not None and (line is None or line.reserved != saved.reserved):
            raise StateConflict(
                f"the ledger {ledger.address} has no reservation of {saved.name} any more: it was replaced or "
                "restored. Restore the newest ledger; or open a second, separately charged stream with `taciturn store "
                "adopt`."
            )

    def releases(self, name: str, after: int = 0) -> Iterator[Chunk]:
        """The committed releases of a stream, in order, from the chunk that holds number `after` + 1 on."""
        saved = self.load(name)
        while after < saved.position[2] and (found := self.chunk(saved.lineage, after + 1)) is not None:
            after = found[0].last
            yield found[0]

    def close(self, saved: Saved) -> None:
        """End a stream: nothing more can be released. What it reserved stays reserved."""
        with self.database.transaction() as now:
            self._close_within(now, saved)
        self._tell_closed(saved)

    def _close_within(self, now: Transaction, saved: Saved) -> None:
        """End a stream within a transaction; in its ledger, too, if that is in this database."""
        if now.execute("UPDATE streams SET closed = 1 WHERE lineage = ?", saved.lineage) != 1:
            raise StateConflict(f"{self.address} has no stream {saved.name!r} any more. Check the address.")
        erase_events(now, saved.lineage)
        if saved.ledger == "" and saved.population is not None:
            book = DatabaseBook(self.database, saved.population, self._witness)
            book.change_within(now, saved.lineage, lambda line, clock: closed(line), "closed")

    def _tell_closed(self, saved: Saved) -> None:
        """After the transaction: tell the witness, or a ledger elsewhere, that a stream has ended."""
        if saved.ledger == "" and saved.population is not None:
            DatabaseBook(self.database, saved.population, self._witness).tell_witness(saved.lineage)
        elif (ledger := self.ledger_of(saved)) is not None:
            ledger.close(saved.lineage)

    def archive(self, name: str) -> Saved:
        """Let no server show a stream that has ended, and erase its state, requests and events.

        Its releases stay, and so do its name and its line in the ledger: what it has cost is spent.
        """
        saved = self.load(name)
        if not saved.closed:
            raise StateConflict(f"{name} has not ended. Close it first; then it can be archived.")
        with self.database.transaction() as now:
            blobs = (self.encrypted(b"", saved.lineage, saved.position[0], kind) for kind in ("state", "input"))
            changed = now.execute(
                "UPDATE streams SET archived = 1, state = ?, input = ? WHERE lineage = ? AND closed = 1 AND key = ?",
                *blobs,
                saved.lineage,
                self.key_id,
            )
            if changed != 1:
                raise StateConflict(f"{name} was encrypted by another key meanwhile. Open the store with that key.")
            erase_events(now, saved.lineage)
            for table in ("requests", "leases", "layers"):
                now.execute(f"DELETE FROM {table} WHERE lineage = ?", saved.lineage)
        return replace(saved, state=b"", input=b"", layers=frozenset())

    # Restored and moved databases.

    def adopt(self, name: str, ledger: Ledger | None = None) -> Saved:
        """Continue a stream whose database was restored, as a second stream of this name, which is charged in full.

        Rounds that the lost commits released are released again, under the second charge, which is made in `ledger`, by
        default that of the first stream. The first stream is closed, and counts as spent what it reserved
        (`Saved.earlier`). In the database of the store that is one transaction. `taciturn.store.restore.adopt` also
        charges what a restored ledger has forgotten.
        """
        saved = self.load(name)
        layers = self.layers(saved)
        state = read_state(saved.state, layers)
        second = replace(state, lineage=new_name(), generation=0, token=new_name(), spent=FREE)
        made = self.create(
            name,
            lineage=second.lineage,
            position=second.position,
            reserved=saved.reserved,
            state=second.to_bytes(read_extra(saved.state, layers), layers_apart=True),
            layers=layers,
            input=saved.input,
            about={
                **{field: value for field, value in saved.about.items() if field != BEHIND},
                _EARLIER: [*saved.about.get(_EARLIER, []), written(saved.reserved)],
            },
            neighbours=saved.neighbours,
            unit=saved.about.get("unit", "example"),
            ledger=self.ledger_of(saved) if ledger is None else ledger,
            settings=saved.about.get("settings"),
            follows=saved,
            learnt=learnt_before(second),
        )
        if saved.ledger and (elsewhere := self.ledger_of(saved)) is not None and saved.lineage in elsewhere.lines:
            elsewhere.record_spent(saved.lineage, saved.reserved)
            elsewhere.close(saved.lineage)
        return made

    def rotate_key(self, key: str | os.PathLike[str]) -> int:
        """Encrypt every state by a new key, in one transaction, and return how many."""
        new = read_key(key)
        with self.database.transaction() as now:
            now.rows("SELECT id FROM place /*lock*/")  # no stream is created meanwhile, with layers by the old key
            rows = now.rows("SELECT lineage, generation, key, state, input FROM streams /*lock*/")
            sealed = {lineage for lineage, _, key_id, *_ in rows if key_id != ""}
            for lineage, generation, _, state, position in rows:
                if lineage in sealed:
                    _must_be_encrypted(f"the state of {lineage}", state, position)
                number = int(generation)
                blobs = []
                for kind, blob in (("state", state), ("input", position)):
                    plain = self._plain(bytes(blob), lineage, number, kind)
                    blobs.append(plain if new is None else new.encrypt(plain, lineage, number, kind))
                name = "" if new is None else new.id.hex()
                now.execute("UPDATE streams SET key = ?, state = ?, input = ? WHERE lineage = ?", name, *blobs, lineage)
            for lineage, layer, blob in now.rows("SELECT lineage, name, content FROM layers /*lock*/"):
                if lineage in sealed:
                    _must_be_encrypted(f"the users' records of {lineage}", blob)
                kind = f"layer {layer}"
                plain = self._plain(bytes(blob), lineage, 0, kind)
                blob = plain if new is None else new.encrypt(plain, lineage, 0, kind)
                name = "" if new is None else new.id.hex()
                now.execute(
                    "UPDATE layers SET key = ?, content = ? WHERE lineage = ? AND name = ?", name, blob, lineage, layer
                )
            lock_events(now)  # no event is opened meanwhile, by the old key
            for kind, column in (("event", "content"), ("label", "label")):
                found = f"SELECT lineage, number, {column} FROM stream_events WHERE {column} IS NOT NULL /*lock*/"
                for lineage, place, blob in now.rows(found):
                    if lineage in sealed:
                        _must_be_encrypted(f"an event of {lineage}", blob)
                    plain = self._plain(bytes(blob), lineage, int(place), kind)
                    blob = plain if new is None else new.encrypt(plain, lineage, int(place), kind)
                    sql = f"UPDATE stream_events SET {column} = ? WHERE lineage = ? AND number = ?"
                    now.execute(sql, blob, lineage, int(place))
        self._key = new
        return len(rows)

    def backup(self, to: str | os.PathLike[str]) -> None:
        """Write a consistent copy of a SQLite store while it is in use."""
        self.database.backup(to)

    # Rows and values.

    def _insert(self, now: Transaction, saved: Saved) -> None:
        generation, t, k, token = saved.position
        inserted = now.execute(
            f"INSERT INTO streams ({_FIELDS}) VALUES ({', '.join('?' * 18)}) ON CONFLICT DO NOTHING",
            saved.name,
            saved.lineage,
            generation,
            token,
            t,
            k,
            json.dumps(written(saved.reserved)),
            json.dumps(written(saved.spent)),
            saved.chain,
            saved.previous,
            json.dumps(saved.about),  # in its order, which is that of a contract's columns, and so of weights
            saved.ledger,
            saved.population,
            saved.neighbours,
            int(saved.closed),
            self.key_id,
            self.encrypted(saved.state, saved.lineage, generation, "state"),
            self.encrypted(saved.input, saved.lineage, generation, "input"),
        )
        if inserted != 1:
            raise StateConflict(
                f"{self.address} has a stream {saved.name!r}, or this stream under another name. Continue it, or "
                "choose another name."
            )

    def _read(self, row: Row) -> Saved:
        return _read(row, self._key)

    @property
    def key_id(self) -> str:
        """The id of the key, in hexadecimal digits; empty without one."""
        return "" if self._key is None else self._key.id.hex()

    def encrypted(self, blob: bytes, lineage: str, generation: int, kind: str) -> bytes:
        """Something of a stream as it is stored: under the key, bound to what it is, or as it is without a key."""
        return blob if self._key is None else self._key.encrypt(blob, lineage, generation, kind)

    def _plain(self, blob: bytes, lineage: str, generation: int, kind: str) -> bytes:
        return _plain(self._key, blob, lineage, generation, kind)

    def decrypted(self, blob: bytes, lineage: str, number: int, kind: str, what: str) -> bytes:
        """What `encrypted` has stored; an error if it is in clear, and this store has a key."""
        if self._key is not None:
            _must_be_encrypted(what, blob)
        return self._plain(blob, lineage, number, kind)

    @property
    def databases(self) -> list[Database]:
        """Its database, and that of its witness."""
        return [self.database, *([] if self._witness is None else [self._witness.database])]

    def _tell_witness(self, lineage: str, at: Place) -> None:
        """Record where a stream is, in the witness, which rejects one that is behind."""
        if self._witness is not None:
            self._witness.record(lineage, at)


def stored(now: Transaction, name: str, key: Key | None) -> Saved:
    """A stream of a database that need not be the newest, to look at it in a transaction; no witness is told."""
    [row] = now.rows(f"SELECT {_FIELDS} FROM streams WHERE name = ?", name)
    return _read(row, key)


def _read(row: Row, own: Key | None) -> Saved:
    name, lineage, generation, token, t, k, reserved, spent, chain, previous, about, *rest = row
    ledger, population, neighbours, ended, key, *blobs = rest
    if key == "" and own is not None:
        raise InvalidInput(
            f"{name} is not encrypted, and a key is given. Encrypt it by `taciturn store rotate-key`, or leave the "
            "key out."
        )
    if key != "":
        _must_be_encrypted(f"the state of {name}", *blobs)
    state, position = (
        _plain(own, bytes(blob), lineage, int(generation), kind)
        for kind, blob in zip(("state", "input"), blobs, strict=True)
    )
    return Saved(
        name,
        lineage,
        (int(generation), int(t), int(k), token),
        read_cost(json.loads(reserved)),
        read_cost(json.loads(spent)),
        state,
        position,
        json.loads(about),
        chain,
        ledger,
        population,
        neighbours,
        bool(ended),
        previous,
    )


def _plain(key: Key | None, blob: bytes, lineage: str, generation: int, kind: str) -> bytes:
    if not is_encrypted(blob):
        return blob
    if key is None:
        raise InvalidInput(
            "this state is encrypted, and no key is given. Give it by --key or key=, or in the environment "
            "variable TACITURN_KEY."
        )
    return key.decrypt(blob, lineage, generation, kind)


def closed_name(name: str, lineage: str) -> str:
    """The name of a stream after another one has taken over.

    >>> closed_name("clicks", "3f9a1c0211e04b0e")
    'clicks, closed 3f9a1c02'
    """
    end = f", closed {lineage[:8]}"
    return name.removesuffix(end) + end


def _known_lineage(ledger: str | None) -> StateConflict:
    return StateConflict(
        f"the ledger {ledger} has a stream of this lineage already, perhaps in another store. Start a new stream: a "
        "lineage is used once."
    )


def _must_be_encrypted(what: str, *blobs: bytes) -> None:
    """Reject what someone without the key has written in place of what was encrypted."""
    if not all(is_encrypted(bytes(blob)) for blob in blobs):
        raise StateConflict(f"{what}: what was encrypted is in clear. The database is damaged; restore it.")


def _check_releases(before: int, after: int, releases: Sequence[Chunk]) -> None:
    """Reject releases whose numbers are not those between two states."""
    at = before
    for chunk in releases:
        if chunk.first != at + 1 or chunk.last < chunk.first:
            raise StateConflict(f"the releases of a commit are numbered on from {at + 1}, got {chunk.first}.")
        at = chunk.last
    if releases and at != after:
        raise StateConflict(f"the releases of a commit end at number {after}, got {at}.")


def _next_chain(chain: str, lineage: str, position: Position, spent: Cost, releases: Sequence[Chunk]) -> str:
    digest = hashlib.sha256()
    for chunk in releases:
        digest.update(f"{chunk.first} {chunk.last} {chunk.t} {len(chunk.content)}\n".encode())
        digest.update(chunk.content)
    fields = [chain, lineage, list(position), written(spent), digest.hexdigest()]
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()
