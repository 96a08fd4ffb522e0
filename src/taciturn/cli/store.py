"""`taciturn store`: look at a database of streams, back it up, restore it, and change its key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.budget import Address, AsJson, WitnessOption, short
from taciturn.cli.output import plain_table, print_json, print_table, warn
from taciturn.errors import InvalidInput, TaciturnError

if TYPE_CHECKING:  # imported inside commands, so that the others start fast
    from taciturn.store.overview import Stream
    from taciturn.store.restore import Adopted

app = typer.Typer(help="Where streams live: back up, restore, move and encrypt.", no_args_is_help=True)

KeyOption = Annotated[
    Path | None, typer.Option(help="File of the key of encrypted states; by default TACITURN_KEY.", metavar="FILE")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DELTA = 1e-6  # of a stream without a ledger


@app.command()
def show(
    address: Address,
    witness: WitnessOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the streams of a database, its ledgers, and whether it is the newest copy, as far as that is known.

    Looking changes nothing; no state is read.

    Example: taciturn store show taciturn-run/stream.db
    """
    from taciturn.store.book import populations
    from taciturn.store.database import Database
    from taciturn.store.overview import recipe_of, remembered, streams, warning
    from taciturn.store.restore import may_be_adopted, standing

    database = Database(address)
    try:
        at = standing(database, witness)
    except TaciturnError:  # the warning says so
        at = None

    def behind(stream: Stream) -> bool | None:
        """Whether it can be adopted; None if nothing tells."""
        told = at is not None and (at.told or stream.closed)
        return may_be_adopted(stream, at) if at is not None and told else None

    rows = [
        {
            "name": stream.name,
            "lineage": stream.lineage,
            "recipe": recipe_of(stream.about.get("settings")),
            "generation": stream.generation,
            "rows": stream.t,
            "releases": stream.releases,
            "reserved_mu": stream.reserved.mu,
            "spent_mu": stream.spent.mu,
            "ledger": database.address if stream.ledger == "" else stream.ledger,
            "population": stream.population,
            "closed": stream.closed,
            "archived": stream.archived,
            "behind": behind(stream),
            "encrypted": stream.encrypted,
        }
        for stream in streams(database)
    ]
    about = remembered(database)
    answer = {
        "address": database.address,
        "witness": about.witness_at or None,
        "moved": about.moved,
        "ledgers": populations(database),
        "streams": rows,
        "warning": (why := warning(database, witness)),
    }
    if as_json:
        print_json(answer)
    else:
        _show(answer)
        warn(why)


def _show(answer: dict[str, Any]) -> None:
    ledgers = f"ledgers of {', '.join(answer['ledgers'])}" if answer["ledgers"] else "no ledger"
    typer.echo(f"{answer['address']}: {len(answer['streams'])} streams, {ledgers}")
    if not answer["streams"]:
        return
    table = plain_table("", ("name", "stream", "recipe", "rows", "releases", "spent mu", ""), "ledger")
    for row in answer["streams"]:
        state = ", ".join(word for word in ("closed", "archived", "behind", "encrypted") if row[word])
        spent = f"{row['spent_mu']:.4g} of {row['reserved_mu']:.4g}"
        counts = f"{row['rows']:,}", f"{row['releases']:,}"
        here = row["ledger"] == answer["address"]
        ledger = "none" if row["ledger"] is None else row["population"] + ("" if here else f" in {row['ledger']}")
        table.add_row(row["name"], short(row["lineage"]), row["recipe"], *counts, spent, state or "open", ledger)
    print_table(table)


