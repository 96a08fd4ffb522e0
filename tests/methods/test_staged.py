"""Stages of one stream: what they cost, who is counted where, and what a state carries from one to the next."""

from __future__ import annotations

import itertools
import math
import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances import OwnSums
from taciturn import (
    BLT,
    EWOO,
    FTRL,
    IGD,
    QFTL,
    BinaryTree,
    BudgetExhausted,
    Exponential,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    OneHot,
    Privacy,
    Private,
    Problem,
    Softmax,
    Squared,
    SquareRoot,
    StateConflict,
    Unprovable,
    Vector,
    at,
    every,
    grid,
    private_sum,
)
from taciturn.kernel.accounting.cost import total
from taciturn.kernel.accounting.unit import User
from taciturn.kernel.stream import loop
from taciturn.kernel.stream.state import read_state, standing_of
from taciturn.methods.staged import Staged
from taciturn.methods.stages import Moments, Ranges, Scales, with_standardised

pytestmark = pytest.mark.privacy

BUDGET = Privacy(1.0, 1e-6)
ROWS = 60
STAGES = (Ranges(10), Scales(12), Moments(8))
PROBLEM = with_standardised(Problem(Logistic(), L2Ball(2.0), 2, ridge=0.1))
NUMBERS = with_standardised(Problem(Squared(), L2Ball(2.0), 2, label_bound=3.0))

rng = np.random.default_rng(0)
X = rng.normal(3.0, 2.0, (ROWS, 2))
Y = np.sign(X[:, 0] - 3.0)
REAL = 40.0 + 5.0 * X[:, 0]


def staged(learner=None, mechanism=None, **changes):
    """Three stages and a learner on 60 rows."""
    given = {"schedule": every(6), "privacy": BUDGET, "horizon": ROWS, "stages": STAGES} | changes
    return Staged(learner or FTRL(PROBLEM), mechanism or BLT(), **given)


def test_a_learner_of_ones_own_follows_stages():
    """On the problem as stages find it: its contributions are clipped there, too, however the stream is cut."""
    own = OwnSums(PROBLEM, Vector(PROBLEM.size, 0.5))
    private = staged(own, seed=1)
    _, whole = run_in(private, ())
    _, parts = run_in(private, (3, 30, 47))
    assert [(t, noisy.tolist()) for t, noisy, _ in parts] == [(t, noisy.tolist()) for t, noisy, _ in whole]
    assert private.guarantee.rests_on == "enforced"
    assert staged(IGD(replace(PROBLEM, ridge=0.1)), Gaussian()).guarantee.rests_on == "proven"


def run_in(private, cuts, X=X, y=Y, **arguments):
    """The last state and all releases of a stream that is given in parts."""
    state, points = private.start(), []
    users = arguments.pop("users", None)
    for a, b in pairwise(sorted({0, *cuts, len(X)})):
        ids = None if users is None else users[a:b]
        state, releases = private.run(state, X[a:b], y[a:b], users=ids, **arguments)
        points += [(release.t, release.noisy, release.point) for release in releases]
    return state, points


@pytest.fixture
def released(monkeypatch):
    """All that the parts of streams release from now on: noisy statistics, and the exact ones where they are known."""
    seen = []
    call = loop.Loop.__call__

    def spy(self, begun, X, y, excluded=None, first=0):
        standing, releases = call(self, begun, X, y, excluded, first)
        for release in releases:
            seen.append((self, release.noisy, begun.t == 0 and len(y)))
        return standing, releases

    monkeypatch.setattr(loop.Loop, "__call__", spy)
    return seen


# What it costs.


