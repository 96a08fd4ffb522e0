"""Numbers scaled from a public range to [-1, 1], in one pass. Slow twin: `taciturn.tables.ranges.between`."""

from __future__ import annotations

from typing import Any

from taciturn.kernel.jit import strict


@strict
def scale(numbers: Any, low: float, high: float, out: Any) -> bool:
    """Writes scaled numbers to `out`; whether all of them are finite."""
    width = high - low
    finite = True
    for i in range(len(numbers)):
        number = numbers[i]
        finite &= number - number == 0.0
        within = min(max(number, low), high)
        out[i] = 2.0 * ((within - low) / width) - 1.0
    return finite


@strict
def scale_row(numbers: Any, ranges: Any, places: Any, out: Any) -> float:
    """Writes the numbers of one row, each scaled from its own range, to their places; the sum of their squares.

    `ranges` has, for each number, the lower end, the upper end and the width of its range.
    """
    squares = 0.0
    for i in range(len(numbers)):
        within = min(max(numbers[i], ranges[0, i]), ranges[1, i])
        scaled = 2.0 * ((within - ranges[0, i]) / ranges[2, i]) - 1.0
        out[places[i]] = scaled
        squares += scaled * scaled
    return squares
