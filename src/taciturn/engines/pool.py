"""A pool of workers for one stream: they read, clip, round and add; this process adds the noise, decides and commits.

What travels is a *descriptor* of rows (`Task`: a file, a place in it, a number of rows) to a worker, and integers
(`Part`) back, never a row. `map` is any function that calls another on each of some tasks and returns the results in
order: that of a pool of processes (`processes`), of Ray's or Dask's, or Python's own.

**Claim.** The run publishes what one process would have published, byte for byte with a seed, whatever the number of
workers and whichever of them does what; and it is resumed by one process or by any number of them. *Proof.* Rounds are
positions of rows in the source, and so are the ends of tasks and of blocks; neither depends on workers or on time. A
part holds the integers of its rows, those of a block add up to what one process computes (`taciturn.block_statistics`),
and `Run.learn_sums` takes parts in the order of their rows. The checkpoint has the same chain of digests, because a
task begins where a block of the chain does. Noise, decision and the one transaction of a commit are those of
`taciturn.runs.run`: a process that is killed has published nothing that is not committed. ∎

Rows at the beginning are learnt here, one process: those of private stages (`taciturn.methods.staged`), those before a
place at which tasks can begin, and those of a schedule that publishes often at first, until there are 256 rows and more
between two releases.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from taciturn._util.threads import one_thread
from taciturn.contract.contract import Contract
from taciturn.core.private import Private
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, Unprovable, integer
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.stream.block_sums import Admission, BlockSums, as_sum
from taciturn.kernel.stream.hashed_rows import HashedRows, hash_rows
from taciturn.kernel.stream.loop import BlockAdder
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.schedule import Every
from taciturn.plan import LEAST_ROWS, Plan
from taciturn.readers.parquet import open_parquet
from taciturn.readers.rows import Batch, Position, open_ids, open_rows, row_positions
from taciturn.readers.source import BadRows, format_of
from taciturn.runs import ingest
from taciturn.runs.diagnostics import BadRowCount
from taciturn.runs.ingest import Ending, catch_signals
from taciturn.runs.resume import BLOCK, BlockDigest, Check, RowDigests, Users
from taciturn.runs.run import Run
from taciturn.streams.stored import StoredStream

ROWS = 16 * BLOCK
"""Rows of a task, about."""
LEAST = LEAST_ROWS
"""Rows between two releases, on average over a block of the chain, from which on rows are given to workers."""

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Calls a function on each of some tasks, anywhere, and returns the results in the order of the tasks."""


@dataclass(frozen=True)
class Task:
    """Rows for a worker: where they are, and how they are added up. It holds no row, and up to two secrets.

    Attributes
    ----------
    contract, source, format, bad_rows
        How rows are read, as in `open_rows`.
    start : Position
        The place of the first row.
    rows : int
        How many rows to read, at most.
    learner, point
        What `block_statistics` takes.
    cuts : tuple of int
        How many rows of the task lie before each release that is due in it.
    key : bytes, optional
        Secret key of the digests of rows; without it rows are not hashed.
    excluded : bytes, optional
        Rows that do not count, if the unit is a user. Secret.
    """

    contract: Contract
    source: str
    format: str
    bad_rows: BadRows
    start: Position
    rows: int
    learner: Learner
    point: Array | None
    cuts: tuple[int, ...]
    key: bytes | None = field(default=None, repr=False)
    compiled: bool = True
    excluded: bytes | None = field(default=None, repr=False)


class Part(NamedTuple):
    """What a worker returns: the bytes of sums of each block in its rows, digests of the rows, and how reading ended.

    Secret. `rows` are fewer than the task has if a bad row stopped it, which `error` tells, or if the source ended.
    """

    rows: int
    sums: tuple[bytes, ...]
    digests: tuple[BlockDigest, ...]
    bad: int
    size: int
    error: InvalidInput | None = None

    def __repr__(self) -> str:
        return f"Part({self.rows} rows, secrets not shown)"


