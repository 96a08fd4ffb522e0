"""Which compiled pass serves which types: the tables, and the glue between definitions and compiled loops.

A table has *exact* types as keys, so a subclass, whose methods may do something else, runs the definition
(`taciturn.kernel.stream.loop.Definition`). There are three kinds of fast paths:

* `STATISTICS`: a learner that does not use released points computes the statistics of many rounds at once;
* `NOISE`: a calibrated mechanism adds noise to the statistics of many releases at once;
* fused passes, from examples to points in one loop: iterate learners under independent Gaussian noise, and private
  FTRL, whose gradients are taken at released points, through a prefix-sum strategy.

All of them release what the definition releases under the same noise, up to rounding errors and a lattice step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers, fixed
from taciturn.kernel.compiled import codes
from taciturn.kernel.compiled.codes import Code, Leader, loss_code, set_code, slope_code
from taciturn.kernel.learners.class_sums import CLEAR, ClassSums
from taciturn.kernel.learners.exact_sums import in_units, lattice_of, rounded, unit_of
from taciturn.kernel.learners.ftrl import FTRL
from taciturn.kernel.learners.igd import IGD, FadingIGD
from taciturn.kernel.learners.linear_bandit import LinearBandit
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.mechanisms import gaussian, prefix_sum
from taciturn.kernel.mechanisms.blt import BLTCoder, RestartedCoder, coefficients, prefix_squares
from taciturn.kernel.mechanisms.decayed_blt import DecayedCoder, Lasting, exchanged
from taciturn.kernel.mechanisms.lattice import OnLattice
from taciturn.kernel.mechanisms.sqrt import RootCoder
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.problem.clipping import longest_row
from taciturn.kernel.problem.inputs import CompressedRows, Rows
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.problem.sets import ConvexSet
from taciturn.kernel.stream.loop import Pass
from taciturn.kernel.stream.loop import statistics as statistics_by_definition
from taciturn.kernel.stream.protocols import Calibrated, Learner
from taciturn.kernel.stream.release import Collected, Releases, no_releases
from taciturn.kernel.stream.state import Standing
from taciturn.methods import exponential
from taciturn.methods.averaged import Averaged
from taciturn.methods.ewoo import EWOO
from taciturn.methods.ftl import FTL
from taciturn.methods.giga import GIGA

# ---- which pass --------------------------------------------------------------------------------------------------


def find(learner: Learner, calibrated: Calibrated) -> Pass | None:
    """The compiled pass for this learner and this calibrated mechanism, or None if there is none.

    >>> from taciturn import Hinge, L2Ball, Privacy, Problem, pftrl
    >>> private = pftrl(Problem(Hinge(), L2Ball(1.0), dimension=2), Privacy(1.0, 1e-6), horizon=100)
    >>> type(find(private.learner, private.calibrated)).__name__
    'FTRLPass'
    """
    if isinstance(learner, FTRL):
        return FTRLPass.of(learner, calibrated)
    fast, noise = statistics_of(learner), noise_of(calibrated)
    if fast is None or noise is None:
        return None
    if isinstance(fast, Iterates) and isinstance(calibrated, OnLattice):
        return IteratePass(fast.steps, calibrated)
    return BatchPass(fast, noise, compressed=isinstance(fast, SumsByClass))


def adding(learner: Learner) -> Pass | None:
    """The compiled pass that adds up the examples of a learner of sums, and releases nothing; None if there is none."""
    if isinstance(learner, FTRL):
        leader = leader_of(learner)
        return None if leader is None else Gradients(leader)
    fast = statistics_of(learner)
    return None if fast is None else Adding(fast, compressed=isinstance(fast, SumsByClass))


@dataclass(frozen=True)
class Adding(Pass):
    """Examples added up to the exact state of a learner that does not use released points."""

    statistics: Statistics
    forgets: ClassVar[bool] = True
    compressed: bool = False

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        exact, _ = self.statistics(at.exact, at.t, X, y, rounds)
        return at._replace(t=at.t + len(y), exact=exact)


@dataclass(frozen=True, eq=False)
class Gradients(Pass):
    """Gradients of private FTRL at one released point, added up."""

    leader: Leader
    forgets: ClassVar[bool] = True
    compressed: ClassVar[bool] = True

    def __call__(
        self, at: Standing, X: Rows, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        from taciturn.kernel.compiled import ftrl_loops as ftrl

        total = at.exact["sum"].copy()
        ftrl.gradients(self.leader, at.point.copy(), total, as_parts(X), y)
        return at._replace(t=at.t + len(y), exact={"sum": total})


def has_known_arrays(learner: Learner, calibrated: Calibrated) -> bool:
    """Whether their arrays are known by their exact types."""
    inner = learner.learner if type(learner) is Averaged else learner
    coder = type(getattr(calibrated, "coder", None))
    of_learner = (type(inner) is FTRL or type(inner) in STATISTICS) and type(inner.problem) is Problem
    return of_learner and type(calibrated) in NOISE and coder in (type(None), RootCoder, *STRATEGIES)


class Statistics(Protocol):
    """The statistics of many rounds at once, of a learner that does not use released points."""

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """The exact state after all clipped examples, and the statistics of these rounds."""

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The points of statistics that stand for as many examples."""