@pytest.mark.parametrize(
    ("learner", "mechanism"),
    [
        (FTRL(PROBLEM), BLT()),
        (FTRL(PROBLEM), BinaryTree()),
        (IGD(PROBLEM), Gaussian()),
        (QFTL(NUMBERS), SquareRoot()),
        (QFTL(with_standardised(Problem(OneHot(3), L2Ball(1.0), 2))), BLT()),
        (FTRL(with_standardised(Problem(Softmax(3), L2Ball(1.0), 2))), BLT()),
    ],
)
def test_an_example_costs_the_largest_mu_and_the_samplers_shares_add_up(learner, mechanism):
    """The maximum for mu, which is close to the budget's; sums for what the sampler adds."""
    private = staged(learner, mechanism)
    costs = [part.total_cost for part in private.parts]
    assert private.total_cost.mu_squared == max(cost.mu_squared for cost in costs)
    assert private.total_cost.extra_epsilon == math.fsum(cost.extra_epsilon for cost in costs)
    assert private.total_cost.extra_delta == math.fsum(cost.extra_delta for cost in costs)
    assert private.total_cost.extra_epsilon > max(cost.extra_epsilon for cost in costs) > 0.0
    assert private.total_cost.extra_delta > max(cost.extra_delta for cost in costs) > 0.0
    assert private.guarantee.proven
    assert 0.9999 < min(cost.mu for cost in costs) / BUDGET.mu <= private.total_cost.mu / BUDGET.mu < 1.0


USERS = {
    "rows": User(4),
    "per release": User(5, per_release=2),
    "apart": User(4, apart=3),
    "both": User(5, per_release=2, apart=2),
    "period": User(3, period=20),
    "calendar": User(2, period="day"),
}


@pytest.mark.parametrize(
    ("unit", "mechanism"),
    [*((unit, SquareRoot()) for unit in USERS.values()), (User(3), BLT()), (User(3), BinaryTree())],
    ids=[*USERS, "blt", "tree"],
)
def test_a_user_costs_the_largest_split(unit, mechanism):
    """By brute force over all ways to split the rows; more than any part alone, and within the budget."""
    private = staged(mechanism=mechanism, unit=unit)
    by_rows = [
        [0.0, *(part.cost_for(unit.with_rows(j)).mu_squared for j in range(1, unit.rows + 1))] for part in private.parts
    ]
    splits = [
        split for split in itertools.product(range(unit.rows + 1), repeat=len(by_rows)) if sum(split) <= unit.rows
    ]
    largest = max(sum(each[j] for each, j in zip(by_rows, split, strict=True)) for split in splits)
    assert private.total_cost.mu_squared == pytest.approx(largest, rel=1e-12)
    assert private.total_cost.mu_squared >= largest * (1.0 - 1e-15)
    costs = [part.total_cost for part in private.parts]
    assert private.total_cost.extra_delta == math.fsum(cost.extra_delta for cost in costs)
    assert private.guarantee.proven
    assert private.total_cost.mu / BUDGET.mu > 0.9999


def test_a_split_may_cost_more_than_any_part():
    """With one row between two releases, a user's rows in different stages add up: the maximum would be wrong."""
    private = staged(mechanism=SquareRoot(), unit=User(4, per_release=1))
    largest = max(part.total_cost.mu for part in private.parts)
    assert private.total_cost.mu > 1.3 * largest


def test_many_rows_and_iterates_are_charged_as_a_sum():
    """No split costs more than all parts together; what fewer rows cost an iterate is not known."""
    many = staged(mechanism=SquareRoot(), unit=User(65))
    for private in (many, staged(IGD(PROBLEM), Gaussian(), unit=User(3))):
        summed = math.fsum(part.total_cost.mu_squared for part in private.parts)
        assert private.total_cost.mu_squared <= summed * (1.0 + 1e-12)
        assert private.guarantee.proven
    assert many.total_cost.mu_squared == math.fsum(part.total_cost.mu_squared for part in many.parts)


def test_several_periods_add_up():
    """For every part, as if all rows of a user were in it."""
    private = staged(unit=User(2, period=20))
    costs = [part.user_over(3) for part in private.parts]
    assert private.user_over(3) == total(costs)
    assert private.user_over(3).mu > private.total_cost.mu
    with pytest.raises(InvalidInput, match="periods"):
        staged().user_over(2)


