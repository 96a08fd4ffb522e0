"""Group commit: requests that wait become one block, one transaction and all of their answers.

**Order.** A writer takes what waits, in the order of arrival, and in a thread

1. reads whether its state is the newest, who wrote last, and which requests were learnt before (`Store.current`);
2. learns the rows of the others as one block; their releases stay in memory;
3. commits the new state with what it has spent, the releases with the tick at which they become visible, and the
   requests with the rounds of their rows, in one transaction (`Store.commit`);
4. answers.

Releases come at fixed rounds, so how requests are grouped changes nothing that is published.

**Claim.** Whenever processes stop, and however many of them serve one store: a request that is answered with its rounds
is learnt, once, at those rounds; and one that is repeated under the same key, to any process, is never learnt again.

*Proof.* An answer follows the commit of its request (step 4), or a look at a committed one (step 1). Let a request be
committed in generation g of a stream. Its key is in the store from then on, by the same transaction, so a process that
looks (step 1) after g finds it and learns nothing. A process that looked before g and commits after it does so from a
state older than g, and is rejected by the comparison of generation and token; it discards what it learnt, loads the
stream and begins again with step 1, before it answers. If COMMIT fails and its outcome is unknown, nothing is answered
but "try again", the stream is loaded again, and the next attempt finds the key or not. ∎

A *lease* says which process wrote last; others wait a moment for it to go on, so that they need not learn twice. It
decides nothing. One that was too late pauses for a random time that grows, and after many times says that it is busy.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.poly1305 import Poly1305

from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, TaciturnError
from taciturn.kernel.accounting.unit import User
from taciturn.runs.diagnostics import Diagnostics
from taciturn.service.rows import RowBatch, absent_columns, encoded, read_rows
from taciturn.store import Lease, Request
from taciturn.store.events import StreamClosed
from taciturn.streams.stored import StoredStream

if TYPE_CHECKING:
    from taciturn.service.service import Service

RETRIES = 20
"""How often a writer learns again what another process was faster with."""

PAUSE_S, LONGEST_PAUSE_S = 0.002, 0.1
"""Before it learns again it pauses for a random part of the first, doubled each time, and of the second at most."""

LEASE = 1000
"""Milliseconds for which a lease lasts; others wait for it for at most `PATIENCE` seconds."""

PATIENCE = 0.05
"""Seconds for which a process waits for another that has the lease."""

GATHER = 0.25
"""Part of the time of a commit of several requests for which the next one waits for clients that are far away.

Clients that were just answered send their next rows a moment later. Without a moment's wait these would miss the commit
that begins at once, so half of the clients would wait for the commits of the other half.
"""

LONGEST_WAIT = 0.005
"""Seconds for which a commit waits for more requests at most: while they come, or as `GATHER` says."""

QUIET = 1e-4
"""Seconds without another request after which the wait for clients that are near ends."""

MOST_RELEASED = 2**22
"""Entries of all points that one request may release."""

SMALL = 2**16
"""Bytes of a body that are hashed and decoded in the event loop."""

_TIMER = 1e-3  # seconds between two ticks of the event loop's timers
_SHORT = 2**13  # bytes of a body up to which it is hashed at once

Outcome = tuple[int, int] | Exception
"""The first and the last round of a request's rows, or why they were not learnt."""


class Busy(TaciturnError):
    """The queue is full: try again later."""


class KeyReused(StateConflict):
    """A key that came with another request before."""


class RequestTooLarge(InvalidInput):
    """A request that would release more than is made at once."""


def pause(attempt: int) -> None:
    """Let another process go on, after so many attempts before: processes that meet should not meet again."""
    most = min(LONGEST_PAUSE_S, PAUSE_S * 2.0**attempt)
    time.sleep(most * secrets.randbelow(2**20) / 2**20)


def answer(future: asyncio.Future[Any], outcome: Any) -> None:
    """Give its outcome, a value or an error, to one who waits and has not left."""
    if future.cancelled():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
        future.exception()  # it was looked at, also if the client has left
    else:
        future.set_result(outcome)


