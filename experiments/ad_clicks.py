"""Learn ad clicks privately from a stream of impressions, and see what privacy costs.

The paper's motivating example: a search engine learns which ads people click, publishes its model as it goes, and
nobody can tell from all the published models together whether any one impression was there as it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tacit import GIGA, L2Ball, Logistic, Privacy, Private, Problem, Release, geometric, pgiga
from tacit.datasets import Stream, ad_impressions
from tacit.regret import Record, best_in_hindsight, replay
from tacit.report.plots import learning_curves

EPSILONS, DELTA, CHUNK = (0.1, 1.0, 10.0), 1e-6, 2_000
SCHEDULE = geometric(1.5, start=1000)


def private_record(private: Private, stream: Stream, progress: Progress, name: str) -> Record:
    """Learn in one pass, a chunk of impressions at a time, as they would arrive."""
    state, releases = private.start(), []
    for start in progress.track(range(0, len(stream), CHUNK), description=name):
        rows = slice(start, start + CHUNK)
        state, shown = private.run(state, stream.X[rows], stream.y[rows])
        releases += shown
    return replay(private.learner.problem, releases, stream.X, stream.y)


def exact_record(problem: Problem, stream: Stream, progress: Progress, name: str) -> Record:
    """The same learner without noise, its model used at once after every impression."""
    learner, V, y = GIGA(problem), *problem.bound(stream.X, stream.y)
    exact, shown = learner.start(), []
    for t in progress.track(range(len(y)), description=name):
        exact = learner.absorb(exact, t, V[t : t + 1], y[t : t + 1], problem.start)
        shown.append(Release(t + 1, t + 1, exact["x"], exact["x"], 0.0, simulated=True))
    return replay(problem, shown, stream.X, stream.y)


def main() -> None:
    """Run the demonstration."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--impressions", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=None, help="seed the noise: repeatable, but not private")
    arguments.add_argument("--out", type=Path, default=Path("experiments/out"))
    options = arguments.parse_args()
    console = Console()

    stream = ad_impressions(options.impressions)
    problem = Problem(Logistic(), L2Ball(2.0), stream.X.shape[1], stream.feature_bound, ridge=0.03)
    privates = {
        f"private, epsilon = {epsilon:g}": pgiga(
            problem, Privacy(epsilon, DELTA), len(stream), schedule=SCHEDULE, seed=options.seed
        )
        for epsilon in EPSILONS
    }
    console.print(f"Learning from {len(stream):,} simulated ad impressions, {problem.dimension} features each.")
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        records = {name: private_record(private, stream, progress, name) for name, private in privates.items()}
        records["not private"] = exact_record(problem, stream, progress, "not private")
    records["constant (no click)"] = constant = replay(problem, [], stream.X, stream.y)

    best = best_in_hindsight(problem, stream.X, stream.y)
    best_losses = problem.values(best.point, *problem.bound(stream.X, stream.y))
    table = Table("learner", "releases", "progressive accuracy", "average regret", title="One pass over the stream")
    for name, record in records.items():
        releases = len(privates[name].timetable.rounds) if name in privates else len(stream)
        shown = f"{releases:,}" if record is not constant else "-"
        table.add_row(name, shown, f"{record.accuracy:.1%}", f"{record.average_regret(best):.1e}")
    console.print(table)
    console.print("Accuracy and regret are measured on the exact stream: they are not private.\n")
    for name, private in privates.items():
        console.print(f"[bold]What is promised, {name}.[/bold] {private.guarantee}\n", highlight=False)

    options.out.mkdir(parents=True, exist_ok=True)
    rounds, picture = np.arange(1, len(stream) + 1), options.out / "ad_clicks.png"
    learning_curves(
        {name: np.cumsum(record.correct) / rounds for name, record in records.items()},
        {name: np.cumsum(record.losses - best_losses) / rounds for name, record in records.items()},
        f"Private click prediction, delta = {DELTA:g}",
        picture,
    )
    console.print(f"Saved {picture}: both panels against the number of impressions seen.")


if __name__ == "__main__":
    main()
