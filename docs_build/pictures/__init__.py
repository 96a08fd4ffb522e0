"""The pictures of the documentation, by name: `<!-- picture: tree -->` on a page becomes one."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape

NAMES = {
    "accuracy": "results",
    "choice": "choice",
    "iterates": "noise",
    "regret": "regret",
    "speed": "results",
    "strategies": "strategies",
    "sums": "noise",
    "tree": "tree",
    "wiring": "wiring",
}
"""Each picture is a function of its name, in one of the modules here."""

MARK = re.compile(r"<!-- picture: (\S+) -->")


@dataclass(frozen=True)
class Picture:
    """A drawing, and the sentence under it that says what to see."""

    svg: str
    caption: str

    @property
    def figure(self) -> str:
        """For a page."""
        return f'<figure class="drawn">{self.svg}<figcaption>{escape(self.caption)}</figcaption></figure>'


@cache
def picture(name: str) -> Picture:
    """The picture of that name; drawn once."""
    if name not in NAMES:
        raise ValueError(f"there is no picture {name!r}. Draw it in docs_build/pictures, and list it there.")
    draw: Callable[[], Picture] = getattr(importlib.import_module(f"{__name__}.{NAMES[name]}"), name)
    return draw()


def illustrated(html: str) -> str:
    """A page with its pictures in the place of their marks."""
    return MARK.sub(lambda mark: picture(mark[1]).figure, html)
