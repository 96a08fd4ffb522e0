"""A private stream in a store, run by a process that may stop at any moment; and what must hold afterwards.

A worker goes on where the store stands: it reads the next rows of a file, learns, commits, and only then appends the
releases to a public log, which is synced. `check` compares log, store, ledger and file.
"""

import contextlib
import json
import os
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np

from taciturn import Ledger, Privacy, private_sum
from taciturn.accounting.ledger_rules import at_most
from taciturn.core.state import read_state
from taciturn.errors import InvalidInput, StateConflict, StoreUnavailable
from taciturn.store import Chunk, Store, book, verify  # noqa: F401 - so that forked workers have them

PRIVATE = private_sum(3, 1.0, Privacy(1.0, 1e-6), horizon=20_000)
NAME = "stream"
ROW = 3 * 8
BUDGET = Privacy(1.5, 1e-5)
PRIVATE.prepare(PRIVATE.start(), np.zeros((1, 3)))  # loads what is compiled, once for all workers that are forked


class Place(NamedTuple):
    """Where a stream is: addresses of its store, ledger and witness; the file of its rows, and the public log."""

    store: str
    ledger: str
    witness: str | None
    rows: str
    log: str


def new_place(folder, store, ledger=None, witness=True):
    """A place with rows and a ledger, but no stream yet; the ledger is in the store if `ledger` is None."""
    rows = np.random.default_rng(0).normal(size=(20_000, 3)) / 4.0
    rows.tofile(folder / "rows.bin")
    (folder / "log.jsonl").touch()
    ledger = str(store) if ledger is None else str(ledger)
    Ledger.create(ledger, BUDGET, population="people")
    told = str(folder / "witness.db") if witness else None
    return Place(str(store), ledger, told, str(folder / "rows.bin"), str(folder / "log.jsonl"))


# ---- the worker ------------------------------------------------------------------------------------------------


def go_on(place, seed, commits=None, careless=False):
    """Run the stream, from where the store stands: for so many commits, or for ever.

    A `careless` worker is a planted fault: it shows releases before it commits them.
    """
    chance = random.Random(seed)
    with_patience(lambda: begin(Store(place.store, witness=place.witness), place))
    store = with_patience(lambda: Store(place.store, witness=place.witness))
    done = 0
    while commits is None or done < commits:
        try:
            saved = store.load(NAME)
            show_outbox(store, place)
            while commits is None or done < commits:
                saved, shown = learn(store, saved, place, chance, careless)
                show(shown, place)
                done += 1
        except (StoreUnavailable, StateConflict) as error:  # load again, and go on from there
            if "behind" in str(error) or "differ" in str(error):
                raise


def with_patience(work):
    """The result of `work`, tried again while the database cannot be reached."""
    for _ in range(500):  # opening is several transactions, each of which may be cut
        with contextlib.suppress(StoreUnavailable):
            return work()
    raise AssertionError("the database stays away")


def begin(store, place):
    """Create the stream, unless it is there."""
    if NAME in store.names():
        return
    first = PRIVATE.start()
    with contextlib.suppress(StateConflict):  # it is there after all
        store.create(
            NAME,
            lineage=first.lineage,
            position=first.position,
            reserved=PRIVATE.calibrated.cost(None),
            state=first.to_bytes(),
            input=b"0",
            ledger=Ledger(place.ledger, population="people"),
            settings=PRIVATE.recorded,
        )


def learn(store, saved, place, chance, careless=False):
    """Learn from the next rows, and commit: the stream, and the releases that may be shown."""
    state = read_state(saved.state)
    offset = int(saved.input)
    rows = np.fromfile(place.rows, count=3 * chance.randint(1, 4), offset=offset).reshape(-1, 3)
    prepared = PRIVATE.prepare(state, rows)
    shown = [[release.k, release.t, release.point.tolist()] for release in prepared.releases]
    if careless:
        show(shown, place)
    chunk = Chunk(state.k + 1, prepared.state.k, prepared.state.t, json.dumps(shown).encode())
    saved = store.commit(
        saved,
        position=prepared.state.position,
        spent=prepared.state.spent,
        state=prepared.state.to_bytes(),
        input=str(offset + ROW * len(rows)).encode(),
        releases=[chunk],
    )
    return saved, shown


def show(shown, place):
    """Append releases to the public log, and sync it."""
    log = os.open(place.log, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(log, "".join(f"\n{json.dumps(one)}\n" for one in shown).encode())  # after a torn line, a new one
        os.fsync(log)
    finally:
        os.close(log)


def show_outbox(store, place):
    """Show what was committed, but not shown before the process stopped."""
    last = max((k for k, _, _ in log_of(place)), default=0)
    for chunk in store.releases(NAME, after=last):
        show(json.loads(chunk.content), place)


# ---- what must hold --------------------------------------------------------------------------------------------


def log_of(place):
    """What was shown; a line that a kill has torn was not."""
    shown = []
    for line in Path(place.log).read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            shown.append(json.loads(line))
    return shown


def check(place):
    """Each round shown with one value, spent covers what was shown, each row counted once; how many were shown."""
    store = Store(place.store, witness=place.witness)
    saved = store.load(NAME)
    generation, t, k, _ = saved.position
    shown = {}
    for number, at, point in log_of(place):
        assert shown.setdefault(number, (at, point)) == (at, point), f"release {number} was shown with two values"
    outbox = {n: (at, point) for one in store.releases(NAME) for n, at, point in json.loads(one.content)}
    assert sorted(shown) == list(range(1, max(shown, default=0) + 1))
    assert sorted(outbox) == list(range(1, k + 1))
    assert shown.items() <= outbox.items()
    assert at_most(PRIVATE.calibrated.cost(max(shown, default=0)), saved.spent)
    ledger = Ledger(place.ledger, population="people")
    line = ledger.lines[saved.lineage]
    assert at_most(saved.spent, line.reserved)
    assert line.spent == saved.spent if place.ledger == place.store else at_most(line.spent, saved.spent)
    assert ledger.verify().ok
    assert int(saved.input) == ROW * t
    rows = np.fromfile(place.rows, count=3 * t).reshape(-1, 3)
    state = read_state(saved.state)
    twin = PRIVATE.prepare(PRIVATE.start(), rows).state if t else PRIVATE.start()
    assert (state.t, state.k) == (t, k) == (twin.t, twin.k)
    for name, array in twin.secret.items():
        assert np.allclose(state.secret[name], array, rtol=1e-9, atol=1e-12)
    assert generation <= t
    return len(shown)


def exists(place):
    """Whether the stream is in the store."""
    try:
        return NAME in Store(place.store).names()
    except (InvalidInput, StoreUnavailable):
        return False
