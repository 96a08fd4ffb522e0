"""A run in a folder: a model is published only after the checkpoint that contains it is committed.

**Order.** A commit (`Run.commit`) has these steps, each flushed to the disk before the next begins:

1. learn a block of rows; its releases stay in memory;
2. write one file, `state.npz`: the state after the block with what it has spent, the lines of `models.jsonl` that are
   not written yet and their position in the file, the model, and the keyed chain of all rows so far. It is an atomic
   write: a temporary file in the same folder is synced and renamed over the old one, and the folder is synced;
3. write those lines at that position of `models.jsonl`, and sync;
4. replace `model.json`.

**Claim.** Whenever the process, or the machine, stops: no round is published twice with different noise; the privacy
that the state records as spent is at least the cost of everything published; and a resumed run counts every row once.

*Proof.* Renaming is atomic, so `state.npz` is at every moment that of the last commit that finished step 2; call it S,
after t rows and k releases. (i) *Published implies committed.* Lines are written, and the model replaced, in steps 3
and 4 only, after step 2 of the same commit; so every published line has a number of at most k, and S has spent their
cost, because spending never falls. (ii) *Published once.* A line of S is text in S. A resumed run writes that text, at
its position, and no other: `replay` rejects a file with anything else at that position. Releases after the k-th that
were made and lost were never written (i); their rounds are released again, with fresh noise, and no round is published
twice. (iii) *Counted once.* S holds t, and the chain of the t rows it has seen. A resumed run learns from row t + 1 of
its input on. It hashes rows before that with the same key, and rejects the input if the chains differ: all of them, or
those of the last block and a part, which is enough to notice that rows were moved but not that an early one was edited;
with `--continue` the user says which row is the next. ∎

The proof assumes that S is the newest state. A state restored from a backup is older: if it has made fewer releases
than `models.jsonl` contains, it is rejected; if `models.jsonl` is restored or lost as well, nothing in the folder can
reveal that. A lock prevents two processes from using one folder. Files are read and written by a descriptor of the
locked folder, and not by its path: if the folder is moved during a run, the run continues in the moved folder, and
another run in a new folder of the same name shares no file with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.core.state import read_extra, read_state
from taciturn.errors import InvalidInput, StateConflict
from taciturn.estimators.stream import Stream
from taciturn.plan import Plan
from taciturn.runs.files import Folder, write_at
from taciturn.runs.journal import lines_of, replay
from taciturn.runs.resume import Checkpoint, SeenRows

_MOST_TEXT = 2**23  # bytes of lines that wait for a commit, at most
_MOST_ROWS = 2**13  # rows that are learnt at once; a commit may be due after them
_WATCHED_ROWS = 2**8  # the same with diagnostics: rows that are evaluated by one model
_MOST_ENTRIES = 2**19  # entries of all points that are released at once
_WATCH = "aside."  # prefix of the diagnostics' keys in state.npz


class Watch(Protocol):
    """Diagnostics of exact rows; their state is committed with the secret state."""

    def __call__(self, X: Array, y: Array, model: Array) -> None:
        """Evaluate the next rows by the model in use before them."""

    def arrays(self) -> Arrays:
        """The state of the diagnostics."""


@dataclass
class Run:
    """A stream, the folder of its checkpoints, and the releases that are not committed yet.

    Parameters
    ----------
    folder : Folder
        The folder, locked by `locked` during the run.
    stream : Stream
        The private learner.
    contract : str
        Digest of the contract; a run is resumed under the same contract only.
    input : Checkpoint
        Where the input stood, and the chain of its rows, at the last commit.
    show : callable
        Publishes the model after each commit.
    seconds : float
        Minimal time between two commits while rows arrive fast, or ten times the duration of a commit if that is
        longer, so that a slow disk does not take most of the time. 0 commits after every block.
    format : str
        Format of the input, in which its places are valid.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0).plan(dimension=2, horizon=9)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run = begin(Folder(Path(place)), plan, "digest of a contract")
    ...     run.learn(np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0.5, -0.5]))
    ...     run.commit()
    ...     again = resume(Folder(Path(place)), plan, "digest of a contract")
    >>> again.stream.t, again.stream.k
    (2, 2)
    """

    folder: Folder
    stream: Stream
    contract: str
    input: Checkpoint
    show: Callable[[Run], None] = lambda run: None
    seconds: float = 1.0
    format: str = ""
    written: int = 0
    watch_state: Arrays = field(default_factory=dict)
    _unwritten: list[bytes] = field(default_factory=list)
    _committed: int = -1
    _last: float = field(default_factory=time.monotonic)
    _patience: float = 0.0

    def __post_init__(self) -> None:
        self.seen = SeenRows(self.input, "none")

    @property
    def left(self) -> int | None:
        """Rounds left before the horizon; None without a horizon."""
        horizon = self.stream.plan.private.timetable.horizon
        return None if horizon is None else horizon - self.stream.t

    def learn(self, X: Array, y: Array, watch: Watch | None = None) -> None:
        """Learn from rows, and commit when a commit is due; `watch` evaluates each block by the model before it."""
        start = 0
        while start < len(y):
            end = start + self._stride(min(len(y) - start, _MOST_ROWS if watch is None else _WATCHED_ROWS))
            self._learn(X[start:end], y[start:end], watch)
            start = end
            self.commit_if_due()

    def _stride(self, rows: int) -> int:
        """How many of these rows to learn at once, such that the releases fit into memory."""
        stream = self.stream
        most = max(1, _MOST_ENTRIES // len(stream.model))
        due = stream.plan.private.timetable.following(stream.k, stream.t + rows, most)
        return int(due[-1]) - stream.t if len(due) == most else rows

    def _learn(self, X: Array, y: Array, watch: Watch | None) -> None:
        before = self.stream.model
        releases = self.stream.learn(X, y)
        self.seen.add(X, y)
        if len(releases):
            self._unwritten.append(lines_of(self.stream.plan, releases, before))
        if watch is not None:
            watch(X, y, before)
            self.watch_state = watch.arrays()

    def commit_if_due(self) -> None:
        """Commit if the last commit was long enough ago, or many lines wait."""
        wait = max(self.seconds, self._patience) if self.seconds else 0.0
        if time.monotonic() - self._last >= wait or sum(map(len, self._unwritten)) > _MOST_TEXT:
            self.commit()

    def commit(self) -> None:
        """Steps 2, 3 and 4 of the order above; does nothing if no row was learnt since the last commit."""
        if self._committed == self.stream.t:
            return
        began = time.monotonic()
        lines = b"".join(self._unwritten)
        try:
            reached = self.seen.checkpoint
            self.stream.dump(self.folder.state, self._extra(lines, reached))
            self.folder.sync()
            if lines:
                write_at(self.folder.models, self.written, lines)
            self.show(self)
        except FileNotFoundError:
            raise StateConflict(
                f"{self.folder.path} was deleted while this run was learning in it, and nothing was published after "
                "that. Restore it and continue with --resume; a new run spends the budget again."
            ) from None
        self.input = reached
        self.written += len(lines)
        self._unwritten = []
        self._committed = self.stream.t
        self._last = time.monotonic()
        self._patience = 10.0 * (self._last - began)

    def _extra(self, lines: bytes, reached: Checkpoint) -> Arrays:
        """What `state.npz` holds besides the state of the stream."""
        releases = lines.count(b"\n")
        return {
            **{f"{_WATCH}{name}": array for name, array in self.watch_state.items()},
            "contract": np.array(self.contract),
            "input": np.frombuffer(reached.to_bytes(), dtype=np.uint8),
            "written": np.array(self.written),
            "already": np.array(self.stream.k - releases),
            "unwritten": np.frombuffer(lines, dtype=np.uint8),
        }


def check_folder(folder: Folder, contract: str, resuming: bool) -> None:
    """Reject a folder with another contract's run, with files that a run would replace, or without a run to resume."""
    others = [file for file in (folder.models, folder.model, folder.report) if file.exists()]
    if not folder.state.exists():  # checked last: a run that begins at this moment writes it first
        if resuming:
            raise InvalidInput(f"there is nothing to resume in {folder.path}. Omit --resume to start a run.")
        if others:
            raise StateConflict(
                f"{others[0]} is not of this run, which would replace it: the folder holds no state of a run. Pass "
                "another folder by --out, or move the file."
            )
        return
    try:
        extra = read_extra(folder.state)
    except StateConflict as error:
        raise StateConflict(f"{error} For a new run, pass another folder by --out.") from None
    if not {"contract", "input", "unwritten"} <= extra.keys():
        raise StateConflict(f"{folder.state} was not written by taciturn learn. Pass the folder of a run by --out.")
    if str(extra["contract"]) != contract:
        raise StateConflict(
            f"{folder.state}: the contract is not the one this run began with. Restore the contract; or start a new "
            "run in another folder by --out, which spends the budget again."
        )


