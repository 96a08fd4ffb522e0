"""The tutorial as a notebook: the same words, code and output as the page that it is made of.

Run it after changing the page: python docs_build/notebook.py
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"

_BLOCK = re.compile(
    r"^```(?P<kind>python|console)\n(?P<code>.*?)^```$(?:\n+``` ?\{ \.text \.prints \}\n(?P<prints>.*?)^```$)?",
    re.M | re.S,
)
_LINK = re.compile(r"\]\((?!https?:|#)([\w/]+\.md)")
_NOT_SHOWN = re.compile(r"^<!--.*?-->\n+", re.M | re.S)


def notebook(markdown: str) -> dict[str, Any]:
    r"""A notebook with the content of a page: text, Python and commands, each with the output that the page shows.

    >>> page = "# Sums\n\n```python\nprint(1 + 1)\n```\n\n``` { .text .prints }\n2\n```\n"
    >>> [(cell["cell_type"], "".join(cell["source"])) for cell in notebook(page)["cells"]]
    [('markdown', '# Sums'), ('code', 'print(1 + 1)')]
    """
    cells = []
    for number, (kind, source, prints) in enumerate(_parts(markdown)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": _lines(source)}
        if kind == "code":
            shown = [{"name": "stdout", "output_type": "stream", "text": _lines(prints)}] if prints else []
            cell |= {"execution_count": None, "outputs": shown}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _parts(markdown: str) -> Iterator[tuple[str, str, str]]:
    """Cells in their order: kind, source, and what a code cell prints; a cell for every command."""
    end = 0
    for block in _BLOCK.finditer(markdown):
        yield from _words(markdown[end : block.start()])
        end = block.end()
        if block["kind"] == "python":
            yield "code", block["code"].rstrip(), block["prints"] or ""
            continue
        for part in re.split(r"^\$ ", block["code"], flags=re.M)[1:]:
            command, _, prints = part.partition("\n")
            while command.endswith("\\"):
                more, _, prints = prints.partition("\n")
                command = f"{command}\n{more}"
            yield "code", f"!{command}", prints
    yield from _words(markdown[end:])


def _words(markdown: str) -> Iterator[tuple[str, str, str]]:
    """Text between blocks, its links as seen from the notebook's folder."""
    text = _LINK.sub(r"](../docs/\1", _NOT_SHOWN.sub("", markdown)).strip()
    if text:
        yield "markdown", text, ""


def _lines(text: str) -> list[str]:
    return textwrap.dedent(text).splitlines(keepends=True)


def written(markdown: str) -> str:
    """The file of the notebook."""
    return json.dumps(notebook(markdown), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
