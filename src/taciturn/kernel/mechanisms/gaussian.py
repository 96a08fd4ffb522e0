"""Independent Gaussian noise on every release: the mechanism of POCP (Algorithm 1 of the paper).

Release k adds noise of standard deviation `sigma_k` to a statistic of sensitivity `S_k`; the sequence is mu-GDP
with `mu² = Σ S_k²/sigma_k²` (`taciturn.kernel.accounting.gdp`). How the budget is spread is the *shape*:

    sigma_k = S_k^p·sqrt(Σ_j S_j^(2-2p))/mu

with p = 1 (the paper's: every release costs the same), p = 2/3 (least sum of standard deviations, hence least regret by
the Lipschitz argument of the paper's Theorem 2) or p = 1/2 (least sum of variances). Without a horizon,
`sigma_k² = S_k²/(mu²·w_k)` with `w_k = 1/l(k) - 1/l(k+1)`, `l(k) = 1 + ln k`, whose sum over all k is 1.

Statistics are rounded to a lattice (`taciturn.kernel.mechanisms.lattice`), whose cost, and the sampler's, is part of
every calibration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from taciturn.kernel.accounting.cost import FREE, Cost, sampled_gaussian, total
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.errors import BudgetExhausted, Unprovable
from taciturn.kernel.mechanisms.lattice import (
    OnLattice,
    calibrate_step,
    check_steps,
    checked,
    ideal_mu,
    lattice_step,
    on_lattice,
    shifts,
)
from taciturn.kernel.mechanisms.release_noise import BLOCK, rounds_from, share, shares
from taciturn.kernel.noise.sampling import LARGEST_SCALE, sampling_cost, sampling_parts
from taciturn.kernel.stream.protocols import TOO_DEAR, Certificate, damaged
from taciturn.kernel.stream.schedule import Timetable

_SAFE = 1.0 - 1e-8  # costs are planned this far inside the budget, more than their rounding errors
_FOR_SAMPLING = 1e-3  # share of epsilon that a stream without a horizon reserves for its sampler
_AT_ONCE = 2**12  # releases whose noise levels are computed in one block
_CACHED_BLOCKS = 2**8  # blocks of noise levels in memory: a million releases


class FiniteGaussian(OnLattice):
    """Noise for a known number of releases, whose levels are computed a block at a time and cached.

    **Resuming on another machine.** `steps` are those of the machine on which the stream began: release numbers from
    which on a step is used, and the steps. If the two machines also have one scale, then the cost of either bounds that
    of a stream whose releases come partly from each. *Proof.* Let A and B certify S_A and S_B for a release, true
    bounds both, and move it on its lattice by M_A and M_B, which rise with them. Noise is `c·M^p`, `p ≤ 1`, so that of
    the one with the larger M is larger. If M_B ≤ M_A, B's noise costs `(M_B/(c·M_B^p))² ≤ (M_A/(c·M_A^p))²`; else at
    most `(M_A/(c·M_B^p))²`, which is less. (p = 0 for the paper's noise.) Noise as computed is off by a few units in
    the last place, for which `cost` leaves room. ∎
    """

    def __init__(
        self, levels: Levels, timetable: Timetable, claimed: Privacy, steps: tuple[Integers, Array] | None = None
    ) -> None:
        super().__init__(levels.size, timetable.count, levels.certificate.magnitude, claimed)
        self._levels = levels
        self._timetable = timetable
        self._steps = _in_runs(steps, timetable.count)
        self._rounded_up = 1.0 + (timetable.count + 64) * 2.0**-51  # past the rounding errors of a sum of costs
        self._of_block = lru_cache(maxsize=_CACHED_BLOCKS)(self._compute_block)
        self._before = [0.0]
        self._farthest = 0.0
        runs: list[tuple[Integers, Array]] = []
        for block in range(-(-timetable.count // _AT_ONCE)):
            sd, step, spent = self._of_block(block)
            if steps is not None:
                check_steps(step, sd, self.magnitude)
            changes = np.flatnonzero(np.diff(step, prepend=runs[-1][1][-1] if runs else 0.0))
            if len(changes):
                runs.append((block * _AT_ONCE + changes + 1, step[changes]))
            self._before.append(self._before[-1] + float(spent[-1]))
            self._farthest = max(self._farthest, math.sqrt(float(np.max(np.diff(spent, prepend=0.0)))))
        first, step = (fixed(np.concatenate(part)) for part in zip(*runs, strict=True))
        self._numbers = {**levels.numbers, "first": first, "step": step}

    @property
    def numbers(self) -> Arrays:
        """The scale, and the lattice steps of all releases: from which on each is used."""
        return self._numbers

    def levels(self, k: int) -> tuple[float, float]:
        sd, step = self.levels_of(int(k), 1)
        return float(sd[0]), float(step[0])

    def levels_of(self, k: int, count: int) -> tuple[Array, Array]:
        first, start = divmod(k - 1, _AT_ONCE)
        sd, step, _ = self._of_block(first)
        end = start + count
        if end > _AT_ONCE:
            parts = [self._of_block(block)[:2] for block in range(first, first + -(-end // _AT_ONCE))]
            sd, step = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sd[start:end], step[start:end]

    def cost(self, k: int | None) -> Cost:
        """The costs of the first k releases, added up once and rounded up, and the sampler's."""
        k = self._timetable.count if k is None else int(k)
        if k == 0:
            return FREE
        block, within = divmod(k - 1, _AT_ONCE)
        spent: float = self._before[block] + self._of_block(block)[2].item(within)
        extra_epsilon, extra_delta = sampling_parts(k * self.size, self._farthest)
        return sampled_gaussian(spent * self._rounded_up, extra_epsilon, extra_delta)

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of this noise for another certificate, added up and rounded up as `cost` does it."""
        spent = farthest = 0.0
        for block, rounds in enumerate(self._timetable.blocks(_AT_ONCE)):
            sd, step, _ = self._of_block(block)
            moved = on_lattice(checked(certificate.at(rounds), self.magnitude), step, self.size)
            if (sd[moved > 0.0] == 0.0).any():
                raise Unprovable("an example would move releases that have no noise.")
            each = shifts(moved, sd)
            spent += float(np.sum(each**2))
            farthest = max(farthest, float(np.max(each)))
        draws = self._timetable.count * self.size
        return total([Cost(spent * self._rounded_up), sampling_cost(draws, farthest)])

    def _compute_block(self, block: int) -> tuple[Array, Array, Array]:
        """Standard deviations, lattice steps and cumulative costs of a block of releases."""
        rounds = self._timetable.following(block * _AT_ONCE, self._timetable.horizon or 0, _AT_ONCE)
        steps = None
        if self._steps is not None:
            releases = np.arange(block * _AT_ONCE + 1, block * _AT_ONCE + len(rounds) + 1)
            steps = self._steps[1][np.searchsorted(self._steps[0], releases, side="right") - 1]
        moved, sd, step = self._levels.at(rounds, steps)
        return fixed(sd), fixed(step), fixed(np.cumsum(shifts(moved, sd) ** 2))


def _in_runs(steps: tuple[Integers, Array] | None, count: int) -> tuple[Integers, Array] | None:
    """Lattice steps by the release from which on each is used, validated."""
    if steps is not None:
        first, step = steps
        rises = len(first) == len(step) > 0 and first[0] == 1 and (np.diff(first) > 0).all() and first[-1] <= count
        if not rises:
            raise damaged("lattice steps should be those of all releases")
    return steps


class EndlessGaussian(OnLattice):
    """Noise for a stream without a horizon: shares `w_k` of the budget whose sum never reaches 1.

    Standard deviations are planned `_SAFE` inside what is charged. So a stream that began with a mu from another
    machine, which rounds differently, may go on with it where this machine's is less by a tenth of that at most: `cost`
    is by this machine's. Lattice steps add to standard deviations what they add to sensitivities, so the cost does not
    depend on them.
    """

    def __init__(
        self, certificate: Certificate, timetable: Timetable, size: int, claimed: Privacy, mu: float = 0.0
    ) -> None:
        super().__init__(size, math.inf, certificate.magnitude, claimed)
        self.certificate = certificate
        self.timetable = timetable
        self._most_draws = int(_FOR_SAMPLING * claimed.epsilon / sampling_cost(1, 0.0).extra_epsilon)
        planned = [claimed.mu * math.sqrt(share(k)) for k in range(1, BLOCK + 1)]
        early = (sampling_cost(size, shift) for shift in planned)
        self._sampling = total([*early, sampling_cost(self._most_draws, planned[-1])])
        self._charged = ideal_mu(claimed, self._sampling)
        if mu > self._charged * (1.0 + (1.0 - _SAFE) / 10.0):
            raise damaged(TOO_DEAR)
        self.mu = mu or self._charged
        self.levels(1)  # rejects at once what no noise can protect

    @cached_property
    def numbers(self) -> Arrays:
        """The mu that all shares are of."""
        return {"mu": fixed(np.array(self.mu))}

    def levels(self, k: int) -> tuple[float, float]:
        per_unit = self._per_unit(k)
        sensitivity = checked(self.certificate.at([self.timetable.due(k) or 1]), self.certificate.magnitude)
        sd, step = calibrate_step(lambda moved: moved * per_unit, sensitivity, self.size, self.certificate.magnitude)
        return float(sd[0]), float(step[0])

    def levels_of(self, k: int, count: int) -> tuple[Array, Array]:
        """In arrays; one by one where the first lattice step does not fit, as `calibrate_step` then tries others."""
        magnitude = self.certificate.magnitude
        per_unit = self._per_unit(np.arange(k, k + count))
        sensitivity = checked(self.certificate.at(rounds_from(self.timetable, k, count)), magnitude)
        step = lattice_step(sensitivity, sensitivity * per_unit, self.size, magnitude)
        sd = on_lattice(sensitivity, step, self.size) * per_unit
        for j in np.flatnonzero(sd > LARGEST_SCALE * step):
            sd[j], step[j] = self.levels(k + int(j))
        return sd, step

    def _per_unit(self, k: Any) -> Any:
        return 1.0 / (self.mu * _SAFE * np.sqrt(share(k)))

    def cost(self, k: int | None) -> Cost:
        """`mu²·(1 - 1/l(k+1))`, the sum of the first k shares, and what the sampler may cost in all."""
        return FREE if k == 0 else total([Cost((self._charged * (1.0 - 1e-13)) ** 2 * shares(k)), self._sampling])

    @property
    def last_round(self) -> int | None:
        """The last round that can be released: the sampler is paid for no more; None if it is out of reach."""
        return self.timetable.due(max(1, self._most_draws // self.size))

    def noise(self, seed: int | None, k: int, count: int) -> Integers:
        """As in `NoiseByRelease`, until the sampler's share of the budget is spent, after some billions of values."""
        if (k + count - 1) * self.size > self._most_draws:
            raise BudgetExhausted(
                f"release {k} would pass the {self._most_draws:,} values that its sampler's share of epsilon pays for. "
                "Start a new stream, with a budget of its own."
            )
        return super().noise(seed, k, count)


class Level(NamedTuple):
    """Noise levels of releases: sensitivities on their lattice, standard deviations, lattice steps."""

    moved: Array
    sd: Array
    step: Array


class Levels(Protocol):
    """Noise levels of the releases at any rounds, so that a plan for a long stream takes no memory."""

    @property
    def certificate(self) -> Certificate:
        """How far one example moves the statistics."""

    @property
    def size(self) -> int:
        """Entries of a statistic."""

    @property
    def numbers(self) -> Arrays:
        """What a state stores besides lattice steps."""

    def at(self, rounds: Integers, step: Array | None = None) -> Level:
        """Noise levels at these rounds; with the lattice steps `step` of a resumed stream, if they are given."""


@dataclass(frozen=True)
class Planned:
    """Standard deviations `c·S^power`, and lattice steps that fit them.

    Only the scale c depends on all releases. A step is chosen for a standard deviation, adds to the sensitivity, and so
    to the standard deviation: `scales` are c without a lattice, then with the lattice for that, and so on.
    """

    certificate: Certificate
    size: int
    power: float
    scales: tuple[float, ...] = ()

    @property
    def numbers(self) -> Arrays:
        """The last scale; the others only served to find lattice steps."""
        return {"scale": fixed(np.array(self.scales[-1]))}

    def at(self, rounds: Integers, step: Array | None = None) -> Level:
        sensitivity = checked(self.certificate.at(rounds), self.certificate.magnitude)
        if step is not None:
            moved = on_lattice(sensitivity, step, self.size)
            return Level(moved, self._sd(moved, self.scales[-1]), step)
        moved = sensitivity
        sd = np.zeros_like(sensitivity)
        step = np.zeros_like(sensitivity)
        for i, scale in enumerate(self.scales):
            if i > 0:
                step = lattice_step(sensitivity, sd, self.size, self.certificate.magnitude)
                moved = on_lattice(sensitivity, step, self.size)
            sd = self._sd(moved, scale)
        return Level(moved, sd, step)

    def _sd(self, moved: Array, scale: float) -> Array:
        return np.asarray(np.where(moved > 0.0, moved**self.power, 0.0) * scale)


@dataclass(frozen=True)
class Given:
    """Standard deviations that are given, such as the paper's, on a lattice."""

    certificate: Certificate
    size: int
    noise: Callable[[Array], Array]

    @property
    def numbers(self) -> Arrays:
        """None: the noise is given again."""
        return {}

    def at(self, rounds: Integers, step: Array | None = None) -> Level:
        sd = self.noise(rounds.astype(np.float64))
        sensitivity = checked(self.certificate.at(rounds), self.certificate.magnitude)
        if step is None:
            step = lattice_step(sensitivity, sd, self.size, self.certificate.magnitude)
        return Level(on_lattice(sensitivity, step, self.size), sd, step)
