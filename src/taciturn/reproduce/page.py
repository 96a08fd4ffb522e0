"""The evidence page: every experiment that a folder holds, with its figure, tables, settings and budgets.

An experiment adds a `Part`, which is plain data and is saved with the results. The page is made of all parts that a
folder holds, so running one experiment never removes another one from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn._util.html import bullets, document, inline_svg, number, number_head, paragraph, section
from taciturn._util.html import rows as html_rows
from taciturn.kernel.accounting.rounding import rounded_up
from taciturn.kernel.atomic import replaced

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

FILE = "report.html"
TITLE = "Differentially private online learning: the evidence"
NOT_PRIVATE = (
    "Results are seeded simulations and are scored on exact data: they are not private. A budget is the guarantee of "
    "the same settings with secret noise. It is exact: the epsilon, at this delta, of everything that is published."
)
MAX_ROWS, MAX_VALUES = 600, 12
"""The longest table and the longest list of a setting's values that the page shows."""
_STYLE = """
figure.plot, .wide { overflow-x: auto; }
figure.plot svg { display: block; width: 100%; min-width: 44rem; height: auto; }
table.grid { font-size: .9rem; width: auto; }
table.grid th, table.grid td { white-space: nowrap; padding: .15rem .9rem .15rem 0; }
table.grid td:first-child { min-width: 0; }
table.contents { font-size: inherit; }
table.contents td:first-child { white-space: normal; min-width: 11rem; }
.bad { color: var(--alarm); }
.strong { font-weight: 700; }
td.soft { font-size: inherit; }
main { max-width: 72rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--main); }
a { color: var(--main); }
section { scroll-margin-top: 1rem; }
"""


# ---- the page --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """An experiment on the page, as plain data.

    Attributes
    ----------
    name, quick : str, bool
        Which experiment, and whether this is its short version.
    version, command : str
        The version of `taciturn` that ran it, and the command that runs it again.
    runs, seconds : int, float
        Number of runs, and their processor time.
    title, caption, paper : str
        Title, what the figure shows, and what the paper printed.
    settings : sequence of (str, str)
        Names and values.
    shown : sequence of Grid or str
        Tables and sentences for people.
    everything : Grid, optional
        All rows, unless there are more than `MAX_ROWS`.
    picture : str
        Content of an SVG file; may be empty.

    Examples
    --------
    >>> part = Part("errata", False, "0.1.0", "taciturn reproduce errata", 3, 0.5, "Errata", "", "", [], ["None left."])
    >>> '<section id="errata">' in evidence_page([part])
    True
    """

    name: str
    quick: bool
    version: str
    command: str
    runs: int
    seconds: float
    title: str
    caption: str
    paper: str
    settings: Sequence[tuple[str, str]]
    shown: Sequence[Grid | str]
    everything: Grid | None = None
    picture: str = ""

    @property
    def stem(self) -> str:
        """The name of its files, without ending."""
        return f"{self.name}-quick" if self.quick else self.name

    @property
    def seeds(self) -> str:
        """Seeds of its runs; an experiment without randomness has none."""
        return dict(self.settings).get("seed", "none")

    @property
    def heading(self) -> str:
        """Its title, marked if it is the short version."""
        return f"{self.title or self.name}{' (quick)' if self.quick else ''}"


def evidence_page(parts: Sequence[Part], missing: Mapping[str, str] | None = None) -> str:
    """The page as HTML.

    Parameters
    ----------
    parts : sequence of Part
        In the order of the page.
    missing : mapping of str to str, optional
        Names and summaries of experiments that have not been run.
    """
    head = [
        f"<h1>{escape(TITLE)}</h1>",
        paragraph(
            "The figures and tables of Jain, Kothari and Thakurta, Differentially Private Online Learning (2012), "
            "reproduced, with the results of corrected and newer algorithms at the same budget."
        ),
        _contents(parts, missing or {}),
    ]
    return document(TITLE, "\n".join([*head, *map(_part, parts)]), _STYLE)


def _contents(parts: Sequence[Part], missing: Mapping[str, str]) -> str:
    cells = [
        (
            f'<a href="#{escape(part.stem)}">{escape(part.heading)}</a>',
            number(f"{part.runs:,}"),
            escape(part.seeds),
            number(duration(part.seconds)),
            escape(part.version),
            f"<code>{escape(part.command)}</code>",
        )
        for part in parts
    ]
    heads = ("experiment", number_head("runs"), "seeds", number_head("processor time"), "taciturn", "command")
    total = duration(sum(part.seconds for part in parts))
    blocks = [
        html_rows(cells, heads, "grid contents"),
        paragraph(
            f"{total} of processor time in total, on all cores. taciturn reproduce all runs everything again; equal "
            "seeds give equal numbers."
        ),
        paragraph(NOT_PRIVATE),
    ]
    if missing:
        blocks.append(paragraph("Not in this folder; taciturn reproduce runs them by name:"))
        blocks.append(bullets(f"{name}: {summary}" for name, summary in missing.items()))
    return section("Contents", *blocks)


def _part(part: Part) -> str:
    return section(
        part.heading,
        _figure(part),
        f"<p><b>In the paper.</b> {escape(part.paper)}</p>" if part.paper else "",
        *(one.html() if isinstance(one, Grid) else paragraph(one, soft=True) for one in part.shown),
        _folded("Settings", html_rows([(escape(name), escape(value)) for name, value in part.settings])),
        _folded("Every row", part.everything.html()) if part.everything else "",
        _origin(part),
        anchor=part.stem,
    )


def _figure(part: Part) -> str:
    if not part.picture:
        return paragraph(part.caption)
    drawn = inline_svg(part.picture, part.stem, f"{part.heading}. {part.caption}")
    return f'<figure class="plot">{drawn}</figure>\n<p><b>What it shows.</b> {escape(part.caption)}</p>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{body}\n</details>"


def _origin(part: Part) -> str:
    files = ", ".join(f"{part.stem}.{ending}" for ending in ("csv", "json", "png", "svg"))
    made = (
        f"{part.runs:,} runs, seeds {part.seeds}, taciturn {part.version}, {duration(part.seconds)} of processor time."
    )
    return (
        f'<p class="soft">{"Short version" if part.quick else "Full version"}: {escape(made)} Files in this folder: '
        f"{escape(files)}. Command: <code>{escape(part.command)}</code></p>"
    )


def duration(seconds: float) -> str:
    """A time in seconds or minutes.

    >>> duration(0.02), duration(75.0), duration(7000.0)
    ('0.02 s', '75 s', '117 min')
    """
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds / 60.0:.0f} min"


# ---- parts in a folder -----------------------------------------------------------------------------------------


def settings_of(plan: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The values that each setting takes over all runs.

    >>> settings_of([{"seed": 1, "horizon": 5000}, {"seed": 2, "horizon": 5000}])
    [('seed', '1, 2'), ('horizon', '5,000')]
    """
    taken: dict[str, dict[str, None]] = {}
    for settings in plan:
        for name, value in settings.items():
            taken.setdefault(name, {})[value_text(value)] = None
    return [(name.replace("_", " "), _listed(list(values))) for name, values in taken.items()]


