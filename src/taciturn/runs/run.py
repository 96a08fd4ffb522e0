"""A run in a folder: a model is published only after the commit that contains it.

**Order.** A run is a stream in a `taciturn.store.Store`. A commit (`Run.commit`) has these steps:

1. learn blocks of rows; their releases stay in memory;
2. one transaction of the store, which compares the stream's (lineage, generation, token) with those that this run has
   read or written last, and stores the state after the rows with what it has spent, the lines of `models.jsonl` that
   are new (the outbox), and the place in the input with the keyed chain of all rows so far;
3. write those lines at the end of `models.jsonl`, and sync;
4. replace `model.json`, and from time to time `report.html`.

A commit that is interrupted, by Ctrl-C say, is completed by the next one in the same process: the stream is read again
from the store, which tells whether step 2 took effect, and the lines of the outbox that `models.jsonl` does not hold
are written (`complete`), as when a run is resumed. If learning itself was interrupted, so that rows were learnt whose
lines or place in the input are not known, nothing more is committed: the run must be resumed.

**Claim.** Whenever the process, or the machine, stops: no round is published twice with different noise; the privacy
that the store records as spent is at least the cost of everything published; and a resumed run counts every row once.

*Proof.* A transaction is atomic and durable (`taciturn.store.store`), so the store holds at every moment the stream of
the last commit that finished step 2; call it S, after t rows and k releases. (i) *Published implies committed.* Lines
are written, and the model replaced, in steps 3 and 4 only, after step 2 of the same commit; so every published line has
a number of at most k, and S has spent their cost, because spending never falls. (ii) *Published once.* The outbox has
one text for each number up to k, and a transaction adds numbers above k only. A run writes the texts of the outbox, in
order, and no other: `complete` rejects a file that holds anything else. Releases after the k-th that were made and lost
were never written (i); their rounds are released again, with fresh noise, and no round is published twice. Of two
processes that continue from S, one succeeds in step 2; the other is rejected there and publishes nothing. (iii)
*Counted once.* S holds t, and the chain of the t rows it has seen. A resumed run learns from row t + 1 of its input on.
It hashes rows before that with the same key, and rejects the input if the chains differ: all of them, or those of the
last block and a part, which is enough to notice that rows were moved but not that an early one was edited; with
`--continue` the user says which row is the next. ∎

The proof assumes that the store is the newest one. A store restored from a backup is rejected if it has made fewer
releases than `models.jsonl` contains, if it is another file than the one used last, or if a witness has seen a later
commit (`taciturn.store.witness`). A lock prevents two processes from using one folder, so that they do not waste work;
what decides is the comparison in step 2.

Files other than the store are read and written by a descriptor of the locked folder, and not by its path: if the folder
is moved during a run, another run in a new folder of the same name shares no file with it. SQLite opens its files by
their path. It notices that the path no longer leads to the open file and commits nothing; the run then stops.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.ledger import Ledger, Position
from taciturn.accounting.renewal import Charge
from taciturn.accounting.unit import User
from taciturn.core.accounted import OTHER_SETTINGS
from taciturn.core.block_sums import Admission, BlockSums
from taciturn.core.state import State, new_name, read_extra, read_state
from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable, TaciturnError
from taciturn.estimators.stream import Spent, Stream
from taciturn.plan import Plan
from taciturn.problem.problem import Problem
from taciturn.runs.files import Folder, write_at
from taciturn.runs.journal import complete
from taciturn.runs.resume import BlockDigest, Checkpoint, SeenRows, Users
from taciturn.store import Chunk, Saved, Store
from taciturn.store.encryption import read_key
from taciturn.streams.lines import lines_of

NAME = "stream"
"""Name of the stream in the store of its own folder."""

CHARGE = "charge"
"""Key of what a run costs by neighbour relation, in what is public about its stream."""

SERVED = "served"
"""In what is public about a stream: it learns by `taciturn serve`."""

_MOST_TEXT = 2**23  # bytes of lines that wait for a commit, at most
_MOST_ROWS = 2**13  # rows that are learnt at once; a commit may be due after them
_WATCHED_ROWS = 2**8  # the same with diagnostics: rows that are evaluated by one model
_MOST_ENTRIES = 2**19  # entries of all points that are released at once
_WATCH = "diagnostics."  # prefix of the diagnostics' keys in the stored state


class Watch(Protocol):
    """Diagnostics of exact rows; their state is committed with the secret state."""

    def __call__(self, X: Array, y: Array, model: Array, problem: Problem | None = None) -> None:
        """Evaluate the next rows by the model in use before them, and the problem with which it predicts."""

    def arrays(self) -> Arrays:
        """The state of the diagnostics."""


@dataclass
class Run:
    """A stream, its store and its folder, and the releases that are not committed yet.

    Parameters
    ----------
    folder : Folder
        The folder, locked by `locked` during the run.
    stream : Stream
        The private learner.
    store : Store
        Where the stream is committed.
    saved : Saved
        The stream as the last commit of this run left it.
    show : callable
        Publishes the model after each commit.
    refresh : callable
        Called after each commit, and while the input pauses: may refresh the report.
    seconds : float
        Minimal time between two commits while rows arrive fast, or ten times the duration of a commit if that is
        longer, so that a slow disk does not take most of the time. 0 commits after every block.
    format : str
        Format of the input, in which its places are valid.

    Attributes
    ----------
    input : Checkpoint
        Where the input stood, and the chain of its rows, at the last commit.
    written : int
        Size of `models.jsonl`.
    committed : int
        Number of rows at the last commit.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0).plan(dimension=2, horizon=9)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Folder(Path(place))
    ...     run = begin(folder, Store(folder.store), plan, "digest of a contract")
    ...     run.learn(np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0.5, -0.5]))
    ...     run.commit()
    ...     again = resume(folder, Store(folder.store), plan, "digest of a contract")
    >>> again.stream.t, again.stream.k
    (2, 2)
    """

    folder: Folder
    stream: Stream
    store: Store
    saved: Saved
    show: Callable[[Run], None] = lambda run: None
    refresh: Callable[[Run], None] = lambda run: None
    seconds: float = 1.0
    format: str = ""
    written: int = 0
    watch_state: Arrays = field(default_factory=dict)
    _uncommitted: list[bytes] = field(default_factory=list)
    _attempt: tuple[Position, list[bytes]] | None = None  # the last commit, until it is published
    _last: float = field(default_factory=time.monotonic)
    _patience: float = 0.0

    def __post_init__(self) -> None:
        self.input = Checkpoint.from_bytes(self.saved.input)
        self.seen = SeenRows(self.input, "none")
        self._learnt = self.stream.t

    @property
    def left(self) -> int | None:
        """Rounds left before the horizon; None without a horizon."""
        horizon = self.stream.plan.private.timetable.horizon
        return None if horizon is None else horizon - self.stream.t

    @property
    def committed(self) -> int:
        """Number of rows at the last commit."""
        return self.saved.position[1]

    @property
    def spent(self) -> Spent:
        """What the published sequence costs: this stream's releases, and all of those that it was adopted from."""
        return self._epsilon(self.stream.cost)

    @property
    def budget(self) -> Spent:
        """The most that it can cost."""
        return self._epsilon(self.saved.reserved)

    def _epsilon(self, cost: Cost) -> Spent:
        both, delta = total([self.saved.earlier, cost]), self.stream.plan.private.privacy.delta
        return Spent(0.0 if both == FREE else both.epsilon(delta), delta)

    @property
    def in_folder(self) -> bool:
        """Whether the store is that of the folder."""
        return self.store.address == str(self.folder.store.absolute())

    def learn(self, X: Array, y: Array, watch: Watch | None = None, users: Users = None) -> None:
        """Learn from rows, and commit when a commit is due; `watch` evaluates each block by the model before it.

        `users` has an id for each row, if the contract names a column of ids.
        """
        start = 0
        while start < len(y):
            end = start + self._stride(min(len(y) - start, _MOST_ROWS if watch is None else _WATCHED_ROWS))
            self._learn(X[start:end], y[start:end], watch, None if users is None else users[start:end])
            start = end
            self.commit_if_due()

    def _stride(self, rows: int) -> int:
        """How many of these rows to learn at once, such that the releases fit into memory."""
        stream = self.stream
        most = max(1, _MOST_ENTRIES // len(stream.model))
        due = stream.plan.private.timetable.following(stream.k, stream.t + rows, most)
        return int(due[-1]) - stream.t if len(due) == most else rows

    def _learn(self, X: Array, y: Array, watch: Watch | None, users: Users) -> None:
        self._must_be_complete()
        before, problem = self.stream.model, self.stream.problem
        of_users = isinstance(self.stream.plan.private.unit, User)  # else ids are read, and protect nobody
        releases = self.stream.learn(X, y, users if of_users else None)
        self.seen.add(X, y, users)
        if watch is not None:
            watch(X, y, before, problem)
            self.watch_state = watch.arrays()
        if len(releases):
            self._uncommitted.append(lines_of(self.stream.plan, releases, self.stream.models))
        self._learnt = self.stream.t

    def learn_sums(
        self, blocks: Iterable[BlockSums], digests: Sequence[BlockDigest], admission: Admission | None = None
    ) -> None:
        """Learn from sums that workers have made of the next rows, with the digests of those rows; commit if it is due.

        `Stream.admit` makes the `admission`, if the unit is a user.
        """
        self._must_be_complete()
        releases = self.stream.learn_sums(blocks, admission)
        self.seen.add_digests(digests)
        if len(releases):
            self._uncommitted.append(lines_of(self.stream.plan, releases, self.stream.models))
        self._learnt = self.stream.t
        self.commit_if_due()

    def _must_be_complete(self) -> None:
        """Reject a run that was interrupted after rows were learnt, and before their lines were known."""
        if self._learnt != self.stream.t:
            raise StateConflict(
                "this run was interrupted while it learnt, and what it learnt since its last commit cannot be "
                "published. Resume it: it goes on from the last commit, and no release is repeated or lost."
            )

    def commit_if_due(self) -> None:
        """Commit if the last commit was long enough ago, or many lines wait."""
        wait = max(self.seconds, self._patience) if self.seconds else 0.0
        if time.monotonic() - self._last >= wait or sum(map(len, self._uncommitted)) > _MOST_TEXT:
            self.commit()

    def commit(self) -> None:
        """Steps 2, 3 and 4 of the order above; does nothing if no row was learnt since the last commit."""
        self._must_be_complete()
        began = time.monotonic()
        try:
            if self._attempt is not None:
                self._complete()
            if self.committed == self.stream.t:
                return
            lines = b"".join(self._uncommitted)
            self._commit_to_store(lines)
            if lines:
                write_at(self.folder.models, self.written, lines)
            self.written += len(lines)
            self.show(self)
        except (FileNotFoundError, TaciturnError) as error:
            raise self._explained(error) from None
        self._attempt = None
        self._last = time.monotonic()
        self._patience = 10.0 * (self._last - began)
        self.refresh(self)

    def _complete(self) -> None:
        """Find out what an interrupted commit has done, and publish what it has committed."""
        assert self._attempt is not None
        position, lines = self._attempt
        newest = self.store.load(self.saved.name)
        if newest.lineage != self.saved.lineage or newest.position not in (self.saved.position, position):
            raise StateConflict(
                f"another process went on with {self.saved.name} after this one was interrupted. Nothing was released; "
                "resume it, and continue from there."
            )
        if newest.position == position:
            attempted = set(map(id, lines))
            self._uncommitted = [each for each in self._uncommitted if id(each) not in attempted]
        self.saved = newest
        self.input = Checkpoint.from_bytes(newest.input)
        self.written = _completed(self.folder, self.store, newest)
        if self.committed == self.stream.t:  # else the model is not committed yet
            self.show(self)
        self._attempt = None

    def _commit_to_store(self, lines: bytes) -> None:
        watched = {f"{_WATCH}{name}": array for name, array in self.watch_state.items()}
        extra = {"written": np.array(self.written + len(lines)), **watched}
        state, content = self.stream.to_bytes(extra, layers_apart=True)
        layers = state.users.layers if state.users is not None else ()
        stored = self.saved.layers
        reached = self.seen.checkpoint
        last = self.stream.plan.private.timetable.due(state.k) if lines else 0
        position = _position(state)
        self._attempt = position, list(self._uncommitted)
        saved = self.store.commit(
            self.saved,
            position=position,
            spent=state.spent,
            state=content,
            input=reached.to_bytes(),
            releases=[Chunk(self.saved.position[2] + 1, state.k, last or 0, lines)] if lines else [],
            layers={layer.name: None if layer.name in stored else layer.to_bytes() for layer in layers},
            learnt=self.stream.plan.private.learnt(state),
        )
        self.saved = saved
        self.input = reached
        self._uncommitted = []

    def _explained(self, error: Exception) -> Exception:
        """The error of a store or file that cannot be written to."""
        if self.folder.moved:
            return StateConflict(
                f"{self.folder.path} was moved or deleted while this run was learning in it, and nothing was published "
                "after that. Restore it, or pass the moved folder by --out, and continue with --resume; a new run "
                "spends the budget again."
            )
        if isinstance(error, StoreUnavailable):
            return StateConflict(
                f"{error} Every published model is committed. Run the same command with --resume when the store can "
                "be written to: no release is repeated or lost."
            )
        return error


def _position(state: State) -> Position:
    """The position of a state; that of a simulation, whose states have no token, gets one."""
    generation, t, k, token = state.position
    return generation, t, k, token or new_name()


# How a run is found, begun and resumed.


def find(
    folder: Folder,
    address: str | os.PathLike[str],
    contract: str,
    *,
    name: str = NAME,
    resuming: bool = False,
    witness: str | None = None,
    key: str | os.PathLike[str] | None = None,
) -> Saved | None:
    """The run of this name, if there is one; nothing is written.

    Rejects another contract's run, a run of an older version, a folder with files that a run would replace, and a
    folder without a run to resume.
    """
    folder.check_version()
    others = [file for file in (folder.models, folder.model, folder.report) if file.exists()]
    saved = _load(address, name, witness, key)  # last: a run that begins at this moment writes it first
    if saved is not None:
        _check_contract(saved, contract, address)
    elif resuming:
        raise InvalidInput(f"there is nothing to resume in {folder.path}. Omit --resume to start a run.")
    elif others:
        raise StateConflict(
            f"{others[0]} is not of this run, which would replace it: the folder holds no state of a run. Pass "
            "another folder by --out, or move the file."
        )
    return saved


def _load(
    address: str | os.PathLike[str], name: str, witness: str | None, key: str | os.PathLike[str] | None
) -> Saved | None:
    """The stream of this name; None if there is no such stream, or no store."""
    if "://" not in str(address) and (not Path(address).exists() or Path(address).stat().st_size == 0):
        return None
    read_key(key)  # before the store: a key that cannot be read says nothing about that
    try:
        store = Store(address, witness=witness, key=key)
    except InvalidInput as error:
        raise StateConflict(
            f"{address} is not the store of a run ({str(error).rstrip('.')}). For a new run, pass another folder by "
            "--out."
        ) from None
    return store.load(name) if name in store.names() else None


def _check_contract(saved: Saved, contract: str, address: object) -> None:
    if "contract" not in saved.about:
        raise StateConflict(f"{saved.name} in {address} was not written by taciturn learn. Pass another --name.")
    if SERVED in saved.about:
        raise StateConflict(f"{saved.name} in {address} learns by taciturn serve. Send its rows there.")
    if saved.about["contract"] != contract:
        raise StateConflict(
            f"{address}: the contract is not the one this run began with. Restore the contract; or start a new run in "
            "another folder by --out, which spends the budget again."
        )


def begin(
    folder: Folder,
    store: Store,
    plan: Plan,
    contract: str,
    *,
    name: str = NAME,
    ledger: Ledger | None = None,
    closes: Saved | None = None,
    about: dict[str, Any] | None = None,
    **settings: Any,
) -> Run:
    """Start a run: its whole cost is reserved, and its first state committed, before the first row is read.

    Parameters
    ----------
    folder : Folder
        A folder that holds no run.
    store : Store
        Where the run is committed.
    plan : Plan
        How to learn.
    contract : str
        Digest of the contract; a run is resumed under the same contract only.
    name : str
        Name of the stream in the store.
    ledger : Ledger, optional
        Where the cost is reserved.
    closes : Saved, optional
        A stream of the same store that ends in the same transaction.
    about : dict, optional
        More public data of the run; `taciturn serve` shows the stream by the contract's, under "declared".
    **settings
        Other parameters of `Run`.
    """
    if name in store.names():
        if store.load(name).position[1] > 0:
            raise StateConflict(
                f"{folder.path} holds a run that has learnt from rows. Continue it with --resume; or start another run "
                "in another folder by --out, which spends the budget again."
            )
        return resume(folder, store, plan, contract, name=name, ledger=ledger, **settings)
    if folder.models.size > 0:
        raise StateConflict(f"{folder.models} holds releases of another run. Pass another folder by --out.")
    private = plan.private
    if ledger is not None and private.seed is not None:
        raise InvalidInput("a simulation protects no one, and reserves nothing. Omit --ledger, or --seed.")
    folder.clear()
    stream = Stream(plan)
    state, content = stream.to_bytes({"written": np.array(0)}, layers_apart=True)
    lineage = f"{state.lineage} {new_name()}" if state.simulated else state.lineage
    saved = store.create(
        name,
        lineage=lineage,
        position=_position(state),
        reserved=private.total_cost,
        state=content,
        input=SeenRows().checkpoint.to_bytes(),
        about={
            "contract": contract,
            "lineage": lineage,
            CHARGE: Charge.of(private.guarantee).as_data(),
            **(about or {}),
        },
        neighbours=private.problem.neighbours,
        unit=private.unit.name,
        ledger=ledger,
        settings=private.recorded,
        closes=closes,
        label=folder.path.absolute().name if name == NAME else name,
    )
    run = Run(folder, stream, store, saved, **settings)
    run.show(run)
    return run


def resume(
    folder: Folder,
    store: Store,
    plan: Plan,
    contract: str,
    *,
    name: str = NAME,
    ledger: Ledger | None = None,
    **settings: Any,
) -> Run:
    """Open a run at its last commit, and complete `models.jsonl`; its rows are checked later, by `Unseen`.

    The parameters are those of `begin`; a ledger, if it is given, must be the one that the run began with.
    """
    saved = store.load(name)
    _check_contract(saved, contract, store.address)
    if saved.closed:
        raise StateConflict(
            f"{saved.name} in {store.address} was closed: it learns no more. Continue the run that follows it, or "
            "start another by taciturn renew, which spends a second budget."
        )
    _check_ledger(saved, store, ledger)
    store.check_reserved(saved)
    layers = store.layers(saved)
    if read_state(saved.state, layers).simulated != (plan.private.seed is not None):
        raise StateConflict(
            "a simulated run is resumed with its --seed, and a private run without --seed. Change the option."
        )
    try:
        stream = Stream.load(plan, saved.state, layers=layers)
    except StateConflict as error:
        if str(error) != OTHER_SETTINGS:
            raise
        raise StateConflict(
            f"{saved.name} in {store.address} began by another plan than that of its contract, as "
            "contract.plan(workers=...) is. Resume it in Python by the plan that it began with."
        ) from None
    extra = read_extra(saved.state)
    written = _completed(folder, store, saved)
    folder.clear()
    watched = {name.removeprefix(_WATCH): array for name, array in extra.items() if name.startswith(_WATCH)}
    run = Run(folder, stream, store, saved, **settings, written=written, watch_state=watched)
    run.show(run)
    return run


def _completed(folder: Folder, store: Store, saved: Saved) -> int:
    """Write what `models.jsonl` lacks of the outbox, and return its size."""
    known = saved.about["lineage"] == saved.lineage  # the size that was stored is not that of an adopted stream's file
    size = int(read_extra(saved.state)["written"]) if known else None
    return complete(folder.models, lambda after: store.releases(saved.name, after), size)


def _check_ledger(saved: Saved, store: Store, ledger: Ledger | None) -> None:
    began = store.address if saved.ledger == "" else saved.ledger
    if ledger is not None and (ledger.address, ledger.population) != (began, saved.population):
        reserved = "in no ledger" if began is None else f"in {began} ({saved.population})"
        raise StateConflict(f"this run reserved its cost {reserved}. Omit --ledger: a run keeps the one it began with.")
