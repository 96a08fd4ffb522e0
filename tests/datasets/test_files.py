"""Data files are found where they lie, downloaded whole or not at all, and asked for in plain words."""

import io
import sys
import threading
import urllib.error
import urllib.request
from email.message import Message
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from taciturn.datasets.files import cache, download, find, folders
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
    def refuse(url, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


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


def test_a_download_is_kept_and_not_repeated(places, served, monkeypatch, capsys):
    """Over HTTP into the cache; the second time nobody is asked, and nothing else is left there."""
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
    """The refusal names the file, its address and both folders; it is one of ours."""
    with pytest.raises(InvalidInput) as caught:
        find("numbers.csv", NOWHERE)
    assert isinstance(caught.value, TaciturnError)
    assert str(caught.value) == (
        "numbers.csv is not on this machine and could not be downloaded (<urlopen error no network>). "
        f"Download {NOWHERE} and put it into {places[0]} or {places[1]}; "
        "the environment variable TACITURN_DATA names a folder of your choice."
    )


def test_a_cache_that_cannot_be_written_is_refused_alike(places):
    """A file where the cache should be."""
    places[1].parent.touch()
    with pytest.raises(InvalidInput, match=r"numbers\.csv is not on this machine and could not be downloaded"):
        find("numbers.csv", NOWHERE)


@pytest.mark.parametrize(("length", "whole"), [(10, True), (None, True), (11, False)])
def test_a_download_cut_short_leaves_nothing_behind(length, whole, places, monkeypatch):
    """Ten bytes of eleven are refused; of an unannounced number, kept."""
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: answer(b"0123456789", length))
    if whole:
        assert find("numbers.csv", NOWHERE).read_bytes() == b"0123456789"
        return
    with pytest.raises(InvalidInput, match="ended after 10 of 11 bytes"):
        find("numbers.csv", NOWHERE)
    assert list(places[1].iterdir()) == []
