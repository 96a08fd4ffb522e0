"""Rows of a Parquet file, in batches of records; only the columns of the contract are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from taciturn.errors import InvalidInput, needs_extra
from taciturn.kernel.problem.row_wise import row_wise
from taciturn.readers.parsed import Parsed
from taciturn.readers.source import Source


def open_parquet(source: Source) -> Any:
    """Open a Parquet file."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InvalidInput(f"{needs_extra('Parquet', 'data', 'pyarrow')} Or use CSV.") from None
    if not isinstance(source, str | os.PathLike) and not source.seekable():
        raise InvalidInput("Parquet cannot be read from a pipe. Pass the file name, or pipe CSV or JSON lines.")
    try:
        return parquet.ParquetFile(source, pre_buffer=False)
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        reason = os.strerror(error.errno) if error.errno else "No such file or directory"
        raise InvalidInput(f"{source} cannot be read: {reason}. Check its name and permissions.") from None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> InvalidInput:
    return InvalidInput(f"this Parquet file cannot be read: {' '.join(str(error).split())[:200]}. Write it again.")


@row_wise
def parquet_blocks(file: Any, columns: tuple[str, ...], most: int, size: int, start: int = 0) -> Iterator[Parsed]:
    """Blocks of `most` rows of these columns, of a file of `size` bytes, after the first `start` rows; in parts.

    Rows are numbered from 1. Groups of rows that end before the start are not read.
    """
    from taciturn.readers.arrow import ArrowValues

    groups, skip = _groups_from(file, start)
    done, left = start - skip, most
    rows = max(1, file.metadata.num_rows)
    for batch in _batches(file, columns, most, groups):
        skipped = min(skip, batch.num_rows)
        skip -= skipped
        done += skipped
        batch = batch.slice(skipped)
        while batch.num_rows:  # how many depends on where the file was cut when it was written
            part, batch = batch.slice(0, left), batch.slice(left)
            numbers = np.arange(done + 1, done + 1 + part.num_rows)
            done += part.num_rows
            values = {name: ArrowValues(part.column(part.schema.get_field_index(name))) for name in columns}
            left -= part.num_rows
            yield Parsed(values, numbers, size=size * done // rows, last=not left)
            left = left or most


def _groups_from(file: Any, start: int) -> tuple[list[int], int]:
    """The groups of rows that do not end before row `start`, and the number of rows of the first that do."""
    ends = np.cumsum([file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)], dtype=np.int64)
    first = int(np.searchsorted(ends, start, side="right"))
    return list(range(first, len(ends))), start - int(ends[first - 1] if first else 0)


def _batches(file: Any, columns: tuple[str, ...], most: int, groups: list[int]) -> Iterator[Any]:
    import pyarrow as pa

    if not groups:  # which Arrow would take for all of them
        return
    try:
        yield from file.iter_batches(batch_size=most, row_groups=groups, columns=list(columns), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error) from None


def check_kinds(
    schema: Any, names: tuple[str, ...], numbers: frozenset[str], dates: frozenset[str] = frozenset()
) -> None:
    """Reject nested columns, and columns with a declared range, of numbers or dates, that hold neither."""
    from pyarrow import types

    for name in names:
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        text = types.is_string(kind) or types.is_large_string(kind)
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if types.is_nested(kind):
            raise InvalidInput(
                f"column {name} holds {kind}, which is not a single value. Split it into columns, or ignore it."
            )
        if name in numbers and not (text or number):
            dated = "date, " if types.is_timestamp(kind) or types.is_date(kind) else ""
            raise InvalidInput(
                f"column {name} holds {kind}, which has no range. Declare {dated}categories, hash or ignore."
            )
        if name in dates and not (text or number or types.is_timestamp(kind) or types.is_date(kind)):
            raise InvalidInput(f"column {name} holds {kind}, which is no date. Declare categories, hash or ignore.")
