"""Average regret against the number of examples: a run, the rows of many, a table and a picture. NOT PRIVATE.

The average regret after t examples is the mean loss of the points played so far above that of the best fixed point *of
those t examples*, so a curve is the paper's average regret at every horizon up to T.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn import QFTL, Private, Problem, Releases
from taciturn._util.arrays import Array, Integers
from taciturn.averages import late_averages
from taciturn.plan import Plan
from taciturn.regret import Record, replay
from taciturn.report.numbers import rounded_up
from taciturn.report.plots import Panel, PanelRow, regret_curves
from taciturn.reproduce.contenders import PRINTED
from taciturn.reproduce.experiment import Row
from taciturn.reproduce.runs import Result, Settings

if TYPE_CHECKING:
    from rich.table import Table

BURNS_IN = "PQFTL, BLT"
"""The curve whose burn-in is drawn."""


def checkpoints(horizon: int, count: int = 60) -> Integers:
    """Rounds to measure at, evenly spaced on a logarithmic axis, the last one the horizon.

    >>> checkpoints(100, 5)
    array([  1,   3,  10,  32, 100])
    """
    return np.unique(np.geomspace(1, horizon, count).round().astype(np.int64))


def play(private: Private, problem: Problem, X: Any, y: Any, averages: bool = False) -> Record:
    """Learn one stream, and play it again with the points released, or with their late averages."""
    _, releases = private.run(private.start(), X, y)
    if averages:
        points = late_averages(releases)
        releases = Releases(releases.rounds, 1, releases.noisy, points, releases.noise_sd, releases.simulated)
    return replay(problem, releases, X, y)


def result(record: Record, minima: Array, private: Private | None) -> Result:
    """Average regret at the checkpoints, and the exact budget that the same settings give with noise that is secret."""
    rounds = checkpoints(len(record.losses))
    regrets = [float(regret) for regret in record.average_regrets(rounds, minima)]
    found: Result = {"t": rounds.tolist(), "average_regret": regrets}
    if private is None:
        return found | dict.fromkeys(("delivered_epsilon", "proven", "burn_in"))
    guarantee, repaired = private.guarantee, type(private.learner) is QFTL and private.calibration == "exact"
    burn_in = _burn_in(replace(private, seed=None)) if repaired else None
    return found | {"delivered_epsilon": guarantee.epsilon, "proven": guarantee.proven, "burn_in": burn_in}


@lru_cache(maxsize=64)
def _burn_in(private: Private) -> int | None:
    """From which round on points are more than noise (`taciturn.plan`)."""
    return Plan("pqftl", private, "").burn_in


def table(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each stream, budget, method and checkpoint, in this order: medians over seeds.

    `below_printed_since` is the first checkpoint from which on a curve lies below that of the printed algorithm at the
    same parameters, at every later one; None if it ends above, and for methods without privacy.
    """
    groups: dict[tuple[tuple[str, object], ...], list[Result]] = {}
    for settings, found in zip(plan, results, strict=True):
        groups.setdefault(tuple((name, value) for name, value in settings.items() if name != "seed"), []).append(found)
    medians = {key: _medians(group) for key, group in groups.items()}
    rows: list[Row] = []
    for key, group in groups.items():
        settings, first = dict(key), group[0]
        rival = medians.get(tuple((name, PRINTED if name == "method" else value) for name, value in key))
        since = _below_since(first["t"], medians[key], rival) if rival else None
        same = settings | {name: first[name] for name in ("delivered_epsilon", "proven", "burn_in")}
        for t, regret, runs in zip(first["t"], medians[key], _by_round(group), strict=True):
            measured = {"t": t, "average_regret": regret, "least": min(runs), "most": max(runs), "seeds": len(runs)}
            rows.append(same | {"below_printed_since": since} | measured)
    streams = list(dict.fromkeys(map(stream_of, rows)))
    return sorted(rows, key=lambda row: (streams.index(stream_of(row)), row["epsilon"] or math.inf))


def _by_round(found: Sequence[Result]) -> list[tuple[float, ...]]:
    return list(zip(*(one["average_regret"] for one in found), strict=True))


def _medians(found: Sequence[Result]) -> list[float]:
    return [statistics.median(runs) for runs in _by_round(found)]