def _listed(values: Sequence[str]) -> str:
    mark = "; " if any(", " in value for value in values) else ", "
    if len(values) <= MAX_VALUES:
        return mark.join(values)
    return f"{mark.join(values[:3])}{mark}…{mark}{values[-1]} ({len(values)} values)"


def every_row(rows: Sequence[Mapping[str, Any]]) -> Grid | None:
    """All rows as a table, or None if there are too many for a page."""
    return data_grid(rows) if 0 < len(rows) <= MAX_ROWS else None


def save_part(part: Part, folder: Path) -> None:
    """Save a part, without its picture, which is a file of its own."""
    path = _path(folder, part.stem)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(asdict(replace(part, picture=""))))


def read_part(folder: Path, stem: str) -> Part | None:
    """The part of that name, or None if there is none, or its file is damaged."""
    try:
        data = json.loads(_path(folder, stem).read_text(encoding="utf-8"))
        grids = [Grid(**one) if isinstance(one, dict) else str(one) for one in data.pop("shown")]
        everything = data.pop("everything")
        del data["picture"]
        part = Part(shown=grids, everything=everything and Grid(**everything), **data)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    drawn = folder / f"{stem}.svg"
    return replace(part, picture=drawn.read_text(encoding="utf-8")) if drawn.exists() else part


def write_page(folder: Path, summaries: Mapping[str, str]) -> Path:
    """Write the page of all parts that the folder holds, in the order of the summaries, and return its path."""
    parts: list[Part] = []
    missing: dict[str, str] = {}
    for name, summary in summaries.items():
        saved = [part for stem in (name, f"{name}-quick") if (part := read_part(folder, stem))]
        parts += saved
        if not saved:
            missing[name] = summary
    write_text(folder / FILE, evidence_page(parts, missing))
    return folder / FILE


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replaced(path) as file:
        file.write(text.encode())


def _path(folder: Path, stem: str) -> Path:
    return folder / "parts" / f"{stem}.json"


# ---- tables ----------------------------------------------------------------------------------------------------

Cell = tuple[str, str]
"""Text, and its style: "bad", "strong", "soft" or empty."""

