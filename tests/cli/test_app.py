"""The command prints what the library says, for people and for machines; errors are one sentence."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from taciturn import Privacy, __version__
from taciturn.calibration import errata, paper
from taciturn.cli.app import app
from taciturn.cli.output import errata_table
from taciturn.reproduce import REGISTRY, regret, runner


def run(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})


def test_privacy_as_json_has_mu_to_six_digits():
    """(1, 1e-6) allows mu = 0.236704."""
    answer = json.loads(run("privacy", "--epsilon", "1", "--delta", "1e-6", "--json").stdout)
    assert round(answer["mu"], 6) == 0.236704
    assert answer["noise_multiplier"] == pytest.approx(1 / answer["mu"])


def test_privacy_compares_the_paper_with_the_exact_noise():
    """At T = K the paper's rows are what its functions say, for the parameters that claim the same budget."""
    answer = json.loads(run("privacy", "--epsilon", "1", "--delta", "1e-6", "--releases", "100000", "--json").stdout)
    for reading, row in answer["paper"].items():
        assert row["noise_multiplier"] == pytest.approx(
            paper.noise_multiplier(Privacy(1 / 3, 5e-7), 100_000, reading), rel=1e-9
        )
    assert answer["paper"]["proven"]["delivered_epsilon"] < 1.0 < answer["paper"]["printed"]["delivered_epsilon"]
    assert answer["paper"]["proven"]["noise_multiplier"] / answer["noise_multiplier"] == pytest.approx(8.2, abs=0.1)


def test_privacy_for_people_names_both():
    """The table has our row and the paper's two."""
    text = run("privacy", "--epsilon", "1", "--delta", "1e-6", "--releases", "1000").stdout
    assert "taciturn, exactly" in text
    assert "0.236704" in text
    assert "the paper" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "-1", "--delta", "1e-6"], "epsilon must be positive"),
        (["--epsilon", "1", "--delta", "1"], "delta must lie"),
        (["--epsilon", "nan", "--delta", "1e-6"], "epsilon must be positive"),
    ],
)
def test_bad_budgets_are_one_sentence_and_exit_2(arguments, words):
    """Through the real entry point: no traceback, exit status 2."""
    code = "from taciturn.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "privacy", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_version_and_help():
    """--version prints it; --help names the commands."""
    assert run("--version").stdout.strip() == f"taciturn {__version__}"
    assert "privacy" in run("--help").stdout
    assert "errata" in run("--help").stdout


def test_errata_as_json_is_the_whole_grid():
    """Every row of the library's table, with its column names."""
    rows = json.loads(run("errata", "--json").stdout)
    assert rows == [asdict(row) for row in errata.table()]
    assert list(rows[0])[:6] == ["algorithm", "reading", "T", "epsilon", "delta", "alpha"]


def test_errata_for_people_says_what_is_broken():
    """One setting by default; broken claims are marked, true ones are not."""
    lines = run("errata").stdout.splitlines()
    [lost_alpha] = [line for line in lines if "PIGD" in line and "proven" in line and " 0.01 " in line]
    assert "36.9" in lost_alpha
    assert "BROKEN" in lost_alpha
    [right] = [line for line in lines if "POCP" in line and "proven" in line]
    assert "holds" in right
    assert "BROKEN" not in right
    assert sum("BROKEN" in line for line in lines) == 10
    assert lines[0].startswith("T = 100,000")


def test_errata_all_shows_every_setting():
    """A table for each horizon and pair of parameters."""
    text = run("errata", "--all").stdout
    assert text.count("T = ") == 30
    assert "T = 500,000, the paper's parameters epsilon = 20, delta = 0.01" in text


def test_broken_rows_are_red():
    """In a terminal that has colours."""
    console = Console(force_terminal=True, color_system="standard", width=100)
    with console.capture() as capture:
        console.print(errata_table(errata.table([1_000], [1.0], [1e-6])))
    for line in capture.get().splitlines():
        assert ("BROKEN" in line) == ("\x1b[31m" in line)


