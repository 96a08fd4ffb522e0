"""Accuracies of offline methods as rows for machines, as tables for people, and as a picture. NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.report.accuracies import Curve, Panel, accuracy_panels
from taciturn.reproduce.accuracies import curve, mean_rows, percent
from taciturn.reproduce.experiment import Row
from taciturn.reproduce.runs import Result, Settings

if TYPE_CHECKING:
    from rich.table import Table

NAMES = {"adult": "Adult", "covertype": "Covertype, class 2"}
TITLE = "Offline learning on Adult and Covertype"
CAPTION = (
    "Accuracy on a held-out tenth against epsilon, and against the number of features, random public directions but "
    "for the last, which is all of them. What to see: the mean of iterates, the paper's choice, moves most with one "
    "example and needs most noise; the last iterate does as well as output perturbation, for a tenth of the work; "
    "objective perturbation is best where the budget is small, and all but the mean meet where it is large. Seeded "
    "simulations: not private."
)
PAPER_SAYS = (
    "Section 4.2 compares bounds and has no figures: it says that POL covers more problems and has better error bounds "
    "than Chaudhuri, Monteleoni and Sarwate. The first holds (kinked losses, constraints); here, on logistic loss, "
    "objective perturbation is the more accurate."
)


def table(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each data set, method, budget and dimension: the mean over seeds."""
    return mean_rows(plan, results)


def show(rows: Sequence[Row]) -> list[Table | str]:
    """For each data set a table by epsilon, and one by dimension."""
    tables = [made(rows, data) for data in dict.fromkeys(row["data"] for row in rows) for made in (_budgets, _sizes)]
    return [
        *tables,
        f"Accuracy in percent, mean ± deviation of seeds: {rows[0]['seeds']}; delta = {rows[0]['delta']:g}. Every "
        "method delivers the epsilon it stands under, for one example replaced, if its noise is secret. Seeded "
        "simulations, scored on exact rows: not private.",
    ]


def _budgets(rows: Sequence[Row], data: str) -> Table:
    chosen = [row for row in rows if row["data"] == data and row["dimension"] is None]
    first = chosen[0]
    title = f"{NAMES[data]}: {first['examples']:,} examples, {first['features']} features, by epsilon"
    return _table(chosen, "epsilon", f"{title} (always the same answer: {100.0 * first['constant']:.1f})")


def _sizes(rows: Sequence[Row], data: str) -> Table:
    chosen = _at_one_budget(rows, data)
    return _table(chosen, "features", f"{NAMES[data]}, epsilon = {chosen[0]['epsilon']:g}, by number of features")


def _table(rows: Sequence[Row], by: str, title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for name in (by, *(f"{place:g}" for place in dict.fromkeys(row[by] for row in rows))):
        made.add_column(name, justify="left" if name == by else "right", no_wrap=True)
    for method, found in _by_method(rows).items():
        made.add_row(method, *map(percent, found))
    return made


def _at_one_budget(rows: Sequence[Row], data: str) -> list[Row]:
    """Those of the epsilon at which there are dimensions."""
    at = next(row["epsilon"] for row in rows if row["dimension"] is not None)
    return [row for row in rows if row["data"] == data and row["epsilon"] == at]


def _by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["method"], []).append(row)
    return found


def draw(rows: Sequence[Row], path: Path) -> None:
    """A row of panels for each data set: against epsilon, and against the number of features."""
    panels = []
    for data in dict.fromkeys(row["data"] for row in rows):
        budgets = [row for row in rows if row["data"] == data and row["dimension"] is None]
        sizes = _at_one_budget(rows, data)
        at = f"{NAMES[data]}, epsilon = {sizes[0]['epsilon']:g}"
        all_of_them = f"{NAMES[data]}, {budgets[0]['features']} features"
        panels.append(
            [
                Panel(all_of_them, "epsilon", _curves(budgets, "epsilon")),
                Panel(at, "number of features", _curves(sizes, "features")),
            ]
        )
    accuracy_panels(panels, f"Offline learning, delta = {rows[0]['delta']:g}, seeds: {rows[0]['seeds']}", path)


def _curves(rows: Sequence[Row], by: str) -> dict[str, Curve]:
    level = Curve((), (rows[0]["constant"],), line=":")
    return {**{name: curve(found, by) for name, found in _by_method(rows).items()}, "always the same answer": level}
