"""A folder in memory, for tests with thousands of commits that need not reach a disk."""

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(name="memory")
def memory_folder(tmp_path):
    """In memory if the system has a place for it."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)
