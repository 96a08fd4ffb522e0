"""Tables as plain data: from what a terminal is shown, or from rows; and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.numbers import rounded_up
from taciturn.report.page import rows as html_rows

Cell = tuple[str, str]
"""Text, and how it stands out: "bad", "strong", "soft" or not at all."""

VERDICTS = ("proven", "holds")
"""Columns that say whether a claim is true."""
_STYLES = {"red": "bad", "bold": "strong", "dim": "soft"}


@dataclass(frozen=True)
class Grid:
    """A table for people.

    Attributes
    ----------
    title : str
        What it shows, or nothing.
    heads : sequence of str
        Names of the columns.
    right : sequence of bool
        Which of them stand to the right, as numbers do.
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
        """A table that scrolls by itself where it is wider than the page."""
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
    """What a terminal is shown: tables as grids, the rest as text.

    >>> shown_grids(["[bold]Two[/bold] words."])
    ['Two words.']
    """
    return [_grid(one) if isinstance(one, Table) else _text(one).plain for one in renderables]


def _grid(table: Table) -> Grid:
    columns = [[_text(cell) for cell in column.cells] for column in table.columns]
    rows = [
        [(text.plain, _style(str(row.style or ""), text)) for text in cells]
        for row, cells in zip(table.rows, zip(*columns, strict=True), strict=True)
    ]
    heads, right = (
        [_text(column.header).plain for column in table.columns],
        [c.justify == "right" for c in table.columns],
    )
    return Grid(_text(table.title or "").plain, heads, right, rows)


def _text(renderable: RenderableType) -> Text:
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
    """Rows that have the same columns; what is the same in all of them is said in the title, once.

    A row whose claim does not hold stands out. Epsilons that are delivered are rounded up.

    >>> made = data_grid([{"T": 100, "delivered_epsilon": 0.12341}, {"T": 100, "delivered_epsilon": 2.0}])
    >>> made.title, made.heads, [[text for text, _ in row] for row in made.rows]
    ('In every row: T = 100', ['delivered epsilon'], [['0.1235'], ['2']])
    """
    names = list(rows[0])
    same = [name for name in names if len(rows) > 1 and all(row[name] == rows[0][name] for row in rows)]
    varied = [name for name in names if name not in same]
    right = [not any(isinstance(row[name], str | bool) for row in rows) for name in varied]
    cells = [[(_said(name, row[name]), "bad" if _broken(row) else "") for name in varied] for row in rows]
    title = ", ".join(f"{_worded(name)} = {_said(name, rows[0][name])}" for name in same)
    return Grid(f"In every row: {title}" if same else "", [_worded(name) for name in varied], right, cells)


def _worded(name: str) -> str:
    return name.replace("_", " ")


def _broken(row: Mapping[str, Any]) -> bool:
    return any(row.get(name) is False for name in VERDICTS)


def _said(name: str, value: Any) -> str:
    if name in VERDICTS and value is False:
        return "BROKEN"
    if name.startswith("delivered") and isinstance(value, float):
        return rounded_up(value, 4)
    return said(value)


def said(value: Any) -> str:
    """A value of a row or a setting, in few characters.

    >>> [said(value) for value in (100_000, 0.00123456, True, None, [0.1, 1.0], "PIGD")]
    ['100,000', '0.001235', 'yes', '–', '0.1, 1', 'PIGD']
    """
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, list | tuple):
        return ", ".join(map(said, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
