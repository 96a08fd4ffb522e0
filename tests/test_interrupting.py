"""`At` acts before every bytecode, from its first use in a process on, so that a planted fault is detected."""

import contextlib
import os
import subprocess
import sys

import pytest

from interrupting import At, every_step

FIRST_USE = """
import dis
from interrupting import At

def straight(values):
    total = sum(values) + len(values)
    return [total, *values]

with At(float("inf"), __file__, None) as traced:
    straight([1.0, 2.0])
print(traced.seen, sum(one.opname != "RESUME" for one in dis.get_instructions(straight)))
"""


def test_a_first_use_acts_before_every_bytecode(tmp_path):
    """Except RESUME, the start of a call, where a frame is not traced yet."""
    script = tmp_path / "first_use.py"
    script.write_text(FIRST_USE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
    seen, bytecodes = map(int, child.stdout.split())
    assert seen == bytecodes > 10


def numbers():
    yield 1
    yield 2


def at_once(pair):
    for number in numbers():
        pair[:] = number, number


def one_by_one(pair):
    for number in numbers():
        pair[0] = number
        pair[1] = number


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize(("assign", "sound"), [(at_once, True), (one_by_one, False)])
def test_an_interrupt_between_two_assignments_is_found(assign, sound):
    """A pair of equal numbers stays one if both are assigned at once, and only then."""
    unequal, last = 0, set()

    def attempt(step):
        nonlocal unequal
        pair = [0, 0]
        with contextlib.suppress(KeyboardInterrupt), At(step, __file__, interrupt) as interruption:
            assign(pair)
        unequal += pair[0] != pair[1]
        last.add(pair[0])
        return interruption.reached

    every_step(attempt, least=20)
    assert last == {0, 1, 2}
    assert (unequal == 0) is sound
