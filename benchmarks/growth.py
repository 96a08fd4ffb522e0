"""Growth of time and memory with examples (10,000 to 10,000,000), features (10 to 2,000) and buffers of a BLT.

Each stream runs in a process of its own, planned for its length, in chunks that are generated and not stored, nor are
the releases. All settings take turns. Times are CPU times without the generation of examples; opening a stream, which
plans its noise, is shown separately. Memory is the peak of the process. The exponent is the slope of the logarithm of
the median time; for buffers, which add to a step rather than multiply it, there is also the line µs = a + b·buffers.

FTRL without a horizon ends at 8,000,000: its strategy is for 2^23 rounds. PQFTL releases after every 100 examples and
has d(d+1)/2 sums, so it ends at 300 features; all others release after every example.
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

from runner import environment, parse_options, save, use_one_core, yes_or_no

CHUNK = 4096  # most rows per call
ENTRIES = 2**20  # most entries per call
STEPWISE = ("PIGD", "PGIGA", "FTRL")
ENDLESS = "FTRL without a horizon"
SUMS = "PQFTL, every 100"
LENGTHS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
WIDTHS = (10, 30, 100, 300, 1_000, 2_000)
MOST = {ENDLESS: 8_000_000, SUMS: 300}  # examples of the one, features of the other
PARTS = ("seconds", "opening", "memory")
AXES = {"n": "examples", "d": "features", "buffers": "buffers"}
TARGET = (0.95, 1.05)  # exponent of n, for learners with a horizon


class Stream(NamedTuple):
    """A learner, and its numbers of examples, features and buffers; 0 buffers are the recipe's default."""

    learner: str
    n: int
    d: int
    buffers: int = 0

    @property
    def repetitions(self) -> int:
        return 5 if self.n <= 1_000_000 else 3


def axes(quick: bool) -> dict[str, list[Stream]]:
    """The streams of each axis."""
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
    """The learner of a stream."""
    from streams import BUDGET
    from taciturn import BLT, L2Ball, Logistic, Problem, Squared, every, pftrl, pgiga, pigd, pqftl

    name, n, d, buffers = stream
    if name == SUMS:
        prices = Problem(Squared(), L2Ball(0.5), dimension=d, label_bound=1.0, ridge=1.0)
        return pqftl(prices, BUDGET, n, schedule=every(100))
    clicks = Problem(Logistic(), L2Ball(2.0), dimension=d, ridge=0.01)
    if name in ("PIGD", "PGIGA"):
        return {"PIGD": pigd, "PGIGA": pgiga}[name](clicks, BUDGET, n)
    return pftrl(clicks, BUDGET, None if name == ENDLESS else n, strategy=BLT(buffers) if buffers else None)


