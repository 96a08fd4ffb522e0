"""Sources of rows: a file, plain or compressed by gzip, the standard input, or an open binary file; and formats."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Literal, cast, get_args

from taciturn.errors import InvalidInput, one_of

Format = Literal["csv", "json", "parquet"]
Source = str | os.PathLike[str] | BinaryIO
BadRows = Literal["stop", "zero"]

_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(source: Source, format: str | None = None) -> str:
    """The given format, or the one of the file extension.

    >>> format_of("data.csv.gz"), format_of("-"), format_of("rows.jsonl")
    ('csv', 'csv', 'json')
    """
    if format is not None:
        return one_of("format", format, get_args(Format))
    if not isinstance(source, str | os.PathLike) or str(source) == "-":
        return "csv"
    ending = Path(str(source).lower().removesuffix(".gz")).suffix
    if ending not in _ENDINGS:
        raise InvalidInput(f"{source} has no known file extension. Rename it, or pass --format csv, json or parquet.")
    return _ENDINGS[ending]


@contextmanager
def opened(
    source: Source, buffered: bool = True, seekable: bool = False
) -> Iterator[tuple[IO[bytes], Callable[[], int] | None]]:
    """Open a source, decompressed, and return how to tell the position in a compressed file; close it at the end.

    Without `buffered`, no byte is taken from the source beyond those that are read, as far as the system allows. With
    `seekable`, a pipe is rejected, and so is the standard input, whatever it is.
    """
    if not isinstance(source, str | os.PathLike):
        if seekable and not source.seekable():
            raise not_seekable()
        yield source, None
    elif str(source) == "-":
        if seekable:
            raise not_seekable()
        yield sys.stdin.buffer if buffered else getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), None
    else:
        try:
            with open(source, "rb", buffering=-1 if buffered else 0) as raw:
                if seekable and not raw.seekable():
                    raise not_seekable()
                if str(source).endswith(".gz"):
                    with gzip.open(cast(IO[bytes], raw)) as unpacked:
                        yield cast(IO[bytes], unpacked), raw.tell
                else:
                    yield cast(IO[bytes], raw), None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInput(f"{source} is not a complete gzip file: {error}. Compress it again.") from None
        except OSError as error:
            raise InvalidInput(
                f"{source} cannot be read: {error.strerror or error}. Check its name and permissions."
            ) from None


def not_seekable() -> InvalidInput:
    """The error of a source that cannot be read from another place than its beginning."""
    return InvalidInput(
        "a pipe, or the standard input, can only be read from its beginning. Pass the name of a file to start at "
        "another place."
    )


def size_of(source: Source) -> int:
    """Size of a file in bytes; 0 if it is unknown.

    >>> size_of("-")
    0
    """
    if not isinstance(source, str | os.PathLike) or str(source) == "-" or not os.path.isfile(source):
        return 0
    return os.path.getsize(source)
