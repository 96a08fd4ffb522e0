"""Threads get their turns in the order in which they ask."""

import threading
import time

import pytest

from taciturn.service.turns import Turns


def _until(condition):
    end = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-3)


def test_turns_are_taken_in_order_and_one_at_a_time():
    turns, order, inside = Turns(), [], []

    def work(number):
        with turns:
            inside.append(number)
            assert inside == [number]
            time.sleep(1e-3)
            order.append(inside.pop())

    with turns:
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
        with turns:
            seen.append("other")

    thread = threading.Thread(target=other)
    with turns:
        thread.start()
        _until(lambda: turns.waiting == 1)
    with turns:
        assert seen == ["other"]
    thread.join()


def test_an_error_ends_a_turn():
    turns = Turns()
    with pytest.raises(ValueError, match="planted"), turns:
        raise ValueError("planted")
    with turns:
        assert turns.waiting == 0
