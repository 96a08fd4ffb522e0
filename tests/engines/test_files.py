"""Files in numbered batches: each is learnt once, whatever fails, and batches change nothing that is published."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engines.test_pool import CONTRACTS, declared, in_order, shuffled
from taciturn.accounting.ledger import Ledger
from taciturn.engines import files
from taciturn.engines.files import FileStream, Learnt
from taciturn.errors import BudgetExhausted, InvalidInput, StateConflict
from taciturn.runs.resume import BLOCK
from taciturn.store import Store

pytestmark = pytest.mark.privacy

ROWS = 5 * BLOCK + 1234
FILES = 16


def write(folder, kind="parquet", rows=ROWS, count=FILES):
    """So many files of unequal length with these rows, in order: their names."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(4)
    table = pa.table(
        {
            "age": rng.uniform(0.0, 110.0, rows).round(2),
            "town": np.where(rng.random(rows) < 0.5, "Rome", "Oslo"),
            "spent": rng.uniform(0.0, 50.0, rows).round(2),
            "bought": rng.integers(0, 2, rows),
            "who": [f"user {i}" for i in rng.integers(0, 3000, rows)],
        }
    )
    ends = [0, *sorted(random.Random(1).sample(range(1, rows), count - 1)), rows]
    names = []
    for i in range(count):
        part, name = table.slice(ends[i], ends[i + 1] - ends[i]), f"part{i:02}.{kind}"
        if kind == "parquet":
            parquet.write_table(part, folder / name, row_group_size=900)
        else:
            csv.write_csv(part, folder / name)
        names.append(name)
    return names


def batched(names, size):
    return [names[i : i + size] for i in range(0, len(names), size)]


def opened(folder, contract, mapped=in_order, store="stream.db", **more):
    return FileStream(Store(folder / store), contract, mapped, folder=folder, **({"seed": 3} | more))


def outbox(stream):
    return b"".join(chunk.content for chunk in stream.store.releases(stream.name))


def all_at_once(folder, contract, names):
    """What one process publishes of all files, one after the other."""
    stream = opened(folder, contract, store="one.db")
    stream.learn("query", 0, names)
    return outbox(stream)


@pytest.mark.parametrize("name", CONTRACTS)
def test_batches_and_workers_change_nothing(name, tmp_path, monkeypatch):
    """One file, four, or all of them in a batch; what is published is what `Private.run` releases."""
    if name == "pqftl, no horizon":
        pytest.skip("its calibration takes long")
    contract, names = CONTRACTS[name], write(tmp_path)
    expected = all_at_once(tmp_path, contract, names)
    assert expected.count(b"\n") == contract.plan(seed=3).private.timetable.count
    monkeypatch.setattr(files, "ROWS", BLOCK)
    for size in (1, 4):
        stream = opened(tmp_path, contract, shuffled if size == 4 else in_order, store=f"by{size}.db")
        for number, batch in enumerate(batched(names, size)):
            stream.learn("query", number, batch)
        assert outbox(stream) == expected
        assert len(stream.learnt().files) == FILES
        assert sum(rows for _, rows in stream.learnt().files) == ROWS


def test_it_publishes_what_run_releases(tmp_path):
    """The rows of all files, in order, in one array."""
    import json

    from taciturn.readers.rows import open_rows

    contract, names = CONTRACTS["pqftl, steady"], write(tmp_path)
    lines = [json.loads(line) for line in all_at_once(tmp_path, contract, names).splitlines()]
    batches = [batch for name in names for batch in open_rows(contract, tmp_path / name)]
    private = contract.plan(on_bad="zero", seed=3).private
    X, y = np.concatenate([b.X for b in batches]), np.concatenate([b.y for b in batches])
    _, releases = private.run(private.start(), X, y)
    assert [line["model"] for line in lines] == releases.points.tolist()


def test_csv_files_are_a_source_too(tmp_path):
    contract, names = CONTRACTS["pqftl, steady"], write(tmp_path, "csv")
    expected = all_at_once(tmp_path, contract, names)
    stream = opened(tmp_path, contract)
    for number, batch in enumerate(batched(names, 5)):
        stream.learn("query", number, batch)
    assert outbox(stream) == expected


