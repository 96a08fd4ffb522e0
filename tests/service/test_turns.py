"""Threads get their turns in the order in which they ask."""

import threading
import time

import pytest

from taciturn.service.turns import Turns
from taciturn.store import database


def _until(condition):
    end = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-3)


def test_turns_are_taken_in_order_and_one_at_a_time():
    turns, order, inside = Turns(), [], []

    def work(number):
        with turns.turn():
            inside.append(number)
            assert inside == [number]
            time.sleep(1e-3)
            order.append(inside.pop())

    with turns.turn():
        threads = []
        for number in range(20):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            _until(lambda asked=number + 1: turns.waiting == asked)
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_one_that_begins_again_at_once_waits_for_those_who_came_before():
    """What a lock of Python does not promise: whoever releases it may take it again before it is handed on."""
    turns, seen = Turns(), []

    def other():
        with turns.turn():
            seen.append("other")

    thread = threading.Thread(target=other)
    with turns.turn():
        thread.start()
        _until(lambda: turns.waiting == 1)
    with turns.turn():
        assert seen == ["other"]
    thread.join()


def test_an_error_ends_a_turn():
    turns = Turns()
    with pytest.raises(ValueError, match="planted"), turns.turn():
        raise ValueError("planted")
    with turns.turn():
        assert turns.waiting == 0


def test_nobody_waits_for_longer_than_a_transaction_does(monkeypatch):
    """And a turn that was given up is not given to anybody later."""
    turns, seen = Turns(), []
    monkeypatch.setattr(database, "WAIT", 0.01)

    def other():
        with turns.turn():
            seen.append(turns.waiting)

    with turns.turn():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [0]
    with turns.turn():
        assert turns.waiting == 0


def test_where_several_may_write_nobody_waits():
    turns = Turns(needed=False)
    with turns.turn(), turns.turn():
        assert turns.waiting == 0
