"""How two worlds are run: trials on common noise or along the releases, and complete transcripts.

**Common noise.** On common noise the transcripts of two worlds differ by the shift, and up to a lattice step by nothing
else. That is so for fixed streams and a learner that uses no released point. The shift is then measured nearly
without error, on the releases of compiled code, and needs no knowledge of its internals.

**Replay.** Two worlds along the releases of one of them, for learners with feedback and against an adaptive adversary.
There common noise does not help, since a shift of one release changes later rows. Instead the exact rows h of both
worlds are computed again, by the methods that define them, from the examples and points of a game that was played in
one. Given the past, the next release is its world's row plus noise, in either world: with D = h' - h and whitened rows,

    Z = Σ_k ⟨noisy_k - h_k, D_k⟩/‖D‖

is N(0, 1) in one world and N(‖D‖, 1) in the other, if ‖D‖ is the same along every path. *Proof.* Given what came before
release k, D_k is a number, and the k-th term is normal with the variance ‖D_k‖²/‖D‖² and the mean 0 or that times ‖D‖;
so `E exp(i·s·Z)`, release by release from the last, is that of the normal law. ∎ Where ‖D‖ depends on the path, what is
reported is at most its root mean square, half of whose square is the relative entropy of the two worlds: at most mu²/2.

**Whitening.** Of independent noise, release k is divided by its stated standard deviation. Of a prefix sum with
matrices B, C and noise of standard deviation sigma on the encoded rows, the published sums are `A·x + sigma·B·n`, n
standard normal. With `B·Bᵀ = L·Lᵀ`, L lower-triangular, `W = L⁻¹/sigma` turns them into `W·A·x + n'`, n' standard
normal too, and loses nothing, since W can be undone. Where B is square, L is B and W·(sums) are the noisy encoded rows
over sigma; of a tree only what its sums show of the nodes is left. Whatever the noise really is, W is a fixed, public,
linear map.

**Users.** If the unit of privacy is a user, every transcript is one of `Private.run` on raw rows and ids, in several
calls: the rows that do not count are found, and lose their influence, by the code that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from taciturn.audit.pairs import Adversary, Pair
from taciturn.core.private import Private
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.mechanisms.strategy import matrices
from taciturn.kernel.replay import counted, without_noise
from taciturn.kernel.stream.loop import Pass, pass_for
from taciturn.kernel.stream.release import Collected, Releases
from taciturn.kernel.stream.state import Standing, State

_STILL = 1e-6  # of the largest shift


class Played(NamedTuple):
    """Whitened releases along the shift: a row per trial, a column per release, in stated standard deviations.

    Attributes
    ----------
    here, there : ndarray
        The noise in the stream's world and in its neighbour's; not `centred`, it is noise plus a row that is the same
        for all trials.
    shift : ndarray
        The shift to the neighbour, by trials.
    squares, freedom : tuple of float, int
        Squares of the noise over *all* entries of all releases, added up, in the stream's world and in its
        neighbour's, and how many of them are free in each: as stated, each is 1 on average.
    centred : bool
        Whether exact statistics were subtracted.
    """

    here: Array
    there: Array
    shift: Array
    squares: tuple[float, float]
    freedom: int
    centred: bool


def directions(moved: Array, still: Array | None = None) -> tuple[Array, Array]:
    """Unit vectors along the shift of each row, and its lengths; rows that stay take `still`, or the farthest one's.

    They carry no signal by themselves, but may contain the same noise as one that moves.

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
        """Estimated distance between the two worlds, in stated standard deviations."""

    def play(self, trials: int) -> Played:
        """Run trials on seeded noise."""

    def projections(self, world: int, shown: list[Releases]) -> Array:
        """Given transcripts of one world on the pair's own streams, projected to rows as in `Played`."""


_PILOT = 8  # seeds on which directions are measured; trials take others
_BATCH = 256  # trials that are whitened in one batch


