"""How the regret of private FTRL grows with the length of the stream: like ln² T, where the paper's algorithms have √T.

The paper's synthetic regression in ten dimensions, squared loss with ridge 1 over a ball of radius ½, a release after
every example, sums by BLT. Regret over ln² T stays bounded if growth is polylogarithmic, and regret over √T then falls;
beside it stands what `taciturn.regret.ftrl_regret_bound` proves for every stream, of which this is far from the worst.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from taciturn import L2Ball, Privacy, Problem, Squared, pftrl
from taciturn.datasets import linear_regression
from taciturn.regret import best_in_hindsight, ftrl_regret_bound, replay
from taciturn.report.plots import NOT_PRIVATE

PROBLEM = Problem(Squared(), L2Ball(0.5), dimension=10, label_bound=1.0, ridge=1.0)


def regret(privacy: Privacy, horizon: int, seed: int) -> float:
    """Regret of one run."""
    stream = linear_regression(horizon, PROBLEM.dimension, seed=seed)
    private = pftrl(PROBLEM, privacy, horizon, seed=seed)
    _, releases = private.run(private.start(), stream.X, stream.y)
    best = best_in_hindsight(PROBLEM, stream.X, stream.y)
    return horizon * replay(PROBLEM, releases, stream.X, stream.y).average_regret(best)


def bound(privacy: Privacy, horizon: int) -> float:
    """What is proven of the expected regret."""
    return ftrl_regret_bound(pftrl(PROBLEM, privacy, horizon))


def measure(privacy: Privacy, horizons: list[int], seeds: int, console: Console) -> tuple[np.ndarray, np.ndarray]:
    """Regret by seed and horizon, and the bounds; the longest runs first, on every core."""
    jobs = [(T, seed) for T in sorted(horizons, reverse=True) for seed in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = {job: pool.submit(regret, privacy, *job) for job in jobs}
        bounds = [pool.submit(bound, privacy, T) for T in horizons]
        done = {job: future.result() for job, future in track(found.items(), "learning", console=console)}
        runs = np.array([[done[T, seed] for T in horizons] for seed in range(seeds)])
        return runs, np.array([future.result() for future in bounds])


def rows(horizons: list[int], runs: np.ndarray, bounds: np.ndarray) -> list[dict[str, float]]:
    """One row a horizon."""
    errors = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    return [
        {
            "T": T,
            "regret": float(mean),
            "standard_error": float(error),
            "over_squared_log": float(mean / np.log(T) ** 2),
            "over_root": float(mean / np.sqrt(T)),
            "bound": float(proven),
            "bound_over_squared_log": float(proven / np.log(T) ** 2),
        }
        for T, mean, error, proven in zip(horizons, np.mean(runs, axis=0), errors, bounds, strict=True)
    ]


def show(privacy: Privacy, found: list[dict[str, float]], seeds: int, console: Console) -> None:
    """The rows for people."""
    table = Table("T", "regret", "/ln² T", "/√T", "bound", "/ln² T", "bound/regret")
    for row in found:
        measured = f"{row['regret']:.1f} ± {row['standard_error']:.1f}"
        growth = (f"{row['over_squared_log']:.3f}", f"{row['over_root']:.3f}")
        proven = (f"{row['bound']:,.0f}", f"{row['bound_over_squared_log']:.1f}", f"{row['bound'] / row['regret']:.0f}")
        table.add_row(f"{row['T']:,}", measured, *growth, *proven)
    console.print(
        f"Private FTRL by BLT, (epsilon, delta) = ({privacy.epsilon:g}, {privacy.delta:g}), a release after every "
        f"example; mean and standard error of {seeds} seeded runs (simulation: not private)."
    )
    console.print(table)


def draw(found: list[dict[str, float]], path: Path) -> None:
    """Regret and its bound on logarithmic axes, with ln² T and √T through the first measurement."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    T, mean, error, proven = (
        np.array([row[key] for row in found]) for key in ("T", "regret", "standard_error", "bound")
    )
    fine = np.geomspace(T[0], T[-1], 200)
    figure, axis = plt.subplots(figsize=(7.5, 5.0), layout="constrained")
    axis.errorbar(T, mean, error, marker="o", capsize=3, label="private FTRL")
    axis.plot(T, proven, marker="s", label="proven for every stream")
    axis.plot(fine, mean[0] * (np.log(fine) / np.log(T[0])) ** 2, ":", color="gray", label="∝ ln² T")
    axis.plot(fine, mean[0] * np.sqrt(fine / T[0]), "--", color="gray", label="∝ √T")
    axis.set(xscale="log", yscale="log", xlabel="examples T", ylabel="regret")
    axis.grid(True, which="both", alpha=0.25)
    axis.legend(frameon=False)
    figure.suptitle(f"Regret against the length of the stream ({NOT_PRIVATE})", fontsize="medium")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Print the growth, and draw it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epsilon", type=float, default=1.0)
    arguments.add_argument("--delta", type=float, default=1e-6)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--horizons", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--out", type=Path, default=Path("experiments/out"))
    options = arguments.parse_args()
    if options.seeds < 2 or min(options.horizons) < 2:
        arguments.error("a standard error needs two or more seeds, and ln T a horizon of 2 or more")
    privacy, console, horizons = Privacy(options.epsilon, options.delta), Console(stderr=options.json), options.horizons
    found = rows(horizons, *measure(privacy, horizons, options.seeds, console))
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        show(privacy, found, options.seeds, console)
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "ftrl_growth.png"
    draw(found, picture)
    console.print(f"Saved {picture}.")


if __name__ == "__main__":
    main()
