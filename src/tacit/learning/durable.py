"""Files that survive a crash: each write is on the disk, whole, before the next begins."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tacit.errors import InvalidInput, StateConflict

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]


def sync_folder(folder: Path) -> None:
    """Put a folder's names on the disk: a renamed file is only then safe from a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_at(path: Path, place: int, data: bytes) -> None:
    """Let a file end with `data` after its first `place` bytes; doing so twice is doing so once.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for data in (b"one, tor", b"one, two"):
    ...         write_at(Path(folder) / "log", 0, data)
    ...     write_at(Path(folder) / "log", 8, b", three")
    ...     (Path(folder) / "log").read_text()
    'one, two, three'
    """
    new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
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
        sync_folder(path.parent)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone, until the end of the block or of the process, however it ends.

    The lock is advisory (`flock`). It does not cover a copy of the folder, nor network file systems that keep locks on
    one machine only, nor programs that do not ask for it. It is on a file and on the folder itself, where a file system
    can do that, so that removing the file frees nothing.
    """
    if fcntl is None:  # pragma: no cover
        raise InvalidInput("this system has no flock, which keeps two runs apart. Learn on Linux or macOS.")
    with contextlib.ExitStack() as opened:
        file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        opened.callback(os.close, file)
        itself = os.open(folder, os.O_RDONLY)
        opened.callback(os.close, itself)
        if not (_held(file, OSError) and _held(itself, BlockingIOError)):
            raise StateConflict(
                f"another process is learning in {folder}. Wait for it to end, or name another folder by --out."
            )
        yield


def _held(handle: int, refusal: type[OSError]) -> bool:
    """Whether this process holds a lock now; other errors than the refusal say that there can be none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except refusal:
        return False
    except OSError:
        pass
    return True
