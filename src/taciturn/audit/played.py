"""What trials of a pair of streams show, release by release."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from taciturn._util.arrays import Array
from taciturn.core.release import Releases

_STILL = 1e-6  # of the largest shift


class Played(NamedTuple):
    """Whitened releases along the shift: a row for each trial, a column for each release, in stated deviations.

    Attributes
    ----------
    here, there : ndarray
        The noise in the stream's world and in its neighbour's; not `centred`, it is noise plus a row that is the same
        for all trials.
    shift : ndarray
        How far the neighbour lies, by trials.
    squares, freedom : tuple of float, int
        Squares of the noise over *all* entries of all releases, added up, in the stream's world and in its
        neighbour's, and how many of them are free in each: as stated, each is 1 on average.
    centred : bool
        Whether exact rows were subtracted.
    """

    here: Array
    there: Array
    shift: Array
    squares: tuple[float, float]
    freedom: int
    centred: bool


def directions(moved: Array, still: Array | None = None) -> tuple[Array, Array]:
    """Unit vectors along the shift of each row, and its lengths; rows that stay take `still`, or the farthest one's.

    They tell nothing by themselves, but may hold the same noise as one that moves.

    >>> directions(np.array([[0.0, 2.0], [0.0, 0.0]]))[0]
    array([[0., 1.],
           [0., 1.]])
    """
    length = np.linalg.norm(moved, axis=1)
    farthest = int(np.argmax(length))
    stays = length <= _STILL * length[farthest]
    along = moved / np.where(stays, 1.0, length)[:, None]
    along[stays] = along[farthest] if still is None else still
    return along, length


class TwoWorlds(Protocol):
    """A pair of streams that can be played any number of times."""

    @property
    def apart(self) -> float:
        """How far apart the two worlds lie, in stated deviations, as far as a look can tell."""

    def play(self, trials: int) -> Played:
        """As many trials on seeded noise."""

    def looked_at(self, world: int, shown: list[Releases]) -> Array:
        """Transcripts of one world, whoever ran it on the pair's own streams: rows as in `Played`."""