def begin(folder: Folder, plan: Plan, contract: str, **settings: Any) -> Run:
    """Start a run in a folder that holds none; its state is committed before the first row is read."""
    check_folder(folder, contract, resuming=False)
    if folder.state.exists() and read_state(folder.state).t > 0:
        raise StateConflict(
            f"{folder.path} holds a run that has learnt from rows. Continue it with --resume; or start another run in "
            "another folder by --out, which spends the budget again."
        )
    if folder.models.size > 0:
        raise StateConflict(f"{folder.models} holds releases of another run. Pass another folder by --out.")
    folder.clear()
    run = Run(folder, Stream(plan), contract, SeenRows().checkpoint, **settings)
    run.commit()
    return run


def input_of(folder: Folder) -> Checkpoint:
    """Where the input of a run stood at its last commit."""
    return Checkpoint.from_bytes(read_extra(folder.state)["input"].tobytes())


def resume(folder: Folder, plan: Plan, contract: str, **settings: Any) -> Run:
    """Open the run of a folder at its last checkpoint; its rows are checked later, by `Unseen`."""
    check_folder(folder, contract, resuming=True)
    extra = read_extra(folder.state)
    if read_state(folder.state).simulated != (plan.private.seed is not None):
        raise StateConflict(
            "a simulated run is resumed with its --seed, and a private run without --seed. Change the option."
        )
    stream = Stream.load(plan, folder.state)
    unwritten = extra["unwritten"].tobytes()
    written = int(extra["written"])
    replay(folder.models, written, unwritten, int(extra["already"]))
    folder.clear()
    watched = {name.removeprefix(_WATCH): array for name, array in extra.items() if name.startswith(_WATCH)}
    run = Run(folder, stream, contract, input_of(folder), **settings, watch_state=watched)
    run.written = written + len(unwritten)
    run._committed = stream.t
    run.show(run)
    return run
