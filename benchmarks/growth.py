"""How time and memory grow: with examples (10,000 to 10,000,000), with features (10 to 2,000), with a BLT's buffers.

Each stream runs in a process of its own, planned for its length, in chunks that are made as they come and not kept, nor
are the releases. All settings take turns. Time is of the processor, without making examples; opening a stream, which
plans its noise, is shown apart. Memory is the process's peak. The exponent is the slope of the logarithm of a stream's
median time; of buffers, which add to a step rather than multiply it, there is also the line µs = a + b·buffers.

FTRL without a horizon ends at 8,000,000: its strategy is for 2^23 rounds. PQFTL releases after every 100 examples and
keeps d(d+1)/2 sums, so it ends at 300 features; all others release after every example.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import turns

CHUNK, ENTRIES = 4096, 2**20  # most rows, and most entries, that are handed over at once
STEPWISE = ("PIGD", "PGIGA", "FTRL")
ENDLESS, SUMS = "FTRL without a horizon", "PQFTL, every 100"
LENGTHS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
WIDTHS = (10, 30, 100, 300, 1_000, 2_000)
MOST = {ENDLESS: 8_000_000, SUMS: 300}  # examples of the one, features of the other
PARTS = ("seconds", "opening", "memory")
AXES = {"n": "examples", "d": "features", "buffers": "buffers"}
WANTED = (0.95, 1.05)  # exponents of n, for learners with a horizon


class Stream(NamedTuple):
    """Who learns from how many examples of how many features; 0 buffers are as many as the recipe takes."""

    learner: str
    n: int
    d: int
    buffers: int = 0

    @property
    def repetitions(self) -> int:
        return 5 if self.n <= 1_000_000 else 3


def axes(quick: bool) -> dict[str, list[Stream]]:
    """What is measured along each axis."""
    lengths, widths, buffers = LENGTHS, WIDTHS, range(1, 9)
    if quick:
        lengths, widths, buffers = LENGTHS[:3:2], WIDTHS[:4:3], range(1, 9, 7)
    rows = 5_000 if quick else 20_000
    return {
        "n": [Stream(name, min(n, MOST[name]) if name == ENDLESS else n, 10)
              for n in lengths for name in (*STEPWISE, ENDLESS, SUMS)],
        "d": [Stream(name, rows, d) for d in widths for name in (*STEPWISE, SUMS) if d <= MOST.get(name, d)],
        "buffers": [Stream("FTRL", 10 * rows, 54, count) for count in buffers],
    }  # fmt: skip


# ---- one stream ------------------------------------------------------------------------------------------------


def opened(stream: Stream) -> Any:
    """The learner."""
    from taciturn import BLT, L2Ball, Logistic, Privacy, Problem, Squared, every, pftrl, pgiga, pigd, pqftl

    name, n, d, buffers = stream
    budget = Privacy(1.0, 1e-6)
    if name == SUMS:
        prices = Problem(Squared(), L2Ball(0.5), dimension=d, label_bound=1.0, ridge=1.0)
        return pqftl(prices, budget, n, schedule=every(100))
    clicks = Problem(Logistic(), L2Ball(2.0), dimension=d, ridge=0.01)
    if name in ("PIGD", "PGIGA"):
        return {"PIGD": pigd, "PGIGA": pgiga}[name](clicks, budget, n)
    return pftrl(clicks, budget, None if name == ENDLESS else n, strategy=BLT(buffers) if buffers else None)


def measured(stream: Stream) -> tuple[float, float, float]:
    """Seconds that a stream took, seconds that opening it took before, and the peak of memory in MB."""
    rows = min(CHUNK, ENTRIES // stream.d, stream.n)
    X = np.random.default_rng(0).normal(size=(rows, stream.d)) / math.sqrt(stream.d)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    warm = opened(stream)
    state, _ = warm.run(warm.start(), X[: rows // 2], y[: rows // 2])
    warm.run(state, X[rows // 2 :], y[rows // 2 :])  # compiled code is loaded, also what goes on from a state
    start = time.process_time()
    private = opened(stream)
    for j in range(stream.n.bit_length()):
        private.calibrated.noise_sd(2**j)  # strategies for epochs are fitted as they come
    state, opening, taken = private.start(), time.process_time() - start, 0.0
    while state.t < stream.n:
        more = min(rows, stream.n - state.t)
        examples, labels = np.roll(X[:more], 1, axis=0), y[:more]
        start = time.process_time()
        state, _ = private.run(state, examples, labels)
        taken += time.process_time() - start
    return taken, opening, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def alone(stream: Stream) -> list[float]:
    """The same in a process of its own, on one core."""
    command = [sys.executable, __file__, "--stream", *map(str, stream)]
    return list(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


# ---- what follows from them ------------------------------------------------------------------------------------


def take_turns(streams: Sequence[Stream], repetitions: int, console: Console) -> dict[Stream, list[list[float]]]:
    """Every stream once, then again: a busy minute is nobody's alone."""
    due = [one for turn in range(repetitions) for one in streams if turn < one.repetitions]
    found: dict[Stream, list[list[float]]] = {one: [] for one in streams}
    for one in track(due, "streams", console=console):
        found[one].append(alone(one))
    return found


