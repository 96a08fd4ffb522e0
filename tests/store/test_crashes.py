"""A process is killed at any moment: no round is shown twice, what is shown is paid for, each row counts once."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

import forked_workers
from stored_stream import check, go_on, new_place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """SQLite with a ledger of its own, PostgreSQL with store and ledger in one database; both with a witness."""
    if request.param == "sqlite":
        return new_place(tmp_path, tmp_path / "streams.db", tmp_path / "budget.db")
    return new_place(tmp_path, request.getfixturevalue("server").new_database())


def kill_repeatedly(place, kills, careless=False):
    """Start workers and kill them: some when they begin, most within a few commits after the first."""
    workers = forked_workers.context()
    chance = random.Random(kills)
    with_progress = 0
    for number in range(kills):
        worker = workers.Process(target=go_on, args=(place, number, None, careless))
        before = Path(place.log).stat().st_size
        worker.start()
        if chance.random() < 0.85:
            until = time.monotonic() + 20.0
            while Path(place.log).stat().st_size == before and time.monotonic() < until:
                time.sleep(0.001)
                assert worker.is_alive(), "a worker failed by itself"
        time.sleep(chance.uniform(0.0, 0.08))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert worker.exitcode == -signal.SIGKILL
        with_progress += Path(place.log).stat().st_size > before
    last = workers.Process(target=go_on, args=(place, kills, 5))
    last.start()
    last.join(60.0)
    assert last.exitcode == 0
    assert check(place) > 5
    return with_progress


def test_ten_kills(place):
    assert kill_repeatedly(place, 10) > 5


def test_a_worker_that_shows_before_it_commits_is_found_out(tmp_path):
    """A planted fault: rounds are shown twice, with different noise."""
    place = new_place(tmp_path, tmp_path / "streams.db")

    def kill_until_caught():
        for _ in range(10):  # the first time mostly; on a busy machine, kills come at other moments
            kill_repeatedly(place, 6, careless=True)

    with pytest.raises(AssertionError, match="was shown with two values"):
        kill_until_caught()


@pytest.mark.slow
def test_two_hundred_kills(place):
    assert kill_repeatedly(place, 200) > 100


@pytest.mark.slow
def test_a_server_that_crashes(tmp_path, cluster):
    """The worker waits until it is back, and goes on."""
    place = new_place(tmp_path, cluster.start())
    worker = forked_workers.context().Process(target=go_on, args=(place, 0))
    worker.start()
    chance = random.Random(0)
    for _ in range(10):
        before = Path(place.log).stat().st_size
        until = time.monotonic() + 30.0
        while Path(place.log).stat().st_size == before:
            time.sleep(0.001)
            assert worker.is_alive()
            assert time.monotonic() < until
        time.sleep(chance.uniform(0.0, 0.1))
        cluster.stop("immediate")
        cluster.start()
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert check(place) > 10
