"""Iterates that forget: a tight certificate, constant noise that pays for all releases, and an end that is stated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from taciturn import (
    IGD,
    BudgetExhausted,
    Gaussian,
    Hinge,
    InvalidInput,
    L2Ball,
    Linear,
    Logistic,
    Privacy,
    Private,
    Problem,
    Squared,
    SteadyGaussian,
    SteadyIGD,
    Unprovable,
    User,
    WholeSpace,
    every,
    geometric,
    pigd,
)
from taciturn.audit import Pair, distinguish
from taciturn.audit.verdict import game_of

BUDGET = Privacy(1.0, 1e-6)
LINE = Problem(Linear(), WholeSpace(), 1, label_bound=1.0, ridge=0.1)


def steady(problem=LINE, forget=5, rounds=2, horizon=60, **more) -> Private:
    return pigd(problem, more.pop("privacy", BUDGET), horizon, forget=forget, schedule=every(rounds), **more)


def iterates(learner, X, y):
    """After each example."""
    exact, made = learner.start(), []
    for t, (v, label) in enumerate(zip(X, y, strict=True)):
        exact = learner.absorb(exact, t, v[None], np.array([label]), np.zeros(learner.problem.size))
        made.append(exact["x"])
    return np.array(made)


@pytest.mark.privacy
@pytest.mark.parametrize("forget", [1, 7, 100])
@pytest.mark.parametrize("place", [0, 30])
def test_the_certificate_is_reached_by_linear_losses(forget, place):
    """Wherever the example lies: an example moves iterates by what is stated, at once and later, to 1e-9 of it."""
    learner = SteadyIGD(LINE, forget)
    certificate = learner.certificate
    X, y = np.ones((60, 1)), np.ones(60)
    other = y.copy()
    other[place] = -1.0
    apart = np.linalg.norm(iterates(learner, X, y) - iterates(learner, X, other), axis=1)
    claimed = float(certificate.at(1.0)) * certificate.fade ** np.arange(60 - place)
    assert (apart[:place] == 0.0).all()
    assert (apart[place:] <= claimed + certificate.floor).all()
    np.testing.assert_allclose(apart[place:], claimed, rtol=1e-9, atol=2.0 * certificate.floor)


@pytest.mark.privacy
@pytest.mark.parametrize(
    "problem",
    [
        Problem(Hinge(), L2Ball(1.0), 3, ridge=0.2),
        Problem(Logistic(), WholeSpace(), 3, ridge=0.5),
        Problem(Squared(), L2Ball(0.5), 3, label_bound=1.0, ridge=0.1),
    ],
    ids=["hinge", "logistic", "squared"],
)
def test_no_pair_exceeds_the_certificate(problem):
    """Random streams and replacements, with active constraints and without."""
    learner = SteadyIGD(problem, 10)
    certificate, rng, worst = learner.certificate, np.random.default_rng(1), 0.0
    for _ in range(20):
        X, y = problem.clip(rng.normal(size=(40, 3)) * 3.0, np.sign(rng.normal(size=40)))
        V, z = X.copy(), y.copy()
        V[5], z[5] = (-X[5], y[5]) if rng.uniform() < 0.5 else (X[5], -y[5])
        apart = np.linalg.norm(iterates(learner, X, y) - iterates(learner, V, z), axis=1)[5:]
        allowed = float(certificate.at(1.0)) * certificate.fade ** np.arange(35) + certificate.floor
        assert (apart <= allowed).all()
        worst = max(worst, float(np.max(apart / allowed)))
    assert worst > 0.05


@pytest.mark.privacy
@pytest.mark.parametrize("unit", [User(1), User(3)])
def test_two_streams_are_as_far_apart_as_is_claimed(unit):
    """All releases together, of a stream much longer than its window: more than .98 of mu, and no more than mu."""
    private = steady(forget=5, rounds=2, horizon=400, unit=unit)
    X, y = np.ones((400, 1)), np.ones(400)
    other = y.copy()
    other[101 : 101 + unit.rows] = -1.0  # at the end of a block, so that it is released at once
    worlds = [iterates(private.learner, X, each)[1::2] for each in (y, other)]
    integers = [np.floor(world / private.calibrated.levels(1)[1] + 0.5) for world in worlds]
    apart = np.linalg.norm((integers[0] - integers[1]) * private.calibrated.levels(1)[1]) / private.calibrated.sd
    claimed = private.guarantee.delivered.mu
    assert apart <= claimed
    assert apart > (0.98 if unit.rows == 1 else 0.5) * claimed


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("schedule", "horizon", "place"), [(every(20), 101, 99), (every(20), 119, 99), (geometric(1.2), 30, 0)]
)
def test_releases_at_other_distances_are_charged(schedule, horizon, place):
    """The one at the horizon may come an example after the one before; others are an example apart at first."""
    private = pigd(LINE, BUDGET, horizon, forget=5, schedule=schedule)
    X, y = np.ones((horizon, 1)), np.ones(horizon)
    other = y.copy()
    other[place] = -1.0
    worlds = [iterates(private.learner, X, each)[private.timetable.rounds - 1] for each in (y, other)]
    apart = float(np.linalg.norm(worlds[0] - worlds[1])) / private.calibrated.sd
    assert 0.6 * private.guarantee.delivered.mu < apart <= private.guarantee.delivered.mu


@pytest.mark.privacy
@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "wait", "window"), [(100, 1, 5), (400, 20, 40)])
def test_the_audited_mu_is_the_claimed_one(rounds, wait, window):
    """Within 3 %: 14,000 trials measure standard deviations to 3 % at an error of 1e-6 (`audit.distinguish`)."""
    private = steady(forget=window, rounds=wait, horizon=rounds)
    labels = np.where(np.arange(rounds) % 2 == 0, -1.0, 1.0)
    pair = Pair(np.ones((rounds, 1)), labels, at=rounds // 2 - 1, other=([1.0], -1.0))  # before a release
    assert 0.98 < game_of(private, pair).apart / private.guarantee.delivered.mu <= 1.0
    found = distinguish(private, pair, trials=14_000, secret_trials=0)
    assert found.verdict == "holds"
    assert found.mu == pytest.approx(private.guarantee.delivered.mu, rel=0.03)


@pytest.mark.privacy
def test_costs_and_noise_are_constant_and_the_end_is_stated():
    """Rounding errors and sampler are paid for up to the last release, and not beyond."""
    private = steady(horizon=None, forget=100, rounds=10)
    calibrated = private.calibrated
    assert calibrated.cost(1) == calibrated.cost(10**9) == private.guarantee.delivered
    assert private.guarantee.epsilon <= 1.0
    assert private.last_round == calibrated.releases * 10
    certificate = private.certificate
    fading = (float(certificate.at(1.0)) - certificate.floor) / math.sqrt(1.0 - certificate.fade**20)
    rounding = math.sqrt(calibrated.releases) * (certificate.floor + calibrated.levels(1)[1])
    assert (fading + rounding) / calibrated.sd <= private.guarantee.delivered.mu <= 1.01 * fading / calibrated.sd
    assert private.guarantee.delivered.extra_epsilon <= 1e-3
    calibrated.noise(None, calibrated.releases, 1)
    with pytest.raises(BudgetExhausted, match="rounding errors do not fade"):
        calibrated.noise(None, calibrated.releases + 1, 1)


def test_a_long_window_ends_earlier():
    """The floor grows with the square of the window, measured by what one example moves."""
    ends = [steady(horizon=None, forget=window, rounds=window // 10).calibrated.releases for window in (10**4, 10**5)]
    assert ends[0] > 10**6
    assert 10 < ends[1] < 10**4


def test_it_follows_a_concept_that_turns():
    """With noise, within a few windows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6_000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.sign(np.where(np.arange(6_000) < 3_000, X[:, 0], -X[:, 0]))
    problem = Problem(Hinge(), L2Ball(5.0), 3, ridge=0.05)
    private = pigd(problem, Privacy(8.0, 1e-6), forget=500, schedule=every(250), seed=6)
    releases = private.run(private.start(), X, y)[1]
    assert float(np.mean(np.sign(X[5_000:] @ releases.points[19]) == y[5_000:])) > 0.85


