"""A mechanism with what it is tried on: a certificate of the kind that it accepts, rows, and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn._util.arrays import Array, Integers
from taciturn.accounting.gdp import Privacy
from taciturn.checks.streams import generator
from taciturn.checks.suite import skip
from taciturn.core.protocols import Calibrated, Certificate, Mechanism
from taciturn.core.schedule import Timetable, every
from taciturn.errors import InvalidInput

BUDGET = Privacy(epsilon=10.0, delta=1e-6)
"""So large that what is measured is larger than how finely it can be."""

SEEDS = 50

CERTIFICATES = {
    "l2/tail": Certificate("l2", "tail", "1/t", lambda t: 1.0 / t, 1.0, "one example moves every later row", "stated"),
    "l2/entry": Certificate("l2", "entry", "1", np.ones_like, 1.0, "one example moves its own row", "stated"),
    "range/tail": Certificate("range", "tail", "1", np.ones_like, 64.0, "one example moves every later row", "stated"),
}


@dataclass(frozen=True)
class Hiding:
    """A mechanism, with a horizon of a dozen releases or without one."""

    mechanism: Mechanism
    horizon: int | None = 12
    releases: int = 12
    stated: Certificate | None = None

    @property
    def size(self) -> int:
        """Entries of a row: few candidates for a race, many to measure noise on."""
        return 6 if self.certificate.metric == "range" else 48

    @cached_property
    def certificate(self) -> Certificate:
        """The one that was stated, or one of the kind that it accepts."""
        if self.stated is not None:
            return self.stated
        accepted = self.mechanism.accepts
        if accepted not in CERTIFICATES:
            skip(f"{accepted} is none of {', '.join(CERTIFICATES)}")
        return CERTIFICATES[accepted]

    @cached_property
    def calibrated(self) -> Calibrated:
        """For the budget; a mechanism may need a horizon."""
        timetable = Timetable(every(1), self.horizon)
        try:
            return self.mechanism.calibrate(self.certificate, timetable, self.size, BUDGET, "exact")
        except InvalidInput as refusal:
            if self.horizon is None:
                skip(f"{type(self.mechanism).__name__} needs a horizon: {refusal}")
            raise

    @cached_property
    def rows(self) -> Array:
        """Rows well within the magnitude."""
        return generator(3).uniform(-0.4, 0.4, size=(self.releases, self.size))

    def neighbour(self, changed: int = 0) -> Array:
        """Rows as far from these as certified: row `changed`, or it and all later ones."""
        rows, rounds = self.rows.copy(), np.arange(1, self.releases + 1)
        moved = self.certificate.at(rounds)
        if self.certificate.metric == "range":
            towards = np.where(np.arange(self.size) % 2 == 0, 0.5, -0.5)
        else:
            towards = np.full(self.size, self.size**-0.5)
        last = changed + 1 if self.certificate.reach == "entry" else self.releases
        rows[changed:last] += moved[changed:last, None] * towards
        return rows

    def encoded(self, rows: Array) -> list[Integers]:
        """What each row becomes on the secret side."""
        secret, out = self.calibrated.start()[0], []
        for k, row in enumerate(rows, start=1):
            secret, integers = self.calibrated.encode(secret, row.copy(), k)
            out.append(integers)
        return out

    def decoded(self, noisy: list[Integers]) -> Array:
        """What the public side makes of it."""
        public, out = self.calibrated.start()[1], []
        for k, integers in enumerate(noisy, start=1):
            public, row, _ = self.calibrated.decode(public, integers, k)
            out.append(row)
        return np.array(out)

    @cached_property
    def seeded(self) -> list[list[Integers]]:
        """The noise of many simulations: of more races, as each tells less."""
        return [self.noise(seed) for seed in range(SEEDS * (64 if self.certificate.metric == "range" else 1))]

    def noise(self, seed: int | None) -> list[Integers]:
        """The noise of all releases."""
        return [np.asarray(drawn) for drawn in self.calibrated.noise(seed, 1, self.releases)]
