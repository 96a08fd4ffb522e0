"""What is asked of the sampler's draws, and what each question is worth: a list of complaints, empty if there are none.

Draws of the tests come from seeds, so that nothing here is left to chance; were the seeds fresh, each threshold of
5.5 deviations would be passed by honest draws with a probability below 4e-8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

FAR = 5.5
CELLS = 64
Draw = Callable[[int], np.ndarray]


def complaints(draw: Draw, scale: float, count: int, chunk: int = 250_000) -> list[str]:
    """Everything wrong with `count` draws that claim to be `round(N(0, scale²))`."""
    edges = np.ceil(ndtri(np.arange(1, CELLS) / CELLS) * scale - 0.5)
    shares = np.diff(np.concatenate([[0.0], ndtr((edges - 0.5) / scale), [1.0]]))
    cells, bits, positive, moments = np.zeros(CELLS), np.zeros((8, 2)), 0, np.zeros(4)
    odd, ends, last = 0, 0, None
    for _ in range(count // chunk):
        values = draw(chunk)
        cells += np.bincount(np.searchsorted(edges, values, side="right"), minlength=CELLS)
        positive += int(np.count_nonzero(values > 0))
        for bit in range(8):
            bits[bit] += np.bincount((np.abs(values) >> bit) & 1, minlength=2)
        odd += int(np.count_nonzero((values > 0) == (values & 1 == 1)))
        x = values / scale
        moments += [np.sum(x), np.sum(x**2), np.sum(x**3), np.sum(x**4)]
        ends += last is not None and np.array_equal(values, last)
        last = values
    total = chunk * (count // chunk)
    chi = float(np.sum((cells - total * shares) ** 2 / (total * shares)))
    wrong = {
        f"the same {chunk} draws twice": ends > 0,
        "cells": abs(chi - (CELLS - 1)) > 1.3 * FAR * np.sqrt(2.0 * (CELLS - 1)),
        "sign and lowest bit together": abs(odd - total / 2) > FAR * np.sqrt(total) / 2,
        "sign": abs(positive - total / 2) > FAR * np.sqrt(total) / 2,
    }
    for bit, (_, ones) in enumerate(bits):
        wrong[f"bit {bit}"] = abs(ones - total / 2) > FAR * np.sqrt(total) / 2
    for power, (mean, variance) in enumerate(((0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)), start=1):
        wrong[f"moment {power}"] = abs(moments[power - 1] / total - mean) > FAR * np.sqrt(variance / total)
    return [name for name, found in wrong.items() if found]


def smirnov(values: np.ndarray, scale: float, beyond: float = 0.0) -> float:
    """The Kolmogorov-Smirnov distance of |values| from the half-normal beyond `beyond`, times sqrt(count)."""
    x = np.sort(np.abs(values)) / scale
    tail = 2.0 * ndtr(-beyond)
    expected = (tail - 2.0 * ndtr(-x)) / tail
    steps = np.arange(len(x) + 1) / len(x)
    return float(np.max(np.maximum(np.abs(expected - steps[1:]), np.abs(expected - steps[:-1]))) * np.sqrt(len(x)))


def repeats(values: np.ndarray) -> int:
    """How many draws equal another one; of 1e5 at scale 2^40 an honest sampler repeats one in a thousand tries."""
    return len(values) - len(np.unique(values))
