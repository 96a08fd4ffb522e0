"""How time and memory grow with the number of examples: streams of 10,000 to 10,000,000, planned for as many.

Each stream runs in a process of its own, in chunks of 4,096 examples that are made as they come and not kept, nor are
the releases. Time is of the processor, without making examples; opening a stream, which plans its noise, is shown
apart. Memory is the process's peak. The fitted exponent is the slope of log time against log n; streams of up to a
million examples are repeated, medians.
"""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import argparse
import json
import math
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

HERE, CHUNK, FEATURES = Path(__file__).parent, 4096, 10
LEARNERS = ("PIGD", "PGIGA", "FTRL", "FTRL without a horizon", "PQFTL, every 100")
ENDS = {"FTRL without a horizon": 8_000_000}  # its strategy is for 2^23 rounds
PARTS = ("seconds", "opening", "memory")
LENGTHS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)


def stream(learner: str, n: int) -> tuple[float, float, float]:
    """Seconds that a stream took, seconds that opening it took before, and the peak of memory in MB."""
    from tacit import L2Ball, Logistic, Privacy, Problem, Squared, every, pftrl, pgiga, pigd, pqftl

    budget, rng = Privacy(1.0, 1e-6), np.random.default_rng(0)
    clicks = Problem(Logistic(), L2Ball(2.0), dimension=FEATURES, ridge=0.01)
    prices = Problem(Squared(), L2Ball(0.5), dimension=FEATURES, label_bound=1.0, ridge=1.0)
    made = {
        "PIGD": lambda: pigd(clicks, budget, n),
        "PGIGA": lambda: pgiga(clicks, budget, n),
        "FTRL": lambda: pftrl(clicks, budget, n),
        "FTRL without a horizon": lambda: pftrl(clicks, budget),
        "PQFTL, every 100": lambda: pqftl(prices, budget, n, schedule=every(100)),
    }
    X = rng.normal(size=(CHUNK, FEATURES)) / math.sqrt(FEATURES)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    warm = made[learner]()
    warm.run(warm.start(), X, y)  # compiled code is loaded
    start = time.process_time()
    private = made[learner]()
    for j in range(n.bit_length()):
        private.calibrated.noise_sd(2**j)  # strategies for epochs are fitted as they come
    state, opening, taken = private.start(), time.process_time() - start, 0.0
    while state.t < n:
        more = min(CHUNK, n - state.t)
        rows, labels = np.roll(X[:more], 1, axis=0), y[:more]
        start = time.process_time()
        state, _ = private.run(state, rows, labels)
        taken += time.process_time() - start
    return taken, opening, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def alone(learner: str, n: int) -> list[float]:
    """The same in a process of its own, on one core."""
    command = [sys.executable, __file__, "--stream", learner, str(n)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return list(json.loads(done.stdout))


def measured(lengths: tuple[int, ...], console: Console) -> dict[str, dict[str, list[float]]]:
    """Seconds and MB of every learner and length."""
    found: dict[str, dict[str, list[float]]] = {name: {part: [] for part in ("lengths", *PARTS)} for name in LEARNERS}
    for n in track(lengths, "streams", console=console):
        for name in LEARNERS:
            count, repetitions = min(n, ENDS.get(name, n)), 5 if n <= 100_000 else 3 if n <= 1_000_000 else 1
            runs = [alone(name, count) for _ in range(repetitions)]
            found[name]["lengths"].append(count)
            for part, median in zip(PARTS, np.median(runs, axis=0), strict=True):
                found[name][part].append(float(median))
    return found


def exponent(runs: dict[str, list[float]]) -> float:
    """The slope of log time against log n."""
    return float(np.polyfit(np.log(runs["lengths"]), np.log(runs["seconds"]), 1)[0])


def show(lengths: tuple[int, ...], found: dict[str, dict[str, list[float]]], console: Console) -> None:
    times = Table("µs an example", *(f"{n:,}" for n in lengths), "exponent")
    for name, runs in found.items():
        each = [f"{1e6 * s / n:.3g}" for s, n in zip(runs["seconds"], runs["lengths"], strict=True)]
        times.add_row(name, *each, f"{exponent(runs):.3f}")
    opening = Table("opening, s", *(f"{n:,}" for n in lengths))
    memory = Table("peak of memory, MB", *(f"{n:,}" for n in lengths))
    for name, runs in found.items():
        opening.add_row(name, *(f"{seconds:.2g}" for seconds in runs["opening"]))
        memory.add_row(name, *(f"{peak:.0f}" for peak in runs["memory"]))
    console.print(times, opening, memory)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="up to 100,000 examples")
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--stream", nargs=2, metavar=("LEARNER", "N"), help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.stream:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        print(json.dumps(stream(options.stream[0], int(options.stream[1]))))
        return
    console = Console(stderr=options.json)
    lengths = LENGTHS[:3] if options.quick else LENGTHS
    found = measured(lengths, console)
    versions = {name: version(name) for name in ("tacit", "numpy", "numba")}
    record = {
        "python": platform.python_version(),
        "versions": versions,
        "lengths": lengths,
        "exponents": {name: exponent(runs) for name, runs in found.items()},
        **found,
    }
    if options.json:
        print(json.dumps(record, indent=1))
    else:
        show(lengths, found, console)
    target = HERE / ("out" if options.quick else "results") / "growth.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(record, indent=1) + "\n")
    console.print(f"Saved {target.relative_to(HERE.parent)}.")


if __name__ == "__main__":
    main()
