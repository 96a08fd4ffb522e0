"""Checks of a learner's verbs: they are pure, take a stream however it is cut, and keep their shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn.accounting.gdp import Privacy
from taciturn.checks.streams import copied, examples, generator, same
from taciturn.checks.suite import COPY, demand, skip
from taciturn.core.loop import statistics
from taciturn.core.private import Private
from taciturn.core.protocols import Learner, Mechanism
from taciturn.core.schedule import Schedule, every
from taciturn.mechanisms.blt import BLT
from taciturn.mechanisms.exponential import Exponential
from taciturn.mechanisms.gaussian import Gaussian

MECHANISMS: dict[str, Mechanism] = {"l2/tail": Gaussian(), "l2/entry": BLT(), "range/tail": Exponential()}
BUDGET = Privacy(epsilon=1.0, delta=1e-6)
_LATEST = 2**16  # rounds up to which a certificate may be 0


@dataclass(frozen=True)
class Trial:
    """A learner, how many examples it is tried on, and how many searches are made for worse neighbours."""

    learner: Learner
    mechanism: Mechanism | None = None
    effort: int = 1

    @cached_property
    def rows(self) -> int:
        """A dozen, after the first that can move a row."""
        return min(first_round(self.learner), 500) + 11

    @property
    def examples(self) -> tuple[Array, Array]:
        """As they come; anew each time, so that nothing that is written to them is seen by another check."""
        return examples(self.learner.problem, self.rows)

    @property
    def bounded(self) -> tuple[Array, Array]:
        """As the problem lets them in."""
        return self.learner.problem.clip(*self.examples)

    def private(self, schedule: Schedule | None = None, **settings: Any) -> Private:
        """The learner made private, for as many examples as there are."""
        mechanism = self.mechanism or MECHANISMS[self.learner.certificate.kind]
        return Private(self.learner, mechanism, schedule or every(1), BUDGET, self.rows, **settings)


def first_round(learner: Learner) -> int:
    """The first round after which an example can have moved the row."""
    for most in (1, 64, _LATEST):
        moves = learner.certificate.at(np.arange(1, most + 1)) > 0.0
        if moves.any():
            return int(np.argmax(moves)) + 1
    return _LATEST


ROUNDING = 1e-6
"""Two ways of computing a row may differ by this share of what one example moves it by."""


def absorb_and_hand_over_are_pure(trial: Trial) -> None:
    """They change nothing that they are given, and give the same twice.

    A state that was written to is another state: a stream could not be replayed, forked or refused.
    """
    learner, (V, y) = trial.learner, trial.bounded
    n, start, point = len(y), learner.start(), learner.problem.first_point.copy()
    before = copied({"V": V, "y": y, "point": point})
    exact, _ = learner.statistic(learner.absorb(start, 0, V, y, point), n)
    demand(same(start, learner.start()), "absorb changed the state that start() gave", COPY)
    kept = copied(exact)
    once, twice = (learner.absorb(exact, n, V, y, point) for _ in range(2))
    demand(same(once, twice), "absorb gives another state when it is called again", "Draw nothing, and remember less.")
    kept_once, ends = copied(once), [learner.statistic(once, 2 * n) for _ in range(2)]
    alike = same(ends[0][0], ends[1][0]) and np.array_equal(ends[0][1], ends[1][1])
    demand(alike, "statistic gives another row or state when it is called again", "Draw nothing, and remember less.")
    demand(same(once, kept_once), "statistic changed the state that it was given", COPY)
    demand(same(exact, kept), "absorb changed the state that it was given", COPY)
    demand(same({"V": V, "y": y, "point": point}, before), "absorb changed its examples or the released point", COPY)


def decide_is_pure(trial: Trial) -> None:
    """It sees the noisy row and nothing else: it changes nothing of it, and no other stream moves the point.

    What is done to one point does not reach the next. Exact data that `absorb` or `statistic` kept outside the state,
    and that `decide` finds again, would be published without noise.
    """
    learner = trial.learner
    size = 1 if learner.certificate.metric == "range" else learner.statistic_size
    for value in (0.0, 1.0):
        noisy = np.full(size, value)
        first = learner.decide(trial.rows, noisy, 0.1)
        kept = first.copy()
        demand(np.array_equal(noisy, np.full(size, value)), "decide changed the noisy row", COPY)
        first += 99.0
        again = learner.decide(trial.rows, np.full(size, value), 0.1)
        remedy = "Return a new array each time."
        demand(np.array_equal(again, kept), "decide gives another point for the same row", remedy)
        _no_stream_moves_the_point(trial, np.full(size, value))


def _no_stream_moves_the_point(trial: Trial, noisy: Array) -> None:
    """Streams whose exact rows differ go through the learner; from the same noisy row it decides the same."""
    learner, n, rows, points = trial.learner, trial.rows, [], []
    for seed in range(4):
        V, y = learner.problem.clip(*examples(learner.problem, n, seed))
        exact = learner.absorb(learner.start(), 0, V, y, learner.problem.first_point)
        rows.append(learner.statistic(exact, n)[1].copy())
        points.append(learner.decide(n, noisy.copy(), 0.1).copy())
    moved = any(not np.array_equal(row, rows[0]) for row in rows)
    demand(moved, "four different streams hand over the same row", "Let absorb take in the examples.")
    alike = all(np.array_equal(point, points[0]) for point in points)
    fault = "decide gives other points for the same noisy row after other examples: something exact reaches it"
    demand(
        alike, fault, "Keep all that absorb and statistic learn in the state that they return, which is never shown."
    )


def cuts_do_not_matter(trial: Trial) -> None:
    """One block or many, the state and the row are the same to the last bit.

    How a stream is cut into calls must not change what is released, and certificates compare runs cut alike.
    """
    learner, (V, y), n = trial.learner, trial.bounded, trial.rows
    point, exact, t = learner.problem.first_point, learner.start(), 0
    whole = learner.absorb(learner.start(), 0, V, y, point)
    for end in (1, 1, n // 3, n - 1, n):
        exact, t = learner.absorb(exact, t, V[t:end].copy(), y[t:end].copy(), point), end
    row, whole_row = learner.statistic(exact, n)[1], learner.statistic(whole, n)[1]
    fault = "a stream cut into blocks ends elsewhere"
    remedy = "Take examples one by one, or add them on a lattice (rounded, of taciturn.learners.exact_sums)."
    states, rows = _apart(exact, whole), _apart({"row": row}, {"row": whole_row})
    demand(same(exact, whole) and not rows, f"{fault}: its row by {rows:.3g}, its state by {states:.3g}", remedy)


def _apart(one: Arrays, other: Arrays) -> float:
    """The largest difference of two entries of the same place; infinite if there are other places."""
    if {name: np.shape(one[name]) for name in one} != {name: np.shape(other[name]) for name in other}:
        return float("inf")
    pairs = [(np.asarray(one[name], float), np.asarray(other[name], float)) for name in one]
    apart = [float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs if not np.array_equal(a, b)]
    return max(apart, default=0.0)


def rows_and_points_have_their_size(trial: Trial) -> None:
    """Rows have `statistic_size` entries within `magnitude`, points lie in the domain, and the state keeps its types.

    A mechanism cuts what is larger than certified, and a decision outside the domain is no decision.
    """
    learner, (V, y), n = trial.learner, trial.bounded, trial.rows
    exact, row = learner.statistic(learner.absorb(learner.start(), 0, V, y, learner.problem.first_point), n)
    legal = row.shape == (learner.statistic_size,) and row.dtype == np.float64
    demand(legal, f"a row is {row.dtype} of shape {row.shape}", f"Hand over {learner.statistic_size} floats.")
    most = learner.certificate.magnitude * (n if learner.certificate.reach == "entry" else 1)
    largest = float(np.max(np.abs(row)))
    demand(largest <= most, f"an entry of a row is {largest:.5g}, and certified are {most:.5g}", "State its magnitude.")
    demand(_kinds(exact) == _kinds(learner.start()), "the state changes its names or types", "Keep those of start().")
    _decides_in_the_domain(trial, row if learner.certificate.metric == "l2" else np.zeros(1))


def _decides_in_the_domain(trial: Trial, row: np.ndarray) -> None:
    """With little noise and with much."""
    learner, rng = trial.learner, generator(1)
    for sd in (0.0, 0.1, 1e3) if len(row) == learner.statistic_size else (0.0,):
        point = learner.decide(trial.rows, row + sd * rng.normal(size=len(row)), sd)
        demand(
            point.shape == (learner.problem.size,), f"a point has shape {point.shape}", "Return problem.size floats."
        )
        inside = learner.problem.domain.contains(point)
        demand(inside, f"noise of deviation {sd:g} takes the point out of the domain", "End decide with a projection.")


def _kinds(state: Arrays) -> dict[str, tuple[type, np.dtype[Any]]]:
    return {name: (type(array), array.dtype) for name, array in state.items()}


def rows_at_once_are_rows_one_by_one(trial: Trial) -> None:
    """The compiled statistics and decisions are those of `absorb`, `statistic` and `decide`, up to rounding."""
    from taciturn.compiled.passes import statistics_of

    learner, (V, y) = trial.learner, trial.bounded
    if (batch := statistics_of(learner)) is None:
        skip(f"{type(learner).__name__} has no compiled statistics")
    for rounds in (np.arange(1, trial.rows + 1), np.array([1, trial.rows // 2]), np.array([trial.rows])):
        ending, slow = statistics(learner, learner.start(), 0, V, y, rounds)
        end, fast = batch(learner.start(), 0, V, y, rounds)
        remedy = "Make the fast form do what the verbs do, or leave it out."
        demand(fast.shape == slow.shape, f"the compiled statistics have shape {fast.shape}", remedy)
        apart = np.max(np.abs(fast - slow), axis=1) / (learner.certificate.at(rounds) + np.finfo(float).tiny)
        fault = f"a compiled statistic is off by {np.max(apart):.3g} of what one example moves"
        demand(np.max(apart) <= ROUNDING, fault, remedy)
        demand(_kinds(end) == _kinds(ending), "the compiled statistics leave another kind of state", remedy)
        sd = np.full(len(rounds), 0.1)
        points = np.array([learner.decide(int(t), row, 0.1) for t, row in zip(rounds, fast, strict=True)])
        alike = np.allclose(batch.decide(rounds, fast, sd), points, rtol=1e-9, atol=1e-9)
        demand(alike, "the compiled decision differs from decide", remedy)


CHECKS = (
    absorb_and_hand_over_are_pure,
    decide_is_pure,
    cuts_do_not_matter,
    rows_and_points_have_their_size,
    rows_at_once_are_rows_one_by_one,
)
