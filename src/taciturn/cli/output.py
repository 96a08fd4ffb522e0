"""What several commands share: the parser of an integer, warnings, tables and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:  # imported inside functions, so that commands start fast
    from rich.table import Table

    from taciturn.calibration.errata import Erratum


def integral(text: str) -> int:
    """Parse an integer option: digits, or a number such as 5e3.

    >>> integral("5e3"), integral("100000")
    (5000, 100000)
    """
    from taciturn.columns.values import number_of

    try:
        return int(text)
    except ValueError:
        value = number_of(text)
    if value != value or value != int(value):
        raise typer.BadParameter(f"{text!r} is not a valid integer.")
    return int(value)


def warn(sentence: str | None) -> None:
    """Print a warning, if there is one, on standard error."""
    if sentence:
        typer.echo(f"taciturn: warning: {sentence}", err=True)


def errata_table(rows: Sequence[Erratum]) -> Table:
    """A table of the errata for one horizon and one pair of parameters; a broken claim is red and says BROKEN."""
    from rich.table import Table

    first = rows[0]
    table = Table(
        title=f"T = {first.T:,}, the paper's parameters epsilon = {first.epsilon:g}, delta = {first.delta:g}",
        title_justify="left",
    )
    for name in ("algorithm", "as"):
        table.add_column(name, no_wrap=True)
    for name in ("alpha", "claimed", "delivered epsilon", "mu"):
        table.add_column(name, justify="right")
    table.add_column("claim", no_wrap=True)
    for row in rows:
        alpha = "" if row.alpha is None else f"{row.alpha:g}"
        claim = f"({row.claimed_epsilon:g}, {row.claimed_delta:g})"
        cells = (alpha, claim, f"{row.delivered_epsilon:.3g}", f"{row.delivered_mu:.3g}")
        verdict, style = ("holds", "") if row.holds else ("BROKEN", "red")
        table.add_row(row.algorithm, row.reading, *cells, verdict, style=style)
    return table


def audit_table(report: Mapping[str, Any]) -> Table:
    """A table of the games of an audit, from `taciturn.audit.Audit.as_data`; a game that refutes the claim is red."""
    from rich import box
    from rich.table import Table

    title = f"{report['algorithm']}, {report['calibration']} noise, {report['rounds']:,} rounds"
    table = Table(title=title, title_justify="left", box=box.SIMPLE, show_edge=False, padding=0)
    table.add_column("neighbours", no_wrap=True)
    table.add_column("what differs")  # wrapped in a narrow terminal, so that numbers are not cut
    for name in ("trials", "shift", "spread", "mu", "between"):
        table.add_column(name, justify="right", no_wrap=True)
    for game in report["games"]:
        adversary = f", adaptive, {game['rounds']} rounds" if game["adaptive"] else ""
        shift = "–" if report["algorithm"] == "ewoo" else f"{game['shift']:.3g}"  # winners have none
        result = [shift, *(f"{game[name]:.3g}" for name in ("spread", "audited_mu"))]
        between = "–".join(f"{end:.3g}" for end in game["interval"])
        style = "red" if game["verdict"] == "refuted" else ""
        who = game["neighbours"], game["changed"] + adversary, f"{game['trials']:,}"
        table.add_row(*who, *result, between, style=style)
    return table


def plain_table(title: str, names: tuple[str, ...], last: str) -> Table:
    """An empty table with columns of these names, and a last one that may be long."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        right = name in ("reserved", "spent")
        wraps = name in ("recipe", "name", "spent mu")
        table.add_column(name, justify="right" if right else "left", no_wrap=not wraps)
    table.add_column(last, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table on standard output."""
    from rich.console import Console

    Console().print(table, highlight=False, markup=False)


def print_json(data: Any) -> None:
    """Print data on standard output, as JSON."""
    from taciturn._util.output import json_text

    typer.echo(json_text(data))
