"""The parts of learning: digests, reading ahead, signals, files that end as they should, and diagnostics."""

import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import L2Ball, Logistic, Problem, Softmax, Squared
from taciturn.runs.diagnostics import Diagnostics
from taciturn.runs.digest import RowDigest
from taciturn.runs.files import write_at
from taciturn.runs.interrupts import noted
from taciturn.runs.prefetch import Ahead

X, Y = np.random.default_rng(1).normal(size=(30, 3)), np.resize([1.0, -1.0], 30)


def digest(X, y, cuts=(), key="key"):
    made, edges = RowDigest(key), [0, *sorted(cuts), len(y)]
    for a, b in itertools.pairwise(edges):
        made.add(X[a:b], y[a:b])
    return made.value


@given(st.sets(st.integers(0, 30)))
def test_a_digest_does_not_depend_on_cuts(cuts):
    assert digest(X, Y, cuts) == digest(X, Y)


@given(st.integers(0, 29), st.integers(0, 3), st.sampled_from([0.0, -1.0, 1e300, np.nan, np.inf]))
def test_a_digest_changes_with_any_entry(row, column, value):
    """And with the key, but not with the order of entries in memory."""
    changed = np.column_stack([X, Y])
    changed[row, column] = value
    same = np.array_equal(changed, np.column_stack([X, Y]))
    assert (digest(changed[:, :3], changed[:, 3]) == digest(X, Y)) == same
    assert digest(X, Y, key="other") != digest(X, Y)
    assert digest(np.asfortranarray(X), Y) == digest(X, Y)


def test_sums_that_overflow_do_no_harm():
    """Numbers as large as they can be are good rows."""
    large = np.full((30, 3), 1.7e308)
    assert digest(large, Y, [7]) == digest(large, Y)
    assert digest(large, Y) != digest(-large, Y)


def test_bad_rows_are_alike_whatever_is_in_them():
    """Readers may leave different things in a row without influence."""
    one, two = X.copy(), X.copy()
    one[4], two[4, 1], two[4, 2] = np.nan, -np.nan, np.inf
    assert digest(one, Y, [3]) == digest(two, np.where(np.arange(30) == 4, np.nan, Y), [4, 9])
    assert digest(one, Y) != digest(X, Y)


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


def test_short_writes_are_continued(tmp_path, monkeypatch):
    """A system may take less than it was given."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data)[:3]))
    write_at(tmp_path / "log", 0, b"0123456789")
    assert (tmp_path / "log").read_bytes() == b"0123456789"


def watched(problem, classifies, X, y, model, parts):
    watch, edges = Diagnostics(problem, classifies), np.linspace(0, len(y), parts + 1).astype(int)
    for a, b in itertools.pairwise(edges):
        watch = Diagnostics(problem, classifies, watch.t, watch.arrays())  # as after a resume
        watch(X[a:b], y[a:b], model)
    return watch.as_data()


@pytest.mark.parametrize("parts", [1, 7, 400])
def test_diagnostics_are_means_over_good_rows(parts):
    """However the stream is cut, resumed or binned."""
    rng, rows = np.random.default_rng(3), 40_000
    X, model = rng.normal(size=(rows, 2)), np.array([0.4, -0.3])
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    X[5], y[17] = np.nan, np.nan
    problem = Problem(Logistic(), L2Ball(1.0), dimension=2, feature_bound=1.5, on_bad="zero")
    good = np.isfinite(X).all(axis=1) & np.isfinite(y)
    V, labels = problem.clip(X[good], y[good])
    found = watched(problem, True, X, y, model, parts)
    assert found["accuracy"] == pytest.approx(np.mean(np.sign(V @ model) == labels), rel=1e-12)
    assert found["mean_loss"] == pytest.approx(np.mean(np.log1p(np.exp(-labels * (V @ model)))), rel=1e-9)
    assert found["clipped_share"] == pytest.approx(np.mean(np.linalg.norm(X[good], axis=1) > 1.5))
    assert (found["bad_rows"], found["from_row"], found["to_row"]) == (2, 0, rows)
    assert all(end <= 2 * rows and 0.0 <= share <= 1.0 for end, share in found["curve"])


def test_diagnostics_of_numbers_and_of_several_classes():
    problem = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=2.0, on_bad="zero")
    rows, y, model = np.array([[0.6, 0.0], [0.0, 0.8]]), np.array([1.0, -1.0]), np.array([0.5, 0.5])
    found = watched(problem, False, rows, y, model, 1)
    assert found["mean_absolute_error"] == pytest.approx((0.7 + 1.4) / 2)
    classes = Problem(Softmax(3), L2Ball(2.0), dimension=2, on_bad="zero")
    found = watched(classes, True, rows, np.array([0.0, 2.0]), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.5]), 1)
    assert found["accuracy"] == 1.0


def test_diagnostics_that_were_left_out_in_between_begin_anew():
    problem = Problem(Logistic(), L2Ball(1.0), dimension=3, on_bad="zero")
    first = Diagnostics(problem, True)
    first(X[:10], Y[:10], np.zeros(3))
    later = Diagnostics(problem, True, 20, first.arrays())
    later(X[20:], Y[20:], np.zeros(3))
    assert (later.as_data()["from_row"], later.as_data()["to_row"], later.sums[:, 0].sum()) == (20, 30, 10)
