"""Averages of releases, updated release by release.

Slow twin: the formula of `taciturn.averages.late_average`.
"""

from __future__ import annotations

from typing import Any

from taciturn.kernel.jit import compiled


@compiled
def late_means(mean: Any, since: int, rounds: Any, points: Any, power: float, window: float, means: Any) -> None:
    """Writes the mean after each of these releases; `mean` is that of the releases before, up to round `since`.

    No more than `window` rounds count.
    """
    for k in range(len(rounds)):
        share = since / rounds[k] if rounds[k] <= window else max(1.0 - (rounds[k] - since) / window, 0.0)
        share = share**power
        for j in range(len(mean)):
            before = mean[j] if k == 0 else means[k - 1, j]
            means[k, j] = share * before + (1.0 - share) * points[k, j]
        since = rounds[k]
