"""Prefetching rows in a thread, and signals."""

import signal
import threading
import time

import pytest

from taciturn.runs.ingest import Prefetch, catch_signals


def test_prefetching_keeps_the_order_and_passes_errors_on():
    def items():
        yield from range(5)
        raise OSError("the disk is gone")

    with Prefetch(items()) as source:
        assert [source.next(9.0) for _ in range(5)] == list(range(5))
        for _ in range(2):
            with pytest.raises(OSError, match="disk is gone"):
                source.next(9.0)
    with Prefetch(iter(())) as source, pytest.raises(StopIteration):
        source.next(9.0)


def test_prefetching_stops_waiting_after_the_timeout_and_reads_two_items_at_most():
    """Two items at most are read before they are wanted."""
    gate, read = threading.Event(), []

    def items():
        gate.wait(30.0)
        for i in range(100):
            read.append(i)
            yield i

    with Prefetch(items()) as source:
        assert source.next(0.01) is None
        assert source.waiting
        gate.set()
        assert source.next(9.0) == 0
        time.sleep(0.2)
        assert len(read) <= 3
    assert not source.waiting


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_caught_once_and_handlers_put_back(number):
    """The second one is no longer ours."""
    before = signal.getsignal(number)
    with catch_signals() as interrupts:
        assert interrupts.exit_status == 0
        signal.raise_signal(number)
        assert (interrupts.signal, interrupts.exit_status) == (number, 128 + number)
        assert signal.getsignal(number) != interrupts
    assert signal.getsignal(number) == before
