"""Sums in the place of rows: the same releases to the last bit, in any partition and order, and what is rejected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from kernel.stream.streams import BUDGET, ENTRY, ROWS, STRATEGIES, private, problem, stream
from taciturn import (
    BLT,
    EWOO,
    FTL,
    FTRL,
    GIGA,
    IGD,
    QFTL,
    BudgetExhausted,
    DecayedBLT,
    Gaussian,
    InvalidInput,
    L2Ball,
    Ledger,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    StateConflict,
    Unprovable,
    User,
    block_statistics,
    every,
    pqftl,
    private_sum,
)
from taciturn.kernel.replay import arrays_in, excluded_in, record_of, sums_in
from taciturn.kernel.stream.block_sums import BlockSums
from taciturn.kernel.stream.loop import Definition, SumLoop
from taciturn.kernel.stream.schedule import Timetable
from taciturn.kernel.stream.state import standing_of
from taciturn.methods.staged import Staged
from taciturn.methods.stages import Moments, Ranges, Scales, with_standardised

pytestmark = pytest.mark.privacy

SOME = [
    ("total", "blt"),
    ("total", "root"),
    ("qftl, ball", "blt"),
    ("qftl, one hot, box", "tree"),
    ("qftl, simplex", "restarted"),
    ("qftl, ball", "decayed"),
    ("class sums", "blt"),
    ("class sums, several", "plain tree"),
    ("ftrl, hinge, ball", "blt"),
    ("ftrl, logistic, box", "tree"),
    ("ftrl, softmax, ball", "root"),
    ("ftrl, curved, ball", "restarted"),
    ("ftrl, curved softmax, box", "decayed"),
    ("ftrl, quantile, simplex", "blt"),
    ("ftrl, logistic, space", "blt"),
]
SCHEDULES_OF = {"decayed": ["every 7"]}


def same_releases(one, other):
    """To the last bit."""
    assert len(one) == len(other)
    for name in ("rounds", "noisy", "points", "noise_sd"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


def same_states(one, other):
    """To the last bit, tokens aside."""
    assert (one.t, one.k, one.spent) == (other.t, other.k, other.spent)
    for part in ("exact", "secret", "public"):
        first, second = arrays_in(one)[part], arrays_in(other)[part]
        assert first.keys() == second.keys()
        for name in first:
            assert first[name].tobytes() == second[name].tobytes(), (part, name)
    assert one.point.tobytes() == other.point.tobytes()


def by_sums(made, X, y, cuts, order, state=None, users=None):
    """A stream of sums: every block cut at these rows, its parts in this order; one call for each release."""
    state = made.start() if state is None else state
    total, first = None, state.t
    while state.t < first + y.shape[0]:
        due = made.timetable.due(state.k + 1) or first + len(y)
        end = min(due, first + len(y))
        inside = sorted({state.t, end, *(first + c for c in cuts if state.t < first + c < end)})
        learner = made.learner_at(state)
        admission = None if users is None else made.admit(state, users[state.t - first : end - first])
        left_out = None if admission is None else excluded_in(admission)
        parts = [
            block_statistics(
                learner,
                state.point,
                X[a - first : b - first],
                y[a - first : b - first],
                compiled=made.compiled,
                first=a,
                key=b"key",
                excluded=None if left_out is None else left_out[a - state.t : b - state.t],
            )
            for a, b in pairwise(inside)
        ]
        parts = [parts[i] for i in sorted(range(len(parts)), key=lambda i: order[i % len(order)] * 7 + i)]
        state, releases = made.run_sums(state, parts, admission)
        total = releases if total is None else total + releases
    return state, total


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(SOME),
    st.sampled_from(["every", "every 7", "geometric", "at"]),
    st.booleans(),
    st.lists(st.integers(1, ROWS - 1), max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(0, ROWS),
)
def test_releases_and_states_are_those_of_rows_in_any_partition_and_order(pair, schedule, compiled, cuts, order, begun):
    """Also after a part of the stream that was learnt from rows, and with a block that is not complete at the end."""
    learner, mechanism = pair
    steady = mechanism in ("decayed", "restarted")  # which need releases at equal distances
    made = private(learner, mechanism, "every 7" if steady else schedule, compiled)
    X, y = stream(made.problem, seed=len(cuts), rows=ROWS)
    y = None if made.problem.loss.labels == "none" else y
    labels = np.zeros(ROWS) if y is None else y
    rows = ROWS - order[0] % 3
    state, early = made.run(made.start(), X[:begun], None if y is None else y[:begun])
    expected_state, expected = made.run(made.start(), X[:rows], None if y is None else y[:rows])
    if begun >= rows:
        return
    state, late = by_sums(made, X[begun:rows], labels[begun:rows], cuts, order, state)
    same_releases(early + late, expected)
    same_states(state, expected_state)


@pytest.mark.parametrize("learner", [name for name in ENTRY if "ftrl" not in name])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_blocks_of_a_call_may_be_made_at_once(learner, strategy):
    """Contributions do not depend on released points: one call makes all releases."""
    made = private(learner, strategy, "every 7")
    X, y = stream(made.problem)
    expected = made.run(made.start(), X, None if made.problem.loss.labels == "none" else y)
    parts = [block_statistics(made.learner, None, X[a : a + 7], y[a : a + 7]) for a in range(0, ROWS, 7)]
    state, releases = made.run_sums(made.start(), parts)
    same_releases(releases, expected[1])
    same_states(state, expected[0])


def test_sparse_rows_are_added_up_as_sparse_rows():
    """Entry by entry, as `run` does."""
    for learner in ("class sums", "ftrl, hinge, ball"):
        made = private(learner, "blt", "every 7")
        X, y = stream(made.problem, short=True)
        X[X < 0.2] = 0.0
        expected_state, expected = made.run(made.start(), csr_matrix(X), y)
        state, releases = by_sums(made, csr_matrix(X), y, [3, 11, 12], [1, 0])
        same_releases(releases, expected)
        same_states(state, expected_state)


STAGES = (Ranges(10), Scales(12), Moments(8))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 59), max_size=8), st.sampled_from(["qftl", "ftrl"]), st.booleans())
def test_stages_are_sums_too(cuts, kind, as_one):
    """Ranges, scales and second moments: by the learner of the stage, whose borders end a block."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (60, 2))
    real, sign = 40.0 + 5.0 * X[:, 0], np.sign(X[:, 0] - 3.0)
    space = with_standardised(Problem(Squared() if kind == "qftl" else Logistic(), L2Ball(2.0), 2, label_bound=3.0))
    learner = QFTL(space) if kind == "qftl" else FTRL(space)
    made = Staged(learner, BLT(), every(6), BUDGET, 60, stages=STAGES[:2], seed=3)
    y = real if kind == "qftl" else sign
    expected_state, expected = made.run(made.start(), X, y)
    state, releases = made.start(), None
    while state.t < 60:
        due = min(b for b in (10, 22, *(made.timetable.due(state.k + 1),)) if b > state.t)
        inside = sorted({state.t, due, *(c for c in cuts if state.t < c < due)})
        parts = [block_statistics(made.learner_at(state), state.point, X[a:b], y[a:b]) for a, b in pairwise(inside)]
        state, more = made.run_sums(state, [sum(parts[1:], parts[0])] if as_one else parts[::-1])
        releases = more if releases is None or not len(releases) else releases + more
    same_releases(releases, expected)
    same_states(state, expected_state)


