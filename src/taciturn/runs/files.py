"""Files that survive a crash: each write is on the disk, whole, before the next begins."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from taciturn._util.atomic import HOLDS_FOLDERS, Entry
from taciturn.errors import InvalidInput, StateConflict

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

_HALF_WRITTEN = re.compile(r"\.(state\.npz|model\.json|report\.html)\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Folder:
    """Where a run lives, and what its files are called.

    Parameters
    ----------
    path : Path
        Where the folder is, or was when the run began.
    handle : int, optional
        A descriptor of the folder, as `taciturn.runs.files.locked` gives it. Every file is then read and written
        in that folder, wherever its path leads meanwhile: what is locked and what is written to cannot become two.
    """

    path: Path
    handle: int | None = None

    @property
    def state(self) -> Entry:
        """Secret: as sensitive as the rows."""
        return Entry(self.path / "state.npz", self.handle)

    @property
    def models(self) -> Entry:
        """Every release, public."""
        return Entry(self.path / "models.jsonl", self.handle)

    @property
    def model(self) -> Entry:
        """The model to use, public."""
        return Entry(self.path / "model.json", self.handle)

    @property
    def report(self) -> Entry:
        """For people."""
        return Entry(self.path / "report.html", self.handle)

    @property
    def moved(self) -> bool:
        """Whether the path leads to this folder no longer: it was moved or deleted, or a link was changed."""
        if self.handle is None:
            return False
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self.handle))
        except OSError:
            return True

    def sync(self) -> None:
        """Put its names on the disk."""
        self.state.sync_folder()

    def clear(self) -> None:
        """Remove what a killed process left half-written."""
        for name in os.listdir(self.path if self.handle is None else self.handle):
            if _HALF_WRITTEN.fullmatch(name):
                Entry(self.path / name, self.handle).unlink()


_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EFBIG: "a file would be larger than this process may write",
}


@contextlib.contextmanager
def full_disk_explained(folder: Path) -> Iterator[None]:
    """Turn the error of a full disk into a sentence that says what was kept and how to go on.

    It is true at each step of a commit (`taciturn.runs.run`): what was shown was committed before.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        again = " with --resume, and with the same input from its beginning" if (folder / "state.npz").exists() else ""
        raise StateConflict(
            f"{folder}: {_FULL[error.errno]}. What was shown is committed, and nothing was shown after the last "
            f"commit. Free some space and run the same command again{again}: no release is repeated or lost."
        ) from None


def sync_folder(folder: Path) -> None:
    """Put a folder's names on the disk: a renamed file is only then safe from a power cut."""
    Entry(folder / "any").sync_folder()


def write_at(path: str | os.PathLike[str], place: int, data: bytes) -> None:
    """Let a file end with `data` after its first `place` bytes; doing so twice is doing so once.

    A file that is shorter than that was changed by others, and is left as it is.

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
            f"{entry} was removed or shortened while it was written to: {place:,} bytes were in it. Put the file back "
            "as it was, and go on with --resume."
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
    """Hold a folder for this process alone, until the end of the block or of the process, however it ends.

    What the block is given is a descriptor of that folder, for `taciturn.runs.files.Folder`: a lock is on a folder
    and not on its path, so whoever writes by the path writes to another folder once this one was moved. It is None
    where a system cannot open files by it.

    The lock is advisory (`flock`). It does not cover a copy of the folder, nor network file systems that keep locks on
    one machine only, nor programs that do not ask for it. It is on a file and on the folder itself, where a file system
    can do that, so that removing the file frees nothing.
    """
    if fcntl is None:  # pragma: no cover
        raise InvalidInput("this system has no flock, which keeps two runs apart. Learn on Linux or macOS.")
    with contextlib.ExitStack() as opened:
        itself = os.open(folder, os.O_RDONLY)
        opened.callback(os.close, itself)
        handle = itself if HOLDS_FOLDERS else None
        file = Entry(folder / ".lock", handle).open(os.O_RDWR | os.O_CREAT, 0o600)
        opened.callback(os.close, file)
        if not (_held(file, OSError) and _held(itself, BlockingIOError)):
            raise StateConflict(
                f"another process is learning in {folder}. Wait for it to end, or name another folder by --out."
            )
        yield handle


def _held(handle: int, refusal: type[OSError]) -> bool:
    """Whether this process holds a lock now; other errors than the refusal say that there can be none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except refusal:
        return False
    except OSError:
        pass
    return True
