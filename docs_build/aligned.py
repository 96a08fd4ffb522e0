"""Printed tables on the pages: blocks whose columns are aligned are marked, so that phones do not wrap their lines."""

from __future__ import annotations

import re

_BLOCK = re.compile(
    r'<div class="(?P<classes>language-(?:console|text prints)) highlight">(?P<code><pre>.*?</pre>)', re.S
)
_TABLE = re.compile("┃|│")
_COLUMNS = re.compile(r"\S {3,}\S")


def marked(html: str) -> str:
    r"""The page with the class `aligned` at blocks that print a table: a frame, or what code prints in columns.

    >>> marked('<div class="language-console highlight"><pre>$ show\n┃ a ┃ b ┃</pre></div>')
    '<div class="language-console aligned highlight"><pre>$ show\n┃ a ┃ b ┃</pre></div>'
    """
    return _BLOCK.sub(_mark, html)


def _mark(block: re.Match[str]) -> str:
    code = block["code"]
    table = _TABLE.search(code) or ("prints" in block["classes"] and _COLUMNS.search(code))
    return f'<div class="{block["classes"]}{" aligned" if table else ""} highlight">{code}'