def list_map(function, tasks):
    return [function(task) for task in tasks]


def covered(stream):
    """What is spent covers what was shown, and every release has one number."""
    import json

    saved = stream.store.load(stream.name)
    numbers = [json.loads(line)["k"] for line in outbox(stream).splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert saved.position[2] == len(numbers)
    private = stream.contract.plan().private
    assert saved.spent.mu_squared >= private.calibrated.cost(len(numbers)).mu_squared * (1.0 - 1e-12)


def test_gaps_other_queries_and_files_that_come_twice_are_rejected(tmp_path):
    contract, names = CONTRACTS["pqftl, steady"], write(tmp_path)
    stream = opened(tmp_path, contract)
    with pytest.raises(StateConflict, match="batch 0 of this query was never learnt"):
        stream.learn("query", 1, names[:2])
    stream.learn("query", 0, names[:2])
    with pytest.raises(StateConflict, match="of another query"):
        stream.learn("other", 0, names)
    with pytest.raises(StateConflict, match="handed over a second time"):
        stream.learn("query", 1, names[1:3])
    with pytest.raises(StateConflict, match="handed over a second time"):
        stream.learn("query", 1, [names[5], names[5]])
    for again in (f"./{names[0]}", f".//{names[0]}", str(tmp_path / names[0])):
        with pytest.raises(StateConflict, match="handed over a second time"):
            stream.learn("query", 1, [again])
    with pytest.raises(StateConflict, match="never learnt"):
        stream.learn("query", 2, names[2:3])
    stream.continue_with("other")  # the checkpoint was deleted: all files come again
    stream.learn("other", 0, names[:4])
    stream.learn("other", 1, names[4:])
    assert outbox(stream) == all_at_once(tmp_path, contract, names)
    with pytest.raises(StateConflict, match="not a stream of files under this contract"):
        opened(tmp_path, declared(release=3000, horizon=ROWS, privacy={"epsilon": 2.0}))


def test_a_bad_row_and_a_missing_file_reject_their_batch(tmp_path):
    contract, names = CONTRACTS["pqftl, steady"], write(tmp_path, "csv")
    path = tmp_path / names[2]
    good = path.read_text()
    header, row, rest = good.split("\n", 2)
    path.write_text("\n".join([header, "old," + row.partition(",")[2], rest]))
    stream = opened(tmp_path, contract)
    with pytest.raises(InvalidInput, match="age"):
        stream.learn("query", 0, names[:3])
    assert stream.learnt() == Learnt()
    path.unlink()
    with pytest.raises(InvalidInput, match="cannot be read"):
        stream.learn("query", 0, names[:3])
    path.write_text(good)
    stream.learn("query", 0, names)
    assert outbox(stream) == all_at_once(tmp_path, contract, names)


def test_rows_beyond_the_horizon_and_an_empty_batch(tmp_path):
    contract, names = declared(release=3000, horizon=2 * BLOCK), write(tmp_path)
    stream = opened(tmp_path, contract)
    stream.learn("query", 0, [])
    assert stream.learnt().batch == 0
    with pytest.raises(BudgetExhausted, match="more rows than the 8,192"):
        stream.learn("query", 1, names)
    assert outbox(stream).count(b"\n") == 3
    with pytest.raises(InvalidInput, match="no source for workers"):
        stream.learn("query", 2, ["rows.jsonl"])


def test_the_cost_is_reserved_once_in_a_ledger(tmp_path):
    from taciturn import Privacy

    contract, names = declared(privacy={"epsilon": 1.0, "delta": 1e-6}, release=3000), write(tmp_path)
    ledger = Ledger.create(tmp_path / "budget.db", Privacy(1.2, 1e-5))
    stream = opened(tmp_path, contract, ledger=ledger, seed=None)
    stream.learn("query", 0, names[:8])
    opened(tmp_path, contract, ledger=ledger, seed=None).learn("query", 1, names[8:])
    assert len(ledger.lines) == 1
    with pytest.raises(BudgetExhausted):
        opened(tmp_path, contract, ledger=ledger, seed=None, name="again")
