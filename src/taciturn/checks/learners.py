"""Checks of a learner's methods: they are pure, do not depend on batch sizes, and return the stated shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.calibration.mechanisms import BLT, Gaussian
from taciturn.checks.streams import copied, examples, generator, same
from taciturn.checks.suite import COPY, demand, skip
from taciturn.core.private import Private
from taciturn.errors import Unprovable
from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.learners.contributions import Unverified, wired
from taciturn.kernel.replay import replay
from taciturn.kernel.stream.protocols import Learner, Mechanism
from taciturn.kernel.stream.schedule import Schedule, every
from taciturn.methods.exponential import Exponential

MECHANISMS: dict[str, Mechanism] = {
    "l2/tail": Gaussian(),
    "l2/entry": BLT(),
    "range/tail": Exponential(),
}
BUDGET = Privacy(epsilon=1.0, delta=1e-6)
_LATEST = 2**16  # rounds up to which a certificate may be 0


@dataclass(frozen=True)
class LearnerCase:
    """A learner and its test case: examples, the mechanism to use, and the number of searches for worse neighbours."""

    learner: Learner
    mechanism: Mechanism | None = None
    effort: int = 1

    @cached_property
    def rows(self) -> int:
        """Number of examples: a dozen from the first that can change a statistic."""
        return min(first_round(self.learner), 500) + 11

    @property
    def examples(self) -> tuple[Array, Array]:
        """Raw examples, new arrays each time, so that no check sees the changes of another."""
        return examples(self.learner.problem, self.rows)

    def example(self, i: int) -> Array:
        """Features and label of one raw example."""
        X, y = self.examples
        return np.append(X[i], y[i])

    @property
    def bounded(self) -> tuple[Array, Array]:
        """The clipped examples."""
        return self.learner.problem.clip(*self.examples)

    def private(self, schedule: Schedule | None = None, **settings: Any) -> Private:
        """The private stream of this learner, with the number of examples as its horizon."""
        mechanism = self.mechanism or MECHANISMS[self.learner.certificate.kind]
        return Private(self.wired, mechanism, schedule or every(1), BUDGET, self.rows, **settings)

    @property
    def wired(self) -> Any:
        """The learner as `Private` takes it: one of one's own, whose certificate is being checked, is wrapped."""
        try:
            return wired(self.learner)
        except Unprovable:
            return Unverified(self.learner, by="whoever checks it")


def first_round(learner: Learner) -> int:
    """The first round after which an example can have changed the statistic."""
    for most in (1, 64, _LATEST):
        moves = learner.certificate.at(np.arange(1, most + 1)) > 0.0
        if moves.any():
            return int(np.argmax(moves)) + 1
    return _LATEST


ROUNDING = 1e-6
"""Two ways of computing a statistic may differ by this fraction of its sensitivity."""


def absorb_and_statistic_are_pure(case: LearnerCase) -> None:
    """They do not modify their arguments, and they are deterministic.

    A modified state is another state: a stream could not be replayed, forked or rejected.
    """
    learner, (V, y) = case.learner, case.bounded
    n, start, point = len(y), learner.start(), learner.problem.first_point.copy()
    before = copied({"V": V, "y": y, "point": point})
    exact, _ = learner.statistic(learner.absorb(start, 0, V, y, point), n)
    demand(same(start, learner.start()), "absorb changed the state that start() gave", COPY)
    before_exact = copied(exact)
    once, twice = (learner.absorb(exact, n, V, y, point) for _ in range(2))
    demand(
        same(once, twice),
        "absorb gives another state when it is called again",
        "Draw nothing, and keep all state in the arguments.",
    )
    before_once = copied(once)
    ends = [learner.statistic(once, 2 * n) for _ in range(2)]
    alike = same(ends[0][0], ends[1][0]) and np.array_equal(ends[0][1], ends[1][1])
    demand(
        alike,
        "statistic gives another result when it is called again",
        "Draw nothing, and keep all state in the arguments.",
    )
    demand(same(once, before_once), "statistic changed its state argument", COPY)
    demand(same(exact, before_exact), "absorb changed its state argument", COPY)
    demand(same({"V": V, "y": y, "point": point}, before), "absorb changed its examples or the released point", COPY)


