"""Rows of a file or a pipe as the contract reads them: batches of features and labels, in constant memory.

**Nobody's row changes another's.** How a row is read depends on that row and the contract alone (and on the header or
schema, which are public), and every row takes its round. With `bad_rows="zero"` a bad one becomes an example without
influence. What counts as a row is the format's: a record in Parquet, and a line in CSV and JSON lines, so whoever can
write a newline into a CSV file can add rows. With `bad_rows="stop"` the first bad row ends the stream, and its refusal
speaks of the data: keep it on the trusted side.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from taciturn._util.arrays import Array, Integers
from taciturn.contract.columns import Range
from taciturn.contract.contract import Contract
from taciturn.contract.target import Number
from taciturn.errors import InvalidInput, integer, one_of
from taciturn.readers.csv import CsvRows, header_of
from taciturn.readers.jsonl import JsonRows
from taciturn.readers.lines import Lines
from taciturn.readers.parquet import check_kinds, open_parquet, parquet_blocks
from taciturn.readers.parsed import Parsed, columns_to_read
from taciturn.readers.source import BadRows, Source, format_of, opened, size_of

_ENTRIES = 2**20  # of a batch


class Batch(NamedTuple):
    """Rows that were read together.

    Attributes
    ----------
    X : ndarray
        Features, a row each, float64 and contiguous; a bad row is NaN.
    y : ndarray
        Labels: -1 and +1, class numbers from 0, or numbers about the middle of their range; NaN where the row is bad;
        empty if labels were not asked for.
    first : int
        The number of the first row, counted from 0 over all rows.
    lines : ndarray of int
        The line of each row in its file, counted from 1, header included; in Parquet the row.
    size : int
        Bytes of the source used so far, 0 if unknown.
    """

    X: Array
    y: Array
    first: int
    lines: Integers
    size: int


def open_rows(
    contract: Contract,
    source: Source,
    *,
    bad_rows: BadRows = "stop",
    labelled: bool = True,
    format: str | None = None,
    block: int = 2**15,
) -> Iterator[Batch]:
    r"""Batches of at most `block` rows, of a file, of `"-"` for the standard input, or of an open binary file.

    The format follows from a file's ending, and is CSV where there is none: it is never guessed from rows. From a live
    input rows come as they arrive, a second late at most.

    >>> import io
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> [batch] = open_rows(contract, io.BytesIO(b"x,y\n1,2\n4,0\n"))
    >>> batch.X.ravel(), batch.y, batch.lines
    (array([-0.5,  1. ]), array([ 1., -1.]), array([2, 3]))
    """
    one_of("bad_rows", bad_rows, get_args(BadRows))
    most = min(integer("block", block), max(1, _ENTRIES // contract.dimension))
    kind = format_of(source, format)
    parts = (_parquet if kind == "parquet" else _lines)(contract, source, labelled, kind, most)
    next(parts)  # the header or schema is read now, and refused now
    return _batches(contract, parts, bad_rows, labelled)


def _batches(contract: Contract, parts: Iterator[Parsed | None], bad_rows: str, labelled: bool) -> Iterator[Batch]:
    first = 0
    for part in filter(None, parts):
        X, y, bad = part.encode(contract, labelled)
        if bad_rows == "stop" and bad.any():
            row = int(bad.argmax())
            if row:
                yield Batch(X[:row], y[:row], first, part.lines[:row], part.size)
            passes = "zero to let rows like it pass as examples without influence" if labelled else "blank to go on"
            raise InvalidInput(
                f"line {part.lines[row]}: {part.complaint(row, contract, labelled)}. Mend the row, or say --bad-rows "
                f"{passes}."
            )
        yield Batch(X, y, first, part.lines, part.size)
        first += len(X)


def _lines(contract: Contract, source: Source, labelled: bool, kind: str, most: int) -> Iterator[Parsed | None]:
    """None when the header is read, then blocks."""
    wanted, line = tuple(columns_to_read(contract, labelled)), 1
    with opened(source) as (stream, position):
        lines = Lines(stream, position, skip_mark=kind == "json")  # of CSV it is the header's
        if kind == "csv":
            header, line = header_of(lines.first()), 2
            check_names(header.names, contract, labelled)
            rows: CsvRows | JsonRows = CsvRows(header, wanted, _numbers(contract))
        else:
            rows = JsonRows(wanted)
        yield None
        for block in lines.blocks(most):
            for part in rows.parse(block, line, lines.size):
                line += len(part.lines)
                yield part


def _parquet(contract: Contract, source: Source, labelled: bool, kind: str, most: int) -> Iterator[Parsed | None]:
    """None when the schema is read, then blocks."""
    wanted = tuple(columns_to_read(contract, labelled))
    if str(source) == "-":
        source = sys.stdin.buffer
    with open_parquet(source) as file:
        check_names(tuple(file.schema_arrow.names), contract, labelled)
        check_kinds(file, wanted, _numbers(contract))
        yield None
        yield from parquet_blocks(file, wanted, most, size_of(source))


def _numbers(contract: Contract) -> frozenset[str]:
    """The columns of which only numbers are wanted."""
    ranges = {column.name for column in contract.read if isinstance(column, Range)}
    return frozenset(ranges | ({contract.target.column} if isinstance(contract.target, Number) else set()))


def check_names(names: Sequence[str], contract: Contract, labelled: bool) -> None:
    """Refuse a header that lacks a column, has one twice, or, where we learn, one that nobody declared."""
    for name in columns_to_read(contract, labelled):
        if names.count(name) != 1:
            what = "not in the header" if name not in names else "twice in the header"
            listed = ", ".join(names[:20]) + (" ..." if len(names) > 20 else "")
            raise InvalidInput(
                f"column {name} of the contract is {what}, which has {listed}. Mend one of the two; if that "
                "is a row, the file has no header: put the names before it."
            )
    known = {contract.target.column, *(column.name for column in contract.columns)}
    undeclared = [name for name in names if name not in known]
    if labelled and undeclared:
        raise InvalidInput(
            f"column {undeclared[0] or 'without a name'} is in the file and not in the contract. Declare it under "
            "[columns], if only as { ignore = true }."
        )
