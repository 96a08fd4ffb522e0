"""Events of streams in a database (`taciturn.core.events`): they wait for a public time, by the database's clock.

Each step of an event is one transaction: it is opened and closed by `EventLog.exchange`, sealed by `EventLog.seal`, and
learnt by `Store.commit`.

**Claim.** Whenever processes stop, and however many of them use the stream: an event that was opened is learnt once, at
the round of its number; with the label that was accepted, if one was; and a label that was rejected is never learnt,
unless it is sent again after the clock was set back, before its event was sealed.

*Proof.* Rounds of a stream of events are events alone: `Store.commit` rejects a round beyond the last sealed event, so
that nothing else takes one. Numbers are consecutive, as a process that opens events locks the row of `event_logs`. Each
round is committed once (claim of `taciturn.store.store`), from a content that was read after it was sealed. A sealed
event never changes: `exchange` writes a label only to events behind the last sealed one, under the same lock that
`seal` takes. So every process, also the one that goes on after another has stopped, reads the same content and label. A
label is accepted only by that write, before the event was sealed. A process that closes or adopts the stream, or
changes its key, takes that lock too, after that of the stream: events that are opened meanwhile are erased, copied and
encrypted with the others. ∎ (The events of a stream that is closed are not learnt any more.)

**Clocks that were wrong.** Waits end in the order of rounds, and events opened by a clock that was 30 days ahead would
keep those after them from being learnt for as long. So a wait that ends more than `FARTHEST` milliseconds after the
longest that can begin now was dated by a clock that was wrong, or the present one is: it begins anew, by the present
clock (`EventLog.clamp`). That depends on clocks alone.

Content and labels are as secret as rows, and are encrypted as states are. Ids are stored as keyed hashes, for a day
after the wait and until the next commit, so that what is repeated until then is recognised, or until the stream ends.
With them are keyed hashes of requests and labels. They must be bound to their event, or equal labels would show in a
store without its key.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from taciturn.core.events import EventConflict, EventEnded, Progress, UnknownEvent
from taciturn.errors import BudgetExhausted, StateConflict
from taciturn.store.database import OutcomeUnknown, Transaction, in_parts

if TYPE_CHECKING:
    from taciturn.store.store import Saved, Store

EVENTS = "events"
"""In what is public about a stream: whether its rows are events."""

REMEMBERED = 24 * 3600 * 1000
"""Milliseconds after its wait for which the id of an event is known."""


FARTHEST = 7_200_000
"""Milliseconds that a clock may be ahead of another: two hours, as ticks of a server may be an hour apart."""


class TooManyEvents(StateConflict):
    """More events wait than are allowed at a time."""


class StreamClosed(StateConflict):
    """A stream that has ended, or does not learn here."""


class Opening(NamedTuple):
    """An event to open: keyed hashes of its id and of that with its request, and its content, which is secret.

    One whose id was made at random for it is `new`, and is not looked for among the others.
    """

    id: bytes
    body: bytes
    content: bytes
    new: bool = False


class Closing(NamedTuple):
    """The label of an event: keyed hashes of the event's id and of that with the label, which is secret."""

    id: bytes
    closed: bytes
    label: bytes


class Opened(NamedTuple):
    """An event that is open: its number, when its wait ends, and the content that it was first opened with."""

    number: int
    due: int
    content: bytes


class Event(NamedTuple):
    """A sealed event: its number, its content, and its label if one came. Secret; None was erased."""

    number: int
    content: bytes | None
    label: bytes | None


class _Known(NamedTuple):
    """An event that is stored, its content as it is stored, or one that is about to be."""

    number: int
    body: bytes
    due: int
    blob: bytes | None
    closed: bytes | None
    plain: bytes | None = None


