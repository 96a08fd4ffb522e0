"""`taciturn budget`: create a ledger that all processes and teams share, look at it, and verify it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.cli.output import plain_table, print_json, print_table, warn

if TYPE_CHECKING:  # imported inside commands, so that the others start fast
    from rich.table import Table

    from taciturn.accounting.history import Event
    from taciturn.accounting.ledger import Ledger
    from taciturn.kernel.accounting.cost import Cost
    from taciturn.kernel.accounting.gdp import Privacy

app = typer.Typer(help="One budget for all models that learn from the same people.", no_args_is_help=True)

Address = Annotated[str, typer.Argument(help="SQLite file, or postgresql://user@host/name.", show_default=False)]
Population = Annotated[str | None, typer.Option(help="Which ledger, if the database has several.")]
WitnessOption = Annotated[
    str | None, typer.Option(help="Database elsewhere that notices when this one was restored from a backup.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    address: Address,
    epsilon: Annotated[float, typer.Option(help="Epsilon of all models on these people together.")],
    delta: Annotated[float, typer.Option(help="Delta of all models together, well below 1 / (number of people).")],
    population: Annotated[str, typer.Option(help="Name of the people whose data is protected.")] = "people",
    neighbours: Annotated[
        Literal["replace", "zero-out", "label", "add-remove"] | None,
        typer.Option(help="Neighbour relation of all costs; by default that of the first stream."),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="Whose data is protected: example, user, or, say, user and month.")
    ] = "example",
    renews: Annotated[
        bool, typer.Option("--renews", help="Let the budget be for each period by itself: a user who stays pays again.")
    ] = False,
    witness: WitnessOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a ledger in a file, which is made if it does not exist, or in a PostgreSQL database.

    Example: taciturn budget create budget.db --epsilon 1 --delta 1e-6 --population customers
    """
    from taciturn.accounting.ledger import Ledger
    from taciturn.kernel.accounting.gdp import Privacy

    ledger = Ledger.create(
        address,
        Privacy(epsilon, delta),
        population=population,
        neighbours=neighbours,
        unit=unit,
        renews=renews,
        witness=witness,
    )
    if as_json:
        print_json(_as_data(ledger, address))
        return
    budget = f"epsilon = {epsilon:g}, delta = {delta:g} for one {unit}{', and renews' if renews else ''}"
    typer.echo(f"Created a ledger of {ledger.population} in {ledger.address}: {budget}")
    typer.echo(f'Use it: ledger="{address}" in an estimator, or taciturn learn … --ledger {address}')
    if witness is None:
        typer.echo("Without a witness some restored backups are not noticed: add --witness FILE, on another disk.")
    else:
        typer.echo(f"Its witness is {ledger.witness.address}, which it remembers: no other command has to name it.")
        warn(ledger.witness.shared())


