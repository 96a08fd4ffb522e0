"""`tacit reproduce`: one command for each experiment of `tacit.experiments.REGISTRY`, all with the same options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tacit.experiments import REGISTRY, load

app = typer.Typer(help="Run experiments again: a table, its data and a picture.", no_args_is_help=True)


def _command(name: str) -> Callable[..., None]:
    def command(
        quick: Annotated[bool, typer.Option("--quick", help="A short version, of the same shape.")] = False,
        seeds: Annotated[int | None, typer.Option(help="Take the seeds 1 to N.", min=1, metavar="N")] = None,
        out: Annotated[Path, typer.Option(help="Where to write, and to keep finished runs.")] = Path("reproduced"),
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
        fresh: Annotated[bool, typer.Option("--fresh", help="Do not use the runs that were kept.")] = False,
    ) -> None:
        from rich.console import Console

        from tacit.experiments.experiment import reproduce
        from tacit.report.machines import json_text

        experiment, aside = load(name), Console(stderr=True)
        try:
            rows = reproduce(experiment, out, aside, quick=quick, seeds=seeds, fresh=fresh)
        except KeyboardInterrupt:
            aside.print("Interrupted. Finished runs are kept: the same command goes on from there.", style="bold")
            raise typer.Exit(130) from None
        if as_json:
            typer.echo(json_text(rows))
        else:
            Console().print(*experiment.show(rows), sep="\n", highlight=False)

    return command


for _name, _entry in REGISTRY.items():
    app.command(_name, help=f"{_entry.summary}\n\nExample: tacit reproduce {_name} --quick")(_command(_name))
