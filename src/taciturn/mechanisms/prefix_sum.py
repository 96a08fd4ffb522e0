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

from dataclasses import dataclass
from functools import partial

import numpy as np

from taciturn._util.arrays import Array, Arrays, same
from taciturn.accounting.gdp import Privacy
from taciturn.accounting.paper import Reading
from taciturn.core.protocols import Calibrated, Calibration, Certificate, restores, stored
from taciturn.core.schedule import Timetable
from taciturn.errors import InvalidInput, StateConflict, integer
from taciturn.mechanisms.noisy_sums import LONGEST, Endless, Finite, coder_numbers, planned
from taciturn.mechanisms.strategy import Coder


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
