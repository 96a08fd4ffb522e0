"""Private running sums: strategies made mechanisms, for learners of which one example moves one row.

What is hidden is `C·x + noise`, all of it at once: if one example moves one row by at most `Delta`, it moves `C·x` by
at most `Delta·max_j ‖C e_j‖`, and noise of deviation sigma on every entry makes the whole stream mu-GDP with

    mu = (Delta·max_j ‖C e_j‖ + lattice)/sigma,

however many sums are shown. `lattice` is what rounding to multiples of g adds. Where encoding only adds rows up (a
tree), each row is rounded once, at the door: `sqrt(size)·g·max_j ‖C e_j‖`. Where it multiplies, encoded rows are
rounded, and one example may flip the rounding of every later one: `sqrt(rows·size)·(g + 2e)`, e the floating-point
error of an encoded entry, which may differ between the two worlds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers, fixed, same
from taciturn.accounting.cost import FREE, Cost, total
from taciturn.accounting.gdp import Privacy
from taciturn.accounting.paper import Reading
from taciturn.core.protocols import Calibrated, Calibration, Certificate, restores, stored
from taciturn.core.schedule import Every, Timetable
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, integer
from taciturn.mechanisms.lattice import check_steps, checked, ideal_mu, lattice_step, on_lattice, settle
from taciturn.mechanisms.release_noise import NoiseByRelease
from taciturn.mechanisms.strategy import Coder
from taciturn.noise.sampling import SMALLEST_SCALE, Bits, lattice_normal, sampling_cost

LONGEST = 2**23
"""Rounds of a stream without a horizon; float64 buffers certify no more."""

_SAFE = 1.0 - 1e-8  # costs are planned this far inside the budget, more than their rounding errors
_FINE = 2.0**-38  # lattice step of such a stream, in deviations
_COARSE = 2.0**-51  # its step, in sums of all examples so far: integers stay below 2⁵²
_FOR_SAMPLING = 1e-3  # share of epsilon that it keeps for its sampler


@dataclass(frozen=True)
class PrefixSum:
    """Running sums by a strategy; the subclass makes its coder for n releases."""

    @property
    def accepts(self) -> str:
        """Rows of which one example moves one."""
        return "l2/entry"

    def coder(self, n: int | None) -> Coder:
        """The strategy for n releases; None for a stream without a horizon."""
        raise NotImplementedError

    def needs(self, n: int | None) -> int:
        """n, or a refusal."""
        if n is None:
            raise InvalidInput(
                f"{type(self).__name__} is planned for a number of releases. State a horizon, or use Anytime()."
            )
        return integer("the number of releases", n)

    def restored_coder(self, n: int | None, numbers: Arrays) -> Coder:
        """The strategy that a stream began with: of a coder that does not say its numbers, if it is the same here."""
        coder = self.coder(n)
        if not same(coder_numbers(coder, 1, self.needs(n)), numbers):
            raise StateConflict(
                f"the strategy that {type(coder).__name__} makes here is not the one that this state's stream began "
                "with. Go on with the stream on a machine like the one it began on."
            )
        return coder

    def errors(self, n: int) -> Array:
        """Deviation of an entry of each of n running sums, at mu = 1 and for examples that move a row by 1.

        >>> from taciturn import BinaryTree
        >>> BinaryTree(refined=False).errors(4).round(3)
        array([1.732, 1.732, 2.449, 1.732])
        """
        n = integer("n", n)
        coder = self.coder(n)
        return np.asarray(coder.sensitivity * coder.error(np.arange(1, n + 1)))

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which the whole stream keeps `privacy`, or the paper's, and lattice steps."""
        if timetable.horizon is None:
            if calibration != "exact":
                raise InvalidInput("the paper's noise depends on the number of rounds. State a horizon.")
            self.coder(None)  # refuses a strategy that needs a horizon
            releases, longest = planned(timetable)
            if releases == 0:
                raise InvalidInput(f"a stream without a horizon ends at round {LONGEST:,}. Publish before it.")
            return Endless(self.coder(releases), certificate, timetable, size, privacy, releases, longest)
        if calibration == "exact":
            return Finite(self.coder(timetable.count), certificate, timetable, size, privacy)
        if certificate.paper is None:
            raise InvalidInput("the paper states no noise for this learner. Use calibration='exact'.")
        if not self.is_the_papers:
            raise InvalidInput(
                "the paper's noise is for sums by its tree. Use BinaryTree(refined=False), or calibration='exact'."
            )
        sd, claimed = self._as_printed(certificate, timetable, privacy, calibration)
        return Finite(self.coder(timetable.count), certificate, timetable, size, claimed, sd)

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The strategy, deviation and lattice step that a stream began with: its rows were encoded in these units."""
        parts = {name.removeprefix("coder."): array for name, array in numbers.items() if name.startswith("coder.")}
        restored = (
            self.restored_coder
            if restores(self, "restored_coder", "coder")
            else partial(PrefixSum.restored_coder, self)
        )
        sd = float(stored(numbers, "sd"))
        if timetable.horizon is None:
            releases, longest = planned(timetable)
            return Endless(restored(releases, parts), certificate, timetable, size, privacy, releases, longest, sd)
        claimed, step = privacy, float(stored(numbers, "step"))
        if calibration != "exact":
            claimed = self._as_printed(certificate, timetable, privacy, calibration)[1]
        return Finite(restored(timetable.count, parts), certificate, timetable, size, claimed, sd, step)

    def _as_printed(
        self, certificate: Certificate, timetable: Timetable, privacy: Privacy, calibration: Calibration
    ) -> tuple[float, Privacy]:
        """The paper's noise, and what it claims."""
        assert certificate.paper is not None
        assert timetable.horizon is not None
        reading: Reading = "printed" if calibration == "paper-printed" else "proven"
        first = timetable.following(0, timetable.horizon, 1).astype(np.float64)
        sd, claimed = certificate.paper(privacy, timetable.horizon, first, reading)
        return float(sd[0]), claimed

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper states noise for this strategy."""
        return False


class NoisySums(NoiseByRelease):
    """Encoded rows on a lattice under noise of one deviation, and the sums decoded from them.

    In `NoiseByRelease`, which draws the noise, every encoded row counts as a release.
    """

    def __init__(self, coder: Coder, size: int, rows: float, claimed: Privacy, releases: int) -> None:
        super().__init__(size, rows, claimed)
        self.coder, self._releases = coder, releases
        self.sd = 0.0
        self._numbers: dict[int, Arrays] = {}

    def step(self, k: int) -> float:
        """The lattice step of what release k encodes."""
        raise NotImplementedError

    def numbers(self, k: int) -> Arrays:
        """Deviation and lattice step, and those of the strategy: all rows are encoded and noised by the same."""
        doubled = k.bit_length()  # no strategy's numbers change more often
        if doubled not in self._numbers:
            coder = coder_numbers(self.coder, k, self._releases)
            own = {name: fixed(np.array(number)) for name, number in self._settled.items()}
            self._numbers[doubled] = own | {f"coder.{name}": array for name, array in coder.items()}
        return self._numbers[doubled]

    @property
    def _settled(self) -> dict[str, float]:
        """What was settled beside the strategy."""
        return {"sd": self.sd}

    def noise_sd(self, k: int) -> float:
        """The deviation of an entry of the k-th sum."""
        return self.sd * float(self.coder.error(k))

    def start(self) -> tuple[Arrays, Arrays]:
        """The coder's memories."""
        return self.coder.start(self.size)

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Integers]:
        """Encoded, then rounded; or, where encoding only adds, rounded at the door."""
        row, step = self.clip(row, k), self.step(k)
        if self.coder.integer:
            secret, rows = self.coder.encode(secret, np.floor(row / step + 0.5).astype(np.int64), k)
            return secret, np.asarray(rows, dtype=np.int64)
        secret, rows = self.coder.encode(secret, row, k)
        return secret, np.floor(rows / step + 0.5).astype(np.int64)

    def clip(self, row: Array, k: int) -> Array:
        """A statistic clipped to its certified magnitude, whatever a learner returns."""
        largest = float(self.largest_of(k, 1)[0])
        return np.clip(np.nan_to_num(row), -largest, largest)

    def draw(self, releases: range, bits: Bits) -> Integers:
        """Integers of each encoded row's deviation."""
        return lattice_normal(self.sd / self.step_of_row(releases), (len(releases), self.size), bits)

    def step_of_row(self, rows: range) -> Array:
        """Lattice steps of encoded rows, by their numbers from 1, as a column."""
        raise NotImplementedError

    def noise_rows(self, seed: int | None, k: int, count: int) -> Integers:
        """For all rows that these releases encode, one below the other."""
        first = self.coder.before(k)
        return super().noise(seed, first + 1, self.coder.before(k + count) - first)

    def noise(self, seed: int | None, k: int, count: int) -> Sequence[Integers]:  # type: ignore[override]
        """One array for each release, of as many rows as it encodes."""
        drawn, ends = self.noise_rows(seed, k, count), [self.coder.before(j) for j in range(k, k + count + 1)]
        return [drawn[start - ends[0] : end - ends[0]] for start, end in pairwise(ends)]

    def steps(self, k: int, count: int) -> Array:
        """Lattice steps of all rows that these releases encode."""
        return self.step_of_row(range(self.coder.before(k) + 1, self.coder.before(k + count) + 1))[:, 0]

    def largest_of(self, k: int, count: int) -> Array:
        """What entries of the rows of these releases are kept within."""
        raise NotImplementedError

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The k-th sum, and its noise's deviation."""
        public, total = self.coder.decode(public, np.asarray(noisy * self.step(k), dtype=np.float64), k)
        return public, total, self.noise_sd(k)