class CommonNoise:
    """A pair of fixed streams, for a learner that uses no released point."""

    def __init__(self, private: Private, pair: Pair) -> None:
        self.private, self.pair, self._whiten = private, pair, whitening(private)
        self._run = seeded_run(private, pair)
        self._middles = [np.mean(self._rows(world, range(_PILOT)), axis=0) for world in (0, 1)]
        moved = self._middles[1] - self._middles[0]
        self._along, _ = directions(moved)
        self.apart = float(np.linalg.norm(moved))

    def play(self, trials: int) -> Played:
        """Each trial in both worlds, on its own noise."""
        here, there = np.empty((2, trials, len(self._along)))
        totals, squares = np.zeros((2, 2, *self._along.shape))
        for start in range(0, trials, _BATCH):
            end = min(start + _BATCH, trials)
            for world, noise in enumerate((here, there)):
                rows = self._rows(world, range(_PILOT + start, _PILOT + end))
                noise[start:end] = self._project(rows)
                totals[world] += (rows - self._middles[world]).sum(axis=0)
                squares[world] += ((rows - self._middles[world]) ** 2).sum(axis=0)
        around = [max(0.0, float(np.sum(squares[world] - totals[world] ** 2 / trials))) for world in (0, 1)]
        freedom = (trials - 1) * self._along.size
        return Played(here, there, there - here, (around[0], around[1]), freedom, centred=False)

    def projections(self, world: int, shown: list[Releases]) -> Array:
        """Noise plus a constant row."""
        return self._project(self._whiten(np.array([releases.noisy for releases in shown])))

    def _rows(self, world: int, seeds: range) -> Array:
        """Whitened transcripts, one for each seed."""
        return self._whiten(np.array([self._run(world, seed).noisy for seed in seeds]))

    def _project(self, rows: Array) -> Array:
        return np.asarray(np.einsum("ikj,kj->ik", rows, self._along))


