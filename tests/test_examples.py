"""The examples are short, run unchanged, and print what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ARGUMENTS = {"customers": ["--rows", "80000"]}
"""Of the examples that are shortened here."""

DATA_IS_MISSING = "is not on this machine and could not be downloaded"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_names_its_guarantee(example, tmp_path):
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example), *ARGUMENTS.get(example.stem, [])],
        check=False,
        cwd=tmp_path,
        env=here,
        capture_output=True,
        text=True,
        timeout=180,
    )
    if DATA_IS_MISSING in done.stderr:
        pytest.skip(f"{example.stem} needs a data set: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert "differentially private" in done.stdout


def test_the_demo_shows_every_learner_and_saves_a_picture(tmp_path):
    """With a seed it says that it is a simulation: a seeded run never claims to protect anyone."""
    command = [sys.executable, str(ROOT / "examples" / "ad_clicks.py"), "--impressions", "2000", "--seed", "1"]
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=180)
    for words in ("epsilon = 0.1", "epsilon = 10", "not private", "constant", "simulation: not private"):
        assert words in " ".join(done.stdout.lower().split())
    assert (tmp_path / "reproduced" / "ad_clicks.png").stat().st_size > 10_000


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(example):
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert f"python examples/{example.name}" in text


def test_there_are_seven():
    assert len(EXAMPLES) >= 7
