"""Progress on standard error: a bar with rate and remaining time at a terminal, otherwise a line every ten seconds.

It shows the numbers of rows and releases, which are public, and nothing else.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from taciturn.runs.run import Run

_SECONDS = 10.0  # between two lines where there is no terminal


class Progress:
    """Progress of a run.

    Parameters
    ----------
    size : int
        Size of the input in bytes, 0 if unknown; then progress is measured by the horizon, if there is one.
    quiet : bool
        Print nothing.
    """

    def __init__(self, size: int, quiet: bool) -> None:
        self.size = size
        self.quiet = quiet
        self._bar: Any = None
        self._began = self._printed = time.monotonic()
        self._first: int | None = None

    def __enter__(self) -> Progress:
        if not self.quiet and sys.stderr.isatty():
            from rich import progress

            self._bar = progress.Progress(
                progress.TextColumn("[bold]learning"),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TextColumn("{task.fields[status]}"),
                progress.TimeRemainingColumn(),
                console=_console(),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None, status="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, run: Run, size: int) -> None:
        """Update the progress after a block; `size` is the number of bytes read so far."""
        if self.quiet:
            return
        status = self._status(run)
        now = time.monotonic()
        if self._bar is not None:
            horizon = run.stream.plan.private.timetable.horizon
            done, total = (size, self.size) if size and self.size else (run.stream.t, horizon)
            self._bar.update(self._task, completed=done, total=total, status=status)
        elif now - self._printed >= _SECONDS:
            self._printed = now
            sys.stderr.write(f"taciturn: {status}\n")

    def _status(self, run: Run) -> str:
        """Rows and models so far, and the rate since the first block, which may have waited for a compiler."""
        now = time.monotonic()
        if self._first is None:
            self._first, self._began = run.stream.t, now
        learnt = run.stream.t - self._first
        rate = f", {learnt / max(now - self._began, 1e-9):,.0f} a second" if learnt else ""
        return f"{run.stream.t:,} rows{rate}, {run.stream.k:,} models"


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
