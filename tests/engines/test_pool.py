"""Workers that add up rows: the same files as one process writes, in any partition, after interruptions and kills."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from small_run import check, planned, saved, shown
from taciturn import InvalidInput, Unprovable
from taciturn.contract.contract import contract_of
from taciturn.engines import pool
from taciturn.errors import BudgetExhausted, StateConflict, TaciturnError
from taciturn.kernel.replay import sums_in
from taciturn.readers.rows import open_rows
from taciturn.runs import ingest
from taciturn.runs.diagnostics import BadRowCount
from taciturn.runs.files import Folder, locked
from taciturn.runs.resume import BLOCK, Checkpoint
from taciturn.runs.run import begin, find, resume
from taciturn.runs.summary import ModelFile
from taciturn.store import Store

pytestmark = pytest.mark.privacy

ROWS = 5 * BLOCK + 1234
COLUMNS = {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}}


def declared(loss="squared", columns=None, privacy=None, horizon=ROWS, **learning):
    """A contract of the columns that `write` writes."""
    target = {"column": "spent", "range": [0, 50]} if loss == "squared" else {"column": "bought", "classes": [0, 1]}
    other = "bought" if loss == "squared" else "spent"
    everything = (columns or COLUMNS) | {other: {"ignore": True}}
    if not (privacy or {}).get("user"):
        everything = everything | {"who": {"ignore": True}}
    learning = {"loss": loss, **learning} | ({} if horizon is None else {"horizon": horizon})
    return contract_of(
        {"privacy": {"epsilon": 1.0} | (privacy or {}), "target": target, "learning": learning, "columns": everything}
    )


def write(folder, kind="csv", rows=ROWS, bad=()):
    """So many rows in a file of this format: numbers, texts with quotes and newlines, and users' ids."""
    rng = np.random.default_rng(4)
    age, spent = rng.uniform(0.0, 110.0, rows).round(2), rng.uniform(0.0, 50.0, rows).round(2)
    town = np.where(rng.random(rows) < 0.5, "Rome", "Oslo").astype(object)
    who = [f"{'a, b' if i % 3 else 'line' + chr(10) + 'break'} {i}" for i in rng.integers(0, 3000, rows)]
    bought = (rng.random(rows) < age / 110.0).astype(int)
    ages = age.astype(object)
    for row in bad:
        ages[row] = "old" if kind == "csv" else None
    table = {"age": ages, "town": town, "spent": spent, "bought": bought, "who": np.array(who, dtype=object)}
    path = folder / f"data.{kind}"
    if kind == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        columns = {name: pa.array(column.tolist()) for name, column in table.items()}
        parquet.write_table(pa.table(columns), path, row_group_size=7000)
    elif kind == "csv":
        import csv

        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table)
            writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    else:
        with open(path, "w") as file:
            for row in zip(*(column.tolist() for column in table.values()), strict=True):
                file.write(json.dumps(dict(zip(table, row, strict=True))) + "\n")
    return path


def in_order(function, tasks):
    """Python's own map, through pickle, as a pool of processes has it."""
    import pickle

    for task in tasks:
        yield pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(task)))))


def shuffled(function, tasks):
    """The last task first."""
    tasks = list(tasks)
    order = random.Random(len(tasks)).sample(range(len(tasks)), len(tasks))
    results = {i: function(tasks[i]) for i in order}
    return [results[i] for i in range(len(tasks))]


def learn(place, contract, path, workers=None, mapped=in_order, *, again=False, seed=3, bad_rows="stop", **more):
    """What `taciturn learn --commit-every 0` does, in this process as in a new one: by so many workers, or by none."""
    place.mkdir(exist_ok=True)
    kind = {"jsonl": "json"}.get(path.suffix[1:], path.suffix[1:])
    with locked(place) as handle:
        folder = Folder(place, handle)
        found = find(folder, folder.store, contract.digest, resuming=again)
        start = Checkpoint.from_bytes(found.input).place_in(kind) if again else None
        settings = {"exporters": (ModelFile(contract),), "seconds": 0.0}
        run = (resume if again else begin)(
            folder, Store(folder.store), planned(contract, seed), contract.digest, format=kind, **settings
        )
        rows = open_rows(contract, path, bad_rows=bad_rows, start=start)
        how = "window" if start else "all"
        if workers is None:
            return run, ingest.learn_from(run, islice(rows, more.get("blocks")), check=how)
        return run, pool.learn_from(
            run, rows, contract, path, mapped, workers, check=how, bad_rows=bad_rows, counted=more.get("counted")
        )