def test_the_second_moment_of_a_stage_is_a_sum():
    """Its integers are those of its rows, however they are cut."""
    space = with_standardised(Problem(Logistic(), L2Ball(2.0), 2, ridge=0.1))
    made = Staged(FTRL(space), BLT(), every(6), BUDGET, 60, stages=STAGES, seed=3)
    X = np.random.default_rng(0).normal(3.0, 2.0, (30, 2))
    y = np.sign(X[:, 0] - 3.0)
    state, _ = made.run(made.start(), X[:22], y[:22])
    learner = made.learner_at(state)
    parts = [block_statistics(learner, None, X[a:b], y[a:b]) for a, b in ((26, 30), (22, 26))]
    by_rows, _ = made.run(state, X[22:30], y[22:30])
    state, _ = made.run_sums(state, parts)
    same_states(state, by_rows)


USERS = ["anna", "bob", "anna", "carl", "anna", "bob", "dora", "anna"] * 5


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, ROWS - 1), max_size=8),
    st.sampled_from(["total", "qftl, ball", "ftrl, curved, ball", "class sums"]),
)
def test_rows_of_users_are_admitted_for_the_stream_and_left_out_of_the_sums(cuts, learner):
    """Releases and records are those of `run(users=...)`."""
    made = Private(ENTRY[learner], BLT(), every(8), BUDGET, ROWS, seed=5, unit=User(rows=3, per_release=2))
    X, y = stream(made.problem)
    expected_state, expected = made.run(made.start(), X, None if made.problem.loss.labels == "none" else y, users=USERS)
    state, releases = by_sums(made, X, y, cuts, [1, 0], users=USERS)
    same_releases(releases, expected)
    same_states(state, expected_state)
    for who in set(USERS):
        assert record_of(state.users, who) == record_of(expected_state.users, who)