@pytest.fixture
def short(monkeypatch):
    """The table of regrets from a few short runs, in this process."""
    monkeypatch.setattr(runner, "in_processes", lambda run, plan: ((i, run(s)) for i, s in enumerate(plan)))
    plan = [s for s in regret.plan(seeds=1, horizon=50) if s["method"] in ("FTRL, BLT", "predicting 0")]
    monkeypatch.setattr(regret, "EXPERIMENT", replace(regret.EXPERIMENT, plan=lambda *_: plan))


def test_reproduce_prints_the_table_writes_it_and_resumes(short, tmp_path):
    """JSON goes to the output and the rest to the side; the second time nothing is run."""
    done = run("reproduce", "regret", "--out", str(tmp_path), "--json")
    rows = json.loads(done.stdout)
    assert rows == json.loads((tmp_path / "regret.json").read_text())
    assert [row["method"] for row in rows] == ["FTRL, BLT"] * 4 + ["predicting 0"] * 2
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert (tmp_path / "regret.svg").exists()
    assert "saved before" not in done.stderr
    again = run("reproduce", "regret", "--out", str(tmp_path))
    assert "All 6 runs were saved before" in again.stderr
    assert "FTRL, BLT" in again.stdout
    assert "not private" in again.stdout


def test_an_interrupted_experiment_says_how_to_resume(monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "reproduce", interrupted)
    done = run("reproduce", "regret", "--out", str(tmp_path))
    assert done.exit_code == 130
    assert "the same command resumes" in done.stderr


def test_reproduce_names_its_experiments_and_rejects_no_seeds(tmp_path):
    """Every entry of the registry is a command with a summary."""
    text = " ".join(run("reproduce", "--help").stdout.split())
    for name, entry in REGISTRY.items():
        assert name in text
        assert entry.summary.split()[0] in text
    assert run("reproduce", "regret", "--seeds", "0", "--out", str(tmp_path)).exit_code == 2


def test_help_needs_nothing_heavy():
    """Neither NumPy nor SciPy nor Numba is loaded to print it."""
    code = "import sys, taciturn.cli.app; print(sorted({'numpy', 'scipy', 'numba', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


CRASHES = """
import sys
from taciturn import audit
from taciturn.cli import app as cli
def crash(*_, **__):
    raise ZeroDivisionError("no such\\nthing")
audit.audit = crash
cli.main()
"""


def test_a_crash_is_one_sentence_and_exit_3():
    """It is neither a verdict nor an error of the user; a traceback is shown on request."""
    for debug in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", CRASHES, "audit", "pigd"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"TACITURN_DEBUG": debug},
        )
        assert (done.returncode, done.stdout) == (3, "")
        last = done.stderr.splitlines()[-1]
        assert last.startswith("taciturn: internal error: ZeroDivisionError in audit.py, line ")
        assert "no such" not in last  # what the error says may be a value of the data
        assert ("Traceback" in done.stderr) == ("no such" in done.stderr) == bool(debug)


@pytest.mark.parametrize(
    "arguments", [["errata", "--json"], ["errata", "--all"], ["privacy", "--epsilon=1", "--delta=.1"]]
)
def test_a_broken_pipe_is_no_verdict(arguments):
    """A closed pipe: exit status 3, whether that is noticed by typer, by rich, or at the end."""
    read, write = os.pipe()
    os.close(read)
    code = "from taciturn.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.parametrize(
    ("features", "expected"), [("linear", "linear"), ("20", "20 random features"), ("random", "2,000 random features")]
)
def test_plan_says_what_is_learnt_from(features, expected):
    """The columns, or random features of them."""
    stated = ["plan", "--epsilon", "1", "--delta", "1e-6", "--dimension", "10", "--horizon", "500000", "--json"]
    assert json.loads(run(*stated, "--features", features).stdout)["features"].startswith(expected)
