"""The tutorial and its notebook are one text; its code and commands run, and print what both show."""

import contextlib
import doctest
import io
import json
import os
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs_build.notebook import NOTEBOOK, PAGE, notebook, written
from taciturn.cli.app import app

LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def printed(source, namespace):
    """What a cell prints: Python in the namespace of the notebook, or, after an exclamation mark, a command."""
    if source.startswith("!"):
        words = shlex.split(source[1:].replace("\\\n", " "))
        assert words[0] == "taciturn"
        done = CliRunner().invoke(app, words[1:], env={"COLUMNS": "100"}, catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(source, str(NOTEBOOK), "exec"), namespace)
    return output.getvalue()


def stale(cells):
    """The first cell of which the output is not the one that is stored, and that output; or nothing."""
    namespace = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            stored = "".join(line for output in cell["outputs"] for line in output["text"])
            result = printed(source, namespace)
            if not doctest.OutputChecker().check_output(stored.rstrip() + "\n", result.rstrip() + "\n", LOOSE):
                return source, result
    return None


@pytest.fixture
def here(tmp_path):
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_the_notebook_is_made_of_the_page():
    """If it fails: python docs_build/notebook.py."""
    assert NOTEBOOK.read_text(encoding="utf-8") == written(PAGE.read_text(encoding="utf-8"))


def test_the_notebook_runs_and_no_output_is_stale(here):
    """All of its cells, one after the other, on the table in full; noise is secret, so numbers are shown rounded."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert stale(cells) is None
    commands = ["".join(cell["source"]) for cell in cells if "".join(cell["source"]).startswith("!")]
    assert {command.split()[1] for command in commands} >= {"init", "check", "learn", "predict"}


def test_a_stale_output_is_found(here):
    python = "```python\na = 3\nprint(a)\n```\n\n``` { .text .prints }\n3\n```\n\n"
    page = f"{python}```console\n$ taciturn --version\n...\n```\n"
    assert stale(notebook(page)["cells"]) is None
    source, result = stale(notebook(page.replace("\n3\n", "\n4\n"))["cells"])
    assert (source, result) == ("a = 3\nprint(a)", "3\n")
    assert stale(notebook(page.replace("...\n", "taciturn 99\n"))["cells"]) is not None


def test_links_lead_to_the_pages():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    words = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    pages = [part.split(")")[0].split("#")[0] for part in words.split("](")[1:]]
    assert pages
    assert all((NOTEBOOK.parent / page).exists() for page in pages)