def add_up(task: Task) -> Part:
    """Read the rows of a task, clip and round them, and add them up: what a worker does."""
    adder = BlockAdder(task.learner, task.point, task.compiled)
    digests = None if task.key is None else RowDigests(task.key)
    sums: list[bytes] = []
    current: BlockSums | None = None
    done = bad = size = 0
    ends = iter([*task.cuts, task.rows])
    until = next(ends)
    error = None
    rows = _rows_of(task)
    try:
        for batch in rows:
            start = 0
            while start < len(batch.y):
                end = min(len(batch.y), start + until - done)
                excluded = None if task.excluded is None else task.excluded[done : done + end - start]
                first = task.start.row + done
                part = adder(batch.X[start:end], batch.y[start:end], excluded=excluded, first=first)
                current = part if current is None else current + part
                done += end - start
                start = end
                if done == until:
                    sums.append(current.to_bytes())
                    current = None
                    until = next(ends, task.rows)
            if digests is not None:
                digests.add(batch.X, batch.y, batch.users)
            bad += 0 if batch.bad is None else int(batch.bad.sum())
            size = batch.size
    except InvalidInput as stopped:
        error = stopped.with_traceback(None)  # its frames would keep the rows in memory
    finally:
        rows.close()
    if current is not None:
        sums.append(current.to_bytes())
    blocks = () if digests is None else digests.take_all()
    return Part(done, tuple(sums), blocks, bad, size, error)


def blocks_of(parts: Iterable[Part]) -> list[BlockSums]:
    """The sums in what workers have returned, in order."""
    return [BlockSums.from_bytes(block) for part in parts for block in part.sums]


def _rows_of(task: Task) -> Generator[Batch]:
    """The batches of a task, and not a row more."""
    left = task.rows
    start = task.start if task.start.row or task.start.offset else None
    opened = open_rows(task.contract, task.source, bad_rows=task.bad_rows, format=task.format, start=start)
    with contextlib.closing(opened) as batches:
        for batch in batches:
            yield batch.head(left)
            left -= len(batch.y)
            if left <= 0:
                return


@dataclass(frozen=True)
class IdsTask:
    """Rows whose users' ids a worker hashes: those of a task, under a secret key, for so many partitions of users."""

    task: Task
    key: bytes = field(repr=False)
    partitions: int


def hash_ids_of(task: IdsTask) -> HashedRows:
    """The first of two passes: hash the users' ids of a task's rows; no other column of CSV and Parquet is read."""
    return hash_rows(ids_of(task.task), task.key, task.partitions)


