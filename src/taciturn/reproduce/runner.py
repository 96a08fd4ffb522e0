"""Run experiments: what an experiment is, its runs on all cores, saved results, progress bars, and all experiments.

Every finished run is saved in a file of its own, so an interrupted experiment resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar

from taciturn import __version__, datasets
from taciturn._util.output import json_text
from taciturn._util.threads import one_thread
from taciturn.errors import TaciturnError
from taciturn.reproduce import REGISTRY, load
from taciturn.reproduce.page import Part, every_row, save_part, settings_of, shown_grids, write_page, write_text
from taciturn.reproduce.rows import Result, Row, Settings, write_csv

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, Task, TaskID

T = TypeVar("T")


# ---- an experiment ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Experiment:
    """An experiment: runs that depend on their settings only, a table of their results, and a picture of the table.

    Attributes
    ----------
    name : str
        Name of the command and of the files.
    plan : callable
        From `quick` and the number of seeds (None for the default) to the settings of every run.
    run : callable
        From the settings of a run to its result, both plain data. It must be a function of a module, since other
        processes import it.
    table : callable
        From settings and results to rows.
    show : callable
        From rows to tables and sentences for people.
    draw : callable
        Draws the rows and saves the picture to a path, whose ending chooses the format.
    title, caption : str
        For the evidence page: what the experiment is, and what the picture shows.
    paper : str
        What the paper printed, where, and how it differs; empty if there is nothing.

    Examples
    --------
    >>> from taciturn.reproduce import load
    >>> len(load("regret").plan(True, 1))
    36
    """

    name: str
    plan: Callable[[bool, int | None], list[Settings]]
    run: Callable[[Settings], Result]
    table: Callable[[Sequence[Settings], Sequence[Result]], list[Row]]
    show: Callable[[Sequence[Row]], Sequence[RenderableType]]
    draw: Callable[[Sequence[Row], Path], None]
    title: str = ""
    caption: str = ""
    paper: str = ""


def reproduce(
    experiment: Experiment,
    folder: Path,
    console: Console,
    *,
    quick: bool = False,
    seeds: int | None = None,
    fresh: bool = False,
    overall: OverallProgress | None = None,
) -> list[Row]:
    """Run what `folder` does not hold yet; write the table as CSV and JSON, draw it, and write the evidence page.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    folder : Path
        Folder of the results, and of saved runs.
    console : Console
        For progress and messages.
    quick : bool
        Whether to run the short version.
    seeds : int, optional
        Number of seeds; the experiment's own by default.
    fresh : bool
        Whether to ignore saved runs.
    overall : OverallProgress, optional
        The progress bar of several experiments.
    """
    plan = experiment.plan(quick, seeds)
    data = REGISTRY[experiment.name].data if experiment.name in REGISTRY else ()
    results = run_all(experiment.name, experiment.run, plan, folder / "runs", console, fresh, overall, data)
    rows = experiment.table(plan, results)
    stem = f"{experiment.name}-quick" if quick else experiment.name
    write_csv(rows, folder / f"{stem}.csv")
    (folder / f"{stem}.json").write_text(json_text(rows) + "\n", encoding="utf-8")
    for ending in ("png", "svg"):
        experiment.draw(rows, folder / f"{stem}.{ending}")
    part = Part(
        name=experiment.name,
        quick=quick,
        version=__version__,
        command=command_line(experiment.name, quick, seeds),
        runs=len(plan),
        seconds=SavedRuns(experiment.name, folder / "runs").seconds(plan),
        title=experiment.title,
        caption=experiment.caption,
        paper=experiment.paper,
        settings=settings_of(plan),
        shown=shown_grids(experiment.show(rows)),
        everything=every_row(rows),
    )
    save_part(part, folder)
    page = write_page(folder, {name: entry.summary for name, entry in REGISTRY.items()})
    console.print(f"Saved {folder / stem}.csv, .json, .png and .svg, and {page}.", highlight=False, soft_wrap=True)
    return rows


def command_line(name: str, quick: bool, seeds: int | None) -> str:
    """The command that runs an experiment again.

    >>> command_line("regret", True, 3)
    'taciturn reproduce regret --quick --seeds 3'
    """
    options = ("--quick" if quick else "", "" if seeds is None else f"--seeds {seeds}")
    return " ".join(filter(None, ("taciturn reproduce", name, *options)))


# ---- all experiments -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The rows of each experiment, or the error message for which it was skipped."""

    experiments: Mapping[str, Experiment]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def reproduce_all(
    folder: Path, console: Console, *, quick: bool = False, seeds: int | None = None, fresh: bool = False
) -> Outcome:
    """Reproduce every experiment of the registry; one that raises a `TaciturnError`, for lack of data say, is skipped.

    The time left is estimated from the known duration of each experiment (`Entry.minutes`) and the speed so far.
    """
    outcome = Outcome({name: load(name) for name in REGISTRY})
    plans = {name: experiment.plan(quick, seeds) for name, experiment in outcome.experiments.items()}
    weights = {name: REGISTRY[name].minutes / len(plan) for name, plan in plans.items()}
    left = {
        name: sum(fresh or SavedRuns(name, folder / "runs").read(settings) is None for settings in plan)
        for name, plan in plans.items()
    }
    with overall_progress(left, weights, console) as overall:
        for name, experiment in outcome.experiments.items():
            try:
                rows = reproduce(experiment, folder, console, quick=quick, seeds=seeds, fresh=fresh, overall=overall)
                outcome.rows[name] = rows
            except TaciturnError as error:
                outcome.skipped[name] = str(error)
    return outcome


