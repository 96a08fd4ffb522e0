"""Noise drawn ahead is handed out once: by threads, in forked processes, by copies, and after interruptions."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref
from itertools import pairwise

import numpy as np
import pytest

from interrupting import At, every_step
from kernel.noise.draws import repeats
from taciturn import IGD, Gaussian, L2Ball, Logistic, Privacy, Private, Problem, every
from taciturn.kernel.mechanisms import release_noise
from taciturn.kernel.mechanisms.release_noise import NoiseAhead

pytestmark = pytest.mark.privacy

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Rows:
    """Rows that are all different, so that one handed out twice is seen."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, releases: range) -> np.ndarray:
        first, self.drawn = self.drawn, self.drawn + len(releases)
        return np.array([[k, first + i] for i, k in enumerate(releases)])


def asked(ahead: NoiseAhead, k: int, rows: Rows, most: float = 64) -> tuple[int, int]:
    """As a mechanism asks."""
    row = ahead.take(k)
    row = ahead.draw(k, most, rows) if row is None else row
    assert row.shape == (1, 2)
    assert row[0, 0] == k
    return tuple(row[0].tolist())


def test_each_release_has_its_own_row_and_few_calls_draw():
    ahead, rows = NoiseAhead(), Rows()
    calls = []
    given = [asked(ahead, k, lambda releases: (calls.append(len(releases)), rows(releases))[1]) for k in range(1, 301)]
    assert len(set(given)) == 300
    assert calls[:8] == [1, 2, 4, 8, 16, 32, 64, 64]
    assert len(calls) < 12


def test_no_more_than_there_are_is_drawn():
    ahead, rows = NoiseAhead(), Rows()
    for k in range(1, 11):
        asked(ahead, k, rows, most=11 - k)
    assert rows.drawn == 10


@pytest.mark.parametrize(
    "order", [(1, 1, 1, 2, 2), (1, 2, 3, 3), (1, 2, 3, 2, 3, 4), (5, 4, 3), (1, 2, 9, 10, 3, 4), (1, 2, 3, 4, 4)]
)
def test_a_release_that_is_repeated_has_new_noise(order):
    """One whose call was not committed, or of another stream."""
    ahead, rows = NoiseAhead(), Rows()
    given = [asked(ahead, k, rows) for k in order]
    assert len(set(given)) == len(order)


def test_a_row_that_was_used_is_not_kept_by_those_that_follow():
    """Whoever reads the memory of a process later finds no noise of earlier releases, which would uncover them."""
    ahead, rows, drawn = NoiseAhead(), Rows(), []

    def draw(releases: range) -> np.ndarray:
        made = rows(releases)
        drawn.append(weakref.ref(made))
        return made

    for k in range(1, 5):
        asked(ahead, k, draw)
    row = ahead.take(5)
    assert row is not None
    assert row.base is None
    gc.collect()
    assert [each() for each in drawn] == [None] * len(drawn)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda ahead: pickle.loads(pickle.dumps(ahead))])
def test_a_copy_has_no_rows(copied):
    ahead, rows = NoiseAhead(), Rows()
    for k in range(1, 6):
        asked(ahead, k, rows)
    other = copied(ahead)
    assert other.take(6) is None
    assert asked(ahead, 6, rows) != asked(other, 6, rows)


def test_nothing_is_printed():
    ahead = NoiseAhead()
    for k in (1, 2):
        asked(ahead, k, Rows())
    assert repr(ahead) == "NoiseAhead(secrets not shown)"


def test_threads_never_get_the_same_row():
    """Eight threads, which ask for the same releases at once."""
    ahead, rows, given = NoiseAhead(), Rows(), []
    lock, gate = threading.Lock(), threading.Barrier(8)

    def draw(releases: range) -> np.ndarray:
        with lock:  # the rows of this test are numbered; those of a sampler are not
            return rows(releases)

    def work() -> None:
        gate.wait()
        mine = [asked(ahead, k, draw) for k in range(1, 1001)]
        given.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == 8000
    assert len({number for _, number in given}) == 8000


@pytest.mark.parametrize("k", [2, 4, 5])
def test_no_row_is_given_twice_if_another_call_comes_between(k):
    """A signal handler asks for the same release, before any bytecode of the module."""

    def attempt(step: int) -> bool:
        ahead, rows, given = NoiseAhead(), Rows(), []
        for j in range(1, k):
            given.append(asked(ahead, j, rows))
        other = At(step, release_noise.__file__, lambda: given.append(asked(ahead, k, rows)))
        with other:
            given.append(asked(ahead, k, rows))
        given.append(asked(ahead, k + 1, rows))
        numbers = [number for _, number in given]
        assert len(set(numbers)) == len(numbers)
        return other.reached

    every_step(attempt, least=10)


def of_a_child(work) -> np.ndarray:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, np.ascontiguousarray(work(), dtype=np.float64).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        drawn = np.frombuffer(pipe.read())
    os.waitpid(child, 0)
    return drawn


def one_by_one(one: Private, rows: int) -> np.ndarray:
    """Noise of a stream of zeros, row by row."""
    state, shown = one.start(), []
    for _ in range(rows):
        state, releases = one.run(state, np.zeros((1, 30)), np.ones(1))
        shown.append(releases.noisy)
    return np.concatenate(shown).ravel()


