"""`taciturn learn` from a file to a model: rows per second on Covertype, its parts, and peers on the same rows.

Nine tenths of the 581,012 rows are learnt (class 2 against the rest, ten numbers, an area and a soil), a tenth is held
out for the accuracy. The contract is drafted by `taciturn init`. All contenders take turns on one core, so prefetching
in a thread gains nothing here. A command is a process from its beginning to its end. Its parts are measured separately:

- *start-up*: the same command on a file of a hundred rows, its plan and report included;
- *parsing*: the package's row readers, all rows into arrays;
- *learning*: the library on the same arrays;
- *commits*: a run on the same arrays, journal, digest and synced files included, minus learning. It takes the reader's
  batches and lasts less than a second, so it commits at its end; the command commits at most once a second.

Peers for parsing are a lower limit: the readers of pandas and Arrow, one thread, numbers and no contract. Vowpal Wabbit
is the peer for the command: its own reader on its own text format of the same scaled features, one pass, neither
private nor durable; its import is not counted. *other* is the time of the command that the parts do not explain.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import vowpal
from runner import (
    Contender,
    Ratio,
    Turns,
    children_clock,
    environment,
    parse_options,
    save,
    tables,
    take_turns,
    use_one_core,
)
from taciturn.contract.contract import Contract, read_contract
from taciturn.contract.model_file import read_model
from taciturn.datasets.covertype import AREAS, RANGES, SOILS, URL, cells, features
from taciturn.datasets.files import find
from taciturn.estimators.stream import Stream
from taciturn.readers.rows import open_rows
from taciturn.runs import run as runs
from taciturn.runs.files import Folder
from taciturn.runs.ingest import learn_from
from taciturn.store import Store

COLUMNS = (*(name.replace(" ", "_") for name in RANGES), "area", "soil")
KINDS = ("csv", "parquet")
FEW = 100
RATIOS = {
    "Vowpal Wabbit / taciturn learn, csv": Ratio("Vowpal Wabbit*", "taciturn learn, csv"),
    "Vowpal Wabbit / (parsing, learning and commits), csv": Ratio(
        "Vowpal Wabbit*", ("parsing, csv", "learning and commits")
    ),
    "parsing / raw reader, csv": Ratio("parsing, csv", "raw csv*"),
    "parsing / raw reader, parquet": Ratio("parsing, parquet", "raw parquet*"),
}


# ---- the files -------------------------------------------------------------------------------------------------


def write_files(folder: Path, most: int | None) -> int:
    """Write rows to learn and held-out rows in every format; return the number of the first."""
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
    """Draft the contract with the command."""
    ranges = [f"--range={name}={low}:{high}" for name, (low, high) in zip(COLUMNS, RANGES.values(), strict=False)]
    listed = {"area": range(len(AREAS)), "soil": range(SOILS)}
    categories = [f"--categories={name}={','.join(map(str, values))}" for name, values in listed.items()]
    stated = ["--target=cover", "--positive=2", "--epsilon=1", f"--horizon={horizon}", "--yes"]
    path = folder / "taciturn.toml"
    taciturn("init", str(folder / "train.csv"), f"--out={path}", *stated, *ranges, *categories)
    return path


# ---- contenders ------------------------------------------------------------------------------------------------


def taciturn(*arguments: str) -> None:
    """The command, in a process of its own."""
    subprocess.run([sys.executable, "-m", "taciturn", *arguments], check=True, stdout=subprocess.DEVNULL)


def timed(name: str, work: Callable[[], Any], walls: dict[str, list[float]]) -> Callable[[], Any]:
    """The same work, which also appends its wall time to `walls`."""

    def work_and_note() -> Any:
        start = time.perf_counter()
        result = work()
        walls.setdefault(name, []).append(time.perf_counter() - start)
        return result

    return work_and_note


def commands(folder: Path, contract: Path, rows: int, accuracy: Callable[[Path], float]) -> dict[str, Contender]:
    """`taciturn learn` on each kind of file, and on a file of few rows."""
    fresh = count()

    def learn(data: str) -> Path:
        out = folder / f"run{next(fresh)}"
        taciturn("learn", str(contract), str(folder / data), f"--out={out}", "--quiet")
        return out

    work = {f"taciturn learn, {kind}": lambda kind=kind: learn(f"train.{kind}") for kind in KINDS}
    made = {name: Contender(do, rows, accuracy, children_clock) for name, do in work.items()}
    few = {f"start-up, {kind}": lambda kind=kind: learn(f"few.{kind}") for kind in KINDS}
    return made | {name: Contender(do, rows, clock=children_clock) for name, do in few.items()}


def parts(folder: Path, contract: Contract, rows: int) -> dict[str, Contender]:
    """Parsing, learning, and learning with commits."""
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
            made = Folder(Path(place))
            run = runs.begin(made, Store(made.store), contract.plan(on_bad="zero"), contract.digest, format="csv")
            learn_from(run, iter(batches))

    made = {f"parsing, {kind}": Contender(lambda kind=kind: parse(kind), rows) for kind in KINDS}
    return made | {
        "learning": Contender(learn, rows),
        "learning and commits": Contender(commit, rows),
    }


def readers(folder: Path, rows: int) -> dict[str, Contender]:
    """Readers of other packages, as fast as they are on one core."""
    import pandas as pd
    from pyarrow import csv, parquet

    data = {kind: folder / f"train.{kind}" for kind in KINDS}
    work = {
        "raw csv, pandas": lambda: pd.read_csv(data["csv"]),
        "raw csv, Arrow": lambda: csv.read_csv(data["csv"], csv.ReadOptions(use_threads=False)),
        "raw parquet, Arrow": lambda: parquet.read_table(data["parquet"], use_threads=False),
    }
    return {name: Contender(do, rows) for name, do in work.items()}


def vowpal_wabbit(folder: Path, rows: int) -> dict[str, Contender]:
    """Parsing and learning of text, plain and with its default adaptive steps."""
    from vowpalwabbit import Workspace

    def learn(steps: str) -> Path:
        model = folder / f"vw{steps}.model"
        Workspace(f"-d {folder / 'train.txt'} --loss_function logistic --quiet {steps} -f {model}").finish()
        return model

    steps = {"plain": "--sgd", "adaptive": ""}
    return {
        f"Vowpal Wabbit, {name}": Contender(
            lambda more=more: learn(more), rows, lambda model: vowpal.accuracy(model, folder / "test.txt")
        )
        for name, more in steps.items()
    }


def accuracy(folder: Path) -> Callable[[Path], float]:
    """Accuracy of a run's last model on the held-out rows."""

    def of_run(out: Path) -> float:
        model = read_model(out / "model.json")
        right = [(model.scores(b.X) > 0) == (b.y > 0) for b in open_rows(model.contract, folder / "test.csv")]
        return float(np.concatenate(right).mean())

    return of_run


