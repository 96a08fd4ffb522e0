"""A database that is put back as it was, by a copy over its file or by `pg_restore --clean`, while it is in use."""

import shutil
import subprocess

import pytest

from taciturn.store.database import Database


class Kept:
    """A database, and copies of it by name.

    Parameters
    ----------
    address, folder : str
        Where it is, and where copies are.
    server : Server, optional
        The server of a PostgreSQL database.
    """

    def __init__(self, address, folder, server=None):
        self.address, self.server, self._folder = address, server, folder

    @classmethod
    def of_kind(cls, kind, request, folder):
        """A new one, in SQLite or PostgreSQL."""
        if kind == "SQLite":
            return cls(str(folder / "streams.db"), folder)
        server = request.getfixturevalue("server")
        if server.own is None:
            pytest.skip("programs such as pg_dump come with the server of the wheel")
        return cls(server.new_database(), folder, server)

    def back_up(self, name="copy"):
        copy = f"{self._folder}/{name}"
        if self.server is None:
            shutil.copyfile(self.address, copy)
        else:
            program(self.server, "pg_dump", "-Fc", "-f", copy, self.address)

    def put_back(self, name="copy"):
        copy = f"{self._folder}/{name}"
        if self.server is None:
            shutil.copyfile(copy, self.address)
        else:
            program(self.server, "pg_restore", "--clean", "-d", self.address, copy)

    def content(self):
        """Generations of its streams, and what they have released."""
        with Database(self.address).transaction(write=False) as now:
            generations = now.rows("SELECT generation FROM streams ORDER BY lineage")
            return generations, now.rows("SELECT lineage, last, content FROM releases ORDER BY lineage, last")


def program(server, name, *arguments):
    """Run a program of the server's installation."""
    subprocess.run([server.own.bin_path / name, *arguments], check=True, capture_output=True)
