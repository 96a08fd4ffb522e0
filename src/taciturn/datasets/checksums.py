"""What is in a data file: unpacked, and refused unless it is the very data that is meant."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from numpy.typing import NDArray

from taciturn.errors import InvalidInput


def load(path: Path, member: str | None = None) -> bytes:
    """The bytes of a file as they are; or, of one that may be packed by gzip, zip or tar, those of `member` inside.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.data").write_bytes(gzip.compress(b"1, 2"))
    ...     load(Path(folder, "a.data"), "a.data")
    b'1, 2'
    """
    try:
        return path.read_bytes() if member is None else unpacked(path.read_bytes(), member)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise InvalidInput(f"it cannot be read or unpacked ({error}).") from error


def unpacked(data: bytes, member: str) -> bytes:
    """What is inside, packed once or more often; the first bytes decide, whatever the names say."""
    if data.startswith(b"\x1f\x8b"):
        return unpacked(gzip.decompress(data), member)
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return unpacked(archive.read(only(archive.namelist(), member)), member)
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as folder:
            inside = folder.extractfile(only(folder.getnames(), member))
            return unpacked(inside.read() if inside else b"", member)
    return data


def only(names: list[str], member: str) -> str:
    """The one file called `member` or, if that is packed in its turn, `member` and an ending.

    >>> only(["set/readme.txt", "set/hour.csv.zip"], "hour.csv")
    'set/hour.csv.zip'
    """
    found = [name for name in names if PurePosixPath(name).name.startswith(member)]
    if len(found) != 1:
        raise InvalidInput(f"it holds {len(found)} files called {member}, not one.")
    return found[0]


def text(path: Path, member: str) -> str:
    """A file as text, packed or plain."""
    try:
        return load(path, member).decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it cannot be read as text ({error}).") from error


def same_bytes(data: bytes, size: int, checksum: str) -> bytes:
    """`data`, if it has this many bytes and this checksum.

    >>> same_bytes(b"1, 2", 5, "0" * 32)
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: it has 4 bytes, not 5.
    >>> same_bytes(b"1, 2", 4, "0" * 32)
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: its MD5 checksum is 92963defdbac8bd4a8b7a2cefacc9a9d, not 000...
    """
    if len(data) != size:
        raise InvalidInput(f"it has {len(data):,} bytes, not {size:,}.")
    demand_checksum("its", data, checksum)
    return data


def same_table(table: NDArray[Any], rows: int, checksum: str) -> None:
    """Refuse a table of whole numbers that has not this many rows or this checksum, however its copy was packed."""
    if len(table) != rows:
        raise InvalidInput(f"it has {len(table):,} rows, not {rows:,}.")
    demand_checksum("its numbers'", table.astype("<i8").tobytes(), checksum)


def demand_checksum(whose: str, data: bytes, checksum: str) -> None:
    """Refuse `data` with another checksum: MD5 or SHA-256, whichever has as many digits as the one that is due."""
    name, method = ("MD5", "md5") if len(checksum) == 32 else ("SHA-256", "sha256")
    found = hashlib.new(method, data, usedforsecurity=False).hexdigest()
    if found != checksum:
        raise InvalidInput(f"{whose} {name} checksum is {found}, not {checksum}.")


@contextmanager
def copy_of(what: str, file: Path, url: str) -> Iterator[None]:
    """Refusals in this block name the file, what it should be, and where a fresh copy is.

    >>> with copy_of("UCI's a.data", Path("a.data"), "https://example.org/a.data"):
    ...     same_bytes(b"", 4, "")
    Traceback (most recent call last):
    ...
    taciturn.errors.InvalidInput: a.data is not UCI's a.data: it has 0 bytes, not 4. Put a fresh copy of
    https://example.org/a.data in its place.
    """
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{file} is not {what}: {error} Put a fresh copy of {url} in its place.") from error
