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

from taciturn.kernel import npz
from taciturn.kernel.npz import read_npz, write_npz

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


@given(st.dictionaries(NAMES, ARRAYS, max_size=5), st.booleans())
def test_what_is_read_is_what_load_reads(named, transposed):
    named = {name: array.T if transposed else array for name, array in named.items()}
    file = BytesIO()
    np.savez(file, **named)
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


def archive(*entries, compression=zipfile.ZIP_STORED):
    """An archive of contents by name."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in entries:
            made.writestr(name, content)
    return file


def array_file(header, content=b"", version=b"\1\0"):
    text = header.encode("latin-1")
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version == b"\1\0" else 4, "little") + text + content


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_nothing_is_decompressed(compression):
    """A few kilobytes could become gigabytes, and each kind of compression has errors of its own."""
    file = archive(("some.npy", bytes(10**6)), compression=compression)
    assert len(file.getvalue()) < 10**4
    with pytest.raises(ValueError, match="compressed"):
        read_npz(file)


def test_no_more_is_read_than_there_is():
    """A directory that lists one content many times, or as longer than the file."""
    content = array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }\n", bytes(8000))
    file = archive(("some.npy", content)).getvalue()
    start = file.index(b"PK\1\2")
    end = file.index(b"PK\5\6")
    entry = file[start:end]
    for count, size in ((2, len(content)), (60_000, len(content)), (1, 2**31)):
        listed = (entry[:20] + 2 * size.to_bytes(4, "little") + entry[28:]) * count
        told = 2 * count.to_bytes(2, "little") + len(listed).to_bytes(4, "little") + start.to_bytes(4, "little")
        hostile = BytesIO(file[:start] + listed + file[end : end + 8] + told + bytes(2))
        with pytest.raises(ValueError, match=r"more than there is|one name"):
            read_npz(hostile)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a.npy", "a.npy"), ("a.npy", "a")])
def test_two_arrays_of_one_name_are_refused(names):
    content = array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", bytes(8))
    with pytest.raises(ValueError, match="one name"):
        read_npz(archive(*((name, content) for name in names)))


SHAPES = ["9" * 40 + ",", "9" * 4000 + ",", "10000000000000,", "-3,", "4,", "2**2,", "1 2", "0, " + "9" * 30]
KINDS = ["|O", "<f3", "<U9999999999999", "|S2147483647", "<c3"]
DAMAGED = [
    *(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n" for shape in SHAPES),
    *(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (3,), }}\n" for kind in KINDS),
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" + " " * 20_000,
    "{'descr': (",
    "{'descr': '<f8'\n x",
    "{'descr': '''",
    "if 1:\n   x\n  y\n",
    "-" * 3000 + "1",
    "(" * 3000,
    "",
]


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
@pytest.mark.parametrize("version", [b"\1\0", b"\2\0", b"\3\0", b"\x09\x09"])
@pytest.mark.parametrize("number", range(len(DAMAGED)))
def test_a_damaged_header_is_a_value_error(number, version):
    """Or one of the others that `read_npz` names; never one of a parser, of memory, or of a conversion."""
    file = archive(("some.npy", array_file(DAMAGED[number], bytes(24), version)))
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        read_npz(file)
