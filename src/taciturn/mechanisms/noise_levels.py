"""Deviations and lattice steps of releases by their rounds, so that a plan for a long stream takes no memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers, fixed
from taciturn.accounting.gdp import Privacy
from taciturn.core.protocols import Certificate
from taciturn.core.schedule import Timetable
from taciturn.errors import InvalidInput
from taciturn.mechanisms.lattice import NO_LATTICE, TRIES, checked, lattice_step, on_lattice
from taciturn.noise.sampling import LARGEST_SCALE


class Level(NamedTuple):
    """Of releases: by how much an example moves them, on their lattice; deviations; lattice steps."""

    moved: Array
    sd: Array
    step: Array


class Levels(Protocol):
    """What is known of the releases at any rounds."""

    @property
    def certificate(self) -> Certificate:
        """How far one example moves rows."""

    @property
    def size(self) -> int:
        """Entries of a row."""

    @property
    def numbers(self) -> Arrays:
        """What was settled, beside lattice steps."""

    def at(self, rounds: Integers, step: Array | None = None) -> Level:
        """Of the releases at these rounds; with lattice steps that were chosen elsewhere, if they are given."""


@dataclass(frozen=True)
class Planned:
    """Deviations `c·S^power`, and lattice steps that fit them.

    Only the scale c depends on all releases. A step is chosen for a deviation, adds to the sensitivity, and so to the
    deviation: `scales` are c without a lattice, then with the lattice for that, and so on.
    """

    certificate: Certificate
    size: int
    power: float
    scales: tuple[float, ...] = ()

    @property
    def numbers(self) -> Arrays:
        """The scale: the last of them, the others only served to find steps."""
        return {"scale": fixed(np.array(self.scales[-1]))}

    def at(self, rounds: Integers, step: Array | None = None) -> Level:
        sensitivity = checked(self.certificate.at(rounds), self.certificate.magnitude)
        if step is not None:
            moved = on_lattice(sensitivity, step, self.size)
            return Level(moved, self._sd(moved, self.scales[-1]), step)
        moved, sd, step = sensitivity, np.zeros_like(sensitivity), np.zeros_like(sensitivity)
        for i, scale in enumerate(self.scales):
            if i > 0:
                step = lattice_step(sensitivity, sd, self.size, self.certificate.magnitude)
                moved = on_lattice(sensitivity, step, self.size)
            sd = self._sd(moved, scale)
        return Level(moved, sd, step)

    def _sd(self, moved: Array, scale: float) -> Array:
        return np.asarray(np.where(moved > 0.0, moved**self.power, 0.0) * scale)

    def scale_for(self, timetable: Timetable, mu: float) -> float:
        """The scale for which the costs of all releases add up to mu², on the lattice that comes next."""
        costs = (self._next(rounds) ** (2.0 - 2.0 * self.power) for rounds in timetable.blocks())
        return math.sqrt(math.fsum(math.fsum(some) for some in costs)) / mu

    def _next(self, rounds: Integers) -> Array:
        """Sensitivities, of rows that can be moved, on the lattice that comes next."""
        moved = replace(self, scales=(*self.scales, 1.0)).at(rounds).moved
        return moved[moved > 0.0]

    def settled(self, timetable: Timetable, mu: float) -> Planned:
        """Deviations and lattice steps that fit each other, whose costs add up to mu²."""
        plan = replace(self, scales=(self.scale_for(timetable, mu),))
        for _ in range(TRIES):
            plan = replace(plan, scales=(*plan.scales, plan.scale_for(timetable, mu)))
            if all((sd <= LARGEST_SCALE * step).all() for _, sd, step in map(plan.at, timetable.blocks())):
                return plan
        raise InvalidInput(NO_LATTICE)


@dataclass(frozen=True)
class Printed:
    """The paper's deviations, on a lattice."""

    certificate: Certificate
    size: int
    noise: Callable[[Array], tuple[Array, Privacy]]

    @property
    def numbers(self) -> Arrays:
        """None: deviations are the paper's."""
        return {}

    def at(self, rounds: Integers, step: Array | None = None) -> Level:
        sd, _ = self.noise(rounds.astype(np.float64))
        sensitivity = checked(self.certificate.at(rounds), self.certificate.magnitude)
        if step is None:
            step = lattice_step(sensitivity, sd, self.size, self.certificate.magnitude)
        return Level(on_lattice(sensitivity, step, self.size), sd, step)
