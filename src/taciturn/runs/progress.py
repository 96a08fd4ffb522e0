"""How far learning is: a bar with rate and time left at a terminal, a line now and then elsewhere, on standard error.

It shows rows and releases, whose numbers are public, and nothing else.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from taciturn.runs.run import Run

_SECONDS = 10.0  # between two lines where there is no terminal


class Progress:
    """Tells of a run as it goes.

    Parameters
    ----------
    size : int
        Bytes of the input, 0 if unknown; then the horizon is what there is to do, if there is one.
    quiet : bool
        Say nothing.
    """

    def __init__(self, size: int, quiet: bool) -> None:
        self.size, self.quiet = size, quiet
        self._bar: Any = None
        self._began = self._told = time.monotonic()
        self._first: int | None = None

    def __enter__(self) -> Progress:
        if not self.quiet and sys.stderr.isatty():
            from rich import progress

            self._bar = progress.Progress(
                progress.TextColumn("[bold]learning"),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TextColumn("{task.fields[said]}"),
                progress.TimeRemainingColumn(),
                console=_console(),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None, said="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, run: Run, size: int) -> None:
        """After each block: the run, and the bytes read so far."""
        if self.quiet:
            return
        said, now = self._said(run), time.monotonic()
        if self._bar is not None:
            horizon = run.stream.plan.private.timetable.horizon
            done, total = (size, self.size) if size and self.size else (run.stream.t, horizon)
            self._bar.update(self._task, completed=done, total=total, said=said)
        elif now - self._told >= _SECONDS:
            self._told = now
            sys.stderr.write(f"taciturn: {said}\n")

    def _said(self, run: Run) -> str:
        if self._first is None:
            self._first = run.stream.t
        rate = (run.stream.t - self._first) / max(time.monotonic() - self._began, 1e-9)
        return f"{run.stream.t:,} rows, {rate:,.0f} a second, {run.stream.k:,} models"


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
