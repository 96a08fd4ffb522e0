"""Exact values of a stream, on purpose. NOT PRIVATE: for checks, audits, tests and evidence alone.

`replay` runs a learner along releases that were made before, and adds no noise: what comes out are the statistics that
noise was, or would be, added to. The other functions open what a state, users' records or a part of a block hold. Who
may import this module is listed in `tests/kernel/test_secret.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from taciturn.kernel.arrays import Array, Arrays, Integers
from taciturn.kernel.mechanisms.strategy import sums_of
from taciturn.kernel.secret import opened
from taciturn.kernel.stream.block_sums import Admission, BlockSums
from taciturn.kernel.stream.loop import statistics, without_influence
from taciturn.kernel.stream.participation import Mask, UserRecords, admit, arrays_of, new_records, periods_of
from taciturn.kernel.stream.participation import record_of as _record_of
from taciturn.kernel.stream.protocols import Learner
from taciturn.kernel.stream.state import State


class Replayed(NamedTuple):
    """Exact memories of a learner after some rows, and a statistic for each release in them. NOT PRIVATE."""

    memories: Arrays
    statistics: Array

    def __repr__(self) -> str:
        return f"Replayed({len(self.statistics)} releases, NOT PRIVATE, not shown)"


def replay(
    learner: Learner,
    V: Array,
    y: Array,
    rounds: Integers,
    points: Array | None = None,
    *,
    begun: Arrays | None = None,
    t: int = 0,
    compiled: bool = False,
) -> Replayed:
    """Exact statistics of clipped examples, by the learner's own methods, along the points of earlier releases.

    Parameters
    ----------
    learner : Learner
        A learner that uses released points needs `points`.
    V, y : ndarray
        Clipped examples, rows without influence included.
    rounds : ndarray of int
        The rounds of the releases; rows after the last one enter the memories.
    points : ndarray, optional
        The point that was released in each of these rounds.
    begun, t : dict of ndarray, int
        Memories to go on from, after so many rows; by default the first ones.
    compiled : bool
        Use the fast twin of the statistics, if there is one and they depend on no released point.

    Examples
    --------
    >>> from taciturn import Privacy, private_sum
    >>> learner = private_sum(1, 1.0, Privacy(1.0, 1e-6), horizon=3).learner
    >>> replay(learner, np.array([[0.5], [0.25], [1.0]]), np.zeros(3), np.array([2, 3])).statistics.tolist()
    [[0.75], [1.0]]
    """
    exact = learner.start() if begun is None else begun
    if compiled:
        from taciturn.kernel.stream.passes import statistics_of

        if (fast := statistics_of(learner)) is not None:
            return Replayed(*fast(exact, t, V, y, rounds))
    return Replayed(*statistics(learner, exact, t, V, y, rounds, points))


def without_noise(private: Any, V: Array, y: Array, points: Array | None = None) -> Array:
    """The releases of a new stream of a `Private` without noise: statistics, or for `entry` their sums. NOT PRIVATE."""
    learner = private.learner
    rows = replay(learner, V, y, private.timetable.rounds, points, compiled=True).statistics
    return sums_of(private.calibrated.coder, rows) if learner.certificate.reach == "entry" else rows


def counts(private: Any, users: Any) -> Mask:
    """Which rows of a new stream count, by the definition, for a `Private` whose unit is a user. NOT PRIVATE.

    >>> from taciturn import Privacy, User, private_sum
    >>> counts(private_sum(1, 1.0, Privacy(1.0, 1e-6), 3, unit=User(rows=1)), ["anna", "bob", "anna"])
    array([ True,  True, False])
    """
    rounds = np.arange(1, len(users) + 1)
    blocks, periods = private.timetable.block_of(rounds), periods_of(private.unit, rounds, None)
    return admit(private.unit, new_records(0), users, blocks, periods, compiled=False)[0]


def counted(private: Any, V: Array, y: Array, users: Any) -> tuple[Array, Array]:
    """Clipped examples of a new stream, those that do not count without influence. NOT PRIVATE."""
    made: Any = without_influence(V, y, ~counts(private, users), private.problem.loss.labels)
    V, y = made
    return V, y


def arrays_in(state: State) -> dict[str, Arrays]:
    """The arrays of a state by their parts: exact, secret (the encode buffers), public and numbers. NOT PRIVATE."""
    exact, secret = opened(state.memories)
    return {"exact": exact, "secret": secret, "public": state.public, "numbers": state.numbers}


def exact_of(state: State) -> Arrays:
    """Exact memories of the learner. NOT PRIVATE."""
    return opened(state.memories)[0]


def buffers_of(state: State) -> Arrays:
    """Encode buffers of the mechanism. NOT PRIVATE."""
    return opened(state.memories)[1]


def record_of(users: UserRecords | None, user: Any) -> dict[str, int] | None:
    """The record of a user by id; None for one who has none. NOT PRIVATE.

    >>> record_of(new_records(seed=1), "anna") is None
    True
    """
    return None if users is None else _record_of(users, user)


def records_of(users: UserRecords) -> Arrays:
    """Records of all users, as a state's file has them, with their key. NOT PRIVATE."""
    return arrays_of(users)


def sums_in(part: BlockSums) -> Integers:
    """Exact integer sums of a part of a block. NOT PRIVATE."""
    return opened(part.sums)


def excluded_in(admission: Admission) -> Mask:
    """The rows that do not count. NOT PRIVATE."""
    return opened(admission.excluded)
