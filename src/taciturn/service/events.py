"""Events over HTTP: rows whose labels come later are opened, closed, and learnt when their wait has passed.

`taciturn.core.events` has the states of an event, `taciturn.store.events` the proof that each is learnt once. This
module adds

- *group commit*: events that are opened and closed while a transaction is under way share the next one, and are
  answered after it;
- *the clock*: at every tick a server learns the events whose wait has passed, unless another one holds the lease of the
  stream. Neither a label nor the number of labels starts anything.

What an event holds is decided when it is opened: the columns of its row that the contract reads, and the answer, which
is given again if the request is repeated.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from taciturn.contract.contract import Contract
from taciturn.core.events import EventEnded
from taciturn.errors import InvalidInput, StateConflict
from taciturn.kernel.problem.row_wise import row_wise
from taciturn.readers.jsonl import read_json
from taciturn.readers.parsed import columns_to_read
from taciturn.service.messages import NewEvent
from taciturn.service.rows import NotRows, RowBatch
from taciturn.service.writer import (
    LEASE,
    RETRIES,
    Busy,
    Hashes,
    RequestTooLarge,
    Writer,
    answer,
    gather,
    pause,
)
from taciturn.store import Closing, Event, Opened, Opening
from taciturn.store.events import FARTHEST
from taciturn.streams.stored import StoredStream

if TYPE_CHECKING:
    from taciturn.service.service import Service

LOG = logging.getLogger("taciturn")

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")
_LABEL, _ROW = 64, 256  # bytes, of which stored labels and rows have multiples
_LEASE_TICKS = 2.5  # for which others wait for the process that learnt last
_GROUP = 4096  # events of a transaction
_BLOCK = 1024  # events that are learnt at a time,
_BYTES = 512  # or one for so many bytes of the state
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_MARK, _END = b"\x01", b"\x80"  # the first begins no JSON; zeros follow the second, and are no part of the content
_decode_new = msgspec.json.Decoder(NewEvent).decode


class RowsAreEvents(StateConflict):
    """Rows of a stream whose labels come later, and that takes no others."""


class NoEvents(StateConflict):
    """An event of a stream whose rows come with their labels."""


def read_event(body: bytes) -> tuple[NewEvent, bool]:
    """An event to open, and whether all numbers of its row are finite.

    >>> read_event(b'{"row": {"x": 1}}')
    (NewEvent(row={'x': 1}, event=None), True)
    """
    try:
        return _decode_new(body), True
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:  # as for rows: what msgspec does not read
        data = read_json(body.decode())
    except (ValueError, RecursionError):
        raise NotRows('the body is not valid JSON. Send {"row": {"column": value, …}, "event": "an id"}.') from None
    known = isinstance(data, dict) and "row" in data and data.keys() <= {"row", "event"}
    if not known or not isinstance(data.get("event"), str | None):
        raise NotRows('the body must be an object with a row and at most an id: {"row": {…}, "event": "an id"}.')
    return NewEvent(data["row"], data.get("event")), False


def random_names() -> Iterator[str]:
    """Names of 128 random bits; many are drawn at once. For one thread."""
    while True:
        drawn = os.urandom(2**12).hex()
        yield from (drawn[start : start + 32] for start in range(0, len(drawn), 32))


def event_id(given: str) -> str:
    """The id of an event that was given."""
    if not _ID.fullmatch(given):
        raise InvalidInput(
            "the id of an event has up to 128 letters, digits, dots, dashes, underscores and tildes, and begins with a "
            "letter or digit. Choose another one, or leave it out."
        )
    return given


def packed(row: Any, answer: Any) -> bytes:
    """What is stored of an event: what it will be learnt from, and the answer to who opened it."""
    try:
        content = _MARK + _pack([row, answer]) + _END
        return padded(content, _ROW, b"\0")
    except (ValueError, OverflowError):  # half a surrogate pair, or a large integer
        return padded(json.dumps([row, answer], default=_listed).encode(), _ROW)


def _listed(context: bytes) -> list[float]:
    """The numbers of a decision's context, which JSON has as a list."""
    return np.frombuffer(context).tolist()  # type: ignore[no-any-return]


def padded(content: bytes, multiple: int, by: bytes = b" ") -> bytes:
    """With blanks up to a multiple of bytes: the length of what is encrypted shows, and would tell yes from no.

    >>> [len(padded(label, 64)) for label in (b'"yes"', b'"no"', b"0.25")]
    [64, 64, 64]
    """
    return content + by * (-len(content) % multiple)


