"""Whoever learns a stream in a store: each goes on where the store stands, may stop anywhere, and what must hold then.

A driver reads rows of one table, learns and commits them, and only then shows releases. Its `go_on` is what a new
process does; nothing but its files and its store outlives it. `check` compares what was shown with store, ledger and
input, and what the state holds with one run over the rows that the input says were learnt.
"""

import contextlib
import itertools
import json
import os
import pickle
import random
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np

from taciturn import Ledger, Privacy
from taciturn.contract.contract import contract_of
from taciturn.contract.model_file import read_model
from taciturn.engines import pool
from taciturn.engines.files import FileStream, Learnt
from taciturn.errors import StateConflict, StoreUnavailable
from taciturn.kernel.accounting.ledger_rules import at_most
from taciturn.kernel.replay import arrays_in, record_of
from taciturn.kernel.stream.state import read_state
from taciturn.readers.rows import open_rows
from taciturn.runs.files import Folder, locked
from taciturn.runs.ingest import learn_from
from taciturn.runs.resume import BLOCK, Checkpoint
from taciturn.runs.run import begin, find, resume
from taciturn.runs.summary import ModelFile
from taciturn.store import Store, verify  # noqa: F401 - so that forked workers have it
from taciturn.streams.stored import StoredStream

NAME = "stream"
BUDGET = Privacy(1.5, 1e-5)
HORIZON = 1_000_000


@cache
def contract_for(release):
    """Numbers, a category and a target, of users of whom three rows count."""
    return contract_of(
        {
            "privacy": {"epsilon": 1.0, "user": "who", "rows_per_user": 3},
            "target": {"column": "spent", "range": [0, 50]},
            "learning": {"loss": "squared", "horizon": HORIZON, "release": release},
            "columns": {"age": {"range": [0, 100]}, "town": {"categories": ["Oslo", "Rome"]}},
        }
    )


@cache
def plan_for(release):
    return contract_for(release).plan(on_bad="zero")


def lines_of_rows(count):
    """Lines of a table; fewer of them are the first of more. Some users have a row or two, and some have dozens."""
    numbers = np.random.default_rng(4).random((count, 4))
    who = (count * numbers[:, 3] ** 2).astype(int) if count < 4096 else (4096 * numbers[:, 3] ** 2).astype(int)
    columns = [(101 * numbers[:, 0]).astype(int), np.where(numbers[:, 1] < 0.5, "Rome", "Oslo")]
    rows = zip(*(column.tolist() for column in (*columns, (50 * numbers[:, 2]).astype(int), who)), strict=True)
    return [",".join(map(str, row)) for row in rows]


HEADER = "age,town,spent,who"


@cache
def rows_in(path, release):
    """A file's rows as arrays, and their users."""
    batches = list(open_rows(contract_for(release), path))
    return tuple(np.concatenate([getattr(batch, name) for batch in batches]) for name in ("X", "y", "users"))


