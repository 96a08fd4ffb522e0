"""`taciturn reproduce`: a command for each experiment of `taciturn.reproduce.REGISTRY`, and one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.reproduce import REGISTRY, Entry, load

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(help="Run experiments: tables, their data, pictures and a report.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="Run the short version.")]
Seeds = Annotated[int | None, typer.Option(help="Use the seeds 1 to N.", min=1, metavar="N")]
Out = Annotated[Path, typer.Option(help="Folder for results and saved runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ignore saved runs.")]
FOLDER = Path("reproduced")


def _command(name: str) -> Callable[..., None]:
    def command(
        quick: Quick = False, seeds: Seeds = None, out: Out = FOLDER, as_json: AsJson = False, fresh: Fresh = False
    ) -> None:
        from rich.console import Console

        from taciturn._util.output import json_text
        from taciturn.reproduce.runner import reproduce

        experiment = load(name)
        stderr = Console(stderr=True)
        with _resumable(stderr):
            rows = reproduce(experiment, out, stderr, quick=quick, seeds=seeds, fresh=fresh)
        if as_json:
            typer.echo(json_text(rows))
        else:
            Console().print(*experiment.show(rows), sep="\n", highlight=False)

    return command


def _all(
    quick: Quick = False, seeds: Seeds = None, out: Out = FOLDER, as_json: AsJson = False, fresh: Fresh = False
) -> None:
    from rich.console import Console

    from taciturn._util.output import json_text
    from taciturn.reproduce.runner import reproduce_all

    stderr = Console(stderr=True)
    with _resumable(stderr):
        outcome = reproduce_all(out, stderr, quick=quick, seeds=seeds, fresh=fresh)
    if as_json:
        typer.echo(json_text(outcome.rows))
    else:
        console = Console()
        for name, rows in outcome.rows.items():
            experiment = outcome.experiments[name]
            console.print(f"\n{experiment.title or name}", style="bold", highlight=False)
            console.print(*experiment.show(rows), sep="\n", highlight=False)
    for name, error in outcome.skipped.items():
        stderr.print(f"{name} was skipped: {error}", style="bold", highlight=False, markup=False)
    if outcome.skipped:
        raise typer.Exit(2)


@contextmanager
def _resumable(stderr: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        stderr.print("Interrupted. Finished runs are saved: the same command resumes from there.", style="bold")
        raise typer.Exit(130) from None


def _needs(entry: Entry) -> str:
    """The data sets of an experiment, in words."""
    return ", ".join(entry.data) or "none"


def _list(wanted: bool) -> None:
    if not wanted:
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("experiment", "data", "minutes", "results")
    for name, entry in REGISTRY.items():
        table.add_row(name, _needs(entry), f"{entry.minutes:g}", entry.summary)
    console = Console()
    console.print(table)
    console.print("Minutes of two cores, without --quick. Data that are not on this machine are downloaded once.")
    raise typer.Exit


@app.callback()
def _options(
    listed: Annotated[
        bool, typer.Option("--list", help="List what each needs: data, and minutes.", is_eager=True, callback=_list)
    ] = False,
) -> None:
    """Options of all experiments."""


for _name, _entry in REGISTRY.items():
    _help = f"{_entry.summary}\n\nData: {_needs(_entry)}. Minutes on two cores: {_entry.minutes:g}."
    app.command(_name, help=f"{_help}\n\nExample: taciturn reproduce {_name} --quick")(_command(_name))
app.command(
    "all",
    help="Run every experiment, and write one report of all.\n\nExample: taciturn reproduce all --quick --out evidence",
)(_all)
