"""Whether streams on secret noise, run by the front door, do as those on seeded noise do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import fdtri, ndtri

from taciturn._util.arrays import Array
from taciturn.audit.interval import spread_interval
from taciturn.audit.pairs import Pair
from taciturn.audit.played import Played, TwoWorlds
from taciturn.audit.spread import Statistic
from taciturn.core.private import Private
from taciturn.core.release import Releases


def secret_runs(private: Private, pair: Pair, world: int, trials: int) -> list[Releases]:
    """As many streams of one world, by `Private.run`."""
    X, y = pair.world(world)
    return [private.run(private.start(), X, y)[1] for _ in range(trials)]


def unlike_seeded(
    game: TwoWorlds, shown: Sequence[list[Releases]], found: Statistic, played: Played, error: float
) -> list[str]:
    """What the secret streams `shown`, of both worlds, do otherwise, but for a false alarm of probability `error`.

    Deviations are compared by the F-law, in both worlds, of the statistic and over all releases: four tests with an
    eighth of the error each. The shift is compared by the normal law, with a quarter; the deviation that it needs is
    known but for another.
    """
    secret, seeded = [game.looked_at(world, runs) for world, runs in enumerate(shown)], (played.here, played.there)
    weighed = [rows @ found.weights for rows in (*secret, *seeded)]
    for one, other in zip((*weighed[:2], *secret), (*weighed[2:], *seeded), strict=True):
        ratio, low, high = _compared(one.reshape(len(one), -1), other.reshape(len(other), -1), error / 8.0)
        if not low <= ratio <= high:
            return [f"secret noise has {math.sqrt(ratio):.3g} times the deviation of seeded noise"]
    squares = float(np.var(weighed[2])) * len(weighed[2])
    _, largest = spread_interval(squares, len(weighed[2]) - 1, error / 4.0)
    gap, expected = float(np.mean(weighed[1]) - np.mean(weighed[0])), 0.0 if played.centred else found.shift
    reach = -float(ndtri(error / 8.0)) * largest * math.sqrt(2.0 / len(shown[0]))
    if abs(gap - expected) > reach + 1e-9 * found.shift:
        return [f"on secret noise the worlds lie {gap:.4g} apart, and {expected:.4g} on seeded noise"]
    return []


def _compared(secret: Array, seeded: Array, error: float) -> tuple[float, float, float]:
    """The ratio of two variances around the means of columns, and between what it lies if they are the same."""
    free, freedom = ((len(rows) - 1) * rows.shape[1] for rows in (secret, seeded))
    here, there = (float(np.sum(np.var(rows, axis=0))) * len(rows) for rows in (secret, seeded))
    ratio = here / free / (there / freedom) if there > 0.0 else 1.0 if here == 0.0 else math.inf
    return ratio, float(fdtri(free, freedom, error / 2.0)), float(fdtri(free, freedom, 1.0 - error / 2.0))
