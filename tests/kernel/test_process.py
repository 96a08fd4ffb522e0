"""A process knows its own number, however it was forked, and whatever its parent did at that time."""

from __future__ import annotations

import ctypes
import os

import pytest

from interrupting import At, every_step
from taciturn.kernel import process
from taciturn.kernel.process import page_wiped_on_fork, process_number

pytestmark = [
    pytest.mark.privacy,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def by_c():
    """A fork that Python is not told of."""
    return ctypes.PyDLL(None).fork()


def known_in_a_child(fork, ask=process_number):
    """Whether a child knows its own number."""
    child = fork()
    if child == 0:
        right = False
        try:
            right = ask() == os.getpid()
        finally:
            os._exit(0 if right else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("fork", [os.fork, by_c])
def test_a_forked_process_has_its_own_number(fork):
    assert process_number() == os.getpid()
    assert known_in_a_child(fork)
    assert process_number() == os.getpid()


def test_a_child_of_a_child_has_its_own_number():
    def both():
        return process_number() if process_number() == os.getpid() and known_in_a_child(by_c) else 0

    assert known_in_a_child(by_c, both)


@pytest.mark.parametrize("page", ["wiped", "none"])
def test_wherever_it_is_forked_the_child_has_its_own_number(page, monkeypatch):
    """At every bytecode of a first call, and of later ones: in the child, which goes on, and in the parent."""

    def attempt(step):
        monkeypatch.setattr(process, "_page", page_wiped_on_fork() if page == "wiped" else None)
        monkeypatch.setattr(process, "_known", [0])
        children = []
        with At(step, process.__file__, lambda: children.append(os.fork())) as forked:
            process_number(), process_number()
        right = process_number() == os.getpid()
        if children == [0]:
            os._exit(0 if right else 1)
        assert right
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
        return forked.reached

    every_step(attempt, least=5)


def test_memory_that_is_copied_is_noticed(monkeypatch):
    """Planted: a page that a fork does not wipe, of which Python is not told."""
    monkeypatch.setattr(process, "_page", bytearray(1))
    assert process_number() == os.getpid()
    assert not known_in_a_child(by_c)
    assert known_in_a_child(os.fork)


def test_a_system_that_follows_no_advice_is_asked_each_time(monkeypatch):
    monkeypatch.setattr(process, "_NO_ADVICE", 0)  # MADV_NORMAL, which is accepted
    assert page_wiped_on_fork() is None


def test_a_system_without_such_memory_is_asked_each_time(monkeypatch):
    monkeypatch.setattr(process, "_WIPE_ON_FORK", 10**6)
    assert page_wiped_on_fork() is None
    monkeypatch.setattr(process, "_page", None)
    assert process_number() == os.getpid()
    assert known_in_a_child(by_c)
