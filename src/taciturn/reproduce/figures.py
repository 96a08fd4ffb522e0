"""Figure 2 (a) and (b) of the paper: average regret of online regression, t by t. NOT PRIVATE: seeded.

The average regret after t examples is the mean loss of the points played so far, minus that of the best fixed point *of
those t examples*, so a curve is the paper's average regret at every horizon up to T. A curve is the median over seeds.

**Figure (a)**, as the paper states it: d = 10, T = 100,000, alpha = 1, labels with noise of standard deviation 0.01, a
release after every example. The paper does not state the rest, which is chosen here: rows of norm at most 1 and labels
in [-1, 1] (`taciturn.datasets.linear_regression`), delta = 1e-6, one example replaced, and a ball of radius 1/2, which
always contains the leader (`|y|/(2·sqrt(alpha))`). A seed determines the stream and the noise.

**Figure (b)**: the paper takes YearPredictionMSD (d = 90, some 500,000 songs) and alpha = 1. Here are real streams in
their order, the delay of flights (d = 39) and the number of rented bikes (d = 77), and a *simulated* stream with the
shape of YearPredictionMSD, which contains none of its songs. Labels are divided by their public bound, so regrets are
in squares of it: (180 minutes)², (1,000 rentals)². Each stream is also learnt with a ridge so small that the data
dominate. At these dimensions all methods release along `geometric(1.1)`, with two exceptions that say so: private FTRL
is run as `taciturn.plan` recommends, and predicting 0 releases nothing. The leader without privacy is updated at the
same rounds. A seed determines the noise, and the simulated stream.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn import QFTL, L2Ball, Privacy, Private, Problem, Releases, Squared, geometric
from taciturn.averages import late_averages
from taciturn.datasets import bike, flights, linear_regression
from taciturn.errors import integer
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.arrays import Array, Integers
from taciturn.plan import Plan, recommend
from taciturn.regret import Record, prefix_minima, replay
from taciturn.reproduce.methods import ALWAYS, EPSILONS, EXACT, PAPER_NOISE, PRINTED, PRIVATE
from taciturn.reproduce.plots import Curve, Panel, PanelRow, regret_curves
from taciturn.reproduce.rows import Result, Row, Settings, by_budget, median_and_range, over_seeds
from taciturn.reproduce.runner import Experiment

if TYPE_CHECKING:
    from rich.table import Table

BLT = "PQFTL, BLT"
"""The curve whose burn-in is drawn."""
PLANNED = "FTRL, as planned"
METHODS_A = (PRINTED, PAPER_NOISE, "PQFTL, tree", BLT, "FTRL, BLT", *EXACT)
METHODS_B = (PRINTED, PAPER_NOISE, "PQFTL, tree", BLT, PLANNED, *EXACT)
REGRESSION = "simulated regression"
YEARS = "simulated, the shape of YearPredictionMSD"
SHAPES = {"flights": (327_346, 39), YEARS: (515_345, 90), "bike": (17_379, 77)}
"""Examples and features of each stream of figure (b)."""
DRAWN = 1.0
RIDGES = {DRAWN: 0.5, 0.01: 2.0}
"""Alpha and the radius of a ball that contains the leader: the paper's alpha, always, and a small one, on this data."""


