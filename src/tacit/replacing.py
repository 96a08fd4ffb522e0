"""A file replaced as a whole: whoever reads it, and whatever crashes, finds the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

OWNER_ONLY = 0o600
"""The mode of a file that holds secrets."""


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` when the block ends, on the disk by then; or leaves no trace.

    It is written beside the old one, as `.name.` and some letters, synced, and renamed. The new name is safe from a
    power cut only when its folder is synced too. What the process masks of modes is taken from `mode`, as `open` does.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(Path(folder) / "note") as file:
    ...         _ = file.write(b"all of it")
    ...     (Path(folder) / "note").read_text(), len(os.listdir(folder))
    ('all of it', 1)
    """
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            if mode != OWNER_ONLY:
                os.chmod(temporary, mode & ~_mask())
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mask() -> int:
    """What this process takes from the modes of new files; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
