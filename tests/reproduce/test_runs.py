"""Runs are kept one by one, reused, and carried out by processes that leave the cores to each other."""

import json
import os
from io import StringIO
from operator import itemgetter
from types import SimpleNamespace

import pytest
from rich.console import Console

from taciturn.reproduce import runs
from taciturn.reproduce.runs import Kept, carry_out

PLAN = [{"seed": seed, "epsilon": 0.1} for seed in (1, 2, 3)]


@pytest.fixture
def console():
    return Console(file=StringIO(), width=100)


@pytest.fixture
def asked(monkeypatch):
    """Runs happen in this process, and are counted; an interrupt comes after `patience` of them."""
    asked = SimpleNamespace(seeds=[], patience=-1)

    def everywhere(run, plan):
        for place, settings in enumerate(plan):
            if asked.patience == 0:
                raise KeyboardInterrupt
            asked.patience -= 1
            asked.seeds.append(settings["seed"])
            yield place, run(settings)

    monkeypatch.setattr(runs, "_everywhere", everywhere)
    return asked


def half(settings):
    return {"half": settings["seed"] / 2}


def test_an_interrupted_experiment_goes_on_where_it_was(tmp_path, console, asked):
    """What was finished is not run again, and results come in the order of the plan."""
    asked.patience = 2
    with pytest.raises(KeyboardInterrupt):
        carry_out("halves", half, PLAN, tmp_path, console)
    assert asked.seeds == [1, 2]
    asked.patience = -1
    assert carry_out("halves", half, [PLAN[2], *PLAN[:2]], tmp_path, console) == [{"half": n} for n in (1.5, 0.5, 1.0)]
    assert asked.seeds == [1, 2, 3]
    assert "2 of 3 runs are kept" in console.file.getvalue()


def test_fresh_runs_everything_again_and_replaces_what_was_kept(tmp_path, console, asked):
    carry_out("halves", half, PLAN, tmp_path, console)
    carry_out("halves", lambda _: {"half": 0}, PLAN, tmp_path, console, fresh=True)
    assert asked.seeds == [1, 2, 3, 1, 2, 3]
    assert carry_out("halves", half, PLAN, tmp_path, console) == [{"half": 0}] * 3


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"result": {"half": 7}}', "\x00\x01"])
def test_a_damaged_file_is_run_again(tmp_path, console, asked, damage):
    carry_out("halves", half, PLAN, tmp_path, console)
    Kept("halves", tmp_path).path(PLAN[1]).write_text(damage)
    assert carry_out("halves", half, PLAN, tmp_path, console)[1] == {"half": 1.0}
    assert asked.seeds == [1, 2, 3, 2]


def test_runs_of_other_settings_versions_and_experiments_are_others(tmp_path, monkeypatch):
    kept = Kept("halves", tmp_path)
    kept.write(PLAN[0], {"half": 0.5})
    assert kept.read(PLAN[0]) == {"half": 0.5}
    assert kept.read(dict(reversed(PLAN[0].items()))) == {"half": 0.5}
    assert kept.read(PLAN[0] | {"epsilon": 0.2}) is None
    assert Kept("thirds", tmp_path).read(PLAN[0]) is None
    monkeypatch.setattr(runs, "__version__", "0.0.1")
    assert kept.read(PLAN[0]) is None


def test_a_kept_run_says_what_it_was_and_nothing_else_lies_about(tmp_path):
    Kept("halves", tmp_path).write(PLAN[0], {"half": 0.5})
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["settings"] == PLAN[0]


def test_workers_use_one_thread_each_and_this_process_keeps_its_own(monkeypatch):
    """The variable is set before a worker starts, hence before it imports NumPy."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    names = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"]
    assert sorted(runs._everywhere(os.getenv, names)) == [(0, "1"), (1, "1"), (2, "1")]
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_an_error_in_a_worker_is_the_experiment_s(tmp_path, console):
    with pytest.raises(KeyError, match="half"):
        carry_out("halves", itemgetter("half"), PLAN[:1], tmp_path, console)  # workers cannot import this file
    assert list(tmp_path.iterdir()) == []