class EventLog:
    """The events of a stream; `Store.events` makes it.

    Parameters
    ----------
    store : Store
        Where the stream is.
    lineage, name : str
        The stream, and what it is called.

    Attributes
    ----------
    redated : int
        Events that this object has let wait anew, as they were dated by a clock that was wrong.

    Examples
    --------
    >>> import tempfile
    >>> from taciturn.kernel.accounting.cost import gaussian
    >>> from taciturn.store import Store
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/streams.db")
    >>> about = {"events": True}
    >>> saved = store.create("ads", lineage="a", position=(0, 0, 0, "0"), reserved=gaussian(1.0), about=about)
    >>> log = store.events("a")
    >>> opening, closing = Opening(b"id", b"request", b"a row"), Closing(b"id", b"label", b"clicked")
    >>> [opened], [closed] = log.exchange([opening], [closing], wait=60_000)
    >>> opened.number, closed, log.seal()
    (1, 1, [])
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, lineage: str, name: str = "the stream") -> None:
        self._store = store
        self._database = store.database
        self.lineage = lineage
        self.name = name
        self.redated = 0

    def exchange(
        self,
        openings: Sequence[Opening],
        closings: Sequence[Closing] = (),
        *,
        wait: int = 0,
        most: int = 2**20,
        horizon: int | None = None,
    ) -> tuple[list[Opened | Exception], list[int | Exception]]:
        """Open and close events in one transaction: each as it was opened, and the number of each that was closed.

        One that is repeated has the same outcome as before. An event is opened for `wait` milliseconds, if not more
        than `most` of them are waiting then, and not past the `horizon`. What is rejected is an error in the place of
        the outcome, and changes nothing.
        """
        try:
            return self._exchange(openings, closings, wait, most, horizon)
        except OutcomeUnknown:  # what was committed is recognised
            openings = [each._replace(new=False) for each in openings]
            return self._exchange(openings, closings, wait, most, horizon)

    def _exchange(
        self, openings: Sequence[Opening], closings: Sequence[Closing], wait: int, most: int, horizon: int | None
    ) -> tuple[list[Opened | Exception], list[int | Exception]]:
        with self._database.transaction() as now:
            opened, sealed, at = self._locked(now)
            learnt, ended = self._stream(now)
            progress = Progress(opened, sealed, learnt)
            time = self._time(now)
            if at > time + FARTHEST:
                self._clamp_within(now, sealed, time, wait)
                at = time
            if ended:
                error = StreamClosed(f"{self.name} is closed, and learns no more.")
                return [error] * len(openings), [error] * len(closings)
            ids = {each.id for each in openings if not each.new} | {each.id for each in closings}
            known = self._known(now, list(ids))
            began = max(time, at)  # clocks may be set back, and the order of events is that of their waits
            outcomes: list[Opened | Exception] = []
            fresh: list[tuple[int, Opening]] = []
            for each in openings:
                if (found := known.get(each.id)) is not None:
                    outcomes.append(self._again(found, each))
                elif horizon is not None and progress.past(horizon):
                    outcomes.append(_past_the_horizon(self.name, horizon))
                elif progress.waiting >= most:
                    outcomes.append(TooManyEvents(f"{self.name} has as many events that wait as it may. Try later."))
                else:
                    progress = progress.open()
                    number = progress.opened
                    fresh.append((number, each))
                    known[each.id] = _Known(number, each.body, began + wait, None, None, each.content)
                    outcomes.append(Opened(number, began + wait, each.content))
            self._insert(now, fresh, began + wait)
            if fresh:
                now.execute(
                    "UPDATE event_logs SET opened = ?, at = ? WHERE lineage = ?", progress.opened, began, self.lineage
                )
            return outcomes, self._close(now, closings, known, progress, time)

    def _again(self, found: _Known, opening: Opening) -> Opened | Exception:
        """The outcome of an event that was opened before."""
        if not hmac.compare_digest(found.body, opening.body):
            return EventConflict("an event of this id was opened with another row. Use a new id for each event.")
        content = self.decrypted(found.blob, found.number, "event") if found.plain is None else found.plain
        return _ended() if content is None else Opened(found.number, found.due, content)

    def _insert(self, now: Transaction, fresh: Sequence[tuple[int, Opening]], due: int) -> None:
        store, lineage = self._store, self.lineage
        for part in in_parts(fresh):
            now.execute(
                "INSERT INTO stream_events (lineage, number, id, body, due, content) VALUES "
                + ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(part)),
                *(
                    value
                    for number, each in part
                    for value in (
                        *(lineage, number, each.id, each.body, due),
                        store.encrypted(each.content, lineage, number, "event"),
                    )
                ),
            )

    def _close(
        self, now: Transaction, closings: Sequence[Closing], known: dict[bytes, _Known], progress: Progress, time: int
    ) -> list[int | Exception]:
        outcomes: list[int | Exception] = []
        labels: list[tuple[int, Closing]] = []
        for each in closings:
            found = known.get(each.id)
            if found is None:
                outcomes.append(UnknownEvent("there is no such event of this token. Open it first."))
            elif found.closed is not None:
                same = hmac.compare_digest(found.closed, each.closed)
                outcomes.append(
                    found.number if same else EventConflict("this event was closed with another label or reward.")
                )
            elif progress.ended(found.number, found.due <= time):
                outcomes.append(_ended())
            else:
                known[each.id] = found._replace(closed=each.closed)
                labels.append((found.number, each))
                outcomes.append(found.number)
        for part in in_parts(labels):
            now.execute(
                "UPDATE stream_events SET closed = v.column2, label = v.column3 FROM (VALUES "
                + ", ".join(["(?, ?, ?)"] * len(part))
                + ") AS v WHERE lineage = ? AND number = v.column1",
                *(
                    value
                    for number, each in part
                    for value in (
                        *(number, each.closed),
                        self._store.encrypted(each.label, self.lineage, number, "label"),
                    )
                ),
                self.lineage,
            )
        return outcomes

    def waits(self, by: int | None = None) -> bool:
        """Whether the next event of the stream is due now, and was due by a time."""
        with self._database.transaction(write=False) as now:
            found = now.rows(
                "SELECT due FROM stream_events WHERE lineage = ? AND number = "
                "(SELECT t + 1 FROM streams WHERE lineage = ?)",
                self.lineage,
                self.lineage,
            )
            return bool(found) and int(found[0][0]) <= self._until(now, by)

    def time(self) -> int:
        """The present time by the database's clock, in milliseconds since the epoch."""
        with self._database.transaction(write=False) as now:
            return self._time(now)

    def clamp(self, wait: int) -> None:
        """Let events wait anew, for `wait` milliseconds, that were dated by a clock which was too far ahead."""
        with self._database.transaction() as now:
            _, sealed, _ = self._locked(now)
            self._clamp_within(now, sealed, self._time(now), wait)

    def _clamp_within(self, now: Transaction, sealed: int, time: int, wait: int) -> None:
        now.execute("UPDATE event_logs SET at = ? WHERE lineage = ? AND at > ?", time, self.lineage, time + FARTHEST)
        self.redated += now.execute(
            "UPDATE stream_events SET due = ? WHERE lineage = ? AND number > ? AND due > ?",
            time + wait,
            self.lineage,
            sealed,
            time + wait + FARTHEST,
        )

    def seal(self, most: int = 2**16, by: int | None = None) -> list[Event]:
        """The next events of the stream whose wait has passed, at most so many, in order; they take no label any more.

        `by` is a time, in milliseconds since the epoch: events whose wait ends later are left for the next time. How
        many are sealed depends on when they were opened, and not on what they hold.
        """
        with self._database.transaction() as now:
            opened, sealed, _ = self._locked(now)
            learnt, ended = self._stream(now)
            if ended:
                return []
            progress, time, last = Progress(opened, sealed, learnt), self._until(now, by), learnt
            for number, due in now.rows(
                "SELECT number, due FROM stream_events WHERE lineage = ? AND number > ? ORDER BY number LIMIT ?",
                self.lineage,
                learnt,
                most,
            ):
                if not progress.ended(int(number), due <= time):
                    break
                last = int(number)
            if last > sealed:
                sealed = progress.seal(last).sealed
                now.execute("UPDATE event_logs SET sealed = ? WHERE lineage = ?", sealed, self.lineage)
            rows = now.rows(
                "SELECT number, content, label FROM stream_events WHERE lineage = ? AND number > ? AND number <= ? "
                "ORDER BY number",
                self.lineage,
                learnt,
                last,
            )
        return [
            Event(
                int(number), self.decrypted(content, int(number), "event"), self.decrypted(label, int(number), "label")
            )
            for number, content, label in rows
        ]

    @property
    def opened(self) -> int:
        """How many events were opened."""
        with self._database.transaction(write=False) as now:
            return int(now.rows("SELECT opened FROM event_logs WHERE lineage = ?", self.lineage)[0][0])

    # Within a transaction.

    def _locked(self, now: Transaction) -> tuple[int, int, int]:
        """How many events were opened and sealed, and when the last was opened; locked for others."""
        found = now.rows("SELECT opened, sealed, at FROM event_logs WHERE lineage = ? /*lock*/", self.lineage)
        if not found:
            raise StateConflict(f"{self.name} takes no events. State [events] in its contract when it is created.")
        opened, sealed, at = map(int, found[0])
        return opened, sealed, at

    def _stream(self, now: Transaction) -> tuple[int, bool]:
        """The round of the stream, and whether it is closed; an error if it is encrypted by another key."""
        [(t, ended, key)] = now.rows("SELECT t, closed, key FROM streams WHERE lineage = ?", self.lineage)
        if key != self._store.key_id:
            raise StateConflict(f"{self.name} is encrypted by another key. Open the store again with that key.")
        return int(t), bool(ended)

    def _time(self, now: Transaction) -> int:
        return int(self._database.backend.clock(now).timestamp() * 1000.0)

    def _until(self, now: Transaction, by: int | None) -> int:
        time = self._time(now)
        return time if by is None else min(time, by)

    def _known(self, now: Transaction, ids: Sequence[bytes]) -> dict[bytes, _Known]:
        known = {}
        for part in in_parts(ids):
            rows = now.rows(
                "SELECT id, number, body, due, content, closed FROM stream_events WHERE lineage = ? AND id IN "
                f"({', '.join('?' * len(part))})",
                self.lineage,
                *part,
            )
            for name, number, body, due, content, closed in rows:
                known[bytes(name)] = _Known(
                    int(number),
                    bytes(body),
                    int(due),
                    content,
                    None if closed is None else bytes(closed),
                )
        return known

    def decrypted(self, blob: bytes | None, number: int, kind: str) -> bytes | None:
        """The content or the label of an event, from what is stored of it; None if nothing is."""
        if blob is None:
            return None
        return self._store.decrypted(bytes(blob), self.lineage, number, kind, f"an event of {self.name}")


