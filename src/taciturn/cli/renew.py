"""`taciturn renew`: close a run, and open its successor, which starts from the last released model."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.learn import account_of
from taciturn.cli.output import warn
from taciturn.errors import InvalidInput


def renew(
    contract: Annotated[Path, typer.Argument(help="Contract file of the new run, taciturn.toml.", show_default=False)],
    old: Annotated[Path, typer.Argument(help="Folder of the run that ends.", metavar="OLD", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder of the new run.", metavar="DIR", show_default=False)],
    store: Annotated[
        str | None, typer.Option(help="Database of the new run; by default stream.db in its folder.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the new run in --store; by default the name of its folder.")
    ] = None,
    old_store: Annotated[str | None, typer.Option(help="Database of the run that ends, if not in its folder.")] = None,
    old_name: Annotated[str | None, typer.Option(help="Its name there; by default the name of its folder.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger in which the cost of the new run is reserved.")] = None,
    population: Annotated[str | None, typer.Option(help="Name of the people in that ledger.")] = None,
    witness: Annotated[
        str | None, typer.Option(help="Database elsewhere that notices when the store was restored from a backup.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="File of the key that encrypts states; by default TACITURN_KEY.", metavar="FILE"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a simulation, which is NOT PRIVATE.", min=0)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Close a run, and open its successor: it starts from the last released model, under a budget of its own.

    Prints what is promised to someone whose rows are in both. The contract may state another budget, horizon, method
    or forget. Called again after an interruption, it completes what it began. Rows that are given to both runs count
    in both: give the new run new rows.

    Example: taciturn renew taciturn.toml run-2025 --out run-2026
    """
    from taciturn.contract.contract import read_contract
    from taciturn.runs import run as runs
    from taciturn.runs.files import Folder, full_disk_explained, locked
    from taciturn.runs.renewal import renew as renewed
    from taciturn.runs.summary import ModelFile
    from taciturn.store import Store
    from taciturn.store.database import Database

    declared = read_contract(contract)
    plan = declared.plan(on_bad="zero", seed=seed)
    warn(plan.delta_warning)
    if old.resolve() == out.resolve():
        raise InvalidInput("the new run needs a folder of its own. Pass another folder by --out.")
    if old_store is None and not Folder(old).store.exists():
        raise InvalidInput(f"{old} holds no run that could be followed. Pass the folder of one, or --old-store.")
    before = old_store or str(Folder(old).store)
    Database(before)  # a wrong address is an error, and not a new database
    address = store or str(Folder(out).store)
    account = None if ledger is None else account_of(ledger, population, witness, address)
    with ExitStack() as stack:
        if old.is_dir():
            stack.enter_context(locked(old))
        first = Store(before, witness=witness if before == address else None, key=key)
        closing = first.load(old_name or (old.resolve().name if old_store else runs.NAME))
        with full_disk_explained(out):
            out.mkdir(parents=True, exist_ok=True)
            folder = Folder(out, stack.enter_context(locked(out)))
            second = first if before == address else Store(address, witness=witness, key=key)
            made = renewed(
                first,
                closing,
                folder,
                second,
                plan,
                declared.digest,
                delta=declared.delta,
                name=name or (out.resolve().name if store else runs.NAME),
                ledger=account,
                about={"model": declared.model_digest, "declared": declared.declared},
                exporters=(ModelFile(declared),),
            )
    starts = made.run.stream.plan.starts_there
    if as_json:
        from taciturn._util.output import json_text

        data = {
            "closed": {"name": closing.name, "rows": closing.position[1], "releases": closing.position[2]},
            "opened": {"name": made.run.saved.name, "folder": str(out), "store": second.address},
            "starts_from_the_model": starts,
            "promise": made.promise.as_data(),
            "sentence": str(made.promise),
        }
        typer.echo(json_text(data))
        return
    typer.echo(
        f"Closed {old} after {closing.position[1]:,} rows and {closing.position[2]:,} models. {out} follows it, and "
        + (
            "starts from its last model."
            if starts
            else "learns anew; its last model is in use until the first release."
        )
    )
    typer.echo(str(made.promise))
    typer.echo(f"Give it new rows, which {old} has not learnt: taciturn learn {contract} DATA --out {out}")
