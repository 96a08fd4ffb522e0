"""Average regrets as rows for machines, as a table for people, and as a picture. NOT PRIVATE: see `regret_table`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.report.numbers import rounded_up
from taciturn.report.plots import budget_curves
from taciturn.reproduce.experiment import Row
from taciturn.reproduce.runs import Result, Settings

if TYPE_CHECKING:
    from rich.table import Table

_WITH_TARGETS = {"horizon": 100_000, "dimension": 10, "alpha": 1.0, "radius": 0.5, "delta": 1e-6}
TARGETS: Mapping[str, Mapping[float | None, float]] = {
    "PQFTL as printed": {0.01: 2e2, 0.1: 1e3, 1.0: 4e1, 10.0: 1e1},
    "PQFTL, the paper's noise": {0.01: 4.4e-2, 0.1: 1.5e-2, 1.0: 4.5e-3, 10.0: 1.3e-3},
    "PQFTL, tree": {0.01: 5.0e-2, 0.1: 6.8e-3, 1.0: 6.8e-4, 10.0: 6.9e-5},
    "PQFTL, BLT": {0.01: 2.3e-2, 0.1: 2.6e-3, 1.0: 2.5e-4, 10.0: 2.9e-5},
    "PQFTL, BLT, geometric(1.1)": {0.01: 1.3e-2, 0.1: 1.5e-3, 1.0: 1.7e-4, 10.0: 2.4e-5},
    "FTRL, BLT": {0.01: 2.0e-2, 0.1: 2.3e-3, 1.0: 2.4e-4, 10.0: 2.2e-5},
    "POCP over FTL": {0.01: 0.14, 0.1: 0.14, 1.0: 5.5e-2, 10.0: 3.7e-3},
    "FTL, not private": {None: 3.7e-6},
    "predicting 0": {None: 3.1e-3},
}
"""Figures of a prototype in NumPy: medians of three seeds, the square root in BLT's place, noise without rounding. What
is measured should be near them, or less; as printed the regret has no mean, and they say little."""


def table(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each problem, budget and method: medians over seeds, methods without privacy last."""
    groups: dict[tuple[tuple[str, object], ...], list[tuple[Settings, Result]]] = {}
    for settings, result in zip(plan, results, strict=True):
        key = tuple((name, value) for name, value in settings.items() if name != "seed")
        groups.setdefault(key, []).append((settings, result))
    rows = [_row(group) for group in groups.values()]
    problems = list(dict.fromkeys(map(_problem, rows)))
    return sorted(rows, key=lambda row: (problems.index(_problem(row)), math.inf if _free(row) else row["epsilon"]))


def _row(group: Sequence[tuple[Settings, Result]]) -> Row:
    settings, first = group[0]
    regrets = [result["average_regret"] for _, result in group]
    asked = ("alpha", "radius", "horizon", "dimension", "epsilon", "delta", "method")
    row = {name: settings[name] for name in asked} | {name: first[name] for name in ("delivered_epsilon", "proven")}
    row |= {"average_regret": statistics.median(regrets), "least": min(regrets), "most": max(regrets)}
    comparable = all(row[name] == value for name, value in _WITH_TARGETS.items())
    return row | {"seeds": len(regrets), "target": TARGETS[row["method"]][row["epsilon"]] if comparable else None}


def _problem(row: Row) -> tuple[float, float]:
    return row["alpha"], row["radius"]


def _free(row: Row) -> bool:
    """Whether it is a method without privacy."""
    return row["epsilon"] is None


def show(rows: Sequence[Row]) -> list[Table | str]:
    """A table of average regret for each problem, budgets apart; a claim that is broken is red."""
    return [
        *(_table(list(group)) for _, group in groupby(rows, key=_problem)),
        "Average regret, the median over seeds (least and most: in the files). Seeded simulations, and regret looks at "
        "exact examples: not private. Delivered is the epsilon that the noise provably gives at this delta, if it is "
        "secret." + (" Targets are figures of a prototype in NumPy." if any(row["target"] for row in rows) else ""),
    ]


def _table(rows: Sequence[Row]) -> Table:
    from taciturn.report.tables import by_budget

    first = rows[0]
    title = (
        f"T = {first['horizon']:,}, d = {first['dimension']}, alpha = {first['alpha']:g}, radius {first['radius']:g}, "
        f"delta = {first['delta']:g}, seeds: {first['seeds']}"
    )
    target = ["target"] if any(row["target"] for row in rows) else []
    return by_budget(title, ("epsilon", "method", "delivered", "regret", *target), rows, _cells)


def _cells(row: Row) -> list[str]:
    budget, delivered = ("", "") if _free(row) else (f"{row['epsilon']:g}", rounded_up(row["delivered_epsilon"]))
    broken = " BROKEN" if row["proven"] is False else ""
    regrets = [f"{row[name]:.1e}" for name in ("average_regret", "target") if row[name] is not None]
    return [budget, row["method"], delivered + broken, *regrets]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Average regret against epsilon, a panel for each problem, a line for each method."""
    panels: dict[str, dict[str, dict[float | None, float]]] = {}
    for row in rows:
        panel = panels.setdefault(f"alpha = {row['alpha']:g}, radius {row['radius']:g}", {})
        panel.setdefault(row["method"], {})[row["epsilon"]] = row["average_regret"]
    budget_curves(panels, f"Synthetic regression, T = {rows[0]['horizon']:,}, delta = {rows[0]['delta']:g}", path)
