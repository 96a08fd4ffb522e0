"""A run in a folder: rows of one input, learnt by a stream in a store, and files that show what it released.

**Order.** A run is a `taciturn.streams.stored.StoredStream` whose input is a file or a pipe. A commit (`Run.commit`)
has these steps:

1. learn blocks of rows; their releases stay in memory;
2. commit them, and the place in the input with the keyed chain of all rows so far, in one transaction of the store;
3. export: make the files of the folder that show releases (`taciturn.runs.exporters`) from what is committed.

If learning was interrupted, by Ctrl-C say, so that rows were learnt whose place in the input is not known, nothing more
is committed: the run must be resumed. A commit that was interrupted is completed by the next one, or by resuming.

**Claim.** Whenever the process, or the machine, stops: no round is published twice with different noise; the privacy
that the store records as spent is at least the cost of everything published; and a resumed run counts every row once.

*Proof.* Releases are shown by exporters only, which read committed ones, so that the first two claims are those of
`taciturn.streams.stored` and `taciturn.store.store`. *Counted once.* The store holds t, and the chain of the t rows
that the stream has learnt, from one transaction. A resumed run learns from row t + 1 of its input on. It hashes rows
before that with the same key, and rejects the input if the chains differ: all of them, or those of the last block and a
part, which is enough to notice that rows were moved but not that an early one was edited; with `--continue` the user
says which row is the next. ∎

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.accounting.ledger import Ledger
from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable, TaciturnError
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.stream.block_sums import Admission, BlockSums
from taciturn.kernel.stream.state import SIMULATION
from taciturn.kernel.stream.stream import OTHER_SETTINGS
from taciturn.plan import Plan
from taciturn.runs.exporters import Exported
from taciturn.runs.files import Folder
from taciturn.runs.resume import BlockDigest, Checkpoint, SeenRows, Users
from taciturn.store import Saved, Store
from taciturn.store.encryption import read_key
from taciturn.streams.stored import StoredStream

NAME = "stream"
"""Name of the stream in the store of its own folder."""

SERVED = "served"
"""In what is public about a stream: it learns by `taciturn serve`."""

_MOST_TEXT = 2**23  # bytes of lines that wait for a commit, at most
_MOST_ROWS = 2**13  # rows that are learnt at once; a commit may be due after them


@dataclass
class Run(Exported):
    """A stream in a store that learns the rows of one input, and the folder of its files.

    Parameters
    ----------
    folder, stream, exporters
        As in `taciturn.runs.exporters.Exported`; exporters are called after each commit.
    seconds : float
        Minimal time between two commits while rows arrive fast, or ten times the duration of a commit if that is
        longer, so that a slow disk does not take most of the time. 0 commits after every block.
    format : str
        Format of the input, in which its places are valid.

    Attributes
    ----------
    seen : SeenRows
        The chain of the rows that were learnt.

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

    seconds: float = 1.0
    format: str = ""
    _last: float = field(default_factory=time.monotonic)
    _patience: float = 0.0

    def __post_init__(self) -> None:
        self.seen = SeenRows(self.input, "none")
        self._chained = self.stream.t  # rows that are learnt and in the chain
        super().__post_init__()

    @property
    def input(self) -> Checkpoint:
        """Where the input stood, and the chain of its rows, at the last commit."""
        return Checkpoint.from_bytes(self.saved.input)

    def learn(self, X: Array, y: Array, users: Users = None) -> None:
        """Learn from rows, and commit when a commit is due.

        `users` has an id for each row, if the contract names a column of ids.
        """
        of_users = isinstance(self.stream.plan.private.unit, User)  # else ids are read, and protect nobody
        start = 0
        while start < len(y):
            self._must_be_complete()
            rows = slice(start, start + self.stream.stride(min(len(y) - start, _MOST_ROWS)))
            ids = None if users is None else users[rows]
            self.stream.prepare(X[rows], y[rows], ids if of_users else None)
            self.seen.add(X[rows], y[rows], ids)
            self._chained = self.stream.t
            start = rows.stop
            self.commit_if_due()

    def learn_sums(
        self, blocks: Iterable[BlockSums], digests: Sequence[BlockDigest], admission: Admission | None = None
    ) -> None:
        """Learn from sums that workers have made of the next rows, with the digests of those rows; commit if it is due.

        `StoredStream.admit` makes the `admission`, if the unit is a user.
        """
        self._must_be_complete()
        self.stream.prepare_sums(blocks, admission)
        self.seen.add_digests(digests)
        self._chained = self.stream.t
        self.commit_if_due()

    def _must_be_complete(self) -> None:
        """Reject a run that was interrupted after rows were learnt, and before they were added to the chain."""
        if self._chained != self.stream.t:
            raise StateConflict(
                "this run was interrupted while it learnt, and what it learnt since its last commit cannot be "
                "published. Resume it: it goes on from the last commit, and no release is repeated or lost."
            )

    def commit_if_due(self) -> None:
        """Commit if the last commit was long enough ago, or many lines wait."""
        wait = max(self.seconds, self._patience) if self.seconds else 0.0
        if time.monotonic() - self._last >= wait or self.stream.waiting > _MOST_TEXT:
            self.commit()

    def commit(self) -> None:
        """Steps 2 and 3 of the order above; of an interrupted commit, what it has not done."""
        began = time.monotonic()
        try:
            self._must_be_complete()
            new = self.committed != self.stream.t
            if new:
                self.stream.commit(input=self.seen.checkpoint.to_bytes())
            self.export()
            if new:
                self._last = time.monotonic()
                self._patience = 10.0 * (self._last - began)
        except (FileNotFoundError, TaciturnError) as error:
            raise self._explained(error) from None

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
    if ledger is not None and plan.private.seed is not None:
        raise InvalidInput("a simulation protects no one, and reserves nothing. Omit --ledger, or --seed.")
    folder.clear()
    stream = StoredStream.create(
        store,
        name,
        plan,
        about={"contract": contract, **(about or {})},
        input=SeenRows().checkpoint.to_bytes(),
        ledger=ledger,
        closes=closes,
        label=folder.path.absolute().name if name == NAME else name,
    )
    run = Run(folder, stream, **settings)
    run.export()
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
    if (SIMULATION in saved.lineage.split()) != (plan.private.seed is not None):
        raise StateConflict(
            "a simulated run is resumed with its --seed, and a private run without --seed. Change the option."
        )
    try:
        stream = StoredStream(store, plan, saved)
    except StateConflict as error:
        if str(error) != OTHER_SETTINGS:
            raise
        raise StateConflict(
            f"{saved.name} in {store.address} began by another plan than that of its contract, as "
            "contract.plan(workers=...) is. Resume it in Python by the plan that it began with."
        ) from None
    folder.clear()
    run = Run(folder, stream, **settings)
    run.export()
    return run


def _check_ledger(saved: Saved, store: Store, ledger: Ledger | None) -> None:
    began = store.address if saved.ledger == "" else saved.ledger
    if ledger is not None and (ledger.address, ledger.population) != (began, saved.population):
        reserved = "in no ledger" if began is None else f"in {began} ({saved.population})"
        raise StateConflict(f"this run reserved its cost {reserved}. Omit --ledger: a run keeps the one it began with.")
