"""Which rows of a user count, decided by workers: ids are hashed where they are read, and users are partitioned.

`taciturn.kernel.stream.participation.admit` is the definition, for one process that sees all ids. Here

1. a worker reads the ids of some rows, hashes them by the stream's key, and partitions the users by the leading bits of
   their hashes (`hash_rows`);
2. for each partition, a worker brings the rows of its users together, in the order of their rounds, and decides which
   of them count (`decide`);
3. the process of the stream looks up the records that decisions begin with, and adds what they end with as one layer
   (`admit_hashed`); `Private.run_sums` commits that with the block.

**Claim.** The rows that count, and the records after them, are those of `admit`, for any cut of the rows into parts and
any number of partitions. *Proof.* Whether a row counts depends on its user's record and on the earlier rows of that
user alone (`taciturn.kernel.stream.participation`). A user is in one partition, which is a function of the hash, and in
it the rows are in the order of their rounds. Partitions are ranges of hashes, so that their records, one partition
after the other, are sorted: they are the layer that `admit` adds. ∎

The key, hashes, records and decisions are secret: with the key, the owner of a hash can be found by trying ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.kernel.accounting.unit import User
from taciturn.kernel.arrays import Integers
from taciturn.kernel.errors import InvalidInput, integer
from taciturn.kernel.stream.participation import (
    Hashes,
    Mask,
    UserRecords,
    decision,
    hash_ids,
    lookup,
    new_layer,
    without_an_id,
)

Places = NDArray[np.int32]


class UserRows(NamedTuple):
    """Rows of the users of one partition, in one part of the stream; secret."""

    users: Hashes  # each once, sorted
    owners: Places  # for each row, the place of its user among them
    positions: Places  # of the rows in their part, rising

    def __repr__(self) -> str:
        return "UserRows(secret)"


class HashedRows(NamedTuple):
    """The ids of a part of the stream, hashed: a number of rows, those of each partition, and those without an id."""

    rows: int
    partitions: tuple[UserRows, ...]
    missing: Places

    def __repr__(self) -> str:
        return f"HashedRows({self.rows} rows, secrets not shown)"


def hash_rows(ids: Any, key: bytes, partitions: int) -> HashedRows:
    """Hash the ids of a part of the rows, one id a row, and partition the users by their hashes.

    >>> part = hash_rows(["anna", "bob", None, "anna"], bytes(32), partitions=1)
    >>> part, part.missing.tolist(), len(part.partitions[0].users), part.partitions[0].positions.tolist()
    (HashedRows(4 rows, secrets not shown), [2], 2, [0, 1, 3])
    """
    partitions = integer("partitions", partitions)
    hashed = hash_ids(ids, key)
    if hashed.owners.shape[1] != 1:
        raise InvalidInput("workers decide on rows of one owner, and these have several. Use Private.admit.")
    owners, users = hashed.owners[:, 0], hashed.users
    missing = owners < 0
    if missing.any():  # a missing id has a hash, too, and is no user
        present, places = np.unique(owners[~missing], return_inverse=True)
        users = np.ascontiguousarray(users[present])
        owners = np.full(len(owners), -1)
        owners[~missing] = places
    kinds: Integers = ((users[:, 0] >> np.uint64(32)) * np.uint64(partitions) >> np.uint64(32)).astype(np.int64)
    cuts = np.searchsorted(kinds, np.arange(partitions + 1))  # users are sorted, and so are their partitions
    which = np.append(kinds, -1)[owners]  # a missing one's place is -1, the last
    order = np.argsort(which.astype(np.int16 if partitions < 2**15 else np.int64), kind="stable")
    starts = np.searchsorted(which[order], np.arange(partitions + 1))
    positions = order.astype(np.int32)
    own = owners[order].astype(np.int32)
    parts = tuple(
        UserRows(users[cuts[p] : cuts[p + 1]], own[a:b] - np.int32(cuts[p]), positions[a:b])
        for p, (a, b) in enumerate(pairwise(starts.tolist()))
    )
    return HashedRows(len(owners), parts, positions[: starts[0]])


@dataclass(frozen=True, repr=False)
class PartitionTask:
    """What is decided for one partition: its rows in each part of the stream, and the records of their users. Secret.

    Attributes
    ----------
    unit : User
        The contribution bound.
    rows : sequence of UserRows
        The rows of each part, in the order of the stream.
    found : sequence of ndarray
        For each part, the records that its users have.
    firsts : ndarray of int
        How many rows lie before each part.
    ends, blocks, periods : ndarray of int
        For each run of rows of one block and period, how many rows lie before its end; its block, and its period.
    """

    unit: User
    rows: Sequence[UserRows]
    found: Sequence[Integers]
    firsts: Integers
    ends: Integers
    blocks: Integers
    periods: Integers
    compiled: bool = True

    def __repr__(self) -> str:
        return "PartitionTask(secret)"


class PartitionResult(NamedTuple):
    """Which rows count, for each part, and the records of all users of the partition after them; secret."""

    counted: tuple[Mask, ...]
    users: Hashes
    records: Integers

    def __repr__(self) -> str:
        return "PartitionResult(secret)"


def decide(task: PartitionTask) -> PartitionResult:
    """Decide which rows of a partition count."""
    users = np.concatenate([part.users for part in task.rows])
    order = np.lexsort((users[:, 1], users[:, 0]))
    in_order = users[order]
    differs = np.append(True, (in_order[1:] != in_order[:-1]).any(axis=1))[: len(users)]
    place = np.empty(len(users), dtype=np.int64)
    place[order] = np.cumsum(differs) - 1
    records = np.ascontiguousarray(np.concatenate(task.found)[order][differs])
    offsets = np.cumsum([0, *(len(part.users) for part in task.rows)])
    owners = np.concatenate([place[at + part.owners] for at, part in zip(offsets, task.rows, strict=False)])
    rows = np.concatenate([first + part.positions for first, part in zip(task.firsts, task.rows, strict=True)])
    runs = np.searchsorted(task.ends, rows, side="right")
    by_user = np.argsort(owners, kind="stable")
    counted = np.empty(len(rows), dtype=np.bool_)
    firsts = np.searchsorted(owners[by_user], np.arange(len(records)))
    counted[by_user] = decision(
        task.unit, records, firsts, task.blocks[runs][by_user], task.periods[runs][by_user], task.compiled
    )
    ends = np.cumsum([len(part.positions) for part in task.rows])
    return PartitionResult(tuple(np.split(counted, ends[:-1])), np.ascontiguousarray(in_order[differs]), records)


Map = Callable[[Callable[[PartitionTask], PartitionResult], Iterable[PartitionTask]], Iterable[PartitionResult]]


@dataclass(frozen=True)
class HashedAdmission:
    """The rule of `taciturn.kernel.stream.participation.admit` for rows whose ids workers have hashed.

    `map` lets workers decide.
    """

    unit: User
    records: UserRecords = field(repr=False)
    compiled: bool = True
    on_bad: str = "zero"

    def __call__(
        self, parts: Sequence[HashedRows], blocks: Integers, periods: Integers, map: Map
    ) -> tuple[Mask, UserRecords]:
        """Which rows count, and the records after them; `blocks` and `periods` are those of the rows, in order."""
        records = self.records
        firsts = np.cumsum([0, *(part.rows for part in parts)])
        taken = np.maximum(periods, records.period)
        if len(taken):
            records = replace(records, period=int(taken[-1]), first=records.first or int(taken[0]))
        counts = without_an_id(self.unit, int(firsts[-1]), _missing(parts, firsts), self.on_bad)
        tasks = self._tasks(parts, firsts, blocks, taken)
        layers = []
        for task, decided in zip(tasks, map(decide, tasks), strict=True):
            for first, part, counted in zip(task.firsts, task.rows, decided.counted, strict=True):
                counts[first + part.positions] = counted
            layers.append((decided.users, decided.records))
        if layers:
            users, after = (np.concatenate(each) for each in zip(*layers, strict=True))
            records = records.with_layer(new_layer(users, after), self.compiled)
        return counts, records

    def _tasks(
        self, parts: Sequence[HashedRows], firsts: Integers, blocks: Integers, periods: Integers
    ) -> list[PartitionTask]:
        """A task for each partition that has rows."""
        changes = np.flatnonzero((blocks[1:] != blocks[:-1]) | (periods[1:] != periods[:-1])) + 1
        at = np.append(0, changes)[: len(blocks)]
        runs = np.append(changes, len(blocks)), blocks[at], periods[at]
        tasks = []
        for rows in zip(*(part.partitions for part in parts), strict=True):
            here = [i for i, part in enumerate(rows) if len(part.positions)]
            if here:
                own = [rows[i] for i in here]
                found = [lookup(self.records.layers, part.users, self.compiled) for part in own]
                tasks.append(PartitionTask(self.unit, own, found, firsts[here], *runs, self.compiled))
        return tasks


def _missing(parts: Sequence[HashedRows], firsts: Integers) -> Integers:
    empty = np.empty(0, dtype=np.int64)
    return np.concatenate([empty, *(first + part.missing for first, part in zip(firsts, parts, strict=False))])
