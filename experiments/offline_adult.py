"""Offline learning on Adult: the paper's POL beside the methods that it is compared with, all through one interface.

POL takes the hinge loss on a constrained set, which objective perturbation cannot; objective perturbation takes a
smooth loss on the whole space; output perturbation takes either. Each model is fitted once, on nine tenths of the rows,
under one budget, and scored on the last tenth. Settings follow from the budget and the number of rows.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from taciturn import (
    Hinge,
    L2Ball,
    Logistic,
    ObjectivePerturbation,
    Privacy,
    Private,
    Problem,
    WholeSpace,
    output_perturbation,
    pol,
)
from taciturn.datasets import Stream, adult

RADIUS = 6.0
Method = Private | ObjectivePerturbation


def methods(privacy: Privacy, horizon: int, dimension: int, seed: int | None) -> dict[str, Method]:
    """Every method at one budget; the ridge falls as the budget and the data grow, as the theory has it."""
    scale = 1.0 / (horizon * privacy.mu)
    svm = Problem(Hinge(), L2Ball(RADIUS), dimension, intercept=0.5, ridge=min(0.003, 8.0 * scale))
    bounded = Problem(Logistic(), L2Ball(RADIUS), dimension, intercept=0.5, ridge=min(0.003, 8.0 * scale))
    free = Problem(Logistic(), WholeSpace(), dimension, intercept=0.5, ridge=min(0.003, 3.0 * scale))
    return {
        "POL, hinge in a ball, mean": pol(svm, privacy, horizon, seed=seed),
        "POL, hinge in a ball, last": pol(svm, privacy, horizon, how="last", seed=seed),
        "output perturbation, hinge in a ball": output_perturbation(svm, privacy, horizon, seed=seed),
        "output perturbation, logistic in a ball": output_perturbation(bounded, privacy, horizon, seed=seed),
        "objective perturbation, logistic": ObjectivePerturbation(free, privacy, horizon, seed),
    }


def accuracy(method: Method, train: Stream, X: np.ndarray, y: np.ndarray) -> float:
    """Fit once, score on the held-out rows."""
    scores = method.problem.predict(method.fit(train.X, train.y).point, X)
    return float(np.mean(np.where(scores > 0.0, 1.0, -1.0) == y))


def main() -> None:
    """Print accuracies."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    arguments.add_argument("--delta", type=float, default=1e-6)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--rows", type=int, default=None, help="use the first rows only")
    arguments.add_argument("--seed", type=int, default=None, help="seed the noise: repeatable, but not private")
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    options = arguments.parse_args()

    data, console = adult(), Console(stderr=options.json)
    rows = options.rows or len(data)
    cut = rows * 9 // 10
    train = Stream(data.X[:cut], data.y[:cut], data.names, data.feature_bound, data.label_bound)
    jobs = [(epsilon, run) for epsilon in options.epsilons for run in range(options.runs)]
    scores: dict[str, dict[float, list[float]]] = {}
    for epsilon, run in track(jobs, "fitting", console=console):
        seed = None if options.seed is None else options.seed + run
        for name, method in methods(Privacy(epsilon, options.delta), cut, data.X.shape[1], seed).items():
            found = accuracy(method, train, data.X[cut:rows], data.y[cut:rows])
            scores.setdefault(name, {}).setdefault(epsilon, []).append(found)
    if options.json:
        print(json.dumps(scores, indent=2))
        return
    table = Table("method", *(f"epsilon = {epsilon:g}" for epsilon in options.epsilons))
    for name, by_epsilon in scores.items():
        table.add_row(name, *(f"{np.mean(runs):.1%} ± {np.std(runs):.1%}" for runs in by_epsilon.values()))
    constant = np.mean(data.y[cut:rows] == -1.0)
    console.print(
        f"Accuracy on {rows - cut:,} held-out rows of Adult after {cut:,}, delta = {options.delta:g}, mean and "
        f"deviation of {options.runs} runs; always answering no: {constant:.1%}. Measured on exact rows: not private."
    )
    console.print(table)
    if options.seed is not None:
        console.print("Simulation: not private (a seed was given).")


if __name__ == "__main__":
    main()
