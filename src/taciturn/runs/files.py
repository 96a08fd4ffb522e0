"""The files of a run: durable writes, the lock of the folder, and the error of a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import InvalidInput, StateConflict
from taciturn.kernel.atomic import HOLDS_FOLDERS, Entry

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

_HALF_WRITTEN = re.compile(r"\.(model\.json|report\.html)\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Folder:
    """The folder of a run, and the names of its files.

    Parameters
    ----------
    path : Path
        Path of the folder when the run began.
    handle : int, optional
        A descriptor of the folder, as `locked` gives it. Every file is then read and written in that folder, even if
        its path leads to another one meanwhile: the folder that is locked is the folder that is written to.
    """

    path: Path
    handle: int | None = None

    @property
    def store(self) -> Path:
        """Secret: as sensitive as the rows. SQLite opens it by its path, and stops if that leads elsewhere."""
        return self.path / "stream.db"

    @property
    def models(self) -> Entry:
        """Public: every release."""
        return Entry(self.path / "models.jsonl", self.handle)

    @property
    def model(self) -> Entry:
        """Public: the latest model."""
        return Entry(self.path / "model.json", self.handle)

    @property
    def report(self) -> Entry:
        """The report as a page."""
        return Entry(self.path / "report.html", self.handle)

    @property
    def moved(self) -> bool:
        """Whether the path no longer leads to this folder: it was moved or deleted, or a link was changed."""
        if self.handle is None:
            return False
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self.handle))
        except OSError:
            return True

    def sync(self) -> None:
        """Flush the names of its files to the disk."""
        self.model.sync_folder()

    def clear(self) -> None:
        """Remove the temporary files of a killed process."""
        for name in os.listdir(self.path if self.handle is None else self.handle):
            if _HALF_WRITTEN.fullmatch(name):
                Entry(self.path / name, self.handle).unlink()

    def check_version(self) -> None:
        """Reject a run of an older version."""
        if Entry(self.path / "state.npz", self.handle).exists():
            raise StateConflict(
                f"{self.path} holds a run of an older version of taciturn, whose state is in state.npz. Continue it "
                "with that version; or start a new run in another folder by --out, which spends the budget again."
            )


_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EFBIG: "a file would be larger than this process may write",
}


@contextlib.contextmanager
def full_disk_explained(folder: Path) -> Iterator[None]:
    """Turn the error of a full disk into a message that says what is committed and how to resume.

    The message holds at each step of a commit (`taciturn.runs.run`): models are published after they are committed.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StateConflict(
            f"{folder}: {_FULL[error.errno]}. Every published model is committed, and nothing was published after the "
            "last commit. Free some space and run the same command again, with --resume if it says that the folder "
            "holds a run: no release is repeated or lost."
        ) from None


def write_at(path: str | os.PathLike[str], place: int, data: bytes) -> None:
    """Write `data` after the first `place` bytes of a file, truncate the rest, and flush; the operation is idempotent.

    A file that is shorter than `place` was changed by another process; this is an error, and the file is not changed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for data in (b"one, tor", b"one, two"):
    ...         write_at(Path(folder) / "log", 0, data)
    ...     write_at(Path(folder) / "log", 8, b", three")
    ...     (Path(folder) / "log").read_text()
    'one, two, three'
    """
    entry = Entry.of(path)
    new = not entry.exists()
    if entry.size < place:
        raise StateConflict(
            f"{entry} was removed or truncated during the run: it had {place:,} bytes. Restore the file, and continue "
            "with --resume."
        )
    handle = entry.open(os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.ftruncate(handle, place)
        os.lseek(handle, place, os.SEEK_SET)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    if new:
        entry.sync_folder()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int | None]:
    """Hold an exclusive lock on a folder until the end of the block, or until the process ends in any way.

    The context manager yields a descriptor of the folder, for `Folder`: the lock is on the folder and not on its path,
    so a process that writes by the path would write to another folder after this one was moved. The descriptor is None
    on systems that cannot open files relative to it.

    The lock is advisory (`flock`). It does not cover a copy of the folder, network file systems with locks local to one
    machine, or programs that do not lock. It is on a file and, where the file system supports it, also on the folder
    itself, so that removing the file does not release the lock.
    """
    if fcntl is None:  # pragma: no cover
        raise InvalidInput("this system has no flock, which locks the folder of a run. Learn on Linux or macOS.")
    with contextlib.ExitStack() as opened:
        itself = os.open(folder, os.O_RDONLY)
        opened.callback(os.close, itself)
        handle = itself if HOLDS_FOLDERS else None
        file = Entry(folder / ".lock", handle).open(os.O_RDWR | os.O_CREAT, 0o600)
        opened.callback(os.close, file)
        if not (_held(file, OSError) and _held(itself, BlockingIOError)):
            raise StateConflict(
                f"another process is learning in {folder}. Wait for it to end, or pass another folder by --out."
            )
        yield handle


def _held(handle: int, taken: type[OSError]) -> bool:
    """Whether no other process holds the lock; also True if the file system cannot lock (any error but `taken`)."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except taken:
        return False
    except OSError:
        pass
    return True
