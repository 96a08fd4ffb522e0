"""One stream by several workers: CPU time a row of what each side does, from Parquet, squared loss, 54 features.

*One process* reads, learns and commits as `taciturn learn` does. *Workers* read, clip, round and add up the same rows,
and hash them for the checkpoint (`taciturn.engines.pool.add_up`); the *driver* adds their integers, draws noise,
decides and commits. The speed of two workers is computed from the two: half of the rows by each of them, and then all
of the driver's work, as if it began when they have finished. (In a run it does not.) A ratio to a file of eight times
the rows tells whether the time a row depends on the length; the driver's time a block, whether it depends on the rows
in it. *Users* are what a run with users adds: workers read and hash the ids, and decide which rows count, partition by
partition; the driver looks up records, sends and receives what travels (pickled here), and adds a layer. Beside it is
the same decision in one process.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from runner import Contender, Ratio, parse_options, run, use_one_core
from taciturn.contract.contract import Contract, contract_of
from taciturn.engines import pool
from taciturn.kernel.stream.hashed_rows import HashedRows, PartitionResult, PartitionTask, decide
from taciturn.readers.rows import open_rows
from taciturn.runs import ingest
from taciturn.runs.files import Folder
from taciturn.runs.resume import BLOCK
from taciturn.runs.run import Run, begin
from taciturn.store import Store

DIMENSION = 54
LONGER = 8
BLOCKS = 64
"""Releases by which the driver is measured."""


def declared(rows: int, users: bool = False, release: int | str = "auto") -> Contract:
    """A contract of `DIMENSION` numbers for so many rows."""
    privacy = {"epsilon": 1.0} | ({"user": "who", "rows_per_user": 4} if users else {})
    columns: dict[str, Any] = {f"x{j}": {"range": [0, 1]} for j in range(DIMENSION)}
    columns |= {} if users else {"who": {"ignore": True}}
    learning = {"loss": "squared", "horizon": rows, "release": release}
    return contract_of(
        {"privacy": privacy, "target": {"column": "y", "range": [-1, 1]}, "learning": learning, "columns": columns}
    )


def write(path: Path, rows: int, times: int = 1) -> Path:
    """Numbers of two decimals in Parquet, in groups of 131,072 rows; the same rows so many times."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 1.0, (rows, DIMENSION)).round(2)
    y = np.clip(X @ rng.normal(size=DIMENSION) / DIMENSION + 0.1 * rng.normal(size=rows), -1.0, 1.0)
    columns = {f"x{j}": X[:, j] for j in range(DIMENSION)} | {"y": y, "who": rng.integers(0, rows // 4, rows)}
    table = pa.table(columns)
    with parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(times):
            writer.write_table(table, row_group_size=2**17)
    return path


class Measured:
    """Runs in folders of their own, of one contract and one file."""

    def __init__(self, folder: Path, contract: Contract, path: Path) -> None:
        self.contract = contract
        self.path = path
        self._folders: Iterator[Path] = (folder / f"{contract.digest}-{number}" for number in count())
        self._plan = contract.plan(on_bad="zero", seed=1)
        self.tasks = self._tasks()

    def new(self) -> Run:
        """A run that has begun."""
        place = next(self._folders)
        place.mkdir()
        folder = Folder(place)
        return begin(folder, Store(folder.store), self._plan, self.contract.digest, format="parquet")

    def _tasks(self) -> list[pool.Task]:
        """The tasks of two workers, from the first row on."""
        work = pool._Work(self.new(), self.contract, str(self.path), "parquet", "stop", map, 2)
        return [work._task(*span) for span in work._spans(0)]

    def one_process(self) -> Run:
        """All rows, read and learnt here."""
        made = self.new()
        ingest.learn_from(made, open_rows(self.contract, self.path))
        return made

    def workers(self, tasks: list[pool.Task] | None = None) -> list[pool.Part]:
        """What workers do, one task after the other."""
        return [pool.add_up(task) for task in (self.tasks if tasks is None else tasks)]

    def driver(self) -> Callable[[], Run]:
        """What the driver does, with the parts as they came."""
        parts = self.workers()

        def work() -> Run:
            made = self.new()
            for task, part in zip(self.tasks, parts, strict=True):
                made.seen.begin_batch(task.start)
                made.learn_sums(pool.blocks_of([part]), part.digests)
            made.commit()
            return made

        return work


class Admitted:
    """Admission of a file's users by partitions: what workers and driver do, each with what the others have sent."""

    def __init__(self, users: Measured) -> None:
        self.stream = users.new().stream
        self.tasks = [pool.IdsTask(task, self.stream.user_key, len(users.tasks)) for task in users.tasks]
        self._parts = [pickle.dumps(part) for part in self.hashed()]
        self._decisions: list[PartitionTask] = []
        self.driver(self._remember)
        self._decided = [pickle.dumps(each) for each in self.decided()]

    def hashed(self) -> list[HashedRows]:
        """What workers do first."""
        return [pool.hash_ids_of(task) for task in self.tasks]

    def decided(self) -> list[PartitionResult]:
        """What workers do next."""
        return [decide(task) for task in self._decisions]

    def driver(self, map: Any = None) -> Any:
        """What the driver does."""
        return self.stream.admit_hashed([pickle.loads(part) for part in self._parts], map or self._sent)

    def _remember(self, function: Any, tasks: list[PartitionTask]) -> list[PartitionResult]:
        self._decisions = list(tasks)
        return [function(task) for task in tasks]

    def _sent(self, function: Any, tasks: list[PartitionTask]) -> list[PartitionResult]:
        for task in tasks:
            pickle.dumps(task)
        return [pickle.loads(each) for each in self._decided]


def blocks_of(rows: int, contract: Contract) -> Callable[[], Any]:
    """`run_sums` on blocks of so many rows each, whose sums are known."""
    from taciturn import BlockSums, block_statistics, every, pqftl
    from taciturn.kernel.replay import sums_in

    problem = contract.plan(on_bad="zero").private.problem
    private = pqftl(problem, contract.plan().private.privacy, rows * BLOCKS, schedule=every(rows), seed=1)
    one = block_statistics(private.learner, None, np.full((1, DIMENSION), 0.1), [0.5])
    parts = [BlockSums(rows, sums_in(one) * rows, one.settings) for _ in range(BLOCKS)]
    return lambda: private.run_sums(private.start(), parts)


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    rows = 2 * BLOCK if chosen.quick else 2**19
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short = Measured(folder, declared(rows, release=BLOCK), write(folder / "short.parquet", rows))
        many = rows * LONGER
        long = Measured(folder, declared(many, release=BLOCK), write(folder / "long.parquet", rows, LONGER))
        users = Measured(folder, declared(rows, users=True, release=BLOCK), short.path)
        ids = np.concatenate([pool.ids_of(task) for task in users.tasks])
        admission = Admitted(users)
        half = short.tasks[: (len(short.tasks) + 1) // 2]
        share = sum(task.rows for task in half)
        contenders = {
            "one process": Contender(short.one_process, rows),
            "workers": Contender(short.workers, rows),
            "one of two workers, per row of the file": Contender(lambda: short.workers(half), 2 * share),
            "driver": Contender(short.driver(), rows),
            f"workers, {LONGER} times the rows": Contender(long.workers, many),
            "users, workers: ids": Contender(admission.hashed, rows),
            "users, workers: decisions": Contender(admission.decided, rows),
            "users, driver": Contender(admission.driver, rows),
            "users, admission in one process": Contender(lambda: admission.stream.admit(ids), rows),
            "driver, a block of 4,096 rows": Contender(blocks_of(2**12, short.contract), BLOCKS),
            "driver, a block of 1,048,576 rows": Contender(blocks_of(2**20, short.contract), BLOCKS),
        }
        two = ("one of two workers, per row of the file", "driver")
        ratios = {
            "workers / one process": Ratio("workers", "one process", at_most=2.0),
            "one process / two workers and the driver": Ratio("one process", two, at_least=1.6),
            f"workers, {LONGER} times the rows / workers": Ratio(
                f"workers, {LONGER} times the rows", "workers", at_most=1.1
            ),
            "driver, 1,048,576 rows a block / 4,096": Ratio(
                "driver, a block of 1,048,576 rows", "driver, a block of 4,096 rows", at_most=1.1
            ),
        }
        run(
            "engines",
            contenders,
            ratios,
            chosen,
            unit="µs per row or block",
            packages=("numpy", "scipy", "pyarrow"),
            repetitions=5,
        )


if __name__ == "__main__":
    main()
