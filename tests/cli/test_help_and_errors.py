"""Help, JSON, errors and completion of the command: all subcommands follow the same conventions."""

import os
import re
import resource
import subprocess
import sys

import pytest
from typer.main import get_command

from taciturn.cli.app import PANELS, app


def leaves(command, name="taciturn"):
    """Every command by its full name, those of groups included."""
    children = getattr(command, "commands", None)
    if not children:
        return {name: command}
    return {full: leaf for child, sub in children.items() for full, leaf in leaves(sub, f"{name} {child}").items()}


COMMANDS = leaves(get_command(app))


def taciturn(*arguments, code="from taciturn.cli.app import main; main()", **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "100", "TACITURN_DEBUG": ""} | environment,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_of_itself(name):
    """And the example's options are its own."""
    [example] = re.findall(rf"Example: ({re.escape(name)}(?: .*)?)", " ".join(COMMANDS[name].help.split()))
    known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert set(re.findall(r"(?<= )--[\w-]+", example)) <= known


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_speaks_json(name):
    assert "--json" in {option for parameter in COMMANDS[name].params for option in parameter.opts}


def test_help_is_a_tour():
    """Commands in the order of use, and a workflow at the end."""
    text = taciturn("--help").stdout
    places = [text.index(panel) for panel in PANELS]
    assert places == sorted(places)
    tour = text[text.index("From a file to a private model") :]
    steps = [tour.index(f"taciturn {step}") for step in ("init", "check", "learn", "predict")]
    assert steps == sorted(steps)


def test_no_arguments_show_the_help():
    assert taciturn().stdout.count("Usage: taciturn") == 1


def test_help_takes_less_than_a_third_of_a_second():
    """Of processor time, the best of five."""
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert taciturn("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan"], "taciturn: Missing option '--epsilon'. Try taciturn plan --help."),
        (["nothing"], "taciturn: No such command 'nothing'. Try taciturn --help."),
        (["check", "--jsno"], "taciturn: No such option: --jsno"),
        (["privacy", "--epsilon", "much", "--delta", "1"], "taciturn: Invalid value for '--epsilon'"),
        (
            ["check", "nowhere.toml"],
            "taciturn: nowhere.toml cannot be read: No such file or directory. Draft a contract",
        ),
        (["predict", "nowhere.json", "-"], "taciturn: nowhere.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_exit_2(arguments, words):
    done = taciturn(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(words)
    assert len(done.stderr.splitlines()) == 1


def test_debug_shows_where():
    """Before the command, or in the environment."""
    for done in (taciturn("--debug", "check", "nowhere.toml"), taciturn("check", "nowhere.toml", TACITURN_DEBUG="1")):
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("taciturn: nowhere.toml cannot be read")


INTERRUPTED = """
from taciturn import audit
from taciturn.cli import app as cli
def interrupt(*_, **__):
    raise KeyboardInterrupt
audit.audit = interrupt
cli.main()
"""


def test_an_interruption_is_exit_130_without_a_traceback():
    done = taciturn("audit", "pigd", code=INTERRUPTED)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("typed", "expected"), [("taciturn pl", "plan"), ("taciturn check --js", "--json")])
def test_shells_complete_commands_and_options(typed, expected):
    words = len(typed.split()) - 1
    done = taciturn(_TACITURN_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(words))
    assert expected in done.stdout.split()


def test_every_command_has_its_place_in_the_tour():
    """A new command must be listed in the order of use."""
    listed = [command.__name__ for commands in PANELS.values() for command in commands]
    assert {name.split()[1] for name in COMMANDS} == {*listed, "budget", "reproduce", "store", "token"}
