"""Temporary files in memory: thousands of commits of the tests need not reach a disk."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

NEEDED = 4 << 30  # bytes; a database server with its log is the largest of what tests write


def memory():
    """The folder of a file system in memory, with room for all tests and no ban on programs; None if there is none."""
    folder = Path("/dev/shm")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return None
    no_programs = os.statvfs(folder).f_flag & os.ST_NOEXEC
    return None if no_programs or shutil.disk_usage(folder).free < NEEDED else str(folder)


@pytest.fixture(name="memory")
def memory_folder(tmp_path):
    """In memory if the system has a place for it, however small."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)
