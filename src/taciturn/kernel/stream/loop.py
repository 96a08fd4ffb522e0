"""The loop from examples to releases.

Exact statistics and noise meet in `taciturn.kernel.stream.privatize`, and in the loops of compiled passes, and nowhere
else.

`Loop` cuts the examples of a call into blocks, maps and clips each block and passes it on. `Definition` is the pass
that every other one is compared with: one release at a time, by the methods of the two protocols.
`taciturn.kernel.stream.passes` has a table from exact types to compiled passes; a type that is not in it, a subclass
included, runs the definition. All passes draw the noise of a block before they read its examples, and release the same,
up to rounding errors, for which certificates account.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.errors import InvalidInput, StateConflict, integer
from taciturn.kernel.learners.contributions import entry
from taciturn.kernel.problem.inputs import FLOAT, CompressedRows, Rows, Source, SparseRows, compressed
from taciturn.kernel.problem.predict import as_point
from taciturn.kernel.secret import Secret, opened
from taciturn.kernel.stream.block_sums import TWICE, BlockSums, Digest, as_sum, check_part, settings_of
from taciturn.kernel.stream.privatize import privatize
from taciturn.kernel.stream.protocols import Calibrated, Learner, SumLearner
from taciturn.kernel.stream.release import Collected, Releases
from taciturn.kernel.stream.schedule import At, Timetable
from taciturn.kernel.stream.state import Standing

DENSE_ONLY = (
    "a learner of iterates steps through all columns of a row, so sparse rows would take as long as dense ones. Use "
    "private FTRL (method='ftrl', pftrl), which learns sparse rows as they are, or pass X.toarray()."
)

_VALUES = 2**19  # entries of examples, or of noisy statistics and points, in one block


class Releasing(Protocol):
    """A way from statistics to releases."""

    def release(
        self, at: Standing, statistics: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """Add the releases of these rounds, one or more, to `shown`; the exact state is left as it is."""


class Pass(Protocol):
    """A way through a block of clipped examples."""

    def one_row(self, clip: Any) -> OneRow | None:
        """The same for a block of one example, if there is a compiled call for it that also clips."""
        return None

    @property
    def forgets(self) -> bool:
        """Whether it stores no reference to a block's examples, so that the next block may reuse their memory."""

    @property
    def compressed(self) -> bool:
        """Whether it takes compressed rows; other passes get dense ones."""

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """Learn from the clipped examples that follow `at`, and add the releases of these rounds to `shown`.

        `seed` makes the noise repeatable; None draws secret noise.
        """


class OneRow(Protocol):
    """A pass through a block of one example, clipped in the same compiled call: what `Loop` does, in less time."""

    def __call__(
        self, at: Standing, X: Array, y: Array, due: bool, seed: int | None
    ) -> tuple[Standing, Releases] | None:
        """Where a stream stands after the example, and its release, if one is `due`; None if the row is rejected.

        To the last bit those of the pass, so that how a stream is cut into calls changes nothing. `X` and `y` are not
        clipped yet, of float64, and of the problem's shape.
        """


