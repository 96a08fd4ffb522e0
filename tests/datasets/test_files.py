"""Data files are searched for, downloaded atomically, unpacked whatever they are called, and compared by checksum."""

import gzip
import hashlib
import io
import re
import sys
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
from email.message import Message
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from taciturn.datasets.files import cache, copy_of, download, find, folders, load, same_bytes, same_table, text
from taciturn.errors import InvalidInput, TaciturnError

NOWHERE = "https://data.invalid/numbers.csv"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty folder of one's own, and a cache that does not exist yet."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("TACITURN_DATA", str(own))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return own, tmp_path / "cache" / "taciturn"


@pytest.fixture
def offline(monkeypatch):
    def reject(url, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", reject)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture
def served(tmp_path):
    """A folder, and the address under which a local server offers it."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def answer(data: bytes, length: int | None):
    """A response that announces `length` bytes and sends `data`."""
    response = io.BytesIO(data)
    response.headers = Message()
    if length is not None:
        response.headers["Content-Length"] = str(length)
    return response


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_the_chosen_folder_comes_before_the_cache_and_any_name_will_do(places, offline):
    """Own folder first, then the cache; in each, the names in their order; a folder is no file."""
    own, cached = places
    cached.mkdir(parents=True)
    (own / "numbers.csv").mkdir()
    look = partial(find, "numbers.csv", NOWHERE, "numbers.csv.gz")
    for path in (cached / "numbers.csv.gz", cached / "numbers.csv", own / "numbers.csv.gz"):
        path.touch()
        assert look() == path


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_variable_is_an_unset_one(value, places, monkeypatch):
    """`TACITURN_DATA=` does not mean the working directory."""
    monkeypatch.setenv("TACITURN_DATA", "") if value == "" else monkeypatch.delenv("TACITURN_DATA")
    assert folders() == [places[1]]


def test_the_cache_is_the_user_s(monkeypatch, tmp_path):
    """`XDG_CACHE_HOME`, else `LOCALAPPDATA`, else `~/.cache`; home is written out."""
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache() == tmp_path / "taciturn"
    monkeypatch.delenv("LOCALAPPDATA")
    assert cache() == Path.home() / ".cache" / "taciturn"


def test_a_download_is_cached_and_not_repeated(places, served, monkeypatch, capsys):
    """Over HTTP into the cache; the second time nothing is downloaded, and no other file is left there."""
    folder, address = served
    (folder / "numbers.csv").write_bytes(b"1, 2\n" * 50_000)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    path = find("numbers.csv", f"{address}/numbers.csv")
    assert path == places[1] / "numbers.csv"
    assert path.read_bytes() == b"1, 2\n" * 50_000
    assert list(places[1].iterdir()) == [path]
    assert capsys.readouterr().err == f"Downloading {address}/numbers.csv into {places[1]}\n"
    (folder / "numbers.csv").unlink()
    assert find("numbers.csv", f"{address}/numbers.csv") == path


@pytest.mark.parametrize("rich", [True, False])
def test_a_terminal_with_rich_shows_a_bar(rich, tmp_path, monkeypatch):
    """Without `rich`, one line is all."""
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich", None)
    source = tmp_path / "source"
    source.write_bytes(b"12" * 1000)
    monkeypatch.setattr(sys, "stderr", Screen())
    assert download(source.as_uri(), tmp_path / "new" / "copy").read_bytes() == b"12" * 1000
    shown = sys.stderr.getvalue()
    assert shown.startswith(f"Downloading {source.as_uri()} into {tmp_path / 'new'}\n")
    assert ("100%" in shown) == rich


def test_offline_says_what_to_download_and_where_to_put_it(places, offline):
    """The error names the file, its address and both folders; it is a TaciturnError."""
    with pytest.raises(InvalidInput) as caught:
        find("numbers.csv", NOWHERE)
    assert isinstance(caught.value, TaciturnError)
    assert str(caught.value) == (
        "numbers.csv is not on this machine and could not be downloaded (<urlopen error no network>). "
        f"Download {NOWHERE} and put it into {places[0]} or {places[1]}; "
        "the environment variable TACITURN_DATA names another folder."
    )


def test_a_cache_that_cannot_be_written_is_rejected_alike(places):
    """A file where the cache should be."""
    places[1].parent.touch()
    with pytest.raises(InvalidInput, match=r"numbers\.csv is not on this machine and could not be downloaded"):
        find("numbers.csv", NOWHERE)


@pytest.mark.parametrize(("length", "whole"), [(10, True), (None, True), (11, False)])
def test_a_download_cut_short_leaves_nothing_behind(length, whole, places, monkeypatch):
    """Ten bytes of eleven are rejected; of an unannounced number, cached."""
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: answer(b"0123456789", length))
    if whole:
        assert find("numbers.csv", NOWHERE).read_bytes() == b"0123456789"
        return
    with pytest.raises(InvalidInput, match="ended after 10 of 11 bytes"):
        find("numbers.csv", NOWHERE)
    assert list(places[1].iterdir()) == []


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
def test_what_cannot_be_read_is_rejected(data, why, tmp_path):
    """Cut short, not what it begins as, not UTF-8, not there, without the file or with two of them."""
    if data is not None:
        (tmp_path / "a.data").write_bytes(data)
    with pytest.raises(InvalidInput, match=why):
        text(tmp_path / "a.data", "a.data")


@pytest.mark.parametrize("method", ["md5", "sha256"])
def test_one_bit_is_noticed(method):
    """The right bytes come back; one bit turned, or one byte more, is rejected with the reason."""
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


def test_an_error_names_the_file_and_a_fresh_copy(tmp_path):
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
