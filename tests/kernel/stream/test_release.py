"""Releases are a sequence, and arrays that nobody can write to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import L2Ball, Ledger, Logistic, Privacy, Problem, every, geometric, pftrl, pigd
from taciturn.kernel.stream.release import Collected, Release, Releases

COUNT = 6
PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)
BUDGET = Privacy(1.0, 1e-6)
X, Y = np.random.default_rng(3).normal(size=(12, 2)), np.tile([1.0, -1.0], 6)


def some(first: int = 1, count: int = COUNT, *, simulated: bool = True) -> Releases:
    """Releases of every other round, whose numbers say which they are."""
    k = np.arange(first, first + count)
    noisy, points = (np.stack([k + shift, -k - shift, 10.0 * k], axis=1) for shift in (0.25, 0.5))
    return Releases(2 * k, first, noisy, points, 1.0 / k, simulated)


def numbers(releases: Sequence[Release]) -> list[int]:
    """The number of each, once all that it holds has been found to be that one's."""
    for release in releases:
        assert isinstance(release, Release)
        k = release.k
        assert release.t == 2 * k
        np.testing.assert_array_equal(release.noisy, [k + 0.25, -k - 0.25, 10.0 * k])
        np.testing.assert_array_equal(release.point, [k + 0.5, -k - 0.5, 10.0 * k])
        assert release.noise_sd == 1.0 / k
    return [release.k for release in releases]


@pytest.mark.parametrize("first", [1, 40])
def test_a_sequence_of_releases(first):
    """It counts, iterates both ways and compares with a list of the same releases."""
    releases = some(first)
    expected = list(range(first, first + COUNT))
    assert isinstance(releases, Sequence)
    assert len(releases) == COUNT
    assert numbers(releases) == numbers(list(releases)) == numbers([*releases]) == expected
    assert [release.k for release in reversed(releases)] == expected[::-1]
    head, *_, tail = releases
    assert (head.k, tail.k) == (expected[0], expected[-1])


@pytest.mark.parametrize("index", [0, 3, COUNT - 1, -1, -COUNT, np.int64(2), np.int8(-2)])
def test_one_release(index):
    """By its place, from either end, whatever kind of whole number."""
    assert numbers([some(7)[index]]) == [list(range(7, 7 + COUNT))[index]]


@pytest.mark.parametrize("index", [COUNT, -COUNT - 1, 10**6])
def test_there_are_no_others(index):
    """Like any sequence."""
    with pytest.raises(IndexError):
        some()[index]


@pytest.mark.parametrize("index", ["0", 1.0, None])
def test_a_place_is_a_whole_number(index):
    """Like any sequence."""
    with pytest.raises(TypeError):
        some()[index]


ENDS = st.one_of(st.none(), st.integers(-COUNT - 2, COUNT + 2))


@given(start=ENDS, stop=ENDS, first=st.integers(1, 50))
def test_a_slice_is_releases(start, stop, first):
    """It holds what a list's would, each under its own number."""
    cut, expected = some(first)[start:stop], list(range(first, first + COUNT))[start:stop]
    assert isinstance(cut, Releases)
    assert numbers(cut) == expected
    assert len(cut.rounds) == len(cut.noisy) == len(cut.points) == len(cut.noise_sd) == len(expected)
    assert numbers(cut[1:]) == expected[1:]
    assert cut.simulated


@pytest.mark.parametrize("step", [2, -1, -3])
def test_a_slice_has_no_gaps(step):
    """Releases follow each other."""
    with pytest.raises(ValueError, match="without a step"):
        some()[::step]
    assert numbers(some()[::1]) == numbers(some())


