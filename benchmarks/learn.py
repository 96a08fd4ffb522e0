"""`taciturn learn` from a file to a model: rows a second on Covertype, where the time goes, and peers on the same rows.

Nine tenths of the 581,012 rows are learnt (class 2 against the rest, ten numbers, an area and a soil), a tenth is held
out for the accuracy. The contract is drafted by `taciturn init`. Everyone in turns, on one core, so reading ahead in a
thread gains nothing here. A command is a process from its beginning to its end. Its parts are measured apart:

- *start-up*: the same command on a file of a hundred rows, its plan and report included;
- *parsing*: the package's row readers, all rows into arrays;
- *learning*: the library on the same arrays;
- *commits*: a run on the same arrays, journal, digest and synced files included, less learning. It is timed in portions
  of the reader's, and lasts no second, so it commits at its end, as the command does once a second at the most.

Peers for parsing are the raw limit: pandas' and Arrow's readers, one thread, numbers and no contract. Vowpal Wabbit is
the peer for the whole: its own reader on its own text form of the same scaled features, one pass, neither private nor
durable; its import is not counted. Whether the parts add up to the command is shown as *rest*.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import turns
import vowpal
from taciturn.contract.contract import Contract, read_contract
from taciturn.contract.model_file import read_model
from taciturn.datasets.covertype import AREAS, RANGES, SOILS, URL, cells, features
from taciturn.datasets.files import find
from taciturn.estimators.stream import Stream
from taciturn.readers.rows import open_rows
from taciturn.runs import run as runs
from taciturn.runs.folder import Folder
from taciturn.runs.ingest import learn_from

COLUMNS = (*(name.replace(" ", "_") for name in RANGES), "area", "soil")
KINDS = ("csv", "parquet")
FEW = 100
RATIOS = {
    "Vowpal Wabbit / taciturn learn, csv": turns.Ratio("Vowpal Wabbit*", "taciturn learn, csv"),
    "Vowpal Wabbit / (parsing, learning and commits), csv": turns.Ratio(
        "Vowpal Wabbit*", ("parsing, csv", "learning and commits")
    ),
    "parsing / raw reader, csv": turns.Ratio("parsing, csv", "raw csv*"),
    "parsing / raw reader, parquet": turns.Ratio("parsing, parquet", "raw parquet*"),
}


# ---- the files -------------------------------------------------------------------------------------------------


def write_files(folder: Path, most: int | None) -> int:
    """Rows to learn and rows held out, in every form; the number of the first."""
    import pandas as pd

    file = find("covtype.data.gz", URL, "covtype.npz", "covtype.data")
    rows = cells(file)
    order = np.random.default_rng(0).permutation(len(rows.kind))[:most]
    rows = type(rows)(*(each[order] for each in rows))
    table = pd.DataFrame(np.column_stack([rows.numbers, rows.area, rows.soil]), columns=list(COLUMNS))
    table["cover"] = rows.kind
    cut = len(table) - len(table) // 10
    X, y = features(rows), np.where(rows.kind == 2, 1, -1)
    for name, part in (("train", slice(cut)), ("test", slice(cut, None)), ("few", slice(FEW))):
        table[part].to_csv(folder / f"{name}.csv", index=False)
        table[part].to_parquet(folder / f"{name}.parquet", index=False)
        (folder / f"{name}.txt").write_text("\n".join(vowpal.lines(X[part], y[part])) + "\n")
    return cut


def drafted(folder: Path, horizon: int) -> Path:
    """The contract, by the command."""
    ranges = [f"--range={name}={low}:{high}" for name, (low, high) in zip(COLUMNS, RANGES.values(), strict=False)]
    listed = {"area": range(len(AREAS)), "soil": range(SOILS)}
    categories = [f"--categories={name}={','.join(map(str, values))}" for name, values in listed.items()]
    stated = ["--target=cover", "--positive=2", "--epsilon=1", f"--horizon={horizon}", "--yes"]
    path = folder / "taciturn.toml"
    taciturn("init", str(folder / "train.csv"), f"--out={path}", *stated, *ranges, *categories)
    return path


# ---- who takes part --------------------------------------------------------------------------------------------


def taciturn(*arguments: str) -> None:
    """The command, in a process of its own."""
    subprocess.run([sys.executable, "-m", "taciturn", *arguments], check=True, stdout=subprocess.DEVNULL)


def timed(name: str, work: Callable[[], Any], walls: dict[str, list[float]]) -> Callable[[], Any]:
    """The same work; how long it took by the clock is noted."""

    def and_noted() -> Any:
        start = time.perf_counter()
        made = work()
        walls.setdefault(name, []).append(time.perf_counter() - start)
        return made

    return and_noted


def commands(folder: Path, contract: Path, rows: int, right: Callable[[Path], float]) -> dict[str, turns.Contender]:
    """`taciturn learn` on each kind of file, and on one of few rows."""
    fresh = count()

    def learn(data: str) -> Path:
        out = folder / f"run{next(fresh)}"
        taciturn("learn", str(contract), str(folder / data), f"--out={out}", "--quiet")
        return out

    work = {f"taciturn learn, {kind}": lambda kind=kind: learn(f"train.{kind}") for kind in KINDS}
    made = {name: turns.Contender(do, rows, right, turns.children_clock) for name, do in work.items()}
    few = {f"start-up, {kind}": lambda kind=kind: learn(f"few.{kind}") for kind in KINDS}
    return made | {name: turns.Contender(do, rows, clock=turns.children_clock) for name, do in few.items()}


def parts(folder: Path, contract: Contract, rows: int) -> dict[str, turns.Contender]:
    """Parsing, learning, and learning with commits, each alone."""
    batches = list(open_rows(contract, folder / "train.csv"))

    def parse(kind: str) -> int:
        return sum(len(batch.y) for batch in open_rows(contract, folder / f"train.{kind}"))

    def learn() -> Stream:
        stream = Stream(contract.plan(on_bad="zero"))
        for batch in batches:
            stream.learn(batch.X, batch.y)
        return stream

    def commit() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            run = runs.begin(Folder(Path(place)), contract.plan(on_bad="zero"), contract.digest)
            learn_from(run, iter(batches))

    made = {f"parsing, {kind}": turns.Contender(lambda kind=kind: parse(kind), rows) for kind in KINDS}
    return made | {
        "learning": turns.Contender(learn, rows),
        "learning and commits": turns.Contender(commit, rows),
    }


def readers(folder: Path, rows: int) -> dict[str, turns.Contender]:
    """Tables by others, as fast as they read them on one core."""
    import pandas as pd
    from pyarrow import csv, parquet

    data = {kind: folder / f"train.{kind}" for kind in KINDS}
    work = {
        "raw csv, pandas": lambda: pd.read_csv(data["csv"]),
        "raw csv, Arrow": lambda: csv.read_csv(data["csv"], csv.ReadOptions(use_threads=False)),
        "raw parquet, Arrow": lambda: parquet.read_table(data["parquet"], use_threads=False),
    }
    return {name: turns.Contender(do, rows) for name, do in work.items()}


def vowpal_wabbit(folder: Path, rows: int) -> dict[str, turns.Contender]:
    """Parsing and learning of text, plain and with its usual adaptive steps."""
    from vowpalwabbit import Workspace

    def learn(steps: str) -> Path:
        model = folder / f"vw{steps}.model"
        Workspace(f"-d {folder / 'train.txt'} --loss_function logistic --quiet {steps} -f {model}").finish()
        return model

    steps = {"plain": "--sgd", "adaptive": ""}
    return {
        f"Vowpal Wabbit, {name}": turns.Contender(
            lambda more=more: learn(more), rows, lambda model: vowpal.accuracy(model, folder / "test.txt")
        )
        for name, more in steps.items()
    }


def accuracy(folder: Path) -> Callable[[Path], float]:
    """The share of rows held out that a run's last model has right."""

    def right(out: Path) -> float:
        model = read_model(out / "model.json")
        found = [(model.scores(b.X) > 0) == (b.y > 0) for b in open_rows(model.contract, folder / "test.csv")]
        return float(np.concatenate(found).mean())

    return right


