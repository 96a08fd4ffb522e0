"""Rows of a CSV file: a line is a row, whatever stands in it.

A newline ends a row even within quotes, so an unbalanced quote is one bad row, and never takes other people's rows with
it. A file whose texts contain newlines has rows that this rule cuts into bad ones: write it as JSON lines or Parquet.

Fields are separated by a comma, a semicolon or a tab, whichever the header has most of. One that begins with a quote
ends with one, and holds pairs of quotes for single ones; elsewhere quotes are texts. Lines are UTF-8. A row with too
few or too many fields is bad, and so is an empty line.

Blocks without quotes go through Arrow's reader (`read_fast`), if it is there and takes them; `split`
is the definition.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn._util.arrays import Integers
from taciturn.contract.values import PlainValues
from taciturn.errors import InvalidInput
from taciturn.readers.lines import LONGEST, line_ends
from taciturn.readers.parsed import Parsed

if TYPE_CHECKING:
    from taciturn.readers.arrow import ArrowValues

DELIMITERS = (",", ";", "\t")

_FEW = 256  # lines that are read one after the other, if the fast reader does not take them


@dataclass(frozen=True)
class CsvRows:
    r"""Takes blocks of lines apart.

    >>> from taciturn.readers.csv import header_of
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


def split(line: str, delimiter: str) -> list[str] | None:
    r"""The fields of a line, or None if a quote is not balanced.

    >>> split('1,"a ""b"", c",5" pipe', ",")
    ['1', 'a "b", c', '5" pipe']
    >>> split('1,"a', ","), split('1,"a"b', ",")
    (None, None)
    """
    if '"' not in line:
        return line.split(delimiter)
    fields, at = [], 0
    pattern = _FIELD[delimiter]
    while match := pattern.match(line, at):
        fields.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        at = match.end()
        if at == len(line):
            return [*fields, ""] if match[3] else fields
    return None


_FIELD = {d: re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|((?!")[^{d}]*))({d}|\Z)', re.S) for d in DELIMITERS}


@dataclass(frozen=True)
class Header:
    r"""The names of the columns, which are public, and what separates them.

    >>> header_of(b"age;town\r\n")
    Header(names=('age', 'town'), delimiter=';')
    """

    names: tuple[str, ...]
    delimiter: str

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


def header_of(line: bytes) -> Header:
    """The header of a first line."""
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput("the header is not UTF-8. Save the file as UTF-8.") from None
    if text.lstrip().startswith("{"):
        raise InvalidInput("the first line is JSON, and no header of a CSV file. Say --format json.")
    delimiter = max(DELIMITERS, key=re.sub(r'"[^"]*"', "", text).count)
    names = tuple(name.strip() for name in split(text, delimiter) or [])
    if not any(names) or len(line) > LONGEST:
        raise InvalidInput("the first line must be a header, the names of the columns. Add one to the file.")
    return Header(names, delimiter)


def read_fast(
    block: bytes, ends: Integers, header: Header, wanted: Sequence[str], floats: frozenset[str]
) -> dict[str, ArrowValues] | None:
    r"""The values of these columns, or None if they must be read the other way.

    It is asked only where the two cannot differ: no quotes, no carriage return but at a line's end, no empty line,
    UTF-8, lines of legal length, and no byte order mark at the beginning of a block, where Arrow would take it off.
    Numbers that are infinite or not a number are Arrow's own idea. If it refuses a field, a count of fields or anything
    else, the block is read the other way.

    >>> from taciturn.readers.csv import header_of
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
