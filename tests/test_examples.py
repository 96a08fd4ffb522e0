"""The examples are short, run unchanged, and print what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ARGUMENTS = {"customers": ["--rows", "80000"], "served_clicks": ["--rows", "5000"]}
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


def test_the_demo_ends_with_a_command_that_opens_the_dashboard(tmp_path):
    """Run the command that it prints, on a free port: the stream's page is there for the token that it prints."""
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    script = str(ROOT / "examples" / "served_clicks.py")
    done = subprocess.run(
        [sys.executable, script, "--rows", "2000"],
        check=True,
        cwd=tmp_path,
        env=here,
        capture_output=True,
        text=True,
        timeout=180,
    )
    command, url, token = (line.split("  ")[-1].strip() for line in done.stdout.strip().splitlines()[-3:])
    arguments = shlex.split(command)[1:]
    code = "import sys; from taciturn.cli.app import main; sys.argv = ['taciturn', *sys.argv[1:]]; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--port", "0", "--json"],
        cwd=tmp_path,
        env=here,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            text = ""
            while "}" not in text:
                text += server.stdout.readline()
            address = json.loads(text)["address"]
            with httpx.Client(base_url=address, timeout=30.0, transport=httpx.HTTPTransport(retries=6)) as browser:
                page = browser.get("/login", params={"to": urlsplit(url).path})
                csrf = re.search(r'name="csrf" value="([^"]*)"', page.text)
                form = {"csrf": csrf[1], "to": urlsplit(url).path, "token": token.split()[0]}
                answer = browser.post("/login", data=form, follow_redirects=True)
            assert (answer.status_code, answer.url.path) == (200, "/streams/ad-clicks")
            assert "Rows at the last release" in answer.text
        finally:
            server.terminate()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(example):
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert f"python examples/{example.name}" in text


def test_there_are_eight():
    assert len(EXAMPLES) >= 8