def exponent(at: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log time against log size."""
    return float(np.polyfit(np.log(at), np.log(seconds), 1)[0])


def summary(axis: str, found: dict[Stream, list[list[float]]]) -> dict[str, dict[str, Any]]:
    """For each learner: where it was measured, every repetition there, and how time grows."""
    made: dict[str, dict[str, Any]] = {}
    for stream, runs in found.items():
        one = made.setdefault(stream.learner, {"at": [], "rows": [], **{part: [] for part in PARTS}})
        one["at"].append(getattr(stream, axis))
        one["rows"].append(stream.n)
        for part, values in zip(PARTS, zip(*runs, strict=True), strict=True):
            one[part].append(list(values))
    for name, one in made.items():
        medians = [float(np.median(each)) for each in one["seconds"]]
        one["exponent"] = exponent(one["at"], medians)
        if axis == "n" and name != ENDLESS:
            low, high = WANTED
            one |= {"wanted": f"{low} to {high}", "met": low <= one["exponent"] <= high}
        if axis == "buffers":
            slope, constant = np.polyfit(one["at"], 1e6 * np.divide(medians, one["rows"]), 1)
            one["line"] = {"a": float(constant), "b": float(slope)}
    return made


# ---- tables ----------------------------------------------------------------------------------------------------


def tables(axis: str, made: dict[str, dict[str, Any]]) -> list[Table]:
    """µs an example with the exponent, seconds of opening, and MB."""
    sizes = sorted({at for one in made.values() for at in one["at"]})
    kinds = {"µs an example": "seconds", "opening, s": "opening", "peak of memory, MB": "memory"}
    shown = []
    for title, part in kinds.items():
        fit = (["exponent", "wanted", "met"] if axis == "n" else ["exponent"]) if part == "seconds" else []
        table = Table(f"{title}, by {AXES[axis]}", *map(short, sizes), *fit)
        for name, one in made.items():
            measured_at = zip(one["at"], one[part], one["rows"], strict=True)
            cells = {at: _cell(part, values, rows) for at, values, rows in measured_at}
            ends = [f"{one['exponent']:.3f}", one.get("wanted", ""), turns.said(one.get("met"))]
            table.add_row(name, *(cells.get(at, "") for at in sizes), *ends[: len(fit)])
        shown.append(table)
    return shown


def short(number: int) -> str:
    """For the head of a column.

    >>> short(300), short(31_623), short(10**7)
    ('300', '32k', '10M')
    """
    unit, letter = (10**6, "M") if number >= 10**6 else (10**3, "k") if number >= 10**4 else (1, "")
    return f"{number / unit:,.3g}{letter}" if number / unit < 10 else f"{number / unit:,.0f}{letter}"


def _cell(part: str, values: list[float], rows: int) -> str:
    middle = float(np.median(values))
    return (
        f"{1e6 * middle / rows:.3g}" if part == "seconds" else f"{middle:.2g}" if part == "opening" else f"{middle:.0f}"
    )


def lines(made: dict[str, dict[str, Any]]) -> list[str]:
    """The line in the number of buffers, in words."""
    return [
        f"{name}: {one['line']['a']:.2f} + {one['line']['b']:.3f}·buffers µs an example."
        for name, one in made.items()
        if "line" in one
    ]


def main() -> None:
    chosen = turns.options(
        __doc__,
        axes={"nargs": "+", "choices": tuple(AXES), "default": tuple(AXES), "help": "what grows; all by default"},
        plot={"type": Path, "metavar": "FILE", "help": "draw it as well (needs matplotlib)"},
        stream={"nargs": 4, "help": argparse.SUPPRESS},
    )
    if chosen.stream:
        turns.settle(plain_memory=True)
        name, *numbers = chosen.stream
        print(json.dumps(measured(Stream(name, *map(int, numbers)))))
        return
    if chosen.plot:
        from taciturn.reproduce.plots import check_file

        check_file(chosen.plot)
    console, due = Console(stderr=chosen.json), axes(chosen.quick)
    every = [stream for axis in chosen.axes for stream in due[axis]]
    found = take_turns(every, 1 if chosen.quick else 5, console)
    made = {axis: summary(axis, {stream: found[stream] for stream in due[axis]}) for axis in chosen.axes}
    record = turns.surroundings("taciturn", "numpy", "numba") | {"unit": "seconds of the processor, MB", "axes": made}
    shown = [each for axis, one in made.items() for each in (*tables(axis, one), *lines(one))]
    turns.save("growth", record, chosen, console, *shown)
    if chosen.plot:
        from growth_picture import draw

        draw(record, chosen.plot)


if __name__ == "__main__":
    main()
