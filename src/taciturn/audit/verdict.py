"""One pair of streams, audited: what was found beside what is claimed, and whether the claim stands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from taciturn._util.arrays import Array
from taciturn.accounting.gdp import Privacy, mu_of
from taciturn.audit.interval import Interval, mean_interval, spread_interval
from taciturn.audit.pairs import Adversary, Pair
from taciturn.audit.statistics import (
    Statistic,
    best_statistic,
    not_normal,
    points_astray,
    secret_runs,
    seeded_runs,
    unlike_seeded,
)
from taciturn.audit.transcripts import CommonNoise, Played, Replayed, TwoWorlds
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, between_0_and_1, integer
from taciturn.problem.scalar_loss import ScalarLoss

ERROR = 1e-6
"""Probability with which an audit may refute a claim that is true."""

_FAR_PAST = 1.5
_FEWEST = 100
_MOST = 10**7  # released rows of a game that are kept in memory


@dataclass(frozen=True)
class Finding:
    """What an audit of one pair of streams found.

    Attributes
    ----------
    claimed : Privacy
        What the calibration promises.
    claimed_mu : float
        The mechanism's own mu; with the paper's calibrations, the largest that the promise allows.
    mu, interval : float, tuple
        How well the two worlds were told apart, and between what; a mu below the lower end is refuted.
    shift, spread : float
        Of the statistic, in stated deviations: how far it moves from one world to the other, and its deviation (the
        harmonic mean of the two worlds'); mu is the quotient.
    noise : float
        The noise's deviation over the stated one, over all entries of all releases, in the world that has less of it.
    trials : int
        Of each world.
    complaints : tuple of str
        What refutes the claim; none if it holds.
    statistic : tuple of ndarray
        The statistic in both worlds, trial by trial.

    Examples
    --------
    >>> worlds, complaint = (np.zeros(1), np.ones(1)), "the noise is at most 0.5 of what is stated"
    >>> Finding(Privacy(1.0, 1e-6), 0.24, 0.5, (0.4, 0.6), 0.25, 0.5, 0.5, 100, (complaint,), worlds).verdict
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
    complaints: tuple[str, ...]
    statistic: tuple[Array, Array] = field(repr=False, compare=False)

    @property
    def verdict(self) -> Literal["holds", "refuted"]:
        """Refuted if there is a complaint."""
        return "refuted" if self.complaints else "holds"

    @property
    def says_little(self) -> bool:
        """Whether mu may be 0, and as well lie far past the claim, for all that so many trials can tell."""
        return self.interval[0] == 0.0 and self.interval[1] > _FAR_PAST * self.claimed_mu


def tell_apart(
    private: Private,
    pair: Pair,
    trials: int = 2_000,
    *,
    adversary: Adversary | None = None,
    secret_trials: int | None = None,
    error: float = ERROR,
) -> Finding:
    """Audit a `Private` on a pair of streams: tell its two worlds apart as well as a linear statistic can.

    It is a white-box audit, on whole transcripts of vectors before projection: it knows the mechanism's stated
    deviations, and the exact rows where those depend on what was released. A claim that is true is refuted with a
    probability of at most `error`; one that is false is refuted if the pair shows it. The noise's size, centre and
    covariance are measured, and its shape is looked at; mu is computed as for the normal shape. Points must follow from
    noisy rows by the learner's `decide`.

    Parameters
    ----------
    private : Private
        With Gaussian noise, and a horizon. For races between candidates there is `taciturn.audit.race_apart`.
    pair : Pair
        Two streams as long as the horizon.
    trials : int
        Streams to run in each world on seeded noise, 100 or more. Deviations are known to about `3.5/sqrt(trials)`.
    adversary : callable, optional
        Chooses every example but the one that differs, from the point released last.
    secret_trials : int, optional
        Streams to run in each world on secret noise: by default a hundredth of `trials`, and 50 at least. With an
        adversary there are none.
    error : float
        Probability of a false alarm.

    Examples
    --------
    >>> from taciturn import Linear, Privacy, Problem, WholeSpace, pigd
    >>> private = pigd(Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1), Privacy(1.0, 1e-6), horizon=3)
    >>> found = tell_apart(private, Pair([[1.0]] * 3, [1.0, 1.0, 1.0], at=0, other=([1.0], -1.0)), trials=400)
    >>> found.verdict, round(found.shift / found.claimed_mu, 2)
    ('holds', 1.0)
    """
    trials, error = integer("trials", trials, least=_FEWEST), between_0_and_1("error", error)
    _check(private, trials)
    pair.check(private)
    game, share = game_of(private, pair, adversary), error / 5.0
    played = game.play(trials)
    found = best_statistic(played, share)
    claimed_mu = claimed_mu_of(private)
    complaints = [*_too_near(found, claimed_mu), *_not_as_stated(played, share), *not_normal(played.here, share)]
    count = max(_FEWEST // 2, trials // 100) if secret_trials is None else integer("secret_trials", secret_trials, 0)
    transcripts = seeded_runs(private, pair)
    if count and found.shift > 0.0 and adversary is None and private.seed is None:
        shown = [secret_runs(private, pair, world, count) for world in (0, 1)]
        complaints += unlike_seeded(game, shown, found, played, share / 2.0)
        transcripts += [*shown[0], *shown[1]]
    complaints += points_astray(private, transcripts)
    spread = found.shift / found.mu if found.mu > 0.0 else 1.0
    noise = math.sqrt(min(played.squares) / played.freedom)
    measured = (found.mu, found.interval, found.shift, spread, noise)
    statistic = found.values[0], found.values[1] + (found.shift if played.centred else 0.0)
    return Finding(private.guarantee.claimed, claimed_mu, *measured, trials, tuple(complaints), statistic)


def game_of(private: Private, pair: Pair, adversary: Adversary | None = None) -> TwoWorlds:
    """On common noise where that is enough; else along what was released."""
    fixed = adversary is None and _blind(private)
    return CommonNoise(private, pair) if fixed else Replayed(private, pair, adversary)


def _blind(private: Private) -> bool:
    """Whether no row depends on a released point: by the learner's verbs, or as gradients of the loss are constant."""
    from taciturn.compiled.codes import slope_code
    from taciturn.compiled.passes import STATISTICS
    from taciturn.learners.ftrl import FTRL

    learner, loss = private.learner, private.problem.loss
    averaged = getattr(learner, "learner", learner)
    straight = isinstance(loss, ScalarLoss) and loss.curvature == 0.0 and slope_code(loss) is not None
    return {type(learner), type(averaged)} <= STATISTICS.keys() or (type(learner) is FTRL and straight)


def claimed_mu_of(private: Private) -> float:
    """The mechanism's own mu, which is more to live up to than a promised (epsilon, delta); or the promise's."""
    guarantee = private.guarantee
    delivered = guarantee.delivered
    if private.calibration == "exact" and delivered.gaussian and delivered.mu > 0.0:  # a plain epsilon has none
        return delivered.mu
    return mu_of(guarantee.claimed.epsilon, guarantee.claimed.delta)


def _check(private: Private, trials: int) -> None:
    """Refuse what cannot be audited."""
    if private.timetable.horizon is None:
        raise InvalidInput("an audit looks at whole streams. State a horizon.")
    if private.learner.certificate.metric != "l2":
        raise InvalidInput("a race between candidates has no noisy rows to look at. Use taciturn.audit.race_apart.")
    check_size(trials, len(private.timetable.rounds))


def check_size(trials: int, releases: int) -> None:
    """Refuse more than fits into memory; it says how much does."""
    if (rows := trials * releases) > _MOST:
        raise InvalidInput(
            f"{trials:,} trials of {releases:,} releases are {rows:,} rows, and {_MOST:,} are kept at most. Take fewer "
            "trials, or fewer rounds."
        )


def _too_near(found: Statistic, claimed_mu: float) -> list[str]:
    low = found.interval[0]
    if low <= claimed_mu * (1.0 + 1e-9):
        return []
    return [f"the two worlds are told apart with mu = {low:.4g} or more, and {claimed_mu:.4g} is claimed"]


def _not_as_stated(played: Played, error: float) -> list[str]:
    """Noise smaller than stated, over all entries of a world; or, where exact rows are known, not centred on them."""
    complaints = []
    high = min(spread_interval(squares, played.freedom, error / 2.0)[1] for squares in played.squares)
    if high < 1.0:
        complaints.append(f"the noise is at most {high:.4g} of what is stated")
    if played.centred:
        ends = [mean_interval(np.sum(world, axis=1), error / 2.0) for world in (played.here, played.there)]
        if not all(low <= 0.0 <= high for low, high in ends):
            complaints.append("releases are not centred on the rows that the learner's definition gives")
    return complaints
