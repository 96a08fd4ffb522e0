"""Learn ad clicks privately from a stream of impressions, and see what privacy costs.

The paper's motivating example: a search engine learns which ads people click, publishes its model as it goes, and
nobody can tell from all the published models together what any one impression was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from taciturn import GIGA, L2Ball, Logistic, Privacy, Private, Problem, geometric, pgiga
from taciturn.datasets import Stream, ad_impressions
from taciturn.regret import Optimum, Record, best_in_hindsight, replay, replay_exact
from taciturn.report.plots import learning_curves

EPSILONS, DELTA, CHUNK = (0.1, 1.0, 10.0), 1e-6, 2_000
SCHEDULE = geometric(1.5, start=1000)
COLUMNS = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def learn(private: Private, stream: Stream, progress: Progress, name: str) -> Record:
    """Learn in one pass, a chunk of impressions at a time, as they would arrive."""
    state, releases = private.start(), []
    for start in progress.track(range(0, len(stream), CHUNK), description=name):
        rows = slice(start, start + CHUNK)
        state, shown = private.run(state, stream.X[rows], stream.y[rows])
        releases += shown
    return replay(private.learner.problem, releases, stream.X, stream.y)


def learn_all(privates: dict[str, Private], problem: Problem, stream: Stream, console: Console) -> dict[str, Record]:
    """Every contender: the private ones, the same learner without noise, and the constant prediction."""
    with Progress(*COLUMNS, console=console) as progress:
        records = {name: learn(private, stream, progress, name) for name, private in privates.items()}
        exact = progress.add_task("not private", total=1)
        records["not private"] = replay_exact(GIGA(problem), stream.X, stream.y)
        progress.advance(exact)
    return records | {"constant (no click)": replay(problem, [], stream.X, stream.y)}


def show(records: dict[str, Record], privates: dict[str, Private], best: Optimum, console: Console) -> None:
    """The table, and what is promised."""
    table = Table("learner", "models", "progressive accuracy", "average regret")
    for name, record in records.items():
        published = f"{len(privates[name].timetable.rounds)}" if name in privates else "-"
        table.add_row(name, published, f"{record.accuracy:.1%}", f"{record.average_regret(best):.1e}")
    console.print(table)
    console.print("Accuracy and regret are measured on the exact stream: they are not private.\n")
    for name, private in privates.items():
        console.print(f"[bold]What is promised, {name}.[/bold] {private.guarantee}\n", highlight=False)


def save_picture(records: dict[str, Record], best_losses: np.ndarray, path: Path) -> None:
    """Progressive accuracy and average regret against the number of impressions."""
    rounds = np.arange(1, len(best_losses) + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    learning_curves(
        {name: np.cumsum(record.correct) / rounds for name, record in records.items()},
        {name: np.cumsum(record.losses - best_losses) / rounds for name, record in records.items()},
        f"Private click prediction, delta = {DELTA:g}",
        path,
    )


def main() -> None:
    """Run the demonstration."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--impressions", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=None, help="seed the noise: repeatable, but not private")
    arguments.add_argument("--out", type=Path, default=Path("experiments/out"))
    options = arguments.parse_args()

    console, stream = Console(), ad_impressions(options.impressions)
    problem = Problem(Logistic(), L2Ball(2.0), stream.X.shape[1], stream.feature_bound, ridge=0.03)
    privates = {
        f"private, epsilon = {epsilon:g}": pgiga(
            problem, Privacy(epsilon, DELTA), len(stream), schedule=SCHEDULE, seed=options.seed
        )
        for epsilon in EPSILONS
    }
    console.print(f"Learning from {len(stream):,} simulated ad impressions, {problem.dimension} features each.")
    records = learn_all(privates, problem, stream, console)
    best = best_in_hindsight(problem, stream.X, stream.y)
    show(records, privates, best, console)
    picture = options.out / "ad_clicks.png"
    save_picture(records, problem.values(best.point, *problem.bound(stream.X, stream.y)), picture)
    console.print(f"Saved {picture}.")


if __name__ == "__main__":
    main()
