"""What a learner and a mechanism owe each other: the certificate, and the two protocols around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.accounting.events import GaussianEvent
from tacit.accounting.exact import Privacy
from tacit.accounting.paper import Reading
from tacit.problem.problem import Problem
from tacit.problem.scalar import Array
from tacit.schedule import Timetable
from tacit.state import Arrays

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Certificate:
    """How far one example can move a learner's rows, as a value.

    Attributes
    ----------
    metric, reach : str
        `"l2"`, and `"tail"` (one example moves every later row, the one after t examples by at most `at(t)`) or
        `"entry"` (one example moves the row it is summed into and no other).
    formula : str
        `at(t)` for people, without the share of rounding errors.
    bound : callable
        `at(t)` for machines: from an array of t to an array of bounds, rounding errors of the learner included.
    magnitude : float
        No entry of an exact row is larger, whatever the data.
    moved_by : str
        What one example does, in words.

    Examples
    --------
    >>> from tacit import IGD, L2Ball, Logistic, Problem
    >>> IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)).certificate
    l2/tail, 10.991/(t+1)
    """

    metric: str
    reach: str
    formula: str
    bound: Callable[[Array], Array] = field(compare=False)
    magnitude: float
    moved_by: str

    def __repr__(self) -> str:
        return f"{self.kind}, {self.formula}"

    @property
    def kind(self) -> str:
        """Metric and reach, which a mechanism must accept."""
        return f"{self.metric}/{self.reach}"

    def at(self, t: ArrayLike) -> Array:
        """The bound after `t` examples, rounding errors of the learner included."""
        return np.asarray(self.bound(np.asarray(t, dtype=np.float64)), dtype=np.float64)


class Learner(Protocol):
    """An exact algorithm and what it certifies. Its verbs are pure, and it draws nothing."""

    @property
    def problem(self) -> Problem:
        """What is being learnt."""

    @property
    def certificate(self) -> Certificate:
        """How far one example can move its rows; the proof stands in the learner's docstring."""

    @property
    def size(self) -> int:
        """Entries of a row."""

    def start(self) -> Arrays:
        """The exact state before any example."""

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """The exact state after a block of bounded examples that follow the first `t`; `point` is the last release."""

    def hand_over(self, exact: Arrays) -> tuple[Arrays, Array]:
        """The exact state after handing over a row, and the row."""

    def decide(self, t: int, noisy: Array, noise_sd: float) -> Array:
        """The point to release, from a noisy row and the public deviation of its noise."""

    def paper_noise(self, reading: Reading, privacy: Privacy, horizon: int, rounds: Array) -> Array:
        """Deviations of the noise at the published rounds, as the paper has them."""


class Calibrated(Protocol):
    """A mechanism with its scales and lattice steps settled; release numbers `k` count from 1."""

    def start(self) -> tuple[Arrays, Arrays]:
        """The secret and the public state before any release."""

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Integers]:
        """The secret side: an exact row becomes integers."""

    def noise(self, seed: int | None, k: int, count: int) -> Integers:
        """Integers to hide releases k to k + count - 1, one a row: secret, or repeatable from a seed, however cut."""

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The public side: noisy integers become a noisy row, and the deviation of its noise."""

    def noise_sd(self, k: int) -> float:
        """The deviation of the noise on a row of release k; public."""

    def event(self, k: int | None) -> GaussianEvent:
        """What the first `k` releases cost together; None for all there can ever be."""


class Mechanism(Protocol):
    """A way of hiding rows; it knows nothing of learners."""

    @property
    def accepts(self) -> str:
        """The kind of certificate it can hide, e.g. `l2/tail`."""

    @property
    def instead(self) -> str:
        """What to use when a learner certifies another kind."""

    def calibrate(self, certificate: Certificate, timetable: Timetable, size: int, mu: float) -> Calibrated:
        """Scales and lattice steps for which everything published is mu-GDP."""

    def with_noise(self, certificate: Certificate, timetable: Timetable, size: int, noise: Array) -> Calibrated:
        """The same with given deviations, whatever they deliver."""
