"""A crash at every step of the commit order: nothing is shown twice, nothing is shown unpaid, every row counts once."""

import contextlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from small_run import batches, check, contract, go, shown
from taciturn.core.state import read_state
from taciturn.runs import run as runs
from taciturn.runs.files import sync_folder, write_at

ROWS, BLOCK = 14, 5
DECLARED = contract(ROWS)
STEPS = ("fsync", "replace", "write", "ftruncate", "open", "close")


class Crash(BaseException):
    """The process stops here."""


class Trap:
    """Stops at one of the calls by which files change: before it, after it, or half-way through a write."""

    def __init__(self, monkeypatch, at, when):
        self.at, self.when, self.calls, self.sprung = at, when, 0, False
        for name in STEPS:
            monkeypatch.setattr(os, name, self.guarded(name, getattr(os, name)))

    def guarded(self, name, real):
        def call(*arguments, **options):
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


def crash_and_resume(place, monkeypatch, at, when):
    """Run into a trap, look at what is left, and go on; whether the trap was reached."""
    with monkeypatch.context() as patched:
        trap = Trap(patched, at, when)
        with contextlib.suppress(Crash):
            go(place, DECLARED, batches(DECLARED, ROWS, BLOCK))
    if not trap.sprung:
        return False
    seen, begun = shown(place), (place / "state.npz").exists()
    if begun:
        check(place, DECLARED)
    run, ending = go(place, DECLARED, batches(DECLARED, ROWS, BLOCK), again=begun)
    check(place, DECLARED)
    assert (ending.why, run.stream.t, run.stream.k) == ("end", ROWS, ROWS // 2)
    assert shown(place).startswith(seen)  # what was seen stays as it was, to the byte
    assert shown(place).count(b"\n") == ROWS // 2
    assert list(place.glob(".state.npz.*")) == list(place.glob(".model.json.*")) == []
    return True


def crash_everywhere(tmp_path, monkeypatch, when):
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
    if self._committed == self.stream.t:
        return
    lines = b"".join(self._unwritten)
    if lines:
        write_at(self.folder.models, self.written, lines)
    self.stream.dump(self.folder.state, self._extra(lines, self.seen.checkpoint))
    sync_folder(self.folder.path)
    self.show(self)
    self.written, self._unwritten, self._committed = self.written + len(lines), [], self.stream.t


@pytest.mark.privacy
def test_planted_showing_before_committing_is_caught(tmp_path, monkeypatch):
    """A state that has not paid for what was shown."""
    monkeypatch.setattr(runs.Run, "commit", shows_first)
    with pytest.raises(AssertionError):
        crash_everywhere(tmp_path, monkeypatch, "before")


def write_without_renaming(self, path, extra=None):
    """`Stream.dump` straight onto the file."""
    arrays = {"model": self.model, **(extra or {})}
    self._live.dump(str(path) + ".new", arrays)
    with open(path, "wb") as file:
        for part in np.array_split(np.frombuffer(Path(str(path) + ".new").read_bytes(), dtype=np.uint8), 2):
            os.write(file.fileno(), part.tobytes())


@pytest.mark.privacy
def test_planted_writing_over_the_state_is_caught(tmp_path, monkeypatch):
    """Half a state is none."""
    from taciturn.errors import StateConflict
    from taciturn.estimators.stream import Stream

    monkeypatch.setattr(Stream, "dump", write_without_renaming)
    with pytest.raises((AssertionError, StateConflict)):
        crash_everywhere(tmp_path, monkeypatch, "half")


def test_a_failing_disk_loses_no_round_that_was_shown(tmp_path, monkeypatch):
    """An error that is no crash, a full disk for one, leaves the last commit."""

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        rows = batches(DECLARED, ROWS, BLOCK)
        blocks = [next(rows), next(rows)]

        def then_full():
            yield blocks[0]
            yield blocks[1]
            patched.setattr(os, "fsync", full)
            yield from rows

        with pytest.raises(OSError, match="No space"):
            go(tmp_path / "run", DECLARED, then_full())
    check(tmp_path / "run", DECLARED)
    before = read_state(tmp_path / "run" / "state.npz").t
    run, _ = go(tmp_path / "run", DECLARED, batches(DECLARED, ROWS, BLOCK), again=True)
    assert before < run.stream.t == ROWS
    check(tmp_path / "run", DECLARED)