def learner(horizon: int = 40) -> Private:
    problem = Problem(Logistic(), L2Ball(1.0), dimension=30, ridge=1.0)
    return Private(IGD(problem), Gaussian(), every(1), Privacy(0.01, 1e-6), horizon=horizon)


@fork
@forks
def test_a_forked_process_draws_its_own():
    """A child whose parent has rows left for the next releases, and the parent itself, have none in common.

    Of 3,600 values at the coarsest scale, 2^25, 0.2 are shared by chance, and 9 with probability 1e-12.
    """
    one = learner()
    noise = [one_by_one(one, 10)]  # 5 rows of release 11 and later are left

    def eleventh() -> np.ndarray:
        return np.concatenate([one.calibrated.noise(None, k, 1) for k in range(11, 16)]).ravel()

    drawn = [of_a_child(eleventh), of_a_child(eleventh), eleventh().astype(np.float64)]
    assert min(map(len, drawn)) == 150
    assert repeats(np.concatenate(drawn)) < 9
    children = [of_a_child(lambda: one_by_one(one, 40)) for _ in range(2)]
    assert repeats(np.concatenate([*noise, *children, one_by_one(one, 40)])) < 9


@pytest.mark.parametrize("how", ["number", "mark"])
def test_either_sign_of_another_process_is_enough(how, monkeypatch):
    """A fork that Python is not told of has another number; one whose number comes again has another mark."""
    ahead, rows = NoiseAhead(), Rows()
    for k in (1, 2):
        asked(ahead, k, rows)
    if how == "number":
        monkeypatch.setattr(release_noise, "process_number", lambda: os.getpid() + 1)
    else:
        monkeypatch.setattr(release_noise, "_PROCESS", [object()])
    assert ahead.take(3) is None


@fork
@forks
def test_rows_that_stay_in_a_child_are_caught(monkeypatch):
    """Planted: no process is told from another."""
    one = learner()
    monkeypatch.setattr(release_noise, "process_number", lambda: 1)
    monkeypatch.setattr(release_noise, "_mark_child", lambda: None)
    one.calibrated.noise(None, 1, 1), one.calibrated.noise(None, 2, 1)

    class Same(list):
        """What every process takes for its own mark."""

        def __getitem__(self, index):
            return None

    monkeypatch.setattr(release_noise, "_PROCESS", Same())
    for k in (3, 4):
        one.calibrated.noise(None, k, 1)
    child = of_a_child(lambda: one.calibrated.noise(None, 5, 1).ravel())
    assert (child == one.calibrated.noise(None, 5, 1).ravel()).all()


def test_runs_of_one_row_and_of_many_have_nothing_in_common():
    """Two streams of one `Private`, in turns, by single rows and by blocks."""
    one = learner()
    states, shown = [one.start(), one.start(), one.start()], []
    for rows in [1] * 12 + [5] + [1] * 8:
        for i, state in enumerate(states):
            states[i], releases = one.run(state, np.zeros((rows, 30)), np.ones(rows))
            shown.append(releases.noisy.ravel())
    assert repeats(np.concatenate(shown)) < 9


def test_a_prepared_release_that_is_not_committed_is_drawn_anew():
    one = learner()
    state = one.start()
    for _ in range(6):
        state, _ = one.run(state, np.zeros((1, 30)), np.ones(1))
    noisy = [one.prepare(state, np.zeros((1, 30)), np.ones(1)).releases.noisy for _ in range(4)]
    assert all((a != b).all() for a, b in pairwise(noisy))


def test_a_seed_gives_what_it_gives_in_blocks():
    calibrated = learner().calibrated
    block = calibrated.noise(3, 1, 40)
    calibrated.noise(None, 1, 1), calibrated.noise(None, 2, 1)
    np.testing.assert_array_equal(np.concatenate([calibrated.noise(3, k, 1) for k in range(1, 41)]), block)


def test_standard_deviations_are_those_of_each_release():
    """The noise of release k has the level of release k, whoever drew it.

    The mean square of 200 streams' 30 entries, 6,000 values, lies within a tenth of its expectation: five and a half
    of its standard deviations, 4e-8, for each of 8 releases.
    """
    one = learner(horizon=8)
    drawn = np.array([[one.calibrated.noise(None, k, 1)[0] for k in range(1, 9)] for _ in range(200)], dtype=np.float64)
    expected = [np.divide(*one.calibrated.levels(k)) for k in range(1, 9)]
    assert np.sqrt(np.mean(drawn**2, axis=(0, 2))) == pytest.approx(expected, rel=0.05)


def test_rows_can_be_dropped():
    """As they are when a call has several releases, which draws them all."""
    ahead, rows = NoiseAhead(), Rows()
    for k in (1, 2):
        asked(ahead, k, rows)
    ahead.drop()
    assert ahead.take(3) is None


def test_no_release_has_no_noise():
    """And takes none from the releases that follow."""
    calibrated = learner().calibrated
    for k in (1, 2):
        calibrated.noise(None, k, 1)
    assert calibrated.noise(None, 3, 0).shape == calibrated.noise(1, 3, 0).shape == (0, 30)