@given(cuts=st.lists(st.integers(0, COUNT), max_size=4))
def test_parts_that_follow_each_other_are_added(cuts):
    """Whole again, however it was cut, empty parts among them."""
    ends = [0, *sorted(cuts), COUNT]
    parts = [some(9)[a:b] for a, b in pairwise(ends)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert isinstance(total, Releases)
    assert total.first == 9
    assert numbers(total) == list(range(9, 9 + COUNT))


@pytest.mark.parametrize("more", [some(1), some(COUNT), some(COUNT + 2), some(1, 0), some(COUNT + 2, 0)])
def test_parts_that_do_not_follow_are_refused(more):
    """None twice and none left out: numbers would be wrong."""
    with pytest.raises(ValueError, match=f"release {COUNT + 1} follows these, and those begin with {more.first}"):
        some() + more


@pytest.mark.parametrize("other", [[], [some()[0]], 3])
def test_only_releases_are_added(other):
    """A list of them is `[*releases, *others]`."""
    with pytest.raises(TypeError):
        some() + other


@pytest.mark.privacy
def test_a_simulation_in_any_part_is_told():
    """One part that protects nobody is enough."""
    for one, two in ((True, False), (False, True), (True, True)):
        assert (some(1, simulated=one) + some(COUNT + 1, simulated=two)).simulated
    assert not (some(1, simulated=False) + some(COUNT + 1, simulated=False)).simulated


def test_what_is_printed():
    """How many, up to where, and whether it is a simulation; of a single one its point, and never its noisy row."""
    assert repr(some()) == "Releases(6, up to round 12, simulation: not private)"
    assert repr(some(3, simulated=False)) == "Releases(6, up to round 16)"
    assert repr(some(3, 0, simulated=False)) == "Releases(0)"
    assert repr(some(3, 0)) == "Releases(0, simulation: not private)"
    assert repr(some(3)[0]) == "Release(t=6, k=3, point=[ 3.5 -3.5 30. ], simulation: not private)"
    assert repr(some(3, simulated=False)[0]) == "Release(t=6, k=3, point=[ 3.5 -3.5 30. ])"


@pytest.mark.parametrize("made", ["run", "endless", "blocks", "slice", "sum", "empty"])
@pytest.mark.parametrize("compiled", [True, False])
def test_arrays_cannot_be_written_to(made, compiled, monkeypatch):
    """Rounds, rows, points and deviations, however the releases were made; a single release has copies of its own."""
    horizon = None if made == "endless" else len(Y)
    private = replace(pigd(PROBLEM, BUDGET, horizon, seed=1), compiled=compiled)
    if made == "blocks":
        monkeypatch.setattr("taciturn.kernel.stream.loop._VALUES", 8)
    _, releases = private.run(private.start(), X, Y)
    if made == "slice":
        releases = releases[2:7]
    if made == "sum":
        releases = releases[:4] + releases[4:]
    if made == "empty":
        releases = releases[:0]
    for array in (releases.rounds, releases.noisy, releases.points, releases.noise_sd):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    if len(releases):
        before = releases.points[0].copy()
        releases[0].point[:] = 9.0
        releases[0].noisy[:] = 9.0
        np.testing.assert_array_equal(releases.points[0], before)
        np.testing.assert_array_equal(releases[0].point, before)


@pytest.mark.parametrize("schedule", [every(1), every(5), geometric(1.5)])
@pytest.mark.parametrize("horizon", [12, None])
def test_of_a_stream(schedule, horizon):
    """Arrays have a row for each release, and the rounds are those of the timetable."""
    private = pigd(PROBLEM, BUDGET, horizon, schedule=schedule, seed=1)
    state, releases = private.run(private.start(), X, Y)
    due = [private.timetable.due(k) for k in range(1, state.k + 1)]
    assert releases.rounds.tolist() == [release.t for release in releases] == due
    assert [release.k for release in releases] == list(range(1, state.k + 1))
    assert releases.rounds.dtype == np.int64
    for array in (releases.noisy, releases.points, releases.noise_sd):
        assert array.dtype == np.float64
    assert releases.noisy.shape == releases.points.shape == (state.k, 2)
    assert releases.noise_sd.shape == (state.k,)
    np.testing.assert_array_equal(state.point, releases.points[-1])


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_none_yet(rows):
    """No release: an empty sequence, which is false, has no rows, and adds to what follows."""
    private = pigd(PROBLEM, BUDGET, 12, schedule=every(5), seed=1)
    state, nothing = private.run(private.start(), X[:rows], Y[:rows])
    assert not nothing
    assert len(nothing) == 0
    assert list(nothing) == []
    assert len(nothing.points) == len(nothing.noisy) == 0
    assert (nothing.first, nothing.rounds.shape, nothing.noise_sd.shape) == (1, (0,), (0,))
    with pytest.raises(IndexError):
        nothing[-1]
    state, more = private.run(state, X[rows:], Y[rows:])
    _, still_nothing = private.run(state, X[:0], Y[:0])
    for total in (nothing + more, more + still_nothing, nothing + more + still_nothing):
        assert [release.k for release in total] == [1, 2, 3]
        np.testing.assert_array_equal(total.points, more.points)
        np.testing.assert_array_equal(total.noisy, more.noisy)


@pytest.mark.privacy
@pytest.mark.parametrize(("taken", "written"), [(1, 1), (2, 1), (2, 0)])
def test_memory_that_nothing_was_written_to_is_never_shown(taken, written):
    """A pass that takes room for too few releases, or leaves some of it as it was."""
    shown = Collected(np.array([1, 2, 3]), 1)
    shown.add(np.ones((1, 2)), np.ones((1, 2)), np.ones(1))
    for place in shown.room(taken, 2, 2):
        place[:written] = 1.0
    shown.written(written)
    with pytest.raises(RuntimeError, match="not all of 3 releases"):
        shown.releases(simulated=False)


@pytest.mark.privacy
@pytest.mark.parametrize("recipe", [pigd, pftrl])
def test_a_loop_that_misses_a_release_shows_nothing(recipe):
    """Rounds that a compiled loop never comes to: nothing is shown, and nothing spent."""
    ledger, private = Ledger(), recipe(PROBLEM, BUDGET, len(Y))
    honest, state = private._pass, private.start(ledger)

    def late(at, X, y, rounds, seed, shown):
        return honest(at, X, y, rounds[::-1].copy(), seed, shown)

    plain = {"forgets": True, "compressed": False, "one_row": honest.one_row}
    vars(private)["_pass"] = type("Late", (), plain | {"__call__": staticmethod(late)})()
    with pytest.raises(RuntimeError, match="releases"):
        private.run(state, X, Y)
    assert ledger.spent.mu == 0.0
