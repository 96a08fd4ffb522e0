"""Sums made private: what the whole stream costs, recomputed from its matrices, and that integers stay in range."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from kernel.mechanisms.strategies import CASES, MULTIPLYING, STRATEGIES, dense, recomputed
from taciturn import (
    BLT,
    FTRL,
    BinaryTree,
    InvalidInput,
    L2Ball,
    Privacy,
    Private,
    Problem,
    Squared,
    SquareRoot,
    Unprovable,
    User,
    at,
    every,
    geometric,
    pqftl,
    private_sum,
)
from taciturn.calibration import paper
from taciturn.kernel.accounting.cost import FREE
from taciturn.kernel.learners.qftl import QFTL
from taciturn.kernel.mechanisms import prefix_sum
from taciturn.kernel.mechanisms.tree import TreeCoder
from taciturn.kernel.stream.schedule import Timetable

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
TINY = Privacy(1e-11, 1e-12)  # the sampler's range makes its lattice as coarse as the sensitivity
SCHEDULES = [every(1), every(1), every(5), geometric(1.4), at([2, 3, 17])]
PLANS = {
    "n": st.integers(1, 24),
    "epsilon": st.floats(-3.0, 1.3).map(lambda e: 10.0**e),
    "delta": st.sampled_from([1e-9, 1e-6, 1e-2]),
    "schedule": st.sampled_from(SCHEDULES),
}


@pytest.mark.parametrize("coder", [BLT(2).coder(9), SquareRoot().coder(9), BinaryTree().coder(9)])
@pytest.mark.parametrize("horizon", [10, None])
def test_a_strategy_for_fewer_releases_is_rejected(coder, horizon):
    """Its sensitivity is that of fewer rows."""
    certificate, timetable = private_sum(1, 1.0, BUDGET, 10).learner.certificate, Timetable(every(1), horizon)
    kind = prefix_sum.Endless if horizon is None else prefix_sum.Finite
    with pytest.raises(InvalidInput, match="this strategy is for 9 releases, and"):
        kind(coder, certificate, timetable, 1, BUDGET)


def stated(private: Private) -> float:
    """What the whole stream is said to cost, the sampler's imperfection apart."""
    return private.guarantee.delivered.mu


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("name", list(STRATEGIES))
@settings(max_examples=4)
@given(**PLANS)
def test_the_stated_cost_is_the_recomputed_one(name, case, n, epsilon, delta, schedule):
    """`(Delta·max_j ‖C e_j‖ + lattice)/sd`: never less, hardly more, within the budget and nearly all of it."""
    private = CASES[case](STRATEGIES[name], Privacy(epsilon, delta), n, schedule=schedule)
    mu, _ = recomputed(private, CASES[case].delta)
    assert mu <= stated(private)
    assert stated(private) <= mu * (1.0 + 1e-8)
    assert private.guarantee.proven
    assert private.guarantee.holds
    assert private.guarantee.epsilon > 0.999 * epsilon


@pytest.mark.parametrize("name", list(STRATEGIES))
@settings(max_examples=10)
@given(**PLANS)
def test_every_integer_is_in_range(name, n, epsilon, delta, schedule):
    """Steps are powers of two, the noise lies where the sampler is proven, and rows below 2^51 steps."""
    private = CASES["qftl"](STRATEGIES[name], Privacy(epsilon, delta), n, schedule=schedule)
    calibrated, rounds = private.calibrated, private.timetable.rounds
    step, block = calibrated.step(1), np.max(np.diff(rounds, prepend=0))
    assert math.frexp(step)[0] == 0.5
    assert 2.0**25 <= calibrated.sd / step <= 2.0**40
    largest = (
        private.learner.certificate.magnitude
        * float(block)
        * (1.0 if calibrated.coder.integer else calibrated.coder.row_norm)
    )
    assert largest <= 2.0**51 * step
    assert largest * calibrated.coder.row_norm / step + 13.0 * calibrated.sd / step < 2.0**62


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_rounding_is_charged(name):
    """Under a budget so small that the lattice is as coarse as the sensitivity, the lattice is paid for."""
    private = CASES["sum"](STRATEGIES[name], TINY, 20)
    mu, lattice = recomputed(private, 3.0)
    assert lattice > 0.1 * mu
    assert mu <= stated(private) <= TINY.mu