def test_sums_without_admission_are_rejected_under_a_users_unit():
    """Nothing in a sum tells how many rows of a user are in it."""
    made = private_sum(1, 1.0, BUDGET, horizon=8, unit=User(rows=1), seed=1)
    state = made.start()
    rows = np.ones((3, 1))
    with pytest.raises(Unprovable, match="how many rows of a user"):
        made.run_sums(state, [block_statistics(made.learner, None, rows)])
    admission = made.admit(state, ["a", "b", "a"])
    with pytest.raises(StateConflict, match="not of the rows that were admitted"):  # the third row is in the sum
        made.run_sums(state, [block_statistics(made.learner, None, [row]) for row in rows], admission)
    with pytest.raises(StateConflict, match="not of the rows that were admitted"):
        made.run_sums(state, [block_statistics(made.learner, None, rows[:1])], admission)
    parts = [
        block_statistics(made.learner, None, [row], excluded=[out])
        for row, out in zip(rows, excluded_in(admission), strict=True)
    ]
    after, _ = made.run_sums(state, parts, admission)
    with pytest.raises(StateConflict, match="admitted at another state"):
        made.run_sums(after, parts, admission)
    plain = private_sum(1, 1.0, BUDGET, horizon=8, seed=1)
    with pytest.raises(InvalidInput, match="every row counts"):
        plain.run_sums(plain.start(), parts)
    with pytest.raises(InvalidInput, match="where the unit is a user"):
        plain.admit(plain.start(), ["a"])


@pytest.mark.parametrize(
    "learner",
    [
        IGD,
        GIGA,
        FTL,
        lambda p: EWOO(p, np.array([[0.5], [-0.5]])),
    ],
)
def test_iterates_are_rejected_with_the_reason(learner):
    """Before a row is read."""
    made = learner(Problem(Logistic(), L2Ball(1.0), dimension=1, ridge=0.1))
    with pytest.raises(Unprovable, match="steps from each example to the next"):
        block_statistics(made, None, [[1.0]], [1.0])
    if not isinstance(made, EWOO):
        stream_of = Private(made, Gaussian(), every(1), BUDGET, horizon=3)
        with pytest.raises(Unprovable, match="steps from each example to the next"):
            stream_of.run_sums(stream_of.start(), [])


def test_learners_of_ones_own_are_rejected():
    """A subclass may add up something else."""

    @dataclass(frozen=True)
    class Twice(QFTL):
        def absorb(self, exact, t, X, y, point):
            return {"sum": 2 * super().absorb(exact, t, X, y, point)["sum"]}

    with pytest.raises(Unprovable, match="does not say that its statistics are sums"):
        block_statistics(Twice(problem(Squared(), L2Ball(1.0))), None, np.ones((1, 3)), [0.5])


