"""The life of an example: what is secret, what is public, and what goes back."""

from __future__ import annotations

from docs_build.pictures import Picture
from docs_build.svg import COLOURS, box, drawing, line, tag, text

STEPS = (("Problem", "clips it"), ("Learner", "statistic"), ("Mechanism", "adds noise"))


def wiring() -> Picture:
    """Examples in, models out, a wall between."""
    parts = [
        tag("rect", x=2, y=2, width=300, height=176, rx=8, fill=COLOURS["b"], fill_opacity="0.10"),
        tag("rect", x=306, y=2, width=152, height=176, rx=8, fill=COLOURS["a"], fill_opacity="0.10"),
        text(14.0, 24.0, "trusted side", "start", 12.0),
        text(446.0, 24.0, "public side", "end", 12.0),
        line([(304, 2), (304, 178)], "ink", 2.0, stroke_dasharray="5 4"),
    ]
    for i, (name, does) in enumerate(STEPS):
        parts.append(_step(14.0 + 96.0 * i, name, does, "b"))
    parts += [_step(318.0, "Learner", "decides", "a"), text(432.0, 108.0, "models", size=12.0)]
    parts += [_arrow(94.0 + 96.0 * i, 110.0 + 96.0 * i, 76.0) for i in range(2)]
    parts += [_arrow(286.0, 318.0, 76.0), _arrow(398.0, 446.0, 76.0), text(54.0, 46.0, "examples", size=12.0)]
    parts.append(line([(358, 98), (358, 146), (150, 146), (150, 104)], "c", 2.0))
    parts.append(_head(150.0, 102.0, "c", up=True))
    parts.append(text(296.0, 164.0, "only released models go back", "end", 12.0))
    caption = (
        "Examples come in on the left, one at a time or in blocks. Only noisy statistics, which are charged to the "
        "budget, pass to the public side; all of them together are (epsilon, delta)-differentially private."
    )
    alt = "Problem, learner and mechanism on the trusted side; noisy statistics pass to the public side as models."
    return Picture(drawing(460.0, 182.0, alt, *parts), caption)


def _step(x: float, name: str, does: str, colour: str) -> str:
    frame = box(x, 54.0, 80.0, 44.0, colour, fill=COLOURS["paper"], stroke_width=2.0)
    return frame + text(x + 40.0, 73.0, name, font_weight="bold") + text(x + 40.0, 90.0, does, size=12.0)


def _arrow(start: float, end: float, y: float) -> str:
    return line([(start, y), (end - 4.0, y)], "ink", 2.0) + _head(end, y, "ink")


def _head(x: float, y: float, colour: str, up: bool = False) -> str:
    tail = f"{x - 5},{y + 7} {x + 5},{y + 7}" if up else f"{x - 7},{y - 5} {x - 7},{y + 5}"
    return tag("polygon", points=f"{x},{y} {tail}", fill=COLOURS[colour])