def test_a_stream_resumes():
    private = steady(Problem(Hinge(), L2Ball(1.0), 2, ridge=0.2), horizon=None, seed=1)
    X, y = np.random.default_rng(8).normal(size=(50, 2)), np.ones(50)
    expected = private.run(private.start(), X, y)[1].points
    state, points = private.start(), []
    for start, end in ((0, 7), (7, 30), (30, 50)):
        state, releases = private.run(private.load(state.to_bytes()), X[start:end], y[start:end])
        points.append(releases.points)
    np.testing.assert_array_equal(np.concatenate(points), expected)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: steady(forget=0), InvalidInput, "forget must be"),
        (lambda: steady(forget=True), InvalidInput, "State the window"),
        (lambda: steady(replace(LINE, ridge=0.0)), Unprovable, "ridge"),
        (lambda: pigd(LINE, BUDGET, 9, forget=5, shape="S"), InvalidInput, "Leave shape= out"),
        (lambda: Private(SteadyIGD(LINE), Gaussian(), every(1), BUDGET, 9), Unprovable, "Use SteadyGaussian"),
        (lambda: Private(IGD(LINE), SteadyGaussian(), every(1), BUDGET, 9), Unprovable, "SteadyIGD"),
        (lambda: steady(calibration="paper-printed", allow_broken=True), InvalidInput, "calibration='exact'"),
        (lambda: steady(forget=10**8, horizon=None, rounds=1), InvalidInput, "a shorter window"),
    ],
)
def test_what_is_not_proven_is_rejected_with_a_remedy(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.privacy
def test_a_certificate_that_does_not_fade_is_rejected():
    private = steady()
    with pytest.raises(Unprovable, match="a factor below 1"):
        SteadyGaussian().calibrate(replace(private.certificate, fade=1.0), private.timetable, 1, BUDGET, "exact")