def test_what_was_spent_grows_with_the_stages():
    """Nothing before the first ends, never less later, and the reserved cost at the end."""
    for private, users in ((staged(), None), (staged(unit=User(4)), np.arange(ROWS) % 20)):
        ledger = Ledger(BUDGET)
        state = private.start(ledger)
        spent = []
        for row in range(ROWS):
            ids = None if users is None else users[row : row + 1]
            state, _ = private.run(state, X[row : row + 1], Y[row : row + 1], users=ids)
            spent.append(state.spent)
        assert spent[8].mu == 0.0 < spent[9].mu == spent[20].mu <= spent[21].mu <= spent[29].mu
        assert all(a <= b for one, other in pairwise(spent) for a, b in zip(one.parts, other.parts, strict=True))
        assert spent[-1] == private.total_cost == ledger.spent


def test_what_nothing_proves_is_rejected():
    """The exponential mechanism's cost is no mu; the paper's noise; no stage; no row left."""
    candidates = EWOO(Problem(Hinge(), L2Ball(1.0), 2), grid(L2Ball(1.0), 2, per_axis=4))
    with pytest.raises(Unprovable, match="Gaussian noise"):
        staged(candidates, Exponential())
    with pytest.raises(InvalidInput, match="exact noise"):
        staged(IGD(PROBLEM), Gaussian(), calibration="paper-printed", allow_broken=True)
    with pytest.raises(InvalidInput, match="at least one stage"):
        staged(stages=())
    with pytest.raises(InvalidInput, match="the stages alone take 30 rows"):
        staged(horizon=30)


@dataclass(frozen=True)
class Widening(Ranges):
    """A planted fault: the bound on rows follows what was found."""

    def after(self, problem, point):
        return replace(problem, feature_bound=2.0)


def test_a_stage_that_changes_a_bound_is_rejected():
    """The noise of later parts is for the bounds that were stated."""
    private = staged(stages=(Widening(10),))
    with pytest.raises(Unprovable, match="must not depend on what stages find"):
        private.run(private.start(), X, Y)


# What is released.


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, ROWS), max_size=6))
def test_any_cut_of_the_rows_releases_the_same(cuts):
    """Chunks may end anywhere, at borders of stages too; a matrix product may round otherwise in another block."""
    private = _SEEDED
    state, points = run_in(private, cuts)
    whole, expected = _WHOLE
    assert [t for t, *_ in points] == [t for t, *_ in expected] == [36, 42, 48, 54, 60]
    for one, other in zip(private.found(state), private.found(whole), strict=True):
        assert np.array_equal(one, other)
    for (_, noisy, point), (_, other, last) in zip(points, expected, strict=True):
        np.testing.assert_allclose(noisy, other, rtol=0.0, atol=1e-6)
        np.testing.assert_allclose(point, last, rtol=0.0, atol=1e-6)


_SEEDED = staged(seed=5)
_WHOLE = run_in(_SEEDED, ())


@pytest.mark.parametrize("stop", [0, 1, 9, 10, 11, 21, 22, 29, 30, 31, 36, 59])
def test_a_dumped_state_goes_on(stop, tmp_path):
    """In the middle of a stage, at its end and at its beginning; spent is what it was."""
    state, _ = _SEEDED.run(_SEEDED.start(), X[:stop], Y[:stop])
    state.dump(tmp_path / "state.npz")
    loaded = replace(_SEEDED).load(tmp_path / "state.npz")
    assert loaded.spent == state.spent
    end, releases = _SEEDED.run(loaded, X[stop:], Y[stop:])
    assert np.array_equal(end.point, _WHOLE[0].point)
    assert len(releases) == sum(t > stop for t, *_ in _WHOLE[1])


def test_compiled_and_defined_parts_release_the_same():
    """Up to rounding."""
    slow = replace(_SEEDED, compiled=False)
    assert slow.settings == _SEEDED.settings
    np.testing.assert_allclose(run_in(slow, (17,))[0].point, _WHOLE[0].point, atol=1e-6)