# ---- runs ------------------------------------------------------------------------------------------------------


def run_all(
    experiment: str,
    run: Callable[[Settings], Result],
    plan: Sequence[Settings],
    folder: Path,
    console: Console,
    fresh: bool = False,
    overall: OverallProgress | None = None,
    data: Sequence[str] = (),
) -> list[Result]:
    """The results of all runs, in the order of the plan; those saved in `folder` are read, unless `fresh`.

    A run is saved under its settings and the version of `taciturn`, not its source: after changing code, use `fresh`.
    The data sets that runs need are loaded here first: one that is missing is downloaded once, or is one error, before
    each process looks for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    saved = SavedRuns(experiment, folder)
    done: dict[int, Result] = {}
    if not fresh:
        done = {i: old for i, settings in enumerate(plan) if (old := saved.read(settings)) is not None}
    left = [i for i in range(len(plan)) if i not in done]
    if not left:
        console.print(f"All {len(plan)} runs were saved before.", highlight=False)
        return [done[i] for i in range(len(plan))]
    if done:
        console.print(f"{len(done)} of {len(plan)} runs were saved before.", highlight=False)
    for name in data:
        getattr(datasets, name)()
    with (
        progress_bar(experiment, len(left), console, overall) as advance,
        closing(in_processes(partial(timed, run), [plan[i] for i in left])) as finished,
    ):
        for place, (result, seconds) in finished:
            saved.write(plan[left[place]], result, seconds)
            done[left[place]] = result
            advance()
    return [done[i] for i in range(len(plan))]


class SavedRuns:
    """Finished runs, one file each, named by a hash of the experiment, the version of `taciturn` and the settings.

    >>> SavedRuns("regret", Path("runs")).path({"seed": 1}) == SavedRuns("regret", Path("runs")).path({"seed": 2})
    False
    """

    def __init__(self, experiment: str, folder: Path) -> None:
        self.experiment = experiment
        self.folder = folder

    def path(self, settings: Settings) -> Path:
        """The file of a run."""
        text = json.dumps(self._header(settings), sort_keys=True)
        return self.folder / f"{self.experiment}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"

    def read(self, settings: Settings) -> Result | None:
        """The result, or None if there is no such run, or its file is damaged."""
        result, _ = self._load(settings)
        return result

    def seconds(self, plan: Sequence[Settings]) -> float:
        """Processor time of the runs, in whichever session they ran."""
        return sum(self._load(settings)[1] for settings in plan)

    def write(self, settings: Settings, result: Result, seconds: float = 0.0) -> None:
        """Save a run atomically."""
        record = self._header(settings) | {"result": result, "seconds": seconds}
        write_text(self.path(settings), json.dumps(record, indent=1))

    def _load(self, settings: Settings) -> tuple[Result | None, float]:
        try:
            record = json.loads(self.path(settings).read_text(encoding="utf-8"))
            result = record.pop("result")
            seconds = float(record.pop("seconds"))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None, 0.0
        return (result, seconds) if record == self._header(settings) else (None, 0.0)

    def _header(self, settings: Settings) -> dict[str, Any]:
        return {"experiment": self.experiment, "version": __version__, "settings": settings}


def timed(run: Callable[[Settings], Result], settings: Settings) -> tuple[Result, float]:
    """A result, and its processor time in seconds.

    >>> timed(dict, {"seed": 1})[0]
    {'seed': 1}
    """
    before = process_time()
    return run(settings), process_time() - before


def in_processes(run: Callable[[Settings], T], plan: Sequence[Settings]) -> Generator[tuple[int, T]]:
    """Places in the plan and results, as they are finished, with one process per core.

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


