"""Rows of a request: a JSON object with a list of them, JSON lines, or an Arrow stream.

**What is an error, and what is a bad row.** The frame of a request is validated before anything is learnt: its media
type, that JSON is JSON, the schema of an Arrow stream. What a row holds is not: a row that the contract cannot read is
a bad row, takes its round and has no influence, and the answer does not depend on it. In JSON lines each line is a
frame of its own, so a line that is not JSON is a bad row as well. JSON is read as `taciturn.readers.jsonl` does, Arrow
as Parquet is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from taciturn.columns.kinds import Bad
from taciturn.columns.values import PlainValues, Values
from taciturn.contract.contract import Contract
from taciturn.errors import InvalidInput
from taciturn.kernel.arrays import Array
from taciturn.kernel.problem.row_wise import RowWise, row_wise
from taciturn.readers.jsonl import JsonRows, read_json
from taciturn.readers.lines import LONGEST
from taciturn.readers.parsed import Parsed, columns_to_read
from taciturn.readers.rows import check_schema
from taciturn.runs.resume import Users
from taciturn.service.messages import Rows
from taciturn.service.typed_rows import numbers_and_others, read_typed, row_type, rows_type
from taciturn.tables.ranges import between

JSON = "application/json"
JSON_LINES = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
MEDIA = (JSON, JSON_LINES, ARROW)
"""Media types of rows."""

_ENTRIES = 2**20  # largest number of features that are encoded at once, over all rows

_NESTED = frozenset({list, dict})
_values = msgspec.structs.astuple
_decode_rows = msgspec.json.Decoder(Rows).decode
_decode_line = msgspec.json.Decoder().decode


class NotRows(InvalidInput):
    """A request whose frame cannot be read; nothing was learnt."""


class TooManyRows(NotRows):
    """A request with more rows than the server takes at once."""


@dataclass(frozen=True)
class RowBatch:
    """Rows of a request: JSON records, which are encoded together with those of other requests; or encoded rows.

    `finite` says that no number of a record is NaN or infinite, and `plain` of which type they are if they were decoded
    by the types of their columns.
    """

    records: Sequence[Any] | None
    arrays: Sequence[tuple[Array, Array, Users, Bad]]
    count: int
    finite: bool = False
    plain: PlainRows | None = None


class PlainRows(RowWise):
    """Rows with a value for each column that is learnt from, decoded by the types of the columns.

    Columns of numbers with a linear range are encoded as one array, others one by one. What is not plain is left to the
    definition: a body with other columns or without one of these, one where a number is declared and none is there, and
    rows with a list or an object. Slow twin: `read_rows` without this, and `encoded`.

    Parameters
    ----------
    contract : Contract
        What the columns are.

    Examples
    --------
    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> plain = PlainRows(contract)
    >>> plain.encode(plain.read(b'{"rows": [{"x": 1, "y": 2}, {"y": "two", "x": 1}]}'))[:2]
    (array([[-0.5], [ nan]]), array([ 1., nan]))
    >>> plain.read(b'{"rows": [{"x": "one", "y": 2}]}') is None
    True
    """

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.names = tuple(columns_to_read(contract, labelled=True))
        numbers, others = numbers_and_others(contract.encoder)
        features = [c.name for c in contract.encoder.read]
        labels = {contract.target.column, contract.user}
        self._decode = None
        if len(set(features)) < len(features) or labels & set(features):
            return  # a column that is read twice
        row = None if contract.bandit is not None else row_type(self.names, {c.name for c, _ in numbers})
        if row is None:
            return
        self._decode = msgspec.json.Decoder(rows_type(row)).decode
        self._places: Any = [p.start for _, p in numbers]
        if self._places == list(range(len(numbers))):
            self._places = slice(0, len(numbers))
        at = [self.names.index(c.name) for c, _ in numbers]
        first = at[0] if at else 0
        self._taken: Any = slice(first, first + len(at)) if at == list(range(first, first + len(at))) else None
        self._take = None if self._taken is not None else itemgetter(*at)
        self._low, self._high = np.array([c.low for c, _ in numbers]), np.array([c.high for c, _ in numbers])
        self._others = [(c, p, self.names.index(c.name)) for c, p in others]
        labelled = [contract.target.column, *([] if contract.user is None else [contract.user])]
        self._labels = {name: self.names.index(name) for name in labelled}

    def read(self, body: bytes) -> list[Any] | None:
        """The rows of a body; None if they are not plain."""
        decoded = read_typed(self._decode, body)
        return None if decoded is None else decoded.rows or None

    def records(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows as the objects that they were."""
        return [dict(zip(self.names, _values(row), strict=True)) for row in rows]

    def encode(self, rows: Sequence[Any]) -> tuple[Array, Array, Users, Bad] | None:
        """Features, labels, ids of users and a mask of bad rows; None if one of them has a list or an object."""
        n, contract = len(rows), self.contract
        values = [_values(row) for row in rows]
        others = {at: [each[at] for each in values] for at in (*(i for *_, i in self._others), *self._labels.values())}
        if any(not _NESTED.isdisjoint(map(type, column)) for column in others.values()):
            return None
        X = np.zeros((n, contract.dimension))
        taken = [each[self._taken] for each in values] if self._take is None else [self._take(each) for each in values]
        if len(self._low):
            X[:, self._places] = between(np.array(taken), self._low, self._high)
        bad = np.zeros(n, dtype=np.bool_)
        for column, place, at in self._others:
            bad |= column.encode(PlainValues(others[at]), X[:, place])
        labels: dict[str, Values] = {name: PlainValues(others[at]) for name, at in self._labels.items()}
        parsed = Parsed(labels, np.arange(1, n + 1))
        X, y, bad = parsed.completed(contract, X, bad, labelled=True)
        return X, y, parsed.users(contract), bad


