"""The streams, ledgers and tokens of a store, and what is visible of them at the last tick."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import re
import secrets
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from taciturn.contract.contract import Contract
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, StoreUnavailable, TaciturnError
from taciturn.kernel.accounting.cost import Cost, total
from taciturn.kernel.accounting.ledger_rules import Line
from taciturn.kernel.stream.state import new_name
from taciturn.renewal import about_successor, follows, renewal_of
from taciturn.runs.run import SERVED
from taciturn.service import messages
from taciturn.service.check import check_rows
from taciturn.service.clock import TickClock
from taciturn.service.events import (
    EventWriter,
    NoEvents,
    event_id,
    packed,
    random_names,
    read_event,
    stored_row,
    unpacked,
)
from taciturn.service.host import Host, NotForServers, View, budget_message
from taciturn.service.live import Changes
from taciturn.service.metrics import Metrics
from taciturn.service.rows import JSON, RowBatch, read_rows
from taciturn.service.tokens import Token, Tokens
from taciturn.service.turns import Turns
from taciturn.service.writer import SMALL, Writer
from taciturn.store import AtTick, Saved, Store
from taciturn.store.book import populations
from taciturn.store.database import StoreReplaced
from taciturn.store.events import EVENTS, StreamClosed
from taciturn.streams.stored import StoredStream

LOG = logging.getLogger("taciturn")

_Made = TypeVar("_Made")
OVERDUE_S = 5.0
"""Seconds by which a look at the store may be late before a server is no longer ready."""

STOP_S = 5.0
"""Seconds for which a server that stops waits for the store before it gives up what waits for it."""

_TOKENS_S = 1.0  # between two looks at the tokens, at most
_TURN_S = 0.5  # for which a tick waits for threads that write
_SLOW_PERIODS = 2  # after which a tick is told to be slow
_READ_AGAIN = 16  # streams that could not be read and are tried again at a tick
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class UnknownStream(InvalidInput):
    """There is no such stream, or it cannot be shown."""


class UnreadableStream(StateConflict):
    """A stream is in the store, and cannot be read: by a wrong key, for instance."""


class RequestConflict(StateConflict):
    """A request that does not fit this server or its streams, as they are; nothing is wrong with the store."""


class TooManyStreams(StateConflict):
    """More streams than a server shows."""


class UnknownLedger(InvalidInput):
    """There is no such ledger."""


@dataclass(frozen=True)
class Limits:
    """What a server takes at most.

    Parameters
    ----------
    body, bodies : int
        Bytes of a request's body, and of all bodies that are read at a time.
    body_seconds, head_seconds, handshake_seconds : float
        Seconds that a client may take to send a body, or to read a part of an answer; to send the head of a request;
        and to agree on TLS.
    head : int
        Bytes of the head of a request.
    rows, group_rows, checked_rows : int
        Rows of a request, of a commit of several requests, and of a dry run.
    queued_rows, queued_bytes, row : int
        What may wait to be learnt, for each stream: rows, and bytes, of which each row counts as so many, or as those
        of its features if these are more, whatever it holds. Events wait in the store: in a commit are as many as have
        these bytes if each is as long as one may be.
    event, queued_events, pending_events : int
        Bytes of a request that opens or closes an event; events that wait to be stored, and events that wait for their
        labels, for each stream.
    connections, address_connections, live, token_live : int
        Open connections, those of them from one address, those for server-sent events, and those of one token.
    pages : int
        Pages of releases with weights that are read and sent at a time, for each token.
    streams, dimension : int
        Streams that are shown and have not ended, and features of a stream.
    store_seconds : float
        Seconds after which a request that waits for the store is answered, if the store cannot be read.
    """

    body: int = 2**24
    bodies: int = 2**27
    body_seconds: float = 20.0
    head_seconds: float = 10.0
    handshake_seconds: float = 5.0
    head: int = 2**15
    rows: int = 2**16
    group_rows: int = 2**16
    checked_rows: int = 1_000
    queued_rows: int = 2**18
    queued_bytes: int = 2**26
    row: int = 2**8
    event: int = 2**16
    queued_events: int = 2**14
    pending_events: int = 2**20
    connections: int = 1_000
    address_connections: int = 250
    live: int = 200
    token_live: int = 50
    pages: int = 4
    streams: int = 2**12
    dimension: int = 2**16
    store_seconds: float = 10.0


class Tick(NamedTuple):
    """The last tick at which all of the store was read.

    Attributes
    ----------
    at : int
        The tick, in milliseconds since the epoch.
    ended : float
        When reading ended, by the clock of `time.monotonic`.
    seconds : float
        How long it took.
    """

    at: int
    ended: float
    seconds: float


class Service:
    """What a server serves: the streams, ledgers and tokens of a store.

    Methods that are not coroutines and touch the store may wait for it: call them by `in_thread` in an event loop.

    Parameters
    ----------
    store : Store
        Where the streams are.
    tick : float
        Seconds between two ticks of the public clock.
    limits : Limits
        What is taken at most.
    seed : int, optional
        Begin simulations, which are NOT PRIVATE, for tests and demonstrations.
    diagnostics : bool
        NOT PRIVATE: compute the operator's diagnostics from exact rows.
    read_only : bool
        Show and predict only, beside processes that learn.
    secure : bool
        Whether clients come by TLS: cookies are then marked so.

    Attributes
    ----------
    clock : TickClock
        The public clock.
    tokens : Tokens
        Who may do what.
    changes : Changes
        Wakes those who wait for new releases.
    turns : Turns
        In which threads write rows and events.
    warning : str, optional
        Why the witness may be restored together with the store, if both are on one disk or server.
    replaced : str, optional
        Why nothing is shown or learnt: the store was not the newest copy of itself at the last tick.
    last_tick : Tick, optional
        The last tick at which all of the store was read.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> service = Service(Store(f"{folder.name}/streams.db"))
    >>> columns = {"age": {"range": [0, 100]}}
    >>> target = {"column": "bought", "positive": ["yes"]}
    >>> from taciturn.contract.contract import contract_of
    >>> contract = contract_of({"privacy": {"epsilon": 1.0}, "target": target, "columns": columns})
    >>> service.create("clicks", contract).stream(1.0).releases
    0
    >>> service.streams(service.tokens.create(["read"])[0])[0].name
    'clicks'
    >>> service.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        store: Store,
        *,
        tick: float = 1.0,
        limits: Limits | None = None,
        seed: int | None = None,
        diagnostics: bool = False,
        read_only: bool = False,
        secure: bool = False,
    ) -> None:
        self.store = store
        self.clock = TickClock(tick)
        self.limits = Limits() if limits is None else limits
        self.seed = seed
        self.diagnostics = diagnostics
        self.read_only = read_only
        self.secure = secure
        self.id = new_name()
        self.tokens = Tokens(store.database, store.check_newest)
        self.metrics = Metrics()
        self.changes = Changes()
        self.writers: dict[str, Writer] = {}
        self.turns = Turns(store.database.backend.one_writer)
        self.connections = 0
        self.pages: Counter[str] = Counter()  # by the owners of tokens
        self.watching: Counter[str] = Counter()  # clients of server-sent events, likewise
        self.bodies = 0
        self.warning = store.shared_with_witness()
        self.replaced: str | None = None
        self.last_tick: Tick | None = None
        self._hosts: dict[str, Host] = {}
        self._unshown: set[str] = set()
        self._open_count = 0  # streams that are shown and have not ended
        self._unread: dict[str, str] = {}  # why streams cannot be read (by a wrong key, for instance), as it was logged
        self._names = random_names()  # of events, in the event loop's thread
        self._opening = threading.Lock()
        self._refreshing = threading.Lock()
        self._threads = ThreadPoolExecutor(8, "taciturn")
        self._clock_thread = ThreadPoolExecutor(1, "taciturn-clock")
        self._token_thread = ThreadPoolExecutor(1, "taciturn-tokens")
        self._loops: list[asyncio.Task[None]] = []
        self._overdue = dict.fromkeys(("tick", "tokens"), -math.inf)  # when the next look at the store is, by loop
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def live(self) -> int:
        """Number of clients of server-sent events."""
        return self.watching.total()

    # Life.

    async def start(self) -> None:
        """Look at the store, and from then on at every tick."""
        if self.warning is not None:
            LOG.warning("%s", self.warning)
        loop = self._loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._clock_thread, self.refresh)
        self._in_time("tokens", _TOKENS_S)
        self._loops = [loop.create_task(self._tick()), loop.create_task(self._read_tokens())]

    async def stop(self) -> None:
        """Answer what waits, and end; what waits for a store that does not answer is given up."""
        self._overdue = dict.fromkeys(self._overdue, -math.inf)
        self._loop = None
        for each in self._loops:
            each.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        self.changes.end()
        ending = asyncio.ensure_future(self._end())
        if not (await asyncio.wait([ending], timeout=STOP_S))[0]:
            LOG.warning("the store does not answer: what waits for it is given up")
            for database in self.store.databases:
                database.cut()
        await ending

    async def _end(self) -> None:
        for writer in list(self.writers.values()):
            await writer.finish()
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the threads, and close the connections to the store."""
        for threads in (self._threads, self._clock_thread, self._token_thread):
            threads.shutdown()
        self.store.database.close()

    @property
    def ready(self) -> bool:
        """Whether the store was read when it was to be read last, or is late by less than `OVERDUE_S` seconds."""
        return time.monotonic() < min(self._overdue.values()) + OVERDUE_S

    def _in_time(self, loop: str, seconds: float) -> None:
        """The store was read by one of the loops, which reads it again after some seconds."""
        if self._loop is not None:
            self._overdue[loop] = time.monotonic() + seconds

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.clock.until_next())
            looking = loop.run_in_executor(self._clock_thread, self.refresh)
            if not (await asyncio.wait([looking], timeout=_SLOW_PERIODS * self.clock.seconds))[0]:
                LOG.warning("a tick takes longer than %d periods of the clock", _SLOW_PERIODS)
            try:
                await looking
                self._learn_events()
            except Exception as error:  # the view of the last tick stays, and the next tick comes
                LOG.warning("the store could not be read at a tick: %s", type(error).__name__)

    async def _read_tokens(self) -> None:
        """Read the tokens again, and again: a long tick does not let one that was revoked go on."""
        loop = asyncio.get_running_loop()
        while True:
            seconds = min(_TOKENS_S, self.clock.until_next())
            await asyncio.sleep(seconds)
            try:
                if self.replaced is None:  # a token that was revoked may be valid in a backup
                    await loop.run_in_executor(self._token_thread, self.tokens.refresh)
                self._in_time("tokens", _TOKENS_S)
            except Exception as error:
                LOG.warning("the tokens could not be read: %s", type(error).__name__)

    def _learn_events(self) -> None:
        """Learn the events whose wait has passed, of all streams that have some."""
        for host in self.open_hosts() if self.replaced is None else ():
            if host.events_pending and host.served and not self.read_only and not host.view.closed:
                with contextlib.suppress(UnknownStream):  # it was archived just now
                    self.event_writer(host.name).at_tick()

    async def in_thread(self, work: Callable[..., _Made], *arguments: Any) -> _Made:
        """What a function returns that may wait for the store, if the store answers."""
        return await self.in_time(self.carried_out(work, *arguments))

    def carried_out(self, work: Callable[..., _Made], *arguments: Any) -> asyncio.Future[_Made]:
        """What a function will return that may wait for the store, for however long."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def in_time(self, waiting: asyncio.Future[_Made]) -> _Made:
        """What will be known when the store has answered; an error if it cannot be read meanwhile."""
        try:
            while not (await asyncio.wait([waiting], timeout=self.limits.store_seconds))[0]:
                if not self.ready:
                    raise StoreUnavailable(f"the store did not answer for {self.limits.store_seconds:g} seconds.")
            return waiting.result()
        finally:
            waiting.cancel()  # a client that has left, or is answered, waits no more

    # What is visible.

    def refresh(self) -> list[str]:
        """Look at the store as of the last tick; the names of streams of which more is visible.

        All streams are read in one transaction, and their views are replaced together. If the store is not the newest
        copy of itself, nothing of it is looked at, and what was visible is not shown any more.
        """
        with self._refreshing:
            changed: list[str] = []
            replaced = None
            try:
                if self.replaced is not None:  # tokens may be those of the copy, in which one that was revoked is valid
                    self.tokens.refresh()
                changed = self._look()
            except StoreReplaced as error:
                replaced = without_address(self.store.address, str(error))
            self._note_replaced(replaced)
            self._in_time("tick", self.clock.until_next())
            return changed

    def _look(self) -> list[str]:
        """Replace what is visible; the names of streams of which more is."""
        began, tick = time.monotonic(), self.clock.last()
        known = dict(self._hosts)  # a stream that begins from here on may be missing in what is read
        with self.turns.turn(_TURN_S):  # otherwise SQLite lets it sleep while threads of this process write
            found = self.store.at_tick(tick, {host.lineage: host.view.k for host in known.values()})
        again = set(list(self._unread)[:_READ_AGAIN])
        unread: dict[str, str] = {}
        views: list[tuple[Host, View]] = []
        shown = {host.lineage for host in known.values()}  # one that was adopted has its name, and takes its place
        self._open_count = sum(not each.closed and each.lineage in shown for each in found)
        for each in found:
            if each.name in self._unread and each.name not in known and each.name not in again:
                continue
            try:
                host = self._host_of(each)
                view = None if host is None else host.following_view(tick, each)
            except (StoreUnavailable, StoreReplaced):
                raise
            except Exception as error:  # what was visible stays, and other streams go on
                unread[each.name] = why = self._told(error)
                if self._unread.get(each.name) != why:  # and not at every tick
                    LOG.error("%s is not shown on: %s", each.name, why)
                continue
            if each.name in self._unread:
                LOG.warning("%s is shown again", each.name)
            if host is not None:
                host.events_opened, host.events_pending, host.events_due = each.opened, each.pending, each.due
            if host is not None and view is not None:
                views.append((host, view))
        names = {each.name for each in found}
        left = {name: why for name, why in self._unread.items() if name in names and name not in again}
        self._unread = {name: why for name, why in left.items() if name not in known} | unread
        for name in known.keys() - names:
            if self._hosts.get(name) is known[name]:
                del self._hosts[name]
        for host, view in views:
            host.view = view
        ended = time.monotonic()
        self.last_tick = Tick(tick, ended, ended - began)
        changed = [host.name for host, _ in views]
        if self._loop is not None:
            for name in changed:
                self._loop.call_soon_threadsafe(self.changes.tell, name)
        return changed

    def _note_replaced(self, why: str | None) -> None:
        """Show nothing while the store is not the newest copy of itself, and tell the log of it, once."""
        if why == self.replaced:
            return
        if why is None:
            LOG.warning("the store is the newest one again, and is shown again")
        else:
            LOG.error("the store was replaced, and nothing of it is shown: %s", why)
        self.replaced = why
        if self._loop is not None:
            for name in self._hosts:
                self._loop.call_soon_threadsafe(self.changes.tell, name)

    def must_be_newest(self) -> None:
        """Reject a request while the store is not the newest copy of itself."""
        if self.replaced is not None:
            raise StoreReplaced(self.replaced)

    def _host_of(self, found: AtTick) -> Host | None:
        """The stream as it is shown, opened if it is new; None if a server has no way to show it."""
        if found.error is not None:
            raise found.error
        host = self._hosts.get(found.name)
        if host is not None and host.lineage == found.lineage:
            return host
        if f"{found.name} {found.lineage}" in self._unshown:
            return None
        if not found.closed and self._open_count >= self.limits.streams:
            raise TooManyStreams(
                f"this server shows {self.limits.streams:,} streams that have not ended, and this is one more. Raise "
                "--streams, or close a stream."
            )
        host = self._open(found.name)
        self._open_count += host is not None and not found.closed
        return host

    def _open(self, name: str) -> Host | None:
        with self._opening:
            saved, layers = self.store.load_with_layers(name)
            known = self._hosts.get(name)
            if known is not None and known.lineage == saved.lineage:
                return known
            try:
                return self._shown(Host(self.store, saved, layers))
            except NotForServers:
                self._unshown.add(f"{name} {saved.lineage}")
                return None

    def _shown(self, host: Host) -> Host:
        """Show a stream from here on; under the lock of those that open streams."""
        self._hosts[host.name] = host
        self.writers.pop(host.name, None)
        return host

    def _told(self, error: Exception) -> str:
        """What the log says of an error of a stream: the text of one that was not foreseen may hold a value."""
        if isinstance(error, TaciturnError):
            return without_address(self.store.address, str(error))
        return f"{type(error).__name__} {place_of(error)}. Report it to the authors of taciturn."

    def open_hosts(self) -> list[Host]:
        """The streams that are shown, by name."""
        return [host for _, host in sorted(self._hosts.items())]

    def host(self, name: str) -> Host:
        """A stream that is shown."""
        host = self._hosts.get(name)
        if host is None and name in self._unread:
            raise UnreadableStream("this stream cannot be read now. Its operator finds the reason in the server's log.")
        if host is None:
            raise UnknownStream("there is no such stream. List them by GET /v1/streams.")
        return host

    def unreadable(self, token: Token | None = None) -> list[str]:
        """The streams that are in the store and could not be read at the last tick; those that a token may read."""
        return sorted(name for name in self._unread if token is None or token.allows("read", name))

    def must_read_one(self) -> None:
        """Reject a store with streams of which none can be read: by a missing or another key, for instance."""
        first: tuple[str, TaciturnError] | None = None
        for name in self.store.names():
            try:
                self.store.load(name)
                return
            except StoreUnavailable:
                raise
            except TaciturnError as error:
                first = first or (name, error)
        if first is not None:
            which, why = first
            raise InvalidInput(f"no stream of {self.store.address} can be read, {which} for instance: {why}")

    def streams(self, token: Token) -> list[messages.Stream]:
        """What is public about the streams that a token may read."""
        return [host.stream(self.clock.seconds) for host in self.open_hosts() if token.allows("read", host.name)]

    # Streams.

    def create(self, name: str, contract: Contract, ledger: str | None = None) -> Host:
        """Begin a stream: its whole cost is reserved, in a ledger if one is named, before its first row."""
        return self._begin(name, contract, ledger)

    async def renew(
        self, name: str, successor: str, contract: Contract | None = None, ledger: str | None = None
    ) -> messages.Renewed:
        """Close a stream, and open its successor, in one transaction; called again, answer as before.

        The successor starts from the latest *visible* model: one that is committed and not visible yet would be shown
        by it before its tick. So for a few ticks this waits until all of them are visible.

        Parameters
        ----------
        name, successor : str
            The stream, and what its successor is called.
        contract : Contract, optional
            Of the successor; by default that of the stream.
        ledger : str, optional
            Which pays for the successor; by default the one that pays for the stream.
        """
        host = self.host(name)
        for _ in range(_RENEWAL_TICKS):
            if host.view.k >= (await self.in_thread(self.store.load, name)).position[2]:
                break
            await asyncio.sleep(self.clock.until_next() + 0.02)
        contract = host.contract if contract is None else contract
        return await self.in_thread(self._renew, host, successor, contract, host.ledger if ledger is None else ledger)

    def _renew(self, host: Host, successor: str, contract: Contract, ledger: str | None) -> messages.Renewed:
        if not host.served:
            raise RequestConflict(f"{host.name} learns from files: renew it by `taciturn renew`.")
        if contract.bandit is not None or host.ranker is not None:
            raise InvalidInput(
                "a stream of decisions has no successor: close it, and begin another, which learns anew."
            )
        closing = self.store.load(host.name)
        made = self._successor(successor, closing)
        if made is None:
            try:
                made = self._begin(successor, contract, ledger, host)
            except StateConflict:
                made = self._successor(successor, closing)  # of another server, which was faster
                if made is None:
                    raise
        if host.name in self.writers:
            self.writers[host.name].forget()
        promise = made.plan.renewal.promise(made.private.guarantee) if made.plan.renewal is not None else ""
        return messages.Renewed(host.name, made.details(self.clock.seconds), made.plan.starts_there, str(promise))

    def _successor(self, name: str, closing: Saved) -> Host | None:
        """The successor of a stream by this name, if there is one."""
        if name not in self.store.names() or not follows(self.store.load(name), closing):
            return None
        made = self._hosts.get(name) or self._open(name)
        assert made is not None
        return made

    def _begin(self, name: str, contract: Contract, ledger: str | None, closes: Host | None = None) -> Host:
        """Begin a stream, and end the one that it follows, if there is one."""
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                "the name of a stream has up to 64 letters, digits, dots, dashes and underscores, and begins with a "
                "letter or digit. Choose another name."
            )
        if self.read_only:
            raise RequestConflict("this server shows streams only. Begin one where streams learn.")
        self._check(contract)
        if name in self.store.names():
            raise RequestConflict(f"there is a stream {name!r} already. Send rows to it, or choose another name.")
        count = self.store.open_count() - (closes is not None)
        if count >= self.limits.streams:
            raise RequestConflict(
                f"this server has {count:,} streams that have not ended, and holds no more. Close one, or ask its "
                "operator to raise --streams."
            )
        account = None
        if ledger is not None:
            account = self._ledger(ledger)
            if self.seed is not None:
                raise InvalidInput("a simulation protects no one, and reserves nothing. Leave out the ledger.")
        plan = contract.plan(on_bad="zero", seed=self.seed)
        followed: dict[str, Any] = {}
        closing = None
        if closes is not None:
            closing = self.store.load(closes.name)
            before, seeded = closes.contract, self.seed is not None
            means = before.model_digest, contract.model_digest
            renewal = renewal_of(self.store, closing, before.delta, closes.view.k, seeded=seeded, means=means)
            plan = plan.following(renewal)
            followed = about_successor(renewal, closing)
        about = {"contract": contract.digest, "declared": contract.declared, SERVED: True, **followed}
        if contract.events is not None:
            about[EVENTS] = True
        if self.seed is not None:
            about["seed"] = self.seed
        hosts: list[Host] = []

        def serve(saved: Saved, layers: Mapping[str, bytes]) -> None:
            hosts.append(Host(self.store, saved, layers))  # what cannot be served is not stored

        StoredStream.create(
            self.store,
            name,
            plan,
            about=about,
            input=json.dumps({"key": secrets.token_hex(32)}).encode(),
            ledger=account,
            closes=None if closing is None or closing.closed else closing,
            check=serve,
        )
        host = hosts[0]
        with self._opening:
            known = self._hosts.get(name)  # which a tick may have opened meanwhile
            return known if known is not None and known.lineage == host.lineage else self._shown(host)

    def _check(self, contract: Contract) -> None:
        """Reject a contract that a server does not take."""
        if contract.user is not None and contract.rows_per_user is None:
            raise InvalidInput(
                f"privacy.user names {contract.user} as the column of ids, and rows_per_user is missing: only rows "
                "would be protected. State rows_per_user = 4, or remove user and declare the column with ignore = true."
            )
        if contract.bandit is not None and contract.events is None:
            raise InvalidInput(
                'rewards come after decisions: state for how long they are waited for, as in [events] wait = "10 '
                'minutes", missing = 0.0.'
            )
        size = contract.dimension * (contract.dimension + 3) // 2
        if contract.bandit is not None and contract.bandit.models * size > self.limits.dimension:
            raise InvalidInput(
                f"models of this contract have {contract.bandit.models * size:,} numbers, and this server takes "
                f"{self.limits.dimension:,}. Declare fewer features or actions."
            )
        if contract.dimension > self.limits.dimension:
            raise InvalidInput(
                f"this contract has {contract.dimension:,} features, and this server takes {self.limits.dimension:,}. "
                "Declare fewer buckets or categories."
            )

    def close_stream(self, name: str) -> None:
        """End a stream: nothing more is learnt or released. What it reserved stays reserved."""
        self.host(name)
        self.store.close(self.store.load(name))
        if name in self.writers:
            self.writers[name].forget()

    def writer(self, name: str) -> Writer:
        """The writer of a stream, in the event loop's thread."""
        if self.read_only:
            raise RequestConflict("this server predicts only. Send rows to the one that learns.")
        events = self.host(name).contract.events
        made = self.writers.get(name)
        if made is None:
            made = self.writers[name] = Writer(self, name) if events is None else EventWriter(self, name)
        return made

    def event_writer(self, name: str) -> EventWriter:
        """The writer of a stream whose rows are events."""
        writer = self.writer(name)
        if not isinstance(writer, EventWriter):
            raise NoEvents(
                f"{name} learns rows with their labels. Send them to POST /v1/streams/{name}/examples; or begin a "
                "stream whose contract has [events]."
            )
        return writer

    async def learn(self, name: str, key: str, media: str, body: bytes, owner: str = "") -> messages.Learnt:
        """Learn the rows of a request, once; the rounds that they have taken, after the commit.

        Keys belong to the `owner` of a token, so that guesses of another's rows cannot be tested by its keys.
        """
        first, last = await self.writer(name).learn(f"{owner}\0{key}", media, body)
        return messages.Learnt(name, first, last)

    async def check(self, name: str, media: str, body: bytes) -> messages.Check:
        """What the contract makes of the rows of a request, none of which is learnt."""
        return await self.in_thread(check_rows, self.host(name), media, body, self.limits.checked_rows)

    async def open_event(self, name: str, body: bytes, probabilities: bool = False, owner: str = "") -> messages.Event:
        """Predict for a row whose label comes later, and store the row; the answer comes after the commit.

        Like keys, ids belong to the `owner` of a token.
        """
        writer, host = self.event_writer(name), self.host(name)
        if host.ranker is not None:
            raise InvalidInput(f"{name} chooses actions. Ask POST /v1/streams/{name}/rank.")
        request, finite = read_event(body)
        known = next(self._names) if request.event is None else event_id(request.event)
        made = host.predict(RowBatch([request.row], (), 1, finite), probabilities)
        of_classes = None if made.probabilities is None else made.probabilities[0]
        answer: Any = [made.release, made.predictions[0], made.classes, of_classes]
        content = packed(stored_row(request.row, host.contract), answer)
        opened = await writer.open(owner, known, body, content, request.event is None)
        if opened.content is not content:  # of the first request
            _, answer = unpacked(opened.content)
        release, prediction, classes, of_classes = answer
        return messages.Event(name, known, opened.number, opened.due, release, prediction, classes, of_classes)

    async def rank(
        self, name: str, body: bytes, request: messages.Rank, owner: str = "", finite: bool = True
    ) -> messages.Ranked:
        """Choose one of several actions for a visitor, and wait for its reward; the answer comes after the commit.

        `finite` says that no number of a context is NaN or infinite. A request that is not to be learnt from is
        answered by the visible models, also after the end, and by a server that only shows: it is post-processing.
        """
        host = self.host(name)
        writer = self.event_writer(name) if request.learn else None
        if host.ranker is None:
            raise InvalidInput(f"{name} predicts, and chooses no actions. State [bandit] in the contract of a stream.")
        if writer is None:
            if request.event_id is not None:
                raise InvalidInput("a decision without learning is not stored, and has no id. Leave out eventId.")
            shown = host.ranker.rank(request, finite)
            actions = host.ranker.named(shown.ranking, shown.probabilities)
            return messages.Ranked(name, None, actions[0].id, actions, None, None, shown.release)
        known = next(self._names) if request.event_id is None else event_id(request.event_id)
        decided = host.ranker.rank(request, finite)
        content = packed(decided.row, [decided.release, decided.ranking, decided.probabilities])
        try:
            opened = await writer.open(owner, known, body, content, request.event_id is None)
        except (BudgetExhausted, StreamClosed) as error:
            raise type(error)(f'{error} To choose by its last models, send "learn": false.') from None
        release, ranking, probabilities = decided.release, decided.ranking, decided.probabilities
        if opened.content is not content:  # of the first request
            _, (release, ranking, probabilities) = unpacked(opened.content)
        actions = host.ranker.named(ranking, probabilities)
        return messages.Ranked(name, known, actions[0].id, actions, opened.number, opened.due, release)

    async def close_event(self, name: str, event: str, label: messages.Value, owner: str = "") -> messages.Closed:
        """Store the label of an event; the answer comes after the commit."""
        number = await self.event_writer(name).close(owner, event_id(event), label)
        return messages.Closed(name, event, number)

    async def predict(self, name: str, media: str, body: bytes, probabilities: bool = False) -> messages.Predictions:
        """Predictions for the rows of a request, by the latest visible model."""
        host = self.host(name)
        if media == JSON and (rows := host.predictor.read(body)) is not None:
            made = host.predict_plain(rows, probabilities)
            if made is not None:
                return made
        arguments = media, body, host.contract, False, self.limits.rows
        batch = await self.in_thread(read_rows, *arguments) if len(body) > SMALL else read_rows(*arguments)
        if batch.count * host.contract.dimension > _FEW:
            return await self.in_thread(host.predict, batch, probabilities)
        return host.predict(batch, probabilities)

    # Ledgers.

    def ledgers(self) -> list[str]:
        """The populations of the ledgers in the store."""
        return populations(self.store.database)

    def _ledger(self, population: str) -> Any:
        if population not in self.ledgers():
            raise UnknownLedger("there is no such ledger in this store. Create it by `taciturn budget create`.")
        return self.store.ledger(population)

    def ledger(self, population: str) -> messages.Ledger:
        """What is public about a ledger at the last tick: streams have spent what their visible releases cost.

        One that is not shown here counts with what it reserved until it is closed: what it has spent may belong to
        releases that are not visible yet.
        """
        ledger = self._ledger(population)
        privacy, lines = ledger.privacy, ledger.lines
        assert privacy is not None
        hosts = {host.lineage: host for host in self.open_hosts()}

        def epsilon(cost: Cost) -> messages.Budget:
            return budget_message(cost.spent_at(privacy.delta))

        def spent(lineage: str) -> Cost:
            if lineage in hosts:
                return hosts[lineage].view.cost
            line: Line = lines[lineage]
            return line.spent if line.closed else line.reserved

        reserved = ledger.reserved
        return messages.Ledger(
            population,
            ledger.unit,
            ledger.neighbours,
            ledger.renews,
            messages.Budget(privacy.epsilon, privacy.delta),
            epsilon(reserved),
            epsilon(total(spent(lineage) for lineage in lines)),
            ledger.left or 0.0,
            [
                messages.LedgerLine(
                    lineage,
                    hosts[lineage].name if lineage in hosts else None,
                    epsilon(line.reserved),
                    epsilon(spent(lineage)),
                    hosts[lineage].view.closed if lineage in hosts else line.closed,
                )
                for lineage, line in lines.items()
            ],
            list(self._events(ledger.history, hosts)),
        )

    def _events(self, history: Any, hosts: dict[str, Host]) -> Iterator[messages.LedgerEvent]:
        """The events before the last tick, each at a tick after it; a stream ends when its last release is visible."""
        last = self.clock.last()
        for event in history:
            at = datetime.fromisoformat(event.at).timestamp() * 1000.0 + 999.0  # which is cut to seconds
            shown = self.clock.last(int(at)) + self.clock.period
            host = hosts.get(event.lineage)
            pending = host is not None and event.kind in ENDINGS and not host.ended
            if shown <= last and not pending:
                yield messages.LedgerEvent(event.number, shown, event.kind, event.lineage)


def place_of(error: BaseException) -> str:
    """The last line of this package that an error passed."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "taciturn" in Path(frame.filename).parts]
    return f"in {Path(own[-1].filename).name}, line {own[-1].lineno}" if own else "outside this package"


def without_address(address: str, sentence: str) -> str:
    """A sentence without the address of the store."""
    return sentence.replace(address, "the store")


ENDINGS = ("finished", "closed")
"""Kinds of events that tell that a stream has made its last release."""

_RENEWAL_TICKS = 3  # for which a renewal waits until all releases are visible
_FEW = 2**16  # features of all rows that are predicted there
