"""Private prefix sums by matrix factorisation, for learners of which one example moves one statistic.

The rows of x are the statistics, and what is published is `C·x + noise`, C the strategy's encoder. If one example moves
one row by at most `Delta`, it moves `C·x` by at most `Delta·max_j ‖C e_j‖`, and noise of standard deviation sigma on
every entry makes the stream mu-GDP with

    mu = (Delta·max_j ‖C e_j‖ + lattice)/sigma,

however many sums are released. `lattice` is what rounding to multiples of g adds. Where encoding only adds rows up (a
tree), each row is rounded once, before it is encoded: `sqrt(size)·g·max_j ‖C e_j‖`. Where it multiplies, encoded rows
are rounded, and one example may flip the rounding of every later one: `sqrt(rows·size)·g`. The floating-point error of
an encoded row, a vector of norm e at most, may differ between the two worlds, too: `sqrt(rows)·2e`. e is
`rounding_error` times the largest norm of a row, which is that of a contribution times the examples between releases.

If the unit of privacy has several examples, u_j of them in row j, it moves `C·x` by at most `Delta·‖C u‖`, and
`max_j ‖C e_j‖` is replaced by the largest `‖C u‖` over all patterns that the certificate's participation allows
(`strategy.sensitivity_to`). Rows are rounded one by one, so a tree pays for the rounding of each row that holds some of
the unit's; that pattern has at most one in every row, and is among the allowed ones. Encoded rows are rounded as often
as before.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.accounting.unit import Participation
from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.errors import BudgetExhausted, InvalidInput, Unprovable
from taciturn.kernel.mechanisms.lattice import calibrate_step, check_steps, checked, ideal_mu, lattice_step, on_lattice
from taciturn.kernel.mechanisms.release_noise import NoiseByRelease
from taciturn.kernel.mechanisms.strategy import Coder, LastingCoder, sensitivity_to
from taciturn.kernel.noise.needed import NoiseNeeded
from taciturn.kernel.noise.sampling import SMALLEST_SCALE, sampling_cost
from taciturn.kernel.stream.protocols import Certificate
from taciturn.kernel.stream.schedule import Every, Timetable

LONGEST = 2**23
"""Rounds that one strategy without a horizon is planned for; float64 buffers certify no more."""

FOR_EVER = 2**62
"""Rows of a stream without an end, in closed forms."""

_SAFE = 1.0 - 1e-8  # costs are planned this far inside the budget, more than their rounding errors
_FINE = 2.0**-38  # lattice step of such a stream, in standard deviations
_COARSE = 2.0**-51  # its step, in sums of all examples so far: integers stay below 2⁵²
_FOR_SAMPLING = 1e-3  # share of epsilon that it reserves for its sampler


class NoisySums(NoiseByRelease):
    """A calibrated prefix-sum mechanism: encoded rows on a lattice, noise of one standard deviation, and decoded sums.

    In `NoiseByRelease`, which draws the noise, every encoded row counts as a release.
    """

    coder: Coder

    def __init__(self, coder: Coder, size: int, rows: float, claimed: Privacy, releases: int) -> None:
        super().__init__(size, rows, claimed)
        served = int(getattr(coder, "n", releases))
        if served < releases:  # its sensitivity is that of fewer rows
            raise InvalidInput(
                f"this strategy is for {served:,} releases, and {releases:,} are made. Make it for them."
            )
        self.coder = coder
        self._releases = releases
        self.sd = 0.0

    def cost(self, k: int | None) -> Cost:
        """The cost of the first k releases; None for all there can ever be."""
        raise NotImplementedError

    def step(self, k: int) -> float:
        """The lattice step of what release k encodes."""
        raise NotImplementedError

    @cached_property
    def numbers(self) -> Arrays:
        """Standard deviation and lattice step, and the strategy's numbers: they serve all rows of a stream."""
        coder = coder_numbers(self.coder, self._releases)
        return self._own_numbers | {f"coder.{name}": array for name, array in coder.items()}

    @cached_property
    def _own_numbers(self) -> Arrays:
        """The calibrated numbers other than the strategy's."""
        return {"sd": fixed(np.array(self.sd))}

    def noise_sd(self, k: int) -> float:
        """Standard deviation of the noise of an entry of the k-th sum."""
        return self.sd * float(self.coder.error(k))

    def start(self) -> tuple[Arrays, Arrays]:
        """The coder's memories."""
        return self.coder.start(self.size)

    def encode(self, secret: Arrays, statistic: Array, k: int) -> tuple[Arrays, Integers]:
        """Clipped, encoded, then rounded; where encoding only adds, rounded before it is encoded."""
        row = self.clip(statistic, k)
        step = self.step(k)
        if self.coder.integer:
            secret, rows = self.coder.encode(secret, np.floor(row / step + 0.5).astype(np.int64), k)
            return secret, np.asarray(rows, dtype=np.int64)
        secret, rows = self.coder.encode(secret, row, k)
        return secret, np.floor(rows / step + 0.5).astype(np.int64)

    def clip(self, statistic: Array, k: int) -> Array:
        """A statistic clipped to its certified magnitude, whatever a learner returns."""
        largest = self.largest_at(k)
        return np.clip(np.nan_to_num(statistic), -largest, largest)

    def noise_needed(self, releases: range) -> NoiseNeeded:
        """Integer noise for encoded rows."""
        return NoiseNeeded("normal", (len(releases), self.size), self.sd / self.step_of_row(releases))

    def step_of_row(self, rows: range) -> Array:
        """Lattice steps of encoded rows, by their numbers from 1, as a column."""
        raise NotImplementedError

    def noise_rows(self, seed: int | None, k: int, count: int) -> Integers:
        """Noise for all rows that these releases encode, in one array."""
        first = self.coder.before(k)
        return super().noise(seed, first + 1, self.coder.before(k + count) - first)

    def noise(self, seed: int | None, k: int, count: int) -> Sequence[Integers]:  # type: ignore[override]
        """One array for each release, of as many rows as it encodes."""
        drawn = self.noise_rows(seed, k, count)
        ends = [self.coder.before(j) for j in range(k, k + count + 1)]
        return [drawn[start - ends[0] : end - ends[0]] for start, end in pairwise(ends)]

    def steps(self, k: int, count: int) -> Array:
        """Lattice steps of all rows that these releases encode."""
        return self.step_of_row(range(self.coder.before(k) + 1, self.coder.before(k + count) + 1))[:, 0]

    def largest_of(self, k: int, count: int) -> Array:
        """Largest entries of the statistics of these releases; larger ones are clipped."""
        raise NotImplementedError

    def largest_at(self, k: int) -> float:
        """The largest entry of the statistic of release k."""
        return float(self.largest_of(k, 1)[0])

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The k-th sum, and the standard deviation of its noise."""
        public, total = self.coder.decode(public, np.asarray(noisy * self.step(k), dtype=np.float64), k)
        return public, total, self.noise_sd(k)


class OneStepSums(NoisySums):
    """Sums with one lattice step and one largest entry for the whole stream, whose cost is charged at once."""

    largest: float
    _step: float

    @cached_property
    def _own_numbers(self) -> Arrays:
        return {"sd": fixed(np.array(self.sd)), "step": fixed(np.array(self._step))}

    def step(self, k: int) -> float:
        return self._step

    def step_of_row(self, rows: range) -> Array:
        return np.array([[self._step]]) if len(rows) == 1 else np.full((len(rows), 1), self._step)

    def largest_of(self, k: int, count: int) -> Array:
        return np.array([self.largest]) if count == 1 else np.full(count, self.largest)

    def largest_at(self, k: int) -> float:
        return self.largest

    def cost(self, k: int | None) -> Cost:
        """The cost of the stream, charged with the first release, however few or many sums are released."""
        return FREE if k == 0 else self._total

    @cached_property
    def _total(self) -> Cost:
        raise NotImplementedError


class Finite(OneStepSums):
    """A known number of releases, one lattice step.

    With a given standard deviation, and perhaps a lattice step (the paper's, or a resumed stream's), `cost` is what
    these deliver.
    """

    def __init__(
        self,
        coder: Coder,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        claimed: Privacy,
        sd: float = 0.0,
        step: float = 0.0,
    ) -> None:
        rows = coder.before(timetable.count + 1)
        super().__init__(coder, size, rows, claimed, timetable.count)
        self.timetable = timetable
        certificate = in_blocks(certificate, timetable)
        moved = 0.0
        wait = last = 0
        for rounds in timetable.blocks():
            moved = max(moved, float(np.max(checked(certificate.at(rounds), certificate.magnitude))))
            wait = max(wait, int(np.max(np.diff(rounds, prepend=last))))
            last = int(rounds[-1])
        self.largest = certificate.magnitude * wait
        longest_row = checked_norm(certificate, size) * wait
        errors = 2.0 * math.sqrt(rows) * coder.rounding_error * longest_row
        self.sensitivity = sensitivity_to(coder, certificate.participation)
        self._reach = reach(self.sensitivity, certificate.participation)
        ideal = np.array([moved * self.sensitivity * (1.0 + 2.0**-40) + errors])
        per_step = self._rounding(rows)
        magnitude = self.largest * (1.0 if coder.integer else coder.row_norm)
        if sd > 0.0:
            noise = np.array([sd])
            if step:
                steps = check_steps(np.array([step]), noise, magnitude)
            else:
                steps = lattice_step(ideal, noise, per_step, magnitude)
        else:
            mu = ideal_mu(claimed, sampling_cost(rows * size, 1.01 * claimed.mu / self._reach)) * _SAFE
            noise, steps = calibrate_step(lambda x: x / mu, ideal, per_step, magnitude)
            sd = float(noise[0])
        self.sd = sd
        self._step = float(steps[0])
        self._mu = float(on_lattice(ideal, steps, per_step)[0]) / sd * (1.0 + 2.0**-45)
        self._check_range()

    def _rounding(self, rows: int) -> float:
        """The square of what rounding adds to the sensitivity, in lattice steps."""
        return self.size * (self.sensitivity**2 if self.coder.integer else float(rows))

    def _check_range(self) -> None:
        """Integer sums, noise included, must stay below 2⁶² steps."""
        if self.coder.integer and (self.largest * self.coder.row_norm + 12.0 * self.sd) / self._step >= 2.0**62:
            raise InvalidInput("sums of this many rows leave the range of 64-bit integers. Plan for fewer rounds.")

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of this noise for another certificate."""
        return Finite(self.coder, certificate, self.timetable, self.size, self.claimed, self.sd, self._step).cost(None)

    @cached_property
    def _total(self) -> Cost:
        shift = 1.01 * self._mu / self._reach
        return total([Cost(self._mu**2), sampling_cost(int(self.count) * self.size, shift)])