@row_wise
def read_rows(
    media: str, body: bytes, contract: Contract, labelled: bool, most: int = 2**16, plain: PlainRows | None = None
) -> RowBatch:
    """The rows of a request, of which there may be at most `most`, and fewer if they have many features.

    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> batch = read_rows(JSON, b'{"rows": [{"x": 1, "y": 2}, {"x": "one", "y": 2}, 7]}', contract, labelled=True)
    >>> [(X, y, users, bad)] = encoded([batch], contract, labelled=True)
    >>> X.ravel(), y
    (array([-0.5,  nan,  nan]), array([ 1., nan, nan]))
    """
    if media == JSON and plain is not None and (rows := plain.read(body)) is not None:
        _check_count(len(rows), contract, most)
        return RowBatch(rows, (), len(rows), True, plain)
    if media == ARROW:
        table = _table(body, contract, labelled, most)
        return RowBatch(None, _encoded_table(table, contract, labelled), table.num_rows)
    records, finite = _records(media, body)
    _check_count(len(records), contract, most)
    return RowBatch(records, (), len(records), finite)


@row_wise
def parsed_rows(
    media: str, body: bytes, contract: Contract, most: int, width: int
) -> tuple[Sequence[Any], Iterator[Parsed]]:
    """The same rows, with labels, as values before they are encoded; and as objects, of which an Arrow stream has none.

    There are as many at a time as fit into memory with `width` features each.
    """
    columns, each = columns_to_read(contract, labelled=True), max(1, _ENTRIES // max(contract.dimension, width))
    if media == ARROW:
        return (), _parsed_table(_table(body, contract, True, most), columns, each)
    records, _ = _records(media, body)
    _check_count(len(records), contract, most)
    names = JsonRows(tuple(columns))
    starts = range(0, len(records), each)
    return records, (names.parsed(records[start : start + each], start + 1) for start in starts)


def absent_columns(records: Sequence[Any], contract: Contract) -> dict[str, int]:
    """How many objects of JSON have no such name, by the columns that are read; of Arrow a schema has all of them.

    >>> from taciturn.contract.contract import contract_of
    >>> target = {"column": "y", "range": [0, 2]}
    >>> contract = contract_of({"privacy": {"epsilon": 1}, "target": target, "columns": {"x": {"range": [0, 4]}}})
    >>> absent_columns([{"X": 1, "y": 2}, {"x": None}, 7], contract)
    {'x': 1, 'y': 1}
    """
    objects = [record for record in records if isinstance(record, dict)]
    counts = {name: sum(name not in each for each in objects) for name in columns_to_read(contract, labelled=True)}
    return {name: count for name, count in counts.items() if count}


def _check_count(rows: int, contract: Contract, most: int) -> None:
    fit = max(1, min(most, 8 * _ENTRIES // contract.dimension))
    if rows == 0:
        raise NotRows("there is no row in the body. Send at least one.")
    if rows > fit:
        raise TooManyRows(f"a request to this stream may have {fit:,} rows, and this one has more. Send several.")


def _records(media: str, body: bytes) -> tuple[list[Any], bool]:
    """The rows of a JSON object or of JSON lines, and whether all of their numbers are known to be finite."""
    if media == JSON_LINES:
        lines = body[:-1].split(b"\n") if body.endswith(b"\n") else body.split(b"\n") if body else []
        return [_line(line) for line in lines], False
    if media != JSON:
        raise NotRows(f"rows are sent as {', '.join(MEDIA)}. State one of them as the content type.")
    try:
        return _decode_rows(body).rows, True
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:  # what msgspec does not read: NaN, numbers out of range, half a surrogate pair, values of many levels
        data = read_json(body.decode())
    except (ValueError, RecursionError):
        raise NotRows('the body is not valid JSON. Send {"rows": [{"column": value, …}, …]}.') from None
    if not isinstance(data, dict) or set(data) != {"rows"} or not isinstance(data["rows"], list):
        raise NotRows('the body must be an object with a list of rows and nothing else: {"rows": [{…}, …]}.')
    return data["rows"], False


def _line(line: bytes) -> Any:
    if len(line) > LONGEST:
        return JsonRows.record(line)
    try:
        record = _decode_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return JsonRows.record(line)
    return record if isinstance(record, dict) else "it is not a JSON object"


def _table(body: bytes, contract: Contract, labelled: bool, most: int) -> Any:
    """The columns of an Arrow stream that are read, after a check of its schema and of its size."""
    try:
        import pyarrow as pa
    except ImportError:
        raise NotRows("this server reads no Arrow: it lacks the extra `data`. Send JSON.") from None
    try:
        buffer = pa.py_buffer(body)
        for message in pa.ipc.MessageReader.open_stream(buffer):
            _must_not_be_compressed(bytes(message.metadata))
        with pa.ipc.open_stream(buffer) as stream:
            check_schema(stream.schema, contract, labelled)
            columns = columns_to_read(contract, labelled)
            _check_kinds(stream.schema, columns)
            batches, rows = [], 0
            for batch in stream:
                rows += batch.num_rows
                if rows > most:
                    break
                read = batch.select(columns)
                for column in read.columns:  # offsets that point outside of a buffer would be read as they are
                    _without_values(column).validate(full=True)
                batches.append(read)
            _check_count(rows, contract, most)
        return pa.Table.from_batches(batches).combine_chunks()
    except NotRows:
        raise
    except InvalidInput as error:
        raise NotRows(str(error)) from None
    except (pa.ArrowException, OSError, ValueError, struct.error):
        raise NotRows("the body is not an Arrow stream. Write it with pyarrow.ipc.new_stream.") from None


def _without_values(column: Any) -> Any:
    """A column of a type of which any value is valid, to validate its buffers and not its values: these make bad rows.

    Texts may be no UTF-8, days may have a part, and decimals too many digits. Arrow would reject all rows for one.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _without_values(column.dictionary), safe=False)
    if types.is_string(kind):
        return column.view(pa.binary())
    if types.is_large_string(kind):
        return column.view(pa.large_binary())
    if types.is_date64(kind):
        return column.view(pa.int64())
    return column.view(pa.binary(kind.byte_width)) if types.is_decimal(kind) else column


def _check_kinds(schema: Any, columns: Sequence[str]) -> None:
    """Reject columns of a type that has no values of its own, such as runs, intervals and extensions."""
    from pyarrow import types

    known = (
        *(types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string),
        *(types.is_large_string, types.is_timestamp, types.is_date32, types.is_date64),
    )
    for name in columns:
        field = schema.field(name)
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        # Of an extension that is not known here, such as the periods of pandas, Arrow reads the numbers in which it is
        # stored, and says so in its metadata alone.
        extension = (field.metadata or {}).get(b"ARROW:extension:name")
        if extension is not None:
            kind = extension.decode("utf-8", "replace")
        if extension is not None or not any(check(kind) for check in known):
            raise NotRows(f"column {name} holds {kind}, which is not read. Send numbers, texts, booleans or dates.")


def _must_not_be_compressed(metadata: bytes) -> None:
    """Reject compressed buffers: a small body could become more than memory holds.

    The metadata is a FlatBuffer: a table `Message`, whose field 1 is the kind of its header (3 for a batch of records,
    2 for a dictionary) and field 2 the header, in which field 3 of a batch is the compression (Arrow's `Message.fbs`).
    """
    message = struct.unpack_from("<I", metadata, 0)[0]
    kind = _field(metadata, message, 1)
    header = _field(metadata, message, 2)
    if kind is None or header is None or metadata[kind] not in (2, 3):
        return
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    if metadata[kind] == 2:  # a dictionary has its batch in field 1
        inner = _field(metadata, batch, 1)
        if inner is None:
            return
        batch = inner + struct.unpack_from("<I", metadata, inner)[0]
    if _field(metadata, batch, 3) is not None:
        raise NotRows("Arrow streams are read without compression. Write it without IpcWriteOptions(compression=…).")


def _field(metadata: bytes, table: int, index: int) -> int | None:
    """Where a field of a table of a FlatBuffer is; None if it is not there."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    if 4 + 2 * index >= struct.unpack_from("<H", metadata, fields)[0]:
        return None
    offset = struct.unpack_from("<H", metadata, fields + 4 + 2 * index)[0]
    return table + offset if offset else None


def _parsed_table(table: Any, columns: Sequence[str], most: int) -> Iterator[Parsed]:
    from taciturn.readers.arrow import ArrowValues

    for start in range(0, table.num_rows, most):
        part = table.slice(start, most)
        values = {name: ArrowValues(part.column(name)) for name in columns}
        yield Parsed(values, np.arange(start + 1, start + 1 + part.num_rows))


def _encoded_table(table: Any, contract: Contract, labelled: bool) -> list[tuple[Array, Array, Users, Bad]]:
    made = []
    for parsed in _parsed_table(table, columns_to_read(contract, labelled), max(1, _ENTRIES // contract.dimension)):
        X, y, bad = parsed.encode(contract, labelled)
        made.append((X, y, parsed.users(contract) if labelled else None, bad))
    return made


@row_wise
def encoded(
    batches: Sequence[RowBatch], contract: Contract, labelled: bool
) -> Iterator[tuple[Array, Array, Users, Bad]]:
    """Features, labels, ids of users and a mask of bad rows, in the order of the rows, some rows at a time."""
    most = max(1, _ENTRIES // contract.dimension)
    names = JsonRows(tuple(columns_to_read(contract, labelled)))
    records: list[Any] = []  # of consecutive requests, of one type: they are encoded at once
    plain: PlainRows | None = None
    for batch in (*batches, None):
        if batch is not None and batch.records is not None and (batch.plain is plain or not records):
            records.extend(batch.records)
            plain = batch.plain
            continue
        for start in range(0, len(records), most):
            part = records[start : start + most]
            made = None if plain is None else plain.encode(part)
            if made is not None:
                yield made
                continue
            parsed = names.parsed(part if plain is None else plain.records(part), start + 1)
            X, y, bad = parsed.encode(contract, labelled)
            yield X, y, parsed.users(contract) if labelled else None, bad
        records, plain = [], None
        if batch is not None and batch.records is not None:
            records, plain = list(batch.records), batch.plain
        elif batch is not None:
            yield from batch.arrays
