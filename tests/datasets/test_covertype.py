"""Covertype: one set from two files, features within public bounds, and no file taken for it that is not it."""

import gzip
import hashlib
import io
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.datasets import covertype
from taciturn.datasets.covertype import AREAS, CLASSES, NAMES, RANGES, SOILS, URL, Cells, features, parse, stream_of
from taciturn.errors import InvalidInput

# The package's attributes of these names are the loaders, not their modules.
forest = import_module("taciturn.datasets.covertype")


def line(numbers=(2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279), area=0, soil=28, kind=5) -> bytes:
    fields = [*numbers, *np.eye(len(AREAS), dtype=int)[area], *np.eye(SOILS, dtype=int)[soil], kind]
    return ",".join(str(field) for field in fields).encode()


@pytest.fixture(scope="module")
def whole(data_file):
    """The real file, read once."""
    return covertype(path=data_file("covtype.data.gz", "covtype.npz", "covtype.data"))


def test_a_line_becomes_scaled_numbers_and_indicators():
    """Each number where its range puts it, the area and the soil in their columns."""
    stream = stream_of(parse(line()), positive=5, unit=False)
    row = dict(zip(stream.names, stream.X[0], strict=True))
    assert row.pop("elevation") == pytest.approx(2 * (2596 - 1890) / 2072 - 1)
    assert row.pop("aspect") == pytest.approx(2 * 51 / 360 - 1)
    assert row.pop("vertical distance to water") == 0.0
    assert row.pop("distance to fire") == pytest.approx(2 * 0.6279 - 1)
    assert {name for name, x in row.items() if x == 1.0} == {"area=Rawah", "soil=29"}
    assert stream.y.tolist() == [1.0]


@pytest.mark.parametrize("area", range(len(AREAS)))
def test_text_and_arrays_are_the_same_cells(area):
    """Every soil and class, from a line and from the columns of the compact file."""
    rows = [(area, soil, 1 + soil % CLASSES) for soil in range(SOILS)]
    read = parse(b"\n".join(line(area=a, soil=s, kind=k) for a, s, k in rows))
    numbers = np.array([[2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279]] * SOILS, dtype=np.int16)
    compact = Cells(numbers, *(np.array(column, dtype=np.uint8) for column in zip(*rows, strict=True)))
    np.testing.assert_array_equal(features(read), features(compact))
    np.testing.assert_array_equal(read.kind, compact.kind)


@given(
    st.tuples(*[st.one_of(st.sampled_from(ends), st.integers(-(2**15), 2**15 - 1)) for ends in RANGES.values()]),
    st.integers(0, len(AREAS) - 1),
    st.integers(0, SOILS - 1),
)
def test_no_row_is_longer_than_the_bound(numbers, area, soil):
    """Whatever the numbers say; scaled rows have norm 1, which a smaller bound would not hold."""
    cells = parse(line(numbers, area, soil))
    raw, unit = (stream_of(cells, 2, unit=unit) for unit in (False, True))
    assert np.linalg.norm(raw.X) <= raw.feature_bound * (1 + 1e-12)
    assert 1 - 1e-11 <= np.linalg.norm(unit.X) <= unit.feature_bound == 1.0


def test_the_bound_of_raw_rows_is_attained():
    top = [high for _, high in RANGES.values()]
    stream = stream_of(parse(line(top)), 2, unit=False)
    assert np.linalg.norm(stream.X) == pytest.approx(stream.feature_bound)


@pytest.mark.parametrize("positive", [0, 8, -1, 2.5, "2"])
def test_there_are_seven_classes(positive):
    with pytest.raises(InvalidInput, match="positive must be a class from 1 to 7, or None for all of them"):
        covertype(positive)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"1,2,3", "it has 3 columns, not 55"),
        (b"1,2\n3", "not a table"),
        (line() + b"\n" + line() + b",1", "not a table"),
    ],
)
def test_anything_but_a_table_is_rejected(data, why):
    with pytest.raises(InvalidInput, match=why):
        parse(data)


