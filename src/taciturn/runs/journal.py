"""`models.jsonl`: one line per release, in order, each written once.

A line holds `k` (number of the release), `t` (number of examples seen), `noise_sd` (standard deviation of the noise on
an entry of the release), `model` (the point to use) and, if models are averages, `point` (the released point itself);
in a seeded run also `"simulated": true`. All of it is public. A point has an entry for each feature, in the order of
the contract, and one for the constant of the intercept; with several classes, the points of the classes are
concatenated.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from taciturn._util.arrays import Array
from taciturn._util.atomic import Entry
from taciturn.averages import late_averages
from taciturn.core.release import Releases
from taciturn.errors import StateConflict
from taciturn.plan import Plan
from taciturn.runs.files import write_at


def lines_of(plan: Plan, releases: Releases, model: Array) -> bytes:
    r"""The lines of consecutive releases; `model` is the model in use before them.

    >>> from taciturn.estimators.settings import Settings
    >>> plan = Settings("squared", epsilon=1.0, feature_bound=1.0, label_bound=1.0).plan(dimension=2, horizon=9)
    >>> one = np.array([[0.5, 0.25, 0.0]])
    >>> lines_of(plan, Releases(np.array([4]), 1, one, one, np.array([2.0]), False), np.zeros(3))
    b'{"k": 1, "t": 4, "noise_sd": 2.0, "model": [0.5, 0.25, 0.0]}\n'
    """
    models = models_to_use(plan, releases, model).tolist()
    points = releases.points.tolist() if plan.averages else [None] * len(releases)
    numbers = range(releases.first, releases.first + len(releases))
    rows = zip(numbers, releases.rounds.tolist(), releases.noise_sd.tolist(), models, points, strict=True)
    return "".join(_line(*row, releases.simulated) for row in rows).encode()


def _line(k: int, t: int, noise_sd: float, model: list[float], point: list[float] | None, simulated: bool) -> str:
    line: dict[str, Any] = {"k": k, "t": t, "noise_sd": noise_sd, "model": model}
    if point is not None:
        line["point"] = point
    if simulated:
        line["simulated"] = True
    return json.dumps(line) + "\n"


def models_to_use(plan: Plan, releases: Releases, model: Array) -> Array:
    """The model to use after each of these releases, one row each."""
    if not plan.averages:
        return releases.points
    if releases.first == 1:
        return late_averages(releases)
    return late_averages(releases, model, plan.private.timetable.due(releases.first - 1) or 0)


def replay(path: str | os.PathLike[str], written: int, unwritten: bytes, k: int) -> None:
    """Write the lines of the last checkpoint again: the file becomes its first `written` bytes and then `unwritten`.

    The first `written` bytes must end with release `k`. After a crash, any part of `unwritten` may be in the file, or
    blocks of zeros in its place. Anything else is rejected: missing or different lines, and lines of a newer state.
    """
    path = Entry.of(path)
    if path.size < written or _last_number(path, written) != k:
        raise StateConflict(f"{path} does not hold the {k} releases that were written to it. Restore the file.")
    present = np.frombuffer(_part(path, written, len(unwritten) + 2**20), dtype=np.uint8)
    expected = np.frombuffer(unwritten, dtype=np.uint8)
    both = min(len(present), len(expected))
    if ((present[:both] != expected[:both]) & (present[:both] != 0)).any() or present[both:].any():
        raise StateConflict(
            f"{path} holds releases that this state has not made: the state is older than what was released, and would "
            "release the same rounds again. Restore the newest state, or start a new run in another folder, which "
            "spends the budget again."
        )
    if unwritten or len(present):
        write_at(path, written, unwritten)


def last_lines(path: str | os.PathLike[str], count: int) -> list[dict[str, Any]]:
    """The last `count` releases of a file, oldest first; only those in its last 4 MB."""
    path = Entry.of(path)
    size = path.size
    place = max(0, size - 2**22)
    lines = _part(path, place, size - place).split(b"\n")[:-1]
    return [json.loads(line) for line in (lines[1:] if place else lines)[-count:]]


def _last_number(path: Entry, end: int) -> int | None:
    """The number of the release whose line ends at byte `end`; None if there is none."""
    if end == 0:
        return 0
    step = 2**16
    while True:
        text = _part(path, max(0, end - step), min(step, end))
        start = text.rfind(b"\n", 0, len(text) - 1) + 1
        if start or step >= end:
            break
        step *= 4
    try:
        return int(json.loads(text[start:])["k"]) if text.endswith(b"\n") else None
    except (ValueError, KeyError, TypeError):
        return None


def _part(path: Entry, place: int, size: int) -> bytes:
    if not path.exists():
        return b""
    with path.reader() as file:
        file.seek(place, os.SEEK_SET)
        return file.read(size)
