"""What is asked of the sampler's draws, and what each question is worth: a list of violations, empty if there are none.

Draws of the tests come from seeds, so that nothing here is left to chance; were the seeds fresh, each threshold of
5.5 sigma would be passed by honest draws with a probability below 4e-8.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

FAR = 5.5
CELLS = 64
FINENESS = 2**10
REACH = 12
Draw = Callable[[int], np.ndarray]


def violations(draw: Draw, scale: float, count: int, chunk: int = 250_000) -> list[str]:
    """Everything wrong with `count` draws that claim to be `round(N(0, scale²))`."""
    edges = np.ceil(ndtri(np.arange(1, CELLS) / CELLS) * scale - 0.5)
    shares = np.diff(np.concatenate([[0.0], ndtr((edges - 0.5) / scale), [1.0]]))
    cells, ones, positive, moments = np.zeros(CELLS), np.zeros(8), 0, np.zeros(4)
    odd, ends, last = 0, 0, None
    for _ in range(count // chunk):
        values = draw(chunk)
        cells += np.bincount(np.searchsorted(edges, values, side="right"), minlength=CELLS)
        positive += int(np.count_nonzero(values > 0))
        sizes = np.abs(values)
        ones += [np.count_nonzero(sizes & 1 << bit) for bit in range(8)]
        odd += int(np.count_nonzero((values > 0) == (values & 1 == 1)))
        x = values / scale
        squared = x * x
        moments += [np.sum(x), np.sum(squared), np.sum(x * squared), np.sum(squared * squared)]
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
    for bit, count in enumerate(ones):
        wrong[f"bit {bit}"] = abs(count - total / 2) > FAR * np.sqrt(total) / 2
    for power, (mean, variance) in enumerate(((0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)), start=1):
        wrong[f"moment {power}"] = abs(moments[power - 1] / total - mean) > FAR * np.sqrt(variance / total)
    return [name for name, result in wrong.items() if result]


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


class Given:
    """A source of the given words, and of no others."""

    def __init__(self, words: np.ndarray) -> None:
        self.words, self.at = words, 0

    def __call__(self, count: int, into: np.ndarray | None = None, /) -> np.ndarray:
        result = self.words[self.at : self.at + count]
        self.at += count
        if into is None:
            return result
        into[: len(result)] = result
        into[len(result) : count] = 0
        return into[:count]


def slow_normal(scale: float, count: int, bits: Callable[[int], np.ndarray]) -> np.ndarray:
    """Integers distributed as `round(N(0, scale²))`, by another road: the compiled sampler's slow twin.

    The half-line is cut into blocks of 2^-10 sigma. One is chosen by a table of integer weights
    `w_i ≥ C·exp(-x_i²/2)`, `x_i` its lower end; an integer is chosen uniformly, by masking bits, from the least power
    of two that covers the block; it is accepted if it lies in the block, is not minus zero, and a uniform of 106 bits
    is below `C·exp(-x²/2)/w_i`.
    """
    drawn = np.zeros(count, dtype=np.int64)
    missing = np.arange(count)
    while missing.size:
        accepted, values = _attempt(scale, missing.size, bits)
        drawn[missing[accepted]] = values
        missing = missing[~accepted]
    return drawn


def _attempt(scale: float, count: int, bits: Callable[[int], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    cumulative, excess = _blocks()
    words = bits(4 * count).reshape(4, -1)
    block = np.searchsorted(cumulative, words[0] >> np.uint64(1), side="right")
    width = scale / FINENESS
    first, last = (np.ceil((block + side) * width).astype(np.int64) for side in (0, 1))
    value = first + (words[1] & np.uint64(2 ** int(np.ceil(np.log2(width + 1.0))) - 1)).astype(np.int64)
    negative = (words[1] >> np.uint64(63)).astype(np.bool_)
    lower, x = block / FINENESS, value / scale
    ratio = np.exp(-0.5 * (x - lower) * (x + lower)) * excess[block]
    part, whole = np.modf(ratio * 2.0**53)
    coarse, fine = ((word >> np.uint64(11)).astype(np.float64) for word in words[2:])
    below = (coarse < whole) | ((coarse == whole) & (fine < part * 2.0**53))
    accepted = (value < last) & below & ~(negative & (value == 0))
    return accepted, np.where(negative, -value, value)[accepted]


@cache
def _blocks() -> tuple[np.ndarray, np.ndarray]:
    """Cumulative weights of the blocks, which end at 2^63, and how far each weight was rounded up."""
    ideal = np.exp(-0.5 * (np.arange(REACH * FINENESS) / FINENESS) ** 2)
    ideal *= (2.0**63 - 2.0 * len(ideal)) / ideal.sum()
    weights = [max(1, int(np.ceil(w))) for w in ideal]
    weights[0] += 2**63 - sum(weights)
    excess = ideal / np.array(weights, dtype=np.float64)
    return np.cumsum(np.array(weights, dtype=np.uint64), dtype=np.uint64), np.minimum(excess, 1.0)


def apart(one: np.ndarray, other: np.ndarray, scale: float) -> float:
    """Two-sample chi-square of as many draws of each in 256 cells: sd above what draws of one kind have."""
    edges = np.ceil(ndtri(np.arange(1, 256) / 256) * scale - 0.5)
    a, b = (np.bincount(np.searchsorted(edges, draws, side="right"), minlength=256) for draws in (one, other))
    return float((np.sum((a - b) ** 2 / (a + b)) - 255) / np.sqrt(510.0))