def measured(stream: Stream) -> tuple[float, float, float]:
    """CPU seconds of a stream, CPU seconds to open it, and peak memory in MB."""
    rows = min(CHUNK, ENTRIES // stream.d, stream.n)
    X = np.random.default_rng(0).normal(size=(rows, stream.d)) / math.sqrt(stream.d)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    warm = opened(stream)
    state, _ = warm.run(warm.start(), X[: rows // 2], y[: rows // 2])
    warm.run(state, X[rows // 2 :], y[rows // 2 :])  # loads compiled code, also that which continues from a state
    start = time.process_time()
    private = opened(stream)
    private.calibrated.noise_sd(1)
    state = private.start()
    opening = time.process_time() - start
    taken = 0.0
    while state.t < stream.n:
        more = min(rows, stream.n - state.t)
        examples, labels = np.roll(X[:more], 1, axis=0), y[:more]
        start = time.process_time()
        state, _ = private.run(state, examples, labels)
        taken += time.process_time() - start
    return taken, opening, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def measured_in_process(stream: Stream) -> list[float]:
    """The same in a process of its own, on one core."""
    command = [sys.executable, __file__, "--stream", *map(str, stream)]
    return list(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


# ---- exponents -------------------------------------------------------------------------------------------------


def take_turns(streams: Sequence[Stream], repetitions: int, console: Console) -> dict[Stream, list[list[float]]]:
    """Run every stream once, then again, so that a busy minute affects all of them."""
    due = [one for turn in range(repetitions) for one in streams if turn < one.repetitions]
    results: dict[Stream, list[list[float]]] = {one: [] for one in streams}
    for one in track(due, "streams", console=console):
        results[one].append(measured_in_process(one))
    return results


def exponent(at: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log time against log size."""
    return float(np.polyfit(np.log(at), np.log(seconds), 1)[0])


def summary(axis: str, results: dict[Stream, list[list[float]]]) -> dict[str, dict[str, Any]]:
    """For each learner: its sizes, every repetition at each size, and the growth of its time."""
    made: dict[str, dict[str, Any]] = {}
    for stream, runs in results.items():
        one = made.setdefault(stream.learner, {"at": [], "rows": [], **{part: [] for part in PARTS}})
        one["at"].append(getattr(stream, axis))
        one["rows"].append(stream.n)
        for part, values in zip(PARTS, zip(*runs, strict=True), strict=True):
            one[part].append(list(values))
    for name, one in made.items():
        medians = [float(np.median(each)) for each in one["seconds"]]
        one["exponent"] = exponent(one["at"], medians)
        if axis == "n" and name != ENDLESS:
            low, high = TARGET
            one |= {"target": f"{low} to {high}", "met": low <= one["exponent"] <= high}
        if axis == "buffers":
            slope, constant = np.polyfit(one["at"], 1e6 * np.divide(medians, one["rows"]), 1)
            one["line"] = {"a": float(constant), "b": float(slope)}
    return made


# ---- tables and the picture ------------------------------------------------------------------------------------


def tables(axis: str, made: dict[str, dict[str, Any]]) -> list[Table]:
    """Time per example with the exponent, seconds to open, and MB."""
    sizes = sorted({at for one in made.values() for at in one["at"]})
    kinds = {"µs per example": "seconds", "opening, s": "opening", "peak memory, MB": "memory"}
    shown = []
    for title, part in kinds.items():
        fit = (["exponent", "target", "met"] if axis == "n" else ["exponent"]) if part == "seconds" else []
        table = Table(f"{title}, by {AXES[axis]}", *map(short, sizes), *fit)
        for name, one in made.items():
            measured_at = zip(one["at"], one[part], one["rows"], strict=True)
            cells = {at: _cell(part, values, rows) for at, values, rows in measured_at}
            ends = [f"{one['exponent']:.3f}", one.get("target", ""), yes_or_no(one.get("met"))]
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
    median = float(np.median(values))
    if part == "seconds":
        return f"{1e6 * median / rows:.3g}"
    return f"{median:.2g}" if part == "opening" else f"{median:.0f}"


def lines(made: dict[str, dict[str, Any]]) -> list[str]:
    """The fitted line in the number of buffers, as a sentence."""
    return [
        f"{name}: {one['line']['a']:.2f} + {one['line']['b']:.3f}·buffers µs per example."
        for name, one in made.items()
        if "line" in one
    ]


def draw(record: dict[str, Any], path: Path) -> None:
    """Save a picture with a panel for each axis: time per example. `record` is the content of `growth.json`."""
    from taciturn.reproduce.plots import Curve, Panel, save_panels

    panels = []
    for axis, learners in record["axes"].items():
        curves = {}
        for name, one in learners.items():
            per_example = 1e6 * np.divide([np.median(seconds) for seconds in one["seconds"]], one["rows"])
            line = one["line"]["a"] + one["line"]["b"] * np.array(one["at"]) if "line" in one else ()
            curves[name] = Curve(one["at"], per_example, expected=line)
        labels = {name: f"{name} (exponent {one['exponent']:.2f})" for name, one in learners.items()}
        scale = "linear" if axis == "buffers" else "log"
        panels.append(Panel("", AXES[axis], f"µs per example, by {AXES[axis]}", curves, scale, scale, labels=labels))
    save_panels([panels], "Growth of the time per example", path, warning=False)


def main() -> None:
    chosen = parse_options(
        __doc__,
        axes={"nargs": "+", "choices": tuple(AXES), "default": tuple(AXES), "help": "axes to measure; default: all"},
        plot={"type": Path, "metavar": "FILE", "help": "draw a picture (needs matplotlib)"},
        stream={"nargs": 4, "help": argparse.SUPPRESS},
    )
    if chosen.stream:
        use_one_core(plain_memory=True)
        name, *numbers = chosen.stream
        print(json.dumps(measured(Stream(name, *map(int, numbers)))))
        return
    if chosen.plot:
        from taciturn.reproduce.plots import check_file

        check_file(chosen.plot)
    console = Console(stderr=chosen.json)
    streams = axes(chosen.quick)
    results = take_turns([each for axis in chosen.axes for each in streams[axis]], 1 if chosen.quick else 5, console)
    made = {axis: summary(axis, {stream: results[stream] for stream in streams[axis]}) for axis in chosen.axes}
    record = environment("taciturn", "numpy", "numba") | {"unit": "CPU seconds, MB", "axes": made}
    shown = [each for axis, one in made.items() for each in (*tables(axis, one), *lines(one))]
    save("growth", record, chosen, console, *shown)
    if chosen.plot:
        draw(record, chosen.plot)


if __name__ == "__main__":
    main()
