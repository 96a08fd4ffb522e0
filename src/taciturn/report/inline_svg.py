"""A picture of matplotlib's as a part of a page: names of its own, no address in it, and the page's light and dark."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

_GREY = re.compile(r"#(?P<level>[0-9a-f]{2})(?P=level)(?P=level)\b", re.IGNORECASE)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline_svg(text: str, prefix: str, label: str) -> str:
    """The `<svg>` element of a file, to stand in a page beside others.

    Its ids, and whatever points to them, begin with the prefix: matplotlib calls the same glyph by the same name in
    every picture, and a page has one element of a name. Greys become mixtures of the page's `--ink` and `--card`, so
    black is the ink and white the paper of a dark page too. Metadata and comments, the only other hosts' addresses in
    it, and style that would apply to the whole page are left out.

    Parameters
    ----------
    text : str
        The file.
    prefix : str
        Of a name that no other picture of the page has.
    label : str
        What a reader who does not see it is told.

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
    """Without its namespace, which HTML knows by itself."""
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
