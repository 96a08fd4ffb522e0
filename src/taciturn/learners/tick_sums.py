"""Sums over ticks of a public clock, with a count: one example is added or removed, and their number is secret."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.core.protocols import Certificate, Learner
from taciturn.errors import Unprovable, integer, number
from taciturn.learners.class_sums import ClassSums
from taciturn.learners.exact_sums import MOST, lattice_of
from taciturn.learners.ftrl import FTRL
from taciturn.learners.qftl import QFTL
from taciturn.learners.vector_sum import VectorSum
from taciturn.problem.problem import Problem

PER_TICK = 10_000
"""Examples that a tick is planned for by default."""
COUNT_WEIGHT = 0.125
"""The default share of the count in the sensitivity."""

_BITS = 32  # of the low part of an integer sum
_CHUNK = 2**17  # examples whose contributions a learner adds up exactly


@dataclass(frozen=True)
class TickSums:
    """A learner of sums whose rounds are ticks of a public clock, with a count of the examples beside its sums.

    A round is a tick: an hour, a day, or one call of `Private.run`. Any number of examples lies in a tick, none
    included, and how many is secret. Two streams are **neighbours** if one example is added to one tick, or removed
    from it (`neighbours="add-remove"`); for a `User`, if all rows of one user are. Horizon and schedule count ticks.

    The statistic has one more entry than the learner's: the number of examples, times c. What a point is decided from
    is the *noisy* number, where the learner would read the number of examples: at least 1, and at least the standard
    deviation of its noise, `s/c`.

    **Certificate.** One example moves the statistic of its tick by at most Delta, and no other:

        Delta² = L² + c²,   L the learner's bound under zero-out, c = count_weight·L.

    *Proof.* (1) *A contribution is a vector of integers that depends on its example and on released points alone.* Each
    example is clipped, differentiated and rounded by itself, to multiples of a unit; under zero-out the learner
    certifies that this vector is at most L long, in the metric of the statistic, and here follows a 1, times c.
    (2) *Sums are exact.* They are added in integers of 96 bits, in two parts: a contribution has at most 2³⁶ units, so
    2⁵⁸ of them fit. So the sums of two neighbours differ by the contribution, in the block that its tick lies in, and
    not at all in others. Nothing is raised, rounded or wrapped around, however many examples there are.
    (3) *Clipping moves two sums no farther apart.* Each entry is clipped to the largest that 2²⁶ contributions can
    have, and by the mechanism to `magnitude` times the ticks between two releases. Clipping a number to an interval is
    1-Lipschitz; so no entry of the difference grows, whatever its sign, and its norm does not. A count beyond these
    limits costs accuracy, and no privacy. (It is the *sum* that is clipped. To leave out examples beyond a number
    would be a replacement: an example that is added may push another one out.)
    (4) *Conversion to floats* is that of at most 2²⁶ contributions, which the learner's bound covers; of the count it
    is off by at most `2⁻²⁷·c` in either world.
    So the statistic moves by at most `hypot(L, c·(1 + 2⁻²⁵))`, and an example of a contribution of length L reaches
    it. ∎ Nothing in this depends on how many ticks came before the last release, so the sums may also be forgotten
    (`taciturn.DecayedBLT`), and with them the noisy number of examples.

    **Rounding errors of the mechanism** are charged by the largest row that there can be. After (3) no entry exceeds
    `magnitude` times the ticks between releases, `magnitude` that of `examples_per_tick` examples; no norm is stated,
    so the mechanism takes `sqrt(size)` times that. For hourly ticks of a year and 10,000 examples each this adds less
    than .1 % of noise to 100 entries, and for 1e5 ticks a tenth: then state fewer examples, or use `BinaryTree()`,
    which adds integers.

    **Users.** The rows of a user that count are decided by the positions of that user's rows alone
    (`taciturn.core.participation`), and rows that do not count are left out here. So other users' rows count in both
    worlds or in neither, and the two differ by the user's own contributions: at most `u_j·Delta` in block j, u a
    pattern that the unit allows. Any number of them may lie in one tick. ∎ Rows of several owners are rejected, and so
    are periods: to remove one owner's rows would let other rows of the second owner count, and to remove those of one
    period, other rows of the next, if a bound on releases reaches across the border.

    **What is public:** the ticks, when calls are made, and the noisy counts of `release.noisy[-1]/c`. Time and memory
    of a call, and the size of a stored state if the unit is a user, depend on the number of examples: keep them secret.

    Parameters
    ----------
    learner : QFTL, FTRL, ClassSums or VectorSum
        On a problem with `neighbours="add-remove"`; what is stored is the learner for "zero-out", whose certificate is
        used. FTRL without curvature.
    examples_per_tick : int
        How many examples a tick is planned for; sums of more are clipped, if their entries are all near their bounds.
    count_weight : float
        c/L: a larger one makes the count more accurate, and the noise of everything `sqrt(1 + count_weight²)` times as
        large. By default 1/8: .8 % more noise, and a count with 8 times the relative noise of the longest sum. For
        means, `VectorSum` divided by the count, choose about 1.

    Examples
    --------
    >>> from taciturn import BLT, FTRL, Hinge, L2Ball, Privacy, Private, Problem, TickSums, every
    >>> learner = TickSums(FTRL(Problem(Hinge(), L2Ball(1.0), dimension=2, neighbours="add-remove")))
    >>> learner.certificate, learner.problem.neighbours
    (l2/entry, 1.0078, 'add-remove')
    >>> private = Private(learner, BLT(), every(1), Privacy(1.0, 1e-6), horizon=24)
    >>> X, y = [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1]
    >>> state, releases = private.run(private.start(), X, y, ticks=[2, 0, 1])
    >>> state.t, len(releases)
    (3, 3)
    """

    learner: Learner
    examples_per_tick: int = PER_TICK
    count_weight: float = COUNT_WEIGHT

    def __post_init__(self) -> None:
        name = type(self.learner).__name__
        if type(self.learner) not in (QFTL, FTRL, ClassSums, VectorSum):
            raise Unprovable(
                f"TickSums is proven for QFTL, FTRL, ClassSums and VectorSum, which add up one contribution for each "
                f"example, and this is {name}. Use one of them."
            )
        if (relation := self.learner.problem.neighbours) not in ("zero-out", "add-remove"):
            raise Unprovable(
                f"TickSums takes a learner that is certified for zero-out, and {name} is for {relation!r}. Give its "
                "Problem neighbours='add-remove'."
            )
        if relation == "add-remove":
            learner: Any = self.learner
            derived = dict.fromkeys(self.derived)  # None: derived anew
            zeroed = replace(learner, problem=replace(learner.problem, neighbours="zero-out"), **derived)
            object.__setattr__(self, "learner", zeroed)
        if isinstance(self.learner, FTRL) and self.learner.curvature > 0.0:
            raise Unprovable(
                "curvature adds a term for each example, whose number is secret here. Use FTRL with curvature=0."
            )
        object.__setattr__(self, "examples_per_tick", integer("examples_per_tick", self.examples_per_tick))
        within = number("count_weight", self.count_weight, lambda share: 1e-3 <= share <= 1e3, "lie from .001 to 1000")
        object.__setattr__(self, "count_weight", within)

    @property
    def derived(self) -> dict[str, float]:
        """The learner's."""
        return dict(getattr(self.learner, "derived", {}))

    def restored(self, derived: dict[str, float]) -> TickSums:
        """The same with the derived numbers of a state."""
        learner: Any = self.learner
        return replace(self, learner=learner.restored(derived))

    @property
    def center(self) -> tuple[float, ...] | None:
        """The learner's."""
        center: tuple[float, ...] | None = getattr(self.learner, "center", None)
        return center

    @cached_property
    def problem(self) -> Problem:
        """The learner's, for neighbours of which one has an example more."""
        return replace(self.learner.problem, neighbours="add-remove")

    @property
    def statistic_size(self) -> int:
        """The learner's entries, and the count."""
        return self.learner.statistic_size + 1

    @cached_property
    def certificate(self) -> Certificate:
        """`hypot(L, c)`, and rounding."""
        inner = self.learner.certificate
        moved = math.hypot(self._longest, self.c * (1.0 + 2.0**-25)) * (1.0 + 2.0**-50)
        return Certificate(
            "l2",
            "entry",
            f"{moved:.5g}",
            partial(_constant, moved),
            self.examples_per_tick * max(inner.magnitude, self.c),
            "one example is added to the sums and to the count of its tick",
            "proof in taciturn.TickSums",
            steady=True,
            any_number=True,
            rests_on=inner.rests_on,
            by=inner.by,
            enforced_factor=inner.enforced_factor,
        )

    @property
    def c(self) -> float:
        """What one example adds to the last entry."""
        return self.count_weight * self._longest

    @cached_property
    def _longest(self) -> float:
        """L: no contribution is longer, rounding included."""
        return float(self.learner.certificate.at(1.0))

    def start(self) -> Arrays:
        """No examples: integers of two parts, `high·2³² + low`."""
        return {"high": np.zeros(self.statistic_size, np.int64), "low": np.zeros(self.statistic_size, np.int64)}

    def absorb(self, exact: Arrays, t: int, X: Array, y: Array, point: Array) -> Arrays:
        """The examples of one or several ticks, added up since the last release."""
        high, low = exact["high"], exact["low"]
        for start in range(0, len(y), _CHUNK):
            rows, labels = X[start : start + _CHUNK], y[start : start + _CHUNK]
            sums = self.learner.absorb(self.learner.start(), 0, rows, labels, point)["sum"]
            added = np.append(np.rint(sums / self._unit).astype(np.int64), len(labels))
            low = low + (added & (2**_BITS - 1))
            high = high + (added >> _BITS) + (low >> _BITS)
            low = low & (2**_BITS - 1)
        return {"high": high, "low": low}

    def statistic(self, exact: Arrays, t: int) -> tuple[Arrays, Array]:
        """What came since the last release, and the count."""
        clipped = self._clipped(exact["high"], exact["low"])
        sums = clipped[:-1] if self._unit == 1.0 else clipped[:-1] * self._unit
        _, row = self.learner.statistic({"sum": sums}, t)
        return self.start(), np.append(row, clipped[-1] * self.c)

    def _clipped(self, high: Integers, low: Integers) -> Integers:
        """`high·2³² + low`, each entry clipped to what `MOST` examples can add up to."""
        beyond = np.abs(high) > 2**30
        value = np.clip(high, -(2**30), 2**30) * 2**_BITS + np.where(beyond, 0, low)
        most = np.full(self.statistic_size, MOST * self._units)
        most[-1] = MOST
        return np.asarray(np.clip(value, -most, most))

    @cached_property
    def _unit(self) -> float:
        """Of a contribution of which the learner's sums are integer multiples."""
        if isinstance(self.learner, QFTL):
            return 1.0
        return lattice_of(self.learner.certificate.magnitude)

    @property
    def _units(self) -> int:
        """The most units of an entry of one contribution: products of two integers of 18 bits, or a lattice."""
        return 2**36 if isinstance(self.learner, QFTL) else 2**27

    def decide(self, t: float, noisy: Array, noise_sd: float) -> Array:
        """What the learner decides, with the noisy number of examples in the place of the exact one."""
        learner: Any = self.learner
        return np.asarray(learner.decide(self.examples(noisy, noise_sd), noisy[:-1], noise_sd))

    def examples(self, noisy: Array, noise_sd: float) -> float:
        """The noisy number of examples: at least 1, and the standard deviation of its noise.

        >>> from taciturn import Privacy, TickSums, private_sum
        >>> sums = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=9, neighbours="add-remove")
        >>> round(sums.learner.examples([0.0, 5.0], noise_sd=0.5), 3), sums.learner.examples([0.0, -9.0], noise_sd=0.1)
        (40.0, 1.0)
        """
        return max(float(noisy[-1]) / self.c, noise_sd / self.c, 1.0)


def _constant(bound: float, t: Array) -> Array:
    """The same bound for any t."""
    return np.full(np.shape(t), bound)
