"""What is written is what `numpy.savez` writes, and what is read is what `numpy.load` reads."""

from __future__ import annotations

import ast
import zipfile
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, boolean_dtypes, floating_dtypes, integer_dtypes

from taciturn._util import npz
from taciturn._util.npz import read_npz, write_npz

ARRAYS = arrays(
    st.one_of(boolean_dtypes(), integer_dtypes(), floating_dtypes(), st.just("<U5"), st.just("S3")),
    array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8).map(lambda text: f"part/{text}")


def read(content):
    if isinstance(content, BytesIO):
        content.seek(0)
    with np.load(content, allow_pickle=False) as made:
        return {name: made[name] for name in made.files}


@given(st.dictionaries(NAMES, ARRAYS, max_size=5), st.booleans())
def test_what_is_written_is_what_savez_writes(named, transposed):
    named = {name: array.T if transposed else array for name, array in named.items()}
    ours, theirs = BytesIO(), BytesIO()
    write_npz(ours, named)
    np.savez(theirs, **named)
    made, expected = read(ours), read(theirs)
    assert list(made) == list(expected) == list(named)
    for name in named:
        assert made[name].dtype == expected[name].dtype
        assert made[name].flags.f_contiguous == expected[name].flags.f_contiguous
        assert made[name].tobytes() == expected[name].tobytes()
        assert made[name].shape == expected[name].shape
    with zipfile.ZipFile(ours) as archive:
        assert archive.testzip() is None  # all checksums hold


def test_a_part_of_a_larger_array_is_written(tmp_path):
    large = np.arange(24.0).reshape(4, 6)
    with (tmp_path / "some.npz").open("wb") as file:
        write_npz(file, {"some": large[::2, 1::2]})
    assert read(tmp_path / "some.npz")["some"].tolist() == large[::2, 1::2].tolist()


@pytest.mark.parametrize("named", [{"large": np.zeros(100)}, {"pairs": np.zeros(2, dtype=[("a", "f8"), ("b", "i4")])}])
def test_large_and_unusual_arrays_are_left_to_numpy(named, monkeypatch):
    monkeypatch.setattr(npz, "_LARGE", 512)
    made = BytesIO()
    write_npz(made, named)
    assert all(read(made)[name].dtype == array.dtype for name, array in named.items())


@given(st.dictionaries(NAMES, ARRAYS, max_size=5), st.booleans(), st.booleans())
def test_what_is_read_is_what_load_reads(named, transposed, compressed):
    named = {name: array.T if transposed else array for name, array in named.items()}
    file = BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **named)
    made, expected = read_npz(file), read(file)
    assert list(made) == list(expected) == list(named)
    for name in named:
        assert made[name].dtype == expected[name].dtype
        assert made[name].flags.f_contiguous == expected[name].flags.f_contiguous
        assert made[name].tobytes() == expected[name].tobytes()
        assert made[name].shape == expected[name].shape
        assert made[name].flags.writeable


def test_plain_arrays_are_read_without_parsing_code(monkeypatch):
    """Before Python 3.12.8, two threads that parse at the same time can fail."""
    file = BytesIO()
    write_npz(file, {"one": np.arange(3.0), "two": np.array("text")})

    def parse(*arguments, **options):
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", parse)
    with pytest.raises(SystemError):
        read(file)
    assert read_npz(file)["one"].tolist() == [0.0, 1.0, 2.0]


def test_unusual_arrays_are_read_by_numpy():
    pairs = np.ones(2, dtype=[("a", "f8"), ("b", "i4")])
    file = BytesIO()
    np.savez(file, pairs=pairs)
    assert read_npz(file)["pairs"].tolist() == pairs.tolist()
    np.savez(file, some=np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_npz(file)
