"""Growth of regret with the length T of the stream: measured slopes and theorems' exponents, and proven bounds.

NOT PRIVATE: seeded. A release after every example; a seed determines the stream and the noise, and results are means
over seeds with their standard errors.

**Slopes.** PIGD, PGIGA and POCP over FTL, whose losses are strongly convex, learn the paper's synthetic regression with
a ridge; IGD without strong convexity learns a median regression; EWOO chooses among the points of a net, and its regret
is against the best of them. The slope of log regret against log T is fitted to all lengths, the last slope to the two
longest. A theorem's exponent bounds the slope from above, up to logarithms, if the stream is long: at first noise
dominates and regret grows like T, and a stream that is not the worst case may have a smaller slope.

**Growth.** PIGD and private FTRL (with BLT) in ten dimensions, squared loss with ridge 1 over a ball of radius ½, up to
a million examples. Regret over ln² T stays bounded if the growth is polylogarithmic, and regret over √T then falls. The
bounds hold for every stream, so a stream that is not the worst case is far below them: that of PIGD is the explicit
line of the theorem's proof with the noise that is added; the theorem's is as printed, with its sensitivity corrected,
for the parameters with which it claims the same budget; that of FTRL is `taciturn.regret.ftrl_regret_bound`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taciturn import (
    EWOO,
    FTL,
    Absolute,
    FadingIGD,
    L2Ball,
    Privacy,
    Private,
    Problem,
    Squared,
    ewoo,
    grid,
    pftrl,
    pgiga,
    pigd,
    pocp,
)
from taciturn.calibration.paper import parameters_claiming
from taciturn.datasets import Stream, linear_regression
from taciturn.errors import integer
from taciturn.regret import (
    best_in_hindsight,
    ftrl_regret_bound,
    igd_regret_bound,
    noise_regret_bound,
    pocp_regret_bound,
    replay,
)
from taciturn.reproduce.plots import Curve, Panel, save_panels
from taciturn.reproduce.rows import Result, Row, Settings, by_method, over_seeds
from taciturn.reproduce.runner import Experiment

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Setting:
    """Everything that a run depends on.

    >>> Setting("PIGD", seed=1, horizon=100, epsilon=1.0).delta
    1e-06
    """

    method: str
    seed: int
    horizon: int
    epsilon: float
    delta: float = 1e-6


def _plan(methods: Sequence[str], seeds: int, horizons: Sequence[int], epsilon: float) -> list[Settings]:
    """All runs, the longest first, so that no core is idle at the end."""
    return [
        asdict(Setting(method, seed, horizon, epsilon))
        for horizon in sorted(horizons, reverse=True)
        for method in methods
        for seed in range(1, integer("seeds", seeds) + 1)
    ]


def _losses(private: Private, stream: Stream) -> float:
    """Mean loss of the points that were played."""
    _, releases = private.run(private.start(), stream.X, stream.y)
    return float(np.mean(replay(private.problem, releases, stream.X, stream.y).losses))


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and its standard error, which needs two values.

    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    if len(values) < 2:
        return values[0], None
    return statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5


def with_error(value: float | None, error: float | None, digits: str, error_digits: str = "") -> str:
    """A number and its standard error, if there are any.

    >>> with_error(0.5, 0.01, ".2f"), with_error(0.5, None, ".2f"), with_error(None, None, ".2f")
    ('0.50 ± 0.01', '0.50', '–')
    """
    if value is None:
        return "–"
    return f"{value:{digits}}" + ("" if error is None else f" ± {error:{error_digits or digits}}")


# ---- slopes ----------------------------------------------------------------------------------------------------

STRONG = Problem(Squared(), L2Ball(0.5), dimension=5, label_bound=1.0, ridge=1.0)
WEAK = Problem(Absolute(), L2Ball(0.5), dimension=5, label_bound=1.0)
PLANE = Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.0)
NET = grid(PLANE.domain, PLANE.size, per_axis=9)


@dataclass(frozen=True)
class Theorem:
    """An algorithm on its problem, and the exponent of T in its theorem."""

    make: Callable[..., Private]
    exponent: float


THEOREMS = {
    "PIGD": Theorem(partial(pigd, STRONG), 1 / 2),
    "PGIGA": Theorem(partial(pgiga, STRONG), 1 / 2),
    "POCP over FTL": Theorem(partial(pocp, FTL(STRONG)), 1 / 2),
    "IGD without strong convexity": Theorem(partial(pocp, FadingIGD(WEAK, strength=2.0)), 3 / 4),
    "EWOO": Theorem(partial(ewoo, EWOO(PLANE, NET)), 1 / 2),
}


def plan_slopes(quick: bool = False, seeds: int | None = None, horizons: Sequence[int] | None = None) -> list[Settings]:
    """All runs of the slopes."""
    usual = (500, 1_000, 2_000) if quick else (1_000, 3_000, 10_000, 30_000, 100_000)
    return _plan(list(THEOREMS), (2 if quick else 4) if seeds is None else seeds, horizons or usual, 10.0)


def run_slopes(settings: Settings) -> Result:
    """Regret of one run.

    >>> run_slopes(asdict(Setting("PIGD", seed=1, horizon=100, epsilon=10.0)))["regret"] > 0.0
    True
    """
    s = Setting(**settings)
    private = THEOREMS[s.method].make(Privacy(s.epsilon, s.delta), s.horizon, seed=s.seed)
    stream = linear_regression(s.horizon, private.problem.dimension, noise=0.3, seed=s.seed)
    return {"regret": s.horizon * (_losses(private, stream) - _least(private.problem, s.method, stream))}


def _least(problem: Problem, method: str, stream: Stream) -> float:
    """Mean loss of the best fixed point: of the set, or of EWOO's net."""
    if method != "EWOO":
        best = best_in_hindsight(problem, stream.X, stream.y)
        return best.average - best.gap
    V, y = problem.clip(stream.X, stream.y)
    return min(float(np.mean(problem.values(point, V, y))) for point in NET)


