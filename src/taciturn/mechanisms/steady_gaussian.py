"""Independent Gaussian noise of one standard deviation, for statistics on which the influence of an example fades.

If an example moves the statistic a examples later by at most `S·rho^a + floor` (a certificate "l2/fading"), releases
after every m examples, with noise of standard deviation sigma, are mu-GDP with

    mu = (S/sqrt(1 - rho^(2m)) + sqrt(K)·(floor + sqrt(size)·g))/sigma,

K the number of releases and g their lattice step. *Proof.* Let the example be followed by a < m others before the next
release. The j-th release from there on moves by at most `S·rho^(a + j·m)`, and by what rounding adds, `floor` and
`sqrt(size)·g`. The lengths of the two sequences add up: a geometric series, at most `S²/(1 - rho^(2m))` as `rho^a ≤ 1`,
and K equal terms. Releases before the example have the same law in both worlds. ∎ A release at a horizon may come
sooner after the one before: one more term, of at most S². Of other schedules it is known that releases are one example
apart, m = 1.

The first term does not grow with the stream: **the noise is constant**. The second does, as does the sampler's share of
the budget: a difference in the last bit may flip the rounding of any later release, and unlike in sums that forget
(`taciturn.mechanisms.decayed_blt`) it never vanishes. So a stream without a horizon has as many releases as a
thousandth of the noise and of epsilon pays for, and ends with `BudgetExhausted`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers, fixed
from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.gdp import Privacy
from taciturn.core.protocols import Calibrated, Calibration, Certificate, stored
from taciturn.core.schedule import Every, Timetable
from taciturn.errors import BudgetExhausted, InvalidInput, Unprovable
from taciturn.mechanisms.lattice import OnLattice, calibrate_step, check_steps, checked, ideal_mu, on_lattice
from taciturn.mechanisms.prefix_sum import most_draws
from taciturn.noise.sampling import sampling_cost

_SAFE = 1.0 - 1e-8  # costs are planned this far inside the budget, more than their rounding errors
_FOR_ROUNDING = 1e-3  # share of the noise that a stream without a horizon reserves for rounding errors


@dataclass(frozen=True)
class SteadyGaussian:
    """Noise of one standard deviation on every release, for learners of which the examples' influence fades.

    Releases should come at equal distances, `every(m)`; others are charged as if they came after every example. One
    example costs its whole share of the budget, once: what fades is not refunded.

    Examples
    --------
    >>> from taciturn import Hinge, L2Ball, Privacy, Problem, every, pigd
    >>> problem = Problem(Hinge(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> private = pigd(problem, Privacy(1.0, 1e-6), forget=1_000, schedule=every(100))
    >>> private.mechanism, round(private.calibrated.noise_sd(1), 3), round(private.calibrated.noise_sd(10**6), 3)
    (SteadyGaussian(), 0.199, 0.199)
    >>> private.last_round > 10**11
    True
    """

    @property
    def accepts(self) -> str:
        """Statistics of which one example moves every later one, by less and less."""
        return "l2/fading"

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which everything published keeps `privacy`."""
        if calibration != "exact":
            raise InvalidInput("the paper states no noise for steps that forget. Use calibration='exact'.")
        return SteadyNoise(certificate, timetable, size, privacy)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibration of a stream that began with this noise and lattice step."""
        sd, step = float(stored(numbers, "sd")), float(stored(numbers, "step"))
        return SteadyNoise(certificate, timetable, size, privacy, sd, step)


def _series(fade: float, timetable: Timetable) -> float:
    """`Σ_j rho^(2·a_j)` of the worst example, a_j the examples from the first release after it to the j-th.

    >>> from taciturn import every
    >>> [round(_series(0.5, Timetable(every(1), horizon)), 3) for horizon in (None, 10)]
    [1.333, 1.333]
    >>> [round(_series(0.5, Timetable(every(2), horizon)), 3) for horizon in (10, 11)]
    [1.067, 2.067]
    """
    schedule, horizon = timetable.schedule, timetable.horizon
    wait = schedule.rounds if isinstance(schedule, Every) else 1
    shorter = horizon is not None and horizon % wait > 0
    return 1.0 / -math.expm1(2.0 * wait * math.log(fade)) + float(shorter)


class SteadyNoise(OnLattice):
    """One standard deviation and one lattice step for all releases, whose cost is charged at once."""

    def __init__(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        claimed: Privacy,
        sd: float = 0.0,
        step: float = 0.0,
    ) -> None:
        super().__init__(size, math.inf, certificate.magnitude, claimed)
        self.timetable = timetable
        if not 0.0 < certificate.fade < 1.0:
            raise Unprovable(f"a certificate that fades has a factor below 1, and this one has {certificate.fade}.")
        all_of_it, floor = checked(np.array([float(certificate.at(1.0)), certificate.floor]), certificate.magnitude)
        series = math.sqrt(_series(certificate.fade, timetable))
        fading = float(all_of_it) * series
        known = timetable.horizon is not None
        self.releases = timetable.count if known else self._paid_for(float(all_of_it - floor) * series, float(floor))
        ideal = np.array([fading * (1.0 + 2.0**-40) + math.sqrt(self.releases) * float(floor)])
        per_step = float(self.releases) * size
        if sd > 0.0:
            noise, steps = np.array([sd]), check_steps(np.array([step]), np.array([sd]), certificate.magnitude)
        else:
            mu = ideal_mu(claimed, self._sampling(claimed.mu)) * _SAFE
            noise, steps = calibrate_step(lambda x: x / mu, ideal, per_step, certificate.magnitude)
        self.sd, self._step = float(noise[0]), float(steps[0])
        self._mu = float(on_lattice(ideal, steps, per_step)[0]) / self.sd * (1.0 + 2.0**-45)

    def _paid_for(self, fading: float, floor: float) -> int:
        """Releases of a stream without a horizon: of which rounding errors and sampler stay below their shares."""
        rounding = (_FOR_ROUNDING * fading / floor) ** 2 if floor > 0.0 else math.inf
        releases = int(min(rounding, most_draws(self.claimed) // self.size))
        if releases == 0:
            raise InvalidInput(
                "rounding errors, or the sampler, would cost more than a thousandth of the budget with the first "
                "release. State a horizon, a shorter window, or a larger epsilon."
            )
        return releases

    def _sampling(self, mu: float) -> Cost:
        return sampling_cost(self.releases * self.size, 1.01 * mu)

    @property
    def last_round(self) -> int | None:
        """The last round that can be released."""
        return self.timetable.due(self.releases)

    def numbers(self, k: int) -> Arrays:
        """Standard deviation and lattice step."""
        return self._numbers

    @cached_property
    def _numbers(self) -> Arrays:
        return {"sd": fixed(np.array(self.sd)), "step": fixed(np.array(self._step))}

    def levels(self, k: int) -> tuple[float, float]:
        return self.sd, self._step

    def levels_of(self, k: int, count: int) -> tuple[Array, Array]:
        return np.full(count, self.sd), np.full(count, self._step)

    def cost(self, k: int | None) -> Cost:
        """The cost of all releases that there can be, charged with the first."""
        return FREE if k == 0 else self._total

    @cached_property
    def _total(self) -> Cost:
        return total([Cost(self._mu**2), self._sampling(self._mu)])

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of this noise for another certificate."""
        again = SteadyNoise(certificate, self.timetable, self.size, self.claimed, self.sd, self._step)
        return again.cost(None)

    def noise(self, seed: int | None, k: int, count: int) -> Integers:
        """As in `NoiseByRelease`, up to the last release that is paid for."""
        if k + count - 1 > self.releases:
            raise BudgetExhausted(
                f"release {k + count - 1} lies beyond the {self.releases:,} that this stream pays for: rounding errors "
                "do not fade. Start a new stream, with a budget of its own."
            )
        return super().noise(seed, k, count)
