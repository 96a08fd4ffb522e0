"""How regret grows with the length of the stream: log-log slopes, measured, beside the theorems' exponents.

The strongly convex three (PIGD, PGIGA, POCP over FTL) learn the paper's synthetic regression with a ridge; IGD without
strong convexity learns a median there, without one; EWOO picks among the points of a net, and its regret is
against the best of them. A release after every example. A theorem's exponent bounds the slope from above, up to
logarithms, once the stream is long: where noise drowns the signal, at first, regret grows like T; and a stream that is
not the worst one may do better. The slope is fitted to all lengths; the last one is that of the two longest.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

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
    pgiga,
    pigd,
    pocp,
)
from taciturn.datasets import Stream, linear_regression
from taciturn.regret import best_in_hindsight, replay
from taciturn.report.plots import power_laws

STRONG = Problem(Squared(), L2Ball(0.5), dimension=5, label_bound=1.0, ridge=1.0)
WEAK = Problem(Absolute(), L2Ball(0.5), dimension=5, label_bound=1.0)
PLANE = Problem(Squared(), L2Ball(0.5), dimension=2, label_bound=1.0)
NET = grid(PLANE.domain, PLANE.size, per_axis=9)


@dataclass(frozen=True)
class Contender:
    """An algorithm, what it learns, and the exponent of its theorem."""

    problem: Problem
    make: Callable[..., Private]
    exponent: float


CONTENDERS = {
    "PIGD": Contender(STRONG, partial(pigd, STRONG), 1 / 2),
    "PGIGA": Contender(STRONG, partial(pgiga, STRONG), 1 / 2),
    "POCP over FTL": Contender(STRONG, partial(pocp, FTL(STRONG)), 1 / 2),
    "IGD without strong convexity": Contender(WEAK, partial(pocp, FadingIGD(WEAK, strength=2.0)), 3 / 4),
    "EWOO": Contender(PLANE, partial(ewoo, EWOO(PLANE, NET)), 1 / 2),
}


def least(problem: Problem, name: str, stream: Stream) -> float:
    """Mean loss of the best fixed point: of the set, or of EWOO's net."""
    if name != "EWOO":
        best = best_in_hindsight(problem, stream.X, stream.y)
        return best.average - best.gap
    V, y = problem.bound(stream.X, stream.y)
    return min(float(np.mean(problem.values(point, V, y))) for point in NET)


def regret(name: str, privacy: Privacy, horizon: int, seed: int) -> float:
    """Regret of one run."""
    contender = CONTENDERS[name]
    stream = linear_regression(horizon, contender.problem.dimension, noise=0.3, seed=seed)
    private = contender.make(privacy, horizon, seed=seed)
    _, releases = private.run(private.start(), stream.X, stream.y)
    losses = replay(contender.problem, releases, stream.X, stream.y).losses
    return horizon * (float(np.mean(losses)) - least(contender.problem, name, stream))


def slope(horizons: list[int], runs: np.ndarray) -> tuple[float, float]:
    """Mean and standard error over seeds (rows) of the least-squares slope of log regret against log T."""
    slopes = [np.polyfit(np.log(horizons), np.log(row), 1)[0] for row in runs]
    return float(np.mean(slopes)), float(np.std(slopes, ddof=1) / np.sqrt(len(slopes)))


def measure(privacy: Privacy, horizons: list[int], seeds: int, console: Console) -> dict[str, np.ndarray]:
    """Regret of every contender, by seed and horizon; the longest runs first, on every core."""
    jobs = [(n, T, s) for T in sorted(horizons, reverse=True) for n in CONTENDERS for s in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = [(job, pool.submit(regret, job[0], privacy, *job[1:])) for job in jobs]
        done = {job: future.result() for job, future in track(found, "learning", console=console)}
    return {n: np.array([[done[n, T, s] for T in horizons] for s in range(seeds)]) for n in CONTENDERS}


def show(privacy: Privacy, horizons: list[int], runs: dict[str, np.ndarray], console: Console) -> None:
    """Slopes, and the regrets that they are fitted to."""
    slopes, regrets = Table("algorithm", "slope", "last slope", "theorem"), Table("T", *runs)
    for name, values in runs.items():
        fitted = [slope(horizons, values), slope(horizons[-2:], values[:, -2:])]
        cells = [f"{mean:.2f} ± {error:.2f}" for mean, error in fitted]
        slopes.add_row(name, *cells, f"{CONTENDERS[name].exponent:g}")
    for column, horizon in enumerate(horizons):
        found = [values[:, column] for values in runs.values()]
        cells = [f"{np.mean(v):.3g} ± {np.std(v, ddof=1) / np.sqrt(len(v)):.1g}" for v in found]
        regrets.add_row(f"{horizon:,}", *cells)
    console.print(
        f"Regret at (epsilon, delta) = ({privacy.epsilon:g}, {privacy.delta:g}), a release after every example; mean "
        f"and standard error of {len(next(iter(runs.values())))} seeded runs (simulation: not private)."
    )
    console.print(slopes, regrets)


def main() -> None:
    """Print the slopes, and draw them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epsilon", type=float, default=10.0)
    arguments.add_argument("--delta", type=float, default=1e-6)
    arguments.add_argument("--seeds", type=int, default=4)
    arguments.add_argument("--horizons", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000, 100_000])
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--out", type=Path, default=Path("experiments/out"))
    options = arguments.parse_args()
    if options.seeds < 2 or len(options.horizons) < 2:
        arguments.error("a slope and its error need two or more horizons, and seeds")
    privacy, console = Privacy(options.epsilon, options.delta), Console(stderr=options.json)
    runs = measure(privacy, options.horizons, options.seeds, console)
    if options.json:
        fitted = {name: (*slope(options.horizons, values), CONTENDERS[name].exponent) for name, values in runs.items()}
        keys = ("slope", "standard_error", "theorem")
        print(json.dumps({name: dict(zip(keys, values, strict=True)) for name, values in fitted.items()}, indent=2))
    else:
        show(privacy, options.horizons, runs, console)
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "regret_slopes.png"
    exponents = {name: contender.exponent for name, contender in CONTENDERS.items()}
    power_laws(np.array(options.horizons), runs, exponents, "Regret against the length of the stream", picture)
    console.print(f"Saved {picture}.")


if __name__ == "__main__":
    main()
