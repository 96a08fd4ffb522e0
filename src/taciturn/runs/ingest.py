"""The loop of a run: learn from rows and commit, until the input ends, the horizon is reached or a signal arrives.

Rows are prefetched by a thread, so that the loop can commit, and react to signals, while the input pauses.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, Generic, Literal, TypeVar

from taciturn.errors import BudgetExhausted, InvalidInput, TaciturnError
from taciturn.kernel.arrays import Array
from taciturn.runs.diagnostics import BadRowCount
from taciturn.runs.resume import Check, Rows, Unseen, Users
from taciturn.runs.run import Run

_PATIENCE = 0.1  # seconds between two checks whether a commit is due, or a signal arrived


@dataclass(frozen=True)
class Ending:
    """The reason why learning ended.

    Attributes
    ----------
    why : {"running", "end", "interrupted", "rejected"}
        Learning goes on; the input ended; a signal arrived; or the next row was rejected: it is bad, or past the
        horizon.
    status : int
        Exit status.
    error : TaciturnError, optional
        The error of the rejected row.
    waiting : bool
        Whether the prefetching thread still waits for input.
    """

    why: Literal["running", "end", "interrupted", "rejected"]
    status: int = 0
    error: TaciturnError | None = None
    waiting: bool = False

    @property
    def by_a_row(self) -> bool:
        """Whether a bad row ended the run: then the error, and the number of rows, reveal something about that row."""
        return isinstance(self.error, InvalidInput)


def learn_from(
    run: Run,
    rows: Iterator[Rows],
    tell: Callable[[Run, int], None] = lambda run, size: None,
    check: Check = "all",
    bad_rows: BadRowCount | None = None,
) -> Ending:
    """Learn from the input, and commit; everything that was learnt is committed when this returns.

    Parameters
    ----------
    run : Run
        A new or resumed run; rows it has learnt from are skipped, after a check that they are the same.
    rows : iterator
        The input, from its beginning or from the place of the run's checkpoint. If it raises `InvalidInput`, the run
        ends there. It is closed when it is no longer read, if it can be.
    tell : callable
        Called after each block with the run and the number of bytes read.
    check : {"all", "window", "none"}
        Compare all rows that the run has learnt from, which needs the input from its beginning; those since the window
        of the checkpoint; or none: the first row is then taken for the next one, on the user's word.
    bad_rows : BadRowCount, optional
        Counts the bad rows of those that are learnt.
    """
    with catch_signals() as interrupts, Prefetch(rows) as source:
        try:
            _learn(run, source, Unseen(run, check), tell, interrupts, bad_rows)
            ending = Ending("interrupted" if interrupts.signal else "end", interrupts.exit_status)
        except (InvalidInput, BudgetExhausted) as error:
            ending = Ending("rejected", 2, error.with_traceback(None))  # its frames would keep the rows in memory
        run.commit()
    return Ending(ending.why, ending.status, ending.error, source.waiting)


def _learn(
    run: Run,
    source: Prefetch[Rows],
    unseen: Unseen,
    tell: Callable[[Run, int], None],
    interrupts: Interrupts,
    bad_rows: BadRowCount | None,
) -> None:
    while interrupts.signal is None:
        try:
            block = source.next(_PATIENCE)
        except StopIteration:
            return unseen.finish()
        if block is None:  # no input: do not delay a commit that is due
            run.commit_if_due()
            run.export()  # a report may be due
            continue
        X, y, users = unseen.of(block)
        if bad_rows is not None:
            bad_rows.add(y if run.left is None else y[: run.left])
        _learn_within(run, X, y, users)
        tell(run, block.size)


def _learn_within(run: Run, X: Array, y: Array, users: Users) -> None:
    """Learn from these rows up to the horizon; reject the rows after it."""
    left = len(y) if run.left is None else run.left
    if left and len(y):
        run.learn(X[:left], y[:left], None if users is None else users[:left])
    if left < len(y):
        raise past_the_horizon(run)
    if run.left == 0:
        run.commit()  # no more rows can be learnt: publish now, whether or not the input ends here


def past_the_horizon(run: Run) -> BudgetExhausted:
    """The error of an input that goes on where a run must end."""
    return BudgetExhausted(
        f"the input has more rows than the {run.stream.t:,} of the contract's horizon, for which the noise was "
        "planned. All rows up to the horizon were learnt; a longer stream needs a new contract and a new run, "
        "which spends the budget again."
    )


T = TypeVar("T")


class Prefetch(Generic[T]):
    """The items of an iterator, fetched in advance by a thread, at most two of them; the thread closes a generator.

    Examples
    --------
    >>> with Prefetch(iter("ab")) as letters:
    ...     [letters.next(timeout=9.0) for _ in range(2)]
    ['a', 'b']
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._ready: queue.Queue[tuple[str, T | None, BaseException | None]] = queue.Queue(maxsize=1)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._fetch, daemon=True)

    def __enter__(self) -> Prefetch[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        with contextlib.suppress(queue.Empty):
            self._ready.get_nowait()  # make room, so that the thread does not wait
        self._thread.join(timeout=0.3)

    @property
    def waiting(self) -> bool:
        """Whether the thread still waits for input; such a thread cannot be stopped."""
        return self._thread.is_alive()

    def next(self, timeout: float) -> T | None:
        """The next item, or None after `timeout` seconds; StopIteration, or the iterator's error, at its end."""
        try:
            kind, item, error = self._ready.get(timeout=timeout)
        except queue.Empty:
            return None
        if kind == "item":
            return item
        self._ready.put((kind, item, error))  # so that the next call raises it again
        raise error if error is not None else StopIteration

    def _fetch(self) -> None:
        try:
            for item in self._items:
                if not self._put(("item", item, None)):
                    return
            self._put(("end", None, None))
        except BaseException as error:
            self._put(("end", None, error))
        finally:
            close_source(self._items)

    def _put(self, entry: tuple[str, T | None, BaseException | None]) -> bool:
        """Put an entry into the queue; False if the consumer has left."""
        while not self._closed.is_set():
            try:
                self._ready.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False


def close_source(items: Iterator[Any]) -> None:
    """Close a generator, and with it the file that it reads; one that another thread is in is closed by that thread."""
    with contextlib.suppress(ValueError):  # "generator already executing"
        getattr(items, "close", lambda: None)()


class Interrupts:
    """A handler that remembers the signal that arrived, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal; a second one of the same kind has its default effect."""
        self.signal = signal.Signals(number)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    @property
    def exit_status(self) -> int:
        """128 plus the number of the signal, as in shells; 0 without a signal."""
        return 128 + self.signal if self.signal is not None else 0


@contextlib.contextmanager
def catch_signals() -> Iterator[Interrupts]:
    """Catch SIGINT and SIGTERM during the block; outside of the main thread no signal can be caught.

    >>> with catch_signals() as interrupts:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     interrupts.signal.name, interrupts.exit_status
    ('SIGTERM', 143)
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