@app.command()
def show(
    address: Address,
    population: Population = None,
    witness: WitnessOption = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file instead.", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what is reserved, spent and left, and the streams that reserved it.

    Looking changes nothing, and a copy of a ledger can be looked at, too.

    Example: taciturn budget show budget.db
    """
    ledger = _read(address, population)
    data = _as_data(ledger, address)
    data["warning"] = _warning(address, witness)
    if html is not None:
        from taciturn.kernel.atomic import replaced

        with replaced(html) as file:
            file.write(_page(data).encode())
        data["written"] = str(html)
    if as_json:
        print_json(data)
        return
    if html is not None:
        typer.echo(f"Wrote {html}.")
    else:
        _show(data)
    warn(data["warning"])


@app.command()
def history(
    address: Address,
    population: Population = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines, one for each event.")] = False,
) -> None:
    """List what was opened, charged, closed, moved and restored, by whom and when.

    Example: taciturn budget history budget.db
    """
    ledger = _read(address, population)
    assert ledger.privacy is not None
    events = ledger.history
    if as_json:
        for event in events:
            typer.echo(json.dumps({**event._asdict(), "content": _content(event)}))
        return
    table = plain_table("", ("", "when (UTC)", "who", "what", "stream"), "details")
    for event in events:
        stream = short(event.lineage)
        about = _about(event, ledger.privacy, ledger.unit)
        table.add_row(str(event.number), _time(event.at), event.who, event.kind, stream, about)
    print_table(table)


@app.command()
def verify(
    address: Address,
    population: Population = None,
    witness: WitnessOption = None,
    as_json: AsJson = False,
) -> None:
    """Check the history of a ledger, and compute every cost again from the settings in it.

    Exit status 1 if something is wrong. The history has no signature: with a witness, one that was rewritten
    consistently is noticed, too.

    Example: taciturn budget verify budget.db
    """
    from taciturn.store.database import Database
    from taciturn.store.overview import remembered

    ledger = _read(address, population)
    found = ledger.verify()
    about = remembered(Database(address))
    why = _warning(address, witness)
    watched = witness is not None or about.witness != ""
    faults = [*found.faults, *([why] if why and watched else [])]
    if as_json:
        answer = {"ok": not faults, "events": len(ledger.history), "recomputed": found.checked}
        place = {"witness": about.witness_at or None, "moved": about.moved, "warning": why}
        print_json({**answer, "not_recomputed": found.unchecked, "faults": faults, **place})
    else:
        for fault in faults:
            typer.echo(f"FAULT: {fault}")
        costs = found.checked + len(found.unchecked)
        verdict = "Not in order." if faults else "In order:"
        typer.echo(
            f"{verdict} {len(ledger.history)} events, {found.checked} of {costs} costs were computed again"
            f"{'.' if faults else ', and agree.'}"
        )
        for reason in found.unchecked:
            typer.echo(f"Not computed again: {reason}.")
        if not watched:
            warn(why)
    if faults:
        raise typer.Exit(1)


@app.command()
def close(
    address: Address,
    lineage: Annotated[str, typer.Argument(help="Stream to end; the beginning of its name is enough.")],
    population: Population = None,
    witness: WitnessOption = None,
    as_json: AsJson = False,
) -> None:
    """End a stream: nothing more can be released. What it reserved stays reserved.

    In a ledger that renews, it does not count in the periods after that of its last row.

    Example: taciturn budget close budget.db 3f9a1c02
    """
    from taciturn.accounting.ledger import Ledger
    from taciturn.errors import InvalidInput
    from taciturn.store.restore import close_stream

    ledger = Ledger(address, population=population, witness=witness)
    found = [name for name in ledger.lines if name.startswith(lineage)]
    if len(found) != 1:
        known = ", ".join(short(name) for name in (found or ledger.lines)) or "none"
        which = "several ids" if found else "no stream's id"
        raise InvalidInput(
            f"{lineage} is the beginning of {which}: {known}. Give so much of one that it is the only one; taciturn "
            "budget show lists ids and names."
        )
    was = ledger.lines[found[0]]
    here = close_stream(ledger, found[0])
    elsewhere = was.live is None and not here and not was.closed and not ledger.renews
    if as_json:
        print_json({"closed": found[0], "was_closed": was.closed, "store_elsewhere": elsewhere})
        return
    keeps = "It counts up to the period of its last row" if ledger.renews else "It keeps what it reserved"
    typer.echo(f"{short(found[0])} is closed. {keeps}.")
    if elsewhere:
        typer.echo("Its states are in a store elsewhere: what was reserved covers what it may still release there.")


# What the commands print.


def short(lineage: str) -> str:
    """The first 8 digits of a lineage, with the word before them, if there is one.

    >>> short("3f9a1c0211e04b0e9d0c9d5b7e3a7c11"), short("one-off 3f9a1c0211e04b0e9d0c9d5b7e3a7c11")
    ('3f9a1c02', 'one-off 3f9a1c02')
    """
    word, space, name = lineage.rpartition(" ")
    return f"{word}{space}{name[:8]}"


def cost_as_data(cost: Cost, delta: float) -> dict[str, Any]:
    """A cost as plain data: its epsilon at `delta` first."""
    from dataclasses import asdict

    parts = {name: part for name, part in asdict(cost).items() if part}
    return {"epsilon": cost.epsilon(delta), "delta": delta, "mu": cost.mu if cost.gaussian else None, "parts": parts}


def cost_text(cost: dict[str, Any]) -> str:
    """The same for people: epsilon, and mu in brackets; rounded up."""
    from taciturn.kernel.accounting.rounding import rounded_up

    mu = cost["mu"]
    return rounded_up(cost["epsilon"], 4) + ("" if not mu else f" (mu {rounded_up(mu, 4)})")


def _read(address: str, population: str | None) -> Ledger:
    from taciturn.store.overview import read_ledger

    return read_ledger(address, population)


def _warning(address: str, witness: str | None) -> str | None:
    from taciturn.store.database import Database
    from taciturn.store.overview import warning

    return warning(Database(address), witness)


def _as_data(ledger: Ledger, address: str) -> dict[str, Any]:
    """What `show` prints."""
    from taciturn.kernel.accounting.cost import gaussian
    from taciturn.kernel.accounting.ledger_rules import largest_mu
    from taciturn.store.database import Database
    from taciturn.store.overview import is_finished, progress, recipe_of

    privacy = ledger.privacy
    assert privacy is not None
    reserved, spent, lines, here = ledger.reserved, ledger.spent, ledger.lines, ledger.period
    entered = {event.lineage: event for event in ledger.history if event.kind in ENTERS}
    released = progress(Database(address))
    rows = []
    for lineage, line in lines.items():
        event = entered.get(lineage)
        content = {} if event is None else _content(event)
        settings = content.get("settings")
        restored = event is not None and event.kind == "restored"
        rows.append(
            {
                "lineage": lineage,
                "name": content.get("stream"),
                "recipe": "restored" if restored else recipe_of(settings),
                "reserved": cost_as_data(line.reserved, privacy.delta),
                "spent": cost_as_data(line.spent, privacy.delta),
                "closed": line.closed,
                "finished": line.finished or is_finished(settings, released.get(lineage, 0)),
                **({} if here is None else {"counts": line.holds(here)}),
                "opened": None if event is None else event.at,
                "by": None if event is None else event.who,
                "version": None if event is None else event.version,
            }
        )
    rows.sort(key=lambda row: (row["opened"] or "", entered[row["lineage"]].number if row["lineage"] in entered else 0))
    left = ledger.largest_mu
    return {
        "address": ledger.address,
        "population": ledger.population,
        "unit": ledger.unit,
        "renews": ledger.renews,
        **_periods(ledger),
        "neighbours": ledger.neighbours,
        "budget": {"epsilon": privacy.epsilon, "delta": privacy.delta, "mu": privacy.mu},
        "reserved": cost_as_data(reserved, privacy.delta),
        "spent": cost_as_data(spent, privacy.delta),
        "left": cost_as_data(gaussian(left**2), privacy.delta),
        "share_reserved": 1.0 - (left / privacy.mu) ** 2,
        "share_spent": 1.0 - (largest_mu(privacy, spent) / privacy.mu) ** 2,
        "streams": rows,
    }


def _periods(ledger: Ledger) -> dict[str, Any]:
    """What `show` prints of a ledger that renews: each period, and what a user pays who stays for a year."""
    from taciturn.kernel.accounting.unit import IN_A_YEAR

    if not ledger.renews or ledger.privacy is None:
        return {}
    delta = ledger.privacy.delta
    by_period = {name: cost_as_data(cost, delta) for name, cost in ledger.by_period().items()}
    kind = ledger.unit.removeprefix("user and ")
    cost, unknown = ledger.user_over(IN_A_YEAR[kind])
    year = {"periods": IN_A_YEAR[kind], "cost": cost_as_data(cost, delta), "not_known": unknown}
    return {"period": list(by_period)[-1], "periods": by_period, "year": year}


def _title(data: dict[str, Any]) -> str:
    budget, relation = data["budget"], data["neighbours"]
    return (
        f"{data['population']}: epsilon = {budget['epsilon']:g} at delta = {budget['delta']:g} (mu "
        f"{budget['mu']:.4g}), per {data['unit']}{f', {relation}' if relation else ''}"
        f"{', renews' if data['renews'] else ''}"
    )


def _year_text(data: dict[str, Any]) -> str:
    """What a user is promised who stays for a year."""
    from taciturn.kernel.accounting.rounding import rounded_up

    year, kind = data["year"], data["unit"].removeprefix("user and ")
    several = f"{year['periods']} {kind}s" if year["periods"] > 1 else f"a {kind}"
    epsilon = year["cost"]["epsilon"]
    known = cost_text(year["cost"]) if epsilon < float("inf") else f"inf (mu {rounded_up(year['cost']['mu'], 4)})"
    text = f"epsilon = {known} for a user with rows in {several}, if the streams that are open now stay open"
    missing = ", ".join(short(lineage) for lineage in year["not_known"])
    return text + (f"; what {missing} add{'s' * (len(year['not_known']) == 1)} is not known" if missing else "")


def _left_text(data: dict[str, Any]) -> str:
    from taciturn.kernel.accounting.rounding import rounded_down

    left = (data["left"][name] * (1.0 + 1e-9) for name in ("epsilon", "mu"))  # past the end of a bisection
    return "{} (mu {})".format(*(rounded_down(value, 4) for value in left))


ENTERS = ("opened", "charged", "adopted", "restored")  # events with which a stream or a charge begins

SHARES = "The share of the budget is that of mu², which adds up; values of epsilon do not."


def _show(data: dict[str, Any]) -> None:
    from taciturn.kernel.accounting.rounding import rounded_up

    typer.echo(_title(data))
    shares = (data["share_spent"], data["share_reserved"])
    typer.echo(f"{_bar(*shares)}  {shares[1]:.0%} reserved, {shares[0]:.0%} spent")
    typer.echo(f"reserved  epsilon = {cost_text(data['reserved'])}")
    typer.echo(f"spent     epsilon = {cost_text(data['spent'])}")
    typer.echo(f"left      epsilon = {_left_text(data)}")
    if data["renews"]:
        typer.echo(f"a year    {_year_text(data)}")
    if not data["streams"]:
        typer.echo("No stream has been opened yet.")
        return
    typer.echo(SHARES)
    if data["renews"]:
        typer.echo(f"Reserved, spent and left are those of {data['period']}; what counts in it is marked.")
        print_table(_table_of_periods(data))
    named = any(row["name"] for row in data["streams"])
    columns = ("stream", *(("name",) if named else ()), "recipe", "reserved", "spent", "", "opened (UTC)")
    table = plain_table("", columns, "by")
    for row in data["streams"]:
        costs = (rounded_up(row[which]["epsilon"], 4) for which in ("reserved", "spent"))
        name = (row["name"] or "",) if named else ()
        table.add_row(
            short(row["lineage"]), *name, row["recipe"], *costs, _state(row), _time(row["opened"]), row["by"] or ""
        )
    print_table(table)


SHOWN = 12  # periods that `show` lists


def _table_of_periods(data: dict[str, Any]) -> Table:
    table = plain_table("", (data["unit"].removeprefix("user and "),), "reserved")
    for name, cost in list(data["periods"].items())[-SHOWN:]:
        table.add_row(name, cost_text(cost))
    return table


def _state(row: dict[str, Any]) -> str:
    """Whether a stream goes on: it is closed, has released all that it can, or is open; and if it counts now."""
    state = "closed" if row["closed"] else "finished" if row["finished"] else "open"
    return state + (", counts" if row.get("counts") else "")


def _bar(spent: float, reserved: float, width: int = 40) -> str:
    """A bar of text: spent, reserved and left."""
    ends = [min(width, round(width * share)) for share in (spent, max(spent, reserved))]
    return "█" * ends[0] + "▒" * (ends[1] - ends[0]) + "·" * (width - ends[1])


def _page(data: dict[str, Any]) -> str:
    from html import escape

    from taciturn._util.html import bar, document, number, number_head, paragraph, rows, section

    sums = [
        [name, number(text)]
        for name, text in (
            ("reserved", cost_text(data["reserved"])),
            ("spent", cost_text(data["spent"])),
            ("left", _left_text(data)),
        )
    ]
    renewal = []
    if data["renews"]:
        cells = [[escape(name), number(cost_text(cost))] for name, cost in list(data["periods"].items())[-SHOWN:]]
        year = paragraph(f"A year: {_year_text(data)}. Reserved, spent and left are those of {data['period']}.")
        renewal = [section("Periods", year, rows(cells, ["", number_head("reserved")]))]
    parts = [
        f"<h1>Budget of {escape(data['population'])}</h1>",
        section(
            _title(data),
            bar(0.0, data["share_reserved"]),
            paragraph(f"{data['share_reserved']:.0%} reserved, {data['share_spent']:.0%} spent. {SHARES}", soft=True),
            rows(sums, ["", number_head("epsilon (mu)")]),
        ),
        *renewal,
    ]
    if data["warning"]:
        parts.append(section("Warning", paragraph(data["warning"]), alarm=True))
    cells = [
        [
            f"<code>{escape(short(row['lineage']))}</code>",
            escape(row["name"] or ""),
            escape(row["recipe"]),
            number(cost_text(row["reserved"])),
            number(cost_text(row["spent"])),
            _state(row),
            escape(_time(row["opened"])),
            escape(row["by"] or ""),
        ]
        for row in data["streams"]
    ]
    heads = ["stream", "name", "recipe", number_head("reserved"), number_head("spent"), "", "opened (UTC)", "by"]
    parts.append(section("Streams", rows(cells, heads) if cells else paragraph("None has been opened yet.")))
    return document(f"Budget of {data['population']}", "\n".join(parts))


def _about(event: Event, privacy: Privacy, unit: str) -> str:
    """The content of an event in a few words."""
    content = _content(event)
    try:
        return _told(event.kind, content, privacy, unit)
    except (KeyError, ValueError, TypeError, AttributeError):
        return "cannot be read"


def _told(kind: str, content: dict[str, Any], privacy: Privacy, unit: str) -> str:
    from taciturn.kernel.accounting.ledger_rules import read_cost
    from taciturn.kernel.accounting.unit import period_name
    from taciturn.store.overview import recipe_of

    if kind == "created":
        renews = f", renews every {unit.removeprefix('user and ')}" if content.get("renews") else ""
        return f"epsilon = {content['epsilon']:g}, delta = {content['delta']:g}{renews}"
    if "last" in content:
        period: Any = unit.removeprefix("user and ")
        return f"counts up to {period_name(period, content['last'])}"
    if "reserved" in content:
        cost = cost_text(cost_as_data(read_cost(content["reserved"]), privacy.delta))
        what = f"what {content['witness']} knew" if kind == "restored" else recipe_of(content.get("settings"))
        follows = f", continues {content['stream']}, {short(content['from'])}" if kind == "adopted" else ""
        return f"epsilon = {cost}: {what}{follows}"
    if kind == "moved":
        return f"{content['why']} ({content['from']} → {content['to']})"
    return ", ".join(f"{name} {value}" for name, value in content.items())


def _content(event: Event) -> dict[str, Any]:
    """The content of an event; as text, if someone has made it unreadable."""
    try:
        content = event.data
    except ValueError:
        return {"unreadable": event.content}
    return content if isinstance(content, dict) else {"unreadable": event.content}


def _time(at: str | None) -> str:
    return "" if at is None else at[:16].replace("T", " ")
