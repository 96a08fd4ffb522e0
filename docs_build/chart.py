"""Charts: curves over two axes, each of them plain or logarithmic, with a legend below; and bars with their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from docs_build.svg import COLOURS, box, drawing, line, tag, text

WIDTH, HEIGHT = 460.0, 250.0
LEFT, RIGHT, TOP, BELOW = 56.0, 26.0, 12.0, 44.0
DASHES = {"line": None, "dashed": "6 4", "long": "14 4", "dash-dot": "9 3 2 3", "dotted": "2 4", "dots": None}

Style = Literal["line", "dashed", "long", "dash-dot", "dotted", "dots"]


@dataclass(frozen=True)
class Axis:
    """One direction of a chart: what it shows, from where to where.

    >>> Axis("examples", 1, 100, log=True).place(10.0)
    0.5
    >>> Axis("examples", 1, 100, log=True).ticks
    [1.0, 10.0, 100.0]
    >>> Axis("noise", 0, 40).ticks
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """

    label: str
    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where a value lies, between 0 and 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        """Powers of ten, or up to seven round numbers."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**power for power in range(first, last + 1)]
        rough = (self.high - self.low) / 6.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough)
        first, last = math.ceil(self.low / step), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


@dataclass(frozen=True)
class Curve:
    """A named curve, in one of the page's colours; curves differ in how they are drawn, too."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    style: Style = "line"


def label_of(value: float) -> str:
    """A tick's number.

    >>> label_of(0.01), label_of(1000.0), label_of(100000.0), label_of(1e-05), label_of(0.0)
    ('0.01', '1,000', '100,000', '1e-5', '0')
    """
    if value == 0.0 or 1e-3 <= value < 1e6:
        return f"{value:,g}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


def chart(x: Axis, y: Axis, curves: Sequence[Curve], alt: str) -> str:
    """The picture of some curves.

    >>> level = Curve("a level", [1, 10], [2, 2], "a")
    >>> "a level" in chart(Axis("t", 1, 10, log=True), Axis("noise", 0, 4), [level], "A level line")
    True
    """
    legend = 22.0 * math.ceil(len(curves) / 2) + 8.0
    parts = [*_grid(x, y), *(_curve(x, y, curve) for curve in curves), *_legend(curves)]
    return drawing(WIDTH, HEIGHT + legend, alt, *parts)


@dataclass(frozen=True)
class Bar:
    """A named number; a hollow bar is of another kind, which the caption names."""

    name: str
    value: float
    colour: str
    hollow: bool = False


def bars(x: Axis, items: Sequence[Bar], alt: str) -> str:
    """The picture of some numbers, one below the other, their names above them.

    >>> "5.5" in bars(Axis("seconds", 1, 100, log=True), [Bar("one", 5.5, "a")], "One bar")
    True
    """
    step, end = 38.0, WIDTH - 52.0
    bottom = TOP + step * len(items)
    parts = []
    for tick in x.ticks:
        at = 8.0 + x.place(tick) * (end - 8.0)
        parts += [line([(at, TOP), (at, bottom)], "faint", 0.5), text(at, bottom + 16.0, label_of(tick), size=12.0)]
    parts.append(text((8.0 + end) / 2, bottom + 36.0, x.label))
    for i, item in enumerate(items):
        top, length = TOP + step * i, x.place(item.value) * (end - 8.0)
        paint = {"fill": "none" if item.hollow else COLOURS[item.colour], "rx": 2}
        parts.append(text(8.0, top + 12.0, item.name, "start", 12.5))
        parts.append(box(8.0, top + 17.0, length, 14.0, item.colour, **paint))
        parts.append(text(8.0 + length + 6.0, top + 28.5, f"{item.value:.3g}", "start", 12.0))
    return drawing(WIDTH, bottom + 44.0, alt, *parts)


def _across(x: Axis, value: float) -> float:
    return LEFT + x.place(value) * (WIDTH - LEFT - RIGHT)


def _up(y: Axis, value: float) -> float:
    return HEIGHT - BELOW - y.place(value) * (HEIGHT - TOP - BELOW)


def _grid(x: Axis, y: Axis) -> list[str]:
    """Lines at the ticks, their numbers, and the axes' names."""
    bottom, middle = HEIGHT - BELOW, (TOP + HEIGHT - BELOW) / 2
    parts = [
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8.0, x.label),
        text(12.0, middle, y.label, transform=f"rotate(-90 12 {middle:g})"),
    ]
    for tick in x.ticks:
        at = _across(x, tick)
        parts += [line([(at, TOP), (at, bottom)], "faint", 0.5), text(at, bottom + 16.0, label_of(tick), size=12.0)]
    for tick in y.ticks:
        at = _up(y, tick)
        parts.append(line([(LEFT, at), (WIDTH - RIGHT, at)], "faint", 0.5))
        parts.append(text(LEFT - 5.0, at + 4.0, label_of(tick), "end", 12.0))
    return parts


def _curve(x: Axis, y: Axis, curve: Curve) -> str:
    """Within the axes: what lies above or below them is left out."""
    inside = [(a, b) for a, b in zip(curve.x, curve.y, strict=True) if y.low <= b <= y.high and x.low <= a <= x.high]
    points = [(_across(x, float(a)), _up(y, float(b))) for a, b in inside]
    if curve.style != "dots":
        return line(points, curve.colour, 2.0, stroke_dasharray=DASHES[curve.style], stroke_linejoin="round")
    return "".join(_dot(a, b, curve.colour) for a, b in points)


def _dot(x: float, y: float, colour: str) -> str:
    return tag("circle", cx=x, cy=y, r=3.5, fill=COLOURS[colour])


def _legend(curves: Sequence[Curve]) -> list[str]:
    """Names in two columns."""
    parts = []
    for i, curve in enumerate(curves):
        x, y = 8.0 + (i % 2) * (WIDTH / 2), HEIGHT + 14.0 + 22.0 * (i // 2)
        if curve.style == "dots":
            parts.append(_dot(x + 12.0, y - 4.0, curve.colour))
        else:
            sample, dashes = [(x, y - 4.0), (x + 24.0, y - 4.0)], DASHES[curve.style]
            parts.append(line(sample, curve.colour, 2.0, stroke_dasharray=dashes))
        parts.append(text(x + 30.0, y, curve.name, "start", 12.0))
    return parts