VERDICTS = ("proven", "holds")
"""Columns that say whether a claim is true."""
_STYLES = {"red": "bad", "bold": "strong", "dim": "soft"}


@dataclass(frozen=True)
class Grid:
    """A table as plain data.

    Attributes
    ----------
    title : str
        Title; may be empty.
    heads : sequence of str
        Names of the columns.
    right : sequence of bool
        Which columns are aligned to the right, as numbers are.
    rows : sequence of sequence of Cell
        As many cells as there are columns.

    Examples
    --------
    >>> Grid("", ["claim"], [False], [[("BROKEN", "bad")]]).html()
    '<div class="wide"><table class="grid"><tr><th>claim</th></tr><tr><td class="bad">BROKEN</td></tr></table></div>'
    """

    title: str
    heads: Sequence[str]
    right: Sequence[bool]
    rows: Sequence[Sequence[Cell]]

    def html(self) -> str:
        """A table that scrolls if it is wider than the page."""
        heads = [f"<th{_class(right)}>{escape(head)}</th>" for head, right in zip(self.heads, self.right, strict=True)]
        cells = (
            [
                f"<td{_class(right, style)}>{escape(text)}</td>"
                for (text, style), right in zip(row, self.right, strict=True)
            ]
            for row in self.rows
        )
        title = f"<p><b>{escape(self.title)}</b></p>\n" if self.title else ""
        return title + html_rows(cells, heads, "grid")


def _class(right: bool, style: str = "") -> str:
    names = " ".join(filter(None, ("number" if right else "", style)))
    return f' class="{names}"' if names else ""


def shown_grids(renderables: Iterable[RenderableType]) -> list[Grid | str]:
    """What a terminal shows: tables as grids, the rest as text.

    >>> shown_grids(["[bold]Two[/bold] words."])
    ['Two words.']
    """
    from rich.table import Table

    return [_grid(one) if isinstance(one, Table) else _text(one).plain for one in renderables]


def _grid(table: Table) -> Grid:
    columns = [[_text(cell) for cell in column.cells] for column in table.columns]
    rows = [
        [(text.plain, _style(str(row.style or ""), text)) for text in cells]
        for row, cells in zip(table.rows, zip(*columns, strict=True), strict=True)
    ]
    heads = [_text(column.header).plain for column in table.columns]
    right = [column.justify == "right" for column in table.columns]
    return Grid(_text(table.title or "").plain, heads, right, rows)


def _text(renderable: RenderableType) -> Text:
    from rich.console import Console
    from rich.text import Text

    if isinstance(renderable, Text):
        return renderable
    if isinstance(renderable, str):
        return Text.from_markup(renderable)
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return Text(capture.get().rstrip())


def _style(row: str, text: Text) -> str:
    words = " ".join([row, str(text.style), *(str(span.style) for span in text.spans)]).split()
    return next((ours for theirs, ours in _STYLES.items() if theirs in words), "")


def data_grid(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Rows with the same columns as a table; columns that are equal in all rows move to the title.

    A row whose claim does not hold is marked. Delivered epsilons are rounded up.

    >>> made = data_grid([{"T": 100, "delivered_epsilon": 0.12341}, {"T": 100, "delivered_epsilon": 2.0}])
    >>> made.title, made.heads, [[text for text, _ in row] for row in made.rows]
    ('In every row: T = 100', ['delivered epsilon'], [['0.1235'], ['2']])
    """
    names = list(rows[0])
    same = [name for name in names if len(rows) > 1 and all(row[name] == rows[0][name] for row in rows)]
    varied = [name for name in names if name not in same]
    right = [not any(isinstance(row[name], str | bool) for row in rows) for name in varied]
    cells = [[(_cell(name, row[name]), "bad" if _broken(row) else "") for name in varied] for row in rows]
    title = ", ".join(f"{_words(name)} = {_cell(name, rows[0][name])}" for name in same)
    return Grid(f"In every row: {title}" if same else "", [_words(name) for name in varied], right, cells)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _broken(row: Mapping[str, Any]) -> bool:
    return any(row.get(name) is False for name in VERDICTS)


def _cell(name: str, value: Any) -> str:
    if name in VERDICTS and value is False:
        return "BROKEN"
    if name.startswith("delivered") and isinstance(value, float):
        return rounded_up(value, 4)
    return value_text(value)


def value_text(value: Any) -> str:
    """A value of a row or a setting, in few characters.

    >>> [value_text(value) for value in (100_000, 0.00123456, True, None, [0.1, 1.0], "PIGD")]
    ['100,000', '0.001235', 'yes', '–', '0.1, 1', 'PIGD']
    """
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
