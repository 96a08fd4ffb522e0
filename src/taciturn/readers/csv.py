"""Rows of a CSV file, which may contain newlines within quotes.

Fields are separated by a comma, a semicolon or a tab, the one that is most frequent in the header. A field that begins
with a quote ends with a quote, and a quote inside it is doubled; in other fields quotes are ordinary characters. A
field that is not UTF-8 is unreadable. A row with too few or too many fields is bad, as is one with a quote that is not
balanced, or an empty line; its fields are read from the left, by their places, up to where that ends.

**Where a row ends** (`record_ends`). A row is the shortest run of lines that is a record of RFC 4180: fields that are
quoted, or contain neither quotes nor newlines. If there is none within a megabyte, the row is one line. So what a CSV
writer writes is read back, one row per record, whatever texts the fields contain: no text adds a row, or takes one
away. In a file of a program that does not quote, a quote that is never closed, or is closed in the middle of a field,
makes one bad row and changes no other. Two rows of such a file can make one bad row of the lines between them (`"a` at
the end of one, and `b"` where a field ends in another), as they can in every reader of CSV.

Blocks without stray quotes go through Arrow's reader (`read_fast`), if it is there and takes them; `split`
is the definition.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.columns.values import PlainValues, Unreadable
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Integers
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.readers.lines import LONGEST, line_ends
from taciturn.readers.parsed import Parsed

if TYPE_CHECKING:
    from taciturn.readers.arrow import ArrowValues

DELIMITERS = (",", ";", "\t")

_FEW = 256  # a block of at most so many lines that the fast path does not accept is not split further


@dataclass(frozen=True)
class CsvRows(RowWise):
    r"""Parser of blocks of CSV lines.

    >>> from taciturn.readers.csv import header_of
    >>> rows = CsvRows(header_of(b"x,y"), columns=("y",), floats=frozenset())
    >>> [part] = rows.parse(b'1,"a"\n2,b,c\n', first=2)
    >>> part.values["y"].value(0), part.lines, part.broken
    ('a', array([2, 3]), {1: 'it has 3 fields instead of 2'})
    """

    header: Header
    columns: tuple[str, ...]
    floats: frozenset[str]

    def parse(self, block: bytes, first: int, size: int = 0, fast: bool = True) -> Iterator[Parsed]:
        """Parse a block whose first line has the number `first`.

        If the fast path does not accept the block, its halves are tried, so that a few unusual lines do not slow down
        the others.
        """
        if b'"' in block:
            ends = self.ends(block)
            lines = first + lines_before(block, ends)
        else:
            ends = line_ends(block)
            lines = np.arange(first, first + len(ends))
        yield from self._parse(block, ends, lines, 0, size, fast)

    def ends(self, block: bytes, final: bool = True) -> Integers:
        """Where the rows of a block end."""
        return record_ends(block, self.header.delimiter, final)

    def _parse(self, block: bytes, ends: Integers, lines: Integers, at: int, size: int, fast: bool) -> Iterator[Parsed]:
        """Parse a block that is `at` bytes after the start of one, from where its rows end and their line numbers."""
        values = read_fast(block, ends, self.header, self.columns, self.floats) if fast else None
        if values is not None:
            yield Parsed(values, lines, size=size, offset=at)
        elif fast and len(ends) > _FEW:
            half = len(ends) // 2
            cut = int(ends[half - 1])
            yield from self._parse(block[:cut], ends[:half], lines[:half], at, size, fast)
            yield from self._parse(block[cut:], ends[half:] - cut, lines[half:], at + cut, size, fast)
        else:
            yield self._parse_fallback(block, ends, lines, at, size)

    def _parse_fallback(self, block: bytes, ends: Integers, lines: Integers, at: int, size: int) -> Parsed:
        broken: dict[int, str] = {}
        records = []
        count = len(self.header.names)
        for row, (start, end) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
            fields, error = self._fields(block[start:end])
            if error is not None:
                broken[row] = error
                fields += [Unreadable("is not there")] * (count - len(fields))
            records.append(fields)
        places = [self.header.places[name] for name in self.columns]
        values = {n: PlainValues([r[i] for r in records]) for n, i in zip(self.columns, places, strict=True)}
        return Parsed(values, lines, broken, size, at)

    def _fields(self, line: bytes) -> tuple[list[Any], str | None]:
        """The fields of a line, by their places, as far as they can be read; and its error, if it is damaged."""
        text = line.decode(errors="surrogateescape").removesuffix("\n").removesuffix("\r")
        if not text:
            return [], "it is empty"
        found, balanced = _split(text, self.header.delimiter)
        fields: list[Any] = [_decoded(field) for field in found]
        count = len(self.header.names)
        if len(line.rstrip(b"\n")) > LONGEST:  # the rest is not here, and the last field may go on in it
            return fields[:-1], f"it is longer than {LONGEST:,} bytes"
        if not balanced:
            return fields, "a quote is not balanced"
        return fields, None if len(fields) == count else f"it has {len(fields)} fields instead of {count}"


def record_ends(block: bytes, delimiter: str, final: bool = True) -> Integers:
    r"""Where the rows of a block of complete lines end, newline included; the last may lack one.

    If more may follow the block (it is not `final`), a row at its end that may go on is left out.

    >>> record_ends(b'1,"a\nb"\n2,"c\n3,d\n', ",")
    array([ 8, 13, 17])
    >>> record_ends(b'1,"a\nb"\n2,"c\n3,d\n', ",", final=False)
    array([8])
    """
    if b'"' not in block:
        return line_ends(block)
    regular = _RECORDS[delimiter].match(block)
    cut = regular.end() if regular is not None else 0
    first = _ends_outside_quotes(block[:cut])
    if np.diff(first, prepend=0).max(initial=0) > LONGEST + 1:
        return _record_ends(block, delimiter, final)
    rest = _record_ends(block[cut:], delimiter, final) + cut if cut < len(block) else first[:0]
    return np.concatenate([first, rest])


def _ends_outside_quotes(block: bytes) -> Integers:
    """Fast path of `_record_ends`, for a block of records: where lines end after an even number of quotes."""
    data = np.frombuffer(block, dtype=np.uint8)
    quoted = np.bitwise_xor.accumulate((data == ord('"')).view(np.uint8)).view(np.bool_)
    return np.flatnonzero((data == ord("\n")) & ~quoted).astype(np.int64) + 1


def _record_ends(block: bytes, delimiter: str, final: bool) -> Integers:
    """The definition of `record_ends`, a line at a time."""
    ends = line_ends(block)
    quotes = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord('"'))
    stops = ends.tolist()
    inner = np.zeros(len(stops), dtype=np.bool_)  # lines that do not end their row
    record, unfinished = _RECORD[delimiter], _UNFINISHED[delimiter]
    after = 0  # the end of the last record of several lines
    for line in np.unique(np.searchsorted(ends, quotes, side="right")).tolist():
        start = stops[line - 1] if line else 0
        if start < after:
            continue
        match = record.match(block, start)
        if match is None:
            if not final and len(block) - start <= LONGEST + 1 and unfinished.match(block, start):
                return ends[:line][~inner[:line]]
        elif match.end() > stops[line] and match.end() - start <= LONGEST + 1:
            after = match.end()
            inner[line : bisect_left(stops, after)] = True
    return ends[~inner]


def _patterns(*parts: str) -> dict[str, re.Pattern[bytes]]:
    """For each delimiter, a pattern in which `field` and `delimiter` stand for themselves.

    Nothing is matched in two ways, so that the time is linear: the quantifiers are possessive.
    """
    quoted = r'"[^"]*+(?:""[^"]*+)*+"'
    return {
        d: re.compile("".join(parts).replace("field", rf'(?:{quoted}|[^"{d}\n]*+)').replace("delimiter", d).encode())
        for d in DELIMITERS
    }


_RECORD = _patterns(r"(?:field(?:delimiter))*+", r"field(?:\r?\n|\Z)")
_RECORDS = _patterns(r"(?:(?:field(?:delimiter))*+", r"field\r?\n)*+")
_UNFINISHED = _patterns(r"(?:field(?:delimiter))*+", r'"[^"]*+(?:""[^"]*+)*+\Z')


def lines_before(block: bytes, ends: Integers) -> Integers:
    r"""How many lines of a block are before each row, from where the rows end.

    >>> lines_before(b'1,"a\nb"\n2,c\n', np.array([8, 12]))
    array([0, 2])
    """
    return np.concatenate([[0], np.searchsorted(line_ends(block), ends[:-1]) + 1])


def header_ends(block: bytes, final: bool = True) -> Integers:
    r"""Where the header of a file ends, whose delimiter is not known yet; nothing if that is not known either.

    >>> header_ends(b'"a\nb";c\n1;2\n')
    array([8])
    """
    block = block[: LONGEST + 2]
    firsts = [record_ends(block, delimiter, final)[:1] for delimiter in DELIMITERS]
    if any(len(first) == 0 for first in firsts):
        return np.empty(0, dtype=np.int64)
    return max(firsts, key=lambda first: int(first[0]))


def split(line: str, delimiter: str) -> list[str] | None:
    r"""The fields of a line, or None if a quote is not balanced.

    >>> split('1,"a ""b"", c",5" pipe', ",")
    ['1', 'a "b", c', '5" pipe']
    >>> split('1,"a', ","), split('1,"a"b', ",")
    (None, None)
    """
    fields, balanced = _split(line, delimiter)
    return fields if balanced else None


def _split(line: str, delimiter: str) -> tuple[list[str], bool]:
    """The fields of a line up to one whose quote is not balanced, and whether there is none."""
    if '"' not in line:
        return line.split(delimiter), True
    fields: list[str] = []
    at = 0
    pattern = _FIELD[delimiter]
    while match := pattern.match(line, at):
        fields.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        at = match.end()
        if at == len(line):
            return [*fields, ""] if match[3] else fields, True
    return fields, False


def _decoded(field: str) -> str | Unreadable:
    """A field of a line; bytes that are not UTF-8 are surrogates in it, which UTF-8 never gives."""
    if field.isascii() or not _SURROGATE.search(field):
        return field
    return Unreadable("is not UTF-8, in which the file must be saved or converted (iconv -f latin1 -t utf-8)")


_SURROGATE = re.compile("[\udc80-\udcff]")
_FIELD = {d: re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|((?!")[^{d}]*))({d}|\Z)', re.S) for d in DELIMITERS}


@dataclass(frozen=True)
class Header:
    r"""The header of a CSV file, which is public: the names of the columns and the delimiter.

    >>> header_of(b"age;town\r\n")
    Header(names=('age', 'town'), delimiter=';')
    """

    names: tuple[str, ...]
    delimiter: str

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


def header_of(line: bytes) -> Header:
    """Parse the first line of a file."""
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput("the header is not UTF-8. Save the file as UTF-8.") from None
    if text.lstrip().startswith("{"):
        raise InvalidInput("the first line is JSON, not the header of a CSV file. Pass --format json.")
    delimiter = max(DELIMITERS, key=re.sub(r'"[^"]*"', "", text).count)
    names = tuple(name.strip() for name in split(text, delimiter) or [])
    if not any(names) or len(line) > LONGEST:
        raise InvalidInput("the first line must be a header with the names of the columns. Add one to the file.")
    return Header(names, delimiter)


def read_fast(
    block: bytes, ends: Integers, header: Header, columns: Sequence[str], floats: frozenset[str]
) -> dict[str, ArrowValues] | None:
    r"""Fast path: the values of these columns by Arrow's reader, or None if the block must be parsed by the fallback.

    It is used only where the two cannot differ: no quotes but those of records of RFC 4180, no carriage return except
    at the end of a line, no empty line, valid UTF-8, no row that is too long, and no byte order mark at the start of
    the block, which Arrow would skip.
    Arrow also parses infinities and NaN as numbers; a block with one of them, and a block that Arrow rejects for any
    reason, are left to the fallback.

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
    quoted = b'"' in block
    if not _plain(block, ends) or (quoted and not _RECORDS[header.delimiter].fullmatch(block)):
        return None
    names = [str(i) for i in range(len(header.names))]
    places = {name: names[header.places[name]] for name in columns}
    kinds = {places[n]: pa.float64() if n in floats else pa.dictionary(pa.int32(), pa.string()) for n in columns}
    try:
        table = csv.read_csv(pa.BufferReader(block), *_options(csv, names, header.delimiter, kinds, len(block), quoted))
    except (pa.ArrowException, ValueError):
        return None
    values = _values(table, places)
    complete = table.num_rows == len(ends) and all(_finite(values[name]) for name in columns if name in floats)
    return values if complete else None


