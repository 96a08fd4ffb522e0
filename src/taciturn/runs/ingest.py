"""Rows in, commits out, until the input ends, the horizon is reached, or someone says stop."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Generic, Literal, Protocol, TypeVar

from taciturn._util.arrays import Array
from taciturn.errors import BudgetExhausted, InvalidInput, TaciturnError
from taciturn.runs.diagnostics import Diagnostics
from taciturn.runs.resume import Unseen
from taciturn.runs.run import Run

_PATIENCE = 0.1  # seconds between two looks at whether a commit is due, or a signal came


class Rows(Protocol):
    """What a block of rows is made of (`taciturn.readers.rows.Batch`)."""

    @property
    def X(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def size(self) -> int:
        """Bytes of the source that were read so far."""


@dataclass(frozen=True)
class Ending:
    """Why learning ended.

    Attributes
    ----------
    why : {"end", "interrupted", "refused"}
        The input ended; a signal came; or what came next was refused: a bad row, or one past the horizon.
    status : int
        For the shell.
    refusal : TaciturnError, optional
        The sentence.
    waiting : bool
        Whether a thread still waits for input.
    """

    why: Literal["end", "interrupted", "refused"]
    status: int = 0
    refusal: TaciturnError | None = None
    waiting: bool = False

    @property
    def by_a_row(self) -> bool:
        """Whether a row decided where it ended: then the refusal speaks of that row, and so does the end."""
        return isinstance(self.refusal, InvalidInput)


def learn_from(
    run: Run,
    rows: Iterator[Rows],
    diagnostics: Diagnostics | None = None,
    tell: Callable[[Run, int], None] = lambda run, size: None,
) -> Ending:
    """Learn from what comes, and commit; everything learnt is committed when this returns.

    Parameters
    ----------
    run : Run
        Begun or resumed; the rows it learnt from are skipped, after a check that they are the same.
    rows : iterator
        The input, from its beginning. A refusal of its own ends the run there.
    diagnostics : Diagnostics, optional
        Watches the exact rows.
    tell : callable
        Is told of the run, and of the bytes read, after each block.
    """
    with noted() as interrupts, Ahead(rows) as source:
        try:
            _learn(run, source, diagnostics, tell, interrupts)
            ending = Ending("interrupted" if interrupts.signal else "end", interrupts.exit_status)
        except (InvalidInput, BudgetExhausted) as refusal:
            ending = Ending("refused", 2, refusal)
        run.commit()
    return Ending(ending.why, ending.status, ending.refusal, source.waiting)


def _learn(
    run: Run,
    source: Ahead[Rows],
    diagnostics: Diagnostics | None,
    tell: Callable[[Run, int], None],
    interrupts: Interrupts,
) -> None:
    unseen = Unseen(run)
    while interrupts.signal is None:
        try:
            block = source.next(_PATIENCE)
        except StopIteration:
            return unseen.end()
        if block is None:  # nothing came: what waits is not to wait for it
            run.commit_if_due()
            continue
        X, y = unseen.of(block.X, block.y)
        _learn_within(run, X, y, diagnostics)
        tell(run, block.size)


def _learn_within(run: Run, X: Array, y: Array, diagnostics: Diagnostics | None) -> None:
    """Learn from these rows up to the horizon; if there are more, commit, and refuse the rest."""
    left = len(y) if run.left is None else run.left
    if left and len(y):
        run.learn(X[:left], y[:left], diagnostics)
    if left < len(y):
        raise BudgetExhausted(
            f"the input has more rows than the {run.stream.t:,} of the contract's horizon, for which the noise was "
            "planned. All up to there were learnt; a longer stream is a new contract and a new run, and spends as much "
            "again."
        )
    if run.left == 0:
        run.commit()  # nothing more can come of it: show it, whether or not the input ends here


T = TypeVar("T")


class Ahead(Generic[T]):
    """What an iterator gives, fetched by a thread that is two items ahead at the most.

    Examples
    --------
    >>> with Ahead(iter("ab")) as letters:
    ...     [letters.next(timeout=9.0) for _ in range(2)]
    ['a', 'b']
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._ready: queue.Queue[tuple[str, T | None, BaseException | None]] = queue.Queue(maxsize=1)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._fetch, daemon=True)

    def __enter__(self) -> Ahead[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        with contextlib.suppress(queue.Empty):
            self._ready.get_nowait()  # a thread that waits to hand something over need not
        self._thread.join(timeout=0.3)

    @property
    def waiting(self) -> bool:
        """Whether the thread still waits for input; there is no way to call it back."""
        return self._thread.is_alive()

    def next(self, timeout: float) -> T | None:
        """The next item, or None if there is none in time; StopIteration, or its error, where the iterator ends."""
        try:
            kind, item, error = self._ready.get(timeout=timeout)
        except queue.Empty:
            return None
        if kind == "item":
            return item
        self._ready.put((kind, item, error))  # for whoever asks again
        raise error if error is not None else StopIteration

    def _fetch(self) -> None:
        try:
            for item in self._items:
                if not self._hand_over(("item", item, None)):
                    return
            self._hand_over(("end", None, None))
        except BaseException as error:
            self._hand_over(("end", None, error))

    def _hand_over(self, what: tuple[str, T | None, BaseException | None]) -> bool:
        """Whether anyone still wanted it."""
        while not self._left.is_set():
            try:
                self._ready.put(what, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False


class Interrupts:
    """The signal that came, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the first; the second of a kind ends the process as it always would have."""
        self.signal = signal.Signals(number)
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    @property
    def exit_status(self) -> int:
        """128 and the signal's number, as shells have it; 0 if none came."""
        return 128 + self.signal if self.signal is not None else 0


@contextlib.contextmanager
def noted() -> Iterator[Interrupts]:
    """Note SIGINT and SIGTERM for the time of the block; elsewhere than in the main thread nothing can be noted.

    >>> with noted() as interrupts:
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
