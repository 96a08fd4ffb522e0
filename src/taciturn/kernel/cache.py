"""The cache folder, and results of slow computations cached in it for later processes.

A cache file is a short text: a checksum, and rows of numbers to the last bit. The checksum is a hash of the numbers, of
their name, and of the version they were computed with. If a file is truncated, altered or of another version, the
numbers are computed and written again. If nothing can be written, they are computed in each process.

A checksum is no signature: it detects accidents, and anyone who can write to the user's cache folder can make one. So
callers pass a test of what is valid, and prove their guarantees for all valid numbers.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

Rows = tuple[tuple[float, ...], ...]


def cache() -> Path:
    """The folder of cached fits and downloads: `taciturn` in the user's cache folder; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(base).expanduser() / "taciturn"


@functools.cache
def sources(*paths: Path) -> str:
    """A hash of Python files, and of all those in folders."""
    return hash_of([file for path in paths for file in (path.glob("*.py") if path.is_dir() else [path])])


def hash_of(files: Sequence[Path]) -> str:
    """A hash of these files, in any order."""
    parts = [(file.name, file.read_bytes()) for file in sorted(files)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def cached(name: str, version: str, compute: Callable[[], Rows], valid: Callable[[Rows], bool]) -> Rows:
    """The result of `compute`, read from the cache if it is there with this `version` and is `valid`.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):
    ...     cached("thirds", "1", compute=lambda: ((1 / 3, 2 / 3),), valid=bool)
    ...     cached("thirds", "1", compute=lambda: ((1 / 4, 3 / 4),), valid=bool)
    ...     cached("thirds", "2", compute=lambda: ((1 / 4, 3 / 4),), valid=bool)
    ((0.3333333333333333, 0.6666666666666666),)
    ((0.3333333333333333, 0.6666666666666666),)
    ((0.25, 0.75),)
    """
    unusable = OSError, RuntimeError  # no such file, no permission, no home folder
    with contextlib.suppress(*unusable, ValueError, OverflowError):
        if valid(rows := _read(_file(name), version)):
            return rows
    rows = compute()
    with contextlib.suppress(*unusable):
        _write(_file(name), version, rows)
    return rows


def _file(name: str) -> Path:
    return cache() / "fits" / name


def _read(path: Path, version: str) -> Rows:
    checksum, _, text = path.read_text(encoding="ascii").partition("\n")
    if checksum != _checksum(path.name, version, text):
        raise ValueError(f"{path} is damaged, or of another version.")
    return tuple(tuple(map(float.fromhex, line.split())) for line in text.splitlines())


def _write(path: Path, version: str, rows: Rows) -> None:
    """Write the checksum and the rows; the write need not be atomic, as the checksum of half a file is wrong."""
    text = "".join(" ".join(map(float.hex, row)) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{_checksum(path.name, version, text)}\n{text}", encoding="ascii", newline="\n")


def _checksum(*parts: str) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
