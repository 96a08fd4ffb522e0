"""Rows in, commits out, until the input ends, the horizon is reached, or someone says stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from taciturn._util.arrays import Array
from taciturn.errors import BudgetExhausted, InvalidInput, TaciturnError
from taciturn.runs.diagnostics import Diagnostics
from taciturn.runs.interrupts import Interrupts, noted
from taciturn.runs.prefetch import Ahead
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