class Endless(NoisySums):
    """A stream without a horizon, up to `LONGEST` rounds: steps grow with the sums, and are paid for in advance.

    Steps follow from the standard deviation and from what a row can hold: a power of two that is no larger than what is
    paid for. So with the standard deviation of a resumed stream, `cost` holds for any steps, this machine's or those of
    the machine on which it began.
    """

    def __init__(
        self,
        coder: Coder,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        claimed: Privacy,
        sd: float = 0.0,
    ) -> None:
        releases, longest = planned(timetable)
        super().__init__(coder, size, math.inf, claimed, releases)
        self.timetable = timetable
        certificate = in_blocks(certificate, timetable)
        self.magnitude = certificate.magnitude
        moved = float(np.max(checked(certificate.at(2.0 ** np.arange(24)), certificate.magnitude)))
        self._most_draws = min(most_draws(claimed), coder.before(releases + 1) * size)
        self.sensitivity = sensitivity_to(coder, certificate.participation)
        self._reach = reach(self.sensitivity, certificate.participation)
        self._sampling = sampling_cost(self._most_draws, 1.01 * claimed.mu / self._reach)
        rows = coder.before(releases + 1)
        coarsest = self.magnitude * LONGEST * _COARSE
        errors = 2.0 * coder.rounding_error * checked_norm(certificate, size) * longest
        rounding = math.sqrt(rows) * (errors + math.sqrt(size) * coarsest)
        ideal = moved * self.sensitivity * (1.0 + 2.0**-40) + rounding
        finest = math.sqrt(rows * size) * _FINE
        self.sd = sd or ideal / (ideal_mu(claimed, self._sampling) * _SAFE - finest)
        self._mu = (ideal / self.sd + finest) * (1.0 + 2.0**-45)
        if not self.sd > 0.0 or coarsest * SMALLEST_SCALE > self.sd:
            raise InvalidInput("this budget leaves no lattice step for a stream without a horizon. State a horizon.")

    def step(self, k: int) -> float:
        """A power of two, at most the finest or what the sum of all examples so far needs."""
        return float(self._steps_of(self._seen(k, 1))[0])

    def step_of_row(self, rows: range) -> Array:
        first, last = self.coder.release_of(rows.start), self.coder.release_of(rows[-1])
        each = np.diff([self.coder.before(k) for k in range(first, last + 2)])
        skipped = rows.start - self.coder.before(first) - 1
        steps = np.repeat(self._steps_of(self._seen(first, last + 1 - first)), each)
        return np.asarray(steps[skipped : skipped + len(rows), None])

    def largest_of(self, k: int, count: int) -> Array:
        return np.asarray(self.magnitude * self._seen(k, count))

    def _seen(self, k: int, count: int) -> Array:
        """Examples seen by as many releases from the k-th on."""
        seen = self.timetable.following(k - 1, LONGEST, count).astype(np.float64)
        return np.concatenate([seen, np.full(count - len(seen), float(LONGEST))])

    def _steps_of(self, seen: Array) -> Array:
        return np.asarray(2.0 ** np.floor(np.log2(np.maximum(self.sd * _FINE, seen * self.magnitude * _COARSE))))

    @cached_property
    def last_round(self) -> int:
        """The last round that can be released: what comes after is not paid for."""
        k = bisect_left(range(self._releases + 1), True, key=lambda j: not self._paid_for(j + 1))
        return self.timetable.due(k) or 0 if k else 0

    def _paid_for(self, k: int) -> bool:
        return k <= self._releases and self.coder.before(k + 1) * self.size <= self._most_draws

    def noise_rows(self, seed: int | None, k: int, count: int) -> Integers:
        """As in `NoisySums`, until the rounds or the draws that were paid for are spent."""
        last = self.timetable.due(k + count - 1) or 0
        if last > LONGEST or not self._paid_for(k + count - 1):
            raise BudgetExhausted(
                f"round {last} lies beyond round {self.last_round:,}, with which this stream ends: later ones are not "
                "paid for. Start a new stream, with a budget of its own; or, before the first example, state a "
                "horizon, or publish every(100) by BLT(buffers=8), which never ends if it protects examples."
            )
        return super().noise_rows(seed, k, count)

    def cost(self, k: int | None) -> Cost:
        """The cost of the stream, charged with the first release."""
        return FREE if k == 0 else self._total

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of this noise for another certificate."""
        return Endless(self.coder, certificate, self.timetable, self.size, self.claimed, self.sd).cost(None)

    @cached_property
    def _total(self) -> Cost:
        """With the sampler's cost for what is spent, where a certificate moves the sums by more than the budget."""
        sampling = sampling_cost(self._most_draws, 1.01 * self._mu / self._reach)
        return total([Cost(self._mu**2), max(self._sampling, sampling, key=lambda cost: cost.extra_delta)])