def unpacked(content: bytes) -> tuple[Any, Any]:
    """The row and the answer that `packed` has stored.

    >>> unpacked(packed({"x": 1.5}, ["yes", 3]))
    ({'x': 1.5}, ['yes', 3])
    >>> unpacked(b'[{"x": 1.5}, ["yes", 3]]')
    ({'x': 1.5}, ['yes', 3])
    """
    row, answer = _unpack(content.rstrip(b"\0")[1:-1]) if content[:1] == _MARK else json.loads(content)
    return row, answer


@row_wise
def stored_row(record: Any, contract: Contract) -> Any:
    """The columns of a row that are learnt from; None for what is no row."""
    if type(record) is not dict:
        return None
    target = contract.target.column
    names = [name for name in columns_to_read(contract, labelled=True) if name != target and name in record]
    return {name: _value(record[name]) for name in names}


def _value(value: Any) -> Any:
    """A value that JSON has, and that a column reads as it reads this one.

    A list or an object makes a row bad, whatever is in it; NaN is missing; and a text is the number that it spells.

    >>> [_value(value) for value in (1.5, "a", [1, 2], float("nan"), float("inf"), 10**30)]
    [1.5, 'a', [], None, 'inf', '1000000000000000000000000000000']
    """
    if isinstance(value, list | dict):
        return []
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def _named(hashes: Hashes, owner: str, name: str) -> bytes:
    """The hash of the id of an event; ids belong to the owner of a token."""
    return hashes.of(b"event", f"{owner}\0{name}".encode())


