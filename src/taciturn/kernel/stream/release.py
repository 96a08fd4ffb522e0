"""Releases: what is published, one at a time or as a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload

import numpy as np

from taciturn.kernel.arrays import Array, Integers


@dataclass(frozen=True, eq=False)
class Release:
    """What is published after `t` examples: a noisy statistic, the point decided from it, and the noise level.

    `noise_sd` is the standard deviation of the noise on an entry of the statistic (an iterate or a sum, depending on
    the learner); randomness inside an objective is not counted.

    >>> import numpy as np
    >>> Release(10, 1, np.array([0.4, 1.2]), np.array([0.3, 0.9]), noise_sd=0.1, simulated=True)
    Release(t=10, k=1, point=[0.3 0.9], simulation: not private)
    """

    t: int
    k: int
    noisy: Array
    point: Array
    noise_sd: float
    simulated: bool

    def __repr__(self) -> str:
        mark = ", simulation: not private" if self.simulated else ""
        return f"Release(t={self.t}, k={self.k}, point={self.point}{mark})"


_set_flags: Any = np.ndarray.setflags  # called by position, in half the time: every example may have a release


class Releases(Sequence[Release]):
    """Consecutive releases: a sequence of `Release`, stored as arrays with a row for each.

    Attributes
    ----------
    rounds : ndarray of int
        Number of examples before each release.
    noisy, points : ndarray
        Noisy statistics, and the points decided from them.
    noise_sd : ndarray
        Standard deviations of the noise.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pigd
    >>> private = pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1), Privacy(1.0, 1e-6), horizon=3)
    >>> _, releases = private.run(private.start(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> len(releases), releases[-1].t, releases.points.shape
    (3, 3, (3, 2))
    """

    def __init__(
        self, rounds: Integers, first: int, noisy: Array, points: Array, noise_sd: Array, simulated: bool
    ) -> None:
        _set_flags(rounds, False)  # write=False: what was published does not change
        _set_flags(noisy, False)
        _set_flags(points, False)
        _set_flags(noise_sd, False)
        self.rounds = rounds
        self.first = first
        self.noisy = noisy
        self.points = points
        self.noise_sd = noise_sd
        self.simulated = simulated

    def __len__(self) -> int:
        return len(self.rounds)

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Releases: ...
    def __getitem__(self, index: int | slice) -> Release | Releases:
        if isinstance(index, slice):
            start, _, step = index.indices(len(self))
            if step != 1:
                raise ValueError("consecutive releases only: a slice without a step.")
            noisy, points, sd = self.noisy[index], self.points[index], self.noise_sd[index]
            return Releases(self.rounds[index], self.first + start, noisy, points, sd, self.simulated)
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"there are {len(self)} releases here, and none with index {index}: not every call has any."
            )
        i = range(len(self))[index]
        noisy, point = self.noisy[i].copy(), self.points[i].copy()
        return Release(int(self.rounds[i]), self.first + i, noisy, point, float(self.noise_sd[i]), self.simulated)

    def __add__(self, more: Releases) -> Releases:
        """These releases and those that follow them in the same stream."""
        if not isinstance(more, Releases):
            return NotImplemented
        if more.first != self.first + len(self):
            raise ValueError(
                f"release {self.first + len(self)} follows these, and those begin with {more.first}. Add up releases "
                "of one stream, in their order."
            )
        both = Collected(np.concatenate([self.rounds, more.rounds]), self.first)
        for part in (self, more):
            both.add(part.noisy, part.points, part.noise_sd)
        return both.releases(self.simulated or more.simulated)

    def __radd__(self, earlier: list[Release]) -> list[Release]:
        """A list, and these at its end."""
        return [*earlier, *self]

    def __repr__(self) -> str:
        mark = ", simulation: not private" if self.simulated else ""
        last = f", up to round {self.rounds[-1]}" if len(self) else ""
        return f"Releases({len(self)}{last}{mark})"


_NONE: tuple[Integers, Array, Array] = (np.empty(0, dtype=np.int64), np.empty((0, 0)), np.empty(0))


@lru_cache(maxsize=64)
def no_releases(first: int, simulated: bool) -> Releases:
    """The releases of a call without any; the next one is number `first`.

    >>> len(no_releases(3, simulated=True))
    0
    """
    rounds, rows, noise_sd = _NONE
    return Releases(rounds, first, rows, rows, noise_sd, simulated)


class Collected:
    """The releases of one call, collected in arrays of their final size."""

    def __init__(self, rounds: Integers, first: int) -> None:
        self.rounds = rounds
        self.first = first
        self.done = 0  # releases that have a place
        self.made = 0  # releases that were written
        self.arrays = (np.empty((0, 0)), np.empty((0, 0)), np.empty(0))

    def add(self, noisy: Array, points: Array, noise_sd: Array) -> None:
        """Append the next releases."""
        if self.done == 0 and len(noise_sd) == len(self.rounds):
            self.arrays = (noisy, points, noise_sd)
            self.done = len(noise_sd)
        elif len(noise_sd):
            places = self.room(len(noise_sd), noisy.shape[1], points.shape[1])
            for place, part in zip(places, (noisy, points, noise_sd), strict=True):
                place[:] = part
        self.written(len(noise_sd))

    def room(self, count: int, width: int, size: int) -> tuple[Array, Array, Array]:
        """Views for the next `count` noisy statistics (of `width` entries), points (of `size`) and noise levels."""
        if self.done == 0:
            total = len(self.rounds)
            self.arrays = (np.empty((total, width)), np.empty((total, size)), np.empty(total))
        here = slice(self.done, self.done + count)
        self.done += count
        noisy, points, noise_sd = self.arrays
        return noisy[here], points[here], noise_sd[here]

    def written(self, count: int) -> None:
        """Report how many releases were written to the views of `room`."""
        self.made += count

    def releases(self, simulated: bool) -> Releases:
        """All releases; an error if some were not written, as memory would show its old contents."""
        noisy, points, noise_sd = self.arrays
        if not self.made == self.done == len(self.rounds):
            raise RuntimeError(f"not all of {len(self.rounds)} releases were made: a pass of taciturn is wrong.")
        return Releases(self.rounds, self.first, noisy, points, noise_sd, simulated)
