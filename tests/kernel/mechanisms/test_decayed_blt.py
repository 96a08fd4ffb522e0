"""Sums that forget: constant noise, influence that ends exactly, and costs that do not grow with the stream."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ellipk

from kernel.mechanisms.strategies import encoded_by_loops
from taciturn import (
    BLT,
    DecayedBLT,
    Hinge,
    InvalidInput,
    L2Ball,
    Privacy,
    Private,
    Problem,
    Squared,
    StateConflict,
    Unprovable,
    User,
    every,
    geometric,
    pftrl,
    pqftl,
    private_sum,
)
from taciturn.audit import distinguish, tight_pair, tight_private
from taciturn.audit.statistics import points_not_decided
from taciturn.audit.verdict import game_of
from taciturn.kernel.accounting.unit import EXAMPLE, ONCE, Participation
from taciturn.kernel.learners.exact_sums import rounded
from taciturn.kernel.mechanisms.blt_pass import Cut
from taciturn.kernel.mechanisms.prefix_sum_pass import SUMS
from taciturn.kernel.mechanisms.strategy import matrices, toeplitz_sensitivity
from taciturn.kernel.replay import buffers_of

BUDGET = Privacy(10.0, 1e-6)
FINE = 2.0**-20


def decayed_sum(forget=40, rounds=2, size=1, **more) -> Private:
    return private_sum(size, 1.0, more.pop("privacy", BUDGET), forget=forget, schedule=every(rounds), **more)


@pytest.mark.parametrize("window", [10, 100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize(("buffers", "within"), [(4, 0.01), (5, 0.003)])
def test_the_constant_is_that_of_the_square_root(window, buffers, within):
    """`(2/pi)·K(β)`, which the decayed square root has; at a million times the window the noise has not grown."""
    coder = DecayedBLT(window, buffers).coder(None)
    least = 2.0 / math.pi * float(ellipk(coder.decay**2))
    early, late = coder.sensitivity * coder.error(np.array([100.0 * window, 1e6 * window]))
    assert least * (1.0 - 1e-6) <= late <= least * (1.0 + within)
    assert early == pytest.approx(late, rel=1e-9)


@given(window=st.integers(1, 8), buffers=st.integers(1, 4), n=st.integers(1, 40))
@settings(deadline=None, max_examples=20)
def test_its_matrices_factor_the_decayed_sum(window, buffers, n):
    """B·C has the powers of the decay, and the closed forms are the norms of B and bound those of C."""
    coder = DecayedBLT(window, buffers).coder(n)
    B, C = matrices(coder, n)
    powers = np.tril(coder.decay ** np.subtract.outer(np.arange(n), np.arange(n)).clip(0))
    np.testing.assert_allclose(B @ C, powers, atol=1e-10)
    np.testing.assert_allclose(coder.error(np.arange(1, n + 1)), np.linalg.norm(B, axis=1), rtol=1e-9)
    assert np.max(np.linalg.norm(C, axis=0)) <= coder.sensitivity


@pytest.mark.parametrize("unit", [Participation(3, 1, 2), Participation(5, 2, 1), Participation(4, 1, 7)])
def test_the_worst_pattern_of_a_user_is_that_of_a_long_stream(unit):
    """Of 4,000 rows, which is much longer than the window: to 1e-9."""
    coder = DecayedBLT(20, 3).coder_for(None, unit)
    th, _, om, _ = coder.arrays
    column = np.concatenate([[1.0], np.vander(th, 3_999, increasing=True).T @ om])
    assert coder.sensitivity_to(unit) == pytest.approx(toeplitz_sensitivity(column, unit), rel=1e-9)
    assert coder.sensitivity_to(unit) >= toeplitz_sensitivity(column, unit) * (1.0 - 1e-13)


# Influence ends.


def encoded(coder, rows, compiled):
    """All encoded rows, by the definition or by the compiled loop."""
    secret = coder.start(rows.shape[1])[0]
    if compiled:
        return encoded_by_loops(coder, rows)
    out = []
    for k, row in enumerate(rows, start=1):
        secret, more = coder.encode(secret, row, k)
        out.append(more[0])
    return np.array(out)


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("at", [0, 1, 95, 96, 97, 127, 128, 200, 223, 224, 255, 256])
def test_a_row_has_no_influence_once_its_life_is_over(at, compiled):
    """With a window of one release, L = 32: to the last bit, and for no longer than `life` rows, from any row on.

    Among zeros nothing hides 1e-80 of a row; among other rows it could be rounded away.
    """
    coder = DecayedBLT(1, 2).coder(None)
    assert (coder.kept, coder.period, coder.life) == (32, 128, 160)
    ends = at // 128 * 128 + (128 if at % 128 < 96 else 256)  # of its own period, or of the next
    assert ends <= at + coder.life
    for others in (0.0, 1.0):
        rng = np.random.default_rng(at)
        rows = others * rng.uniform(-1.0, 1.0, (at + 400, 3))
        other = rows.copy()
        other[at] = rng.uniform(-1.0, 1.0, 3)
        here, there = (encoded(coder, each, compiled) for each in (rows, other))
        differ = np.flatnonzero((here != there).any(axis=1))
        assert differ[0] == at
        assert differ[-1] < ends
        assert others or differ[-1] == ends - 1


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [False, True])
@given(seed=st.integers(0, 2**32 - 1), large=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(deadline=None, max_examples=5)
def test_encoding_is_linear_and_moves_by_the_powers_of_its_decays(compiled, seed, large):
    """A window that depended on rows would not be linear in them; one row moves later ones by `Σ om_i·th_i^(a-1)`.

    Over a period and more. Rows of one stream are much larger than those of the other, or much smaller.
    """
    coder = DecayedBLT(1, 2).coder(None)
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1.0, 1.0, (2, 200, 2)) * np.array([1.0, large])[:, None, None]
    one, other, both = (encoded(coder, each, compiled) for each in (*rows, rows.sum(axis=0)))
    np.testing.assert_allclose(both, one + other, atol=1e-12 * max(1.0, large))
    th, _, om, _ = coder.arrays
    single = np.zeros((90, 1))
    single[0] = 1.0
    column = np.concatenate([[1.0], np.vander(th, 89, increasing=True).T @ om])
    np.testing.assert_allclose(encoded(coder, single, compiled)[:, 0], column, rtol=1e-10)
    assert float(np.linalg.norm(column)) <= coder.sensitivity
    assert float(np.linalg.norm(column)) > 0.999 * coder.sensitivity


def test_what_is_dropped_weighs_nothing():
    """Decoded without noise over several periods, the sums are the decayed sums to 1e-12 of the largest."""
    coder = DecayedBLT(3, 3).coder(None)
    rows = np.random.default_rng(2).uniform(-1.0, 1.0, (3 * coder.period, 2))
    exact = Cut(np.zeros(rows.shape, dtype=np.int64), np.full(len(rows), 2.0**-400), np.full(len(rows), 1e300))
    _, sums = SUMS[type(coder)](coder, coder.start(2), rows, 1, exact)
    expected = np.zeros_like(rows)
    total = np.zeros(2)
    for k, row in enumerate(rows):
        expected[k] = total = coder.decay * total + row
    np.testing.assert_allclose(sums, expected, atol=1e-12)


# Costs.


@pytest.mark.privacy
@pytest.mark.parametrize("unit", [EXAMPLE, User(3, 1, 5)])
@pytest.mark.parametrize("first", [0, 3_000, 12_287])
def test_two_streams_are_as_far_apart_as_is_claimed(unit, first):
    """All encoded integers of two streams that differ in the rows of a unit: more than .98 of mu, and no more than mu.

    From the first row on, in the middle of a period, and at its end.
    """
    private = decayed_sum(forget=96, rounds=1, unit=unit)
    calibrated, coder = private.calibrated, private.calibrated.coder
    assert coder.period == 12_288
    places = first + np.arange(unit.participation.rows) * unit.participation.apart
    rows = rounded(np.random.default_rng(first).uniform(-1.0, 1.0, (places[-1] + coder.life + 50, 1)), 1.0)
    worlds = [rows, rows.copy()]
    worlds[0][places], worlds[1][places] = 1.0, -1.0
    integers = [np.floor(encoded(coder, each, True) / calibrated.step(1) + 0.5) for each in worlds]
    apart = float(np.linalg.norm((integers[1] - integers[0]) * calibrated.step(1))) / calibrated.sd
    claimed = private.guarantee.delivered.mu
    assert 0.98 * claimed < apart <= claimed


@pytest.mark.privacy
@pytest.mark.parametrize("make", [decayed_sum, lambda **more: decayed_sum(40, 2, unit=User(4, 1, 3), **more)])
def test_costs_are_those_of_a_life_whatever_the_length(make):
    """With a horizon of 100 or none the stream costs the same; sampler and rounding are charged for each row's life."""
    short, endless = make(horizon=100), make()
    assert short.guarantee.delivered == endless.guarantee.delivered
    calibrated, unit = endless.calibrated, endless.unit
    rows = calibrated.coder.life * unit.participation.rows
    from taciturn.kernel.noise.sampling import sampling_cost

    assert endless.guarantee.delivered.extra_epsilon == sampling_cost(rows * calibrated.size, 1.0).extra_epsilon
    sensitivity = calibrated.coder.sensitivity_to(unit.participation)
    moved = float(endless.learner.certificate.at([2.0])[0]) * sensitivity
    errors = 2.0 * math.sqrt(rows) * calibrated.coder.rounding_error * endless.learner.certificate.norm * 2.0
    step = math.sqrt(rows * calibrated.size) * calibrated.step(1)
    assert (moved + errors + step) / calibrated.sd <= endless.guarantee.delivered.mu <= 1.01 * moved / calibrated.sd


