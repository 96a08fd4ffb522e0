"""Two worlds on common noise: their transcripts differ by the shift, and up to a lattice step by nothing else.

That is so for fixed streams and a learner that looks at no released point. The shift is then measured nearly without
error, on what compiled code released, and needs no knowledge of what happens inside.
"""

from __future__ import annotations

import numpy as np

from taciturn._util.arrays import Array
from taciturn.audit.pairs import Pair
from taciturn.audit.played import Played, directions
from taciturn.audit.transcripts import opening, released, way_through, whitening
from taciturn.core.private import Private
from taciturn.core.release import Releases

_FIRST = 8  # seeds on which directions are measured; trials take others
_TOGETHER = 256  # trials that are whitened at once


class CommonNoise:
    """A pair of fixed streams, for a learner that looks at no released point."""

    def __init__(self, private: Private, pair: Pair) -> None:
        self.private, self.pair, self._whiten = private, pair, whitening(private)
        self._way, self._opening = way_through(private), opening(private)
        self._streams = [pair.bounded(private, world) for world in (0, 1)]
        self._middles = [np.mean(self._rows(world, range(_FIRST)), axis=0) for world in (0, 1)]
        moved = self._middles[1] - self._middles[0]
        self._along, _ = directions(moved)
        self.apart = float(np.linalg.norm(moved))

    def play(self, trials: int) -> Played:
        """Each trial in both worlds, on noise of its own."""
        here, there = np.empty((2, trials, len(self._along)))
        totals, squares = np.zeros((2, 2, *self._along.shape))
        for start in range(0, trials, _TOGETHER):
            end = min(start + _TOGETHER, trials)
            for world, noise in enumerate((here, there)):
                rows = self._rows(world, range(_FIRST + start, _FIRST + end))
                noise[start:end] = self._project(rows)
                totals[world] += (rows - self._middles[world]).sum(axis=0)
                squares[world] += ((rows - self._middles[world]) ** 2).sum(axis=0)
        around = [max(0.0, float(np.sum(squares[world] - totals[world] ** 2 / trials))) for world in (0, 1)]
        freedom = (trials - 1) * self._along.size
        return Played(here, there, there - here, (around[0], around[1]), freedom, centred=False)

    def looked_at(self, world: int, shown: list[Releases]) -> Array:
        """Noise, and a row that is the same for all."""
        return self._project(self._whiten(np.array([releases.noisy for releases in shown])))

    def _rows(self, world: int, seeds: range) -> Array:
        """Whitened transcripts, one for each seed."""
        stream, rounds = self._streams[world], self.private.timetable.rounds
        shown = (released(self._way, self._opening, *stream, rounds, seed)[1] for seed in seeds)
        return self._whiten(np.array([releases.noisy for releases in shown]))

    def _project(self, rows: Array) -> Array:
        return np.asarray(np.einsum("ikj,kj->ik", rows, self._along))