@pytest.mark.parametrize("cuts", [(), (5, 10, 21, 31, 44)])
def test_every_row_is_read_once_and_in_one_part(cuts, monkeypatch):
    """In its order, with its label: the proof that stages cost the largest mu is about disjoint rows."""
    read, call = [], loop.Loop.__call__

    def spy(self, begun, X, y, excluded=None, first=0):
        read.append((X[:], y))
        return call(self, begun, X, y, excluded, first)

    monkeypatch.setattr(loop.Loop, "__call__", spy)
    run_in(staged(seed=5), cuts)
    assert np.array_equal(np.vstack([rows for rows, _ in read]), X)
    assert np.array_equal(np.concatenate([labels for _, labels in read]), Y)
    ends = np.cumsum([len(labels) for _, labels in read])
    assert {10, 22, 30} <= set(ends.tolist())


def test_what_stages_find_is_decided_from_what_they_release(released):
    """From the noisy statistic, with rows enough that the exact one would say something else."""
    stages = (Ranges(400), Scales(400), Moments(400))
    private = staged(seed=5, stages=stages, horizon=1_300, privacy=Privacy(8.0, 1e-6), schedule=at([100]))
    rows = np.random.default_rng(4).normal(3.0, 2.0, (1_300, 2))
    state, _ = private.run(private.start(), rows, np.ones(1_300))
    problem = private.problem
    for i, (found, stage) in enumerate(zip(private.found(state), stages, strict=True)):
        learner = stage.learner(problem, private.found(state)[:i])
        sd = private.parts[i].calibrated.noise_sd(1)
        assert np.array_equal(found, learner.decide(400, released[i][1], sd))
        V, y = learner.problem.clip(rows[400 * i : 400 * (i + 1)], np.ones(400))
        exact = learner.absorb(learner.start(), 0, V, y, np.zeros(0))
        assert not np.array_equal(found, learner.decide(400, learner.statistic(exact, 400)[1], sd))
        problem = stage.after(problem, found)


def test_rows_of_a_stage_are_read_in_no_other(released):
    """Change one row: what earlier parts release stays, and so does the noise of all."""
    rounds = []
    for row in (None, 3, 15, 27, 45):
        other = X.copy()
        if row is not None:
            other[row] = 1e300
        released.clear()
        staged(seed=5).run(staged(seed=5).start(), other, Y)
        rounds.append([noisy for _, noisy, _ in released[:3]] + [np.array([n for _, n, _ in released[3:]])])
    base = rounds[0]
    for stage, changed in enumerate(rounds[1:]):
        assert all(np.array_equal(base[i], changed[i]) for i in range(stage))
        assert not np.array_equal(base[stage], changed[stage])
    assert [int(rows) for _, _, rows in released[:3]] == [10, 12, 8]


def test_parts_of_a_simulation_have_no_noise_in_common():
    """A seed for each: two equal stages on equal rows release different things."""
    private = staged(seed=5, stages=(Ranges(10), Ranges(10)))
    rows = np.vstack([X[:10], X[:10], X[20:]])
    state, _ = private.run(private.start(), rows, Y)
    noise = [part.calibrated.noise(part.seed, 1, 1)[0] for part in private.parts[:2]]
    assert not np.array_equal(np.ravel(noise[0]), np.ravel(noise[1]))
    assert len({part.seed for part in private.parts}) == 3
    assert len(private.found(state)) == 2


def test_releases_of_calls_add_up_also_where_a_call_has_none():
    private = staged(seed=1)
    state, collected = private.run(private.start(), X[:20], Y[:20])
    for a, b in ((20, 37), (37, 40), (40, 60)):
        state, more = private.run(state, X[a:b], Y[a:b])
        collected = collected + more
    assert collected.rounds.tolist() == private.run(private.start(), X, Y)[1].rounds.tolist()


def test_step_fit_and_a_schedule_that_ends():
    """As in one stream without stages."""
    private = staged(seed=5)
    state, release = private.step(private.start(), X[:36], Y[:36])
    assert release.t == 36
    with pytest.raises(InvalidInput, match="ends at the next published round, 42"):
        private.step(state, X[36:], Y[36:])
    assert np.array_equal(private.fit(X, Y).point, _WHOLE[0].point)
    with pytest.raises(InvalidInput, match="too few for a release"):
        private.fit(X[:31], Y[:31])
    with pytest.raises(BudgetExhausted, match="past the horizon of 60"):
        private.run(private.start(), np.vstack([X, X]), np.append(Y, Y))
    ends = staged(seed=5, schedule=at([5, 20]), horizon=None)
    assert ends.timetable.horizon == 50
    with pytest.raises(BudgetExhausted, match="past the horizon of 50"):
        ends.run(ends.start(), X, Y)


