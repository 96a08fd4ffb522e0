"""Data files are unpacked whatever they are called, and refused unless they are the very ones that are meant."""

import gzip
import hashlib
import io
import re
import tarfile
import zipfile

import numpy as np
import pytest

from taciturn.datasets.checksums import copy_of, load, same_bytes, same_table, text
from taciturn.errors import InvalidInput

NUMBERS = "1, ä\n".encode()


def zipped(data, *names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, data)
    return out.getvalue()


def tarred(data, *names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        NUMBERS,
        gzip.compress(NUMBERS, mtime=0),
        zipped(NUMBERS, "readme.txt", "set/a.data"),
        gzip.compress(tarred(NUMBERS, "set/readme.txt", "set/a.data"), mtime=0),
        gzip.compress(tarred(zipped(NUMBERS, "__MACOSX/._a.data", "a.data"), "set/a.data.zip"), mtime=0),
        zipped(gzip.compress(NUMBERS, mtime=0), "a.data.gz"),
    ],
)
@pytest.mark.parametrize("name", ["a.data", "a.data.gz", "mine"])
def test_text_is_found_however_it_is_packed_and_called(data, name, tmp_path):
    """Once, twice, or not at all; the first bytes decide. Without a member's name nothing is unpacked."""
    (tmp_path / name).write_bytes(data)
    assert text(tmp_path / name, "a.data") == "1, ä\n"
    assert load(tmp_path / name) == data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (gzip.compress(b"1, 2" * 99, mtime=0)[:-9], "cannot be read or unpacked"),
        (b"\x1f\x8bnot gzip", "cannot be read or unpacked"),
        (b"PK\x03\x04not zip", "cannot be read or unpacked"),
        (tarred(b"1, 2" * 999, "a.data")[:900], "cannot be read or unpacked"),
        (b"\xff\xfe", "cannot be read as text"),
        (None, "cannot be read or unpacked"),
        (zipped(NUMBERS, "b.data"), "it holds 0 files called a.data, not one"),
        (zipped(NUMBERS, "old/a.data", "new/a.data"), "it holds 2 files called a.data, not one"),
    ],
)
def test_what_cannot_be_read_is_refused(data, why, tmp_path):
    """Cut short, not what it begins as, not UTF-8, not there, without the file or with two of them."""
    if data is not None:
        (tmp_path / "a.data").write_bytes(data)
    with pytest.raises(InvalidInput, match=why):
        text(tmp_path / "a.data", "a.data")


@pytest.mark.parametrize("method", ["md5", "sha256"])
def test_one_bit_is_noticed(method):
    """The right bytes come back; one bit turned, or one byte more, is refused by what it is."""
    checksum = hashlib.new(method, NUMBERS).hexdigest()
    assert same_bytes(NUMBERS, len(NUMBERS), checksum) == NUMBERS
    with pytest.raises(InvalidInput, match=rf"its (MD5|SHA-256) checksum is \w+, not {checksum}"):
        same_bytes(bytes([NUMBERS[0] ^ 1]) + NUMBERS[1:], len(NUMBERS), checksum)
    with pytest.raises(InvalidInput, match="it has 7 bytes, not 6"):
        same_bytes(NUMBERS + b" ", len(NUMBERS), checksum)


def test_a_table_is_known_by_its_numbers():
    """Whatever kind of integers hold them; rows are counted first, and their order matters."""
    table = np.arange(6).reshape(3, 2)
    checksum = hashlib.sha256(table.astype("<i8").tobytes()).hexdigest()
    same_table(table, 3, checksum)
    same_table(table.astype(np.int16), 3, checksum)
    with pytest.raises(InvalidInput, match="it has 2 rows, not 3"):
        same_table(table[1:], 3, checksum)
    with pytest.raises(InvalidInput, match=f"its numbers' SHA-256 checksum is .*, not {checksum}"):
        same_table(table[::-1], 3, checksum)


def test_a_refusal_names_the_file_and_a_fresh_copy(tmp_path):
    """Other errors pass."""
    with (
        pytest.raises(
            InvalidInput, match=re.escape(f"{tmp_path} is not the set: no. Put a fresh copy of u in its place.")
        ),
        copy_of("the set", tmp_path, "u"),
    ):
        raise InvalidInput("no.")
    with pytest.raises(KeyError), copy_of("the set", tmp_path, "u"):
        raise KeyError
