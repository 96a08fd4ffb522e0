"""What the benchmarks share: turns, ratios, tables and records."""

import importlib
import json
from argparse import Namespace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def turns():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("turns")


class Clock:
    """A clock that work moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def spend(self, seconds):
        self.now += seconds
        return seconds


def test_everyone_takes_turns_and_the_first_is_not_counted(turns):
    clock, order = Clock(), []

    def spends(name, seconds):
        return lambda: (order.append(name), clock.spend(seconds))[1]

    contenders = {
        "a": turns.Contender(spends("a", 8.0), 4, clock=clock),
        "b": turns.Contender(spends("b", 3.0), 1, score=lambda made: 10.0 * made, clock=clock),
    }
    found = turns.take_turns(contenders, 2, QUIET)
    assert order == ["a", "b"] * 3
    assert found.seconds == {"a": [2.0, 2.0], "b": [3.0, 3.0]}
    assert found.scores == {"b": 30.0}


def test_ratios_are_of_a_turn_and_wishes_of_the_median(turns):
    seconds = {"ours": [1.0, 2.0, 4.0], "noise": [1.0, 1.0, 1.0], "peer, slow": [9.0] * 3, "peer, fast": [6.0] * 3}
    assert turns.Ratio("peer*", "ours").of(seconds) == [6.0, 3.0, 1.5]
    assert turns.Ratio("peer, slow", ("ours", "noise")).of(seconds) == [4.5, 3.0, 1.8]
    for wish, met in (({"at_least": 3.0}, True), ({"at_least": 3.1}, False), ({"at_most": 3.0}, True)):
        assert turns.Ratio("peer*", "ours", **wish).met([6.0, 3.0, 1.5]) == met
    assert turns.Ratio("a", "b", at_least=2.5).wanted == "≥ 2.5"
    record = turns.Turns(seconds).ratios({"peer / ours": turns.Ratio("peer*", "ours", at_most=2.0)})["peer / ours"]
    assert record == {"each": [6.0, 3.0, 1.5], "median": 3.0, "wanted": "≤ 2", "met": False}


def test_records_keep_the_tables_that_are_shown(turns, tmp_path, capsys):
    table = Table("who", "µs", title="times")
    table.add_row("tacit", "0.5")
    chosen = Namespace(json=True, quick=True, out=tmp_path)
    turns.save("some", {"unit": "s"}, chosen, QUIET, table, "words")
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "some.json").read_text())
    assert record["tables"] == [{"title": "times", "columns": ["who", "µs"], "rows": [["tacit", "0.5"]]}]


def test_the_stages_of_a_stream_add_up(turns):
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "benchmarks")
        stages = importlib.import_module("stages")
    parts = stages.parts({"whole": 10.0, "noise given": 6.0, "noise": 3.0, "bits": 1.0, "examples": 2.0})
    assert parts == {"bits": 1.0, "sampling": 2.0, "examples": 2.0, "learning": 4.0, "the rest": 1.0}
    private, rows = stages.cases(0.005)["PIGD, d=54"]
    assert stages.portions(private, len(rows)) == [(1, 500)]
    drawn = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(private.calibrated), "noise_for", lambda *a: drawn.append(a) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stages.given_noise(private, rows)
    assert drawn[0][2:] == (1, 500)
    work = stages.given_noise(private, rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tacit.mechanisms.releases.secret_bits", lambda: 1 / 0)
        work()  # draws nothing
        with pytest.raises(ZeroDivisionError):
            stages.noise(private, len(rows))()


def test_benchmarks_that_make_runs_are_those_there_are():
    """`make bench` forgets none: a script that can be run has a `main`."""
    made = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("BENCHMARKS"))
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def main(" in path.read_text()}
    assert set(made.split(":=")[1].split()) == scripts
