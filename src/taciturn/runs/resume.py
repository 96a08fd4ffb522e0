"""Where a resumed run goes on in its input."""

from __future__ import annotations

from taciturn._util.arrays import Array
from taciturn.core.state import read_extra
from taciturn.errors import StateConflict
from taciturn.runs.run import Run


class Unseen:
    """The rows of an input that a run has not learnt from yet, once those before them are known to be the same."""

    def __init__(self, run: Run) -> None:
        self.run, self.due = run, run.stream.t
        self.digest = str(read_extra(run.folder.state)["digest"])
        self._check()

    def of(self, X: Array, y: Array) -> tuple[Array, Array]:
        """What is new of these rows, the next of the input."""
        if self.due == 0:
            return X, y
        seen = min(self.due, len(y))
        self.run.seen.add(X[:seen], y[:seen])
        self.due -= seen
        self._check()
        return X[seen:], y[seen:]

    def _check(self) -> None:
        if self.due == 0 and self.run.seen.value != self.digest:
            raise StateConflict(
                f"the first {self.run.stream.t:,} rows are not those that this run learnt from. Give the same input, "
                "from its beginning; new rows go at its end."
            )

    def end(self) -> None:
        """The input has ended."""
        if self.due:
            raise StateConflict(
                f"this run learnt from {self.run.stream.t:,} rows, and the input ends after {self.run.seen.rows:,}. "
                "Give the same input, from its beginning."
            )
