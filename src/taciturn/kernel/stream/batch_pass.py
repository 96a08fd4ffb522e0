"""All releases of a block at once: statistics of many rounds, then their noise, then decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.stream.loop import Pass
from taciturn.kernel.stream.loop import statistics as statistics_by_definition
from taciturn.kernel.stream.release import Collected
from taciturn.kernel.stream.state import Standing


class Statistics(Protocol):
    """The statistics of many rounds at once, of a learner that does not use released points."""

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """The exact state after all clipped examples, and the statistics of these rounds."""

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The points of statistics that stand for as many examples."""


class Noise(Protocol):
    """Noise on the statistics of many releases at once."""

    @property
    def calibrated(self) -> Any:
        """The mechanism."""

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """Integers to add to everything that releases k to k + count - 1 encode."""

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """`encode`, the noise, and `decode`, from release k on."""


class Noisy(NamedTuple):
    """A mechanism's new memories, noisy statistics, and the standard deviations of their noise."""

    secret: Arrays
    public: Arrays
    noisy: Array
    noise_sd: Array


@dataclass(frozen=True)
class BatchPass(Pass):
    """All releases of a block at once: statistics, then noise, then decisions."""

    statistics: Statistics
    noise: Noise
    forgets: ClassVar[bool] = True
    compressed: bool = False

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        t, k, exact = at[:3]
        if not (count := len(rounds)):
            exact, _ = self.statistics(exact, t, X, y, rounds)
            return at._replace(t=t + len(y), exact=exact)
        noise = self.noise.draw(seed, k + 1, count)
        exact, rows = self.statistics(exact, t, X, y, rounds)
        return self._released(at, rows, rounds, noise, shown)._replace(t=t + len(y), exact=exact)

    def release(
        self, at: Standing, statistics: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """The same for statistics that are known already."""
        return self._released(at, statistics, rounds, self.noise.draw(seed, at.k + 1, len(rounds)), shown)

    def _released(
        self, at: Standing, statistics: Array, rounds: Integers, noise: Integers, shown: Collected
    ) -> Standing:
        k, count = at.k, len(rounds)
        secret, public, noisy, sd = self.noise.add(at.secret, at.public, statistics, k + 1, noise)
        stand_for = self.noise.calibrated.examples_of(np.arange(k + 1, k + count + 1), rounds)
        points = self.statistics.decide(stand_for, noisy, sd)
        shown.add(noisy, points, sd)
        return Standing(int(rounds[-1]), k + count, at.exact, secret, public, points[-1].copy())


@dataclass(frozen=True)
class Adding(Pass):
    """Examples added up to the exact state of a learner that does not use released points."""

    statistics: Statistics
    forgets: ClassVar[bool] = True
    compressed: bool = False

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        exact, _ = self.statistics(at.exact, at.t, X, y, rounds)
        return at._replace(t=at.t + len(y), exact=exact)


@dataclass(frozen=True, eq=False)
class ByDefinition:
    """Statistics by the learner's own methods, of which noise and decisions are made for all releases at once."""

    learner: Any
    decisions: Callable[[Array], Array]

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        return statistics_by_definition(self.learner, exact, t, X, y, rounds)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """As the learner decides."""
        return self.decisions(noisy)
