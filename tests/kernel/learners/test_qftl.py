"""Follow the leader on private sums: the joint sensitivity, the point it decides on, and that it learns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from kernel.mechanisms.strategies import STRATEGIES
from taciturn import (
    FTL,
    QFTL,
    Box,
    Huber,
    InvalidInput,
    L2Ball,
    Linear,
    OneHot,
    Privacy,
    Problem,
    Simplex,
    Squared,
    Unprovable,
    WholeSpace,
    every,
    geometric,
    pqftl,
)
from taciturn.kernel.learners import qftl, qftl_pass
from taciturn.kernel.problem.svec import packed, unpacked

NOWHERE = np.zeros(0)


def problem(R: float = 1.0, R_y: float = 1.0, **settings) -> Problem:
    return Problem(Squared(), settings.pop("domain", L2Ball(1.0)), 2, R, R_y, **settings)


def contribution(learner: QFTL, features, label: float) -> np.ndarray:
    V, y = learner.problem.clip([features], [label])
    return learner.statistic(learner.absorb(learner.start(), 0, V, y, NOWHERE), 1)[1]


# The sensitivity.


def apart(learner: QFTL, raw: np.ndarray) -> float:
    """How far apart the contributions of two examples lie, or of one and of none; entries beyond bounds are cut."""
    one = contribution(learner, raw[:2], raw[4])
    other = contribution(learner, raw[2:4], raw[5]) if learner.problem.neighbours == "replace" else 0.0
    return float(np.linalg.norm(one - other))


def search(learner: QFTL, starts: int = 4) -> float:
    """The largest share of the certificate that a pair uses, by climbing from long vectors and extreme labels."""
    rng, best = np.random.default_rng(1), 0.0
    R, R_y = 3.0 * learner.problem.feature_bound, learner.problem.label_bound
    for _ in range(starts):
        raw = np.concatenate([R * rng.normal(size=4), R_y * rng.choice([-2.0, 2.0]) * np.array([1.0, -1.0])])
        result = minimize(lambda x: -apart(learner, x), raw, method="Nelder-Mead", options={"maxfev": 120})
        best = max(best, -float(result.fun))
    return best / float(learner.certificate.at(1))


SETTINGS = {
    "equal bounds": ({}, 1.0),
    "at the corner": ({"R": 2.0, "R_y": 0.5}, math.sqrt(2.0) * 4.0),
    "below it": ({"R": 2.0, "R_y": 0.5}, 3.0),
    "above it": ({"R": 2.0, "R_y": 0.5}, 9.0),
    "light labels": ({"R": 0.5, "R_y": 3.0}, 0.05),
    "heavy labels": ({"R": 0.5, "R_y": 3.0}, 2.0),
    "chosen weight": ({"R": 0.5, "R_y": 3.0}, None),
    "intercept": ({"R": 1.0, "R_y": 1.0, "intercept": 0.6}, 1.0),
}


@pytest.mark.privacy
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("name", list(SETTINGS))
def test_the_joint_sensitivity_is_reached_and_not_passed(name, neighbours):
    """By a pair that a search finds, on either side of `w·R_y = sqrt(2)·R`."""
    bounds, weight = SETTINGS[name]
    learner = QFTL(problem(**bounds, neighbours=neighbours), weight=weight)
    assert 0.99 < search(learner) <= 1.0


@pytest.mark.privacy
@pytest.mark.parametrize(
    ("w", "delta"), [(1.0, 4.5**0.5), (0.5, (2.0 + 0.5 + 0.03125) ** 0.5), (2.0, 4.0), (math.sqrt(2.0), 8.0**0.5)]
)
def test_the_stated_formula(w, delta):
    """`2R⁴ + 2w²R²R_y² + ½w⁴R_y⁴`, or `4w²R²R_y²`; it scales as `R⁴`."""
    certificate = QFTL(problem(), weight=w).certificate
    assert float(certificate.at(1)) == pytest.approx(delta, rel=1e-7)
    assert float(QFTL(problem(3.0, 3.0), weight=w).certificate.at(1)) == pytest.approx(9.0 * delta, rel=1e-7)
    assert certificate.kind == "l2/entry"
    assert math.isinf(certificate.at(2.0**26 + 1))


FAULTS: dict[str, Callable[[QFTL, float], float]] = {
    "R for the second sum": lambda self, w: math.hypot(1.0, w),
    "half": lambda self, w: math.sqrt(4.5) / 2.0,
    "zero-out for replace": lambda self, w: math.sqrt(2.0),
}


@pytest.mark.privacy
@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_lesser_sensitivity_is_caught(fault, monkeypatch):
    """The paper's bound on `y v`, a forgotten neighbour, the wrong relation."""
    monkeypatch.setattr(QFTL, "_moved", FAULTS[fault])
    assert search(QFTL(problem(), weight=1.0), starts=2) > 1.2