@pytest.mark.privacy
@pytest.mark.parametrize("algorithm", ["pqftl", "pftrl", "class_sums", "private_sum"])
def test_an_audit_reaches_the_claim_and_refutes_nothing(algorithm):
    """Points follow from what is remembered, which an audit knows; a true claim is refuted with probability 1e-7."""
    private = replace(tight_private(algorithm, Privacy(1.0, 1e-6), 30), mechanism=DecayedBLT(4), schedule=every(2))
    pair = tight_pair(private)
    assert 0.999 < game_of(private, pair).apart / private.guarantee.delivered.mu <= 1.0
    found = distinguish(private, pair, trials=300, secret_trials=20, error=1e-7)
    assert (found.verdict, found.violations) == ("holds", ())


@pytest.mark.privacy
@pytest.mark.parametrize("compiled", [False, True])
def test_an_audit_notices_points_of_other_numbers_of_examples(compiled, monkeypatch):
    """The planted fault: the ridge of a point grows with all examples, and not with those that are remembered."""
    problem = Problem(Squared(), L2Ball(5.0), 1, label_bound=1.0, ridge=0.5)
    honest = pqftl(problem, BUDGET, 60, forget=4, schedule=every(2), seed=1)
    planted = replace(honest, compiled=compiled)
    rows = np.ones((60, 1)), np.ones(60)
    assert points_not_decided(honest, [planted.run(planted.start(), *rows)[1]]) == []
    monkeypatch.setattr(planted.calibrated, "examples_of", lambda k, rounds: rounds)
    assert points_not_decided(honest, [planted.run(planted.start(), *rows)[1]]) != []


