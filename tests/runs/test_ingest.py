"""Prefetching rows in a thread, and signals."""

import signal
import threading
import time

import pytest

from taciturn.runs.ingest import Ahead, noted


def test_reading_ahead_keeps_order_and_hands_errors_over():
    def items():
        yield from range(5)
        raise OSError("the disk is gone")

    with Ahead(items()) as source:
        assert [source.next(9.0) for _ in range(5)] == list(range(5))
        for _ in range(2):
            with pytest.raises(OSError, match="disk is gone"):
                source.next(9.0)
    with Ahead(iter(())) as source, pytest.raises(StopIteration):
        source.next(9.0)


def test_reading_ahead_does_not_wait_longer_than_asked_and_reads_no_further():
    """Two items at most are read before they are wanted."""
    gate, read = threading.Event(), []

    def items():
        gate.wait(30.0)
        for i in range(100):
            read.append(i)
            yield i

    with Ahead(items()) as source:
        assert source.next(0.01) is None
        assert source.waiting
        gate.set()
        assert source.next(9.0) == 0
        time.sleep(0.2)
        assert len(read) <= 3
    assert not source.waiting


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_noted_once_and_handlers_put_back(number):
    """The second one is no longer ours."""
    before = signal.getsignal(number)
    with noted() as interrupts:
        assert interrupts.exit_status == 0
        signal.raise_signal(number)
        assert (interrupts.signal, interrupts.exit_status) == (number, 128 + number)
        assert signal.getsignal(number) != interrupts
    assert signal.getsignal(number) == before
