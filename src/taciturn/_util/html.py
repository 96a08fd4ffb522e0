"""HTML pages in one file: a template, tables, small charts and inline SVG.

The style is inside the page. A page has no script and no font, and its policy forbids it to load anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeVar
from xml.etree import ElementTree

T = TypeVar("T")

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
    """A page, with additional style; its policy forbids it to load anything.

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
    """A section with a heading; links lead to its anchor."""
    mark = (' class="alarm"' if alarm else "") + (f' id="{escape(anchor)}"' if anchor else "")
    return f"<section{mark}>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(text: str, soft: bool = False) -> str:
    """A paragraph of plain text."""
    return f'<p class="soft">{escape(text)}</p>' if soft else f"<p>{escape(text)}</p>"


def bullets(items: Iterable[str]) -> str:
    """A list of plain text items."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def rows(cells: Iterable[Iterable[str]], heads: Iterable[str] = (), kind: str = "") -> str:
    """A table of HTML cells, of the class `kind`; `number` and `number_head` make cells aligned to the right."""
    head = "".join(text if text.startswith("<th") else f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in cells)
    opening = f'<table class="{kind}">' if kind else "<table>"
    return f'<div class="wide">{opening}{f"<tr>{head}</tr>" if head else ""}{body}</table></div>'


def _cell(cell: str) -> str:
    return cell if cell.startswith("<td") else f"<td>{cell}</td>"


def number(text: str) -> str:
    """A cell with a number."""
    return f'<td class="number">{escape(text)}</td>'


def number_head(text: str) -> str:
    """The head of a column of numbers."""
    return f'<th class="number">{escape(text)}</th>'


def bar(start: float, end: float) -> str:
    """A bar from one fraction of its width to another.

    >>> bar(0.0, 0.25)
    '<div class="bar"><i style="left:0.00%;width:25.00%"></i></div>'
    """
    left, right = (100.0 * min(max(share, 0.0), 1.0) for share in (min(start, end), max(start, end)))
    return f'<div class="bar"><i style="left:{left:.2f}%;width:{right - left:.2f}%"></i></div>'


# ---- cards in a page of another program, such as a notebook ---------------------------------------------------------

_CARD_STYLE = """
.taciturn { box-sizing: border-box; max-width: 46em; margin: .4em 0; padding: .7em 1em; border-radius: .5em;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); font: 14px/1.45 system-ui, sans-serif; }
.taciturn b { font-weight: 600; } .taciturn p { margin: .35em 0; overflow-wrap: anywhere; }
.taciturn .alarm { color: #d32f2f; font-weight: 600; }
.taciturn dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em 1em; margin: .4em 0; }
.taciturn dt { opacity: .7; } .taciturn dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.taciturn .bar { display: flex; height: .9em; margin: .5em 0 .2em; border-radius: .25em; overflow: hidden;
  border: 1px solid color-mix(in srgb, currentColor 40%, transparent); }
