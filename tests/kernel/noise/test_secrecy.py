"""Noise is never reused and independent of the data: forks, threads, copies, files, and the order of events."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kernel.noise.draws import repeats
from kernel.stream.streams import private, stream
from taciturn import IGD, Gaussian, L2Ball, Logistic, Privacy, Private, Problem, every
from taciturn.kernel.learners import ftrl_pass, igd_pass, qftl_pass, vector_sum
from taciturn.kernel.mechanisms import lattice, prefix_sum_pass
from taciturn.kernel.noise import needed, sampling
from taciturn.kernel.noise.sampling import lattice_gumbel, lattice_normal, secret_bits, seeded_bits
from taciturn.kernel.problem import clipping_pass
from taciturn.methods import averaged

pytestmark = pytest.mark.privacy

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
ROUNDS, SIZE = 20, 30


def learner() -> Private:
    """A stream that is all noise, its rows being much smaller."""
    problem = Problem(Logistic(), L2Ball(1.0), dimension=SIZE, ridge=1.0, on_bad="zero")
    return Private(IGD(problem), Gaussian(), every(1), Privacy(0.01, 1e-6), horizon=ROUNDS)


def noisy(one: Private) -> np.ndarray:
    """What a stream of zeros releases: its noise."""
    return one.run(one.start(), np.zeros((ROUNDS, SIZE)), np.ones(ROUNDS))[1].noisy.ravel()


ONE = learner()
DRAWS: dict[str, Callable[[], np.ndarray]] = {
    "integers": lambda: lattice_normal(2.0**40, (600,)).astype(np.float64),
    "Gumbel": lambda: lattice_gumbel((600,)) * 2.0**-32,
    "releases": lambda: noisy(ONE),
    "releases of the definition": lambda: noisy(replace(ONE, compiled=False)),
}


def of_a_child(draw: Callable[[], np.ndarray]) -> np.ndarray:
    """What a forked child draws."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, draw().tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        drawn = np.frombuffer(pipe.read(), dtype=np.float64)
    os.waitpid(child, 0)
    return drawn


