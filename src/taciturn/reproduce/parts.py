"""What an experiment adds to the report, kept as plain data, so that the report is made of all that a folder holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from taciturn.report.evidence import Part, evidence_page
from taciturn.report.grids import Grid, data_grid, said
from taciturn.reproduce.runs import Settings, write_whole

REPORT = "report.html"
_ROWS, _VALUES = 600, 12  # the most that a page shows of a table, and of a setting


def settings_of(plan: Sequence[Settings]) -> list[tuple[str, str]]:
    """The values that each setting takes over all runs.

    >>> settings_of([{"seed": 1, "horizon": 5000}, {"seed": 2, "horizon": 5000}])
    [('seed', '1, 2'), ('horizon', '5,000')]
    """
    taken: dict[str, dict[str, None]] = {}
    for settings in plan:
        for name, value in settings.items():
            taken.setdefault(name, {})[said(value)] = None
    return [(name.replace("_", " "), _listed(list(values))) for name, values in taken.items()]


def _listed(values: Sequence[str]) -> str:
    mark = "; " if any(", " in value for value in values) else ", "
    if len(values) <= _VALUES:
        return mark.join(values)
    return f"{mark.join(values[:3])}{mark}…{mark}{values[-1]} ({len(values)} values)"


def every_row(rows: Sequence[Mapping[str, Any]]) -> Grid | None:
    """All rows as a table, or nothing where a page could not hold them."""
    return data_grid(rows) if 0 < len(rows) <= _ROWS else None


def keep_part(part: Part, folder: Path) -> None:
    """Keep it, but for the picture, which is a file of its own."""
    path = _path(folder, part.stem)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(replace(part, picture=""))))


def read_part(folder: Path, stem: str) -> Part | None:
    """The part of that name, or None if there is none, or its file is damaged."""
    try:
        found = json.loads(_path(folder, stem).read_text(encoding="utf-8"))
        grids = [Grid(**one) if isinstance(one, dict) else str(one) for one in found.pop("shown")]
        everything, _ = found.pop("everything"), found.pop("picture")
        part = Part(shown=grids, everything=everything and Grid(**everything), **found)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    drawn = folder / f"{stem}.svg"
    return replace(part, picture=drawn.read_text(encoding="utf-8")) if drawn.exists() else part


def write_report(folder: Path, summaries: Mapping[str, str]) -> Path:
    """Write the page of what the folder holds, in the order of the summaries, and return where."""
    stems = [(name, f"{name}{ending}") for name in summaries for ending in ("", "-quick")]
    found = {stem: (name, part) for name, stem in stems if (part := read_part(folder, stem))}
    there = {name for name, _ in found.values()}
    missing = {name: summary for name, summary in summaries.items() if name not in there}
    write_whole(folder / REPORT, evidence_page([part for _, part in found.values()], missing))
    return folder / REPORT


def command_of(name: str, quick: bool, seeds: int | None) -> str:
    """What to type to make it again.

    >>> command_of("regret", True, 3)
    'taciturn reproduce regret --quick --seeds 3'
    """
    options = ("--quick" if quick else "", "" if seeds is None else f"--seeds {seeds}")
    return " ".join(filter(None, ("taciturn reproduce", name, *options)))


def _path(folder: Path, stem: str) -> Path:
    return folder / "parts" / f"{stem}.json"
