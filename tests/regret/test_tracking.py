"""Dynamic regret: measured per segment, and below its bound on streams that turn as fast as the bound allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn import (
    Absolute,
    Box,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Privacy,
    Problem,
    Unprovable,
    every,
    pftrl,
)
from taciturn.regret import best_in_hindsight, ftrl_regret_bound, replay, tracking_regret, tracking_regret_bound

ROWS, TURNS = 4_000, [1_000, 2_000, 3_000]


def turning(rows=ROWS, turns=TURNS):
    """One feature and labels that turn round: the best fixed point of a segment is at a border of the set."""
    sign = np.where(np.searchsorted(turns, np.arange(rows), side="right") % 2, -1.0, 1.0)
    return np.ones((rows, 1)), sign


def stream(epsilon, forget, seed=1, ridge=0.0, rows=ROWS):
    problem = Problem(Hinge(), L2Ball(1.0), 1, ridge=ridge)
    return pftrl(problem, Privacy(epsilon, 1e-6), rows, forget=forget, schedule=every(5), seed=seed)


@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=30), st.floats(0.1, 0.99), st.data())
def test_a_discounted_regret_gives_that_of_a_segment(e, decay, data):
    """The identity of the proof: from `D_k = decay·D_{k-1} + e_k` back to a sum of e_k."""
    D = np.zeros(len(e) + 1)  # D[k + 1] of the proof's k
    for k, each in enumerate(e):
        D[k + 1] = decay * D[k] + each
    a = data.draw(st.integers(0, len(e) - 1))
    b = data.draw(st.integers(a, len(e) - 1))
    found = D[b + 1] - decay * D[a] + (1.0 - decay) * D[a + 1 : b + 1].sum()
    assert found == pytest.approx(sum(e[a : b + 1]), abs=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
@pytest.mark.parametrize("forget", [50, 400])
def test_regret_on_a_stream_that_turns_is_below_the_bound(epsilon, forget, ridge):
    """On average over 20 seeds, and at each of them nearly: what noise adds varies by far less than the slack."""
    X, y = turning()
    private = stream(epsilon, forget, ridge=ridge)
    bound = tracking_regret_bound(private, len(TURNS))
    found = []
    for seed in range(20):
        one = stream(epsilon, forget, seed, ridge)
        _, releases = one.run(one.start(), X, y)
        found.append(tracking_regret(one.problem, releases, X, y, TURNS))
    assert 0.0 < np.mean(found) <= bound


def test_the_bound_is_of_the_right_order_where_nothing_can_be_learnt_in_time():
    """Linear losses that turn as soon as the window has passed: at least a twentieth of the bound is lost."""
    rows, window = 4_000, 200
    turns = list(range(400, rows, 400))
    X, y = turning(rows, turns)
    problem = Problem(Linear(), Box(-1.0, 1.0), 1, label_bound=1.0)
    private = pftrl(problem, Privacy(8.0, 1e-6), rows, forget=window, schedule=every(5), seed=1)
    _, releases = private.run(private.start(), X, y)
    found = tracking_regret(problem, releases, X, y, turns)
    bound = tracking_regret_bound(private, len(turns))
    assert bound / 20.0 < found <= bound


def test_forgetting_tracks_where_memory_does_not():
    """At a generous budget the dynamic regret with a window is less than half of that without."""
    X, y = turning(20_000, [10_000])
    regrets = []
    for forget in (500, None):
        problem = Problem(Hinge(), L2Ball(1.0), 1)
        private = pftrl(problem, Privacy(5.0, 1e-6), 20_000, forget=forget, schedule=every(20), seed=1)
        _, releases = private.run(private.start(), X, y)
        regrets.append(tracking_regret(problem, releases, X, y, [10_000]))
    assert regrets[0] < 0.5 * regrets[1]


def test_without_changes_it_is_regret():
    X, y = turning(1_000, [500])
    private = stream(1.0, 100, rows=1_000)
    _, releases = private.run(private.start(), X, y)
    best = best_in_hindsight(private.problem, X, y)
    plain = replay(private.problem, releases, X, y).average_regret(best) * 1_000
    assert tracking_regret(private.problem, releases, X, y, []) == pytest.approx(plain, abs=1e-6)
    assert tracking_regret(private.problem, releases, X, y, [500]) >= plain - 1e-6


def test_the_bound_grows_with_changes_and_ends_at_what_is_lost_anyway():
    private = stream(5.0, 400)
    bounds = [tracking_regret_bound(private, changes) for changes in (0, 1, 2, 1_000)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(ROWS * private.problem.lipschitz * 2.0, rel=1e-6)


def test_other_streams_are_rejected():
    with pytest.raises(Unprovable, match="FTRL that forgets"):
        tracking_regret_bound(pftrl(Problem(Hinge(), L2Ball(1.0), 1), Privacy(1.0, 1e-6), 100))
    with pytest.raises(Unprovable, match="horizon"):
        tracking_regret_bound(pftrl(Problem(Hinge(), L2Ball(1.0), 1), Privacy(1.0, 1e-6), forget=100))
    problem = Problem(Absolute(), L2Ball(1.0), 1, label_bound=1.0)
    with pytest.raises(InvalidInput, match="changes must increase"):
        tracking_regret(problem, [], [[1.0]] * 3, [0.0, 1.0, 1.0], [2, 1])
    assert ftrl_regret_bound(pftrl(Problem(Hinge(), L2Ball(1.0), 1), Privacy(1.0, 1e-6), 100)) > 0.0
