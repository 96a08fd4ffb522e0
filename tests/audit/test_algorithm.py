"""The paper's algorithms, audited on their tight problems: ours hold, the printed ones do not."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from typing import get_args

import pytest
from rich.console import Console
from typer.testing import CliRunner

from taciturn import InvalidInput, Privacy
from taciturn.audit import Audit, audit, distinguish, tight_pair, tight_private
from taciturn.audit.algorithm import Game
from taciturn.audit.pairs import Algorithm
from taciturn.audit.verdict import claimed_mu_of, game_of
from taciturn.cli import audit as audit_cli
from taciturn.cli.app import app
from taciturn.cli.output import audit_table
from taciturn.kernel.accounting.gdp import mu_of
from taciturn.kernel.stream.protocols import Calibration

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
KEYS = [
    "algorithm",
    "calibration",
    "claimed_epsilon",
    "claimed_delta",
    "claimed_mu",
    "audited_mu",
    "interval",
    "verdict",
]


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *arguments], env={"COLUMNS": "80"})


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_exact_noise_holds(algorithm):
    """In every game: each place, all relations, an adversary; and the claim is reached, to what 300 trials know."""
    report = audit(algorithm, BUDGET, rounds=12, trials=300)
    relations = (
        ("replace", "zero-out") if algorithm in ("private_sum", "linucb", "ewoo") else ("replace", "zero-out", "label")
    )
    assert report.verdict == "holds"
    assert {(game.neighbours, game.changed, game.adaptive) for game in report.games} == {
        ("replace", "first", True),
        *((n, place, False) for n in relations for place in ("first", "middle", "last")),
    }
    assert report.worst.finding.trials == 300
    assert [game["rounds"] for game in report.as_data()["games"]] == [12] * (3 * len(relations) + 1)
    least = 0.0 if algorithm == "ewoo" else 0.8  # so few selections cannot reach epsilon
    assert least <= report.worst.finding.mu / report.worst.finding.claimed_mu < 1.2


@pytest.mark.parametrize("algorithm", [name for name in get_args(Algorithm) if name != "ewoo"])
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_the_tight_pair_is_tight(algorithm, neighbours):
    """The first example that counts moves the transcript by 99.9 % of what is claimed or more, and not beyond."""
    private = tight_private(algorithm, BUDGET, 50, neighbours=neighbours)
    assert 0.999 < game_of(private, tight_pair(private)).apart / claimed_mu_of(private) <= 1.0


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("pigd", ["--ridge", ".01", "--calibration", "paper-printed"]),
        ("pigd", ["--ridge", ".001", "--calibration", "paper-proven"]),
        ("pgiga", ["--ridge", ".1", "--calibration", "paper-printed"]),
        ("pol", ["--ridge", ".01", "--calibration", "paper-proven"]),
        ("private_sum", ["--epsilon", ".01", "--calibration", "paper-printed"]),
        ("pqftl", ["--epsilon", ".01", "--calibration", "paper-printed"]),
    ],
)
def test_the_papers_slips_are_refuted(algorithm, settings):
    """Exit status 1, against the promise of the paper's theorem."""
    done = run(algorithm, *settings, "--rounds", "20", "--trials", "200", "--json")
    result = json.loads(done.stdout)
    assert done.exit_code == 1
    assert list(result)[:3] == ["algorithm", "calibration", "claimed_epsilon"]
    assert set(KEYS) <= set(result)
    assert result["verdict"] == "refuted"
    assert result["claimed_mu"] == mu_of(result["claimed_epsilon"], result["claimed_delta"])
    assert result["interval"][0] > result["claimed_mu"]


@pytest.mark.parametrize(("algorithm", "calibration"), [("pgiga", "paper-proven"), ("pqftl", "paper-proven")])
def test_what_the_paper_wastes_is_not_refuted(algorithm, calibration):
    """A true claim holds, however little was proven."""
    assert audit(algorithm, BUDGET, rounds=8, trials=200, calibration=calibration).verdict == "holds"


def test_the_command_for_people(tmp_path):
    """A table, a sentence, a picture, and exit status 0; every run gives the same."""
    arguments = "private_sum", "--rounds", "8", "--trials", "200"
    done = run(*arguments, "--plot", str(tmp_path / "worlds.png"))
    assert done.exit_code == 0
    assert "The claim holds" in done.stdout
    assert "first, adaptive, 8 rounds" in done.stdout
    assert (tmp_path / "worlds.png").stat().st_size > 10_000
    assert run(*arguments).stdout == done.stdout


