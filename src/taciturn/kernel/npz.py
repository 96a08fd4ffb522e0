"""Files of NumPy arrays as `numpy.savez` writes them, and `numpy.load` reads them; fast for a few small arrays.

A state is written at every commit of a service. `numpy.savez` takes about 80 µs for each array, nearly all of it in
`zipfile`, which supports archives that are compressed, encrypted, or larger than 4 GB. Here an archive is put together
from the three records of an uncompressed one (PKWARE, *.ZIP File Format Specification* 6.3.10, sections 4.3.7, 4.3.12
and 4.3.16).

Threads of a service read states at the same time. `numpy.load` parses the header of each array by `ast.literal_eval`,
and before Python 3.12.8 a thread that parses while another one does can fail with "SystemError: AST constructor
recursion depth mismatch" (CPython's gh-106905). The headers of plain arrays have one form, which is read here instead.

A file that is read may be damaged, or made to do damage: nothing is decompressed, and no more is read than the file
has, however often its directory lists it.
"""

from __future__ import annotations

import os
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_LARGE = 2**24  # bytes from which on the time of zipfile does not count, and what is written is not put together first
_PLAIN = "biufcSU"  # kinds of arrays whose type is told by its name
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION, _UTF8, _STORED, _TIME, _DATE = 20, 0x800, 0, 0, 33  # dated 1980-01-01, as zipfile does
_OWNER_MAY_READ = 0o600 << 16
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)"
    rb"\{'descr': '(?P<dtype>[<>|][biufcSU][1-9]\d*)', 'fortran_order': (?P<fortran>True|False), "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n",
    re.DOTALL,
)


def write_npz(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name. Slow twin: `numpy.savez`.

    >>> file = BytesIO()
    >>> write_npz(file, {"one": np.arange(3.0), "two/b": np.array("text")})
    >>> with np.load(BytesIO(file.getvalue())) as made:
    ...     {name: made[name].tolist() for name in made.files}
    {'one': [0.0, 1.0, 2.0], 'two/b': 'text'}
    """
    size = sum(array.nbytes for array in arrays.values())
    if len(arrays) >= 2**16 or size > _LARGE or any(array.dtype.kind not in _PLAIN for array in arrays.values()):
        np.savez(file, **arrays)  # type: ignore[arg-type]
        return
    parts: list[bytes] = []
    entries: list[bytes] = []
    place = 0
    for key, array in arrays.items():
        name = f"{key}.npy".encode()
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        content = _header(array.dtype.str, array.shape, fortran) + array.tobytes("F" if fortran else "C")
        known = (_UTF8, _STORED, _TIME, _DATE, zlib.crc32(content), len(content), len(content), len(name), 0)
        head = _LOCAL.pack(b"PK\3\4", _VERSION, *known) + name
        entries += [
            _CENTRAL.pack(b"PK\1\2", 3 << 8 | _VERSION, _VERSION, *known, 0, 0, 0, _OWNER_MAY_READ, place),
            name,
        ]
        parts += [head, content]
        place += len(head) + len(content)
    listed = b"".join(entries)
    end = _END.pack(b"PK\5\6", 0, 0, len(arrays), len(arrays), len(listed), place, 0)
    file.write(b"".join([*parts, listed, end]))


def read_npz(file: BinaryIO) -> dict[str, NDArray[Any]]:
    """All arrays of a file, by name; no pickled or compressed ones. Slow twin: `numpy.load`.

    A file that is damaged is told by an `OSError`, `ValueError`, `TypeError`, `RuntimeError` or `zipfile.BadZipFile`.

    >>> file = BytesIO()
    >>> np.savez(file, one=np.arange(3.0), two=np.array("text"))
    >>> {name: array.tolist() for name, array in read_npz(file).items()}
    {'one': [0.0, 1.0, 2.0], 'two': 'text'}
    """
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("arrays were expected as they are, and these are compressed.")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("the directory of this archive lists more than there is.")
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if len(set(names)) < len(names):
            raise ValueError("two arrays of this archive have one name.")
        return {name: _array(archive.read(entry)) for name, entry in zip(names, entries, strict=True)}


def _array(content: bytes) -> NDArray[Any]:
    header = _HEADER.match(content)
    if header is None or header.end() != 10 + int.from_bytes(header["length"], "little"):
        return _by_numpy(content)
    shape = tuple(int(side) for side in header["shape"].split(b",") if side.strip())
    flat = np.frombuffer(bytearray(content[header.end() :]), np.dtype(header["dtype"].decode()))
    return flat.reshape(shape, order="F" if header["fortran"] == b"True" else "C")


def _by_numpy(content: bytes) -> NDArray[Any]:
    """An array of another type, or of another version of the format."""
    try:
        return np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    except (SyntaxError, tokenize.TokenError, OverflowError, MemoryError) as error:
        raise ValueError("the header of this array is damaged.") from error


@lru_cache(maxsize=1024)
def _header(dtype: str, shape: tuple[int, ...], fortran: bool) -> bytes:
    """What comes before the numbers in a file of an array."""
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return file.getvalue()