def test_a_sum_moves_by_no_more_than_the_certificate_and_the_tight_example_reaches_it():
    """Halve the certificate, or double what a row adds, and one of the two fails."""
    made = private_sum(2, 1.0, BUDGET, horizon=4, schedule=every(4))
    learner = made.learner
    shared = np.array([[0.3, -0.4], [0.0, 1.0]])
    step = learner.from_integers(np.array([1, 1]))["sum"][0]
    one = block_statistics(learner, None, np.vstack([shared, [[5.0, 0.0]]]))
    other = block_statistics(learner, None, [[-7.0, 0.0]]) + block_statistics(learner, None, shared)
    moved = float(np.linalg.norm((sums_in(one) - sums_in(other)) * step))
    bound = float(made.certificate.at(1.0))
    assert bound / 2.0 < moved <= bound
    assert moved == pytest.approx(2.0, abs=1e-6)


def test_sums_of_other_bounds_or_another_point_are_rejected():
    """Rows that were clipped to other bounds would move the sums by more than the certificate says."""

    def of(bound):
        space = Problem(Squared(), L2Ball(1.0), dimension=2, label_bound=1.0, feature_bound=bound)
        return pqftl(space, BUDGET, horizon=4, seed=1)

    with pytest.raises(StateConflict, match="another learner than this stream's"):
        of(1.0).run_sums(of(1.0).start(), [block_statistics(of(2.0).learner, None, [[2.0, 0.0]], [1.0])])
    made = private("ftrl, hinge, ball", "blt", "every 7")
    X, y = stream(made.problem)
    state = made.start()
    ahead = block_statistics(made.learner, state.point, X[7:14], y[7:14])
    state, _ = made.run_sums(state, [block_statistics(made.learner, state.point, X[:7], y[:7])])
    with pytest.raises(StateConflict, match="at another point than the one released last"):
        made.run_sums(state, [ahead])
    with pytest.raises(InvalidInput, match="gradients at the point"):
        block_statistics(made.learner, None, X, y)


def test_what_no_clipped_examples_add_up_to_is_rejected():
    """A sum of one row with the weight of two, of another length or kind, or with a count that is none."""
    made = private_sum(1, 1.0, BUDGET, horizon=4, seed=1)
    good = block_statistics(made.learner, None, [[1.0]])
    assert abs(int(sums_in(good)[0])) <= 2**27

    def sums(**changes):
        fields = {"count": 1, "sums": sums_in(good), "settings": good.settings} | changes
        return BlockSums(**fields)

    with pytest.raises(InvalidInput, match="larger than clipped examples"):
        made.run_sums(made.start(), [sums(sums=sums_in(good) * 3)])
    with pytest.raises(InvalidInput, match="larger than clipped examples"):
        made.run_sums(made.start(), [sums(count=0)])
    with pytest.raises(InvalidInput, match="1 entries"):
        made.run_sums(made.start(), [sums(sums=np.zeros(2, dtype=np.int64))])
    with pytest.raises(InvalidInput, match="64-bit integers"):
        sums(sums=np.array([0.5]))
    with pytest.raises(InvalidInput, match="count"):
        sums(count=-1)
    with pytest.raises(InvalidInput, match="without influence than examples"):
        sums(excluded=2)
    with pytest.raises(InvalidInput, match="a block"):
        made.run_sums(made.start(), [np.zeros(1)])


def test_no_count_or_sum_overflows():
    """2²⁶ examples of the largest units fit; more are rejected before they are added."""
    learner = QFTL(Problem(Squared(), L2Ball(1.0), dimension=1, label_bound=1.0))
    assert learner.certificate.most * learner.most_units <= 2**62
    made = Private(learner, BLT(), every(2**25), Privacy(1.0, 1e-6), horizon=2**26, seed=1)
    one = block_statistics(learner, None, [[1.0]], [1.0])
    full = BlockSums(2**25, sums_in(one) * 2**25, one.settings)
    _, releases = made.run_sums(made.start(), [full, full])
    assert len(releases) == 2
    assert abs(releases[1].noisy[0] / 2.0**26 - 1.0) < 1e-3
    with pytest.raises(BudgetExhausted, match="past the horizon"):
        made.run_sums(made.start(), [BlockSums(2**27, sums_in(one), one.settings)])
    forgetting = Private(learner, DecayedBLT(100), every(8), BUDGET, seed=1)  # its rounds have no end
    with pytest.raises(InvalidInput, match="exact for up to"):
        forgetting.run_sums(forgetting.start(), [BlockSums(2**27, sums_in(one), one.settings)])
    endless = SumLoop(Definition(learner, made.calibrated), learner, Timetable(every(2**28), None), seed=1)
    block = [full, full, BlockSums(1, sums_in(one), one.settings)]
    assert endless(standing_of(made.start()), block[:2])[0].t == 2**26
    with pytest.raises(InvalidInput, match="exact for up to 67,108,864 examples between two releases"):
        endless(standing_of(made.start()), block)
    at, _ = endless(standing_of(made.start()), block[:2])
    with pytest.raises(InvalidInput, match="between two releases"):
        endless(at, block[2:])  # in a later call, too
    largest = BlockSums(2**26, np.full(2, 2**62), one.settings)
    with pytest.raises(InvalidInput, match="too large for 64-bit"):
        largest + largest


