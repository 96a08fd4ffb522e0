"""What is published: one release, and many of them in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from tacit.arrays import Array, Integers, fixed


@dataclass(frozen=True, eq=False)
class Release:
    """What the world sees after `t` examples: a noisy row, the point decided from it, and its noise level.

    `noise_sd` is the deviation of what was added to an entry of the row, which is the point itself for learners that
    hand over iterates, a sum for those that hand over sums; randomness inside an objective is not counted.

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


class Releases(Sequence[Release]):
    """Consecutive releases: a sequence of `Release`, kept as arrays with a row for each.

    Attributes
    ----------
    rounds : ndarray of int
        How many examples each had seen.
    noisy, points : ndarray
        Noisy rows, and the points decided from them.
    noise_sd : ndarray
        Deviations of the noise.

    Examples
    --------
    >>> from tacit import L2Ball, Logistic, Privacy, Problem, pigd
    >>> private = pigd(Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1), Privacy(1.0, 1e-6), horizon=3)
    >>> _, releases = private.run(private.start(), [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> len(releases), releases[-1].t, releases.points.shape
    (3, 3, (3, 2))
    """

    def __init__(
        self, rounds: Integers, first: int, noisy: Array, points: Array, noise_sd: Array, simulated: bool
    ) -> None:
        self.rounds, self.first, self.simulated = fixed(rounds), first, simulated
        self.noisy, self.points, self.noise_sd = map(fixed, (noisy, points, noise_sd))

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
            cut = (self.noisy[index], self.points[index], self.noise_sd[index])
            return Releases(self.rounds[index], self.first + start, *cut, self.simulated)
        i = range(len(self))[index]
        noisy, point = self.noisy[i].copy(), self.points[i].copy()
        return Release(int(self.rounds[i]), self.first + i, noisy, point, float(self.noise_sd[i]), self.simulated)

    def __add__(self, more: Releases) -> Releases:
        """These and those that follow them."""
        if not isinstance(more, Releases):
            return NotImplemented
        if more.first != self.first + len(self):
            raise ValueError(
                f"release {self.first + len(self)} follows these, and those begin with {more.first}. Add up releases of "
                "one stream, in their order."
            )
        return concatenated([self, more])

    def __repr__(self) -> str:
        mark = ", simulation: not private" if self.simulated else ""
        last = f", up to round {self.rounds[-1]}" if len(self) else ""
        return f"Releases({len(self)}{last}{mark})"


def concatenated(parts: Sequence[Releases]) -> Releases:
    """One sequence from several that follow each other."""
    if len(parts) == 1:
        return parts[0]
    rounds, noisy, points, noise_sd = (
        np.concatenate([getattr(part, name) for part in parts if len(part)] or [getattr(parts[0], name)])
        for name in ("rounds", "noisy", "points", "noise_sd")
    )
    return Releases(rounds, parts[0].first, noisy, points, noise_sd, any(part.simulated for part in parts))
