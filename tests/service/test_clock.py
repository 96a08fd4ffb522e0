"""Ticks of a public clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import InvalidInput
from taciturn.service.clock import TickClock
from taciturn.store.events import FARTHEST

TIMES = st.integers(0, 10**13)


@pytest.mark.privacy
@given(TIMES, st.sampled_from([0.01, 0.05, 0.5, 1.0, 2.5, 60.0]))
def test_a_release_becomes_visible_at_a_tick_that_leaves_time_for_its_commit(now, seconds):
    clock = TickClock(seconds)
    at = clock.visible_at(now)
    assert at % clock.period == 0
    assert now + clock.margin < at <= now + clock.margin + clock.period


@given(TIMES, st.integers(0, 10**6))
def test_ticks_do_not_go_back(now, later):
    clock = TickClock(1.0)
    assert clock.visible_at(now) <= clock.visible_at(now + later)
    assert clock.last(now) <= now < clock.last(now) + clock.period
    assert 0.0 < clock.until_next(now) <= 1.0


@pytest.mark.privacy
@given(TIMES, st.integers(0, 2 * FARTHEST), st.sampled_from([0.05, 1.0, 60.0, 3600.0]))
def test_a_release_is_not_visible_before_the_last_one_unless_a_clock_was_wrong(now, ahead, seconds):
    clock = TickClock(seconds)
    first = clock.visible_at(now)
    at = clock.visible_at(now, last=first + ahead)
    assert at == (first + ahead if ahead <= FARTHEST else first)
    assert clock.visible_at(now, last=max(first - ahead, 0)) == first


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.001, 1e9, float("nan"), "1s", None])
def test_periods_are_validated(seconds):
    with pytest.raises(InvalidInput, match="tick"):
        TickClock(seconds)
