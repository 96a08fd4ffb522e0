"""Every reader of the package, with rows and spoiled variants of them, for the conformance suite."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from taciturn.checks import ReaderCase, Spoiled
from taciturn.columns.tables import Table
from taciturn.contract.contract import contract_of
from taciturn.estimators.dict_rows import features_of
from taciturn.estimators.river_stream import Feed
from taciturn.estimators.stream import Stream
from taciturn.readers.lines import LONGEST
from taciturn.readers.parsed import Parsed
from taciturn.readers.rows import open_rows
from taciturn.service.events import packed, read_event, stored_row, unpacked
from taciturn.service.rows import ARROW, JSON, JSON_LINES, PlainRows, RowBatch, encoded, read_rows

RELATIONS = ("replace", "zero-out", "label")
UNITS = ("row", "user")
COLUMNS = {
    "a": {"range": [-1, 1]},
    "b": {"range": [-1, 1], "missing": "bad"},
    "town": {"categories": ["Oslo", "Rome"]},
}
NAMES = ("who", "a", "b", "town", "y")
ROWS = 12


@cache
def contract(relation: str, unit: str):
    """A contract with the statistic that is hurt most: of second moments, which "label" hardly noises."""
    privacy: dict[str, Any] = {"epsilon": 1.0, "neighbours": relation}
    if unit == "user":
        privacy |= {"user": "who", "rows_per_user": 2 if relation == "replace" else 1}
    return contract_of(
        {
            "privacy": privacy,
            "target": {"column": "y", "range": [-1, 1]},
            "learning": {"loss": "squared", "method": "pqftl", "release": 3, "horizon": ROWS},
            "columns": COLUMNS | ({} if unit == "user" else {"who": {"ignore": True}}),
        }
    )


@cache
def plan(relation: str, unit: str):
    return contract(relation, unit).plan(on_bad="zero")


def record(place: int) -> dict[str, Any]:
    """One of the rows; the first, the middle and the last are of one user, who has more than count."""
    who = "anna" if place in (0, ROWS // 2, ROWS - 1) else f"user {place}"
    sign = -1.0 if place % 4 == 2 or place == ROWS - 1 else 1.0
    return {"who": who, "a": 0.9, "b": -0.75, "town": "Rome", "y": sign}


RECORDS = [record(place) for place in range(ROWS)]

# Variants of a record: a part, a name, and the fields that are others; None takes a field out.

VALUES: list[tuple[str, str, dict[str, Any]]] = [
    ("label", "with a list for a label", {"y": [1]}),
    ("label", "with an object for a label", {"y": {"y": 1}}),
    ("label", "with a word for a label", {"y": "many"}),
    ("label", "with the opposite label", {"y": -1.0}),
    ("label", "with a large label", {"y": 1e300}),
    ("label", "with a label out of range", {"y": 10**400}),
    ("label", "with half a surrogate pair for a label", {"y": "\ud800"}),
    ("label", "without a label", {"y": None}),
    ("features", "with a list for a number", {"a": [0.9]}),
    ("features", "with an object for a number", {"b": {"x": 1}}),
    ("features", "with a list for a category", {"town": ["Rome"]}),
    ("features", "with opposite features", {"a": -0.9, "b": 0.75, "town": "Oslo"}),
    ("features", "with a huge number", {"a": 1e300}),
    ("features", "with a number out of range", {"b": 10**400}),
    ("features", "with an endless number", {"a": 10**5_000}),
    ("features", "with NaN", {"b": math.nan}),
    ("features", "with an infinite number", {"a": math.inf}),
    ("features", "without a number", {"a": None}),
    ("features", "without a number that must be there", {"b": None}),
    ("features", "with half a surrogate pair", {"town": "\ud800"}),
    ("features", "with a long text", {"town": "x" * 10_000}),
    ("features", "without any feature", {"a": None, "b": None, "town": None}),
    ("id", "with a list for an id", {"who": ["anna"]}),
    ("id", "with an object for an id", {"who": {}}),
    ("id", "without an id", {"who": None}),
]


def spoilt(row: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (row | changes).items() if value is not None}


def objects(row: dict[str, Any]) -> Iterator[Spoiled]:
    for part, name, changes in VALUES:
        yield Spoiled(name, spoilt(row, changes), part)  # type: ignore[arg-type]


def json_text(value: Any) -> bytes:
    endless = "9" * 5_000
    return json.dumps(value, default=str).replace('"endless"', endless).encode()


def json_line(row: Any) -> bytes:
    """A line of JSON; Python writes no integer of 5,000 digits."""
    if isinstance(row, dict):
        row = {k: "endless" if type(v) is int and v > 10**4_000 else v for k, v in row.items()}
    return json_text(row)


def json_objects(line: bytes) -> Iterator[Spoiled]:
    """Rows of a body."""
    for spoiled in objects(json.loads(line)):
        yield spoiled._replace(row=json_line(spoiled.row))
    more = json.loads(line)
    yield Spoiled("with a field more", json_line({"more": [1], **more}), "features")
    yield Spoiled("with a field twice", b'{"a": 0.1, ' + json_line(more)[1:], "features")
    deep = json_line(more | {"a": "deep"}).replace(b'"deep"', b"[" * 999 + b"]" * 999)
    yield Spoiled("nested deeply", deep, "features")
    yield Spoiled("a number", b"7", "record")
    yield Spoiled("a list", b"[1]", "record")


def json_lines(line: bytes) -> Iterator[Spoiled]:
    """Lines of their own."""
    yield from json_objects(line)
    yield Spoiled("not JSON", b"{", "record")
    yield Spoiled("not UTF-8", line.replace(b"Rome", b"R\xff"), "record")
    yield Spoiled("empty", b"", "record")
    yield Spoiled("very long", line.replace(b"Rome", b"x" * (LONGEST + 1)), "record")


def csv_line(row: dict[str, Any]) -> bytes:
    return ",".join(str(row[name]) for name in NAMES).encode()


def csv_lines(line: bytes) -> Iterator[Spoiled]:
    who, a, b, town, y = line.split(b",")

    def with_(name, part, who=who, a=a, b=b, town=town, y=y):
        return Spoiled(name, b",".join([who, a, b, town, y]), part)

    bad = b"\xff"
    yield with_("with a label that is not UTF-8", "label", y=bad)
    yield with_("with a word for a label", "label", y=b"many")
    yield with_("without a label", "label", y=b"")
    yield with_("with a quote that is never closed in the label", "label", y=b'"1.0')
    yield with_("with a comma in the label", "label", y=b"1,0")
    yield with_("with a very long label", "label", y=b"1" * (LONGEST + 1))
    yield with_("with a number that is not UTF-8", "features", a=bad)
    yield with_("with a category that is not UTF-8", "features", town=bad)
    yield with_("with a quote that is never closed", "features", a=b'"0.9')
    yield with_("with a quote in the middle", "features", town=b'Ro"me')
    yield with_("with a comma in a number", "features", b=b"0,75")
    yield with_("without a number", "features", a=b"", b=b"")
    yield with_("with a huge number", "features", a=b"1e300")
    yield with_("with NaN", "features", a=b"nan")
    yield with_("very long", "features", town=b"x" * (LONGEST + 1))
    yield Spoiled("without its last field", line.rpartition(b",")[0], "features")
    yield Spoiled("with a field more", line + b",1", "features")
    yield with_("with an id that is not UTF-8", "id", who=bad)
    yield with_("without an id", "id", who=b"")
    yield with_("with a quote that is never closed in the id", "id", who=b'"anna')
    yield Spoiled("empty", b"", "record")


def typed(row: dict[str, Any]) -> Iterator[Spoiled]:
    """What columns of Arrow can hold: `a` is a number, and the others are texts."""
    for part, name, changes in (
        ("label", "with a label that is not UTF-8", {"y": b"\xff"}),
        ("label", "with a word for a label", {"y": "many"}),
        ("label", "with a number out of range for a label", {"y": "9" * 400}),
        ("label", "without a label", {"y": None}),
        ("features", "with NaN", {"a": math.nan}),
        ("features", "with an infinite number", {"a": math.inf}),
        ("features", "without a number", {"a": None}),
        ("features", "with a word for a number", {"b": "many"}),
        ("features", "with a number that is not UTF-8", {"b": b"\xff"}),
        ("features", "without a number that must be there", {"b": None}),
        ("features", "with a category that is not UTF-8", {"town": b"\xff"}),
        ("features", "with a long text", {"town": "x" * 10_000}),
        ("id", "without an id", {"who": None}),
        ("id", "with an id that is not UTF-8", {"who": b"\xff"}),
    ):
        yield Spoiled(name, row | changes, part)  # type: ignore[arg-type]


def arrow_table(rows: list[dict[str, Any]]) -> pa.Table:
    def texts(name: str) -> pa.Array:
        values = [row[name] for row in rows]
        plain = [v if v is None or isinstance(v, bytes) else str(v).encode() for v in values]
        return pa.array(plain, pa.binary()).view(pa.string())

    columns = {name: texts(name) for name in NAMES} | {"a": pa.array([row["a"] for row in rows], pa.float64())}
    return pa.table({name: columns[name] for name in NAMES})


def frames(row: dict[str, Any]) -> Iterator[Spoiled]:
    """What a column of Python objects can hold."""
    for spoiled in objects(row):
        full = dict.fromkeys(NAMES) | spoiled.row
        yield spoiled._replace(row=full)
    for part, name, changes in (
        ("label", "with a tuple for a label", {"y": (1,)}),
        ("label", "with an array for a label", {"y": np.ones(2)}),
        ("label", "with a missing label of pandas", {"y": pd.NA}),
        ("features", "with an array for a number", {"a": np.ones(2)}),
        ("features", "with a date for a number", {"b": pd.Timestamp("2024-05-31")}),
        ("features", "with a missing number of pandas", {"b": pd.NaT}),
        ("id", "with a set for an id", {"who": frozenset({"anna"})}),
    ):
        yield Spoiled(name, row | changes, part)  # type: ignore[arg-type]


def dicts(row: dict[str, Any]) -> Iterator[Spoiled]:
    yield from frames(row)
    yield Spoiled("with a name that is not declared", row | {"colour": "red"}, "features")
    yield Spoiled("with a one-hot name of no column", row | {"colour_red": 1}, "features")
    without = {name: value for name, value in row.items() if name != "town"}
    yield Spoiled("with two one-hot names", without | {"town_Rome": 1, "town_Oslo": 1}, "features")
    yield Spoiled("without a declared name", {"who": row["who"]}, "features")
    yield Spoiled("with a fraction for an id", row | {"who": 0.37}, "id")
    yield Spoiled("with an endless number for an id", row | {"who": 10**5_000}, "id")


# The readers.


class Arriving(io.BytesIO):
    """A file of which a few bytes come at a time, up to two thousand."""

    def read(self, size=-1):
        return super().read(100 if self.tell() < 2_000 else size)


def of_file(kind: str, data: bytes, made):
    file = io.BytesIO(data) if kind == "parquet" else Arriving(data)
    for batch in open_rows(made, file, bad_rows="zero", format=kind, block=5):
        yield batch.X, batch.y, batch.users


def from_csv(rows, made, plan):
    return of_file("csv", b"\n".join([",".join(NAMES).encode(), *rows, b""]), made)


def from_json_lines(rows, made, plan):
    return of_file("json", b"\n".join([*rows, b""]), made)


def from_parquet(rows, made, plan):
    file = io.BytesIO()
    parquet.write_table(arrow_table(rows), file, row_group_size=4)
    return of_file("parquet", file.getvalue(), made)


def of_request(media, body, made, plain=None):
    for X, y, users, _ in encoded([read_rows(media, body, made, True, plain=plain)], made, labelled=True):
        yield X, y, users


def from_json(rows, made, plan):
    return of_request(JSON, b'{"rows": [' + b", ".join(rows) + b"]}", made, PlainRows(made))


def from_request_lines(rows, made, plan):
    return of_request(JSON_LINES, b"\n".join([*rows, b""]), made)


def from_arrow(rows, made, plan):
    table, sink = arrow_table(rows), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return of_request(ARROW, sink.getvalue(), made)


def from_events(rows, made, plan):
    """As events are opened, stored, closed and learnt."""
    records = []
    for line in rows:
        row = read_event(b'{"row": ' + line + b"}")[0].row
        stored, _ = unpacked(packed(stored_row(row, made), None))
        label = row.get("y") if isinstance(row, dict) else None
        records.append(None if stored is None else {**stored, "y": label})
    for X, y, users, _ in encoded([RowBatch(records, (), len(records))], made, labelled=True):
        yield X, y, users


def from_table(rows, made, plan):
    """Columns of a data frame."""
    table = Table(pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in NAMES}))
    parsed = Parsed({name: table.values(name) for name in NAMES}, np.arange(len(rows)))
    X, y, _ = parsed.encode(made, labelled=True)
    yield X, y, parsed.users(made)


class Recorded(Stream):
    """A stream that remembers what it is given."""

    def learn(self, X, y, users=None, now=None):
        self.__dict__.setdefault("given", []).append((np.asarray(X), y, users))
        return super().learn(X, y, users, now)


def from_river(rows, made, plan):
    user = None if made.user is None else "who"
    columns = COLUMNS | ({} if user else {"who": {"ignore": True}})
    stream = Recorded(plan)
    feed = Feed(stream, features_of(None, None, user, columns=columns, on_bad="zero"), made.target, user)
    for row in rows:
        feed.learn_one({name: value for name, value in row.items() if name != "y"}, row.get("y"))
    feed.flush()
    return stream.given


def from_arrays(rows, made, plan):
    """Rows of numbers as objects, which `Private` reads; ids come beside them."""
    X = np.empty((len(rows), 4), dtype=object)
    for i, row in enumerate(rows):
        for j, name in enumerate(("a", "b", "town", "y")):
            X[i, j] = row[name]
        X[i, 3] = 0.5
    X[:, 2] = [1.0 if town == "Rome" else town for town in X[:, 2]]
    y = np.empty(len(rows), dtype=object)
    y[:] = [row["y"] for row in rows]
    source, labels = plan.private.problem.read(X.tolist(), y.tolist())
    yield source[:], labels, None if made.user is None else [row["who"] for row in rows]


def without_ids(row):
    """Ids of arrays are no part of a row, and are checked by themselves."""
    return (spoiled for spoiled in frames(row) if spoiled.part != "id")


@dataclass(frozen=True)
class Reader:
    read: Callable[..., Any]
    written: Callable[[dict[str, Any]], Any]
    spoiled: Callable[[Any], Iterator[Spoiled]]


READERS = {
    "csv": Reader(from_csv, csv_line, csv_lines),
    "json lines": Reader(from_json_lines, json_line, json_lines),
    "parquet": Reader(from_parquet, dict, typed),
    "json": Reader(from_json, json_line, json_objects),
    "json lines of a request": Reader(from_request_lines, json_line, json_lines),
    "arrow": Reader(from_arrow, dict, typed),
    "events": Reader(from_events, json_line, json_objects),
    "data frame": Reader(from_table, dict, frames),
    "dicts": Reader(from_river, dict, dicts),
    "arrays": Reader(from_arrays, dict, without_ids),
}


def reader_case(name: str, relation: str, unit: str, read: Callable[..., Any] | None = None) -> ReaderCase:
    """A reader of the package under a relation and a unit, or another one of the same raw rows."""
    reader, made, planned = READERS[name], contract(relation, unit), plan(relation, unit)
    used = read or reader.read
    rows = [reader.written(record) for record in RECORDS]
    return ReaderCase(lambda raw: used(list(raw), made, planned), rows, reader.spoiled, planned.private)
