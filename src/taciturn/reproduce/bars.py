"""Bars on the terminal: how far an experiment is and, if it is one of several, how far they are together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_HOUR = 3600.0  # runs take a minute or so each: the time left is judged over many


@dataclass(frozen=True)
class Whole:
    """The bar over several experiments, whose runs take unlike times: each advances it by what it is worth."""

    progress: Progress
    task: TaskID
    worth: Mapping[str, float]


@contextmanager
def bar_over(left: Mapping[str, int], worth: Mapping[str, float], console: Console) -> Iterator[Whole]:
    """A bar over the runs that are left of each experiment; a run of it is worth so much.

    >>> from rich.console import Console
    >>> with bar_over({"regret": 2}, {"regret": 3.0}, Console(quiet=True)) as whole:
    ...     whole.progress.tasks[0].total
    6.0
    """
    from rich.progress import TaskProgressColumn

    with _progress(console, TaskProgressColumn()) as progress:
        total = sum(count * worth[name] for name, count in left.items())
        yield Whole(progress, progress.add_task("all", total=total, visible=total > 0.0), worth)


@contextmanager
def bar(experiment: str, runs: int, console: Console, whole: Whole | None = None) -> Iterator[Callable[[], None]]:
    """A bar over the runs of one experiment, and what to call after each of them.

    >>> from rich.console import Console
    >>> with bar("regret", 2, Console(quiet=True)) as advance:
    ...     advance()
    """
    from rich.progress import MofNCompleteColumn

    if whole is None:
        with _progress(console, MofNCompleteColumn()) as progress:
            task = progress.add_task(experiment, total=runs)
            yield lambda: progress.advance(task)
        return
    inner = whole.progress.add_task(experiment, total=runs)

    def advance() -> None:
        whole.progress.advance(inner)
        whole.progress.advance(whole.task, whole.worth[experiment])

    try:
        yield advance
    finally:
        whole.progress.remove_task(inner)


def _progress(console: Console, count: Any) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(), TextColumn("left"))
    return Progress(*columns, console=console, speed_estimate_period=_HOUR)
