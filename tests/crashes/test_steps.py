"""A stop at every step, by each driver on each database; two at once; a child of a fork; a backup that is put back.

Whatever happens, the driver that is started next goes on: nothing twice, lost or unpaid, and each row counts once.
"""

import contextlib
import os
import shutil
import sqlite3

import pytest

from crashes.stopping import stopped_at
from drivers import DRIVERS, NAME
from put_back import Kept
from taciturn.errors import StateConflict, TaciturnError
from taciturn.runs import run as runs
from taciturn.runs.files import write_at
from taciturn.runs.resume import BLOCK
from taciturn.store import Store
from taciturn.store.sqlite import Sqlite

pytestmark = pytest.mark.privacy

ROWS = {"plain": 1_500, "file": 1_500, "pool": 36 * BLOCK, "files": 1_500}


class Places:
    """New drivers, each with a store of its own on one kind of database."""

    def __init__(self, kind, request, folder):
        self.kind, self._request, self._folder, self._count = kind, request, folder, 0

    def new(self, name, rows=None):
        folder = self._folder / f"{self._count}"
        folder.mkdir()
        self._count += 1
        kept = Kept.of_kind(self.kind, self._request, folder)
        driver = DRIVERS[name](folder, kept.address)
        if name != "pool":
            driver.release, driver.block = 2, 5
        return driver.write(ROWS[name] if rows is None else rows), kept


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def places(request, tmp_path):
    return Places(request.param, request, tmp_path)


def goes_on(driver, seen):
    """What was seen stays as it was, to the byte, and the next commit shows more."""
    driver.check()
    assert driver.shown().startswith(seen)
    driver.go_on(1)
    driver.check()
    assert len(driver.shown()) > len(seen)
    assert not [*driver.folder.rglob(".model.json.*"), *driver.folder.rglob("*-journal")]


def stop_everywhere(driver, patching, when, stride=1):
    """Stop at a step of a commit, at a later one of another, and so on. How many steps there are."""
    driver.go_on(1)
    at = stride // 2 if when == "before" else 0
    while True:
        seen = driver.shown()
        stopped = stopped_at(patching, lambda: driver.go_on(1), at, when)
        goes_on(driver, seen)
        if not stopped:
            return at
        at += stride


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_stop_at_a_step_of_a_commit_forfeits_rounds_and_repeats_none(places, monkeypatch, name, when, stride):
    driver, _ = places.new(name, rows=ROWS[name] * (4 if stride == 1 else 1))
    assert stop_everywhere(driver, monkeypatch, when, stride) > 20


def test_a_line_that_was_written_in_half_is_completed(places, monkeypatch):
    driver, _ = places.new("file")
    assert stop_everywhere(driver, monkeypatch, "half") > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_stop_at_any_step_of_the_beginning_begins_one_stream(places, monkeypatch, name, when):
    for at in range(1_000):
        driver, _ = places.new(name, rows=100)
        stopped = stopped_at(monkeypatch, lambda driver=driver: driver.go_on(1), at, when)
        seen = driver.shown()
        driver.go_on()
        assert driver.shown().startswith(seen)
        driver.check()
        assert driver.store().load(NAME).position[1] == 100
        assert len(driver.budget().lines) == 1
        shutil.rmtree(driver.folder)
        if not stopped:
            assert at > 10
            return


def shows_first(self):
    """`Run.commit` with its steps in the wrong order."""
    if self.committed == self.stream.t:
        return
    write_at(self.folder.models, self.folder.models.size, b"".join(self.stream._tip.lines))
    self.stream.commit(input=self.seen.checkpoint.to_bytes())


def in_two_transactions(self, before, *, releases, **changes):
    """`Store.commit` that stores releases in a transaction of their own."""
    after = COMMIT(self, before, releases=[], **changes)
    for chunk in releases:
        with self.database.transaction() as now:
            now.execute(
                "INSERT INTO releases (lineage, first, last, t, content) VALUES (?, ?, ?, ?, ?)", after.lineage, *chunk
            )
    return after


def without_input(self, before, *, input, **changes):
    """`Store.commit` that forgets where the input stands."""
    return COMMIT(self, before, input=before.input, **changes)