@pytest.mark.parametrize("strategy", [BLT(), SquareRoot()])
@pytest.mark.parametrize("schedule", [every(1), every(50)])
def test_rounding_errors_are_charged(strategy, schedule):
    """Over many rounds those of buffers show; the longest column is taken at its word here."""
    private = private_sum(50, 1.0, BUDGET, 500_000, strategy=strategy, schedule=schedule)
    calibrated, rounds = private.calibrated, private.timetable.rounds
    rows, block = calibrated.coder.before(len(rounds) + 1), rounds[0]
    lattice = math.sqrt(rows) * (math.sqrt(50) * calibrated.step(1) + 2.0 * calibrated.coder.rounding_error * block)
    needed = (2.0 + math.sqrt(50) * 2.0**-26) * calibrated.coder.sensitivity + lattice
    assert lattice > 1e-6
    assert needed <= stated(private) * calibrated.sd <= needed * (1.0 + 1e-8)


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_the_whole_cost_is_spent_at_the_first_release(name):
    """However few sums are shown: a strategy charges all of its rows at once."""
    calibrated = CASES["sum"](STRATEGIES[name], BUDGET, 20).calibrated
    assert calibrated.cost(0) == FREE
    assert calibrated.cost(1) == calibrated.cost(20) == calibrated.cost(None)
    assert calibrated.cost(1).mu_squared > 0.0


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_noise_has_the_standard_deviation_that_is_charged(name):
    """On every encoded entry, to 5.5 sigma of its own (fixed seed); noise of half that would be caught."""
    private = private_sum(100, 1.0, BUDGET, 60, strategy=STRATEGIES[name])
    calibrated = private.calibrated
    drawn = calibrated.noise(3, 1, 60)
    assert [len(rows) for rows in drawn] == [calibrated.coder.rows(k) for k in range(1, 61)]
    normal = np.concatenate(list(drawn)) * calibrated.step(1) / calibrated.sd
    far = 5.5 * math.sqrt(2.0 / normal.size)
    assert abs(np.mean(normal**2) - 1.0) < far < abs(np.mean((normal / 2.0) ** 2) - 1.0)
    assert np.max(np.abs(np.mean(normal**2, axis=1) - 1.0)) < 5.5 * math.sqrt(2.0 / 100)
    assert np.max(np.abs(np.corrcoef(normal)[np.triu_indices(len(normal), 1)])) < 5.5 / math.sqrt(100)


@pytest.mark.parametrize("horizon", [700, None])
@pytest.mark.parametrize("name", ["tree", "blt"])
@settings(max_examples=6)
@given(cuts=st.lists(st.integers(1, 300), min_size=1, max_size=5))
def test_seeded_noise_does_not_depend_on_the_cut(name, horizon, cuts):
    """A seed gives release k the same noise whichever calls ask for it."""
    calibrated = private_sum(1, 1.0, BUDGET, horizon, strategy=STRATEGIES[name] if horizon else None).calibrated
    whole, k = list(calibrated.noise(5, 1, 700)), 1
    for count in cuts:
        count = min(count, 701 - k)
        if count:
            pieces = calibrated.noise(5, k, count)
            assert all(np.array_equal(a, b) for a, b in zip(pieces, whole[k - 1 :], strict=False))
            assert len(pieces) == count
        k += count
    assert not np.array_equal(calibrated.noise(6, 2, 1)[0], whole[1])


def test_secret_noise_is_fresh_every_time():
    """The same releases asked for twice get different noise."""
    calibrated = private_sum(50, 1.0, BUDGET, 10).calibrated
    one, other = (np.concatenate(list(calibrated.noise(None, 1, 10))) for _ in range(2))
    assert one.shape == other.shape == (10, 50)
    assert np.count_nonzero(one == other) <= 1


