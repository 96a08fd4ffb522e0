"""Vowpal Wabbit's text format of examples, and the accuracy of its saved models."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def lines(X: np.ndarray, y: np.ndarray) -> list[str]:
    """A line for each example, labels ±1; features that are 0 are left out."""
    return [f"{int(label)} | {' '.join(_entries(row))}" for row, label in zip(X, y, strict=True)]


def _entries(row: np.ndarray) -> list[str]:
    places = np.flatnonzero(row)
    return [f"{j}" if value == 1.0 else f"{j}:{value:.6g}" for j, value in zip(places, row[places], strict=True)]


def accuracy(model: Path, examples: Path) -> float:
    """Share of the examples in that file whose label has the sign of the model's score."""
    from vowpalwabbit import Workspace

    scores = model.with_suffix(".scores")
    Workspace(f"-d {examples} -t -i {model} -p {scores} --quiet").finish()
    truth = [int(line.partition(" ")[0]) for line in examples.read_text().splitlines()]
    return float(np.mean(np.where(np.loadtxt(scores) > 0.0, 1, -1) == truth))