class Replayed:
    """A pair of streams, fixed or chosen as points are released, for any learner."""

    def __init__(self, private: Private, pair: Pair, adversary: Adversary | None = None) -> None:
        self.private, self.pair, self.adversary = private, pair, adversary
        self._whiten, self._way = whitening(private), run_pass(private)
        self._streams = [pair.clipped(private, world) for world in (0, 1)]
        self._run = seeded_run(private, pair)

    @property
    def apart(self) -> float:
        """In one trial."""
        return float(np.linalg.norm(self._rows(0, *self.trial(0, 0))[1]))

    def play(self, trials: int) -> Played:
        """Trials of either world, each on its own noise, and the shift along the releases of all of them."""
        releases, squares = len(self.private.timetable.rounds), [0.0, 0.0]
        noise, shift = np.empty((2, 2, trials, releases))
        for world, trial in np.ndindex(2, trials):
            rows, moved = self._rows(world, *self.trial(world, 2 * trial + world))
            noise[world, trial], shift[world, trial] = _along(rows, moved)
            squares[world] += float(np.sum(rows**2))
        freedom = trials * releases * self.private.learner.statistic_size
        moved = np.sqrt(np.mean(shift**2, axis=0))
        return Played(noise[0], noise[1], moved, (squares[0], squares[1]), freedom, centred=True)

    def projections(self, world: int, shown: list[Releases]) -> Array:
        """Noise only."""
        V, y = self._streams[world]
        return np.array([_along(*self._rows(world, V, y, done.noisy, done.points))[0] for done in shown])

    def trial(self, world: int, seed: int) -> tuple[Array, Array, Array, Array]:
        """Examples, noisy statistics and points of one game."""
        rounds, at = self.private.timetable.rounds, initial_standing(self.private)
        V, y = (part.copy() for part in self._streams[world])
        if self.adversary is None:
            shown = self._run(world, seed)
            return V, y, shown.noisy, shown.points
        if isinstance(self._run, RunOfUsers):
            return self._against_users(self._run, self.adversary, world, seed)
        noisy, points = [], []
        for start, end in pairwise([0, *map(int, rounds)]):
            self._choose(V, y, range(start, end), at.point)
            at, shown = released(self._way, at, V[start:end], y[start:end], np.array([end]), seed)
            noisy.append(shown.noisy[-1])
            points.append(at.point)
        return V, y, np.array(noisy), np.array(points)

    def stream(self, world: int, V: Array, y: Array) -> tuple[Array, Array]:
        """The examples of a game as they would be in this world."""
        X, labels, at = V.copy(), y.copy(), self.pair.places
        X[at], labels[at] = (part[at] for part in self._streams[world])
        return X, labels

    def _against_users(
        self, run: RunOfUsers, adversary: Adversary, world: int, seed: int
    ) -> tuple[Array, Array, Array, Array]:
        """A game in which the adversary chooses all rows but the user's, block by block, by `Private.run`."""
        X, labels = self.pair.world(world)
        private = run.seeded(seed)
        state, shown = private.start(), []
        for start, end in pairwise([0, *map(int, private.timetable.rounds)]):
            for t in set(range(start, end)) - set(self.pair.places.tolist()):
                X[t], label = adversary(state.point, t)
                if labels is not None:
                    labels[t] = label
            block = slice(start, end)
            y = None if labels is None else labels[block]
            state, releases = private.run(state, X[block], y, self.pair.users[block])
            shown.append(releases)
        V, y = counted(private, *private.problem.clip(X, labels), self.pair.users)
        together = joined(shown)
        return V, y, together.noisy, together.points

    def _choose(self, V: Array, y: Array, rounds: range, point: Array) -> None:
        """Set the adversary's examples, clipped by the problem; not the one that differs."""
        assert self.adversary is not None
        for t in rounds:
            if t not in self.pair.places:
                row, label = self.adversary(point, t)
                V[t : t + 1], y[t : t + 1] = self.private.problem.clip([row], [label])

    def _rows(self, world: int, V: Array, y: Array, noisy: Array, points: Array) -> tuple[Array, Array]:
        """Whitened noise, and the neighbour's shift, along a game."""
        rows = [without_noise(self.private, *self.stream(other, V, y), points) for other in (0, 1)]
        return self._whiten(noisy - rows[world]), self._whiten(rows[1] - rows[0])


def _along(rows: Array, moved: Array) -> tuple[Array, Array]:
    """Rows projected on their shifts, and the lengths of these; rows that stay use a fixed direction."""
    size = moved.shape[1]
    along, length = directions(moved, np.full(size, size**-0.5))
    return np.sum(rows * along, axis=1), length


_SILENT = 1e-12  # of the largest standard deviation, used where 0 is stated


def whitening(private: Private) -> Callable[[Array], Array]:
    """The map from noisy statistics, stacked along the second last axis, to rows with noise of stated variance 1."""
    calibrated: Any = private.calibrated
    count = len(private.timetable.rounds)
    if (coder := calibrated.coder) is None:
        sd = np.array([calibrated.noise_sd(k) for k in range(1, count + 1)])
        sd = np.maximum(sd, _SILENT * np.max(sd))[:, None]
        return lambda rows: rows / sd
    B, _ = matrices(coder, count)
    L = B if B.shape[0] == B.shape[1] else cholesky(B @ B.T, lower=True)
    W = solve_triangular(L, np.eye(count), lower=True) / calibrated.sd
    return lambda rows: np.asarray(W @ rows)


def initial_standing(private: Private) -> Standing:
    """The standing before any example; passes do not modify it, so one serves all trials."""
    return Standing(0, 0, private.learner.start(), *private.calibrated.start(), private.learner.first_point)


def released(way: Pass, at: Standing, V: Array, y: Array, rounds: Integers, seed: int) -> tuple[Standing, Releases]:
    """The standing of a simulation after these examples, and its releases at these rounds."""
    shown = Collected(rounds, at.k + 1)
    at = way(at, V, y, rounds, seed, shown)
    return at, shown.releases(simulated=True)


