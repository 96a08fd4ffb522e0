"""Scalable pictures as text, in the colours of the page that shows them.

Colours are style sheet variables with a fallback, so one picture serves the light and the dark page; lettering is text
in the page's own font, and nothing is fetched from anywhere.
"""

from __future__ import annotations

from html import escape

COLOURS = {
    "ink": "var(--md-default-fg-color, #222)",
    "faint": "var(--md-default-fg-color--lighter, #8888)",
    "paper": "var(--md-default-bg-color, #fff)",
    "a": "var(--taciturn-a, #00796b)",
    "b": "var(--taciturn-b, #c2410c)",
    "c": "var(--taciturn-c, #5b4bc4)",
    "d": "var(--taciturn-d, #8a6d00)",
    "e": "var(--taciturn-e, #a3256c)",
}


def number(value: float) -> str:
    """A coordinate, to a tenth of a unit.

    >>> number(3.0), number(2.25)
    ('3', '2.2')
    """
    return f"{value:.1f}".removesuffix(".0")


def tag(name: str, *children: str, **attributes: object) -> str:
    """An element; underscores in names of attributes become hyphens, and `None` leaves one out.

    >>> tag("rect", width=3.0, stroke_width=1.25, fill=None)
    '<rect width="3" stroke-width="1.2"/>'
    >>> tag("text", "a < b")
    '<text>a < b</text>'
    """
    texts = {k: number(v) if isinstance(v, float) else str(v) for k, v in attributes.items() if v is not None}
    head = " ".join([name, *(f'{k.rstrip("_").replace("_", "-")}="{escape(v)}"' for k, v in texts.items())])
    return f"<{head}>{''.join(children)}</{name}>" if children else f"<{head}/>"


def text(x: float, y: float, words: str, anchor: str = "middle", size: float = 13.0, **attributes: object) -> str:
    """Words at a place, on the line y.

    >>> text(1, 2, "1 < 2", fill="red")
    '<text x="1" y="2" font-size="13" text-anchor="middle" fill="red">1 &lt; 2</text>'
    """
    attributes = {"fill": COLOURS["ink"], **attributes}
    return tag("text", escape(words), x=x, y=y, font_size=size, text_anchor=anchor, **attributes)


def line(points: list[tuple[float, float]], colour: str = "ink", width: float = 1.5, **attributes: object) -> str:
    """A line through points.

    >>> line([(0, 0), (1, 2)], width=2.0)
    '<polyline points="0,0 1,2" fill="none" stroke="var(--md-default-fg-color, #222)" stroke-width="2"/>'
    """
    path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    attributes = {"fill": "none", "stroke": COLOURS[colour], "stroke_width": width, **attributes}
    return tag("polyline", points=path, **attributes)


def box(x: float, y: float, width: float, height: float, colour: str = "ink", **attributes: object) -> str:
    """An empty rectangle with round corners.

    >>> "rx=" in box(0, 0, 10, 5)
    True
    """
    attributes = {"fill": "none", "stroke": COLOURS[colour], "stroke_width": 1.5, "rx": 4, **attributes}
    return tag("rect", x=x, y=y, width=width, height=height, **attributes)


def drawing(width: float, height: float, alt: str, *parts: str) -> str:
    """The whole picture: it scales with the page, and says what it shows to those who do not see it.

    >>> drawing(10, 5, "A line", line([(0, 0), (1, 1)])).startswith('<svg viewBox="0 0 10 5"')
    True
    """
    box = f"0 0 {number(width)} {number(height)}"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=alt, xmlns="http://www.w3.org/2000/svg")
