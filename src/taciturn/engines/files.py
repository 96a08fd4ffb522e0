"""A stream whose source is a growing set of files, which an engine hands over in numbered batches.

**Order.** For each batch (`FileStream.learn`):

1. load the stream from the store; a batch that it has learnt is left out, and one that cannot be the next is rejected;
2. workers count the rows of the files (`describe`), and read, clip, round and add them (`pool.add_up`); here integers
   are added, noise is drawn, and points are decided. All of it stays in memory;
3. one transaction of the store commits the state, what is spent, the releases, and the engine's name of the query, the
   number of the batch and the files with their numbers of rows. Only then is anything shown.

**Claim.** However often a batch is handed over, whichever step fails, and however many drivers there are: every file is
learnt once, no round is released twice with different noise, and what the store records as spent covers all that was
shown. *Proof.* Steps 1 and 2 change nothing. Step 3 is `Store.commit`, which succeeds for one successor of a state; its
number of the batch is the one after that of its predecessor. So for each number one batch is learnt, once; of two
drivers one is rejected, and has shown nothing. Files of the batch that were learnt before are noticed by their names. ∎
An engine's own checkpoint is advisory: if it is older than the store, it hands over batches again, which are left out.

Rounds are positions of rows in the sequence of all files, in the order in which they were learnt, and not batches: how
many files are in a batch changes nothing that is published. The rows of a block that is not complete wait in the state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import numpy as np

from taciturn.accounting.ledger import Ledger
from taciturn.contract.contract import Contract
from taciturn.core.private import Private
from taciturn.engines.pool import ROWS, Map, Part, Task, add_up, admit_by, blocks_of, without_excluded
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.stream.block_sums import as_sum
from taciturn.plan import Plan
from taciturn.readers.parquet import open_parquet
from taciturn.readers.rows import Position, row_positions
from taciturn.readers.source import BadRows, format_of
from taciturn.store import Chunk, Store
from taciturn.streams.stored import StoredStream

FORMATS = ("parquet", "csv")
"""What files may be: formats of which workers can read any part."""


@dataclass(frozen=True)
class Learnt:
    """What a stream knows of its source: the query, its last batch, and the files with their rows, in order. Secret.

    >>> made = Learnt("query", 3, (("a.parquet", 100),))
    >>> Learnt.from_bytes(made.to_bytes()) == made
    True
    """

    query: str | None = None
    batch: int = -1
    files: tuple[tuple[str, int], ...] = ()
    earlier: int = 0  # how many of them were learnt by earlier queries

    def to_bytes(self) -> bytes:
        """As JSON."""
        content = {"query": self.query, "batch": self.batch, "files": self.files, "earlier": self.earlier}
        return json.dumps(content).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Learnt:
        """Read what `to_bytes` wrote."""
        content = json.loads(data)
        files = tuple((str(name), int(rows)) for name, rows in content["files"])
        return cls(content["query"], content["batch"], files, content["earlier"])


def describe(task: Task) -> tuple[Position, ...]:
    """Where parts of a file begin, about `pool.ROWS` rows each, and where it ends: from a footer, or by one pass."""
    places = tuple(row_positions(task.contract, task.source, ROWS, format=task.format))
    if task.format != "parquet":
        return places
    with open_parquet(task.source) as file:
        counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    ends = np.cumsum([0, *counts]).tolist()
    begins = [0]
    for end in ends[1:-1]:  # a group is read as a whole
        if end - begins[-1] >= ROWS:
            begins.append(end)
    return tuple(Position(row, row + 1, 0) for row in dict.fromkeys([*begins, ends[-1]]))


@dataclass
class FileStream:
    r"""A stream in a store that learns files, batch by batch, by workers.

    Parameters
    ----------
    store : Store
        Where the stream is committed.
    contract : Contract
        What is learnt.
    map : callable
        Calls a function on each of some tasks, anywhere, and returns the results in order.
    name : str
        Name of the stream in the store.
    folder : str or path
        The folder of all files; names of files are relative to it.
    ledger : Ledger, optional
        Where the cost of a new stream is reserved.
    bad_rows : {"stop", "zero"}
        With "stop", a bad row rejects its batch, of which nothing is learnt.
    seed : int, optional
        For simulations.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> learning = {"loss": "squared", "horizon": 8, "release": 4}
    >>> columns = {"x": {"range": [0, 4]}}
    >>> settings = {"privacy": {"epsilon": 1}, "target": target, "learning": learning, "columns": columns}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = (Path(folder) / name).write_text("x,y\n1,2\n4,0\n2,1\n")
    ...     stream = FileStream(Store(f"{folder}/stream.db"), contract_of(settings), map, folder=folder, seed=1)
    ...     [len(stream.learn("query", batch, [name])) for batch, name in ((0, "a.csv"), (1, "b.csv"), (1, "b.csv"))]
    [0, 1, 0]
    """

    store: Store
    contract: Contract
    map: Map
    name: str = "stream"
    folder: str | os.PathLike[str] = "."
    ledger: Ledger | None = None
    bad_rows: BadRows = "stop"
    seed: int | None = None
    show: Callable[[Chunk], None] = lambda chunk: None

    def __post_init__(self) -> None:
        self.plan = self.contract.plan(on_bad="zero", seed=self.seed)
        check_plan(self.plan)
        if self.name in self.store.names():
            saved = self.store.load(self.name)
        else:
            about, start = {"files": self.contract.digest}, Learnt().to_bytes()
            made = StoredStream.create(self.store, self.name, self.plan, about=about, input=start, ledger=self.ledger)
            saved = made.saved
        if saved.about.get("files") != self.contract.digest:
            raise StateConflict(
                f"{self.name} in {self.store.address} is not a stream of files under this contract. Restore the "
                "contract, or choose another name, which spends the budget again."
            )

    @property
    def _private(self) -> Private:
        return self.plan.stream

    def learnt(self) -> Learnt:
        """What the store knows of the source. Secret."""
        return Learnt.from_bytes(self.store.load(self.name).input)

    def continue_with(self, query: str) -> None:
        """Let a new query go on, whose batches begin at 0: files that were learnt before are left out of them."""
        stream = self._open()
        known = Learnt.from_bytes(stream.saved.input)
        if known.query in (None, query):
            return
        stream.commit(input=replace(known, query=query, batch=-1, earlier=len(known.files)).to_bytes())

    def _open(self) -> StoredStream:
        """The stream as its last commit left it: what a batch that failed has learnt is not in it."""
        return StoredStream(self.store, self.plan, *self.store.load_with_layers(self.name))

    def learn(self, query: str, batch: int, files: Sequence[str]) -> Sequence[Any]:
        """Learn the files of a batch, in this order, and commit; the releases. Nothing, if it was learnt before."""
        stream = self._open()
        known = Learnt.from_bytes(stream.saved.input)
        if not self._is_next(known, query, batch):
            return ()
        files = [self._in_folder(name) for name in files]
        files = [name for name in files if name not in dict(known.files[: known.earlier])]
        twice = sorted({name for name, _ in known.files} & set(files))
        if twice or len(set(files)) < len(files):
            which = twice[0] if twice else "a file"
            raise StateConflict(
                f"{which} was handed over a second time, in batch {batch}: its rows would be counted twice. Write new "
                "rows to a new file."
            )
        before = stream.saved.position[2]
        rows, releases, beyond = self._through(stream, files)
        stream.commit(input=replace(known, query=query, batch=batch, files=(*known.files, *rows)).to_bytes())
        for chunk in stream.read(before):
            self.show(chunk)
        if beyond:
            raise BudgetExhausted(
                f"the files have more rows than the {stream.t:,} of the contract's horizon, for which the noise was "
                "planned. All rows up to the horizon were learnt; a longer stream needs a new contract and a new name, "
                "which spends the budget again."
            )
        return releases

    def _in_folder(self, name: str) -> str:
        """A name relative to the folder, in one spelling; `..` stays, as its meaning depends on links."""
        folder = PurePath(os.path.abspath(self.folder))
        path = folder / name
        return str(path.relative_to(folder) if path.is_relative_to(folder) else path)

    def _is_next(self, known: Learnt, query: str, batch: int) -> bool:
        """Whether a batch is to be learnt; an error, if it can be neither the next one nor an earlier one."""
        if known.query not in (None, query):
            raise StateConflict(
                f"{self.name} has learnt {len(known.files):,} files of another query, whose checkpoint was deleted or "
                "belongs to another job. Restore the checkpoint; if it is lost, call continue_with(query), or pass "
                "new_query=True: files that were learnt are left out."
            )
        if batch > known.batch + 1:
            raise StateConflict(
                f"batch {known.batch + 1} of this query was never learnt, and this is batch {batch}: the store is "
                "older than the checkpoint, or of another stream. Restore the newest store, or delete the checkpoint "
                "and choose another name."
            )
        return batch == known.batch + 1

    def _through(self, stream: StoredStream, files: Sequence[str]) -> tuple[list[tuple[str, int]], Sequence[Any], bool]:
        """Files with their rows, the releases of all of them, and whether there are rows past the horizon."""
        made = [self._task(stream, name, Position(0, 1, 0), 0) for name in files]
        places = list(self.map(describe, made))
        rows = [(name, int(marks[-1].row)) for name, marks in zip(files, places, strict=True)]
        left = sum(count for _, count in rows) if stream.left is None else stream.left
        spans = _cut(list(zip(files, places, strict=True)), left)
        releases: Any = None
        at = 0
        while at < len(spans):
            end = self._segment_end(stream)
            segment, rest = _up_to(spans[at:], None if end is None else end - stream.t)
            spans[at:] = [*segment, *rest]
            at += len(segment)
            made_of = self._learn(stream, segment)
            releases = made_of if releases is None or not len(releases) else releases + made_of
        return rows, () if releases is None else releases, sum(count for _, count in rows) > left

    def _segment_end(self, stream: StoredStream) -> int | None:
        """The round up to which contributions do not depend on what is released before it; None if all of them."""
        private = self._private
        if stream.t < private.rows_of_stages:
            return min(border for border in private.borders if border > stream.t)
        if private.learner.uses_point:
            return private.timetable.due(stream.k + 1)
        return None

    def _learn(self, stream: StoredStream, spans: Sequence[Span]) -> Any:
        """A job: the rows of a segment, by workers."""
        tasks, t = [], stream.t
        for span in spans:
            tasks.append(self._task(stream, span.file, span.start, span.rows, t))
            t += span.rows
        admission = None
        if isinstance(self._private.unit, User):
            admission = admit_by(self.map, stream, tasks)
            tasks = without_excluded(tasks, admission)
        parts: list[Part] = list(self.map(add_up, tasks))
        for task, part in zip(tasks, parts, strict=True):
            if part.error is not None:
                raise part.error
            if part.rows != task.rows:
                raise StateConflict(f"{task.source} has become shorter while it was read. Files must not change.")
        return stream.prepare_sums(blocks_of(parts), admission)

    def _task(self, stream: StoredStream, name: str, start: Position, rows: int, t: int = 0) -> Task:
        learner, point = stream.next_learner()
        path = os.path.join(self.folder, name)
        kind = format_of(path)
        if kind not in FORMATS or path.endswith(".gz"):
            raise InvalidInput(f"{name} is no source for workers, which are {' and '.join(FORMATS)} files. Convert it.")
        private = self._private
        if t < private.rows_of_stages:
            cuts: tuple[int, ...] = ()
        else:
            block = int(private.timetable.block_of(np.array([t + 1]))[0])
            cuts = tuple((private.timetable.following(block - 1, t + rows) - t).tolist()) if rows else ()
        used = point if learner.uses_point else None
        return Task(
            self.contract, path, kind, self.bad_rows, start, rows, learner, used, cuts, compiled=private.compiled
        )


@dataclass(frozen=True)
class Span:
    """So many rows of a file, from a place on."""

    file: str
    start: Position
    rows: int


def _cut(files: Sequence[tuple[str, tuple[Position, ...]]], most: int) -> list[Span]:
    """Parts of these files, of `most` rows together."""
    spans = []
    for name, places in files:
        for start, end in pairwise(places):
            rows = min(end.row - start.row, most)
            most -= rows
            if rows:
                spans.append(Span(name, start, rows))
    return spans


def _up_to(spans: Sequence[Span], rows: int | None) -> tuple[list[Span], list[Span]]:
    """The spans of the first rows, and the rest; one that is cut is read again from its start in a later job."""
    if rows is None:
        return list(spans), []
    first: list[Span] = []
    for index, span in enumerate(spans):
        if rows == 0:
            return first, list(spans[index:])
        if span.rows > rows:
            later = replace(span, start=_after(span, rows), rows=span.rows - rows)
            return [*first, replace(span, rows=rows)], [later, *spans[index + 1 :]]
        first.append(span)
        rows -= span.rows
    return first, []


def _after(span: Span, rows: int) -> Position:
    row = span.start.row + rows
    if not span.file.endswith((".parquet", ".pq")):
        raise InvalidInput("blocks of private FTRL, and stages, end within a file of CSV. Use Parquet, or PQFTL.")
    return Position(row, row + 1, 0)


def check_plan(plan: Plan) -> None:
    """Reject a plan whose rows cannot be added up."""
    as_sum(plan.stream.learner)
