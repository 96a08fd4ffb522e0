"""One run in one folder: what it learns is committed first and shown afterwards.

**Order.** A commit, by `Run.commit`, is these steps, each on the disk before the next begins:

1. learn a block of rows; its releases stay in memory;
2. write one file, `state.npz`: the state after the block with what it has spent, the lines of `models.jsonl` that are
   not written yet and the place where they go, the model, and the key and digest of all rows so far. It is written
   extra the old one, synced, renamed over it, and the folder is synced;
3. write those lines to that place of `models.jsonl`, and sync;
4. replace `model.json`.

**Claim.** Whenever the process, or the machine, stops: no round is shown twice with different noise; what the state
says is spent is at least what everything shown has cost; and a resumed run counts every row once.

*Proof.* Renaming is atomic, so `state.npz` is at every moment that of the last commit that finished step 2; call it S,
after t rows and k releases. (i) *Shown implies committed.* Lines are written, and the model replaced, in steps 3 and 4
only, after step 2 of the same commit; so every line shown has a number of at most k, and S has spent their cost, for
spending never falls. (ii) *Shown once.* A line of S is text in S. A resumed run writes that text, at its place, and
no other: `bring_up` refuses a file in which anything else stands there. Releases after the k-th that were made and
lost were never written (i); that their rounds are made again, with fresh noise, shows nobody two of the same round.
(iii) *Counted once.* S holds t, and the digest of the t rows it has seen. A resumed run hashes the first t rows of its
input by the same key, refuses if the digests differ, and learns from the next row on. ∎

The proof takes S to be the newest state. One restored from a backup is older: if it has made fewer releases than
`models.jsonl` shows, it is refused; if `models.jsonl` is restored or lost as well, nothing in the folder can tell. Two
processes in one folder are kept apart by a lock. Files are read and written by a descriptor of the locked folder, and
not by its path: a folder that is moved while a run learns in it takes the run along, and another run in a new folder of
the same name shares no file with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.core.state import new_name, read_extra, read_state
from taciturn.errors import InvalidInput, StateConflict
from taciturn.estimators.stream import Stream
from taciturn.plan import Plan
from taciturn.runs.files import Folder, write_at
from taciturn.runs.journal import bring_up, lines_of
from taciturn.runs.resume import RowDigest

_MOST_TEXT = 2**23  # bytes of lines that wait for a commit
_MOST_ROWS = 2**13  # rows after which a commit may be due
_WATCHED_ROWS = 2**8  # rows that one model is judged by
_MOST_ENTRIES = 2**19  # of points that are released between two


class Watch(Protocol):
    """Looks at exact rows; what it keeps is committed with the secret state."""

    def __call__(self, X: Array, y: Array, model: Array) -> None:
        """The next rows, and the model in use before them."""

    def arrays(self) -> Arrays:
        """What it keeps."""


@dataclass
class Run:
    """A stream, the folder it is kept in, and what was learnt and not committed yet.

    Parameters
    ----------
    folder : Folder
        Held by `locked` for as long as this lives.
    stream : Stream
        What learns.
    contract : str
        Digest of what was declared; a run goes on under the same.
    seen : RowDigest
        Of the rows learnt from.
    show : callable
        Publishes the model, after each commit.
    seconds : float
        Least time between two commits, while rows come fast; ten times as long as one takes, if that is more, so that
        a slow disk does not take most of the time. 0 commits after every block.

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
    seen: RowDigest
    show: Callable[[Run], None] = lambda run: None
    seconds: float = 1.0
    written: int = 0
    aside: Arrays = field(default_factory=dict)
    _unwritten: list[bytes] = field(default_factory=list)
    _committed: int = -1
    _last: float = field(default_factory=time.monotonic)
    _patience: float = 0.0

    @property
    def left(self) -> int | None:
        """Rounds before the horizon; None if there is none."""
        horizon = self.stream.plan.private.timetable.horizon
        return None if horizon is None else horizon - self.stream.t

    def learn(self, X: Array, y: Array, watch: Watch | None = None) -> None:
        """Learn from rows, and commit where that is due; `watch` is shown each part and the model before it."""
        start = 0
        while start < len(y):
            end = start + self._stride(min(len(y) - start, _MOST_ROWS if watch is None else _WATCHED_ROWS))
            self._learn(X[start:end], y[start:end], watch)
            start = end
            self.commit_if_due()

    def _stride(self, rows: int) -> int:
        """How many of these rows to learn at once: not so many that they release too much."""
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
            self.aside = watch.arrays()

    def commit_if_due(self) -> None:
        """Commit if the last time was long enough ago, or much waits."""
        wait = max(self.seconds, self._patience) if self.seconds else 0.0
        if time.monotonic() - self._last >= wait or sum(map(len, self._unwritten)) > _MOST_TEXT:
            self.commit()

    def commit(self) -> None:
        """Steps 2, 3 and 4 of the order above; nothing, if nothing was learnt since."""
        if self._committed == self.stream.t:
            return
        began, lines = time.monotonic(), b"".join(self._unwritten)
        try:
            self.stream.dump(self.folder.state, self._beside(lines))
            self.folder.sync()
            if lines:
                write_at(self.folder.models, self.written, lines)
            self.show(self)
        except FileNotFoundError:
            raise StateConflict(
                f"{self.folder.path} was deleted while this run was learning in it, and nothing was shown after that. "
                "Restore it as it was and go on with --resume; a new run spends as much again."
            ) from None
        self.written, self._unwritten, self._committed = self.written + len(lines), [], self.stream.t
        self._last = time.monotonic()
        self._patience = 10.0 * (self._last - began)

    def _beside(self, lines: bytes) -> Arrays:
        texts: dict[str, Any] = {"contract": self.contract, "key": self.seen.key, "digest": self.seen.value}
        releases = lines.count(b"\n")
        numbers: Any = {"written": self.written, "already": self.stream.k - releases}
        return {
            **{f"aside.{name}": array for name, array in self.aside.items()},
            **{name: np.array(value) for name, value in {**texts, **numbers}.items()},
            "unwritten": np.frombuffer(lines, dtype=np.uint8),
        }


