"""`taciturn export`: make the files of a run from its store, without learning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.budget import AsJson, WitnessOption
from taciturn.cli.store import KeyOption
from taciturn.errors import InvalidInput


def export(
    run: Annotated[Path, typer.Argument(help="Folder of the files.", metavar="DIR", show_default=False)],
    store: Annotated[str | None, typer.Option(help="Database of the run; by default stream.db in the folder.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the run in --store; by default the name of the folder.")
    ] = None,
    witness: WitnessOption = None,
    key: KeyOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run, if it is a simulation.", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """Make models.jsonl and model.json of what a run has committed, and learn nothing.

    For files that were lost, and for a second folder, while the run goes on in its own. Files that are there are
    completed; called again after an interruption, it goes on. The report is left to taciturn learn: the number of rows
    in it may tell where a bad row has stopped the run.

    Example: taciturn export copy --store postgresql://db/streams --name clicks
    """
    from taciturn.contract.contract import contract_of
    from taciturn.renewal import stored_renewal
    from taciturn.runs.exporters import Exported
    from taciturn.runs.files import Folder, full_disk_explained, locked
    from taciturn.runs.run import NAME, SERVED
    from taciturn.runs.summary import ModelFile
    from taciturn.store import Store
    from taciturn.store.database import Database
    from taciturn.streams.stored import StoredStream

    here = Folder(run).store
    address = store or str(here)
    if here.exists() != (store is None):
        which = "holds a run of its own" if store else "holds no run"
        raise InvalidInput(
            f"{run} {which}. Pass the folder of a run, or another one and the run's database by --store."
        )
    Database(address)  # a wrong address is an error, and not a new database
    opened = Store(address, witness=witness, key=key)
    saved, layers = opened.load_with_layers(name or (run.resolve().name if store else NAME))
    if SERVED in saved.about:
        raise InvalidInput(f"{saved.name} learns by taciturn serve, which shows its models by the clock. Ask it.")
    if "declared" not in saved.about:
        raise InvalidInput(f"{saved.name} has no contract in {opened.address}, so that its model cannot be written.")
    declared = contract_of(saved.about["declared"])
    plan = declared.plan(on_bad="zero", seed=seed).following(stored_renewal(saved))
    stream = StoredStream(opened, plan, saved, layers)
    with full_disk_explained(run):
        run.mkdir(parents=True, exist_ok=True)
        with locked(run) as handle:
            folder = Folder(run, handle)
            folder.clear()
            Exported(folder, stream, (ModelFile(declared),)).export()
    if as_json:
        from taciturn._util.output import json_text

        files = {"models.jsonl": str(folder.models), "model.json": str(folder.model)}
        typer.echo(json_text({"name": saved.name, "releases": stream.k, "files": files}))
    else:
        typer.echo(f"{run}: model.json, models.jsonl; {stream.k:,} models of {saved.name} in {opened.address}.")
