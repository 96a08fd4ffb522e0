"""What the benchmarks share: turns, ratios, tables and records."""

import json
from argparse import Namespace

import pytest
from rich.console import Console
from rich.table import Table

from benching import FOLDER, ROOT, loaded

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def turns():
    yield from loaded("turns")


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


def test_a_rate_is_one_over_the_time_of_a_value(turns):
    """Seconds of 5·10⁻⁹ to 2·10⁻⁸ are 50 to 200 million a second, the lower end first."""
    table = turns.tables(turns.Turns({"one": [5e-9, 1e-8, 2e-8]}), {}, "µs a value", rate=True)[0]
    assert [next(iter(column.cells)) for column in table.columns] == ["one", "100", "50", "200"]
    assert table.columns[1].header == "million a second"


def test_records_keep_the_tables_that_are_shown(turns, tmp_path, capsys):
    table = Table("who", "µs", title="times")
    table.add_row("taciturn", "0.5")
    chosen = Namespace(json=True, quick=True, out=tmp_path)
    turns.save("some", {"unit": "s"}, chosen, QUIET, table, "words")
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "some.json").read_text())
    assert record["tables"] == [{"title": "times", "columns": ["who", "µs"], "rows": [["taciturn", "0.5"]]}]


def test_benchmarks_that_make_runs_are_those_there_are():
    """`make bench` forgets none: a script that can be run has a `main`."""
    made = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("BENCHMARKS"))
    scripts = {path.stem for path in FOLDER.glob("*.py") if "def main(" in path.read_text()}
    assert set(made.split(":=")[1].split()) == scripts