class EventWriter(Writer):
    """Opens, closes and learns the events of one stream."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(service, name)
        host = service.host(name)
        declared = host.contract.events
        if declared is None:
            raise NoEvents(f"{name} learns rows with their labels. Send them to POST /v1/streams/{name}/examples.")
        self._events = declared
        self._log = service.store.events(host.lineage, name)
        self._changes: list[tuple[Opening | Closing, asyncio.Future[Any]]] = []
        self._exchanging: asyncio.Task[None] | None = None
        self._learner: asyncio.Task[None] | None = None

    async def learn(self, key: str, media: str, body: bytes) -> tuple[int, int]:
        """Reject rows: all rows of this stream are events."""
        raise RowsAreEvents(
            f"the labels of {self.name} come later: open each row by POST /v1/streams/{self.name}/events, and close it "
            "by PUT …/events/{id}/label."
        )

    # Opening and closing, in the event loop's thread.

    async def open(self, owner: str, name: str, body: bytes, content: bytes, new: bool = False) -> Opened:
        """The event, once it is committed; as it was opened first, if the request is repeated.

        One whose id was made here is `new`.
        """
        hashes = self._hashes or await self.hashes()
        event = _named(hashes, owner, name)
        opened: Opened = await self._exchanged(Opening(event, hashes.of(b"opened", event + body), content, new))
        return opened

    async def close(self, owner: str, name: str, label: Any) -> int:
        """The number of the event, once its label is committed."""
        hashes, content = await self.hashes(), padded(_encode(label), _LABEL)
        event = _named(hashes, owner, name)  # in the hash of the label: equal labels have other hashes
        try:
            number: int = await self._exchanged(Closing(event, hashes.of(b"label", event + content), content))
        except EventEnded:
            self.service.metrics.count("late_labels", self.name)
            raise
        self.service.metrics.count("labels", self.name)
        return number

    async def _exchanged(self, change: Opening | Closing) -> Any:
        """The outcome of a change, which shares a transaction with others."""
        if len(self._changes) >= self.service.limits.queued_events:
            raise Busy("more events wait to be stored than this server holds. Try again in a second.")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._changes.append((change, future))
        if self._exchanging is None:
            self._exchanging = loop.create_task(self._exchange_all())
        return await self.service.in_time(future)  # a client that leaves does not take its event back

    async def _exchange_all(self) -> None:
        answered, took = 0, 0.0
        try:
            while self._changes:
                if answered > 1:
                    await gather(lambda: len(self._changes), len(self._changes) + answered, took)
                group, self._changes = self._changes[:_GROUP], self._changes[_GROUP:]
                began = time.perf_counter()
                try:
                    outcomes = await self.service.carried_out(self._exchange, [change for change, _ in group])
                except Exception as error:
                    outcomes = [error] * len(group)
                answered, took = len(group), time.perf_counter() - began
                for (_, future), outcome in zip(group, outcomes, strict=True):
                    answer(future, outcome)
        finally:
            self._exchanging = None

    def _exchange(self, changes: Sequence[Opening | Closing]) -> list[Any]:
        """The outcomes of changes, in their order; in a thread."""
        host, limits = self.service.host(self.name), self.service.limits
        openings = [change for change in changes if isinstance(change, Opening)]
        closings = [change for change in changes if isinstance(change, Closing)]
        with self.service.turns.turn():
            opened, closed = self._log.exchange(
                openings,
                closings,
                wait=self._events.milliseconds,
                most=limits.pending_events,
                horizon=host.private.last_round,  # also of a stream without a horizon whose noise is paid for so long
            )
        self._note_redated()
        made, ends = iter(opened), iter(closed)
        return [next(made) if isinstance(change, Opening) else next(ends) for change in changes]

    async def finish(self) -> None:
        """Wait until all that waits is answered, and what is being learnt is committed."""
        while (tasks := [task for task in (self._exchanging, self._learner, self._task) if task]) != []:
            await asyncio.wait(tasks)
            if self._learner is not None and self._learner.done():
                self._learner = None

    # Learning.

    def at_tick(self) -> None:
        """Learn the events whose wait has passed, if that is not under way; in the event loop's thread."""
        if self._learner is None or self._learner.done():
            self._learner = asyncio.get_running_loop().create_task(self._learn_by_the_clock())

    async def _learn_by_the_clock(self) -> None:
        try:
            await self.service.carried_out(self.learn_due)
        except Exception as error:  # the next tick comes, and finds the same events
            LOG.warning("the events of %s could not be learnt at a tick: %s", self.name, type(error).__name__)

    def learn_due(self) -> int:
        """Learn the events whose wait has passed by now, and return how many; in a thread.

        What is due later is left for the next tick: otherwise a busy stream would learn a few at a time, without end.
        """
        learnt = conflicts = 0
        by, due = self._log.time(), self.service.host(self.name).events_due
        if due is not None and due > by + self._events.milliseconds + FARTHEST:
            with self.service.turns.turn():
                self._log.clamp(self._events.milliseconds)
            self._note_redated()
        while conflicts < RETRIES and self._log.waits(by):
            at = self._stream or self._load()
            current = self.service.store.current(at.saved)
            if not current.newest:
                self._stream, conflicts = None, conflicts + 1
                pause(conflicts)
                continue
            lease = current.lease
            left = 0 if lease is None or lease.holder == self.service.id else lease.expires - self.service.clock.now()
            if 0 < left <= FARTHEST:  # one that lasts longer was made by a clock that was wrong
                return learnt
            try:
                learnt += self._learn_next(at, current.visible_at, by)
            except StateConflict:
                self.service.metrics.count("conflicts", self.name)
                self._stream, conflicts = None, conflicts + 1
                pause(conflicts)
            except BaseException:
                self._stream = None  # what is in memory may be ahead of the store
                raise
        return learnt

    def _note_redated(self) -> None:
        """Tell the operator of events that wait anew."""
        count, self._log.redated = self._log.redated, 0
        if count:
            self.service.metrics.count("redated", self.name, count)
            LOG.warning("%d events of %s were dated by a clock that was far ahead, and wait anew", count, self.name)

    def _learn_next(self, at: StoredStream, visible_at: int, by: int) -> int:
        """Learn one block of sealed events; how many.

        Requests wait while a block is sealed, and while it is committed. So it is small, unless the state is large,
        which each commit writes. Each event counts as the most bytes that one may have: what others hold decides
        nothing.
        """
        limits = self.service.limits
        fit = max(1, limits.queued_bytes // limits.event)
        with self.service.turns.turn():
            events = self._log.seal(min(limits.group_rows, fit, max(_BLOCK, at.size // _BYTES)), by)
        while len(events) > 1 and isinstance(self._objection(at, at.t, len(events)), RequestTooLarge):
            events = events[: len(events) // 2]
        if not events or events[0].number != at.t + 1:
            raise StateConflict(f"another process went on with {self.name}.")
        lease = min(FARTHEST, max(LEASE, round(_LEASE_TICKS * self.service.clock.period)))
        self._learn(at, [self._batch(events)], visible_at, lease=lease)
        return len(events)

    def _batch(self, events: Sequence[Event]) -> RowBatch:
        """Sealed events as rows with labels."""
        ranker = self.service.host(self.name).ranker
        if ranker is not None:
            return ranker.batch([(None if e.content is None else unpacked(e.content)[0], e) for e in events])
        return RowBatch([self._record(event) for event in events], (), len(events))

    def _record(self, event: Event) -> Any:
        if event.content is None:
            return None
        row, _ = unpacked(event.content)
        if row is None:
            return None
        label = self._events.missing if event.label is None else _decode(event.label)
        return {**row, self.service.host(self.name).contract.target.column: label}