class SeededRun(Protocol):
    """Complete transcripts of a pair of streams, on seeded noise."""

    def __call__(self, world: int, seed: int) -> Releases:
        """Those of one world."""


def seeded_run(private: Private, pair: Pair) -> SeededRun:
    """By the pass that `Private.run` takes on clipped examples; or, for users, by `Private.run` itself."""
    return RunOfUsers(private, pair) if isinstance(private.unit, User) else RunOfExamples(private, pair)


class RunOfExamples:
    """Runs of the pass on streams that were clipped once."""

    def __init__(self, private: Private, pair: Pair) -> None:
        self._way, self._opening, self._rounds = run_pass(private), initial_standing(private), private.timetable.rounds
        self._streams = [pair.clipped(private, world) for world in (0, 1)]

    def __call__(self, world: int, seed: int) -> Releases:
        return released(self._way, self._opening, *self._streams[world], self._rounds, seed)[1]


class RunOfUsers:
    """Runs of `Private.run` on raw rows and ids, in several calls."""

    def __init__(self, private: Private, pair: Pair) -> None:
        self._simulated = replace(private, seed=0)
        self._start = self._simulated.start()
        self._pair = pair
        self._worlds = [pair.world(world) for world in (0, 1)]

    def seeded(self, seed: int) -> Private:
        """The private learner on the noise of this seed; one object for all, since another would be calibrated anew."""
        self._simulated._loop.seed = seed
        return self._simulated

    def __call__(self, world: int, seed: int) -> Releases:
        return run_in_calls(self.seeded(seed), *self._worlds[world], self._pair.users, start=self._start)


_CALLS = 3


def run_in_calls(
    private: Private,
    X: Array,
    y: Array | None,
    users: Any,
    calls: int = _CALLS,
    *,
    reload: bool = False,
    start: State | None = None,
) -> Releases:
    """A stream of all these rows, in so many calls of `Private.run`; reloaded from bytes in between, if wanted.

    It begins at `start`, which only a simulation may use repeatedly, or is a new one.
    """
    state, shown = start or private.start(), []
    ends = np.linspace(0, len(X), calls + 1).astype(np.int64)
    for first, last in pairwise(map(int, ends)):
        part = slice(first, last)
        state, releases = private.run(state, X[part], None if y is None else y[part], users[part])
        state = private.load(state.to_bytes()) if reload else state
        shown.append(releases)
    return joined(shown)


def joined(shown: list[Releases]) -> Releases:
    """The releases of one stream, from those of its calls."""
    shown = [each for each in shown if len(each)]
    parts: Any = [[getattr(each, name) for each in shown] for name in ("rounds", "noisy", "points", "noise_sd")]
    rounds, noisy, points, noise_sd = (np.concatenate(part) for part in parts)
    return Releases(rounds, shown[0].first, noisy, points, noise_sd, shown[0].simulated)


def run_pass(private: Private) -> Pass:
    """The pass that `Private.run` uses; statistics that do not depend on noise are computed once for all trials."""
    from taciturn.kernel.learners.igd_pass import steps_of
    from taciturn.kernel.stream.batch_pass import BatchPass

    way = pass_for(private.learner, private.calibrated, private.compiled)
    if isinstance(way, BatchPass) and steps_of(private.learner) is None:
        return replace(way, statistics=_CachedStatistics(way.statistics))
    return way


@dataclass
class _CachedStatistics:
    """Statistics that depend on no released point, cached for the last examples."""

    statistics: Any
    _cached: tuple[Array | None, tuple[Arrays, Array]] = field(default=(None, ({}, np.empty(0))))

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Those of the learner."""
        if self._cached[0] is not X:
            self._cached = X, self.statistics(exact, t, X, y, rounds)
        return self._cached[1]

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """As the learner decides."""
        return np.asarray(self.statistics.decide(t, noisy, noise_sd))