def same(one, other):
    """What was published, and what a resumed run compares."""
    assert shown(one) == shown(other)
    assert shown(one)
    assert (one / "model.json").read_bytes() == (other / "model.json").read_bytes()
    first, second = saved(one), saved(other)
    assert first.position[1:3] == second.position[1:3]
    assert first.spent == second.spent
    ends = [Checkpoint.from_bytes(each.input) for each in (first, second)]
    assert [end.end.row for end in ends] == [ends[0].end.row] * 2


USERS = {"user": "who", "rows_per_user": 2}
CONTRACTS = {
    "pqftl": declared(release="auto"),
    "pqftl, steady": declared(release=3000),
    "pqftl, forgetting": declared(release=1000, forget=8000),
    "pqftl, no horizon": declared(release=5000, horizon=None),
    "pqftl, users": declared(privacy=USERS, release=3000),
    "ftrl": declared("logistic", method="ftrl", release=2 * BLOCK),
    "ftrl, users": declared("logistic", method="ftrl", release=2 * BLOCK, privacy=USERS),
    "private ranges": declared(columns=COLUMNS | {"age": {"range": "private"}}, release=3000),
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("name", CONTRACTS)
def test_files_are_those_of_one_process_for_any_number_of_workers(name, kind, tmp_path):
    """And for any order in which they work."""
    if name == "pqftl, no horizon" and kind != "csv":
        pytest.skip("its calibration takes long, and formats are tested by the others")
    contract, path = CONTRACTS[name], write(tmp_path, kind)
    learn(tmp_path / "one", contract, path)
    workers, mapped = {"csv": (2, shuffled), "parquet": (1, in_order), "jsonl": (7, in_order)}[kind]
    learn(tmp_path / "pool", contract, path, workers, mapped)
    same(tmp_path / "one", tmp_path / "pool")
    check(tmp_path / "pool", contract, 3)


class Stopped(Exception):
    """A crash, planted."""


def after(tasks_done):
    """A map whose workers fail after so many tasks of the run."""
    left = [tasks_done]

    def mapped(function, tasks):
        for task in tasks:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            yield function(task)

    return mapped


@pytest.mark.parametrize("name", ["pqftl", "ftrl", "pqftl, users"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_run_goes_on_with_other_workers_or_with_none(name, kind, tmp_path, monkeypatch):
    """Whoever began it, and wherever it stopped: the chain of digests is the same."""
    monkeypatch.setattr(pool, "ROWS", BLOCK)
    contract, path = CONTRACTS[name], write(tmp_path, kind)
    learn(tmp_path / "one", contract, path)
    for stop in (1, 2, 3):
        place = tmp_path / f"pool{stop}"
        with pytest.raises(Stopped):
            learn(place, contract, path, 2, after(stop))
        check(place, contract, 3)
        if stop == 1:
            learn(place, contract, path, again=True)
        else:
            with pytest.raises(Stopped):
                learn(place, contract, path, 3, after(1), again=True)
            learn(place, contract, path, 2, again=True)
        same(tmp_path / "one", place)
    place = tmp_path / "begun alone"
    learn(place, contract, path, blocks=1)
    learn(place, contract, path, 2, again=True)
    same(tmp_path / "one", place)


def test_an_edited_file_is_noticed_when_a_pools_run_is_resumed(tmp_path, monkeypatch):
    """Workers hash the rows that they add up, with the key of the run."""
    monkeypatch.setattr(pool, "ROWS", BLOCK)
    contract, path = CONTRACTS["pqftl, steady"], write(tmp_path)
    with pytest.raises(Stopped):
        learn(tmp_path / "run", contract, path, 2, after(3))
    assert saved(tmp_path / "run").position[1] > 0
    path.write_text(path.read_text().replace(",Rome,", ",Oslo,"))
    with pytest.raises(StateConflict, match="not those that this run learnt from"):
        learn(tmp_path / "run", contract, path, 2, again=True)


@pytest.mark.parametrize("name", ["pqftl", "pqftl, users", "ftrl"])
def test_a_bad_row_stops_where_it_stops_one_process_or_has_no_influence(name, tmp_path):
    """The rows before it are learnt and committed, and the error is the same."""
    contract = CONTRACTS[name]
    path = write(tmp_path, bad=[3 * BLOCK + 77])
    (_, one), (_, two) = learn(tmp_path / "one", contract, path), learn(tmp_path / "two", contract, path, 2)
    assert one.why == two.why == "rejected"
    assert str(one.error) == str(two.error)
    same(tmp_path / "one", tmp_path / "two")
    counted = BadRowCount(0)
    learn(tmp_path / "three", contract, path, bad_rows="zero")
    learn(tmp_path / "four", contract, path, 2, bad_rows="zero", counted=counted)
    same(tmp_path / "three", tmp_path / "four")
    assert (counted.rows, counted.bad) == (ROWS, 1)


def descriptors(path):
    """The descriptors of this process that have a file open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            found += [each] if each.resolve() == path.resolve() else []
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are listed by Linux")
@pytest.mark.parametrize(
    ("name", "kind"), [("pqftl", "csv"), ("pqftl, users", "csv"), ("ftrl", "csv"), ("pqftl, users", "parquet")]
)
def test_no_ending_leaves_the_file_to_the_garbage_collector(name, kind, tmp_path, monkeypatch):
    """A bad row, the horizon, a worker that fails: the file is closed while the error, and its frames, are held."""
    monkeypatch.setattr(pool, "ROWS", BLOCK)
    contract, path = CONTRACTS[name], write(tmp_path, kind, bad=[2 * BLOCK + 77])
    short = contract_of({**contract.declared, "learning": contract.declared["learning"] | {"horizon": 2 * BLOCK}})
    held, unraisable = [], []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    gc.disable()
    try:
        if kind == "csv":  # a missing value of Parquet is not bad
            held.append(learn(tmp_path / "bad", contract, path, 2)[1].error)
            held.append(learn(tmp_path / "alone", contract, path)[1].error)
        held.append(learn(tmp_path / "beyond", short, path, 2)[1].error)
        for stop in (0, 1):
            with pytest.raises(Stopped) as stopped:
                learn(tmp_path / f"stopped{stop}", contract, path, 2, after(stop))
            held.append(stopped.value)
        assert not descriptors(path)
    finally:
        gc.enable()
    assert all(isinstance(error, TaciturnError | Stopped) for error in held)
    held.clear()
    gc.collect()
    assert unraisable == []


@pytest.mark.parametrize("horizon", [2 * BLOCK, 4 * BLOCK + 55])
def test_rows_beyond_the_horizon_are_rejected_after_all_others_were_learnt(horizon, tmp_path):
    contract, path = declared(release=3000, horizon=horizon), write(tmp_path)
    (_, one), (_, two) = learn(tmp_path / "one", contract, path), learn(tmp_path / "two", contract, path, 2)
    assert isinstance(two.error, BudgetExhausted)
    assert str(one.error) == str(two.error)
    same(tmp_path / "one", tmp_path / "two")


def test_a_short_file_and_an_early_end_are_learnt_here(tmp_path):
    """Where there is nothing for workers to do."""
    contract, path = declared(release="auto", horizon=50_000), write(tmp_path, rows=300)

    def nobody(function, tasks):
        raise AssertionError("there is no work")

    learn(tmp_path / "one", contract, path)
    learn(tmp_path / "two", contract, path, 2, nobody)
    same(tmp_path / "one", tmp_path / "two")


def test_what_workers_cannot_learn_is_rejected_with_the_reason(tmp_path):
    path = write(tmp_path, rows=10)
    with pytest.raises(Unprovable, match="GIGA steps from each example to the next"):
        pool.check_plan(declared("logistic", method="giga", ridge=0.1, radius=1.0).plan())
    with pytest.raises(InvalidInput, match="multiple of 4096"):
        pool.check_plan(declared("logistic", method="ftrl", release=1000).plan())
    with pytest.raises(InvalidInput, match="publishes every 100 rows"):
        pool.check_plan(declared(release=100).plan())
    pool.check_plan(CONTRACTS["pqftl"].plan())
    with pytest.raises(InvalidInput, match="not a pipe"):
        pool.check_source("-")
    (tmp_path / "data.csv.gz").write_bytes(b"")
    with pytest.raises(InvalidInput, match="gzip"):
        pool.check_source(tmp_path / "data.csv.gz")
    assert pool.check_source(path) == "csv"


def test_what_travels_holds_no_row(tmp_path):
    """A task has a place in a file; what comes back are integers and digests, which no repr shows."""
    contract, path = CONTRACTS["pqftl, steady"], write(tmp_path)
    sent, back = [], []

    def spying(function, tasks):
        for task in tasks:
            sent.append(task)
            back.append(function(task))
            yield back[-1]

    learn(tmp_path / "run", contract, path, 2, spying)
    assert sent
    for task, part in zip(sent, back, strict=True):
        assert task.excluded is None
        assert repr(task.key) not in repr(task)
        blocks = pool.blocks_of([part])
        assert all(sums_in(block).dtype == np.int64 for block in blocks)
        assert sum(block.count for block in blocks) == part.rows == task.rows
        assert "secrets not shown" in repr(part)
        for block in blocks:
            assert str(sums_in(block)[0]) not in repr(part)


def test_a_worker_that_dies_is_told_in_a_sentence():
    with pytest.raises(StateConflict, match="worker process ended"), pool.processes(1) as mapped:
        list(mapped(os._exit, [3]))
    assert issubclass(BrokenProcessPool, RuntimeError)


# Real processes.

COMMAND = [sys.executable, "-c", "from taciturn.cli.app import main; main()", "learn"]


def toml_of(contract, path):
    """The contract as a file."""
    lines = []
    for section, content in contract.declared.items():
        lines.append(f"[{section}]")
        lines += [f"{json.dumps(key)} = {_value(value)}" for key, value in content.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def _value(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


def command(*arguments):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )


def finished(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def test_the_command_rejects_what_a_plan_for_workers_rejects(tmp_path):
    """By the same rule and in the same words as taciturn check, before anything is reserved or written."""
    path = write(tmp_path)
    for release, words in ((2 * BLOCK, "would move its point"), ("auto", "would move its point")):
        contract = declared("logistic", method="ftrl", release=release)
        toml = toml_of(contract, tmp_path / "taciturn.toml")
        with pytest.raises(InvalidInput, match=words):
            contract.plan(workers=2)
        said = command(toml, path, "--out", tmp_path / "run", "--workers", 2).communicate(timeout=60)[1]
        assert words in said
    toml = toml_of(declared("logistic", method="ftrl", horizon=2_000_000), tmp_path / "taciturn.toml")
    said = command(toml, path, "--out", tmp_path / "run", "--workers", 2).communicate(timeout=60)[1]
    assert "if it states release = 8192, and it does not" in said
    assert not (tmp_path / "run").exists()


def test_the_command_learns_with_two_processes(tmp_path):
    """The same files, by the same seed; and the options that do not go together are rejected before anything is."""
    contract = CONTRACTS["pqftl"]
    toml, path = toml_of(contract, tmp_path / "taciturn.toml"), write(tmp_path, "parquet")
    both = [
        command(toml, path, "--out", tmp_path / "one", "--seed", 3),
        command(toml, path, "--out", tmp_path / "two", "--seed", 3, "--workers", 2),
    ]
    for process in both:
        finished(process)
    same(tmp_path / "one", tmp_path / "two")
    wrong = command(toml, path, "--out", tmp_path / "three", "--workers", 2, "--diagnostics")
    assert "Omit --workers" in wrong.communicate(timeout=60)[1]
    assert not (tmp_path / "three").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 7])
def test_pools_of_other_sizes(workers, tmp_path):
    contract, path = CONTRACTS["pqftl"], write(tmp_path, "parquet", rows=ROWS)
    learn(tmp_path / "one", contract, path)
    with pool.processes(workers) as mapped:
        learn(tmp_path / "pool", contract, path, workers, mapped)
    same(tmp_path / "one", tmp_path / "pool")


def children_of(process):
    """The processes that it has started."""
    listed = ["ps", "-o", "pid=", "--ppid", str(process.pid)]
    found = subprocess.run(listed, capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


@pytest.mark.slow
def test_kills_of_the_driver_release_nothing_twice_and_leave_no_workers(tmp_path):
    """Five SIGKILLs at random moments: every line ever shown is still there, and the end is that of one run."""
    rows = 600 * BLOCK
    contract = declared(release=1000, horizon=rows)
    toml, path = toml_of(contract, tmp_path / "taciturn.toml"), write(tmp_path, "parquet", rows=rows)
    finished(command(toml, path, "--out", tmp_path / "one", "--seed", 3))
    place, moments, seen, kills = tmp_path / "run", random.Random(3), b"", 0
    options = [toml, path, "--out", place, "--seed", 3, "--workers", 2, "--commit-every", 0]
    while kills < 5:
        again = ["--resume"] if (place / "models.jsonl").exists() else []
        process = command(*options, *again)
        before, end = shown(place), time.monotonic() + 60.0
        while shown(place) == before and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.02))
        workers = children_of(process)
        assert process.poll() is None, "it was too fast to be killed: give it more rows"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        check(place, contract, 3)
        assert shown(place).startswith(seen)
        seen = shown(place)
        end = time.monotonic() + 20.0
        while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    finished(command(*options, "--resume"))
    assert shown(place).startswith(seen)
    same(tmp_path / "one", place)
