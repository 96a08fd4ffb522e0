"""The reference of the command names every command and every option, as they are."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal

import pytest

typer = pytest.importorskip("typer")

from typer.main import get_command  # noqa: E402

from docs_build import hooks  # noqa: E402
from docs_build.commands import MARK, commands, reference  # noqa: E402

app, group = typer.Typer(), typer.Typer()
app.add_typer(group, name="show")


@app.command()
def learn(
    stream: Annotated[Path, typer.Argument(help="What to learn from.")],
    epsilon: Annotated[float, typer.Option(help="Total.")],
    rows: Annotated[int, typer.Option(help="How many.")] = 10,
    kind: Annotated[Literal["one", "two"], typer.Option(help="Which.")] = "two",
    out: Annotated[Path | None, typer.Option(help="Where to.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    secret: Annotated[int, typer.Option(hidden=True)] = 0,
) -> None:
    """Learn from a file, of which
    this is said on two lines.

    Example: taciturn learn stream.csv --epsilon 1
    """


@group.command()
def state() -> None:
    """Show it."""


EXPECTED = """
## taciturn learn

Learn from a file, of which this is said on two lines.

```console
$ taciturn learn STREAM [OPTIONS]
$ taciturn learn stream.csv --epsilon 1
```

| option | meaning | default |
|---|---|---|
| `STREAM` | What to learn from. | required |
| `--epsilon NUMBER` | Total. | required |
| `--rows N` | How many. | `10` |
| `--kind`<br> `one`, `two` | Which. | `two` |
| `--out FILE` | Where to. | – |
| `--json` | For machines. | off |

## taciturn show state

Show it.

```console
$ taciturn show state
```
"""


def test_all_that_a_command_says_of_itself():
    """Arguments, kinds, choices, defaults, examples, groups; what is hidden is hidden."""
    assert reference(get_command(app)).strip() == EXPECTED.strip()


def test_every_command_and_option_of_taciturn_is_listed():
    """A command that is added appears by itself; so it is with options."""
    from taciturn.cli import app as cli

    text = hooks.on_page_markdown(f"# Title\n\n{MARK}\n")
    result = dict(commands(get_command(cli.app)))
    assert len(result) >= 5
    for name, command in result.items():
        section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert " ".join(command.help.split("\n\n")[0].split()) in section
        for parameter in inspect.signature(inspect.unwrap(command.callback)).parameters:
            assert [p for p in command.params if p.name == parameter]
        for param in command.params:
            assert (
                param.opts[-1] if param.opts[-1].startswith("-") else param.metavar or param.name.upper()
            ) in section


def test_other_pages_are_left_alone():
    assert hooks.on_page_markdown("# Title\n") == "# Title\n"


@pytest.mark.parametrize(("text", "hidden"), [("", ["navigation", "toc"]), ("\n## One\n", ["navigation"])])
def test_a_page_without_sections_has_no_table_of_contents(text, hidden):
    page = SimpleNamespace(meta={"hide": ["navigation"]})
    hooks.on_page_markdown(f"# Title\n{text}", page=page)
    assert page.meta["hide"] == hidden
