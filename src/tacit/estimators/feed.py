"""Examples that come one at a time, handed to a private stream in blocks."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NoReturn

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput, StateConflict
from tacit.estimators.dict_rows import Features, Row
from tacit.estimators.labels import Labels
from tacit.estimators.row_scores import RowScores
from tacit.estimators.stream import Stream

_ROWS, _VALUES = 1024, 2**20  # most rows, and most entries of them, that are held


class Feed:
    """Holds rows until there are enough of them, or until someone looks at a model that they have changed.

    How a stream is cut into calls changes nothing of what it releases, so a block costs what one call does and each
    example next to nothing. What can be refused is refused when it comes, not when its block is handed over. Rows that
    are held are secret: copies and pickles have none, can predict, and leave learning to the original. Threads that
    share it take turns, for a block that two of them hand over would be learnt twice. A signal handler, or a finalizer,
    that comes in the middle of a thread's own turn predicts with the last model, and learns nothing: it is rejected.

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
    >>> from tacit.estimators.dict_rows import NamedFeatures
    >>> from tacit.estimators.labels import Classes
    >>> from tacit.estimators.request import Request
    >>> plan = Request("logistic", epsilon=1.0, feature_bound=1.0, classes=2, release=2, seed=1).plan(1, horizon=None)
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
        self._held: list[tuple[Row, float]] = []
        self._turn, self._learning = threading.RLock(), False
        self._since, self._most = stream.t, max(1, min(_ROWS, _VALUES // features.dimension))
        self._settle()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Take one example, or refuse it before anything changes."""
        row, label = self.features.row(x), self.labels(y)
        if not math.isfinite(sum(row) + label):
            self._refuse_bad(row, label)
        with self._turn:
            if self._learning:
                self._reject_reentry()
            try:
                self._learning = True
                if len(self._held) >= self._room:  # past the horizon, or in a copy: the stream says so
                    self._hand_over()
                    self._hand(self.features.block([row]), [label])
                else:
                    self._held.append((row, label))
                    if len(self._held) == self._room:
                        self._hand_over()
            finally:
                self._learning = False

    def learn_many(self, X: Any, y: Any) -> None:
        """Take the rows of a data frame, as one after the other; a bad one refuses all of them."""
        labels = np.array([self.labels(label) for label in y])
        if self.problem.on_bad == "raise" and np.isnan(labels).any():
            raise InvalidInput(self._bad_label(f"the label of row {int(np.argmax(np.isnan(labels)))}"))
        block = self.features.table(X)
        self._alone(self._hand_over, lambda: self._hand(block, labels))

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
        return self._since + len(self._held)

    @property
    def learns(self) -> bool:
        """Whether this is the original, and no copy."""
        return self._most > 0

    def look(self) -> Stream:
        """The stream, with every release made that is due."""
        if len(self._held) >= self._due:
            with self._turn:
                if not self._learning:
                    self.hand_over()
        return self.stream

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Hand over what is held, and write where the stream stands."""
        self._alone(self._hand_over, lambda: self.stream.dump(path))

    def hand_over(self) -> None:
        """Let the stream learn what is held."""
        self._alone(self._hand_over)

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

    def _hand_over(self) -> None:
        self._settle()
        if self._held:
            rows, labels = zip(*self._held, strict=True)
            self._hand(self.features.block(rows), labels)

    def _hand(self, block: Any, labels: Any) -> None:
        try:
            self.stream.learn(block, labels)
        finally:
            self._settle()

    def _settle(self) -> None:
        """Drop what the stream has learnt, which an interruption cannot make it learn twice, and look ahead."""
        t, timetable = self.stream.t, self.stream.plan.private.timetable
        horizon, due = timetable.horizon, timetable.due(self.stream.k + 1)
        room = self._most if horizon is None else min(self._most, horizon - t)
        wait = math.inf if due is None else due - t
        self._held, self._since, self._room, self._due = self._held[t - self._since :], t, room, wait

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
        with self._turn:
            self.look()
            return {**vars(self), "stream": copy(self.stream), "_held": [], "_most": 0, "_room": 0, "_turn": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turn=threading.RLock(), _learning=False)


_LET_PASS = 'Or set on_bad="zero", and rare ones like it pass as examples without influence.'
