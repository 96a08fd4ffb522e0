"""Gaussian noise side by side: values a second on one core, of tacit, NumPy and OpenDP.

tacit draws integers of deviation 2^30 on their lattice, the operating system's key and AES included. NumPy draws
doubles from its fastest generator (SFC64), which protect nobody. OpenDP hides a vector of zeros, integers or doubles,
exactly. The first two draw 131,072 values at a time, as many as a pass does, and keep none. All take turns in one
process; times are of the processor, and ratios those of a turn.
"""

from __future__ import annotations

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tacit.mechanisms.sampling import lattice_normal

HERE, AT_ONCE, SCALE = Path(__file__).parent, 2**17, 2.0**30
PACKAGES = ("tacit", "numpy", "numba", "cryptography", "opendp")
WANTED = {"NumPy": 1.5, "OpenDP": 500.0}
Work = Callable[[], object]


def opendp(size: int) -> dict[str, Work]:
    """Its vector Gaussian, at the same deviation on integers, and at 1 on doubles."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float)
    integers = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=SCALE)
    doubles = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric, scale=1.0)
    zeros = [0] * size, [0.0] * size
    return {"OpenDP, integers": lambda: integers(zeros[0]), "OpenDP, doubles": lambda: doubles(zeros[1])}


def contenders(portions: int) -> dict[str, tuple[Work, int]]:
    """Everyone, and how many values a turn has."""
    generator = np.random.Generator(np.random.SFC64())

    def in_portions(draw: Work) -> Work:
        def work() -> None:
            for _ in range(portions):
                draw()

        return work

    many = {
        "tacit, secret integers": lambda: lattice_normal(SCALE, (AT_ONCE,)),
        "NumPy, SFC64": lambda: generator.standard_normal(AT_ONCE),
    }
    work = {name: (in_portions(draw), portions * AT_ONCE) for name, draw in many.items()}
    few = 100 * portions
    return work | {name: (draw, few) for name, draw in opendp(few).items()}


def measured(work: dict[str, tuple[Work, int]], repetitions: int, console: Console) -> dict[str, list[float]]:
    """Values a second, of everyone in turns, the first round not counted."""
    rates: dict[str, list[float]] = {name: [] for name in work}
    for turn in track(range(repetitions + 1), "taking turns", console=console):
        for name, (do, count) in work.items():
            start = time.process_time()
            do()
            if turn:
                rates[name].append(count / (time.process_time() - start))
    return rates


def ratios(rates: dict[str, list[float]]) -> dict[str, list[float]]:
    """Of each turn: tacit's values over NumPy's, and over OpenDP's where it is faster."""
    ours = np.array(rates["tacit, secret integers"])
    theirs = {peer: [rates[name] for name in rates if name.startswith(peer)] for peer in WANTED}
    return {f"tacit / {peer}": list(ours / np.max(found, axis=0)) for peer, found in theirs.items()}


def show(report: dict[str, dict[str, list[float]]], console: Console) -> None:
    table = Table("contender", "million values a second", "from", "to")
    for name, found in report["values a second"].items():
        table.add_row(name, *(f"{1e-6 * x:.3g}" for x in (np.median(found), min(found), max(found))))
    quotients = Table("ratio", "median", "from", "to", "wanted")
    for (name, found), wanted in zip(report["ratios"].items(), WANTED.values(), strict=True):
        quotients.add_row(name, *(f"{x:.4g}" for x in (np.median(found), min(found), max(found))), f"≥ {wanted:g}")
    console.print(table, quotients)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the values, five turns")
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--out", type=Path, help="folder to save into; benchmarks/results, or out if --quick")
    options = arguments.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    console = Console(stderr=options.json)
    rates = measured(contenders(5 if options.quick else 50), 5 if options.quick else 11, console)
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    report = {"versions": versions, "values a second": rates, "ratios": ratios(rates)}
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        show(report, console)
    folder = options.out or HERE / ("out" if options.quick else "results")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "noise.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    console.print(f"Saved {folder.name}/noise.json.")


if __name__ == "__main__":
    main()
