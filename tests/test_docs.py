"""The documentation keeps its word: examples run, names have examples, commands and files exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [path for path in [README, *sorted((ROOT / "docs").glob("*.md"))] if path.exists()]

BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.M | re.S)
CITED = re.compile(r"\b(?:src|tests|experiments|benchmarks|docs)/[\w/.-]+\.(?:py|md)\b")


def blocks(text: str) -> list[str]:
    """The ```python blocks of a page, each padded so that errors name the page's own lines."""
    return [
        "\n" * (text[: match.start("code")].count("\n")) + textwrap.dedent(match["code"])
        for match in BLOCK.finditer(text)
    ]


def run(text: str, name: str) -> dict[str, object]:
    """Run a page's blocks one after the other, in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        exec(compile(block, name, "exec"), namespace)
    return namespace


def missing(text: str) -> list[str]:
    """Files that a page cites and the repository lacks; lines that say `open` may look ahead."""
    lines = [line for line in text.splitlines() if not line.rstrip(" |").endswith("| open")]
    return sorted({f for line in lines for f in CITED.findall(line) if not (ROOT / f).exists()})


def commands(command: object, prefix: str = "tacit") -> list[str]:
    """Full names of the commands of a click group, its groups' commands included."""
    children = getattr(command, "commands", {})
    return [
        name
        for child, sub in sorted(children.items())
        for name in (commands(sub, f"{prefix} {child}") or [f"{prefix} {child}"])
    ]


def readable(source: str) -> set[str]:
    """The names that a module both imports and lists in a literal `__all__`."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    listed = re.search(r"^__all__ = (\[.*?\])", source, re.M | re.S)
    names = ast.literal_eval(listed[1]) if listed else []
    return {alias.asname or alias.name for node in imports for alias in node.names} & set(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run(page.read_text(encoding="utf-8"), str(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_cited_files_exist(page):
    assert missing(page.read_text(encoding="utf-8")) == []


@pytest.mark.skipif(not README.exists(), reason="there is no README.md yet")
def test_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150


def test_every_public_name_has_an_example():
    import tacit

    public = [name for name in tacit.__all__ if not name.startswith("__")]
    bare = [name for name in public if ">>> " not in (getattr(tacit, name).__doc__ or "")]
    assert public
    assert bare == []


@pytest.mark.parametrize("name", ["tacit.audit", "tacit.checks", "tacit.regret", "tacit.datasets"])
def test_every_function_of_a_public_module_has_an_example(name):
    """The functions that are reached by their module's name."""
    module = importlib.import_module(name)
    functions = [public for public in module.__all__ if inspect.isfunction(getattr(module, public))]
    assert functions
    assert [function for function in functions if ">>> " not in (getattr(module, function).__doc__ or "")] == []


def test_every_public_name_can_be_read_without_running_anything():
    """Type checkers and the reference see what is imported and listed, not what is lazy."""
    import tacit

    package = ROOT / "src" / "tacit"
    stub = package / "__init__.pyi"
    source = (stub if stub.exists() else package / "__init__.py").read_text(encoding="utf-8")
    public = {name for name in tacit.__all__ if not name.startswith("__")}
    assert public - readable(source) == set()


def test_every_command_is_documented():
    main = pytest.importorskip("typer.main")
    from tacit import cli

    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = commands(main.get_command(cli.app))
    assert [name for name in named if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_blocks_share_a_namespace_and_other_fences_are_left_alone():
    first = "```python\na = 1\n```\n\n```console\n$ no\n```\n"
    second = "- item\n\n    ```python\n    b = a + 1\n    ```\n"
    assert run(first + second, "page")["b"] == 2


def test_a_failing_block_names_its_line():
    with pytest.raises(ZeroDivisionError) as caught:
        run("# Title\n\n```python\n1 / 0\n```\n", "page.md")
    assert caught.traceback[-1].lineno + 1 == 4


def test_a_missing_file_is_named_unless_open():
    page = "see src/tacit/nowhere.py\n| x | `src/tacit/later.py` | open |\n"
    assert missing(page) == ["src/tacit/nowhere.py"]


def test_nested_commands_are_found():
    class Group:
        def __init__(self, **commands):
            self.commands = commands

    app = Group(run=object(), show=Group(state=object()))
    assert commands(app) == ["tacit run", "tacit show state"]


def test_a_lazy_name_is_not_readable():
    eager = "if TYPE_CHECKING:\n    from a import b, c\n"
    assert readable(eager + '__all__ = ["b", "d"]') == {"b"}
    assert readable(eager + "__all__ = sorted(HOME)") == set()
