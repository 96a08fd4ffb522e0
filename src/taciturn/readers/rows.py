"""Rows of a file or a pipe as batches of features and labels, encoded by a contract in constant memory.

**Rows are independent.** How a row is read depends on that row and on the contract only (and on the header or schema,
which are public), and every row takes one round. With `bad_rows="zero"` a bad row becomes an example without influence.
A row is a record in Parquet and CSV (`taciturn.readers.csv` says where one ends), and a line in JSON lines. With
`bad_rows="stop"` the first bad row ends the stream, and the error tells its line, its column and the reason, which
depend on the data: keep it on the trusted side. No error quotes a value.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.columns.kinds import Bad, Bins, Date, PrivateRange, Range
from taciturn.columns.target import Number, PrivateNumber
from taciturn.contract.contract import Contract
from taciturn.errors import InvalidInput, did_you_mean, integer, one_of
from taciturn.kernel.arrays import Array, Integers
from taciturn.kernel.problem.row_wise import row_wise
from taciturn.readers.csv import CsvRows, header_ends, header_of, lines_before
from taciturn.readers.jsonl import JsonRows
from taciturn.readers.lines import Lines, line_ends
from taciturn.readers.parquet import check_kinds, open_parquet, parquet_blocks
from taciturn.readers.parsed import Parsed, columns_to_read
from taciturn.readers.source import BadRows, Source, format_of, not_seekable, opened, size_of

_ENTRIES = 2**20  # largest number of features in a batch, over all rows


class BadRow(InvalidInput):
    """The error of a row: its line, its column and the reason, and no value of it."""


class Position(NamedTuple):
    """A place in a source, at which a row begins.

    Attributes
    ----------
    row : int
        Number of rows before it.
    line : int
        Its line number, from 1, the header included; in Parquet the row number.
    offset : int
        Bytes of the decompressed source before it; 0 in Parquet.
    """

    row: int
    line: int
    offset: int


class Batch(NamedTuple):
    """A batch of rows.

    Attributes
    ----------
    X : ndarray
        Features, one row each, float64 and contiguous; a bad row is NaN.
    y : ndarray
        Labels: -1 and +1, class numbers from 0, or distances from the middle of the range; NaN for a bad row; empty if
        the rows are not labelled.
    first : int
        Index of the first row in the stream, from 0.
    lines : ndarray of int
        Line number of each row, from 1, the header included; in Parquet the row number.
    size : int
        Bytes of the source that were read so far, 0 if unknown.
    start : Position
        The place of the first row in the source, from which `open_rows` can go on.
    users : ndarray of object, optional
        The id of each row's user, as text; None where it is missing. No array without a column of ids.
    bad : ndarray of bool, optional
        Which rows are bad.
    kept : sequence of list
        The values of the columns to keep in each row; empty if there are none.
    """

    X: Array
    y: Array
    first: int
    lines: Integers
    size: int
    start: Position
    users: NDArray[Any] | None = None
    bad: Bad | None = None
    kept: Sequence[list[Any]] = ()

    def head(self, rows: int) -> Batch:
        """The first rows."""
        if rows >= len(self.X):
            return self
        users = None if self.users is None else self.users[:rows]
        bad = None if self.bad is None else self.bad[:rows]
        X, y, lines, kept = self.X[:rows], self.y[:rows], self.lines[:rows], self.kept[:rows]
        return self._replace(X=X, y=y, lines=lines, users=users, bad=bad, kept=kept)


@row_wise
def open_rows(
    contract: Contract,
    source: Source,
    *,
    bad_rows: BadRows = "stop",
    labelled: bool = True,
    format: str | None = None,
    block: int = 2**15,
    start: Position | None = None,
    keep: Sequence[str] = (),
    seen: int = 0,
    reasons: Counter[str] | None = None,
) -> Generator[Batch]:
    r"""Read batches of at most `block` rows from a file, from the standard input (`"-"`), or from an open binary file.

    All batches of a file but the last have equally many rows: how a stream is cut does not depend on what is in a row.

    The format follows from the file extension; a pipe is CSV unless `format` is given. It is never guessed from rows.
    Rows of a live input are returned at most a second after they arrive.

    With `start`, the `start` of an earlier batch, rows are read from that place on. In a plain file, and in Parquet up
    to a group of rows, nothing between the header and that place is read; a file in gzip is decompressed up to it. Only
    a place is remembered, not what stood before it: whether the file is still the same is for the caller to check.

    Of the first `seen` rows of the source a bad one never stops: they were learnt from before, and are read to be
    compared only. Why the others are bad is counted in `reasons`, one reason for each; it depends on the data.

    The file is open until the last batch, an error, or `close()`: use `contextlib.closing` if some rows are enough.

    The values of the columns `keep` are carried through as they are, in `kept`; they are the data, not encoded and not
    private.

    >>> import io
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> [batch] = open_rows(contract, io.BytesIO(b"x,y\n1,2\n4,0\n"))
    >>> batch.X.ravel(), batch.y, batch.lines
    (array([-0.5,  1. ]), array([ 1., -1.]), array([2, 3]))
    >>> one, two = open_rows(contract, io.BytesIO(b"x,y\n1,2\n4,0\n"), block=1)
    >>> two.start
    Position(row=1, line=3, offset=8)
    >>> [rest] = open_rows(contract, io.BytesIO(b"x,y\n1,2\n4,0\n"), start=two.start)
    >>> rest.y, rest.lines
    (array([-1.]), array([3]))
    >>> [batch] = open_rows(contract, io.BytesIO(b"id,x\na,01\nb,4\n"), labelled=False, keep=["id", "x"])
    >>> batch.kept
    [['a', '01'], ['b', '4']]
    """
    one_of("bad_rows", bad_rows, get_args(BadRows))
    parts = open_parts(contract, source, labelled=labelled, format=format, block=block, start=start, keep=keep)
    unit = "row" if format_of(source, format) == "parquet" else "line"
    return _batches(contract, parts, bad_rows, unit, labelled, 0 if start is None else start.row, keep, seen, reasons)


@row_wise
def open_parts(
    contract: Contract,
    source: Source,
    *,
    labelled: bool = True,
    format: str | None = None,
    block: int = 2**15,
    start: Position | None = None,
    keep: Sequence[str] = (),
) -> Generator[Parsed]:
    """The same rows as values, before they are encoded; the header or schema is read and validated now."""
    most = min(integer("block", block), max(1, _ENTRIES // contract.dimension))
    kind = format_of(source, format)
    parts = (_parquet if kind == "parquet" else _lines)(contract, source, labelled, kind, most, start, keep)
    next(parts)
    return cast(Generator[Parsed], parts)  # no more None after the first


@row_wise
def open_ids(
    contract: Contract,
    source: Source,
    *,
    format: str | None = None,
    block: int = 2**15,
    start: Position | None = None,
) -> Generator[NDArray[Any]]:
    r"""The users' ids alone, as `Batch.users` has them; of CSV and Parquet no other column is read.

    >>> import io
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> privacy = {"epsilon": 1, "user": "who"}
    >>> contract = contract_of({"privacy": privacy, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> [ids] = open_ids(contract, io.BytesIO(b"x,y,who\n1,2,anna\n4,0,\n"))
    >>> ids
    array(['anna', None], dtype=object)
    """
    if contract.user is None:
        raise InvalidInput("the contract names no column of ids. State privacy.user.")
    kind = format_of(source, format)
    only = None if kind == "json" else (contract.user,)  # a line of JSON may be bad because of any column
    parts = (_parquet if kind == "parquet" else _lines)(contract, source, True, kind, block, start, (), only)
    with closing(parts):
        for part in parts:
            if part is not None and (ids := part.users(contract)) is not None:
                yield ids


def row_positions(
    contract: Contract,
    source: Source,
    every: int,
    *,
    format: str | None = None,
    start: Position | None = None,
) -> Generator[Position]:
    r"""The places of the rows whose number, from 0, is a multiple of `every`, and of the end; no row is parsed.

    A plain CSV or JSON lines file is read once, and of a Parquet file nothing but its footer.

    >>> import io
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> list(row_positions(contract, io.BytesIO(b"x,y\n1,2\n4,0\n5,1\n"), every=2))
    [Position(row=0, line=2, offset=4), Position(row=2, line=4, offset=12), Position(row=3, line=5, offset=16)]
    """
    kind = format_of(source, format)
    first = 0 if start is None else start.row
    if kind == "parquet":
        with open_parquet(source) as file:
            last = int(file.metadata.num_rows)
        yield from (Position(row, row + 1, 0) for row in range(-(-first // every) * every, last, every))
        yield Position(last, last + 1, 0)
        return
    with _opened_lines(contract, source, True, kind, start, ()) as (lines, rows, line):
        row = first
        for block, _ in lines.parts(2**15, rows.ends if isinstance(rows, CsvRows) else None):
            ends = rows.ends(block) if isinstance(rows, CsvRows) else line_ends(block)
            quoted = b'"' in block and isinstance(rows, CsvRows)
            before = lines_before(block, ends) if quoted else np.arange(len(ends))
            for k in range(-row % every, len(ends), every):
                yield Position(row + k, line + int(before[k]), lines.offset(int(ends[k - 1]) if k else 0))
            row += len(ends)
            line += block.count(b"\n") if quoted else len(ends)
        yield Position(row, line, lines.size)


def _batches(
    contract: Contract,
    parts: Generator[Parsed],
    bad_rows: str,
    unit: str,
    labelled: bool,
    first: int,
    keep: Sequence[str],
    seen: int,
    reasons: Counter[str] | None,
) -> Generator[Batch]:
    block: list[Batch] = []
    with closing(parts):
        try:
            for part in parts:
                start = Position(first, int(part.lines[0]), part.offset)
                X, y, bad = part.encode(contract, labelled)
                users = part.users(contract) if labelled else None
                whole = Batch(X, y, first, part.lines, part.size, start, users, bad, part.kept(keep))
                known = max(0, min(seen - first, len(bad)))
                if bad_rows == "stop" and bad[known:].any():
                    row = known + int(bad[known:].argmax())
                    block += [whole.head(row)] if row else []
                    raise _bad_row(part, row, contract, unit, labelled)
                if reasons is not None:
                    reasons.update(part.error(row, contract, labelled) for row in np.flatnonzero(bad).tolist())
                block.append(whole)
                first += len(X)
                if part.last:
                    yield _joined(block)
                    block = []
        except InvalidInput:  # the rows before it were read
            if block:
                yield _joined(block)
            raise
        if block:
            yield _joined(block)


def _joined(parts: Sequence[Batch]) -> Batch:
    """The parts of a block as one batch."""
    if len(parts) == 1:
        return parts[0]
    first, *_, last = parts
    X, y, lines, bad = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "lines", "bad"))
    users = None if first.users is None else np.concatenate([part.users for part in parts if part.users is not None])
    kept = [row for part in parts for row in part.kept]
    return first._replace(X=X, y=y, lines=lines, size=last.size, users=users, bad=bad, kept=kept)


def _bad_row(part: Parsed, row: int, contract: Contract, unit: str, labelled: bool) -> BadRow:
    """The error of a bad row, which tells its line, its column and the reason."""
    option = "zero to use bad rows as examples without influence" if labelled else "blank to leave its prediction blank"
    reason = part.error(row, contract, labelled)
    return BadRow(f"{unit} {part.lines[row]}: {reason}. Correct the row, or pass --bad-rows {option}.")


def _lines(
    contract: Contract,
    source: Source,
    labelled: bool,
    kind: str,
    most: int,
    start: Position | None,
    keep: Sequence[str],
    only: tuple[str, ...] | None = None,
) -> Generator[Parsed | None]:
    """None once the header is read, then blocks; `only` of these columns, if that is given."""
    with _opened_lines(contract, source, labelled, kind, start, keep, only) as (lines, rows, line):
        yield None
        for block, last in lines.parts(most, rows.ends if isinstance(rows, CsvRows) else None):
            *parts, end = rows.parse(block, line, lines.size)
            for part in (*parts, replace(end, last=last)):
                yield replace(part, offset=lines.offset(part.offset))
            line += sum(len(part.lines) for part in (*parts, end)) if b'"' not in block else block.count(b"\n")


@contextmanager
def _opened_lines(
    contract: Contract,
    source: Source,
    labelled: bool,
    kind: str,
    start: Position | None,
    keep: Sequence[str],
    only: tuple[str, ...] | None = None,
) -> Iterator[tuple[Lines, CsvRows | JsonRows, int]]:
    """The lines from the first row, or from `start`, on; their parser, and the number of the first."""
    columns = only or tuple(columns_to_read(contract, labelled, keep))
    line = 1
    with opened(source, seekable=start is not None) as (stream, position):
        origin = 0 if start is None else stream.tell()
        lines = Lines(stream, position, skip_mark=kind == "json")  # in CSV, header_of skips it
        if kind == "csv":
            first_row = lines.first(header_ends)
            header = header_of(first_row)
            line = 1 + max(first_row.count(b"\n"), 1)
            check_names(header.names, contract, labelled, keep)
            rows: CsvRows | JsonRows = CsvRows(header, columns, _numbers(contract) - set(keep))  # kept as spelt
        else:
            rows = JsonRows(columns)
        if start is not None:
            stream.seek(origin + start.offset)
            line = start.line
            lines = Lines(stream, position, skip_mark=kind == "json" and start.offset == 0, start=start.offset)
        yield lines, rows, line


def _parquet(
    contract: Contract,
    source: Source,
    labelled: bool,
    kind: str,
    most: int,
    start: Position | None,
    keep: Sequence[str],
    only: tuple[str, ...] | None = None,
) -> Generator[Parsed | None]:
    """None once the schema is read, then blocks; `only` of these columns, if that is given."""
    columns = only or tuple(columns_to_read(contract, labelled, keep))
    if str(source) == "-":
        if start is not None:
            raise not_seekable()
        source = sys.stdin.buffer
    with open_parquet(source) as file:
        check_schema(file.schema_arrow, contract, labelled, keep)
        yield None
        yield from parquet_blocks(file, columns, most, size_of(source), 0 if start is None else start.row)


def check_schema(schema: Any, contract: Contract, labelled: bool, keep: Sequence[str] = ()) -> None:
    """Reject an Arrow schema that lacks a column of the contract, or has one of a kind that cannot be read."""
    check_names(tuple(schema.names), contract, labelled, keep)
    dates = frozenset(column.name for column in contract.read if isinstance(column, Date))
    check_kinds(schema, tuple(columns_to_read(contract, labelled, keep)), _numbers(contract), dates)


def _numbers(contract: Contract) -> frozenset[str]:
    """Names of the numeric columns."""
    ranges = {column.name for column in contract.read if isinstance(column, Range | PrivateRange | Bins)}
    return frozenset(
        ranges | ({contract.target.column} if isinstance(contract.target, Number | PrivateNumber) else set())
    )


def check_names(names: Sequence[str], contract: Contract, labelled: bool, keep: Sequence[str] = ()) -> None:
    """Reject a header that lacks a column, has one twice or, for learning, has one that is not declared."""
    for name in keep:
        if names.count(name) != 1:
            what = "not in the header" if name not in names else "twice in the header"
            near = " Give each column a --keep of its own." if "," in name else did_you_mean(name, names)
            raise InvalidInput(
                f"column {name}, which is to be kept, is {what}. Name a column that is there once.{near}"
            )
    known = {contract.target.column, contract.user, *keep, *(column.name for column in contract.columns)}
    for name in columns_to_read(contract, labelled):
        if names.count(name) != 1:
            if not known.intersection(names):  # it may be a row, which no message shows
                raise InvalidInput(
                    f"the header has none of the contract's columns, such as {name}. Pass the right file; if its first "
                    f"line is a row, add a line of names before it.{did_you_mean(name, names)}"
                )
            what = "not in the header" if name not in names else "twice in the header"
            near = did_you_mean(name, [other for other in names if other not in known])
            raise InvalidInput(f"column {name} of the contract is {what} of the data. Correct one of the two.{near}")
    undeclared = [name for name in names if name not in known]
    if labelled and undeclared:
        raise InvalidInput(
            f"column {undeclared[0] or 'without a name'} is in the file but not in the contract. Declare it under "
            f"[columns], for example as {{ ignore = true }}.{did_you_mean(undeclared[0], map(str, known - {None}))}"
        )