@dataclass
class Driver:
    """A stream at a store, with a ledger that has room for one, and a witness; `write` makes its input.

    Parameters
    ----------
    folder : Path
        Where its files are.
    address : str
        The store.
    ledger : str, optional
        Where the budget is; by default in the store.
    copies : str
        Which copy of the program it is: another one has files of its own, but reads the same rows into the same stream.
    """

    folder: Path
    address: str
    ledger: str | None = None
    copies: str = ""
    release: int = 100  # rows from one release to the next
    block: int = 100  # rows that it commits at once

    @property
    def contract(self):
        return contract_for(self.release)

    @property
    def plan(self):
        return plan_for(self.release)

    @property
    def witness(self):
        return str(self.folder / "witness.db")

    @property
    def input(self):
        return self.folder / "rows.csv"

    def store(self):
        return Store(self.address, witness=self.witness)

    def budget(self):
        return Ledger(self.ledger or self.address, population="people")

    def write(self, rows):
        """Make the input and the budget; the driver itself."""
        Ledger.create(self.ledger or self.address, BUDGET, population="people")
        self.input.write_text("\n".join([HEADER, *lines_of_rows(rows), ""]))
        return self

    def another(self):
        """The same program, started a second time."""
        return replace(self, copies="another")

    def go_on(self, commits=None):
        """Learn, commit and show from where the store stands, for so many commits or to the end of the input."""
        raise NotImplementedError

    def learnt(self, saved):
        """How many rows the input says were learnt; they are the first ones of the table."""
        raise NotImplementedError

    # What the world sees: whole lines of a file that is synced.

    @property
    def log(self):
        return self.folder / f"log{self.copies}.jsonl"

    def show(self, content):
        with self.log.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def show_outbox(self, store):
        """What was committed, but not shown before the process stopped; a line that was torn is completed."""
        if NAME in store.names():
            committed = b"".join(chunk.content for chunk in store.releases(NAME))
            self.show(committed[len(self.shown()) :])

    def shown(self):
        """Every byte that was ever shown."""
        return self.log.read_bytes() if self.log.exists() else b""

    def progress(self):
        """Changes when something is committed."""
        return self.log.stat().st_size if self.log.exists() else 0

    # What must hold whenever it has stopped.

    def check(self, exactly=True):
        """Nothing twice, lost or unpaid; each row counted once, if that is asked `exactly`. How much was released."""
        store, private = self.store(), self.plan.private
        if NAME not in store.names():
            assert not self.shown()
            return 0
        saved = store.load(NAME)
        generation, t, k, _ = saved.position
        committed = b"".join(chunk.content for chunk in store.releases(NAME))
        lines = [json.loads(line) for line in committed.splitlines()]
        assert committed.startswith(self.shown()), "a release was shown with two values, or was never committed"
        assert [line["k"] for line in lines] == list(range(1, k + 1)), "releases are missing, or made twice"
        assert [line["t"] for line in lines] == private.timetable.following(0, t, k + 1).tolist()
        assert private.timetable.fits(t, k)
        assert at_most(private.calibrated.cost(k), saved.spent)
        line = self.budget().lines[saved.lineage]
        assert at_most(saved.spent, line.reserved)
        assert line.spent == saved.spent if self.ledger is None else at_most(line.spent, saved.spent)
        assert self.budget().verify().ok
        assert self.learnt(saved) == t, "rows were lost, or counted twice"
        assert generation <= t
        if exactly:
            self.check_state(read_state(saved.state, store.layers(saved)), t)
        return k

    def check_state(self, state, t):
        """Each of the first rows counts once."""
        X, y, users = (part[:t] for part in rows_in(self.input, self.release)) if t else (np.zeros((0, 3)), [], [])
        twin = same_sums(self.plan.private, state, X, y, users)
        for user in users[:50]:
            assert record_of(state.users, user)["count"] == record_of(twin.users, user)["count"]


def same_sums(private, state, X, y, users=None):
    """The exact sums of a state are those of one run over these rows, which no noise enters: the state of that."""
    twin = private.start()
    if len(y):
        twin, _ = private.run(twin, X, y, users)
    for part in ("exact", "secret"):
        ours, theirs = arrays_in(state)[part], arrays_in(twin)[part]
        assert ours.keys() == theirs.keys()
        for name, array in theirs.items():
            np.testing.assert_allclose(ours[name], array, rtol=1e-9, atol=1e-12, err_msg=name)
    return twin


class Plain(Driver):
    """Nothing around the stream: its position in the input is the number of rows."""

    def go_on(self, commits=None, seed=0):
        store, chance = self.store(), random.Random(seed)
        if NAME not in store.names():
            with contextlib.suppress(StateConflict):  # another created it
                StoredStream.create(store, NAME, self.plan, input=b"0", ledger=self.budget())
        stream = StoredStream(store, self.plan, store.load(NAME))
        self.show_outbox(store)
        X, y, users = rows_in(self.input, self.release)
        while stream.t < len(y) and (commits is None or commits > 0):
            for _ in range(chance.randint(1, 2)):
                rows = slice(stream.t, stream.t + chance.randint(1, self.block))
                before = stream.saved.position[2]
                stream.prepare(X[rows], y[rows], users[rows])
            self.commit(stream)
            for chunk in stream.read(before):
                self.show(chunk.content)
            commits = None if commits is None else commits - 1

    def commit(self, stream):
        stream.commit(input=str(stream.t).encode())

    def learnt(self, saved):
        return int(saved.input)


class PlainShowsFirst(Plain):
    """A planted fault: releases are shown before they are committed, and not after."""

    def commit(self, stream):
        committed, show = stream.store.commit, self.show

        def late(*given, releases, **changes):
            for chunk in releases:
                show(chunk.content)
            return committed(*given, releases=releases, **changes)

        stream.store.commit = late
        super().commit(stream)
        stream.store.commit = committed
        stream.read = lambda after: ()


