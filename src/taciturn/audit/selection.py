"""The audit of the exponential mechanism with two candidates: how often each is selected.

**What is measured.** On common noise, the same seed in both worlds, a release has another winner in the neighbour's
world with some small probability f, and always in one direction: f is the difference of the probabilities p, q with
which the first candidate wins in either world, measured by counting.

**What follows.** Let K releases be independent, with the same p and q, and let `D(f)` be the delta, at the claimed
epsilon, of K releases with the probabilities `(1 ± f)/2` (`delta_of_flips`). With `m = (p + q)/2`, what the releases
deliver lies between `D(f/(2·max(m, 1-m)))` and `D(f/(2·min(m, 1-m)))`. *Proof.* Let m ≤ 1/2 (else exchange the
candidates). Turning each win of the second candidate into one of the first, with probability `(1/2 - m)/(1 - m)`,
makes the two probabilities symmetric around 1/2 and their difference `f/(2(1 - m))`; that is post-processing, under
which delta does not grow. Conversely, of releases with the probabilities `(1 ± f/(2m))/2`, turn each win of the first
candidate into one of the second with probability `1 - 2m`: these are the releases. ∎ In the same way D grows with f.

**Coverage.** f and p are shares of independent releases, each in a Clopper-Pearson interval with a quarter of the
error, m lies within f/2 of p, q within f of it, and D is taken at the worst ends. That releases are independent is
tested in both worlds by how often a transcript's number of wins lies more than a standard deviation from K/2; that
secret noise behaves as seeded noise by its wins, and by the same test of its transcripts; a quarter each. All of them
are those of the pass that `Private.run` uses.

**Adaptive streams.** `distinguish_adaptive_selections` audits along the releases, against an adversary who sees every
winner. Given the past, candidate i wins in either world with the probability `P(i) ∝ exp(-g·s_i)` of the exact scores.
Its relative entropy from the other world's, summed along a game, has as its mean the relative entropy of the
transcripts of the two worlds. *Proof.* The chain rule. ∎ A range of eta in each of K releases allows `K·eta²/8` of it
(zCDP of order 1), so `mu = sqrt(2·entropy)` is compared with `eta·sqrt(K)/2`; for Gaussian noise it would be mu itself.

*Coverage.* If eta is true, no game has more than `K·eta²/8`, and one that does refutes it without an error. The mean of
N games of values between 0 and that, B, is known to `B·sqrt(ln(2/error)/(2N))` but with probability `error` (Hoeffding,
1963). Where eta is refuted, B is the largest value seen, and the interval shows a size and no more.

That winners follow these probabilities is tested separately. *Proof of the error.* `Σ (win - P(first))` over all
releases of all games is a sum of differences that, given the past, have the mean 0 and lie in an interval of length 1:
by Hoeffding (1963) and Azuma (1967) it exceeds `sqrt(N·ln(2/error)/2)` with probability at most `error`. ∎
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, expit, gammaln, log_expit

from taciturn.audit.interval import Interval, bounded_interval, share_interval
from taciturn.audit.pairs import Adversary, Pair
from taciturn.audit.statistics import points_not_decided, secret_runs, seeded_runs
from taciturn.audit.transcripts import Replayed, initial_standing, released, run_pass
from taciturn.audit.verdict import ERROR, Finding, check_size, claimed_mu_of
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, between_0_and_1, integer
from taciturn.kernel.accounting.gdp import SMALLEST, mu_of
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.noise.sampling import GUMBEL_STEP
from taciturn.kernel.replay import without_noise
from taciturn.kernel.stream.release import Releases

Wins = NDArray[np.bool_]


def distinguish_selections(
    private: Private, pair: Pair, trials: int = 2_000, *, secret_trials: int | None = None, error: float = ERROR
) -> Finding:
    """Audit the exponential mechanism with two candidates on a pair of streams.

    `mu` is the one whose delta, at the claimed epsilon, is that of the releases, so that it can be compared with a
    claim.

    Parameters
    ----------
    private : Private
        By `taciturn.Exponential`, between two candidates, with a horizon.
    pair : Pair
        Two streams whose candidates have equal losses but for the example that differs.
    trials, secret_trials, error
        As in `taciturn.audit.distinguish`.

    Examples
    --------
    >>> from taciturn import Privacy, ewoo, experts
    >>> private = ewoo(experts(2), Privacy(1.0, 1e-6), horizon=20)
    >>> pair = Pair([[0.0, 1.0]] + [[0.5, 0.5]] * 19, None, at=0, other=([1.0, 0.0], 0.0))
    >>> result = distinguish_selections(private, pair, 400)
    >>> result.verdict, result.mu < result.claimed_mu
    ('holds', True)
    """
    trials, share = integer("trials", trials, least=100), between_0_and_1("error", error) / 4.0
    _check_selection(private)
    check_size(trials, len(private.timetable.rounds))
    pair.check(private)
    start = int(np.searchsorted(private.timetable.rounds, int(pair.places[0]) + 1))
    here, there = (_wins(private, pair, world, trials)[:, start:] for world in (0, 1))
    flips, releases = int(np.sum(here != there)), here.shape[1]
    f, p = share_interval(flips, here.size, share), share_interval(int(np.sum(here)), here.size, share)
    q = max(0.0, p[0] - f[1]), min(1.0, p[1] + f[1])
    violations = [*_not_monotone(here, there), *_not_independent(here, p, share / 2.0)]
    violations += _not_independent(there, q, share / 2.0)
    transcripts = seeded_runs(private, pair)
    count = max(50, trials // 100) if secret_trials is None else integer("secret_trials", secret_trials, 0)
    if count and private.seed is None:
        for world, seeded, chance in ((0, here, p), (1, there, q)):
            transcripts += (shown := secret_runs(private, pair, world, count))
            secret = np.array([_won(each)[start:] for each in shown])
            violations += _not_as_seeded(secret, seeded, chance, share / 2.0)
    violations += points_not_decided(private, transcripts)
    middle = p[0] - f[1] / 2.0, p[1] + f[1] / 2.0
    ends = f[0] / (2.0 * max(middle[1], 1.0 - middle[0])), f[1] / (2.0 * max(min(middle[0], 1.0 - middle[1]), f[1] / 2))
    low, mu, high = (_mu(private, each, releases) for each in (ends[0], flips / here.size, min(1.0, ends[1])))
    claimed_mu = claimed_mu_of(private)
    if low > claimed_mu * (1.0 + 1e-9):
        violations.append(
            f"the two worlds are distinguished with mu = {low:.4g} or more, and {claimed_mu:.4g} is claimed"
        )
    values = _standardised(there), _standardised(here)
    spread, shift = float(np.std(values[0])), 2.0 * math.sqrt(releases) * flips / here.size
    measured = (mu, (low, high), shift, spread, spread)
    return Finding(private.guarantee.claimed, claimed_mu, *measured, trials, tuple(violations), values)


def _check_selection(private: Private) -> None:
    """Reject all but two candidates with a known number of releases."""
    two = private.learner.certificate.kind == "range/tail" and private.learner.statistic_size == 2
    if not two or private.timetable.horizon is None:
        raise InvalidInput("this audit takes two candidates and a horizon, as in ewoo(experts(2), …, 100).")
    if isinstance(private.unit, User):
        raise InvalidInput("selections are audited for one example. Use unit=Example(), or audit a sum or an iterate.")


def delta_of_flips(f: float, releases: int, epsilon: float) -> float:
    """`Σ_n max(0, P(n) - exp(epsilon)·Q(n))`, `P = Bin(K, (1+f)/2)`, `Q = Bin(K, (1-f)/2)`.

    >>> delta_of_flips(0.5, 1, epsilon=0.0), delta_of_flips(0.5, 1, epsilon=2.0)
    (0.5, 0.0)
    """
    if f >= 1.0:
        return 1.0
    n = np.arange(releases + 1.0)
    ways = gammaln(releases + 1.0) - gammaln(n + 1.0) - gammaln(releases - n + 1.0) - releases * math.log(2.0)
    more, less = math.log1p(f), math.log1p(-f)
    P, Q = ways + n * more + (releases - n) * less, ways + n * less + (releases - n) * more
    return float(np.sum(np.maximum(0.0, np.exp(P) - np.exp(epsilon + Q))))


def _mu(private: Private, f: float, releases: int) -> float:
    epsilon = private.guarantee.claimed.epsilon
    delta = delta_of_flips(f, releases, epsilon)
    return mu_of(epsilon, min(delta, 1.0 - 1e-12)) if delta > SMALLEST else 0.0


def scores(private: Private, V: Array, y: Array) -> NDArray[np.int64]:
    """The encoded scores of clipped examples, release by release; they depend on no released point."""
    rows = without_noise(private, V, y)
    return np.array([private.calibrated.encode({}, row, k)[1] for k, row in enumerate(rows, start=1)])


def _wins(private: Private, pair: Pair, world: int, trials: int) -> Wins:
    """Whether the first candidate wins, trial by trial and release by release, on seeded noise."""
    way, at, stream = run_pass(private), initial_standing(private), pair.clipped(private, world)
    rounds = private.timetable.rounds
    return np.array([_won(released(way, at, *stream, rounds, seed)[1]) for seed in range(trials)])


def _won(shown: Releases) -> Wins:
    return np.asarray(shown.noisy[:, 0] == 0.0)


def _standardised(wins: Wins) -> Array:
    """The wins of each transcript, in standard deviations from K/2."""
    return np.asarray((2.0 * np.sum(wins, axis=1) - wins.shape[1]) / math.sqrt(wins.shape[1]))


def _not_monotone(here: Wins, there: Wins) -> list[str]:
    """On common noise one example favours one candidate."""
    if np.any(here & ~there) and np.any(~here & there):
        return ["on common noise the example that differs favours both candidates"]
    return []


def _not_independent(here: Wins, p: Interval, error: float) -> list[str]:
    """How often a transcript has many or few wins, compared with the binomial law at the nearest and the farthest p."""
    count = here.shape[1]
    within = math.sqrt(count) / 2.0
    far = int(np.sum(np.abs(np.sum(here, axis=1) - count / 2.0) > within))
    nearest = min(max(0.5, p[0]), p[1])
    farthest = max(p, key=lambda end: abs(end - 0.5))
    stated = [_beyond(count, within, end) for end in (nearest, farthest)]
    low, high = share_interval(far, len(here), error)
    if low > stated[1] or high < stated[0]:
        return [f"{far / len(here):.3g} of all transcripts have extreme numbers of wins, and {stated[0]:.3g} should"]
    return []


def _beyond(count: int, within: float, p: float) -> float:
    """`P(|N - K/2| > within)` for a binomial N."""
    lower, upper = math.ceil(count / 2.0 - within) - 1, math.floor(count / 2.0 + within)
    return float((bdtr(lower, count, p) if lower >= 0 else 0.0) + (bdtrc(upper, count, p) if upper < count else 0.0))


def _not_as_seeded(secret: Wins, seeded: Wins, p: Interval, error: float) -> list[str]:
    """Whether secret releases are independent too, and intervals for the share of wins meet."""
    ends = [share_interval(int(np.sum(wins)), wins.size, error / 4.0) for wins in (secret, seeded)]
    violations = [f"on secret noise, {violation}" for violation in _not_independent(secret, p, error / 2.0)]
    if ends[0][0] > ends[1][1] or ends[0][1] < ends[1][0]:
        shares = f"{np.mean(secret):.3g}, on seeded noise {np.mean(seeded):.3g}"
        violations.append(f"on secret noise the first candidate wins {shares}")
    return violations


def distinguish_adaptive_selections(
    private: Private, pair: Pair, adversary: Adversary, trials: int = 500, *, error: float = ERROR
) -> Finding:
    """Audit the exponential mechanism with two candidates against an adversary who sees every winner.

    Parameters
    ----------
    private, pair, error
        As in `taciturn.audit.distinguish_selections`.
    adversary : callable
        Chooses every example but the one that differs, from the point released last.
    trials : int
        Games to play in each world.

    Examples
    --------
    >>> from taciturn import Privacy, ewoo, experts
    >>> private = ewoo(experts(2), Privacy(1.0, 1e-6), horizon=4)
    >>> pair = Pair([[0.0, 1.0]] * 4, None, at=0, other=([1.0, 0.0], 0.0))
    >>> distinguish_adaptive_selections(private, pair, lambda point, t: (point, 0.0), trials=100).verdict
    'holds'
    """
    _check_selection(private)
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
    violations = []
    if farthest > claimed_mu * (1.0 + 1e-9):
        violations.append(f"along a game the worlds differ by {farthest:.4g}, and {claimed_mu:.4g} is charged")
    if abs(float(np.sum(lean))) > math.sqrt(lean.size * releases * math.log(4.0 / error) / 2.0):
        violations.append("winners do not follow the probabilities that the exact scores give")
    spread = float(np.std(ratio[0])) / mu if mu > 0.0 else 1.0
    measured = (mu, interval, mu, 1.0, spread)
    return Finding(private.guarantee.claimed, claimed_mu, *measured, trials, tuple(violations), (ratio[1], ratio[0]))


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