.taciturn i { display: inline-block; flex: none; } .taciturn .spent { background: #00897b; }
.taciturn .reserved { background: repeating-linear-gradient(135deg, #00897b 0 .25em, transparent .25em .5em); }
.taciturn .key { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: .15em;
  border: 1px solid color-mix(in srgb, currentColor 40%, transparent); vertical-align: -.05em; }
.taciturn .keys span { margin-right: 1.2em; white-space: nowrap; }
"""


def card(title: str, *parts: str, alarm: bool = False) -> str:
    """A card with a title, for a page that has its own style: it has the page's own text colour, light or dark.

    >>> "<p><b>A &lt;title&gt;</b></p>" in card("A <title>", paragraph("text"))
    True
    """
    mark = ' class="alarm"' if alarm else ""
    body = "\n".join((f"<p{mark}><b>{escape(title)}</b></p>", *parts))
    return f'<div class="taciturn"><style>{_CARD_STYLE}</style>\n{body}\n</div>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of names and values, both plain text.

    >>> facts([("rows", "1,000")])
    '<dl><dt>rows</dt><dd>1,000</dd></dl>'
    """
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs) + "</dl>"


def budget_bar(spent: float, reserved: float, epsilon: float, words: Sequence[str]) -> str:
    """A bar of a budget epsilon: what is spent, what is reserved beyond that, and the rest, with words for each.

    `reserved` includes what is spent. Epsilons of costs do not add, so that the shares are of the total so far.

    >>> budget_bar(0.25, 0.5, 1.0, ["spent .25", "reserved .5", "of 1"]).count("25.00%")
    2
    """
    ends = [100.0 * min(max(value / epsilon, 0.0), 1.0) for value in (spent, max(spent, reserved))]
    parts = (("spent", ends[0]), ("reserved", ends[1] - ends[0]))
    shapes = "".join(f'<i class="{kind}" style="width:{share:.2f}%"></i>' for kind, share in parts)
    keys = "".join(
        f'<span><i class="key {kind}"></i>{escape(word)}</span>'
        for kind, word in zip(("spent", "reserved", "left"), words, strict=False)
    )
    label = escape(", ".join(words))
    return f'<div class="bar" role="img" aria-label="{label}">{shapes}</div>\n<p class="keys">{keys}</p>'


# ---- charts of a run: shapes stretch with the page, words below them do not ------------------------------------------

_WIDTH, _HEIGHT = 1000, 100
_POINTS, _TICKS = 400, 150  # at most so many are drawn


def ticks(made: Sequence[float], later: Sequence[float], last: float, caption: str) -> str:
    """Ticks at rounds up to `last`, those of `later` faint; at most 150 of either are drawn.

    >>> "M500 10V90" in ticks([50.0], [100.0], 100.0, "two releases")
    True
    """
    marks = "".join(
        f'<path{kind} d="' + "".join(f"M{_WIDTH * t / last:.4g} 10V90" for t in _some(rounds, _TICKS)) + '"/>'
        for rounds, kind in ((later, ' class="later"'), (made, ""))
        if len(rounds)
    )
    return _figure(marks, ("0", f"{last:,.0f} rows"), caption)


def line(points: Sequence[tuple[float, float]], last: float, caption: str, logarithmic: bool = False) -> str:
    """A curve of values along the stream, scaled from the least to the largest.

    >>> line([(0.0, 1.0), (10.0, 3.0)], 10.0, "rises").count("<path")
    1
    """
    points = _some(points, _POINTS)
    heights = [math.log(y) if logarithmic else y for _, y in points]
    low, high = min(heights), max(heights)
    places = [
        (_WIDTH * x / last, 90.0 - 80.0 * ((y - low) / (high - low) if high > low else 0.5))
        for (x, _), y in zip(points, heights, strict=True)
    ]
    path = "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in places)
    values = [y for _, y in points]
    ends = (f"least {min(values):.4g}, largest {max(values):.4g}", f"{last:,.0f} rows")
    return _figure(f'<path d="{path}"/>', ends, caption)


def _figure(shapes: str, ends: tuple[str, str], caption: str) -> str:
    left, right = map(escape, ends)
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption>"
        f'<svg class="drawing" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(caption)}">{shapes}</svg>'
        f'<div class="ends"><span>{left}</span><span>{right}</span></div></figure>'
    )


def _some(items: Sequence[T], most: int) -> list[T]:
    """At most so many of the items, evenly spaced, with the last."""
    count = len(items)
    if count <= most:
        return list(items)
    return [items[(i + 1) * count // most - 1] for i in range(most)]


# ---- pictures of matplotlib inside a page ----------------------------------------------------------------------------

_GREY = re.compile(r"#(?P<level>[0-9a-f]{2})(?P=level)(?P=level)\b", re.IGNORECASE)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline_svg(text: str, prefix: str, label: str) -> str:
    """The `<svg>` element of a file, for a page with several of them.

    Its ids and the references to them get the prefix: matplotlib uses the same ids in every picture, and ids of a page
    are unique. Greys become mixtures of the page's `--ink` and `--card`, so that pictures follow a dark page. Metadata
    and comments, which contain addresses of other hosts, and style that would apply to the entire page are removed.

    Parameters
    ----------
    text : str
        Content of the file.
    prefix : str
        Prefix of the ids, unique on the page.
    label : str
        Text for screen readers.

    Examples
    --------
    >>> file = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path id="a" style="fill: #ffffff"/></svg>'
    >>> print(inline_svg(file, "one", "nothing"))
    <svg viewBox="0 0 9 9" fill="var(--ink)" stroke-linejoin="round" role="img" aria-label="nothing"><path id="one-a"
    style="fill: color-mix(in srgb, var(--ink) 0%, var(--card))" /></svg>
    """
    root = ElementTree.fromstring(text)
    _without(root, ("metadata", "style"))
    for element in root.iter():
        element.tag = _plain(element.tag)
        for name in list(element.attrib):
            value = _of_the_page(_plain(name), element.attrib.pop(name), prefix)
            element.set(_plain(name), value)
    kept = {"viewBox": root.get("viewBox", ""), "fill": "var(--ink)", "stroke-linejoin": "round", "role": "img"}
    opening = " ".join(f'{name}="{escape(value)}"' for name, value in (kept | {"aria-label": label}).items())
    shapes = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    return f"<svg {opening}>{shapes}</svg>"


def _without(element: ElementTree.Element, names: tuple[str, ...]) -> None:
    for child in list(element):
        if _plain(child.tag) in names:
            element.remove(child)
        else:
            _without(child, names)


def _plain(name: str) -> str:
    """A name without its namespace, which HTML does not need."""
    return name.rpartition("}")[2]


def _of_the_page(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return f"#{prefix}-{value[1:]}" if value.startswith("#") else value
    return _GREY.sub(_mixture, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))


def _mixture(grey: re.Match[str]) -> str:
    ink = 100.0 * (1.0 - int(grey["level"], 16) / 255.0)
    return f"color-mix(in srgb, var(--ink) {ink:.3g}%, var(--card))"
