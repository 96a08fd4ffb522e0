"""Data files: search, download, unpacking, checksums and Parquet columns.

A file comes from the folder `TACITURN_DATA`, from the cache, or from a download into the cache, in this order.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import InvalidInput, TaciturnError, needs_extra
from taciturn.kernel.cache import cache

VARIABLE = "TACITURN_DATA"
"""The environment variable that names a folder of data files; empty is the same as unset."""

PATIENCE = 30.0
"""Timeout of a download: seconds without an answer."""


def folders() -> list[Path]:
    """The folders that are searched, in this order: `TACITURN_DATA`, if it is set, and the cache."""
    chosen = os.environ.get(VARIABLE)
    return [*([Path(chosen).expanduser()] if chosen else []), cache()]


def find(name: str, url: str, *others: str) -> Path:
    """The file `name`, or one of the `others` that hold the same data; without one, `url` is downloaded.

    >>> import os, tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, TACITURN_DATA=folder):
    ...     _ = Path(folder, "numbers.csv.gz").write_bytes(b"")
    ...     find("numbers.csv", "https://example.org/numbers.csv", "numbers.csv.gz").name
    'numbers.csv.gz'
    """
    try:
        return held(name, *others) or download(url, cache() / name)
    except (OSError, HTTPException) as error:
        raise InvalidInput(
            f"{name} is not on this machine and could not be downloaded ({error}). Download {url} and put it into "
            f"{places()}."
        ) from None


def installed(package: str, version: str, within: str, *names: str) -> Path:
    """One of the files `names`, or else the file `within` an installed data package.

    The package is located, not imported: none of its code runs.
    """
    if (path := held(*names)) is not None:
        return path
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        if (path := Path(folder, within)).is_file():
            return path
    raise InvalidInput(
        f"{names[0]} is not on this machine. Run pip install {package}=={version}, which brings the data, or put it "
        f"into {places()}."
    )


def held(*names: str) -> Path | None:
    """The first of these files that exists in a searched folder, or None."""
    paths = (folder / name for folder in folders() for name in names)
    return next((path for path in paths if path.is_file()), None)


def places() -> str:
    """The searched folders, as text for an error message."""
    listed = " or ".join(str(folder) for folder in folders())
    return f"{listed}; the environment variable {VARIABLE} names another folder"


def download(url: str, target: Path) -> Path:
    """Download `url` into `target` atomically: a partial file never has the name `target`."""
    sys.stderr.write(f"Downloading {url} into {target.parent}\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        part = Path(folder, target.name)
        with part.open("wb") as out, urllib.request.urlopen(url, timeout=PATIENCE) as response:
            length = response.headers.get("Content-Length")
            size = int(length) if length else None
            with watched(response, size, target.name) as reader:
                shutil.copyfileobj(reader, out)
            # A connection cut short looks like the end of the file: only the announced size distinguishes them.
            if size not in (None, out.tell()):
                raise OSError(f"the connection ended after {out.tell():,} of {size:,} bytes")
        return part.replace(target)


@contextmanager
def watched(response: BinaryIO, size: int | None, name: str) -> Iterator[BinaryIO]:
    """`response`, with a progress bar if stderr is a terminal and `rich` is installed."""
    if size and sys.stderr.isatty() and find_spec("rich"):
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as progress:
            yield progress.wrap_file(response, size, description=name)
    else:
        yield response


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
    """The content, unpacked as often as needed; formats are recognised by their first bytes, not by names."""
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
    """The one file called `member` or, if that is packed as well, `member` and an ending.

    >>> only(["set/readme.txt", "set/hour.csv.zip"], "hour.csv")
    'set/hour.csv.zip'
    """
    matches = [name for name in names if PurePosixPath(name).name.startswith(member)]
    if len(matches) != 1:
        raise InvalidInput(f"it holds {len(matches)} files called {member}, not one.")
    return matches[0]


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
    """Reject a table of integers with another number of rows or another checksum, whatever its file format."""
    if len(table) != rows:
        raise InvalidInput(f"it has {len(table):,} rows, not {rows:,}.")
    demand_checksum("its numbers'", table.astype("<i8").tobytes(), checksum)


def demand_checksum(whose: str, data: bytes, checksum: str) -> None:
    """Reject `data` with another checksum: MD5 or SHA-256, by the number of digits of the expected one."""
    name, method = ("MD5", "md5") if len(checksum) == 32 else ("SHA-256", "sha256")
    actual = hashlib.new(method, data, usedforsecurity=False).hexdigest()
    if actual != checksum:
        raise InvalidInput(f"{whose} {name} checksum is {actual}, not {checksum}.")


@contextmanager
def copy_of(what: str, file: Path, url: str) -> Iterator[None]:
    """Errors raised in this block name the file, its expected content, and where to get a fresh copy.

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


MAGIC = b"PAR1"


def is_parquet(data: bytes) -> bool:
    """Whether `data` begins as Parquet files do.

    >>> is_parquet(b"1, 2")
    False
    """
    return data.startswith(MAGIC)


def read_columns(data: bytes, names: Sequence[str]) -> list[NDArray[Any]]:
    """The columns of these names; a missing number is NaN."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise TaciturnError(needs_extra("Parquet", "data", "pyarrow")) from None
    try:
        file = ParquetFile(io.BytesIO(data))
        absent = [name for name in names if name not in file.schema_arrow.names]
        table = file.read(columns=list(names))
    except (ArrowException, OSError) as error:
        raise InvalidInput(f"it cannot be read as a Parquet file ({error}).") from error
    if absent:
        raise InvalidInput(f"it has no column {absent[0]}.")
    return [np.asarray(table[name].to_numpy()) for name in names]
