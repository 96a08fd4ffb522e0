"""The spread of the noise along the shift, and so how well two worlds are told apart by a linear statistic.

**What is measured.** For a fixed row `a`, the statistic `a·(releases)` moves by m from one world to the other, and is
normal with the deviations s and s' there. Then no mu below

    m·(1/s + 1/s')/2

is true of the mechanism. *Proof.* Say "the neighbour" above the threshold c: that errs with the probabilities
`Phi(-c/s)` and `Phi((c - m)/s')`, and mu-GDP demands `mu ≥ c/s + (m - c)/s'` (Dong, Roth, Su, *Gaussian Differential
Privacy*, 2022, Definition 2.6). Take c = m/2. ∎ With s = s' the statistic tells the worlds apart exactly that well.

**Which a.** The *stated* one, the shift itself, is best if the noise is as stated. The *learnt* one, `Σ⁻¹·shift` with Σ
the covariance of noise, is best whatever it is: a release without noise, or one whose noise was used before, gets all
the weight it deserves. Both are chosen on a fifth of the trials and judged on the others, so they are fixed rows there.

**Coverage.** The ends take m from Student's interval and the two deviations from chi-squared ones, each with a third of
half the error: with probability `1 - error` at least, both statistics' values lie within their intervals. (On common
noise trials agree about m but for lattice steps, which are not normal, and a millionth of it.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn._util.arrays import Array
from taciturn.audit.interval import Interval, mean_interval, spread_interval
from taciturn.audit.played import Played

_LEAST = 1e-12  # in stated variances: where there is no noise at all, that little is assumed


@dataclass(frozen=True)
class Statistic:
    """A linear statistic: what it weighs, how far it moves, its deviations in both worlds, and the mu it shows.

    >>> noise = np.array([[-1.0], [1.0], [0.5], [-0.5]] * 500)
    >>> shown = best_statistic(Played(noise, noise, np.full((2000, 1), 2.0), (1250.0, 1250.0), 1999, False), error=1e-6)
    >>> round(shown.mu, 1), shown.interval[0] < shown.mu < shown.interval[1]
    (2.5, True)
    """

    weights: Array = field(repr=False)
    shift: float
    spread: tuple[float, float]
    mu: float
    interval: Interval
    values: tuple[Array, Array] = field(repr=False)


def best_statistic(played: Played, error: float) -> Statistic:
    """The one of the two with the highest lower end."""
    pilot = max(2, len(played.here) // 5)
    choices = _choices(played, pilot)
    return max((_judged(played, pilot, a, error / len(choices)) for a in choices), key=lambda found: found.interval[0])


def _choices(played: Played, pilot: int) -> list[Array]:
    """The stated and the learnt weights, from the first trials."""
    shift, noise = np.mean(played.shift[:pilot], axis=0), played.here[:pilot]
    if (count := len(shift)) < 2:
        return [shift]
    covariance = np.cov(noise, rowvar=False) if pilot >= 4 * count else np.diag(np.var(noise, axis=0))
    variances, axes = np.linalg.eigh(covariance)
    return [shift, axes @ ((axes.T @ shift) / np.maximum(variances, _LEAST * max(1.0, np.max(variances))))]


def _judged(played: Played, pilot: int, weights: Array, error: float) -> Statistic:
    """What these weights show on the other trials."""
    if not np.any(weights):
        return Statistic(weights, 0.0, (1.0, 1.0), 0.0, (0.0, 0.0), (np.zeros(1), np.zeros(1)))
    weights = weights / np.linalg.norm(weights)
    values = played.here[pilot:] @ weights, played.there[pilot:] @ weights
    moves = played.shift[pilot:] @ weights
    spreads = [_spread(world, error / 3.0) for world in values]
    near, far = mean_interval(moves, error / 3.0)
    shift, spread = float(np.mean(moves)), (spreads[0][0], spreads[1][0])
    interval = max(0.0, _mu(near, *(high for *_, high in spreads))), _mu(far, *(low for _, low, _ in spreads))
    return Statistic(weights, shift, spread, _mu(shift, *spread), interval, values)


def _spread(values: Array, error: float) -> tuple[float, float, float]:
    """The deviation, and its interval."""
    freedom = len(values) - 1
    squares = max(float(np.sum((values - np.mean(values)) ** 2)), _LEAST * freedom)
    return float(np.sqrt(squares / freedom)), *spread_interval(squares, freedom, error)


def _mu(shift: float, here: float, there: float) -> float:
    return shift * (1.0 / here + 1.0 / there) / 2.0
