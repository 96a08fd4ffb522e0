"""A private search for settings beside guessing them, at epsilon = 1 and delta = 1e-6, on five tables.

Held-out accuracy, or R² of numbers, of

* *guess*: the estimator with its defaults, and the whole budget;
* *search*: `PrivateSearchCV` with its default candidates, and the same budget for training and choice together;
* *unpaid*: the best of the same candidates on the rows that are scored, each fitted to all rows with the whole budget:
  what a search finds that pays neither for its fits, three times the budget, nor for its choice.

Noise is secret; a run draws the tenth of the rows that is held out, the same for all. The rule and the candidates were
chosen on other tables. NOT PRIVATE: scored on exact rows, and each run is a new fit of the same data.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from runner import environment, parse_options, save, use_one_core, yes_or_no
from streams import DELTA
from taciturn.datasets import Stream, adult, bike, california_housing, covertype, flights
from taciturn.datasets.split import split
from taciturn.errors import TaciturnError
from taciturn.estimators.search import PrivateSearchCV, default_grid
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLogisticRegression
from taciturn.estimators.stream import PrivacyWarning

EPSILON = 1.0
COLUMNS = ("guess", "search", "unpaid")
RUNS, FEWER = 40, 10
"""Runs, and those of tables of more than 100,000 rows."""

TABLES = {
    "adult": adult,
    "covertype": covertype,
    "california housing": california_housing,
    "bikes": bike,
    "flights": flights,
}
WINS = 3
"""On how many of the five tables a search should be better than a guess."""


def estimator(table: Stream, **settings: Any) -> Any:
    """The estimator for a table, by its bounds."""
    settings = {"epsilon": EPSILON, "delta": DELTA, "feature_bound": table.feature_bound} | settings
    if set(np.unique(table.y[:1_000])) <= {-1.0, 1.0}:
        return PrivateLogisticRegression(classes=[-1, 1], **settings)
    return PrivateLinearRegression(label_bound=table.label_bound, **settings)


def run(table: Stream, number: int, rows: int | None) -> dict[str, Any]:
    """Scores of one run, and what the search has chosen."""
    train, test = split(table, number, rows=rows)
    base = estimator(table)
    scores = []
    for each in default_grid(base, len(train)):
        try:
            scores.append(float(estimator(table, **each).fit(train.X, train.y).score(test.X, test.y)))
        except TaciturnError:  # too few rows, as the search finds, too
            scores.append(-math.inf)
    search = PrivateSearchCV(base).fit(train.X, train.y)
    return {
        "guess": scores[0],
        "search": float(search.score(test.X, test.y)),
        "unpaid": max(scores),
        "candidates": scores,
        "chosen": str(search.best_params_),
    }


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means, the mean difference of search and guess with its standard error, and how often each setting was chosen."""
    gains = np.array([each["search"] - each["guess"] for each in runs])
    chosen = [each["chosen"] for each in runs]
    return {
        "data": name,
        "runs": runs,
        **{one: float(np.mean([each[one] for each in runs])) for one in COLUMNS},
        "gain": float(gains.mean()),
        "standard error": float(gains.std(ddof=1) / math.sqrt(len(gains))),
        "chosen": {one: chosen.count(one) for one in sorted(set(chosen))},
    }


def results_table(results: list[dict[str, Any]]) -> Table:
    made = Table("data", *COLUMNS, "search - guess", "chosen")
    for each in results:
        gain = f"{each['gain']:+.4f} ± {each['standard error']:.4f}"
        chosen = ", ".join(f"{one} {count}x" for one, count in each["chosen"].items())
        made.add_row(each["data"], *(f"{each[one]:.4f}" for one in COLUMNS), gain, chosen)
    return made


def wins_table(results: list[dict[str, Any]]) -> Table:
    wins = sum(each["gain"] > 2.0 * each["standard error"] for each in results)
    losses = sum(each["gain"] < -2.0 * each["standard error"] for each in results)
    made = Table("beyond two standard errors", "tables", "target", "met")
    made.add_row("search better than guess", str(wins), f"≥ {WINS}", yes_or_no(wins >= WINS))
    made.add_row("search worse than guess", str(losses), "", "")
    return made


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    warnings.simplefilter("ignore", PrivacyWarning)
    console = Console(stderr=chosen.json)
    results = []
    for name, load in TABLES.items():
        table = load()
        count = 2 if chosen.quick else FEWER if len(table) > 100_000 else RUNS
        rows = 4_000 if chosen.quick else None
        runs = [run(table, number, rows) for number in track(range(count), name, console=console)]
        results.append(summary(name, runs))
    record = environment("taciturn", "numpy", "scikit-learn") | {"epsilon": EPSILON, "delta": DELTA, "results": results}
    save("search", record, chosen, console, results_table(results), wins_table(results))


if __name__ == "__main__":
    main()
