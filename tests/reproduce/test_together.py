"""All experiments under one command: one report that is always true, resumption, and refusals that stop nobody else."""

import json
import sys
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from taciturn import InvalidInput
from taciturn.cli.app import app
from taciturn.reproduce import REGISTRY, Entry, parts, runs
from taciturn.reproduce.bars import bar, bar_over
from taciturn.reproduce.experiment import Experiment, reproduce
from taciturn.reproduce.parts import every_row, read_part, settings_of
from taciturn.reproduce.together import reproduce_all

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path id="a" d="M0 0"/></svg>'


def fraction(name, denominator):
    """A tiny experiment: a fraction of each seed."""

    def show(rows):
        table = Table("seed", "part", title=f"The table of {name}")
        for row in rows:
            table.add_row(str(row["seed"]), f"{row['part']:.3f}", style="" if row["proven"] else "red")
        return [table, f"A note on {name}."]

    return Experiment(
        name,
        lambda quick, seeds: [{"seed": seed, "quick": quick} for seed in range(1, (seeds or 3) + 1)],
        lambda settings: {"part": settings["seed"] / denominator},
        lambda plan, results: [s | r | {"proven": s["seed"] < 3} for s, r in zip(plan, results, strict=True)],
        show,
        lambda rows, path: path.write_text(SVG),
        title=f"The title of {name}",
        caption=f"The caption of {name}",
        paper=f"What the paper says of {name}",
    )


@pytest.fixture
def console():
    return Console(file=StringIO(), width=100)


@pytest.fixture
def asked(monkeypatch):
    """The registry holds two tiny experiments; runs happen here, and an interrupt comes after `patience` of them."""
    asked = SimpleNamespace(runs=[], patience=-1)

    def everywhere(run, plan):
        for place, settings in enumerate(plan):
            if asked.patience == 0:
                raise KeyboardInterrupt
            asked.patience -= 1
            asked.runs.append(settings["seed"])
            yield place, run(settings)

    monkeypatch.setattr(runs, "_everywhere", everywhere)
    for name in list(REGISTRY):
        monkeypatch.delitem(REGISTRY, name)
    for name, denominator in (("halves", 2), ("thirds", 3)):
        monkeypatch.setitem(REGISTRY, name, Entry(f"tiny_{name}", f"The summary of {name}."))
        module = SimpleNamespace(EXPERIMENT=fraction(name, denominator))
        monkeypatch.setitem(sys.modules, f"taciturn.reproduce.tiny_{name}", module)
    return asked


def test_all_are_reproduced_and_stand_in_one_report(asked, console, tmp_path):
    outcome = reproduce_all(tmp_path, console, seeds=2)
    assert [row["part"] for row in outcome.rows["thirds"]] == [1 / 3, 2 / 3]
    assert outcome.refused == {}
    page = (tmp_path / "report.html").read_text()
    for name in ("halves", "thirds"):
        for kind in ("title", "caption", "table"):
            assert f"The {kind} of {name}" in page
        assert f"A note on {name}." in page
        assert f"What the paper says of {name}" in page
        assert f'id="{name}-a"' in page
        assert f"taciturn reproduce {name} --seeds 2" in page
        assert (tmp_path / f"{name}.csv").exists()
    assert page.index("The title of halves") < page.index("The title of thirds")
    assert "Not in this folder" not in page


def test_a_single_experiment_rewrites_the_report_with_what_the_folder_holds(asked, console, tmp_path):
    """Never more than that, and what was there before stays."""
    page = tmp_path / "report.html"
    reproduce(fraction("thirds", 3), tmp_path, console)
    assert "The table of thirds" in page.read_text()
    assert "The table of halves" not in page.read_text()
    assert "halves: The summary of halves." in page.read_text()
    reproduce(fraction("halves", 2), tmp_path, console, quick=True)
    assert "The title of halves (quick)" in page.read_text()
    assert "The table of thirds" in page.read_text()
    assert "Not in this folder" not in page.read_text()


def test_new_rows_take_the_place_of_old_ones(asked, console, tmp_path):
    for seeds, broken in ((2, False), (3, True)):
        reproduce(fraction("halves", 2), tmp_path, console, seeds=seeds)
        page = (tmp_path / "report.html").read_text()
        assert page.count("The table of halves") == 1
        assert ("1.500" in page) == broken
        assert ("BROKEN" in page) == broken
        assert ('class="bad"' in page) == broken


