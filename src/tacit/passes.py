"""Passes: how a block of bounded examples, and the releases in it, go through a learner and a mechanism.

`Definition` is one release at a time, by the verbs of the two protocols: what every other pass is measured against.
`Together` takes the releases of a block at once, for a learner that does not look at released points and has the verbs
for it. A learner that does look brings a pass of its own. All of them draw the noise of a block before they look at
its examples, and release the same, up to rounding errors, which certificates pay for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tacit.arrays import Array, Arrays, Integers
from tacit.contracts import Calibrated, Learner
from tacit.kernels.codes import Leader
from tacit.problem.compressed import Rows, by_number
from tacit.state import State


class Passed(NamedTuple):
    """What a block leaves behind: memories, and a row for each release."""

    exact: Arrays
    secret: Arrays
    public: Arrays
    noisy: Array
    points: Array
    noise_sd: Array


class Pass(Protocol):
    """A way through a block, from a state and a seed, or None for noise that is secret."""

    @property
    def forgets(self) -> bool:
        """Whether nothing keeps hold of a block's examples, so that the next ones may take their place in memory."""

    @property
    def compressed(self) -> bool:
        """Whether it takes compressed rows as they are."""

    def __call__(self, state: State, X: Any, y: Array, rounds: Integers, seed: int | None) -> Passed:
        """Learn from bounded examples that follow `state`, and release at these rounds."""


@runtime_checkable
class LearnsTogether(Protocol):
    """The verbs of a learner that hands over many rows at once; it makes nothing of released points.

    One that says `compressed` has a loop over compressed rows as well; to others they are made dense.
    """

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

    def levels_of(self, k: int, count: int) -> Array:
        """Deviations and lattice steps from release k on, in two rows."""


@runtime_checkable
class ReleasesTogether(Protocol):
    """The verb of a learner that takes rows, each hidden by itself, to points in one loop."""

    def release_all(
        self,
        exact: Arrays,
        t: int,
        X: Array,
        y: Array,
        rounds: Integers,
        step: Array,
        most: float,
        noise: Integers,
    ) -> tuple[Arrays, Array, Array] | None:
        """The exact state after all examples, noisy rows and points; None where there is no such loop."""


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

    def lead(self, block: Block, secret: Arrays, public: Arrays, k: int, noise: Integers) -> Led:
        """Noisy rows and points from release k on, of a regularised leader by number."""


class Block(NamedTuple):
    """A regularised leader and the examples it learns from; its point and total are changed to the last ones."""

    leader: Leader
    point: Array
    total: Array
    t: int
    X: Rows
    y: Array
    rounds: Integers
    strides: Array

    @property
    def numbers(self) -> tuple[Any, ...]:
        """All of it for compiled code."""
        return *self[:4], by_number(self.X), *self[5:]

    def part(self, start: int, end: int) -> Block:
        """Releases `start` to `end` of it, and the examples up to the last of them."""
        first = int(self.rounds[start - 1]) - self.t if start else 0
        last = int(self.rounds[end - 1]) - self.t
        cut = (self.t + first, self.X[first:last], self.y[first:last], self.rounds[start:end], self.strides[start:end])
        return Block(self.leader, self.point, self.total, *cut)


class Led(NamedTuple):
    """What a block leaves of a mechanism's memories, and its rows and points."""

    secret: Arrays
    public: Arrays
    noisy: Array
    points: Array