@pytest.mark.parametrize(("file", "words"), [("none/a.png", "folder"), ("a.xyz", "no format"), (".", "folder")])
def test_a_picture_that_cannot_be_saved_is_rejected_first(tmp_path, monkeypatch, file, words):
    """Before any game."""
    monkeypatch.setattr("taciturn.audit.audit", lambda *_, **__: pytest.fail("there was an audit"))
    done = run("pigd", "--plot", str(tmp_path / file))
    assert isinstance(done.exception, InvalidInput)
    assert words in str(done.exception)


def test_the_report_comes_before_the_picture(tmp_path, monkeypatch):
    """Whatever happens to that."""

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("taciturn.reproduce.plots.audit_histograms", full_disk)
    done = run("private_sum", "--rounds", "2", "--trials", "100", "--plot", str(tmp_path / "a.png"))
    assert isinstance(done.exception, OSError)
    assert "The claim holds" in done.stdout


def test_the_table_fits_a_narrow_terminal():
    """Of 80 columns, however long the numbers are: every interval is complete."""
    private = tight_private("pigd", BUDGET, 2)
    result = replace(
        distinguish(private, tight_pair(private), 100), trials=20_000, mu=1.23e-5, interval=(1.23e-5, 4.56e5)
    )
    result = replace(result, shift=1.23e5, spread=1.23e-5)
    games = Game("zero-out", "middle", False, 200, result), Game("replace", "first", True, 20, result)
    console = Console(width=80, file=io.StringIO())
    console.print(audit_table(Audit("pigd", "paper-printed", 200, 1e-6, games).as_data()))
    printed = console.file.getvalue()
    assert printed.count("1.23e-05–4.56e+05") == 2
    assert "…" not in printed
    assert "20 rounds" in " ".join(printed.split())


def test_a_refutation_for_people():
    """It says what was shown."""
    done = run("pigd", "--ridge", ".01", "--calibration", "paper-printed", "--rounds", "8", "--trials", "200")
    assert done.exit_code == 1
    assert "REFUTED: the two worlds are distinguished" in done.stdout


def test_an_audit_that_says_little_says_so():
    """For people and for machines."""
    arguments = "ewoo", "--rounds", "4", "--trials", "100"
    assert "The audit is inconclusive" in run(*arguments).stdout
    result = json.loads(run(*arguments, "--json").stdout)
    assert (result["says_little"], result["verdict"], result["claimed_mu"]) == (True, "holds", mu_of(1.0, 1e-6))


def test_the_command_takes_what_the_library_does():
    """The command names algorithms and calibrations itself, so that others start at once."""
    assert get_args(audit_cli.Name) == get_args(Algorithm)
    assert get_args(audit_cli.Calibrations) == get_args(Calibration)


@pytest.mark.parametrize("algorithm", ["pigd", "ewoo"])
def test_too_large_an_audit_is_rejected_first(algorithm, monkeypatch):
    """Before anything is built; it says how much is not too large."""
    monkeypatch.setattr("taciturn.audit.algorithm.tight_private", lambda *_, **__: pytest.fail("something was built"))
    with pytest.raises(InvalidInput, match="200,000,000 rows, and at most 10,000,000 are supported"):
        audit(algorithm, BUDGET, trials=10**6)


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_told_at_a_terminal(terminal, monkeypatch, capsys):
    """A line for each game, and nowhere else a word."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    audit("private_sum", BUDGET, rounds=2, trials=100, before_each=audit_cli._tell)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == (7 if terminal else 0)
    assert told[-1:] == (["game 7 of 7: replace, first, adaptive …"] if terminal else [])


def test_usage():
    """Unknown names are the parser's business; what the paper does not have, and too few trials, are rejected."""
    assert run("sgd").exit_code == 2
    assert isinstance(run("pftrl", "--calibration", "paper-printed").exception, InvalidInput)
    with pytest.raises(InvalidInput, match="trials"):
        audit("pigd", BUDGET, trials=10)
    with pytest.raises(InvalidInput, match="algorithm must be one of"):
        audit("sgd", BUDGET)
