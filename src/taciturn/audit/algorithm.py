"""One of the paper's algorithms, audited on its tight problem: every place, all relations, and an adversary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from taciturn.audit.pairs import (
    PLACES,
    Algorithm,
    Place,
    adaptive_adversary,
    rounds_of_a_release,
    tight_pair,
    tight_private,
)
from taciturn.audit.selection import distinguish_adaptive_selections, distinguish_selections
from taciturn.audit.verdict import ERROR, Finding, check_size, distinguish, game_of
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, between_0_and_1, integer, one_of
from taciturn.kernel.accounting.gdp import Privacy, delta_of, epsilon_of
from taciturn.kernel.accounting.unit import EXAMPLE, Neighbours, Unit, User
from taciturn.kernel.stream.protocols import Calibration

_SHORT = 20  # rounds of a game against an adversary
_SHARE = 10  # of the trials, for all games but one
_FEWEST = 100


@dataclass(frozen=True)
class Game:
    """A game of an audit, and its result.

    Attributes
    ----------
    neighbours, changed : str
        The relation, and which example differs, or where the rows of a user begin that do.
    adaptive : bool
        Whether an adversary chose the others.
    rounds : int
        Examples of a stream.
    finding : Finding
        The result.
    """

    neighbours: Neighbours
    changed: Place
    adaptive: bool
    rounds: int
    finding: Finding


@dataclass(frozen=True)
class Audit:
    """The audit of an algorithm: all its games, and the one that counts.

    That is one that refutes the claim, if any does; else, of the games without an adversary, the one with the largest
    distance between the worlds, which was played in full.

    >>> report = audit("private_sum", Privacy(1.0, 1e-6), rounds=5, trials=500)
    >>> report.verdict, len(report.games)
    ('holds', 7)
    """

    algorithm: Algorithm
    calibration: Calibration
    rounds: int
    error: float
    games: tuple[Game, ...]
    unit: Unit = EXAMPLE

    @property
    def worst(self) -> Game:
        """The game that counts."""
        return max(self.games, key=lambda game: (game.finding.verdict == "refuted", game.finding.trials))

    @property
    def verdict(self) -> str:
        """Refuted if a game refutes it."""
        return self.worst.finding.verdict

    def as_data(self) -> dict[str, Any]:
        """The report as plain data."""
        result = self.worst.finding
        return {
            "algorithm": self.algorithm,
            "calibration": self.calibration,
            **_numbers(result),
            "unit": str(self.unit),
            "rounds": self.rounds,
            "error": self.error,
            "games": [
                {name: getattr(game, name) for name in ("neighbours", "changed", "adaptive", "rounds")}
                | _numbers(game.finding)
                for game in self.games
            ],
        }


def audit(
    algorithm: Algorithm,
    privacy: Privacy,
    *,
    rounds: int = 200,
    trials: int = 20_000,
    ridge: float = 0.1,
    calibration: Calibration = "exact",
    error: float = ERROR,
    unit: Unit = EXAMPLE,
    before_each: Callable[[str], object] | None = None,
) -> Audit:
    """Audit an algorithm on its tight problem.

    The example that differs comes first, in the middle and last, replaced, zeroed out, and with another label, if there
    are labels; and, in a shorter game, an adversary chooses the others. Of the games without an adversary, the one with
    the largest distance between the worlds is played in full; the others are played on a tenth of the trials, the
    adversary's on a quarter of those.

    If the unit of privacy is a user, all rows of one differ, in the worst pattern that the bounds allow, from the
    first release on, from the middle on, up to the last, and in a random pattern; the user owns more rows than count,
    and those differ too (`tight_pair`).

    Parameters
    ----------
    algorithm : str
        `"pigd"`, `"pgiga"`, `"pocp-ftl"`, `"pqftl"`, `"pftrl"`, `"private_sum"`, `"class_sums"`, `"linucb"`,
        `"pol"` or `"ewoo"`.
    privacy : Privacy
        The budget; with a calibration of the paper's, its own parameters.
    rounds, trials : int
        Examples of a stream, and streams in each world.
    ridge : float
        Strong convexity of the losses.
    calibration : {"exact", "paper-printed", "paper-proven"}
        How the noise is calibrated.
    error : float
        Probability with which a true claim may be refuted.
    unit : Example or User
        Whose data is protected. With several rows of a user between two releases, those are as many rounds and one
        more.
    before_each : callable, optional
        Called before every game, with a text such as `"game 2 of 7: replace, middle"`.

    Examples
    --------
    >>> printed = audit("pigd", Privacy(1.0, 1e-6), rounds=20, trials=500, ridge=0.01, calibration="paper-printed")
    >>> printed.verdict
    'refuted'
    """
    rounds, trials = integer("rounds", rounds, least=2), integer("trials", trials, least=_FEWEST)
    error = between_0_and_1("error", error)
    one_of("algorithm", algorithm, get_args(Algorithm))
    check_size(trials, 1 if algorithm == "pol" else -(-rounds // rounds_of_a_release(unit)))
    if algorithm == "ewoo" and isinstance(unit, User):
        raise InvalidInput("ewoo selects, and selections are audited for one example. Leave out the unit.")
    announce = before_each or (lambda _: None)
    settings: Any = {"ridge": ridge, "calibration": calibration, "unit": unit}
    relations = get_args(Neighbours)
    if algorithm in ("private_sum", "linucb", "ewoo") or calibration != "exact":
        relations = ("replace", "zero-out")  # no labels to protect by themselves; the paper has no constants for them
    privates = {n: tight_private(algorithm, privacy, rounds, neighbours=n, **settings) for n in relations}
    distinguishers: tuple[Callable[..., Finding], ...] = (
        (distinguish_selections, distinguish_adaptive_selections) if algorithm == "ewoo" else (distinguish,) * 2
    )
    few = max(_FEWEST, trials // _SHARE)
    places = _farthest_first(privates["replace"])
    count = len(privates) * len(places) + 1
    share = error / count
    games = list[Game]()
    for n, place in product(privates, places):
        announce(f"game {len(games) + 1} of {count}: {n}, {place}")
        sizes = {"trials": few, "secret_trials": 0} if games else {"trials": trials}
        result = distinguishers[0](privates[n], tight_pair(privates[n], place), error=share, **sizes)
        games.append(Game(n, place, False, rounds, result))
    announce(f"game {count} of {count}: replace, first, adaptive")
    few_rounds = min(rounds, _short(unit))
    short = tight_private(algorithm, privacy, few_rounds, **settings)
    play: Any = {"adversary": adaptive_adversary(short), "trials": max(_FEWEST, few // 4), "error": share}
    games.append(Game("replace", "first", True, few_rounds, distinguishers[1](short, tight_pair(short), **play)))
    return Audit(algorithm, calibration, rounds, error, tuple(games), unit)


def _short(unit: Unit) -> int:
    """Rounds of a game against an adversary: as many more as the rows of a user take."""
    often = unit.participation
    return _SHORT + (often.rows - 1) * (often.apart if often.per_release == 1 else 2)


def _farthest_first(private: Private) -> list[Place]:
    """The places of the example that differs, the one with the largest distance between the worlds first."""
    places: list[Place] = [*PLACES, "random"] if isinstance(private.unit, User) else [*PLACES]
    if private.learner.certificate.metric == "range":
        return places  # the earlier, the more releases see it
    farthest = max(places, key=lambda place: game_of(private, tight_pair(private, place)).apart)
    return [farthest, *(place for place in places if place != farthest)]


def _numbers(result: Finding) -> dict[str, Any]:
    """Claim and result, by name."""
    claimed = result.claimed
    return {
        "claimed_epsilon": claimed.epsilon,
        "claimed_delta": claimed.delta,
        "claimed_mu": result.claimed_mu,
        "audited_mu": result.mu,
        "audited_epsilon": epsilon_of(claimed.delta, result.mu),
        "audited_delta": delta_of(claimed.epsilon, result.mu),
        "interval": list(result.interval),
        "says_little": result.says_little,
        "verdict": result.verdict,
        "violations": list(result.violations),
        "shift": result.shift,
        "spread": result.spread,
        "noise": result.noise,
        "trials": result.trials,
    }
