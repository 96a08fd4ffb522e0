"""The exponential mechanism: of N candidates with losses L_i, publish i with probability ∝ exp(-lam·L_i), and no more.

It is sampled by the Gumbel-max trick. Losses become integer scores, `s_i = round(lam·(L_i - min L)/g)`, `g = 2⁻³²`;
each candidate gets Gumbel noise in the same units, `-s_i + N_i`, and the largest wins, the first of them in a tie. The
noisy scores are secret: unlike a Gaussian statistic on its lattice, they would reveal more than what is charged.

**Cost.** If one example moves the losses by d, with `max d - min d ≤ c` (a certificate of kind range/tail), the
log-ratio of the two laws of the winner lies in an interval of length

    eta = lam·c + 7g,

so a release is eta-DP, and (eta²/8)-zCDP.

*Proof.* (1) *Ideal noise.* With P(i) ∝ exp(-g·s_i) and a neighbour's P', `ln P(i)/P'(i)` is `-g·(s_i - s'_i)` plus a
constant: its range is g times that of s - s'.

(2) *Scores.* `min L - min L'` lies between min d and max d. So `(L_i - min L) - (L'_i - min L')` lies in an interval of
length `max d - min d` that contains 0. Cutting both gaps at one public number (below) moves their difference towards 0,
hence not out of that interval. With gaps of at most 4,096/lam, lam times the gap over g is at most 2⁴⁴ and computed
with two roundings, each a relative 2⁻⁵³, and then rounded to an integer: off by at most 1/2 + 2⁻⁸. That happens in both
worlds and at both ends of the range: `g·range(s - s') ≤ lam·c + 4·(1/2 + 2⁻⁸)·g ≤ lam·c + 2.02g`.

(3) *Noise.* Each N_i lies within h = 0.51 units of an ideal `G_i/g`, independently (`lattice_gumbel`). If i wins, then
`G_i/g - s_i + 2h ≥ G_j/g - s_j` for all j: it wins under ideal noise with a bonus of 2h, whose probability is at most
exp(2hg)·P(i). If it wins with a handicap of 2h, strictly, then it wins: at least exp(-2hg)·P(i). So the law P~ of the
winner has `|ln P~(i)/P(i)| ≤ 2hg`, in both worlds; `ln P~(i)/P~'(i)` is off by at most 4hg, and its range by at most
8hg = 4.08g. Together `lam·c + 6.1g`.

(4) *Bounded range.* A log-ratio in an interval of length eta takes both signs (or is 0), so it is at most eta: eta-DP.
With Z the log-ratio under the second law, `K(a) = ln E exp(a·Z)` has K(0) = K(1) = 0 and `K'' ≤ eta²/4`, the largest
variance on an interval of length eta. So `K(a) - (eta²/8)·a·(a - 1)` is concave and 0 at 0 and 1, hence not positive
for a > 1; divided by a - 1 that is the Rényi divergence of order a: at most `a·eta²/8`. ∎ ("Bounded range" is the name
of Dong, Durfee, Rogers, *Optimal Differential Privacy Composition for Exponential Mechanisms*, 2020.)

What (3) leaves out, noise of probability 2⁻⁴⁰⁹⁵ a draw, is charged as a delta of 2⁻¹⁰²² to the stream: enough for
2¹⁰⁰ draws, times `1 + exp(epsilon)` as it enters both worlds, up to epsilon = 2,000.

Candidates more than 4,096 units of noise behind are treated as if they were at 4,096: their chance is exp(-4096).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.errors import BudgetExhausted, InvalidInput, Unprovable, number
from taciturn.kernel.accounting.cost import FREE, Cost
from taciturn.kernel.accounting.gdp import SMALLEST, Privacy
from taciturn.kernel.accounting.zcdp import rho_of
from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.mechanisms.release_noise import NoiseByRelease, rounds_from, share, shares
from taciturn.kernel.noise.needed import NoiseNeeded
from taciturn.kernel.noise.sampling import GUMBEL_STEP
from taciturn.kernel.stream.passes import ARRAYS
from taciturn.kernel.stream.protocols import Calibrated, Calibration, Certificate, Mechanism, damaged, stored
from taciturn.kernel.stream.schedule import Timetable

ROUNDING = 7.0 * GUMBEL_STEP
"""What rounding scores and noise adds to the range of the log-ratio."""

GUMBEL_SD = math.pi / math.sqrt(6.0)  # of a standard Gumbel variable
_FARTHEST = 4096.0
_SAFE = 1.0 - 1e-9  # costs are planned this far inside the budget, more than their rounding errors
_UP = 1.0 + 2.0**-48
_LARGEST_EPSILON = 2000.0
_SANE = 2.0**500  # certificates between 1/this and this


@dataclass(frozen=True)
class Exponential(Mechanism):
    """The exponential mechanism, by the Gumbel-max trick: it publishes the winning candidate and nothing else.

    Every release costs the same. With a horizon the K releases are accounted for by zCDP, `K·eta²/8`, or by pure
    differential privacy, `K·eta`, whichever leaves more; without one by zCDP, with `taciturn.Gaussian`'s shares.

    Examples
    --------
    >>> from taciturn import Exponential, Privacy, Private, every, experts
    >>> private = Private(experts(3), Exponential(), every(1), Privacy(1.0, 1e-6), horizon=4)
    >>> print(private.guarantee)  # doctest: +ELLIPSIS
    The whole published sequence is (1, 1e-06)-differentially private: ...
    >>> state, releases = private.run(private.start(), [[0.0, 1.0, 0.5]] * 2)
    >>> [release.point.sum() for release in releases]
    [np.float64(1.0), np.float64(1.0)]
    """

    @property
    def accepts(self) -> str:
        """Losses of candidates, of which one example moves every later statistic."""
        return "range/tail"

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Rates `lam` for which everything published keeps `privacy`."""
        if calibration != "exact":
            raise InvalidInput(
                "the paper has one sentence on the exponential mechanism and no constants. Use calibration='exact'."
            )
        if privacy.epsilon > _LARGEST_EPSILON:
            raise InvalidInput(
                f"epsilon must be at most 2,000, got {privacy.epsilon:g}, which protects nothing. Take a smaller one."
            )
        if timetable.horizon is None:
            return EndlessRace(certificate, timetable, size, privacy)
        return FiniteRace(certificate, timetable.rounds, size, privacy)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibration of a stream that began with this budget: rates follow from it and the certificate.

        A release costs no more than that on any machine, as every machine's certificate is a bound.
        """
        if timetable.horizon is None:
            return EndlessRace(certificate, timetable, size, privacy, float(stored(numbers, "rho")))
        eta = float(stored(numbers, "eta"))
        pure = numbers.get("pure")
        if pure is None or pure.dtype != np.bool_ or pure.ndim:
            raise damaged("pure should be true or false")
        return FiniteRace(certificate, timetable.rounds, size, privacy, (eta, bool(pure)))


class Race(NoiseByRelease):
    """A calibrated exponential mechanism: scores, Gumbel noise, and the winner; the subclass gives the rates."""

    def rate(self, k: int) -> float:
        """`lam` of release k; 0 where nothing is certified."""
        return float(self.rates_of(int(k), 1)[0])

    def rates_of(self, k: int, count: int) -> Array:
        """Rates of `count` releases, from the k-th on."""
        raise NotImplementedError

    def noise_sd(self, k: int) -> float:
        """Standard deviation of release k's noise in units of loss, `pi/(sqrt(6)·lam)`."""
        rate = self.rate(k)
        return GUMBEL_SD / rate if rate > 0.0 else math.inf

    def encode(self, secret: Arrays, statistic: Array, k: int) -> tuple[Arrays, Integers]:
        """Scores, the best of them 0, of any statistic, finite or not."""
        with np.errstate(invalid="ignore", over="ignore"):
            behind = np.nan_to_num(statistic - np.min(statistic))
        rate = self.rate(k)
        scores = np.rint(np.minimum(behind, _FARTHEST / rate) * (rate / GUMBEL_STEP))
        return secret, np.asarray(-scores.astype(np.int64))

    def noise_needed(self, releases: range) -> NoiseNeeded:
        """Gumbel noise, the same for every rate."""
        return NoiseNeeded("gumbel", (len(releases), self.size))

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The number of the winner alone: the noisy scores are not for publication."""
        return public, np.array([np.argmax(noisy)], dtype=np.float64), self.noise_sd(k)


class FiniteRace(Race):
    """A known number of releases of equal cost."""

    def __init__(
        self,
        certificate: Certificate,
        rounds: Integers,
        size: int,
        claimed: Privacy,
        restored: tuple[float, bool] | None = None,
    ) -> None:
        certified = _finite(certificate.at(rounds), rounds)
        super().__init__(size, len(certified), claimed)
        self.rounds = rounds
        self.eta, self.pure = restored or _largest_range(claimed, len(certified))
        if self.eta < 2.0 * ROUNDING:
            raise InvalidInput(
                f"{claimed} is too little for {len(certified):,} releases: rounding alone would use it up. "
                "Publish less often, or take a larger epsilon."
            )
        bounded_range(self.eta, len(certified), self.pure)  # rejects one that no cost can be stated for
        self.rates = fixed((self.eta - ROUNDING) / certified * (1.0 - 2.0**-50))

    @cached_property
    def numbers(self) -> Arrays:
        """What every release may cost, and how it is counted."""
        return {"eta": fixed(np.array(self.eta)), "pure": fixed(np.array(self.pure))}

    def rate(self, k: int) -> float:
        return float(self.rates[k - 1])

    def rates_of(self, k: int, count: int) -> Array:
        return self.rates[k - 1 : k - 1 + count]

    def cost(self, k: int | None) -> Cost:
        """`eta` or `eta²/8`, times k: equal costs are counted, not added up."""
        k = len(self.rates) if k is None else k
        return FREE if k == 0 else bounded_range(self.eta, k, self.pure)

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of these rates for another certificate: `eta_k = lam_k·c_k + 7g`, counted as this one's are."""
        ranges = self.rates * _finite(certificate.at(self.rounds), self.rounds) + ROUNDING
        count = len(ranges)
        mean = math.fsum(ranges) / count if self.pure else math.sqrt(math.fsum(ranges**2) / count)
        return bounded_range(mean * _UP, count, self.pure)


