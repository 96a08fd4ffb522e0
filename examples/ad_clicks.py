"""What privacy costs: ad clicks learnt privately at three budgets, without privacy, and not at all.

Run it: python examples/ad_clicks.py, or make demo. With --seed the noise is repeatable, and nothing is private.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from taciturn import GIGA, L2Ball, Logistic, Privacy, Problem, geometric, pgiga
from taciturn.datasets import ad_impressions
from taciturn.regret import best_in_hindsight, replay, replay_exact
from taciturn.reproduce.plots import learning_curves

arguments = argparse.ArgumentParser()
arguments.add_argument("--impressions", type=int, default=100_000)
arguments.add_argument("--seed", type=int)
arguments.add_argument("--out", type=Path, default=Path("reproduced"), help="folder of the picture")
options = arguments.parse_args()

console, stream = Console(), ad_impressions(options.impressions)
X, y, rounds = stream.X, stream.y, np.arange(1, len(stream) + 1)
problem = Problem(Logistic(), L2Ball(2.0), X.shape[1], stream.feature_bound, ridge=0.03)
settings = {"schedule": geometric(1.5, start=1000), "seed": options.seed}
privates = {
    f"private, epsilon = {epsilon:g}": pgiga(problem, Privacy(epsilon, 1e-6), len(stream), **settings)
    for epsilon in (0.1, 1.0, 10.0)
}
console.print(f"Learning from {len(stream):,} simulated ad impressions, {problem.dimension} features each.")
records = {}
with Progress(console=console) as progress:
    for name, private in privates.items():  # in one pass, 2,000 impressions at a time, as they arrive
        state, releases = private.start(), []
        for start in progress.track(range(0, len(stream), 2_000), description=name):
            state, shown = private.run(state, X[start : start + 2_000], y[start : start + 2_000])
            releases += shown
        records[name] = replay(problem, releases, X, y)
records["not private"] = replay_exact(GIGA(problem), X, y)
records["constant (no click)"] = replay(problem, [], X, y)

best = best_in_hindsight(problem, X, y)
table = Table("learner", "models", "progressive accuracy", "average regret")
for name, record in records.items():
    models = f"{len(privates[name].timetable.rounds)}" if name in privates else "-"
    table.add_row(name, models, f"{record.accuracy:.1%}", f"{record.average_regret(best):.1e}")
console.print(table, "Accuracy and regret are measured on the exact stream: they are not private.\n")
for name, private in privates.items():
    console.print(f"[bold]What is promised, {name}.[/bold] {private.guarantee}\n", highlight=False)
options.out.mkdir(parents=True, exist_ok=True)
least = problem.values(best.point, *problem.clip(X, y))
accuracies = {name: np.cumsum(record.correct) / rounds for name, record in records.items()}
regrets = {name: np.cumsum(record.losses - least) / rounds for name, record in records.items()}
learning_curves(accuracies, regrets, "Private click prediction, delta = 1e-06", options.out / "ad_clicks.png")
console.print(f"Saved {options.out / 'ad_clicks.png'}.")