def test_without_a_horizon():
    """Stages first, and then for ever."""
    private = staged(mechanism=BLT(2), horizon=None, seed=5)
    state, releases = private.run(private.start(), np.vstack([X, X]), np.append(Y, Y))
    assert [release.t for release in releases] == list(range(36, 121, 6))
    assert private.guarantee.proven
    assert state.t == 120


def test_labels_are_scaled_once():
    """Units that were stated, and those that stages find: predictions come in the labels' own."""
    stated = replace(NUMBERS, label_center=40.0, label_scale=20.0)
    labelled = (Ranges(300, labels=True), Scales(300, labels=True))
    for problem, stages in ((stated, (Moments(10),)), (NUMBERS, labelled), (stated, labelled)):
        rows = np.random.default_rng(1).normal(0.0, 0.5, (4_000, 2))
        labels = 50.0 + 10.0 * rows[:, 0]
        private = Staged(
            QFTL(replace(problem, intercept=1.0)), BLT(), at([1000]), Privacy(20.0, 1e-6), stages=stages, seed=3,
            horizon=4_000,
        )  # fmt: skip
        state, _ = private.run(private.start(), rows, labels)
        predicted = private.problem_at(state).predict(state.point, np.array([[0.5, 0.0], [-0.5, 0.0]]))
        np.testing.assert_allclose(predicted, [55.0, 45.0], atol=6.0)
        assert predicted[0] - predicted[1] > 4.0


def test_huge_labels_are_clipped_and_bad_ones_are_not_learnt_from():
    """A finite label stays finite in any units, without a warning that would show it."""
    tiny = replace(NUMBERS, label_center=-1e300, label_scale=1e-60)
    scaled = tiny.in_own_units(np.array([1.7e308, -1.7e308, np.nan, np.inf, -1e300]))
    assert np.isfinite(scaled[[0, 1, 4]]).all()
    assert not np.isfinite(scaled[[2, 3]]).any()
    y = REAL.copy()
    y[::7], X_bad = 1.7e308, X.copy()
    X_bad[::5, 0], X_bad[::11, 1] = 1.7e308, np.nan
    private = staged(QFTL(NUMBERS), stages=(Ranges(10, labels=True), Scales(12, labels=True), Moments(8)), seed=1)
    assert np.isfinite(private.run(private.start(), X_bad, y)[0].point).all()


def test_sparse_rows_and_tables_are_cut_at_borders():
    """Nothing is converted before it is needed; the same is released."""
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(X)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1]})
    for rows in (sparse, table):
        state, _ = _SEEDED.run(_SEEDED.start(), rows, Y)
        assert np.array_equal(state.point, _WHOLE[0].point)


def test_a_rejected_row_changes_nothing():
    """Its number is that in the call, in whichever part it lies; the state is as it was."""
    private = staged()
    state = private.start()
    for row in (4, 25, 50):
        bad = Y.copy()
        bad[row] = 0.3
        with pytest.raises(InvalidInput, match=f"row {row} has label 0.3"):
            private.run(state, X, bad)
    assert private.run(state, X, Y)[0].t == ROWS


def test_copies_old_snapshots_and_forks():
    """A state is used once, within stages too; a fork is charged in full."""
    ledger = Ledger(Privacy(3.0, 1e-5))
    private = staged()
    state = private.start(ledger)
    middle, _ = private.run(state, X[:15], Y[:15])
    with pytest.raises(StateConflict):
        private.run(state, X[:15], Y[:15])
    fork = private.fork(middle)
    private.run(middle, X[15:], Y[15:])
    with pytest.raises(StateConflict):
        private.run(middle, X[15:20], Y[15:20])
    end, _ = private.run(fork, X[15:], Y[15:])
    assert ledger.spent.mu_squared == pytest.approx(2.0 * private.total_cost.mu_squared)
    assert end.spent == private.total_cost


