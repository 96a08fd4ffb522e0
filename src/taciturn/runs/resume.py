"""Where a resumed run goes on in its input."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import numpy as np

from taciturn._util.arrays import Array
from taciturn.core.state import read_extra
from taciturn.errors import StateConflict

if TYPE_CHECKING:
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


class RowDigest:
    """HMAC-SHA-256 over encoded rows and labels, under a key; however the rows are cut into blocks, it is the same.

    A bad row, one with something in it that is no number, counts as such whatever else is in it: it has no influence.
    The digest lies with the key in the secret state, and says nothing to who has only the one.

    Examples
    --------
    >>> X, y = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([1.0, -1.0])
    >>> whole, parts = RowDigest("key"), RowDigest("key")
    >>> whole.add(X, y)
    >>> parts.add(X[:1], y[:1])
    >>> parts.add(X[1:], y[1:])
    >>> whole.value == parts.value
    True
    """

    def __init__(self, key: str) -> None:
        self.key, self.rows = key, 0
        self._parts = [hmac.new(key.encode(), name, "sha256") for name in (b"features", b"labels")]

    def add(self, X: Array, y: Array) -> None:
        """The next rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(X.sum()) and np.isfinite(y.sum())
        if not fine:  # rarely; an overflow leads here in vain
            bad = ~(np.isfinite(X).all(axis=1) & np.isfinite(y))
            X, y = np.where(bad[:, None], np.nan, X), np.where(bad, np.nan, y)
        for part, values in zip(self._parts, (X, y), strict=True):
            part.update(np.ascontiguousarray(values, dtype=np.float64).data)
        self.rows += len(y)

    @property
    def value(self) -> str:
        """The digest of all rows so far."""
        return "".join(part.hexdigest() for part in self._parts)