class EndlessRace(Race):
    """A stream without a horizon: shares `w_k` of the budget whose sum never reaches 1."""

    def __init__(
        self, certificate: Certificate, timetable: Timetable, size: int, claimed: Privacy, rho: float = 0.0
    ) -> None:
        super().__init__(size, math.inf, claimed)
        self.certificate = certificate
        self.timetable = timetable
        self.rho = rho or rho_of(claimed.epsilon, claimed.delta - SMALLEST) * _SAFE
        first = np.array([timetable.due(1) or 1])
        _finite(certificate.at(first), first)  # rejects at once what no noise can protect

    @cached_property
    def numbers(self) -> Arrays:
        """The rho that all shares are of."""
        return {"rho": fixed(np.array(self.rho))}

    def eta(self, k: Any) -> Any:
        """What release k may cost: `sqrt(8·rho·w_k)`; for an array of releases, an array."""
        return np.sqrt(8.0 * self.rho * share(k)) * _SAFE

    def rates_of(self, k: int, count: int) -> Array:
        eta = self.eta(np.arange(k, k + count))
        certified = np.maximum(self.certificate.at(rounds_from(self.timetable, k, count)), 1.0 / _SANE)
        covered = (certified <= _SANE) & (eta >= 2.0 * ROUNDING)
        return np.where(covered, (eta - ROUNDING) / np.where(covered, certified, 1.0) * (1.0 - 2.0**-50), 0.0)

    def cost(self, k: int | None) -> Cost:
        """`rho·(1 - 1/l(k+1))`, the sum of the first k shares."""
        return FREE if k == 0 else Cost(rho=self.rho * shares(k), extra_delta=SMALLEST)

    def noise(self, seed: int | None, k: int, count: int) -> Integers:
        """As in `NoiseByRelease`, up to a round that the certificate does not cover, or whose share is too small."""
        if (uncovered := self.rates_of(k, count) == 0.0).any():
            release = k + int(np.argmax(uncovered))
            raise BudgetExhausted(
                f"release {release}, in round {self.timetable.due(release)}, lies beyond what the certificate and "
                "the budget cover. Start a new stream, with a budget of its own."
            )
        return super().noise(seed, k, count)


