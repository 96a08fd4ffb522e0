"""A plan for the terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from taciturn.plan import Plan
from taciturn.runs.report import left_out


def plan_report(made: Plan) -> list[RenderableType]:
    """Which method and why, its settings, the noise to expect, and whether anything can be learnt."""
    data = made.as_data()
    table = Table("setting", "value")
    for name in ("mechanism", "schedule", "horizon", "releases", "model", "ridge", "radius"):
        table.add_row(name, escape(f"{data[name]}"))
    table.add_row("burn-in", "none" if made.burn_in is None else f"{made.burn_in:,} rounds")
    noise = Table("strategy", f"noise on an entry of {made.noise_on}, last release")
    for name, sd in made.noise.items():
        noise.add_row(escape(name), f"{sd:.4g}")
    verdict = made.warning or "From the burn-in on, the data can outweigh the noise."
    missing = [escape(left_out(made.not_compared))] if made.not_compared else []
    return [f"[bold]{made.method}[/bold]: {made.why}.", table, noise, *missing, verdict]