class Finite(NoisySums):
    """A known number of releases, one lattice step.

    With a deviation, and perhaps a lattice step, that was settled elsewhere, `cost` is what these deliver.
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
        moved, wait, last = 0.0, 0, 0
        for rounds in timetable.blocks():
            moved = max(moved, float(np.max(checked(certificate.at(rounds), certificate.magnitude))))
            wait, last = max(wait, int(np.max(np.diff(rounds, prepend=last)))), int(rounds[-1])
        self.largest = certificate.magnitude * wait
        errors = 2.0 * math.sqrt(rows * size) * coder.rounding_error * self.largest
        ideal = np.array([moved * coder.sensitivity * (1.0 + 2.0**-40) + errors])
        per_step, reach = self._rounding(rows), self.largest * (1.0 if coder.integer else coder.row_norm)
        if sd > 0.0:
            noise = np.array([sd])
            steps = check_steps(np.array([step]), noise, reach) if step else lattice_step(ideal, noise, per_step, reach)
        else:
            mu = ideal_mu(claimed, sampling_cost(rows * size, 1.01 * claimed.mu / coder.sensitivity)) * _SAFE
            found, steps = settle(lambda x: x / mu, ideal, per_step, reach)
            sd = float(found[0])
        self.sd, self._step = sd, float(steps[0])
        self._mu = float(on_lattice(ideal, steps, per_step)[0]) / sd * (1.0 + 2.0**-45)
        self._check_range()

    @property
    def _settled(self) -> dict[str, float]:
        return {"sd": self.sd, "step": self._step}

    def _rounding(self, rows: int) -> float:
        """The square of what rounding adds to the sensitivity, in lattice steps."""
        return self.size * (self.coder.sensitivity**2 if self.coder.integer else float(rows))

    def _check_range(self) -> None:
        """Whole nodes, noise included, must stay below 2⁶² steps."""
        if self.coder.integer and (self.largest * self.coder.row_norm + 12.0 * self.sd) / self._step >= 2.0**62:
            raise InvalidInput("sums of this many rows leave the range of 64-bit integers. Plan for fewer rounds.")

    def step(self, k: int) -> float:
        return self._step

    def step_of_row(self, rows: range) -> Array:
        return np.full((len(rows), 1), self._step)

    def largest_of(self, k: int, count: int) -> Array:
        return np.full(count, self.largest)

    def cost(self, k: int | None) -> Cost:
        """The whole stream's from the first release on, however few sums are shown.

        Entries of C are at most 1, so one encoded row is moved by at most `mu/column` deviations, and a little by
        rounding: that far must the sampler reach.
        """
        if k == 0:
            return FREE
        shift = 1.01 * self._mu / self.coder.sensitivity
        return total([Cost(self._mu**2), sampling_cost(int(self.count) * self.size, shift)])


class Endless(NoisySums):
    """A stream without a horizon, up to `LONGEST` rounds: steps grow with the sums, and are paid for in advance.

    Steps follow from the deviation and from what a row can hold: a power of two that is no larger than what is paid
    for. So with a deviation that was settled elsewhere, `cost` is true of any steps, this machine's or that one's.
    """

    def __init__(
        self,
        coder: Coder,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        claimed: Privacy,
        releases: int,
        longest: int,
        sd: float = 0.0,
    ) -> None:
        super().__init__(coder, size, math.inf, claimed, releases)
        self.timetable, self.magnitude = timetable, certificate.magnitude
        moved = float(np.max(checked(certificate.at(2.0 ** np.arange(24)), certificate.magnitude)))
        affordable = int(_FOR_SAMPLING * claimed.epsilon / sampling_cost(1, 0.0).extra_epsilon)
        self._most_draws = min(affordable, coder.before(releases + 1) * size)
        self._sampling = sampling_cost(self._most_draws, 1.01 * claimed.mu / coder.sensitivity)
        rows = coder.before(releases + 1)
        coarsest = self.magnitude * LONGEST * _COARSE
        blurred = 2.0 * coder.rounding_error * self.magnitude * longest + coarsest
        ideal = moved * coder.sensitivity * (1.0 + 2.0**-40) + math.sqrt(rows * size) * blurred
        finest = math.sqrt(rows * size) * _FINE
        self.sd = sd or ideal / (ideal_mu(claimed, self._sampling) * _SAFE - finest)
        self._mu = (ideal / self.sd + finest) * (1.0 + 2.0**-45)
        if not self.sd > 0.0 or coarsest * SMALLEST_SCALE > self.sd:
            raise InvalidInput("this budget leaves no lattice for a stream without end. State a horizon.")

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

    def noise_rows(self, seed: int | None, k: int, count: int) -> Integers:
        """As always, until the rounds or the draws that were paid for are used up."""
        last = self.timetable.due(k + count - 1) or 0
        if last > LONGEST or self.coder.before(k + count) * self.size > self._most_draws:
            raise BudgetExhausted(
                f"round {last} lies beyond what a stream without a horizon pays for. Start a new stream, with a budget "
                "of its own; or state a horizon before the first example."
            )
        return super().noise_rows(seed, k, count)

    def cost(self, k: int | None) -> Cost:
        """The whole stream's from the first release on."""
        return FREE if k == 0 else total([Cost(self._mu**2), self._sampling])


def planned(timetable: Timetable) -> tuple[int, int]:
    """How many releases a stream without end makes in `LONGEST` rounds, and the most examples between two."""
    if isinstance(timetable.schedule, Every):
        return LONGEST // timetable.schedule.rounds, timetable.schedule.rounds
    rounds = [0]
    while (due := timetable.due(len(rounds))) is not None and due <= LONGEST:
        rounds.append(due)
    return len(rounds) - 1, max((b - a for a, b in pairwise(rounds)), default=1)


def coder_numbers(coder: Coder, k: int, most: int) -> Arrays:
    """The numbers that a coder has for rows up to k; of one that does not say them, what tells it from others."""
    if hasattr(coder, "numbers"):
        return dict(coder.numbers(k))
    told = {"sensitivity": coder.sensitivity, "row_norm": coder.row_norm, "rounding_error": coder.rounding_error}
    return {name: np.array(value) for name, value in told.items()} | {
        "error": np.asarray(coder.error(np.arange(1, min(most, 64) + 1)))
    }
