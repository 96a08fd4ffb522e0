"""A private stream in a store: the only place in which a stream is created, committed and read.

**Order.** Four steps, whoever drives the stream (a run of a file, workers, a service, a log):

1. *open*: the stream as its last commit left it, or a new one, whose whole cost is reserved;
2. *prepare*: learn the next rows, or sums that workers have made of them, any number of blocks. State, releases and
   what follows from them stay in memory, and are secret;
3. *commit*: one transaction of the store has the state after all of these blocks, what it has spent, the releases, and
   what the driver gives: its position in the input, keys of requests, a lease. Before it, nothing is shown;
4. *read*: committed releases.

**Claim.** A release that `read` gives is committed; each round is released once, by whichever process is first; and
what was prepared is committed as a whole, with the driver's position in the input, or not at all. *Proof.* Prepared
blocks are one value in memory, which is replaced in one step once a block is learnt, so a call that is rejected or
interrupted has prepared its block or nothing. `Store.commit` is one transaction that succeeds for one successor of a
state (`taciturn.store.store`). If `commit` is stopped after it began, this object does not know whether the transaction
took effect. The next call reads the stream: it stands where the attempt would have left it, so that all that was
prepared is committed; or where the attempt began, so that nothing is, and all of it is still in memory; or elsewhere,
so that another process went on with it, and all further calls are rejected. ∎

What was prepared and not committed is lost with the process. Its rounds were never shown; they are released once, by
whoever learns those rows again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from taciturn.accounting.ledger import Ledger
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, StateConflict
from taciturn.kernel.accounting.cost import FREE, Cost, Spent, total
from taciturn.kernel.accounting.guarantee import Charge
from taciturn.kernel.accounting.ledger_rules import Position
from taciturn.kernel.arrays import Array, Arrays, same
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.block_sums import Admission, BlockSums
from taciturn.kernel.stream.hashed_rows import HashedRows, Map
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.release import Releases
from taciturn.kernel.stream.state import State, new_name, part_to_bytes, read_extra, size_of
from taciturn.kernel.stream.stream import Prepared
from taciturn.plan import Plan
from taciturn.renewal import CHARGE
from taciturn.store import Chunk, Lease, Request, Saved, Store
from taciturn.store.database import StoreReplaced
from taciturn.streams.lines import lines_of
from taciturn.streams.private_stream import PrivateStream, Tip
from taciturn.streams.published import Published

_WATCHED_ROWS = 2**8  # rows that are evaluated by one model, with diagnostics
_MOST_ENTRIES = 2**19  # entries of all points that are released at once
_WATCH = "diagnostics."  # prefix of the diagnostics' arrays beside the state
_APART = 2**14  # bytes from which on what changes only at a release is written only then


class Watch(Protocol):
    """Diagnostics of exact rows, NOT PRIVATE; their arrays are committed with the secret state."""

    def __call__(self, X: Array, y: Array, model: Array, problem: Problem | None = None) -> None:
        """Evaluate the next rows by the model in use before them, and the problem with which it predicts."""

    def arrays(self) -> Arrays:
        """Their state."""

    def as_data(self) -> dict[str, Any]:
        """What they say so far."""


class StoredStream(PrivateStream):
    """A private stream in a store; for one thread at a time.

    Parameters
    ----------
    store : Store
        Where it is.
    plan : Plan
        How it learns.
    saved : Saved
        The stream as `Store.load` gave it.
    layers : dict, optional
        Contents of its layers, as `Store.load_with_layers` gave them; by default those in the store, which another
        process may have replaced since.

    Attributes
    ----------
    plan : Plan
        How it learns, with the calibration that it began with.
    saved : Saved
        The stream as the last commit left it, as far as this object knows.
    watch : Watch, optional
        Diagnostics of exact rows, NOT PRIVATE: rows are then learnt a few at a time, so that each is evaluated by the
        model before it.
    watched : dict of ndarray
        The state of diagnostics at the last commit.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0).plan(dimension=2, horizon=9)
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/streams.db")
    >>> stream = StoredStream.create(store, "clicks", plan)
    >>> releases = stream.prepare(np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0.5, -0.5]))
    >>> len(releases), len(list(stream.read()))
    (2, 0)
    >>> stream.commit()
    >>> [chunk.last for chunk in StoredStream(store, plan, store.load("clicks")).read()]
    [2]
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, plan: Plan, saved: Saved, layers: Mapping[str, bytes] | None = None) -> None:
        private = plan.stream
        layers = store.layers(saved) if layers is None else layers
        state = private.read(saved.state, layers)
        extra = read_extra(saved.state, layers)
        private = private.resumed(state)
        plan = replace(plan, private=private)
        super().__init__(plan, state, Published.resumed(plan, state.k, extra))
        self.store = store
        self.saved = saved
        self.watch: Watch | None = None
        self.watched = {name.removeprefix(_WATCH): made for name, made in extra.items() if name.startswith(_WATCH)}
        self._private: Private = private
        self._timetable = private.timetable
        self._attempt: Position | None = None  # of a commit whose outcome is not known
        self._released: tuple[str, Arrays] = "", {}  # what changes only at a release, and the layer that has it

    @classmethod
    def create(
        cls,
        store: Store,
        name: str,
        plan: Plan,
        *,
        about: Mapping[str, Any] | None = None,
        input: bytes = b"",
        ledger: Ledger | None = None,
        closes: Saved | None = None,
        label: str | None = None,
        check: Callable[[Saved, Mapping[str, bytes]], None] = lambda saved, layers: None,
    ) -> StoredStream:
        """Begin a stream: its whole cost is reserved, and its first state committed, before its first row.

        Parameters
        ----------
        store, name, plan
            Where, under which name, and how it learns.
        about : dict, optional
            Public data of the one who makes it.
        input : bytes
            Where its input begins. Secret.
        ledger : Ledger, optional
            Where the cost is reserved.
        closes : Saved, optional
            A stream of the same store that ends in the same transaction.
        label : str, optional
            What the ledger calls it, by default its name.
        check : callable
            Called with the stream as it will be stored, and the layers of its users' records: nothing is reserved or
            stored if it raises an error.
        """
        private = plan.stream
        if ledger is not None and private.seed is not None:
            raise InvalidInput("a simulation protects no one, and reserves nothing. Leave out the ledger, or the seed.")
        state = private.draft()
        lineage = f"{state.lineage} {new_name()}" if state.simulated else state.lineage
        generation, t, k, token = state.position
        layers = {layer.name: layer.to_bytes() for layer in _layers(state)}
        drafted = Saved(
            name,
            lineage,
            (generation, t, k, token or new_name()),
            private.total_cost,
            FREE,
            state.to_bytes(Published.start(plan).arrays, layers_apart=True),
            input,
            {CHARGE: Charge.of(private.guarantee).as_data(), **(about or {})},
            "",
            population=None if ledger is None else ledger.population,
            neighbours=private.neighbours,
            layers=frozenset(layers),
        )
        check(drafted, layers)
        saved = store.create(
            name,
            lineage=lineage,
            position=drafted.position,
            reserved=drafted.reserved,
            state=drafted.state,
            input=input,
            about=drafted.about,
            neighbours=drafted.neighbours,
            unit=private.unit.name,
            ledger=ledger,
            settings=private.recorded,
            layers=layers,
            closes=closes,
            label=label,
        )
        return cls(store, plan, saved)

    # Prepare.

    def prepare(self, X: Any, y: Any, users: Any = None, now: datetime | None = None) -> Releases:
        """Learn the next rows, in memory; their releases are not to be shown before `commit`."""
        before = self._now
        releases = super().prepare(X, y, users, now)
        if self.watch is not None:
            self.watch(X, y, before.published.model, before.problem)
        return releases

    def prepare_sums(self, blocks: Iterable[BlockSums], admission: Admission | None = None) -> Releases:
        """Learn from sums in the place of rows, as `Private.run_sums` does, in memory."""
        before = self._now
        return self._take(before, self._private.prepare_sums(self._state, blocks, admission))

    def _following(self, before: Tip, prepared: Prepared) -> Tip:
        """What was prepared, with the text of its releases.

        The line of a release has the model to use after it, which may be an average, and is committed with the state.
        So what follows from releases is computed before the commit, of each block: the text of a block is smaller than
        its releases.
        """
        tip = super()._following(before, prepared)
        text = (lines_of(self.plan, prepared.releases, tip.models),) if len(prepared.releases) else ()
        return tip._replace(releases=None, lines=before.lines + text)

    def stride(self, rows: int) -> int:
        """How many of the next rows to prepare at once: as many as are watched, and whose releases fit into memory."""
        rows = rows if self.watch is None else min(rows, _WATCHED_ROWS)
        most = max(1, _MOST_ENTRIES // len(self.model))
        due = self._timetable.following(self.k, self.t + rows, most)
        return int(due[-1]) - self.t if len(due) == most else rows

    def admit(self, users: Any, now: datetime | None = None) -> Admission:
        """Which of the next rows count, as `Private.admit` decides; nothing is stored."""
        return self._private.admit(self._state, users, now)

    def admit_hashed(self, parts: Sequence[HashedRows], map: Map, now: datetime | None = None) -> Admission:
        """The same by workers, as `Private.admit_hashed` decides: ids are hashed by `hash_rows`, under `user_key`."""
        return self._private.admit_hashed(self._state, parts, map, now)

    @property
    def user_key(self) -> bytes:
        """The key under which users' ids are hashed. Secret."""
        records = self._state.users
        if records is None:
            raise InvalidInput("the unit of privacy is an example: ids are not read.")
        return records.key_to_bytes()

    def next_learner(self) -> tuple[Learner, Array]:
        """The learner with which sums of the next rows are made, and the point released last."""
        state = self._state
        return self._private.learner_at(state), state.point

    # Commit.

    def commit(
        self,
        *,
        input: bytes | None = None,
        visible_at: int | None = None,
        requests: Sequence[Request] = (),
        lease: Lease | None = None,
    ) -> None:
        """Commit all that was prepared, in one transaction, also if that is no row; then its releases may be shown.

        Parameters
        ----------
        input : bytes, optional
            The position in the input after these rows; by default that of the last commit. Secret.
        visible_at : int, optional
            From when on the releases may be shown, in milliseconds since the epoch; by default at once.
        requests, lease
            As in `Store.commit`.
        """
        self._settle()
        tip, state, published = self._tip, self._state, self._tip.published
        watched = {} if self.watch is None else {f"{_WATCH}{name}": made for name, made in self.watch.arrays().items()}
        saved, text = self.saved, b"".join(tip.lines)
        generation, t, k, token = state.position
        learnt = t > saved.position[1]
        # without a row the state is the same, and its successor is known by the token alone
        position = (max(generation, saved.position[0] + 1), t, k, token if learnt and token else new_name())
        self._attempt = position
        layer = self._layer_of_release(state.as_released(published.arrays))
        extra = watched if layer else {**published.arrays, **watched}
        layers = {each.name: None if each.name in saved.layers else each.to_bytes() for each in _layers(state)}
        self.saved = self.store.commit(
            saved,
            position=position,
            spent=state.spent,
            state=state.to_bytes(extra, layers_apart=True, released=next(iter(layer), "")),
            input=saved.input if input is None else input,
            releases=[Chunk(saved.position[2] + 1, k, self._timetable.due(k) or 0, text)] if text else [],
            layers={**layers, **layer},
            learnt=self._private.learnt(state),
            visible_at=visible_at,
            requests=requests,
            lease=lease,
        )
        self._committed()

    def _layer_of_release(self, arrays: Arrays) -> dict[str, bytes | None]:
        """The layer of what changes only at a release: None for its content, if that is stored; none, if it is small.

        Where a row of a model is many times as long in buffers and averages as in the sum that it adds to, a commit
        between two releases writes the sum alone.
        """
        if sum(array.nbytes for array in arrays.values()) < _APART:
            return {}
        name, known = self._released
        if name in self.saved.layers and same(known, arrays):
            return {name: None}
        self._released = new_name(), arrays
        return {self._released[0]: part_to_bytes(arrays)}

    def _committed(self) -> None:
        self._tip = self._tip._replace(lines=())
        self._attempt = None

    def _settle(self) -> None:
        """Find out what an interrupted commit has done."""
        if self._attempt is None:
            return
        newest = self.store.load(self.saved.name)
        if newest.lineage != self.saved.lineage or newest.position not in (self.saved.position, self._attempt):
            raise StateConflict(
                f"another process went on with {self.saved.name} after this one was interrupted. Nothing was released; "
                "resume it, and continue from there."
            )
        taken = newest.position == self._attempt
        self.saved = newest
        if taken:
            self._committed()
        self._attempt = None

    # Read.

    def read(self, after: int = 0) -> Iterator[Chunk]:
        """The releases of commits that this object knows, in order, from the chunk that holds number `after` + 1 on."""
        while after < self.saved.position[2]:
            found = self.store.chunk(self.saved.lineage, after + 1)
            if found is None:
                raise StoreReplaced(
                    f"release {after + 1} of {self.saved.name} was committed, and is not in {self.store.address} now. "
                    "Continue the newest database."
                )
            chunk, _ = found
            after = chunk.last
            yield chunk

    @property
    def committed(self) -> int:
        """Number of rows at the last commit."""
        return self.saved.position[1]

    # What was prepared so far.

    @property
    def cost(self) -> Cost:
        """The cost of the published sequence: this stream's releases, and all of those that it was adopted from."""
        return total([self.saved.earlier, super().cost])

    @property
    def budget(self) -> Spent:
        """The most that it can cost."""
        return total([self.saved.earlier, self.saved.reserved]).spent_at(self._delta)

    @property
    def size(self) -> int:
        """Bytes of the arrays of its state; users' records are beside them. Public, as shapes are."""
        return size_of(self._state)

    @property
    def waiting(self) -> int:
        """Bytes of the text of releases that are not committed."""
        return sum(map(len, self._tip.lines))

    @property
    def _now(self) -> Tip:
        self._settle()
        return self._tip


def _layers(state: State) -> Sequence[Any]:
    """The layers of users' records that a state needs."""
    return state.users.layers if state.users is not None else ()
