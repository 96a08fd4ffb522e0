"""Integer noise by release number, and the shares of the budget in a stream without a horizon.

Without a horizon, release k gets the share `w_k = 1/l(k) - 1/l(k+1)` of the budget, `l(k) = 1 + ln k`; the sum over all
k is 1. Two neighbouring terms are less than a factor of two apart, so that their floating-point difference is exact and
the shares as computed telescope as the formula does.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from taciturn.kernel.accounting.gdp import Privacy
from taciturn.kernel.arrays import Arrays, Integers
from taciturn.kernel.noise.needed import NoiseNeeded, drawn
from taciturn.kernel.process import process_number
from taciturn.kernel.stream.protocols import Calibrated
from taciturn.kernel.stream.schedule import Timetable

BLOCK = 256
"""Releases whose seeded noise is drawn in one block."""

_NEVER = 2**62  # a round that never comes


_MOST_AHEAD = 64  # releases whose secret noise is drawn at once, for calls of one release
_MOST_VALUES = 2**13  # and values of it: a release of more is drawn by itself

_PROCESS = [object()]  # what marks the noise that this process has drawn


def _mark_child() -> None:
    _PROCESS[0] = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_child)


class NoiseAhead:
    """Secret noise of the next few releases of a stream, drawn ahead for calls of one release each; used once.

    Noise does not depend on the data, so it may be drawn before they come. To draw a row by itself takes ten times as
    long as to draw it with others. The rows are part of no state, and of nothing that is stored.

    **Claim.** No row is handed out twice: not by threads or signal handlers, not by copies or pickles, and not in a
    forked process. *Proof.* A drawn row enters one queue, once, and leaves it by `popleft`, one step that runs no
    Python code: of all calls in a process, one gets it. No row is put back; new rows come in a new queue. A copy or
    pickle of this object is a new one, without rows. A forked process has the queue of its parent; a queue has the
    marks of the process that drew its rows, which are compared after a row was taken, and a row of another process is
    dropped. ∎ (A process that is forked in the middle of a call, by a signal handler, has what that call has drawn, as
    it would have without this class; and the same examples. Ledgers and stores accept one commit of the two.)

    A row is for one release number, whose noise level it has. A call that repeats a release, after one that was not
    committed, gets a new row.

    >>> ahead = NoiseAhead()
    >>> rows = lambda releases: np.array([[10 * k] for k in releases])
    >>> [ahead.draw(k, 100, rows).tolist() for k in (1, 2)], [ahead.take(3).tolist(), ahead.take(3)]
    ([[[10]], [[20]]], [[[30]], None])
    """

    def __init__(self) -> None:
        self._drawn: tuple[object, int, deque[tuple[int, Integers]]] = None, 0, deque()  # marks; releases and noise
        self._next = 0  # the release after those that were drawn last
        self._count = 1  # how many were drawn last

    def take(self, k: int) -> Integers | None:
        """The noise of release k, a row, if it was drawn ahead."""
        process, number, rows = self._drawn
        try:
            release, row = rows.popleft()
        except IndexError:
            return None
        drawn_here = process is _PROCESS[0] and number == process_number()
        return row if release == k and drawn_here else None

    def draw(self, k: int, most: float, draw: Callable[[range], Integers]) -> Integers:
        """The noise of release k, newly drawn; with that of the next releases up to `most`, if releases come in order.

        Twice as many as the last time, so that little is drawn in vain for a stream that soon ends.
        """
        follows = k == self._next
        count = max(1, int(min(2 * self._count, most))) if follows else 1
        process, number = _PROCESS[0], process_number()  # before drawing: a process forked meanwhile has other marks
        drawn = draw(range(k, k + count))
        # each in memory of its own, so that none is kept by those that follow once it was used
        self._drawn = process, number, deque((k + i, drawn[i : i + 1].copy()) for i in range(1, count))
        self._next, self._count = k + count, count
        return drawn[:1].copy()

    def drop(self) -> None:
        """Forget the rows that were drawn."""
        self._drawn = None, 0, deque()

    def __repr__(self) -> str:
        return "NoiseAhead(secrets not shown)"

    def __reduce__(self) -> tuple[type[NoiseAhead], tuple[()]]:
        return NoiseAhead, ()


class NoiseByRelease(Calibrated):
    """Integer noise of `size` entries for each of `count` releases, secret or repeatable; the subclass states it."""

    def __init__(self, size: int, count: float, claimed: Privacy) -> None:
        self.size = size
        self.count = count
        self.claimed = claimed
        self._cached: tuple[int | None, int, Integers] = (None, 0, np.empty((0, size), dtype=np.int64))
        self._ahead = NoiseAhead()

    def noise_needed(self, releases: range) -> NoiseNeeded:
        """The noise of these releases, one row for each."""
        raise NotImplementedError

    def start(self) -> tuple[Arrays, Arrays]:
        """Independent noise needs no memory."""
        return {}, {}

    def noise(self, seed: int | None, k: int, count: int) -> Integers:
        """Noise for releases k to k + count - 1; from a seed, block by block of releases, however the call is cut."""
        if seed is None:
            ahead = self._ahead
            if count != 1:
                ahead.drop()
                return self._draw_secret(range(k, k + count))
            if (row := ahead.take(k)) is not None:
                return row
            most = min(_MOST_AHEAD, _MOST_VALUES // max(self.size, 1), self.count - k + 1)
            return ahead.draw(k, most, self._draw_secret)
        blocks = range((k - 1) // BLOCK, (k + count - 2) // BLOCK + 1)
        rows = np.concatenate([self._seeded_block(seed, block) for block in blocks])
        skipped = k - 1 - blocks[0] * BLOCK
        return rows[skipped : skipped + count]

    def _draw_secret(self, releases: range) -> Integers:
        return drawn(self.noise_needed(releases), None, 0)

    def _seeded_block(self, seed: int, block: int) -> Integers:
        """The noise of one block of a simulation; the last block is cached."""
        if self._cached[:2] != (seed, block):
            first = block * BLOCK + 1
            releases = range(first, int(min(first + BLOCK, self.count + 1)))
            self._cached = (seed, block, drawn(self.noise_needed(releases), seed, block))
        return self._cached[2]


def rounds_from(timetable: Timetable, k: int, count: int) -> Integers:
    """The rounds of `count` releases from k on, of a stream without a horizon; round 1 after its last release.

    >>> from taciturn import at
    >>> rounds_from(Timetable(at([5, 8]), None), 2, 3)
    array([8, 1, 1])
    """
    rounds = timetable.following(k - 1, _NEVER, count)
    return np.append(rounds, np.ones(count - len(rounds), dtype=np.int64))


def share(k: Any) -> Any:
    """The share `w_k` of release k in the budget of a stream without a horizon; for an array of releases, an array.

    >>> bool(round(sum(share(k) for k in range(1, 1001)), 6) == round(shares(1000), 6))
    True
    """
    k = np.asarray(k, dtype=np.float64)  # the logarithm of a short integer would be a half
    return 1.0 / _l(k) - 1.0 / _l(k + 1.0)


def shares(k: int | None) -> float:
    """The sum of the shares of the first k releases; None for all there can ever be."""
    return 1.0 if k is None else float(1.0 - 1.0 / _l(float(k) + 1.0))


def _l(k: Any) -> Any:
    return 1.0 + np.log(k)