def test_sums_that_cross_a_release_or_the_horizon_are_rejected():
    made = private("total", "blt", "every 7")
    X, _ = stream(made.problem)
    with pytest.raises(InvalidInput, match="end at its release, after round 7"):
        made.run_sums(made.start(), [block_statistics(made.learner, None, X[:8])])
    with pytest.raises(BudgetExhausted, match="horizon"):
        made.run_sums(made.start(), [block_statistics(made.learner, None, X[:7])] * 7)


def test_a_part_given_twice_is_noticed_by_its_digest_and_digests_are_secret():
    """Digests cover rows, labels and their place, and depend on the key; they add up in any order."""
    made = private("qftl, ball", "blt", "every 7")
    X, y = stream(made.problem)

    def part(a, b, key=b"key"):
        return block_statistics(made.learner, None, X[a:b], y[a:b], key=key, first=a)

    with pytest.raises(StateConflict, match="given twice"):
        made.run_sums(made.start(), [part(0, 3), part(0, 3)])
    with pytest.raises(StateConflict, match="given twice"):
        part(0, 3) + part(0, 3)
    assert (part(0, 3) + part(3, 5)).digest == (part(3, 5) + part(0, 3)).digest
    assert part(0, 3).digest == part(0, 3).digest
    assert part(0, 3).digest != part(0, 3, b"other").digest
    assert block_statistics(made.learner, None, X[:3], y[:3]).digest == b""
    assert "digest" not in repr(part(0, 3))
    assert str(sums_in(part(0, 3))[0]) not in repr(part(0, 3))


def test_nothing_is_spent_before_commit_and_a_state_is_used_once():
    """As with rows: in a ledger."""
    ledger = Ledger(Privacy(4.0, 1e-5))
    made = private_sum(1, 1.0, BUDGET, horizon=4, schedule=every(2))
    state = made.start(ledger)
    sums = [block_statistics(made.learner, None, [[0.5], [0.25]])]
    prepared = made.prepare_sums(state, sums)
    assert made.is_live(state)
    made.commit(prepared)
    assert made.is_live(prepared.state)
    with pytest.raises(StateConflict):
        made.run_sums(state, sums)


def test_no_rows_change_nothing():
    made = private("qftl, ball", "blt", "every 7")
    state = made.start()
    nothing = block_statistics(made.learner, None, np.empty((0, 3)), np.empty(0))
    after, releases = made.run_sums(state, [nothing])
    assert after is state
    assert len(releases) == 0


def test_a_bad_row_has_no_influence_or_is_told_by_its_number():
    made = private("qftl, ball", "blt", "every 7")
    X, y = stream(made.problem)
    X[4] = np.nan
    with pytest.raises(InvalidInput, match="row 14"):
        block_statistics(made.learner, None, X, y, first=10)
    learner = replace(made.learner, problem=replace(made.problem, on_bad="zero"))
    sums = sums_in(block_statistics(learner, None, X, y))
    X[4], y[4] = 0.0, 0.0
    out = np.arange(ROWS) == 4
    assert (sums_in(block_statistics(learner, None, X, y, excluded=out)) == sums).all()
