"""The store of this process: which ledger guards a stream, in this process and in its children."""

import os
import signal
import subprocess
import sys

import pytest

from interrupting import At, every_step, within
from taciturn import Ledger, StateConflict
from taciturn.accounting import memory_store
from taciturn.accounting.memory_store import IN_MEMORY


def test_the_ledger_of_a_stream_is_known():
    """A stream entered in this process is known, and its ledger found; another is refused."""
    ledger = Ledger()
    IN_MEMORY.enter("a stream of this test", ledger)
    assert "a stream of this test" in IN_MEMORY
    assert IN_MEMORY.ledger_of("a stream of this test") is ledger
    assert "never opened" not in IN_MEMORY
    with pytest.raises(StateConflict, match="not open in this process"):
        IN_MEMORY.ledger_of("never opened")


CHILD = """
import os
from taciturn import Ledger, StateConflict
from taciturn.accounting.memory_store import IN_MEMORY
ledger = Ledger()
IN_MEMORY.enter("stream", ledger)
inside, outside = os.pipe()
if os.fork() == 0:
    try:
        IN_MEMORY.ledger_of("stream")
    except StateConflict:
        os.write(outside, b"inherited" if "stream" in IN_MEMORY else b"none")
    os._exit(0)
os.wait()
os.close(outside)
print(os.read(inside, 20).decode(), IN_MEMORY.ledger_of("stream") is ledger)
"""


@pytest.mark.privacy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_no_ledger():
    """After a fork the child finds no ledger for its parent's streams, and the parent keeps its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, env=environment, check=True)
    assert child.stdout.split() == ["none", "True"]


WITH_TIMERS = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")

ENTERING = """
import signal, time
from taciturn import Ledger
from taciturn.accounting.memory_store import IN_MEMORY
ledger, entered, end = Ledger(), 0, time.monotonic() + 1.0

def handler(number, frame):
    global entered
    entered += 1
    assert IN_MEMORY.enter("stream", Ledger()) is ledger

IN_MEMORY.enter("stream", ledger)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 1e-3, 3e-4)
try:
    while time.monotonic() < end:
        IN_MEMORY.enter("stream", ledger)
finally:
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(entered)
"""


@WITH_TIMERS
def test_a_signal_handler_that_enters_a_stream_waits_for_nothing():
    """Whatever the main thread is about to enter."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run(
        [sys.executable, "-c", ENTERING], capture_output=True, text=True, env=environment, check=False, timeout=20
    )
    assert int(child.stdout or 0) > 100, child.stderr


def test_wherever_a_stream_is_entered_again_one_ledger_guards_it():
    """At every bytecode of the store; waiting for ever would be noticed."""

    def attempt(step):
        name, inner, outer, guards = f"entered at {step}", Ledger(), Ledger(), []

        def enter():
            with At(step, memory_store.__file__, lambda: guards.append(IN_MEMORY.enter(name, inner))) as entered:
                guards.append(IN_MEMORY.enter(name, outer))
            return entered.reached

        reached = within(5.0, enter)
        assert len({id(guard) for guard in guards}) == 1
        assert IN_MEMORY.ledger_of(name) is guards[0]
        return reached

    every_step(attempt, least=4)