def test_a_stream_of_a_billion_rounds_goes_on():
    """From round 1e9 on, with states of the size they had at the start, and noise that has not grown."""
    private = decayed_sum(forget=5_000, rounds=100, size=2, seed=1)
    state = private.start()
    far = replace(state, t=10**9, k=10**7)
    rows = np.random.default_rng(3).uniform(-0.5, 0.5, (1_000, 2))
    first, shown = private.run(state, rows)
    later, releases = private.run(far, rows)
    assert (later.t, later.k) == (10**9 + 1_000, 10**7 + 10)
    assert [array.shape for array in buffers_of(later).values()] == [
        array.shape for array in buffers_of(first).values()
    ]
    assert releases.noise_sd[-1] == pytest.approx(private.calibrated.noise_sd(10**9), rel=1e-12)
    assert shown.noise_sd[0] < releases.noise_sd[0] < 1.001 * private.calibrated.noise_sd(500)
    assert later.spent == first.spent


@pytest.mark.slow
def test_a_stream_goes_on_beyond_two_to_the_24_rounds():
    """Round by round, in constant memory; a finite BLT for so many rounds has more noise."""
    private = decayed_sum(forget=1_000, rounds=16, seed=1)
    state, rows = private.start(), np.zeros((2**20, 1))
    for _ in range(17):
        state, releases = private.run(state, rows)
    assert state.t > 2**24
    assert float(np.std(releases.noisy)) == pytest.approx(private.calibrated.noise_sd(2**20), rel=0.1)
    longer = private_sum(1, 1.0, BUDGET, 2**20, strategy=BLT(5), schedule=every(16))
    assert private.calibrated.noise_sd(2**20) < longer.calibrated.noise_sd(2**16)