def begin_log(now: Transaction, lineage: str, t: int) -> None:
    """Begin the events of a stream that is created."""
    now.execute("INSERT INTO event_logs (lineage, opened, sealed, at) VALUES (?, ?, ?, 0)", lineage, t, t)


def learn_events(now: Transaction, saved: Saved, t: int, time: int) -> None:
    """Erase the events up to round t, which a commit has learnt; an error if one of them is not sealed."""
    [(opened, sealed)] = now.rows("SELECT opened, sealed FROM event_logs WHERE lineage = ? /*lock*/", saved.lineage)
    Progress(int(opened), int(sealed), saved.position[1]).learn(t, saved.name)
    now.execute(
        "UPDATE stream_events SET content = NULL, label = NULL WHERE lineage = ? AND number > ? AND number <= ?",
        saved.lineage,
        saved.position[1],
        t,
    )
    now.execute(  # the first ones by number, so that not all that are known are read
        "DELETE FROM stream_events WHERE lineage = ? AND due < ? AND number IN (SELECT number FROM stream_events "
        "WHERE lineage = ? AND number <= ? ORDER BY number LIMIT ?)",
        saved.lineage,
        time - REMEMBERED,
        saved.lineage,
        t,
        2 * (t - saved.position[1]) + 100,
    )


