"""Where data files come from: the folder `TACITURN_DATA`, the cache, or a download into the cache.

The two folders are searched in this order, and no other folder is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from taciturn._util.cache import cache
from taciturn.errors import InvalidInput

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
    return f"{listed}; the environment variable {VARIABLE} names a folder of your choice"


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
            # A connection cut short looks like the end of the file: only the announced size tells them apart.
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