# ---- runs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """Everything that a run depends on; a method without privacy has no epsilon.

    >>> Setting("predicting 0", None, seed=1, horizon=100).alpha
    1.0
    """

    method: str
    epsilon: float | None
    seed: int
    horizon: int
    stream: str = REGRESSION
    dimension: int = 10
    alpha: float = 1.0
    radius: float = 0.5
    delta: float = 1e-6


def plan_a(quick: bool = False, seeds: int | None = None, horizon: int | None = None) -> list[Settings]:
    """All runs of figure (a), seed by seed."""
    horizon = integer("horizon", (5_000 if quick else 100_000) if horizon is None else horizon)
    seeds = integer("seeds", (2 if quick else 5) if seeds is None else seeds)
    return [
        asdict(Setting(method, epsilon, seed, horizon))
        for seed in range(1, seeds + 1)
        for method in METHODS_A
        for epsilon in _budgets(method)
    ]


def plan_b(quick: bool = False, seeds: int | None = None, horizon: int | None = None) -> list[Settings]:
    """All runs of figure (b), seed by seed; `horizon` cuts every stream short."""
    most = integer("horizon", 515_345 if horizon is None else horizon) if not quick or horizon else 10_000
    seeds = integer("seeds", (1 if quick else 3) if seeds is None else seeds)
    return [
        asdict(Setting(method, epsilon, seed, min(rows, most), stream, dimension, alpha, radius))
        for seed in range(1, seeds + 1)
        for stream, (rows, dimension) in SHAPES.items()
        for alpha, radius in RIDGES.items()
        for method in METHODS_B
        for epsilon in _budgets(method)
    ]


def _budgets(method: str) -> Sequence[float | None]:
    return [None] if method in EXACT else EPSILONS


def run(settings: Settings) -> Result:
    """Learn one stream, and replay it.

    >>> run(asdict(Setting("PQFTL, BLT", 1.0, seed=1, horizon=10)))["t"]
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    s = Setting(**settings)
    schedule = ALWAYS if s.stream == REGRESSION else geometric(1.1)
    problem = Problem(Squared(), L2Ball(s.radius), s.dimension, label_bound=1.0, ridge=s.alpha)
    X, y = _data(s.stream, s.horizon, s.dimension, s.seed)
    minima = _minima(problem, s.stream, s.horizon, s.seed)
    if s.epsilon is None:
        return _result(EXACT[s.method](problem, X, y, schedule), minima, None)
    budget = Privacy(s.epsilon, s.delta)
    if s.method == PLANNED:
        planned = recommend(problem, budget, s.horizon, method="pftrl", seed=s.seed)
        return _result(_play(planned.stream, X, y, planned.averages), minima, planned.stream)
    private = PRIVATE[s.method](problem, budget, s.horizon, s.seed, schedule)
    return _result(_play(private, X, y), minima, private)


@lru_cache(maxsize=1)
def _data(name: str, horizon: int, dimension: int, seed: int) -> tuple[Array, Array]:
    """The first rows of a stream, labels in [-1, 1]; the real streams are the same for every seed."""
    if name in (REGRESSION, YEARS):
        stream = linear_regression(horizon, dimension, 0.01, seed)
    else:
        stream = {"flights": flights, "bike": bike}[name]()
    return stream.X[:horizon], stream.y[:horizon] / stream.label_bound


@lru_cache(maxsize=1)
def _minima(problem: Problem, name: str, horizon: int, seed: int) -> Array:
    """The least mean loss at every checkpoint."""
    return prefix_minima(problem, *_data(name, horizon, problem.dimension, seed), checkpoints(horizon))


def checkpoints(horizon: int, count: int = 60) -> Integers:
    """Rounds to measure at, evenly spaced on a logarithmic axis, the last one the horizon.

    >>> checkpoints(100, 5)
    array([  1,   3,  10,  32, 100])
    """
    return np.unique(np.geomspace(1, horizon, count).round().astype(np.int64))


def _play(private: Private, X: Any, y: Any, averages: bool = False) -> Record:
    """Learn one stream, and replay it with the released points, or with their late averages."""
    _, releases = private.run(private.start(), X, y)
    if averages:
        points = late_averages(releases)
        releases = Releases(releases.rounds, 1, releases.noisy, points, releases.noise_sd, releases.simulated)
    return replay(private.problem, releases, X, y)


def _result(record: Record, minima: Array, private: Private | None) -> Result:
    """Average regret at the checkpoints, and the exact budget of the same settings with secret noise."""
    rounds = checkpoints(len(record.losses))
    regrets = [float(regret) for regret in record.average_regrets(rounds, minima)]
    result: Result = {"t": rounds.tolist(), "average_regret": regrets}
    if private is None:
        return result | dict.fromkeys(("delivered_epsilon", "proven", "burn_in"))
    repaired = type(private.learner) is QFTL and private.calibration == "exact"
    return result | {
        "delivered_epsilon": private.guarantee.epsilon,
        "proven": private.guarantee.proven,
        "burn_in": _burn_in(replace(private, seed=None)) if repaired else None,
    }