def test_nothing_is_spent_or_told_before_commit():
    """What stages find is in a state that is not live."""
    ledger = Ledger(BUDGET)
    private = staged()
    prepared = private.prepare(private.start(ledger), X, Y)
    assert ledger.spent.mu == 0.0
    assert not private.is_live(prepared.state)
    assert "found" not in repr(prepared) + repr(prepared.state)
    private.commit(prepared)
    assert ledger.spent == private.total_cost
    assert private.is_live(prepared.state)


# Users.


def test_a_users_rows_are_counted_across_stages_and_excess_ones_have_no_influence(released):
    """Two rows of one user count, in whichever stage they come: the others may be anything."""
    private = staged(seed=5, unit=User(2), learner=FTRL(replace(PROBLEM, on_bad="zero")))
    users = np.array([f"u{i}" for i in range(ROWS)])
    own = np.array([2, 12, 16, 25, 40, 55])  # in every part; the first two count
    users[own] = "anna"
    state, _ = private.run(private.start(), X, Y, users=users)
    expected = [noisy for _, noisy, _ in released]
    other, labels = X.copy(), Y.copy()
    other[own[2:]], labels[own[2:]] = 1e6, -1.0
    released.clear()
    again, _ = run_in(private, (13, 41), other, labels, users=users)
    assert np.array_equal(again.point, state.point)
    assert all(np.array_equal(a, noisy) for a, (_, noisy, _) in zip(expected, released, strict=True))
    other[own[1]] = 1e300
    released.clear()
    private.run(private.start(), other, labels, users=users)
    assert np.array_equal(expected[0], released[0][1])
    assert not np.array_equal(expected[1], released[1][1])


def test_labels_of_excess_rows_are_not_counted():
    """In a stage that finds their range."""
    stages = (Ranges(20, labels=True), Scales(20, labels=True))
    private = staged(QFTL(NUMBERS), seed=5, unit=User(1), stages=stages)
    users, other = np.repeat(np.arange(ROWS // 2), 2), REAL.copy()
    state, _ = private.run(private.start(), X, REAL, users=users)
    other[1::2] = -1e9
    again, _ = private.run(private.start(), X, other, users=users)
    assert np.array_equal(again.point, state.point)
    for one, found in zip(private.found(again), private.found(state), strict=True):
        assert np.array_equal(one, found)


def test_a_stage_is_one_block():
    """For bounds on rows between two releases, and on how far apart they lie."""
    private = staged()
    rounds = np.array([1, 10, 11, 22, 23, 30, 31, 36, 37, 60])
    assert private._blocks(rounds).tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 8]


# Files.


def test_numbers_of_another_machine_are_taken_if_all_parts_keep_the_budget(tmp_path):
    """Shares of the budget depend on fits; the parts' costs are checked together."""
    unit, users = User(4), np.arange(ROWS) % 20
    there = staged(unit=unit)
    share = there._share
    for by, fits in ((1.0 - 1e-6, True), (1.0 + 1e-2, False)):
        there = staged(unit=unit)
        there.__dict__.pop("parts", None)
        moved = Privacy(share.epsilon * by, share.delta)
        parts = there._calibrated_for(moved)
        for name in ("_last_numbers", "_last_known", "total_cost", "guarantee"):
            there.__dict__.pop(name, None)
        object.__setattr__(there, "parts", parts)
        state = there.draft()
        (tmp_path / "state.npz").write_bytes(state.to_bytes())
        here = staged(unit=unit)
        if fits:
            loaded = here.load(tmp_path / "state.npz")
            assert here.resumed(loaded) is not here
            assert here.resumed(loaded).parts[0].calibrated.sd == parts[0].calibrated.sd
            here.run(loaded, X, Y, users=users)
        else:
            with pytest.raises(StateConflict, match="cost more than the budget"):
                here.load(tmp_path / "state.npz")


def test_smaller_shares_here_do_not_reject_a_stream_from_elsewhere(tmp_path):
    """A machine whose fits leave the parts a little less than where the stream began."""
    there, here = staged(unit=User(4)), staged(unit=User(4))
    (tmp_path / "state.npz").write_bytes(there.draft().to_bytes())
    share = here._share
    for name in ("parts", "_last_numbers", "_last_known", "total_cost", "guarantee"):
        here.__dict__.pop(name, None)
    here.__dict__["_share"] = Privacy(share.epsilon * (1.0 - 1e-6), share.delta)
    assert here.resumed(here.load(tmp_path / "state.npz")).total_cost.mu == pytest.approx(there.total_cost.mu)


@pytest.mark.parametrize(
    "found",
    [
        np.full(8, np.nan),
        np.full(8, np.inf),
        np.zeros(7),
        np.zeros((2, 4)),
        np.zeros(8, dtype=np.float32),
        np.array([1.0, 1.0, 0.0, 0.0, 0.05, 0.05, 0.0, 0.0]),
        np.array([-1.7e308, 0.0, 1.7e308, 1.0, 0.05, 0.05, 0.0, 0.0]),
        np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.05, 0.0, 0.0]),
        np.array([0.0, 0.0, 1.0, 1.0, 7.0, 0.05, 0.0, 0.0]),
    ],
    ids=["nan", "inf", "short", "square", "float32", "crossed", "huge", "level .5", "level 7"],
)
@pytest.mark.parametrize("stop", [12, 25])
def test_what_stages_found_is_validated_in_a_file(found, stop):
    """A state of a stream is loaded, or rejected as damaged; nothing else happens."""
    private = staged(seed=5)
    state, _ = private.run(private.start(), X[:stop], Y[:stop])
    last = f"found{len(private.found(state)) - 1}"
    edited = replace(state, public=state.public | {last: found})
    with pytest.raises(StateConflict, match="damaged") if _is_damage(found, stop) else nullcontext():
        loaded = private.load(edited.to_bytes())
        assert np.isfinite(private.run(loaded, X[stop:], Y[stop:])[0].point).all()


