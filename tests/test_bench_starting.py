"""`benchmarks/starting.py`: limits are by the clock, caches are what they are said to be."""

import os

import pytest

from benching import loaded, quick


@pytest.fixture(scope="module")
def starting():
    yield from loaded("starting")


def test_limits_are_by_the_clock_and_of_the_median(starting):
    slow, fast = starting.Spent(0.6, 0.1), starting.Spent(0.4, 0.9)
    limits = starting.judged({"import taciturn": [slow, fast, fast], "taciturn --help": [slow, slow, fast]})
    assert limits["import taciturn"] == {"median": 0.4, "wanted": "< 0.5", "met": True}
    assert not limits["taciturn --help"]["met"]
    assert "pigd, later" not in limits  # not measured, not judged


def test_everyone_with_a_limit_is_measured(starting):
    measured = {*starting.processes(), *(starting.EMPTY.format(recipe) for recipe in starting.RECIPES)}
    assert set(starting.LIMITS) <= measured


def test_the_first_turn_fills_the_cache_and_is_not_counted(starting, monkeypatch):
    caches = []
    monkeypatch.setattr(starting, "process", lambda arguments, cache: caches.append(cache) or starting.Spent(1.0, 1.0))
    found = starting.with_a_cache(2, starting.Console(quiet=True))
    assert {len(each) for each in found.values()} == {2}
    assert len(caches) == 3 * len(found)
    assert len(set(caches)) == 1


def test_an_empty_cache_is_new_every_time(starting, monkeypatch):
    caches = []

    def process(arguments, cache):
        assert os.listdir(cache) == []
        caches.append(cache)
        return starting.Spent(1.0, 1.0)

    monkeypatch.setattr(starting, "process", process)
    starting.with_an_empty_cache(starting.RECIPES * 3, starting.Console(quiet=True))
    assert len(set(caches)) == 6


def test_a_process_is_timed_from_its_beginning(starting, tmp_path):
    """It waits, which costs no processor, and learns where the cache is."""
    caches = "os.environ['NUMBA_CACHE_DIR'] == os.environ['XDG_CACHE_HOME']"
    code = f"import os, time; time.sleep(0.3); assert {caches} == {str(tmp_path)!r}"
    spent = starting.process(("-c", code), str(tmp_path))
    assert spent.wall > 0.3
    assert spent.processor < spent.wall


def test_a_process_may_keep_its_bytecode(starting, tmp_path, monkeypatch):
    """Whatever the caller may not."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    starting.process(("-c", "import sys; assert not sys.dont_write_bytecode"), str(tmp_path))


@pytest.mark.slow
def test_starting_runs(tmp_path):
    report = quick("starting", tmp_path, timeout=900)
    used = {name: min(each) for name, each in report["seconds of the processor"].items()}
    assert used["pigd, with an empty cache"] > used["pigd, later"] > used["import taciturn"] > 0.0
