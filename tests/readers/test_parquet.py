"""Parquet gives the rows that CSV gives, by record batches."""

import io

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from contract.declared import STRICT, contract, csv, read
from taciturn import InvalidInput
from taciturn.readers.rows import open_rows

ROWS = {
    "age": [50.0, 25.0, 10.0, None, float("nan")],
    "town": ["Oslo", "Rome", None, "Oslo", "Paris"],
    "floor": [1, 7, 3, 2, 1],
    "ip": ["10.0.0.1", None, "b", "c", ""],
    "note": [b"x", None, b"", b"", b""],
    "bought": ["yes", "no", "maybe", "yes", "yes"],
}
TEXT = ["50,Oslo,1,10.0.0.1,x,yes", "25,Rome,7,,,no", "10,,3,b,,maybe", ",Oslo,2,c,,yes", " ,Paris,1,,,yes"]


def written(path, **changes):
    parquet.write_table(pa.table({**ROWS, **changes}), path, row_group_size=2)
    return path


def test_the_same_rows_as_csv(tmp_path):
    path = written(tmp_path / "rows.parquet")
    batches = list(open_rows(contract(), path, bad_rows="zero", block=2))
    [plain] = read(contract(), csv(*TEXT), bad_rows="zero")
    assert np.array_equal(np.concatenate([b.X for b in batches]), plain.X, equal_nan=True)
    assert np.array_equal(np.concatenate([b.y for b in batches]), plain.y, equal_nan=True)
    assert np.concatenate([b.lines for b in batches]).tolist() == [1, 2, 3, 4, 5]
    assert [b.first for b in batches] == [0, 2, 4]
    assert batches[-1].size == path.stat().st_size


@pytest.mark.parametrize(
    "changes",
    [
        {"age": pa.array(["50", "25", "1e1", "", " "])},
        {"age": pa.array(["50", "25", "1e1", "", " "]).dictionary_encode()},
        {"age": pa.array([50, 25, 10, None, None], pa.int8())},
        {"floor": pa.array([1.0, 7.0, 3.0, 2.0, 1.0])},
        {"floor": pa.array(["1", "7", "3", "2", "1"])},
        {"town": pa.array(ROWS["town"], pa.large_string())},
        {"town": pa.array(ROWS["town"]).dictionary_encode()},
    ],
)
def test_types_of_the_schema_do_not_matter(tmp_path, changes):
    paths = written(tmp_path / "a.parquet"), written(tmp_path / "b.parquet", **changes)
    before, after = (list(open_rows(contract(), path, bad_rows="zero")) for path in paths)
    assert np.array_equal(np.concatenate([b.X for b in before]), np.concatenate([b.X for b in after]), equal_nan=True)


@pytest.mark.privacy
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC")])
@pytest.mark.parametrize("column", ["ip", "town", "bought"])
def test_a_day_that_python_does_not_have_is_missing_and_stops_no_other_row(tmp_path, kind, column):
    far = 2**30 if kind == pa.date32() else 2**62
    days, others = pa.array([0, 1, far, 2, 3], kind), pa.array([0, 1, None, 2, 3], kind)
    paths = (written(tmp_path / f"{i}.parquet", **{column: values}) for i, values in enumerate((days, others)))
    result, missing = (list(open_rows(contract(), path, bad_rows="zero")) for path in paths)
    for name in ("X", "y"):
        arrays = [np.concatenate([getattr(batch, name) for batch in batches]) for batches in (result, missing)]
        assert np.array_equal(*arrays, equal_nan=True)
    if column == "bought":
        with pytest.raises(InvalidInput, match="row 3: bought is missing"):
            list(open_rows(contract(), tmp_path / "0.parquet"))


def test_bad_rows_are_named_by_their_number(tmp_path):
    batches = open_rows(contract(columns=STRICT), written(tmp_path / "rows.parquet"))
    assert len(next(batches).X) == 3
    with pytest.raises(InvalidInput, match="row 4: age is missing"):
        next(batches)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": [True] * 5}, "column age holds bool, which has no range"),
        ({"age": pa.array([0] * 5, pa.timestamp("s"))}, "column age holds timestamp"),
        ({"town": [["Oslo"]] * 5}, "column town holds list"),
    ],
)
def test_other_types_are_rejected_before_any_row(tmp_path, changes, words):
    path = written(tmp_path / "rows.parquet", **changes)
    with pytest.raises(InvalidInput, match=words):
        open_rows(contract(), path)


def test_anything_but_a_parquet_is_rejected(tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(InvalidInput, match="this Parquet file cannot be read"):
        open_rows(contract(), tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match=r"No such file or directory\. Check its name"):
        open_rows(contract(), tmp_path / "nowhere.parquet")


def test_a_file_that_is_broken_in_the_middle_is_rejected_when_it_is_met(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pa.table({name: values * 1_000 for name, values in ROWS.items()})
    parquet.write_table(table, path, row_group_size=1_000)
    content = bytearray(path.read_bytes())
    middle = parquet.ParquetFile(path).metadata.row_group(3).column(0).data_page_offset
    content[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="this Parquet file cannot be read"):
        list(open_rows(contract(), path, bad_rows="zero"))


def test_a_pipe_is_rejected():
    class Pipe(io.BytesIO):
        def seekable(self):
            return False

    with pytest.raises(InvalidInput, match="cannot be read from a pipe"):
        open_rows(contract(), Pipe(), format="parquet")


def test_without_arrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"the extra `data` \(pyarrow\)\. In the checkout, .* Or use CSV\."):
        open_rows(contract(), "rows.parquet")


@pytest.mark.privacy
@pytest.mark.parametrize("group", [1, 2, 3, 5])
def test_blocks_are_cut_by_the_number_of_rows_and_not_where_the_file_was(group, tmp_path):
    """A writer may cut a file into groups by bytes."""
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(ROWS), path, row_group_size=group)
    batches = list(open_rows(contract(), path, bad_rows="zero", block=2))
    assert [len(batch.X) for batch in batches] == [2, 2, 1]
    assert [batch.start.row for batch in batches] == [0, 2, 4]


def test_a_number_that_is_not_utf_8_is_named(tmp_path):
    texts = pa.array([b"50", b"\xff", b"10", b"1", b"2"], pa.binary()).view(pa.string())
    rows = open_rows(contract(), written(tmp_path / "rows.parquet", age=texts))
    with pytest.raises(InvalidInput, match="row 2: age is not a number"):
        list(rows)
