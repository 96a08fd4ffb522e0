"""The page of the evidence: every experiment that a folder holds, with its figure, tables, settings and budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from taciturn.report.grids import Grid
from taciturn.report.inline_svg import inline_svg
from taciturn.report.page import bullets, document, number, number_head, paragraph, rows, section

TITLE = "Differentially private online learning: the evidence"
NOT_PRIVATE = (
    "Seeded simulations, judged on exact data: not private. A budget is what the same settings guarantee with noise "
    "that is secret, and it is exact: the epsilon that all that is published delivers at this delta."
)
_STYLE = """
figure.plot, .wide { overflow-x: auto; }
figure.plot svg { display: block; width: 100%; min-width: 44rem; height: auto; }
table.grid { font-size: .9rem; width: auto; }
table.grid th, table.grid td { white-space: nowrap; padding: .15rem .9rem .15rem 0; }
table.grid td:first-child { min-width: 0; }
table.contents { font-size: inherit; }
table.contents td:first-child { white-space: normal; min-width: 11rem; }
.bad { color: var(--alarm); }
.strong { font-weight: 700; }
td.soft { font-size: inherit; }
main { max-width: 72rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--main); }
a { color: var(--main); }
section { scroll-margin-top: 1rem; }
"""


@dataclass(frozen=True)
class Part:
    """An experiment as the page shows it: plain data.

    Attributes
    ----------
    name, quick : str, bool
        Which experiment, and whether it is its short version.
    version, command : str
        The version of `taciturn` that made it, and how to make it again.
    runs, seconds : int, float
        How many runs it took, and how much processor time.
    title, caption, paper : str
        What it is, what to see, and what the paper printed.
    settings : sequence of (str, str)
        Names and values.
    shown : sequence of Grid or str
        Tables and sentences for people.
    everything : Grid, optional
        All rows, unless they are too many for a page.
    picture : str
        The text of an SVG file, or nothing.

    Examples
    --------
    >>> part = Part("errata", False, "0.1.0", "taciturn reproduce errata", 3, 0.5, "Errata", "", "", [], ["None left."])
    >>> '<section id="errata">' in evidence_page([part])
    True
    """

    name: str
    quick: bool
    version: str
    command: str
    runs: int
    seconds: float
    title: str
    caption: str
    paper: str
    settings: Sequence[tuple[str, str]]
    shown: Sequence[Grid | str]
    everything: Grid | None = None
    picture: str = ""

    @property
    def stem(self) -> str:
        """The name of its files."""
        return f"{self.name}-quick" if self.quick else self.name

    @property
    def seeds(self) -> str:
        """Those of its runs; what is computed without chance has none."""
        return dict(self.settings).get("seed", "none")

    @property
    def heading(self) -> str:
        """Its title; a short version says so."""
        return f"{self.title or self.name}{' (quick)' if self.quick else ''}"


def evidence_page(parts: Sequence[Part], missing: Mapping[str, str] | None = None) -> str:
    """The page as HTML.

    Parameters
    ----------
    parts : sequence of Part
        In the order of the page.
    missing : mapping of str to str, optional
        Experiments that are not on it, and what they are.
    """
    head = [
        f"<h1>{escape(TITLE)}</h1>",
        paragraph(
            "The figures and tables of Jain, Kothari and Thakurta, Differentially Private Online Learning (2012), made "
            "again, beside what corrected and newer algorithms reach at the same budget."
        ),
        _contents(parts, missing or {}),
    ]
    return document(TITLE, "\n".join([*head, *map(_part, parts)]), _STYLE)


def _contents(parts: Sequence[Part], missing: Mapping[str, str]) -> str:
    cells = [
        (
            f'<a href="#{escape(part.stem)}">{escape(part.heading)}</a>',
            number(f"{part.runs:,}"),
            escape(part.seeds),
            number(spelled(part.seconds)),
            escape(part.version),
            f"<code>{escape(part.command)}</code>",
        )
        for part in parts
    ]
    heads = ("experiment", number_head("runs"), "seeds", number_head("processor time"), "taciturn", "to make it again")
    lacking = [f"{name}: {what}" for name, what in missing.items()]
    return section(
        "Contents",
        rows(cells, heads, "grid contents"),
        paragraph(
            f"{spelled(sum(part.seconds for part in parts))} of processor time in all, shared by the cores. taciturn "
            "reproduce all makes everything again; the same seeds give the same numbers."
        ),
        paragraph(NOT_PRIVATE),
        *(
            [paragraph("Not in this folder; taciturn reproduce makes them by name:"), bullets(lacking)]
            if lacking
            else []
        ),
    )


def _part(part: Part) -> str:
    return section(
        part.heading,
        _figure(part),
        f"<p><b>In the paper.</b> {escape(part.paper)}</p>" if part.paper else "",
        *(one.html() if isinstance(one, Grid) else paragraph(one, soft=True) for one in part.shown),
        _folded("Settings", rows([(escape(name), escape(value)) for name, value in part.settings])),
        _folded("Every row", part.everything.html()) if part.everything else "",
        _origin(part),
        anchor=part.stem,
    )


def _figure(part: Part) -> str:
    if not part.picture:
        return paragraph(part.caption)
    drawn = inline_svg(part.picture, part.stem, f"{part.heading}. {part.caption}")
    return f'<figure class="plot">{drawn}</figure>\n<p><b>What to see.</b> {escape(part.caption)}</p>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{body}\n</details>"


def _origin(part: Part) -> str:
    files = ", ".join(f"{part.stem}.{ending}" for ending in ("csv", "json", "png", "svg"))
    time = spelled(part.seconds)
    made = f"{part.runs:,} runs, seeds {part.seeds}, by taciturn {part.version}, {time} of processor time."
    return (
        f'<p class="soft">{"A quick version" if part.quick else "In full"}: {escape(made)} Beside this page: '
        f"{escape(files)}. To make it again: <code>{escape(part.command)}</code></p>"
    )


def spelled(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> spelled(0.02), spelled(75.0), spelled(7000.0)
    ('0.02 s', '75 s', '117 min')
    """
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds / 60.0:.0f} min"