class LastingSums(OneStepSums):
    """Sums of a stream that may never end: one lattice step, and costs that are paid once for all of it.

    The coder states the `life` of a row: at most so many encoded rows depend on it, and all others not by a bit. Errors
    of rounding and of the sampler are charged for these. Releases are at equal distances, and the certificate is steady
    (`Certificate.steady`). With the standard deviation and the lattice step of a resumed stream, `cost` is what these
    deliver.
    """

    by_block = True

    def __init__(
        self,
        coder: LastingCoder,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        claimed: Privacy,
        sd: float = 0.0,
        step: float = 0.0,
    ) -> None:
        super().__init__(coder, size, math.inf, claimed, FOR_EVER)
        self.timetable = timetable
        certificate = lasting(certificate, timetable)
        wait = distance(timetable)
        moved = float(checked(certificate.at(np.array([wait])), certificate.magnitude)[0])
        self.largest = certificate.magnitude * wait
        unit = certificate.participation
        self._rows = coder.life * unit.rows  # encoded rows that depend on one unit, at most
        errors = 2.0 * math.sqrt(self._rows) * coder.rounding_error * checked_norm(certificate, size) * wait
        self.sensitivity = sensitivity_to(coder, unit)
        if errors > moved * self.sensitivity:
            raise InvalidInput(
                f"one example is part of {self._rows:.4g} releases, too many: rounding errors would outweigh what "
                "they protect. Publish less often, or state a shorter window."
            )
        self._reach = reach(self.sensitivity, unit)
        ideal = np.array([moved * self.sensitivity * (1.0 + 2.0**-40) + errors])
        per_step = float(size * self._rows)
        magnitude = self.largest * coder.row_norm
        if sd > 0.0:
            noise = np.array([sd])
            steps = (
                check_steps(np.array([step]), noise, magnitude)
                if step
                else lattice_step(ideal, noise, per_step, magnitude)
            )
        else:
            mu = ideal_mu(claimed, self._sampling(claimed.mu)) * _SAFE
            noise, steps = calibrate_step(lambda x: x / mu, ideal, per_step, magnitude)
        self.sd = float(noise[0])
        self._step = float(steps[0])
        self._mu = float(on_lattice(ideal, steps, per_step)[0]) / self.sd * (1.0 + 2.0**-45)

    def _sampling(self, mu: float) -> Cost:
        """What the sampler costs one unit: of the draws that are added to something which it can move."""
        return sampling_cost(self._rows * self.size, 1.01 * mu / self._reach)

    def cost_for(self, certificate: Certificate) -> Cost:
        """The cost of this noise for another certificate."""
        coder: Any = self.coder
        return type(self)(coder, certificate, self.timetable, self.size, self.claimed, self.sd, self._step).cost(None)

    @cached_property
    def _total(self) -> Cost:
        return total([Cost(self._mu**2), self._sampling(self._mu)])


