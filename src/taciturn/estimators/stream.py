"""The private stream behind an estimator: it learns by a plan, and has the current model."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from taciturn._util.arrays import Array, Arrays
from taciturn._util.html import budget_bar, card, facts
from taciturn._util.output import rounded_up
from taciturn._util.process import process_number
from taciturn.accounting.cost import Cost, Spent
from taciturn.accounting.guarantee import Guarantee
from taciturn.accounting.ledger import Ledger, LedgerLike, as_ledger
from taciturn.core.accounted import Prepared
from taciturn.core.release import Releases
from taciturn.core.state import State, read_extra
from taciturn.drift import Drift
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, TaciturnError, Unprovable
from taciturn.plan import Plan
from taciturn.problem.problem import Problem
from taciturn.renewal import Renewal
from taciturn.streams.published import Published


class PrivacyWarning(UserWarning):
    """Something is spent, becomes public, or is not learnt yet, that a user of an estimator may not expect."""


class NotReleased(InvalidInput, AttributeError):
    """An attribute of a model that exists from its first release on."""


class _Snapshot(NamedTuple):
    """The position of a stream, its model, and what the latest call released; a copy has no state.

    `published` is what follows from all releases, `problem` that with which the model predicts, and `models` has the
    model to use after each of these releases.
    """

    state: State | None
    t: int
    k: int
    cost: Cost
    published: Published
    problem: Problem
    releases: Releases | None
    models: Array | None = None


class Stream:
    """A private stream that learns by a plan, and has the current model; copies and pickles have no secrets.

    **Interruptions.** A call that is stopped anywhere, by Ctrl-C say, has learnt all of its rows or none, and the next
    call goes on from there. *Proof.* A call prepares the next state, model and releases as one object, stores it as
    `_pending`, commits, and stores it as `_at`; each is a single step. Stopped before the commit, the ledger does not
    have the pending state as its newest one, and it is never used. Stopped after it, the ledger has, and the next
    access makes it `_at`. Calls take turns, so no other call replaces what is pending before it was looked at. ∎
    A simulation has no ledger: it has learnt when it stores `_at`.

    Parameters
    ----------
    plan : Plan
        How to learn.
    ledger : Ledger, optional
        Where the stream's cost is reserved; by default a new one.
    reserve : bool
        Whether to reserve it now, or with the first rows that are learnt, so that a stream that turns out not to be
        needed costs nothing.

    Attributes
    ----------
    t, k : int
        Rows so far, those without influence included, and releases made.
    model : ndarray
        The point to use: the last released, the late average of the released ones, or that of the memory that fits
        best, as the plan says; the data-free point before the first.
    releases : Releases, optional
        What the latest call released; None before the first.

    Examples
    --------
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, seed=1).plan(dimension=2, horizon=3)
    >>> stream = Stream(plan)
    >>> releases = stream.learn([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    >>> stream.t, stream.k, stream.spent.epsilon <= 1.0
    (3, 3, True)
    """

    def __init__(self, plan: Plan, ledger: LedgerLike | None = None, reserve: bool = True) -> None:
        private = plan.private
        state = private.start(ledger) if reserve else private.draft()
        self._begin(plan, state, Published.start(plan), None if reserve else as_ledger(ledger))

    def _begin(self, plan: Plan, state: State, published: Published, unopened: Ledger | None = None) -> None:
        self.plan = plan
        # in which it learns; None for a simulation: in any
        self._process = None if state.simulated else process_number()
        self._unopened = unopened  # the ledger that does not know the stream yet
        self._rejection: TaciturnError | None = None
        self._lock = threading.RLock()
        self._warned = False
        problem = plan.private.problem_at(state)
        self._at = self._pending = _Snapshot(state, state.t, state.k, state.spent, published, problem, None)

    def learn(self, X: Any, y: Any, users: Any = None, now: datetime | None = None) -> Releases:
        """Learn from these rows, and return what they released; a rejected row leaves everything as it was.

        `users` and `now` are those of `Private.run`, for a plan whose unit is a user.
        """
        releases = self._learn(lambda state: self.plan.private.prepare(state, X, y, users, now))
        assert releases is not None
        return releases

    def learn_if(
        self, wanted: Callable[[], bool], X: Any, y: Any, users: Any = None, now: datetime | None = None
    ) -> Releases | None:
        """The same, if `wanted()` once the rows are found good; else nothing is learnt or spent, and it returns None.

        So an estimator can decide at the last moment that another stream, opened meanwhile, is the one to use.
        """
        return self._learn(lambda state: self.plan.private.prepare(state, X, y, users, now), wanted)

    def _learn(self, prepare: Callable[[State], Prepared], wanted: Callable[[], bool] | None = None) -> Releases | None:
        private = self.plan.private
        self.must_learn()  # before the lock, which a thread of the parent may hold in a forked process
        with self._lock:
            before = self._now
            assert before.state is not None
            prepared = prepare(before.state)
            if wanted is not None and not wanted():
                return None
            self._open()
            new, releases = prepared.state, prepared.releases
            published, models = before.published.after(releases)
            problem = private.problem_at(new)
            self._pending = at = _Snapshot(new, new.t, new.k, new.spent, published, problem, releases, models)
            private.commit(prepared)
            self._at = at
        return releases

    def _open(self) -> None:
        """Reserve the cost, if that was put off; a call that was interrupted in it is repeated without effect.

        A stream that the ledger has rejected stays rejected, so that an estimator may forget it.
        """
        if self._rejection is not None:
            raise self._rejection
        if self._unopened is not None:
            try:
                self.plan.private.open(self._live, self._unopened)
            except (BudgetExhausted, Unprovable) as error:
                self._rejection = error
                raise
            self._unopened = None

    def reserve(self) -> None:
        """Reserve the cost now, if that was put off."""
        self.must_learn()
        with self._lock:
            self._open()

    @property
    def rejected(self) -> bool:
        """Whether its ledger has rejected it."""
        return self._rejection is not None

    @property
    def _now(self) -> _Snapshot:
        """The position of the stream, including a commit whose call was interrupted before it could store it."""
        if self._pending is not self._at and process_number() == self._process:
            with self._lock:
                pending = self._pending
                if pending.state is not None and self.plan.private.is_live(pending.state):
                    self._at = pending
        return self._at

    @property
    def t(self) -> int:
        """Number of rows so far, those without influence included."""
        return self._now.t

    @property
    def k(self) -> int:
        """Number of releases made."""
        return self._now.k

    @property
    def lineage(self) -> str | None:
        """The name of the stream in ledgers; None in a copy."""
        state = self._now.state
        return None if state is None else state.lineage

    @property
    def position(self) -> tuple[int, int]:
        """Numbers of rows and of releases, at one time."""
        now = self._now
        return now.t, now.k

    @property
    def model(self) -> Array:
        """The point to use."""
        return self._now.published.model

    @property
    def problem(self) -> Problem:
        """The problem with which the model predicts, with the map of features that was found by now; public."""
        return self._now.problem

    @property
    def releases(self) -> Releases | None:
        """What the latest call released."""
        return self._now.releases

    def warn_before_first(self, examples: int, stacklevel: int) -> None:
        """Warn, once, if examples came and a prediction does not depend on them: no model was released yet."""
        if self._warned or self.k or not examples:
            return
        self._warned = True
        due = self.plan.private.timetable.due(1)
        warnings.warn(
            f"no model has been released yet: after {examples:,} examples, predictions are those of a model that has "
            f"learnt from none. The first model is released after example {due:,} of the stream; state release= for "
            "an earlier one.",
            PrivacyWarning,
            stacklevel=stacklevel + 1,
        )

    @property
    def models(self) -> Array:
        """The model to use after each of the releases of the latest call, one row each."""
        models = self._now.models
        return np.empty((0, len(self.model))) if models is None else models

    @property
    def renewal(self) -> Renewal:
        """What a successor starts from: the model in use, which was released, and what the streams so far cost; public.

        >>> from taciturn.estimators.settings import Settings
        >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0, seed=1).plan(1, horizon=2)
        >>> stream = Stream(plan)
        >>> releases = stream.learn([[0.6], [1.0]], [0.5, -0.5])
        >>> len(stream.renewal.point), len(stream.renewal.charges)
        (2, 1)
        """
        return self.renewal_at(self.plan.private.guarantee)

    def renewal_at(self, guarantee: Guarantee) -> Renewal:
        """The same, of a stream that is part of something with this guarantee, such as a search."""
        if not self.k:
            raise NotReleased("nothing was released yet, so there is no model to start from. Learn more rows first.")
        return Renewal.of(self.model.tolist(), guarantee, self.plan.means, self.plan.renewal)

    @property
    def drift(self) -> Drift | None:
        """How far released statistics moved from window to window, in units of their noise; None if that is not known.

        It is public, and not known for one-off fits and for streams that find ranges first.
        """
        return self._now.published.drift

    def _extra(self, extra: Arrays | None) -> Arrays:
        """What a checkpoint stores beside the state."""
        return self._now.published.arrays | (extra or {})

    @property
    def spent(self) -> Spent:
        """What the releases so far cost, at the budget's delta."""
        return self.cost.spent_at(self.plan.private.privacy.delta)

    def _repr_html_(self) -> str:
        private, spent = self.plan.private, self.spent
        epsilon, seeded = private.privacy.epsilon, private.seed is not None
        title = f"Stream: epsilon = {epsilon:g} at delta = {spent.delta:g}"
        words = [f"spent {rounded_up(spent.epsilon)}", f"reserved {epsilon:g}, with what is spent"]
        told = [
            ("rows learnt", f"{self.t:,}"),
            ("releases", f"{self.k:,}"),
            ("unit", f"{private.unit}, {private.neighbours}"),
            ("method", f"{self.plan.method}: {self.plan.why}"),
        ]
        bar = budget_bar(spent.epsilon, epsilon, epsilon, words)
        return card(f"Simulation: not private. {title}" if seeded else title, bar, facts(told), alarm=seeded)

    @property
    def cost(self) -> Cost:
        """The cost of the releases so far, as a value that adds."""
        return self._now.cost

    def dump(self, path: str | os.PathLike[str], extra: Arrays | None = None) -> None:
        """Write a checkpoint of the stream. It holds secrets: protect the file like the data."""
        self.must_learn()
        with self._lock:
            self._open()
            self._live.dump(path, self._extra(extra))

    @classmethod
    def load(
        cls,
        plan: Plan,
        path: str | os.PathLike[str] | bytes,
        ledger: LedgerLike | None = None,
    ) -> Stream:
        """Resume from a checkpoint, under the same plan, with the calibration that the stream began with."""
        stream, extra = cls.__new__(cls), read_extra(path)
        if "model" not in extra:
            name = "this content" if isinstance(path, bytes) else path
            raise StateConflict(f"{name} has no model besides its state. Give the file of a dumped model.")
        state = plan.private.load(path, ledger)
        plan = replace(plan, private=plan.private.resumed(state))
        stream._begin(plan, state, Published.resumed(plan, state.k, extra))
        return stream

    @property
    def learns(self) -> bool:
        """Whether it can learn here: it is the original, in the process that opened it, or a simulation in any."""
        process = self._process
        return self._at.state is not None and (process is None or process == process_number())

    def must_learn(self) -> None:
        """Reject a copy, and a forked process."""
        if self.learns:
            return
        if self._at.state is None:
            raise StateConflict(
                "this is a copy: it can predict, and the stream goes on where it was opened. Learn on there, or open a "
                "second stream, which spends a second budget; to move a stream, dump() it and load it."
            )
        raise StateConflict(
            "this is a forked process: here the model can predict, and its stream goes on in the process that opened "
            "it. Learn on there; or dump the stream there, and load it here."
        )

    @property
    def _live(self) -> State:
        state = self._now.state
        assert state is not None
        return state

    def __getstate__(self) -> dict[str, Any]:
        at = self._now._replace(state=None)
        return {**vars(self), "_at": at, "_pending": at, "_lock": None, "_unopened": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _pending=state["_at"], _lock=threading.RLock())


def promised(plan: Plan, guarantee: Guarantee | None = None) -> str:
    """The guarantee of a stream, or of what it is part of; if it follows another, with what is promised in both."""
    guarantee = plan.private.guarantee if guarantee is None else guarantee
    return str(guarantee) if plan.renewal is None else f"{guarantee} {plan.renewal.promise(guarantee)}"


class DriftUnknown(InvalidInput, AttributeError):
    """An attribute that models do not have whose released statistics cannot be compared."""


def known_drift(stream: Stream) -> Drift:
    """The drift of a stream, or an error that says why it is not known."""
    drift = stream.drift
    if drift is not None:
        return drift
    if stream.plan.private.stages:
        raise DriftUnknown(
            "drift is not known of a stream that finds ranges first: what it releases before and after is not "
            "comparable. State the ranges and bounds that are private, and leave precondition out, to see it."
        )
    raise DriftUnknown(
        "drift is not known of a model that is published once, or by the exponential mechanism: it needs a stream of "
        "releases. Learn by partial_fit."
    )


def budgets_html(stream: Stream | None, ledger: LedgerLike | None) -> str:
    """The budgets of a stream and of a ledger as HTML; nothing of what is not there, and of a ledger only its address.

    >>> budgets_html(None, None)
    ''
    """
    shown = "" if stream is None else stream._repr_html_()
    return shown + (ledger._repr_html_() if isinstance(ledger, Ledger) else "")