def check_folder(folder: Folder, contract: str, resuming: bool) -> None:
    """Reject a folder that holds no run of this contract, but files that a run would replace; or nothing to resume."""
    others = [file for file in (folder.models, folder.model, folder.report) if file.exists()]
    if not folder.state.exists():  # looked for last: a run that begins at this moment writes it first
        if resuming:
            raise InvalidInput(f"there is nothing to resume in {folder.path}. Leave out --resume to begin.")
        if others:
            raise StateConflict(
                f"{others[0]} is not of this run, which would replace it: the folder holds no state of a run. Name "
                "another folder by --out, or move the file away."
            )
        return
    try:
        extra = read_extra(folder.state)
    except StateConflict as error:
        raise StateConflict(f"{error} A new run needs another folder, by --out.") from None
    if not {"contract", "key", "unwritten"} <= extra.keys():
        raise StateConflict(f"{folder.state} was not written by taciturn learn. Name the folder of a run by --out.")
    if str(extra["contract"]) != contract:
        raise StateConflict(
            f"{folder.state}: the contract is not the one this run began with. Put it back as it was; or begin a new "
            "run, which spends as much again, in another folder, by --out."
        )


def begin(folder: Folder, plan: Plan, contract: str, **settings: Any) -> Run:
    """A new stream in a folder that holds none; its state is committed before any row is read."""
    check_folder(folder, contract, resuming=False)
    if folder.state.exists() and read_state(folder.state).t > 0:
        raise StateConflict(
            f"{folder.path} holds a run that learnt already. Go on with --resume; or begin another, which spends as "
            "much again, in another folder, by --out."
        )
    if folder.models.size > 0:
        raise StateConflict(f"{folder.models} holds releases of another run. Name another folder by --out.")
    folder.clear()
    run = Run(folder, Stream(plan), contract, RowDigest(new_name()), **settings)
    run.commit()
    return run


def resume(folder: Folder, plan: Plan, contract: str, **settings: Any) -> Run:
    """The stream of a folder, where its last commit left it; its rows are still to be checked."""
    check_folder(folder, contract, resuming=True)
    extra = read_extra(folder.state)
    if read_state(folder.state).simulated != (plan.private.seed is not None):
        raise StateConflict("a simulation goes on with its own --seed, and a private run without one.")
    stream = Stream.load(plan, folder.state)
    unwritten, written = extra["unwritten"].tobytes(), int(extra["written"])
    bring_up(folder.models, written, unwritten, int(extra["already"]))
    folder.clear()
    aside = {name.removeprefix("aside."): array for name, array in extra.items() if name.startswith("aside.")}
    run = Run(folder, stream, contract, RowDigest(str(extra["key"])), **settings, aside=aside)
    run.written, run._committed = written + len(unwritten), stream.t
    run.show(run)
    return run