@lru_cache(maxsize=64)
def _burn_in(private: Private) -> int | None:
    """The round from which on predictions are expected to be better than a constant (`taciturn.plan`)."""
    return Plan("pqftl", private, "").burn_in


# ---- rows ------------------------------------------------------------------------------------------------------


def table(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each stream, budget, method and checkpoint, in this order: medians over seeds.

    `below_printed_since` is the first checkpoint from which on a curve lies below that of the printed algorithm with
    the same parameters, at every later one; None if it ends above, and for methods without privacy.
    """
    groups = over_seeds(plan, results)
    medians = {_key(settings): [statistics.median(values) for values in _by_round(group)] for settings, group in groups}
    rows: list[Row] = []
    for settings, group in groups:
        first, ours = group[0], medians[_key(settings)]
        printed = medians.get(_key(settings | {"method": PRINTED}))
        since = _below_since(first["t"], ours, printed) if printed else None
        same = settings | {name: first[name] for name in ("delivered_epsilon", "proven", "burn_in")}
        for t, values in zip(first["t"], _by_round(group), strict=True):
            rows.append(same | {"below_printed_since": since, "t": t} | median_and_range(values))
    streams = list(dict.fromkeys(map(_stream, rows)))
    return sorted(rows, key=lambda row: (streams.index(_stream(row)), row["epsilon"] or math.inf))


def _key(settings: Settings) -> tuple[tuple[str, object], ...]:
    return tuple(settings.items())


def _by_round(group: Sequence[Result]) -> list[tuple[float, ...]]:
    return list(zip(*(one["average_regret"] for one in group), strict=True))


def _below_since(rounds: Sequence[int], ours: Sequence[float], printed: Sequence[float]) -> int | None:
    above = [i for i, (mine, theirs) in enumerate(zip(ours, printed, strict=True)) if not mine < theirs]
    return next(iter(rounds[above[-1] + 1 :] if above else rounds), None)


def _stream(row: Row) -> tuple[str, float]:
    """The stream and the ridge of a row."""
    return row["stream"], row["alpha"]


# ---- tables and pictures ---------------------------------------------------------------------------------------


def show(rows: Sequence[Row]) -> list[Table | str]:
    """Average regret after all T examples, a table for each stream; a broken claim is red."""
    last = [row for row in rows if row["t"] == row["horizon"]]
    return [
        *(_table(list(group)) for _, group in groupby(last, key=_stream)),
        "Average regret after T examples against the best fixed point, the median over seeds; the files have all t. "
        "Burn-in: the round from which on predictions are expected to be better than a constant. Below: the t from "
        "which on the regret is less than that of the paper's algorithm as printed, at every t measured. Delivered: "
        "the epsilon that the noise provably gives at this delta, if it is secret. Results are seeded simulations, and "
        "regret is measured on exact examples: not private.",
    ]


def _table(rows: Sequence[Row]) -> Table:
    from rich import box

    title = f"{_heading(rows[0])}, delta = {rows[0]['delta']:g}, seeds: {rows[0]['seeds']}"
    columns = ("epsilon", "method", "delivered", "regret", "burn-in", "below")
    return by_budget(title, columns, rows, _cells, box=box.SIMPLE, show_edge=False)


def _heading(row: Row) -> str:
    shape = f"T = {row['horizon']:,}, d = {row['dimension']}"
    return f"{row['stream']}: {shape}, alpha = {row['alpha']:g}, radius {row['radius']:g}"


def _cells(row: Row) -> list[str]:
    budget = delivered = ""
    if row["epsilon"] is not None:
        budget = f"{row['epsilon']:g}"
        delivered = rounded_up(row["delivered_epsilon"]) + (" BROKEN" if row["proven"] is False else "")
    rounds = ["" if row[name] is None else f"{row[name]:,}" for name in ("burn_in", "below_printed_since")]
    return [budget, row["method"], delivered, f"{row['average_regret']:.1e}", *rounds]


def draw_a(rows: Sequence[Row], path: Path) -> None:
    """A panel for each epsilon."""
    _draw(rows, "Average regret on simulated regression", path)


def draw_b(rows: Sequence[Row], path: Path) -> None:
    """A row of panels for each stream, at the paper's alpha, a panel for each epsilon."""
    _draw([row for row in rows if row["alpha"] == DRAWN], "Average regret on long regression streams", path)


def _draw(rows: Sequence[Row], title: str, path: Path) -> None:
    regret_curves([_panels(list(group)) for _, group in groupby(rows, key=_stream)], title, path)


def _panels(rows: Sequence[Row]) -> PanelRow:
    """A panel for each epsilon, a curve for each method."""
    curves: dict[tuple[float | None, str], list[Row]] = {}
    for row in rows:
        curves.setdefault((row["epsilon"], row["method"]), []).append(row)
    panel = partial(Panel, xlabel="examples seen, t", ylabel="average regret after t examples (label bound²)")
    panels = []
    for epsilon in dict.fromkeys(epsilon for epsilon, _ in curves if epsilon is not None):
        shown = {method: group for (budget, method), group in curves.items() if budget in (epsilon, None)}
        lines = {
            method: Curve([row["t"] for row in group], [row["average_regret"] for row in group])
            for method, group in shown.items()
        }
        burn_in = shown[BLT][0]["burn_in"] if BLT in shown else None
        panels.append(panel(f"ε = {epsilon:g}, δ = {rows[0]['delta']:g}", curves=lines, mark=burn_in))
    labels = {method: _label(rows, method) for _, method in curves}
    legend = "exact ε of each curve, panel by panel"
    if any(row["proven"] is False for row in rows):
        legend += " (*: more than the paper claims)"
    return PanelRow(_heading(rows[0]), panels, labels, f"{BLT}: end of burn-in", legend)


def _label(rows: Sequence[Row], method: str) -> str:
    """A method and the exact budget of each of its curves, panel by panel; a star where the paper claims less."""
    ends = [row for row in rows if row["method"] == method and row["t"] == row["horizon"]]
    if ends[0]["epsilon"] is None:
        return method
    marked = (rounded_up(row["delivered_epsilon"]) + ("*" if row["proven"] is False else "") for row in ends)
    return f"{method}: ε = {', '.join(marked)}"


FIGURE_A = Experiment(
    "figure-a",
    plan_a,
    run,
    table,
    show,
    draw_a,
    title="Figure 2 (a): online regression on simulated data",
    caption="Average regret against the number of examples; lower is better. As printed, the paper's algorithm inverts "
    "a matrix that noise makes indefinite: the few rounds in which it is almost singular cost more than all others, "
    "and its regret stays far above that of predicting 0. With the inverse repaired, the same noise allows learning; "
    "it is too little at epsilon = 0.01, where less privacy is delivered than claimed, and too much from 0.1 on. There "
    "exactly calibrated noise learns sooner, and better strategies for prefix sums, or private FTRL, sooner still. "
    "Left of the dotted line points are mostly noise. Legends give the exact budget of every curve, in the order of "
    "the panels; a star marks one that is larger than the paper claims.",
    paper="Figure 2 (a) draws FTL and PQFTL, alpha = 1, and says: 'PQFTL obtained regret of the order of 1e-2 even "
    "with high privacy level of epsilon = 0.01'. Its delta, bounds and scale of the data are not stated.",
)
FIGURE_B = Experiment(
    "figure-b",
    plan_b,
    run,
    table,
    show,
    draw_b,
    title="Figure 2 (b): online regression on long streams",
    caption="Average regret against the number of examples; lower is better. Flights and bikes are real streams in the "
    "order of time; the other stream is simulated, with the shape of YearPredictionMSD. Noise weighs more in more "
    "dimensions: at epsilon = 0.01 and 0.1 no method beats predicting 0. Exact PQFTL with BLT and private FTRL do at "
    "10, and on the real streams at 1; the algorithm as printed stays far above at every budget. Legends give the "
    "exact budget of every curve, in the order of the panels; a star marks one that is larger than the paper claims.",
    paper="Figure 2 (b) draws FTL and PQFTL on YearPredictionMSD, d = 90, alpha = 1; its delta and the scale of the "
    "data are not stated.",
)
