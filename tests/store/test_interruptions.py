"""An interrupt, a signal handler or a fork in the middle of a commit: nothing stays locked, nothing is half done."""

import gc
import os

import pytest

from interrupting import At, every_step
from memory_folder import memory_folder  # noqa: F401 - a fixture
from taciturn.errors import StateConflict, StoreUnavailable
from taciturn.kernel.accounting.cost import FREE, gaussian
from taciturn.store import Chunk, Store, database, store

NAME = "stream"


class Interrupt(BaseException):
    """As KeyboardInterrupt: not an Exception."""


def created(path):
    made = Store(path)
    made.create(NAME, lineage="a", position=(0, 0, 0, "first"), reserved=gaussian(1.0), state=b"0")
    return made


def commit(one, saved, token="next"):
    generation, t, k, _ = saved.position
    new = (generation + 1, t + 1, k + 1, token)
    return one.commit(saved, position=new, spent=FREE, state=b"1", releases=[Chunk(k + 1, k + 1, t + 1, b"value")])


def interrupt():
    raise Interrupt


@pytest.mark.parametrize("module", [store, database], ids=lambda module: module.__name__.rpartition(".")[2])
def test_an_interrupt_at_any_moment(memory, monkeypatch, module):
    """The stream is where it was, or one further; and others can go on at once."""
    monkeypatch.setattr(database, "WAIT", 0.2)
    path = memory / "streams.db"
    one, other = created(path), Store(path)

    def attempt(step):
        before = other.load(NAME)
        happened = At(step, module.__file__, interrupt)
        try:
            with happened:
                commit(one, before)
        except Interrupt:
            pass
        now = other.load(NAME)
        assert now.position[0] in (before.position[0], before.position[0] + 1)
        assert len(list(other.releases(NAME, after=before.position[2]))) == now.position[0] - before.position[0]
        commit(other, now)
        return happened.reached

    gc.collect()  # databases of other tests: an interrupt within their finalizers would be reported here
    every_step(attempt, least=10)


def test_a_handler_may_use_the_store_within_a_commit(memory, monkeypatch):
    """It cannot write meanwhile, and is told so after a while; it can write after the commit."""
    monkeypatch.setattr(database, "WAIT", 0.2)
    one = created(memory / "streams.db")
    told = []

    def handler():
        try:
            told.append(commit(one, one.load(NAME), "handler's"))
        except (StoreUnavailable, StateConflict) as error:
            told.append(error)

    def attempt(step):
        before = one.load(NAME)
        happened = At(step, store.__file__, handler)
        told.clear()
        try:
            with happened:
                new = commit(one, before, f"step {step}")
        except StateConflict:
            new = told[0]
        now = one.load(NAME)
        assert now.position[3] in (new.position[3], "handler's")
        assert len(list(one.releases(NAME))) == now.position[2] == now.position[0]
        return happened.reached

    for step in range(1, 400, 13):
        attempt(step)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_was_forked_within_a_commit_leaves_it_to_its_parent(memory):
    one = created(memory / "streams.db")
    parent = os.getpid()
    children = []
    for step in range(1, 200, 7):
        before = one.load(NAME)
        went_on = False
        code = 2
        try:
            with At(step, store.__file__, lambda: children.append(os.fork())):
                commit(one, before)
            went_on, code = True, 1
        except StateConflict:
            code = 0
        finally:
            if os.getpid() != parent:
                os._exit(code)
        child = os.waitstatus_to_exitcode(os.waitpid(children[-1], 0)[1]) if len(children) > step // 7 else 1
        assert child in (0, 1)
        assert went_on or child == 1  # a child that was forked before the transaction may be faster
        assert one.load(NAME).position[0] == before.position[0] + 1
    assert len(list(one.releases(NAME))) == one.load(NAME).position[2]