# ---- what follows ----------------------------------------------------------------------------------------------


def shares(seconds: Mapping[str, list[float]]) -> dict[str, dict[str, float]]:
    """Of each command, by medians: what part of its time on the processor went where."""
    middle = {name: float(np.median(each)) for name, each in seconds.items()}
    made = {}
    for kind in KINDS:
        whole = middle[f"taciturn learn, {kind}"]
        spent = {name: middle[f"{name}, {kind}"] for name in ("start-up", "parsing")}
        spent |= {"learning": middle["learning"], "commits": middle["learning and commits"] - middle["learning"]}
        made[kind] = {name: each / whole for name, each in (spent | {"rest": whole - sum(spent.values())}).items()}
    return made


def table(
    found: turns.Turns, walls: Mapping[str, list[float]], rows: int, parts: Mapping[str, dict[str, float]]
) -> list[Table]:
    times = Table("contender", "s of the processor", "from", "to", "s by the clock", "rows a second", "accuracy")
    for name, each in found.seconds.items():
        spent = [f"{rows * x:.3f}" for x in (np.median(each), min(each), max(each))]
        score = f"{found.scores[name]:.2%}" if name in found.scores else ""
        times.add_row(name, *spent, f"{np.median(walls[name]):.3f}", f"{1 / np.median(each):,.0f}", score)
    split = Table("share of taciturn learn", *next(iter(parts.values())))
    for kind, each in parts.items():
        split.add_row(kind, *(f"{share:.0%}" for share in each.values()))
    return [times, split]


def main() -> None:
    chosen = turns.options(__doc__)
    turns.settle(plain_memory=True)
    console, walls = Console(stderr=chosen.json), {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = write_files(folder, 60_000 if chosen.quick else None)
        contract = drafted(folder, rows)
        everyone = commands(folder, contract, rows, accuracy(folder)) | parts(folder, read_contract(contract), rows)
        everyone |= readers(folder, rows) | vowpal_wabbit(folder, rows)
        noting = {
            name: turns.Contender(timed(name, one.work, walls), one.count, one.score, one.clock)
            for name, one in everyone.items()
        }
        found = turns.take_turns(noting, 2 if chosen.quick else 7, console)
    walls = {name: each[1:] for name, each in walls.items()}  # nor is the first turn counted here
    ratios, split = found.ratios(RATIOS), shares(found.seconds)
    record = turns.surroundings("taciturn", "numpy", "numba", "pandas", "pyarrow", "vowpalwabbit") | {
        "rows": rows,
        "unit": "seconds of the processor a row; by the clock, seconds in all",
        "seconds": found.seconds,
        "by the clock": walls,
        "accuracy": found.scores,
        "shares": split,
        "ratios": ratios,
    }
    quotients = turns.tables(found, ratios, "µs a row")[1:]
    turns.save("learn", record, chosen, console, *table(found, walls, rows, split), *quotients)


if __name__ == "__main__":
    main()
