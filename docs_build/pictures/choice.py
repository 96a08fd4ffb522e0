"""The rule of `taciturn.plan` as a picture; its ends are what `recommend` says of a problem of that kind."""

from __future__ import annotations

from docs_build.pictures import Picture
from docs_build.svg import box, drawing, line, text
from taciturn import Hinge, L2Ball, Logistic, Privacy, Problem, Squared, Unprovable, WholeSpace
from taciturn.plan import recommend

CASES: dict[str, Problem] = {
    "bounded, squared": Problem(Squared(), L2Ball(1.0), dimension=5, label_bound=1.0),
    "bounded, other": Problem(Hinge(), L2Ball(1.0), dimension=5),
    "free, ridge, smooth": Problem(Logistic(), WholeSpace(), dimension=5, ridge=0.1),
    "free, ridge, kinked": Problem(Hinge(), WholeSpace(), dimension=5, ridge=0.1),
    "free, no ridge": Problem(Logistic(), WholeSpace(), dimension=5),
}


def chosen(case: str) -> str:
    """The method for a case, or that it is rejected.

    >>> chosen("bounded, squared"), chosen("free, no ridge")
    ('pqftl', 'rejected')
    """
    try:
        return recommend(CASES[case], Privacy(1.0, 1e-6), horizon=1_000).method
    except Unprovable:
        return "rejected"


def choice() -> Picture:
    """Three questions and five ends."""
    ends = {case: chosen(case) for case in CASES}
    parts = [
        *_arrow((145, 50), (90, 92), "yes", 22),
        *_arrow((315, 50), (345, 92), "no", -16),
        *_arrow((60, 132), (48, 176), "yes", 22),
        *_arrow((120, 132), (140, 176), "no", -16),
        *_arrow((315, 132), (250, 176), "no", 18),
        *_arrow((365, 132), (375, 176), "yes", -18),
        *_arrow((345, 216), (320, 260), "yes", 20),
        *_arrow((400, 216), (420, 260), "no", -16),
        _question(120, 10, 220, "Is the set bounded?"),
        _question(15, 92, 155, "Squared loss?"),
        _question(265, 92, 160, "Is there a ridge?"),
        _question(300, 176, 150, "Is the loss smooth?"),
        _end(8, 176, ends["bounded, squared"]),
        _end(105, 176, ends["bounded, other"]),
        _end(205, 176, ends["free, no ridge"]),
        _end(280, 260, ends["free, ridge, smooth"]),
        _end(378, 260, ends["free, ridge, kinked"]),
    ]
    caption = "The rule of taciturn.plan. The methods are computed by recommend when this page is built."
    words = "; ".join(f"{case}: {method}" for case, method in ends.items())
    return Picture(drawing(460.0, 306.0, f"A tree of decisions. {words}.", *parts), caption)


def _question(x: float, y: float, width: float, words: str) -> str:
    return box(x, y, width, 40.0) + text(x + width / 2, y + 25.0, words)


def _end(x: float, y: float, method: str) -> str:
    colour = "b" if method == "rejected" else "a"
    words = text(x + 39.0, y + 25.0, method, font_weight="bold")
    return box(x, y, 78.0, 40.0, colour, stroke_width=3.0, rx=20) + words


def _arrow(start: tuple[float, float], end: tuple[float, float], word: str, aside: float) -> list[str]:
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    return [line([start, end], "faint"), text(x - aside, y + 5.0, word, size=12.0)]
