"""Statistical tests on transcripts: the test statistic and its mu, the shape of the noise, secret noise, points.

**The test statistic.** The spread of the noise along the shift says how well two worlds can be distinguished by a
linear statistic.

*What is measured.* For a fixed row `a`, the statistic `a·(releases)` moves by m from one world to the other, and is
normal with the standard deviations s and s' there. Then no mu below

    m·(1/s + 1/s')/2

is true of the mechanism. *Proof.* Say "the neighbour" above the threshold c: that errs with the probabilities
`Phi(-c/s)` and `Phi((c - m)/s')`, and mu-GDP demands `mu ≥ c/s + (m - c)/s'` (Dong, Roth, Su, *Gaussian Differential
Privacy*, 2022, Definition 2.6). Take c = m/2. ∎ With s = s' the statistic distinguishes the worlds exactly that well.

*Which a.* The *stated* one, the shift itself, is best if the noise is as stated. The *learnt* one, `Σ⁻¹·shift` with Σ
the covariance of noise, is best whatever it is: a release without noise, or one whose noise was used before, gets its
optimal weight. Both are chosen on a fifth of the trials and judged on the others, so they are fixed rows there.

*Coverage.* The ends take m from Student's interval and the two standard deviations from chi-squared ones, each with a
third of half the error: with probability `1 - error` at least, both statistics' values lie within their intervals. (On
common noise trials agree about m but for lattice steps, which are not normal, and a millionth of it.)

**Shape.** A coarse test whether the noise of all releases is normal; no number of trials shows its tails.

Differences of two trials cancel what both have in common. Over the trials of a release, divided by their own
standard deviation, and over all releases, their empirical law F is compared with the normal one.

*Proof of the error.* Let `w = d/sigma_k` be these differences over their true standard deviations: N independent
standard normal values, if the noise is normal, whose empirical law is within `e = sqrt(ln(2/error)/(2N))` of Phi
everywhere but with probability `error` (Dvoretzky, Kiefer, Wolfowitz, 1956; Massart, 1990). Let every estimated
standard deviation lie within a factor `exp(±b)` of the true one, which chi-squared intervals say but with probability
`error`, all releases together. Then F lies between those of `w·exp(±b)`, and stretching moves Phi by at most `b·max
x·phi(x) = b/sqrt(2·pi·e)`. ∎

**Points.** Released points must carry no more information than the noisy statistics.

The other tests use noisy statistics. That is enough if each point is computed from its noisy statistic alone, by the
learner's `decide`, which is public: post-processing costs nothing. This is tested on seeded and on secret noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import fdtri, ndtr, ndtri

from taciturn.audit.interval import Interval, mean_interval, spread_interval
from taciturn.audit.pairs import Pair
from taciturn.audit.transcripts import Played, RunOfUsers, TwoWorlds, run_in_calls, seeded_run
from taciturn.core.private import Private
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.stream.release import Releases

_LEAST = 1e-12  # in stated variances: the smallest variance assumed where there is no noise


@dataclass(frozen=True)
class Statistic:
    """A linear test statistic: weights, shift, standard deviations in both worlds, and the mu that follows.

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
    """Of the stated and the learnt statistic, the one with the highest lower end."""
    pilot = max(2, len(played.here) // 5)
    choices = _choices(played, pilot)
    return max((_judged(played, pilot, a, error / len(choices)) for a in choices), key=lambda each: each.interval[0])


def _choices(played: Played, pilot: int) -> list[Array]:
    """The stated and the learnt weights, from the first trials."""
    shift, noise = np.mean(played.shift[:pilot], axis=0), played.here[:pilot]
    if (count := len(shift)) < 2:
        return [shift]
    covariance = np.cov(noise, rowvar=False) if pilot >= 4 * count else np.diag(np.var(noise, axis=0))
    variances, axes = np.linalg.eigh(covariance)
    return [shift, axes @ ((axes.T @ shift) / np.maximum(variances, _LEAST * max(1.0, np.max(variances))))]


def _judged(played: Played, pilot: int, weights: Array, error: float) -> Statistic:
    """The test statistic with these weights on the other trials."""
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
    """The standard deviation, and its interval."""
    freedom = len(values) - 1
    squares = max(float(np.sum((values - np.mean(values)) ** 2)), _LEAST * freedom)
    return float(np.sqrt(squares / freedom)), *spread_interval(squares, freedom, error)


def _mu(shift: float, here: float, there: float) -> float:
    return shift * (1.0 / here + 1.0 / there) / 2.0


_STEEPEST = 1.0 / math.sqrt(2.0 * math.pi * math.e)  # the largest x·phi(x)


def not_normal(noise: Array, error: float) -> list[str]:
    """A violation if the noise, a row for each trial, is farther from normal than chance allows but for `error`.

    >>> not_normal(np.where(np.arange(4_000).reshape(-1, 2) % 3 == 0, 1.0, -1.0), error=1e-6)
    ['the noise is not normal: its law is off by 0.2...']
    """
    pairs = len(noise) // 2
    apart = (noise[1 : 2 * pairs : 2] - noise[: 2 * pairs : 2]) / math.sqrt(2.0)
    sd = np.sqrt(np.mean(apart**2, axis=0))
    if not np.any(sd > 0.0):
        return []
    values = np.sort((apart / np.where(sd > 0.0, sd, math.inf))[:, sd > 0.0].ravel())
    expected, count = ndtr(values), len(values)
    steps = np.arange(count + 1.0) / count
    distance = float(max(np.max(steps[1:] - expected), np.max(expected - steps[:-1])))
    if distance <= allowed(pairs, count // pairs, error):
        return []
    return [f"the noise is not normal: its law is off by {distance:.3g}"]


def allowed(trials: int, releases: int, error: float) -> float:
    """How far from normal so many values may be by chance, but for `error`.

    >>> round(allowed(8_000, 200, 1e-6), 3)
    0.014
    """
    low, high = spread_interval(float(trials), trials, error / (2.0 * releases))
    stretch = max(-math.log(low), math.log(high))
    return math.sqrt(math.log(4.0 / error) / (2.0 * trials * releases)) + _STEEPEST * stretch


def secret_runs(private: Private, pair: Pair, world: int, trials: int) -> list[Releases]:
    """Streams of one world on secret noise, by `Private.run`."""
    X, y = pair.world(world)
    if isinstance(private.unit, User):
        return [run_in_calls(private, X, y, pair.users) for _ in range(trials)]
    return [private.run(private.start(), X, y)[1] for _ in range(trials)]


def secret_differs(
    game: TwoWorlds, shown: Sequence[list[Releases]], result: Statistic, played: Played, error: float
) -> list[str]:
    """How secret streams `shown`, of both worlds, differ from seeded ones, with false alarms of probability `error`.

    Standard deviations are compared by the F-law, in both worlds, of the statistic and over all releases: four tests
    with an eighth of the error each. The shift is compared by the normal law, with a quarter; the standard deviation
    that it needs is bounded with another quarter.
    """
    secret = [game.projections(world, runs) for world, runs in enumerate(shown)]
    seeded = (played.here, played.there)
    weighed = [rows @ result.weights for rows in (*secret, *seeded)]
    for one, other in zip((*weighed[:2], *secret), (*weighed[2:], *seeded), strict=True):
        ratio, low, high = _compared(one.reshape(len(one), -1), other.reshape(len(other), -1), error / 8.0)
        if not low <= ratio <= high:
            return [f"secret noise has {math.sqrt(ratio):.3g} times the standard deviation of seeded noise"]
    squares = float(np.var(weighed[2])) * len(weighed[2])
    _, largest = spread_interval(squares, len(weighed[2]) - 1, error / 4.0)
    gap = float(np.mean(weighed[1]) - np.mean(weighed[0]))
    expected = 0.0 if played.centred else result.shift
    half_width = -float(ndtri(error / 8.0)) * largest * math.sqrt(2.0 / len(shown[0]))
    if abs(gap - expected) > half_width + 1e-9 * result.shift:
        return [f"on secret noise the worlds differ by {gap:.4g}, and by {expected:.4g} on seeded noise"]
    return []


def _compared(secret: Array, seeded: Array, error: float) -> tuple[float, float, float]:
    """The ratio of two variances around the column means, and its interval if they are equal."""
    free, freedom = ((len(rows) - 1) * rows.shape[1] for rows in (secret, seeded))
    here, there = (float(np.sum(np.var(rows, axis=0))) * len(rows) for rows in (secret, seeded))
    ratio = here / free / (there / freedom) if there > 0.0 else 1.0 if here == 0.0 else math.inf
    return ratio, float(fdtri(free, freedom, error / 2.0)), float(fdtri(free, freedom, 1.0 - error / 2.0))


_CLOSE = 1e-9  # of the radius: compiled code rounds differently
_SEEDS = range(4)


def seeded_runs(private: Private, pair: Pair) -> list[Releases]:
    """A few transcripts of both worlds, by the pass that `Private.run` takes."""
    run = seeded_run(private, pair)
    return [run(world, seed) for world in (0, 1) for seed in _SEEDS]


def calls_differ(private: Private, pair: Pair) -> list[str]:
    """A violation if a stream of users' rows is not the same in one call, in several, and reloaded between them.

    Which rows count follows from the users' records, which a state hands on from call to call.
    """
    if not isinstance(private.unit, User):
        return []
    run = RunOfUsers(private, pair)
    for world in (0, 1):
        X, y = pair.world(world)
        once, several, reloaded = (
            run_in_calls(run.seeded(1), X, y, pair.users, calls, reload=reload)
            for calls, reload in ((1, False), (7, False), (4, True))
        )
        if not all(np.array_equal(once.noisy, other.noisy) for other in (several, reloaded)):
            return ["rows of users are not released alike in one call and in several"]
    return []


def points_not_decided(private: Private, transcripts: Iterable[Releases]) -> list[str]:
    """A violation if a point is not what `decide` returns for its noisy statistic.

    >>> from taciturn import Privacy, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=2)
    >>> shown = private.run(private.start(), [[1.0], [0.5]])[1]
    >>> points_not_decided(private, [shown])
    []
    >>> points_not_decided(private, [Releases(shown.rounds, 1, shown.noisy, shown.points + 1.0, shown.noise_sd, False)])
    ['points do not follow from noisy statistics']
    """
    follow = all(_follow(private, shown) for shown in transcripts)
    return [] if follow else ["points do not follow from noisy statistics"]


def _follow(private: Private, shown: Releases) -> bool:
    """Up to rounding errors relative to the radius; where that is infinite, to the longest point, or to 1."""
    stand_for = [private.calibrated.examples_of(each.k, each.t) for each in shown]
    decided = np.array(
        [private.learner.decide(t, each.noisy, each.noise_sd) for t, each in zip(stand_for, shown, strict=True)]
    )
    radius = private.problem.radius
    size = radius if math.isfinite(radius) else max(1.0, float(np.max(np.abs(decided))))
    return decided.shape == shown.points.shape and bool(np.all(np.abs(shown.points - decided) <= _CLOSE * size))