def _is_damage(found, stop):
    """What follows needs the quantiles of the first stage, and quantiles and levels of the second."""
    if found.shape != (8,) or found.dtype != np.float64 or not np.isfinite(found).all() or found[2] > 1e300:
        return True
    return stop == 25 and found[4] >= 0.5


def test_missing_arrays_and_foreign_numbers_are_rejected():
    """What a stream has not written."""
    private = staged(seed=5)
    state, _ = private.run(private.start(), X[:12], Y[:12])
    without = {name: array for name, array in state.public.items() if name != "found0"}
    with pytest.raises(StateConflict, match="is missing"):
        private.load(replace(state, public=without).to_bytes())
    for name in ("9.certificate", "x.certificate", "².certificate", "certificate"):
        with pytest.raises(StateConflict, match="damaged"):
            private.load(replace(state, numbers=state.numbers | {name: np.ones(1)}).to_bytes())
    fewer = {name: array for name, array in state.numbers.items() if not name.startswith("2.")}
    with pytest.raises(StateConflict):
        private.load(replace(state, numbers=fewer).to_bytes())
    with pytest.raises(StateConflict, match="other settings"):
        staged(seed=5, stages=STAGES[:2]).load(state.to_bytes())


def test_quiet_numbers_are_rejected():
    """Of every part: half its noise, stated in a file, made none of the earlier releases."""
    private = staged()
    state = private.draft()
    for name in state.numbers:
        if name.endswith(".sd"):
            edited = replace(state, numbers=state.numbers | {name: state.numbers[name] * 0.9})
            with pytest.raises(StateConflict, match="damaged"):
                private.load(edited.to_bytes())


def test_a_weight_that_was_computed_is_restored(tmp_path):
    """QFTL chooses its weight by a search, which ends elsewhere on another machine."""
    private = staged(QFTL(NUMBERS), seed=5)
    state, _ = private.run(private.start(), X[:40], REAL[:40])
    state.dump(tmp_path / "state.npz")
    assert os.path.getsize(tmp_path / "state.npz") > 0
    again = staged(QFTL(NUMBERS), seed=5)
    end, _ = again.run(again.load(tmp_path / "state.npz"), X[40:], REAL[40:])
    assert np.array_equal(end.point, private.run(state, X[40:], REAL[40:])[0].point)
    assert "3.learner.weight" in read_state(tmp_path / "state.npz").numbers


