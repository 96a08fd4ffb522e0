"""Docstrings as the site shows them: what the reader of numpydoc would misread is said to it more plainly."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import griffe

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.M)
_DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.M)
_SHARED = re.compile(r"^(\w+(?:, \w+)+)((?:\n +.+)+)", re.M)


def plainer(text: str) -> str:
    r"""Examples outside of their section are fenced, and names that share a description have one each.

    Without a fence each `>>>` is a quotation of a quotation of a quotation; names that share a description are all
    given the type of the first.

    >>> plainer("A sum.\n\n>>> 1 + 1\n2")
    'A sum.\n\n```pycon\n>>> 1 + 1\n2\n```'
    >>> plainer("Parameters\n----------\na, b\n    Terms.")
    'Parameters\n----------\na\n    Terms.\nb\n    Terms.'
    """
    starts = [0, *(found.start() for found in _SECTION.finditer(text)), len(text)]
    return "".join(_plainer_section(text[a:b]) for a, b in pairwise(starts))


def _plainer_section(text: str) -> str:
    title = _SECTION.match(text)
    if title and title[1] == "Examples":
        return text
    if title and title[1] in ("Parameters", "Attributes"):
        return _SHARED.sub(lambda found: "\n".join(name + found[2] for name in found[1].split(", ")), text)
    return _DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


class Plainer(griffe.Extension):
    """What mkdocstrings loads to read docstrings so."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a class, a function or an attribute when it is met."""
        if obj.docstring is not None:
            obj.docstring.value = plainer(obj.docstring.value)
