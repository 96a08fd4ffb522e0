"""PrivateSum: exact sums, the same however a stream is cut, resumed, and booked at once."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest

from kernel.mechanisms.strategies import STRATEGIES
from taciturn import (
    BLT,
    BinaryTree,
    BudgetExhausted,
    InvalidInput,
    L2Ball,
    Ledger,
    Privacy,
    Problem,
    StateConflict,
    WholeSpace,
    every,
    geometric,
    private_sum,
)
from taciturn.kernel.learners.vector_sum import VectorSum
from taciturn.kernel.problem.losses import Nearness

BUDGET = Privacy(1.0, 1e-6)
SCHEDULES = {"every": every(1), "every 7th": every(7), "geometric": geometric(1.3)}
NOWHERE = np.zeros(0)


@lru_cache
def stream(n: int = 40) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, 2)) * 0.6


def shown(releases) -> list[tuple]:
    return [(release.t, release.k, release.noise_sd, release.noisy.tobytes()) for release in releases]


@pytest.mark.parametrize("schedule", list(SCHEDULES))
@pytest.mark.parametrize("name", list(STRATEGIES))
def test_no_cut_of_the_stream_changes_a_bit(name, schedule):
    """Under a seed, for every strategy and schedule."""
    private = private_sum(2, 1.0, BUDGET, 40, strategy=STRATEGIES[name], schedule=SCHEDULES[schedule], seed=5)
    _, whole = private.run(private.start(), stream())
    state, parts = private.start(), []
    for start, end in ((0, 1), (1, 2), (2, 13), (13, 13), (13, 21), (21, 40)):
        state, more = private.run(state, stream()[start:end])
        parts += more
    assert shown(whole) == shown(parts)
    assert whole[-1].t == 40


@pytest.mark.parametrize("schedule", ["every", "every 7th"])
def test_no_cut_of_an_endless_stream_changes_a_bit(schedule):
    """Nor does the number of rows that follow."""
    private = private_sum(2, 1.0, BUDGET, schedule=SCHEDULES[schedule], seed=5)
    _, whole = private.run(private.start(), stream(300))
    state, parts = private.start(), []
    for start, end in ((0, 40), (40, 41), (41, 300)):
        state, more = private.run(state, stream(300)[start:end])
        parts += more
    assert shown(whole) == shown(parts)


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_a_stream_resumes_from_a_file(name, tmp_path):
    """Both memories are in it, integers as integers."""
    private = private_sum(2, 1.0, BUDGET, 40, strategy=STRATEGIES[name], schedule=every(3), seed=5)
    state, first = private.run(private.start(), stream()[:17])
    state.dump(tmp_path / "state.npz")
    _, second = private.run(private.load(tmp_path / "state.npz"), stream()[17:])
    _, whole = private.run(private.start(), stream())
    assert shown(first + second) == shown(whole)


@pytest.mark.parametrize("schedule", list(SCHEDULES))
@pytest.mark.parametrize("name", list(STRATEGIES))
def test_without_noise_sums_are_exact(name, schedule, monkeypatch):
    """To within the lattice: the longest vectors, all of one direction, are neither cut nor lost."""
    private = private_sum(2, 1.0, BUDGET, 40, strategy=STRATEGIES[name], schedule=SCHEDULES[schedule], seed=5)
    calibrated = private.calibrated
    honest = calibrated.noise_rows
    monkeypatch.setattr(calibrated, "noise_rows", lambda *args: np.zeros_like(honest(*args)))
    _, releases = private.run(private.start(), np.tile([0.0, -1.0], (40, 1)))
    assert [r.t for r in releases] == private.timetable.rounds.tolist()
    np.testing.assert_allclose([r.noisy for r in releases], [[0.0, -r.t] for r in releases], atol=1e-4)


@pytest.mark.parametrize("name", ["tree", "refined tree", "blt", "square root"])
def test_sums_are_what_they_say(name):
    """Every noisy sum lies within 6 of its stated sd of the exact one (seeded; 160 chances of 2e-9)."""
    private = private_sum(2, 1.0, Privacy(10.0, 1e-6), 40, strategy=STRATEGIES[name], schedule=every(2), seed=7)
    _, releases = private.run(private.start(), stream())
    V, _ = private.problem.clip(stream())
    exact = np.cumsum(V, axis=0)
    far = [np.abs(r.noisy - exact[r.t - 1]) / r.noise_sd for r in releases]
    assert 1.0 < np.max(far) < 6.0
    assert all(np.array_equal(r.noisy, r.point) for r in releases)


def test_contributions_are_scaled_down_and_added_exactly():
    """Vectors longer than the bound; and the statistic starts again from zero."""
    learner = VectorSum(Problem(Nearness(), WholeSpace(), 2, 0.5))
    V, y = learner.problem.clip([[3.0, 4.0], [0.1, 0.2]])
    exact = learner.absorb(learner.start(), 0, V, y, NOWHERE)
    assert exact["sum"] == pytest.approx([0.4, 0.6], abs=2e-8)
    after, row = learner.statistic(exact, 2)
    assert row is exact["sum"]
    assert not after["sum"].any()


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("neighbours", "other", "moved"), [("replace", [-3.0, -4.0], 3.0), ("zero-out", [0.0, 0.0], 1.5)]
)
def test_the_certificate_is_reached(neighbours, other, moved):
    """2R for opposite vectors, R for none at all."""
    learner = VectorSum(Problem(Nearness(), WholeSpace(), 2, 1.5, neighbours=neighbours))
    rows = []
    for x in ([3.0, 4.0], other):
        V, y = learner.problem.clip([x, [0.3, 0.1]])
        rows.append(learner.absorb(learner.start(), 0, V, y, NOWHERE)["sum"])
    result, bound = float(np.linalg.norm(rows[0] - rows[1])), float(learner.certificate.at(2))
    assert result == pytest.approx(moved, rel=1e-7)
    assert 0.999 * bound < result <= bound
    assert learner.certificate.kind == "l2/entry"


def test_the_round_past_the_horizon_is_rejected():
    """Before anything changes, with what to do."""
    private = private_sum(2, 1.0, BUDGET, 40)
    state, _ = private.run(private.start(), stream()[:39])
    with pytest.raises(BudgetExhausted, match="past the horizon of 40"):
        private.run(state, stream()[:2])
    assert private.run(state, stream()[:1])[0].t == 40


def test_an_endless_stream_goes_on():
    """By BLT; the others want a horizon, and say so."""
    private = private_sum(2, 1.0, BUDGET)
    assert private.mechanism == BLT(8)
    state = private.start()
    for _ in range(3):
        state, releases = private.run(state, stream(300))
    assert (state.t, len(releases)) == (900, 300)
    with pytest.raises(InvalidInput, match=r"State a horizon, or use BLT\(buffers=8\)"):
        private_sum(2, 1.0, BUDGET, strategy=BinaryTree())


def test_the_ledger_is_charged_at_once():
    """The whole cost from the first release on, none before; a second stream does not fit."""
    ledger = Ledger(BUDGET)
    private = private_sum(2, 1.0, BUDGET, 40, schedule=every(10))
    state = private.start(ledger)
    assert ledger.spent.mu == 0.0
    assert ledger.reserved == private.guarantee.delivered
    state, _ = private.run(state, stream()[:9])
    assert ledger.spent.mu == 0.0
    after, _ = private.run(state, stream()[9:10])
    assert ledger.spent == ledger.reserved == private.guarantee.delivered
    private.run(after, stream()[10:40])
    assert ledger.spent == private.guarantee.delivered
    with pytest.raises(StateConflict, match="not its live state"):
        private.run(state, stream()[:1])
    with pytest.raises(BudgetExhausted):
        private.start(ledger)


def test_examples_have_no_labels():
    """None need be given, and any that are change nothing."""
    private = private_sum(2, 1.0, BUDGET, 40, seed=1)
    _, without = private.run(private.start(), stream())
    _, given = private.run(private.start(), stream(), np.arange(40.0))
    assert shown(without) == shown(given)


@pytest.mark.privacy
def test_what_a_sum_minimises():
    """`Nearness`: the leader is the mean, and its constants bound its gradients."""
    loss, rng = Nearness(), np.random.default_rng(0)
    V = Problem(loss, L2Ball(2.0), 3, 1.5).clip(rng.normal(size=(200, 3)) * 2.0)[0]
    x = V.mean(axis=0)
    assert np.sum([loss.gradient(x, v, 0.0) for v in V], axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    x *= 2.0 / np.linalg.norm(x)
    lengths = [np.linalg.norm(loss.gradient(x, v, 0.0)) for v in V]
    assert max(lengths) <= loss.lipschitz(1.5, 2.0, 1.0)
    assert np.linalg.norm(loss.gradient(x, -x * 0.75, 0.0)) == pytest.approx(loss.lipschitz(1.5, 2.0, 1.0), rel=1e-6)
    apart = np.linalg.norm(loss.gradient(x, x * 0.75, 0.0) - loss.gradient(x, -x * 0.75, 0.0))
    assert apart == pytest.approx(loss.gradient_diameter(1.5, 2.0, 1.0), rel=1e-6)
    assert apart <= loss.gradient_diameter(1.5, 2.0, 1.0)
    assert math.isclose(loss.smoothness(1.5), 1.0)
