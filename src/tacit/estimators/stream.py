"""One private stream behind a front door."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tacit.accounting.cost import FREE, Cost
from tacit.accounting.ledger import Ledger
from tacit.arrays import Array, Arrays
from tacit.averages import late_average
from tacit.errors import StateConflict
from tacit.plan import Plan
from tacit.release import Releases
from tacit.state import State, read_beside


class PrivacyWarning(UserWarning):
    """Something is spent, or becomes public, that a user of a front door may not expect."""


class Spent(NamedTuple):
    """What was spent: an epsilon, rounded up, at a delta."""

    epsilon: float
    delta: float


class Stream:
    """Learns by a plan, and keeps the model to use; copies and pickles of it keep the model and none of the secrets.

    Parameters
    ----------
    plan : Plan
        How to learn.
    ledger : Ledger, optional
        Where the stream's cost is reserved; by default in one of its own.

    Attributes
    ----------
    t, k : int
        Examples learnt from, and releases made.
    model : ndarray
        The point to use: the last released, or the late average of the released ones, as the plan says; the data-free
        point before the first.

    Examples
    --------
    >>> from tacit.estimators.request import Request
    >>> plan = Request("logistic", epsilon=1.0, feature_bound=1.0, classes=2, seed=1).plan(dimension=2, horizon=3)
    >>> stream = Stream(plan)
    >>> releases = stream.learn([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> stream.t, stream.k, stream.spent.epsilon <= 1.0
    (3, 3, True)
    """

    def __init__(self, plan: Plan, ledger: Ledger | None = None) -> None:
        self.plan = plan
        self._state: State | None
        self._remember(plan.private.start(ledger), plan.private.problem.first_point)

    def learn(self, X: Any, y: Any) -> Releases:
        """Learn from these rows, and return what they released; a refused row leaves everything as it was."""
        state, releases = self.plan.private.run(self._live, X, y)
        self._remember(state, self._model_after(releases))
        return releases

    def _remember(self, state: State, model: Array) -> None:
        """The state comes last: who is stopped half-way is left with one that is used up, and learns nothing twice."""
        self.t, self.k, self._cost, self.model, self._state = state.t, state.k, state.spent, model, state

    def _model_after(self, releases: Releases) -> Array:
        if not len(releases):
            return self.model
        if not self.plan.averages:
            return np.array(releases.points[-1])
        before = self.plan.private.timetable.due(self.k) if self.k else 0
        return late_average(releases, self.model if self.k else None, before or 0)

    @property
    def spent(self) -> Spent:
        """What the releases so far cost, at the budget's delta."""
        delta = self.plan.private.privacy.delta
        return Spent(0.0 if self._cost == FREE else self._cost.epsilon(delta), delta)

    @property
    def cost(self) -> Cost:
        """The same as a value that adds."""
        return self._cost

    def dump(self, path: str | os.PathLike[str], beside: Arrays | None = None) -> None:
        """Write where the stream stands, secrets included: keep the file as you keep the data."""
        self._live.dump(path, {"model": self.model, **(beside or {})})

    @classmethod
    def load(cls, plan: Plan, path: str | os.PathLike[str], ledger: Ledger | None = None) -> Stream:
        """Go on from where `dump` stood, under the same plan, with the numbers that the stream began with."""
        stream, beside = cls.__new__(cls), read_beside(path)
        if "model" not in beside:
            raise StateConflict(f"{path} has no model beside its state. Give a file that the dump() of a model wrote.")
        state = plan.private.load(path, ledger)
        stream.plan = replace(plan, private=plan.private.resumed(state))
        stream._remember(state, beside["model"])
        return stream

    @property
    def _live(self) -> State:
        if self._state is None:
            raise StateConflict(
                "this is a copy: it can predict, and the stream goes on where it was opened. Learn on there, or open a "
                "second stream, which spends as much again; to move a stream, dump() it and load it."
            )
        return self._state

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_state": None}