class Hashes:
    """Keyed hashes of the requests of a stream, 16 bytes each: what the store has of keys and bodies.

    They are BLAKE2b under a secret key of the stream (RFC 7693), a random function to those without the key. That of a
    long body is BLAKE2b of its Poly1305 hash under another secret key, which takes a fraction of the time. Two bodies
    of L bytes have the same Poly1305 hash with probability `8·⌈L/16⌉ / 2^106` over its key (Bernstein, *The
    Poly1305-AES message-authentication code*, 2005, theorem 3.3), below 2^-83 for 16 MB, and nothing visible depends on
    that hash but whether two are equal. The hash of the request's key is in that of its body, so that equal bodies have
    other hashes under other keys: a hash in a stolen database tells nothing of a body.

    >>> hashes = Hashes(bytes(32))
    >>> hashes.body("text/plain", b"rows", b"key") == hashes.body("text/plain", b"other rows", b"key")
    False
    >>> hashes.body("text/plain", b"rows", b"key") == hashes.body("text/plain", b"rows", b"another key")
    False
    """

    def __init__(self, key: bytes) -> None:
        self._keyed = hashlib.blake2b(key=key, digest_size=16)
        self._poly1305_key = hmac.digest(key, b"poly1305", "sha256")

    def of(self, kind: bytes, content: bytes) -> bytes:
        """The hash of something of this kind."""
        made = self._keyed.copy()
        made.update(b"%s\0%s" % (kind, content))
        return made.digest()

    def key(self, key: str) -> bytes:
        """The hash of an idempotency key."""
        return self.of(b"key", key.encode("utf-8", "surrogatepass"))

    def body(self, media: str, body: bytes, key: bytes) -> bytes:
        """The hash of a body, of its media type, and of the hash of its key."""
        if len(body) <= _SHORT:
            return self.of(b"body", b"%s%s\0%s" % (key, media.encode(), body))
        return self.of(b"long body", Poly1305.generate_tag(self._poly1305_key, body) + key + media.encode())


@dataclass(eq=False)
class Entry:
    """A request that waits."""

    key: bytes
    body: bytes
    batch: RowBatch
    futures: list[asyncio.Future[tuple[int, int]]]
    """One for each client that waits: the same request may come twice."""


async def gather(waiting: Callable[[], int], expected: int, took: float) -> None:
    """Wait for more requests before a commit, after one that took some seconds, and whose clients were just answered.

    Until as many wait as are expected, while they come one after the other; if none came for a moment, for a part of
    the time of a commit. The event loop reads requests meanwhile. Its timers are too coarse for the first of these.
    """
    began = last = time.perf_counter()
    before = waiting()
    while before < expected:
        await asyncio.sleep(0.0)
        now, count = time.perf_counter(), waiting()
        if count > before:
            before, last = count, now
        if now - began > LONGEST_WAIT:
            return
        if now - last > QUIET:
            left = min(GATHER * took, LONGEST_WAIT) - (now - began)
            if left >= _TIMER:
                await asyncio.sleep(left)
            return