def distance(timetable: Timetable) -> int:
    """Examples between two releases, which are at equal distances."""
    if not isinstance(timetable.schedule, Every):
        raise InvalidInput(
            f"sums that forget need releases at equal distances, and this is {timetable.schedule}. Use every(100)."
        )
    return timetable.schedule.rounds


def most_draws(privacy: Privacy) -> int:
    """Draws that a stream without a horizon pays for, at a thousandth of its epsilon."""
    return int(_FOR_SAMPLING * privacy.epsilon / sampling_cost(1, 0.0).extra_epsilon)


def checked_norm(certificate: Certificate, size: int) -> float:
    """The largest norm of one example's share of a statistic, validated."""
    return float(checked(np.asarray(certificate.norm_of(size)), certificate.magnitude))


def planned(timetable: Timetable) -> tuple[int, int]:
    """How many releases a stream without a horizon makes in `LONGEST` rounds, and the most examples between two."""
    if isinstance(timetable.schedule, Every):
        return LONGEST // timetable.schedule.rounds, timetable.schedule.rounds
    rounds = [0]
    while (due := timetable.due(len(rounds))) is not None and due <= LONGEST:
        rounds.append(due)
    return len(rounds) - 1, max((b - a for a, b in pairwise(rounds)), default=1)


def in_blocks(certificate: Certificate, timetable: Timetable) -> Certificate:
    """The certificate, with no more rows of one unit between two releases than there are examples, if that is known.

    >>> from taciturn import every, private_sum, Privacy
    >>> stated = private_sum(1, 1.0, Privacy(1.0, 1e-6), 10).learner.certificate
    >>> in_blocks(replace(stated, participation=Participation(4, 4)), Timetable(every(2), 10)).participation
    Participation(rows=4, per_release=2, apart=1)
    """
    unit = certificate.participation
    if unit.per_release == 1:
        return certificate
    if timetable.horizon is None:
        longest = planned(timetable)[1]
    elif isinstance(timetable.schedule, Every):
        longest = min(timetable.schedule.rounds, timetable.horizon)
    else:
        last = longest = 0
        for rounds in timetable.blocks():
            longest = max(longest, int(np.max(np.diff(rounds, prepend=last))))
            last = int(rounds[-1])
    return replace(certificate, participation=replace(unit, per_release=min(unit.per_release, longest)))


