"""Blocks of CSV by Arrow's reader, where it reads them as `taciturn.readers.csv` defines: the fast twin.

It is asked only where the two cannot differ: no quotes, no carriage return but at a line's end, no empty line, UTF-8,
lines of legal length, and no byte order mark at the beginning of a block, where Arrow would take it off. Numbers that
are infinite or not a number are Arrow's own idea. If it refuses a field, a count of fields or anything else, the block
is read the other way.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn._util.arrays import Integers
from taciturn.readers.lines import LONGEST

if TYPE_CHECKING:
    from taciturn.readers.arrow import ArrowValues
    from taciturn.readers.csv_header import Header


def read_fast(
    block: bytes, ends: Integers, header: Header, wanted: Sequence[str], floats: frozenset[str]
) -> dict[str, ArrowValues] | None:
    r"""The values of these columns, or None if they must be read the other way.

    >>> from taciturn.readers.csv_header import header_of
    >>> from taciturn.readers.lines import line_ends
    >>> block = b"1,a\n2,b\n"
    >>> read_fast(block, line_ends(block), header_of(b"x,y"), ["x"], frozenset("x"))["x"].numbers()
    array([1., 2.])
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    if not _plain(block, ends):
        return None
    names = [str(i) for i in range(len(header.names))]
    places = {name: names[header.places[name]] for name in wanted}
    kinds = {places[n]: pa.float64() if n in floats else pa.dictionary(pa.int32(), pa.string()) for n in wanted}
    try:
        table = csv.read_csv(pa.BufferReader(block), *_options(csv, names, header.delimiter, kinds, len(block)))
    except (pa.ArrowException, ValueError):
        return None
    values = _values(table, places)
    whole = table.num_rows == len(ends) and all(_finite(values[name]) for name in wanted if name in floats)
    return values if whole else None


def _plain(block: bytes, ends: Integers) -> bool:
    """Whether nothing in a block is read differently here."""
    lengths, returns = np.diff(ends, prepend=0), b"\r" in block
    if b'"' in block or int(lengths.max()) > LONGEST or int(lengths.min()) <= 1 + returns:  # an empty line, perhaps
        return False
    if block.startswith(BOM_UTF8) or (returns and block.count(b"\r") != block.count(b"\r\n")):
        return False
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _options(csv: Any, names: list[str], delimiter: str, kinds: dict[str, Any], size: int) -> tuple[Any, Any, Any]:
    return (
        csv.ReadOptions(column_names=names, block_size=size + 1),
        csv.ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds),
            null_values=[],
            true_values=[],
            false_values=[],
            strings_can_be_null=False,
            check_utf8=False,
        ),
    )


def _finite(values: ArrowValues) -> bool:
    from taciturn.readers.arrow import in_memory

    return bool(np.isfinite(in_memory(values.column, np.float64, np.nan)).all())


def _values(table: Any, places: dict[str, str]) -> dict[str, ArrowValues]:
    from taciturn.readers.arrow import ArrowValues

    return {name: ArrowValues(table[place]) for name, place in places.items()}
