"""A reader that starts at a batch's place reads exactly the rows that are left, whatever the file holds."""

import gzip
import io
import json
import os
import threading
from codecs import BOM_UTF8

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from contract.declared import HEADER, contract, csv
from taciturn import InvalidInput
from taciturn.readers import lines as lines_module
from taciturn.readers.lines import LONGEST, Lines
from taciturn.readers.rows import Position, open_rows

CSV_ROWS = st.one_of(
    st.sampled_from(
        [b"50,Oslo,1,10.0.0.1,hi,yes", b'25,"Rome",7,"a,b",,no', b"1e1,Paris,x,b,c,yes", b"100,Oslo,2,a,\xc3\x98,maybe"]
    ),
    st.sampled_from(
        [
            b"",
            b"1,2",
            b'1,"a',
            b"\xff,1",
            b'50,Oslo,1,"a\r\n\n",hi,yes',
            b'"50\n",Oslo,1,a,b,yes',
            b'",',
            b'1,"' + b"a\n" * 40 + b'"',
            BOM_UTF8 + b"5,Oslo,1,a,b,yes",
            b"x" * 70,
            b"x" * 300,
        ]
    ),
)
JSON_ROWS = st.one_of(
    st.integers(0, 120).map(lambda age: json.dumps({"age": age, "town": "Oslo", "bought": "yes"}).encode()),
    st.sampled_from([b"", b"{", b"[1]", b'{"age": [1]}', BOM_UTF8 + b"{}", b"x" * 70, b"x" * 300]),
)


def small(patch, chunk):
    """Small chunks, and lines of more than 64 bytes are too long."""
    patch.setattr(lines_module, "_CHUNK", chunk)
    for name in ("lines", "csv", "jsonl"):
        patch.setattr(f"taciturn.readers.{name}.LONGEST", 64)


def rows_of(batches):
    """Features, labels and line numbers of all rows."""
    made = [(batch.X, batch.y, batch.lines) for batch in batches]
    return [np.concatenate(arrays) for arrays in zip(*made, strict=True)]


def check_every_start(path, block, **options):
    """Read on from each batch's start; the batches of the whole file."""
    whole = list(open_rows(contract(), path, bad_rows="zero", block=block, **options))
    for batch in whole:
        assert batch.start.row == batch.first
        assert batch.start.line == batch.lines[0]
        rest = list(open_rows(contract(), path, bad_rows="zero", block=block, start=batch.start, **options))
        assert rest[0].start == batch.start
        assert rest[-1].size == whole[-1].size
        assert [part.first for part in rest] == np.cumsum([batch.first, *(len(part.X) for part in rest[:-1])]).tolist()
        expected = rows_of(part for part in whole if part.first >= batch.first)
        for one, other in zip(rows_of(rest), expected, strict=True):
            assert np.array_equal(one, other, equal_nan=True)
    return whole


@settings(deadline=None)
@given(
    rows=st.lists(CSV_ROWS, max_size=30),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    ended=st.booleans(),
    mark=st.booleans(),
    packed=st.booleans(),
    block=st.integers(1, 12),
    chunk=st.sampled_from([3, 50, 10_000]),
)
@example([b"x" * 70, b"x" * 3000, b"50,Oslo,1,a,b,yes", b"x" * 70, b"x" * 3000] * 3, b"\n", False, True, False, 4, 50)
def test_csv_goes_on_from_any_batch(tmp_path_factory, rows, newline, ended, mark, packed, block, chunk):
    """Blocks of more than 2 lines are tried in halves."""
    data = newline.join([HEADER.encode(), *rows]) + newline * (ended and bool(rows))
    path = tmp_path_factory.mktemp("rows") / ("a.csv.gz" if packed else "a.csv")
    with gzip.open(path, "wb") if packed else open(path, "wb") as file:
        file.write(BOM_UTF8 * mark + data)
    with pytest.MonkeyPatch.context() as patch:
        small(patch, chunk)
        patch.setattr("taciturn.readers.csv._FEW", 2)
        for batch in check_every_start(path, block):
            line = (BOM_UTF8 * mark + data).split(b"\n")[batch.start.line - 1]
            assert (BOM_UTF8 * mark + data)[batch.start.offset :].startswith(line)


@settings(deadline=None)
@given(
    rows=st.lists(JSON_ROWS, max_size=30),
    mark=st.booleans(),
    packed=st.booleans(),
    block=st.integers(1, 12),
    chunk=st.sampled_from([3, 50, 10_000]),
)
def test_json_lines_go_on_from_any_batch(tmp_path_factory, rows, mark, packed, block, chunk):
    path = tmp_path_factory.mktemp("rows") / ("a.jsonl.gz" if packed else "a.jsonl")
    with gzip.open(path, "wb") if packed else open(path, "wb") as file:
        file.write(BOM_UTF8 * mark + b"\n".join(rows))
    with pytest.MonkeyPatch.context() as patch:
        small(patch, chunk)
        check_every_start(path, block)


