"""What the benchmarks share: contenders take turns on one core, ratios are of the same turn, and results are kept.

A script says who takes part (`Contender`) and what is compared (`Ratio`), and hands both to `run`:

    contenders = {"taciturn": Contender(ours, 1000), "peer, plain": Contender(theirs, 1000)}
    ratios = {"peer / taciturn": Ratio("peer*", "taciturn", at_least=1.0)}

Times are of the processor, divided by how many things a turn does. A name that ends in `*` is the fastest of those
that begin so, by the median.
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
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
KEEP = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**28))


@dataclass(frozen=True)
class Contender:
    """Work for one turn, and how many things it does; a score of what it returns, if the work can be done badly.

    `clock` tells the seconds that were spent: this process's on the processor, if not another's.
    """

    work: Callable[[], Any]
    count: int = 1
    score: Callable[[Any], float] | None = None
    clock: Callable[[], float] = time.process_time


@dataclass(frozen=True)
class Ratio:
    """Time of one contender over that of others, added up; and what is wanted of its median."""

    over: str
    under: str | tuple[str, ...]
    at_least: float | None = None
    at_most: float | None = None

    @property
    def wanted(self) -> str:
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return " ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    def of(self, seconds: Mapping[str, list[float]]) -> list[float]:
        """One quotient for each turn."""
        under = (self.under,) if isinstance(self.under, str) else self.under
        parts = [seconds[one_of(name, seconds)] for name in under]
        return list(np.array(seconds[one_of(self.over, seconds)]) / np.sum(parts, axis=0))

    def met(self, found: list[float]) -> bool | None:
        """Whether the median is as wanted; None if nothing is."""
        middle = float(np.median(found))
        if not self.wanted:
            return None
        return (self.at_least is None or middle >= self.at_least) and (self.at_most is None or middle <= self.at_most)


def one_of(name: str, seconds: Mapping[str, list[float]]) -> str:
    """The name itself; or, if it ends in `*`, the fastest of those that begin so."""
    if not name.endswith("*"):
        return name
    return min((each for each in seconds if each.startswith(name[:-1])), key=lambda each: np.median(seconds[each]))


@dataclass(frozen=True)
class Turns:
    """Seconds for one thing, a list for every contender with one entry for each turn; and scores."""

    seconds: dict[str, list[float]]
    scores: dict[str, float] = field(default_factory=dict)

    def ratios(self, wanted: Mapping[str, Ratio]) -> dict[str, dict[str, Any]]:
        """For machines and tables: quotients, their median, what was wanted, and whether it was met."""
        found = {name: ratio.of(self.seconds) for name, ratio in wanted.items()}
        return {
            name: {
                "each": found[name],
                "median": float(np.median(found[name])),
                "wanted": ratio.wanted,
                "met": ratio.met(found[name]),
            }
            for name, ratio in wanted.items()
        }


def take_turns(contenders: Mapping[str, Contender], repetitions: int, console: Console) -> Turns:
    """Everyone in turns; the first turn is not counted, but for its scores."""
    turns = Turns({name: [] for name in contenders})
    for turn in track(range(repetitions + 1), "taking turns", console=console):
        for name, one in contenders.items():
            start = one.clock()
            made = one.work()
            spent = one.clock() - start
            if turn:
                turns.seconds[name].append(spent / one.count)
            elif one.score is not None:
                turns.scores[name] = one.score(made)
    return turns


def children_clock() -> float:
    """Seconds of the processor that processes which have ended spent, for work that is a process of its own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- a script's run --------------------------------------------------------------------------------------------


def options(description: str | None, **more: dict[str, Any]) -> argparse.Namespace:
    """What every script understands; `more` are a script's own, by name."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="less work and fewer turns: to see that it runs")
    arguments.add_argument("--json", action="store_true", help="print JSON for machines")
    arguments.add_argument("--out", type=Path, help="folder to save into; benchmarks/results, or out if --quick")
    for name, each in more.items():
        arguments.add_argument(f"--{name.replace('_', '-')}", **each)
    return arguments.parse_args()


def settle(plain_memory: bool = False) -> None:
    """One core; and, for all contenders, memory that is freed is kept: a fresh page costs a microsecond here and there.

    glibc reads that wish when a process starts, and NumPy the number of threads when it is loaded, so the script is
    started again with both.
    """
    wanted = ALONE if plain_memory or sys.platform != "linux" else ALONE | KEEP
    if not wanted.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)
    if hasattr(os, "sched_setaffinity"):  # threads that a peer starts later stay on it, too
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def surroundings(*packages: str) -> dict[str, Any]:
    """Versions, and the processor as the system calls it."""
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "processor": processor(), "versions": found}


def processor() -> str:
    """Its name, as far as the system tells, and how many cores there are."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = named[0] if named else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def tables(
    turns: Turns, ratios: Mapping[str, dict[str, Any]], unit: str, score: str = "", rate: bool = False
) -> list[Table]:
    """Times for each contender, scores beside them if there are any; then the ratios.

    `unit` is µs a thing; if it is a `rate` that is shown, millions of things a second.
    """
    times = Table("contender", "million a second" if rate else unit, "from", "to", *([score] if turns.scores else []))
    for name, each in turns.seconds.items():
        scores = [f"{turns.scores[name]:.4g}" if name in turns.scores else ""] if turns.scores else []
        shown = 1e-6 / np.array(each) if rate else 1e6 * np.array(each)
        times.add_row(name, *map(rounded, (np.median(shown), min(shown), max(shown))), *scores)
    quotients = Table("ratio", "median", "from", "to", "wanted", "met")
    for name, found in ratios.items():
        each = found["each"]
        numbers = map(rounded, (found["median"], min(each), max(each)))
        quotients.add_row(name, *numbers, found["wanted"], said(found["met"]))
    return [times, quotients] if ratios else [times]


def rounded(number: float) -> str:
    """Three digits, or all before the point.

    >>> rounded(0.012345), rounded(12345.6)
    ('0.0123', '12,346')
    """
    return f"{number:,.0f}" if abs(number) >= 1000.0 else f"{number:.3g}"


def said(met: bool | None) -> str:
    """Whether a wish was met, in a table; nothing where there is none."""
    return {True: "yes", False: "no", None: ""}[met]


def kept(table: Table) -> dict[str, Any]:
    """A table as it is shown, for pages that show it again."""
    columns = [str(column.header) for column in table.columns]
    rows = zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)
    return {"title": str(table.title or "").strip(), "columns": columns, "rows": [list(row) for row in rows]}


def save(name: str, record: dict[str, Any], chosen: argparse.Namespace, console: Console, *shown: Any) -> None:
    """Print tables and words, or JSON if that was chosen; and keep the record, and both with it."""
    record = record | {
        "quick": chosen.quick,
        "tables": [kept(each) for each in shown if isinstance(each, Table)],
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
    wanted: Mapping[str, Ratio],
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
    """Measure, show and save: one question, one file of results.

    `more` is kept beside what was measured, `shown` printed below it.
    """
    console = Console(stderr=chosen.json)
    turns = take_turns(contenders, 3 if chosen.quick else repetitions, console)
    ratios = turns.ratios(wanted)
    record = surroundings("taciturn", *packages) | {
        "unit": f"seconds of the processor: {unit.removeprefix('µs ')}",
        "seconds": turns.seconds,
        **({score: turns.scores} if turns.scores else {}),
        "ratios": ratios,
        **(more or {}),
    }
    save(name, record, chosen, console, *tables(turns, ratios, unit, score, rate), *shown)