def test_an_interrupted_whole_goes_on_where_it_was(asked, tmp_path):
    """In the middle of the second experiment: the report has the first, and nothing is run twice."""
    asked.patience = 4
    command = ["reproduce", "all", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 130
    assert "the same command goes on" in done.stderr
    assert "The table of halves" in (tmp_path / "report.html").read_text()
    asked.patience = -1
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0
    assert asked.runs == [1, 2, 3, 1, 2, 3]
    assert "1 of 3 runs are kept" in again.stderr
    assert "A note on thirds." in again.stdout
    assert CliRunner().invoke(app, [*command, "--fresh"]).exit_code == 0
    assert asked.runs == [1, 2, 3] * 4


def test_for_machines_there_is_one_object(asked, tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path), "--json", "--quick", "--seeds", "1"])
    found = json.loads(done.stdout)
    assert list(found) == ["halves", "thirds"]
    assert found["halves"] == [{"seed": 1, "quick": True, "part": 0.5, "proven": True}]


def test_a_refusal_is_said_and_stops_no_other(asked, monkeypatch, tmp_path):
    """For want of data, say; the exit status tells."""

    def refused(settings):
        raise InvalidInput("halves.csv is not here. Put it there.")

    broken = replace(fraction("halves", 2), run=refused)
    monkeypatch.setitem(sys.modules, "taciturn.reproduce.tiny_halves", SimpleNamespace(EXPERIMENT=broken))
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "halves was left out: halves.csv is not here. Put it there." in done.stderr
    assert "A note on thirds." in done.stdout
    assert "halves: The summary of halves." in (tmp_path / "report.html").read_text()


def test_the_report_says_how_long_all_runs_took_whenever_they_did(asked, console, monkeypatch, tmp_path):
    ticks = iter(range(0, 1000, 5))
    monkeypatch.setattr(runs, "process_time", lambda: next(ticks))
    asked.patience = 1
    with pytest.raises(KeyboardInterrupt):
        reproduce(fraction("halves", 2), tmp_path, console)
    asked.patience = -1
    reproduce(fraction("halves", 2), tmp_path, console)
    part = read_part(tmp_path, "halves")
    assert (part.runs, part.seconds) == (3, 15.0)
    assert "15 s" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"shown": 1}', "\x00"])
def test_a_damaged_part_is_left_out(asked, console, tmp_path, damage):
    reproduce(fraction("halves", 2), tmp_path, console)
    (tmp_path / "parts" / "halves.json").write_text(damage)
    reproduce(fraction("thirds", 3), tmp_path, console)
    page = (tmp_path / "report.html").read_text()
    assert "The table of halves" not in page
    assert "The table of thirds" in page


def test_a_part_is_read_as_it_was_kept(asked, console, tmp_path):
    """But for a picture that someone took away."""
    reproduce(fraction("halves", 2), tmp_path, console)
    part = read_part(tmp_path, "halves")
    assert part.picture == SVG
    assert part.everything.heads == ["seed", "part", "proven"]
    (tmp_path / "halves.svg").unlink()
    assert read_part(tmp_path, "halves").picture == ""


def test_settings_are_the_values_taken_and_many_are_cut_short():
    plan = [{"seed": seed, "grid": [0.1, seed], "epsilon": None} for seed in range(1, 21)]
    found = dict(settings_of(plan))
    assert found["seed"] == "1, 2, 3, …, 20 (20 values)"
    assert found["grid"] == "0.1, 1; 0.1, 2; 0.1, 3; …; 0.1, 20 (20 values)"
    assert found["epsilon"] == "–"


def test_a_page_holds_no_more_rows_than_it_can(monkeypatch):
    monkeypatch.setattr(parts, "_ROWS", 3)
    assert every_row([{"t": t} for t in range(4)]) is None
    assert len(every_row([{"t": t} for t in range(3)]).rows) == 3
    assert every_row([]) is None


def test_the_whole_is_done_when_every_run_that_was_left_is(console):
    """Runs count for what they are worth, not for one each."""
    with bar_over({"halves": 2, "thirds": 1}, {"halves": 0.5, "thirds": 9.0}, console) as whole:
        (task,) = whole.progress.tasks
        for name, count, done in (("halves", 2, 1.0), ("thirds", 1, 10.0)):
            with bar(name, count, console, whole) as advance:
                for _ in range(count):
                    advance()
            assert task.completed == done
        assert task.finished
    assert "100%" in console.file.getvalue()


def test_no_bar_is_shown_where_nothing_is_left(console):
    with bar_over({"halves": 0}, {"halves": 0.5}, console):
        pass
    assert "left" not in console.file.getvalue()
