"""Rows decoded by the types of their columns: what learning, predictions and decisions have in common.

A plain row is an object of JSON with a value for each column and no other, with numbers where numbers are declared.
msgspec decodes such rows several times as fast as objects of any form. What is not plain is left to the definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from taciturn.columns.encoder import ColumnEncoder
from taciturn.columns.kinds import Column, Range
from taciturn.kernel.problem.row_wise import row_wise

MOST_COLUMNS = 256
"""Columns up to which bodies are decoded by their types."""

MOST_BYTES = 2**14
"""Bytes of a body up to which it is decoded by types: names of columns in any order are compared one by one."""

_ESCAPED = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')  # what JSON writes with a backslash


def numbers_and_others(encoder: ColumnEncoder) -> tuple[list[tuple[Range, slice]], list[tuple[Column, slice]]]:
    """The columns of numbers with a linear range, which are encoded as one array, and the others, with their places.

    >>> from taciturn.columns.encoder import encoder_of
    >>> encoder = encoder_of({"town": {"categories": ["Oslo", "Rome"]}, "age": {"range": [0, 100]}})
    >>> numbers, others = numbers_and_others(encoder)
    >>> [column.name for column, _ in numbers], [column.name for column, _ in others]
    (['age'], ['town'])
    """
    numbers: list[tuple[Range, slice]] = []
    others: list[tuple[Column, slice]] = []
    for column, place in zip(encoder.read, encoder.places, strict=True):
        if isinstance(column, Range) and column.scale.name == "linear":
            numbers.append((column, place))
        else:
            others.append((column, place))
    return numbers, others


def row_type(names: Sequence[str], numbers: Collection[str]) -> Any:
    """The type of a plain row with columns of these names, some of them numbers; None if there is none.

    There are too many columns for one, or msgspec takes no such name: none that JSON writes with a backslash.

    >>> row = row_type(["age", "town"], ["age"])
    >>> msgspec.json.decode(b'{"town": "Oslo", "age": 30}', type=row)
    Row(c0=30.0, c1='Oslo')
    >>> row_type(['height, 3"', "age"], ["age"]) is None
    True
    """
    if len(set(names)) < len(names) or not 0 < len(names) <= MOST_COLUMNS or any(map(_ESCAPED.search, names)):
        return None
    fields = [(f"c{i}", float if name in numbers else Any, msgspec.field(name=name)) for i, name in enumerate(names)]
    return msgspec.defstruct("Row", fields, forbid_unknown_fields=True, gc=False)


def rows_type(row: Any) -> Any:
    """The type of a body with such rows."""
    return msgspec.defstruct("Rows", [("rows", list[row])], forbid_unknown_fields=True)


@row_wise
def read_typed(decode: Callable[[bytes], Any] | None, body: bytes) -> Any:
    """A body decoded by types; None if it is long or not of them, or there are none.

    >>> read_typed(msgspec.json.Decoder(list[int]).decode, b"[1, 2]"), read_typed(None, b"[1, 2]")
    ([1, 2], None)
    """
    if decode is None or len(body) > MOST_BYTES:
        return None
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
