"""Numbers that take long to find, kept on disk for later processes, and believed only where nothing has changed.

A file is one short text: a seal, and rows of numbers to the last bit. The seal is a hash of the numbers, of their name,
and of what they were made of. A file that is torn, altered, or made by other sources is as good as none: the numbers
are found again, and it is written anew. So it is where nothing can be kept.

A seal is no signature. It guards against accidents; whoever can write to the user's cache folder can make one. So who
asks also says what is legal, and proves what rests on the numbers for all that are.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

Rows = tuple[tuple[float, ...], ...]


def cache() -> Path:
    """The folder that fits and downloads are kept in: `taciturn` in the user's cache folder; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(base).expanduser() / "taciturn"


@functools.cache
def sources(folder: Path) -> str:
    """A hash of all Python files in a folder."""
    files = sorted(folder.glob("*.py"))
    return hashlib.sha256(repr([(file.name, file.read_bytes()) for file in files]).encode()).hexdigest()


def kept(name: str, made_of: str, find: Callable[[], Rows], legal: Callable[[Rows], bool]) -> Rows:
    """What `find` returns, or once returned in another process, if it was made of the same and is `legal`.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):
    ...     kept("thirds", "rule 1", find=lambda: ((1 / 3, 2 / 3),), legal=bool)
    ...     kept("thirds", "rule 1", find=lambda: ((1 / 4, 3 / 4),), legal=bool)
    ...     kept("thirds", "rule 2", find=lambda: ((1 / 4, 3 / 4),), legal=bool)
    ((0.3333333333333333, 0.6666666666666666),)
    ((0.3333333333333333, 0.6666666666666666),)
    ((0.25, 0.75),)
    """
    nowhere = OSError, RuntimeError  # no such file, no such right, no home
    with contextlib.suppress(*nowhere, ValueError, OverflowError):
        if legal(rows := _read(_file(name), made_of)):
            return rows
    rows = find()
    with contextlib.suppress(*nowhere):
        _write(_file(name), made_of, rows)
    return rows


def _file(name: str) -> Path:
    return cache() / "fits" / name


def _read(path: Path, made_of: str) -> Rows:
    seal, _, text = path.read_text(encoding="ascii").partition("\n")
    if seal != _seal(path.name, made_of, text):
        raise ValueError(f"{path} is not what was written, or not of this version.")
    return tuple(tuple(map(float.fromhex, line.split())) for line in text.splitlines())


def _write(path: Path, made_of: str, rows: Rows) -> None:
    """Writes the rows under their seal; not at once, as who reads half of it finds a broken seal."""
    text = "".join(" ".join(map(float.hex, row)) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{_seal(path.name, made_of, text)}\n{text}", encoding="ascii", newline="\n")


def _seal(*parts: str) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