@pytest.mark.privacy
def test_a_forgotten_intercept_is_caught(monkeypatch):
    """It is part of the norm."""
    monkeypatch.setattr(Problem, "norm_bound", property(lambda self: self.feature_bound))
    monkeypatch.setattr(QFTL, "_magnitude", 9.0)
    assert search(QFTL(problem(intercept=0.6), weight=1.0), starts=2) > 1.2


@pytest.mark.privacy
@settings(max_examples=60)
@given(features=arrays(np.float64, 2, elements=st.floats(-5.0, 5.0)), label=st.floats(-5.0, 5.0), w=st.floats(0.1, 9.0))
def test_a_contribution_is_what_it_says(features, label, w):
    """`(svec(v vᵀ), w·y v)` up to the cutting of features and labels to 2⁻¹⁷ of 1 and 2, within its magnitude."""
    learner = QFTL(problem(1.5, 2.0), weight=w)
    V, y = learner.problem.clip([features], [label])
    result = contribution(learner, features, label)
    assert result[:3] == pytest.approx(packed(np.outer(V[0], V[0])), abs=2.0**1.5 * 1.5 * 2.0**-17)
    assert result[3:] == pytest.approx(w * y[0] * V[0], abs=w * (2.0 * 2.0**-17 + 1.5 * 2.0**-16))
    assert (np.abs(result[3:]) <= np.abs(w * y[0] * V[0]) * (1.0 + 1e-12)).all()  # cut towards zero
    assert np.max(np.abs(result)) <= learner.certificate.magnitude * (1.0 + 1e-7)
    assert len(result) == learner.statistic_size == 5


# The point.


@settings(max_examples=150)
@given(
    noisy=arrays(np.float64, 5, elements=st.floats(-1e9, 1e9)),
    sd=st.sampled_from([0.0, 1e-9, 1.0, 1e6]),
    t=st.integers(1, 10**6),
    ridge=st.sampled_from([0.0, 0.1]),
    domain=st.sampled_from([L2Ball(0.7), Box(-1.0, 2.0), Simplex(2.0)]),
)
def test_points_are_finite_and_in_the_domain(noisy, sd, t, ridge, domain):
    """Whatever the noise made of the sums, with neither ridge too."""
    point = QFTL(problem(domain=domain, ridge=ridge), weight=1.0).decide(t, noisy, sd)
    assert np.isfinite(point).all()
    assert domain.contains(point)


@settings(max_examples=12)
@given(
    exponent=st.floats(-3.0, 1.4),
    name=st.sampled_from(list(STRATEGIES)),
    ridge=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 999),
)
def test_every_round_s_point_is_in_the_domain(exponent, name, ridge, seed):
    """From epsilon = .001 to 25, for every strategy."""
    p = problem(domain=L2Ball(0.5), ridge=ridge)
    private = pqftl(p, Privacy(10.0**exponent, 1e-6), 24, strategy=STRATEGIES[name], seed=seed)
    rng = np.random.default_rng(seed)
    _, releases = private.run(private.start(), rng.normal(size=(24, 2)), rng.normal(size=24))
    assert len(releases) == 24
    assert all(p.domain.contains(r.point) and np.isfinite(r.point).all() for r in releases)