@pytest.mark.parametrize("horizon", [20, None])
@pytest.mark.parametrize("wild", [1e300, -1e300, math.inf, math.nan])
def test_statistics_beyond_the_certificate_are_clipped(wild, horizon):
    """For any statistic, the encoded row lies within the certified magnitude."""
    for strategy in (BinaryTree(), BLT()) if horizon else (BLT(8),):
        calibrated = private_sum(2, 1.0, BUDGET, horizon, strategy=strategy).calibrated
        _, integers = calibrated.encode(calibrated.start()[0], np.array([wild, 0.5]), 1)
        assert np.max(np.abs(integers)) * calibrated.step(1) <= 1.0 + 1e-6


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("epsilon", [1.0, 30.0])
def test_the_sampler_s_reach_is_charged(name, epsilon):
    """Each draw's error, and the chance that one falls beyond 12 sigma of either world's entry, which moves."""
    private = CASES["sum"](STRATEGIES[name], Privacy(epsilon, 1e-6), 20)
    calibrated, cost, (_, _, C) = private.calibrated, private.guarantee.delivered, dense(name, 20)
    errors = calibrated.step(1) + 2.0 * calibrated.coder.rounding_error * 1.5
    shift = (3.0 * np.max(np.abs(C)) + math.sqrt(3) * errors) / calibrated.sd
    assert cost.extra_epsilon == pytest.approx(2.0**-45 * len(C) * 3, rel=1e-6)
    assert cost.extra_delta >= 2.0 * len(C) * 3 * ndtr(shift - 12.0)
    assert cost.within(Privacy(epsilon, 1e-6))


@pytest.mark.parametrize(("epsilon", "horizon"), [(50.0, 1000), (20.0, None)])
def test_generous_budgets_can_be_planned(epsilon, horizon):
    """As for independent noise: no entry is moved by more than a few sigma."""
    assert private_sum(10, 1.0, Privacy(epsilon, 1e-6), horizon).guarantee.epsilon > 0.98 * epsilon


# The paper's noise.


@pytest.mark.parametrize(
    ("epsilon", "delivered", "true"), [(0.01, 0.034, False), (0.1, 0.118, False), (1.0, 0.40, True), (10.0, 1.4, True)]
)
def test_the_papers_tree_is_charged_for_what_it_is(epsilon, delivered, true):
    """With epsilon where epsilon² belongs it is rejected below, wasteful above (docs/errata.md, E13)."""
    plan = {"strategy": BinaryTree(refined=False), "calibration": "paper-printed"}
    private = private_sum(1, 1.0, Privacy(epsilon, 1e-6), 100_000, allow_broken=True, **plan)
    assert private.guarantee.epsilon == pytest.approx(delivered, rel=0.02)
    assert private.guarantee.proven is true
    assert private.calibrated.sd == paper.tree_noise(private.problem.norm_bound, Privacy(epsilon, 1e-6), 100_000)
    if not true:
        with pytest.raises(Unprovable, match="BROKEN"):
            private_sum(1, 1.0, Privacy(epsilon, 1e-6), 100_000, **plan)


def test_the_papers_two_trees_are_charged_as_one():
    """PQFTL as printed: `sqrt(17·4.5)/sigma` at R = R_y = 1, T = 1e5; other weights are rejected with the right one."""
    problem, plan = Problem(Squared(), L2Ball(0.5), 2, label_bound=1.0), {"calibration": "paper-printed"}
    plan |= {"strategy": BinaryTree(refined=False), "allow_broken": True}
    private = pqftl(problem, Privacy(0.01, 1e-6), 100_000, weight=1.0, **plan)
    sigma = paper.tree_noise(1.0, Privacy(0.005, 5e-7), 100_000)
    assert stated(private) == pytest.approx(math.sqrt(17 * 4.5) / sigma, rel=1e-5)
    assert not private.guarantee.proven
    with pytest.raises(InvalidInput, match="weight=1"):
        pqftl(problem, BUDGET, 100_000, weight=2.0, **plan)


def test_the_papers_noise_is_for_its_own_tree():
    """Not for a refined one, for other strategies, for other learners, or without a horizon."""
    for strategy in (BinaryTree(), BLT()):
        with pytest.raises(InvalidInput, match="calibration='exact'"):
            private_sum(1, 1.0, BUDGET, 100, strategy=strategy, calibration="paper-printed")
    with pytest.raises(InvalidInput, match="calibration='exact'"):
        Private(
            FTRL(Problem(Squared(), L2Ball(1.0), 1, label_bound=1.0)),
            BinaryTree(False),
            every(1),
            BUDGET,
            9,
            "paper-printed",
        )
    with pytest.raises(InvalidInput, match="State a horizon"):
        private_sum(1, 1.0, BUDGET, calibration="paper-printed")


