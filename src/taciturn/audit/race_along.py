"""The audit of a race between two candidates along what was released: against an adversary who sees every winner.

Given the past, candidate i wins in either world with a probability that the exact scores say, `P(i) ∝ exp(-g·s_i)`. Its
relative entropy from the other world's, added up along a game, has as its mean the relative entropy of the two worlds'
transcripts. *Proof.* The chain rule. ∎ A range of eta in each of K releases allows `K·eta²/8` of it (that is what zCDP
says of order 1), so `mu = sqrt(2·entropy)` stands beside `eta·sqrt(K)/2`; for Gaussian noise it would be mu itself.

*Coverage.* If eta is true, no game has more than `K·eta²/8`, and one that does refutes it without an error. The mean of
N games of values between 0 and that, B, is known to `B·sqrt(ln(2/error)/(2N))` but with probability `error` (Hoeffding,
1963). Where eta is refuted, B is the largest value seen, and the interval shows a size and no more.

That winners follow these probabilities is tested apart. *Proof of the error.* `Σ (win - P(first))` over all releases of
all games is a sum of differences that, given the past, have the mean 0 and lie in an interval of length 1: by
Hoeffding (1963) and Azuma (1967) it exceeds `sqrt(N·ln(2/error)/2)` with probability at most `error`. ∎
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from scipy.special import expit, log_expit

from taciturn._util.arrays import Array
from taciturn.audit.interval import Interval, bounded_interval
from taciturn.audit.pairs import Adversary, Pair
from taciturn.audit.race import check_race, scores
from taciturn.audit.replay import Replayed
from taciturn.audit.verdict import ERROR, Finding
from taciturn.core.private import Private
from taciturn.errors import between_0_and_1, integer
from taciturn.noise.sampling import GUMBEL_STEP


def race_along(
    private: Private, pair: Pair, adversary: Adversary, trials: int = 500, *, error: float = ERROR
) -> Finding:
    """Audit a race between two candidates, all examples but one chosen as winners are released.

    Parameters
    ----------
    private, pair, error
        As in `taciturn.audit.race_apart`.
    adversary : callable
        Chooses every example but the one that differs, from the point released last.
    trials : int
        Games to play in each world.

    Examples
    --------
    >>> from taciturn import Privacy, ewoo, experts
    >>> private = ewoo(experts(2), Privacy(1.0, 1e-6), horizon=4)
    >>> pair = Pair([[0.0, 1.0]] * 4, None, at=0, other=([1.0, 0.0], 0.0))
    >>> race_along(private, pair, lambda point, t: (point, 0.0), trials=100).verdict
    'holds'
    """
    check_race(private)
    pair.check(private)
    trials, error = integer("trials", trials, least=100), between_0_and_1("error", error)
    calibrated = cast(Any, private.calibrated)
    game = Replayed(private, pair, adversary)
    entropy, lean, ratio = np.empty((3, 2, trials))
    for world, trial in np.ndindex(2, trials):
        V, y, winners, _ = game.trial(world, 2 * trial + world)
        here, there = (_lead(private, *game.stream(v, V, y)) for v in (world, 1 - world))
        entropy[world, trial] = np.sum(expit(here) * _gain(here, there) + expit(-here) * _gain(-here, -there))
        first = winners[:, 0] == 0.0
        lean[world, trial] = np.sum(first - expit(here))
        ratio[world, trial] = np.sum(np.where(first, _gain(here, there), _gain(-here, -there))) * (1 - 2 * world)
    releases = len(private.timetable.rounds)
    claimed_mu, largest = calibrated.eta * math.sqrt(releases) / 2.0, float(np.max(entropy))
    interval = _mus(*bounded_interval(entropy.ravel(), max(claimed_mu**2 / 2.0, largest), error / 2.0))
    mu, farthest = _mus(float(np.mean(entropy)), largest)
    complaints = []
    if farthest > claimed_mu * (1.0 + 1e-9):
        complaints.append(f"along a game the worlds lie {farthest:.4g} apart, and {claimed_mu:.4g} is charged")
    if abs(float(np.sum(lean))) > math.sqrt(lean.size * releases * math.log(4.0 / error) / 2.0):
        complaints.append("winners do not follow the probabilities that the exact scores give")
    spread = float(np.std(ratio[0])) / mu if mu > 0.0 else 1.0
    measured = (mu, interval, mu, 1.0, spread)
    return Finding(private.guarantee.claimed, claimed_mu, *measured, trials, tuple(complaints), (ratio[1], ratio[0]))


def _mus(one: float, other: float) -> Interval:
    """`sqrt(2·entropy)` of both; a computed entropy of 0 may lie a rounding error below it."""
    return math.sqrt(max(0.0, 2.0 * one)), math.sqrt(max(0.0, 2.0 * other))


def _lead(private: Private, V: Array, y: Array) -> Array:
    """The logarithm of how much likelier the first candidate is to win than the second, release by release."""
    encoded = scores(private, V, y)
    return np.asarray((encoded[:, 0] - encoded[:, 1]) * GUMBEL_STEP)


def _gain(here: Array, there: Array) -> Array:
    """The log-ratio of a win, from the leads in two worlds."""
    return np.asarray(log_expit(here) - log_expit(there))
