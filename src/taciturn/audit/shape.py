"""Whether the noise of all releases together looks normal: coarsely, for no number of trials can see its tails.

Differences of two trials are free of what both have in common. Over the trials of a release, divided by their own
deviation, and over all releases together, their empirical law F is compared with the normal one.

*Proof of the error.* Let `w = d/sigma_k` be these differences over their true deviations: N independent standard normal
values, if the noise is normal, whose empirical law is within `e = sqrt(ln(2/error)/(2N))` of Phi everywhere but with
probability `error` (Dvoretzky, Kiefer, Wolfowitz, 1956; Massart, 1990). Let every estimated deviation lie within a
factor `exp(±b)` of the true one, which chi-squared intervals say but with probability `error`, all releases together.
Then F lies between those of `w·exp(±b)`, and stretching moves Phi by at most `b·max x·phi(x) = b/sqrt(2·pi·e)`. ∎
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from taciturn._util.arrays import Array
from taciturn.audit.interval import spread_interval

_STEEPEST = 1.0 / math.sqrt(2.0 * math.pi * math.e)  # the largest x·phi(x)


def not_normal(noise: Array, error: float) -> list[str]:
    """A complaint if the noise, a row for each trial, is farther from normal than it can be but for `error`.

    >>> not_normal(np.where(np.arange(4_000).reshape(-1, 2) % 3 == 0, 1.0, -1.0), error=1e-6)
    ['the noise is not normal: its law is off by 0.2...']
    """
    pairs = len(noise) // 2
    apart = (noise[1 : 2 * pairs : 2] - noise[: 2 * pairs : 2]) / math.sqrt(2.0)
    deviations = np.sqrt(np.mean(apart**2, axis=0))
    if not np.any(deviations > 0.0):
        return []
    values = np.sort((apart / np.where(deviations > 0.0, deviations, math.inf))[:, deviations > 0.0].ravel())
    expected, count = ndtr(values), len(values)
    steps = np.arange(count + 1.0) / count
    distance = float(max(np.max(steps[1:] - expected), np.max(expected - steps[:-1])))
    if distance <= allowed(pairs, count // pairs, error):
        return []
    return [f"the noise is not normal: its law is off by {distance:.3g}"]


def allowed(trials: int, releases: int, error: float) -> float:
    """How far from normal so many values may look, but for `error`.

    >>> round(allowed(8_000, 200, 1e-6), 3)
    0.014
    """
    low, high = spread_interval(float(trials), trials, error / (2.0 * releases))
    stretch = max(-math.log(low), math.log(high))
    return math.sqrt(math.log(4.0 / error) / (2.0 * trials * releases)) + _STEEPEST * stretch
