"""Rows of JSON lines: a line is an object, whatever stands in it.

Columns that an object does not name are missing, as null is; names that the contract does not know are not read. Of
a column that is named twice the last value counts. A column whose value is a list or an object makes a row bad.
A UTF-8 byte order mark at the start of the file is skipped (`taciturn.readers.lines`); anywhere else it is no JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.contract.values import PlainValues
from taciturn.readers.lines import LONGEST, line_ends
from taciturn.readers.parsed import Parsed


@dataclass(frozen=True)
class JsonRows:
    r"""Takes blocks of lines apart.

    >>> [part] = JsonRows(wanted=("x",)).parse(b'{"x": 1, "z": 2}\n{"x": [1]}\n7\n', first=1)
    >>> part.values["x"].values, sorted(part.broken.items())
    ([1, None, None], [(1, 'x is a list'), (2, 'it is no object in braces')])
    """

    wanted: tuple[str, ...]

    def parse(self, block: bytes, first: int, size: int = 0) -> Iterator[Parsed]:
        """The rows of a block whose first line has this number."""
        broken: dict[int, str] = {}
        records, ends = [], line_ends(block).tolist()
        for row, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            record = self._record(block[start:end])
            if isinstance(record, str):
                broken[row] = record
            records.append({} if isinstance(record, str) else record)
        values = {name: self._column(name, [record.get(name) for record in records], broken) for name in self.wanted}
        yield Parsed(values, np.arange(first, first + len(ends)), broken, size)

    def _record(self, line: bytes) -> dict[str, Any] | str:
        """The object of a line, or what is wrong with it."""
        if len(line.rstrip(b"\n")) > LONGEST:
            return f"it is longer than {LONGEST:,} bytes"
        try:
            record = json.loads(line.decode())
        except (ValueError, RecursionError):  # JSONDecodeError, UnicodeDecodeError, numbers of too many digits
            return "it is no JSON"
        if not isinstance(record, dict):
            return "it is no object in braces"
        return record

    @staticmethod
    def _column(name: str, values: list[Any], broken: dict[int, str]) -> PlainValues:
        """A column's values; a list or an object among them breaks its row."""
        if not {list, dict}.isdisjoint(map(type, values)):
            for row, value in enumerate(values):
                if isinstance(value, list | dict):
                    broken.setdefault(row, f"{name} is {'a list' if isinstance(value, list) else 'an object'}")
                    values[row] = None
        return PlainValues(values)