def _plain(block: bytes, ends: Integers) -> bool:
    """Whether Arrow reads everything in a block as `split` defines, but for quotes."""
    lengths = np.diff(ends, prepend=0)
    returns = b"\r" in block
    if int(lengths.max()) > LONGEST or int(lengths.min()) <= 1 + returns:  # an empty line, perhaps
        return False
    if block.startswith(BOM_UTF8) or (returns and block.count(b"\r") != block.count(b"\r\n")):
        return False
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _options(
    csv: Any, names: list[str], delimiter: str, kinds: dict[str, Any], size: int, quoted: bool
) -> tuple[Any, Any, Any]:
    return (
        csv.ReadOptions(column_names=names, block_size=size + 1),
        csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            double_quote=quoted,
            newlines_in_values=quoted,
            ignore_empty_lines=False,
        ),
        csv.ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds),
            null_values=[""],  # of a number: it is missing; texts cannot be null
            true_values=[],
            false_values=[],
            strings_can_be_null=False,
            check_utf8=False,
        ),
    )


def _finite(values: ArrowValues) -> bool:
    """Whether the numbers of a column that are not missing are finite."""
    from taciturn.readers.arrow import in_memory

    return bool(np.isfinite(in_memory(values.column, np.float64, 0.0)).all())


def _values(table: Any, places: dict[str, str]) -> dict[str, ArrowValues]:
    from taciturn.readers.arrow import ArrowValues

    return {name: ArrowValues(table[place]) for name, place in places.items()}
