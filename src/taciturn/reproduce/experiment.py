"""What an experiment is: runs that depend on nothing but their settings, a table of them, and a picture."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn import __version__
from taciturn.report.evidence import Part
from taciturn.report.grids import shown_grids
from taciturn.report.machines import json_text
from taciturn.reproduce import REGISTRY
from taciturn.reproduce.bars import Whole
from taciturn.reproduce.parts import command_of, every_row, keep_part, settings_of, write_report
from taciturn.reproduce.runs import Kept, Result, Settings, carry_out

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Row = dict[str, Any]
"""A row of the table, by column; all rows have the same columns."""


@dataclass(frozen=True)
class Experiment:
    """An experiment.

    Attributes
    ----------
    name : str
        The command's, and the files'.
    plan : callable
        From `quick` and the number of seeds (None for the experiment's own) to the settings of every run.
    run : callable
        From the settings of a run to its result, both plain data; a function of a module, which other processes import.
    table : callable
        From settings and results to rows.
    show : callable
        The rows for people.
    draw : callable
        The rows as a picture, saved to a path whose ending chooses the format.
    title, caption : str
        For the report: what it is, and what to see in the picture.
    paper : str
        What the paper printed, where it is and how it differs; empty if it has nothing of the kind.

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
    whole: Whole | None = None,
) -> list[Row]:
    """Carry out the runs that `folder` does not hold yet; write the table as CSV and JSON, draw it, and report.

    The report is that of everything the folder holds. `whole` is the bar over several experiments.
    """
    plan = experiment.plan(quick, seeds)
    results = carry_out(experiment.name, experiment.run, plan, folder / "runs", console, fresh, whole)
    rows, stem = experiment.table(plan, results), f"{experiment.name}-quick" if quick else experiment.name
    write_csv(rows, folder / f"{stem}.csv")
    (folder / f"{stem}.json").write_text(json_text(rows) + "\n", encoding="utf-8")
    for ending in ("png", "svg"):
        experiment.draw(rows, folder / f"{stem}.{ending}")
    command = command_of(experiment.name, quick, seeds)
    keep_part(part_of(experiment, plan, rows, quick, command, folder), folder)
    report = write_report(folder, {name: entry.summary for name, entry in REGISTRY.items()})
    saved = f"Saved {folder / stem}.csv, .json, .png and .svg, and {report}."
    console.print(saved, highlight=False, soft_wrap=True)
    return rows


def part_of(
    experiment: Experiment, plan: Sequence[Settings], rows: Sequence[Row], quick: bool, command: str, folder: Path
) -> Part:
    """What the report says of it; the time is that of its runs, in whichever session they were carried out."""
    return Part(
        name=experiment.name,
        quick=quick,
        version=__version__,
        command=command,
        runs=len(plan),
        seconds=Kept(experiment.name, folder / "runs").seconds(plan),
        title=experiment.title,
        caption=experiment.caption,
        paper=experiment.paper,
        settings=settings_of(plan),
        shown=shown_grids(experiment.show(rows)),
        everything=every_row(rows),
    )


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Rows with a line of names; numbers in full, so that equal results make equal files."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