class File(Driver):
    """`taciturn learn`: a run in a folder, whose releases are shown by an exporter."""

    @property
    def place(self):
        return self.folder / f"run{self.copies}"

    @property
    def log(self):
        return self.place / "models.jsonl"

    def go_on(self, commits=None):
        self.place.mkdir(exist_ok=True)
        contract = self.contract
        with locked(self.place) as handle:
            folder = Folder(self.place, handle)
            found = find(folder, self.address, contract.digest, witness=self.witness)
            place = None if found is None else Checkpoint.from_bytes(found.input).place_in("csv")
            read_again = 0 if place is None else -(-(found.position[1] - place.row) // self.block)
            settings = {"exporters": (ModelFile(contract),), "seconds": 0.0, "format": "csv"}
            opening = begin if found is None or found.position[1] == 0 else resume
            run = opening(folder, self.store(), self.plan, contract.digest, ledger=self.budget(), **settings)
            rows = open_rows(contract, self.input, block=self.block, start=place)
            self.learn(run, rows, commits, read_again, "all" if place is None else "window")

    def learn(self, run, rows, commits, read_again, check):
        learn_from(run, islice(rows, None if commits is None else commits + read_again), check=check)

    def learnt(self, saved):
        return Checkpoint.from_bytes(saved.input).end.row

    def check(self, exactly=True):
        released = super().check(exactly)
        if (self.place / "model.json").exists():
            assert read_model(self.place / "model.json").releases <= released
        return released


class Enough(Exception):
    """There were so many commits as were asked for."""


def limited(commit, most):
    """`commit` that can be called so often."""
    left = itertools.count() if most is None else iter(range(most))

    def call(*given, **changes):
        if next(left, None) is None:
            raise Enough
        return commit(*given, **changes)

    return call


@dataclass
class Pool(File):
    """The same by workers, who hand over sums and digests of blocks; here they are calls, through pickle.

    A task takes some milliseconds at least, so that a process can be killed between two.
    """

    release: int = BLOCK
    pause: float = 0.003

    def learn(self, run, rows, commits, read_again, check):
        before, pool.ROWS = pool.ROWS, BLOCK
        run.store.commit = limited(run.store.commit, commits)
        try:
            with contextlib.suppress(Enough):
                pool.learn_from(run, rows, self.contract, self.input, self.mapped, 1, check=check)
        finally:
            pool.ROWS = before

    def mapped(self, function, tasks):
        for task in tasks:
            time.sleep(self.pause)
            yield pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(task)))))


class Files(Driver):
    """A folder of files in numbered batches, as engines hand them over: a batch that was learnt comes once more."""

    @property
    def files(self):
        return self.folder / "files"

    def write(self, rows):
        super().write(rows)
        self.files.mkdir()
        lines, chance, start = lines_of_rows(rows), random.Random(1), 0
        while start < rows:
            end = start + chance.randint(1, 2 * self.block)
            (self.files / f"part{start:08}.csv").write_text("\n".join([HEADER, *lines[start:end], ""]))
            start = end
        return self

    def go_on(self, commits=None):
        store, names = self.store(), sorted(os.listdir(self.files))
        settings = {"ledger": self.budget(), "show": lambda chunk: self.show(chunk.content)}
        stream = FileStream(store, self.contract, self.mapped, NAME, self.files, **settings)
        self.show_outbox(store)
        known = stream.learnt()
        for batch in range(max(0, known.batch), len(names)):
            if commits is not None and batch > known.batch + commits:
                return
            stream.learn("query", batch, names[batch : batch + 1])

    @staticmethod
    def mapped(function, tasks):
        return [function(task) for task in tasks]

    def learnt(self, saved):
        return sum(count for _, count in Learnt.from_bytes(saved.input).files)


DRIVERS = {"plain": Plain, "file": File, "pool": Pool, "files": Files}


def patiently(driver, commits):
    """So many commits, whatever happens to the connection: it goes on from where the store stands."""
    for _ in range(500):
        try:
            return driver.go_on(commits)
        except (StoreUnavailable, StateConflict) as error:
            if "behind" in str(error) or "differ" in str(error):
                raise
    raise AssertionError("the database stays away")


def warm_up():
    """Load what is compiled, and calibrate, once for all processes that are forked afterwards."""
    for release in {each.release for each in DRIVERS.values()}:
        private = plan_for(release).private
        private.run(private.start(), np.zeros((2, 3)), np.zeros(2), ["a", "b"])
    with tempfile.TemporaryDirectory() as folder:
        for name, driver in DRIVERS.items():
            place = Path(folder) / name
            place.mkdir()
            driver(place, str(place / "streams.db")).write(3).go_on()