class Noise(Protocol):
    """Noise on the statistics of many releases at once."""

    @property
    def calibrated(self) -> Any:
        """The mechanism."""

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """Integers to add to everything that releases k to k + count - 1 encode."""

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """`encode`, the noise, and `decode`, from release k on."""


class Noisy(NamedTuple):
    """A mechanism's new memories, noisy statistics, and the standard deviations of their noise."""

    secret: Arrays
    public: Arrays
    noisy: Array
    noise_sd: Array


def statistics_of(learner: Learner) -> Statistics | None:
    """The fast path to a learner's statistics, or None."""
    factory = STATISTICS.get(type(learner))
    if factory is None or type(learner.problem) is not Problem:
        return None
    return factory(learner)


def noise_of(calibrated: Calibrated) -> Noise | None:
    """The fast path to a mechanism's noise, or None."""
    factory = NOISE.get(type(calibrated))
    return None if factory is None else factory(calibrated)


@dataclass(frozen=True)
class BatchPass(Pass):
    """All releases of a block at once: statistics, then noise, then decisions."""

    statistics: Statistics
    noise: Noise
    forgets: ClassVar[bool] = True
    compressed: bool = False

    def __call__(
        self, at: Standing, X: Any, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        t, k, exact = at[:3]
        if not (count := len(rounds)):
            exact, _ = self.statistics(exact, t, X, y, rounds)
            return at._replace(t=t + len(y), exact=exact)
        noise = self.noise.draw(seed, k + 1, count)
        exact, rows = self.statistics(exact, t, X, y, rounds)
        return self._released(at, rows, rounds, noise, shown)._replace(t=t + len(y), exact=exact)

    def release(
        self, at: Standing, statistics: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        """The same for statistics that are known already."""
        return self._released(at, statistics, rounds, self.noise.draw(seed, at.k + 1, len(rounds)), shown)

    def _released(
        self, at: Standing, statistics: Array, rounds: Integers, noise: Integers, shown: Collected
    ) -> Standing:
        k, count = at.k, len(rounds)
        secret, public, noisy, sd = self.noise.add(at.secret, at.public, statistics, k + 1, noise)
        stand_for = self.noise.calibrated.examples_of(np.arange(k + 1, k + count + 1), rounds)
        points = self.statistics.decide(stand_for, noisy, sd)
        shown.add(noisy, points, sd)
        return Standing(int(rounds[-1]), k + count, at.exact, secret, public, points[-1].copy())


# ---- clipping ----------------------------------------------------------------------------------------------------


def clip_for(problem: Problem) -> Clip | None:
    """Compiled clipping, for problems of exactly this class.

    >>> from taciturn import L2Ball, Logistic, Problem
    >>> V, y = clip_for(Problem(Logistic(), L2Ball(1.0), dimension=2)).dense(np.array([[3.0, 4.0]]), np.ones(1))
    >>> V.round(6)
    array([[0.6, 0.8]])
    """
    return Clip(problem) if type(problem) is Problem else None


@dataclass(frozen=True)
class Clip:
    """Rows clipped in one compiled loop. Slow twin: `Problem.clip_block`."""

    problem: Problem

    def dense(self, X: Array, y: Array, first: int = 0, out: Array | None = None) -> tuple[Array, Array]:
        """Clipped rows, in the memory of `out` if that is given, and labels; `first` is the first row's number."""
        from taciturn.kernel.compiled import clipping_loops as clipping

        self._check_shape(X.shape, len(y))
        V = np.empty((len(y), self.problem.width)) if out is None else out[: len(y)]
        Z = self.problem.mapped(X)  # bad rows are NaN, which the loop finds
        if not (Z.dtype == np.float64 and Z.flags.c_contiguous and Z.flags.aligned):
            Z = np.require(Z, np.float32 if Z.dtype == np.float32 else np.float64, ["C", "A"])  # as the loop reads it
        labels, bad = clipping.clip(Z, y, *self.bounds, V)
        if bad >= 0 and self.problem.on_bad == "raise":
            self.problem.reject_row(bad, X, y, first)
        return V, labels

    def sparse(self, X: CompressedRows, y: Array, first: int = 0) -> tuple[CompressedRows, Array]:
        """The same for rows that stay compressed; the columns of a row are all different afterwards.

        For problems without a map, whose rows would not stay sparse.
        """
        from taciturn.kernel.compiled import clipping_loops as clipping

        self._check_shape(X.shape, len(y))
        assert self.problem.features is None
        width = self.problem.width
        starts, columns, entries, labels, bad = clipping.clip_compressed(*X.numbers(), width, y, *self.bounds)
        if bad >= 0 and self.problem.on_bad == "raise":
            one = slice(bad, bad + 1)
            self.problem.reject_row(0, X[one].dense(), y[one], first + bad)
        return CompressedRows(starts, columns, entries, width), labels

    def _check_shape(self, shape: tuple[int, ...], rows: int) -> None:
        if shape != (rows, self.problem.dimension):
            self.problem.check_shape(shape, rows)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The bounds, and 1 if a bad row is rejected, 0 if it is learnt without influence: for `clipping.clip_one`."""
        return *self.bounds, float(self.problem.on_bad == "raise")

    @cached_property
    def bounds(self) -> tuple[float, float, int, float, float]:
        """The longest features, the intercept, the kind of labels, their bound or the number of classes.

        And the label of a row whose own is bad; NaN if such a row has no influence.
        """
        p = self.problem
        kind = {"real": codes.REAL, "sign": codes.SIGN, "class": codes.CLASS, "none": codes.NONE}[p.loss.labels]
        assert p.label_bound is not None
        most = float(p.outputs) if kind == codes.CLASS else p.label_bound
        missing = math.nan if p.missing_label is None else p.missing_label
        return longest_row(p.feature_bound, p.mapped_dimension), p.intercept, kind, most, missing


# ---- iterate learners: IGD, GIGA, averages of them ---------------------------------------------------------------


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
        from taciturn.kernel.compiled import igd_loops as igd

        problem = (self.kind, self.loss, self.domain, self.steepest)
        total = np.empty(0) if total is None else total
        return np.asarray(igd.iterates(*problem, self.centre, x, t, X, y, rounds, total, first))

    def release(self, x: Array, t: int, X: Array, y: Array, rounds: Integers, *noise: Any) -> int:
        """Writes noisy iterates of these rounds and the points of the set nearest to them: how many.

        Changes `x` to the iterate after all examples.
        """
        from taciturn.kernel.compiled import igd_loops as igd

        problem = (self.kind, self.loss, self.domain, self.steepest)
        return int(igd.releases(*problem, self.centre, x, t, X, y, rounds, *noise))


def steps_of(learner: Learner) -> Steps | None:
    """The steps of a learner as numbers; None if the type of it, its problem, loss or set has no compiled form."""
    if type(learner.problem) is not Problem:
        return None
    if type(learner) is IGD:
        kind, problem = (codes.IMPLICIT, learner.problem.ridge, 0.0), learner.stepped
    elif type(learner) is FadingIGD:
        kind, problem = (codes.FADING, learner.strength, 0.0), learner.stepped
    elif type(learner) is GIGA and learner.step == "printed":
        kind, problem = (codes.PRINTED, learner.problem.ridge, float(learner.first_move)), learner.problem
    elif type(learner) is GIGA:
        kind, problem = (codes.GRADIENT, learner.problem.ridge, learner.delay), learner.problem
    else:
        return None
    loss, domain = loss_code(problem.loss), set_code(problem.domain)
    if loss is None or loss[0] in (codes.SOFTMAX, codes.ONE_HOT) or domain is None:
        return None
    return Steps(kind, loss, domain, problem.lipschitz / problem.norm_bound, problem.first_point)


@dataclass(frozen=True, eq=False)
class Iterates:
    """The iterates themselves. Slow twins: `absorb` of IGD, FadingIGD and GIGA."""

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
class Means:
    """Averages of iterates. Slow twin: `Averaged`."""

    learner: Averaged
    steps: Steps

    @staticmethod
    def of(learner: Averaged) -> Means | None:
        """If the averaged learner's steps have a compiled form."""
        return None if (steps := steps_of(learner.learner)) is None else Means(learner, steps)

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        x, total = exact["x"].copy(), exact["sum"].copy()
        totals = self.steps.iterates(x, t, X, y, rounds, total, self.learner.first)
        count = (rounds - self.learner.first + 1)[:, None]
        means = np.where(count > 0, totals / np.maximum(count, 1), self.learner.problem.first_point)
        return {"x": x, "sum": total}, means

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The points of the set nearest to the noisy averages."""
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
        from taciturn.kernel.compiled import igd_loops as igd

        steps = self.steps
        codes = *steps.kind, *steps.loss, *steps.domain
        numbers = [*self.clip.numbers, self.calibrated.magnitude, *codes, steps.steepest, *steps.centre]
        return igd.clip_and_step, igd.clip_and_release, fixed(np.array(numbers))


def project_batch(domain: ConvexSet, rows: Array) -> Array:
    """The nearest point of the set to each row."""
    if (code := set_code(domain)) is not None:
        from taciturn.kernel.compiled import sets_loops as sets

        return np.asarray(sets.project_batch(*code, rows))
    return np.array([domain.project(row) for row in rows]).reshape(rows.shape)


# ---- learners without a compiled form ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ByDefinition:
    """Statistics by the learner's own methods, of which noise and decisions are made for all releases at once."""

    learner: Any
    decisions: Callable[[Array], Array]

    @staticmethod
    def of_leaders(learner: FTL) -> ByDefinition:
        """The points of the set nearest to the noisy leaders."""
        return ByDefinition(learner, partial(project_batch, learner.problem.domain))

    @staticmethod
    def of_candidates(learner: EWOO) -> ByDefinition:
        """The candidates whose numbers were released, or the best of each statistic of losses."""
        return ByDefinition(learner, partial(_winners, learner.net))

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        return statistics_by_definition(self.learner, exact, t, X, y, rounds)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """As the learner decides."""
        return self.decisions(noisy)


def _winners(net: Array, noisy: Array) -> Array:
    return np.array(net[noisy[:, 0].astype(np.int64) if noisy.shape[1] == 1 else np.argmin(noisy, axis=1)])


# ---- entry learners: sums of products, of vectors, of candidates' losses -----------------------------------------

_MOST = 2**17  # examples whose products float64 adds up exactly
_IN_CACHE = 1024  # examples converted to integers and multiplied in one block


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products in integers: exact, so in any order. Slow twin: `QFTL`."""

    learner: QFTL

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """One compiled loop; where releases are rare, products of matrices."""
        learner = self.learner
        if len(y) > min(8 * len(rounds), _MOST):
            return self._by_blocks(exact, t, X, y, rounds)
        from taciturn.kernel.compiled import qftl_loops as qftl

        rows, rest = (part.astype(np.int64) for part in qftl.sums(*learner.factors(X, y), t, rounds))
        rows[0] += exact["sum"]
        return {"sum": rest}, rows * learner.scale

    def _by_blocks(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Products of matrices between releases."""
        rows = np.empty((len(rounds), self.learner.statistic_size))
        start = 0
        total = exact["sum"]
        for k, end in enumerate(int(due) - t for due in rounds):
            rows[k] = (total + self._sum(X[start:end], y[start:end])) * self.learner.scale
            start = end
            total = self.learner.start()["sum"]
        return {"sum": total + self._sum(X[start:], y[start:])}, rows

    def _sum(self, X: Array, y: Array) -> Integers:
        """Integer products of all examples, added up in blocks that fit into a core's cache.

        Labels stand beside features, so that all products are those of one matrix, of which half is computed.
        """
        from scipy.linalg.blas import dsyrk  # here: it loads slowly, and few streams need it

        from taciturn.kernel.compiled.qftl_loops import to_integers

        problem = self.learner.problem
        total = self.learner.start()["sum"]
        d = problem.width
        both = np.empty((min(len(y), _IN_CACHE), d + problem.outputs))
        for first in range(0, len(y), _MOST):
            products = np.zeros((both.shape[1], both.shape[1]), order="F")
            for start in range(first, min(first + _MOST, len(y)), _IN_CACHE):
                end = min(start + _IN_CACHE, first + _MOST, len(y))
                to_integers(X[start:end], 1.0 / unit_of(problem.norm_bound), both)
                both[: end - start, d:] = in_units(self.learner.targets(y[start:end]), self.learner.label_bound)
                products = dsyrk(1.0, both[: end - start].T, beta=1.0, c=products, overwrite_c=True)
            total = total + products.ravel(order="F")[self._among_products].astype(np.int64)
        return total

    @cached_property
    def _among_products(self) -> Integers:
        """Where a statistic's entries stand among all products of features and labels, column after column."""
        problem = self.learner.problem
        rows, columns = self.learner.upper
        labels = problem.width + np.arange(problem.outputs)[:, None]
        width = problem.width + problem.outputs
        return np.concatenate([columns * width + rows, (labels * width + np.arange(problem.width)).ravel()])

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """Compiled, but for matrices that have no Cholesky factor, and other sets than balls and boxes."""
        from taciturn.kernel.compiled import qftl_loops as qftl

        learner = self.learner
        p = self.learner.problem
        domain = set_code(p.domain)
        ridges = learner.total_ridge(t, noise_sd)
        pulled = noisy
        if learner.center is not None:
            pulled = np.array(noisy)
            pulled[:, -p.size :] += learner.w * np.asarray(learner.pull(noise_sd))[:, None] * np.array(learner.center)
        points, solved = qftl.points(pulled, p.width, learner.w, ridges, domain or (codes.WHOLE_SPACE, 0.0, 0.0))
        for k in np.flatnonzero(~solved):
            points[k] = learner.decide(float(t[k]), noisy[k], float(noise_sd[k]))
        return np.asarray(points) if domain else project_batch(p.domain, points)


@dataclass(frozen=True, eq=False)
class PlayedArms:
    """Sums of products in the block of the played arm, in integers. Slow twin: `LinearBandit`."""

    learner: LinearBandit

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        """Those of QFTL for one model; for more, products that are added to the block of their arm."""
        learner = self.learner
        arms, rewards = learner.played(y)
        if learner.arms == 1:
            return self._shared(exact, t, X, rewards, rounds)
        from taciturn.kernel.compiled import linear_bandit_loops as linear_bandit

        total = exact["sum"].copy()
        rows = np.empty((len(rounds), learner.statistic_size), dtype=np.int64)
        for first in range(0, len(y), _MOST):  # an upper bound on memory for integers
            part = slice(first, first + _MOST)
            V, Y = learner.sums.factors(X[part], rewards[part])
            done = int(np.searchsorted(rounds, t + first, side="right"))
            linear_bandit.sums(total, V, Y[:, 0], arms[part], t + first, rounds[done:], rows[done:])
        return {"sum": total}, learner.scaled(rows)

    @cached_property
    def _shared(self) -> Products:
        return Products(self.learner.sums)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """All models of all releases at once."""
        return self.learner.decide_batch(noisy, np.broadcast_to(np.asarray(noise_sd), len(noisy)))


@dataclass(frozen=True, eq=False)
class VectorSums:
    """Differences of the sums of all vectors so far, which are exact. Slow twin: `VectorSum`."""

    learner: VectorSum

    def __call__(self, exact: Arrays, t: int, X: Array, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        vectors = rounded(X, self.learner.problem.norm_bound)
        sums = np.cumsum(np.concatenate([exact["sum"][None, :], vectors]), axis=0)
        starts = np.concatenate([np.zeros((1, self.learner.statistic_size)), sums[rounds - t]])
        return {"sum": sums[-1] - starts[-1]}, np.diff(starts, axis=0)

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """The private sums themselves."""
        return noisy


@dataclass(frozen=True, eq=False)
class SumsByClass:
    """Sums of the rows of each class, dense or compressed. Slow twin: `ClassSums`."""

    learner: ClassSums

    def __call__(self, exact: Arrays, t: int, X: Rows, y: Array, rounds: Integers) -> tuple[Arrays, Array]:
        from taciturn.kernel.compiled import class_sums_loops as class_sums

        learner = self.learner
        R = learner.problem.norm_bound
        total = exact["sum"].copy()
        rows = np.empty((len(rounds), learner.statistic_size))
        class_sums.sums(total, as_parts(X), learner.numbers(y), R, lattice_of(R), t, rounds, rows)
        return {"sum": total}, rows

    def decide(self, t: Any, noisy: Array, noise_sd: Array) -> Array:
        """Compiled, and the points of the set nearest to them."""
        from taciturn.kernel.compiled import class_sums_loops as class_sums

        p = self.learner.problem
        points = np.empty((len(noisy), p.size))
        class_sums.points(noisy, noise_sd, p.outputs, p.mapped_dimension, p.norm_bound, CLEAR, points)
        return project_batch(p.domain, points)


STATISTICS: dict[type, Callable[[Any], Statistics | None]] = {
    IGD: Iterates.of,
    FadingIGD: Iterates.of,
    GIGA: Iterates.of,
    Averaged: Means.of,
    FTL: ByDefinition.of_leaders,
    QFTL: Products,
    LinearBandit: PlayedArms,
    VectorSum: VectorSums,
    ClassSums: SumsByClass,
    EWOO: ByDefinition.of_candidates,
}
"""The fast path to the statistics of each learner, by its exact type."""


# ---- noise -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Independent Gaussian noise on a lattice. Slow twin: `OnLattice`."""

    calibrated: OnLattice

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """A row for each release."""
        return self.calibrated.noise(seed, k, count)

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """In one compiled loop."""
        from taciturn.kernel.compiled import lattice_loops as lattice

        sd, step = self.calibrated.levels_of(k, len(statistics))
        return Noisy(secret, public, lattice.add_noise_batch(statistics, step, self.calibrated.magnitude, noise), sd)


@dataclass(frozen=True, eq=False)
class GumbelNoise:
    """Races under Gumbel noise. Slow twin: `exponential.Race`."""

    calibrated: exponential.Race

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """A row for each release."""
        return self.calibrated.noise(seed, k, count)

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """All releases in one array; only the numbers of the winners are returned."""
        rates = self.calibrated.rates_of(k, len(statistics))
        winners = np.argmax(self.calibrated.scores(statistics, rates) + noise, axis=1)[:, None]
        return Noisy(secret, public, winners.astype(np.float64), exponential.GUMBEL_SD / rates)


@dataclass(frozen=True, eq=False)
class PrefixSumNoise:
    """Noise on encoded statistics, and prefix sums decoded from them. Slow twin: `prefix_sum.NoisySums`."""

    calibrated: prefix_sum.NoisySums

    @staticmethod
    def of(calibrated: prefix_sum.NoisySums) -> PrefixSumNoise | None:
        """If the strategy has batch methods."""
        return PrefixSumNoise(calibrated) if type(calibrated.coder) in STRATEGIES else None

    def draw(self, seed: int | None, k: int, count: int) -> Integers:
        """Noise for all rows that these releases encode, in one array."""
        return self.calibrated.noise_rows(seed, k, count)

    def add(self, secret: Arrays, public: Arrays, statistics: Array, k: int, noise: Integers) -> Noisy:
        """Encoded, rounded, noisy, decoded; statistics are first clipped to what was certified."""
        from taciturn.kernel.compiled import lattice_loops as lattice

        calibrated = self.calibrated
        coder = self.calibrated.coder
        count = len(statistics)
        steps, largest = calibrated.steps(k, count), calibrated.largest_of(k, count)
        sds = noise_sds(calibrated, k, count)
        if type(coder) is BLTCoder:
            return Noisy(*_blt_sums(coder, secret, public, statistics, noise, steps, largest), sds)
        if type(coder) is RestartedCoder:
            return Noisy(*_restarted_sums(coder, secret, public, statistics, k, noise, steps, largest), sds)
        if type(coder) is DecayedCoder:
            return Noisy(*_decayed_sums(coder, secret, public, statistics, k, noise, steps, largest), sds)
        strategy = STRATEGIES[type(coder)](coder)
        rows = lattice.clipped(statistics, largest)
        if coder.integer:
            integers = lattice.to_lattice(rows, np.full(count, calibrated.step(k)))
            secret, encoded = strategy.encode(secret, integers, k)
            noisy = lattice.from_lattice(encoded + noise, steps)
        else:
            secret, encoded = strategy.encode(secret, rows, k)
            noisy = lattice.add_noise_batch(encoded, steps, math.inf, noise)
        public, sums = strategy.decode(public, noisy, k, count)
        return Noisy(secret, public, sums, sds)


NOISE: dict[type, Callable[[Any], Noise | None]] = {
    gaussian.FiniteGaussian: GaussianNoise,
    gaussian.EndlessGaussian: GaussianNoise,
    exponential.FiniteRace: GumbelNoise,
    exponential.EndlessRace: GumbelNoise,
    prefix_sum.Finite: PrefixSumNoise.of,
    prefix_sum.Endless: PrefixSumNoise.of,
    prefix_sum.LastingSums: PrefixSumNoise.of,
    Lasting: PrefixSumNoise.of,
}
"""The fast path to the noise of each calibrated mechanism, by its exact type."""


def noise_sds(calibrated: prefix_sum.NoisySums, k: int, count: int) -> Array:
    """Standard deviations of `count` noisy sums, from the k-th on, independent of how releases are cut."""
    coder: Any = calibrated.coder
    if type(coder) in (BLTCoder, DecayedCoder):
        return calibrated.sd * blt_errors(coder, k, count)
    if type(coder) is RestartedCoder:
        parts = coder.stretches(k, count)
        found = [coder.with_earlier(at, blt_errors(coder.inner, place, end - start)) for start, end, at, place in parts]
        return calibrated.sd * np.concatenate([np.empty(0), *found])
    return calibrated.sd * coder.error(np.arange(k, k + count))


# ---- strategies --------------------------------------------------------------------------------------------------


class Strategy(Protocol):
    """Many rows of a strategy at once, from row k on."""

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """The encoded rows that these rows add, up to rounding."""

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """As many prefix sums, up to rounding."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Slow twin: `TreeCoder`."""

    coder: TreeCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.compiled import tree_loops as tree

        waiting = secret["nodes"].astype(rows.dtype)
        return {"nodes": waiting}, tree.encode(rows, k, waiting)

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.compiled import tree_loops as tree

        nodes = public["nodes"].copy()
        return {"nodes": nodes}, tree.decode(noisy, k, count, nodes, self.coder.weights)


@dataclass(frozen=True, eq=False)
class BLT:
    """Slow twin: `BLTCoder`."""

    coder: BLTCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.compiled import blt_loops as blt

        th, _, om, _ = self.coder.arrays
        buffers = secret["buffers"].copy()
        return {"buffers": buffers}, blt.encode(rows, th, om, buffers)

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.compiled import blt_loops as blt

        _, ph, _, om = self.coder.arrays
        buffers, total = public["buffers"].copy(), public["sum"].copy()
        return {"buffers": buffers, "sum": total}, blt.decode(noisy, ph, om, buffers, total, 1.0)


def _blt_sums(
    coder: BLTCoder, secret: Arrays, public: Arrays, rows: Array, noise: Integers, steps: Array, largest: Array
) -> tuple[Arrays, Arrays, Array]:
    """The new memories, and noisy prefix sums: all in one loop, which writes nothing but sums."""
    from taciturn.kernel.compiled import blt_loops as blt

    th, ph, om, inverse = coder.arrays
    encoder, decoder, total = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
    sums = blt.noisy_sums(rows, largest, steps, noise, (th, om, encoder), (ph, inverse, decoder), total, 1.0)
    return {"buffers": encoder}, {"buffers": decoder, "sum": total}, sums


def _restarted_sums(
    coder: RestartedCoder,
    secret: Arrays,
    public: Arrays,
    rows: Array,
    k: int,
    noise: Integers,
    steps: Array,
    largest: Array,
) -> tuple[Arrays, Arrays, Array]:
    """The same from row k on, block by block."""
    sums = np.empty(rows.shape)
    for start, end, _, place in coder.stretches(k, len(rows)):
        at = slice(start, end)
        secret, public = coder.opened(secret, public, place)
        secret, public, sums[at] = _blt_sums(coder.inner, secret, public, rows[at], noise[at], steps[at], largest[at])
    return secret, public, sums


def _decayed_sums(
    coder: DecayedCoder,
    secret: Arrays,
    public: Arrays,
    rows: Array,
    k: int,
    noise: Integers,
    steps: Array,
    largest: Array,
) -> tuple[Arrays, Arrays, Array]:
    """The same for decayed sums from row k on, with two sets of buffers where both are kept."""
    from taciturn.kernel.compiled import blt_loops as blt

    _, ph, _, inverse = coder.arrays
    encoder, decoder, total = secret["buffers"].copy(), public["buffers"].copy(), public["sum"].copy()
    sums = np.empty(rows.shape)
    for start, end, both, full in coder.stretches(k, len(rows)):
        at = slice(start, end)
        sides = _encoder(coder, encoder, both), (ph, inverse, decoder)
        sums[at] = blt.noisy_sums(rows[at], largest[at], steps[at], noise[at], *sides, total, coder.decay)
        if full:
            encoder = exchanged(encoder)
    return {"buffers": encoder}, {"buffers": decoder, "sum": total}, sums


def _encoder(coder: DecayedCoder, buffers: Array, both: bool) -> tuple[Array, Array, Array]:
    """Decays, weights and buffers of the first set, or of both, of which the second adds nothing to encoded rows."""
    th, _, om, _ = coder.arrays
    return (*coder.both, buffers) if both else (th, om, buffers[: len(th)])


_BLOCK = 2**13  # errors that are computed in one block


def blt_errors(coder: BLTCoder | DecayedCoder, k: int, count: int) -> Array:
    """`coder.error` of as many rows from the k-th on, up to 2⁻⁴⁰ of it; blocks of them are cached."""
    first, last = (k - 1) // _BLOCK, (k + count - 2) // _BLOCK
    rows = _errors_of_block(coder, first)
    if last > first:
        rows = np.concatenate([_errors_of_block(coder, block) for block in range(first, last + 1)])
    return rows[k - 1 - first * _BLOCK :][:count]


@lru_cache(maxsize=64)
def _errors_of_block(coder: BLTCoder | DecayedCoder, block: int) -> Array:
    """The closed form for the first row of a block, then term by term; where decayed sums have settled, their limit."""
    from taciturn.kernel.compiled import blt_loops as blt

    first = block * _BLOCK
    if isinstance(coder, DecayedCoder):
        if first > coder.kept:  # what is left to add is below exp(-64) of the limit
            return _settled(coder)
        terms, rates = coder.terms
        before = float(coder.error(first)) ** 2 if first else 0.0
        return fixed(np.sqrt(blt.squared_errors(before, 0.0, terms, rates, rates**first, _BLOCK)))
    th, ph = coder.arrays[:2]
    b, be = coefficients(th, ph)
    before = float(prefix_squares(th, ph, np.asarray(float(first)))) if first else 0.0
    return fixed(np.sqrt(blt.squared_errors(before, float(b), be, ph, ph**first, _BLOCK)))


@lru_cache(maxsize=64)
def _settled(coder: DecayedCoder) -> Array:
    """The limit of the errors of decayed sums, for a block."""
    return fixed(np.full(_BLOCK, float(coder.error(math.inf))))


@dataclass(frozen=True, eq=False)
class Decayed:
    """Slow twin: `DecayedCoder`."""

    coder: DecayedCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled, stretch by stretch."""
        from taciturn.kernel.compiled import blt_loops as blt

        buffers = secret["buffers"].copy()
        encoded = np.empty(rows.shape)
        for start, end, both, full in self.coder.stretches(k, len(rows)):
            encoded[start:end] = blt.encode(rows[start:end], *_encoder(self.coder, buffers, both))
            if full:
                buffers = exchanged(buffers)
        return {"buffers": buffers}, encoded

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled."""
        from taciturn.kernel.compiled import blt_loops as blt

        _, ph, _, om = self.coder.arrays
        buffers, total = public["buffers"].copy(), public["sum"].copy()
        return {"buffers": buffers, "sum": total}, blt.decode(noisy, ph, om, buffers, total, self.coder.decay)


@dataclass(frozen=True, eq=False)
class Restarted:
    """Slow twin: `RestartedCoder`."""

    coder: RestartedCoder

    def encode(self, secret: Arrays, rows: Array, k: int) -> tuple[Arrays, Array]:
        """Compiled, block by block."""
        encoded = np.empty(rows.shape)
        for start, end, _, place in self.coder.stretches(k, len(rows)):
            secret = self.coder.opened(secret, {}, place)[0]
            secret, encoded[start:end] = BLT(self.coder.inner).encode(secret, rows[start:end], place)
        return secret, encoded

    def decode(self, public: Arrays, noisy: Array, k: int, count: int) -> tuple[Arrays, Array]:
        """Compiled, block by block."""
        sums = np.empty(noisy.shape)
        for start, end, _, place in self.coder.stretches(k, count):
            public = self.coder.opened({}, public, place)[1]
            public, sums[start:end] = BLT(self.coder.inner).decode(public, noisy[start:end], place, end - start)
        return public, sums


STRATEGIES: dict[type, Callable[[Any], Strategy]] = {
    TreeCoder: Tree,
    BLTCoder: BLT,
    RestartedCoder: Restarted,
    DecayedCoder: Decayed,
}
"""Batch methods of each strategy, by its exact type."""


# ---- private FTRL through a strategy -----------------------------------------------------------------------------


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


def as_parts(rows: Rows) -> tuple[Array, Integers, Integers, Array]:
    """Dense or compressed rows as one type for compiled code: dense rows, and CSR arrays, one of the two empty.

    >>> [part.shape for part in as_parts(np.ones((2, 3)))]
    [(2, 3), (0,), (0,), (0,)]
    """
    if isinstance(rows, CompressedRows):
        return np.empty((0, rows.width)), rows.starts, rows.columns, rows.entries
    return rows, _NO_INTEGERS, _NO_INTEGERS, _NO_NUMBERS


_NO_INTEGERS, _NO_NUMBERS = np.empty(0, dtype=np.int64), np.empty(0)


class Cut(NamedTuple):
    """The noise of all rows that a block encodes, their lattice steps, and the bounds on statistics."""

    noise: Integers
    steps: Array
    largest: Array


Through = Callable[[Any, Block, Arrays, Arrays, int, Cut], tuple[Arrays, Arrays]]
"""Writes a block's noisy sums and points through a strategy, from row k on, and returns its new memories."""


def _through_blt(
    coder: BLTCoder, block: Block, secret: Arrays, public: Arrays, k: int, cut: Cut
) -> tuple[Arrays, Arrays]:
    from taciturn.kernel.compiled import ftrl_loops as ftrl

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
    from taciturn.kernel.compiled.ftrl_loops import through_blt

    _, ph, _, inverse = coder.arrays
    encoder, decoder = secret["buffers"].copy(), public["buffers"].copy()
    running = public["sum"].copy()
    for start, end, both, full in coder.stretches(k, len(block.rounds)):
        part_of, at = block.cut(start, end), slice(start, end)
        sides = _encoder(coder, encoder, both), (ph, inverse, decoder)
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
        if leader is None or through is None or type(calibrated) not in NOISE:
            return None
        return FTRLPass(learner, calibrated, leader, partial(through, calibrated.coder))

    def __call__(
        self, at: Standing, X: Rows, y: Array, rounds: Integers, seed: int | None, shown: Collected
    ) -> Standing:
        from taciturn.kernel.compiled import ftrl_loops as ftrl

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
        noise_sd = calibrated.sd * self._errors(k // _BLOCK)[k % _BLOCK :][:1]
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
        return lru_cache(maxsize=1)(partial(_errors_of_block, coder))

    @cached_property
    def _compiled(self) -> tuple[Any, Any, Array, Array]:
        """The two compiled functions, and what is the same for all examples."""
        from taciturn.kernel.compiled import ftrl_loops as ftrl

        loss, domain, *rest = self.way.leader
        coder: Any = self.way.calibrated.coder
        numbers = np.array([*self.clip.numbers, *loss, *domain, *rest, self.clip.problem.width])
        return ftrl.clip_and_add, ftrl.clip_and_release, numbers, fixed(np.array(coder.arrays))


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
