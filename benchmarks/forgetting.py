"""Streams that forget: a concept that turns, two real streams, and what is lost where nothing drifts.

Every model predicts rows before it learns from them; accuracy and mean squared error are of all rows of a stream. The
model in use is what a user of an estimator has: windows, memories and their choice by the public rule, `forget="auto"`,
unless a window is stated. delta = 1e-6; noise is seeded.

- *A turn*: x uniform on the sphere, d = 10, 200,000 rows, `y = sign(x·θ + .1·normal)`, and θ turns by 90° half-way.
  Least squares, a release after every 100 rows. *Back after* is the number of rows after the turn until the mean
  accuracy of the 500 rows around is 95 % of that of the 20,000 rows before it, in units of the (shortest) window. The
  baseline is least squares of the same weights without noise. Seeds are other ones than those that the rule was chosen
  by.
- *Real*: arrival delays of flights and rented bikes, in the order of time, by which the rule was not chosen either.
  Mean squared error over the variance of the labels, three seeds. The number of rows is stated as the horizon.
- *Nothing drifts*: Covertype, two classes, in random order, with a window of a fifth of the rows, and by rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from runner import environment, parse_options, save, use_one_core, yes_or_no
from taciturn import Releases
from taciturn.datasets import bike, covertype, flights
from taciturn.drift import drift
from taciturn.estimators.settings import Settings
from taciturn.estimators.stream import Stream
from taciturn.regret import replay

PACKAGES = ("numpy", "scipy", "numba")
Rows = tuple[np.ndarray, np.ndarray]


def turning(rows: int, seed: int, dimension: int = 10) -> Rows:
    """Labels that a direction decides, and after half of the rows one that is orthogonal to it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, dimension))
    X /= np.linalg.norm(X, axis=1)[:, None]
    first = rng.normal(size=dimension)
    second = rng.normal(size=dimension)
    second -= (second @ first) / (first @ first) * first
    both = [each / np.linalg.norm(each) for each in (first, second)]
    scores = np.where(np.arange(rows) < rows // 2, X @ both[0], X @ both[1])
    return X, np.sign(scores + 0.1 * rng.normal(size=rows))


def learnt(rows: Rows, settings: Settings, horizon: int | None) -> tuple[Stream, Any]:
    """A stream that has learnt all rows, and what its models in use predicted of each before."""
    X, y = rows
    stream = Stream(settings.plan(X.shape[1], horizon))
    stream.learn(X, y)
    used = stream.releases
    assert used is not None
    models = np.array(stream.models)
    shown = Releases(np.array(used.rounds), 1, models, models, np.array(used.noise_sd), simulated=True)
    return stream, replay(stream.problem, shown, X, y)


def without_noise(rows: Rows, window: int, every: int = 100) -> np.ndarray:
    """Whether least squares of the same weights, without noise and with a ridge of 1, is right about each row."""
    X, y = rows
    decay = np.exp(-every / window)
    V, u = np.eye(X.shape[1]), np.zeros(X.shape[1])
    correct = []
    for start in range(0, len(y), every):
        block, labels = X[start : start + every], y[start : start + every]
        ridge = V + np.eye(len(u))
        correct.append(np.where(block @ np.linalg.solve(ridge, u) > 0.0, 1.0, -1.0) == labels)
        V, u = decay * V + block.T @ block, decay * u + block.T @ labels
    return np.concatenate(correct)


def rows_until_back(correct: np.ndarray, turn: int) -> int:
    """Rows after the turn until the accuracy is 95 % of what it was before."""
    before = correct[max(turn - 20_000, 0) : turn].mean()
    moving = np.convolve(correct[turn:], np.ones(500) / 500.0, "valid")
    back = moving >= 0.95 * before
    return int(np.argmax(back)) + 250 if back.any() else len(correct)


def turns(rows: int, seeds: range) -> list[dict[str, Any]]:
    """The turning stream: accuracies, and how long it takes to come back."""
    results = []
    for epsilon, target in ((1.0, 0.89), (0.1, 0.85)):
        for forget in (None, "one", "auto"):
            each: dict[str, list[float]] = {"accuracy": [], "back": [], "plain": [], "seen": []}
            window = None
            for seed in seeds:
                stream = turning(rows, seed)
                base = {
                    "epsilon": epsilon,
                    "feature_bound": 1.0,
                    "label_bound": 1.0,
                    "fit_intercept": False,
                    "release": 100,
                }
                rule = Settings("squared", **base, forget="auto").plan(10, None).memories
                assert rule is not None
                stated: Any = {None: None, "one": rule[0], "auto": "auto"}[forget]
                made, record = learnt(stream, Settings("squared", **base, forget=stated, seed=seed), rows)
                each["accuracy"].append(record.accuracy)
                window = rule[0] if forget else None
                if forget:
                    each["back"].append(rows_until_back(record.correct, rows // 2) / rule[0])
                    each["plain"].append(float(without_noise(stream, rule[0]).mean()))
                    found = drift(made.plan.private, made.releases)
                    each["seen"].append(float(found.alarms[0] - rows // 2) if len(found.alarms) else float("nan"))
            means = {name: float(np.mean(values)) for name, values in each.items() if values}
            met = None if forget != "auto" else means["accuracy"] >= target and means["back"] <= 1.6
            results.append(
                {"epsilon": epsilon, "forget": forget, "window": window, "target": target, "met": met, **means}
            )
    return results


def real(seeds: range, part: int | None) -> list[dict[str, Any]]:
    """Flights and bikes: progressive squared errors, without forgetting and by rule."""
    results = []
    for name, load in (("bikes", bike), ("flights", flights)):
        stream = load()
        rows = stream.X[:part], stream.y[:part]
        for epsilon in (0.1, 1.0, 10.0):
            errors: dict[Any, list[float]] = {None: [], "auto": []}
            windows: Any = None
            for seed in seeds:
                for forget, found in errors.items():
                    settings = Settings(
                        "squared",
                        epsilon=epsilon,
                        feature_bound=1.0,
                        label_bound=stream.label_bound,
                        forget=forget,
                        seed=seed,
                    )
                    made, record = learnt(rows, settings, len(rows[1]))
                    found.append(2.0 * float(np.mean(record.losses) / np.var(rows[1])))
                    windows = made.plan.memories or windows if forget else windows
            none, rule = (float(np.mean(each)) for each in errors.values())
            results.append(
                {
                    "data": name,
                    "epsilon": epsilon,
                    "windows": windows,
                    "none": none,
                    "rule": rule,
                    "each": list(errors.values()),
                }
            )
    return results


def still(part: int | None, seeds: range) -> list[dict[str, Any]]:
    """Covertype in random order: progressive accuracy with a window of a fifth of the rows, by rule, and without."""
    data = covertype()
    order = np.random.default_rng(1).permutation(len(data.y))[:part]
    rows = data.X[order], data.y[order]
    results = []
    for method in ("auto", "pqftl"):
        for epsilon in (0.1, 1.0):
            accuracies: dict[Any, list[float]] = {None: [], len(order) // 5: [], "auto": []}
            for seed in seeds:
                for forget, found in accuracies.items():
                    settings = Settings(
                        "logistic",
                        epsilon=epsilon,
                        feature_bound=1.0,
                        classes=2,
                        method=method,
                        forget=forget,
                        seed=seed,
                    )
                    found.append(float(learnt(rows, settings, len(order))[1].accuracy))
            none, fifth, rule = (float(np.mean(each)) for each in accuracies.values())
            results.append({"method": method, "epsilon": epsilon, "none": none, "fifth": fifth, "rule": rule})
    return results


def shown(turned: list[dict[str, Any]], on_data: list[dict[str, Any]], lost: list[dict[str, Any]]) -> list[Any]:
    """Three tables."""
    first = Table("epsilon", "forget", "window", "accuracy", "target", "without noise", "back after, windows", "met")
    for one in turned:
        name = {None: "nothing", "one": "the window alone", "auto": "by rule"}[one["forget"]]
        window = "" if one["window"] is None else f"{one['window']:,}"
        target = f"≥ {one['target']:g}, back ≤ 1.6" if one["forget"] == "auto" else ""
        plain, back = (f"{one[key]:.3g}" if key in one else "" for key in ("plain", "back"))
        first.add_row(
            f"{one['epsilon']:g}", name, window, f"{one['accuracy']:.4f}", target, plain, back, yes_or_no(one["met"])
        )
    second = Table("stream", "epsilon", "windows by rule", "nothing forgotten", "by rule", "no worse, met")
    for one in on_data:
        windows = "none" if one["windows"] is None else ", ".join(f"{each:,}" for each in one["windows"])
        fine = yes_or_no(one["rule"] <= one["none"])
        second.add_row(one["data"], f"{one['epsilon']:g}", windows, f"{one['none']:.4f}", f"{one['rule']:.4f}", fine)
    third = Table("method", "epsilon", "nothing forgotten", "window n/5", "by rule", "at most .5 points lost, met")
    for one in lost:
        name = "logistic, private FTRL" if one["method"] == "auto" else "least squares, PQFTL"
        cells = (f"{100.0 * one[key]:.2f} %" for key in ("none", "fifth", "rule"))
        third.add_row(name, f"{one['epsilon']:g}", *cells, yes_or_no(one["none"] - one["fifth"] <= 0.005))
    return [first, second, third]


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    console = Console(stderr=chosen.json)
    quick: Callable[[int, int], int] = lambda few, many: few if chosen.quick else many  # noqa: E731
    seeds = range(quick(1, 3))
    turned = turns(quick(60_000, 200_000), seeds)
    on_data = real(seeds, 3_000 if chosen.quick else None)
    lost = still(5_000 if chosen.quick else None, range(quick(1, 2)))
    record = environment("taciturn", *PACKAGES) | {"turn": turned, "real": on_data, "still": lost}
    save("forgetting", record, chosen, console, *shown(turned, on_data, lost))


if __name__ == "__main__":
    main()
