"""The first line of a CSV file, which is public, and how a line is split into fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from taciturn.errors import InvalidInput
from taciturn.readers.lines import LONGEST

DELIMITERS = (",", ";", "\t")


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
