"""Batches: how they are cut changes no row; files are rejected before any row is read."""

import gzip
import io
import os
import subprocess
import sys
import time
from codecs import BOM_UTF8
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.declared import HEADER, contract, csv, read
from taciturn import InvalidInput
from taciturn.estimators.stream import Stream
from taciturn.readers.rows import open_rows
from taciturn.readers.source import format_of

ROWS = [f"{i % 120},{['Oslo', 'Rome', 'Bonn'][i % 3]},{i % 8},{i % 5},x,{['yes', 'no'][i % 2]}" for i in range(100)]


@given(st.integers(1, 120), st.sampled_from([5, 64, 10_000]))
def test_cuts_change_nothing(block, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("taciturn.readers.lines._CHUNK", chunk)
        batches = read(contract(), csv(*ROWS), block=block)
    [whole] = read(contract(), csv(*ROWS))
    assert np.array_equal(np.concatenate([batch.X for batch in batches]), whole.X)
    assert np.array_equal(np.concatenate([batch.y for batch in batches]), whole.y)
    assert max(len(batch.X) for batch in batches) <= block
    assert [batch.first for batch in batches] == np.cumsum([0, *(len(batch.X) for batch in batches)])[:-1].tolist()
    assert all(
        batch.lines.tolist() == list(range(batch.first + 2, batch.first + 2 + len(batch.X))) for batch in batches
    )
    assert batches[-1].size == len(csv(*ROWS))


def test_batches_are_arrays_that_learners_take():
    [batch] = read(contract(), csv(*ROWS))
    assert batch.X.dtype == batch.y.dtype == np.float64
    assert batch.X.flags.c_contiguous
    assert batch.lines.dtype == np.int64
    stream = Stream(contract(horizon=100).plan(seed=1))
    stream.learn(batch.X, batch.y)
    assert stream.t == 100


def test_a_zeroed_row_is_learnt_as_an_example_without_influence():
    """The round is taken, and what is released is what an empty example in its place releases."""
    made = contract(horizon=100)
    [batch] = read(made, csv(*ROWS[:50], "broken", *ROWS[51:]), bad_rows="zero")
    bad, empty = (Stream(made.plan("zero", seed=1)) for _ in range(2))
    released = bad.learn(batch.X, batch.y)
    X = batch.X.copy()
    X[50] = np.inf
    assert bad.t == 100
    assert np.array_equal(released.points, empty.learn(X, batch.y).points)


def test_wide_contracts_have_short_batches():
    """A batch has a million entries at most, so that memory does not grow with the hashes."""
    made = contract(columns={"ip": {"hash": 2**17}, "age": {"range": [0, 1]}, "note": {"ignore": True}})
    rows = "ip,age,note,bought\n" + "a,1,x,yes\n" * 20
    assert {len(batch.X) for batch in read(made, rows)} <= set(range(1, 8))


def test_labels_are_not_read_for_predictions():
    [batch] = read(contract(), csv("50,Oslo,1,a,b,"), labelled=False)
    assert (batch.X.shape, batch.y.shape) == ((1, 10), (0,))
    [batch] = read(contract(), "floor,more,ip,age,town\n1,x,a,50,Oslo\n", labelled=False)
    assert np.array_equal(batch.X, read(contract(), csv("50,Oslo,1,a,b,yes"))[0].X)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("age,town,floor,ip,note", "column bought of the contract is not in the header"),
        (HEADER + ",age", "column age of the contract is twice in the header"),
        (HEADER + ",extra", "column extra is in the file but not in the contract"),
        (
            "40,Oslo,1,a,b,yes",
            "the header has none of the contract's columns, such as age. .* if its first line is a row, add",
        ),
        ('{"age": 1}', "the first line is JSON, not the header of a CSV file. Pass --format json"),
        ("", "the first line must be a header"),
    ],
)
def test_headers_are_checked_before_any_row(header, words):
    with pytest.raises(InvalidInput, match=words):
        open_rows(contract(), io.BytesIO(f"{header}\n1,2\n".encode()))


def test_a_file_of_no_rows_has_no_batches():
    assert read(contract(), HEADER) == read(contract(), HEADER + "\n") == []


