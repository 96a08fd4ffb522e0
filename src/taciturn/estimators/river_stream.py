"""A buffer of examples in front of a private stream, and scores of single rows."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from taciturn.columns.labels import Labels
from taciturn.errors import InvalidInput, StateConflict
from taciturn.estimators.dict_rows import Features, Row
from taciturn.estimators.stream import Stream
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.clipping import longest_row
from taciturn.kernel.problem.predict import coefficients
from taciturn.kernel.problem.problem import Problem
from taciturn.kernel.process import process_number
from taciturn.kernel.stream.participation import canonical

_ROWS, _VALUES = 1024, 2**20  # most rows, and most entries of them, in the buffer

UNREADABLE = object()
"""In the place of an id that cannot be read."""


class _Pending(NamedTuple):
    """Rows not learnt yet, which came after the first `since`; at `room` rows it is full, at `due` a release is due.

    A row has its label and its user's id beside it.
    """

    rows: list[tuple[Row, float, Any]]
    since: int
    room: int
    due: float


class Feed:
    """A buffer of rows in front of a stream; it is flushed when it is full, or when a model is read that is due.

    How a stream is cut into calls does not change what it releases, so a block costs one call and each example next to
    nothing. Bad rows are rejected when they come, not when their block is flushed. Pending rows are secret: copies and
    pickles have none, can predict, and leave learning to the original. Threads that share it take turns by a lock, as a
    block that two of them flush would be learnt twice. A signal handler, or a finalizer, that runs while its own thread
    learns predicts with the last model; its attempts to learn are rejected. In a forked process it is a copy: it
    predicts by the last model that its parent had released.

    A call that is interrupted has taken its row, which `examples` then counts, or has not; no row is learnt twice, and
    the next call goes on (`Stream` has the proof).

    Parameters
    ----------
    stream : Stream
        Learns from the blocks.
    features : Features
        Converts dicts to rows.
    labels : Labels
        Converts labels to numbers.
    user : hashable, optional
        The key of a dict, or the column of a data frame, that has the user's id, if the unit of privacy is a user.

    Examples
    --------
    >>> from taciturn.estimators.dict_rows import NamedFeatures
    >>> from taciturn.columns.labels import Classes
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, release=2, seed=1).plan(1, horizon=None)
    >>> feed = Feed(Stream(plan), NamedFeatures(["a"]), Classes([False, True]))
    >>> for a in (0.5, -0.5, 0.25):
    ...     feed.learn_one({"a": a}, a > 0)
    >>> feed.examples, feed.stream.t, feed.current().k, feed.stream.t
    (3, 0, 1, 3)
    """

    def __init__(self, stream: Stream, features: Features, labels: Labels, user: Hashable | None = None) -> None:
        self.stream = stream
        self.features = features
        self.labels = labels
        self.user = user
        self.problem = stream.plan.private.problem
        self._timetable = stream.plan.private.timetable
        unit = stream.plan.private.unit
        self._needs_id = isinstance(unit, User) and unit.without_id == "bad" and self.problem.on_bad == "raise"
        self._scores = RowScores(self.problem, stream.model, features)
        self._most = max(1, min(_ROWS, _VALUES // features.dimension))
        self._process = process_number()
        self._lock = threading.RLock()
        self._frame: FrameType | None = None  # of the call that is learning
        self.on_first: Callable[[], None] | None = None  # called before the first row is learnt here
        self._pending = _Pending([], stream.t, 0, math.inf)
        self._drop_learnt()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Add one example to the buffer, or reject it before anything changes."""
        row = self.features.row(x)
        label = self.labels(y)
        user = None if self.user is None else self._id(x.get(self.user))
        if user is UNREADABLE:
            row, user = self.features.bad_row, None
        if not math.isfinite(sum(row) + label):
            self._reject_bad(row, label)
        if process_number() != self._process:
            self.stream.must_learn()
        if self.on_first is not None:
            self._count()
        if self._frame is not None:
            self._reject_reentry()
        with self._lock:
            try:
                self._frame = sys._getframe()
                pending = self._pending
                if len(pending.rows) >= pending.room:  # past the horizon, in a copy, or after an interruption
                    self._flush()
                    self._learn_block(self.features.block([row]), [label], [user])
                else:
                    pending.rows.append((row, label, user))
                    if len(pending.rows) == pending.room:
                        self._flush()
            finally:
                self._frame = None

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a data frame, as from one after the other; a bad row rejects all of them."""
        labels = np.array([self.labels(label) for label in y])
        if self.problem.on_bad == "raise" and np.isnan(labels).any():
            raise InvalidInput(self._bad_label(f"the label of row {int(np.argmax(np.isnan(labels)))}"))
        block = self.features.table(X)
        users: list[Any] = [None] * len(labels)
        if self.user is not None and self.user in X.columns:
            users = [self._id(user, f"row {i}") for i, user in enumerate(X[self.user].tolist())]
            if any(user is UNREADABLE for user in users):
                records = zip(X.to_dict("records"), users, strict=True)
                features = self.features
                rows = [features.bad_row if user is UNREADABLE else features.row(x) for x, user in records]
                block = features.block(rows)
                users = [None if user is UNREADABLE else user for user in users]
        elif self._needs_id:
            self._id(None, "row 0")
        self.stream.must_learn()
        if self.on_first is not None:
            self._count()
        self._exclusively(self._flush, lambda: self._learn_block(block, labels, users))

    def _count(self) -> None:
        """Tell, once, that this stream learns."""
        begun, self.on_first = self.on_first, None
        if begun is not None and self.stream.learns:
            begun()

    def scores(self, x: Mapping[Any, Any]) -> Any:
        """The score of an example by the current model: a float, or an array with one for each class."""
        stream = self.current()
        point = stream.model
        row = self.features.row(x)
        scores = self._scores
        if point is not scores.point:
            self._scores = scores = scores.at(stream.problem, point)
        try:
            return scores(row)
        except InvalidInput:
            raise InvalidInput(self._bad_row(row)) from None

    def scores_many(self, X: Any) -> Array:
        """The scores of the rows of a data frame."""
        stream = self.current()
        stream.warn_before_first(self.examples, stacklevel=3)  # but of no single row: river predicts before it learns
        return stream.problem.predict(stream.model, self.features.table(X))

    @property
    def examples(self) -> int:
        """Number of examples so far, pending ones included."""
        pending = self._pending
        return max(self.stream.t, pending.since + len(pending.rows))  # an interrupted block may have been learnt

    @property
    def learns(self) -> bool:
        """Whether this is the original, and neither a copy nor in a forked process."""
        return self.stream.learns

    def current(self) -> Stream:
        """The stream, after a flush if a release is due; in a forked process, as the parent left it."""
        pending = self._pending
        if len(pending.rows) >= pending.due and self.stream.learns and not self._is_nested():
            self._exclusively(self._flush)
        return self.stream

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Flush, and write a checkpoint of the stream."""
        self.stream.must_learn()
        self._exclusively(self._flush, lambda: self.stream.dump(path))

    def flush(self) -> None:
        """Let the stream learn from all pending rows."""
        self._exclusively(self._flush)

    def _exclusively(self, *steps: Callable[[], None]) -> None:
        """Run these steps without another thread or a signal handler between them."""
        self._reject_reentry()
        with self._lock:
            try:
                self._frame = sys._getframe()
                for step in steps:
                    step()
            finally:
                self._frame = None

    def _is_nested(self) -> bool:
        """Whether this call comes from within one that is learning: by a signal handler, or a finalizer.

        Then the frame of that call is below this one on the stack. A flag, or the owner of the lock, would not do: an
        interruption just before it is reset would leave it set, and the model would never learn again.
        """
        if self._frame is None:
            return False
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None

    def _reject_reentry(self) -> None:
        """Reject a call from within a call that is learning."""
        if self._is_nested():
            raise StateConflict(
                "this model is in the middle of learning, in this thread: a signal handler or a finalizer cannot let "
                "it learn or dump it there. Let it note what to do, and do that afterwards."
            )

    def _flush(self) -> None:
        if self._pending.since != self.stream.t:  # a call was interrupted after it had learnt
            self._drop_learnt()
        if pending := self._pending.rows:
            rows, labels, users = zip(*pending, strict=True)
            self._learn_block(self.features.block(rows), labels, users)

    def _learn_block(self, block: Any, labels: Any, users: Sequence[Any]) -> None:
        labels = np.asarray(labels, dtype=np.float64)
        ids = None if self.user is None else np.fromiter(users, dtype=object, count=len(users))  # tuples stay one id
        rows, since, _, due = self._pending
        self._pending = _Pending(rows, since, 0, due)  # until _drop_learnt: a call after an interruption flushes first
        try:
            self.stream.learn(block, labels, ids)
        finally:
            self._drop_learnt()

    def _drop_learnt(self) -> None:
        """Drop the rows that the stream has learnt, so that none is learnt twice, and compute the next limits."""
        timetable = self._timetable
        pending = self._pending
        t, k = self.stream.position
        due = timetable.due(k + 1)
        most = self._most if timetable.horizon is None else min(self._most, timetable.horizon - t)
        wait = math.inf if due is None else due - t
        self._pending = _Pending(pending.rows[t - pending.since :], t, most, wait)

    def _id(self, user: Any, which: str = "this example") -> Any:
        """The id of an example's user; one that is none is rejected when it comes, not when its block is flushed.

        Or it is `UNREADABLE`, if `on_bad` is "zero": such an example has no influence.
        """
        try:
            found = self._checked_id(user, which)
        except InvalidInput:
            if self.problem.on_bad == "zero":
                return UNREADABLE
            raise
        if self._needs_id and found is None:
            raise InvalidInput(
                f"{which} has no id under {self.user!r}. Nothing was learnt. Give every example one; or set "
                'on_bad="zero" to count such rows as examples without influence, or without_id="own" to take each for '
                "a user of its own."
            )
        return user

    def _checked_id(self, user: Any, which: str) -> bytes | None:
        """The canonical form of an id, None for a missing one; what is none is an error."""
        try:
            hash(user)
        except TypeError:
            raise InvalidInput(
                f"the id of {which} under {self.user!r} must be a number or a text, got {type(user).__name__}. Nothing "
                "was learnt. Give each example one id."
            ) from None
        if isinstance(user, float | np.floating) and math.isfinite(user) and not float(user).is_integer():
            raise InvalidInput(
                f"the id of {which} under {self.user!r} must be an integer or a text, got another number, as of a "
                "feature that was scaled. Nothing was learnt. Keep ids out of the transformers before the model, as in "
                f"NormClip(1.0, user={self.user!r})."
            )
        return canonical(user)

    def _reject_bad(self, row: Row, label: float) -> None:
        """Reject a bad row or label, unless `on_bad` is "zero"; a sum may overflow although all entries are finite."""
        if self.problem.on_bad == "zero":
            return
        if math.isnan(label):
            raise InvalidInput(self._bad_label("this label"))
        missing = self.problem.features is not None and self.problem.features.takes_missing
        if not all(math.isfinite(entry) or (missing and math.isnan(entry)) for entry in row):
            raise InvalidInput(self._bad_row(row))

    def _bad_label(self, which: str) -> str:
        return f"{which} cannot be used. Nothing was learnt. {self.labels.remedy} {_ZERO_OUT}"

    def _bad_row(self, row: Row) -> str:
        return (
            f"{self.features.describe_bad_feature(row)} of this example is not a finite number. Nothing was learnt. "
            "Declare what a missing value is, by columns={'age': {'range': [0, 100]}} or by PublicScaler before the "
            f"model, or leave the name out, which is 0. {_ZERO_OUT}"
        )

    def __getstate__(self) -> dict[str, Any]:
        stream = copy(self.current())
        return {
            **vars(self),
            "stream": stream,
            "_pending": _Pending([], stream.t, 0, math.inf),
            "_most": 0,
            "_lock": None,
            "_frame": None,
            "on_first": None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())


