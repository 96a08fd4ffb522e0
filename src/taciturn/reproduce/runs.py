"""Many runs on every core, each kept in a file of its own, so that an interrupted experiment goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar

from taciturn import __version__
from taciturn._util.atomic import replaced
from taciturn.reproduce.bars import Whole, bar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
Settings = dict[str, Any]
"""Everything a run depends on, as plain data."""
Result = dict[str, Any]
"""What came of it, as plain data."""

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def carry_out(
    experiment: str,
    run: Callable[[Settings], Result],
    plan: Sequence[Settings],
    folder: Path,
    console: Console,
    fresh: bool = False,
    whole: Whole | None = None,
) -> list[Result]:
    """The results of all runs, in the order of the plan; those that `folder` holds are read, unless `fresh`.

    A run is kept under its settings and the version of `taciturn`, not its source: after changing code, say `fresh`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = Kept(experiment, folder)
    done = {} if fresh else {i: old for i, settings in enumerate(plan) if (old := kept.read(settings)) is not None}
    left = [i for i in range(len(plan)) if i not in done]
    if not left:
        console.print(f"All {len(plan)} runs are kept from before.", highlight=False)
        return [done[i] for i in range(len(plan))]
    if done:
        console.print(f"{len(done)} of {len(plan)} runs are kept from before.", highlight=False)
    with (
        bar(experiment, len(left), console, whole) as advance,
        closing(_everywhere(partial(timed, run), [plan[i] for i in left])) as finished,
    ):
        for place, (result, seconds) in finished:
            kept.write(plan[left[place]], result, seconds)
            done[left[place]] = result
            advance()
    return [done[i] for i in range(len(plan))]


class Kept:
    """Finished runs, one file each, named by a hash of the experiment, the version of `taciturn` and the settings.

    >>> Kept("regret", Path("runs")).path({"seed": 1}) == Kept("regret", Path("runs")).path({"seed": 2})
    False
    """

    def __init__(self, experiment: str, folder: Path) -> None:
        self.experiment, self.folder = experiment, folder

    def path(self, settings: Settings) -> Path:
        """Where a run is kept."""
        text = json.dumps(self._header(settings), sort_keys=True)
        return self.folder / f"{self.experiment}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"

    def read(self, settings: Settings) -> Result | None:
        """The result, or None if there is no such run, or its file is damaged."""
        result, _ = self._found(settings)
        return result

    def seconds(self, plan: Sequence[Settings]) -> float:
        """Processor time that the runs took, whenever that was."""
        return sum(self._found(settings)[1] for settings in plan)

    def write(self, settings: Settings, result: Result, seconds: float = 0.0) -> None:
        """Whole or not at all."""
        found = self._header(settings) | {"result": result, "seconds": seconds}
        write_whole(self.path(settings), json.dumps(found, indent=1))

    def _found(self, settings: Settings) -> tuple[Result | None, float]:
        try:
            found = json.loads(self.path(settings).read_text(encoding="utf-8"))
            result, seconds = found.pop("result"), float(found.pop("seconds"))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None, 0.0
        return (result, seconds) if found == self._header(settings) else (None, 0.0)

    def _header(self, settings: Settings) -> dict[str, Any]:
        return {"experiment": self.experiment, "version": __version__, "settings": settings}


def write_whole(path: Path, text: str) -> None:
    """Text in a file, whole or not at all."""
    with replaced(path) as file:
        file.write(text.encode())


def timed(run: Callable[[Settings], Result], settings: Settings) -> tuple[Result, float]:
    """A result, and the processor time in seconds that it took.

    >>> timed(dict, {"seed": 1})[0]
    {'seed': 1}
    """
    before = process_time()
    return run(settings), process_time() - before


def _everywhere(run: Callable[[Settings], T], plan: Sequence[Settings]) -> Generator[tuple[int, T]]:
    """Places in the plan and results, as they come, one process a core.

    Processes are spawned, not forked: a fork would inherit BLAS with as many threads as cores in each process, and
    locks held by threads that it lacks. With one thread a sum also has one order, so a run repeats to the last bit.
    """
    workers = min(os.cpu_count() or 1, len(plan))
    with one_thread(), ProcessPoolExecutor(workers, get_context("spawn"), initializer=_follow_the_parent) as pool:
        places = {pool.submit(run, settings): place for place, settings in enumerate(plan)}
        try:
            for future in as_completed(places):
                yield places[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes started meanwhile find, before they import NumPy, that BLAS is to use one thread.

    >>> with one_thread():
    ...     os.environ["OPENBLAS_NUM_THREADS"]
    '1'
    """
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _follow_the_parent() -> None:
    """In a worker: an interrupt ends it without a traceback, and it does not outlive the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_after, args=(parent_process(),), daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)
