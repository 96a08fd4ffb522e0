"""The runner: saved runs, resumption, one process per core, one page for all experiments, errors that skip only one."""

import importlib
import json
import os
import sys
from dataclasses import replace
from io import StringIO
from operator import itemgetter
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from taciturn import InvalidInput, datasets
from taciturn.cli.app import app
from taciturn.reproduce import REGISTRY, Entry, page, runner
from taciturn.reproduce.page import every_row, read_part, settings_of
from taciturn.reproduce.runner import (
    Experiment,
    SavedRuns,
    overall_progress,
    progress_bar,
    reproduce,
    reproduce_all,
    run_all,
)

PLAN = [{"seed": seed, "epsilon": 0.1} for seed in (1, 2, 3)]
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
def ran(monkeypatch):
    """Runs happen in this process, and their seeds are listed; an interrupt comes after `patience` of them."""
    ran = SimpleNamespace(seeds=[], patience=-1)

    def in_this_process(run, plan):
        for place, settings in enumerate(plan):
            if ran.patience == 0:
                raise KeyboardInterrupt
            ran.patience -= 1
            ran.seeds.append(settings["seed"])
            yield place, run(settings)

    monkeypatch.setattr(runner, "in_processes", in_this_process)
    return ran


@pytest.fixture
def tiny(ran, monkeypatch):
    """The registry holds two tiny experiments."""
    for name in list(REGISTRY):
        monkeypatch.delitem(REGISTRY, name)
    for name, denominator in (("halves", 2), ("thirds", 3)):
        monkeypatch.setitem(REGISTRY, name, Entry(f"tiny_{name}", f"The summary of {name}."))
        module = SimpleNamespace(EXPERIMENT=fraction(name, denominator))
        monkeypatch.setitem(sys.modules, f"taciturn.reproduce.tiny_{name}", module)
    return ran


def test_all_are_reproduced_and_stand_in_one_report(tiny, console, tmp_path):
    outcome = reproduce_all(tmp_path, console, seeds=2)
    assert [row["part"] for row in outcome.rows["thirds"]] == [1 / 3, 2 / 3]
    assert outcome.skipped == {}
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


def test_a_single_experiment_rewrites_the_report_with_what_the_folder_holds(tiny, console, tmp_path):
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


def test_new_rows_take_the_place_of_old_ones(tiny, console, tmp_path):
    for seeds, broken in ((2, False), (3, True)):
        reproduce(fraction("halves", 2), tmp_path, console, seeds=seeds)
        page = (tmp_path / "report.html").read_text()
        assert page.count("The table of halves") == 1
        assert ("1.500" in page) == broken
        assert ("BROKEN" in page) == broken
        assert ('class="bad"' in page) == broken


def test_an_interrupted_command_resumes_where_it_stopped(tiny, tmp_path):
    """In the middle of the second experiment: the report has the first, and nothing is run twice."""
    tiny.patience = 4
    command = ["reproduce", "all", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 130
    assert "the same command resumes" in done.stderr
    assert "The table of halves" in (tmp_path / "report.html").read_text()
    tiny.patience = -1
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0
    assert tiny.seeds == [1, 2, 3, 1, 2, 3]
    assert "1 of 3 runs were saved" in again.stderr
    assert "A note on thirds." in again.stdout
    assert CliRunner().invoke(app, [*command, "--fresh"]).exit_code == 0
    assert tiny.seeds == [1, 2, 3] * 4


def test_for_machines_there_is_one_object(tiny, tmp_path):
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path), "--json", "--quick", "--seeds", "1"])
    result = json.loads(done.stdout)
    assert list(result) == ["halves", "thirds"]
    assert result["halves"] == [{"seed": 1, "quick": True, "part": 0.5, "proven": True}]