def admit_by(map: Map, stream: StoredStream, tasks: Sequence[Task]) -> Admission:
    """Decide which rows of the next tasks count, by workers: ids are hashed in one job, and decided on in another."""
    partitions = min(len(tasks), max(1, sum(task.rows for task in tasks) // ROWS))
    key = stream.user_key
    return stream.admit_hashed(list(map(hash_ids_of, [IdsTask(task, key, partitions) for task in tasks])), map)


def without_excluded(tasks: Sequence[Task], admission: Admission) -> list[Task]:
    """The tasks, with the rows that do not count."""
    ends = np.cumsum([task.rows for task in tasks]).tolist()
    return [
        replace(task, excluded=admission.to_bytes(first, end))
        for task, (first, end) in zip(tasks, pairwise([0, *ends]), strict=True)
    ]


def ids_of(task: Task) -> Users:
    """The users' ids of the rows of a task."""
    start = task.start if task.start.row or task.start.offset else None
    found: list[Any] = []
    left = task.rows
    with contextlib.closing(open_ids(task.contract, task.source, format=task.format, start=start)) as read:
        for ids in read:
            found.append(ids[:left])
            left -= len(ids)
            if left <= 0:
                break
    return np.concatenate([np.empty(0, dtype=object), *found])


@contextlib.contextmanager
def processes(workers: int) -> Iterator[Map]:
    """A pool of processes on this machine, as a `map`; they end with the block, and with this process.

    >>> with processes(1) as map:
    ...     list(map(abs, [-1, 2]))
    [1, 2]
    """
    workers = integer("workers", workers)
    with one_thread():  # a core each
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, context, _begin_worker)
        list(pool.map(abs, range(workers)))  # starts them
    try:
        yield pool.map
    except BrokenProcessPool:
        raise StateConflict(
            "a worker process ended before its work did: it was killed, or it ran out of memory. Every published model "
            "is committed; run the same command with --resume, perhaps with fewer --workers."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """Leave interrupts to the process that commits, and end with it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def check_plan(plan: Plan) -> None:
    """Reject a plan whose rows cannot be added up by workers, or that publishes so often that they are of no use.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem
    >>> from taciturn.plan import recommend
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2)
    >>> check_plan(recommend(problem, Privacy(1.0, 1e-6), horizon=100_000))
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: with workers, private FTRL learns each block by one job at the point ...
    """
    private = plan.stream
    try:
        learner = as_sum(private.learner)
    except Unprovable as error:
        reason = str(error).split(". ", maxsplit=1)[0]
        raise Unprovable(f"{reason}. Leave out --workers, or set a method of sums.") from None
    schedule = private.schedule
    if learner.uses_point:
        fits = isinstance(schedule, Every) and schedule.rounds % BLOCK == 0 and not private.stages
        if not fits:
            state = "state ranges, and" if private.stages else "state"
            raise InvalidInput(
                "with workers, private FTRL learns each block by one job at the point released last, so that blocks "
                f"are long and of equal length: {state} release = {BLOCK} or another multiple of {BLOCK}, up to a "
                "hundredth of the horizon; or leave out --workers, which is faster where models are published often."
            )
    elif isinstance(schedule, Every) and schedule.rounds < LEAST:
        raise InvalidInput(
            f"this contract publishes every {schedule.rounds} rows, and workers would hand over sums for each release: "
            f"one process is faster. State release = {BLOCK}, or leave out --workers."
        )


def first_row(private: Private, t: int) -> int:
    """The row from which on workers can learn, in a stream that has learnt t rows: where a block of the chain begins.

    >>> from taciturn import L2Ball, Privacy, Problem, Squared, geometric, pqftl
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0)
    >>> first_row(pqftl(problem, Privacy(1.0, 1e-6), horizon=10**6, schedule=geometric(1.1)), 100)
    4096
    """
    row = -(-max(t, private.rows_of_stages) // BLOCK) * BLOCK
    horizon = private.timetable.horizon
    while horizon is None or row < horizon:
        first, last = private.timetable.block_of(np.array([row + 1, row + BLOCK]))
        if last - first <= BLOCK // LEAST:
            break
        row += BLOCK
    return row


def learn_from(
    run: Run,
    rows: Iterator[Batch],
    contract: Contract,
    source: str | os.PathLike[str],
    map: Map,
    workers: int,
    *,
    format: str | None = None,
    bad_rows: BadRows = "stop",
    tell: Callable[[Run, int], None] = lambda run, size: None,
    check: Check = "all",
    counted: BadRowCount | None = None,
) -> Ending:
    """Learn from a file by workers, and commit; everything that was learnt is committed when this returns.

    Parameters
    ----------
    run : Run
        A new or resumed run, whose plan `check_plan` accepts.
    rows : iterator of Batch
        The input from its beginning, or from the place of the run's checkpoint, for the rows that are learnt here. It
        is closed after them, if it can be.
    contract : Contract
        What the run learns.
    source : str or path
        A plain CSV or JSON lines file, or a Parquet file, which every worker can read by this name.
    map : callable
        Calls a function on each of some tasks, as that of `processes` does.
    workers : int
        How many tasks it works on at once; tasks are cut for that many.
    format, bad_rows, tell, check, counted
        As in `taciturn.readers.rows.open_rows` and `taciturn.runs.ingest.learn_from`.
    """
    plan = run.stream.plan
    check_plan(plan)
    kind = check_source(source, format)
    head = first_row(plan.stream, run.committed)
    ending = ingest.learn_from(run, _until(rows, head), tell, check, counted)
    if ending.why != "end" or run.stream.t < head or run.left == 0:
        return ending
    work = _Work(run, contract, os.fspath(source), kind, bad_rows, map, integer("workers", workers))
    with catch_signals() as interrupts, contextlib.closing(work.parts(head)) as parts:
        try:
            for part in parts:
                if counted is not None:
                    counted.count(part.rows, part.bad)
                tell(run, part.size)
                if interrupts.signal is not None:
                    break
            ending = Ending("interrupted" if interrupts.signal else "end", interrupts.exit_status)
        except (InvalidInput, BudgetExhausted) as error:
            ending = Ending("rejected", 2, error.with_traceback(None))  # its frames would keep the parts in memory
        run.commit()
    return ending


def check_source(source: str | os.PathLike[str], format: str | None = None) -> str:
    """The format of a source that workers can read from any place; others are rejected."""
    name = os.fspath(source)
    if name == "-" or not os.path.isfile(name):
        raise InvalidInput("workers read from any place in a file, and the input is none. Pass a file, not a pipe.")
    if name.endswith(".gz"):
        raise InvalidInput("workers cannot begin in the middle of a gzip file. Decompress it, or write Parquet.")
    return format_of(name, format)


def _until(rows: Iterator[Batch], last: int) -> Iterator[Batch]:
    """The batches up to row `last` of the source."""
    try:
        for batch in rows if last > 0 else ():
            left = last - batch.start.row
            if left > 0:
                yield batch.head(left)
            if left <= len(batch.y):
                return
    finally:
        ingest.close_source(rows)


@dataclass
class _Work:
    """The tasks of one call, in their order, and what becomes of their parts."""

    run: Run
    contract: Contract
    source: str
    format: str
    bad_rows: BadRows
    map: Map
    workers: int

    goes_on: bool = False  # the source has rows beyond the horizon

    def parts(self, head: int) -> Generator[Part]:
        """Learn the parts from row `head` on, and yield each; ends with the source, or with an error."""
        private = self._private
        with contextlib.closing(self._spans(head)) as spans:
            if isinstance(private.unit, User):
                yield from self._with_users(spans)
            elif private.learner.uses_point:
                yield from self._block_by_block(spans)
            else:
                tasks = (self._task(*span) for span in spans)
                for task, part in self._mapped(tasks, 2 * self.workers):
                    self._learn(task.start, [part])
                    yield part
        if self.goes_on:
            raise ingest.past_the_horizon(self.run)

    @property
    def _private(self) -> Private:
        return self.run.stream.plan.stream

    def _block_by_block(self, spans: Iterator[Span]) -> Iterator[Part]:
        """A job for each block between two releases, at the point that the last job released."""
        for block in self._by_block(spans):
            tasks = [self._task(*span) for span in block]
            for task, part in zip(tasks, self.map(add_up, tasks), strict=True):
                self._learn(task.start, [part])
                yield part

    def _by_block(self, spans: Iterator[Span]) -> Iterator[list[Span]]:
        schedule = self._private.schedule
        assert isinstance(schedule, Every)
        block: list[Span] = []
        for start, end in spans:
            block.append((start, end))
            if end % schedule.rounds == 0:
                yield block
                block = []
        if block:
            yield block

    def _with_users(self, spans: Iterator[Span]) -> Iterator[Part]:
        """Ids first; which rows count is decided by partitions of the users, and the rows are read again."""
        at_points = self._private.learner.uses_point
        for group in self._by_block(spans) if at_points else _grouped(spans, 2 * self.workers):
            tasks = [self._task(*span) for span in group]
            admission = admit_by(self.map, self.run.stream, tasks)
            parts: list[Part] = []
            for part in self.map(add_up, without_excluded(tasks, admission)):
                parts.append(part)
                if part.error is not None:
                    break
            if sum(part.rows for part in parts) < admission.rows:
                # A bad row stops here; the rows before it are decided on as they were.
                learnt = [replace(task, rows=part.rows) for task, part in zip(tasks, parts, strict=False)]
                admission = admit_by(self.map, self.run.stream, learnt)
            self._learn(tasks[0].start, parts, admission)
            yield from parts

    def _learn(self, start: Position, parts: list[Part], admission: Admission | None = None) -> None:
        self.run.seen.begin_batch(start)
        self.run.learn_sums(blocks_of(parts), [block for part in parts for block in part.digests], admission)
        for part in parts:
            if part.error is not None:
                raise part.error

    def _mapped(self, tasks: Iterator[Task], size: int) -> Iterator[tuple[Task, Part]]:
        """Tasks and their parts, in order; the next tasks are given to workers before these are waited for."""
        window = list(islice(tasks, size))
        results = iter(self.map(add_up, window))
        while window:
            following = list(islice(tasks, size))
            ahead = iter(self.map(add_up, following) if following else ())
            for task in window:
                yield task, next(results)
            window, results = following, ahead

    def _task(self, start: Position, end: int) -> Task:
        learner, point = self.run.stream.next_learner()
        timetable = self._private.timetable
        block = int(timetable.block_of(np.array([start.row + 1]))[0])
        return Task(
            self.contract,
            self.source,
            self.format,
            self.bad_rows,
            start,
            end - start.row,
            learner,
            point if learner.uses_point else None,
            tuple((timetable.following(block - 1, end) - start.row).tolist()),
            self.run.seen.key,
            self._private.compiled,
        )

    def _spans(self, head: int) -> Generator[Span]:
        """The rows of tasks, up to the horizon."""
        horizon = self._private.timetable.horizon
        with contextlib.closing(self._marks(head)) as marks:
            for start, end in pairwise(marks):
                if horizon is not None and end.row > horizon:
                    self.goes_on = True
                    if start.row < horizon:
                        yield start, horizon
                    return
                yield start, end.row

    def _marks(self, head: int) -> Generator[Position]:
        """The places from which on tasks begin, `head` the first, and the end of the source."""
        wanted = self._wanted(head)
        place = self.run.input.place_in(self.format)
        last = None
        found = row_positions(self.contract, self.source, BLOCK, format=self.format, start=place)
        with contextlib.closing(found) as positions:
            for position in positions:
                if last is not None and (last.row == head or (last.row > head and wanted(last.row))):
                    yield last
                last = position
        if last is not None and last.row >= head:
            yield last

    def _wanted(self, head: int) -> Callable[[int], bool]:
        """At which multiples of a block of the chain tasks are cut; never by what is in the rows."""
        schedule = self._private.schedule
        if self._private.learner.uses_point:
            assert isinstance(schedule, Every)
            rounds, size = schedule.rounds, _rounded_up(schedule.rounds / self.workers)
            return lambda row: row % rounds % size == 0
        if self.format != "parquet":
            return lambda row: row % ROWS == 0
        return self._in_groups(head).__contains__

    def _in_groups(self, head: int) -> frozenset[int]:
        """Ends of groups of rows, which are read as a whole, and places inside of long ones."""
        with open_parquet(self.source) as file:
            counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        marks, first = [head], 0
        for count in counts:
            last = first + count
            size = max(ROWS, _rounded_up(count / self.workers))
            marks += [row for row in range(_rounded_up(first), last, size) if row - marks[-1] >= ROWS]
            if _rounded_up(last) - marks[-1] >= ROWS:
                marks.append(_rounded_up(last))
            first = last
        return frozenset(marks)


Span = tuple[Position, int]
"""Where a task begins, and the number of rows before its end."""


def _rounded_up(row: float) -> int:
    """The next row at which a block of the chain begins."""
    return math.ceil(row / BLOCK) * BLOCK


def _grouped(items: Iterator[Span], size: int) -> Iterator[list[Span]]:
    while group := list(islice(items, size)):
        yield group
