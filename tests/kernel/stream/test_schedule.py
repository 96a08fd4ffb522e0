"""Schedules and timetables: increasing rounds, the horizon last, and the same answer however it is asked."""

import itertools
import math
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn import InvalidInput, at, every, geometric
from taciturn.kernel.stream.schedule import Timetable

LISTS = st.sets(st.integers(1, 300), min_size=1, max_size=20).map(sorted)
SCHEDULES = st.one_of(
    st.builds(every, st.integers(1, 40)),
    st.builds(geometric, st.floats(1.001, 4.0), st.integers(1, 50)),
    st.builds(at, LISTS),
)
HORIZONS = st.integers(1, 300)


@dataclass(frozen=True)
class Squares:
    """A user's own schedule: rounds 1, 4, 9, …"""

    def round_of(self, k):
        return k * k


@settings(max_examples=200)
@given(SCHEDULES, HORIZONS)
def test_rounds_increase_up_to_the_horizon(schedule, horizon):
    """Published rounds are integers that strictly increase from 1 or later to the horizon, which always publishes."""
    rounds = Timetable(schedule, horizon).rounds
    assert rounds.dtype == np.int64
    assert rounds[0] >= 1
    assert rounds[-1] == horizon
    assert np.all(np.diff(rounds) > 0)


@settings(max_examples=200)
@given(SCHEDULES, HORIZONS)
def test_rounds_are_those_of_the_schedule(schedule, horizon):
    """Before the horizon, the timetable publishes exactly where the schedule does."""
    planned = itertools.takewhile(lambda t: t is not None and t < horizon, map(schedule.round_of, itertools.count(1)))
    assert Timetable(schedule, horizon).rounds[:-1].tolist() == list(planned)


