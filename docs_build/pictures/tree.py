"""The binary tree of partial sums, as the code that runs has it."""

from __future__ import annotations

import numpy as np

from docs_build.pictures import Picture
from docs_build.svg import COLOURS, box, drawing, line, text
from tacit.mechanisms.tree import TreeCoder

ROWS, EXAMPLE, SUM = 8, 3, 7
CELL, RISE, TALL = 56.0, 58.0, 30.0


def tree() -> Picture:
    """Eight rows: the nodes that one example is in, and those that one sum is made of."""
    B, C = TreeCoder(ROWS, refined=False).matrices(ROWS)
    nodes = [tuple(np.flatnonzero(row) + 1) for row in C]
    holds = [EXAMPLE in node for node in nodes]
    used = [bool(weight) for weight in B[SUM - 1]]
    parts = [_edge(child, parent) for child in nodes for parent in nodes if _below(child, parent)]
    parts += [_node(node, *marks) for node, *marks in zip(nodes, holds, used, strict=True)]
    words = " + ".join(_name(node) for node, part in sorted(zip(nodes, used, strict=True)) if part)
    caption = (
        f"Every node is a partial sum with noise of its own. Example {EXAMPLE} is in {sum(holds)} of them (filled), one "
        f"at each height, and so moves {sum(holds)} numbers, not {ROWS}. The sum after {SUM} examples is that of the "
        f"{sum(used)} nodes with a thick border, {words}: it has the noise of {sum(used)}, not of {SUM}."
    )
    alt = f"A binary tree over {ROWS} examples; the path of example {EXAMPLE} is filled, and {words} are framed."
    return Picture(drawing(ROWS * CELL, 4 * RISE - 20.0, alt, *parts), caption)


def _below(child: tuple[int, ...], parent: tuple[int, ...]) -> bool:
    return len(parent) == 2 * len(child) and child[0] in parent


def _name(node: tuple[int, ...]) -> str:
    return f"{node[0]}" if len(node) == 1 else f"{node[0]}–{node[-1]}"


def _place(node: tuple[int, ...]) -> tuple[float, float]:
    """The middle of a node: above its rows, as high as it is large."""
    height = len(node).bit_length() - 1
    return ((node[0] + node[-1]) / 2 - 0.5) * CELL, (3 - height) * RISE + TALL / 2 + 4.0


def _edge(child: tuple[int, ...], parent: tuple[int, ...]) -> str:
    on_path = EXAMPLE in child
    return line([_place(child), _place(parent)], "a" if on_path else "faint", 2.0 if on_path else 1.0)


def _node(node: tuple[int, ...], holds: bool, used: bool) -> str:
    (x, y), width = _place(node), 44.0
    fill, ink = (COLOURS["a"], COLOURS["paper"]) if holds else (COLOURS["paper"], COLOURS["ink"])
    colour, thick = ("b", 4.0) if used else ("a" if holds else "ink", 1.2)
    frame = box(x - width / 2, y - TALL / 2, width, TALL, colour, fill=fill, stroke_width=thick)
    return frame + text(x, y + 5.0, _name(node), fill=ink)
