"""A private stream: its position, what it learns from the next rows, and what follows from its releases.

There are two kinds: `taciturn.streams.stored.StoredStream`, in a database, and `taciturn.estimators.stream.Stream`, in
the memory of this process. Both prepare rows in memory and commit them in one step of their store; they differ in who
may read what was prepared, and in what happens to it if the commit is stopped.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from taciturn.drift import Drift
from taciturn.kernel.accounting.cost import Cost, Spent
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.stream.release import Releases
from taciturn.kernel.stream.state import State
from taciturn.kernel.stream.stream import Prepared
from taciturn.plan import Plan
from taciturn.streams.published import Published


class Followed:
    """What follows from the releases of one step, and of all before it; computed when it is first asked for.

    So averages, memories and drift are computed outside of the step from one state to the next: it is complete without
    them, and an interruption here loses nothing, as they are computed again. Threads that ask at once compute the same.
    """

    def __init__(self, before: Published, releases: Releases | None) -> None:
        self._made: tuple[Published, Releases | None, Array] = before, releases, np.empty((0, len(before.model)))

    def __call__(self) -> tuple[Published, Array]:
        """What follows, and the model to use after each release of the step."""
        published, releases, models = self._made
        if releases is not None:
            published, models = published.after(releases)
            self._made = published, None, models  # in one step, for other threads
        return published, models


class Tip(NamedTuple):
    """Where a stream is, what the last step released, and the text of releases that are not committed.

    A copy has no state.
    """

    state: State | None
    t: int
    k: int
    cost: Cost
    problem: Problem
    releases: Releases | None
    followed: Followed
    lines: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return f"Tip(t={self.t}, k={self.k}, secrets not shown)"

    @property
    def published(self) -> Published:
        """What follows from all releases."""
        return self.followed()[0]

    @property
    def models(self) -> Array:
        """The model to use after each release of the last step."""
        return self.followed()[1]


class PrivateStream:
    """A private stream that learns by a plan, and has the current model.

    Parameters
    ----------
    plan : Plan
        How to learn, with the calibration that the stream began with.
    state : State
        Where it begins.
    published : Published
        What follows from the releases so far.
    """

    def __init__(self, plan: Plan, state: State, published: Published) -> None:
        self.plan = plan
        self._delta = plan.private.privacy.delta
        problem = plan.private.problem_at(state)
        self._tip = Tip(state, state.t, state.k, state.spent, problem, None, Followed(published, None))

    @property
    def _now(self) -> Tip:
        """Where the next rows begin."""
        return self._tip

    @property
    def _state(self) -> State:
        state = self._now.state
        assert state is not None  # of a copy, which does not learn
        return state

    def prepare(self, X: Any, y: Any, users: Any = None, now: datetime | None = None) -> Releases:
        """Learn the next rows, in memory; their releases are not to be shown before `commit`.

        A rejected row leaves everything as it was. `users` and `now` are those of `Private.run`.
        """
        before, state = self._now, self._state
        before.followed()  # here, and not between this step and its commit
        return self._take(before, self.plan.private.prepare(state, X, y, users, now))

    def _take(self, before: Tip, prepared: Prepared) -> Releases:
        """Go on to what was prepared, in one step."""
        self._tip = self._following(before, prepared)
        return prepared.releases

    def _following(self, before: Tip, prepared: Prepared) -> Tip:
        state, releases = prepared.state, prepared.releases
        problem = self.plan.private.problem_at(state)
        return Tip(state, state.t, state.k, state.spent, problem, releases, Followed(before.published, releases))

    @property
    def t(self) -> int:
        """Number of rows so far, those without influence included."""
        return self._now.t

    @property
    def k(self) -> int:
        """Number of releases made."""
        return self._now.k

    @property
    def model(self) -> Array:
        """The point to use."""
        return self._now.published.model

    @property
    def problem(self) -> Problem:
        """The problem with which the model predicts, with the map of features that was found by now; public."""
        return self._now.problem

    @property
    def drift(self) -> Drift | None:
        """How far released statistics moved from window to window, in units of their noise; None if that is not known.

        It is public, and not known for one-off fits and for streams that find ranges first.
        """
        return self._now.published.drift

    @property
    def cost(self) -> Cost:
        """The cost of the releases so far, as a value that adds."""
        return self._now.cost

    @property
    def spent(self) -> Spent:
        """What the releases so far cost, at the budget's delta."""
        return self.cost.spent_at(self._delta)

    @property
    def left(self) -> int | None:
        """Rounds left before the horizon; None without a horizon."""
        horizon = self.plan.private.timetable.horizon
        return None if horizon is None else horizon - self.t