def lock_events(now: Transaction, lineage: str | None = None) -> None:
    """Lock the events of a stream, or of all, until the transaction ends; call it after streams change.

    Commits lock a stream and then its events, so that in this order none waits for another in a circle.
    """
    if lineage is None:
        now.rows("SELECT lineage FROM event_logs ORDER BY lineage /*lock*/")
    else:
        now.rows("SELECT lineage FROM event_logs WHERE lineage = ? /*lock*/", lineage)


def erase_events(now: Transaction, lineage: str) -> None:
    """Erase the events of a stream that has ended, with their ids, in the transaction that says so."""
    lock_events(now, lineage)
    now.execute("DELETE FROM stream_events WHERE lineage = ?", lineage)


def take_over_events(now: Transaction, store: Store, old: Saved, new: Saved) -> None:
    """Let a stream that follows another go on with its events."""
    was = EventLog(store, old.lineage, old.name)
    lock_events(now, old.lineage)
    rows = now.rows("SELECT opened, sealed, at FROM event_logs WHERE lineage = ?", old.lineage)
    for row in rows:
        now.execute("INSERT INTO event_logs (lineage, opened, sealed, at) VALUES (?, ?, ?, ?)", new.lineage, *row)
    for number, name, body, due, content, closed, label in now.rows(
        "SELECT number, id, body, due, content, closed, label FROM stream_events WHERE lineage = ?", old.lineage
    ):
        blobs = []
        for kind, blob in (("event", content), ("label", label)):
            plain = was.decrypted(blob, int(number), kind)
            blobs.append(None if plain is None else store.encrypted(plain, new.lineage, int(number), kind))
        now.execute(
            "INSERT INTO stream_events (lineage, number, id, body, due, content, closed, label) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(new.lineage, number, name, body, due, blobs[0], closed, blobs[1]),
        )
    erase_events(now, old.lineage)


def _ended() -> EventEnded:
    return EventEnded("the wait of this event has passed: it takes no label or reward any more.")


def _past_the_horizon(name: str, horizon: int) -> BudgetExhausted:
    return BudgetExhausted(
        f"{name} ends after {horizon:,} rows, and as many events were opened. Begin a new stream, with a budget of its "
        "own."
    )
