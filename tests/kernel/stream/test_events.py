"""Events: their rules, and the log that is in memory."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from interrupting import At, every_step
from taciturn import StateConflict
from taciturn.core import events
from taciturn.core.events import MemoryLog

pytestmark = pytest.mark.privacy


def empty_log() -> MemoryLog:
    """Of a number and a user for each event."""
    return MemoryLog({"x": np.empty(0), "users": np.empty(0, dtype=object)}, "y")


def test_an_interrupt_never_mixes_events():
    """Anywhere in a call: row, label and user of an event are those of one event, which has one row."""

    def add(log: MemoryLog, n: int) -> None:
        log.open([float(n)], [str(n)])
        log.close(np.array([log.progress.opened]), np.array([float(n)]))

    def attempt(step: int) -> bool:
        log = empty_log()
        for n in range(1, 17):
            add(log, n)
        log.seal(7)
        with contextlib.suppress(KeyboardInterrupt), At(step, events.__file__, _interrupt) as interrupted:
            add(log, 17)  # more than there is room for
            log.learn(6)
        log.learn(7)
        add(log, 18)
        log.seal(log.progress.opened)
        assert log.progress.learnt == 7
        labels, x, users = log.sealed()
        assert x.tolist() == [float(user) for user in users]
        assert all(np.isnan(labels) | (labels == x))
        assert x.tolist() in ([*range(8, 17), 18], list(range(8, 19)))
        return interrupted.reached

    every_step(attempt, least=100)


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "changed",
    [
        {"closed": np.array(4)},
        {"first": np.array(0)},
        {"first": np.array(3)},
        {"closed": np.array([1, 2])},
        {"x": np.ones(4)},
        {"x": np.ones(3, dtype=int)},
        {"y": np.ones(2)},
        {"users": np.frombuffer(b'["anna"]', dtype=np.uint8)},
        {"users": np.frombuffer(b"[", dtype=np.uint8)},
        {"ids": np.array(["one", "two"])},
        {"ids": np.array([1])},
    ],
)
def test_arrays_that_no_log_has_made_are_rejected(changed):
    log = empty_log()
    log.open([1.0, 2.0, 3.0], None)
    log.seal(1)
    with pytest.raises(StateConflict, match="no intact events"):
        empty_log().resumed(log.arrays | changed)
