"""Atomic file writes: after a crash, and for any concurrent reader, a file has its old or its new content."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

OWNER_ONLY = 0o600
"""The mode of a file that holds secrets."""

HOLDS_FOLDERS = {os.open, os.rename, os.stat, os.unlink} <= os.supports_dir_fd and os.listdir in os.supports_fd
"""Whether this system opens files by a descriptor of their folder (`openat`); Windows does not."""

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends otherwise


class Entry(os.PathLike[str]):
    """A file name in a folder, which may be held open by a descriptor.

    With a descriptor, files are opened, renamed and removed in that folder, even if it was moved since and its path
    leads to another folder, or to none. Without one, the path is resolved each time.

    Parameters
    ----------
    path : path
        Path of the file: used in messages, and to open the file on systems without `openat`.
    folder : int, optional
        Descriptor of the folder that contains the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     os.mkdir(f"{place}/live")
    ...     folder = os.open(f"{place}/live", os.O_RDONLY)
    ...     os.rename(f"{place}/live", f"{place}/old")
    ...     with replaced(Entry(f"{place}/live/note", folder)) as file:
    ...         _ = file.write(b"all of it")
    ...     os.close(folder)
    ...     Path(f"{place}/old/note").read_text()
    'all of it'
    """

    def __init__(self, path: str | os.PathLike[str], folder: int | None = None) -> None:
        self.path = Path(path)
        self.folder = folder

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Entry:
        """Convert a path to an `Entry`; an `Entry` is returned as it is."""
        return path if isinstance(path, Entry) else cls(path)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def beside(self, name: str) -> Entry:
        """The entry of another name in the same folder."""
        return Entry(self.path.with_name(name), self.folder)

    @property
    def _name(self) -> str:
        return self.path.name if self.folder is not None else os.fspath(self.path)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Make errors name the full path, not only its last part."""
        try:
            yield
        except OSError as error:
            if error.filename is not None:
                error.filename = os.fspath(self.path)
            raise

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open the file with `os.open`, and return its descriptor."""
        with self._named():
            return os.open(self._name, flags | _BINARY, mode, dir_fd=self.folder)

    def reader(self) -> BinaryIO:
        """Open the file for reading."""
        return cast(BinaryIO, os.fdopen(self.open(os.O_RDONLY), "rb"))

    def rename(self, to: Entry) -> None:
        """Rename the file, replacing `to` if that exists."""
        with self._named():
            os.replace(self._name, to._name, src_dir_fd=self.folder, dst_dir_fd=to.folder)

    def unlink(self) -> None:
        """Remove the file."""
        with self._named():
            os.unlink(self._name, dir_fd=self.folder)

    def exists(self) -> bool:
        """Whether the name exists, be it a broken symbolic link."""
        try:
            os.stat(self._name, dir_fd=self.folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @property
    def is_device(self) -> bool:
        """Whether it is a device or a pipe, such as /dev/null, or a name that a system keeps in /dev."""
        try:
            mode = os.stat(self._name, dir_fd=self.folder).st_mode
        except OSError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or os.path.dirname(os.path.abspath(self.path)) == "/dev"

    @property
    def size(self) -> int:
        """Size of the file in bytes; 0 if there is none."""
        try:
            return os.stat(self._name, dir_fd=self.folder).st_size
        except FileNotFoundError:
            return 0

    def sync_folder(self) -> None:
        """Sync the folder to disk: only then does a rename survive a power cut."""
        handle = os.open(self.path.parent, os.O_RDONLY) if self.folder is None else self.folder
        try:
            os.fsync(handle)
        finally:
            if self.folder is None:
                os.close(handle)


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[BinaryIO]:
    """Context manager of an atomic write: a file to write to, which replaces `path` when the block ends without error.

    The data goes to a temporary file in the same folder, `.name.` and eight hexadecimal digits, which is synced and
    renamed; after an error it is removed. The rename survives a power cut only when the folder is synced too
    (`Entry.sync_folder`). The umask applies to `mode`, as in `open`. If `path` is an `Entry` whose folder is held open,
    all of this happens in that folder. A device or a pipe is never replaced, but written to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(Path(folder) / "note") as file:
    ...         _ = file.write(b"all of it")
    ...     (Path(folder) / "note").read_text(), len(os.listdir(folder))
    ('all of it', 1)
    """
    target = Entry.of(path)
    if target.is_device:
        with os.fdopen(target.open(os.O_WRONLY), "wb") as file:
            yield cast(BinaryIO, file)
        return
    temporary, handle = _new_beside(target, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _new_beside(target: Entry, mode: int) -> tuple[Entry, int]:
    """Create a temporary file in the same folder; return its entry and its descriptor."""
    while True:
        temporary = target.beside(f".{target.path.name}.{secrets.token_hex(4)}")
        with contextlib.suppress(FileExistsError):
            return temporary, temporary.open(os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
