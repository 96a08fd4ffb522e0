"""A disk for SQLite that loses, in a power cut, what was not synced: writes, created files and deleted files.

An operation of SQLite on a file changes the real file, and is remembered until the file is synced. A power cut comes at
a chosen operation, which may be carried out or not. Then each file has what was synced last, and of the writes since,
in units of 512 bytes, any subset: a disk writes in any order. A created file is on the disk once it is synced (SQLite
syncs its folder with it); a deleted one is gone once its folder is synced, and may be back before that.
"""

import contextlib
import os
import random
import sqlite3
import uuid
from pathlib import Path

import apsw

SECTOR = 512


class PowerCut(apsw.IOError):
    """The power is off."""


class Disk:
    """Files of one folder.

    Parameters
    ----------
    seed : int
        Of what survives.

    Attributes
    ----------
    left : int, optional
        Operations until the power cut; None if there is none.
    """

    def __init__(self, seed):
        self.left = None
        self.off = False
        self._chance = random.Random(seed)
        self._synced = {}  # content of files on the disk, by path
        self._since = {}  # (offset, data) of writes since; (size, None) where a file was cut off
        self._maybe_back = {}  # deleted files, whose folder was not synced
        self._connections = []
        self._vfs = _Vfs(f"disk {uuid.uuid4().hex}", self)

    def open_connection(self, path):
        """A connection as `taciturn.store.sqlite.open_connection` makes one."""
        if self.off:
            raise sqlite3.OperationalError("the power is off")
        name = os.fspath(path)
        if name not in self._synced:
            self._synced[name] = Path(name).read_bytes()  # as the file was before
            self._since[name] = []
        made = _Connection(apsw.Connection(name, vfs=self._vfs.name))
        self._connections.append(made)
        return made

    def restart(self):
        """Close what is open, and leave the files as a power cut leaves them."""
        self.off = True
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        for name, content in self._maybe_back.items():
            if name not in self._synced and self._chance.random() < 0.5:
                self._synced[name] = content
                self._since[name] = []
        for name in self._synced.keys() | self._since.keys():
            if name not in self._synced:
                if self._chance.random() < 0.5:  # created, and not synced
                    Path(name).unlink(missing_ok=True)
                    continue
                self._synced[name] = b""
            _overwrite(name, self._survivor(name))
        self.__init__(self._chance.random())

    def _survivor(self, name):
        content = bytearray(self._synced[name])
        for offset, data in self._since.get(name, []):
            if data is None:
                if self._chance.random() < 0.5:
                    del content[offset:]
                continue
            at = offset
            while at < offset + len(data):
                end = min(offset + len(data), (at // SECTOR + 1) * SECTOR)
                if self._chance.random() < 0.5:
                    content.extend(bytes(max(0, end - len(content))))
                    content[at:end] = data[at - offset : end - offset]
                at = end
        return bytes(content)

    # What SQLite does.

    @contextlib.contextmanager
    def operation(self):
        """Around every operation that changes the disk: in a power cut it is remembered, and then it fails."""
        if self.off:
            raise PowerCut("the power is off")
        if self.left is not None:
            self.left -= 1
            self.off = self.left < 0
        yield
        if self.off:
            raise PowerCut("the power is off")

    def opened(self, name):
        if name not in self._synced and name not in self._since:
            self._since[name] = []

    def wrote(self, name, data, offset):
        self._since[name].append((offset, bytes(data)))

    def truncated(self, name, size):
        self._since[name].append((size, None))

    def synced(self, name):
        if not self.off:
            self._synced[name] = Path(name).read_bytes()
            self._since[name] = []

    def deleted(self, name, folder_synced):
        content = self._survivor(name) if name in self._synced else None
        self._synced.pop(name, None)
        self._since.pop(name, None)
        if folder_synced and not self.off:
            self._maybe_back.clear()
        elif content is not None:
            self._maybe_back[name] = content


def _overwrite(name, content):
    """In place: the file stays the same to those who know it by its inode."""
    with open(name, "r+b" if Path(name).exists() else "wb") as file:
        file.write(content)
        file.truncate(len(content))


class _Vfs(apsw.VFS):
    def __init__(self, name, disk):
        self.name, self._disk = name, disk
        super().__init__(name, "unix")

    def xOpen(self, name, flags):
        return _File(self._disk, name, flags)

    def xDelete(self, name, syncdir):
        with self._disk.operation():
            super().xDelete(name, syncdir)
            self._disk.deleted(name, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name
        if disk.off:
            raise PowerCut("the power is off")
        super().__init__("unix", name, flags)
        disk.opened(self._name)

    def xWrite(self, data, offset):
        with self._disk.operation():
            super().xWrite(data, offset)
            self._disk.wrote(self._name, data, offset)

    def xTruncate(self, size):
        with self._disk.operation():
            super().xTruncate(size)
            self._disk.truncated(self._name, size)

    def xSync(self, flags):
        with self._disk.operation():
            super().xSync(flags)
            self._disk.synced(self._name)


class _Connection:
    """A connection of apsw that is used like one of `sqlite3`."""

    def __init__(self, connection):
        self._connection = connection
        connection.set_busy_timeout(1000)

    def execute(self, sql, values=()):
        try:
            rows = self._connection.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error
        return _Result(rows, self._connection.changes())

    def close(self):
        try:
            self._connection.close(True)
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error


class _Result:
    def __init__(self, rows, rowcount):
        self.rows, self.rowcount = rows, rowcount

    def fetchall(self):
        return self.rows