def test_an_error_is_shown_and_skips_one_experiment(tiny, monkeypatch, tmp_path):
    """For lack of data, say; the exit status is 2."""

    def fails(settings):
        raise InvalidInput("halves.csv is not here. Put it there.")

    broken = replace(fraction("halves", 2), run=fails)
    monkeypatch.setitem(sys.modules, "taciturn.reproduce.tiny_halves", SimpleNamespace(EXPERIMENT=broken))
    done = CliRunner().invoke(app, ["reproduce", "all", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "halves was skipped: halves.csv is not here. Put it there." in done.stderr
    assert "A note on thirds." in done.stdout
    assert "halves: The summary of halves." in (tmp_path / "report.html").read_text()


def test_the_page_has_the_time_of_all_runs_in_any_session(tiny, console, monkeypatch, tmp_path):
    ticks = iter(range(0, 1000, 5))
    monkeypatch.setattr(runner, "process_time", lambda: next(ticks))
    tiny.patience = 1
    with pytest.raises(KeyboardInterrupt):
        reproduce(fraction("halves", 2), tmp_path, console)
    tiny.patience = -1
    reproduce(fraction("halves", 2), tmp_path, console)
    part = read_part(tmp_path, "halves")
    assert (part.runs, part.seconds) == (3, 15.0)
    assert "15 s" in (tmp_path / "report.html").read_text()


# ---- parts of the page in a folder ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"shown": 1}', "\x00"])
def test_a_damaged_part_is_left_out(tiny, console, tmp_path, damage):
    reproduce(fraction("halves", 2), tmp_path, console)
    (tmp_path / "parts" / "halves.json").write_text(damage)
    reproduce(fraction("thirds", 3), tmp_path, console)
    text = (tmp_path / "report.html").read_text()
    assert "The table of halves" not in text
    assert "The table of thirds" in text


def test_a_part_is_read_as_it_was_saved(tiny, console, tmp_path):
    """Without its picture if that file was removed."""
    reproduce(fraction("halves", 2), tmp_path, console)
    part = read_part(tmp_path, "halves")
    assert part.picture == SVG
    assert part.everything.heads == ["seed", "part", "proven"]
    (tmp_path / "halves.svg").unlink()
    assert read_part(tmp_path, "halves").picture == ""


def test_settings_are_the_values_taken_and_many_are_cut_short():
    plan = [{"seed": seed, "grid": [0.1, seed], "epsilon": None} for seed in range(1, 21)]
    result = dict(settings_of(plan))
    assert result["seed"] == "1, 2, 3, …, 20 (20 values)"
    assert result["grid"] == "0.1, 1; 0.1, 2; 0.1, 3; …; 0.1, 20 (20 values)"
    assert result["epsilon"] == "–"


def test_a_page_holds_no_more_rows_than_it_can(monkeypatch):
    monkeypatch.setattr(page, "MAX_ROWS", 3)
    assert every_row([{"t": t} for t in range(4)]) is None
    assert len(every_row([{"t": t} for t in range(3)]).rows) == 3
    assert every_row([]) is None


# ---- saved runs and processes --------------------------------------------------------------------------------------


def half(settings):
    return {"half": settings["seed"] / 2}


def test_an_interrupted_experiment_resumes_where_it_stopped(tmp_path, console, ran):
    """What was finished is not run again, and results come in the order of the plan."""
    ran.patience = 2
    with pytest.raises(KeyboardInterrupt):
        run_all("halves", half, PLAN, tmp_path, console)
    assert ran.seeds == [1, 2]
    ran.patience = -1
    assert run_all("halves", half, [PLAN[2], *PLAN[:2]], tmp_path, console) == [{"half": n} for n in (1.5, 0.5, 1.0)]
    assert ran.seeds == [1, 2, 3]
    assert "2 of 3 runs were saved" in console.file.getvalue()


def test_fresh_runs_everything_again_and_replaces_saved_runs(tmp_path, console, ran):
    run_all("halves", half, PLAN, tmp_path, console)
    run_all("halves", lambda _: {"half": 0}, PLAN, tmp_path, console, fresh=True)
    assert ran.seeds == [1, 2, 3, 1, 2, 3]
    assert run_all("halves", half, PLAN, tmp_path, console) == [{"half": 0}] * 3


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"result": {"half": 7}}', "\x00\x01"])
def test_a_damaged_file_is_run_again(tmp_path, console, ran, damage):
    run_all("halves", half, PLAN, tmp_path, console)
    SavedRuns("halves", tmp_path).path(PLAN[1]).write_text(damage)
    assert run_all("halves", half, PLAN, tmp_path, console)[1] == {"half": 1.0}
    assert ran.seeds == [1, 2, 3, 2]


def test_runs_of_other_settings_versions_and_experiments_are_others(tmp_path, monkeypatch):
    saved = SavedRuns("halves", tmp_path)
    saved.write(PLAN[0], {"half": 0.5})
    assert saved.read(PLAN[0]) == {"half": 0.5}
    assert saved.read(dict(reversed(PLAN[0].items()))) == {"half": 0.5}
    assert saved.read(PLAN[0] | {"epsilon": 0.2}) is None
    assert SavedRuns("thirds", tmp_path).read(PLAN[0]) is None
    monkeypatch.setattr(runner, "__version__", "0.0.1")
    assert saved.read(PLAN[0]) is None


def test_a_saved_run_has_its_settings_and_no_other_file_is_left(tmp_path):
    SavedRuns("halves", tmp_path).write(PLAN[0], {"half": 0.5})
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["settings"] == PLAN[0]


def test_workers_use_one_thread_each_and_this_process_keeps_its_own(monkeypatch):
    """The variable is set before a worker starts, hence before it imports NumPy."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    names = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"]
    assert sorted(runner.in_processes(os.getenv, names)) == [(0, "1"), (1, "1"), (2, "1")]
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_an_error_in_a_worker_is_the_experiment_s(tmp_path, console):
    with pytest.raises(KeyError, match="half"):
        run_all("halves", itemgetter("half"), PLAN[:1], tmp_path, console)  # workers cannot import this file
    assert list(tmp_path.iterdir()) == []


def test_missing_data_are_one_error_before_any_run(tiny, console, monkeypatch, tmp_path):
    """They are loaded once, by the command itself, and not at all where every run is saved."""
    looked = []

    def loader():
        looked.append("missing")
        raise InvalidInput("halves.csv is not here. Put it there.")

    monkeypatch.setattr(datasets, "halves", loader, raising=False)
    monkeypatch.setitem(REGISTRY, "halves", replace(REGISTRY["halves"], data=("halves",)))
    with pytest.raises(InvalidInput, match=r"halves\.csv is not here"):
        reproduce(fraction("halves", 2), tmp_path, console)
    assert (tiny.seeds, looked, console.file.getvalue()) == ([], ["missing"], "")
    monkeypatch.setattr(datasets, "halves", lambda: looked.append("there"))
    for _ in range(2):
        reproduce(fraction("halves", 2), tmp_path, console)
    assert (tiny.seeds, looked) == ([1, 2, 3], ["missing", "there"])


def test_the_list_has_the_data_and_the_minutes_of_each():
    shown = CliRunner().invoke(app, ["reproduce", "--list"], env={"COLUMNS": "160"})
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    for name, entry in REGISTRY.items():
        (line,) = (line for line in lines if line.startswith(f"│ {name} "))
        assert f" {', '.join(entry.data) or 'none'} " in line
        assert f" {entry.minutes:g} " in line


def test_the_registry_names_the_data_sets_that_modules_load():
    from_files = {"adult", "bike", "california_housing", "covertype", "flights", "open_bandit", "year_prediction"}
    for module in {entry.module for entry in REGISTRY.values()}:
        names = {name for entry in REGISTRY.values() if entry.module == module for name in entry.data}
        assert names == from_files & vars(importlib.import_module(f"taciturn.reproduce.{module}")).keys()


# ---- progress bars -------------------------------------------------------------------------------------------------


def test_the_overall_bar_is_full_when_every_run_is_done(console):
    """Runs count by their weights."""
    with overall_progress({"halves": 2, "thirds": 1}, {"halves": 0.5, "thirds": 9.0}, console) as overall:
        (task,) = overall.progress.tasks
        for name, count, done in (("halves", 2, 1.0), ("thirds", 1, 10.0)):
            with progress_bar(name, count, console, overall) as advance:
                for _ in range(count):
                    advance()
            assert task.completed == done
        assert task.finished
    assert "100%" in console.file.getvalue()


def test_without_a_terminal_a_line_is_printed_at_each_tenth(console):
    with progress_bar("halves", 40, console) as advance:
        for _ in range(40):
            advance()
    lines = console.file.getvalue().splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"halves: {share}%" for share in range(10, 101, 10)]
    assert lines[-1] == "halves: 100%"
    on_terminal = Console(file=StringIO(), width=100, force_terminal=True)
    with progress_bar("halves", 2, on_terminal) as advance:
        advance()
    assert "1/2" in on_terminal.file.getvalue()
    assert "50%" not in on_terminal.file.getvalue()


def test_no_bar_is_shown_where_no_run_is_left(console):
    with overall_progress({"halves": 0}, {"halves": 0.5}, console):
        pass
    assert "left" not in console.file.getvalue()
