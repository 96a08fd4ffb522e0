"""A small contract with rows to learn from, and what must hold of a run's folder whenever it is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from taciturn.contract.contract import Contract, contract_of
from taciturn.contract.model_file import read_model
from taciturn.plan import Plan
from taciturn.readers.rows import Batch, open_rows
from taciturn.runs.files import Folder, locked
from taciturn.runs.ingest import Ending, learn_from
from taciturn.runs.resume import Check
from taciturn.runs.run import Run, begin, find, resume
from taciturn.runs.summary import ModelFile
from taciturn.store import Saved, Store

DECLARED = """\
[privacy]
epsilon = 1.0
delta = 1e-6

[target]
column = "bought"
classes = ["no", "yes"]

[learning]
loss = "logistic"
horizon = {horizon}
release = {release}

[columns]
age = {{ range = [0, 100] }}
town = {{ categories = ["Oslo", "Rome"] }}
"""


def rows_of(count: int, seed: int = 1) -> list[str]:
    """Lines of a CSV file, without the header; fewer of them are the first of more."""
    numbers = np.random.default_rng(seed).random((count, 3))
    return [f"{int(a * 101)},{'Rome' if b < 0.5 else 'Oslo'},{'yes' if c < a else 'no'}" for a, b, c in numbers]


def write_case(
    folder: Path, rows: int, horizon: int | None = None, release: str = "2", rows_per_user: int | None = None
) -> tuple[Path, Path]:
    """A contract and a CSV file of so many rows; of users, of whom so many rows count, if that is stated."""
    declared = DECLARED.format(horizon=horizon or rows, release=release).replace("horizon = -1\n", "")
    lines = ["age,town,bought", *rows_of(rows)]
    if rows_per_user is not None:
        declared = declared.replace("[target]", f'user = "who"\nrows_per_user = {rows_per_user}\n\n[target]')
        lines = [f"{line},{who}" for line, who in zip(lines, ["who", *users_of(rows)], strict=True)]
    (folder / "taciturn.toml").write_text(declared)
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder / "taciturn.toml", folder / "data.csv"


def users_of(count: int) -> list[int]:
    """The user of each row: 4,096 of them, some with a row or two, some with dozens."""
    return (4096 * np.random.default_rng(5).random(count) ** 2).astype(int).tolist()


def contract(horizon: int | None, release: int | str = 2) -> Contract:
    """The same contract, without a file."""
    learning = {"loss": "logistic", "release": release} | ({} if horizon is None else {"horizon": horizon})
    return contract_of(
        {
            "privacy": {"epsilon": 1.0, "delta": 1e-6},
            "target": {"column": "bought", "classes": ["no", "yes"]},
            "learning": learning,
            "columns": {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}},
        }
    )


@lru_cache
def planned(declared: Contract, seed: int | None) -> Plan:
    """Its plan, as `taciturn learn` makes it."""
    return declared.plan(on_bad="zero", seed=seed)


def batches(declared: Contract, count: int, size: int, seed: int = 1) -> Iterator[Batch]:
    """The first rows, so many at a time."""
    import io

    text = "\n".join(["age,town,bought", *rows_of(count, seed)]) + "\n"
    return open_rows(declared, io.BytesIO(text.encode()), block=size)


def go(
    place: Path,
    declared: Contract,
    rows: Iterator[Batch],
    *,
    again: bool = False,
    seed: int | None = None,
    check: Check = "all",
    format: str = "csv",
) -> tuple[Run, Ending]:
    """What `taciturn learn --commit-every 0` does, in this process as in a new one."""
    place.mkdir(exist_ok=True)
    plan = planned(declared, seed)

    with locked(place) as handle:
        settings = {"exporters": (ModelFile(declared),), "seconds": 0.0, "format": format}
        folder = Folder(place, handle)
        find(folder, folder.store, declared.digest, resuming=again)
        settings |= {} if again else {"about": {"declared": declared.declared}}
        opened = (resume if again else begin)(folder, Store(folder.store), plan, declared.digest, **settings)
        return opened, learn_from(opened, rows, check=check)


def saved(place: Path) -> Saved:
    """The last commit of a run."""
    return Store(place / "stream.db").load("stream")


def shown(place: Path) -> bytes:
    """What the world has seen."""
    return (place / "models.jsonl").read_bytes() if (place / "models.jsonl").exists() else b""


def check(place: Path, declared: Contract, seed: int | None = None) -> None:
    """What must hold whenever the process stopped: nothing is shown that the store has not paid for."""
    private = planned(declared, seed).private
    lines = shown(place).split(b"\n")
    whole, torn = [json.loads(line) for line in lines[:-1]], bool(lines[-1])
    stored = saved(place)
    _, t, k, _ = stored.position
    assert [line["k"] for line in whole] == list(range(1, len(whole) + 1))
    assert [line["t"] for line in whole] == [private.timetable.due(k) for k in range(1, len(whole) + 1)]
    assert len(whole) + torn <= k
    outbox = b"".join(chunk.content for chunk in Store(place / "stream.db").releases("stream"))
    assert outbox.count(b"\n") == k
    assert outbox.startswith(shown(place))
    assert stored.spent.mu_squared >= private.calibrated.cost(len(whole) + torn).mu_squared
    assert private.timetable.fits(t, k)
    if (place / "model.json").exists():
        assert read_model(place / "model.json").releases <= k
