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
from itertools import pairwise

import numpy as np

from tacit.accounting.cost import FREE, Cost, total
from tacit.accounting.exact import Privacy
from tacit.accounting.paper import Reading
from tacit.arrays import Array, Arrays, Integers
from tacit.contracts import Calibrated, Calibration, Certificate
from tacit.errors import BudgetExhausted, InvalidInput, whole
from tacit.mechanisms.lattice import checked, ideal_mu, lattice_step, on_lattice, settle
from tacit.mechanisms.releases import Releases
from tacit.mechanisms.sampling import SMALLEST_SCALE, Bits, lattice_normal, sampling_cost
from tacit.mechanisms.strategy import Coder
from tacit.schedule import Every, Timetable

_SAFE = 1.0 - 1e-8  # costs are planned this far inside the budget, more than their rounding errors
_LONGEST = 2**23  # rounds of a stream without a horizon; float64 buffers certify no more
_FINE = 2.0**-38  # lattice step of such a stream, in deviations
_COARSE = 2.0**-51  # its step, in sums of all examples so far: integers stay below 2⁵²
_FOR_SAMPLING = 1e-3  # share of epsilon that it keeps for its sampler


@dataclass(frozen=True)
class RunningSum:
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
        return whole("the number of releases", n)

    def errors(self, n: int) -> Array:
        """Deviation of an entry of each of n running sums, at mu = 1 and for examples that move a row by 1.

        >>> from tacit import BinaryTree
        >>> BinaryTree(refined=False).errors(4).round(3)
        array([1.732, 1.732, 2.449, 1.732])
        """
        coder = self.coder(whole("n", n))
        return np.asarray(coder.column * coder.error(np.arange(1, n + 1)))

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Noise for which the whole stream keeps `privacy`, or the paper's, and lattice steps."""
        if timetable.horizon is None:
            if calibration != "exact":
                raise InvalidInput("the paper's noise depends on the number of rounds. State a horizon.")
            self.coder(None)  # refuses a strategy that needs a horizon
            releases, longest = _planned(timetable)
            if releases == 0:
                raise InvalidInput(f"a stream without a horizon ends at round {_LONGEST:,}. Publish before it.")
            return _Endless(self.coder(releases), certificate, timetable, size, privacy, releases, longest)
        if calibration == "exact":
            return _Finite(self.coder(len(timetable.rounds)), certificate, timetable, size, privacy)
        if certificate.paper is None:
            raise InvalidInput("the paper states no noise for this learner. Use calibration='exact'.")
        if not self.is_the_papers:
            raise InvalidInput(
                "the paper's noise is for sums by its tree. Use BinaryTree(refined=False), or calibration='exact'."
            )
        reading: Reading = "printed" if calibration == "paper-printed" else "proven"
        sd, claimed = certificate.paper(privacy, timetable.horizon, timetable.rounds.astype(np.float64), reading)
        return _Finite(self.coder(len(timetable.rounds)), certificate, timetable, size, claimed, float(sd[0]))

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper states noise for this strategy."""
        return False


class _Hidden(Releases):
    """Encoded rows on a lattice under noise of one deviation, and the sums decoded from them.

    In `Releases`, which draws the noise, every encoded row counts as a release.
    """

    def __init__(self, coder: Coder, size: int, rows: float, claimed: Privacy) -> None:
        super().__init__(size, rows, claimed)
        self.coder = coder
        self.sd = 0.0

    def step(self, k: int) -> float:
        """The lattice step of what release k encodes."""
        raise NotImplementedError

    def noise_sd(self, k: int) -> float:
        """The deviation of an entry of the k-th sum."""
        return self.sd * float(self.coder.error(k))

    def start(self) -> tuple[Arrays, Arrays]:
        """The coder's memories."""
        return self.coder.start(self.size)

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Integers]:
        """Encoded, then rounded; or, where encoding only adds, rounded at the door."""
        row, step = self.legal(row, k), self.step(k)
        if self.coder.whole:
            secret, rows = self.coder.encode(secret, np.floor(row / step + 0.5).astype(np.int64), k)
            return secret, np.asarray(rows, dtype=np.int64)
        secret, rows = self.coder.encode(secret, row, k)
        return secret, np.floor(rows / step + 0.5).astype(np.int64)

    def legal(self, row: Array, k: int) -> Array:
        """A row kept within what was certified, whatever a learner does."""
        raise NotImplementedError

    def draw(self, releases: range, bits: Bits) -> Integers:
        """Integers of each encoded row's deviation."""
        return lattice_normal(self.sd / self.step_of_row(releases), (len(releases), self.size), bits)

    def step_of_row(self, rows: range) -> Array:
        """Lattice steps of encoded rows, by their numbers from 1, as a column."""
        raise NotImplementedError

    def noise(self, seed: int | None, k: int, count: int) -> Sequence[Integers]:  # type: ignore[override]
        """One array for each release, of as many rows as it encodes."""
        first = self.coder.before(k)
        ends = [self.coder.before(j + 1) - first for j in range(k, k + count)]
        drawn = super().noise(seed, first + 1, ends[-1])
        return [drawn[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The k-th sum, and its noise's deviation."""
        public, total = self.coder.decode(public, np.asarray(noisy * self.step(k), dtype=np.float64), k)
        return public, total, self.noise_sd(k)


class _Finite(_Hidden):
    """A known number of releases, one lattice step."""

    def __init__(
        self, coder: Coder, certificate: Certificate, timetable: Timetable, size: int, claimed: Privacy, sd: float = 0.0
    ) -> None:
        rounds = timetable.rounds
        rows = coder.before(len(rounds) + 1)
        super().__init__(coder, size, rows, claimed)
        moved = float(np.max(checked(certificate.at(rounds), certificate.magnitude)))
        self.largest = certificate.magnitude * float(np.max(np.diff(rounds, prepend=0)))
        errors = 2.0 * math.sqrt(rows * size) * coder.blur * self.largest
        ideal = np.array([moved * coder.column * (1.0 + 2.0**-40) + errors])
        per_step, reach = self._rounding(rows), self.largest * (1.0 if coder.whole else coder.reach)
        if sd > 0.0:
            step = lattice_step(ideal, np.array([sd]), per_step, reach)
        else:
            mu = ideal_mu(claimed, sampling_cost(rows * size, 1.01 * claimed.mu / coder.column)) * _SAFE
            found, step = settle(lambda x: x / mu, ideal, per_step, reach)
            sd = float(found[0])
        self.sd, self._step = sd, float(step[0])
        self._mu = float(on_lattice(ideal, step, per_step)[0]) / sd * (1.0 + 2.0**-45)
        self._check_range()

    def _rounding(self, rows: int) -> float:
        """The square of what rounding adds to the sensitivity, in lattice steps."""
        return self.size * (self.coder.column**2 if self.coder.whole else float(rows))

    def _check_range(self) -> None:
        """Whole nodes, noise included, must stay below 2⁶² steps."""
        if self.coder.whole and (self.largest * self.coder.reach + 12.0 * self.sd) / self._step >= 2.0**62:
            raise InvalidInput("sums of this many rows leave the range of 64-bit integers. Plan for fewer rounds.")

    def step(self, k: int) -> float:
        return self._step

    def step_of_row(self, rows: range) -> Array:
        return np.full((len(rows), 1), self._step)

    def legal(self, row: Array, k: int) -> Array:
        return np.clip(np.nan_to_num(row), -self.largest, self.largest)

    def cost(self, k: int | None) -> Cost:
        """The whole stream's from the first release on, however few sums are shown.

        Entries of C are at most 1, so one encoded row is moved by at most `mu/column` deviations, and a little by
        rounding: that far must the sampler reach.
        """
        if k == 0:
            return FREE
        shift = 1.01 * self._mu / self.coder.column
        return total([Cost(self._mu**2), sampling_cost(int(self.count) * self.size, shift)])


class _Endless(_Hidden):
    """A stream without a horizon, up to `_LONGEST` rounds: steps grow with the sums, and are paid for in advance."""

    def __init__(
        self,
        coder: Coder,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        claimed: Privacy,
        releases: int,
        longest: int,
    ) -> None:
        super().__init__(coder, size, math.inf, claimed)
        self.timetable, self.magnitude = timetable, certificate.magnitude
        moved = float(np.max(checked(certificate.at(2.0 ** np.arange(24)), certificate.magnitude)))
        affordable = int(_FOR_SAMPLING * claimed.epsilon / sampling_cost(1, 0.0).extra_epsilon)
        self._most_draws = min(affordable, coder.before(releases + 1) * size)
        self._sampling = sampling_cost(self._most_draws, 1.01 * claimed.mu / coder.column)
        self._mu, rows = ideal_mu(claimed, self._sampling) * _SAFE, coder.before(releases + 1)
        coarsest = self.magnitude * _LONGEST * _COARSE
        blurred = 2.0 * coder.blur * self.magnitude * longest + coarsest
        ideal = moved * coder.column * (1.0 + 2.0**-40) + math.sqrt(rows * size) * blurred
        self.sd = ideal / (self._mu - math.sqrt(rows * size) * _FINE)
        if not self.sd > 0.0 or coarsest * SMALLEST_SCALE > self.sd:
            raise InvalidInput("this budget leaves no lattice for a stream without end. State a horizon.")

    def step(self, k: int) -> float:
        """A power of two, at most the finest or what the sum of all examples so far needs."""
        seen = float(min(self.timetable.due(k) or _LONGEST, _LONGEST))
        return 2.0 ** math.floor(math.log2(max(self.sd * _FINE, seen * self.magnitude * _COARSE)))

    def step_of_row(self, rows: range) -> Array:
        return np.array([[self.step(self.coder.release_of(row))] for row in rows])

    def legal(self, row: Array, k: int) -> Array:
        largest = self.magnitude * float(self.timetable.due(k) or _LONGEST)
        return np.clip(np.nan_to_num(row), -largest, largest)

    def noise(self, seed: int | None, k: int, count: int) -> Sequence[Integers]:  # type: ignore[override]
        """As always, until the rounds or the draws that were paid for are used up."""
        last = self.timetable.due(k + count - 1) or 0
        if last > _LONGEST or self.coder.before(k + count) * self.size > self._most_draws:
            raise BudgetExhausted(
                f"round {last} lies beyond what a stream without a horizon pays for. Start a new stream, with a budget "
                "of its own; or state a horizon before the first example."
            )
        return super().noise(seed, k, count)

    def cost(self, k: int | None) -> Cost:
        """The whole stream's from the first release on."""
        return FREE if k == 0 else total([Cost(self._mu**2), self._sampling])


def _planned(timetable: Timetable) -> tuple[int, int]:
    """How many releases a stream without end makes in `_LONGEST` rounds, and the most examples between two."""
    if isinstance(timetable.schedule, Every):
        return _LONGEST // timetable.schedule.rounds, timetable.schedule.rounds
    rounds = [0]
    while (due := timetable.due(len(rounds))) is not None and due <= _LONGEST:
        rounds.append(due)
    return len(rounds) - 1, max((b - a for a, b in pairwise(rounds)), default=1)
