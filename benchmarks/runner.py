"""The runner of all benchmarks: contenders take turns on one core, ratios are of the same turn, results are saved.

A script names the contenders and the ratios that it compares, and passes both to `run`:

    contenders = {"taciturn": Contender(ours, 1000), "peer, plain": Contender(theirs, 1000)}
    ratios = {"peer / taciturn": Ratio("peer*", "taciturn", at_least=1.0)}

Times are CPU times, divided by the number of items of a turn. A name that ends in `*` stands for the fastest contender
whose name begins so, by the median.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

HERE = Path(__file__).parent
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
KEEP_MEMORY = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**28))
PLAIN_MEMORY = {"action": "store_true", "help": "return freed memory to the system, as processes usually do"}
"""The option `--plain-memory` of scripts that have it."""


# ---- contenders and ratios -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """Work for one turn, and its number of items; a score of its result, if the work can be done badly.

    `clock` returns CPU seconds so far: of this process, unless the work is done by another one.
    """

    work: Callable[[], Any]
    count: int = 1
    score: Callable[[Any], float] | None = None
    clock: Callable[[], float] = time.process_time


@dataclass(frozen=True)
class Ratio:
    """Time of one contender over that of others, added up; and the target of its median."""

    over: str
    under: str | tuple[str, ...]
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """In words; empty if there is none."""
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return " ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    def of(self, seconds: Mapping[str, list[float]]) -> list[float]:
        """One quotient for each turn."""
        under = (self.under,) if isinstance(self.under, str) else self.under
        parts = [seconds[resolve(name, seconds)] for name in under]
        return list(np.array(seconds[resolve(self.over, seconds)]) / np.sum(parts, axis=0))

    def met(self, quotients: list[float]) -> bool | None:
        """Whether the median reaches the target; None if there is none."""
        if not self.target:
            return None
        median = float(np.median(quotients))
        return (self.at_least is None or median >= self.at_least) and (self.at_most is None or median <= self.at_most)


def resolve(name: str, seconds: Mapping[str, list[float]]) -> str:
    """The name itself; or, if it ends in `*`, the fastest of those that begin so."""
    if not name.endswith("*"):
        return name
    return min((each for each in seconds if each.startswith(name[:-1])), key=lambda each: np.median(seconds[each]))


@dataclass(frozen=True)
class Turns:
    """CPU seconds per item, a list for every contender with one entry for each turn; and scores."""

    seconds: dict[str, list[float]]
    scores: dict[str, float] = field(default_factory=dict)

    def ratios(self, ratios: Mapping[str, Ratio]) -> dict[str, dict[str, Any]]:
        """For files and tables: quotients, their median, the target, and whether it is met."""
        results = {}
        for name, ratio in ratios.items():
            quotients = ratio.of(self.seconds)
            results[name] = {
                "each": quotients,
                "median": float(np.median(quotients)),
                "target": ratio.target,
                "met": ratio.met(quotients),
            }
        return results


def take_turns(contenders: Mapping[str, Contender], repetitions: int, console: Console) -> Turns:
    """Let all contenders take turns; the first turn counts for the scores only."""
    turns = Turns({name: [] for name in contenders})
    for turn in track(range(repetitions + 1), "taking turns", console=console):
        for name, one in contenders.items():
            start = one.clock()
            result = one.work()
            spent = one.clock() - start
            if turn:
                turns.seconds[name].append(spent / one.count)
            elif one.score is not None:
                turns.scores[name] = one.score(result)
    return turns


def children_clock() -> float:
    """CPU seconds of child processes that have ended, for work that is a process of its own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- a script's run --------------------------------------------------------------------------------------------