# The audit of a whole stream.


def test_the_audited_mu_of_a_stream_is_the_claimed_one(released):
    """With the row that differs in each of the parts, the releases of all parts are as far apart as claimed.

    Common noise gives the shift of all releases, those of earlier parts being the same; the secret noise of a part, at
    least 14,000 entries of it, its standard deviation to 0.6 %: an error of 3 % is five of these, below 1e-6.
    """
    sums = private_sum(6, 2.0, BUDGET, 40).learner
    learner = replace(sums, problem=with_standardised(sums.problem))
    stages = (Ranges(10), Scales(10), Moments(10))
    seeded = Staged(learner, SquareRoot(), at([10]), BUDGET, 40, stages=stages, seed=3)
    rows = np.zeros((40, 6))

    def transcript(X):
        released.clear()
        state = seeded.prepare(seeded.draft(), X).state
        return state, [noisy for _, noisy, _ in released]

    state, _ = transcript(rows)
    for stage, part in enumerate(seeded.parts):
        distances = []
        for pair in _candidates(seeded, state, stage):
            worlds = []
            for row in pair:
                changed = rows.copy()
                changed[10 * stage + 4] = row
                worlds.append(transcript(changed)[1])
            assert all(np.array_equal(*earlier) for earlier in list(zip(*worlds, strict=True))[:stage])
            distances.append(float(np.linalg.norm(worlds[0][stage] - worlds[1][stage])))
        audited = max(distances) / _measured_sd(replace(part, seed=None))
        assert audited == pytest.approx(seeded.total_cost.mu, rel=0.03), stage


def _measured_sd(part):
    """Of the secret noise that the loop of a part adds."""
    runs = math.ceil(14_000 / part.learner.statistic_size)
    rows, labels = part.problem.read(np.zeros((10, 6)))
    begun = standing_of(part.draft())
    noisy = np.array([part._loop(begun, rows, labels)[1].noisy[0] for _ in range(runs)])
    V, y = part.problem.clip(rows)
    exact = part.learner.absorb(part.learner.start(), 0, V, y, begun.point)
    return float(np.sqrt(np.mean((noisy - part.learner.statistic(exact, 10)[1]) ** 2)))


def _candidates(private, state, stage):
    """Pairs of rows among which the worst of a part is: bins far apart, orthogonal rows, opposite rows."""
    if stage < 2:
        learner = private.stages[stage].learner(private.problem, private.found(state)[:stage])
        C, edges = learner.encoder.astype(float), learner.bins.edges
        apart = np.linalg.norm(C[:, :, None] - C[:, None, :], axis=0)
        inside = np.hstack([edges[:, :1] - 1.0, (edges[:, 1:] + edges[:, :-1]) / 2.0, edges[:, -1:] + 1.0])
        return [tuple(inside[:, bin] for bin in np.unravel_index(apart.argmax(), apart.shape))]
    found = private.problem_at(state).features.maps[0]
    along = 3.0 * found.scale * np.eye(6)
    if stage == 2:
        return [(found.center + along[0], found.center + along[1])]
    return [(found.center + along.sum(axis=0), found.center - along.sum(axis=0))]


def test_parts_are_ordinary_private_learners():
    """So that the audit of this package takes them."""
    from taciturn.audit import Pair, distinguish

    part = staged(privacy=BUDGET, stages=(Ranges(4),)).parts[0]
    assert type(part) is Private
    edges = part.learner.bins.edges[0]
    rows = np.zeros((4, 2))
    found = distinguish(
        replace(part, seed=None),
        Pair(rows, np.ones(4), at=1, other=([edges[0] - 1.0] * 2, 1.0)),
        trials=300,
    )
    assert found.verdict == "holds"
    assert found.shift <= found.claimed_mu * 1.001
    assert found.shift > 0.5 * found.claimed_mu