def decide_is_pure(case: LearnerCase) -> None:
    """The point depends on the noisy statistic only, which `decide` does not modify.

    Changing a returned point does not change the next one. Exact data that `absorb` or `statistic` stored outside the
    state, and that `decide` reads, would be published without noise.
    """
    learner = case.learner
    size = 1 if learner.certificate.metric == "range" else learner.statistic_size
    for value in (0.0, 1.0):
        noisy = np.full(size, value)
        first = learner.decide(case.rows, noisy, 0.1)
        expected = first.copy()
        demand(np.array_equal(noisy, np.full(size, value)), "decide changed the noisy statistic", COPY)
        first += 99.0
        again = learner.decide(case.rows, np.full(size, value), 0.1)
        remedy = "Return a new array each time."
        demand(np.array_equal(again, expected), "decide gives another point for the same statistic", remedy)
        _point_depends_on_the_noisy_statistic_only(case, np.full(size, value))


def _point_depends_on_the_noisy_statistic_only(case: LearnerCase, noisy: Array) -> None:
    """After streams with different exact statistics, the same noisy statistic gives the same point."""
    learner, n, rows, points = case.learner, case.rows, [], []
    for seed in range(4):
        V, y = learner.problem.clip(*examples(learner.problem, n, seed))
        exact = learner.absorb(learner.start(), 0, V, y, learner.problem.first_point)
        rows.append(learner.statistic(exact, n)[1].copy())
        points.append(learner.decide(n, noisy.copy(), 0.1).copy())
    moved = any(not np.array_equal(row, rows[0]) for row in rows)
    demand(moved, "four different streams give the same statistic", "Let absorb use the examples.")
    alike = all(np.array_equal(point, points[0]) for point in points)
    fault = "decide gives other points for the same noisy statistic after other examples: it reads exact data"
    demand(
        alike,
        fault,
        "Store everything that absorb and statistic compute in the state that they return, which is never released.",
    )


