"""Rows of JSON lines: one object per line.

A column that is not in the object is missing, and so is null; names that are not in the contract are not read. If a
name occurs twice, the last value counts. A list or an object as the value of a column is unreadable, as everything is
in a line that is no object. A UTF-8 byte order mark at the start of the file is skipped (`taciturn.readers.lines`);
anywhere else it is not valid JSON. What a value holds never makes valid JSON invalid: not its number of digits, and not
how deeply it is nested (`read_json`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.columns.values import PlainValues, Unreadable
from taciturn.kernel.problem.row_wise import RowWise
from taciturn.readers.lines import LONGEST, line_ends
from taciturn.readers.parsed import Parsed

DEEPEST = 32
"""Levels of lists and objects that are read; a value that lies deeper is an empty list."""

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def read_json(text: str) -> Any:
    """Valid JSON as Python objects, however many digits its numbers have and however deeply its values are nested.

    Python itself rejects a whole text for one integer of more than 4,300 digits, and for more levels than its stack
    has left: then one row would decide what becomes of the others. Here such a number is infinite, as one out of range
    is; and what lies deeper than `DEEPEST` levels is an empty list, which no column reads either.

    >>> read_json('{"x": %s, "y": 1}' % ("9" * 5_000))
    {'x': inf, 'y': 1}
    >>> read_json("[" * 100_000 + "]" * 100_000) == eval("[" * 33 + "]" * 33)
    True
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        return json.loads(_shallow(text), parse_int=_integer)


def _integer(digits: str) -> int | float:
    """An integer as `json.loads` reads it in a text that it takes; infinite where it takes none."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _shallow(text: str) -> str:
    """The text without what lies deeper than `DEEPEST` levels; brackets within strings are no brackets."""
    depth, kept, start = 0, [], 0
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(text[start : token.start()] + "[")
        elif bracket in "]}":
            if depth == DEEPEST + 1:
                kept.append("]")
                start = token.end()
            depth -= 1
    return "".join(kept) + text[start:] if depth == 0 else text


@dataclass(frozen=True)
class JsonRows(RowWise):
    r"""Parser of blocks of JSON lines.

    >>> [part] = JsonRows(columns=("x",)).parse(b'{"x": 1, "z": 2}\n{"x": [1]}\n7\n', first=1)
    >>> part.values["x"].values, part.broken
    ([1, [1], Unreadable(reason='is not there')], {2: 'it is not a JSON object'})
    """

    columns: tuple[str, ...]

    def parse(self, block: bytes, first: int, size: int = 0) -> Iterator[Parsed]:
        """Parse a block whose first line has the number `first`."""
        ends = line_ends(block).tolist()
        records = [self.record(block[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
        yield self.parsed(records, first, size)

    def parsed(self, records: Sequence[Any], first: int = 1, size: int = 0) -> Parsed:
        """Rows that were decoded: an object each, or the error of one that is none.

        >>> part = JsonRows(columns=("x",)).parsed([{"x": 1}, {"y": 7}, "it is not valid JSON"])
        >>> part.values["x"].values, sorted(part.broken)
        ([1, None, Unreadable(reason='is not there')], [2])
        """
        broken: dict[int, str] = {}
        if not all(type(record) is dict for record in records):
            for row, record in enumerate(records):
                if not isinstance(record, dict):
                    broken[row] = record if isinstance(record, str) else "it is not a JSON object"
            no_record = dict.fromkeys(self.columns, Unreadable("is not there"))
            records = [record if isinstance(record, dict) else no_record for record in records]
        values = {name: PlainValues([record.get(name) for record in records]) for name in self.columns}
        return Parsed(values, np.arange(first, first + len(records)), broken, size)

    @staticmethod
    def record(line: bytes) -> dict[str, Any] | str:
        """The object of a line, or its error."""
        if len(line.rstrip(b"\n")) > LONGEST:
            return f"it is longer than {LONGEST:,} bytes"
        try:
            record = read_json(line.decode())
        except (ValueError, RecursionError):  # JSONDecodeError, UnicodeDecodeError
            return "it is not valid JSON"
        if not isinstance(record, dict):
            return "it is not a JSON object"
        return record
