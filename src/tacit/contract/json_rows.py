"""Rows of JSON lines: a line is an object, whatever stands in it.

Columns that an object does not name are missing, as null is; names that the contract does not know are not read. An
object that names a column twice, and one whose value is a list or an object, are bad.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.contract.lines import LONGEST, line_ends
from tacit.contract.parsed import Parsed
from tacit.contract.values import PlainValues


@dataclass(frozen=True)
class JsonRows:
    r"""Takes blocks of lines apart.

    >>> [part] = JsonRows(wanted=("x",)).parse(b'{"x": 1, "z": 2}\n{"x": [1]}\n7\n', first=1)
    >>> part.values["x"].values, part.broken
    ([1, None, None], {1: 'x is a list', 2: 'it is no object in braces'})
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
        values = {name: PlainValues([record.get(name) for record in records]) for name in self.wanted}
        yield Parsed(values, np.arange(first, first + len(ends)), broken, size)

    def _record(self, line: bytes) -> dict[str, Any] | str:
        """The object of a line, or what is wrong with it."""
        if len(line.rstrip(b"\n")) > LONGEST:
            return f"it is longer than {LONGEST:,} bytes"
        try:
            record = json.loads(line.decode(), object_pairs_hook=_object)
        except _TwiceError as twice:
            return f"{twice} is named twice"
        except (ValueError, RecursionError):  # JSONDecodeError, UnicodeDecodeError, numbers of too many digits
            return "it is no JSON"
        if not isinstance(record, dict):
            return "it is no object in braces"
        for name in self.wanted:
            if isinstance(record.get(name), list | dict):
                return f"{name} is {'a list' if isinstance(record[name], list) else 'an object'}"
        return record


class _TwiceError(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return made
