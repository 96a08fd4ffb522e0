"""Examples that come one at a time, handed to a private stream in blocks."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, NoReturn

import numpy as np

from taciturn._util.arrays import Array
from taciturn.errors import InvalidInput, StateConflict
from taciturn.estimators.dict_rows import Features, Row
from taciturn.estimators.labels import Labels
from taciturn.estimators.stream import Stream
from taciturn.problem.clipping import longest_row
from taciturn.problem.predict import coefficients
from taciturn.problem.problem import Problem

_ROWS, _VALUES = 1024, 2**20  # most rows, and most entries of them, that are held


class _Held(NamedTuple):
    """Rows that came after the first `since`; when there is room for no more, and when there are enough to release."""

    rows: list[tuple[Row, float]]
    since: int
    room: int
    due: float


class Feed:
    """Holds rows until there are enough of them, or until someone looks at a model that they have changed.

    How a stream is cut into calls changes nothing of what it releases, so a block costs what one call does and each
    example next to nothing. What can be refused is refused when it comes, not when its block is handed over. Rows that
    are held are secret: copies and pickles have none, can predict, and leave learning to the original. Threads that
    share it take turns, for a block that two of them hand over would be learnt twice. A signal handler, or a finalizer,
    that comes in the middle of a thread's own turn predicts with the last model, and learns nothing: it is rejected. In
    a forked process it is a copy: it predicts by the last model that its parent had released.

    A call that is interrupted has taken its row, which `examples` then counts, or has not; no row is learnt twice, and
    the next call goes on (`Stream` has the proof).

    Parameters
    ----------
    stream : Stream
        Where blocks go.
    features : Features
        How dicts become rows.
    labels : Labels
        How labels become numbers.

    Examples
    --------
    >>> from taciturn.estimators.dict_rows import NamedFeatures
    >>> from taciturn.estimators.labels import Classes
    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("logistic", epsilon=1.0, feature_bound=1.0, classes=2, release=2, seed=1).plan(1, horizon=None)
    >>> feed = Feed(Stream(plan), NamedFeatures(["a"]), Classes([False, True]))
    >>> for a in (0.5, -0.5, 0.25):
    ...     feed.learn_one({"a": a}, a > 0)
    >>> feed.examples, feed.stream.t, feed.look().k, feed.stream.t
    (3, 0, 1, 3)
    """

    def __init__(self, stream: Stream, features: Features, labels: Labels) -> None:
        self.stream, self.features, self.labels = stream, features, labels
        self.problem = stream.plan.private.problem
        self._scores = RowScores(self.problem, stream.model, features)
        self._most, self._process = max(1, min(_ROWS, _VALUES // features.dimension)), os.getpid()
        self._turn, self._learning = threading.RLock(), False
        self._held = _Held([], stream.t, 0, math.inf)
        self._settle()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Take one example, or refuse it before anything changes."""
        row, label = self.features.row(x), self.labels(y)
        if not math.isfinite(sum(row) + label):
            self._refuse_bad(row, label)
        if os.getpid() != self._process:
            self.stream.must_learn()
        with self._turn:
            if self._learning:
                self._reject_reentry()
            try:
                self._learning = True
                held = self._held
                if len(held.rows) >= held.room:  # past the horizon, in a copy, or after an interruption
                    self._flush()
                    self._hand(self.features.block([row]), [label])
                else:
                    held.rows.append((row, label))
                    if len(held.rows) == held.room:
                        self._flush()
            finally:
                self._learning = False

    def learn_many(self, X: Any, y: Any) -> None:
        """Take the rows of a data frame, as one after the other; a bad one refuses all of them."""
        labels = np.array([self.labels(label) for label in y])
        if self.problem.on_bad == "raise" and np.isnan(labels).any():
            raise InvalidInput(self._bad_label(f"the label of row {int(np.argmax(np.isnan(labels)))}"))
        block = self.features.table(X)
        self.stream.must_learn()
        self._alone(self._flush, lambda: self._hand(block, labels))

    def scores(self, x: Mapping[Any, Any]) -> Any:
        """A float, or an array with one for each class, by the model to use now."""
        point, row = self.look().model, self.features.row(x)
        if point is not self._scores.point:
            self._scores = RowScores(self.problem, point, self.features)
        try:
            return self._scores(row)
        except InvalidInput:
            raise InvalidInput(self._bad_row(row)) from None

    def scores_many(self, X: Any) -> Array:
        """The same for each row of a data frame."""
        return self.problem.predict(self.look().model, self.features.table(X))

    @property
    def examples(self) -> int:
        """How many have come."""
        held = self._held
        return max(self.stream.t, held.since + len(held.rows))  # an interrupted block may have passed those held

    @property
    def learns(self) -> bool:
        """Whether this is the original, and no copy, nor in a forked process."""
        return self.stream.learns

    def look(self) -> Stream:
        """The stream, with every release made that is due; a forked process's has those of its parent."""
        held = self._held
        if len(held.rows) >= held.due and self.learns:
            with self._turn:
                if not self._learning:
                    self.flush()
        return self.stream

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Hand over what is held, and write where the stream stands."""
        self.stream.must_learn()
        self._alone(self._flush, lambda: self.stream.dump(path))

    def flush(self) -> None:
        """Let the stream learn what is held."""
        self._alone(self._flush)

    def _alone(self, *steps: Callable[[], None]) -> None:
        """These steps, with nothing of another thread or of a signal handler between them."""
        with self._turn:
            if self._learning:
                self._reject_reentry()
            try:
                self._learning = True  # within the block that takes it back: an interrupt leaves nothing taken
                for step in steps:
                    step()
            finally:
                self._learning = False

    def _reject_reentry(self) -> NoReturn:
        """It is this very thread that learns, as it has the turn."""
        raise StateConflict(
            "this model is in the middle of learning, in this thread: a signal handler or a finalizer cannot let it "
            "learn or dump it there. Let it note what to do, and do that afterwards."
        )

    def _flush(self) -> None:
        self._settle()
        if self._held.rows:
            rows, labels = zip(*self._held.rows, strict=True)
            self._hand(self.features.block(rows), labels)

    def _hand(self, block: Any, labels: Any) -> None:
        self._held = self._held._replace(room=0)  # until settled: whoever comes after an interruption does that first
        try:
            self.stream.learn(block, labels)
        finally:
            self._settle()

    def _settle(self) -> None:
        """Drop what the stream has learnt, which an interruption cannot make it learn twice, and look ahead."""
        stream, timetable, held = self.stream, self.stream.plan.private.timetable, self._held
        t, due = stream.t, timetable.due(stream.k + 1)
        most = self._most if timetable.horizon is None else min(self._most, timetable.horizon - t)
        wait = math.inf if due is None else due - t
        self._held = _Held(held.rows[t - held.since :], t, most, wait)

    def _refuse_bad(self, row: Row, label: float) -> None:
        """Unless all is finite, and only their sum is not; or bad rows are to pass."""
        if self.problem.on_bad == "zero":
            return
        if math.isnan(label):
            raise InvalidInput(self._bad_label("this label"))
        if not all(map(math.isfinite, row)):
            raise InvalidInput(self._bad_row(row))

    def _bad_label(self, which: str) -> str:
        return f"{which} cannot be used. Nothing was learnt. {self.labels.remedy} {_LET_PASS}"

    def _bad_row(self, row: Row) -> str:
        return (
            f"{self.features.blame(row)} of this example is not a finite number. Nothing was learnt. Mend it, or leave "
            f"it out, which is 0. {_LET_PASS}"
        )

    def __getstate__(self) -> dict[str, Any]:
        stream = copy(self.look())
        return {**vars(self), "stream": stream, "_held": _Held([], stream.t, 0, math.inf), "_most": 0, "_turn": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turn=threading.RLock(), _learning=False)


class RowScores:
    """`v·x` at a released point for the row of one example, scaled down if it is too long: a float, or one a class.

    >>> from taciturn import L2Ball, Logistic
    >>> from taciturn.estimators.dict_rows import NamedFeatures
    >>> problem, named = Problem(Logistic(), L2Ball(1.0), dimension=2, intercept=1.0), NamedFeatures(["a", "b"])
    >>> round(RowScores(problem, np.array([0.6, 0.0, 0.1]), named)(named.row({"a": 0.5})), 12)
    0.4
    """

    def __init__(self, problem: Problem, point: Array, features: Features) -> None:
        self.point, self._problem, self._features = point, problem, features
        self._longest = longest_row(problem.feature_bound, problem.dimension)
        weights, constants = coefficients(problem, point)
        self._several = problem.outputs > 1
        self._weights = np.ascontiguousarray(weights if self._several else weights[0])
        self._constant: Any = constants if self._several else float(constants[0])

    def __call__(self, row: Row) -> Any:
        entries, weights = self._features.meet(row, self._weights)
        length = math.hypot(*entries.tolist())
        if not length < 1e280:  # near the end of floating point, or a bad row
            return self._problem.predict(self.point, self._features.block([row]))[0]
        if length > self._longest:
            entries = entries * (self._longest / length)
        scores = weights.dot(entries) + self._constant
        return scores if self._several else float(scores)


_LET_PASS = 'Or set on_bad="zero", and rare ones like it pass as examples without influence.'