def bounded_range(eta: float, count: int = 1, pure: bool = False) -> Cost:
    """What `count` releases cost whose log-ratios have a range of at most `eta`: `eta²/8` of zCDP, or `eta` of epsilon.

    Pure costs are stated as `plain_epsilon`, which adds to any other.

    >>> bounded_range(0.02, count=200).rho
    0.01...
    """
    if pure:
        return Cost(plain_epsilon=eta * count * _UP, plain_delta=SMALLEST)
    rule = f"be 0 or more, and at most {_SANE:.3g}"
    eta = number("eta", eta, lambda eta: 0.0 <= eta <= _SANE, rule, "State a smaller epsilon.")
    return Cost(rho=eta**2 / 8.0 * count * _UP, extra_delta=SMALLEST)


def _largest_range(privacy: Privacy, count: int) -> tuple[float, bool]:
    """The largest `eta` that `count` releases may have, and whether it is by pure differential privacy."""
    pure = privacy.epsilon / count * _SAFE
    concentrated = math.sqrt(8.0 * rho_of(privacy.epsilon, privacy.delta - SMALLEST) / count) * _SAFE
    if pure > concentrated and bounded_range(pure, count, pure=True).within(privacy):
        return pure, True
    return concentrated, False


def _finite(certified: Array, rounds: Integers) -> Array:
    """The bounds of a certificate, validated, and no smaller than the least that can be divided by."""
    usable = (certified >= 0.0) & (certified <= _SANE)
    if not usable.all():
        raise Unprovable(
            f"nothing bounds what one example does to the statistic of round {rounds[np.argmin(usable)]:,}, so no "
            "noise is enough. Plan for fewer rounds, or bound the domain or the loss's slope."
        )
    return np.maximum(certified, 1.0 / _SANE)


ARRAYS.update((FiniteRace, EndlessRace))
