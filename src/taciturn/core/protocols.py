"""What a learner and a mechanism owe each other: the certificate, and the two protocols around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.accounting.cost import Cost
from taciturn.accounting.gdp import Privacy
from taciturn.accounting.paper import PaperNoise
from taciturn.core.schedule import Timetable
from taciturn.errors import StateConflict, float_or_nan
from taciturn.problem.problem import Problem

Calibration = Literal["exact", "paper-printed", "paper-proven"]

MECHANISMS = {"l2/tail": "Gaussian", "l2/entry": "BLT", "range/tail": "Exponential"}
LEARNERS = {
    "l2/tail": "a learner that hands over its iterate (IGD, GIGA, FTL)",
    "l2/entry": "a learner that hands over sums (QFTL, FTRL)",
    "range/tail": "a learner that hands over the losses of candidates (EWOO)",
}


TOO_DEAR = "they cost more than the budget"
"""What is said of numbers with less noise than a calibration has."""


@dataclass(frozen=True)
class Certificate:
    """How far one example can move a learner's rows, as a value.

    Attributes
    ----------
    metric, reach : str
        `"l2"` (how far a row moves) or `"range"` (how far its entries move relative to each other); and `"tail"` (one
        example moves every later row, the one after t examples by at most `at(t)`) or `"entry"` (one example moves the
        row it is summed into, by at most `at(t)`, and no other).
    formula : str
        `at(t)` for people, without the share of rounding errors.
    bound : callable
        `at(t)` for machines: from an array of t to an array of bounds, rounding errors of the learner included.
    magnitude : float
        No entry of an exact row (tail), or of one example's share of it (entry), is larger, whatever the data.
    moved_by : str
        What one example does, in words.
    lemma : str
        What proves it, and where.
    paper : callable, optional
        The noise that the paper would add, from its parameters, the horizon, the published rounds and the reading.
    most : int, optional
        Examples up to which it is proven, for learners whose sums are exact up to there; None for any number.

    Examples
    --------
    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> IGD(Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)).certificate
    l2/tail, 10.991/(t+1)
    """

    metric: str
    reach: str
    formula: str
    bound: Callable[[Array], Array] = field(compare=False)
    magnitude: float
    moved_by: str
    lemma: str
    paper: PaperNoise | None = field(default=None, compare=False)
    most: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "magnitude", float_or_nan(self.magnitude))  # a mechanism refuses what is not finite

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
    """An exact algorithm and what it certifies. Its verbs are pure, and it draws nothing.

    >>> from taciturn import IGD, L2Ball, Logistic, Problem
    >>> learner = IGD(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=1.0))
    >>> exact = learner.absorb(learner.start(), 0, np.array([[1.0]]), np.array([1.0]), np.zeros(1))
    >>> learner.statistic(exact, 1)[1].round(3)
    array([0.222])
    """

    @property
    def problem(self) -> Problem:
        """What is being learnt."""

    @property
    def certificate(self) -> Certificate:
        """How far one example can move its rows; the proof stands in the learner's docstring."""

    @property
    def statistic_size(self) -> int:
        """Entries of a row."""

    def start(self) -> Arrays:
        """The exact state before any example."""

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """The exact state after a block of bounded examples that follow the first `t`; `point` is the last release."""

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """The exact state after handing over the row of round `t`, and the row."""

    def decide(self, t: int, noisy: Array, noise_sd: float) -> Array:
        """The point to release, from a noisy row and the public deviation of its noise.

        All entries have the same noise; a learner whose parts need different amounts hands them over scaled.
        """


