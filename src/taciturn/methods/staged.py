"""Stages: what a learner needs to know of the data, ranges for instance, found privately in the stream's first rows.

A stage reads its own rows, a public number of them, and makes one release after the last. What later stages do may
depend on it. The last stage is the learner itself, on the rows that remain.

**What stages cost one example.** Let every stage be mu-GDP by itself, and let its rows be disjoint from those of the
others. Then all releases together are mu-GDP, with the largest mu of the stages and not the root of the sum of squares,
also if the stream is adaptive and the position of the example in which the worlds differ is chosen from releases.
*Proof.* The example lies in one stage, and all that is released before that stage ends comes from stages whose rows are
the same in both worlds, so it has the same law in both. Given its value, an adversary distinguishes the worlds by the
releases of that stage, which have trade-off function at least `G_mu`, and by later ones, which follow from those and
from rows that are the same in both: post-processing. On average over what came before, errors of the first kind add up
to a and errors of the second kind to at least the mean of `G_mu(a(before))`, which is at least `G_mu(a)`, as `G_mu` is
convex. ∎ (A stage that is not last makes one release, after its rows: whether the example lies in it was decided
before. With several releases the same holds by a filter: Smith, Thakurta, *Fully Adaptive Composition for Gaussian
Differential Privacy*, 2022.) What the sampler adds (`Cost.extra_epsilon`, `extra_delta`) compares all noise that is
drawn with ideal noise, so it adds up over stages. It would be wrong to take the largest: a release that fails with
probability delta can announce that it fails before the example is chosen (Henzinger, Safavi, Vadhan, *Concurrent
Composition for Continual Mechanisms*, 2024).

**What they cost a user** with up to k rows. With k_s of them in stage s, which is mu_s(k_s)-GDP for so many, all
releases are mu-GDP with `mu² = Σ mu_s(k_s)²`; the largest sum over all splits of k is charged, also if the split is
chosen from releases (by the same filter). Which rows count is decided as in one stream, with a stage for a block.

None of this holds for two streams on disjoint files: who has which file is nothing that the code enforces. Their costs
add.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from taciturn.accounting.ledger import LedgerLike, as_ledger
from taciturn.core.private import Private
from taciturn.errors import InvalidInput, Unprovable
from taciturn.kernel.accounting.cost import FREE, Cost, total
from taciturn.kernel.accounting.gdp import Privacy, epsilon_of
from taciturn.kernel.accounting.guarantee import Guarantee, least_certain
from taciturn.kernel.accounting.ledger_rules import ONE_OFF
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.learners.contributions import wired
from taciturn.kernel.problem.inputs import part_of
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.block_sums import BlockSums
from taciturn.kernel.stream.participation import UserRecords
from taciturn.kernel.stream.protocols import Calibrated, Certificate, Learner, Mechanism, damaged
from taciturn.kernel.stream.release import Release, Releases
from taciturn.kernel.stream.schedule import Schedule, Timetable, at
from taciturn.kernel.stream.state import Standing, State, standing_at, standing_of

_MOST_SPLIT = 64  # rows of a user up to which all splits are compared; for more, a sum over stages is charged
_SAME = 1.0 + 2.0**-30  # up to which two machines compute the same bound
_SAFE = 1.0 - 1e-7  # stages are planned this far inside the budget, more than their rounding errors


class Stage(Protocol):
    """One release after a public number of rows, and what follows from it for the problem."""

    @property
    def rows(self) -> int:
        """How many rows it reads."""

    @property
    def mechanism(self) -> Mechanism:
        """What adds the noise."""

    def learner(self, problem: Problem, earlier: tuple[Array, ...]) -> Learner:
        """What is released, given the problem as it is known so far and the points of earlier stages.

        Its certificate does not depend on them: without any, it is that of a learner for the same kind of problem.
        """

    def after(self, problem: Problem, point: Array) -> Problem:
        """The problem that later stages learn; its certificate is that of the one before, whatever was released."""


@dataclass(frozen=True)
class Shifted:
    """A schedule that begins after so many rounds."""

    schedule: Schedule
    rounds: int

    def round_of(self, k: int) -> int | None:
        """The round of the k-th release."""
        due = self.schedule.round_of(k)
        return None if due is None else due + self.rounds


@dataclass(frozen=True)
class Staged(Private):
    """A private learner whose first rows go to stages, at the full budget each (see `taciturn.methods.staged`).

    Its states, releases and ledger entries are those of one stream. `k` and `releases` count the learner's releases;
    what stages have found is in the state, and `found` and `problem_at` tell it.

    Parameters
    ----------
    learner, mechanism, schedule, privacy, horizon, seed, compiled, unit
        As in `Private`; the horizon counts all rows, the schedule those after the stages. The learner's problem has
        the bounds of the problem that stages lead to.
    stages : tuple of Stage
        In their order.

    Examples
    --------
    >>> from taciturn import L2Ball, Logistic, Privacy, Problem
    >>> from taciturn.plan import recommend
    >>> problem = Problem(Logistic(), L2Ball(40.0), dimension=2)
    >>> private = recommend(problem, Privacy(1.0, 1e-6), horizon=50_000, ranges="private").private
    >>> [type(stage).__name__ for stage in private.stages], private.borders
    (['Ranges', 'Scales', 'Scales'], [0, 300, 600, 900])
    """

    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        if self.calibration != "exact":
            raise InvalidInput("stages are proven for exact noise. Use calibration='exact'.")
        if not self.stages:
            raise InvalidInput("a staged stream has at least one stage. Use Private, which has none.")
        if self.horizon is not None and self.horizon <= self.rows_of_stages:
            raise InvalidInput(
                f"the stages alone take {self.rows_of_stages:,} rows, and the horizon is {self.horizon:,}. State what "
                "they would find, ranges and bounds, or learn from more rows."
            )
        super().__post_init__()

    @cached_property
    def timetable(self) -> Timetable:
        """The rounds that publish models."""
        horizon = self.horizon
        if horizon is None and (last := Timetable(self.schedule, None).horizon) is not None:  # a schedule that ends
            horizon = self.rows_of_stages + last
        return Timetable(Shifted(self.schedule, self.rows_of_stages), horizon)

    @cached_property
    def parts(self) -> tuple[Private, ...]:
        """The stages and the learner, each as a private learner of its own rows, before anything is found."""
        return self._calibrated_for(self._share)

    @property
    def learning(self) -> Private:
        """The last of the parts."""
        return self.parts[-1]

    @property
    def last_round(self) -> int | None:
        """The last round that the stream can release, rows of stages included; None if it never ends."""
        last = self.learning.last_round
        return None if last is None else self.rows_of_stages + last

    @property
    def calibrated(self) -> Calibrated:
        """The learner's calibrated mechanism."""
        return self.learning.calibrated

    @property
    def certificate(self) -> Certificate:
        """The learner's certificate, for all rows of one unit of privacy."""
        return self.learning.certificate

    @cached_property
    def total_cost(self) -> Cost:
        """The largest cost of a stage, or of a split of a user's rows, and the sampler's of all of them."""
        return self._cost([part.total_cost for part in self.parts], list(self.parts))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is claimed and what is delivered, for everything that can ever be published, stages included."""
        simulated = self.seed is not None
        other = self._under_the_other_relation
        least = least_certain(part.guarantee for part in self.parts)
        made = partial(Guarantee, self.privacy, self.total_cost, self.neighbours, "exact", simulated, self.unit, other)
        return made(least.rests_on, least.by)

    @property
    def _under_the_other_relation(self) -> Cost | None:
        """The largest cost of a part; not computed for users of several rows."""
        costs = [part._under_the_other_relation for part in self.parts]
        if self.unit.participation.rows > 1 or any(cost is None for cost in costs):
            return None
        return self._cost([cost for cost in costs if cost is not None], list(self.parts))

    def user_over(self, periods: int) -> Cost:
        """The cost for a user who contributes in so many periods: the parts' costs, added up."""
        return total(part.user_over(periods) for part in self.parts)

    @cached_property
    def _share(self) -> Privacy:
        """The budget of each part, for which all of them together keep the budget."""
        parts = self._calibrated_for(self.privacy)
        cost = self._cost([part.total_cost for part in parts], list(parts))
        left = replace(cost, mu_squared=0.0)
        epsilon = self.privacy.epsilon - left.extra_epsilon
        delta = (self.privacy.delta - left.extra_delta) * math.exp(-left.extra_epsilon / 2.0)
        if not cost.gaussian or cost.plain_epsilon or epsilon <= 0.0 or delta <= 0.0:
            raise Unprovable("stages are proven for Gaussian noise within the sampler's reach. Use a larger epsilon.")
        largest = max(part.total_cost.mu for part in parts)
        mu = Privacy(epsilon, delta).mu * min(1.0, largest / cost.mu) * _SAFE
        return Privacy(epsilon_of(self.privacy.delta, mu), self.privacy.delta)

    def _calibrated_for(self, privacy: Privacy) -> tuple[Private, ...]:
        """The parts with this budget each."""
        made: list[Private] = []
        for stage in self.stages:
            learner = stage.learner(self.learner.problem, ())
            made.append(self._part(len(made), learner, stage.mechanism, at([stage.rows]), stage.rows, privacy))
        rest = None if self.horizon is None else self.horizon - self.rows_of_stages
        return (*made, self._part(len(made), self.learner, self.mechanism, self.schedule, rest, privacy))

    def _part(
        self, index: int, learner: Learner, mechanism: Mechanism, schedule: Schedule, rows: int | None, privacy: Privacy
    ) -> Private:
        seed = None if self.seed is None else seed_of(self.seed, index)
        return Private(learner, mechanism, schedule, privacy, rows, seed=seed, compiled=self.compiled, unit=self.unit)

    def _cost(self, costs: list[Cost], parts: list[Private]) -> Cost:
        """What these costs of the first parts come to, for one unit."""
        extra = total(costs)
        if isinstance(self.unit, User) and self.unit.participation.rows > 1:
            return replace(extra, mu_squared=self._largest_split(costs, parts))
        return replace(extra, mu_squared=max((cost.mu_squared for cost in costs), default=0.0))

    def _largest_split(self, costs: list[Cost], parts: list[Private]) -> float:
        """The largest sum of mu² over all splits of a user's rows, with the noise of these parts."""
        assert isinstance(self.unit, User)
        rows = self.unit.participation.rows
        summed = math.fsum(cost.mu_squared for cost in costs)
        if rows > _MOST_SPLIT or len(parts) == 1:
            return summed
        best = [0.0] * (rows + 1)
        for part, cost in zip(parts, costs, strict=True):
            by_rows = [0.0, *[cost.mu_squared] * rows]
            if part.certificate.reach == "entry":  # what fewer rows cost is known
                fewer = [part.cost_for(self.unit.with_rows(j)).mu_squared for j in range(1, rows)]
                by_rows[1:-1] = np.minimum(fewer, cost.mu_squared).tolist()
            best = [max(best[j - i] + by_rows[i] for i in range(j + 1)) for j in range(rows + 1)]
        return min(best[rows] * (1.0 + 2.0**-45), summed)

    # ---- learning ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, ledger: LedgerLike | None = None, users: Any = None) -> Release:
        """Learn from a data set, as a new stream, and return the last release (not `self`)."""
        prepared = self.prepare(self.draft(), list(X) if isinstance(X, Iterator) else X, y, users)
        if not len(prepared.releases):
            raise InvalidInput(f"fit() got {prepared.state.t} examples, too few for a release. State that horizon.")
        self._open(prepared.state, as_ledger(ledger), ONE_OFF)  # reserves and spends in one step
        return prepared.releases[-1]

    def _learnt(
        self, state: State, rows: Any, labels: Array, excluded: NDArray[np.bool_] | None
    ) -> tuple[Standing, Releases]:
        """Where the stream stands after these examples, and the models released, stage by stage."""
        found = self._found(state.public, state.t)
        index = len(found)
        part = self._known(found)
        here = self._inner(state, index)
        done = 0
        while True:
            end = len(labels)
            if index < len(self.stages):
                end = min(end, self.borders[index + 1] - state.t)
            without = None if excluded is None else excluded[done:end]
            here, released = part._loop(
                here, part_of(rows, done, end), part.problem.in_own_units(labels[done:end]), without, first=done
            )
            done = end
            if index == len(self.stages):
                return self._outer(here, index, found), self._shown(released, state.k + 1)
            if state.t + done < self.borders[index + 1]:
                return self._outer(here, index, found), self._shown(None, 1)
            found = (*found, released[-1].point)
            index += 1
            part = self._known(found)
            here = self._first(part)

    def _learnt_from_sums(self, state: State, parts: list[BlockSums]) -> tuple[Standing, Releases]:
        """The same from sums, stage by stage; a stage's statistics are sums of integers, too."""
        found = self._found(state.public, state.t)
        index, t = len(found), state.t
        part = self._known(found)
        here = self._inner(state, index)
        left = deque(parts)
        while True:
            these: list[BlockSums] = []
            last = self.borders[index + 1] if index < len(self.stages) else None
            while left and (last is None or t < last):
                these.append(left.popleft())
                t += these[-1].count
            here, released = part._sum_loop(here, these)
            if index == len(self.stages):
                return self._outer(here, index, found), self._shown(released, state.k + 1)
            if t < self.borders[index + 1]:
                return self._outer(here, index, found), self._shown(None, 1)
            found = (*found, released[-1].point)
            index += 1
            part = self._known(found)
            here = self._first(part)

    def learner_at(self, state: State) -> Learner:
        """The learner of the next rows: that of the stage that they lie in, or with what all stages have found."""
        one = self.resumed(state)
        return one._known(one._found(state.public, state.t)).learner

    @cached_property
    def _reads(self) -> Problem:
        """The problem that reads labels in the units in which they come; each part has units of its own."""
        return replace(self.problem, label_center=0.0, label_scale=1.0)

    def _shown(self, released: Releases | None, first: int) -> Releases:
        """The learner's releases, by rounds of the stream; what stages release is in the state."""
        simulated = self.seed is not None
        if released is None or not len(released):
            empty = np.empty((0, 0))
            return Releases(np.empty(0, dtype=np.int64), first, empty, empty, np.empty(0), simulated)
        rounds = released.rounds + self.rows_of_stages
        return Releases(rounds, released.first, released.noisy, released.points, released.noise_sd, simulated)

    def _known(self, found: tuple[Array, ...]) -> Private:
        """The part that follows what was found, with the problem as it is known then."""
        last, known = self._last_known
        if len(last) == len(found) and all(a is b for a, b in zip(last, found, strict=True)):
            return known
        part = self.parts[len(found)]
        problem = self._problem_after(found)
        if len(found) < len(self.stages):
            learner = wired(self.stages[len(found)].learner(problem, found))
        else:
            learner = part.learner.on_problem(problem)
        one = copy(part)  # with its noise: what was found does not change the certificate
        object.__setattr__(one, "learner", learner)
        if learner.statistic_size != part.learner.statistic_size or (one._certified > part._certified * _SAME).any():
            raise Unprovable("a certificate must not depend on what stages find. Let it follow from stated bounds.")
        object.__setattr__(one, "calibrated", part.calibrated)
        object.__setattr__(self, "_last_known", (found, one))
        return one

    @cached_property
    def _last_known(self) -> tuple[tuple[Array, ...], Private]:
        """Cache of the last answer of `_known`."""
        return (), self.parts[0]

    def _problem_after(self, found: tuple[Array, ...]) -> Problem:
        problem = self.learner.problem
        for stage, each in zip(self.stages, found, strict=False):
            problem = stage.after(problem, each)
        return problem

    def problem_at(self, state: State) -> Problem:
        """The problem as it is known at `state`, with the map of features that its stages have found; public."""
        return self._problem_after(self._found(state.public, state.t))

    def found(self, state: State) -> tuple[Array, ...]:
        """What the stages have released by now; public."""
        return self._found(state.public, state.t)

    def _found(self, public: Arrays, t: int) -> tuple[Array, ...]:
        """The same, out of the arrays of a state."""
        done = sum(border <= t for border in self.borders[1:])
        try:
            return tuple(public[f"found{i}"] for i in range(done))
        except KeyError as name:
            raise damaged(f"public {name.args[0]} is missing", "arrays") from None

    def _first(self, part: Private) -> Standing:
        """The beginning of a part."""
        return Standing(0, 0, part.learner.start(), *part.calibrated.start(), part.problem.first_point)

    def _inner(self, state: State, index: int) -> Standing:
        """Where the part stands in which the stream is."""
        public = {name: array for name, array in state.public.items() if not name.startswith("found")}
        return standing_of(state)._replace(t=state.t - self.borders[index], public=public)

    def _outer(self, here: Standing, index: int, found: tuple[Array, ...]) -> Standing:
        """The same for the stream; before the learner begins, its point is the first one."""
        public = here.public | {f"found{i}": each for i, each in enumerate(found)}
        point = here.point if index == len(self.stages) else self.problem.first_point
        k = here.k if index == len(self.stages) else 0
        return here._replace(t=self.borders[index] + here.t, k=k, public=public, point=point)

    def draft(self) -> State:
        """The first state of a stream that is not open yet."""
        begun = super().draft()
        return standing_at(begun, self._outer(self._first(self.parts[0]), 0, ()))

    def _blocks(self, rounds: Integers) -> Integers:
        """A stage is a block; those of the learner follow."""
        stage = np.searchsorted(self.borders[1:], rounds, side="left")
        after = self.learning.timetable.block_of(np.maximum(rounds - self.rows_of_stages, 1))
        return np.where(stage < len(self.stages), stage + 1, after + len(self.stages))

    def _next_state(self, state: State, at: Standing, users: UserRecords | None) -> State:
        """The next state; what stages release costs, too."""
        new = super()._next_state(state, at, users)
        return new if new is state else replace(new, spent=self.spent_after(at.t, at.k))

    def spent_after(self, t: int, k: int) -> Cost:
        """The cost of what was released by round t."""
        done = sum(border <= t for border in self.borders[1:])
        if done == 0:
            return FREE
        costs = [part.total_cost for part in self.parts[:done]]
        if k:
            costs.append(self.learning.calibrated.cost(k))
        return self._cost(costs, list(self.parts[: len(costs)]))

    # ---- calibrated numbers of a state --------------------------------------------------------------

    @cached_property
    def _numbers(self) -> Arrays:
        """The numbers of all parts."""
        parts = enumerate(self.parts)
        return {f"{i}.{name}": array for i, part in parts for name, array in part._numbers.items()}

    def _restored(self, numbers: Arrays) -> Self:
        """A copy with the numbers of a state, validated."""
        each: dict[str, Arrays] = {str(i): {} for i in range(len(self.parts))}
        for name, array in numbers.items():
            index, _, rest = name.partition(".")
            if index not in each:
                raise damaged("they are not those of this stream")
            each[index][rest] = array
        one = copy(self)
        parts: list[Private] = []
        for i, part in enumerate(self.parts):
            lenient = copy(part)  # its share follows from fits, which differ between machines: the total is checked
            object.__setattr__(lenient, "privacy", self.privacy)
            object.__setattr__(lenient, "calibrated", part.calibrated)
            parts.append(lenient._restored(each[str(i)]))
        object.__setattr__(one, "parts", tuple(parts))
        if not one.guarantee.proven:
            raise damaged("they cost more than the budget")
        return one

    def _check_arrays(self, state: State) -> None:
        """Reject a state out of a file whose arrays are not those of this stream."""
        found = self._found(state.public, state.t)
        for i, each in enumerate(found):
            shape = (self.parts[i].learner.point_size,)
            if each.dtype != np.float64 or each.shape != shape or not np.isfinite(each).all():
                raise damaged(f"public found{i} should be finite, float64 of shape {shape}", "arrays")
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                part = self._known(found)
        except (InvalidInput, Unprovable, ArithmeticError) as problem:
            raise damaged("public arrays have what no stage finds", "arrays") from problem
        here = self._inner(state, len(found))
        if state.point.shape != (self.problem.size,) or state.point.dtype != np.float64:
            raise damaged(f"the point should be float64 of shape {(self.problem.size,)}", "arrays")
        point = here.point if len(found) == len(self.stages) else part.problem.first_point
        part._check_arrays(standing_at(state, here._replace(point=point)))


def seed_of(seed: int, index: int) -> int:
    """A seed for each part of a simulation, so that no two have the same noise."""
    return int.from_bytes(hashlib.sha256(f"{seed} part {index}".encode()).digest()[:6], "big")