def test_a_hundredfold_budget_is_no_exception():
    """Epsilon = 100, where there is next to no noise and nothing but the least ridge."""
    p, rng = problem(domain=L2Ball(0.5)), np.random.default_rng(0)
    private = pqftl(p, Privacy(100.0, 1e-4), 1000, seed=0)
    X, y = np.zeros((1000, 2)), rng.normal(size=1000)
    X[:, 0] = rng.normal(size=1000)  # the other direction is never seen
    _, releases = private.run(private.start(), X, y)
    assert all(p.domain.contains(r.point) and np.isfinite(r.point).all() for r in releases)


def regression(n: int = 50) -> tuple[Problem, np.ndarray, np.ndarray]:
    p = Problem(Squared(), L2Ball(50.0), 3, label_bound=1.0, ridge=0.3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return p, *p.clip(X, X @ [0.5, -0.3, 0.1] + 0.1 * rng.normal(size=n))


def decided(learner: QFTL, V: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The point without noise."""
    exact = learner.absorb(learner.start(), 0, V, y, NOWHERE)
    return learner.decide(len(y), learner.statistic(exact, len(y))[1], 0.0)


@pytest.mark.parametrize("extra", [0.0, 2.5])
@pytest.mark.parametrize("weight", [None, 0.2, 1.0, 7.0])
def test_without_noise_it_is_the_leader(weight, extra):
    """FTL on the same examples, up to the cutting of features and labels, where the constraint is inactive."""
    p, V, y = regression()
    leader = FTL(p, extra)
    row = leader.statistic(leader.absorb(leader.start(), 0, V, y, NOWHERE), len(y))[1]
    np.testing.assert_allclose(decided(QFTL(p, extra, weight), V, y), row, atol=1e-5)


class ForgetsWeight(QFTL):
    """Does not divide the second sum by its weight."""

    def decide(self, t, noisy, noise_sd):
        scaled = np.concatenate([noisy[:-3], noisy[-3:] * self.weight])
        return super().decide(t, scaled, noise_sd)


def test_a_forgotten_weight_is_caught():
    """The point would be that many times too long."""
    p, V, y = regression()
    right, wrong = (decided(made(p, weight=3.0), V, y) for made in (QFTL, ForgetsWeight))
    assert np.linalg.norm(wrong) > 2.0 * np.linalg.norm(right)


@settings(max_examples=50)
@given(noisy=arrays(np.float64, 5, elements=st.floats(-30.0, 30.0)), sd=st.floats(0.0, 9.0), t=st.integers(1, 50))
def test_the_point_is_that_of_the_docstring(noisy, sd, t):
    """Its slow twin: `lam = s·sqrt(1.5·d·(2X² + 1/w²))/B`, a floor where the matrix is not positive, solve, project."""
    B, w, ridge = 0.7, 1.7, 0.8
    values, vectors = np.linalg.eigh(unpacked(noisy[:3], 2))
    longest = min(B, 1.0 / (2.0 * math.sqrt(ridge)))
    held = ridge * t + 0.4 + sd * math.sqrt(1.5 * 2.0 * (2.0 * longest**2 + w**-2)) / B
    assume(abs(values[0] + held) > 1e-3)  # there the two rules meet, and rounding decides
    values = np.maximum(values, 0.0) if values[0] + held < 0.0 else values
    x = vectors @ ((vectors.T @ noisy[3:]) / w / (values + held))
    x *= min(1.0, B / max(np.linalg.norm(x), 1e-300))
    learner = QFTL(problem(domain=L2Ball(B), ridge=ridge), extra_ridge=0.4, weight=w)
    np.testing.assert_allclose(learner.decide(t, noisy, sd), x, atol=1e-8)


def test_the_weight_makes_the_noise_least():
    """`Delta²·(2x² + 1/w²)`, at the length of a likely leader, is no smaller at any other weight."""
    for R, R_y, ridge in ((1.0, 1.0, 0.0), (2.0, 0.1, 0.0), (0.3, 5.0, 4.0)):
        learner = QFTL(problem(R, R_y, ridge=ridge))
        longest = min(1.0, R_y / (2.0 * math.sqrt(ridge))) if ridge else 1.0

        likely = min(longest / 2.0, R_y / learner.problem.norm_bound)

        def noise(w, learner=learner, likely=likely):
            return float(QFTL(learner.problem, weight=w).certificate.at(1)) ** 2 * (2.0 * likely**2 + w**-2)

        others = learner.weight * np.exp(np.linspace(-3.0, 3.0, 61))
        assert noise(learner.weight) <= min(noise(w) for w in others) * (1.0 + 1e-6)


def test_no_cut_of_the_stream_changes_a_bit():
    """Contributions are added exactly."""
    p, V, y = regression(60)
    private = pqftl(p, Privacy(2.0, 1e-6), 60, schedule=every(7), seed=5)
    _, whole = private.run(private.start(), V, y)
    state, parts = private.start(), []
    for start, end in ((0, 1), (1, 20), (20, 21), (21, 60)):
        state, more = private.run(state, V[start:end], y[start:end])
        parts += more
    assert [(r.t, r.point.tobytes()) for r in whole] == [(r.t, r.point.tobytes()) for r in parts]


@pytest.mark.parametrize("schedule", [every(1), geometric(1.1)])
def test_it_classifies(schedule):
    """Labels -1 and +1, separable with a margin: nearly all right at a generous budget (fixed seed)."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.abs(X @ [0.6, -0.8]) > 0.3][:400]
    y = np.sign(X @ [0.6, -0.8])
    p = problem(domain=L2Ball(3.0))
    release = pqftl(p, Privacy(20.0, 1e-6), 400, schedule=schedule, seed=3).fit(X, y)
    assert np.mean(np.sign(p.predict(release.point, X)) == y) > 0.97


def test_invalid_arguments_are_rejected():
    """Each with a remedy."""
    for loss in (Linear(), Huber(1.0)):
        with pytest.raises(Unprovable, match="private FTRL for other losses"):
            QFTL(Problem(loss, L2Ball(1.0), 2, label_bound=1.0))
    with pytest.raises(Unprovable, match=r"L2Ball\(1.0\)"):
        QFTL(replace(problem(), domain=WholeSpace()))
    with pytest.raises(InvalidInput, match="extra_ridge"):
        QFTL(problem(), extra_ridge=-1.0)
    with pytest.raises(InvalidInput, match="weight must be positive"):
        QFTL(problem(), weight=0.0)


@pytest.mark.parametrize("loss", [Squared(), OneHot(3)], ids=repr)
@pytest.mark.parametrize("most", [2048, 2**17])
def test_blocks_add_up_to_what_the_definition_does(loss, most, monkeypatch):
    """To the last bit, at the ends of blocks in the cache and of those that float64 adds up, and for no examples."""
    for twin in (qftl, qftl_pass):
        monkeypatch.setattr(twin, "MOST_AT_ONCE", most)
    learner, rng = QFTL(Problem(loss, L2Ball(1.0), 5, label_bound=1.0, intercept=0.5)), np.random.default_rng(2)
    labels = rng.integers(0, 3, 5000).astype(float) if loss.labels == "class" else rng.uniform(-1.0, 1.0, 5000)
    X, y = learner.problem.clip(rng.normal(size=(5000, 5)), labels)
    for count in (0, 1, 1023, 1024, 1025, 2048, 2049, 5000):
        defined = learner.absorb(learner.start(), 0, X[:count], y[:count], np.zeros(learner.problem.size))["sum"]
        np.testing.assert_array_equal(qftl_pass.Products(learner)._sum(X[:count], y[:count]), defined)