def batch_sizes_do_not_matter(case: LearnerCase) -> None:
    """In one batch or many, the state and the statistic are equal to the last bit.

    Batch sizes must not change the releases, and certificates compare runs with the same batches.
    """
    learner, (V, y), n = case.learner, case.bounded, case.rows
    point, exact, t = learner.problem.first_point, learner.start(), 0
    at_once = learner.absorb(learner.start(), 0, V, y, point)
    for end in (1, 1, n // 3, n - 1, n):
        exact, t = learner.absorb(exact, t, V[t:end].copy(), y[t:end].copy(), point), end
    row = learner.statistic(exact, n)[1]
    row_at_once = learner.statistic(at_once, n)[1]
    fault = "a stream in several batches gives another result"
    remedy = "Process examples one by one, or add them on a lattice (rounded, of taciturn.kernel.learners.exact_sums)."
    states = _apart(exact, at_once)
    rows = _apart({"row": row}, {"row": row_at_once})
    demand(
        same(exact, at_once) and not rows,
        f"{fault}: its statistic is off by {rows:.3g}, its state by {states:.3g}",
        remedy,
    )


def _apart(one: Arrays, other: Arrays) -> float:
    """The largest difference of corresponding entries; infinite if names or shapes differ."""
    if {name: np.shape(one[name]) for name in one} != {name: np.shape(other[name]) for name in other}:
        return float("inf")
    pairs = [(np.asarray(one[name], float), np.asarray(other[name], float)) for name in one]
    apart = [float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs if not np.array_equal(a, b)]
    return max(apart, default=0.0)


def statistics_and_points_have_the_stated_size(case: LearnerCase) -> None:
    """Statistics have `statistic_size` entries within `magnitude`, points lie in the domain, states keep their types.

    A mechanism clips what exceeds the certified magnitude, charges floating-point errors by a certified norm, and a
    point outside the domain is not valid.
    """
    learner, (V, y), n = case.learner, case.bounded, case.rows
    exact, row = learner.statistic(learner.absorb(learner.start(), 0, V, y, learner.problem.first_point), n)
    legal = row.shape == (learner.statistic_size,) and row.dtype == np.float64
    demand(legal, f"a statistic is {row.dtype} of shape {row.shape}", f"Return {learner.statistic_size} floats.")
    most = learner.certificate.magnitude * (n if learner.certificate.reach == "entry" else 1)
    largest = float(np.max(np.abs(row)))
    demand(
        largest <= most, f"an entry is {largest:.5g}, and the certified magnitude is {most:.5g}", "State its magnitude."
    )
    longest = n * learner.certificate.norm_of(learner.statistic_size)
    length = float(np.linalg.norm(row))
    within = learner.certificate.reach != "entry" or length <= longest
    demand(
        within, f"a statistic has norm {length:.5g}, and {longest:.5g} is certified", "State the norm of its shares."
    )
    demand(_kinds(exact) == _kinds(learner.start()), "the state changes its names or types", "Use those of start().")
    _decides_in_the_domain(case, row if learner.certificate.metric == "l2" else np.zeros(1))


def _decides_in_the_domain(case: LearnerCase, row: np.ndarray) -> None:
    """With no noise, a little and a lot."""
    learner, rng = case.learner, generator(1)
    for sd in (0.0, 0.1, 1e3) if len(row) == learner.statistic_size else (0.0,):
        point = learner.decide(case.rows, row + sd * rng.normal(size=len(row)), sd)
        size = learner.point_size
        demand(point.shape == (size,), f"a point has shape {point.shape}", f"Return {size} floats.")
        if size != learner.problem.size:  # what a stage finds is no point of the domain
            demand(bool(np.isfinite(point).all()), f"noise of standard deviation {sd:g} makes it infinite", "Bound it.")
            continue
        inside = learner.problem.domain.contains(point)
        demand(
            inside,
            f"noise of standard deviation {sd:g} moves the point out of the domain",
            "End decide with a projection.",
        )


def _kinds(state: Arrays) -> dict[str, tuple[type, np.dtype[Any]]]:
    return {name: (type(array), array.dtype) for name, array in state.items()}


def compiled_statistics_match_definition(case: LearnerCase) -> None:
    """The compiled statistics and decisions equal those of `absorb`, `statistic` and `decide`, up to rounding."""
    from taciturn.kernel.stream.passes import statistics_of

    learner, (V, y) = case.learner, case.bounded
    if (batch := statistics_of(learner)) is None:
        skip(f"{type(learner).__name__} has no compiled statistics")
    for rounds in (np.arange(1, case.rows + 1), np.array([1, case.rows // 2]), np.array([case.rows])):
        ending, slow = replay(learner, V, y, rounds)
        end, fast = batch(learner.start(), 0, V, y, rounds)
        remedy = "Make the compiled form match the methods, or remove it."
        demand(fast.shape == slow.shape, f"the compiled statistics have shape {fast.shape}", remedy)
        apart = np.max(np.abs(fast - slow), axis=1) / (learner.certificate.at(rounds) + np.finfo(float).tiny)
        fault = f"a compiled statistic is off by {np.max(apart):.3g} of its sensitivity"
        demand(np.max(apart) <= ROUNDING, fault, remedy)
        demand(_kinds(end) == _kinds(ending), "the compiled statistics return another kind of state", remedy)
        sd = np.full(len(rounds), 0.1)
        points = np.array([learner.decide(int(t), row, 0.1) for t, row in zip(rounds, fast, strict=True)])
        alike = np.allclose(batch.decide(rounds, fast, sd), points, rtol=1e-9, atol=1e-9)
        demand(alike, "the compiled decision differs from decide", remedy)


CHECKS = (
    absorb_and_statistic_are_pure,
    decide_is_pure,
    batch_sizes_do_not_matter,
    statistics_and_points_have_the_stated_size,
    compiled_statistics_match_definition,
)