def of_threads(draw: Callable[[], np.ndarray], count: int) -> list[np.ndarray]:
    """What threads draw that begin at once."""
    drawn: list[np.ndarray] = []
    gate = threading.Barrier(count)
    threads = [threading.Thread(target=lambda: (gate.wait(), drawn.append(draw()))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return drawn


def in_common(drawn: list[np.ndarray]) -> int:
    """Values that more than one of these have.

    Of 2,400 at the coarsest scale, 2^25, 0.03 are shared by chance, and 5 with probability 1e-10.
    """
    return repeats(np.concatenate([np.unique(values) for values in drawn]))


@fork
@forks
@pytest.mark.parametrize("name", DRAWS)
def test_children_and_parents_have_no_noise_in_common(name):
    """Two children and their parent, before and after, draw four different things."""
    before, *others = DRAWS[name](), of_a_child(DRAWS[name]), of_a_child(DRAWS[name]), DRAWS[name]()
    assert min(len(drawn) for drawn in others) >= 500
    assert in_common([before, *others]) < 5


@pytest.mark.parametrize("name", DRAWS)
def test_threads_have_no_noise_in_common(name):
    """Four threads that share one `Private`."""
    drawn = of_threads(DRAWS[name], 4)
    assert len(drawn) == 4
    assert in_common(drawn) < 5


@fork
@forks
def test_a_source_that_is_reused_is_caught(monkeypatch):
    """Planted: one key for a process. A child goes on where its parent does, with the same noise."""
    stored = secret_bits()
    monkeypatch.setattr(needed, "secret_bits", lambda: stored)
    noisy(ONE)
    assert in_common([of_a_child(lambda: noisy(ONE)), noisy(ONE)]) == ROUNDS * SIZE


def test_a_source_started_over_is_caught(monkeypatch):
    """Planted: every thread's key is the same."""
    monkeypatch.setattr(needed, "secret_bits", lambda: seeded_bits(1, 1))
    assert in_common(of_threads(lambda: noisy(ONE), 2)) == ROUNDS * SIZE


# Keys.


def test_a_source_cannot_be_pickled_or_copied():
    """A copy is the source itself, which goes on, and never draws the same again."""
    source = secret_bits()
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(source)
    for copied in (copy.copy(source), copy.deepcopy(source)):
        assert repeats(np.concatenate([source(1000), copied(1000)])) == 0


@pytest.mark.parametrize(("rows", "size"), [(5, 8 * 166), (10, 32)])
def test_secret_bytes_are_drawn_for_each_call_and_stored_nowhere(rows, size, monkeypatch, tmp_path):
    """The words of a few releases, or a key of 32 bytes for more, fresh each time.

    Neither settings nor states nor releases hold them, pickled, dumped or printed.
    """
    keys: list[bytes] = []

    def urandom(count: int) -> bytes:
        keys.append(os.urandom(count))
        return keys[-1]

    monkeypatch.setattr(sampling, "os", SimpleNamespace(urandom=urandom))
    one = learner()
    state, X, y = one.start(), np.zeros((ROUNDS, SIZE)), np.ones(ROUNDS)
    for start in range(0, ROUNDS, rows):
        state, shown = one.run(state, X[start : start + rows], y[start : start + rows])
    assert [len(key) for key in keys] == [size] * (ROUNDS // rows)
    assert len(set(keys)) == ROUNDS // rows
    state.dump(tmp_path / "state.npz")
    stored = [pickle.dumps(thing) for thing in (one, shown[0])] + [
        state.to_bytes(),
        (tmp_path / "state.npz").read_bytes(),
    ]
    stored += [repr(thing).encode() for thing in (one, state, shown, vars(one.calibrated))]
    assert not any(key[:8] in place for key in keys for place in stored)


def test_sources_are_forgotten(monkeypatch):
    """Nothing refers to one once its noise is drawn."""
    sources = []

    def watched():
        source = secret_bits()
        sources.append(weakref.ref(source))
        return source

    monkeypatch.setattr(needed, "secret_bits", watched)
    one = learner()
    held = one.run(one.start(), np.zeros((ROUNDS, SIZE)), np.ones(ROUNDS))
    assert len(sources) == 1
    assert held
    assert sources[0]() is None


# Ahead of the data.

VERBS = ("absorb", "statistic", "encode")
FAST = [(igd_pass.Steps, "release"), (igd_pass.Iterates, "__call__"), (averaged.Means, "__call__")]
FAST += [(qftl_pass.Products, "__call__"), (vector_sum.VectorSums, "__call__")]
FAST += [(lattice.GaussianNoise, "add"), (prefix_sum_pass.PrefixSumNoise, "add")]
"""What sees exact examples or statistics in compiled passes; private FTRL goes through a table of loops besides."""

STREAMS = [
    ("igd, hinge, ball", "gaussian", "every"),
    ("giga, squared, box", "gaussian", "every 7"),
    ("suffix of giga", "gaussian", "geometric"),
    ("qftl, ball", "blt", "every"),
    ("total", "tree", "every 7"),
    ("ftrl, hinge, ball", "tree", "every"),
    ("ftrl, softmax, box", "blt", "every 7"),
]


def watch(one: Private, monkeypatch) -> list[object]:
    """What happens in a run, in order: a block of examples begins, bits are asked for, a verb sees examples."""
    events: list[object] = []
    honest = secret_bits

    def asked():
        bits = honest()

        def source(count, into=None, /):
            events.append(count)
            return bits(count, into)

        return source

    def noted(name, verb):
        return lambda *args, **kwargs: (events.append(name), verb(*args, **kwargs))[1]

    monkeypatch.setattr(needed, "secret_bits", asked)
    for owner, name in ((Problem, "clip_block"), (clipping_pass.Clip, "dense")):
        monkeypatch.setattr(owner, name, noted("block", getattr(owner, name)))
    verbs = [(owner, name) for owner in (type(one.learner), type(one.calibrated)) for name in VERBS]
    for owner, name in verbs + FAST:
        if hasattr(owner, name):
            monkeypatch.setattr(owner, name, noted("examples", getattr(owner, name)))
    for coder, through in ftrl_pass.THROUGH.items():
        monkeypatch.setitem(ftrl_pass.THROUGH, coder, noted("examples", through))
    return events


def too_late(events: list[object]) -> int:
    """How often bits were asked for after the examples of a block had been looked at."""
    late = seen = 0
    for event in events:
        seen = event != "block" and (seen or event == "examples")
        late += bool(seen and isinstance(event, int))
    return late


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("case", STREAMS, ids=" ".join)
def test_noise_is_drawn_ahead_of_the_data(case, compiled, monkeypatch):
    """All noise of a block before any verb sees an example, in the definition and in compiled passes."""
    one = replace(private(*case, compiled), seed=None)
    X, y = stream(one.problem)
    events = watch(one, monkeypatch)
    one.run(one.start(), X, y)
    assert "examples" in events
    assert sum(isinstance(event, int) for event in events) >= 1
    assert too_late(events) == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_as_many_bits_whatever_the_data(compiled, monkeypatch):
    """Zeros, other numbers and no numbers at all: the sampler is asked for the same, in the same order."""
    asked = []
    bits = seeded_bits(30, 0)(100_000)
    for X in (np.zeros((ROUNDS, SIZE)), np.full((ROUNDS, SIZE), 1e9), np.full((ROUNDS, SIZE), np.nan)):
        one = replace(learner(), compiled=compiled)
        at, counts = [0], []

        def source(count, into=None, /, at=at, counts=counts):
            counts.append(count)
            at[0] += count
            words = bits[at[0] - count : at[0]]
            if into is None:
                return words
            into[:count] = words
            return into[:count]

        with monkeypatch.context() as patched:
            patched.setattr(needed, "secret_bits", lambda source=source: source)
            one.run(one.start(), X, np.ones(ROUNDS))
        asked.append(counts)
    assert asked[0] == asked[1] == asked[2] != []


@pytest.mark.parametrize("case", STREAMS, ids=" ".join)
def test_a_compiled_pass_that_draws_after_the_data_is_caught(case, monkeypatch):
    """Planted: another row of noise is asked for when exact data have been seen, in every kind of pass."""
    one = replace(private(*case), seed=None)
    X, y = stream(one.problem)
    honest = type(one._pass).__call__

    def late(self, at, X, y, rounds, seed, shown):
        after = honest(self, at, X, y, rounds, seed, shown)
        one.calibrated.noise(None, 1, 1)
        return after

    monkeypatch.setattr(type(one._pass), "__call__", late)
    events = watch(one := replace(one), monkeypatch)
    one.run(one.start(), X, y)
    assert too_late(events) >= 1


def test_noise_after_the_data_is_caught(monkeypatch):
    """Planted: a mechanism that draws when it is shown a row."""
    one = replace(learner(), compiled=False)
    calibrated = one.calibrated

    def drawn(k: int) -> np.ndarray:
        return needed.drawn(calibrated.noise_needed(range(k, k + 1)), None, 0)[0]

    monkeypatch.setattr(calibrated, "noise", lambda seed, k, count: map(drawn, range(k, k + count)))
    events = watch(one, monkeypatch)
    noisy(one)
    assert too_late(events) >= ROUNDS - 1