@app.command()
def backup(
    address: Address,
    to: Annotated[Path, typer.Argument(help="File to write; it must not exist.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write a consistent copy of a SQLite database, also while it is in use. The copy is as secret as the database.

    Example: taciturn store backup taciturn-run/stream.db backup.db
    """
    from taciturn.store.database import Database

    database = Database(address)
    database.backup(to)
    if as_json:
        print_json({"address": database.address, "written": str(to)})
    else:
        typer.echo(f"Wrote {to}, a copy of {database.address}. To go on with it later: taciturn store adopt.")


@app.command()
def adopt(
    address: Address,
    name: Annotated[
        str | None, typer.Argument(help="Stream to continue; needed only if several are behind.", show_default=False)
    ] = None,
    witness: WitnessOption = None,
    ledger: Annotated[
        str | None, typer.Option(help="Ledger of the second stream; by default that of the first.")
    ] = None,
    population: Annotated[str | None, typer.Option(help="Which ledger, if that database has several.")] = None,
    restored: Annotated[
        bool, typer.Option("--restored", help="Adopt a stream that is not behind its witness: both were restored.")
    ] = False,
    end: Annotated[
        bool, typer.Option("--end", help="Close what is behind, charge what was forgotten, and continue no stream.")
    ] = False,
    key: KeyOption = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Continue a database that was restored from a backup, as a second stream, which is charged in full.

    Rounds after the backup are released again, so the people pay twice: both costs are printed. What the ledger in the
    database has forgotten, by its witness, is charged first. The first stream is closed; the second takes its name. A
    stream that is not behind is rejected (taciturn store show marks those that are), and so is one whose second charge
    finds no room: then nothing is changed.

    Example: taciturn store adopt taciturn-run/stream.db --witness /mnt/other/witness.db
    """
    from taciturn.accounting.ledger import Ledger
    from taciturn.store import restore

    if end and (name is not None or ledger is not None or population is not None or restored):
        raise InvalidInput("--end continues no stream: leave out its name, --ledger, --population and --restored.")
    does = "closes its streams that are behind" if end else "charges the whole cost of a stream a second time"
    _ask(f"Adopting {address} {does}, which cannot be undone.", yes, as_json)
    where = None if ledger is None else Ledger(ledger, population=population, witness=witness)
    own = population if where is None else None
    made = restore.adopt(
        address, name, witness=witness, key=key, ledger=where, population=own, restored=restored, end=end
    )
    if as_json:
        print_json(_adopted_as_data(made))
    else:
        _show_adopted(made, address)


def _ask(question: str, yes: bool, as_json: bool) -> None:
    """Let the user confirm what cannot be undone; where nobody can be asked, it needs --yes."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise InvalidInput(f"{question} Say so with --yes.")
    if not typer.confirm(f"{question} Go on?", err=True):
        raise InvalidInput("nothing was changed.")


def _adopted_as_data(done: Adopted) -> dict[str, Any]:
    from taciturn.cli.budget import cost_as_data
    from taciturn.kernel.accounting.cost import total

    delta = done.ledger.privacy.delta if done.ledger is not None and done.ledger.privacy is not None else DELTA
    answer: dict[str, Any] = {
        "restored": {population: cost_as_data(cost, delta) for population, cost in done.recovered.charged.items()},
        "closed": done.recovered.closed,
        "moved": done.recovered.moved,
        "revoked_tokens": done.recovered.revoked,
    }
    if done.old is None or done.new is None:
        return answer
    answer["stream"] = done.new.name
    answer["first"] = {"lineage": done.old.lineage, "cost": cost_as_data(done.old.reserved, delta)}
    answer["second"] = {"lineage": done.new.lineage, "cost": cost_as_data(done.new.reserved, delta)}
    answer["streams"] = 1 + done.new.adopted
    answer["all"] = cost_as_data(total([done.new.earlier, done.new.reserved]), delta)
    answer["ledger"] = None if done.ledger is None else done.ledger.address
    return answer


def _show_adopted(done: Adopted, address: str) -> None:
    from taciturn.cli.budget import cost_text
    from taciturn.runs.run import SERVED
    from taciturn.store.database import Database
    from taciturn.store.overview import streams

    data = _adopted_as_data(done)
    if data["revoked_tokens"]:
        count = "1 token was" if data["revoked_tokens"] == 1 else f"{data['revoked_tokens']} tokens were"
        typer.echo(
            f"{count} live in the backup, and may have been revoked since: all are revoked. Make new ones with "
            f"taciturn token create --store {address}"
        )
    for population, cost in data["restored"].items():
        typer.echo(f"Ledger of {population}: charged epsilon = {cost_text(cost)}, which the witness knew.")
    names = {stream.lineage: stream.name for stream in streams(Database(address))}
    if "second" not in data:
        closed = ", ".join(names.get(lineage, short(lineage)) for lineage in data["closed"]) or "none"
        typer.echo(f"No stream of {address} is continued. Streams that were behind, now closed: {closed}")
        return
    assert done.old is not None
    first, second = (f"{short(data[which]['lineage'])}  epsilon = " for which in ("first", "second"))
    count = data["streams"]
    labels = "first stream ", "second stream", "both together"
    if count > 2:  # it was adopted before
        labels = "last stream  ", "new stream   ", f"all {count} together".ljust(13)
    typer.echo(f"{labels[0]}  {first}{cost_text(data['first']['cost'])}, closed, all of it counts as spent")
    typer.echo(f"{labels[1]}  {second}{cost_text(data['second']['cost'])}, continues {data['stream']!r}")
    typer.echo(f"{labels[2]}            epsilon = {cost_text(data['all'])} at delta = {data['all']['delta']:g}")
    if data["ledger"] is None:
        typer.echo("The new stream is in no ledger: nothing adds this to other models on the same people.")
    typer.echo("Models that were shown before stay public, and count for all of these streams.")
    if SERVED not in done.old.about:
        typer.echo(
            "If the folder of the run has a models.jsonl with more lines than the restored database, move it away "
            "before you resume: it is written again."
        )
    others = [lineage for lineage in data["closed"] if lineage != data["first"]["lineage"]]
    if others:
        listed = ", ".join(names.get(lineage, short(lineage)) for lineage in others)
        typer.echo(f"Also closed, as they are or may be behind; adopt each that is to go on: {listed}")


@app.command()
def archive(
    address: Address,
    name: Annotated[str, typer.Argument(help="Stream to archive; it must have ended.", show_default=False)],
    key: KeyOption = None,
    witness: WitnessOption = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Let no server show a stream that has ended, and erase its state, and the requests and events it has learnt.

    Its releases stay in the database, and its line in the ledger: what it has cost is spent. Its name stays taken.

    Example: taciturn store archive taciturn.db clicks
    """
    from taciturn.store import Store
    from taciturn.store.database import Database

    Database(address)  # a wrong address is an error, and not a new database
    _ask(f"Archiving {name} erases its state, and takes it from all servers.", yes, as_json)
    saved = Store(address, witness=witness, key=key).archive(name)
    if as_json:
        print_json({"stream": name, "lineage": saved.lineage, "releases": saved.position[2]})
    else:
        typer.echo(
            f"Archived {name}: its {saved.position[2]:,} releases stay in {address}, and servers show it no more."
        )


@app.command()
def confirm_moved(
    address: Address,
    why: Annotated[str, typer.Option(help="Reason, for the history.")] = "confirmed by the user",
    witness: WitnessOption = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Say that a database that was moved or copied is the newest, and the only one that is used from now on.

    It is recorded in the history of its ledgers. If it was restored from a backup, use taciturn store adopt instead.
    One with a witness is compared with it: if it is the newest copy, it can be used without this command.

    Example: taciturn store confirm-moved budget.db --why "new server"
    """
    from taciturn.store import witness as witnesses
    from taciturn.store.database import Database
    from taciturn.store.overview import remembered

    database = Database(address)
    about = remembered(database)
    moved = about.moved
    if about.witness:
        witnesses.accepted(database, witness)
    elif moved:
        _ask(
            f"If {address} is not the newest copy, or another one is still used, rounds are released twice.",
            yes,
            as_json,
        )
        witnesses.confirm_moved(database, why)
    if as_json:
        print_json({"address": database.address, "moved": moved})
    elif moved:
        typer.echo(f"{database.address} is accepted here. Delete the copy where it was: it can still be used there.")
    else:
        typer.echo(f"{database.address} is where it was: there was nothing to confirm.")


@app.command()
def forget_witness(
    address: Address,
    why: Annotated[str, typer.Option(help="Reason, for the history.")] = "confirmed by the user",
    witness: WitnessOption = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Give up the witness of a database, because it is lost or to be replaced.

    It is recorded in the history of its ledgers. A database that is behind a witness which can be opened is rejected.
    Name another witness with the next command that uses the database.

    Example: taciturn store forget-witness budget.db --why "its disk is lost"
    """
    from taciturn.store import witness as witnesses
    from taciturn.store.database import Database
    from taciturn.store.overview import remembered

    database = Database(address)
    about = remembered(database)
    if about.witness:
        question = f"If {address} is not the newest copy, rounds are released twice, and nothing will notice it."
        _ask(question, yes, as_json)
        witnesses.forget(database, why, witness)
    if as_json:
        print_json({"address": database.address, "had_one": bool(about.witness), "witness": about.witness_at or None})
    elif about.witness:
        typer.echo(f"{database.address} has no witness any more; it was {about.witness_at}. Name a new one: --witness.")
    else:
        typer.echo(f"{database.address} has no witness: there was nothing to forget.")


@app.command()
def new_key(
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write a random key to a file that only its owner can read. Without the key, encrypted states are lost.

    Example: taciturn store new-key taciturn.key
    """
    from taciturn.store import encryption

    key = encryption.new_key(file)
    if as_json:
        print_json({"written": str(file), "id": key.id.hex()})
    else:
        typer.echo(f"Wrote {file}, the key {key.id.hex()}. Keep a copy elsewhere, and not beside the database.")


@app.command()
def rotate_key(
    address: Address,
    new: Annotated[Path, typer.Argument(help="File of the new key.", show_default=False)],
    key: KeyOption = None,
    witness: WitnessOption = None,
    as_json: AsJson = False,
) -> None:
    """Encrypt every state of a database by a new key, in one transaction. States that were not encrypted are, then.

    Example: taciturn store rotate-key taciturn-run/stream.db new.key --key old.key
    """
    from taciturn.store.database import Database
    from taciturn.store.store import Store

    Database(address)  # a wrong address is an error, and not a new database
    count = Store(address, witness=witness, key=key).rotate_key(new)
    if as_json:
        print_json({"address": address, "streams": count})
    else:
        typer.echo(f"{count} streams are encrypted by {new}. Keep the old key for as long as there are old backups.")
