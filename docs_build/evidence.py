"""Results of `taciturn reproduce` on a page: figure, caption and tables, where the page has a mark.

Saved results are in `benchmarks/results/reproduced`. To replace them, from the folder of the repository:

    taciturn reproduce all && python docs_build/evidence.py reproduced
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from docs_build.measured import RESULTS, markdown_table
from taciturn._util.html import inline_svg
from taciturn.reproduce import REGISTRY
from taciturn.reproduce.page import Grid, Part, duration, read_part, save_part

SAVED = RESULTS / "reproduced"
MARK = re.compile(r"<!-- evidence: (?P<name>[a-z-]+) -->")
FIGURE = re.compile(r"<!-- evidence figure: (?P<name>[a-z-]+) -->")
_OPEN_ROWS = 20
"""A longer table is folded."""


def with_evidence(markdown: str, folder: Path = SAVED) -> str:
    """The page, each `<!-- evidence: NAME -->` replaced by what the experiment of that name showed.

    >>> with_evidence("A page without marks.")
    'A page without marks.'
    """
    return MARK.sub(lambda mark: section(_part(mark["name"], folder)), markdown)


def with_figures(html: str, folder: Path = SAVED) -> str:
    """The built page with its figures, which come last, so that the search does not read their labels."""

    def figure(mark: re.Match[str]) -> str:
        part = _part(mark["name"], folder)
        drawn = inline_svg(part.picture, part.stem, f"{part.heading}. {part.caption}")
        return f'<figure class="plot">{drawn}</figure>'

    return FIGURE.sub(figure, html)


def section(part: Part) -> str:
    """Figure, what it shows, what the paper printed, tables, and where they come from; in Markdown."""
    short = "Short version: " if part.quick else ""
    made = (
        f"{short}{part.runs:,} runs, seeds {part.seeds}, {duration(part.seconds)} of processor time; `{part.command}`."
    )
    blocks = [
        f"<!-- evidence figure: {part.name} -->" if part.picture else "",
        part.caption,
        f"*In the paper.* {part.paper}" if part.paper else "",
        *(_table(one) if isinstance(one, Grid) else _escaped(one) for one in part.shown),
        made,
    ]
    return "\n\n".join(block for block in blocks if block)


def _table(grid: Grid) -> str:
    rows = [[_cell(text, style) for text, style in row] for row in grid.rows]
    table = markdown_table({"columns": [_escaped(head) for head in grid.heads], "rows": rows})
    title = _escaped(grid.title or "Results")
    if len(rows) <= _OPEN_ROWS:
        return f"**{title}**\n\n{table}"
    indented = "\n".join(f"    {line}" for line in table.splitlines())
    return f'??? note "{title.replace(chr(34), "")} ({len(rows)} rows)"\n\n{indented}'


def _cell(text: str, style: str) -> str:
    words = _escaped(text)
    return f"**{words}**" if words and style in ("bad", "strong") else words


def _escaped(text: str) -> str:
    return re.sub(r"([|*_<\[])", r"\\\1", text).replace("\n", " ")


def _part(name: str, folder: Path) -> Part:
    part = read_part(folder, name) or read_part(folder, f"{name}-quick")
    if part is None:
        raise FileNotFoundError(f"There is no result of {name} in {folder}. Run taciturn reproduce {name}.")
    return part


def save(source: Path, target: Path = SAVED) -> None:
    """Copy what the page shows from a folder of `taciturn reproduce`: full versions, or else short ones."""
    for name in REGISTRY:
        with contextlib.suppress(FileNotFoundError):
            part = _part(name, source)
            for old in (target / "parts" / f"{name}-quick.json", target / f"{name}-quick.svg"):
                old.unlink(missing_ok=True)
            save_part(replace(part, everything=None), target)
            shutil.copy(source / f"{part.stem}.svg", target / f"{part.stem}.svg")


if __name__ == "__main__":
    save(Path(sys.argv[1]))
