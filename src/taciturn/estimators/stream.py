"""The private stream behind an estimator: it learns by a plan, and has the current model."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from taciturn._util.html import budget_bar, card, facts
from taciturn.accounting.ledger import Ledger, LedgerLike, as_ledger
from taciturn.drift import Drift
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict, TaciturnError, Unprovable
from taciturn.kernel.accounting.guarantee import Guarantee
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.arrays import Array, Arrays
from taciturn.kernel.process import process_number
from taciturn.kernel.stream.release import Releases
from taciturn.kernel.stream.state import State, read_extra
from taciturn.kernel.stream.stream import Prepared
from taciturn.plan import Plan
from taciturn.renewal import Renewal
from taciturn.streams.private_stream import PrivateStream, Tip
from taciturn.streams.published import Published


class PrivacyWarning(UserWarning):
    """Something is spent, becomes public, or is not learnt yet, that a user of an estimator may not expect."""


class NotReleased(InvalidInput, AttributeError):
    """An attribute of a model that exists from its first release on."""


class Stream(PrivateStream):
    """A private stream in the memory of this process (`taciturn.accounting.memory_store`); copies have no secrets.

    A row that was prepared and not committed is forgotten, as its caller gives it again.

    **Interruptions.** A call that is stopped anywhere, by Ctrl-C say, has learnt all of its rows or none, and the next
    call goes on from there. *Proof.* A call prepares the next state and its releases as one object, stores it as
    `_attempt`, commits, and stores it as `_at`; each is a single step. Stopped before the commit, the ledger does not
    have that state as its newest one, and it is never used. Stopped after it, the ledger has, and the next access makes
    it `_at`. Calls take turns, so no other call replaces the attempt before it was looked at. ∎
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
    lock : lock
        Held by who prepares and commits in two calls; `learn` is both in one.

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
        super().__init__(plan, state, published)
        self._at = self._attempt = self._tip  # as of the last commit, and of the last that was begun
        # in which it learns; None for a simulation: in any
        self._process = None if state.simulated else process_number()
        self._unopened = unopened  # the ledger that does not know the stream yet
        self._rejection: TaciturnError | None = None
        self.lock = threading.RLock()
        self._warned = False

    def learn(self, X: Any, y: Any, users: Any = None, now: datetime | None = None) -> Releases:
        """Learn from these rows, and return what they released; a rejected row leaves everything as it was.

        `users` and `now` are those of `Private.run`, for a plan whose unit is a user.
        """
        self.must_learn()  # before the lock, which a thread of the parent may hold in a forked process
        with self.lock:
            releases = self.prepare(X, y, users, now)
            self.commit(releases)
        return releases

    def learn_if(self, wanted: Callable[[], bool], X: Any, y: Any, users: Any = None) -> Releases | None:
        """Learn as `learn` does, if this is wanted once the rows are prepared; None, and nothing is learnt, if not.

        The lock is held meanwhile, as others may find the stream before it has learnt.
        """
        with self.lock:
            releases = self.prepare(X, y, users)
            if not wanted():
                return None
            self.commit(releases)
        return releases

    def commit(self, releases: Releases) -> None:
        """Commit the step that made these releases, the latest; its cost is reserved now, if that was put off."""
        at, tip = self._now, self._tip
        if tip.releases is not releases or at.state is None or tip.state is None:
            raise StateConflict(
                "another call learnt while this one did, in the same thread: nothing was learnt from these rows. Let a "
                "signal handler note what to do, and learn afterwards."
            )
        if tip is at:  # a commit that was interrupted had taken effect
            return
        self._open()
        self._attempt = tip
        self.plan.private.commit(Prepared(at.state, tip.state, releases))
        self._at = tip

    def _open(self) -> None:
        """Reserve the cost, if that was put off; a call that was interrupted in it is repeated without effect.

        A stream that the ledger has rejected stays rejected, so that an estimator may forget it.
        """
        if self._rejection is not None:
            raise self._rejection
        if self._unopened is not None:
            try:
                self.plan.private.open(self._state, self._unopened)
            except (BudgetExhausted, Unprovable) as error:
                self._rejection = error
                raise
            self._unopened = None

    def reserve(self) -> None:
        """Reserve the cost now, if that was put off."""
        self.must_learn()
        with self.lock:
            self._open()

    @property
    def rejected(self) -> bool:
        """Whether its ledger has rejected it."""
        return self._rejection is not None

    @property
    def _now(self) -> Tip:
        """Where the stream is, including a commit whose call was interrupted before it could store it."""
        if self._attempt is not self._at and process_number() == self._process:
            with self.lock:
                tip = self._attempt
                if tip.state is not None and self.plan.private.is_live(tip.state):
                    self._at = tip
        return self._at

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
        return self._now.models

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

    def dump(self, path: str | os.PathLike[str], extra: Arrays | None = None) -> None:
        """Write a checkpoint of the stream. It holds secrets: protect the file like the data."""
        self.must_learn()
        with self.lock:
            self._open()
            self._state.dump(path, self._now.published.arrays | (extra or {}))

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

    def __getstate__(self) -> dict[str, Any]:
        at = self._now._replace(state=None)
        return {**vars(self), "_at": at, "_attempt": at, "_tip": at, "lock": None, "_unopened": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _attempt=state["_at"], _tip=state["_at"], lock=threading.RLock())


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
