"""Strategies as matrices: what is encoded, what is decoded, and the running sums that they make."""

from __future__ import annotations

from typing import Any

import numpy as np

from docs_build.pictures import Picture
from docs_build.svg import COLOURS, drawing, tag, text
from taciturn import BLT, BinaryTree, SquareRoot
from taciturn.kernel.arrays import Array

ROWS, CELL, GAP = 8, 12.0, 30.0
SHOWN = {"Binary tree": BinaryTree(refined=False), "Square root": SquareRoot(), "BLT, four buffers": BLT()}


def matrices() -> dict[str, tuple[Array, Array]]:
    """B and C of each strategy, read off the code that runs."""
    coders: dict[str, Any] = {name: strategy.coder(ROWS) for name, strategy in SHOWN.items()}
    return {name: coder.matrices(ROWS) for name, coder in coders.items()}


def strategies() -> Picture:
    """B·C = A for three strategies over eight rows."""
    pairs = matrices()
    parts, y = [], 4.0
    for name, (B, C) in pairs.items():
        parts.append(_equation(name, B, C, y))
        y += CELL * len(C) + 50.0
    root, blt = (pairs[name][1] for name in list(SHOWN)[1:])
    longest = [f"{np.linalg.norm(C, axis=0).max():.2f}" for _, C in pairs.values()]
    caption = (
        f"B·C = A for {ROWS} rows; the stronger the colour, the larger the entry. The tree's C has a row for each "
        "node, and every entry is 0 or 1. The other two are square, and their entries decrease with the distance from "
        f"the diagonal. BLT's C is within {np.abs(root - blt).max():.3f} of the square root's here, with four rows of "
        "memory. The largest norm of a column of C, to which the noise is proportional, is "
        f"{longest[0]}, {longest[1]} and {longest[2]}."
    )
    alt = "Heat maps of the matrices B, C and A, lower-triangular ones, for the binary tree, the square root and BLT."
    return Picture(drawing(460.0, y - 24.0, alt, *parts), caption)


def _equation(name: str, B: Array, C: Array, y: float) -> str:
    """One strategy: its name, and three maps side by side."""
    parts, x, middle = [text(8.0, y + 13.0, name, "start", 13.0, font_weight="bold")], 8.0, y + 26.0
    for matrix, letter, sign in ((B, "B", "·"), (C, "C", "="), (np.tri(ROWS), "A", None)):
        parts.append(_map(matrix, x, middle))
        width = CELL * matrix.shape[1]
        parts.append(text(x + width + 8.0, middle + 12.0, letter, "start", 12.0))
        if sign:
            parts.append(text(x + width + GAP / 2 - 3.0, middle + CELL * ROWS / 2 + 4.0, sign, size=18.0))
        x += width + GAP
    return "".join(parts)


def _map(matrix: Array, x: float, y: float) -> str:
    """A frame, and a cell for every entry that is not 0."""
    rows, columns = matrix.shape
    frame = {"x": x, "y": y, "width": CELL * columns, "height": CELL * rows, "stroke_width": 0.8}
    cells = [_cell(x + CELL * j, y + CELL * i, matrix[i, j] / matrix.max()) for i, j in np.argwhere(matrix)]
    return tag("rect", **frame, fill="none", stroke=COLOURS["faint"]) + tag("g", *cells, fill=COLOURS["a"])


def _cell(x: float, y: float, share: float) -> str:
    shade = None if share > 0.999 else f"{0.15 + 0.85 * share:.2f}"
    return tag("rect", x=x + 0.5, y=y + 0.5, width=CELL - 1.0, height=CELL - 1.0, opacity=shade)
