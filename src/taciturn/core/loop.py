"""Passes: how a block of bounded examples, and the releases in it, go through a learner and a mechanism.

`Definition` is one release at a time, by the verbs of the two protocols: what every other pass is measured against.
`Together` takes the releases of a block at once, for a learner that does not look at released points and has the verbs
for it. A learner may bring a pass of its own, and one that does look has no other. All of them draw the noise of a
block before they look at its examples, and release the same, up to rounding errors, which certificates pay for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from taciturn._util.arrays import Array, Arrays, Integers
from taciturn.compiled.codes import Leader
from taciturn.core.protocols import Calibrated, Learner
from taciturn.core.release import Collected
from taciturn.core.state import Standing
from taciturn.problem.sparse_rows import Rows, by_number


class Pass(Protocol):
    """A way through a block, with a seed, or None for noise that is secret."""

    @property
    def forgets(self) -> bool:
        """Whether nothing keeps hold of a block's examples, so that the next ones may take their place in memory."""

    @property
    def compressed(self) -> bool:
        """Whether it takes compressed rows as they are; to others they come dense."""

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """Learn from the bounded examples that follow, and add the releases of these rounds to those `shown`."""


@runtime_checkable
class LearnsTogether(Protocol):
    """The verbs of a learner that hands over many rows at once; it makes nothing of released points."""

    def hand_over_all(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """The exact state after all examples, and the rows of these rounds: `absorb` and `hand_over`, one by one."""

    def decide_all(self, rounds: Integers, noisy: Array, noise_sd: Array) -> Array:
        """The points of these rounds: `decide`, one by one."""


@runtime_checkable
class HidesTogether(Protocol):
    """The verbs of a calibrated mechanism that hides many rows at once, from release k on."""

    def noise_for(self, seed: int | None, k: int, count: int) -> Integers:
        """Integers to add to all that `count` releases encode."""

    def hide_all(self, secret: Arrays, public: Arrays, rows: Array, k: int, noise: Integers) -> HiddenRows:
        """`encode`, the noise, and `decode`, one by one."""


@runtime_checkable
class HidesEachAlone(Protocol):
    """What a calibrated mechanism that hides each row by itself, on a lattice, says of its releases."""

    magnitude: float

    def noise_for(self, seed: int | None, k: int, count: int) -> Integers:
        """Integers to add to as many rows from release k on."""

    def levels_of(self, k: int, count: int) -> tuple[Array, Array]:
        """Deviations and lattice steps from release k on."""


@runtime_checkable
class HasOwnPass(Protocol):
    """The verb of a learner that brings a pass of its own, for some mechanisms."""

    def pass_through(self, calibrated: Calibrated) -> Pass | None:
        """It, or None where the usual ones must do."""


class HiddenRows(NamedTuple):
    """What is left of a mechanism's memories, noisy rows, and their deviations."""

    secret: Arrays
    public: Arrays
    noisy: Array
    noise_sd: Array


@runtime_checkable
class LeadsInside(Protocol):
    """The verb of a calibrated mechanism that takes a learner with feedback into its own compiled loop."""

    @property
    def leads(self) -> bool:
        """Whether it can."""

    def noise_for(self, seed: int | None, k: int, count: int) -> Integers:
        """Integers to add to all that `count` releases encode."""

    def noise_sds(self, k: int, count: int) -> Array:
        """Deviations of as many noisy rows from release k on."""

    def lead(self, block: Block, secret: Arrays, public: Arrays, k: int, noise: Integers) -> tuple[Arrays, Arrays]:
        """Write the block's noisy rows and points, from release k on; what is left of the mechanism's memories."""


class Block(NamedTuple):
    """A regularised leader, the examples it learns from, and places for what is released of it.

    Its point and total are changed to the last ones.
    """

    leader: Leader
    point: Array
    total: Array
    t: int
    X: Rows
    y: Array
    rounds: Integers
    strides: Array
    noisy: Array
    points: Array

    @property
    def numbers(self) -> tuple[Any, ...]:
        """All of it for compiled code."""
        return *self[:4], by_number(self.X), *self[5:]

    def check(self, written: int) -> None:
        """Refuse to go on if not all releases were written: their places would show whatever memory held before."""
        if written != len(self.rounds):
            raise RuntimeError(f"{written} of {len(self.rounds)} releases were made: a pass of taciturn is wrong.")

    def part(self, start: int, end: int) -> Block:
        """Releases `start` to `end` of it, and the examples up to the last of them."""
        first = int(self.rounds[start - 1]) - self.t if start else 0
        last = int(self.rounds[end - 1]) - self.t
        learner = self.leader, self.point, self.total
        examples = self.t + first, self.X[first:last], self.y[first:last]
        rounds, strides = self.rounds[start:end], self.strides[start:end]
        return Block(*learner, *examples, rounds, strides, self.noisy[start:end], self.points[start:end])


@dataclass(frozen=True)
class Definition:
    """One release at a time."""

    learner: Learner
    calibrated: Calibrated
    forgets: ClassVar[bool] = False  # who knows what another's learner keeps
    compressed: ClassVar[bool] = False

    def __call__(
        self, at: Standing, X: Array, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        learner, calibrated = self.learner, self.calibrated
        noise = iter(calibrated.noise(seed, at.k + 1, len(rounds)) if len(rounds) else ())
        t, k, exact, secret, public, point = at
        start = 0
        for end in (int(due) - t for due in rounds):
            k, drawn = k + 1, next(noise)
            exact = learner.absorb(exact, t + start, X[start:end], y[start:end], point)
            exact, row = learner.hand_over(exact, t + end)
            secret, encoded = calibrated.encode(secret, row, k)
            public, noisy, sd = calibrated.decode(public, encoded + drawn, k)
            point = np.array(learner.decide(t + end, noisy, sd), dtype=np.float64)
            shown.add(noisy[None, :], point[None, :], np.array([sd]))
            start = end
        if start < len(y):
            exact = learner.absorb(exact, t + start, X[start:], y[start:], point)
        return Standing(t + len(y), k, exact, secret, public, point)


@dataclass(frozen=True)
class Together:
    """All releases of a block at once."""

    learner: LearnsTogether
    calibrated: HidesTogether
    forgets: ClassVar[bool] = True
    compressed: ClassVar[bool] = False

    def __call__(
        self, at: Standing, X: Array, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        t, k, exact, secret, public, _ = at
        if not (count := len(rounds)):
            exact, _ = self.learner.hand_over_all(exact, t, X, y, rounds)
            return at._replace(t=t + len(y), exact=exact)
        noise = self.calibrated.noise_for(seed, k + 1, count)
        exact, rows = self.learner.hand_over_all(exact, t, X, y, rounds)
        secret, public, noisy, sd = self.calibrated.hide_all(secret, public, rows, k + 1, noise)
        points = self.learner.decide_all(rounds, noisy, sd)
        shown.add(noisy, points, sd)
        return Standing(t + len(y), k + count, exact, secret, public, points[-1].copy())


def pass_through(learner: Learner, calibrated: Calibrated, compiled: bool) -> Pass:
    """The fastest way there is, or the definition: always for a class of another's, or a subclass of one of these.

    A compiled loop does what the verbs of its own classes do, and would not notice that one was overridden.
    """
    things = (learner, learner.problem, getattr(learner, "learner", learner))
    if compiled and ours(*things, calibrated, getattr(calibrated, "coder", calibrated)):
        if isinstance(learner, HasOwnPass) and (own := learner.pass_through(calibrated)) is not None:
            return own
        if isinstance(learner, LearnsTogether) and isinstance(calibrated, HidesTogether):
            return Together(learner, calibrated)
    return Definition(learner, calibrated)


def ours(*things: object) -> bool:
    """Whether all of these are of classes of this package itself.

    >>> from taciturn import L2Ball
    >>> ours(L2Ball(1.0)), ours(L2Ball(1.0), object())
    (True, False)
    """
    return all(type(thing).__module__.partition(".")[0] == "taciturn" for thing in things)