@settings(max_examples=200)
@given(SCHEDULES, HORIZONS)
def test_due_and_publishes_by_agree_with_rounds(schedule, horizon):
    """`due(k)` is the k-th round, None after the last; `publishes_by(t, k)` says whether it has come by t."""
    timetable = Timetable(schedule, horizon)
    rounds = timetable.rounds.tolist()
    assert [timetable.due(k) for k in range(1, len(rounds) + 3)] == [*rounds, None, None]
    for t in range(0, horizon + 2, max(1, horizon // 20)):
        come = [timetable.publishes_by(t, k) for k in range(1, len(rounds) + 3)]
        assert come == [published <= t for published in rounds] + [False, False]


@settings(max_examples=50)
@given(st.one_of(st.builds(every, st.integers(1, 40)), st.builds(geometric, st.floats(1.001, 2.0), st.integers(1, 50))))
def test_endless_timetables_follow_their_schedule(schedule):
    """Without a horizon, releases are due where the schedule says, for ever."""
    timetable = Timetable(schedule, None)
    due = [timetable.due(k) for k in range(1, 40)]
    assert due == [schedule.round_of(k) for k in range(1, 40)]
    assert all(a < b for a, b in itertools.pairwise(due))
    assert all(timetable.publishes_by(t, k) for k, t in enumerate(due, 1))
    assert not any(timetable.publishes_by(t - 1, k) for k, t in enumerate(due, 1))


@settings(max_examples=100)
@given(LISTS)
def test_a_list_ends_with_its_last_round(rounds):
    """A list of rounds has a horizon of its own."""
    timetable = Timetable(at(rounds), None)
    assert timetable.horizon == rounds[-1]
    assert timetable.rounds.tolist() == rounds
    assert timetable.due(len(rounds) + 1) is None


@settings(max_examples=100)
@given(st.floats(1.001, 4.0), st.integers(1, 1000))
def test_geometric_rounds_grow_by_the_ratio(ratio, start):
    """Each round is at least `ratio` times the one before, and less than two rounds more than that."""
    rounds = [t for k in range(1, 60) if (t := geometric(ratio, start).round_of(k)) is not None]
    assert rounds[0] == start
    for a, b in itertools.pairwise(rounds):
        assert a * ratio * (1.0 - 1e-15) <= b < a * ratio * (1.0 + 1e-15) + 2.0


def test_geometric_rounds_do_not_depend_on_the_order_of_questions():
    """Asking for a late round first gives the same rounds."""
    late_first = [geometric(1.25, 3).round_of(k) for k in reversed(range(1, 50))]
    assert late_first[::-1] == [geometric(1.25, 3).round_of(k) for k in range(1, 50)]


def test_geometric_rounds_asked_by_many_threads():
    """Rounds increase even if several threads ask for them first at the same time."""
    schedule = geometric(1.0625, 3)
    threads = [threading.Thread(target=schedule.round_of, args=(100,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rounds = [schedule.round_of(k) for k in range(1, 100)]
    assert all(a < b for a, b in itertools.pairwise(rounds))


def test_few_releases_for_many_rounds():
    """A ratio of 1.1 publishes about a hundred times in 100,000 rounds, and one of the paper's every time."""
    assert 90 <= len(Timetable(geometric(1.1), 100_000).rounds) <= 120
    assert len(Timetable(every(1), 100_000).rounds) == 100_000


def test_long_lists_are_quick():
    """A list of 200,000 rounds is laid out in a moment: the cost does not grow with its square."""
    start = time.process_time()
    assert len(Timetable(at(range(1, 200_001)), None).rounds) == 200_000
    assert time.process_time() - start < 5.0


def test_a_schedule_of_ones_own():
    """Anything with `round_of` is a schedule."""
    assert Timetable(Squares(), 30).rounds.tolist() == [1, 4, 9, 16, 25, 30]
    assert Timetable(Squares(), None).due(100) == 10_000


@pytest.mark.parametrize(("schedule", "expected"), [(every(4), [4, 8, 10]), (every(5), [5, 10]), (every(11), [10])])
def test_the_last_round_publishes_once(schedule, expected):
    """The horizon is added where the schedule misses it, and not where it does not."""
    assert Timetable(schedule, 10).rounds.tolist() == expected


@pytest.mark.parametrize("rounds", [0, -1, 1.5, math.nan, math.inf, "often", "3", None])
def test_every_takes_a_positive_integer(rounds):
    """Others are refused."""
    with pytest.raises(InvalidInput, match="rounds must be an integer, 1 or more"):
        every(rounds)


@pytest.mark.parametrize("ratio", [1.0, 1.0009, 0.5, -2.0, math.inf, math.nan])
def test_geometric_takes_a_ratio_above_1(ratio):
    """Others are refused; so is one so near to 1 that every() says it better."""
    with pytest.raises(InvalidInput, match=r"ratio must be at least 1\.001"):
        geometric(ratio)


@pytest.mark.parametrize("start", [0, -1, 1.9, None])
def test_geometric_starts_at_a_round(start):
    """Others are refused, and not cut to an integer."""
    with pytest.raises(InvalidInput, match="start must be an integer, 1 or more"):
        geometric(2.0, start)


@pytest.mark.parametrize("rounds", [[], [2, 1], [1, 1], [5, 7, 7]])
def test_at_takes_increasing_rounds(rounds):
    """Others are refused."""
    with pytest.raises(InvalidInput, match=r"at\(\) takes at least one round, in increasing order"):
        at(rounds)


@pytest.mark.parametrize("rounds", [[0], [-1, 2], [1.5, 2.5], [1, math.nan], ["1"]])
def test_at_takes_whole_rounds(rounds):
    """Others are refused, and not cut to integers."""
    with pytest.raises(InvalidInput, match="a round must be an integer, 1 or more"):
        at(rounds)


@dataclass
class Stuck:
    """A user's schedule that never gets past its second round."""

    asked: int = 0

    def round_of(self, k):
        self.asked += 1
        if self.asked > 10_000:
            raise TimeoutError("10000 questions")
        return min(k, 2)


def test_a_schedule_that_does_not_increase_is_refused():
    """Rounds of a user's schedule that do not increase are refused, and not collected for ever."""
    with pytest.raises(InvalidInput):
        _ = Timetable(Stuck(), 10).rounds


@pytest.mark.parametrize("horizon", [0, -5, 10.5, math.inf])
def test_horizons_are_whole_and_positive(horizon):
    """Others are refused."""
    with pytest.raises(InvalidInput, match="horizon must be an integer, 1 or more"):
        Timetable(every(1), horizon)


def test_schedules_are_values():
    """Equal settings make equal schedules, whose repr says what they are."""
    assert every(2) == every(2.0) != every(3)
    assert repr(every(2.0)) == "Every(rounds=2)"
    assert at([1, 5]) == at((1, 5))
    assert repr(geometric(1.5, 2)) == "Geometric(ratio=1.5, start=2)"


def test_rounds_that_do_not_increase_are_refused_without_a_horizon_too():
    """Two releases at one round would leave one of them without noise."""

    @dataclass(frozen=True)
    class Twice:
        def round_of(self, k):
            return (k + 1) // 2 * 10

    with pytest.raises(InvalidInput, match="do not increase"):
        Timetable(Twice(), None).following(0, 40)
    with pytest.raises(InvalidInput, match="do not increase"):
        Timetable(Twice(), None).following(1, 15)


@settings(max_examples=200)
@given(SCHEDULES, st.none() | HORIZONS, st.integers(0, 320))
def test_as_many_releases_fit_as_are_due(schedule, horizon, t):
    """Exactly one number of releases fits a round: that of the rounds published by then."""
    table = Timetable(schedule, horizon)
    made = sum(1 for _ in itertools.takewhile(lambda k: table.publishes_by(t, k), itertools.count(1)))
    assert [k for k in range(made + 3) if table.fits(t, k)] == [made]
