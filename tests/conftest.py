"""Import paths of the tests (`from instances import LOSSES`), temporary files, data files and a database server."""

import gc
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

HERE, ROOT = str(Path(__file__).parent), str(Path(__file__).parents[1])
sys.path += [folder for folder in (HERE, ROOT) if folder not in sys.path]

# One thread of BLAS, for processes that load NumPy from here on: workers, and those that tests start. Threads of one
# that wait for each other beside other processes made a fit of a strategy take fifty times as long.
os.environ.update({name: os.environ.get(name, "1") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")})

settings.register_profile("taciturn", deadline=None, derandomize=True, database=None)
settings.load_profile("taciturn")


from memory_folder import memory  # noqa: E402 - tests/ is on the path only now
from postgres_server import own_cluster, shared_server  # noqa: E402, F401 - fixtures


def pytest_configure():
    """Temporary files are in memory, unless TMPDIR says where: a commit of SQLite waits for no disk there."""
    if "TMPDIR" not in os.environ and (folder := memory()) is not None:
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # found out again, from TMPDIR


def pytest_collection_finish():
    """The modules and thousands of tests stay until the end, so that no garbage collection need look at them.

    What tests make is looked at less often than Python would: most of it is gone before.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(scope="session")
def data_file():
    """A function from names of a data file to its path, searched as a loader does; without the file the test skips."""

    def locate(*names):
        from taciturn.datasets.files import held

        return held(*names) or pytest.skip(
            f"neither TACITURN_DATA nor the cache holds {' or '.join(names)}; docs/datasets.md says where to get it"
        )

    return locate


@pytest.fixture
def postgres(server):
    """A function that empties the database of the server, and gives its address."""
    import psycopg

    def emptied():
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute("SET lock_timeout = 5000")
            connection.execute("DROP SCHEMA IF EXISTS taciturn CASCADE")
        return server.address

    return emptied