def table_slopes(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each algorithm and horizon: mean regret, and the slopes of the algorithm, which are the same in all."""
    regrets: dict[str, dict[int, list[float]]] = {name: {} for name in THEOREMS}
    for settings, group in over_seeds(plan, results):
        regrets[settings["method"]][settings["horizon"]] = [result["regret"] for result in group]
    first = plan[0]
    rows: list[Row] = []
    for method, by_horizon in regrets.items():
        slope, slope_error = fitted_slope(by_horizon)
        last_slope, last_error = fitted_slope({T: by_horizon[T] for T in sorted(by_horizon)[-2:]})
        for horizon in sorted(by_horizon):
            mean, error = mean_and_error(by_horizon[horizon])
            rows.append(
                {
                    "method": method,
                    "epsilon": first["epsilon"],
                    "delta": first["delta"],
                    "horizon": horizon,
                    "regret": mean,
                    "standard_error": error,
                    "seeds": len(by_horizon[horizon]),
                    "slope": slope,
                    "slope_error": slope_error,
                    "last_slope": last_slope,
                    "last_slope_error": last_error,
                    "exponent": THEOREMS[method].exponent,
                }
            )
    return rows


def fitted_slope(regrets: dict[int, list[float]]) -> tuple[float | None, float | None]:
    """Mean and standard error over seeds of the least-squares slope of log regret against log T.

    It needs two horizons and positive regrets, and is None otherwise.

    >>> [round(value, 9) for value in fitted_slope({100: [10.0, 20.0], 400: [20.0, 40.0]})]
    [0.5, 0.0]
    """
    if len(regrets) < 2 or any(value <= 0.0 for values in regrets.values() for value in values):
        return None, None
    x = np.log(list(regrets))
    runs = np.log(np.array(list(regrets.values()))).T
    return mean_and_error([float(np.polyfit(x, y, 1)[0]) for y in runs])


def show_slopes(rows: Sequence[Row]) -> list[Table | str]:
    """The slopes, and the regrets to which they are fitted."""
    from rich.table import Table

    slopes = Table("algorithm", "slope", "last slope", "theorem", title="Slopes", title_justify="left")
    regrets = Table("T", title="Regret", title_justify="left")
    groups = by_method(rows)
    for method, group in groups.items():
        one = group[0]
        fits = [with_error(one[name], one[f"{name}_error"], ".2f") for name in ("slope", "last_slope")]
        slopes.add_row(method, *fits, f"{one['exponent']:g}")
        regrets.add_column(method, justify="right")
    for rows_of_T in zip(*groups.values(), strict=True):
        cells = (with_error(row["regret"], row["standard_error"], ".3g", ".1g") for row in rows_of_T)
        regrets.add_row(f"{rows_of_T[0]['horizon']:,}", *cells)
    first = rows[0]
    return [
        slopes,
        regrets,
        f"Regret at (epsilon, delta) = ({first['epsilon']:g}, {first['delta']:g}), a release after every example; "
        f"mean and standard error; seeds: {first['seeds']}. Seeded simulations: not private.",
    ]


def draw_slopes(rows: Sequence[Row], path: Path) -> None:
    """Regret against T on logarithmic axes, with a dotted line of the theorem's exponent for each algorithm."""
    curves = {}
    for method, group in by_method(rows).items():
        T = np.array([row["horizon"] for row in group], dtype=float)
        regret = [row["regret"] for row in group]
        expected = regret[0] * (T / T[0]) ** group[0]["exponent"]
        curves[method] = Curve(T, regret, [row["standard_error"] or 0.0 for row in group], expected=expected)
    own_legend = {method: method for method in curves}
    panel = Panel("", "examples T", "regret (dotted: the theorem's exponent)", curves, labels=own_legend)
    save_panels([[panel]], "Regret against the length of the stream", path)


SLOPES = Experiment(
    "slopes",
    plan_slopes,
    run_slopes,
    table_slopes,
    show_slopes,
    draw_slopes,
    title="Slopes of regret against T",
    caption="Regret against the number of examples T, mean and standard error over seeds; a dotted line has the "
    "exponent of the algorithm's theorem. A slope below the exponent does not contradict it: the theorem is for the "
    "worst stream. Where noise dominates, at first, regret grows like T.",
    paper="Theorems 2, 4 and 6 bound the regret of POCP, PIGD and PGIGA by √T up to logarithms; remarks promise "
    "T^(3/4) without strong convexity and √T for EWOO. The paper has no figure of the growth.",
)


# ---- growth ----------------------------------------------------------------------------------------------------

TEN = Problem(Squared(), L2Ball(0.5), dimension=10, label_bound=1.0, ridge=1.0)
RECIPES: dict[str, Callable[..., Private]] = {"PIGD": pigd, "FTRL, BLT": pftrl}


def plan_growth(quick: bool = False, seeds: int | None = None, horizons: Sequence[int] | None = None) -> list[Settings]:
    """All runs of the growth."""
    usual = (300, 1_000, 3_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    return _plan(list(RECIPES), (2 if quick else 3) if seeds is None else seeds, horizons or usual, 1.0)


def run_growth(settings: Settings) -> Result:
    """Regret of one run, and bounds on its expectation.

    >>> result = run_growth(asdict(Setting("FTRL, BLT", seed=1, horizon=100, epsilon=1.0)))
    >>> 0.0 < result["regret"] < result["bound"]
    True
    """
    s = Setting(**settings)
    private = RECIPES[s.method](TEN, Privacy(s.epsilon, s.delta), s.horizon, seed=s.seed)
    stream = linear_regression(s.horizon, TEN.dimension, seed=s.seed)
    best = best_in_hindsight(TEN, stream.X, stream.y)
    bound, theorem = _bounds(s.method, private, s.horizon)
    regret = s.horizon * (_losses(private, stream) - best.average + best.gap)
    return {"regret": regret, "bound": bound, "theorem": theorem}


def _bounds(method: str, private: Private, horizon: int) -> tuple[float, float | None]:
    """The bound that is proven, and the one of the paper's theorem."""
    if method != "PIGD":
        return ftrl_regret_bound(private), None
    exact = igd_regret_bound(TEN, horizon)
    sensitivity = TEN.gradient_diameter / TEN.ridge
    claimed = parameters_claiming(private.privacy)
    return exact + noise_regret_bound(private), exact + pocp_regret_bound(TEN, sensitivity, claimed, horizon)


def table_growth(plan: Sequence[Settings], results: Sequence[Result]) -> list[Row]:
    """A row for each algorithm and horizon: mean regret, its growth, and the bounds."""
    rows: list[Row] = []
    for settings, group in over_seeds(plan, results):
        mean, error = mean_and_error([result["regret"] for result in group])
        T = settings["horizon"]
        rows.append(
            settings
            | {
                "regret": mean,
                "standard_error": error,
                "seeds": len(group),
                "over_squared_log": mean / math.log(T) ** 2,
                "over_root": mean / math.sqrt(T),
                "bound": group[0]["bound"],
                "theorem": group[0]["theorem"],
            }
        )
    methods = list(RECIPES)
    return sorted(rows, key=lambda row: (methods.index(row["method"]), row["horizon"]))


def show_growth(rows: Sequence[Row]) -> list[Table | str]:
    """A table for each algorithm."""
    first = rows[0]
    return [
        *(_growth_table(method, group) for method, group in by_method(rows).items()),
        f"Regret at (epsilon, delta) = ({first['epsilon']:g}, {first['delta']:g}), d = 10, ridge 1, radius ½, a "
        f"release after every example; mean and standard error; seeds: {first['seeds']}. Bounds are on the expected "
        "regret of any stream. Seeded simulations: not private.",
    ]


def _growth_table(method: str, rows: Sequence[Row]) -> Table:
    from rich import box
    from rich.table import Table

    theorem = rows[0]["theorem"] is not None
    made = Table(title=method, title_justify="left", box=box.SIMPLE, show_edge=False, padding=(0, 0, 0, 1))
    for name in ("T", "regret", "/ln² T", "/√T", "bound", "ratio", *(("theorem", "ratio") if theorem else ())):
        made.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        measured = with_error(row["regret"], row["standard_error"], ",.1f")
        growth = (f"{row['over_squared_log']:.3g}", f"{row['over_root']:.3g}")
        bounds = [row["bound"], *([row["theorem"]] if theorem else [])]
        ratios = (cell for bound in bounds for cell in (f"{bound:.1e}", f"{row['regret'] / bound:.2g}"))
        made.add_row(f"{row['horizon']:,}", measured, *growth, *ratios)
    return made


def draw_growth(rows: Sequence[Row], path: Path) -> None:
    """A panel for each algorithm: regret and its bounds, with ln² T and √T through the first result."""
    panels = []
    for method, group in groupby(rows, key=lambda row: row["method"]):
        points = list(group)
        T = np.array([row["horizon"] for row in points], dtype=float)
        fine = np.geomspace(T[0], T[-1], 200)
        regret = [row["regret"] for row in points]
        curves = {
            "measured": Curve(T, regret, [row["standard_error"] or 0.0 for row in points]),
            "proven bound": Curve(T, [row["bound"] for row in points]),
            "∝ ln² T": Curve(fine, regret[0] * (np.log(fine) / np.log(T[0])) ** 2, line=":"),
            "∝ √T": Curve(fine, regret[0] * np.sqrt(fine / T[0]), line="--"),
        }
        if points[0]["theorem"] is not None:
            curves["the theorem's bound"] = Curve(T, [row["theorem"] for row in points])
        panels.append(Panel(method, "examples T", "regret", curves))
    save_panels([panels], "Regret against the length of the stream", path)


GROWTH = Experiment(
    "growth",
    plan_growth,
    run_growth,
    table_growth,
    show_growth,
    draw_growth,
    title="Growth of regret up to a million examples",
    caption="Regret of PIGD and private FTRL on synthetic regression against the number of examples T, mean and "
    "standard error over seeds. The regret of FTRL grows more slowly than ln² T; that of PIGD grows like T while noise "
    "dominates, and later more slowly than √T. Bounds hold for every stream; this one is far from the worst.",
    paper="Theorem 4 bounds the regret of PIGD; 'the theorem's bound' is that bound with its sensitivity corrected. "
    "Private FTRL is not in the paper.",
)
