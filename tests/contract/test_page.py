"""The page on contracts is true: its commands print what it shows, and its file is the one that is drafted."""

import doctest
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taciturn.cli.app import app
from taciturn.contract.contract import contract_of, read_contract
from taciturn.errors import TaciturnError

PAGE = Path(__file__).parents[2] / "docs" / "contract.md"
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def printed(command):
    """What a command line prints, its error included."""
    done = CliRunner().invoke(app, shlex.split(command)[1:], env={"COLUMNS": "120"})
    return done.output + (f"taciturn: {done.exception}\n" if isinstance(done.exception, TaciturnError) else "")


def check(text):
    for part in text.split("$ ")[1:]:
        command, _, expected = part.partition("\n")
        result = printed(command)
        assert doctest.OutputChecker().check_output(expected, result, LOOSE), f"{command}\n{result}"


@pytest.fixture
def here(tmp_path):
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_blocks_run_one_after_the_other_and_print_what_is_shown(here):
    namespace, kinds = {}, []
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        kinds.append(block["kind"])
        if block["kind"] == "console":
            check(block["text"])
        elif block["kind"] == "python":
            exec(block["text"], namespace)
        else:
            shown = contract_of(tomllib.loads(block["text"]))
            assert (shown.digest == read_contract("taciturn.toml").digest) == (shown.bandit is None)
    assert namespace["contract"].digest == read_contract("taciturn.toml").digest
    assert kinds.count("console") >= 4


def test_a_block_that_shows_something_else_is_caught(here):
    (here / "a.csv").write_text("age,bought\n")
    check("$ taciturn init a.csv --yes\nWrote taciturn.toml. ...\n")
    with pytest.raises(AssertionError, match="taciturn check"):
        check("$ taciturn check taciturn.toml\nWhat is promised ...\n")