def parse_options(description: str | None, **more: dict[str, Any]) -> argparse.Namespace:
    """The options of every script; `more` are those of this one, by name."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="less work and fewer turns, to test the script")
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--out", type=Path, help="folder to save into; benchmarks/results, or out if --quick")
    for name, each in more.items():
        arguments.add_argument(f"--{name.replace('_', '-')}", **each)
    return arguments.parse_args()


def use_one_core(plain_memory: bool = False) -> None:
    """Restrict the process to one core and one thread, and let it keep the memory that it frees.

    A fresh page costs a microsecond on a virtual machine, for all contenders. glibc reads that setting when a process
    starts, and NumPy the number of threads when it is loaded, so the script is started again with both.
    """
    settings = ONE_THREAD if plain_memory or sys.platform != "linux" else ONE_THREAD | KEEP_MEMORY
    if not settings.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)
    if hasattr(os, "sched_setaffinity"):  # threads that a peer starts later stay on it, too
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def environment(*packages: str) -> dict[str, Any]:
    """Versions of Python and of packages, and the processor."""
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "processor": processor(), "versions": versions}


def processor() -> str:
    """The name of the processor, as far as the system tells, and the number of cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = named[0] if named else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def tables(
    turns: Turns, ratios: Mapping[str, dict[str, Any]], unit: str, score: str = "", rate: bool = False
) -> list[Table]:
    """Times of each contender, and its score if there are any; then the ratios.

    `unit` is "µs per item"; with `rate`, millions of items per second are shown instead.
    """
    times = Table("contender", "million per second" if rate else unit, "from", "to", *([score] if turns.scores else []))
    for name, each in turns.seconds.items():
        scores = [f"{turns.scores[name]:.4g}" if name in turns.scores else ""] if turns.scores else []
        shown = 1e-6 / np.array(each) if rate else 1e6 * np.array(each)
        times.add_row(name, *map(rounded, (np.median(shown), min(shown), max(shown))), *scores)
    if not ratios:
        return [times]
    quotients = Table("ratio", "median", "from", "to", "target", "met")
    for name, result in ratios.items():
        numbers = map(rounded, (result["median"], min(result["each"]), max(result["each"])))
        quotients.add_row(name, *numbers, result["target"], yes_or_no(result["met"]))
    return [times, quotients]


def rounded(number: float) -> str:
    """Three digits, or all before the point.

    >>> rounded(0.012345), rounded(12345.6)
    ('0.0123', '12,346')
    """
    return f"{number:,.0f}" if abs(number) >= 1000.0 else f"{number:.3g}"


def yes_or_no(met: bool | None) -> str:
    """Whether a target is met, in a table; empty where there is none."""
    return {True: "yes", False: "no", None: ""}[met]


def table_data(table: Table) -> dict[str, Any]:
    """A table as plain data, for the pages that show it."""
    columns = [str(column.header) for column in table.columns]
    rows = zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)
    return {"title": str(table.title or "").strip(), "columns": columns, "rows": [list(row) for row in rows]}


def save(name: str, record: dict[str, Any], chosen: argparse.Namespace, console: Console, *shown: Any) -> None:
    """Print tables and sentences, or JSON if that was chosen; save them with the record."""
    record = record | {
        "quick": chosen.quick,
        "tables": [table_data(each) for each in shown if isinstance(each, Table)],
        "words": [each.strip() for each in shown if isinstance(each, str)],
    }
    if chosen.json:
        sys.stdout.write(json.dumps(record, indent=1) + "\n")
    else:
        console.print(*shown)
    folder = chosen.out or HERE / ("out" if chosen.quick else "results")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(f"Saved {folder.name}/{name}.json.")


def run(
    name: str,
    contenders: Mapping[str, Contender],
    ratios: Mapping[str, Ratio],
    chosen: argparse.Namespace,
    *,
    unit: str,
    packages: tuple[str, ...],
    repetitions: int = 7,
    score: str = "",
    rate: bool = False,
    more: Mapping[str, Any] | None = None,
    shown: Sequence[Any] = (),
) -> None:
    """Measure, print and save: one question, one file of results.

    `more` is saved with the results, `shown` printed below them.
    """
    console = Console(stderr=chosen.json)
    turns = take_turns(contenders, 3 if chosen.quick else repetitions, console)
    results = turns.ratios(ratios)
    record = environment("taciturn", *packages) | {
        "unit": f"CPU seconds {unit.removeprefix('µs ')}",
        "seconds": turns.seconds,
        **({score: turns.scores} if turns.scores else {}),
        "ratios": results,
        **(more or {}),
    }
    save(name, record, chosen, console, *tables(turns, results, unit, score, rate), *shown)
