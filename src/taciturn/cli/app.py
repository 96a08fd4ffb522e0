"""The `taciturn` command. It only asks the library and prints; no privacy arithmetic lives here."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Annotated, Any

try:
    import typer
except ImportError:  # pragma: no cover
    raise SystemExit("The taciturn command needs the extra `cli` (typer and rich): install taciturn[cli].") from None

from taciturn import __version__
from taciturn.cli.audit import audit
from taciturn.cli.data import check, init, predict
from taciturn.cli.learn import learn
from taciturn.cli.plan import plan
from taciturn.cli.privacy import errata, privacy
from taciturn.cli.reproduce import app as reproduce
from taciturn.errors import TaciturnError

TOUR = """\
[bold]From a file to a private model[/bold]

taciturn init trees.csv                        [dim]drafts taciturn.toml from its header[/dim]

taciturn check taciturn.toml                      [dim]explains what it promises[/dim]

taciturn learn taciturn.toml trees.csv            [dim]learns, and publishes models[/dim]

taciturn predict taciturn-run/model.json new.csv  [dim]predicts with the last of them[/dim]

Each command shows an example: taciturn init --help. For machines there is --json.
"""

_PATHS = {
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
}  # the caller's

PANELS = {
    "Learn from a file, in this order": (init, check, learn, predict),
    "Before there is data": (plan, privacy),
    "Look behind it": (audit, errata),
}

app = typer.Typer(
    help="Differentially private online learning: models published from a stream, all under one guarantee.",
    epilog=TOUR,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _panel, _commands in PANELS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)
app.add_typer(reproduce, name="reproduce", rich_help_panel="Look behind it")


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error happened.")] = False,
) -> None:
    if debug:
        os.environ["TACITURN_DEBUG"] = "1"
    if version:
        typer.echo(f"taciturn {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command: a refusal is one sentence and exit status 2; a crash is one, and 3, which is nobody's verdict.

    With `--debug`, or `TACITURN_DEBUG=1` in the environment, both also say where they happened. A report that nobody
    reads to its end needs no sentence.
    """
    try:
        raise SystemExit(_run())
    except TaciturnError as refusal:
        _say(str(refusal))
        raise SystemExit(2) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries once more as it ends
        raise SystemExit(3) from None
    except KeyboardInterrupt:
        _say("interrupted.")
        raise SystemExit(130) from None
    except Exception as crash:
        if isinstance(crash, OSError) and crash.filename is not None and crash.errno in _PATHS:
            where = os.fsdecode(crash.filename)
            _say(f"{where}: {crash.strerror}. Check the path and who may write there, or name another.")
            raise SystemExit(2) from None
        if hasattr(crash, "format_message"):
            raise SystemExit(_misused(crash)) from None
        what = " ".join(f"{type(crash).__name__} {crash}".split())
        _say(f"this went wrong: {what}. Say taciturn --debug to see where, and report it.")
        raise SystemExit(3) from None


def _run() -> int:
    """The command and its exit status; typer and rich end with 1 on a broken pipe, and nobody else raises that."""
    try:
        status = app(prog_name="taciturn", standalone_mode=False)
    except SystemExit as done:
        if done.code == 1:
            raise BrokenPipeError from None
        raise
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _misused(mistake: Any) -> int:
    """One sentence on how a command was called; without any arguments, its help."""
    if type(mistake).__name__ == "NoArgsIsHelpError":
        print(mistake.format_message().rstrip())  # rich has printed it already, and leaves nothing here
        return 2
    sentence = " ".join(mistake.format_message().split()).rstrip(".")
    command = getattr(mistake.ctx, "command_path", "taciturn")
    _say(f"{sentence}{'' if sentence.endswith('?') else '.'} Try {command} --help.")
    return 2


def _say(sentence: str) -> None:
    if os.environ.get("TACITURN_DEBUG"):
        traceback.print_exc()
    print(f"taciturn: {sentence}", file=sys.stderr)
