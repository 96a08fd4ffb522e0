"""Numbers kept on disk are the numbers that were found, to the last bit, or are found again."""

import math
import os

import pytest

from taciturn._util.cache import kept, sources

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


def ask(made_of="these sources", name="numbers", rows=ROWS, legal=lambda rows: True):
    """What is returned, and whether it had to be found."""
    finder = Finder(rows)
    return kept(name, made_of, finder, legal), finder.asked


def test_what_was_found_is_kept_to_the_last_bit():
    assert ask() == (ROWS, 1)
    found, asked = ask(rows=())
    assert (found, asked) == (ROWS, 0)
    assert math.copysign(1.0, found[2][0]) == -1.0


@pytest.mark.parametrize("changed", [{"made_of": "others"}, {"name": "other numbers"}])
def test_what_was_made_of_something_else_is_found_again(changed):
    ask()
    assert ask(**changed, rows=((2.0,),)) == (((2.0,),), 1)


def test_a_new_version_takes_the_place_of_the_old(folder):
    ask("version 1")
    ask("version 2")
    assert os.listdir(folder) == ["numbers"]
    assert ask("version 2") == (ROWS, 0)


@pytest.mark.parametrize("place", range(-1, 190, 10))
@pytest.mark.parametrize("how", ["cut", "bit", "twice"])
def test_a_damaged_file_is_found_out_and_replaced(folder, place, how):
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


def test_another_s_file_under_this_name_is_not_believed(folder):
    ask(name="others", rows=((2.0,),))
    (folder / "others").rename(folder / "numbers")
    assert ask() == (ROWS, 1)


def test_what_is_not_legal_is_found_again():
    ask()
    assert ask(rows=((2.0,),), legal=lambda rows: rows != ROWS) == (((2.0,),), 1)
    assert ask(legal=lambda rows: rows != ROWS) == (((2.0,),), 0)


def test_bytes_that_are_no_text_are_not_read(folder):
    ask()
    (folder / "numbers").write_bytes(b"\xff\xfe")
    assert ask() == (ROWS, 1)


def test_where_nothing_can_be_kept_it_is_found_every_time(tmp_path, monkeypatch):
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
        kept("numbers", "these sources", fails, bool)


def test_the_stamp_is_of_all_sources(tmp_path):
    """Of their names and contents."""
    (tmp_path / "a.py").write_text("1")
    seen = {sources.__wrapped__(tmp_path)}
    for name, text in (("a.py", "2"), ("b.py", "2"), ("b.py", "3"), ("c.txt", "3")):
        (tmp_path / name).write_text(text)
        seen.add(sources.__wrapped__(tmp_path))
    assert len(seen) == 4  # a text is no source