@dataclass(frozen=True)
class Definition:
    """One release at a time."""

    learner: Learner
    calibrated: Calibrated
    forgets: ClassVar[bool] = False  # who knows what another's learner keeps
    compressed: ClassVar[bool] = False

    def __call__(self, state: State, X: Array, y: Array, rounds: Integers, seed: int | None) -> Passed:
        learner, calibrated = self.learner, self.calibrated
        noise = iter(calibrated.noise(seed, state.k + 1, len(rounds)) if len(rounds) else ())
        exact, secret, public, point = state.exact, state.secret, state.public, state.point
        shown: list[tuple[Array, Array, float]] = []
        t, start = state.t, 0
        for k, end in enumerate((int(due) - t for due in rounds), start=state.k + 1):
            drawn = next(noise)
            exact = learner.absorb(exact, t + start, X[start:end], y[start:end], point)
            exact, row = learner.hand_over(exact, t + end)
            secret, encoded = calibrated.encode(secret, row, k)
            public, noisy, sd = calibrated.decode(public, encoded + drawn, k)
            point = learner.decide(t + end, noisy, sd)
            shown.append((noisy, point, sd))
            start = end
        if start < len(y):
            exact = learner.absorb(exact, t + start, X[start:], y[start:], point)
        return Passed(exact, secret, public, *_stacked(shown, state.point))


@dataclass(frozen=True)
class Together:
    """All releases of a block at once."""

    learner: LearnsTogether
    calibrated: HidesTogether
    forgets: ClassVar[bool] = True

    @property
    def compressed(self) -> bool:
        """If the learner does."""
        return bool(getattr(self.learner, "compressed", False))

    def __call__(self, state: State, X: Any, y: Array, rounds: Integers, seed: int | None) -> Passed:
        k, count = state.k + 1, len(rounds)
        noise = self.calibrated.noise_for(seed, k, count) if count else None
        if noise is not None and (passed := self._in_one_loop(state, X, y, rounds, noise)) is not None:
            return passed
        exact, rows = self.learner.hand_over_all(state.exact, state.t, X, y, rounds)
        if noise is None:
            return Passed(exact, state.secret, state.public, *_stacked([], state.point))
        secret, public, noisy, sd = self.calibrated.hide_all(state.secret, state.public, rows, k, noise)
        return Passed(exact, secret, public, noisy, self.learner.decide_all(rounds, noisy, sd), sd)

    def _in_one_loop(self, state: State, X: Any, y: Array, rounds: Integers, noise: Integers) -> Passed | None:
        learner, calibrated = self.learner, self.calibrated
        if not (isinstance(learner, ReleasesTogether) and isinstance(calibrated, HidesEachAlone)):
            return None
        sd, step = calibrated.levels_of(state.k + 1, len(rounds))
        released = learner.release_all(state.exact, state.t, X, y, rounds, step, calibrated.magnitude, noise)
        if released is None:
            return None
        exact, noisy, points = released
        return Passed(exact, state.secret, state.public, noisy, points, sd)


def _stacked(shown: list[tuple[Array, Array, float]], point: Array) -> tuple[Array, Array, Array]:
    if not shown:
        return np.empty((0, 0)), np.empty((0, len(point))), np.empty(0)
    noisy, points, sd = zip(*shown, strict=True)
    return np.array(noisy, dtype=np.float64), np.array(points, dtype=np.float64), np.array(sd, dtype=np.float64)


def pass_through(learner: Learner, calibrated: Calibrated, compiled: bool) -> Pass:
    """The fastest way there is, or the definition: always for a class of another's, or a subclass of one of these.

    A compiled loop does what the verbs of its own classes do, and would not notice that one was overridden.
    """
    things = (learner, learner.problem, getattr(learner, "learner", learner))
    if compiled and ours(*things, calibrated, getattr(calibrated, "coder", calibrated)):
        if hasattr(learner, "pass_through") and (own := learner.pass_through(calibrated)) is not None:
            return own  # type: ignore[no-any-return]
        if isinstance(learner, LearnsTogether) and isinstance(calibrated, HidesTogether):
            return Together(learner, calibrated)
    return Definition(learner, calibrated)


def ours(*things: object) -> bool:
    """Whether all of these are of classes of this package itself.

    >>> from tacit import L2Ball
    >>> ours(L2Ball(1.0)), ours(L2Ball(1.0), object())
    (True, False)
    """
    return all(type(thing).__module__.partition(".")[0] == "tacit" for thing in things)
