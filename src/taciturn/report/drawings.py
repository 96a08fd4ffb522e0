"""Small drawings for a page: shapes stretch with the page, words stand beneath and do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TypeVar

T = TypeVar("T")
_WIDTH, _HEIGHT = 1000, 100
_POINTS, _TICKS = 400, 150  # the most that are drawn


def ticks(made: Sequence[float], later: Sequence[float], last: float, caption: str) -> str:
    """A tick for each of some rounds, up to `last`; those that are yet to come are faint. Of very many, some.

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
    """Values along the stream, from the least to the largest of them.

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
    """All of them, or so many, evenly, the last among them."""
    count = len(items)
    if count <= most:
        return list(items)
    return [items[(i + 1) * count // most - 1] for i in range(most)]
