"""Two worlds along what was released in one of them: for learners with feedback, and against an adaptive adversary.

There common noise does not help, since a shift of one release changes later rows. Instead the exact rows h of both
worlds are computed again, by the verbs that define them, from the examples and points of a game that was played in one.
Given the past, the next release is its world's row plus noise, in either world: with D = h' - h and whitened rows,

    Z = Σ_k ⟨noisy_k - h_k, D_k⟩/‖D‖

is N(0, 1) in one world and N(‖D‖, 1) in the other, if ‖D‖ is the same along every path. *Proof.* Given what came before
release k, D_k is a number, and the k-th term is normal with the variance ‖D_k‖²/‖D‖² and the mean 0 or that times ‖D‖;
so `E exp(i·s·Z)`, release by release from the last, is that of the normal law. ∎ Where ‖D‖ depends on the path, what is
reported is at most its root mean square, half of whose square is the relative entropy of the two worlds: at most mu²/2.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from taciturn._util.arrays import Array
from taciturn.audit.pairs import Adversary, Pair
from taciturn.audit.played import Played, directions
from taciturn.audit.transcripts import exact_rows, opening, released, way_through, whitening
from taciturn.core.private import Private
from taciturn.core.release import Releases


class Replayed:
    """A pair of streams, fixed or chosen as points are released, for any learner."""

    def __init__(self, private: Private, pair: Pair, adversary: Adversary | None = None) -> None:
        self.private, self.pair, self.adversary = private, pair, adversary
        self._whiten, self._way = whitening(private), way_through(private)
        self._streams = [pair.bounded(private, world) for world in (0, 1)]

    @property
    def apart(self) -> float:
        """In one trial."""
        return float(np.linalg.norm(self._rows(0, *self.trial(0, 0))[1]))

    def play(self, trials: int) -> Played:
        """Trials of either world, each on noise of its own, and the shift along what was released in all of them."""
        releases, squares = len(self.private.timetable.rounds), [0.0, 0.0]
        noise, shift = np.empty((2, 2, trials, releases))
        for world, trial in np.ndindex(2, trials):
            rows, moved = self._rows(world, *self.trial(world, 2 * trial + world))
            noise[world, trial], shift[world, trial] = _along(rows, moved)
            squares[world] += float(np.sum(rows**2))
        freedom = trials * releases * self.private.learner.statistic_size
        moved = np.sqrt(np.mean(shift**2, axis=0))
        return Played(noise[0], noise[1], moved, (squares[0], squares[1]), freedom, centred=True)

    def looked_at(self, world: int, shown: list[Releases]) -> Array:
        """Noise alone."""
        V, y = self._streams[world]
        return np.array([_along(*self._rows(world, V, y, done.noisy, done.points))[0] for done in shown])

    def trial(self, world: int, seed: int) -> tuple[Array, Array, Array, Array]:
        """Examples, noisy rows and points of one game."""
        rounds, at = self.private.timetable.rounds, opening(self.private)
        V, y = (part.copy() for part in self._streams[world])
        if self.adversary is None:
            _, shown = released(self._way, at, V, y, rounds, seed)
            return V, y, shown.noisy, shown.points
        noisy, points = [], []
        for start, end in pairwise([0, *map(int, rounds)]):
            self._choose(V, y, range(start, end), at.point)
            at, shown = released(self._way, at, V[start:end], y[start:end], np.array([end]), seed)
            noisy.append(shown.noisy[-1])
            points.append(at.point)
        return V, y, np.array(noisy), np.array(points)

    def stream(self, world: int, V: Array, y: Array) -> tuple[Array, Array]:
        """The examples of a game as they would be in this world."""
        X, labels, at = V.copy(), y.copy(), self.pair.at
        X[at], labels[at] = (part[at] for part in self._streams[world])
        return X, labels

    def _choose(self, V: Array, y: Array, rounds: range, point: Array) -> None:
        """The adversary's examples, through the problem's door; not the one that differs."""
        assert self.adversary is not None
        for t in rounds:
            if t != self.pair.at:
                row, label = self.adversary(point, t)
                V[t : t + 1], y[t : t + 1] = self.private.problem.clip([row], [label])

    def _rows(self, world: int, V: Array, y: Array, noisy: Array, points: Array) -> tuple[Array, Array]:
        """Whitened noise, and the neighbour's shift, along a game."""
        rows = [exact_rows(self.private, *self.stream(other, V, y), points) for other in (0, 1)]
        return self._whiten(noisy - rows[world]), self._whiten(rows[1] - rows[0])


def _along(rows: Array, moved: Array) -> tuple[Array, Array]:
    """Rows along the shift of each, and how long that is; those that stay, along what no later shift has a part in."""
    size = moved.shape[1]
    along, length = directions(moved, np.full(size, size**-0.5))
    return np.sum(rows * along, axis=1), length