@settings(deadline=None)
@given(rows=st.integers(0, 40), group=st.integers(1, 12), block=st.integers(1, 12))
def test_parquet_goes_on_from_any_batch(tmp_path_factory, rows, group, block):
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    table = {
        "age": [float(i) if i % 7 else None for i in range(rows)],
        "town": ["Oslo"] * rows,
        "floor": list(range(rows)),
        "ip": ["a"] * rows,
        "note": ["x"] * rows,
        "bought": ["yes"] * rows,
    }
    columns = {"age": pa.float64(), "floor": pa.int64()}
    arrays = {name: pa.array(values, columns.get(name, pa.string())) for name, values in table.items()}
    parquet.write_table(pa.table(arrays), path, row_group_size=group)
    assert sum(len(batch.X) for batch in check_every_start(path, block)) == rows
    for start in (rows, rows + 5):
        assert list(open_rows(contract(), path, start=Position(start, start + 1, 0))) == []


def test_groups_of_rows_before_the_start_are_not_read(tmp_path):
    """They are destroyed here, and nobody notices."""
    path = tmp_path / "a.parquet"
    row = {"age": 1.0, "town": "Oslo", "floor": 1, "ip": "a", "note": "x", "bought": "yes"}
    parquet.write_table(pa.table({name: [value] * 300 for name, value in row.items()}), path, row_group_size=100)
    content = bytearray(path.read_bytes())
    group = parquet.ParquetFile(path).metadata.row_group(1)
    content[4 : group.column(0).dictionary_page_offset] = b"\xff" * (group.column(0).dictionary_page_offset - 4)
    path.write_bytes(content)
    assert sum(len(batch.X) for batch in open_rows(contract(), path, start=Position(150, 151, 0))) == 150
    with pytest.raises(InvalidInput, match="cannot be read"):
        list(open_rows(contract(), path, start=Position(99, 100, 0)))


def test_a_place_far_into_a_file_is_reached_without_reading_what_is_before_it(tmp_path):
    """A sparse file of a terabyte: reading it would take an hour."""
    path, far = tmp_path / "a.csv", 2**40
    with open(path, "wb") as file:
        file.write(HEADER.encode() + b"\n")
        file.seek(far)
        file.write(b"50,Oslo,1,a,b,yes\n25,Rome,7,a,b,no\n")
    [batch] = open_rows(contract(), path, start=Position(10**10, 10**10 + 2, far))
    assert batch.lines.tolist() == [10**10 + 2, 10**10 + 3]
    assert (batch.first, batch.size) == (10**10, path.stat().st_size)


def test_a_file_that_ends_before_the_start_has_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text(csv("50,Oslo,1,a,b,yes"))
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write(csv("50,Oslo,1,a,b,yes"))
    for name in ("a.csv", "b.csv.gz"):
        assert list(open_rows(contract(), tmp_path / name, start=Position(5, 7, 10_000))) == []


def test_an_open_file_goes_on_relative_to_where_it_stood():
    data = b"not of this source" + csv("50,Oslo,1,a,b,yes", "25,Rome,7,a,b,no").encode()
    source = io.BytesIO(data)
    source.seek(18)
    _, second = open_rows(contract(), source, block=1)
    source.seek(18)
    [rest] = open_rows(contract(), source, start=second.start)
    assert np.array_equal(rest.X, second.X)


def test_pipes_are_read_from_their_beginning_only(tmp_path):
    """The standard input too, even where it is a file: nothing says where that file begins."""
    start, words = Position(1, 3, 30), "can only be read from its beginning"
    for format in ("csv", "json", "parquet"):
        with pytest.raises(InvalidInput, match=words):
            open_rows(contract(), "-", format=format, start=start)
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read, "rb") as pipe, pytest.raises(InvalidInput, match=words):
        open_rows(contract(), pipe, start=start)
    for name in ("fifo.csv", "fifo.csv.gz"):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=lambda path: open(path, "wb").close(), args=(tmp_path / name,))
        writer.start()
        with pytest.raises(InvalidInput, match=words):
            open_rows(contract(), tmp_path / name, start=start)
        writer.join()


@pytest.mark.parametrize("chunk", [2**18, 2**22])
def test_offsets_count_what_is_cut_out_of_long_lines(monkeypatch, chunk):
    monkeypatch.setattr(lines_module, "_CHUNK", chunk)
    data = b"a\n" + (b"x" * (LONGEST + 5 * 2**18) + b"\nafter\n") * 5 + b"y" * (3 * LONGEST)
    lines, starts = Lines(io.BytesIO(data)), []
    for _part in lines.parts(1):
        starts.append(lines.offset())
    assert starts == [0, *(i + 1 for i in range(len(data)) if data[i] == ord("\n"))]
    assert lines.size == len(data)
