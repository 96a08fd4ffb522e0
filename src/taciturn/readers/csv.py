"""Rows of a CSV file: a line is a row, whatever stands in it.

A newline ends a row even within quotes, so an unbalanced quote is one bad row, and never takes other people's rows with
it. A file whose texts contain newlines has rows that this rule cuts into bad ones: write it as JSON lines or Parquet.

Fields are separated by a comma, a semicolon or a tab, whichever the header has most of. One that begins with a quote
ends with one, and holds pairs of quotes for single ones; elsewhere quotes are texts. Lines are UTF-8. A row with too
few or too many fields is bad, and so is an empty line.

Blocks without quotes go through Arrow's reader (`taciturn.readers.csv_arrow`), if it is there and takes them; `split`
is the definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taciturn._util.arrays import Integers
from taciturn.contract.values import PlainValues
from taciturn.readers.csv_arrow import read_fast
from taciturn.readers.csv_header import Header, split
from taciturn.readers.lines import LONGEST, line_ends
from taciturn.readers.parsed import Parsed

_FEW = 256  # lines that are read one after the other, if the fast reader does not take them


@dataclass(frozen=True)
class CsvRows:
    r"""Takes blocks of lines apart.

    >>> from taciturn.readers.csv_header import header_of
    >>> rows = CsvRows(header_of(b"x,y"), wanted=("y",), floats=frozenset())
    >>> [part] = rows.parse(b'1,"a"\n2,b,c\n', first=2)
    >>> part.values["y"].value(0), part.lines, part.broken
    ('a', array([2, 3]), {1: 'it has 3 fields where 2 were due'})
    """

    header: Header
    wanted: tuple[str, ...]
    floats: frozenset[str]

    def parse(self, block: bytes, first: int, size: int = 0, fast: bool = True) -> Iterator[Parsed]:
        """The rows of a block whose first line has this number; where some are unusual, in parts."""
        ends = line_ends(block)
        values = read_fast(block, ends, self.header, self.wanted, self.floats) if fast else None
        if values is not None:
            yield Parsed(values, np.arange(first, first + len(ends)), size=size)
        elif fast and len(ends) > _FEW:
            half = len(ends) // 2
            yield from self.parse(block[: ends[half - 1]], first, size)
            yield from self.parse(block[ends[half - 1] :], first + half, size)
        else:
            yield self._slowly(block, ends, first, size)

    def _slowly(self, block: bytes, ends: Integers, first: int, size: int) -> Parsed:
        broken: dict[int, str] = {}
        records, nothing = [], [""] * len(self.header.names)
        for row, (start, end) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
            fields = self._fields(block[start:end])
            if isinstance(fields, str):
                broken[row] = fields
            records.append(nothing if isinstance(fields, str) else fields)
        places = [self.header.places[name] for name in self.wanted]
        values = {n: PlainValues([r[i] for r in records]) for n, i in zip(self.wanted, places, strict=True)}
        return Parsed(values, np.arange(first, first + len(ends)), broken, size)

    def _fields(self, line: bytes) -> list[str] | str:
        """The fields of a line, or what is wrong with it."""
        if len(line.rstrip(b"\n")) > LONGEST:
            return f"it is longer than {LONGEST:,} bytes"
        try:
            text = line.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            return "it is not UTF-8"
        if not text:
            return "it is empty"
        fields, due = split(text, self.header.delimiter), len(self.header.names)
        if fields is None:
            return "a quote is not balanced (texts end with their line)"
        return fields if len(fields) == due else f"it has {len(fields)} fields where {due} were due"
