"""Streams of the command: `taciturn learn` stopped and resumed, on each format, and what it leaves in its folder."""

import csv
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

import taciturn as t
from recorded.data import BOUGHT, COLUMNS, FEW, SPENT, contract, records, toml
from recorded.fronts import (
    FileStream,
    Store,
    command,
    contract_of,
    guarantee_of,
    in_ledger,
    read_contract,
    run_in,
    stored,
)
from recorded.registry import stream
from recorded.values import numbers_in

SEED = 7
ROWS = 1_200


def declared(folder: Path, data: dict[str, dict[str, object]], name: str = "taciturn.toml") -> Path:
    """A contract file in a folder, which is made."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(toml(data))
    return path


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Rows as a file of the kind that its name says."""
    kind = path.suffixes[0]
    if kind == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    elif kind == ".parquet":
        table = pa.table({name: _column([row[name] for row in rows]) for name in rows[0]})
        parquet.write_table(table, path, row_group_size=500)
    else:
        text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


def _column(values: list[object]) -> pa.Array:
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values])
    return pa.array(values)


def resumed(
    folder: Path, path: Path, data: Path, rows: Sequence[Mapping[str, object]], *more: str
) -> dict[str, object]:
    """A run that has learnt a third of a file, and then, from a file with the rest, all of it but the last rows."""
    out, seed = folder / "run", ["--seed", SEED, "--json", *more]
    command("learn", path, write(data, rows[: len(rows) // 3]), "--out", out, *seed)
    printed = command("learn", path, write(data, rows[:-10]), "--out", out, "--resume", *seed)
    return run_in(out, path, seed=SEED) | {"printed": numbers_in(json.loads(printed))}


@stream("command classes")
def classes(folder: Path) -> Mapping[str, object]:
    """Two classes from CSV by private FTRL, with every kind of column; bad rows take their round."""
    target = {"column": "bought", "classes": ["no", "yes"]}
    made = declared(folder, contract(target, COLUMNS, learning={"horizon": ROWS}))
    return resumed(folder, made, folder / "data.csv", records(ROWS), "--bad-rows", "zero")


@stream("command several classes")
def several_classes(folder: Path) -> Mapping[str, object]:
    """Three weighted classes by the hinge loss, from JSON lines, compressed, under zero-out."""
    target = {"column": "kind", "classes": ["gone", "stays", "grows"], "class_weight": {"gone": 4}}
    learning = {"horizon": ROWS, "loss": "hinge"}
    made = declared(folder, contract(target, privacy={"neighbours": "zero-out"}, learning=learning))
    return resumed(folder, made, folder / "data.jsonl.gz", records(ROWS))


@stream("command numbers")
def numbers(folder: Path) -> Mapping[str, object]:
    """A number in a range, on a logarithmic scale, by squared loss, and without a horizon; from Parquet."""
    columns = FEW | {name: COLUMNS[name] for name in ("income", "since")}
    target = {"column": "spent", "range": [1, 3000], "scale": "log"}
    made = declared(folder, contract(target, columns, learning={"release": 40}))
    return resumed(folder, made, folder / "data.parquet", records(ROWS))


@stream("command forgetting")
def forgetting(folder: Path) -> Mapping[str, object]:
    """Squared loss with several memories; the drift that is printed, and a model without a horizon."""
    made = declared(folder, contract(SPENT, learning={"forget": [150, 600], "release": 25}))
    return resumed(folder, made, folder / "data.csv", records(ROWS))


@stream("command users")
def users(folder: Path) -> Mapping[str, object]:
    """People with several rows, that must lie apart; from CSV and Parquet, by FTRL and PQFTL."""
    made = {}
    for kind, target, learning in (("csv", BOUGHT, {"loss": "hinge"}), ("parquet", SPENT, {})):
        privacy = {"user": "who", "rows_per_user": 4, "apart": 3}
        data = contract(target, privacy=privacy, learning=learning | {"horizon": ROWS, "release": 50})
        place = folder / kind
        made[kind] = resumed(place, declared(place, data), place / f"data.{kind}", records(ROWS))
    return made


@stream("command stages")
def stages(folder: Path) -> Mapping[str, object]:
    """Ranges of columns and of the target that are found privately, a preconditioner, and random features."""
    rows, made = records(6_000), {}
    found = {"range": "private"}
    columns = {"age": found | {"indicator": True}, "income": found, "plan": COLUMNS["plan"]}
    for name, target, learning in (
        ("numbers", {"column": "spent"} | found, {"precondition": True}),
        ("classes", BOUGHT, {"features": {"count": 12, "scale": 0.5, "seed": 3}}),
    ):
        data = contract(target, columns, privacy={"epsilon": 20.0}, learning={"horizon": len(rows)} | learning)
        place = folder / name
        made[name] = resumed(place, declared(place, data), place / "data.csv", rows)
    return made


@stream("command iterates")
def iterates(folder: Path) -> Mapping[str, object]:
    """The methods igd and giga, each of whose models is an iterate, and labels alone as what is protected."""
    made = {}
    for method, privacy in (("igd", {}), ("giga", {"neighbours": "label"})):
        learning = {"horizon": ROWS, "method": method, "release": "geometric"}
        place = folder / method
        path = declared(place, contract(BOUGHT, privacy=privacy, learning=learning))
        made[method] = resumed(place, path, place / "data.csv", records(ROWS))
    return made


STEADY = {"horizon": ROWS, "release": 50}


@stream("command encrypted")
def encrypted(folder: Path) -> Mapping[str, object]:
    """A run whose state is encrypted, in a database that it shares; what is decrypted is as of any other run."""
    path, key, shared = declared(folder, contract(SPENT, learning=STEADY)), folder / "taciturn.key", folder / "runs.db"
    command("store", "new-key", key)
    rows, data = records(ROWS), folder / "data.csv"
    more = ["--out", folder / "run", "--seed", SEED, "--key", key, "--store", shared, "--quiet"]
    command("learn", path, write(data, rows[:400]), *more)
    command("learn", path, write(data, rows[:1190]), *more, "--resume")
    return stored(Store(shared, key=key), "run")


@stream("command renewal")
def renewal(folder: Path) -> Mapping[str, object]:
    """A run that is closed, and its successor, which starts from its last model under another budget."""
    rows, old, new = records(ROWS), folder / "old", folder / "new"
    first = declared(folder, contract(SPENT, learning={"horizon": 800, "release": 50}))
    following = contract(SPENT, privacy={"epsilon": 2.0}, learning={"horizon": 700, "release": 25})
    second = declared(folder, following, "next.toml")
    seeded = ["--seed", SEED, "--quiet"]
    command("learn", first, write(folder / "old.csv", rows[:790]), "--out", old, *seeded)
    said = json.loads(command("renew", second, old, "--out", new, "--seed", SEED, "--json"))
    command("learn", second, write(folder / "new.csv", rows[790:]), "--out", new, "--resume", *seeded)
    return {
        "old": run_in(old, first, seed=SEED),
        "new": run_in(new, second, seed=SEED),
        "promise": numbers_in(said["promise"]),
        "starts from the model": said["starts_from_the_model"],
    }


@stream("command ledger")
def ledger(folder: Path) -> Mapping[str, object]:
    """What runs with secret noise reserve and spend, in two ledgers: of their database, and elsewhere; exact sums."""
    path, rows, data, made = declared(folder, contract(SPENT, learning=STEADY)), records(ROWS), folder / "data.csv", {}
    shared, apart = folder / "runs.db", folder / "budget.db"
    for place in (shared, apart):
        command("budget", "create", place, "--epsilon", "20", "--delta", "1e-4", "--population", "people")
    for name, place in (("here", shared), ("elsewhere", apart)):
        more = ["--out", folder / name, "--store", shared, "--ledger", place, "--quiet"]
        command("learn", path, write(data, rows[:400]), *more)
        command("learn", path, write(data, rows[:1190]), *more, "--resume")
        saved = stored(Store(shared), name)
        exact = {part: array for part, array in saved["state"].items() if part.startswith(("secret/", "exact/"))}
        made[name] = {"exact": exact, "cost": saved["cost"]} | in_ledger(t.Ledger(place, population="people"))
    return made


# Workers, and files that come.


@stream("workers pool")
def pool(folder: Path) -> Mapping[str, object]:
    """`taciturn learn --workers 2`, a command of its own, on Parquet and CSV, of rows and of users, by PQFTL."""
    rows, made = records(13_000), {}
    sources = os.pathsep.join([str(Path(t.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    for kind, privacy in (("parquet", {}), ("csv", {"user": "who", "rows_per_user": 3})):
        place = folder / kind
        path = declared(place, contract(SPENT, privacy=privacy, learning={"horizon": 13_000, "release": 1_000}))
        data, out = write(place / f"data.{kind}", rows[:12_990]), place / "run"
        arguments = ["learn", path, data, "--out", out, "--workers", 2, "--seed", SEED, "--quiet"]
        subprocess.run(
            [sys.executable, "-m", "taciturn", *map(str, arguments)],
            check=True,
            env=os.environ | {"PYTHONPATH": sources},
            stderr=subprocess.DEVNULL,  # a machine with one core is told so
        )
        made[kind] = run_in(out, path, seed=SEED)
    return made


@stream("workers folder")
def files(folder: Path) -> Mapping[str, object]:
    """Files in numbered batches, as Spark hands them over: of rows, users and stages, by PQFTL and FTRL."""
    rows, made = records(6_000), {}
    known = {"horizon": 6_000, "release": 300}
    found = FEW | {"income": {"range": "private"}}
    for name, kind, data in (
        ("rows", "csv", contract(SPENT, learning=known)),
        ("users", "parquet", contract(SPENT, privacy={"user": "who", "rows_per_user": 3}, learning=known)),
        ("stages", "parquet", contract(SPENT, found, privacy={"epsilon": 20.0}, learning=known)),
        ("gradients", "parquet", contract(SPENT, learning=known | {"loss": "huber", "release": 1_000})),
    ):
        place, promised = folder / name, contract_of(data)
        place.mkdir()
        store = Store(place / "stream.db")
        driver = FileStream(store, promised, map, folder=place, seed=SEED)
        for batch, ends in enumerate(((0, 700), (700, 900, 3_100), (3_100, 5_990))):
            spans = pairwise(ends)
            names = [write(place / f"part{start:04}.{kind}", rows[start:end]).name for start, end in spans]
            driver.learn("query", batch, names)
        private = promised.plan(on_bad="zero", seed=SEED).private
        made[name] = stored(store, "stream") | {"guarantee": guarantee_of(private)}
    return made


@stream("command plan")
def plan(folder: Path) -> Mapping[str, object]:
    """What `taciturn check` expects of contracts, in numbers."""
    made = {}
    for name, target, learning in (
        ("classes", BOUGHT, {"horizon": 100_000}),
        ("numbers", SPENT, {"horizon": 100_000}),
        ("forgetting", SPENT, {"forget": "auto"}),
    ):
        path = declared(folder, contract(target, COLUMNS, learning=learning), f"{name}.toml")
        made[name] = numbers_in(json.loads(command("check", path, "--json")))
        made[name]["guarantee"] = guarantee_of(read_contract(path).plan().private)
    return made
