"""`taciturn privacy` and `taciturn errata`: the noise that a budget needs, and the privacy of the paper's constants."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # imported inside commands, so that the others start fast
    from taciturn.calibration import errata as paper_errata
    from taciturn.calibration import paper
    from taciturn.kernel.accounting.gdp import Privacy


def privacy(
    epsilon: Annotated[float, typer.Option(help="Total epsilon of everything that is published.")],
    delta: Annotated[float, typer.Option(help="Total delta, well below 1 / (number of people).")],
    releases: Annotated[int, typer.Option(help="Number of releases, all with the same noise.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the noise that a budget needs, and compare it with the paper's.

    Example: taciturn privacy --epsilon 1 --delta 1e-6 --releases 100000
    """
    from taciturn._util.output import json_text
    from taciturn.kernel.accounting.gdp import Privacy

    answer = _privacy(Privacy(epsilon, delta), releases)
    if as_json:
        typer.echo(json_text(answer))
    else:
        _show_privacy(answer)


def _privacy(budget: Privacy, releases: int) -> dict[str, Any]:
    """The answer of `taciturn privacy` as plain data."""
    from taciturn.kernel.accounting.gdp import noise_multiplier

    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "releases": releases,
        "mu": budget.mu,
        "noise_multiplier": noise_multiplier(budget, releases),
        "paper": {reading: _paper(budget, releases, reading) for reading in ("printed", "proven")},
    }


def _paper(budget: Privacy, releases: int, reading: paper.Reading) -> dict[str, float]:
    """POCP at T = releases, with corrected sensitivity and the parameters for which its theorem claims the budget."""
    from taciturn.calibration import paper

    parameters = paper.parameters_claiming(budget)
    cost = paper.delivered(parameters, releases, reading)
    return {
        "parameter_epsilon": parameters.epsilon,
        "parameter_delta": parameters.delta,
        "noise_multiplier": paper.noise_multiplier(parameters, releases, reading),
        "delivered_mu": cost.mu,
        "delivered_epsilon": cost.epsilon(budget.delta),
    }


def _show_privacy(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{answer['releases']:,} Gaussian releases of equal cost", title_justify="left")
    table.add_column("noise chosen by")
    table.add_column("noise / sensitivity", justify="right")
    table.add_column(f"epsilon delivered at delta = {answer['delta']:g}", justify="right")
    table.add_row("taciturn, exactly", f"{answer['noise_multiplier']:.5g}", f"{answer['epsilon']:.5g}")
    for reading, values in answer["paper"].items():
        name = f"POCP of the paper, as {reading}"
        table.add_row(name, f"{values['noise_multiplier']:.5g}", f"{values['delivered_epsilon']:.5g}")
    console = Console()
    console.print(f"({answer['epsilon']:g}, {answer['delta']:g})-differential privacy allows mu = {answer['mu']:.6f}.")
    console.print(table)
    console.print(
        "The rows of the paper use its own parameters (epsilon/3, delta/2), for which its theorem claims this budget, "
        "and the corrected sensitivity."
    )


def errata(
    everything: Annotated[bool, typer.Option("--all", help="Show the full grid, one table per setting.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the full grid as JSON.")] = False,
) -> None:
    """Compare the privacy that the paper's constants deliver with what its theorems claim.

    Without --all, one setting is shown: T = 100000, epsilon = 1, delta = 1e-6.

    Example: taciturn errata
    """
    from taciturn._util.output import json_text
    from taciturn.calibration import errata as paper_errata

    rows = paper_errata.table() if everything or as_json else paper_errata.table([100_000], [1.0], [1e-6])
    if as_json:
        typer.echo(json_text([asdict(row) for row in rows]))
    else:
        _show_errata(rows)


def _show_errata(rows: list[paper_errata.Erratum]) -> None:
    from rich.console import Console

    from taciturn.cli.output import errata_table

    console = Console()
    for _, group in groupby(rows, key=lambda row: (row.T, row.epsilon, row.delta)):
        console.print(errata_table(list(group)))
    broken = sum(not row.holds for row in rows)
    console.print(
        f"{broken} of {len(rows)} claims are broken. Delivered is the exact epsilon at the claimed delta, for the "
        "worst two streams that differ in one example. The page Errata of the documentation explains and corrects them."
    )