def _follow_the_parent() -> None:
    """In a worker: an interrupt ends it without a traceback, and it does not outlive the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_after, args=(parent_process(),), daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


# ---- progress bars ---------------------------------------------------------------------------------------------

_HOUR = 3600.0  # a run takes up to a minute, so the speed is estimated over many of them


@dataclass(frozen=True)
class OverallProgress:
    """The progress bar of several experiments, which a run of each advances by its own weight."""

    progress: Progress
    task: TaskID
    weights: Mapping[str, float]


@contextmanager
def overall_progress(
    left: Mapping[str, int], weights: Mapping[str, float], console: Console
) -> Iterator[OverallProgress]:
    """A bar over the runs that are left of each experiment, each run with the weight of its experiment.

    >>> from rich.console import Console
    >>> with overall_progress({"regret": 2}, {"regret": 3.0}, Console(quiet=True)) as overall:
    ...     overall.progress.tasks[0].total
    6.0
    """
    from rich.progress import TaskProgressColumn

    with _progress(console, TaskProgressColumn()) as progress:
        total = sum(count * weights[name] for name, count in left.items())
        yield OverallProgress(progress, progress.add_task("all", total=total, visible=total > 0.0), weights)


@contextmanager
def progress_bar(
    experiment: str, runs: int, console: Console, overall: OverallProgress | None = None
) -> Iterator[Callable[[], None]]:
    """A bar over the runs of one experiment; yields the function to call after each of them.

    >>> from rich.console import Console
    >>> with progress_bar("regret", 2, Console(quiet=True)) as advance:
    ...     advance()
    """
    from rich.progress import MofNCompleteColumn

    if overall is None:
        with _progress(console, MofNCompleteColumn()) as progress:
            task = progress.add_task(experiment, total=runs)
            yield lambda: _advance(progress, task)
        return
    inner = overall.progress.add_task(experiment, total=runs)

    def advance() -> None:
        overall.progress.advance(inner)
        _advance(overall.progress, overall.task, overall.weights[experiment])

    try:
        yield advance
    finally:
        overall.progress.remove_task(inner)


def _progress(console: Console, count: Any) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(), TextColumn("left"))
    drawn = console.is_terminal
    return Progress(*columns, console=console, speed_estimate_period=_HOUR, disable=not drawn)


def _advance(progress: Progress, task: TaskID, by: float = 1.0) -> None:
    """Advance a bar; where there is no terminal to draw it, print a line after each tenth."""
    (bar,) = (each for each in progress.tasks if each.id == task)
    before = _tenths(bar)
    progress.advance(task, by)
    if progress.disable and _tenths(bar) > before:
        seconds = None if bar.finished else bar.time_remaining
        left = "" if seconds is None else f", about {timedelta(seconds=round(seconds))} left"
        progress.console.print(f"{bar.description}: {bar.percentage:.0f}%{left}", highlight=False)


def _tenths(bar: Task) -> int:
    return int(bar.percentage / 10.0 + 1e-9)  # sums of weights are rounded