def test_files_are_known_by_their_endings(tmp_path):
    assert [format_of(name) for name in ("a.CSV", "a.tsv", "a.ndjson", "a.pq", "-", "b.jsonl.gz")] == [
        "csv",
        "csv",
        "json",
        "parquet",
        "csv",
        "json",
    ]
    assert format_of("a.dat", "csv") == "csv"
    for source, given_format, words in (
        ("a.dat", None, "no known file extension"),
        ("a.csv", "xml", "format must be one of"),
    ):
        with pytest.raises(InvalidInput, match=words):
            format_of(source, given_format)
    (tmp_path / "a.csv").write_text(csv(*ROWS))
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(csv(*ROWS))
    [plain], [packed] = (list(open_rows(contract(), tmp_path / name)) for name in ("a.csv", "a.csv.gz"))
    assert np.array_equal(plain.X, packed.X)
    assert packed.size == (tmp_path / "a.csv.gz").stat().st_size


def test_broken_and_missing_files_are_rejected(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(csv(*ROWS))
    whole = (tmp_path / "a.csv.gz").read_bytes()
    (tmp_path / "a.csv.gz").write_bytes(whole[:-20])
    with pytest.raises(InvalidInput, match="not a complete gzip file"):
        list(open_rows(contract(), tmp_path / "a.csv.gz"))
    (tmp_path / "a.csv.gz").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="not a complete gzip file"):
        list(open_rows(contract(), tmp_path / "a.csv.gz"))
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        open_rows(contract(), tmp_path / "nowhere.csv")
    with pytest.raises(InvalidInput, match="bad_rows must be one of"):
        open_rows(contract(), io.BytesIO(), bad_rows="skip")


def test_an_unused_reader_leaves_no_file_open(tmp_path):
    (tmp_path / "a.csv").write_text(csv(*ROWS))
    rows = open_rows(contract(), tmp_path / "a.csv")
    del rows  # a warning here is an error


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are listed by Linux")
def test_a_reader_that_is_closed_or_stopped_by_a_bad_row_has_closed_its_file(tmp_path):
    """While batches, generator and error are still there."""
    path = tmp_path / "a.csv"
    path.write_text(csv(*ROWS, "bad", *ROWS))

    def is_open():
        return str(path) in {os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()}

    rows = open_rows(contract(), path, block=1)
    first = next(rows)
    assert is_open()
    rows.close()
    assert not is_open()
    assert first.y.shape == (1,)
    rows = open_rows(contract(), path)
    with pytest.raises(InvalidInput) as stopped:
        list(rows)
    assert stopped.value.__traceback__ is not None
    assert not is_open()


STDIN = """
import sys
sys.path.append(sys.argv[1])
from contract.declared import contract
from taciturn.readers.rows import open_rows
for batch in open_rows(contract(), "-"):
    print(len(batch.X), flush=True)
"""