def test_the_papers_noise_for_one_round_is_rejected():
    """`log T` is 0 there, and so would be the noise."""
    with pytest.raises(InvalidInput, match="horizon"):
        private_sum(1, 1.0, BUDGET, 1, strategy=BinaryTree(refined=False), calibration="paper-printed")


def test_more_examples_than_can_be_added_exactly_are_rejected():
    """2²⁶ of them are not, at once."""
    assert private_sum(1, 1.0, BUDGET, schedule=at([2**26])).guarantee.holds
    with pytest.raises(Unprovable):
        private_sum(1, 1.0, BUDGET, schedule=at([2**26 + 1]))


# Planted faults.


@pytest.mark.parametrize("case", ["sum", "qftl", "ftrl"])
def test_a_level_too_few_is_caught(case, monkeypatch):
    """The paper's `log T` nodes in place of `floor(log2 T) + 1`."""
    monkeypatch.setattr(TreeCoder, "sensitivity", property(lambda self: math.sqrt(max(1, self.levels - 1))))
    for name in ("tree", "refined tree"):
        private = CASES[case](STRATEGIES[name], BUDGET, 20)
        assert recomputed(private, CASES[case].delta)[0] > 1.1 * stated(private)


@pytest.mark.parametrize("name", MULTIPLYING)
def test_rounding_one_row_only_is_caught(name, monkeypatch):
    """`sqrt(dim)·g` in place of `sqrt(n·dim)·g`: by a millionth usually, by a lot where the lattice is coarse."""
    monkeypatch.setattr(prefix_sum.Finite, "_rounding", lambda self, rows: float(self.size))
    for privacy, more in ((BUDGET, 1.0), (TINY, 1.05)):
        private = CASES["sum"](STRATEGIES[name], privacy, 20)
        assert recomputed(private, 3.0)[0] > more * stated(private)


@pytest.mark.parametrize("name", ["tree", "blt", "square root"])
@pytest.mark.parametrize("case", list(CASES))
def test_half_the_sensitivity_is_caught(name, case):
    """A neighbour's contribution forgotten."""
    learner = CASES[case](STRATEGIES[name], BUDGET, 20).learner
    honest = learner.certificate
    learner.__dict__["certificate"] = replace(honest, bound=lambda t: honest.bound(t) / 2.0)
    private = Private(learner, STRATEGIES[name], every(1), BUDGET, 20)
    assert recomputed(private, CASES[case].delta)[0] > 1.9 * stated(private)


def test_the_papers_bound_on_the_second_sum_is_caught(monkeypatch):
    """R for `y v`, and each sum as if the other were not there."""
    honest = QFTL._moved
    monkeypatch.setattr(QFTL, "_moved", lambda self, w: math.hypot(1.0, w))
    assert recomputed(CASES["qftl"](BLT(), BUDGET, 20), CASES["qftl"].delta)[0] > stated(
        CASES["qftl"](BLT(), BUDGET, 20)
    )
    monkeypatch.setattr(QFTL, "_moved", honest)
    assert recomputed(CASES["qftl"](BLT(), BUDGET, 20), CASES["qftl"].delta)[0] <= stated(
        CASES["qftl"](BLT(), BUDGET, 20)
    )


@pytest.mark.parametrize("strategy", [BLT(), BinaryTree(), SquareRoot()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("rounds", [[6, 8, 10], [2, 8, 10], [2, 4, 10]], ids=["first", "middle", "last"])
def test_all_rows_of_a_user_may_lie_in_the_longest_block(strategy, rounds):
    """Wherever it is: two streams whose user has all six rows there are no farther apart than is stated."""
    made = private_sum(1, 1.0, BUDGET, 10, strategy=strategy, schedule=at(rounds), unit=User(rows=6), seed=1)
    longest = int(np.argmax(np.diff(rounds, prepend=0)))
    apart = []
    for y in (1.0, -1.0):
        X = np.zeros((10, 1))
        X[rounds[longest] - 6 : rounds[longest]] = y
        apart.append(made.run(made.start(), X, users=["anna" if x else f"{i}" for i, x in enumerate(X[:, 0])])[1])
    moved = abs(apart[0].noisy - apart[1].noisy)[longest, 0]
    assert moved == pytest.approx(12.0, abs=1e-6)
    assert stated(made) >= moved / made.calibrated.noise_sd(longest + 1) * (1.0 - 1e-9)
