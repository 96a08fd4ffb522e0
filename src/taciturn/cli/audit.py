"""`taciturn audit`: call `taciturn.audit` and print the result; the exit status is the verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:  # imported inside the command, so that other commands start fast
    from taciturn.audit import Audit
    from taciturn.kernel.accounting.unit import Example, User

Name = Literal["pigd", "pgiga", "pocp-ftl", "pqftl", "pftrl", "private_sum", "class_sums", "linucb", "pol", "ewoo"]
Units = Literal["example", "user"]
Calibrations = Literal["exact", "paper-printed", "paper-proven"]


def audit(
    algorithm: Annotated[Name, typer.Argument(help="Algorithm to audit.")],
    epsilon: Annotated[float, typer.Option(help="Total epsilon; with the paper's calibration, its parameter.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Total delta; with the paper's calibration, its parameter.")] = 1e-6,
    rounds: Annotated[int, typer.Option(help="Number of examples in a stream.")] = 200,
    trials: Annotated[int, typer.Option(help="Number of runs on each of the two streams.")] = 20_000,
    ridge: Annotated[float, typer.Option(help="Strong convexity of the losses.", metavar="A")] = 0.1,
    calibration: Annotated[Calibrations, typer.Option(help="Calibration of the noise.")] = "exact",
    unit: Annotated[Units, typer.Option(help="Whose data differs: one example, or all rows of one user.")] = "example",
    rows_per_user: Annotated[
        int | None, typer.Option(help="With --unit user: most rows of a user that count.", metavar="K")
    ] = None,
    rows_per_release: Annotated[
        int | None, typer.Option(help="Most of them between two releases; K, or 1 with --apart.", metavar="M")
    ] = None,
    apart: Annotated[
        int | None, typer.Option(help="Releases from one block with rows of a user to the next.", metavar="B")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the test statistic on the two streams.", metavar="FILE")
    ] = None,
) -> None:
    """Audit a privacy claim: run an algorithm on its two worst-case neighbouring streams, and try to distinguish them.

    Exit status 0 if the claim holds, 1 if it is refuted, 2 if there is nothing to audit, 3 after an internal error.

    Example: taciturn audit pqftl --epsilon 1 --delta 1e-6 --unit user --rows-per-user 4
    """
    from taciturn import audit as audits
    from taciturn._util.output import json_text
    from taciturn.kernel.accounting.gdp import Privacy
    from taciturn.reproduce.plots import audit_histograms, check_file

    if plot is not None:
        check_file(plot)
    settings: Any = {"rounds": rounds, "trials": trials, "ridge": ridge, "calibration": calibration}
    settings["unit"] = _unit(unit, rows_per_user, rows_per_release, apart)
    report = audits.audit(algorithm, Privacy(epsilon, delta), **settings, before_each=_tell)
    if as_json:
        typer.echo(json_text(report.as_data()))
    else:
        _show(report)
    if plot is not None:
        worst = report.worst.finding
        whose = ", all rows of a user" if unit == "user" else ""
        title = f"{algorithm}, {calibration} noise{whose}: {report.verdict}"
        audit_histograms(*worst.statistic, worst.claimed_mu, title, plot)
    if report.verdict == "refuted":
        raise typer.Exit(1)


def _unit(unit: Units, rows: int | None, per_release: int | None, apart: int | None) -> Example | User:
    """The unit of privacy of these options."""
    from taciturn.errors import InvalidInput
    from taciturn.kernel.accounting.unit import Example, User

    if unit == "user":
        if rows is None:
            raise InvalidInput("--unit user needs --rows-per-user, the most rows of a user that count, such as 4.")
        return User(rows, per_release, 1 if apart is None else apart)
    if not (rows is per_release is apart is None):
        raise InvalidInput("--rows-per-user, --rows-per-release and --apart bound the rows of a user. Add --unit user.")
    return Example()


def _tell(game: str) -> None:
    """Print the progress at a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"{game} …", err=True)


def _show(report: Audit) -> None:
    from rich.console import Console

    from taciturn.cli.output import audit_table
    from taciturn.kernel.accounting.unit import User

    console = Console()
    data = report.as_data()
    user = isinstance(report.unit, User)
    claim = f"({data['claimed_epsilon']:g}, {data['claimed_delta']:g})-differential privacy"
    claim += " for a user" if user else ""
    low, high = data["interval"]
    console.print(audit_table(data))
    if user:
        console.print(
            f"The two streams differ in all rows of one user; claims are for {report.unit}. The user owns more rows, "
            "which differ too and must have no influence. They begin at the first release, in the middle, so that the "
            "last of them counts at the end, or lie anywhere.",
            highlight=False,
        )
    console.print(
        f"Claimed: {claim}, mu = {data['claimed_mu']:.4g}. Audited: mu = {data['audited_mu']:.4g}, between {low:.4g} "
        f"and {high:.4g} (error {report.error:g}); that is epsilon = {data['audited_epsilon']:.3g} at this delta.",
        highlight=False,
    )
    if report.verdict == "holds":
        console.print("The claim [bold]holds[/bold]: the audit does not contradict it.", highlight=False)
    if data["says_little"]:
        console.print(
            "The audit is inconclusive: mu may be 0, or far above the claim. Increase --trials.", highlight=False
        )
    for violation in data["violations"]:
        console.print(f"[bold red]REFUTED[/bold red]: {violation}.", highlight=False)
