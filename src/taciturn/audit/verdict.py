"""The audit of one pair of streams: the measured mu, the claimed one, and whether the claim is refuted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from taciturn.audit.interval import Interval, mean_interval, spread_interval
from taciturn.audit.pairs import Adversary, Pair
from taciturn.audit.statistics import (
    Statistic,
    best_statistic,
    calls_differ,
    not_normal,
    points_not_decided,
    secret_differs,
    secret_runs,
    seeded_runs,
)
from taciturn.audit.transcripts import CommonNoise, Played, Replayed, TwoWorlds
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, between_0_and_1, integer
from taciturn.kernel.accounting.gdp import Privacy, mu_of
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.scalar_loss import ScalarLoss

ERROR = 1e-6
"""Probability with which an audit may refute a claim that is true."""

_FAR_PAST = 1.5
_FEWEST = 100
_MOST = 10**7  # releases of a game that fit in memory


@dataclass(frozen=True)
class Finding:
    """The result of an audit of one pair of streams.

    Attributes
    ----------
    claimed : Privacy
        The claimed guarantee.
    claimed_mu : float
        The mechanism's own mu; with the paper's calibrations, the largest that the claim allows.
    mu, interval : float, tuple
        How well the two worlds can be distinguished, and a confidence interval; a claim below its lower end is refuted.
    shift, spread : float
        Of the test statistic, in stated standard deviations: its shift from one world to the other, and its standard
        deviation (the harmonic mean of the two worlds'); mu is the quotient.
    noise : float
        The noise's standard deviation over the stated one, over all entries of all releases, in the world with less
        noise.
    trials : int
        Of each world.
    violations : tuple of str
        Why the claim is refuted; empty if it holds.
    statistic : tuple of ndarray
        The test statistic in both worlds, trial by trial.

    Examples
    --------
    >>> worlds, violation = (np.zeros(1), np.ones(1)), "the noise is at most 0.5 of what is stated"
    >>> Finding(Privacy(1.0, 1e-6), 0.24, 0.5, (0.4, 0.6), 0.25, 0.5, 0.5, 100, (violation,), worlds).verdict
    'refuted'
    """

    claimed: Privacy
    claimed_mu: float
    mu: float
    interval: Interval
    shift: float
    spread: float
    noise: float
    trials: int
    violations: tuple[str, ...]
    statistic: tuple[Array, Array] = field(repr=False, compare=False)

    @property
    def verdict(self) -> Literal["holds", "refuted"]:
        """Refuted if there is a violation."""
        return "refuted" if self.violations else "holds"

    @property
    def says_little(self) -> bool:
        """Whether the interval is too wide to be informative: it holds 0, and reaches far beyond the claim."""
        return self.interval[0] == 0.0 and self.interval[1] > _FAR_PAST * self.claimed_mu


def distinguish(
    private: Private,
    pair: Pair,
    trials: int = 2_000,
    *,
    adversary: Adversary | None = None,
    secret_trials: int | None = None,
    error: float = ERROR,
) -> Finding:
    """Audit a `Private` on a pair of streams: distinguish its two worlds by the best linear test statistic.

    It is a white-box audit, on complete transcripts of vectors before projection: it knows the mechanism's stated
    standard deviations, and the exact statistics where those depend on the releases. A claim that is true is refuted
    with a probability of at most `error`; one that is false is refuted if the pair shows it. The noise's size, centre
    and covariance are measured, and its shape is tested; mu is computed for the normal shape. Points must follow from
    noisy statistics by the learner's `decide`.

    Parameters
    ----------
    private : Private
        With Gaussian noise, and a horizon. For the exponential mechanism use `taciturn.audit.distinguish_selections`.
    pair : Pair
        Two streams as long as the horizon; if the unit of privacy is a user, with ids.
    trials : int
        Streams to run in each world on seeded noise, 100 or more. The relative error of standard deviations
        is about `3.5/sqrt(trials)`.
    adversary : callable, optional
        Chooses every example but those that differ, from the point released last.
    secret_trials : int, optional
        Streams to run in each world on secret noise: by default a hundredth of `trials`, and 50 at least. With an
        adversary there are none.
    error : float
        Probability of a false alarm.

    Examples
    --------
    >>> from taciturn import Linear, Privacy, Problem, WholeSpace, pigd
    >>> private = pigd(Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1), Privacy(1.0, 1e-6), horizon=3)
    >>> result = distinguish(private, Pair([[1.0]] * 3, [1.0, 1.0, 1.0], at=0, other=([1.0], -1.0)), trials=400)
    >>> result.verdict, round(result.shift / result.claimed_mu, 2)
    ('holds', 1.0)
    """
    trials, error = integer("trials", trials, least=_FEWEST), between_0_and_1("error", error)
    _check(private, trials)
    pair.check(private)
    game = game_of(private, pair, adversary)
    share = error / 5.0
    played = game.play(trials)
    result = best_statistic(played, share)
    claimed_mu = claimed_mu_of(private)
    violations = [*_mu_too_large(result, claimed_mu), *_not_as_stated(played, share), *not_normal(played.here, share)]
    count = max(_FEWEST // 2, trials // 100) if secret_trials is None else integer("secret_trials", secret_trials, 0)
    transcripts = seeded_runs(private, pair)
    if count and result.shift > 0.0 and adversary is None and private.seed is None:
        shown = [secret_runs(private, pair, world, count) for world in (0, 1)]
        violations += secret_differs(game, shown, result, played, share / 2.0)
        transcripts += [*shown[0], *shown[1]]
    violations += [*points_not_decided(private, transcripts), *calls_differ(private, pair)]
    spread = result.shift / result.mu if result.mu > 0.0 else 1.0
    noise = math.sqrt(min(played.squares) / played.freedom)
    measured = (result.mu, result.interval, result.shift, spread, noise)
    statistic = result.values[0], result.values[1] + (result.shift if played.centred else 0.0)
    return Finding(private.guarantee.claimed, claimed_mu, *measured, trials, tuple(violations), statistic)


def game_of(private: Private, pair: Pair, adversary: Adversary | None = None) -> TwoWorlds:
    """The game on common noise where that is enough; else the one along the releases."""
    fixed = adversary is None and _without_feedback(private)
    return CommonNoise(private, pair) if fixed else Replayed(private, pair, adversary)


def _without_feedback(private: Private) -> bool:
    """Whether no statistic depends on a released point: by the learner's methods, or by constant gradients."""
    from taciturn.kernel.learners.ftrl import FTRL
    from taciturn.kernel.problem.codes import slope_code
    from taciturn.kernel.stream.passes import STATISTICS
    from taciturn.methods.averaged import Averaged

    learner, loss = private.learner, private.problem.loss
    averaged = learner.learner if isinstance(learner, Averaged) else learner
    straight = isinstance(loss, ScalarLoss) and loss.curvature == 0.0 and slope_code(loss) is not None
    constant = type(learner) is FTRL and straight and learner.curvature == 0.0
    return {type(learner), type(averaged)} <= STATISTICS.keys() or constant


