"""Resuming: skip the rows that a run has learnt from, after a check that they are the same."""

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
    """The rows of an input that a run has not learnt from yet; the rows before them are compared by their digest."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.due = run.stream.t
        self.digest = str(read_extra(run.folder.state)["digest"])
        self._check()

    def of(self, X: Array, y: Array) -> tuple[Array, Array]:
        """The new rows of the next block of the input."""
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
                f"the first {self.run.stream.t:,} rows are not those that this run learnt from. Pass the same input, "
                "from its beginning; append new rows at its end."
            )

    def end(self) -> None:
        """Check that the input had all rows that the run has learnt from."""
        if self.due:
            raise StateConflict(
                f"this run learnt from {self.run.stream.t:,} rows, but the input ends after {self.run.seen.rows:,}. "
                "Pass the same input, from its beginning."
            )


class RowDigest:
    """HMAC-SHA-256 of encoded rows and labels; it does not depend on how the rows are split into blocks.

    All bad rows, which contain a value that is not finite, have the same digest: they have no influence. The digest and
    its key are stored in the secret state; without the key, the digest reveals nothing about the rows.

    Examples
    --------
    >>> X, y = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([1.0, -1.0])
    >>> at_once, parts = RowDigest("key"), RowDigest("key")
    >>> at_once.add(X, y)
    >>> parts.add(X[:1], y[:1])
    >>> parts.add(X[1:], y[1:])
    >>> at_once.value == parts.value
    True
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.rows = 0
        self._parts = [hmac.new(key.encode(), name, "sha256") for name in (b"features", b"labels")]

    def add(self, X: Array, y: Array) -> None:
        """Add the next rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(X.sum()) and np.isfinite(y.sum())
        if not fine:  # rare; an overflow of the sum leads here too, and changes nothing
            bad = ~(np.isfinite(X).all(axis=1) & np.isfinite(y))
            X = np.where(bad[:, None], np.nan, X)
            y = np.where(bad, np.nan, y)
        for part, values in zip(self._parts, (X, y), strict=True):
            part.update(np.ascontiguousarray(values, dtype=np.float64).data)
        self.rows += len(y)

    @property
    def value(self) -> str:
        """The digest of all rows so far."""
        return "".join(part.hexdigest() for part in self._parts)