class RowScores:
    """Scores `v·x` of single rows at a released point, clipped, in a few microseconds: a float, or one for each class.

    Slow twin: `taciturn.kernel.problem.problem.Problem.predict`.

    >>> from taciturn import L2Ball, Logistic
    >>> from taciturn.estimators.dict_rows import NamedFeatures
    >>> problem, named = Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=1.0), NamedFeatures(["a", "b"])
    >>> round(RowScores(problem, np.array([0.6, 0.0, 0.1]), named)(named.row({"a": 0.5})), 12)
    0.4
    """

    _constant: Any

    def __init__(self, problem: Problem, point: Array, features: Features) -> None:
        self._problem = problem
        self._features = features
        units = (problem.label_center, problem.label_scale)
        self._slow = problem.features is not None or units != (0.0, 1.0)
        self._dimension = problem.mapped_dimension
        self._intercept = problem.intercept if problem.width > self._dimension else 0.0
        self._longest = longest_row(problem.feature_bound, self._dimension)
        self._several = problem.outputs > 1
        self._use(point)

    def _use(self, point: Array) -> None:
        self.point = point
        if self._several:
            weights, self._constant = coefficients(self._problem, point)
            self._weights = np.ascontiguousarray(weights)
        else:  # the same, in less time: a stream may have a new model after every example
            self._weights = point[: self._dimension]
            self._constant = self._intercept * point.item(self._dimension) if self._intercept else 0.0

    def at(self, problem: Problem, point: Array) -> RowScores:
        """Scores at another point, in less time if the problem is the same; these stay as they are."""
        if problem is not self._problem:
            return type(self)(problem, point, self._features)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._use(point)
        return other

    def __call__(self, row: Row) -> Any:
        if self._slow:
            return self._scores_of(row)
        entries, weights = self._features.meet(row, self._weights)
        squared = float(np.vdot(entries, entries))  # which never warns of an overflow
        length = math.sqrt(squared) if 1e-280 < squared < 1e280 else math.hypot(*entries.tolist())
        if not length < 1e280:  # near overflow, or a bad row
            return self._scores_of(row)
        if length > self._longest:
            entries = entries * (self._longest / length)
        scores = weights.dot(entries) + self._constant
        return scores if self._several else float(scores)

    def _scores_of(self, row: Row) -> Any:
        scores = self._problem.predict(self.point, self._features.block([row]))[0]
        return scores if self._several else float(scores)


_ZERO_OUT = 'Or set on_bad="zero" to count rows like it as examples without influence.'
