"""Compiled passes of iterate learners: their steps, alone or with independent Gaussian noise and projections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.learners.igd import IGD, FadingIGD
from taciturn.kernel.mechanisms.lattice import OnLattice
from taciturn.kernel.problem import codes
from taciturn.kernel.problem.clipping_pass import Clip
from taciturn.kernel.problem.codes import Code, loss_code, set_code
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets_pass import project_batch
from taciturn.kernel.stream.loop import Pass
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.release import Collected, Releases, no_releases
from taciturn.kernel.stream.state import Standing


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of an iterate learner as numbers: kind of step, loss, set, largest slope, centre of the ridge."""

    kind: Code
    loss: Code
    domain: Code
    steepest: float
    centre: Array

    def iterates(
        self, x: Array, t: int, X: Array, y: Array, rounds: Integers, total: Array | None = None, first: int = 0
    ) -> Array:
        """The iterates after these rounds, or their sums; changes `x`, and `total`, to those after all examples."""
        from taciturn.kernel.learners import igd_loops as igd

        problem = (self.kind, self.loss, self.domain, self.steepest)
        total = np.empty(0) if total is None else total
        return np.asarray(igd.iterates(*problem, self.centre, x, t, X, y, rounds, total, first))

    def release(self, x: Array, t: int, X: Array, y: Array, rounds: Integers, *noise: Any) -> int:
        """Writes noisy iterates of these rounds and the points of the set nearest to them: how many.

        Changes `x` to the iterate after all examples.
        """
        from taciturn.kernel.learners import igd_loops as igd

        problem = (self.kind, self.loss, self.domain, self.steepest)
        return int(igd.releases(*problem, self.centre, x, t, X, y, rounds, *noise))


def steps_of(learner: Learner) -> Steps | None:
    """The steps of a learner as numbers; None if the type of it, its problem, loss or set has no compiled form."""
    if type(learner.problem) is not Problem:
        return None
    if type(learner) not in STEPS:
        return None
    kind, problem = STEPS[type(learner)](learner)
    loss, domain = loss_code(problem.loss), set_code(problem.domain)
    if loss is None or loss[0] in (codes.SOFTMAX, codes.ONE_HOT) or domain is None:
        return None
    return Steps(kind, loss, domain, problem.lipschitz / problem.norm_bound, problem.first_point)


STEPS: dict[type, Callable[[Any], tuple[Code, Problem]]] = {
    IGD: lambda learner: ((codes.IMPLICIT, learner.problem.ridge, 0.0), learner.stepped),
    FadingIGD: lambda learner: ((codes.FADING, learner.strength, 0.0), learner.stepped),
}
"""Kind of step, and the problem whose steps are taken, of each iterate learner, by its exact type."""


@dataclass(frozen=True, eq=False)
class Iterates:
    """The iterates themselves. Slow twin: `absorb` of the learner."""

    learner: Any
    steps: Steps

    @staticmethod
    def of(learner: Any) -> Iterates | None:
        """If the learner's steps have a compiled form."""
        return None if (steps := steps_of(learner)) is None else Iterates(learner, steps)

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        x = exact["x"].copy()
        return {"x": x}, self.steps.iterates(x, t, X, y, rounds)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The points of the set nearest to the noisy iterates."""
        return project_batch(self.learner.problem.domain, noisy)


@dataclass(frozen=True, eq=False)
class IteratePass(Pass):
    """Steps, independent Gaussian noise and projections in one loop."""

    steps: Steps
    calibrated: OnLattice
    forgets: ClassVar[bool] = True
    compressed: ClassVar[bool] = False

    def __call__(
        self, at: Standing, X: Array, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        t, k, exact, secret, public, point = at
        x = exact["x"].copy()
        count = len(rounds)
        if not count:
            self.steps.iterates(x, t, X, y, rounds)
            return Standing(t + len(y), k, {"x": x}, secret, public, point)
        noise = self.calibrated.noise(seed, k + 1, count)
        noisy, points, noise_sd = shown.room(count, len(x), len(x))
        noise_sd[:], step = self.calibrated.levels_of(k + 1, count)
        written = self.steps.release(x, t, X, y, rounds, step, self.calibrated.magnitude, noise, noisy, points)
        shown.written(written)
        return Standing(t + len(y), k + count, {"x": x}, secret, public, points[-1].copy())

    def one_row(self, clip: Clip) -> OneIterate:
        """The same for a block of one example."""
        return OneIterate(self.steps, self.calibrated, clip)


@dataclass(frozen=True, eq=False)
class OneIterate:
    """One example through an iterate learner: clipping, a step, noise and a projection. Slow twin: `IteratePass`."""

    steps: Steps
    calibrated: OnLattice
    clip: Clip

    def __call__(
        self, at: Standing, X: Array, y: Array, due: bool, seed: int | None
    ) -> tuple[Standing, Releases] | None:
        t, k, exact, secret, public, point = at
        x = exact["x"].copy()
        row = X if X.flags.carray else np.array(X, order="C")  # as compiled code knows it
        clip_and_step, clip_and_release, numbers = self._compiled
        if not due:
            if not clip_and_step(numbers, x, t, row, y):
                return None
            return Standing(t + 1, k, {"x": x}, secret, public, point), no_releases(k + 1, seed is not None)
        noise = self.calibrated.noise(seed, k + 1, 1)
        noise_sd, step = self.calibrated.levels_of(k + 1, 1)
        shape = 1, len(x)
        noisy, points, rounds = np.empty(shape), np.empty(shape), np.array([t + 1])
        if not clip_and_release(numbers, x, row, y, rounds, step, noise, noisy, points):
            return None
        releases = Releases(rounds, k + 1, noisy, points, noise_sd, seed is not None)
        return Standing(t + 1, k + 1, {"x": x}, secret, public, points[0]), releases

    @cached_property
    def _compiled(self) -> tuple[Any, Any, Array]:
        """The two compiled functions, and what is the same for all examples."""
        from taciturn.kernel.learners import igd_loops as igd

        steps = self.steps
        codes = *steps.kind, *steps.loss, *steps.domain
        numbers = [*self.clip.numbers, self.calibrated.magnitude, *codes, steps.steepest, *steps.centre]
        return igd.clip_and_step, igd.clip_and_release, fixed(np.array(numbers))