def test_the_standard_input_is_read_as_it_comes():
    """A row is answered before the next one is sent."""
    process = subprocess.Popen(
        [sys.executable, "-c", STDIN, os.path.dirname(os.path.dirname(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        process.stdin.write(f"{HEADER}\n{ROWS[0]}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline() == b"1\n"
        process.stdin.write(f"{ROWS[1]}\n{ROWS[2]}\n".encode())
        process.stdin.close()
        assert process.stdout.read() == b"2\n"
    assert process.returncode == 0


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_byte_order_mark_on_the_standard_input_is_skipped(format):
    """As some editors and exports write it; also if it comes in pieces."""
    row = b'{"age": 1, "town": "Oslo", "floor": 1, "ip": "a", "bought": "yes"}\n'
    data = BOM_UTF8 + (row if format == "json" else f"{HEADER}\n{ROWS[0]}\n".encode())
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            STDIN.replace('"-"', f'"-", format="{format}"'),
            os.path.dirname(os.path.dirname(__file__)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        for part in (data[:2], data[2:]):
            process.stdin.write(part)
            process.stdin.flush()
            time.sleep(0.3)
        process.stdin.close()
        assert process.stdout.read() == b"1\n"
    assert process.returncode == 0


def test_csv_has_a_mark_at_its_start_alone():
    [plain], [marked] = read(contract(), csv(*ROWS)), read(contract(), BOM_UTF8 + csv(*ROWS).encode())
    assert np.array_equal(plain.X, marked.X)
    with pytest.raises(InvalidInput, match="line 2: age is"):
        read(contract(), csv("\ufeff" + ROWS[0], *ROWS[1:]))


# Places of rows, and ids alone.


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@given(lines=st.lists(st.sampled_from(["1,a", '2,"b, c"', '3,"d\ne"', "4,", "5,f,g", ""]), max_size=12))
@pytest.mark.parametrize("every", [1, 3])
def test_reading_goes_on_from_every_place_and_ids_are_those_of_rows(kind, every, lines):
    """Also with newlines inside of quotes, and with lines that are no rows of the header."""
    from taciturn.contract.contract import contract_of
    from taciturn.readers.rows import open_ids, row_positions

    declared = contract_of(
        {
            "privacy": {"epsilon": 1, "user": "who"},
            "target": {"column": "y", "range": [0, 9]},
            "columns": {"x": {"range": [0, 9]}},
        }
    )
    if kind == "csv":
        data = ("y,x,who\n" + "".join(f"1,{line}\n" for line in lines)).encode()
    elif kind == "json":
        data = "".join(f'{{"y": 1, "x": {i}, "who": "{line[:1]}"}}\n' for i, line in enumerate(lines)).encode()
    else:
        import pyarrow as pa
        from pyarrow import parquet

        table = {"y": [1.0] * len(lines), "x": [1.0 * i for i in range(len(lines))], "who": list(map(str, lines))}
        types = pa.schema([("y", pa.float64()), ("x", pa.float64()), ("who", pa.string())])
        sink = io.BytesIO()
        parquet.write_table(pa.table(table, schema=types), sink, row_group_size=2)
        data = sink.getvalue()

    def joined(**more):
        read = list(open_rows(declared, io.BytesIO(data), bad_rows="zero", format=kind, **more))
        rows = np.concatenate([np.empty(0), *(batch.X.ravel() for batch in read)])
        ids = [user for batch in read for user in batch.users]
        return rows, ids, [line for batch in read for line in batch.lines]

    rows, ids, numbers = joined()
    *places, end = row_positions(declared, io.BytesIO(data), every, format=kind)
    assert [place.row for place in places] == list(range(0, len(rows), every))
    assert end.row == len(rows)
    for place in places:
        again = joined(start=place)
        assert np.array_equal(again[0], rows[place.row :], equal_nan=True)
        assert again[1:] == (ids[place.row :], numbers[place.row :])
        assert place.line == numbers[place.row]
        alone = list(open_ids(declared, io.BytesIO(data), format=kind, start=place))
        assert [user for part in alone for user in part] == ids[place.row :]


@pytest.mark.privacy
def test_batches_have_as_many_rows_however_long_a_row_is(monkeypatch):
    """Rounding may depend on the number of rows, and a row must not reach others by its length, or by being bad."""
    monkeypatch.setattr("taciturn.readers.lines._CHUNK", 1_000)
    for row in (ROWS[30], ROWS[30].replace(",x,", f",{'x' * 5_000},"), ROWS[30].replace("30,", '"30",'), "broken", ""):
        batches = read(contract(), csv(*ROWS[:30], row, *ROWS[31:]), bad_rows="zero", block=16)
        assert [len(batch.X) for batch in batches] == [16] * 6 + [4]
        assert [batch.start.row for batch in batches] == [16 * i for i in range(7)]


def test_rows_before_the_end_of_a_damaged_file_are_read(monkeypatch, tmp_path):
    """As far as it can be decompressed, though their block is not full."""
    monkeypatch.setattr("taciturn.readers.lines._CHUNK", 100)
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(csv(*ROWS).encode(), mtime=0)[:-8])
    rows, read_before = open_rows(contract(), path), []
    with pytest.raises(InvalidInput, match="not a complete gzip file"):
        read_before.extend(rows)
    assert [len(batch.X) > 50 for batch in read_before] == [True]
