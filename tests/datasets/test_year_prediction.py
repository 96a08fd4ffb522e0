"""Years of songs: the loader on small files of the format; the real one is large, and read where it is at hand."""

import gzip
import hashlib
import zipfile
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.datasets import year_prediction
from taciturn.datasets.year_prediction import NAMES, TEXT, TIMBRES, URL, parse
from taciturn.errors import InvalidInput

# The package's attributes of these names are the loaders, not their modules.
songs = import_module("taciturn.datasets.year_prediction")


def small(rows=50, seed=0) -> bytes:
    """Lines like those of `YearPredictionMSD.txt`: a year, 12 averages and 78 covariances with five decimals."""
    rng = np.random.default_rng(seed)
    years = rng.integers(1922, 2012, rows)
    numbers = np.hstack([40 * rng.standard_normal((rows, 12)), 1500 * rng.standard_normal((rows, 78))])
    return "".join(
        f"{year}," + ",".join(f"{x:.5f}" for x in row) + "\n" for year, row in zip(years, numbers, strict=True)
    ).encode()


def test_a_line_becomes_timbres_and_roots():
    """Averages by 100, covariances by the root with their signs, all divided by sqrt(90)."""
    line = np.zeros(91)
    line[[0, 1, 12, 13, 90]] = 1922, 50, -250, 2500, -1e6
    stream = parse(",".join(map(str, line)).encode())
    row = stream.X[0] * np.sqrt(90)
    np.testing.assert_allclose(row[[0, 11, 12, 89]], [0.5, -1.0, 0.5, -1.0])
    assert np.count_nonzero(row) == 4
    assert stream.y.tolist() == [-44.5]


@given(st.lists(st.floats(-1e300, 1e300), min_size=91, max_size=91))
def test_no_row_is_longer_than_the_bound(fields):
    stream = parse(",".join(map(repr, fields)).encode())
    assert np.linalg.norm(stream.X) <= stream.feature_bound == 1.0
    assert abs(stream.y[0]) <= stream.label_bound == 44.5


def test_covariances_of_timbres_within_the_span_are_not_clipped():
    """|cov| of values in [-100, 100] is at most 100²: the root of it is the largest feature there is."""
    timbres = np.random.default_rng(1).choice([-100.0, 100.0], size=(1000, TIMBRES))
    covariances = np.cov(timbres.T, ddof=0)[np.triu_indices(TIMBRES)]
    assert np.abs(covariances).max() <= 100.0**2
    stream = parse(",".join(map(repr, [2000.0, *timbres.mean(axis=0).tolist(), *covariances.tolist()])).encode())
    roots = stream.X[0, TIMBRES:] * np.sqrt(90) * 100
    np.testing.assert_allclose(np.sign(roots) * roots**2, covariances, rtol=1e-9)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_of_the_right_checksum_is_read(pack, tmp_path, monkeypatch):
    """In the order of the file, packed or not; a bit turned is rejected."""
    data = small()
    monkeypatch.setattr(songs, "TEXT", (len(data), hashlib.md5(data).hexdigest()))
    path = tmp_path / "mine"
    path.write_bytes(pack(data))
    stream = year_prediction(path)
    assert stream.X.shape == (50, 90) == (50, len(set(NAMES)))
    np.testing.assert_array_equal(stream.y + 1966.5, np.loadtxt(data.decode().splitlines(), delimiter=",")[:, 0])
    path.write_bytes(pack(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]))
    with pytest.raises(InvalidInput, match="its MD5 checksum is"):
        year_prediction(path)


def test_the_archive_of_uci_is_found_where_data_lies(tmp_path, monkeypatch):
    """In the folder of `TACITURN_DATA`, without a path."""
    data = small()
    monkeypatch.setattr(songs, "TEXT", (len(data), hashlib.md5(data).hexdigest()))
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "YearPredictionMSD.txt.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("YearPredictionMSD.txt", data)
    assert len(year_prediction()) == 50


@pytest.mark.parametrize("data", [b"", small(), b"<html>"])
def test_another_file_is_rejected_with_a_remedy(data, tmp_path):
    (tmp_path / "mine").write_bytes(data)
    why = rf"is not UCI's YearPredictionMSD.txt: it has {len(data):,} bytes, not 448,576,698. Put a fresh copy of {URL}"
    with pytest.raises(InvalidInput, match=why):
        year_prediction(tmp_path / "mine")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"2001,1", "has 2 columns"),
        (b"x", "not a table"),
        (b"2001," + b"nan," * 89 + b"1", "91 columns of finite numbers"),
    ],
)
def test_lines_that_are_none_are_rejected(data, why):
    with pytest.raises(InvalidInput, match=why):
        parse(data)


@pytest.mark.slow
def test_the_real_file_keeps_its_bounds(data_file):
    path = data_file("YearPredictionMSD.txt.zip", "YearPredictionMSD.txt", "YearPredictionMSD.txt.gz")
    stream = year_prediction(path)
    assert TEXT[0] == 448_576_698
    assert stream.X.shape == (515_345, 90)
    assert np.linalg.norm(stream.X, axis=1).max() <= stream.feature_bound
    assert np.abs(stream.y).max() == stream.label_bound
