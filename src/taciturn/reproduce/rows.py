"""Rows of results: runs grouped over their seeds, means and medians of them, and the tables that print them."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.reproduce.plots import Curve

if TYPE_CHECKING:
    from rich.table import Table

Settings = dict[str, Any]
"""Everything that a run depends on, as plain data."""
Result = dict[str, Any]
"""The result of a run, as plain data."""
Row = dict[str, Any]
"""A row of the table, by column; all rows have the same columns."""


def over_seeds(plan: Sequence[Settings], results: Sequence[Result]) -> list[tuple[Settings, list[Result]]]:
    """Settings without their seed, each with the results of all its seeds, in the order of the plan.

    >>> over_seeds([{"T": 9, "seed": 1}, {"T": 9, "seed": 2}], [{"regret": 3.0}, {"regret": 4.0}])
    [({'T': 9}, [{'regret': 3.0}, {'regret': 4.0}])]
    """
    groups: dict[tuple[tuple[str, object], ...], list[Result]] = {}
    for settings, result in zip(plan, results, strict=True):
        key = tuple((name, value) for name, value in settings.items() if name != "seed")
        groups.setdefault(key, []).append(result)
    return [(dict(key), group) for key, group in groups.items()]


def by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each method, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["method"], []).append(row)
    return groups


def median_and_range(values: Sequence[float]) -> Row:
    """The median of an average regret over seeds, its range, and the number of seeds."""
    return {
        "average_regret": statistics.median(values),
        "least": min(values),
        "most": max(values),
        "seeds": len(values),
    }


def mean_accuracies(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for settings that differ in their seed only: mean accuracy, and standard deviation if there are two seeds.

    >>> mean_accuracies([{"a": 0, "seed": 1}, {"a": 0, "seed": 2}], [{"accuracy": 0.5}, {"accuracy": 0.75}])
    [{'a': 0, 'accuracy': 0.625, 'sd': 0.1767766952966369, 'seeds': 2}]
    """
    rows = []
    for settings, group in over_seeds(plan, results):
        accuracies = [result["accuracy"] for result in group]
        row: Row = settings | {name: value for name, value in group[0].items() if name != "accuracy"}
        sd = statistics.stdev(accuracies) if len(accuracies) > 1 else None
        rows.append(row | {"accuracy": statistics.fmean(accuracies), "sd": sd, "seeds": len(accuracies)})
    return rows


def percent(row: Row) -> str:
    """Mean and standard deviation of an accuracy, in percent.

    >>> percent({"accuracy": 0.7468, "sd": 0.0035}), percent({"accuracy": 0.7, "sd": None})
    ('74.7±0.4', '70.0')
    """
    spread = "" if row["sd"] is None else f"±{100.0 * row['sd']:.1f}"
    return f"{100.0 * row['accuracy']:.1f}{spread}"


ACCURACY = "accuracy on held-out rows (%)"
"""Name of the axis of `accuracy_curve`."""


def accuracy_curve(rows: Sequence[Row], by: str, line: str = "-") -> Curve:
    """Accuracies in percent against a column; a row without a value there is a horizontal line."""
    if rows[0][by] is None:
        return Curve((), [100.0 * rows[0]["accuracy"]], line=":")
    accuracies = [100.0 * row["accuracy"] for row in rows]
    return Curve([row[by] for row in rows], accuracies, [100.0 * (row["sd"] or 0.0) for row in rows], line)


def by_budget(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    cells: Callable[[Any], list[str]],
    **look: Any,
) -> Table:
    """A table of rows with a section for each budget; a row whose claim is broken is red."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", **look)
    for name in columns:
        made.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    for _, group in groupby(rows, key=lambda row: row["epsilon"]):
        made.add_section()
        for row in group:
            made.add_row(*cells(row), style="red" if row["proven"] is False else "")
    return made


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Rows below a line of names; numbers in full, so that equal results make equal files."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
