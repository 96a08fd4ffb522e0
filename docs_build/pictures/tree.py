"""The binary tree of partial sums, as the code that runs has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from docs_build.pictures import Picture
from docs_build.svg import COLOURS, box, drawing, line, text
from taciturn.kernel.mechanisms.tree import TreeCoder

ROWS, EXAMPLE, SUM = 8, 3, 7
CELL, RISE, TALL = 56.0, 58.0, 30.0


@dataclass(frozen=True)
class Node:
    """A partial sum of rows first to last: whether it holds the example, and whether the sum is made of it."""

    first: int
    last: int
    holds: bool
    used: bool

    @property
    def name(self) -> str:
        """Its rows."""
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"

    @property
    def height(self) -> int:
        """0 for a single row."""
        return (self.last - self.first + 1).bit_length() - 1

    @property
    def place(self) -> tuple[float, float]:
        """Its middle: above its rows, as high as it is large."""
        return ((self.first + self.last) / 2 - 0.5) * CELL, (3 - self.height) * RISE + TALL / 2 + 4.0

    def under(self, other: Node) -> bool:
        """Whether the other is its parent."""
        return other.height == self.height + 1 and other.first <= self.first <= other.last


def nodes() -> list[Node]:
    """Those of a tree over eight rows, read off the code that runs."""
    B, C = TreeCoder(ROWS, refined=False).matrices(ROWS)
    rows = [np.flatnonzero(row) + 1 for row in C]
    return [Node(int(r[0]), int(r[-1]), EXAMPLE in r, bool(B[SUM - 1, i])) for i, r in enumerate(rows)]


def tree() -> Picture:
    """Eight rows: the nodes that one example is in, and those that one sum is made of."""
    every = nodes()
    parts = [_edge(child, parent) for child in every for parent in every if child.under(parent)]
    parts += [_box(node) for node in every]
    held, used = sum(node.holds for node in every), sorted((node.first, node.name) for node in every if node.used)
    words = " + ".join(name for _, name in used)
    caption = (
        f"Every node is a partial sum with noise of its own. Example {EXAMPLE} is in {held} of them (filled), one at "
        f"each height, and so moves {held} numbers, not {ROWS}. The sum after {SUM} examples is that of the "
        f"{len(used)} nodes with a thick border, {words}: it has the noise of {len(used)}, not of {SUM}."
    )
    alt = f"A binary tree over {ROWS} examples; the path of example {EXAMPLE} is filled, and {words} are framed."
    return Picture(drawing(ROWS * CELL, 4 * RISE - 20.0, alt, *parts), caption)


def _edge(child: Node, parent: Node) -> str:
    return line([child.place, parent.place], "a" if child.holds else "faint", 2.0 if child.holds else 1.0)


def _box(node: Node) -> str:
    (x, y), width = node.place, 44.0
    fill, ink = (COLOURS["a"], COLOURS["paper"]) if node.holds else (COLOURS["paper"], COLOURS["ink"])
    colour, thick = ("b", 4.0) if node.used else ("a" if node.holds else "ink", 1.2)
    frame = box(x - width / 2, y - TALL / 2, width, TALL, colour, fill=fill, stroke_width=thick)
    return frame + text(x, y + 5.0, node.name, fill=ink)
