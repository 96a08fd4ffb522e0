"""A file replaced as a whole: whoever reads it, and whatever crashes, finds the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

OWNER_ONLY = 0o600
"""The mode of a file that holds secrets."""

HOLDS_FOLDERS = {os.open, os.rename, os.stat, os.unlink} <= os.supports_dir_fd and os.listdir in os.supports_fd
"""Whether this system opens files by a descriptor of their folder (`openat`); Windows does not."""

_BINARY = getattr(os, "O_BINARY", 0)  # of Windows, which changes line ends otherwise


class Entry(os.PathLike[str]):
    """A name in a folder, which may be held open by a descriptor.

    With a descriptor, files are opened, renamed and removed in that very folder, although it was moved since and its
    path leads to another one, or to none. Without one the path is followed each time.

    Parameters
    ----------
    path : path
        What the file is called, for people, and for systems without `openat`.
    folder : int, optional
        A descriptor of the folder that it is in.

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
        self.path, self.folder = Path(path), folder

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Entry:
        """The path itself, if it is one of these already."""
        return path if isinstance(path, Entry) else cls(path)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def beside(self, name: str) -> Entry:
        """Another name in the same folder."""
        return Entry(self.path.with_name(name), self.folder)

    @property
    def _name(self) -> str:
        return self.path.name if self.folder is not None else os.fspath(self.path)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors name the path, and not only the last part of it."""
        try:
            yield
        except OSError as error:
            if error.filename is not None:
                error.filename = os.fspath(self.path)
            raise

    def open(self, flags: int, mode: int = 0o666) -> int:
        """A descriptor of the file, as `os.open` gives it."""
        with self._named():
            return os.open(self._name, flags | _BINARY, mode, dir_fd=self.folder)

    def reader(self) -> BinaryIO:
        """The file, to be read."""
        return cast(BinaryIO, os.fdopen(self.open(os.O_RDONLY), "rb"))

    def rename(self, to: Entry) -> None:
        """Take the place of another name in the same folder."""
        with self._named():
            os.replace(self._name, to._name, src_dir_fd=self.folder, dst_dir_fd=to.folder)

    def unlink(self) -> None:
        """Remove the name."""
        with self._named():
            os.unlink(self._name, dir_fd=self.folder)

    def exists(self) -> bool:
        """Whether the name is taken, if only by a link that leads nowhere."""
        try:
            os.stat(self._name, dir_fd=self.folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @property
    def size(self) -> int:
        """Bytes of the file; 0 if there is none."""
        try:
            return os.stat(self._name, dir_fd=self.folder).st_size
        except FileNotFoundError:
            return 0

    def sync_folder(self) -> None:
        """Put the folder's names on the disk: a renamed file is only then safe from a power cut."""
        handle = os.open(self.path.parent, os.O_RDONLY) if self.folder is None else self.folder
        try:
            os.fsync(handle)
        finally:
            if self.folder is None:
                os.close(handle)


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends, on the disk by then; or leaves no trace.

    It is written beside the old one, as `.name.` and eight letters, synced, and renamed. The new name is safe from a
    power cut only when its folder is synced too. What the process masks of modes is taken from `mode`, as `open` does.
    Of an `Entry` whose folder is held open, all of this happens in that folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(Path(folder) / "note") as file:
    ...         _ = file.write(b"all of it")
    ...     (Path(folder) / "note").read_text(), len(os.listdir(folder))
    ('all of it', 1)
    """
    target = Entry.of(path)
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
    """A new file in the same folder, and its descriptor."""
    while True:
        temporary = target.beside(f".{target.path.name}.{secrets.token_hex(4)}")
        with contextlib.suppress(FileExistsError):
            return temporary, temporary.open(os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