COMMIT = Store.commit


@pytest.mark.parametrize(
    ("owner", "name", "planted"),
    [
        (runs.Run, "commit", shows_first),
        (Store, "commit", in_two_transactions),
        (Store, "commit", without_input),
    ],
    ids=["shows first", "two transactions", "position lost"],
)
def test_a_planted_fault_is_caught(tmp_path, request, monkeypatch, owner, name, planted):
    driver, _ = Places("SQLite", request, tmp_path).new("file")
    monkeypatch.setattr(owner, name, planted)
    with pytest.raises((AssertionError, StateConflict)):
        stop_everywhere(driver, monkeypatch, "before", stride=3)


# Something else happens when a commit begins.


def meanwhile(patching, action):
    """`action(commit)` once, before the next commit of a stream, which `commit` does."""

    def late(store, *given, **named):
        patching.setattr(Store, "commit", COMMIT)
        action(lambda: COMMIT(store, *given, **named))
        return COMMIT(store, *given, **named)

    patching.setattr(Store, "commit", late)


@pytest.mark.parametrize("name", DRIVERS)
def test_of_two_that_learn_the_same_rows_one_commits(places, monkeypatch, name):
    """Both have read the same state; the second shows nothing, and goes on from what the first committed."""
    driver, _ = places.new(name, rows=ROWS[name] // 5)
    driver.go_on(1)
    other = driver.another()
    meanwhile(monkeypatch, lambda commit: other.go_on(1))
    seen = driver.shown()
    with pytest.raises(StateConflict, match=r"not its live state|went on"):
        driver.go_on(1)
    assert driver.shown() == seen
    other.check()
    goes_on(driver, seen)
    goes_on(other, other.shown())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", DRIVERS)
def test_of_parent_and_child_one_commits(places, monkeypatch, name):
    """Forked between learning and the commit, so that both hold the same prepared releases: here the child is first."""
    driver, _ = places.new(name, rows=ROWS[name] // 5)
    driver.go_on(1)
    seen, codes = driver.shown(), []

    def fork(commit):
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                commit()
                code = 0
            os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    meanwhile(monkeypatch, fork)
    with pytest.raises(StateConflict, match=r"not its live state|went on"):
        driver.go_on(1)
    assert codes == [0]
    assert driver.shown() == seen
    goes_on(driver, seen)


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("when", ["between commits", "while it learns"])
def test_nothing_is_learnt_or_shown_of_a_backup_that_is_put_back(places, monkeypatch, name, when):
    """The witness knows a later commit. Once the newest database is back, the stream goes on."""
    driver, kept = places.new(name, rows=ROWS[name] // 5)
    driver.go_on(1)
    kept.back_up("old")
    content = kept.content()
    driver.go_on(1)
    seen = driver.shown()
    kept.back_up("newest")
    if when == "while it learns":
        meanwhile(monkeypatch, lambda commit: kept.put_back("old"))
    else:
        kept.put_back("old")
    with pytest.raises(StateConflict):
        driver.go_on(1)
    assert driver.shown() == seen
    assert kept.content() == content
    kept.put_back("newest")
    goes_on(driver, seen)


def full_disk(*_):
    raise OSError(28, "No space left on device")


def full_store(self, *_):
    raise sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize(
    ("owner", "name", "planted", "error", "words"),
    [(os, "fsync", full_disk, OSError, "No space"), (Sqlite, "begin", full_store, TaciturnError, "disk is full")],
    ids=["files", "store"],
)
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_full_disk_loses_no_round_that_was_shown(tmp_path, request, driver, owner, name, planted, error, words):
    """An error that is no crash leaves the last commit."""
    made, _ = Places("SQLite", request, tmp_path).new(driver, rows=ROWS[driver] // 5)
    made.go_on(1)
    seen = made.shown()
    with pytest.MonkeyPatch.context() as patch:
        meanwhile(patch, lambda commit: patch.setattr(owner, name, planted))
        with pytest.raises(error, match=words):
            made.go_on(1)
    goes_on(made, seen)