# What learners make of it.


def test_decisions_are_made_by_the_number_of_examples_that_are_remembered():
    """A ridge grows with them, and stops growing; the effective number is that of the weights."""
    problem = Problem(Squared(), L2Ball(5.0), 2, label_bound=1.0, ridge=0.5)
    private = pqftl(problem, Privacy(1.0, 1e-6), forget=100, schedule=every(10), seed=1)
    effective = private.calibrated.effective(np.array([1, 2, 10**6]))
    decay = math.exp(-0.1)
    np.testing.assert_allclose(effective, [10.0, 10.0 * (1 + decay), 10.0 / (1 - decay)], rtol=1e-12)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3_000, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    _, releases = private.run(private.start(), X, X[:, 0])
    last = releases[-1]
    by_hand = private.learner.decide(float(private.calibrated.effective(300)), last.noisy, last.noise_sd)
    np.testing.assert_allclose(last.point, by_hand, atol=1e-9)


@pytest.mark.parametrize("recipe", [pqftl, pftrl])
def test_a_model_that_forgets_follows_a_concept_that_turns(recipe):
    """After the turn it is right; sums of squared losses that do not forget are wrong for the rest of the stream.

    (FTRL takes gradients at released points, so that it turns round by itself, more slowly.)
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.sign(np.where(np.arange(20_000) < 10_000, X[:, 0], -X[:, 0]))
    loss = Squared() if recipe is pqftl else Hinge()
    problem = Problem(loss, L2Ball(5.0), 3, label_bound=1.0)
    right = {}
    for name, more in {"forgets": {"forget": 1_000}, "does not": {"horizon": 20_000}}.items():
        private = recipe(problem, Privacy(5.0, 1e-6), schedule=every(20), seed=6, **more)
        _, releases = private.run(private.start(), X, y)
        right[name] = float(np.mean(np.sign(X[15_000:] @ releases.points[749]) == y[15_000:]))
    assert right["forgets"] > 0.9
    assert recipe is pftrl or right["does not"] < 0.65


def test_a_stream_resumes_within_any_stretch():
    """States out of bytes go on as the stream does, before, in and after the rows in which both sets are kept."""
    private = decayed_sum(forget=1, rounds=1, size=2, seed=7)
    rows = np.random.default_rng(8).uniform(-0.7, 0.7, (300, 2))
    _, expected = private.run(private.start(), rows)
    state, points = private.start(), []
    for start, end in ((0, 50), (50, 100), (100, 128), (128, 250), (250, 300)):
        state, releases = private.run(private.load(state.to_bytes()), rows[start:end])
        points.append(releases.points)
    np.testing.assert_allclose(np.concatenate(points), expected.points, atol=1e-9)


def test_other_numbers_in_a_state_are_rejected():
    private = decayed_sum(seed=1)
    state = private.start()
    for spoil in (lambda a: a * 1.5, lambda a: a[:3], lambda a: -a):
        numbers = {**state.numbers, "mechanism.coder.decays": spoil(state.numbers["mechanism.coder.decays"])}
        with pytest.raises(StateConflict, match="damaged"):
            private.resumed(replace(state, numbers=numbers))


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: decayed_sum(forget=0), InvalidInput, "forget must be"),
        (lambda: decayed_sum(forget=True), InvalidInput, "State the window"),
        (lambda: decayed_sum(forget=2**28, rounds=2**27), Unprovable, "134,217,728. Publish more often"),
        (lambda: decayed_sum(forget=10, rounds=11), InvalidInput, "publish more often"),
        (lambda: decayed_sum(forget=10**9, rounds=1), InvalidInput, "too many: rounding errors .* less often"),
        (lambda: private_sum(1, 1.0, BUDGET, forget=10, schedule=geometric(1.1)), InvalidInput, "equal distances"),
        (lambda: private_sum(1, 1.0, BUDGET, forget=10, strategy=BLT()), InvalidInput, "Leave strategy= out"),
        (lambda: DecayedBLT(10, 11), InvalidInput, "at most 10"),
        (lambda: decayed_sum(calibration="paper-printed", allow_broken=True), InvalidInput, "calibration='exact'"),
    ],
)
def test_what_is_not_proven_is_rejected_with_a_remedy(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize("horizon", [150, 200, 50, 199])
def test_a_last_block_that_is_shorter_stands_for_its_own_examples(horizon):
    """Of releases after every 100 examples and at the horizon: the sum of rows of 1 is their effective number."""
    private = private_sum(1, 1.0, BUDGET, horizon, forget=300, schedule=every(100), seed=1)
    calibrated = private.calibrated
    count = private.timetable.count
    rows = np.diff(private.timetable.rounds, prepend=0).astype(float)
    expected = float(sum(rows * calibrated.coder.decay ** np.arange(count - 1, -1, -1)))
    assert float(calibrated.effective(count)) == pytest.approx(expected, rel=1e-12)
    releases = private.run(private.start(), np.ones((horizon, 1)))[1]
    noise = private.run(private.start(), np.zeros((horizon, 1)))[1]
    assert float(releases.noisy[-1, 0] - noise.noisy[-1, 0]) == pytest.approx(expected, abs=1e-3)


def test_a_horizon_may_exceed_what_sums_are_exact_for_as_blocks_may_not():
    """The certificate is about the examples between two releases: 2²⁶ at most, whatever the horizon is."""
    short, long = (decayed_sum(horizon=horizon, unit=User(3), seed=1) for horizon in (10**3, 10**12))
    assert short.guarantee.delivered == long.guarantee.delivered
    state = replace(long.start(), t=2**30, k=2**29)
    assert long.run(state, [[1.0]] * 2, users=["anna", "bob"])[0].t == 2**30 + 2


@pytest.mark.privacy
@pytest.mark.parametrize("rounds", [10, 11])
def test_a_block_is_no_longer_than_the_certificate_is_proven_for(rounds):
    """Whatever the bound beyond `most` says: a learner of one's own may state none there."""
    private = decayed_sum()
    certificate = replace(private.learner.certificate, most=10, bound=np.ones_like)
    timetable = decayed_sum(rounds=rounds).timetable
    if rounds == 10:
        DecayedBLT(40).calibrate(certificate, timetable, 1, BUDGET, "exact")
        return
    with pytest.raises(Unprovable, match="10 examples between two releases, and there are 11"):
        DecayedBLT(40).calibrate(certificate, timetable, 1, BUDGET, "exact")


def test_a_certificate_for_a_stream_of_stated_length_is_rejected():
    """A learner whose bound depends on the number of all examples cannot be part of a stream that never ends."""
    private = decayed_sum()
    certificate = replace(private.learner.certificate, steady=False)
    with pytest.raises(Unprovable, match="steady=True"):
        DecayedBLT(40).calibrate(certificate, private.timetable, 1, BUDGET, "exact")
    assert private.learner.certificate.participation == ONCE
