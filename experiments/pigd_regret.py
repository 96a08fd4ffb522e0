"""PIGD's regret on a strongly convex stream, measured, beside the bound of the paper's theorem.

Squared loss with a ridge on the paper's synthetic regression stream, a release after every example. Two bounds are set
beside the measurement: the explicit line of the theorem's proof with the noise really added, and the theorem as printed
(its sensitivity put right, and with the parameters for which it claims the same budget).
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from taciturn import L2Ball, Privacy, Problem, Squared, pigd
from taciturn.accounting.paper import parameters_claiming
from taciturn.datasets import linear_regression
from taciturn.regret import best_in_hindsight, igd_regret_bound, noise_regret_bound, pocp_regret_bound, replay


def average_regret(problem: Problem, privacy: Privacy, horizon: int, seed: int) -> float:
    """Average regret of one run of PIGD."""
    stream = linear_regression(horizon, problem.dimension, seed=seed)
    private = pigd(problem, privacy, horizon, seed=seed)
    _, releases = private.run(private.start(), stream.X, stream.y)
    best = best_in_hindsight(problem, stream.X, stream.y)
    return replay(problem, releases, stream.X, stream.y).average_regret(best)


def bounds(problem: Problem, privacy: Privacy, horizon: int) -> tuple[float, float]:
    """Average-regret bounds: with the noise really added, and as the theorem prints it."""
    exact, sensitivity = igd_regret_bound(problem, horizon), problem.gradient_diameter / problem.ridge
    theirs = parameters_claiming(privacy)
    ours = exact + noise_regret_bound(pigd(problem, privacy, horizon))
    return ours / horizon, (exact + pocp_regret_bound(problem, sensitivity, theirs, horizon)) / horizon


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epsilon", type=float, default=1.0)
    arguments.add_argument("--delta", type=float, default=1e-6)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--horizons", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = arguments.parse_args()
    privacy = Privacy(options.epsilon, options.delta)
    problem = Problem(Squared(), L2Ball(0.5), dimension=10, label_bound=1.0, ridge=1.0)

    table = Table("T", "average regret", "proof's bound", "ratio", "theorem's bound", "ratio")
    console = Console()
    with console.status("learning") as status:
        for horizon in options.horizons:
            runs = []
            for seed in range(options.seeds):
                status.update(f"T = {horizon:,}, run {seed + 1} of {options.seeds}")
                runs.append(average_regret(problem, privacy, horizon, seed))
            measured, (proof, theorem) = float(np.median(runs)), bounds(problem, privacy, horizon)
            ratios = f"{measured / proof:.2g}", f"{measured / theorem:.2g}"
            table.add_row(f"{horizon:,}", f"{measured:.2e}", f"{proof:.2e}", ratios[0], f"{theorem:.2e}", ratios[1])
    console.print(f"PIGD, (epsilon, delta) = ({privacy.epsilon:g}, {privacy.delta:g}), d = 10, ridge 1, radius ½,")
    console.print(f"a release after every example; median of {options.seeds} seeded runs (simulation: not private).")
    console.print(table)


if __name__ == "__main__":
    main()