class Writer:
    """Learns for one stream; at most one block at a time.

    Parameters
    ----------
    service : Service
        The service, with its limits, clock and threads.
    name : str
        The stream.
    """

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name
        self.rows = 0
        self._queue: list[Entry] = []
        self._waiting: dict[bytes, Entry] = {}
        self._task: asyncio.Task[None] | None = None
        self._stream: StoredStream | None = None
        self._hashes: Hashes | None = None

    async def learn(self, key: str, media: str, body: bytes) -> tuple[int, int]:
        """The rounds of the rows of a request, once they are committed."""
        hashes = await self.hashes()
        hashed = hashes.key(key)
        if len(body) > SMALL:
            batch, content = await self.service.in_thread(self._read, hashes, hashed, media, body)
        else:
            batch, content = self._read(hashes, hashed, media, body)
        entry = self._waiting.get(hashed)
        if entry is not None:  # the same request waits already
            if not hmac.compare_digest(entry.body, content):
                raise key_reused()
            return await self._answer_to(entry)
        if self._queue and self.rows + batch.count > self._most:
            raise Busy("more rows wait than this server holds. Try again in a second.")
        entry = Entry(hashed, content, batch, [])
        self._queue.append(entry)
        self._waiting[hashed] = entry
        self.rows += batch.count
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain())
        return await self._answer_to(entry)

    async def _answer_to(self, entry: Entry) -> tuple[int, int]:
        """The rounds of a request; a client that leaves does not take its rows back."""
        future: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
        entry.futures.append(future)
        return await self.service.in_time(future)

    async def hashes(self) -> Hashes:
        """The keyed hashes of what clients send."""
        if self._hashes is None:
            await self.service.in_thread(self._load)
        assert self._hashes is not None
        return self._hashes

    def _read(self, hashes: Hashes, key: bytes, media: str, body: bytes) -> tuple[RowBatch, bytes]:
        """The rows of a request, and the hash of its body.

        Long rows are encoded at once: whatever they hold, they wait with as many bytes as their features have.
        """
        host, limits = self.service.host(self.name), self.service.limits
        batch = read_rows(media, body, host.contract, labelled=True, most=limits.rows, plain=host.plain)
        if batch.records is not None and len(body) > limits.row * batch.count:
            batch = RowBatch(None, list(encoded([batch], host.contract, labelled=True)), batch.count)
        return batch, hashes.body(media, body, key)

    @property
    def _most(self) -> int:
        """How many rows may wait; a public number, so that who is told to try again learns nothing of others' rows."""
        limits = self.service.limits
        each = max(limits.row, 8 * self.service.host(self.name).contract.dimension)
        return min(limits.queued_rows, limits.queued_bytes // each)

    async def finish(self) -> None:
        """Wait until all that waits is answered."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _drain(self) -> None:
        answered, took = 0, 0.0
        try:
            while self._queue:
                if answered > 1 and self.rows < self.service.limits.group_rows:
                    await gather(lambda: len(self._queue), len(self._queue) + answered, took)
                group = self._take()
                began = time.perf_counter()
                try:
                    outcomes = await self.service.carried_out(self._outcomes, group)
                except Exception as error:  # the same for all: nothing of the group was committed, as far as is known
                    outcomes = [error] * len(group)
                answered, took = len(group), time.perf_counter() - began
                for entry, outcome in zip(group, outcomes, strict=True):
                    del self._waiting[entry.key]
                    for future in entry.futures:
                        answer(future, outcome)
        finally:
            self._task = None

    def _take(self) -> list[Entry]:
        """Requests for one commit: all that wait, up to a number of rows."""
        rows, count = 0, 0
        for entry in self._queue:
            rows += entry.batch.count
            if count and rows > self.service.limits.group_rows:
                break
            count += 1
        group, self._queue = self._queue[:count], self._queue[count:]
        self.rows -= sum(entry.batch.count for entry in group)
        return group

    # In a thread.

    def _load(self) -> StoredStream:
        """The stream as the store has it now; what was learnt and not committed is discarded."""
        service = self.service
        host = service.host(self.name)
        if not host.served:
            raise StreamClosed(f"{self.name} learns from files, by taciturn learn, and not here.")
        stream = StoredStream(service.store, host.plan, *service.store.load_with_layers(self.name))
        if service.diagnostics and host.contract.bandit is None:
            classifies = bool(host.contract.target.names)
            stream.watch = Diagnostics(host.private.problem, classifies, stream.t, stream.watched)
        self._hashes = Hashes(bytes.fromhex(json.loads(stream.saved.input)["key"]))
        self._stream = stream
        return stream

    def _outcomes(self, group: Sequence[Entry]) -> list[Outcome]:
        """The outcome of each request; an error that was not foreseen is that of the request that causes it."""
        try:
            return self._commit(group)
        except TaciturnError:
            raise
        except Exception:
            if len(group) == 1:
                raise
        outcomes: list[Outcome] = []
        for entry in group:
            try:
                outcomes += self._commit([entry])
            except Exception as error:
                outcomes.append(error)
        return outcomes

    def _commit(self, group: Sequence[Entry]) -> list[Outcome]:
        """The outcome of each request: its rounds, or an error before anything of it was learnt."""
        waited = 0.0
        seen: set[tuple[int, str]] = set()
        try:
            for attempt in range(RETRIES):
                at = self._stream or self._load()
                current = self.service.store.current(at.saved, [entry.key for entry in group])
                if not current.newest:
                    self._stream = None
                    pause(attempt)
                    continue
                lease = current.lease
                if lease is not None and lease.holder != self.service.id and waited < PATIENCE:
                    wait = min((lease.expires - self.service.clock.now()) / 1000.0, 0.01)
                    if wait > 0.0:
                        time.sleep(wait)
                        waited += wait
                        self._stream = None
                        continue
                try:
                    return self._attempt(at, group, current.requests, current.visible_at)
                except StateConflict:
                    self.service.metrics.count("conflicts", self.name)
                    self._stream = None
                    position = at.saved.position[0], at.saved.position[3]
                    if position in seen:  # no process went on with it: the conflict is another
                        raise
                    seen.add(position)
                    pause(attempt)
        except BaseException:
            self._stream = None  # what is in memory may be ahead of the store
            raise
        raise Busy(f"other processes were faster with {self.name} {RETRIES} times. Try again in a second.")

    def _attempt(self, at: StoredStream, group: Sequence[Entry], learnt: Any, visible_at: int) -> list[Outcome]:
        """Steps 2 and 3 of the order above."""
        outcomes: list[Outcome] = []
        fresh: list[Entry] = []
        t = at.t
        for entry in group:
            known: Request | None = learnt.get(entry.key)
            if known is not None:
                same = hmac.compare_digest(known.body, entry.body)
                outcomes.append((known.first, known.last) if same else key_reused())
            elif (error := self._objection(at, t, entry.batch.count)) is not None:
                outcomes.append(error)
            else:
                fresh.append(entry)
                outcomes.append((t + 1, t + entry.batch.count))
                t += entry.batch.count
        if not fresh:
            return outcomes
        taken = [
            Request(entry.key, entry.body, *outcome)
            for entry, outcome in zip(group, outcomes, strict=True)
            if not isinstance(outcome, Exception) and entry.key not in learnt
        ]
        self._learn(at, [entry.batch for entry in fresh], visible_at, taken)
        return outcomes

    def _learn(
        self,
        at: StoredStream,
        batches: Sequence[RowBatch],
        visible_at: int,
        requests: Sequence[Request] = (),
        lease: int = 0,
    ) -> None:
        """Learn rows as one block, and commit it; `visible_at` is the tick of the last release."""
        service, host = self.service, self.service.host(self.name)
        of_users = isinstance(host.private.unit, User)
        before, bad_rows = at.t, 0
        for X, y, users, bad in encoded(batches, host.contract, labelled=True):
            bad_rows += int(bad.sum())
            start = 0
            while start < len(y):
                rows = slice(start, start + at.stride(len(y) - start))
                at.prepare(X[rows], y[rows], users[rows] if of_users and users is not None else None)
                start = rows.stop
        released = at.waiting > 0
        with service.turns.turn():
            now = service.clock.now()
            tick = service.clock.visible_at(now, visible_at)
            at.commit(visible_at=tick, requests=requests, lease=Lease(service.id, now + max(LEASE, lease)))
        service.metrics.count("commits", self.name)
        service.metrics.count("rows", self.name, at.t - before)
        service.metrics.count("bad_rows", self.name, bad_rows)
        for batch in batches:
            if batch.plain is None:  # else each row has all columns
                for column, count in absent_columns(batch.records or (), host.contract).items():
                    service.metrics.count("absent", self.name, count, column)
        if released and service.clock.now() > tick:
            service.metrics.count("late", self.name)

    def _objection(self, at: StoredStream, t: int, rows: int) -> Exception | None:
        """Why these rows cannot be learnt after round t; it depends on their number only."""
        if at.saved.closed:
            return StreamClosed(f"{self.name} is closed, and learns no more.")
        private = self.service.host(self.name).private
        horizon = private.timetable.horizon
        if horizon is not None and t + rows > horizon:
            left = f"{horizon - t:,} of them are" if horizon > t else "none is"
            return BudgetExhausted(
                f"{self.name} ends after {horizon:,} rows, and {left} left. Send fewer rows; or renew the stream, "
                "under a budget of its own."
            )
        if rows == 1:
            return None
        most = max(1, MOST_RELEASED // len(at.model))
        if len(private.timetable.following(at.k, t + rows, 2 * most)) > most:
            return RequestTooLarge(f"these rows would release more than {most:,} models at once. Send fewer rows.")
        return None

    def diagnostics(self) -> tuple[int, dict[str, Any] | None]:
        """NOT PRIVATE: rows so far, and what diagnostics say of them, as of the last commit."""
        at = self._stream or self._load()  # a block may be learnt meanwhile
        return at.committed, None if at.watch is None else at.watch.as_data()

    def forget(self) -> None:
        """Load the stream again before the next block."""
        self._stream = None


def key_reused() -> KeyReused:
    """The error of a key that came with another request."""
    return KeyReused("this Idempotency-Key came with another request before. Use a new key for each new request.")
