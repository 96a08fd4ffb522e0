"""Every front releases, stores and charges what it did when the records were written."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OTHER_MACHINE = 2


def script(name, *arguments):
    """A script of this folder, in a process of its own: it chooses the instructions that its workers use."""
    command = [sys.executable, HERE / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == OTHER_MACHINE:
        pytest.skip(done.stdout.splitlines()[-2])
    return done


@pytest.mark.slow
def test_streams_are_as_recorded():
    done = script("compare")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
