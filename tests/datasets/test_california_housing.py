"""California housing: one set from StatLib's text or from a table of averages, within public bounds."""

import io
import re
import sys
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.datasets import california_housing
from taciturn.datasets.california_housing import RANGES, UNITS, URL, from_parquet, parse, stream_of
from taciturn.datasets.files import load
from taciturn.errors import InvalidInput, TaciturnError

LINE = b"-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,126.000000,8.325200,452600.000000"


@pytest.fixture(scope="module")
def file(data_file):
    pytest.importorskip("pyarrow")
    return data_file("california_housing.parquet")


def test_a_line_becomes_scaled_numbers():
    """StatLib's first line: averages a household, each where its range puts it, all divided by sqrt(8)."""
    stream = stream_of(parse(LINE))
    row = dict(zip(stream.names, stream.X[0] * np.sqrt(8), strict=True))
    values = {"income": 8.3252, "age": 41, "rooms a household": 880 / 126, "bedrooms a household": 129 / 126}
    values |= {"population": 322, "people a household": 322 / 126, "latitude": 37.88, "longitude": -122.23}
    for name, (low, high) in RANGES.items():
        assert row[name] == pytest.approx(2 * (values[name] - low) / (high - low) - 1), name
    assert stream.y.tolist() == [4.526]


@given(st.lists(st.integers(-(10**9), 10**9), min_size=len(UNITS), max_size=len(UNITS)))
def test_no_row_is_longer_than_the_bound(fields):
    """Whatever the counts say, as long as there is a household."""
    table = np.array([fields])
    table[0, list(UNITS).index("households")] = 1 + abs(fields[6])
    stream = stream_of(table)
    assert np.linalg.norm(stream.X) <= stream.feature_bound == 1.0
    assert abs(stream.y[0]) <= stream.label_bound


@pytest.mark.parametrize(
    ("data", "why"), [(b"1,2", "it has 2 columns, not 9"), (b"a,b", "not a table"), (LINE, "1 rows")]
)
def test_another_file_is_rejected_with_a_remedy(data, why, tmp_path):
    (tmp_path / "mine").write_bytes(data)
    with pytest.raises(InvalidInput, match=rf"is not the California housing data: .*{why}.* Put a fresh copy of {URL}"):
        california_housing(tmp_path / "mine")


def test_a_table_that_is_none_is_rejected(tmp_path):
    """Cut short, or with other columns."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "california_housing.parquet"
    parquet.write_table(pyarrow.table({"MedInc": [1.0]}), path)
    with pytest.raises(InvalidInput, match="it has no column HouseAge"):
        california_housing(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidInput, match="it cannot be read as a Parquet file"):
        california_housing(path)


def test_without_pyarrow_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    said = 'Parquet needs the extra `data` (pyarrow). In the checkout, run pip install -c constraints.txt ".[data]".'
    with pytest.raises(TaciturnError, match=f"^{re.escape(said)}$"):
        california_housing(tmp_path / "a.parquet")


def test_the_archive_of_statlib_s_text_is_the_same_set(file, tmp_path):
    """Written out from the counts as StatLib writes them, and packed as scikit-learn's archive is: the same stream."""
    table = from_parquet(load(file)) / list(UNITS.values())
    text = "".join(",".join(f"{x:f}" for x in row) + "\n" for row in table).encode()
    entry = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
    entry.size = len(text)
    with tarfile.open(tmp_path / "cal_housing.tgz", "w:gz") as archive:
        archive.addfile(entry, io.BytesIO(text))
    ours, theirs = california_housing(file), california_housing(tmp_path / "cal_housing.tgz")
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.y, theirs.y)


def test_a_number_changed_is_noticed(file, tmp_path):
    """The planted fault: one house more expensive by a dollar."""
    table = from_parquet(load(file))
    table[7, -1] += 1
    rows = table / list(UNITS.values())
    (tmp_path / "cal_housing.data").write_text("".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()))
    with pytest.raises(InvalidInput, match="its numbers' SHA-256 checksum is"):
        california_housing(tmp_path / "cal_housing.data")


def test_the_real_file_keeps_its_bounds_and_can_be_learnt(file):
    """Shape, norms, labels; a line through all rows explains more than half of the variance."""
    stream = california_housing(file)
    assert stream.X.shape == (20_640, 8)
    assert np.linalg.norm(stream.X, axis=1).max() <= stream.feature_bound
    assert 0.0 < stream.y.min() < stream.y.max() == stream.label_bound == 5.00001
    X = np.hstack([stream.X, np.ones((len(stream), 1))])
    solution, *_ = np.linalg.lstsq(X, stream.y)
    assert np.var(stream.y - X @ solution) < 0.45 * np.var(stream.y)
