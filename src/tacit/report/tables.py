"""Tables for the terminal; they print what other modules computed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from tacit.accounting.errata import Erratum


def errata_table(rows: Sequence[Erratum]) -> Table:
    """The rows of one horizon and one pair of parameters; what does not hold is red and says BROKEN."""
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
