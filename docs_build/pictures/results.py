"""Results of the benchmarks as pictures, read from `benchmarks/results` when they are drawn."""

from __future__ import annotations

import json
from statistics import fmean, median
from typing import Any

from docs_build.chart import Axis, Bar, Curve, Style, bars, chart
from docs_build.measured import RESULTS
from docs_build.pictures import Picture

DATA: dict[str, tuple[str, str, Style, Style]] = {
    "adult": ("Adult", "c", "line", "dotted"),
    "covertype": ("Covertype", "a", "long", "dash-dot"),
    "flights, late": ("flights", "b", "dashed", "dots"),
}
"""Data sets of the first picture: names, colours, and how curves with and without privacy are drawn."""

CONTENDERS = {
    "taciturn PIGD": "taciturn, PIGD: a private model after every example",
    "taciturn FTRL": "taciturn, private FTRL: a private model after every example",
    "taciturn for scikit-learn": "taciturn for scikit-learn, 1,000 rows a call",
    "taciturn for river": "taciturn for river",
    "scikit-learn, by 4,096": "scikit-learn SGDClassifier, 4,096 rows a call",
    "scikit-learn, by 1,000": "scikit-learn SGDClassifier, 1,000 rows a call",
    "Vowpal Wabbit, plain": "Vowpal Wabbit",
    "river": "river",
}
"""Bars of the second picture: contenders of logistic.py, and what the picture calls them."""


def accuracy() -> Picture:
    """Accuracy of private logistic regression against epsilon, and without noise, on three data sets."""
    scores, rows = accuracies(), _read("accuracy")["sizes"]
    curves = []
    for data, (name, colour, with_privacy, without) in DATA.items():
        reference = scores[data][None]
        private = {epsilon: score for epsilon, score in scores[data].items() if epsilon is not None}
        curves.append(Curve(f"{name}, private", [*private], [*private.values()], colour, with_privacy))
        curves.append(Curve(f"{name}, without privacy", [0.1, 1.0, 10.0], [reference] * 3, colour, without))
    gaps = {epsilon: [curves[i + 1].y[j] - curves[i].y[j] for i in (0, 2, 4)] for j, epsilon in ((0, 0.1), (1, 1.0))}
    caption = (
        f"Accuracy of PrivateLogisticRegression on held-out rows, delta = 1e-6, ranges stated: at epsilon = 1 it is at "
        f"most {max(gaps[1.0]):.1f} points below the same model without noise, at epsilon = 0.1 at most "
        f"{max(gaps[0.1]):.1f}. Adult has {rows['adult'][0]:,} rows, flights {rows['flights, late'][0]:,}, Covertype "
        f"{rows['covertype'][0]:,}."
    )
    axes = Axis("privacy budget epsilon (smaller is more private)", 0.1, 10.0, log=True), Axis("accuracy, %", 60, 90)
    return Picture(chart(*axes, curves, "Accuracy against epsilon on three data sets. " + caption), caption)


def accuracies() -> dict[str, dict[float | None, float]]:
    """Mean accuracy in per cent by data set and epsilon; None is without noise."""
    columns = {"stated", "no noise"}
    return {
        data: {
            fit["epsilon"]: 100.0 * fmean(fit["scores"])
            for fit in _read("accuracy")["fits"]
            if (fit["data"], fit["estimator"]) == (data, "PrivateLogisticRegression") and fit["columns"] in columns
        }
        for data in DATA
    }


def speed() -> Picture:
    """Microseconds of CPU time per example: `taciturn`, and tools without privacy."""
    seconds, scores = (_read("logistic")[key] for key in ("seconds", "accuracy"))
    items = [
        Bar(
            name, 1e6 * median(seconds[key]), "a" if key.startswith("taciturn") else "b", not key.startswith("taciturn")
        )
        for key, name in CONTENDERS.items()
    ]
    items.sort(key=lambda item: item.value)
    ratio = median(seconds["river"]) / median(seconds["taciturn FTRL"])
    caption = (
        "Microseconds of CPU time per example, logistic loss, 54 features, 200,000 examples; logarithmic, less is "
        "better. Filled bars are private, hollow ones are not. Private FTRL publishes a model after every example in "
        f"1/{ratio:.0f} of the time in which river updates one without privacy; their accuracies are "
        f"{scores['taciturn FTRL']:.1%} and {scores['river']:.1%}."
    )
    words = "; ".join(f"{item.name}: {item.value:.3g}" for item in items)
    return Picture(bars(Axis("µs per example", 0.1, 10.0, log=True), items, f"Bars of times. {words}."), caption)


def _read(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return record
