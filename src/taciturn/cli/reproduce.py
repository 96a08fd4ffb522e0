"""`taciturn reproduce`: a command for each experiment of `taciturn.reproduce.REGISTRY`, and one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.reproduce import REGISTRY, load

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(help="Run experiments again: tables, their data, pictures and a report.", no_args_is_help=True)

Quick = Annotated[bool, typer.Option("--quick", help="A short version, of the same shape.")]
Seeds = Annotated[int | None, typer.Option(help="Take the seeds 1 to N.", min=1, metavar="N")]
Out = Annotated[Path, typer.Option(help="Where to write, and to keep finished runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do not use the runs that were kept.")]
HERE = Path("reproduced")


def _command(name: str) -> Callable[..., None]:
    def command(
        quick: Quick = False, seeds: Seeds = None, out: Out = HERE, as_json: AsJson = False, fresh: Fresh = False
    ) -> None:
        from rich.console import Console

        from taciturn.report.machines import json_text
        from taciturn.reproduce.experiment import reproduce

        experiment, aside = load(name), Console(stderr=True)
        with _resumable(aside):
            rows = reproduce(experiment, out, aside, quick=quick, seeds=seeds, fresh=fresh)
        if as_json:
            typer.echo(json_text(rows))
        else:
            Console().print(*experiment.show(rows), sep="\n", highlight=False)

    return command


def _all(
    quick: Quick = False, seeds: Seeds = None, out: Out = HERE, as_json: AsJson = False, fresh: Fresh = False
) -> None:
    from rich.console import Console

    from taciturn.report.machines import json_text
    from taciturn.reproduce.together import reproduce_all

    aside, console = Console(stderr=True), Console()
    with _resumable(aside):
        outcome = reproduce_all(out, aside, quick=quick, seeds=seeds, fresh=fresh)
    if as_json:
        typer.echo(json_text(outcome.rows))
    else:
        for name, rows in outcome.rows.items():
            experiment = outcome.experiments[name]
            console.print(f"\n{experiment.title or name}", style="bold", highlight=False)
            console.print(*experiment.show(rows), sep="\n", highlight=False)
    for name, sentence in outcome.refused.items():
        aside.print(f"{name} was left out: {sentence}", style="bold", highlight=False, markup=False)
    if outcome.refused:
        raise typer.Exit(2)


@contextmanager
def _resumable(aside: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        aside.print("Interrupted. Finished runs are kept: the same command goes on from there.", style="bold")
        raise typer.Exit(130) from None


for _name, _entry in REGISTRY.items():
    app.command(_name, help=f"{_entry.summary}\n\nExample: taciturn reproduce {_name} --quick")(_command(_name))
app.command(
    "all",
    help="Every experiment, and one report of all of them.\n\nExample: taciturn reproduce all --quick --out evidence",
)(_all)