def lasting(certificate: Certificate, timetable: Timetable) -> Certificate:
    """The certificate in blocks of a stream that never ends; rejects one that is not proven for it."""
    if not certificate.steady:
        raise Unprovable(
            "this learner's certificate is about a stream of stated length, and sums that forget never end. Use "
            "BLT(), or state in the certificate that it holds for any number of examples (steady=True)."
        )
    if certificate.most is not None and distance(timetable) > certificate.most:
        raise Unprovable(
            f"this learner's certificate is proven for {certificate.most:,} examples between two releases, and "
            f"there are {distance(timetable):,}. Publish more often."
        )
    return in_blocks(certificate, timetable)


def reach(sensitivity: float, participation: Participation) -> float:
    """How far one unit moves all encoded rows together, as a multiple of how far it moves one entry of them.

    An entry moves by no more than all together, whose shift is charged as mu, rounding included. And entries of C are
    at most 1 (`Coder.sensitivity` states it, and `taciturn.checks.check_strategy` looks at them), so an encoded row
    moves by at most Delta for each row of the unit, where all together move by `sensitivity·Delta`. The sampler must
    reach `mu/reach` standard deviations, and a little further for rounding.
    """
    return max(sensitivity / participation.rows, 1.0)


def coder_numbers(coder: Coder, most: int) -> Arrays:
    """The numbers of a coder of `most` rows; for a coder without `numbers`, values by which strategies differ."""
    if (own := coder.numbers) is not None:
        return dict(own)
    described = {"sensitivity": coder.sensitivity, "row_norm": coder.row_norm, "rounding_error": coder.rounding_error}
    return {name: np.array(value) for name, value in described.items()} | {
        "error": np.asarray(coder.error(np.arange(1, min(most, 64) + 1)))
    }
