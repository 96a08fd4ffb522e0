"""Private FTRL through a strategy, compiled: gradients at released points, so release after release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.learners.exact_sums import lattice_of
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.mechanisms import prefix_sum
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder
from taciturn.kernel.mechanisms.blt_pass import ERRORS_IN_BLOCK, Cut, encoder_of, errors_of_block
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, exchanged
from taciturn.kernel.mechanisms.prefix_sum_pass import KINDS, noise_sds
from taciturn.kernel.problem.clipping_pass import Clip
from taciturn.kernel.problem.codes import Leader, set_code, slope_code
from taciturn.kernel.problem.inputs import Rows, as_parts
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.loop import Pass
from taciturn.kernel.stream.protocols import Calibrated
from taciturn.kernel.stream.release import Collected, Releases, no_releases
from taciturn.kernel.stream.state import Standing


def leader_of(learner: FTRL) -> Leader | None:
    """Private FTRL as numbers; None if the type of it, its problem, loss or set has no compiled form."""
    p = learner.problem
    if type(learner) is not FTRL or type(p) is not Problem or learner.center is not None:
        return None
    loss, domain = slope_code(p.loss), set_code(p.domain)
    if loss is None or domain is None:
        return None
    most = learner.magnitude
    return loss, domain, p.lipschitz / p.norm_bound, most, lattice_of(most), learner.curvature


@dataclass(frozen=True, eq=False)
class Gradients(Pass):
    """Gradients of private FTRL at one released point, added up."""

    leader: Leader
    forgets: ClassVar[bool] = True
    compressed: ClassVar[bool] = True

    def __call__(
        self, at: Standing, X: Rows, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        from taciturn.kernel.learners import ftrl_loops as ftrl

        total = at.exact["sum"].copy()
        ftrl.gradients(self.leader, at.point.copy(), total, as_parts(X), y)
        return at._replace(t=at.t + len(y), exact={"sum": total})


@dataclass(frozen=True, eq=False)
class FTRLPass(Pass):
    """Private FTRL inside a strategy's loop: gradients at released points, so release after release."""

    learner: FTRL
    calibrated: prefix_sum.NoisySums
    leader: Leader
    through: Callable[[Block, Arrays, Arrays, int, Cut], tuple[Arrays, Arrays]]
    forgets: ClassVar[bool] = True
    compressed: ClassVar[bool] = True

    @staticmethod
    def of(learner: FTRL, calibrated: Calibrated) -> FTRLPass | None:
        """For exact types, if loss and set have compiled forms."""
        if not isinstance(calibrated, prefix_sum.NoisySums):
            return None
        through, leader = THROUGH.get(type(calibrated.coder)), leader_of(learner)
        if leader is None or through is None or type(calibrated) not in KINDS:
            return None
        return FTRLPass(learner, calibrated, leader, partial(through, calibrated.coder))

    def __call__(
        self, at: Standing, X: Rows, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        from taciturn.kernel.learners import ftrl_loops as ftrl

        total, point = at.exact["sum"].copy(), at.point.copy()
        t = at.t
        rest = 0
        if len(rounds):
            rest = int(rounds[-1]) - t
            at = self._through(at, self.leader, point, total, X[:rest], y[:rest], rounds, seed, shown)
        if rest < len(y):
            ftrl.gradients(self.leader, point, total, as_parts(X[rest:]), y[rest:])
        return at._replace(t=t + len(y), exact={"sum": total}, point=point)

    def release(
        self, at: Standing, statistics: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """The same for sums that are known already: an example of zeros, which adds nothing, comes after each."""
        problem = self.learner.problem
        nothing = np.zeros((1, problem.width)), np.array([1.0 if problem.loss.labels == "sign" else 0.0])
        leader: Leader = (*self.leader[:5], 0.0)  # the public part of contributions is in the sums
        for row, due in zip(statistics, rounds, strict=True):
            point = at.point.copy()
            before = at._replace(t=int(due) - 1)
            at = self._through(before, leader, point, row.copy(), *nothing, np.array([due]), seed, shown)
            at = at._replace(t=int(due), point=point)
        return at

    def _through(
        self,
        at: Standing,
        leader: Leader,
        point: Array,
        total: Array,
        X: Rows,
        y: Array,
        rounds: Integers,
        seed: int | None,
        shown: Collected,
    ) -> Standing:
        """The examples up to the last of these rounds, one or more; changes `point` and `total`."""
        calibrated, k, count = self.calibrated, at.k, len(rounds)
        largest, steps = calibrated.largest_of(k + 1, count), calibrated.steps(k + 1, count)
        cut = Cut(calibrated.noise_rows(seed, k + 1, count), steps, largest)
        noisy, points, sd = shown.room(count, len(total), len(point))
        sd[:] = noise_sds(calibrated, k + 1, count)
        block = Block(leader, point, total, at.t, X, y, rounds, self._strides(k, rounds, sd), noisy, points)
        secret, public = self.through(block, at.secret, at.public, k + 1, cut)
        shown.written(count)
        return at._replace(k=k + count, secret=secret, public=public)

    def stride(self, k: int, due: int, sd: float) -> float:
        """The same for release k, as a number."""
        return float(self.learner.stride(float(self.calibrated.examples_of(k, due)), sd))

    def one_row(self, clip: Clip) -> OneGradient | None:
        """The same for a block of one example, through a BLT."""
        return OneGradient(self, clip) if type(self.calibrated.coder) is BLTCoder else None

    def _strides(self, k: int, rounds: Integers, sd: Array) -> Array:
        """What the sums of the releases after the k-th are divided by; of one release by numbers, which is faster."""
        if len(rounds) == 1:
            return np.array([self.stride(k + 1, int(rounds[0]), float(sd[0]))])
        stand_for = self.calibrated.examples_of(np.arange(k + 1, k + len(rounds) + 1), rounds)
        return np.asarray(self.learner.stride(stand_for, sd))


@dataclass(frozen=True, eq=False)
class OneGradient:
    """One example through private FTRL with a BLT: clipping, gradient, noisy sum, point. Slow twin: `FTRLPass`."""

    way: FTRLPass
    clip: Clip

    def __call__(
        self, at: Standing, X: Array, y: Array, due: bool, seed: int | None
    ) -> tuple[Standing, Releases] | None:
        t, k, exact, secret, public, point = at
        total, point = exact["sum"].copy(), point.copy()
        row = X if X.flags.carray else np.array(X, order="C")  # as compiled code knows it
        clip_and_add, clip_and_release, numbers, strategy = self._compiled
        if not due:
            if not clip_and_add(numbers, point, total, row, y):
                return None
            return Standing(t + 1, k, {"sum": total}, secret, public, point), no_releases(k + 1, seed is not None)
        calibrated = self.way.calibrated
        noise = calibrated.noise_rows(seed, k + 1, 1)
        step, largest = calibrated.step(k + 1), calibrated.largest_at(k + 1)
        noise_sd = calibrated.sd * self._errors(k // ERRORS_IN_BLOCK)[k % ERRORS_IN_BLOCK :][:1]
        stride = self.way.stride(k + 1, t + 1, noise_sd.item())
        rounds = np.array([t + 1])
        noisy, points = np.empty((1, len(total))), np.empty((1, len(point)))
        encoder, decoder, running = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
        cut, sides = (noise, step, largest), (strategy, encoder, decoder, running)
        if not clip_and_release(numbers, point, total, row, y, rounds, stride, noisy, points, *cut, *sides):
            return None
        releases = Releases(rounds, k + 1, noisy, points, noise_sd, seed is not None)
        memories = {"buffers": encoder}, {"buffers": decoder, "sum": running}
        return Standing(t + 1, k + 1, {"sum": total}, *memories, point), releases

    @cached_property
    def _errors(self) -> Callable[[int], Array]:
        """Blocks of `blt_errors`; the last is cached here, as it takes longer to find it by its strategy."""
        coder: Any = self.way.calibrated.coder
        return lru_cache(maxsize=1)(partial(errors_of_block, coder))

    @cached_property
    def _compiled(self) -> tuple[Any, Any, Array, Array]:
        """The two compiled functions, and what is the same for all examples."""
        from taciturn.kernel.learners import ftrl_loops as ftrl

        loss, domain, *rest = self.way.leader
        coder: Any = self.way.calibrated.coder
        numbers = np.array([*self.clip.numbers, *loss, *domain, *rest, self.clip.problem.width])
        return ftrl.clip_and_add, ftrl.clip_and_release, numbers, fixed(np.array(coder.arrays))


class Block(NamedTuple):
    """A regularised leader, the examples it learns from, and places for its releases.

    `point` and `total` are changed to the last ones.
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
        return *self[:4], as_parts(self.X), *self[5:]

    def check(self, written: int) -> None:
        """Raise an error if not all releases were written: their places would show old contents of memory."""
        if written != len(self.rounds):
            raise RuntimeError(f"{written} of {len(self.rounds)} releases were made: a pass of taciturn is wrong.")

    def cut(self, start: int, end: int) -> Block:
        """Releases `start` to `end` of it, and the examples up to the last of them."""
        first = int(self.rounds[start - 1]) - self.t if start else 0
        last = int(self.rounds[end - 1]) - self.t
        learner = self.leader, self.point, self.total
        examples = self.t + first, self.X[first:last], self.y[first:last]
        rounds, strides = self.rounds[start:end], self.strides[start:end]
        return Block(*learner, *examples, rounds, strides, self.noisy[start:end], self.points[start:end])


Through = Callable[[Any, Block, Arrays, Arrays, int, Cut], tuple[Arrays, Arrays]]
"""Writes a block's noisy sums and points through a strategy, from row k on, and returns its new memories."""


def _through_blt(
    coder: BLTCoder, block: Block, secret: Arrays, public: Arrays, k: int, cut: Cut
) -> tuple[Arrays, Arrays]:
    from taciturn.kernel.learners import ftrl_loops as ftrl

    th, ph, om, inverse = coder.arrays
    encoder, decoder = secret["buffers"].copy(), public["buffers"].copy()
    running = public["sum"].copy()
    sides = (th, om, encoder), (ph, inverse, decoder)
    block.check(ftrl.through_blt(*block.numbers, *cut, *sides, running, 1.0))
    return {"buffers": encoder}, {"buffers": decoder, "sum": running}


def _through_restarted(
    coder: RestartedCoder, block: Block, secret: Arrays, public: Arrays, k: int, cut: Cut
) -> tuple[Arrays, Arrays]:
    """Block by block of the strategy."""
    for start, end, _, place in coder.stretches(k, len(block.rounds)):
        secret, public = coder.opened(secret, public, place)
        inside = Cut(cut.noise[start:end], cut.steps[start:end], cut.largest[start:end])
        secret, public = _through_blt(coder.inner, block.cut(start, end), secret, public, place, inside)
    return secret, public


def _through_decayed(
    coder: DecayedCoder, block: Block, secret: Arrays, public: Arrays, k: int, cut: Cut
) -> tuple[Arrays, Arrays]:
    """Stretch by stretch, with two sets of buffers where both are kept."""
    from taciturn.kernel.learners.ftrl_loops import through_blt

    _, ph, _, inverse = coder.arrays
    encoder, decoder = secret["buffers"].copy(), public["buffers"].copy()
    running = public["sum"].copy()
    for start, end, both, full in coder.stretches(k, len(block.rounds)):
        part_of, at = block.cut(start, end), slice(start, end)
        sides = encoder_of(coder, encoder, both), (ph, inverse, decoder)
        inside = cut.noise[at], cut.steps[at], cut.largest[at]
        part_of.check(through_blt(*part_of.numbers, *inside, *sides, running, coder.decay))
        if full:
            encoder = exchanged(encoder)
    return {"buffers": encoder}, {"buffers": decoder, "sum": running}


THROUGH: dict[type, Through] = {
    BLTCoder: _through_blt,
    RestartedCoder: _through_restarted,
    DecayedCoder: _through_decayed,
}
"""The fused loop of private FTRL with each strategy, by its exact type."""
