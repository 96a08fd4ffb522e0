"""Confidence intervals with a stated error, for any number of trials."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv, chdtri, stdtrit

from taciturn.kernel.arrays import Array

Interval = tuple[float, float]


def spread_interval(squares: float, freedom: int, error: float) -> Interval:
    """Interval for the standard deviation of normal values, from the sum of squared distances from their mean.

    *Proof.* `squares/sigma²` has the chi-squared law with `freedom` degrees of freedom (one less than there are
    values), and leaves the interval between its error/2-quantiles with probability `error`. ∎

    >>> low, high = spread_interval(squares=9_999.0, freedom=9_999, error=1e-6)
    >>> round(low, 3), round(high, 3)
    (0.966, 1.036)
    """
    lowest, highest = chdtri(freedom, 1.0 - error / 2.0), chdtri(freedom, error / 2.0)
    return math.sqrt(squares / float(highest)), math.sqrt(squares / float(lowest))


def mean_interval(values: Array, error: float) -> Interval:
    """Interval for the mean of normal values, by Student's law, which is exact; where all are equal it is that value.

    >>> [round(end, 2) for end in mean_interval(np.array([1.0, 2.0, 3.0, 4.0]), error=0.05)]
    [0.45, 4.55]
    """
    count = len(values)
    half_width = float(stdtrit(count - 1, 1.0 - error / 2.0)) * float(np.std(values, ddof=1)) / math.sqrt(count)
    middle = float(np.mean(values))
    return middle - half_width, middle + half_width


def bounded_interval(values: Array, largest: float, error: float) -> Interval:
    """Interval for the mean of independent values in [0, `largest`], of any law (Hoeffding, 1963, Theorem 2).

    >>> bounded_interval(np.array([0.4, 0.6] * 5_000), 1.0, error=2.0 * np.exp(-2.0))
    (0.49, 0.51)
    """
    half_width = largest * math.sqrt(math.log(2.0 / error) / (2.0 * len(values)))
    middle = float(np.mean(values))
    return max(0.0, middle - half_width), min(largest, middle + half_width)


def share_interval(hits: int, count: int, error: float) -> Interval:
    """Interval for the probability of a hit, from independent trials (Clopper, Pearson, 1934).

    *Proof.* The lower end p has `P(at least hits | p) = error/2`, and that grows with p: a truth below it would have
    made so many hits less likely than that. The upper end likewise. ∎

    >>> [round(end, 3) for end in share_interval(5, 10, error=0.05)]
    [0.187, 0.813]
    """
    low = float(betaincinv(hits, count - hits + 1, error / 2.0)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1.0 - error / 2.0)) if hits < count else 1.0
    return low, high
