"""The command prints what the library says, for people and for machines, and refuses in one sentence."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tacit import Privacy, __version__
from tacit.accounting import paper
from tacit.cli import app


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def test_privacy_as_json_has_mu_to_six_digits():
    """(1, 1e-6) allows mu = 0.236704."""
    answer = json.loads(run("privacy", "--epsilon", "1", "--delta", "1e-6", "--json").stdout)
    assert round(answer["mu"], 6) == 0.236704
    assert answer["noise_multiplier"] == pytest.approx(1 / answer["mu"])


def test_privacy_sets_the_paper_beside_the_exact_noise():
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
    assert "tacit, exactly" in text and "0.236704" in text and "the paper" in text


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
    code = "from tacit.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "privacy", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr


def test_version_and_help():
    """--version prints it; --help names the commands."""
    assert run("--version").stdout.strip() == f"tacit {__version__}"
    assert "privacy" in run("--help").stdout
