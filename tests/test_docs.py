"""The documentation keeps its word: examples run and print what they say, names have examples, files exist."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import re
import textwrap
from pathlib import Path

import pytest

import taciturn

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [path for path in [README, *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]

RUN = [path for path in PAGES if path.name != "tutorial.md"]
"""The code of the tutorial needs the files that its commands write: `tests/docs_build/test_notebook.py` runs both."""

BLOCK = re.compile(
    r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$"
    r"(?:\n+(?P=indent)``` \{ \.text \.prints \}\n(?P<prints>.*?)^(?P=indent)```$)?",
    re.M | re.S,
)
REFERRED = re.compile(r"^::: (\S+)", re.M)
CITED = re.compile(r"\b(?:src|tests|examples|benchmarks|docs)/[\w/.-]+\.(?:py|md)\b")


def blocks(text: str) -> list[tuple[str, str | None]]:
    """The ```python blocks of a page, padded so that errors name the page's own lines, and what they say they print."""
    return [
        ("\n" * (text[: match.start("code")].count("\n")) + textwrap.dedent(match["code"]), match["prints"])
        for match in BLOCK.finditer(text)
    ]


def run(text: str, name: str) -> dict[str, object]:
    """Run a page's blocks one after the other, in one namespace; what stands under a block is what it prints."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block, prints in blocks(text):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, name, "exec"), namespace)
        assert prints is None or printed.getvalue().rstrip() == textwrap.dedent(prints).rstrip()
    return namespace


def missing(text: str) -> list[str]:
    """Files that a page cites and the repository lacks; lines that say `open` may look ahead."""
    lines = [line for line in text.splitlines() if not line.rstrip(" |").endswith("| open")]
    return sorted({f for line in lines for f in CITED.findall(line) if not (ROOT / f).exists()})


def readable(source: str) -> set[str]:
    """The names that a module both imports and lists in a literal `__all__`."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    listed = re.search(r"^__all__ = (\[.*?\])", source, re.M | re.S)
    names = ast.literal_eval(listed[1]) if listed else []
    return {alias.asname or alias.name for node in imports for alias in node.names} & set(names)


@pytest.mark.parametrize("page", RUN, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run(page.read_text(encoding="utf-8"), str(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_cited_files_exist(page):
    assert missing(page.read_text(encoding="utf-8")) == []


@pytest.mark.skipif(not README.exists(), reason="there is no README.md yet")
def test_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) < 150


def test_every_public_name_has_an_example():
    public = [name for name in taciturn.__all__ if not name.startswith("__")]
    bare = [name for name in public if ">>> " not in (getattr(taciturn, name).__doc__ or "")]
    assert public
    assert bare == []


@pytest.mark.parametrize("name", taciturn._MODULES)
def test_every_function_of_a_public_module_has_an_example(name):
    """The functions that are reached by their module's name."""
    module = importlib.import_module(f"taciturn.{name}")
    defined = [public for public, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    public = getattr(module, "__all__", [name for name in defined if not name.startswith("_")])
    functions = [name for name in public if inspect.isfunction(getattr(module, name))]
    assert functions
    assert [function for function in functions if ">>> " not in (getattr(module, function).__doc__ or "")] == []


def test_every_public_name_can_be_read_without_running_anything():
    """Type checkers and the reference see what is imported and listed, not what is lazy."""
    package = ROOT / "src" / "taciturn"
    stub = package / "__init__.pyi"
    source = (stub if stub.exists() else package / "__init__.py").read_text(encoding="utf-8")
    public = {name for name in taciturn.__all__ if not name.startswith("__")}
    assert public - readable(source) == set()


def test_every_public_name_has_one_place_in_the_reference():
    """Those of `taciturn`, and its public modules."""
    pages = [*(ROOT / "docs" / "reference").glob("*.md")]
    listed = sorted(name for page in pages for name in REFERRED.findall(page.read_text(encoding="utf-8")))
    assert sorted(set(listed)) == listed
    public = {f"taciturn.{name}" for name in (*taciturn.__all__, *taciturn._MODULES) if not name.startswith("__")}
    assert public - set(listed) == set()


def test_every_command_is_in_its_reference():
    """The page asks for the list, which is made from the command; `tests/docs_build` looks at what it holds."""
    from docs_build.commands import MARK

    assert MARK in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_every_algorithm_has_a_page_that_prints_its_certificate():
    """And that the map of the paper, or another page, leads to."""
    pages = {page for page in (ROOT / "docs" / "algorithms").glob("*.md") if page.name != "index.md"}
    text = {page: page.read_text(encoding="utf-8") for page in PAGES}
    assert len(pages) >= 10
    for page in pages:
        assert "certificate" in text[page]
        assert " .prints }" in text[page]
        assert "errata.md#e" in text[page] or "**In the paper**: not there." in text[page]
        assert f"algorithms/{page.name}" in text[ROOT / "docs" / "paper_map.md"]


def test_blocks_share_a_namespace_and_other_fences_are_left_alone():
    first = "```python\na = 1\n```\n\n```console\n$ no\n```\n"
    second = "- item\n\n    ```python\n    b = a + 1\n    ```\n"
    assert run(first + second, "page")["b"] == 2


def test_a_failing_block_names_its_line():
    with pytest.raises(ZeroDivisionError) as caught:
        run("# Title\n\n```python\n1 / 0\n```\n", "page.md")
    assert caught.traceback[-1].lineno + 1 == 4


def test_what_a_block_prints_must_be_what_stands_under_it():
    page = "```python\nprint(6 * 7)\n```\n\n``` { .text .prints }\n42\n```\n"
    assert run(page, "page") is not None
    with pytest.raises(AssertionError):
        run(page.replace("42", "43"), "page")


def test_a_missing_file_is_named_unless_open():
    page = "see src/taciturn/nowhere.py\n| x | `src/taciturn/later.py` | open |\n"
    assert missing(page) == ["src/taciturn/nowhere.py"]


def test_a_lazy_name_is_not_readable():
    eager = "if TYPE_CHECKING:\n    from a import b, c\n"
    assert readable(eager + '__all__ = ["b", "d"]') == {"b"}
    assert readable(eager + "__all__ = sorted(HOME)") == set()


def test_every_experiment_is_on_the_page_of_the_evidence():
    """With what it shows; and the map of the paper says where it is."""
    from taciturn.reproduce import REGISTRY

    page, paper_map = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("evidence.md", "paper_map.md"))
    assert [name for name in REGISTRY if f"\n| `{name}` |" not in page] == []
    assert [name for name in REGISTRY if f"`taciturn reproduce {name}`" not in paper_map] == []