@dataclass(frozen=True)
class Definition(Pass):
    """The reference pass: one release at a time, by the methods of the learner and the calibrated mechanism."""

    learner: Learner
    calibrated: Calibrated
    forgets: ClassVar[bool] = False  # a user's learner may store a reference
    compressed: ClassVar[bool] = False

    def __call__(
        self, at: Standing, X: Array, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        learner, calibrated = self.learner, self.calibrated
        noise = iter(calibrated.noise(seed, at.k + 1, len(rounds)) if len(rounds) else ())
        t, k, exact, secret, public, point = at
        start = 0
        for end in (int(due) - t for due in rounds):
            k += 1
            drawn = next(noise)
            exact = learner.absorb(exact, t + start, X[start:end], y[start:end], point)
            exact, statistic = learner.statistic(exact, t + end)
            secret, public, noisy, sd = privatize(calibrated, secret, public, statistic, k, drawn)
            point = np.array(learner.decide(calibrated.examples_of(k, t + end), noisy, sd), dtype=np.float64)
            shown.add(noisy[None, :], point[None, :], np.array([sd]))
            start = end
        if start < len(y):
            exact = learner.absorb(exact, t + start, X[start:], y[start:], point)
        return Standing(t + len(y), k, exact, secret, public, point)

    def release(
        self, at: Standing, statistics: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """The same for statistics that are known already."""
        learner, calibrated = self.learner, self.calibrated
        noise = calibrated.noise(seed, at.k + 1, len(rounds))
        _, k, exact, secret, public, point = at
        for due, statistic, drawn in zip(rounds, statistics, noise, strict=True):
            k += 1
            secret, public, noisy, sd = privatize(calibrated, secret, public, statistic, k, drawn)
            point = np.array(learner.decide(calibrated.examples_of(k, int(due)), noisy, sd), dtype=np.float64)
            shown.add(noisy[None, :], point[None, :], np.array([sd]))
        return Standing(int(rounds[-1]), k, exact, secret, public, point)


class Loop:
    """From examples to releases, block by block: the pass, the clipping and the sizes of blocks, chosen once.

    >>> from taciturn import L2Ball, Logistic, Privacy, Problem, pigd
    >>> problem = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
    >>> private = pigd(problem, Privacy(1.0, 1e-6), horizon=3, seed=1)
    >>> from taciturn.kernel.stream.state import standing_of
    >>> loop = Loop(Definition(private.learner, private.calibrated), private.learner, private.timetable, seed=1)
    >>> at, releases = loop(standing_of(private.start()), np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([1.0, -1.0]))
    >>> at.t, len(releases)
    (2, 2)
    """

    def __init__(
        self, way: Pass, learner: Learner, timetable: Timetable, seed: int | None, compiled: bool = True
    ) -> None:
        self.problem = learner.problem
        self.timetable = timetable
        self.seed = seed
        self.way = way
        self.clip = fast_clip(learner.problem, compiled)
        self._width = learner.problem.width
        self._most_rows = max(1, _VALUES // max(self._width, learner.problem.dimension))
        self._most_entries = max(_VALUES, 4 * self._width)  # so that a pass over a point once a block costs little
        self._most_releases = releases_in_block(learner)
        self._may_stay_sparse = self.clip is not None and learner.problem.features is None
        self._must_be_dense = learner.certificate.reach == "tail" and learner.problem.features is None
        self._one_row = one_row_for(way, learner.problem, self.clip)
        self._shape_of_one = (1, learner.problem.dimension)

    def __call__(
        self, at: Standing, X: Source, y: Array, excluded: NDArray[np.bool_] | None = None, first: int = 0
    ) -> tuple[Standing, Releases]:
        """Where a stream stands after these examples, and its releases; nothing is committed here.

        Rows in the mask `excluded` keep their rounds, and have no influence. `first` is the number of the first row in
        errors.
        """
        if (
            X.shape == self._shape_of_one
            and self._one_row is not None
            and excluded is None
            and type(X) is np.ndarray
            and X.dtype is y.dtype is FLOAT
        ):
            due = self.timetable.due(at.k + 1) == at.t + 1
            if (made := self._one_row(at, X, y, due, self.seed)) is not None:
                return made
        if self._must_be_dense and isinstance(X, SparseRows):
            raise InvalidInput(DENSE_ONLY)
        way, clip = self.way, self.clip
        before = at.t
        last = before + len(y)
        shown = Collected(self.timetable.following(at.k, last), at.k + 1)
        rows = compressed(X) if isinstance(X, SparseRows) and self._may_stay_sparse and way.compressed else None
        memory = np.empty((min(len(y), self._most_rows), self._width)) if way.forgets and rows is None else None
        clipped: tuple[Rows, Array]
        while at.t < last:
            start = at.t - before
            rounds = shown.rounds[shown.done : shown.done + self._most_releases]
            end = int(rounds[-1]) - before if len(rounds) == self._most_releases else len(y)
            if rows is not None:
                assert clip is not None
                end = min(end, rows.end_of_block(start, self._most_entries))
                clipped = clip.sparse(rows[start:end], y[start:end], first + start)
            else:
                end = min(end, start + self._most_rows)
                if clip is None:
                    clipped = self.problem.clip_block(X[start:end], y[start:end], first + start)
                else:
                    clipped = clip.dense(X[start:end], y[start:end], first + start, memory)
            if excluded is not None and (without := excluded[start:end]).any():
                clipped = without_influence(*clipped, without, self.problem.loss.labels)
            if end < len(y):
                rounds = rounds[rounds <= before + end]
            at = way(at, *clipped, rounds, self.seed, shown)
        return at, shown.releases(self.seed is not None)


class SumLoop:
    """From sums of integers to releases, where others have clipped, rounded and added up the examples.

    The sums of a block are added as integers, in the order in which they come, which does not matter; statistic, noise
    and decision are those of `Loop`, by the same pass.

    >>> from taciturn import Privacy, block_statistics, every, private_sum
    >>> private = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=4, schedule=every(2), seed=1)
    >>> from taciturn.kernel.stream.state import standing_of
    >>> loop = SumLoop(Definition(private.learner, private.calibrated), private.learner, private.timetable, seed=1)
    >>> parts = [block_statistics(private.learner, None, [[0.5]]) for _ in range(3)]
    >>> at, releases = loop(standing_of(private.start()), parts)
    >>> at.t, releases.rounds
    (3, array([2]))
    """

    def __init__(self, way: Releasing, learner: SumLearner, timetable: Timetable, seed: int | None) -> None:
        self.way = way
        self.learner = learner
        self.timetable = timetable
        self.seed = seed
        self._most_releases = 1 if learner.uses_point else releases_in_block(learner)

    def __call__(self, at: Standing, parts: Sequence[BlockSums]) -> tuple[Standing, Releases]:
        """Where a stream stands after these sums, and its releases; nothing is committed here."""
        learner = self.learner
        most = learner.certificate.most
        shown = Collected(self.timetable.following(at.k, at.t + sum(part.count for part in parts)), at.k + 1)
        t, began = at.t, self.timetable.due(at.k) or 0 if at.k else 0
        total = learner.to_integers(at.exact)
        complete: list[Array] = []
        expected = settings_of(learner, at.point)
        digests: set[bytes] = set()
        for part in parts:
            check_part(part, learner, expected)
            if part.digest in digests:
                raise StateConflict(TWICE)
            digests.update([part.digest] if part.digest else [])
            due = None if shown.done + len(complete) >= len(shown.rounds) else shown.rounds[shown.done + len(complete)]
            t += part.count
            if due is not None and t > due:
                raise InvalidInput(
                    f"the sums of a block end at its release, after round {due}, and these go on to round {t}. Cut the "
                    "rows at every released round, and add up each block by itself."
                )
            if most is not None and t - began > most:
                raise InvalidInput(f"sums are exact for up to {most:,} examples between two releases. Publish earlier.")
            total = total + opened(part.sums)
            if t == due:
                exact, statistic = learner.statistic(learner.from_integers(total), t)
                total, began = learner.to_integers(exact), t
                complete.append(statistic)
                if len(complete) == self._most_releases:
                    at = self._released(at, complete, shown)
                    complete = []
                    expected = settings_of(learner, at.point) if learner.uses_point else expected
        at = self._released(at, complete, shown)
        return at._replace(t=t, exact=learner.from_integers(total)), shown.releases(self.seed is not None)

    def _released(self, at: Standing, statistics: list[Array], shown: Collected) -> Standing:
        if not statistics:
            return at
        rounds = shown.rounds[shown.done : shown.done + len(statistics)]
        return self.way.release(at, np.array(statistics), rounds, self.seed, shown)


def block_statistics(
    learner: Learner,
    point: Any,
    X: Any,
    y: Any = None,
    *,
    excluded: Any = None,
    key: bytes | None = None,
    first: int = 0,
    compiled: bool = True,
) -> BlockSums:
    """Exact integer sums of the clipped examples of one block, or of a part of it, for `Private.run_sums`. Secret.

    **Claim.** Added up over the parts of a block, in any order, they are the integers that `Private.run` would have
    computed from the rows. *Proof.* Every example is clipped, and for FTRL differentiated at `point`, by itself, by the
    code that `run` uses. Its contribution is rounded to integers, multiples of a public unit, of which up to 2²⁶ are
    added without an error, in float64 or in 64-bit integers (`taciturn.kernel.learners.exact_sums`). Addition of
    integers is associative and commutative. ∎ So neighbouring streams differ in one contribution of one block, as they
    do in `run`, and the certificate of the learner holds as it is. (A feature map that mixes columns by a product of
    matrices, such as `RandomFeatures`, may round a row's image differently in blocks of another length: then releases
    may differ in a lattice step, as they do if `run` is called with other blocks. Lengths are public, and the
    certificate holds.)

    Parameters
    ----------
    learner : QFTL, FTRL, ClassSums or VectorSum
        The learner of the stream: `Private.learner_at` has it.
    point : ndarray or None
        The point released last, `state.point`; used by FTRL alone.
    X, y
        Examples of one block, as in `Private.run`.
    excluded : bytes or ndarray of bool, optional
        Rows that have a round and no influence, if the unit is a user: `to_bytes` of what `Private.admit` decided.
    key : bytes, optional
        Secret key of the digest, by which a part that is given twice in one call is noticed. Without it, there is none.
    first : int
        Number of rows before these, in errors and in the digest.
    compiled : bool
        As in `Private`.

    Examples
    --------
    >>> from taciturn import L2Ball, Privacy, Problem, Squared, block_statistics, every, pqftl
    >>> problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0)
    >>> private = pqftl(problem, Privacy(1.0, 1e-6), horizon=4, schedule=every(4), seed=1)
    >>> X, y = np.eye(2)[[0, 1, 0, 1]], np.ones(4)
    >>> parts = [block_statistics(private.learner, None, X[i : i + 2], y[i : i + 2]) for i in (2, 0)]
    >>> _, from_sums = private.run_sums(private.start(), parts)
    >>> _, from_rows = private.run(private.start(), X, y)
    >>> bool((from_sums.points == from_rows.points).all())
    True
    """
    return BlockAdder(learner, point, compiled)(X, y, excluded=excluded, key=key, first=first)


class BlockAdder:
    """`block_statistics` of one learner and point, for many parts: what depends on these alone is computed once.

    >>> from taciturn import Privacy, private_sum
    >>> adder = BlockAdder(private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=10).learner, None)
    >>> adder([[0.5]]).count, adder([[0.5], [0.25]]).count
    (1, 2)
    """

    def __init__(self, learner: Learner, point: Any, compiled: bool = True) -> None:
        learner = entry(learner)
        self.learner = as_sum(learner)
        self.compiled = compiled
        self._point = learner.problem.first_point
        if learner.uses_point:
            if point is None:
                name = type(learner).__name__
                raise InvalidInput(f"{name} takes gradients at the point released last. Give point=state.point.")
            self._point = as_point(point, learner.problem.size)
        self._way = pass_for_sums(learner, compiled)
        self._settings = settings_of(learner, self._point)

    def __call__(
        self, X: Any, y: Any = None, *, excluded: Any = None, key: bytes | None = None, first: int = 0
    ) -> BlockSums:
        """The sums of these examples."""
        learner = self.learner
        rows, labels = learner.problem.read(X, y)
        most = learner.certificate.most
        if most is not None and len(labels) > most:
            raise InvalidInput(f"sums are exact for up to {most:,} examples, got {len(labels):,}. Give parts of them.")
        if isinstance(excluded, bytes):
            excluded = np.frombuffer(excluded, dtype=np.uint8)
        mask = None if excluded is None else np.asarray(excluded, dtype=np.bool_)
        if mask is not None and mask.shape != labels.shape:
            raise InvalidInput(f"excluded= marks rows: expected {len(labels)} booleans, got shape {mask.shape}.")
        first = integer("first", first, least=0)
        digest = None if key is None else Digest(key, first)
        way = self._way if digest is None else Hashed(self._way, digest)
        loop = Loop(way, learner, _NO_RELEASES, None, self.compiled)
        at, _ = loop(Standing(0, 0, learner.start(), {}, {}, self._point), rows, labels, mask, first)
        sums = learner.to_integers(at.exact)
        left_out = 0 if mask is None else int(mask.sum())
        return BlockSums(len(labels), Secret(sums), self._settings, Secret(left_out), digest.value if digest else b"")


_NO_RELEASES = Timetable(At((2**62,)), None)


@dataclass(frozen=True)
class Hashed(Pass):
    """A pass whose clipped examples also enter a digest."""

    way: Pass
    digest: Digest

    @property
    def forgets(self) -> bool:
        return self.way.forgets

    @property
    def compressed(self) -> bool:
        return self.way.compressed

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        self.digest.add(X, y)
        return self.way(at, X, y, rounds, seed, shown)


def without_influence(V: Rows, y: Array, excluded: NDArray[np.bool_], labels: str) -> tuple[Rows, Array]:
    """Clipped examples with these rows as bad rows are: zero, the intercept included, and of a label that is public.

    >>> without_influence(np.array([[0.6, 1.0], [0.8, 1.0]]), np.array([-1.0, -1.0]), np.array([True, False]), "sign")
    (array([[0. , 0. ],
           [0.8, 1. ]]), array([ 1., -1.]))
    """
    y = np.where(excluded, 1.0 if labels == "sign" else 0.0, y)
    if not isinstance(V, CompressedRows):
        V = np.array(V)  # a copy: rows that need no clipping may be a caller's own
        V[excluded] = 0.0
        return V, y
    starts, columns, entries = V.numbers()
    lengths = np.diff(starts)
    kept = np.repeat(~excluded, lengths)
    starts = np.append(0, np.cumsum(np.where(excluded, 0, lengths)))
    return CompressedRows(starts, columns[kept], entries[kept], V.width), y


def releases_in_block(learner: Learner) -> int:
    """The most releases of one block: as many as keep its noisy statistics and points small."""
    return max(1, _VALUES // (2 * learner.statistic_size))


def pass_for(learner: Learner, calibrated: Calibrated, compiled: bool) -> Pass:
    """The compiled pass for these exact types, or the definition."""
    if compiled:
        from taciturn.kernel.stream import passes

        if (fast := passes.find(learner, calibrated)) is not None:
            return fast
    return Definition(learner, calibrated)


def pass_for_sums(learner: Learner, compiled: bool) -> Pass:
    """The pass that adds up examples and releases nothing: compiled for these exact types, or the definition."""
    if compiled:
        from taciturn.kernel.stream import passes

        if (fast := passes.adding(learner)) is not None:
            return fast
    nothing: Any = None  # no noise is drawn
    return Definition(learner, nothing)


def one_row_for(way: Pass, problem: Any, clip: Any) -> OneRow | None:
    """The compiled call for one example of this pass, if it has one and rows are clipped as they come."""
    return None if clip is None or problem.features is not None else way.one_row(clip)


def has_known_arrays(learner: Learner, calibrated: Calibrated) -> bool:
    """Whether their arrays have the shapes of those at the start, as those of classes of one's own need not."""
    from taciturn.kernel.stream import passes

    return passes.has_known_arrays(learner, calibrated)


def fast_clip(problem: Any, compiled: bool) -> Any:
    """The compiled clipping for this exact type of problem, or None."""
    if not compiled:
        return None
    from taciturn.kernel.problem.clipping_pass import clip_for

    return clip_for(problem)


def statistics(
    learner: Learner, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers, points: Array | None = None
) -> tuple[Arrays, Array]:
    """The exact state after all clipped examples and the statistics of these rounds, by the learner's own methods.

    A learner that uses released points takes the `points` of these rounds.
    """
    rows = np.empty((len(rounds), learner.statistic_size))
    start, point = 0, learner.first_point
    for k, end in enumerate(int(due) - t for due in rounds):
        exact = learner.absorb(exact, t + start, X[start:end], y[start:end], point)
        exact, rows[k] = learner.statistic(exact, t + end)
        start, point = end, point if points is None else points[k]
    if start < len(y):
        exact = learner.absorb(exact, t + start, X[start:], y[start:], point)
    return exact, rows
