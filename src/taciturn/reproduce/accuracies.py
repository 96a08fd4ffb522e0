"""Accuracies of several seeds as rows: mean and deviation, and what was claimed and delivered beside. NOT PRIVATE."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context

from taciturn.report.accuracies import Curve
from taciturn.reproduce.experiment import Row
from taciturn.reproduce.runs import Result, Settings


def mean_rows(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for settings that differ in their seed alone, in the order of the plan.

    >>> mean_rows([{"method": "a", "seed": 1}, {"method": "a", "seed": 2}], [{"accuracy": 0.5}, {"accuracy": 0.75}])
    [{'method': 'a', 'accuracy': 0.625, 'deviation': 0.1767766952966369, 'seeds': 2}]
    """
    groups: dict[tuple[tuple[str, object], ...], list[Result]] = {}
    for settings, result in zip(plan, results, strict=True):
        key = tuple((name, value) for name, value in settings.items() if name != "seed")
        groups.setdefault(key, []).append(result)
    return [dict(key) | _mean(group) for key, group in groups.items()]


def _mean(results: Sequence[Result]) -> Row:
    """Deviation between runs, as of a sample; of one run there is none."""
    found = [result["accuracy"] for result in results]
    row: Row = {name: value for name, value in results[0].items() if name != "accuracy"}
    deviation = statistics.stdev(found) if len(found) > 1 else None
    return row | {"accuracy": statistics.fmean(found), "deviation": deviation, "seeds": len(found)}


def percent(row: Row) -> str:
    """Mean and deviation for people.

    >>> percent({"accuracy": 0.7468, "deviation": 0.0035}), percent({"accuracy": 0.7, "deviation": None})
    ('74.7±0.4', '70.0')
    """
    spread = "" if row["deviation"] is None else f"±{100.0 * row['deviation']:.1f}"
    return f"{100.0 * row['accuracy']:.1f}{spread}"


def rounded_up(epsilon: float) -> str:
    """Three digits, none of them to our advantage.

    >>> rounded_up(6.6533), rounded_up(55592.03)
    ('6.66', '55,600')
    """
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(epsilon)):,g}"


def curve(rows: Sequence[Row], by: str, line: str = "-") -> Curve:
    """Rows against one of their columns; a single one without a value there is a level."""
    if rows[0][by] is None:
        return Curve((), (rows[0]["accuracy"],), line=":")
    places, means = tuple(row[by] for row in rows), tuple(row["accuracy"] for row in rows)
    return Curve(places, means, tuple(row["deviation"] or 0.0 for row in rows), line)