def _below_since(rounds: Sequence[int], ours: Sequence[float], printed: Sequence[float]) -> int | None:
    above = [i for i, (mine, theirs) in enumerate(zip(ours, printed, strict=True)) if not mine < theirs]
    return next(iter(rounds[above[-1] + 1 :] if above else rounds), None)


def stream_of(row: Row) -> tuple[str, float]:
    """What the row was measured on: a stream and a ridge."""
    return row["stream"], row["alpha"]


def show(rows: Sequence[Row]) -> list[Table | str]:
    """Average regret after the whole stream, a table for each stream; a claim that is broken is red."""
    last = [row for row in rows if row["t"] == row["horizon"]]
    return [
        *(_table(list(group)) for _, group in groupby(last, key=stream_of)),
        "Average regret after T examples against the best fixed point, the median over seeds; all t: in the files. "
        "Burn-in: the round from which on points are more than noise. Below: from this t on, at every t that was "
        "measured, regret is less than that of the paper's algorithm as printed. Delivered is the epsilon that the "
        "noise provably gives at this delta, if it is secret. Seeded simulations, and regret looks at exact examples: "
        "not private.",
    ]


def _table(rows: Sequence[Row]) -> Table:
    from rich import box

    from taciturn.report.tables import by_budget

    title = f"{heading(rows[0])}, delta = {rows[0]['delta']:g}, seeds: {rows[0]['seeds']}"
    columns = ("epsilon", "method", "delivered", "regret", "burn-in", "below")
    return by_budget(title, columns, rows, _cells, box=box.SIMPLE, show_edge=False)


def heading(row: Row) -> str:
    """What a row was measured on, in words."""
    shape = f"T = {row['horizon']:,}, d = {row['dimension']}"
    return f"{row['stream']}: {shape}, alpha = {row['alpha']:g}, radius {row['radius']:g}"


def _cells(row: Row) -> list[str]:
    free = row["epsilon"] is None
    budget, delivered = ("", "") if free else (f"{row['epsilon']:g}", rounded_up(row["delivered_epsilon"]))
    rounds = ["" if row[name] is None else f"{row[name]:,}" for name in ("burn_in", "below_printed_since")]
    broken = " BROKEN" if row["proven"] is False else ""
    return [budget, row["method"], delivered + broken, f"{row['average_regret']:.1e}", *rounds]


def draw(rows: Sequence[Row], title: str, path: Path) -> None:
    """A row of panels for each stream, a panel for each epsilon, a curve for each method."""
    regret_curves([_panels(list(group)) for _, group in groupby(rows, key=stream_of)], title, path)


def _panels(rows: Sequence[Row]) -> PanelRow:
    curves: dict[tuple[float | None, str], list[Row]] = {}
    for row in rows:
        curves.setdefault((row["epsilon"], row["method"]), []).append(row)
    panels = []
    for epsilon in dict.fromkeys(epsilon for epsilon, _ in curves if epsilon is not None):
        shown = {method: found for (budget, method), found in curves.items() if budget in (epsilon, None)}
        mark = next((found[0]["burn_in"] for method, found in shown.items() if method == BURNS_IN), None)
        lines = {method: _line(found) for method, found in shown.items()}
        panels.append(Panel(f"ε = {epsilon:g}, δ = {rows[0]['delta']:g}", lines, mark))
    labels = {method: _label(rows, method) for _, method in curves}
    legend = "exact ε of each curve, panel by panel" + (" (*: more than the paper claims)" if broken(rows) else "")
    return PanelRow(heading(rows[0]), panels, labels, f"{BURNS_IN}: end of burn-in", legend)


def broken(rows: Sequence[Row]) -> bool:
    """Whether any of them delivers less privacy than is claimed."""
    return any(row["proven"] is False for row in rows)


def _line(found: Sequence[Row]) -> tuple[Array, Array]:
    return np.array([row["t"] for row in found]), np.array([row["average_regret"] for row in found])


def _label(rows: Sequence[Row], method: str) -> str:
    """A method and the exact budget of each of its curves, panel by panel; a star where the paper claims less."""
    ends = [row for row in rows if row["method"] == method and row["t"] == row["horizon"]]
    if ends[0]["epsilon"] is None:
        return method
    marked = (rounded_up(row["delivered_epsilon"]) + ("*" if broken([row]) else "") for row in ends)
    return f"{method}: ε = {', '.join(marked)}"
