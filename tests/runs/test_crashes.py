"""A crash at every step of the commit order: nothing is shown twice, nothing is shown unpaid, every row counts once."""

import contextlib
import gc
import os
import shutil
import sqlite3
import sys
import threading

import pytest

from small_run import batches, check, contract, go, saved, shown
from taciturn.errors import StateConflict
from taciturn.runs import run as runs
from taciturn.runs.files import write_at
from taciturn.store import Store, sqlite

ROWS, BLOCK = 14, 5
DECLARED = contract(ROWS)
STEPS = ("fsync", "replace", "write", "ftruncate", "open", "close")
CHANGES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "COMMIT", "CREATE")


class Crash(BaseException):
    """The process stops here."""


class Connection:
    """A connection to SQLite whose statements that change something can be trapped."""

    def __init__(self, real, execute):
        self._real = real
        self._execute = execute

    def execute(self, sql, *values):
        call = self._execute if sql.startswith(CHANGES) else self._real.execute
        return call(sql, *values)

    def __getattr__(self, name):
        return getattr(self._real, name)


class Trap:
    """Stops at one of the calls by which files or the store change: before it, after it, or half-way through a write.

    A process that stops within a transaction leaves a journal, which the next one rolls back, as closing does here.
    """

    def __init__(self, monkeypatch, at, when):
        self.at, self.when, self.calls, self.sprung = at, when, 0, False
        self._thread = threading.get_ident()
        for name in STEPS:
            monkeypatch.setattr(os, name, self.guarded(name, getattr(os, name)))
        connect = sqlite.open_connection

        def trapped(path):
            real = connect(path)
            return Connection(real, self.guarded("execute", real.execute))

        monkeypatch.setattr(sqlite, "open_connection", trapped)

    def guarded(self, name, real):
        def call(*arguments, **options):
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if threading.get_ident() != self._thread or caller.startswith("multiprocessing"):
                return real(*arguments, **options)  # what pools of earlier tests close is no step
            here, self.calls = self.calls, self.calls + (self.when != "half" or name == "write")
            if self.sprung or here != self.at:
                return real(*arguments, **options)
            self.sprung = True
            if self.when == "half" and name == "write":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            elif self.when == "after":
                real(*arguments, **options)
            elif name == "close":
                real(*arguments, **options)  # a process that stops closes its files
            raise Crash

        return call


def has_begun(place):
    """Whether the run is in its store."""
    return (place / "stream.db").exists() and "stream" in Store(place / "stream.db").names()


def crash_and_resume(place, monkeypatch, at, when):
    """Run into a trap, look at what is left, and go on; whether the trap was reached."""
    gc.collect()  # nothing of earlier runs may be finalized in the trap
    gc.disable()
    try:
        with monkeypatch.context() as patched:
            trap = Trap(patched, at, when)
            with contextlib.suppress(Crash):
                go(place, DECLARED, batches(DECLARED, ROWS, BLOCK))
    finally:
        gc.enable()
    if not trap.sprung:
        return False
    seen, begun = shown(place), has_begun(place)
    if begun:
        check(place, DECLARED)
    run, ending = go(place, DECLARED, batches(DECLARED, ROWS, BLOCK), again=begun)
    check(place, DECLARED)
    assert (ending.why, run.stream.t, run.stream.k) == ("end", ROWS, ROWS // 2)
    assert shown(place).startswith(seen)  # what was seen stays as it was, to the byte
    assert shown(place).count(b"\n") == ROWS // 2
    assert list(place.glob(".model.json.*")) == list(place.glob("*-journal")) == []
    return True


def crash_everywhere(tmp_path, monkeypatch, when):
    gc.collect()
    gc.freeze()  # what earlier tests left, and stays, need not be looked at before every trap
    at = 0
    while crash_and_resume(tmp_path / f"run{at}", monkeypatch, at, when):
        shutil.rmtree(tmp_path / f"run{at}")
        at += 1
    return at


@pytest.mark.privacy
@pytest.mark.parametrize(("when", "steps"), [("before", 40), ("after", 40), ("half", 3)])
def test_a_crash_at_any_step_forfeits_rounds_and_repeats_none(tmp_path, monkeypatch, when, steps):
    """Four commits, each of some ten steps; three of them write lines."""
    assert crash_everywhere(tmp_path, monkeypatch, when) >= steps


def shows_first(self):
    """`Run.commit` with its steps in the wrong order."""
    if self.committed == self.stream.t:
        return
    write_at(self.folder.models, self.folder.models.size, b"".join(self.stream._tip.lines))
    self.stream.commit(input=self.seen.checkpoint.to_bytes())


@pytest.mark.privacy
def test_planted_showing_before_committing_is_caught(tmp_path, monkeypatch):
    """A store that has not paid for what was shown."""
    monkeypatch.setattr(runs.Run, "commit", shows_first)
    with pytest.raises(AssertionError):
        crash_everywhere(tmp_path, monkeypatch, "before")


@pytest.mark.privacy
def test_planted_releases_in_a_second_transaction_are_caught(tmp_path, monkeypatch):
    """A state whose releases are lost."""
    real = Store.commit

    def two_steps(self, before, *, releases, **changes):
        after = real(self, before, **changes)
        for chunk in releases:
            with self.database.transaction() as now:
                now.execute(
                    "INSERT INTO releases (lineage, first, last, t, content) VALUES (?, ?, ?, ?, ?)",
                    after.lineage,
                    *chunk,
                )
        return after

    monkeypatch.setattr(Store, "commit", two_steps)
    with pytest.raises(AssertionError):
        crash_everywhere(tmp_path, monkeypatch, "before")


def full_disk(*_):
    raise OSError(28, "No space left on device")


def full_store(path):
    def execute(sql, *values):
        raise sqlite3.OperationalError("database or disk is full")

    return Connection(sqlite3.connect(path, isolation_level=None), execute)


@pytest.mark.parametrize("full", ["files", "store"])
def test_a_failing_disk_loses_no_round_that_was_shown(tmp_path, monkeypatch, full):
    """An error that is no crash, a full disk for one, leaves the last commit."""
    with monkeypatch.context() as patched:
        rows = batches(DECLARED, ROWS, BLOCK)
        blocks = [next(rows), next(rows)]

        def then_full():
            yield blocks[0]
            yield blocks[1]
            if full == "files":
                patched.setattr(os, "fsync", full_disk)
            else:
                disk = tmp_path / "run" / "stream.db"
                patched.setattr("taciturn.store.database.Database._take", lambda self: full_store(disk))
            yield from rows

        error = (OSError, "No space") if full == "files" else (StateConflict, "disk is full.*--resume")
        with pytest.raises(error[0], match=error[1]):
            go(tmp_path / "run", DECLARED, then_full())
    check(tmp_path / "run", DECLARED)
    seen = shown(tmp_path / "run")
    run, _ = go(tmp_path / "run", DECLARED, batches(DECLARED, ROWS, BLOCK), again=True)
    assert run.stream.t == ROWS == saved(tmp_path / "run").position[1]
    check(tmp_path / "run", DECLARED)
    assert shown(tmp_path / "run").startswith(seen)
