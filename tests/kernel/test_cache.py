"""Cached numbers are those that were computed, to the last bit, or are computed again."""

import math
import os

import pytest

from taciturn.kernel.cache import cached, sources

ROWS = ((1.0 / 3.0, math.pi, 5e-324), (), (-0.0, math.inf))


class Finder:
    """Says what it was told to, and counts how often it was asked."""

    def __init__(self, rows=ROWS):
        self.rows, self.asked = rows, 0

    def __call__(self):
        self.asked += 1
        return self.rows


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "taciturn" / "fits"


def ask(version="these sources", name="numbers", rows=ROWS, valid=lambda rows: True):
    """What is returned, and whether it had to be found."""
    finder = Finder(rows)
    return cached(name, version, finder, valid), finder.asked


def test_a_result_is_cached_to_the_last_bit():
    assert ask() == (ROWS, 1)
    result, asked = ask(rows=())
    assert (result, asked) == (ROWS, 0)
    assert math.copysign(1.0, result[2][0]) == -1.0


@pytest.mark.parametrize("changed", [{"version": "others"}, {"name": "other numbers"}])
def test_a_result_of_another_version_is_computed_again(changed):
    ask()
    assert ask(**changed, rows=((2.0,),)) == (((2.0,),), 1)


def test_a_new_version_takes_the_place_of_the_old(folder):
    ask("version 1")
    ask("version 2")
    assert os.listdir(folder) == ["numbers"]
    assert ask("version 2") == (ROWS, 0)


@pytest.mark.parametrize("place", range(-1, 190, 10))
@pytest.mark.parametrize("how", ["cut", "bit", "twice"])
def test_a_damaged_file_is_detected_and_replaced(folder, place, how):
    ask()
    whole = (folder / "numbers").read_bytes()
    place %= len(whole)
    damaged = {
        "cut": whole[:place],
        "bit": whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :],
        "twice": whole[: place + 1] + whole,
    }[how]
    (folder / "numbers").write_bytes(damaged)
    assert ask() == (ROWS, 1)
    assert (folder / "numbers").read_bytes() == whole


def test_a_file_of_another_name_is_rejected(folder):
    ask(name="others", rows=((2.0,),))
    (folder / "others").rename(folder / "numbers")
    assert ask() == (ROWS, 1)


def test_an_invalid_result_is_computed_again():
    ask()
    assert ask(rows=((2.0,),), valid=lambda rows: rows != ROWS) == (((2.0,),), 1)
    assert ask(valid=lambda rows: rows != ROWS) == (((2.0,),), 0)


def test_bytes_that_are_no_text_are_not_read(folder):
    ask()
    (folder / "numbers").write_bytes(b"\xff\xfe")
    assert ask() == (ROWS, 1)


def test_without_a_cache_folder_results_are_computed_every_time(tmp_path, monkeypatch):
    """A file stands where the folder would be; then there is no home at all."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [ask(), ask()] == [(ROWS, 1), (ROWS, 1)]
    monkeypatch.setenv("XDG_CACHE_HOME", "~nobody-has-this-name/cache")
    assert [ask(), ask()] == [(ROWS, 1), (ROWS, 1)]


def test_an_error_of_the_search_is_not_hidden():
    def fails():
        raise OSError("the search itself")

    with pytest.raises(OSError, match="the search itself"):
        cached("numbers", "these sources", fails, bool)


def test_the_stamp_is_of_all_sources(tmp_path):
    """Of their names and contents."""
    (tmp_path / "a.py").write_text("1")
    seen = {sources.__wrapped__(tmp_path)}
    for name, text in (("a.py", "2"), ("b.py", "2"), ("b.py", "3"), ("c.txt", "3")):
        (tmp_path / name).write_text(text)
        seen.add(sources.__wrapped__(tmp_path))
    assert len(seen) == 4  # a text is no source