def claimed_mu_of(private: Private) -> float:
    """The mechanism's own mu, which is stricter than the claimed (epsilon, delta); or else the claim's."""
    guarantee = private.guarantee
    delivered = guarantee.delivered
    if private.calibration == "exact" and delivered.gaussian and delivered.mu > 0.0:  # a plain epsilon has none
        return delivered.mu
    return mu_of(guarantee.claimed.epsilon, guarantee.claimed.delta)


def _check(private: Private, trials: int) -> None:
    """Reject what cannot be audited."""
    if private.timetable.horizon is None:
        raise InvalidInput("an audit needs complete streams. State a horizon.")
    if private.learner.certificate.metric != "l2":
        raise InvalidInput(
            "the exponential mechanism has no noisy statistics to compare. Use taciturn.audit.distinguish_selections."
        )
    check_size(trials, len(private.timetable.rounds))


def check_size(trials: int, releases: int) -> None:
    """Reject more trials and releases than fit into memory."""
    if (rows := trials * releases) > _MOST:
        raise InvalidInput(
            f"{trials:,} trials of {releases:,} releases are {rows:,} rows, and at most {_MOST:,} are supported. Use "
            "fewer trials or fewer rounds."
        )


def _mu_too_large(result: Statistic, claimed_mu: float) -> list[str]:
    low = result.interval[0]
    if low <= claimed_mu * (1.0 + 1e-9):
        return []
    return [f"the two worlds are distinguished with mu = {low:.4g} or more, and {claimed_mu:.4g} is claimed"]


def _not_as_stated(played: Played, error: float) -> list[str]:
    """Noise smaller than stated, over all entries of a world; or not centred on the exact statistics, where known."""
    violations = []
    high = min(spread_interval(squares, played.freedom, error / 2.0)[1] for squares in played.squares)
    if high < 1.0:
        violations.append(f"the noise is at most {high:.4g} of what is stated")
    if played.centred:
        ends = [mean_interval(np.sum(world, axis=1), error / 2.0) for world in (played.here, played.there)]
        if not all(low <= 0.0 <= high for low, high in ends):
            violations.append("releases are not centred on the statistics that the learner's definition gives")
    return violations
