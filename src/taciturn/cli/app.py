"""The `taciturn` command. It only calls the library and prints; it contains no privacy arithmetic."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

try:
    import typer
except ImportError:  # pragma: no cover
    from taciturn.errors import needs_extra

    raise SystemExit(needs_extra("The taciturn command", "cli", "typer, rich")) from None

from taciturn import __version__
from taciturn.cli.audit import audit
from taciturn.cli.budget import app as budget
from taciturn.cli.data import check, init, predict
from taciturn.cli.export import export
from taciturn.cli.learn import learn
from taciturn.cli.plan import plan
from taciturn.cli.privacy import errata, privacy
from taciturn.cli.renew import renew
from taciturn.cli.reproduce import app as reproduce
from taciturn.cli.serve import serve, token
from taciturn.cli.store import app as store
from taciturn.errors import TaciturnError

TOUR = """\
[bold]From a file to a private model[/bold]

taciturn init trees.csv                        [dim]drafts taciturn.toml from the header[/dim]

taciturn check taciturn.toml                      [dim]explains the guarantee[/dim]

taciturn learn taciturn.toml trees.csv            [dim]learns and publishes models[/dim]

taciturn predict taciturn-run/model.json new.csv  [dim]predicts with the latest model[/dim]

The help of each command has an example: taciturn init --help. For output as JSON, pass --json.
"""

_PATHS = {
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
}  # errors of a path that the user passed

PANELS = {
    "Learn from a file, in this order": (init, check, learn, predict, export, renew),
    "Before there is data": (plan, privacy),
    "Streams over HTTP": (serve,),
    "Check the evidence": (audit, errata),
}

app = typer.Typer(
    help="Differentially private online learning: publish models from a stream under one privacy guarantee.",
    epilog=TOUR,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _panel, _commands in PANELS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)
app.add_typer(budget, name="budget", rich_help_panel="One budget for several models")
app.add_typer(store, name="store", rich_help_panel="One budget for several models")
app.add_typer(token, name="token", rich_help_panel="Streams over HTTP")
app.add_typer(reproduce, name="reproduce", rich_help_panel="Check the evidence")


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["TACITURN_DEBUG"] = "1"
    if version:
        typer.echo(f"taciturn {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command and exit: status 2 and one sentence for an error of the user, status 3 and one for a crash.

    With `--debug`, or `TACITURN_DEBUG=1` in the environment, both also print the traceback. If the reader of the output
    has closed the pipe, the status is 3 and nothing is printed.
    """
    try:
        raise SystemExit(_run())
    except TaciturnError as error:
        _say(str(error))
        raise SystemExit(2) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python flushes once more at exit
        raise SystemExit(3) from None
    except KeyboardInterrupt:
        _say("interrupted.")
        raise SystemExit(130) from None
    except Exception as crash:
        if isinstance(crash, OSError) and crash.filename is not None and crash.errno in _PATHS:
            where = os.fsdecode(crash.filename)
            _say(f"{where}: {crash.strerror}. Check the path and its permissions, or pass another path.")
            raise SystemExit(2) from None
        if hasattr(crash, "format_message"):
            raise SystemExit(_misused(crash)) from None
        _say(
            f"internal error: {type(crash).__name__} {_place(crash)}. Its text may hold a value of the data, and is "
            "not shown: run taciturn --debug for it and the traceback, on the trusted side, and report the error."
        )
        raise SystemExit(3) from None


def _place(crash: BaseException) -> str:
    """The last line of this package that an error passed."""
    own = [frame for frame in traceback.extract_tb(crash.__traceback__) if "taciturn" in Path(frame.filename).parts]
    return f"in {Path(own[-1].filename).name}, line {own[-1].lineno}" if own else "outside this package"


def _run() -> int:
    """Run the command and return its exit status; only typer and rich exit with 1, on a broken pipe."""
    try:
        status = app(prog_name="taciturn", standalone_mode=False)
    except SystemExit as done:
        if done.code == 1:
            raise BrokenPipeError from None
        raise
    sys.stdout.flush()
    return status if isinstance(status, int) else 0


def _misused(mistake: Any) -> int:
    """Print one sentence on a wrong call of a command; without any arguments, its help."""
    if type(mistake).__name__ == "NoArgsIsHelpError":
        print(mistake.format_message().rstrip())  # empty if rich has printed it already
        return 2
    sentence = " ".join(mistake.format_message().split()).rstrip(".")
    command = getattr(mistake.ctx, "command_path", "taciturn")
    _say(f"{sentence}{'' if sentence.endswith('?') else '.'} Try {command} --help.")
    return 2


def _say(sentence: str) -> None:
    if os.environ.get("TACITURN_DEBUG"):
        traceback.print_exc()
    print(f"taciturn: {sentence}", file=sys.stderr)