# ---- tables ----------------------------------------------------------------------------------------------------


def shares(seconds: Mapping[str, list[float]]) -> dict[str, dict[str, float]]:
    """Shares of each part in the CPU time of each command, by medians."""
    medians = {name: float(np.median(each)) for name, each in seconds.items()}
    made = {}
    for kind in KINDS:
        total = medians[f"taciturn learn, {kind}"]
        spent = {name: medians[f"{name}, {kind}"] for name in ("start-up", "parsing")}
        spent |= {"learning": medians["learning"], "commits": medians["learning and commits"] - medians["learning"]}
        spent["other"] = total - sum(spent.values())
        made[kind] = {name: each / total for name, each in spent.items()}
    return made


def times_and_shares(
    turns: Turns, walls: Mapping[str, list[float]], rows: int, parts: Mapping[str, dict[str, float]]
) -> list[Table]:
    times = Table("contender", "CPU s", "from", "to", "wall s", "rows per second", "accuracy")
    for name, each in turns.seconds.items():
        spent = [f"{rows * x:.3f}" for x in (np.median(each), min(each), max(each))]
        score = f"{turns.scores[name]:.2%}" if name in turns.scores else ""
        times.add_row(name, *spent, f"{np.median(walls[name]):.3f}", f"{1 / np.median(each):,.0f}", score)
    split = Table("share of taciturn learn", *next(iter(parts.values())))
    for kind, each in parts.items():
        split.add_row(kind, *(f"{share:.0%}" for share in each.values()))
    return [times, split]


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core(plain_memory=True)
    console = Console(stderr=chosen.json)
    walls: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = write_files(folder, 60_000 if chosen.quick else None)
        contract = drafted(folder, rows)
        contenders = commands(folder, contract, rows, accuracy(folder)) | parts(folder, read_contract(contract), rows)
        contenders |= readers(folder, rows) | vowpal_wabbit(folder, rows)
        contenders = {name: replace(one, work=timed(name, one.work, walls)) for name, one in contenders.items()}
        turns = take_turns(contenders, 2 if chosen.quick else 7, console)
    walls = {name: each[1:] for name, each in walls.items()}  # the first turn is not counted
    ratios = turns.ratios(RATIOS)
    parts_of_command = shares(turns.seconds)
    record = environment("taciturn", "numpy", "numba", "pandas", "pyarrow", "vowpalwabbit") | {
        "rows": rows,
        "unit": "CPU seconds per row; wall seconds in total",
        "seconds": turns.seconds,
        "wall seconds": walls,
        "accuracy": turns.scores,
        "shares": parts_of_command,
        "ratios": ratios,
    }
    shown = [*times_and_shares(turns, walls, rows, parts_of_command), *tables(turns, ratios, "µs per row")[1:]]
    save("learn", record, chosen, console, *shown)


if __name__ == "__main__":
    main()
