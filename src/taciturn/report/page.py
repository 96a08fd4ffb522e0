"""A page in one file: style inside, no script, no font, and nothing asked of any other host."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_STYLE = """
:root { color-scheme: light dark; --back: #f6f7f7; --card: #ffffff; --ink: #1c2526; --soft: #5d6b6c; --line: #dde3e3;
  --main: #00796b; --faint: #b2d8d3; --alarm: #b3261e; --alarm-back: #fdecea; }
@media (prefers-color-scheme: dark) {
  :root { --back: #121718; --card: #1b2223; --ink: #e4eaea; --soft: #9fadae; --line: #323c3d;
    --main: #4db6a9; --faint: #285a55; --alarm: #ff8a80; --alarm-back: #3a1d1b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
p { margin: .4rem 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 1rem 0; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
.alarm { border: 3px solid var(--alarm); background: var(--alarm-back); }
.alarm h2 { color: var(--alarm); }
.two { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); }
ul { margin: .3rem 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; }
tr + tr > * { border-top: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { position: relative; height: .8rem; min-width: 4rem; background: var(--line); border-radius: .2rem;
  overflow: hidden; }
.bar i { position: absolute; top: 0; bottom: 0; background: var(--main); }
td.bars { width: 40%; vertical-align: middle; }
td:first-child { min-width: 6rem; }
@media (max-width: 34rem) { td.bars { width: 25%; } .bar { min-width: 2.5rem; }
  td:first-child { min-width: 8rem; } th, td { padding-right: .5rem; } section { padding: .8rem; } }
code { font-size: .92em; overflow-wrap: anywhere; }
figure { margin: .6rem 0; }
svg.drawing { display: block; width: 100%; height: 6rem; background: var(--back); border-radius: .3rem; }
svg.drawing path { fill: none; stroke: var(--main); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
svg.drawing path.later { stroke: var(--faint); }
.ends { display: flex; justify-content: space-between; gap: 1rem; color: var(--soft); font-size: .85rem;
  font-variant-numeric: tabular-nums; }
"""


def document(title: str, body: str, style: str = "") -> str:
    """A whole page, with more style if it needs some; its policy forbids it to load anything.

    >>> "default-src 'none'" in document("A run", "<p>text</p>")
    True
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str, alarm: bool = False, anchor: str = "") -> str:
    """A part of a page, under a heading; links lead to its anchor."""
    mark = (' class="alarm"' if alarm else "") + (f' id="{escape(anchor)}"' if anchor else "")
    return f"<section{mark}>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(text: str, soft: bool = False) -> str:
    """A paragraph of plain text."""
    return f'<p class="soft">{escape(text)}</p>' if soft else f"<p>{escape(text)}</p>"


def bullets(items: Iterable[str]) -> str:
    """A list of plain sentences."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def rows(cells: Iterable[Iterable[str]], heads: Iterable[str] = (), kind: str = "") -> str:
    """A table whose cells are HTML, of a class if one is named; `number` and `number_head` make those to the right."""
    head = "".join(text if text.startswith("<th") else f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in cells)
    opening = f'<table class="{kind}">' if kind else "<table>"
    return f'<div class="wide">{opening}{f"<tr>{head}</tr>" if head else ""}{body}</table></div>'


def _cell(cell: str) -> str:
    return cell if cell.startswith("<td") else f"<td>{cell}</td>"


def number(text: str) -> str:
    """A cell that holds a number."""
    return f'<td class="number">{escape(text)}</td>'


def number_head(text: str) -> str:
    """The head of a column of numbers."""
    return f'<th class="number">{escape(text)}</th>'


def bar(start: float, end: float) -> str:
    """A bar from one share of its width to another; a cell's content, or by itself.

    >>> bar(0.0, 0.25)
    '<div class="bar"><i style="left:0.00%;width:25.00%"></i></div>'
    """
    left, right = (100.0 * min(max(share, 0.0), 1.0) for share in (min(start, end), max(start, end)))
    return f'<div class="bar"><i style="left:{left:.2f}%;width:{right - left:.2f}%"></i></div>'