@pytest.mark.parametrize(
    "data", [b"", line(), gzip.compress(line(), mtime=0), b"PK\x03\x04" + b"num.npy".rjust(33), None]
)
def test_another_file_is_rejected_with_a_remedy(data, tmp_path):
    """Empty, too short, an archive of something else, not there."""
    path = tmp_path / "covtype.data"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(
        InvalidInput, match=rf"is not UCI's covtype.data or covtype.npz: .* Put a fresh copy of {URL} in"
    ):
        covertype(path=path)


def test_either_file_is_read_and_checked(tmp_path, monkeypatch):
    """Small files of both formats, under their own checksums: the same stream; a bit turned is rejected."""
    lines = b"\n".join(line(area=k % 4, soil=k, kind=1 + k % 7) for k in range(SOILS))
    cells = parse(lines)
    packed = io.BytesIO()
    np.savez_compressed(packed, num=cells.numbers, wilderness=cells.area, soil=cells.soil, y=cells.kind)
    monkeypatch.setattr(forest, "TEXT", (len(lines), hashlib.md5(lines).hexdigest()))
    monkeypatch.setattr(forest, "COMPACT", (len(packed.getvalue()), hashlib.sha256(packed.getvalue()).hexdigest()))
    copies = {"covtype.data": lines, "covtype.data.gz": gzip.compress(lines, mtime=0), "covtype.npz": packed.getvalue()}
    for name, data in copies.items():
        (tmp_path / name).write_bytes(data)
        stream = covertype(None, tmp_path / name)
        np.testing.assert_array_equal(stream.y, np.arange(SOILS) % 7)
        np.testing.assert_array_equal(stream.X, stream_of(cells, None, unit=True).X)
    for name, data in (("covtype.data", lines), ("covtype.npz", packed.getvalue())):
        (tmp_path / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(InvalidInput, match="checksum is"):
            covertype(path=tmp_path / name)


def test_the_real_file_keeps_its_bounds(whole):
    """Shape, labels as published (`covtype.info`), norms; every area and soil occurs."""
    assert whole.X.shape == (581_012, 54) == (len(whole), len(whole.names))
    assert np.count_nonzero(whole.y == 1.0) == 283_301
    assert np.count_nonzero(whole.y == -1.0) == 581_012 - 283_301
    norms = np.sqrt(np.einsum("ij,ij->i", whole.X, whole.X))
    assert 1 - 1e-11 < norms.min() <= norms.max() <= whole.feature_bound == 1.0
    assert (whole.X[:, len(RANGES) :] != 0.0).any(axis=0).all()


@pytest.mark.slow
def test_the_compact_file_expands_to_uci_s(data_file, tmp_path):
    """Byte for byte, as the loader checks by UCI's MD5 checksum: whichever file is read, it is one set."""
    with np.load(data_file("covtype.npz")) as arrays:
        table = np.zeros((len(arrays["y"]), len(NAMES) + 1), dtype=np.int16)
        each = np.arange(len(table))
        table[:, : len(RANGES)], table[:, -1] = arrays["num"], arrays["y"]
        table[each, len(RANGES) + arrays["wilderness"].astype(int)] = 1
        table[each, len(RANGES) + len(AREAS) + arrays["soil"].astype(int)] = 1
    with (tmp_path / "covtype.data").open("w") as out:
        out.writelines(",".join(map(str, row)) + "\n" for row in table.tolist())
    ours, theirs = covertype(path=data_file("covtype.npz")), covertype(path=tmp_path / "covtype.data")
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.y, theirs.y)


def test_trees_can_be_learnt(whole):
    """Least squares without privacy is right on 75 % of every tenth cell; guessing the majority, on 51 %."""
    X, y = np.hstack([whole.X, np.ones((len(whole), 1))]), whole.y
    test = np.arange(len(y)) % 10 == 0
    solution, *_ = np.linalg.lstsq(X[~test].T @ X[~test], X[~test].T @ y[~test], rcond=1e-12)
    assert np.mean(np.sign(X[test] @ solution) == y[test]) > 0.75