class Calibrated(Protocol):
    """A mechanism with its scales and lattice steps settled; release numbers `k` count from 1.

    It may also have `numbers(k)`, see `Restoring`.
    """

    @property
    def claimed(self) -> Privacy:
        """What the calibration promises."""

    def cost(self, k: int | None) -> Cost:
        """What the first `k` releases cost together; None for all there can ever be."""

    def noise_sd(self, k: int) -> float:
        """The deviation of the noise on a row of release k; public."""

    def start(self) -> tuple[Arrays, Arrays]:
        """The secret and the public memory before any release."""

    def encode(self, secret: Arrays, row: Array, k: int) -> tuple[Arrays, Integers]:
        """The secret side: an exact row becomes integers, of any shape."""

    def noise(self, seed: int | None, k: int, count: int) -> Iterable[Integers]:
        """Integers to add to what releases k to k + count - 1 encode: secret, or repeatable from a seed.

        A seed gives a release the same noise whichever calls ask for it.
        """

    def decode(self, public: Arrays, noisy: Integers, k: int) -> tuple[Arrays, Array, float]:
        """The public side: noisy integers become a noisy row, and its noise's deviation. All of it is published."""


class Mechanism(Protocol):
    """A way of hiding rows; it knows nothing of learners.

    >>> from taciturn import Gaussian
    >>> Gaussian().accepts
    'l2/tail'
    """

    @property
    def accepts(self) -> str:
        """The kind of certificate it can hide."""

    def calibrate(
        self, certificate: Certificate, timetable: Timetable, size: int, privacy: Privacy, calibration: Calibration
    ) -> Calibrated:
        """Scales and lattice steps: exactly for `privacy`, or as the paper chooses them for those parameters."""


class Restoring(Mechanism, Protocol):
    """A mechanism that can go on with numbers that were calibrated elsewhere: on a machine that rounds differently.

    Its calibrated form has a verb `numbers(k)`: the numbers with which releases up to k were made and that later ones
    need, as a few small arrays, which a state stores. A mechanism without these verbs is calibrated anew wherever a
    stream goes on, and the stream goes on if that gives the same deviations to the last bit.

    >>> from taciturn import Gaussian
    >>> restores(Gaussian())
    True
    """

    def restore(
        self,
        certificate: Certificate,
        timetable: Timetable,
        size: int,
        privacy: Privacy,
        calibration: Calibration,
        numbers: Arrays,
    ) -> Calibrated:
        """The calibrated mechanism of these numbers, its cost as this machine counts it; or `StateConflict`.

        The numbers come from a file. Any that it accepts are legal, and `cost` is true of them.
        """


def restores(mechanism: object, verb: str = "restore", of: str = "calibrate") -> bool:
    """Whether `verb` belongs to the very method `of` that this object has: a subclass may have overridden only one."""
    for each in type(mechanism).__mro__:
        if verb in vars(each):
            return True
        if of in vars(each):
            return False
    return False


def stored(numbers: Arrays, name: str, shape: tuple[int, ...] = ()) -> Array:
    """Finite positive numbers of this name and shape out of a state, -1 for any length; or `StateConflict`."""
    found = np.asarray(numbers.get(name))
    fits = found.ndim == len(shape) and all(want in (-1, is_) for want, is_ in zip(shape, found.shape, strict=True))
    if found.dtype.kind not in "fi" or not fits or not (np.isfinite(found) & (found > 0)).all():
        raise damaged(f"{name} should be positive and finite")
    return found.astype(np.float64)


def damaged(what: str) -> StateConflict:
    """The error for numbers that no calibration has written."""
    return StateConflict(f"the calibrated numbers of this state are damaged: {what}. Use a sound copy of its file.")


def misfit(certificate: Certificate, learner: str, mechanism: str, accepts: str) -> str:
    """Why a learner and a mechanism do not fit, and what does."""
    better = MECHANISMS.get(certificate.kind, "a mechanism that accepts it")
    other = LEARNERS.get(accepts, f"a learner that certifies {accepts}")
    return (
        f"{learner} certifies {certificate.kind} sensitivity ({certificate.moved_by}); {mechanism} accepts {accepts}. "
        f"Use {better}, or {other}."
    )
