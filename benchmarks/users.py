"""Rows of users: the time to decide which of them count, in memory and with a commit to SQLite.

A million users have ten rows each, in random order, of which four count, and come 100,000 at a time. The yardstick is
what cannot be left out: a keyed hash for each distinct id of a batch, by the same function of the standard library, in
a plain loop. A contender goes through all batches once; times are CPU seconds per row, the commit's included. At the
end every user's rows that count are counted again, from the ids and the masks alone: none may have more than four.
"""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from runner import Contender, Ratio, environment, parse_options, save, tables, take_turns, use_one_core
from taciturn import User
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.kernel.stream.participation import admit, new_records
from taciturn.store import Store

UNIT = User(rows=4)
BATCH = 100_000


def ids_of(users: int, rows: int) -> list[Any]:
    """Batches of ids: each user has so many rows, in random order."""
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(users), rows))
    return np.split(order, range(BATCH, len(order), BATCH))


def hashes(batches: list[Any]) -> Callable[[], Any]:
    """A keyed hash of each distinct id of each batch."""

    def work() -> None:
        for batch in batches:
            for user in np.unique(batch).tolist():
                hashlib.blake2b(b"%d" % user, digest_size=16, key=b"k" * 32).digest()

    return work


def admissions(batches: list[Any], folder: Path | None) -> Callable[[], Any]:
    """All batches from the first; with a folder, each is committed to a store."""

    def work() -> Any:
        records, saved, masks = new_records(seed=1), None, []
        store = None if folder is None else Store(folder / f"{uuid.uuid4().hex}.db")
        if store is not None:
            saved = store.create("s", lineage=uuid.uuid4().hex, position=(0, 0, 0, "0"), reserved=gaussian(1.0))
        for k, batch in enumerate(batches, start=1):
            blocks, periods = np.full(len(batch), k), np.zeros(len(batch), dtype=np.int64)
            counts, records = admit(UNIT, records, batch, blocks, periods)
            masks.append(counts)
            if store is not None and saved is not None:
                layers = {each.name: None if each.name in saved.layers else each.to_bytes() for each in records.layers}
                at = (k, k * BATCH, 0, uuid.uuid4().hex)
                saved = store.commit(saved, position=at, spent=FREE, state=b"", layers=layers)
        return masks

    return work


def most_rows(batches: list[Any], masks: list[Any]) -> int:
    """The most rows of one user that counted."""
    ids, counts = np.concatenate(batches), np.concatenate(masks)
    return int(np.bincount(ids[counts]).max())


def main() -> None:
    chosen = parse_options(__doc__)
    use_one_core()
    console = Console(stderr=chosen.json)
    batches = ids_of(10_000 if chosen.quick else 1_000_000, 10)
    rows = sum(map(len, batches))
    with tempfile.TemporaryDirectory() as place:
        works = {
            "hashes alone": hashes(batches),
            "in memory": admissions(batches, None),
            "with SQLite": admissions(batches, Path(place)),
        }
        most = {name: most_rows(batches, works[name]()) for name in ("in memory", "with SQLite")}
        assert set(most.values()) == {UNIT.rows}, most
        turns = take_turns({name: Contender(work, rows) for name, work in works.items()}, 3, console)
    wanted = {
        "in memory / hashes alone": Ratio("in memory", "hashes alone", at_most=3.0),
        "with SQLite / hashes alone": Ratio("with SQLite", "hashes alone", at_most=6.0),
    }
    results = turns.ratios(wanted)
    record = environment("taciturn") | {
        "unit": "CPU seconds per row",
        "users": len(np.unique(np.concatenate(batches))),
        "most rows of a user that counted": most,
        "seconds": turns.seconds,
        "ratios": results,
    }
    save("users", record, chosen, console, *tables(turns, results, "µs per row"))


if __name__ == "__main__":
    main()
